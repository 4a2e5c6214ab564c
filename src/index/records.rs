//! Exports and imports the records and vectors of blobs. Together with the contents of the blobs, they are sufficient
//! to rebuild an index.

use std::collections::HashMap;
use std::path::Path;

use crate::artifact::{ArtifactFile, ArtifactKey, ArtifactWriter, OpenedBlocks, SkipReason, Status};
use crate::embed::ProfileId;
use crate::extract::Extraction;
use crate::model::Lang;
use crate::sidecar::{Bytes, FileError};

use super::dense::{Quantisation, VectorFile, VectorWriter, WriteError};
use super::segments::Segments;

/// Number of blobs or documents at which a part is complete. Limits the memory for writing and reading a part.
const MAX_PART: usize = 16_384;
/// Limit on the unpacked size of a block. If the size limit of files is larger, that limit applies.
const MAX_BLOCK_BYTES: u64 = 4 << 20;
/// Limit on the unpacked size of a block as a multiple of its packed size. `RATIO_SLACK` is added for very small
/// blocks.
const MAX_RATIO: u64 = 200;
const RATIO_SLACK: u64 = 64 << 10;

/// Imported records and vectors, in parts. Documents are numbered from 0 across all parts.
#[derive(Clone, Debug)]
pub struct Records {
    parts: Vec<Part>,
}

#[derive(Clone, Debug)]
struct Part {
    base_doc: u32,
    artifacts: ArtifactFile,
    vectors: VectorFile,
}

/// The contents of the files of one part.
#[derive(Debug)]
pub struct RecordsData {
    /// Number of blobs.
    pub n_blobs: u32,
    /// Number of documents.
    pub n_docs: u32,
    /// The artifact file.
    pub artifacts: Vec<u8>,
    /// The vector file.
    pub vectors: Vec<u8>,
}

/// An error from reading or exporting records.
#[derive(Debug, thiserror::Error)]
pub enum RecordsError {
    /// A file is unreadable.
    #[error(transparent)]
    File(#[from] FileError),
    /// A vector could not be copied.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// A part does not match the other parts or this build.
    #[error("part {part}: {what}")]
    Unlike {
        /// The number of the part, from 0.
        part: usize,
        /// The property that does not match.
        what: &'static str,
    },
}

/// The properties that all parts must have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordsKind {
    /// The recipe of the artifacts.
    pub recipe: u64,
    /// The embedding profile of the vectors.
    pub profile: ProfileId,
    /// Number of components of each vector.
    pub dim: usize,
    /// The storage format of vectors.
    pub quantisation: Quantisation,
    /// Length of an object id in bytes.
    pub id_bytes: usize,
    /// Size limit of indexed files in bytes.
    pub max_blob_bytes: u64,
}

/// The record of one blob.
#[derive(Debug)]
pub(super) struct RecordedBlob {
    pub(super) lang: Lang,
    pub(super) outcome: Result<Extraction, SkipReason>,
    /// The document numbers of the blob's chunks, in order.
    pub(super) docs: Vec<u32>,
}

impl Records {
    /// Opens the artifact file and the vector file of each part. Does not trust their contents.
    pub fn open(parts: impl IntoIterator<Item = (Bytes, Bytes)>, kind: RecordsKind) -> Result<Self, RecordsError> {
        let mut opened: Vec<Part> = Vec::new();
        let mut base_doc = 0u32;
        for (number, (artifacts, vectors)) in parts.into_iter().enumerate() {
            let unlike = |what| RecordsError::Unlike { part: number, what };
            let artifacts = ArtifactFile::from_bytes(Path::new("records"), artifacts)?;
            let vectors = VectorFile::from_bytes(Path::new("vectors"), vectors)?;
            vectors.verify()?;
            if artifacts.recipe() != kind.recipe {
                return Err(unlike("another recipe"));
            }
            if artifacts.n_blobs() > 0 && artifacts.id_bytes() != kind.id_bytes {
                return Err(unlike("another object format"));
            }
            if (vectors.profile(), vectors.dim(), vectors.quantisation()) != (kind.profile, kind.dim, kind.quantisation)
            {
                return Err(unlike("another embedding profile"));
            }
            let largest = MAX_BLOCK_BYTES.max(kind.max_blob_bytes.saturating_mul(4));
            let is_honest = |(packed, opened)| opened <= largest && opened <= packed * MAX_RATIO + RATIO_SLACK;
            if !artifacts.block_sizes().all(is_honest) {
                return Err(unlike("a block of records is too large"));
            }
            let n_docs = vectors.len();
            opened.push(Part {
                base_doc,
                artifacts,
                vectors,
            });
            base_doc = base_doc
                .checked_add(n_docs)
                .ok_or_else(|| unlike("too many documents"))?;
        }
        Ok(Self { parts: opened })
    }

    /// Returns the number of blobs and the number of documents of each part.
    pub fn sizes(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        let size = |part: &Part| (part.artifacts.n_blobs(), part.vectors.len());
        self.parts.iter().map(size)
    }

