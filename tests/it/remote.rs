//! Tests remote embedders with a stub server: the requests and their number, and answers while the server fails.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use codescout::config::{Environment, Overrides, trust};
use codescout::ingest::{CatchUp, CatchUpOutcome, CollectOptions, Collector, EmbeddingSource, Trigger};
use codescout::model::{Ctx, TreeId};
use codescout::query::{Mode, Request, SearchError};
use codescout::sidecar::{SectionFile, State};
use serde_json::{Value, json};

use crate::cli::{Called, call_in, spawn_in};
use crate::indexed::{Indexed, MODES, NEVER, files_below};
use crate::mcp::Client;
use crate::support::model::{openai, tei, tei_sparse, texts_of, vector_of};
use crate::support::{Reply, Stub, TestRepo, assert_within, kill, wait_until};

const DIM: usize = 64;
const PATIENCE: Duration = Duration::from_secs(60);

fn openai_stub() -> Stub {
    Stub::start(|seen| openai(seen, DIM))
}

/// Creates files with one function each.
pub(crate) fn project(n_files: usize) -> TestRepo {
    let repo = TestRepo::empty();
    for number in 0..n_files {
        let text = format!(
            "/// Handles packet {number}.\npub fn packet_{number}(bytes: &[u8]) -> usize {{\n    bytes.len() + {number}\n}}\n"
        );
        repo.write(format!("src/packet_{number}.rs"), text);
    }
    repo.commit("start");
    repo
}

/// Configures a server for a repository in the sidecar's settings file.
pub(crate) fn configure(repo: &TestRepo, settings: &str) {
    let sidecar = repo.path(".codescout");
    if !sidecar.exists() {
        Indexed::new(repo.root())
            .workspace
            .storage
            .open_or_create(&NEVER)
            .unwrap();
    }
    std::fs::write(sidecar.join("config.toml"), settings).unwrap();
    trust(&sidecar.join("config.toml"), &Environment::read()).unwrap();
}

fn settings(stub: &Stub) -> String {
    format!(
        "[embedding]\nserver = '{}'\nmodel = 'm'\nbatch = 4\nin_flight = 1\n",
        stub.url()
    )
}

fn with_server(repo: &TestRepo, stub: &Stub) -> Indexed {
    configure(repo, &settings(stub));
    Indexed::new(repo.root())
}

impl Indexed {
    pub(crate) fn head(&self) -> TreeId {
        self.workspace.target("HEAD").unwrap().unwrap().tree
    }

    /// Indexes `HEAD` and computes the vectors of the server.
    pub(crate) fn caught_up(&self) -> CatchUpOutcome {
        self.view("HEAD");
        let mut done = self.workspace.catch_up(&[self.head()], Ctx::silent(&NEVER)).unwrap();
        done.pop().unwrap().1
    }

    pub(crate) fn state(&self) -> State {
        self.workspace.storage.open_with_state().unwrap().unwrap().1.unwrap()
    }

    pub(crate) fn notes(&self, mode: Mode, query: &str) -> Vec<String> {
        self.try_search(&self.view("WORKTREE"), mode, query).unwrap().notes
    }

    pub(crate) fn collect(&self, occasion: Trigger<'_>, profiles: &[String]) {
        let sidecar = self.workspace.storage.open().unwrap().unwrap();
        let options = CollectOptions {
            dead_percent: 0,
            ..self.workspace.config.collect_options()
        };
        let collector = Collector {
            repository: &self.workspace.repository,
            sidecar: &sidecar,
            options: &options,
            profiles,
        };
        collector.collect(occasion, PATIENCE, Ctx::silent(&NEVER)).unwrap();
    }

    pub(crate) fn profile(&self) -> String {
        self.workspace.models.embedder().profile().id().to_string()
    }
}

/// Returns how often each text was sent, without probes.
pub(crate) fn sent(stub: &Stub) -> BTreeMap<String, usize> {
    let mut sent = BTreeMap::new();
    for text in stub.requests().iter().flat_map(texts_of) {
        if !text.contains("reads the settings file, line by line") {
            *sent.entry(text).or_default() += 1;
        }
    }
    sent
}

