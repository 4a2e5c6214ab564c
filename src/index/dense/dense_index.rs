//! The contract of everything that finds near vectors.

use std::error::Error;

use roaring::RoaringBitmap;

/// Finds the documents whose vectors are most like a query's.
pub trait DenseIndex: Send + Sync {
    /// The `k` best of the documents in `live`: best first, ties by ascending document.
    ///
    /// `query` has the vectors' dimension and any length; the zero vector, which is like nothing, finds nothing. Documents
    /// without a vector are not found; all others are, down to cosine -1, until there are `k`. However few documents `live`
    /// holds, none that belongs to the answer is missed for that reason.
    fn search(&self, query: &[f32], live: &RoaringBitmap, k: usize) -> Result<Vec<(u32, Cosine)>, DenseError>;
}

/// Has vectors that are nowhere else.
pub trait DenseStore: Send + Sync {
    /// The `k` nearest of `live`, or fewer if that is all that is sure: nothing that is left out is nearer.
    fn nearest(&self, query: &[f32], live: &RoaringBitmap, k: usize) -> Result<Vec<(u32, Cosine)>, DenseError>;

    /// How near some documents are, a thousand at most, as far as their vectors are there.
    fn score(&self, query: &[f32], docs: &[u32]) -> Result<Vec<(u32, Cosine)>, DenseError>;

    /// The vector of a document.
    fn vector(&self, doc: u32) -> Result<Option<Vec<f32>>, DenseError>;
}

/// The cosine of the angle between two vectors: 1 for the same direction, 0 for unrelated. Quantisation can carry it a little
/// past 1.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Cosine(pub f32);

/// Why a dense index gives no answer.
#[derive(Debug, thiserror::Error)]
pub enum DenseError {
    /// The query comes from another model than the vectors.
    #[error("the query has {found} dimensions, the vectors have {expected}")]
    Dimension {
        /// Of the query.
        found: usize,
        /// Of the index.
        expected: usize,
    },
    /// A component of the query is infinite or not a number.
    #[error("the query vector is not finite")]
    NotFinite,
    /// Vectors of two profiles cannot be compared.
    #[error("the vectors of document {base_doc} and following come from another embedding profile")]
    Profile {
        /// First document of the segment that does not fit.
        base_doc: u32,
    },
    /// Two segments claim one document, or a segment has more rows than there are document numbers left.
    #[error("the vectors of document {base_doc} and following overlap with other documents")]
    Overlap {
        /// First document of the segment that does not fit.
        base_doc: u32,
    },
    /// A backend outside this process cannot be reached, or refuses.
    #[error("dense index {backend} is unavailable")]
    Unavailable {
        /// Which one.
        backend: String,
        /// What happened.
        source: Box<dyn Error + Send + Sync>,
    },
}
