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
        "folder of a Model2Vec model to embed with, or with a server the model's name there (embedding.model)",
    ),
    (
        "CODESCOUT_EMBEDDING_SERVER",
        "address of a server to embed with (embedding.server)",
    ),
    (
        "CODESCOUT_EMBEDDING_API",
        "what it speaks: openai, ollama or tei (embedding.api)",
    ),
    (
        "CODESCOUT_EMBEDDING_KEY",
        "key for it, unless embedding.key_file or embedding.key_variable says otherwise",
    ),
    ("CODESCOUT_RERANK_SERVER", "address of a reranker (rerank.server)"),
    (
        "CODESCOUT_RERANK_API",
        "what it speaks: tei, infinity, cohere, jina, voyage or llamacpp (rerank.api)",
    ),
    ("CODESCOUT_RERANK_MODEL", "the model's name there (rerank.model)"),
    (
        "CODESCOUT_RERANK_KEY",
        "key for it, unless rerank.key_file or rerank.key_variable says otherwise",
    ),
    (
        "CODESCOUT_SPARSE_SERVER",
        "address of a server for sparse vectors (sparse.server)",
    ),
    (
        "CODESCOUT_SPARSE_KEY",
        "key for it, unless sparse.key_file or sparse.key_variable says otherwise",
    ),
    (
        "CODESCOUT_QDRANT_SERVER",
        "address of a Qdrant to share vectors by (qdrant.server)",
    ),
    (
        "CODESCOUT_QDRANT_KEY",
        "key for it, unless qdrant.key_file or qdrant.key_variable says otherwise",
    ),
    (
        "CODESCOUT_GC_MAX_BYTES",
        "the index shall not be larger; 0 for no limit (gc.max_bytes)",
    ),
    (
        "CODESCOUT_GC_REFLOG_DAYS",
        "for how many days entries of reflogs keep what they name (gc.reflog_days)",
    ),
    (
        "CODESCOUT_GC_AUTO",
        "whether garbage is collected unasked: true or false (gc.auto)",
    ),
    (
        "CODESCOUT_TOKEN",
        "token that clients of codescout serve --http have to send",
    ),
    (
        "CODESCOUT_LOG",
        "what to log to standard error: error, warn, info, debug, trace, or a filter",
    ),
    (
        "CODESCOUT_HOOK_TRIAL",
        "set by a trial of the hooks: a hook that is called says so and does nothing else",
    ),
    (
        "CODESCOUT_FAIL_AT",
        "for tests, in builds with debug assertions only: where the writer is killed, stopped or made to fail",
    ),
    (
        "GITHUB_EVENT_NAME",
        "set by GitHub Actions: codescout ci save writes nothing in a job of a pull request",
    ),
    (
        "CI_MERGE_REQUEST_IID",
        "set by GitLab CI: likewise in a job of a merge request",
    ),
    ("NO_COLOR", "any value turns colours off"),
    (
        "XDG_CONFIG_HOME",
        "where codescout/config.toml stands, the user's own settings; else .config in HOME",
    ),
    (
        "XDG_STATE_HOME",
        "where codescout/trusted stands, the record of settings files that the user wrote; else .local/state in HOME",
    ),
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
    /// `CODESCOUT_EMBEDDING_SERVER`
    pub embedding_server: Option<OsString>,
    /// `CODESCOUT_EMBEDDING_API`
    pub embedding_api: Option<OsString>,
    /// `CODESCOUT_SPARSE_SERVER`
    pub sparse_server: Option<OsString>,
    /// `CODESCOUT_RERANK_SERVER`
    pub rerank_server: Option<OsString>,
    /// `CODESCOUT_RERANK_API`
    pub rerank_api: Option<OsString>,
    /// `CODESCOUT_RERANK_MODEL`
    pub rerank_model: Option<OsString>,
    /// `CODESCOUT_QDRANT_SERVER`
    pub qdrant_server: Option<OsString>,
    /// `CODESCOUT_GC_MAX_BYTES`
    pub gc_max_bytes: Option<OsString>,
    /// `CODESCOUT_GC_REFLOG_DAYS`
    pub gc_reflog_days: Option<OsString>,
    /// `CODESCOUT_GC_AUTO`
    pub gc_auto: Option<OsString>,
    /// `CODESCOUT_TOKEN`
    pub token: Option<String>,
    /// `CODESCOUT_LOG`
    pub log: Option<String>,
    /// `CODESCOUT_HOOK_TRIAL`
    pub hook_trial: Option<String>,
    /// `CODESCOUT_FAIL_AT`
    pub fail_at: Option<String>,
    /// The user's own settings file, below `XDG_CONFIG_HOME` or `HOME`.
    pub user_file: Option<PathBuf>,
    /// The folder that records settings files which the user wrote, below `XDG_STATE_HOME` or `HOME`.
    pub trusted: Option<PathBuf>,
    /// `GITHUB_EVENT_NAME` or `CI_MERGE_REQUEST_IID` with its value, if it says that the job runs what was only proposed.
    pub untrusted_job: Option<String>,
}

