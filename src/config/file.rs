//! Settings in TOML. Unknown keys are errors.

use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;

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

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EmbeddingSettings {
    pub(super) model: Option<PathBuf>,
    pub(super) server: Option<String>,
    pub(super) api: Option<String>,
    pub(super) key_file: Option<PathBuf>,
    pub(super) key_variable: Option<String>,
    pub(super) proxy: Option<String>,
    pub(super) revision: Option<String>,
    pub(super) query_prefix: Option<String>,
    pub(super) document_prefix: Option<String>,
    pub(super) dimensions: Option<u32>,
    pub(super) encoding: Option<String>,
    pub(super) batch: Option<u32>,
    pub(super) in_flight: Option<u32>,
    pub(super) timeout_s: Option<u32>,
    pub(super) query_timeout_ms: Option<u32>,
}

impl EmbeddingSettings {
    /// The first key that is set.
    pub(super) fn first_set(&self) -> Option<&'static str> {
        let keys = [
            ("embedding.model", self.model.is_some()),
            ("embedding.server", self.server.is_some()),
            ("embedding.api", self.api.is_some()),
            ("embedding.key_file", self.key_file.is_some()),
            ("embedding.key_variable", self.key_variable.is_some()),
            ("embedding.proxy", self.proxy.is_some()),
            ("embedding.revision", self.revision.is_some()),
            ("embedding.query_prefix", self.query_prefix.is_some()),
            ("embedding.document_prefix", self.document_prefix.is_some()),
            ("embedding.dimensions", self.dimensions.is_some()),
            ("embedding.encoding", self.encoding.is_some()),
            ("embedding.batch", self.batch.is_some()),
            ("embedding.in_flight", self.in_flight.is_some()),
            ("embedding.timeout_s", self.timeout_s.is_some()),
            ("embedding.query_timeout_ms", self.query_timeout_ms.is_some()),
        ];
        keys.into_iter().find(|(_, is_set)| *is_set).map(|(key, _)| key)
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SparseSettings {
    pub(super) server: Option<String>,
    pub(super) key_file: Option<PathBuf>,
    pub(super) key_variable: Option<String>,
    pub(super) proxy: Option<String>,
    pub(super) model: Option<String>,
    pub(super) revision: Option<String>,
    pub(super) batch: Option<u32>,
    pub(super) in_flight: Option<u32>,
    pub(super) timeout_s: Option<u32>,
    pub(super) query_timeout_ms: Option<u32>,
    pub(super) weight_percent: Option<u32>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RerankSettings {
    pub(super) server: Option<String>,
    pub(super) key_file: Option<PathBuf>,
    pub(super) key_variable: Option<String>,
    pub(super) proxy: Option<String>,
    pub(super) api: Option<String>,
    pub(super) model: Option<String>,
    pub(super) candidates: Option<u32>,
    pub(super) batch: Option<u32>,
    pub(super) timeout_ms: Option<u32>,
}

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

/// Reads a file of settings; none if it is not there.
pub(super) fn read(path: &Path) -> Result<Option<Settings>, FileError> {
    let io_error = |source| FileError::Io {
        path: path.to_owned(),
        source,
    };
    let metadata = match std::fs::symlink_metadata(path) {
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
    check(path, &text).map(Some)
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
