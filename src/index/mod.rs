//! From blobs to candidates: documents by number, their lexical and dense indexes, and how these are built.
//!
//! Documents are distinct chunks; what they are about in a view, and at which paths they stand, is not known here. Start at
//! [`Build`] (writing) and [`Segments`] (reading).

mod build;
mod compare;
pub mod dense;
pub mod lexical;
mod merge;
mod prepare;
mod segments;

pub use build::{BlobReader, BlobSource, Build, BuildError, BuildOptions, SegmentData, SourceBlob};
pub use compare::{SegmentPart, differences};
pub use merge::{MergeError, merge_segments};
pub use segments::{Segment, SegmentError, Segments};
