//! Questions about one revision.

use clap::{Args as ClapArgs, ValueEnum};

use super::{FilterArgs, PageArgs};

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  codescout search \"where is a failed upload retried\"
  codescout search parse_query --lang rust --path src
  codescout search \"token bucket\" --ref v1.2.0 --json
  codescout search '\"no such table\" when a migration runs'
  codescout search \"token bucket\" --refs v1.0,v2.0,WORKTREE
  codescout search --all-history \"token bucket\"      also what was deleted
  codescout search --in commits \"why are retries limited\" --since 1y
  codescout search --in diffs 'max_retries = 3' --path src
  codescout search --in diffs --mode regex 'fn retry_\\w+' --author ada
  echo \"how are errors shown\" | codescout search -")]
pub(crate) struct SearchArgs {
    /// Question, words or name; `-` reads it from standard input
    #[arg(value_parser = super::path_text())]
    pub(crate) query: String,
    /// Search mode
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) mode: ModeArg,
    /// Search all indexed versions, including deleted code, and show when each existed
    #[arg(long, conflicts_with_all = ["refs", "inside"])]
    pub(crate) all_history: bool,
    /// Search several revisions at once, separated by commas; repeatable
    #[arg(long, value_name = "REV,…", value_delimiter = ',', conflicts_with = "inside")]
    pub(crate) refs: Vec<String>,
    /// Search history instead of files: commit messages, or lines added and removed
    #[arg(long = "in", value_enum, value_name = "WHAT")]
    pub(crate) inside: Option<InArg>,
    /// With --in: search commits since this date: 2024-02-29, 2024-02-29T13:05Z, or an age such as 12h, 30d, 2w, 6m, 1y
    #[arg(long, value_name = "DATE", requires = "inside")]
    pub(crate) since: Option<String>,
    /// With --in: search commits until this date
    #[arg(long, value_name = "DATE", requires = "inside")]
    pub(crate) until: Option<String>,
    /// With --in: search commits whose author (name or address, after mailmap) matches this regular expression, ignoring case
    #[arg(long, value_name = "REGEX", requires = "inside")]
    pub(crate) author: Option<String>,
    /// Prefer definitions of this kind, such as function, method, class or struct; repeatable
    #[arg(short, long = "kind", value_name = "KIND", conflicts_with_all = ["all_history", "refs", "inside"])]
    pub(crate) kinds: Vec<String>,
    #[command(flatten)]
    pub(crate) filter: FilterArgs,
    #[command(flatten)]
    pub(crate) page: PageArgs,
    /// Lines to show for each result
    #[arg(short = 'C', long, alias = "lines", value_name = "N", default_value_t = 6)]
    pub(crate) context_lines: usize,
    /// Show the features and weights behind each score
    #[arg(long)]
    pub(crate) explain: bool,
    /// Rerank results with the configured reranker (rerank.server), also for names
    #[arg(long, conflicts_with_all = ["refs", "inside", "no_rerank"])]
    pub(crate) rerank: bool,
    /// Do not use the configured reranker
    #[arg(long)]
    pub(crate) no_rerank: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum InArg {
    /// Commit messages, by words and meaning, or a commit id
    Commits,
    /// Added and removed lines that contain the query, newest commit first
    Diffs,
}

impl InArg {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Commits => "commits",
            Self::Diffs => "diffs",
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ModeArg {
    /// Definitions first if the query is a name, then words and meaning
    #[default]
    Auto,
    /// Words and meaning
    Hybrid,
    /// Meaning only
    Semantic,
    /// Words only
    Keyword,
    /// Lines that match a regular expression, in path order
    Regex,
    /// Code similar to a snippet, given as text or as path:line
    Similar,
}

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

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  codescout outline
  codescout outline src --depth 3
  codescout outline src/parser.rs
  codescout outline --view map --max-tokens 4000
  codescout outline docs --view headings")]
pub(crate) struct OutlineArgs {
    /// Directory or file, relative to the repository root; all by default
    #[arg(value_parser = super::path_text())]
    pub(crate) path: Option<String>,
    /// What to show; by default a summary of the repository, the tree of a directory or the symbols of a file
    #[arg(long, value_enum)]
    pub(crate) view: Option<OutlineView>,
    /// Maximum depth of directories, nested symbols or headings; 0 for all
    #[arg(long, value_name = "N")]
    pub(crate) depth: Option<usize>,
    /// Maximum size of the map in tokens
    #[arg(long, value_name = "N")]
    pub(crate) max_tokens: Option<usize>,
    #[command(flatten)]
    pub(crate) filter: FilterArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutlineView {
    /// Languages, directories, entry points, build files and tests
    Summary,
    /// Directories and files with sizes
    Tree,
    /// Nested definitions with signatures
    Symbols,
    /// Definitions that most files refer to
    Map,
    /// Headings of documents
    Headings,
    /// Imports of each file
    Imports,
}
