//! Searches commits by their messages: by words, by vectors, by both, or by a pattern.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};

use rayon::prelude::*;
use roaring::RoaringBitmap;

use crate::embed::{EmbedError, Embedder};
use crate::history::{CommitHead, History, HistoryError, Mailmap, Messages, Who, is_trailer};
use crate::index::dense::{DenseError, DenseIndex, FlatIndex};
use crate::index::lexical::bm25::{Params, idf};
use crate::index::lexical::{LexicalError, for_each_word, is_stop_word, words};
use crate::model::explain_by;
use crate::sidecar::FileError;

use super::pattern::Pattern;
use super::preview::{TermWeights, terms_in};

/// Number of candidates from the word search and from the vector search, each.
const LEG_CANDIDATES: usize = 200;
/// Maximum number of commits with all words of the query, newest first, that are searched for the query as a phrase.
const PHRASE_CANDIDATES: usize = 1_000;
/// Maximum number of lines shown from a message besides its subject.
const MAX_LINES: usize = 3;
/// Maximum length of a shown line. Longer lines are truncated.
const MAX_LINE_CHARS: usize = 300;
/// Minimum length of an abbreviated commit id in a query.
const MIN_ID_DIGITS: usize = 4;
/// Number of commits in one block of a batch's messages.
const BLOCK_COMMITS: u32 = 128;

const BM25: Params = Params { k1: 1.2, b: 0.6 };
/// The weights of the parts of a score. Each part is relative to its best value: BM25, the cosine, the share of the
/// query's words that occur, a match of the whole phrase, and a match of a commit id.
const W_WORDS: f32 = 1.0;
const W_MEANING: f32 = 1.0;
const W_COVERED: f32 = 0.5;
const W_PHRASE: f32 = 1.5;
const W_ID: f32 = 10.0;

/// The ways to search commits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CommitMode {
    /// Uses words, vectors and commit ids.
    #[default]
    Hybrid,
    /// Uses only words.
    Keyword,
    /// Uses only vectors.
    Semantic,
}

/// Searches the messages of commits.
pub struct CommitSearcher<'a> {
    /// The commit records.
    pub history: &'a History,
    /// The indexed messages, one per batch in order.
    pub messages: &'a [Messages],
    /// The embedder that computed the vectors.
    pub embedder: &'a dyn Embedder,
    /// The numbers of the commits to search.
    pub scope: &'a RoaringBitmap,
    /// Resolves author names.
    pub mailmap: &'a Mailmap,
    /// Aborts the search when set.
    pub interrupt: &'a AtomicBool,
}

/// A commit that matches a query.
#[derive(Clone, Debug, PartialEq)]
pub struct CommitHit {
    /// The number of the commit.
    pub number: u32,
    /// The header fields and subject.
    pub head: CommitHead,
    /// The author, resolved by the mailmap.
    pub author: Who,
    /// The score, comparable only within one result; 0 for a pattern search.
    pub score: f32,
    /// The most relevant lines of the message besides the subject, with their 1-based numbers.
    pub lines: Vec<(u32, String)>,
    /// Number of paths that the commit changed.
    pub n_paths: usize,
}

/// The commits that match a query.
#[derive(Clone, Debug, Default)]
pub struct CommitsOutcome {
    /// The hits, best first; newest first for a pattern search.
    pub hits: Vec<CommitHit>,
    /// Total number of matching commits; `None` if only the best ones are known.
    pub total: Option<usize>,
    /// True if there are more hits.
    pub has_more: bool,
}

