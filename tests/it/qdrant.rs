//! Vectors that clones share by a Qdrant, played by a stub: what is put and taken, that answers are those of the local index, and what
//! they are like while it fails.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use codescout::query::Mode;
use codescout::snapshot::View;
use roaring::RoaringBitmap;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::cli::{Called, call_in, spawn_in};
use crate::indexed::{Indexed, MODES, NEVER};
use crate::remote::configure;
use crate::support::model::{openai, texts_of};
use crate::support::qdrant::QdrantStub;
use crate::support::{Reply, Seen, Stub, TestRepo};

const DIM: usize = 64;
const QUERIES: [&str; 3] = ["packet 7", "where is the length counted", "handles bytes of a packet"];

fn openai_stub() -> Stub {
    Stub::start(|seen| openai(seen, DIM))
}

/// Files with a function each.
fn project(n_files: usize) -> TestRepo {
    let repo = TestRepo::empty();
    for number in 0..n_files {
        write_packet(&repo, number);
    }
    repo.commit("start");
    repo
}

fn write_packet(repo: &TestRepo, number: usize) {
    let text = format!(
        "/// Handles packet {number} of kind {}.\npub fn packet_{number}(bytes: &[u8]) -> usize {{\n    bytes.len() + {number}\n}}\n",
        number % 7
    );
    repo.write(format!("src/packet_{number}.rs"), text);
}

fn with_embedder(embedder: &Stub) -> String {
    format!(
        "[embedding]\nserver = '{}'\nmodel = 'm'\nbatch = 4\nin_flight = 1\n",
        embedder.url()
    )
}

/// Every question is asked there, however few documents there are.
fn with_qdrant(url: &str) -> String {
    format!("[qdrant]\nserver = '{url}'\nscan_below = 0\nquery_timeout_ms = 20000\n")
}

fn index(repo: &TestRepo) -> Called {
    call_in(repo.root(), &["index", "--json"], b"").expect(0)
}

fn search(repo: &TestRepo, query: &str) -> Value {
    call_in(repo.root(), &["search", query, "--json"], b"").json()
}

/// The results of a search, without what tells how it was made.
fn found(repo: &TestRepo, query: &str) -> Value {
    search(repo, query)["results"].clone()
}

fn why(answer: &Value) -> String {
    let reasons = answer["incomplete_because"].as_array().cloned().unwrap_or_default();
    reasons.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("\n")
}

