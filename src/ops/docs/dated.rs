//! Recognises documents of one time, which later changes of code do not make wrong.

use std::sync::LazyLock;

use regex::Regex;

use crate::model::start_of;

/// Number of bytes at the start of a document in which its date is searched.
const MAX_HEAD_BYTES: usize = 1 << 10;

/// A date, or a decided status.
static DATED: LazyLock<Regex> = LazyLock::new(|| {
    let date = r"(?:date|created|decided|published)[\W_]+(?:\w+ )?\d{4}-\d\d";
    let status = r"status[\W_]+(?:accepted|approved|superseded|rejected|implemented|deprecated)\b";
    Regex::new(&format!(r"(?im)^[\W_]*(?:{date}|{status})")).expect("the pattern is valid")
});

/// Returns true if the first lines of a document have a date or a decided status.
pub(super) fn is_dated(text: &str) -> bool {
    DATED.is_match(start_of(text, MAX_HEAD_BYTES))
}

/// Returns true for the paths of change logs, release notes, and other documents of one time.
pub(super) fn is_record_of_changes(path: &[u8]) -> bool {
    const STARTS: [&str; 14] = [
        "changelog",
        "change_log",
        "change-log",
        "changes",
        "history",
        "news",
        "release-notes",
        "release_notes",
        "releasenotes",
        "releases",
        "whatsnew",
        "whats-new",
        "upgrad",
        "migrat",
    ];
    const NAMES: [&str; 11] = [
        "blog",
        "_posts",
        "posts",
        "rfc",
        "rfcs",
        "adr",
        "adrs",
        "deprecations",
        "proposals",
        "minutes",
        "meetings",
    ];
    let path = String::from_utf8_lossy(path).to_lowercase();
    let is_date = |part: &str| {
        let digits = part
            .bytes()
            .take_while(|byte| byte.is_ascii_digit() || matches!(byte, b'-' | b'.'))
            .count();
        part.starts_with("20") && digits >= 7
    };
    path.split('/').any(|part| {
        let name = part.split('.').next().unwrap_or(part);
        STARTS.iter().any(|start| part.starts_with(start)) || NAMES.contains(&name) || is_date(part)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_of_one_time_are_told_by_their_paths() {
        for path in [
            "CHANGES.rst",
            "docs/whatsnew-3.0.rst",
            "News/1.txt",
            "blog/a.md",
            "p/2024-02-01-x.md",
            "MIGRATING.md",
        ] {
            assert!(is_record_of_changes(path.as_bytes()), "{path}");
        }
        for path in ["README.md", "docs/api.rst", "docs/exchange.md", "docs/200.md"] {
            assert!(!is_record_of_changes(path.as_bytes()), "{path}");
        }
    }
}
