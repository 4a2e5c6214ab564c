//! Requests that wait for a worker, one for each work tree, and the lock that makes it one worker.
//!
//! They stand in the git directory and not in the sidecar: where a commit could be written they can be too, and
//! `git clean -fdx` leaves them.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rustix::fs::{FlockOperation, flock};

use super::event::HookEvent;
use crate::git::Repository;

/// A name that no linked work tree has: git calls those after their folders, and this is no folder's.
const MAIN: &str = "main work tree";
const REQUEST: &str = "request ";

/// The folder `codescout-hooks` in the common git directory.
#[derive(Clone, Debug)]
pub(super) struct Queue {
    root: PathBuf,
}

/// That a hook was called in a work tree. A newer one takes the place of an older one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Request {
    path: PathBuf,
    /// When it was made; only compared for being the same.
    pub(super) made: SystemTime,
    pub(super) event: HookEvent,
    /// The work tree's git directory.
    pub(super) git_dir: PathBuf,
}

/// Held by the one worker. The kernel drops it when its process ends, however it ends.
#[derive(Debug)]
pub(super) struct WorkerLock {
    _file: File,
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
        let name = match repository.git_dir() == repository.common_dir() {
            true => OsStr::new(MAIN),
            false => repository.git_dir().file_name().unwrap_or(OsStr::new(MAIN)),
        };
        let mut content = format!("{}\n", event.name()).into_bytes();
        content.extend_from_slice(repository.git_dir().as_os_str().as_bytes());
        fs::create_dir_all(&self.root)?;
        // Not flushed to disk: it is a hint, and nobody has to wait for it.
        let half = self.root.join(format!("writing {}", std::process::id()));
        fs::write(&half, content)?;
        let mut file = OsString::from(REQUEST);
        file.push(name);
        fs::rename(&half, self.root.join(file))
    }

    /// The requests that wait. What cannot be read is none.
    pub(super) fn requests(&self) -> Vec<Request> {
        let entries = fs::read_dir(&self.root).into_iter().flatten().flatten();
        let names = entries.filter(|entry| entry.file_name().as_bytes().starts_with(REQUEST.as_bytes()));
        names.filter_map(|entry| read_request(entry.path())).collect()
    }

    /// Takes a request away before it is served, so that one that comes meanwhile is not lost.
    pub(super) fn take(&self, request: &Request) -> io::Result<()> {
        fs::remove_file(&request.path)
    }

    /// Becomes the worker; `None` if there is one.
    pub(super) fn try_lock(&self) -> io::Result<Option<WorkerLock>> {
        fs::create_dir_all(&self.root)?;
        let path = self.root.join("lock");
        let file = OpenOptions::new().create(true).truncate(false).write(true).open(path)?;
        loop {
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Some(WorkerLock { _file: file })),
                Err(rustix::io::Errno::WOULDBLOCK) => return Ok(None),
                Err(rustix::io::Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
    }
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
