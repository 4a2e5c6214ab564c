//! Any number of clients, over HTTP: who may call, how much, how long.
//!
//! The protocol itself (sessions of the older revisions, header checks of the newer one, `Host` and `Origin`) is the SDK's; this is what
//! stands before it.

use std::io::Write;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::serve::Listener;
use rmcp::ServerHandler;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::stdio::told_to_end;
use super::token::Access;
use crate::surface::doors::HttpOptions;

/// Where clients call.
const PATH: &str = "/mcp";
/// A request that is longer is refused; the longest text that a tool takes is a sixteenth of it.
const MAX_REQUEST_BYTES: usize = 1 << 20;
/// How long a client may take to send a request.
const SENDING_TIME: Duration = Duration::from_secs(30);
/// A connection on which nothing moves is closed; streams send a sign of life eight times as often.
const IDLE_TIME: Duration = Duration::from_secs(120);
/// Connections at once; others wait to be accepted. Each carries one request at a time.
const MAX_CONNECTIONS: usize = 512;
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
    let service = StreamableHttpService::new(
        move || Ok(handler.clone()),
        Arc::new(LocalSessionManager::default()),
        config,
    );
    let app = Router::new()
        .route_service(PATH, service)
        .layer(from_fn_with_state(access, guard));
    say(&format!("listening at http://{address}{PATH}"));
    let ended = async move {
        told_to_end().await;
        streams.cancel();
    };
    let limited = Limited {
        listener,
        permits: Arc::new(Semaphore::new(MAX_CONNECTIONS)),
    };
    let served = axum::serve(limited, app).with_graceful_shutdown(ended);
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
    TcpListener::bind(addresses.as_slice())
        .await
        .with_context(|| format!("cannot listen at {address}"))
}

fn config(options: &HttpOptions, address: SocketAddr) -> StreamableHttpServerConfig {
    let mut config = StreamableHttpServerConfig::default()
        .with_json_response(true)
        .with_allowed_origins(["http://localhost:*", "http://127.0.0.1:*", "http://[::1]:*"]);
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

/// Lets through who may call, with a request that is not too long and came in time; logs what was asked by path and outcome alone.
async fn guard(State(access): State<Access>, request: Request, next: Next) -> Response {
    let began = Instant::now();
    let method = request.method().clone();
    let response = match access.allows(request.headers().get(header::AUTHORIZATION).map(HeaderValue::as_bytes)) {
        false => unauthorized(),
        true => match received(request).await {
            Ok(request) => next.run(request).await,
            Err(refused) => refused,
        },
    };
    tracing::info!(
        %method,
        status = response.status().as_u16(),
        took_ms = began.elapsed().as_millis() as u64,
        "request"
    );
    response
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

/// Accepts so many connections at once.
struct Limited {
    listener: TcpListener,
    permits: Arc<Semaphore>,
}

impl Listener for Limited {
    type Io = Connection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Connection, SocketAddr) {
        // Never closed; if it were, limiting nothing is better than serving nobody.
        let permit = Arc::clone(&self.permits).acquire_owned().await.ok();
        let (stream, address) = Listener::accept(&mut self.listener).await;
        // Answers are short: waiting to fill a packet is all that could be gained.
        let _ = stream.set_nodelay(true);
        let connection = Connection {
            stream,
            idle: Box::pin(tokio::time::sleep(IDLE_TIME)),
            _permit: permit,
        };
        (connection, address)
    }

    fn local_addr(&self) -> std::io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// A connection that ends when nothing moves on it.
struct Connection {
    stream: TcpStream,
    idle: Pin<Box<tokio::time::Sleep>>,
    _permit: Option<OwnedSemaphorePermit>,
}

impl Connection {
    /// Passes on what happened; if nothing did for too long, the connection is over.
    fn watched<T>(
        &mut self,
        context: &mut TaskContext<'_>,
        happened: Poll<std::io::Result<T>>,
    ) -> Poll<std::io::Result<T>> {
        if happened.is_ready() {
            self.idle.as_mut().reset(tokio::time::Instant::now() + IDLE_TIME);
            return happened;
        }
        match self.idle.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Err(std::io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut TaskContext<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        self.watched(context, read)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut TaskContext<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.watched(context, written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut TaskContext<'_>) -> Poll<std::io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        self.watched(context, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut TaskContext<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
