//! Approximate vector search over very many documents, with a graph built by hnsw_rs.
//!
//! The graph only proposes candidates. They are scored with the arithmetic of the exact scan. Where the graph could
//! reduce recall (few live documents, many results, too few candidates) or would be slower, the exact scan is used
//! instead. This module works around these weaknesses of the crate:
//!
//! - Equal vectors fill each other's neighbour lists and hide all other vectors. Therefore only distinct vectors are
//!   inserted.
//! - Some vectors that are inserted later are never found. Therefore a graph is built once, for documents that never
//!   change; later documents are scanned.
//! - Some vectors are unreachable. They are detected after building and scored in every search.
//! - Filtered search visits more of the graph the fewer documents pass the filter. Therefore it is not used.
//! - The file reader ends the process on invalid input, and a graph takes 1.9 KB of memory per vector. Therefore
//!   [`GraphFile`] has a format and a search of its own, and the crate only builds.
//! - The crate accepts vectors of any length and asserts that no distance is negative or NaN. Therefore points are
//!   document numbers, and this module provides the distance function.
//! - The crate prints a message and exits if a parameter is too large, and it assigns random levels to points.
//!   Therefore parameters are constants, the random generator has a fixed seed, and insertion uses one thread, so that
//!   the same vectors give the same graph.

use std::collections::{HashMap, VecDeque};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use hnsw_rs::prelude::{Distance, Hnsw};
use roaring::RoaringBitmap;

use super::dense_index::{Cosine, DenseError, DenseIndex};
use super::flat::FlatIndex;
use super::graph::{Graph, GraphFile};
use super::half;
use super::kernel;
use super::quantise::Quantisation;
use super::query::unit_query;
use super::top_k;
use super::vectors::VectorFile;
use crate::embed::ProfileId;
use crate::sidecar::FileError;

/// Number of bytes that a scan would read, from which on a graph is built: 262,144 vectors of the built-in model, or
/// 32,768 vectors with 1,024 dimensions in 8 bits.
///
/// For 60,000 code chunks, a search with 256 candidates takes 0.6 ms with 128 bytes per vector, as long as a scan, and
/// 2.6 ms with 1,024 bytes, a fifth of a scan. A scan takes time in proportion to the number of vectors, a graph hardly
/// longer for more of them. But building takes two minutes of processor time for these vectors, and 2 KB of memory for each.
const MIN_GRAPH_BYTES: u64 = 32 << 20;

/// Limits on graphs to build.
#[derive(Clone, Copy, Debug)]
pub struct GraphLimits {
    /// Minimum number of bytes that a scan of the new documents would read.
    pub min_bytes: u64,
    /// Maximum number of documents. Building takes 2 KB of memory and 2 ms of processor time for each.
    pub max_docs: u32,
}

/// The graphs that are built without a request.
pub const IN_BACKGROUND: GraphLimits = GraphLimits {
    min_bytes: MIN_GRAPH_BYTES,
    max_docs: 500_000,
};

/// Maximum number of neighbours of a point on the upper layers. The lowest layer allows twice as many.
const M: usize = 16;
/// Number of candidates during the insertion of a point.
const EF_CONSTRUCTION: usize = 200;
/// Initial number of candidates in a search. It is raised for a graph whose recall is too low.
const EF_SEARCH: usize = 256;
/// Maximum number of candidates in a search.
const MAX_EF: usize = 1024;
/// Maximum number of layers in hnsw_rs.
const MAX_LAYERS: usize = 16;
/// Maximum number of points where a search can start.
const MAX_HUBS: usize = 1024;

/// An error from building a graph.
#[derive(Debug, thiserror::Error)]
pub enum GraphBuildError {
    /// The interrupt flag was set.
    #[error("building a vector graph was interrupted")]
    Interrupted,
    /// The new graph cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
}

/// The vectors of several segments, with a graph of the first documents if there are very many.
#[derive(Clone, Debug)]
pub struct HnswIndex {
    flat: FlatIndex,
    graph: Option<GraphFile>,
}

impl HnswIndex {
    /// Combines vectors with a graph that was built from the first of them. Ignores a graph of other vectors.
    pub fn new(flat: FlatIndex, graph: Option<GraphFile>) -> Self {
        let fits = |graph: &GraphFile| {
            let vectors = flat.segments().first().map(|segment| &segment.vectors);
            graph.n_docs() <= flat.end_doc() && vectors.is_some_and(|vectors| vectors.profile() == graph.profile())
        };
        let graph = graph.filter(fits);
        Self { flat, graph }
    }

    /// Returns the exact index of the same vectors.
    pub fn flat(&self) -> &FlatIndex {
        &self.flat
    }

