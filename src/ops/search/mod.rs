//! `search`: finds code by words, names, meaning or a regular expression, at one revision, at several, or in all
//! indexed versions. Also finds commits by their messages or changed lines.
//!
//! This file contains the request, `rows.rs` the results. `asked.rs` and `ranked.rs` find code, `past.rs` handles versions of deleted code,
//! `commits.rs` finds commits, and `pack/` adds what is needed to understand the results.

mod asked;
mod commits;
mod pack;
mod past;
mod ranked;
mod rows;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::json;

use self::asked::Asked;
pub(crate) use self::pack::PACK_TOKENS;
pub(crate) use self::ranked::Facets;
pub(crate) use self::rows::{SearchFacts, SearchRow};
use super::ask::{Ask, Detail, FileSelection, KindSelection, path_text};
use super::docs::DOCUMENT_LANGUAGES;
use super::notes::FOLDER as NOTES_FOLDER;
use super::op::{Op, PageOf};
use crate::model::Hint;
use crate::query::{Mode, Rerank};
use crate::session::{OpError, Result, bail};
use crate::snapshot::Documents;

/// Maximum length of a query in bytes. A longer one is probably a file passed by mistake.
pub(crate) const MAX_QUERY_BYTES: usize = 64 << 10;

/// The request.
#[derive(Clone, Debug, Default, Serialize, Deserialize, clap::Args, schemars::JsonSchema)]
#[serde(default)]
#[schemars(extend("required" = ["query"]))]
#[command(after_help = "Examples:
  codescout search where is a failed upload retried
  codescout search parse_query --lang rust --path src
  codescout search parse_query -- src tests            only below these directories
  codescout search '\"no such table\" when a migration runs'
  codescout search token bucket --refs v1.0,v2.0,WORKTREE
  codescout search --pack how is an upload retried     definitions with callers and tests
  codescout search --all-history token bucket          also what was deleted
  codescout search --in commits why are retries limited --since 1y
  codescout search --in diffs 'max_retries = 3' --path src")]
pub(crate) struct Search {
    /// Question, words or name; `-` reads it from standard input
    #[arg(value_name = "WORDS", required = true, value_parser = path_text())]
    #[serde(deserialize_with = "one_or_many")]
    #[schemars(with = "String", description = "question, words, name or regex")]
    query: Vec<String>,
    /// Search mode
    #[arg(short, long, value_enum, default_value_t)]
    #[schemars(description = "regex: complete grep; similar: code or path:line")]
    mode: SearchMode,
    /// Search only documents or notes; or search history instead of files: commit messages, or lines added and removed
    #[arg(long = "in", value_enum, value_name = "WHAT")]
    #[serde(rename = "in")]
    #[schemars(description = "default code")]
    inside: Option<Inside>,
    /// Search several revisions at once, separated by commas; repeatable
    #[arg(long, value_name = "REV,…", value_delimiter = ',')]
    #[schemars(description = "several refs at once")]
    refs: Vec<String>,
    /// Search all indexed versions, including deleted code, and show when each existed
    #[arg(long)]
    #[schemars(description = "also deleted")]
    all_history: bool,
    /// With --in: search commits since this date: 2024-02-29, 2024-02-29T13:05Z, or an age such as 12h, 30d, 2w, 6m, 1y
    #[arg(long, value_name = "DATE", hide_short_help = true)]
    #[schemars(description = "of commits: 2024-02-29, 30d")]
    since: Option<String>,
    /// With --in: search commits until this date
    #[arg(long, value_name = "DATE", hide_short_help = true)]
    #[schemars(description = "of commits")]
    until: Option<String>,
    /// With --in: search commits whose author (name or address, after mailmap) matches this regular expression, ignoring case
    #[arg(long, value_name = "REGEX", hide_short_help = true)]
    #[schemars(description = "regex")]
    author: Option<String>,
    /// Lines to show for each result; with --mode regex, lines around each match
    #[arg(short = 'C', long, alias = "lines", value_name = "N")]
    #[schemars(description = "lines of text per result", range(max = 100))]
    context_lines: Option<usize>,
    /// Show the features and weights behind each score
    #[arg(long)]
    #[schemars(description = "scores")]
    explain: bool,
    /// Show whole definitions with their callers, callees, tests and last change; WORDS may also be an id, PATH:LINE or
    /// A..B
    #[arg(long)]
    #[serde(skip)]
    pack: bool,
    /// With --pack: maximum size of the answer in tokens [default: 6000]
    // Over MCP, `max_tokens` limits every answer and is a common parameter.
    #[arg(long, value_name = "N", requires = "pack", hide_short_help = true, value_parser = clap::value_parser!(u32).range(100..=1_000_000))]
    #[serde(skip)]
    max_tokens: Option<u32>,
    /// Always rerank with the configured reranker (rerank.server), even if the query is a name
    #[arg(
        long,
        num_args = 0,
        default_missing_value = "true",
        conflicts_with = "no_rerank",
        hide_short_help = true
    )]
    #[schemars(description = "default: prose")]
    rerank: Option<bool>,
    /// Do not use the configured reranker
    #[arg(long, hide_short_help = true)]
    #[serde(skip)]
    no_rerank: bool,
    /// Search deleted code alone
    #[arg(skip)]
    #[serde(skip)]
    deleted: bool,
    /// Search only these files and directories
    #[arg(last = true, value_name = "PATH", value_parser = path_text())]
    #[serde(skip)]
    within: Vec<String>,
    #[command(flatten)]
    #[serde(flatten)]
    selection: FileSelection,
    #[command(flatten)]
    #[serde(flatten)]
    kind: KindSelection,
}

