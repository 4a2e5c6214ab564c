//! The journal of an edit: a file in the git directory, and the record that this user's program wrote it.
//!
//! A git directory can come from an archive, with a journal in it. So a journal counts only if its hash is recorded in
//! a folder of the user, where neither an archive nor a checkout can write. The record is on disk before the journal.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

use super::beneath::{self, Root, open_folder};
use super::open::Repository;
use super::rewrite::RewriteError;
use crate::sidecar::{FileLock, failpoint, remove_stale_temporaries, write_private_in};

/// The folder in the git directory. As for the queue of hooks, `git clean -fdx` does not delete it.
const FOLDER: &str = "codescout-edit";
const LOCK: &str = "lock";
pub(super) const JOURNAL: &str = "journal";
/// Interval between attempts to take the lock. `flock` has no timeout.
const RETRY_EVERY: Duration = Duration::from_millis(5);

/// The folder of the journal, open and locked.
pub(super) struct JournalFolder {
    folder: OwnedFd,
    path: PathBuf,
    record: Option<PathBuf>,
    _lock: FileLock,
}

impl JournalFolder {
    /// Opens and locks the folder. Waits up to `patience` for the lock. `records` is the user's folder for records;
    /// without it, a journal that a killed process leaves does not count.
    pub(super) fn lock(
        repository: &Repository,
        records: Option<&Path>,
        patience: Duration,
        interrupt: &AtomicBool,
    ) -> Result<Self, RewriteError> {
        let path = repository.git_dir().join(FOLDER);
        let unusable = |source| RewriteError::Journal {
            path: path.clone(),
            source,
        };
        let git_dir = Root::open(repository.git_dir()).map_err(unusable)?;
        let folder = open_or_create(&git_dir).map_err(unusable)?;
        let lock = locked(&folder, path.join(LOCK), patience, interrupt)?;
        remove_stale_temporaries(&path).map_err(unusable)?;
        Ok(Self {
            folder,
            record: records.map(|records| records.join(record_name(repository))),
            path,
            _lock: lock,
        })
    }

    /// Records and writes the journal. Until it replaces an earlier one, both count.
    pub(super) fn write(&self, bytes: &[u8]) -> Result<(), RewriteError> {
        if let Some(record) = &self.record
            && let Err(error) = add_record(record, &hash_of(bytes))
        {
            tracing::warn!(%error, "cannot write {}: if this edit is killed, it cannot be completed", record.display());
        }
        failpoint::hit("edit.recorded").map_err(|source| self.error(source))?;
        let written = write_private_in(self.folder.as_fd(), OsStr::new(JOURNAL), bytes);
        written.map_err(|source| self.error(source))
    }

    /// Returns the journal that a killed process has left. Fails if it is not recorded.
    pub(super) fn read(&self) -> Result<Option<Vec<u8>>, RewriteError> {
        let mut bytes = Vec::new();
        let file = match beneath::open_file(self.folder.as_fd(), JOURNAL.as_bytes()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file.map_err(|source| self.error(source))?,
        };
        let recorded = self.record.as_ref().and_then(|record| fs::read_to_string(record).ok());
        // A journal that is not this user's may have any size.
        if recorded.is_some() {
            File::from(file)
                .read_to_end(&mut bytes)
                .map_err(|source| self.error(source))?;
        }
        if recorded.is_some_and(|recorded| recorded.contains(&hash_of(&bytes))) {
            Ok(Some(bytes))
        } else {
            Err(RewriteError::NotRecorded {
                path: self.path.join(JOURNAL),
                has_records: self.record.is_some(),
            })
        }
    }

    /// Removes the journal and its record.
    pub(super) fn forget(&self) -> Result<(), RewriteError> {
        let removed = rustix::fs::unlinkat(&self.folder, JOURNAL, AtFlags::empty());
        // After a power failure, a journal without its record would be refused.
        let removed = removed.and_then(|()| rustix::fs::fsync(&self.folder));
        removed.map_err(|errno| self.error(errno.into()))?;
        self.forget_record();
        Ok(())
    }

    /// Removes the record, which without a journal has no effect.
    pub(super) fn forget_record(&self) {
        let _ = self.record.as_ref().map(fs::remove_file);
    }

    pub(super) fn error(&self, source: io::Error) -> RewriteError {
        RewriteError::Journal {
            path: self.path.join(JOURNAL),
            source,
        }
    }
}

/// Returns the name of the record, which differs for each pair of git directory and worktree.
fn record_name(repository: &Repository) -> String {
    let mut hasher = blake3::Hasher::new();
    for path in [repository.git_dir(), repository.place()] {
        hasher.update(path.as_os_str().as_bytes()).update(b"\0");
    }
    hasher.finalize().to_hex().to_string()
}