#[test]
fn a_server_is_added_beside_the_built_in_model_and_going_back_costs_nothing() {
    let repo = project(10);
    let before = Indexed::new(repo.root());
    let queries = ["packet 7", "where is the length counted"];
    let answers = before.answers(&before.view("HEAD"), &queries);
    let state = before.state();
    let files = files_below(&repo.path(".codescout"));

    let stub = openai_stub();
    let indexed = with_server(&repo, &stub);
    assert!(indexed.notes(Mode::Auto, "packet")[0].contains("no vectors of m yet"));
    assert!(stub.requests().is_empty(), "a question embeds no documents");
    let done = indexed.caught_up();
    assert_eq!(
        (done.n_docs, done.n_embedded, done.n_left, done.stopped),
        (10, 10, 0, None)
    );
    let sent = sent(&stub);
    assert_eq!((sent.len(), sent.values().max()), (10, Some(&1)), "{sent:?}");
    let now = indexed.state();
    assert_eq!((now.epoch, now.segments[0].vectors.len()), (state.epoch, 2));
    for (path, bytes) in files.iter().filter(|(path, _)| path.to_string_lossy().contains("-v1/")) {
        assert_eq!(files_below(&repo.path(".codescout")).get(path), Some(bytes), "{path:?}");
    }
    assert!(
        !files_below(&repo.path(".codescout"))
            .keys()
            .any(|path| path.extension().is_some_and(|ending| ending == "part"))
    );

    // Similarity comes from the server's vectors, and no vector is reported as missing.
    let view = indexed.view("HEAD");
    let found = indexed
        .try_search(
            &view,
            Mode::Semantic,
            "packet_3 Handles packet 3 pub fn packet_3 bytes u8 usize bytes len 3",
        )
        .unwrap();
    assert_eq!(found.notes, Vec::<String>::new());
    assert_eq!(
        crate::indexed::path_of(&view, found.hits[0].places[0].file),
        "src/packet_3.rs"
    );

    stub.forget();
    assert_eq!(indexed.caught_up().n_embedded, 0);
    assert!(stub.requests().is_empty());
    std::fs::remove_file(repo.path(".codescout/config.toml")).unwrap();
    let back = Indexed::new(repo.root());
    for (ours, theirs) in back.answers(&back.view("HEAD"), &queries).iter().zip(&answers) {
        ours.assert_same(theirs, "after going back");
    }
    assert_eq!(back.state(), now);
}

/// Carries vectors of a server through merging, garbage collection and a change of the recipe. No text may be sent
/// twice. Returns the remaining vectors.
pub(crate) fn lead_through_everything(
    stub: &Stub,
    settings: &str,
    profile: impl Fn(&Indexed) -> String,
) -> (TestRepo, Indexed) {
    let repo = project(3);
    configure(&repo, settings);
    let indexed = Indexed::new(repo.root());
    indexed.caught_up();
    // Small segments are merged more than once.
    for number in 0..20 {
        repo.write(
            format!("new_{number}.rs"),
            format!("pub fn added_{number}() -> u32 {{ {number} }}\n"),
        );
        repo.commit("more");
        assert_eq!(indexed.caught_up().n_embedded, 1, "{number}");
    }
    assert!(indexed.state().segments.len() < 20, "nothing was merged");
    repo.remove("new_3.rs");
    repo.commit("less");
    indexed.view("HEAD");
    repo.git(["reflog", "expire", "--expire=now", "--all"]);
    indexed.collect(Trigger::Aggressive, &[profile(&indexed)]);
    assert_eq!(indexed.caught_up().n_embedded, 0);
    // A different recipe renumbers everything.
    let epoch = indexed.state().epoch;
    configure(&repo, &format!("{settings}\n[index]\nmax_blob_bytes = 99999\n"));
    let other = Indexed::new(repo.root());
    assert_eq!(other.caught_up().n_embedded, 0);
    assert_ne!(other.state().epoch, epoch);
    let sent = sent(stub);
    assert_eq!((sent.len(), sent.values().max()), (23, Some(&1)), "{sent:?}");
    (repo, other)
}

#[test]
fn only_what_is_new_is_sent_and_nothing_that_was_is_sent_again() {
    let stub = openai_stub();
    let (_repo, left) = lead_through_everything(&stub, &settings(&stub), Indexed::profile);
    assert_eq!(left.notes(Mode::Semantic, "added"), Vec::<String>::new());
}

#[test]
fn profiles_that_are_not_in_use_go_when_all_is_asked_for() {
    let repo = project(4);
    let stub = openai_stub();
    let indexed = with_server(&repo, &stub);
    indexed.caught_up();
    indexed.collect(Trigger::Asked, &[]);
    assert_eq!(indexed.state().segments[0].vectors.len(), 2);
    indexed.collect(Trigger::Aggressive, &[]);
    assert_eq!(indexed.state().segments[0].vectors.len(), 1);
    assert_eq!(indexed.caught_up().n_embedded, 4);
}

#[test]
fn an_index_is_made_while_the_server_is_away_and_catches_up_later() {
    let repo = project(6);
    let stub = openai_stub();
    let gone = Stub::start(|_| Reply::status(503));
    configure(&repo, &format!("{}timeout_s = 1\n", settings(&gone)));
    let indexed = Indexed::new(repo.root());
    let done = indexed.caught_up();
    assert_eq!((done.n_embedded, done.n_left), (0, 6));
    assert!(done.stopped.unwrap().contains("503"));
    assert!((2..20).contains(&gone.requests().len()), "{}", gone.requests().len());
    assert_eq!(indexed.paths(&indexed.view("HEAD"), "packet_3").len(), 6);

    let indexed = with_server(&repo, &stub);
    assert_eq!(indexed.caught_up().n_embedded, 6);
    // The server is stopped again: queries are answered quickly and have a note.
    let hasty = format!("{}query_timeout_ms = 3000\n", settings(&gone));
    configure(&repo, &hasty);
    let indexed = Indexed::new(repo.root());
    let started = Instant::now();
    let notes = indexed.notes(Mode::Auto, "packet");
    assert!(
        notes[0].contains("built-in model") && notes[0].contains("503"),
        "{notes:?}"
    );
    assert_within(Duration::from_secs(60), started, "a server that fails");
    gone.forget();
    assert!(indexed.notes(Mode::Keyword, "packet").is_empty());
    assert!(gone.requests().is_empty());
}

