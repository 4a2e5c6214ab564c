//! Searches, reads and navigates any revision of a git repository through a content-addressed index.
//!
//! # Layers
//!
//! Everything derived from a blob is computed once and stored under the blob's id; the index of a commit is only a list
//! of blobs. Data flows one way, and a module imports only modules of lower layers (`tests/it/architecture.rs` enforces
//! this):
//!
//! ```text
//! 0  model/      shared types, no I/O: ids, paths, byte ranges, language numbers
//! 1  sidecar/    .codescout/ on disk: layout, atomic files, checksums, the writer's lock, the state
//!    program/    finds other programs and starts them
//! 2  git/        reads objects, refs and worktrees; the only module that uses gix
//!    extract/    pure: (bytes, language, options) -> chunks, definitions, references, imports, headings
//!    lsp/        asks language servers, through one broker process per user
//! 3  artifact/   one extraction per blob, stored under the blob's id
//!    embed/      texts to vectors: the trait Embedder and the model inside the binary
//!    precise/    what a compiler says about blobs: SCIP indexes, checked and kept per blob
//! 4  index/      segments of numbered documents; lexical/ (tantivy) and dense/ (vectors)
//! 5  snapshot/   manifests of trees; an immutable View = manifests + overlay + segments
//!    history/    the changes of each commit, and the lifetimes of files and symbols
//! 6  ingest/     the write path: indexes what a tree needs and the sidecar lacks
//!    link/       resolves references to definitions
//! 7  query/      the read path: search, grep, symbols, outline, read
//! 8  bundle/     one file that carries an index to another clone
//!    evaluate/   ranking quality
//!    remote/     HTTP adapters for external services, with retries, deadlines and backoff
//! 9  config/     settings, resolved into the options of each module
//! 10 session/    one open repository: views, history, sharing
//! 11 edit/       changes files by operations on definitions and text
//!    setup/      install/ edits configurations of coding agents; hooks/ runs from git hooks; doctor/ finds problems
//! 12 ops/        one operation per file: request, logic, rows, rendering
//! 13 mcp/        operations as tools for coding agents
//! 14 web/        pages for people, with the server parts of mcp/
//! 15 cli/        operations as commands, and commands that mcp/ does not have
//! ```
//!
//! Modules of one layer do not import one another.
//!
//! # Invariants
//!
//! - An artifact depends only on the blob's bytes, its language and the recipe, never on a path, commit, clock or
//!   thread. Paths enter in `snapshot`.
//! - Files of the sidecar are immutable once published. `state` is the only commit point; it is written last and
//!   replaced by a rename.
//! - A [`snapshot::View`] does not change while it is held; [`query`] never writes.
//! - Commands that a repository configures are never run, nothing is fetched, and no path leads outside the worktree's
//!   root.
//! - Each external crate is used by one module; below `session` nothing prints, exits or reads the environment (except
//!   `config/env.rs` and `git/command.rs`).
//! - Data on disk is verified before use; the contents of a repository never cause a program error.
//!
//! `docs/architecture.md` continues from here; `docs/formats.md` describes every file field by field.

pub mod artifact;
pub mod bundle;
pub mod cli;
pub mod config;
pub mod edit;
pub mod embed;
pub mod evaluate;
pub mod extract;
pub mod git;
pub mod history;
pub mod index;
pub mod ingest;
pub mod link;
pub mod lsp;
pub mod mcp;
pub mod model;
pub mod ops;
pub mod precise;
pub mod program;
pub mod query;
pub mod remote;
pub mod session;
pub mod setup;
pub mod sidecar;
pub mod snapshot;
pub mod web;

#[cfg(test)]
#[path = "../tests/support/mod.rs"]
mod support;
