//! Questions about the past.

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
    /// File or directory relative to the repository root, path:LINE, path:START-END, path#NAME of a definition, or a name;
    /// deleted ones too
    #[arg(required_unless_present = "deleted")]
    pub(crate) target: Option<std::ffi::OsString>,
    /// Show only the commit that introduced it
    #[arg(long, conflicts_with_all = ["last_seen", "deleted", "cochange"])]
    pub(crate) introduced: bool,
    /// Show only the last commit that has it and the commit that deleted it
    #[arg(long, conflicts_with_all = ["deleted", "cochange"])]
    pub(crate) last_seen: bool,
    /// List deleted files under TARGET, deleted definitions named TARGET, or deleted code that matches a description
    #[arg(long, conflicts_with = "cochange")]
    pub(crate) deleted: bool,
    /// Show what changes in the same commits
    #[arg(long)]
    pub(crate) cochange: bool,
    /// Show commits since this date: 2024-02-29, 2024-02-29T13:05Z, or an age such as 12h, 30d, 2w, 6m, 1y
    #[arg(long, value_name = "DATE")]
    pub(crate) since: Option<String>,
    /// Show commits until this date
    #[arg(long, value_name = "DATE")]
    pub(crate) until: Option<String>,
    /// Show commits whose author (name or address, after mailmap) matches this regular expression, ignoring case
    #[arg(long, value_name = "REGEX")]
    pub(crate) author: Option<String>,
    /// Omit commits that changed only whitespace or comments of the definition
    #[arg(long)]
    pub(crate) no_formatting: bool,
    /// Show the change that each commit made
    #[arg(long)]
    pub(crate) diff: bool,
    /// Maximum number of results; 0 for all
    #[arg(short = 'n', long, value_name = "N", default_value_t = 50)]
    pub(crate) limit: usize,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  codescout diff                         what is not committed
  codescout diff v1.0 v2.0
  codescout diff main...topic            what topic changed since it left main
  codescout diff HEAD INDEX --by text    what is staged
  codescout diff v1.0 HEAD --path src --json")]
pub(crate) struct DiffArgs {
    /// Revision, INDEX or WORKTREE; or A..B, or A...B from the merge base; HEAD by default
    pub(crate) from: Option<String>,
    /// Revision, INDEX or WORKTREE; WORKTREE by default
    pub(crate) to: Option<String>,
    /// Level of detail
    #[arg(long, value_enum, default_value_t)]
    pub(crate) by: DiffBy,
    /// Include only this file or directory; repeatable
    #[arg(short, long = "path", value_name = "PATH", value_parser = super::path_text())]
    pub(crate) paths: Vec<String>,
    /// Also show
    #[arg(long, value_enum, value_name = "WHAT")]
    pub(crate) with: Vec<DiffWith>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DiffWith {
    /// Tests that use a changed definition's name
    Tests,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum DiffBy {
    /// Changed definitions in each file
    #[default]
    Symbol,
    /// Changed files
    File,
    /// Changed lines in each file
    Text,
}
