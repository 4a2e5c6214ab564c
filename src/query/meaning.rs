//! Ranks documents by the cosines of one or two embedding models.
//!
//! Every document has a vector of the built-in model. If another model is active, its vectors determine the order.
//! Documents without such a vector (changed files, and those that are not embedded yet) are ranked among the others by
//! the built-in model. Its cosines are scaled so that its best cosine among documents with both vectors equals the
//! active model's best.

use roaring::RoaringBitmap;

use crate::index::Segments;
use crate::index::dense::{Cosine, DenseError, DenseIndex, FlatIndex, HnswIndex, VectorFile};

/// Lower bound for the best cosine of the built-in model among documents with both vectors. Dividing by a smaller value
/// would amplify noise.
const MIN_BEST: f32 = 0.05;

/// The vectors of a view, by the built-in model and possibly a second, active model.
pub(super) struct Meaning {
    own: HnswIndex,
    added: Option<Added>,
}

/// The vectors of an active model other than the built-in one.
struct Added {
    index: HnswIndex,
    /// Documents without a vector, including those of changed files.
    without: RoaringBitmap,
    /// Number of stored documents that still need an embedding.
    n_missing: u64,
}

/// A query with its vectors and the nearest documents.
pub(super) struct Query {
    /// The query's vector from the built-in model.
    pub(super) own: Vec<f32>,
    /// The query's vector from the active model, and the factor that converts the built-in model's cosines to its
    /// scale.
    added: Option<(Vec<f32>, f32)>,
    /// The nearest documents by the active model, among the documents that have its vectors.
    nearest: Vec<(u32, Cosine)>,
}

impl Query {
    fn by_own(own: Vec<f32>, nearest: Vec<(u32, Cosine)>) -> Self {
        Self {
            own,
            added: None,
            nearest,
        }
    }
}

/// Combines vectors with their graph, if there is one.
fn with_graph(segments: &Segments, vectors: Vec<(u32, VectorFile)>) -> Result<HnswIndex, DenseError> {
    let profile = vectors.first().map(|(_, vectors)| vectors.profile());
    let graph = profile.and_then(|profile| segments.graph(profile));
    Ok(HnswIndex::new(FlatIndex::new(vectors)?, graph))
}

impl Meaning {
    /// Combines the vectors of segments. `live` are the documents to search; `withheld` are documents that are not sent
    /// to other models.
    pub(super) fn open(
        segments: &Segments,
        uses_added: bool,
        live: &RoaringBitmap,
        withheld: impl Fn() -> RoaringBitmap,
    ) -> Result<Self, DenseError> {
        let own = segments
            .iter()
            .filter_map(|segment| Some((segment.base_doc, segment.vectors.clone()?)));
        let own = with_graph(segments, own.collect())?;
        if !uses_added {
            return Ok(Self { own, added: None });
        }
        let (mut without, mut missing) = (RoaringBitmap::new(), RoaringBitmap::new());
        for segment in segments.iter() {
            let docs = segment.base_doc..segment.base_doc + segment.lexical.n_docs();
            let added = segment.added.as_ref();
            let has_vector = |doc: u32| added.is_some_and(|added| added.has_vector(doc - segment.base_doc));
            let is_embedded = |doc: u32| added.is_some_and(|added| added.weight(doc - segment.base_doc) > 0.0);
            without.extend(live.range(docs.clone()).filter(|doc| !has_vector(*doc)));
            if !segment.is_in_memory {
                missing.extend(without.range(docs).filter(|doc| !is_embedded(*doc)));
            }
        }
        if !missing.is_empty() {
            missing -= withheld();
        }
        let added = segments
            .iter()
            .filter_map(|segment| Some((segment.base_doc, segment.added.clone()?)));
        let index = with_graph(segments, added.collect())?;
        let added = Some(Added {
            index,
            without,
            n_missing: missing.len(),
        });
        Ok(Self { own, added })
    }

    /// Returns true if only vectors of the built-in model are in use.
    pub(super) fn is_own(&self) -> bool {
        self.added.is_none()
    }

