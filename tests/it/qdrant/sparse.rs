//! Tests sparse vectors that clones share. They are independent of dense vectors, and answers equal those of the local
//! index.

use std::collections::BTreeMap;
use std::time::Duration;

use codescout::embed::{SparseEmbedder, SparseVector};
use codescout::query::Mode;
use codescout::snapshot::View;
use roaring::RoaringBitmap;
use serde_json::{Value, json};

use super::{
    QUERIES, index, large_project, openai_stub, places, project, search, why, with_embedder, with_qdrant, write_packet,
};
use crate::cli::call_in;
use crate::indexed::{Indexed, NEVER};
use crate::remote::configure;
use crate::support::model::{sparse_of, tei_sparse, texts_of};
use crate::support::qdrant::QdrantStub;
use crate::support::{Reply, Seen, Stub, TestRepo};

pub(super) fn with_sparse(stub: &Stub) -> String {
    format!(
        "[sparse]\nserver = '{}'\nmodel = 's'\nbatch = 4\nin_flight = 1\n",
        stub.url()
    )
}

/// Responds with many different weights, so that every bit of them matters.
fn uneven(seen: &Seen) -> Reply {
    if seen.path != "/embed_sparse" {
        return tei_sparse(seen);
    }
    let vector = |text: &String| -> Vec<Value> {
        let mut of_file = Vec::new();
        for (at, (token, weight)) in sparse_of(text).into_iter().enumerate() {
            let share = 1.0 / (1.0 + (at as f32 + text.len() as f32) * 0.137);
            of_file.push(json!({ "index": token, "value": weight * share }));
        }
        of_file
    };
    Reply::json(&json!(texts_of(seen).iter().map(vector).collect::<Vec<_>>()))
}

/// Returns the dot products of the documents of a view with a query.
fn brute_force(view: &View, query: &SparseVector) -> BTreeMap<u32, f32> {
    let mut impacts = BTreeMap::new();
    for segment in view.segments().iter() {
        let sparse = segment.sparse.as_ref().unwrap();
        for row in 0..sparse.len() {
            let weights: BTreeMap<u32, f32> = sparse.terms(row).collect();
            let shared = query.terms().iter();
            let sum = shared
                .filter_map(|(token, weight)| Some(weight * weights.get(token)?))
                .sum();
            impacts.insert(segment.base_doc + row, sum);
        }
    }
    impacts
}

#[test]
fn another_clone_takes_them_to_the_bit_and_asks_nobody() {
    let (dense, sparse, qdrant) = (openai_stub(), Stub::start(uneven), QdrantStub::start());
    let repo = project(12);
    let clone = repo.clone_with("clone", &[]);
    let settings = with_embedder(&dense) + &with_sparse(&sparse) + &with_qdrant(&qdrant.url());
    configure(&repo, &settings);
    let done = index(&repo).json();
    assert_eq!(
        (&done["shared"]["new"], &done["shared_sparse"]["new"]),
        (&json!(12), &json!(12)),
        "{done}"
    );
    assert_eq!((qdrant.n_vectors(), qdrant.n_sparse()), (12, 12));
    let collections = qdrant.collections();
    assert_eq!(collections.len(), 2, "each model has one of its own");
    let of_sparse = collections
        .values()
        .find(|made| made["config"]["vectors"] == json!({}))
        .unwrap();
    assert!(of_sparse["config"]["sparse_vectors"]["sparse"].is_object());

    sparse.forget();
    configure(&clone, &settings);
    let done = index(&clone).json();
    assert_eq!(
        (
            &done["sparse_vectors"]["taken"],
            &done["sparse_vectors"]["new"],
            &done["shared_sparse"]["found"]
        ),
        (&json!(12), &json!(0), &json!(12)),
        "{done}"
    );
    assert!(sparse.requests().is_empty());
    // Exactly the bytes of the clone that computed them.
    let rows = |repo: &TestRepo| -> BTreeMap<String, Vec<(u32, u32)>> {
        let view = Indexed::new(repo.root()).view("HEAD");
        let mut rows = BTreeMap::new();
        for segment in view.segments().iter() {
            let sparse = segment.sparse.as_ref().unwrap();
            for row in 0..sparse.len() {
                let terms = sparse.terms(row).map(|(token, weight)| (token, weight.to_bits()));
                rows.insert(format!("{:?}", segment.lexical.key(row)), terms.collect());
            }
        }
        rows
    };
    assert_eq!(rows(&clone), rows(&repo));
    let status = call_in(clone.root(), &["status"], b"").expect(0).text();
    assert!(status.contains("shared      12 sparse vectors by"), "{status}");
    let leaves = call_in(clone.root(), &["doctor", "--what-leaves"], b"")
        .expect(0)
        .text();
    assert!(leaves.contains("and the sparse vector of every chunk"), "{leaves}");
    let doctor = call_in(clone.root(), &["doctor"], b"").text();
    assert!(doctor.contains("12 sparse vectors of this repository"), "{doctor}");
    call_in(clone.root(), &["verify"], b"").expect(0);

    // Each clone adds a file, and nothing is uploaded twice.
    write_packet(&clone, 50);
    clone.commit("mine");
    let done = index(&clone).json();
    assert_eq!(
        (&done["shared_sparse"]["new"], &done["shared_sparse"]["found"]),
        (&json!(1), &json!(0)),
        "{done}"
    );
}

