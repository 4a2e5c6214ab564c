//! Tests transferring the vectors of a model on a server to clones that use the same model.

use std::fs;

use codescout::embed::ProfileId;
use codescout::index::dense::{Quantisation, VectorWriter};
use serde_json::Value;

use super::poison::{sections, with_sections, with_vectors};
use super::raw::Raw;
use super::{PRIVATE_KEY, PUBLIC_KEY, QUERIES, project};
use crate::cli::call_in;
use crate::indexed::Indexed;
use crate::remote::configure;
use crate::support::model::{openai, tei_sparse, texts_of};
use crate::support::{Stub, TestRepo};

const DIM: usize = 32;
const OF_PART: [&str; 2] = ["keys", "rows"];

/// Indexes a clone and configures a server for it, without computing vectors.
fn with_server(repo: &TestRepo, stub: &Stub) {
    call_in(repo.root(), &["index"], b"").expect(0);
    set_server(repo, stub);
}

fn set_server(repo: &TestRepo, stub: &Stub) {
    // A short time limit, so that the test does not wait for a server that was stopped.
    let settings = format!("[embedding]\nserver = '{}'\nmodel = 'm'\ntimeout_s = 3\n", stub.url());
    configure(repo, &settings);
}

fn indexed(repo: &TestRepo) -> Value {
    call_in(repo.root(), &["index", "--json"], b"").expect(0).json()["vectors"].clone()
}

/// Returns the number of texts that were sent.
fn n_sent(stub: &Stub) -> usize {
    stub.requests().iter().map(|seen| texts_of(seen).len()).sum()
}

#[test]
fn what_one_clone_has_paid_for_no_other_asks_for_again() {
    let stub = Stub::start(|seen| openai(seen, DIM));
    let repo = project();
    let clone = repo.clone_with("clone", &[]);
    let stranger = repo.clone_with("stranger", &[]);
    let short = repo.clone_with("short", &["--depth=1"]);
    with_server(&repo, &stub);
    let (bundle, key) = (repo.beside("vectors.bundle"), repo.beside("key.pem"));
    let (file, key_file) = (bundle.to_str().unwrap(), key.to_str().unwrap());
    fs::write(&key, PRIVATE_KEY).unwrap();
    let called = call_in(repo.root(), &["export", file, "--vectors"], b"").expect(2);
    assert!(called.stderr.contains("run codescout index"), "{}", called.stderr);
    let n_chunks = indexed(&repo)["new"].as_u64().unwrap();
    assert!(n_chunks > 3);
    let answer = call_in(
        repo.root(),
        &["export", file, "--vectors", "--sign", key_file, "--json"],
        b"",
    )
    .expect(0)
    .json();
    assert_eq!(
        (&answer["bundle"]["kind"], &answer["bundle"]["vectors"]),
        (&"records".into(), &n_chunks.into())
    );
    let again = call_in(
        repo.root(),
        &["export", "-", "-q", "--vectors", "--sign", key_file],
        b"",
    )
    .expect(0);
    assert!(again.stdout == fs::read(&bundle).unwrap(), "the same bytes");

    // Only the probe is sent, and answers equal those of the exporting clone.
    stub.forget();
    with_server(&clone, &stub);
    let answer = call_in(clone.root(), &["import", file, "--trust", PUBLIC_KEY, "--json"], b"")
        .expect(0)
        .json();
    assert_eq!(answer["new_vectors"], n_chunks);
    let vectors = indexed(&clone);
    assert_eq!((&vectors["new"], &vectors["missing"]), (&0.into(), &0.into()));
    assert_eq!(n_sent(&stub), 1);
    let (ours, theirs) = (Indexed::new(clone.root()), Indexed::new(repo.root()));
    let (view, other) = (ours.view("HEAD"), theirs.view("HEAD"));
    assert_eq!(ours.answers(&view, &QUERIES), theirs.answers(&other, &QUERIES));
    let answer = call_in(clone.root(), &["import", file, "--json"], b"").expect(0).json();
    assert_eq!(answer["new_vectors"], 0);
    call_in(clone.root(), &["verify", "--deep"], b"").expect(0);

    // Only the new text is sent.
    stub.forget();
    clone.write("src/added.rs", "pub fn added_since() { retry_upload(9) }\n");
    clone.commit("one more");
    assert_eq!(indexed(&clone)["new"], 1);
    assert_eq!(n_sent(&stub), 2, "the probe and the new one");

    // A clone that has indexed nothing indexes first. A clone without such a model imports nothing.
    with_server(&short, &stub);
    call_in(short.root(), &["import", file], b"").expect(0);
    let answer = call_in(stranger.root(), &["import", file, "--json"], b"")
        .expect(0)
        .json();
    assert!(
        answer["vectors_passed_over"]
            .as_str()
            .is_some_and(|why| why.contains("not configured here")),
        "{answer}"
    );
    assert!(answer["new_blobs"].as_u64() > Some(0), "{answer}");
    let called = call_in(stranger.root(), &["export", "-", "-q", "--vectors"], b"").expect(2);
    assert!(
        called.stderr.contains("only the built-in model is configured"),
        "{}",
        called.stderr
    );
}

