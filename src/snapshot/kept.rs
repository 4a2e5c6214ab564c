//! Stores the index of uncommitted files for the next process.
//!
//! The stored file is a segment whose numbers follow those of the store. Its blobs have the ids that git would give
//! them. No state lists it, and only views of uncommitted files open it. Its name identifies the state that it follows,
//! so another state has another file. A process that finds no matching file indexes the uncommitted files again.

use crate::index::{MergeError, Segment, SegmentError, Segments, merge_segments};
use crate::sidecar::{SectionError, SectionFile, SectionWriter, Sidecar, Store, StoredFile};

/// Extension of these files.
pub const EDITS_ENDING: &str = "edits";
/// Format version. 1: initial.
const FORMAT: u32 = 1;
/// A larger file is not written; the next process then starts over.
const MAX_BYTES: usize = 64 << 20;
const PARTS: [&str; 3] = ["artifacts", "lexical", "vectors"];

/// Stores the segments beyond those of a store.
#[derive(Debug)]
pub struct KeptEdits {
    sidecar: Sidecar,
    name: String,
    n_stored: usize,
}

/// An error from writing or reading the file.
#[derive(Debug, thiserror::Error)]
enum KeptError {
    #[error(transparent)]
    Section(#[from] SectionError),
    #[error(transparent)]
    Segment(#[from] SegmentError),
    #[error(transparent)]
    Merge(#[from] MergeError),
    #[error("cannot write {name}")]
    Write {
        name: String,
        #[source]
        source: std::io::Error,
    },
}

impl KeptEdits {
    /// Creates the store for segments that follow `stored`, which are all segments of a state of `sidecar`. They are
    /// built with `recipe` and have vectors of `profile`.
    pub fn beyond(stored: &Segments, sidecar: Sidecar, recipe: u64, profile: &str) -> Self {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&stored.epoch());
        hasher.update(&recipe.to_le_bytes());
        hasher.update(&stored.n_blobs().to_le_bytes());
        hasher.update(&stored.n_docs().to_le_bytes());
        hasher.update(profile.as_bytes());
        let digest = hasher.finalize().to_hex();
        Self {
            sidecar,
            name: format!("{}.{EDITS_ENDING}", &digest[..StoredFile::NAME_DIGITS]),
            n_stored: stored.iter().count(),
        }
    }

    /// Returns `stored` with the stored edits. Damage is logged and only costs time.
    pub fn open(&self, stored: &Segments) -> Segments {
        match self.segment(stored) {
            Ok(Some(segment)) => stored.with(segment),
            Ok(None) => stored.clone(),
            Err(error) => {
                tracing::warn!(name = self.name, %error, "ignoring the stored index of changed files");
                stored.clone()
            }
        }
    }

    fn segment(&self, stored: &Segments) -> Result<Option<Segment>, KeptError> {
        let file = match SectionFile::open(&self.sidecar, Store::Artifacts, &self.name, FORMAT) {
            Err(error) if error.is_gone() => return Ok(None),
            file => file?,
        };
        let [artifacts, lexical, vectors] = PARTS.map(|part| file.section(part));
        let first = (stored.n_blobs(), stored.n_docs());
        Ok(Some(Segment::from_files(first, [artifacts?, lexical?, vectors?])?))
    }

    /// Stores what `all` has beyond the stored segments. Stores nothing if the file cannot be written.
    pub fn keep(&self, all: &Segments) {
        match self.write(all) {
            Ok(n_bytes) => tracing::debug!(name = self.name, n_bytes, "stored the index of changed files"),
            Err(error) => tracing::debug!(name = self.name, %error, "cannot store the index of changed files"),
        }
    }

    fn write(&self, all: &Segments) -> Result<usize, KeptError> {
        let beyond: Vec<&Segment> = all.iter().skip(self.n_stored).collect();
        let merged = merge_segments(&beyond)?;
        let mut writer = SectionWriter::new(FORMAT);
        let parts = [merged.artifacts, merged.lexical, merged.vectors];
        PARTS
            .into_iter()
            .zip(parts)
            .for_each(|(name, bytes)| writer.add(name, bytes));
        let bytes = writer.finish();
        let failed = |source| KeptError::Write {
            name: self.name.clone(),
            source,
        };
        // Does not wait for the lock: that would delay this query only to speed up the next.
        let lock = self.sidecar.lock(std::time::Duration::ZERO);
        let lock = lock.map_err(|error| failed(std::io::Error::other(error)))?;
        if bytes.len() > MAX_BYTES {
            match self.sidecar.remove(Store::Artifacts, &self.name, &lock) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(failed(error)),
                _ => return Ok(0),
            }
        }
        self.sidecar
            .write(Store::Artifacts, &self.name, &bytes)
            .map_err(failed)?;
        Ok(bytes.len())
    }

    /// Verifies every byte of such a file.
    pub fn check(sidecar: &Sidecar, name: &str) -> Result<(), SectionError> {
        SectionFile::open(sidecar, Store::Artifacts, name, FORMAT)?.verify()
    }
}
