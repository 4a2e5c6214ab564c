//! Uploads new vectors to the shared store and then deletes the local copies, if vectors are stored only in the shared
//! store.

use std::sync::atomic::AtomicBool;

use roaring::RoaringBitmap;

use crate::embed::ProfileId;
use crate::index::shared::{RepositoryTag, SharedVectors, There};
use crate::index::{RowFile, Segment, Segments};
use crate::model::{ChunkKey, Ctx, TreeId};
use crate::sidecar::{FileError, Sidecar, Store};

use super::catch_up::{CatchUp, CatchUpError};
use super::parts::{Part, Parts};
use super::publish::publish_state;
use super::share::{Looks, Shared, Sharing};
use super::sweep::retire_files;

impl CatchUp<'_> {
    /// Uploads local vectors to the shared store and deletes the uploaded ones locally. Returns the documents known to
    /// be in the store, and the documents for which the model returns no vector.
    pub(super) fn upload_local(
        &self,
        trees: &[TreeId],
        parts: &mut Parts,
        looks: Looks,
        ctx: Ctx<'_>,
    ) -> Result<(Shared, RoaringBitmap), CatchUpError> {
        let Some(shared) = self.shared else {
            let stopped = Some("no shared vector store is configured".to_owned());
            return Ok((
                Shared {
                    stopped,
                    ..Shared::default()
                },
                RoaringBitmap::new(),
            ));
        };
        let sharing = self.sharing(shared);
        let outcome = sharing.run_with(trees, parts, looks, ctx)?;
        let Some(mut there) = There::load(self.sidecar, sharing.profile, shared.repository())? else {
            return Ok((outcome, RoaringBitmap::new()));
        };
        there.docs |= &there.empty;
        // The store may have lost vectors that were not checked in this run.
        if outcome.stopped.is_none() && !outcome.interrupted {
            self.drop_local(parts, &there, ctx.interrupt)?;
        }
        Ok((outcome, there.docs))
    }

    pub(super) fn sharing<'s>(&'s self, shared: &'s dyn SharedVectors) -> Sharing<'s> {
        Sharing {
            sidecar: self.sidecar,
            shared,
            profile: self.maker.profile().id(),
            own_profile: self.own_profile,
            recipe: self.options.recipe,
            is_remote_only: self.is_remote_only,
        }
    }

    /// Deletes local vectors that the shared store has. Moves the other vectors from segments to parts.
    fn drop_local(&self, parts: &mut Parts, there: &There, interrupt: &AtomicBool) -> Result<(), CatchUpError> {
        let lock = self.sidecar.lock_unless(self.patience, interrupt)?;
        let Some(mut state) = self.sidecar.state()?.filter(|state| state.epoch == there.epoch) else {
            return Ok(());
        };
        let profile = self.maker.profile().id().to_string();
        let segments =
            Segments::open(self.sidecar, &state, self.own_profile)?.with_added(self.sidecar, &state, &profile);
        let mut dropped = Vec::new();
        for (entry, segment) in state.segments.iter_mut().zip(segments.iter()) {
            let Some(at) = entry.vectors.iter().position(|vectors| vectors.profile == profile) else {
                continue;
            };
            if let Some(rows) = segment.rows(self.maker.profile().id()) {
                let left = self.left_of(segment, &rows, there)?;
                left.into_iter().for_each(|part| parts.add(part));
            }
            dropped.push(entry.vectors.remove(at).file);
        }
        if !dropped.is_empty() {
            publish_state(self.sidecar, &lock, &mut state)?;
            retire_files(self.sidecar, dropped.iter().map(|file| (Store::Dense, file)));
        }
        let is_there = |key| segments.find_doc(key).is_some_and(|doc| there.docs.contains(doc));
        Ok(parts.remove_done(self.sidecar, &lock, is_there)?)
    }

    /// Returns the rows of a segment that the shared store lacks, as a new part.
    fn left_of(&self, segment: &Segment, rows: &RowFile, there: &There) -> Result<Option<Part>, CatchUpError> {
        let mut writer = rows.writer()?;
        let mut keys: Vec<ChunkKey> = Vec::new();
        for row in (0..rows.len()).filter(|&row| rows.has(row) && !there.docs.contains(segment.base_doc + row)) {
            writer.copy_row(rows, row)?;
            keys.push(segment.lexical.key(row));
        }
        if keys.is_empty() {
            return Ok(None);
        }
        Ok(Some(Part::store(self.sidecar, &keys, writer.finish())?))
    }
}

/// Translates the record of documents in the shared store from the document numbers in `before` to those in `after`.
pub fn renumber_shared(
    sidecar: &Sidecar,
    profile: ProfileId,
    repository: RepositoryTag,
    before: &Segments,
    after: &Segments,
) -> Result<(), FileError> {
    let Some(mut there) = There::load(sidecar, profile, repository)? else {
        return Ok(());
    };
    if there.epoch != before.epoch() || there.epoch == after.epoch() {
        return Ok(());
    }
    let renumbered = |docs: &RoaringBitmap| -> RoaringBitmap {
        let number = |doc| {
            let (segment, row) = before.of_doc(doc)?;
            after.find_doc(segment.lexical.key(row))
        };
        docs.iter().filter_map(number).collect()
    };
    (there.docs, there.empty) = (renumbered(&there.docs), renumbered(&there.empty));
    there.epoch = after.epoch();
    there.store(sidecar, &There::keys(sidecar, profile, repository)?)
}
