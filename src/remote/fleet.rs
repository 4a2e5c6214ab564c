//! A Qdrant collection of the chunks and files of many repositories. Qdrant chooses the files that may answer a
//! question; codescout ranks them.
//!
//! A chunk has a dense vector of its meaning, a file a sparse vector of its words, and each repository has a point without a vector. No
//! text is stored. Every filtered field has an index, so the collection works in Qdrant's strict mode.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::client::{Call, Client, Limits, Request};
use super::endpoint::Endpoint;
use super::failure::RemoteError;

/// Fields of points that filters use.
const FILTERED: [&str; 4] = ["repository", "group", "lang", "names"];
/// Maximum size of a response.
const MAX_ANSWER_BYTES: u64 = 64 << 20;
/// Number of points in a page of [`FleetCollection::points_of`].
const PAGE: usize = 10_000;
/// Approximate size of a request with points. Servers accept 32 MB.
const MAX_REQUEST_BYTES: usize = 3 << 20;
/// Maximum number of points in a request.
const MAX_POINTS: usize = 1_000;
/// Number of edges of a vector in the graph.
const EDGES: u32 = 16;

/// Address of a Qdrant server, and how it is used.
#[derive(Clone, Debug)]
pub struct QdrantOptions {
    /// Address and key of the server.
    pub endpoint: Endpoint,
    /// Prefix of the names of collections.
    pub prefix: String,
    /// Time limit of a query.
    pub query_timeout: Duration,
    /// Time limit of any other request.
    pub timeout: Duration,
}

/// The id of a point.
pub type PointId = [u8; 16];

/// A sparse vector: numbers of terms with their weights.
pub type Words = Vec<(u32, f32)>;

/// The vector of a point.
#[derive(Clone, Debug, PartialEq)]
pub enum PointVector {
    /// The meaning of a chunk.
    Meaning(Vec<f32>),
    /// The words of a file.
    Words(Words),
    /// None, for a repository.
    None,
}

/// A point to store.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// Its id.
    pub id: PointId,
    /// Its vector.
    pub vector: PointVector,
    /// Its fields.
    pub payload: Value,
}

/// A search for the best points.
#[derive(Clone, Debug)]
pub struct PointQuery {
    /// The vector of the query.
    pub vector: PointVector,
    /// The values that fields must have: one of those listed for each field.
    pub filter: Vec<(&'static str, Vec<String>)>,
    /// Maximum number of points.
    pub limit: usize,
}

/// The fields of a point.
pub type Payload = Map<String, Value>;

/// The points of many repositories in one collection.
#[derive(Debug)]
pub struct FleetCollection {
    client: Client,
    name: String,
    timeout: Duration,
    query_timeout: Duration,
    /// True once this process has created the collection with its indexes, or has seen it.
    is_created: AtomicBool,
}

/// Wrapper of every response.
#[derive(Deserialize)]
struct Envelope<T> {
    result: T,
}

#[derive(Deserialize)]
struct Found {
    points: Vec<Scored>,
}

#[derive(Deserialize)]
struct Scored {
    #[serde(default)]
    payload: Option<Payload>,
}

#[derive(Deserialize)]
struct Page {
    points: Vec<Identified>,
    next_page_offset: Option<Value>,
}

#[derive(Deserialize)]
struct Identified {
    id: String,
}

impl FleetCollection {
    /// Creates a client of the collection `name` without sending a request.
    pub fn new(options: QdrantOptions, name: String) -> Self {
        let limits = Limits {
            request_timeout: options.timeout,
            max_answer_bytes: MAX_ANSWER_BYTES,
            patience: options.timeout,
            ..Limits::default()
        };
        Self {
            client: Client::new(options.endpoint, limits),
            name,
            timeout: options.timeout,
            query_timeout: options.query_timeout,
            is_created: AtomicBool::new(false),
        }
    }