/// What a repository answers without any server.
fn answers(repo: &TestRepo) -> Vec<Value> {
    QUERIES.iter().map(|query| found(repo, query)).collect()
}

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
    // One collection of one tenant, and nothing in it that tells whose it is.
    let collections = qdrant.collections();
    assert_eq!(collections.len(), 1);
    let (name, made) = collections.iter().next().unwrap();
    assert!(name.starts_with("codescout-") && name.ends_with("-1"), "{name}");
    assert_eq!(made["config"]["vectors"]["dense"]["distance"], "Cosine");
    assert_eq!(made["config"]["sparse_vectors"], json!({ "sparse": {} }));
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

    // Nothing is put twice.
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

    // The same vectors, so the same answers as who made them has.
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
fn while_it_is_away_slow_or_wrong_answers_are_local_and_say_so() {
    let repo = project(20);
    let qdrant = QdrantStub::start();
    configure(&repo, &with_qdrant(&qdrant.url()));
    let before = answers(&repo);
    index(&repo);
    let html = || Reply::status(200).body(b"<html>Login</html>");
    let other_vector = || Reply::json(&json!({ "result": [{ "points": [] }], "status": "ok" }));
    let not_a_number = |seen: &Seen| {
        let n = seen.json()["searches"].as_array().map_or(0, Vec::len);
        let found = format!(
            "{{\"points\":[{{\"id\":\"{}\",\"score\":1e999}}]}}",
            "00000000-0000-0000-0000-000000000000"
        );
        let all = vec![found; n].join(",");
        Reply::status(200).body(format!("{{\"result\":[{all}]}}").as_bytes())
    };
    type Fault = Box<dyn Fn(&Seen) -> Option<Reply> + Send + Sync>;
    let faults: Vec<(&str, Fault)> = vec![
        ("401", Box::new(|_| Some(Reply::status(401)))),
        ("429", Box::new(|_| Some(Reply::status(429)))),
        ("500", Box::new(|_| Some(Reply::status(500)))),
        ("503", Box::new(|_| Some(Reply::status(503)))),
        ("404", Box::new(|_| Some(Reply::status(404)))),
        ("the answer broke off", Box::new(|_| Some(Reply::hang_up()))),
        (
            "no answer within",
            Box::new(|_| Some(Reply::status(200).after(Duration::from_secs(600)))),
        ),
        ("not the JSON", Box::new(move |_| Some(html()))),
        ("another number of results", Box::new(move |_| Some(other_vector()))),
        ("not the JSON", Box::new(move |seen| Some(not_a_number(seen)))),
    ];
    for (told, fault) in faults {
        qdrant.fail(fault);
        qdrant.stub().forget();
        let timeout = with_qdrant(&qdrant.url()).replace("20000", "1500");
        configure(&repo, &timeout);
        let started = Instant::now();
        let answer = search(&repo, QUERIES[0]);
        assert_eq!(answer["results"], before[0], "{told}");
        let why = why(&answer);
        assert!(
            why.contains(told) && why.contains("compared on this machine"),
            "{told}: {why}"
        );
        assert!(
            qdrant.stub().requests().len() <= 5,
            "{told}: {}",
            qdrant.stub().requests().len()
        );
        assert!(started.elapsed() < Duration::from_secs(60), "{told}");
    }
    qdrant.mend();
    assert_eq!(why(&search(&repo, QUERIES[0])), "");
    let gone = qdrant.url();
    drop(qdrant);
    let answer = search(&repo, QUERIES[0]);
    assert_eq!(answer["results"], before[0]);
    assert!(why(&answer).contains("no connection"), "{gone}: {answer}");
    let done = index(&repo).json();
    assert!(
        done["shared"]["stopped_because"]
            .as_str()
            .unwrap()
            .contains("no connection"),
        "{done}"
    );
}

/// A project whose chunks are alike enough to be ranked by small differences.
fn large_project(n_files: usize) -> TestRepo {
    let repo = TestRepo::empty();
    for file in 0..n_files {
        let functions = (0..10).map(|at| {
            let number = file * 10 + at;
            format!(
                "/// Reads field {} of record {number} from the {} of the stream, {} times.\n\
                 pub fn read_field_{number}(stream: &mut Stream) -> Result<Field, Error> {{\n    \
                 stream.seek({number})?;\n    let bytes = stream.take({})?;\n    Field::decode(bytes, {})\n}}\n\n{}",
                number % 13,
                ["head", "tail", "middle", "end"][number % 4],
                number % 5,
                number % 11,
                number % 3,
                // Long enough to be a chunk of its own.
                "// padding that says nothing of the record at all\n".repeat(12),
            )
        });
        repo.write(
            format!("part_{}/file_{file}.rs", file % 6),
            functions.collect::<String>(),
        );
    }
    repo.commit("start");
    repo
}

/// Numbers that look random and are the same in every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// The cosines of the stored vectors with a query, by document.
fn brute_force(view: &View, query: &[f32]) -> BTreeMap<u32, f32> {
    let mut cosines = BTreeMap::new();
    let norm = query.iter().map(|x| x * x).sum::<f32>().sqrt();
    for segment in view.segments().iter() {
        let vectors = segment.vectors.as_ref().unwrap();
        for row in (0..vectors.len()).filter(|&row| vectors.weight(row) > 0.0) {
            let vector = vectors.vector(row).unwrap();
            let dot: f32 = vector.iter().zip(query).map(|(x, y)| x * y).sum();
            cosines.insert(segment.base_doc + row, dot / norm);
        }
    }
    cosines
}

