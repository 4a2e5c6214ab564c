//! Tests the information about the server in `status` and `doctor`, and the data that it receives.

use std::time::{Duration, Instant};

use serde_json::json;

use super::{DIM, index, openai_stub, project, search, why, with_embedder, with_qdrant};
use crate::cli::call_in;
use crate::remote::configure;
use crate::support::model::openai;
use crate::support::qdrant::QdrantStub;
use crate::support::{Reply, Stub, assert_within};

#[test]
fn a_key_is_shown_to_the_server_and_to_nobody_else() {
    let repo = project(6);
    let qdrant = QdrantStub::start();
    qdrant.want_key("sesame");
    configure(&repo, &with_qdrant(&qdrant.url()));
    let done = index(&repo).json();
    let why_not = done["shared"]["stopped_because"].as_str().unwrap();
    assert!(why_not.contains("401") && why_not.contains("key"), "{why_not}");
    let key = repo.beside("key");
    std::fs::write(&key, "sesame\n").unwrap();
    let settings = format!("{}key_file = '{}'\n", with_qdrant(&qdrant.url()), key.display());
    configure(&repo, &settings);
    assert_eq!(index(&repo).json()["shared"]["new"], 6);
    assert_eq!(why(&search(&repo, "packet")), "");
    for args in [&["doctor"][..], &["doctor", "--what-leaves"], &["config"], &["status"]] {
        let called = call_in(repo.root(), args, b"");
        assert!(
            !called.text().contains("sesame") && !called.stderr.contains("sesame"),
            "{args:?}"
        );
    }
    configure(&repo, &settings.replace(&qdrant.url(), "http://example.com"));
    let called = call_in(repo.root(), &["search", "packet"], b"").expect(2);
    assert!(called.stderr.contains("over plain http"), "{}", called.stderr);
    // A repository's own settings file must not name the server either.
    std::fs::remove_file(repo.path(".codescout/config.toml")).unwrap();
    repo.write(".codescout.toml", with_qdrant(&qdrant.url()));
    let called = call_in(repo.root(), &["index"], b"").expect(2);
    assert!(
        called.stderr.contains("qdrant.server can only be set by"),
        "{}",
        called.stderr
    );
}

#[test]
fn what_leaves_and_what_is_there_are_reported() {
    let repo = project(5);
    repo.write(
        ".env",
        "DATABASE_URL=postgres://app:hunter2@db/prod\nHOST=example.com\n",
    );
    repo.commit("secrets");
    let qdrant = QdrantStub::start();
    configure(&repo, &with_qdrant(&qdrant.url()));
    let leaves = call_in(repo.root(), &["doctor", "--what-leaves"], b"").expect(0).text();
    assert!(
        leaves.contains("where clones share vectors") && !leaves.contains("nothing leaves"),
        "{leaves}"
    );
    let status = call_in(repo.root(), &["index"], b"").expect(0).text();
    assert!(status.contains("shared: 5 of 5 vectors put to"), "{status}");
    let status = call_in(repo.root(), &["status", "--json"], b"").expect(0).json();
    assert_eq!(
        (&status["shared"]["chunks"], &status["shared"]["missing"]),
        (&json!(5), &json!(0)),
        "{status}"
    );
    assert_eq!(qdrant.n_vectors(), 5, "nothing of the credentials");
    call_in(repo.root(), &["verify"], b"").expect(0);
    // Damage to the record of shared vectors is found, and the vectors are looked up again.
    let folder = repo.path(".codescout/dense-v1");
    let there = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let there = there
        .into_iter()
        .find(|path| path.extension().is_some_and(|ending| ending == "there"))
        .unwrap();
    let mut bytes = std::fs::read(&there).unwrap();
    bytes[130] ^= 1;
    std::fs::write(&there, bytes).unwrap();
    call_in(repo.root(), &["verify"], b"").expect(1);
    assert_eq!(why(&search(&repo, "packet")), "");
    assert_eq!(index(&repo).json()["shared"]["found"], 5);
    call_in(repo.root(), &["verify"], b"").expect(0);
    // The same for the record of the repository's identity.
    std::fs::write(repo.path(".codescout/repository"), "x").unwrap();
    let status = call_in(repo.root(), &["status", "--json"], b"").expect(0).json();
    assert_eq!(status["shared"]["chunks"], 0, "{status}");
    assert_eq!(why(&search(&repo, "packet")), "");
    index(&repo);
    let status = call_in(repo.root(), &["status", "--json"], b"").expect(0).json();
    assert_eq!(status["shared"]["chunks"], 5, "{status}");
}

#[test]
fn the_doctor_does_not_wait_for_a_server_that_falls_silent() {
    let repo = project(1);
    let silent = Stub::start(|seen| match (seen.method.as_str(), seen.path.as_str()) {
        ("GET", "/") => Reply::json(&json!({"version": "1.17.0"})),
        ("GET", _) => Reply::json(&json!({"result": {
            "status": "green",
            "config": {"params": {"vectors": {"dense": {"size": 256, "distance": "Cosine"}}}}
        }})),
        _ => Reply::json(&json!({})).after(Duration::from_secs(600)),
    });
    configure(&repo, &with_qdrant(&silent.url()));
    let started = Instant::now();
    let doctor = call_in(repo.root(), &["doctor"], b"").text();
    assert!(doctor.contains("no answer within"), "{doctor}");
    assert_within(Duration::from_secs(50), started, "a silent server");
}

#[test]
fn the_doctor_tells_a_wrong_key_from_a_server_that_is_away() {
    let repo = project(2);
    let (embedder, qdrant) = (Stub::start(|_| Reply::status(403)), QdrantStub::start());
    qdrant.want_key("sesame");
    configure(&repo, &(with_embedder(&embedder) + &with_qdrant(&qdrant.url())));
    let mends = || {
        let doctor = call_in(repo.root(), &["doctor", "--json"], b"").json();
        let findings = doctor["findings"].as_array().unwrap().iter();
        let servers = findings.filter(|found| ["embedder", "qdrant"].contains(&found["area"].as_str().unwrap()));
        let mends: Vec<String> = servers
            .filter_map(|found| Some(found["mend"].as_str()?.to_owned()))
            .collect();
        mends
    };
    let found = mends();
    assert!(
        found.len() == 2
            && found
                .iter()
                .all(|mend| mend.contains(".key_file") && !mend.contains(".server")),
        "{found:?}"
    );
    drop((embedder, qdrant));
    let found = mends();
    assert!(
        found.len() == 2 && found.iter().all(|mend| mend.contains(".server ADDRESS")),
        "{found:?}"
    );
}

#[test]
fn the_doctor_finds_a_collection_of_another_dimension() {
    let (embedder, qdrant) = (openai_stub(), QdrantStub::start());
    let repo = project(3);
    configure(&repo, &(with_embedder(&embedder) + &with_qdrant(&qdrant.url())));
    index(&repo);
    let doctor = call_in(repo.root(), &["doctor"], b"").text();
    assert!(!doctor.contains("components"), "{doctor}");
    // Another model with the same name.
    let other = Stub::start(|seen| openai(seen, DIM / 2));
    let clone = repo.clone_with("clone", &[]);
    configure(&clone, &(with_embedder(&other) + &with_qdrant(&qdrant.url())));
    let doctor = call_in(clone.root(), &["doctor"], b"").text();
    assert!(
        doctor.contains("has vectors of 64 components, but m returns 32") && doctor.contains("embedding.revision"),
        "{doctor}"
    );
}
