#![expect(clippy::unwrap_used, reason = "tests")]

use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{EmbedderOptions, EmbeddingApi, Encoding, RemoteEmbedder};
use crate::embed::{EmbedError, Embedder};
use crate::model::chain;
use crate::remote::Endpoint;
use crate::support::model::{ollama, openai, tei, texts_of, vector_of};
use crate::support::{Reply, Seen, Stub, assert_within};

static NEVER: AtomicBool = AtomicBool::new(false);
const DIM: usize = 16;

fn options(stub: &Stub, api: EmbeddingApi) -> EmbedderOptions {
    EmbedderOptions {
        endpoint: Endpoint::new(&stub.url()).unwrap(),
        api,
        model: "m".to_owned(),
        revision: String::new(),
        query_prefix: "query: ".to_owned(),
        document_prefix: "passage: ".to_owned(),
        dimensions: None,
        encoding: Encoding::Float,
        batch: Some(4),
        in_flight: 2,
        timeout: Duration::from_secs(30),
        query_timeout: Duration::from_secs(5),
    }
}

fn embedder(stub: &Stub, api: EmbeddingApi) -> RemoteEmbedder {
    RemoteEmbedder::new(options(stub, api))
}

fn openai_stub() -> Stub {
    Stub::start(|seen| openai(seen, DIM))
}

fn numbers(n: usize) -> Vec<String> {
    (0..n).map(|number| format!("text number {number} of them")).collect()
}

fn embed(embedder: &RemoteEmbedder, texts: &[String]) -> Result<Vec<Vec<f32>>, EmbedError> {
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let embedded = embedder.embed_documents(&texts, &NEVER)?;
    Ok(embedded.into_iter().map(|embedding| embedding.vector).collect())
}

#[test]
fn every_interface_gives_each_text_its_vector_in_batches() {
    let texts = numbers(10);
    let expected: Vec<Vec<f32>> = texts
        .iter()
        .map(|text| vector_of(&format!("passage: {text}"), DIM))
        .collect();
    let stubs: [(EmbeddingApi, Encoding, &str, Stub); 4] = [
        (EmbeddingApi::OpenAi, Encoding::Float, "/embeddings", openai_stub()),
        (EmbeddingApi::OpenAi, Encoding::Base64, "/embeddings", openai_stub()),
        (
            EmbeddingApi::Ollama,
            Encoding::Float,
            "/api/embed",
            Stub::start(|seen| ollama(seen, DIM)),
        ),
        (
            EmbeddingApi::Tei,
            Encoding::Float,
            "/embed",
            Stub::start(|seen| tei(seen, DIM, 32)),
        ),
    ];
    for (api, encoding, path, stub) in stubs {
        let options = EmbedderOptions {
            encoding,
            ..options(&stub, api)
        };
        let embedder = RemoteEmbedder::new(options);
        let found = embed(&embedder, &texts).unwrap();
        for (found, expected) in found.iter().zip(&expected) {
            assert!(found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-6), "{api:?}");
        }
        assert_eq!(found.len(), expected.len());
        let sizes: Vec<usize> = stub
            .requests()
            .iter()
            .filter(|seen| seen.path == path)
            .map(|seen| texts_of(seen).len())
            .collect();
        assert_eq!(sizes, [4, 4, 2], "{api:?}");
        let query = embedder.embed_query("where is it?", &AtomicBool::new(false)).unwrap();
        assert!((query.vector[0] - vector_of("query: where is it?", DIM)[0]).abs() < 1e-6);
    }
}

#[test]
fn settings_make_the_profile_and_the_server_does_not() {
    let (stub, other) = (openai_stub(), openai_stub());
    let base = options(&stub, EmbeddingApi::OpenAi);
    let id = |options: EmbedderOptions| RemoteEmbedder::new(options).profile().id();
    let same = id(base.clone());
    assert_eq!(id(options(&other, EmbeddingApi::OpenAi)), same);
    let changes: [fn(&mut EmbedderOptions); 5] = [
        |options| options.model.push('x'),
        |options| options.revision.push('2'),
        |options| options.query_prefix.clear(),
        |options| options.document_prefix.clear(),
        |options| options.dimensions = Some(8),
    ];
    for change in changes {
        let mut options = base.clone();
        change(&mut options);
        assert_ne!(id(options), same);
    }
    assert!(stub.requests().is_empty());
}

#[test]
fn a_request_that_is_too_large_is_halved() {
    let stub = Stub::start(|seen| tei(seen, DIM, 3));
    let embedder = embedder(&stub, EmbeddingApi::Tei);
    let texts = numbers(4);
    assert_eq!(embed(&embedder, &texts).unwrap().len(), 4);
    let sizes: Vec<usize> = stub
        .requests()
        .iter()
        .filter(|seen| seen.path == "/embed")
        .map(|seen| texts_of(seen).len())
        .collect();
    assert_eq!(sizes, [4, 2, 2]);
}

