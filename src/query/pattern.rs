//! Compiles the pattern of `grep`: a regular expression matched against lines.

use regex::bytes::{Regex, RegexBuilder};
use regex_syntax::ParserBuilder;
use regex_syntax::ast::Span;
use regex_syntax::hir::{
    Capture, Class, ClassBytes, ClassBytesRange, ClassUnicode, ClassUnicodeRange, Hir, HirKind, Look, Repetition,
};

use crate::index::lexical::TrigramQuery;
use crate::model::{Explain, Explanation, Hint};

/// Maximum length of a pattern, in bytes. A longer one is probably a file passed by mistake.
const MAX_PATTERN_BYTES: usize = 64 << 10;
/// Maximum size of a compiled pattern, in bytes: rejects `\w{1000}{1000}`.
const MAX_PROGRAM_BYTES: usize = 64 << 20;
/// Cache size of the lazy DFA, in bytes; it is cleared when full.
const MAX_AUTOMATON_BYTES: usize = 16 << 20;
/// Maximum number of matches marked per line.
const MAX_SPANS: usize = 100_000;
/// Maximum length of a pattern that is repeated in error messages with a caret below the error.
const MAX_SHOWN_CHARS: usize = 120;

/// Options of a pattern.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PatternOptions {
    /// Ignores case.
    pub ignore_case: bool,
    /// Matches only if no word character is adjacent to the match.
    pub whole_words: bool,
    /// Treats the pattern as literal text.
    pub literal: bool,
    /// Selects lines that do not match.
    pub inverted: bool,
}

/// A compiled pattern. A match never crosses a line break.
#[derive(Clone, Debug)]
pub struct Pattern {
    regex: Regex,
    candidates: TrigramQuery,
    whole_words: bool,
    inverted: bool,
}

/// The reason why a pattern is rejected.
#[derive(Debug, thiserror::Error)]
pub enum PatternError {
    /// The regular expression is invalid.
    #[error("invalid regular expression at character {at}: {reason}{}", .shown.as_deref().unwrap_or_default())]
    Syntax {
        /// The 1-based character position of the error.
        at: usize,
        /// The description of the error.
        reason: String,
        /// The pattern with a caret below the error, on separate lines; `None` for a long pattern.
        shown: Option<String>,
    },
    /// The compiled regular expression is too large.
    #[error("regular expression too large: nested repetitions multiply")]
    TooLarge,
    /// The pattern is too long.
    #[error("pattern too long: {n_bytes} bytes (limit: {MAX_PATTERN_BYTES})")]
    TooLong {
        /// Its length in bytes.
        n_bytes: usize,
    },
    /// The pattern is empty.
    #[error("empty pattern")]
    Empty,
}

impl Explain for PatternError {
    fn explain(&self) -> Explanation {
        match self {
            Self::Syntax { .. } => Explanation::hinting(Hint::each(
                "to search for literal text, use codescout grep -F",
                "escape literal . + * ? ( ) [ ] { } ^ $ | with a backslash",
            )),
            _ => Explanation::default(),
        }
    }
}

/// A matching line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LineAt {
    /// Line number, 1-based.
    pub(super) number: u32,
    /// Offset of the first byte.
    pub(super) start: usize,
    /// Offset past the last byte, without the line break.
    pub(super) end: usize,
}

impl Pattern {
    /// Compiles a pattern. Each line of `text` is an alternative.
    pub fn new(text: &str, options: PatternOptions) -> Result<Self, PatternError> {
        if text.is_empty() {
            return Err(PatternError::Empty);
        }
        if text.len() > MAX_PATTERN_BYTES {
            return Err(PatternError::TooLong { n_bytes: text.len() });
        }
        let branches = text
            .lines()
            .map(|line| parse(line, options))
            .collect::<Result<Vec<_>, _>>()?;
        let hir = within_line(Hir::alternation(branches));
        let regex = RegexBuilder::new(&hir.to_string())
            .size_limit(MAX_PROGRAM_BYTES)
            .dfa_size_limit(MAX_AUTOMATON_BYTES)
            .build()
            .map_err(|_| PatternError::TooLarge)?;
        Ok(Self {
            regex,
            candidates: if options.inverted {
                TrigramQuery::Any
            } else {
                TrigramQuery::of_regex(&hir)
            },
            whole_words: options.whole_words,
            inverted: options.inverted,
        })
    }

    /// Returns a trigram query that matches every text in which the pattern matches.
    pub(super) fn candidates(&self) -> &TrigramQuery {
        &self.candidates
    }

