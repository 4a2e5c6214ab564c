//! Splits texts into words and words into tokens, as defined in `weights/FORMAT.md`.
//!
//! Works on bytes. The only recognised letters outside ASCII are two-byte sequences that begin with `C3`. Such a
//! sequence never occurs inside another character or in bytes that a lossy decoder replaces, so invalid UTF-8 needs no
//! special handling.

use super::vocabulary::{MAX_WORD_BYTES, Vocabulary, WordHash};

/// Calls `emit` with the id of each token of `text`, in order. Does not allocate.
#[inline]
pub(super) fn for_each_token(vocabulary: &Vocabulary, text: &[u8], mut emit: impl FnMut(u32)) {
    for_each_word(text, |word, hash| match vocabulary.find(hash, word) {
        Some(id) => emit(id),
        None => vocabulary.split(word, &mut emit),
    });
}

/// Calls `emit` with each word of `text`, converted to lower-case ASCII, and its hash. Skips words longer than
/// [`MAX_WORD_BYTES`].
#[inline(always)]
fn for_each_word(text: &[u8], mut emit: impl FnMut(&[u8], WordHash)) {
    let mut word = Word::new();
    let mut previous = Kind::Separator;
    let mut at = 0;
    while at < text.len() {
        let (letter, width) = letter_at(text, at);
        at += width;
        match letter.kind {
            Kind::Lower | Kind::Digit => word.push(letter.lower),
            Kind::Upper => {
                if capital_starts_word(previous, text, at) {
                    word.finish(&mut emit);
                }
                word.push(letter.lower);
            }
            Kind::Separator => word.finish(&mut emit),
        }
        previous = letter.kind;
    }
    word.finish(&mut emit);
}

/// The word that is being read.
struct Word {
    bytes: [u8; MAX_WORD_BYTES],
    /// The number of bytes of the word, which may exceed the capacity of `bytes`.
    len: usize,
    hash: WordHash,
}

impl Word {
    fn new() -> Self {
        Self {
            bytes: [0; MAX_WORD_BYTES],
            len: 0,
            hash: WordHash::EMPTY,
        }
    }

    #[inline(always)]
    fn push(&mut self, byte: u8) {
        if let Some(place) = self.bytes.get_mut(self.len) {
            *place = byte;
        }
        self.len += 1;
        self.hash = self.hash.with(byte);
    }

    /// Emits the word unless it is empty, and starts the next word.
    #[inline(always)]
    fn finish(&mut self, emit: &mut impl FnMut(&[u8], WordHash)) {
        if self.len == 0 {
            return;
        }
        if let Some(word) = self.bytes.get(..self.len) {
            emit(word, self.hash);
        }
        self.len = 0;
        self.hash = WordHash::EMPTY;
    }
}

/// The class of a character. Determines word boundaries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Separator,
    Lower,
    Digit,
    Upper,
}

/// A character converted to ASCII.
#[derive(Clone, Copy)]
struct Letter {
    kind: Kind,
    /// The letter in lower case; 0 for a separator.
    lower: u8,
}

/// Returns true if a capital letter that follows `previous` begins a word. `next` is the position after the capital.
///
/// A capital after a lower-case letter or digit begins a word. In a run of capitals, the last one begins a word if a
/// lower-case letter follows (`HTTP|Server`), except for a plural `s` (`URLs`).
fn capital_starts_word(previous: Kind, text: &[u8], next: usize) -> bool {
    if previous != Kind::Upper {
        return true;
    }
    match small_letter_at(text, next) {
        None => false,
        Some((b's', width)) => small_letter_at(text, next + width).is_some(),
        Some(_) => true,
    }
}

/// Returns the character at `at` and its width in bytes if it is a lower-case letter.
fn small_letter_at(text: &[u8], at: usize) -> Option<(u8, usize)> {
    if at >= text.len() {
        return None;
    }
    let (letter, width) = letter_at(text, at);
    (letter.kind == Kind::Lower).then_some((letter.lower, width))
}

