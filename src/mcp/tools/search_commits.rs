//! `search` with `in`: the messages of commits, or the lines that they changed.

use std::time::Duration;

use anyhow::Result;
use serde::Serialize;

use super::super::asked::Asked;
use super::super::reply::{Draft, Reply};
use super::super::tool::Call;
use crate::extract::is_credential;
use crate::ingest::NoProgress;
use crate::ops::{
    CommitOut, CommitQuery, CommitQuestion, CommitsOut, DiffOut, MessageOut, log_filter, search_diffs, search_messages,
};
use crate::query::{CommitFilter, CommitMode, FileFilter};
use crate::session::Keeping;
use crate::session::OpError;
use crate::session::{End, Task};

/// How long a call waits for commits to be made searchable.
const PATIENCE: Duration = Duration::from_secs(6);
/// A search in differences stops here and says where it goes on.
const TIME_LIMIT: Duration = Duration::from_secs(7);

/// What is searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Inside {
    /// Messages.
    Commits,
    /// Changed lines.
    Diffs,
}

#[derive(Serialize)]
struct Own {
    commits: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    compared: Option<usize>,
}

pub(super) fn run(call: &Call<'_>, inside: Inside, query: &str) -> Result<Reply> {
    let asked = Asked::of(call)?;
    let desk = call.session()?;
    let reference = desk.checked(&asked.reference)?;
    make_searchable(call, reference)?;
    let text = |name| call.arguments.text(name);
    let question = CommitQuestion {
        query,
        read_as: read_as(inside, text("mode"))?,
        filter: CommitFilter {
            log: log_filter(text("since"), text("until"), text("author"))?,
            files: FileFilter::new(&asked.paths, &asked.langs, asked.tests)?,
        },
        limit: asked.limit,
        cursor: asked.cursor.as_deref(),
        question: asked.question.clone(),
        time_limit: Some(TIME_LIMIT),
    };
    let workspace = &desk.workspace;
    match inside {
        Inside::Commits => {
            let found = search_messages(workspace, reference, &question, &NoProgress, call.ctx.interrupt)?;
            Ok(told(call, &asked, found, message_text))
        }
        Inside::Diffs => {
            let mut found = search_diffs(workspace, reference, &question, &NoProgress, call.ctx.interrupt)?;
            let is_shown = |path: &str| !is_credential(path.as_bytes());
            found
                .results
                .retain(|diff| is_shown(&diff.path) && diff.from_path.as_deref().is_none_or(is_shown));
            Ok(told(call, &asked, found, diff_text))
        }
    }
}

/// Waits until what a revision reaches is recorded and indexed; that goes on when the call gives up.
pub(super) fn make_searchable(call: &Call<'_>, reference: &str) -> Result<()> {
    let desk = call.session()?;
    if desk.workspace.keeping() == Keeping::Nowhere {
        return Err(OpError::new(
            "this repository is only read: its commits are not indexed",
            "history target=PATH tells the past of a file",
        )
        .into());
    }
    let Some(target) = desk.workspace.target(reference)? else {
        return Ok(());
    };
    if desk.is_searchable(target.commit) {
        return Ok(());
    }
    let (job, _) = desk.record(Task::Searchable, reference, target);
    match job.wait_as(PATIENCE, &call.ctx) {
        Some(End::Done(_)) => desk.now_searchable(target.commit),
        Some(End::Failed(error)) => return Err(OpError::new(error, "status with op=health says more").into()),
        Some(End::Stopped) | None => {
            return Err(OpError::new(
                format!("commits are being made searchable: {}", job.advance().to_text()),
                "ask again in a while; index history=true waits for it; history target=PATH answers meanwhile",
            )
            .into());
        }
    }
    Ok(())
}

fn read_as(inside: Inside, mode: Option<&str>) -> Result<CommitQuery, OpError> {
    Ok(match (inside, mode.unwrap_or("auto")) {
        (_, "regex") => CommitQuery::Regex,
        (Inside::Commits, "auto" | "hybrid") => CommitQuery::Ranked(CommitMode::Hybrid),
        (Inside::Commits, "keyword") => CommitQuery::Ranked(CommitMode::Keyword),
        (Inside::Commits, "semantic") => CommitQuery::Ranked(CommitMode::Semantic),
        (Inside::Diffs, "auto" | "keyword") => CommitQuery::Literal,
        (Inside::Commits, mode) => {
            let error = format!("mode={mode} means nothing with in=commits");
            return Err(OpError::new(
                error,
                "modes are auto, hybrid, semantic, keyword and regex",
            ));
        }
        (Inside::Diffs, mode) => {
            let error = format!("mode={mode} means nothing with in=diffs");
            return Err(OpError::new(
                error,
                "the query is text as it stands, or with mode=regex a regular expression",
            ));
        }
    })
}

fn told<T: Serialize>(call: &Call<'_>, asked: &Asked, mut found: CommitsOut<T>, text: fn(&T) -> String) -> Reply {
    let mut draft = Draft::new(call, asked.characters);
    if found.results.is_empty() {
        draft.note("nothing found");
    }
    let mut n_told = 0;
    for result in &found.results {
        if !draft.push(result, &text(result), None) {
            break;
        }
        n_told += 1;
    }
    if n_told < found.results.len() {
        // The cursor is to what comes after the whole page.
        found.next_cursor = None;
        let left = found.results.len() - n_told;
        found.provenance.also_incomplete(format!(
            "{left} more results did not fit: take a smaller limit or a larger max_tokens"
        ));
    }
    let own = Own {
        commits: found.commits,
        compared: found.compared,
    };
    draft.finish(&found.provenance, found.next_cursor, &own)
}

fn head(commit: &CommitOut) -> String {
    let day = &commit.date[..commit.date.len().min(10)];
    format!(
        "{} {day} {}: {}",
        &commit.commit[..12],
        commit.author.name,
        commit.subject
    )
}

fn message_text(message: &MessageOut) -> String {
    let mut text = format!("{} ({} paths)", head(&message.commit), message.changed_paths);
    for line in &message.lines {
        text.push_str(&format!("\n    {}", line.text));
    }
    text
}

fn diff_text(diff: &DiffOut) -> String {
    let mut text = format!("{}\n    {}", head(&diff.commit), diff.path);
    for (sign, lines) in [('-', &diff.removed), ('+', &diff.added)] {
        for line in lines {
            text.push_str(&format!("\n{:>6}{sign}{}", line.line, line.text));
        }
    }
    text
}
