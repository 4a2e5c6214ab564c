//! Shared types: ids, paths, spans, languages, explanations of errors. No I/O.
//!
//! A type belongs here only if at least three modules use it, or two modules that may not import one another. A type
//! that one module produces belongs to that module.

mod chain;
mod columns;
pub(crate) mod count;
mod ctx;
mod explain;
mod id;
mod lang;
pub mod panics;
mod path;
mod progress;
mod random;
mod span;
mod text;
pub(crate) mod unprintable;
pub(crate) mod varint;

pub use chain::chain;
pub use columns::ColumnUnit;
pub use ctx::Ctx;
pub(crate) use explain::explain_by;
pub use explain::{ErrorKind, Explain, Explanation, Hint, Misspelt, NameKind};
pub use id::{BlobId, ChunkKey, CommitId, Oid, OidError, TreeId};
pub use lang::Lang;
pub use path::{RepoPath, quoted, typed, with_placeholders, without_placeholders};
pub use progress::{NoProgress, Progress, Stage};
pub use random::{random_bytes, random_token};
pub use span::ByteRange;
pub use text::{start_of, without_middles};
