//! The thread of one server: it answers questions one after the other, and starts and stops the server.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use rustix::process::Pid;

use super::process::{Guard, kill_group};
use super::project::Project;
use super::question::{Answer, AskError, Question};
use super::servers::Found;
use super::transport::{Stopped, Watch};
use super::wire::Reply;

/// Failures in a row after which a server is not started for [`PAUSE`].
const MAX_FAILURES: u32 = 3;
const PAUSE: Duration = Duration::from_secs(300);
/// Attempts to answer a question.
const N_ATTEMPTS: u32 = 2;
/// The interval at which a server that starts is looked after.
const ATTEND_EVERY: Duration = Duration::from_millis(100);

/// A question that a client waits for.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) question: Question,
    pub(super) deadline: Instant,
    pub(super) is_cancelled: Arc<AtomicBool>,
    pub(super) replies: Sender<Reply>,
}

/// What other threads see of a server, and how they stop it.
#[derive(Clone, Debug, Default)]
pub(super) struct Status {
    pub(super) language: String,
    pub(super) state: String,
    pub(super) memory: u64,
    group: Option<Pid>,
    /// The reason why the server was killed.
    verdict: Option<String>,
}

impl Status {
    /// Notes the memory of the server. Kills it if that is more than `limit`.
    pub(super) fn note_memory(&mut self, processes: &[(Pid, u64)], limit: u64) {
        let of_group = processes.iter().filter(|(group, _)| Some(*group) == self.group);
        self.memory = of_group.map(|(_, bytes)| bytes).sum();
        if let Some(group) = self.group
            && self.memory > limit
        {
            let mib = |bytes: u64| bytes >> 20;
            self.verdict = Some(format!(
                "it used {} MiB of memory; {} MiB are allowed",
                mib(self.memory),
                mib(limit)
            ));
            kill_group(group);
        }
    }
}

/// The thread of a server.
pub(super) struct Worker<'a> {
    found: Found,
    root: &'a Path,
    guard: &'a Guard,
    status: &'a Mutex<Status>,
    project: Option<Project<'a>>,
    n_failures: u32,
    last_failure: String,
    paused_until: Option<Instant>,
}

impl<'a> Worker<'a> {
    pub(super) fn new(found: Found, root: &'a Path, guard: &'a Guard, status: &'a Mutex<Status>) -> Self {
        Self {
            found,
            root,
            guard,
            status,
            project: None,
            n_failures: 0,
            last_failure: String::new(),
            paused_until: None,
        }
    }

    /// Answers questions until there are none for a time. `may_end` returns the question that has arrived in the
    /// meantime, if there is one.
    pub(super) fn run(mut self, jobs: &Receiver<Job>, idle: Duration, may_end: impl Fn() -> Option<Job>) {
        let mut last = Instant::now();
        loop {
            let is_starting = self.project.as_ref().is_some_and(Project::is_starting);
            let until_idle = idle.saturating_sub(last.elapsed());
            let wait = if is_starting {
                ATTEND_EVERY.min(until_idle)
            } else {
                until_idle
            };
            match jobs.recv_timeout(wait) {
                Ok(job) => {
                    self.serve(&job);
                    last = Instant::now();
                }
                Err(RecvTimeoutError::Disconnected) => return self.stop(),
                Err(RecvTimeoutError::Timeout) if last.elapsed() < idle => self.attend(),
                Err(RecvTimeoutError::Timeout) => {
                    self.stop();
                    last = Instant::now();
                    // While it is paused, the thread remembers that.
                    if self.paused_until.is_none_or(|until| until <= Instant::now()) {
                        match may_end() {
                            Some(job) => self.serve(&job),
                            None => return,
                        }
                    }
                }
            }
        }
    }

