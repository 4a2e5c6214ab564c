//! Removes secrets from texts before they are sent to a server.
//!
//! `forms` finds secrets by their form and by the URL or command that contains them; `kubernetes` finds the data of
//! Kubernetes secrets; `named` finds the value of a name such as `password` or `api_key`, which `name` recognises; `random`
//! finds words and lines that look random. `fold` first makes the text plain. Detection is heuristic: a secret that looks
//! like ordinary text is sent.

/// Compiles a regular expression on first use, because most calls send no text.
macro_rules! form {
    ($form:expr) => {{
        static FORM: std::sync::LazyLock<regex::Regex> =
            std::sync::LazyLock::new(|| regex::Regex::new($form).expect("the forms are tested"));
        &*FORM
    }};
}

mod fold;
mod forms;
mod kubernetes;
mod name;
mod named;
mod random;
mod value;

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::cmp::Reverse;
use std::ops::Range;

/// The replacement for a secret.
const MARK: &str = "[secret]";

/// Returns the text with its secrets replaced by [`MARK`], and their number. O(n) for n bytes.
pub(super) fn redact(text: &str) -> (Cow<'_, str>, usize) {
    let folded = fold::folded(text);
    let plain = folded.as_ref().map_or(text, |(plain, _)| plain);
    let original = |at: usize| folded.as_ref().map_or(at, |(_, origins)| origins[at]);
    let find = |text: &str| {
        [
            forms::find(text),
            kubernetes::find(text),
            named::find(text),
            random::find(text),
        ]
        .concat()
    };
    let secrets = find(plain).into_iter();
    let mut secrets: Vec<Range<usize>> = secrets
        .map(|secret| original(secret.start)..original(secret.end))
        .collect();
    if folded.is_some() {
        // A value can contain what is a separator once it is decoded.
        secrets.extend(find(text));
    }
    if secrets.is_empty() {
        return (Cow::Borrowed(text), 0);
    }
    secrets.sort_unstable_by_key(|secret| (secret.start, Reverse(secret.end)));
    let mut redacted = String::with_capacity(text.len());
    let (mut end, mut n_found) = (0, 0);
    for secret in secrets {
        if secret.start >= end {
            redacted.push_str(&text[end..secret.start]);
            redacted.push_str(MARK);
            n_found += 1;
        }
        end = end.max(secret.end);
    }
    redacted.push_str(&text[end..]);
    (Cow::Owned(redacted), n_found)
}