    /// Returns true if a search for the `k` nearest documents of `scope` uses a graph of the active model's vectors.
    pub(super) fn uses_graph(&self, scope: &RoaringBitmap, k: usize) -> bool {
        let index = self.added.as_ref().map_or(&self.own, |added| &added.index);
        index.uses_graph(scope, k)
    }

    /// Returns the number of documents that still need a vector of the active model, or of all `live` documents if none
    /// has one. `None` if only the built-in model is in use.
    pub(super) fn n_without(&self, live: &RoaringBitmap) -> Option<u64> {
        let added = self.added.as_ref()?;
        if added.without.len() == live.len() {
            Some(live.len())
        } else {
            Some(added.n_missing)
        }
    }

    /// Builds a query from its vectors and finds the `k` nearest documents of `scope` by the active model.
    pub(super) fn query(
        &self,
        own: Vec<f32>,
        added: Option<Vec<f32>>,
        scope: &RoaringBitmap,
        k: usize,
    ) -> Result<Query, DenseError> {
        let Some((vector, index)) = added.zip(self.added.as_ref()) else {
            let nearest = self.own.search(&own, scope, k)?;
            return Ok(Query::by_own(own, nearest));
        };
        // Searches only the documents with both vectors.
        let known = scope - &index.without;
        let nearest = index.index.search(&vector, &known, k)?;
        if nearest.is_empty() {
            // The scale cannot be computed without any document.
            let nearest = self.own.search(&own, scope, k)?;
            return Ok(Query::by_own(own, nearest));
        }
        let best = |found: &[(u32, Cosine)]| found.first().map_or(0.0, |(_, cosine)| cosine.0);
        let best_own = best(&self.own.search(&own, &known, 1)?).max(MIN_BEST);
        let added = Some((vector, best(&nearest) / best_own));
        Ok(Query { own, added, nearest })
    }

    /// Returns the nearest documents of `scope`, best first. `scope` and `k` must be those given to [`Self::query`].
    pub(super) fn search(
        &self,
        query: &Query,
        scope: &RoaringBitmap,
        k: usize,
    ) -> Result<Vec<(u32, Cosine)>, DenseError> {
        let mut found = query.nearest.clone();
        let Some(((_, ratio), added)) = query.added.as_ref().zip(self.added.as_ref()) else {
            return Ok(found);
        };
        let others = scope & &added.without;
        if !others.is_empty() {
            let others = self.own.search(&query.own, &others, k)?;
            found.extend(others.into_iter().map(|(doc, cosine)| (doc, Cosine(cosine.0 * ratio))));
            found.sort_by(|(a, x), (b, y)| y.0.total_cmp(&x.0).then(a.cmp(b)));
            found.truncate(k);
        }
        Ok(found)
    }

    /// Returns the score of each of `docs`, in order.
    pub(super) fn score(&self, query: &Query, docs: &[u32]) -> Result<Vec<Cosine>, DenseError> {
        let Some(((vector, ratio), added)) = query.added.as_ref().zip(self.added.as_ref()) else {
            return self.own.flat().score(&query.own, docs);
        };
        let mut scores = added.index.flat().score(vector, docs)?;
        let others: Vec<u32> = docs
            .iter()
            .copied()
            .filter(|&doc| added.without.contains(doc))
            .collect();
        let mut of_others = self.own.flat().score(&query.own, &others)?.into_iter();
        for (score, doc) in scores.iter_mut().zip(docs) {
            if added.without.contains(*doc)
                && let Some(own) = of_others.next()
            {
                *score = Cosine(own.0 * ratio);
            }
        }
        Ok(scores)
    }

    /// Returns a document's vector of the built-in model and its vector of the active model.
    pub(super) fn vectors(&self, doc: u32) -> Option<(Vec<f32>, Option<Vec<f32>>)> {
        let own = self.own.flat().vector(doc)?;
        let added = self.added.as_ref().filter(|added| !added.without.contains(doc));
        Some((own, added.and_then(|added| added.index.flat().vector(doc))))
    }
}
