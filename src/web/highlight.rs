//! Comments, strings and reserved words in code.

use std::ops::Range;

use maud::{Render, html};

use crate::extract::Profile;
use crate::model::unprintable::visible;

/// A part of a text, and its class in a page.
type Span = (Range<usize>, &'static str);

const COMMENT: &str = "comment";
const STRING: &str = "string";
const KEYWORD: &str = "keyword";

/// Writes text with its comments, strings and reserved words.
pub(super) struct Paint<'a> {
    bytes: &'a [u8],
    spans: std::iter::Peekable<std::vec::IntoIter<Span>>,
}

impl<'a> Paint<'a> {
    pub(super) fn of(bytes: &'a [u8], profile: &Profile) -> Self {
        Self {
            bytes,
            spans: spans(bytes, profile).into_iter().peekable(),
        }
    }

    /// Writes a part behind those written before.
    pub(super) fn between(&mut self, part: Range<usize>, text: &mut String) {
        let mut at = part.start;
        while at < part.end {
            while self.spans.next_if(|(span, _)| span.end <= at).is_some() {}
            let (end, class) = match self.spans.peek() {
                Some((span, class)) if span.start <= at => (span.end.min(part.end), Some(*class)),
                Some((span, _)) => (span.start.min(part.end), None),
                None => (part.end, None),
            };
            let written = shown(&self.bytes[at..end]);
            match class {
                Some(class) => html! { span.(class) { (written) } }.render_to(text),
                None => written.render_to(text),
            }
            at = end;
        }
    }
}

/// Returns bytes of a file as text in which nothing is hidden.
pub(super) fn shown(bytes: &[u8]) -> String {
    visible(&String::from_utf8_lossy(bytes)).into_owned()
}

/// Finds comments, strings and reserved words, in the order of the text. A guess by their first characters, without a
/// parser: after a regular expression with a quotation mark, for example, the rest of the line can be wrong.
fn spans(text: &[u8], profile: &Profile) -> Vec<Span> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let (end, class) = span_at(text, at, profile);
        if let Some(class) = class {
            found.push((at..end, class));
        }
        at = end;
    }
    found
}

/// Returns the end of what begins at a position, and its class.
fn span_at(text: &[u8], at: usize, profile: &Profile) -> (usize, Option<&'static str>) {
    let rest = &text[at..];
    let to = |end: Option<usize>| at + end.unwrap_or(rest.len());
    let end_of_line = || to(memchr::memchr(b'\n', rest));
    if let Some((open, close)) = profile
        .block_comment
        .filter(|(open, _)| rest.starts_with(open.as_bytes()))
    {
        let end = memchr::memmem::find(&rest[open.len()..], close.as_bytes());
        return (to(end.map(|end| open.len() + end + close.len())), Some(COMMENT));
    }
    if profile
        .line_comments
        .iter()
        .any(|mark| rest.starts_with(mark.as_bytes()))
    {
        return (end_of_line(), Some(COMMENT));
    }
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_' || !byte.is_ascii();
    match rest[0] {
        quote @ (b'"' | b'`') => (at + string(rest, quote), Some(STRING)),
        b'\'' if profile.has_single_quotes => (at + string(rest, b'\''), Some(STRING)),
        // A character, not a lifetime.
        b'\'' if rest.get(1) == Some(&b'\\') || rest.get(2) == Some(&b'\'') => {
            let end = rest[2..].iter().position(|byte| *byte == b'\'');
            (to(end.map(|end| end + 3)).min(end_of_line()), Some(STRING))
        }
        byte if is_word(&byte) => {
            let length = rest.iter().position(|byte| !is_word(byte)).unwrap_or(rest.len());
            let is_keyword = std::str::from_utf8(&rest[..length]).is_ok_and(|word| profile.is_keyword(word));
            (at + length, is_keyword.then_some(KEYWORD))
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
    use crate::extract::{by_name, language};

    #[track_caller]
    fn check(name: &str, text: &str, expected: &[(&str, &str)]) {
        let language = by_name(name).and_then(language);
        let found = language.map_or_else(Vec::new, |language| spans(text.as_bytes(), &language.profile));
        let found: Vec<(&str, &str)> = found
            .iter()
            .map(|(range, class)| (&text[range.clone()], *class))
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn comments_strings_and_reserved_words_are_found() {
        check(
            "rust",
            "let a: &'a str = \"//\\\"\"; // it's '\n/* \"\n*/ '\"' b",
            &[
                ("let", KEYWORD),
                ("\"//\\\"\"", STRING),
                ("// it's '", COMMENT),
                ("/* \"\n*/", COMMENT),
                ("'\"'", STRING),
            ],
        );
        check(
            "python",
            "'''a\n#b''' # c\nx = 'd",
            &[("'''a\n#b'''", STRING), ("# c", COMMENT), ("'d", STRING)],
        );
        check("javascript", "`a\n${b}` + c", &[("`a\n${b}`", STRING)]);
    }
}
