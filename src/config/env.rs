//! Reads environment variables. No other module reads them.

use std::ffi::OsString;
use std::path::PathBuf;

use super::settings::SETTINGS;

/// Variables that are not settings, each with a description.
const OTHER_VARIABLES: &[(&str, &str)] = &[
    (
        "CODESCOUT_SIDECAR",
        "folder of the index, instead of .codescout in the repository",
    ),
    (
        "CODESCOUT_EMBEDDING_KEY",
        "key for the embedding server, unless embedding.key_file or embedding.key_variable is set",
    ),
    (
        "CODESCOUT_SPARSE_KEY",
        "key for the sparse vector server, unless sparse.key_file or sparse.key_variable is set",
    ),
    (
        "CODESCOUT_RERANK_KEY",
        "key for the reranker, unless rerank.key_file or rerank.key_variable is set",
    ),
    (
        "CODESCOUT_QDRANT_KEY",
        "key for the Qdrant server, unless qdrant.key_file or qdrant.key_variable is set",
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
        "set by a trial of the hooks: a hook that is called reports it and does nothing else",
    ),
    (
        "CODESCOUT_FAIL_AT",
        "for tests, in debug builds: the point at which writing is killed, stopped or made to fail",
    ),
    (
        "GITHUB_EVENT_NAME",
        "set by GitHub Actions: codescout ci save writes nothing in a job of a pull request",
    ),
    (
        "CI_MERGE_REQUEST_IID",
        "set by GitLab CI: codescout ci save writes nothing in a merge request job",
    ),
    ("NO_COLOR", "any value turns colours off"),
    (
        "PAGER",
        "program that shows long output on a terminal; less if unset, none if empty or cat",
    ),
    ("LESS", "options of less; FRX if unset"),
    ("TERM", "kind of terminal; no pager if unset or dumb"),
    ("TERM_PROGRAM", "program that is the terminal: some open links to files"),
    ("VTE_VERSION", "version of the terminal's library, for the same"),
    (
        "CODESCOUT_COMPLETE",
        "set by the scripts of codescout completions: name of the shell that requests candidates",
    ),
    (
        "SSH_CONNECTION",
        "set by ssh: the terminal cannot open files of this machine",
    ),
    ("TMUX", "set by tmux: paths are not links to files"),
    ("STY", "set by screen: paths are not links to files"),
    (
        "XDG_CONFIG_HOME",
        "folder of codescout/config.toml, the user's settings; default: .config in HOME",
    ),
    (
        "XDG_STATE_HOME",
        "folder of codescout/trusted and codescout/edits, which record the user's settings files and the edits that \
         run; else .local/state in HOME",
    ),
    (
        "XDG_CACHE_HOME",
        "folder of codescout, for checkouts of indexers if others can write TMPDIR; else .cache in HOME",
    ),
    (
        "XDG_RUNTIME_DIR",
        "folder of codescout/run, the socket through which language servers are asked; else XDG_STATE_HOME",
    ),
    ("PATH", "folders with git, language servers and indexers"),
];

/// Returns all variables that are read, each with a description.
pub fn variables() -> impl Iterator<Item = (&'static str, &'static str)> {
    let settings = SETTINGS
        .iter()
        .filter_map(|setting| Some((setting.variable?, setting.help)));
    settings.chain(OTHER_VARIABLES.iter().copied())
}

