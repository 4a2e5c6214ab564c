//! Builds and reads segments, which contain numbered documents with their lexical and dense indexes.
//!
//! A document is a distinct chunk. Blobs and documents have consecutive numbers across all segments, which stay valid
//! until the epoch of the index changes. This module does not know which paths contain a document. Start with [`Build`]
//! (writing) and [`Segments`] (reading).

mod build;
mod compare;
pub mod dense;
pub mod lexical;
mod merge;
mod prepare;
mod probe;
mod recall;
mod records;
mod rewrite;
mod rows;
mod segments;
pub mod sparse;
mod survivors;
mod texts;

pub use build::{BlobReader, BlobSource, Build, BuildError, BuildOptions, SegmentData, SourceBlob};
pub use compare::{SegmentPart, differences};
pub use merge::{MergeError, merge_segments};
pub use prepare::left_out;
pub use probe::{PROBE_TEXT, check_probe, check_row, probe_file};
pub use recall::Recall;
pub use records::{Records, RecordsData, RecordsError, RecordsKind, gather_records};
pub use rewrite::{rewrite_artifacts, rewrite_segments};
pub use rows::{Row, RowFile, RowKind, RowWriter};
pub use segments::{Segment, SegmentError, Segments};
pub use survivors::{NumberSet, Ranks, Survivors};
pub use texts::{chunk_text, document_texts};
