//! Tests signals, closed pipes, stopped processes and stale locks.

use std::fs;
use std::path::Path;
use std::process::{Child, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use codescout::sidecar::Sidecar;
use serde_json::Value;

use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};

use super::{check_sound, history, program, start, succeed, told_by};
use crate::indexed::files_below;
use crate::support::model::openai;
use crate::support::{InTime, Stub, assert_within, kill, output_of, wait_for_end, wait_until};

/// The promised time with a margin, because the machine may be busy with other tests.
const SOON: Duration = Duration::from_secs(4);

fn pid(child: &Child) -> Pid {
    Pid::from_child(child)
}

/// Starts an index run that sleeps at a fail point, and waits until it does.
fn stopped_at(root: &Path, name: &str, args: &[&str]) -> Child {
    let mut command = program(root, args);
    command.env("CODESCOUT_FAIL_AT", format!("{name}=stop"));
    let child = start(command);
    let mut changed = None;
    wait_until(&format!("{args:?} is at {name}"), || {
        changed = waitpid(Some(pid(&child)), WaitOptions::UNTRACED | WaitOptions::NOHANG).unwrap();
        changed.is_some()
    });
    let (_, status) = changed.unwrap();
    assert!(status.stopped(), "{name}: {status:?}");
    child
}

/// Sends a signal to a stopped process, resumes it, and waits for its end.
fn end_with(mut child: Child, signal: Signal) -> ExitStatus {
    kill_process(pid(&child), signal).unwrap();
    let started = Instant::now();
    kill_process(pid(&child), Signal::CONT).unwrap();
    let status = wait_for_end(&mut child);
    assert_within(SOON, started, &format!("{signal:?}"));
    status
}

#[test]
fn asked_to_end_it_ends_soon_and_whole() {
    let (repo, commits) = history(4);
    let revisions = vec![commits[3].clone(), commits[1].clone()];
    let expected = told_by(repo.root(), Some(repo.beside("sidecar")), &revisions);
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        for place in ["lock.taken", "write.art.half", "segment.stored", "write.state.synced"] {
            let _ = fs::remove_dir_all(repo.path(".codescout"));
            let status = end_with(stopped_at(repo.root(), place, &["index"]), signal);
            let about = format!("{signal:?} at {place}");
            // On a busy machine the run may be complete before the signal handler runs.
            if status.code() == Some(0) {
                let status = succeed(repo.root(), &["status", "--json"]).stdout;
                let answer: Value = serde_json::from_slice(&status).unwrap();
                assert_eq!(answer["index"], "up_to_date", "{about}");
            } else {
                assert_eq!(status.code(), Some(code), "{about}");
            }
            check_sound(repo.root(), &revisions, &expected, &about);
        }
    }
}

#[test]
fn a_writer_waiting_for_another_ends_when_asked() {
    let (repo, _) = history(2);
    let mut holder = stopped_at(repo.root(), "segment.stored", &["index"]);
    let waiting = stopped_at(repo.root(), "lock.opened", &["index"]);
    let status = end_with(waiting, Signal::TERM);
    assert_eq!(status.code(), Some(143), "{status:?}");
    kill(&mut holder);
    succeed(repo.root(), &["index"]);
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let (repo, commits) = history(3);
    for args in [
        &["index"][..],
        &["grep", "e"],
        &["search", "packet"],
        &["--json", "outline"],
        &["read", "README.md"],
    ] {
        let mut command = program(repo.root(), args);
        // This pipe is never read.
        let mut child = start({
            command.stdin(Stdio::null()).stdout(Stdio::piped());
            command
        });
        drop(child.stdout.take());
        let output = output_of(child, Vec::new());
        let said = super::stderr(&output);
        assert_eq!(output.status.code(), Some(0), "{args:?}: {said}");
        assert!(!said.contains("panicked"), "{args:?}: {said}");
    }
    // Closed standard streams cause no error either.
    for redirections in ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"] {
        let mut command = std::process::Command::new("sh");
        command.args(["-c", &format!("exec \"$0\" index {} {redirections}", commits[1])]);
        command.arg(env!("CARGO_BIN_EXE_codescout"));
        super::cut_off(&mut command, repo.root());
        let output = command.output_in_time().unwrap();
        assert!(
            matches!(output.status.code(), Some(0 | 2)),
            "{redirections}: {output:?}"
        );
        let revisions = [commits[2].clone()];
        let expected = told_by(repo.root(), Some(repo.beside("sidecar")), &revisions);
        check_sound(repo.root(), &revisions, &expected, redirections);
        fs::remove_dir_all(repo.path(".codescout")).unwrap();
    }
}

