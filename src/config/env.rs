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
        "CODESCOUT_LOG",
        "what to log to standard error: error, warn, info, debug, trace, or a filter",
    ),
    (
        "CODESCOUT_FAIL_AT",
        "for tests, in builds with debug assertions only: where the writer is killed, stopped or made to fail",
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
    /// `CODESCOUT_LOG`
    pub log: Option<String>,
    /// `CODESCOUT_FAIL_AT`
    pub fail_at: Option<String>,
}

impl Environment {
    /// Reads the process's environment. Empty values count as unset.
    pub fn read() -> Self {
        let value = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        Self {
            sidecar: value("CODESCOUT_SIDECAR").map(PathBuf::from),
            max_blob_bytes: value("CODESCOUT_MAX_BLOB_BYTES"),
            model: value("CODESCOUT_MODEL"),
            log: value("CODESCOUT_LOG").and_then(|value| value.into_string().ok()),
            fail_at: value("CODESCOUT_FAIL_AT").and_then(|value| value.into_string().ok()),
        }
    }
}
