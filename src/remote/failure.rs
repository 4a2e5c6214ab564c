//! Errors of remote calls, with hints for the user.

use std::error::Error;
use std::time::Duration;

/// Maximum number of characters of a response that are quoted in an error.
const EXCERPT_CHARS: usize = 200;

/// An error from a call to a server.
#[derive(Debug, thiserror::Error)]
#[error("{host}: {failure}")]
pub struct RemoteError {
    /// Host and port of the server.
    pub host: String,
    /// Failure of the last attempt.
    pub failure: Failure,
    /// Number of requests sent.
    pub n_requests: u32,
}

/// The cause of a [`RemoteError`].
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The interrupt flag was set.
    #[error("interrupted")]
    Interrupted,
    /// The deadline of the call passed.
    #[error("no answer within {} ms", .within.as_millis())]
    DeadlinePassed {
        /// Time waited.
        within: Duration,
    },
    /// The request was not sent, because the server failed several times in a row and the breaker is open.
    #[error("skipped after {} failures in a row; next attempt in {} s", 3, .again_in.as_secs().max(1))]
    BreakerOpen {
        /// Time until the next attempt.
        again_in: Duration,
    },
    /// The request was not sent, because the server asked for a pause that ends after the call's deadline.
    #[error("skipped because the server asked for a pause; next attempt in {} s", .again_in.as_secs().max(1))]
    Paused {
        /// Time until the pause ends.
        again_in: Duration,
    },
    /// No connection could be made.
    #[error("no connection: {what}")]
    Unreachable {
        /// Cause reported by the operating system.
        what: String,
    },
    /// The request timed out.
    #[error("request timed out after {} ms", .within.as_millis())]
    Slow {
        /// The timeout.
        within: Duration,
    },
    /// The connection ended before the response was complete.
    #[error("connection lost: {what}")]
    Broken {
        /// Cause reported by the operating system.
        what: String,
    },
    /// The server returned an error status.
    #[error("status {status}{}{}", for_path(*.status, .path), quoted(.excerpt))]
    Status {
        /// The status code.
        status: u16,
        /// Path of the request.
        path: String,
        /// The beginning of the response.
        excerpt: String,
        /// The pause that the server asked for, if any.
        retry_after: Option<Duration>,
    },
    /// The response exceeds the size of any valid response.
    #[error("response larger than {max_bytes} bytes")]
    TooLarge {
        /// The limit.
        max_bytes: u64,
    },
    /// The response does not have the expected form.
    #[error("the response is not the JSON that was expected: {what}{}", quoted(.excerpt))]
    NotJson {
        /// The parse error.
        what: String,
        /// The beginning of the response.
        excerpt: String,
    },
    /// The request could not be built.
    #[error("cannot make the request: {what}")]
    Request {
        /// The reason.
        what: String,
    },
}

/// An error message with a hint.
#[derive(Debug, thiserror::Error)]
#[error("{text}")]
pub(super) struct Hinted {
    text: String,
    is_about_key: bool,
}

impl Hinted {
    /// Creates an error with the message `text` followed by `hint` in parentheses.
    pub(super) fn boxed(
        error: &RemoteError,
        mut text: String,
        hint: Option<&'static str>,
    ) -> Box<dyn Error + Send + Sync> {
        if let Some(hint) = hint {
            text.push_str(&format!(" ({hint})"));
        }
        let is_about_key = matches!(error.status(), Some(401 | 403));
        Box::new(Self { text, is_about_key })
    }
}

