//! The long mode of tests. Only this mode measures time and memory, because both depend on other work on the machine.

use std::time::{Duration, Instant};

use proptest::test_runner::{Config as ProptestConfig, RngSeed};

/// Returns true in a long run.
pub(crate) fn is_long() -> bool {
    std::env::var_os("CODESCOUT_LONG_TESTS").is_some()
}

/// Returns the settings of a property test. A default run tests the same `n_cases` inputs each time, a long run ten times
/// as many random ones.
pub(crate) fn properties(n_cases: u32) -> ProptestConfig {
    let (cases, rng_seed) = if is_long() {
        (10 * n_cases, RngSeed::Random)
    } else {
        (n_cases, RngSeed::Fixed(20_261_120))
    };
    ProptestConfig {
        cases,
        rng_seed,
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

/// In a long run, fails if more than `limit` has passed since `started`.
#[track_caller]
pub(crate) fn assert_within(limit: Duration, started: Instant, what: &str) {
    let took = started.elapsed();
    assert!(!is_long() || took < limit, "{what}: {took:?}");
}