/// Kinds of queries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SearchMode {
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

impl SearchMode {
    /// Returns the query's mode; a regular expression is not ranked.
    pub(crate) fn to_query(self) -> Mode {
        match self {
            Self::Auto | Self::Regex => Mode::Auto,
            Self::Hybrid => Mode::Hybrid,
            Self::Semantic => Mode::Semantic,
            Self::Keyword => Mode::Keyword,
            Self::Similar => Mode::Similar,
        }
    }
}

/// What is searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Inside {
    /// The files
    Code,
    /// Commit messages, by words and meaning, or a commit id
    Commits,
    /// Added and removed lines that contain the query, newest commit first
    Diffs,
    /// Documents: Markdown, reStructuredText, AsciiDoc and plain text
    Docs,
    /// Notes about definitions, but for private ones
    Memory,
}

impl Inside {
    fn name(self) -> &'static str {
        match self {
            Self::Code => "code",
            Self::Commits => "commits",
            Self::Diffs => "diffs",
            Self::Docs => "docs",
            Self::Memory => "memory",
        }
    }

    fn is_history(self) -> bool {
        matches!(self, Self::Commits | Self::Diffs)
    }
}

/// Accepts a single string instead of a list.
fn one_or_many<'de, D: Deserializer<'de>>(value: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum OneOrMany {
        One(String),
        Many(Vec<String>),
    }
    Ok(match OneOrMany::deserialize(value)? {
        OneOrMany::One(one) => vec![one],
        OneOrMany::Many(many) => many,
    })
}

impl Op for Search {
    type Facts = SearchFacts;
    type Row = SearchRow;

    fn run(&self, ask: &Ask<'_>) -> Result<PageOf<Self>> {
        let query = self.query.join(" ");
        if query.len() > MAX_QUERY_BYTES {
            bail!("the query has more than {MAX_QUERY_BYTES} bytes");
        }
        if query.trim().is_empty() {
            return Err(OpError::new(
                "the query is empty",
                "give a word, name or question; outline shows the contents of the repository",
            )
            .with_retry(json!({"tool": "outline", "arguments": {}})));
        }
        let is_pack = self.pack || ask.common.detail == Detail::Pack;
        self.check(is_pack)?;
        let is_past =
            self.all_history || !self.refs.is_empty() || self.inside.is_some_and(|inside| inside.is_history());
        if is_past && ask.session.workspace.fleet.is_some() {
            return Err(OpError::new(
                "the past of a fleet cannot be searched",
                "use codescout --repo DIR, without fleet (over MCP: repo)",
            ));
        }
        let asked = Asked {
            request: &self.narrowed()?,
            ask,
            query: &query,
        };
        match self.inside {
            Some(Inside::Commits) => commits::messages(&asked),
            Some(Inside::Diffs) => commits::diffs(&asked),
            _ if is_pack => asked.pack(),
            _ if self.deleted => asked.over_past(Documents::Gone),
            _ if self.all_history => asked.over_past(Documents::All),
            _ if !self.refs.is_empty() => asked.over_refs(),
            _ => asked.at_revision(),
        }
    }
}

