//! Limits the number of HTTP connections, and how long each may take or stay idle.
//!
//! There are separate limits for connections without an authorized request; a new one replaces the oldest of them. So
//! clients without a token cannot block clients that have one.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use axum::extract::connect_info::Connected;
use axum::serve::{IncomingStream, Listener};
use parking_lot::{Mutex, MutexGuard};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

/// Time without traffic after which a connection is closed. Streams send keep-alive events eight times as often.
const IDLE_TIME: Duration = Duration::from_secs(120);
/// Time until the first authorized request.
const OPENING_TIME: Duration = Duration::from_secs(10);
/// Time to receive the head of a request, from its first byte.
const HEAD_TIME: Duration = Duration::from_secs(10);
/// Maximum number of authorized connections. Each carries one request at a time.
const MAX_KNOWN: usize = 512;
/// Maximum number of connections that have not sent an authorized request yet.
const MAX_UNKNOWN: usize = 128;

/// A listener that limits its connections.
pub(crate) struct Limited {
    listener: TcpListener,
    places: Arc<Semaphore>,
    unknown: VecDeque<Weak<Shared>>,
}

impl Limited {
    /// Wraps `listener`.
    pub(crate) fn new(listener: TcpListener) -> Self {
        Self {
            listener,
            places: Arc::new(Semaphore::new(MAX_KNOWN)),
            unknown: VecDeque::new(),
        }
    }

    fn remember(&mut self, pace: &Pace) {
        let is_unknown = |shared: &Weak<Shared>| shared.upgrade().is_some_and(|shared| !shared.state().is_known());
        self.unknown.retain(is_unknown);
        if self.unknown.len() >= MAX_UNKNOWN
            && let Some(oldest) = self.unknown.pop_front().and_then(|shared| shared.upgrade())
        {
            oldest.close();
        }
        self.unknown.push_back(Arc::downgrade(&pace.0));
    }
}

impl Listener for Limited {
    type Io = Connection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Connection, SocketAddr) {
        let (stream, address) = Listener::accept(&mut self.listener).await;
        // Answers are short, so Nagle's algorithm would only delay them.
        let _ = stream.set_nodelay(true);
        let pace = Pace(Arc::new(Shared {
            places: Arc::clone(&self.places),
            state: Mutex::new(State {
                phase: Phase::Opening,
                since: Instant::now(),
                place: None,
                waker: None,
                is_closed: false,
            }),
        }));
        self.remember(&pace);
        let connection = Connection {
            stream,
            timer: Box::pin(tokio::time::sleep(OPENING_TIME)),
            pace,
        };
        (connection, address)
    }

    fn local_addr(&self) -> std::io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// The state of a connection. The connection and the handler of its requests share it. The handler updates it, and the
/// connection closes when the time limit of its phase is reached.
#[derive(Clone)]
pub(crate) struct Pace(Arc<Shared>);

struct Shared {
    places: Arc<Semaphore>,
    state: Mutex<State>,
}

struct State {
    phase: Phase,
    /// Start of the current time limit.
    since: Instant,
    /// The permit of an authorized connection.
    place: Option<OwnedSemaphorePermit>,
    /// Wakes the task that waits for the connection.
    waker: Option<Waker>,
    is_closed: bool,
}

/// The phase of a connection.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Before the first authorized request.
    Opening,
    /// Between requests.
    Resting,
    /// Receiving the head of a request.
    Asking,
    /// Answering a request.
    Answering,
}

impl State {
    fn is_known(&self) -> bool {
        self.place.is_some()
    }

    fn enter(&mut self, phase: Phase) {
        self.phase = phase;
        self.since = Instant::now();
    }

    fn deadline(&self) -> Instant {
        self.since
            + match self.phase {
                Phase::Opening => OPENING_TIME,
                Phase::Asking => HEAD_TIME,
                Phase::Resting | Phase::Answering => IDLE_TIME,
            }
    }

    /// Records that bytes were read or written.
    fn moved(&mut self, is_input: bool) {
        match self.phase {
            Phase::Opening | Phase::Asking => {}
            Phase::Resting if is_input => self.enter(Phase::Asking),
            phase => self.enter(phase),
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    fn close(&self) {
        let mut state = self.state();
        state.is_closed = true;
        if let Some(waker) = state.waker.take() {
            waker.wake();
        }
    }
}

impl Pace {
    /// Records an authorized request. Returns false if there are too many authorized connections.
    pub(crate) fn answers(&self) -> bool {
        let mut state = self.0.state();
        if state.place.is_none() {
            state.place = Arc::clone(&self.0.places).try_acquire_owned().ok();
        }
        if state.is_known() {
            state.enter(Phase::Answering);
        }
        state.is_known()
    }

    /// Records that the request was answered.
    pub(crate) fn rests(&self) {
        let mut state = self.0.state();
        if state.is_known() {
            state.enter(Phase::Resting);
        }
    }
}

impl Connected<IncomingStream<'_, Limited>> for Pace {
    fn connect_info(stream: IncomingStream<'_, Limited>) -> Self {
        stream.io().pace.clone()
    }
}

/// A connection whose reads and writes fail with a timeout when the time limit of its phase is reached.
pub(crate) struct Connection {
    stream: TcpStream,
    timer: Pin<Box<tokio::time::Sleep>>,
    pace: Pace,
}

impl Connection {
    /// Passes through the result of a read or write. Returns a timeout error instead if the connection was closed or
    /// reached its time limit.
    fn watched<T>(
        &mut self,
        context: &mut Context<'_>,
        happened: Poll<std::io::Result<T>>,
        is_input: bool,
    ) -> Poll<std::io::Result<T>> {
        let mut state = self.pace.0.state();
        if happened.is_ready() {
            state.moved(is_input);
        }
        let deadline = state.deadline();
        if state.is_closed || deadline <= Instant::now() {
            return Poll::Ready(Err(std::io::ErrorKind::TimedOut.into()));
        }
        if happened.is_ready() {
            return happened;
        }
        state.waker = Some(context.waker().clone());
        drop(state);
        if self.timer.deadline() != deadline {
            self.timer.as_mut().reset(deadline);
        }
        match self.timer.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Err(std::io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        self.watched(context, read, true)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<std::io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.watched(context, written, false)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
