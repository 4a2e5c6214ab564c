//! One thread's access to objects, with the buffers and caches that make it fast.

use gix::prelude::Find;

use super::Cause;
use super::object_id::{from_gix, to_gix};
use crate::model::Oid;

/// Reads objects. One per thread: making one is cheap, sharing one is not possible.
///
/// One that lives long sees objects that are added meanwhile; except that in a partial clone, after the first object that
/// was missing, new packs are no longer looked for: with every blob missing, that would be most of the work.
pub struct ObjectReader {
    pub(super) repo: gix::Repository,
    is_partial: bool,
    spare: Vec<Vec<u8>>,
}

/// Why an object could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ObjectError {
    /// Not there: left with the remote (partial clone), beyond a shallow boundary, or removed by `git gc`.
    #[error("{kind} {id} is not in this repository")]
    Missing {
        /// The object.
        id: Oid,
        /// What it should have been.
        kind: &'static str,
    },
    /// There, but another kind of object than the caller asked for.
    #[error("object {id} is a {found}, not a {expected}")]
    WrongKind {
        /// The object.
        id: Oid,
        /// What it is.
        found: String,
        /// What was asked for.
        expected: &'static str,
    },
    /// There, but unreadable.
    #[error("object {id} cannot be read")]
    Damaged {
        /// The object.
        id: Oid,
        /// What went wrong.
        #[source]
        source: Cause,
    },
    /// A tree nested deeper than git itself accepts, or with more files than any honest one has.
    #[error("tree {id} is beyond the limit of {limit} {what}")]
    BeyondLimit {
        /// The tree that was being read.
        id: Oid,
        /// What there is too much of.
        what: &'static str,
        /// How much is accepted.
        limit: usize,
    },
}

impl ObjectReader {
    pub(super) fn new(repo: gix::Repository, is_partial: bool) -> Self {
        Self {
            repo,
            is_partial,
            spare: Vec::new(),
        }
    }

    /// Keeps up to `max_bytes` of decoded objects for re-use: worth it when the trees of neighbouring commits are
    /// compared one after the other, a loss when every object is read once.
    pub fn keep_decoded(&mut self, max_bytes: usize) {
        self.repo.object_cache_size(max_bytes);
    }

    pub(super) fn note_missing(&mut self) {
        if self.is_partial {
            self.repo.objects.refresh_never();
        }
    }

    pub(super) fn object_hash(&self) -> gix::hash::Kind {
        self.repo.object_hash()
    }

    /// The bytes of the object, which must be of the given kind. Hand the buffer back to [`Self::recycle`].
    pub(super) fn read(&mut self, id: Oid, expected: gix::objs::Kind) -> Result<Vec<u8>, ObjectError> {
        let mut buffer = self.spare.pop().unwrap_or_default();
        let found = match self.repo.objects.try_find(&to_gix(id), &mut buffer) {
            Ok(Some(data)) => data.kind,
            Ok(None) if is_empty_tree(id, expected) => return Ok(Vec::new()),
            Ok(None) => {
                return Err(ObjectError::Missing {
                    id,
                    kind: kind_name(expected),
                });
            }
            Err(source) => {
                return Err(ObjectError::Damaged {
                    id,
                    source: Box::new(source),
                });
            }
        };
        if found != expected {
            return Err(ObjectError::WrongKind {
                id,
                found: found.to_string(),
                expected: kind_name(expected),
            });
        }
        Ok(buffer)
    }

    pub(super) fn recycle(&mut self, mut buffer: Vec<u8>) {
        buffer.clear();
        self.spare.push(buffer);
    }
}

pub(super) fn kind_name(kind: gix::objs::Kind) -> &'static str {
    match kind {
        gix::objs::Kind::Tree => "tree",
        gix::objs::Kind::Blob => "blob",
        gix::objs::Kind::Commit => "commit",
        gix::objs::Kind::Tag => "tag",
    }
}

/// git knows the empty tree without storing it.
fn is_empty_tree(id: Oid, expected: gix::objs::Kind) -> bool {
    let kinds = [gix::hash::Kind::Sha1, gix::hash::Kind::Sha256];
    expected == gix::objs::Kind::Tree
        && kinds
            .iter()
            .any(|kind| from_gix(&gix::ObjectId::empty_tree(*kind)) == id)
}
