//! Records which clones use the server that `codescout init` added to a client for all projects of the user.
//!
//! Each client has a folder next to the original texts, with one file for each clone: its name is a hash of the clone's
//! git directory, its content the path.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use super::clients::Client;
use super::file::FileError;
use super::places::Places;
use super::plan::InstallError;
use super::record::{hash, make_private};

/// The folder of all records.
const FOLDER: &str = "uses";

/// The clones that use the server of one client.
#[derive(Clone, Debug)]
pub(crate) struct Uses {
    folder: PathBuf,
}

impl Uses {
    pub(crate) fn of(client: &Client, places: &Places) -> Self {
        Self {
            folder: places.records().join(FOLDER).join(client.id),
        }
    }

    /// Returns the clones by the paths of their git directories, in order. Includes those that do not exist any more.
    pub(crate) fn clones(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let clones = entries.filter_map(|entry| fs::read(entry.path()).ok());
        let mut clones: Vec<PathBuf> = clones.map(|path| OsString::from_vec(path).into()).collect();
        clones.sort();
        clones
    }

    /// Returns the clones other than `clone` that exist.
    pub(crate) fn others(&self, clone: &Path) -> Vec<PathBuf> {
        let mut clones = self.clones();
        clones.retain(|other| other != clone && other.is_dir());
        clones
    }

    /// Records that a clone uses the server.
    pub(crate) fn add(&self, clone: &Path) -> Result<(), InstallError> {
        make_private(&self.folder)?;
        let path = self.file(clone);
        fs::write(&path, clone.as_os_str().as_bytes()).map_err(|source| failed("write", path, source))
    }

    /// Records that a clone does not use the server.
    pub(crate) fn remove(&self, clone: &Path) -> Result<(), InstallError> {
        let path = self.file(clone);
        absent_or(fs::remove_file(&path)).map_err(|source| failed("remove", path, source))
    }

    /// Removes all records, as the server belongs to no clone any more.
    pub(crate) fn clear(&self) -> Result<(), InstallError> {
        absent_or(fs::remove_dir_all(&self.folder)).map_err(|source| failed("remove", self.folder.clone(), source))
    }

    fn file(&self, clone: &Path) -> PathBuf {
        self.folder.join(&hash(&clone.to_string_lossy())[..16])
    }
}

fn absent_or(removed: io::Result<()>) -> io::Result<()> {
    removed.or_else(|error| match error.kind() {
        io::ErrorKind::NotFound => Ok(()),
        _ => Err(error),
    })
}

fn failed(act: &'static str, path: PathBuf, source: io::Error) -> InstallError {
    FileError::Io { act, path, source }.into()
}