#[test]
fn a_text_that_is_refused_costs_only_itself() {
    let stub = Stub::start(|seen| {
        if texts_of(seen).iter().any(|text| text.contains("number 2")) {
            Reply::status(422).body(b"{\"error\":\"tokenization\"}")
        } else {
            openai(seen, DIM)
        }
    });
    let embedder = embedder(&stub, EmbeddingApi::OpenAi);
    // An earlier response has shown that the server works.
    embed(&embedder, &numbers(1)).unwrap();
    let found = embed(&embedder, &numbers(4)).unwrap();
    let empty: Vec<bool> = found.iter().map(|vector| vector.iter().all(|&x| x == 0.0)).collect();
    assert_eq!(empty, [false, false, true, false]);
    assert!(
        embedder.notes()[0].starts_with("1 texts were refused"),
        "{:?}",
        embedder.notes()
    );
}

#[test]
fn a_server_that_refuses_everything_is_an_error() {
    let stub = Stub::start(|_| Reply::status(400).body(b"no such model"));
    let error = embed(&embedder(&stub, EmbeddingApi::OpenAi), &numbers(4)).unwrap_err();
    assert!(matches!(error, EmbedError::Unavailable { .. }), "{error}");
    assert!(stub.requests().len() <= 4, "{}", stub.requests().len());
}

#[test]
fn empty_texts_are_not_sent() {
    let stub = openai_stub();
    let embedder = embedder(&stub, EmbeddingApi::OpenAi);
    let texts = ["", "x", " \n"].map(str::to_owned);
    let found = embed(&embedder, &texts).unwrap();
    assert!(found[0].iter().chain(&found[2]).all(|&x| x == 0.0) && found[1][0] != 0.0);
    assert_eq!(texts_of(&stub.requests()[0]), ["passage: x"]);
}

#[test]
fn answers_that_cannot_be_used_are_named_and_not_asked_for_again() {
    type Answer = fn(&Seen) -> Reply;
    let answers: [(&str, Answer); 5] = [
        ("1 vectors for 2 texts", |_| Reply::json(&json!([[1.0]]))),
        ("3 components, expected 2", |_| {
            Reply::json(&json!([[1.0, 0.0], [0.0, 0.0, 1.0]]))
        }),
        ("JSON", |_| Reply::status(200).body(b"[[NaN, 1], [1, 1]]")),
        ("<html>", |_| Reply::status(200).body(b"<html><title>gateway</title>")),
        ("JSON", |_| Reply::status(200)),
    ];
    for (what, answer) in answers {
        let stub = Stub::start(answer);
        let error = embed(&embedder(&stub, EmbeddingApi::Tei), &numbers(2)).unwrap_err();
        let message = chain(&error);
        assert!(message.contains(what), "{what}: {message}");
        assert_eq!(stub.requests().len(), 1, "{what}");
    }
}

#[test]
fn a_vector_of_nothing_costs_only_its_text_unless_all_are_such() {
    for nothing in ["[0, 0]", "[null, null]", "[1, null]", "[1e39, 1]"] {
        let stub = Stub::start(move |seen| {
            let vectors = texts_of(seen)
                .into_iter()
                .map(|text| if text.contains("number 0") { nothing } else { "[1, 0]" });
            let vectors: Vec<&str> = vectors.collect();
            Reply::status(200).body(format!("[{}]", vectors.join(",")).as_bytes())
        });
        let works = embedder(&stub, EmbeddingApi::Tei);
        assert_eq!(
            embed(&works, &numbers(2)).unwrap(),
            [[0.0, 0.0], [1.0, 0.0]],
            "{nothing}"
        );
        // With one text in the request, the control text shows whether the text or the server is at fault.
        assert_eq!(embed(&works, &numbers(1)).unwrap(), [[0.0, 0.0]], "{nothing}");
        assert!(
            works.notes()[0].starts_with("2 texts were refused"),
            "{:?}",
            works.notes()
        );
        assert!(works.embed_query("number 0", &AtomicBool::new(false)).is_err());

        let stub = Stub::start(move |seen| {
            let vectors = vec![nothing; texts_of(seen).len()];
            Reply::status(200).body(format!("[{}]", vectors.join(",")).as_bytes())
        });
        let broken = embedder(&stub, EmbeddingApi::Tei);
        let error = embed(&broken, &numbers(4)).unwrap_err();
        assert!(error.to_string().contains("zeros"), "{error}");
        assert_eq!(stub.requests().len(), 2, "{nothing}");
    }
}

