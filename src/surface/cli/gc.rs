//! `codescout gc`

use anyhow::Result;
use serde::Serialize;

use super::args::{GcArgs, Global};
use super::json::Hinted;
use super::progress::CliProgress;
use super::render::{Output, one_line};
use super::{Found, INTERRUPTED};
use crate::ingest::{Collected, KeptSnapshot, Occasion, Share, Survey};
use crate::sidecar::Pin;
use crate::surface::open::Workspace;

#[derive(Debug, Serialize)]
struct GcOut {
    repo: String,
    sidecar: String,
    dry_run: bool,
    #[serde(flatten)]
    causes: CausesOut,
    max_bytes: Option<u64>,
    over_budget: Vec<SnapshotOut>,
    fits: bool,
    rewrote: bool,
    segments_before: usize,
    segments_after: usize,
    bytes_before: u64,
    bytes_after: u64,
    freed_bytes: u64,
    waiting: ShareOut,
    took_ms: u64,
}

/// Bytes by cause: of `gc` and of `status`.
#[derive(Debug, Serialize)]
pub(super) struct CausesOut {
    kept: Vec<CauseOut>,
    dead_snapshots: ShareOut,
    dead_blobs: ShareOut,
    leftover_files: ShareOut,
    old_folders: ShareOut,
    history: ShareOut,
    deleted_files: ShareOut,
}

#[derive(Debug, Serialize)]
struct CauseOut {
    cause: &'static str,
    count: u64,
    bytes: u64,
}

#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct ShareOut {
    count: u64,
    bytes: u64,
}

#[derive(Debug, Serialize)]
struct SnapshotOut {
    cause: &'static str,
    name: String,
    tree: String,
    bytes: u64,
}

#[derive(Debug, Serialize)]
struct PinsOut {
    repo: String,
    pins: Vec<PinOut>,
}

#[derive(Debug, Serialize)]
struct PinOut {
    name: String,
    commit: Option<String>,
    tree: String,
    pinned_at: i64,
    /// Whether its snapshot is there.
    indexed: bool,
}

pub(super) fn run(workspace: &Workspace, global: &Global, args: &GcArgs, output: &mut Output) -> Result<Found> {
    if !args.pin.is_empty() || !args.unpin.is_empty() || args.pins {
        return change_pins(workspace, global, args, output);
    }
    let collected = match args.dry_run {
        true => workspace.survey()?.map(imagined),
        false => {
            let occasion = match args.aggressive {
                true => Occasion::Aggressive,
                false => Occasion::Asked,
            };
            workspace.collect(occasion, &CliProgress::new(global.quiet), &INTERRUPTED)?
        }
    };
    let collected = collected.unwrap_or_default();
    let options = workspace.config.collect_options();
    let survey = &collected.survey;
    let fits = match (args.dry_run, options.max_bytes) {
        (true, Some(max_bytes)) => survey.live_bytes() <= max_bytes,
        (true, None) => true,
        (false, _) => collected.fits,
    };
    let answer = GcOut {
        repo: repo(workspace),
        sidecar: workspace.sidecar_root().display().to_string(),
        dry_run: args.dry_run,
        causes: CausesOut::of(survey),
        max_bytes: options.max_bytes,
        over_budget: survey.over_budget.iter().map(SnapshotOut::of).collect(),
        fits: fits || collected == Collected::default(),
        rewrote: collected.rewrote,
        segments_before: collected.n_segments.0,
        segments_after: collected.n_segments.1,
        bytes_before: collected.bytes.0,
        bytes_after: collected.bytes.1,
        freed_bytes: collected.bytes.0.saturating_sub(collected.bytes.1),
        waiting: ShareOut::of(collected.waiting),
        took_ms: collected.elapsed.as_millis() as u64,
    };
    if output.json {
        output.json(&answer)?;
    } else {
        show(&answer, output)?;
    }
    if collected.interrupted {
        anyhow::bail!("interrupted; what is kept is whole");
    }
    Ok(Found::Something)
}