/// Returns true if a server responded that the key is missing, wrong or lacks rights.
pub fn is_about_key(error: &(dyn Error + 'static)) -> bool {
    let mut causes = std::iter::successors(Some(error), |cause| (*cause).source());
    causes.any(|cause| cause.downcast_ref::<Hinted>().is_some_and(|hinted| hinted.is_about_key))
}

impl RemoteError {
    /// Returns the error status of the server, if it sent one.
    pub fn status(&self) -> Option<u16> {
        match self.failure {
            Failure::Status { status, .. } => Some(status),
            _ => None,
        }
    }

    /// Returns true if the server rejected the texts: too many, too long, or one of them invalid.
    pub(super) fn rejects_texts(&self) -> bool {
        matches!(self.status(), Some(400 | 413 | 422))
    }

    /// Returns true if the same call may succeed later.
    pub fn is_temporary(&self) -> bool {
        self.failure.is_temporary()
            || matches!(
                self.failure,
                Failure::DeadlinePassed { .. }
                    | Failure::Slow { .. }
                    | Failure::BreakerOpen { .. }
                    | Failure::Paused { .. }
            )
    }

    /// Converts the failure and its hint to the source of an error. The outer error names the host.
    pub(super) fn with_hint(self) -> Box<dyn Error + Send + Sync> {
        let (text, hint) = (self.failure.to_string(), self.hint());
        Hinted::boxed(&self, text, hint)
    }

    /// Returns a suggestion for the user, if there is one for this failure.
    pub fn hint(&self) -> Option<&'static str> {
        Some(match &self.failure {
            Failure::Unreachable { .. } => "is the server running, and are host and port right?",
            Failure::Broken { .. }
            | Failure::DeadlinePassed { .. }
            | Failure::BreakerOpen { .. }
            | Failure::Paused { .. } => "is the server overloaded? codescout retries later",
            Failure::Slow { .. } => "is the server overloaded? if it is only slow, set a longer timeout_s",
            Failure::Status { status: 401 | 403, .. } => {
                "the key is missing, wrong or lacks rights: see the server's key settings"
            }
            Failure::Status { status: 404 | 405, .. } => {
                "check the address: the API's path is appended to it, and some servers need /v1 at its end; check \
                 the model name too"
            }
            Failure::Status { status: 413, .. } => "the request is too large for the server: set a smaller batch",
            Failure::Status { status: 424, .. } => "check that the server runs a model of the right kind",
            Failure::Status { status: 429, .. } => "the server limits the request rate: set a smaller in_flight",
            Failure::Status { status: 300..=399, .. } => {
                "redirects are not followed: set the address of the redirect target"
            }
            Failure::NotJson { .. } | Failure::TooLarge { .. } => {
                "check that the address is the server's API and not a web page or proxy"
            }
            _ => return None,
        })
    }
}

impl Failure {
    /// Returns true if a retry after a short pause may succeed.
    pub(super) fn is_temporary(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::Broken { .. } => true,
            Self::Status { status, .. } => matches!(status, 408 | 429 | 502 | 503 | 504),
            _ => false,
        }
    }
}

/// Returns the beginning of a response on one line, with control characters escaped.
pub(super) fn excerpt(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(4 * EXCERPT_CHARS)]);
    let mut excerpt = String::new();
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for character in words.chars().take(EXCERPT_CHARS) {
        if character.is_control() || is_directional(character) {
            excerpt.extend(character.escape_unicode())
        } else {
            excerpt.push(character)
        }
    }
    if words.chars().count() > EXCERPT_CHARS || bytes.len() > 4 * EXCERPT_CHARS {
        excerpt.push('…');
    }
    excerpt
}

/// Returns true for characters that change the display order of the following text.
fn is_directional(character: char) -> bool {
    matches!(character, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Returns ` for PATH` if a wrong path can cause the status.
fn for_path(status: u16, path: &str) -> String {
    match status {
        404 | 405 => format!(" for {path}"),
        _ => String::new(),
    }
}

fn quoted(excerpt: &str) -> String {
    if excerpt.is_empty() {
        String::new()
    } else {
        format!(": \"{excerpt}\"")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn excerpts_are_short_and_harmless() {
        assert_eq!(excerpt(b"<html>\r\n  <b>No\x1b[2J</b>"), "<html> <b>No\\u{1b}[2J</b>");
        let long = excerpt(&[b'x'; 5000]);
        assert_eq!((long.chars().count(), long.ends_with('…')), (EXCERPT_CHARS + 1, true));
        assert_eq!(excerpt("a\u{202e}b".as_bytes()), "a\\u{202e}b");
    }
}
