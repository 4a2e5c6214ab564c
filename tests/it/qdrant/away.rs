//! Tests vectors of a model on a server that are stored only on a Qdrant server.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use codescout::query::Mode;
use serde_json::{Value, json};

use super::{
    DIM, QUERIES, found, index, large_project, openai_stub, project, search, why, with_embedder, with_qdrant,
    write_packet,
};
use crate::cli::call_in;
use crate::indexed::Indexed;
use crate::remote::configure;
use crate::support::model::{openai, texts_of};
use crate::support::qdrant::QdrantStub;
use crate::support::{Reply, Stub, TestRepo};

fn away(url: &str) -> String {
    with_qdrant(url) + "keep_local = false\n"
}

/// Returns the number of local vector files, except those of the built-in model, and the number of parts.
fn n_local(repo: &TestRepo) -> (usize, usize) {
    let state = Indexed::new(repo.root()).state();
    let n_files = state.segments.iter().map(|entry| entry.vectors.len() - 1).sum();
    let names = std::fs::read_dir(repo.path(".codescout/dense-v1")).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    (n_files, names.filter(|name| name.ends_with(".part")).count())
}

fn n_documents(embedder: &Stub) -> usize {
    let sent: Vec<String> = embedder.requests().iter().flat_map(texts_of).collect();
    sent.iter().filter(|text| text.contains("pub fn")).count()
}

#[test]
fn nothing_of_them_stays_here_and_questions_are_answered_by_the_server() {
    let (embedder, qdrant) = (openai_stub(), QdrantStub::start());
    let repo = large_project(45);
    configure(&repo, &with_embedder(&embedder));
    let n_chunks = index(&repo).json()["vectors"]["new"].as_u64().unwrap();
    let queries = ["read field 3 from the tail", "take bytes of a record", "decode"];
    let ask = |repo: &TestRepo, mode: Mode, query: &str| {
        let indexed = Indexed::new(repo.root());
        let view = indexed.view("HEAD");
        let outcome = indexed.try_search(&view, mode, query).unwrap();
        assert_eq!(outcome.notes, Vec::<String>::new(), "{query}");
        let hits = outcome.hits.iter().map(|hit| (hit.places[0].start_line, hit.score));
        hits.collect::<Vec<_>>()
    };
    let before: Vec<_> = queries.iter().map(|query| ask(&repo, Mode::Semantic, query)).collect();
    assert!(n_local(&repo).0 > 0);

    // Existing local vectors are uploaded.
    configure(&repo, &(with_embedder(&embedder) + &away(&qdrant.url())));
    embedder.forget();
    let done = index(&repo).json();
    assert_eq!(
        (
            &done["shared"]["new"],
            &done["shared"]["chunks"],
            &done["vectors"]["new"]
        ),
        (&json!(n_chunks), &json!(n_chunks), &json!(0)),
        "{done}"
    );
    assert_eq!((n_local(&repo), n_documents(&embedder)), ((0, 0), 0));
    call_in(repo.root(), &["verify"], b"").expect(0);
    qdrant.stub().forget();
    for (query, before) in queries.iter().zip(&before) {
        let after = ask(&repo, Mode::Semantic, query);
        assert_eq!(after.len(), before.len(), "{query}");
        for ((_, score), (_, expected)) in after.iter().zip(before) {
            assert!((score - expected).abs() < 2e-3, "{query}: {score} for {expected}");
        }
        ask(&repo, Mode::Auto, query);
    }
    let requests = qdrant.stub().requests();
    assert!(requests.len() <= 10 * queries.len(), "{}", requests.len());
    assert!(requests.iter().all(|seen| seen.body.len() < 20_000));
    // New vectors are uploaded too.
    write_packet(&repo, 3);
    repo.git(["add", "--all"]);
    repo.commit("one more");
    let done = index(&repo).json();
    assert_eq!(
        (
            &done["vectors"]["new"],
            &done["shared"]["new"],
            &done["shared"]["missing"]
        ),
        (&json!(1), &json!(1), &json!(0)),
        "{done}"
    );
    assert_eq!(n_local(&repo), (0, 0));
    let status = call_in(repo.root(), &["status"], b"").expect(0).text();
    assert!(
        status.contains("stored only at") && !status.contains("have none"),
        "{status}"
    );

    // A garbage collection renumbers chunks, but no vector is requested again.
    for file in 0..15 {
        repo.remove(format!("part_{}/file_{file}.rs", file % 6));
    }
    repo.git(["add", "--all"]);
    repo.git(["commit", "--quiet", "--amend", "-m", "fewer"]);
    repo.git(["reflog", "expire", "--expire=now", "--all"]);
    repo.git(["update-ref", "-d", "ORIG_HEAD"]);
    index(&repo);
    call_in(repo.root(), &["gc", "--aggressive"], b"").expect(0);
    let answer = search(&repo, queries[0]);
    assert_eq!((&answer["complete"], why(&answer)), (&json!(true), String::new()));

    // Removing shared vectors does not request vectors again either.
    let first = repo.rev_parse("HEAD~1");
    call_in(repo.root(), &["config", "set", "qdrant.repository", &first], b"").expect(0);
    let removed = call_in(repo.root(), &["gc", "--aggressive", "--qdrant", "--json"], b"").expect(0);
    let removed = removed.json()["shared"].clone();
    assert!(
        removed["count"].as_u64().unwrap() > 100 && removed["removed"] == true,
        "{removed}"
    );
    assert_eq!(why(&search(&repo, queries[0])), "");
}

