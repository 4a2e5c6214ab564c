//! The context of long work: where it reports progress, and when it stops.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use super::progress::{NoProgress, Progress};

/// The context of long work. A function without progress to report takes the interrupt flag alone.
#[derive(Clone, Copy)]
pub struct Ctx<'a> {
    /// Receives the progress.
    pub progress: &'a dyn Progress,
    /// Stops the work when set.
    pub interrupt: &'a AtomicBool,
    /// The time at which the work ends with what it has found so far.
    pub deadline: Option<Instant>,
}

impl<'a> Ctx<'a> {
    /// Creates a context without a deadline.
    pub fn new(progress: &'a dyn Progress, interrupt: &'a AtomicBool) -> Self {
        Self {
            progress,
            interrupt,
            deadline: None,
        }
    }

    /// Creates a context without a deadline that ignores progress.
    pub fn silent(interrupt: &'a AtomicBool) -> Self {
        Self::new(&NoProgress, interrupt)
    }

    /// Sets the deadline.
    pub fn until(self, deadline: Option<Instant>) -> Self {
        Self { deadline, ..self }
    }

    /// Returns true if the work should stop.
    pub fn is_interrupted(&self) -> bool {
        self.interrupt.load(Ordering::Relaxed)
    }

    /// Returns true if the deadline has passed.
    pub fn is_late(&self) -> bool {
        self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }

    /// Returns true if the work should stop or the deadline has passed.
    pub fn is_over(&self) -> bool {
        self.is_interrupted() || self.is_late()
    }
}
