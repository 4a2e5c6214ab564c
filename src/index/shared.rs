//! Vectors that the clones of a repository share through an external vector store, under the keys of their chunks.
//!
//! [`SharedVectors`] is the interface to such a store. [`There`] records which vectors the store has, as far as this
//! clone knows.

mod there;

use std::error::Error;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::rows::Row;
use crate::model::ChunkKey;

pub use there::{THERE_ENDING, There};

/// A shared store of the vectors, dense or sparse, of one embedding profile and one repository.
///
/// Calls block, may come from many threads, and end soon after `interrupt` is set. All clones store the same vector for
/// a key, so storing a vector twice is harmless.
pub trait SharedVectors: Claims + Send + Sync {
    /// The store's name for messages.
    fn name(&self) -> String;

    /// Identifies the repository: the same in all its clones and different in every other repository.
    fn repository(&self) -> RepositoryTag;

    /// The best sizes of requests for vectors of `dim` components; 0 for sparse ones.
    fn batching(&self, dim: usize) -> SharedBatching;

    /// Reads the store's status. `None` if nothing has been stored yet.
    fn standing(&self, interrupt: &AtomicBool) -> Result<Option<Standing>, SharedError>;

    /// Prepares the store for vectors of `dim` components (0 for sparse ones) and returns its status.
    fn prepare(&self, dim: usize, interrupt: &AtomicBool) -> Result<Standing, SharedError>;

    /// Returns whether each of `keys` is in the store.
    fn contains(&self, keys: &[ChunkKey], interrupt: &AtomicBool) -> Result<Vec<bool>, SharedError>;

    /// Fetches the vectors of `keys`, all of one dimension; `None` for missing ones. Dense vectors have unit length and
    /// weight 1.
    fn fetch(&self, keys: &[ChunkKey], interrupt: &AtomicBool) -> Result<Vec<Option<Row>>, SharedError>;

    /// Stores vectors. Dense ones have unit length.
    fn put(&self, rows: &[(ChunkKey, Row)], interrupt: &AtomicBool) -> Result<Put, SharedError>;

    /// Returns the vector of the probe text, if it was stored.
    fn probe(&self, interrupt: &AtomicBool) -> Result<Option<Row>, SharedError>;

    /// Stores the vector of the probe text.
    fn put_probe(&self, row: &Row, interrupt: &AtomicBool) -> Result<(), SharedError>;

    /// Removes vectors. First invalidates the other clones' records of stored vectors.
    fn remove(&self, keys: &[ChunkKey], interrupt: &AtomicBool) -> Result<(), SharedError>;
}

/// Claims on vectors that a clone is computing.
///
/// A claim only avoids duplicate work: it expires with its lease if its clone is killed, and two clones may compute the
/// same vector.
pub trait Claims {
    /// Claims those vectors of `keys` for `lease` that are `claimable` and that no other clone has claimed.
    fn claim(
        &self,
        keys: &[ChunkKey],
        claimable: Claimable,
        lease: Duration,
        interrupt: &AtomicBool,
    ) -> Result<Claim, SharedError>;

    /// Releases a claim: the vectors are stored, or will not be made.
    fn release(&self, claim: &Claim);

    /// Returns whether other clones have claimed each of `keys`.
    fn claimed(&self, keys: &[ChunkKey], interrupt: &AtomicBool) -> Result<Vec<bool>, SharedError>;
}

/// The vectors that a claim may cover.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claimable {
    /// Vectors missing from the store.
    Missing,
    /// Vectors in the store too, because they could not be used.
    All,
}

/// Identifies a repository without revealing its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RepositoryTag(pub [u8; 16]);

/// Request sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedBatching {
    /// Keys per lookup.
    pub max_keys: usize,
    /// Vectors per request, stored or fetched.
    pub max_rows: usize,
    /// Concurrent calls, each from its own thread.
    pub in_flight: usize,
}

/// The status of a shared store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Changes whenever vectors may have been removed. Everything known of an earlier generation must be checked again.
    pub generation: [u8; 16],
    /// True while vectors are being removed.
    pub is_removing: bool,
    /// Components of each vector; 0 for sparse ones.
    pub dim: usize,
    /// Number of vectors of the repository.
    pub n_vectors: u64,
}

/// A claim on vectors that this clone is computing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Claim {
    /// For each key, true if this clone claimed it.
    pub ours: Vec<bool>,
    /// The store's names of the claim and of expired claims.
    pub names: Vec<String>,
}

/// The result of storing vectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Put {
    /// The vectors are stored.
    Done,
    /// The store has accepted the vectors and will store them.
    Promised,
}

/// An error from a shared store.
#[derive(Debug, thiserror::Error)]
pub enum SharedError {
    /// The caller set `interrupt`.
    #[error("interrupted")]
    Interrupted,
    /// The store is unreachable or rejects the request.
    #[error("{backend} is unavailable")]
    Unavailable {
        /// The store's name.
        backend: String,
        /// The cause.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The response is unusable.
    #[error("{backend} returned {detail}")]
    Unusable {
        /// The store's name.
        backend: String,
        /// The problem.
        detail: String,
    },
}
