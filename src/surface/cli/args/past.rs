//! Questions about the past.

use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueEnum};

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  codescout history src/parser.rs
  codescout history Parser::parse                a definition, across edits, renames and moves
  codescout history src/parser.rs#Parser.parse --diff
  codescout history src/parser.rs:40-60
  codescout history src --since 2w --author ada
  codescout history src/old.rs --introduced      a file that is no longer there
  codescout history src/parser.rs --cochange --json
  codescout history --deleted src
  codescout history --deleted \"how sessions were stored on disk\"")]
pub(crate) struct HistoryArgs {
    /// A file or folder from the root of the repository, path:LINE, path:START-END, path#NAME of a definition, or a name; also
    /// what is no longer there
    #[arg(required_unless_present = "deleted")]
    pub(crate) target: Option<std::ffi::OsString>,
    /// Only the commit that brought it in
    #[arg(long, conflicts_with_all = ["last_seen", "deleted", "cochange"])]
    pub(crate) introduced: bool,
    /// Only the last commit that has it, and the one that took it away
    #[arg(long, conflicts_with_all = ["deleted", "cochange"])]
    pub(crate) last_seen: bool,
    /// What is no longer there: files below the target, or all; or definitions that have the target as their name; where the
    /// target is a description, code by meaning
    #[arg(long, conflicts_with = "cochange")]
    pub(crate) deleted: bool,
    /// What changes in the same commits
    #[arg(long)]
    pub(crate) cochange: bool,
    /// Only commits not before this: 2024-02-29, 2024-02-29T13:05Z, or as long ago as 12h, 30d, 2w, 6m, 1y
    #[arg(long, value_name = "DATE")]
    pub(crate) since: Option<String>,
    /// Only commits not after this
    #[arg(long, value_name = "DATE")]
    pub(crate) until: Option<String>,
    /// Only commits whose author's name or address, corrected by the mailmap, matches; upper and lower case alike
    #[arg(long, value_name = "REGEX")]
    pub(crate) author: Option<String>,
    /// Leave out commits that changed only blanks, line breaks and comments of a definition
    #[arg(long)]
    pub(crate) no_formatting: bool,
    /// Show what each commit changed of it
    #[arg(long)]
    pub(crate) diff: bool,
    /// How many results; 0 for all
    #[arg(short = 'n', long, value_name = "N", default_value_t = 50)]
    pub(crate) limit: usize,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  codescout blame src/parser.rs              by definition
  codescout blame Parser::parse
  codescout blame src/parser.rs:40-60        by line
  codescout blame src/parser.rs --by line -w -C --json
  codescout blame src                        by owner")]
pub(crate) struct BlameArgs {
    /// A file or folder from the root of the repository, path:LINE, path:START-END, path#NAME of a definition, or a name
    pub(crate) target: std::ffi::OsString,
    /// By what; without it by definition for a file, by line for lines, by owner for a folder
    #[arg(long, value_enum)]
    pub(crate) by: Option<BlameBy>,
    /// Also count commits that only moved, renamed or reformatted a definition
    #[arg(long)]
    pub(crate) all_changes: bool,
    /// Blanks do not count
    #[arg(short = 'w', long)]
    pub(crate) ignore_whitespace: bool,
    /// Follow lines that were moved within a file
    #[arg(short = 'M', long)]
    pub(crate) moved: bool,
    /// Follow lines that were moved or copied from files changed in the same commit; twice and three times from more files
    #[arg(short = 'C', long, action = clap::ArgAction::Count)]
    pub(crate) copied: u8,
    /// Pass over this commit; may be repeated
    #[arg(long = "ignore-rev", value_name = "REV")]
    pub(crate) ignore_revs: Vec<String>,
    /// Pass over the commits that this file lists, beside those of blame.ignoreRevsFile; may be repeated
    #[arg(long = "ignore-revs-file", value_name = "FILE")]
    pub(crate) ignore_revs_files: Vec<PathBuf>,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  codescout diff                         what is not committed
  codescout diff v1.0 v2.0
  codescout diff main...topic            what topic changed since it left main
  codescout diff HEAD INDEX --by text    what is staged
  codescout diff v1.0 HEAD --path src --json")]
pub(crate) struct DiffArgs {
    /// A revision, INDEX or WORKTREE; or two as A..B, or A...B from where they parted; HEAD if there is none
    pub(crate) from: Option<String>,
    /// A revision, INDEX or WORKTREE; WORKTREE if there is none
    pub(crate) to: Option<String>,
    /// How it is told
    #[arg(long, value_enum, default_value_t)]
    pub(crate) by: DiffBy,
    /// Only this file or folder; may be repeated
    #[arg(short, long = "path", value_name = "PATH", value_parser = super::path_text())]
    pub(crate) paths: Vec<String>,
    /// What else is told
    #[arg(long, value_enum, value_name = "WHAT")]
    pub(crate) with: Vec<DiffWith>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DiffWith {
    /// The tests that use a name of what changed
    Tests,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum DiffBy {
    /// Each file with the definitions that are not what they were
    #[default]
    Symbol,
    /// Each file
    File,
    /// Each file with its changed lines
    Text,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum BlameBy {
    /// Each definition: the last commit, how many commits, owners
    Symbol,
    /// Each line, as git blame has it
    Line,
    /// Each author with how much is theirs
    Owner,
}
