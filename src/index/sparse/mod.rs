//! Finds the documents that have tokens of high weight in common with a query.
//!
//! [`SparseFile`] stores sparse vectors. [`SparseIndex`] computes the exact dot product of a query with every document.
//! This module refers to documents and tokens only by number, and does not use texts, paths or the file system. Start
//! with [`SparseIndex`].

mod file;
mod scan;
mod writer;

pub use file::SparseFile;
pub use scan::{Impact, SparseIndex};
pub use writer::SparseWriter;
