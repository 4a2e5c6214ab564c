//! The long mode, which alone measures time and memory: both depend on what else the machine does.

use std::time::{Duration, Instant};

/// Whether this is a long run.
pub(crate) fn is_long() -> bool {
    std::env::var_os("CODESCOUT_LONG_TESTS").is_some()
}

/// Fails a long run if more than `limit` has passed since `started`.
#[track_caller]
pub(crate) fn assert_within(limit: Duration, started: Instant, what: &str) {
    let took = started.elapsed();
    assert!(!is_long() || took < limit, "{what}: {took:?}");
}
