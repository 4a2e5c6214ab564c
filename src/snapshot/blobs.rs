//! Reads blobs from git or from memory.

use std::collections::HashMap;

use crate::artifact::{ArtifactKey, SkipReason};
use crate::git::{BlobContent, ObjectReader, Repository};
use crate::index::{BlobReader, BlobSource, SourceBlob};
use crate::model::BlobId;

/// The blobs of a repository and, optionally, of files that git does not have yet.
#[derive(Clone, Copy)]
pub struct Blobs<'a> {
    repository: &'a Repository,
    unsaved: Option<&'a HashMap<BlobId, Vec<u8>>>,
    max_bytes: u64,
}

/// Reads [`Blobs`]. Each thread needs its own reader.
pub struct BlobsReader<'a> {
    reader: ObjectReader,
    unsaved: Option<&'a HashMap<BlobId, Vec<u8>>>,
    max_bytes: u64,
}

impl<'a> Blobs<'a> {
    /// Returns the blobs of a repository. A reader does not unpack blobs larger than `max_bytes`.
    pub fn of_git(repository: &'a Repository, max_bytes: u64) -> Self {
        Self {
            repository,
            unsaved: None,
            max_bytes,
        }
    }

    /// Adds the blobs in `unsaved`, which git does not have.
    pub fn with_unsaved(self, unsaved: &'a HashMap<BlobId, Vec<u8>>) -> Self {
        Self {
            unsaved: Some(unsaved),
            ..self
        }
    }
}

impl<'a> BlobSource for Blobs<'a> {
    type Reader = BlobsReader<'a>;

    fn reader(&self) -> BlobsReader<'a> {
        BlobsReader {
            reader: self.repository.reader(),
            unsaved: self.unsaved,
            max_bytes: self.max_bytes,
        }
    }
}

impl BlobReader for BlobsReader<'_> {
    fn read(&mut self, key: ArtifactKey) -> SourceBlob {
        if let Some(bytes) = self.unsaved.and_then(|unsaved| unsaved.get(&key.blob)) {
            return SourceBlob::Content(bytes.clone());
        }
        match self.reader.blob(key.blob, self.max_bytes) {
            Ok(BlobContent::Content(bytes)) => SourceBlob::Content(bytes),
            Ok(BlobContent::TooLarge { .. }) => SourceBlob::Skipped(SkipReason::TooLarge),
            Ok(BlobContent::Missing | BlobContent::Damaged) => SourceBlob::Absent,
            Err(error) => {
                tracing::warn!(blob = %key.blob, %error, "cannot read blob");
                SourceBlob::Absent
            }
        }
    }
}
