//! Tests remote rerankers with a stub server: the order of results, the requests, and answers while the server fails.

use std::process::Stdio;
use std::time::{Duration, Instant};

use codescout::query::{Request, Searcher};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::cli::{Called, call_in};
use crate::indexed::{Indexed, NEVER};
use crate::mcp::Client;
use crate::remote::{configure, project};
use crate::support::model::{Judge, asked_of, judged, number_in, openai};
use crate::support::{Reply, Seen, Stub, TestRepo, assert_within, wait_for_end, wait_until};

/// A query in prose, so that it is reranked.
const QUESTION: &str = "where is the length of a packet counted";
/// A limit for a busy machine. On others a second is enough.
const SOON: Duration = Duration::from_secs(30);

fn tei(seen: &Seen) -> Reply {
    judged(seen, Judge::Tei, number_in)
}

fn settings(stub: &Stub, more: &str) -> String {
    format!(
        "[rerank]\nserver = '{}'\napi = 'tei'\ntimeout_ms = 20000\n{more}\n",
        stub.url()
    )
}

fn search(repo: &TestRepo, args: &[&str]) -> Called {
    let all = [&["search", "--json", "--ref", "HEAD"], args].concat();
    call_in(repo.root(), &all, b"")
}

fn paths(answer: &Value) -> Vec<String> {
    let results = answer["results"].as_array().unwrap().iter();
    results
        .map(|result| result["path"].as_str().unwrap().trim_start_matches("src/").to_owned())
        .collect()
}

fn found(repo: &TestRepo, args: &[&str]) -> Vec<String> {
    paths(&search(repo, args).expect(0).json())
}

fn packets(numbers: impl IntoIterator<Item = usize>) -> Vec<String> {
    numbers
        .into_iter()
        .map(|number| format!("packet_{number}.rs"))
        .collect()
}

#[test]
fn the_order_of_prose_is_the_rerankers_and_that_of_names_is_not() {
    let repo = project(9);
    let stub = Stub::start(tei);
    let before = found(&repo, &[QUESTION]);
    assert!(stub.requests().is_empty(), "nothing is sent that was not set up");
    configure(&repo, &settings(&stub, ""));
    let answer = search(&repo, &[QUESTION, "--explain"]).expect(0).json();
    assert_eq!(paths(&answer), packets((0..9).rev()));
    assert_eq!(
        (&answer["complete"], &answer["results"][0]["features"]["reranker"]),
        (&json!(true), &json!(8.0))
    );
    for mode in ["hybrid", "semantic"] {
        assert_eq!(
            found(&repo, &[QUESTION, "--mode", mode]),
            packets((0..9).rev()),
            "{mode}"
        );
    }
    assert_eq!(stub.requests().len(), 3);
    let (query, texts) = asked_of(&stub.requests()[0]);
    assert_eq!((query.as_str(), texts.len()), (QUESTION, 9));
    assert!(
        texts
            .iter()
            .all(|text| text.contains("Handles packet") && !text.contains(".rs")),
        "{texts:?}"
    );

    stub.forget();
    assert_eq!(found(&repo, &[QUESTION, "--no-rerank"]), before);
    found(&repo, &[QUESTION, "--mode", "keyword"]);
    found(&repo, &["packet_3"]);
    found(&repo, &["src/packet_3.rs:2", "--mode", "similar"]);
    found(&repo, &["packet", "--mode", "regex"]);
    found(&repo, &[QUESTION, "--refs", "HEAD,WORKTREE"]);
    assert!(stub.requests().is_empty());
    assert_eq!(
        found(&repo, &[QUESTION, "--mode", "keyword", "--rerank"]),
        packets((0..9).rev())
    );
    assert_eq!(found(&repo, &[QUESTION, "--all-history"]), packets((0..9).rev()));
    assert_eq!(stub.requests().len(), 2);
}

#[test]
fn what_is_named_or_quoted_stays_first() {
    let repo = project(9);
    let stub = Stub::start(tei);
    configure(&repo, &settings(&stub, ""));
    for query in [
        "packet_3",
        "how does packet_3 count the length",
        "where is \"bytes.len() + 3\" counted",
    ] {
        let paths = found(&repo, &[query, "--rerank"]);
        assert_eq!(paths[0], "packet_3.rs", "{query}");
        assert_eq!(paths[1..3], packets([8, 7]), "{query}");
    }
    let judged = stub.requests();
    assert!(
        judged.iter().all(|seen| asked_of(seen).1.len() == 8),
        "what stays is not asked about"
    );
}

