//! Defines the command-line arguments: global options, commands, and options common to several commands.

mod agents;
mod edit;
mod eval;
mod fleet;
mod grep;
mod sharing;
mod upkeep;

use std::path::PathBuf;

use anstream::ColorChoice;
use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};

pub(super) use self::agents::{BodiesArg, ClientArgs, ExtraArg, InstallArgs, ProfileArg, ServeArgs, UninstallArgs};
pub(super) use self::edit::EditArgs;
pub(super) use self::eval::{EvalArgs, IdsArg};
pub(super) use self::fleet::{FleetAddArgs, FleetArgs, FleetCommand, FleetIndexArgs, FleetVerifyArgs, ServedFleet};
pub(super) use self::grep::GrepArgs;
pub(super) use self::sharing::{
    CiArgs, CiCommand, ExportArgs, ImportArgs, ImportCommand, ImportScipArgs, KeyArgs, PreciseArgs, PreciseCommand,
    PullArgs, PushArgs, RestoreArgs, RunArgs, SaveArgs,
};
pub(super) use self::upkeep::{
    BrokerArgs, ConfigArgs, ConfigCommand, DoctorArgs, GcArgs, HistoryVersions, HooksArgs, HooksCommand, IndexArgs,
    InitArgs, InitStep,
};
use crate::ops::{
    Blame, Diff, Docs, Graph, History, Memory, Outline, Read, Rename, Review, Run, Search, Status, Symbol, Verify,
};

/// Search, read and navigate any revision of a git repository.
///
/// Works offline in any clone without configuration. Builds missing parts of the index first, in .codescout/.
/// Exit status: 0 if something is found, 1 if nothing is, 2 on error or if nothing found is certain.
#[derive(Debug, Parser)]
#[command(name = "codescout", version, max_term_width = 100, propagate_version = true)]
pub(super) struct Args {
    #[command(flatten)]
    pub(super) global: Global,
    #[command(subcommand)]
    pub(super) command: Command,
}

/// Options of every command.
#[derive(Debug, ClapArgs)]
pub(super) struct Global {
    /// Revision: a commit, branch or tag, INDEX, or WORKTREE (files as they are on disk)
    #[arg(long = "ref", value_name = "REV", default_value = "WORKTREE", global = true)]
    pub(super) reference: String,
    /// Run as if started in this directory; for a URL, in a clone in your cache (see clone.hosts)
    #[arg(long, value_name = "DIR", default_value = ".", global = true)]
    pub(super) repo: PathBuf,
    /// Print the result as one JSON object
    #[arg(long, global = true)]
    pub(super) json: bool,
    /// Print paths relative to the repository root instead of the current directory
    #[arg(long, global = true)]
    pub(super) full_name: bool,
    /// When to use colors: auto (on a terminal), always or never
    #[arg(
        long,
        value_enum,
        value_name = "WHEN",
        default_value_t,
        hide_possible_values = true,
        global = true
    )]
    color: ColorArg,
    /// Disable colors, as --color never
    #[arg(long, hide = true, global = true)]
    no_color: bool,
    /// Do not show long output through a pager
    #[arg(long, global = true)]
    pub(super) no_pager: bool,
    /// Print errors only, no progress
    #[arg(short, long, global = true)]
    pub(super) quiet: bool,
    /// Print more; repeat for details
    #[arg(short, long, action = clap::ArgAction::Count, global = true)]
    pub(super) verbose: u8,
}