/// A survey as the outcome of a collection that changed nothing.
fn imagined(survey: Survey) -> Collected {
    let bytes = survey.in_use_bytes + survey.leftovers.bytes;
    Collected {
        bytes: (bytes, bytes),
        n_segments: (survey.n_segments, survey.n_segments),
        survey,
        ..Collected::default()
    }
}

fn repo(workspace: &Workspace) -> String {
    let repository = &workspace.repository;
    let root = repository.place();
    root.display().to_string()
}

impl CausesOut {
    pub(super) fn of(survey: &Survey) -> Self {
        let kept = survey.by_cause().into_iter();
        Self {
            kept: kept
                .map(|(cause, share)| CauseOut {
                    cause: cause.name(),
                    count: share.n,
                    bytes: share.bytes,
                })
                .collect(),
            dead_snapshots: ShareOut::of(survey.dead_snapshots),
            dead_blobs: ShareOut::of(survey.dead_blobs),
            leftover_files: ShareOut::of(survey.leftovers),
            old_folders: ShareOut::of(survey.old_folders),
            history: ShareOut::of(survey.history),
            deleted_files: ShareOut::of(survey.deleted_files),
        }
    }

    /// A line for each cause that has anything.
    pub(super) fn show(&self, output: &mut Output) -> Result<()> {
        for kept in &self.kept {
            line(
                output,
                &format!("kept by {}", kept.cause),
                kept.count,
                "snapshots",
                kept.bytes,
            )?;
        }
        for (name, share, what) in [
            ("kept by nothing", self.dead_snapshots, "snapshots"),
            ("in none of them", self.dead_blobs, "blobs"),
            ("left over", self.leftover_files, "files"),
            ("earlier formats", self.old_folders, "folders"),
            ("history", self.history, "commits"),
            ("deleted", self.deleted_files, "files"),
        ] {
            if share.count > 0 {
                line(output, name, share.count, what, share.bytes)?;
            }
        }
        Ok(())
    }
}

fn line(output: &mut Output, name: &str, count: u64, what: &str, bytes: u64) -> Result<()> {
    let megabytes = bytes as f64 / 1e6;
    output.line(&format!("{name:<17} {count:>7} {what:<9} {megabytes:>9.2} MB"))?;
    Ok(())
}

impl ShareOut {
    fn of(share: Share) -> Self {
        Self {
            count: share.n,
            bytes: share.bytes,
        }
    }
}

impl SnapshotOut {
    fn of(snapshot: &KeptSnapshot) -> Self {
        Self {
            cause: snapshot.keep.cause.name(),
            name: snapshot.keep.name.clone(),
            tree: snapshot.keep.tree.to_string(),
            bytes: snapshot.bytes,
        }
    }
}

fn show(answer: &GcOut, output: &mut Output) -> Result<()> {
    answer.causes.show(output)?;
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
    if answer.dry_run {
        output.line("nothing was changed")?;
        return Ok(());
    }
    let rewrote = match answer.rewrote {
        true => format!(
            ", {} segments copied into {}",
            answer.segments_before, answer.segments_after
        ),
        false => String::new(),
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
            return Err(Hinted {
                message: format!("{reference:?} is not pinned"),
                hint: "codescout gc --pins shows what is".to_owned(),
            }
            .into());
        }
    }
    let progress = CliProgress::new(global.quiet);
    for reference in &args.pin {
        workspace.pin(reference, &progress, &INTERRUPTED)?;
    }
    let pins = workspace.pins()?;
    let out = |pin: &Pin| PinOut {
        name: pin.name.clone(),
        commit: pin.commit.map(|commit| commit.to_string()),
        tree: pin.tree.to_string(),
        pinned_at: pin.pinned_at,
        indexed: workspace.stored_tree(pin.tree).is_some(),
    };
    let answer = PinsOut {
        repo: repo(workspace),
        pins: pins.iter().map(out).collect(),
    };
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
