//! What can be typed.

use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};

use crate::query::{CursorError, CursorKey};
use crate::surface::install::{Client, Scope, clients};

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

/// Options of every command.
#[derive(Debug, ClapArgs)]
pub(super) struct Global {
    /// What to look at: a commit, branch or tag, INDEX, or WORKTREE (files as they are on disk)
    #[arg(long = "ref", value_name = "REV", default_value = "WORKTREE", global = true)]
    pub(super) reference: String,
    /// A folder in the repository
    #[arg(long, value_name = "DIR", default_value = ".", global = true)]
    pub(super) repo: PathBuf,
    /// Print one JSON object
    #[arg(long, global = true)]
    pub(super) json: bool,
    /// No colours
    #[arg(long, global = true)]
    pub(super) no_color: bool,
    /// No progress, only errors
    #[arg(short, long, global = true)]
    pub(super) quiet: bool,
    /// Say more; twice for details
    #[arg(short, long, action = clap::ArgAction::Count, global = true)]
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

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  codescout export project.bundle
  codescout export project.bundle main v1.2.0 --sign key.pem
  codescout export - | ssh host 'cd project && codescout import -'")]
pub(super) struct ExportArgs {
    /// The file to write; `-` writes to standard output
    pub(super) file: PathBuf,
    /// What to export: commits, branches or tags; what `--ref` says if there are none
    #[arg(value_name = "REV")]
    pub(super) revisions: Vec<String>,
    /// Whole segments with their words, for who trusts this machine: taken in at once, but larger
    #[arg(long)]
    pub(super) ready: bool,
    /// Only what the model on a server, or in a folder, has made: vectors for clones that have it in use too
    #[arg(long, conflicts_with = "ready")]
    pub(super) vectors: bool,
    /// Sign it with the Ed25519 key in this PEM file
    #[arg(long, value_name = "FILE")]
    pub(super) sign: Option<PathBuf>,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  codescout import project.bundle
  codescout import project.bundle --trust public.pem
  codescout import --inspect project.bundle --json")]
pub(super) struct ImportArgs {
    /// The file to read; `-` reads standard input
    pub(super) file: PathBuf,
    /// Only if it is signed by this key: 64 hexadecimal digits, or a PEM file; then it is not compared with the files
    #[arg(long, value_name = "KEY")]
    pub(super) trust: Option<String>,
    /// Show what the file says of itself and take in nothing
    #[arg(long)]
    pub(super) inspect: bool,
    /// Compare everything it says with the files, not a part
    #[arg(long, conflicts_with = "inspect")]
    pub(super) compare_all: bool,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  codescout ci key --github
  codescout ci restore
  codescout ci save")]
pub(super) struct CiArgs {
    #[command(subcommand)]
    pub(super) command: CiCommand,
}

#[derive(Debug, Subcommand)]
pub(super) enum CiCommand {
    /// Print the keys that a cache of this revision is kept under
    Key(KeyArgs),
    /// Take in the archive that a cache has brought back
    Restore(RestoreArgs),
    /// Index, and write the archive that a cache is to keep, if it has something new
    Save(SaveArgs),
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  codescout push --dry-run
  codescout push --yes
  codescout push upstream main v1.2.0 --sign key.pem")]
pub(super) struct PushArgs {
    /// The remote, by its name or its address
    #[arg(default_value = "origin")]
    pub(super) remote: String,
    /// What to push the index of: commits, branches or tags; what `--ref` says if there are none
    #[arg(value_name = "REV")]
    pub(super) revisions: Vec<String>,
    /// Only show what would be sent
    #[arg(short = 'n', long)]
    pub(super) dry_run: bool,
    /// Do it without asking
    #[arg(short, long)]
    pub(super) yes: bool,
    /// Sign it with the Ed25519 key in this file
    #[arg(long, value_name = "FILE")]
    pub(super) sign: Option<PathBuf>,
    /// In the place of all that is there, not beside it
    #[arg(long)]
    pub(super) replace: bool,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  codescout pull --dry-run
  codescout pull --yes
  codescout pull upstream --trust public.pem")]
pub(super) struct PullArgs {
    /// The remote, by its name or its address
    #[arg(default_value = "origin")]
    pub(super) remote: String,
    /// Only show what would be brought
    #[arg(short = 'n', long)]
    pub(super) dry_run: bool,
    /// Do it without asking
    #[arg(short, long)]
    pub(super) yes: bool,
    /// Only what is signed by this key: 64 hexadecimal digits, or a PEM file
    #[arg(long, value_name = "KEY")]
    pub(super) trust: Option<String>,
    /// Compare everything it says with the files, not a part
    #[arg(long)]
    pub(super) compare_all: bool,
    /// No more than so many bytes may come; with K, M or G behind
    #[arg(long, value_name = "SIZE", default_value = "2G", value_parser = size)]
    pub(super) max_size: u64,
}

/// Bytes as people write them.
fn size(text: &str) -> Result<u64, String> {
    let (digits, shift) = match text.split_at_checked(text.len().saturating_sub(1)) {
        Some((digits, "K" | "k")) => (digits, 10),
        Some((digits, "M" | "m")) => (digits, 20),
        Some((digits, "G" | "g")) => (digits, 30),
        _ => (text, 0),
    };
    let number: Option<u64> = digits.parse().ok();
    number
        .and_then(|number| number.checked_mul(1 << shift))
        .ok_or_else(|| "a number of bytes, or with K, M or G behind".to_owned())
}

#[derive(Debug, ClapArgs)]
pub(super) struct KeyArgs {
    /// As outputs of a step of GitHub Actions: key, restore-keys
    #[arg(long, conflicts_with = "gitlab")]
    pub(super) github: bool,
    /// As variables for GitLab, whose keys have no prefixes: CODESCOUT_KEY, CODESCOUT_MOVING_KEY
    #[arg(long)]
    pub(super) gitlab: bool,
    /// The branch of the moving key
    #[arg(long, value_name = "NAME", default_value = "main")]
    pub(super) branch: String,
}

#[derive(Debug, ClapArgs)]
pub(super) struct RestoreArgs {
    /// The archive; .codescout-ci/index.bundle if none is named
    pub(super) file: Option<PathBuf>,
    /// Only if it is signed by this key: 64 hexadecimal digits, or a PEM file
    #[arg(long, value_name = "KEY")]
    pub(super) trust: Option<String>,
    /// Compare it with the files as import does: for a cache that others can write to
    #[arg(long)]
    pub(super) compare: bool,
}

#[derive(Debug, ClapArgs)]
pub(super) struct SaveArgs {
    /// The archive; .codescout-ci/index.bundle if none is named
    pub(super) file: Option<PathBuf>,
    /// Sign it with the Ed25519 key in this file
    #[arg(long, value_name = "FILE")]
    pub(super) sign: Option<PathBuf>,
    /// Print saved=true or saved=false, as an output of a step of GitHub Actions
    #[arg(long)]
    pub(super) github: bool,
    /// Also in a job of a pull or merge request
    #[arg(long)]
    pub(super) force: bool,
}

/// Which files.
#[derive(Debug, ClapArgs)]
pub(super) struct FilterArgs {
    /// Only below this folder or matching this glob; `!` before it leaves out; may be repeated
    #[arg(short, long = "path", value_name = "GLOB")]
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
pub(super) struct SearchArgs {
    /// A question, words, or a name; `-` reads it from standard input
    pub(super) query: String,
    /// How to search
    #[arg(short, long, value_enum, default_value_t)]
    pub(super) mode: ModeArg,
    /// Search every version of every file that is indexed, also what is gone; each result with the commits that it lived through
    #[arg(long, conflicts_with_all = ["refs", "inside"])]
    pub(super) all_history: bool,
    /// Search several revisions at once, separated by commas; may be repeated
    #[arg(long, value_name = "REV,…", value_delimiter = ',', conflicts_with = "inside")]
    pub(super) refs: Vec<String>,
    /// Not the files but what happened to them: messages of commits, or lines that commits added and removed
    #[arg(long = "in", value_enum, value_name = "WHAT")]
    pub(super) inside: Option<InArg>,
    /// With --in: only commits not before this: 2024-02-29, 2024-02-29T13:05Z, or as long ago as 12h, 30d, 2w, 6m, 1y
    #[arg(long, value_name = "DATE", requires = "inside")]
    pub(super) since: Option<String>,
    /// With --in: only commits not after this
    #[arg(long, value_name = "DATE", requires = "inside")]
    pub(super) until: Option<String>,
    /// With --in: only commits whose author's name or address, corrected by the mailmap, matches; upper and lower case alike
    #[arg(long, value_name = "REGEX", requires = "inside")]
    pub(super) author: Option<String>,
    #[command(flatten)]
    pub(super) filter: FilterArgs,
    #[command(flatten)]
    pub(super) page: PageArgs,
    /// Lines of text shown of each result
    #[arg(short = 'C', long, value_name = "N", default_value_t = 6)]
    pub(super) lines: usize,
    /// Show every result's features and their weights
    #[arg(long)]
    pub(super) explain: bool,
    /// Let the reranker that is set up decide about the order, also for names
    #[arg(long, conflicts_with_all = ["refs", "inside", "no_rerank"])]
    pub(super) rerank: bool,
    /// Leave the order as it is without a reranker
    #[arg(long)]
    pub(super) no_rerank: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum InArg {
    /// Messages, by words and meaning; an id or its beginning names a commit
    Commits,
    /// Added and removed lines that hold the query, the newest commit first
    Diffs,
}

impl InArg {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Commits => "commits",
            Self::Diffs => "diffs",
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum ModeArg {
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
pub(super) struct GrepArgs {
    /// A regular expression in the syntax of Rust's regex crate; matched line by line
    #[arg(value_name = "REGEX")]
    pub(super) pattern: String,
    /// Upper and lower case alike
    #[arg(short, long)]
    pub(super) ignore_case: bool,
    /// Only whole words
    #[arg(short, long)]
    pub(super) word_regexp: bool,
    /// The pattern is plain text
    #[arg(short = 'F', long)]
    pub(super) fixed_strings: bool,
    /// Only the names of files that match
    #[arg(short = 'l', long, conflicts_with = "count")]
    pub(super) files_with_matches: bool,
    /// Only the number of matching lines of each file
    #[arg(short, long)]
    pub(super) count: bool,
    /// Lines shown before and after each match
    #[arg(short = 'C', long, value_name = "N", default_value_t = 0)]
    pub(super) context: usize,
    /// Lines shown after each match
    #[arg(short = 'A', long, value_name = "N")]
    pub(super) after_context: Option<usize>,
    /// Lines shown before each match
    #[arg(short = 'B', long, value_name = "N")]
    pub(super) before_context: Option<usize>,
    #[command(flatten)]
    pub(super) filter: FilterArgs,
    #[command(flatten)]
    pub(super) page: PageArgs,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  codescout symbol Parser::parse
  codescout symbol parse --kind method --body
  codescout symbol --at src/lib.rs:42:17
  codescout symbol parse_ --prefix --lang rust
  codescout symbol parse_query --refs --json")]
pub(super) struct SymbolArgs {
    /// A name, with what it belongs to or without: parse, Parser::parse, Parser.parse; or an id
    #[arg(required_unless_present = "at", conflicts_with = "at")]
    pub(super) name: Option<String>,
    /// What the name at this place means
    #[arg(long, value_name = "PATH:LINE[:COL]")]
    pub(super) at: Option<String>,
    /// Every name that begins like this; if there is none, that holds it
    #[arg(long, conflicts_with = "at")]
    pub(super) prefix: bool,
    /// Only definitions of this kind, as function, method, class, struct; may be repeated
    #[arg(short, long = "kind", value_name = "KIND")]
    pub(super) kinds: Vec<String>,
    /// Show the whole text of each definition
    #[arg(short, long)]
    pub(super) body: bool,
    /// Show the documentation of each definition
    #[arg(short, long)]
    pub(super) doc: bool,
    /// Show the lines that mention the name
    #[arg(long)]
    pub(super) refs: bool,
    #[command(flatten)]
    pub(super) filter: FilterArgs,
    #[command(flatten)]
    pub(super) page: PageArgs,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  codescout outline
  codescout outline src --depth 3
  codescout outline src/parser.rs
  codescout outline --view map --max-tokens 4000
  codescout outline docs --view headings")]
pub(super) struct OutlineArgs {
    /// A folder or file, from the root of the repository; without it the whole
    pub(super) path: Option<String>,
    /// What to show; without it a summary of the whole, the tree of a folder, the symbols of a file
    #[arg(long, value_enum)]
    pub(super) view: Option<OutlineView>,
    /// How deep: folders of a tree, nesting of symbols, levels of headings; 0 for all
    #[arg(long, value_name = "N")]
    pub(super) depth: Option<usize>,
    /// How large the map may be
    #[arg(long, value_name = "N")]
    pub(super) max_tokens: Option<usize>,
    #[command(flatten)]
    pub(super) filter: FilterArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum OutlineView {
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
pub(super) struct ReadArgs {
    /// A path from the root of the repository; path:LINE, path:START-END; or the id of a definition
    pub(super) target: String,
    /// Only these lines: 5, 5-9 or 5-; may be repeated
    #[arg(long, value_name = "LINES")]
    pub(super) lines: Vec<String>,
    /// Only the section with this heading; may be repeated
    #[arg(long, value_name = "TITLE")]
    pub(super) heading: Vec<String>,
    /// Only the value at this path of keys, as a.b.c; may be repeated
    #[arg(long, value_name = "KEYS")]
    pub(super) key: Vec<String>,
    /// Only the definitions with this name; may be repeated
    #[arg(long, value_name = "NAME")]
    pub(super) symbol: Vec<String>,
}

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
pub(super) struct HistoryArgs {
    /// A file or folder from the root of the repository, path:LINE, path:START-END, path#NAME of a definition, or a name; also
    /// what is no longer there
    #[arg(required_unless_present = "deleted")]
    pub(super) target: Option<std::ffi::OsString>,
    /// Only the commit that brought it in
    #[arg(long, conflicts_with_all = ["last_seen", "deleted", "cochange"])]
    pub(super) introduced: bool,
    /// Only the last commit that has it, and the one that took it away
    #[arg(long, conflicts_with_all = ["deleted", "cochange"])]
    pub(super) last_seen: bool,
    /// What is no longer there: files below the target, or all; or definitions that have the target as their name; where the
    /// target is a description, code by meaning
    #[arg(long, conflicts_with = "cochange")]
    pub(super) deleted: bool,
    /// What changes in the same commits
    #[arg(long)]
    pub(super) cochange: bool,
    /// Only commits not before this: 2024-02-29, 2024-02-29T13:05Z, or as long ago as 12h, 30d, 2w, 6m, 1y
    #[arg(long, value_name = "DATE")]
    pub(super) since: Option<String>,
    /// Only commits not after this
    #[arg(long, value_name = "DATE")]
    pub(super) until: Option<String>,
    /// Only commits whose author's name or address, corrected by the mailmap, matches; upper and lower case alike
    #[arg(long, value_name = "REGEX")]
    pub(super) author: Option<String>,
    /// Leave out commits that changed only blanks, line breaks and comments of a definition
    #[arg(long)]
    pub(super) no_formatting: bool,
    /// Show what each commit changed of it
    #[arg(long)]
    pub(super) diff: bool,
    /// How many results; 0 for all
    #[arg(short = 'n', long, value_name = "N", default_value_t = 50)]
    pub(super) limit: usize,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  codescout blame src/parser.rs              by definition
  codescout blame Parser::parse
  codescout blame src/parser.rs:40-60        by line
  codescout blame src/parser.rs --by line -w -C --json
  codescout blame src                        by owner")]
pub(super) struct BlameArgs {
    /// A file or folder from the root of the repository, path:LINE, path:START-END, path#NAME of a definition, or a name
    pub(super) target: std::ffi::OsString,
    /// By what; without it by definition for a file, by line for lines, by owner for a folder
    #[arg(long, value_enum)]
    pub(super) by: Option<BlameBy>,
    /// Blanks do not count
    #[arg(short = 'w', long)]
    pub(super) ignore_whitespace: bool,
    /// Follow lines that were moved within a file
    #[arg(short = 'M', long)]
    pub(super) moved: bool,
    /// Follow lines that were moved or copied from files changed in the same commit; twice and three times from more files
    #[arg(short = 'C', long, action = clap::ArgAction::Count)]
    pub(super) copied: u8,
    /// Pass over this commit; may be repeated
    #[arg(long = "ignore-rev", value_name = "REV")]
    pub(super) ignore_revs: Vec<String>,
    /// Pass over the commits that this file lists, beside those of blame.ignoreRevsFile; may be repeated
    #[arg(long = "ignore-revs-file", value_name = "FILE")]
    pub(super) ignore_revs_files: Vec<PathBuf>,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  codescout diff                         what is not committed
  codescout diff v1.0 v2.0
  codescout diff main...topic            what topic changed since it left main
  codescout diff HEAD INDEX --by text    what is staged
  codescout diff v1.0 HEAD --path src --json")]
pub(super) struct DiffArgs {
    /// A revision, INDEX or WORKTREE; or two as A..B, or A...B from where they parted; HEAD if there is none
    pub(super) from: Option<String>,
    /// A revision, INDEX or WORKTREE; WORKTREE if there is none
    pub(super) to: Option<String>,
    /// How it is told
    #[arg(long, value_enum, default_value_t)]
    pub(super) by: DiffBy,
    /// Only this file or folder; may be repeated
    #[arg(short, long = "path", value_name = "PATH")]
    pub(super) paths: Vec<String>,
    /// What else is told
    #[arg(long, value_enum, value_name = "WHAT")]
    pub(super) with: Vec<DiffWith>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum DiffWith {
    /// The tests that use a name of what changed
    Tests,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum DiffBy {
    /// Each file with the definitions that are not what they were
    #[default]
    Symbol,
    /// Each file
    File,
    /// Each file with its changed lines
    Text,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum BlameBy {
    /// Each definition: the last commit, how many commits, owners
    Symbol,
    /// Each line, as git blame has it
    Line,
    /// Each author with how much is theirs
    Owner,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  codescout index                 the commit that is checked out
  codescout index v1.0 v2.0       two tags
  codescout index --all-branches  every local branch
  codescout index --history       what every commit of every local branch changed, too
  codescout index --watch         go on whenever a commit, checkout or reset moves a ref")]
pub(super) struct IndexArgs {
    /// Revisions; the commit that is checked out if there are none
    pub(super) revisions: Vec<String>,
    /// Every local branch
    #[arg(long)]
    pub(super) all_branches: bool,
    /// Record what each commit changed, of the revisions that are named (or --ref), without any of every local branch, and what it
    /// did to definitions; from then on every index run goes on with it
    #[arg(long)]
    pub(super) history: bool,
    /// Stay, and index again whenever refs move, until interrupted. Uncommitted edits need none of this: every query
    /// looks at them
    #[arg(long)]
    pub(super) watch: bool,
    /// First move all vectors that are shared by a Qdrant to a new collection, made as it is set now, which then takes the place of
    /// the old one
    #[arg(long, conflicts_with = "watch")]
    pub(super) new_collection: bool,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  codescout init
  codescout init --hooks              without being asked
  codescout init --no-hooks --repo ../other")]
pub(super) struct InitArgs {
    /// Install the hooks too
    #[arg(long, conflicts_with = "no_hooks")]
    pub(super) hooks: bool,
    /// Do not ask about the hooks
    #[arg(long)]
    pub(super) no_hooks: bool,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  codescout doctor
  codescout doctor --fix          mend what can be mended without asking
  codescout doctor --what-leaves  what would leave this machine

Exit code: 0 nothing is in the way, 1 there is a problem, 2 failed.")]
pub(super) struct DoctorArgs {
    /// Mend what can be mended without touching anything but the index
    #[arg(long)]
    pub(super) fix: bool,
    /// Only what would leave this machine
    #[arg(long)]
    pub(super) what_leaves: bool,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  codescout status
  codescout status --ref v1.2.0 --json
  codescout status --bytes             what keeps how much")]
pub(super) struct StatusArgs {
    /// Show what keeps how much; reads the list of files of every snapshot
    #[arg(long)]
    pub(super) bytes: bool,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  codescout gc --dry-run       what would go, and what keeps the rest
  codescout gc
  codescout gc --pin v1.2.0    keep this snapshot, whatever becomes of the tag
  codescout gc --pins")]
pub(super) struct GcArgs {
    /// Change nothing, only show what would be done
    #[arg(short = 'n', long)]
    pub(super) dry_run: bool,
    /// Copy what stays even if little is dead, and into as few files as can be
    #[arg(long, conflicts_with = "dry_run")]
    pub(super) aggressive: bool,
    /// Keep the snapshot of this revision, even if git forgets it; may be repeated
    #[arg(long, value_name = "REV", conflicts_with_all = ["dry_run", "aggressive"])]
    pub(super) pin: Vec<String>,
    /// Keep it no longer for its own sake; may be repeated
    #[arg(long, value_name = "REV", conflicts_with_all = ["dry_run", "aggressive"])]
    pub(super) unpin: Vec<String>,
    /// Show what is pinned
    #[arg(long, conflicts_with_all = ["dry_run", "aggressive"])]
    pub(super) pins: bool,
    /// Also remove the vectors that this clone has shared by a Qdrant, of chunks that it does not keep any more
    #[arg(long, conflicts_with_all = ["pin", "unpin", "pins"])]
    pub(super) qdrant: bool,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  codescout verify                  is every file what was written?
  codescout verify --deep           and does it say what the blobs say?
  codescout verify --sample 1000    that, of a thousand blobs
  codescout verify --repair

Exit code: 0 all is well, 1 damage was found, 2 it could not be checked.")]
pub(super) struct VerifyArgs {
    /// Extract, index and embed the blobs again and compare with what is stored
    #[arg(long)]
    pub(super) deep: bool,
    /// Like --deep, but only so many blobs and snapshots, others each time
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(usize))]
    pub(super) sample: Option<usize>,
    /// Set aside what is damaged and make it again from git
    #[arg(long)]
    pub(super) repair: bool,
    /// Stop looking after so many seconds
    #[arg(long, value_name = "SECONDS")]
    pub(super) max_duration: Option<u64>,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  codescout hooks install --dry-run    what would be written
  codescout hooks install
  codescout hooks status --json        exit code 1 if git would not call them
  codescout hooks uninstall")]
pub(super) struct HooksArgs {
    #[command(subcommand)]
    pub(super) command: HooksCommand,
}

#[derive(Debug, Subcommand)]
pub(super) enum HooksCommand {
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
  codescout serve                                  one client, on standard input and output
  codescout serve --root ~/src                     repositories below ~/src may be named too
  codescout serve --http 127.0.0.1:8808            any number of clients, over HTTP")]
pub(super) struct ServeArgs {
    /// Over HTTP at this address instead, as 127.0.0.1:8808; port 0 for any
    #[arg(long, value_name = "ADDR")]
    pub(super) http: Option<String>,
    /// Repositories below this folder may be named by calls; may be repeated
    #[arg(long = "root", value_name = "DIR")]
    pub(super) roots: Vec<PathBuf>,
    /// Where the text of results stands: by-client, text, structured, both
    #[arg(long, value_enum, default_value_t)]
    pub(super) bodies: BodiesArg,
    /// File with the token that clients have to send; written if it is not there
    #[arg(long, value_name = "FILE", requires = "http")]
    pub(super) token_file: Option<PathBuf>,
    /// No token: everybody on this machine may call
    #[arg(long, requires = "http", conflicts_with = "token_file")]
    pub(super) no_token: bool,
    /// Host name by which the server is reached, as in a proxy; may be repeated
    #[arg(long = "host", value_name = "NAME", requires = "http")]
    pub(super) hosts: Vec<String>,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(super) enum BodiesArg {
    #[default]
    ByClient,
    Text,
    Structured,
    Both,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  codescout install --list                        which agents are found here
  codescout install claude-code                   for all projects of this user
  codescout install codex --scope project         for everybody who works on this repository
  codescout install cursor --dry-run              only show what would change
  codescout install vscode --http http://127.0.0.1:8000/mcp --yes
  codescout install windsurf --root ~/src         for clients that do not say which project is open
  codescout install gemini --instructions         and tell the agent when to use which tool

Nothing is written before it was shown and confirmed. What was there before is kept: codescout uninstall brings it back.")]
pub(super) struct InstallArgs {
    /// Which agent
    #[arg(value_parser = client_parser(), required_unless_present = "list", conflicts_with = "list")]
    pub(super) client: Option<&'static Client>,
    /// Show which agents are found here, and which know of codescout
    #[arg(long)]
    pub(super) list: bool,
    #[command(flatten)]
    pub(super) common: ClientArgs,
    /// Name a server that runs already, instead of a command to start one
    #[arg(long, value_name = "URL")]
    pub(super) http: Option<String>,
    /// Let calls name repositories below this folder; may be repeated
    #[arg(long = "root", value_name = "DIR", conflicts_with = "http")]
    pub(super) roots: Vec<PathBuf>,
    /// Also write a few lines for agents about when to use which tool
    #[arg(long)]
    pub(super) instructions: bool,
    /// What the server is called in the configuration
    #[arg(long, value_name = "NAME", default_value = "codescout")]
    pub(super) name: String,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  codescout uninstall claude-code
  codescout uninstall codex --scope project --dry-run
  codescout uninstall cursor --yes --json

A file that nobody else has changed is as it was before, byte for byte; from others only the entry goes.")]
pub(super) struct UninstallArgs {
    /// Which agent
    #[arg(value_parser = client_parser())]
    pub(super) client: &'static Client,
    #[command(flatten)]
    pub(super) common: ClientArgs,
    /// What the server is called in the configuration
    #[arg(long, value_name = "NAME", default_value = "codescout")]
    pub(super) name: String,
}

/// How the configuration of an agent is changed.
#[derive(Debug, ClapArgs)]
pub(super) struct ClientArgs {
    /// For whom: user, all projects of this user; project, everybody who works on this repository
    #[arg(long, value_enum, default_value_t)]
    pub(super) scope: ScopeArg,
    /// Show what would change, and change nothing
    #[arg(long)]
    pub(super) dry_run: bool,
    /// Do not ask
    #[arg(short, long)]
    pub(super) yes: bool,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(super) enum ScopeArg {
    #[default]
    User,
    Project,
}

impl From<ScopeArg> for Scope {
    fn from(scope: ScopeArg) -> Self {
        match scope {
            ScopeArg::User => Self::User,
            ScopeArg::Project => Self::Project,
        }
    }
}

fn client_parser() -> impl TypedValueParser<Value = &'static Client> {
    let names = clients().iter();
    let names = names.map(|client| PossibleValue::new(client.id).aliases(client.aliases.iter().copied()));
    PossibleValuesParser::new(names.collect::<Vec<_>>())
        .try_map(|name| Client::by_name(&name).ok_or_else(|| format!("no client is called {name:?}")))
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  codescout config                     every setting, and where it was set
  codescout config get search.limit
  codescout config set search.limit 20")]
pub(super) struct ConfigArgs {
    #[command(subcommand)]
    pub(super) command: Option<ConfigCommand>,
}

#[derive(Debug, Subcommand)]
pub(super) enum ConfigCommand {
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
    },
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

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  codescout eval --from-history --sample 100       this repository's own commits as queries
  codescout eval --judgements DIR --clones DIR     judged queries over local clones
  codescout eval --judgements DIR --clones DIR --settings keyword,semantic,auto --ids odd")]
pub(super) struct EvalArgs {
    /// Judged queries: a folder of JSON files (format: docs/evaluation.md)
    #[arg(long, value_name = "DIR", required_unless_present = "from_history")]
    pub(super) judgements: Option<PathBuf>,
    /// Clones of the judged repositories: DIR/name, DIR/owner/name or DIR/owner+name/repo
    #[arg(long, value_name = "DIR", requires = "judgements")]
    pub(super) clones: Option<PathBuf>,
    /// Commit subjects as queries, the files that each commit changed as answers, searched at its parent
    #[arg(long, conflicts_with = "judgements")]
    pub(super) from_history: bool,
    /// How many commits
    #[arg(long, value_name = "N", default_value_t = 200)]
    pub(super) sample: usize,
    /// Keep indexes below this folder instead of in the clones
    #[arg(long, value_name = "DIR")]
    pub(super) index_dir: Option<PathBuf>,
    /// Search modes to compare; the last is compared with each of the others
    #[arg(long, value_enum, value_delimiter = ',', default_values = ["keyword", "semantic", "auto"])]
    pub(super) settings: Vec<ModeArg>,
    /// Which judged queries: all, those with an even number at the end of the id, or those with an odd one
    #[arg(long, value_enum, default_value_t)]
    pub(super) ids: IdsArg,
    /// Write every query's candidates with features and grades to this file, as JSON lines
    #[arg(long, value_name = "FILE")]
    pub(super) features: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(super) enum IdsArg {
    #[default]
    All,
    Even,
    Odd,
}
