//! Corrects typing errors in queries: replaces a word that the view lacks by the most similar one that it contains.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use crate::embed::{Side, StaticModel};
use crate::index::lexical::{LexicalError, is_stop_word, stem, words};
use crate::snapshot::View;

use super::lexical_leg::postings_in_view;
use super::near::edits;
use super::request::SearchError;

/// Minimum length of a word to correct. Shorter words are similar to too many others.
const MIN_WORD: usize = 5;
/// Minimum length of a word in which two letters may be wrong instead of one.
const MIN_WORD_FOR_TWO: usize = 10;
/// Maximum number of words, from the first, that are corrected. Each unknown word takes about a millisecond.
const MAX_WORDS: usize = 64;
/// Endings that a stem may lack.
const ENDINGS: [&str; 12] = ["", "e", "y", "s", "es", "ies", "ed", "ied", "ing", "er", "ers", "ly"];
/// Length of the longest of them.
const MAX_ENDING: usize = 3;
/// Minimum cosine between two words that the model knows, of which one replaces the other. Common misspellings have it
/// ("recieve" and "receive" 0.38), other words with similar letters do not ("lease" and "leave" 0.14).
const MIN_SAME: f32 = 0.3;

/// Returns the query with misspelt words replaced, or `None` if no word was replaced.
///
/// A word may be misspelt if it is not quoted, consists of lower-case letters and digits, and the view contains no form
/// of it. It is replaced by the word of the view with the smallest edit distance, the same first letter and the same
/// digits. Among several, the word that most documents contain is chosen. A word that the model knows is only replaced
/// by one with a similar meaning. Calls `go_on` before each word.
pub(super) fn corrected(
    query: &str,
    view: &View,
    model: &StaticModel,
    go_on: impl Fn() -> Result<(), SearchError>,
) -> Result<Option<String>, SearchError> {
    let mut text = String::new();
    let mut copied = 0;
    for (at, word) in words(query).take(MAX_WORDS) {
        go_on()?;
        let is_quoted = query[..at].matches('"').count() % 2 == 1 && query[at..].contains('"');
        if is_quoted || !is_plain(word) || is_in_view(word, view)? {
            continue;
        }
        if let Some(known) = nearest(word, view, model)? {
            text.push_str(&query[copied..at]);
            text.push_str(&known);
            copied = at + word.len();
        }
    }
    if copied == 0 {
        return Ok(None);
    }
    text.push_str(&query[copied..]);
    Ok(Some(text))
}

fn is_plain(word: &str) -> bool {
    word.len() >= MIN_WORD
        && word.starts_with(|letter: char| letter.is_ascii_lowercase())
        && word
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
        && !is_stop_word(word)
}

/// Returns true if the view contains a word in any form, or as a whole name. Stems differ for "staple" and "stapler".
fn is_in_view(word: &str, view: &View) -> Result<bool, LexicalError> {
    let stem = stem(word);
    let mut forms = vec![word.to_owned(), format!("{stem}r"), format!("{stem}er")];
    if let Some(verb) = stem.strip_suffix("er") {
        forms.extend([verb.to_owned(), format!("{verb}e")]);
    }
    forms.push(stem);
    for form in forms {
        if n_docs(view, &form)? > 0 {
            return Ok(true);
        }
    }
    Ok(false)
}

