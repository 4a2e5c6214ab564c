//! The writer: updates the sidecar for a tree and collects garbage.
//!
//! Extracts, indexes and embeds the blobs of a tree that the sidecar lacks, and then publishes the tree's manifest.
//! Never waits for readers. Start at [`Ingest::update`] and [`Collector::collect`].

mod added;
mod catch_up;
mod commits;
mod compact;
mod gc;
mod graph;
mod handed;
mod history;
mod import;
mod maker;
mod parts;
mod precise;
mod publish;
mod repair;
mod run;
mod sides;
mod sweep;
mod trace;
mod turns;
mod verify;
mod wanted;

pub use catch_up::{CatchUp, CatchUpError, CatchUpOutcome};
pub use commits::{ExportedCommits, ImportRefusal, ReceivedCommits, VerifiedCommits};
pub use gc::{
    Cause, CollectError, CollectOptions, CollectOutcome, Collector, Keep, KeptSnapshot, Share, Survey, Trigger,
};
pub use graph::NewGraph;
pub use handed::{ReceivedRows, VerifiedRows, gather_rows, has_rows, n_rows, probe_of};
pub use history::{RecordError, RecordOutcome, Recorder};
pub use import::{Audit, ImportError, Imported};
pub use maker::EmbeddingSource;
pub use parts::load_probe;
pub use precise::{
    ExportedFacts, FactsError, ImportedFacts, Refusal, Refused, SaidName, ServerFacts, TakenFacts, gather_facts,
    key_of_facts, stored_facts,
};
pub use repair::{Repair, RepairError};
pub use run::{Ingest, IngestError, Outcome, Target};
pub use trace::TraceOutcome;
pub use verify::{Depth, Derived, Finding, Loose, Verification, VerifyError};
