//! Tests vectors that one clone uploads and another one fetches.

use std::time::Duration;

use serde_json::{Value, json};

use super::{
    DIM, QUERIES, answers, found, index, large_project, openai_stub, project, search, why, with_embedder, with_qdrant,
    write_packet,
};
use crate::cli::{call_in, spawn_in};
use crate::remote::configure;
use crate::support::model::{openai, texts_of};
use crate::support::qdrant::QdrantStub;
use crate::support::{Reply, Stub, TestRepo, kill, wait_for_end, wait_until};

#[test]
fn what_is_indexed_is_shared_and_questions_are_answered_by_it() {
    let repo = project(30);
    let before = answers(&repo);
    let qdrant = QdrantStub::start();
    configure(&repo, &with_qdrant(&qdrant.url()));
    let done = index(&repo).json();
    assert_eq!(
        (
            &done["shared"]["new"],
            &done["shared"]["missing"],
            &done["shared"]["chunks"]
        ),
        (&json!(30), &json!(0), &json!(30)),
        "{done}"
    );
    assert_eq!(qdrant.n_vectors(), 30);
    // There is one collection and one repository in it, and nothing reveals the repository's name.
    let collections = qdrant.collections();
    assert_eq!(collections.len(), 1);
    let (name, made) = collections.iter().next().unwrap();
    assert!(name.starts_with("codescout-") && name.ends_with("-1"), "{name}");
    assert_eq!(made["config"]["vectors"]["dense"]["distance"], "Cosine");
    assert!(made["config"]["sparse_vectors"].is_null(), "nobody has any: {made}");
    assert_eq!(
        made["indexed"][0]["field_schema"],
        json!({ "type": "keyword", "is_tenant": true })
    );
    assert_eq!(qdrant.repositories().len(), 1);
    for payload in qdrant.payloads() {
        let names: Vec<&str> = payload.keys().map(String::as_str).collect();
        assert!(names == ["repository"] || names == ["generation"], "{payload:?}");
    }

    qdrant.stub().forget();
    for (query, before) in QUERIES.iter().zip(&before) {
        let answer = search(&repo, query);
        assert_eq!((&answer["complete"], why(&answer)), (&json!(true), String::new()));
        assert_eq!(&answer["results"], before, "{query}");
    }
    assert_eq!(qdrant.n_asked("/points/query/batch"), QUERIES.len());
    assert_eq!(qdrant.stub().requests().len(), QUERIES.len());

    // Nothing is uploaded twice.
    qdrant.stub().forget();
    let again = index(&repo).json();
    assert_eq!(
        (&again["shared"]["new"], &again["shared"]["found"]),
        (&json!(0), &json!(0))
    );
    assert_eq!(
        qdrant.n_asked("/points"),
        1,
        "the repository's own point: {:?}",
        qdrant.stub().requests()
    );
    write_packet(&repo, 77);
    repo.commit("one more");
    assert_eq!(index(&repo).json()["shared"]["new"], 1);
}

#[test]
fn another_clone_takes_vectors_without_asking_the_embedder() {
    let embedder = openai_stub();
    let qdrant = QdrantStub::start();
    let repo = project(12);
    let clone = repo.clone_with("clone", &[]);
    let settings = with_embedder(&embedder) + &with_qdrant(&qdrant.url());
    configure(&repo, &settings);
    let done = index(&repo).json();
    assert_eq!(
        (&done["vectors"]["new"], &done["vectors"]["taken"]),
        (&json!(12), &json!(0))
    );
    assert_eq!(done["shared"]["new"], 12);

    embedder.forget();
    configure(&clone, &settings);
    write_packet(&clone, 50);
    clone.commit("mine");
    let done = index(&clone).json();
    assert_eq!(
        (
            &done["vectors"]["new"],
            &done["vectors"]["taken"],
            &done["vectors"]["missing"]
        ),
        (&json!(1), &json!(12), &json!(0)),
        "{done}"
    );
    let sent: Vec<String> = embedder.requests().iter().flat_map(texts_of).collect();
    assert_eq!(sent.len(), 2, "the probe and what is new: {sent:?}");
    assert_eq!(
        (&done["shared"]["new"], &done["shared"]["found"]),
        (&json!(1), &json!(12))
    );
    assert_eq!(qdrant.repositories().len(), 1, "both are one repository");

    // The vectors are the same, so the answers equal those of the clone that computed them.
    write_packet(&repo, 50);
    repo.commit("theirs");
    embedder.forget();
    let done = index(&repo).json();
    assert_eq!(
        (&done["vectors"]["new"], &done["vectors"]["taken"]),
        (&json!(0), &json!(1))
    );
    assert!(embedder.requests().is_empty());
    for query in QUERIES {
        assert_eq!(found(&repo, query), found(&clone, query), "{query}");
    }
}

