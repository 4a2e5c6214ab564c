//! Finds words that look random in any context: keys, tokens, seeds and lines of base64.

use std::ops::Range;

/// Minimum number of letters and digits of a word of upper case, lower case and digits.
const MIN_MIXED: usize = 20;
/// Minimum number of them without upper case or without lower case. Such words must also be without separators.
const MIN_SINGLE: usize = 24;
/// Share of neighbours of different kinds (upper case, lower case, digit). It is 0.62 in random base64 and at most 0.4 in
/// most names, the less the longer they are; without upper case 0.4 and 0.1.
const MIN_CHANGES_OF_MIXED: f32 = 0.45;
const MIN_CHANGES_OF_LONG: f32 = 0.4;
/// Minimum number of letters and digits of a long word.
const MIN_LONG: usize = 32;
const MIN_CHANGES_OF_SINGLE: f32 = 0.28;
/// Minimum number of letters of each case in a word of both.
const MIN_OF_CASE: usize = 3;
/// Starts of checksums, which lock files and web pages contain, and of public keys of SSH.
const PUBLIC: [&str; 10] = [
    "sha1-",
    "sha256-",
    "sha384-",
    "sha512-",
    "md5-",
    "SHA-256=",
    "h1:",
    "AAAAB3NzaC1",
    "AAAAC3NzaC1",
    "AAAAE2VjZHNhLX",
];

/// Finds the words that look random. Other base64 data is found too; it has no meaning for a model.
pub(super) fn find(text: &str) -> Vec<Range<usize>> {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"+/_-".contains(&byte);
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let length = bytes[at..].iter().take_while(|byte| is_part(**byte)).count();
        if length >= MIN_MIXED && is_random(&text[at..at + length]) && !is_public(text, at) {
            let n_padding = bytes[at + length..].iter().take_while(|byte| **byte == b'=').count();
            found.push(at..at + length + n_padding);
        }
        at += length + 1;
    }
    found
}

fn is_public(text: &str, at: usize) -> bool {
    let starts = |mark: &str| text[at..].starts_with(mark) || text[..at].ends_with(mark);
    PUBLIC.iter().any(|mark| starts(mark))
}

/// The kind of a byte, by which random words change more often than names.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Upper,
    Lower,
    Digit,
    Other,
}

impl Kind {
    fn of(byte: u8) -> Self {
        match byte {
            b'A'..=b'Z' => Self::Upper,
            b'a'..=b'z' => Self::Lower,
            b'0'..=b'9' => Self::Digit,
            _ => Self::Other,
        }
    }
}

fn is_random(word: &str) -> bool {
    let kinds: Vec<Kind> = word.bytes().map(Kind::of).collect();
    let count = |wanted: Kind| kinds.iter().filter(|kind| **kind == wanted).count();
    let (n_upper, n_lower, n_digits) = (count(Kind::Upper), count(Kind::Lower), count(Kind::Digit));
    let pairs = kinds.windows(2).filter(|pair| !pair.contains(&Kind::Other));
    let (mut n_pairs, mut n_changes) = (0, 0);
    for pair in pairs {
        n_pairs += 1;
        n_changes += usize::from(pair[0] != pair[1]);
    }
    let share = n_changes as f32 / (n_pairs.max(1)) as f32;
    let n_all = n_upper + n_lower + n_digits;
    if n_upper >= MIN_OF_CASE && n_lower >= MIN_OF_CASE && n_digits > 1 {
        let least = if n_all < MIN_LONG {
            MIN_CHANGES_OF_MIXED
        } else {
            MIN_CHANGES_OF_LONG
        };
        return n_all >= MIN_MIXED && share >= least;
    }
    // Hexadecimal numbers are ids and checksums.
    let is_hexadecimal = word.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
    let is_one = !word.contains(['+', '/', '_', '-']);
    !is_hexadecimal && is_one && n_all >= MIN_SINGLE && n_digits > 3 && share >= MIN_CHANGES_OF_SINGLE
}
