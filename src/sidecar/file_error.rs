//! The error of reading or writing any file of the sidecar.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::PathBuf;

use super::layout::{STATE_NAME, Store};
use crate::model::{ErrorKind, Explain, Explanation};

/// The next step if a file of the index is damaged.
pub const HOW_TO_REPAIR: &str = "rebuild it from git: codescout verify --repair";

/// An error from reading or writing a file of the sidecar, or one of its form in memory.
#[derive(Debug)]
pub struct FileError {
    /// The file.
    pub path: PathBuf,
    /// The problem.
    pub kind: FileErrorKind,
}

/// A problem with a file.
#[derive(Debug)]
pub enum FileErrorKind {
    /// It cannot be read.
    Read(io::Error),
    /// It cannot be written.
    Write(io::Error),
    /// This part of its content is damaged.
    Damaged(String),
    /// Another build wrote it.
    Format {
        /// The format in the file.
        found: u32,
        /// The supported format.
        supported: u32,
    },
}

impl FileError {
    /// Creates an error about a file that cannot be read.
    pub fn read(path: impl Into<PathBuf>, source: io::Error) -> Self {
        Self::new(path, FileErrorKind::Read(source))
    }

    /// Creates an error about a file that cannot be written.
    pub fn write(path: impl Into<PathBuf>, source: io::Error) -> Self {
        Self::new(path, FileErrorKind::Write(source))
    }

    /// Creates an error about a damaged part of a file.
    pub fn damaged(path: impl Into<PathBuf>, what: impl Into<String>) -> Self {
        Self::new(path, FileErrorKind::Damaged(what.into()))
    }

    pub(super) fn new(path: impl Into<PathBuf>, kind: FileErrorKind) -> Self {
        Self {
            path: path.into(),
            kind,
        }
    }

    /// Returns true for a file of the index.
    fn is_in_store(&self) -> bool {
        let folder = self.path.parent();
        folder.is_some_and(|folder| Store::ALL.iter().any(|store| folder.ends_with(store.folder())))
    }

    /// Returns true if the file does not exist.
    pub fn is_gone(&self) -> bool {
        matches!(&self.kind, FileErrorKind::Read(source) if source.kind() == io::ErrorKind::NotFound)
    }

    /// Returns true if the content cannot be used. Other errors may be temporary.
    pub fn is_invalid(&self) -> bool {
        matches!(self.kind, FileErrorKind::Damaged(_) | FileErrorKind::Format { .. })
    }
}

impl Explain for FileError {
    fn explain(&self) -> Explanation {
        match &self.kind {
            FileErrorKind::Damaged(_) if self.path.ends_with(STATE_NAME) => Explanation {
                kind: ErrorKind::Damaged,
                ..Explanation::hinting(
                    "the next search rebuilds the index; to do it now, run codescout verify \
                    --repair",
                )
            },
            FileErrorKind::Format { .. } if self.path.ends_with(STATE_NAME) => Explanation::hinting(
                "use the codescout version that wrote it, or delete the folder; the index can \
                    be rebuilt",
            ),
            FileErrorKind::Damaged(_) if self.is_in_store() => Explanation::hinting(HOW_TO_REPAIR),
            _ => Explanation::default(),
        }
    }
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        match &self.kind {
            FileErrorKind::Read(_) => write!(f, "cannot read {path}"),
            FileErrorKind::Write(_) => write!(f, "cannot write {path}"),
            FileErrorKind::Damaged(what) => write!(f, "{path} is damaged: {what}"),
            FileErrorKind::Format { found, supported } => {
                write!(f, "{path} has format {found}, this build reads {supported}")
            }
        }
    }
}

impl Error for FileError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match &self.kind {
            FileErrorKind::Read(source) | FileErrorKind::Write(source) => Some(source),
            FileErrorKind::Damaged(_) | FileErrorKind::Format { .. } => None,
        }
    }
}