#[test]
fn other_clones_ask_nobody_and_who_keeps_them_again_takes_them_back() {
    let (embedder, qdrant) = (openai_stub(), QdrantStub::start());
    let repo = project(12);
    let settings = with_embedder(&embedder) + &away(&qdrant.url());
    configure(&repo, &settings);
    let done = index(&repo).json();
    assert_eq!(
        (&done["vectors"]["new"], &done["shared"]["new"]),
        (&json!(12), &json!(12)),
        "{done}"
    );
    assert_eq!(n_local(&repo), (0, 0));
    let clone = repo.clone_with("clone", &[]);
    configure(&clone, &settings);
    embedder.forget();
    let done = index(&clone).json();
    assert_eq!(
        (
            &done["vectors"]["new"],
            &done["vectors"]["missing"],
            &done["shared"]["found"]
        ),
        (&json!(0), &json!(0), &json!(12)),
        "{done}"
    );
    assert_eq!(n_documents(&embedder), 0);
    let answers: Vec<Value> = QUERIES.iter().map(|query| found(&clone, query)).collect();
    for (query, theirs) in QUERIES.iter().zip(&answers) {
        assert_eq!(&found(&repo, query), theirs, "{query}");
    }
    let export = call_in(clone.root(), &["export", "v.bundle", "--vectors"], b"").expect(2);
    assert!(
        export.stderr.contains("not stored locally") && export.stderr.contains("qdrant.keep_local true"),
        "{}",
        export.stderr
    );
    let doctor = call_in(clone.root(), &["doctor"], b"").text();
    assert!(doctor.contains("are stored only at"), "{doctor}");
    // The vector of the given chunk is fetched.
    let similar = ["search", "--mode", "similar", "src/packet_3.rs:2", "--json"];
    let answer = call_in(clone.root(), &similar, b"").json();
    assert!(
        why(&answer).is_empty() && !answer["results"].as_array().unwrap().is_empty(),
        "{answer}"
    );

    call_in(clone.root(), &["config", "set", "qdrant.keep_local", "true"], b"").expect(0);
    embedder.forget();
    let done = index(&clone).json();
    assert_eq!(
        (&done["vectors"]["taken"], &done["vectors"]["new"]),
        (&json!(12), &json!(0)),
        "{done}"
    );
    assert!(n_local(&clone).0 > 0 && n_documents(&embedder) == 0);
    drop(qdrant);
    let answer = search(&clone, QUERIES[0]);
    assert!(why(&answer).contains("compared the vectors locally"), "{answer}");
}

