//! What can be typed: what every command has, and the commands by family.

mod agents;
mod eval;
mod past;
mod questions;
mod sharing;
mod upkeep;

use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};

pub(super) use self::agents::{BodiesArg, ClientArgs, InstallArgs, ServeArgs, UninstallArgs};
pub(super) use self::eval::{EvalArgs, IdsArg};
pub(super) use self::past::{BlameArgs, BlameBy, DiffArgs, DiffBy, DiffWith, HistoryArgs};
pub(super) use self::questions::{
    GrepArgs, InArg, ModeArg, OutlineArgs, OutlineView, ReadArgs, SearchArgs, SymbolArgs,
};
pub(super) use self::sharing::{
    CiArgs, CiCommand, ExportArgs, ImportArgs, KeyArgs, PullArgs, PushArgs, RestoreArgs, SaveArgs,
};
pub(super) use self::upkeep::{
    ConfigArgs, ConfigCommand, DoctorArgs, GcArgs, HistoryVersions, HooksArgs, HooksCommand, IndexArgs, InitArgs,
    StatusArgs, VerifyArgs,
};
use crate::model::with_stand_ins;
use crate::query::{CursorError, CursorKey};

/// Search, read and navigate any revision of a git repository.
///
/// Works offline in any clone without configuration: what is missing from the index is built first and kept in .codescout/.
/// Exit code: 0 found, 1 nothing found, 2 failed.
#[derive(Debug, Parser)]
#[command(name = "codescout", version, max_term_width = 100, propagate_version = true)]
pub(super) struct Args {
    #[command(flatten)]
    pub(super) global: Global,
    #[command(subcommand)]
    pub(super) command: Command,
}

/// They stand behind what the command itself has.
const EVERYWHERE: &str = "Options of every command";

/// Options of every command.
#[derive(Debug, ClapArgs)]
pub(super) struct Global {
    /// What to look at: a commit, branch or tag, INDEX, or WORKTREE (files as they are on disk)
    #[arg(long = "ref", value_name = "REV", default_value = "WORKTREE", global = true, help_heading = EVERYWHERE)]
    pub(super) reference: String,
    /// A folder in the repository
    #[arg(long, value_name = "DIR", default_value = ".", global = true, help_heading = EVERYWHERE)]
    pub(super) repo: PathBuf,
    /// Print one JSON object
    #[arg(long, global = true, help_heading = EVERYWHERE)]
    pub(super) json: bool,
    /// No colours
    #[arg(long, global = true, help_heading = EVERYWHERE)]
    pub(super) no_color: bool,
    /// No progress, only errors
    #[arg(short, long, global = true, help_heading = EVERYWHERE)]
    pub(super) quiet: bool,
    /// Say more; twice for details
    #[arg(short, long, action = clap::ArgAction::Count, global = true, help_heading = EVERYWHERE)]
    pub(super) verbose: u8,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Find code by words, names or meaning
    Search(SearchArgs),
    /// Find every line that matches a regular expression
    Grep(GrepArgs),
    /// Show what a name means: every definition of it
    Symbol(SymbolArgs),
    /// Show what is in the repository, a folder or a file
    Outline(OutlineArgs),
    /// Print a file, or parts of it, at any revision
    Read(ReadArgs),
    /// Show what happened to a file, a folder or a symbol, across renames
    History(HistoryArgs),
    /// Show who wrote what stands there: by definition, by line, by owner
    Blame(BlameArgs),
    /// Show what differs between two revisions, by definition
    Diff(DiffArgs),
    /// Build or update the index
    Index(IndexArgs),
    /// Show what is indexed and how fresh it is
    Status(StatusArgs),
    /// Set up a repository: index it, offer the hooks, and say what next
    Init(InitArgs),
    /// Look for what is wrong, and say what mends it
    Doctor(DoctorArgs),
    /// Check every file of the index, and mend what is damaged
    Verify(VerifyArgs),
    /// Throw away what no ref, reflog, work tree or pin keeps
    Gc(GcArgs),
    /// Write what is known of a revision into one file
    Export(ExportArgs),
    /// Take in what somebody else has exported
    Import(ImportArgs),
    /// Keep the index from one job of a continuous integration to the next
    Ci(CiArgs),
    /// Put the index beside the code on a remote, for everybody who clones
    Push(PushArgs),
    /// Take in the index that stands on a remote
    Pull(PullArgs),
    /// Keep the index fresh by git's hooks
    Hooks(HooksArgs),
    /// Serve tools to agents over the Model Context Protocol
    Serve(ServeArgs),
    /// Name this program in the configuration of an agent, so that it can ask
    Install(InstallArgs),
    /// Take back what install wrote
    Uninstall(UninstallArgs),
    /// Show or change settings
    Config(ConfigArgs),
    /// Print a script that completes commands in a shell
    Completions(CompletionsArgs),
    /// Measure how good answers are
    Eval(EvalArgs),
}

/// Reads text that can hold a path: bytes that are not UTF-8 become stand-ins.
fn path_text() -> impl TypedValueParser<Value = String> {
    OsStringValueParser::new().map(|typed| with_stand_ins(typed.as_bytes()).into_owned())
}

/// Which files.
#[derive(Debug, ClapArgs)]
pub(super) struct FilterArgs {
    /// Only below this folder or matching this glob; `!` before it leaves out; may be repeated
    #[arg(short, long = "path", value_name = "GLOB", value_parser = path_text())]
    pub(super) paths: Vec<String>,
    /// Only files of this language; may be repeated
    #[arg(long = "lang", value_name = "LANG")]
    pub(super) langs: Vec<String>,
    /// Test code: any, no, only
    #[arg(long, value_enum, default_value_t)]
    pub(super) tests: TestsArg,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(super) enum TestsArg {
    #[default]
    Any,
    No,
    Only,
}

/// How much.
#[derive(Debug, ClapArgs)]
pub(super) struct PageArgs {
    /// How many results; 0 for all
    #[arg(short = 'n', long, value_name = "N")]
    pub(super) limit: Option<usize>,
    /// Go on where an answer ended: its `next_cursor`
    #[arg(long, value_name = "CURSOR")]
    pub(super) cursor: Option<String>,
}

impl PageArgs {
    /// The position that the cursor names.
    pub(super) fn after(&self, key: &CursorKey) -> Result<Option<(u32, u32)>, CursorError> {
        self.cursor.as_deref().map(|cursor| key.read(cursor)).transpose()
    }
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  codescout completions bash > ~/.local/share/bash-completion/completions/codescout
  codescout completions zsh > ~/.zfunc/_codescout
  codescout completions fish > ~/.config/fish/completions/codescout.fish")]
pub(super) struct CompletionsArgs {
    /// Which shell
    pub(super) shell: clap_complete::Shell,
}
