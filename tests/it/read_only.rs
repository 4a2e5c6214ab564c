//! Tests a repository, a sidecar and a home directory that cannot be written. Commands that only read work, with a note
//! about missing data. Commands that write fail and name the cause.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cli::project;
use crate::indexed::skip;
use crate::support::{InTime, TestRepo};

/// A user without permissions: `nobody` on most systems. The user need not exist.
const NOBODY: u32 = 65534;

const READS: [&[&str]; 9] = [
    &["search", "parse"],
    &["search", "parse", "--ref", "HEAD", "--json"],
    &["grep", "TODO"],
    &["symbol", "parse"],
    &["outline"],
    &["read", "README.md"],
    &["status"],
    &["config"],
    &["verify"],
];
const WRITES: [&[&str]; 2] = [&["index", "v1"], &["config", "set", "search.limit", "3"]];

/// A repository with a home directory, owned by a user to whom permissions apply, and the command to run the program as
/// that user.
struct Closed {
    repo: TestRepo,
    home: PathBuf,
    is_root: bool,
}

struct Said {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

impl Closed {
    /// Creates the repository. Returns `None` if no user without permissions is available.
    fn new() -> Option<Self> {
        let repo = project();
        repo.write("src/new.rs", "pub fn brand_new() {}\n");
        repo.commit("new");
        repo.branch("later");
        repo.git(["reset", "--quiet", "--hard", "HEAD~1"]);
        let home = repo.beside("home");
        fs::create_dir(&home).unwrap();
        let is_root = fs::metadata(&home).unwrap().uid() == 0;
        if is_root {
            // The user without permissions must be able to access the program's folder.
            let tried = as_nobody(env!("CARGO_BIN_EXE_codescout"))
                .arg("--version")
                .output_in_time();
            if !tried.is_ok_and(|output| output.status.success()) {
                skip("the program cannot be called as another user here");
                return None;
            }
            fs::set_permissions(repo.beside("."), fs::Permissions::from_mode(0o755)).unwrap();
        }
        let closed = Self { repo, home, is_root };
        closed.give_away();
        Some(closed)
    }

    fn give_away(&self) {
        if self.is_root {
            every_path(&self.repo.beside("."), &mut |path| chown_all(path));
        }
    }

    fn close(&self, path: &Path) {
        set_writable(path, false);
    }

    fn open(&self, path: &Path) {
        set_writable(path, true);
    }