#[test]
fn the_best_of_any_documents_are_those_of_a_product_one_by_one() {
    let (sparse, qdrant) = (Stub::start(uneven), QdrantStub::start());
    let repo = large_project(60);
    configure(&repo, &(with_sparse(&sparse) + &with_qdrant(&qdrant.url())));
    index(&repo);
    let indexed = Indexed::new(repo.root());
    let view = indexed.view("HEAD");
    let elsewhere = indexed
        .workspace
        .vector_sharing()
        .sparse_elsewhere(&view, &NEVER)
        .unwrap()
        .unwrap();
    let all: Vec<u32> = elsewhere.holds.iter().collect();
    assert!(all.len() > 500, "{} documents", all.len());
    let model = indexed.workspace.models.remote_sparse().unwrap();
    for text in ["field 3 of the tail", "zorblax", "stream"] {
        let query = model.embed_query(text, &NEVER).unwrap();
        let impacts = brute_force(&view, &query);
        for (n_live, step) in [(7, 61), (200, 3), (300, 1), (all.len(), 1)] {
            for k in [1, 10, 200] {
                let mut live: RoaringBitmap = all.iter().step_by(step).take(n_live).copied().collect();
                live.insert(u32::MAX - 1);
                qdrant.stub().forget();
                let found = elsewhere.index.search(&query, &live, k).unwrap();
                assert!(qdrant.stub().requests().len() <= 4, "{text} {n_live} {k}");
                let mut expected: Vec<f32> = live.iter().filter_map(|doc| impacts.get(&doc).copied()).collect();
                expected.retain(|impact| *impact > 0.0);
                expected.sort_by(|a, b| b.total_cmp(a));
                expected.truncate(k);
                assert_eq!(found.len(), expected.len(), "{text} {n_live} {k}");
                for ((doc, impact), expected) in found.iter().zip(expected) {
                    assert!(live.contains(*doc), "{text} {n_live} {k}: {doc} is not live");
                    let about = format!("{text} {n_live} {k}: {impact:?} for {expected}");
                    assert!((impact.0 - expected).abs() <= 1e-5 * expected, "{about}");
                    assert!((impact.0 - impacts[doc]).abs() <= 1e-5 * expected, "{about}");
                }
            }
        }
    }
}

#[test]
fn answers_are_those_of_the_local_index_and_say_when_they_are_local() {
    let (dense, sparse, qdrant) = (openai_stub(), Stub::start(uneven), QdrantStub::start());
    let repo = large_project(45);
    repo.write(
        "src/hidden.rs",
        "/// Quuxify the input.\npub fn quuxify(input: &str) {}\n",
    );
    repo.commit("hidden");
    let local = with_embedder(&dense) + &with_sparse(&sparse);
    configure(&repo, &local);
    index(&repo);
    let queries = ["zorblax", "read field 3 from the tail", "take bytes of a record"];
    let ask = |repo: &TestRepo| {
        let indexed = Indexed::new(repo.root());
        indexed.answers(&indexed.view("HEAD"), &queries)
    };
    let before = ask(&repo);
    configure(&repo, &(local.clone() + &with_qdrant(&qdrant.url())));
    index(&repo);
    qdrant.stub().forget();
    for (before, after) in before.iter().zip(ask(&repo)) {
        after.assert_same(before, "with a Qdrant");
    }
    let asked_for = |using: &str| {
        let requests = qdrant.stub().requests();
        let searches = requests.iter().filter(|seen| seen.path.contains("/points/query/batch"));
        searches
            .filter(|seen| seen.json()["searches"][0]["using"] == using)
            .count()
    };
    // In the modes auto and hybrid.
    assert!(asked_for("sparse") >= 2 * queries.len(), "{}", asked_for("sparse"));
    assert!(asked_for("dense") >= 3 * queries.len());
    let n_bytes = qdrant.stub().requests().iter().map(|seen| seen.body.len()).max();
    assert!(n_bytes.unwrap() < 20_000, "{n_bytes:?}");

    // Only sparse searches fail.
    qdrant.fail(|seen| {
        let is_sparse = seen.json()["searches"][0]["using"] == "sparse";
        is_sparse.then(|| Reply::status(500))
    });
    let indexed = Indexed::new(repo.root());
    let outcome = indexed
        .try_search(&indexed.view("HEAD"), Mode::Auto, queries[1])
        .unwrap();
    assert!(
        outcome.notes.len() == 1 && outcome.notes[0].contains("compared the vectors locally"),
        "{:?}",
        outcome.notes
    );
    qdrant.fail(|_| Some(Reply::status(200).after(Duration::from_secs(600))));
    configure(
        &repo,
        &(local.clone() + &with_qdrant(&qdrant.url()).replace("20000", "1000")),
    );
    for (before, after) in before.iter().zip(ask(&repo)) {
        after.assert_same(before, "while it is slow");
    }
    qdrant.mend();
    // Lost vectors are detected by their number, because a sparse search may find few documents for other reasons.
    configure(&repo, &(local + &with_qdrant(&qdrant.url())));
    index(&repo);
    qdrant.lose_every(3);
    let answer = search(&repo, queries[0]);
    assert!(why(&answer).contains("vectors instead of the recorded"), "{answer}");
    let done = index(&repo).json();
    assert!(done["shared_sparse"]["new"].as_u64().unwrap() > 0, "{done}");
    assert_eq!(why(&search(&repo, queries[0])), "");
}

