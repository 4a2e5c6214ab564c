//! Shared nouns of the program: ids, paths, spans, languages. No input or output.
//!
//! Only what three rooms name lives here; a type with one producer stays with its producer.

mod id;
mod lang;
mod path;
mod span;

pub use id::{BlobId, ChunkKey, CommitId, Oid, OidError, TreeId};
pub use lang::Lang;
pub use path::RepoPath;
pub use span::ByteRange;
