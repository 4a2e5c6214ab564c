//! What makes, keeps and checks the index, and settings.

use clap::{Args as ClapArgs, Subcommand, ValueEnum};

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  codescout index                 the commit that is checked out
  codescout index v1.0 v2.0       two tags
  codescout index --all-branches  every local branch
  codescout index --history       what every commit of every local branch changed, too
  codescout index --watch         go on whenever a commit, checkout or reset moves a ref")]
pub(crate) struct IndexArgs {
    /// Revisions; the commit that is checked out if there are none
    pub(crate) revisions: Vec<String>,
    /// Every local branch
    #[arg(long)]
    pub(crate) all_branches: bool,
    /// Record what each commit changed, of the revisions that are named (or --ref), without any of every local branch, and what it
    /// did to definitions; from then on every index run goes on with it. Versions of files that no revision has are indexed for search
    /// --all-history: the last of each file and definition that was removed, or with =all every one
    #[arg(long, value_enum, value_name = "VERSIONS", num_args = 0..=1, require_equals = true)]
    pub(crate) history: Option<Option<HistoryVersions>>,
    /// Stay, and index again whenever refs move, until interrupted. Uncommitted edits need none of this: every query
    /// looks at them
    #[arg(long)]
    pub(crate) watch: bool,
    /// First give the Qdrant collection by which vectors are shared the settings that are set now: in place, or, for another number
    /// of shards, by a copy that takes its place
    #[arg(long, conflicts_with = "watch")]
    pub(crate) new_collection: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum HistoryVersions {
    /// The last version of each file and definition that was removed
    Last,
    /// Every version of every file
    All,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  codescout init
  codescout init --hooks              without being asked
  codescout init --no-hooks --repo ../other")]
pub(crate) struct InitArgs {
    /// Install the hooks too
    #[arg(long, conflicts_with = "no_hooks")]
    pub(crate) hooks: bool,
    /// Do not ask about the hooks
    #[arg(long)]
    pub(crate) no_hooks: bool,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  codescout doctor
  codescout doctor --fix          mend what can be mended without asking
  codescout doctor --what-leaves  what would leave this machine

Exit code: 0 nothing is in the way, 1 there is a problem, 2 failed.")]
pub(crate) struct DoctorArgs {
    /// Mend what can be mended without touching anything but the index
    #[arg(long)]
    pub(crate) fix: bool,
    /// Only what would leave this machine
    #[arg(long)]
    pub(crate) what_leaves: bool,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  codescout status
  codescout status --ref v1.2.0 --json
  codescout status --bytes             what keeps how much")]
pub(crate) struct StatusArgs {
    /// Show what keeps how much; reads the list of files of every snapshot
    #[arg(long)]
    pub(crate) bytes: bool,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  codescout gc --dry-run       what would go, and what keeps the rest
  codescout gc
  codescout gc --pin v1.2.0    keep this snapshot, whatever becomes of the tag
  codescout gc --pins")]
pub(crate) struct GcArgs {
    /// Change nothing, only show what would be done
    #[arg(short = 'n', long)]
    pub(crate) dry_run: bool,
    /// Copy what stays even if little is dead, and into as few files as can be
    #[arg(long, conflicts_with = "dry_run")]
    pub(crate) aggressive: bool,
    /// Keep the snapshot of this revision, even if git forgets it; may be repeated
    #[arg(long, value_name = "REV", conflicts_with_all = ["dry_run", "aggressive"])]
    pub(crate) pin: Vec<String>,
    /// Keep it no longer for its own sake; may be repeated
    #[arg(long, value_name = "REV", conflicts_with_all = ["dry_run", "aggressive"])]
    pub(crate) unpin: Vec<String>,
    /// Show what is pinned
    #[arg(long, conflicts_with_all = ["dry_run", "aggressive"])]
    pub(crate) pins: bool,
    /// Also remove the vectors that this clone has shared by a Qdrant, of chunks that it does not keep any more
    #[arg(long, conflicts_with_all = ["pin", "unpin", "pins"])]
    pub(crate) qdrant: bool,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  codescout verify                  is every file what was written?
  codescout verify --deep           and does it say what the blobs say?
  codescout verify --sample 1000    that, of a thousand blobs
  codescout verify --repair

Exit code: 0 all is well, 1 damage was found, 2 it could not be checked.")]
pub(crate) struct VerifyArgs {
    /// Extract, index and embed the blobs again and compare with what is stored
    #[arg(long)]
    pub(crate) deep: bool,
    /// Like --deep, but only so many blobs and snapshots, others each time
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(usize))]
    pub(crate) sample: Option<usize>,
    /// Set aside what is damaged and make it again from git
    #[arg(long)]
    pub(crate) repair: bool,
    /// Stop looking after so many seconds
    #[arg(long, value_name = "SECONDS")]
    pub(crate) max_duration: Option<u64>,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  codescout hooks install --dry-run    what would be written
  codescout hooks install
  codescout hooks status --json        exit code 1 if git would not call them
  codescout hooks uninstall")]
pub(crate) struct HooksArgs {
    #[command(subcommand)]
    pub(crate) command: HooksCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum HooksCommand {
    /// Write the hooks, side by side with those that are there
    #[command(after_help = "Examples:
  codescout hooks install
  codescout hooks install --dry-run --json
  codescout hooks install --husky      adds lines to .husky/post-commit and the like")]
    Install {
        /// Write nothing, only say what would be done
        #[arg(long)]
        dry_run: bool,
        /// Also where core.hooksPath leads out of this clone's own git directory
        #[arg(long)]
        force: bool,
        /// Write into .husky, whose files belong to the work tree
        #[arg(long)]
        husky: bool,
    },
    /// Take the hooks away and put back what was there, byte by byte
    #[command(after_help = "Examples:
  codescout hooks uninstall
  codescout hooks uninstall --dry-run")]
    Uninstall {
        /// Write nothing, only say what would be done
        #[arg(long)]
        dry_run: bool,
        /// Also where core.hooksPath leads out of this repository
        #[arg(long)]
        force: bool,
    },
    /// Show whether git would call the hooks, and what their last run did
    #[command(after_help = "Examples:
  codescout hooks status
  codescout hooks status --json")]
    Status,
    /// What a hook calls: notes the event, starts a run in the background and returns
    #[command(after_help = "Examples:
  codescout hooks run post-commit
  codescout hooks run post-checkout OLD NEW 1")]
    Run {
        /// The hook's name
        #[arg(value_parser = ["post-commit", "post-checkout", "post-merge", "post-rewrite", "post-receive"])]
        event: String,
        /// What git gives to the hook
        #[arg(value_name = "ARG", trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<std::ffi::OsString>,
        /// Be the run
        #[arg(long, hide = true)]
        worker: bool,
    },
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  codescout config                     every setting, and where it was set
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
    /// Every setting, its value, and where it was set
    Show,
    /// The value of one setting
    Get {
        /// As in the list
        key: String,
    },
    /// Write a setting into .codescout/config.toml
    Set {
        /// As in the list
        key: String,
        /// What it shall be
        value: String,
        /// Write it into your own file, for all repositories
        #[arg(long)]
        user: bool,
    },
    /// Take a setting out of .codescout/config.toml
    Unset {
        /// As in the list
        key: String,
        /// Take it out of your own file
        #[arg(long)]
        user: bool,
    },
    /// Record .codescout/config.toml, as it is, as a file that you wrote: what it says of servers and keys then counts
    Trust,
}
