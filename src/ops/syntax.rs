//! Comments, strings and reserved words in code.

use std::ops::Range;

use super::sink::Style;
use crate::extract::{Profile, by_name, profile};

type Span = (Range<usize>, Style);

/// The comments, strings and reserved words of a text.
pub(crate) struct Syntax(std::iter::Peekable<std::vec::IntoIter<Span>>);

impl Syntax {
    pub(crate) fn of(bytes: &[u8], profile: &Profile) -> Self {
        Self(spans(bytes, profile).into_iter().peekable())
    }

    /// Like [`Self::of`], for text in the language with this name.
    pub(crate) fn named(text: &str, language: &str) -> Self {
        Self::of(text.as_bytes(), profile(by_name(language).unwrap_or_default()))
    }

    /// Calls `with` for each piece of a part behind those before.
    pub(crate) fn between(&mut self, part: Range<usize>, mut with: impl FnMut(Range<usize>, Style)) {
        let mut at = part.start;
        while at < part.end {
            while self.0.next_if(|(span, _)| span.end <= at).is_some() {}
            let (end, style) = match self.0.peek() {
                Some((span, style)) if span.start <= at => (span.end.min(part.end), *style),
                Some((span, _)) => (span.start.min(part.end), Style::Plain),
                None => (part.end, Style::Plain),
            };
            with(at..end, style);
            at = end;
        }
    }
}

/// Finds comments, strings and reserved words, in the order of the text. A guess by their first characters, without a
/// parser: after a regular expression with a quotation mark, for example, the rest of the line can be wrong.
fn spans(text: &[u8], profile: &Profile) -> Vec<Span> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let (end, style) = span_at(text, at, profile);
        if let Some(style) = style {
            found.push((at..end, style));
        }
        at = end;
    }
    found
}

/// Returns the end of what begins at a position, and its style.
fn span_at(text: &[u8], at: usize, profile: &Profile) -> (usize, Option<Style>) {
    let rest = &text[at..];
    let to = |end: Option<usize>| at + end.unwrap_or(rest.len());
    let end_of_line = || to(memchr::memchr(b'\n', rest));
    if let Some((open, close)) = profile
        .block_comment
        .filter(|(open, _)| rest.starts_with(open.as_bytes()))
    {
        let end = memchr::memmem::find(&rest[open.len()..], close.as_bytes());
        return (to(end.map(|end| open.len() + end + close.len())), Some(Style::Comment));
    }
    if profile
        .line_comments
        .iter()
        .any(|mark| rest.starts_with(mark.as_bytes()))
    {
        return (end_of_line(), Some(Style::Comment));
    }
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_' || !byte.is_ascii();
    match rest[0] {
        quote @ (b'"' | b'`') => (at + string(rest, quote), Some(Style::Literal)),
        b'\'' if profile.has_single_quotes => (at + string(rest, b'\''), Some(Style::Literal)),
        // A character, not a lifetime.
        b'\'' if rest.get(1) == Some(&b'\\') || rest.get(2) == Some(&b'\'') => {
            let end = rest[2..].iter().position(|byte| *byte == b'\'');
            (to(end.map(|end| end + 3)).min(end_of_line()), Some(Style::Literal))
        }
        byte if is_word(&byte) => {
            let length = rest.iter().position(|byte| !is_word(byte)).unwrap_or(rest.len());
            let is_keyword = std::str::from_utf8(&rest[..length]).is_ok_and(|word| profile.is_keyword(word));
            (at + length, is_keyword.then_some(Style::Keyword))
        }
        _ => (at + 1, None),
    }
}

/// Returns the length of a string with its quotes: to the end of the line, or further if there are three quotes or it
/// is between backticks.
fn string(rest: &[u8], quote: u8) -> usize {
    let is_long = rest.starts_with(&[quote; 3]);
    if is_long && quote != b'`' {
        let end = memchr::memmem::find(&rest[3..], &[quote; 3]);
        return end.map_or(rest.len(), |end| end + 6);
    }
    let mut at = 1;
    while let Some(byte) = rest.get(at) {
        match byte {
            b'\\' => at += 1,
            b'\n' if quote != b'`' => return at,
            byte if *byte == quote => return at + 1,
            _ => {}
        }
        at += 1;
    }
    rest.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::extract::language;

    #[track_caller]
    fn check(name: &str, text: &str, expected: &[(&str, Style)]) {
        let language = by_name(name).and_then(language);
        let found = language.map_or_else(Vec::new, |language| spans(text.as_bytes(), &language.profile));
        let found: Vec<(&str, Style)> = found
            .iter()
            .map(|(range, style)| (&text[range.clone()], *style))
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn comments_strings_and_reserved_words_are_found() {
        check(
            "rust",
            "let a: &'a str = \"//\\\"\"; // it's '\n/* \"\n*/ '\"' b",
            &[
                ("let", Style::Keyword),
                ("\"//\\\"\"", Style::Literal),
                ("// it's '", Style::Comment),
                ("/* \"\n*/", Style::Comment),
                ("'\"'", Style::Literal),
            ],
        );
        check(
            "python",
            "'''a\n#b''' # c\nx = 'd",
            &[
                ("'''a\n#b'''", Style::Literal),
                ("# c", Style::Comment),
                ("'d", Style::Literal),
            ],
        );
        check("javascript", "`a\n${b}` + c", &[("`a\n${b}`", Style::Literal)]);
    }
}
