//! Reads a query before anything is searched: the places and names in it, and the words that are left.

use crate::model::start_of;

use super::analyze::{Analysis, analyze};
use super::places::{TypedPlace, typed_places};
use super::printed::printed_names;

/// Minimum number of lines with a place that make a text a stack trace.
const MIN_FRAMES: usize = 2;
/// Maximum length of the text that is searched by words and meaning. More says nothing more about what is looked for.
const MAX_TEXT_BYTES: usize = 4 << 10;
/// The line before the frames of Python and, on a terminal, of Ruby, which print the innermost frame last.
const INNERMOST_LAST: &str = "most recent call last";
/// Lines of stack traces that are no frames and no messages.
const TRACE_LINES: &[&str] = &[
    "Traceback (",
    "goroutine ",
    "stack backtrace:",
    "... ",
    "During handling of",
    "The above exception",
];

/// A query that was read.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Reading {
    /// The text to search by words and meaning: the query or, of a stack trace, its messages.
    pub(super) text: String,
    /// The terms and names in `text`.
    pub(super) analysis: Analysis,
    /// The places in the query, those that matter most first.
    pub(super) places: Vec<TypedPlace>,
    /// For each place, the names in the same line and, if it is a line of a stack trace without names, the line before.
    pub(super) names: Vec<Vec<String>>,
    /// True if the query is a stack trace, whose frames are the answer.
    pub(super) is_trace: bool,
    /// True if the query asks for tests.
    pub(super) wants_tests: bool,
    /// True if the query begins like a question.
    pub(super) is_question: bool,
}

pub(super) fn read(query: &str) -> Reading {
    let query = query.trim();
    let mut places = typed_places(query);
    let lines = lines_of(query);
    let line_at = |at: usize| lines.partition_point(|(start, _)| *start <= at).saturating_sub(1);
    let mut framed: Vec<usize> = places
        .iter()
        .filter(|place| place.line.is_some())
        .map(|place| line_at(place.range.start))
        .collect();
    framed.dedup();
    let is_trace = framed.len() >= MIN_FRAMES
        && 3 * framed.len() >= lines.iter().filter(|(_, line)| !line.trim().is_empty()).count();
    let mut names: Vec<Vec<String>> = places
        .iter()
        .map(|place| {
            let at = line_at(place.range.start);
            let (start, line) = lines[at];
            let end = (place.range.end - start).min(line.len());
            // The path itself is no name.
            let mut names = [&line[..place.range.start - start], &line[end..]]
                .map(names_in)
                .concat();
            if is_trace && names.is_empty() && at > 0 && !framed.contains(&(at - 1)) {
                names = names_in(lines[at - 1].1);
            }
            names
        })
        .collect();
    let text = if is_trace {
        let is_frame =
            |at: usize| framed.contains(&at) || framed.contains(&(at + 1)) && printed_names(lines[at].1).len() == 1;
        let messages = lines.iter().enumerate().filter(|(at, (_, line))| {
            !is_frame(*at) && !TRACE_LINES.iter().any(|start| line.trim_start().starts_with(start))
        });
        let messages: Vec<&str> = messages
            .map(|(_, (_, line))| line.trim())
            .filter(|line| !line.is_empty())
            .collect();
        messages.join("\n")
    } else {
        query.to_owned()
    };
    if is_trace {
        let pairs = places.into_iter().zip(names);
        (places, names) = pairs.filter(|(place, _)| place.line.is_some()).unzip();
    }
    if query.contains(INNERMOST_LAST) {
        places.reverse();
        names.reverse();
    }
    let text = start_of(&text, MAX_TEXT_BYTES).to_owned();
    Reading {
        analysis: analyze(&text),
        wants_tests: wants_tests(&text),
        is_question: is_question(&text),
        text,
        places,
        names,
        is_trace,
    }
}

/// Returns the lines of a text with their offsets.
fn lines_of(text: &str) -> Vec<(usize, &str)> {
    let mut at = 0;
    text.split('\n')
        .map(|line| {
            let start = at;
            at += line.len() + 1;
            (start, line)
        })
        .collect()
}

