//! Writes, reads and removes points by id.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::{Map, Value, json};

use super::super::client::{Call, Request};
use super::super::failure::RemoteError;
use super::collection::LONGEST_WAIT;
use super::wire::{
    self, Collection, Count, GENERATION, NamedVector, NewPoint, Points, REMOVING, REPOSITORY, Record, Update,
    VectorPoint, Vectors,
};
use super::{
    BASE_RESPONSE_BYTES, MAX_ANSWER_BYTES, MAX_QUERY_TIME, PointId, Qdrant, bytes_of, from_hex, patient, pause, to_hex,
};
use crate::embed::{EmbedError, Embedding, SparseVector};
use crate::index::shared::{Put, RepositoryTag, SharedBatching, SharedError, SharedVectors, Standing};
use crate::index::{Row, RowKind};
use crate::model::{ChunkKey, random_bytes};

/// Maximum number of keys in a request. 1,000 keys take about 40 kB.
const MAX_KEYS: usize = 1000;
/// Approximate size of a request or response with vectors. Servers accept 32 MB.
const MAX_VECTOR_BYTES: usize = 3 << 20;
/// Time for which other clones consider a removal in progress after its last announcement.
const LEASE: Duration = Duration::from_secs(300);
/// Time limit of one step of a removal. The remaining time of [`LEASE`] allows for clock differences.
const STEP: Duration = Duration::from_secs(120);
/// Maximum distance of a time in the future. Later times come from a wrong clock and are ignored.
const MAX_AHEAD: Duration = Duration::from_secs(3600);
/// Length of a vector component as text, including its comma.
const NUMBER_BYTES: usize = 13;
/// Length of a token index as text, including its comma.
const TOKEN_BYTES: usize = 8;

impl SharedVectors for Qdrant {
    fn name(&self) -> String {
        self.place()
    }

    fn repository(&self) -> RepositoryTag {
        self.repository
    }

    fn batching(&self, dim: usize) -> SharedBatching {
        let row_bytes = match self.kind {
            RowKind::Dense => NUMBER_BYTES * dim.max(1),
            RowKind::Sparse => (NUMBER_BYTES + TOKEN_BYTES) * SparseVector::MAX_TERMS,
        };
        SharedBatching {
            max_keys: MAX_KEYS,
            max_rows: (MAX_VECTOR_BYTES / row_bytes).clamp(1, MAX_KEYS),
            in_flight: self.options.in_flight,
        }
    }

    fn standing(&self, interrupt: &AtomicBool) -> Result<Option<Standing>, SharedError> {
        let collection = self.collection(None, interrupt).map_err(|error| self.failed(error))?;
        collection.map_or(Ok(None), |collection| self.standing_in(&collection, None, interrupt))
    }

    fn prepare(&self, dim: usize, interrupt: &AtomicBool) -> Result<Standing, SharedError> {
        if let Some(standing) = self.standing(interrupt)? {
            return Ok(standing);
        }
        let failed = |error| self.failed(error);
        if self.collection(None, interrupt).map_err(failed)?.is_none() {
            self.create_first_collection(dim, interrupt).map_err(failed)?;
        }
        // If two clones do this at once, one of them gets a generation that is already replaced, and reads again.
        self.put_payload(&json!({ GENERATION: to_hex(&random()) }), interrupt)?;
        self.standing(interrupt)?
            .ok_or_else(|| self.unusable("no collection although one was just created"))
    }

    fn contains(&self, keys: &[ChunkKey], interrupt: &AtomicBool) -> Result<Vec<bool>, SharedError> {
        let found = self.records(keys, false, &patient(None, interrupt))?;
        Ok(keys.iter().map(|key| found.contains_key(key)).collect())
    }

    fn fetch(&self, keys: &[ChunkKey], interrupt: &AtomicBool) -> Result<Vec<Option<Row>>, SharedError> {
        self.fetch_by(keys, &patient(None, interrupt))
    }

