//! Splits text into terms. Documents and queries are split in the same way.
//!
//! A word is a run of letters, digits and `_`. It is split into parts at `_`, between a lower-case and an upper-case
//! letter, before the last of several upper-case letters (`HTTPServer` → `http server`), and between letters and digits
//! (`utf8` → `utf8 utf 8`). The terms of a word are its parts, in lower case and stemmed. If there are several parts,
//! the whole word without `_` is also a term, so that `parse_query`, `parseQuery` and `parsequery` match one another.

use std::cell::RefCell;
use std::collections::HashMap;

use foldhash::fast::RandomState;
use rust_stemmers::{Algorithm, Stemmer};

use crate::model::start_of;

/// Length limit of words. A longer word is probably a key, a hash or encoded data. It becomes one term, truncated to
/// this length.
const MAX_WORD_BYTES: usize = 64;
/// Number of stems that each thread caches.
const STEM_CACHE_ENTRIES: usize = 1 << 15;

/// English words that carry little meaning in a question about code. Source: the usual function words, except those
/// that carry meaning in such questions, for example `new`.
const STOP_WORDS: &[&str] = &[
    "a", "about", "after", "all", "also", "an", "and", "any", "are", "as", "at", "be", "because", "been", "before",
    "being", "between", "both", "but", "by", "can", "could", "did", "do", "does", "doing", "each", "for", "from",
    "had", "has", "have", "having", "here", "how", "i", "if", "in", "into", "is", "it", "its", "just", "me", "more",
    "most", "my", "no", "not", "of", "on", "once", "only", "or", "other", "our", "out", "over", "own", "same",
    "should", "so", "some", "such", "than", "that", "the", "their", "them", "then", "there", "these", "they", "this",
    "those", "through", "to", "too", "under", "until", "up", "very", "was", "we", "were", "what", "when", "where",
    "which", "while", "who", "why", "will", "with", "would", "you", "your",
];

/// Returns true if a lower-case word is a stop word.
pub fn is_stop_word(word: &str) -> bool {
    STOP_WORDS.binary_search(&word).is_ok()
}

/// Returns the normal form of a name, without case and `_`. `parse_query`, `parseQuery` and `ParseQuery` have the same
/// normal form.
pub fn normal_name(name: &str) -> String {
    let mut normal = String::with_capacity(name.len());
    name.split('_').for_each(|piece| push_lower(&mut normal, piece));
    normal
}

/// Returns the words of `text`, each with its offset.
pub fn words(text: &str) -> Words<'_> {
    Words { text, at: 0 }
}

/// An iterator over the words of a text.
#[derive(Clone, Debug)]
pub struct Words<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Iterator for Words<'a> {
    type Item = (usize, &'a str);

    fn next(&mut self) -> Option<Self::Item> {
        let bytes = self.text.as_bytes();
        while self.at < bytes.len() {
            match word_char_length(self.text, self.at) {
                Some(_) => break,
                None => self.at += char_length(self.text, self.at),
            }
        }
        let start = self.at;
        while self.at < bytes.len() {
            match word_char_length(self.text, self.at) {
                Some(length) => self.at += length,
                None => break,
            }
        }
        (start < self.at).then(|| (start, &self.text[start..self.at]))
    }
}

/// Returns the length of the character at `at` in bytes. Returns `None` if the character is not part of a word.
#[inline]
fn word_char_length(text: &str, at: usize) -> Option<usize> {
    let byte = text.as_bytes()[at];
    if byte < 0x80 {
        return (byte.is_ascii_alphanumeric() || byte == b'_').then_some(1);
    }
    let character = text[at..].chars().next()?;
    character.is_alphanumeric().then(|| character.len_utf8())
}

fn char_length(text: &str, at: usize) -> usize {
    text[at..].chars().next().map_or(1, char::len_utf8)
}

/// Calls `found` with every term of `text`, in order and including repetitions.
pub fn for_each_term(text: &str, mut found: impl FnMut(&str)) {
    for (_, word) in words(text) {
        for_each_word(word, &mut found);
    }
}

/// Calls `found` with every term of a word: its parts and, if there are several, the whole word.
pub fn for_each_word(word: &str, found: &mut impl FnMut(&str)) {
    if word.len() > MAX_WORD_BYTES {
        found(&start_of(word, MAX_WORD_BYTES).to_lowercase());
        return;
    }
    STEMS.with_borrow_mut(|stems| {
        let mut n_parts = 0;
        for part in parts(word) {
            n_parts += 1;
            stems.lower.clear();
            push_lower(&mut stems.lower, part);
            let lower = std::mem::take(&mut stems.lower);
            found(stems.stem(&lower));
            if lower.bytes().any(|byte| byte.is_ascii_digit()) {
                for_each_letter_or_digit_run(&lower, &mut *found, stems);
            }
            stems.lower = lower;
        }
        if n_parts > 1 {
            stems.lower.clear();
            for piece in word.split('_') {
                push_lower(&mut stems.lower, piece);
            }
            found(&stems.lower);
        }
    });
}

/// Returns the stem of a lower-case word.
pub fn stem(lower: &str) -> String {
    STEMS.with_borrow_mut(|stems| stems.stem(lower).to_owned())
}

