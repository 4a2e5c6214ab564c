//! HTTP client for one server.

use std::io::Read;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, mpsc};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use reqwest::Method;
use reqwest::blocking::{Client as Http, Response};
use reqwest::header::{ACCEPT, CONTENT_ENCODING, CONTENT_TYPE, RETRY_AFTER};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::breaker::Breaker;
use super::endpoint::Endpoint;
use super::failure::{Failure, RemoteError, excerpt};
use super::retry::{Hold, pause, retry_after_pause};

/// Interval at which a waiting call checks its interrupt flag.
const TICK: Duration = Duration::from_millis(20);
/// Maximum length of the description of an unreadable response, which may quote the whole response.
const MAX_WHAT_CHARS: usize = 200;

/// Time and size limits of a client.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Time to establish a connection. Default 5 s.
    pub connect_timeout: Duration,
    /// Time for one request and its response. Default 60 s.
    pub request_timeout: Duration,
    /// Maximum size of a response. Default 64 MiB.
    pub max_answer_bytes: u64,
    /// Time after its first failure for which a retrying call repeats requests. Default 60 s.
    pub patience: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(5),
            request_timeout: Duration::from_secs(60),
            max_answer_bytes: 64 << 20,
            patience: Duration::from_secs(60),
        }
    }
}

/// An HTTP request.
#[derive(Clone, Debug)]
pub struct Request {
    method: Method,
    path: String,
    body: Option<Vec<u8>>,
    max_answer_bytes: u64,
}

impl Request {
    /// Creates a GET request. In this and all other constructors, `path` begins with a slash and is appended to the
    /// endpoint's own path.
    pub fn get(path: &str) -> Self {
        Self::new(Method::GET, path, None)
    }

    /// Creates a POST request with a JSON body.
    pub fn post(path: &str, body: &impl Serialize) -> Self {
        Self::new(Method::POST, path, Some(json(body)))
    }

    /// Creates a PUT request with a JSON body.
    pub fn put(path: &str, body: &impl Serialize) -> Self {
        Self::new(Method::PUT, path, Some(json(body)))
    }

    /// Limits the size of the response, in addition to [`Limits::max_answer_bytes`].
    pub fn with_max_response_bytes(self, max_answer_bytes: u64) -> Self {
        Self {
            max_answer_bytes,
            ..self
        }
    }

    fn new(method: Method, path: &str, body: Option<Vec<u8>>) -> Self {
        Self {
            method,
            path: path.to_owned(),
            body,
            max_answer_bytes: u64::MAX,
        }
    }
}

fn json(body: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(body).expect("requests have string keys only")
}

/// Deadline, interrupt flag and retry policy of one call.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// Time by which all requests and pauses of the call must end.
    pub deadline: Option<Instant>,
    /// Ends the call as soon as possible when set.
    pub interrupt: &'a AtomicBool,
    /// True to retry for a while if the server is unreachable or asks for a retry. Set for background work; queries
    /// continue without the server instead.
    pub retries: bool,
}

/// HTTP client for one server. Cheap to clone; clones share connections and the record of failures.
///
/// Calls block. They may come from many threads, including threads of an asynchronous runtime that are allowed to
/// block. A call with [`Call::retries`] is repeated after network failures and the statuses 408, 429, 502, 503 and 504,
/// so its request must be idempotent. Redirects are not followed, and no proxy is used except the endpoint's own.
#[derive(Clone, Debug)]
pub struct Client {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    endpoint: Endpoint,
    limits: Limits,
    http: OnceLock<Http>,
    hold: Hold,
    breaker: Breaker,
    /// Set after a call has retried for the whole `patience`. While it is set, no other call retries. A response of the
    /// server clears it.
    is_given_up: AtomicBool,
}

impl Shared {
    fn http(&self) -> Result<&Http, Failure> {
        if let Some(http) = self.http.get() {
            return Ok(http);
        }
        // Fails if another client has already installed it.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let made = http(&self.endpoint, &self.limits).map_err(|error| Failure::Request { what: chain(&error) })?;
        Ok(self.http.get_or_init(|| made))
    }
}

