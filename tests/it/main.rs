//! The integration tests: one binary, a module for each room or surface.

#![allow(clippy::unwrap_used, reason = "tests")]

#[path = "../support/mod.rs"]
mod support;

mod architecture;
mod bad_input;
mod cli;
mod compact;
mod damage;
mod docs;
mod git;
mod grep;
mod incremental;
mod indexed;
mod lineage;
mod promises;
mod relevance;