impl Search {
    /// Creates a search for deleted code that matches a description.
    pub(crate) fn for_deleted(query: &str) -> Self {
        Self {
            query: vec![query.to_owned()],
            deleted: true,
            ..Self::default()
        }
    }

    /// Returns true if the query must be read from standard input.
    pub(crate) fn reads_input(&self) -> bool {
        self.query == ["-"]
    }

    /// Converts `within` and `no_rerank`, which exist only on the command line, to the parameters that MCP also has.
    /// Replaces the query if one is given.
    pub(crate) fn completed(self, query: Option<String>) -> Self {
        Self {
            query: query.map_or(self.query, |query| vec![query]),
            rerank: if self.no_rerank { Some(false) } else { self.rerank },
            selection: FileSelection {
                path: [self.selection.path, self.within].concat(),
                ..self.selection
            },
            within: Vec::new(),
            ..self
        }
    }

    /// Selects the files that `in` means.
    fn narrowed(&self) -> Result<Self> {
        let mut narrowed = self.clone();
        let FileSelection { path, lang, .. } = &mut narrowed.selection;
        let other = match self.inside {
            Some(Inside::Docs) if lang.is_empty() => {
                lang.extend(DOCUMENT_LANGUAGES.map(str::to_owned));
                return Ok(narrowed);
            }
            Some(Inside::Memory) if path.iter().all(|path| path.starts_with('!')) => {
                path.push(format!(":/{NOTES_FOLDER}"));
                return Ok(narrowed);
            }
            Some(Inside::Docs) => "lang",
            Some(Inside::Memory) => "path",
            _ => return Ok(narrowed),
        };
        let inside = self.inside.map_or("", Inside::name);
        Err(OpError::new(
            format!("{other} cannot be used with in {inside}"),
            "omit one of them",
        ))
    }

    fn is_regex(&self) -> bool {
        self.mode == SearchMode::Regex
    }

    fn rerank(&self) -> Rerank {
        match self.rerank {
            Some(true) => Rerank::Always,
            Some(false) => Rerank::Never,
            None => Rerank::Prose,
        }
    }

    /// Returns an error for options that cannot be used together.
    fn check(&self, is_pack: bool) -> Result<(), OpError> {
        let history = self.inside.filter(|inside| inside.is_history());
        let inside = history.map(|inside| format!("in {}", inside.name()));
        let has_kind = !self.kind.kind.is_empty();
        let given = [
            ("since", self.since.is_some()),
            ("until", self.until.is_some()),
            ("author", self.author.is_some()),
        ];
        if let (None, Some((name, _))) = (history, given.into_iter().find(|(_, is_given)| *is_given)) {
            return Err(OpError::new(
                format!("{name} cannot be used when searching files"),
                Hint::each(
                    "add --in commits or --in diffs, or omit it",
                    "add in commits or in diffs, or omit it",
                ),
            ));
        }
        let several = (!self.refs.is_empty()).then(|| "refs".to_owned());
        let mode = match self.mode {
            SearchMode::Regex => Some("mode regex".to_owned()),
            SearchMode::Similar => Some("mode similar".to_owned()),
            _ => None,
        };
        let regex = mode.clone().filter(|_| self.is_regex());
        let past = self.all_history.then(|| "all_history".to_owned());
        let pack = is_pack.then(|| "pack".to_owned());
        let FileSelection { packages, linked, .. } = &self.selection;
        let kind = has_kind.then(|| "kind".to_owned());
        let refusals = [
            (is_pack, "pack", [&inside, &regex, &several, &past]),
            (
                self.rerank() == Rerank::Always,
                "rerank",
                [&inside, &regex, &several, &None],
            ),
            (self.all_history, "all_history", [&inside, &mode, &several, &kind]),
            (!self.refs.is_empty(), "refs", [&inside, &regex, &kind, &None]),
            (has_kind, "kind", [&inside, &regex, &None, &None]),
            (!linked.is_empty(), "repos", [&inside, &several, &past, &None]),
            (!packages.is_empty(), "package", [&inside, &several, &past, &None]),
            (self.explain, "explain", [&inside, &regex, &pack, &None]),
        ];
        for (is_given, name, others) in refusals {
            if let (true, Some(other)) = (is_given, others.into_iter().flatten().next()) {
                return Err(OpError::new(
                    format!("{name} cannot be used with {other}"),
                    "omit one of them",
                ));
            }
        }
        Ok(())
    }
}