impl Client {
    /// Creates a client without sending a request. The underlying HTTP client is created by the first request.
    pub fn new(endpoint: Endpoint, limits: Limits) -> Self {
        Self {
            shared: Arc::new(Shared {
                endpoint,
                limits,
                http: OnceLock::new(),
                hold: Hold::default(),
                breaker: Breaker::default(),
                is_given_up: AtomicBool::new(false),
            }),
        }
    }

    /// Returns the endpoint of the server.
    pub fn endpoint(&self) -> &Endpoint {
        &self.shared.endpoint
    }

    /// Sends a request, with retries if the call allows them, and parses the JSON response.
    pub fn send<A: DeserializeOwned>(&self, request: &Request, call: &Call<'_>) -> Result<A, RemoteError> {
        self.send_and_read(request, call, |answer| {
            serde_json::from_slice(answer).map_err(|error| error.to_string())
        })
    }

    /// Like [`Self::send`], for responses that need more than JSON parsing. `read` converts a response or describes its
    /// error.
    pub fn send_and_read<A>(
        &self,
        request: &Request,
        call: &Call<'_>,
        read: impl FnOnce(&[u8]) -> Result<A, String>,
    ) -> Result<A, RemoteError> {
        let (bytes, n_requests) = self.send_for_bytes(request, call)?;
        read(&bytes).map_err(|what| {
            let excerpt = self.excerpt(&bytes);
            let what = self
                .endpoint()
                .without_key(&what)
                .chars()
                .take(MAX_WHAT_CHARS)
                .collect();
            self.error(Failure::NotJson { what, excerpt }, n_requests)
        })
    }

    /// Sends a request, with retries if the call allows them. Returns the body of the response and the number of
    /// requests sent.
    pub fn send_for_bytes(&self, request: &Request, call: &Call<'_>) -> Result<(Vec<u8>, u32), RemoteError> {
        let started = Instant::now();
        let shared = &self.shared;
        if let Err(again_in) = shared.breaker.admit(started) {
            return Err(self.error(Failure::BreakerOpen { again_in }, 0));
        }
        let (mut n_requests, mut give_up_at) = (0, None);
        let failure = loop {
            if let Some(until) = shared.hold.not_before() {
                let now = Instant::now();
                if call.deadline.is_some_and(|deadline| deadline > now && deadline < until) {
                    break Failure::Paused { again_in: until - now };
                }
                if let Err(failure) = wait_until(until, started, call) {
                    break failure;
                }
            }
            n_requests += 1;
            match self.exchange(request, started, call) {
                Ok(bytes) => {
                    shared.breaker.succeeded();
                    shared.is_given_up.store(false, Ordering::Relaxed);
                    return Ok((bytes, n_requests));
                }
                Err(failure) => {
                    // Later calls observe the requested pause even if this call gives up.
                    let now = Instant::now();
                    let next = now + self.pause_after(&failure, n_requests);
                    if !call.retries || !failure.is_temporary() || shared.is_given_up.load(Ordering::Relaxed) {
                        break failure;
                    }
                    let patience = shared.limits.patience;
                    if next > *give_up_at.get_or_insert(now + patience) {
                        shared.is_given_up.store(true, Ordering::Relaxed);
                        break failure;
                    }
                    let host = self.endpoint().host();
                    match n_requests {
                        1 => tracing::warn!("{host}: {failure}; retrying for up to {} s", patience.as_secs()),
                        _ => tracing::debug!(host, n_requests, %failure, "once more"),
                    }
                    // If the call waited until the deadline, it would report the deadline instead of this failure.
                    if call.deadline.is_some_and(|deadline| deadline <= next) {
                        break failure;
                    }
                    if let Err(failure) = wait_until(next, started, call) {
                        break failure;
                    }
                }
            }
        };
        match &failure {
            Failure::Interrupted | Failure::Paused { .. } => {}
            failure
                if failure.is_temporary()
                    || matches!(failure, Failure::DeadlinePassed { .. } | Failure::Slow { .. }) =>
            {
                shared.breaker.failed(Instant::now());
            }
            // The server responded, so the breaker counts a success.
            _ => shared.breaker.succeeded(),
        }
        Err(self.error(failure, n_requests))
    }

