//! The context of one call: progress, interruption and time limits.

use std::time::{Duration, Instant};

use super::jobs::Advance;
use crate::model::Ctx;

/// Time after the start of a call for which it waits for an index that it needs. Of the ten seconds that a call may
/// take, the remaining time is for the answer on a busy machine.
const BUILD_TIME: Duration = Duration::from_millis(4_500);
/// The same for a call that can answer in part: two idle processors index about 5,000 files meanwhile, and an agent that
/// waits longer could already have read the likely files.
const SHORT_BUILD_TIME: Duration = Duration::from_millis(2_000);
/// Time after waiting for an index until which a call reads files that are not indexed yet.
const READING_TIME: Duration = Duration::from_millis(1_200);
/// Minimum time for reading files in a call, however long the call has waited before.
const MIN_READING_TIME: Duration = Duration::from_millis(500);

/// The context of one call.
#[derive(Clone, Copy)]
pub struct CallCtx<'a> {
    /// Where the call reports progress, and what stops it.
    pub(crate) ctx: Ctx<'a>,
    /// The start of the call.
    pub(crate) began: Instant,
    /// Time limits. Without them the call runs until it is complete.
    pub(crate) limits: Option<Limits<'a>>,
}

/// The time limits of a call, and functions to use while it waits for work on other threads.
#[derive(Clone, Copy)]
pub(crate) struct Limits<'a> {
    /// Runs a closure that only waits. Another call may run meanwhile.
    pub(crate) pause: &'a dyn Fn(&mut dyn FnMut()),
    /// Receives the state of a build that the call waits for.
    pub(crate) waiting: &'a (dyn Fn(Advance) + Sync),
}

impl<'a> CallCtx<'a> {
    /// Creates the context of a call without time limits.
    pub fn unlimited(ctx: Ctx<'a>) -> Self {
        Self {
            ctx,
            began: Instant::now(),
            limits: None,
        }
    }

    /// Returns the remaining time to wait for something that the answer needs; `None` without time limits.
    pub(crate) fn build_time(&self) -> Option<Duration> {
        self.limits.map(|_| BUILD_TIME.saturating_sub(self.began.elapsed()))
    }

    /// Returns the remaining time to wait for an index without which the call can answer in part; `None` without time
    /// limits.
    pub(crate) fn short_build_time(&self) -> Option<Duration> {
        self.limits
            .map(|_| SHORT_BUILD_TIME.saturating_sub(self.began.elapsed()))
    }

    /// Returns the time at which to stop reading old versions of files; `None` without time limits.
    pub(crate) fn reading_ends(&self) -> Option<Instant> {
        self.reading_ends_after(BUILD_TIME)
    }

    /// Returns the time at which to stop reading files that are not indexed yet; `None` without time limits.
    pub(crate) fn short_reading_ends(&self) -> Option<Instant> {
        self.reading_ends_after(SHORT_BUILD_TIME)
    }

    fn reading_ends_after(&self, build_time: Duration) -> Option<Instant> {
        let ends = self.began + build_time + READING_TIME;
        self.limits.map(|_| ends.max(Instant::now() + MIN_READING_TIME))
    }

    /// Runs `wait`, which must only wait. Another call may run meanwhile.
    pub(crate) fn pause<T>(&self, wait: impl FnOnce() -> T) -> T {
        let Some(limits) = self.limits else {
            return wait();
        };
        let (mut wait, mut waited) = (Some(wait), None);
        (limits.pause)(&mut || waited = wait.take().map(|wait| wait()));
        waited.expect("pause runs the closure once")
    }
}
