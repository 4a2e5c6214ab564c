//! Decides whether the best candidates match so little that nothing is found.

use super::messages::MessageScores;
use super::search::{Legs, Scope, Searcher};

/// Candidates for a description are returned if their strength ([`Searcher::is_weak`]) is at least this.
/// `docs/evaluation.md` describes how the value was chosen.
const MIN_PROSE_STRENGTH: f32 = 0.34;
/// Like [`MIN_PROSE_STRENGTH`], for a name that is not the name of a definition.
const MIN_NAME_STRENGTH: f32 = 0.6;

impl Searcher<'_> {
    /// Returns true if a word of the query is the name of a file.
    pub(super) fn names_file(&self, query: &str) -> bool {
        let words: Vec<&str> = query.split_whitespace().filter(|word| word.contains('.')).collect();
        let is_named = |path: &[u8]| {
            let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
            words
                .iter()
                .any(|word| word.as_bytes().eq_ignore_ascii_case(name) || word.as_bytes() == path)
        };
        !words.is_empty() && self.view.files().any(|(_, file)| is_named(file.path))
    }

    /// Returns true if the best candidates match so little that there is probably no answer: the sum of the best cosine,
    /// half of the greatest share of the query's idf in a chunk and, for descriptions, half of the greatest share in a
    /// file or its messages is low.
    pub(super) fn is_weak(&self, legs: &Legs<'_>, messages: &MessageScores, scope: &Scope) -> bool {
        let lexical = legs.lexical;
        let all_idf = lexical.idf.iter().sum::<f32>().max(f32::MIN_POSITIVE);
        let greatest = |covered: &mut dyn Iterator<Item = f32>| covered.fold(0.0, f32::max) / all_idf;
        let cosine = legs.by_meaning.first().map_or(0.0, |(_, cosine)| cosine.0);
        let in_chunk = greatest(&mut legs.by_words.iter().map(|&doc| lexical.doc(doc).covered));
        if legs.analysis.is_name {
            return cosine + in_chunk / 2.0 < MIN_NAME_STRENGTH;
        }
        let files = lexical.files().filter(|(file, _)| scope.has_file(*file));
        let in_file = greatest(&mut files.map(|(_, scores)| scores.covered));
        cosine + (in_chunk + in_file.max(messages.covered)) / 2.0 < MIN_PROSE_STRENGTH
    }
}
