//! Questions about one revision.

use clap::Args as ClapArgs;

use super::{FilterArgs, PageArgs};

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
    pub(crate) filter: FilterArgs,
    #[command(flatten)]
    pub(crate) page: PageArgs,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  codescout symbol Parser::parse
  codescout symbol parse --kind method --body
  codescout symbol --at src/lib.rs:42:17
  codescout symbol parse_ --prefix --lang rust
  codescout symbol parse_query --refs --json")]
pub(crate) struct SymbolArgs {
    /// Name, qualified or not: parse, Parser::parse, Parser.parse; or the id of a definition
    #[arg(required_unless_present = "at", conflicts_with = "at", value_parser = super::path_text())]
    pub(crate) name: Option<String>,
    /// Find what the name at this position refers to
    #[arg(long, value_name = "PATH:LINE[:COL]", value_parser = super::path_text())]
    pub(crate) at: Option<String>,
    /// Match names that begin with this, or else contain it
    #[arg(long, conflicts_with = "at")]
    pub(crate) prefix: bool,
    /// Include only definitions of this kind, such as function, method, class or struct; repeatable
    #[arg(short, long = "kind", value_name = "KIND")]
    pub(crate) kinds: Vec<String>,
    /// Show the full text of each definition
    #[arg(short, long)]
    pub(crate) body: bool,
    /// Show the documentation of each definition
    #[arg(short, long)]
    pub(crate) doc: bool,
    /// Show the lines that mention the name
    #[arg(long)]
    pub(crate) refs: bool,
    #[command(flatten)]
    pub(crate) filter: FilterArgs,
    #[command(flatten)]
    pub(crate) page: PageArgs,
}