    /// Returns true if a search for the `k` nearest of the `live` documents uses the graph, unless too many of its
    /// candidates are not live.
    pub fn uses_graph(&self, live: &RoaringBitmap, k: usize) -> bool {
        self.graph
            .as_ref()
            .is_some_and(|graph| self.n_candidates(graph, live, k).is_some())
    }

    /// Returns the number of candidates to search for. Returns `None` if a scan is faster.
    fn n_candidates(&self, graph: &GraphFile, live: &RoaringBitmap, k: usize) -> Option<usize> {
        let n_live = live.range_cardinality(0..graph.n_docs());
        // About n_live / n_docs of the candidates are live.
        let needed = (k as u64).saturating_mul(EF_PER_2_RESULTS * u64::from(graph.n_docs())) / (2 * n_live.max(1));
        let ef = needed.max(graph.ef() as u64);
        let row_bytes = self.flat.segments().first()?.vectors.row_bytes() as u64;
        let is_faster = graph_cost(ef, graph.n_unlinked() as u64, row_bytes) < n_live * row_bytes;
        (graph.ef() > 0 && k > 0 && ef <= MAX_EF as u64 && is_faster).then_some(ef as usize)
    }

    /// Returns the best live documents among `ef` candidates, best first. Returns `None` if a scan could find better ones,
    /// or if there is no graph.
    pub fn search_graph(
        &self,
        query: &[f32],
        live: &RoaringBitmap,
        k: usize,
        ef: usize,
    ) -> Result<Option<Vec<(u32, Cosine)>>, DenseError> {
        let (Some(unit), Some(graph)) = (self.flat.unit(query)?, &self.graph) else {
            return Ok(None);
        };
        let found = self.best_by_graph(graph, &unit, live, k, ef);
        Ok(found.map(|found| found.into_iter().map(|(doc, cosine)| (doc, Cosine(cosine))).collect()))
    }

    /// Adds the best of the documents that the graph lacks.
    fn with_later(
        &self,
        query: &[f32],
        live: &RoaringBitmap,
        k: usize,
        found: Vec<(u32, Cosine)>,
    ) -> Result<Vec<(u32, Cosine)>, DenseError> {
        let first = self.graph.as_ref().map_or(0, GraphFile::n_docs);
        let Some(unit) = self.flat.unit(query)? else {
            return Ok(found);
        };
        let mut all: Vec<(u32, f32)> = found.into_iter().map(|(doc, cosine)| (doc, cosine.0)).collect();
        all.extend(self.flat.best_from(first, &unit, live, k));
        let best = top_k::best(all, k).into_iter();
        Ok(best.map(|(doc, cosine)| (doc, Cosine(cosine))).collect())
    }

    fn best_by_graph(
        &self,
        graph: &GraphFile,
        unit: &[f32],
        live: &RoaringBitmap,
        k: usize,
        ef: usize,
    ) -> Option<Vec<(u32, f32)>> {
        let scorer = self.flat.scorer(unit);
        let mut docs = graph.candidates(&scorer, ef);
        docs.retain(|doc| live.contains(*doc));
        let mut cosines = vec![0.0; docs.len()];
        scorer.score(&docs, &mut cosines);
        let found = top_k::best(docs.into_iter().zip(cosines).collect(), k);
        // Zero vectors are not in the graph, but their cosine 0 is higher than negative cosines.
        let is_whole = found.len() == k && found.last().is_some_and(|&(_, cosine)| cosine > 0.0);
        is_whole.then_some(found)
    }
}

impl DenseIndex for HnswIndex {
    fn search(&self, query: &[f32], live: &RoaringBitmap, k: usize) -> Result<Vec<(u32, Cosine)>, DenseError> {
        let ef = self.graph.as_ref().and_then(|graph| self.n_candidates(graph, live, k));
        let by_graph = match ef {
            Some(ef) => self.search_graph(query, live, k, ef)?,
            None => None,
        };
        let Some(found) = by_graph else {
            return self.flat.search(query, live, k);
        };
        self.with_later(query, live, k, found)
    }
}

/// Number of candidates per two results. For 262,144 code chunks, 1,024 candidates contain 0.97 of the best 200 and 0.99
/// of the best 10; 512 contain 0.94 and 0.976.
const EF_PER_2_RESULTS: u64 = 8;

/// Number of vectors that are scored per candidate.
const SCORED_PER_CANDIDATE: u64 = 24;
/// The cost of reaching a vector at a random position, in bytes that a scan reads in that time.
const SCATTERED_BYTES: u64 = 1536;

/// Returns the cost of a search in a graph, in bytes that a scan reads in that time. 1.2 to 1.8 times the cost measured
/// with 60,000 vectors.
fn graph_cost(ef: u64, n_unlinked: u64, row_bytes: u64) -> u64 {
    (ef * SCORED_PER_CANDIDATE + n_unlinked) * (SCATTERED_BYTES + row_bytes)
}

