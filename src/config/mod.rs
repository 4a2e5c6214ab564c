//! Settings: flags, then environment, then `.codescout/config.toml`, then `.codescout.toml` of the work tree, then the user's own
//! `codescout/config.toml`, then defaults; resolved once into each room's options.
//!
//! A repository's own file can set data only: nothing in it names a program, a path outside, or an address. The same holds for a file in
//! a sidecar that this user is not known to have written (`trust.rs`).

mod edit;
mod env;
mod file;
pub(crate) mod lines;
mod options;
mod resolve;
mod server;
mod settings;
pub(crate) mod toml_text;
mod trust;
mod value;

pub use edit::{EditError, set, unset};
pub use env::{Environment, unknown_variables, variables};
pub use file::FileError;
pub use resolve::{ConfigError, Origin, Overrides, RepositoryFiles, Setting};
pub use settings::{
    Config, EmbeddingConfig, Entry, GcConfig, HistoryConfig, IndexConfig, InvalidValue, QdrantConfig, RerankConfig,
    SETTINGS, Scope, SearchConfig, ServeConfig, SettingInfo, SparseConfig,
};
pub use trust::{trust, untrusted_key};
