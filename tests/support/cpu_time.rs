//! Measures time that other work on the machine does not affect.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

/// Returns the CPU time of this thread (on Linux, the first field of its schedstat), or else the time since the first
/// call.
pub(crate) fn cpu_time() -> Duration {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    let schedstat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let on_cpu = schedstat.split(' ').next().and_then(|field| field.parse().ok());
    on_cpu.map_or_else(|| START.elapsed(), Duration::from_nanos)
}
