//! What an artifact is filed under, and why one can be empty.

use std::fmt;

use crate::model::{BlobId, Lang};

/// Names an artifact within a recipe: the blob's bytes and the language that they are read in. A blob at two paths of one
/// language is extracted once; one that is C here and C++ there twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ArtifactKey {
    /// The blob.
    pub blob: BlobId,
    /// The language.
    pub lang: Lang,
}

/// What became of a blob.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Status {
    /// It was extracted.
    Indexed,
    /// Its content is of a kind that is left out.
    Skipped(SkipReason),
}

/// Why a file is not searched by content. The numbers are stored; they never change their meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum SkipReason {
    /// Not text: a NUL byte near the start.
    Binary = 1,
    /// Above the size limit.
    TooLarge = 2,
    /// A Git LFS pointer stands in for the content.
    LfsPointer = 3,
    /// Says of itself that a program wrote it.
    Generated = 4,
    /// Code without line breaks.
    Minified = 5,
    /// A copy of somebody else's code.
    Vendored = 6,
    /// A dependency lock file.
    LockFile = 7,
    /// Matched by `.codescoutignore`.
    Ignored = 8,
    /// A symbolic link: its target's path is data, not followed.
    Symlink = 9,
    /// Another repository.
    Submodule = 10,
    /// The object is not in this clone, or damaged.
    Missing = 11,
    /// The file on disk cannot be read.
    Unreadable = 12,
}

impl SkipReason {
    /// Every reason, by number.
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

    /// The reason with this number.
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
