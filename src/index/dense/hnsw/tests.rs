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

fn indexed(flat: &FlatIndex) -> HnswIndex {
    let bytes = build_graph(flat, flat.end_doc(), &AtomicBool::new(false)).unwrap();
    let graph = GraphFile::from_bytes(Path::new("graph"), bytes).unwrap();
    graph.verify().unwrap();
    let index = HnswIndex::new(flat.clone(), Some(graph));
    assert!(index.graph.is_some());
    index
}

/// Returns the share of the scan's results that the graph also finds. Asserts that its scores equal those of the scan.
fn recall(index: &HnswIndex, live: &RoaringBitmap, k: usize, queries: impl Iterator<Item = Vec<f32>>) -> f64 {
    let (mut hits, mut all) = (0, 0);
    for query in queries {
        let found = index.search_graph(&query, live, k, EF_SEARCH).unwrap().unwrap();
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
        let index = indexed(&flat(vectors, quantisation));
        let all = RoaringBitmap::from_iter(0..n);
        let found = recall(&index, &all, 10, (0..100).map(|seed| clustered(50_000 + seed, 40)));
        assert!(found >= 0.98, "{quantisation:?} {found}");
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
    let index = indexed(&flat((0..n.into()).map(vector), Quantisation::Int8));
    let all = RoaringBitmap::from_iter(0..n);
    let found = recall(&index, &all, 10, (0..100).map(|seed| clustered(90_000 + seed, 200)));
    assert!(found >= 0.95, "{found}");
    let others = (half + 1..half + 100).filter(|i| i % 50 != 0);
    let found = recall(&index, &all, 10, others.map(vector));
    assert!(found >= 0.95, "{found}");
    let equal = index.search_graph(&clustered(1, 1), &all, 20, EF_SEARCH).unwrap();
    assert_eq!(equal.unwrap(), index.flat.search(&clustered(1, 1), &all, 20).unwrap());
}

#[test]
fn what_the_graph_cannot_answer_is_left_to_the_scan() {
    let n = sized(3000);
    let index = indexed(&flat((0..n).map(|seed| clustered(seed.into(), 30)), Quantisation::Int4));
    let query = clustered(77_777, 30);
    let opposite: Vec<f32> = query.iter().map(|x| -x).collect();
    let all = RoaringBitmap::from_iter(0..n);
    let few = RoaringBitmap::from_iter((0..n).step_by(n as usize / 30));
    for (query, live, k) in [(&query, &few, 25), (&opposite, &few, 3)] {
        assert_eq!(index.search_graph(query, live, k, 8).unwrap(), None);
    }
    for (query, live, k) in [(&query, &few, 25), (&opposite, &few, 3), (&query, &all, 0)] {
        assert_eq!(
            index.search(query, live, k).unwrap(),
            index.flat.search(query, live, k).unwrap()
        );
    }
    assert!(matches!(
        index.search(&[1.0], &all, 5),
        Err(DenseError::Dimension { found: 1, .. })
    ));
}

#[test]
fn a_filter_that_hides_the_neighbourhood_costs_no_recall() {
    let n = sized(4000);
    let index = indexed(&flat((0..n).map(|seed| clustered(seed.into(), 20)), Quantisation::Int4));
    // Whole clusters are not live, including those of the queries.
    let live = RoaringBitmap::from_iter((0..n).filter(|doc| doc % 20 < 10));
    for seed in (0..200).filter(|seed| seed % 20 >= 10) {
        let query = clustered(40_000 + seed, 20);
        let truth = index.flat.search(&query, &live, 10).unwrap();
        let found = index.search_graph(&query, &live, 10, EF_SEARCH).unwrap();
        assert!(found.is_none_or(|found| found == truth), "{seed}");
    }
}

#[test]
fn a_graph_serves_only_the_vectors_it_was_built_from() {
    let vectors = |n: u64| (0..n).map(|seed| clustered(seed, 5));
    let graph = indexed(&flat(vectors(300), Quantisation::Int4)).graph;
    let fewer = flat(vectors(200), Quantisation::Int4);
    assert!(HnswIndex::new(fewer, graph.clone()).graph.is_none());
    let mut writer = VectorWriter::new(DIM, Quantisation::Int4, ProfileId([4; 16])).unwrap();
    vectors(300).for_each(|vector| writer.push(&vector, 1.0).unwrap());
    let other = VectorFile::from_bytes(Path::new("other"), writer.finish()).unwrap();
    let other = FlatIndex::new(vec![(0, other)]).unwrap();
    assert!(HnswIndex::new(other, graph).graph.is_none());
}

#[test]
fn later_documents_are_scanned() {
    let n = sized(3000);
    let vectors = || (0..n + 50).map(|seed| clustered(seed.into(), 30));
    let (part, whole) = (
        flat(vectors().take(n as usize), Quantisation::Int4),
        flat(vectors(), Quantisation::Int4),
    );
    let index = HnswIndex::new(whole, indexed(&part).graph);
    let all = RoaringBitmap::from_iter(0..n + 50);
    for seed in n..n + 50 {
        let query = clustered(seed.into(), 30);
        let found = index.search_graph(&query, &all, 10, 256).unwrap().unwrap();
        assert!(found.iter().all(|(doc, _)| *doc < n));
        let found = index.with_later(&query, &all, 10, found).unwrap();
        assert_eq!(found[0], index.flat.search(&query, &all, 1).unwrap()[0]);
    }
}

/// A graph pays for millions of the built-in model's vectors, for fewer large vectors, and not if few are live.
#[test]
fn the_faster_way_is_chosen() {
    let pays = |n_live: u64, row_bytes: u64| graph_cost(500, 0, row_bytes) < n_live * row_bytes;
    assert!(!pays(20_000, 128) && pays(1_000_000, 128));
    assert!(!pays(5_000, 1024) && pays(100_000, 1024));
    let flat = flat((0..200).map(|seed| clustered(seed, 5)), Quantisation::Int4);
    let index = indexed(&flat);
    assert!(!index.uses_graph(&RoaringBitmap::from_iter(0..200), 10));
    let n_bytes = 200 * flat.segments()[0].vectors.row_bytes() as u64;
    let limits = |min_bytes, max_docs| GraphLimits { min_bytes, max_docs };
    assert_eq!(worthwhile(&flat, None, limits(n_bytes, 1000)), Some(200));
    assert_eq!(worthwhile(&flat, None, limits(n_bytes + 1, 1000)), None);
    assert_eq!(worthwhile(&flat, Some(100), limits(n_bytes, 1000)), None);
    assert_eq!(worthwhile(&flat, None, limits(1, 150)), Some(150));
    assert_eq!(worthwhile(&flat, Some(190), limits(1, 1000)), None);
    assert_eq!(worthwhile(&flat, Some(180), limits(1, 1000)), Some(200));
}

#[test]
fn building_is_repeatable_and_can_be_interrupted() {
    let vectors = (0..sized(1500)).map(|seed| clustered(seed.into(), 20));
    let flat = flat(vectors, Quantisation::Int4);
    let stop = build_graph(&flat, flat.end_doc(), &AtomicBool::new(true));
    assert!(matches!(stop, Err(GraphBuildError::Interrupted)));
    let [one, other] = [(); 2].map(|()| build_graph(&flat, flat.end_doc(), &AtomicBool::new(false)).unwrap());
    assert_eq!(one, other);
}

#[test]
fn equal_and_zero_vectors_alone_make_no_graph() {
    for vector in [vec![0.0; DIM], clustered(1, 1)] {
        let flat = flat((0..300).map(|_| vector.clone()), Quantisation::Int8);
        let index = indexed(&flat);
        let all = RoaringBitmap::from_iter(0..300);
        assert!(!index.uses_graph(&all, 1));
        assert_eq!(index.search_graph(&clustered(1, 1), &all, 1, 64).unwrap(), None);
    }
}

/// A damaged file, and one whose checksums are valid but whose numbers are not, cost recall but nothing else.
#[test]
fn damaged_graphs_cause_no_panic() {
    let n = 300;
    let flat = flat((0..n).map(|seed| clustered(seed.into(), 5)), Quantisation::Int4);
    let good = build_graph(&flat, n, &AtomicBool::new(false)).unwrap();
    let candidates = |graph: &GraphFile| graph.candidates(&flat.scorer(&clustered(5, 5)), 16);
    let expected = candidates(&GraphFile::from_bytes(Path::new("graph"), good.clone()).unwrap());
    for at in (0..good.len()).step_by(101) {
        let mut bad = good.clone();
        bad[at] ^= 0x10;
        match GraphFile::from_bytes(Path::new("graph"), bad) {
            Err(error) => assert!(error.is_invalid(), "byte {at}: {error}"),
            // Bytes between sections are not read.
            Ok(graph) => assert_eq!(candidates(&graph), expected, "byte {at}"),
        }
    }
    let wild = Graph {
        ef: 64,
        profile: ProfileId([3; 16]),
        hubs: vec![0, 7, 5_000_000],
        neighbours: (0..n).map(|doc| vec![doc / 2, doc + 9, u32::MAX]).collect(),
        unlinked: vec![4_000_000_000],
        same: vec![(0, 900), (7, u32::MAX)],
    };
    let graph = GraphFile::from_bytes(Path::new("graph"), wild.to_bytes()).unwrap();
    assert!(graph.verify().is_err());
    let repeated = Graph {
        unlinked: vec![7; 5_000],
        same: vec![(7, 9); 20_000],
        ..Graph::without_points(n)
    };
    let repeated = GraphFile::from_bytes(Path::new("graph"), repeated.to_bytes()).unwrap();
    assert!(repeated.verify().is_err());
    assert_eq!(repeated.candidates(&flat.scorer(&clustered(5, 5)), 64), [7, 9]);
    let index = HnswIndex::new(flat, Some(graph));
    let all = RoaringBitmap::from_iter(0..n);
    let found = index.search_graph(&clustered(5, 5), &all, 3, 64).unwrap().unwrap();
    assert!(found.iter().all(|(doc, _)| *doc < n));
}
