//! Checks every system call of a run that could change something, and reports those outside the allowed folder.

use std::fs;
use std::path::{Component, Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use crate::cli::{Called, call_in};
use crate::indexed::skip;
use crate::support::{InTime, output_of};

/// System calls that create, change, move or remove files by name, or start programs.
const CALLS: &str = "trace=open,openat,openat2,creat,rename,renameat,renameat2,unlink,unlinkat,rmdir,mkdir,mkdirat,link,linkat,\
    symlink,symlinkat,mknod,mknodat,truncate,chmod,fchmodat,?fchmodat2,chown,lchown,fchownat,utimensat,setxattr,mount,execve,execveat";

fn has_strace() -> bool {
    static HAS: OnceLock<bool> = OnceLock::new();
    *HAS.get_or_init(|| {
        let tried = Command::new("strace")
            .args(["-qq", "-o", "/dev/null", "true"])
            .output_in_time();
        let works = tried.is_ok_and(|output| output.status.success());
        if !works {
            skip("no strace: only the tree of canaries shows what is touched");
        }
        works
    })
}

/// Runs the program like [`call_in`]. Also returns its system calls that changed something outside `inside`, if they
/// can be traced.
pub(super) fn audited(folder: &Path, args: &[&str], input: &[u8], inside: &Path) -> (Called, Vec<String>) {
    if !has_strace() {
        return (call_in(folder, args, input), Vec::new());
    }
    let record = tempfile::NamedTempFile::new().unwrap();
    let traced = Command::new("strace")
        .args(["-f", "-qq", "-y", "-s", "4096", "-e", "signal=none", "-e", CALLS, "-o"])
        .arg(record.path())
        .arg(env!("CARGO_BIN_EXE_codescout"))
        .args(args)
        .current_dir(folder)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let output = output_of(traced, input);
    let record = String::from_utf8_lossy(&fs::read(record.path()).unwrap()).into_owned();
    assert!(record.contains("execve"), "nothing was recorded: {record}");
    let called = Called {
        code: output.status.code().unwrap(),
        stdout: output.stdout,
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    };
    (called, outside(&record, inside))
}

/// Returns the lines of a record that change something outside a folder.
fn outside(record: &str, inside: &Path) -> Vec<String> {
    let reaches_out = |line: &&str| changes(line) && paths(line).iter().any(|path| !is_allowed(path, inside));
    record.lines().filter(reaches_out).map(str::to_owned).collect()
}

fn name_of(line: &str) -> &str {
    let call = line.trim_start_matches(|c: char| c.is_ascii_digit() || c == ' ');
    call.split('(').next().unwrap_or_default()
}

fn changes(line: &str) -> bool {
    let opens = name_of(line).starts_with("open");
    !line.contains("resumed>")
        && (!opens
            || ["O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC"]
                .iter()
                .any(|flag| line.contains(flag)))
}

/// Returns the paths that a call names. Relative paths start at the folder of the preceding argument.
fn paths(line: &str) -> Vec<PathBuf> {
    if name_of(line).starts_with("exec") {
        return line.split('"').nth(1).map(PathBuf::from).into_iter().collect();
    }
    let mut found = Vec::new();
    let mut parts = line.split('"');
    let mut before = parts.next().unwrap_or_default();
    while let (Some(text), Some(after)) = (parts.next(), parts.next()) {
        let folder = before
            .rsplit_once('<')
            .and_then(|(_, rest)| rest.split_once('>'))
            .map_or("", |(path, _)| path);
        found.push(plain(&Path::new(folder).join(text)));
        before = after;
    }
    found
}

/// Resolves `..` in a path.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            other => plain.push(other),
        }
    }
    plain
}

fn is_allowed(path: &Path, inside: &Path) -> bool {
    let is_program =
        path.ends_with("codescout") && path.starts_with(Path::new(env!("CARGO_BIN_EXE_codescout")).parent().unwrap());
    path.starts_with(inside)
        || is_program
        || ["/dev/null", "/dev/tty", "/proc/self"]
            .iter()
            .any(|known| path.starts_with(known))
}

#[test]
fn what_reaches_out_is_seen() {
    let record = "12 openat(AT_FDCWD</r>, \"/r/.codescout/lock\", O_RDWR|O_CREAT, 0666) = 3\n\
        12 openat(AT_FDCWD</r>, \"/etc/passwd\", O_RDONLY) = 3\n\
        13 renameat(4</r/.codescout>, \"a\", 4</r/.codescout>, \"b\") = 0\n\
        13 unlinkat(4</r/.codescout>, \"../x\", 0) = -1 ENOENT\n\
        13 openat(4</r/.codescout>, \"/r/.codescout/../y\", O_WRONLY) = 5\n\
        13 renameat2(4</r/.codescout>, \"a\", 5</r>, \"b\", 0) = 0\n\
        13 execve(\"/bin/sh\", [\"sh\"], 0x7 /* 2 vars */) = 0\n";
    let seen = outside(record, Path::new("/r/.codescout"));
    assert_eq!(seen.len(), 4, "{seen:#?}");
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join(".codescout")).unwrap();
    let (_, seen) = audited(folder.path(), &["export", "no/.codescout/x"], b"", folder.path());
    assert!(seen.is_empty(), "{seen:#?}");
}
