//! The graph of vectors: it is built on request, kept while the numbers of chunks are, and dropped with them. (Searches use
//! it only in large repositories; the tests of `hnsw.rs` cover its results.)

use std::fs;

use serde_json::Value;

use crate::cli::{Called, call_in};
use crate::support::TestRepo;

fn run(repo: &TestRepo, args: &[&str]) -> Called {
    call_in(repo.root(), args, b"")
}

fn sample() -> TestRepo {
    let repo = TestRepo::empty();
    for module in ["parse", "queue", "retry", "token", "cache"] {
        let functions =
            (0..4).map(|i| format!("/// Handles the {module} number {i}.\nfn {module}_{i}() {{ {i} }}\n\n"));
        repo.write(format!("src/{module}.rs"), functions.collect::<String>());
    }
    repo.commit("modules");
    repo
}

fn status(repo: &TestRepo) -> Value {
    run(repo, &["status", "--json"]).expect(0).json()
}

#[test]
fn a_graph_is_built_once_and_kept_through_updates() {
    let repo = sample();
    let first = run(&repo, &["index", "--graph", "--json"]).expect(0).json();
    let n_chunks = status(&repo)["chunks"].clone();
    assert_eq!(first["graphs"][0]["chunks"], n_chunks, "{first}");
    assert_eq!(status(&repo)["graphs"][0]["chunks"], n_chunks);
    let again = run(&repo, &["index", "--graph", "--json"]).expect(0).json();
    assert_eq!(again.get("graphs"), None, "nothing is new: {again}");
    repo.write("src/later.rs", "fn arrives_later() {}\n");
    repo.commit("later");
    run(&repo, &["index"]).expect(0);
    assert_eq!(status(&repo)["graphs"][0]["chunks"], n_chunks);
    let found = run(&repo, &["search", "arrives_later", "--json"]).expect(0).json();
    assert_eq!(found["results"][0]["path"], "src/later.rs");
    let more = run(&repo, &["index", "--graph", "--json"]).expect(0).json();
    assert_eq!(more["graphs"][0]["chunks"], status(&repo)["chunks"], "{more}");
    run(&repo, &["verify"]).expect(0);
}

#[test]
fn answers_say_how_vectors_were_found() {
    let repo = sample();
    let ask = || {
        run(&repo, &["search", "handles a retry", "--mode", "semantic", "--json"])
            .expect(0)
            .json()
    };
    let before = ask();
    run(&repo, &["index", "--graph"]).expect(0);
    assert_eq!(ask()["results"], before["results"]);
    let explained = run(&repo, &["search", "handles a retry", "--explain", "--json"]).expect(0);
    let explained = explained.json();
    assert_eq!(explained["complete"], true, "{explained}");
    assert_eq!(explained["notes"][0], "vectors were found by comparing all");
}

#[test]
fn a_damaged_graph_is_ignored_found_and_removed() {
    let repo = sample();
    run(&repo, &["index", "--graph"]).expect(0);
    let ask = || run(&repo, &["search", "queue number", "--json"]).expect(0).json()["results"].clone();
    let before = ask();
    let folder = repo.path(".codescout/dense-v1");
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let graph = files
        .filter(|path| path.extension().is_some_and(|ending| ending == "graph"))
        .last()
        .unwrap();
    let mut bytes = fs::read(&graph).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&graph, bytes).unwrap();
    assert_eq!(ask(), before);
    run(&repo, &["verify"]).expect(1);
    run(&repo, &["verify", "--repair"]).expect(1);
    assert_eq!(status(&repo).get("graphs"), None);
    assert_eq!(ask(), before);
    run(&repo, &["index", "--graph"]).expect(0);
    run(&repo, &["verify"]).expect(0);
}

#[test]
fn a_collection_that_renumbers_drops_the_graph() {
    let repo = sample();
    run(&repo, &["index", "--graph"]).expect(0);
    let n_before = status(&repo)["chunks"].as_u64();
    repo.git(["rm", "-q", "src/parse.rs", "src/queue.rs"]);
    repo.commit("less");
    repo.git(["reflog", "expire", "--expire=all", "--all"]);
    repo.git(["update-ref", "-d", "ORIG_HEAD"]);
    repo.git(["checkout", "-q", "--orphan", "alone"]);
    repo.commit("alone");
    repo.git(["branch", "-D", "main"]);
    run(&repo, &["index"]).expect(0);
    run(&repo, &["gc", "--aggressive"]).expect(0);
    let after = status(&repo);
    assert!(after["chunks"].as_u64() < n_before, "{after}");
    assert_eq!(after.get("graphs"), None);
    run(&repo, &["verify"]).expect(0);
}
