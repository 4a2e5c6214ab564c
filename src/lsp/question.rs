//! What a client asks the broker, and what the broker answers.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::model::explain_by;

/// A name in a file of the worktree.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Place {
    /// Path from the root of the worktree, with `/`.
    pub path: String,
    /// The start of the name in bytes.
    pub start: u32,
    /// The end of the name in bytes.
    pub end: u32,
}

/// A reference whose definition is certain without a server. A server that does not find it has not read the project.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Canary {
    /// The reference.
    pub site: Place,
    /// The definition that it means.
    pub definition: Place,
}

/// A file of the worktree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownFile {
    /// Path from the root of the worktree, with `/`.
    pub path: String,
    /// Differs if the content differs.
    pub id: String,
}

/// A question to a language server about one worktree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    /// The root of the worktree, without links.
    pub root: PathBuf,
    /// Name of the language, as in answers: `python`, `rust`.
    pub language: String,
    /// The variable PATH of the client: where servers are looked up, and what a server that is started gets.
    pub search_path: String,
    /// All files of the language. The server gets those that have changed since the last question.
    pub files: Vec<KnownFile>,
    /// References in other files than their definitions. None are known in some projects.
    pub canaries: Vec<Canary>,
    /// Definitions whose references are wanted.
    pub definitions: Vec<Place>,
    /// References whose definitions are wanted.
    pub sites: Vec<Place>,
    /// The time after which the answer is [`AskError::NotReady`]. The server goes on with its work.
    pub patience: Duration,
}

/// The places that refer to a definition, or `None` if the server did not say.
pub type References = Option<Vec<Place>>;

/// The answer of a server that has read the project.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// Name of the server, such as `pyright`.
    pub server: String,
    /// Version of the server, or empty.
    pub version: String,
    /// For each definition of the question, its references in the worktree, without the definition itself.
    pub references: Vec<References>,
    /// For each site of the question, the names of its definitions in the worktree; `None` if the server did not say. A
    /// definition outside of the worktree is left out, and `is_outside` of the site is true.
    pub definitions: Vec<Option<Vec<Place>>>,
    /// For each site, true if it means something outside of the worktree.
    pub is_outside: Vec<bool>,
    /// True if some requests were not sent before the patience ended.
    pub is_partial: bool,
}

/// The reason why a question has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum AskError {
    /// No server for the language is known.
    #[error("no language server is known for {0}")]
    NoServer(String),
    /// No server for the language is installed.
    #[error("no language server for {lang} is installed")]
    NotInstalled {
        /// The language.
        lang: String,
        /// How to install one.
        how: String,
    },
    /// The server has not read the project yet.
    #[error("{server} has not read the project yet: {state}")]
    NotReady {
        /// Name of the server.
        server: String,
        /// What it does: starting, indexing, or what it last reported.
        state: String,
    },
    /// The server ended or was stopped, and was started again without success.
    #[error("{server} failed: {reason}")]
    Failed {
        /// Name of the server.
        server: String,
        /// What happened.
        reason: String,
    },
    /// The broker cannot be reached or started.
    #[error("language servers cannot be started: {0}")]
    Broker(String),
    /// The interrupt flag was set.
    #[error("interrupted")]
    Interrupted,
}

explain_by!(AskError; Interrupted);
