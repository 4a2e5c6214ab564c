//! Serves any number of clients over HTTP. Checks authorization, and limits the size and duration of requests.
//!
//! The SDK implements the protocol: sessions of older revisions, header checks of the newer one, `Host` and `Origin`.
//! This module checks requests before it.

use std::collections::{HashMap, VecDeque};
use std::io::Write;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{ConnectInfo, Request, State};
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use http_body_util::BodyExt;
use parking_lot::Mutex;
use rmcp::ServerHandler;
use rmcp::transport::streamable_http_server::SessionManager;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::net::TcpListener;

use super::authority;
use super::connection::{Limited, Pace};
use super::hub::UNREADABLE_FLEET;
use super::stdio::termination_signal;
use super::token::Access;
use crate::mcp::HttpOptions;
use crate::model::unprintable;
use crate::session::{Context as _, Result, bail};

/// URL path of the endpoint.
const PATH: &str = "/mcp";
/// Maximum size of a request: 16 times the longest string argument of a tool.
const MAX_REQUEST_BYTES: usize = 1 << 20;
/// Time limit for receiving the body of a request.
const SENDING_TIME: Duration = Duration::from_secs(30);
/// Maximum number of sessions, which exist only in older protocol revisions. A new session replaces the least recently
/// used one.
const MAX_SESSIONS: usize = 256;
/// The header with the id of a request's session.
const SESSION: &str = "Mcp-Session-Id";
/// Time for calls in flight to end when the server shuts down.
const SHUTDOWN_TIME: Duration = Duration::from_secs(5);

/// Returns the handler for these groups of a fleet; without groups, for everything that the server shows.
pub(super) type Handlers<H> = dyn Fn(&[String]) -> Result<H> + Send + Sync;

/// Serves handlers until the process receives a termination signal.
pub(super) async fn serve<H: ServerHandler + Clone>(
    handlers: Box<Handlers<H>>,
    options: &HttpOptions,
    access: Access,
) -> Result<()> {
    let listener = bind(options, &access).await?;
    let address = listener.local_addr().context("cannot read the bound address")?;
    let config = config(options, address);
    let streams = config.cancellation_token.clone();
    let door = Door {
        access,
        handlers,
        config,
        endpoints: Mutex::default(),
    };
    let app = Router::new()
        .fallback(guard)
        .with_state(Arc::new(door))
        .into_make_service_with_connect_info::<Pace>();
    say(&format!("listening at http://{address}{PATH}"));
    let ended = async move {
        termination_signal().await;
        streams.cancel();
    };
    let served = axum::serve(Limited::new(listener), app).with_graceful_shutdown(ended);
    let forced = async {
        termination_signal().await;
        tokio::time::sleep(SHUTDOWN_TIME).await;
    };
    tokio::select! {
        served = served => served.context("the HTTP server stopped"),
        () = forced => Ok(()),
    }
}

async fn bind(options: &HttpOptions, access: &Access) -> Result<TcpListener> {
    let address = &options.address;
    let addresses: Vec<SocketAddr> = tokio::net::lookup_host(address)
        .await
        .with_context(|| format!("invalid address {address:?}: expected host:port, such as 127.0.0.1:8808"))?
        .collect();
    let is_public = addresses.iter().any(|address| !address.ip().is_loopback());
    if is_public && access.is_open() {
        bail!("{address} is reachable from other machines and requires a token");
    }
    if is_public {
        say("this address is reachable from other machines, and the connection is not encrypted");
    }
    if options.hosts.is_empty() && addresses.iter().any(|address| address.ip().is_unspecified()) {
        say("requests to names or addresses other than localhost are refused unless given with --host");
    }
    TcpListener::bind(addresses.as_slice())
        .await
        .with_context(|| format!("cannot listen on {address}"))
}

fn config(options: &HttpOptions, address: SocketAddr) -> StreamableHttpServerConfig {
    let mut config = StreamableHttpServerConfig::default()
        .with_json_response(true)
        .with_allowed_origins([
            "http://localhost:*",
            "http://127.0.0.1:*",
            "http://[::1]:*",
            "https://localhost:*",
            "https://127.0.0.1:*",
            "https://[::1]:*",
        ]);
    config.allowed_hosts.extend(options.hosts.iter().cloned());
    if !address.ip().is_loopback() && !address.ip().is_unspecified() {
        config.allowed_hosts.push(address.ip().to_string());
    }
    config.max_request_body_bytes = MAX_REQUEST_BYTES;
    config
}

/// Writes a line to standard error.
pub(crate) fn say(text: &str) {
    // The server continues if standard error is closed.
    let _ = writeln!(std::io::stderr().lock(), "codescout: {text}");
}

/// The check in front of the endpoints.
struct Door<H> {
    access: Access,
    handlers: Box<Handlers<H>>,
    config: StreamableHttpServerConfig,
    /// The endpoints by the groups that are visible there. A session of one does not exist in another.
    endpoints: Mutex<HashMap<Vec<String>, Arc<Endpoint<H>>>>,
}

impl<H: ServerHandler + Clone> Door<H> {
    /// Returns the endpoint that shows these groups.
    fn endpoint(&self, groups: Vec<String>) -> Result<Arc<Endpoint<H>>> {
        if let Some(known) = self.endpoints.lock().get(&groups) {
            return Ok(Arc::clone(known));
        }
        let handler = tokio::task::block_in_place(|| (self.handlers)(&groups))?;
        let manager = Arc::new(LocalSessionManager::default());
        let endpoint = Arc::new(Endpoint {
            service: StreamableHttpService::new(move || Ok(handler.clone()), Arc::clone(&manager), self.config.clone()),
            manager,
            used: Mutex::default(),
        });
        // Another request may have opened the same groups meanwhile.
        Ok(Arc::clone(self.endpoints.lock().entry(groups).or_insert(endpoint)))
    }
}

