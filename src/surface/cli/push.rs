//! `codescout push`, `codescout pull`

use std::time::Instant;

use anyhow::{Result, bail};
use serde::Serialize;

use super::args::{Global, PullArgs, PushArgs};
use super::export::read_key;
use super::import::{megabytes, trust_of};
use super::json::Hinted;
use super::progress::CliProgress;
use super::render::Output;
use super::{Found, INTERRUPTED};
use crate::git::{BoundError, Bounds, ExchangeError};
use crate::ingest::Audit;
use crate::surface::exchange::{Purpose, Remote};
use crate::surface::open::Workspace;
use crate::surface::share::ImportOptions;

/// What a push may bring here, which are lists, and all that is there if the remote cannot leave it out.
const MAX_BYTES: u64 = 2 << 30;
/// What to do if it is too much.
const MORE: &str = "--max-size lets more come: 8G, 500M";

#[derive(Debug, Serialize)]
struct PushOut {
    remote: String,
    dry_run: bool,
    pushed: bool,
    blobs: usize,
    bytes: u64,
    parts_before: usize,
    parts_after: usize,
    took_ms: u64,
}

#[derive(Debug, Serialize)]
struct PullOut {
    remote: String,
    dry_run: bool,
    pulled: bool,
    parts: usize,
    parts_there: usize,
    bytes: u64,
    new_blobs: usize,
    new_chunks: usize,
    absent_blobs: usize,
    compared_blobs: usize,
    took_ms: u64,
}

pub(super) fn run(workspace: &Workspace, global: &Global, args: &PushArgs, output: &mut Output) -> Result<Found> {
    let started = Instant::now();
    let key = args.sign.as_deref().map(read_key).transpose()?;
    let revisions = match args.revisions.as_slice() {
        [] => vec![global.reference.clone()],
        some => some.to_vec(),
    };
    let known = workspace.known(&revisions, &CliProgress::new(global.quiet), &INTERRUPTED)?;
    let purpose = match args.replace {
        true => Purpose::Replace,
        false => Purpose::Add,
    };
    let mut remote = Remote::open(workspace, &args.remote, purpose, bounds(MAX_BYTES))?;
    let mut plan = remote.plan_push(workspace, &known, key.as_ref())?;
    let (n_blobs, n_bytes) = plan.cost();
    let what = format!(
        "{n_blobs} blobs in {:.1} MB to {}",
        megabytes(n_bytes),
        remote.address()
    );
    let goes = !plan.is_empty() && !args.dry_run && may(&format!("Push the index of {what}?"), args.yes, output)?;
    if goes {
        plan = remote.push_until_done(plan, workspace, &known, key.as_ref())?;
    }
    let (blobs, bytes) = plan.cost();
    let answer = PushOut {
        remote: remote.address(),
        dry_run: args.dry_run,
        pushed: goes,
        blobs,
        bytes,
        parts_before: plan.n_parts.0,
        parts_after: plan.n_parts.1,
        took_ms: started.elapsed().as_millis() as u64,
    };
    if output.json {
        output.json(&answer)?;
    } else {
        output.line(&match (plan.is_empty(), goes) {
            (true, false) => format!("{} has all of it", answer.remote),
            (_, true) => format!("pushed the index of {what}; parts there now: {}", answer.parts_after),
            (_, false) => format!("would push the index of {what}"),
        })?;
    }
    Ok(Found::Something)
}

pub(super) fn run_pull(workspace: &Workspace, global: &Global, args: &PullArgs, output: &mut Output) -> Result<Found> {
    let started = Instant::now();
    let options = ImportOptions {
        trust: trust_of(args.trust.as_deref())?,
        is_own: false,
        audit: match args.compare_all {
            true => Audit::All,
            false => Audit::Sample,
        },
    };
    let remote = Remote::open(workspace, &args.remote, Purpose::Pull, bounds(args.max_size)).map_err(hinted)?;
    let plan = remote.plan_pull(workspace)?;
    let (parts, bytes) = plan.cost();
    if bytes > args.max_size {
        let message = format!(
            "{} has {parts} parts with {bytes} bytes, {} are allowed",
            remote.address(),
            args.max_size
        );
        return Err(Hinted {
            message,
            hint: MORE.to_owned(),
        }
        .into());
    }
    let what = format!(
        "{parts} part{} with {:.1} MB from {}",
        if parts == 1 { "" } else { "s" },
        megabytes(bytes),
        remote.address()
    );
    let goes = parts > 0 && !args.dry_run && may(&format!("Pull {what}?"), args.yes, output)?;
    let progress = CliProgress::new(global.quiet);
    let mut answer = PullOut {
        remote: remote.address(),
        dry_run: args.dry_run,
        pulled: goes,
        parts,
        parts_there: remote.n_parts(),
        bytes,
        new_blobs: 0,
        new_chunks: 0,
        absent_blobs: 0,
        compared_blobs: 0,
        took_ms: 0,
    };
    if goes {
        for taken in remote
            .pull(&plan, workspace, options, &progress, &INTERRUPTED)
            .map_err(hinted)?
        {
            answer.new_blobs += taken.imported.n_blobs;
            answer.new_chunks += taken.imported.n_docs;
            answer.absent_blobs += taken.imported.n_absent_blobs;
            answer.compared_blobs += taken.imported.n_audited_blobs;
        }
        // What is left is built, so that the next question finds everything.
        workspace.ingest_revision(&global.reference, &progress, &INTERRUPTED)?;
    }
    answer.took_ms = started.elapsed().as_millis() as u64;
    if output.json {
        output.json(&answer)?;
    } else {
        output.line(&match (parts, goes) {
            (0, _) if answer.parts_there == 0 => {
                format!("{} has no index for this build and these settings", answer.remote)
            }
            (0, _) => format!("{} has nothing that is not known here", answer.remote),
            (_, true) => format!(
                "pulled {what}: {} new blobs, {} new chunks",
                answer.new_blobs, answer.new_chunks
            ),
            (_, false) => format!("would pull {what}"),
        })?;
    }
    Ok(Found::Something)
}

fn bounds(max_bytes: u64) -> Bounds<'static> {
    Bounds {
        max_bytes,
        interrupt: &INTERRUPTED,
    }
}

fn hinted(error: anyhow::Error) -> anyhow::Error {
    match error.downcast_ref() {
        Some(ExchangeError::Bound {
            source: BoundError::TooMuch { .. },
            ..
        }) => Hinted {
            message: format!("{error:#}"),
            hint: MORE.to_owned(),
        }
        .into(),
        _ => error,
    }
}

/// Whether what was shown may be done.
fn may(question: &str, yes: bool, output: &mut Output) -> Result<bool> {
    if yes {
        return Ok(true);
    }
    if output.json || !output.can_ask() {
        bail!("{question} Say --yes, or --dry-run to see what would be done");
    }
    Ok(output.ask(question)?)
}
