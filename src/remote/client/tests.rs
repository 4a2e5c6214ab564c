#![expect(clippy::unwrap_used, reason = "tests")]

use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{Call, Client, Limits, Request};
use crate::remote::{Endpoint, Failure, KeyHeader, RemoteError, Secret};
use crate::support::{Reply, Stub, assert_within, wait_until};

static NEVER: AtomicBool = AtomicBool::new(false);

fn client(stub: &Stub) -> Client {
    client_with(stub, Limits::default())
}

fn client_with(stub: &Stub, limits: Limits) -> Client {
    Client::new(Endpoint::new(&stub.url()).unwrap(), limits)
}

/// Limits with one second of patience.
fn brief() -> Limits {
    Limits {
        patience: Duration::from_secs(1),
        ..Limits::default()
    }
}

fn patient() -> Call<'static> {
    Call {
        deadline: None,
        interrupt: &NEVER,
        retries: true,
    }
}

fn within(time: Duration) -> Call<'static> {
    Call {
        deadline: Some(Instant::now() + time),
        ..patient()
    }
}

fn ask(client: &Client, call: &Call<'_>) -> Result<Value, RemoteError> {
    client.send(&Request::post("/echo", &json!({"q": 1})), call)
}

fn echo() -> Stub {
    Stub::start(|request| Reply::json(&request.json()))
}

#[test]
fn what_is_sent_arrives_once_with_its_key() {
    let stub = echo();
    let endpoint = Endpoint::new(&format!("{}/base/", stub.url())).unwrap();
    let endpoint = endpoint.with_key(Secret::new("sesame"), KeyHeader::Bearer).unwrap();
    let client = Client::new(endpoint, Limits::default());
    assert_eq!(ask(&client, &patient()).unwrap(), json!({"q": 1}));
    let [seen] = stub.requests().try_into().unwrap();
    assert_eq!((seen.method.as_str(), seen.path.as_str()), ("POST", "/base/echo"));
    assert_eq!(seen.header("authorization"), Some("Bearer sesame"));
    assert_eq!(seen.header("accept-encoding"), None);
    assert!(!format!("{client:?}").contains("sesame"));
}

#[test]
fn what_passes_is_tried_again() {
    let stub = echo();
    stub.script([
        Reply::status(429).with("retry-after", "0"),
        Reply::status(503),
        Reply::status(502).then_hang_up_after(3),
        Reply::hang_up(),
    ]);
    assert_eq!(ask(&client(&stub), &patient()).unwrap(), json!({"q": 1}));
    assert_eq!(stub.requests().len(), 5);
}

#[test]
fn an_answer_that_breaks_off_is_asked_for_again() {
    let stub = echo();
    stub.script([Reply::json(&json!({"q": 1})).then_hang_up_after(2)]);
    assert_eq!(ask(&client(&stub), &patient()).unwrap(), json!({"q": 1}));
    assert_eq!(stub.requests().len(), 2);
}

#[test]
fn what_is_refused_is_not_tried_again() {
    for status in [400, 401, 403, 404, 413, 422, 424, 500, 501] {
        let stub = Stub::start(move |_| Reply::status(status).body("no\x07 sesame".as_bytes()));
        let endpoint = Endpoint::new(&stub.url()).unwrap();
        let endpoint = endpoint.with_key(Secret::new("sesame"), KeyHeader::ApiKey).unwrap();
        let error = ask(&Client::new(endpoint, Limits::default()), &patient()).unwrap_err();
        assert_eq!((error.status(), error.is_temporary()), (Some(status), false));
        assert!(error.to_string().ends_with("\"no\\u{7} [key]\""), "{error}");
        assert_eq!(stub.requests().len(), 1, "{status}");
    }
}

#[test]
fn a_redirect_takes_no_key_elsewhere() {
    let other = echo();
    let to = other.url();
    let stub = Stub::start(move |_| Reply::status(307).with("location", &to));
    let error = ask(&client(&stub), &patient()).unwrap_err();
    assert!(error.hint().unwrap().contains("redirects"), "{error}");
    assert!(other.requests().is_empty());
}