    fn put(&self, rows: &[(ChunkKey, Row)], interrupt: &AtomicBool) -> Result<Put, SharedError> {
        let tag = self.tag();
        let points = rows.iter().map(|(key, row)| VectorPoint {
            id: self.point_of(*key).to_string(),
            vector: NamedVector::of(row),
            payload: BTreeMap::from([(REPOSITORY, tag.as_str())]),
        });
        self.put_points(points.collect(), interrupt)
    }

    fn probe(&self, interrupt: &AtomicBool) -> Result<Option<Row>, SharedError> {
        let request = Request::post(
            &self.reading("/points"),
            &wire::by_ids(&[PROBE], Some(self.kind), false),
        );
        let found: Vec<Record> = self.send(&request, interrupt).map_err(|error| self.failed(error))?;
        let vectors = found.into_iter().next().and_then(|record| record.vector);
        vectors.map_or(Ok(None), |vectors| self.checked(vectors, &mut None))
    }

    fn put_probe(&self, row: &Row, interrupt: &AtomicBool) -> Result<(), SharedError> {
        let point = VectorPoint {
            id: PROBE.to_string(),
            vector: NamedVector::of(row),
            payload: BTreeMap::new(),
        };
        self.put_points(vec![point], interrupt).map(drop)
    }

    fn remove(&self, keys: &[ChunkKey], interrupt: &AtomicBool) -> Result<(), SharedError> {
        // Each removal has its own field, because several can run at the same time.
        let field = format!("{REMOVING}{}", to_hex(&random()[..8]));
        let given_up = |error| self.give_up(&field, error);
        let mut lease = self.announce(&field, interrupt).map_err(given_up)?;
        for keys in keys.chunks(MAX_KEYS) {
            lease = if lease.is_held() {
                self.tell(&field, interrupt)
            } else {
                // The machine was suspended, and other clones may have considered the removal finished. The new
                // generation makes them check again.
                self.announce(&field, interrupt)
            }
            .map_err(given_up)?;
            // A deletion may still be executed after its request has failed.
            self.delete_points(keys, lease.deadline(), interrupt)?;
        }
        self.end_removal(&field, None, interrupt)
    }
}

/// The point with the vector of the probe text, which identifies the model. It belongs to no repository.
const PROBE: PointId = PointId(*b"codescout probe.");

impl Qdrant {
    /// Returns the repository's tag in hexadecimal, as points store it.
    pub(super) fn tag(&self) -> String {
        to_hex(&self.repository.0)
    }

    /// Returns the id of the repository's own point, which stores its generation.
    pub(super) fn own_id(&self) -> PointId {
        self.point_of(ChunkKey(*b"repository point"))
    }

    fn own_point(
        &self,
        deadline: Option<Instant>,
        interrupt: &AtomicBool,
    ) -> Result<Option<Map<String, Value>>, SharedError> {
        let request = Request::post(&self.reading("/points"), &wire::by_ids(&[self.own_id()], None, true))
            .with_max_response_bytes(BASE_RESPONSE_BYTES);
        let found: Vec<Record> = self
            .send_until(deadline, &request, interrupt)
            .map_err(|error| self.failed(error))?;
        Ok(found.into_iter().next().and_then(|record| record.payload))
    }

    /// Returns the state of the repository's vectors in the collection.
    pub(super) fn standing_in(
        &self,
        collection: &Collection,
        deadline: Option<Instant>,
        interrupt: &AtomicBool,
    ) -> Result<Option<Standing>, SharedError> {
        let dim = self.dim_of(collection)?;
        let Some(own) = self.own_point(deadline, interrupt)? else {
            return Ok(None);
        };
        let (generation, is_removing) = generation_of(&own).ok_or_else(|| self.unusable("no generation"))?;
        let n_vectors = self
            .count_by(
                &patient(deadline, interrupt),
                &self.alias(),
                &wire::filter(&self.tag(), None),
            )
            .map_err(|error| self.failed(error))?;
        Ok(Some(Standing {
            generation,
            is_removing,
            dim,
            n_vectors,
        }))
    }

