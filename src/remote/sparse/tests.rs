#![expect(clippy::unwrap_used, reason = "tests")]

use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use super::{RemoteSparse, SparseOptions};
use crate::embed::{EmbedError, SparseEmbedder, SparseVector};
use crate::remote::Endpoint;
use crate::support::model::{sparse_of, tei, tei_sparse, texts_of};
use crate::support::{Reply, Stub, assert_within};

static NEVER: AtomicBool = AtomicBool::new(false);

fn options(stub: &Stub) -> SparseOptions {
    SparseOptions {
        endpoint: Endpoint::new(&stub.url()).unwrap(),
        model: "m".to_owned(),
        revision: String::new(),
        batch: Some(4),
        in_flight: 2,
        timeout: Duration::from_secs(30),
        query_timeout: Duration::from_secs(20),
    }
}

fn server(stub: &Stub) -> RemoteSparse {
    RemoteSparse::new(options(stub))
}

fn embed(server: &RemoteSparse, texts: &[&str]) -> Result<Vec<Option<SparseVector>>, EmbedError> {
    server.embed_documents(texts, &NEVER)
}

fn vector_of(text: &str) -> SparseVector {
    SparseVector::from_foreign(sparse_of(text), "m").unwrap()
}

/// Formats an error with its causes.
fn text_of(error: &EmbedError) -> String {
    let causes = std::iter::successors(std::error::Error::source(error), |cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

#[test]
fn each_text_has_its_vector_in_batches() {
    let stub = Stub::start(tei_sparse);
    let server = server(&stub);
    let texts = ["fetch a page", "stop it", "", "the car", "one more", "and another"];
    let found = embed(&server, &texts).unwrap();
    for (text, found) in texts.iter().zip(&found) {
        let expected = (!text.is_empty()).then(|| vector_of(text));
        assert_eq!(found, &expected, "{text:?}");
    }
    assert_eq!(
        server.embed_query("halt", &AtomicBool::new(false)).unwrap(),
        vector_of("halt")
    );
    let asked: Vec<(String, usize)> = stub
        .requests()
        .iter()
        .filter(|seen| seen.path != "/info")
        .map(|seen| (seen.path.clone(), texts_of(seen).len()))
        .collect();
    assert_eq!(asked, [4, 1, 1].map(|n| ("/embed_sparse".to_owned(), n)));
    assert!(
        stub.requests()
            .iter()
            .all(|seen| seen.path == "/info" || seen.json()["truncate"] == true)
    );
}

#[test]
fn what_cannot_be_is_refused() {
    let long = format!("[[{}{{\"index\":1,\"value\":1}}]]", " ".repeat(10 << 20));
    for (answer, what) in [
        (r#"[[{"index":5,"value":1.5}]]"#, "1 vectors for 2 texts"),
        ("[[],[],[]]", "3 vectors for 2 texts"),
        (r#"[[{"index":5,"value":1},{"index":5,"value":2}],[]]"#, "token 5 twice"),
        (r#"[[{"index":5,"value":-1}],[]]"#, "the weight -1"),
        (r#"[[{"index":5,"value":1e999}],[]]"#, "not the JSON"),
        (r#"[[{"index":5,"value":NaN}],[]]"#, "not the JSON"),
        (r#"[[{"index":-1,"value":1}],[]]"#, "not the JSON"),
        (r#"[[{"index":4294967296,"value":1}],[]]"#, "not the JSON"),
        (r#"[[{"index":1.5,"value":1}],[]]"#, "not the JSON"),
        (r#"[[{"index":4294967295,"value":1}],[]]"#, "token 4294967295"),
        (r#"[[{"value":1}],[]]"#, "not the JSON"),
        ("[[1.0,2.0],[3.0,4.0]]", "not the JSON"),
        (r#"{"error":"x"}"#, "not the JSON"),
        ("<html>gateway</html>", "<html>gateway</html>"),
        ("", "not the JSON"),
        (long.as_str(), "response larger than"),
    ] {
        let body = answer.as_bytes().to_vec();
        let stub = Stub::start(move |_| Reply::status(200).body(&body));
        let error = text_of(&embed(&server(&stub), &["a", "b"]).unwrap_err());
        assert!(error.contains(what), "{}: {error}", &answer[..answer.len().min(80)]);
        assert_eq!(stub.requests().len(), 1, "{what}: it would be the same again");
    }
}

#[test]
fn texts_in_which_nothing_is_found_have_an_empty_vector() {
    let stub = Stub::start(|_| Reply::status(200).body(b"[[{\"index\":3,\"value\":0}]]"));
    assert_eq!(embed(&server(&stub), &["?"]).unwrap(), [Some(SparseVector::default())]);
    assert!(
        server(&stub)
            .embed_query("?", &AtomicBool::new(false))
            .unwrap()
            .is_empty()
    );
}

#[test]
fn weights_that_are_no_numbers_cost_only_their_text_unless_all_are_such() {
    for weight in ["null", "1e39"] {
        let terms = format!(r#"[{{"index":3,"value":{weight}}}]"#);
        let body = format!("[{terms},[]]");
        let stub = Stub::start(move |_| Reply::status(200).body(body.as_bytes()));
        let found = embed(&server(&stub), &["a", "b"]).unwrap();
        assert_eq!(found, [None, Some(SparseVector::default())], "{weight}");
        let stub = Stub::start(move |_| Reply::status(200).body(format!("[{terms}]").as_bytes()));
        assert!(text_of(&embed(&server(&stub), &["a"]).unwrap_err()).contains("not numbers"));
    }
}

#[test]
fn a_model_of_another_kind_is_named() {
    let dense = Stub::start(|seen| match seen.path.as_str() {
        "/embed_sparse" => Reply::status(424).body(b"{\"error\":\"not a SPLADE model\",\"error_type\":\"Backend\"}"),
        _ => tei(seen, 8, 32),
    });
    let error = text_of(&embed(&server(&dense), &["a"]).unwrap_err());
    assert!(
        error.contains("--pooling splade") && error.contains("not a SPLADE model"),
        "{error}"
    );
    assert_eq!(dense.requests().len(), 1);
    let absent = Stub::start(|_| Reply::status(404));
    let error = text_of(&embed(&server(&absent), &["a"]).unwrap_err());
    assert!(error.contains("check the address"), "{error}");
}

#[test]
fn a_text_that_is_refused_costs_only_itself() {
    let stub = Stub::start(|seen| {
        if texts_of(seen).iter().any(|text| text == "bad") {
            Reply::status(413)
        } else {
            tei_sparse(seen)
        }
    });
    let server = server(&stub);
    let found = embed(&server, &["a", "good", "bad", "word"]).unwrap();
    assert_eq!(
        found.iter().map(Option::is_some).collect::<Vec<_>>(),
        [true, true, false, true]
    );
    assert_eq!(
        server.notes(),
        ["1 texts were refused by the server, or got no usable vector"]
    );
}

#[test]
fn secrets_are_struck_out_of_texts_and_queries() {
    let stub = Stub::start(tei_sparse);
    let server = server(&stub);
    embed(&server, &["password = \"correct-horse-battery\""]).unwrap();
    server
        .embed_query("where is password = \"correct-horse-battery\"", &AtomicBool::new(false))
        .unwrap();
    for seen in stub.requests() {
        assert!(
            !String::from_utf8_lossy(&seen.body).contains("correct-horse"),
            "{seen:?}"
        );
    }
    assert!(server.notes()[0].starts_with("2 secrets"));
}

#[test]
fn a_query_waits_no_longer_than_it_may_and_asks_no_more_than_five_times() {
    let slow = Stub::start(|seen| tei_sparse(seen).after(Duration::from_secs(600)));
    let hasty = SparseOptions {
        query_timeout: Duration::from_millis(300),
        ..options(&slow)
    };
    let started = Instant::now();
    let error = RemoteSparse::new(hasty)
        .embed_query("car", &AtomicBool::new(false))
        .unwrap_err();
    assert!(text_of(&error).contains("no answer within"), "{error}");
    assert_within(Duration::from_secs(60), started, "a silent server");
    let failing = Stub::start(|_| Reply::status(503));
    assert!(server(&failing).embed_query("car", &AtomicBool::new(false)).is_err());
    assert!(failing.requests().len() <= 5);
}

#[test]
fn settings_make_the_profile_and_the_server_does_not() {
    let (stub, other) = (Stub::start(tei_sparse), Stub::start(tei_sparse));
    let id = |options: SparseOptions| RemoteSparse::new(options).profile().id();
    let same = id(options(&stub));
    assert_eq!(id(options(&other)), same);
    let changes: [fn(&mut SparseOptions); 2] =
        [|options| options.model.push('x'), |options| options.revision.push('2')];
    for change in changes {
        let mut options = options(&stub);
        change(&mut options);
        assert_ne!(id(options), same);
    }
    assert!(stub.requests().is_empty());
}