    /// Returns the name of the collection.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Creates the collection with vectors of `dim` components if it does not exist.
    pub fn create(&self, dim: usize, interrupt: &AtomicBool) -> Result<(), RemoteError> {
        if self.is_created.load(Ordering::Relaxed) && self.exists(interrupt)? {
            return Ok(());
        }
        let body = json!({
            "vectors": { "dense": {
                "size": dim,
                "distance": "Cosine",
                "datatype": "turbo4",
                "hnsw_config": { "m": EDGES },
            } },
            "sparse_vectors": { "sparse": { "index": { "datatype": "float16" } } },
            "on_disk_payload": true,
            "strict_mode_config": {
                "enabled": true,
                "unindexed_filtering_retrieve": false,
                "unindexed_filtering_update": false,
            },
        });
        match self.send::<Value>(&Request::put(&self.path(""), &body), interrupt) {
            // It exists. An interrupted feeder may have created it without its indexes.
            Err(error) if error.status() == Some(409) => {}
            created => _ = created?,
        }
        for field in FILTERED {
            let schema = json!({ "type": "keyword", "is_tenant": field == "repository" });
            let body = json!({ "field_name": field, "field_schema": schema });
            self.send::<Value>(&Request::put(&self.path("/index?wait=true"), &body), interrupt)?;
        }
        self.is_created.store(true, Ordering::Relaxed);
        Ok(())
    }

    fn exists(&self, interrupt: &AtomicBool) -> Result<bool, RemoteError> {
        match self.send::<Value>(&Request::get(&self.path("")), interrupt) {
            Err(error) if error.status() == Some(404) => Ok(false),
            found => found.map(|_| true),
        }
    }

    /// Stores points. Points with the same ids are replaced. Returns when they can be found.
    pub fn put(&self, points: impl Iterator<Item = Point>, interrupt: &AtomicBool) -> Result<(), RemoteError> {
        let (mut batch, mut size) = (Vec::new(), 0);
        for point in points {
            let value = json!({ "id": uuid(&point.id), "vector": vector(&point.vector), "payload": point.payload });
            size += size_of(&point);
            batch.push(value);
            if size >= MAX_REQUEST_BYTES || batch.len() == MAX_POINTS {
                self.put_batch(std::mem::take(&mut batch), interrupt)?;
                size = 0;
            }
        }
        if batch.is_empty() {
            return Ok(());
        }
        self.put_batch(batch, interrupt)
    }

    fn put_batch(&self, points: Vec<Value>, interrupt: &AtomicBool) -> Result<(), RemoteError> {
        let request = Request::put(&self.path("/points?wait=true"), &json!({ "points": points }));
        self.send::<Value>(&request, interrupt).map(drop)
    }

    /// Removes points.
    pub fn remove(&self, ids: &[PointId], interrupt: &AtomicBool) -> Result<(), RemoteError> {
        for ids in ids.chunks(PAGE) {
            let ids: Vec<String> = ids.iter().map(uuid).collect();
            let request = Request::post(&self.path("/points/delete?wait=true"), &json!({ "points": ids }));
            self.send::<Value>(&request, interrupt)?;
        }
        Ok(())
    }

    /// Returns the ids of all points of a repository.
    pub fn points_of(&self, repository: &str, interrupt: &AtomicBool) -> Result<Vec<PointId>, RemoteError> {
        let filter = filter(&[("repository", vec![repository.to_owned()])]);
        let (mut ids, mut offset) = (Vec::new(), Value::Null);
        loop {
            let body = json!({
                "filter": filter,
                "limit": PAGE,
                "offset": offset,
                "with_payload": false,
                "with_vector": false,
            });
            let page: Page = self.send(&Request::post(&self.path("/points/scroll"), &body), interrupt)?;
            let is_last = page.points.is_empty();
            ids.extend(page.points.iter().filter_map(|point| parsed(&point.id)));
            match page.next_page_offset {
                // Ids ascend, so a server that repeats a page does not keep this from ending.
                Some(Value::String(next)) if !is_last && offset.as_str().is_none_or(|last| *next > *last) => {
                    offset = next.into();
                }
                _ => return Ok(ids),
            }
        }
    }

    /// Returns the fields of the points with these ids, as far as they exist.
    pub fn payloads(&self, ids: &[PointId], interrupt: &AtomicBool) -> Result<Vec<Payload>, RemoteError> {
        let ids: Vec<String> = ids.iter().map(uuid).collect();
        let body = json!({ "ids": ids, "with_payload": true, "with_vector": false });
        let call = self.question(interrupt);
        let answer: Envelope<Vec<Scored>> = self.client.send(&Request::post(&self.path("/points"), &body), &call)?;
        Ok(answer.result.into_iter().filter_map(|point| point.payload).collect())
    }

