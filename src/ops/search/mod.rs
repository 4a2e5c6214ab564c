//! `search`: finds code by words, names, meaning or a regular expression, at one revision, at several, or in all
//! indexed versions. Also finds commits by their messages or changed lines.
//!
//! This file contains the request and the rows. `ranked.rs` finds code, `past.rs` handles versions of deleted code,
//! `commits.rs` finds commits, and `pack/` adds what is needed to understand the results.

mod commits;
mod pack;
mod past;
mod ranked;

use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::json;

use self::commits::{DiffOut, MessageOut};
pub(crate) use self::pack::PACK_TOKENS;
use self::pack::PackOut;
use self::ranked::{
    PlaceOut, RefView, ResultOut, SearchPage, Shown, lines_request, matching_lines, ranked, ranked_in_past,
    ranked_over_refs,
};
use super::ProvenanceOut;
use super::ask::{Ask, Detail, FileSelection, KindSelection, path_text};
use super::docs::DOCUMENT_LANGUAGES;
use super::graph::n_callers;
use super::notes::FOLDER as NOTES_FOLDER;
use super::op::{Op, Page, Paging, Row};
use super::paths::inside;
use super::question::{About, Question};
use super::sink::{Sink, Style};
use crate::model::Hint;
use crate::query::{
    CursorKey, LikelyQuery, Marks, Mode, Pattern, PatternOptions, Request, Rerank, ScorersUsed, SymbolQuery,
    SymbolRequest, split_position, symbols,
};
use crate::session::{Build, OpError, Result, bail};
use crate::snapshot::Documents;

/// Maximum length of a query in bytes. A longer one is probably a file passed by mistake.
pub(crate) const MAX_QUERY_BYTES: usize = 64 << 10;
/// Default number of lines in a snippet.
const SNIPPET_LINES: usize = 6;
/// Maximum number of files that contain the names of functions whose callers are counted.
const MAX_CALLING_FILES: usize = 12;

/// The request.
#[derive(Clone, Debug, Default, Serialize, Deserialize, clap::Args, schemars::JsonSchema)]
#[serde(default)]
#[schemars(extend("required" = ["query"]))]
#[command(after_help = "Examples:
  codescout search where is a failed upload retried
  codescout search parse_query --lang rust --path src
  codescout search parse_query -- src tests            only below these directories
  codescout search token bucket --ref v1.2.0 --json
  codescout search '\"no such table\" when a migration runs'
  codescout search token bucket --refs v1.0,v2.0,WORKTREE
  codescout search --pack how is an upload retried     definitions with callers, tests and last change
  codescout search --pack main...topic --max-tokens 9000
  codescout search --all-history token bucket          also what was deleted
  codescout search --in commits why are retries limited --since 1y
  codescout search --in diffs 'max_retries = 3' --path src
  codescout search --in docs how to release
  codescout search --in diffs --mode regex 'fn retry_\\w+' --author ada
  echo how are errors shown | codescout search -")]
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
    #[arg(long, value_name = "DATE")]
    #[schemars(description = "of commits: 2024-02-29, 30d")]
    since: Option<String>,
    /// With --in: search commits until this date
    #[arg(long, value_name = "DATE")]
    #[schemars(description = "of commits")]
    until: Option<String>,
    /// With --in: search commits whose author (name or address, after mailmap) matches this regular expression, ignoring case
    #[arg(long, value_name = "REGEX")]
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
    #[arg(long, value_name = "N", requires = "pack", value_parser = clap::value_parser!(u32).range(100..=1_000_000))]
    #[serde(skip)]
    max_tokens: Option<u32>,
    /// Always rerank with the configured reranker (rerank.server), even if the query is a name
    #[arg(long, num_args = 0, default_missing_value = "true", conflicts_with = "no_rerank")]
    #[schemars(description = "default: prose")]
    rerank: Option<bool>,
    /// Do not use the configured reranker
    #[arg(long)]
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

/// The fields of the answer other than its rows.
#[derive(Debug, Default, Serialize)]
struct Facts {
    /// The provenance of each searched revision.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    refs: Vec<ProvenanceOut>,
    /// The query that was searched, if its spelling was corrected.
    #[serde(skip_serializing_if = "Option::is_none")]
    read_as: Option<String>,
    /// Quoted texts and identifiers that no file contains.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    absent: Vec<String>,
    /// Remarks about places in the query.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    remarks: Vec<String>,
}

