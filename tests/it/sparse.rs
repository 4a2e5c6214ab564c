//! Tests sparse vectors from a stub server. They are a third source of candidates if configured, and answers work
//! without them.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use codescout::embed::{EmbedError, Embedder, Profile, SparseEmbedder, SparseVector};
use codescout::ingest::{CatchUp, CatchUpOutcome, EmbeddingSource, Trigger};
use codescout::model::Ctx;
use codescout::query::{Mode, Request, Searcher};
use serde_json::json;

use crate::cli::{call_in, spawn_in};
use crate::indexed::{Indexed, NEVER, path_of};
use crate::remote::{configure, index, lead_through_everything, project, sent};
use crate::support::model::{openai, sparse_of, tei_sparse, texts_of};
use crate::support::{Reply, Stub, TestRepo, assert_within, kill, wait_until};

fn settings(stub: &Stub) -> String {
    format!(
        "[sparse]\nserver = '{}'\nmodel = 's'\nbatch = 4\nin_flight = 1\n",
        stub.url()
    )
}

fn with_server(repo: &TestRepo, stub: &Stub) -> Indexed {
    configure(repo, &settings(stub));
    Indexed::new(repo.root())
}

/// Creates a project with one file that shares no word with the query. Only the model relates them.
fn with_a_hidden_one() -> TestRepo {
    let repo = project(12);
    repo.write(
        "src/hidden.rs",
        "/// Quuxify the input.\npub fn quuxify(input: &str) -> String {\n    input.to_owned()\n}\n",
    );
    repo.commit("hidden");
    repo
}

/// Returns the 0-based rank of the file `src/hidden.rs` in an answer.
fn rank_of_hidden(indexed: &Indexed, mode: Mode, query: &str) -> Option<usize> {
    let view = indexed.view("WORKTREE");
    let hits = indexed.search(&view, mode, query);
    hits.iter()
        .position(|hit| path_of(&view, hit.places[0].file) == "src/hidden.rs")
}

impl Indexed {
    /// Returns the names of the sparse vector files of all segments.
    fn sparse_files(&self) -> Vec<String> {
        let state = self.state();
        let files = state.segments.iter().flat_map(|entry| &entry.vectors);
        let names = files.map(|vectors| vectors.file.name.clone());
        names.filter(|name| name.ends_with(".sparse")).collect()
    }

    fn sparse_profile(&self) -> String {
        self.workspace
            .models
            .remote_sparse()
            .unwrap()
            .profile()
            .id()
            .to_string()
    }
}

#[test]
fn what_shares_no_word_with_the_question_is_found() {
    let repo = with_a_hidden_one();
    let stub = Stub::start(tei_sparse);
    let before = Indexed::new(repo.root());
    assert_ne!(rank_of_hidden(&before, Mode::Auto, "zorblax packet"), Some(0));
    let indexed = with_server(&repo, &stub);
    let done = indexed.caught_up();
    assert_eq!(
        (done.n_docs, done.n_embedded, done.n_left, done.stopped),
        (13, 13, 0, None)
    );
    for (mode, query) in [(Mode::Auto, "zorblax"), (Mode::Hybrid, "how do I zorblax something")] {
        assert_eq!(rank_of_hidden(&indexed, mode, query), Some(0), "{mode:?} {query:?}");
        assert_eq!(indexed.notes(mode, query), Vec::<String>::new());
    }
    let view = indexed.view("WORKTREE");
    let hit = &indexed.search(&view, Mode::Auto, "zorblax")[0];
    assert_eq!((hit.features.bm25, hit.features.sparse), (0.0, 1.0));
    // Other modes send no request.
    stub.forget();
    for mode in [Mode::Semantic, Mode::Keyword, Mode::Similar] {
        indexed.search(&view, mode, "zorblax");
    }
    assert!(stub.requests().is_empty());
    // With weight 0, only the candidates may differ.
    configure(&repo, &format!("{}weight_percent = 0\n", settings(&stub)));
    let weightless = Indexed::new(repo.root());
    let hits = weightless.search(&view, Mode::Auto, "zorblax");
    assert!(hits.iter().all(|hit| hit.features.sparse == 0.0));
}

