//! The writer: brings the sidecar up to date with a tree.
//!
//! What a tree needs and the sidecar does not have is extracted, indexed, embedded and published; then the tree's manifest
//! is. Readers are never waited for. Start at [`Ingest::update`].

mod compact;
mod history;
mod progress;
mod publish;
mod run;
mod sweep;

pub use history::{RecordError, RecordOutcome, Recorder};
pub use progress::{NoProgress, Progress, Stage};
pub use run::{Ingest, IngestError, Outcome, Target};
