//! The nearest documents of a view, by a collection that holds those of many.

use std::collections::HashMap;
use std::sync::PoisonError;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use roaring::RoaringBitmap;
use serde_json::json;

use super::super::client::{Call, Request};
use super::super::failure::RemoteError;
use super::points::generation_of;
use super::wire::{self, Envelope, Found, Query, Search, Searches, Terms};
use super::{Counted, LONGEST_QUESTION, PointId, Qdrant, bytes_of, hinted};
use crate::embed::SparseVector;
use crate::index::dense::{Cosine, DenseError, DenseIndex, DenseStore};
use crate::index::shared::There;
use crate::index::sparse::{Impact, ImpactIndex};
use crate::index::{Row, RowKind, Segments};

/// So few documents are asked for by name.
const MAX_IDS: u64 = 256;
/// No request asks for more results: 75 bytes each.
const MAX_RESULTS: usize = 16_384;
/// Where more would have to be asked for at first, whoever has the vectors compares them sooner (docs/evaluation.md).
const MAX_FIRST: f64 = 2048.0;
/// What is asked for beyond the share of documents that are live, so that one request is mostly enough.
const SPARE: f64 = 1.3;
/// How many vectors there are is asked for again after this.
const COUNT_LASTS: Duration = Duration::from_secs(300);
/// So many times more are asked for if it was not.
const GROWTH: usize = 4;

/// The documents of some segments, found in a Qdrant.
///
/// The server is asked for the best of the repository; which of them are live is decided here. Where few are, more are asked for, in
/// proportion to what is known to be there, until `k` live ones are found and no other can be among them. A handful is asked for by
/// name. Every answer comes with the repository's generation: if it is another than when the documents were last looked at, there is
/// no answer, and so there is none that lacks what somebody has removed. What was lost is noticed as there are fewer than there were.
pub struct QdrantIndex<'a> {
    qdrant: &'a Qdrant,
    segments: &'a Segments,
    there: There,
    interrupt: &'a AtomicBool,
}

/// Why an answer is none.
#[derive(Debug, thiserror::Error)]
enum Unfit {
    #[error(transparent)]
    Remote(Box<dyn std::error::Error + Send + Sync>),
    #[error("vectors were removed or moved there since they were looked at: codescout index looks again")]
    OtherGeneration,
    #[error("vectors are being removed there")]
    Removing,
    #[error("{n_missing} vectors are not there that were: codescout index puts them back")]
    Missing { n_missing: u64 },
    #[error("there are {n_found} vectors where there were {n_known}: codescout index looks again")]
    Fewer { n_found: u64, n_known: u64 },
    #[error("{n_live} documents are too few among {n_vectors} to be found by asking for the best")]
    TooFew { n_live: u64, n_vectors: u64 },
    #[error("an answer with {what}")]
    Odd { what: String },
}

impl Qdrant {
    /// The index over the documents of `segments` that `there`, of the same epoch, says are with the server. Gives no answer
    /// any more once `interrupt` is set.
    pub fn index<'a>(&'a self, segments: &'a Segments, there: There, interrupt: &'a AtomicBool) -> QdrantIndex<'a> {
        QdrantIndex {
            qdrant: self,
            segments,
            there,
            interrupt,
        }
    }
}