impl Environment {
    /// Reads the process's environment. Empty values count as unset.
    pub fn read() -> Self {
        let value = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        Self {
            sidecar: value("CODESCOUT_SIDECAR").map(PathBuf::from),
            max_blob_bytes: value("CODESCOUT_MAX_BLOB_BYTES"),
            model: value("CODESCOUT_MODEL"),
            embedding_server: value("CODESCOUT_EMBEDDING_SERVER"),
            embedding_api: value("CODESCOUT_EMBEDDING_API"),
            sparse_server: value("CODESCOUT_SPARSE_SERVER"),
            rerank_server: value("CODESCOUT_RERANK_SERVER"),
            rerank_api: value("CODESCOUT_RERANK_API"),
            rerank_model: value("CODESCOUT_RERANK_MODEL"),
            qdrant_server: value("CODESCOUT_QDRANT_SERVER"),
            gc_max_bytes: value("CODESCOUT_GC_MAX_BYTES"),
            gc_reflog_days: value("CODESCOUT_GC_REFLOG_DAYS"),
            gc_auto: value("CODESCOUT_GC_AUTO"),
            token: value("CODESCOUT_TOKEN").and_then(|value| value.into_string().ok()),
            log: value("CODESCOUT_LOG").and_then(|value| value.into_string().ok()),
            hook_trial: value("CODESCOUT_HOOK_TRIAL").and_then(|value| value.into_string().ok()),
            fail_at: value("CODESCOUT_FAIL_AT").and_then(|value| value.into_string().ok()),
            user_file: user_folder(value("XDG_CONFIG_HOME"), value("HOME"), ".config")
                .map(|folder| folder.join("codescout/config.toml")),
            trusted: user_folder(value("XDG_STATE_HOME"), value("HOME"), ".local/state")
                .map(|folder| folder.join("codescout/trusted")),
            untrusted_job: untrusted_job(
                value("GITHUB_EVENT_NAME").and_then(|value| value.into_string().ok()),
                value("CI_MERGE_REQUEST_IID").and_then(|value| value.into_string().ok()),
            ),
        }
    }
}

/// A relative path is passed over: https://specifications.freedesktop.org/basedir-spec/
fn user_folder(moved: Option<OsString>, home: Option<OsString>, default: &str) -> Option<PathBuf> {
    let is_usable = |path: &PathBuf| path.is_absolute();
    let moved = moved.map(PathBuf::from).filter(is_usable);
    moved.or_else(|| Some(PathBuf::from(home?).join(default)).filter(is_usable))
}

fn untrusted_job(github_event: Option<String>, gitlab_request: Option<String>) -> Option<String> {
    let github = github_event.filter(|event| event.starts_with("pull_request"));
    let gitlab = gitlab_request.map(|number| format!("CI_MERGE_REQUEST_IID={number}"));
    github.map(|event| format!("GITHUB_EVENT_NAME={event}")).or(gitlab)
}

/// The value of a variable that the user's settings name as the place of a key.
pub(super) fn secret(name: &str) -> Option<String> {
    // A name with one of these characters makes the system's function panic.
    let is_name = !name.is_empty() && !name.contains(['=', '\0']);
    let value = is_name.then(|| std::env::var_os(name)).flatten()?;
    value.into_string().ok().filter(|value| !value.is_empty())
}

/// Variables that are named as if they were this program's, and are not: most likely misspelt.
pub fn unknown_variables() -> Vec<String> {
    std::env::vars_os()
        .filter_map(|(name, _)| name.into_string().ok())
        .filter(|name| name.starts_with("CODESCOUT_") && VARIABLES.iter().all(|(known, _)| known != name))
        .collect()
}