#[test]
fn without_a_server_answers_are_the_same_to_the_bit() {
    let repo = with_a_hidden_one();
    let stub = Stub::start(tei_sparse);
    let queries = ["packet 7", "where is the length counted", "quuxify"];
    let before = Indexed::new(repo.root());
    let answers = before.answers(&before.view("HEAD"), &queries);
    with_server(&repo, &stub).caught_up();
    std::fs::remove_file(repo.path(".codescout/config.toml")).unwrap();
    stub.forget();
    let after = Indexed::new(repo.root());
    for (ours, theirs) in after.answers(&after.view("HEAD"), &queries).iter().zip(&answers) {
        ours.assert_same(theirs, "without a server");
    }
    assert!(stub.requests().is_empty());
}

#[test]
fn only_what_is_new_is_sent_and_rows_are_carried_through_everything() {
    let stub = Stub::start(tei_sparse);
    let (_repo, other) = lead_through_everything(&stub, &settings(&stub), Indexed::sparse_profile);
    // Carried vectors equal the computed ones.
    let view = other.view("HEAD");
    for segment in view.segments().iter() {
        let sparse = segment.sparse.as_ref().unwrap();
        sparse.verify().unwrap();
        for row in (0..sparse.len()).filter(|row| view.live().contains(segment.base_doc + row)) {
            assert!(sparse.terms(row).count() > 1, "{row}");
        }
    }
    assert_eq!(other.notes(Mode::Auto, "added"), Vec::<String>::new());
    other.collect(Trigger::Asked, &[]);
    assert!(!other.sparse_files().is_empty());
    other.collect(Trigger::Aggressive, &[]);
    assert!(other.sparse_files().is_empty());
    assert_eq!(other.caught_up().n_embedded, 22);
}

#[test]
fn vectors_and_sparse_vectors_stand_side_by_side() {
    let repo = with_a_hidden_one();
    let (dense, stub) = (Stub::start(|seen| openai(seen, 32)), Stub::start(tei_sparse));
    let text = format!(
        "[embedding]\nserver = '{}'\nmodel = 'm'\n{}",
        dense.url(),
        settings(&stub)
    );
    configure(&repo, &text);
    let done = index(&repo).json();
    for (field, model) in [("vectors", "m"), ("sparse_vectors", "s")] {
        assert_eq!(
            (&done[field]["model"], &done[field]["new"], &done[field]["missing"]),
            (&json!(model), &json!(13), &json!(0)),
            "{done}"
        );
    }
    let status = call_in(repo.root(), &["status"], b"").expect(0).text();
    assert!(status.contains("vectors     13 chunks by m at "), "{status}");
    assert!(status.contains("sparse      13 chunks by s at "), "{status}");
    let indexed = Indexed::new(repo.root());
    assert_eq!(indexed.state().segments.last().unwrap().vectors.len(), 3);
    let view = indexed.view("WORKTREE");
    let hits = indexed.search(&view, Mode::Auto, "zorblax");
    let hidden = hits.iter().find(|hit| hit.features.sparse == 1.0).unwrap();
    assert_eq!(path_of(&view, hidden.places[0].file), "src/hidden.rs");
    // A garbage collection keeps the vectors of the profiles in use.
    call_in(repo.root(), &["gc", "--aggressive"], b"").expect(0);
    assert_eq!(index(&repo).json()["sparse_vectors"]["new"], 0);
    call_in(repo.root(), &["verify"], b"").expect(0);
}

#[test]
fn while_the_server_is_away_the_rest_answers_and_says_so() {
    let repo = with_a_hidden_one();
    let stub = Stub::start(tei_sparse);
    let gone = Stub::start(|_| Reply::status(503));
    configure(&repo, &format!("{}timeout_s = 1\n", settings(&gone)));
    let indexed = Indexed::new(repo.root());
    let done = indexed.caught_up();
    assert_eq!((done.n_embedded, done.n_left), (0, 13));
    assert!(done.stopped.unwrap().contains("503"));
    assert!((2..20).contains(&gone.requests().len()), "{}", gone.requests().len());
    let notes = indexed.notes(Mode::Auto, "packet");
    assert!(
        notes[0].starts_with("there are no sparse vectors of s yet"),
        "{notes:?}"
    );
    with_server(&repo, &stub).caught_up();

    let indexed = with_server(&repo, &gone);
    gone.forget();
    let started = Instant::now();
    let notes = indexed.notes(Mode::Auto, "packet");
    assert!(
        notes.len() == 1 && notes[0].contains("503") && notes[0].ends_with("sparse vectors are not used"),
        "{notes:?}"
    );
    assert_within(Duration::from_secs(60), started, "a server that fails");
    assert!((1..=5).contains(&gone.requests().len()));
    let found = call_in(repo.root(), &["search", "packet", "--json"], b"")
        .expect(0)
        .json();
    assert_eq!(found["complete"], false, "{found}");
    assert!(!found["results"].as_array().unwrap().is_empty());
    gone.forget();
    assert!(indexed.notes(Mode::Keyword, "packet").is_empty());
    assert!(gone.requests().is_empty());
}

