//! Scores files by the messages of the commits that changed them.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::history::{History, HistoryError, Messages, Reachable};
use crate::index::lexical::LexicalError;
use crate::index::lexical::bm25::{Params, idf};
use crate::snapshot::{FileId, View};

/// Maximum number of paths that a commit changes. The message of a larger commit says little about each of them.
const MAX_CHANGED_PATHS: usize = 20;
/// Maximum number of renames that are followed for a file.
const MAX_RENAMES: usize = 8;
/// Maximum number of files whose commits are kept.
const MAX_KEPT_FILES: usize = 1 << 16;
const BM25: Params = Params { k1: 1.2, b: 0.6 };

/// The recorded commits that a view's commit reaches, with their messages.
#[derive(Debug)]
pub struct CommitMessages {
    history: History,
    messages: Vec<Option<Messages>>,
    reached: Reachable,
    /// By path. Reading them takes longer than scoring.
    kept: Mutex<HashMap<Box<[u8]>, Arc<Changing>>>,
}

/// The commits that changed one file and whose messages count.
#[derive(Debug, Default)]
struct Changing {
    commits: Vec<u32>,
    /// Number of tokens in their messages.
    n_tokens: f32,
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

/// The terms of a query in the messages of commits.
struct Found {
    /// For each commit, the place of its terms in `terms`, from 1; 0 without terms.
    place: Vec<u32>,
    terms: Vec<Vec<(usize, u32)>>,
}

impl Found {
    fn add(&mut self, commit: u32, term: usize, frequency: u32) {
        let Some(place) = self.place.get_mut(commit as usize) else {
            return;
        };
        if *place == 0 {
            self.terms.push(Vec::new());
            *place = self.terms.len() as u32;
        }
        self.terms[*place as usize - 1].push((term, frequency));
    }

    /// Returns the terms in a commit's message and their frequencies.
    fn of(&self, commit: u32) -> &[(usize, u32)] {
        let place = self.place.get(commit as usize).copied().unwrap_or_default() as usize;
        place.checked_sub(1).map_or(&[], |at| &self.terms[at])
    }
}

impl CommitMessages {
    /// `messages` has one element per batch of `history`, in order; `None` for a batch whose messages are not indexed.
    /// Only commits in `reached` are used.
    pub fn new(history: History, messages: Vec<Option<Messages>>, reached: Reachable) -> Self {
        Self {
            history,
            messages,
            reached,
            kept: Mutex::default(),
        }
    }

    /// Scores files. Each file is a document that consists of the messages of all commits that changed it.
    pub(super) fn scores(
        &self,
        view: &View,
        files: &[FileId],
        terms: &[String],
    ) -> Result<MessageScores, MessagesError> {
        let (found, idfs) = self.postings(terms)?;
        let counts = files
            .iter()
            .map(|&file| self.counts(view.file(file).path, terms.len(), &found));
        let counts = counts.collect::<Result<Vec<_>, _>>()?;
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

    /// Finds the commits whose messages contain a term. Also returns the idf of each term.
    fn postings(&self, terms: &[String]) -> Result<(Found, Vec<f32>), MessagesError> {
        let n_commits = self.reached.len();
        let mut found = Found {
            place: vec![0; self.history.n_commits() as usize],
            terms: Vec::new(),
        };
        let mut idfs = Vec::with_capacity(terms.len());
        for (at, term) in terms.iter().enumerate() {
            let mut n_found = 0;
            for messages in self.messages.iter().flatten() {
                messages.words.postings(term, |posting| {
                    let number = messages.base() + posting.doc;
                    if self.reached.has(number) {
                        n_found += 1;
                        found.add(number, at, posting.in_body);
                    }
                })?;
            }
            idfs.push(idf(n_found, n_commits));
        }
        Ok((found, idfs))
    }

    /// Counts the terms in the messages of the commits that changed a path.
    fn counts(&self, path: &[u8], n_terms: usize, found: &Found) -> Result<Counts, MessagesError> {
        let changing = self.changing(path)?;
        let mut counts = Counts {
            n_tokens: changing.n_tokens,
            by_term: vec![0.0; n_terms],
        };
        for &(term, frequency) in changing.commits.iter().flat_map(|&commit| found.of(commit)) {
            counts.by_term[term] += frequency as f32;
        }
        Ok(counts)
    }

    /// Returns the commits that changed a path, also before it was renamed.
    fn changing(&self, path: &[u8]) -> Result<Arc<Changing>, MessagesError> {
        let kept = || self.kept.lock();
        if let Some(changing) = kept().get(path) {
            return Ok(Arc::clone(changing));
        }
        let changing = Arc::new(self.read_changing(path)?);
        let mut kept = kept();
        if kept.len() >= MAX_KEPT_FILES {
            kept.clear();
        }
        kept.insert(path.into(), Arc::clone(&changing));
        Ok(changing)
    }

    fn read_changing(&self, path: &[u8]) -> Result<Changing, MessagesError> {
        let mut changing = Changing::default();
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
                if self.history.touches_more_than(number, MAX_CHANGED_PATHS)? {
                    continue;
                }
                let Some(messages) = &self.messages[self.history.batch_of(number)] else {
                    continue;
                };
                changing.n_tokens += messages.words.meta(number - messages.base()).n_tokens as f32;
                changing.commits.push(number);
            }
            let Some((from, number)) = origin else { break };
            path = from.as_bytes().to_vec();
            before = number;
        }
        Ok(changing)
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
