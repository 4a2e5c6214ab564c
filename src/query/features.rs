//! Computes the features of a candidate, which are weighted to score it.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use crate::embed::{StaticModel, TokenDots};
use crate::extract::ChunkKind;
use crate::index::lexical::for_each_term;
use crate::snapshot::{FileId, Place, View};

use super::candidates::Legs;
use super::messages::MessageScores;
use super::path_role::{PathRole, path_role};
use super::rank::Features;
use super::search::Searcher;

/// Lower bound for the best cosine that others are divided by. A smaller divisor would amplify noise.
const MIN_BEST_COSINE: f32 = 0.05;
/// The constant K in the score of a rank r, K / (K + r − 1). Source: Cormack, Clarke, Büttcher, "Reciprocal Rank
/// Fusion", SIGIR 2009, with their K.
const RANK_K: f32 = 60.0;

/// The cosines of documents.
pub(super) type Cosines = HashMap<u32, f32, RandomState>;

/// Computes the features of candidates. Caches the features of files.
pub(super) struct FeatureExtractor<'s> {
    view: &'s View,
    legs: &'s Legs<'s>,
    cosines: &'s Cosines,
    messages: &'s MessageScores,
    paths: &'s StaticModel,
    path_dots: TokenDots<'s>,
    best_chunk: f32,
    best_file: f32,
    best_cosine: f32,
    all_idf: f32,
    lexical_ranks: HashMap<u32, usize, RandomState>,
    dense_ranks: HashMap<u32, usize, RandomState>,
    files: HashMap<FileId, FileFeatures, RandomState>,
    /// The share of the query's idf in the names of folders, by path.
    folders: HashMap<String, f32, RandomState>,
}

#[derive(Clone, Copy)]
struct FileFeatures {
    cosine_mean: f32,
    cosine_best: f32,
    cosine_path: f32,
    file_name: f32,
    folder_names: f32,
    is_test: f32,
    is_peripheral: f32,
}

impl<'s> FeatureExtractor<'s> {
    pub(super) fn new(
        searcher: &'s Searcher<'_>,
        legs: &'s Legs<'s>,
        cosines: &'s Cosines,
        messages: &'s MessageScores,
    ) -> Self {
        let lexical = legs.lexical;
        let best = |scores: &mut dyn Iterator<Item = f32>| scores.fold(f32::MIN_POSITIVE, f32::max);
        Self {
            view: searcher.view,
            legs,
            cosines,
            messages,
            paths: searcher.paths,
            path_dots: TokenDots::new(searcher.paths, &legs.query.own),
            best_chunk: best(&mut legs.by_words.iter().map(|&doc| lexical.doc(doc).bm25.0)),
            best_file: best(&mut lexical.files().map(|(_, scores)| scores.bm25.0)),
            best_cosine: best(&mut legs.by_meaning.iter().map(|(_, cosine)| cosine.0)).max(MIN_BEST_COSINE),
            all_idf: lexical.idf.iter().sum::<f32>().max(f32::MIN_POSITIVE),
            lexical_ranks: legs
                .by_words
                .iter()
                .enumerate()
                .map(|(rank, &doc)| (doc, rank))
                .collect(),
            dense_ranks: legs
                .by_meaning
                .iter()
                .enumerate()
                .map(|(rank, (doc, _))| (*doc, rank))
                .collect(),
            files: HashMap::default(),
            folders: HashMap::default(),
        }
    }

