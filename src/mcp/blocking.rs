//! Runs calls on blocking threads. This is the only transition from the asynchronous server to synchronous code.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::session::Result;

/// The outcome of a call.
#[derive(Debug)]
pub(crate) enum Outcome<T> {
    /// The call returned.
    Ended(Result<T>),
    /// The caller cancelled the call or disconnected; the work was interrupted.
    Cancelled,
    /// The call was interrupted at its time limit and returned no answer.
    TooLong,
    /// The call panicked with this message.
    Panicked(String),
}

/// Time for interrupted work to return.
const GRACE: Duration = Duration::from_secs(2);

/// Runs calls on blocking threads, with a limit on the number of concurrent calls.
#[derive(Clone)]
pub(crate) struct Blocking {
    permits: Arc<Semaphore>,
}

/// A permit to run as one of the concurrent calls. A call releases it while it only waits.
pub(crate) struct Permit {
    permits: Arc<Semaphore>,
    held: Mutex<Option<OwnedSemaphorePermit>>,
    runtime: Handle,
}

impl Permit {
    fn new(permits: &Arc<Semaphore>, permit: Option<OwnedSemaphorePermit>) -> Self {
        Self {
            permits: Arc::clone(permits),
            held: Mutex::new(permit),
            runtime: Handle::current(),
        }
    }

    /// Releases the permit while `wait` runs, and then waits until it gets a permit again.
    pub(crate) fn pause<T>(&self, wait: impl FnOnce() -> T) -> T {
        drop(self.hold(None));
        let waited = wait();
        // The semaphore is never closed. If it were, running without a limit would be better than failing every call.
        let permit = self.runtime.block_on(Arc::clone(&self.permits).acquire_owned());
        self.hold(permit.ok());
        waited
    }

    fn hold(&self, permit: Option<OwnedSemaphorePermit>) -> Option<OwnedSemaphorePermit> {
        std::mem::replace(&mut self.held.lock(), permit)
    }
}

/// Interrupts the work when dropped, which happens when nothing waits for its result any more.
struct InterruptOnDrop(Arc<AtomicBool>);

impl Drop for InterruptOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Blocking {
    /// Creates an executor that runs at most `n_at_once` calls concurrently.
    pub(crate) fn new(n_at_once: usize) -> Self {
        Self {
            permits: Arc::new(Semaphore::new(n_at_once)),
        }
    }

    /// Runs `work` until it returns or `gone` completes. The flag passed to `work` is set when the returned future is
    /// dropped or `limit` has passed. After that, `work` may still return a partial answer.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        gone: impl Future<Output = ()>,
        limit: Duration,
        work: impl FnOnce(&AtomicBool, &Permit) -> Result<T> + Send + 'static,
    ) -> Outcome<T> {
        let mut gone = std::pin::pin!(gone);
        let permit = tokio::select! {
            () = &mut gone => return Outcome::Cancelled,
            permit = Arc::clone(&self.permits).acquire_owned() => permit,
        };
        // The permit is held until the work has stopped, so that abandoned calls do not accumulate.
        let permit = Permit::new(&self.permits, permit.ok());
        let interrupt = Arc::new(AtomicBool::new(false));
        let _stop = InterruptOnDrop(Arc::clone(&interrupt));
        let flag = Arc::clone(&interrupt);
        let mut running =
            tokio::task::spawn_blocking(move || std::panic::catch_unwind(AssertUnwindSafe(|| work(&flag, &permit))));
        let time_over = async {
            tokio::time::sleep(limit).await;
            interrupt.store(true, Ordering::Relaxed);
            tokio::time::sleep(GRACE).await;
        };
        tokio::select! {
            () = gone => Outcome::Cancelled,
            () = time_over => Outcome::TooLong,
            ended = &mut running => match ended {
                Ok(Ok(Err(error))) if error.is_interrupted() => Outcome::TooLong,
                Ok(Ok(result)) => Outcome::Ended(result),
                Ok(Err(panic)) => Outcome::Panicked(message(panic.as_ref())),
                Err(error) => Outcome::Panicked(error.to_string()),
            },
        }
    }
}

fn message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "no message".to_owned())
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use std::sync::mpsc;

    use super::*;
    use crate::session::OpError;

    const LONG: Duration = Duration::from_secs(3600);

    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap()
    }

    #[test]
    fn a_panic_is_an_outcome() {
        let outcome = runtime().block_on(
            Blocking::new(1).run(std::future::pending(), LONG, |_, _| -> Result<()> {
                panic!("index out of {}", "bounds")
            }),
        );
        assert!(matches!(outcome, Outcome::Panicked(message) if message == "index out of bounds"));
    }

    #[test]
    fn time_limit_sets_the_interrupt_flag() {
        let work = |interrupt: &AtomicBool, _: &Permit| {
            while !interrupt.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
            Ok("in part")
        };
        let outcome = runtime().block_on(Blocking::new(1).run(std::future::pending(), Duration::from_millis(1), work));
        assert!(matches!(outcome, Outcome::Ended(Ok("in part"))));
    }

    #[test]
    fn paused_call_releases_its_permit() {
        let blocking = Blocking::new(1);
        let (answered, is_answered) = mpsc::channel();
        let (began, has_begun) = tokio::sync::oneshot::channel();
        let waiting = blocking.run(std::future::pending(), LONG, move |_, permit| {
            permit.pause(|| {
                began.send(()).unwrap();
                is_answered.recv_timeout(Duration::from_secs(60)).unwrap();
            });
            Ok(())
        });
        let other = async {
            has_begun.await.unwrap();
            let work = move |_: &AtomicBool, _: &Permit| {
                answered.send(()).unwrap();
                Ok(())
            };
            blocking.run(std::future::pending(), LONG, work).await
        };
        let (waited, other) = runtime().block_on(async { tokio::join!(waiting, other) });
        assert!(matches!(
            (waited, other),
            (Outcome::Ended(Ok(())), Outcome::Ended(Ok(())))
        ));
    }

    #[test]
    fn only_interrupted_work_was_too_long() {
        let end_with = |error: OpError| {
            let work = move |interrupt: &AtomicBool, _: &Permit| -> Result<()> {
                while !interrupt.load(Ordering::Relaxed) {
                    std::thread::yield_now();
                }
                Err(error)
            };
            runtime().block_on(Blocking::new(1).run(std::future::pending(), Duration::from_millis(1), work))
        };
        assert!(matches!(end_with(OpError::interrupted()), Outcome::TooLong));
        assert!(matches!(
            end_with(OpError::failed("no such file")),
            Outcome::Ended(Err(_))
        ));
    }

    #[test]
    fn cancelled_call_interrupts_its_work() {
        let (began, has_begun) = mpsc::channel();
        let (stopped, has_stopped) = mpsc::channel();
        let (leave, gone) = tokio::sync::oneshot::channel::<()>();
        let blocking = Blocking::new(1);
        let work = move |interrupt: &AtomicBool, _: &Permit| {
            began.send(()).unwrap();
            while !interrupt.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
            stopped.send(()).unwrap();
            Ok(())
        };
        let outcome = runtime().block_on(async {
            std::thread::spawn(move || {
                has_begun.recv().unwrap();
                leave.send(()).unwrap();
            });
            blocking.run(async { gone.await.unwrap() }, LONG, work).await
        });
        assert!(matches!(outcome, Outcome::Cancelled));
        has_stopped.recv_timeout(Duration::from_secs(10)).unwrap();
    }
}