    /// Writes the repository's own point.
    fn put_payload(&self, payload: &Value, interrupt: &AtomicBool) -> Result<(), SharedError> {
        let text = payload[GENERATION].as_str().unwrap_or_default();
        let point = NewPoint {
            id: self.own_id().to_string(),
            vector: Map::new(),
            payload: BTreeMap::from([(GENERATION, text)]),
        };
        self.put_points(vec![point], interrupt).map(drop)
    }

    /// Announces a removal of vectors, and waits until queries that began before the announcement have ended.
    fn announce(&self, field: &str, interrupt: &AtomicBool) -> Result<Lease, SharedError> {
        let lease = self.tell(field, interrupt)?;
        pause(MAX_QUERY_TIME, interrupt)?;
        Ok(lease)
    }

    /// Announces a removal or extends its announcement. Sets a new generation each time, because the collection may
    /// have been replaced by one whose generation some clone has already seen.
    fn tell(&self, field: &str, interrupt: &AtomicBool) -> Result<Lease, SharedError> {
        let lease = Lease::begin();
        let payload = json!({ (GENERATION): to_hex(&random()), (field): seconds_now() });
        self.change_payload(&payload, Some(lease.deadline()), interrupt)?;
        Ok(lease)
    }

    /// Announces the end of this removal and of removals by killed processes.
    fn end_removal(&self, field: &str, deadline: Option<Instant>, interrupt: &AtomicBool) -> Result<(), SharedError> {
        self.change_payload(&json!({ (GENERATION): to_hex(&random()) }), deadline, interrupt)?;
        let fields = self.own_point(deadline, interrupt)?.unwrap_or_default();
        let is_over = |(name, since): &(&String, &Value)| {
            name.starts_with(REMOVING) && (**name == *field || !is_announced(since, seconds_now()))
        };
        let ended: Vec<String> = fields.iter().filter(is_over).map(|(name, _)| name.clone()).collect();
        self.drop_fields(&ended, deadline, interrupt)
    }

    /// Announces the end of a removal that has no step in progress, so that other clones need not wait for it. Returns
    /// `cause`.
    fn give_up(&self, field: &str, cause: SharedError) -> SharedError {
        let until = Some(Instant::now() + LONGEST_WAIT);
        if let Err(left) = self.end_removal(field, until, &AtomicBool::new(false)) {
            tracing::warn!("cannot end the announcement of a removal; it expires in five minutes: {left}");
        }
        cause
    }

    /// Sets fields of the repository's own point without changing its other fields.
    fn change_payload(
        &self,
        payload: &Value,
        deadline: Option<Instant>,
        interrupt: &AtomicBool,
    ) -> Result<(), SharedError> {
        let body = json!({ "payload": payload, "points": [self.own_id().to_string()] });
        self.change("/points/payload?wait=true", &body, deadline, interrupt)
    }

    fn drop_fields(
        &self,
        fields: &[String],
        deadline: Option<Instant>,
        interrupt: &AtomicBool,
    ) -> Result<(), SharedError> {
        let body = json!({ "keys": fields, "points": [self.own_id().to_string()] });
        self.change("/points/payload/delete?wait=true", &body, deadline, interrupt)
    }

    /// Sends a change and fails unless the server reports it as completed.
    pub(super) fn change(
        &self,
        rest: &str,
        body: &Value,
        deadline: Option<Instant>,
        interrupt: &AtomicBool,
    ) -> Result<(), SharedError> {
        let request = Request::post(&self.path(rest), body);
        match self
            .send_until::<Update>(deadline, &request, interrupt)
            .map_err(|error| self.failed(error))?
        {
            update if update.status == "completed" => Ok(()),
            update => Err(self.unusable(format!(
                "the status {:?} instead of completed",
                self.excerpt(&update.status)
            ))),
        }
    }

