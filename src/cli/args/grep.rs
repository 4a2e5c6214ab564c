//! Options of `grep`.

use clap::Args as ClapArgs;

use super::PageArgs;
use crate::ops::{FileSelection, path_text};

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  codescout grep 'fn \\w+_index'
  codescout grep TODO src tests
  codescout grep -i -w todo --path src --lang rust
  codescout grep -F 'a.b(c)' --ref v1.2.0 -C 2
  codescout grep -l 'use regex' --json")]
pub(crate) struct GrepArgs {
    /// Regular expression in the syntax of Rust's regex crate, matched line by line
    #[arg(value_name = "REGEX", required_unless_present = "regexp")]
    pub(crate) pattern: Option<String>,
    /// Search only these files and directories
    #[arg(value_name = "PATH", value_parser = path_text())]
    pub(crate) paths: Vec<String>,
    /// Regular expression; repeatable. With this option all positional arguments are paths
    #[arg(short = 'e', long, value_name = "REGEX", allow_hyphen_values = true)]
    pub(crate) regexp: Vec<String>,
    /// Print the lines that do not match
    #[arg(short = 'v', long)]
    pub(crate) invert_match: bool,
    /// Print only the matching parts of lines
    #[arg(short, long, conflicts_with_all = ["invert_match", "count", "files_with_matches"])]
    pub(crate) only_matching: bool,
    /// Ignore case
    #[arg(short, long)]
    pub(crate) ignore_case: bool,
    /// Ignore case unless the pattern contains an uppercase letter
    #[arg(short = 'S', long)]
    pub(crate) smart_case: bool,
    /// Match whole words only
    #[arg(short, long)]
    pub(crate) word_regexp: bool,
    /// Treat the pattern as a literal string
    #[arg(short = 'F', long)]
    pub(crate) fixed_strings: bool,
    /// Print only the paths of files with matches
    #[arg(short = 'l', long, conflicts_with = "count")]
    pub(crate) files_with_matches: bool,
    /// Print only the number of matching lines per file
    #[arg(short, long)]
    pub(crate) count: bool,
    /// Lines to show before and after each match
    #[arg(short = 'C', long, value_name = "N", default_value_t = 0)]
    pub(crate) context: usize,
    /// Lines to show after each match
    #[arg(short = 'A', long, value_name = "N")]
    pub(crate) after_context: Option<usize>,
    /// Lines to show before each match
    #[arg(short = 'B', long, value_name = "N")]
    pub(crate) before_context: Option<usize>,
    /// Print more; repeat for details (no short form: -v inverts the match)
    #[arg(long = "verbose", id = "verbose", action = clap::ArgAction::Count)]
    verbose: u8,
    #[command(flatten)]
    pub(crate) filter: FileSelection,
    #[command(flatten)]
    pub(crate) page: PageArgs,
}
