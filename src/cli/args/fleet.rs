//! Arguments of `fleet`.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand};

use super::{GrepArgs, Paged};
use crate::ops::{Graph, History, Outline, Read, Search, Symbol};

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  codescout fleet add /srv/git/*.git --group web
  codescout fleet index --watch                       store what is new on the Qdrant server, and keep on
  codescout fleet search where are uploads retried
  codescout fleet symbol retry_upload --lang go
  codescout fleet read client:src/upload.rs
  codescout serve --fleet --group web --http 127.0.0.1:8808")]
pub(crate) struct FleetArgs {
    /// Folder of the fleet [default: codescout/fleet in XDG_STATE_HOME or ~/.local/state]
    #[arg(long, value_name = "DIR", global = true, hide_short_help = true)]
    pub(crate) dir: Option<PathBuf>,
    /// Group to select, to add to or to admit a reader to; repeatable
    #[arg(long = "group", value_name = "GROUP", global = true)]
    pub(crate) groups: Vec<String>,
    #[command(subcommand)]
    pub(crate) command: FleetCommand,
}

/// The fleet that a server shows instead of one repository.
#[derive(Debug, ClapArgs)]
pub(crate) struct ServedFleet {
    /// Serve the repositories of a fleet (see `codescout fleet`), in its usual folder or in this one
    #[arg(long, value_name = "DIR", num_args = 0..=1, require_equals = true, conflicts_with = "roots")]
    pub(crate) fleet: Option<Option<PathBuf>>,
    /// Serve only repositories of this group of the fleet; repeatable
    #[arg(long = "group", value_name = "GROUP", requires = "fleet")]
    pub(crate) groups: Vec<String>,
}

impl ServedFleet {
    /// Returns the folder, `None` for the usual one, and the groups.
    pub(crate) fn chosen(&self) -> Option<(Option<PathBuf>, Vec<String>)> {
        self.fleet.clone().map(|folder| (folder, self.groups.clone()))
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum FleetCommand {
    /// Add repositories of this machine, also to the groups of --group
    Add(FleetAddArgs),
    /// Remove repositories; the next `fleet index` removes what the server has of them
    Remove {
        /// Names of repositories
        #[arg(value_name = "NAME", required = true)]
        names: Vec<String>,
    },
    /// List the repositories with what is stored of them, then the readers
    List,
    /// Store what is new on the Qdrant server
    Index(FleetIndexArgs),
    /// Show whether each repository is stored as it is now
    Status,
    /// Compare the points on the server with the repositories
    Verify(FleetVerifyArgs),
    /// Create a token for a reader of `serve --fleet --http`, for the groups of --group or all repositories
    Token {
        /// Name of the reader; one that exists gets another token
        #[arg(value_name = "NAME")]
        name: String,
    },
    /// Revoke the token of a reader
    Revoke {
        /// Name of the reader
        #[arg(value_name = "NAME")]
        name: String,
    },
    /// Search the code of all repositories by words, names or meaning
    Search(Paged<Search>),
    /// Print lines of all repositories that match a regular expression
    Grep(GrepArgs),
    /// Find definitions by name in all repositories
    Symbol(Paged<Symbol>),
    /// Show which definitions and files use which, across repositories
    Graph(Paged<Graph>),
    /// Outline a repository, directory or file: `NAME:/src`
    Outline(Paged<Outline>),
    /// Print a file or parts of it: `NAME:src/a.rs`
    Read(Read),
    /// Show the history of a file or definition: `NAME:src/a.rs`
    History(Paged<History>),
}

#[derive(Debug, ClapArgs)]
pub(crate) struct FleetAddArgs {
    /// Folders of repositories, bare or not; NAME=DIR sets the name
    #[arg(value_name = "[NAME=]DIR", required_unless_present = "from_list")]
    pub(crate) folders: Vec<String>,
    /// Also add the repositories in this file, one on each line; - reads standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) from_list: Option<PathBuf>,
    /// Branch or tag to store [default: HEAD]
    #[arg(long, value_name = "REF")]
    pub(crate) branch: Option<String>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct FleetIndexArgs {
    /// Names of repositories; all by default
    #[arg(value_name = "NAME")]
    pub(crate) names: Vec<String>,
    /// Keep running, and store what is new whenever a ref moves
    #[arg(long)]
    pub(crate) watch: bool,
    /// Take what CI has indexed (`codescout push`) from the refs of each repository instead of indexing it again
    #[arg(long)]
    pub(crate) pull: bool,
    /// Require a signature by this key: 64 hexadecimal digits or a PEM file
    #[arg(long, value_name = "KEY", requires = "pull")]
    pub(crate) trust: Option<String>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct FleetVerifyArgs {
    /// Names of repositories; all by default
    #[arg(value_name = "NAME")]
    pub(crate) names: Vec<String>,
    /// Store every point of differing repositories again
    #[arg(long)]
    pub(crate) repair: bool,
}