#[test]
fn both_servers_are_asked_at_once() {
    let repo = project(3);
    // During queries, each server responds only after both have received a request.
    let meeting = Arc::new(Meeting::default());
    let (one, other) = (Arc::clone(&meeting), Arc::clone(&meeting));
    let dense = Stub::start(move |seen| {
        one.wait(0);
        openai(seen, 32)
    });
    let stub = Stub::start(move |seen| {
        other.wait(1);
        tei_sparse(seen)
    });
    let patient = "query_timeout_ms = 60000\n";
    let text = format!(
        "[embedding]\nserver = '{}'\nmodel = 'm'\n{patient}{}{patient}",
        dense.url(),
        settings(&stub)
    );
    configure(&repo, &text);
    index(&repo);
    let indexed = Indexed::new(repo.root());
    let view = indexed.view("HEAD");
    meeting.is_on.store(true, Ordering::SeqCst);
    let outcome = indexed.try_search(&view, Mode::Auto, "packet").unwrap();
    assert_eq!(outcome.notes, Vec::<String>::new());
    assert_eq!(*meeting.is_asked.lock().unwrap(), [true; 2]);
    assert!(!meeting.was_in_vain.load(Ordering::SeqCst));
}

/// Delays the responses of two servers until both have received a request.
#[derive(Default)]
struct Meeting {
    is_on: AtomicBool,
    is_asked: Mutex<[bool; 2]>,
    asked: Condvar,
    was_in_vain: AtomicBool,
}

impl Meeting {
    fn wait(&self, server: usize) {
        if !self.is_on.load(Ordering::SeqCst) {
            return;
        }
        let mut is_asked = self.is_asked.lock().unwrap();
        is_asked[server] = true;
        self.asked.notify_all();
        let limit = Duration::from_secs(30);
        let waited = self
            .asked
            .wait_timeout_while(is_asked, limit, |is_asked| is_asked.contains(&false));
        if waited.unwrap().1.timed_out() {
            self.was_in_vain.store(true, Ordering::SeqCst);
        }
    }
}

#[test]
fn half_of_the_vectors_is_half_and_said() {
    let repo = project(8);
    let n_asked = AtomicUsize::new(0);
    let failing = Stub::start(move |seen| {
        if seen.path == "/info" {
            return tei_sparse(seen);
        }
        match n_asked.fetch_add(1, Ordering::SeqCst) {
            0 | 1 => tei_sparse(seen),
            _ => Reply::status(500),
        }
    });
    let indexed = with_server(&repo, &failing);
    let done = indexed.caught_up();
    assert_eq!((done.n_embedded, done.n_left), (4, 4));
    let stub = Stub::start(tei_sparse);
    let indexed = with_server(&repo, &stub);
    let notes = indexed.notes(Mode::Auto, "packet");
    assert!(
        notes[0].starts_with("4 of 8 chunks have no sparse vector of s yet"),
        "{notes:?}"
    );
    assert_eq!(indexed.search(&indexed.view("HEAD"), Mode::Auto, "packet").len(), 8);
    assert_eq!(indexed.caught_up().n_embedded, 4);
    // Uncommitted chunks have no sparse vector, which is not reported.
    repo.write("src/fresh.rs", "pub fn fresh_packet() {}\n");
    stub.forget();
    assert_eq!(indexed.notes(Mode::Auto, "packet"), Vec::<String>::new());
    assert_eq!(sent(&stub).len(), 1, "the question alone");
}

#[test]
fn another_model_under_the_same_name_is_refused() {
    let repo = project(4);
    let stub = Stub::start(tei_sparse);
    with_server(&repo, &stub).caught_up();
    repo.write("more.rs", "pub fn more() {}\n");
    repo.commit("more");
    let other = Stub::start(|seen| {
        let vectors = texts_of(seen).into_iter().map(|text| {
            let terms = sparse_of(&text).into_iter();
            let terms = terms.map(|(index, value)| json!({"index": index + 1, "value": value}));
            terms.collect::<Vec<_>>()
        });
        Reply::json(&json!(vectors.collect::<Vec<_>>()))
    });
    let done = with_server(&repo, &other).caught_up();
    let why = done.stopped.unwrap();
    assert!(
        why.contains("a different model under the same name") && why.contains("sparse.revision"),
        "{why}"
    );
    assert_eq!(done.n_embedded, 0);
    let notes = Indexed::new(repo.root()).notes(Mode::Auto, "packet");
    assert!(
        notes[0].contains("a different model") && notes[0].contains("sparse vectors are not used"),
        "{notes:?}"
    );
    configure(&repo, &format!("{}revision = '2'\n", settings(&other)));
    assert_eq!(Indexed::new(repo.root()).caught_up().n_embedded, 5);
}