    fn status(&self) -> MutexGuard<'_, Status> {
        self.status.lock()
    }

    fn attend(&mut self) {
        if let Some(project) = &mut self.project {
            project.attend();
            let state = project.state();
            self.status().state = state;
        }
    }

    fn serve(&mut self, job: &Job) {
        if job.is_cancelled.load(Ordering::Relaxed) {
            return;
        }
        self.status().language.clone_from(&job.question.language);
        if let Some(answer) = self.answer(job) {
            // Fails only if the client has gone.
            let _ = job.replies.send(Reply::Answer(answer));
        }
        let state = self.project.as_ref().map_or("stopped".to_owned(), Project::state);
        self.status().state = state;
    }

    /// Returns `None` if the client has gone.
    fn answer(&mut self, job: &Job) -> Option<Result<Answer, AskError>> {
        for _ in 0..N_ATTEMPTS {
            if let Some(error) = self.pause() {
                return Some(Err(error));
            }
            let reason = match self.attempt(job) {
                Ok(answer) => {
                    self.n_failures = 0;
                    return Some(Ok(answer));
                }
                Err(Stopped::Cancelled) => return None,
                Err(Stopped::TimeIsUp) => {
                    let server = self.found.server.name.to_owned();
                    let state = self.project.as_ref().map_or("starting".to_owned(), Project::state);
                    return Some(Err(AskError::NotReady { server, state }));
                }
                Err(Stopped::Failed(reason)) => reason,
            };
            let is_final = self.fail(reason);
            if is_final {
                break;
            }
        }
        Some(Err(self.failed(self.last_failure.clone())))
    }

    /// Returns the error for the time after several failures.
    fn pause(&mut self) -> Option<AskError> {
        let left = self.paused_until?.saturating_duration_since(Instant::now());
        if left.is_zero() {
            self.paused_until = None;
            self.n_failures = 0;
            return None;
        }
        let reason = format!(
            "it failed {MAX_FAILURES} times in a row and is started again in {} seconds; the last time {}",
            left.as_secs() + 1,
            self.last_failure
        );
        Some(self.failed(reason))
    }

    fn failed(&self, reason: String) -> AskError {
        AskError::Failed {
            server: self.found.server.name.to_owned(),
            reason,
        }
    }

    /// Counts a failure. Returns true if the question must not be tried again.
    fn fail(&mut self, reason: String) -> bool {
        self.end();
        let verdict = self.status().verdict.take();
        let is_killed = verdict.is_some();
        self.last_failure = verdict.unwrap_or(reason);
        self.n_failures += 1;
        if self.n_failures >= MAX_FAILURES {
            self.paused_until = Some(Instant::now() + PAUSE);
        }
        is_killed || self.n_failures >= MAX_FAILURES
    }

    fn attempt(&mut self, job: &Job) -> Result<Answer, Stopped> {
        if self.project.is_none() {
            let started = Project::start(self.found.clone(), self.root, &job.question.search_path, self.guard);
            let project = started.map_err(|error| Stopped::Failed(format!("it cannot be started: {error}")))?;
            self.status().group = Some(project.process().group());
            self.project = Some(project);
        }
        let project = self.project.as_mut().expect("it was started");
        let mut last = String::new();
        let mut on_state = |state: &str| {
            if state != last {
                state.clone_into(&mut last);
                state.clone_into(&mut self.status.lock().state);
                // Fails only if the client has gone.
                let _ = job.replies.send(Reply::State(last.clone()));
            }
        };
        let mut watch = Watch {
            deadline: job.deadline,
            is_cancelled: &job.is_cancelled,
            on_state: &mut on_state,
        };
        project.answer(&job.question, &mut watch)
    }

    /// Stops the server.
    fn stop(&mut self) {
        self.status().group = None;
        if let Some(project) = self.project.take() {
            project.stop();
        }
        self.status().state = "stopped".to_owned();
    }

    /// Kills the server. Its group is forgotten first, since its number is free afterwards.
    fn end(&mut self) {
        self.status().group = None;
        self.project = None;
    }
}
