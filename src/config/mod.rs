//! Settings: flags, then environment, then `.codescout/config.toml`, then `.codescout.toml` of the work tree, then the user's own
//! `codescout/config.toml`, then defaults; resolved once into each room's options.
//!
//! A repository's own file can set data only: nothing in it names a program, a path outside, or an address. The same holds for a file in
//! a sidecar that this user is not known to have written (`trust.rs`).

mod edit;
mod embedding;
mod env;
mod file;
pub(crate) mod lines;
mod qdrant;
mod rerank;
mod resolve;
mod server;
mod sparse;
pub(crate) mod toml_text;
mod trust;

pub use edit::{EditError, KEYS, ValueKind, set, unset};
pub use embedding::EmbeddingConfig;
pub use env::{Environment, VARIABLES, unknown_variables};
pub use file::FileError;
pub use qdrant::QdrantConfig;
pub use rerank::RerankConfig;
pub use resolve::{Config, ConfigError, Origin, Overrides, RepositoryFiles, Setting};
pub use server::ServerConfig;
pub use sparse::SparseConfig;
pub use trust::{trust, untrusted_key};
