//! The side of the client: finds or starts the broker, and waits for its answer.

use std::io;
use std::os::unix::net::UnixStream;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::place::{BrokerPlace, prepare, socket, try_lock};
use super::question::{Answer, AskError, Question};
use super::servers::candidates;
use super::wire::{self, Reply, Request, RunningServer};
use crate::program::command_at;

/// The interval at which the interrupt flag is checked.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Limit on the time in which a broker starts.
const START_PATIENCE: Duration = Duration::from_secs(10);
/// Time after the patience of a question in which the broker answers.
const ANSWER_PATIENCE: Duration = Duration::from_secs(5);
/// Attempts to ask. A broker may end while a client connects.
const N_ATTEMPTS: u32 = 3;

/// Asks a question. Starts a broker if none runs. `on_state` receives what the server does: `starting`,
/// `indexing: 40 %`, `ready`.
pub fn ask(
    question: &Question,
    broker: &BrokerPlace,
    interrupt: &AtomicBool,
    on_state: &mut dyn FnMut(&str),
) -> Result<Answer, AskError> {
    // A question without a server needs no broker.
    candidates(&question.language, &question.search_path, &question.root)?;
    let mut failure = io::Error::from(io::ErrorKind::NotConnected);
    for _ in 0..N_ATTEMPTS {
        let stream = connect(broker, interrupt).map_err(|error| failed(&error, interrupt))?;
        match converse(stream, question, interrupt, on_state) {
            Ok(answer) => return answer,
            Err(error) if is_end(&error) => failure = error,
            Err(error) => return Err(failed(&error, interrupt)),
        }
    }
    Err(failed(&failure, interrupt))
}

/// Returns true if the broker has closed the connection.
fn is_end(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
    matches!(error.kind(), UnexpectedEof | ConnectionReset | BrokenPipe)
}

fn failed(error: &io::Error, interrupt: &AtomicBool) -> AskError {
    if interrupt.load(Ordering::Relaxed) {
        AskError::Interrupted
    } else {
        AskError::Broker(error.to_string())
    }
}

/// Returns the servers that run. Starts nothing. Returns `None` if no broker runs.
pub fn running(broker: &BrokerPlace) -> Option<Vec<RunningServer>> {
    let mut stream = UnixStream::connect(socket(&broker.folder)).ok()?;
    stream.set_read_timeout(Some(ANSWER_PATIENCE)).ok()?;
    wire::send(&mut stream, &Request::List).ok()?;
    match wire::Receiver::new(stream).receive().ok()?? {
        Reply::List(servers) => Some(servers),
        Reply::State(_) | Reply::Answer(_) => None,
    }
}

fn converse(
    mut stream: UnixStream,
    question: &Question,
    interrupt: &AtomicBool,
    on_state: &mut dyn FnMut(&str),
) -> io::Result<Result<Answer, AskError>> {
    stream.set_read_timeout(Some(LOOK_EVERY))?;
    stream.set_write_timeout(Some(ANSWER_PATIENCE))?;
    wire::send(&mut stream, &Request::Ask(question.clone()))?;
    let deadline = Instant::now() + question.patience + ANSWER_PATIENCE;
    let mut replies = wire::Receiver::new(stream);
    loop {
        match replies.receive()? {
            Some(Reply::Answer(answer)) => return Ok(answer),
            Some(Reply::State(state)) => on_state(&state),
            Some(Reply::List(_)) => return Err(io::ErrorKind::InvalidData.into()),
            None if interrupt.load(Ordering::Relaxed) => return Err(io::ErrorKind::Interrupted.into()),
            None if Instant::now() > deadline => return Err(io::Error::other("the broker does not answer")),
            None => {}
        }
    }
}

/// Connects to the broker. One client at a time starts one.
fn connect(broker: &BrokerPlace, interrupt: &AtomicBool) -> io::Result<UnixStream> {
    prepare(&broker.folder)?;
    let path = socket(&broker.folder);
    let deadline = Instant::now() + START_PATIENCE;
    let mut started = None;
    let mut lock = None;
    loop {
        if let Ok(stream) = UnixStream::connect(&path) {
            return Ok(stream);
        }
        if interrupt.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        if Instant::now() > deadline {
            return Err(io::Error::other("the broker does not start"));
        }
        if lock.is_none() {
            lock = try_lock(&broker.folder)?;
        } else if started.is_none() {
            // The lock was free, and there is still no broker.
            start(broker)?;
            started = Some(());
        }
        thread::sleep(Duration::from_millis(10));
    }
}

/// Starts a broker, which goes on after this process.
fn start(broker: &BrokerPlace) -> io::Result<()> {
    let mut command = command_at(&broker.program)?;
    // These are about the repository of this client, and the servers are for others, too.
    for name in [
        "GIT_DIR",
        "GIT_WORK_TREE",
        "GIT_INDEX_FILE",
        "GIT_PREFIX",
        "VIRTUAL_ENV",
    ] {
        command.env_remove(name);
    }
    let mut process = command
        .args(["broker", "--folder"])
        .arg(&broker.folder)
        .current_dir(&broker.folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    // Otherwise it would stay in the table of processes after its end, as long as this process runs.
    thread::spawn(move || process.wait());
    Ok(())
}
