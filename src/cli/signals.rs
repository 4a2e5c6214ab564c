//! Requests to end: the first is noted, and long work stops at the next safe place; the second ends the
//! process, as the first does when nothing is under way.

use std::io::{self, IsTerminal};
use std::sync::atomic::{AtomicU8, Ordering};

use tokio::signal::unix::{Signal, SignalKind, signal};

use super::{IDLE, INTERRUPTED, render};

/// What a shell reports of a process that a signal has ended: 128 and its number.
static EXIT_CODE: AtomicU8 = AtomicU8::new(130);

/// Listens for Ctrl-C and for requests to end, for as long as the process lives. Without listeners either ends the process at
/// once, which loses nothing that was published; so a failure is no failure.
pub(super) fn catch() {
    if let Err(error) = listen() {
        tracing::debug!(%error, "no handler for signals");
    }
}

/// The exit code of a run that was asked to end.
pub(super) fn exit_code() -> u8 {
    EXIT_CODE.load(Ordering::Relaxed)
}

fn listen() -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let (interrupt, terminate, hangup) = {
        let _context = runtime.enter();
        (
            signal(SignalKind::interrupt())?,
            signal(SignalKind::terminate())?,
            signal(SignalKind::hangup())?,
        )
    };
    std::thread::Builder::new()
        .name("signals".to_owned())
        .spawn(move || runtime.block_on(note(interrupt, terminate, hangup)))?;
    Ok(())
}

async fn note(mut interrupt: Signal, mut terminate: Signal, mut hangup: Signal) {
    loop {
        let code = tokio::select! {
            Some(()) = interrupt.recv() => 130,
            Some(()) = terminate.recv() => 143,
            Some(()) = hangup.recv() => 129,
            else => return,
        };
        EXIT_CODE.store(code, Ordering::Relaxed);
        if INTERRUPTED.swap(true, Ordering::SeqCst) || IDLE.load(Ordering::SeqCst) {
            std::process::exit(i32::from(code));
        }
        if std::io::stderr().is_terminal() {
            render::note("stopping, and keeping what is done; once more to stop at once");
        }
    }
}