#[test]
fn the_nearest_of_any_documents_are_those_of_a_comparison_one_by_one() {
    let repo = large_project(60);
    let qdrant = QdrantStub::start();
    configure(&repo, &with_qdrant(&qdrant.url()));
    index(&repo);
    let indexed = Indexed::new(repo.root());
    let view = indexed.view("HEAD");
    let elsewhere = indexed.workspace.elsewhere(&view, &NEVER).unwrap().unwrap();
    let all: Vec<u32> = elsewhere.holds.iter().collect();
    assert!(all.len() > 500, "{} documents", all.len());
    let mut dice = Dice(7);
    for n_live in [1, 7, 200, 256, 257, 300, 450, all.len()] {
        for k in [1, 10, 200] {
            let mut live = RoaringBitmap::new();
            while live.len() < n_live as u64 {
                live.insert(all[dice.below(all.len() as u64) as usize]);
            }
            // A document that is known to nobody, and an overlay's.
            live.insert(u32::MAX - 1);
            let text = format!("read field {} from the tail", dice.below(13));
            let query = indexed.workspace.embedder().embed_query(&text, &NEVER).unwrap().vector;
            qdrant.stub().forget();
            let found = elsewhere.index.search(&query, &live, k).unwrap();
            let requests = qdrant.stub().requests();
            assert!(requests.len() <= 3, "{n_live} {k}: {} requests", requests.len());
            let n_bytes: usize = requests.iter().map(|seen| seen.body.len()).max().unwrap();
            assert!(n_bytes < 20_000, "{n_live} {k}: {n_bytes} bytes");

            let cosines = brute_force(&view, &query);
            let mut expected: Vec<f32> = cosines
                .iter()
                .filter(|(doc, _)| live.contains(**doc))
                .map(|(_, cosine)| *cosine)
                .collect();
            expected.sort_by(|a, b| b.total_cmp(a));
            expected.truncate(k);
            assert_eq!(found.len(), expected.len(), "{n_live} {k}");
            for ((doc, cosine), expected) in found.iter().zip(&expected) {
                assert!(live.contains(*doc), "{n_live} {k}: {doc} is not live");
                assert!((cosine.0 - cosines[doc]).abs() < 1e-5, "{n_live} {k}: {doc}");
                assert!(
                    (cosine.0 - expected).abs() < 1e-5,
                    "{n_live} {k}: {cosine:?} for {expected}"
                );
            }
            let in_order = found
                .windows(2)
                .all(|pair| (pair[1].1.0, pair[0].0) <= (pair[0].1.0, pair[1].0));
            assert!(in_order, "{n_live} {k}: {found:?}");
        }
    }
}

#[test]
fn answers_are_those_of_the_local_index_at_any_revision_and_repositories_do_not_mix() {
    let qdrant = QdrantStub::start();
    let (repo, other) = (large_project(50), large_project(48));
    for file in 0..20 {
        repo.remove(format!("part_{}/file_{file}.rs", file % 6));
    }
    repo.commit("fewer");
    repo.write("part_0/file_21.rs", "pub fn changed() {}\n");
    let queries = ["read field 3 from the tail", "take bytes of a record", "read_field_250"];
    let ask = |repo: &TestRepo| -> Vec<_> {
        let indexed = Indexed::new(repo.root());
        let references = ["HEAD", "HEAD~1", "WORKTREE"];
        let views = references.into_iter().filter(|name| {
            repo.try_git(["rev-parse", "-q", "--verify", &name.replace("WORKTREE", "HEAD")])
                .status
                .success()
        });
        views
            .map(|name| indexed.answers(&indexed.view(name), &queries))
            .collect()
    };
    let before = [ask(&repo), ask(&other)];
    for repo in [&repo, &other] {
        configure(repo, &with_qdrant(&qdrant.url()));
        call_in(repo.root(), &["index", "--quiet", "HEAD"], b"").expect(0);
    }
    // What is at no tip is not there: half of the documents of the older revision are compared here.
    assert_eq!((qdrant.collections().len(), qdrant.repositories().len()), (1, 2));
    qdrant.stub().forget();
    let after = [ask(&repo), ask(&other)];
    assert!(qdrant.n_asked("/points/query/batch") >= queries.len() * 3);
    for (before, after) in before.iter().flatten().flatten().zip(after.iter().flatten().flatten()) {
        after.assert_same(before, "with a Qdrant");
    }
    assert!(before[0][0].len() == queries.len() * MODES.len());
    let notes = Indexed::new(repo.root());
    let notes = notes
        .try_search(&notes.view("HEAD"), Mode::Semantic, queries[0])
        .unwrap()
        .notes;
    assert_eq!(notes, Vec::<String>::new());
}

