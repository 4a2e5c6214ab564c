//! Questions about the past.

use clap::Args as ClapArgs;

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
