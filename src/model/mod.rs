//! Shared nouns of the program: ids, paths, spans, languages. No input or output.
//!
//! Only what three rooms name, or two that may not name one another, lives here; a type with one producer stays with its producer.

mod base64;
mod chain;
mod id;
mod lang;
mod path;
mod span;
pub(crate) mod unprintable;

pub use base64::from_base64;
pub use chain::chain;
pub use id::{BlobId, ChunkKey, CommitId, Oid, OidError, TreeId};
pub use lang::Lang;
pub use path::{RepoPath, quoted, typed, with_stand_ins, without_stand_ins};
pub use span::ByteRange;