#[test]
fn vectors_that_went_behind_everybodys_back_are_missed_and_put_back() {
    let repo = project(30);
    let qdrant = QdrantStub::start();
    configure(&repo, &with_qdrant(&qdrant.url()));
    let before = answers(&repo);
    index(&repo);
    qdrant.lose_every(3);
    let answer = search(&repo, QUERIES[0]);
    assert_eq!(answer["results"], before[0]);
    assert!(why(&answer).contains("vectors are not there that were"), "{answer}");
    let done = index(&repo).json();
    assert_eq!(
        (&done["shared"]["new"], &done["shared"]["found"]),
        (&json!(10), &json!(20)),
        "{done}"
    );
    assert_eq!(why(&search(&repo, QUERIES[0])), "");
}

#[test]
fn vectors_that_were_lost_among_many_are_missed_and_put_back() {
    let repo = large_project(40);
    let qdrant = QdrantStub::start();
    index(&repo);
    let query = "read field 3 from the tail";
    let before = search(&repo, query);
    assert_eq!(why(&before), "");
    configure(&repo, &with_qdrant(&qdrant.url()));
    let n_docs = index(&repo).json()["shared"]["new"].as_u64().unwrap();
    assert!(n_docs > 256, "{n_docs}");
    // Another clone has put more than are lost below.
    qdrant.put_others(n_docs as usize);
    assert_eq!(index(&repo).json()["shared"]["new"], 0);
    qdrant.stub().forget();
    assert_eq!(why(&search(&repo, query)), "");
    assert_eq!(qdrant.n_asked("/points/count"), 1);
    let before_loss = qdrant.n_vectors();
    qdrant.lose_every(3);
    let n_lost = before_loss - qdrant.n_vectors();
    assert!(qdrant.n_vectors() as u64 > n_docs);
    let answer = search(&repo, query);
    assert_eq!(places(&answer), places(&before));
    assert!(why(&answer).contains("vectors where there were"), "{answer}");
    let done = index(&repo).json();
    let (new, found) = (&done["shared"]["new"], &done["shared"]["found"]);
    let (new, found) = (new.as_u64().unwrap(), found.as_u64().unwrap());
    assert!(new > 0 && new <= n_lost as u64 && new + found == n_docs, "{done}");
    assert_eq!(why(&search(&repo, query)), "");
}

#[test]
fn what_is_only_promised_does_not_count() {
    let repo = project(12);
    let qdrant = QdrantStub::start();
    configure(&repo, &with_qdrant(&qdrant.url()));
    // The collection, then no more.
    index(&repo);
    write_packet(&repo, 40);
    repo.commit("more");
    qdrant.only_promise(&["points"], false);
    let done = index(&repo).json();
    assert_eq!(
        (&done["shared"]["new"], &done["shared"]["missing"]),
        (&json!(0), &json!(1)),
        "{done}"
    );
    assert!(
        done["shared"]["stopped_because"].as_str().unwrap().contains("accepted"),
        "{done}"
    );
    assert_eq!(why(&search(&repo, "packet 40")), "");
    qdrant.only_promise(&[], false);
    assert_eq!(index(&repo).json()["shared"]["new"], 1);
}

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

