//! Handles SIGINT, SIGTERM and SIGHUP. The first signal sets a flag, and long operations stop at the next safe point.
//! The second signal, or a first signal while no operation is running, ends the process immediately. So does a parser
//! that works on after the first signal: an operation cannot stop before it has the answer.

use std::io::{self, IsTerminal};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};

use super::pager::IS_PAGING;
use super::{IDLE, INTERRUPTED, render};
use crate::artifact::waits_for_worker;

/// Time that a parser has after a signal.
const PARSER_GRACE: Duration = Duration::from_millis(300);
/// Time between looks at the parsers after it.
const PARSER_CHECK: Duration = Duration::from_millis(50);

/// True for a server, whose other calls go on.
pub(super) static IS_SERVER: AtomicBool = AtomicBool::new(false);
/// The exit code after a signal: 128 plus the number of the signal, as in a shell.
static EXIT_CODE: AtomicU8 = AtomicU8::new(130);

/// Starts the signal handlers, which run until the process ends. A failure is only logged: without handlers a signal
/// ends the process immediately, and published data is not lost.
pub(super) fn catch() {
    if let Err(error) = listen() {
        tracing::debug!(%error, "no handler for signals");
    }
}

/// Returns the exit code of an interrupted run.
pub(super) fn exit_code() -> u8 {
    EXIT_CODE.load(Ordering::Relaxed)
}

fn listen() -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
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
    let mut grace = PARSER_GRACE;
    loop {
        let code = tokio::select! {
            Some(()) = interrupt.recv() => 130,
            Some(()) = terminate.recv() => 143,
            Some(()) = hangup.recv() => 129,
            () = tokio::time::sleep(grace), if INTERRUPTED.load(Ordering::SeqCst) => {
                if waits_for_worker() && !IS_PAGING.load(Ordering::SeqCst) && !IS_SERVER.load(Ordering::Relaxed) {
                    std::process::exit(i32::from(exit_code()));
                }
                grace = PARSER_CHECK;
                continue;
            }
            else => return,
        };
        EXIT_CODE.store(code, Ordering::Relaxed);
        if code == 130 && IS_PAGING.load(Ordering::SeqCst) {
            // The pager receives Ctrl-C too, and would be left without a terminal if this process ended first.
            INTERRUPTED.store(true, Ordering::SeqCst);
            continue;
        }
        if INTERRUPTED.swap(true, Ordering::SeqCst) || IDLE.load(Ordering::SeqCst) {
            std::process::exit(i32::from(code));
        }
        if std::io::stderr().is_terminal() {
            render::note("stopping and saving the work done so far; press Ctrl-C again to stop at once");
        }
    }
}
