//! Document frequencies of a collection of which a view is a part, such as the files of many repositories.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// Counts of documents, files and the terms in them. Terms are numbered by hash, so a count may include another term.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Statistics {
    /// Number of documents.
    pub n_docs: u64,
    /// Number of files.
    pub n_files: u64,
    /// Total number of words in the documents.
    pub n_tokens: u64,
    counts: Vec<Count>,
}

/// The number of documents and files with a term, in ascending order of its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Count {
    /// The number of the term.
    pub term: u32,
    /// Number of documents.
    pub n_docs: u32,
    /// Number of files.
    pub n_files: u32,
}

/// Returns the number of a term.
pub fn term_number(term: &str) -> u32 {
    let hash = blake3::hash(term.as_bytes());
    let [a, b, c, d, ..] = *hash.as_bytes();
    u32::from_le_bytes([a, b, c, d])
}

impl Statistics {
    /// Creates the statistics of `n_docs` documents in `n_files` files with `n_tokens` words and these terms.
    pub fn new(n_docs: u64, n_files: u64, n_tokens: u64, counts: Vec<Count>) -> Self {
        let all = Self {
            n_docs,
            n_files,
            n_tokens,
            counts,
        };
        all.grouped()
    }

    /// Returns the number of documents and files with a term.
    pub fn of(&self, term: &str) -> (usize, usize) {
        let number = term_number(term);
        let found = self.counts.binary_search_by_key(&number, |count| count.term);
        found.map_or((0, 0), |at| {
            (self.counts[at].n_docs as usize, self.counts[at].n_files as usize)
        })
    }

    fn grouped(mut self) -> Self {
        // A stable sort of sorted runs takes linear time.
        self.counts.sort_by_key(|count| count.term);
        self.counts.dedup_by(|next, first| {
            let is_same = next.term == first.term;
            if is_same {
                first.n_docs = first.n_docs.saturating_add(next.n_docs);
                first.n_files = first.n_files.saturating_add(next.n_files);
            }
            is_same
        });
        self
    }
}

/// The statistics of several collections together.
#[derive(Clone, Debug, Default)]
pub struct WholeStatistics(pub Vec<Arc<Statistics>>);

impl WholeStatistics {
    /// Returns the number of documents.
    pub fn n_docs(&self) -> u64 {
        self.0.iter().map(|part| part.n_docs).sum()
    }

    /// Returns the number of files.
    pub fn n_files(&self) -> u64 {
        self.0.iter().map(|part| part.n_files).sum()
    }

    /// Returns the total number of words in the documents.
    pub fn n_tokens(&self) -> u64 {
        self.0.iter().map(|part| part.n_tokens).sum()
    }

    /// Returns the number of documents and files with a term.
    pub fn of(&self, term: &str) -> (usize, usize) {
        let counts = self.0.iter().map(|part| part.of(term));
        counts.fold((0, 0), |all, part| (all.0 + part.0, all.1 + part.1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_add_up() {
        let count = |term, n_docs, n_files| Count {
            term: term_number(term),
            n_docs,
            n_files,
        };
        let one = Statistics::new(9, 3, 100, vec![count("retry", 4, 2), count("upload", 1, 1)]);
        let other = Statistics::new(1, 1, 10, vec![count("retry", 1, 1)]);
        let both = WholeStatistics(vec![Arc::new(one), Arc::new(other)]);
        assert_eq!((both.n_docs(), both.n_files(), both.n_tokens()), (10, 4, 110));
        assert_eq!(both.of("retry"), (5, 3));
        assert_eq!(both.of("upload"), (1, 1));
        assert_eq!(both.of("absent"), (0, 0));
    }
}
