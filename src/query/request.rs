//! A search request, its result and its errors.

use std::collections::BTreeSet;

use crate::embed::EmbedError;
use crate::extract::DefinitionKind;
use crate::index::dense::DenseError;
use crate::index::lexical::LexicalError;
use crate::model::{ErrorKind, Explain, Explanation, Hint};
use crate::sidecar::FileError;
use crate::snapshot::FileId;

use super::cursor::ScorersUsed;
use super::exact::{ExactError, ExactText};
use super::filter::FileFilter;
use super::grep::GrepLine;
use super::hit::Hit;
use super::messages::MessagesError;
use super::rerank::Rerank;

/// The ways to find candidates. Each way is called a leg.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Combines words and vectors, with weights that depend on the form of the query.
    #[default]
    Auto,
    /// Combines words and vectors.
    Hybrid,
    /// Uses only vectors and orders results by cosine.
    Semantic,
    /// Uses only words and orders results by the BM25 of chunks.
    Keyword,
    /// Finds similar code. The query is a piece of code, or its location as `path:line`.
    Similar,
}

/// A search request.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// The query as typed.
    pub query: String,
    /// The way to find candidates.
    pub mode: Mode,
    /// The files to search.
    pub filter: FileFilter,
    /// Maximum number of hits after `skip`.
    pub limit: usize,
    /// Number of hits to skip.
    pub skip: usize,
    /// The kinds of definitions to find; empty for everything.
    pub kinds: Vec<DefinitionKind>,
    /// True to return each definition as a hit of its own, even if the same file has a better one.
    pub is_flat: bool,
    /// Determines whether a configured reranker is used.
    pub rerank: Rerank,
    /// True to return the best hits even if they match little, for collections that are small or were selected.
    pub is_any: bool,
    /// The models that ordered the previous page. Other models are not used, and a missing one is an error.
    pub previous_scorers: Option<ScorersUsed>,
}

impl Request {
    /// Returns true if the mode combines the legs, with weights.
    pub(super) fn is_weighted(&self) -> bool {
        matches!(self.mode, Mode::Auto | Mode::Hybrid)
    }

    /// Returns true if a model may be used for this request. If the previous page was made without it, adds a note that
    /// describes the consequence.
    pub(super) fn asks(&self, whom: impl Fn(ScorersUsed) -> bool, without: &str, notes: &mut Vec<String>) -> bool {
        let is_asked = self.previous_scorers.is_none_or(whom);
        if !is_asked {
            notes.push(format!("as on the previous page, {without}"));
        }
        is_asked
    }
}

/// The result of a search.
#[derive(Clone, Debug, Default)]
pub struct SearchOutcome {
    /// The hits, best first.
    pub hits: Vec<Hit>,
    /// The files of all candidates that were ranked.
    pub files: BTreeSet<FileId>,
    /// If there are no hits, lines with the text of the query in files that are not indexed.
    pub unindexed: Vec<(FileId, GrepLine)>,
    /// True if there are more hits.
    pub has_more: bool,
    /// The query that was searched, if a word was corrected.
    pub read_as: Option<String>,
    /// The terms of the query with their weights.
    pub terms: Vec<(String, f32)>,
    /// True if there are candidates, but even the best ones match too little to be returned.
    pub is_weak: bool,
    /// Notes on problems that degraded the order.
    pub notes: Vec<String>,
    /// Remarks about the query, for example on a path that does not exist.
    pub remarks: Vec<String>,
    /// The literal texts of the query.
    pub exact: ExactText,
    /// The models that determined the order.
    pub judges: ScorersUsed,
    /// True if a graph proposed the nearest vectors, false if all were compared.
    pub uses_graph: bool,
}

/// An error from a search.
#[derive(Debug, thiserror::Error)]
pub enum SearchError {
    /// The lexical index cannot be read.
    #[error(transparent)]
    Lexical(#[from] LexicalError),
    /// The dense index cannot be read.
    #[error(transparent)]
    Dense(#[from] DenseError),
    /// The query cannot be embedded.
    #[error(transparent)]
    Embed(EmbedError),
    /// An artifact cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// The literal texts of the query cannot be found.
    #[error(transparent)]
    Exact(#[from] ExactError),
    /// The messages of commits cannot be read.
    #[error(transparent)]
    Messages(#[from] MessagesError),
    /// A search for similar code names a location without indexed code.
    #[error("no indexed code at {place}")]
    NoSuchPlace {
        /// The place as typed.
        place: String,
    },
    /// The order of the previous page cannot be reproduced.
    #[error("cannot continue in the order of the previous page: {why}")]
    OtherOrder {
        /// The reason.
        why: String,
    },
    /// The interrupt flag was set.
    #[error("interrupted")]
    Interrupted,
}

impl Explain for SearchError {
    fn explain(&self) -> Explanation {
        match self {
            Self::Lexical(error) => error.explain(),
            Self::Embed(error) => error.explain(),
            Self::File(error) => error.explain(),
            Self::Exact(error) => error.explain(),
            Self::OtherOrder { .. } => Explanation::hinting(Hint::each(
                "try again later, or start over without --cursor",
                "try again later, or start over without cursor",
            )),
            Self::Interrupted => Explanation::of_kind(ErrorKind::Interrupted),
            _ => Explanation::default(),
        }
    }
}

impl From<EmbedError> for SearchError {
    fn from(error: EmbedError) -> Self {
        match error {
            EmbedError::Interrupted => Self::Interrupted,
            error => Self::Embed(error),
        }
    }
}