    /// Returns the features of a document at one of its places.
    pub(super) fn of(&mut self, doc: u32, place: Place) -> Features {
        let file = self.file(place.file);
        let chunk = self.legs.lexical.doc(doc);
        let in_file = self.legs.lexical.file(place.file);
        let meta = self.view.segments().doc_meta(doc);
        let kind = meta.map(|meta| meta.kind);
        let is_kind = |wanted: &[ChunkKind]| as_feature(kind.is_some_and(|kind| wanted.contains(&kind)));
        Features {
            bm25: chunk.bm25.0 / self.best_chunk,
            bm25_file: in_file.bm25.0 / self.best_file,
            cosine: self.cosines.get(&doc).copied().unwrap_or_default() / self.best_cosine,
            cosine_file_mean: file.cosine_mean / self.best_cosine,
            cosine_file_best: file.cosine_best / self.best_cosine,
            cosine_path: file.cosine_path / self.best_cosine,
            covered: chunk.covered / self.all_idf,
            covered_file: in_file.covered / self.all_idf,
            named: chunk.named / self.all_idf,
            defines: self.legs.defining.get(&doc).map_or(0.0, |defining| defining.strength),
            defines_in_container: self
                .legs
                .defining
                .get(&doc)
                .map_or(0.0, |defining| defining.in_container),
            exact_text: self.legs.exact.share(doc),
            file_name: file.file_name,
            folder_names: file.folder_names,
            rank_lexical: self.lexical_ranks.get(&doc).copied().map_or(0.0, of_rank),
            rank_dense: self.dense_ranks.get(&doc).copied().map_or(0.0, of_rank),
            is_test: if kind == Some(ChunkKind::Test) {
                1.0
            } else {
                file.is_test
            },
            is_peripheral: file.is_peripheral,
            is_function: is_kind(&[ChunkKind::Function]),
            is_type: is_kind(&[ChunkKind::Type]),
            is_prose: is_kind(&[ChunkKind::Section]),
            is_module_text: is_kind(&[ChunkKind::Module]),
            brevity: 1.0 / (1.0 + meta.map_or(0.0, |meta| meta.n_tokens as f32) / 20.0),
            sparse: self.legs.sparse.map_or(0.0, |(leg, found)| leg.share(found, doc)),
            messages: self.messages.by_file.get(&place.file).copied().unwrap_or_default(),
            place: self.legs.placed.by_doc.get(&doc).copied().unwrap_or_default() * self.legs.place_share,
            verbatim: self.legs.verbatim.get(&doc).map_or(0.0, |verbatim| verbatim.share),
        }
    }

    fn file(&mut self, id: FileId) -> FileFeatures {
        if let Some(&known) = self.files.get(&id) {
            return known;
        }
        let path = String::from_utf8_lossy(self.view.path_in_repository(id)).into_owned();
        let (folders, name) = path.rsplit_once('/').unwrap_or(("", &path));
        let cosines: Vec<f32> = self
            .view
            .docs(id)
            .map(|doc| self.cosines.get(&doc).copied().unwrap_or_default())
            .collect();
        let words = path_words(&path);
        let role = path_role(&path);
        let features = FileFeatures {
            cosine_mean: cosines.iter().sum::<f32>() / (cosines.len() as f32).max(1.0),
            cosine_best: cosines.iter().copied().fold(0.0, f32::max),
            cosine_path: self.path_dots.pooled(&self.paths.token_ids(words.as_bytes())),
            file_name: self.idf_in(name),
            folder_names: self.idf_in_folders(folders),
            is_test: as_feature(role == Some(PathRole::Test)),
            is_peripheral: as_feature(role == Some(PathRole::Peripheral)),
        };
        self.files.insert(id, features);
        features
    }

    fn idf_in_folders(&mut self, folders: &str) -> f32 {
        if let Some(known) = self.folders.get(folders) {
            return *known;
        }
        let share = self.idf_in(folders);
        self.folders.insert(folders.to_owned(), share);
        share
    }

    /// Returns the share of the query's idf that belongs to terms in `text`.
    fn idf_in(&self, text: &str) -> f32 {
        let mut found = vec![false; self.legs.analysis.terms.len()];
        for_each_term(text, |term| {
            for (index, wanted) in self.legs.analysis.terms.iter().enumerate() {
                found[index] |= wanted == term;
            }
        });
        let weights = self.legs.lexical.idf.iter().zip(found);
        weights.filter(|(_, found)| *found).map(|(idf, _)| idf).sum::<f32>() / self.all_idf
    }
}

/// Converts a 0-based rank to a score.
pub(super) fn of_rank(rank: usize) -> f32 {
    RANK_K / (RANK_K + rank as f32)
}

fn as_feature(fact: bool) -> f32 {
    f32::from(u8::from(fact))
}

/// Returns the last three components of a path without the extension. Source: the model's recommended use (its
/// `FORMAT.md`).
fn path_words(path: &str) -> String {
    let stem = path.rsplit_once('.').map_or(path, |(stem, _)| stem);
    let components: Vec<&str> = stem.rsplit('/').take(3).collect();
    components.into_iter().rev().collect::<Vec<_>>().join(" ")
}
