//! Characters that are escaped in output: control characters, bidirectional formatting characters, and invisible
//! characters.
//!
//! Terminals execute control characters. Bidirectional formatting characters make code appear in a different order than
//! it has in the file. Invisible characters hide text from people that programs and language models still read, and can
//! make two different names look the same. The invisible characters are those that Unicode lists as default ignorable
//! (`DerivedCoreProperties.txt`), the line and paragraph separators, the interlinear annotation characters, the
//! blank Braille pattern, and two that no XML may contain.
//!
//! U+FE0E and U+FE0F are not escaped: they follow many emoji and select their presentation. The joiner U+200D is
//! escaped even inside emoji, because names in code can contain it.

use std::borrow::Cow;
use std::fmt::Write;
use std::io;

use serde::Serialize;

/// Returns true for a control character (C0, DEL, C1), a bidirectional formatting character or an invisible character.
pub(crate) fn is_unprintable(c: char) -> bool {
    c.is_control() || !c.is_ascii() && is_invisible(c)
}

fn is_invisible(c: char) -> bool {
    matches!(
        c,
        '\u{ad}'
            | '\u{34f}'
            | '\u{61c}'
            | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{2800}'
            | '\u{3164}'
            | '\u{fe00}'..='\u{fe0d}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}'
            | '\u{fffe}'..='\u{ffff}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

/// Replaces unprintable characters other than tabs by visible escapes, so that the text is one line and shows all that it
/// has.
pub(crate) fn visible(text: &str) -> Cow<'_, str> {
    let is_hidden = |c: char| c != '\t' && is_unprintable(c);
    if !text.contains(is_hidden) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_hidden(c) {
            shown.extend(c.escape_unicode());
        } else {
            shown.push(c);
        }
    }
    Cow::Owned(shown)
}

/// Serialises a value as JSON. Unprintable characters are escaped, so the JSON parses to the same strings.
pub(crate) fn json(value: &impl Serialize) -> io::Result<Vec<u8>> {
    let text = serde_json::to_string(value)?;
    Ok(printable(text).into_bytes())
}

/// Escapes the unprintable characters in the strings of a JSON text.
pub(crate) fn printable(json: String) -> String {
    // Keep the line breaks of indented JSON.
    let is_raw = |c: char| !c.is_ascii_whitespace() && is_unprintable(c);
    if !json.contains(is_raw) {
        return json;
    }
    let mut escaped = String::with_capacity(json.len() + 64);
    for c in json.chars() {
        if is_raw(c) {
            // JSON escapes a character above U+FFFF as two UTF-16 surrogates.
            for unit in c.encode_utf16(&mut [0; 2]) {
                write!(escaped, "\\u{unit:04x}").expect("a string takes all");
            }
        } else {
            escaped.push(c);
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn json_is_printable_and_says_the_same() {
        let all: String = ('\0'..='\u{ffff}')
            .chain('\u{1f600}'..='\u{1f610}')
            .chain('\u{e0000}'..='\u{e01ff}')
            .collect();
        let text = String::from_utf8(json(&[&all]).unwrap()).unwrap();
        assert!(!text.contains(is_unprintable));
        assert_eq!(serde_json::from_str::<[String; 1]>(&text).unwrap(), [all]);
        let pretty = serde_json::to_string_pretty(&[1]).unwrap();
        assert_eq!(printable(pretty.clone()), pretty);
    }

    #[test]
    fn what_is_not_seen_is_unprintable() {
        let hidden = [
            '\u{ad}',
            '\u{180e}',
            '\u{2028}',
            '\u{2029}',
            '\u{2800}',
            '\u{3164}',
            '\u{feff}',
            '\u{e0100}',
        ];
        let ranges = [
            '\u{200b}'..='\u{200f}',
            '\u{2060}'..='\u{2064}',
            '\u{e0000}'..='\u{e007f}',
        ];
        for c in hidden.into_iter().chain(ranges.into_iter().flatten()) {
            assert!(is_unprintable(c), "{c:?}");
        }
        for c in "aé漢字\u{a0}\u{301}\u{2003}❤\u{fe0f}☎\u{fe0e}👩ﬁ\u{2801}\u{e000}\u{10ffff}".chars() {
            assert!(!is_unprintable(c), "{c:?}");
        }
    }
}