#[test]
fn while_the_server_is_away_the_built_in_model_judges_and_nothing_is_made() {
    let (embedder, qdrant) = (openai_stub(), QdrantStub::start());
    let repo = project(12);
    let built_in: Vec<Value> = QUERIES.iter().map(|query| found(&repo, query)).collect();
    let settings = with_embedder(&embedder) + &away(&qdrant.url()) + "timeout_s = 2\n";
    configure(&repo, &settings);
    index(&repo);
    assert_eq!(why(&search(&repo, QUERIES[0])), "");
    qdrant.fail(|_| Some(Reply::status(503)));
    for (query, expected) in QUERIES.iter().zip(&built_in) {
        let answer = search(&repo, query);
        assert!(why(&answer).contains("using the built-in model instead"), "{answer}");
        assert_eq!(&answer["results"], expected, "{query}");
    }
    let similar = ["search", "--mode", "similar", "src/packet_3.rs:2", "--json"];
    let answer = call_in(repo.root(), &similar, b"").json();
    assert!(why(&answer).contains("using the built-in model instead"), "{answer}");
    write_packet(&repo, 50);
    repo.commit("more");
    embedder.forget();
    let done = index(&repo).json();
    assert!(
        done["vectors"]["stopped_because"].as_str().unwrap().contains("503"),
        "{done}"
    );
    assert_eq!((&done["vectors"]["missing"], n_documents(&embedder)), (&json!(1), 0));
    // The server accepts no vectors. Local vectors remain until it does.
    qdrant.fail(|seen| {
        let is_vector = seen.method == "PUT" && seen.json()["points"][0]["vector"]["dense"].is_array();
        is_vector.then(|| Reply::status(500))
    });
    let done = index(&repo).json();
    assert_eq!(done["vectors"]["new"], 1, "{done}");
    assert!(
        done["shared"]["stopped_because"].as_str().unwrap().contains("500"),
        "{done}"
    );
    assert_eq!(n_local(&repo), (0, 1));
    let answer = search(&repo, "packet 50");
    assert!(why(&answer).contains("1 of 13 chunks have no vectors"), "{answer}");
    qdrant.mend();
    embedder.forget();
    let done = index(&repo).json();
    assert_eq!(
        (&done["vectors"]["new"], &done["shared"]["new"]),
        (&json!(0), &json!(1)),
        "{done}"
    );
    assert_eq!((n_local(&repo), n_documents(&embedder)), ((0, 0), 0));
    assert_eq!(why(&search(&repo, "packet 50")), "");

    // Vectors that the server has lost are computed again. Until then answers have a note.
    qdrant.lose_every(3);
    let answer = search(&repo, QUERIES[0]);
    assert!(why(&answer).contains("using the built-in model instead"), "{answer}");
    let done = index(&repo).json();
    assert_eq!(
        (&done["vectors"]["new"], &done["shared"]["new"]),
        (&json!(4), &json!(4)),
        "{done}"
    );
    assert_eq!(why(&search(&repo, QUERIES[0])), "");

    // One of several requests fails. The other results are still used.
    let n_asked = AtomicUsize::new(0);
    qdrant.fail(move |seen| {
        let is_search = seen.path.contains("/points/query/batch");
        let is_later = is_search && n_asked.fetch_add(1, Ordering::SeqCst) > 0;
        is_later.then(|| Reply::status(500).after(Duration::from_millis(1)))
    });
    let answer = search(&repo, "packet");
    assert!(!answer["results"].as_array().unwrap().is_empty(), "{answer}");
}