#[test]
fn vectors_that_do_not_fit_are_refused() {
    let stub = Stub::start(|seen| openai(seen, DIM));
    let repo = project();
    let clone = repo.clone_with("clone", &[]);
    with_server(&repo, &stub);
    indexed(&repo);
    let bytes = call_in(repo.root(), &["export", "-", "-q", "--vectors"], b"")
        .expect(0)
        .stdout;
    let honest = Raw::parse(&bytes);
    with_server(&clone, &stub);
    let refuses = |about: &str, change: &dyn Fn(&mut Raw), said: &str| {
        let mut raw = honest.clone();
        change(&mut raw);
        let called = call_in(clone.root(), &["import", "-"], &raw.to_bytes());
        assert_eq!(called.code, 2, "{about}: {}", called.text());
        assert!(
            called.stderr.contains(said) && !called.stderr.contains("panicked"),
            "{about}: {}",
            called.stderr
        );
    };
    let profile = ProfileId(honest.header.added[0].0);
    assert_eq!(honest.header.entries.len(), 4);
    let rows = |dim: usize, profile, n: usize| {
        let mut writer = VectorWriter::new(dim, Quantisation::Int8, profile).unwrap();
        (0..n).for_each(|_| writer.push(&vec![1.0 / (dim as f32).sqrt(); dim], 1.0).unwrap());
        writer.finish()
    };
    let [keys, honest_rows] = sections(honest.opened(3), 1, OF_PART);
    let n_keys = keys.len() / 16;
    let part = |rows: Vec<u8>| with_sections(1, OF_PART, [keys.clone(), rows]);
    refuses("no probe", &|raw| raw.put(2, b"nonsense"), "probe");
    refuses("two probes", &|raw| raw.put(2, &rows(DIM, profile, 2)), "probe");
    refuses(
        "another's probe",
        &|raw| raw.put(2, &rows(DIM, ProfileId([7; 16]), 1)),
        "probe",
    );
    refuses("no part", &|raw| raw.put(3, b"nonsense"), "part is damaged");
    refuses(
        "a part cut",
        &|raw| raw.put(3, &raw.opened(3)[..100]),
        "cannot import vectors",
    );
    refuses(
        "more rows than were said",
        &|raw| raw.header.added[0].1[0] += 1,
        "number of vectors differs",
    );
    refuses(
        "very many rows",
        &|raw| {
            raw.header.added[0].1[0] = 1 << 20;
        },
        "number of vectors differs",
    );
    refuses(
        "too few rows",
        &|raw| raw.put(3, &part(rows(DIM, profile, n_keys - 1))),
        "number of rows",
    );
    refuses(
        "other components",
        &|raw| raw.put(3, &part(rows(8, profile, n_keys))),
        "different kinds",
    );
    refuses(
        "another's rows",
        &|raw| raw.put(3, &part(rows(DIM, ProfileId([7; 16]), n_keys))),
        "different kinds",
    );
    let scaled = |rows: Vec<u8>| with_vectors(rows, |row| row.scale(10));
    refuses(
        "factors a thousandfold",
        &|raw| raw.put(3, &part(scaled(honest_rows.clone()))),
        "damaged",
    );
    refuses("a scaled probe", &|raw| raw.put(2, &scaled(honest.opened(2))), "probe");
    // Verifying the vectors would mean computing them, so they are not imported.
    let other = repo.clone_with("compared", &[]);
    with_server(&other, &stub);
    let args = ["import", "-", "--compare-all", "--json"];
    let answer = call_in(other.root(), &args, &honest.to_bytes()).expect(0).json();
    assert_eq!(answer["new_vectors"], 0, "{answer}");
    assert!(
        answer["vectors_passed_over"]
            .as_str()
            .is_some_and(|why| why.contains("codescout index")),
        "{answer}"
    );
    assert_eq!(indexed(&other)["missing"], 0);

    refuses("another order", &|raw| raw.header.entries.swap(2, 3), "wrong entries");
    refuses("a file too many", &|raw| raw.header.added[0].1.push(1), "wrong entries");
    refuses(
        "very many models",
        &|raw| raw.header.added = vec![([7; 16], vec![]); 50],
        "too many models",
    );
    refuses(
        "blobs in a bundle of vectors",
        &|raw| raw.header.kind = 2,
        "parts in a bundle without blobs",
    );
    refuses(
        "another model and nothing else",
        &|raw| {
            raw.header.kind = 2;
            raw.header.parts.clear();
            raw.header.entries.drain(..2);
            raw.frames.drain(..2);
            raw.header.added[0].0[0] ^= 1;
        },
        "not configured here",
    );
    refuses("another recipe", &|raw| raw.header.recipe ^= 1, "recipe");
    let left = fs::read_dir(clone.path(".codescout/dense-v1")).unwrap().flatten();
    let left: Vec<_> = left
        .filter(|entry| entry.path().extension().is_none_or(|ending| ending != "vec"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn the_model_in_use_here_decides_whether_it_has_made_them() {
    let stub = Stub::start(|seen| openai(seen, DIM));
    let other = Stub::start(|seen| openai(seen, DIM + 1));
    let repo = project();
    let (clone, without) = (repo.clone_with("clone", &[]), repo.clone_with("without", &[]));
    with_server(&repo, &stub);
    indexed(&repo);
    let export = |args: &[&str]| call_in(repo.root(), args, b"").expect(0).stdout;
    let bytes = export(&["export", "-", "-q", "--vectors"]);
    let passed_over = |clone: &TestRepo, why: &str| {
        let called = call_in(clone.root(), &["import", "-", "--json"], &bytes).expect(0);
        let answer = called.json();
        let said = answer["vectors_passed_over"].as_str().unwrap_or_default();
        assert!(said.contains(why) && answer["new_vectors"] == 0, "{answer}");
        assert!(answer["new_blobs"].as_u64() > Some(0), "{answer}");
    };

    // Another model with the same name. It can still compute its own vectors.
    set_server(&clone, &other);
    passed_over(&clone, "another model");
    let vectors = indexed(&clone);
    assert_eq!(
        (&vectors["missing"], &vectors["stopped_because"]),
        (&0.into(), &Value::Null)
    );

    // If the model is unavailable, nothing can be verified and nothing is stored.
    let gone = Stub::start(|seen| openai(seen, DIM));
    set_server(&without, &gone);
    drop(gone);
    passed_over(&without, "cannot verify");
    set_server(&without, &other);
    let vectors = indexed(&without);
    assert_eq!(
        (&vectors["missing"], &vectors["stopped_because"]),
        (&0.into(), &Value::Null)
    );
}

#[test]
fn a_job_asks_only_for_what_is_new() {
    let stub = Stub::start(|seen| openai(seen, DIM));
    let weights = Stub::start(tei_sparse);
    let repo = project();
    let job = repo.clone_with("job", &[]);
    let archive = "../cache/index.bundle";
    let with_both = |repo: &TestRepo| {
        with_server(repo, &stub);
        let path = repo.path(".codescout/config.toml");
        let settings = fs::read_to_string(&path).unwrap();
        let sparse = format!("[sparse]\nserver = '{}'\nmodel = 's'\n", weights.url());
        configure(repo, &(settings + &sparse));
    };
    with_both(&repo);
    call_in(repo.root(), &["ci", "save", archive], b"").expect(0);
    let n_chunks = indexed(&repo)["new"].as_u64().unwrap();
    // An archive that was saved before vectors were computed is replaced.
    let saved = call_in(repo.root(), &["ci", "save", archive, "--json"], b"")
        .expect(0)
        .json();
    assert_eq!(
        (&saved["saved"], &saved["vectors"]),
        (&true.into(), &(2 * n_chunks).into())
    );
    let again = call_in(repo.root(), &["ci", "save", archive, "--json"], b"")
        .expect(0)
        .json();
    assert_eq!(again["saved"], false);

    stub.forget();
    weights.forget();
    with_both(&job);
    let answer = call_in(job.root(), &["ci", "restore", archive, "--json"], b"")
        .expect(0)
        .json();
    assert_eq!(answer["new_vectors"], 2 * n_chunks, "{answer}");
    assert_eq!((n_sent(&stub), n_sent(&weights)), (1, 1), "the probes");
    stub.forget();
    weights.forget();
    job.write("src/added.rs", "pub fn added_since() { retry_upload(9) }\n");
    job.commit("one more");
    assert_eq!(indexed(&job)["new"], 1);
    assert_eq!((n_sent(&stub), n_sent(&weights)), (2, 2), "the probes and the new one");
}

#[test]
fn vectors_stand_on_the_remote_beside_the_records() {
    let stub = Stub::start(|seen| openai(seen, DIM));
    let repo = project();
    let remote = repo.bare_clone("remote.git");
    remote.git(["config", "uploadpack.allowFilter", "true"]);
    let (mine, clone, plain) = (
        remote.clone_with("mine", &[]),
        remote.clone_with("clone", &[]),
        remote.clone_with("plain", &[]),
    );
    let json = |repo: &TestRepo, args: &[&str]| {
        let args = [args, &["--yes", "--json"]].concat();
        call_in(repo.root(), &args, b"").expect(0).json()
    };
    with_server(&mine, &stub);
    let first = json(&mine, &["push"]);
    assert_eq!(
        (&first["vector_blobs"], &first["parts_after"]),
        (&0.into(), &1.into()),
        "{first}"
    );
    let n_chunks = indexed(&mine)["new"].as_u64().unwrap();
    let answer = json(&mine, &["push"]);
    assert_eq!(
        (&answer["blobs"], &answer["parts_after"]),
        (&0.into(), &2.into()),
        "{answer}"
    );
    assert!(answer["vector_blobs"].as_u64() > Some(2), "{answer}");
    assert_eq!(json(&mine, &["push"])["pushed"], false);

    stub.forget();
    fs::create_dir_all(clone.path(".codescout")).unwrap();
    with_server(&clone, &stub);
    let answer = json(&clone, &["pull"]);
    assert_eq!(answer["new_vectors"], n_chunks, "{answer}");
    assert_eq!(indexed(&clone)["missing"], 0);
    assert_eq!(n_sent(&stub), 1, "the probe");
    assert_eq!(json(&clone, &["pull"])["parts"], 0);
    let answer = json(&plain, &["pull"]);
    assert_eq!(
        (&answer["parts_there"], &answer["new_vectors"]),
        (&1.into(), &0.into()),
        "{answer}"
    );
}
