#![expect(clippy::unwrap_used, reason = "tests")]

use std::path::Path;

use super::super::writer::VectorWriter;
use super::*;
use crate::embed::ProfileId;
use crate::support::is_long;

const DIM: usize = 32;

/// Returns `n_vectors` in a long run, else a quarter.
fn sized(n_vectors: u32) -> u32 {
    if is_long() { n_vectors } else { n_vectors / 4 }
}

/// Returns pseudo-random numbers between -1 and 1 that depend only on the seed.
fn noise(seed: u64) -> impl Iterator<Item = f32> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x1234_5678;
    std::iter::repeat_with(move || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    })
}

/// Returns a point near one of `n_centres` centres.
fn clustered(seed: u64, n_centres: u64) -> Vec<f32> {
    let raw = noise(seed % n_centres + 1_000_000)
        .zip(noise(seed))
        .map(|(centre, own)| centre + 0.6 * own)
        .take(DIM)
        .collect();
    unit(raw)
}

fn unit(mut raw: Vec<f32>) -> Vec<f32> {
    let norm = raw.iter().map(|x| x * x).sum::<f32>().sqrt();
    raw.iter_mut().for_each(|x| *x /= norm);
    raw
}

fn flat(vectors: impl Iterator<Item = Vec<f32>>, quantisation: Quantisation) -> FlatIndex {
    let mut writer = VectorWriter::new(DIM, quantisation, ProfileId([3; 16])).unwrap();
    vectors.for_each(|vector| writer.push(&vector, 1.0).unwrap());
    FlatIndex::new(vec![(
        0,
        VectorFile::from_bytes(Path::new("vectors"), writer.finish()).unwrap(),
    )])
    .unwrap()
}

fn options(threshold: usize) -> HnswOptions {
    HnswOptions {
        threshold,
        ..HnswOptions::default()
    }
}

fn build(flat: FlatIndex, threshold: usize) -> HnswIndex {
    let index = HnswIndex::build(flat, &options(threshold), &AtomicBool::new(false)).unwrap();
    assert_eq!(index.n_graphs(), 1);
    index
}

/// Returns the share of the scan's results that the graph also finds. Asserts that the graph is used and that its
/// scores equal those of the scan.
fn recall(index: &HnswIndex, live: &RoaringBitmap, k: usize, queries: impl Iterator<Item = Vec<f32>>) -> f64 {
    let (mut hits, mut all) = (0, 0);
    let (segment, graph) = (&index.flat.segments()[0], index.graphs[0].as_ref().unwrap());
    for query in queries {
        let query = unit(query);
        assert!(graph.best_of(segment, &query, live, k, index.threshold).is_some());
        let found = index.search(&query, live, k).unwrap();
        assert!(found.iter().all(|(doc, _)| live.contains(*doc)));
        let truth = index.flat.search(&query, live, k).unwrap();
        hits += truth.iter().filter(|hit| found.contains(hit)).count();
        all += truth.len();
    }
    hits as f64 / all as f64
}

#[test]
fn clustered_vectors_are_found() {
    let n = sized(3000);
    for quantisation in [Quantisation::Int4, Quantisation::Int8] {
        let vectors = (0..n).map(|seed| clustered(seed.into(), 40));
        let index = build(flat(vectors, quantisation), n as usize / 6);
        let all = RoaringBitmap::from_iter(0..n);
        let found = recall(&index, &all, 10, (0..100).map(|seed| clustered(50_000 + seed, 40)));
        assert!(found >= 0.95, "{quantisation:?} {found}");
        let half = RoaringBitmap::from_iter((0..n).filter(|doc| doc / 40 % 5 < 3));
        let found = recall(&index, &half, 10, (0..100).map(|seed| clustered(60_000 + seed, 40)));
        assert!(found >= 0.95, "{quantisation:?} filtered {found}");
    }
}

#[test]
fn duplicates_hide_nothing() {
    // Two fifths are equal, a tenth differs slightly, the others are ordinary vectors with some zero vectors between them.
    let n = sized(5000);
    let (n_equal, half) = (u64::from(n) * 2 / 5, u64::from(n) / 2);
    let vector = |i: u64| match i {
        _ if i < n_equal => clustered(1, 1),
        _ if i < half => unit(
            clustered(1, 1)
                .into_iter()
                .zip(noise(i))
                .map(|(x, own)| x + 0.001 * own)
                .collect(),
        ),
        _ if i.is_multiple_of(50) => vec![0.0; DIM],
        _ => clustered(i, 200),
    };
    let index = build(flat((0..n.into()).map(vector), Quantisation::Int8), n as usize / 10);
    let all = RoaringBitmap::from_iter(0..n);
    let found = recall(&index, &all, 10, (0..100).map(|seed| clustered(90_000 + seed, 200)));
    assert!(found >= 0.95, "{found}");
    let found = recall(
        &index,
        &all,
        10,
        (half + 1..half + 100).filter(|i| i % 50 != 0).map(vector),
    );
    assert!(found >= 0.95, "{found}");
    let equal = index.search(&clustered(1, 1), &all, 20).unwrap();
    assert_eq!(equal, index.flat.search(&clustered(1, 1), &all, 20).unwrap());
}

