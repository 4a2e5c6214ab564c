//! Tests that a list of operations is applied as a whole: by killed, failing and concurrent processes.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use serde_json::{Value, json};

use super::edit;
use crate::support::{TestRepo, is_long, kill, output_of, user_state, wait_until};

const N_FILES: usize = 3;

fn files() -> TestRepo {
    let repo = TestRepo::empty();
    for n in 0..N_FILES {
        repo.write(format!("f{n}.txt"), format!("old {n}\n"));
    }
    repo.write("sub/gone.txt", "old\n");
    repo.commit("start");
    repo
}

/// Returns operations that change, remove and create files.
fn batch() -> Value {
    let mut edits: Vec<Value> = (0..N_FILES)
        .map(|n| json!({"op": "replace_text", "target": format!("f{n}.txt"), "old": "old", "text": "new"}))
        .collect();
    edits.push(json!({"op": "delete", "target": "sub/gone.txt"}));
    edits.push(json!({"op": "create", "target": "made/a.txt", "text": "new\n"}));
    json!(edits)
}

/// Returns the command that applies operations, isolated from the machine's settings.
fn command(repo: &TestRepo, fail_at: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_codescout"));
    command
        .args(["edit", "-"])
        .current_dir(repo.root())
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", repo.root())
        .env("CODESCOUT_FAIL_AT", fail_at)
        .envs(user_state())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Returns the changes that git sees, without the sidecar.
fn status(repo: &TestRepo) -> String {
    repo.git(["status", "--porcelain", "--untracked-files=all"])
}

/// Completes an interrupted batch. Returns true if its changes are there, false if none is.
#[track_caller]
fn is_applied(repo: &TestRepo, about: &str) -> bool {
    let found = edit(repo, &json!([]), &[]);
    assert!(matches!(found.code, 0 | 1), "{about}: {}", found.stderr);
    let mut lines: Vec<String> = (0..N_FILES).map(|n| format!(" M f{n}.txt")).collect();
    lines.extend([" D sub/gone.txt".to_owned(), "?? made/a.txt".to_owned()]);
    let status = status(repo);
    assert!(!repo.path(".git/codescout-edit/journal").exists(), "{about}");
    match status.as_str() {
        "" => false,
        // `TestRepo::git` trims the output.
        found => {
            assert_eq!(found.trim(), lines.join("\n").trim(), "{about}");
            true
        }
    }
}

#[test]
fn a_killed_batch_is_applied_as_a_whole_or_not_at_all() {
    let places = [
        "edit.locked",
        "edit.recorded",
        "edit.half",
        "edit.written",
        "edit.replaced",
        "edit.done",
    ];
    let steps = ["begin", "created", "half", "written", "synced", "renamed", "done"];
    let journal = steps.map(|step| format!("write.journal.{step}"));
    let mut outcomes = BTreeSet::new();
    for place in places.iter().map(|place| (*place).to_owned()).chain(journal) {
        for n in [1, 2, N_FILES + 2] {
            let repo = files();
            let child = command(&repo, &format!("{place}:{n}=kill")).spawn().unwrap();
            let output = output_of(child, batch().to_string().as_bytes());
            let about = format!("killed at {place}:{n}");
            let was_killed = output.status.signal() == Some(9);
            let is_applied = is_applied(&repo, &about);
            assert!(was_killed || is_applied, "{about}");
            // Once the journal is there, the batch is applied.
            let is_late = !place.starts_with("write.journal") && place != "edit.locked" && place != "edit.recorded";
            assert!(
                !was_killed || is_late == is_applied || place.ends_with("renamed") || place.ends_with("done"),
                "{about}"
            );
            outcomes.insert((was_killed, is_applied));
            if !was_killed {
                break;
            }
        }
    }
    assert!(
        outcomes.contains(&(true, true)) && outcomes.contains(&(true, false)),
        "{outcomes:?}"
    );
}

#[test]
fn a_failing_batch_restores_the_files() {
    for place in [
        "edit.half",
        "edit.written",
        "edit.replaced",
        "edit.done",
        "write.journal.half",
    ] {
        for n in [1, N_FILES + 1] {
            let repo = files();
            let child = command(&repo, &format!("{place}:{n}=enospc")).spawn().unwrap();
            let output = output_of(child, batch().to_string().as_bytes());
            if output.status.success() {
                break;
            }
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(said.contains("No space left"), "{place}:{n} {said}");
            assert_eq!(status(&repo), "", "{place}:{n} {said}");
            assert!(
                !repo.path("made").exists() && !repo.path(".git/codescout-edit/journal").exists(),
                "{place}:{n}"
            );
            assert!(is_applied(&repo, place) || edit(&repo, &batch(), &[]).code == 0);
        }
    }
}

#[test]
fn a_file_changed_while_an_edit_was_interrupted_is_kept() {
    let repo = files();
    let child = command(&repo, "edit.replaced:2=kill").spawn().unwrap();
    output_of(child, batch().to_string().as_bytes());
    repo.write("f2.txt", "mine\n");
    let found = edit(&repo, &json!([]), &["--json"]).expect(0).json();
    assert_eq!(found["completed"].as_array().unwrap().len(), N_FILES + 2, "{found}");
    assert_eq!(repo.read("f2.txt"), b"mine\n");
    assert_eq!(repo.read("f1.txt"), b"new 1\n");
}

#[test]
fn a_damaged_journal_is_reported() {
    let repo = files();
    repo.write(".git/codescout-edit/journal", "damaged journal");
    let found = edit(&repo, &batch(), &[]).expect(2);
    assert!(
        found.stderr.contains("it is damaged") && found.stderr.contains("codescout-edit/journal"),
        "{}",
        found.stderr
    );
    assert_eq!(status(&repo), "");
}

/// Starts an edit that stops at a fail point, changes the worktree, and lets it go on. Returns its output.
fn changed_at(repo: &TestRepo, fail_at: &str, edits: &Value, change: impl Fn()) -> Output {
    let mut child = command(repo, &format!("{fail_at}=stop")).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    std::io::Write::write_all(&mut input, edits.to_string().as_bytes()).unwrap();
    drop(input);
    let pid = Pid::from_child(&child);
    wait_until(fail_at, || {
        let status = waitpid(Some(pid), WaitOptions::UNTRACED | WaitOptions::NOHANG).unwrap();
        status.is_some_and(|(_, status)| {
            assert!(status.stopped(), "{status:?}");
            true
        })
    });
    change();
    kill_process(pid, Signal::CONT).unwrap();
    output_of(child, "")
}

/// Returns the temporary files of edits in a folder and below it. Links are not followed.
fn temporaries(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_dir() {
            found.extend(temporaries(&entry.path()));
        } else if entry.file_name().to_string_lossy().starts_with(".codescout-edit-") {
            found.push(entry.path());
        }
    }
    found
}