#[test]
fn what_is_removed_or_moved_or_of_another_model_is_so_for_sparse_ones_too() {
    let (sparse, qdrant) = (Stub::start(uneven), QdrantStub::start());
    let repo = project(10);
    let settings = with_sparse(&sparse) + &with_qdrant(&qdrant.url());
    configure(&repo, &settings);
    index(&repo);
    let clone = repo.clone_with("clone", &[]);
    configure(&clone, &settings);
    index(&clone);
    super::removal::forget_one(&repo);
    assert_eq!((qdrant.n_vectors(), qdrant.n_sparse()), (11, 11));
    let removed = call_in(repo.root(), &["gc", "--aggressive", "--qdrant", "--json"], b"").expect(0);
    let removed = removed.json()["shared"].clone();
    assert_eq!(
        (&removed["count"], &removed["removed"]),
        (&json!(2), &json!(true)),
        "one of each kind"
    );
    assert_eq!((qdrant.n_vectors(), qdrant.n_sparse()), (10, 10));
    let answer = search(&clone, QUERIES[0]);
    assert_eq!(
        why(&answer)
            .matches("since the last check: run codescout index")
            .count(),
        2,
        "{answer}"
    );
    index(&clone);
    assert_eq!(why(&search(&clone, QUERIES[0])), "");

    configure(&clone, &(settings.clone() + "shards = 2\n"));
    let moved = call_in(clone.root(), &["index", "--new-collection"], b"")
        .expect(0)
        .text();
    assert_eq!(moved.matches("vectors moved to").count(), 2, "{moved}");
    let before = places(&search(&clone, QUERIES[0]));
    assert_eq!(why(&search(&clone, QUERIES[0])), "");
    assert_eq!((qdrant.n_vectors(), qdrant.n_sparse()), (10, 10));
    index(&repo);
    assert_eq!(places(&search(&repo, QUERIES[0])), before);

    // Another model with the same name.
    let other = Stub::start(|seen| match seen.path.as_str() {
        "/embed_sparse" => {
            let vector = |text: &String| -> Vec<Value> {
                let terms = sparse_of(text).into_iter();
                terms
                    .map(|(token, value)| json!({ "index": 40_000 - token, "value": value }))
                    .collect()
            };
            Reply::json(&json!(texts_of(seen).iter().map(vector).collect::<Vec<_>>()))
        }
        _ => tei_sparse(seen),
    });
    let third = repo.clone_with("third", &[]);
    configure(&third, &with_sparse(&other));
    index(&third);
    write_packet(&third, 70);
    third.commit("new");
    configure(&third, &(with_sparse(&other) + &with_qdrant(&qdrant.url())));
    let done = index(&third).json();
    let stopped = done["shared_sparse"]["stopped_because"].as_str().unwrap();
    assert!(stopped.contains("a different vector for the same text"), "{done}");
    assert_eq!(done["sparse_vectors"]["taken"], 0, "{done}");
    // Qdrant returns invalid vectors, so the embedding server is used.
    for (number, (indices, values)) in [
        ("uneven", (json!([1, 2]), json!([1.0]))),
        ("negative", (json!([1]), json!([-1.0]))),
        ("infinite", (json!([1]), json!([1e39]))),
        ("twice", (json!([4, 4]), json!([1.0, 1.0]))),
        ("text", (json!(["a"]), json!([1.0]))),
    ] {
        let clone = repo.clone_with(number, &[]);
        configure(&clone, &settings);
        qdrant.fail(move |seen| {
            let body = seen.json();
            let ids = body["ids"].as_array()?;
            if body["with_vector"] != json!(["sparse"]) || ids.len() < 2 {
                return None;
            }
            let vector = json!({ "sparse": { "indices": indices, "values": values } });
            let found = ids.iter().map(|id| json!({ "id": id, "vector": vector }));
            Some(Reply::json(&json!({ "result": found.collect::<Vec<_>>() })))
        });
        let done = index(&clone).json();
        assert_eq!(
            (&done["sparse_vectors"]["taken"], &done["sparse_vectors"]["new"]),
            (&json!(0), &json!(10)),
            "{number}: {done}"
        );
        let notes = done["sparse_vectors"]["notes"].to_string();
        assert!(notes.contains("were not fetched"), "{number}: {notes}");
        qdrant.mend();
    }
}
