//! Tests the content of the hooks folder before, during and after an installation.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use codescout::setup::hooks::{Foreign, HookEvent, Trial, trial};

use super::{PROGRAM, assert_fresh, commit_file, hooked, hooks, hooks_json, n_runs, open, settle};
use crate::support::{InTime, TestRepo, output_of, write_executable};

/// Returns every file in a folder with its mode, and its content or link target.
fn listing(folder: &Path) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries
        .map(|path| {
            let metadata = path.symlink_metadata().unwrap();
            let content = if metadata.is_symlink() {
                fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes()
            } else {
                fs::read(&path).unwrap()
            };
            (path, (metadata.permissions().mode(), content))
        })
        .collect()
}

/// Creates a repository with hooks of every kind. Each records that it was called.
fn with_hooks_of_others() -> TestRepo {
    let repo = TestRepo::new("\n//- start.rs\npub fn start() {}\n");
    write_executable(
        &repo.path(".git/hooks/post-commit"),
        "#!/bin/sh\n# somebody's\nset -eu\necho \"post-commit $#\" >> called\nwait\nexec true\n",
    );
    write_executable(
        &repo.path(".git/hooks/post-checkout"),
        "#!/usr/bin/env python3\nimport sys\nopen('called', 'a').write(' '.join(['post-checkout'] + sys.argv[1:]) + '\\n')\nsys.exit(3)\n",
    );
    write_executable(
        &repo.path("scripts/rewritten"),
        "#!/bin/sh\n{ echo \"post-rewrite $*\"; cat; } >> called\nexit 0",
    );
    repo.write(".gitignore", "called\n");
    repo.commit("scripts");
    repo.symlink("../../scripts/rewritten", ".git/hooks/post-rewrite");
    // Git ignores hooks that are not executable.
    repo.write(".git/hooks/post-merge", "#!/bin/sh\necho post-merge >> called\n");
    repo
}

fn called(repo: &TestRepo) -> String {
    let text = fs::read_to_string(repo.path("called")).unwrap_or_default();
    let _ = fs::remove_file(repo.path("called"));
    text
}

#[test]
fn hooks_of_others_go_on_as_before() {
    let plain = with_hooks_of_others();
    let hooked = with_hooks_of_others();
    let steps = hooks_json(&hooked, &["install"], 0)["steps"].clone();
    let actions: Vec<&str> = steps
        .as_array()
        .unwrap()
        .iter()
        .map(|step| step["action"].as_str().unwrap())
        .collect();
    assert_eq!(actions, ["added", "chained", "chained", "chained"]);
    hooks(&hooked, &["status"]).expect(0);

    let mut outcomes = Vec::new();
    for repo in [&plain, &hooked] {
        repo.write("new.rs", "pub fn new() {}\n");
        repo.git(["add", "--all"]);
        let mut codes = Vec::new();
        for args in [
            ["commit", "--quiet", "-m", "new"].as_slice(),
            &["commit", "--quiet", "--amend", "-m", "newer"],
            &["checkout", "--quiet", "-b", "side"],
            &["merge", "--quiet", "--no-ff", "-m", "merge", "main"],
            &["checkout", "--quiet", "main"],
        ] {
            let output = repo.command().args(args).output_in_time().unwrap();
            codes.push((output.status.code(), String::from_utf8(output.stderr).unwrap()));
        }
        settle(repo);
        outcomes.push((called(repo), codes));
    }
    let (expected, found) = (&outcomes[0], &outcomes[1]);
    assert_eq!(found, expected);
    assert_eq!(
        expected.1[2].0,
        Some(1),
        "post-checkout's failure becomes git's: {expected:?}"
    );
    assert!(
        expected.0.contains("post-rewrite amend\n") && expected.0.lines().count() >= 5,
        "{}",
        expected.0
    );
    assert_fresh(&hooked);
    let called = Command::new(hooked.path(".git/hooks/post-checkout"))
        .args(["old", "new", "0"])
        .current_dir(hooked.root())
        .status_in_time();
    assert_eq!(called.unwrap().code(), Some(3));
    settle(&hooked);
}

