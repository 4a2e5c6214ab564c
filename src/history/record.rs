//! What is known of a commit.

use bstr::{BString, ByteSlice};

use crate::git::{FileMode, Person, TreeEntry};
use crate::model::{CommitId, Oid, RepoPath};

/// A commit on its way into a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommitData {
    /// Its id.
    pub id: CommitId,
    /// Its parents, as far as they belong to the recorded history.
    pub parents: Vec<CommitId>,
    /// Who wrote the change.
    pub author: Person,
    /// Who made the commit.
    pub committer: Person,
    /// The message in the commit's own encoding.
    pub message: BString,
    /// The `encoding` header.
    pub encoding: Option<BString>,
    /// Why parents of it are not recorded, if some are not.
    pub boundary: Boundary,
    /// Whether its changes could not be told, because a tree is not in the repository.
    pub is_unknown: bool,
    /// What it changed against its first parent, ascending by path.
    pub changes: Vec<Change>,
}

/// Whether the record of a commit goes on to its parents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Boundary {
    /// All parents are recorded; a root has none.
    #[default]
    None = 0,
    /// A shallow clone ends here: git too takes it for a root.
    Shallow = 1,
    /// A parent is not in the repository.
    Missing = 2,
    /// No more commits were to be recorded.
    Limit = 3,
}

impl Boundary {
    /// The boundary with this stored number.
    pub fn from_number(number: u8) -> Option<Self> {
        [Self::None, Self::Shallow, Self::Missing, Self::Limit]
            .into_iter()
            .find(|known| *known as u8 == number)
    }

    /// Its name in answers.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Shallow => "shallow",
            Self::Missing => "missing",
            Self::Limit => "limit",
        }
    }
}

/// What stands at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Entry {
    /// What it is.
    pub mode: FileMode,
    /// Of its blob, or of the commit if it is a submodule.
    pub oid: Oid,
}

impl Entry {
    /// Whether it is an ordinary file, no link and no submodule.
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

/// A path that a commit changed, against its first parent. At least one of `old` and `new` is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The path.
    pub path: RepoPath,
    /// What stood there before.
    pub old: Option<Entry>,
    /// What stands there now.
    pub new: Option<Entry>,
    /// Where an added file was before.
    pub origin: Option<Origin>,
    /// Whether this is a merge whose result differs from every parent.
    pub is_combined: bool,
}

/// Where an added file comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// Its path in the first parent.
    pub path: RepoPath,
    /// How much of it stayed, in percent; 100 is all.
    pub similarity: u8,
}

/// A change of one path, with the number of its commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathChange {
    /// The commit's number.
    pub commit: u32,
    /// What stood there before.
    pub old: Option<Entry>,
    /// What stands there now.
    pub new: Option<Entry>,
    /// Where an added file was before.
    pub origin: Option<Origin>,
    /// Whether this is a merge whose result differs from every parent.
    pub is_combined: bool,
}

/// Name and address as written.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Who {
    /// The name.
    pub name: BString,
    /// The address.
    pub email: BString,
}

/// Who, when and what for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommitHead {
    /// Its id.
    pub id: CommitId,
    /// Who wrote the change.
    pub author: Who,
    /// Who made the commit.
    pub committer: Who,
    /// Seconds since 1970 of the author's clock.
    pub author_time: i64,
    /// Seconds east of UTC of the author's clock.
    pub author_offset: i32,
    /// Seconds since 1970 of the committer's clock.
    pub commit_time: i64,
    /// The first paragraph of the message, on one line.
    pub subject: String,
    /// Whether its record goes on to its parents.
    pub boundary: Boundary,
    /// Whether its changes could not be told.
    pub is_unknown: bool,
}

/// Bytes of a message as text: in the encoding that the commit names if it is Latin-1, else UTF-8, invalid bytes replaced.
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
