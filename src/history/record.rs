//! Defines the record of a commit.

use bstr::{BString, ByteSlice};

use crate::git::{FileMode, Person, TreeEntry};
use crate::model::{CommitId, Oid, RepoPath};

/// A commit to be recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommitData {
    /// The id of the commit.
    pub id: CommitId,
    /// The parents within the recorded history.
    pub parents: Vec<CommitId>,
    /// The author.
    pub author: Person,
    /// The committer.
    pub committer: Person,
    /// The message in the commit's own encoding.
    pub message: BString,
    /// The `encoding` header.
    pub encoding: Option<BString>,
    /// The reason why parents are not recorded, if any.
    pub boundary: Boundary,
    /// True if its changes are unknown because a tree is not in the repository, or may lack renames because a file is
    /// not.
    pub is_unknown: bool,
    /// The changes against the first parent, ascending by path.
    pub changes: Vec<Change>,
}

/// The reason why the parents of a commit are not recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Boundary {
    /// All parents are recorded; a root has none.
    #[default]
    None = 0,
    /// A shallow clone ends here. Git too treats the commit as a root.
    Shallow = 1,
    /// A parent is not in the repository.
    Missing = 2,
    /// The limit on recorded commits was reached.
    Limit = 3,
}

impl Boundary {
    /// Returns the boundary with this stored number.
    pub fn from_number(number: u8) -> Option<Self> {
        [Self::None, Self::Shallow, Self::Missing, Self::Limit]
            .into_iter()
            .find(|known| *known as u8 == number)
    }

    /// The name in output.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Shallow => "shallow",
            Self::Missing => "missing",
            Self::Limit => "limit",
        }
    }
}

/// A tree entry at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Entry {
    /// The file mode.
    pub mode: FileMode,
    /// The id of the blob, or of the commit for a submodule.
    pub oid: Oid,
}

impl Entry {
    /// Returns true for a regular file, and false for a symbolic link or a submodule.
    pub fn is_file(&self) -> bool {
        matches!(self.mode, FileMode::File | FileMode::Executable)
    }
}

impl From<TreeEntry> for Entry {
    fn from(entry: TreeEntry) -> Self {
        Self {
            mode: entry.mode,
            oid: entry.oid,
        }
    }
}

/// The change of a path in a commit, against its first parent. At least one of `old` and `new` is `Some`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The path.
    pub path: RepoPath,
    /// The entry before.
    pub old: Option<Entry>,
    /// The entry after.
    pub new: Option<Entry>,
    /// The origin of an added file.
    pub origin: Option<Origin>,
    /// True if this is a merge whose result differs from every parent.
    pub is_combined: bool,
}

/// The file from which an added file was renamed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The path in the first parent.
    pub path: RepoPath,
    /// The similarity in percent; 100 for equal content.
    pub similarity: u8,
}

/// A change of one path, with the number of its commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathChange {
    /// The number of the commit.
    pub commit: u32,
    /// The entry before.
    pub old: Option<Entry>,
    /// The entry after.
    pub new: Option<Entry>,
    /// The origin of an added file.
    pub origin: Option<Origin>,
    /// True if this is a merge whose result differs from every parent.
    pub is_combined: bool,
}

/// A name and address as recorded in a commit.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Who {
    /// The name.
    pub name: BString,
    /// The address.
    pub email: BString,
}

/// The header fields and subject of a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommitHead {
    /// The id of the commit.
    pub id: CommitId,
    /// The author.
    pub author: Who,
    /// The committer.
    pub committer: Who,
    /// The author's time, in seconds since 1970.
    pub author_time: i64,
    /// The author's offset from UTC, in seconds east.
    pub author_offset: i32,
    /// The committer's time, in seconds since 1970.
    pub commit_time: i64,
    /// The first paragraph of the message, on one line.
    pub subject: String,
    /// The reason why parents are not recorded, if any.
    pub boundary: Boundary,
    /// True if its changes may be incomplete.
    pub is_unknown: bool,
}

/// Decodes a message: as Latin-1 if the commit names that encoding, else as UTF-8 with invalid bytes replaced.
pub(super) fn message_text(bytes: &[u8], encoding: Option<&[u8]>) -> String {
    let is_latin1 = encoding.is_some_and(|name| {
        let name = name.to_ascii_lowercase();
        [
            &b"iso-8859-1"[..],
            b"iso8859-1",
            b"latin1",
            b"latin-1",
            b"iso-8859-15",
            b"iso8859-15",
            b"cp1252",
        ]
        .contains(&name.as_slice())
    });
    if is_latin1 {
        bytes.iter().map(|byte| char::from(*byte)).collect()
    } else {
        bytes.to_str_lossy().into_owned()
    }
}
