//! Requests that wait for a worker, one for each work tree, and the lock that makes it one worker.
//!
//! They stand in the git directory and not in the sidecar: where a commit could be written they can be too, and
//! `git clean -fdx` leaves them.

use std::ffi::{OsStr, OsString};
use std::fs::{self, DirEntry, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

use super::event::HookEvent;
use crate::git::Repository;
use crate::sidecar::{FileLock, failpoint, remove_stale_temporaries};

/// A name that no linked work tree has: git calls those after their folders, and this is no folder's.
const MAIN: &str = "main work tree";
const REQUEST: &str = "request ";
/// A request that is being written, with the number of the process that does.
const HALF: &str = "writing ";
/// The answer to a trial.
pub(super) const ANSWER: &str = "trial ";
/// How old such a file is when nobody can be about to rename or read it.
const LEFT_OVER: Duration = Duration::from_secs(24 * 60 * 60);

/// The folder `codescout-hooks` in the common git directory.
#[derive(Clone, Debug)]
pub(super) struct Queue {
    root: PathBuf,
}

/// That a hook was called in a work tree. A newer one takes the place of an older one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Request {
    path: PathBuf,
    /// When it was made, by the clock of the file system.
    pub(super) made: SystemTime,
    pub(super) event: HookEvent,
    /// The work tree's git directory.
    pub(super) git_dir: PathBuf,
}

/// Held by the one worker.
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

    /// Where a file of the queue's neighbours stands: the log of last resort, the tips of a bare repository.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// Leaves a request for the work tree of `repository`.
    pub(super) fn leave(&self, repository: &Repository, event: HookEvent) -> io::Result<()> {
        let name = if repository.git_dir() == repository.common_dir() {
            OsStr::new(MAIN)
        } else {
            repository.git_dir().file_name().unwrap_or(OsStr::new(MAIN))
        };
        let mut content = format!("{}\n", event.name()).into_bytes();
        content.extend_from_slice(repository.git_dir().as_os_str().as_bytes());
        fs::create_dir_all(&self.root)?;
        let mut to = OsString::from(REQUEST);
        to.push(name);
        let half = self.root.join(format!("{HALF}{}", std::process::id()));
        leave_whole(&half, &self.root.join(to), &content).inspect_err(|_| {
            let _ = fs::remove_file(&half);
        })
    }

    /// Clears away what hooks and workers left half-written that were killed, and answers that came when nobody waited for them
    /// any more.
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

    /// The requests that wait. What cannot be read is none.
    pub(super) fn requests(&self) -> Vec<Request> {
        let entries = fs::read_dir(&self.root).into_iter().flatten().flatten();
        let names = entries.filter(|entry| entry.file_name().as_bytes().starts_with(REQUEST.as_bytes()));
        names.filter_map(|entry| read_request(entry.path())).collect()
    }

    /// Takes a request away before it is served, so that one that comes meanwhile is not lost.
    pub(super) fn take(&self, request: &Request) -> io::Result<()> {
        failpoint::hit("hooks.request_found")?;
        fs::remove_file(&request.path)?;
        failpoint::hit("hooks.request_taken")
    }

    /// Becomes the worker; `None` if there is one.
    pub(super) fn try_lock(&self) -> io::Result<Option<WorkerLock>> {
        fs::create_dir_all(&self.root)?;
        let path = self.root.join("lock");
        let file = OpenOptions::new().create(true).truncate(false).write(true).open(path)?;
        Ok(FileLock::take(file)?.ok().map(|lock| WorkerLock { _lock: lock }))
    }
}

/// Not flushed to disk: it is a hint, and nobody has to wait for it.
fn leave_whole(half: &Path, to: &Path, content: &[u8]) -> io::Result<()> {
    let (first, second) = content.split_at(if cfg!(debug_assertions) { content.len() / 2 } else { 0 });
    let mut file = File::create(half)?;
    file.write_all(first)?;
    failpoint::hit("hooks.request_half")?;
    file.write_all(second)?;
    failpoint::hit("hooks.request_written")?;
    fs::rename(half, to)?;
    failpoint::hit("hooks.request_left")
}

/// Whether this is the name of a request that nobody writes any more.
fn is_abandoned(name: &str) -> bool {
    let process = name.strip_prefix(HALF).and_then(|process| process.parse().ok());
    let process = process.and_then(Pid::from_raw);
    process.is_some_and(|process| test_kill_process(process) == Err(Errno::SRCH))
}

/// Whether files with this name are about to be renamed or read.
fn is_passing(name: &str) -> bool {
    name.starts_with(HALF) || name.starts_with(ANSWER)
}

/// Whether a file was written long ago; a time to come says nothing about that.
fn is_old(entry: &DirEntry) -> bool {
    let written = entry.metadata().and_then(|metadata| metadata.modified());
    written.is_ok_and(|written| written.elapsed().is_ok_and(|age| age > LEFT_OVER))
}

fn read_request(path: PathBuf) -> Option<Request> {
    let made = fs::metadata(&path).and_then(|metadata| metadata.modified()).ok()?;
    let content = fs::read(&path).ok()?;
    let line_end = content.iter().position(|byte| *byte == b'\n')?;
    let event = HookEvent::named(std::str::from_utf8(&content[..line_end]).ok()?)?;
    Some(Request {
        made,
        event,
        git_dir: PathBuf::from(OsString::from_vec(content[line_end + 1..].to_vec())),
        path,
    })
}