/// Returns the character at `at` and its width in bytes. `at` must be inside `text`.
#[inline(always)]
fn letter_at(text: &[u8], at: usize) -> (Letter, usize) {
    let byte = text[at];
    if byte != LATIN_LEAD {
        return (LETTERS[usize::from(byte)], 1);
    }
    match text.get(at + 1) {
        Some(&second @ 0x80..=0xbf) => (LETTERS[usize::from(FOLD[usize::from(second - 0x80)])], 2),
        _ => (LETTERS[0], 1),
    }
}

/// The first UTF-8 byte of U+00C0..U+00FF.
const LATIN_LEAD: u8 = 0xc3;

/// The ASCII letters for U+00C0..U+00FF; `.` for a separator.
const FOLD: &[u8; 64] = b"AAAAAA.CEEEEIIII.NOOOOO.OUUUUY..aaaaaa.ceeeeiiii.nooooo.ouuuuy.y";

/// The letter for each byte. Bytes outside ASCII are separators in this table.
const LETTERS: [Letter; 256] = {
    let mut table = [Letter {
        kind: Kind::Separator,
        lower: 0,
    }; 256];
    let mut byte = 0;
    while byte < 128 {
        let kind = match byte as u8 {
            b'a'..=b'z' => Kind::Lower,
            b'0'..=b'9' => Kind::Digit,
            b'A'..=b'Z' => Kind::Upper,
            _ => Kind::Separator,
        };
        if !matches!(kind, Kind::Separator) {
            table[byte] = Letter {
                kind,
                lower: (byte as u8).to_ascii_lowercase(),
            };
        }
        byte += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: impl AsRef<[u8]>) -> String {
        let mut found = Vec::new();
        for_each_word(text.as_ref(), |word, hash| {
            let again = word.iter().fold(WordHash::EMPTY, |hash, &byte| hash.with(byte));
            assert_eq!(hash, again);
            found.push(String::from_utf8_lossy(word).into_owned());
        });
        found.join("|")
    }

    #[test]
    fn capitals_begin_words() {
        assert_eq!(words("parseHTTPServerURLs"), "parse|http|server|urls");
        assert_eq!(words("getURLsFromIDs"), "get|urls|from|ids");
        assert_eq!(words("XMLHttpRequest"), "xml|http|request");
        assert_eq!(words("URLset URLs URLsX IDs2 aB"), "ur|lset|urls|urls|x|ids2|a|b");
        assert_eq!(words("SCREAMING_SNAKE_CASE"), "screaming|snake|case");
    }

    #[test]
    fn a_digit_begins_no_word() {
        assert_eq!(
            words("sha256Hash UTF8String 42nd i32"),
            "sha256|hash|utf8|string|42nd|i32"
        );
    }

    #[test]
    fn latin_letters_are_folded_and_others_separate() {
        assert_eq!(words("Café naïve Ünïcödé ÉCOLEs"), "cafe|naive|unicode|ecoles");
        assert_eq!(words("straße œuvre 日本x語y Łódź"), "stra|e|uvre|x|y|od");
        assert_eq!(words("a×b÷c"), "a|b|c");
    }

    #[test]
    fn broken_utf8_is_read_like_its_lossy_decoding() {
        for bytes in [
            &b"ab\xc3"[..],
            b"\xc3\xc3\x89t",
            b"\xe2\xc3\x89x",
            b"a\xf0\x9f\xc3\xa9b",
            b"\xc3AB",
            b"\xffq\x80",
        ] {
            assert_eq!(
                words(bytes),
                words(String::from_utf8_lossy(bytes).as_bytes()),
                "{bytes:?}"
            );
        }
    }

    #[test]
    fn words_over_64_bytes_are_dropped() {
        let long = "a".repeat(65);
        assert_eq!(words(format!("x {long} y")), "x|y");
        assert_eq!(words(format!("{}B", &long)), "b");
        assert_eq!(words(&long[1..]), &long[1..]);
        assert_eq!(words("Ab".repeat(40)), vec!["ab"; 40].join("|"));
    }
}
