//! Waiting for what another thread or process does. The limit ends a test that would hang; no test depends on how long it waits.

use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_secs(120);
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// Waits until `holds` returns true. Fails the test if it never does.
#[track_caller]
pub(crate) fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < LIMIT, "waited in vain until {what}");
        std::thread::sleep(LOOK_EVERY);
    }
}

/// Waits for the end of `child`. Kills it and fails the test if it does not end.
#[track_caller]
pub(crate) fn wait_for_end(child: &mut Child) -> ExitStatus {
    let began = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        if began.elapsed() > LIMIT {
            let _ = child.kill();
            let _ = child.wait();
            panic!("the process does not end");
        }
        std::thread::sleep(LOOK_EVERY);
    }
}