/// A result.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum SearchRow {
    Code(Box<ResultOut>),
    Message(MessageOut),
    Diff(DiffOut),
    Pack(Box<PackOut>),
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
    type Row = SearchRow;

    fn run(&self, ask: &Ask<'_>) -> Result<Page<SearchRow>> {
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

/// A request and the context to answer it.
struct Asked<'a> {
    request: &'a Search,
    ask: &'a Ask<'a>,
    query: &'a str,
}

impl Asked<'_> {
    fn limit(&self) -> usize {
        self.ask.limit(self.ask.session.workspace.config.max_results())
    }

    /// Returns the request for ranked hits after `after`, the position at which the previous page ended.
    fn ranking(&self, after: Option<(u32, u32)>) -> Request {
        Request {
            query: self.place().unwrap_or_else(|| self.query.to_owned()),
            mode: self.request.mode.to_query(),
            limit: self.limit(),
            skip: after.map_or(0, |(n_before, _)| n_before as usize),
            previous_scorers: after.and_then(|(_, judges)| ScorersUsed::from_number(judges)),
            rerank: self.request.rerank(),
            ..Request::default()
        }
    }

    /// Returns the location `path:line` of a search for similar code, with its path relative to the repository root.
    fn place(&self) -> Option<String> {
        let is_similar = self.request.mode == SearchMode::Similar;
        let place = is_similar.then(|| inside(&self.ask.session.workspace, self.query.trim()))?;
        split_position(&place).is_some().then(|| place.into_owned())
    }

    fn at_revision(&self) -> Result<Page<SearchRow>> {
        let request = self.request;
        let pattern = match request.mode {
            SearchMode::Regex => Some(self.pattern(PatternOptions::default())?),
            _ => None,
        };
        let about = About {
            // A pattern is matched against the files themselves, so the index is not needed.
            build: if pattern.is_some() { Build::Begin } else { Build::Wait },
            ..About::files(&self.request.selection)
        };
        let mut question = Question::new(self.ask, &about)?;
        let mut page = match pattern {
            Some(pattern) => {
                let around = request.context_lines.unwrap_or(0);
                let filter = question.filter.clone();
                let lines = lines_request(pattern, filter, around, self.limit(), question.after);
                matching_lines(&question.sources(), &lines, self.ask.call.ctx.interrupt)?
            }
            None => {
                let sought = self.sought(&question)?;
                question.fill(&sought)?;
                let ranking = Request {
                    filter: question.filter.clone(),
                    kinds: request.kind.kinds()?,
                    // Notes and documents were selected; even a poor match may be wanted.
                    is_any: matches!(request.inside, Some(Inside::Docs | Inside::Memory)),
                    ..self.ranking(question.after)
                };
                let mut page = ranked(self.ask, question.view(), &ranking, self.shown())?;
                count_callers(&question, &mut page.results)?;
                page
            }
        };
        if page.is_interrupted {
            page.notes
                .push("stopped at the time limit before all files were read; pass next_cursor to continue".to_owned());
            page.next = page.after.last().copied();
        }
        let paging = paging(question.key(), question.after, &page);
        self.page(&question, page, paging, Vec::new())
    }

    /// Selects files to read while the index is being built: files that contain the query's words, or the named file
    /// and similar ones.
    fn sought(&self, question: &Question<'_>) -> Result<LikelyQuery> {
        let place = self.place();
        let position = place.as_deref().and_then(split_position);
        let file = position.and_then(|(path, line, _)| Some((question.view().find_text(path)?, line)));
        let Some((file, line)) = file.filter(|_| question.seen.building.is_some()) else {
            let text = self.query.to_owned();
            return Ok(LikelyQuery {
                text,
                ..LikelyQuery::default()
            });
        };
        Ok(LikelyQuery {
            files: vec![file],
            text: question.text_around(file, line)?,
            name: None,
        })
    }

    /// Searches several revisions at once. Returns each text once, with its locations in each revision.
    fn over_refs(&self) -> Result<Page<SearchRow>> {
        let mut questions = Vec::new();
        for reference in &self.request.refs {
            let mut question = self.question_at(reference)?;
            let sought = self.sought(&question)?;
            question.fill(&sought)?;
            questions.push(question);
        }
        let Some(first) = questions.first() else {
            return Err(OpError::new("refs is empty", "give branches, tags or commits"));
        };
        let key = CursorKey::over(questions.iter().map(Question::view), &self.ask.common.question);
        let after = self.after(&key)?;
        let views: Vec<RefView<'_>> = questions
            .iter()
            .map(|question| RefView {
                view: question.view(),
                filter: question.filter.clone(),
            })
            .collect();
        let page = ranked_over_refs(self.ask, &views, &self.ranking(after), self.shown())?;
        let refs = questions.iter().map(|question| question.provenance()).collect();
        let is_indexed = questions.iter().all(Question::is_indexed);
        let paging = paging(is_indexed.then_some(key), after, &page);
        self.page(first, page, paging, refs)
    }

    /// Searches all indexed versions of files, or only versions that the revision no longer has. Returns each result
    /// with the commits between which it existed.
    pub(super) fn over_past(&self, documents: Documents) -> Result<Page<SearchRow>> {
        let reference = &self.ask.common.reference;
        let question = self.question_at(reference)?;
        question.needs_index(&format!("{reference} is not indexed yet"), "try again later", None)?;
        self.ask.session.make_searchable(reference, &self.ask.call)?;
        let past = past::Past::open(self.ask, documents)?;
        let name = match documents {
            Documents::All => "all history",
            Documents::Gone => "deleted",
        };
        let key = CursorKey::new(&past.view, &format!("{name} {}", self.ask.common.question));
        let after = self.after(&key)?;
        let ranking = Request {
            filter: question.filter.clone(),
            // Each version of a definition has its own life.
            is_flat: true,
            ..self.ranking(after)
        };
        let mut page = ranked_in_past(self.ask, &past, &ranking, self.shown())?;
        for life in page.results.iter_mut().filter_map(|result| result.life.as_mut()) {
            life.paths.retain(|path| !self.ask.visibility().hides(path.as_bytes()));
        }
        let paging = paging(key, after, &page);
        self.page(&question, page, paging, Vec::new())
    }

    fn question_at(&self, reference: &str) -> Result<Question<'_>> {
        Question::new(
            self.ask,
            &About {
                reference: Some(reference),
                has_cursor: false,
                ..About::files(&self.request.selection)
            },
        )
    }

    /// Returns the position in the call's cursor.
    fn after(&self, key: &CursorKey) -> Result<Option<(u32, u32)>> {
        let cursor = self.ask.common.cursor.as_deref();
        Ok(cursor.map(|cursor| key.read(cursor)).transpose()?)
    }

    /// Converts results to rows.
    fn page(
        &self,
        question: &Question<'_>,
        mut found: SearchPage,
        paging: Paging,
        refs: Vec<ProvenanceOut>,
    ) -> Result<Page<SearchRow>> {
        let is_regex = self.request.is_regex();
        // The language of a file may depend on its content, which is read when the file is indexed.
        let mut provenance = if is_regex && self.request.selection.lang.is_empty() {
            question.provenance_of_files()
        } else {
            question.provenance()
        };
        found.notes.drain(..).for_each(|why| provenance.also_incomplete(why));
        if let Some(explanation) = found.explanation.take() {
            provenance.also_note(explanation);
        }
        let has_remarks = !found.remarks.is_empty();
        let mut notes = found.remarks.clone();
        notes.extend(
            found
                .read_as
                .iter()
                .map(|read_as| format!("query interpreted as: {read_as}")),
        );
        notes.extend(found.absent.iter().map(|text| format!("no file contains {text:?}")));
        let words = found.absent_words.iter();
        notes.extend(words.map(|word| format!("no file contains the word {word:?}")));
        let mut hint = None;
        if found.results.is_empty() {
            let is_complete = is_regex || question.is_indexed();
            let scope = if is_complete {
                ""
            } else {
                " in the files indexed so far"
            };
            notes.push(format!("nothing found{scope}"));
            hint = question.why_nothing();
            if hint.is_none() && found.is_weak && !has_remarks {
                hint = Some(self.about_weak(question));
            }
            if hint.is_none() && is_regex && spans_lines(self.query) {
                hint = Some("a regex matches within one line: search for a part that is on one line".to_owned());
            }
        }
        let marks = self
            .marks(found.read_as.as_deref().unwrap_or(self.query))?
            .map(Arc::new);
        for result in &mut found.results {
            result.marks.clone_from(&marks);
            if is_regex {
                result.cut_lines(self.ask.common.detail);
            }
        }
        let rows = found.results.into_iter().map(Box::new).map(SearchRow::Code).collect();
        let facts = Facts {
            refs,
            read_as: found.read_as,
            absent: [found.absent, found.absent_words].concat(),
            remarks: found.remarks,
        };
        let mut page = Page::new(provenance, rows, paging).with_facts(&facts)?;
        page.notes = notes;
        page.hint = hint;
        Ok(page)
    }

    /// Returns what to do if nothing matches well enough.
    fn about_weak(&self, question: &Question<'_>) -> String {
        let request = SymbolRequest {
            query: SymbolQuery::Named(self.query.trim().to_owned()),
            filter: question.filter.clone(),
            kinds: Vec::new(),
        };
        let is_part = |c: char| c.is_alphanumeric() || c == '_';
        let is_word = self.query.trim().chars().all(is_part);
        // A text that is no name has no similar names.
        let named = is_word
            .then(|| symbols(&question.sources(), &request, None).ok())
            .flatten();
        match named.map(|outcome| outcome.near).unwrap_or_default().as_slice() {
            [] => {
                let is_cli = self.ask.common.characters.is_none();
                let mode = if is_cli { "--mode semantic" } else { "mode=semantic" };
                format!("nothing matches well enough; {mode} lists what is nearest")
            }
            near => format!("did you mean {}?", near.join(" or ")),
        }
    }

    /// Returns the parts of snippets to highlight, for the query as it was read.
    fn marks(&self, query: &str) -> Result<Option<Marks>> {
        Ok(match self.request.mode {
            SearchMode::Similar => None,
            SearchMode::Regex => Some(Marks::Matches(self.pattern(PatternOptions::default())?)),
            _ => Some(Marks::of_query(query)),
        })
    }

    /// Returns the query as a pattern.
    fn pattern(&self, options: PatternOptions) -> Result<Pattern> {
        Ok(Pattern::new(self.query.trim_end_matches('\n'), options)?)
    }

    /// Determines what is returned of each result.
    fn shown(&self) -> Shown {
        let detail = self.ask.common.detail;
        Shown {
            n_lines: match detail {
                Detail::Ids => 0,
                Detail::Outline => 1,
                _ => self.n_lines(),
            },
            is_whole: matches!(detail, Detail::Full | Detail::Pack),
            explain: self.request.explain,
            by_match: self.request.mode != SearchMode::Similar,
        }
    }

    /// Returns the number of lines in a snippet.
    fn n_lines(&self) -> usize {
        let asked = self.request.context_lines.filter(|lines| *lines > 0);
        asked.unwrap_or(SNIPPET_LINES)
    }
}

