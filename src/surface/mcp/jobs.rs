//! Builds that go on in the background while questions are answered.

use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Result;

use crate::ingest::{Outcome, Progress, Stage, Target};

/// How many builds of one repository may run at once; they take turns at its lock.
const MAX_RUNNING: usize = 4;
/// How many that are over are remembered.
const MAX_REMEMBERED: usize = 16;
/// How often a waiting call looks whether it was cancelled.
const TICK: Duration = Duration::from_millis(20);

/// The builds of one repository.
#[derive(Default)]
pub(super) struct Jobs {
    list: Mutex<Vec<Arc<Job>>>,
}

/// A build.
pub(super) struct Job {
    /// What was asked for.
    pub(super) reference: String,
    /// What is built.
    pub(super) target: Target,
    /// Set to stop it; what was indexed so far is kept.
    pub(super) interrupt: AtomicBool,
    started: Instant,
    is_waiting: AtomicBool,
    n_blobs: AtomicUsize,
    n_done: AtomicUsize,
    n_bytes: AtomicU64,
    end: Mutex<Option<End>>,
    ended: Condvar,
}

/// How a build ended.
#[derive(Clone, Debug)]
pub(super) enum End {
    /// It did this.
    Done(Outcome),
    /// It was stopped before its end.
    Stopped,
    /// It failed.
    Failed(String),
}

/// How far a build is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Advance {
    /// Files to be read; 0 while that is not known.
    pub(super) n_blobs: usize,
    /// Files that were read.
    pub(super) n_done: usize,
    /// How long it has been running.
    pub(super) elapsed: Duration,
    /// Whether another writer is at work first.
    pub(super) is_waiting: bool,
}

impl Advance {
    /// In words.
    pub(super) fn to_text(self) -> String {
        match (self.is_waiting, self.n_blobs) {
            (true, _) => "waiting for another writer".to_owned(),
            (false, 0) => "listing files".to_owned(),
            (false, n_blobs) => format!("{} of {n_blobs} files read", self.n_done),
        }
    }
}

impl Jobs {
    /// The running build of a tree, or a new one; whether it is new. None if too many are running.
    pub(super) fn ensure(
        &self,
        reference: &str,
        target: Target,
        run: impl FnOnce(&Job) -> Result<Outcome> + Send + 'static,
    ) -> Option<(Arc<Job>, bool)> {
        let mut list = self.list.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(job) = list
            .iter()
            .find(|job| job.target.tree == target.tree && job.is_running())
        {
            return Some((Arc::clone(job), false));
        }
        if list.iter().filter(|job| job.is_running()).count() >= MAX_RUNNING {
            return None;
        }
        while list.len() >= MAX_REMEMBERED {
            let oldest = list.iter().position(|job| !job.is_running())?;
            list.remove(oldest);
        }
        let job = Arc::new(Job {
            reference: reference.to_owned(),
            target,
            interrupt: AtomicBool::new(false),
            started: Instant::now(),
            is_waiting: AtomicBool::new(false),
            n_blobs: AtomicUsize::new(0),
            n_done: AtomicUsize::new(0),
            n_bytes: AtomicU64::new(0),
            end: Mutex::new(None),
            ended: Condvar::new(),
        });
        list.push(Arc::clone(&job));
        let running = Arc::clone(&job);
        let spawned = std::thread::Builder::new().name("build".to_owned()).spawn(move || {
            let end = std::panic::catch_unwind(AssertUnwindSafe(|| run(&running)));
            running.finish(match end {
                Ok(Ok(outcome)) if outcome.interrupted => End::Stopped,
                Ok(Ok(outcome)) => End::Done(outcome),
                Ok(Err(error)) => End::Failed(format!("{error:#}")),
                Err(_) => End::Failed("the build panicked".to_owned()),
            });
        });
        if let Err(error) = spawned {
            job.finish(End::Failed(error.to_string()));
        }
        Some((job, true))
    }

    /// All that are remembered, the oldest first.
    pub(super) fn all(&self) -> Vec<Arc<Job>> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Stops those that run; how many there were.
    pub(super) fn stop(&self) -> usize {
        let running = self.all().into_iter().filter(|job| job.is_running());
        running.map(|job| job.interrupt.store(true, Ordering::Relaxed)).count()
    }
}

impl Job {
    /// Whether it is not over.
    pub(super) fn is_running(&self) -> bool {
        self.end().is_none()
    }

    /// How it ended, if it did.
    pub(super) fn end(&self) -> Option<End> {
        self.end.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How far it is.
    pub(super) fn advance(&self) -> Advance {
        Advance {
            n_blobs: self.n_blobs.load(Ordering::Relaxed),
            n_done: self.n_done.load(Ordering::Relaxed),
            elapsed: self.started.elapsed(),
            is_waiting: self.is_waiting.load(Ordering::Relaxed),
        }
    }

    /// Waits for its end for so long at most, telling how far it is; none if it goes on, or the caller is to stop.
    pub(super) fn wait(&self, patience: Duration, interrupt: &AtomicBool, told: &dyn Fn(Advance)) -> Option<End> {
        let deadline = Instant::now() + patience;
        let mut end = self.end.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let now = Instant::now();
            if end.is_some() || now >= deadline || interrupt.load(Ordering::Relaxed) {
                return end.clone();
            }
            told(self.advance());
            let waited = self.ended.wait_timeout(end, TICK.min(deadline - now));
            end = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn finish(&self, end: End) {
        *self.end.lock().unwrap_or_else(PoisonError::into_inner) = Some(end);
        self.ended.notify_all();
    }
}

impl Progress for Job {
    fn begin(&self, stage: Stage, n_blobs: usize) {
        self.is_waiting.store(stage == Stage::Waiting, Ordering::Relaxed);
        self.n_blobs.store(n_blobs, Ordering::Relaxed);
    }

    fn advance(&self, n_bytes: u64) {
        self.n_done.fetch_add(1, Ordering::Relaxed);
        self.n_bytes.fetch_add(n_bytes, Ordering::Relaxed);
    }

    fn end(&self) {
        self.is_waiting.store(false, Ordering::Relaxed);
    }
}