/// Shares a chunk that nothing here has any more.
fn forget_one(repo: &TestRepo) {
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
    // Nor may a repository say where its vectors go.
    std::fs::remove_file(repo.path(".codescout/config.toml")).unwrap();
    repo.write(".codescout.toml", with_qdrant(&qdrant.url()));
    let called = call_in(repo.root(), &["index"], b"").expect(2);
    assert!(
        called.stderr.contains("qdrant.server can only be set in"),
        "{}",
        called.stderr
    );
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
    let started = Instant::now();
    while put(&qdrant).len() < 2 {
        assert!(started.elapsed() < Duration::from_secs(120));
        std::thread::sleep(Duration::from_millis(10));
    }
    child.kill().unwrap();
    child.wait().unwrap();
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

    // Another model: its own clone makes its own vectors and keeps them to itself.
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
            .contains("another vector for the same text"),
        "{done}"
    );
    assert_eq!(qdrant.n_vectors(), 8);

    // Answers that cannot be vectors: the embedder is asked.
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
        assert!(notes.contains("were not taken"), "{number}: {notes}");
        qdrant.mend();
    }
}

/// Where the results of a search stand, and their scores.
fn places(answer: &Value) -> Vec<(String, u64, f64)> {
    let results = answer["results"].as_array().unwrap().iter();
    let place = |result: &Value| {
        let line = result["start_line"].as_u64().unwrap();
        (result["path"].to_string(), line, result["score"].as_f64().unwrap())
    };
    results.map(place).collect()
}

/// Everything from the first vector to the last, on any server. `prefix` is nobody else's.
fn whole_course(url: &str, prefix: &str, key: Option<&str>) {
    let embedder = openai_stub();
    let repo = large_project(40);
    let settings = |more: &str| {
        let key = key.map_or(String::new(), |_| {
            format!("key_file = '{}'\n", repo.beside("key").display())
        });
        format!(
            "{}{}prefix = '{prefix}'\n{key}{more}",
            with_embedder(&embedder),
            with_qdrant(url)
        )
    };
    std::fs::write(repo.beside("key"), key.unwrap_or_default()).unwrap();
    configure(&repo, &with_embedder(&embedder));
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
    assert_eq!(ask(&repo), before);

    // Another clone takes them; it has a branch of its own.
    let clone = repo.clone_with("second", &[]);
    configure(&clone, &settings(""));
    embedder.forget();
    let done = index(&clone).json();
    assert_eq!(
        (&done["vectors"]["taken"], &done["shared"]["missing"]),
        (&json!(n_chunks), &json!(0)),
        "{done}"
    );
    assert!(embedder.requests().is_empty());
    // Taken vectors were rounded once more: the last digits of scores are others.
    let taken = ask(&clone);
    for (ours, theirs) in taken.iter().flatten().zip(before.iter().flatten()) {
        assert!((ours.2 - theirs.2).abs() < 0.01, "{ours:?} for {theirs:?}");
    }

    // The first forgets some, and has them removed; the second notices, and puts them back.
    for file in 0..15 {
        repo.remove(format!("part_{}/file_{file}.rs", file % 6));
    }
    repo.git(["add", "--all"]);
    repo.git(["commit", "--quiet", "--amend", "-m", "fewer"]);
    repo.git(["reflog", "expire", "--expire=now", "--all"]);
    repo.git(["update-ref", "-d", "ORIG_HEAD"]);
    // Its first commit is another now; who shares says so.
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
    let n_removed = collected["shared"]["count"].as_u64().unwrap();
    assert!(n_removed > 100 && collected["shared"]["removed"] == true, "{collected}");
    assert_eq!(ask(&repo).len(), queries.len(), "what was looked at again is asked");
    let answer = search(&clone, queries[0]);
    assert!(why(&answer).contains("codescout index looks again"), "{answer}");
    assert_eq!(places(&answer), taken[0]);
    let done = index(&clone).json();
    assert_eq!(
        (&done["shared"]["new"], &done["shared"]["found"]),
        (&json!(n_removed), &json!(n_chunks - n_removed)),
        "{done}"
    );
    assert_eq!(ask(&clone), taken);

    // Another collection takes the place of the first.
    configure(&clone, &settings("compression = 'scalar'\n"));
    let moved = call_in(clone.root(), &["index", "--new-collection"], b"")
        .expect(0)
        .text();
    assert!(moved.contains("vectors moved to"), "{moved}");
    assert_eq!(ask(&clone), taken);
    assert!(why(&search(&repo, queries[0])).contains("removed or moved"));
    assert_eq!(index(&repo).json()["shared"]["new"], 0);
    ask(&repo);
}

