//! Defines all settings in one table. From a setting's row, the program derives how files and variables set it, its
//! output in `codescout config`, and whether a repository's own files may set it.
//!
//! A row has the form `name: type = default`, followed by `unset "…"`, the text shown if there is no value, and
//! `variable "…"`, the environment variable. The doc comment of a row is the help text.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::time::Duration;

use crate::remote::{EmbeddingApi, Encoding, RerankApi};

use super::links::{Links, Reader};
use super::resolve::{ConfigError, Origin, Setting, Sources};
use super::value::{AbsolutePath, Address, CommandLine, CommandTimeout, Kind, Prefix, Since, Value};

const MAX_NAME_BYTES: usize = 64;

/// Determines which settings files may set a key. The environment and the user's own file may set every key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// A value that affects only what is indexed or shown. It may be set in any file, including `.codescout.toml`,
    /// which is part of the repository.
    Repository,
    /// A value that affects this machine's disk. It may be set in `.codescout/config.toml`, but not in
    /// `.codescout.toml`.
    Machine,
    /// A value that names a server, a key, a model or a root. It may be set in a `.codescout/config.toml` only if that
    /// file is recorded as written by this user.
    User,
}

/// The properties of a setting: a row of the settings table.
#[derive(Clone, Copy, Debug)]
pub struct SettingInfo {
    /// The key, such as `search.limit`.
    pub key: &'static str,
    /// The help text, one line.
    pub help: &'static str,
    /// The settings files that may set it.
    pub scope: Scope,
    /// The environment variable that sets it.
    pub variable: Option<&'static str>,
    /// Follows "expected" in error messages.
    pub expected: &'static str,
    kind: Kind,
    accepts: fn(&OsStr) -> bool,
}

/// A setting for display.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The key, such as `search.limit`.
    pub key: String,
    /// The value, or a text that describes the missing value.
    pub value: String,
    /// The origin of the value.
    pub origin: Origin,
    /// The help text, one line.
    pub help: &'static str,
}

/// A text that is not a valid value of a setting.
#[derive(Debug, thiserror::Error)]
#[error("invalid value {value} for {key}: expected {expected}")]
pub struct InvalidValue {
    /// The setting.
    pub key: &'static str,
    /// The text, in quotes unless it is a number or similar.
    pub value: String,
    /// Follows "expected" in error messages.
    pub expected: &'static str,
}

impl SettingInfo {
    /// Returns the row of a key. All names of a section of [`NAMED`] have one row.
    pub fn of(key: &str) -> Option<&'static Self> {
        let is_row = |setting: &&Self| match key.split_once('.') {
            Some((section, name)) => section == setting.section() && is_name(name),
            None => false,
        };
        let known = SETTINGS.iter().find(|setting| setting.key == key);
        known.or_else(|| NAMED.iter().find(is_row))
    }

    /// Returns the part of the key before the dot.
    pub(super) fn section(&self) -> &'static str {
        self.key.split_once('.').map_or(self.key, |(section, _)| section)
    }

    const fn new<T: Value>(
        key: &'static str,
        help: &'static str,
        scope: Scope,
        variable: Option<&'static str>,
    ) -> Self {
        Self {
            key,
            help: help.trim_ascii_start(),
            scope,
            variable,
            expected: T::EXPECTED,
            kind: T::KIND,
            accepts: |text| T::parse(text).is_some(),
        }
    }

    /// Converts the value in a settings file to text.
    pub(super) fn text_of(&self, value: &toml::Value) -> Result<OsString, InvalidValue> {
        let text = match (self.kind, value) {
            (Kind::Integer, toml::Value::Integer(number)) => Some(number.to_string()),
            (Kind::Boolean, toml::Value::Boolean(switch)) => Some(switch.to_string()),
            (Kind::String, toml::Value::String(text)) => Some(text.clone()),
            _ => None,
        };
        let text = text.map(OsString::from).filter(|text| (self.accepts)(text));
        text.ok_or_else(|| self.invalid(value.to_string()))
    }

    /// Converts a text from the command line to a TOML literal.
    pub(super) fn literal(&self, text: &str) -> Result<String, InvalidValue> {
        if !(self.accepts)(text.as_ref()) {
            return Err(self.invalid(format!("{text:?}")));
        }
        let value = match self.kind {
            // TOML integers are signed and have no leading zeros.
            Kind::Integer => toml::Value::from(text.parse::<i64>().map_err(|_| self.invalid(format!("{text:?}")))?),
            Kind::Boolean => toml::Value::from(text == "true"),
            Kind::String => toml::Value::from(text),
        };
        Ok(value.to_string())
    }

    fn invalid(&self, value: String) -> InvalidValue {
        InvalidValue {
            key: self.key,
            value,
            expected: self.expected,
        }
    }
}

