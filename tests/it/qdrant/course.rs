//! Tests a whole sequence of operations, with the stub and with a real server.

use serde_json::{Value, json};

use super::sparse::with_sparse;
use super::{index, large_project, openai_stub, places, search, why, with_embedder, with_qdrant};
use crate::cli::call_in;
use crate::remote::configure;
use crate::support::model::tei_sparse;
use crate::support::qdrant::QdrantStub;
use crate::support::{Stub, TestRepo};

/// Runs the whole sequence with any server. No other client may use `prefix`.
fn whole_course(url: &str, prefix: &str, key: Option<&str>) {
    let (embedder, sparse) = (openai_stub(), Stub::start(tei_sparse));
    let servers = with_embedder(&embedder) + &with_sparse(&sparse);
    let repo = large_project(40);
    let settings = |more: &str| {
        let key = key.map_or(String::new(), |_| {
            format!("key_file = '{}'\n", repo.beside("key").display())
        });
        format!("{servers}{}prefix = '{prefix}'\n{key}{more}", with_qdrant(url))
    };
    std::fs::write(repo.beside("key"), key.unwrap_or_default()).unwrap();
    configure(&repo, &servers);
    index(&repo);
    let queries = ["read field 3 from the tail", "take bytes of a record"];
    let ask = |repo: &TestRepo| -> Vec<Vec<(String, u64, f64)>> {
        let answers = queries.map(|query| search(repo, query));
        answers.iter().for_each(|answer| assert_eq!(why(answer), ""));
        answers.iter().map(places).collect()
    };
    let before = ask(&repo);
    configure(&repo, &settings(""));
    let done = index(&repo).json();
    let n_chunks = done["shared"]["new"].as_u64().unwrap();
    assert!(n_chunks > 256 && done["shared"]["missing"] == 0, "{done}");
    assert_eq!(done["shared_sparse"]["new"], n_chunks, "{done}");
    assert_eq!(ask(&repo), before);

    // Another clone fetches the vectors. It has a branch of its own.
    let clone = repo.clone_with("second", &[]);
    configure(&clone, &settings(""));
    embedder.forget();
    sparse.forget();
    let done = index(&clone).json();
    assert_eq!(
        (&done["vectors"]["taken"], &done["shared"]["missing"]),
        (&json!(n_chunks), &json!(0)),
        "{done}"
    );
    assert_eq!(done["sparse_vectors"]["taken"], n_chunks, "{done}");
    assert!(embedder.requests().is_empty() && sparse.requests().is_empty());
    let taken = ask(&clone);
    assert_eq!(taken, before);

    // The first clone drops some chunks and removes their vectors. The second clone notices that and uploads them
    // again.
    for file in 0..15 {
        repo.remove(format!("part_{}/file_{file}.rs", file % 6));
    }
    repo.git(["add", "--all"]);
    repo.git(["commit", "--quiet", "--amend", "-m", "fewer"]);
    repo.git(["reflog", "expire", "--expire=now", "--all"]);
    repo.git(["update-ref", "-d", "ORIG_HEAD"]);
    // The first commit has changed, so the settings name the repository.
    let first = clone.rev_parse("HEAD");
    let named = format!("repository = '{first}'\n");
    configure(&repo, &settings(&named));
    assert_eq!(index(&repo).json()["shared"]["new"], 0);
    let dry = call_in(repo.root(), &["gc", "--qdrant", "--dry-run", "--json"], b"")
        .expect(0)
        .json();
    assert_eq!(
        (&dry["shared"]["count"], &dry["shared"]["removed"]),
        (&json!(0), &json!(false)),
        "{dry}"
    );
    let collected = call_in(repo.root(), &["gc", "--aggressive", "--qdrant", "--json"], b"")
        .expect(0)
        .json();
    // Equal numbers of dense and sparse vectors are removed.
    let n_removed = collected["shared"]["count"].as_u64().unwrap() / 2;
    assert!(n_removed > 100 && collected["shared"]["removed"] == true, "{collected}");
    assert_eq!(ask(&repo).len(), queries.len(), "what was looked at again is asked");
    let answer = search(&clone, queries[0]);
    assert!(
        why(&answer).contains("since the last check: run codescout index"),
        "{answer}"
    );
    assert_eq!(places(&answer), taken[0]);
    let done = index(&clone).json();
    assert_eq!(
        (&done["shared"]["new"], &done["shared"]["found"]),
        (&json!(n_removed), &json!(n_chunks - n_removed)),
        "{done}"
    );
    assert_eq!(done["shared_sparse"]["new"], n_removed, "{done}");
    assert_eq!(ask(&clone), taken);

    // Settings are changed in place if possible; otherwise another collection replaces the first.
    let compressed = "exact = false\ncompression = 'scalar'\n";
    configure(&clone, &settings(compressed));
    let changed = call_in(clone.root(), &["index", "--new-collection"], b"")
        .expect(0)
        .text();
    assert_eq!(changed.matches("settings of").count(), 2, "{changed}");
    ask(&clone);
    assert_eq!(why(&search(&repo, queries[0])), "");
    configure(&clone, &settings(&format!("{compressed}shards = 2\n")));
    let moved = call_in(clone.root(), &["index", "--new-collection"], b"")
        .expect(0)
        .text();
    assert_eq!(moved.matches("vectors moved to").count(), 2, "{moved}");
    configure(&clone, &settings(""));
    assert_eq!(ask(&clone), taken);
    assert!(why(&search(&repo, queries[0])).contains("removed or moved"));
    assert_eq!(index(&repo).json()["shared"]["new"], 0);
    ask(&repo);

    // Vectors are stored only on the server, and then locally again.
    configure(&clone, &settings("keep_local = false\n"));
    let done = index(&clone).json();
    assert_eq!(
        (&done["shared"]["missing"], &done["vectors"]["new"]),
        (&json!(0), &json!(0)),
        "{done}"
    );
    ask(&clone);
    configure(&clone, &settings(""));
    assert_eq!(index(&clone).json()["vectors"]["taken"], n_chunks);
    assert_eq!(ask(&clone), taken);
}

#[test]
fn clones_put_take_remove_and_move_vectors() {
    let qdrant = QdrantStub::start();
    qdrant.want_key("sesame");
    whole_course(&qdrant.url(), "course", Some("sesame"));
    let collections = qdrant.collections();
    let is_new = collections.keys().all(|name| !name.ends_with("-1"));
    assert!(collections.len() == 2 && is_new, "{collections:?}");
    let compressed = collections.values().map(|made| &made["config"]["quantization_config"]);
    let compressed: Vec<&Value> = compressed.filter(|how| !how.is_null()).collect();
    assert!(
        compressed.len() == 1 && compressed[0]["scalar"]["type"] == "int8",
        "{collections:?}"
    );
}

#[test]
#[expect(clippy::print_stderr, reason = "skipped aloud")]
fn a_real_qdrant_does_the_same() {
    let Ok(url) = std::env::var("CODESCOUT_TEST_QDRANT_URL") else {
        eprintln!("skipped: CODESCOUT_TEST_QDRANT_URL names no Qdrant (its key: CODESCOUT_TEST_QDRANT_KEY)");
        return;
    };
    let key = std::env::var("CODESCOUT_TEST_QDRANT_KEY").ok();
    let prefix = format!("codescout-test-{}", std::process::id());
    whole_course(&url, &prefix, key.as_deref());
    eprintln!("collections that begin with {prefix} can be deleted");
}
