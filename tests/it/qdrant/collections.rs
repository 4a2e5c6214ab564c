//! Tests replacing a collection with another one.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use serde_json::json;

use super::{QUERIES, answers, index, project, search, why, with_qdrant};
use crate::cli::call_in;
use crate::remote::configure;
use crate::support::Reply;
use crate::support::qdrant::QdrantStub;

/// A different number of shards requires a copy.
const COPIED: &str = "shards = 2\n";

#[test]
fn no_graph_is_built_where_none_is_followed_and_compression_is_compared_again() {
    let repo = project(300);
    let qdrant = QdrantStub::start();
    let settings = |more: &str| configure(&repo, &(with_qdrant(&qdrant.url()) + more));
    let doctor = || call_in(repo.root(), &["doctor"], b"").text();
    let collection = || qdrant.collections().into_values().next().unwrap()["config"].clone();
    settings("compression = 'scalar'\n");
    index(&repo);
    let made = collection();
    assert_eq!(made["vectors"]["dense"]["hnsw_config"]["m"], 0, "{made}");
    assert!(made["quantization_config"].is_null(), "{made}");
    assert!(doctor().contains("qdrant.compression has no effect"), "{}", doctor());
    let params = || {
        qdrant.stub().forget();
        let answer = search(&repo, QUERIES[0]);
        assert_eq!(why(&answer), "");
        let asked = qdrant.stub().requests();
        let batch = asked.iter().find(|seen| seen.path.contains("/points/query/batch"));
        batch.unwrap().json()["searches"][0]["params"].clone()
    };
    assert_eq!(params(), json!({ "exact": true }));

    // Other settings are changed in place. No data passes through this machine, and the record of shared vectors
    // remains valid.
    settings("compression = 'scalar'\nexact = false\non_disk = true\nreplication = 2\n");
    assert!(doctor().contains("with other settings"), "{}", doctor());
    qdrant.stub().forget();
    let output = call_in(repo.root(), &["index", "--new-collection"], b"")
        .expect(0)
        .text();
    assert!(
        output.contains("settings of codescout-") && output.contains("-1 changed"),
        "{output}"
    );
    let asked = qdrant.stub().requests();
    assert!(
        asked
            .iter()
            .all(|seen| seen.body.len() < 10_000 && !seen.path.contains("scroll")),
        "{asked:?}"
    );
    let made = collection();
    assert_eq!(
        made["vectors"]["dense"]["hnsw_config"],
        json!({ "m": 16, "payload_m": 16 }),
        "{made}"
    );
    assert_eq!(
        (&made["vectors"]["dense"]["on_disk"], &made["replication_factor"]),
        (&json!(true), &json!(2))
    );
    assert_eq!(made["quantization_config"]["scalar"]["type"], "int8", "{made}");
    let quantization = json!({ "rescore": true, "oversampling": 2.0 });
    assert_eq!(params(), json!({ "exact": false, "quantization": quantization }));
    assert!(!doctor().contains("other settings"), "{}", doctor());

    // The settings are changed back.
    settings("");
    call_in(repo.root(), &["index", "--new-collection"], b"").expect(0);
    let made = collection();
    assert_eq!(made["vectors"]["dense"]["hnsw_config"]["m"], 0, "{made}");
    assert!(made["quantization_config"].is_null(), "{made}");
    assert!(!doctor().contains("other settings"), "{}", doctor());
}

#[test]
fn a_collection_is_copied_in_strict_mode_and_while_others_write() {
    let repo = project(20);
    let qdrant = QdrantStub::start();
    qdrant.be_strict();
    configure(&repo, &with_qdrant(&qdrant.url()));
    index(&repo);
    configure(&repo, &(with_qdrant(&qdrant.url()) + COPIED));
    // Other clones upload points during each pass of the copy, and again after the switch if they resolved the alias
    // before it.
    let (put, put_late) = (qdrant.putting(3), qdrant.putting(5));
    let n_left = AtomicUsize::new(3);
    qdrant.fail(move |seen| {
        let copies = seen.method == "PUT" && seen.path.contains("/points?") && n_left.load(Ordering::SeqCst) > 0;
        if copies {
            n_left.fetch_sub(1, Ordering::SeqCst);
            put();
        }
        if seen.path == "/collections/aliases" {
            put_late();
        }
        None
    });
    let output = call_in(repo.root(), &["index", "--new-collection"], b"")
        .expect(0)
        .text();
    qdrant.mend();
    assert!(output.contains("35 vectors moved to"), "{output}");
    assert_eq!(qdrant.n_vectors(), 34, "and the repository's own point");
    let collections = qdrant.collections();
    assert!(
        collections.len() == 1 && collections.keys().all(|name| !name.ends_with("-1")),
        "{collections:?}"
    );
    assert_eq!(why(&search(&repo, QUERIES[0])), "");
    assert_eq!(index(&repo).json()["shared"]["missing"], 0);
}

