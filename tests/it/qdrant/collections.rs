//! A collection that takes the place of another.

use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;

use super::{QUERIES, answers, index, project, search, why, with_qdrant};
use crate::cli::call_in;
use crate::remote::configure;
use crate::support::Reply;
use crate::support::qdrant::QdrantStub;

#[test]
fn a_collection_that_was_not_copied_whole_takes_nobodys_place() {
    let repo = project(20);
    let qdrant = QdrantStub::start();
    configure(&repo, &(with_qdrant(&qdrant.url()) + "timeout_s = 2\n"));
    index(&repo);
    let before = qdrant.collections();
    let old = before.keys().next().unwrap().clone();
    let refused = |why_not: &str| {
        let called = call_in(repo.root(), &["index", "--new-collection"], b"").expect(2);
        assert!(
            called.stderr.contains(why_not) && called.stderr.contains("stays in use"),
            "{why_not}: {}",
            called.stderr
        );
    };
    for (kind, told) in [("points", "copied vectors"), ("points/payload", "renew generations")] {
        qdrant.only_promise(&[kind], false);
        refused(told);
        assert_eq!((qdrant.collections(), qdrant.n_vectors()), (before.clone(), 20));
    }
    qdrant.only_promise(&[], false);
    let ending = format!("{old}/points/count");
    qdrant.fail(move |seen| {
        let counts = seen.path.ends_with(&ending);
        counts.then(|| Reply::json(&json!({ "result": { "count": 22 } })))
    });
    refused("other vectors than were copied");
    assert_eq!(qdrant.collections(), before);
    for page in [
        json!([]),
        json!([{ "id": "f0f1f2f3-f4f5-f6f7-f8f9-fafbfcfdfeff", "vector": {} }]),
    ] {
        qdrant.fail(move |seen| {
            let scrolls = seen.path.ends_with("/points/scroll");
            scrolls.then(|| Reply::json(&json!({ "result": { "points": page, "next_page_offset": "7" } })))
        });
        let called = call_in(repo.root(), &["index", "--new-collection"], b"").expect(2);
        assert!(called.stderr.contains("pages without an end"), "{}", called.stderr);
        assert_eq!(qdrant.collections(), before);
    }
    qdrant.mend();
    assert_eq!(why(&search(&repo, QUERIES[0])), "");

    // Somebody else is faster: what is in use then stays, and so does what may be somebody's.
    let moving = qdrant.moving();
    qdrant.fail(move |seen| {
        if seen.path.ends_with("/points/scroll") {
            moving();
        }
        None
    });
    refused("somebody changed them meanwhile");
    let names: Vec<String> = qdrant.collections().into_keys().collect();
    let theirs = old.replace("-1", "-2");
    assert_eq!(names, [old, theirs.clone()]);
    qdrant.mend();
    assert_eq!(why(&search(&repo, QUERIES[0])), "");

    // A promise that is kept will do.
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
    // A clone that has looked before there was any.
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
    // After the generation was read, before vectors are put.
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
