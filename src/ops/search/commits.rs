//! Searches commits by their messages or by the lines that they changed.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::Serialize;

use super::super::op::{Page, PageOf, Paging};
use super::super::provenance::ProvenanceOut;
use super::super::record::{PersonOut, log_filter, person_out};
use super::super::sink::{Sink, Style};
use super::asked::Asked;
use super::rows::{SearchFacts, SearchRow, render_preview};
use super::{Inside, Search, SearchMode};
use crate::history::{CommitHead, Who};
use crate::model::count::count;
use crate::model::{Hint, RepoPath};
use crate::query::{
    CommitFilter, CommitHit, CommitMode, CommitSearcher, CursorKey, DiffHit, DiffSearch, DiffsOutcome, Gaps, Marks,
    Pattern, PatternOptions, timestamp,
};
use crate::session::{OpError, OpenedHistory, Result};

/// Time limit of a search in changed lines. After it, the answer includes a cursor to continue.
const TIME_LIMIT: Duration = Duration::from_secs(30);
/// Time limit of a search in changed lines if the call has a time limit.
const SHORT_TIME_LIMIT: Duration = Duration::from_secs(7);
/// Number of digits of a commit id in text output.
const ID_DIGITS: usize = 10;

/// The interpretation of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CommitQuery {
    /// Words or a description to find in messages.
    Ranked(CommitMode),
    /// Literal text to find in changed lines.
    Literal,
    /// A regular expression that is matched line by line.
    Regex,
}

/// The fields of the answer other than its rows.
#[derive(Debug, Serialize)]
pub(crate) struct Facts {
    /// Number of commits searched.
    commits: u64,
    /// Number of file comparisons.
    #[serde(skip_serializing_if = "Option::is_none")]
    compared: Option<usize>,
}

/// The commit that a result belongs to.
#[derive(Debug, Serialize)]
pub(crate) struct CommitOut {
    pub(crate) commit: String,
    pub(crate) author: PersonOut,
    pub(crate) date: String,
    pub(crate) commit_date: String,
    pub(crate) subject: String,
}

/// A commit whose message matches.
#[derive(Debug, Serialize)]
pub(crate) struct MessageOut {
    #[serde(flatten)]
    pub(crate) commit: CommitOut,
    pub(crate) merge: bool,
    pub(crate) score: f32,
    pub(crate) changed_paths: usize,
    pub(crate) lines: Vec<LineOut>,
    #[serde(skip)]
    marks: Option<Arc<Marks>>,
}

/// A file in which a commit changed matching lines.
#[derive(Debug, Serialize)]
pub(crate) struct DiffOut {
    #[serde(flatten)]
    pub(crate) commit: CommitOut,
    pub(crate) path: String,
    pub(crate) from_path: Option<String>,
    pub(crate) removed: Vec<LineOut>,
    pub(crate) added: Vec<LineOut>,
    /// Number of matching lines, including lines that are not shown.
    pub(crate) matching_lines: usize,
    /// Number of lines that are shown as text.
    #[serde(skip)]
    n_shown: usize,
    #[serde(skip)]
    marks: Arc<Marks>,
}

/// A line with its 1-based number.
#[derive(Debug, Serialize)]
pub(crate) struct LineOut {
    pub(crate) line: u32,
    pub(crate) text: String,
}

impl CommitOut {
    fn of(head: &CommitHead, author: &Who) -> Self {
        Self {
            commit: head.id.to_string(),
            author: person_out(author),
            date: timestamp(head.author_time, head.author_offset),
            commit_date: timestamp(head.commit_time, 0),
            subject: head.subject.clone(),
        }
    }
}

fn lines_out(lines: Vec<(u32, String)>) -> Vec<LineOut> {
    let line = |(line, text)| LineOut { line, text };
    lines.into_iter().map(line).collect()
}

