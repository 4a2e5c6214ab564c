//! Computes BM25 scores from the statistics of a view.
//!
//! Source: Robertson, Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond", 2009. The frequencies in
//! several fields are combined into one weighted frequency before saturation (BM25F, §3.6).

/// A BM25 score. Scores of different queries are not comparable.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Bm25(pub f32);

/// The parameters of BM25.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Params {
    /// Saturation. With a higher value, further occurrences of a term still raise the score.
    pub k1: f32,
    /// Strength of the length normalisation, from 0 to 1.
    pub b: f32,
}

/// Returns the inverse document frequency of a term: ln(1 + (N − n + ½) / (n + ½)) if n of N documents contain the
/// term. Never negative.
pub fn idf(n_docs_with_term: usize, n_docs: usize) -> f32 {
    let n = n_docs_with_term as f32;
    let all = n_docs.max(n_docs_with_term) as f32;
    (1.0 + (all - n + 0.5) / (n + 0.5)).ln()
}

impl Params {
    /// Returns the score of a term before multiplication with its idf: tf / (tf + k1 · (1 − b + b · length / mean
    /// length)) · (k1 + 1).
    pub fn saturate(self, frequency: f32, length: f32, mean_length: f32) -> f32 {
        let norm = 1.0 - self.b + self.b * length / mean_length.max(1.0);
        frequency * (self.k1 + 1.0) / (frequency + self.k1 * norm)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rarer_terms_weigh_more_and_idf_is_never_negative() {
        assert!(idf(1, 1000) > idf(500, 1000));
        assert!(idf(1000, 1000) > 0.0);
    }

    #[test]
    fn frequency_saturates_and_length_counts_against() {
        let params = Params { k1: 1.2, b: 0.75 };
        let once = params.saturate(1.0, 100.0, 100.0);
        assert!((once - 1.0).abs() < 1e-6);
        assert!(params.saturate(100.0, 100.0, 100.0) < 2.2);
        assert!(params.saturate(1.0, 1000.0, 100.0) < once);
    }
}
