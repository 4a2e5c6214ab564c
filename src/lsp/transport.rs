//! Messages to and from a server: threads that write, read, and collect its error output.
//!
//! Nothing that a server sends can pile up: what it asks is answered at once, what it reports changes a few fields, and
//! late answers are dropped.

use std::collections::{HashMap, HashSet};
use std::io::{BufReader, Read, Write};
use std::process::{ChildStderr, ChildStdin, ChildStdout};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use lsp_types::notification::Notification;
use lsp_types::request::Request;
use lsp_types::{
    ConfigurationItem, NumberOrString, ProgressParams, ProgressParamsValue, Uri, WorkDoneProgress, WorkspaceFolder,
};
use parking_lot::{Condvar, Mutex, MutexGuard};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::frames::{read_body, write_body};
use super::readiness::{Readiness, Step};
use super::servers::Server;
use crate::model::unprintable::is_unprintable;

/// Limit on messages that wait to be written. A server that does not read its input fails.
const MAX_WAITING: usize = 4096;
/// Limit on the values in a message. Each takes up to a kilobyte once it is decoded.
const MAX_VALUES: usize = 1_000_000;
/// Limit on the settings that a server asks for at a time.
const MAX_SETTINGS: usize = 1_000;
/// The end of the error output that is kept.
const MAX_STDERR: usize = 4 << 10;
/// The interval at which a waiting thread looks for cancellation.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Codes of errors after which a request may be sent again: `ServerCancelled` and `ContentModified`.
const TRANSIENT: [i64; 2] = [-32802, -32801];
const METHOD_NOT_FOUND: i64 = -32601;

/// The number of a request.
pub(super) type RequestId = u64;

/// The error that a server answered.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Refusal {
    code: i64,
    pub(super) message: String,
}

impl Refusal {
    pub(super) fn is_transient(&self) -> bool {
        TRANSIENT.contains(&self.code)
    }
}

/// The reason why waiting for a server ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Stopped {
    /// The patience of the client has ended.
    TimeIsUp,
    /// The client has gone.
    Cancelled,
    /// The server has ended or broken the protocol.
    Failed(String),
}

/// Until when to wait, and what to report meanwhile.
pub(super) struct Watch<'a> {
    pub(super) deadline: Instant,
    pub(super) is_cancelled: &'a AtomicBool,
    /// Receives the state of the server.
    pub(super) on_state: &'a mut dyn FnMut(&str),
}

/// A conversation with a server.
#[derive(Debug)]
pub(super) struct Transport {
    outgoing: SyncSender<Vec<u8>>,
    shared: Arc<Shared>,
    last_id: RequestId,
}

#[derive(Debug)]
struct Shared {
    server: &'static Server,
    root: Uri,
    state: Mutex<State>,
    changed: Condvar,
}

/// What the threads know.
#[derive(Debug)]
struct State {
    /// Requests that are waited for, with the answers that have arrived.
    answers: HashMap<RequestId, Option<Result<Value, Refusal>>>,
    /// Requests that were given up and that the server still works on.
    abandoned: HashSet<RequestId>,
    readiness: Readiness,
    version: Option<String>,
    /// Number of files that the server has said to read.
    n_files: Option<usize>,
    failure: Option<String>,
    stderr: Vec<u8>,
}

/// A message from a server.
#[derive(Deserialize)]
struct Incoming {
    id: Option<Value>,
    method: Option<String>,
    #[serde(default)]
    params: Value,
    #[serde(default)]
    result: Value,
    error: Option<Refusal>,
}

impl Transport {
    pub(super) fn start(
        server: &'static Server,
        root: Uri,
        (stdin, stdout, stderr): (ChildStdin, ChildStdout, ChildStderr),
    ) -> Self {
        let state = State {
            answers: HashMap::new(),
            abandoned: HashSet::new(),
            readiness: Readiness::new(server.signal, Instant::now()),
            version: None,
            n_files: None,
            failure: None,
            stderr: Vec::new(),
        };
        let shared = Arc::new(Shared {
            server,
            root,
            state: Mutex::new(state),
            changed: Condvar::new(),
        });
        let (outgoing, to_write) = sync_channel(MAX_WAITING);
        thread::spawn(move || write_all(stdin, &to_write));
        let (reading, answering) = (Arc::clone(&shared), outgoing.clone());
        thread::spawn(move || reading.read_all(stdout, &answering));
        let collecting = Arc::clone(&shared);
        thread::spawn(move || collecting.collect(stderr));
        Self {
            outgoing,
            shared,
            last_id: 0,
        }
    }

