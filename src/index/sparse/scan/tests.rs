#![expect(clippy::unwrap_used, reason = "tests")]

use std::path::Path;

use proptest::prelude::*;

use super::*;
use crate::embed::ProfileId;
use crate::index::sparse::SparseWriter;

const PROFILE: ProfileId = ProfileId([7; 16]);

fn vector(terms: &[(u32, f32)]) -> SparseVector {
    SparseVector::from_foreign(terms.to_vec(), "m").unwrap()
}

fn file(rows: &[Option<SparseVector>]) -> Vec<u8> {
    let mut writer = SparseWriter::new(PROFILE);
    for row in rows {
        match row {
            Some(row) => writer.push(row).unwrap(),
            None => writer.push_none().unwrap(),
        }
    }
    writer.finish()
}

fn open(bytes: Vec<u8>) -> SparseFile {
    SparseFile::from_bytes(Path::new("sample"), bytes).unwrap()
}

#[test]
fn what_is_written_is_read() {
    let rows = [
        Some(vector(&[(3, 2.0), (70_000, 0.5)])),
        None,
        Some(SparseVector::default()),
        Some(vector(&[(1, 1e-9)])),
    ];
    let file = open(file(&rows));
    file.verify().unwrap();
    assert_eq!((file.len(), file.profile(), file.is_empty()), (4, PROFILE, false));
    assert_eq!(
        [0, 1, 2, 3, 4].map(|row| file.has(row)),
        [true, false, true, true, false]
    );
    let terms: Vec<(u32, f32)> = file.terms(0).collect();
    assert_eq!((terms[0].0, terms[1].0), (3, 70_000));
    assert!(
        (terms[0].1 - 2.0).abs() < 1e-4 && (terms[1].1 - 0.5).abs() < 2.0 / 255.0,
        "{terms:?}"
    );
    assert_eq!([1, 2, 4].map(|row| file.terms(row).count()), [0, 0, 0]);
    let mut copy = SparseWriter::new(PROFILE);
    (0..4).for_each(|row| copy.copy_row(&file, row).unwrap());
    assert!(copy.copy_row(&file, 4).is_err());
    assert_eq!(copy.finish(), self::file(&rows));
    assert!((file.cosine(0, &file, 0).unwrap() - 1.0).abs() < 1e-6);
    assert_eq!((file.cosine(0, &file, 3), file.cosine(0, &file, 2)), (Some(0.0), None));
}

proptest! {
    #![proptest_config(crate::support::properties(256))]

    #[test]
    fn the_best_are_those_of_a_plain_product(
        rows in prop::collection::vec(prop::option::of(prop::collection::btree_map(0u32..40, 0.01f32..3.0, 0..12)), 1..80),
        query in prop::collection::btree_map(0u32..50, 0.01f32..3.0, 0..8),
        split in 0usize..80,
        k in 1usize..20,
    ) {
        let rows: Vec<Option<SparseVector>> =
            rows.into_iter().map(|row| row.map(|row| vector(&row.into_iter().collect::<Vec<_>>()))).collect();
        let query = vector(&query.into_iter().collect::<Vec<_>>());
        let split = split.min(rows.len());
        let files = [open(file(&rows[split..])), open(file(&rows[..split]))];
        let (first, second) = (10, 10 + split as u32);
        let index = SparseIndex::new(vec![(second, files[0].clone()), (first, files[1].clone())]);
        let docs: Vec<u32> = (first..first + rows.len() as u32).collect();
        let plain = |doc: u32| -> f32 {
            let (file, row) = if doc < second { (&files[1], doc - first) } else { (&files[0], doc - second) };
            let weight = |token| query.terms().iter().find(|(known, _)| *known == token).map(|(_, weight)| *weight);
            file.terms(row).filter_map(|(token, found)| Some(weight(token)? * found)).sum()
        };
        for doc in &docs {
            prop_assert!((index.impact(&query, *doc).0 - plain(*doc)).abs() < 1e-3);
        }
        prop_assert_eq!([0, 9, 1000].map(|doc| index.impact(&query, doc)), [Impact(0.0); 3]);
        let live: RoaringBitmap = docs.iter().copied().filter(|doc| doc % 3 != 0).collect();
        let found = index.search(&query, &live, k);
        let mut all: Vec<(u32, f32)> = live.iter().map(|doc| (doc, index.impact(&query, doc).0)).collect();
        all.retain(|(_, impact)| *impact > 0.0);
        all.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        all.truncate(k);
        prop_assert_eq!(found.iter().map(|(doc, impact)| (*doc, impact.0)).collect::<Vec<_>>(), all);
    }

    #[test]
    fn damage_is_found_and_breaks_nothing(at in 0usize..600, bit in 0u8..8) {
        let rows: Vec<_> = (0..9u32).map(|row| (row % 4 > 0).then(|| vector(&[(row, 1.0), (row + 5, 0.3)]))).collect();
        let mut bytes = file(&rows);
        let at = at % bytes.len();
        bytes[at] ^= 1 << bit;
        if let Ok(file) = SparseFile::from_bytes(Path::new("sample"), bytes) {
            prop_assert!(file.verify().is_err());
            (0..20).for_each(|row| _ = file.terms(row).count());
            let (index, query) = (SparseIndex::new(vec![(0, file)]), vector(&[(3, 1.0), (8, 2.0)]));
            index.search(&query, &(0..20).collect(), 5);
            (0..20).for_each(|doc| _ = index.impact(&query, doc));
        }
    }
}

#[test]
fn cut_and_strange_files_are_refused() {
    let bytes = file(&[Some(vector(&[(3, 2.0)]))]);
    for end in 0..bytes.len() {
        assert!(
            SparseFile::from_bytes(Path::new("sample"), bytes[..end].to_vec()).is_err(),
            "{end}"
        );
    }
    let longer = [&bytes[..], &[0]].concat();
    assert!(open(longer).verify().is_err());
}