impl Asked<'_> {
    fn commit_query(&self, inside: Inside) -> Result<CommitQuery, OpError> {
        let mode = self.request.mode;
        Ok(match (inside, mode) {
            (_, SearchMode::Regex) => CommitQuery::Regex,
            (Inside::Commits, SearchMode::Auto | SearchMode::Hybrid) => CommitQuery::Ranked(CommitMode::Hybrid),
            (Inside::Commits, SearchMode::Keyword) => CommitQuery::Ranked(CommitMode::Keyword),
            (Inside::Commits, SearchMode::Semantic) => CommitQuery::Ranked(CommitMode::Semantic),
            (Inside::Diffs, SearchMode::Auto | SearchMode::Keyword) => CommitQuery::Literal,
            (Inside::Commits, _) => {
                return Err(OpError::new(
                    "this mode cannot be used with in commits",
                    Hint::each(
                        "use --mode auto, hybrid, semantic, keyword or regex",
                        "use mode auto, hybrid, semantic, keyword or regex",
                    ),
                ));
            }
            _ => {
                return Err(OpError::new(
                    "this mode cannot be used with in diffs",
                    Hint::each(
                        "use --mode auto or keyword for literal text, or --mode regex",
                        "use mode auto or keyword for literal text, or mode regex",
                    ),
                ));
            }
        })
    }

    fn commit_filter(&self) -> Result<CommitFilter> {
        let Search {
            since, until, author, ..
        } = self.request;
        Ok(CommitFilter {
            log: log_filter(since.as_deref(), until.as_deref(), author.as_deref())?,
            files: self.request.selection.filter(&self.ask.session.workspace)?,
        })
    }

    fn commit_pattern(&self, query: CommitQuery) -> Result<Pattern> {
        self.pattern(PatternOptions {
            literal: query == CommitQuery::Literal,
            ..PatternOptions::default()
        })
    }

    fn commit_key(&self, opened: &OpenedHistory) -> CursorKey {
        let tip = opened.target.and_then(|target| target.commit);
        let profile = self
            .ask
            .session
            .workspace
            .models
            .own_embedder()
            .profile()
            .id()
            .to_string();
        CursorKey::of_commits(tip, &profile, &self.ask.common.question)
    }

    fn commit_page(
        &self,
        opened: &OpenedHistory,
        (rows, paging, facts): (Vec<SearchRow>, Paging, Facts),
        mut incomplete: Vec<String>,
    ) -> Result<PageOf<Search>> {
        incomplete.splice(0..0, opened.notes.clone());
        incomplete.extend(Gaps::of(&opened.history, &opened.reached)?.sentences());
        let reference = &self.ask.common.reference;
        let workspace = &self.ask.session.workspace;
        let provenance = ProvenanceOut::without_view(workspace, reference, opened.target, None, incomplete);
        let mut page = Page::new(provenance, SearchFacts::Commits(facts), rows, paging);
        if page.is_empty {
            page.notes.push("nothing found".to_owned());
        }
        Ok(page)
    }
}

/// Searches the messages of commits. Missing commits are recorded first.
pub(super) fn messages(asked: &Asked<'_>) -> Result<PageOf<Search>> {
    let (ask, query) = (asked.ask, asked.commit_query(Inside::Commits)?);
    let (workspace, reference) = (&ask.session.workspace, &ask.common.reference);
    ask.session.make_searchable(reference, &ask.call)?;
    let (opened, messages) = match query {
        CommitQuery::Ranked(_) => workspace.records().messages(reference, ask.call.ctx)?,
        CommitQuery::Literal | CommitQuery::Regex => {
            let opened = workspace.records().history(reference, ask.call.ctx)?;
            (opened, Vec::new())
        }
    };
    let key = asked.commit_key(&opened);
    let n_before = asked.after(&key)?.map_or(0, |(n_before, _)| n_before as usize);
    let filter = asked.commit_filter()?;
    let scope = filter.commits(&opened.history, &opened.reached, &opened.mailmap)?;
    let searcher = CommitSearcher {
        history: &opened.history,
        messages: &messages,
        embedder: workspace.models.own_embedder(),
        scope: &scope,
        mailmap: &opened.mailmap,
        interrupt: ask.call.ctx.interrupt,
    };
    let outcome = match query {
        CommitQuery::Ranked(mode) => searcher.search(asked.query, mode, n_before, asked.limit())?,
        _ => searcher.matching(&asked.commit_pattern(query)?, n_before, asked.limit())?,
    };
    let mut paging = Paging::numbered(key, n_before, outcome.hits.len(), usize::MAX);
    let n_after = (n_before + outcome.hits.len()) as u32;
    paging.end = outcome.has_more.then_some((n_after, 0));
    let marks = asked.marks(asked.query)?.map(Arc::new);
    let message = |hit: CommitHit| MessageOut {
        commit: CommitOut::of(&hit.head, &hit.author),
        merge: opened.history.parents(hit.number).len() > 1,
        score: hit.score,
        changed_paths: hit.n_paths,
        lines: lines_out(hit.lines),
        marks: marks.clone(),
    };
    let rows = outcome.hits.into_iter().map(message).map(SearchRow::Message).collect();
    let facts = Facts {
        commits: scope.len(),
        compared: None,
    };
    asked.commit_page(&opened, (rows, paging, facts), Vec::new())
}