#[test]
fn the_pages_of_an_answer_fit_together() {
    let repo = project(12);
    let stub = Stub::start(tei);
    let before = found(&repo, &[QUESTION, "-n", "0"]);
    configure(&repo, &settings(&stub, "candidates = 7"));
    let whole = found(&repo, &[QUESTION, "-n", "0"]);
    let mut best = before[..7].to_owned();
    best.sort_by_key(|path| -(number_in(path) as i64));
    assert_eq!(whole[..7], best);
    assert_eq!(whole[7..], before[7..]);
    assert_ne!(whole, before);
    for size in ["1", "4", "5", "9"] {
        let (mut found, mut cursor) = (Vec::new(), None::<String>);
        loop {
            let mut args = vec![QUESTION, "-n", size];
            args.extend(cursor.iter().flat_map(|cursor| ["--cursor", cursor]));
            let page = search(&repo, &args).expect(0).json();
            found.extend(paths(&page));
            match page["next_cursor"].as_str() {
                Some(next) => cursor = Some(next.to_owned()),
                None => break,
            }
        }
        assert_eq!(found, whole, "{size}");
    }
    // A page after the reranked results needs no request. A cursor is not valid for a query with another order.
    stub.forget();
    let page = search(&repo, &[QUESTION, "-n", "7"]).expect(0).json();
    let cursor = page["next_cursor"].as_str().unwrap();
    assert_eq!(found(&repo, &[QUESTION, "-n", "7", "--cursor", cursor]), before[7..]);
    assert_eq!(stub.requests().len(), 1);
    search(&repo, &[QUESTION, "--no-rerank", "--cursor", cursor]).expect(2);
}

#[test]
fn a_page_has_the_order_of_the_one_before_or_is_refused() {
    let repo = project(9);
    let embedder = Stub::start(|seen| openai(seen, 32));
    let stub = Stub::start(tei);
    let embedding = format!("\n[embedding]\nserver = '{}'\nmodel = 'm'\n", embedder.url());
    configure(&repo, &format!("{}{embedding}", settings(&stub, "")));
    call_in(repo.root(), &["index", "-q"], b"").expect(0);
    let page = |more: &[&str]| search(&repo, &[&[QUESTION, "-n", "3"], more].concat());
    let cursor_of = |answer: &Value| answer["next_cursor"].as_str().unwrap().to_owned();
    let first = page(&[]).expect(0).json();
    assert_eq!((paths(&first), &first["complete"]), (packets([8, 7, 6]), &json!(true)));

    // The reranker of the first page is unavailable, so there is no next page.
    stub.script([Reply::status(500)]);
    let refused = page(&["--cursor", &cursor_of(&first)]).expect(2);
    let said = format!("{}{}", refused.text(), refused.stderr);
    assert!(
        said.contains("in the order of the previous page") && said.contains("status 500"),
        "{said}"
    );
    embedder.script([Reply::status(500)]);
    page(&["--cursor", &cursor_of(&first)]).expect(2);
    // The reranker is available again.
    let second = page(&["--cursor", &cursor_of(&first)]).expect(0).json();
    assert_eq!(paths(&second), packets([5, 4, 3]));

    // A reranker that was unavailable for the first page is not used for later pages, and the pages together contain
    // all results.
    stub.script([Reply::status(500)]);
    let mut answer = page(&[]).expect(0).json();
    let mut all = paths(&answer);
    stub.forget();
    while answer["next_cursor"].is_string() {
        answer = page(&["--cursor", &cursor_of(&answer)]).expect(0).json();
        let why = answer["incomplete_because"].to_string();
        assert!(why.contains("as on the previous page"), "{why}");
        all.extend(paths(&answer));
    }
    assert!(stub.requests().is_empty());
    assert_eq!(all, found(&repo, &[QUESTION, "--no-rerank", "-n", "9"]));
}

#[test]
fn where_there_is_nothing_to_judge_nothing_is_missed() {
    let repo = project(9);
    let stub = Stub::start(tei);
    configure(&repo, &settings(&stub, "candidates = 1"));
    let first = search(&repo, &[QUESTION, "-n", "3"]).expect(0).json();
    let cursor = first["next_cursor"].as_str().unwrap();
    let second = search(&repo, &[QUESTION, "-n", "3", "--cursor", cursor])
        .expect(0)
        .json();
    for page in [&first, &second] {
        assert_eq!(page["complete"], json!(true), "{page}");
    }
    assert!(stub.requests().is_empty());
}

