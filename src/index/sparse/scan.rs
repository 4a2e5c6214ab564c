//! Computes the exact dot product of a query with every document.

use roaring::RoaringBitmap;

use super::file::SparseFile;
use crate::embed::SparseVector;
use crate::index::dense::top_k::{TopK, best};

/// The dot product of a query vector and a document vector. It is 0 if they have no token in common, and has no upper
/// bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Impact(pub f32);

/// The sparse vectors of several segments. Searches are exact.
#[derive(Clone, Debug, Default)]
pub struct SparseIndex {
    /// The file of each segment, with the number of its first document, ascending.
    segments: Vec<(u32, SparseFile)>,
}

impl SparseIndex {
    /// Combines segments, each given with its first document number, in any order. Their document ranges must not
    /// overlap.
    pub fn new(mut segments: Vec<(u32, SparseFile)>) -> Self {
        segments.retain(|(_, file)| !file.is_empty());
        segments.sort_by_key(|(base_doc, _)| *base_doc);
        Self { segments }
    }

    /// Returns the `k` documents in `live` with the highest positive dot products, sorted by descending product, then
    /// by document number. Needs four bytes of memory for each document of a segment.
    pub fn search(&self, query: &SparseVector, live: &RoaringBitmap, k: usize) -> Vec<(u32, Impact)> {
        let mut found = Vec::new();
        for (base_doc, file) in &self.segments {
            let impacts = impacts_in(file, query);
            let mut top = TopK::new(k);
            for doc in live.range(*base_doc..base_doc.saturating_add(impacts.len() as u32)) {
                let impact = impacts[(doc - base_doc) as usize];
                if impact > 0.0 {
                    top.offer(doc, impact);
                }
            }
            found.extend(top.finish());
        }
        let found = best(found, k).into_iter();
        found.map(|(doc, impact)| (doc, Impact(impact))).collect()
    }

    /// Returns the dot product of one document, bit-identical to that of [`Self::search`]. Returns 0 if the document
    /// has no vector.
    pub fn impact(&self, query: &SparseVector, doc: u32) -> Impact {
        let after = self.segments.partition_point(|(base_doc, _)| *base_doc <= doc);
        let Some((base_doc, file)) = after.checked_sub(1).map(|at| &self.segments[at]) else {
            return Impact(0.0);
        };
        let row = doc - base_doc;
        let terms = query.terms().iter();
        let sum = terms.fold(0.0, |sum, (token, weight)| sum + weight * file.step(*token, row) as f32);
        Impact(sum * file.scale(row))
    }
}

/// Returns the dot product with each row of a file. Adds tokens in a fixed order, so that sums are bit-identical on
/// every machine.
fn impacts_in(file: &SparseFile, query: &SparseVector) -> Vec<f32> {
    let mut sums = vec![0.0; file.len() as usize];
    for (token, weight) in query.terms() {
        for posting in file.postings(*token) {
            // A row outside the file is a sign of damage. Ignore it.
            if let Some(sum) = sums.get_mut(posting.number() as usize) {
                *sum += weight * posting.step() as f32;
            }
        }
    }
    for (sum, scale) in sums.iter_mut().zip(file.scales()) {
        *sum *= f32::from_le_bytes(*scale);
    }
    sums
}

#[cfg(test)]
mod tests;