#[test]
fn a_server_that_begins_to_refuse_everything_is_left() {
    let stub = openai_stub();
    let embedder = embedder(&stub, EmbeddingApi::OpenAi);
    embed(&embedder, &numbers(4)).unwrap();
    stub.forget();
    stub.script(vec![Reply::status(400).body(b"model unloaded"); 40]);
    let error = embed(&embedder, &numbers(40)).unwrap_err();
    assert!(matches!(error, EmbedError::Unavailable { .. }), "{error}");
    // Requests of four texts, two texts, one text, and the control text.
    assert_eq!(stub.requests().len(), 4);
}

#[test]
fn another_dimension_in_the_middle_is_refused() {
    let stub = openai_stub();
    let embedder = embedder(&stub, EmbeddingApi::OpenAi);
    let odd = || Reply::json(&json!({"data": [{"index": 0, "embedding": [1.0, 2.0]}]}));
    let four: Vec<Value> = (0..4)
        .map(|index| json!({"index": index, "embedding": vector_of("", DIM)}))
        .collect();
    stub.script([Reply::json(&json!({"data": four})), odd()]);
    let error = embed(&embedder, &numbers(5)).unwrap_err();
    assert!(error.to_string().contains("2 components, expected 16"), "{error}");
}

#[test]
fn an_odd_answer_says_nothing_about_the_next() {
    let stub = openai_stub();
    let embedder = embedder(&stub, EmbeddingApi::OpenAi);
    for odd in [json!([]), json!([1.0, 2.0])] {
        let odd = || Reply::json(&json!({"data": [{"index": 0, "embedding": odd}]}));
        stub.script([odd()]);
        let _ = embedder.embed_query("first", &NEVER);
        assert_eq!(embedder.embed_query("next", &NEVER).unwrap().vector.len(), DIM);
        stub.script([odd()]);
        let _ = embed(&embedder, &numbers(1));
        assert_eq!(embed(&embedder, &numbers(1)).unwrap()[0].len(), DIM);
    }
}

#[test]
fn who_looks_at_a_server_stops_when_told_to() {
    let stub = Stub::start(|seen| openai(seen, DIM).after(Duration::from_secs(60)));
    let embedder = embedder(&stub, EmbeddingApi::OpenAi);
    let found = embedder.examine(Duration::from_secs(120), &AtomicBool::new(true));
    assert!(matches!(found, Err(EmbedError::Interrupted)));
    assert!(
        stub.requests().is_empty(),
        "nothing is sent for a call that was given up"
    );
}

#[test]
fn dimensions_are_asked_for_and_checked() {
    let stub = openai_stub();
    let narrow = EmbedderOptions {
        dimensions: Some(8),
        ..options(&stub, EmbeddingApi::OpenAi)
    };
    let error = embed(&RemoteEmbedder::new(narrow), &numbers(1)).unwrap_err();
    assert!(error.to_string().contains("16 components, expected 8"), "{error}");
    assert_eq!(stub.requests()[0].json()["dimensions"], 8);
}

#[test]
fn secrets_do_not_leave_and_what_is_cut_off_is_counted() {
    let stub = Stub::start(|seen| tei(seen, DIM, 32));
    let embedder = embedder(&stub, EmbeddingApi::Tei);
    let texts = [
        "password = \"correct-horse-battery\"".to_owned(),
        "a text that is longer than the eight tokens which this model reads".to_owned(),
    ];
    embed(&embedder, &texts).unwrap();
    embedder
        .embed_query("Authorization: Bearer abcdef123456", &AtomicBool::new(false))
        .unwrap();
    for seen in stub.requests() {
        let sent = String::from_utf8(seen.body).unwrap();
        assert!(
            !sent.contains("correct-horse") && !sent.contains("abcdef123456"),
            "{sent}"
        );
    }
    let notes = embedder.notes();
    assert!(notes.iter().any(|note| note.starts_with("2 secrets")), "{notes:?}");
    assert!(
        notes
            .iter()
            .any(|note| note.contains("longer than the model's input limit")),
        "{notes:?}"
    );
}

#[test]
fn a_query_waits_no_longer_than_it_may() {
    let stub = Stub::start(|seen| openai(seen, DIM).after(Duration::from_secs(60)));
    let hasty = EmbedderOptions {
        query_timeout: Duration::from_millis(200),
        ..options(&stub, EmbeddingApi::OpenAi)
    };
    let embedder = RemoteEmbedder::new(hasty);
    let started = Instant::now();
    assert!(matches!(
        embedder.embed_query("x", &AtomicBool::new(false)),
        Err(EmbedError::Unavailable { .. })
    ));
    assert_within(Duration::from_secs(10), started, "a silent server");
    // After some failures the breaker is open, so queries no longer wait for the server.
    for _ in 0..5 {
        assert!(embedder.embed_query("x", &AtomicBool::new(false)).is_err());
    }
    assert!(stub.requests().len() <= 3, "{}", stub.requests().len());
}
