//! Tests faults of writers: they are killed, stopped, get errors, run out of disk space, or run concurrently. After
//! each fault the next command works without flags, the answers are those before or after the write, and no
//! half-written file remains.
//!
//! Short versions of the tests run by default. If `CODESCOUT_LONG_TESTS` lists clones (separated by `:`), the long
//! versions run on these. `docs/evaluation.md` has the results.

mod canary;
mod concurrent;
mod failpoints;
mod kills;
mod limits;
mod messages;
mod power;
mod scenarios;
mod signals;
mod syscalls;

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::indexed::{Answer, Contents, Indexed, files_below};
use crate::support::{InTime, TestRepo};

/// Returns the clones for the long versions of the tests.
fn long_form() -> Option<Vec<PathBuf>> {
    let value = std::env::var_os("CODESCOUT_LONG_TESTS")?;
    let clones: Vec<PathBuf> = std::env::split_paths(&value).filter(|path| path.is_dir()).collect();
    (!clones.is_empty()).then_some(clones)
}

/// Returns the command that runs the program in a folder, isolated from the machine's settings.
fn program<S: AsRef<OsStr>>(folder: &Path, args: &[S]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_codescout"));
    command.args(args);
    cut_off(&mut command, folder);
    command
}

/// Configures a command like [`program`].
fn cut_off(command: &mut Command, folder: &Path) {
    command
        .current_dir(folder)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", folder.parent().unwrap())
        .envs(crate::support::user_state())
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
}

/// Runs the program and returns its output. Fails the test if it fails.
#[track_caller]
fn succeed<S: AsRef<OsStr>>(folder: &Path, args: &[S]) -> Output {
    let output = program(folder, args).output_in_time().unwrap();
    let shown: Vec<&OsStr> = args.iter().map(AsRef::as_ref).collect();
    assert!(output.status.success(), "{shown:?}: {}", stderr(&output));
    output
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn start(mut command: Command) -> Child {
    command.spawn().unwrap()
}

/// Copies a folder with everything below it, including times.
fn copy_of(from: &Path, to: &Path) {
    let _ = fs::remove_dir_all(to);
    let copied = Command::new("cp").arg("-a").args([from, to]).status_in_time().unwrap();
    assert!(copied.success());
}

const QUERIES: [&str; 2] = ["parse header", "how is a broken packet handled"];

/// The answers of several revisions.
type Told = Vec<(Contents, Vec<Answer>)>;

/// Queries several revisions with the given sidecar.
fn told_by(root: &Path, sidecar: Option<PathBuf>, revisions: &[String]) -> Told {
    let index = match sidecar {
        Some(sidecar) => Indexed::at(root, sidecar),
        None => Indexed::new(root),
    };
    let tell = |revision: &String| {
        let view = index.view(revision);
        (index.contents(&view), index.answers(&view, &QUERIES))
    };
    revisions.iter().map(tell).collect()
}

/// Returns the temporary files below a folder.
fn temporaries(root: &Path) -> Vec<PathBuf> {
    let folders =
        [".codescout", ".git/info", ".git/codescout-hooks", ".git/codescout-edit"].map(|folder| root.join(folder));
    let found = folders
        .iter()
        .filter(|folder| folder.exists())
        .flat_map(|folder| files_below(folder).into_keys());
    found
        .filter(|path| {
            let name = path.file_name().unwrap().to_string_lossy();
            name.starts_with(".writing-") || name.starts_with("writing ")
        })
        .collect()
}

/// Checks everything that must hold after any fault of a writer: `status` works, the next query works without flags and
/// gives the right answers, no half-written file remains, and git does not list the sidecar.
#[track_caller]
fn check_sound(root: &Path, revisions: &[String], expected: &Told, after: &str) {
    let status = program(root, &["status", "--json"]).output_in_time().unwrap();
    assert!(status.status.success(), "{after}: status: {}", stderr(&status));
    let status: serde_json::Value = serde_json::from_slice(&status.stdout).unwrap();
    assert!(status.is_object(), "{after}");
    for revision in revisions {
        let asked = program(root, &["--ref", revision, "search", "parse header"])
            .output_in_time()
            .unwrap();
        assert!(asked.status.success(), "{after}: search: {}", stderr(&asked));
    }
    let answers = told_by(root, None, revisions);
    assert!(answers == *expected, "{after}: the answers are wrong");
    // A writer without anything to write also removes temporary files.
    succeed(root, &["index"]);
    assert_eq!(temporaries(root), Vec::<PathBuf>::new(), "{after}");
    let exclude = fs::read_to_string(root.join(".git/info/exclude")).unwrap();
    assert_eq!(exclude.matches("/.codescout/").count(), 1, "{after}: {exclude}");
}

/// Creates a repository with a few commits, each with a new blob.
fn history(n_commits: usize) -> (TestRepo, Vec<String>) {
    let repo = TestRepo::new(
        "
        //- src/packet.rs
        /// Reads the header; a broken packet is dropped.
        pub fn parse_header(bytes: &[u8]) -> Option<Header> {
            Header::read(bytes.get(..16)?)
        }
        //- README.md
        # Packets

        How they are handled.
        ",
    );
    let mut commits = vec![repo.rev_parse("HEAD")];
    for n in 1..n_commits {
        repo.write(
            format!("src/part{n}.py"),
            format!("def handle_packet_{n}(packet):\n    \"\"\"Handles a broken packet of kind {n}.\"\"\"\n    return packet.drop({n})\n"),
        );
        commits.push(repo.commit(&format!("part {n}")));
    }
    (repo, commits)
}

/// Runs `case` for each of the cases on a few threads.
fn for_all<T: Sync>(cases: &[T], case: impl Fn(usize, &T) + Sync) {
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while let Some((at, found)) = {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    cases.get(at).map(|found| (at, found))
                } {
                    case(at, found);
                }
            });
        }
    });
}
