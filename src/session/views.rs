//! Opens views of revisions. Missing files are indexed first, or their data is computed in memory if the sidecar cannot
//! be written.

use std::collections::HashMap;

use super::call::CallCtx;
use super::error::{OpError, Result, bail};
use super::storage::Keeping;
use super::stored::{MAX_ATTEMPTS, Stored};
use super::workspace::Workspace;
use super::writing::is_read_only;
use crate::index::Segments;
use crate::ingest::{Outcome, Target};
use crate::snapshot::{Manifest, Provenance, View};

/// Note for an answer that was computed in memory because the sidecar cannot be written.
pub(crate) const READ_ONLY_NOTE: &str = "the index cannot be written here; this answer was computed in memory";

/// The level of detail of uncommitted files in a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edits {
    /// Uncommitted files have the same data as committed files.
    Extracted,
    /// Uncommitted files have only their bytes, which suffice for line-based searches. Staged files are extracted
    /// nevertheless.
    Listed,
}

impl Workspace {
    /// Opens the snapshot of a tree. Indexes missing files first, or computes the snapshot in memory if the sidecar
    /// cannot be written or read.
    pub(super) fn base(&self, target: Target, call: &CallCtx<'_>) -> Result<Based> {
        let mut damage = None;
        let found = match self.stored(target.tree) {
            Ok(Stored::Whole(base)) => Ok(base.into()),
            Ok(Stored::Partial | Stored::OtherSettings) => self.newly_stored(target, call),
            Ok(Stored::Damaged(error)) => {
                damage = Some(error);
                self.newly_stored(target, call)
            }
            Err(error) => Err(error),
        };
        match found {
            Err(error) if is_read_only(&error) => {
                // The damage is logged here, because no writer runs that would log it.
                if let Some(damage) = damage {
                    tracing::warn!("{damage:#}");
                }
                tracing::warn!("{error:#}");
                Ok(Based {
                    note: Some(READ_ONLY_NOTE),
                    ..self.in_memory(target, None, call.ctx.interrupt)?.into()
                })
            }
            found => found,
        }
    }

    fn newly_stored(&self, target: Target, call: &CallCtx<'_>) -> Result<Based> {
        if self.storage.keeping() == Keeping::Nowhere {
            return Ok(self.in_memory(target, None, call.ctx.interrupt)?.into());
        }
        // Tries several times, because garbage collection may delete data that only this query uses.
        for _ in 0..MAX_ATTEMPTS {
            let outcome = self.ingest(target, call.ctx)?;
            if outcome.interrupted {
                return Err(OpError::interrupted_with("the files indexed so far are kept"));
            }
            match self.stored(target.tree)? {
                Stored::Whole(base) => {
                    return Ok(Based {
                        ingested: outcome,
                        ..base.into()
                    });
                }
                Stored::Damaged(error) => {
                    return Err(error.context("cannot read the index that was just written"));
                }
                // The snapshot was deleted meanwhile, or replaced by a program with other settings.
                Stored::Partial | Stored::OtherSettings => {}
            }
        }
        bail!("the index of this tree was deleted by another process")
    }
}

/// An open snapshot of a tree.
#[derive(Clone, Default)]
pub(crate) struct Base {
    pub(super) segments: Segments,
    pub(super) layers: Vec<Manifest>,
}

impl Base {
    /// Returns the snapshot's segments.
    pub(crate) fn segments(&self) -> &Segments {
        &self.segments
    }

    /// Converts the snapshot to a view without uncommitted changes.
    pub(crate) fn view(self, provenance: Provenance) -> View {
        View::new(provenance, self.segments, self.layers, HashMap::new())
    }
}

/// A snapshot, and how it was obtained.
#[derive(Default)]
pub(super) struct Based {
    pub(super) base: Base,
    /// The reason why the snapshot is not stored in the sidecar.
    pub(super) note: Option<&'static str>,
    /// The outcome of indexing missing files.
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
