//! `codescout index --watch`

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::{call, project};
use crate::support::{Printed, TestRepo, assert_within, kill, wait_for_end};

/// A running `index --watch`, killed when dropped.
struct Watching {
    child: Child,
    printed: Printed,
}

impl Watching {
    fn start(repo: &TestRepo) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_codescout"))
            .args(["index", "--watch", "--json"])
            .current_dir(repo.root())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let printed = Printed::on(child.stdout.take().unwrap());
        Self { child, printed }
    }

    /// Returns the tree that is indexed next.
    fn next_tree(&mut self) -> String {
        let line: Value = serde_json::from_str(&self.printed.up_to("\n")).unwrap();
        line["revisions"][0]["tree"].as_str().unwrap().to_owned()
    }

    /// Sends a signal and returns the exit code.
    fn end(&mut self, signal: Signal) -> Option<i32> {
        let began = Instant::now();
        let pid = Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
        let code = wait_for_end(&mut self.child).code();
        assert_within(Duration::from_secs(1), began, "the end after a signal");
        code
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        kill(&mut self.child);
    }
}

#[test]
fn a_watched_index_follows_commits_and_resets_and_ends_at_once() {
    let repo = project();
    let mut watching = Watching::start(&repo);
    assert_eq!(watching.next_tree(), repo.git(["rev-parse", "HEAD^{tree}"]));

    repo.write("src/new.rs", "pub fn arrived_later() {}\n");
    repo.commit("later");
    let later = repo.git(["rev-parse", "HEAD^{tree}"]);
    assert_eq!(watching.next_tree(), later);
    let status = call(&repo, &["status", "--json"]).expect(0).json();
    assert_eq!(status["index"], "up_to_date");

    std::fs::remove_dir_all(repo.path(".codescout")).unwrap();
    repo.git(["reset", "--quiet", "--hard", "HEAD~1"]);
    let before = watching.next_tree();
    assert_ne!(before, later);
    assert!(
        repo.path(".codescout/state").exists(),
        "a removed sidecar is made again"
    );

    assert_eq!(watching.end(Signal::INT), Some(130));
}