#[test]
fn vectors_that_another_writer_takes_for_left_behind_are_written_again() {
    let repo = crate::remote::project(3);
    let stub = Stub::start(|seen| openai(seen, 16));
    crate::remote::configure(&repo, &format!("[embedding]\nserver = '{}'\nmodel = 'm'\n", stub.url()));
    for place in ["write.probe.written", "write.part.written"] {
        let sleeping = stopped_at(repo.root(), place, &["index", "--json"]);
        // Acquiring the lock removes files that killed writers left.
        drop(Sidecar::open(&repo.path(".codescout")).unwrap().lock(SOON).unwrap());
        kill_process(pid(&sleeping), Signal::CONT).unwrap();
        let output = output_of(sleeping, Vec::new());
        assert!(output.status.success(), "{place}: {}", super::stderr(&output));
        let done: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(done["vectors"]["missing"], 0, "{place}: {done}");
        fs::remove_dir_all(repo.path(".codescout/dense-v1")).unwrap();
    }
}

#[test]
fn a_lock_that_somebody_left_is_none() {
    let (repo, commits) = history(3);
    // The holder of the lock is killed.
    let mut holder = stopped_at(repo.root(), "lock.taken", &["index"]);
    kill(&mut holder);
    let started = Instant::now();
    succeed(repo.root(), &["index"]);
    assert_within(SOON, started, "a holder that was killed");
    // The lock file contains the name of another host, or of a process id that is in use again.
    fs::write(
        repo.path(".codescout/lock"),
        format!("{}\nelsewhere\n", std::process::id()),
    )
    .unwrap();
    let started = Instant::now();
    succeed(repo.root(), &["index", &commits[1]]);
    assert_within(SOON, started, "another host's name");
}

#[test]
fn a_writer_that_sleeps_delays_and_spoils_nothing() {
    let (repo, commits) = history(5);
    succeed(repo.root(), &["index", &commits[1]]);
    let revisions = vec![commits[4].clone(), commits[1].clone()];
    let expected = told_by(repo.root(), Some(repo.beside("sidecar")), &revisions);
    let sidecar = repo.path(".codescout");
    let state = || Sidecar::open(&sidecar).unwrap().state().unwrap().unwrap();
    let before = state();
    for (place, target) in [
        ("segment.stored", &commits[2]),
        ("write.state.synced", &commits[3]),
        ("write.snap.synced", &commits[4]),
    ] {
        let sleeping = stopped_at(repo.root(), place, &["index", target]);
        // Readers do not wait for the lock.
        succeed(repo.root(), &["--ref", &commits[1], "search", "packet"]);
        succeed(repo.root(), &["status"]);
        // Another writer waits, because it needs to do the same work.
        let mut other = start(program(repo.root(), &["index", target]));
        assert!(other.try_wait().unwrap().is_none());
        kill_process(pid(&sleeping), Signal::CONT).unwrap();
        for mut child in [sleeping, other] {
            assert!(wait_for_end(&mut child).success(), "{place}");
        }
    }
    let after = state();
    assert_eq!(after.epoch, before.epoch);
    let blobs: Vec<u32> = after.segments.iter().map(|segment| segment.base_blob).collect();
    assert!(
        blobs.is_sorted_by(|a, b| a < b),
        "a segment was published twice: {blobs:?}"
    );
    assert_eq!(
        after.n_blobs(),
        before.n_blobs() + 3,
        "each of the new files is numbered once"
    );
    check_sound(repo.root(), &revisions, &expected, "writers that slept");
}

/// Starts a garbage collection that sleeps before it writes a manifest of its new epoch.
fn stopped_collection(repo: &crate::support::TestRepo) -> Child {
    let sidecar = repo.path(".codescout");
    succeed(repo.root(), &["index"]);
    fs::write(sidecar.join("config.toml"), "[gc]\nreflog_days = 0\ndead_percent = 0\n").unwrap();
    repo.git(["reset", "--quiet", "--hard", "HEAD~1"]);
    succeed(repo.root(), &["index"]);
    stopped_at(repo.root(), "write.snap.begin", &["gc"])
}

