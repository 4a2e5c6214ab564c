//! Names and opens the files and directories in `.codescout/`.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, SystemTime};

use rustix::fs::{Access, access};
use rustix::io::Errno;

use super::atomic::{remove_stale_in, unlinked_file_in, write_in};
use super::beneath::{Entry, EntryKind, Folder, Owners};
use super::failpoint;
use super::file_error::FileError;
use super::format;
use super::location::{Location, OpenError, is_own};
use super::lock::{LockError, WriterLock};
use super::record::{read_record, write_record};
use super::sections::Bytes;
use super::staging::Staging;
use super::state::{self, State};
use super::sums::{ChangedFile, find_changed, forget_sums, write_summed};

/// Version of the directory layout. No other version exists.
pub const FORMAT_VERSION: u32 = 1;
pub(super) const FORMAT_NAME: &str = "FORMAT";
pub(super) const STATE_NAME: &str = "state";
/// The directory that damaged files are moved to.
const DAMAGED_NAME: &str = "damaged";
/// The directory of logs.
const LOG_NAME: &str = "log";
/// The directory of private notes.
pub const NOTES_NAME: &str = "memories";
/// Names of files that codescout or its user creates directly in the directory, except `FORMAT`.
pub(super) const OWN_FILES: [&str; 10] = [
    ".gitignore",
    "config.toml",
    "embedding-lock",
    "gc",
    "lock",
    "pins",
    "repository",
    "serve-token",
    STATE_NAME,
    "versions",
];
pub(super) const OWN_FOLDERS: [&str; 3] = [DAMAGED_NAME, LOG_NAME, NOTES_NAME];
/// Limits of the directory for damaged files.
const MAX_DAMAGED_FILES: usize = 64;
const MAX_DAMAGED_BYTES: u64 = 64 << 20;
/// Read at most this much of `FORMAT` and `.gitignore`, which are far smaller.
pub(super) const MAX_TEXT_BYTES: u64 = 4096;

/// A kind of immutable file, and the directory that contains these files. The directory's name includes the version of
/// the file format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Store {
    /// Artifacts of blobs.
    Artifacts,
    /// Lexical indexes of segments.
    Lexical,
    /// Vectors of segments.
    Dense,
    /// Manifests of trees.
    Snapshots,
    /// Records of commits.
    History,
}

impl Store {
    /// All stores.
    pub const ALL: [Self; 5] = [
        Self::Artifacts,
        Self::Lexical,
        Self::Dense,
        Self::Snapshots,
        Self::History,
    ];

    /// The name of the store's directory.
    pub fn folder(self) -> &'static str {
        match self {
            Self::Artifacts => "artifacts-v1",
            Self::Lexical => "lexical-v1",
            Self::Dense => "dense-v1",
            Self::Snapshots => "snapshots-v1",
            Self::History => "history-v1",
        }
    }
}

/// An open sidecar directory.
///
/// The handle refers to the directory that was opened. If another directory replaces it, the handle never accesses the
/// new one.
#[derive(Clone, Debug)]
pub struct Sidecar {
    root: PathBuf,
    folder: Arc<Folder>,
}

impl Sidecar {
    /// Wraps an open directory. The caller has checked that it is a sidecar.
    pub(super) fn new(root: PathBuf, folder: Folder) -> Self {
        Self {
            root,
            folder: Arc::new(folder),
        }
    }

    /// Opens the sidecar at `root` for reading. Fails if it does not belong to the current user or root. Writes
    /// nothing.
    pub fn open(root: &Path) -> Result<Self, OpenError> {
        Location::new(root).open()
    }

    /// Like [`Location::open_or_create`], for a sidecar that must belong to the current user or root.
    pub fn open_or_create(root: &Path) -> Result<Self, OpenError> {
        Location::new(root).open_or_create()
    }

    /// Returns the path of the directory.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns true if [`Self::root`] is still the open directory, which was not deleted, moved or replaced.
    pub fn is_in_place(&self) -> bool {
        let there = Folder::open(&self.root, Owners::current_user_and(None)).and_then(|folder| folder.stat());
        match (there, self.folder.stat()) {
            (Ok(there), Ok(ours)) => (there.st_dev, there.st_ino) == (ours.st_dev, ours.st_ino),
            _ => false,
        }
    }

