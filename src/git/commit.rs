//! Reads and parses commits.

use std::io;

use bstr::{BString, ByteSlice};

use super::command::{CommandError, git};
use super::object_id::from_gix;
use super::open::Repository;
use super::reader::{ObjectError, ObjectReader};
use super::small_file::read_small_file;
use crate::model::{CommitId, Oid, TreeId};

/// A decoded commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommitInfo {
    /// The root tree.
    pub tree: TreeId,
    /// The parents, in order. At a shallow boundary, these commits are not in the repository.
    pub parents: Vec<CommitId>,
    /// The person who wrote the change.
    pub author: Person,
    /// The person who created the commit.
    pub committer: Person,
    /// The message, in the encoding of the commit.
    pub message: BString,
    /// The `encoding` header. The encoding is UTF-8 if absent.
    pub encoding: Option<BString>,
}

/// A person with a time, as in the author and committer headers. Fields that cannot be parsed are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Person {
    /// The name, as stored.
    pub name: BString,
    /// The email address, as stored.
    pub email: BString,
    /// The time in seconds since 1970-01-01T00:00Z.
    pub time: i64,
    /// Offset from UTC in seconds, positive to the east.
    pub utc_offset: i32,
}

impl Repository {
    /// Returns the merge base of two commits as `git merge-base` selects it. Returns `None` if the commits have no
    /// common ancestor.
    pub fn merge_base(&self, one: CommitId, other: CommitId) -> Result<Option<CommitId>, CommandError> {
        match git(self, "merge-base", &[one.to_string(), other.to_string()]) {
            Ok(printed) => {
                let id = printed.to_str().ok().and_then(|text| Oid::from_hex(text.trim()).ok());
                Ok(id.map(CommitId))
            }
            // git prints nothing if there is no merge base.
            Err(CommandError::Failed { message, .. }) if message.is_empty() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns the commits at the boundary of a shallow clone, sorted by id. Their parents are missing. Returns an
    /// empty list for other clones.
    pub fn shallow_commits(&self) -> io::Result<Vec<CommitId>> {
        let text = read_small_file(&self.common_dir().join("shallow"))?.unwrap_or_default();
        let mut commits = listed_commits(&text);
        commits.sort_unstable();
        Ok(commits)
    }
}

/// Parses a list of commit ids, one per line. Skips invalid lines.
pub(super) fn listed_commits(text: &[u8]) -> Vec<CommitId> {
    let ids = text
        .lines()
        .filter_map(|line| Oid::from_hex(line.to_str().ok()?.trim()).ok());
    ids.map(CommitId).collect()
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
        let decoded = decoded.or_else(|error| parse_malformed_commit(&bytes).ok_or(error));
        self.recycle(bytes);
        decoded.map_err(|source| ObjectError::Damaged {
            id: id.0,
            source: Box::new(source),
        })
    }
}

/// Parses a commit whose headers are malformed, for example an invalid time or a name without an address. Old git
/// versions wrote such commits, and git can still read them.
fn parse_malformed_commit(bytes: &[u8]) -> Option<CommitInfo> {
    let (headers, message) = bytes.split_once_str(b"\n\n").unwrap_or((bytes, b""));
    let values = |name: &'static [u8]| {
        let lines = headers
            .lines()
            .filter_map(move |line| line.strip_prefix(name)?.strip_prefix(b" "));
        lines.collect::<Vec<&[u8]>>()
    };
    let oid = |text: &[u8]| Oid::from_hex(text.to_str().ok()?.trim()).ok();
    let someone = |name: &'static [u8]| {
        values(name)
            .first()
            .map(|line| parse_malformed_person(line))
            .unwrap_or_default()
    };
    Some(CommitInfo {
        tree: TreeId(oid(values(b"tree").first()?)?),
        parents: values(b"parent")
            .into_iter()
            .map(|text| oid(text).map(CommitId))
            .collect::<Option<_>>()?,
        author: someone(b"author"),
        committer: someone(b"committer"),
        message: message.into(),
        encoding: values(b"encoding").first().map(|name| BString::from(*name)),
    })
}

fn parse_malformed_person(line: &[u8]) -> Person {
    let (name, rest) = line.split_once_str(b"<").unwrap_or((line, b""));
    let (email, clock) = rest.rsplit_once_str(b">").unwrap_or((rest, b""));
    let seconds = clock
        .trim()
        .split_str(b" ")
        .next()
        .and_then(|text| text.to_str().ok()?.parse().ok());
    Person {
        name: name.trim().into(),
        email: email.trim().into(),
        time: seconds.unwrap_or_default(),
        utc_offset: 0,
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
