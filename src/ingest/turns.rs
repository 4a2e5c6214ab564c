//! A counting semaphore.

use parking_lot::{Condvar, Mutex};

/// Limits the number of threads that execute a section at the same time.
pub(super) struct Turns {
    n_free: Mutex<usize>,
    freed: Condvar,
}

/// A permit, released when dropped.
pub(super) struct Turn<'a> {
    turns: &'a Turns,
}

impl Turns {
    pub(super) fn new(n: usize) -> Self {
        Self {
            n_free: Mutex::new(n),
            freed: Condvar::new(),
        }
    }

    /// Waits for a permit.
    pub(super) fn take(&self) -> Turn<'_> {
        let mut n_free = self.n_free.lock();
        self.freed.wait_while(&mut n_free, |n_free| *n_free == 0);
        *n_free -= 1;
        Turn { turns: self }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        *self.turns.n_free.lock() += 1;
        self.turns.freed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn limits_concurrency_and_completes_all() {
        let (turns, n_now, n_most) = (Turns::new(3), AtomicUsize::new(0), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        let _turn = turns.take();
                        n_most.fetch_max(n_now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                        std::thread::yield_now();
                        n_now.fetch_sub(1, Ordering::SeqCst);
                    }
                });
            }
        });
        assert!(n_most.into_inner() <= 3);
        assert_eq!(turns.n_free.into_inner(), 3);
    }
}