#[test]
fn killed_in_the_middle_what_was_put_is_not_put_again() {
    let repo = large_project(130);
    let qdrant = QdrantStub::start();
    let settings = with_qdrant(&qdrant.url()).replace("scan_below", "in_flight = 1\nscan_below");
    configure(&repo, &settings);
    call_in(repo.root(), &["index", "--quiet"], b"").expect(0);
    let n_vectors = qdrant.n_vectors();
    assert!(n_vectors > 1000, "{n_vectors}");
    let put = |qdrant: &QdrantStub| -> Vec<usize> {
        let requests = qdrant.stub().requests();
        let puts = requests
            .iter()
            .filter(|seen| seen.method == "PUT" && seen.path.contains("/points?"));
        let counts = puts.map(|seen| {
            assert!(seen.body.len() < 4 << 20, "{} bytes", seen.body.len());
            let points = seen.json()["points"].as_array().cloned().unwrap_or_default();
            points
                .iter()
                .filter(|point| !point["vector"]["dense"].is_null())
                .count()
        });
        counts.filter(|&n| n > 0).collect()
    };
    assert_eq!(put(&qdrant).iter().sum::<usize>(), n_vectors);

    qdrant.drop_all();
    qdrant.stub().forget();
    let n_put = std::sync::atomic::AtomicUsize::new(0);
    qdrant.fail(move |seen| {
        let is_put = seen.method == "PUT" && seen.path.contains("/points?") && seen.body.len() > 10_000;
        let is_second = is_put && n_put.fetch_add(1, std::sync::atomic::Ordering::SeqCst) == 1;
        is_second.then(|| Reply::status(200).after(Duration::from_secs(600)))
    });
    let mut child = spawn_in(repo.root(), &["index", "--quiet"]);
    wait_until("two batches are put", || put(&qdrant).len() >= 2);
    kill(&mut child);
    let n_first = put(&qdrant)[0];
    qdrant.mend();
    qdrant.stub().forget();
    let done = index(&repo).json();
    assert_eq!(done["shared"]["missing"], 0, "{done}");
    assert_eq!(put(&qdrant).iter().sum::<usize>(), n_vectors - n_first);
    assert_eq!(qdrant.n_vectors(), n_vectors);
}

