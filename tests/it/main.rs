//! The integration tests, in one binary with a module for each module or interface of the program.
//!
//! A default run measures neither time nor memory, does not sleep, and tests the same inputs each time. `cargo test --
//! --ignored` runs tests that measure or sleep. With `CODESCOUT_LONG_TESTS=1` other tests also measure, and cover more
//! cases, random ones where inputs are generated. `CODESCOUT_LONG_TESTS=1 cargo test -- --include-ignored` runs
//! everything except the tests of `faults` with clones.

#![allow(clippy::unwrap_used, reason = "tests")]
#![warn(clippy::disallowed_methods)]

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
mod documents;
mod edit;
mod edits;
mod faults;
mod fleet;
mod fuzz;
mod gc;
mod git;
mod graph;
mod grep;
#[cfg(target_os = "linux")]
mod hooks;
mod hostile_files;
mod incremental;
mod indexed;
mod init;
mod install;
mod install_goose;
mod lineage;
mod linked;
mod links;
mod lsp;
mod mcp;
mod memory;
mod pack;
mod placement;
mod precise;
mod precise_run;
mod promises;
mod queries;
mod read_only;
mod relations;
mod relevance;
mod remote;
mod rename;
mod rerank;
mod results;
mod run;
mod share;
mod snapshots;
mod sparse;
mod trust;
mod vector_graph;
mod verify;
mod web;
mod workers;
