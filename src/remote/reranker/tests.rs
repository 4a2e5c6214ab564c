#![expect(clippy::unwrap_used, reason = "tests")]

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;

use super::{MAX_REQUESTS, RemoteReranker, RerankApi, RerankerOptions};
use crate::model::chain;
use crate::query::{RerankError, Reranker};
use crate::remote::{Endpoint, KeyHeader, Secret};
use crate::support::model::{Judge, asked_of, judged, number_in};
use crate::support::{Reply, Seen, Stub, assert_within, wait_until};

static NEVER: AtomicBool = AtomicBool::new(false);
const FORMS: [(RerankApi, Judge); 6] = [
    (RerankApi::Tei, Judge::Tei),
    (RerankApi::Infinity, Judge::Infinity),
    (RerankApi::Cohere, Judge::Cohere),
    (RerankApi::Jina, Judge::Jina),
    (RerankApi::Voyage, Judge::Voyage),
    (RerankApi::LlamaCpp, Judge::LlamaCpp),
];

fn options(stub: &Stub, api: RerankApi) -> RerankerOptions {
    RerankerOptions {
        endpoint: Endpoint::new(&format!("{}/v1", stub.url())).unwrap(),
        api,
        model: "m".to_owned(),
        batch: Some(4),
        timeout: Duration::from_secs(30),
    }
}

fn reranker(stub: &Stub) -> RemoteReranker {
    RemoteReranker::new(options(stub, RerankApi::Tei))
}

fn tei(seen: &Seen) -> Reply {
    judged(seen, Judge::Tei, number_in)
}

fn numbers(n: usize) -> Vec<String> {
    (0..n).map(|number| format!("text number {number} of them")).collect()
}

fn rerank(reranker: &RemoteReranker, texts: &[String]) -> Result<Vec<Option<f32>>, RerankError> {
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    reranker.rerank("which number?", &texts, &NEVER)
}

fn text_of(error: RerankError) -> String {
    chain(&error)
}

/// Returns the number of texts in each request.
fn sizes(stub: &Stub) -> Vec<usize> {
    stub.requests().iter().map(|seen| asked_of(seen).1.len()).collect()
}

#[test]
fn every_interface_gives_each_text_its_score_in_batches() {
    let expected: Vec<Option<f32>> = (0..10).map(|number| Some(number as f32)).collect();
    for (api, judge) in FORMS {
        let stub = Stub::start(move |seen| judged(seen, judge, number_in));
        let reranker = RemoteReranker::new(options(&stub, api));
        assert_eq!(rerank(&reranker, &numbers(10)).unwrap(), expected, "{api:?}");
        assert_eq!(sizes(&stub), [4, 4, 2], "{api:?}");
        let seen = stub.requests().remove(2);
        assert_eq!((seen.method.as_str(), seen.path.as_str()), ("POST", "/v1/rerank"));
        let mut body = seen.json();
        let fields = body.as_object_mut().unwrap();
        assert_eq!(fields.remove("query"), Some(json!("which number?")));
        let (list, rest) = match api {
            RerankApi::Tei => (
                "texts",
                json!({"raw_scores": false, "return_text": false, "truncate": true}),
            ),
            RerankApi::Cohere => ("documents", json!({"model": "m", "top_n": 2})),
            RerankApi::Voyage => (
                "documents",
                json!({"model": "m", "top_k": 2, "return_documents": false, "truncation": true}),
            ),
            RerankApi::Infinity | RerankApi::Jina | RerankApi::LlamaCpp => (
                "documents",
                json!({"model": "m", "top_n": 2, "return_documents": false}),
            ),
        };
        assert_eq!(fields.remove(list), Some(json!(numbers(10)[8..])), "{api:?}");
        assert_eq!(body, rest, "{api:?}");
    }
}

#[test]
fn a_server_with_one_model_needs_no_name_for_it() {
    let stub = Stub::start(|seen| judged(seen, Judge::LlamaCpp, number_in));
    let nameless = RerankerOptions {
        model: String::new(),
        ..options(&stub, RerankApi::LlamaCpp)
    };
    let reranker = RemoteReranker::new(nameless);
    rerank(&reranker, &numbers(2)).unwrap();
    assert!(stub.requests()[0].json().get("model").is_none());
    assert!(reranker.name().starts_with("the reranker at 127.0.0.1:"));
}

