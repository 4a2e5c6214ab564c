//! Finds the documents nearest to a query vector.
//!
//! [`VectorFile`] is the stored form. [`FlatIndex`] scans several files exactly. [`HnswIndex`] speeds up searches over
//! very many live documents. Both implement [`DenseIndex`]. This module knows documents and vectors only as numbers: no
//! texts, paths, commits or file system. Start at [`FlatIndex`].

mod dense_index;
mod flat;
mod half;
mod hnsw;
mod kernel;
mod quantise;
mod query;
pub(super) mod top_k;
mod vectors;
mod writer;

pub use dense_index::{Cosine, DenseError, DenseIndex, DenseStore};
pub use flat::FlatIndex;
pub use hnsw::{BuildError, DEFAULT_HNSW_THRESHOLD, HnswIndex, HnswOptions, SegmentGraph};
pub use quantise::Quantisation;
pub use vectors::{SharedBytes, VERSION, VectorFile, VectorFileError};
pub use writer::{VectorWriter, WriteError};
