//! `codescout blame`

use std::time::Instant;

use anyhow::Result;
use serde::Serialize;

use super::args::{self, BlameArgs, Global};
use super::history::{show_candidates, with_targets};
use super::json::ProvenanceOut;
use super::progress::CliProgress;
use super::render::{FAINT, Output, PATH, STRONG, one_line};
use super::{Found, INTERRUPTED};
use crate::ops::{BlameBody, BlameBy, BlameQuestion, blame, count};
use crate::session::Workspace;

#[derive(Debug, Serialize)]
struct BlameOut {
    #[serde(flatten)]
    provenance: ProvenanceOut,
    #[serde(flatten)]
    body: BlameBody,
    took_ms: f64,
}

pub(super) fn run(workspace: &Workspace, global: &Global, args: &BlameArgs, output: &mut Output) -> Result<Found> {
    let progress = CliProgress::new(global.quiet);
    let opened = workspace.history(&global.reference, &progress, &INTERRUPTED)?;
    let started = Instant::now();
    let (body, n_dirty) = with_targets(workspace, global, &opened, |targets| {
        blame(targets, targets.find(&args.target)?, &question(args))
    })?;
    let incomplete = [opened.notes.clone(), body.incomplete.clone()].concat();
    let provenance = ProvenanceOut::without_view(workspace, &global.reference, opened.target, n_dirty, incomplete);
    let is_empty = |n: Option<usize>| n.unwrap_or(0) == 0;
    let is_nothing = is_empty(body.lines.as_ref().map(Vec::len))
        && is_empty(body.symbols.as_ref().map(Vec::len))
        && is_empty(body.owners.as_ref().map(Vec::len))
        && body.candidates.is_empty();
    if output.json {
        output.json(&BlameOut {
            provenance,
            body,
            took_ms: started.elapsed().as_secs_f64() * 1e3,
        })?
    } else {
        show(&body, &provenance, output)?
    }
    Ok(if is_nothing { Found::Nothing } else { Found::Something })
}

fn question(args: &BlameArgs) -> BlameQuestion {
    BlameQuestion {
        by: args.by.map(|by| match by {
            args::BlameBy::Symbol => BlameBy::Symbol,
            args::BlameBy::Line => BlameBy::Line,
            args::BlameBy::Owner => BlameBy::Owner,
        }),
        counts_moves: args.all_changes,
        ignores_blanks: args.ignore_whitespace,
        follows_moves: args.moved,
        follows_copies: args.copied,
        ignored: args.ignore_revs.clone(),
        ignore_files: args.ignore_revs_files.clone(),
    }
}

fn show(answer: &BlameBody, provenance: &ProvenanceOut, output: &mut Output) -> Result<()> {
    let day = |date: &str| date[..date.len().min(10)].to_owned();
    for line in answer.lines.iter().flatten() {
        let (commit, when, who) = match &line.commit {
            Some(commit) => (&commit.commit[..10], day(&commit.date), commit.author.name.as_str()),
            None => ("----------", "not committed".to_owned(), ""),
        };
        let is_end = line.commit.as_ref().is_some_and(|commit| commit.boundary);
        let commit = format!("{}{}", if is_end { "^" } else { "" }, output.styled(STRONG, commit));
        let facts = output.name(FAINT, format!("{when} {who}").trim_end());
        let from = line.from_path.as_deref().map(|path| output.name(PATH, path));
        let from = from.map(|path| format!("{path} ")).unwrap_or_default();
        output.line(&format!(
            "{commit} {from}{facts} {:>5}: {}",
            line.line,
            one_line(&line.text)
        ))?;
    }
    if let Some(basis) = answer.basis_sentence() {
        output.line(&output.styled(FAINT, basis))?;
    }
    for symbol in answer.symbols.iter().flatten() {
        let place = output.styled(FAINT, &format!("{}-{}", symbol.start_line, symbol.end_line));
        output.line(&format!("{} {} {place}", symbol.kind, output.name(PATH, &symbol.name)))?;
        let last = match &symbol.last {
            Some(last) => format!(
                "{} {} {} {}",
                &last.commit[..10],
                day(&last.date),
                one_line(&last.author.name),
                one_line(&last.subject)
            ),
            None => symbol.not_committed(),
        };
        output.line(&format!("    {last}"))?;
        let owners = symbol
            .owners
            .iter()
            .take(3)
            .map(|owner| format!("{} {:.0} %", one_line(&owner.name), owner.share * 100.0));
        let owners = owners.collect::<Vec<_>>().join(", ");
        if symbol.commits > 0 {
            output.line(&format!("    {}; {owners}", count(symbol.commits, "commit")))?;
        }
    }
    for owner in answer.owners.iter().flatten() {
        let name = output.name(STRONG, &format!("{} <{}>", owner.name, owner.email));
        output.line(&format!(
            "{:>6} {:>5.1} % {name} {}, last {}",
            owner.count,
            owner.share * 100.0,
            count(owner.commits, "commit"),
            day(&owner.last)
        ))?;
    }
    output.flush()?;
    show_candidates(&answer.candidates, output)?;
    for note in &answer.notes {
        output.remark(note);
    }
    for why in provenance.incomplete_because() {
        output.remark(why);
    }
    Ok(())
}
