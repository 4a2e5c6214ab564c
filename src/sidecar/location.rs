//! Locates a sidecar and checks that a directory is one.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use super::atomic::{TEMPORARY_PREFIX, write_in};
use super::beneath::{Entry, EntryKind, Folder, Owners};
use super::failpoint;
use super::format::{self, Format};
use super::layout::{FORMAT_NAME, FORMAT_VERSION, MAX_TEXT_BYTES, OWN_FILES, OWN_FOLDERS, Sidecar, Store};
use crate::model::{Explain, Explanation};

/// The path of a sidecar, which may not exist yet, and its possible owners.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    /// The sidecar directory.
    pub root: PathBuf,
    /// A user who may own the sidecar besides the current user and root: the owner of a repository that git trusts.
    pub trusted_owner: Option<u32>,
}

/// An error from opening a sidecar.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The sidecar does not exist.
    #[error("no index at {}", .root.display())]
    Missing {
        /// The path of the missing sidecar.
        root: PathBuf,
    },
    /// Another program created the directory.
    #[error("{} was not created by codescout", .root.display())]
    Foreign {
        /// The path of the directory.
        root: PathBuf,
    },
    /// The repository tracks the directory, so it was not created on this machine.
    #[error("{} is tracked by git, but an index must be created on this machine", .root.display())]
    Tracked {
        /// The path of the directory.
        root: PathBuf,
    },
    /// The directory or an entry of it is a symbolic link, which could refer to any location.
    #[error("{} is a symbolic link", .path.display())]
    Link {
        /// The path of the link.
        path: PathBuf,
    },
    /// An entry has an unexpected type, for example a directory where a file is expected.
    #[error("{} has the wrong file type", .path.display())]
    Odd {
        /// The path of the entry.
        path: PathBuf,
    },
    /// Another user owns the directory and could change its content.
    #[error("{} belongs to another user ({user})", .root.display())]
    OtherOwner {
        /// The path of the directory.
        root: PathBuf,
        /// The numeric user id.
        user: u32,
    },
    /// A build with another layout version created the directory.
    #[error("{} has layout {found}, but this build supports layout {FORMAT_VERSION}", .root.display())]
    OtherLayout {
        /// The path of the directory.
        root: PathBuf,
        /// The layout version in `FORMAT`.
        found: u32,
    },
    /// The directory cannot be read or created.
    #[error("cannot use {}", .path.display())]
    Io {
        /// The path of the file or directory.
        path: PathBuf,
        /// The underlying error.
        #[source]
        source: io::Error,
    },
}

impl Explain for OpenError {
    fn explain(&self) -> Explanation {
        let elsewhere = "or set CODESCOUT_SIDECAR to keep the index in another directory";
        Explanation::hinting(match self {
            Self::Missing { .. } | Self::Io { .. } => return Explanation::default(),
            Self::Foreign { root } => format!("move {} away, {elsewhere}", root.display()),
            Self::Tracked { root } => format!(
                "remove it from the repository (git rm -r --cached {0}) and delete it, {elsewhere}",
                root.file_name().unwrap_or_default().display()
            ),
            Self::Link { path } | Self::Odd { path } => format!("remove {}, {elsewhere}", path.display()),
            Self::OtherOwner { root, .. } => {
                format!("delete {} or change its owner with chown, {elsewhere}", root.display())
            }
            Self::OtherLayout { root, .. } => format!(
                "use the build that created it, delete {} (it can be rebuilt), {elsewhere}",
                root.display()
            ),
        })
    }
}

impl Location {
    /// Creates a location where the sidecar must belong to the current user or root.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self {
            root: root.into(),
            trusted_owner: None,
        }
    }

    /// Opens the sidecar for reading. Writes nothing.
    pub fn open(&self) -> Result<Sidecar, OpenError> {
        let (folder, format) = self.look()?;
        let missing = || OpenError::Missing {
            root: self.root.clone(),
        };
        match format {
            Some(Format::Layout(_)) => Ok(self.sidecar(folder)),
            Some(Format::Damaged) if has_store(&folder) => Err(missing()),
            None => Err(missing()),
            Some(Format::Damaged) => Err(OpenError::Foreign {
                root: self.root.clone(),
            }),
        }
    }

    /// Opens the sidecar for a check, even if `FORMAT` or another file is damaged. Returns `None` if the directory does
    /// not exist or contains no index.
    pub fn open_to_check(&self) -> Result<Option<Sidecar>, OpenError> {
        match self.look() {
            Ok((folder, Some(Format::Layout(_)))) => Ok(Some(self.sidecar(folder))),
            Ok((folder, _)) => Ok(has_store(&folder).then(|| self.sidecar(folder))),
            Err(OpenError::Missing { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Opens the directory and checks its owner and the types and names of its entries. Also returns the content of
    /// `FORMAT`.
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
            Some(Format::Damaged) | None if !has_only_own_names(&folder) => {
                Err(OpenError::Foreign { root: root.clone() })
            }
            format => Ok((folder, format)),
        }
    }

    fn sidecar(&self, folder: Folder) -> Sidecar {
        Sidecar::new(self.root.clone(), folder)
    }

    /// Opens the sidecar, creating it if it does not exist. Never overwrites a directory of another program.
    pub fn open_or_create(&self) -> Result<Sidecar, OpenError> {
        match self.open() {
            // Another process that is creating the sidecar may lock it first and then remove the temporary files of
            // this process. In that case, the sidecar exists.
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
            tracing::warn!("{} is damaged: rewriting it", root.join(FORMAT_NAME).display());
        }
        pass("create.stores")?;
        // Unlike `info/exclude`, this file also works when the directory is copied into another repository.
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
        Owners::current_user_and(self.trusted_owner)
    }

    fn folder(&self) -> Result<Folder, OpenError> {
        let root = &self.root;
        let opened = match Folder::open(root, self.owners()) {
            // Another process created it meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotFound && root.is_dir() => Folder::open(root, self.owners()),
            opened => opened,
        };
        opened.map_err(|source| match fs::symlink_metadata(root) {
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

/// Fails if an entry with one of codescout's names has the wrong type: a link, a pipe, or a file instead of a
/// directory.
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

/// Returns true if a directory without a valid `FORMAT` may be used, which requires that every entry has a name that
/// codescout or its user creates. An interrupted run leaves such a directory, or the user has created it for a
/// configuration file.
fn has_only_own_names(folder: &Folder) -> bool {
    let is_ours = |entry: &Entry| entry.name.to_str().is_some_and(is_own);
    folder.entries().is_ok_and(|entries| entries.iter().all(is_ours))
}

/// Returns true if a store's directory exists. Other programs do not use these names.
fn has_store(folder: &Folder) -> bool {
    let is_there = |store: Store| matches!(folder.entry(OsStr::new(store.folder())), Ok(Some(_)));
    Store::ALL.into_iter().any(is_there)
}

/// Returns true if codescout or its user creates entries with this name in a sidecar.
pub(super) fn is_own(name: &str) -> bool {
    name == FORMAT_NAME
        || OWN_FILES.contains(&name)
        || OWN_FOLDERS.contains(&name)
        || name.starts_with(TEMPORARY_PREFIX)
        || Store::ALL.iter().any(|store| store.folder() == name)
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
    fn leftovers_of_an_interrupted_run_are_adopted() {
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
    fn opening_for_reading_makes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join(".codescout");
        assert!(matches!(Sidecar::open(&root), Err(OpenError::Missing { .. })));
        assert!(!root.exists());
    }
}
