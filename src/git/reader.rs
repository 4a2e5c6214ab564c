//! One thread's access to objects, with the buffers and caches that make it fast.

use gix::odb::pack::cache::lru::MemoryCappedHashmap;
use gix::prelude::Find;

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use super::Cause;
use super::object_id::{from_gix, to_gix};
use super::open::Places;
use super::tree::MAX_ENTRIES;
use crate::model::Oid;

/// How much of what others are stored as differences to is kept.
const MAX_BASES_BYTES: usize = 32 << 20;

/// Reads objects. One per thread: making one is cheap, sharing one is not possible.
///
/// One that lives long sees objects that are added meanwhile; except that in a partial clone, after the first object that
/// was missing, new packs are no longer looked for: with every blob missing, that would be most of the work.
pub struct ObjectReader {
    pub(super) repo: gix::Repository,
    places: Arc<Places>,
    /// How many entries a walk through trees may meet.
    pub(super) max_entries: usize,
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
    /// A tree nested deeper than git itself accepts, or with more entries than any honest one has; an object of more bytes than are
    /// read at once.
    #[error("object {id} has more than {limit} {what}")]
    BeyondLimit {
        /// The object that was being read.
        id: Oid,
        /// What there is too much of.
        what: &'static str,
        /// How much is accepted.
        limit: usize,
    },
}

impl ObjectReader {
    pub(super) fn new(repo: gix::Repository, places: Arc<Places>) -> Self {
        Self {
            repo,
            places,
            max_entries: MAX_ENTRIES,
            spare: Vec::new(),
        }
    }

    /// Keeps up to `max_bytes` of decoded objects for re-use: worth it when the trees of neighbouring commits are
    /// compared one after the other, a loss when every object is read once.
    pub fn keep_decoded(&mut self, max_bytes: usize) {
        self.repo.object_cache_size(max_bytes);
    }

    /// Keeps objects that others are stored as differences to: worth it when versions of one file are read one after the
    /// other.
    pub fn keep_bases(&mut self) {
        let cache = || -> Box<gix::odb::cache::PackCache> { Box::new(MemoryCappedHashmap::new(MAX_BASES_BYTES)) };
        self.repo.objects.set_pack_cache(cache);
    }

    pub(super) fn note_missing(&mut self) {
        if self.places.is_partial {
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
            Err(source) if source.is_resource_exhausted() => {
                let objects = self.repo.objects.store_ref().path();
                (self.places.large_objects).read(objects, self.object_hash(), id, &mut buffer)?
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

/// The most bytes of an object that are read; larger files are named in answers and not searched. Every file that GitHub takes is
/// smaller (100 MB).
pub const MAX_OBJECT_BYTES: u64 = 128 << 20;

/// What unpacking an object may allocate at once: itself, what it is stored as a difference to, and the difference.
const MAX_UNPACKING_BYTES: usize = 3 * MAX_OBJECT_BYTES as usize;

/// Reads objects that take more memory than threads may use side by side: one at a time in a repository.
#[derive(Default)]
pub(super) struct LargeObjects {
    store: Mutex<Option<gix::odb::Handle>>,
}

impl LargeObjects {
    fn read(
        &self,
        objects: &Path,
        hash: gix::hash::Kind,
        id: Oid,
        buffer: &mut Vec<u8>,
    ) -> Result<gix::objs::Kind, ObjectError> {
        let damaged = |source: Cause| ObjectError::Damaged { id, source };
        let too_large = ObjectError::BeyondLimit {
            id,
            what: "bytes",
            limit: MAX_OBJECT_BYTES as usize,
        };
        // A panic leaves nothing half done in a store, which only reads.
        let mut store = self.store.lock().unwrap_or_else(PoisonError::into_inner);
        if store.is_none() {
            let options = gix::odb::store::init::Options {
                alloc_limit_bytes: Some(MAX_UNPACKING_BYTES),
                ..Default::default()
            };
            let opened = gix::odb::at_opts(objects, hash, None, options);
            *store = Some(opened.map_err(|source| damaged(source.into()))?);
        }
        let store = store.as_ref().expect("opened above");
        let kind = match store.try_find(&to_gix(id), buffer) {
            Ok(Some(data)) => data.kind,
            Ok(None) => return Err(ObjectError::Missing { id, kind: "object" }),
            Err(source) if source.is_resource_exhausted() => return Err(too_large),
            Err(source) => return Err(damaged(source.into())),
        };
        // What it was unpacked in is larger than the object.
        buffer.shrink_to_fit();
        if buffer.len() as u64 > MAX_OBJECT_BYTES {
            Err(too_large)
        } else {
            Ok(kind)
        }
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
