//! Progress reports of long runs.

/// Receives progress reports, possibly from several threads.
pub trait Progress: Sync {
    /// Begins a stage with `n_blobs` items (see [`Stage::unit`]).
    fn begin(&self, stage: Stage, n_blobs: usize);
    /// Reports one more item with `n_bytes` bytes.
    fn advance(&self, n_bytes: u64);
    /// Reports what a stage without items waits for.
    fn say(&self, _what: &str) {}
    /// Ends the stage.
    fn end(&self);
}

/// A stage of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Waiting for another writer.
    Waiting,
    /// Reading, extracting and indexing blobs.
    Indexing,
    /// Importing records of blobs.
    Importing,
    /// Reading what commits changed.
    Recording,
    /// Indexing commit messages.
    Messages,
    /// Comparing what commits changed, path by path.
    Lines,
    /// Tracing definitions through commits. Counts changed paths.
    Tracing,
    /// Reading stored files. Counts files.
    Verifying,
    /// Reading, extracting and indexing blobs to compare them with the stored index.
    Deriving,
    /// Embedding documents. Counts documents.
    Embedding,
    /// Collecting garbage. Counts files written or removed.
    Collecting,
    /// Waiting for a language server.
    Asking,
}

impl Stage {
    /// Returns the items that `advance` counts, in the plural.
    pub fn unit(self) -> &'static str {
        match self {
            Self::Recording | Self::Messages => "commits",
            Self::Lines => "paths",
            Self::Tracing => "changed paths",
            Self::Embedding => "chunks",
            _ => "files",
        }
    }
}

/// Ignores progress.
#[derive(Clone, Copy, Debug)]
pub struct NoProgress;

impl Progress for NoProgress {
    fn begin(&self, _stage: Stage, _n_blobs: usize) {}
    fn advance(&self, _n_bytes: u64) {}
    fn end(&self) {}
}