/// Returns the number of documents that a new graph should have. Returns `None` if no graph is worthwhile, or if the
/// documents that the present graph of `known` documents lacks are few.
pub fn worthwhile(flat: &FlatIndex, known: Option<u32>, limits: GraphLimits) -> Option<u32> {
    let row_bytes = flat.segments().first()?.vectors.row_bytes() as u64;
    let (n_docs, known) = (flat.end_doc().min(limits.max_docs), known.unwrap_or_default());
    let n_new = n_docs.saturating_sub(known);
    let is_slow = u64::from(n_new) * row_bytes >= limits.min_bytes;
    (is_slow && n_new > known / MIN_NEW_SHARE).then_some(n_docs)
}

/// A graph is replaced if it lacks more than one in this number of its documents.
const MIN_NEW_SHARE: u32 = 10;

/// Number of insertions between two checks of the interrupt flag.
const INSERTIONS_PER_LOOK: usize = 64;

/// Builds the graph of the first `n_docs` documents and runs its trial. Returns the content of its file. The same vectors
/// give the same graph. If there are fewer than two distinct vectors, or if the graph fails the trial, the graph has no
/// points, so that it is not built again; these documents are scanned. Takes minutes for a few 100,000 documents.
pub fn build_graph(flat: &FlatIndex, n_docs: u32, interrupt: &AtomicBool) -> Result<Vec<u8>, GraphBuildError> {
    let (points, same) = distinct(flat, n_docs);
    let first = flat.segments().first().map(|segment| &segment.vectors);
    let mut graph = Graph {
        profile: first.map_or(ProfileId([0; 16]), VectorFile::profile),
        ..Graph::without_points(n_docs)
    };
    if points.len() < 2 {
        return Ok(graph.to_bytes());
    }
    let distance = DocDistance { flat: flat.clone() };
    let hnsw = Hnsw::new(M, points.len(), MAX_LAYERS, EF_CONSTRUCTION, distance);
    for batch in shuffled(points.clone()).chunks(INSERTIONS_PER_LOOK) {
        if interrupt.load(Ordering::Relaxed) {
            return Err(GraphBuildError::Interrupted);
        }
        batch.iter().for_each(|&doc| hnsw.insert((&point(doc), doc as usize)));
    }
    graph.ef = EF_SEARCH as u32;
    graph.same = same;
    let mut levels: Vec<(u8, u32)> = Vec::with_capacity(points.len());
    for point in hnsw.get_point_indexation() {
        let doc = point.get_origin_id() as u32;
        levels.push((point.get_point_id().0, doc));
        let lowest = point.get_neighborhood_id().into_iter().next().unwrap_or_default();
        let mut near: Vec<u32> = lowest.iter().map(|neighbour| neighbour.d_id as u32).collect();
        near.sort_unstable();
        graph.neighbours[doc as usize] = near;
    }
    drop(hnsw);
    levels.sort_unstable_by(|a, b| b.cmp(a));
    link(&mut graph, &points, &levels);
    let recall = pass_trial(&mut graph, flat, &points, interrupt)?;
    let (n_unlinked, ef) = (graph.unlinked.len(), graph.ef);
    tracing::debug!(
        n_docs,
        n_distinct = points.len(),
        n_unlinked,
        ef,
        recall,
        "vector graph built"
    );
    if recall < TRIAL_RECALL {
        graph = Graph {
            profile: graph.profile,
            ..Graph::without_points(n_docs)
        };
    }
    Ok(graph.to_bytes())
}

/// Sets the hubs, which are the points of the highest levels, and the points that cannot be reached from the first.
fn link(graph: &mut Graph, points: &[u32], levels: &[(u8, u32)]) {
    let Some(&(_, entry)) = levels.first() else { return };
    let mut is_reached = vec![false; graph.neighbours.len()];
    is_reached[entry as usize] = true;
    let mut waiting = VecDeque::from([entry]);
    while let Some(doc) = waiting.pop_front() {
        for &near in &graph.neighbours[doc as usize] {
            if !std::mem::replace(&mut is_reached[near as usize], true) {
                waiting.push_back(near);
            }
        }
    }
    graph.unlinked = points
        .iter()
        .copied()
        .filter(|&doc| !is_reached[doc as usize])
        .collect();
    let highest = levels
        .iter()
        .take(MAX_HUBS)
        .filter(|(level, doc)| *level > 0 || *doc == entry);
    graph.hubs = highest
        .map(|(_, doc)| *doc)
        .filter(|&doc| is_reached[doc as usize])
        .collect();
    graph.hubs.sort_unstable();
}

const TRIAL_QUERIES: usize = 200;
const TRIAL_K: usize = 10;
const TRIAL_RECALL: f32 = 0.98;

