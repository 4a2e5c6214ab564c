//! Options of `grep`.

use clap::Args as ClapArgs;

use super::PageArgs;
use crate::ops::FileSelection;

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  codescout grep 'fn \\w+_index'
  codescout grep -i -w todo --path src --lang rust
  codescout grep -F 'a.b(c)' --ref v1.2.0 -C 2
  codescout grep -l 'use regex' --json")]
pub(crate) struct GrepArgs {
    /// Regular expression in the syntax of Rust's regex crate, matched line by line
    #[arg(value_name = "REGEX")]
    pub(crate) pattern: String,
    /// Ignore case
    #[arg(short, long)]
    pub(crate) ignore_case: bool,
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
    #[command(flatten)]
    pub(crate) filter: FileSelection,
    #[command(flatten)]
    pub(crate) page: PageArgs,
}