/// The values of the environment variables that are set.
#[derive(Clone, Debug, Default)]
pub struct Environment {
    /// The value of `CODESCOUT_SIDECAR`.
    pub sidecar: Option<PathBuf>,
    /// The variables that set a setting, with their values.
    pub(super) settings: Vec<(&'static str, OsString)>,
    /// The value of `CODESCOUT_TOKEN`.
    pub token: Option<String>,
    /// The value of `CODESCOUT_LOG`.
    pub log: Option<String>,
    /// The value of `CODESCOUT_HOOK_TRIAL`.
    pub hook_trial: Option<String>,
    /// The value of `CODESCOUT_FAIL_AT`.
    pub fail_at: Option<String>,
    /// The path of the user's settings file, below `XDG_CONFIG_HOME` or `HOME`.
    pub user_file: Option<PathBuf>,
    /// The path of the folder that records the user's trusted settings files, below `XDG_STATE_HOME` or `HOME`.
    pub trusted: Option<PathBuf>,
    /// The folder for what is kept about the user, below `XDG_STATE_HOME` or `HOME`.
    pub state: Option<PathBuf>,
    /// The path of the folder that records the user's running edits, below `XDG_STATE_HOME` or `HOME`.
    pub edits: Option<PathBuf>,
    /// The folder for files that can be deleted at any time, below `XDG_CACHE_HOME` or `HOME`.
    pub cache: Option<PathBuf>,
    /// The folder for sockets, below `XDG_RUNTIME_DIR`, `XDG_STATE_HOME` or `HOME`.
    pub runtime: Option<PathBuf>,
    /// The value of `PATH`.
    pub search_path: String,
    /// The variables that describe the terminal.
    pub terminal: TerminalVariables,
    /// True if `CODESCOUT_COMPLETE` is set.
    pub is_completing: bool,
    /// `GITHUB_EVENT_NAME` or `CI_MERGE_REQUEST_IID` with its value, if the CI job runs code from a pull or merge
    /// request.
    pub untrusted_job: Option<String>,
}

/// The values of the variables that describe the terminal, if they are set.
#[derive(Clone, Debug, Default)]
pub struct TerminalVariables {
    /// `PAGER`; may be empty.
    pub pager: Option<String>,
    /// `LESS`
    pub less: Option<String>,
    /// `TERM`
    pub term: Option<String>,
    /// `TERM_PROGRAM`
    pub term_program: Option<String>,
    /// `VTE_VERSION`
    pub vte_version: Option<String>,
    /// True if `SSH_CONNECTION`, `TMUX` or `STY` is set: the other variables may describe another terminal.
    pub is_remote: bool,
}

impl Environment {
    /// Reads the process's environment. Empty values count as unset, except that of `PAGER`.
    pub fn read() -> Self {
        let value = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let text = |name: &str| value(name).and_then(|value| value.into_string().ok());
        let state = user_folder(value("XDG_STATE_HOME"), value("HOME"), ".local/state");
        Self {
            sidecar: value("CODESCOUT_SIDECAR").map(PathBuf::from),
            settings: SETTINGS
                .iter()
                .filter_map(|setting| setting.variable)
                .filter_map(|name| Some((name, value(name)?)))
                .collect(),
            token: text("CODESCOUT_TOKEN"),
            log: text("CODESCOUT_LOG"),
            hook_trial: text("CODESCOUT_HOOK_TRIAL"),
            fail_at: text("CODESCOUT_FAIL_AT"),
            user_file: user_folder(value("XDG_CONFIG_HOME"), value("HOME"), ".config")
                .map(|folder| folder.join("codescout/config.toml")),
            trusted: state.as_ref().map(|folder| folder.join("codescout/trusted")),
            edits: state.as_ref().map(|folder| folder.join("codescout/edits")),
            state: state.as_ref().map(|folder| folder.join("codescout")),
            cache: user_folder(value("XDG_CACHE_HOME"), value("HOME"), ".cache").map(|folder| folder.join("codescout")),
            runtime: user_folder(value("XDG_RUNTIME_DIR"), None, "")
                .or(state)
                // Only the user may enter it, unlike the folder with the record of trusted files.
                .map(|folder| folder.join("codescout/run")),
            search_path: text("PATH").unwrap_or_default(),
            terminal: TerminalVariables {
                pager: std::env::var("PAGER").ok(),
                less: text("LESS"),
                term: text("TERM"),
                term_program: text("TERM_PROGRAM"),
                vte_version: text("VTE_VERSION"),
                is_remote: ["SSH_CONNECTION", "TMUX", "STY"]
                    .iter()
                    .any(|name| value(name).is_some()),
            },
            is_completing: value("CODESCOUT_COMPLETE").is_some_and(|shell| shell != "0"),
            untrusted_job: untrusted_job(text("GITHUB_EVENT_NAME"), text("CI_MERGE_REQUEST_IID")),
        }
    }

    /// Returns the name and value of a variable that sets a setting.
    pub(super) fn setting(&self, name: &str) -> Option<(&'static str, &OsString)> {
        let mut found = self.settings.iter().filter(|(known, _)| *known == name);
        found.next().map(|(name, value)| (*name, value))
    }

    #[cfg(test)]
    pub(super) fn with_settings(variables: &[(&'static str, &str)]) -> Self {
        let settings = variables.iter().map(|(name, value)| (*name, OsString::from(value)));
        Self {
            settings: settings.collect(),
            ..Self::default()
        }
    }
}

/// Returns the user's folder that `moved` names, or else the folder `default` below `home`. Ignores relative paths:
/// https://specifications.freedesktop.org/basedir-spec/
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

/// Returns the value of the variable that a setting such as `embedding.key_variable` names.
pub(super) fn secret(name: &str) -> Option<String> {
    // `var_os` panics if the name contains one of these characters.
    let is_name = !name.is_empty() && !name.contains(['=', '\0']);
    let value = is_name.then(|| std::env::var_os(name)).flatten()?;
    value.into_string().ok().filter(|value| !value.is_empty())
}

/// Returns variables that are not read although their names have this program's prefix. Most likely they are
/// misspelled.
pub fn unknown_variables() -> Vec<String> {
    std::env::vars_os()
        .filter_map(|(name, _)| name.into_string().ok())
        .filter(|name| name.starts_with("CODESCOUT_") && variables().all(|(known, _)| known != name))
        .collect()
}