/// Compares the results of the graph with those of a scan, and raises `ef` until the recall is sufficient. Returns the
/// recall.
///
/// Each query is the sum of one vector and half of another. For 20,000 code chunks and 32 to 256 candidates, the recall
/// for these queries was within 0.01 of the recall for commit subjects. Vectors alone would be too easy, and midpoints
/// between two vectors too hard.
fn pass_trial(
    graph: &mut Graph,
    flat: &FlatIndex,
    points: &[u32],
    interrupt: &AtomicBool,
) -> Result<f32, GraphBuildError> {
    let file = GraphFile::from_bytes(Path::new("new graph"), graph.to_bytes())?;
    let live = RoaringBitmap::from_sorted_iter(points.iter().copied()).unwrap_or_default();
    let step = (points.len() / TRIAL_QUERIES).max(1);
    let mut trial = Vec::new();
    for i in 0..TRIAL_QUERIES.min(points.len()) {
        if interrupt.load(Ordering::Relaxed) {
            return Err(GraphBuildError::Interrupted);
        }
        let (one, other) = (
            points[i * step % points.len()],
            points[(i * step * 7 + points.len() / 2) % points.len()],
        );
        let query = leaning(flat, one, other);
        let truth = flat.best_from(0, &query, &live, TRIAL_K);
        trial.push((query, truth));
    }
    loop {
        let recall = |(query, truth): &(Vec<f32>, Vec<(u32, f32)>)| {
            let found = file.candidates(&flat.scorer(query), graph.ef as usize);
            let hits = truth.iter().filter(|(doc, _)| found.contains(doc)).count();
            hits as f32 / truth.len().max(1) as f32
        };
        let recall = trial.iter().map(recall).sum::<f32>() / trial.len() as f32;
        if recall >= TRIAL_RECALL || graph.ef >= MAX_EF as u32 {
            return Ok(recall);
        }
        graph.ef = (graph.ef * 2).min(MAX_EF as u32);
    }
}

/// Computes the distance between two documents: 2 - cosine. Quantisation errors never make it negative.
struct DocDistance {
    flat: FlatIndex,
}

impl Distance<u8> for DocDistance {
    fn eval(&self, a: &[u8], b: &[u8]) -> f32 {
        let row = |point: &[u8]| self.flat.row_of(u32::from_le_bytes(point.try_into().ok()?));
        let cosine = row(a).zip(row(b)).map_or(0.0, |(a, b)| row_and_row(a, b));
        (2.0 - cosine).max(0.0)
    }
}

fn row_and_row(a: (&VectorFile, usize), b: (&VectorFile, usize)) -> f32 {
    let (codes_a, codes_b) = (a.0.row(a.1), b.0.row(b.1));
    let sum = match a.0.quantisation() {
        Quantisation::Int4 => kernel::int4_pair(codes_a, codes_b),
        Quantisation::Int8 => kernel::int8_pair(codes_a, codes_b),
    };
    let factor = |(vectors, row): (&VectorFile, usize)| half::decode(vectors.factors().get(row));
    sum as f32 * factor(a) * factor(b)
}

/// Encodes a document number as a point of the graph, in four bytes.
fn point(doc: u32) -> [u8; 4] {
    doc.to_le_bytes()
}

/// Returns the first document of each distinct vector, ascending, and pairs of these and others with the same vector.
/// Omits zero vectors.
fn distinct(flat: &FlatIndex, n_docs: u32) -> (Vec<u32>, Vec<(u32, u32)>) {
    let mut first_of: HashMap<&[u8], u32> = HashMap::new();
    let (mut points, mut same) = (Vec::new(), Vec::new());
    for doc in 0..n_docs {
        let Some((vectors, row)) = flat
            .row_of(doc)
            .filter(|(vectors, row)| vectors.has_vector(*row as u32))
        else {
            continue;
        };
        let first = *first_of.entry(vectors.row(row)).or_insert(doc);
        if first == doc {
            points.push(doc);
        } else {
            same.push((first, doc));
        }
    }
    same.sort_unstable();
    (points, same)
}

/// Shuffles the documents. The order depends only on their number. Neighbouring chunks of a file are similar, and
/// inserting them in that order gives worse long-distance edges.
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

/// Returns the direction of the sum of one document's vector and half of another's.
fn leaning(flat: &FlatIndex, one: u32, other: u32) -> Vec<f32> {
    let [one, other] = [one, other].map(|doc| flat.vector(doc).unwrap_or_default());
    let sum: Vec<f32> = one.iter().zip(&other).map(|(a, b)| a + 0.5 * b).collect();
    unit_query(&sum).ok().flatten().unwrap_or(one)
}

#[cfg(test)]
mod tests;