    /// Calls `found` with every matching line of `bytes`, in order, until it returns false.
    pub(super) fn for_each_line(&self, bytes: &[u8], mut found: impl FnMut(LineAt) -> bool) {
        if self.inverted {
            return self.for_each_other_line(bytes, found);
        }
        let mut at = 0;
        let mut counted = Counted::default();
        while at < bytes.len() {
            let Some(matched) = self.regex.find_at(bytes, at) else {
                return;
            };
            let start = memchr::memrchr(b'\n', &bytes[..matched.start()]).map_or(0, |newline| newline + 1);
            if start == bytes.len() {
                // A final line break is not followed by another line.
                return;
            }
            let end = memchr::memchr(b'\n', &bytes[start..]).map_or(bytes.len(), |length| start + length);
            at = end + 1;
            if self.whole_words && self.next_word(&bytes[start..end], 0).is_none() {
                continue;
            }
            let number = counted.line_at(bytes, start);
            if !found(LineAt { number, start, end }) {
                return;
            }
        }
    }

    fn for_each_other_line(&self, bytes: &[u8], mut found: impl FnMut(LineAt) -> bool) {
        let mut start = 0;
        for number in 1.. {
            if start >= bytes.len() {
                return;
            }
            let end = memchr::memchr(b'\n', &bytes[start..]).map_or(bytes.len(), |length| start + length);
            if !self.is_in(&bytes[start..end]) && !found(LineAt { number, start, end }) {
                return;
            }
            start = end + 1;
        }
    }

    /// Returns true if a line of `bytes` matches.
    pub fn occurs(&self, bytes: &[u8]) -> bool {
        let mut occurs = false;
        self.for_each_line(bytes, |_| {
            occurs = true;
            false
        });
        occurs
    }

    /// Returns true if a line, given without its line break, matches.
    pub(super) fn is_in(&self, line: &[u8]) -> bool {
        if self.whole_words {
            self.next_word(line, 0).is_some()
        } else {
            self.regex.is_match(line)
        }
    }

    /// Returns the matches in a line as byte ranges.
    pub(super) fn spans(&self, line: &[u8]) -> Vec<(u32, u32)> {
        if self.inverted {
            return Vec::new();
        }
        if !self.whole_words {
            let matches = self
                .regex
                .find_iter(line)
                .filter(|found| !found.is_empty())
                .take(MAX_SPANS);
            return matches
                .map(|found| (found.start() as u32, found.end() as u32))
                .collect();
        }
        let mut spans = Vec::new();
        let mut at = 0;
        while let Some((start, end)) = self.next_word(line, at).filter(|_| spans.len() < MAX_SPANS) {
            spans.push((start as u32, end as u32));
            at = end;
        }
        spans
    }

    /// Returns the next match that is a whole word. As in git, only the first match at each position counts: `a|ab`
    /// does not find the word `ab`. Source: `headerless_match_one_pattern` in git's `grep.c`.
    fn next_word(&self, line: &[u8], from: usize) -> Option<(usize, usize)> {
        let is_word = |at: usize| line[at].is_ascii_alphanumeric() || line[at] == b'_';
        let mut at = from;
        while at < line.len() {
            let found = self.regex.find_at(line, at)?;
            let (start, end) = (found.start(), found.end());
            let begins = start == 0 || !is_word(start - 1);
            let ends = end == line.len() || !is_word(end);
            if begins && ends && start < end {
                return Some((start, end));
            }
            at = start + 1;
            while at < line.len() && is_word(at - 1) {
                at += 1;
            }
        }
        None
    }
}

/// Counts lines incrementally; offsets must ascend.
#[derive(Default)]
struct Counted {
    n_breaks: u32,
    up_to: usize,
}

impl Counted {
    fn line_at(&mut self, bytes: &[u8], start: usize) -> u32 {
        self.n_breaks += memchr::memchr_iter(b'\n', &bytes[self.up_to..start]).count() as u32;
        self.up_to = start;
        self.n_breaks + 1
    }
}

fn parse(line: &str, options: PatternOptions) -> Result<Hir, PatternError> {
    let escaped = options.literal.then(|| regex_syntax::escape(line));
    ParserBuilder::new()
        .utf8(false)
        .multi_line(true)
        .case_insensitive(options.ignore_case)
        .build()
        .parse(escaped.as_deref().unwrap_or(line))
        .map_err(|error| syntax_error(line, &error))
}

fn syntax_error(pattern: &str, error: &regex_syntax::Error) -> PatternError {
    let (span, reason): (Option<&Span>, String) = match error {
        regex_syntax::Error::Parse(error) => (Some(error.span()), error.kind().to_string()),
        regex_syntax::Error::Translate(error) => (Some(error.span()), error.kind().to_string()),
        other => (None, other.to_string()),
    };
    let offset = span.map_or(0, |span| span.start.offset);
    let n_before = pattern.get(..offset).map_or(0, |before| before.chars().count());
    let is_short = pattern.chars().count() <= MAX_SHOWN_CHARS && !pattern.chars().any(char::is_control);
    PatternError::Syntax {
        at: n_before + 1,
        reason,
        shown: is_short.then(|| format!("\n    {pattern}\n    {}^", " ".repeat(n_before))),
    }
}