#[test]
fn files_that_hold_secrets_are_given_to_nobody() {
    let repo = project(2);
    repo.write(".env", "DATABASE_URL=postgres://app:hunter2@db/prod\n");
    repo.write("src/key.rs", "const PASSWORD: &str = \"correct-horse-battery\";\n");
    repo.commit("secrets");
    let stub = Stub::start(tei_sparse);
    let done = with_server(&repo, &stub).caught_up();
    assert_eq!((done.n_docs, done.n_withheld), (3, 1));
    for seen in stub.requests() {
        let body = String::from_utf8(seen.body).unwrap();
        assert!(!body.contains("hunter2") && !body.contains("correct-horse"), "{body}");
    }
}

#[test]
fn as_many_requests_are_in_flight_as_are_wanted() {
    let repo = project(40);
    let stub = Stub::start(|seen| match seen.path.as_str() {
        "/info" => tei_sparse(seen),
        _ => tei_sparse(seen).after(Duration::from_millis(400)),
    });
    configure(&repo, &settings(&stub).replace("in_flight = 1", "in_flight = 5"));
    assert_eq!(Indexed::new(repo.root()).caught_up().n_embedded, 40);
    assert_eq!(stub.n_most_at_once(), 5);
    // The probe, the request for the limits, and ten batches.
    assert_eq!(stub.requests().len(), 2 + 10);
}

#[test]
fn killed_in_the_middle_nothing_is_embedded_twice() {
    let repo = project(24);
    let n_asked = AtomicUsize::new(0);
    let stub = Stub::start(move |seen| {
        let is_stuck = seen.path == "/embed_sparse" && n_asked.fetch_add(1, Ordering::SeqCst) == 4;
        let delay = if is_stuck {
            Duration::from_secs(600)
        } else {
            Duration::ZERO
        };
        tei_sparse(seen).after(delay)
    });
    configure(&repo, &settings(&stub));
    let mut child = spawn_in(repo.root(), &["index"]);
    let n_asked = || {
        stub.requests()
            .iter()
            .filter(|seen| seen.path == "/embed_sparse")
            .count()
    };
    wait_until("five batches are sent", || n_asked() >= 5);
    kill(&mut child);
    let first = sent(&stub);
    assert_eq!(first.len(), 16, "three batches that were answered and one that was not");
    stub.forget();
    let done = index(&repo).json();
    assert_eq!(
        (&done["sparse_vectors"]["new"], &done["sparse_vectors"]["missing"]),
        (&json!(12), &json!(0))
    );
    let again = sent(&stub);
    assert_eq!(
        (
            again.len(),
            again.keys().filter(|text| first.contains_key(*text)).count()
        ),
        (12, 4)
    );
}

#[test]
fn damaged_vectors_are_found_and_made_again() {
    let repo = project(4);
    let stub = Stub::start(tei_sparse);
    let indexed = with_server(&repo, &stub);
    indexed.caught_up();
    let path = repo.path(".codescout/dense-v1").join(&indexed.sparse_files()[0]);
    let whole = std::fs::read(&path).unwrap();
    let epoch = indexed.state().epoch;
    for at in [0, 40, 130, whole.len() - 1] {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        std::fs::write(&path, bytes).unwrap();
        let notes = indexed.notes(Mode::Auto, "packet");
        assert!(notes[0].contains("no sparse vectors"), "{at}: {notes:?}");
        call_in(repo.root(), &["verify"], b"").expect(1);
    }
    let mended = call_in(repo.root(), &["verify", "--repair"], b"").expect(2).text();
    assert!(
        mended.contains("left        vectors of other models: run codescout index"),
        "{mended}"
    );
    call_in(repo.root(), &["verify"], b"").expect(0);
    assert_eq!(indexed.state().epoch, epoch, "the index itself was sound");
    assert_eq!(indexed.caught_up().n_embedded, 4);
    call_in(repo.root(), &["verify"], b"").expect(0);
}

