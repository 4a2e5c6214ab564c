//! Options of `codescout serve`.

use std::path::PathBuf;

/// Options of the server.
#[derive(Clone, Debug)]
pub struct ServeOptions {
    /// A folder in the default repository: calls without `repo` use it.
    pub repo: PathBuf,
    /// Folders below which calls may name other repositories.
    pub roots: Vec<PathBuf>,
    /// The part of a reply that contains the text of results.
    pub bodies: Bodies,
    /// Serves over HTTP instead of standard input and output.
    pub http: Option<HttpOptions>,
}

/// Options of the HTTP server.
#[derive(Clone, Debug)]
pub struct HttpOptions {
    /// Host and port to listen on.
    pub address: String,
    /// The file with the token. If it does not exist, a generated token is written to it.
    pub token_file: Option<PathBuf>,
    /// Accepts calls without a token.
    pub no_token: bool,
    /// Host names that clients may use to reach the server, in addition to those of the loopback interface.
    pub hosts: Vec<String>,
}

/// The part of a reply that contains the text of results (snippets, bodies, lines of files). Facts are in both parts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Bodies {
    /// The text. Clients that would show their model the structured content instead get none.
    #[default]
    ByClient,
    /// The text.
    Text,
    /// The structured content.
    Structured,
    /// Both parts.
    Both,
}
