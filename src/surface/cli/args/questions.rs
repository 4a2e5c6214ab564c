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
    /// A question, words, or a name; `-` reads it from standard input
    #[arg(value_parser = super::path_text())]
    pub(crate) query: String,
    /// How to search
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) mode: ModeArg,
    /// Search every version of every file that is indexed, also what is gone; each result with the commits that it lived through
    #[arg(long, conflicts_with_all = ["refs", "inside"])]
    pub(crate) all_history: bool,
    /// Search several revisions at once, separated by commas; may be repeated
    #[arg(long, value_name = "REV,…", value_delimiter = ',', conflicts_with = "inside")]
    pub(crate) refs: Vec<String>,
    /// Not the files but what happened to them: messages of commits, or lines that commits added and removed
    #[arg(long = "in", value_enum, value_name = "WHAT")]
    pub(crate) inside: Option<InArg>,
    /// With --in: only commits not before this: 2024-02-29, 2024-02-29T13:05Z, or as long ago as 12h, 30d, 2w, 6m, 1y
    #[arg(long, value_name = "DATE", requires = "inside")]
    pub(crate) since: Option<String>,
    /// With --in: only commits not after this
    #[arg(long, value_name = "DATE", requires = "inside")]
    pub(crate) until: Option<String>,
    /// With --in: only commits whose author's name or address, corrected by the mailmap, matches; upper and lower case alike
    #[arg(long, value_name = "REGEX", requires = "inside")]
    pub(crate) author: Option<String>,
    /// Only definitions of this kind, as function, method, class or struct, where there are any; may be repeated
    #[arg(short, long = "kind", value_name = "KIND", conflicts_with_all = ["all_history", "refs", "inside"])]
    pub(crate) kinds: Vec<String>,
    #[command(flatten)]
    pub(crate) filter: FilterArgs,
    #[command(flatten)]
    pub(crate) page: PageArgs,
    /// Lines of text shown of each result
    #[arg(short = 'C', long, alias = "lines", value_name = "N", default_value_t = 6)]
    pub(crate) context_lines: usize,
    /// Show every result's features and their weights
    #[arg(long)]
    pub(crate) explain: bool,
    /// Let the reranker that is set up (rerank.server) decide about the order, also for names
    #[arg(long, conflicts_with_all = ["refs", "inside", "no_rerank"])]
    pub(crate) rerank: bool,
    /// Do not ask the reranker that is set up
    #[arg(long)]
    pub(crate) no_rerank: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum InArg {
    /// Messages, by words and meaning; an id or its beginning names a commit
    Commits,
    /// Added and removed lines that hold the query, the newest commit first
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
    /// Names first if the query is one, else words and meaning
    #[default]
    Auto,
    /// Words and meaning
    Hybrid,
    /// Meaning alone
    Semantic,
    /// Words alone
    Keyword,
    /// Lines that match a regular expression, in the order of paths
    Regex,
    /// Code like a piece of code: the code itself, or where it stands as path:line
    Similar,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  codescout grep 'fn \\w+_index'
  codescout grep -i -w todo --path src --lang rust
  codescout grep -F 'a.b(c)' --ref v1.2.0 -C 2
  codescout grep -l 'use regex' --json")]
pub(crate) struct GrepArgs {
    /// A regular expression in the syntax of Rust's regex crate; matched line by line
    #[arg(value_name = "REGEX")]
    pub(crate) pattern: String,
    /// Upper and lower case alike
    #[arg(short, long)]
    pub(crate) ignore_case: bool,
    /// Only whole words
    #[arg(short, long)]
    pub(crate) word_regexp: bool,
    /// The pattern is plain text
    #[arg(short = 'F', long)]
    pub(crate) fixed_strings: bool,
    /// Only the names of files that match
    #[arg(short = 'l', long, conflicts_with = "count")]
    pub(crate) files_with_matches: bool,
    /// Only the number of matching lines of each file
    #[arg(short, long)]
    pub(crate) count: bool,
    /// Lines shown before and after each match
    #[arg(short = 'C', long, value_name = "N", default_value_t = 0)]
    pub(crate) context: usize,
    /// Lines shown after each match
    #[arg(short = 'A', long, value_name = "N")]
    pub(crate) after_context: Option<usize>,
    /// Lines shown before each match
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
    /// A name, with what it belongs to or without: parse, Parser::parse, Parser.parse; or an id
    #[arg(required_unless_present = "at", conflicts_with = "at", value_parser = super::path_text())]
    pub(crate) name: Option<String>,
    /// What the name at this place means
    #[arg(long, value_name = "PATH:LINE[:COL]", value_parser = super::path_text())]
    pub(crate) at: Option<String>,
    /// Every name that begins like this; if there is none, that holds it
    #[arg(long, conflicts_with = "at")]
    pub(crate) prefix: bool,
    /// Only definitions of this kind, as function, method, class, struct; may be repeated
    #[arg(short, long = "kind", value_name = "KIND")]
    pub(crate) kinds: Vec<String>,
    /// Show the whole text of each definition
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
    /// A folder or file, from the root of the repository; without it the whole
    #[arg(value_parser = super::path_text())]
    pub(crate) path: Option<String>,
    /// What to show; without it a summary of the whole, the tree of a folder, the symbols of a file
    #[arg(long, value_enum)]
    pub(crate) view: Option<OutlineView>,
    /// How deep: folders of a tree, nesting of symbols, levels of headings; 0 for all
    #[arg(long, value_name = "N")]
    pub(crate) depth: Option<usize>,
    /// How large the map may be
    #[arg(long, value_name = "N")]
    pub(crate) max_tokens: Option<usize>,
    #[command(flatten)]
    pub(crate) filter: FilterArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutlineView {
    /// Languages, folders, entry points, build files, tests
    Summary,
    /// Folders and files with their sizes
    Tree,
    /// Definitions, nested, with signatures
    Symbols,
    /// The definitions that most files refer to
    Map,
    /// Headings of documents
    Headings,
    /// What each file imports
    Imports,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  codescout read src/lib.rs
  codescout read src/lib.rs:10-20 --ref v1.2.0
  codescout read README.md --heading Installation --heading Licence
  codescout read Cargo.toml --key package.version
  codescout read src/parser.rs --symbol Parser::parse")]
pub(crate) struct ReadArgs {
    /// A path from the root of the repository; path:LINE, path:START-END; or the id of a definition
    #[arg(value_parser = super::path_text())]
    pub(crate) target: String,
    /// Only these lines: 5, 5-9 or 5-; may be repeated
    #[arg(long, value_name = "LINES")]
    pub(crate) lines: Vec<String>,
    /// Only the section with this heading; may be repeated
    #[arg(long, value_name = "TITLE")]
    pub(crate) heading: Vec<String>,
    /// Only the value at this path of keys, as a.b.c; may be repeated
    #[arg(long, value_name = "KEYS")]
    pub(crate) key: Vec<String>,
    /// Only the definitions with this name; may be repeated
    #[arg(long, value_name = "NAME")]
    pub(crate) symbol: Vec<String>,
}