#[test]
fn uninstalling_restores_every_byte() {
    let repo = with_hooks_of_others();
    let folder = repo.path(".git/hooks");
    let before = listing(&folder);
    for _ in 0..2 {
        hooks(&repo, &["install", "--dry-run"]).expect(0);
        assert_eq!(listing(&folder), before);

        hooks(&repo, &["install"]).expect(0);
        let installed = listing(&folder);
        assert_ne!(installed, before);
        let again = hooks_json(&repo, &["install"], 0);
        assert!(
            again["steps"]
                .as_array()
                .unwrap()
                .iter()
                .all(|step| step["action"] == "unchanged"),
            "{again}"
        );
        assert_eq!(listing(&folder), installed);

        hooks(&repo, &["uninstall", "--dry-run"]).expect(0);
        assert_eq!(listing(&folder), installed);
        hooks(&repo, &["uninstall"]).expect(0);
        assert_eq!(listing(&folder), before);
        assert!(!repo.path(".git/codescout-hooks").exists());
        hooks(&repo, &["status"]).expect(1);
    }
    hooks(&repo, &["uninstall"]).expect(0);
}

#[test]
fn what_was_added_to_a_hook_meanwhile_stays() {
    let repo = hooked();
    let path = repo.path(".git/hooks/post-commit");
    let mut script = fs::read_to_string(&path).unwrap();
    script.push_str("echo mine\n");
    fs::write(&path, &script).unwrap();
    hooks(&repo, &["install"]).expect(0);
    assert_eq!(fs::read_to_string(&path).unwrap(), script);
    hooks(&repo, &["uninstall"]).expect(0);
    assert_eq!(fs::read_to_string(&path).unwrap(), "#!/bin/sh\necho mine\n");
    assert!(!repo.path(".git/hooks/post-merge").exists());
}

#[test]
fn another_executable_takes_the_place_of_the_old_one() {
    let repo = hooked();
    let path = repo.path(".git/hooks/post-commit");
    let right = fs::read_to_string(&path).unwrap();
    write_executable(&path, &right.replace(PROGRAM, "/old/codescout"));
    let steps = hooks_json(&repo, &["install"], 0)["steps"].clone();
    assert_eq!(steps[0]["action"], "updated");
    assert_eq!(fs::read_to_string(&path).unwrap(), right);
}

#[test]
fn a_name_that_is_taken_is_not_overwritten() {
    let repo = TestRepo::new("\n//- start.rs\npub fn start() {}\n");
    let hook = repo.path(".git/hooks/post-commit");
    write_executable(&hook, "#!/usr/bin/env python3\n");
    repo.write(".git/hooks/post-commit.codescout-orig", "precious");
    let plan = hooks_json(&repo, &["install"], 1);
    assert_eq!(plan["steps"][0]["action"], "left");
    assert_eq!(fs::read_to_string(&hook).unwrap(), "#!/usr/bin/env python3\n");
    assert_eq!(repo.read(".git/hooks/post-commit.codescout-orig"), b"precious");
}

#[test]
fn an_install_that_was_killed_can_be_done_again_and_undone() {
    let repo = TestRepo::new("\n//- start.rs\npub fn start() {}\n");
    let hook = repo.path(".git/hooks/post-commit");
    let moved = repo.path(".git/hooks/post-commit.codescout-orig");
    write_executable(&hook, "#!/usr/bin/env python3\nopen('called', 'w')\n");
    let before = listing(&repo.path(".git/hooks"));
    // A kill between creating the second name and writing codescout's file, with and without support for hard links.
    let killed: [fn(&Path, &Path); 2] = [
        |hook, moved| fs::hard_link(hook, moved).unwrap(),
        |hook, moved| fs::rename(hook, moved).unwrap(),
    ];
    for kill in killed {
        kill(&hook, &moved);
        hooks(&repo, &["uninstall"]).expect(0);
        assert_eq!(listing(&repo.path(".git/hooks")), before);

        kill(&hook, &moved);
        hooks(&repo, &["install"]).expect(0);
        hooks(&repo, &["status"]).expect(0);
        repo.git(["commit", "--quiet", "--allow-empty", "-m", "next"]);
        assert_fresh(&repo);
        fs::remove_file(repo.path("called")).expect("ours goes on with the one that stood there");
        hooks(&repo, &["uninstall"]).expect(0);
        assert_eq!(listing(&repo.path(".git/hooks")), before);
    }
}

