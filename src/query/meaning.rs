//! Nearness in meaning, by one model or two.
//!
//! Every document has a vector of the model inside the program. Where another model is in use, its vectors decide; documents that
//! have none yet (changed files, and what is still to be embedded) are placed among the others by the built-in model: its cosines are
//! stretched so that the nearest documents that both know are equally near for both.

use roaring::RoaringBitmap;

use crate::index::Segments;
use crate::index::dense::{Cosine, DenseError, DenseIndex, FlatIndex};

/// Where even the best document that both models know is less like the query for the built-in one, shares of it would blow up noise.
const MIN_BEST: f32 = 0.05;

/// The vectors of a view.
pub(super) struct Meaning {
    own: FlatIndex,
    added: Option<Added>,
}

/// Those of another model, where one is in use.
struct Added {
    index: FlatIndex,
    /// Documents that have none, those of changed files included.
    without: RoaringBitmap,
    /// Those of them that are stored, so that they will have one.
    n_missing: u64,
}

/// A query for one model or both.
pub(super) struct Query {
    /// For the model inside the program.
    pub(super) own: Vec<f32>,
    /// For the other one, and what turns cosines of the first into cosines like its.
    added: Option<(Vec<f32>, f32)>,
}

impl Meaning {
    /// Joins the vectors of segments; `live` are the documents that may be asked about.
    pub(super) fn open(segments: &Segments, uses_added: bool, live: &RoaringBitmap) -> Result<Self, DenseError> {
        let own = segments
            .iter()
            .filter_map(|segment| Some((segment.base_doc, segment.vectors.clone()?)));
        let own = FlatIndex::new(own.collect())?;
        if !uses_added {
            return Ok(Self { own, added: None });
        }
        let (mut without, mut n_missing) = (RoaringBitmap::new(), 0);
        for segment in segments.iter() {
            let docs = segment.base_doc..segment.base_doc + segment.lexical.n_docs();
            let has_none = |doc: &u32| {
                let added = segment.added.as_ref();
                added.is_none_or(|added| added.weight(doc - segment.base_doc) == 0.0)
            };
            let before = without.len();
            without.extend(live.range(docs).filter(has_none));
            if !segment.is_in_memory {
                n_missing += without.len() - before;
            }
        }
        let added = segments
            .iter()
            .filter_map(|segment| Some((segment.base_doc, segment.added.clone()?)));
        let index = FlatIndex::new(added.collect())?;
        let added = Some(Added {
            index,
            without,
            n_missing,
        });
        Ok(Self { own, added })
    }

    /// How many documents that could have a vector of the other model have none, if one is in use; all of `live` where there is
    /// not a single one.
    pub(super) fn n_without(&self, live: &RoaringBitmap) -> Option<u64> {
        let added = self.added.as_ref()?;
        match added.without.len() == live.len() {
            true => Some(live.len()),
            false => Some(added.n_missing),
        }
    }

    /// A query from what the models say of it.
    pub(super) fn query(
        &self,
        own: Vec<f32>,
        added: Option<Vec<f32>>,
        scope: &RoaringBitmap,
    ) -> Result<Query, DenseError> {
        let Some((vector, index)) = added.zip(self.added.as_ref()) else {
            return Ok(Query { own, added: None });
        };
        let best = |found: Vec<(u32, Cosine)>| found.first().map_or(0.0, |(_, cosine)| cosine.0);
        // By the documents that both know.
        let known = scope - &index.without;
        let best_added = best(index.index.search(&vector, &known, 1)?);
        let best_own = best(self.own.search(&own, &known, 1)?).max(MIN_BEST);
        let added = Some((vector, best_added / best_own));
        Ok(Query { own, added })
    }

    /// The `k` documents of `scope` that are nearest, best first.
    pub(super) fn search(
        &self,
        query: &Query,
        scope: &RoaringBitmap,
        k: usize,
    ) -> Result<Vec<(u32, Cosine)>, DenseError> {
        let Some(((vector, ratio), added)) = query.added.as_ref().zip(self.added.as_ref()) else {
            return self.own.search(&query.own, scope, k);
        };
        let mut found = added.index.search(vector, &(scope - &added.without), k)?;
        let others = scope & &added.without;
        if !others.is_empty() {
            let others = self.own.search(&query.own, &others, k)?;
            found.extend(others.into_iter().map(|(doc, cosine)| (doc, Cosine(cosine.0 * ratio))));
            found.sort_by(|(a, x), (b, y)| y.0.total_cmp(&x.0).then(a.cmp(b)));
            found.truncate(k);
        }
        Ok(found)
    }

    /// How near each of `docs` is, in their order.
    pub(super) fn score(&self, query: &Query, docs: &[u32]) -> Result<Vec<Cosine>, DenseError> {
        let Some(((vector, ratio), added)) = query.added.as_ref().zip(self.added.as_ref()) else {
            return self.own.score(&query.own, docs);
        };
        let mut scores = added.index.score(vector, docs)?;
        let others: Vec<u32> = docs
            .iter()
            .copied()
            .filter(|&doc| added.without.contains(doc))
            .collect();
        let mut of_others = self.own.score(&query.own, &others)?.into_iter();
        for (score, doc) in scores.iter_mut().zip(docs) {
            if added.without.contains(*doc)
                && let Some(own) = of_others.next()
            {
                *score = Cosine(own.0 * ratio);
            }
        }
        Ok(scores)
    }

    /// The vectors of a document: that of the program's own model, and of the other.
    pub(super) fn vectors(&self, doc: u32) -> Option<(Vec<f32>, Option<Vec<f32>>)> {
        let own = self.own.vector(doc)?;
        let added = self.added.as_ref().filter(|added| !added.without.contains(doc));
        Some((own, added.and_then(|added| added.index.vector(doc))))
    }
}
