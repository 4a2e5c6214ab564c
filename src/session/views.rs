//! Opens views: of what is stored, after indexing what is missing, or computed where nothing can be written.

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

/// A tree without manifest is served from memory when the sidecar cannot be written.
pub(crate) const READ_ONLY_NOTE: &str = "the index cannot be written here; this answer was computed in memory";

/// A view with what opening it did.
pub struct Opened {
    /// The view.
    pub view: View,
    /// What had to be indexed first.
    pub ingested: Outcome,
}

/// What a view knows of files that are not committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edits {
    /// All that is known of those that are.
    Extracted,
    /// Their bytes: enough for questions about lines. Only what is staged is extracted all the same.
    Listed,
}

impl Workspace {
    /// Opens a view of a revision, indexing first what is missing. Where the sidecar cannot be written the view is computed in
    /// memory, and says so.
    pub fn view(&self, reference: &str, progress: &dyn Progress, interrupt: &AtomicBool) -> Result<Opened> {
        self.view_with(Edits::Extracted, reference, progress, interrupt)
    }

    /// Like [`Self::view`], with as much of what is not committed as is asked for.
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

    /// A commit's snapshot with what is changed or staged laid over it, if that was asked for.
    fn with_changes(&self, edits: Edits, base: Base, provenance: Provenance, interrupt: &AtomicBool) -> Result<View> {
        match provenance.reference.as_str() {
            "WORKTREE" => self.over_work_tree(edits, base, provenance, interrupt),
            "INDEX" => self.over_index(base, provenance, interrupt),
            _ => Ok(base.view(provenance)),
        }
    }

    /// A tree's snapshot: what is stored, after indexing what is missing, or computed where nothing can be written or read.
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
                // Who writes it anew names it; here nobody does.
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

    /// Indexes a tree and opens its snapshot. Where nothing can be written, computes it in memory and returns a note that says so.
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
        // A collection of garbage may take away again what nothing but this query keeps.
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
                // Deleted since, or made again by a program with other settings.
                Stored::Partial | Stored::OtherSettings => {}
            }
        }
        bail!("the index of this tree was written and is gone again")
    }
}

/// A tree's snapshot, opened.
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

    /// A view of the tree as it is.
    pub(crate) fn view(self, provenance: Provenance) -> View {
        View::new(provenance, self.segments, self.layers, HashMap::new())
    }
}
