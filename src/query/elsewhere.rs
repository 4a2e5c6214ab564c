//! Searches vectors in another process, either in addition to local copies or instead of them.

use roaring::RoaringBitmap;

use crate::embed::SparseVector;
use crate::index::dense::{Cosine, DenseError, DenseIndex, DenseStore, FlatIndex};
use crate::index::sparse::{Impact, ImpactIndex, SparseIndex};
use crate::model::chain;

/// Number of extra results to request. The server's arithmetic differs from the local one, so the last of the wanted
/// results may differ too.
fn spare(k: usize) -> usize {
    k / 8 + 16
}

/// A remote index of dense or sparse vectors that is searched before the local vectors.
pub struct Elsewhere<I> {
    /// The index.
    pub index: I,
    /// The documents that the index is known to contain.
    pub holds: RoaringBitmap,
    /// Sets with fewer documents are searched locally.
    pub min_docs: u64,
}

/// A remote index of dense vectors.
pub type DenseRemoteIndex<'a> = Elsewhere<Box<dyn DenseIndex + 'a>>;
/// A remote index of sparse vectors.
pub type SparseRemoteIndex<'a> = Elsewhere<Box<dyn ImpactIndex + 'a>>;

impl<I> Elsewhere<I> {
    /// Converts the index and keeps the other fields.
    pub fn map<J>(self, change: impl FnOnce(I) -> J) -> Elsewhere<J> {
        Elsewhere {
            index: change(self.index),
            holds: self.holds,
            min_docs: self.min_docs,
        }
    }

    /// Searches those of `docs` that the index contains. Also returns the other documents. Returns `None` if the set is
    /// too small, or if the search fails, which adds a note.
    fn ask<S>(
        &self,
        docs: &RoaringBitmap,
        notes: &mut Vec<String>,
        search: impl FnOnce(&RoaringBitmap) -> Result<Vec<(u32, S)>, DenseError>,
    ) -> Option<(Vec<u32>, RoaringBitmap)> {
        let held = docs & &self.holds;
        if held.is_empty() || held.len() < self.min_docs {
            return None;
        }
        match search(&held) {
            Ok(found) => Some((found.into_iter().map(|(doc, _)| doc).collect(), docs - held)),
            Err(error) => {
                let error = chain(&error);
                notes.push(format!("{error}: compared the vectors locally"));
                None
            }
        }
    }
}

impl DenseRemoteIndex<'_> {
    /// Returns the `k` nearest of `docs`, all of which have vectors in `here`. Results from the index are ordered by
    /// their cosines in `here`. Documents that the index lacks are searched locally. If the index fails, everything is
    /// searched locally and a note is added.
    pub(super) fn nearest(
        &self,
        here: &FlatIndex,
        query: &[f32],
        docs: &RoaringBitmap,
        k: usize,
        notes: &mut Vec<String>,
    ) -> Result<Vec<(u32, Cosine)>, DenseError> {
        let search = |held: &_| self.index.search(query, held, k + spare(k));
        let Some((found, others)) = self.ask(docs, notes, search) else {
            return here.search(query, docs, k);
        };
        let cosines = here.score(query, &found)?;
        let mut nearest: Vec<(u32, Cosine)> = found.into_iter().zip(cosines).collect();
        nearest.extend(here.search(query, &others, k)?);
        nearest.sort_by(|(a, x), (b, y)| y.0.total_cmp(&x.0).then(a.cmp(b)));
        nearest.truncate(k);
        Ok(nearest)
    }
}

impl SparseRemoteIndex<'_> {
    /// Returns the `k` best of `docs` for a query, in the same way as `DenseRemoteIndex::nearest`.
    pub(super) fn best(
        &self,
        here: &SparseIndex,
        query: &SparseVector,
        docs: &RoaringBitmap,
        k: usize,
        notes: &mut Vec<String>,
    ) -> Vec<(u32, Impact)> {
        let search = |held: &_| self.index.search(query, held, k + spare(k));
        let Some((found, others)) = self.ask(docs, notes, search) else {
            return here.search(query, docs, k);
        };
        let impacts = found.into_iter().map(|doc| (doc, here.impact(query, doc)));
        // The server may hold a document whose local vector was removed. Its impact is 0.
        let mut best: Vec<(u32, Impact)> = impacts.filter(|(_, impact)| impact.0 > 0.0).collect();
        if !others.is_empty() {
            best.extend(here.search(query, &others, k));
        }
        best.sort_by(|(a, x), (b, y)| y.0.total_cmp(&x.0).then(a.cmp(b)));
        best.truncate(k);
        best
    }
}

/// Maximum number of documents whose remote vectors are requested by document number. The documents nearest by the
/// local model are requested.
const MAX_SCORED_BY_ID: usize = 256;

/// The active model's vectors in a remote store, if they are not stored locally.
pub struct Away<'a> {
    /// The remote store.
    pub store: Box<dyn DenseStore + 'a>,
    /// The documents that have a vector in the store.
    pub holds: RoaringBitmap,
    /// Documents for which the model returns no vector.
    pub empty: RoaringBitmap,
}

impl Away<'_> {
    /// Returns the `k` nearest of `docs`, and a bound on the cosine of all other documents. If `docs` are a small part
    /// of the store, the store's best results may include too few of them. Then the documents that the local model
    /// `here` finds nearest to `own` are scored as well.
    pub(super) fn nearest(
        &self,
        query: &[f32],
        docs: &RoaringBitmap,
        k: usize,
        here: &FlatIndex,
        own: &[f32],
    ) -> Result<(Vec<(u32, Cosine)>, f32), DenseError> {
        let mut nearest = self.store.nearest(query, docs, k)?;
        let bound = nearest.last().map_or(f32::INFINITY, |(_, cosine)| cosine.0);
        if nearest.len() < k && (nearest.len() as u64) < docs.len() {
            let others = docs - nearest.iter().map(|(doc, _)| *doc).collect::<RoaringBitmap>();
            let likely = here.search(own, &others, MAX_SCORED_BY_ID)?;
            let likely: Vec<u32> = likely.into_iter().map(|(doc, _)| doc).collect();
            nearest.extend(self.store.score(query, &likely)?);
            nearest.sort_by(|(a, x), (b, y)| y.0.total_cmp(&x.0).then(a.cmp(b)));
            nearest.truncate(k);
        }
        Ok((nearest, bound))
    }
}
