//! Tests hooks that fail: the commit succeeds, and the log contains the reason why the index was not updated.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc;

use codescout::setup::hooks::{Entry, HookLog, RunOutcome};
use notify::{RecursiveMode, Watcher};

use super::{
    assert_fresh, commit_file, held, hooked, hooks, hooks_json, indexed, log, n_runs, open, settle, worker_in,
};
use crate::support::{InTime, TestRepo, wait_until};

#[test]
fn a_program_that_is_gone_is_no_trouble() {
    let repo = hooked();
    for event in ["post-commit", "post-checkout"] {
        let path = repo.path(format!(".git/hooks/{event}"));
        let script = fs::read_to_string(&path).unwrap();
        fs::write(&path, script.replace(super::PROGRAM, "/nowhere/codescout")).unwrap();
    }
    let done = repo
        .command()
        .args(["commit", "--quiet", "--allow-empty", "-m", "x"])
        .output_in_time()
        .unwrap();
    assert!(done.status.success() && done.stderr.is_empty(), "{done:?}");
    let done = repo
        .command()
        .args(["checkout", "--quiet", "-b", "side"])
        .output_in_time()
        .unwrap();
    assert!(done.status.success() && done.stderr.is_empty(), "{done:?}");
    settle(&repo);
    assert!(!repo.path(".codescout").exists());
    // If the program is in `PATH`, the hook finds it by name.
    let folder = Path::new(super::PROGRAM).parent().unwrap();
    let path = std::env::join_paths(
        std::iter::once(folder.to_owned()).chain(std::env::split_paths(&std::env::var_os("PATH").unwrap())),
    );
    let done = repo
        .command()
        .env("PATH", path.unwrap())
        .args(["commit", "--quiet", "--allow-empty", "-m", "y"])
        .status_in_time();
    assert!(done.unwrap().success());
    assert_fresh(&repo);
}

/// Returns the process id of the worker after a run has started.
fn started(repo: &TestRepo, before: usize) -> String {
    wait_until("a run begins", || n_runs(repo) > before);
    worker_in(repo.root()).unwrap().to_string()
}

fn end(signal: &str, process: &str) {
    assert!(
        Command::new("kill")
            .args([signal, process])
            .status_in_time()
            .unwrap()
            .success()
    );
}

#[test]
fn a_worker_that_was_killed_leaves_nothing_in_the_way() {
    let (repo, before, lock) = held();
    commit_file(&repo, "second");
    end("-KILL", &started(&repo, before));
    settle(&repo);
    assert_eq!(hooks_json(&repo, &["status"], 0)["last_run"]["outcome"], "started");
    drop(lock);
    commit_file(&repo, "third");
    assert_fresh(&repo);
}

#[test]
fn a_worker_that_was_asked_to_stop_says_so() {
    let (repo, before, lock) = held();
    commit_file(&repo, "second");
    end("-TERM", &started(&repo, before));
    drop(lock);
    settle(&repo);
    let last = log(&repo).pop().unwrap();
    assert!(
        matches!(last.outcome, RunOutcome::Interrupted | RunOutcome::Failed),
        "{last:?}"
    );
    assert!(last.why.is_some());
    assert_ne!(indexed(&repo).last(), Some(&repo.rev_parse("HEAD")));
}

#[test]
fn no_lock_of_git_is_taken() {
    let repo = hooked();
    commit_file(&repo, "first");
    settle(&repo);
    let locks = [
        "index.lock",
        "HEAD.lock",
        "config.lock",
        "packed-refs.lock",
        "refs/heads/main.lock",
    ];
    let (sender, events) = mpsc::channel();
    let mut watcher = notify::recommended_watcher(sender).unwrap();
    watcher.watch(&repo.path(".git"), RecursiveMode::Recursive).unwrap();
    // All of git's lock files exist.
    for lock in locks {
        repo.write(format!(".git/{lock}"), "");
    }
    repo.remove(".codescout/FORMAT");
    fs::remove_dir_all(repo.path(".codescout")).unwrap();
    hooks(&repo, &["run", "post-commit"]).expect(0);
    settle(&repo);
    for lock in locks {
        repo.remove(format!(".git/{lock}"));
    }
    assert_fresh(&repo);
    drop(watcher);
    let mut touched: Vec<PathBuf> = events.iter().flatten().flat_map(|event| event.paths).collect();
    touched.retain(|path| path.extension().is_some_and(|ending| ending == "lock"));
    touched.sort();
    touched.dedup();
    assert_eq!(touched.len(), locks.len(), "the test's own and no more: {touched:?}");
}

