//! Circuit breaker: pauses requests to a server that fails repeatedly.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// Number of consecutive failures that open the breaker.
const FAILURES_TO_OPEN: u32 = 3;
/// Length of the first pause. Each further pause is twice as long, up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_secs(5);
const LONGEST_PAUSE: Duration = Duration::from_secs(120);

/// Admits all calls until several fail in a row. Then it rejects calls for a pause, and afterwards admits one call at a
/// time until one succeeds.
#[derive(Debug, Default)]
pub(super) struct Breaker {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    n_failed: u32,
    pause: Duration,
    /// Calls are rejected before this time.
    closed_until: Option<Instant>,
}

impl Breaker {
    /// Admits a call, or returns the time to wait before the next attempt. After a pause, one trial call is admitted.
    /// Other calls wait until its result is recorded or another pause of the same length has passed.
    pub(super) fn admit(&self, now: Instant) -> Result<(), Duration> {
        let mut state = self.state.lock();
        match state.closed_until {
            Some(until) if until > now => Err(until - now),
            Some(_) => {
                state.closed_until = Some(now + state.pause);
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Records that the server responded, even with an error.
    pub(super) fn succeeded(&self) {
        *self.state.lock() = State::default();
    }

    /// Records a failure that would also affect other calls.
    pub(super) fn failed(&self, now: Instant) {
        let mut state = self.state.lock();
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