    /// Returns the path of a file in a store. Use it in messages only.
    pub fn path(&self, store: Store, name: &str) -> PathBuf {
        self.folder(store).join(name)
    }

    /// Returns the path of a store's directory. Use it in messages only.
    pub fn folder(&self, store: Store) -> PathBuf {
        self.root.join(store.folder())
    }

    /// Returns the names of store directories whose format is older than this build's. Nothing reads them any more.
    pub fn old_folders(&self) -> io::Result<Vec<OsString>> {
        let is_old = |entry: &Entry| entry.kind == EntryKind::Folder && entry.name.to_str().is_some_and(is_old_store);
        let found = self.folder.entries()?.into_iter().filter(is_old);
        Ok(found.map(|entry| entry.name).collect())
    }

    /// Returns the total size of the files in a directory from [`Self::old_folders`], in bytes.
    pub fn old_folder_bytes(&self, name: &OsStr) -> io::Result<u64> {
        self.folder.folder(name)?.n_bytes()
    }

    /// Removes a directory from [`Self::old_folders`].
    pub fn remove_old_folder(&self, name: &OsStr, _lock: &WriterLock) -> io::Result<()> {
        if !name.to_str().is_some_and(is_old_store) {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "not a store of an earlier format",
            ));
        }
        self.folder.remove_folder(name)
    }

    /// Maps a file of a store. Fails if it is not a regular file or belongs to another user.
    pub fn map(&self, store: Store, name: &str) -> io::Result<Bytes> {
        Bytes::map(&self.folder.folder(store.folder())?.file(OsStr::new(name))?)
    }

    /// Writes a file of a store atomically. The caller must hold the writer lock.
    pub fn write(&self, store: Store, name: &str, bytes: &[u8]) -> io::Result<()> {
        write_in(self.folder.folder(store.folder())?.as_fd(), OsStr::new(name), bytes)
    }

    /// Creates an unlinked file for external data that has not been verified.
    pub fn staging(&self) -> io::Result<Staging> {
        Staging::on(unlinked_file_in(self.folder.as_fd())?)
    }

    /// Removes a file of a store.
    pub fn remove(&self, store: Store, name: &str, _lock: &WriterLock) -> io::Result<()> {
        self.folder.folder(store.folder())?.remove_file(OsStr::new(name))
    }

    /// Records that a file of a store became unused at `time`, by setting the file's modification time.
    pub fn retire(&self, store: Store, name: &str, time: SystemTime) -> io::Result<()> {
        self.folder.folder(store.folder())?.touch(OsStr::new(name), time)
    }

    /// Returns the entries of a store, or of the sidecar directory itself if `store` is `None`, sorted by name.
    pub fn entries(&self, store: Option<Store>) -> io::Result<Vec<Entry>> {
        match store {
            None => self.folder.entries(),
            Some(store) => match self.folder.folder(store.folder()) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
                folder => folder?.entries(),
            },
        }
    }

    /// Returns true if codescout or its user creates entries with this name in a sidecar.
    pub fn is_own_name(name: &str) -> bool {
        is_own(name)
    }

    /// Returns false if this user may not read the state or a store.
    pub fn is_readable(&self) -> bool {
        let is_denied = |name: &str| access(self.root.join(name), Access::READ_OK) == Err(Errno::ACCESS);
        !is_denied(STATE_NAME) && !Store::ALL.iter().any(|store| is_denied(store.folder()))
    }

    /// Returns the last published state, or `None` if none has been published.
    pub fn state(&self) -> Result<Option<State>, FileError> {
        let state: Option<State> = read_record(self, STATE_NAME, state::KIND)?;
        match state.as_ref().map_or(Ok(()), State::check) {
            Ok(()) => Ok(state),
            Err(what) => Err(FileError::damaged(self.root.join(STATE_NAME), what)),
        }
    }

    /// Publishes a state atomically.
    pub fn publish(&self, state: &State, _lock: &WriterLock) -> io::Result<()> {
        write_record(self, STATE_NAME, state::KIND, state)
    }

    /// Acquires the writer lock, waiting up to `patience`, and removes the temporary files of killed writers.
    pub fn lock(&self, patience: Duration) -> Result<WriterLock, LockError> {
        self.lock_unless(patience, &AtomicBool::new(false))
    }

    /// Acquires the lock for embedding, which does not block other readers or writers. Returns `None` if another
    /// process holds it.
    pub fn lock_embedding(&self) -> Result<Option<WriterLock>, LockError> {
        let name = "embedding-lock";
        let path = self.root.join(name);
        let file = self.folder.lock_file(name).map_err(|source| LockError::Io {
            path: path.clone(),
            source,
        })?;
        // A child process that is being started can hold the lock a moment longer than its parent.
        match WriterLock::on(file, &path, Duration::from_secs(1), &AtomicBool::new(false)) {
            Err(LockError::Busy { .. }) => Ok(None),
            lock => lock.map(Some),
        }
    }

    /// Like [`Self::lock`], but gives up when `interrupt` is set.
    pub fn lock_unless(&self, patience: Duration, interrupt: &AtomicBool) -> Result<WriterLock, LockError> {
        let path = self.root.join("lock");
        let io_error = |path: PathBuf| move |source| LockError::Io { path, source };
        let file = self.folder.lock_file("lock").map_err(io_error(path.clone()))?;
        let lock = WriterLock::on(file, &path, patience, interrupt)?;
        remove_stale_in(&self.folder).map_err(io_error(self.root.clone()))?;
        for store in Store::ALL {
            self.folder
                .make_folder(store.folder())
                .and_then(|()| self.folder.folder(store.folder()))
                .and_then(|folder| remove_stale_in(&folder))
                .map_err(io_error(self.folder(store)))?;
        }
        failpoint::hit("lock.cleaned").map_err(|source| LockError::Io { path, source })?;
        Ok(lock)
    }

    /// Returns which of the files `FORMAT` and `.gitignore` differ from what codescout writes.
    pub fn changed_texts(&self) -> io::Result<Vec<&'static str>> {
        let mut changed = Vec::new();
        for (name, text) in [
            (".gitignore", format::GITIGNORE.to_owned()),
            (FORMAT_NAME, format::text(FORMAT_VERSION)),
        ] {
            match self.read(name, MAX_TEXT_BYTES) {
                Ok(bytes) if bytes == text.as_bytes() => {}
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => changed.push(name),
            }
        }
        Ok(changed)
    }

    /// Rewrites the files `FORMAT` and `.gitignore`.
    pub fn rewrite_texts(&self, _lock: &WriterLock) -> io::Result<()> {
        write_in(
            self.folder.as_fd(),
            OsStr::new(".gitignore"),
            format::GITIGNORE.as_bytes(),
        )?;
        let text = format::text(FORMAT_VERSION);
        write_in(self.folder.as_fd(), OsStr::new(FORMAT_NAME), text.as_bytes())
    }

    /// Moves a file of a store, of the directory of logs (`log/NAME`), or of the sidecar directory itself, to `damaged/`.
    /// Removes the oldest files there if their number or size exceeds a limit.
    pub fn set_aside(&self, store: Option<Store>, name: &OsStr, _lock: &WriterLock) -> io::Result<()> {
        self.folder.make_folder(DAMAGED_NAME)?;
        let aside = self.folder.folder(DAMAGED_NAME)?;
        let path = Path::new(name);
        let name = path.file_name().unwrap_or(name);
        let new_name = free_name(&aside, name)?;
        match store {
            None if path.starts_with(LOG_NAME) => {
                let logs = self.folder.folder(LOG_NAME)?;
                let moved = logs.rename(name, &aside, &new_name);
                forget_sums(&logs, name)?;
                moved?;
            }
            None => self.folder.rename(name, &aside, &new_name)?,
            Some(store) => self.folder.folder(store.folder())?.rename(name, &aside, &new_name)?,
        }
        failpoint::hit("damaged.moved")?;
        keep_bounded(&aside)
    }

    /// Returns the total size of the files in `damaged/`, in bytes.
    pub fn damaged_bytes(&self) -> io::Result<u64> {
        Ok(self.damaged()?.iter().map(|entry| entry.length).sum())
    }

    /// Removes all files in `damaged/`. Returns their number.
    pub fn empty_damaged(&self, _lock: &WriterLock) -> io::Result<usize> {
        let entries = self.damaged()?;
        for entry in &entries {
            failpoint::hit("damaged.before_remove")?;
            self.folder.folder(DAMAGED_NAME)?.remove_file(&entry.name)?;
            failpoint::hit("damaged.removed")?;
        }
        Ok(entries.len())
    }

    /// Fails if the current user may not write to the sidecar. Writes nothing.
    pub fn check_writable(&self) -> io::Result<()> {
        self.folder.check_writable()?;
        for store in Store::ALL {
            match self.folder.folder(store.folder()) {
                // Skip missing directories, which writers create.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                folder => folder?.check_writable()?,
            }
        }
        Ok(())
    }

    fn damaged(&self) -> io::Result<Vec<Entry>> {
        let entries = match self.folder.folder(DAMAGED_NAME) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            folder => folder?.entries()?,
        };
        Ok(files(entries))
    }

    /// Returns the logs that differ from what was written.
    pub fn changed_logs(&self) -> io::Result<Vec<ChangedFile>> {
        self.changed_in(LOG_NAME)
    }

    /// Returns the private notes that differ from what was written.
    pub fn changed_notes(&self) -> io::Result<Vec<ChangedFile>> {
        self.changed_in(NOTES_NAME)
    }

    fn changed_in(&self, folder: &str) -> io::Result<Vec<ChangedFile>> {
        let mut changed = Vec::new();
        match self.folder.folder(folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            opened => find_changed(&opened?, folder, &mut changed)?,
        }
        Ok(changed)
    }

    /// Writes a file to the directory of logs atomically, with its checksum.
    pub fn write_log(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.folder.make_folder(LOG_NAME)?;
        write_summed(&self.folder.folder(LOG_NAME)?, name, bytes)
    }

    /// Reads up to `max_bytes` of a file in the directory of logs.
    pub fn read_log(&self, name: &str, max_bytes: u64) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let file = self.folder.folder(LOG_NAME)?.file(OsStr::new(name))?;
        file.take(max_bytes).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Writes a file directly in the sidecar directory.
    pub(super) fn write_own(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        write_in(self.folder.as_fd(), OsStr::new(name), bytes)
    }

    /// Reads up to `max_bytes` of a file directly in the sidecar directory. Fails if the file is not regular or belongs
    /// to an untrusted user.
    pub(super) fn read(&self, name: &str, max_bytes: u64) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let file = self.folder.file(OsStr::new(name))?;
        file.take(max_bytes).read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}

