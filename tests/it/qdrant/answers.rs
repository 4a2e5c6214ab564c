//! Tests that answers are the same as with the local index.

use std::collections::BTreeMap;

use codescout::query::Mode;
use codescout::snapshot::View;
use roaring::RoaringBitmap;

use super::{index, large_project, with_qdrant};
use crate::cli::call_in;
use crate::indexed::{Indexed, MODES, NEVER};
use crate::remote::configure;
use crate::support::TestRepo;
use crate::support::qdrant::QdrantStub;

/// A deterministic pseudorandom number generator.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// Returns the cosines of the stored vectors with a query, by document.
fn brute_force(view: &View, query: &[f32]) -> BTreeMap<u32, f32> {
    let mut cosines = BTreeMap::new();
    let norm = query.iter().map(|x| x * x).sum::<f32>().sqrt();
    for segment in view.segments().iter() {
        let vectors = segment.vectors.as_ref().unwrap();
        for row in (0..vectors.len()).filter(|&row| vectors.weight(row) > 0.0) {
            let vector = vectors.vector(row).unwrap();
            let dot: f32 = vector.iter().zip(query).map(|(x, y)| x * y).sum();
            cosines.insert(segment.base_doc + row, dot / norm);
        }
    }
    cosines
}

#[test]
fn the_nearest_of_any_documents_are_those_of_a_comparison_one_by_one() {
    let repo = large_project(60);
    let qdrant = QdrantStub::start();
    configure(&repo, &with_qdrant(&qdrant.url()));
    index(&repo);
    let indexed = Indexed::new(repo.root());
    let view = indexed.view("HEAD");
    let elsewhere = indexed
        .workspace
        .vector_sharing()
        .elsewhere(&view, &NEVER)
        .unwrap()
        .unwrap();
    let all: Vec<u32> = elsewhere.holds.iter().collect();
    assert!(all.len() > 500, "{} documents", all.len());
    let mut dice = Dice(7);
    for n_live in [1, 7, 200, 256, 257, 300, 450, all.len()] {
        for k in [1, 10, 200] {
            let mut live = RoaringBitmap::new();
            while live.len() < n_live as u64 {
                live.insert(all[dice.below(all.len() as u64) as usize]);
            }
            // A document number that does not exist, and one of an uncommitted file.
            live.insert(u32::MAX - 1);
            let text = format!("read field {} from the tail", dice.below(13));
            let query = indexed
                .workspace
                .models
                .embedder()
                .embed_query(&text, &NEVER)
                .unwrap()
                .vector;
            qdrant.stub().forget();
            let found = elsewhere.index.search(&query, &live, k).unwrap();
            let requests = qdrant.stub().requests();
            assert!(requests.len() <= 3, "{n_live} {k}: {} requests", requests.len());
            let n_bytes: usize = requests.iter().map(|seen| seen.body.len()).max().unwrap();
            assert!(n_bytes < 20_000, "{n_live} {k}: {n_bytes} bytes");

            let cosines = brute_force(&view, &query);
            let mut expected: Vec<f32> = cosines
                .iter()
                .filter(|(doc, _)| live.contains(**doc))
                .map(|(_, cosine)| *cosine)
                .collect();
            expected.sort_by(|a, b| b.total_cmp(a));
            expected.truncate(k);
            assert_eq!(found.len(), expected.len(), "{n_live} {k}");
            for ((doc, cosine), expected) in found.iter().zip(&expected) {
                assert!(live.contains(*doc), "{n_live} {k}: {doc} is not live");
                assert!((cosine.0 - cosines[doc]).abs() < 1e-5, "{n_live} {k}: {doc}");
                assert!(
                    (cosine.0 - expected).abs() < 1e-5,
                    "{n_live} {k}: {cosine:?} for {expected}"
                );
            }
            let in_order = found
                .windows(2)
                .all(|pair| (pair[1].1.0, pair[0].0) <= (pair[0].1.0, pair[1].0));
            assert!(in_order, "{n_live} {k}: {found:?}");
        }
    }
}

#[test]
fn answers_are_those_of_the_local_index_at_any_revision_and_repositories_do_not_mix() {
    let qdrant = QdrantStub::start();
    let (repo, other) = (large_project(50), large_project(48));
    for file in 0..20 {
        repo.remove(format!("part_{}/file_{file}.rs", file % 6));
    }
    repo.commit("fewer");
    repo.write("part_0/file_21.rs", "pub fn changed() {}\n");
    let queries = ["read field 3 from the tail", "take bytes of a record", "read_field_250"];
    let ask = |repo: &TestRepo| -> Vec<_> {
        let indexed = Indexed::new(repo.root());
        let references = ["HEAD", "HEAD~1", "WORKTREE"];
        let views = references.into_iter().filter(|name| {
            repo.try_git(["rev-parse", "-q", "--verify", &name.replace("WORKTREE", "HEAD")])
                .status
                .success()
        });
        views
            .map(|name| indexed.answers(&indexed.view(name), &queries))
            .collect()
    };
    let before = [ask(&repo), ask(&other)];
    for repo in [&repo, &other] {
        configure(repo, &with_qdrant(&qdrant.url()));
        call_in(repo.root(), &["index", "--quiet", "HEAD"], b"").expect(0);
    }
    // The server has no vectors of commits that are at no tip, so half of the documents of the older revision are
    // compared locally.
    assert_eq!((qdrant.collections().len(), qdrant.repositories().len()), (1, 2));
    qdrant.stub().forget();
    let after = [ask(&repo), ask(&other)];
    assert!(qdrant.n_asked("/points/query/batch") >= queries.len() * 3);
    for (before, after) in before.iter().flatten().flatten().zip(after.iter().flatten().flatten()) {
        after.assert_same(before, "with a Qdrant");
    }
    assert!(before[0][0].len() == queries.len() * MODES.len());
    let notes = Indexed::new(repo.root());
    let notes = notes
        .try_search(&notes.view("HEAD"), Mode::Semantic, queries[0])
        .unwrap()
        .notes;
    assert_eq!(notes, Vec::<String>::new());
}
