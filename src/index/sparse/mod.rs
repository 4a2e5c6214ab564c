//! Finds the documents that share heavily weighted tokens with a query.
//!
//! [`SparseFile`] is the stored form. [`SparseIndex`] computes the exact dot product with every document. Like the
//! dense index, this module knows documents and tokens only as numbers: no texts, no paths, no file system. Start at
//! [`SparseIndex`].

mod file;
mod scan;
mod writer;

pub use file::SparseFile;
pub use scan::{Impact, ImpactIndex, SparseIndex};
pub use writer::SparseWriter;
