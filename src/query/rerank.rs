//! Reorders the best candidates with a model that reads the query and a text together.
//!
//! The same candidates are reranked for every page of a result, so that the pages are consistent. Candidates that
//! define a name from the query or contain its literal texts keep their positions: a model's score must not rank an
//! exact match below others.

use std::collections::HashMap;
use std::sync::atomic::AtomicBool;

use crate::extract::is_credential;
use crate::index::chunk_text;
use crate::snapshot::FileId;

use super::candidates::{Candidate, Run};
use super::exact::ExactText;
use super::hit::Opened;
use super::request::{Mode, Request, SearchError};
use super::search::Searcher;
use super::source::{Source, SourceReader, Sources};
use crate::model::chain;

/// Scores how well texts match a query. More accurate than the search that found the texts, but too expensive for all
/// documents.
pub trait Reranker: Send + Sync {
    /// The name and address of the model, for messages.
    fn name(&self) -> &str;

    /// Returns the score of each of `texts`, in order. Scores are finite, higher is better, and comparable only within
    /// this call. `None` for a text that cannot be scored. Returns within the reranker's own time limit, or soon after
    /// `interrupt` is set.
    fn rerank(&self, query: &str, texts: &[&str], interrupt: &AtomicBool) -> Result<Vec<Option<f32>>, RerankError>;
}

/// An error from reranking.
#[derive(Debug, thiserror::Error)]
pub enum RerankError {
    /// The interrupt flag was set.
    #[error("interrupted")]
    Interrupted,
    /// The reranker did not return a usable response in time.
    #[error("{reranker}")]
    Unavailable {
        /// The name of the reranker.
        reranker: String,
        /// The cause.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// Determines which requests use the reranker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rerank {
    /// Reranks requests whose query is a description and not a name, in modes that use vectors.
    #[default]
    Prose,
    /// Reranks all requests except those of [`Mode::Similar`].
    Always,
    /// Reranks no requests.
    Never,
}

/// The configuration of reranking for a searcher.
#[derive(Clone, Copy)]
pub struct Reranking<'a> {
    /// The reranker.
    pub reranker: &'a dyn Reranker,
    /// Number of candidates to rerank, from the first.
    pub n_candidates: usize,
    /// The sources of the texts to rerank.
    pub sources: Sources<'a>,
    /// Aborts reranking when set.
    pub interrupt: &'a AtomicBool,
}

impl<'a> Searcher<'a> {
    /// Sets the reranker, which is used only for requests that want one.
    pub fn with_reranking(mut self, reranking: Option<Reranking<'a>>) -> Self {
        self.reranking = reranking;
        self
    }

    /// Returns the reranker if the request wants one and the page includes reranked candidates.
    pub(super) fn reranking(&self, request: &Request, is_name: bool) -> Option<Reranking<'a>> {
        let is_wanted = match (request.rerank, request.mode) {
            (Rerank::Never, _) | (_, Mode::Similar) => false,
            (Rerank::Always, _) => true,
            (Rerank::Prose, Mode::Keyword) => false,
            (Rerank::Prose, _) => !is_name,
        };
        self.reranking
            .filter(|reranking| is_wanted && request.skip < reranking.n_candidates)
    }

    /// Reorders the first candidates. Candidates without a score keep their positions. A failure adds a note.
    pub(super) fn rerank(
        &self,
        reranking: &Reranking<'_>,
        request: &Request,
        query: &str,
        exact: &ExactText,
        candidates: &mut [Candidate],
        run: &mut Run,
    ) -> Result<(), SearchError> {
        let n_judged = reranking.n_candidates.min(candidates.len());
        let is_exact = |candidate: &Candidate| {
            candidate.features.defines > 0.0
                || candidate.features.place > 0.0
                || request.mode != Mode::Semantic && exact.share(candidate.doc) > 0.0
        };
        let n_exact = candidates.iter().take_while(|candidate| is_exact(candidate)).count();
        let mut texts = Texts::new(self, &reranking.sources);
        let mut judged: Vec<(usize, String)> = Vec::new();
        for (at, candidate) in candidates.iter().enumerate().take(n_judged).skip(n_exact) {
            judged.extend(texts.of(candidate, &mut run.opened)?.map(|text| (at, text)));
        }
        // Reranking a single candidate would not change the order.
        if judged.len() < 2 {
            run.judges.reranker = true;
            return Ok(());
        }
        let sent: Vec<&str> = judged.iter().map(|(_, text)| text.as_str()).collect();
        match reranking.reranker.rerank(query, &sent, reranking.interrupt) {
            Ok(scores) => {
                let scored = judged.iter().zip(scores);
                let scored = scored.filter_map(|((at, _), score)| Some((*at, score?)));
                reorder(candidates, &scored.collect::<Vec<_>>());
                run.judges.reranker = true;
            }
            Err(RerankError::Interrupted) => return Err(SearchError::Interrupted),
            Err(error) => run.notes.push(format!("{}: results are not reranked", chain(&error))),
        }
        Ok(())
    }
}

/// Sorts the candidates at the given positions by score, descending, among these positions. Equal scores keep their
/// order.
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

/// Provides the texts of candidates. Withholds texts that must not be sent to another machine.
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

    /// Returns the text of a candidate. `None` if the text is not committed, is in a file whose name suggests
    /// credentials, or cannot be read.
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
                tracing::debug!(%error, "cannot read a file for reranking");
                None
            }
        };
        let known = self.files.entry(file).or_insert_with(|| read(&mut self.reader));
        known.as_deref()
    }
}
