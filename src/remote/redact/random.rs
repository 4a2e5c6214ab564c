//! Finds words and lines that look random in any context: keys, tokens, passwords, seeds and base64.

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
/// Minimum length of a line of base64.
const MIN_ENCODED: usize = 40;
/// Minimum number of hexadecimal digits that no checksum has.
const MIN_HEXADECIMAL: usize = 160;
/// Starts of checksums, which lock files and web pages contain, and of public keys of SSH.
const PUBLIC: &str = "sha1- sha256- sha384- sha512- md5- SHA-256= h1: AAAAB3NzaC1 AAAAC3NzaC1 AAAAE2VjZHNhLX";

pub(super) fn find(text: &str) -> Vec<Range<usize>> {
    let is_end = |byte: &u8| !byte.is_ascii_alphanumeric() && !b"+/=".contains(byte);
    let has_long = text.as_bytes().split(is_end).any(|word| word.len() >= MIN_ENCODED);
    let lines = if has_long || text.contains("-----END") {
        lines(text)
    } else {
        Vec::new()
    };
    [words(text), passwords(text), lines].concat()
}

/// Finds the words that look random. Other base64 data is found too; it has no meaning for a model.
fn words(text: &str) -> Vec<Range<usize>> {
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
    PUBLIC.split(' ').any(starts)
}

pub(super) fn is_random(word: &str) -> bool {
    let kind = |byte: u8| match byte {
        b'A'..=b'Z' => 0,
        b'a'..=b'z' => 1,
        b'0'..=b'9' => 2,
        _ => 3,
    };
    let (mut counts, mut n_pairs, mut n_changes, mut last) = ([0; 4], 0, 0, 3);
    for kind in word.bytes().map(kind) {
        counts[kind] += 1;
        let is_pair = kind != 3 && last != 3;
        n_pairs += usize::from(is_pair);
        n_changes += usize::from(is_pair && kind != last);
        last = kind;
    }
    let [n_upper, n_lower, n_digits, n_others] = counts;
    let share = n_changes as f32 / n_pairs.max(1) as f32;
    let n_all = n_upper + n_lower + n_digits;
    if n_upper >= MIN_OF_CASE && n_lower >= MIN_OF_CASE && n_digits > 1 {
        let is_long = n_all >= MIN_LONG;
        let least = if is_long {
            MIN_CHANGES_OF_LONG
        } else {
            MIN_CHANGES_OF_MIXED
        };
        return n_all >= MIN_MIXED && share >= least;
    }
    // Hexadecimal numbers are ids and checksums.
    if word.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-') {
        return n_all >= MIN_HEXADECIMAL && n_others == 0 && n_digits < n_all && share >= MIN_CHANGES_OF_SINGLE;
    }
    n_others == 0 && n_all >= MIN_SINGLE && n_digits > 3 && share >= MIN_CHANGES_OF_SINGLE
}

/// Finds words of letters, digits and a sign, with digits among the letters: `Tr0ub4dor&3x`.
fn passwords(text: &str) -> Vec<Range<usize>> {
    const SIGNS: [char; 5] = ['!', '@', '#', '^', '&'];
    const LENGTHS: Range<usize> = 8..41;
    let digit_between = form!("[A-Za-z][0-9][A-Za-z]");
    let is_part = |c: &char| c.is_ascii_alphanumeric() || SIGNS.contains(c);
    let (mut found, mut end) = (Vec::new(), 0);
    for (at, _) in text.match_indices(SIGNS) {
        if at < end {
            continue;
        }
        let n_before = text[end..at].chars().rev().take_while(is_part).count();
        end = at + text[at..].chars().take_while(is_part).count();
        let word = &text[at - n_before..end];
        let has = |wanted: fn(&u8) -> bool| word.as_bytes().iter().any(wanted);
        let is_mixed = has(u8::is_ascii_uppercase) && has(u8::is_ascii_lowercase) && digit_between.is_match(word);
        let is_alone = text[..at - n_before].ends_with(|c: char| c.is_whitespace() || "\"'`:/,|".contains(c))
            && !text[end..].starts_with(|c: char| c.is_alphanumeric() || "_=-:;()[]{}/".contains(c));
        if n_before > 0
            && !word.ends_with(['&', '@', '#', '^'])
            && LENGTHS.contains(&word.len())
            && is_mixed
            && is_alone
        {
            found.push(at - n_before..end);
        }
    }
    found
}

/// Finds consecutive lines of base64, also as strings in code, and lines before the end of a private key: the key's first
/// line may be in an earlier part of the file. Other base64 data has no meaning for a model.
fn lines(text: &str) -> Vec<Range<usize>> {
    let run = form!(
        r#"(?m)((?:^[ \t"'`]*[A-Za-z0-9+/=]{40,}(?:\\n)?["'`]?[ \t]*[,;+\\.]?[ \t]*\r?(?:\n|\z))+(?:^[ \t"'`]*[A-Za-z0-9+/=]+(?:\\n)?["'`]?[ \t]*[,;+\\.]?[ \t]*\r?(?:\n|\z))?|\A[ \t"'`]*[A-Za-z0-9+/=]+\S*\s+)([ \t"'`]*-----END [A-Z ]*PRIVATE KEY)?"#
    );
    let is_key = |captures: &regex::Captures<'_>| {
        let has = |wanted: fn(&u8) -> bool| captures[1].as_bytes().iter().any(wanted);
        let is_mixed = has(u8::is_ascii_digit) && has(u8::is_ascii_lowercase) && has(u8::is_ascii_uppercase);
        let n_encoded = captures[1]
            .lines()
            .filter(|line| line.trim().len() >= MIN_ENCODED)
            .count();
        captures.get(2).is_some() || n_encoded > 1 && is_mixed
    };
    let keys = run
        .captures_iter(text)
        .filter(is_key)
        .filter_map(|captures| captures.get(1));
    keys.map(|key| key.start()..key.start() + key.as_str().trim_end().len())
        .collect()
}
