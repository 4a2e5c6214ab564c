//! Decides whether the best candidates match so little that nothing is found.

use super::candidates::{Legs, Scope};
use super::messages::MessageScores;
use super::search::Searcher;

/// Candidates for a description are returned if their strength ([`Searcher::is_weak`]) is at least this.
/// `docs/evaluation.md` describes how the value was chosen.
const MIN_PROSE_STRENGTH: f32 = 0.34;
/// Like [`MIN_PROSE_STRENGTH`], for a name that no definition has, and for a few words.
const MIN_NAME_STRENGTH: f32 = 0.6;
/// Like [`MIN_PROSE_STRENGTH`], for more than [`MAX_PAIRED_WORDS`] words that are all somewhere, but in no chunk together.
const MIN_SHORT_STRENGTH: f32 = 0.5;
/// Two or three words that belong together are in one chunk where the repository is about them.
const MAX_PAIRED_WORDS: usize = 3;

impl Searcher<'_> {
    /// Returns true if the best candidates match so little that there is probably no answer: no chunk has all words of
    /// the query, and the sum of the best cosine, half of the greatest share of the query's idf in a chunk and, for
    /// descriptions, half of the greatest share in a file or its messages is low.
    pub(super) fn is_weak(&self, legs: &Legs<'_>, messages: &MessageScores, scope: &Scope) -> bool {
        let lexical = legs.lexical;
        let n_words = legs.analysis.n_words;
        let all_words = lexical.idf_of(n_words);
        let mut covered = lexical
            .docs()
            .filter(|(doc, _)| scope.contains(*doc))
            .map(|(_, scores)| scores.covered);
        if n_words > 0 && covered.any(|covered| covered >= all_words) {
            return false;
        }
        let all_idf = lexical.idf.iter().sum::<f32>().max(f32::MIN_POSITIVE);
        let greatest = |covered: &mut dyn Iterator<Item = f32>| covered.fold(0.0, f32::max) / all_idf;
        let cosine = legs.by_meaning.first().map_or(0.0, |(_, cosine)| cosine.0);
        let in_chunk = greatest(&mut legs.by_words.iter().map(|&doc| lexical.doc(doc).covered));
        // The model has no vectors for words in some scripts.
        if cosine <= 0.0 {
            return in_chunk < MIN_PROSE_STRENGTH;
        }
        if legs.analysis.is_name() || legs.analysis.is_short {
            let is_phrase = n_words > MAX_PAIRED_WORDS && !legs.analysis.is_name() && !lexical.has_absent(n_words);
            let min = if is_phrase {
                MIN_SHORT_STRENGTH
            } else {
                MIN_NAME_STRENGTH
            };
            return cosine + in_chunk / 2.0 < min;
        }
        let files = lexical.files().filter(|(file, _)| scope.has_file(*file));
        let in_file = greatest(&mut files.map(|(_, scores)| scores.covered));
        cosine + (in_chunk + in_file.max(messages.covered)) / 2.0 < MIN_PROSE_STRENGTH
    }
}
