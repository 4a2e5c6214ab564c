//! A server for tests. It responds by a function or a script of faults, and records requests.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::Value;

use super::wait_until;

/// An HTTP server on a free local port, stopped when dropped. Each connection has a thread and is kept alive.
pub(crate) struct Stub {
    address: SocketAddr,
    shared: Arc<Shared>,
    listening: JoinHandle<()>,
}

struct Shared {
    handler: Box<dyn Fn(&Seen) -> Reply + Send + Sync>,
    script: Mutex<VecDeque<Reply>>,
    seen: Mutex<Vec<Seen>>,
    n_now: AtomicUsize,
    n_most: AtomicUsize,
    is_over: AtomicBool,
}

/// A received request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    pub(crate) method: String,
    /// Path including the query.
    pub(crate) path: String,
    /// The headers; names are in lower case.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Seen {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// Parses the body as JSON. Returns null if it is not JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}

/// A response, and how it is sent.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    delay: Duration,
    /// Number of bytes of the body to send before closing the connection. If it is 0, no response is sent.
    cut: Option<usize>,
    hangs_up: bool,
    /// Pause between bytes of the body.
    pause: Duration,
}

impl Reply {
    pub(crate) fn status(status: u16) -> Self {
        Self {
            status,
            headers: Vec::new(),
            body: Vec::new(),
            delay: Duration::ZERO,
            cut: None,
            hangs_up: false,
            pause: Duration::ZERO,
        }
    }

    pub(crate) fn json(value: &Value) -> Self {
        Self::status(200)
            .with("content-type", "application/json")
            .body(value.to_string().as_bytes())
    }

    /// Closes the connection without a response.
    pub(crate) fn hang_up() -> Self {
        Self {
            hangs_up: true,
            ..Self::status(200)
        }
    }

    pub(crate) fn body(self, body: &[u8]) -> Self {
        Self {
            body: body.to_owned(),
            ..self
        }
    }

    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Delays the response. It is not sent if the stub is dropped before.
    pub(crate) fn after(self, delay: Duration) -> Self {
        Self { delay, ..self }
    }

    /// Closes the connection within the body.
    pub(crate) fn then_hang_up_after(self, n_bytes: usize) -> Self {
        let cut = Some(n_bytes);
        Self { cut, ..self }
    }

    /// Sends the body byte by byte.
    pub(crate) fn slowly(self, pause: Duration) -> Self {
        Self { pause, ..self }
    }
}

impl Stub {
    /// Starts a server. `handler` responds when the script is empty.
    pub(crate) fn start(handler: impl Fn(&Seen) -> Reply + Send + Sync + 'static) -> Self {
        Self::start_at(SocketAddr::from(([127, 0, 0, 1], 0)), handler)
    }

    /// Starts a server at an address.
    pub(crate) fn start_at(address: SocketAddr, handler: impl Fn(&Seen) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind(address).unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            handler: Box::new(handler),
            script: Mutex::default(),
            seen: Mutex::default(),
            n_now: AtomicUsize::new(0),
            n_most: AtomicUsize::new(0),
            is_over: AtomicBool::new(false),
        });
        let serving = Arc::clone(&shared);
        let listening = std::thread::spawn(move || {
            for connection in listener.incoming() {
                if serving.is_over.load(Ordering::SeqCst) {
                    break;
                }
                let (Ok(connection), shared) = (connection, Arc::clone(&serving)) else {
                    continue;
                };
                std::thread::spawn(move || shared.serve(connection));
            }
        });
        Self {
            address,
            shared,
            listening,
        }
    }

    /// Returns the URL `http://127.0.0.1:port`.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Sets the responses to the next requests, one for each.
    pub(crate) fn script(&self, replies: impl IntoIterator<Item = Reply>) {
        self.shared.script.lock().unwrap().extend(replies);
    }

    /// Returns all requests so far.
    pub(crate) fn requests(&self) -> Vec<Seen> {
        self.shared.seen.lock().unwrap().clone()
    }

    /// Clears the recorded requests.
    pub(crate) fn forget(&self) {
        self.shared.seen.lock().unwrap().clear();
        self.shared.n_most.store(0, Ordering::SeqCst);
    }

    /// Returns the maximum number of concurrent requests so far.
    pub(crate) fn n_most_at_once(&self) -> usize {
        self.shared.n_most.load(Ordering::SeqCst)
    }
}

impl Drop for Stub {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::SeqCst);
        wait_until("the stub does not listen any more", || {
            // Wakes the listener, which then ends.
            let _ = TcpStream::connect_timeout(&self.address, Duration::from_secs(1));
            self.listening.is_finished()
        });
    }
}

impl Shared {
    fn serve(&self, connection: TcpStream) {
        let _ = connection.set_nodelay(true);
        let Ok(mut writer) = connection.try_clone() else { return };
        let mut reader = BufReader::new(connection);
        while let Some(seen) = read_request(&mut reader) {
            let n_now = self.n_now.fetch_add(1, Ordering::SeqCst) + 1;
            self.n_most.fetch_max(n_now, Ordering::SeqCst);
            self.seen.lock().unwrap().push(seen.clone());
            let scripted = self.script.lock().unwrap().pop_front();
            let reply = scripted.unwrap_or_else(|| (self.handler)(&seen));
            let is_there = self.wait(reply.delay);
            // Counted before the response is sent, because the client may send the next request at once.
            self.n_now.fetch_sub(1, Ordering::SeqCst);
            let goes_on = is_there && !reply.hangs_up && self.give(&reply, &mut writer);
            if !goes_on || self.is_over.load(Ordering::SeqCst) {
                break;
            }
        }
        let _ = writer.shutdown(std::net::Shutdown::Both);
    }

    /// Sends the response. Returns true if the connection may be used again.
    fn give(&self, reply: &Reply, writer: &mut TcpStream) -> bool {
        let mut head = format!(
            "HTTP/1.1 {} stub\r\ncontent-length: {}\r\n",
            reply.status,
            reply.body.len()
        );
        for (name, value) in &reply.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str("\r\n");
        let body = &reply.body[..reply.cut.unwrap_or(reply.body.len()).min(reply.body.len())];
        if writer.write_all(head.as_bytes()).is_err() {
            return false;
        }
        if reply.pause.is_zero() {
            return writer.write_all(body).is_ok() && reply.cut.is_none();
        }
        body.iter()
            .all(|&byte| self.wait(reply.pause) && writer.write_all(&[byte]).is_ok())
            && reply.cut.is_none()
    }

    /// Waits for a time. Returns true if the stub still exists then.
    fn wait(&self, time: Duration) -> bool {
        let until = std::time::Instant::now() + time;
        while std::time::Instant::now() < until {
            if self.is_over.load(Ordering::SeqCst) {
                return false;
            }
            std::thread::sleep(Duration::from_millis(5).min(time));
        }
        true
    }
}

fn read_request(reader: &mut BufReader<TcpStream>) -> Option<Seen> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|&n| n > 0)?;
    let mut words = line.split_whitespace();
    let mut seen = Seen {
        method: words.next()?.to_owned(),
        path: words.next()?.to_owned(),
        ..Seen::default()
    };
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|&n| n > 0)?;
        match line.trim_end().split_once(": ") {
            Some((name, value)) => seen.headers.push((name.to_ascii_lowercase(), value.to_owned())),
            None if line.trim_end().is_empty() => break,
            None => {}
        }
    }
    let length = seen.header("content-length").and_then(|value| value.parse().ok());
    seen.body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut seen.body).ok()?;
    Some(seen)
}
