//! An index of vectors in another process.

use roaring::RoaringBitmap;

use crate::index::dense::{Cosine, DenseError, DenseIndex, FlatIndex};

/// What it gives beyond what is wanted: its arithmetic is not ours, so that who is last among the wanted may differ.
fn spare(k: usize) -> usize {
    k / 8 + 16
}

/// An index of the vectors of the model in use that is asked before these are compared here, where they are as well.
pub struct Elsewhere<'a> {
    /// The index.
    pub index: Box<dyn DenseIndex + 'a>,
    /// The documents that it is known to hold.
    pub holds: RoaringBitmap,
    /// Fewer documents are compared here.
    pub min_docs: u64,
}

impl Elsewhere<'_> {
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
        let held = docs & &self.holds;
        if held.is_empty() || held.len() < self.min_docs {
            return here.search(query, docs, k);
        }
        let found = match self.index.search(query, &held, k + spare(k)) {
            Ok(found) => found,
            Err(error) => {
                let error = super::search::chain(&error);
                notes.push(format!("{error}: vectors were compared on this machine"));
                return here.search(query, docs, k);
            }
        };
        let found: Vec<u32> = found.into_iter().map(|(doc, _)| doc).collect();
        let cosines = here.score(query, &found)?;
        let mut nearest: Vec<(u32, Cosine)> = found.into_iter().zip(cosines).collect();
        nearest.extend(here.search(query, &(docs - held), k)?);
        nearest.sort_by(|(a, x), (b, y)| y.0.total_cmp(&x.0).then(a.cmp(b)));
        nearest.truncate(k);
        Ok(nearest)
    }
}
