//! Decides from the messages of a server when it may be asked.
//!
//! A server that answers may still have read half of the project. So it is asked only after it has sent its signal, all
//! progress has ended, and nothing has changed for a time. [`Project`](super::project::Project) then looks for
//! references that are known.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::servers::Signal;

/// Time without changes after which a server may be asked.
pub(super) const SETTLE: Duration = Duration::from_millis(500);
/// Time after the start at which a server that never reports progress may be asked if no reference is known.
const SILENT_START: Duration = Duration::from_secs(5);
/// Limit on progress at the same time. A server that begins more of it is never ready.
const MAX_PROGRESS: usize = 1000;

/// What a server has reported so far.
#[derive(Debug)]
pub(super) struct Readiness {
    signal: Signal,
    initialized: Option<Instant>,
    /// Progress by token, with its latest text.
    active: BTreeMap<String, String>,
    has_signalled: bool,
    is_busy: bool,
    last_change: Instant,
}

/// A step of progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Begin,
    Report,
    End,
}

impl Readiness {
    pub(super) fn new(signal: Signal, now: Instant) -> Self {
        Self {
            signal,
            initialized: None,
            active: BTreeMap::new(),
            has_signalled: false,
            is_busy: false,
            last_change: now,
        }
    }

    /// The handshake is done.
    pub(super) fn initialized(&mut self, now: Instant) {
        self.initialized = Some(now);
        self.last_change = now;
    }

    /// The server has been informed of changed files.
    pub(super) fn changed(&mut self, now: Instant) {
        self.last_change = now;
    }

    pub(super) fn progress(&mut self, token: &str, step: Step, text: String, now: Instant) {
        self.last_change = now;
        if step == Step::End {
            self.has_signalled |= self.active.remove(token).is_some() && self.signal == Signal::Progress;
        } else if self.active.contains_key(token) || step == Step::Begin && self.active.len() < MAX_PROGRESS {
            self.active.insert(token.to_owned(), text);
        }
    }

    /// The server has said that it has nothing left to do, or that it does something.
    pub(super) fn quiescent(&mut self, is_quiescent: bool, now: Instant) {
        self.has_signalled |= is_quiescent && self.signal == Signal::Quiescent;
        self.is_busy = !is_quiescent;
        self.last_change = now;
    }

    pub(super) fn notification(&mut self, method: &str, parameters: &str, now: Instant) {
        if let Signal::Notification(wanted, part) = self.signal
            && wanted == method
            && parameters.contains(part)
        {
            self.has_signalled = true;
            self.last_change = now;
        }
    }

    /// Returns true if the server may be asked. `knows_reference` is true if the answer can be compared with a reference
    /// that is known.
    pub(super) fn may_be_asked(&self, knows_reference: bool, now: Instant) -> bool {
        let Some(initialized) = self.initialized else {
            return false;
        };
        let has_signalled = match self.signal {
            Signal::Progress => self.has_signalled || knows_reference,
            Signal::Nothing => knows_reference || now.duration_since(initialized) >= SILENT_START,
            Signal::Quiescent | Signal::Notification(..) => self.has_signalled,
        };
        has_signalled && !self.is_busy && self.active.is_empty() && now.duration_since(self.last_change) >= SETTLE
    }

    /// Describes what the server does.
    pub(super) fn state(&self) -> String {
        match (self.initialized, self.active.values().next()) {
            (None, _) => "starting".to_owned(),
            (_, Some(text)) if !text.is_empty() => format!("indexing: {text}"),
            _ => "indexing".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a server that was initialized at the returned time.
    fn started(signal: Signal) -> (Readiness, Instant) {
        let now = Instant::now();
        let mut readiness = Readiness::new(signal, now);
        assert!(!readiness.may_be_asked(true, now + SILENT_START), "not initialized");
        assert_eq!(readiness.state(), "starting");
        readiness.initialized(now);
        assert!(!readiness.may_be_asked(true, now), "not settled");
        (readiness, now)
    }

    #[test]
    fn progress_must_end_and_settle() {
        let (mut server, now) = started(Signal::Progress);
        assert!(server.may_be_asked(true, now + SETTLE));
        assert!(!server.may_be_asked(false, now + 100 * SETTLE), "has not begun");
        server.progress("1", Step::Begin, "roots".to_owned(), now);
        server.progress("2", Step::Begin, String::new(), now);
        server.progress("1", Step::End, String::new(), now);
        assert!(!server.may_be_asked(true, now + SETTLE));
        server.progress("2", Step::Report, "40 %".to_owned(), now);
        assert_eq!(server.state(), "indexing: 40 %");
        server.progress("2", Step::End, String::new(), now + SETTLE);
        assert!(!server.may_be_asked(false, now + SETTLE));
        assert!(server.may_be_asked(false, now + 2 * SETTLE));
        server.progress("3", Step::Report, String::new(), now);
        assert!(
            server.may_be_asked(false, now + 2 * SETTLE),
            "what never began is no progress"
        );
    }

    #[test]
    fn signals_are_waited_for_even_if_a_reference_is_known() {
        let (mut server, now) = started(Signal::Quiescent);
        server.progress("1", Step::Begin, String::new(), now);
        server.progress("1", Step::End, String::new(), now);
        assert!(!server.may_be_asked(true, now + SETTLE));
        server.quiescent(true, now);
        assert!(server.may_be_asked(false, now + SETTLE));
        server.quiescent(false, now);
        assert!(!server.may_be_asked(true, now + SETTLE));

        let (mut server, now) = started(Signal::Notification("language/status", "Ready"));
        server.notification("language/status", "Starting", now);
        assert!(!server.may_be_asked(true, now + SETTLE));
        server.notification("language/status", "ServiceReady", now);
        assert!(server.may_be_asked(false, now + SETTLE));
    }

    #[test]
    fn silent_servers_get_time_unless_a_reference_is_known() {
        let (mut server, now) = started(Signal::Nothing);
        assert!(server.may_be_asked(true, now + SETTLE));
        assert!(!server.may_be_asked(false, now + SETTLE));
        assert!(server.may_be_asked(false, now + SILENT_START));
        server.changed(now + SILENT_START);
        assert!(!server.may_be_asked(true, now + SILENT_START));
    }
}