/// Rewrites an expression so that it cannot match a line break, and so that text anchors match at line ends.
fn within_line(hir: Hir) -> Hir {
    match hir.into_kind() {
        HirKind::Empty => Hir::empty(),
        HirKind::Literal(literal) if literal.0.contains(&b'\n') => Hir::fail(),
        HirKind::Literal(literal) => Hir::literal(literal.0),
        HirKind::Class(Class::Unicode(mut class)) => {
            class.difference(&ClassUnicode::new([ClassUnicodeRange::new('\n', '\n')]));
            Hir::class(Class::Unicode(class))
        }
        HirKind::Class(Class::Bytes(mut class)) => {
            class.difference(&ClassBytes::new([ClassBytesRange::new(b'\n', b'\n')]));
            Hir::class(Class::Bytes(class))
        }
        HirKind::Look(Look::Start) => Hir::look(Look::StartLF),
        HirKind::Look(Look::End) => Hir::look(Look::EndLF),
        HirKind::Look(look) => Hir::look(look),
        HirKind::Repetition(repetition) => Hir::repetition(Repetition {
            sub: Box::new(within_line(*repetition.sub)),
            ..repetition
        }),
        HirKind::Capture(capture) => Hir::capture(Capture {
            sub: Box::new(within_line(*capture.sub)),
            ..capture
        }),
        HirKind::Concat(parts) => Hir::concat(parts.into_iter().map(within_line).collect()),
        HirKind::Alternation(parts) => Hir::alternation(parts.into_iter().map(within_line).collect()),
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn lines(pattern: &str, options: PatternOptions, text: &str) -> Vec<u32> {
        let pattern = Pattern::new(pattern, options).unwrap();
        let mut numbers = Vec::new();
        pattern.for_each_line(text.as_bytes(), |line| {
            numbers.push(line.number);
            true
        });
        numbers
    }

    fn plain(pattern: &str, text: &str) -> Vec<u32> {
        lines(pattern, PatternOptions::default(), text)
    }

    #[test]
    fn a_match_stays_in_its_line() {
        let text = "a b\nc\n\na\n b";
        assert_eq!(plain(r"a\s+b", text), [1]);
        assert_eq!(plain(r"a[^x]*b", text), [1]);
        assert_eq!(plain(r"a\nb", text), Vec::<u32>::new());
        assert_eq!(plain("^$", text), [3]);
        assert_eq!(plain(r"\Aa", text), [1, 4]);
        assert_eq!(plain(r"b\z", text), [1, 5]);
    }

    #[test]
    fn no_line_follows_the_last_line_break() {
        assert_eq!(plain("x*", "a\nb\n"), [1, 2]);
        assert_eq!(plain("$", "a\nb"), [1, 2]);
        assert_eq!(plain("x*", ""), Vec::<u32>::new());
        assert_eq!(plain("x*", "\n"), [1]);
    }

    #[test]
    fn words_are_whole() {
        let words = PatternOptions {
            whole_words: true,
            ..PatternOptions::default()
        };
        assert_eq!(lines("foo", words, "foobar foo\nfoo_\n(foo)\nxfoo"), [1, 3]);
        assert_eq!(lines("a|ab", words, "ab\na"), [2]);
        let pattern = Pattern::new("foo", words).unwrap();
        assert_eq!(pattern.spans(b"foo xfoo foo"), [(0, 3), (9, 12)]);
    }

    #[test]
    fn literals_and_lines_of_a_pattern() {
        let literal = PatternOptions {
            literal: true,
            ignore_case: true,
            ..PatternOptions::default()
        };
        assert_eq!(lines("A.B(", literal, "a.b(\naxb("), [1]);
        assert_eq!(plain("one\ntwo", "two\nthree\none"), [1, 3]);
    }

    #[test]
    fn errors_say_where() {
        let error = Pattern::new("größe(", PatternOptions::default())
            .unwrap_err()
            .to_string();
        assert!(
            error.starts_with("invalid regular expression at character 6: unclosed group"),
            "{error}"
        );
        assert!(error.ends_with("\n    größe(\n         ^"), "{error}");
        let huge = format!("{}(", "a".repeat(1000));
        let error = Pattern::new(&huge, PatternOptions::default()).unwrap_err().to_string();
        assert!(error.contains("character 1001") && error.len() < 200, "{error}");
        assert!(matches!(
            Pattern::new(r"(?:\w{1000}){1000}", PatternOptions::default()),
            Err(PatternError::TooLarge)
        ));
        assert!(matches!(
            Pattern::new(&"x".repeat(1 << 20), PatternOptions::default()),
            Err(PatternError::TooLong { .. })
        ));
    }
}