#[test]
fn a_server_that_stays_away_is_waited_for_once_and_for_no_longer_than_it_may_take() {
    let stub = Stub::start(|_| Reply::status(429).with("retry-after", "0"));
    let client = client_with(&stub, brief());
    assert_eq!(ask(&client, &patient()).unwrap_err().status(), Some(429));
    // The first call sends several requests; each other call sends one until the breaker opens.
    let n_first = stub.requests().len();
    assert!((2..=20).contains(&n_first), "{n_first}");
    for _ in 0..2 {
        assert_eq!(ask(&client, &patient()).unwrap_err().status(), Some(429));
    }
    assert_eq!(stub.requests().len(), n_first + 2);
    for _ in 0..100 {
        assert!(matches!(
            ask(&client, &patient()).unwrap_err().failure,
            Failure::BreakerOpen { .. }
        ));
    }
    assert_eq!(stub.requests().len(), n_first + 2);
}

#[test]
fn a_server_that_is_restarted_is_waited_for_by_work_and_not_by_questions() {
    restart(Duration::ZERO);
}

#[test]
#[ignore = "sleeps while connections are refused"]
fn a_server_that_is_down_for_a_while_is_waited_for() {
    restart(Duration::from_millis(300));
}

/// Sends a request to a server that starts after `down_for`.
fn restart(down_for: Duration) {
    let address = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let endpoint = Endpoint::new(&format!("http://{address}")).unwrap();
    let question = Call {
        retries: false,
        ..within(Duration::from_secs(60))
    };
    let error = ask(&Client::new(endpoint.clone(), Limits::default()), &question).unwrap_err();
    assert!(matches!(error.failure, Failure::Unreachable { .. }), "{error}");
    assert_eq!(error.n_requests, 1);
    let client = Client::new(endpoint, Limits::default());
    std::thread::scope(|scope| {
        let asked = scope.spawn(|| ask(&client, &patient()));
        // A few connections are refused before the server starts.
        std::thread::sleep(down_for);
        let stub = Stub::start_at(address, |request| Reply::json(&request.json()));
        assert_eq!(asked.join().unwrap().unwrap(), json!({"q": 1}));
        assert_eq!(stub.requests().len(), 1);
    });
}

#[test]
fn a_pause_that_is_asked_for_is_kept_by_all() {
    let stub = echo();
    let client = client(&stub);
    stub.script([Reply::status(429).with("retry-after", "1")]);
    std::thread::scope(|scope| {
        scope.spawn(|| ask(&client, &patient()).unwrap());
        let mut until = None;
        wait_until("a pause is asked for", || {
            until = client.shared.hold.not_before();
            until.is_some()
        });
        ask(&client, &patient()).unwrap();
        assert!(Instant::now() >= until.unwrap());
    });
    // A call with an earlier deadline fails at once.
    stub.script([Reply::status(503).with("retry-after", "600")]);
    let started = Instant::now();
    assert_eq!(
        ask(&client, &within(Duration::from_secs(20))).unwrap_err().status(),
        Some(503)
    );
    assert_within(Duration::from_secs(10), started, "an earlier deadline");
    // Later calls fail at once too: nothing is sent during the pause.
    let n_requests = stub.requests().len();
    let error = ask(&client, &within(Duration::from_secs(20))).unwrap_err();
    assert!(matches!(error.failure, Failure::Paused { .. }), "{error}");
    assert_eq!(stub.requests().len(), n_requests);
}

#[test]
fn a_deadline_holds_whatever_the_server_does() {
    for reply in [
        Reply::json(&json!({})).after(Duration::from_secs(60)),
        Reply::json(&json!({"long": "answer that drips"})).slowly(Duration::from_millis(100)),
    ] {
        let stub = Stub::start(move |_| reply.clone());
        let started = Instant::now();
        let error = ask(&client(&stub), &within(Duration::from_millis(300))).unwrap_err();
        assert!(matches!(error.failure, Failure::DeadlinePassed { .. }), "{error}");
        assert!(error.is_temporary());
        assert_within(Duration::from_secs(10), started, "a deadline");
    }
}