#[test]
fn vectors_of_another_model_or_broken_ones_are_not_taken() {
    let embedder = openai_stub();
    let other = Stub::start(|seen| {
        let texts = texts_of(seen);
        let data = texts.iter().enumerate().map(|(index, text)| {
            let mut vector = crate::support::model::vector_of(text, DIM);
            vector.reverse();
            json!({ "index": index, "embedding": vector })
        });
        Reply::json(&json!({ "data": data.collect::<Vec<Value>>() }))
    });
    let qdrant = QdrantStub::start();
    let repo = project(8);
    configure(&repo, &(with_embedder(&embedder) + &with_qdrant(&qdrant.url())));
    assert_eq!(index(&repo).json()["shared"]["new"], 8);

    // A clone with another model computes its own vectors and does not share them.
    let clone = repo.clone_with("other", &[]);
    configure(&clone, &with_embedder(&other));
    index(&clone);
    write_packet(&clone, 30);
    clone.commit("new");
    configure(&clone, &(with_embedder(&other) + &with_qdrant(&qdrant.url())));
    let done = index(&clone).json();
    assert_eq!(
        (
            &done["vectors"]["taken"],
            &done["vectors"]["new"],
            &done["shared"]["new"]
        ),
        (&json!(0), &json!(1), &json!(0))
    );
    assert!(
        done["shared"]["stopped_because"]
            .as_str()
            .unwrap()
            .contains("a different vector for the same text"),
        "{done}"
    );
    assert_eq!(qdrant.n_vectors(), 8);

    // The server returns invalid vectors, so the embedder is used.
    for (number, vector) in [
        ("short", json!([1.0, 2.0])),
        ("text", json!(["a"])),
        ("huge", json!(vec![1e39; DIM])),
        ("zero", json!(vec![0.0; DIM])),
    ] {
        let clone = repo.clone_with(number, &[]);
        configure(&clone, &(with_embedder(&embedder) + &with_qdrant(&qdrant.url())));
        qdrant.fail(move |seen| {
            let body = seen.json();
            let ids = body["ids"].as_array()?;
            if body["with_vector"] != json!(["dense"]) || ids.len() < 2 {
                return None;
            }
            let found = ids.iter().map(|id| json!({ "id": id, "vector": { "dense": vector } }));
            Some(Reply::json(&json!({ "result": found.collect::<Vec<_>>() })))
        });
        let done = index(&clone).json();
        assert_eq!(
            (&done["vectors"]["taken"], &done["vectors"]["new"]),
            (&json!(0), &json!(8)),
            "{number}: {done}"
        );
        let notes = done["vectors"]["notes"].to_string();
        assert!(notes.contains("were not fetched"), "{number}: {notes}");
        qdrant.mend();
    }
}

#[test]
fn with_a_key_that_may_only_read_vectors_are_taken_and_asked_for() {
    let embedder = openai_stub();
    let qdrant = QdrantStub::start();
    let repo = project(9);
    let settings = with_embedder(&embedder) + &with_qdrant(&qdrant.url());
    configure(&repo, &settings);
    index(&repo);
    let clone = repo.clone_with("reader", &[]);
    configure(&clone, &settings);
    write_packet(&clone, 60);
    clone.commit("mine");
    qdrant.fail(|seen| (seen.method == "PUT").then(|| Reply::status(403)));
    let done = index(&clone).json();
    assert_eq!(
        (&done["vectors"]["taken"], &done["vectors"]["new"]),
        (&json!(9), &json!(1)),
        "{done}"
    );
    assert_eq!(
        (&done["shared"]["found"], &done["shared"]["missing"]),
        (&json!(9), &json!(1)),
        "{done}"
    );
    assert!(
        done["shared"]["stopped_because"].as_str().unwrap().contains("403"),
        "{done}"
    );
    qdrant.stub().forget();
    assert_eq!(why(&search(&clone, "packet 60")), "");
    assert_eq!(qdrant.n_asked("/points/query/batch"), 1);
}

#[test]
fn a_shallow_clone_has_to_be_told_whose_it_is() {
    let qdrant = QdrantStub::start();
    let repo = project(5);
    for number in 10..13 {
        write_packet(&repo, number);
        repo.commit("more");
    }
    configure(&repo, &with_qdrant(&qdrant.url()));
    index(&repo);
    let first = repo.git(["rev-list", "--max-parents=0", "HEAD"]);
    let doctor = call_in(repo.root(), &["doctor"], b"").text();
    assert!(
        doctor.contains(&first) && doctor.contains("Qdrant 1.18.3") && doctor.contains("8 vectors"),
        "{doctor}"
    );
    let clone = repo.clone_with("shallow", &["--depth=1"]);
    configure(&clone, &with_qdrant(&qdrant.url()));
    let done = index(&clone).json();
    assert!(
        done["shared"]["stopped_because"]
            .as_str()
            .unwrap()
            .contains("shallow clone"),
        "{done}"
    );
    assert_eq!(why(&search(&clone, "packet")), "");
    call_in(clone.root(), &["config", "set", "qdrant.repository", &first], b"").expect(0);
    let done = index(&clone).json();
    assert_eq!(
        (&done["shared"]["new"], &done["shared"]["found"]),
        (&json!(0), &json!(8)),
        "{done}"
    );
    assert_eq!(qdrant.repositories().len(), 1);
}

