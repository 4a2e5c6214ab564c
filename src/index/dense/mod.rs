//! Finds the documents nearest to a query vector.
//!
//! [`VectorFile`] stores vectors. [`FlatIndex`] scans several files exactly. [`HnswIndex`] speeds up searches over very
//! many live documents. Both implement [`DenseIndex`]. This module refers to documents only by number. It does not use
//! texts, paths, commits or the file system. Start with [`FlatIndex`].

mod dense_index;
mod flat;
mod graph;
mod half;
mod hnsw;
mod kernel;
mod quantise;
mod query;
pub(super) mod top_k;
mod vectors;
mod writer;

pub use dense_index::{Cosine, DenseError, DenseIndex};
pub use flat::FlatIndex;
pub use graph::GraphFile;
pub use hnsw::{GraphBuildError, GraphLimits, HnswIndex, IN_BACKGROUND, build_graph, worthwhile};
pub use quantise::Quantisation;
pub use vectors::{FORMAT, VectorFile};
pub use writer::{VectorWriter, WriteError};
