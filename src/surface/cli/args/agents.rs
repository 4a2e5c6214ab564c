//! Tools for agents, and what names them in the configuration of one.

use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args as ClapArgs, ValueEnum};

use crate::surface::install::{Client, Scope, clients};

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  codescout serve                                  one client, on standard input and output
  codescout serve --root ~/src                     repositories below ~/src may be named too
  codescout serve --http 127.0.0.1:8808            any number of clients, over HTTP")]
pub(crate) struct ServeArgs {
    /// Over HTTP at this address instead, as 127.0.0.1:8808; port 0 for any
    #[arg(long, value_name = "ADDR")]
    pub(crate) http: Option<String>,
    /// Repositories below this folder may be named by calls; may be repeated
    #[arg(long = "root", value_name = "DIR")]
    pub(crate) roots: Vec<PathBuf>,
    /// Where the text of results stands: by-client, text, structured, both
    #[arg(long, value_enum, default_value_t)]
    pub(crate) bodies: BodiesArg,
    /// File with the token that clients have to send; written if it is not there
    #[arg(long, value_name = "FILE", requires = "http")]
    pub(crate) token_file: Option<PathBuf>,
    /// No token: everybody on this machine may call
    #[arg(long, requires = "http", conflicts_with = "token_file")]
    pub(crate) no_token: bool,
    /// Host name by which the server is reached, as in a proxy; may be repeated
    #[arg(long = "host", value_name = "NAME", requires = "http")]
    pub(crate) hosts: Vec<String>,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(crate) enum BodiesArg {
    #[default]
    ByClient,
    Text,
    Structured,
    Both,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  codescout install --list                        which agents are found here
  codescout install claude-code                   for all projects of this user
  codescout install codex --scope project         for everybody who works on this repository
  codescout install cursor --dry-run              only show what would change
  codescout install vscode --http http://127.0.0.1:8000/mcp --yes
  codescout install windsurf --root ~/src         for clients that do not say which project is open
  codescout install gemini --instructions         and tell the agent when to use which tool

Nothing is written before it was shown and confirmed. What was there before is kept: codescout uninstall brings it back.")]
pub(crate) struct InstallArgs {
    /// Which agent
    #[arg(value_parser = client_parser(), required_unless_present = "list", conflicts_with = "list")]
    pub(crate) client: Option<&'static Client>,
    /// Show which agents are found here, and which know of codescout
    #[arg(long)]
    pub(crate) list: bool,
    #[command(flatten)]
    pub(crate) common: ClientArgs,
    /// Name a server that runs already, instead of a command to start one
    #[arg(long, value_name = "URL")]
    pub(crate) http: Option<String>,
    /// Let calls name repositories below this folder; may be repeated
    #[arg(long = "root", value_name = "DIR", conflicts_with = "http")]
    pub(crate) roots: Vec<PathBuf>,
    /// Also write a few lines for agents about when to use which tool
    #[arg(long)]
    pub(crate) instructions: bool,
    /// What the server is called in the configuration
    #[arg(long, value_name = "NAME", default_value = "codescout")]
    pub(crate) name: String,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  codescout uninstall claude-code
  codescout uninstall codex --scope project --dry-run
  codescout uninstall cursor --yes --json

A file that nobody else has changed is as it was before, byte for byte; from others only the entry goes.")]
pub(crate) struct UninstallArgs {
    /// Which agent
    #[arg(value_parser = client_parser())]
    pub(crate) client: &'static Client,
    #[command(flatten)]
    pub(crate) common: ClientArgs,
    /// What the server is called in the configuration
    #[arg(long, value_name = "NAME", default_value = "codescout")]
    pub(crate) name: String,
}

/// How the configuration of an agent is changed.
#[derive(Debug, ClapArgs)]
pub(crate) struct ClientArgs {
    /// For whom: user, all projects of this user; project, everybody who works on this repository
    #[arg(long, value_enum, default_value_t)]
    pub(crate) scope: ScopeArg,
    /// Show what would change, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Do not ask
    #[arg(short, long)]
    pub(crate) yes: bool,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(crate) enum ScopeArg {
    #[default]
    User,
    Project,
}

impl From<ScopeArg> for Scope {
    fn from(scope: ScopeArg) -> Self {
        match scope {
            ScopeArg::User => Self::User,
            ScopeArg::Project => Self::Project,
        }
    }
}

fn client_parser() -> impl TypedValueParser<Value = &'static Client> {
    let names = clients().iter();
    let names = names.map(|client| PossibleValue::new(client.id).aliases(client.aliases.iter().copied()));
    PossibleValuesParser::new(names.collect::<Vec<_>>())
        .try_map(|name| Client::by_name(&name).ok_or_else(|| format!("no client is called {name:?}")))
}