/// Counts the callers of the functions on a first page that the query names, best first, until too many files would have
/// to be read.
fn count_callers(question: &Question<'_>, results: &mut [ResultOut]) -> Result<()> {
    let is_any_named = results.iter().any(|result| result.function.is_some());
    if question.after.is_some() || !question.is_indexed() || !is_any_named {
        return Ok(());
    }
    let links = question.links();
    let linker = question.linker(&links).without_candidates();
    let mut n_left = MAX_CALLING_FILES;
    for result in results {
        let Some((of, kind)) = result.function else { continue };
        if let Some(n_files) = linker.n_files_naming(of, n_left)? {
            n_left -= n_files;
            let n_callers = n_callers(&linker, of, kind)?;
            result.callers = (n_callers > 0 && question.sources().go_on().is_ok()).then_some(n_callers);
        }
    }
    Ok(linker.check()?)
}

/// Returns true if a pattern seems to be meant to match across lines.
fn spans_lines(pattern: &str) -> bool {
    pattern.contains('\n') || ["\\n", "(?s", "\\s*"].iter().any(|part| pattern.contains(part))
}

fn paging(key: impl Into<Option<CursorKey>>, after: Option<(u32, u32)>, page: &SearchPage) -> Paging {
    let starts = std::iter::once(after.unwrap_or_default()).chain(page.after.iter().copied());
    Paging {
        key: key.into(),
        positions: starts.take(page.results.len()).collect(),
        end: page.next,
        limit: None,
    }
}