#[test]
fn standard_input_reaches_the_hooks_of_a_bare_repository() {
    let repo = TestRepo::new("\n//- start.rs\npub fn start() {}\n");
    let bare = repo.bare_clone("server.git");
    for script in [
        "#!/bin/sh\ncat > received\n",
        "#!/usr/bin/env python3\nimport sys\nopen('received', 'w').write(sys.stdin.read())\n",
    ] {
        write_executable(&bare.path("hooks/post-receive"), script);
        hooks(&bare, &["install"]).expect(0);
        commit_file(&repo, "next");
        let tip = repo.commit("another");
        let pushed = repo
            .command()
            .args(["push", "--quiet"])
            .arg(bare.root())
            .arg("main")
            .status_in_time();
        assert!(pushed.unwrap().success());
        settle(&bare);
        let received = String::from_utf8(bare.read("received")).unwrap();
        assert!(
            received.contains(&tip) && received.trim_end().ends_with("refs/heads/main"),
            "{received}"
        );
        bare.remove("received");
        hooks(&bare, &["uninstall"]).expect(0);
    }
}

#[test]
fn what_a_hook_reads_is_not_read_by_ours() {
    let repo = TestRepo::new("\n//- start.rs\npub fn start() {}\n");
    let hook = repo.path(".git/hooks/post-rewrite");
    write_executable(&hook, "#!/bin/sh\ncat > received\n");
    hooks(&repo, &["install"]).expect(0);
    let text = "old new\n".repeat(100_000);
    let mut command = repo.command();
    let child = command
        .args(["-c", "alias.call=!.git/hooks/post-rewrite", "call"])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    assert!(output_of(child, text.as_str()).status.success());
    settle(&repo);
    assert_eq!(repo.read("received"), text.as_bytes());
}

#[test]
fn linked_work_trees_share_the_hooks() {
    let repo = hooked();
    let linked = repo.worktree("linked");
    settle(&repo);
    hooks(&linked, &["status"]).expect(0);
    let steps = hooks_json(&linked, &["install"], 0)["steps"].clone();
    assert!(
        steps
            .as_array()
            .unwrap()
            .iter()
            .all(|step| step["action"] == "unchanged"),
        "{steps}"
    );
    hooks(&linked, &["uninstall"]).expect(0);
    assert!(!repo.path(".git/hooks/post-commit").exists());
}

#[test]
fn a_trial_shows_whether_git_calls_the_hooks() {
    let repo = hooked();
    let try_out = |program: &str| {
        let sidecar = repo.path(".codescout");
        trial(&open(&repo), &sidecar, Path::new(program), Foreign::LeaveAlone)
    };
    let outcomes = try_out(PROGRAM);
    assert_eq!(outcomes.len(), 4);
    assert!(
        outcomes
            .iter()
            .all(|(_, outcome)| matches!(outcome, Trial::Called { .. })),
        "{outcomes:?}"
    );
    settle(&repo);
    assert_eq!(n_runs(&repo), 0, "nothing is indexed by a trial");
    assert!(
        fs::read_dir(repo.path(".git/codescout-hooks"))
            .unwrap()
            .next()
            .is_none(),
        "it leaves nothing"
    );

    // A hook that ends before it reaches codescout's lines.
    let hook = repo.path(".git/hooks/post-commit");
    let script = fs::read_to_string(&hook).unwrap();
    write_executable(
        &hook,
        &script.replacen("#!/bin/sh\n", "#!/bin/sh\ntouch fired\nexit 0\n", 1),
    );
    let outcomes = try_out(PROGRAM);
    assert!(
        matches!(outcomes[0], (HookEvent::PostCommit, Trial::NotTried { .. })),
        "{outcomes:?}"
    );
    assert!(!repo.path("fired").exists());

    hooks(&repo, &["uninstall"]).expect(0);
    write_executable(&hook, "#!/bin/sh\ntouch fired\n");
    assert!(
        try_out(PROGRAM)
            .iter()
            .all(|(_, outcome)| *outcome == Trial::NotInstalled)
    );
    assert!(!repo.path("fired").exists());
}

