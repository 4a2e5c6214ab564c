//! Reads objects on one thread, with reusable buffers and caches.

use gix::odb::pack::cache::lru::MemoryCappedHashmap;
use gix::prelude::Find;
use parking_lot::Mutex;

use std::path::Path;
use std::sync::Arc;

use super::cause::Cause;
use super::object_id::{from_gix, to_gix};
use super::open::Places;
use super::tree::MAX_ENTRIES;
use crate::model::{ErrorKind, Explain, Explanation, Hint, Oid};

/// Size limit of the cache of delta bases.
const MAX_BASES_BYTES: usize = 32 << 20;

/// Reads objects. Each thread needs its own reader, which is cheap to create.
///
/// A reader finds objects that are added during its lifetime, except in a partial clone: there, it stops looking for
/// new packs after the first missing object. Otherwise it would spend most of its time on that when every blob is
/// missing.
pub struct ObjectReader {
    pub(super) repo: gix::Repository,
    places: Arc<Places>,
    /// Limit on the number of entries in a tree walk.
    pub(super) max_entries: usize,
    spare: Vec<Vec<u8>>,
}

/// An error from reading an object.
#[derive(Debug, thiserror::Error)]
pub enum ObjectError {
    /// The object is missing: a partial clone left it on the remote, it is beyond a shallow boundary, or `git gc`
    /// removed it.
    #[error("{kind} {id} is not in this repository")]
    Missing {
        /// The id of the object.
        id: Oid,
        /// The expected type.
        kind: &'static str,
    },
    /// The object has an unexpected type.
    #[error("object {id} is a {found}, not a {expected}")]
    WrongKind {
        /// The id of the object.
        id: Oid,
        /// The actual type.
        found: String,
        /// The expected type.
        expected: &'static str,
    },
    /// The object cannot be decoded.
    #[error("object {id} cannot be read")]
    Damaged {
        /// The id of the object.
        id: Oid,
        /// The underlying error.
        #[source]
        source: Cause,
    },
    /// A tree that is nested deeper than git allows or has more entries than any real tree, or an object above the size
    /// limit.
    #[error("object {id} has more than {limit} {what}")]
    BeyondLimit {
        /// The id of the object.
        id: Oid,
        /// The unit of the limit.
        what: &'static str,
        /// The limit.
        limit: usize,
    },
}

impl Explain for ObjectError {
    fn explain(&self) -> Explanation {
        match self {
            Self::Missing { .. } => Explanation::of_kind(ErrorKind::ObjectMissing),
            Self::BeyondLimit { .. } => Explanation::hinting(Hint::each(
                "use codescout read PATH --ref REVISION, which reads one file without listing the tree; so do \
                 outline, blame and diff",
                "use read with a path and a ref, which reads one file without listing the tree; so do blame and diff",
            )),
            _ => Explanation::default(),
        }
    }
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

    /// Enables a cache of decoded objects, up to `max_bytes`. It speeds up comparing the trees of consecutive commits,
    /// but slows down reading each object once.
    pub fn keep_decoded(&mut self, max_bytes: usize) {
        self.repo.object_cache_size(max_bytes);
    }

    /// Enables a cache of delta bases. It speeds up reading versions of one file one after another.
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

    /// Returns the bytes of an object, which must have the type `expected`. Pass the buffer to [`Self::recycle`] after
    /// use.
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

/// Size limit of objects that are read. Larger files are listed, but their content is not searched. GitHub accepts no
/// larger files (its limit is 100 MB).
pub const MAX_OBJECT_BYTES: u64 = 128 << 20;

/// Limit on the memory for decompressing an object, which consists of the object, its delta base and the delta.
const MAX_UNPACKING_BYTES: usize = 3 * MAX_OBJECT_BYTES as usize;

/// Reads objects that need more memory than each thread may use. Reads one at a time per repository.
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
        // The store only reads, so it is consistent even if another thread panicked.
        let mut store = self.store.lock();
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
        // The decompression buffer is larger than the object.
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

/// Returns true for the id of the empty tree, which git does not need to store.
fn is_empty_tree(id: Oid, expected: gix::objs::Kind) -> bool {
    let kinds = [gix::hash::Kind::Sha1, gix::hash::Kind::Sha256];
    expected == gix::objs::Kind::Tree
        && kinds
            .iter()
            .any(|kind| from_gix(&gix::ObjectId::empty_tree(*kind)) == id)
}
