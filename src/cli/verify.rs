//! `codescout verify`

use std::time::{Duration, Instant};

use anyhow::Result;

use super::args::{Global, VerifyArgs};
use super::progress::CliProgress;
use super::render::{Output, one_line};
use super::{Found, INTERRUPTED};
use crate::ingest::{Depth, Limits};
use crate::ops::{DerivedOut, LooseOut, VerifyOut, verified};
use crate::session::Workspace;

pub(super) fn run(workspace: &Workspace, global: &Global, args: &VerifyArgs, output: &mut Output) -> Result<Found> {
    let began = Instant::now();
    let progress = CliProgress::new(global.quiet);
    let depth = Depth {
        from_blobs: args.deep || args.sample.is_some(),
        sample: args.sample,
    };
    let limits = Limits {
        interrupt: &INTERRUPTED,
        deadline: args.max_duration.map(|seconds| began + Duration::from_secs(seconds)),
    };
    let mut answer = verified(workspace, depth, args.repair, &progress, limits)?;
    answer.took_ms = began.elapsed().as_millis() as u64;
    if output.json {
        output.json(&answer)?;
    } else {
        show(&answer, output)?;
    }
    Ok(match answer.health {
        "none" | "sound" | "partial" => Found::Something,
        "unfinished" => Found::Unfinished,
        _ => Found::Nothing,
    })
}

fn show(answer: &VerifyOut, output: &mut Output) -> Result<()> {
    if answer.health == "none" {
        output.line(&format!("nothing is indexed at {}", one_line(&answer.sidecar)))?;
        return Ok(());
    }
    let checked = &answer.checked;
    output.line(&format!(
        "read        {} files, {:.1} MB: {} segments, {} blobs, {} chunks, {} snapshots{}",
        checked.files,
        checked.bytes as f64 / 1e6,
        checked.segments,
        checked.blobs,
        checked.chunks,
        checked.snapshots,
        match checked.commits {
            0 => String::new(),
            n_commits => format!(", history of {n_commits} commits"),
        }
    ))?;
    if checked.not_checked_files > 0 {
        output.line(&format!("not read    {} files: time was up", checked.not_checked_files))?;
    }
    if let Some(derived) = &answer.from_blobs {
        show_derived(derived, output)?;
    }
    for finding in &answer.damaged {
        output.line(&format!(
            "damaged     {}: {}",
            one_line(&finding.file),
            one_line(&finding.what)
        ))?;
    }
    if !answer.leftovers.is_empty() {
        let n_bytes: u64 = answer.leftovers.iter().map(|loose| loose.bytes).sum();
        output.line(&format!(
            "leftovers   {} files, {:.1} MB, that nothing needs",
            answer.leftovers.len(),
            n_bytes as f64 / 1e6
        ))?;
    }
    show_unknown(&answer.unknown, output)?;
    if let Some(repair) = &answer.repair {
        let lost = match repair.lost_snapshots {
            0 => String::new(),
            n_lost => format!(", {n_lost} of trees that git does not have any more are lost"),
        };
        output.line(&format!(
            "repaired    {} files set aside, {} snapshots made again{lost}",
            repair.set_aside_files, repair.rebuilt_snapshots
        ))?;
        for left in &repair.left {
            output.line(&format!("left        {left}"))?;
        }
    }
    output.line(match (answer.health, &answer.repair) {
        ("sound", _) => "all is well",
        ("partial", _) => "no damage in what was looked at; not everything was: without --max-duration it is",
        ("repaired", _) if answer.is_seen_shallowly => {
            "mended; what was written is whole: codescout verify --deep compares it with git again"
        }
        ("repaired", _) => "all is well again",
        ("unfinished", _) => "no damage is left, but not everything that was there is made again",
        (_, Some(_)) => "damaged again: is the disk failing? CODESCOUT_SIDECAR keeps the index elsewhere",
        _ => "damaged: codescout verify --repair makes it again from git",
    })?;
    Ok(())
}

fn show_derived(derived: &DerivedOut, output: &mut Output) -> Result<()> {
    output.line(&format!(
        "made again  {} blobs, {} chunks with their words and vectors; {} snapshots listed again",
        derived.blobs, derived.chunks, derived.snapshots
    ))?;
    for (n, what) in [
        (
            derived.not_in_git_blobs,
            "blobs are not in git any more: nothing to compare them with",
        ),
        (
            derived.not_in_git_trees,
            "snapshots are of trees that are not in git any more",
        ),
        (derived.not_checked_blobs, "blobs were not looked at"),
        (derived.not_checked_snapshots, "snapshots were not looked at"),
    ] {
        if n > 0 {
            output.line(&format!("            {n} {what}"))?;
        }
    }
    Ok(())
}

/// More than this many are only counted.
const MAX_SHOWN: usize = 10;

fn show_unknown(files: &[LooseOut], output: &mut Output) -> Result<()> {
    for loose in files.iter().take(MAX_SHOWN) {
        output.line(&format!("unknown     {}, {} bytes", one_line(&loose.file), loose.bytes))?;
    }
    if let Some(n_more) = files.len().checked_sub(MAX_SHOWN).filter(|&n_more| n_more > 0) {
        output.line(&format!("            and {n_more} more"))?;
    }
    Ok(())
}
