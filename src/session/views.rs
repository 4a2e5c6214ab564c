//! Opens views: from stored snapshots, after indexing what is missing, or computed in memory if nothing can be written.

use std::collections::HashMap;

use anyhow::{Result, bail};

use super::ctx::Ctx;
use super::stored::{MAX_ATTEMPTS, Stored};
use super::writing::is_read_only;
use super::{Keeping, Workspace};
use crate::index::Segments;
use crate::ingest::{Outcome, Target};
use crate::snapshot::{Manifest, Provenance, View};

/// Note for an answer from memory because the sidecar cannot be written.
pub(crate) const READ_ONLY_NOTE: &str = "the index cannot be written here; this answer was computed in memory";

/// The level of detail of uncommitted files in a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edits {
    /// The same data as for committed files.
    Extracted,
    /// Only their bytes, which suffices for line-based searches. Staged files are extracted even so.
    Listed,
}

impl Workspace {
    /// Opens a tree's snapshot: the stored one, after indexing what is missing, or one computed in memory if the
    /// sidecar cannot be written or read.
    pub(super) fn base(&self, target: Target, ctx: &Ctx<'_>) -> Result<Based> {
        let mut damage = None;
        let found = match self.stored(target.tree) {
            Ok(Stored::Whole(base)) => Ok(base.into()),
            Ok(Stored::Partial | Stored::OtherSettings) => self.newly_stored(target, ctx),
            Ok(Stored::Damaged(error)) => {
                damage = Some(error);
                self.newly_stored(target, ctx)
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
                Ok(Based {
                    note: Some(READ_ONLY_NOTE),
                    ..self.in_memory(target, None, ctx.interrupt)?.into()
                })
            }
            found => found,
        }
    }

    fn newly_stored(&self, target: Target, ctx: &Ctx<'_>) -> Result<Based> {
        if self.storage.keeping() == Keeping::Nowhere {
            return Ok(self.in_memory(target, None, ctx.interrupt)?.into());
        }
        // Garbage collection may delete data that only this query uses.
        for _ in 0..MAX_ATTEMPTS {
            let outcome = self.ingest(target, ctx.progress, ctx.interrupt)?;
            if outcome.interrupted {
                bail!("interrupted; what was indexed so far is kept");
            }
            match self.stored(target.tree)? {
                Stored::Whole(base) => {
                    return Ok(Based {
                        ingested: outcome,
                        ..base.into()
                    });
                }
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

/// A snapshot, and how it was obtained.
#[derive(Default)]
pub(super) struct Based {
    pub(super) base: Base,
    /// The reason that it is not stored in the sidecar.
    pub(super) note: Option<&'static str>,
    /// The outcome of indexing what was missing.
    pub(super) ingested: Outcome,
}

impl From<Base> for Based {
    fn from(base: Base) -> Self {
        Self {
            base,
            ..Self::default()
        }
    }
}
