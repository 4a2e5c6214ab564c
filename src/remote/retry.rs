//! Computes the pauses between retries.

use std::time::{Duration, Instant};

use jiff::fmt::rfc2822::DateTimeParser;
use parking_lot::Mutex;

/// Maximum length of the first pause. The maximum doubles for each further pause, up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// Maximum length of a pause requested by a server.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(60);

/// A pause requested by the server. It applies to all calls of a client.
#[derive(Debug, Default)]
pub(super) struct Hold {
    not_before: Mutex<Option<Instant>>,
}

impl Hold {
    /// Delays all calls until the time `until`, or longer if a longer pause is in effect.
    pub(super) fn until(&self, until: Instant) {
        let mut held = self.not_before.lock();
        *held = Some(held.map_or(until, |held| held.max(until)));
    }

    /// Returns the earliest time for the next request; `None` if there is no pause.
    pub(super) fn not_before(&self) -> Option<Instant> {
        *self.not_before.lock()
    }
}

/// Returns the pause before attempt `n_tried` + 1: a random time below an exponentially growing limit, so that clients
/// do not retry at the same moment. Source: Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog, 2015:
/// full jitter.
///
/// A pause requested by the server, limited to [`MAX_RETRY_AFTER`], is added to the random time.
pub(super) fn pause(n_tried: u32, asked: Option<Duration>) -> Duration {
    let limit = FIRST_PAUSE
        .saturating_mul(1 << n_tried.saturating_sub(1).min(16))
        .min(LONGEST_PAUSE);
    let jittered = limit.mul_f64(random_share());
    asked.map_or(jittered, |asked| asked.min(MAX_RETRY_AFTER) + jittered)
}

/// Parses a `Retry-After` header: seconds, or a date. Source: RFC 9110, section 10.2.3.
pub(super) fn retry_after_pause(header: &str, now_seconds: i64) -> Option<Duration> {
    let header = header.trim();
    if let Ok(seconds) = header.parse::<u64>() {
        return Some(Duration::from_secs(seconds));
    }
    // HTTP dates have the format of RFC 2822 with `GMT` as the zone. The obsolete formats are not supported.
    let at = DateTimeParser::new().parse_timestamp(header).ok()?.as_second();
    Some(Duration::from_secs(u64::try_from(at - now_seconds).unwrap_or(0)))
}

/// Returns a random number from 0 to 1.
fn random_share() -> f64 {
    crate::model::random_bytes().map_or(0.5, |bytes| f64::from(u32::from_le_bytes(bytes)) / f64::from(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_may_ask_for_seconds_or_a_moment() {
        assert_eq!(retry_after_pause(" 7 ", 0), Some(Duration::from_secs(7)));
        let date = "Sun, 06 Nov 1994 08:49:37 GMT";
        assert_eq!(retry_after_pause(date, 784_111_777 - 5), Some(Duration::from_secs(5)));
        assert_eq!(retry_after_pause(date, 784_111_777 + 5), Some(Duration::ZERO));
        for odd in [
            "",
            "soon",
            "-3",
            "1.5",
            "Sun, 06 Nov 1994",
            "Sun, 99 Foo 1994 08:49:37 GMT",
        ] {
            assert_eq!(retry_after_pause(odd, 0), None, "{odd}");
        }
    }

    #[test]
    fn pauses_grow_are_random_and_bounded() {
        for n_tried in 1..40 {
            let limit = FIRST_PAUSE
                .saturating_mul(1 << (n_tried - 1).min(16))
                .min(LONGEST_PAUSE);
            assert!(pause(n_tried, None) <= limit);
        }
        let some: Vec<Duration> = (0..8).map(|_| pause(9, None)).collect();
        assert!(some.iter().any(|pause| *pause != some[0]), "{some:?}");
        let asked = pause(1, Some(Duration::from_secs(3600)));
        assert!(asked >= MAX_RETRY_AFTER && asked <= MAX_RETRY_AFTER + FIRST_PAUSE);
    }
}
