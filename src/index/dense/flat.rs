//! Exact vector search, which scans all vectors.

use std::ops::Range;

use rayon::prelude::*;
use roaring::RoaringBitmap;

use super::dense_index::{Cosine, DenseError, DenseIndex};
use super::kernel::Pick;
use super::query::{BLOCK_ROWS, Query, unit_query};
use super::top_k::{self, TopK};
use super::vectors::VectorFile;

/// The vectors of several segments. A search compares the query with every vector, so it is exact.
///
/// A search takes a few nanoseconds per live document (`tests/bench/dense.rs`), and less if few documents are live. All
/// arithmetic before the final multiplication uses integers, so scores are the same on every processor and with any
/// number of threads.
#[derive(Clone, Debug)]
pub struct FlatIndex {
    /// The segments by ascending document number. They do not overlap, and none is empty.
    segments: Vec<Segment>,
}

/// The vectors of one segment. Row r of `vectors` belongs to document `base_doc` + r.
#[derive(Clone, Debug)]
pub(super) struct Segment {
    pub(super) base_doc: u32,
    pub(super) vectors: VectorFile,
}

impl Segment {
    /// Returns the number after the last document.
    fn end_doc(&self) -> u32 {
        self.base_doc + self.vectors.len()
    }
}

/// Minimum number of live documents for which a search uses all threads of the current rayon pool.
const PARALLEL_DOCS: u64 = 200_000;

/// Number of documents per parallel task.
const DOCS_PER_TASK: u32 = 1 << 15;

/// Minimum number of consecutive live documents that are scanned as a range.
const MIN_RUN: usize = 8;

impl FlatIndex {
    /// Combines segments, each given with its first document number, in any order. All must have the same profile.
    /// Their document ranges may have gaps but must not overlap.
    pub fn new(segments: Vec<(u32, VectorFile)>) -> Result<Self, DenseError> {
        let mut segments: Vec<Segment> = segments
            .into_iter()
            .filter(|(_, vectors)| !vectors.is_empty())
            .map(|(base_doc, vectors)| Segment { base_doc, vectors })
            .collect();
        segments.sort_by_key(|segment| segment.base_doc);
        let mut free_from = 0;
        for segment in &segments {
            let (base_doc, first) = (segment.base_doc, &segments[0].vectors);
            let end = base_doc
                .checked_add(segment.vectors.len())
                .filter(|_| base_doc >= free_from);
            free_from = end.ok_or(DenseError::Overlap { base_doc })?;
            if (segment.vectors.profile(), segment.vectors.dim()) != (first.profile(), first.dim()) {
                return Err(DenseError::Profile { base_doc });
            }
        }
        Ok(Self { segments })
    }

    /// Returns the cosines of `docs`, in the same order. A document without a vector has the cosine 0. Fastest if `docs`
    /// are ascending.
    pub fn score(&self, query: &[f32], docs: &[u32]) -> Result<Vec<Cosine>, DenseError> {
        let mut cosines = vec![0.0; docs.len()];
        if let Some(unit) = self.unit(query)? {
            self.scorer(&unit).score(docs, &mut cosines);
        }
        Ok(cosines.into_iter().map(Cosine).collect())
    }

    /// Prepares a unit query for scoring documents.
    pub(super) fn scorer(&self, unit: &[f32]) -> Scorer<'_> {
        Scorer {
            index: self,
            queries: self.segments.iter().map(|segment| query_for(segment, unit)).collect(),
        }
    }

    /// Returns the vector of `doc`, converted back from integers. Used to search for similar documents.
    pub fn vector(&self, doc: u32) -> Option<Vec<f32>> {
        let segment = &self.segments[self.segment_of(doc)?];
        segment.vectors.vector(doc - segment.base_doc)
    }

    pub(super) fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// Scales a query to unit length after checking it. Returns `None` for the zero vector and if the index is empty.
    pub(super) fn unit(&self, query: &[f32]) -> Result<Option<Vec<f32>>, DenseError> {
        let Some(first) = self.segments.first() else {
            return Ok(None);
        };
        let expected = first.vectors.dim();
        if query.len() != expected {
            return Err(DenseError::Dimension {
                found: query.len(),
                expected,
            });
        }
        unit_query(query)
    }

    /// Returns the `k` best live documents from `first` on, best first.
    pub(super) fn best_from(&self, first: u32, unit: &[f32], live: &RoaringBitmap, k: usize) -> Vec<(u32, f32)> {
        let ranges = || self.segments.iter().map(|segment| (segment, segment.docs_from(first)));
        let n_live: u64 = ranges().map(|(_, docs)| live.range_cardinality(docs)).sum();
        let found = if n_live < PARALLEL_DOCS {
            ranges()
                .flat_map(|(segment, docs)| segment.best(unit, live, docs, k))
                .collect()
        } else {
            let tasks: Vec<(&Segment, Range<u32>)> = ranges().flat_map(|(segment, docs)| segment.tasks(docs)).collect();
            let parts: Vec<_> = tasks
                .into_par_iter()
                .map(|(segment, docs)| segment.best(unit, live, docs, k))
                .collect();
            parts.concat()
        };
        top_k::best(found, k)
    }

    /// Returns the number after the last document.
    pub(super) fn end_doc(&self) -> u32 {
        self.segments.last().map_or(0, Segment::end_doc)
    }

    /// Returns the row of a document.
    pub(super) fn row_of(&self, doc: u32) -> Option<(&VectorFile, usize)> {
        let segment = &self.segments[self.segment_of(doc)?];
        Some((&segment.vectors, (doc - segment.base_doc) as usize))
    }

    /// Returns the position in `segments` of the segment that contains the document.
    fn segment_of(&self, doc: u32) -> Option<usize> {
        let after = self.segments.partition_point(|segment| segment.base_doc <= doc);
        let at = after.checked_sub(1)?;
        (doc < self.segments[at].end_doc()).then_some(at)
    }
}

