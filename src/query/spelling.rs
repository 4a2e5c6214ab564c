//! Corrects typing errors in queries: replaces an unknown word by the most similar known one.

use crate::embed::StaticModel;
use crate::index::lexical::{LexicalError, is_stop_word, stem, words};
use crate::snapshot::View;

use super::lexical_leg::postings_in_view;
use super::near::edits;
use super::search::SearchError;

/// Minimum length of a word to correct. Shorter words are similar to too many others.
const MIN_WORD: usize = 5;
/// Minimum length of a word in which two letters may be wrong instead of one.
const MIN_WORD_FOR_TWO: usize = 10;

/// Returns the query with unknown words replaced, or `None` if no word was replaced.
///
/// A word is unknown if it is not quoted, consists of lower-case letters and is neither in the view nor in the model's
/// vocabulary. It is replaced by the vocabulary word with the smallest edit distance and the same first letter. Among
/// several, the word that most documents of the view contain is chosen. Calls `go_on` before each word.
pub(super) fn corrected(
    query: &str,
    view: &View,
    model: &StaticModel,
    go_on: impl Fn() -> Result<(), SearchError>,
) -> Result<Option<String>, SearchError> {
    let mut text = String::new();
    let mut copied = 0;
    for (at, word) in words(query) {
        go_on()?;
        let is_quoted = query[..at].matches('"').count() % 2 == 1 && query[at..].contains('"');
        if is_quoted || !is_plain(word) || model.token_id(word).is_some() || n_docs(view, word)? > 0 {
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
    word.len() >= MIN_WORD && word.bytes().all(|byte| byte.is_ascii_lowercase()) && !is_stop_word(word)
}

fn nearest(word: &str, view: &View, model: &StaticModel) -> Result<Option<String>, LexicalError> {
    let max = if word.len() >= MIN_WORD_FOR_TWO { 2 } else { 1 };
    let mut best: Option<(usize, usize, &str)> = None;
    for token in 0..model.n_tokens() as u32 {
        let Some(known) = model.token_text(token) else { continue };
        if known.as_bytes().first() != word.as_bytes().first() || known.len() < MIN_WORD - 1 {
            continue;
        }
        let Some(distance) = edits(word, known, max) else {
            continue;
        };
        if best.is_some_and(|(nearest, _, _)| nearest < distance) {
            continue;
        }
        let n_docs = n_docs(view, known)?;
        if best.is_none_or(|(nearest, most, _)| distance < nearest || n_docs > most) {
            best = Some((distance, n_docs, known));
        }
    }
    Ok(best.map(|(_, _, known)| known.to_owned()))
}

/// Returns the number of documents of the view that contain a word in any form.
fn n_docs(view: &View, word: &str) -> Result<usize, LexicalError> {
    Ok(postings_in_view(view, &stem(word))?.len())
}
