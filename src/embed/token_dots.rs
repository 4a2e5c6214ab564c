//! Scores many small bags of words, for example the words of each path, against one query.

use super::rows;
use super::static_model::{Scratch, Side, StaticModel};

/// A pooled, normalised bag of tokens: unit(pool(text)) = Σ weight · row over its terms.
///
/// A bag does not depend on a query, so it is computed once per path and reused. [`TokenDots`] computes the dot product
/// of a bag and a query with one addition per term.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bag {
    terms: Box<[(u32, f32)]>,
    norm: f32,
}

impl Bag {
    /// Creates a bag from distinct tokens with their weights before normalisation. `norm` is the length of their sum.
    pub(super) fn new(terms: &[(u32, f32)], norm: f32) -> Self {
        if norm == 0.0 {
            return Self::default();
        }
        Self {
            terms: terms.iter().map(|&(token, weight)| (token, weight / norm)).collect(),
            norm,
        }
    }

    /// Returns the length of the pooled vector before normalisation. 0 for an empty bag.
    pub fn norm(&self) -> f32 {
        self.norm
    }

    /// Returns the distinct tokens in the order of their first occurrence.
    pub fn tokens(&self) -> impl Iterator<Item = u32> + '_ {
        self.terms.iter().map(|&(token, _)| token)
    }
}

/// Computes dot products of one query vector with token rows. Each is computed on first use and cached.
#[derive(Debug)]
pub struct TokenDots<'a> {
    model: &'a StaticModel,
    query: &'a [f32],
    /// The bits of each token's dot product. 0 means that it has not been computed; a product of +0 is stored as -0.
    /// (Zero pages cost nothing until written. Any other initial value would write 100 KB per query.)
    known: Vec<u32>,
    scratch: Scratch,
}

impl<'a> TokenDots<'a> {
    /// Creates a cache for `query`. Panics if its length is not the dimension of the model.
    pub fn new(model: &'a StaticModel, query: &'a [f32]) -> Self {
        assert_eq!(query.len(), model.dim(), "the query must have the model's dimension");
        Self {
            model,
            query,
            known: vec![0; model.n_tokens()],
            scratch: Scratch::default(),
        }
    }

    /// Returns query · unit(pool(bag)). This is the cosine if the query has unit length. 0 for an empty bag.
    pub fn bag(&mut self, bag: &Bag) -> f32 {
        bag.terms.iter().map(|&(token, weight)| weight * self.row(token)).sum()
    }

    /// Returns the same as [`Self::bag`] for token ids, with the weights of a document. Pools the tokens in each call;
    /// for many calls, create a [`Bag`].
    pub fn pooled(&mut self, token_ids: &[u32]) -> f32 {
        let bag = self.model.bag_in(token_ids, Side::Document, &mut self.scratch);
        self.bag(&bag)
    }

    /// Returns query · row, where the row is not multiplied with the token's scale.
    fn row(&mut self, token: u32) -> f32 {
        let Some(known) = self.known.get_mut(token as usize) else {
            return 0.0;
        };
        if *known == 0 {
            let row = self.model.row(token).unwrap_or_default();
            let dot = rows::dot(row, self.query);
            *known = if dot == 0.0 { -0.0f32 } else { dot }.to_bits();
        }
        f32::from_bits(*known)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bag_scores_like_its_vector() {
        let model = StaticModel::embedded();
        let query = model
            .embed(b"where are requests matched to a route", Side::Query)
            .vector;
        let mut dots = TokenDots::new(&model, &query);
        for text in ["src/router/match_path.rs", "docs", "a/a/a/b", "", "!!"] {
            let document = model.embed(text.as_bytes(), Side::Document);
            let expected: f32 = query.iter().zip(&document.vector).map(|(a, b)| a * b).sum();
            let ids = model.token_ids(text.as_bytes());
            let bag = model.bag(&ids, Side::Document);
            assert!((dots.bag(&bag) - expected).abs() < 1e-5, "{text}");
            assert!((dots.pooled(&ids) - expected).abs() < 1e-5, "{text}");
            assert!((bag.norm() - document.weight).abs() < 1e-3, "{text}");
        }
    }

    #[test]
    fn unknown_ids_are_left_out() {
        let model = StaticModel::embedded();
        let bag = model.bag(&[u32::MAX, 7, 7, 9, u32::MAX - 1], Side::Document);
        assert_eq!(bag.tokens().collect::<Vec<_>>(), [7, 9]);
        let empty = model.bag(&[u32::MAX], Side::Document);
        assert_eq!(empty, Bag::default());
        assert_eq!(TokenDots::new(&model, &vec![1.0; model.dim()]).bag(&empty), 0.0);
    }
}
