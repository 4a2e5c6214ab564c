//! Opens views: from stored snapshots, after indexing what is missing, or computed in memory if nothing can be written.

use std::collections::HashMap;
use std::sync::atomic::AtomicBool;

use anyhow::{Result, bail};

use super::ctx::Ctx;
use super::revision::while_objects_vanish;
use super::stored::{MAX_ATTEMPTS, Stored};
use super::writing::is_read_only;
use super::{Keeping, Workspace};
use crate::index::Segments;
use crate::ingest::{Outcome, Progress, Target};
use crate::snapshot::{Manifest, Provenance, View};

/// Note for an answer from memory because the sidecar cannot be written.
pub(crate) const READ_ONLY_NOTE: &str = "the index cannot be written here; this answer was computed in memory";

/// A view and the outcome of opening it.
pub struct Opened {
    /// The view.
    pub view: View,
    /// The outcome of indexing what was missing.
    pub ingested: Outcome,
}

/// The level of detail of uncommitted files in a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edits {
    /// The same data as for committed files.
    Extracted,
    /// Only their bytes, which suffices for line-based searches. Staged files are extracted even so.
    Listed,
}

impl Workspace {
    /// Opens a view of a revision, indexing first what is missing. If the sidecar cannot be written, the view is
    /// computed in memory and has a note that says so.
    pub fn view(&self, reference: &str, progress: &dyn Progress, interrupt: &AtomicBool) -> Result<Opened> {
        self.view_with(Edits::Extracted, reference, progress, interrupt)
    }

    /// Opens a view like [`Self::view`], with a chosen level of detail for uncommitted files.
    pub fn view_with(
        &self,
        edits: Edits,
        reference: &str,
        progress: &dyn Progress,
        interrupt: &AtomicBool,
    ) -> Result<Opened> {
        while_objects_vanish(|| self.view_now(edits, reference, progress, interrupt))
    }

    fn view_now(
        &self,
        edits: Edits,
        reference: &str,
        progress: &dyn Progress,
        interrupt: &AtomicBool,
    ) -> Result<Opened> {
        let (target, mut provenance) = self.asked(reference)?;
        let mut ingested = Outcome::default();
        let base = match target {
            None => Base::default(),
            Some(target) => {
                let (base, outcome) = self.base(target, &mut provenance, progress, interrupt)?;
                ingested = outcome;
                base
            }
        };
        let view = self.with_changes(edits, base, provenance, interrupt)?;
        Ok(Opened { view, ingested })
    }

    /// Lays changed or staged files over a commit's snapshot, if the revision is `WORKTREE` or `INDEX`.
    fn with_changes(&self, edits: Edits, base: Base, provenance: Provenance, interrupt: &AtomicBool) -> Result<View> {
        match provenance.reference.as_str() {
            "WORKTREE" => self.over_work_tree(edits, base, provenance, interrupt),
            "INDEX" => self.over_index(base, provenance, interrupt),
            _ => Ok(base.view(provenance)),
        }
    }

    /// Opens a tree's snapshot: the stored one, after indexing what is missing, or one computed in memory if the
    /// sidecar cannot be written or read.
    fn base(
        &self,
        target: Target,
        provenance: &mut Provenance,
        progress: &dyn Progress,
        interrupt: &AtomicBool,
    ) -> Result<(Base, Outcome)> {
        let mut damage = None;
        let found = match self.stored(target.tree) {
            Ok(Stored::Whole(base)) => Ok((base, Outcome::default())),
            Ok(Stored::Partial | Stored::OtherSettings) => self.newly_stored(target, progress, interrupt),
            Ok(Stored::Damaged(error)) => {
                damage = Some(error);
                self.newly_stored(target, progress, interrupt)
            }
            Err(error) => Err(error),
        };
        match found {
            Err(error) if is_read_only(&error) => {
                // A writer would log the damage; here nothing is written.
                if let Some(damage) = damage {
                    tracing::warn!("{damage:#}");
                }
                tracing::warn!("{error:#}");
                provenance.incomplete.push(READ_ONLY_NOTE.to_owned());
                Ok((self.in_memory(target, None, interrupt)?, Outcome::default()))
            }
            found => found,
        }
    }

    /// Indexes a tree and opens its snapshot. If nothing can be written, computes it in memory and returns a note that
    /// says so.
    pub(crate) fn build_base(&self, target: Target, ctx: &Ctx<'_>) -> Result<(Base, Option<&'static str>)> {
        let mut provenance = self.provenance("", None);
        let n_notes = provenance.incomplete.len();
        let (base, _) = self.base(target, &mut provenance, ctx.progress, ctx.interrupt)?;
        let is_in_memory = provenance.incomplete.len() > n_notes;
        Ok((base, is_in_memory.then_some(READ_ONLY_NOTE)))
    }

    fn newly_stored(&self, target: Target, progress: &dyn Progress, interrupt: &AtomicBool) -> Result<(Base, Outcome)> {
        if self.keeping == Keeping::Nowhere {
            return Ok((self.in_memory(target, None, interrupt)?, Outcome::default()));
        }
        // Garbage collection may delete data that only this query uses.
        for _ in 0..MAX_ATTEMPTS {
            let outcome = self.ingest(target, progress, interrupt)?;
            if outcome.interrupted {
                bail!("interrupted; what was indexed so far is kept");
            }
            match self.stored(target.tree)? {
                Stored::Whole(base) => return Ok((base, outcome)),
                Stored::Damaged(error) => {
                    return Err(error.context("the index of this tree was written and cannot be read"));
                }
                // Deleted meanwhile, or replaced by a program with other settings.
                Stored::Partial | Stored::OtherSettings => {}
            }
        }
        bail!("the index of this tree was written and is gone again")
    }
}

/// An opened snapshot of a tree.
#[derive(Clone, Default)]
pub(crate) struct Base {
    pub(super) segments: Segments,
    pub(super) layers: Vec<Manifest>,
}

impl Base {
    /// Its segments.
    pub(crate) fn segments(&self) -> &Segments {
        &self.segments
    }

    /// Converts the snapshot into a view without changes.
    pub(crate) fn view(self, provenance: Provenance) -> View {
        View::new(provenance, self.segments, self.layers, HashMap::new())
    }
}