#[test]
fn what_is_like_a_piece_of_code_is_answered_without_the_server_too() {
    let repo = project(6);
    with_server(&repo, &openai_stub()).caught_up();
    let asks = |stub: &Stub| {
        configure(&repo, &format!("{}query_timeout_ms = 300\n", settings(stub)));
        let started = Instant::now();
        let indexed = Indexed::new(repo.root());
        let code = "fn packet_9() { send(9) }";
        let notes = indexed.notes(Mode::Similar, code);
        assert_within(Duration::from_secs(20), started, "similar code");
        assert_eq!(indexed.search(&indexed.view("HEAD"), Mode::Similar, code).len(), 6);
        notes
    };
    let silent = Stub::start(|seen| openai(seen, DIM).after(Duration::from_secs(60)));
    let notes = asks(&silent);
    assert!(notes[0].contains("built-in model"), "{notes:?}");
    // The vector of the probe text is unchanged, but that of the code is zeros.
    let at_a_loss = Stub::start(|seen| {
        let data = texts_of(seen).into_iter().enumerate().map(|(index, text)| {
            let is_code = text.contains("packet_9");
            let vector = vector_of(&text, DIM);
            json!({"index": index, "embedding": if is_code { json!(vec![0; DIM]) } else { json!(vector) }})
        });
        Reply::json(&json!({"data": data.collect::<Vec<Value>>()}))
    });
    let notes = asks(&at_a_loss);
    assert!(notes[0].contains("built-in model"), "{notes:?}");
}

#[test]
fn who_does_not_want_an_answer_any_more_does_not_wait_for_the_server() {
    // The number of calls that run concurrently. One more call is answered only after one of them has ended.
    const N_PLACES: usize = 8;
    let repo = project(3);
    with_server(&repo, &openai_stub()).caught_up();
    let silent = Stub::start(|seen| openai(seen, DIM).after(Duration::from_secs(600)));
    configure(&repo, &format!("{}query_timeout_ms = 600000\n", settings(&silent)));
    let mut client = Client::legacy(&repo, &[]);
    let begin = |_| {
        let arguments = json!({"query": "where is the length counted", "ref": "HEAD"});
        client.begin("tools/call", json!({"name": "search", "arguments": arguments}))
    };
    let ids: Vec<i64> = (0..N_PLACES).map(begin).collect();
    wait_until("all queries are asked", || silent.requests().len() >= N_PLACES);
    for id in ids {
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}));
    }
    let read = client.call("read", json!({"target": "src/packet_1.rs"}));
    assert!(read.text.contains("packet_1"), "{}", read.text);
    assert!(client.notifications.is_empty(), "{:?}", client.notifications);
}

#[test]
fn an_answer_that_nobody_wants_any_more_is_not_ranked() {
    let repo = project(3);
    let indexed = Indexed::new(repo.root());
    let view = indexed.view("HEAD");
    let is_over = AtomicBool::new(true);
    let searcher = indexed.workspace.searcher(&view, &is_over).unwrap();
    for mode in MODES.into_iter().chain([Mode::Similar]) {
        let request = Request {
            query: "where is the length of a packt counted".to_owned(),
            mode,
            limit: 3,
            ..Request::default()
        };
        let ended = searcher.search(&request);
        assert!(matches!(ended, Err(SearchError::Interrupted)), "{mode:?}: {ended:?}");
    }
}

#[test]
fn half_of_the_vectors_is_half_and_said() {
    let repo = project(8);
    let stub = openai_stub();
    // The probe and four texts succeed; then the server fails.
    let n_asked = std::sync::atomic::AtomicUsize::new(0);
    let failing = Stub::start(
        move |seen| match n_asked.fetch_add(1, std::sync::atomic::Ordering::SeqCst) {
            0 | 1 => openai(seen, DIM),
            _ => Reply::status(500),
        },
    );
    let indexed = with_server(&repo, &failing);
    let done = indexed.caught_up();
    assert_eq!((done.n_embedded, done.n_left), (4, 4));
    assert_eq!(failing.requests().len(), 3);
    let indexed = with_server(&repo, &stub);
    let notes = indexed.notes(Mode::Auto, "packet");
    assert!(
        notes[0].starts_with("4 of 8 chunks have no vectors of m yet"),
        "{notes:?}"
    );
    let found = indexed.search(&indexed.view("HEAD"), Mode::Semantic, "packet");
    assert_eq!(found.len(), 8, "documents without a vector are placed, not lost");
    assert_eq!(indexed.caught_up().n_embedded, 4);
}