#[test]
fn no_temporary_file_stays_in_a_folder_that_is_moved_meanwhile() {
    let edits = json!([
        {"op": "replace_text", "target": "sub/deep/a.txt", "old": "old", "text": "new"},
        {"op": "create", "target": "sub/deep/b.txt", "text": "new\n"},
    ]);
    let with_link = |repo: &TestRepo| {
        fs::rename(repo.path("sub"), repo.path("moved")).unwrap();
        repo.symlink("moved", "sub");
    };
    let outside = |repo: &TestRepo| {
        fs::rename(repo.path("sub/deep"), repo.beside("outside")).unwrap();
        repo.symlink(repo.beside("outside"), "sub/deep");
    };
    let replaced = |repo: &TestRepo| {
        fs::rename(repo.path("sub/deep"), repo.path("sub/other")).unwrap();
        repo.write("sub/deep/a.txt", "another\n");
    };
    let gone = |repo: &TestRepo| fs::rename(repo.path("sub"), repo.beside("outside")).unwrap();
    let changed = |repo: &TestRepo| repo.write("sub/deep/a.txt", "another\n");
    let changes: [&dyn Fn(&TestRepo); 5] = [&with_link, &outside, &replaced, &gone, &changed];
    for (number, change) in changes.iter().enumerate() {
        for place in ["edit.half:1", "edit.written:1", "edit.written:2", "edit.replaced:1"] {
            let repo = TestRepo::empty();
            repo.write("sub/deep/a.txt", "old\n");
            repo.commit("start");
            let output = changed_at(&repo, place, &edits, || change(&repo));
            let about = format!("{number} at {place}: {}", String::from_utf8_lossy(&output.stderr));
            assert_eq!(
                temporaries(repo.root().parent().unwrap()),
                Vec::<PathBuf>::new(),
                "{about}"
            );
            assert!(!repo.path(".git/codescout-edit/journal").exists(), "{about}");
        }
    }
}

