//! Vectors that are removed.

use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use super::{QUERIES, index, project, search, why, with_qdrant, write_packet};
use crate::cli::{call_in, spawn_in};
use crate::remote::configure;
use crate::support::qdrant::QdrantStub;
use crate::support::{Reply, TestRepo};

/// Shares a chunk that nothing here has any more.
pub(super) fn forget_one(repo: &TestRepo) {
    write_packet(repo, 40);
    repo.commit("more");
    index(repo);
    repo.git(["reset", "--quiet", "--hard", "HEAD~1"]);
    repo.git(["reflog", "expire", "--expire=now", "--all"]);
    repo.git(["update-ref", "-d", "ORIG_HEAD"]);
    index(repo);
}

#[test]
fn a_removal_ends_when_the_vectors_are_gone() {
    let repo = project(10);
    let qdrant = QdrantStub::start();
    configure(
        &repo,
        &(with_qdrant(&qdrant.url()).replace("20000", "1500") + "timeout_s = 2\n"),
    );
    let remove_one = || {
        forget_one(&repo);
        assert_eq!(qdrant.n_vectors(), 11);
        let called = call_in(repo.root(), &["gc", "--aggressive", "--qdrant", "--json"], b"");
        called.json()["shared"].clone()
    };
    // A promise that is kept will do.
    qdrant.only_promise(&["points/delete"], true);
    let started = Instant::now();
    let removed = remove_one();
    // Others may wait longer for an answer than this clone does.
    assert!(started.elapsed() >= Duration::from_secs(10));
    assert_eq!(
        (&removed["count"], &removed["removed"]),
        (&json!(1), &json!(true)),
        "{removed}"
    );
    assert_eq!(qdrant.n_vectors(), 10);
    assert_eq!(why(&search(&repo, QUERIES[0])), "");

    qdrant.only_promise(&["points/delete"], false);
    let removed = remove_one();
    assert_eq!(removed["removed"], json!(false), "{removed}");
    assert!(removed.to_string().contains("promise to delete vectors"), "{removed}");
    let doctor = call_in(repo.root(), &["doctor"], b"").text();
    assert!(doctor.contains("vectors are being removed"), "{doctor}");
}

#[test]
fn a_removal_that_is_ended_before_it_began_keeps_nobody_out() {
    let repo = project(10);
    let qdrant = QdrantStub::start();
    configure(&repo, &with_qdrant(&qdrant.url()));
    forget_one(&repo);
    let mut child = spawn_in(repo.root(), &["gc", "--aggressive", "--qdrant"]);
    let started = Instant::now();
    while qdrant.n_asked("/points/payload") == 0 {
        assert!(started.elapsed() < Duration::from_secs(120));
        std::thread::sleep(Duration::from_millis(10));
    }
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    child.wait().unwrap();
    assert_eq!((qdrant.n_asked("/points/delete"), qdrant.n_vectors()), (0, 11));
    let doctor = call_in(repo.root(), &["doctor"], b"").text();
    assert!(!doctor.contains("vectors are being removed"), "{doctor}");
    assert_eq!(index(&repo).json()["shared"]["missing"], 0);
    // Nor does anybody wait longer than who removes expects.
    configure(&repo, &with_qdrant(&qdrant.url()).replace("20000", "600000"));
    qdrant.fail(|_| Some(Reply::status(200).after(Duration::from_secs(600))));
    let started = Instant::now();
    let answer = search(&repo, QUERIES[0]);
    assert!(why(&answer).contains("no answer within"), "{answer}");
    assert!(started.elapsed() < Duration::from_secs(50));
}