#[test]
fn a_trial_of_hooks_that_start_nothing_fails() {
    let repo = hooked();
    // Exactly the lines that would be written for a program that does not exist.
    for event in ["post-commit", "post-checkout", "post-merge", "post-rewrite"] {
        let path = repo.path(format!(".git/hooks/{event}"));
        let script = fs::read_to_string(&path).unwrap();
        write_executable(&path, &script.replace(PROGRAM, "/nowhere/at-all"));
    }
    let outcomes = trial(
        &open(&repo),
        &repo.path(".codescout"),
        Path::new("/nowhere/at-all"),
        Foreign::LeaveAlone,
    );
    assert!(
        outcomes
            .iter()
            .all(|(_, outcome)| matches!(outcome, Trial::NotCalled { .. })),
        "{outcomes:?}"
    );
}

/// In a git directory from an archive, a file that uses a few bytes of the disk can have any size.
#[test]
fn huge_files_are_not_read() {
    let repo = hooked();
    let huge = |path: &str, start: &str, n_bytes| {
        repo.write(path, start);
        let file = fs::File::options().write(true).open(repo.path(path)).unwrap();
        file.set_len(n_bytes).unwrap();
    };
    huge(".git/codescout-hooks/request x", "post-commit\n/", 1 << 20);
    assert_eq!(hooks_json(&repo, &["status"], 0)["waiting"], 0);
    huge(".git/hooks/post-commit", "#!/bin/sh\n", 100 << 20);
    let status = hooks(&repo, &["status"]).expect(1).stdout;
    assert!(String::from_utf8_lossy(&status).contains("not called, foreign"));
    let refused = hooks(&repo, &["install", "--dry-run"]).expect(2).stderr;
    assert!(refused.contains("larger than 64 MiB"), "{refused}");
}

#[test]
fn a_trial_runs_nothing_that_only_git_finds() {
    let configured = |section: &str| format!("[{section}]\n\tpath = planted\n");
    for planted in [
        configured("Include"),
        configured("includeif \"gitdir:**\""),
        configured("INCLUDEIF \"onbranch:*\""),
        "[Core]\n\tHooksPath = .git/planted-hooks\n".to_owned(),
        "[Hook \"x\"]\n\tCommand = .git/planted-hooks/post-commit\n\tevent = post-commit\n".to_owned(),
    ] {
        let repo = hooked();
        let fired = repo.path("fired");
        for event in ["post-commit", "post-checkout", "post-merge", "post-rewrite"] {
            let hook = repo.path(format!(".git/planted-hooks/{event}"));
            fs::create_dir_all(hook.parent().unwrap()).unwrap();
            write_executable(&hook, &format!("#!/bin/sh\ntouch {}\n", fired.display()));
        }
        repo.write(".git/planted", "[core]\n\thooksPath = .git/planted-hooks\n");
        let config = String::from_utf8(repo.read(".git/config")).unwrap();
        repo.write(".git/config", config + &planted);
        let sidecar = repo.path(".codescout");
        let outcomes = trial(&open(&repo), &sidecar, Path::new(PROGRAM), Foreign::LeaveAlone);
        assert!(!fired.exists(), "{planted}");
        let is_called = |(_, outcome): &(HookEvent, Trial)| matches!(outcome, Trial::Called { .. });
        assert!(!outcomes.iter().any(is_called), "{planted}: {outcomes:?}");
    }
}
