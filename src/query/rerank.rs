//! A second judgement of the best candidates, by a model that reads query and text together.
//!
//! The candidates that are judged are the same for every page of an answer, so that its pages fit together. What a query names or
//! quotes stays where it is: a model's opinion is no reason to put an exact match behind others.

use std::collections::HashMap;
use std::sync::atomic::AtomicBool;

use crate::extract::is_credential;
use crate::index::chunk_text;
use crate::snapshot::FileId;

use super::analyze::analyze;
use super::hit::Opened;
use super::search::{Candidate, Mode, Request, SearchError, Searcher};
use super::source::{Source, SourceReader, Sources};
use crate::model::chain;

/// Judges how well texts answer a query: better than what found them, and too dear for all.
pub trait Reranker: Send + Sync {
    /// What judges, and where: for people.
    fn name(&self) -> &str;

    /// The score of each of `texts`, in their order: finite, the higher the better, comparable within this call only. `None` is for
    /// a text that cannot be judged. Ends within a time of the reranker's own, or soon after `interrupt` is set.
    fn rerank(&self, query: &str, texts: &[&str], interrupt: &AtomicBool) -> Result<Vec<Option<f32>>, RerankError>;
}

/// Why texts were not judged.
#[derive(Debug, thiserror::Error)]
pub enum RerankError {
    /// The caller's flag was set.
    #[error("interrupted")]
    Interrupted,
    /// It gave no answer in time, or none that can be used.
    #[error("{reranker}")]
    Unavailable {
        /// Its name.
        reranker: String,
        /// What happened.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// Which answers are to be put in a reranker's order, where there is one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rerank {
    /// Those to descriptions, in modes in which meaning counts; not those to names.
    #[default]
    Prose,
    /// All but those of [`Mode::Similar`].
    Always,
    /// None.
    Never,
}

/// What judges candidates, and of what.
#[derive(Clone, Copy)]
pub struct Reranking<'a> {
    /// What judges.
    pub reranker: &'a dyn Reranker,
    /// So many of the first candidates are judged.
    pub n_candidates: usize,
    /// Where their texts come from.
    pub sources: Sources<'a>,
    /// Ends it.
    pub interrupt: &'a AtomicBool,
}

impl<'a> Searcher<'a> {
    /// The same with a reranker for the requests that want one.
    pub fn with_reranking(mut self, reranking: Option<Reranking<'a>>) -> Self {
        self.reranking = reranking;
        self
    }

    /// What judges the candidates of a request, if they are to be judged and the page has any of them.
    pub(super) fn reranking(&self, request: &Request) -> Option<Reranking<'a>> {
        let is_wanted = match (request.rerank, request.mode) {
            (Rerank::Never, _) | (_, Mode::Similar) => false,
            (Rerank::Always, _) => true,
            (Rerank::Prose, Mode::Keyword) => false,
            (Rerank::Prose, _) => !analyze(&request.query).is_name,
        };
        self.reranking
            .filter(|reranking| is_wanted && request.skip < reranking.n_candidates)
    }

    /// Puts the first candidates in the reranker's order; those that are not judged keep their places. Whether it is the reranker's; what
    /// it cannot do is told.
    pub(super) fn rerank(
        &self,
        reranking: &Reranking<'_>,
        request: &Request,
        query: &str,
        candidates: &mut [Candidate],
        opened: &mut Opened,
        notes: &mut Vec<String>,
    ) -> Result<bool, SearchError> {
        let n_judged = reranking.n_candidates.min(candidates.len());
        let is_exact = |candidate: &Candidate| {
            candidate.features.defines > 0.0
                || request.mode != Mode::Semantic && request.exact.share(candidate.doc) > 0.0
        };
        let n_exact = candidates.iter().take_while(|candidate| is_exact(candidate)).count();
        let mut texts = Texts::new(self, &reranking.sources);
        let mut judged: Vec<(usize, String)> = Vec::new();
        for (at, candidate) in candidates.iter().enumerate().take(n_judged).skip(n_exact) {
            judged.extend(texts.of(candidate, opened)?.map(|text| (at, text)));
        }
        // The order is what it would make of it.
        if judged.len() < 2 {
            return Ok(true);
        }
        let sent: Vec<&str> = judged.iter().map(|(_, text)| text.as_str()).collect();
        match reranking.reranker.rerank(query, &sent, reranking.interrupt) {
            Ok(scores) => {
                let scored = judged.iter().zip(scores);
                let scored = scored.filter_map(|((at, _), score)| Some((*at, score?)));
                reorder(candidates, &scored.collect::<Vec<_>>());
                Ok(true)
            }
            Err(RerankError::Interrupted) => Err(SearchError::Interrupted),
            Err(error) => {
                notes.push(format!("{}: results are in the order without it", chain(&error)));
                Ok(false)
            }
        }
    }
}

/// Puts the candidates at some places in the order of their scores, on these places; of equal ones the first stays first.
fn reorder(candidates: &mut [Candidate], scored: &[(usize, f32)]) {
    let mut best: Vec<Candidate> = scored
        .iter()
        .map(|&(at, score)| Candidate {
            reranked: Some(score),
            ..candidates[at].clone()
        })
        .collect();
    best.sort_by(|a, b| {
        b.reranked
            .unwrap_or_default()
            .total_cmp(&a.reranked.unwrap_or_default())
    });
    for (&(at, _), candidate) in scored.iter().zip(best) {
        candidates[at] = candidate;
    }
}

/// The texts of candidates, as far as they may leave the machine.
struct Texts<'s> {
    searcher: &'s Searcher<'s>,
    reader: SourceReader<'s>,
    files: HashMap<FileId, Option<Vec<u8>>>,
}

impl<'s> Texts<'s> {
    fn new(searcher: &'s Searcher<'_>, sources: &Sources<'s>) -> Self {
        Self {
            searcher,
            reader: sources.reader(),
            files: HashMap::new(),
        }
    }

    /// The text that stands for a candidate; `None` for what is not committed, stands in a file that holds secrets by its name, or
    /// cannot be read.
    fn of(&mut self, candidate: &Candidate, opened: &mut Opened) -> Result<Option<String>, SearchError> {
        let view = self.searcher.view;
        let is_stored = view
            .segments()
            .of_doc(candidate.doc)
            .is_some_and(|(segment, _)| !segment.is_in_memory);
        let mut places = view.places(candidate.doc).iter();
        if !is_stored || places.any(|place| is_credential(view.file(place.file).path)) {
            return Ok(None);
        }
        let place = candidate.place;
        let Some(blob) = view.file(place.file).blob else {
            return Ok(None);
        };
        let extraction = opened.extraction(view, blob)?;
        let bytes = self.bytes(place.file);
        Ok(bytes.and_then(|bytes| chunk_text(bytes, extraction, place.chunk as usize)))
    }

    fn bytes(&mut self, file: FileId) -> Option<&[u8]> {
        let read = |reader: &mut SourceReader<'_>| match reader.read(file) {
            Ok(Source::Bytes(bytes)) => Some(bytes),
            Ok(_) => None,
            Err(error) => {
                tracing::debug!(%error, "a file is not judged");
                None
            }
        };
        let known = self.files.entry(file).or_insert_with(|| read(&mut self.reader));
        known.as_deref()
    }
}
