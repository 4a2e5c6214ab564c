//! Selects the documents that need vectors of the configured model.

use std::collections::HashSet;

use crate::embed::ProfileId;
use crate::extract::is_credential_of_tree;
use crate::index::{NumberSet, Segments};
use crate::model::TreeId;
use crate::sidecar::{FileError, Sidecar, State};
use crate::snapshot::{Provenance, SnapshotStore, View};

use super::parts::Parts;

/// The documents to embed or share.
pub(super) struct Wanted {
    pub(super) docs: NumberSet,
    /// The blobs of the documents, ascending.
    pub(super) blobs: Vec<u32>,
    pub(super) n_docs: usize,
    pub(super) n_left: usize,
    pub(super) n_withheld: usize,
}

impl Wanted {
    /// Selects the documents of the trees, except those from files whose names suggest secrets.
    pub(super) fn of(
        trees: &[TreeId],
        sidecar: &Sidecar,
        state: &State,
        segments: &Segments,
    ) -> Result<Self, FileError> {
        let snapshots = SnapshotStore::new(sidecar, state.epoch, state.recipe);
        let mut docs = NumberSet::below(segments.n_docs());
        let (mut blobs, mut withheld) = (Vec::new(), HashSet::new());
        for &tree in trees {
            let Some(layers) = snapshots.load_for(tree, segments)? else {
                continue;
            };
            let view = View::new(Provenance::default(), segments.clone(), layers, Default::default());
            for (id, file) in view.files() {
                let Some(blob) = file.blob else { continue };
                if is_credential_of_tree(file.path) {
                    withheld.extend(view.docs(id));
                    continue;
                }
                blobs.push(blob);
                view.docs(id).for_each(|doc| _ = docs.insert(doc));
            }
        }
        withheld.iter().for_each(|doc| _ = docs.remove(*doc));
        blobs.sort_unstable();
        blobs.dedup();
        let n_docs = docs.count_in(0, segments.n_docs()) as usize;
        Ok(Self {
            docs,
            blobs,
            n_docs,
            n_left: n_docs,
            n_withheld: withheld.len(),
        })
    }

    /// Removes documents that already have a row of the profile.
    pub(super) fn drop_known(&mut self, segments: &Segments, parts: &Parts, profile: ProfileId) {
        for segment in segments.iter() {
            let rows = segment.rows(profile);
            for local in 0..segment.lexical.n_docs() {
                let has_row = rows.as_ref().is_some_and(|rows| rows.has(local));
                let is_known = has_row || parts.find(segment.lexical.key(local)).is_some();
                if is_known {
                    self.drop_doc(segment.base_doc + local);
                }
            }
        }
    }

    /// Removes a document.
    pub(super) fn drop_doc(&mut self, doc: u32) {
        if self.docs.remove(doc) {
            self.n_left -= 1;
        }
    }
}
