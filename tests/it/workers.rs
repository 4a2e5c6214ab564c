//! Tests the processes that parse files: the real program, with files that no parser should read.

use std::fs;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use codescout::artifact::{Extractor, use_workers};
use codescout::extract::{Options, Unparsed, by_name};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::cli::call_in;
use crate::support::{InTime, TestRepo, assert_within, wait_for_end, wait_until};

/// A text that the scanner of Ruby cannot hold, and texts that are too large, too deep, too repetitive or not UTF-8 for
/// the process itself.
fn repository() -> TestRepo {
    let repo = TestRepo::empty();
    repo.write("bad.rb", format!("x = <<{}\n", "A".repeat(300)));
    let functions: String = (0..2_000).map(|i| format!("def f{i}():\n    return {i}\n")).collect();
    repo.write("large.py", functions);
    repo.write(
        "deep.rs",
        format!("fn deep() {{ {}{} }}\n", "(".repeat(40), ")".repeat(40)),
    );
    repo.write("same.go", format!("package p\n{}", "func a() {}\n".repeat(200)));
    repo.write("latin.c", b"/* caf\xe9 */ int latin(void) { return 1; }\n");
    repo.write("plain.c", "int plain(void) { return 1; }\n");
    repo.commit("files");
    repo
}

fn call(repo: &TestRepo, args: &[&str]) -> serde_json::Value {
    call_in(repo.root(), args, b"").expect(0).json()
}

#[test]
fn files_are_parsed_or_counted_with_a_reason() {
    let repo = repository();
    let status = call(&repo, &["status", "--json"]);
    assert_eq!(status["coverage"].get("unparsed"), None);
    call_in(repo.root(), &["index"], b"").expect(0);
    let status = call(&repo, &["status", "--json"]);
    assert_eq!(
        status["coverage"]["unparsed"],
        json!({"too much work for its length": 1})
    );
    for name in ["f1999", "deep", "a", "latin", "plain"] {
        call_in(repo.root(), &["symbol", name], b"").expect(0);
    }
    let outline = call_in(repo.root(), &["outline", "bad.rb"], b"");
    assert!(
        (outline.text() + &outline.stderr).contains("not parsed"),
        "{}",
        outline.text()
    );
}

#[test]
fn a_worker_ends_with_its_connection() {
    let (mut ours, theirs) = UnixStream::pair().unwrap();
    let mut worker = Command::new(env!("CARGO_BIN_EXE_codescout"))
        .arg("worker")
        .env_clear()
        .stdin(OwnedFd::from(theirs))
        .spawn()
        .unwrap();
    ours.read_exact(&mut [0]).unwrap();
    drop(ours);
    assert!(wait_for_end(&mut worker).success());
}

#[test]
#[cfg(target_os = "linux")]
fn a_parser_takes_memory_in_proportion_to_a_text() {
    const MAX_KB: u64 = 600_000;
    let repo = TestRepo::empty();
    let endings = ["java", "cs", "cpp", "kt"];
    for ending in endings {
        let line = format!("{}\n", "A<".repeat(200));
        repo.write(format!("a.{ending}"), format!("{}needle\n", line.repeat(100)));
    }
    repo.commit("generics");
    let mut child = Command::new(env!("CARGO_BIN_EXE_codescout"))
        .arg("index")
        .current_dir(repo.root())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut most = 0;
    wait_until("the index is built", || {
        most = worker_of(&child).and_then(peak_kb).unwrap_or(0).max(most);
        child.try_wait().unwrap().is_some()
    });
    assert!(most < MAX_KB, "{most} KB");
    let found = call(&repo, &["search", "needle", "--mode", "keyword", "--json"]);
    assert_eq!(found["results"].as_array().unwrap().len(), endings.len(), "{found}");
}

/// Returns the most memory that a process has used.
fn peak_kb(process: Pid) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().trim_end_matches(" kB").parse().ok()
}

