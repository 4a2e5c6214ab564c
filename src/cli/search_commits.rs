//! `codescout search --in commits` and `--in diffs`

use std::time::Duration;

use anyhow::Result;

use super::args::{Global, InArg, ModeArg, SearchArgs};
use super::json::OpError;
use super::progress::CliProgress;
use super::render::{FAINT, Output, PATH, STRONG, one_line, sanitize};
use super::{Found, INTERRUPTED};
use crate::ops::{
    CommitOut, CommitQuery, CommitQuestion, CommitsOut, DiffOut, LineOut, MessageOut, log_filter, search_diffs,
    search_messages,
};
use crate::query::{CommitFilter, CommitMode, FileFilter};
use crate::session::Workspace;

/// A search in differences stops here and says where it goes on.
const TIME_LIMIT: Duration = Duration::from_secs(30);
/// Digits of a commit's id for people.
const ID_DIGITS: usize = 10;

pub(super) fn run(
    workspace: &Workspace,
    global: &Global,
    args: &SearchArgs,
    (what, query): (InArg, &str),
    files: FileFilter,
    output: &mut Output,
) -> Result<Found> {
    let asked = CommitQuestion {
        query,
        read_as: read_as(what, args)?,
        filter: CommitFilter {
            log: log_filter(args.since.as_deref(), args.until.as_deref(), args.author.as_deref())?,
            files,
        },
        limit: workspace.config.max_results(),
        cursor: args.page.cursor.as_deref(),
        question: format!(
            "search in {what:?} {query:?} {:?} {:?} {:?} {:?} {:?}",
            args.mode, args.filter, args.since, args.until, args.author
        ),
        time_limit: Some(TIME_LIMIT),
    };
    let progress = CliProgress::new(global.quiet);
    match what {
        InArg::Commits => {
            let answer = search_messages(workspace, &global.reference, &asked, &progress, &INTERRUPTED)?;
            told(&answer, args, output, show_message)
        }
        InArg::Diffs => {
            let answer = search_diffs(workspace, &global.reference, &asked, &progress, &INTERRUPTED)?;
            told(&answer, args, output, |diff, output| {
                show_diff(diff, args.context_lines, output)
            })
        }
    }
}

/// Options that mean something here, and how the query is read.
fn read_as(what: InArg, args: &SearchArgs) -> Result<CommitQuery> {
    let refused = |option: &str, hint: &str| {
        Err(OpError::new(
            format!("{option} means nothing with --in {}", what.name()),
            hint.to_owned(),
        )
        .into())
    };
    if args.explain {
        return refused("--explain", "leave it out");
    }
    Ok(match (what, args.mode) {
        (_, ModeArg::Regex) => CommitQuery::Regex,
        (InArg::Commits, ModeArg::Auto | ModeArg::Hybrid) => CommitQuery::Ranked(CommitMode::Hybrid),
        (InArg::Commits, ModeArg::Keyword) => CommitQuery::Ranked(CommitMode::Keyword),
        (InArg::Commits, ModeArg::Semantic) => CommitQuery::Ranked(CommitMode::Semantic),
        (InArg::Diffs, ModeArg::Auto) => CommitQuery::Literal,
        (InArg::Commits, ModeArg::Similar) => {
            return refused("--mode similar", "modes are auto, hybrid, semantic, keyword and regex");
        }
        (InArg::Diffs, _) => {
            return refused(
                "this mode",
                "the query is text as it stands, or with --mode regex a regular expression",
            );
        }
    })
}

fn told<T: serde::Serialize>(
    answer: &CommitsOut<T>,
    args: &SearchArgs,
    output: &mut Output,
    show: impl Fn(&T, &mut Output) -> Result<()>,
) -> Result<Found> {
    if output.json {
        output.json(answer)?;
    } else {
        for (number, result) in answer.results.iter().enumerate() {
            if number > 0 {
                output.line("")?;
            }
            show(result, output)?;
        }
        output.flush()?;
        output.incomplete(answer.provenance.incomplete_because())?;
        let is_paged = args.page.limit.is_some() || args.page.cursor.is_some() || answer.results.is_empty();
        if let (Some(cursor), true) = (&answer.next_cursor, is_paged) {
            output.remark(&format!("there is more: --cursor {cursor}"));
        }
    }
    Ok(if answer.results.is_empty() {
        Found::Nothing
    } else {
        Found::Something
    })
}

fn show_commit(commit: &CommitOut, facts: &str, output: &mut Output) -> Result<()> {
    let id = output.styled(PATH, &commit.commit[..ID_DIGITS.min(commit.commit.len())]);
    let day = commit.date.split('T').next().unwrap_or_default();
    let facts = output.styled(FAINT, &format!("{day} {}{facts}", one_line(&commit.author.name)));
    let subject = output.name(STRONG, &one_line(&commit.subject));
    Ok(output.line(&format!("{id} {facts} {subject}"))?)
}

fn show_message(message: &MessageOut, output: &mut Output) -> Result<()> {
    let facts = match message.changed_paths {
        1 => " 1 path".to_owned(),
        n_paths => format!(" {n_paths} paths"),
    };
    show_commit(&message.commit, &facts, output)?;
    for line in &message.lines {
        let number = output.styled(FAINT, &format!("{:>6}", line.line));
        output.line(&format!("{number} {}", sanitize(&line.text)))?;
    }
    Ok(())
}

fn show_diff(diff: &DiffOut, n_lines: usize, output: &mut Output) -> Result<()> {
    show_commit(&diff.commit, "", output)?;
    let from = diff.from_path.as_ref().map(|path| format!(" (was {path})"));
    let path = output.name(PATH, &format!("{}{}", diff.path, from.unwrap_or_default()));
    output.line(&path)?;
    let signed = |sign: char, lines: &'_ [LineOut]| -> Vec<String> {
        let line = |line: &LineOut| format!("{:>6} {sign}{}", line.line, sanitize(&line.text));
        lines.iter().map(line).collect()
    };
    let mut lines = signed('-', &diff.removed);
    lines.extend(signed('+', &diff.added));
    for line in lines.iter().take(n_lines) {
        output.line(line)?;
    }
    let n_left = diff.matching_lines.saturating_sub(lines.len().min(n_lines));
    if n_left > 0 {
        let more = output.styled(FAINT, &format!("       and {n_left} more lines"));
        output.line(&more)?;
    }
    Ok(())
}
