//! Opens the stored snapshots of trees and determines their state.

use super::error::{OpError, Result};
use super::views::Base;
use super::workspace::Workspace;
use crate::index::Segments;
use crate::model::TreeId;
use crate::sidecar::{FileError, FileErrorKind, Sidecar, State};
use crate::snapshot::{Manifest, SnapshotStore, View, can_be_completed};

/// Maximum number of attempts to open a snapshot while writers replace it.
pub(super) const MAX_ATTEMPTS: usize = 5;

/// The state of a tree in the sidecar.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Freshness {
    /// The sidecar contains no index.
    Missing,
    /// The index lacks files of this tree.
    Behind,
    /// The index was made with other settings, another model or by another build.
    OtherSettings,
    /// The index cannot be read. Contains the error.
    Damaged(String),
    /// The index is complete for this tree.
    UpToDate,
}

/// The stored snapshot of a tree, or the reason why it cannot be used.
pub(super) enum Stored {
    /// The complete snapshot.
    Whole(Base),
    /// The snapshot is missing or incomplete, so the tree has to be indexed.
    Partial,
    /// The index was made with other settings or another model, so the tree has to be indexed again.
    OtherSettings,
    /// The index is unreadable, so the tree has to be indexed again.
    Damaged(OpError),
}

impl Workspace {
    /// Returns the state of a tree in the sidecar. Writes nothing.
    pub fn freshness(&self, tree: TreeId) -> Result<Freshness> {
        let has_state = |sidecar: &Sidecar| !matches!(sidecar.state(), Ok(None));
        if !self.storage.open()?.as_ref().is_some_and(has_state) {
            return Ok(Freshness::Missing);
        }
        Ok(match self.stored(tree)? {
            Stored::Whole(_) => Freshness::UpToDate,
            Stored::Partial => Freshness::Behind,
            Stored::OtherSettings => Freshness::OtherSettings,
            Stored::Damaged(error) => Freshness::Damaged(format!("{error:#}")),
        })
    }

    /// Opens the stored snapshot of a tree. Returns `None` if it has to be built because it is missing, incomplete or
    /// damaged.
    pub(crate) fn stored_whole(&self, tree: TreeId) -> Result<Option<Base>> {
        Ok(match self.stored(tree)? {
            Stored::Whole(base) => Some(base),
            Stored::Partial | Stored::OtherSettings => None,
            Stored::Damaged(error) => {
                tracing::warn!("{error:#}");
                None
            }
        })
    }

    /// Opens the view of the checked-out commit; `None` if that is not completely indexed. Writes nothing.
    pub(crate) fn stored_view(&self) -> Result<Option<View>> {
        let Some(target) = self.target("HEAD")? else {
            return Ok(None);
        };
        let base = self.stored_whole(target.tree)?;
        Ok(base.map(|base| base.view(self.provenance("HEAD", Some(target)))))
    }

    /// Opens the stored snapshot of a tree. Tries again if a writer begins a new epoch meanwhile.
    pub(super) fn stored(&self, tree: TreeId) -> Result<Stored> {
        let Some(sidecar) = self.storage.open()? else {
            return Ok(Stored::Partial);
        };
        for _ in 0..MAX_ATTEMPTS {
            let state = match sidecar.state() {
                Ok(Some(state)) if state.recipe != self.options.recipe => return Ok(Stored::OtherSettings),
                Ok(Some(state)) => state,
                Ok(None) => return Ok(Stored::Partial),
                Err(error) if matches!(error.kind, FileErrorKind::Damaged(_)) => {
                    return Ok(Stored::Damaged(error.into()));
                }
                Err(error) => return Err(error.into()),
            };
            let found = self.stored_in(&sidecar, &state, tree);
            // If a writer has begun a new epoch meanwhile, the data is now in other files.
            let newest = || self.usable_state(&sidecar).ok().flatten();
            if matches!(found, Stored::Whole(_)) || newest().is_none_or(|newest| newest.epoch == state.epoch) {
                return Ok(found);
            }
        }
        Ok(Stored::Partial)
    }

    fn stored_in(&self, sidecar: &Sidecar, state: &State, tree: TreeId) -> Stored {
        let snapshots = SnapshotStore::new(sidecar, state.epoch, state.recipe);
        let layers = match snapshots.load(tree) {
            Ok(Some(layers)) => layers,
            Ok(None) => return Stored::Partial,
            Err(error) => return Stored::Damaged(error.into()),
        };
        if can_be_completed(&layers, &self.repository, self.options.max_blob_bytes) {
            return Stored::Partial;
        }
        // A manifest is published after the state that it depends on. A manifest published after `state` was read may
        // refer to blobs that only the newest state has.
        let newest = sidecar.state().ok().flatten();
        let Some(state) = newest.filter(|newest| (newest.epoch, newest.recipe) == (state.epoch, state.recipe)) else {
            return Stored::Partial;
        };
        match Segments::open_newest(sidecar, &state, &self.models.own_profile()) {
            Ok(segments) if segments.iter().all(|segment| segment.vectors.is_some()) => {
                if let Err(error) = layers.iter().try_for_each(|layer| layer.check_blobs(&segments)) {
                    return Stored::Damaged(error.into());
                }
                let segments = self.models.with_added(segments, sidecar, &state);
                Stored::Whole(Base { segments, layers })
            }
            Ok(_) => Stored::OtherSettings,
            Err(error) => Stored::Damaged(error.into()),
        }
    }

    /// Returns the stored manifests of a tree if they are intact.
    pub(crate) fn stored_tree(&self, tree: TreeId) -> Option<Vec<Manifest>> {
        let sidecar = self.storage.open().ok()??;
        let state = self.usable_state(&sidecar).ok()??;
        let snapshots = SnapshotStore::new(&sidecar, state.epoch, state.recipe);
        snapshots.load(tree).ok()?
    }

    /// Returns the state if this build can use it.
    fn usable_state(&self, sidecar: &Sidecar) -> Result<Option<State>, FileError> {
        Ok(sidecar.state()?.filter(|state| state.recipe == self.options.recipe))
    }

    /// Returns what is indexed, if this build can use it.
    pub(crate) fn any_segments(&self) -> Option<Segments> {
        let sidecar = self.storage.open().ok()??;
        let state = sidecar.state().ok()??;
        let segments = Segments::open_newest(&sidecar, &state, &self.models.own_profile()).ok()?;
        let is_usable = state.recipe == self.options.recipe && segments.iter().all(|segment| segment.vectors.is_some());
        is_usable.then(|| self.models.with_added(segments, &sidecar, &state))
    }
}
