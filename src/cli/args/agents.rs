//! Arguments of `serve`, `install` and `uninstall`.

use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args as ClapArgs, ValueEnum};

use super::ServedFleet;
use crate::setup::install::{Client, Scope, clients};

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  codescout serve                                  serve one client over standard input and output
  codescout serve --root ~/src                     also allow repositories below ~/src
  codescout serve --http 127.0.0.1:8808            serve any number of clients over HTTP
  codescout serve --profile write                  also let clients change files of this repository")]
pub(crate) struct ServeArgs {
    /// Serve HTTP on this address, such as 127.0.0.1:8808, instead of standard input; port 0 picks a free one
    #[arg(long, value_name = "ADDR")]
    pub(crate) http: Option<String>,
    /// Allow calls to name repositories below this directory; repeatable
    #[arg(long = "root", value_name = "DIR")]
    pub(crate) roots: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) fleet: ServedFleet,
    /// Also serve tools that change files or run commands; repeatable
    #[arg(long = "profile", value_enum, value_delimiter = ',', value_name = "PROFILE")]
    pub(crate) profiles: Vec<ProfileArg>,
    /// Do not serve this tool; repeatable
    #[arg(long, value_delimiter = ',', value_name = "TOOL")]
    pub(crate) without: Vec<String>,
    /// Where results carry their text: text, structured, both, or by-client (text; clients that would show JSON instead get only text)
    #[arg(long, value_enum, default_value_t)]
    pub(crate) bodies: BodiesArg,
    /// File that holds the token clients must send; created if missing
    #[arg(long, value_name = "FILE", requires = "http")]
    pub(crate) token_file: Option<PathBuf>,
    /// Accept requests without a token, from any user of this machine
    #[arg(long, requires = "http", conflicts_with = "token_file")]
    pub(crate) no_token: bool,
    /// Also accept requests for this host name, for example behind a proxy; repeatable
    #[arg(long = "host", value_name = "NAME", requires = "http")]
    pub(crate) hosts: Vec<String>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum ProfileArg {
    /// Change files of the worktree
    Write,
    /// Keep notes about definitions
    Memory,
    /// Find stale names, paths and links in documents
    Docs,
    /// Run commands that you have configured
    Run,
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
  codescout install --list                        list the agents found on this machine
  codescout install claude-code                   configure all your projects
  codescout install codex --scope project         configure this repository for everyone
  codescout install cursor --dry-run              only show what would change
  codescout install windsurf --root ~/src         for agents that do not pass the open project
  codescout install codex --profile write         also let the agent edit and rename
  codescout install codex --with skill,hooks      also add a skill, and notes on its searches

Changes are shown and written only after confirmation. `uninstall` restores the files.")]
pub(crate) struct InstallArgs {
    /// Agent to configure; without it, the agents found are listed and, on a terminal, offered one by one
    #[arg(value_parser = client_parser(), conflicts_with = "list")]
    pub(crate) client: Option<&'static Client>,
    /// List installed agents and whether codescout is configured in them
    #[arg(long)]
    pub(crate) list: bool,
    #[command(flatten)]
    pub(crate) common: ClientArgs,
    /// Configure the URL of a running server instead of a command
    #[arg(long, value_name = "URL")]
    pub(crate) http: Option<String>,
    /// Allow calls to name repositories below this directory; repeatable
    #[arg(long = "root", value_name = "DIR", conflicts_with = "http")]
    pub(crate) roots: Vec<PathBuf>,
    /// Also serve tools that change files or run commands; repeatable
    #[arg(
        long = "profile",
        value_enum,
        value_delimiter = ',',
        value_name = "PROFILE",
        conflicts_with = "http"
    )]
    pub(crate) profiles: Vec<ProfileArg>,
    /// Also add instructions for agents on when to use which tool
    #[arg(long)]
    pub(crate) instructions: bool,
    /// Also add a skill, a sub-agent, or hooks that add a line to each session and notes to the agent's searches
    #[arg(long, value_enum, value_name = "EXTRA,…", value_delimiter = ',')]
    pub(crate) with: Vec<ExtraArg>,
    /// Replace a skill, sub-agent or plugin that was changed, and a project's entry that you have not installed
    #[arg(long)]
    pub(crate) force: bool,
    /// Name of the server in the configuration
    #[arg(long, value_name = "NAME", default_value = "codescout")]
    pub(crate) name: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExtraArg {
    Skill,
    Subagent,
    Hooks,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  codescout uninstall claude-code
  codescout uninstall codex --scope project --dry-run
  codescout uninstall cursor --yes --json

A file that has not changed since `install` is restored byte for byte; from other files only the entry is removed.")]
pub(crate) struct UninstallArgs {
    /// Agent to remove codescout from
    #[arg(value_parser = client_parser())]
    pub(crate) client: &'static Client,
    #[command(flatten)]
    pub(crate) common: ClientArgs,
    /// Name of the server in the configuration
    #[arg(long, value_name = "NAME", default_value = "codescout")]
    pub(crate) name: String,
}

/// Options for changing an agent's configuration.
#[derive(Debug, ClapArgs)]
pub(crate) struct ClientArgs {
    /// Scope: user (all your projects) or project (everyone who works on this repository)
    #[arg(long, value_enum, default_value_t)]
    pub(crate) scope: ScopeArg,
    /// Show what would change without changing it
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Do not ask for confirmation
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
        .try_map(|name| Client::by_name(&name).ok_or_else(|| format!("unknown agent {name:?}")))
}