fn for_each_letter_or_digit_run(part: &str, found: &mut impl FnMut(&str), stems: &mut Stems) {
    let is_digit = |byte: u8| byte.is_ascii_digit();
    let bytes = part.as_bytes();
    if bytes.iter().all(|&byte| is_digit(byte)) {
        return;
    }
    let mut start = 0;
    for at in 1..=bytes.len() {
        if at == bytes.len() || is_digit(bytes[at]) != is_digit(bytes[at - 1]) {
            found(stems.stem(&part[start..at]));
            start = at;
        }
    }
}

/// Appends a text in lower case.
pub fn push_lower(to: &mut String, text: &str) {
    if text.is_ascii() {
        let start = to.len();
        to.push_str(text);
        to[start..].make_ascii_lowercase();
    } else {
        to.extend(text.chars().flat_map(char::to_lowercase));
    }
}

/// Returns the parts of a word, which is split at `_` and at changes of case.
pub fn parts(word: &str) -> impl Iterator<Item = &str> {
    Parts { word, at: 0 }
}

struct Parts<'a> {
    word: &'a str,
    at: usize,
}

impl<'a> Iterator for Parts<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let bytes = self.word.as_bytes();
        while bytes.get(self.at) == Some(&b'_') {
            self.at += 1;
        }
        let start = self.at;
        while self.at < bytes.len() && bytes[self.at] != b'_' {
            self.at += 1;
            if self.at < bytes.len() && is_case_boundary(bytes, self.at) {
                break;
            }
        }
        (start < self.at).then(|| &self.word[start..self.at])
    }
}

/// Returns true if the case of letters starts a new part at `at` (`0 < at < len`). A letter outside ASCII never starts
/// a part.
fn is_case_boundary(bytes: &[u8], at: usize) -> bool {
    let (before, here) = (bytes[at - 1], bytes[at]);
    if !here.is_ascii_uppercase() {
        return false;
    }
    if before.is_ascii_lowercase() || before.is_ascii_digit() {
        return true;
    }
    let next_is_lower = bytes.get(at + 1).is_some_and(u8::is_ascii_lowercase);
    // `URLs` is one part: the last capital does not start a part if a plural `s` follows.
    let is_plural = bytes.get(at + 1) == Some(&b's') && !bytes.get(at + 2).is_some_and(u8::is_ascii_lowercase);
    before.is_ascii_uppercase() && next_is_lower && !is_plural
}

/// A stemmer with a cache. Parts repeat, and a lookup is cheaper than stemming.
struct Stems {
    stemmer: Stemmer,
    known: HashMap<Box<str>, Box<str>, RandomState>,
    lower: String,
}

impl Stems {
    fn stem<'a>(&'a mut self, lower: &'a str) -> &'a str {
        let is_plain = lower.len() > 2 && lower.bytes().all(|byte| byte.is_ascii_lowercase());
        if !is_plain {
            return lower;
        }
        if !self.known.contains_key(lower) {
            if self.known.len() >= STEM_CACHE_ENTRIES {
                self.known.clear();
            }
            let stem = self.stemmer.stem(lower).into_owned().into_boxed_str();
            self.known.insert(lower.into(), stem);
        }
        &self.known[lower]
    }
}

thread_local! {
    static STEMS: RefCell<Stems> = RefCell::new(Stems {
        stemmer: Stemmer::create(Algorithm::English),
        known: HashMap::default(),
        lower: String::new(),
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms(text: &str) -> Vec<String> {
        let mut list = Vec::new();
        for_each_term(text, |term| list.push(term.to_owned()));
        list
    }

    #[test]
    fn identifiers_give_parts_and_the_whole() {
        assert_eq!(terms("parse_query"), ["pars", "queri", "parsequery"]);
        assert_eq!(terms("parseQuery"), ["pars", "queri", "parsequery"]);
        assert_eq!(terms("HTTPServer"), ["http", "server", "httpserver"]);
        assert_eq!(terms("parseURLs"), ["pars", "url", "parseurls"]);
        assert_eq!(terms("__init__"), ["init"]);
    }

    #[test]
    fn digits_are_terms_with_and_without_letters() {
        assert_eq!(terms("sha256"), ["sha256", "sha", "256"]);
        assert_eq!(terms("sha256Hash"), ["sha256", "sha", "256", "hash", "sha256hash"]);
        assert_eq!(terms("1024"), ["1024"]);
    }

    #[test]
    fn words_are_stemmed_and_other_scripts_kept() {
        assert_eq!(terms("retried retries retry"), ["retri", "retri", "retri"]);
        assert_eq!(terms("größe"), ["größe"]);
        assert_eq!(terms("… -> !"), Vec::<String>::new());
    }

    #[test]
    fn a_very_long_word_is_one_cut_term() {
        assert_eq!(terms(&"aB".repeat(500)), ["ab".repeat(32)]);
        assert_eq!(terms(&"é".repeat(500)).len(), 1);
    }

    #[test]
    fn stop_words_are_sorted() {
        assert!(STOP_WORDS.is_sorted());
        assert!(is_stop_word("where") && !is_stop_word("upload"));
    }
}