#[test]
fn clones_put_take_remove_and_move_vectors() {
    let qdrant = QdrantStub::start();
    qdrant.want_key("sesame");
    whole_course(&qdrant.url(), "course", Some("sesame"));
    let collections = qdrant.collections();
    let (name, made) = collections.iter().next().unwrap();
    assert!(collections.len() == 1 && !name.ends_with("-1"), "{collections:?}");
    assert_eq!(made["config"]["quantization_config"]["scalar"]["type"], "int8");
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

#[test]
fn a_collection_that_is_gone_or_being_emptied_is_not_relied_on() {
    let repo = project(20);
    let qdrant = QdrantStub::start();
    configure(&repo, &with_qdrant(&qdrant.url()));
    let before = answers(&repo);
    index(&repo);
    qdrant.begin_removal();
    let answer = search(&repo, QUERIES[0]);
    assert!(why(&answer).contains("being removed"), "{answer}");
    assert_eq!(answer["results"], before[0]);
    write_packet(&repo, 50);
    repo.commit("more");
    let done = index(&repo).json();
    assert!(
        done["shared"]["stopped_because"]
            .as_str()
            .unwrap()
            .contains("removing vectors"),
        "{done}"
    );
    let doctor = call_in(repo.root(), &["doctor"], b"").text();
    assert!(doctor.contains("vectors are being removed"), "{doctor}");
    // Who began has not ended for a long time: whoever removes next ends it.
    call_in(repo.root(), &["gc", "--qdrant"], b"").expect(0);
    assert_eq!(index(&repo).json()["shared"]["new"], 1);

    qdrant.drop_all();
    let answer = search(&repo, QUERIES[0]);
    assert!(
        why(&answer).contains("404") && why(&answer).contains("codescout index"),
        "{answer}"
    );
    let doctor = call_in(repo.root(), &["doctor"], b"").text();
    assert!(doctor.contains("nothing of this repository is there yet"), "{doctor}");
    assert_eq!(index(&repo).json()["shared"]["new"], 21);
    assert_eq!(why(&search(&repo, QUERIES[0])), "");
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
            .contains("too shallow"),
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
fn what_leaves_and_what_is_there_are_told() {
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
        (&json!(5), &json!(1)),
        "{status}"
    );
    assert_eq!(qdrant.n_vectors(), 5, "nothing of the credentials");
    call_in(repo.root(), &["verify"], b"").expect(0);
    // What is known to be there is damaged: it is found, and looked for again.
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
    // Likewise what the repository is known by.
    std::fs::write(repo.path(".codescout/repository"), "x").unwrap();
    let status = call_in(repo.root(), &["status", "--json"], b"").expect(0).json();
    assert_eq!(status["shared"]["chunks"], 0, "{status}");
    assert_eq!(why(&search(&repo, "packet")), "");
    index(&repo);
    let status = call_in(repo.root(), &["status", "--json"], b"").expect(0).json();
    assert_eq!(status["shared"]["chunks"], 5, "{status}");
}

#[test]
fn what_is_moved_while_vectors_are_put_is_looked_at_again() {
    let repo = project(20);
    let before = answers(&repo);
    let qdrant = QdrantStub::start();
    configure(&repo, &with_qdrant(&qdrant.url()));
    let renew = qdrant.renewing();
    qdrant.fail(move |seen| {
        // After the generation was read, before vectors are put.
        if seen.json()["ids"].as_array().is_some_and(|ids| ids.len() > 1) {
            renew();
        }
        None
    });
    let done = index(&repo).json();
    assert!(
        done["shared"]["stopped_because"]
            .as_str()
            .unwrap()
            .contains("meanwhile"),
        "{done}"
    );
    qdrant.mend();
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
