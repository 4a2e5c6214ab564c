//! Arguments of the commands that build, maintain and check the index, and of `config` and `hooks`.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand, ValueEnum};

use crate::ops::{Gc, Pins};

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  codescout index                 index the checked-out commit
  codescout index v1.0 v2.0       index two tags
  codescout index --all-branches  index every local branch
  codescout index --history       also record the changes of all commits of local branches
  codescout index --watch         keep running and index whenever a ref moves")]
pub(crate) struct IndexArgs {
    /// Revisions to index; the checked-out commit by default
    pub(crate) revisions: Vec<String>,
    /// Index every local branch
    #[arg(long)]
    pub(crate) all_branches: bool,
    /// Record what each commit changed, down to definitions, in the given revisions or else all local branches; later runs of
    /// `index` continue the record. Also index deleted code for `search --all-history`: the last version of each deleted file and
    /// definition, or with =all every version
    #[arg(long, value_enum, value_name = "VERSIONS", num_args = 0..=1, require_equals = true)]
    pub(crate) history: Option<Option<HistoryVersions>>,
    /// Build a graph of the vectors, which speeds up searches of more than 250,000 chunks. Takes 2 KB of memory and 2 ms
    /// of processor time for each. Hooks build it in the background from 262,144 chunks on
    #[arg(long, conflicts_with = "watch")]
    pub(crate) graph: bool,
    /// Keep running and index whenever a ref changes. Queries always include uncommitted edits
    #[arg(long)]
    pub(crate) watch: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum HistoryVersions {
    /// Last version of each deleted file and definition
    Last,
    /// Every version of every file
    All,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  codescout init                       show what would be done, and ask once
  codescout init --yes                 in a container or a script
  codescout init --without agents,ci
  codescout init --undo

Changes files of this clone and the configuration of coding agents for all your projects, such
as ~/.claude.json. The plan names each file; --without agents leaves these out.

Exit status: 0 if all is done, 1 if nothing was changed, 2 if a step failed.")]
pub(crate) struct InitArgs {
    /// Leave out a step; repeatable
    #[arg(
        long,
        value_enum,
        value_name = "STEP,…",
        value_delimiter = ',',
        conflicts_with = "undo"
    )]
    pub(crate) without: Vec<InitStep>,
    /// Undo what `init` did here, except the index
    #[arg(long)]
    pub(crate) undo: bool,
    /// Do not ask for confirmation, also for the configuration of agents in your home directory
    #[arg(short, long)]
    pub(crate) yes: bool,
}

/// A step of `init` that can be left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum InitStep {
    /// Git hooks that update the index in the background
    Hooks,
    /// The configuration of the coding agents that are found, for all your projects
    Agents,
    /// The file of the CI system
    Ci,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  codescout doctor
  codescout doctor --fix          fix what can be fixed by changing only the index
  codescout doctor --what-leaves  show what would leave this machine

Exit status: 0 if there is no problem, 1 if there is one, 2 on error.")]
pub(crate) struct DoctorArgs {
    /// Fix what can be fixed by changing only the index
    #[arg(long)]
    pub(crate) fix: bool,
    /// Show only what would leave this machine
    #[arg(long)]
    pub(crate) what_leaves: bool,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  codescout gc --dry-run       show what would be deleted and what uses the rest
  codescout gc
  codescout gc --pin v1.2.0    keep this snapshot even if the tag is deleted
  codescout gc --pins")]
pub(crate) struct GcArgs {
    #[command(flatten)]
    pub(crate) gc: Gc,
    #[command(flatten)]
    pub(crate) pins: Pins,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  codescout hooks install --dry-run    show what would be written
  codescout hooks install
  codescout hooks status --json        exit with 1 if git would not run them
  codescout hooks uninstall")]
pub(crate) struct HooksArgs {
    #[command(subcommand)]
    pub(crate) command: HooksCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum HooksCommand {
    /// Install hooks next to existing ones
    #[command(after_help = "Examples:
  codescout hooks install
  codescout hooks install --dry-run --json
  codescout hooks install --husky      add lines to .husky/post-commit and others")]
    Install {
        /// Show what would be done without doing it
        #[arg(long)]
        dry_run: bool,
        /// Install even if core.hooksPath points outside this clone's git directory
        #[arg(long)]
        force: bool,
        /// Install into .husky, whose files are part of the worktree
        #[arg(long)]
        husky: bool,
    },
    /// Remove hooks and restore the previous files byte for byte
    #[command(after_help = "Examples:
  codescout hooks uninstall
  codescout hooks uninstall --dry-run")]
    Uninstall {
        /// Show what would be done without doing it
        #[arg(long)]
        dry_run: bool,
        /// Uninstall even if core.hooksPath points outside this repository
        #[arg(long)]
        force: bool,
    },
    /// Show whether git runs the hooks and what their last run did
    #[command(after_help = "Examples:
  codescout hooks status
  codescout hooks status --json")]
    Status,
    /// Record a hook event and start indexing in the background (called by the hooks)
    #[command(after_help = "Examples:
  codescout hooks run post-commit
  codescout hooks run post-checkout OLD NEW 1")]
    Run {
        /// Name of the hook
        #[arg(value_parser = ["post-commit", "post-checkout", "post-merge", "post-rewrite", "post-receive"])]
        event: String,
        /// Arguments that git passes to the hook
        #[arg(value_name = "ARG", trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<std::ffi::OsString>,
        /// Perform the run
        #[arg(long, hide = true)]
        worker: bool,
    },
    /// Add a note to the context of a coding agent (called by the hooks of `codescout install --with hooks`)
    #[command(hide = true)]
    Agent {
        /// Name of the agent
        // Not checked, because the exit code of a usage error would stop some agents.
        client: String,
    },
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  codescout config                     list settings and where each is set
  codescout -v config                  also describe each setting
  codescout config get search.limit
  codescout config set search.limit 20
  codescout config set --user search.limit 20
  codescout config unset search.limit
  codescout config trust")]
pub(crate) struct ConfigArgs {
    #[command(subcommand)]
    pub(crate) command: Option<ConfigCommand>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// List settings, their values and where each is set; -v describes each
    #[command(alias = "list")]
    Show,
    /// Print the value of a setting
    Get {
        /// Name of the setting, as in `codescout config`
        key: String,
    },
    /// Write a setting to .codescout/config.toml
    Set {
        /// Name of the setting, as in `codescout config`
        key: String,
        /// Value to set
        value: String,
        /// Write to your user configuration, for all repositories
        #[arg(long)]
        user: bool,
    },
    /// Remove a setting from .codescout/config.toml
    Unset {
        /// Name of the setting, as in `codescout config`
        key: String,
        /// Remove it from your user configuration
        #[arg(long)]
        user: bool,
    },
    /// Trust the current .codescout/config.toml, so that its servers and keys are used
    Trust,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct BrokerArgs {
    /// Folder of the socket
    #[arg(long, value_name = "DIR", required_unless_present = "guard")]
    pub(crate) folder: Option<PathBuf>,
    /// Kill the process groups named on standard input once it ends
    #[arg(long, conflicts_with = "folder")]
    pub(crate) guard: bool,
    /// Seconds without clients after which it ends
    #[arg(long, value_name = "SECONDS")]
    pub(crate) idle: Option<u64>,
    /// Seconds without questions after which a server is stopped
    #[arg(long, value_name = "SECONDS")]
    pub(crate) server_idle: Option<u64>,
    /// Memory that a server may use
    #[arg(long, value_name = "MIB")]
    pub(crate) max_memory: Option<u64>,
}
