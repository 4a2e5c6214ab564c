//! An index of vectors in another process.

use roaring::RoaringBitmap;

use crate::embed::SparseVector;
use crate::index::dense::{Cosine, DenseError, DenseIndex, FlatIndex};
use crate::index::sparse::{Impact, ImpactIndex, SparseIndex};

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
                let error = super::search::chain(&error);
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
