//! Paths as git stores them (bytes relative to the root of the tree, separated by `/`), and their text form.
//!
//! Output shows paths as [`quoted`] returns them. User input is decoded by [`typed`], which returns text: a placeholder
//! character replaces each byte that is not valid UTF-8. [`without_placeholders`] restores the bytes before the text is
//! compared with a path.

use std::borrow::Cow;
use std::fmt;

use bstr::{BString, ByteSlice};

/// The placeholder for byte 0. The placeholder for byte n is n code points higher. Unicode assigns no characters in
/// this range.
const FIRST_PLACEHOLDER: u32 = 0xF_0000;
/// The C escape sequences of single bytes: the letter after the backslash, and the byte.
const ESCAPES: [(u8, u8); 9] = [
    (b'"', b'"'),
    (b'\\', b'\\'),
    (b'a', 0x07),
    (b'b', 0x08),
    (b't', b'\t'),
    (b'n', b'\n'),
    (b'v', 0x0b),
    (b'f', 0x0c),
    (b'r', b'\r'),
];

/// Returns the text form of a path. A path that is not UTF-8, contains control characters or begins with a quotation
/// mark is quoted with C escapes, so that different paths never look the same.
///
/// Follows `quote_c_style` in git's `quote.c`. As with `core.quotePath=false`, other non-ASCII characters are
/// unchanged.
pub fn quoted(path: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = path.to_str()
        && !text.starts_with('"')
        && !text.contains(char::is_control)
    {
        return Cow::Borrowed(text);
    }
    let mut text = String::from("\"");
    for chunk in path.utf8_chunks() {
        for letter in chunk.valid().chars() {
            let mut buffer = [0; 4];
            let bytes = letter.encode_utf8(&mut buffer).as_bytes();
            match ESCAPES.iter().find(|(_, byte)| bytes == [*byte]) {
                Some((escape, _)) => text.extend(['\\', char::from(*escape)]),
                None if letter.is_control() => bytes.iter().for_each(|byte| push_octal(&mut text, *byte)),
                None => text.push(letter),
            }
        }
        chunk.invalid().iter().for_each(|byte| push_octal(&mut text, *byte));
    }
    text.push('"');
    Cow::Owned(text)
}

fn push_octal(text: &mut String, byte: u8) {
    text.push_str(&format!("\\{byte:03o}"));
}

/// Decodes a quoted path at the start of `text`. Returns the bytes of the path and the text after it, or `None` if
/// `text` does not start with a quoted path.
fn unquoted(text: &str) -> Option<(Vec<u8>, &str)> {
    let mut path = Vec::new();
    let mut rest = text.strip_prefix('"')?.as_bytes();
    loop {
        let (&byte, after) = rest.split_first()?;
        rest = after;
        match byte {
            b'"' => break,
            b'\\' => {
                let (&escape, after) = rest.split_first()?;
                if let Some((_, byte)) = ESCAPES.iter().find(|(known, _)| *known == escape) {
                    path.push(*byte);
                    rest = after;
                } else {
                    let (digits, after) = rest.split_at_checked(3)?;
                    let is_octal = digits.iter().all(|digit| (b'0'..=b'7').contains(digit));
                    path.push(u8::from_str_radix(digits.to_str().ok().filter(|_| is_octal)?, 8).ok()?);
                    rest = after;
                }
            }
            byte => path.push(byte),
        }
    }
    // The quotation mark is ASCII, so this is a character boundary.
    Some((path, &text[text.len() - rest.len()..]))
}

/// Decodes a quoted path at the start of user input. Text after the path, such as a line number, is unchanged.
pub fn typed(text: &str) -> Cow<'_, str> {
    match unquoted(text) {
        Some((path, rest)) => Cow::Owned(with_placeholders(&path).into_owned() + rest),
        None => Cow::Borrowed(text),
    }
}

