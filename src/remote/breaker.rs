//! When a server has failed again and again it is left alone for a while.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// So many calls in a row must fail.
const FAILURES_TO_OPEN: u32 = 3;
/// The first pause; each further one is twice as long.
const FIRST_PAUSE: Duration = Duration::from_secs(5);
const LONGEST_PAUSE: Duration = Duration::from_secs(120);

/// Lets calls through until several in a row have failed; then, after a pause, one at a time until one succeeds.
#[derive(Debug, Default)]
pub(super) struct Breaker {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    n_failed: u32,
    pause: Duration,
    /// Until then nothing is tried.
    closed_until: Option<Instant>,
}

impl Breaker {
    /// Whether a call may be made now; else for how long none may. Who is let through after a pause is alone until it is told how
    /// it went, or the same pause has gone by.
    pub(super) fn admit(&self, now: Instant) -> Result<(), Duration> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match state.closed_until {
            Some(until) if until > now => Err(until - now),
            Some(_) => {
                state.closed_until = Some(now + state.pause);
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// A call brought an answer, whatever it said.
    pub(super) fn succeeded(&self) {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = State::default();
    }

    /// A call failed in a way that another may fail too.
    pub(super) fn failed(&self, now: Instant) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.n_failed += 1;
        if state.n_failed >= FAILURES_TO_OPEN {
            state.pause = (state.pause * 2).clamp(FIRST_PAUSE, LONGEST_PAUSE);
            state.closed_until = Some(now + state.pause);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opens_after_failures_in_a_row_and_tries_one_at_a_time() {
        let (breaker, start) = (Breaker::default(), Instant::now());
        breaker.failed(start);
        breaker.failed(start);
        breaker.succeeded();
        (0..2).for_each(|_| breaker.failed(start));
        assert_eq!(breaker.admit(start), Ok(()));
        breaker.failed(start);
        assert_eq!(breaker.admit(start), Err(FIRST_PAUSE));
        let later = start + FIRST_PAUSE;
        assert_eq!(breaker.admit(later), Ok(()));
        assert_eq!(breaker.admit(later), Err(FIRST_PAUSE), "one trial at a time");
        breaker.failed(later);
        assert_eq!(breaker.admit(later), Err(FIRST_PAUSE * 2));
        breaker.succeeded();
        assert_eq!(breaker.admit(later), Ok(()));
    }
}
