//! Waits for several answers at once.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use super::progress::Progress;

/// Hands each of `batches` to `act`, on so many threads, until one fails or `interrupt` is set. Returns the first failure. Progress
/// advances by a step for each entry.
pub(super) fn try_batches<T: Sync, E: Send>(
    batches: &[&[T]],
    n_threads: usize,
    progress: &dyn Progress,
    interrupt: &AtomicBool,
    act: impl Fn(&[T]) -> Result<(), E> + Sync,
) -> Result<(), E> {
    let failure = Mutex::new(None);
    on_threads(batches, n_threads, |batch| {
        if interrupt.load(Ordering::Relaxed) {
            return ControlFlow::Break(());
        }
        let done = act(batch);
        batch.iter().for_each(|_| progress.advance(0));
        let Err(error) = done else {
            return ControlFlow::Continue(());
        };
        let mut failure = failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure.get_or_insert(error);
        ControlFlow::Break(())
    });
    let failure = failure.into_inner().unwrap_or_else(PoisonError::into_inner);
    failure.map_or(Ok(()), Err)
}

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