#[test]
fn a_small_part_of_a_large_repository_is_asked_for_by_name() {
    let (embedder, qdrant) = (openai_stub(), QdrantStub::start());
    let repo = large_project(50);
    configure(&repo, &(with_embedder(&embedder) + &away(&qdrant.url())));
    index(&repo);
    qdrant.crowd(17_000);
    index(&repo);
    qdrant.stub().forget();
    // More documents than are requested by id at once, but far fewer than the others.
    let args = ["search", "read field 3 from the tail", "--mode", "semantic", "--json"];
    let all = call_in(repo.root(), &args, b"").json();
    assert_eq!(why(&all), "");
    let narrow = [
        &args[..],
        &[
            "--path",
            "part_1/**",
            "--path",
            "part_2/**",
            "--path",
            "part_3/**",
            "--path",
            "part_4/**",
        ],
    ]
    .concat();
    let answer = call_in(repo.root(), &narrow, b"").json();
    assert_eq!((why(&answer), &answer["complete"]), (String::new(), &json!(true)));
    assert!(!answer["results"].as_array().unwrap().is_empty(), "{answer}");
    let requests = qdrant.stub().requests();
    let by_name = requests.iter().filter(|seen| {
        let searches = seen.json()["searches"][0].clone();
        searches["filter"]["must"]
            .as_array()
            .is_some_and(|must| must.len() == 2)
    });
    assert!(by_name.count() > 0);
    assert!(requests.iter().all(|seen| seen.body.len() < 20_000));
}

#[test]
fn what_is_nowhere_any_more_is_made_again() {
    let (embedder, qdrant, other) = (openai_stub(), QdrantStub::start(), QdrantStub::start());
    let repo = project(10);
    let configure_at = |qdrant: &QdrantStub| configure(&repo, &(with_embedder(&embedder) + &away(&qdrant.url())));
    configure_at(&qdrant);
    index(&repo);
    qdrant.drop_all();
    let answer = search(&repo, QUERIES[0]);
    assert!(why(&answer).contains("using the built-in model instead"), "{answer}");
    let recompute_batch = || {
        let done = index(&repo).json();
        assert_eq!(
            (&done["vectors"]["new"], &done["vectors"]["missing"]),
            (&json!(10), &json!(0)),
            "{done}"
        );
        assert_eq!(why(&search(&repo, QUERIES[0])), "");
    };
    recompute_batch();
    assert_eq!(qdrant.n_vectors(), 10);
    // Another server has no vectors of the repository either.
    configure_at(&other);
    recompute_batch();
    assert_eq!((qdrant.n_vectors(), other.n_vectors()), (10, 10));
}

#[test]
fn texts_of_which_nothing_is_made_leave_nothing_incomplete() {
    let embedder = Stub::start(|seen| {
        if texts_of(seen).iter().any(|text| text.contains("unspeakable")) {
            Reply::status(400)
        } else {
            openai(seen, DIM)
        }
    });
    let qdrant = QdrantStub::start();
    let repo = project(5);
    repo.write("blank.txt", "  \n\n\t\n");
    repo.write("src/odd.rs", "pub fn unspeakable() {}\n");
    repo.commit("odd ones");
    for settings in [away(&qdrant.url()), with_qdrant(&qdrant.url())] {
        configure(&repo, &(with_embedder(&embedder) + &settings));
        for is_first in [true, false] {
            embedder.forget();
            let done = index(&repo).json();
            assert_eq!(
                (&done["vectors"]["missing"], &done["shared"]["missing"]),
                (&json!(0), &json!(0)),
                "{settings}: {done}"
            );
            assert!(is_first || n_documents(&embedder) == 0, "{settings}");
            assert_eq!(why(&search(&repo, QUERIES[0])), "", "{settings}");
            let status = call_in(repo.root(), &["status", "--json"], b"").expect(0).json();
            assert_eq!(
                (
                    &status["vectors"]["missing"],
                    &status["shared"]["missing"],
                    &status["shared"]["chunks"]
                ),
                (&json!(0), &json!(0), &json!(5)),
                "{settings}: {status}"
            );
        }
        call_in(repo.root(), &["verify"], b"").expect(0);
    }
    // Another clone has removed vectors: all vectors are looked up again, but none is computed again.
    configure(&repo, &(with_embedder(&embedder) + &away(&qdrant.url())));
    index(&repo);
    qdrant.renewing()();
    embedder.forget();
    index(&repo);
    assert_eq!(n_documents(&embedder), 0);
    assert_eq!(
        (why(&search(&repo, QUERIES[0])), n_local(&repo)),
        (String::new(), (0, 0))
    );
}
