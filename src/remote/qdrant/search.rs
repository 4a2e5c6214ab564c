//! Finds the nearest documents of a view in a collection that contains many repositories.

use std::collections::HashMap;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use roaring::RoaringBitmap;
use serde_json::json;

use super::super::client::{Call, Request};
use super::super::failure::RemoteError;
use super::points::generation_of;
use super::wire::{self, Envelope, Found, Query, Search, Searches, Terms};
use super::{Counted, MAX_QUERY_TIME, PointId, Qdrant, bytes_of, hinted};
use crate::embed::SparseVector;
use crate::index::dense::{Cosine, DenseError, DenseIndex, DenseStore};
use crate::index::shared::There;
use crate::index::sparse::{Impact, ImpactIndex};
use crate::index::{Row, RowKind, Segments};

/// Maximum number of documents to request by id.
const MAX_IDS: u64 = 256;
/// Maximum number of results per request. A result has about 75 bytes.
const MAX_RESULTS: usize = 16_384;
/// Maximum number of results in the first request. If more would be needed, comparing local vectors is faster
/// (docs/evaluation.md).
const MAX_FIRST_LIMIT: f64 = 2048.0;
/// Factor applied to the estimated number of results to request, so that one request is usually enough.
const OVERFETCH: f64 = 1.3;
/// Lifetime of a cached count of vectors.
const COUNT_TTL: Duration = Duration::from_secs(300);
/// Factor by which the number of requested results grows if a request did not find enough.
const GROWTH: usize = 4;

/// Searches the documents of some segments on a Qdrant server.
///
/// The server returns the best points of the repository, and this index discards those that are not live. If few
/// documents are live, it requests proportionally more, until it has `k` live ones and no other document can be among
/// the best `k`. Up to `MAX_IDS` documents are requested by id. Every response contains the repository's generation. If
/// it differs from the known one, the search fails, so no result silently lacks vectors that another clone has removed.
/// Lost vectors are detected by a count.
pub struct QdrantIndex<'a> {
    qdrant: &'a Qdrant,
    segments: &'a Segments,
    there: There,
    interrupt: &'a AtomicBool,
}

/// The reason why a response is unusable.
#[derive(Debug, thiserror::Error)]
enum UnusableResponse {
    #[error(transparent)]
    Remote(Box<dyn std::error::Error + Send + Sync>),
    #[error("vectors were removed or moved since the last check: run codescout index")]
    GenerationChanged,
    #[error("vectors are being removed")]
    Removing,
    #[error("{n_missing} vectors are missing: run codescout index to restore them")]
    Missing { n_missing: u64 },
    #[error("{n_found} vectors instead of the recorded {n_known}: run codescout index")]
    Fewer { n_found: u64, n_known: u64 },
    #[error("only {n_live} of {n_vectors} vectors belong to the revision: too few for a filtered search")]
    TooFew { n_live: u64, n_vectors: u64 },
    #[error("a response with {what}")]
    Odd { what: String },
}

impl Qdrant {
    /// Creates an index of those documents of `segments` whose vectors are on the server according to `there`, which
    /// must have the same epoch. Searches fail once `interrupt` is set.
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
    /// Returns the documents for which the model returns no vector.
    pub fn empty(&self) -> &RoaringBitmap {
        &self.there.empty
    }