fn nearest(word: &str, view: &View, model: &StaticModel) -> Result<Option<String>, LexicalError> {
    let max = if word.len() >= MIN_WORD_FOR_TWO { 2 } else { 1 };
    let lengths = word.len().saturating_sub(MAX_ENDING + max)..=word.len() + max;
    let mut near = BTreeSet::new();
    // Terms are stems. The model knows most words that have them.
    let known = (0..model.n_tokens() as u32).filter_map(|token| model.token_text(token));
    for known in known.filter(|known| known.starts_with(&word[..1]) && begins_like(word, known, max)) {
        near.extend(edits(word, known, max).map(|distance| (distance, known.to_owned())));
    }
    for segment in view.segments().iter() {
        segment.lexical.for_each_term_with(&word[..1], |term| {
            if lengths.contains(&term.len()) && begins_like(word, term.trim_end_matches('i'), max) {
                near.extend(forms_of(term, word, max));
            }
        })?;
    }
    let is_known = model.token_id(word).is_some();
    let vector = |word: &str| model.embed(word.as_bytes(), Side::Query).vector;
    let cosine = |other: &str| -> f32 { vector(word).iter().zip(vector(other)).map(|(a, b)| a * b).sum() };
    let mut best = None;
    for (distance, text) in near {
        if text.len() < MIN_WORD - 1 || digits(&text) != digits(word) {
            continue;
        }
        let stem = stem(&text);
        let n_docs = n_docs(view, &stem)?;
        let is_token = model.token_id(&text).is_some();
        if n_docs > 0 && (!is_known || is_token && cosine(&text) >= MIN_SAME) {
            // A form that was put together may be no word.
            let is_word = is_token || stem == text;
            best = best.max(Some((Reverse(distance), is_word, n_docs, is_token, text)));
        }
    }
    Ok(best.map(|(.., text)| text))
}

/// Returns true if `word` begins with a text that differs from `term` in at most `max` letters.
fn begins_like(word: &str, term: &str, max: usize) -> bool {
    fn is_like(word: &[u8], term: &[u8], max: usize) -> bool {
        let n_same = word.iter().zip(term).take_while(|(a, b)| a == b).count();
        let (word, term) = (&word[n_same..], &term[n_same..]);
        if term.len() <= max || max == 0 {
            return term.len() <= max;
        }
        let without = |n: usize, m: usize| word.len() >= n && is_like(&word[n..], &term[m..], max - 1);
        let is_swapped = word.len() > 1 && word[0] == term[1] && word[1] == term[0];
        without(1, 0) || without(0, 1) || without(1, 1) || is_swapped && without(2, 2)
    }
    is_like(word.as_bytes(), term.as_bytes(), max)
}

/// Returns the forms of a term, its stem, that resemble a word, with the edit distances.
fn forms_of(term: &str, word: &str, max: usize) -> Vec<(usize, String)> {
    // The stem of "retry" is "retri".
    let bases = [Some(term), term.strip_suffix('i')];
    let mut forms = Vec::new();
    for base in bases.into_iter().flatten() {
        for ending in ENDINGS {
            if (base.len() + ending.len()).abs_diff(word.len()) > max {
                continue;
            }
            let form = format!("{base}{ending}");
            if begins_like(word, &form, max)
                && let Some(distance) = edits(word, &form, max)
                && stem(&form) == term
            {
                forms.push((distance, form));
            }
        }
    }
    forms
}

fn digits(text: &str) -> Vec<u8> {
    let mut digits: Vec<u8> = text.bytes().filter(u8::is_ascii_digit).collect();
    digits.sort_unstable();
    digits
}

/// Returns the number of documents of the view that contain a term.
fn n_docs(view: &View, term: &str) -> Result<usize, LexicalError> {
    Ok(postings_in_view(view, term)?.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_start_of_a_word_may_differ_in_some_letters() {
        for (word, term) in [
            ("uplaoding", "upload"),
            ("retreive", "retriev"),
            ("uploa", "upload"),
            ("rretry", "retr"),
            ("sah256", "sha256"),
        ] {
            assert!(begins_like(word, term, 1), "{word} {term}");
        }
        assert!(!begins_like("uplaodign", "uploading", 1));
        assert!(begins_like("uplaodign", "uploading", 2));
        assert!(!begins_like("stapling", "scaling", 1));
    }

    #[test]
    fn stems_are_shown_as_words() {
        let shown = |term, word| forms_of(term, word, 1).into_iter().min().map(|(_, text)| text);
        assert_eq!(shown("retri", "retyr").as_deref(), Some("retry"));
        assert_eq!(shown("retriev", "retreive").as_deref(), Some("retrieve"));
        assert_eq!(shown("upload", "uplaods").as_deref(), Some("uploads"));
        assert_eq!(shown("sha256", "sah256").as_deref(), Some("sha256"));
        assert_eq!(shown("upload", "upstairs"), None);
    }
}
