//! What the sidecar keeps and why, and what a collection throws away.

use std::sync::atomic::AtomicBool;

use anyhow::Result;
use serde::Serialize;

use super::sink::Sink;
use crate::ingest::{Collected, KeptSnapshot, Occasion, Progress, Share, Survey};
use crate::session::Workspace;
use crate::sidecar::Pin;

/// What a collection has done, or would do.
#[derive(Debug, Serialize)]
pub(crate) struct GcOut {
    pub(crate) repo: String,
    pub(crate) sidecar: String,
    pub(crate) dry_run: bool,
    #[serde(flatten)]
    pub(crate) causes: CausesOut,
    pub(crate) max_bytes: Option<u64>,
    pub(crate) over_budget: Vec<SnapshotOut>,
    pub(crate) fits: bool,
    pub(crate) rewrote: bool,
    pub(crate) segments_before: usize,
    pub(crate) segments_after: usize,
    pub(crate) bytes_before: u64,
    pub(crate) bytes_after: u64,
    pub(crate) freed_bytes: u64,
    pub(crate) waiting: ShareOut,
    pub(crate) took_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) shared: Option<UnsharedOut>,
}

/// Vectors that are shared of chunks that are not kept any more.
#[derive(Debug, Serialize)]
pub(crate) struct UnsharedOut {
    pub(crate) server: String,
    pub(crate) count: usize,
    /// Whether they were removed.
    pub(crate) removed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) stopped_because: Option<String>,
}

/// Removes such vectors, or counts them; `None` if none are shared.
pub(crate) fn unshared(
    workspace: &Workspace,
    is_dry_run: bool,
    progress: &dyn Progress,
    interrupt: &AtomicBool,
) -> Result<Option<UnsharedOut>> {
    let counted = if is_dry_run {
        workspace.gone_but_shared()?.map(|count| (count, None))
    } else {
        workspace.remove_gone(progress, interrupt)?
    };
    let told = counted.zip(workspace.sharing_host());
    Ok(told.map(|((count, stopped_because), server)| UnsharedOut {
        server,
        count,
        removed: !is_dry_run && stopped_because.is_none(),
        stopped_because,
    }))
}

/// Bytes by cause: of `gc` and of `status`.
#[derive(Debug, Serialize)]
pub(crate) struct CausesOut {
    pub(crate) kept: Vec<CauseOut>,
    pub(crate) dead_snapshots: ShareOut,
    pub(crate) dead_blobs: ShareOut,
    pub(crate) leftover_files: ShareOut,
    pub(crate) old_folders: ShareOut,
    pub(crate) history: ShareOut,
    pub(crate) deleted_files: ShareOut,
}

#[derive(Debug, Serialize)]
pub(crate) struct CauseOut {
    pub(crate) cause: &'static str,
    pub(crate) count: u64,
    pub(crate) bytes: u64,
}

#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct ShareOut {
    pub(crate) count: u64,
    pub(crate) bytes: u64,
}

#[derive(Debug, Serialize)]
pub(crate) struct SnapshotOut {
    pub(crate) cause: &'static str,
    pub(crate) name: String,
    pub(crate) tree: String,
    pub(crate) bytes: u64,
}

#[derive(Debug, Serialize)]
pub(crate) struct PinsOut {
    pub(crate) repo: String,
    pub(crate) pins: Vec<PinOut>,
}

#[derive(Debug, Serialize)]
pub(crate) struct PinOut {
    pub(crate) name: String,
    pub(crate) commit: Option<String>,
    pub(crate) tree: String,
    pub(crate) pinned_at: i64,
    /// Whether its snapshot is there.
    pub(crate) indexed: bool,
}

/// Throws away what nothing keeps, or looks what that would be; whether it was stopped before its end.
pub(crate) fn collected(
    workspace: &Workspace,
    occasion: Occasion<'_>,
    is_dry_run: bool,
    progress: &dyn Progress,
    interrupt: &AtomicBool,
) -> Result<(GcOut, bool)> {
    let collected = if is_dry_run {
        workspace.survey()?.map(imagined)
    } else {
        workspace.collect(occasion, progress, interrupt)?
    };
    let collected = collected.unwrap_or_default();
    let options = workspace.config.collect_options();
    let survey = &collected.survey;
    let fits = match (is_dry_run, options.max_bytes) {
        (true, Some(max_bytes)) => survey.live_bytes() <= max_bytes,
        (true, None) => true,
        (false, _) => collected.fits,
    };
    let answer = GcOut {
        repo: repo(workspace),
        sidecar: workspace.sidecar_root().display().to_string(),
        dry_run: is_dry_run,
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
        shared: None,
    };
    Ok((answer, collected.interrupted))
}

/// What is pinned.
pub(crate) fn pinned(workspace: &Workspace) -> Result<PinsOut> {
    let out = |pin: &Pin| PinOut {
        name: pin.name.clone(),
        commit: pin.commit.map(|commit| commit.to_string()),
        tree: pin.tree.to_string(),
        pinned_at: pin.pinned_at,
        indexed: workspace.stored_tree(pin.tree).is_some(),
    };
    Ok(PinsOut {
        repo: repo(workspace),
        pins: workspace.pins()?.iter().map(out).collect(),
    })
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
    /// Writes a line for each cause that has anything.
    pub(super) fn render(&self, out: &mut dyn Sink) {
        for (name, count, what, bytes) in self.lines() {
            let megabytes = bytes as f64 / 1e6;
            out.line(&format!("{name:<17} {count:>7} {what:<9} {megabytes:>9.2} MB"));
        }
    }

    /// For people: what it is, how many of what, bytes. Kinds of which there is nothing are left out.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (String, u64, &'static str, u64)> + '_ {
        let kept = self.kept.iter();
        let kept = kept.map(|kept| (format!("kept by {}", kept.cause), kept.count, "snapshots", kept.bytes));
        let others = [
            ("kept by nothing", self.dead_snapshots, "snapshots"),
            ("in none of them", self.dead_blobs, "blobs"),
            ("left over", self.leftover_files, "files"),
            ("earlier formats", self.old_folders, "folders"),
            ("history", self.history, "commits"),
            ("deleted", self.deleted_files, "files"),
        ];
        let others = others.into_iter().filter(|(_, share, _)| share.count > 0);
        kept.chain(others.map(|(name, share, what)| (name.to_owned(), share.count, what, share.bytes)))
    }

    pub(crate) fn of(survey: &Survey) -> Self {
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
