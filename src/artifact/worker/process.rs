//! Starts workers and exchanges messages with them.

use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use rustix::process::Signal;

use super::WORKER;
use super::message::{Answer, Hello, Question, read_message, write_message};
use crate::extract::Unparsed;
use crate::program::command_at;

/// Limit on the time until a worker is ready.
const MAX_START: Duration = Duration::from_secs(20);
/// Limit on the time of an answer, for a worker that neither works nor ends. One that works on a text of up to 50 MB
/// reaches its limit on CPU time before.
const MAX_WAIT: Duration = Duration::from_secs(600);
/// Time after which an idle worker is ended, and after which starting one is tried again.
const IDLE: Duration = Duration::from_secs(10);

/// The workers of this process.
pub(super) struct Workers {
    program: PathBuf,
    max_start: Duration,
    max_wait: Duration,
    state: Mutex<State>,
    /// Number of questions without an answer.
    n_open: AtomicUsize,
}

#[derive(Default)]
struct State {
    idle: Vec<(Instant, Worker)>,
    is_watched: bool,
    /// Time of the last failed start.
    failed: Option<Instant>,
}

/// Counts a question until it is answered.
struct Open<'n>(&'n AtomicUsize);

impl<'n> Open<'n> {
    fn new(n_open: &'n AtomicUsize) -> Self {
        n_open.fetch_add(1, Ordering::Relaxed);
        Self(n_open)
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Workers {
    pub(super) fn new(program: PathBuf) -> Self {
        Self {
            program,
            max_start: MAX_START,
            max_wait: MAX_WAIT,
            state: Mutex::default(),
            n_open: AtomicUsize::new(0),
        }
    }

    /// Returns true while a text is being parsed.
    pub(super) fn are_busy(&self) -> bool {
        self.n_open.load(Ordering::Relaxed) > 0
    }

    /// Asks a worker about a text. `read` converts the answer, and returns `None` if it does not fit the question.
    ///
    /// A text for which a worker ends is given to a new one, because an earlier text or another program may be the
    /// cause. One that takes too long is not.
    pub(super) fn ask<T>(
        &'static self,
        question: &Question,
        text: &[u8],
        read: impl Fn(Answer, &[u8]) -> Option<T>,
    ) -> Result<T, Unparsed> {
        let _open = Open::new(&self.n_open);
        self.ask_twice(question, text, read)
    }

    fn ask_twice<T>(
        &'static self,
        question: &Question,
        text: &[u8],
        read: impl Fn(Answer, &[u8]) -> Option<T>,
    ) -> Result<T, Unparsed> {
        for is_again in [false, true] {
            let mut worker = self.take(is_again).ok_or(Unparsed::NoProcess)?;
            let asked = worker.exchange(question, text, self.max_wait);
            let is_late = asked
                .as_ref()
                .is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock);
            match asked.map(|(answer, body)| read(answer, &body)) {
                Ok(Some(found)) => {
                    self.give_back(worker);
                    return Ok(found);
                }
                Ok(None) => tracing::warn!("a parser gave a wrong answer"),
                Err(error) => tracing::warn!(%error, "a parser ended"),
            }
            if is_late || worker.was_late() {
                break;
            }
        }
        Err(Unparsed::ParserEnded)
    }

    /// Returns an idle worker, or else a new one.
    fn take(&self, must_be_new: bool) -> Option<Worker> {
        let mut state = self.state();
        if let Some((_, worker)) = state.idle.pop_if(|_| !must_be_new) {
            return Some(worker);
        }
        if state.failed.is_some_and(|failed| failed.elapsed() < IDLE) {
            return None;
        }
        drop(state);
        let started = Worker::start(self);
        let mut state = self.state();
        state.failed = started.is_err().then(Instant::now);
        started
            .inspect_err(|error| tracing::warn!(%error, "cannot start a parser"))
            .ok()
    }

    fn give_back(&'static self, worker: Worker) {
        let mut state = self.state();
        state.idle.push((Instant::now(), worker));
        if !state.is_watched {
            // Without this thread, the workers end with this process.
            state.is_watched = thread::Builder::new().spawn(|| self.end_idle()).is_ok();
        }
    }

    /// Ends workers that have been idle for a while, until there are none.
    fn end_idle(&self) {
        loop {
            thread::sleep(IDLE / 4);
            let mut state = self.state();
            let ended: Vec<_> = state.idle.extract_if(.., |(since, _)| since.elapsed() > IDLE).collect();
            state.is_watched = !state.idle.is_empty();
            let is_watched = state.is_watched;
            drop(state);
            drop(ended);
            if !is_watched {
                return;
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

/// A connection that can be read until a time.
struct Until<'a> {
    stream: &'a mut UnixStream,
    end: Instant,
}

impl Read for Until<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.end.saturating_duration_since(Instant::now());
        // No time at all would mean no limit.
        self.stream.set_read_timeout(Some(left.max(Duration::from_millis(1))))?;
        self.stream.read(buffer)
    }
}

/// A worker, which ends with this value. If this process is killed, it ends because its connection does.
struct Worker {
    process: Child,
    stream: UnixStream,
}

impl Worker {
    fn start(workers: &Workers) -> io::Result<Self> {
        let (stream, theirs) = UnixStream::pair()?;
        stream.set_write_timeout(Some(workers.max_wait))?;
        let process = command_at(&workers.program)?
            .arg(WORKER)
            .env_clear()
            .current_dir("/")
            .stdin(OwnedFd::from(theirs))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // Ctrl-C is for this process only.
            .process_group(0)
            .spawn()?;
        let mut worker = Self { process, stream };
        let (hello, _) = read_message::<Hello>(&mut worker.until(workers.max_start))?;
        if hello != Hello::new() {
            return Err(io::Error::other("the program at this path is another version"));
        }
        Ok(worker)
    }

    fn exchange(&mut self, question: &Question, text: &[u8], max_wait: Duration) -> io::Result<(Answer, Vec<u8>)> {
        write_message(&mut self.stream, question, text)?;
        read_message(&mut self.until(max_wait))
    }

    fn until(&mut self, limit: Duration) -> Until<'_> {
        Until {
            stream: &mut self.stream,
            end: Instant::now() + limit,
        }
    }

    /// Ends the worker. Returns true if it had reached its limit on CPU time.
    fn was_late(&mut self) -> bool {
        let _ = self.process.kill();
        let ended = self.process.wait();
        ended.is_ok_and(|status| status.signal() == Some(Signal::XCPU.as_raw()))
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // Each fails only if it has ended.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::artifact::worker::message::Wanted;
    use crate::model::Lang;

    /// Asks workers that are a shell script, which is started after the first message if there is one. Returns the
    /// reason why there is no answer, and how often the script was started.
    fn ask(hello: &[u8], script: &str) -> (Unparsed, usize) {
        let folder = tempfile::tempdir().unwrap();
        let [program, started] = ["program", "started"].map(|name| folder.path().join(name));
        let hello: String = hello.iter().map(|byte| format!("\\{byte:03o}")).collect();
        let text = format!(
            "#!/bin/sh\necho >> {}\nprintf '{hello}' >&0\n{script}\n",
            started.display()
        );
        fs::write(&program, text).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let workers = Box::leak(Box::new(Workers::new(program)));
        (workers.max_start, workers.max_wait) = (Duration::from_secs(2), Duration::from_secs(2));
        let question = Question::new(Lang::TEXT, Wanted::Definitions);
        let read = |answer, _: &[u8]| matches!(answer, Answer::Words(_)).then_some(());
        let reason = workers.ask(&question, b"fn f() {}", read).unwrap_err();
        assert!(workers.state().idle.is_empty());
        (reason, fs::read(started).unwrap().len())
    }

    fn message(header: &impl serde::Serialize) -> Vec<u8> {
        let mut bytes = Vec::new();
        write_message(&mut bytes, header, b"").unwrap();
        bytes
    }

    #[test]
    fn a_text_for_which_workers_end_is_not_parsed() {
        let hello = message(&Hello::new());
        let of_another = message(&Answer::Definitions { errors: None });
        let answer: String = of_another.iter().map(|byte| format!("\\{byte:03o}")).collect();
        for (script, n_started) in [
            ("exit 0", 2),
            ("kill -SEGV $$", 2),
            ("printf 'nonsense, nonsense, nonsense' >&0; exec sleep 60", 2),
            (&format!("printf '{answer}' >&0; exec sleep 60"), 2),
            ("kill -XCPU $$", 1),
            ("exec sleep 60", 1),
        ] {
            assert_eq!(ask(&hello, script), (Unparsed::ParserEnded, n_started), "{script}");
        }
    }

    #[test]
    fn without_a_worker_no_text_is_parsed() {
        for (hello, script) in [
            (&b""[..], "exit 1"),
            (b"", "exec sleep 60"),
            (b"nonsense", "exec sleep 60"),
            (&message(&7u32), "exec sleep 60"),
        ] {
            assert_eq!(ask(hello, script), (Unparsed::NoProcess, 1), "{hello:?}");
        }
        for program in ["", "relative", "/nowhere/program", "/"] {
            let workers = Box::leak(Box::new(Workers::new(program.into())));
            for _ in 0..2 {
                let question = Question::new(Lang::TEXT, Wanted::Definitions);
                let asked = workers.ask(&question, b"", |_, _| Some(()));
                assert_eq!(asked, Err(Unparsed::NoProcess), "{program}");
            }
        }
    }
}
