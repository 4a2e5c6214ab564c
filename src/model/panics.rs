//! Panics of libraries that are expected on some content, and are errors for the caller.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

thread_local! {
    static IS_EXPECTED: Cell<bool> = const { Cell::new(false) };
}

/// Runs code of a library. Returns `None` if it panics, which is not reported.
pub fn caught<T>(run: impl FnOnce() -> T) -> Option<T> {
    let before = IS_EXPECTED.replace(true);
    let ended = catch_unwind(AssertUnwindSafe(run)).ok();
    IS_EXPECTED.set(before);
    ended
}

/// Returns true inside of [`caught`], on the same thread.
pub fn is_expected() -> bool {
    IS_EXPECTED.get()
}