    fn call(&self, args: &[&str]) -> Said {
        let mut command = if self.is_root {
            as_nobody(env!("CARGO_BIN_EXE_codescout"))
        } else {
            Command::new(env!("CARGO_BIN_EXE_codescout"))
        };
        let output = command
            .args(args)
            .current_dir(self.repo.root())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", &self.home)
            .output_in_time()
            .unwrap();
        Said {
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    fn assert_reads(&self, when: &str) {
        for args in READS {
            let said = self.call(args);
            assert_eq!(said.code, Some(0), "{when}: {args:?}: {}", said.stderr);
            assert!(!said.stdout.is_empty(), "{when}: {args:?}");
        }
    }

    fn assert_no_writes(&self, when: &str) {
        for args in WRITES {
            let said = self.call(args);
            assert_eq!(said.code, Some(2), "{when}: {args:?}: {}", said.stdout);
            assert!(said.stderr.contains(".codescout"), "{when}: {args:?}: {}", said.stderr);
            assert!(
                said.stderr.contains("ermission denied"),
                "{when}: {args:?}: {}",
                said.stderr
            );
        }
    }
}

impl Drop for Closed {
    fn drop(&mut self) {
        // Otherwise the folder could not be removed.
        self.open(&self.repo.beside("."));
    }
}

fn as_nobody(program: &str) -> Command {
    let mut command = Command::new("setpriv");
    command
        .args([format!("--reuid={NOBODY}"), format!("--regid={NOBODY}")])
        .args(["--clear-groups", "--", program]);
    command
}

fn chown_all(path: &Path) {
    chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
}

/// Calls `act` with `path` and everything below it, the innermost paths first.
fn every_path(path: &Path, act: &mut dyn FnMut(&Path)) {
    if path.is_symlink() {
        return;
    }
    if path.is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            every_path(&entry.unwrap().path(), act);
        }
    }
    act(path);
}

fn set_writable(path: &Path, is_writable: bool) {
    let set = |path: &Path| {
        let mode = fs::metadata(path).unwrap().permissions().mode();
        let mode = if is_writable { mode | 0o200 } else { mode & !0o222 };
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    // A folder must become writable before its content, and read-only after it.
    if is_writable {
        set(path);
    }
    every_path(path, &mut |path| set(path));
}

#[test]
fn a_closed_sidecar_answers_and_takes_nothing() {
    let Some(closed) = Closed::new() else { return };
    assert_eq!(closed.call(&["index"]).code, Some(0));
    let sidecar = closed.repo.path(".codescout");
    closed.close(&sidecar);
    closed.assert_reads("sidecar closed");
    let said = closed.call(&["search", "parse", "--ref", "HEAD", "--json"]);
    assert!(!said.stdout.contains("computed in memory"), "{}", said.stdout);
    closed.assert_no_writes("sidecar closed");

    // A commit that is not indexed, and cannot be.
    let said = closed.call(&["search", "brand_new", "--ref", "later", "--json"]);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    assert!(
        said.stdout.contains("src/new.rs") && said.stdout.contains("computed in memory"),
        "{}",
        said.stdout
    );

    // Damage that cannot be repaired does not prevent an answer.
    let dense = fs::read_dir(sidecar.join("dense-v1"))
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    closed.open(&dense);
    fs::write(&dense, "cut").unwrap();
    closed.close(&dense);
    let said = closed.call(&["search", "parse", "--ref", "HEAD", "--json"]);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    assert!(said.stdout.contains("computed in memory"), "{}", said.stdout);
    let name = dense.file_name().unwrap().to_str().unwrap();
    assert_eq!(said.stderr.matches(name).count(), 1, "{}", said.stderr);
    assert_eq!(closed.call(&["verify"]).code, Some(1));
    let said = closed.call(&["verify", "--repair"]);
    assert_eq!(said.code, Some(2), "{}", said.stdout);
}

#[test]
fn a_sidecar_that_cannot_be_read_is_none() {
    let Some(closed) = Closed::new() else { return };
    closed.repo.write(".codescout/config.toml", "[search]\nlimit = 3\n");
    closed.give_away();
    assert_eq!(closed.call(&["index", "--history"]).code, Some(0));
    let more: [&[&str]; 9] = [
        &["graph", "callers", "parse"],
        &["graph", "unused"],
        &["history", "parse"],
        &["history", "README.md"],
        &["blame", "README.md"],
        &["diff", "HEAD"],
        &["search", "--in", "commits", "new"],
        &["search", "--all-history", "parse"],
        &["docs", "audit"],
    ];
    let set = |name: &str, mode: u32| {
        let path = closed.repo.path(format!(".codescout/{name}"));
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    let names = ["", "FORMAT", "state", "history-v1", "config.toml"];
    for (name, closed_mode) in names.into_iter().map(|name| (name, 0)).chain([("", 0o311)]) {
        let mode = fs::metadata(closed.repo.path(format!(".codescout/{name}")))
            .unwrap()
            .permissions()
            .mode();
        set(name, closed_mode);
        for args in READS.iter().filter(|args| args[0] != "verify").chain(&more) {
            let said = closed.call(args);
            let about = format!("{name:?} {closed_mode:o} {args:?}: {}", said.stderr);
            assert!(matches!(said.code, Some(0 | 1)), "{about}");
            assert!(!said.stderr.contains("codescout: cannot"), "{about}");
            if name.is_empty() && closed_mode == 0 {
                let n = said.stderr.matches("is not used: permission denied").count();
                // Some commands do not ask for the sidecar.
                assert!(
                    n <= 1 && (n == 1 || !matches!(args[0], "search" | "status" | "symbol")),
                    "{about}"
                );
            }
        }
        // Nobody can say that there are no notes.
        if name.is_empty() && closed_mode == 0 {
            assert_eq!(closed.call(&["memory", "list"]).code, Some(2));
        }
        set(name, mode);
    }
}

#[test]
fn a_closed_repository_and_home_are_read() {
    let Some(closed) = Closed::new() else { return };
    closed.close(&closed.home);
    closed.close(closed.repo.root());
    closed.assert_reads("nothing indexed, all closed");
    closed.assert_no_writes("nothing indexed, all closed");
    assert!(!closed.repo.path(".codescout").exists());
    closed.open(closed.repo.root());
    assert_eq!(closed.call(&["index"]).code, Some(0));
    closed.close(closed.repo.root());
    closed.assert_reads("indexed, all closed");
    closed.assert_no_writes("indexed, all closed");
}

#[test]
fn the_owner_goes_on_with_what_root_indexed() {
    let Some(closed) = Closed::new() else { return };
    if !closed.is_root {
        skip("only root can index for somebody else");
        return;
    }
    fs::write(closed.home.join(".gitconfig"), "[safe]\n\tdirectory = *\n").unwrap();
    closed.repo.write(".git/info/exclude", "# mine\n");
    closed.give_away();
    let exclude = closed.repo.path(".git/info/exclude");
    let mode = || fs::metadata(&exclude).unwrap().mode() & 0o777;
    let mode_before = mode();
    let indexed = Command::new("sh")
        .args(["-c", "umask 022; exec \"$0\" index", env!("CARGO_BIN_EXE_codescout")])
        .current_dir(closed.repo.root())
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", &closed.home)
        .output_in_time()
        .unwrap();
    assert!(indexed.status.success(), "{}", String::from_utf8_lossy(&indexed.stderr));
    assert!(fs::read_to_string(&exclude).unwrap().contains("/.codescout/"));
    assert_eq!((mode(), fs::metadata(&exclude).unwrap().uid()), (mode_before, NOBODY));

    let status = as_nobody("git")
        .args(["status", "--porcelain"])
        .current_dir(closed.repo.root())
        .env("HOME", &closed.home)
        .output_in_time()
        .unwrap();
    let said = String::from_utf8_lossy(&[status.stdout, status.stderr].concat()).into_owned();
    assert!(status.status.success() && said.is_empty(), "{said}");
    let said = closed.call(&["search", "parse", "--ref", "HEAD", "--json"]);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    assert!(!said.stdout.contains("computed in memory"), "{}", said.stdout);
}
