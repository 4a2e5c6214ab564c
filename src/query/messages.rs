//! Scores files by the messages of the commits that changed them.

use std::collections::HashMap;

use crate::history::{History, HistoryError, Messages, Reachable};
use crate::index::lexical::LexicalError;
use crate::index::lexical::bm25::{Params, idf};
use crate::snapshot::{FileId, View};

/// Maximum number of paths that a commit changes. The message of a larger commit says little about each of them.
const MAX_CHANGED_PATHS: usize = 20;
/// Maximum number of renames that are followed for a file.
const MAX_RENAMES: usize = 8;
const BM25: Params = Params { k1: 1.2, b: 0.6 };

/// The recorded commits that a view's commit reaches, with their messages.
#[derive(Clone, Debug)]
pub struct CommitMessages {
    /// The commit records.
    pub history: History,
    /// The indexed messages, one per batch in order.
    pub messages: Vec<Messages>,
    /// The commits to use.
    pub reached: Reachable,
}

/// The scores of files by the messages of commits.
#[derive(Debug, Default)]
pub(super) struct MessageScores {
    /// The BM25 of each file, relative to the best.
    pub(super) by_file: HashMap<FileId, f32>,
    /// The greatest share of the query's idf that belongs to terms in the messages of a file.
    pub(super) covered: f32,
}

/// The terms of a query in the messages that changed one file.
#[derive(Clone, Debug, Default)]
struct Counts {
    n_tokens: f32,
    by_term: Vec<f32>,
}

impl CommitMessages {
    /// Scores files. Each file is a document that consists of the messages of all commits that changed it.
    pub(super) fn scores(
        &self,
        view: &View,
        files: &[FileId],
        terms: &[String],
    ) -> Result<MessageScores, MessagesError> {
        let (found, idfs) = self.postings(terms)?;
        let mut n_paths = HashMap::new();
        let mut counts = Vec::with_capacity(files.len());
        for &file in files {
            counts.push(self.counts(view.file(file).path, terms.len(), &found, &mut n_paths)?);
        }
        let mean_length = counts.iter().map(|of| of.n_tokens).sum::<f32>() / counts.len().max(1) as f32;
        let score = |of: &Counts| {
            let terms = of.by_term.iter().zip(&idfs);
            let scores = terms.map(|(frequency, idf)| idf * BM25.saturate(*frequency, of.n_tokens, mean_length));
            scores.sum::<f32>()
        };
        let scores: Vec<f32> = counts.iter().map(score).collect();
        let best = scores.iter().copied().fold(f32::MIN_POSITIVE, f32::max);
        let covered = |of: &Counts| {
            let terms = of.by_term.iter().zip(&idfs);
            terms
                .filter(|(frequency, _)| **frequency > 0.0)
                .map(|(_, idf)| idf)
                .sum::<f32>()
        };
        let all_idf = idfs.iter().sum::<f32>().max(f32::MIN_POSITIVE);
        let relative = scores.iter().map(|score| score / best);
        Ok(MessageScores {
            by_file: files.iter().copied().zip(relative).collect(),
            covered: counts.iter().map(covered).fold(0.0, f32::max) / all_idf,
        })
    }

    /// Returns the commits whose messages contain a term, each with the terms and their frequencies. Also returns the
    /// idf of each term.
    #[expect(clippy::type_complexity, reason = "used once")]
    fn postings(&self, terms: &[String]) -> Result<(HashMap<u32, Vec<(usize, u32)>>, Vec<f32>), MessagesError> {
        let n_commits = self.reached.len();
        let mut found: HashMap<u32, Vec<(usize, u32)>> = HashMap::new();
        let mut idfs = Vec::with_capacity(terms.len());
        for (at, term) in terms.iter().enumerate() {
            let mut n_found = 0;
            for messages in &self.messages {
                messages.words.postings(term, |posting| {
                    let number = messages.base() + posting.doc;
                    if self.reached.has(number) {
                        n_found += 1;
                        found.entry(number).or_default().push((at, posting.in_body));
                    }
                })?;
            }
            idfs.push(idf(n_found, n_commits));
        }
        Ok((found, idfs))
    }

    /// Counts the terms in the messages of the commits that changed a path, also before it was renamed.
    fn counts(
        &self,
        path: &[u8],
        n_terms: usize,
        found: &HashMap<u32, Vec<(usize, u32)>>,
        n_paths: &mut HashMap<u32, usize>,
    ) -> Result<Counts, MessagesError> {
        let mut counts = Counts {
            n_tokens: 0.0,
            by_term: vec![0.0; n_terms],
        };
        let (mut path, mut before) = (path.to_vec(), u32::MAX);
        for _ in 0..=MAX_RENAMES {
            let mut origin = None;
            for change in self.history.changes_of(&path)? {
                let number = change.commit;
                let is_merge = self.history.parents(number).len() > 1;
                if number >= before || is_merge || !self.reached.has(number) {
                    continue;
                }
                if let (None, Some(from)) = (&origin, change.origin) {
                    origin = Some((from.path, number));
                }
                let n_paths = match n_paths.get(&number) {
                    Some(known) => *known,
                    None => *n_paths.entry(number).or_insert(self.history.n_touched(number)?),
                };
                if n_paths > MAX_CHANGED_PATHS {
                    continue;
                }
                let messages = &self.messages[self.history.batch_of(number)];
                counts.n_tokens += messages.words.meta(number - messages.base()).n_tokens as f32;
                for &(term, frequency) in found.get(&number).into_iter().flatten() {
                    counts.by_term[term] += frequency as f32;
                }
            }
            let Some((from, number)) = origin else { break };
            path = from.as_bytes().to_vec();
            before = number;
        }
        Ok(counts)
    }
}

/// An error from reading the messages of commits.
#[derive(Debug, thiserror::Error)]
pub enum MessagesError {
    /// The commit records cannot be read.
    #[error(transparent)]
    History(#[from] HistoryError),
    /// The words of the messages cannot be read.
    #[error(transparent)]
    Words(#[from] LexicalError),
}
