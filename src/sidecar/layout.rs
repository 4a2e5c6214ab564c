//! Where things stand below `.codescout/`, and whether a folder of that name is ours.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, SystemTime};

use super::atomic::{TEMPORARY_PREFIX, remove_stale_in, write_in};
use super::beneath::{Entry, EntryKind, Folder, Owners};
use super::failpoint;
use super::format::{self, Format};
use super::lock::{LockError, WriterLock};
use super::sections::Bytes;
use super::state::{State, StateError};

/// The layout described here. 1: the first.
pub const FORMAT_VERSION: u32 = 1;
const FORMAT_NAME: &str = "FORMAT";
const STATE_NAME: &str = "state";
/// Where damaged files are set aside.
const DAMAGED_NAME: &str = "damaged";
/// What stands beside `FORMAT` and the stores.
const OWN_FILES: [&str; 7] = [
    ".gitignore",
    "config.toml",
    "gc",
    "lock",
    "pins",
    "serve-token",
    STATE_NAME,
];
const OWN_FOLDERS: [&str; 3] = [DAMAGED_NAME, "log", "memories"];
/// What is set aside is kept for a person to look at; more than this is not.
const MAX_DAMAGED_FILES: usize = 64;
const MAX_DAMAGED_BYTES: u64 = 64 << 20;
/// `FORMAT` and `.gitignore` are far smaller; of what is larger the rest is not read.
const MAX_TEXT_BYTES: u64 = 4096;

/// One kind of immutable file, with its format number in the folder's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Store {
    /// Records of blobs.
    Artifacts,
    /// Lexical indexes.
    Lexical,
    /// Vectors.
    Dense,
    /// Manifests of trees.
    Snapshots,
    /// Records of commits.
    History,
}

impl Store {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Artifacts,
        Self::Lexical,
        Self::Dense,
        Self::Snapshots,
        Self::History,
    ];

    /// The name of its folder.
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

/// Where a sidecar stands or is to stand, and who else may own it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    /// The folder.
    pub root: PathBuf,
    /// A user who is trusted beside this one and the machine's administrator: the owner of a repository whom git trusts.
    pub trusted_owner: Option<u32>,
}

/// An opened sidecar folder.
///
/// It is the folder that was opened, whatever is put in its place later: nothing is read or written elsewhere.
#[derive(Clone, Debug)]
pub struct Sidecar {
    root: PathBuf,
    folder: Arc<Folder>,
}

/// Why a folder was not taken as a sidecar.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// There is none.
    #[error("no index at {}", .root.display())]
    Missing {
        /// Where it was looked for.
        root: PathBuf,
    },
    /// Something else made it.
    #[error("{} was not made by this program", .root.display())]
    Foreign {
        /// The folder.
        root: PathBuf,
    },
    /// It came with the repository.
    #[error("{} is tracked by the repository: what comes with a repository is not this machine's index", .root.display())]
    Tracked {
        /// The folder.
        root: PathBuf,
    },
    /// A link could lead anywhere.
    #[error("{} is a symbolic link", .path.display())]
    Link {
        /// The folder, or what stands in it.
        path: PathBuf,
    },
    /// Neither a regular file nor a folder where there should be one.
    #[error("{} is not what this program puts there", .path.display())]
    Odd {
        /// What stands there.
        path: PathBuf,
    },
    /// Somebody else could change what it says.
    #[error("{} belongs to another user ({user})", .root.display())]
    OtherOwner {
        /// The folder.
        root: PathBuf,
        /// By number.
        user: u32,
    },
    /// Another build made it.
    #[error("{} has layout {found}, this build knows {FORMAT_VERSION}", .root.display())]
    OtherLayout {
        /// The folder.
        root: PathBuf,
        /// What it says.
        found: u32,
    },
    /// It cannot be read or made.
    #[error("cannot use {}", .path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