/// Generates the types of the sections, [`SETTINGS`] and the functions of [`Config`] from the table.
macro_rules! settings {
    ($(
        $(#[$about:meta])*
        $section:ident: $type:ident, $scope:ident {
            $(
                #[doc = $help:literal]
                $name:ident: $value:ty = $default:expr $(, unset $unset:literal)? $(, variable $variable:literal)?;
            )+
        }
    )+) => {
        $(
            $(#[$about])*
            #[derive(Clone, Debug)]
            pub struct $type {
                $(#[doc = $help] pub $name: Setting<$value>,)+
            }
        )+

        /// All settings with their resolved values.
        #[derive(Clone, Debug)]
        pub struct Config {
            $($(#[$about])* pub $section: $type,)+
            /// Other repositories.
            pub links: Links,
        }

        /// All settings, in the order in which they are listed.
        pub const SETTINGS: &[SettingInfo] = &[
            $($(SettingInfo::new::<$value>(
                concat!(stringify!($section), ".", stringify!($name)),
                $help,
                Scope::$scope,
                settings!(@optional $($variable)?),
            ),)+)+
        ];

        impl Config {
            pub(super) fn from_sources(sources: &Sources) -> Result<Self, ConfigError> {
                Ok(Self {
                    $($section: $type {
                        $($name: sources.setting(
                            concat!(stringify!($section), ".", stringify!($name)),
                            $default,
                        )?,)+
                    },)+
                    links: Links::of(sources),
                })
            }

            /// Returns all settings for display, in the order of [`SETTINGS`].
            pub fn entries(&self) -> Vec<Entry> {
                let mut entries = vec![$($(
                    entry(&self.$section.$name, $help, settings!(@unset $($unset)?)),
                )+)+];
                entries.extend(self.links.entries());
                entries
            }
        }
    };
    (@optional) => { None };
    (@optional $value:literal) => { Some($value) };
    (@unset) => { "none" };
    (@unset $value:literal) => { $value };
}

/// The sections in which the user chooses the names, by a row each.
pub const NAMED: &[SettingInfo] = &[
    SettingInfo::new::<PathBuf>(
        "linked.NAME",
        "A repository for --linked: PATH or PATH#REF, relative to this repository",
        Scope::User,
        None,
    ),
    SettingInfo::new::<String>(
        "scopes.NAME",
        "Names for --linked=NAME, separated by commas",
        Scope::User,
        None,
    ),
    SettingInfo::new::<Reader>(
        "readers.NAME",
        "A reader of a fleet: its groups, or *, and the BLAKE3 hash of its token",
        Scope::User,
        None,
    ),
];

/// Returns true for a name that the user can choose.
fn is_name(name: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    name.len() <= MAX_NAME_BYTES && name.starts_with(|c: char| c.is_ascii_alphanumeric()) && name.chars().all(is_part)
}

fn entry<T: Value>(setting: &Setting<T>, help: &'static str, unset: &str) -> Entry {
    Entry {
        key: setting.key.to_owned(),
        value: setting.value.shown(unset),
        origin: setting.origin.clone(),
        help: help.trim_ascii_start(),
    }
}

settings! {
    /// The scope of the index.
    index: IndexConfig, Repository {
        /// Search text files up to this many bytes by content; a new value means a new index
        max_blob_bytes: u64 = 1 << 20, variable "CODESCOUT_MAX_BLOB_BYTES";
    }
    /// The embedding model.
    embedding: EmbeddingConfig, User {
        /// Folder of a Model2Vec model, or name of the server's model
        model: Option<PathBuf> = None, unset "built-in", variable "CODESCOUT_MODEL";
        /// Address of an embedding server; without one the model runs in this process
        server: Option<Address> = None, variable "CODESCOUT_EMBEDDING_SERVER";
        /// API of the embedding server: openai, ollama or tei
        api: EmbeddingApi = EmbeddingApi::OpenAi, variable "CODESCOUT_EMBEDDING_API";
        /// File with the key for the embedding server
        key_file: Option<AbsolutePath> = None;
        /// Environment variable with the key for the embedding server, read if there is no key file
        key_variable: String = "CODESCOUT_EMBEDDING_KEY".to_owned();
        /// Proxy for requests to the embedding server
        proxy: Option<Address> = None;
        /// Version of the server's model; vectors of another version are kept apart
        revision: String = String::new();
        /// Text before each query that is embedded
        query_prefix: String = String::new();
        /// Text before each chunk that is embedded
        document_prefix: String = String::new();
        /// Dimensions that the server is asked for
        dimensions: Option<u32> = None, unset "the model's";
        /// Encoding of vectors in answers: float or base64
        encoding: Encoding = Encoding::Float;
        /// Texts per request
        batch: Option<u32> = None, unset "the server's";
        /// Requests at a time
        in_flight: u32 = 4;
        /// Time limit of an indexing request, in seconds
        timeout_s: u32 = 60;
        /// Time limit of a query's request, in milliseconds; after it the built-in model is used
        query_timeout_ms: u32 = 2000;
    }
    /// A server for sparse vectors.
    sparse: SparseConfig, User {
        /// Address of a server for sparse vectors; without one there are none
        server: Option<Address> = None, variable "CODESCOUT_SPARSE_SERVER";
        /// File with the key for the sparse vector server
        key_file: Option<AbsolutePath> = None;
        /// Environment variable with the key for the sparse vector server, read if there is no key file
        key_variable: String = "CODESCOUT_SPARSE_KEY".to_owned();
        /// Proxy for requests to the sparse vector server
        proxy: Option<Address> = None;
        /// Name of the server's model; vectors of other models are kept apart
        model: String = "splade".to_owned();
        /// Version of the server's model; vectors of another version are kept apart
        revision: String = String::new();
        /// Texts per request
        batch: Option<u32> = None, unset "the server's";
        /// Requests at a time
        in_flight: u32 = 4;
        /// Time limit of an indexing request, in seconds
        timeout_s: u32 = 60;
        /// Time limit of a query's request, in milliseconds; after it the query goes without sparse vectors
        query_timeout_ms: u32 = 2000;
        /// Weight of sparse vectors in the ranking, in percent of the default
        weight_percent: u32 = 100;
    }
    /// A server that reranks results.
    rerank: RerankConfig, User {
        /// Address of a reranker; without one results are not reranked
        server: Option<Address> = None, variable "CODESCOUT_RERANK_SERVER";
        /// File with the key for the reranker
        key_file: Option<AbsolutePath> = None;
        /// Environment variable with the key for the reranker, read if there is no key file
        key_variable: String = "CODESCOUT_RERANK_KEY".to_owned();
        /// Proxy for requests to the reranker
        proxy: Option<Address> = None;
        /// API of the reranker: tei, infinity, cohere, jina, voyage or llamacpp
        api: RerankApi = RerankApi::Cohere, variable "CODESCOUT_RERANK_API";
        /// Name of the reranker's model
        model: String = String::new(), variable "CODESCOUT_RERANK_MODEL";
        /// Number of first results to rerank
        candidates: u32 = 50;
        /// Texts per request
        batch: Option<u32> = None, unset "the API's default";
        /// Time limit of all requests of a query, in milliseconds; after it results keep their order
        timeout_ms: u32 = 1500;
    }
    /// The Qdrant server of a fleet, in its `fleet.toml`.
    qdrant: QdrantConfig, User {
        /// Address of the Qdrant server of a fleet
        server: Option<Address> = None, variable "CODESCOUT_QDRANT_SERVER";
        /// File with the key for the Qdrant server
        key_file: Option<AbsolutePath> = None;
        /// Environment variable with the key for the Qdrant server, read if there is no key file
        key_variable: String = "CODESCOUT_QDRANT_KEY".to_owned();
        /// Proxy for requests to the Qdrant server
        proxy: Option<Address> = None;
        /// Prefix of the names of collections
        prefix: Prefix = Prefix("codescout".to_owned());
        /// Time limit of an indexing request, in seconds
        timeout_s: u32 = 60;
        /// Time limit of a query's request, in milliseconds; after it every file of the fleet is read
        query_timeout_ms: u32 = 1000;
    }
    /// Defaults of searches.
    search: SearchConfig, Repository {
        /// Results of a search; 0 for all
        limit: u32 = 10;
    }
    /// MCP servers.
    serve: ServeConfig, User {
        /// Folders in which calls of `codescout serve` may name repositories
        roots: Vec<PathBuf> = Vec::new();
    }
    /// Clones of repositories that `--repo URL` names.
    clone: CloneConfig, User {
        /// Hosts from which `--repo URL` may clone, separated by commas; `file` for `file://`
        hosts: Option<String> = None;
    }
    /// Hooks of coding agents.
    agents: AgentsConfig, Machine {
        /// Let the hooks of coding agents add advice
        advice: bool = true, variable "CODESCOUT_AGENT_ADVICE";
    }
    /// Answers of compilers.
    precise: PreciseConfig, User {
        /// Folders whose repositories language servers may read; some servers run code of the repository
        trusted: Vec<PathBuf> = Vec::new();
    }
    /// Commands of `codescout run`.
    run: RunConfig, User {
        /// Command that builds the project, without shell syntax
        build: Option<CommandLine> = None;
        /// Command that tests the project
        test: Option<CommandLine> = None;
        /// Command that checks the code for mistakes
        lint: Option<CommandLine> = None;
        /// Command that formats the code
        format: Option<CommandLine> = None;
        /// Time limit of a command, in seconds; at most 3600
        timeout_s: CommandTimeout = CommandTimeout(Duration::from_secs(600));
    }
    /// Removal of index data that nothing needs.
    gc: GcConfig, Machine {
        /// Collect garbage after indexing and in background runs
        auto: bool = true, variable "CODESCOUT_GC_AUTO";
        /// Days to keep the snapshots of reflog entries
        // The default of git's `gc.reflogExpireUnreachable`, for entries that no ref reaches.
        reflog_days: u32 = 30, variable "CODESCOUT_GC_REFLOG_DAYS";
        /// Largest size of the index in bytes, without recorded commits; 0 for no limit
        max_bytes: u64 = 0, variable "CODESCOUT_GC_MAX_BYTES";
        /// Rewrite files of which at least this percentage is no longer needed
        dead_percent: u32 = 10;
        /// Number of deleted files whose last version is indexed; 0 for none
        deleted_files: u32 = 10_000;
    }
    /// The record of commits.
    history: HistoryConfig, Repository {
        /// Number of commits to record, the newest first; 0 for all
        max_commits: u32 = 0;
        /// Do not record commits before this date: 2024-02-29, or 12h, 30d, 2w, 6m, 1y ago; or always
        since: Since = Since("always".to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_has_help_and_names_are_unique() {
        for setting in SETTINGS {
            assert!(
                !setting.help.is_empty() && !setting.help.ends_with('.'),
                "{}",
                setting.key
            );
        }
        let mut names: Vec<&str> = SETTINGS.iter().map(|setting| setting.key).collect();
        names.extend(SETTINGS.iter().filter_map(|setting| setting.variable));
        let n_names = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), n_names);
    }

    #[test]
    fn defaults_with_a_condition_meet_it() {
        for (key, default) in [("qdrant.prefix", "codescout"), ("history.since", "always")] {
            assert!(
                SettingInfo::of(key).is_some_and(|setting| setting.literal(default).is_ok()),
                "{key}"
            );
        }
    }
}