    /// Sends a request whose answer is waited for.
    pub(super) fn request<R: Request>(&mut self, params: R::Params) -> RequestId {
        self.last_id += 1;
        let id = self.last_id;
        self.shared.lock().answers.insert(id, None);
        // Some servers reject `null` as parameters.
        let params = serde_json::to_value(params).expect("parameters are JSON");
        let mut message = json!({"jsonrpc": "2.0", "id": id, "method": R::METHOD});
        if !params.is_null() {
            message["params"] = params;
        }
        self.shared.send(&self.outgoing, &message);
        id
    }

    pub(super) fn tell<N: Notification>(&self, params: N::Params) {
        let params = serde_json::to_value(params).expect("parameters are JSON");
        let mut message = json!({"jsonrpc": "2.0", "method": N::METHOD});
        if !params.is_null() {
            message["params"] = params;
        }
        self.shared.send(&self.outgoing, &message);
    }

    /// Waits for the answer to a request. An answer of an unexpected shape is a refusal.
    pub(super) fn answer<R: Request>(
        &self,
        id: RequestId,
        watch: &mut Watch<'_>,
    ) -> Result<Result<R::Result, Refusal>, Stopped>
    where
        R::Result: DeserializeOwned,
    {
        let answer = self.wait(watch, |state| state.answers.get_mut(&id)?.take())?;
        self.forget(id);
        Ok(answer.and_then(|value| {
            serde_json::from_value(value).map_err(|error| Refusal {
                code: 0,
                message: format!("unexpected answer: {error}"),
            })
        }))
    }

    /// Returns true if the answer to a request has arrived, or cannot arrive.
    pub(super) fn has_answer(&self, id: RequestId) -> bool {
        let state = self.shared.lock();
        state.failure.is_some() || state.answers.get(&id).is_none_or(Option::is_some)
    }

    /// Stops waiting for a request.
    pub(super) fn forget(&self, id: RequestId) {
        self.shared.lock().answers.remove(&id);
    }

