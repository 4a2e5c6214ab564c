//! Locks that allow only one writer at a time.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::failpoint;
use crate::model::{ErrorKind, Explain, Explanation};

/// An exclusive lock on a file, released on drop. The kernel also releases it when the process ends, for whatever
/// reason.
#[derive(Debug)]
pub struct FileLock(File);

impl FileLock {
    /// Locks `file`. If another process has locked it, returns the file as the inner error.
    pub fn take(file: File) -> io::Result<Result<Self, File>> {
        loop {
            return match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => Ok(Ok(Self(file))),
                Err(Errno::WOULDBLOCK) => Ok(Err(file)),
                Err(Errno::INTR) => continue,
                Err(errno) => Err(errno.into()),
            };
        }
    }
}

impl Drop for FileLock {
    fn drop(&mut self) {
        // Closing the file is not enough: if another thread is starting a child process, the child keeps the file open
        // until it calls exec.
        let _ = flock(&self.0, FlockOperation::Unlock);
    }
}

/// A token that proves that this process holds the writer lock of the sidecar.
#[derive(Debug)]
pub struct WriterLock {
    _lock: FileLock,
}

/// An error from acquiring the lock.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another process holds the lock.
    #[error("another process is writing {}", .path.display())]
    Busy {
        /// The path of the lock file.
        path: PathBuf,
    },
    /// The process was interrupted while another process held the lock.
    #[error("interrupted while waiting for the lock {}", .path.display())]
    Interrupted {
        /// The path of the lock file.
        path: PathBuf,
    },
    /// The lock file cannot be opened or locked.
    #[error("cannot lock {}", .path.display())]
    Io {
        /// The path of the lock file.
        path: PathBuf,
        /// The underlying error.
        #[source]
        source: io::Error,
    },
}

impl Explain for LockError {
    fn explain(&self) -> Explanation {
        match self {
            Self::Interrupted { .. } => Explanation::of_kind(ErrorKind::Interrupted),
            _ => Explanation::default(),
        }
    }
}

/// Polling interval while another process holds the lock. `flock` has no timeout.
const RETRY_EVERY: Duration = Duration::from_millis(20);

impl WriterLock {
    /// Locks `file`. If another process holds the lock, retries for up to `patience` or until `interrupt` is set.
    /// `path` is used in error messages.
    pub(super) fn on(file: File, path: &Path, patience: Duration, interrupt: &AtomicBool) -> Result<Self, LockError> {
        let io_error = |source| LockError::Io {
            path: path.to_owned(),
            source,
        };
        failpoint::hit("lock.opened").map_err(io_error)?;
        let deadline = Instant::now() + patience;
        let mut file = file;
        loop {
            file = match FileLock::take(file).map_err(io_error)? {
                Ok(lock) => {
                    failpoint::hit("lock.taken").map_err(io_error)?;
                    return Ok(Self { _lock: lock });
                }
                Err(_) if interrupt.load(Ordering::Relaxed) => {
                    return Err(LockError::Interrupted { path: path.to_owned() });
                }
                Err(_) if Instant::now() >= deadline => return Err(LockError::Busy { path: path.to_owned() }),
                Err(file) => file,
            };
            thread::sleep(RETRY_EVERY);
        }
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn second_writer_is_refused_until_the_lock_is_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let take = |patience, is_interrupted| {
            let file = File::create(&path).unwrap();
            WriterLock::on(file, &path, patience, &AtomicBool::new(is_interrupted))
        };
        let held = take(Duration::ZERO, false).unwrap();
        assert!(matches!(take(Duration::ZERO, false), Err(LockError::Busy { .. })));
        let interrupted = take(Duration::from_secs(60), true);
        assert!(matches!(interrupted, Err(LockError::Interrupted { .. })));
        drop(held);
        take(Duration::ZERO, false).unwrap();
    }

    #[test]
    fn other_open_handles_do_not_hold_a_dropped_lock() {
        let file = tempfile::tempfile().unwrap();
        let also_open = file.try_clone().unwrap();
        drop(FileLock::take(file).unwrap().unwrap());
        let _again = FileLock::take(also_open).unwrap().unwrap();
    }
}
