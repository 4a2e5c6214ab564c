//! Search, read and navigate any revision of a git repository, from an index kept by content.
//!
//! # The map
//!
//! What is known about a blob is computed once and kept under the blob's id; the index of a commit is only a list of blobs.
//! Data flows one way, and a room imports only rooms of lower layers (`tests/it/architecture.rs` holds it):
//!
//! ```text
//! 0  model/      shared nouns, no I/O: ids, paths, byte ranges, language numbers
//! 1  sidecar/    .codescout/ on disk: layout, atomic files, checksums, the writer's lock, the state
//! 2  git/        objects, refs and work trees in; the only home of gix
//!    extract/    pure: (bytes, language, options) -> chunks, definitions, references, imports, headings
//! 3  artifact/   an extraction per blob, under the blob's id
//!    embed/      texts to vectors: the trait Embedder and the model inside the binary
//! 4  index/      segments: documents by number; lexical/ (tantivy) and dense/ (vectors)
//! 5  snapshot/   manifests of trees; a View = manifests + overlay + segments, which never changes
//!    history/    what each commit changed, and the life of files and symbols through it
//! 6  ingest/     the writer: what a tree needs and is not there
//!    query/      the reader: search, grep, symbols, outline, read
//! 7  bundle/     one file that carries what is known to another clone
//!    evaluate/   how good answers are
//!    remote/     what servers of others are asked: HTTP with patience, deadlines and no storms
//! 8  config/     settings, resolved into the rooms' options
//! 9  session/    one open repository: views, history, sharing
//! 10 setup/      install/ edits the configuration of coding agents; hooks/, which git calls; doctor/ checks for problems
//! 11 ops/        one operation per file: request, logic, rows, rendering
//! 12 mcp/        operations as tools for coding agents
//! 13 cli/        operations as commands, and commands that mcp/ does not have
//! ```
//!
//! Rooms of one layer do not import one another: `ingest` and `query` meet only on disk.
//!
//! # Invariants
//!
//! - An artifact depends on the blob's bytes, its language and the recipe; on no path, commit, clock or thread. Paths enter in
//!   `snapshot`.
//! - Files of the sidecar are immutable once published. `state` is the one commit point, replaced by a rename and written last.
//! - A [`snapshot::View`] does not change while it is held; [`query`] never writes.
//! - Nothing that a repository configures is run, nothing is fetched, no path leaves the work tree's root.
//! - Each outside crate has one home; below `setup` nothing prints, exits or reads the environment (`config/env.rs` excepted).
//! - What lies on disk is checked before it is believed; what a repository holds is never an error of the program.
//!
//! `docs/architecture.md` goes on from here; `docs/formats.md` has every file field by field.

pub mod artifact;
pub mod bundle;
pub mod cli;
pub mod config;
pub mod embed;
pub mod evaluate;
pub mod extract;
pub mod git;
pub mod history;
pub mod index;
pub mod ingest;
pub mod mcp;
pub mod model;
pub mod ops;
pub mod query;
pub mod remote;
pub mod session;
pub mod setup;
pub mod sidecar;
pub mod snapshot;

#[cfg(test)]
#[path = "../tests/support/mod.rs"]
mod support;