/// Returns the segments of all names in a line.
fn names_in(line: &str) -> Vec<String> {
    let names = printed_names(line).into_iter().filter(|name| name.is_code);
    names.flat_map(|name| name.segments).collect()
}

/// Returns true if a text begins like a question.
fn is_question(text: &str) -> bool {
    const WORDS: &[&str] = &[
        "are", "can", "does", "how", "is", "what", "when", "where", "which", "who", "why",
    ];
    let first = text.split(|c: char| !c.is_alphanumeric()).find(|word| !word.is_empty());
    first.is_some_and(|word| WORDS.contains(&word.to_lowercase().as_str()))
}

/// Returns true if a question asks for tests: "tests for X", "how is X tested", "unit tests".
fn wants_tests(text: &str) -> bool {
    const KINDS: &[&str] = &[
        "unit",
        "integration",
        "regression",
        "end-to-end",
        "e2e",
        "existing",
        "which",
        "the",
        "find",
        "show",
        "all",
        "any",
    ];
    let lower = text.to_lowercase();
    let words: Vec<&str> = lower
        .split(|c: char| !c.is_alphanumeric() && c != '-')
        .filter(|word| !word.is_empty())
        .collect();
    words.iter().enumerate().any(|(at, word)| {
        let next = words.get(at + 1).copied().unwrap_or_default();
        let before = at.checked_sub(1).map(|before| words[before]).unwrap_or_default();
        match *word {
            "test" | "tests" | "spec" | "specs" | "testcase" | "testcases" => {
                ["for", "of", "that", "covering", "which", "checking"].contains(&next)
                    || (KINDS.contains(&before) && word.ends_with('s')) && at + 1 == words.len()
                    || before == "unit"
            }
            "tested" => is_question(text),
            _ => false,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_read_innermost_first() {
        let trace = "Traceback (most recent call last):\n  File \"/srv/app/a.py\", line 3, in main\n    run()\n  File \
                     \"/srv/app/b.py\", line 9, in run\n    raise ValueError(\"no such key\")\nValueError: no such key";
        let reading = read(trace);
        assert!(reading.is_trace);
        let places: Vec<_> = reading
            .places
            .iter()
            .map(|place| (place.path.as_str(), place.line))
            .collect();
        assert_eq!(places, [("srv/app/b.py", Some(9)), ("srv/app/a.py", Some(3))]);
        assert!(
            reading.text.contains("no such key") && !reading.text.contains("b.py"),
            "{}",
            reading.text
        );
    }

    #[test]
    fn the_line_before_a_frame_names_its_function() {
        let trace = "panic: boom\n\ngoroutine 1 [running]:\na/b.(*T).Run(0x1)\n\t/src/a/b/t.go:12 +0x1d\nmain.main()\n\t/src/a/main.go:5 +0x2";
        let reading = read(trace);
        assert!(reading.is_trace);
        assert_eq!(reading.names[0], ["b", "T", "Run"]);
        assert_eq!(reading.text, "panic: boom");
    }

    #[test]
    fn paths_without_a_line_are_no_frames() {
        let trace = "see notes.txt\n  at Cart.total (lib/cart.js:9:2)\n  at Shop.pay (lib/shop.js:4:7)";
        let reading = read(trace);
        assert!(reading.is_trace);
        let named: Vec<_> = reading
            .names
            .iter()
            .map(|names| names.contains(&"total".to_owned()))
            .collect();
        assert_eq!(named, [true, false], "{:?}", reading.names);
        assert_eq!(reading.places.len(), 2);
    }

    #[test]
    fn questions_about_tests_want_tests() {
        for query in [
            "tests for exclude patterns",
            "how is the router tested",
            "test of the parser",
            "unit tests of retries",
        ] {
            assert!(wants_tests(query), "{query}");
        }
        for query in [
            "the test client keeps cookies",
            "where is a test skipped",
            "run tests in parallel",
            "testing framework",
        ] {
            assert!(!wants_tests(query), "{query}");
        }
    }
}
