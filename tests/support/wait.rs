//! Waiting for what another thread or process does. The limit ends a test that would hang; no test depends on how long
//! it waits.

#![allow(clippy::disallowed_methods, reason = "waits here have a limit")]

use std::io::{self, Read, Write};
use std::panic::resume_unwind;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

const LIMIT: Duration = Duration::from_secs(120);
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// Waits until `holds` returns true. Fails the test if it never does.
#[track_caller]
pub(crate) fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < LIMIT, "waited in vain until {what}");
        std::thread::sleep(LOOK_EVERY);
    }
}

/// Does `work` on another thread. Fails the test if it does not end.
#[track_caller]
pub(crate) fn in_time<T: Send + 'static>(what: &str, work: impl FnOnce() -> T + Send + 'static) -> T {
    let (send, done) = channel();
    let worker = std::thread::spawn(move || send.send(work()));
    match done.recv_timeout(LIMIT) {
        Ok(done) => done,
        Err(RecvTimeoutError::Timeout) => panic!("waited in vain until {what}"),
        Err(RecvTimeoutError::Disconnected) => match worker.join() {
            Err(panic) => resume_unwind(panic),
            Ok(_) => unreachable!("what was done is sent"),
        },
    }
}

/// Waits for the end of `child`. Kills it and fails the test if it does not end.
#[track_caller]
pub(crate) fn wait_for_end(child: &mut Child) -> ExitStatus {
    let began = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        if began.elapsed() > LIMIT {
            let command = command_line(Pid::from_child(child));
            kill(child);
            panic!("the process does not end: {command}");
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

/// Kills `child`, which may have ended already, and waits for its end.
pub(crate) fn kill(child: &mut Child) -> ExitStatus {
    // Killing fails if the child has ended.
    let _ = child.kill();
    child.wait().unwrap()
}

/// Writes `input` to `child` and waits for its end. Kills it and fails the test if it does not end.
#[track_caller]
pub(crate) fn output_of(mut child: Child, input: impl Into<Vec<u8>>) -> Output {
    let (id, input) = (Pid::from_child(&child), input.into());
    let (send, ended) = channel();
    std::thread::spawn(move || {
        if let Some(mut stdin) = child.stdin.take() {
            // Writing fails if the program ends before it reads its input.
            let _ = stdin.write_all(&input);
        }
        send.send(child.wait_with_output())
    });
    if let Ok(output) = ended.recv_timeout(LIMIT) {
        return output.unwrap();
    }
    let command = command_line(id);
    let _ = kill_process(id, Signal::KILL);
    // A process that the child has started may keep the output open.
    let printed = ended.recv_timeout(Duration::from_secs(5));
    panic!("the process does not end: {command}\nuntil it was killed: {printed:?}");
}

fn command_line(id: Pid) -> String {
    let line = std::fs::read_to_string(format!("/proc/{}/cmdline", id.as_raw_nonzero()));
    line.unwrap_or_default().replace('\0', " ")
}

/// Runs a command with a limit.
pub(crate) trait InTime {
    /// Does what `Command::output` does. Kills the process and fails the test if it does not end.
    fn output_in_time(&mut self) -> io::Result<Output>;

    /// Does what `Command::status` does. Kills the process and fails the test if it does not end.
    fn status_in_time(&mut self) -> io::Result<ExitStatus>;
}

impl InTime for Command {
    #[track_caller]
    fn output_in_time(&mut self) -> io::Result<Output> {
        let piped = self.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Ok(output_of(piped.spawn()?, Vec::new()))
    }

    #[track_caller]
    fn status_in_time(&mut self) -> io::Result<ExitStatus> {
        Ok(wait_for_end(&mut self.spawn()?))
    }
}

/// What a process prints, read on a thread.
pub(crate) struct Printed {
    parts: Receiver<Vec<u8>>,
    bytes: Vec<u8>,
    n_taken: usize,
}

impl Printed {
    /// Reads until the end, so that the process never blocks on it.
    pub(crate) fn on(mut stream: impl Read + Send + 'static) -> Self {
        let (send, parts) = channel();
        std::thread::spawn(move || {
            let mut part = [0; 1 << 12];
            while let Ok(n @ 1..) = stream.read(&mut part) {
                // Sending fails if nobody wants the rest.
                let _ = send.send(part[..n].to_owned());
            }
        });
        Self {
            parts,
            bytes: Vec::new(),
            n_taken: 0,
        }
    }

    /// Waits for `end`. Returns what was printed up to and including it, without what was returned before.
    #[track_caller]
    pub(crate) fn up_to(&mut self, end: &str) -> String {
        let began = Instant::now();
        let mut from = self.n_taken;
        loop {
            let mut found = self.bytes[from..].windows(end.len());
            if let Some(at) = found.position(|window| window == end.as_bytes()) {
                let taken = std::mem::replace(&mut self.n_taken, from + at + end.len());
                return String::from_utf8(self.bytes[taken..self.n_taken].to_owned()).unwrap();
            }
            from = from.max((self.bytes.len() + 1).saturating_sub(end.len()));
            assert!(self.goes_on(began), "no {end:?} at the end of {:?}", self.shown());
        }
    }

    /// Waits for the end. Returns everything that was printed.
    #[track_caller]
    pub(crate) fn all(&mut self) -> Vec<u8> {
        let began = Instant::now();
        while self.goes_on(began) {}
        std::mem::take(&mut self.bytes)
    }

    /// Waits for more. Returns false at the end.
    #[track_caller]
    fn goes_on(&mut self, began: Instant) -> bool {
        match self.parts.recv_timeout(LIMIT.saturating_sub(began.elapsed())) {
            Ok(part) => self.bytes.extend(part),
            Err(RecvTimeoutError::Disconnected) => return false,
            Err(RecvTimeoutError::Timeout) => panic!("waited in vain for more than {:?}", self.shown()),
        }
        true
    }

    /// Returns the end of what was printed so far, for a message.
    fn shown(&self) -> String {
        let start = self.bytes.len().saturating_sub(1 << 12);
        String::from_utf8_lossy(&self.bytes[start..]).into_owned()
    }
}

/// Tells threads to end when dropped, even after a panic.
pub(crate) struct Ending<'a>(pub(crate) &'a AtomicBool);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
