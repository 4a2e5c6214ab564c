//! Tests failing the n-th system call, for every n.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Output};

use super::{Told, check_sound, copy_of, cut_off, history, stderr, succeed, told_by};
use crate::indexed::skip;
use crate::support::{InTime, is_long};

/// System calls and the errors of each: the first is used in the short version, all in the long one.
const CALLS: &[(&str, &[&str])] = &[
    ("write", &["ENOSPC", "EIO", "EINTR"]),
    ("fsync", &["EIO", "ENOSPC", "EINTR"]),
    ("/^rename", &["EIO", "ENOSPC", "EACCES"]),
    ("openat", &["EMFILE", "EIO", "ENOSPC", "EINTR"]),
    ("mmap", &["ENOMEM"]),
    ("mkdir", &["ENOSPC", "EIO"]),
    ("flock", &["EIO", "EINTR"]),
    ("read", &["EIO", "EINTR"]),
    ("statx", &["EACCES", "EIO"]),
    ("getdents64", &["EIO"]),
    ("ftruncate", &["EIO", "ENOSPC"]),
    ("unlink", &["EIO"]),
    ("clone3", &["EAGAIN"]),
];

/// Returns the text of an error in messages.
fn said(errno: &str) -> &'static str {
    match errno {
        "EIO" => "Input/output error",
        "ENOSPC" => "No space left on device",
        "EMFILE" => "Too many open files",
        "EINTR" => "Interrupted system call",
        "EACCES" => "Permission denied",
        "ENOMEM" => "memory",
        "EAGAIN" => "Resource temporarily unavailable",
        other => panic!("{other}"),
    }
}

/// Runs the program with its n-th `call` failing. The flag is true if a call failed.
fn run(root: &Path, call: &str, errno: &str, n: usize) -> (Output, bool) {
    let record = root.with_extension("record");
    let mut strace = Command::new("strace");
    cut_off(&mut strace, root);
    strace
        .args(["-f", "-qq", "-o"])
        .arg(&record)
        .args([
            "-e",
            &format!("trace={call}"),
            "-e",
            &format!("inject={call}:error={errno}:when={n}"),
        ])
        .arg(env!("CARGO_BIN_EXE_codescout"))
        .arg("index")
        // The n-th call of each thread fails, so fewer threads make it clearer which call failed.
        .env("RAYON_NUM_THREADS", "1");
    let output = strace.output_in_time().unwrap();
    let happened = fs::read_to_string(&record).unwrap_or_default().contains("(INJECTED)");
    (output, happened)
}

/// Fails each call in turn until the run makes fewer calls. Returns the number of failures.
fn fail_each(template: &Path, copy: &Path, call: &str, errno: &str, revisions: &[String], expected: &Told) -> usize {
    let (mut n, mut n_failed) = (1, 0);
    loop {
        copy_of(template, copy);
        let (output, happened) = run(copy, call, errno, n);
        let (about, text) = (format!("{errno} from {call} {n}"), stderr(&output));
        if !happened {
            assert!(output.status.success(), "{about}: {text}");
            return n_failed;
        }
        n_failed += 1;
        // The standard library aborts a thread that cannot allocate a signal stack.
        let is_of_std = text.contains("failed to allocate an alternative stack");
        assert!(!text.contains("panicked") || is_of_std, "{about}: {text}");
        match (output.status.code(), output.status.signal()) {
            (Some(0), _) => {
                let again = succeed(copy, &["--json", "index"]);
                let answer: serde_json::Value = serde_json::from_slice(&again.stdout).unwrap();
                let is_done = answer["revisions"][0]["looked_at_files"] == 0;
                assert!(
                    is_done || text.contains("cannot read"),
                    "{about}: it said that it was done: {text}"
                );
            }
            // The git library treats files that it cannot read as missing.
            (Some(2), _)
                if [
                    "is not inside a git repository",
                    "is not in this",
                    "is owned by another user",
                ]
                .iter()
                .any(|known| text.contains(known)) => {}
            (Some(2), _) if text.contains("cannot start a thread") => {}
            (Some(2), _) => assert!(
                text.contains(said(errno))
                    && (call == "clone3" || text.contains('/') || text.contains("standard output")),
                "{about}: {text}"
            ),
            // Before `main`, the dynamic loader prints the error.
            (Some(127), _) => assert!(text.contains("error while loading"), "{about}: {text}"),
            // The process aborts if memory cannot be allocated.
            (_, Some(6)) => assert!(text.contains("memory allocation") || is_of_std, "{about}: {text}"),
            // The dynamic loader fails without a message.
            other => assert!(
                matches!(call, "mmap" | "openat" | "read") && n < 40,
                "{about}: {other:?}: {text}"
            ),
        }
        check_sound(copy, revisions, expected, &about);
        n += if is_long() { 1 } else { 1 + n };
    }
}

#[test]
#[expect(clippy::print_stderr, reason = "its figures stand in docs/evaluation.md")]
fn whatever_call_fails_it_says_so_and_spoils_nothing() {
    let works = Command::new("strace")
        .args(["-qq", "-e", "inject=getpid:error=EIO", "true"])
        .output_in_time();
    if !works.is_ok_and(|output| output.status.success()) {
        skip("no strace that can make calls fail");
        return;
    }
    let (repo, commits) = history(3);
    let revisions = vec![commits[2].clone()];
    let expected = told_by(repo.root(), Some(repo.beside("sidecar")), &revisions);
    let is_long = is_long();
    let cases: Vec<(&str, &str)> = CALLS
        .iter()
        .flat_map(|(call, errors)| {
            let n = if is_long { errors.len() } else { 1 };
            errors[..n].iter().map(|errno| (*call, *errno))
        })
        .collect();
    let (root, base) = (repo.root(), repo.beside("s"));
    fs::create_dir(&base).unwrap();
    super::for_all(&cases, |_, (call, errno)| {
        let copy = base.join(format!("{}-{errno}", call.trim_start_matches("/^")));
        let n_failed = fail_each(root, &copy, call, errno, &revisions, &expected);
        eprintln!("{errno} from {call}: {n_failed} failures, nothing lost");
        fs::remove_dir_all(copy).unwrap();
    });
}
