//! The queue of requests for the worker, one per worktree, and the lock that ensures that only one worker runs.
//!
//! Requests are stored in the git directory and not in the sidecar. If git could write a commit, that directory is
//! writable, and `git clean -fdx` does not delete it.

use std::ffi::{OsStr, OsString};
use std::fs::{self, DirEntry, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

use super::event::HookEvent;
use crate::git::{Repository, read_small_file};
use crate::sidecar::{FileLock, failpoint, remove_stale_temporaries};

/// File name of the main worktree's request. No linked worktree can have this name, because git names those after their
/// folders.
const MAIN: &str = "main work tree";
const REQUEST: &str = "request ";
/// Prefix of a request that is being written, followed by the id of the writing process.
const HALF: &str = "writing ";
/// Prefix of the response to a trial.
pub(super) const ANSWER: &str = "trial ";
/// Limit on the size of a request. The path of a git directory is shorter.
const MAX_REQUEST_BYTES: u64 = 64 << 10;
/// Age after which temporary files can be removed, because no process will rename or read them.
const LEFT_OVER: Duration = Duration::from_secs(24 * 60 * 60);

/// The folder `codescout-hooks` in the common git directory.
#[derive(Clone, Debug)]
pub(super) struct Queue {
    root: PathBuf,
}

/// A request from a hook in a worktree. A newer request replaces an older one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Request {
    path: PathBuf,
    /// Modification time of the request, from the clock of the file system.
    pub(super) made: SystemTime,
    pub(super) event: HookEvent,
    /// The git directory of the worktree.
    pub(super) git_dir: PathBuf,
}

/// A lock that the worker holds.
#[derive(Debug)]
pub(super) struct WorkerLock {
    _lock: FileLock,
}

impl Queue {
    pub(super) fn of(repository: &Repository) -> Self {
        Self {
            root: repository.common_dir().join("codescout-hooks"),
        }
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the path of another file in the folder: the fallback log, or the tips of a bare repository.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// Creates the folder. Fails if there is a link, because a git directory from an archive could lead anywhere.
    pub(super) fn make(&self) -> io::Result<()> {
        fs::create_dir_all(&self.root)?;
        if fs::symlink_metadata(&self.root)?.is_dir() {
            Ok(())
        } else {
            Err(io::ErrorKind::NotADirectory.into())
        }
    }

    /// Writes a request for the worktree of `repository`.
    pub(super) fn leave(&self, repository: &Repository, event: HookEvent) -> io::Result<()> {
        let name = if repository.git_dir() == repository.common_dir() {
            OsStr::new(MAIN)
        } else {
            repository.git_dir().file_name().unwrap_or(OsStr::new(MAIN))
        };
        let mut content = format!("{}\n", event.name()).into_bytes();
        content.extend_from_slice(repository.git_dir().as_os_str().as_bytes());
        self.make()?;
        let mut to = OsString::from(REQUEST);
        to.push(name);
        let half = self.root.join(format!("{HALF}{}", std::process::id()));
        leave_whole(&half, &self.root.join(to), &content).inspect_err(|_| {
            let _ = fs::remove_file(&half);
        })
    }

    /// Removes unfinished files of killed hooks and workers, and responses that came too late.
    pub(super) fn clear(&self, _lock: &WorkerLock) -> io::Result<()> {
        for entry in fs::read_dir(&self.root)? {
            let entry = entry?;
            let is_left_over = |name: &str| is_abandoned(name) || is_passing(name) && is_old(&entry);
            if entry.file_name().to_str().is_some_and(is_left_over) {
                fs::remove_file(entry.path())?;
            }
        }
        remove_stale_temporaries(&self.root)
    }

    /// Returns the waiting requests. Ignores unreadable ones.
    pub(super) fn requests(&self) -> Vec<Request> {
        let entries = fs::read_dir(&self.root).into_iter().flatten().flatten();
        let names = entries.filter(|entry| entry.file_name().as_bytes().starts_with(REQUEST.as_bytes()));
        names.filter_map(|entry| read_request(entry.path())).collect()
    }

    /// Removes a request before it is processed, so that a request that arrives meanwhile is not lost.
    pub(super) fn take(&self, request: &Request) -> io::Result<()> {
        failpoint::hit("hooks.request_found")?;
        fs::remove_file(&request.path)?;
        failpoint::hit("hooks.request_taken")
    }

    /// Acquires the worker's lock. Returns `None` if another worker holds it.
    pub(super) fn try_lock(&self) -> io::Result<Option<WorkerLock>> {
        self.make()?;
        let path = self.root.join("lock");
        let no_link = OFlags::NOFOLLOW.bits() as i32;
        let mut options = OpenOptions::new();
        let options = options.create(true).truncate(false).write(true).custom_flags(no_link);
        let file = options.open(path)?;
        Ok(FileLock::take(file)?.ok().map(|lock| WorkerLock { _lock: lock }))
    }
}

/// Writes a file atomically. It is not flushed to disk, because a lost request does no harm.
fn leave_whole(half: &Path, to: &Path, content: &[u8]) -> io::Result<()> {
    let (first, second) = content.split_at(if cfg!(debug_assertions) { content.len() / 2 } else { 0 });
    // The file is new, so that no link is followed.
    let _ = fs::remove_file(half);
    let mut file = File::create_new(half)?;
    file.write_all(first)?;
    failpoint::hit("hooks.request_half")?;
    file.write_all(second)?;
    failpoint::hit("hooks.request_written")?;
    fs::rename(half, to)?;
    failpoint::hit("hooks.request_left")
}

/// Returns true if the name is that of an unfinished request whose process no longer exists.
fn is_abandoned(name: &str) -> bool {
    let process = name.strip_prefix(HALF).and_then(|process| process.parse().ok());
    let process = process.and_then(Pid::from_raw);
    process.is_some_and(|process| test_kill_process(process) == Err(Errno::SRCH))
}

/// Returns true if the name is that of a file that is about to be renamed or read.
fn is_passing(name: &str) -> bool {
    name.starts_with(HALF) || name.starts_with(ANSWER)
}

/// Returns true if a file was written long ago. Modification times in the future do not count.
fn is_old(entry: &DirEntry) -> bool {
    let written = entry.metadata().and_then(|metadata| metadata.modified());
    written.is_ok_and(|written| written.elapsed().is_ok_and(|age| age > LEFT_OVER))
}

fn read_request(path: PathBuf) -> Option<Request> {
    let found = fs::symlink_metadata(&path).ok()?;
    if !found.is_file() || found.len() > MAX_REQUEST_BYTES {
        return None;
    }
    let made = found.modified().ok()?;
    let content = read_small_file(&path).ok()??;
    let line_end = content.iter().position(|byte| *byte == b'\n')?;
    let event = HookEvent::named(std::str::from_utf8(&content[..line_end]).ok()?)?;
    Some(Request {
        made,
        event,
        git_dir: PathBuf::from(OsString::from_vec(content[line_end + 1..].to_vec())),
        path,
    })
}
