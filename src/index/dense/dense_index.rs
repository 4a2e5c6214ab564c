//! The interface of dense indexes.

use std::error::Error;

use roaring::RoaringBitmap;

/// Finds the documents with the vectors most similar to a query.
pub trait DenseIndex: Send + Sync {
    /// Returns the `k` best documents in `live`: best first, ties by ascending document number.
    ///
    /// `query` has the dimension of the vectors and any length; the zero vector finds nothing. Documents without a
    /// vector are not found. All others are candidates, down to cosine -1, until there are `k`. A small `live` does not
    /// reduce recall.
    fn search(&self, query: &[f32], live: &RoaringBitmap, k: usize) -> Result<Vec<(u32, Cosine)>, DenseError>;
}

/// A store of vectors that the local index does not have.
pub trait DenseStore: Send + Sync {
    /// Returns the `k` nearest documents in `live`, or fewer if only those are certain: no omitted document is nearer.
    fn nearest(&self, query: &[f32], live: &RoaringBitmap, k: usize) -> Result<Vec<(u32, Cosine)>, DenseError>;

    /// Returns the cosines of up to 1,000 documents, without those whose vectors are missing.
    fn score(&self, query: &[f32], docs: &[u32]) -> Result<Vec<(u32, Cosine)>, DenseError>;

    /// Returns the vector of a document.
    fn vector(&self, doc: u32) -> Result<Option<Vec<f32>>, DenseError>;
}

/// The cosine of the angle between two vectors: 1 for the same direction, 0 for unrelated vectors. Quantisation can
/// make it slightly larger than 1.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Cosine(pub f32);

/// An error from a dense index.
#[derive(Debug, thiserror::Error)]
pub enum DenseError {
    /// The query and the vectors come from different models.
    #[error("the query has {found} dimensions, the vectors have {expected}")]
    Dimension {
        /// Dimension of the query.
        found: usize,
        /// Dimension of the index.
        expected: usize,
    },
    /// A component of the query is infinite or not a number.
    #[error("the query vector is not finite")]
    NotFinite,
    /// Two segments have vectors of different profiles, which cannot be compared.
    #[error("the vectors from document {base_doc} on come from another embedding profile")]
    Profile {
        /// First document of the mismatched segment.
        base_doc: u32,
    },
    /// Two segments contain the same document, or a segment has more rows than document numbers remain.
    #[error("the vectors from document {base_doc} on overlap with other documents")]
    Overlap {
        /// First document of the mismatched segment.
        base_doc: u32,
    },
    /// An external backend is unreachable or rejects the request.
    #[error("dense index {backend} is unavailable")]
    Unavailable {
        /// The backend's name.
        backend: String,
        /// The cause.
        source: Box<dyn Error + Send + Sync>,
    },
}
