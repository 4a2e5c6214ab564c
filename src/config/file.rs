//! Settings in TOML. Unknown keys are errors.

use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::server::{OfServer, ServerSettings};

/// No honest settings file is larger.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// What a file sets.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Settings {
    #[serde(default)]
    pub(super) index: IndexSettings,
    #[serde(default)]
    pub(super) embedding: EmbeddingSettings,
    #[serde(default)]
    pub(super) sparse: SparseSettings,
    #[serde(default)]
    pub(super) rerank: RerankSettings,
    #[serde(default)]
    pub(super) qdrant: QdrantSettings,
    #[serde(default)]
    pub(super) search: SearchSettings,
    #[serde(default)]
    pub(super) gc: GcSettings,
    #[serde(default)]
    pub(super) serve: ServeSettings,
    #[serde(default)]
    pub(super) history: HistorySettings,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct IndexSettings {
    pub(super) max_blob_bytes: Option<u64>,
}

/// A section that a repository's own file may not set anything of: its keys, and the first that is set.
macro_rules! section_of_a_server {
    ($name:ident, $section:literal, { $($key:ident: $kind:ty,)* }) => {
        #[derive(Clone, Debug, Default, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub(super) struct $name {
            $(pub(super) $key: Option<$kind>,)*
        }

        impl $name {
            /// The first key that is set.
            pub(super) fn first_set(&self) -> Option<&'static str> {
                let keys = [$((concat!($section, ".", stringify!($key)), self.$key.is_some()),)*];
                keys.into_iter().find(|(_, is_set)| *is_set).map(|(key, _)| key)
            }
        }

        impl OfServer for $name {
            fn of_server(&self) -> ServerSettings {
                ServerSettings {
                    server: self.server.clone(),
                    key_file: self.key_file.clone(),
                    key_variable: self.key_variable.clone(),
                    proxy: self.proxy.clone(),
                }
            }
        }
    };
}

section_of_a_server!(EmbeddingSettings, "embedding", {
    model: PathBuf,
    server: String,
    api: String,
    key_file: PathBuf,
    key_variable: String,
    proxy: String,
    revision: String,
    query_prefix: String,
    document_prefix: String,
    dimensions: u32,
    encoding: String,
    batch: u32,
    in_flight: u32,
    timeout_s: u32,
    query_timeout_ms: u32,
});

section_of_a_server!(SparseSettings, "sparse", {
    server: String,
    key_file: PathBuf,
    key_variable: String,
    proxy: String,
    model: String,
    revision: String,
    batch: u32,
    in_flight: u32,
    timeout_s: u32,
    query_timeout_ms: u32,
    weight_percent: u32,
});

section_of_a_server!(RerankSettings, "rerank", {
    server: String,
    key_file: PathBuf,
    key_variable: String,
    proxy: String,
    api: String,
    model: String,
    candidates: u32,
    batch: u32,
    timeout_ms: u32,
});

section_of_a_server!(QdrantSettings, "qdrant", {
    server: String,
    key_file: PathBuf,
    key_variable: String,
    proxy: String,
    prefix: String,
    repository: String,
    shards: u32,
    replication: u32,
    write_consistency: u32,
    read_consistency: String,
    compression: String,
    on_disk: bool,
    exact: bool,
    scan_below: u32,
    keep_local: bool,
    in_flight: u32,
    timeout_s: u32,
    query_timeout_ms: u32,
});

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SearchSettings {
    pub(super) limit: Option<usize>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct GcSettings {
    pub(super) auto: Option<bool>,
    pub(super) reflog_days: Option<u32>,
    pub(super) max_bytes: Option<u64>,
    pub(super) dead_percent: Option<u32>,
    pub(super) deleted_files: Option<usize>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ServeSettings {
    pub(super) roots: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HistorySettings {
    pub(super) max_commits: Option<usize>,
    pub(super) since: Option<String>,
}

/// Why a settings file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// It cannot be read.
    #[error("cannot read {}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// It is too large to be one.
    #[error("{} has {n_bytes} bytes; a settings file has at most {MAX_FILE_BYTES}", .path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Its size.
        n_bytes: u64,
    },
    /// It does not say what it may say.
    #[error("{}: {message}", .path.display())]
    Syntax {
        /// The file.
        path: PathBuf,
        /// Where and what.
        message: String,
    },
}

/// Reads a file of settings, with its text; none if it is not there. A symbolic link counts as no file.
pub(super) fn read(path: &Path) -> Result<Option<(Settings, String)>, FileError> {
    read_where(path, std::fs::symlink_metadata(path))
}

/// [`read`] for the user's own file, which may be a link.
pub(super) fn read_linked(path: &Path) -> Result<Option<(Settings, String)>, FileError> {
    read_where(path, std::fs::metadata(path))
}

fn read_where(path: &Path, found: io::Result<std::fs::Metadata>) -> Result<Option<(Settings, String)>, FileError> {
    let io_error = |source| FileError::Io {
        path: path.to_owned(),
        source,
    };
    let metadata = match found {
        Ok(metadata) if metadata.is_file() => metadata,
        Ok(_) => return Ok(None),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(error) => return Err(io_error(error)),
    };
    if metadata.len() > MAX_FILE_BYTES {
        return Err(FileError::TooLarge {
            path: path.to_owned(),
            n_bytes: metadata.len(),
        });
    }
    let text = std::fs::read_to_string(path).map_err(io_error)?;
    Ok(Some((check(path, &text)?, text)))
}

/// The settings that `text` sets; `path` is for messages.
pub(super) fn check(path: &Path, text: &str) -> Result<Settings, FileError> {
    parse(text).map_err(|message| FileError::Syntax {
        path: path.to_owned(),
        message,
    })
}

fn parse(text: &str) -> Result<Settings, String> {
    toml::from_str(text).map_err(|error| error.to_string().trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn unknown_keys_are_errors() {
        assert_eq!(
            parse("[index]\nmax_blob_bytes = 5").unwrap().index.max_blob_bytes,
            Some(5)
        );
        assert!(parse("[index]\nmax_blob = 5").unwrap_err().contains("max_blob"));
        assert!(parse("command = 'x'").is_err());
    }
}