fn hash_of(journal: &[u8]) -> String {
    blake3::hash(journal).to_hex().to_string()
}

/// Adds a hash to a record, and flushes all of it to disk.
fn add_record(record: &Path, hash: &str) -> io::Result<()> {
    let folder = record.parent().unwrap_or(record);
    let missing: Vec<&Path> = folder.ancestors().take_while(|folder| !folder.exists()).collect();
    fs::create_dir_all(folder)?;
    let mut file = OpenOptions::new().create(true).append(true).open(record)?;
    // A killed process may have left half a line.
    file.write_all(format!("\n{hash}\n").as_bytes())?;
    file.sync_all()?;
    let parents = missing.iter().filter_map(|folder| folder.parent());
    [folder]
        .into_iter()
        .chain(parents)
        .try_for_each(|folder| File::open(folder)?.sync_all())
}

/// Opens the folder, which holds contents that other users may not be allowed to read.
fn open_or_create(git_dir: &Root) -> io::Result<OwnedFd> {
    let git_dir = git_dir.folder(b"")?;
    match rustix::fs::mkdirat(&git_dir, FOLDER, Mode::RWXU) {
        Ok(()) | Err(Errno::EXIST) => open_folder(git_dir.as_fd(), FOLDER.as_bytes()),
        Err(errno) => Err(errno.into()),
    }
}

fn locked(
    folder: &OwnedFd,
    path: PathBuf,
    patience: Duration,
    interrupt: &AtomicBool,
) -> Result<FileLock, RewriteError> {
    let unusable = |source| RewriteError::Journal {
        path: path.clone(),
        source,
    };
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let opened = rustix::fs::openat(folder, LOCK, flags, Mode::from_raw_mode(0o666));
    let mut file = File::from(opened.map_err(|errno| unusable(errno.into()))?);
    let deadline = Instant::now() + patience;
    loop {
        file = match FileLock::take(file).map_err(unusable)? {
            Ok(lock) => return Ok(lock),
            Err(_) if interrupt.load(Ordering::Relaxed) => return Err(RewriteError::Interrupted),
            Err(_) if Instant::now() >= deadline => return Err(RewriteError::Busy { path }),
            Err(file) => file,
        };
        std::thread::sleep(RETRY_EVERY);
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use crate::support::TestRepo;

    #[test]
    fn only_recorded_journals_are_read_each_until_it_is_forgotten() {
        let repo = TestRepo::new("//- a\na\n");
        let records = repo.beside("state/edits");
        let of = |repo: &TestRepo, records: Option<&Path>| {
            let repository = Repository::open(repo.root()).unwrap();
            JournalFolder::lock(&repository, records, Duration::ZERO, &AtomicBool::new(false)).unwrap()
        };
        let put = |repo: &TestRepo, bytes: &[u8]| repo.write(".git/codescout-edit/journal", bytes);
        let journal = of(&repo, Some(&records));
        assert!(journal.read().unwrap().is_none());
        journal.write(b"forth").unwrap();
        assert_eq!(journal.read().unwrap().unwrap(), b"forth");
        journal.write(b"back").unwrap();
        for (bytes, counts) in [
            ("forth", true),
            ("back", true),
            ("fort", false),
            ("", false),
            ("other", false),
        ] {
            put(&repo, bytes.as_bytes());
            assert_eq!(journal.read().is_ok(), counts, "{bytes}");
        }
        put(&repo, b"back");
        journal.forget().unwrap();
        put(&repo, b"back");
        assert!(matches!(
            journal.read(),
            Err(RewriteError::NotRecorded { has_records: true, .. })
        ));
        assert_eq!(fs::read_dir(&records).unwrap().count(), 0);
        // In another repository, in a linked worktree, and without a folder for records.
        put(&repo, b"forth");
        fs::remove_file(repo.path(".git/codescout-edit/journal")).unwrap();
        journal.write(b"forth").unwrap();
        let (other, linked) = (repo.clone_with("other", &[]), repo.worktree("linked"));
        put(&other, b"forth");
        assert!(of(&other, Some(&records)).read().is_err());
        repo.write(".git/worktrees/linked/codescout-edit/journal", "forth");
        assert!(of(&linked, Some(&records)).read().is_err());
        drop(journal);
        assert!(matches!(
            of(&repo, None).read(),
            Err(RewriteError::NotRecorded { has_records: false, .. })
        ));
        assert_eq!(of(&repo, Some(&records)).read().unwrap().unwrap(), b"forth");
    }
}
