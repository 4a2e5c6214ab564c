//! Commits.

use bstr::BString;

use super::object_id::from_gix;
use super::reader::{ObjectError, ObjectReader};
use crate::model::{CommitId, TreeId};

/// A commit as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommitInfo {
    /// Its root tree.
    pub tree: TreeId,
    /// In order; those of a shallow boundary are named here although they are not in the repository.
    pub parents: Vec<CommitId>,
    /// Who wrote the change.
    pub author: Person,
    /// Who made the commit.
    pub committer: Person,
    /// The message in the commit's own encoding.
    pub message: BString,
    /// The `encoding` header; UTF-8 if absent.
    pub encoding: Option<BString>,
}

/// Who did something, and when. A header that cannot be read leaves its fields empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Person {
    /// The name as written.
    pub name: BString,
    /// The address as written.
    pub email: BString,
    /// Seconds since 1970-01-01T00:00Z.
    pub time: i64,
    /// Seconds east of UTC of the clock on the wall.
    pub utc_offset: i32,
}

impl ObjectReader {
    /// Reads a commit.
    pub fn commit(&mut self, id: CommitId) -> Result<CommitInfo, ObjectError> {
        let bytes = self.read(id.0, gix::objs::Kind::Commit)?;
        let decoded = gix::objs::CommitRef::from_bytes(&bytes, self.object_hash()).map(|commit| CommitInfo {
            tree: TreeId(from_gix(&commit.tree())),
            parents: commit.parents().map(|parent| CommitId(from_gix(&parent))).collect(),
            author: person(commit.author().ok()),
            committer: person(commit.committer().ok()),
            message: commit.message.to_owned(),
            encoding: commit.encoding.map(ToOwned::to_owned),
        });
        self.recycle(bytes);
        decoded.map_err(|source| ObjectError::Damaged {
            id: id.0,
            source: Box::new(source),
        })
    }
}

fn person(signature: Option<gix::actor::SignatureRef<'_>>) -> Person {
    let Some(signature) = signature.map(|signature| signature.trim()) else {
        return Person::default();
    };
    let time = signature.time().unwrap_or_default();
    Person {
        name: signature.name.to_owned(),
        email: signature.email.to_owned(),
        time: time.seconds,
        utc_offset: time.offset,
    }
}