#[test]
fn a_collection_whose_sidecar_was_deleted_leaves_the_new_one_alone() {
    let (repo, commits) = history(3);
    let expected = told_by(repo.root(), Some(repo.beside("sidecar")), &commits[..2]);
    let sleeping = stopped_collection(&repo);
    fs::remove_dir_all(repo.path(".codescout")).unwrap();
    succeed(repo.root(), &["index"]);
    let before = files_below(&repo.path(".codescout"));
    let status = end_with(sleeping, Signal::CONT);
    assert_eq!(status.code(), Some(2), "nothing was collected");
    assert_eq!(files_below(&repo.path(".codescout")), before);
    check_sound(repo.root(), &commits[..2], &expected, "deleted under a collection");
}

#[test]
fn a_collection_whose_sidecar_was_replaced_leaves_the_other_alone() {
    let (repo, _) = history(3);
    let (other, _) = history(4);
    let sleeping = stopped_collection(&repo);
    // The files of the other sidecar are the newest, so a sweep would reach them first.
    succeed(other.root(), &["index"]);
    let theirs = other.path(".codescout");
    let before = files_below(&theirs);
    fs::rename(repo.path(".codescout"), repo.beside("moved")).unwrap();
    std::os::unix::fs::symlink(&theirs, repo.path(".codescout")).unwrap();
    let status = end_with(sleeping, Signal::CONT);
    assert_eq!(status.code(), Some(2), "nothing was collected here");
    assert_eq!(files_below(&theirs), before);
}

#[test]
fn whoever_waits_for_another_writer_ends_when_asked() {
    let (repo, _) = history(2);
    succeed(repo.root(), &["index"]);
    let sidecar = repo.path(".codescout");
    let store = sidecar.join("lexical-v1");
    let damaged = fs::read_dir(store).unwrap().next().unwrap().unwrap().path();
    let good = fs::read(&damaged).unwrap();
    let lock = Sidecar::open(&sidecar).unwrap().lock(Duration::from_secs(20)).unwrap();
    for args in [&["gc"][..], &["gc", "--pin", "HEAD"], &["verify", "--repair"]] {
        if args[0] == "verify" {
            fs::write(&damaged, &good[..good.len() / 2]).unwrap();
        }
        let waiting = stopped_at(repo.root(), "lock.opened", args);
        let status = end_with(waiting, Signal::TERM);
        assert_eq!(status.code(), Some(143), "{args:?}");
    }
    drop(lock);
}

#[test]
fn what_was_thrown_away_before_the_lock_was_had_is_not_pinned() {
    let (repo, commits) = history(3);
    succeed(repo.root(), &["index"]);
    fs::write(repo.path(".codescout/config.toml"), "[gc]\nreflog_days = 0\n").unwrap();
    repo.git(["reset", "--quiet", "--hard", "HEAD~1"]);
    succeed(repo.root(), &["index"]);
    let sleeping = stopped_at(repo.root(), "lock.opened", &["gc", "--pin", &commits[2]]);
    succeed(repo.root(), &["gc"]);
    let status = end_with(sleeping, Signal::CONT);
    assert_eq!(status.code(), Some(2));
    let sidecar = Sidecar::open(&repo.path(".codescout")).unwrap();
    assert_eq!(sidecar.pins().unwrap(), []);
}

#[test]
fn who_waits_for_input_ends_when_asked_once() {
    let (repo, _) = history(2);
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let mut command = program(repo.root(), &["search", "-"]);
        command.stdin(Stdio::piped());
        let mut child = start(command);
        // Standard input stays open without data.
        let _input = child.stdin.take().unwrap();
        // Waits until signal handlers are installed; before that a signal ends the process.
        let is_listening = || {
            let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
            let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
            let caught = caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
            caught.is_some_and(|mask| mask & (1 << (signal.as_raw() - 1)) != 0)
        };
        wait_until("signals are caught", is_listening);
        kill_process(pid(&child), signal).unwrap();
        assert_eq!(wait_for_end(&mut child).code(), Some(code));
    }
}
