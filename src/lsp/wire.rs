//! Messages between a client and the broker: the length in four bytes, then JSON.

use std::io::{self, Read, Write};
use std::path::PathBuf;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::question::{Answer, AskError, Question};

/// Limit on one message.
const MAX_MESSAGE: usize = 64 << 20;

/// What a client sends. It is the only message of a connection.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Request {
    Ask(Question),
    List,
}

/// What the broker sends. All but `State` are the last message of a connection.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Reply {
    State(String),
    Answer(Result<Answer, AskError>),
    List(Vec<RunningServer>),
}

/// A server that the broker runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunningServer {
    /// The worktree.
    pub root: PathBuf,
    /// The language of the last question.
    pub language: String,
    /// Name of the server.
    pub server: String,
    /// What it does: starting, indexing, ready, stopped.
    pub state: String,
    /// Resident bytes of the server and what it has started.
    pub memory: u64,
}

pub(super) fn send(to: &mut impl Write, message: &impl Serialize) -> io::Result<()> {
    let body = serde_json::to_vec(message).map_err(io::Error::other)?;
    let length = u32::try_from(body.len()).ok().filter(|_| body.len() <= MAX_MESSAGE);
    let length = length.ok_or_else(|| io::Error::other("the message is too large"))?;
    to.write_all(&length.to_le_bytes())?;
    to.write_all(&body)?;
    to.flush()
}

/// Reads messages from a stream whose reads may time out.
#[derive(Debug)]
pub(super) struct Receiver<R> {
    from: R,
    bytes: Vec<u8>,
}

impl<R: Read> Receiver<R> {
    pub(super) fn new(from: R) -> Self {
        Self {
            from,
            bytes: Vec::new(),
        }
    }

    /// Returns the next message, and `None` if it has not arrived before the timeout of the stream.
    pub(super) fn receive<T: DeserializeOwned>(&mut self) -> io::Result<Option<T>> {
        loop {
            if let Some((length, rest)) = self.bytes.split_first_chunk() {
                let length = u32::from_le_bytes(*length) as usize;
                if length > MAX_MESSAGE {
                    return Err(io::Error::other("the message is too large"));
                }
                if let Some(body) = rest.get(..length) {
                    let message = serde_json::from_slice(body).map_err(io::Error::other);
                    self.bytes.drain(..size_of::<u32>() + length);
                    return message.map(Some);
                }
            }
            let mut part = [0; 1 << 16];
            match self.from.read(&mut part) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(n) => self.bytes.extend(&part[..n]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                    return Ok(None);
                }
                Err(error) => return Err(error),
            }
        }
    }
}
