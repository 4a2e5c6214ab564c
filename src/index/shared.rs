//! Vectors that the clones of a repository share: kept by another process, under the keys of their chunks.
//!
//! [`SharedVectors`] is what such a keeper can do, [`There`] what this clone knows to be with it.

mod there;

use std::error::Error;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::rows::Row;
use crate::model::ChunkKey;

pub use there::{THERE_ENDING, There};

/// Keeps vectors, dense or sparse, of one embedding profile for the clones of one repository.
///
/// Blocks; may be called from many threads. All calls end soon after `interrupt` is set. What is put is the same whoever puts it, so
/// putting twice does no harm.
pub trait SharedVectors: Claims + Send + Sync {
    /// What it is called in messages.
    fn name(&self) -> String;

    /// Stands for the repository: the same in all its clones, and in no other repository.
    fn repository(&self) -> RepositoryTag;

    /// How much is best asked for and put at once, if each vector has `dim` components; 0 for sparse ones.
    fn batching(&self, dim: usize) -> SharedBatching;

    /// How things stand; `None` where nobody has put anything yet.
    fn standing(&self, interrupt: &AtomicBool) -> Result<Option<Standing>, SharedError>;

    /// Makes ready for vectors of `dim` components, or for sparse ones, and tells how things stand then.
    fn prepare(&self, dim: usize, interrupt: &AtomicBool) -> Result<Standing, SharedError>;

    /// Whether each of `keys` is there.
    fn contains(&self, keys: &[ChunkKey], interrupt: &AtomicBool) -> Result<Vec<bool>, SharedError>;

    /// The vectors of `keys`, all of one dimension, as far as they are there. Dense ones are of unit length, with a weight of 1.
    fn fetch(&self, keys: &[ChunkKey], interrupt: &AtomicBool) -> Result<Vec<Option<Row>>, SharedError>;

    /// Puts vectors; dense ones of unit length.
    fn put(&self, rows: &[(ChunkKey, Row)], interrupt: &AtomicBool) -> Result<Put, SharedError>;

    /// The vector of the text by which models are told apart, if one was put.
    fn probe(&self, interrupt: &AtomicBool) -> Result<Option<Row>, SharedError>;

    /// Puts the vector of that text.
    fn put_probe(&self, row: &Row, interrupt: &AtomicBool) -> Result<(), SharedError>;

    /// Removes vectors, after having told all other clones that what they know to be there may not be there any more.
    fn remove(&self, keys: &[ChunkKey], interrupt: &AtomicBool) -> Result<(), SharedError>;
}

/// Tells the clones of a repository which vectors are being made. A claim saves work and no more: a clone that was killed keeps nobody
/// waiting for longer than its lease, and two clones may make the same vector.
pub trait Claims {
    /// Tells others for `lease` that those vectors of `keys` are being made here which are `claimable` and which nobody else has claimed.
    fn claim(
        &self,
        keys: &[ChunkKey],
        claimable: Claimable,
        lease: Duration,
        interrupt: &AtomicBool,
    ) -> Result<Claim, SharedError>;

    /// Takes a claim back: the vectors are there, or are not made.
    fn release(&self, claim: &Claim);

    /// Whether others have claimed each of `keys`.
    fn claimed(&self, keys: &[ChunkKey], interrupt: &AtomicBool) -> Result<Vec<bool>, SharedError>;
}

/// Which vectors can be claimed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claimable {
    /// Those that are not there.
    Missing,
    /// Those that are there, too: they could not be used.
    All,
}

/// Stands for a repository where its name shall not be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RepositoryTag(pub [u8; 16]);

/// How much at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedBatching {
    /// Keys asked for.
    pub max_keys: usize,
    /// Vectors put, or asked for.
    pub max_rows: usize,
    /// Calls at once, each from a thread of its own.
    pub in_flight: usize,
}

/// How things stand with a keeper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Changes whenever vectors may have gone: what was known to be there before is to be looked at again.
    pub generation: [u8; 16],
    /// Whether vectors are being removed at this moment.
    pub is_removing: bool,
    /// Components of each vector; 0 for sparse ones.
    pub dim: usize,
    /// Vectors of the repository.
    pub n_vectors: u64,
}

/// Vectors that are being made here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Claim {
    /// Whether each of the keys is claimed.
    pub ours: Vec<bool>,
    /// What the keeper knows the claim by, and others that are over.
    pub names: Vec<String>,
}

/// What became of vectors that were put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Put {
    /// They are there.
    Done,
    /// They will be there, the keeper says.
    Promised,
}

/// Why a keeper was of no use.
#[derive(Debug, thiserror::Error)]
pub enum SharedError {
    /// The caller's flag was set.
    #[error("interrupted")]
    Interrupted,
    /// It cannot be reached, or refuses.
    #[error("{backend} is unavailable")]
    Unavailable {
        /// Which one.
        backend: String,
        /// What happened.
        source: Box<dyn Error + Send + Sync>,
    },
    /// It gave what cannot be used.
    #[error("{backend} gave {detail}")]
    Unusable {
        /// Which one.
        backend: String,
        /// What is wrong with it.
        detail: String,
    },
}
