//! One writer at a time.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};

/// Held while the sidecar is written. The kernel drops it when its process ends, however it ends.
#[derive(Debug)]
pub struct WriterLock {
    _file: File,
}

/// Why the lock was not had.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another process writes.
    #[error("another process is writing {}", .path.display())]
    Busy {
        /// The lock file.
        path: PathBuf,
    },
    /// The lock file cannot be opened or locked.
    #[error("cannot lock {}", .path.display())]
    Io {
        /// The lock file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

/// How often a waiting writer looks again. `flock` with a deadline has no event to wait for.
const RETRY_EVERY: Duration = Duration::from_millis(20);

impl WriterLock {
    /// Takes the lock on `file`, waiting up to `patience` for another writer to finish; `path` is for messages.
    pub(super) fn on(file: File, path: &Path, patience: Duration) -> Result<Self, LockError> {
        let io_error = |source| LockError::Io {
            path: path.to_owned(),
            source,
        };
        let deadline = Instant::now() + patience;
        loop {
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Self { _file: file }),
                Err(rustix::io::Errno::WOULDBLOCK) if Instant::now() < deadline => thread::sleep(RETRY_EVERY),
                Err(rustix::io::Errno::WOULDBLOCK) => return Err(LockError::Busy { path: path.to_owned() }),
                Err(rustix::io::Errno::INTR) => {}
                Err(errno) => return Err(io_error(errno.into())),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn a_second_writer_is_told_and_a_dropped_lock_is_free() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let take = || WriterLock::on(File::create(&path).unwrap(), &path, Duration::ZERO);
        let held = take().unwrap();
        assert!(matches!(take(), Err(LockError::Busy { .. })));
        drop(held);
        take().unwrap();
    }
}