    /// Deletes the points of `keys`. The deletion is complete when this returns.
    fn delete_points(&self, keys: &[ChunkKey], deadline: Instant, interrupt: &AtomicBool) -> Result<(), SharedError> {
        let points: Vec<String> = keys.iter().map(|key| self.point_of(*key).to_string()).collect();
        let request = Request::post(&self.path("/points/delete?wait=true"), &json!({ "points": points }));
        let update: Update = self
            .send_until(Some(deadline), &request, interrupt)
            .map_err(|error| self.failed(error))?;
        let deadline = Some(deadline);
        let are_gone = || Ok(self.records(keys, false, &patient(deadline, interrupt))?.is_empty());
        if update.status == "completed" || self.poll_until(deadline, interrupt, are_gone)? {
            return Ok(());
        }
        Err(self.unusable("an acknowledgement for deleted vectors that still exist"))
    }

    /// Counts the points of a collection that match a filter.
    pub(super) fn count(&self, name: &str, filter: &Value, interrupt: &AtomicBool) -> Result<u64, SharedError> {
        self.count_by(&patient(None, interrupt), name, filter)
            .map_err(|error| self.failed(error))
    }

    pub(super) fn count_by(&self, call: &Call<'_>, name: &str, filter: &Value) -> Result<u64, RemoteError> {
        let path = self.consistent(format!("/collections/{name}/points/count"));
        let request = Request::post(&path, &json!({ "filter": filter, "exact": true }));
        let count: Count = self.send_by(call, &request)?;
        Ok(count.count)
    }

    fn put_points<T: serde::Serialize>(&self, points: Vec<T>, interrupt: &AtomicBool) -> Result<Put, SharedError> {
        let request = Request::put(&self.path("/points?wait=true"), &Points { points });
        let update: Update = self.send(&request, interrupt).map_err(|error| self.failed(error))?;
        match update.status.as_str() {
            "completed" => Ok(Put::Done),
            "acknowledged" => Ok(Put::Promised),
            other => Err(self.unusable(format!("the status {:?} for a write of points", self.excerpt(other)))),
        }
    }

    /// Returns the vector of each of `keys`, or `None` where there is no vector.
    pub(super) fn fetch_by(&self, keys: &[ChunkKey], call: &Call<'_>) -> Result<Vec<Option<Row>>, SharedError> {
        let mut found = self.records(keys, true, call)?;
        let mut dim = None;
        keys.iter()
            .map(|key| {
                let vectors = found.remove(key).and_then(|record| record.vector);
                vectors.map_or(Ok(None), |vectors| self.checked(vectors, &mut dim))
            })
            .collect()
    }

    /// Returns those points of `keys` that exist.
    fn records(
        &self,
        keys: &[ChunkKey],
        wants_vectors: bool,
        call: &Call<'_>,
    ) -> Result<HashMap<ChunkKey, Record>, SharedError> {
        let ids: Vec<PointId> = keys.iter().map(|key| self.point_of(*key)).collect();
        let wanted = wants_vectors.then_some(self.kind);
        let max_bytes = if wants_vectors {
            MAX_ANSWER_BYTES
        } else {
            bytes_of(ids.len())
        };
        let request = Request::post(&self.reading("/points"), &wire::by_ids(&ids, wanted, false));
        let found: Vec<Record> = self
            .send_by(call, &request.with_max_response_bytes(max_bytes))
            .map_err(|error| self.failed(error))?;
        let mut records = HashMap::with_capacity(found.len());
        for record in found {
            records.insert(self.key_of(self.point_id(&record.id)?), record);
        }
        Ok(records)
    }

    /// Parses the id of a point from a response.
    pub(super) fn point_id(&self, id: &Value) -> Result<PointId, SharedError> {
        let point = id.as_str().and_then(PointId::parse);
        point.ok_or_else(|| self.unusable(format!("the id {}", self.excerpt(&id.to_string()))))
    }

