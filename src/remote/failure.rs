//! What can go wrong with a call, and what to do about it.

use std::error::Error;
use std::time::Duration;

/// Characters of an answer that are quoted.
const EXCERPT_CHARS: usize = 200;

/// Why a call to a server brought nothing.
#[derive(Debug, thiserror::Error)]
#[error("{host}: {failure}")]
pub struct RemoteError {
    /// Host and port of the server.
    pub host: String,
    /// What happened, after the last try.
    pub failure: Failure,
    /// How many requests were sent.
    pub n_requests: u32,
}

/// What happened.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The caller's flag was set.
    #[error("interrupted")]
    Interrupted,
    /// The caller's time was over.
    #[error("no answer within {} ms", .within.as_millis())]
    TooLate {
        /// How long it was waited for.
        within: Duration,
    },
    /// It failed several times lately and is left alone.
    #[error("not asked, as it failed {} times in a row; next try in {} s", 3, .again_in.as_secs().max(1))]
    LeftAlone {
        /// When it is tried again.
        again_in: Duration,
    },
    /// It asked for a pause, which lasts longer than the caller's time.
    #[error("not asked, as it asked for a pause; next try in {} s", .again_in.as_secs().max(1))]
    Paused {
        /// When it is over.
        again_in: Duration,
    },
    /// No connection.
    #[error("no connection: {what}")]
    Unreachable {
        /// What the system said.
        what: String,
    },
    /// The request had all its time.
    #[error("no answer within {} ms", .within.as_millis())]
    Slow {
        /// How long that was.
        within: Duration,
    },
    /// The connection ended.
    #[error("the answer broke off: {what}")]
    Broken {
        /// What the system said.
        what: String,
    },
    /// It answered that it will not.
    #[error("status {status}{}{}", for_path(*.status, .path), quoted(.excerpt))]
    Status {
        /// Of the answer.
        status: u16,
        /// What was asked for.
        path: String,
        /// The beginning of what it said.
        excerpt: String,
        /// What it asked for, if it asked for a pause.
        retry_after: Option<Duration>,
    },
    /// The answer is longer than any that was asked for.
    #[error("an answer of more than {max_bytes} bytes")]
    TooLarge {
        /// The limit.
        max_bytes: u64,
    },
    /// The answer is not what was asked for.
    #[error("the answer is not the JSON that was expected: {what}{}", quoted(.excerpt))]
    NotJson {
        /// Where it goes wrong.
        what: String,
        /// Its beginning.
        excerpt: String,
    },
    /// No request could be made of it.
    #[error("cannot make the request: {what}")]
    Request {
        /// What is wrong.
        what: String,
    },
}

/// A failure in words, with a hint.
#[derive(Debug, thiserror::Error)]
#[error("{told}")]
pub(super) struct OpError {
    told: String,
    is_about_key: bool,
}

impl OpError {
    /// `told`, the words for `error`, with `hint` in parentheses.
    pub(super) fn boxed(
        error: &RemoteError,
        mut told: String,
        hint: Option<&'static str>,
    ) -> Box<dyn Error + Send + Sync> {
        if let Some(hint) = hint {
            told.push_str(&format!(" ({hint})"));
        }
        let is_about_key = matches!(error.status(), Some(401 | 403));
        Box::new(Self { told, is_about_key })
    }
}

/// Returns true if a server answered that the key is missing or wrong, or lacks the right; false if it could not be reached.
pub fn is_about_key(error: &(dyn Error + 'static)) -> bool {
    let mut causes = std::iter::successors(Some(error), |cause| (*cause).source());
    causes.any(|cause| {
        cause
            .downcast_ref::<OpError>()
            .is_some_and(|hinted| hinted.is_about_key)
    })
}

impl RemoteError {
    /// The status, if the server answered with one that is a failure.
    pub fn status(&self) -> Option<u16> {
        match self.failure {
            Failure::Status { status, .. } => Some(status),
            _ => None,
        }
    }

    /// Whether the server has something against the texts: that they are too many, too long, or one of them wrong.
    pub(super) fn is_about_texts(&self) -> bool {
        matches!(self.status(), Some(400 | 413 | 422))
    }

    /// Whether the same call may succeed later.
    pub fn is_temporary(&self) -> bool {
        self.failure.is_temporary()
            || matches!(
                self.failure,
                Failure::TooLate { .. } | Failure::Slow { .. } | Failure::LeftAlone { .. } | Failure::Paused { .. }
            )
    }

    /// The failure as a cause of an error that names the host, with what to do next.
    pub(super) fn with_hint(self) -> Box<dyn Error + Send + Sync> {
        let (told, hint) = (self.failure.to_string(), self.hint());
        OpError::boxed(&self, told, hint)
    }

    /// What to do next, where that can be told.
    pub fn hint(&self) -> Option<&'static str> {
        Some(match &self.failure {
            Failure::Unreachable { .. } => "is the server running, and are host and port right?",
            Failure::Broken { .. } | Failure::TooLate { .. } | Failure::LeftAlone { .. } | Failure::Paused { .. } => {
                "is the server overloaded? it is asked again later"
            }
            Failure::Slow { .. } => "is the server overloaded? if it only needs longer: set a longer timeout_s",
            Failure::Status { status: 401 | 403, .. } => {
                "the key is missing, wrong or lacks rights: see the server's key settings"
            }
            Failure::Status { status: 404 | 405, .. } => {
                "is the address right? behind it comes the path of what it is set to speak; some servers want /v1 at its end, others \
                 nothing; some say so of an unknown model"
            }
            Failure::Status { status: 413, .. } => "a request was too large for the server: set a smaller batch",
            Failure::Status { status: 424, .. } => {
                "the server says that its model cannot do this: is it a model of the right kind?"
            }
            Failure::Status { status: 429, .. } => "the server takes no more for now: set fewer requests in flight",
            Failure::Status { status: 300..=399, .. } => {
                "redirects are not followed: give the address that it leads to"
            }
            Failure::NotJson { .. } | Failure::TooLarge { .. } => {
                "is that the server's interface, or a page of a proxy or another program?"
            }
            _ => return None,
        })
    }
}

impl Failure {
    /// Whether trying again at once, after a pause, makes sense.
    pub(super) fn is_temporary(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::Broken { .. } => true,
            Self::Status { status, .. } => matches!(status, 408 | 429 | 502 | 503 | 504),
            _ => false,
        }
    }
}

/// The beginning of an answer on one line, with control characters escaped.
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

/// Whether a character changes the order of those after it.
fn is_directional(character: char) -> bool {
    matches!(character, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// The path that was asked for, where it may be what is wrong.
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
