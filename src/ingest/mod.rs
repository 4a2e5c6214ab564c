//! The writer: brings the sidecar up to date with a tree.
//!
//! What a tree needs and the sidecar does not have is extracted, indexed, embedded and published; then the tree's manifest
//! is. Readers are never waited for. What nothing keeps any more is thrown away. Start at [`Ingest::update`] and
//! [`Collector::collect`].

mod compact;
mod gc;
mod progress;
mod publish;
mod run;
mod sweep;

pub use gc::{Cause, CollectError, CollectOptions, Collected, Collector, Keep, KeptSnapshot, Occasion, Share, Survey};
pub use progress::{NoProgress, Progress, Stage};
pub use run::{Ingest, IngestError, Outcome, Target};