/// An error from searching commits.
#[derive(Debug, thiserror::Error)]
pub enum CommitSearchError {
    /// The commit records cannot be read.
    #[error(transparent)]
    History(#[from] HistoryError),
    /// A batch of commit records cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// The words of the messages cannot be read.
    #[error(transparent)]
    Words(#[from] LexicalError),
    /// The vectors of the messages cannot be read.
    #[error(transparent)]
    Vectors(#[from] DenseError),
    /// The query cannot be embedded.
    #[error(transparent)]
    Embed(EmbedError),
    /// The interrupt flag was set.
    #[error("interrupted")]
    Interrupted,
}

explain_by!(CommitSearchError: File, Words, History, Embed; Interrupted);

impl From<EmbedError> for CommitSearchError {
    fn from(error: EmbedError) -> Self {
        match error {
            EmbedError::Interrupted => Self::Interrupted,
            error => Self::Embed(error),
        }
    }
}

/// The number of a commit, and the matching lines of its message.
type Matched = (u32, Vec<(u32, String)>);

/// The scores of one message for the words of a query.
#[derive(Clone, Copy, Debug, Default)]
struct Words {
    bm25: f32,
    covered: f32,
}

impl CommitSearcher<'_> {
    /// Returns the best commits after the first `skip` ones.
    pub fn search(
        &self,
        query: &str,
        mode: CommitMode,
        skip: usize,
        limit: usize,
    ) -> Result<CommitsOutcome, CommitSearchError> {
        let terms = terms_of(query);
        let (words, idfs) = self.by_words(&terms)?;
        let mut scored = match mode {
            CommitMode::Keyword => words.iter().map(|(number, words)| (*number, words.bm25)).collect(),
            CommitMode::Semantic => self.by_meaning(query)?,
            CommitMode::Hybrid => self.fused(query, &words, idfs.iter().sum())?,
        };
        // For equal scores, the newer commit comes first.
        let order = |number: u32| self.history.order_of(number);
        scored.sort_unstable_by(|(a, x), (b, y)| y.total_cmp(x).then_with(|| order(*b).cmp(&order(*a))));
        let has_more = scored.len() > skip.saturating_add(limit);
        let page: Vec<(u32, f32)> = scored.into_iter().skip(skip).take(limit).collect();
        let weights: TermWeights<'_> = terms.iter().map(String::as_str).zip(idfs).collect();
        let mut hits = self.hits(&page)?;
        for hit in &mut hits {
            hit.lines = most_relevant_lines(&self.history.message(hit.number)?, &weights);
        }
        Ok(CommitsOutcome {
            hits,
            total: None,
            has_more,
        })
    }

    /// Returns every commit with a matching line in its message, newest first.
    pub fn matching(&self, pattern: &Pattern, skip: usize, limit: usize) -> Result<CommitsOutcome, CommitSearchError> {
        let blocks = self.history.batches().iter().flat_map(|batch| {
            let firsts = (0..batch.n_commits()).step_by(BLOCK_COMMITS as usize);
            firsts.map(move |first| (batch, first))
        });
        let blocks: Vec<_> = blocks.collect();
        let found: Vec<Vec<Matched>> = blocks
            .par_iter()
            .map(|(batch, first)| -> Result<_, CommitSearchError> {
                self.go_on()?;
                let (first, messages) = batch.messages_of_block(*first)?;
                let numbered = (batch.base() + first..).zip(messages);
                let in_scope = numbered.filter(|(number, _)| self.scope.contains(*number));
                let matched = in_scope.map(|(number, message)| (number, matching_lines(&message, pattern)));
                Ok(matched.filter(|(_, lines)| !lines.is_empty()).collect())
            })
            .collect::<Result<_, _>>()?;
        let mut found: Vec<Matched> = found.into_iter().flatten().collect();
        found.sort_by_key(|(number, _)| std::cmp::Reverse(self.history.order_of(*number)));
        let total = found.len();
        let page: Vec<_> = found.into_iter().skip(skip).take(limit).collect();
        let numbers: Vec<(u32, f32)> = page.iter().map(|(number, _)| (*number, 0.0)).collect();
        let mut hits = self.hits(&numbers)?;
        for (hit, (_, lines)) in hits.iter_mut().zip(page) {
            hit.lines = lines;
        }
        Ok(CommitsOutcome {
            hits,
            total: Some(total),
            has_more: total > skip.saturating_add(limit),
        })
    }

    /// Returns an error once the interrupt flag is set.
    fn go_on(&self) -> Result<(), CommitSearchError> {
        if self.interrupt.load(Ordering::Relaxed) {
            Err(CommitSearchError::Interrupted)
        } else {
            Ok(())
        }
    }

    fn hits(&self, scored: &[(u32, f32)]) -> Result<Vec<CommitHit>, CommitSearchError> {
        let numbers: Vec<u32> = scored.iter().map(|(number, _)| *number).collect();
        let heads = self.history.heads(&numbers)?;
        let mut hits = Vec::with_capacity(scored.len());
        for &(number, score) in scored {
            self.go_on()?;
            let head = heads[&number].clone();
            hits.push(CommitHit {
                number,
                author: self.mailmap.resolve(&head.author),
                head,
                score,
                lines: Vec::new(),
                n_paths: self.history.touched(number)?.len(),
            });
        }
        Ok(hits)
    }

    /// Scores the commits in scope whose messages contain a term. Also returns the idf of each term, computed from the
    /// commits in scope.
    fn by_words(&self, terms: &[String]) -> Result<(BTreeMap<u32, Words>, Vec<f32>), CommitSearchError> {
        let n_commits = self.scope.len() as usize;
        let mut n_tokens = 0u64;
        for messages in self.messages {
            let own = self
                .scope
                .range(messages.base()..messages.base() + messages.n_commits());
            n_tokens += own
                .map(|number| u64::from(messages.words.meta(number - messages.base()).n_tokens))
                .sum::<u64>();
        }
        let mean_length = n_tokens as f32 / n_commits.max(1) as f32;
        let mut scores: BTreeMap<u32, Words> = BTreeMap::new();
        let mut idfs = Vec::with_capacity(terms.len());
        for term in terms {
            self.go_on()?;
            let mut postings = Vec::new();
            for messages in self.messages {
                messages.words.postings(term, |posting| {
                    let number = messages.base() + posting.doc;
                    if self.scope.contains(number) {
                        let length = messages.words.meta(posting.doc).n_tokens;
                        postings.push((number, posting.in_body, length));
                    }
                })?;
            }
            let idf = idf(postings.len(), n_commits);
            idfs.push(idf);
            for (number, frequency, length) in postings {
                let score = scores.entry(number).or_default();
                score.bm25 += idf * BM25.saturate(frequency as f32, length as f32, mean_length);
                score.covered += idf;
            }
        }
        Ok((scores, idfs))
    }

    fn dense(&self) -> Result<FlatIndex, DenseError> {
        let files = self
            .messages
            .iter()
            .map(|messages| (messages.base(), messages.vectors.clone()));
        FlatIndex::new(files.collect())
    }

    fn by_meaning(&self, query: &str) -> Result<Vec<(u32, f32)>, CommitSearchError> {
        let vector = self.embedder.embed_query(query, self.interrupt)?.vector;
        let found = self.dense()?.search(&vector, self.scope, LEG_CANDIDATES)?;
        Ok(found.into_iter().map(|(number, cosine)| (number, cosine.0)).collect())
    }

    fn fused(
        &self,
        query: &str,
        words: &BTreeMap<u32, Words>,
        idf_sum: f32,
    ) -> Result<Vec<(u32, f32)>, CommitSearchError> {
        let vector = self.embedder.embed_query(query, self.interrupt)?.vector;
        let dense = self.dense()?;
        let by_meaning = dense.search(&vector, self.scope, LEG_CANDIDATES)?;
        let phrase = self.with_phrase(query, words, idf_sum)?;
        let ids: BTreeSet<u32> = self.with_id(query).into_iter().collect();
        let mut candidates: BTreeSet<u32> = by_meaning.iter().map(|(number, _)| *number).collect();
        candidates.extend(best(words, |words| words.bm25));
        candidates.extend(best(words, |words| words.covered));
        candidates.extend(phrase.iter().chain(&ids));
        let candidates: Vec<u32> = candidates.into_iter().collect();
        let cosines = dense.score(&vector, &candidates)?;
        let best_cosine = cosines.iter().map(|cosine| cosine.0).fold(f32::MIN_POSITIVE, f32::max);
        let best_words = words.values().map(|words| words.bm25).fold(f32::MIN_POSITIVE, f32::max);
        let score = |(number, cosine): (&u32, &crate::index::dense::Cosine)| {
            let own = words.get(number).copied().unwrap_or_default();
            let is = |set: &BTreeSet<u32>| f32::from(u8::from(set.contains(number)));
            let score = W_WORDS * own.bm25 / best_words
                + W_MEANING * cosine.0.max(0.0) / best_cosine
                + W_COVERED * own.covered / idf_sum.max(f32::MIN_POSITIVE)
                + W_PHRASE * is(&phrase)
                + W_ID * is(&ids);
            (*number, score)
        };
        Ok(candidates.iter().zip(&cosines).map(score).collect())
    }

    /// Returns the commits whose messages contain the query as a phrase, ignoring case and whitespace. Reads only
    /// messages that contain all words of the query.
    fn with_phrase(
        &self,
        query: &str,
        words: &BTreeMap<u32, Words>,
        idf_sum: f32,
    ) -> Result<BTreeSet<u32>, CommitSearchError> {
        let phrase = folded(query);
        if !phrase.contains(' ') {
            return Ok(BTreeSet::new());
        }
        let has_all = |words: &Words| words.covered >= idf_sum * 0.999;
        let mut numbers: Vec<u32> = words
            .iter()
            .filter(|(_, words)| has_all(words))
            .map(|(number, _)| *number)
            .collect();
        numbers.sort_unstable_by_key(|number| std::cmp::Reverse(self.history.order_of(*number)));
        numbers.truncate(PHRASE_CANDIDATES);
        let says: Vec<Option<u32>> = numbers
            .par_iter()
            .map(|&number| -> Result<_, HistoryError> {
                let message = self.history.message(number)?;
                Ok(folded(&message).contains(&phrase).then_some(number))
            })
            .collect::<Result<_, _>>()?;
        Ok(says.into_iter().flatten().collect())
    }

    /// Returns the commits in scope whose id starts with the query.
    fn with_id(&self, query: &str) -> Vec<u32> {
        let digits = query.trim().to_ascii_lowercase();
        if digits.len() < MIN_ID_DIGITS || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Vec::new();
        }
        let begins = |number: &u32| {
            let id = self.history.id(*number);
            id.is_ok_and(|id| id.0.begins_with_hex(&digits))
        };
        self.scope.iter().filter(begins).collect()
    }
}

/// Returns the terms of a query without duplicates. Function words are omitted unless the query has nothing else.
fn terms_of(query: &str) -> Vec<String> {
    let all: Vec<&str> = words(query).map(|(_, word)| word).collect();
    let is_telling = |word: &&&str| !is_stop_word(&word.to_lowercase());
    let telling: Vec<&str> = all.iter().filter(is_telling).copied().collect();
    let mut terms: Vec<String> = Vec::new();
    for word in if telling.is_empty() { all } else { telling } {
        for_each_word(word, &mut |term: &str| {
            if !terms.iter().any(|known| known == term) {
                terms.push(term.to_owned());
            }
        });
    }
    terms
}

fn best(words: &BTreeMap<u32, Words>, score: impl Fn(&Words) -> f32) -> Vec<u32> {
    let mut scored: Vec<(u32, f32)> = words.iter().map(|(number, words)| (*number, score(words))).collect();
    if scored.len() > LEG_CANDIDATES {
        scored.select_nth_unstable_by(LEG_CANDIDATES, |(a, x), (b, y)| y.total_cmp(x).then(b.cmp(a)));
        scored.truncate(LEG_CANDIDATES);
    }
    scored.into_iter().map(|(number, _)| number).collect()
}

/// Converts the text to lower case and joins its words with single spaces.
fn folded(text: &str) -> String {
    let words: Vec<String> = text.split_whitespace().map(str::to_lowercase).collect();
    words.join(" ")
}

fn cut(line: &str) -> String {
    line.trim_end().chars().take(MAX_LINE_CHARS).collect()
}

/// Returns the lines after the subject that contain the most relevant terms, in message order.
fn most_relevant_lines(message: &str, weights: &TermWeights<'_>) -> Vec<(u32, String)> {
    let body = (1..).zip(message.lines()).skip(1);
    let mut scored: Vec<(f32, u32, &str)> = Vec::new();
    for (number, line) in body.filter(|(_, line)| !line.trim().is_empty() && !is_trailer(line)) {
        let held = terms_in(line, weights);
        let score: f32 = held.iter().map(|term| weights[term]).sum();
        if score > 0.0 {
            scored.push((score, number, line));
        }
    }
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    scored.truncate(MAX_LINES);
    scored.sort_by_key(|(_, number, _)| *number);
    scored
        .into_iter()
        .map(|(_, number, line)| (number, cut(line)))
        .collect()
}

fn matching_lines(message: &str, pattern: &Pattern) -> Vec<(u32, String)> {
    let mut lines = Vec::new();
    pattern.for_each_line(message.as_bytes(), |at| {
        lines.push((at.number, cut(&message[at.start..at.end])));
        true
    });
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_relevant_lines_are_in_message_order() {
        let weights = TermWeights::from_iter([("retri", 2.0), ("upload", 1.0)]);
        let message = "subject: upload\n\nnothing here\nan upload\nretry the upload\nretried\nupload-by: retry\n";
        let lines: Vec<u32> = most_relevant_lines(message, &weights)
            .into_iter()
            .map(|(at, _)| at)
            .collect();
        assert_eq!(lines, [4, 5, 6]);
        assert_eq!(folded("A  b\n c"), "a b c");
    }
}
