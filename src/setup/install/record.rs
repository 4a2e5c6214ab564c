//! What stood in a file before it was first changed, kept until the last change is taken back.
//!
//! A folder for each file, named by a hash of its path: `record.json` and, if the file existed, `original` with its bytes.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::file::{FileError, write};

/// What is known about a file that was changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Record {
    /// The file.
    pub(super) path: PathBuf,
    /// Whether it existed.
    pub(super) existed: bool,
    /// What was put into it and is still there: `server:NAME`, `block:CLIENT`.
    pub(super) parts: Vec<String>,
    /// Hash of the file as it was left.
    pub(super) hash: String,
    /// Whether somebody else changed it between two changes of ours; then the original is not what to go back to.
    pub(super) diverged: bool,
    /// Whether the section that holds the servers was not there before.
    pub(super) made_section: bool,
    /// Folders that were made for it, the outermost first.
    pub(super) made_folders: Vec<PathBuf>,
}

/// A record with the text that stood there before.
#[derive(Clone, Debug)]
pub(super) struct Kept {
    pub(super) record: Record,
    /// `None` if the file did not exist.
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

    /// What is known about a file. A record that cannot be read is none: what it says would not be safe to act on.
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

    /// Keeps a record; the original before the record that speaks of it.
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

    /// Forgets a file.
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

    /// Where the text is kept that stood in a file before.
    pub(super) fn backup(&self, path: &Path) -> PathBuf {
        self.folder(path).join("original")
    }

    fn folder(&self, path: &Path) -> PathBuf {
        let hash = hash(&path.to_string_lossy());
        self.root.join(&hash[..16])
    }
}

/// Names a text.
pub(super) fn hash(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex().to_string()
}

/// Makes a folder that nobody else may look into: configurations can hold secrets.
fn make_private(folder: &Path) -> Result<(), FileError> {
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
