//! The integration tests: one binary, a module for each room or surface.
//!
//! A default run measures neither time nor memory. `cargo test -- --ignored` runs the tests that do, or that wait.
//! `CODESCOUT_LONG_TESTS=1` makes other tests measure too and go through more cases: `CODESCOUT_LONG_TESTS=1 cargo test --
//! --include-ignored` runs everything but what `faults` does with clones.

#![allow(clippy::unwrap_used, reason = "tests")]

#[path = "../support/mod.rs"]
mod support;

mod architecture;
mod bad_input;
mod bombs;
mod cli;
mod compact;
mod compose;
mod damage;
mod docs;
mod edits;
mod faults;
mod gc;
mod git;
mod grep;
#[cfg(target_os = "linux")]
mod hooks;
mod hostile_files;
mod incremental;
mod indexed;
mod install;
mod lineage;
mod mcp;
mod placement;
mod promises;
mod qdrant;
mod read_only;
mod relevance;
mod remote;
mod rerank;
mod share;
mod snapshots;
mod sparse;
mod trust;
mod verify;
