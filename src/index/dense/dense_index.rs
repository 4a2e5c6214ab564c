//! The interface of dense indexes.

use roaring::RoaringBitmap;

/// Finds the documents whose vectors are most similar to a query vector.
pub trait DenseIndex: Send + Sync {
    /// Returns the `k` documents in `live` with the highest cosines, sorted by descending cosine, then by document
    /// number.
    ///
    /// `query` must have the dimension of the vectors and may have any length. A zero vector finds no documents.
    /// Documents without a vector are never found; all others can be, even with a negative cosine. A small `live` does
    /// not reduce recall.
    fn search(&self, query: &[f32], live: &RoaringBitmap, k: usize) -> Result<Vec<(u32, Cosine)>, DenseError>;
}

/// The cosine of the angle between two vectors: 1 for the same direction, 0 for unrelated vectors. Because of
/// quantisation, it may be slightly larger than 1.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Cosine(pub f32);

/// An error from a dense index.
#[derive(Debug, thiserror::Error)]
pub enum DenseError {
    /// The query and the vectors have different dimensions, so they are from different models.
    #[error("the query has {found} dimensions, the vectors have {expected}")]
    Dimension {
        /// The dimension of the query.
        found: usize,
        /// The dimension of the index.
        expected: usize,
    },
    /// A component of the query is infinite or not a number.
    #[error("the query vector is not finite")]
    NotFinite,
    /// The segments have vectors of different profiles, which cannot be compared.
    #[error("the vectors from document {base_doc} on have another embedding profile")]
    Profile {
        /// The first document of the segment with the other profile.
        base_doc: u32,
    },
    /// Two segments contain the same document, or a segment has more rows than there are document numbers left.
    #[error("the vectors from document {base_doc} on overlap with other documents")]
    Overlap {
        /// The first document of the overlapping segment.
        base_doc: u32,
    },
}