#[test]
fn a_foreign_sidecar_is_left_alone_and_the_log_says_so() {
    let repo = hooked();
    repo.write(".git/info/exclude", "/.codescout/\n");
    repo.write(".codescout/somebody-elses", "");
    repo.symlink("/nowhere/log", ".codescout/log");
    commit_file(&repo, "first");
    settle(&repo);
    let last = hooks_json(&repo, &["status"], 0)["last_run"].clone();
    assert_eq!(last["outcome"], "failed");
    let why = last["why"].as_str().unwrap();
    assert!(why.contains("log is a symbolic link"), "{last}");
    assert!(repo.path(".git/codescout-hooks/hooks.log").is_file());
}

#[test]
fn a_configuration_that_cannot_be_read_is_reported() {
    let repo = hooked();
    repo.write(".codescout.toml", "nonsense = 1\n");
    commit_file(&repo, "first");
    settle(&repo);
    let log = HookLog::of(&open(&repo), None).entries();
    let last = log.last().unwrap();
    assert_eq!(last.outcome, RunOutcome::Failed);
    assert!(last.why.as_ref().unwrap().contains("nonsense"), "{last:?}");
}

/// A small file system, unmounted when dropped.
struct Disk(PathBuf);

impl Disk {
    fn mount(at: PathBuf) -> Option<Self> {
        fs::create_dir(&at).unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=128k", "tmpfs"])
            .arg(&at)
            .output_in_time();
        if mounted.is_ok_and(|output| output.status.success()) {
            return Some(Self(at));
        }
        crate::indexed::skip("no file system can be mounted here");
        None
    }

    fn make_read_only(&self) {
        let done = Command::new("mount")
            .args(["-o", "remount,ro"])
            .arg(&self.0)
            .status_in_time();
        assert!(done.unwrap().success());
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status_in_time();
    }
}

/// Commits with the sidecar on a separate disk, and returns the last line of the log.
fn commit_with_sidecar(repo: &TestRepo, sidecar: &Path, name: &str) -> Entry {
    repo.write(format!("{name}.rs"), format!("pub fn {name}() {{}}\n").repeat(200));
    repo.git(["add", "--all"]);
    let output = repo
        .command()
        .env("CODESCOUT_SIDECAR", sidecar)
        .args(["commit", "--quiet", "-m", name])
        .output_in_time()
        .unwrap();
    assert!(
        output.status.success() && output.stdout.is_empty() && output.stderr.is_empty(),
        "{output:?}"
    );
    settle(repo);
    HookLog::of(&open(repo), Some(sidecar)).entries().pop().unwrap()
}

#[test]
fn a_full_disk_and_a_read_only_one_are_told_of() {
    let repo = hooked();
    let Some(disk) = Disk::mount(repo.beside("disk")) else {
        return;
    };
    let sidecar = disk.0.join("sidecar");
    assert_eq!(
        commit_with_sidecar(&repo, &sidecar, "fits").outcome,
        RunOutcome::Indexed
    );

    fs::write(disk.0.join("filler"), vec![1; 128 << 10]).unwrap_err();
    let last = commit_with_sidecar(&repo, &sidecar, "too_much");
    assert_eq!(last.outcome, RunOutcome::Failed, "{last:?}");
    assert!(last.why.unwrap().to_lowercase().contains("no space left"));
    let status = repo.command().args(["status", "--porcelain"]).output_in_time().unwrap();
    assert!(status.stdout.is_empty());

    fs::remove_file(disk.0.join("filler")).unwrap();
    disk.make_read_only();
    let last = commit_with_sidecar(&repo, &sidecar, "read_only");
    assert_eq!(last.outcome, RunOutcome::Failed, "{last:?}");
    assert!(last.why.unwrap().to_lowercase().contains("read-only"));
}