impl DenseIndex for FlatIndex {
    fn search(&self, query: &[f32], live: &RoaringBitmap, k: usize) -> Result<Vec<(u32, Cosine)>, DenseError> {
        let Some(unit) = self.unit(query)? else {
            return Ok(Vec::new());
        };
        let found = self.best_from(0, &unit, live, k);
        Ok(found.into_iter().map(|(doc, cosine)| (doc, Cosine(cosine))).collect())
    }
}

/// A query, prepared for scoring documents.
#[derive(Debug)]
pub(super) struct Scorer<'a> {
    index: &'a FlatIndex,
    /// The query for each segment.
    queries: Vec<Query>,
}

impl Scorer<'_> {
    /// Writes the cosine of each document to `cosines`; 0 for a document without a vector.
    pub(super) fn score(&self, docs: &[u32], cosines: &mut [f32]) {
        let mut rows = Vec::with_capacity(BLOCK_ROWS);
        let mut from = 0;
        while let Some(&first) = docs.get(from) {
            let Some(at) = self.index.segment_of(first) else {
                cosines[from] = 0.0;
                from += 1;
                continue;
            };
            let segment = &self.index.segments[at];
            let same = docs[from..].iter().take_while(|doc| segment.docs().contains(doc));
            rows.clear();
            rows.extend(same.take(BLOCK_ROWS).map(|doc| doc - segment.base_doc));
            self.queries[at].cosines(
                &segment.vectors,
                Pick::List(&rows),
                &mut cosines[from..from + rows.len()],
            );
            from += rows.len();
        }
    }
}

fn query_for(segment: &Segment, unit: &[f32]) -> Query {
    Query::new(unit, segment.vectors.quantisation())
}

impl Segment {
    pub(super) fn docs(&self) -> Range<u32> {
        self.base_doc..self.end_doc()
    }

    /// Returns the documents of the segment from `first` on.
    fn docs_from(&self, first: u32) -> Range<u32> {
        self.base_doc.max(first).min(self.end_doc())..self.end_doc()
    }

    /// Splits documents of the segment into parallel tasks.
    fn tasks(&self, docs: Range<u32>) -> impl Iterator<Item = (&Self, Range<u32>)> {
        let end = docs.end;
        let starts = docs.step_by(DOCS_PER_TASK as usize);
        starts.map(move |start| (self, start..start.saturating_add(DOCS_PER_TASK).min(end)))
    }

    fn best(&self, unit: &[f32], live: &RoaringBitmap, docs: Range<u32>, k: usize) -> Vec<(u32, f32)> {
        let (query, mut top) = (query_for(self, unit), TopK::new(k));
        self.scan(&query, live, docs, &mut |rows, cosines| {
            for (i, &cosine) in cosines.iter().enumerate() {
                top.offer(self.base_doc + rows.row(i) as u32, cosine);
            }
        });
        top.finish()
    }

    /// Calls `sink` with the cosines of the live documents in the range `docs` of the segment, in blocks. Row numbers
    /// ascend from one call to the next.
    fn scan(&self, query: &Query, live: &RoaringBitmap, docs: Range<u32>, sink: &mut impl FnMut(Pick<'_>, &[f32])) {
        if docs.is_empty() {
            return;
        }
        let mut list = Vec::with_capacity(BLOCK_ROWS);
        let mut docs = live.range(docs);
        while let Some(run) = docs.next_range() {
            let (first, last) = (
                (run.start() - self.base_doc) as usize,
                (run.end() - self.base_doc) as usize,
            );
            if last - first + 1 >= MIN_RUN {
                for start in (first..=last).step_by(BLOCK_ROWS) {
                    let len = BLOCK_ROWS.min(last + 1 - start);
                    self.block(query, Pick::Run { first: start, len }, sink);
                }
            } else {
                // Searching for a range costs ten times as much as reading the next document, so fill the rest of the
                // block without searching.
                list.extend((first..=last).map(|row| row as u32));
                let room = BLOCK_ROWS - list.len();
                list.extend(docs.by_ref().take(room).map(|doc| doc - self.base_doc));
                self.block(query, Pick::List(&list), sink);
                list.clear();
            }
        }
    }

    fn block(&self, query: &Query, rows: Pick<'_>, sink: &mut impl FnMut(Pick<'_>, &[f32])) {
        let mut cosines = [0.0; BLOCK_ROWS];
        let cosines = &mut cosines[..rows.len()];
        query.cosines(&self.vectors, rows, cosines);
        sink(rows, cosines);
    }
}

#[cfg(test)]
mod tests;
