//! `codescout history`

use std::time::Instant;

use anyhow::Result;
use serde::Serialize;

use super::args::{Global, HistoryArgs};
use super::json::{OpError, ProvenanceOut};
use super::progress::CliProgress;
use super::render::{FAINT, Output, PATH, STRONG, one_line, sanitize};
use super::{Found, INTERRUPTED};
use crate::history::Reading;
use crate::ingest::{Progress, Stage};
use crate::ops::{CandidateOut, HistoryBody, HistoryOp, HistoryQuestion, SymbolChangeOut, Targets, history, named};
use crate::session::OpenedHistory;
use crate::session::Workspace;

#[derive(Debug, Serialize)]
struct HistoryOut {
    #[serde(flatten)]
    provenance: ProvenanceOut,
    #[serde(flatten)]
    body: HistoryBody,
    took_ms: f64,
}

pub(super) fn run(workspace: Workspace, global: &Global, args: &HistoryArgs, output: &mut Output) -> Result<Found> {
    let progress = CliProgress::new(global.quiet);
    let opened = workspace.history(&global.reference, &progress, &INTERRUPTED)?;
    if let Some(query) = prose(args, &opened) {
        let is_filtered = args.since.is_some() || args.until.is_some() || args.author.is_some();
        if is_filtered {
            return Err(OpError::new(
                "--since, --until and --author mean nothing for a description of what is gone",
                "leave them out, or name a folder",
            )
            .into());
        }
        return super::search::run_gone(workspace, global, query, args.limit, output);
    }
    let started = Instant::now();
    let typed = args.target.as_deref().unwrap_or_default();
    let workspace = &workspace;
    let (body, n_dirty) = with_targets(workspace, global, &opened, |targets| {
        let target = if args.deleted {
            targets.find_gone(typed)?
        } else {
            targets.find(typed)?
        };
        history(targets, target, &question(args))
    })?;
    let incomplete = body.incomplete.clone();
    let provenance = ProvenanceOut::without_view(workspace, &global.reference, opened.target, n_dirty, incomplete);
    let has_cochange = body.cochange.as_ref().is_some_and(|found| !found.files.is_empty());
    let is_nothing = body.total == 0 && !has_cochange && body.candidates.is_empty();
    if output.json {
        output.json(&HistoryOut {
            provenance,
            body,
            took_ms: started.elapsed().as_secs_f64() * 1e3,
        })?
    } else {
        show(&body, &provenance, args, output)?
    }
    Ok(if is_nothing { Found::Nothing } else { Found::Something })
}

/// Asks about the past with what is needed to tell what was typed; also tells how many files are not committed.
pub(super) fn with_targets<T>(
    workspace: &Workspace,
    global: &Global,
    opened: &OpenedHistory,
    ask: impl FnOnce(&Targets<'_>) -> Result<T>,
) -> Result<(T, usize)> {
    let progress = CliProgress::new(global.quiet);
    let uncommitted = workspace.uncommitted(&global.reference, &INTERRUPTED)?;
    let body = ask(&Targets {
        workspace,
        opened,
        uncommitted: &uncommitted,
        reference: &global.reference,
        definitions: &|name| {
            let opened = workspace.view(&global.reference, &progress, &INTERRUPTED)?;
            named(workspace, &opened.view, name)
        },
        visibility: crate::session::Visibility::All,
        reading: Reading {
            deadline: None,
            interrupt: &INTERRUPTED,
            begin: &|n_changes| progress.begin(Stage::Tracing, n_changes),
            advance: &|| progress.advance(0),
        },
    });
    progress.end();
    let body = body?;
    Ok((body, uncommitted.len()))
}

/// What is gone, where it is described in words instead of named.
fn prose<'a>(args: &'a HistoryArgs, opened: &OpenedHistory) -> Option<&'a str> {
    let target = args.target.as_deref().filter(|_| args.deleted)?.to_str()?;
    let is_path = || !opened.history.paths_from(target.as_bytes()).is_empty();
    (target.trim().contains(char::is_whitespace) && !is_path()).then_some(target)
}

fn question(args: &HistoryArgs) -> HistoryQuestion {
    HistoryQuestion {
        op: match (args.introduced, args.last_seen, args.deleted, args.cochange) {
            (true, ..) => HistoryOp::Introduced,
            (_, true, ..) => HistoryOp::LastSeen,
            (_, _, true, _) => HistoryOp::Deleted,
            (.., true) => HistoryOp::Cochange,
            _ => HistoryOp::Log,
        },
        since: args.since.clone(),
        until: args.until.clone(),
        author: args.author.clone(),
        skips_formatting: args.no_formatting,
        has_diff: args.diff,
        skip: 0,
        limit: args.limit,
    }
}

