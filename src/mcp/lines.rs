//! Reads and writes JSON-RPC messages, one per line.

use std::io;
use std::sync::Arc;

use rmcp::model::{ErrorCode, JsonRpcMessage, RequestId};
use rmcp::service::{RoleServer, RxJsonRpcMessage};
use serde::Serialize;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::Mutex;
use tokio::task::JoinHandle;

use crate::model::unprintable::json as json_text;

/// Maximum length of a message. Longer messages are skipped. A string argument has at most 64 KiB, and a call may have
/// several.
const MAX_LINE_BYTES: usize = 8 << 20;
/// Maximum length of a request id. An id is held in memory until the response is written, and is part of the response.
const MAX_ID_BYTES: usize = 256;
/// Some editors write a byte order mark before the first line.
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// Reads messages from a client.
pub(super) struct Lines<R> {
    input: BufReader<R>,
    /// The bytes of the current line that were read so far.
    line: Vec<u8>,
    is_too_long: bool,
    n_bytes: usize,
}

/// A line from a client: a message, or the reason why it is not one.
pub(super) type Received = Result<RxJsonRpcMessage<RoleServer>, Fault>;

/// The reason why a line is not a valid message.
#[derive(Debug)]
pub(super) struct Fault {
    code: ErrorCode,
    message: String,
    /// The id of the request; null if it is unknown.
    id: Value,
}

impl Fault {
    fn new(code: ErrorCode, message: impl ToString) -> Self {
        Self {
            code,
            message: message.to_string(),
            id: Value::Null,
        }
    }

    /// Returns the error response. JSON-RPC requires the id null if the id is unknown, but the SDK's types omit it.
    pub(super) fn to_json(&self) -> Value {
        json!({"jsonrpc": "2.0", "id": self.id, "error": {"code": self.code.0, "message": self.message}})
    }
}

impl<R: AsyncRead + Unpin> Lines<R> {
    pub(super) fn new(input: R) -> Self {
        Self {
            input: BufReader::new(input),
            line: Vec::new(),
            is_too_long: false,
            n_bytes: 0,
        }
    }

    /// Returns the length of the last line in bytes.
    pub(super) fn n_bytes(&self) -> usize {
        self.n_bytes
    }

    /// Returns the next message or fault; `None` at the end of the input. No input is lost if the future is dropped.
    pub(super) async fn next(&mut self) -> io::Result<Option<Received>> {
        while self.read_to_end_of_line().await? {
            let line = std::mem::take(&mut self.line);
            self.n_bytes = line.len();
            let received = if std::mem::take(&mut self.is_too_long) {
                Some(Err(Fault::new(
                    ErrorCode::INVALID_REQUEST,
                    format!("the message is longer than {MAX_LINE_BYTES} bytes"),
                )))
            } else {
                message_of(&line)
            };
            if received.is_some() {
                return Ok(received);
            }
        }
        Ok(None)
    }

    /// Reads to the end of the current line. Returns false if the input ends first.
    async fn read_to_end_of_line(&mut self) -> io::Result<bool> {
        loop {
            let available = self.input.fill_buf().await?;
            if available.is_empty() {
                return Ok(false);
            }
            // There is no await after this point, so that consumed bytes are not lost.
            let end = available.iter().position(|byte| *byte == b'\n');
            let n_taken = end.map_or(available.len(), |end| end + 1);
            self.is_too_long |= self.line.len() + n_taken > MAX_LINE_BYTES;
            if self.is_too_long {
                self.line = Vec::new()
            } else {
                self.line.extend_from_slice(&available[..n_taken])
            }
            self.input.consume(n_taken);
            if end.is_some() {
                return Ok(true);
            }
        }
    }
}

/// Parses a line. Returns `None` for an empty line, and for an invalid notification, because notifications get no
/// response.
fn message_of(line: &[u8]) -> Option<Received> {
    let line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line).trim_ascii();
    if line.is_empty() {
        return None;
    }
    if let Ok(message) = serde_json::from_slice(line) {
        return Some(match id_of(&message) {
            Some(id) if id.len() > MAX_ID_BYTES => Err(Fault::new(
                ErrorCode::INVALID_REQUEST,
                format!("the id is longer than {MAX_ID_BYTES} bytes"),
            )),
            _ => Ok(message),
        });
    }
    let value: Value = match serde_json::from_slice(line) {
        Ok(value) => value,
        Err(error) => {
            return Some(Err(Fault::new(
                ErrorCode::PARSE_ERROR,
                format!("invalid JSON: {error}"),
            )));
        }
    };
    let is_call = value["method"].is_string();
    if is_call && value.get("id").is_none() {
        tracing::debug!("unknown notification");
        return None;
    }
    let mut fault = Fault::new(ErrorCode::INVALID_REQUEST, "not a JSON-RPC 2.0 message");
    let is_id = |id: &&Value| id.is_i64() || id.as_str().is_some_and(|id| id.len() <= MAX_ID_BYTES);
    let id = value.get("id").filter(|id| is_call && is_id(id));
    fault.id = id.cloned().unwrap_or_default();
    Some(Err(fault))
}

