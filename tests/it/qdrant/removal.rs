//! Tests the removal of vectors.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use super::{QUERIES, found, index, large_project, project, search, why, with_qdrant, write_packet};
use crate::cli::{call_in, spawn_in};
use crate::remote::configure;
use crate::support::qdrant::QdrantStub;
use crate::support::{Reply, TestRepo, assert_within, is_long, kill, wait_for_end, wait_until};

/// Shares the vector of a chunk that is no longer in the local index.
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
    // An acknowledged change that is done later is sufficient.
    qdrant.only_promise(&["points/delete"], true);
    let started = Instant::now();
    let removed = remove_one();
    // The removal waits until queries of other clones have ended, which may take longer than this clone's own.
    assert!(!is_long() || started.elapsed() >= Duration::from_secs(10));
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
    assert!(
        removed.to_string().contains("acknowledgement for deleted vectors"),
        "{removed}"
    );
    let doctor = call_in(repo.root(), &["doctor"], b"").text();
    assert!(doctor.contains("vectors are being removed"), "{doctor}");
}

#[test]
fn where_nothing_is_nothing_was_removed() {
    let repo = project(10);
    let (qdrant, other) = (QdrantStub::start(), QdrantStub::start());
    configure(&repo, &with_qdrant(&qdrant.url()));
    forget_one(&repo);
    let collect = || {
        let called = call_in(repo.root(), &["gc", "--aggressive", "--qdrant", "--json"], b"");
        called.json()["shared"].clone()
    };
    configure(&repo, &with_qdrant(&other.url()));
    let removed = collect();
    assert_eq!(
        (&removed["count"], &removed["removed"]),
        (&json!(1), &json!(false)),
        "{removed}"
    );
    assert!(removed.to_string().contains("check qdrant.server"), "{removed}");
    configure(&repo, &with_qdrant(&qdrant.url()));
    let removed = collect();
    assert_eq!(
        (&removed["count"], &removed["removed"]),
        (&json!(1), &json!(true)),
        "{removed}"
    );
    assert_eq!(qdrant.n_vectors(), 10);
}

#[test]
fn a_removal_that_is_ended_before_it_began_keeps_nobody_out() {
    let repo = project(10);
    let qdrant = QdrantStub::start();
    configure(&repo, &with_qdrant(&qdrant.url()));
    forget_one(&repo);
    let mut child = spawn_in(repo.root(), &["gc", "--aggressive", "--qdrant"]);
    wait_until("/points/payload is asked", || qdrant.n_asked("/points/payload") > 0);
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    wait_for_end(&mut child);
    assert_eq!((qdrant.n_asked("/points/delete"), qdrant.n_vectors()), (0, 11));
    let doctor = call_in(repo.root(), &["doctor"], b"").text();
    assert!(!doctor.contains("vectors are being removed"), "{doctor}");
    assert_eq!(index(&repo).json()["shared"]["missing"], 0);

    // A removal that is killed between two steps does not block others either.
    qdrant.stub().forget();
    let n_sent = AtomicUsize::new(0);
    qdrant.fail(move |seen| {
        let is_second = seen.path.contains("/points/payload?") && n_sent.fetch_add(1, Ordering::SeqCst) == 1;
        is_second.then(|| Reply::status(200).after(Duration::from_secs(600)))
    });
    let mut child = spawn_in(repo.root(), &["gc", "--aggressive", "--qdrant"]);
    wait_until("/points/payload is asked", || qdrant.n_asked("/points/payload") >= 2);
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    wait_for_end(&mut child);
    assert_eq!((qdrant.n_asked("/points/delete"), qdrant.n_vectors()), (0, 11));
    qdrant.mend();
    let doctor = call_in(repo.root(), &["doctor"], b"").text();
    assert!(!doctor.contains("vectors are being removed"), "{doctor}");
    // A query does not wait longer than a removal expects.
    configure(&repo, &with_qdrant(&qdrant.url()).replace("20000", "600000"));
    qdrant.fail(|_| Some(Reply::status(200).after(Duration::from_secs(600))));
    let started = Instant::now();
    let answer = search(&repo, QUERIES[0]);
    assert!(why(&answer).contains("no answer within"), "{answer}");
    assert_within(Duration::from_secs(50), started, "a silent server");
}

