//! Vectors in another process: such as are here as well, and such as are not.

use roaring::RoaringBitmap;

use crate::embed::SparseVector;
use crate::index::dense::{Cosine, DenseError, DenseIndex, DenseStore, FlatIndex};
use crate::index::sparse::{Impact, ImpactIndex, SparseIndex};
use crate::model::chain;

/// What it gives beyond what is wanted: its arithmetic is not ours, so that who is last among the wanted may differ.
fn spare(k: usize) -> usize {
    k / 8 + 16
}

/// An index, of vectors or of sparse ones, of a model in use that is asked before these are compared here, where they are as well.
pub struct Elsewhere<I> {
    /// The index.
    pub index: I,
    /// The documents that it is known to hold.
    pub holds: RoaringBitmap,
    /// Fewer documents are compared here.
    pub min_docs: u64,
}

/// One of vectors.
pub type DenseElsewhere<'a> = Elsewhere<Box<dyn DenseIndex + 'a>>;
/// One of sparse vectors.
pub type SparseElsewhere<'a> = Elsewhere<Box<dyn ImpactIndex + 'a>>;

impl<I> Elsewhere<I> {
    /// The same with the index as something else.
    pub fn map<J>(self, change: impl FnOnce(I) -> J) -> Elsewhere<J> {
        Elsewhere {
            index: change(self.index),
            holds: self.holds,
            min_docs: self.min_docs,
        }
    }

    /// What the index finds of those of `docs` that it holds, and the others; `None` if it is not worth asking or gives no answer, which a
    /// note tells.
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
                notes.push(format!("{error}: vectors were compared on this machine"));
                None
            }
        }
    }
}

impl DenseElsewhere<'_> {
    /// The `k` nearest of `docs`; `here` has the vectors of all of them. What it finds is ordered by the cosines of `here`, and what it
    /// does not hold is looked for there. If it gives no answer, all is looked for here, and a note says so.
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

impl SparseElsewhere<'_> {
    /// The `k` of `docs` that have most in common with a query, in the same way.
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
        // A document that the server has and whose vector is not here any more has nothing in common with anything.
        let mut best: Vec<(u32, Impact)> = impacts.filter(|(_, impact)| impact.0 > 0.0).collect();
        if !others.is_empty() {
            best.extend(here.search(query, &others, k));
        }
        best.sort_by(|(a, x), (b, y)| y.0.total_cmp(&x.0).then(a.cmp(b)));
        best.truncate(k);
        best
    }
}

/// The documents of the nearest of a model that are asked for by name, where that model is not the one that says which are near.
const MAX_BY_NAME: usize = 256;

/// The vectors of the model in use where these are not kept here.
pub struct Away<'a> {
    /// What has them.
    pub store: Box<dyn DenseStore + 'a>,
    /// The documents that it is known to have one of.
    pub holds: RoaringBitmap,
    /// Documents of which the model makes nothing.
    pub empty: RoaringBitmap,
}

impl Away<'_> {
    /// The `k` nearest of `docs`, and a bound: none that is not among them is nearer. If `docs` are too small a part of what is there for
    /// the best to be found among the best of all, those that `here`, another model's, has nearest to `own` are looked at besides.
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
            let likely = here.search(own, &others, MAX_BY_NAME)?;
            let likely: Vec<u32> = likely.into_iter().map(|(doc, _)| doc).collect();
            nearest.extend(self.store.score(query, &likely)?);
            nearest.sort_by(|(a, x), (b, y)| y.0.total_cmp(&x.0).then(a.cmp(b)));
            nearest.truncate(k);
        }
        Ok((nearest, bound))
    }
}
