//! git's hooks, called by git itself: what they start, what they leave alone, and what happens when something is in the way.

mod faults;
mod firing;
mod installing;
mod managers;

use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use codescout::config::Overrides;
use codescout::git::Repository;
use codescout::session::Workspace;
use codescout::setup::hooks::{Entry, HookLog, RunOutcome};
use codescout::sidecar::{Sidecar, WriterLock};
use serde_json::Value;

use crate::cli::{Called, call_in};
use crate::support::TestRepo;

/// The executable that the hooks call.
const PROGRAM: &str = env!("CARGO_BIN_EXE_codescout");
/// After which a test that waits has failed.
const DEADLINE: Duration = Duration::from_secs(120);

/// A repository with one commit and with hooks.
fn hooked() -> TestRepo {
    let repo = TestRepo::new("\n//- start.rs\npub fn start() {}\n");
    hooks(&repo, &["install"]).expect(0);
    repo
}

/// A repository with hooks and a run behind it, how many there were, and a lock: no run can end while it is held.
fn held() -> (TestRepo, usize, WriterLock) {
    let repo = hooked();
    commit_file(&repo, "first");
    settle(&repo);
    let before = n_runs(&repo);
    let sidecar = Sidecar::open(&repo.path(".codescout")).unwrap();
    let lock = sidecar.lock(Duration::from_secs(20)).unwrap();
    (repo, before, lock)
}

/// Calls `codescout hooks …`.
fn hooks(repo: &TestRepo, args: &[&str]) -> Called {
    call_in(repo.root(), &[&["hooks"], args].concat(), b"")
}

/// Calls `codescout hooks … --json`.
fn hooks_json(repo: &TestRepo, args: &[&str], code: i32) -> Value {
    hooks(repo, &[args, &["--json"]].concat()).expect(code).json()
}

/// Commits a new file.
fn commit_file(repo: &TestRepo, name: &str) -> String {
    repo.write(format!("{name}.rs"), format!("pub fn {name}() {{}}\n"));
    repo.commit(name)
}

/// Waits until a condition holds.
#[track_caller]
fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + DEADLINE;
    while !holds() {
        assert!(Instant::now() < deadline, "{what}: in vain");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Waits until nothing that hooks started is left: no process stands in a folder of the test's, this one excepted.
#[track_caller]
fn settle(repo: &TestRepo) {
    let folder = repo.root().parent().unwrap();
    let mut n_quiet = 0;
    wait_until("the hooks' processes end", || {
        // One look can miss a process that was started while its parent ended.
        n_quiet = if processes_in(folder).is_empty() {
            n_quiet + 1
        } else {
            0
        };
        n_quiet == 5
    });
}

/// The processes with their current folder at or below `folder`.
fn processes_in(folder: &Path) -> Vec<u32> {
    let ids = fs::read_dir("/proc").unwrap().flatten();
    ids.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|id| *id != std::process::id())
        .filter(|id| fs::read_link(format!("/proc/{id}/cwd")).is_ok_and(|cwd| cwd.starts_with(folder)))
        .collect()
}

/// The worker of a repository, by its command line.
fn worker_in(folder: &Path) -> Option<u32> {
    let is_worker = |id: &u32| {
        fs::read(format!("/proc/{id}/cmdline"))
            .is_ok_and(|line| line.split(|byte| *byte == 0).any(|word| word == b"--worker"))
    };
    processes_in(folder).into_iter().find(is_worker)
}

/// The log of a repository, the sidecar where it stands by default.
fn log(repo: &TestRepo) -> Vec<Entry> {
    let workspace = Workspace::open(repo.root(), &Overrides::default()).unwrap();
    HookLog::of(&workspace.repository, Some(workspace.storage.root())).entries()
}

/// The commits of the runs that were done, in order.
fn indexed(repo: &TestRepo) -> Vec<String> {
    let done = log(repo)
        .into_iter()
        .filter(|entry| entry.outcome == RunOutcome::Indexed);
    done.filter_map(|entry| entry.commit).collect()
}

/// The number of runs that began.
fn n_runs(repo: &TestRepo) -> usize {
    log(repo)
        .iter()
        .filter(|entry| entry.outcome == RunOutcome::Started)
        .count()
}

/// Asserts that `HEAD` was indexed by a hook, and that nothing went wrong on the way.
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

/// A call of git in which hooks may take as long as they like, with what it printed.
#[track_caller]
fn git_says<S: AsRef<OsStr>>(repo: &TestRepo, arguments: &[S]) -> String {
    let output = repo.command().args(arguments).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
}

fn open(repo: &TestRepo) -> Repository {
    Repository::open(repo.root()).unwrap()
}