    /// Returns the vector of the client's kind, if the point has one. Checks that its numbers are finite and that a
    /// dense vector has the same dimension as the previous ones. Scales a dense vector to unit length.
    fn checked(&self, vectors: Vectors, dim: &mut Option<usize>) -> Result<Option<Row>, SharedError> {
        let row = match self.kind {
            RowKind::Dense => vectors.dense.map(|vector| {
                let expected = *dim.get_or_insert(vector.len());
                let Embedding { vector, weight } = Embedding::from_foreign(vector, expected, &self.place())?;
                Ok((weight > 0.0).then_some(Row::Dense(Embedding { vector, weight: 1.0 })))
            }),
            RowKind::Sparse => vectors.sparse.map(|terms| {
                let terms = terms.pairs().unwrap_or_default();
                let vector = SparseVector::from_foreign(terms, &self.place())?;
                Ok((!vector.is_empty()).then_some(Row::Sparse(vector)))
            }),
        };
        match row.transpose() {
            Ok(Some(None)) => Err(self.unusable("a vector of zeros")),
            Ok(row) => Ok(row.flatten()),
            Err::<_, EmbedError>(error) => Err(self.unusable(error.to_string())),
        }
    }
}

/// Reads a repository's generation from the payload of its own point. The flag is true if vectors are being removed.
pub(super) fn generation_of(payload: &Map<String, Value>) -> Option<([u8; 16], bool)> {
    let generation = from_hex(payload.get(GENERATION)?.as_str()?)?;
    let now = seconds_now();
    let mut fields = payload.iter();
    let is_removing = fields.any(|(name, since)| name.starts_with(REMOVING) && is_announced(since, now));
    Some((generation, is_removing))
}

/// Returns true if a removal last announced at `since` may still be in progress. A removal is announced again before
/// every step. If the last announcement is older than the longest step, its process was killed.
fn is_announced(since: &Value, now: u64) -> bool {
    since
        .as_u64()
        .is_some_and(|since| since <= now + MAX_AHEAD.as_secs() && now <= since + LEASE.as_secs())
}

/// The time limit of a step of a removal, counted from just before its announcement.
#[derive(Clone, Copy)]
struct Lease {
    begun: Instant,
    /// In contrast to `begun`, this clock also runs while the machine is suspended.
    begun_at: SystemTime,
}

impl Lease {
    fn begin() -> Self {
        Self {
            begun: Instant::now(),
            begun_at: SystemTime::now(),
        }
    }

    fn deadline(self) -> Instant {
        self.begun + STEP
    }

    fn is_held(self) -> bool {
        let elapsed = self.begun_at.elapsed().unwrap_or_default();
        elapsed.max(self.begun.elapsed()) < STEP
    }
}

pub(super) fn seconds_now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |since| since.as_secs())
}

/// Returns 16 random bytes.
pub(super) fn random() -> [u8; 16] {
    random_bytes().unwrap_or_else(|_| {
        // Differs at least between processes and over time.
        let text = format!("{:?} {}", SystemTime::now(), std::process::id());
        let hash = blake3::hash(text.as_bytes());
        *hash.as_bytes().first_chunk().expect("a hash has 32 bytes")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_removal_that_is_not_told_of_any_more_is_over() {
        let now = 10_000;
        for (since, expected) in [
            (json!(now), true),
            (json!(now - 299), true),
            (json!(now - 301), false),
            // An announcement from a clone whose clock is ahead.
            (json!(now + 200), true),
            (json!(now + 3601), false),
            (json!(u64::MAX), false),
            (json!(1), false),
            (json!("x"), false),
            (Value::Null, false),
        ] {
            assert_eq!(is_announced(&since, now), expected, "{since}");
        }
        let held = Lease::begin();
        let slept = Lease {
            begun_at: SystemTime::now() - STEP,
            ..held
        };
        assert_eq!((held.is_held(), slept.is_held()), (true, false));
    }
}
