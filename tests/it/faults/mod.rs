//! What the world does to a writer: it is killed, stopped, refused, run out of room, and raced. After each: the next command works
//! without flags, the answers are those of before or after, and nothing half-written stays.
//!
//! Short forms run by default. `CODESCOUT_LONG_TESTS` set to clones (separated by `:`) runs the long ones over these;
//! `docs/evaluation.md` has the figures.

mod canary;
mod concurrent;
mod failpoints;
mod kills;
mod limits;
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
use crate::support::TestRepo;

/// Clones to run the long forms over.
fn long_form() -> Option<Vec<PathBuf>> {
    let value = std::env::var_os("CODESCOUT_LONG_TESTS")?;
    let clones: Vec<PathBuf> = std::env::split_paths(&value).filter(|path| path.is_dir()).collect();
    (!clones.is_empty()).then_some(clones)
}

/// A call of the program in a folder, cut off from the machine's settings.
fn program<S: AsRef<OsStr>>(folder: &Path, args: &[S]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_codescout"));
    command.args(args);
    cut_off(&mut command, folder);
    command
}

/// Sets up a command like those of [`program`].
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

/// What a call printed. Fails the test if it failed.
#[track_caller]
fn succeed<S: AsRef<OsStr>>(folder: &Path, args: &[S]) -> Output {
    let output = program(folder, args).output().unwrap();
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

/// A copy of a folder with everything below it, times included.
fn copy_of(from: &Path, to: &Path) {
    let _ = fs::remove_dir_all(to);
    let copied = Command::new("cp").arg("-a").args([from, to]).status().unwrap();
    assert!(copied.success());
}

const QUERIES: [&str; 2] = ["parse header", "how is a broken packet handled"];

/// What revisions answer, bit by bit.
type Told = Vec<(Contents, Vec<Answer>)>;

/// Asks in a sidecar.
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

/// Files being written that somebody left.
fn temporaries(root: &Path) -> Vec<PathBuf> {
    let folders = [".codescout", ".git/info", ".git/codescout-hooks"].map(|folder| root.join(folder));
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

/// Everything that must hold after whatever happened to a writer: `status` is sane, the next question works without flags, the
/// answers are right, nothing half-written stays, git sees nothing of it.
#[track_caller]
fn check_sound(root: &Path, revisions: &[String], expected: &Told, after: &str) {
    let status = program(root, &["status", "--json"]).output().unwrap();
    assert!(status.status.success(), "{after}: status: {}", stderr(&status));
    let status: serde_json::Value = serde_json::from_slice(&status.stdout).unwrap();
    assert!(status.is_object(), "{after}");
    for revision in revisions {
        let asked = program(root, &["--ref", revision, "search", "parse header"])
            .output()
            .unwrap();
        assert!(asked.status.success(), "{after}: search: {}", stderr(&asked));
    }
    let told = told_by(root, None, revisions);
    assert!(told == *expected, "{after}: the answers are wrong");
    // A writer that had nothing to write clears away as well.
    succeed(root, &["index"]);
    assert_eq!(temporaries(root), Vec::<PathBuf>::new(), "{after}");
    let exclude = fs::read_to_string(root.join(".git/info/exclude")).unwrap();
    assert_eq!(exclude.matches("/.codescout/").count(), 1, "{after}: {exclude}");
}

/// A repository with a few commits, each of which brings a new blob.
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
