//! Where things stand below `.codescout/`, and whether a folder of that name is ours.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::atomic::{TEMPORARY_PREFIX, remove_stale_temporaries, write_atomic};
use super::lock::{LockError, WriterLock};
use super::state::{State, StateError};

/// The layout described here. 1: the first.
pub const FORMAT_VERSION: u32 = 1;
const FORMAT_FIRST_LINE: &str = "codescout sidecar";
/// What stands beside `FORMAT` and the stores.
const OWN_NAMES: [&str; 6] = [".gitignore", "config.toml", "lock", "log", "memories", "state"];

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
    const ALL: [Self; 5] = [
        Self::Artifacts,
        Self::Lexical,
        Self::Dense,
        Self::Snapshots,
        Self::History,
    ];

    fn folder(self) -> &'static str {
        match self {
            Self::Artifacts => "artifacts-v1",
            Self::Lexical => "lexical-v1",
            Self::Dense => "dense-v1",
            Self::Snapshots => "snapshots-v1",
            Self::History => "history-v1",
        }
    }
}

/// An opened sidecar folder.
#[derive(Clone, Debug)]
pub struct Sidecar {
    root: PathBuf,
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
    /// A link could lead anywhere.
    #[error("{} is a symbolic link", .root.display())]
    Link {
        /// The folder.
        root: PathBuf,
    },
    /// A newer build made it.
    #[error("{} has layout {found}, this build knows {FORMAT_VERSION}", .root.display())]
    Newer {
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

impl Sidecar {
    /// Opens the sidecar at `root` for reading; nothing is written.
    pub fn open(root: &Path) -> Result<Self, OpenError> {
        let io_error = |path: &Path, source| OpenError::Io {
            path: path.to_owned(),
            source,
        };
        let root_owned = || root.to_owned();
        match fs::symlink_metadata(root) {
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                return Err(OpenError::Missing { root: root_owned() });
            }
            Err(source) => return Err(io_error(root, source)),
            Ok(metadata) if metadata.is_symlink() => return Err(OpenError::Link { root: root_owned() }),
            Ok(metadata) if !metadata.is_dir() => return Err(OpenError::Foreign { root: root_owned() }),
            Ok(_) => {}
        }
        let format_path = root.join("FORMAT");
        let format = match fs::read_to_string(&format_path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(if holds_only_ours(root) {
                    OpenError::Missing { root: root_owned() }
                } else {
                    OpenError::Foreign { root: root_owned() }
                });
            }
            Err(source) => return Err(io_error(&format_path, source)),
        };
        match parse_format(&format) {
            Some(FORMAT_VERSION) => Ok(Self { root: root_owned() }),
            Some(found) => Err(OpenError::Newer {
                root: root_owned(),
                found,
            }),
            None => Err(OpenError::Foreign { root: root_owned() }),
        }
    }

    /// Opens the sidecar at `root`, making it if there is none. A folder that something else made is refused, not overwritten.
    pub fn open_or_create(root: &Path) -> Result<Self, OpenError> {
        match Self::open(root) {
            // Who makes the folder at the same time may take the lock first, and then clears away what is half-written here;
            // but then there is a sidecar.
            Err(OpenError::Missing { .. }) => Self::create(root).or_else(|error| Self::open(root).map_err(|_| error)),
            opened => opened,
        }
    }

    fn create(root: &Path) -> Result<Self, OpenError> {
        let make = |path: &Path| {
            fs::create_dir_all(path).map_err(|source| OpenError::Io {
                path: path.to_owned(),
                source,
            })
        };
        let write = |path: PathBuf, text: &str| {
            write_atomic(&path, text.as_bytes()).map_err(|source| OpenError::Io { path, source })
        };
        make(root)?;
        for store in Store::ALL {
            make(&root.join(store.folder()))?;
        }
        // A second guard beside info/exclude: whatever copies this folder into a repository brings its own exclusion.
        write(root.join(".gitignore"), "*\n")?;
        write(
            root.join("FORMAT"),
            &format!("{FORMAT_FIRST_LINE}\nlayout {FORMAT_VERSION}\n"),
        )?;
        Ok(Self { root: root.to_owned() })
    }

    /// The folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Where a file of a store stands.
    pub fn path(&self, store: Store, name: &str) -> PathBuf {
        self.folder(store).join(name)
    }

    /// The folder of a store.
    pub fn folder(&self, store: Store) -> PathBuf {
        self.root.join(store.folder())
    }

    /// Where the machine-local configuration stands, if there is any.
    pub fn config_path(&self) -> PathBuf {
        self.root.join("config.toml")
    }

    /// The published state; `None` before the first.
    pub fn state(&self) -> Result<Option<State>, StateError> {
        State::read(&self.state_path())
    }

    /// Publishes a state. Only the holder of the lock may call it.
    pub fn publish(&self, state: &State, _lock: &WriterLock) -> io::Result<()> {
        state.write(&self.state_path())
    }

    /// Takes the writer lock and clears away what killed writers left half-written.
    pub fn lock(&self, patience: Duration) -> Result<WriterLock, LockError> {
        let path = self.root.join("lock");
        let lock = WriterLock::acquire(&path, patience)?;
        let stores = Store::ALL.map(|store| self.folder(store));
        for folder in stores.iter().chain([&self.root]) {
            fs::create_dir_all(folder)
                .and_then(|()| remove_stale_temporaries(folder))
                .map_err(|source| LockError::Io {
                    path: folder.clone(),
                    source,
                })?;
        }
        Ok(lock)
    }

    /// Whether this user can write here. A file is made and removed at once, as permissions alone do not tell.
    pub fn check_writable(&self) -> io::Result<()> {
        tempfile::Builder::new()
            .prefix(TEMPORARY_PREFIX)
            .tempfile_in(&self.root)?
            .close()
    }

    fn state_path(&self) -> PathBuf {
        self.root.join("state")
    }
}

/// Whether a folder without `FORMAT` may be taken: nothing stands in it but what this program or its user puts there. It is
/// what a run that was ended early leaves, or a configuration written before the first run.
fn holds_only_ours(folder: &Path) -> bool {
    let is_ours = |name: &str| {
        OWN_NAMES.contains(&name)
            || name.starts_with(TEMPORARY_PREFIX)
            || Store::ALL.iter().any(|store| store.folder() == name)
    };
    let has_own_name =
        |entry: io::Result<fs::DirEntry>| entry.is_ok_and(|entry| entry.file_name().to_str().is_some_and(is_ours));
    fs::read_dir(folder).is_ok_and(|mut entries| entries.all(has_own_name))
}

fn parse_format(text: &str) -> Option<u32> {
    let mut lines = text.lines();
    (lines.next()? == FORMAT_FIRST_LINE).then_some(())?;
    lines.next()?.strip_prefix("layout ")?.parse().ok()
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
        assert!(matches!(Sidecar::open(&root), Err(OpenError::Newer { found: 99, .. })));
    }

    #[test]
    fn opening_for_reading_makes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join(".codescout");
        assert!(matches!(Sidecar::open(&root), Err(OpenError::Missing { .. })));
        assert!(!root.exists());
    }
}