/// Converts bytes to text, replacing each byte that is not valid UTF-8 with a placeholder.
pub fn with_placeholders(path: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = path.to_str() {
        return Cow::Borrowed(text);
    }
    let mut text = String::with_capacity(path.len() + 16);
    for chunk in path.utf8_chunks() {
        text.push_str(chunk.valid());
        let stand_in = |byte: &u8| char::from_u32(FIRST_PLACEHOLDER + u32::from(*byte));
        text.extend(chunk.invalid().iter().filter_map(stand_in));
    }
    Cow::Owned(text)
}

/// Converts text to bytes, replacing each placeholder with the byte it represents.
pub fn without_placeholders(text: &str) -> Cow<'_, [u8]> {
    let byte = |letter: char| u8::try_from(u32::from(letter).checked_sub(FIRST_PLACEHOLDER)?).ok();
    if !text.contains(|letter| byte(letter).is_some()) {
        return Cow::Borrowed(text.as_bytes());
    }
    let mut path = Vec::with_capacity(text.len());
    for letter in text.chars() {
        match byte(letter) {
            Some(byte) => path.push(byte),
            None => path.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    Cow::Owned(path)
}

/// A path inside a tree, as bytes: git allows every byte except NUL.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RepoPath(BString);

impl RepoPath {
    /// Wraps the bytes of a path in a tree or an index.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Self {
        Self(BString::from(bytes.into()))
    }

    /// Returns the bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns the path as text, [`quoted`] if necessary.
    pub fn to_text(&self) -> Cow<'_, str> {
        quoted(&self.0)
    }

    /// Returns the part after the last `/`.
    pub fn file_name(&self) -> &[u8] {
        match self.0.rfind_byte(b'/') {
            Some(slash) => &self.0[slash + 1..],
            None => &self.0,
        }
    }
}

impl From<&str> for RepoPath {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

impl fmt::Display for RepoPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_text())
    }
}

impl fmt::Debug for RepoPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ordinary_paths_are_written_as_they_are() {
        for path in ["src/main.rs", "ä/日本 語.md", "a\"b", "back\\slash", "#x:1"] {
            assert_eq!(quoted(path.as_bytes()), path);
        }
    }

    #[test]
    fn unusual_paths_are_quoted_as_in_git() {
        for (path, text) in [
            (&b"caf\xe9.rs"[..], r#""caf\351.rs""#),
            (b"a\tb\x01\x7f", r#""a\tb\001\177""#),
            (b"\xffq\"\\", r#""\377q\"\\""#),
            ("\u{85}ä".as_bytes(), r#""\302\205ä""#),
            (b"\"a\"", r#""\"a\"""#),
        ] {
            assert_eq!(quoted(path), text);
        }
    }

    #[test]
    fn unquoted_paths_are_unchanged() {
        for text in ["", "\"", "\"a", "a\"b\"", r#""\x41""#, r#""\9""#, r#""\777""#] {
            assert_eq!(typed(text), text);
        }
        assert_eq!(without_placeholders(&typed(r#""a\377b":5-9"#)), &b"a\xffb:5-9"[..]);
    }

    proptest! {
        #![proptest_config(crate::support::properties(256))]

        #[test]
        fn every_path_comes_back(path in proptest::collection::vec(any::<u8>(), 0..40), rest in "[:#a-z0-9]{0,6}") {
            let text = format!("{}{rest}", quoted(&path));
            prop_assert!(!text.contains(char::is_control));
            let expected = [&path[..], rest.as_bytes()].concat();
            prop_assert_eq!(without_placeholders(&typed(&text)).into_owned(), expected);
            prop_assert_eq!(without_placeholders(&with_placeholders(&path)).into_owned(), path);
        }

        #[test]
        fn no_text_panics(text in any::<String>(), quoted_text in "\"[\\\\0-9a-z\"ä]{0,12}") {
            typed(&text);
            typed(&quoted_text);
        }
    }
}
