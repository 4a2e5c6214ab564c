//! Serves one client over standard input and output. No other code may write to standard output.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use rmcp::model::{ClientNotification, ErrorData, JsonRpcMessage, RequestId};
use rmcp::service::{RoleServer, RxJsonRpcMessage, ServerInitializeError, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Notify;

use super::lines::{Fault, Lines, Output};
use super::server::Server;
use crate::model::Explain;
use crate::session::{Context as _, Result};

/// Maximum number of unanswered requests and invalid lines, above which no more input is read. The answers stay in
/// memory until the client reads them.
const MAX_UNANSWERED: usize = 512;
/// Maximum total length of the lines with unanswered requests. In memory they take up to 16 times as much.
const MAX_UNANSWERED_BYTES: usize = 16 << 20;
/// Time for which a client may read no answer while the limit is reached. After that, its further requests are
/// rejected.
const STALLED_FOR: Duration = Duration::from_secs(2);

/// Time for calls in flight to end after the client closes its end. The client may still read answers, but clients kill
/// a server that is still running after two seconds.
const SHUTDOWN_TIME: Duration = Duration::from_millis(1500);

/// Serves until the client closes its end or the process receives a termination signal.
pub(super) async fn serve(server: Server) -> Result<()> {
    let (input, output) = rmcp::transport::stdio_pipes();
    let closed = Arc::new(Notify::new());
    let transport = Bounded {
        input: Lines::new(input),
        output: Output::new(output),
        waiting: Arc::default(),
        closed: Arc::clone(&closed),
    };
    let forced = async {
        closed.notified().await;
        tokio::time::sleep(SHUTDOWN_TIME).await;
    };
    tokio::select! {
        ended = run(server, transport) => ended,
        () = termination_signal() => Ok(()),
        () = forced => Ok(()),
    }
}

async fn run<T>(server: Server, transport: T) -> Result<()>
where
    T: Transport<RoleServer, Error = std::io::Error> + 'static,
{
    match rmcp::serve_server(server, transport).await {
        Ok(running) => {
            let reason = running.waiting().await.context("the server stopped")?;
            tracing::debug!(?reason, "the client is gone");
            Ok(())
        }
        // A client that connects and disconnects without a request is not an error.
        Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled) => Ok(()),
        Err(ServerInitializeError::TransportError { error, .. }) if is_gone(error.error.as_ref()) => Ok(()),
        Err(error) => Err(error).context("cannot start the session"),
    }
}

impl Explain for ServerInitializeError {}
impl Explain for tokio::task::JoinError {}

fn is_gone(error: &(dyn std::error::Error + Send + Sync + 'static)) -> bool {
    error
        .downcast_ref::<std::io::Error>()
        .is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
}

/// Waits for SIGINT or SIGTERM.
pub(crate) async fn termination_signal() {
    use tokio::signal::unix::{SignalKind, signal};
    let Ok(mut ended) = signal(SignalKind::terminate()) else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        _ = ended.recv() => {}
    }
}

/// A transport that limits the memory for answers that the client does not read.
struct Bounded<R, W> {
    input: Lines<R>,
    output: Output<W>,
    waiting: Arc<Waiting>,
    /// Notified when the input ends or writing fails.
    closed: Arc<Notify>,
}

/// The unanswered requests.
#[derive(Default)]
struct Waiting {
    /// Ids of the requests, with the lengths of their lines in bytes.
    ids: Mutex<HashMap<RequestId, usize>>,
    /// Number of invalid lines whose answers are being written.
    n_faults: AtomicUsize,
    answered: Notify,
    /// Number of answers that are being written.
    n_sending: AtomicUsize,
}

impl Waiting {
    fn is_full(&self) -> bool {
        let ids = self.ids.lock();
        ids.len() + self.n_faults.load(Ordering::Relaxed) >= MAX_UNANSWERED
            || ids.values().sum::<usize>() >= MAX_UNANSWERED_BYTES
    }

    fn add(&self, id: RequestId, n_bytes: usize) {
        let mut ids = self.ids.lock();
        *ids.entry(id).or_default() += n_bytes;
    }

