//! Approximate vector search in large segments, with a graph built by hnsw_rs.
//!
//! The graph only proposes candidates. They are scored with the arithmetic of the exact scan. Where the graph could
//! reduce recall (few live documents, many results, too few candidates), the exact scan is used instead. This module
//! works around these weaknesses of the crate:
//!
//! - Equal vectors fill each other's neighbour lists and hide all other vectors. Therefore only distinct rows are
//!   inserted.
//! - Some vectors that are inserted later are never found. Therefore a graph is built once, for an immutable segment.
//! - Some vectors are unreachable. They are detected after building and scanned in every search.
//! - Filtered search visits more of the graph the fewer documents pass the filter. Therefore it is not used.
//! - The file reader ends the process on invalid input. Therefore graphs exist only in memory. (Reading one takes
//!   longer than a scan.)
//! - The crate accepts vectors of any length and asserts that no distance is negative or NaN. Therefore points are row
//!   numbers, and this module provides the distance function.
//! - The crate prints a message and exits if a parameter is too large, and it assigns random levels to points.
//!   Therefore parameters are clamped, the random generator has a fixed seed, and insertion uses one thread, so that
//!   the same rows give the same graph.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hnsw_rs::prelude::{Distance, Hnsw};
use roaring::RoaringBitmap;

use super::dense_index::{Cosine, DenseError, DenseIndex};
use super::flat::{FlatIndex, Segment};
use super::half;
use super::kernel::{self, Pick};
use super::quantise::Quantisation;
use super::query::{BLOCK_ROWS, Query, unit_query};
use super::top_k;
use super::vectors::VectorFile;

/// Minimum number of live documents for which searching the graph of a segment with 128 candidates is worthwhile. With
/// more candidates, the minimum grows in proportion.
///
/// For 250,000 code chunks in int4 with 256 dimensions, a graph search takes 0.3, 0.6 and 1.5 ms with 64, 128 and 256
/// candidates and finds 0.95, 0.98 and 0.99 of the best 10. One thread scans all chunks in 1.1 ms, so the graph is
/// faster from half this number on. But building the graph takes ten minutes of processor time, and it needs 1.9 KB of
/// memory per vector.
pub const DEFAULT_HNSW_THRESHOLD: usize = 250_000;

/// Number of candidates that [`DEFAULT_HNSW_THRESHOLD`] refers to.
const THRESHOLD_EF: usize = 128;

/// Parameters for building and searching graphs.
#[derive(Clone, Debug)]
pub struct HnswOptions {
    /// Minimum number of rows for which a segment gets a graph, and minimum number of live documents for which a search
    /// uses the graph. The latter is higher for searches that need more candidates. See [`DEFAULT_HNSW_THRESHOLD`].
    pub threshold: usize,
    /// Maximum number of neighbours of a point on the upper layers, from 2 to 64. The lowest layer allows twice as
    /// many.
    pub m: usize,
    /// Number of candidates during the insertion of a point, from 1 to 4,096.
    pub ef_construction: usize,
    /// Initial number of candidates in a search. It is raised for a graph whose recall is too low.
    pub ef_search: usize,
}

impl Default for HnswOptions {
    fn default() -> Self {
        Self {
            threshold: DEFAULT_HNSW_THRESHOLD,
            m: 16,
            ef_construction: 200,
            ef_search: THRESHOLD_EF,
        }
    }
}

/// The reason why a segment has no graph. The data is not at fault; the segment is scanned instead.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// The interrupt flag was set.
    #[error("building a vector graph was interrupted")]
    Interrupted,
    /// The segment has fewer than two distinct vectors.
    #[error("a vector graph needs two distinct vectors")]
    TooFew,
    /// The graph needs so many candidates that a scan would be faster.
    #[error("the vector graph needs {ef} candidates, which is slower than a scan")]
    TooSlow {
        /// The number of candidates.
        ef: usize,
    },
    /// The recall of the graph is too low, even with many candidates.
    #[error("the recall of the vector graph is only {recall:.3}")]
    PoorRecall {
        /// The mean recall of the trial queries.
        recall: f32,
    },
}

