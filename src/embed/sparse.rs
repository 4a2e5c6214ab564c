//! The [`SparseEmbedder`] trait, which converts texts to sparse vectors. A sparse vector assigns weights to a few
//! tokens: tokens of the text, and other tokens that a similar text could contain.

use std::sync::atomic::AtomicBool;

use super::embedder::{Batching, EmbedError};
use super::profile::Profile;

/// Converts texts to sparse vectors according to one [`Profile`], whose `dim` is 0.
///
/// As with `Embedder`, the vector of a text does not depend on other texts in the batch. Methods block, may be called
/// from many threads, and return either all results or an error.
pub trait SparseEmbedder: Send + Sync {
    /// Returns the profile: everything besides the text that determines a vector. It never changes during the lifetime
    /// of the embedder.
    fn profile(&self) -> &Profile;

    /// Returns the vectors of `texts`, in the same order. The vector is `None` for a text that the model does not
    /// accept.
    fn embed_documents(&self, texts: &[&str], interrupt: &AtomicBool) -> Result<Vec<Option<SparseVector>>, EmbedError>;

    /// Returns the vector of a query. An empty vector has similarity 0 to every document. Stops soon after `interrupt`
    /// is set.
    fn embed_query(&self, text: &str, interrupt: &AtomicBool) -> Result<SparseVector, EmbedError>;

    /// Returns the recommended batch size and concurrency for [`Self::embed_documents`].
    fn batching(&self) -> Batching {
        Batching::default()
    }

    /// Returns notes for the user about the texts embedded so far.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }
}

/// A sparse vector: token ids with weights.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SparseVector {
    /// The token ids with their weights, sorted by token id. Weights are above 0 and at most [`Self::MAX_WEIGHT`].
    terms: Vec<(u32, f32)>,
}

impl SparseVector {
    /// Maximum number of tokens in a vector. Models trained for sparsity produce 50 to 300 for a chunk.
    pub const MAX_TERMS: usize = 256;
    /// Upper bound of token ids, exclusive. The largest vocabularies have a quarter as many tokens. A table with a
    /// weight per token takes 4 MiB.
    pub const N_TOKENS: u32 = 1 << 20;
    /// Maximum weight, far above the weights of any real model. Ensures that sums over a vector are finite.
    pub const MAX_WEIGHT: f32 = 1e6;

    /// Converts tokens that another program computed, in any order. Selects the [`Self::MAX_TERMS`] tokens with the
    /// highest weights and omits those with weight 0.
    ///
    /// Error messages name the model or server as `backend`.
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
            return Err(unusable(format!("token {token}, which exceeds the maximum token id")));
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

    /// Returns the token ids with their weights, sorted by token id.
    pub fn terms(&self) -> &[(u32, f32)] {
        &self.terms
    }

    /// Returns true if the model recognised nothing in the text.
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
        for (terms, message) in [
            (vec![(1, f32::NAN)], "the weight NaN"),
            (vec![(1, f32::INFINITY)], "the weight inf"),
            (vec![(1, -0.5)], "the weight -0.5"),
            (vec![(1, 0.5), (2, 1.0), (1, 0.5)], "token 1 twice"),
            (vec![(u32::MAX, 0.5)], "token 4294967295"),
            (vec![(SparseVector::N_TOKENS, 0.5)], "token 1048576"),
        ] {
            let error = SparseVector::from_foreign(terms, "m").unwrap_err().to_string();
            assert!(error.contains(message), "{error}");
        }
    }
}