#[test]
fn pages_over_all_that_ever_was_have_one_order_too() {
    let repo = project(9);
    let stub = Stub::start(tei);
    configure(&repo, &settings(&stub, ""));
    let mut client = Client::legacy(&repo, &[]);
    client.call_complete("symbol", json!({"name": "packet_1"}));
    client.call("index", json!({"history": true, "wait": 60}));
    let mut page = json!({"query": QUESTION, "all_history": true, "limit": 3});
    client.call_complete("search", page.clone());
    stub.script([Reply::status(500)]);
    let mut answer = client.call("search", page.clone());
    let mut all = answer.all("path");
    stub.forget();
    while answer.facts["next_cursor"].is_string() {
        page["cursor"] = answer.facts["next_cursor"].clone();
        answer = client.call("search", page.clone());
        assert!(answer.text.contains("as on the previous page"), "{}", answer.text);
        all.extend(answer.all("path"));
    }
    assert!(stub.requests().is_empty(), "who was away is not asked");
    all.sort_unstable();
    assert_eq!(
        all,
        packets(0..9)
            .iter()
            .map(|name| format!("src/{name}"))
            .collect::<Vec<_>>()
    );
}

#[test]
fn what_must_not_leave_keeps_its_place_and_is_not_sent() {
    let repo = project(4);
    repo.write(
        ".env",
        "# packet lengths are counted here\nPACKET_LENGTH_SECRET=hunter22\n",
    );
    repo.write(
        "src/key.rs",
        "/// Packet 2000: its length is counted.\nconst PASSWORD: &str = \"correct-horse-battery\";\n",
    );
    repo.commit("secrets");
    repo.write(
        "src/fresh.rs",
        "/// Packet 1000: the length of a packet is counted.\npub fn fresh_packet(bytes: &[u8]) -> usize { bytes.len() }\n",
    );
    let stub = Stub::start(tei);
    let asked = ["search", "--json", "-n", "0", QUESTION];
    let ask = || paths(&call_in(repo.root(), &asked, b"").expect(0).json());
    let before = ask();
    configure(&repo, &settings(&stub, ""));
    let now = ask();
    let sent = stub.requests().remove(0);
    let text = String::from_utf8_lossy(&sent.body).into_owned();
    assert_eq!(asked_of(&sent).1.len(), 5);
    for secret in ["fresh_packet", "PACKET_LENGTH_SECRET", "correct-horse"] {
        assert!(!text.contains(secret), "{text}");
    }
    let place = |paths: &[String], name: &str| paths.iter().position(|path| path == name).unwrap();
    assert_eq!(
        place(&now, "fresh.rs"),
        place(&before, "fresh.rs"),
        "{before:?} {now:?}"
    );
    let mut others = now.clone();
    others.retain(|path| path != "fresh.rs");
    assert_eq!(others, [vec!["key.rs".to_owned()], packets((0..4).rev())].concat());
}

#[test]
fn a_text_that_is_refused_keeps_its_place() {
    let repo = project(6);
    let before = found(&repo, &[QUESTION]);
    let refused = before[2].clone();
    let number = number_in(&refused);
    let stub = Stub::start(move |seen| {
        if asked_of(seen).1.iter().any(|text| number_in(text) == number) {
            Reply::status(422).body(b"{}")
        } else {
            tei(seen)
        }
    });
    configure(&repo, &settings(&stub, ""));
    let mut others = found(&repo, &[QUESTION]);
    assert_eq!(others.remove(2), refused);
    assert_eq!(others, packets((0..6).rev().filter(|other| *other as f64 != number)));
}

