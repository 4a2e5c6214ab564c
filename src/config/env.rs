//! Every environment variable that is read.

use std::ffi::OsString;
use std::path::PathBuf;

/// The variables by name, with what each does.
pub const VARIABLES: &[(&str, &str)] = &[
    (
        "CODESCOUT_SIDECAR",
        "folder to keep the index in, in place of .codescout in the repository",
    ),
    (
        "CODESCOUT_MAX_BLOB_BYTES",
        "files with more bytes are left out (index.max_blob_bytes)",
    ),
    (
        "CODESCOUT_MODEL",
        "folder of a Model2Vec model to embed with (embedding.model)",
    ),
    (
        "CODESCOUT_TOKEN",
        "token that clients of codescout serve --http have to send",
    ),
    (
        "CODESCOUT_LOG",
        "what to log to standard error: error, warn, info, debug, trace, or a filter",
    ),
    ("NO_COLOR", "any value turns colours off"),
];

/// The values that are set.
#[derive(Clone, Debug, Default)]
pub struct Environment {
    /// `CODESCOUT_SIDECAR`
    pub sidecar: Option<PathBuf>,
    /// `CODESCOUT_MAX_BLOB_BYTES`
    pub max_blob_bytes: Option<OsString>,
    /// `CODESCOUT_MODEL`
    pub model: Option<OsString>,
    /// `CODESCOUT_TOKEN`
    pub token: Option<String>,
    /// `CODESCOUT_LOG`
    pub log: Option<String>,
}

impl Environment {
    /// Reads the process's environment. Empty values count as unset.
    pub fn read() -> Self {
        let value = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        Self {
            sidecar: value("CODESCOUT_SIDECAR").map(PathBuf::from),
            max_blob_bytes: value("CODESCOUT_MAX_BLOB_BYTES"),
            model: value("CODESCOUT_MODEL"),
            token: value("CODESCOUT_TOKEN").and_then(|value| value.into_string().ok()),
            log: value("CODESCOUT_LOG").and_then(|value| value.into_string().ok()),
        }
    }
}
