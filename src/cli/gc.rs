//! `codescout gc`

use anyhow::{Context as _, Result};

use super::args::{GcArgs, Global};
use super::json::OpError;
use super::progress::CliProgress;
use super::render::{Output, one_line};
use super::{Found, INTERRUPTED};
use crate::ingest::Occasion;
use crate::ops::{CausesOut, GcOut, collected, pinned, unshared};
use crate::session::Workspace;

pub(super) fn run(workspace: &Workspace, global: &Global, args: &GcArgs, output: &mut Output) -> Result<Found> {
    if !args.pin.is_empty() || !args.unpin.is_empty() || args.pins {
        return change_pins(workspace, global, args, output);
    }
    let occasion = if args.aggressive {
        Occasion::Aggressive
    } else {
        Occasion::Asked
    };
    let progress = CliProgress::new(global.quiet);
    let (mut answer, is_interrupted) = collected(workspace, occasion, args.dry_run, &progress, &INTERRUPTED)?;
    if args.qdrant && !is_interrupted {
        let shared = unshared(workspace, args.dry_run, &progress, &INTERRUPTED)?;
        answer.shared = Some(shared.context("no Qdrant is set: codescout config set qdrant.server ADDRESS")?);
    }
    if output.json {
        output.json(&answer)?;
    } else {
        show(&answer, output)?;
    }
    if is_interrupted {
        anyhow::bail!("interrupted; what is kept is whole");
    }
    Ok(Found::Something)
}

/// A line for each cause that has anything.
pub(super) fn show_causes(causes: &CausesOut, output: &mut Output) -> Result<()> {
    for (name, count, what, bytes) in causes.lines() {
        line(output, &name, count, what, bytes)?;
    }
    Ok(())
}

fn line(output: &mut Output, name: &str, count: u64, what: &str, bytes: u64) -> Result<()> {
    let megabytes = bytes as f64 / 1e6;
    output.line(&format!("{name:<17} {count:>7} {what:<9} {megabytes:>9.2} MB"))?;
    Ok(())
}

fn show(answer: &GcOut, output: &mut Output) -> Result<()> {
    show_causes(&answer.causes, output)?;
    let megabytes = |n_bytes: u64| n_bytes as f64 / 1e6;
    for snapshot in &answer.over_budget {
        output.line(&format!(
            "over the limit    {} {} ({})",
            snapshot.cause,
            one_line(&snapshot.name),
            &snapshot.tree[..12]
        ))?;
    }
    if let (false, Some(max_bytes)) = (answer.fits, answer.max_bytes) {
        output.line(&format!(
            "cannot fit into {:.2} MB: what is checked out and what is pinned stays in any case",
            megabytes(max_bytes)
        ))?;
    }
    if answer.causes.dead_blobs.count > 0 && !answer.rewrote {
        output.line("such blobs go when they are gc.dead_percent of the index, or with: codescout gc --aggressive")?;
    }
    if let Some(shared) = &answer.shared {
        let what = if shared.removed { "were removed from" } else { "are at" };
        let (count, server) = (shared.count, &shared.server);
        output.line(&format!(
            "shared            {count:>7} vectors of chunks that are not kept {what} {server}"
        ))?;
        if let Some(why) = &shared.stopped_because {
            output.remark(&format!("vectors that are shared: {why}"));
        }
    }
    if answer.dry_run {
        output.line("nothing was changed")?;
        return Ok(());
    }
    let rewrote = if answer.rewrote {
        format!(
            ", {} segments copied into {}",
            answer.segments_before, answer.segments_after
        )
    } else {
        String::new()
    };
    output.line(&format!(
        "{:.2} MB before, {:.2} MB now, {:.2} MB freed in {:.2} s{rewrote}",
        megabytes(answer.bytes_before),
        megabytes(answer.bytes_after),
        megabytes(answer.freed_bytes),
        answer.took_ms as f64 / 1e3,
    ))?;
    Ok(())
}

fn change_pins(workspace: &Workspace, global: &Global, args: &GcArgs, output: &mut Output) -> Result<Found> {
    for reference in &args.unpin {
        if workspace.unpin(reference, &INTERRUPTED)? == 0 {
            return Err(OpError::new(
                format!("{reference:?} is not pinned"),
                "codescout gc --pins shows what is",
            )
            .into());
        }
    }
    let progress = CliProgress::new(global.quiet);
    for reference in &args.pin {
        workspace.pin(reference, &progress, &INTERRUPTED)?;
    }
    let answer = pinned(workspace)?;
    if output.json {
        output.json(&answer)?;
        return Ok(Found::Something);
    }
    for pin in &answer.pins {
        let commit = pin.commit.as_deref().map_or("-", |commit| &commit[..12]);
        let state = if pin.indexed { "" } else { " (not indexed)" };
        output.line(&format!(
            "{commit:<12} {} {}{state}",
            &pin.tree[..12],
            one_line(&pin.name)
        ))?;
    }
    Ok(Found::Something)
}