/// Passes authorized and well-formed requests within the size and time limits to an endpoint. Logs only method, status
/// and duration.
async fn guard<H: ServerHandler + Clone>(
    State(door): State<Arc<Door<H>>>,
    ConnectInfo(pace): ConnectInfo<Pace>,
    request: Request,
) -> Response {
    let began = Instant::now();
    let method = request.method().clone();
    let token = request.headers().get(header::AUTHORIZATION).map(HeaderValue::as_bytes);
    let mut response = match door.access.groups(token) {
        None => unauthorized(),
        Some(groups) => {
            if let Some(fault) = authority::fault(request.uri(), request.headers()) {
                (StatusCode::FORBIDDEN, format!("{fault}\n")).into_response()
            } else if !pace.answers() {
                (StatusCode::SERVICE_UNAVAILABLE, "too many connections\n").into_response()
            } else {
                let response = answered(&door, groups, request).await;
                pace.rests();
                response
            }
        }
    };
    // Clients expect status 200 or 204 when they end a session, but rmcp responds with 202.
    if method == Method::DELETE && response.status() == StatusCode::ACCEPTED {
        *response.status_mut() = StatusCode::NO_CONTENT;
    }
    tracing::info!(
        %method,
        status = response.status().as_u16(),
        took_ms = began.elapsed().as_millis() as u64,
        "request"
    );
    response
}

/// Answers an authorized request.
async fn answered<H: ServerHandler + Clone>(door: &Door<H>, groups: Vec<String>, request: Request) -> Response {
    if request.uri().path() != PATH {
        return StatusCode::NOT_FOUND.into_response();
    }
    let request = match received(request).await {
        Ok(request) => request,
        Err(refused) => return refused,
    };
    match door.endpoint(groups) {
        Ok(endpoint) => printable(endpoint.answer(request).await).await,
        Err(error) => {
            tracing::warn!("cannot open the repositories of a reader: {error:#}");
            (StatusCode::SERVICE_UNAVAILABLE, format!("{UNREADABLE_FLEET}\n")).into_response()
        }
    }
}

/// Escapes unprintable characters in the JSON of a response. The JSON is the whole body, or a stream of events.
async fn printable(response: Response) -> Response {
    let kind = response.headers().get(header::CONTENT_TYPE);
    let is = |wanted: &[u8]| kind.is_some_and(|kind| kind.as_bytes().starts_with(wanted));
    if is(b"text/event-stream") {
        return response.map(|body| Body::new(body.map_frame(|frame| frame.map_data(printable_event))));
    }
    if !is(b"application/json") {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    match to_bytes(body, usize::MAX)
        .await
        .map(|bytes| String::from_utf8(bytes.into()))
    {
        Ok(Ok(text)) => {
            parts.headers.remove(header::CONTENT_LENGTH);
            Response::from_parts(parts, Body::from(unprintable::printable(text)))
        }
        _ => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

/// Escapes the JSON of an event. rmcp sends each event in a separate frame.
fn printable_event(event: Bytes) -> Bytes {
    match str::from_utf8(&event) {
        Ok(text) => unprintable::printable(text.to_owned()).into(),
        Err(_) => event,
    }
}

/// A handler with its sessions.
struct Endpoint<H> {
    service: StreamableHttpService<H, LocalSessionManager>,
    manager: Arc<LocalSessionManager>,
    /// The sessions of older protocol revisions, least recently used first.
    used: Mutex<VecDeque<String>>,
}

impl<H: ServerHandler> Endpoint<H> {
    /// Handles a request and records that its session was used. Also records a session that the request starts.
    async fn answer(&self, request: Request) -> Response {
        let named = |headers: &axum::http::HeaderMap| Some(headers.get(SESSION)?.to_str().ok()?.to_owned());
        let of_request = named(request.headers());
        let response = self.service.handle(request).await.map(Body::new);
        let is_new = of_request.is_none();
        if let Some(id) = of_request.or_else(|| named(response.headers()))
            && let Some(oldest) = self.noted(id, is_new)
        {
            // If a client still uses the closed session, it gets an error and starts another one.
            let _ = self.manager.close_session(&oldest.into()).await;
        }
        response
    }

    /// Records that a session was used. Returns the session to close if there are now too many.
    fn noted(&self, id: String, is_new: bool) -> Option<String> {
        let mut used = self.used.lock();
        let position = used.iter().position(|known| *known == id);
        if let Some(position) = position {
            used.remove(position);
        }
        if is_new || position.is_some() {
            used.push_back(id);
        }
        (used.len() > MAX_SESSIONS).then(|| used.pop_front()).flatten()
    }
}

fn unauthorized() -> Response {
    let challenge = HeaderValue::from_static("Bearer realm=\"codescout\"");
    let mut response = (StatusCode::UNAUTHORIZED, "missing or wrong bearer token\n").into_response();
    response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
    response
}

/// Reads the whole body of a request within the size and time limits.
async fn received(request: Request) -> Result<Request, Response> {
    let (head, body) = request.into_parts();
    match tokio::time::timeout(SENDING_TIME, to_bytes(body, MAX_REQUEST_BYTES)).await {
        Ok(Ok(bytes)) => Ok(Request::from_parts(head, Body::from(bytes))),
        Ok(Err(_)) => Err((StatusCode::PAYLOAD_TOO_LARGE, "the request is too large\n").into_response()),
        Err(_) => Err((StatusCode::REQUEST_TIMEOUT, "timed out waiting for the request body\n").into_response()),
    }
}