#[test]
fn a_collection_that_was_not_copied_whole_takes_nobodys_place() {
    let repo = project(20);
    let qdrant = QdrantStub::start();
    let settings = with_qdrant(&qdrant.url()) + "timeout_s = 2\n";
    configure(&repo, &settings);
    index(&repo);
    configure(&repo, &(settings + COPIED));
    let before = qdrant.collections();
    let old = before.keys().next().unwrap().clone();
    let refused = |why_not: &str| {
        let called = call_in(repo.root(), &["index", "--new-collection"], b"").expect(2);
        assert!(
            called.stderr.contains(why_not) && called.stderr.contains("still in use"),
            "{why_not}: {}",
            called.stderr
        );
    };
    qdrant.only_promise(&["points"], false);
    refused("copied vectors");
    assert_eq!((qdrant.collections(), qdrant.n_vectors()), (before.clone(), 20));
    qdrant.only_promise(&[], false);
    for page in [
        json!([]),
        json!([{ "id": "f0f1f2f3-f4f5-f6f7-f8f9-fafbfcfdfeff", "payload": {} }]),
    ] {
        qdrant.fail(move |seen| {
            let scrolls = seen.path.ends_with("/points/scroll");
            scrolls.then(|| Reply::json(&json!({ "result": { "points": page, "next_page_offset": "7" } })))
        });
        let called = call_in(repo.root(), &["index", "--new-collection"], b"").expect(2);
        assert!(called.stderr.contains("an endless list of pages"), "{}", called.stderr);
        assert_eq!(qdrant.collections(), before);
    }
    qdrant.mend();
    assert_eq!(why(&search(&repo, QUERIES[0])), "");

    // Another clone replaces the collection first. The collection in use remains, and so does one that may belong to
    // another clone.
    let moving = qdrant.moving();
    qdrant.fail(move |seen| {
        if seen.path.ends_with("/points/scroll") {
            moving();
        }
        None
    });
    refused("another clone copied it meanwhile");
    let names: Vec<String> = qdrant.collections().into_keys().collect();
    let theirs = old.replace("-1", "-2");
    assert_eq!(names, [old, theirs.clone()]);
    qdrant.mend();
    assert_eq!(why(&search(&repo, QUERIES[0])), "");

    // An acknowledged change that is done later is sufficient.
    qdrant.only_promise(&["points", "points/payload"], true);
    call_in(repo.root(), &["index", "--new-collection"], b"").expect(0);
    assert!(!qdrant.collections().contains_key(&theirs));
    assert_eq!(qdrant.collections().len(), 2);
    qdrant.only_promise(&[], false);
    assert_eq!(why(&search(&repo, QUERIES[0])), "");
}

#[test]
fn who_makes_the_first_collection_later_leaves_what_took_its_place() {
    let repo = project(10);
    let qdrant = QdrantStub::start();
    configure(&repo, &with_qdrant(&qdrant.url()));
    index(&repo);
    qdrant.moving()();
    // A clone that looked before the collection existed.
    let clone = repo.clone_with("clone", &[]);
    configure(&clone, &with_qdrant(&qdrant.url()));
    let is_late = AtomicBool::new(true);
    qdrant.fail(move |seen| {
        let makes = seen.method == "PUT" && seen.path.ends_with("-1");
        is_late.fetch_and(!makes, Ordering::SeqCst);
        let looks = seen.method == "GET" && seen.path.starts_with("/collections/");
        (looks && is_late.load(Ordering::SeqCst)).then(|| Reply::status(404))
    });
    let done = index(&clone).json();
    assert_eq!(done["shared"]["missing"], 0, "{done}");
    let target = qdrant.aliases().into_values().next().unwrap();
    assert!(target.ends_with("-2"), "{target}");
}

#[test]
fn what_is_moved_while_vectors_are_put_is_looked_at_again() {
    let repo = project(20);
    let before = answers(&repo);
    let qdrant = QdrantStub::start();
    configure(&repo, &with_qdrant(&qdrant.url()));
    // After the generation was read and before vectors are uploaded.
    let changed_meanwhile = |change: Box<dyn Fn() + Send + Sync>| {
        qdrant.fail(move |seen| {
            if seen.json()["ids"].as_array().is_some_and(|ids| ids.len() > 1) {
                change();
            }
            None
        });
        let done = index(&repo).json();
        let why = done["shared"]["stopped_because"].as_str().unwrap().to_owned();
        assert!(why.contains("meanwhile"), "{done}");
        qdrant.mend();
    };
    changed_meanwhile(Box::new(qdrant.removing()));
    qdrant.age_removals(301);
    changed_meanwhile(Box::new(qdrant.renewing()));
    let answer = search(&repo, QUERIES[0]);
    assert_eq!(answer["results"], before[0]);
    let done = index(&repo).json();
    assert_eq!(
        (&done["shared"]["new"], &done["shared"]["found"]),
        (&json!(0), &json!(20)),
        "{done}"
    );
    assert_eq!(why(&search(&repo, QUERIES[0])), "");
}