    /// Returns the pause before the next request. A pause requested by the server applies to all calls.
    fn pause_after(&self, failure: &Failure, n_requests: u32) -> Duration {
        let asked = match failure {
            Failure::Status { retry_after, .. } => *retry_after,
            _ => None,
        };
        let pause = pause(n_requests, asked);
        if asked.is_some() {
            self.shared.hold.until(Instant::now() + pause);
        }
        pause
    }

    /// Sends one request on a separate thread, so that the caller can stop waiting.
    fn exchange(&self, request: &Request, started: Instant, call: &Call<'_>) -> Result<Vec<u8>, Failure> {
        if call.interrupt.load(Ordering::Relaxed) {
            return Err(Failure::Interrupted);
        }
        let limits = &self.shared.limits;
        let left = call
            .deadline
            .map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let timeout = left.map_or(limits.request_timeout, |left| left.min(limits.request_timeout));
        if timeout.is_zero() {
            return Err(too_late(started));
        }
        let (sender, answer) = mpsc::sync_channel(1);
        let (client, request) = (self.clone(), request.clone());
        std::thread::Builder::new()
            .name("remote".to_owned())
            .spawn(move || drop(sender.send(client.exchange_blocking(&request, timeout))))
            .map_err(|error| Failure::Request {
                what: format!("cannot start a thread: {error}"),
            })?;
        let until = Instant::now() + timeout;
        loop {
            match answer.recv_timeout(TICK) {
                Ok(answer) => return answer.map_err(|failure| self.or_deadline_passed(failure, started, call)),
                Err(mpsc::RecvTimeoutError::Disconnected) => {
                    let what = "the request thread ended without a result".to_owned();
                    return Err(Failure::Broken { what });
                }
                Err(mpsc::RecvTimeoutError::Timeout) if call.interrupt.load(Ordering::Relaxed) => {
                    return Err(Failure::Interrupted);
                }
                Err(mpsc::RecvTimeoutError::Timeout) if Instant::now() > until => {
                    return Err(self.or_deadline_passed(Failure::Slow { within: timeout }, started, call));
                }
                Err(mpsc::RecvTimeoutError::Timeout) => {}
            }
        }
    }

    /// Replaces the failure with [`Failure::DeadlinePassed`] if it was caused by the caller's deadline.
    fn or_deadline_passed(&self, failure: Failure, started: Instant, call: &Call<'_>) -> Failure {
        match failure {
            Failure::Broken { .. } | Failure::Unreachable { .. } | Failure::Slow { .. }
                if call.deadline.is_some_and(|deadline| deadline <= Instant::now()) =>
            {
                too_late(started)
            }
            failure => failure,
        }
    }

    fn exchange_blocking(&self, request: &Request, timeout: Duration) -> Result<Vec<u8>, Failure> {
        let shared = &self.shared;
        let mut builder = shared
            .http()?
            .request(request.method.clone(), shared.endpoint.url(&request.path))
            .timeout(timeout)
            .header(ACCEPT, "application/json");
        if let Some((name, value)) = shared.endpoint.key_header() {
            builder = builder.header(name, value);
        }
        if let Some(body) = &request.body {
            builder = builder.header(CONTENT_TYPE, "application/json").body(body.clone());
        }
        let answer = builder.send().map_err(|error| failure_of(&error, timeout))?;
        let status = answer.status();
        if status.is_success() {
            let max_bytes = shared.limits.max_answer_bytes.min(request.max_answer_bytes);
            return self.body_of(answer, max_bytes, timeout);
        }
        let retry_after = answer
            .headers()
            .get(RETRY_AFTER)
            .and_then(|value| retry_after_pause(value.to_str().ok()?, seconds_now()));
        // Reads only the beginning of an error page, which describes the error.
        let mut beginning = Vec::new();
        let _ = answer.take(16 << 10).read_to_end(&mut beginning);
        Err(Failure::Status {
            status: status.as_u16(),
            path: shared.endpoint.url(&request.path).path().to_owned(),
            excerpt: self.excerpt(&beginning),
            retry_after,
        })
    }

