//! Stores the original text of each changed file until all changes are undone.
//!
//! Each file has a folder, named by a hash of the file's path. The folder contains `record.json` and, if the file
//! existed, `original` with its bytes.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::file::{FileError, write};

/// The record of a changed file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Record {
    /// The path of the file.
    pub(super) path: PathBuf,
    /// True if the file existed before the first change.
    pub(super) existed: bool,
    /// The parts that were added and not removed: `server:NAME`, `block:CLIENT`.
    pub(super) parts: Vec<String>,
    /// Hash of the file's content after the last change.
    pub(super) hash: String,
    /// True if another program or the user changed the file between two changes by codescout. Then the original is not
    /// restored.
    pub(super) diverged: bool,
    /// True if the section for servers was added.
    pub(super) made_section: bool,
    /// Folders that were created for the file, the outermost first.
    pub(super) made_folders: Vec<PathBuf>,
}

/// A record together with the original text.
#[derive(Clone, Debug)]
pub(super) struct Kept {
    pub(super) record: Record,
    /// The original text; `None` if the file did not exist.
    pub(super) original: Option<String>,
}

/// All records of a user.
#[derive(Clone, Debug)]
pub(super) struct Records {
    root: PathBuf,
}

impl Records {
    pub(super) fn new(root: PathBuf) -> Self {
        Self { root }
    }

    /// Returns the record of a file. An unreadable record is ignored, because using it would not be safe.
    pub(super) fn load(&self, path: &Path) -> Option<Kept> {
        let folder = self.folder(path);
        let record: Record = serde_json::from_slice(&fs::read(folder.join("record.json")).ok()?).ok()?;
        let original = if record.existed {
            Some(fs::read_to_string(folder.join("original")).ok()?)
        } else {
            None
        };
        (record.path == path).then_some(Kept { record, original })
    }

    /// Stores a record. Writes the original text first, because the record refers to it.
    pub(super) fn store(&self, kept: &Kept) -> Result<(), FileError> {
        let folder = self.folder(&kept.record.path);
        make_private(&folder)?;
        if let Some(original) = &kept.original {
            write(&folder.join("original"), original)?;
        }
        let json = serde_json::to_string_pretty(&kept.record).map_err(|error| FileError::Io {
            act: "write",
            path: folder.clone(),
            source: error.into(),
        })?;
        write(&folder.join("record.json"), &json)
    }

    /// Deletes the record of a file.
    pub(super) fn remove(&self, path: &Path) -> Result<(), FileError> {
        let folder = self.folder(path);
        match fs::remove_dir_all(&folder) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => Err(FileError::Io {
                act: "remove",
                path: folder,
                source,
            }),
            _ => Ok(()),
        }
    }

    /// Returns the path of the file with the original text.
    pub(super) fn backup(&self, path: &Path) -> PathBuf {
        self.folder(path).join("original")
    }

    fn folder(&self, path: &Path) -> PathBuf {
        let hash = hash(&path.to_string_lossy());
        self.root.join(&hash[..16])
    }
}

/// Returns the hash of a text.
pub(super) fn hash(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex().to_string()
}

/// Creates a folder that only the user can read, because configurations may contain secrets.
pub(super) fn make_private(folder: &Path) -> Result<(), FileError> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder).map_err(|source| FileError::Io {
        act: "make",
        path: folder.to_owned(),
        source,
    })
}