impl ResultOut {
    /// Shortens matching lines according to `detail`.
    fn cut_lines(&mut self, detail: Detail) {
        match detail {
            Detail::Ids => self.snippet = None,
            Detail::Outline => {
                if let Some(snippet) = &mut self.snippet {
                    snippet.truncate(first_lines(snippet, 1).len());
                }
            }
            Detail::Preview | Detail::Full | Detail::Pack => {}
        }
    }

    fn render(&self, out: &mut dyn Sink) {
        out.span(Style::Path, &format!("{}:{}", self.path, self.start_line));
        if self.kind != "line" {
            out.span(
                Style::Fact,
                &format!("-{} {} {:.3}", self.end_line, self.kind, self.score),
            );
            if let Some(symbol) = &self.symbol {
                out.span(Style::Name, &format!(" {symbol}"));
            }
            if let Some(callers) = self.callers {
                out.span(Style::Fact, &format!(" called by {callers}"));
            }
            if let Some(matched_by) = self.matched_by {
                out.span(Style::Fact, &format!(" · {}", matched_by.replace('_', " ")));
            }
        }
        let (further, copies): (Vec<_>, Vec<_>) = self.places.iter().partition(|place| place.is_part);
        for place in copies {
            out.span(Style::Fact, &format!(" also {}:{}", place.path, place.start_line));
        }
        out.end();
        let mut shown: Vec<(u32, &str)> = Vec::new();
        shown.extend(
            self.signature
                .as_deref()
                .map(|signature| (self.signature_line, signature)),
        );
        shown.extend(
            self.snippet
                .as_deref()
                .map(|snippet| (self.snippet_start_line, snippet)),
        );
        shown.sort_by_key(|(line, _)| *line);
        for (line, text) in shown {
            render_preview(line, text, self.marks.as_deref(), out);
        }
        let fact = |text: String, out: &mut dyn Sink| {
            out.span(Style::Fact, &format!("       {text}"));
            out.end_whole();
        };
        let (shown, listed): (Vec<_>, Vec<_>) = further.into_iter().partition(|part| part.snippet.is_some());
        for part in shown {
            fact(format!("also {}", part.to_part()), out);
            let snippet = part.snippet.as_deref().unwrap_or_default();
            render_preview(
                part.snippet_start_line.unwrap_or_default(),
                snippet,
                self.marks.as_deref(),
                out,
            );
        }
        let mut listed: Vec<String> = listed.into_iter().map(PlaceOut::to_part).collect();
        listed.extend((self.more_places > 0).then(|| format!("{} more", self.more_places)));
        if !listed.is_empty() {
            fact(format!("also {}", listed.join(", ")), out);
        }
        if let Some(life) = &self.life {
            fact(life.to_text(), out);
        }
        for found in &self.refs {
            let places = found.places.iter();
            let places: Vec<String> = places
                .map(|place| format!("{}:{}", place.path, place.start_line))
                .collect();
            fact(format!("in {}: {}", found.reference, places.join(", ")), out);
        }
        if let Some(features) = &self.features {
            let features = features.iter();
            let features: Vec<String> = features.map(|(name, value)| format!("{name}={value:.3}")).collect();
            fact(features.join(" "), out);
        }
    }
}

