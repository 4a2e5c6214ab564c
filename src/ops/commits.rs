//! What a search through commits found: their messages, or the lines that they changed.

use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use serde::Serialize;

use super::ProvenanceOut;
use super::history::{PersonOut, person_out};
use crate::history::{CommitHead, Who};
use crate::ingest::Progress;
use crate::query::{
    CommitFilter, CommitHit, CommitMode, CommitSearcher, CursorKey, DiffHit, DiffSearch, Gaps, Pattern, PatternOptions,
    timestamp,
};
use crate::session::OpenedHistory;
use crate::session::Workspace;

/// How a query is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CommitQuery {
    /// Words and meaning of messages.
    Ranked(CommitMode),
    /// Text as it stands: of changed lines.
    Literal,
    /// A regular expression, matched line by line.
    Regex,
}

/// A question about commits.
#[derive(Debug)]
pub(crate) struct CommitQuestion<'q> {
    pub(crate) query: &'q str,
    pub(crate) read_as: CommitQuery,
    pub(crate) filter: CommitFilter,
    pub(crate) limit: usize,
    pub(crate) cursor: Option<&'q str>,
    /// Names everything that decides about the answer.
    pub(crate) question: String,
    /// After which a search stops with what it has.
    pub(crate) time_limit: Option<Duration>,
}

/// Commits that answer, and what the answer is about.
#[derive(Debug, Serialize)]
pub(crate) struct CommitsOut<T> {
    #[serde(flatten)]
    pub(crate) provenance: ProvenanceOut,
    /// How many commits were looked at.
    pub(crate) commits: u64,
    /// How many differences were made, for a search in them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) compared: Option<usize>,
    pub(crate) results: Vec<T>,
    pub(crate) next_cursor: Option<String>,
    pub(crate) took_ms: f64,
}

/// Which commit something is about.
#[derive(Debug, Serialize)]
pub(crate) struct CommitOut {
    pub(crate) commit: String,
    pub(crate) author: PersonOut,
    pub(crate) date: String,
    pub(crate) commit_date: String,
    pub(crate) subject: String,
}

/// A commit whose message answers.
#[derive(Debug, Serialize)]
pub(crate) struct MessageOut {
    #[serde(flatten)]
    pub(crate) commit: CommitOut,
    pub(crate) merge: bool,
    pub(crate) score: f32,
    pub(crate) changed_paths: usize,
    pub(crate) lines: Vec<LineOut>,
}

/// A file that a commit changed in lines that answer.
#[derive(Debug, Serialize)]
pub(crate) struct DiffOut {
    #[serde(flatten)]
    pub(crate) commit: CommitOut,
    pub(crate) path: String,
    pub(crate) from_path: Option<String>,
    pub(crate) removed: Vec<LineOut>,
    pub(crate) added: Vec<LineOut>,
    /// How many lines match, told or not.
    pub(crate) matching_lines: usize,
}

/// A line with its number from 1.
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

/// Commits by what their messages say. What is not recorded is recorded first.
pub(crate) fn search_messages(
    workspace: &Workspace,
    reference: &str,
    asked: &CommitQuestion<'_>,
    progress: &dyn Progress,
    interrupt: &AtomicBool,
) -> Result<CommitsOut<MessageOut>> {
    let (opened, messages) = match asked.read_as {
        CommitQuery::Ranked(_) => workspace.messages(reference, progress, interrupt)?,
        CommitQuery::Literal | CommitQuery::Regex => (workspace.history(reference, progress, interrupt)?, Vec::new()),
    };
    let started = Instant::now();
    let key = cursor_key(workspace, &opened, asked);
    let after = asked.cursor.map(|cursor| key.read(cursor)).transpose()?;
    let skip = after.map_or(0, |(n_told, _)| n_told as usize);
    let scope = asked
        .filter
        .commits(&opened.history, &opened.reached, &opened.mailmap)?;
    let searcher = CommitSearcher {
        history: &opened.history,
        messages: &messages,
        embedder: workspace.own_model(),
        scope: &scope,
        mailmap: &opened.mailmap,
        interrupt,
    };
    let outcome = match asked.read_as {
        CommitQuery::Ranked(mode) => searcher.search(asked.query, mode, skip, asked.limit)?,
        _ => searcher.matching(&pattern(asked)?, skip, asked.limit)?,
    };
    let n_told = skip + outcome.hits.len();
    let message = |hit: CommitHit| MessageOut {
        commit: CommitOut::of(&hit.head, &hit.author),
        merge: opened.history.parents(hit.number).len() > 1,
        score: hit.score,
        changed_paths: hit.n_paths,
        lines: lines_out(hit.lines),
    };
    Ok(CommitsOut {
        provenance: provenance(workspace, reference, &opened, Vec::new())?,
        commits: scope.len(),
        compared: None,
        results: outcome.hits.into_iter().map(message).collect(),
        next_cursor: outcome.has_more.then(|| key.write((n_told as u32, 0))),
        took_ms: started.elapsed().as_secs_f64() * 1e3,
    })
}