#[test]
fn texts_of_which_nothing_is_made_cost_only_themselves_and_are_not_sent_again() {
    let repo = project(12);
    let stub = Stub::start(|seen| {
        let texts = texts_of(seen);
        if texts.iter().any(|text| text.contains("packet_7")) {
            return Reply::status(422).body(b"{\"error\":\"tokenization\"}");
        }
        let data = texts.iter().enumerate().map(|(index, text)| {
            let embedding = match text {
                text if text.contains("packet_3") => json!(vec![0; DIM]),
                text if text.contains("packet_5") => json!(vec![Value::Null; DIM]),
                text => json!(vector_of(text, DIM)),
            };
            json!({"index": index, "embedding": embedding})
        });
        Reply::json(&json!({"data": data.collect::<Vec<Value>>()}))
    });
    let indexed = with_server(&repo, &stub);
    let done = indexed.caught_up();
    assert_eq!((done.n_embedded, done.n_left, done.stopped), (9, 0, None));
    stub.forget();
    let done = indexed.caught_up();
    assert_eq!((done.n_embedded, done.n_left), (0, 0));
    assert!(stub.requests().is_empty());
    let view = indexed.view("HEAD");
    let found = indexed.try_search(&view, Mode::Semantic, "Handles packet").unwrap();
    assert_eq!((found.hits.len(), found.notes), (12, Vec::<String>::new()));
    // The built-in model ranks documents without a vector.
    let first = indexed.try_search(&view, Mode::Semantic, "packet_3").unwrap().hits;
    let n_better = first.iter().position(|hit| {
        let path = crate::indexed::path_of(&view, hit.places[0].file);
        path == "src/packet_3.rs"
    });
    assert!(n_better.unwrap() < 11, "{n_better:?}");
}

#[test]
fn a_server_that_begins_to_refuse_everything_is_left_and_no_text_is_blamed() {
    let repo = project(40);
    let n_asked = std::sync::atomic::AtomicUsize::new(0);
    let failing = Stub::start(
        move |seen| match n_asked.fetch_add(1, std::sync::atomic::Ordering::SeqCst) {
            0..3 => openai(seen, DIM),
            _ => Reply::status(400).body(b"model unloaded"),
        },
    );
    let done = with_server(&repo, &failing).caught_up();
    assert!(done.stopped.unwrap().contains("model unloaded"));
    assert_eq!((done.n_embedded, done.n_left), (8, 32));
    assert_eq!(failing.requests().len(), 3 + 4);
    let stub = openai_stub();
    assert_eq!(with_server(&repo, &stub).caught_up().n_embedded, 32);
}

#[test]
fn as_many_texts_are_sent_together_as_the_server_says_that_it_takes() {
    let repo = project(60);
    let stub = Stub::start(|seen| tei(seen, DIM, 50));
    let text = settings(&stub).replace("batch = 4", "api = 'tei'");
    configure(&repo, &text);
    assert_eq!(Indexed::new(repo.root()).caught_up().n_embedded, 60);
    let asked = stub.requests();
    let sizes = asked.iter().map(|seen| texts_of(seen).len()).filter(|&n| n > 1);
    assert_eq!(sizes.collect::<Vec<_>>(), [50, 10]);
}

/// Returns the files of vectors that are in no segment.
fn parts(repo: &TestRepo) -> Vec<Vec<u8>> {
    let files = files_below(&repo.path(".codescout"));
    let parts = files
        .into_iter()
        .filter(|(path, _)| path.extension().is_some_and(|ending| ending == "part"));
    parts.map(|(_, bytes)| bytes).collect()
}

#[test]
fn what_another_writer_keeps_from_being_joined_is_joined_by_the_next_run() {
    let repo = project(6);
    let stub = openai_stub();
    let indexed = with_server(&repo, &stub);
    indexed.view("HEAD");
    let sidecar = indexed.workspace.storage.open().unwrap().unwrap();
    let catch_up = CatchUp {
        repository: &indexed.workspace.repository,
        sidecar: &sidecar,
        maker: EmbeddingSource::Dense(indexed.workspace.models.embedder()),
        own_profile: &indexed.state().segments[0].vectors[0].profile,
        options: indexed.workspace.build_options(),
        patience: Duration::from_millis(50),
    };
    let other = sidecar.lock(PATIENCE).unwrap();
    let done = catch_up.run(&[indexed.head()], Ctx::silent(&NEVER)).unwrap();
    assert_eq!((done.n_embedded, done.n_left), (6, 0));
    assert!(done.stopped.unwrap().contains("another process is writing"));
    assert_eq!(parts(&repo).len(), 2);
    drop(other);
    stub.forget();
    let done = indexed.caught_up();
    assert_eq!((done.n_embedded, done.n_left, done.stopped), (0, 0, None));
    assert!(stub.requests().is_empty() && parts(&repo).is_empty());
    assert_eq!(indexed.notes(Mode::Semantic, "packet"), Vec::<String>::new());
}

