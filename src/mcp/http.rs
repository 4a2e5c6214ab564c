//! Any number of clients, over HTTP: who may call, how much, how long.
//!
//! The protocol itself (sessions of the older revisions, header checks of the newer one, `Host` and `Origin`) is the SDK's; this is what
//! stands before it.

use std::collections::VecDeque;
use std::io::Write;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{ConnectInfo, Request, State};
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use http_body_util::BodyExt;
use rmcp::ServerHandler;
use rmcp::transport::streamable_http_server::SessionManager;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::net::TcpListener;

use super::authority;
use super::connection::{Limited, Pace};
use super::stdio::told_to_end;
use super::token::Access;
use crate::mcp::HttpOptions;
use crate::model::unprintable;

/// Where clients call.
const PATH: &str = "/mcp";
/// A request that is longer is refused; the longest text that a tool takes is a sixteenth of it.
const MAX_REQUEST_BYTES: usize = 1 << 20;
/// How long a client may take to send a request.
const SENDING_TIME: Duration = Duration::from_secs(30);
/// Sessions of the older era that are held; the one that was not used for longest gives way to one more.
const MAX_SESSIONS: usize = 256;
/// Names the session of a request.
const SESSION: &str = "Mcp-Session-Id";
/// How long calls that are under way may take when the server is told to end.
const FAREWELL: Duration = Duration::from_secs(5);

/// Serves a handler until the process is told to end.
pub(super) async fn serve<H: ServerHandler + Clone>(handler: H, options: &HttpOptions, access: Access) -> Result<()> {
    let listener = bind(options, &access).await?;
    let address = listener
        .local_addr()
        .context("the address that was bound is not known")?;
    let config = config(options, address);
    let streams = config.cancellation_token.clone();
    let manager = Arc::new(LocalSessionManager::default());
    let door = Door {
        access,
        sessions: Arc::new(Sessions {
            manager: Arc::clone(&manager),
            used: Mutex::default(),
        }),
    };
    let service = StreamableHttpService::new(move || Ok(handler.clone()), manager, config);
    let app = Router::new()
        .route_service(PATH, service)
        .layer(from_fn_with_state(door, guard))
        .into_make_service_with_connect_info::<Pace>();
    say(&format!("listening at http://{address}{PATH}"));
    let ended = async move {
        told_to_end().await;
        streams.cancel();
    };
    let served = axum::serve(Limited::new(listener), app).with_graceful_shutdown(ended);
    let forced = async {
        told_to_end().await;
        tokio::time::sleep(FAREWELL).await;
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
        .with_context(|| format!("{address:?} is no address; write one as 127.0.0.1:8808"))?
        .collect();
    let is_public = addresses.iter().any(|address| !address.ip().is_loopback());
    if is_public && matches!(access, Access::Open) {
        bail!("{address} can be reached from other machines: a token is needed there");
    }
    if is_public {
        say("this address can be reached from other machines; what is sent there can be read on the way");
    }
    if options.hosts.is_empty() && addresses.iter().any(|address| address.ip().is_unspecified()) {
        say("calls to a name or an address of this machine are refused unless it is given with --host");
    }
    TcpListener::bind(addresses.as_slice())
        .await
        .with_context(|| format!("cannot listen at {address}"))
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

fn say(text: &str) {
    // Without standard error nobody waits for it.
    let _ = writeln!(std::io::stderr().lock(), "codescout: {text}");
}

/// What stands before the protocol.
#[derive(Clone)]
struct Door {
    access: Access,
    sessions: Arc<Sessions>,
}

/// Lets through who may call, with a request that is not too long and came in time; logs what was asked by path and outcome alone.
async fn guard(
    State(door): State<Door>,
    ConnectInfo(pace): ConnectInfo<Pace>,
    request: Request,
    next: Next,
) -> Response {
    let began = Instant::now();
    let method = request.method().clone();
    let token = request.headers().get(header::AUTHORIZATION).map(HeaderValue::as_bytes);
    let mut response = if !door.access.allows(token) {
        unauthorized()
    } else if let Some(fault) = authority::fault(request.uri(), request.headers()) {
        (StatusCode::FORBIDDEN, format!("{fault}\n")).into_response()
    } else if !pace.answers() {
        (StatusCode::SERVICE_UNAVAILABLE, "there are too many connections\n").into_response()
    } else {
        let response = match received(request).await {
            Ok(request) => printable(door.sessions.through(request, next).await).await,
            Err(refused) => refused,
        };
        pace.rests();
        response
    };
    // Clients expect 200 or 204 for the end of a session; rmcp answers 202.
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

/// The response with unprintable characters in its JSON escaped, be it the whole body or in events.
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

/// Escapes the JSON of an event. rmcp sends each event in a frame of its own.
fn printable_event(event: Bytes) -> Bytes {
    match str::from_utf8(&event) {
        Ok(text) => unprintable::printable(text.to_owned()).into(),
        Err(_) => event,
    }
}

/// The sessions of the older era, in the order of their last use.
struct Sessions {
    manager: Arc<LocalSessionManager>,
    used: Mutex<VecDeque<String>>,
}

impl Sessions {
    /// Answers a request, noting which session it is of, or begins.
    async fn through(&self, request: Request, next: Next) -> Response {
        let named = |headers: &axum::http::HeaderMap| Some(headers.get(SESSION)?.to_str().ok()?.to_owned());
        let of_request = named(request.headers());
        let response = next.run(request).await;
        let is_new = of_request.is_none();
        if let Some(id) = of_request.or_else(|| named(response.headers()))
            && let Some(oldest) = self.noted(id, is_new)
        {
            // Who still needs it is told that it is gone, and begins another.
            let _ = self.manager.close_session(&oldest.into()).await;
        }
        response
    }

    /// Notes that a session was used; which one has to go for it.
    fn noted(&self, id: String, is_new: bool) -> Option<String> {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
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
    let mut response = (StatusCode::UNAUTHORIZED, "a bearer token is needed\n").into_response();
    response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
    response
}

/// The request with all of its body here.
async fn received(request: Request) -> Result<Request, Response> {
    let (head, body) = request.into_parts();
    match tokio::time::timeout(SENDING_TIME, to_bytes(body, MAX_REQUEST_BYTES)).await {
        Ok(Ok(bytes)) => Ok(Request::from_parts(head, Body::from(bytes))),
        Ok(Err(_)) => Err((StatusCode::PAYLOAD_TOO_LARGE, "the request is too long\n").into_response()),
        Err(_) => Err((StatusCode::REQUEST_TIMEOUT, "the request did not come in time\n").into_response()),
    }
}
