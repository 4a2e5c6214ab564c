//! The exact scan.

use roaring::RoaringBitmap;

use super::file::{SparseFile, token_and_step};
use crate::embed::SparseVector;
use crate::index::dense::top_k::{TopK, best};

/// The dot product of a query's weights and a document's: 0 for nothing in common, without an upper bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Impact(pub f32);

/// All sparse vectors of some segments, compared one by one with the query: nothing is ever missed.
#[derive(Clone, Debug, Default)]
pub struct SparseIndex {
    /// With the number of their first document, ascending.
    segments: Vec<(u32, SparseFile)>,
}

impl SparseIndex {
    /// Joins segments, given with their first document numbers in any order; no document may belong to two.
    pub fn new(mut segments: Vec<(u32, SparseFile)>) -> Self {
        segments.retain(|(_, file)| !file.is_empty());
        segments.sort_by_key(|(base_doc, _)| *base_doc);
        Self { segments }
    }

    /// The `k` best of the documents in `live` that have anything in common with the query: best first, ties by ascending document.
    pub fn search(&self, query: &SparseVector, live: &RoaringBitmap, k: usize) -> Vec<(u32, Impact)> {
        let table = table(query);
        let mut found = Vec::new();
        for (base_doc, file) in &self.segments {
            let mut top = TopK::new(k);
            for doc in live.range(*base_doc..base_doc.saturating_add(file.len())) {
                let impact = impact(file, doc - base_doc, &table);
                if impact > 0.0 {
                    top.offer(doc, impact);
                }
            }
            found.extend(top.finish());
        }
        let found = best(found, k).into_iter();
        found.map(|(doc, impact)| (doc, Impact(impact))).collect()
    }

    /// That of each of `docs`, in their order; 0 for a document without a vector.
    pub fn score(&self, query: &SparseVector, docs: &[u32]) -> Vec<Impact> {
        let table = table(query);
        let scored = docs.iter().map(|&doc| {
            let after = self.segments.partition_point(|(base_doc, _)| *base_doc <= doc);
            let segment = after.checked_sub(1).map(|at| &self.segments[at]);
            segment.map_or(0.0, |(base_doc, file)| impact(file, doc - base_doc, &table))
        });
        scored.map(Impact).collect()
    }
}

/// The weights of a query by token, up to its last.
fn table(query: &SparseVector) -> Vec<f32> {
    let n_tokens = query.terms().last().map_or(0, |(token, _)| *token as usize + 1);
    let mut table = vec![0.0; n_tokens];
    query
        .terms()
        .iter()
        .for_each(|(token, weight)| table[*token as usize] = *weight);
    table
}

#[inline(always)]
fn impact(file: &SparseFile, row: u32, table: &[f32]) -> f32 {
    let mut sum = 0.0;
    for &entry in file.entries(row) {
        let (token, step) = token_and_step(entry);
        if let Some(&weight) = table.get(token as usize)
            && weight > 0.0
        {
            sum += weight * step as f32;
        }
    }
    sum * file.scale(row)
}

#[cfg(test)]
mod tests;