impl QdrantIndex<'_> {
    /// Documents of which the model makes nothing.
    pub fn empty(&self) -> &RoaringBitmap {
        &self.there.empty
    }

    /// A call of a question, which has an answer without the server.
    fn question(&self, until: Instant) -> Call<'_> {
        Call {
            deadline: Some(until),
            interrupt: self.interrupt,
            retries: false,
        }
    }

    /// From how many live documents on it is worth asking for the best `k` of the repository.
    pub fn min_live(&self, k: usize) -> u64 {
        (self.there.n_vectors as f64 * k as f64 * SPARE / MAX_FIRST) as u64
    }

    fn found(
        &self,
        query: Query<'_>,
        is_like_none: bool,
        live: &RoaringBitmap,
        k: usize,
        is_part_welcome: bool,
    ) -> Result<Vec<(u32, f32)>, DenseError> {
        let live = live & &self.there.docs;
        if live.is_empty() || k == 0 || is_like_none {
            return Ok(Vec::new());
        }
        let found = self.nearest(query, &live, k, is_part_welcome);
        found.map_err(|unfit| self.unavailable(unfit))
    }

    fn unavailable(&self, unfit: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> DenseError {
        DenseError::Unavailable {
            backend: self.qdrant.told(),
            source: unfit.into(),
        }
    }

    /// Whether a query is of zeros, if it can be one.
    fn check(&self, query: &[f32]) -> Result<bool, DenseError> {
        if query.iter().any(|x| !x.is_finite()) {
            return Err(DenseError::NotFinite);
        }
        let expected = self.there.dim as usize;
        if query.len() == expected {
            Ok(query.iter().all(|&x| x == 0.0))
        } else {
            Err(DenseError::Dimension {
                found: query.len(),
                expected,
            })
        }
    }

    /// How many results to ask for first.
    fn first_limit(&self, n_live: u64, k: usize) -> usize {
        let share = n_live as f64 / self.there.n_vectors.max(n_live) as f64;
        (k as f64 / share * SPARE) as usize + 16
    }

    /// The best with their scores: of vectors all that are live until there are `k`, of sparse ones those that have anything in common
    /// with the query. Where too many would have to be asked for, those that are sure, if `is_part_welcome`.
    fn nearest(
        &self,
        query: Query<'_>,
        live: &RoaringBitmap,
        k: usize,
        is_part_welcome: bool,
    ) -> Result<Vec<(u32, f32)>, Unfit> {
        let n_live = live.len();
        let n_wanted = usize::try_from(n_live).unwrap_or(usize::MAX).min(k);
        // Of sparse vectors none need be found, so none is missed either; that some are lost is seen by their number alone.
        let has_all = query.kind() == RowKind::Dense;
        let until = Instant::now() + self.qdrant.options.query_timeout.min(LONGEST_QUESTION);
        if n_live <= MAX_IDS {
            let ids: Vec<PointId> = live.iter().filter_map(|doc| self.point_of(doc)).collect();
            let found = self.ask(query, Some(&ids), ids.len(), until)?;
            let docs = self.live_of(&found, live, n_wanted, has_all && ids.len() > found.len())?;
            return if has_all {
                Ok(docs)
            } else {
                self.check_count(until).map(|()| docs)
            };
        }
        let mut limit = self.first_limit(n_live, k);
        loop {
            let found = self.ask(query, None, limit.min(MAX_RESULTS), until)?;
            let is_all = found.len() < limit.min(MAX_RESULTS);
            let docs = self.live_of(&found, live, n_wanted, has_all && is_all)?;
            // Of documents that are equally near some may not have been told.
            let last = found.last().map_or(f32::NEG_INFINITY, |(_, score)| *score);
            let is_enough =
                |docs: &[(u32, f32)]| docs.len() >= n_wanted && docs.last().is_none_or(|(_, worst)| *worst > last);
            if is_all || is_enough(&docs) {
                return self.check_count(until).map(|()| docs);
            }
            if limit >= MAX_RESULTS && is_part_welcome {
                let sure = docs.into_iter().filter(|(_, score)| *score > last).collect();
                return self.check_count(until).map(|()| sure);
            }
            if limit >= MAX_RESULTS {
                return Err(Unfit::TooFew {
                    n_live,
                    n_vectors: self.there.n_vectors,
                });
            }
            limit = limit.saturating_mul(GROWTH);
        }
    }

    /// The best live ones of what was found, in our order; an error if that was all there is and some have to be there that are not.
    fn live_of(
        &self,
        found: &[(PointId, f32)],
        live: &RoaringBitmap,
        n_wanted: usize,
        is_all: bool,
    ) -> Result<Vec<(u32, f32)>, Unfit> {
        let mut best: HashMap<u32, f32> = HashMap::with_capacity(n_wanted);
        for (point, score) in found {
            if let Some(doc) = self.segments.find_doc(self.qdrant.key_of(*point))
                && live.contains(doc)
            {
                best.insert(doc, *score);
            }
        }
        if is_all && best.len() < n_wanted {
            let n_missing = (n_wanted - best.len()) as u64;
            return Err(Unfit::Missing { n_missing });
        }
        let mut docs: Vec<(u32, f32)> = best.into_iter().collect();
        docs.sort_by(|(a, x), (b, y)| y.total_cmp(x).then(a.cmp(b)));
        docs.truncate(n_wanted);
        Ok(docs)
    }

    /// The best points of the repository, or of those named, best first; no more than `limit`.
    fn ask(
        &self,
        query: Query<'_>,
        only: Option<&[PointId]>,
        limit: usize,
        until: Instant,
    ) -> Result<Vec<(PointId, f32)>, Unfit> {
        let qdrant = self.qdrant;
        let best = Search {
            query: Some(query),
            using: Some(wire::name_of(query.kind())),
            filter: wire::filter(&qdrant.tag(), only),
            limit,
            // Sparse vectors are always all compared.
            params: Some(wire::search_params(
                only.is_some() || qdrant.options.exact,
                &qdrant.options,
            )),
            with_payload: false,
            with_vector: false,
        };
        let own = Search {
            query: None,
            using: None,
            filter: json!({ "must": [{ "has_id": [qdrant.own_id().to_string()] }] }),
            limit: 1,
            params: None,
            with_payload: true,
            with_vector: false,
        };
        let call = self.question(until);
        let request = Request::post(
            &qdrant.reading("/points/query/batch"),
            &Searches { searches: [best, own] },
        )
        .answered_within(bytes_of(limit));
        let answer: Envelope<Vec<Found>> = qdrant.client.send(&request, &call)?;
        let Ok([best, own]) = <[Found; 2]>::try_from(answer.result) else {
            return Err(odd("another number of results than was asked for"));
        };
        let own = own.points.into_iter().next().and_then(|point| point.payload);
        match own.as_ref().and_then(generation_of) {
            Some((_, true)) => return Err(Unfit::Removing),
            Some((generation, _)) if generation == self.there.generation => {}
            _ => return Err(Unfit::OtherGeneration),
        }
        if best.points.len() > limit {
            return Err(odd("more results than were asked for"));
        }
        let mut found = Vec::with_capacity(best.points.len());
        for scored in best.points {
            let point = scored.id.as_str().and_then(PointId::parse);
            let point = point.ok_or_else(|| odd(&format!("the id {}", qdrant.excerpt(&scored.id.to_string()))))?;
            if !scored.score.is_finite() {
                return Err(odd("a score that is not a number"));
            }
            found.push((point, scored.score));
        }
        found.sort_by(|(_, x), (_, y)| y.total_cmp(x));
        Ok(found)
    }

    /// An error if fewer vectors are there than were. While the generation is the same they only become more, so some are lost, and
    /// the best of the others do not show it.
    fn check_count(&self, until: Instant) -> Result<(), Unfit> {
        let qdrant = self.qdrant;
        let there = &self.there;
        let is_enough = |counted: &Counted| {
            counted.generation == there.generation
                && counted.n_vectors >= there.n_vectors
                && counted.at.elapsed() < COUNT_LASTS
        };
        let counted = || qdrant.counted.lock().unwrap_or_else(PoisonError::into_inner);
        if counted().as_ref().is_some_and(is_enough) {
            return Ok(());
        }
        let all = wire::filter(&qdrant.tag(), None);
        let n_found = qdrant.count_by(&self.question(until), &qdrant.alias(), &all)?;
        if n_found < there.n_vectors {
            let n_known = there.n_vectors;
            return Err(Unfit::Fewer { n_found, n_known });
        }
        *counted() = Some(Counted {
            generation: there.generation,
            n_vectors: n_found,
            at: Instant::now(),
        });
        Ok(())
    }

    fn point_of(&self, doc: u32) -> Option<PointId> {
        let (segment, local) = self.segments.of_doc(doc)?;
        Some(self.qdrant.point_of(segment.lexical.key(local)))
    }
}

