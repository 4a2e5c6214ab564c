//! The keys of artifacts, and the indexing status of blobs.

use std::fmt;

use crate::model::{BlobId, Lang};

/// Identifies an artifact of a recipe by the blob and the language of its path. A blob is extracted once for all paths
/// of the same language. If it is C at one path and C++ at another, it is extracted twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ArtifactKey {
    /// The id of the blob.
    pub blob: BlobId,
    /// The language of the path.
    pub lang: Lang,
}

/// The indexing status of a blob.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Status {
    /// The blob was extracted.
    Indexed,
    /// The blob was not extracted, for the given reason.
    Skipped(SkipReason),
}

/// The reason why a file's content is not indexed. The numbers are stored on disk, so their meaning must never change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum SkipReason {
    /// The content is not text: it has a NUL byte near the start.
    Binary = 1,
    /// The content exceeds the size limit.
    TooLarge = 2,
    /// The blob is a Git LFS pointer. The actual content is stored elsewhere.
    LfsPointer = 3,
    /// A marker in the content says that the file was generated.
    Generated = 4,
    /// The content is code without line breaks.
    Minified = 5,
    /// The file is a copy of third-party code.
    Vendored = 6,
    /// The file is the lock file of a package manager.
    LockFile = 7,
    /// A pattern in `.codescoutignore` matches the file.
    Ignored = 8,
    /// The file is a symbolic link, whose blob contains only the path of the target.
    Symlink = 9,
    /// The entry is a submodule.
    Submodule = 10,
    /// The blob is not in this clone, or is damaged.
    Missing = 11,
    /// The file on disk cannot be read.
    Unreadable = 12,
}

impl SkipReason {
    /// All reasons, ordered by number.
    pub const ALL: [Self; 12] = [
        Self::Binary,
        Self::TooLarge,
        Self::LfsPointer,
        Self::Generated,
        Self::Minified,
        Self::Vendored,
        Self::LockFile,
        Self::Ignored,
        Self::Symlink,
        Self::Submodule,
        Self::Missing,
        Self::Unreadable,
    ];

    /// Returns the reason with this number.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| *reason as u8 == number)
    }
}

impl fmt::Display for SkipReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Binary => "binary",
            Self::TooLarge => "too_large",
            Self::LfsPointer => "lfs_pointer",
            Self::Generated => "generated",
            Self::Minified => "minified",
            Self::Vendored => "vendored",
            Self::LockFile => "lock_file",
            Self::Ignored => "ignored",
            Self::Symlink => "symlink",
            Self::Submodule => "submodule",
            Self::Missing => "missing",
            Self::Unreadable => "unreadable",
        })
    }
}