#[test]
fn a_removal_that_was_killed_keeps_others_out_for_minutes_and_takes_nothing_with_it() {
    let repo = project(10);
    let qdrant = QdrantStub::start();
    configure(&repo, &with_qdrant(&qdrant.url()));
    index(&repo);
    let clone = repo.clone_with("clone", &[]);
    configure(&clone, &with_qdrant(&qdrant.url()));
    forget_one(&repo);
    index(&clone);
    let before = found(&clone, QUERIES[0]);
    // Killed after the server has deleted the points but before it responds.
    let deleting = qdrant.deleting_silently();
    qdrant.fail(move |seen| seen.path.contains("/points/delete").then(|| deleting(seen)));
    let mut child = spawn_in(repo.root(), &["gc", "--aggressive", "--qdrant"]);
    wait_until("/points/delete is asked", || qdrant.n_asked("/points/delete") > 0);
    kill(&mut child);
    qdrant.mend();
    assert_eq!(qdrant.n_vectors(), 10);
    let answer = search(&clone, QUERIES[0]);
    assert!(why(&answer).contains("being removed"), "{answer}");
    let done = index(&clone).json();
    let stopped = done["shared"]["stopped_because"].as_str().unwrap();
    assert!(stopped.contains("five minutes later"), "{done}");
    // After four minutes the removal may still be in progress; after six minutes it is not.
    assert_eq!(qdrant.age_removals(240), 1);
    assert!(why(&search(&clone, QUERIES[0])).contains("being removed"));
    qdrant.age_removals(120);
    let answer = search(&clone, QUERIES[0]);
    assert!(
        why(&answer).contains("since the last check: run codescout index"),
        "{answer}"
    );
    assert_eq!(answer["results"], before);
    assert_eq!(index(&clone).json()["shared"]["found"], 10);
    assert_eq!(why(&search(&clone, QUERIES[0])), "");
    // Only the end of the removal is not announced. The next removal announces it.
    index(&repo);
    forget_one(&repo);
    call_in(repo.root(), &["gc", "--aggressive", "--qdrant"], b"").expect(0);
    assert_eq!((qdrant.age_removals(0), qdrant.n_vectors()), (0, 10));
}

#[test]
fn a_removal_is_told_of_again_before_every_step() {
    let repo = large_project(130);
    let qdrant = QdrantStub::start();
    configure(&repo, &with_qdrant(&qdrant.url()));
    write_packet(&repo, 1);
    repo.git(["add", "--all"]);
    repo.git(["commit", "--quiet", "-m", "one more"]);
    index(&repo);
    let first = repo.rev_parse("HEAD~1");
    call_in(repo.root(), &["config", "set", "qdrant.repository", &first], b"").expect(0);
    index(&repo);
    for part in 0..6 {
        repo.git(["rm", "-r", "--quiet", &format!("part_{part}")]);
    }
    let tree = repo.git(["write-tree"]);
    let only = repo.git(["commit-tree", tree.trim(), "-m", "another"]);
    repo.git(["reset", "--quiet", "--hard", only.trim()]);
    repo.git(["reflog", "expire", "--expire=now", "--all"]);
    repo.git(["update-ref", "-d", "ORIG_HEAD"]);
    index(&repo);
    qdrant.stub().forget();
    let removed = call_in(repo.root(), &["gc", "--aggressive", "--qdrant", "--json"], b"").expect(0);
    let n_removed = removed.json()["shared"]["count"].as_u64().unwrap();
    assert!(n_removed > 1000, "{n_removed}");
    let requests = qdrant.stub().requests();
    let changes = requests.iter().filter(|seen| seen.method == "POST");
    let changes = changes.filter_map(|seen| {
        let path = seen.path.split('?').next().unwrap_or_default();
        let fields = seen.json()["payload"].as_object().map_or(0, |payload| payload.len());
        match (path.ends_with("/points/payload"), path.ends_with("/points/delete")) {
            // Other clones may have moved everything, and read the generation that is current then.
            (true, _) => Some(if fields == 2 { "sent" } else { "ended" }),
            (_, true) => Some("deleted"),
            _ => None,
        }
    });
    let changes: Vec<&str> = changes.collect();
    let expected = ["sent", "sent", "deleted", "sent", "deleted", "ended"];
    assert_eq!(changes, expected);
}
