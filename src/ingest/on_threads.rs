//! Processes items on several threads, for work that mostly waits for responses.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use parking_lot::Mutex;

use crate::model::Ctx;

/// Calls `act` for each of `batches` on `n_threads` threads until a call fails or `interrupt` is set. Returns the first
/// error. Reports one step of progress for each entry of a batch.
pub(super) fn try_batches<T: Sync, E: Send>(
    batches: &[&[T]],
    n_threads: usize,
    ctx: Ctx<'_>,
    act: impl Fn(&[T]) -> Result<(), E> + Sync,
) -> Result<(), E> {
    let failure = Mutex::new(None);
    on_threads(batches, n_threads, |batch| {
        if ctx.is_interrupted() {
            return ControlFlow::Break(());
        }
        let done = act(batch);
        batch.iter().for_each(|_| ctx.progress.advance(0));
        let Err(error) = done else {
            return ControlFlow::Continue(());
        };
        let mut failure = failure.lock();
        failure.get_or_insert(error);
        ControlFlow::Break(())
    });
    let failure = failure.into_inner();
    failure.map_or(Ok(()), Err)
}

/// Calls `act` for each of `items` on `n_threads` threads until there are no more or a call returns `Break`. Then waits
/// for running calls.
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
                // The work continues with fewer threads.
                tracing::debug!(%error, "cannot start another thread");
            }
        }
        work();
    });
}
