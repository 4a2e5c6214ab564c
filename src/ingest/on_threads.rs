//! Waits for several answers at once.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Hands each of `items` to `act`, on so many threads, until there are no more or a call says to stop; what is in the works then is
/// waited for.
pub(super) fn on_threads<T: Sync>(items: &[T], n_threads: usize, act: impl Fn(&T) -> ControlFlow<()> + Sync) {
    let (next, is_over) = (AtomicUsize::new(0), AtomicBool::new(false));
    let work = || {
        while !is_over.load(Ordering::Relaxed)
            && let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed))
        {
            if act(item).is_break() {
                is_over.store(true, Ordering::Relaxed);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..n_threads.min(items.len()) {
            let builder = std::thread::Builder::new().name("share".to_owned());
            if let Err(error) = builder.spawn_scoped(scope, work) {
                // Fewer will do.
                tracing::debug!(%error, "no further thread");
            }
        }
        work();
    });
}