/// Lines that commits added and removed. What is not recorded is recorded first; what has no signatures is compared.
pub(crate) fn search_diffs(
    workspace: &Workspace,
    reference: &str,
    asked: &CommitQuestion<'_>,
    progress: &dyn Progress,
    interrupt: &AtomicBool,
) -> Result<CommitsOut<DiffOut>> {
    let pattern = pattern(asked)?;
    let opened = workspace.history(reference, progress, interrupt)?;
    let started = Instant::now();
    let lines = workspace.line_changes(&opened)?;
    let key = cursor_key(workspace, &opened, asked);
    let scope = asked
        .filter
        .commits(&opened.history, &opened.reached, &opened.mailmap)?;
    let search = DiffSearch {
        repository: &workspace.repository,
        history: &opened.history,
        lines: &lines,
        scope: &scope,
        pattern: &pattern,
        files: &asked.filter.files,
        limit: asked.limit,
        after: asked.cursor.map(|cursor| key.read(cursor)).transpose()?,
        deadline: asked.time_limit.map(|limit| started + limit),
    };
    let outcome = search.run(interrupt)?;
    if outcome.is_interrupted {
        bail!("interrupted");
    }
    let mut incomplete = Vec::new();
    if outcome.is_late {
        incomplete.push(format!(
            "time was up after {} of {} commits; the cursor goes on from there",
            outcome.n_commits,
            scope.len()
        ));
    }
    if outcome.n_unknown > 0 {
        incomplete.push(format!(
            "{} differences could not be made: files are not in this repository, or too large",
            outcome.n_unknown
        ));
    }
    let numbers: Vec<u32> = outcome.hits.iter().map(|hit| hit.number).collect();
    let heads = opened.history.heads(&numbers)?;
    let diff = |hit: DiffHit| {
        let head = &heads[&hit.number];
        DiffOut {
            commit: CommitOut::of(head, &opened.mailmap.resolve(&head.author)),
            path: hit.path.to_string(),
            from_path: hit.from_path.map(|path| path.to_string()),
            removed: lines_out(hit.removed),
            added: lines_out(hit.added),
            matching_lines: hit.n_lines,
        }
    };
    Ok(CommitsOut {
        provenance: provenance(workspace, reference, &opened, incomplete)?,
        commits: scope.len(),
        compared: Some(outcome.n_compared),
        results: outcome.hits.into_iter().map(diff).collect(),
        next_cursor: outcome.next.map(|position| key.write(position)),
        took_ms: started.elapsed().as_secs_f64() * 1e3,
    })
}

fn pattern(asked: &CommitQuestion<'_>) -> Result<Pattern> {
    let options = PatternOptions {
        literal: asked.read_as == CommitQuery::Literal,
        ..PatternOptions::default()
    };
    Ok(Pattern::new(asked.query.trim_end_matches('\n'), options)?)
}

fn cursor_key(workspace: &Workspace, opened: &OpenedHistory, asked: &CommitQuestion<'_>) -> CursorKey {
    let tip = opened.target.and_then(|target| target.commit);
    let profile = workspace.own_model().profile().id().to_string();
    CursorKey::of_commits(tip, &profile, &asked.question)
}

fn provenance(
    workspace: &Workspace,
    reference: &str,
    opened: &OpenedHistory,
    mut incomplete: Vec<String>,
) -> Result<ProvenanceOut> {
    incomplete.splice(0..0, opened.notes.clone());
    incomplete.extend(Gaps::of(&opened.history, &opened.reached)?.sentences());
    Ok(ProvenanceOut::without_view(
        workspace,
        reference,
        opened.target,
        None,
        incomplete,
    ))
}
