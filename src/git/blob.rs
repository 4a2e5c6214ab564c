//! Reads and hashes blobs.

use gix::odb::Header;

use super::object_id::{from_gix, to_gix};
use super::open::ObjectFormat;
use super::reader::{MAX_OBJECT_BYTES, ObjectError, ObjectReader, kind_name};
use crate::model::{BlobId, chain};

/// The result of reading a blob.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BlobContent {
    /// The whole content.
    Content(Vec<u8>),
    /// The blob, or the delta base it depends on, exceeds the size limit. Nothing was decompressed.
    TooLarge {
        /// The size of the blob in bytes.
        size: u64,
    },
    /// The blob is not in the repository: a partial clone left it on the remote, or it is lost. It is not fetched.
    Missing,
    /// The object is unreadable or not a blob.
    Damaged,
}

impl ObjectReader {
    /// Reads a blob unless it is larger than `max_bytes` or [`MAX_OBJECT_BYTES`]. A missing or damaged blob is not an
    /// error, so that callers can continue with other blobs.
    pub fn blob(&mut self, id: BlobId, max_bytes: u64) -> Result<BlobContent, ObjectError> {
        match self.blob_or_error(id, max_bytes) {
            Err(ObjectError::Missing { .. }) => Ok(BlobContent::Missing),
            Err(error @ (ObjectError::Damaged { .. } | ObjectError::WrongKind { .. })) => {
                tracing::warn!("{}", chain(&error));
                Ok(BlobContent::Damaged)
            }
            read => read,
        }
    }

    fn blob_or_error(&mut self, id: BlobId, max_bytes: u64) -> Result<BlobContent, ObjectError> {
        let size = match self.blob_size(id)? {
            None => return Ok(BlobContent::Missing),
            Some(size) if size > max_bytes.min(MAX_OBJECT_BYTES) => return Ok(BlobContent::TooLarge { size }),
            Some(size) => size,
        };
        match self.read(id.0, gix::objs::Kind::Blob) {
            Err(ObjectError::BeyondLimit { .. }) => Ok(BlobContent::TooLarge { size }),
            read => Ok(BlobContent::Content(read?)),
        }
    }

    /// Returns true if [`Self::has_blob`] holds for all of these blobs. Looks for a missing one before it reads any.
    pub fn has_blobs(&mut self, ids: &[BlobId], max_bytes: u64) -> bool {
        ids.iter().all(|id| matches!(self.blob_size(*id), Ok(Some(_))))
            && ids.iter().all(|id| self.has_blob(*id, max_bytes))
    }

    /// Returns true if [`Self::blob`] now returns the content or size of a blob. Used to retry blobs that were missing
    /// or damaged.
    pub fn has_blob(&mut self, id: BlobId, max_bytes: u64) -> bool {
        let found = self.blob(id, max_bytes);
        matches!(found, Ok(BlobContent::Content(_) | BlobContent::TooLarge { .. }))
    }

    /// Returns the size of a blob in bytes without decompressing it. Returns `None` if the blob is not in the
    /// repository.
    pub fn blob_size(&mut self, id: BlobId) -> Result<Option<u64>, ObjectError> {
        let header = self
            .repo
            .objects
            .try_header(&to_gix(id.0))
            .map_err(|source| ObjectError::Damaged {
                id: id.0,
                source: Box::new(source),
            })?;
        let Some(header) = header else {
            self.note_missing();
            return Ok(None);
        };
        if header.kind() != gix::objs::Kind::Blob {
            return Err(ObjectError::WrongKind {
                id: id.0,
                found: header.kind().to_string(),
                expected: kind_name(gix::objs::Kind::Blob),
            });
        }
        Ok(Some(header.size()))
    }
}

/// Computes the id of a blob with the content `bytes`.
pub fn hash_blob(format: ObjectFormat, bytes: &[u8]) -> BlobId {
    let kind = match format {
        ObjectFormat::Sha1 => gix::hash::Kind::Sha1,
        ObjectFormat::Sha256 => gix::hash::Kind::Sha256,
    };
    let id = gix::objs::compute_hash(kind, gix::objs::Kind::Blob, bytes)
        .expect("hashing fails only for input that was crafted to collide under SHA-1");
    BlobId(from_gix(&id))
}