#[test]
fn vectors_of_chunks_that_are_gone_do_not_hold_the_others_back_and_can_be_cleared_away() {
    let repo = project(10);
    let stub = openai_stub();
    with_server(&repo, &stub).caught_up();
    repo.remove("src/packet_4.rs");
    repo.commit("less");
    // A different recipe renumbers everything, without the deleted file.
    let other_recipe = format!("{}\n[index]\nmax_blob_bytes = 99999\n", settings(&stub));
    configure(&repo, &other_recipe);
    let indexed = Indexed::new(repo.root());
    assert_eq!(indexed.caught_up().n_embedded, 0);
    let left = parts(&repo);
    let keys = |part: &Vec<u8>| SectionFile::from_bytes(Path::new("part"), part.clone().into(), 1)?.section("keys");
    assert_eq!(
        left.iter().map(|part| keys(part).unwrap().len()).collect::<Vec<_>>(),
        [16]
    );
    assert_eq!(indexed.caught_up().n_embedded, 0);
    assert_eq!(parts(&repo), left);
    indexed.collect(Trigger::Asked, &[indexed.profile()]);
    assert_eq!(parts(&repo), left);
    indexed.collect(Trigger::Aggressive, &[indexed.profile()]);
    assert!(parts(&repo).is_empty());
    assert_eq!(indexed.notes(Mode::Semantic, "packet"), Vec::<String>::new());
}

#[test]
fn files_that_are_not_committed_are_placed_by_the_built_in_model() {
    let repo = project(4);
    let stub = openai_stub();
    let indexed = with_server(&repo, &stub);
    indexed.caught_up();
    repo.write(
        "src/fresh.rs",
        "/// Parses a timestamp.\npub fn parse_timestamp(text: &str) -> u64 { 0 }\n",
    );
    stub.forget();
    let view = indexed.view("WORKTREE");
    let found = indexed.try_search(&view, Mode::Semantic, "parse a timestamp").unwrap();
    assert_eq!(
        crate::indexed::path_of(&view, found.hits[0].places[0].file),
        "src/fresh.rs"
    );
    assert_eq!(found.notes, Vec::<String>::new());
    assert_eq!(sent(&stub).len(), 1, "the question alone");
}

#[test]
fn another_model_under_the_same_name_is_refused() {
    let repo = project(4);
    let stub = openai_stub();
    with_server(&repo, &stub).caught_up();
    repo.write("more.rs", "pub fn more() {}\n");
    repo.commit("more");
    let other = Stub::start(|seen| {
        let texts = texts_of(seen);
        let data = texts.iter().enumerate().map(|(index, text)| {
            let mut vector = vector_of(text, DIM);
            vector.reverse();
            json!({"index": index, "embedding": vector})
        });
        Reply::json(&json!({"data": data.collect::<Vec<Value>>()}))
    });
    let indexed = with_server(&repo, &other);
    let done = indexed.caught_up();
    assert!(
        done.stopped
            .as_ref()
            .unwrap()
            .contains("a different model under the same name"),
        "{done:?}"
    );
    assert_eq!((done.n_embedded, other.requests().len()), (0, 1));
    let wider = Stub::start(|seen| openai(seen, DIM + 1));
    assert!(
        with_server(&repo, &wider)
            .caught_up()
            .stopped
            .unwrap()
            .contains("65 components")
    );
    // With different revisions, both can be stored.
    configure(&repo, &format!("{}revision = '2'\n", settings(&other)));
    assert_eq!(Indexed::new(repo.root()).caught_up().n_embedded, 5);
}

#[test]
fn another_model_under_the_same_name_answers_no_question() {
    let repo = project(4);
    let stub = openai_stub();
    with_server(&repo, &stub).caught_up();
    let other = Stub::start(|seen| {
        let vectors = texts_of(seen).into_iter().enumerate().map(|(index, text)| {
            let mut vector = vector_of(&text, DIM);
            vector.reverse();
            json!({"index": index, "embedding": vector})
        });
        Reply::json(&json!({"data": vectors.collect::<Vec<Value>>()}))
    });
    for batch in ["batch = 4", "batch = 1"] {
        stub.forget();
        configure(&repo, &settings(&stub).replace("batch = 4", batch));
        let indexed = Indexed::new(repo.root());
        for _ in 0..2 {
            assert_eq!(indexed.notes(Mode::Semantic, "packet"), Vec::<String>::new());
        }
        // The first query includes the probe text.
        let asked: Vec<String> = stub.requests().iter().flat_map(texts_of).collect();
        assert_eq!((asked.len(), sent(&stub)["packet"]), (3, 2), "{asked:?}");
        configure(&repo, &settings(&other).replace("batch = 4", batch));
        let indexed = Indexed::new(repo.root());
        for _ in 0..2 {
            let notes = indexed.notes(Mode::Auto, "packet");
            assert!(
                notes[0].contains("a different model") && notes[0].contains("built-in model"),
                "{notes:?}"
            );
        }
    }
    let doctor = call_in(repo.root(), &["doctor"], b"").text();
    assert!(
        doctor.contains("a different model") && doctor.contains("config set embedding.revision"),
        "{doctor}"
    );
}