impl From<RemoteError> for Unfit {
    fn from(error: RemoteError) -> Self {
        Self::Remote(hinted(error))
    }
}

fn odd(what: &str) -> Unfit {
    let what = what.to_owned();
    Unfit::Odd { what }
}

fn cosines(found: Vec<(u32, f32)>) -> Vec<(u32, Cosine)> {
    found.into_iter().map(|(doc, score)| (doc, Cosine(score))).collect()
}

impl DenseIndex for QdrantIndex<'_> {
    fn search(&self, query: &[f32], live: &RoaringBitmap, k: usize) -> Result<Vec<(u32, Cosine)>, DenseError> {
        let is_like_none = self.check(query)?;
        let found = self.found(Query::Dense(query), is_like_none, live, k, false)?;
        Ok(cosines(found))
    }
}

impl DenseStore for QdrantIndex<'_> {
    fn nearest(&self, query: &[f32], live: &RoaringBitmap, k: usize) -> Result<Vec<(u32, Cosine)>, DenseError> {
        let is_like_none = self.check(query)?;
        let found = self.found(Query::Dense(query), is_like_none, live, k, true)?;
        Ok(cosines(found))
    }

    fn score(&self, query: &[f32], docs: &[u32]) -> Result<Vec<(u32, Cosine)>, DenseError> {
        let is_like_none = self.check(query)?;
        let docs: RoaringBitmap = docs.iter().copied().collect::<RoaringBitmap>() & &self.there.docs;
        let docs: Vec<u32> = docs.into_iter().collect();
        let mut scored = Vec::with_capacity(docs.len());
        for part in docs.chunks(MAX_IDS as usize) {
            let part: RoaringBitmap = part.iter().copied().collect();
            let found = self.found(Query::Dense(query), is_like_none, &part, part.len() as usize, false)?;
            scored.extend(cosines(found));
        }
        Ok(scored)
    }

    fn vector(&self, doc: u32) -> Result<Option<Vec<f32>>, DenseError> {
        let Some((segment, local)) = self.segments.of_doc(doc) else {
            return Ok(None);
        };
        let until = Instant::now() + self.qdrant.options.query_timeout.min(LONGEST_QUESTION);
        let found = self
            .qdrant
            .fetch_by(&[segment.lexical.key(local)], &self.question(until));
        let found = found.map_err(|error| self.unavailable(error))?;
        Ok(found.into_iter().next().flatten().and_then(|row| match row {
            Row::Dense(embedding) => Some(embedding.vector),
            Row::Sparse(_) => None,
        }))
    }
}

impl ImpactIndex for QdrantIndex<'_> {
    fn search(&self, query: &SparseVector, live: &RoaringBitmap, k: usize) -> Result<Vec<(u32, Impact)>, DenseError> {
        let terms = Terms::of(query);
        let found = self
            .found(Query::Sparse(&terms), query.is_empty(), live, k, false)?
            .into_iter();
        Ok(found.map(|(doc, score)| (doc, Impact(score))).collect())
    }
}