/// Returns true if `name` is the directory of a store with a lower version number. Directories with a higher version
/// belong to newer builds and must not be removed.
fn is_old_store(name: &str) -> bool {
    Store::ALL.iter().any(|store| {
        let (stem, current) = store.folder().rsplit_once("-v").expect("stores are numbered");
        let number = name.strip_prefix(stem).and_then(|rest| rest.strip_prefix("-v"));
        let is_below = |number: u32| current.parse().is_ok_and(|current: u32| number < current);
        number.and_then(|number| number.parse().ok()).is_some_and(is_below)
    })
}

fn files(entries: Vec<Entry>) -> Vec<Entry> {
    let mut files = entries;
    files.retain(|entry| entry.kind != EntryKind::Folder);
    files
}

/// Returns `name`. If an entry with that name exists, appends a number.
fn free_name(folder: &Folder, name: &OsStr) -> io::Result<OsString> {
    let mut free = name.to_owned();
    let mut number = 1;
    while folder.entry(&free)?.is_some() {
        free = name.to_owned();
        free.push(format!(".{number}"));
        number += 1;
    }
    Ok(free)
}

fn keep_bounded(folder: &Folder) -> io::Result<()> {
    let mut entries = files(folder.entries()?);
    entries.sort_by_key(|entry| std::cmp::Reverse(entry.modified));
    let mut n_bytes = 0;
    for (number, entry) in entries.iter().enumerate() {
        n_bytes += entry.length;
        if number >= MAX_DAMAGED_FILES || n_bytes > MAX_DAMAGED_BYTES {
            folder.remove_file(&entry.name)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use std::fs;

    use super::*;

    #[test]
    fn only_older_store_directories_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let sidecar = Sidecar::open_or_create(&folder.path().join("sidecar")).unwrap();
        for name in [
            "artifacts-v0",
            "dense-v0",
            "dense-v2",
            "dense-v",
            "memories",
            "other-v0",
        ] {
            fs::create_dir(sidecar.root().join(name)).unwrap();
        }
        assert_eq!(sidecar.old_folders().unwrap(), ["artifacts-v0", "dense-v0"]);
    }

    #[test]
    fn removing_an_old_store_keeps_link_targets() {
        let place = tempfile::tempdir().unwrap();
        let theirs = place.path().join("theirs");
        fs::create_dir(&theirs).unwrap();
        fs::write(theirs.join("file"), "x").unwrap();
        let sidecar = Sidecar::open_or_create(&place.path().join("sidecar")).unwrap();
        let lock = sidecar.lock(Duration::from_secs(20)).unwrap();
        let old = sidecar.root().join("dense-v0");
        fs::create_dir_all(old.join("deep/er")).unwrap();
        fs::write(old.join("deep/er/file"), "four").unwrap();
        std::os::unix::fs::symlink(&theirs, old.join("door")).unwrap();
        let name = OsStr::new("dense-v0");
        assert!(sidecar.old_folder_bytes(name).unwrap() >= 4);
        // Reject a current directory, and do not touch a directory that replaces the sidecar.
        assert!(sidecar.remove_old_folder(OsStr::new("dense-v1"), &lock).is_err());
        let moved = place.path().join("moved");
        fs::rename(sidecar.root(), &moved).unwrap();
        fs::create_dir_all(old.join("other")).unwrap();
        sidecar.remove_old_folder(name, &lock).unwrap();
        assert!(!moved.join("dense-v0").exists());
        assert!(old.join("other").exists() && theirs.join("file").exists());
    }

    #[test]
    fn replacement_directory_is_not_accessed() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("sidecar");
        let sidecar = Sidecar::open_or_create(&root).unwrap();
        let lock = sidecar.lock(Duration::from_secs(20)).unwrap();
        let outside = folder.path().join("outside");
        for store in Store::ALL {
            fs::create_dir_all(outside.join(store.folder())).unwrap();
        }
        fs::rename(&root, folder.path().join("moved")).unwrap();
        std::os::unix::fs::symlink(&outside, &root).unwrap();
        for name in ["a.vec", "b.vec"] {
            sidecar.write(Store::Dense, name, b"x").unwrap();
        }
        fs::write(outside.join("dense-v1/b.vec"), "theirs").unwrap();
        sidecar.retire(Store::Dense, "a.vec", SystemTime::UNIX_EPOCH).unwrap();
        sidecar.remove(Store::Dense, "b.vec", &lock).unwrap();
        assert_eq!(fs::read(outside.join("dense-v1/b.vec")).unwrap(), b"theirs");
        let left = sidecar.entries(Some(Store::Dense)).unwrap();
        assert_eq!(left.len(), 1);
        assert_eq!(left[0].modified, SystemTime::UNIX_EPOCH);
        sidecar.publish(&State::default(), &lock).unwrap();
        assert!(!sidecar.is_in_place());
        assert_eq!(sidecar.state().unwrap(), Some(State::default()));
        assert!(!outside.join("state").exists() && !outside.join("dense-v1/a.vec").exists());
        assert!(folder.path().join("moved/dense-v1/a.vec").exists());
    }

    #[test]
    fn damaged_files_are_bounded() {
        let folder = tempfile::tempdir().unwrap();
        let sidecar = Sidecar::open_or_create(&folder.path().join("sidecar")).unwrap();
        let lock = sidecar.lock(Duration::from_secs(20)).unwrap();
        for _ in 0..MAX_DAMAGED_FILES + 5 {
            sidecar.write(Store::Lexical, "a.lex", b"xx").unwrap();
            sidecar
                .set_aside(Some(Store::Lexical), OsStr::new("a.lex"), &lock)
                .unwrap();
        }
        assert_eq!(sidecar.damaged_bytes().unwrap(), 2 * MAX_DAMAGED_FILES as u64);
        assert_eq!(sidecar.empty_damaged(&lock).unwrap(), MAX_DAMAGED_FILES);
        assert!(sidecar.entries(Some(Store::Lexical)).unwrap().is_empty());
    }
}