    /// Stops waiting for a request. Asks the server to stop working on it, unless it takes one request at a time.
    pub(super) fn cancel(&self, id: RequestId) {
        if self.shared.server.is_serial {
            let mut state = self.shared.lock();
            if let Some(None) = state.answers.remove(&id) {
                state.abandoned.insert(id);
            }
            return;
        }
        self.forget(id);
        let message = json!({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": id}});
        self.shared.send(&self.outgoing, &message);
    }

    /// Waits until the server works on no request that was given up.
    pub(super) fn wait_until_free(&self, watch: &mut Watch<'_>) -> Result<(), Stopped> {
        self.wait(watch, |state| state.abandoned.is_empty().then_some(()))
    }

    /// Waits until the server may be asked.
    pub(super) fn wait_until_quiet(&self, knows_reference: bool, watch: &mut Watch<'_>) -> Result<(), Stopped> {
        self.wait(watch, |state| {
            let may = state.readiness.may_be_asked(knows_reference, Instant::now());
            may.then_some(())
        })
    }

    /// Changes what is known of the readiness of the server.
    pub(super) fn with_readiness<T>(&self, change: impl FnOnce(&mut Readiness) -> T) -> T {
        change(&mut self.shared.lock().readiness)
    }

    /// Returns the version that the server printed.
    pub(super) fn version(&self) -> Option<String> {
        self.shared.lock().version.clone()
    }

    /// Returns the number of files that the server reads, if it has said so.
    pub(super) fn n_files(&self) -> Option<usize> {
        self.shared.lock().n_files
    }

    /// Returns why the conversation has ended.
    pub(super) fn failure(&self) -> Option<String> {
        self.shared.lock().failure.clone()
    }

    /// Ends the conversation.
    pub(super) fn fail(&self, reason: String) {
        self.shared.fail(reason);
    }

    /// Waits for a time.
    pub(super) fn pause(&self, time: Duration, watch: &mut Watch<'_>) -> Result<(), Stopped> {
        let end = Instant::now() + time;
        self.wait(watch, |_| (Instant::now() >= end).then_some(()))
    }

    fn wait<T>(&self, watch: &mut Watch<'_>, mut look: impl FnMut(&mut State) -> Option<T>) -> Result<T, Stopped> {
        loop {
            let mut state = self.shared.lock();
            if let Some(found) = look(&mut state) {
                return Ok(found);
            }
            if let Some(reason) = &state.failure {
                return Err(Stopped::Failed(reason.clone()));
            }
            if watch.is_cancelled.load(Ordering::Relaxed) {
                return Err(Stopped::Cancelled);
            }
            let left = watch.deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(Stopped::TimeIsUp);
            }
            let text = state.readiness.state();
            self.shared.changed.wait_for(&mut state, left.min(LOOK_EVERY));
            drop(state);
            (watch.on_state)(&text);
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Ends the conversation, with the end of the error output in the reason.
    fn fail(&self, reason: String) {
        let mut state = self.lock();
        if state.failure.is_none() {
            let stderr = String::from_utf8_lossy(&state.stderr);
            let is_cause = |line: &&str| line.to_ascii_lowercase().starts_with("error") || line.contains("panicked");
            let lines = || stderr.lines().map(str::trim).filter(|line| !line.is_empty());
            let cause = lines().find(is_cause).or_else(|| lines().next_back());
            let shown = cause.map_or(reason.clone(), |cause| format!("{reason}: {cause}"));
            state.failure = Some(shown);
        }
        self.changed.notify_all();
    }

    fn send(&self, to: &SyncSender<Vec<u8>>, message: &Value) {
        if to.try_send(message.to_string().into_bytes()).is_err() {
            self.fail("it does not read its input".to_owned());
        }
    }

    fn read_all(&self, from: ChildStdout, answering: &SyncSender<Vec<u8>>) {
        let mut from = BufReader::new(from);
        let reason = loop {
            match read_body(&mut from) {
                // What is no message is skipped, as logs are.
                Ok(Some(body)) => {
                    let n_values = body.iter().filter(|byte| matches!(byte, b',' | b'[' | b'{')).count();
                    if n_values > MAX_VALUES {
                        break "it sent a message with too many values".to_owned();
                    }
                    if let Ok(message) = serde_json::from_slice(&body) {
                        self.receive(message, answering);
                    }
                }
                Ok(None) => break "it ended".to_owned(),
                Err(error) => break error.to_string(),
            }
        };
        self.fail(reason);
    }

    fn receive(&self, message: Incoming, answering: &SyncSender<Vec<u8>>) {
        match (message.method, message.id) {
            (Some(method), Some(id)) => {
                let mut reply = json!({"jsonrpc": "2.0", "id": id});
                match self.reply(&method, message.params) {
                    Some(result) => reply["result"] = result,
                    None => reply["error"] = json!({"code": METHOD_NOT_FOUND, "message": "not supported"}),
                }
                self.send(answering, &reply);
            }
            (Some(method), None) => self.note(&method, message.params),
            (None, Some(id)) => {
                let Some(id) = id.as_u64() else { return };
                let mut state = self.lock();
                state.abandoned.remove(&id);
                if let Some(answer) = state.answers.get_mut(&id) {
                    *answer = Some(message.error.map_or(Ok(message.result), Err));
                }
                self.changed.notify_all();
            }
            (None, None) => {}
        }
    }

    /// Returns the answer to a request of the server, and `None` for requests that are not supported.
    fn reply(&self, method: &str, params: Value) -> Option<Value> {
        Some(match method {
            "workspace/configuration" => {
                let items: Vec<ConfigurationItem> = serde_json::from_value(params.get("items")?.clone()).ok()?;
                let items = Some(items).filter(|items| items.len() <= MAX_SETTINGS)?;
                items.iter().map(|item| self.setting(item.section.as_deref())).collect()
            }
            "workspace/workspaceFolders" => serde_json::to_value([folder(&self.root)]).ok()?,
            "workspace/applyEdit" => json!({"applied": false, "failureReason": "files are not changed"}),
            "client/registerCapability"
            | "client/unregisterCapability"
            | "window/workDoneProgress/create"
            | "window/showMessageRequest" => Value::Null,
            _ => return None,
        })
    }

    fn setting(&self, section: Option<&str>) -> Value {
        let text = match section {
            None | Some("") => Some(self.server.options),
            Some(section) => {
                let found = self.server.settings.iter().find(|(name, _)| *name == section);
                found.map(|(_, text)| *text)
            }
        };
        text.map_or(Value::Null, json_of)
    }

    fn note(&self, method: &str, params: Value) {
        let (now, mut state) = (Instant::now(), self.lock());
        match method {
            "$/progress" => {
                let Ok(ProgressParams { token, value }) = serde_json::from_value(params) else {
                    return;
                };
                let ProgressParamsValue::WorkDone(value) = value;
                let token = match token {
                    NumberOrString::Number(number) => number.to_string(),
                    NumberOrString::String(text) => text,
                };
                let (step, text) = described(value);
                state.readiness.progress(&token, step, text, now);
            }
            "pyright/beginProgress" | "pyright/reportProgress" => {
                let text = params.as_str().unwrap_or_default().to_owned();
                state.readiness.progress("pyright", Step::Begin, text, now);
            }
            "pyright/endProgress" => state.readiness.progress("pyright", Step::End, String::new(), now),
            "experimental/serverStatus" => {
                let is_quiescent = params.get("quiescent").and_then(Value::as_bool);
                state.readiness.quiescent(is_quiescent.unwrap_or_default(), now);
            }
            _ => {
                if method == "window/logMessage"
                    && let Some(text) = params.get("message").and_then(Value::as_str)
                {
                    let version = version_in(text).map(str::to_owned);
                    state.version = state.version.take().or(version);
                    state.n_files = n_files_in(text).or(state.n_files);
                }
                state.readiness.notification(method, &params.to_string(), now);
            }
        }
        self.changed.notify_all();
    }

    fn collect(&self, mut from: ChildStderr) {
        let mut part = [0; 1 << 10];
        while let Ok(n @ 1..) = from.read(&mut part) {
            let stderr = &mut self.lock().stderr;
            stderr.extend(&part[..n]);
            let excess = stderr.len().saturating_sub(MAX_STDERR);
            stderr.drain(..excess);
        }
    }
}

fn write_all(mut to: ChildStdin, messages: &Receiver<Vec<u8>>) {
    // If writing fails, the server has ended, which the reader notices.
    while let Ok(message) = messages.recv()
        && write_body(&mut to, &message).is_ok()
    {}
    let _ = to.flush();
}

/// Returns the value of JSON from the table of servers.
pub(super) fn json_of(text: &str) -> Value {
    serde_json::from_str(text).expect("the table contains JSON")
}

pub(super) fn folder(root: &Uri) -> WorkspaceFolder {
    let name = root.as_str().rsplit('/').next().unwrap_or_default().to_owned();
    WorkspaceFolder {
        uri: root.clone(),
        name,
    }
}

fn described(value: WorkDoneProgress) -> (Step, String) {
    let (step, title, message, percentage) = match value {
        WorkDoneProgress::Begin(begin) => (Step::Begin, Some(begin.title), begin.message, begin.percentage),
        WorkDoneProgress::Report(report) => (Step::Report, None, report.message, report.percentage),
        WorkDoneProgress::End(_) => return (Step::End, String::new()),
    };
    let percentage = percentage.map(|number| format!("{number} %"));
    let parts: Vec<String> = [title, message, percentage].into_iter().flatten().collect();
    (step, shown(&parts.join(" "), 100))
}

/// Returns the first `n` characters of a text of a server, on one line and without unprintable ones.
pub(super) fn shown(text: &str, n: usize) -> String {
    text.chars().filter(|c| !is_unprintable(*c)).take(n).collect()
}

/// Returns the version in a message such as `Pyright language server 1.1.414 starting`.
fn version_in(message: &str) -> Option<&str> {
    let (_, rest) = message.split_once(" language server ")?;
    let version = rest.strip_suffix(" starting")?;
    version.starts_with(|c: char| c.is_ascii_digit()).then_some(version)
}

/// Returns the number in a message such as `Found 27 source files`.
fn n_files_in(message: &str) -> Option<usize> {
    let (number, rest) = message.strip_prefix("Found ")?.split_once(' ')?;
    number.parse().ok().filter(|_| rest.starts_with("source file"))
}