#[test]
fn the_doctor_tells_when_questions_would_not_wait_for_an_answer() {
    let repo = project(1);
    let stub = Stub::start(|seen| openai(seen, DIM).after(Duration::from_millis(100)));
    configure(
        &repo,
        &format!("{}query_timeout_ms = 20\ndimensions = 64\n", settings(&stub)),
    );
    let doctor = call_in(repo.root(), &["doctor"], b"").text();
    assert!(
        doctor.contains("time limit of 20 ms") && doctor.contains("config set embedding.query_timeout_ms"),
        "{doctor}"
    );
    assert!(
        doctor.contains("embedding.dimensions = 64") && !doctor.contains("gc.auto"),
        "{doctor}"
    );
    configure(&repo, &format!("{}dimensions = 7\n", settings(&stub)));
    let doctor = call_in(repo.root(), &["doctor"], b"").text();
    assert!(doctor.contains("config unset embedding.dimensions"), "{doctor}");
}

#[test]
fn the_doctor_asks_all_servers_at_once() {
    let repo = project(1);
    let gate = Arc::new((Mutex::new(0), Condvar::new()));
    let both_are_here = move || {
        let (n_here, came) = &*gate;
        *n_here.lock().unwrap() += 1;
        came.notify_all();
        let waiting = came.wait_timeout_while(n_here.lock().unwrap(), PATIENCE, |n_here| *n_here < 2);
        drop(waiting.unwrap());
    };
    let wait = both_are_here.clone();
    let dense = Stub::start(move |seen| {
        wait();
        openai(seen, DIM)
    });
    let sparse = Stub::start(move |seen| {
        if seen.path.ends_with("/embed_sparse") {
            both_are_here();
        }
        tei_sparse(seen)
    });
    let more = format!("[sparse]\nserver = '{}'\nmodel = 's'\n", sparse.url());
    configure(&repo, &format!("{}{more}", settings(&dense)));
    let doctor = call_in(repo.root(), &["doctor"], b"").text();
    let places = ["with 64 dimensions", "tokens for a word"].map(|part| doctor.find(part));
    assert!(places[0].is_some() && places.is_sorted(), "{doctor}");
}

#[test]
fn files_that_hold_secrets_are_given_to_nobody() {
    let repo = project(2);
    repo.write(
        ".env",
        "DATABASE_URL=postgres://app:hunter2@db/prod\nHOST=example.com\n",
    );
    repo.write(
        "src/key.rs",
        "const PASSWORD: &str = \"correct-horse-battery\";\npassword = \"correct-horse-battery\"\n",
    );
    repo.commit("secrets");
    let stub = openai_stub();
    let done = with_server(&repo, &stub).caught_up();
    assert_eq!((done.n_docs, done.n_withheld), (3, 1));
    let notes = Indexed::new(repo.root()).notes(Mode::Auto, "packet");
    assert_eq!(notes, Vec::<String>::new(), "what is withheld is not missing");
    for seen in stub.requests() {
        let body = String::from_utf8(seen.body).unwrap();
        assert!(
            !body.contains("hunter2") && !body.contains("DATABASE_URL") && !body.contains("correct-horse"),
            "{body}"
        );
    }
}

#[test]
fn as_many_requests_are_in_flight_as_are_wanted() {
    let repo = project(60);
    let stub = Stub::start(|seen| openai(seen, DIM).after(Duration::from_millis(400)));
    configure(&repo, &settings(&stub).replace("in_flight = 1", "in_flight = 5"));
    let indexed = Indexed::new(repo.root());
    assert_eq!(indexed.caught_up().n_embedded, 60);
    assert_eq!(stub.n_most_at_once(), 5);
    assert_eq!(stub.requests().len(), 1 + 15);
}

#[test]
fn killed_in_the_middle_nothing_is_embedded_twice() {
    let repo = project(40);
    let n_asked = std::sync::atomic::AtomicUsize::new(0);
    let stub = Stub::start(move |seen| {
        let delay = match n_asked.fetch_add(1, std::sync::atomic::Ordering::SeqCst) {
            // The sixth batch never completes.
            6 => Duration::from_secs(600),
            _ => Duration::ZERO,
        };
        openai(seen, DIM).after(delay)
    });
    configure(&repo, &settings(&stub));
    let mut child = spawn_in(repo.root(), &["index"]);
    wait_until("a probe and six batches are sent", || stub.requests().len() >= 7);
    kill(&mut child);
    // One probe, five batches with a response, and one without.
    let answered: BTreeSet<String> = stub.requests()[1..6].iter().flat_map(texts_of).collect();
    assert_eq!(answered.len(), 20);
    stub.forget();
    let done = index(&repo).json();
    assert_eq!(
        (&done["vectors"]["new"], &done["vectors"]["missing"]),
        (&json!(20), &json!(0))
    );
    let again = sent(&stub);
    assert_eq!(again.len(), 20);
    assert!(again.keys().all(|text| !answered.contains(text)), "{again:?}");
}