impl PlaceOut {
    /// Returns the lines and the definition, without the path.
    fn to_part(&self) -> String {
        let symbol = self.symbol.as_ref().map(|symbol| format!(" {symbol}"));
        format!("{}-{}{}", self.start_line, self.end_line, symbol.unwrap_or_default())
    }
}

/// Writes the lines of a text with their numbers, and with its marked parts as matches.
fn render_preview(first: u32, text: &str, marks: Option<&Marks>, out: &mut dyn Sink) {
    for (line, number) in text.lines().zip(first..) {
        out.span(Style::Fact, &format!("{number:>6} "));
        render_marked(Style::Plain, line, marks, out);
        out.end();
    }
}

fn render_marked(style: Style, line: &str, marks: Option<&Marks>, out: &mut dyn Sink) {
    let spans = marks.map(|marks| marks.spans(line)).unwrap_or_default();
    out.marked(style, line, &spans);
}

/// Returns the first lines of a text, without the last line break.
fn first_lines(text: &str, n_lines: usize) -> &str {
    let end = text.match_indices('\n').nth(n_lines.saturating_sub(1));
    end.map_or(text, |(at, _)| &text[..at])
}

impl Row for SearchRow {
    const IS_SPACED: bool = true;

    fn is_apart(&self) -> bool {
        match self {
            Self::Pack(item) => item.is_first,
            _ => Self::IS_SPACED,
        }
    }

    fn render(&self, out: &mut dyn Sink) {
        match self {
            Self::Code(result) => result.render(out),
            Self::Message(message) => message.render(out),
            Self::Diff(diff) => diff.render(out),
            Self::Pack(item) => item.render(out),
        }
    }

    fn bodies(&mut self) -> Vec<&mut Option<String>> {
        match self {
            Self::Code(result) => vec![&mut result.snippet],
            Self::Pack(item) => vec![&mut item.text],
            Self::Message(_) | Self::Diff(_) => Vec::new(),
        }
    }
}