    /// Returns the keys of all blobs, in order.
    pub fn keys(&self) -> impl Iterator<Item = ArtifactKey> + '_ {
        let of_part = |part: &'_ Part| {
            let artifacts = part.artifacts.clone();
            (0..artifacts.n_blobs()).filter_map(move |blob| artifacts.key(blob))
        };
        self.parts.iter().flat_map(of_part)
    }

    /// Reads the record of a blob. Returns `None` if the blob has no record.
    pub(super) fn recall(&self, key: ArtifactKey) -> Option<Result<RecordedBlob, FileError>> {
        let mut parts = self.parts.iter();
        let (part, blob) = parts.find_map(|part| Some((part, part.artifacts.find(key)?)))?;
        Some(recalled(&part.artifacts, blob, key))
    }

    /// Returns the vector file and the row of a document.
    pub(super) fn row(&self, doc: u32) -> Option<(&VectorFile, u32)> {
        let after = self.parts.partition_point(|part| part.base_doc <= doc);
        let part = self.parts.get(after.checked_sub(1)?)?;
        let row = doc - part.base_doc;
        (row < part.vectors.len()).then_some((&part.vectors, row))
    }
}

fn recalled(artifacts: &ArtifactFile, blob: u32, key: ArtifactKey) -> Result<RecordedBlob, FileError> {
    let outcome = match artifacts.status(blob) {
        Some(Status::Skipped(reason)) => Err(reason),
        _ => {
            let (references, bindings) = artifacts.links(blob)?;
            Ok(Extraction {
                references,
                bindings,
                ..artifacts.extraction(blob)?
            })
        }
    };
    Ok(RecordedBlob {
        lang: artifacts.lang(blob).unwrap_or(key.lang),
        outcome,
        docs: artifacts.docs(blob).collect(),
    })
}

/// Collects the records of the blobs with these `keys`, in order, and passes each complete part to `finished`. Skips
/// keys that `segments` does not contain.
///
/// The result depends only on `keys` and the records of the blobs, not on how the blobs are numbered or distributed
/// over segments.
pub fn gather_records<E: From<RecordsError>>(
    segments: &Segments,
    keys: &[ArtifactKey],
    mut finished: impl FnMut(RecordsData) -> Result<(), E>,
) -> Result<(), E> {
    let mut numbers: HashMap<u32, u32> = HashMap::new();
    let mut opened: HashMap<u32, OpenedBlocks> = HashMap::new();
    let mut open: Option<Gathering> = None;
    for &key in keys {
        let Some((segment, local)) = segments.find_blob(key).and_then(|blob| segments.of_blob(blob)) else {
            continue;
        };
        let Some(vectors) = &segment.vectors else { continue };
        let gathering = match &mut open {
            Some(gathering) => gathering,
            None => open.insert(Gathering::new(segment.artifacts.recipe(), vectors)?),
        };
        gathering
            .add(
                segments,
                (&segment.artifacts, local),
                &mut numbers,
                opened.entry(segment.base_blob).or_default(),
            )
            .map_err(E::from)?;
        if gathering.is_full()
            && let Some(full) = open.take()
        {
            finished(full.finish())?;
        }
    }
    match open {
        Some(last) => finished(last.finish()),
        None => Ok(()),
    }
}

/// A part that is being written.
struct Gathering {
    artifacts: ArtifactWriter,
    vectors: VectorWriter,
}

impl Gathering {
    fn new(recipe: u64, like: &VectorFile) -> Result<Self, RecordsError> {
        Ok(Self {
            artifacts: ArtifactWriter::new(recipe),
            vectors: VectorWriter::new(like.dim(), like.quantisation(), like.profile())?,
        })
    }

    /// Adds the record of a blob. `numbers` maps the document numbers of the segments to those of the part.
    fn add(
        &mut self,
        segments: &Segments,
        (artifacts, local): (&ArtifactFile, u32),
        numbers: &mut HashMap<u32, u32>,
        opened: &mut OpenedBlocks,
    ) -> Result<(), RecordsError> {
        let mut copied = Ok(());
        let renumber = |doc: u32| {
            if let Some(&number) = numbers.get(&doc) {
                return Some(number);
            }
            let (segment, row) = segments.of_doc(doc)?;
            copied = self.vectors.copy_row(segment.vectors.as_ref()?, row);
            copied.as_ref().ok()?;
            let number = numbers.len() as u32;
            numbers.insert(doc, number);
            Some(number)
        };
        let pushed = self.artifacts.copy(artifacts, local, renumber, opened);
        copied?;
        Ok(pushed?)
    }

    fn is_full(&self) -> bool {
        self.artifacts.n_blobs() as usize >= MAX_PART || self.vectors.len() >= MAX_PART
    }

    fn finish(self) -> RecordsData {
        RecordsData {
            n_blobs: self.artifacts.n_blobs(),
            n_docs: self.vectors.len() as u32,
            artifacts: self.artifacts.finish(),
            vectors: self.vectors.finish(),
        }
    }
}
