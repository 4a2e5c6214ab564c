#![expect(clippy::unwrap_used, reason = "tests")]

use std::path::Path;

use proptest::prelude::*;

use super::super::quantise::Quantisation;
use super::super::writer::VectorWriter;
use super::*;
use crate::embed::ProfileId;

const PROFILE: ProfileId = ProfileId([1; 16]);

/// Returns a unit vector for a row. Rows 2i and 2i + 1 have equal vectors. Every tenth row is zero.
fn vector(row: u32, dim: usize) -> Vec<f32> {
    let mut state = u64::from(row / 2).wrapping_mul(0x9e37_79b9_7f4a_7c15) + 1;
    let raw: Vec<f32> = std::iter::repeat_with(|| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    })
    .take(dim)
    .collect();
    let norm = if row % 10 == 9 {
        f32::INFINITY
    } else {
        raw.iter().map(|x| x * x).sum::<f32>().sqrt()
    };
    raw.iter().map(|x| x / norm).collect()
}

fn file(rows: Range<u32>, dim: usize, quantisation: Quantisation, profile: ProfileId) -> VectorFile {
    let mut writer = VectorWriter::new(dim, quantisation, profile).unwrap();
    rows.for_each(|row| writer.push(&vector(row, dim), row as f32).unwrap());
    VectorFile::from_bytes(Path::new("vectors"), writer.finish()).unwrap()
}

/// Returns an index of the documents 0..700 and 1000..1300. The segments have different quantisations.
fn sample(dim: usize) -> FlatIndex {
    let segments = vec![
        (1000, file(700..1000, dim, Quantisation::Int8, PROFILE)),
        (0, file(0..700, dim, Quantisation::Int4, PROFILE)),
        (900, file(0..0, dim, Quantisation::Int8, PROFILE)),
    ];
    FlatIndex::new(segments).unwrap()
}

/// Computes the expected result: scores each live document separately, sorts and truncates.
fn naive(index: &FlatIndex, query: &[f32], live: &RoaringBitmap, k: usize) -> Vec<(u32, Cosine)> {
    let docs: Vec<u32> = live.iter().filter(|&doc| index.vector(doc).is_some()).collect();
    let mut all: Vec<_> = docs.iter().copied().zip(index.score(query, &docs).unwrap()).collect();
    all.sort_by(|a, b| b.1.0.total_cmp(&a.1.0).then(a.0.cmp(&b.0)));
    all.truncate(k);
    all
}

proptest! {
    #![proptest_config(crate::support::properties(40))]

    #[test]
    fn search_is_score_and_sort(
        singles in prop::collection::btree_set(0u32..1400, 0..60),
        runs in prop::collection::vec((0u32..1400, 1u32..300), 0..4),
        query in 0u32..5000,
        k in 0usize..80,
        dim in 1usize..80,
    ) {
        let index = sample(dim);
        let mut live: RoaringBitmap = singles.into_iter().collect();
        for (start, len) in runs {
            live.insert_range(start..start + len);
        }
        let query = vector(query * 10, dim);
        let found = index.search(&query, &live, k).unwrap();
        prop_assert_eq!(&found, &naive(&index, &query, &live, k));
    }
}

#[test]
fn scores_are_near_the_true_cosines() {
    let index = sample(64);
    let query = vector(2468, 64);
    let cosine = |row: u32| vector(row, 64).iter().zip(&query).map(|(a, b)| a * b).sum::<f32>();
    let docs: Vec<u32> = (0..700).chain(1000..1300).collect();
    for (&doc, found) in docs.iter().zip(index.score(&query, &docs).unwrap()) {
        let (row, tolerance) = if doc < 700 { (doc, 0.05) } else { (doc - 300, 0.003) };
        assert!((found.0 - cosine(row)).abs() < tolerance, "{doc}: {found:?}");
    }
}

#[test]
fn many_threads_give_the_same_answer() {
    let n = PARALLEL_DOCS as u32 + 70_000;
    let index = FlatIndex::new(vec![(5, file(0..n, 8, Quantisation::Int4, PROFILE))]).unwrap();
    let query = vector(10, 8);
    let live: RoaringBitmap = (0..n + 50).filter(|doc| doc % 29 != 0).collect();
    assert_eq!(
        index.search(&query, &live, 300).unwrap(),
        naive(&index, &query, &live, 300)
    );
}

#[test]
fn a_document_finds_itself_by_its_vector() {
    let index = sample(48);
    let live = RoaringBitmap::from_iter(0..2000);
    for doc in [0, 244, 696, 1002, 1296] {
        let found = index.search(&index.vector(doc).unwrap(), &live, 2).unwrap();
        // Rows have equal vectors in pairs, and the lower document is first.
        assert_eq!(found[0].0, doc);
        assert!(found[0].1.0 > 0.97);
        assert_eq!(found[1], (doc + 1, found[0].1));
    }
}

#[test]
fn bad_queries_are_errors_and_zero_ones_find_nothing() {
    let (index, live) = (sample(4), RoaringBitmap::from_iter(0..2000));
    assert!(matches!(
        index.search(&[1.0; 3], &live, 1),
        Err(DenseError::Dimension { found: 3, expected: 4 })
    ));
    assert!(matches!(
        index.search(&[f32::NAN, 0.0, 0.0, 0.0], &live, 1),
        Err(DenseError::NotFinite)
    ));
    assert_eq!(index.search(&[0.0; 4], &live, 5).unwrap(), []);
    assert_eq!(index.search(&[1.0; 4], &RoaringBitmap::new(), 5).unwrap(), []);
    let large = index.search(&[3e38; 4], &live, 5).unwrap();
    assert_eq!(large, index.search(&[1.0; 4], &live, 5).unwrap());
    assert_eq!(
        FlatIndex::new(Vec::new()).unwrap().search(&[1.0], &live, 5).unwrap(),
        []
    );
}

#[test]
fn segments_that_do_not_fit_are_refused() {
    let part = |profile| file(0..10, 4, Quantisation::Int4, ProfileId([profile; 16]));
    let joined = |second: (u32, VectorFile)| FlatIndex::new(vec![(0, part(1)), second]).err();
    assert!(matches!(
        joined((9, part(1))),
        Some(DenseError::Overlap { base_doc: 9 })
    ));
    assert!(matches!(
        joined((u32::MAX - 5, part(1))),
        Some(DenseError::Overlap { .. })
    ));
    assert!(matches!(
        joined((10, part(2))),
        Some(DenseError::Profile { base_doc: 10 })
    ));
    assert!(joined((10, part(1))).is_none());
}