#[test]
fn a_link_in_the_git_directory_is_not_followed() {
    let repo = files();
    std::fs::create_dir(repo.beside("outside")).unwrap();
    repo.symlink(repo.beside("outside"), ".git/codescout-edit");
    edit(&repo, &batch(), &[]).expect(2);
    assert_eq!(std::fs::read_dir(repo.beside("outside")).unwrap().count(), 0);
    assert_eq!(status(&repo), "");
}

#[test]
fn of_concurrent_edits_that_expect_one_content_exactly_one_wins() {
    let repo = files();
    let n_rounds = if is_long() { 50 } else { 4 };
    for round in 0..n_rounds {
        let expect = repo.git(["hash-object", "f0.txt"]);
        let start = |n: usize| {
            let child = command(&repo, "").env_remove("CODESCOUT_FAIL_AT").spawn().unwrap();
            let edits =
                json!([{"op": "replace", "target": "f0.txt:1-1", "text": format!("{round} {n}"), "expect": expect}]);
            std::thread::spawn(move || output_of(child, edits.to_string().as_bytes()))
        };
        let threads: Vec<_> = (0..8).map(start).collect();
        let outputs: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
        let winners: Vec<usize> = (0..8).filter(|n| outputs[*n].status.success()).collect();
        let said: Vec<_> = outputs
            .iter()
            .map(|output| String::from_utf8_lossy(&output.stderr))
            .collect();
        assert_eq!(winners.len(), 1, "{said:?}");
        assert_eq!(repo.read("f0.txt"), format!("{round} {}\n", winners[0]).as_bytes());
        let lost = said.iter().filter(|said| said.contains("has changed")).count();
        assert_eq!(lost, 7, "{said:?}");
    }
}

#[test]
#[ignore = "kills a thousand processes"]
fn a_thousand_kills_leave_the_old_or_the_new_state() {
    let (mut n_killed, mut n_applied) = (0, 0);
    let repo = files();
    for round in 0..1_000_u64 {
        let mut child = command(&repo, "").env_remove("CODESCOUT_FAIL_AT").spawn().unwrap();
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), batch().to_string().as_bytes()).unwrap();
        std::thread::sleep(std::time::Duration::from_micros(1_000 + round * 7_919 % 60_000));
        n_killed += usize::from(kill(&mut child).signal() == Some(9));
        n_applied += usize::from(is_applied(&repo, &format!("round {round}")));
        repo.git(["checkout", "--quiet", "--force", "HEAD"]);
        repo.git(["clean", "--quiet", "-fd"]);
    }
    let summary = format!("{n_killed} of 1000 were killed, {n_applied} were applied\n");
    std::io::Write::write_all(&mut std::io::stderr(), summary.as_bytes()).unwrap();
    assert!(n_killed > 300 && n_applied > 100 && n_applied < 1_000, "{summary}");
}
