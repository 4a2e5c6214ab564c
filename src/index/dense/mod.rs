//! Which documents are nearest to a query vector.
//!
//! [`VectorFile`] is the stored form, [`FlatIndex`] the exact scan over several of them, [`HnswIndex`] an accelerator for very
//! many live documents; both indexes stand behind [`DenseIndex`]. The room knows documents as numbers and vectors as numbers:
//! no text, no path, no commit, no file system. Start at [`FlatIndex`].

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
