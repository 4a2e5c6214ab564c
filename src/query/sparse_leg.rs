//! Finds candidates by sparse vectors, if a server for them is configured.

use std::sync::atomic::AtomicBool;

use roaring::RoaringBitmap;

use crate::embed::{EmbedError, SparseEmbedder, SparseVector};
use crate::index::Segments;
use crate::index::sparse::{Impact, SparseIndex};
use crate::model::chain;

/// The sparse vectors of a view, and the embedder for queries.
pub(super) struct SparseLeg<'a> {
    embedder: &'a dyn SparseEmbedder,
    index: SparseIndex,
    /// The weight in the ranking, relative to the default.
    weight: f32,
    n_live: u64,
    /// Number of live stored documents that still need a vector.
    n_missing: u64,
    has_any: bool,
}

/// The outcome of embedding a query.
pub(super) enum Asked {
    /// The response of the embedder.
    Answered(Result<SparseVector, EmbedError>),
    /// No document has a sparse vector, so no request was made.
    NotYet,
}

/// The documents found by sparse vectors.
pub(super) struct SparseFound {
    query: SparseVector,
    /// Documents that share a token with the query, best first.
    pub(super) docs: Vec<(u32, Impact)>,
}

impl<'a> SparseLeg<'a> {
    pub(super) fn open(
        segments: &Segments,
        embedder: &'a dyn SparseEmbedder,
        weight: f32,
        live: &RoaringBitmap,
        withheld: impl Fn() -> RoaringBitmap,
    ) -> Self {
        let (mut missing, mut has_any) = (RoaringBitmap::new(), false);
        for segment in segments.iter().filter(|segment| !segment.is_in_memory) {
            let docs = segment.base_doc..segment.base_doc + segment.lexical.n_docs();
            let has_none = |doc: &u32| {
                let sparse = segment.sparse.as_ref();
                sparse.is_none_or(|sparse| !sparse.has(doc - segment.base_doc))
            };
            let before = missing.len();
            missing.extend(live.range(docs.clone()).filter(has_none));
            has_any |= live.range_cardinality(docs) > missing.len() - before;
        }
        if !missing.is_empty() {
            missing -= withheld();
        }
        let files = segments
            .iter()
            .filter_map(|segment| Some((segment.base_doc, segment.sparse.clone()?)));
        Self {
            embedder,
            index: SparseIndex::new(files.collect()),
            weight,
            n_live: live.len(),
            n_missing: missing.len(),
            has_any,
        }
    }

    /// Embeds a query on another thread while this thread runs `work`.
    pub(super) fn embed_query_beside<T>(
        &self,
        text: &str,
        interrupt: &AtomicBool,
        work: impl FnOnce() -> T,
    ) -> (T, Asked) {
        if !self.has_any {
            return (work(), Asked::NotYet);
        }
        let ask = || Asked::Answered(self.embedder.embed_query(text, interrupt));
        std::thread::scope(|threads| {
            let asking = std::thread::Builder::new()
                .name("sparse".to_owned())
                .spawn_scoped(threads, ask);
            let done = work();
            let answer = asking.map_or_else(
                |_no_thread| ask(),
                |thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            );
            (done, answer)
        })
    }

    /// Returns the `k` documents of `scope` with the highest impact (dot product). Adds notes on missing vectors.
    /// `None` if the query has no vector.
    pub(super) fn find(
        &self,
        asked: Asked,
        scope: &RoaringBitmap,
        k: usize,
        notes: &mut Vec<String>,
    ) -> Option<SparseFound> {
        let model = &self.embedder.profile().model;
        let query = match asked {
            Asked::Answered(Ok(query)) => query,
            Asked::Answered(Err(error)) => {
                notes.push(format!("{}: sparse vectors are not used", chain(&error)));
                return None;
            }
            Asked::NotYet => {
                if self.n_live > 0 {
                    notes.push(format!(
                        "there are no sparse vectors of {model} yet; run codescout index"
                    ));
                }
                return None;
            }
        };
        if self.n_missing > 0 {
            notes.push(format!(
                "{} of {} chunks have no sparse vector of {model} yet and score 0 for it; run codescout index",
                self.n_missing, self.n_live
            ));
        }
        let docs = self.index.search(&query, scope, k);
        Some(SparseFound { query, docs })
    }

    /// Returns the impact of a document relative to the best one, times the weight.
    pub(super) fn share(&self, found: &SparseFound, doc: u32) -> f32 {
        let best = found.docs.first().map_or(f32::MIN_POSITIVE, |(_, impact)| impact.0);
        self.weight * (self.index.impact(&found.query, doc).0 / best)
    }
}
