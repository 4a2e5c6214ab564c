//! Prepares text that is not clean UTF-8 for scanners and parsers: byte order marks, other encodings, NUL bytes.

/// The mark that some editors write at the start of UTF-8 text.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
/// A letter, so that a parser takes a name with letters of another encoding for one name.
const LETTER: u8 = b'x';

/// Returns the length of the byte order mark at the start of `bytes`, 0 if there is none.
pub fn byte_order_mark(bytes: &[u8]) -> usize {
    if bytes.starts_with(BYTE_ORDER_MARK) {
        BYTE_ORDER_MARK.len()
    } else {
        0
    }
}

/// Returns a copy that a parser can read: NUL bytes, where it would stop, become spaces, and bytes that are not UTF-8
/// become letters. So does a backslash that ends a line after such a byte: it is the second half of a character, and
/// not the continuation of the line. Returns `None` if the text needs no change. The copy has the same length and lines.
pub(super) fn legible(bytes: &[u8]) -> Option<Vec<u8>> {
    let is_utf8 = std::str::from_utf8(bytes).is_ok();
    if is_utf8 && memchr::memchr(0, bytes).is_none() {
        return None;
    }
    let mut text = Vec::with_capacity(bytes.len());
    for part in bytes.utf8_chunks() {
        text.extend_from_slice(part.valid().as_bytes());
        text.resize(text.len() + part.invalid().len(), LETTER);
    }
    text.iter_mut().filter(|byte| **byte == 0).for_each(|byte| *byte = b' ');
    for second in second_halves(bytes) {
        let ends_line = matches!(bytes.get(second + 1), None | Some(b'\n' | b'\r'));
        if bytes[second] == b'\\' && ends_line {
            text[second] = LETTER;
        }
    }
    Some(text)
}

/// Returns a copy in which each ASCII byte that can be the second half of a character is a letter, as in Shift-JIS,
/// GBK and Big5, where it can look like a backslash, a bracket or a brace. Returns `None` if the text has none.
pub(super) fn without_second_halves(bytes: &[u8], legible: &[u8]) -> Option<Vec<u8>> {
    let mut text: Option<Vec<u8>> = None;
    for second in second_halves(bytes).filter(|second| bytes[*second].is_ascii_punctuation()) {
        text.get_or_insert_with(|| legible.to_vec())[second] = LETTER;
    }
    text
}

/// Returns the positions of the ASCII bytes that follow the first byte of a character, if each character in text that
/// is not UTF-8 has two bytes.
fn second_halves(bytes: &[u8]) -> impl Iterator<Item = usize> {
    let mut valid_until = 0;
    let parts = bytes.utf8_chunks().map(move |part| {
        let invalid = valid_until + part.valid().len();
        valid_until = invalid + part.invalid().len();
        invalid..valid_until
    });
    let mut next = 0;
    parts.flatten().filter_map(move |first| {
        if first < next {
            return None;
        }
        next = first + 2;
        let second = bytes.get(first + 1)?;
        (0x40..0x7f).contains(second).then_some(first + 1)
    })
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn clean_text_is_not_copied() {
        assert_eq!(legible("fn é() {}\n\\\n".as_bytes()), None);
        assert_eq!(legible(b""), None);
    }

    #[test]
    fn foreign_bytes_become_letters_and_nul_bytes_spaces() {
        assert_eq!(legible(b"caf\xe9 = '\0'").unwrap(), b"cafx = ' '");
        // é of UTF-8 in a file of Latin-1
        assert_eq!(legible(b"\xe9 \xc3\xa9").unwrap(), b"x \xc3\xa9");
    }

    #[test]
    fn a_line_goes_on_only_after_a_backslash() {
        // 表 of Shift-JIS at the end of a comment, and before a real backslash
        assert_eq!(legible(b"// \x95\x5c\nf").unwrap(), b"// xx\nf");
        assert_eq!(legible(b"// \x95\x5c\r\nf").unwrap(), b"// xx\r\nf");
        assert_eq!(legible(b"// \x95\x5c\\\nf").unwrap(), b"// x\\\\\nf");
        // 功 of Big5 after another character
        assert_eq!(legible(b"\xb3\x5c\xa5\x5c").unwrap(), b"x\\xx");
    }

    #[test]
    fn second_halves_are_counted_from_the_start_of_a_run() {
        let masked = |bytes: &[u8]| without_second_halves(bytes, &legible(bytes).unwrap());
        assert_eq!(masked(b"\"\x83\x5c\"").unwrap(), b"\"xx\"");
        // あ has two bytes above ASCII, so the backslash is one.
        assert_eq!(masked(b"\"\x82\xa0\\n\""), None);
        assert_eq!(masked(b"\"\x82\xa0\x83\x7b\"").unwrap(), b"\"xxxx\"");
    }
}
