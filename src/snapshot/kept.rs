//! Caches the index of uncommitted files on disk, so that later processes need not build it again.
//!
//! The cache file contains a segment whose blob and document numbers follow those of the stored segments. Its blobs
//! have the ids that git would give them. The file `state` does not list the cache file, and only views of uncommitted
//! files open it. Its file name is derived from the stored segments, so each state has its own cache file. If no
//! matching file exists, a process indexes the uncommitted files again.

use crate::index::{MergeError, Segment, SegmentError, Segments, merge_segments};
use crate::sidecar::{FileError, SectionFile, SectionWriter, Sidecar, Store, StoredFile};

/// The extension of cache files.
pub const EDITS_ENDING: &str = "edits";
/// Format version. 1: initial.
const FORMAT: u32 = 1;
/// Size limit of a cache file. If the index is larger, no file is written and later processes build it again.
const MAX_BYTES: usize = 64 << 20;
const PARTS: [&str; 3] = ["artifacts", "lexical", "vectors"];

/// The cache file for the segments of uncommitted files.
#[derive(Debug)]
pub struct KeptEdits {
    sidecar: Sidecar,
    name: String,
    n_stored: usize,
}

/// An error from writing or reading a cache file.
#[derive(Debug, thiserror::Error)]
enum KeptError {
    #[error(transparent)]
    File(#[from] FileError),
    #[error(transparent)]
    Segment(#[from] SegmentError),
    #[error(transparent)]
    Merge(#[from] MergeError),
}

impl KeptEdits {
    /// Returns the cache file for segments that follow `stored`, which are all segments of the sidecar's state. The
    /// cached segments are built with `recipe` and have vectors of `profile`.
    pub fn beyond(stored: &Segments, sidecar: Sidecar, recipe: u64, profile: &str) -> Self {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&stored.epoch());
        hasher.update(&recipe.to_le_bytes());
        // Two indexes that were one once can have as many blobs, with other content.
        for segment in stored.iter() {
            // The name is a hash of the content.
            let name = segment.artifacts.path().file_name().unwrap_or_default();
            hasher.update(name.as_encoded_bytes());
        }
        hasher.update(&stored.n_docs().to_le_bytes());
        hasher.update(profile.as_bytes());
        let digest = hasher.finalize().to_hex();
        Self {
            sidecar,
            name: format!("{}.{EDITS_ENDING}", &digest[..StoredFile::NAME_DIGITS]),
            n_stored: stored.iter().count(),
        }
    }

    /// Returns `stored` with the cached segment added, if there is one. If the cache file is damaged, logs a warning
    /// and ignores it.
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

    /// Writes the segments that `all` contains in addition to the stored ones. Logs errors and ignores them.
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
        let failed = |source| FileError::write(self.sidecar.path(Store::Artifacts, &self.name), source);
        // Do not wait for the lock. That would delay this query just to speed up later ones.
        let lock = self.sidecar.lock(std::time::Duration::ZERO);
        let lock = lock.map_err(|error| failed(std::io::Error::other(error)))?;
        if bytes.len() > MAX_BYTES {
            match self.sidecar.remove(Store::Artifacts, &self.name, &lock) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(failed(error).into()),
                _ => return Ok(0),
            }
        }
        self.sidecar
            .write(Store::Artifacts, &self.name, &bytes)
            .map_err(failed)?;
        Ok(bytes.len())
    }

    /// Verifies every byte of a cache file.
    pub fn check(sidecar: &Sidecar, name: &str) -> Result<(), FileError> {
        SectionFile::open(sidecar, Store::Artifacts, name, FORMAT)?.verify()
    }
}
