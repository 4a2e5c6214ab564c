//! Which documents share heavy tokens with a query.
//!
//! [`SparseFile`] is the stored form, [`SparseIndex`] the exact product with all of them. Like its dense sister the room knows
//! documents as numbers and tokens as numbers: no text, no path, no file system. Start at [`SparseIndex`].

mod file;
mod scan;
mod writer;

pub use file::SparseFile;
pub use scan::{Impact, ImpactIndex, SparseIndex};
pub use writer::SparseWriter;