impl OpenError {
    /// What the user can do about it, if anything.
    pub fn hint(&self) -> Option<String> {
        let elsewhere = "or keep the index elsewhere: set CODESCOUT_SIDECAR to another folder";
        match self {
            Self::Missing { .. } | Self::Io { .. } => None,
            Self::Foreign { root } => Some(format!("move {} away, {elsewhere}", root.display())),
            Self::Tracked { root } => Some(format!(
                "take it out of the repository (git rm -r --cached {0}) and delete it, {elsewhere}",
                root.file_name().unwrap_or_default().display()
            )),
            Self::Link { path } | Self::Odd { path } => Some(format!("remove {}, {elsewhere}", path.display())),
            Self::OtherOwner { root, .. } => Some(format!(
                "delete {} or take it over with chown, {elsewhere}",
                root.display()
            )),
            Self::OtherLayout { root, .. } => Some(format!(
                "use the build that made it, delete {} (nothing but time is lost), {elsewhere}",
                root.display()
            )),
        }
    }
}

impl Location {
    /// A folder that only this user and the administrator may own.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self {
            root: root.into(),
            trusted_owner: None,
        }
    }

    /// Opens the sidecar for reading; nothing is written.
    pub fn open(&self) -> Result<Sidecar, OpenError> {
        let (folder, format) = self.look()?;
        let missing = || OpenError::Missing {
            root: self.root.clone(),
        };
        match format {
            Some(Format::Layout(_)) => Ok(self.sidecar(folder)),
            Some(Format::Damaged) if has_a_store(&folder) => Err(missing()),
            None => Err(missing()),
            Some(Format::Damaged) => Err(OpenError::Foreign {
                root: self.root.clone(),
            }),
        }
    }

    /// Opens the sidecar to look for damage, even if that is in `FORMAT`; `None` if there is none.
    pub fn open_to_check(&self) -> Result<Option<Sidecar>, OpenError> {
        match self.look() {
            Ok((folder, Some(Format::Layout(_)))) => Ok(Some(self.sidecar(folder))),
            Ok((folder, _)) => Ok(has_a_store(&folder).then(|| self.sidecar(folder))),
            Err(OpenError::Missing { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The folder, if it is ours as far as its owner, the kinds and the names of what stands in it tell; and what `FORMAT` says.
    fn look(&self) -> Result<(Folder, Option<Format>), OpenError> {
        let root = &self.root;
        let folder = self.folder()?;
        check_owner(root, &folder, self.owners())?;
        check_kinds(root, &folder)?;
        let format = read_format(&folder).map_err(|source| OpenError::io(root.join(FORMAT_NAME), source))?;
        match format {
            Some(Format::Layout(found)) if found != FORMAT_VERSION => Err(OpenError::OtherLayout {
                root: root.clone(),
                found,
            }),
            Some(Format::Damaged) | None if !holds_only_ours(&folder) => Err(OpenError::Foreign { root: root.clone() }),
            format => Ok((folder, format)),
        }
    }

    fn sidecar(&self, folder: Folder) -> Sidecar {
        Sidecar {
            root: self.root.clone(),
            folder: Arc::new(folder),
        }
    }

    /// Opens the sidecar, making it if there is none. A folder that something else made is refused, not overwritten.
    pub fn open_or_create(&self) -> Result<Sidecar, OpenError> {
        match self.open() {
            // Who makes the folder at the same time may take the lock first, and then clears away what is half-written here;
            // but then there is a sidecar.
            Err(OpenError::Missing { .. }) => self.create().or_else(|error| self.open().map_err(|_| error)),
            opened => opened,
        }
    }

    fn create(&self) -> Result<Sidecar, OpenError> {
        let root = &self.root;
        let pass = |name| failpoint::hit(name).map_err(|source| OpenError::io(root, source));
        fs::create_dir_all(root).map_err(|source| OpenError::io(root, source))?;
        pass("create.folder")?;
        let folder = self.folder()?;
        check_owner(root, &folder, self.owners())?;
        for store in Store::ALL {
            let name = store.folder();
            folder
                .make_folder(name)
                .map_err(|source| OpenError::io(root.join(name), source))?;
        }
        if folder.entry(OsStr::new(FORMAT_NAME)).is_ok_and(|found| found.is_some()) {
            tracing::warn!("{} is damaged: written anew", root.join(FORMAT_NAME).display());
        }
        pass("create.stores")?;
        // A second guard beside info/exclude: whatever copies this folder into a repository brings its own exclusion.
        for (name, text) in [
            (".gitignore", format::GITIGNORE.to_owned()),
            (FORMAT_NAME, format::text(FORMAT_VERSION)),
        ] {
            write_in(folder.as_fd(), OsStr::new(name), text.as_bytes())
                .map_err(|source| OpenError::io(root.join(name), source))?;
        }
        Ok(self.sidecar(folder))
    }

    fn owners(&self) -> Owners {
        Owners::us_and(self.trusted_owner)
    }

    fn folder(&self) -> Result<Folder, OpenError> {
        let root = &self.root;
        Folder::open(root, self.owners()).map_err(|source| match fs::symlink_metadata(root) {
            Ok(found) if found.is_symlink() => OpenError::Link { path: root.clone() },
            Ok(found) if !found.is_dir() => OpenError::Foreign { root: root.clone() },
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                OpenError::Missing { root: root.clone() }
            }
            _ => OpenError::io(root, source),
        })
    }
}

impl OpenError {
    fn io(path: impl Into<PathBuf>, source: io::Error) -> Self {
        Self::Io {
            path: path.into(),
            source,
        }
    }
}

impl Sidecar {
    /// Opens the sidecar at `root`, which this user or the administrator owns, for reading; nothing is written.
    pub fn open(root: &Path) -> Result<Self, OpenError> {
        Location::new(root).open()
    }

    /// [`Location::open_or_create`] for a folder that this user or the administrator owns.
    pub fn open_or_create(root: &Path) -> Result<Self, OpenError> {
        Location::new(root).open_or_create()
    }

    /// The folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Whether the folder that was opened still stands where it was; not if it was deleted, moved or replaced.
    pub fn is_in_place(&self) -> bool {
        let there = Folder::open(&self.root, Owners::us_and(None)).and_then(|folder| folder.stat());
        match (there, self.folder.stat()) {
            (Ok(there), Ok(ours)) => (there.st_dev, there.st_ino) == (ours.st_dev, ours.st_ino),
            _ => false,
        }
    }

    /// Where a file of a store stands; for messages.
    pub fn path(&self, store: Store, name: &str) -> PathBuf {
        self.folder(store).join(name)
    }

    /// The folder of a store; for messages.
    pub fn folder(&self, store: Store) -> PathBuf {
        self.root.join(store.folder())
    }

    /// The names of folders of stores in an earlier format than this build's, which nothing reads any more.
    pub fn old_folders(&self) -> io::Result<Vec<OsString>> {
        let is_old = |entry: &Entry| entry.kind == EntryKind::Folder && entry.name.to_str().is_some_and(is_old_store);
        let found = self.folder.entries()?.into_iter().filter(is_old);
        Ok(found.map(|entry| entry.name).collect())
    }

    /// Bytes of the files in one of [`Self::old_folders`].
    pub fn old_folder_bytes(&self, name: &OsStr) -> io::Result<u64> {
        self.folder.folder(name)?.n_bytes()
    }

    /// Removes one of [`Self::old_folders`].
    pub fn remove_old_folder(&self, name: &OsStr, _lock: &WriterLock) -> io::Result<()> {
        if !name.to_str().is_some_and(is_old_store) {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "not a store of an earlier format",
            ));
        }
        self.folder.remove_folder(name)
    }

    /// Where the machine-local configuration stands, if there is any.
    pub fn config_path(&self) -> PathBuf {
        self.root.join("config.toml")
    }

    /// Maps a file of a store. What is no regular file, or somebody else's, is an error.
    pub fn map(&self, store: Store, name: &str) -> io::Result<Bytes> {
        Bytes::map(&self.folder.folder(store.folder())?.file(OsStr::new(name))?)
    }

    /// Writes a file of a store, whole or not at all. Only the holder of the lock may call it.
    pub fn write(&self, store: Store, name: &str, bytes: &[u8]) -> io::Result<()> {
        write_in(self.folder.folder(store.folder())?.as_fd(), OsStr::new(name), bytes)
    }

    /// Removes a file of a store.
    pub fn remove(&self, store: Store, name: &str, _lock: &WriterLock) -> io::Result<()> {
        self.folder.folder(store.folder())?.remove_file(OsStr::new(name))
    }

    /// Notes that a file of a store went out of use at `time`.
    pub fn retire(&self, store: Store, name: &str, time: SystemTime) -> io::Result<()> {
        self.folder.folder(store.folder())?.touch(OsStr::new(name), time)
    }

    /// What stands in the folder, or in that of a store, in the order of names.
    pub fn entries(&self, store: Option<Store>) -> io::Result<Vec<Entry>> {
        match store {
            None => self.folder.entries(),
            Some(store) => match self.folder.folder(store.folder()) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
                folder => folder?.entries(),
            },
        }
    }

    /// Whether this program gives such names to what stands in the folder itself.
    pub fn is_own_name(name: &str) -> bool {
        is_own(name)
    }

    /// The published state; `None` before the first.
    pub fn state(&self) -> Result<Option<State>, StateError> {
        let path = self.root.join(STATE_NAME);
        match self.read(STATE_NAME, u64::MAX) {
            Ok(bytes) => {
                let state = State::from_bytes(&path, &bytes)?;
                match state.check() {
                    Ok(()) => Ok(Some(state)),
                    Err(what) => Err(StateError::Damaged { path, what }),
                }
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(StateError::Io { path, source }),
        }
    }

    /// Publishes a state. Only the holder of the lock may call it.
    pub fn publish(&self, state: &State, _lock: &WriterLock) -> io::Result<()> {
        write_in(self.folder.as_fd(), OsStr::new(STATE_NAME), &state.to_bytes())
    }

    /// Takes the writer lock and clears away what killed writers left half-written.
    pub fn lock(&self, patience: Duration) -> Result<WriterLock, LockError> {
        self.lock_unless(patience, &AtomicBool::new(false))
    }

    /// Like [`Self::lock`]; gives up as soon as `interrupt` is set.
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

    /// Whether `FORMAT` and `.gitignore` are as they were written, down to the last byte; the names of those that are not.
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

    /// Writes `FORMAT` and `.gitignore` anew.
    pub fn mend_texts(&self, _lock: &WriterLock) -> io::Result<()> {
        write_in(
            self.folder.as_fd(),
            OsStr::new(".gitignore"),
            format::GITIGNORE.as_bytes(),
        )?;
        let text = format::text(FORMAT_VERSION);
        write_in(self.folder.as_fd(), OsStr::new(FORMAT_NAME), text.as_bytes())
    }

    /// Moves a file of a store, or of the folder itself, to `damaged/`, where the oldest go when there is too much.
    pub fn set_aside(&self, store: Option<Store>, name: &OsStr, _lock: &WriterLock) -> io::Result<()> {
        self.folder.make_folder(DAMAGED_NAME)?;
        let aside = self.folder.folder(DAMAGED_NAME)?;
        let new_name = free_name(&aside, name)?;
        match store {
            None => self.folder.rename(name, &aside, OsStr::new(&new_name))?,
            Some(store) => self
                .folder
                .folder(store.folder())?
                .rename(name, &aside, OsStr::new(&new_name))?,
        }
        failpoint::hit("damaged.moved")?;
        keep_bounded(&aside)
    }

    /// Bytes that were set aside as damaged.
    pub fn damaged_bytes(&self) -> io::Result<u64> {
        Ok(self.damaged()?.iter().map(|entry| entry.length).sum())
    }

    /// Removes what was set aside as damaged; how many files that was.
    pub fn empty_damaged(&self, _lock: &WriterLock) -> io::Result<usize> {
        let entries = self.damaged()?;
        for entry in &entries {
            failpoint::hit("damaged.before_remove")?;
            self.folder.folder(DAMAGED_NAME)?.remove_file(&entry.name)?;
            failpoint::hit("damaged.removed")?;
        }
        Ok(entries.len())
    }

    /// Whether this user can write here; nothing is written.
    pub fn check_writable(&self) -> io::Result<()> {
        self.folder.check_writable()?;
        for store in Store::ALL {
            match self.folder.folder(store.folder()) {
                // Writers make what is missing.
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

    /// Writes a file of the folder itself.
    pub(super) fn write_own(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        write_in(self.folder.as_fd(), OsStr::new(name), bytes)
    }

    /// Reads a file of the folder itself. What is no regular file, or somebody else's, is an error.
    pub(super) fn read(&self, name: &str, max_bytes: u64) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let file = self.folder.file(OsStr::new(name))?;
        file.take(max_bytes).read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}

fn check_owner(root: &Path, folder: &Folder, owners: Owners) -> Result<(), OpenError> {
    let user = folder.stat().map_err(|source| OpenError::io(root, source))?.st_uid;
    if owners.contain(user) {
        return Ok(());
    }
    Err(OpenError::OtherOwner {
        root: root.to_owned(),
        user,
    })
}

/// Whether a folder's name is that of a store with a lower number. What a newer build made is not ours to remove.
fn is_old_store(name: &str) -> bool {
    Store::ALL.iter().any(|store| {
        let (stem, current) = store.folder().rsplit_once("-v").expect("stores are numbered");
        let number = name.strip_prefix(stem).and_then(|rest| rest.strip_prefix("-v"));
        let is_below = |number: u32| current.parse().is_ok_and(|current: u32| number < current);
        number.and_then(|number| number.parse().ok()).is_some_and(is_below)
    })
}

/// Whether what bears our names is what we put there: no links, no pipes, folders where folders should be.
fn check_kinds(root: &Path, folder: &Folder) -> Result<(), OpenError> {
    let files = OWN_FILES.iter().chain(&[FORMAT_NAME]);
    let folders = Store::ALL.map(Store::folder).into_iter().chain(OWN_FOLDERS);
    let expected = files
        .map(|&name| (name, EntryKind::File))
        .chain(folders.map(|name| (name, EntryKind::Folder)));
    for (name, kind) in expected {
        let path = || root.join(name);
        let found = folder
            .entry(OsStr::new(name))
            .map_err(|source| OpenError::io(path(), source))?;
        match found.map(|entry| entry.kind) {
            None => {}
            Some(found) if found == kind => {}
            Some(EntryKind::Link) => return Err(OpenError::Link { path: path() }),
            Some(_) => return Err(OpenError::Odd { path: path() }),
        }
    }
    Ok(())
}

fn read_format(folder: &Folder) -> io::Result<Option<Format>> {
    let mut bytes = Vec::new();
    match folder.file(OsStr::new(FORMAT_NAME)) {
        Ok(file) => file.take(MAX_TEXT_BYTES).read_to_end(&mut bytes)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    Ok(Some(format::parse(&bytes)))
}

/// Whether a folder without a sound `FORMAT` may be taken: nothing stands in it but what this program or its user puts there.
/// It is what a run that was ended early leaves, or a configuration written before the first run.
fn holds_only_ours(folder: &Folder) -> bool {
    let is_ours = |entry: &Entry| entry.name.to_str().is_some_and(is_own);
    folder.entries().is_ok_and(|entries| entries.iter().all(is_ours))
}

/// Whether the folder of a store is there: its names are no other program's.
fn has_a_store(folder: &Folder) -> bool {
    let is_there = |store: Store| matches!(folder.entry(OsStr::new(store.folder())), Ok(Some(_)));
    Store::ALL.into_iter().any(is_there)
}

fn is_own(name: &str) -> bool {
    name == FORMAT_NAME
        || OWN_FILES.contains(&name)
        || OWN_FOLDERS.contains(&name)
        || name.starts_with(TEMPORARY_PREFIX)
        || Store::ALL.iter().any(|store| store.folder() == name)
}

fn files(entries: Vec<Entry>) -> Vec<Entry> {
    let mut files = entries;
    files.retain(|entry| entry.kind != EntryKind::Folder);
    files
}

/// `name`, or with a number behind it if that is taken.
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
    use super::*;

    #[test]
    fn a_foreign_folder_is_refused_and_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join(".codescout");
        fs::create_dir(&root).unwrap();
        fs::write(root.join("project.toml"), "x").unwrap();
        assert!(matches!(Sidecar::open_or_create(&root), Err(OpenError::Foreign { .. })));
        assert_eq!(fs::read_dir(&root).unwrap().count(), 1);
    }

    #[test]
    fn folders_of_earlier_formats_are_found_and_those_of_later_ones_are_not() {
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
    fn a_folder_of_an_earlier_format_goes_and_what_its_links_lead_to_stays() {
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
        // Neither another folder, nor one that stands where the sidecar was.
        assert!(sidecar.remove_old_folder(OsStr::new("dense-v1"), &lock).is_err());
        let moved = place.path().join("moved");
        fs::rename(sidecar.root(), &moved).unwrap();
        fs::create_dir_all(old.join("other")).unwrap();
        sidecar.remove_old_folder(name, &lock).unwrap();
        assert!(!moved.join("dense-v0").exists());
        assert!(old.join("other").exists() && theirs.join("file").exists());
    }

    #[test]
    fn what_a_run_that_was_ended_early_leaves_is_taken_over() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join(".codescout");
        Sidecar::open_or_create(&root).unwrap();
        fs::write(root.join("config.toml"), "").unwrap();
        fs::write(root.join(".writing-x"), "codes").unwrap();
        fs::remove_file(root.join("FORMAT")).unwrap();
        assert!(matches!(Sidecar::open(&root), Err(OpenError::Missing { .. })));
        Sidecar::open_or_create(&root).unwrap();
        Sidecar::open(&root).unwrap();
    }

    #[test]
    fn links_and_newer_layouts_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("real");
        Sidecar::open_or_create(&root).unwrap();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&root, &link).unwrap();
        assert!(matches!(Sidecar::open(&link), Err(OpenError::Link { .. })));

        fs::write(root.join("FORMAT"), "codescout sidecar\nlayout 99\n").unwrap();
        assert!(matches!(
            Sidecar::open(&root),
            Err(OpenError::OtherLayout { found: 99, .. })
        ));
    }

    #[test]
    fn links_and_pipes_inside_are_refused_without_waiting() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("sidecar");
        let fresh = || {
            let _ = fs::remove_dir_all(&root);
            Sidecar::open_or_create(&root).unwrap();
        };
        for name in [
            "FORMAT",
            "state",
            "lock",
            "config.toml",
            ".gitignore",
            "dense-v1",
            "log",
        ] {
            fresh();
            let path = root.join(name);
            let _ = fs::remove_file(&path).or_else(|_| fs::remove_dir(&path));
            std::os::unix::fs::symlink(folder.path(), &path).unwrap();
            assert!(
                matches!(Sidecar::open_or_create(&root), Err(OpenError::Link { .. })),
                "{name}"
            );
            fs::remove_file(&path).unwrap();
            let made = std::process::Command::new("mkfifo").arg(&path).status().unwrap();
            assert!(made.success());
            assert!(
                matches!(Sidecar::open_or_create(&root), Err(OpenError::Odd { .. })),
                "{name}"
            );
        }
    }

    #[test]
    fn a_damaged_format_is_written_anew_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("sidecar");
        Sidecar::open_or_create(&root).unwrap();
        let good = fs::read(root.join("FORMAT")).unwrap();
        for bit in 0..good.len() * 8 {
            let mut bad = good.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            fs::write(root.join("FORMAT"), bad).unwrap();
            assert!(
                matches!(Sidecar::open(&root), Err(OpenError::Missing { .. })),
                "bit {bit}"
            );
        }
        for length in 0..good.len() {
            fs::write(root.join("FORMAT"), &good[..length]).unwrap();
            Sidecar::open_or_create(&root).unwrap();
        }
        assert_eq!(fs::read(root.join("FORMAT")).unwrap(), good);
        fs::write(root.join("FORMAT"), "").unwrap();
        fs::write(root.join("theirs"), "").unwrap();
        assert!(matches!(Sidecar::open_or_create(&root), Err(OpenError::Foreign { .. })));
    }

    #[test]
    fn a_folder_put_in_its_place_is_neither_read_nor_written() {
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
    fn what_is_set_aside_is_bounded() {
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

    #[test]
    fn opening_for_reading_makes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join(".codescout");
        assert!(matches!(Sidecar::open(&root), Err(OpenError::Missing { .. })));
        assert!(!root.exists());
    }
}