#[test]
fn the_program_tells_what_leaves_and_what_answers() {
    let repo = project(2);
    let stub = Stub::start(tei_sparse);
    configure(&repo, &settings(&stub));
    let leaves = call_in(repo.root(), &["doctor", "--what-leaves"], b"").expect(0).text();
    let host = stub.url().trim_start_matches("http://").to_owned();
    for part in [host.as_str(), "the text of every chunk", "with mode auto or hybrid"] {
        assert!(leaves.contains(part), "{leaves}");
    }
    assert!(!leaves.contains("nothing leaves"), "{leaves}");
    let doctor = call_in(repo.root(), &["doctor"], b"").text();
    assert!(
        doctor.contains("with 1 tokens for a word; input limit: 512 tokens"),
        "{doctor}"
    );
    let dense = Stub::start(|_| Reply::status(424).body(b"{\"error\":\"not a SPLADE model\"}"));
    configure(&repo, &settings(&dense));
    let doctor = call_in(repo.root(), &["doctor"], b"").text();
    assert!(
        doctor.contains("--pooling splade") && !doctor.contains("sparse.revision"),
        "{doctor}"
    );
    let done = index(&repo).json();
    let why = done["sparse_vectors"]["stopped_because"].as_str().unwrap();
    assert!(why.contains("--pooling splade"), "{why}");
    // A repository's own settings file must not set any of these settings.
    std::fs::remove_file(repo.path(".codescout/config.toml")).unwrap();
    repo.write(".codescout.toml", settings(&stub));
    stub.forget();
    let called = call_in(repo.root(), &["search", "packet"], b"").expect(2);
    assert!(called.stderr.contains("can only be set by"), "{}", called.stderr);
    assert!(stub.requests().is_empty());
}

/// A sparse embedder without a server.
struct Fake(Profile);

impl SparseEmbedder for Fake {
    fn profile(&self) -> &Profile {
        &self.0
    }

    fn embed_documents(&self, texts: &[&str], interrupt: &AtomicBool) -> Result<Vec<Option<SparseVector>>, EmbedError> {
        let embed = |text: &&str| self.embed_query(text, interrupt).map(Some);
        texts.iter().map(embed).collect()
    }

    fn embed_query(&self, text: &str, _interrupt: &AtomicBool) -> Result<SparseVector, EmbedError> {
        // Long vectors with tokens that all documents have, as real models produce them.
        let common = (0..600).map(|token| (40_000 + token, 0.01));
        SparseVector::from_foreign(sparse_of(text).into_iter().chain(common).collect(), "fake")
    }
}

#[test]
fn whoever_makes_them_the_leg_is_the_same() {
    let repo = with_a_hidden_one();
    let indexed = Indexed::new(repo.root());
    let target = indexed.workspace.target("HEAD").unwrap().unwrap();
    indexed.view("HEAD");
    let fake = Fake(Profile {
        model: "fake".to_owned(),
        digest: String::new(),
        dim: 0,
        recipe: String::new(),
    });
    let sidecar = indexed.workspace.storage.open().unwrap().unwrap();
    let catch_up = CatchUp {
        repository: &indexed.workspace.repository,
        sidecar: &sidecar,
        maker: EmbeddingSource::Sparse(&fake),
        own_profile: &indexed.workspace.models.own().profile().id().to_string(),
        options: indexed.workspace.build_options(),
        patience: Duration::from_secs(60),
    };
    let done: CatchUpOutcome = catch_up.run(&[target.tree], Ctx::silent(&NEVER)).unwrap();
    assert_eq!((done.n_embedded, done.n_left, done.stopped), (13, 0, None));
    let view = indexed.view("HEAD");
    let state = indexed.state();
    let segments = view
        .segments()
        .with_added(&sidecar, &state, &fake.profile().id().to_string());
    for segment in segments.iter() {
        let sparse = segment.sparse.as_ref().unwrap();
        assert!((0..sparse.len()).all(|row| sparse.terms(row).count() == SparseVector::MAX_TERMS));
    }
    let request = Request {
        query: "zorblax".to_owned(),
        limit: 5,
        ..Request::default()
    };
    let (embedder, paths) = (indexed.workspace.models.embedder(), indexed.workspace.models.own());
    let searcher = Searcher::new(&view, embedder, paths).unwrap().with_sparse(&fake, 1.0);
    let notes = searcher.search(&request).unwrap().notes;
    assert!(
        notes[0].contains("no sparse vectors of fake yet"),
        "the view was opened without them: {notes:?}"
    );
}
