//! Characters that a terminal or a reader takes for commands: controls, and the marks that reorder text.

use std::io;

use serde::Serialize;

/// Whether a character is a control (C0, DEL, C1) or changes the order of the text around it.
pub(crate) fn is_unprintable(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// A value as JSON of printable characters: the others are escaped, so that whoever parses it has the same strings.
pub(crate) fn json(value: &impl Serialize) -> io::Result<Vec<u8>> {
    let text = serde_json::to_string(value)?;
    Ok(printable(text).into_bytes())
}

/// A JSON text with what is unprintable in its strings escaped.
pub(crate) fn printable(json: String) -> String {
    // Line breaks between the values of a pretty text stay.
    let is_raw = |c: char| !c.is_ascii_whitespace() && is_unprintable(c);
    if !json.contains(is_raw) {
        return json;
    }
    let mut escaped = String::with_capacity(json.len() + 64);
    for c in json.chars() {
        match is_raw(c) {
            true => escaped.push_str(&format!("\\u{:04x}", u32::from(c))),
            false => escaped.push(c),
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
        let all: String = ('\0'..='\u{2fff}').chain(['\u{feff}', '\u{1f600}']).collect();
        let text = String::from_utf8(json(&[&all]).unwrap()).unwrap();
        assert!(!text.contains(is_unprintable));
        assert_eq!(serde_json::from_str::<[String; 1]>(&text).unwrap(), [all]);
        let pretty = serde_json::to_string_pretty(&[1]).unwrap();
        assert_eq!(printable(pretty.clone()), pretty);
    }
}
