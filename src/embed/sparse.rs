//! The [`SparseEmbedder`] trait: turns texts into sparse vectors. A sparse vector has weights for a few tokens: those
//! of the text, and others that a similar text could contain.

use std::sync::atomic::AtomicBool;

use super::embedder::{Batching, EmbedError};
use super::profile::Profile;

/// Turns texts into sparse vectors of one [`Profile`], whose `dim` is 0.
///
/// The contract is that of `Embedder`: the same text gives the same vector regardless of the rest of the batch, calls
/// block, may come from many threads, and return all results or none.
pub trait SparseEmbedder: Send + Sync {
    /// Everything besides the text that determines a vector. Constant for the lifetime of the embedder.
    fn profile(&self) -> &Profile;

    /// Returns one vector per text, in the order of `texts`; `None` for a text that the model does not accept.
    fn embed_documents(&self, texts: &[&str], interrupt: &AtomicBool) -> Result<Vec<Option<SparseVector>>, EmbedError>;

    /// Returns the vector of a query. The similarity of an empty vector to every document is 0. A long call ends soon
    /// after `interrupt` is set.
    fn embed_query(&self, text: &str, interrupt: &AtomicBool) -> Result<SparseVector, EmbedError>;

    /// The best batch size for [`Self::embed_documents`], and the useful number of concurrent calls.
    fn batching(&self) -> Batching {
        Batching::default()
    }

    /// Notes for the user about the texts so far.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }
}

/// Tokens with their weights.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SparseVector {
    /// By ascending token. Weights are above 0 and at most [`Self::MAX_WEIGHT`].
    terms: Vec<(u32, f32)>,
}

impl SparseVector {
    /// Maximum number of tokens in a vector. Models trained for sparsity give 50 to 300 for a text of a chunk's length.
    pub const MAX_TERMS: usize = 256;
    /// One past the highest token. The largest vocabularies have a quarter of this; a table of this many weights takes
    /// 4 MiB.
    pub const N_TOKENS: u32 = 1 << 20;
    /// Far above the weights of any model; keeps sums over a vector finite.
    pub const MAX_WEIGHT: f32 = 1e6;

    /// Converts tokens from an external source, in any order, and keeps the [`Self::MAX_TERMS`] heaviest. Tokens of
    /// weight 0 are dropped.
    ///
    /// `backend` names the model or server in errors.
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
            return Err(unusable(format!("token {token}, which is above any vocabulary")));
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

    /// Wraps terms that already were those of a `SparseVector`: by ascending token and within the bounds.
    pub(crate) fn of_terms(terms: Vec<(u32, f32)>) -> Self {
        Self { terms }
    }

    /// Tokens with their weights, by ascending token.
    pub fn terms(&self) -> &[(u32, f32)] {
        &self.terms
    }

    /// Returns true if the model found nothing in the text.
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
    fn excess_tokens_are_dropped_by_weight() {
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