#[test]
#[cfg(target_os = "linux")]
fn a_signal_ends_a_run_whose_parsers_hang() {
    let repo = repository();
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129)] {
        for args in [&["index"][..], &["index", "--history"], &["outline", "large.py"]] {
            let _ = fs::remove_dir_all(repo.path(".codescout"));
            let mut child = Command::new(env!("CARGO_BIN_EXE_codescout"))
                .args(args)
                .current_dir(repo.root())
                .env("HOME", repo.root())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            let mut worker = None;
            wait_until("a worker runs", || {
                worker = worker_of(&child);
                worker.is_some()
            });
            let worker = worker.unwrap();
            kill_process(worker, Signal::STOP).unwrap();
            kill_process(Pid::from_child(&child), signal).unwrap();
            let signalled = Instant::now();
            assert_eq!(wait_for_end(&mut child).code(), Some(code), "{signal:?} {args:?}");
            assert_within(Duration::from_secs(2), signalled, "the end after a signal");
            wait_until("the worker ends", || !is_running(worker));
        }
    }
    call_in(repo.root(), &["index"], b"").expect(0);
    call_in(repo.root(), &["symbol", "f1999"], b"").expect(0);
    call_in(repo.root(), &["verify", "--deep"], b"").expect(0);
}

/// Returns a worker that this process has started.
fn worker_of(child: &Child) -> Option<Pid> {
    let parent = format!("PPid:\t{}\n", child.id());
    let is_worker = |process: &Path| {
        fs::read(process.join("cmdline")).is_ok_and(|line| line.ends_with(b"\0worker\0"))
            && fs::read_to_string(process.join("status")).is_ok_and(|status| status.contains(&parent))
    };
    let mut processes = fs::read_dir("/proc").unwrap().flatten().map(|process| process.path());
    let process = processes.find(|process| is_worker(process))?;
    Pid::from_raw(process.file_name()?.to_str()?.parse().ok()?)
}

fn is_running(process: Pid) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", process.as_raw_nonzero()));
    // A process that has ended stays until its new parent has read its status.
    stat.is_ok_and(|stat| !stat.contains(") Z "))
}

#[test]
fn a_worker_without_a_connection_ends() {
    for stdin in [Stdio::null(), Stdio::piped()] {
        let mut worker = Command::new(env!("CARGO_BIN_EXE_codescout"))
            .arg("worker")
            .stdin(stdin)
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        assert!(!wait_for_end(&mut worker).success());
    }
}

/// The variable that makes [`extracts_without_workers`] do its work, in a process of its own.
const CHILD: &str = "CODESCOUT_WITHOUT_WORKERS";

#[test]
fn without_processes_text_is_cut_by_lines_but_definitions_are_found() {
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "workers::extracts_without_workers", "--nocapture"])
        .env(CHILD, "1")
        .output_in_time()
        .unwrap();
    let printed = String::from_utf8_lossy(&child.stdout);
    assert!(
        child.status.success() && printed.contains("1 passed"),
        "{printed}{}",
        String::from_utf8_lossy(&child.stderr)
    );
}

#[test]
fn extracts_without_workers() {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    use_workers("/nowhere/program".into());
    let text: String = (0..2_000).map(|i| format!("def f{i}():\n    return {i}\n")).collect();
    let python = by_name("python").unwrap();
    let mut extractor = Extractor::new(Options::default());
    let extraction = extractor.extract(text.as_bytes(), python);
    assert_eq!(extraction.unparsed, Some(Unparsed::NoProcess));
    let found = extractor.definitions(text.as_bytes(), python);
    assert_eq!(found.definitions.len(), 2_000);
}

#[test]
#[cfg(target_os = "linux")]
fn a_deleted_program_goes_on_and_leaves_no_worker() {
    let repo = repository();
    let program = repo.beside("program");
    fs::copy(env!("CARGO_BIN_EXE_codescout"), &program).unwrap();
    // The shell keeps the file open, so that it can be run once it has no name.
    let script = "exec 3<\"$0\" && rm \"$0\" && exec /proc/self/fd/3 index";
    let indexed = Command::new("sh")
        .args(["-c", script])
        .arg(&program)
        .current_dir(repo.root())
        .env("HOME", repo.root())
        .output_in_time()
        .unwrap();
    assert!(indexed.status.success(), "{}", String::from_utf8_lossy(&indexed.stderr));
    call_in(repo.root(), &["symbol", "f1999"], b"").expect(0);
    let runs_it = |process: &fs::DirEntry| {
        let exe = fs::read_link(process.path().join("exe")).unwrap_or_default();
        exe.to_string_lossy().starts_with(&*program.to_string_lossy())
    };
    wait_until("its workers have ended", || {
        !fs::read_dir("/proc")
            .unwrap()
            .flatten()
            .any(|process| runs_it(&process))
    });
}