    fn question<'a>(&self, interrupt: &'a AtomicBool) -> Call<'a> {
        Call {
            deadline: Some(Instant::now() + self.query_timeout),
            interrupt,
            retries: false,
        }
    }

    /// Returns the best points of each query, within the time limit of a query. Sends one request and does not repeat
    /// it.
    pub fn query(&self, queries: &[PointQuery], interrupt: &AtomicBool) -> Result<Vec<Vec<Payload>>, RemoteError> {
        let search = |query: &PointQuery| {
            let mut body = json!({
                "filter": filter(&query.filter),
                "limit": query.limit,
                "with_payload": true,
                "with_vector": false,
            });
            match &query.vector {
                PointVector::None => {}
                PointVector::Meaning(values) => {
                    body["query"] = json!(values);
                    body["using"] = "dense".into();
                }
                PointVector::Words(words) => {
                    body["query"] = sparse(words);
                    body["using"] = "sparse".into();
                }
            }
            body
        };
        let body = json!({ "searches": queries.iter().map(search).collect::<Vec<_>>() });
        let request = Request::post(&self.path("/points/query/batch"), &body);
        let answer: Envelope<Vec<Found>> = self.client.send(&request, &self.question(interrupt))?;
        // A server may send more than it was asked for.
        let found = queries.iter().zip(answer.result).map(|(query, found)| {
            let points = found.points.into_iter().take(query.limit);
            points.filter_map(|point| point.payload).collect()
        });
        Ok(found.collect())
    }

    fn send<A: DeserializeOwned>(&self, request: &Request, interrupt: &AtomicBool) -> Result<A, RemoteError> {
        let call = Call {
            deadline: Some(Instant::now() + 10 * self.timeout),
            interrupt,
            retries: true,
        };
        let answer: Envelope<A> = self.client.send(request, &call)?;
        Ok(answer.result)
    }

    fn path(&self, rest: &str) -> String {
        format!("/collections/{}{rest}", self.name)
    }
}

/// Writes the id of a point as a UUID, the form that Qdrant accepts.
fn uuid(id: &PointId) -> String {
    let digits = format!("{:032x}", u128::from_be_bytes(*id));
    let [a, b, c, d, e] = [0..8, 8..12, 12..16, 16..20, 20..32].map(|part| &digits[part]);
    format!("{a}-{b}-{c}-{d}-{e}")
}

/// Reads the id of a point from a response.
fn parsed(uuid: &str) -> Option<PointId> {
    let digits: String = uuid.chars().filter(|&c| c != '-').collect();
    let is_hex = digits.len() == 32 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    let number = u128::from_str_radix(&digits, 16).ok().filter(|_| is_hex)?;
    Some(number.to_be_bytes())
}

fn filter(fields: &[(&str, Vec<String>)]) -> Value {
    let conditions = fields
        .iter()
        .map(|(field, values)| json!({ "key": field, "match": { "any": values } }));
    json!({ "must": conditions.collect::<Vec<_>>() })
}

fn vector(vector: &PointVector) -> Value {
    match vector {
        PointVector::Meaning(values) => json!({ "dense": values }),
        PointVector::Words(words) => json!({ "sparse": sparse(words) }),
        PointVector::None => json!({}),
    }
}

fn sparse(words: &Words) -> Value {
    let (indices, values): (Vec<u32>, Vec<f32>) = words.iter().copied().unzip();
    json!({ "indices": indices, "values": values })
}

fn size_of(point: &Point) -> usize {
    const NUMBER_BYTES: usize = 13;
    let numbers = match &point.vector {
        PointVector::Meaning(values) => values.len(),
        PointVector::Words(words) => 2 * words.len(),
        PointVector::None => 0,
    };
    NUMBER_BYTES * numbers + point.payload.to_string().len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_written_as_uuids() {
        let id: PointId = std::array::from_fn(|at| 0xf0 + at as u8);
        assert_eq!(uuid(&id), "f0f1f2f3-f4f5-f6f7-f8f9-fafbfcfdfeff");
        assert_eq!(parsed(&uuid(&id)), Some(id));
        for odd in [
            "",
            "7",
            "f0f1f2f3-f4f5-f6f7-f8f9-fafbfcfdfe",
            "+0f1f2f3-f4f5-f6f7-f8f9-fafbfcfdfeff",
        ] {
            assert_eq!(parsed(odd), None, "{odd}");
        }
    }
}