/// Returns the id of a request if it is a string.
fn id_of(message: &RxJsonRpcMessage<RoleServer>) -> Option<&str> {
    match message {
        JsonRpcMessage::Request(request) => match &request.id {
            RequestId::String(id) => Some(id),
            RequestId::Number(_) => None,
        },
        _ => None,
    }
}

/// Writes messages to a client.
pub(super) struct Output<W>(Arc<Mutex<W>>);

impl<W: AsyncWrite + Send + Unpin + 'static> Output<W> {
    pub(super) fn new(output: W) -> Self {
        Self(Arc::new(Mutex::new(output)))
    }

    /// Writes a message as one line. The line is written completely even if the returned handle is dropped.
    pub(super) fn write(&self, message: &impl Serialize) -> JoinHandle<io::Result<()>> {
        let line = json_text(message);
        let output = Arc::clone(&self.0);
        tokio::spawn(async move {
            let mut line = line?;
            line.push(b'\n');
            let mut output = output.lock().await;
            output.write_all(&line).await?;
            output.flush().await
        })
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    /// Returns the error code and id for each line of `input`. Valid messages have the code 0.
    fn codes_of(input: &[u8]) -> Vec<(i32, Value)> {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let (mut lines, mut codes) = (Lines::new(input), Vec::new());
            while let Some(received) = lines.next().await.unwrap() {
                codes.push(match received {
                    Ok(JsonRpcMessage::Request(request)) => (0, json!(request.id)),
                    Ok(other) => panic!("{other:?}"),
                    Err(fault) => (fault.code.0, fault.to_json()["id"].clone()),
                });
            }
            codes
        })
    }

    #[test]
    fn invalid_lines_get_json_rpc_error_codes() {
        const PING: &str = r#"{"jsonrpc": "2.0", "id": 1, "method": "ping"}"#;
        for (line, code, id) in [
            (PING, 0, json!(1)),
            (&format!("\u{feff}{PING}\r"), 0, json!(1)),
            ("not json", -32700, Value::Null),
            ("{", -32700, Value::Null),
            (&"[".repeat(100_000), -32700, Value::Null),
            ("[]", -32600, Value::Null),
            (&format!("[{PING}]"), -32600, Value::Null),
            ("null", -32600, Value::Null),
            (r#"{"id": 7}"#, -32600, Value::Null),
            (
                r#"{"jsonrpc": "2.0", "id": 1.5, "method": "ping"}"#,
                -32600,
                Value::Null,
            ),
            (
                r#"{"jsonrpc": "2.0", "id": null, "method": "ping"}"#,
                -32600,
                Value::Null,
            ),
            (r#"{"jsonrpc": "2.0", "method": 1}"#, -32600, Value::Null),
            (r#"{"id": "a", "method": "ping"}"#, -32600, json!("a")),
        ] {
            assert_eq!(codes_of(format!("{line}\n").as_bytes()), [(code, id)], "{line}");
        }
        assert_eq!(codes_of(b"\"\xFF\"\n"), [(-32700, Value::Null)]);
    }

    #[test]
    fn empty_lines_and_notifications_are_ignored() {
        let lines = ["", " \t\r", "\u{feff}", r#"{"method": "textDocument/didOpen"}"#];
        assert_eq!(codes_of(format!("{}\n", lines.join("\n")).as_bytes()), []);
        assert_eq!(codes_of(b"what has no end was not said"), []);
    }

    #[test]
    fn overlong_id_is_replaced_by_null() {
        let (long, longest) = ("a".repeat(MAX_ID_BYTES + 1), "a".repeat(MAX_ID_BYTES));
        for (id, code, answered) in [(&long, -32600, Value::Null), (&longest, 0, json!(longest))] {
            let ping = format!("{{\"jsonrpc\": \"2.0\", \"id\": {id:?}, \"method\": \"ping\"}}\n");
            assert_eq!(codes_of(ping.as_bytes()), [(code, answered.clone())]);
            let fault = format!("{{\"id\": {id:?}, \"method\": \"ping\"}}\n");
            assert_eq!(codes_of(fault.as_bytes()), [(-32600, answered)]);
        }
    }

    #[test]
    fn overlong_line_gives_one_error_and_reading_continues() {
        let long = format!(r#"{{"x": "{}"}}"#, "y".repeat(MAX_LINE_BYTES));
        let after = r#"{"jsonrpc": "2.0", "id": 2, "method": "ping"}"#;
        let codes = codes_of(format!("{long}\n{after}\n").as_bytes());
        assert_eq!(codes, [(-32600, Value::Null), (0, json!(2))]);
    }
}
