//! Resolves settings. In order of precedence: command-line options, environment variables, `.codescout/config.toml`,
//! `.codescout.toml` in the worktree, the user's own `codescout/config.toml`, defaults. The result is converted once
//! into the options of each module.
//!
//! The settings file of a repository may contain only data: it cannot name a program, a path outside the repository or
//! an address. The same applies to a settings file in a sidecar, unless this user is known to have written it (see
//! `trust.rs`).

mod edit;
mod env;
mod file;
pub(crate) mod lines;
mod links;
mod options;
mod resolve;
mod server;
mod settings;
pub(crate) mod toml_text;
mod trust;
mod value;

pub use edit::{EditError, Edited, set, unset};
pub use env::{Environment, TerminalVariables, unknown_variables, variables};
pub use file::FileError;
pub use links::{LIBRARIES, Link, Links, Reader, UnknownLink};
pub use resolve::{ConfigError, Origin, Overrides, RepositoryFiles, Setting};
pub use settings::{
    Config, EmbeddingConfig, Entry, GcConfig, HistoryConfig, IndexConfig, InvalidValue, NAMED, QdrantConfig,
    RerankConfig, SETTINGS, Scope, SearchConfig, ServeConfig, SettingInfo, SparseConfig,
};
pub use trust::{is_trusted, trust, trust_text, untrusted_key};
pub use value::{CommandLine, CommandTimeout};