#[test]
fn clones_that_begin_together_share_the_work() {
    // The embedder is slow enough for all clones to work at the same time.
    let embedder = Stub::start(|seen| openai(seen, DIM).after(Duration::from_millis(30)));
    let qdrant = QdrantStub::start();
    let repo = project(96);
    let settings = (with_embedder(&embedder) + &with_qdrant(&qdrant.url())).replace("in_flight = 1", "in_flight = 2");
    let clones: Vec<TestRepo> = (0..4).map(|n| repo.clone_with(&format!("clone_{n}"), &[])).collect();
    for clone in &clones {
        // All clones are indexed in advance, so that they compute vectors at the same time.
        call_in(clone.root(), &["index"], b"").expect(0);
        configure(clone, &settings);
    }
    let children = clones.iter().map(|clone| spawn_in(clone.root(), &["index", "--quiet"]));
    for mut child in children.collect::<Vec<_>>() {
        assert!(wait_for_end(&mut child).success());
    }
    let sent: Vec<String> = embedder.requests().iter().flat_map(texts_of).collect();
    let n_documents = sent.iter().filter(|text| text.contains("pub fn")).count();
    // Two clones that claim the same chunk at the same moment may both embed it.
    assert!((96..=112).contains(&n_documents), "{n_documents} texts for 96 chunks");
    assert_eq!(qdrant.n_vectors(), 96);
    for clone in &clones {
        let status = call_in(clone.root(), &["status", "--json"], b"").expect(0).json();
        assert_eq!(
            (&status["vectors"]["missing"], &status["shared"]["missing"]),
            (&json!(0), &json!(0)),
            "{status}"
        );
    }
    assert_eq!(qdrant.age_claims(0), 0, "all are taken back");
    let answers: Vec<Value> = clones.iter().map(|clone| found(clone, QUERIES[0])).collect();
    assert!(answers.iter().all(|answer| *answer == answers[0]));
}

#[test]
fn what_is_made_is_there_at_once_and_a_clone_that_was_killed_keeps_nobody_waiting() {
    let n_asked = std::sync::atomic::AtomicUsize::new(0);
    let embedder = Stub::start(move |seen| {
        let delay = match n_asked.fetch_add(1, std::sync::atomic::Ordering::SeqCst) {
            // The third batch after the probe never completes.
            3 => Duration::from_secs(600),
            _ => Duration::ZERO,
        };
        openai(seen, DIM).after(delay)
    });
    for keep_local in ["", "keep_local = false\n"] {
        let qdrant = QdrantStub::start();
        let repo = project(20);
        let settings = with_embedder(&embedder) + &with_qdrant(&qdrant.url()) + keep_local;
        configure(&repo, &settings);
        if keep_local.is_empty() {
            let mut child = spawn_in(repo.root(), &["index", "--quiet"]);
            wait_until("three batches are asked for", || embedder.requests().len() >= 4);
            kill(&mut child);
            assert_eq!(qdrant.n_vectors(), 8, "two batches of four");
            assert_eq!(qdrant.age_claims(3600), 1);
        }
        // Another clone fetches the uploaded vectors and computes the others, including claimed ones.
        let clone = repo.clone_with("clone", &[]);
        configure(&clone, &settings);
        let done = index(&clone).json();
        let n_made = if keep_local.is_empty() { 12 } else { 20 };
        assert_eq!(
            (
                &done["vectors"]["new"],
                &done["vectors"]["missing"],
                &done["shared"]["missing"]
            ),
            (&json!(n_made), &json!(0), &json!(0)),
            "{done}"
        );
        assert_eq!(done["shared"]["new"], n_made, "{done}");
        assert_eq!((qdrant.n_vectors(), qdrant.age_claims(0)), (20, 0));
    }
}

#[test]
fn a_server_that_takes_no_claims_does_not_stop_the_work() {
    let (embedder, qdrant) = (openai_stub(), QdrantStub::start());
    let repo = project(12);
    configure(&repo, &(with_embedder(&embedder) + &with_qdrant(&qdrant.url())));
    qdrant.fail(|seen| seen.path.contains("/points/payload?").then(|| Reply::status(500)));
    let done = index(&repo).json();
    assert_eq!(
        (
            &done["vectors"]["new"],
            &done["shared"]["new"],
            &done["shared"]["missing"]
        ),
        (&json!(12), &json!(12), &json!(0)),
        "{done}"
    );
}
