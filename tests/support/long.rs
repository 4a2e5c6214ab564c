//! The long mode of tests. Only this mode measures time and memory, because both depend on other work on the machine.

use std::time::{Duration, Instant};

/// Returns true in a long run.
pub(crate) fn is_long() -> bool {
    std::env::var_os("CODESCOUT_LONG_TESTS").is_some()
}

/// In a long run, fails if more than `limit` has passed since `started`.
#[track_caller]
pub(crate) fn assert_within(limit: Duration, started: Instant, what: &str) {
    let took = started.elapsed();
    assert!(!is_long() || took < limit, "{what}: {took:?}");
}
