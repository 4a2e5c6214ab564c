//! The exact product with every document.

use roaring::RoaringBitmap;

use super::file::SparseFile;
use crate::embed::SparseVector;
use crate::index::dense::top_k::{TopK, best};

/// The dot product of a query's weights and a document's: 0 for nothing in common, without an upper bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Impact(pub f32);

/// All sparse vectors of some segments: nothing is ever missed.
#[derive(Clone, Debug, Default)]
pub struct SparseIndex {
    /// With the number of their first document, ascending.
    segments: Vec<(u32, SparseFile)>,
}

/// What every document of an index has in common with a query.
#[derive(Debug)]
pub struct Impacts {
    /// By segment, with the number of its first document, ascending.
    segments: Vec<(u32, Vec<f32>)>,
}

impl SparseIndex {
    /// Joins segments, given with their first document numbers in any order; no document may belong to two.
    pub fn new(mut segments: Vec<(u32, SparseFile)>) -> Self {
        segments.retain(|(_, file)| !file.is_empty());
        segments.sort_by_key(|(base_doc, _)| *base_doc);
        Self { segments }
    }

    /// The products of a query with all documents. Takes four bytes for each.
    pub fn impacts(&self, query: &SparseVector) -> Impacts {
        let segments = self.segments.iter();
        Impacts {
            segments: segments
                .map(|(base_doc, file)| (*base_doc, impacts_in(file, query)))
                .collect(),
        }
    }
}

impl Impacts {
    /// The `k` best of the documents in `live` that have anything in common with the query: best first, ties by ascending document.
    pub fn best(&self, live: &RoaringBitmap, k: usize) -> Vec<(u32, Impact)> {
        let mut found = Vec::new();
        for (base_doc, impacts) in &self.segments {
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

    /// That of one document; 0 without a vector.
    pub fn of(&self, doc: u32) -> Impact {
        let after = self.segments.partition_point(|(base_doc, _)| *base_doc <= doc);
        let segment = after.checked_sub(1).map(|at| &self.segments[at]);
        let impact = segment.and_then(|(base_doc, impacts)| impacts.get((doc - base_doc) as usize));
        Impact(impact.copied().unwrap_or_default())
    }
}

/// The products with the rows of a file. Tokens are added in their order, so that sums are the same to the bit everywhere.
fn impacts_in(file: &SparseFile, query: &SparseVector) -> Vec<f32> {
    let mut sums = vec![0.0; file.len() as usize];
    for (token, weight) in query.terms() {
        for posting in file.postings(*token) {
            // A row that is not there is damage.
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
