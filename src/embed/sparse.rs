//! The contract of what turns texts into sparse vectors: a weight for each of a few tokens, those of the text and others that a
//! text like it could have.

use std::sync::atomic::AtomicBool;

use super::embedder::{Batching, EmbedError};
use super::profile::Profile;

/// Gives texts sparse vectors of one [`Profile`], whose `dim` is 0.
///
/// The contract is that of `Embedder`: the same text has the same vector whatever it is asked together with, calls block, may
/// come from many threads, and give all or nothing.
pub trait SparseEmbedder: Send + Sync {
    /// What the vectors depend on beside their texts. Constant during the embedder's life.
    fn profile(&self) -> &Profile;

    /// One vector per text, in the order of `texts`; `None` for a text that the model does not take.
    fn embed_documents(&self, texts: &[&str], interrupt: &AtomicBool) -> Result<Vec<Option<SparseVector>>, EmbedError>;

    /// The vector of a query. An empty one is like no document. What takes long ends soon after `interrupt` is set.
    fn embed_query(&self, text: &str, interrupt: &AtomicBool) -> Result<SparseVector, EmbedError>;

    /// How many texts at a time are best given to [`Self::embed_documents`], and how many calls of it at once do good.
    fn batching(&self) -> Batching {
        Batching::default()
    }

    /// What happened to texts that people should know, so far.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }
}

/// Tokens with their weights.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SparseVector {
    /// By ascending token; weights are above 0 and at most [`Self::MAX_WEIGHT`].
    terms: Vec<(u32, f32)>,
}

impl SparseVector {
    /// The most tokens of a vector. Models that are trained to be sparse give a text of a chunk's length 50 to 300.
    pub const MAX_TERMS: usize = 256;
    /// One past the highest token. The largest vocabularies have a quarter of it; a table of so many weights is 4 MiB.
    pub const N_TOKENS: u32 = 1 << 20;
    /// Far above what any model gives, so that no sum over a vector is infinite.
    pub const MAX_WEIGHT: f32 = 1e6;

    /// Takes the tokens of a vector from outside, in any order, and keeps the [`Self::MAX_TERMS`] heaviest. A weight of 0 is none.
    ///
    /// `backend` names the model or server in the error.
    pub fn from_foreign(mut terms: Vec<(u32, f32)>, backend: &str) -> Result<Self, EmbedError> {
        let unusable = |detail: String| EmbedError::Unusable {
            backend: backend.to_owned(),
            detail,
        };
        if let Some((token, weight)) = terms
            .iter()
            .find(|(_, weight)| !(0.0..=Self::MAX_WEIGHT).contains(weight))
        {
            return Err(unusable(format!("the weight {weight} for token {token}")));
        }
        if let Some((token, _)) = terms.iter().find(|(token, _)| *token >= Self::N_TOKENS) {
            return Err(unusable(format!("token {token}, and no vocabulary is so large")));
        }
        terms.sort_unstable_by_key(|(token, _)| *token);
        if let Some(pair) = terms.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            return Err(unusable(format!("token {} twice for a text", pair[0].0)));
        }
        terms.retain(|(_, weight)| *weight > 0.0);
        if terms.len() > Self::MAX_TERMS {
            terms.sort_by(|a, b| b.1.total_cmp(&a.1));
            terms.truncate(Self::MAX_TERMS);
            terms.sort_unstable_by_key(|(token, _)| *token);
        }
        Ok(Self { terms })
    }

    /// Takes what was a vector's before: by ascending token, within the bounds.
    pub(crate) fn of_terms(terms: Vec<(u32, f32)>) -> Self {
        Self { terms }
    }

    /// Tokens with their weights, by ascending token.
    pub fn terms(&self) -> &[(u32, f32)] {
        &self.terms
    }

    /// Whether the model found nothing in the text.
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn foreign_vectors_are_put_in_order() {
        let vector = SparseVector::from_foreign(vec![(7, 0.5), (2, 1.5), (4, 0.0)], "m").unwrap();
        assert_eq!(vector.terms(), [(2, 1.5), (7, 0.5)]);
        assert!(SparseVector::from_foreign(Vec::new(), "m").unwrap().is_empty());
    }

    #[test]
    fn of_too_many_tokens_the_heaviest_stay() {
        let terms = (0..1000).map(|token| (token, 1.0 + (token % 500) as f32)).collect();
        let vector = SparseVector::from_foreign(terms, "m").unwrap();
        assert_eq!(vector.terms().len(), SparseVector::MAX_TERMS);
        assert!(vector.terms().is_sorted());
        assert!(vector.terms().iter().all(|(token, _)| token % 500 >= 372));
    }

    #[test]
    fn foreign_vectors_are_checked() {
        for (terms, told) in [
            (vec![(1, f32::NAN)], "the weight NaN"),
            (vec![(1, f32::INFINITY)], "the weight inf"),
            (vec![(1, -0.5)], "the weight -0.5"),
            (vec![(1, 0.5), (2, 1.0), (1, 0.5)], "token 1 twice"),
            (vec![(u32::MAX, 0.5)], "token 4294967295"),
            (vec![(SparseVector::N_TOKENS, 0.5)], "token 1048576"),
        ] {
            let error = SparseVector::from_foreign(terms, "m").unwrap_err().to_string();
            assert!(error.contains(told), "{error}");
        }
    }
}