/// The vectors of several segments, with graphs for the large segments.
#[derive(Debug)]
pub struct HnswIndex {
    flat: FlatIndex,
    /// The graph of each segment, in the order of the flat index.
    graphs: Vec<Option<Arc<SegmentGraph>>>,
    threshold: u64,
}

impl HnswIndex {
    /// Builds a graph for each segment with at least `options.threshold` rows. Takes minutes for a few 100,000 rows. A
    /// segment has no graph if its graph fails the trial.
    pub fn build(flat: FlatIndex, options: &HnswOptions, interrupt: &AtomicBool) -> Result<Self, BuildError> {
        let mut graphs = Vec::new();
        for segment in flat.segments() {
            if (segment.vectors.len() as usize) < options.threshold {
                continue;
            }
            match SegmentGraph::build(&segment.vectors, options, interrupt) {
                Ok(graph) => graphs.push((segment.base_doc, Arc::new(graph))),
                Err(BuildError::Interrupted) => return Err(BuildError::Interrupted),
                Err(error) => tracing::debug!(base_doc = segment.base_doc, %error, "no graph for this segment"),
            }
        }
        Ok(Self::new(flat, graphs, options.threshold))
    }

    /// Combines `flat` with existing graphs, each given with the first document of its segment. Ignores a graph that
    /// was built from other vectors than those of its segment.
    pub fn new(flat: FlatIndex, graphs: Vec<(u32, Arc<SegmentGraph>)>, threshold: usize) -> Self {
        let graph_of = |segment: &Segment| {
            let mut fitting = graphs.iter().filter(|(base_doc, _)| *base_doc == segment.base_doc);
            let found = fitting.find(|(_, graph)| graph.vectors.is_same(&segment.vectors));
            found.map(|(_, graph)| Arc::clone(graph))
        };
        let graphs = flat.segments().iter().map(graph_of).collect();
        Self {
            flat,
            graphs,
            threshold: threshold as u64,
        }
    }

    /// Returns the exact index of the same vectors.
    pub fn flat(&self) -> &FlatIndex {
        &self.flat
    }

    /// Returns the number of segments with a graph.
    #[cfg(test)]
    fn n_graphs(&self) -> usize {
        self.graphs.iter().flatten().count()
    }
}

impl DenseIndex for HnswIndex {
    fn search(&self, query: &[f32], live: &RoaringBitmap, k: usize) -> Result<Vec<(u32, Cosine)>, DenseError> {
        let Some(unit) = self.flat.unit(query)? else {
            return Ok(Vec::new());
        };
        let (mut found, mut scanned) = (Vec::new(), Vec::new());
        for (segment, graph) in self.flat.segments().iter().zip(&self.graphs) {
            let graph = graph.as_ref();
            match graph.and_then(|graph| graph.best_of(segment, &unit, live, k, self.threshold)) {
                Some(by_graph) => found.extend(by_graph),
                None => scanned.push(segment),
            }
        }
        found.extend(FlatIndex::best_of(&scanned, &unit, live, k));
        Ok(top_k::best(found, k)
            .into_iter()
            .map(|(doc, cosine)| (doc, Cosine(cosine)))
            .collect())
    }
}

/// The graph of a segment's distinct rows.
pub struct SegmentGraph {
    graph: Hnsw<'static, u8, RowDistance>,
    vectors: VectorFile,
    /// Maps a row in the graph to the other rows with the same codes, ascending.
    same_codes: HashMap<u32, Vec<u32>>,
    /// The distinct rows that cannot be reached in the graph, ascending.
    unlinked: Vec<u32>,
    /// Number of candidates with which the graph passed the trial.
    ef: usize,
}

/// Number of candidates per result. With 2.6 candidates per result, the graph of 250,000 code chunks found 0.95 of the
/// best 50 for commit subjects; with 5.1, it found 0.98.
const EF_PER_RESULT: u64 = 4;

/// The cost of scoring a row at a random position, relative to a row in a scan.
const SCATTERED_COST: u64 = 3;

/// Number of insertions between two checks of the interrupt flag.
const INSERTIONS_PER_LOOK: usize = 64;