#[test]
fn damaged_vectors_are_found_and_made_again() {
    let repo = project(4);
    let stub = openai_stub();
    let indexed = with_server(&repo, &stub);
    indexed.caught_up();
    let name = indexed.state().segments[0].vectors[1].file.name.clone();
    let path = repo.path(".codescout/dense-v1").join(name);
    let mut bytes = std::fs::read(&path).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    assert!(indexed.notes(Mode::Semantic, "packet")[0].contains("no vectors"));
    call_in(repo.root(), &["verify"], b"").expect(1);
    let epoch = indexed.state().epoch;
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

pub(crate) fn index(repo: &TestRepo) -> Called {
    call_in(repo.root(), &["index", "--json"], b"").expect(0)
}

#[test]
fn the_program_tells_what_leaves_and_what_is_missing() {
    let repo = project(5);
    let stub = openai_stub();
    configure(&repo, &settings(&stub));
    let leaves = call_in(repo.root(), &["doctor", "--what-leaves"], b"").expect(0).text();
    let host = stub.url().trim_start_matches("http://").to_owned();
    assert!(leaves.contains(&host) && leaves.contains("(this machine)"), "{leaves}");
    assert!(
        leaves.contains("the text of every chunk") && !leaves.contains("nothing leaves"),
        "{leaves}"
    );
    let doctor = call_in(repo.root(), &["doctor"], b"").text();
    assert!(doctor.contains("with 64 dimensions"), "{doctor}");

    let found = call_in(repo.root(), &["search", "packet", "--json"], b"")
        .expect(0)
        .json();
    assert_eq!(found["complete"], false);
    assert!(
        found["incomplete_because"][0]
            .as_str()
            .unwrap()
            .contains("no vectors of m yet"),
        "{found}"
    );
    let status = call_in(repo.root(), &["status", "--json"], b"").expect(0).json();
    assert_eq!(
        (&status["vectors"]["chunks"], &status["vectors"]["missing"]),
        (&json!(0), &json!(5))
    );
    let done = index(&repo).json();
    assert_eq!(
        (&done["vectors"]["new"], &done["vectors"]["model"]),
        (&json!(5), &json!("m"))
    );
    let status = call_in(repo.root(), &["status"], b"").expect(0).text();
    assert!(
        status.contains(&format!("vectors     5 chunks by m at {host}\n")),
        "{status}"
    );
    repo.write("draft.rs", "pub fn not_committed_yet() {}\n");
    let status = call_in(repo.root(), &["status"], b"").expect(0).text();
    assert!(status.contains("; 1 are not sent to other models\n"), "{status}");
    std::fs::remove_file(repo.path("draft.rs")).unwrap();
    let found = call_in(repo.root(), &["search", "packet", "--json"], b"")
        .expect(0)
        .json();
    assert_eq!(found["complete"], true, "{found}");
    let gone = stub.url();
    drop(stub);
    let found = call_in(repo.root(), &["search", "packet", "--json"], b"")
        .expect(0)
        .json();
    let why = found["incomplete_because"][0].as_str().unwrap();
    assert!(
        why.contains("built-in model") && !found["results"].as_array().unwrap().is_empty(),
        "{found}"
    );
    assert!(
        call_in(repo.root(), &["doctor"], b"").text().contains("no connection"),
        "{gone}"
    );
}

#[test]
fn a_model_is_measured_beside_the_built_in_one() {
    let repo = project(4);
    repo.write("src/packet_3.rs", "pub fn packet_3() -> usize {\n    9\n}\n");
    repo.commit("handle packets of the ninth kind");
    let stub = openai_stub();
    configure(&repo, &settings(&stub));
    let measure = |more: &[&str]| {
        let args = ["eval", "--from-history", "--settings", "semantic", "--json"];
        call_in(repo.root(), &[&args, more].concat(), b"").expect(0).json()
    };
    let measured = measure(&["--against-built-in"]);
    let names = measured["settings"].as_array().unwrap();
    let names: Vec<&Value> = names.iter().map(|setting| &setting["setting"]).collect();
    assert_eq!(names, ["semantic (built-in alone)", "semantic"]);
    assert_eq!(measured["settings"][1]["incomplete"], 0, "{measured}");
    assert_eq!(measured["differences"][0]["to"], "semantic");
    assert!(sent(&stub).len() >= 4, "its vectors are made first");
    drop(stub);
    let measured = measure(&["--against-built-in"]);
    assert_eq!(measured["settings"][0]["incomplete"], 0, "{measured}");
    assert_eq!(measured["settings"][1]["incomplete"], measured["queries"], "{measured}");
}

#[test]
fn a_setting_that_no_command_could_start_with_is_not_made() {
    let repo = project(1);
    let set = |key: &str, value: &str, code| call_in(repo.root(), &["config", "set", key, value], b"").expect(code);
    set("embedding.api", "tei", 0);
    for (key, value) in [
        ("embedding.server", "127.0.0.1:7997"),
        ("rerank.server", "http://me:hunter2@host"),
        ("sparse.server", "ftp://host"),
    ] {
        let message = set(key, value, 2).stderr;
        assert!(message.contains(key) && message.contains("config.toml"), "{message}");
        assert!(!message.contains("hunter2"), "{message}");
        assert_eq!(
            call_in(repo.root(), &["config", "get", key], b"").expect(0).text(),
            "none\n"
        );
    }
    set("embedding.server", "http://127.0.0.1:7997", 0);
    set("embedding.api", "soap", 2);
    // Settings that were written by hand can be fixed with the same commands.
    configure(
        &repo,
        "[embedding]\nserver = 'localhost:7997'\napi = 'tei'\n[search]\nlimit = 7\n",
    );
    let message = call_in(repo.root(), &["search", "packet"], b"").expect(2).stderr;
    assert!(message.contains("codescout config unset embedding.server"), "{message}");
    let set = call_in(repo.root(), &["config", "set", "embedding.server", "nonsense"], b"").expect(2);
    assert!(set.stderr.contains("the settings are still invalid"), "{}", set.stderr);
    call_in(repo.root(), &["config", "unset", "embedding.server"], b"").expect(0);
    call_in(repo.root(), &["search", "packet"], b"").expect(0);
    assert_eq!(
        call_in(repo.root(), &["config", "get", "embedding.api"], b"")
            .expect(0)
            .text(),
        "tei\n"
    );
    // Unsetting the server also unsets its model's name, which would be interpreted as a folder.
    configure(
        &repo,
        "[embedding]\nserver = 'http://127.0.0.1:7997'\nmodel = 'minilm'\n",
    );
    call_in(repo.root(), &["config", "unset", "embedding.server"], b"").expect(0);
    let left = call_in(repo.root(), &["config", "get", "embedding.model"], b"").expect(0);
    assert_eq!(left.text(), "built-in\n");
}

#[test]
fn settings_that_are_wrong_are_refused_without_their_secrets() {
    let repo = project(1);
    for (settings, message) in [
        ("server = 'https://me:hunter2@host/v1'", "has credentials in it"),
        (
            "server = 'https://host'\nproxy = 'http://me:hunter2@proxy'",
            "has credentials in it",
        ),
        ("server = 'ftp://host'", "must begin with http:// or https://"),
        (
            "server = 'http://example.com'\nkey_file = 'relative'",
            "an absolute path",
        ),
        ("server = 'http://127.0.0.1:1'\napi = 'soap'", "openai, ollama or tei"),
    ] {
        configure(&repo, &format!("[embedding]\n{settings}\n"));
        let called = call_in(repo.root(), &["search", "packet"], b"").expect(2);
        assert!(called.stderr.contains(message), "{}", called.stderr);
        assert!(!called.stderr.contains("hunter2"), "{}", called.stderr);
        let shown = call_in(repo.root(), &["config"], b"");
        assert!(!shown.text().contains("hunter2"), "{}", shown.text());
    }
    let key = repo.beside("key");
    std::fs::write(&key, "sesame\n").unwrap();
    let text = format!(
        "[embedding]\nserver = 'http://example.com'\nkey_file = '{}'\n",
        key.display()
    );
    configure(&repo, &text);
    let called = call_in(repo.root(), &["search", "packet"], b"").expect(2);
    assert!(
        called.stderr.contains("over plain http") && !called.stderr.contains("sesame"),
        "{}",
        called.stderr
    );
    // A repository's own settings file must not name a server.
    let stub = openai_stub();
    std::fs::remove_file(repo.path(".codescout/config.toml")).unwrap();
    repo.write(".codescout.toml", settings(&stub));
    let called = call_in(repo.root(), &["index"], b"").expect(2);
    assert!(called.stderr.contains("can only be set by"), "{}", called.stderr);
    assert!(stub.requests().is_empty());
    assert!(Indexed::with(repo.root(), Overrides::default()).is_err());
}

#[test]
#[ignore = "takes time for each text"]
fn a_slow_server_gets_small_requests_and_nothing_that_it_makes_is_lost() {
    let repo = project(90);
    // The server processes one text at a time, so 64 texts exceed the time limit of a request.
    let at_work = std::sync::Mutex::new(());
    let stub = Stub::start(move |seen| {
        let _only = at_work.lock().unwrap();
        let n = texts_of(seen).len();
        std::thread::sleep(Duration::from_millis(18) * n as u32);
        openai(seen, DIM)
    });
    let text = settings(&stub).replace("batch = 4\nin_flight = 1", "in_flight = 4\ntimeout_s = 1");
    configure(&repo, &text);
    let done = Indexed::new(repo.root()).caught_up();
    assert_eq!((done.n_embedded, done.n_left, done.stopped), (90, 0, None));
    let sizes: Vec<usize> = stub.requests().iter().map(|seen| texts_of(seen).len()).collect();
    assert!(sizes.iter().sum::<usize>() < 120, "{sizes:?}");
    assert!(
        sizes.len() < 91,
        "more than one at a time where there is time: {sizes:?}"
    );
}

#[test]
fn what_is_too_much_at_once_is_halved() {
    let repo = project(8);
    let stub = Stub::start(|seen| {
        if texts_of(seen).len() > 2 {
            openai(seen, DIM).after(Duration::from_secs(600))
        } else {
            openai(seen, DIM)
        }
    });
    configure(&repo, &format!("{}timeout_s = 1\n", settings(&stub)));
    let done = Indexed::new(repo.root()).caught_up();
    assert_eq!((done.n_embedded, done.n_left, done.stopped), (8, 0, None));
    // Besides the probe, no text is answered twice.
    let sizes = stub.requests().into_iter().map(|seen| texts_of(&seen).len());
    assert_eq!(sizes.filter(|&n| n <= 2).sum::<usize>(), 9);
}
