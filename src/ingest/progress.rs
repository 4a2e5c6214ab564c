//! What a long run tells while it runs.

/// Told of the course of a run, from several threads.
pub trait Progress: Sync {
    /// A stage begins; `n_blobs` are ahead of it.
    fn begin(&self, stage: Stage, n_blobs: usize);
    /// A blob of so many bytes was read.
    fn advance(&self, n_bytes: u64);
    /// The stage is over.
    fn end(&self);
}

/// What a run is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Waiting for another writer.
    Waiting,
    /// Reading, extracting and indexing blobs.
    Indexing,
    /// Taking over what others have recorded of blobs.
    Importing,
    /// Reading what commits changed.
    Recording,
    /// Indexing what messages of commits say.
    Messages,
    /// Comparing what commits changed, path by path.
    Lines,
    /// Reading what commits did to definitions; what comes one by one are changed paths.
    Tracing,
    /// Reading stored files. What comes one by one is files.
    Verifying,
    /// Reading, extracting and indexing blobs to compare them with what is stored.
    Deriving,
    /// Making vectors of documents. What comes one by one is documents.
    Embedding,
    /// Taking vectors from where they are shared, or putting them there. What comes one by one is documents.
    Sharing,
    /// Collecting garbage: what is counted are the files that are written or removed.
    Collecting,
}

impl Stage {
    /// Returns what `advance` counts, in the plural.
    pub fn unit(self) -> &'static str {
        match self {
            Self::Recording | Self::Messages => "commits",
            Self::Lines => "paths",
            Self::Tracing => "changed paths",
            Self::Embedding | Self::Sharing => "chunks",
            _ => "files",
        }
    }
}

/// Tells nobody.
#[derive(Clone, Copy, Debug)]
pub struct NoProgress;

impl Progress for NoProgress {
    fn begin(&self, _stage: Stage, _n_blobs: usize) {}
    fn advance(&self, _n_bytes: u64) {}
    fn end(&self) {}
}