impl SegmentGraph {
    /// Builds a graph and runs its trial. The same file and options give the same graph.
    pub fn build(vectors: &VectorFile, options: &HnswOptions, interrupt: &AtomicBool) -> Result<Self, BuildError> {
        let (rows, same_codes) = distinct_rows(vectors);
        if rows.len() < 2 {
            return Err(BuildError::TooFew);
        }
        let (m, ef_construction) = (options.m.clamp(2, 64), options.ef_construction.clamp(1, 4096));
        let distance = RowDistance {
            vectors: vectors.clone(),
        };
        let graph = Hnsw::new(m, rows.len(), MAX_LAYERS, ef_construction, distance);
        for batch in shuffled(rows.clone()).chunks(INSERTIONS_PER_LOOK) {
            if interrupt.load(Ordering::Relaxed) {
                return Err(BuildError::Interrupted);
            }
            batch.iter().for_each(|&row| graph.insert((&point(row), row as usize)));
        }
        let unlinked = unlinked(&graph, &rows);
        let mut built = Self {
            graph,
            vectors: vectors.clone(),
            same_codes,
            unlinked,
            ef: options.ef_search.max(1),
        };
        built.pass_trial(&rows)?;
        if !built.beats_scan(u64::from(vectors.len()), built.ef as u64, options.threshold as u64) {
            return Err(BuildError::TooSlow { ef: built.ef });
        }
        tracing::debug!(
            n_rows = vectors.len(),
            n_distinct = rows.len(),
            n_unlinked = built.unlinked.len(),
            ef = built.ef,
            "vector graph built"
        );
        Ok(built)
    }

    /// Returns the best live documents of the segment. Returns `None` if a scan is faster, or if only a scan finds the
    /// documents reliably.
    fn best_of(
        &self,
        segment: &Segment,
        unit: &[f32],
        live: &RoaringBitmap,
        k: usize,
        threshold: u64,
    ) -> Option<Vec<(u32, f32)>> {
        let n_live = live.range_cardinality(segment.docs());
        let n_rows = u64::from(segment.vectors.len());
        // About n_live / n_rows of the candidates are live.
        let needed = (k as u64).saturating_mul(EF_PER_RESULT * n_rows) / n_live.max(1);
        let ef = needed.max(self.ef as u64);
        if k == 0 || !self.beats_scan(n_live, ef, threshold) {
            return None;
        }
        let rows = self.candidates(unit, ef as usize);
        let live_rows: Vec<u32> = rows
            .into_iter()
            .filter(|row| live.contains(segment.base_doc + row))
            .collect();
        let found = top_k::best(self.scored(unit, &live_rows), k);
        // Zero vectors are not in the graph, but their cosine 0 is higher than negative cosines.
        let complete = found.len() == k && found.last().is_some_and(|&(_, cosine)| cosine > 0.0);
        complete.then(|| {
            found
                .into_iter()
                .map(|(row, cosine)| (segment.base_doc + row, cosine))
                .collect()
        })
    }

    /// Returns true if a graph search with `ef` candidates is faster than scanning `n_live` documents.
    fn beats_scan(&self, n_live: u64, ef: u64, threshold: u64) -> bool {
        let by_graph = threshold.saturating_mul(ef) / THRESHOLD_EF as u64;
        n_live >= by_graph.saturating_add(SCATTERED_COST * self.unlinked.len() as u64)
    }

    /// Returns the candidate rows: the rows that the graph search finds, all rows equal to them, and the unreachable
    /// rows.
    fn candidates(&self, unit: &[f32], ef: usize) -> Vec<u32> {
        let query = graph_query(unit, self.vectors.quantisation());
        let mut rows = self.unlinked.clone();
        rows.extend(
            self.graph
                .search(&query, ef, ef)
                .iter()
                .map(|neighbour| neighbour.d_id as u32),
        );
        let equal: Vec<u32> = rows
            .iter()
            .filter_map(|row| self.same_codes.get(row))
            .flatten()
            .copied()
            .collect();
        rows.extend(equal);
        // A search may start at an unreachable row, which is then contained twice.
        rows.sort_unstable();
        rows.dedup();
        rows
    }