#[test]
fn a_request_that_is_too_large_is_halved() {
    let stub = Stub::start(|seen| match asked_of(seen).1.len() {
        0..=2 => tei(seen),
        _ => Reply::status(413).body(br#"{"error":"batch size 4 > maximum allowed batch size 2"}"#),
    });
    let scores = rerank(&reranker(&stub), &numbers(4)).unwrap();
    assert_eq!(scores, [Some(0.0), Some(1.0), Some(2.0), Some(3.0)]);
    assert_eq!(sizes(&stub), [4, 2, 2]);
}

#[test]
fn a_text_that_is_refused_costs_only_itself() {
    for refused in ["number 0", "number 2"] {
        let stub = Stub::start(move |seen| {
            if asked_of(seen).1.iter().any(|text| text.contains(refused)) {
                Reply::status(422).body(br#"{"error":"tokenization"}"#)
            } else {
                tei(seen)
            }
        });
        let scores = rerank(&reranker(&stub), &numbers(4)).unwrap();
        let judged: Vec<bool> = scores.iter().map(Option::is_some).collect();
        let expected: Vec<bool> = numbers(4).iter().map(|text| !text.contains(refused)).collect();
        assert_eq!(judged, expected);
    }
}

#[test]
fn a_server_that_refuses_everything_is_asked_a_few_times() {
    let stub = Stub::start(|_| Reply::status(400).body(b"no such model"));
    for n in [1, 3, 100] {
        stub.forget();
        let error = rerank(&reranker(&stub), &numbers(n)).unwrap_err();
        assert!(text_of(error).contains("no such model"));
        assert!(stub.requests().len() <= MAX_REQUESTS, "{}", stub.requests().len());
    }
}

#[test]
fn empty_texts_are_not_sent() {
    let stub = Stub::start(tei);
    let texts = ["", "7", " \n"].map(str::to_owned);
    assert_eq!(rerank(&reranker(&stub), &texts).unwrap(), [None, Some(7.0), None]);
    assert_eq!(sizes(&stub), [1]);
    assert_eq!(rerank(&reranker(&stub), &texts[..1]).unwrap(), [None]);
    assert_eq!(rerank(&reranker(&stub), &[]).unwrap(), []);
    assert_eq!(stub.requests().len(), 1);
}

#[test]
fn answers_that_cannot_be_used_are_quoted_and_not_asked_for_again() {
    let bodies: [(&str, &str); 9] = [
        ("1 results for 2 texts", r#"[{"index":0,"score":1}]"#),
        (
            "two results for text 1",
            r#"[{"index":1,"score":1},{"index":1,"score":2}]"#,
        ),
        ("text 2 of 2", r#"[{"index":0,"score":1},{"index":2,"score":2}]"#),
        ("without an index", r#"[{"index":0,"score":1},{"score":2}]"#),
        (
            "no score for text 1",
            r#"[{"index":0,"score":1},{"index":1,"score":null}]"#,
        ),
        ("out of range", r#"[{"index":0,"score":1},{"index":1,"score":1e999}]"#),
        ("expected value", r#"[{"index":0,"score":NaN},{"index":1,"score":1}]"#),
        ("no list of results", r#"{"error":"the model is loading"}"#),
        ("expected value", "<html><title>bad gateway</title>"),
    ];
    for (what, body) in bodies {
        let stub = Stub::start(|_| Reply::status(200).body(body.as_bytes()));
        let message = text_of(rerank(&reranker(&stub), &numbers(2)).unwrap_err());
        assert!(
            message.contains(what) && message.contains(&body[..20]),
            "{what}: {message}"
        );
        assert_eq!(stub.requests().len(), 1, "{what}");
    }
    let page = format!("<html>{}", "x".repeat(10 << 20));
    let replies: [(&str, Reply); 6] = [
        ("EOF", Reply::status(200)),
        ("response larger than", Reply::status(200).body(page.as_bytes())),
        ("status 500: \"<html>xxx", Reply::status(500).body(page.as_bytes())),
        (
            "a model of the right kind",
            Reply::status(424).body(br#"{"error":"`predict` is not available","error_type":"backend"}"#),
        ),
        (
            "content encoding \"gzip\"",
            Reply::status(200).with("content-encoding", "gzip").body(b"\x1f\x8b"),
        ),
        ("the key is missing, wrong", Reply::status(401)),
    ];
    for (what, reply) in replies {
        let stub = Stub::start(move |_| reply.clone());
        let message = text_of(rerank(&reranker(&stub), &numbers(2)).unwrap_err());
        assert!(message.contains(what) && message.len() < 1000, "{what}: {message}");
        assert_eq!(stub.requests().len(), 1, "{what}");
    }
}

#[test]
fn somebody_waits_so_nothing_is_tried_again() {
    let stub = Stub::start(tei);
    for fault in [
        Reply::status(503),
        Reply::status(429).with("retry-after", "0"),
        Reply::hang_up(),
        tei(&Seen::default()).then_hang_up_after(1),
    ] {
        stub.forget();
        stub.script([fault.clone()]);
        assert!(rerank(&reranker(&stub), &numbers(2)).is_err(), "{fault:?}");
        assert_eq!(stub.requests().len(), 1);
    }
}

#[test]
fn a_pause_that_is_asked_for_is_kept_if_there_is_time() {
    let stub = Stub::start(tei);
    let reranker = reranker(&stub);
    // The pause exceeds the time limit of this reranking and of the next.
    stub.script([Reply::status(429).with("retry-after", "50")]);
    let error = rerank(&reranker, &numbers(2)).unwrap_err();
    assert!(text_of(error).contains("status 429"));
    let error = rerank(&reranker, &numbers(2)).unwrap_err();
    assert!(text_of(error).contains("asked for a pause"));
    assert_eq!(stub.requests().len(), 1);
}

#[test]
fn all_batches_together_wait_no_longer_than_they_may_and_a_server_that_fails_is_left_alone() {
    let slow: [fn(&Seen) -> Reply; 2] = [
        |seen| tei(seen).after(Duration::from_millis(150)),
        |seen| tei(seen).slowly(Duration::from_millis(200)),
    ];
    for handler in slow {
        let stub = Stub::start(handler);
        let hasty = RerankerOptions {
            batch: Some(1),
            timeout: Duration::from_millis(300),
            ..options(&stub, RerankApi::Tei)
        };
        let reranker = RemoteReranker::new(hasty);
        let started = Instant::now();
        for _ in 0..6 {
            assert!(rerank(&reranker, &numbers(30)).is_err());
        }
        assert_within(Duration::from_secs(15), started, "a slow server");
        assert!(stub.requests().len() <= 9, "{}", stub.requests().len());
        let error = rerank(&reranker, &numbers(2)).unwrap_err();
        assert!(text_of(error).contains("skipped after"));
    }
}

#[test]
fn a_flag_ends_it() {
    let stub = Stub::start(|seen| tei(seen).after(Duration::from_secs(600)));
    let reranker = reranker(&stub);
    let flag = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let asked = scope.spawn(|| reranker.rerank("q", &["a", "b"], &flag));
        wait_until("the server is asked", || !stub.requests().is_empty());
        flag.store(true, Ordering::Relaxed);
        assert!(matches!(asked.join().unwrap(), Err(RerankError::Interrupted)));
    });
}

#[test]
fn secrets_do_not_leave_and_the_key_is_not_shown() {
    let stub = Stub::start(tei);
    let mut options = options(&stub, RerankApi::Tei);
    options.endpoint = options
        .endpoint
        .with_key(Secret::new("sesame"), KeyHeader::Bearer)
        .unwrap();
    let reranker = RemoteReranker::new(options);
    let texts = ["password = \"correct-horse-battery\"", "b"];
    reranker
        .rerank("Authorization: Bearer abcdef123456", &texts, &NEVER)
        .unwrap();
    let seen = stub.requests().remove(0);
    let sent = String::from_utf8_lossy(&seen.body);
    assert!(
        !sent.contains("correct-horse") && !sent.contains("abcdef123456"),
        "{sent}"
    );
    assert_eq!(seen.header("authorization"), Some("Bearer sesame"));
    stub.script([Reply::status(403).body(b"the key sesame is none")]);
    let message = text_of(reranker.rerank("q", &texts, &NEVER).unwrap_err());
    assert!(
        message.contains("the key [key] is none") && !message.contains("sesame"),
        "{message}"
    );
}