    fn body_of(&self, answer: Response, max_bytes: u64, timeout: Duration) -> Result<Vec<u8>, Failure> {
        if answer.content_length().is_some_and(|length| length > max_bytes) {
            return Err(Failure::TooLarge { max_bytes });
        }
        if let Some(encoding) = answer
            .headers()
            .get(CONTENT_ENCODING)
            .filter(|value| *value != "identity")
        {
            let what = format!("unrequested content encoding {encoding:?}");
            let excerpt = String::new();
            return Err(Failure::NotJson { what, excerpt });
        }
        let mut bytes = Vec::new();
        answer.take(max_bytes + 1).read_to_end(&mut bytes).map_err(|error| {
            match error.get_ref().and_then(|cause| cause.downcast_ref()) {
                Some(cause) => failure_of(cause, timeout),
                None => Failure::Broken { what: chain(&error) },
            }
        })?;
        if bytes.len() as u64 > max_bytes {
            Err(Failure::TooLarge { max_bytes })
        } else {
            Ok(bytes)
        }
    }

    /// Returns the beginning of a response with the key removed.
    pub(super) fn excerpt(&self, bytes: &[u8]) -> String {
        let beginning = &bytes[..bytes.len().min(16 << 10)];
        let text = self.endpoint().without_key(&String::from_utf8_lossy(beginning));
        excerpt(text.as_bytes())
    }

    fn error(&self, failure: Failure, n_requests: u32) -> RemoteError {
        RemoteError {
            host: self.endpoint().host(),
            failure,
            n_requests,
        }
    }
}

fn http(endpoint: &Endpoint, limits: &Limits) -> Result<Http, reqwest::Error> {
    let mut builder = Http::builder()
        .user_agent(concat!("codescout/", env!("CARGO_PKG_VERSION")))
        .redirect(reqwest::redirect::Policy::none())
        .referer(false)
        .connect_timeout(limits.connect_timeout)
        .timeout(limits.request_timeout)
        .no_proxy();
    if !endpoint.is_https() {
        // Without TLS, the system's certificate store is not read, because it may not exist.
        builder = builder.tls_certs_only(std::iter::empty());
    }
    if let Some(proxy) = endpoint.proxy() {
        builder = builder.proxy(reqwest::Proxy::all(proxy.clone())?);
    }
    builder.build()
}

/// Sleeps until the time `until`, checking the interrupt flag. Fails at once if the deadline is earlier.
fn wait_until(until: Instant, started: Instant, call: &Call<'_>) -> Result<(), Failure> {
    loop {
        let now = Instant::now();
        if call.interrupt.load(Ordering::Relaxed) {
            return Err(Failure::Interrupted);
        }
        if now >= until {
            return Ok(());
        }
        if call
            .deadline
            .is_some_and(|deadline| deadline <= now || deadline < until)
        {
            return Err(too_late(started));
        }
        std::thread::sleep(TICK.min(until - now));
    }
}

fn too_late(started: Instant) -> Failure {
    Failure::DeadlinePassed {
        within: started.elapsed(),
    }
}

/// Converts the error of a request whose time limit was `timeout`.
fn failure_of(error: &reqwest::Error, timeout: Duration) -> Failure {
    let what = chain(error);
    if error.is_connect() {
        return Failure::Unreachable { what };
    }
    if error.is_builder() {
        return Failure::Request { what };
    }
    if error.is_timeout() {
        return Failure::Slow { within: timeout };
    }
    Failure::Broken { what }
}

/// Returns the innermost cause of an error. The error's own text repeats the address, which is already known.
fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let causes: Vec<String> = std::iter::successors(error.source(), |cause| cause.source())
        .map(ToString::to_string)
        .collect();
    match causes.last() {
        Some(cause) => cause.clone(),
        None => error.to_string(),
    }
}

fn seconds_now() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs() as i64)
}

#[cfg(test)]
mod tests;