    /// Returns the cosines of some rows, computed as in the exact scan.
    fn scored(&self, unit: &[f32], rows: &[u32]) -> Vec<(u32, f32)> {
        let query = Query::new(unit, self.vectors.quantisation());
        let mut cosines = vec![0.0; rows.len()];
        for (rows, cosines) in rows.chunks(BLOCK_ROWS).zip(cosines.chunks_mut(BLOCK_ROWS)) {
            query.cosines(&self.vectors, Pick::List(rows), cosines);
        }
        rows.iter().copied().zip(cosines).collect()
    }

    /// Compares the results of the graph with those of a scan, and raises `ef` until the recall is sufficient.
    ///
    /// Each query is the sum of one row and half of another. For 20,000 code chunks and 32 to 256 candidates, the
    /// recall for these queries was within 0.01 of the recall for commit subjects. Rows alone would be too easy, and
    /// midpoints between two rows too hard.
    fn pass_trial(&mut self, rows: &[u32]) -> Result<(), BuildError> {
        let step = (rows.len() / TRIAL_QUERIES).max(1);
        let queries: Vec<Vec<f32>> = (0..TRIAL_QUERIES.min(rows.len()))
            .map(|i| {
                let (one, other) = (
                    rows[i * step % rows.len()],
                    rows[(i * step * 7 + rows.len() / 2) % rows.len()],
                );
                leaning(&self.vectors, one, other)
            })
            .collect();
        let truth: Vec<Vec<(u32, f32)>> = queries
            .iter()
            .map(|query| top_k::best(self.scored(query, rows), TRIAL_K))
            .collect();
        loop {
            let recall = queries
                .iter()
                .zip(&truth)
                .map(|(query, truth)| self.recall(query, truth))
                .sum::<f32>()
                / queries.len() as f32;
            if recall >= TRIAL_RECALL {
                return Ok(());
            }
            if self.ef >= MAX_EF {
                return Err(BuildError::PoorRecall { recall });
            }
            self.ef = (self.ef * 2).min(MAX_EF);
        }
    }

    fn recall(&self, query: &[f32], truth: &[(u32, f32)]) -> f32 {
        let found = self.candidates(query, self.ef);
        let hits = truth.iter().filter(|(row, _)| found.contains(row)).count();
        hits as f32 / truth.len() as f32
    }
}

impl fmt::Debug for SegmentGraph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SegmentGraph")
            .field("vectors", &self.vectors)
            .field("n_points", &self.graph.get_nb_point())
            .field("n_unlinked", &self.unlinked.len())
            .field("ef", &self.ef)
            .finish()
    }
}

/// The maximum number of layers in hnsw_rs.
const MAX_LAYERS: usize = 16;
const MAX_EF: usize = 1024;
const TRIAL_QUERIES: usize = 200;
const TRIAL_K: usize = 10;
const TRIAL_RECALL: f32 = 0.95;

/// Computes the distance between two rows, or between a query and a row: 2 - cosine. Quantisation errors never make it
/// negative.
struct RowDistance {
    vectors: VectorFile,
}

impl Distance<u8> for RowDistance {
    fn eval(&self, a: &[u8], b: &[u8]) -> f32 {
        let cosine = match (row_of(a), row_of(b)) {
            (Some(a), Some(b)) => self.row_and_row(a, b),
            (None, Some(row)) => self.query_and_row(a, row),
            (Some(row), None) => self.query_and_row(b, row),
            (None, None) => 0.0,
        };
        (2.0 - cosine).max(0.0)
    }
}

impl RowDistance {
    fn row_and_row(&self, a: usize, b: usize) -> f32 {
        let (codes_a, codes_b) = (self.vectors.row(a), self.vectors.row(b));
        let sum = match self.vectors.quantisation() {
            Quantisation::Int4 => kernel::int4_pair(codes_a, codes_b),
            Quantisation::Int8 => kernel::int8_pair(codes_a, codes_b),
        };
        let factors = self.vectors.factors();
        sum as f32 * half::decode(factors.get(a)) * half::decode(factors.get(b))
    }