/// Searches the lines that commits added and removed. Missing commits are recorded first. Commits without signatures
/// are always compared.
pub(super) fn diffs(asked: &Asked<'_>) -> Result<PageOf<Search>> {
    let ask = asked.ask;
    let pattern = asked.commit_pattern(asked.commit_query(Inside::Diffs)?)?;
    let (workspace, reference) = (&ask.session.workspace, &ask.common.reference);
    ask.session.make_searchable(reference, &ask.call)?;
    let opened = workspace.records().history(reference, ask.call.ctx)?;
    let key = asked.commit_key(&opened);
    let after = asked.after(&key)?;
    let filter = asked.commit_filter()?;
    let scope = filter.commits(&opened.history, &opened.reached, &opened.mailmap)?;
    let time_limit = match ask.call.limits {
        Some(_) => SHORT_TIME_LIMIT,
        None => TIME_LIMIT,
    };
    let search = DiffSearch {
        repository: &workspace.repository,
        history: &opened.history,
        lines: &workspace.records().line_changes(&opened)?,
        scope: &scope,
        pattern: &pattern,
        files: &filter.files,
        limit: asked.limit(),
        after,
        deadline: Some(Instant::now() + time_limit),
    };
    let mut outcome = search.run(ask.call.ctx.interrupt)?;
    if outcome.is_interrupted {
        return Err(OpError::interrupted());
    }
    let incomplete = gaps(&outcome, scope.len());
    let hides = |path: &RepoPath| ask.visibility().hides(path.as_bytes());
    outcome
        .hits
        .retain(|hit| !hides(&hit.path) && !hit.from_path.as_ref().is_some_and(hides));
    let numbers: Vec<u32> = outcome.hits.iter().map(|hit| hit.number).collect();
    let heads = opened.history.heads(&numbers)?;
    let ends = outcome.hits.iter().map(|hit| (hit.number, hit.nth));
    let starts = std::iter::once(after.unwrap_or((u32::MAX, 0))).chain(ends);
    let paging = Paging {
        key: Some(key),
        positions: starts.take(outcome.hits.len()).collect(),
        end: outcome.next,
        limit: None,
    };
    let marks = Arc::new(Marks::Matches(pattern.clone()));
    let diff = |hit: DiffHit| {
        let head = &heads[&hit.number];
        DiffOut {
            commit: CommitOut::of(head, &opened.mailmap.resolve(&head.author)),
            path: hit.path.to_string(),
            from_path: hit.from_path.map(|path| path.to_string()),
            removed: lines_out(hit.removed),
            added: lines_out(hit.added),
            matching_lines: hit.n_lines,
            n_shown: asked.n_lines(),
            marks: Arc::clone(&marks),
        }
    };
    let rows = outcome.hits.into_iter().map(diff).map(SearchRow::Diff).collect();
    let facts = Facts {
        commits: scope.len(),
        compared: Some(outcome.n_compared),
    };
    asked.commit_page(&opened, (rows, paging, facts), incomplete)
}

/// Returns the reasons why a search in changed lines is incomplete.
fn gaps(outcome: &DiffsOutcome, n_commits: u64) -> Vec<String> {
    let mut gaps = Vec::new();
    if outcome.is_late {
        gaps.push(format!(
            "stopped at the time limit after {} of {n_commits} commits; use the cursor to continue",
            outcome.n_commits
        ));
    }
    if outcome.n_unknown > 0 {
        gaps.push(format!(
            "{} files could not be compared, because they are missing in git or too large",
            outcome.n_unknown
        ));
    }
    gaps
}

impl CommitOut {
    fn render(&self, facts: &str, out: &mut dyn Sink) {
        let day = self.date.split('T').next().unwrap_or_default();
        out.span(Style::Commit, &self.commit[..ID_DIGITS.min(self.commit.len())]);
        out.span(Style::Fact, &format!(" {day} {}{facts}", self.author.name));
        out.span(Style::Name, &format!(" {}", self.subject));
        out.end();
    }
}

impl MessageOut {
    pub(super) fn render(&self, out: &mut dyn Sink) {
        let facts = format!(" {}", count(self.changed_paths, "path"));
        self.commit.render(&facts, out);
        for line in &self.lines {
            render_preview(line.line, &line.text, "text", self.marks.as_deref(), out);
        }
    }
}

impl DiffOut {
    pub(super) fn render(&self, out: &mut dyn Sink) {
        self.commit.render("", out);
        out.span(Style::Path, &self.path);
        if let Some(from) = &self.from_path {
            out.plain(&format!(" (was {from})"));
        }
        out.end();
        let removed = self.removed.iter().map(|line| ("-", Style::Removed, line));
        let added = self.added.iter().map(|line| ("+", Style::Added, line));
        let mut n_shown = 0;
        for (sign, style, line) in removed.chain(added).take(self.n_shown) {
            out.span(Style::Fact, &format!("{:>6} ", line.line));
            out.span(style, sign);
            out.marked(style, &line.text, &self.marks.spans(&line.text));
            out.end();
            n_shown += 1;
        }
        let n_left = self.matching_lines.saturating_sub(n_shown);
        if n_left > 0 {
            out.span(Style::Fact, &format!("       and {}", count(n_left, "more line")));
            out.end();
        }
    }
}
