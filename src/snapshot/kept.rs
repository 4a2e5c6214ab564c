//! What was made for files that are not committed, kept for the next process.
//!
//! It is a segment whose numbers follow those of the store, in one file beside the store's: its blobs have the ids that git would give
//! them, no state names it, and nothing but views of what is not committed opens it. The file's name says what it follows, so that
//! another state of the store has another file. Who finds none that fits makes what is in it again.

use crate::index::{MergeError, Segment, SegmentError, Segments, merge_segments};
use crate::sidecar::{SectionError, SectionFile, SectionWriter, Sidecar, Store, StoredFile};

/// What the names of such files end in.
pub const EDITS_ENDING: &str = "edits";
/// 1: the first.
const FORMAT: u32 = 1;
/// A larger file is not written; then the next process begins anew.
const MAX_BYTES: usize = 64 << 20;
const PARTS: [&str; 3] = ["artifacts", "lexical", "vectors"];

/// Keeps what is made beyond the segments of a store.
#[derive(Debug)]
pub struct KeptEdits {
    sidecar: Sidecar,
    name: String,
    n_stored: usize,
}

/// Why nothing was kept, or what is kept was not used.
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
    /// Beyond `stored`, which are all segments of a state of `sidecar`; made with `recipe` and with vectors of `profile`.
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

    /// `stored` with what is kept. Damage is told to the log and costs time, no more.
    pub fn open(&self, stored: &Segments) -> Segments {
        match self.segment(stored) {
            Ok(Some(segment)) => stored.with(segment),
            Ok(None) => stored.clone(),
            Err(error) => {
                tracing::warn!(name = self.name, %error, "what was kept of changed files is passed over");
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

    /// Keeps what `all` has beyond the stored segments. Where that cannot be written nothing is kept.
    pub fn keep(&self, all: &Segments) {
        match self.write(all) {
            Ok(n_bytes) => tracing::debug!(name = self.name, n_bytes, "kept what was made for changed files"),
            Err(error) => tracing::debug!(name = self.name, %error, "nothing is kept of changed files"),
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
        // Who waits for a writer would wait for the sake of the next question.
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

    /// Checks every byte of such a file.
    pub fn check(sidecar: &Sidecar, name: &str) -> Result<(), SectionError> {
        SectionFile::open(sidecar, Store::Artifacts, name, FORMAT)?.verify()
    }
}