impl Global {
    /// Returns when to use colors.
    pub(super) fn color(&self) -> ColorChoice {
        match self.color {
            _ if self.no_color || self.json => ColorChoice::Never,
            ColorArg::Auto => ColorChoice::Auto,
            ColorArg::Always => ColorChoice::AlwaysAnsi,
            ColorArg::Never => ColorChoice::Never,
        }
    }
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(super) enum ColorArg {
    #[default]
    Auto,
    Always,
    Never,
}

impl Command {
    /// Returns true for commands with long output to read, which goes through the pager.
    pub(super) fn is_paged(&self) -> bool {
        matches!(
            self,
            Self::Search(_)
                | Self::Grep(_)
                | Self::Symbol(_)
                | Self::Graph(_)
                | Self::Outline(_)
                | Self::Read(_)
                | Self::History(_)
                | Self::Blame(_)
                | Self::Diff(_)
                | Self::Review(_)
        )
    }
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Search code by words, names or meaning
    Search(Paged<Search>),
    /// Print lines that match a regular expression
    Grep(GrepArgs),
    /// Find definitions by name
    Symbol(Paged<Symbol>),
    /// Show callers, references and imports, and what a change affects
    Graph(Paged<Graph>),
    /// List what the repository, a directory or a file defines
    Outline(Paged<Outline>),
    /// Print a file or parts of it at any revision
    Read(Read),
    /// Show the history of a file, directory or definition, following renames
    History(Paged<History>),
    /// Show who last changed each definition, line or owner's share
    Blame(Paged<Blame>),
    /// Show changes between two revisions, by definition
    Diff(Paged<Diff>),
    /// Review a change: affected code, tests to run, and what is uncertain
    Review(ReviewArgs),
    /// Edit definitions, sections, keys and text in files
    Edit(EditArgs),
    /// Rename a definition and every reference that certainly means it
    Rename(Rename),
    /// Keep notes about definitions and check whether they still hold
    Memory(Paged<Memory>),
    /// Find stale names, paths and links in documentation
    Docs(Paged<Docs>),
    /// Run a configured command, such as the tests
    Run(Paged<Run>),
    /// Build or update the index
    Index(IndexArgs),
    /// Show what is indexed and whether it is up to date
    Status(Status),
    /// Set up a repository: index, git hooks, CI file, and your coding agents' configuration
    Init(InitArgs),
    /// Check for problems and suggest fixes
    Doctor(DoctorArgs),
    /// Check the index files and repair damage
    Verify(Verify),
    /// Delete index data that no ref, reflog, worktree or pin uses
    Gc(GcArgs),
    /// Export the index of one or more revisions to a file
    Export(ExportArgs),
    /// Import an index bundle or a SCIP index
    Import(ImportArgs),
    /// Run an installed SCIP indexer and import its result
    Precise(PreciseArgs),
    /// Cache the index between CI jobs
    Ci(CiArgs),
    /// Push the index to a Git remote so that other clones can use it
    Push(PushArgs),
    /// Fetch the index from a Git remote
    Pull(PullArgs),
    /// Manage Git hooks that keep the index up to date
    Hooks(HooksArgs),
    /// Search many repositories through a Qdrant server
    Fleet(FleetArgs),
    /// Browse repositories in a web browser, on this machine only
    Web(WebArgs),
    /// Run an MCP server for coding agents
    Serve(ServeArgs),
    /// Add codescout to a coding agent's MCP configuration
    Install(InstallArgs),
    /// Undo `install`
    Uninstall(UninstallArgs),
    /// Show or change settings
    Config(ConfigArgs),
    /// Print a script that completes commands, paths, revisions and names
    Completions(CompletionsArgs),
    /// Write manual pages
    Man(ManArgs),
    /// Measure search quality
    Eval(EvalArgs),
    /// Run language servers for other commands
    #[command(hide = true)]
    Broker(BrokerArgs),
    /// Options of every command
    #[command(hide = true)]
    Options,
}

/// An operation with options that select a page of its results.
#[derive(Debug, ClapArgs)]
pub(super) struct Paged<O: ClapArgs> {
    #[command(flatten)]
    pub(super) op: O,
    #[command(flatten)]
    pub(super) page: PageArgs,
}

/// Options that select a page of results.
#[derive(Debug, Default, ClapArgs)]
pub(super) struct PageArgs {
    /// Maximum number of results; 0 for all
    #[arg(short = 'n', long, value_name = "N")]
    pub(super) limit: Option<usize>,
    /// Continue from the `next_cursor` of an earlier answer
    #[arg(long, value_name = "CURSOR", hide_short_help = true)]
    pub(super) cursor: Option<String>,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  codescout web
  codescout web --root ~/src --port 8080
  codescout web --fleet --group payments")]
pub(super) struct WebArgs {
    /// Also show the repositories below this directory; repeatable
    #[arg(long = "root", value_name = "DIR")]
    pub(super) roots: Vec<PathBuf>,
    #[command(flatten)]
    pub(super) fleet: ServedFleet,
    /// Port on 127.0.0.1 [default: a free one]
    #[arg(long, value_name = "PORT", default_value_t = 0, hide_default_value = true)]
    pub(super) port: u16,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  codescout review                          what differs from the main branch
  codescout review main...topic --diff
  codescout review v1.0..v2.0 --path src --json
  codescout review origin/main... --markdown > comment.md
  codescout review v1.0..v2.0 --html review.html")]
pub(super) struct ReviewArgs {
    #[command(flatten)]
    pub(super) op: Review,
    /// Print Markdown for a comment on a pull request
    #[arg(long, conflicts_with = "json")]
    pub(super) markdown: bool,
    /// Write a self-contained page to this file; - for standard output
    #[arg(long, value_name = "FILE", conflicts_with_all = ["json", "markdown"])]
    pub(super) html: Option<PathBuf>,
    /// With --html: start of links to files, such as https://github.com/OWNER/NAME/blob/main
    #[arg(long, value_name = "URL", requires = "html")]
    pub(super) link_base: Option<String>,
    /// Maximum number of definitions, other files and tests; 0 for all [default: 30, 10 and 10; all in a page]
    #[arg(short = 'n', long, value_name = "N")]
    pub(super) limit: Option<usize>,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  codescout completions bash > ~/.local/share/bash-completion/completions/codescout
  echo 'source <(codescout completions zsh)' >> ~/.zshrc
  codescout completions fish > ~/.config/fish/completions/codescout.fish")]
pub(super) struct CompletionsArgs {
    /// Shell to complete for
    pub(super) shell: clap_complete::Shell,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  codescout man ~/.local/share/man/man1")]
pub(super) struct ManArgs {
    /// Directory to write to
    #[arg(value_name = "DIR")]
    pub(super) folder: PathBuf,
}