    fn remove(&self, id: &RequestId) {
        self.ids.lock().remove(id);
        self.answered.notify_one();
    }
}

impl<R, W: AsyncWrite + Send + Unpin + 'static> Bounded<R, W> {
    /// Sends the error response for an invalid line, unless the limit of unanswered requests is reached.
    fn refuse(&self, fault: &Fault) {
        if self.waiting.is_full() {
            return;
        }
        self.waiting.n_faults.fetch_add(1, Ordering::Relaxed);
        self.waiting.n_sending.fetch_add(1, Ordering::Relaxed);
        let waiting = Arc::clone(&self.waiting);
        let closed = Arc::clone(&self.closed);
        let writing = self.output.write(&fault.to_json());
        tokio::spawn(async move {
            if !matches!(writing.await, Ok(Ok(()))) {
                closed.notify_one();
            }
            waiting.n_faults.fetch_sub(1, Ordering::Relaxed);
            waiting.n_sending.fetch_sub(1, Ordering::Relaxed);
            waiting.answered.notify_one();
        });
    }
}

impl<R, W> Transport<RoleServer> for Bounded<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = std::io::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let id = match &item {
            JsonRpcMessage::Response(response) => Some(response.id.clone()),
            JsonRpcMessage::Error(error) => error.id.clone(),
            _ => None,
        };
        let waiting = Arc::clone(&self.waiting);
        let closed = Arc::clone(&self.closed);
        let sending = self.output.write(&item);
        waiting.n_sending.fetch_add(1, Ordering::Relaxed);
        async move {
            let sent = sending.await.unwrap_or_else(|error| Err(error.into()));
            waiting.n_sending.fetch_sub(1, Ordering::Relaxed);
            if sent.is_err() {
                closed.notify_one();
            }
            if let Some(id) = id {
                waiting.remove(&id);
            }
            sent
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            while self.waiting.is_full() {
                // The time starts again after each answer, so only time without answers counts.
                let answered = tokio::time::timeout(STALLED_FOR, self.waiting.answered.notified()).await;
                if answered.is_err() && self.waiting.n_sending.load(Ordering::Relaxed) > 0 {
                    break;
                }
            }
            let message = match self.input.next().await {
                Ok(Some(Ok(message))) => message,
                Ok(Some(Err(fault))) => {
                    tracing::debug!(?fault, "invalid message");
                    self.refuse(&fault);
                    continue;
                }
                ended => {
                    tracing::debug!(?ended, "end of input");
                    self.closed.notify_one();
                    return None;
                }
            };
            match &message {
                JsonRpcMessage::Request(request) if self.waiting.is_full() => {
                    let refused = ErrorData::internal_error(
                        format!(
                            "more than {MAX_UNANSWERED} requests or {MAX_UNANSWERED_BYTES} bytes are unanswered; read answers first"
                        ),
                        None,
                    );
                    let refusal = TxJsonRpcMessage::<RoleServer>::error(refused, Some(request.id.clone()));
                    // The response is written even though the handle is dropped.
                    drop(self.output.write(&refusal));
                    continue;
                }
                JsonRpcMessage::Request(request) => self.waiting.add(request.id.clone(), self.input.n_bytes()),
                JsonRpcMessage::Notification(notification) => {
                    // A cancelled request gets no response.
                    if let ClientNotification::CancelledNotification(cancelled) = &notification.notification
                        && let Some(id) = &cancelled.params.request_id
                    {
                        self.waiting.remove(id);
                    }
                }
                _ => {}
            }
            return Some(message);
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unanswered_requests_are_limited_by_count_and_bytes() {
        let waiting = Waiting::default();
        let of = |number| RequestId::Number(number);
        waiting.add(of(1), MAX_UNANSWERED_BYTES - 1);
        assert!(!waiting.is_full());
        waiting.add(of(2), 1);
        assert!(waiting.is_full(), "two requests, but many bytes");
        waiting.remove(&of(1));
        assert!(!waiting.is_full());
        (3..MAX_UNANSWERED as i64 + 2).for_each(|number| waiting.add(of(number), 1));
        assert!(waiting.is_full());
    }
}