    /// Creates a call without retries, because a query can be answered without the server.
    fn question(&self, until: Instant) -> Call<'_> {
        Call {
            deadline: Some(until),
            interrupt: self.interrupt,
            retries: false,
        }
    }

    /// Returns the minimum number of live documents for which requesting the best `k` of the repository is faster than
    /// comparing local vectors.
    pub fn min_live(&self, k: usize) -> u64 {
        (self.there.n_vectors as f64 * k as f64 * OVERFETCH / MAX_FIRST_LIMIT) as u64
    }

    fn found(
        &self,
        query: Query<'_>,
        is_zero_query: bool,
        live: &RoaringBitmap,
        k: usize,
        allows_partial: bool,
    ) -> Result<Vec<(u32, f32)>, DenseError> {
        let live = live & &self.there.docs;
        if live.is_empty() || k == 0 || is_zero_query {
            return Ok(Vec::new());
        }
        let found = self.nearest(query, &live, k, allows_partial);
        found.map_err(|unfit| self.unavailable(unfit))
    }

    fn unavailable(&self, unfit: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> DenseError {
        DenseError::Unavailable {
            backend: self.qdrant.place(),
            source: unfit.into(),
        }
    }

    /// Returns true if a query vector is all zeros. Fails if it has the wrong dimension or numbers that are not finite.
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

    /// Returns the number of results to request first.
    fn first_limit(&self, n_live: u64, k: usize) -> usize {
        let share = n_live as f64 / self.there.n_vectors.max(n_live) as f64;
        (k as f64 / share * OVERFETCH) as usize + 16
    }

    /// Returns the best `k` live documents with their scores. For sparse vectors, includes only documents that share a
    /// token with the query. If this needs too many results, returns the results that are certain if `allows_partial`
    /// is true, else an error.
    fn nearest(
        &self,
        query: Query<'_>,
        live: &RoaringBitmap,
        k: usize,
        allows_partial: bool,
    ) -> Result<Vec<(u32, f32)>, UnusableResponse> {
        let n_live = live.len();
        let n_wanted = usize::try_from(n_live).unwrap_or(usize::MAX).min(k);
        // A sparse search does not return every document, so lost vectors can be detected only by a count.
        let has_all = query.kind() == RowKind::Dense;
        let until = Instant::now() + self.qdrant.options.query_timeout.min(MAX_QUERY_TIME);
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
            // Documents with the same score as the last one may be missing from the response.
            let last = found.last().map_or(f32::NEG_INFINITY, |(_, score)| *score);
            let is_enough =
                |docs: &[(u32, f32)]| docs.len() >= n_wanted && docs.last().is_none_or(|(_, worst)| *worst > last);
            if is_all || is_enough(&docs) {
                return self.check_count(until).map(|()| docs);
            }
            if limit >= MAX_RESULTS && allows_partial {
                let sure = docs.into_iter().filter(|(_, score)| *score > last).collect();
                return self.check_count(until).map(|()| sure);
            }
            if limit >= MAX_RESULTS {
                return Err(UnusableResponse::TooFew {
                    n_live,
                    n_vectors: self.there.n_vectors,
                });
            }
            limit = limit.saturating_mul(GROWTH);
        }
    }

    /// Returns the live documents of `found`, ordered by score and then by document number. Fails if `found` is
    /// complete but lacks documents that should be on the server.
    fn live_of(
        &self,
        found: &[(PointId, f32)],
        live: &RoaringBitmap,
        n_wanted: usize,
        is_all: bool,
    ) -> Result<Vec<(u32, f32)>, UnusableResponse> {
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
            return Err(UnusableResponse::Missing { n_missing });
        }
        let mut docs: Vec<(u32, f32)> = best.into_iter().collect();
        docs.sort_by(|(a, x), (b, y)| y.total_cmp(x).then(a.cmp(b)));
        docs.truncate(n_wanted);
        Ok(docs)
    }

    /// Returns at most `limit` points of the repository, or of `only`, best first. Fails if the generation is not the
    /// recorded one.
    fn ask(
        &self,
        query: Query<'_>,
        only: Option<&[PointId]>,
        limit: usize,
        until: Instant,
    ) -> Result<Vec<(PointId, f32)>, UnusableResponse> {
        let qdrant = self.qdrant;
        let best = Search {
            query: Some(query),
            using: Some(wire::name_of(query.kind())),
            filter: wire::filter(&qdrant.tag(), only),
            limit,
            // Sparse vectors are always searched exactly.
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
        .with_max_response_bytes(bytes_of(limit));
        let answer: Envelope<Vec<Found>> = qdrant.client.send(&request, &call)?;
        let Ok([best, own]) = <[Found; 2]>::try_from(answer.result) else {
            return Err(odd("another number of results than requested"));
        };
        let own = own.points.into_iter().next().and_then(|point| point.payload);
        match own.as_ref().and_then(generation_of) {
            Some((_, true)) => return Err(UnusableResponse::Removing),
            Some((generation, _)) if generation == self.there.generation => {}
            _ => return Err(UnusableResponse::GenerationChanged),
        }
        if best.points.len() > limit {
            return Err(odd("more results than requested"));
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

    /// Fails if the server has fewer vectors than recorded. Within a generation vectors are only added, so a smaller
    /// number means that some are lost. The results of a search would not show that.
    fn check_count(&self, until: Instant) -> Result<(), UnusableResponse> {
        let qdrant = self.qdrant;
        let there = &self.there;
        let is_enough = |counted: &Counted| {
            counted.generation == there.generation
                && counted.n_vectors >= there.n_vectors
                && counted.at.elapsed() < COUNT_TTL
        };
        let counted = || qdrant.counted.lock();
        if counted().as_ref().is_some_and(is_enough) {
            return Ok(());
        }
        let all = wire::filter(&qdrant.tag(), None);
        let n_found = qdrant.count_by(&self.question(until), &qdrant.alias(), &all)?;
        if n_found < there.n_vectors {
            let n_known = there.n_vectors;
            return Err(UnusableResponse::Fewer { n_found, n_known });
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

impl From<RemoteError> for UnusableResponse {
    fn from(error: RemoteError) -> Self {
        Self::Remote(hinted(error))
    }
}

fn odd(what: &str) -> UnusableResponse {
    let what = what.to_owned();
    UnusableResponse::Odd { what }
}

fn cosines(found: Vec<(u32, f32)>) -> Vec<(u32, Cosine)> {
    found.into_iter().map(|(doc, score)| (doc, Cosine(score))).collect()
}

impl DenseIndex for QdrantIndex<'_> {
    fn search(&self, query: &[f32], live: &RoaringBitmap, k: usize) -> Result<Vec<(u32, Cosine)>, DenseError> {
        let is_zero_query = self.check(query)?;
        let found = self.found(Query::Dense(query), is_zero_query, live, k, false)?;
        Ok(cosines(found))
    }
}

impl DenseStore for QdrantIndex<'_> {
    fn nearest(&self, query: &[f32], live: &RoaringBitmap, k: usize) -> Result<Vec<(u32, Cosine)>, DenseError> {
        let is_zero_query = self.check(query)?;
        let found = self.found(Query::Dense(query), is_zero_query, live, k, true)?;
        Ok(cosines(found))
    }

    fn score(&self, query: &[f32], docs: &[u32]) -> Result<Vec<(u32, Cosine)>, DenseError> {
        let is_zero_query = self.check(query)?;
        let docs: RoaringBitmap = docs.iter().copied().collect::<RoaringBitmap>() & &self.there.docs;
        let docs: Vec<u32> = docs.into_iter().collect();
        let mut scored = Vec::with_capacity(docs.len());
        for part in docs.chunks(MAX_IDS as usize) {
            let part: RoaringBitmap = part.iter().copied().collect();
            let found = self.found(Query::Dense(query), is_zero_query, &part, part.len() as usize, false)?;
            scored.extend(cosines(found));
        }
        Ok(scored)
    }

    fn vector(&self, doc: u32) -> Result<Option<Vec<f32>>, DenseError> {
        let Some((segment, local)) = self.segments.of_doc(doc) else {
            return Ok(None);
        };
        let until = Instant::now() + self.qdrant.options.query_timeout.min(MAX_QUERY_TIME);
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
