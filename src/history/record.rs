//! Data types for the record of a commit.

use bstr::{BString, ByteSlice};

use crate::git::{FileMode, Person, TreeEntry};
use crate::model::{CommitId, Oid, RepoPath};

/// A commit with its changes, to be recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommitData {
    /// The id of the commit.
    pub id: CommitId,
    /// The parents whose commits are part of the recorded history.
    pub parents: Vec<CommitId>,
    /// The author of the change.
    pub author: Person,
    /// The person who created the commit.
    pub committer: Person,
    /// The message in the encoding of the commit.
    pub message: BString,
    /// The `encoding` header.
    pub encoding: Option<BString>,
    /// The reason why parents of the commit are not recorded, or [`Boundary::None`].
    pub boundary: Boundary,
    /// True if the recorded changes may be incomplete. Either a tree is not in the repository, so the changes are
    /// unknown, or a file is not in the repository, so renames may be missing.
    pub is_unknown: bool,
    /// The changes from the first parent, ascending by path.
    pub changes: Vec<Change>,
}

/// The reason why parents of a commit are not recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Boundary {
    /// All parents are recorded, or the commit has none.
    #[default]
    None = 0,
    /// The commit is at the boundary of a shallow clone. git also treats it as a root.
    Shallow = 1,
    /// A parent is not in the repository.
    Missing = 2,
    /// The limit on the number of recorded commits excluded a parent.
    Limit = 3,
}

impl Boundary {
    /// Returns the boundary with this number, as stored on disk.
    pub fn from_number(number: u8) -> Option<Self> {
        [Self::None, Self::Shallow, Self::Missing, Self::Limit]
            .into_iter()
            .find(|known| *known as u8 == number)
    }

    /// Returns the name of the boundary for output.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Shallow => "shallow",
            Self::Missing => "missing",
            Self::Limit => "limit",
        }
    }
}

/// The entry of a path in a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Entry {
    /// The file mode.
    pub mode: FileMode,
    /// The id of the blob, or of the commit for a submodule.
    pub oid: Oid,
}

impl Entry {
    /// Returns the entry of a file that was not read, whose blob is thus unknown: an id of zeros, as git prints it.
    pub fn unread(mode: FileMode) -> Self {
        let oid = Oid::from_bytes(&[0; 20]).expect("twenty bytes are an id");
        Self { mode, oid }
    }

    /// Returns the id of the blob, unless the file was not read.
    pub fn known_oid(&self) -> Option<Oid> {
        Some(self.oid).filter(|oid| *oid != Self::unread(self.mode).oid)
    }

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

/// The change of a path between the first parent of a commit and the commit. `old` or `new` may be `None`, but not
/// both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The path of the file.
    pub path: RepoPath,
    /// The entry in the first parent.
    pub old: Option<Entry>,
    /// The entry in the commit.
    pub new: Option<Entry>,
    /// The old path, if the commit renamed the file.
    pub origin: Option<Origin>,
    /// True if the commit is a merge and the content differs from every parent.
    pub is_combined: bool,
}

/// The old path of a renamed file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The path in the first parent.
    pub path: RepoPath,
    /// The similarity of both versions in percent; 100 if their content is equal.
    pub similarity: u8,
}

/// A change of a path, with the number of the commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathChange {
    /// The number of the commit.
    pub commit: u32,
    /// The entry in the first parent.
    pub old: Option<Entry>,
    /// The entry in the commit.
    pub new: Option<Entry>,
    /// The old path, if the commit renamed the file.
    pub origin: Option<Origin>,
    /// True if the commit is a merge and the content differs from every parent.
    pub is_combined: bool,
}

/// The name and email address of a person, as recorded in a commit.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Who {
    /// The name.
    pub name: BString,
    /// The email address.
    pub email: BString,
}

/// The metadata and the subject of a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommitHead {
    /// The id of the commit.
    pub id: CommitId,
    /// The author of the change.
    pub author: Who,
    /// The person who created the commit.
    pub committer: Who,
    /// The author's time, in seconds since 1970.
    pub author_time: i64,
    /// The author's offset from UTC in seconds, positive to the east.
    pub author_offset: i32,
    /// The committer's time, in seconds since 1970.
    pub commit_time: i64,
    /// The first paragraph of the message, joined to one line.
    pub subject: String,
    /// The reason why parents of the commit are not recorded, or [`Boundary::None`].
    pub boundary: Boundary,
    /// True if the recorded changes may be incomplete.
    pub is_unknown: bool,
}

/// Decodes a message. Uses Latin-1 if the commit names that encoding. Otherwise uses UTF-8 and replaces invalid bytes.
pub fn message_text(bytes: &[u8], encoding: Option<&[u8]>) -> String {
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
