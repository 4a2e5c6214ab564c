//! The candidates of a search, and where they may lie.

use std::cmp::Ordering;
use std::collections::HashMap;

use roaring::RoaringBitmap;

use crate::extract::is_credential;
use crate::index::dense::Cosine;
use crate::snapshot::{FileId, Place, View};

use super::analyze::Analysis;
use super::cursor::ScorersUsed;
use super::defining::Defining;
use super::exact::ExactText;
use super::hit::Opened;
use super::lexical_leg::LexicalLeg;
use super::meaning::Query;
use super::messages::CommitMessages;
use super::placed::Placed;
use super::rank::Features;
use super::reading::Reading;
use super::sparse_leg::{SparseFound, SparseLeg};
use super::verbatim::Verbatim;

/// Number of files whose best chunk becomes a candidate.
const FILE_CANDIDATES: usize = 40;
/// The penalty for each better chunk of the same file, if a file can have several hits.
const REPEAT: f32 = 0.05;

/// The results of all legs.
pub(super) struct Legs<'a> {
    pub(super) analysis: &'a Analysis,
    pub(super) lexical: &'a LexicalLeg,
    pub(super) query: &'a Query,
    pub(super) by_words: &'a [u32],
    pub(super) by_meaning: &'a [(u32, Cosine)],
    pub(super) sparse: Option<(&'a SparseLeg<'a>, &'a SparseFound)>,
    pub(super) exact: &'a ExactText,
    pub(super) messages: Option<&'a CommitMessages>,
    pub(super) placed: &'a Placed,
    pub(super) verbatim: &'a HashMap<u32, Verbatim>,
    /// The part that a place counts.
    pub(super) place_share: f32,
    pub(super) wants_tests: bool,
    /// The documents with definitions of the query's names.
    pub(super) defining: &'a HashMap<u32, Defining>,
}

/// What a search may use, has opened and has to report.
#[derive(Default)]
pub(super) struct Run {
    pub(super) scope: Scope,
    pub(super) opened: Opened,
    /// The models that determined the order.
    pub(super) judges: ScorersUsed,
    /// Notes on problems that degraded the order.
    pub(super) notes: Vec<String>,
}

/// Candidates, best first, and what is known of the query.
pub(super) struct Ranked {
    pub(super) candidates: Vec<Candidate>,
    /// The terms of the query with their weights.
    pub(super) terms: Vec<(String, f32)>,
    /// The part of the query's idf that belongs to its words.
    pub(super) all_words: f32,
    pub(super) is_weak: bool,
    pub(super) reading: Reading,
    pub(super) exact: ExactText,
    pub(super) placed: Placed,
    pub(super) verbatim: HashMap<u32, Verbatim>,
}

impl Ranked {
    pub(super) fn of(candidates: Vec<Candidate>, reading: Reading) -> Self {
        Self {
            candidates,
            terms: Vec::new(),
            all_words: f32::INFINITY,
            is_weak: false,
            reading,
            exact: ExactText::default(),
            placed: Placed::default(),
            verbatim: HashMap::new(),
        }
    }
}

/// A document, at the place where it ranks best.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    pub(super) doc: u32,
    pub(super) place: Place,
    pub(super) score: f32,
    pub(super) features: Features,
    /// The reranker's score, if the candidate was reranked.
    pub(super) reranked: Option<f32>,
    /// Further candidates in the same file, best first.
    pub(super) further: Vec<Candidate>,
    /// Documents of other repositories with the same text.
    pub(super) copies: Vec<u32>,
}

/// The files and documents to search; `None` for all.
#[derive(Default)]
pub(super) struct Scope {
    pub(super) limits: Option<(RoaringBitmap, RoaringBitmap)>,
}

impl Scope {
    pub(super) fn contains(&self, doc: u32) -> bool {
        self.limits.as_ref().is_none_or(|(_, docs)| docs.contains(doc))
    }

    pub(super) fn has_file(&self, file: FileId) -> bool {
        self.limits.as_ref().is_none_or(|(files, _)| files.contains(file.0))
    }

    pub(super) fn docs<'b>(&'b self, live: &'b RoaringBitmap) -> &'b RoaringBitmap {
        self.limits.as_ref().map_or(live, |(_, docs)| docs)
    }

    /// Returns the places of a document in scope, without files whose names suggest credentials.
    pub(super) fn places<'b>(&'b self, view: &'b View, doc: u32) -> impl Iterator<Item = Place> + 'b {
        let is_hit = |place: &Place| self.has_file(place.file) && !is_credential(view.file(place.file).path);
        view.places(doc).iter().copied().filter(is_hit)
    }
}

/// The documents of files whose names suggest credentials. Their texts are never sent to another model.
pub fn withheld(view: &View) -> RoaringBitmap {
    let files = view.files().filter(|(_, file)| is_credential(file.path));
    files.flat_map(|(id, _)| view.docs(id)).collect()
}

/// Returns the files in scope by BM25, best first.
pub(super) fn best_files(lexical: &LexicalLeg, in_scope: impl Fn(FileId) -> bool) -> Vec<FileId> {
    let scored = lexical.files().filter(|(file, _)| in_scope(*file));
    let scored = scored.map(|(file, scores)| (scores.bm25.0, file));
    let best = best(scored, FILE_CANDIDATES, |a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    best.into_iter().map(|(_, file)| file).collect()
}

/// Returns the first `n` items in this order.
pub(super) fn best<T>(items: impl Iterator<Item = T>, n: usize, order: impl Fn(&T, &T) -> Ordering) -> Vec<T> {
    let mut items: Vec<T> = items.collect();
    if items.len() > n {
        items.select_nth_unstable_by(n, &order);
        items.truncate(n);
    }
    items.sort_unstable_by(order);
    items
}

/// Returns true if a definition is in the container that the query gives.
pub(super) fn is_qualified(defining: &HashMap<u32, Defining>) -> bool {
    defining.values().any(|defining| defining.in_container > 0.0)
}

pub(super) fn sort_best_first(candidates: &mut [Candidate], view: &View) {
    let place = |candidate: &Candidate| view.order(candidate.place);
    candidates.sort_by(|a, b| b.score.total_cmp(&a.score).then_with(|| place(a).cmp(&place(b))));
}

/// Subtracts [`REPEAT`] from a chunk's score for every better chunk of its file, so that results come from several
/// files.
pub(super) fn spread(candidates: &mut [Candidate], view: &View) {
    let mut n_better: HashMap<FileId, u32> = HashMap::new();
    for candidate in candidates.iter_mut() {
        let better = n_better.entry(candidate.place.file).or_default();
        candidate.score -= REPEAT * *better as f32;
        *better += 1;
    }
    sort_best_first(candidates, view);
}
