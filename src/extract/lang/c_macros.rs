//! Replaces what macros contain or add that the grammars of C and C++ cannot read.

use std::ops::Range;

use super::member_macros::line_end;
use super::text::{blank, is_screaming, is_word_byte};

/// Replaces comments inside the value of a macro, at which the grammars end the value, and macros between the type and
/// the name of a function (`int ZEXPORT inflate(`), which they take for the type of another function.
pub(super) fn without_macros(text: &[u8]) -> Option<Vec<u8>> {
    let mut masked: Option<Vec<u8>> = None;
    let mut at = 0;
    while at < text.len() {
        let end = line_end(text, at);
        let line = &text[at..end];
        let found = if is_define(line) {
            comments_within(line)
        } else {
            macro_before_name(line).into_iter().collect()
        };
        for range in found {
            blank(&mut masked.get_or_insert_with(|| text.to_vec())[at + range.start..at + range.end]);
        }
        at = end + 1;
    }
    masked
}

fn is_define(line: &[u8]) -> bool {
    let directive = line.trim_ascii_start().strip_prefix(b"#");
    directive.is_some_and(|directive| directive.trim_ascii_start().starts_with(b"define"))
}

/// Returns the comments that begin and end on the same line of a macro, and are not at its end.
fn comments_within(define: &[u8]) -> Vec<Range<usize>> {
    let define = define.trim_ascii_end();
    let mut found = Vec::new();
    let (mut at, mut n_quotes) = (0, 0);
    while let Some(start) = memchr::memmem::find(&define[at..], b"/*").map(|start| at + start) {
        n_quotes += define[at..start].iter().filter(|byte| **byte == b'"').count();
        at = start + 2;
        if n_quotes % 2 != 0 {
            continue;
        }
        let Some(length) = memchr::memmem::find(&define[at..], b"*/") else {
            break;
        };
        at += length + 2;
        if !define[start..at].contains(&b'\n') && at < define.len() {
            found.push(start..at);
        }
    }
    found
}

/// Returns the macro in `int ZEXPORT inflate(` or `INLINE App::App(`, at the start of a line.
fn macro_before_name(line: &[u8]) -> Option<Range<usize>> {
    /// Words that are no type, so that the next word is one.
    const NO_TYPES: [&[u8]; 14] = [
        b"const",
        b"constexpr",
        b"else",
        b"enum",
        b"explicit",
        b"extern",
        b"friend",
        b"inline",
        b"register",
        b"static",
        b"struct",
        b"typedef",
        b"union",
        b"virtual",
    ];
    line.first().filter(|byte| is_word_byte(**byte))?;
    let head = &line[..memchr::memchr(b'(', line)?];
    let name = last_word(head).filter(|name| !is_macro(&head[name.clone()]))?;
    let class = head[..name.start].strip_suffix(b"::").and_then(last_word);
    if let Some(class) = class.filter(|class| head[class.clone()] == head[name.clone()]) {
        return last_word(&head[..class.start]).filter(|found| is_macro(&head[found.clone()]));
    }
    let found = last_word(&head[..name.start]).filter(|found| is_macro(&head[found.clone()]))?;
    let before = &head[..found.start];
    let is_type = before.trim_ascii_end().ends_with(b"*")
        || last_word(before).is_some_and(|word| !NO_TYPES.contains(&&before[word]));
    is_type.then_some(found)
}

fn is_macro(word: &[u8]) -> bool {
    std::str::from_utf8(word).is_ok_and(is_screaming)
}

/// Returns the word at the end of a text, before white space.
fn last_word(text: &[u8]) -> Option<Range<usize>> {
    let end = text.trim_ascii_end().len();
    let length = text[..end].iter().rev().take_while(|byte| is_word_byte(**byte)).count();
    (length > 0).then(|| end - length..end)
}