    fn query_and_row(&self, query: &[u8], row: usize) -> f32 {
        let Some((head, codes)) = query.split_first_chunk::<QUERY_HEAD>() else {
            return 0.0;
        };
        let [s0, s1, s2, s3, b0, b1, b2, b3] = *head;
        let (scale, bias) = (
            f32::from_le_bytes([s0, s1, s2, s3]),
            i32::from_le_bytes([b0, b1, b2, b3]),
        );
        let mut sum = [0];
        match self.vectors.quantisation() {
            Quantisation::Int4 => {
                kernel::int4(self.vectors.codes(), codes, Pick::Run { first: row, len: 1 }, &mut sum);
                sum[0] = 2 * sum[0] - bias;
            }
            Quantisation::Int8 => sum[0] = kernel::int8_pair(self.vectors.row(row), codes),
        }
        sum[0] as f32 * half::decode(self.vectors.factors().get(row)) * scale
    }
}

/// Encodes a row number as a point of the graph, in four bytes.
fn point(row: u32) -> [u8; 4] {
    row.to_le_bytes()
}

/// Returns the row of a point. Returns `None` for a query, whose encoding is longer.
fn row_of(point: &[u8]) -> Option<usize> {
    Some(u32::from_le_bytes(point.try_into().ok()?) as usize)
}

/// Number of bytes before the codes of an encoded query: scale and bias.
const QUERY_HEAD: usize = 8;

/// Encodes a unit query for the distance function: scale, bias, and signed bytes in the order of a row's codes.
fn graph_query(unit: &[f32], quantisation: Quantisation) -> Vec<u8> {
    let (scale, bias, codes) = Query::in_bytes(unit, quantisation);
    [&scale.to_le_bytes()[..], &bias.to_le_bytes(), &codes].concat()
}

/// Returns the first row of each distinct code, ascending, and a map from these to their duplicates. Omits zero
/// vectors.
fn distinct_rows(vectors: &VectorFile) -> (Vec<u32>, HashMap<u32, Vec<u32>>) {
    let mut first_of: HashMap<&[u8], u32> = HashMap::new();
    let (mut rows, mut same_codes) = (Vec::new(), HashMap::<u32, Vec<u32>>::new());
    let factors = vectors.factors();
    for row in (0..vectors.len()).filter(|&row| factors.get(row as usize) != 0) {
        let first = *first_of.entry(vectors.row(row as usize)).or_insert(row);
        if first == row {
            rows.push(row);
        } else {
            same_codes.entry(first).or_default().push(row);
        }
    }
    (rows, same_codes)
}

/// Shuffles the rows. The order depends only on their number. Neighbouring rows of a file are similar, and inserting
/// them in that order gives worse long-distance edges.
fn shuffled(mut rows: Vec<u32>) -> Vec<u32> {
    let mut state = 0u64;
    for i in (1..rows.len()).rev() {
        // SplitMix64.
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        rows.swap(i, ((mixed ^ mixed >> 31) % (i as u64 + 1)) as usize);
    }
    rows
}

/// Returns the rows that cannot be reached on the lowest layer from the entry point.
fn unlinked(graph: &Hnsw<'static, u8, RowDistance>, rows: &[u32]) -> Vec<u32> {
    let mut edges: HashMap<u32, Vec<u32>> = HashMap::with_capacity(rows.len());
    let mut entry = (0, 0);
    for point in graph.get_point_indexation() {
        let row = point.get_origin_id() as u32;
        entry = entry.max((point.get_point_id().0, row));
        let lowest = point.get_neighborhood_id().into_iter().next().unwrap_or_default();
        edges.insert(row, lowest.iter().map(|neighbour| neighbour.d_id as u32).collect());
    }
    let mut waiting = VecDeque::from([entry.1]);
    while let Some(row) = waiting.pop_front() {
        waiting.extend(edges.remove(&row).unwrap_or_default());
    }
    rows.iter().copied().filter(|row| edges.contains_key(row)).collect()
}

/// Returns the direction of the sum of one row and half of another.
fn leaning(vectors: &VectorFile, one: u32, other: u32) -> Vec<f32> {
    let [one, other] = [one, other].map(|row| vectors.vector(row).unwrap_or_default());
    let sum: Vec<f32> = one.iter().zip(&other).map(|(a, b)| a + 0.5 * b).collect();
    unit_query(&sum).ok().flatten().unwrap_or(one)
}

#[cfg(test)]
mod tests;
