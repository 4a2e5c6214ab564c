//! Reads standard input without blocking signals.

use std::io;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use super::INTERRUPTED;

/// Runs `read` on a separate thread, so that an interrupt takes effect while it waits for input.
pub(super) fn read_input<T: Send + 'static>(read: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
    const TICK: Duration = Duration::from_millis(50);
    let (send, received) = mpsc::channel();
    std::thread::Builder::new().name("input".to_owned()).spawn(move || {
        // Sending fails after an interrupt, because the receiver no longer exists.
        let _ = send.send(read());
    })?;
    loop {
        match received.recv_timeout(TICK) {
            Ok(read) => return read,
            Err(RecvTimeoutError::Timeout) if !INTERRUPTED.load(Ordering::SeqCst) => {}
            Err(_) => return Err(io::Error::other("interrupted")),
        }
    }
}

/// Reads one line from standard input.
pub(super) fn read_line() -> io::Result<String> {
    read_input(|| {
        let mut line = String::new();
        io::stdin().read_line(&mut line)?;
        Ok(line)
    })
}