fn show(answer: &HistoryBody, provenance: &ProvenanceOut, args: &HistoryArgs, output: &mut Output) -> Result<()> {
    for (number, entry) in answer.results.iter().enumerate() {
        let before = number.checked_sub(1).and_then(|before| answer.results.get(before));
        if let Some(heading) = entry.heading(before) {
            output.line(&one_line(&heading))?;
        }
        let when = entry
            .date
            .as_deref()
            .map_or("not committed", |date| &date[..date.len().min(10)]);
        let commit = entry.commit.as_deref().map_or("----------", |commit| &commit[..10]);
        let who = entry.author.as_ref().map_or("", |author| author.name.as_str());
        let line = format!(
            "{} {} {} {}",
            output.styled(STRONG, commit),
            output.styled(FAINT, when),
            output.name(FAINT, who),
            one_line(entry.subject.as_deref().unwrap_or_default())
        );
        output.line(line.trim_end())?;
        if let Some(symbol) = &entry.symbol {
            show_symbol(symbol, output)?;
        }
        for change in &entry.changes {
            let from = change
                .from_path
                .as_deref()
                .map(|from| format!(" from {}", one_line(from)));
            let similarity = match change.similarity {
                Some(percent) if percent < 100 => format!(" ({percent} % the same)"),
                _ => String::new(),
            };
            let path = output.name(PATH, &change.path);
            output.line(&format!(
                "    {} {path}{}{similarity}",
                change.kind,
                from.unwrap_or_default()
            ))?;
            if let Some(diff) = &change.diff {
                output.put(&sanitize(diff))?;
            }
        }
    }
    if let Some(last) = &answer.last_seen {
        output.line(&last.sentence(10))?;
    }
    if let Some(cochange) = &answer.cochange {
        output.line(&format!("in {} commits:", cochange.commits))?;
        for file in &cochange.files {
            let path = output.name(PATH, &file.path);
            output.line(&format!(
                "{:>6} {:>5.1} % {path}",
                file.support,
                file.confidence * 100.0
            ))?;
        }
    }
    output.flush()?;
    show_candidates(&answer.candidates, output)?;
    show_nothing(answer, args, output);
    if answer.results.len() < answer.total && !args.last_seen && answer.cochange.is_none() {
        output.remark(&format!("{} of {}; more: -n 0", answer.results.len(), answer.total));
    }
    for why in provenance.incomplete_because() {
        output.remark(why);
    }
    Ok(())
}

/// Why there is nothing to tell, and what the name that was asked for became.
fn show_nothing(answer: &HistoryBody, args: &HistoryArgs, output: &mut Output) {
    let target = &answer.target;
    if let Some(was) = &target.was {
        output.remark(&format!("{was:?} is now {}", one_line(&target.path)));
    }
    let near = answer.near.join(" or ");
    let is_empty = answer.total == 0 && answer.last_seen.is_none() && answer.candidates.is_empty();
    let is_nothing = is_empty && answer.cochange.as_ref().is_none_or(|found| found.files.is_empty());
    match target.kind {
        "unknown" if near.is_empty() => output.remark(&answer.nowhere()),
        "unknown" => output.remark(&format!("{}; did you mean {near}?", answer.nowhere())),
        "symbol" if args.deleted && is_nothing => {
            let now = if near.is_empty() {
                String::new()
            } else {
                format!("; it is now {}", one_line(&near))
            };
            output.remark(&format!("nothing called {:?} was taken away{now}", target.path));
        }
        _ if args.deleted && is_nothing => output.remark("no file was taken away"),
        _ if is_nothing => output.remark("no commit fits"),
        _ => {}
    }
}

/// What a commit did to a definition.
fn show_symbol(symbol: &SymbolChangeOut, output: &mut Output) -> Result<()> {
    let place = match symbol.new.as_ref().or(symbol.old.as_ref()) {
        Some(version) => format!(":{}-{}", version.start_line, version.end_line),
        None => String::new(),
    };
    let from = symbol.from.as_deref().map(|from| format!(" from {}", one_line(from)));
    let doubt = if symbol.confidence < 0.995 && symbol.from.is_some() {
        output.styled(FAINT, &format!(" ({:.0} % sure)", symbol.confidence * 100.0))
    } else {
        String::new()
    };
    let id = output.name(PATH, &symbol.id);
    output.line(&format!(
        "    {} {id}{place}{}{doubt}",
        symbol.events.join(", "),
        from.unwrap_or_default()
    ))?;
    if let Some(diff) = &symbol.diff {
        output.put(&sanitize(diff))?;
    }
    Ok(())
}

/// The definitions that a name may mean.
pub(super) fn show_candidates(candidates: &[CandidateOut], output: &mut Output) -> Result<()> {
    if candidates.is_empty() {
        return Ok(());
    }
    output.remark("the name means several definitions; ask for one by its id:");
    for candidate in candidates {
        let id = output.name(PATH, &candidate.id);
        output.line(&format!("{id} {} line {}", candidate.kind, candidate.line))?;
    }
    Ok(output.flush()?)
}