#[test]
fn a_request_that_has_had_all_its_time_is_given_up() {
    for reply in [
        Reply::json(&json!({})).after(Duration::from_secs(60)),
        Reply::json(&json!({"long": "answer that drips"})).slowly(Duration::from_millis(100)),
    ] {
        let stub = Stub::start(move |_| reply.clone());
        let limits = Limits {
            request_timeout: Duration::from_millis(300),
            ..Limits::default()
        };
        let error = ask(&client_with(&stub, limits), &patient()).unwrap_err();
        assert!(matches!(error.failure, Failure::Slow { .. }), "{error:?}");
        assert_eq!(stub.requests().len(), 1);
    }
}

#[test]
fn a_flag_ends_waiting_at_once() {
    let stub = Stub::start(|_| Reply::json(&json!({})).after(Duration::from_secs(60)));
    let stop = AtomicBool::new(false);
    let call = Call {
        interrupt: &stop,
        ..patient()
    };
    let client = client(&stub);
    let started = Instant::now();
    std::thread::scope(|scope| {
        let asked = scope.spawn(|| ask(&client, &call));
        wait_until("the server is asked", || !stub.requests().is_empty());
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        assert!(matches!(
            asked.join().unwrap().unwrap_err().failure,
            Failure::Interrupted
        ));
    });
    assert_within(Duration::from_secs(20), started, "a flag");
}

#[test]
fn what_is_no_json_is_quoted_and_what_is_too_long_is_not_read() {
    let page = "<!DOCTYPE html>\n<h1>Sign in</h1>".repeat(400_000);
    let stub = Stub::start(move |_| Reply::status(200).body(page.as_bytes()));
    let error = ask(&client(&stub), &patient()).unwrap_err();
    assert!(
        error.to_string().contains("<!DOCTYPE html> <h1>Sign in</h1>"),
        "{error}"
    );
    assert!(error.to_string().len() < 600);
    let limits = Limits {
        max_answer_bytes: 1000,
        ..Limits::default()
    };
    let error = ask(&client_with(&stub, limits), &patient()).unwrap_err();
    assert!(matches!(error.failure, Failure::TooLarge { max_bytes: 1000 }));
    let small = Request::post("/q", &json!({})).with_max_response_bytes(500);
    let error = client(&stub).send::<Value>(&small, &patient()).unwrap_err();
    assert!(matches!(error.failure, Failure::TooLarge { max_bytes: 500 }));
    stub.script([Reply::json(&json!({})).with("content-encoding", "gzip")]);
    assert!(matches!(
        ask(&client(&stub), &patient()).unwrap_err().failure,
        Failure::NotJson { .. }
    ));
}

#[test]
fn nobody_there_is_told_as_such() {
    let gone = echo().url();
    let client = Client::new(Endpoint::new(&gone).unwrap(), Limits::default());
    let error = ask(
        &client,
        &Call {
            retries: false,
            ..patient()
        },
    )
    .unwrap_err();
    assert!(matches!(error.failure, Failure::Unreachable { .. }), "{error:?}");
    assert!(error.hint().unwrap().contains("running"));
}

#[test]
fn no_proxy_of_the_environment_is_used() {
    let proxy = Stub::start(|_| Reply::json(&json!({"by": "proxy"})));
    let endpoint = Endpoint::new("http://server.invalid").unwrap();
    let direct = Client::new(endpoint.clone(), Limits::default());
    let once = Call {
        retries: false,
        ..patient()
    };
    assert!(ask(&direct, &once).is_err());
    let through = Client::new(endpoint.with_proxy(&proxy.url()).unwrap(), Limits::default());
    assert_eq!(ask(&through, &once).unwrap(), json!({"by": "proxy"}));
}
