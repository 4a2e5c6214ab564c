//! `gc`: deletes index data that nothing uses.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::ask::Ask;
use super::op::{NoRows, Op, Page, PageOf};
use super::question::beside;
use super::sink::{Recorded, Sink};
use crate::ingest::{CollectOutcome, KeptSnapshot, Share, Survey, Trigger};
use crate::model::count::plural;
use crate::session::{OpError, Result, Workspace, bail};

/// Number of digits of an id in text output.
const ID_DIGITS: usize = 12;

/// The request.
#[derive(Clone, Debug, Default, Serialize, Deserialize, clap::Args, schemars::JsonSchema)]
#[serde(default)]
pub(crate) struct Gc {
    /// Show what would be done without doing it
    #[arg(short = 'n', long)]
    #[schemars(description = "")]
    pub(crate) dry_run: bool,
    /// Rewrite live data into as few files as possible, even if little can be deleted
    #[arg(long, conflicts_with = "dry_run")]
    #[schemars(description = "")]
    aggressive: bool,
}

/// The fields of the answer.
#[derive(Debug, Serialize)]
pub(crate) struct Facts {
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
    #[serde(skip)]
    took: Duration,
}

impl Op for Gc {
    type Facts = Facts;
    type Row = NoRows;

    fn run(&self, ask: &Ask<'_>) -> Result<PageOf<Self>> {
        if self.dry_run && self.aggressive {
            bail!("aggressive cannot be used with dry_run");
        }
        let workspace = &ask.session.workspace;
        let collected = if self.dry_run {
            workspace.survey()?.map(imagined)
        } else {
            let occasion = if self.aggressive {
                Trigger::Aggressive
            } else {
                Trigger::Asked
            };
            workspace.collect(occasion, ask.call.ctx)?
        };
        let collected = collected.unwrap_or_default();
        if collected.interrupted {
            return Err(OpError::interrupted_with("the index is intact"));
        }
        let facts = self.facts(workspace, &collected);
        let text = Recorded::of(|out| facts.render(out));
        Ok(Page::single(beside(ask), facts, text))
    }
}

impl Gc {
    fn facts(&self, workspace: &Workspace, collected: &CollectOutcome) -> Facts {
        let max_bytes = workspace.config.collect_options().max_bytes;
        let survey = &collected.survey;
        let fits = match (self.dry_run, max_bytes) {
            (true, Some(max_bytes)) => survey.live_bytes() <= max_bytes,
            (true, None) => true,
            (false, _) => collected.fits,
        };
        Facts {
            sidecar: workspace.storage.root().display().to_string(),
            dry_run: self.dry_run,
            causes: CausesOut::of(survey),
            max_bytes,
            over_budget: survey.over_budget.iter().map(SnapshotOut::of).collect(),
            fits: fits || *collected == CollectOutcome::default(),
            rewrote: collected.rewrote,
            segments_before: collected.n_segments.0,
            segments_after: collected.n_segments.1,
            bytes_before: collected.bytes.0,
            bytes_after: collected.bytes.1,
            freed_bytes: collected.bytes.0.saturating_sub(collected.bytes.1),
            waiting: ShareOut::of(collected.waiting),
            took: collected.elapsed,
        }
    }
}

impl Facts {
    fn render(&self, out: &mut dyn Sink) {
        let megabytes = |n_bytes: u64| n_bytes as f64 / 1e6;
        self.causes.render(out);
        for SnapshotOut { cause, name, tree, .. } in &self.over_budget {
            out.line(&format!("over the limit    {cause} {name} ({})", &tree[..ID_DIGITS]));
        }
        if let (false, Some(max_bytes)) = (self.fits, self.max_bytes) {
            out.line(&format!(
                "cannot shrink to {:.2} MB: checked-out and pinned snapshots are never deleted",
                megabytes(max_bytes)
            ));
        }
        if self.causes.dead_blobs.count > 0 && !self.rewrote {
            out.line(
                "unused blobs are deleted when they reach gc.dead_percent of the index; to delete them now: \
                codescout gc --aggressive",
            );
        }
        if self.dry_run {
            out.line("nothing was changed");
            return;
        }
        let rewrote = if self.rewrote {
            format!(
                ", {} segments copied into {}",
                self.segments_before, self.segments_after
            )
        } else {
            String::new()
        };
        out.line(&format!(
            "{:.2} MB before, {:.2} MB now, {:.2} MB freed in {:.2} s{rewrote}",
            megabytes(self.bytes_before),
            megabytes(self.bytes_after),
            megabytes(self.freed_bytes),
            self.took.as_secs_f64(),
        ));
    }
}

/// Sizes of snapshots and blobs, grouped by the reason to keep them. Part of the answers of `gc` and `status`.
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
struct ShareOut {
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

/// Returns the outcome that a collection would have, from a survey.
fn imagined(survey: Survey) -> CollectOutcome {
    let bytes = survey.in_use_bytes + survey.leftovers.bytes;
    CollectOutcome {
        bytes: (bytes, bytes),
        n_segments: (survey.n_segments, survey.n_segments),
        survey,
        ..CollectOutcome::default()
    }
}

impl CausesOut {
    /// Writes a line for each group that is not empty.
    pub(super) fn render(&self, out: &mut dyn Sink) {
        let mut line = |name: &str, share: ShareOut, what: &str| {
            let megabytes = share.bytes as f64 / 1e6;
            let things = plural(share.count, what);
            out.line(&format!(
                "{name:<17} {:>7} {things:<9} {megabytes:>9.2} MB",
                share.count
            ));
        };
        for &CauseOut { cause, count, bytes } in &self.kept {
            line(&format!("kept by {cause}"), ShareOut { count, bytes }, "snapshot");
        }
        for (name, share, what) in [
            ("unused", self.dead_snapshots, "snapshot"),
            ("unused", self.dead_blobs, "blob"),
            ("leftovers", self.leftover_files, "file"),
            ("earlier formats", self.old_folders, "folder"),
            ("history", self.history, "commit"),
            ("deleted", self.deleted_files, "file"),
        ] {
            if share.count > 0 {
                line(name, share, what);
            }
        }
    }

    /// Groups the sizes in a survey.
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
