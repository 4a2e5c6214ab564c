//! The connections of the HTTP door: how many there are, and how long each may take or keep silent.
//!
//! Who has not shown yet that it may call gets little: few places, a short time, and the one that has been silent for longest gives way to
//! one more. So nobody without a token can keep out those that have one.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use axum::extract::connect_info::Connected;
use axum::serve::{IncomingStream, Listener};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

/// A connection on which nothing moves is closed; streams send a sign of life eight times as often.
const IDLE_TIME: Duration = Duration::from_secs(120);
/// How long it may take until a first request has come of somebody who may call.
const OPENING_TIME: Duration = Duration::from_secs(10);
/// How long the head of a request may take from its first byte on.
const HEAD_TIME: Duration = Duration::from_secs(10);
/// Connections of those who may call. Each carries one request at a time.
const MAX_KNOWN: usize = 512;
/// Connections of which that is not known yet.
const MAX_UNKNOWN: usize = 128;

/// Accepts connections.
pub(super) struct Limited {
    listener: TcpListener,
    places: Arc<Semaphore>,
    unknown: VecDeque<Weak<Shared>>,
}

impl Limited {
    /// Those that come to `listener`.
    pub(super) fn new(listener: TcpListener) -> Self {
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
        // Answers are short: waiting to fill a packet is all that could be gained.
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

/// How a connection gets on: told by whoever answers its requests, heeded by the connection.
#[derive(Clone)]
pub(super) struct Pace(Arc<Shared>);

struct Shared {
    places: Arc<Semaphore>,
    state: Mutex<State>,
}

struct State {
    phase: Phase,
    /// When the time began that the phase may take.
    since: Instant,
    /// Held by a connection of somebody who may call.
    place: Option<OwnedSemaphorePermit>,
    /// Of the task that waits for the connection.
    waker: Option<Waker>,
    is_closed: bool,
}

/// What a connection does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Nobody who may call has called.
    Opening,
    /// Nothing is asked.
    Resting,
    /// The head of a request has begun to come.
    Asking,
    /// A request is answered.
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

    /// Something has moved.
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
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
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
    /// A request has come of somebody who may call; whether there is room for its connection.
    pub(super) fn answers(&self) -> bool {
        let mut state = self.0.state();
        if state.place.is_none() {
            state.place = Arc::clone(&self.0.places).try_acquire_owned().ok();
        }
        if state.is_known() {
            state.enter(Phase::Answering);
        }
        state.is_known()
    }

    /// The request was answered.
    pub(super) fn rests(&self) {
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

/// A connection that ends when its time is over.
pub(super) struct Connection {
    stream: TcpStream,
    timer: Pin<Box<tokio::time::Sleep>>,
    pace: Pace,
}

impl Connection {
    /// Passes on what happened; if nothing did for too long, the connection is over.
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