#[test]
fn whatever_the_server_does_the_answer_comes_soon_and_says_so() {
    let repo = project(6);
    let before = found(&repo, &[QUESTION]);
    let page = vec![b'x'; 10 << 20];
    type Handler = Box<dyn Fn(&Seen) -> Reply + Send + Sync>;
    let faults: [(&str, usize, Handler); 9] = [
        (
            "no answer within",
            1,
            Box::new(|seen| tei(seen).after(Duration::from_secs(600))),
        ),
        (
            "no answer within",
            1,
            Box::new(|seen| tei(seen).slowly(Duration::from_millis(300))),
        ),
        ("status 503", 1, Box::new(|_| Reply::status(503))),
        ("status 429", 1, Box::new(|_| Reply::status(429))),
        (
            "status 429",
            1,
            Box::new(|_| Reply::status(429).with("retry-after", "40")),
        ),
        ("a model of the right kind", 1, Box::new(|_| Reply::status(424))),
        ("<html>", 1, Box::new(|_| Reply::status(200).body(b"<html>no</html>"))),
        (
            "response larger than",
            1,
            Box::new(move |_| Reply::status(200).body(&page)),
        ),
        (
            "1 results for 6",
            1,
            Box::new(|_| Reply::json(&json!([{"index": 0, "score": 1}]))),
        ),
    ];
    for (what, n_requests, handler) in faults {
        let stub = Stub::start(handler);
        configure(&repo, &settings(&stub, "").replace("20000", "1200"));
        let started = Instant::now();
        let answer = search(&repo, &[QUESTION]).expect(0).json();
        assert_within(SOON, started, what);
        let why = answer["incomplete_because"][0].as_str().unwrap();
        assert!(
            why.contains(what) && why.ends_with("results are not reranked"),
            "{what}: {why}"
        );
        assert_eq!(
            (&answer["complete"], paths(&answer)),
            (&json!(false), before.clone()),
            "{what}"
        );
        assert!(stub.requests().len() <= n_requests, "{what}: {}", stub.requests().len());
    }
    // Nothing listens at the address.
    let answer = search(&repo, &[QUESTION]).expect(0).json();
    assert!(
        answer["incomplete_because"][0]
            .as_str()
            .unwrap()
            .contains("no connection"),
        "{answer}"
    );
    assert_eq!(paths(&answer), before);
}

#[test]
fn a_server_that_fails_again_and_again_is_left_alone() {
    let repo = project(6);
    let stub = Stub::start(|seen| tei(seen).after(Duration::from_secs(600)));
    configure(&repo, &settings(&stub, "").replace("20000", "100"));
    let indexed = Indexed::new(repo.root());
    let view = indexed.view("HEAD");
    let workspace = &indexed.workspace;
    let searcher = Searcher::new(&view, workspace.models.embedder(), workspace.models.own()).unwrap();
    let searcher = searcher.with_reranking(workspace.reranking(&view, &NEVER));
    let request = Request {
        query: QUESTION.to_owned(),
        limit: 3,
        ..Request::default()
    };
    let notes: Vec<String> = (0..8).flat_map(|_| searcher.search(&request).unwrap().notes).collect();
    assert_eq!(notes.len(), 8, "{notes:?}");
    // On a busy machine the time may be over before a request is sent.
    assert!(stub.requests().len() <= 3, "{notes:?}");
    assert!(notes[7].contains("skipped after 3 failures in a row"), "{notes:?}");
}

#[test]
fn it_is_asked_for_or_refused_by_name() {
    let repo = project(2);
    for (args, message) in [
        (&["--rerank"][..], "no reranker is configured"),
        (
            &["--rerank", "--mode", "regex"],
            "rerank cannot be used with mode regex",
        ),
        (
            &["--rerank", "--mode", "similar"],
            "rerank cannot be used with mode similar",
        ),
        (&["--rerank", "--refs", "HEAD"], "rerank cannot be used with refs"),
        (
            &["--rerank", "--in", "commits"],
            "rerank cannot be used with in commits",
        ),
        (&["--rerank", "--no-rerank"], "cannot be used with"),
    ] {
        let called = search(&repo, &[&[QUESTION], args].concat()).expect(2);
        let said = format!("{}{}", called.text(), called.stderr);
        assert!(said.contains(message), "{args:?}: {said}");
    }
    found(&repo, &[QUESTION, "--no-rerank"]);
}

#[test]
fn agents_have_it_too() {
    let repo = project(9);
    let stub = Stub::start(tei);
    configure(&repo, &settings(&stub, ""));
    Indexed::new(repo.root()).view("HEAD");
    let mut client = Client::legacy(&repo, &[]);
    let mut first = |arguments: Value| client.call_complete("search", arguments);
    let answer = first(json!({"query": QUESTION}));
    let found: Vec<&str> = answer.text.lines().filter(|line| line.starts_with("src/")).collect();
    assert!(found[0].starts_with("src/packet_8.rs"), "{}", answer.text);
    assert_eq!(stub.requests().len(), 1);
    for arguments in [
        json!({"query": QUESTION, "rerank": false}),
        json!({"query": "packet_3"}),
    ] {
        first(arguments);
    }
    assert_eq!(stub.requests().len(), 1);
    first(json!({"query": "packet_3", "rerank": true, "explain": true}));
    assert_eq!(stub.requests().len(), 2);
    for (more, value) in [
        ("refs", json!(["HEAD"])),
        ("in", json!("commits")),
        ("mode", json!("regex")),
    ] {
        let mut arguments = json!({"query": QUESTION, "rerank": true});
        arguments[more] = value;
        let answer = first(arguments);
        assert!(answer.text.contains("rerank cannot be used with"), "{}", answer.text);
    }
    stub.script([Reply::status(503)]);
    let answer = first(json!({"query": QUESTION}));
    assert!(answer.text.contains("results are not reranked"), "{}", answer.text);
}