#[test]
fn what_the_graph_cannot_answer_is_scanned() {
    let n = sized(3000);
    let vectors = (0..n).map(|seed| clustered(seed.into(), 30));
    let index = build(flat(vectors, Quantisation::Int4), n as usize / 3);
    let query = clustered(77_777, 30);
    let opposite: Vec<f32> = query.iter().map(|x| -x).collect();
    let (all, few) = (
        RoaringBitmap::from_iter(0..n),
        RoaringBitmap::from_iter((0..n).step_by(n as usize / 30)),
    );
    let cases = [
        (&query, &few, 5),
        (&query, &all, n as usize - 10),
        (&query, &all, 0),
        (&query, &few, 100),
        (&opposite, &few, 3),
    ];
    for (query, live, k) in cases {
        assert_eq!(
            index.search(query, live, k).unwrap(),
            index.flat.search(query, live, k).unwrap()
        );
    }
}

#[test]
fn a_filter_that_hides_the_neighbourhood_costs_no_recall() {
    let n = sized(4000);
    let vectors = (0..n).map(|seed| clustered(seed.into(), 20));
    let index = build(flat(vectors, Quantisation::Int4), n as usize / 4);
    // Whole clusters are not live, including those of the queries.
    let live = RoaringBitmap::from_iter((0..n).filter(|doc| doc % 20 < 10));
    for seed in (0..200).filter(|seed| seed % 20 >= 10) {
        let query = clustered(40_000 + seed, 20);
        assert_eq!(
            index.search(&query, &live, 10).unwrap(),
            index.flat.search(&query, &live, 10).unwrap()
        );
    }
}

#[test]
fn small_segments_get_no_graph_and_answer_all_the_same() {
    let flat = flat((0..50).map(|seed| clustered(seed, 5)), Quantisation::Int4);
    let index = HnswIndex::build(flat.clone(), &HnswOptions::default(), &AtomicBool::new(false)).unwrap();
    assert_eq!(index.n_graphs(), 0);
    let (query, all) = (clustered(7, 5), RoaringBitmap::from_iter(0..50));
    assert_eq!(
        index.search(&query, &all, 5).unwrap(),
        flat.search(&query, &all, 5).unwrap()
    );
    assert!(matches!(
        index.search(&[1.0], &all, 5),
        Err(DenseError::Dimension { found: 1, .. })
    ));
}

#[test]
fn a_graph_serves_only_the_vectors_it_was_built_from() {
    let [one, other] =
        [0, 9000].map(|from| flat((from..from + 400).map(|seed| clustered(seed, 5)), Quantisation::Int4));
    let graph = SegmentGraph::build(&one.segments()[0].vectors, &options(1), &AtomicBool::new(false)).unwrap();
    let graphs = vec![(0, Arc::new(graph))];
    assert_eq!(HnswIndex::new(one, graphs.clone(), 1).n_graphs(), 1);
    assert_eq!(HnswIndex::new(other, graphs, 1).n_graphs(), 0);
}

#[test]
fn building_is_repeatable_and_can_be_interrupted() {
    let vectors = (0..sized(1500)).map(|seed| clustered(seed.into(), 20));
    let flat = flat(vectors, Quantisation::Int4);
    let vectors = &flat.segments()[0].vectors;
    let stop = SegmentGraph::build(vectors, &options(1), &AtomicBool::new(true));
    assert!(matches!(stop, Err(BuildError::Interrupted)));
    let [one, other] = [(); 2].map(|()| SegmentGraph::build(vectors, &options(1), &AtomicBool::new(false)).unwrap());
    let query = clustered(5555, 20);
    assert_eq!(one.candidates(&query, 64), other.candidates(&query, 64));
}

#[test]
fn equal_and_zero_vectors_alone_make_no_graph() {
    for vector in [vec![0.0; DIM], clustered(1, 1)] {
        let flat = flat((0..300).map(|_| vector.clone()), Quantisation::Int8);
        let built = SegmentGraph::build(&flat.segments()[0].vectors, &options(1), &AtomicBool::new(false));
        assert!(matches!(built, Err(BuildError::TooFew)));
    }
}
