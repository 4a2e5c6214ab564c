//! Options of `codescout serve`.

use std::path::PathBuf;

/// How tools are served.
#[derive(Clone, Debug)]
pub struct ServeOptions {
    /// A folder in the repository that calls are about unless they name another.
    pub repo: PathBuf,
    /// Folders in which other repositories may be named.
    pub roots: Vec<PathBuf>,
    /// Where the text of results stands.
    pub bodies: Bodies,
    /// Over HTTP instead of standard input and output.
    pub http: Option<HttpOptions>,
}

/// How HTTP is served.
#[derive(Clone, Debug)]
pub struct HttpOptions {
    /// Host and port to listen at.
    pub address: String,
    /// The file that holds the token, or is to hold a generated one.
    pub token_file: Option<PathBuf>,
    /// Whether everybody who reaches the address may call.
    pub no_token: bool,
    /// Host names by which the server is reached, besides those of the machine itself.
    pub hosts: Vec<String>,
}

/// Where the text of results (snippets, bodies, lines of files) stands in an answer. Facts stand in both forms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Bodies {
    /// Where the client that asks is known to look: the text, for clients that are not known.
    #[default]
    ByClient,
    /// In the text.
    Text,
    /// In the structured content.
    Structured,
    /// In both.
    Both,
}