#[test]
fn ctrl_c_does_not_wait_for_the_server() {
    let repo = project(3);
    let stub = Stub::start(|seen| tei(seen).after(Duration::from_secs(600)));
    Indexed::new(repo.root()).view("HEAD");
    configure(&repo, &settings(&stub, "").replace("20000", "600000"));
    let mut child = crate::mcp::command(repo.root(), &["search", QUESTION])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let started = Instant::now();
    wait_until("the reranker is asked", || !stub.requests().is_empty());
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    assert_eq!(wait_for_end(&mut child).code(), Some(130));
    assert_within(SOON, started, "a silent server");
}

#[test]
fn the_program_tells_where_results_are_judged() {
    let repo = project(2);
    let stub = Stub::start(tei);
    configure(&repo, &settings(&stub, "model = 'judge'"));
    let leaves = call_in(repo.root(), &["doctor", "--what-leaves"], b"").expect(0).text();
    for part in [
        stub.url().as_str(),
        "every query in prose, and every query that requests reranking, with the text of its first 50 results",
        "judge",
        "are detected and removed first",
    ] {
        assert!(leaves.contains(part), "{part}: {leaves}");
    }
    assert!(
        !leaves.contains("nothing leaves") && !leaves.contains("the text of every chunk"),
        "{leaves}"
    );
    stub.forget();
    let doctor = call_in(repo.root(), &["doctor"], b"").text();
    assert!(
        doctor.contains("judge at 127.0.0.1:") && doctor.contains("answers in"),
        "{doctor}"
    );
    assert_eq!(stub.requests().len(), 1);
    stub.script([Reply::status(424).body(b"not a reranker")]);
    let doctor = call_in(repo.root(), &["doctor"], b"").text();
    assert!(doctor.contains("a model of the right kind"), "{doctor}");
    // The message names the setting.
    let slow = Stub::start(|seen| tei(seen).after(Duration::from_millis(500)));
    configure(&repo, &settings(&slow, "").replace("20000", "50"));
    let doctor = call_in(repo.root(), &["doctor"], b"").text();
    assert!(doctor.contains("config set rerank.timeout_ms 500"), "{doctor}");
}

#[test]
fn settings_that_are_wrong_are_refused_without_their_secrets() {
    let repo = project(1);
    let key = repo.beside("key");
    std::fs::write(&key, "sesame\n").unwrap();
    let over_http = format!("server = 'http://example.com'\nkey_file = '{}'", key.display());
    for (settings, message) in [
        ("server = 'https://me:hunter2@host/v1'", "has credentials in it"),
        (
            "server = 'http://127.0.0.1:1'\napi = 'soap'",
            "tei, infinity, cohere, jina, voyage or llamacpp",
        ),
        (over_http.as_str(), "over plain http"),
    ] {
        configure(&repo, &format!("[rerank]\n{settings}\n"));
        let called = call_in(repo.root(), &["search", QUESTION], b"").expect(2);
        assert!(called.stderr.contains(message), "{}", called.stderr);
        assert!(
            !called.stderr.contains("hunter2") && !called.stderr.contains("sesame"),
            "{}",
            called.stderr
        );
    }
    // A repository's own settings file must not name a server or any other setting of it.
    let stub = Stub::start(tei);
    std::fs::remove_file(repo.path(".codescout/config.toml")).unwrap();
    for text in [settings(&stub, ""), "[rerank]\ncandidates = 3\n".to_owned()] {
        repo.write(".codescout.toml", text);
        let called = call_in(repo.root(), &["search", QUESTION], b"").expect(2);
        assert!(called.stderr.contains("can only be set by"), "{}", called.stderr);
    }
    assert!(stub.requests().is_empty());
}
