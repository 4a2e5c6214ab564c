//! Tests concurrent writers and readers, while git changes the repository.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use codescout::sidecar::Sidecar;

use super::{check_sound, cut_off, history, program, stderr, succeed, told_by};
use crate::support::{Ending, InTime, TestRepo, is_long, output_of};

const N_WRITERS: usize = 4;
const N_READERS: usize = 8;

fn git(root: &Path, args: &[&str]) -> String {
    let mut command = Command::new("git");
    cut_off(&mut command, root);
    let output = command
        .args(args)
        .env("GIT_AUTHOR_NAME", "a")
        .env("GIT_AUTHOR_EMAIL", "a@example.com")
        .env("GIT_COMMITTER_NAME", "a")
        .env("GIT_COMMITTER_EMAIL", "a@example.com")
        .output_in_time()
        .unwrap();
    assert!(output.status.success(), "git {args:?}: {}", stderr(&output));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// Returns a word that occurs only in commit `number` of a branch.
fn marker(branch: usize, number: usize) -> String {
    format!("marker_{branch}_{number}_end")
}

/// Creates the commits for each writer in advance, so that the time for git is not measured.
fn commits(repo: &TestRepo, n_updates: usize) -> Vec<Vec<String>> {
    let mut all = Vec::new();
    for branch in 0..N_WRITERS {
        repo.git(["checkout", "--quiet", "-b", &format!("b{branch}"), "main"]);
        let commit = |number: usize| {
            let text = format!("def {}():\n    return {number}\n", marker(branch, number));
            repo.write(format!("b{branch}.py"), text);
            repo.commit(&format!("{branch} {number}"))
        };
        all.push((0..n_updates).map(commit).collect());
    }
    repo.checkout("main");
    all
}

#[test]
fn settings_changed_at_once_are_all_there() {
    let (repo, _) = history(1);
    let settings = [
        ("search.limit", "7"),
        ("gc.auto", "false"),
        ("gc.reflog_days", "11"),
        ("gc.max_bytes", "1000000"),
        ("gc.dead_percent", "13"),
        ("index.max_blob_bytes", "50000"),
    ];
    for round in 0..3 {
        let _ = fs::remove_dir_all(repo.path(".codescout"));
        let set = |(key, value): (&str, &str)| super::start(program(repo.root(), &["config", "set", key, value]));
        for running in settings.map(set) {
            let output = output_of(running, Vec::new());
            assert!(output.status.success(), "round {round}: {}", stderr(&output));
        }
        for (key, value) in settings {
            let stored = succeed(repo.root(), &["config", "get", key]).stdout;
            assert_eq!(
                String::from_utf8(stored).unwrap().trim(),
                value,
                "{key} is lost in round {round}"
            );
        }
    }
}

#[test]
fn writers_and_readers_at_once_lose_nothing() {
    let n_updates = if is_long() { 200 } else { 3 };
    let (repo, _) = history(3);
    let commits = commits(&repo, n_updates);
    succeed(repo.root(), &["index"]);
    // Indexed commits, which readers may query.
    let done: Mutex<Vec<(usize, usize)>> = Mutex::new(Vec::new());
    let n_left = AtomicUsize::new(N_WRITERS);
    let n_asked = AtomicUsize::new(0);
    let root = repo.root();
    std::thread::scope(|scope| {
        for (branch, commits) in commits.iter().enumerate() {
            let (done, n_left) = (&done, &n_left);
            scope.spawn(move || {
                let _guard = Leaving(n_left);
                for (number, commit) in commits.iter().enumerate() {
                    succeed(root, &["-q", "index", commit]);
                    done.lock().unwrap().push((branch, number));
                }
            });
        }
        for reader in 0..N_READERS {
            let (done, n_left, commits, n_asked) = (&done, &n_left, &commits, &n_asked);
            scope.spawn(move || {
                let mut generation = 0;
                let mut turn = reader;
                while n_left.load(Ordering::Relaxed) > 0 {
                    let state = Sidecar::open(&root.join(".codescout"))
                        .unwrap()
                        .state()
                        .unwrap()
                        .unwrap();
                    assert!(
                        state.generation >= generation,
                        "the state went back from {generation} to {}",
                        state.generation
                    );
                    generation = state.generation;
                    let known = done.lock().unwrap().clone();
                    turn += 1;
                    let Some(&(branch, number)) = known.get(turn % known.len().max(1)) else {
                        std::thread::yield_now();
                        continue;
                    };
                    let asked = ["--ref", &commits[branch][number], "grep", "-l", &marker(branch, number)];
                    let answer = succeed(root, &asked);
                    assert_eq!(String::from_utf8_lossy(&answer.stdout).trim(), format!("b{branch}.py"));
                    n_asked.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    assert!(n_asked.into_inner() >= N_READERS, "the readers did not get to ask");
    let sidecar = Sidecar::open(&repo.path(".codescout")).unwrap();
    let before = sidecar.state().unwrap().unwrap();
    for commit in commits.iter().flatten() {
        let output = succeed(root, &["--json", "index", commit]);
        let outcome: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(
            outcome["revisions"][0]["looked_at_files"], 0,
            "the update to {commit} was lost"
        );
    }
    assert_eq!(sidecar.state().unwrap().unwrap(), before);
    let revisions: Vec<String> = commits
        .iter()
        .map(|commits| commits[commits.len() - 1].clone())
        .collect();
    let expected = told_by(root, Some(repo.beside("sidecar")), &revisions);
    check_sound(root, &revisions, &expected, "writers at once");
}

/// Decrements the number of running threads when dropped, even after a panic.
struct Leaving<'a>(&'a AtomicUsize);

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[test]
fn git_at_work_is_no_failure() {
    let n_times = if is_long() { 300 } else { 2 };
    let (repo, commits) = history(12);
    let root = repo.root();
    // Creates two branches to check out alternately, and a commit to rebase.
    git(root, &["checkout", "-q", "-b", "topic", &commits[5]]);
    fs::write(repo.path("topic.rs"), "pub fn on_topic() {}\n").unwrap();
    git(root, &["add", "-A"]);
    git(root, &["commit", "-q", "-m", "topic"]);
    let topic = git(root, &["rev-parse", "topic"]);
    git(root, &["checkout", "-q", "main"]);
    let end = AtomicBool::new(false);
    let (mut n_runs, mut n_rounds) = (0, 0);
    std::thread::scope(|scope| {
        let rounds = scope.spawn(|| {
            let mut n_rounds = 0;
            while n_rounds == 0 || !end.load(Ordering::Relaxed) {
                git(root, &["repack", "-q", "-a", "-d"]);
                git(root, &["checkout", "-q", "topic"]);
                git(root, &["rebase", "-q", "main"]);
                git(root, &["reset", "-q", "--hard", &topic]);
                git(root, &["checkout", "-q", "main"]);
                git(root, &["reflog", "expire", "--expire=now", "--all"]);
                git(root, &["gc", "-q", "--prune=now"]);
                n_rounds += 1;
            }
            n_rounds
        });
        let _ending = Ending(&end);
        for _ in 0..n_times {
            let _ = fs::remove_dir_all(repo.path(".codescout"));
            for call in [
                &["index"][..],
                &["index", &commits[3], &topic],
                &["search", "packet"],
                &["grep", "packet"],
                &["status"],
            ] {
                let output = program(root, call).output_in_time().unwrap();
                // Between two checkouts a search may find nothing, but it must not fail.
                assert!(
                    matches!(output.status.code(), Some(0 | 1)),
                    "{call:?}: {}",
                    stderr(&output)
                );
                n_runs += 1;
            }
        }
        end.store(true, Ordering::Relaxed);
        n_rounds = rounds.join().unwrap();
    });
    assert!(n_rounds > 0 && n_runs > 0, "{n_rounds} rounds of git, {n_runs} runs");
    let revisions = vec![commits[11].clone(), topic];
    let expected = told_by(root, Some(repo.beside("sidecar")), &revisions);
    check_sound(root, &revisions, &expected, "git at work");
}
