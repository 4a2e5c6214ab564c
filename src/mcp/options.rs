//! Options of `codescout serve`.

use std::path::PathBuf;

/// Options of the server.
#[derive(Clone, Debug)]
pub struct ServeOptions {
    /// A folder in the default repository, which calls without `repo` use.
    pub repo: PathBuf,
    /// Folders below which calls may name other repositories.
    pub roots: Vec<PathBuf>,
    /// The folder of a fleet (`None` for the usual one) and its visible groups, to serve instead of the default repository.
    pub fleet: Option<(Option<PathBuf>, Vec<String>)>,
    /// The profiles whose tools are served in addition to those that only read.
    pub profiles: Vec<Profile>,
    /// Names of tools that are not served.
    pub without: Vec<String>,
    /// Determines which part of a reply contains the text of results.
    pub bodies: Bodies,
    /// The options of the HTTP server; `None` to use standard input and output.
    pub http: Option<HttpOptions>,
}

/// A group of tools that are served on request only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// Tools that change files of the worktree.
    Write,
    /// Notes about definitions.
    Memory,
    /// Documents about code.
    Docs,
    /// Commands that the user has configured.
    Run,
}

impl Profile {
    /// Returns the name on the command line.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Write => "write",
            Self::Memory => "memory",
            Self::Docs => "docs",
            Self::Run => "run",
        }
    }
}

/// Options of the HTTP server.
#[derive(Clone, Debug)]
pub struct HttpOptions {
    /// Host and port to listen on.
    pub address: String,
    /// The file with the token. If it does not exist, a generated token is written to it.
    pub token_file: Option<PathBuf>,
    /// True to accept calls without a token.
    pub no_token: bool,
    /// Host names that clients may use to reach the server, in addition to the names of the loopback interface.
    pub hosts: Vec<String>,
}

/// Determines which part of a reply contains the text of results (snippets, bodies, lines of files). Facts (locations,
/// names, counts) are in both parts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Bodies {
    /// The text only. Used for clients that would otherwise show the structured content to their model.
    #[default]
    ByClient,
    /// The text.
    Text,
    /// The structured content.
    Structured,
    /// Both parts.
    Both,
}
