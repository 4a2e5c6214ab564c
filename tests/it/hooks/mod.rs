//! Tests git hooks by running git: what they start, what they do not change, and what happens if they fail.

mod faults;
mod firing;
mod installing;
mod managers;

use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::time::Duration;

use codescout::config::Overrides;
use codescout::git::Repository;
use codescout::session::Workspace;
use codescout::setup::hooks::{Entry, HookLog, RunOutcome};
use codescout::sidecar::{Sidecar, WriterLock};
use serde_json::Value;

use crate::cli::{Called, call_in};
use crate::support::{InTime, TestRepo, wait_until};

/// The executable that the hooks call.
const PROGRAM: &str = env!("CARGO_BIN_EXE_codescout");

/// Creates a repository with one commit and installed hooks.
fn hooked() -> TestRepo {
    let repo = TestRepo::new("\n//- start.rs\npub fn start() {}\n");
    hooks(&repo, &["install"]).expect(0);
    repo
}

/// Creates a repository with hooks after a completed run. Also returns the number of runs, and a lock: no run can end
/// while it is held.
fn held() -> (TestRepo, usize, WriterLock) {
    let repo = hooked();
    commit_file(&repo, "first");
    settle(&repo);
    let before = n_runs(&repo);
    let sidecar = Sidecar::open(&repo.path(".codescout")).unwrap();
    let lock = sidecar.lock(Duration::from_secs(20)).unwrap();
    (repo, before, lock)
}

/// Runs `codescout hooks …`.
fn hooks(repo: &TestRepo, args: &[&str]) -> Called {
    call_in(repo.root(), &[&["hooks"], args].concat(), b"")
}

/// Runs `codescout hooks … --json`.
fn hooks_json(repo: &TestRepo, args: &[&str], code: i32) -> Value {
    hooks(repo, &[args, &["--json"]].concat()).expect(code).json()
}

/// Commits a new file.
fn commit_file(repo: &TestRepo, name: &str) -> String {
    repo.write(format!("{name}.rs"), format!("pub fn {name}() {{}}\n"));
    repo.commit(name)
}

/// Waits until all processes started by hooks have ended: no other process has its current folder inside the test's
/// folder.
#[track_caller]
fn settle(repo: &TestRepo) {
    let folder = repo.root().parent().unwrap();
    let mut n_quiet = 0;
    wait_until("the hooks' processes end", || {
        // One check can miss a process that was started while its parent ended.
        n_quiet = if processes_in(folder).is_empty() {
            n_quiet + 1
        } else {
            0
        };
        n_quiet == 5
    });
}

/// Returns the processes whose current folder is at or below `folder`.
fn processes_in(folder: &Path) -> Vec<u32> {
    let ids = fs::read_dir("/proc").unwrap().flatten();
    ids.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|id| *id != std::process::id())
        .filter(|id| fs::read_link(format!("/proc/{id}/cwd")).is_ok_and(|cwd| cwd.starts_with(folder)))
        .collect()
}

/// Finds the worker of a repository by its command line.
fn worker_in(folder: &Path) -> Option<u32> {
    let is_worker = |id: &u32| {
        fs::read(format!("/proc/{id}/cmdline"))
            .is_ok_and(|line| line.split(|byte| *byte == 0).any(|word| word == b"--worker"))
    };
    processes_in(folder).into_iter().find(is_worker)
}

/// Reads the log of a repository whose sidecar is at the default location.
fn log(repo: &TestRepo) -> Vec<Entry> {
    let workspace = Workspace::open(repo.root(), &Overrides::default()).unwrap();
    HookLog::of(&workspace.repository, Some(workspace.storage.root())).entries()
}

/// Returns the commits of completed runs, in order.
fn indexed(repo: &TestRepo) -> Vec<String> {
    let done = log(repo)
        .into_iter()
        .filter(|entry| entry.outcome == RunOutcome::Indexed);
    done.filter_map(|entry| entry.commit).collect()
}

/// Returns the number of runs that were started.
fn n_runs(repo: &TestRepo) -> usize {
    log(repo)
        .iter()
        .filter(|entry| entry.outcome == RunOutcome::Started)
        .count()
}

/// Checks that a hook has indexed `HEAD` without errors.
#[track_caller]
fn assert_fresh(repo: &TestRepo) {
    settle(repo);
    let log = log(repo);
    assert_eq!(indexed(repo).last(), Some(&repo.rev_parse("HEAD")), "{log:#?}");
    assert!(log.iter().all(|entry| entry.outcome != RunOutcome::Failed), "{log:#?}");
    let status = call_in(repo.root(), &["status", "--ref", "HEAD", "--json"], b"")
        .expect(0)
        .json();
    assert_eq!(status["index"], "up_to_date");
}

/// Runs git with a long time limit for hooks, and returns its output.
#[track_caller]
fn git_says<S: AsRef<OsStr>>(repo: &TestRepo, arguments: &[S]) -> String {
    let output = repo.command().args(arguments).output_in_time().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
}

fn open(repo: &TestRepo) -> Repository {
    Repository::open(repo.root()).unwrap()
}
