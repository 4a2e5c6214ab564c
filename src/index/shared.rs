//! The interface of external stores in which all clones of a repository share vectors. Vectors are stored by the keys
//! of their chunks.
//!
//! [`SharedVectors`] is the interface. [`There`] records which vectors a store contains, as far as this clone knows.

mod there;

use std::error::Error;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::rows::Row;
use crate::model::{ChunkKey, explain_by};

pub use there::{THERE_ENDING, There};

/// A shared store of the vectors of one repository and one embedding profile, dense or sparse.
///
/// Methods block, may be called from many threads, and return soon after `interrupt` is set. All clones compute the
/// same vector for a key, so storing a vector twice is harmless.
pub trait SharedVectors: Claims + Send + Sync {
    /// Returns the name of the store for messages.
    fn name(&self) -> String;

    /// Returns the identity of the repository. It is the same in all clones, and different for every other repository.
    fn repository(&self) -> RepositoryTag;

    /// Returns the recommended request sizes for vectors of `dim` components, or for sparse vectors if `dim` is 0.
    fn batching(&self, dim: usize) -> SharedBatching;

    /// Returns the status of the store, or `None` if nothing has been stored yet.
    fn standing(&self, interrupt: &AtomicBool) -> Result<Option<Standing>, SharedError>;

    /// Prepares the store for vectors of `dim` components (0 for sparse vectors). Returns the status of the store.
    fn prepare(&self, dim: usize, interrupt: &AtomicBool) -> Result<Standing, SharedError>;

    /// Returns, for each key, whether the store contains its vector.
    fn contains(&self, keys: &[ChunkKey], interrupt: &AtomicBool) -> Result<Vec<bool>, SharedError>;

    /// Fetches the vectors with these keys, in the same order. The vector is `None` if the store does not contain it.
    /// All vectors have the same dimension. Dense vectors have unit length and weight 1.
    fn fetch(&self, keys: &[ChunkKey], interrupt: &AtomicBool) -> Result<Vec<Option<Row>>, SharedError>;

    /// Stores vectors by key. Dense vectors must have unit length.
    fn put(&self, rows: &[(ChunkKey, Row)], interrupt: &AtomicBool) -> Result<Put, SharedError>;

    /// Returns the vector of the probe text, or `None` if it has not been stored.
    fn probe(&self, interrupt: &AtomicBool) -> Result<Option<Row>, SharedError>;

    /// Stores the vector of the probe text.
    fn put_probe(&self, row: &Row, interrupt: &AtomicBool) -> Result<(), SharedError>;

    /// Removes vectors. First changes the generation of the store, so that other clones check again which vectors it
    /// contains.
    fn remove(&self, keys: &[ChunkKey], interrupt: &AtomicBool) -> Result<(), SharedError>;
}

/// Claims on vectors. A clone claims vectors before it computes them.
///
/// Claims only avoid duplicate work. If a clone is killed, its claims expire with their lease. Two clones may still
/// compute the same vector.
pub trait Claims {
    /// Claims the vectors with these keys for the time `lease`. Skips vectors that are not `claimable` or that another
    /// clone has claimed.
    fn claim(
        &self,
        keys: &[ChunkKey],
        claimable: Claimable,
        lease: Duration,
        interrupt: &AtomicBool,
    ) -> Result<Claim, SharedError>;

    /// Releases a claim, after its vectors are stored or if they will not be computed.
    fn release(&self, claim: &Claim);

    /// Returns, for each key, whether another clone has claimed its vector.
    fn claimed(&self, keys: &[ChunkKey], interrupt: &AtomicBool) -> Result<Vec<bool>, SharedError>;
}

/// Selects the vectors that a claim may include.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claimable {
    /// Vectors that the store does not contain.
    Missing,
    /// All vectors, including those in the store that this clone could not use.
    All,
}

/// Identifies a repository without revealing its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RepositoryTag(pub [u8; 16]);

/// The recommended sizes of requests to a shared store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedBatching {
    /// Maximum number of keys in a lookup.
    pub max_keys: usize,
    /// Maximum number of vectors in a request that stores or fetches them.
    pub max_rows: usize,
    /// Number of concurrent calls, each on its own thread.
    pub in_flight: usize,
}

/// The status of a shared store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Changes whenever vectors may have been removed. A clone must then check again which vectors the store contains.
    pub generation: [u8; 16],
    /// True while another clone removes vectors.
    pub is_removing: bool,
    /// Number of components of each vector; 0 for sparse vectors.
    pub dim: usize,
    /// Number of vectors of the repository in the store.
    pub n_vectors: u64,
}

/// A claim that this clone has made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Claim {
    /// For each key, true if this clone claimed the vector.
    pub ours: Vec<bool>,
    /// The names of the claim and of expired claims in the store.
    pub names: Vec<String>,
}

/// The result of storing vectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Put {
    /// The vectors are stored.
    Done,
    /// The store has accepted the vectors and will store them later.
    Promised,
}

/// An error from a shared store.
#[derive(Debug, thiserror::Error)]
pub enum SharedError {
    /// The interrupt flag was set.
    #[error("interrupted")]
    Interrupted,
    /// The store is unreachable or rejects the request.
    #[error("{backend} is unavailable")]
    Unavailable {
        /// The name of the store.
        backend: String,
        /// The underlying error.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The response of the store is unusable.
    #[error("{backend} returned {detail}")]
    Unusable {
        /// The name of the store.
        backend: String,
        /// The problem with the response.
        detail: String,
    },
}

explain_by!(SharedError; Interrupted);
