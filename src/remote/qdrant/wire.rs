//! What Qdrant is sent and what it answers. Source: its OpenAPI description of version 1.18.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{CollectionOptions, Compression, PointId};

/// The name of the dense vectors of a collection,
pub(super) const DENSE: &str = "dense";
/// and of the sparse ones.
pub(super) const SPARSE: &str = "sparse";
/// The field of a point that says whose it is.
pub(super) const REPOSITORY: &str = "repository";
/// The field of a repository's own point with its generation.
pub(super) const GENERATION: &str = "generation";
/// Fields of that point begin so while vectors are being removed.
pub(super) const REMOVING: &str = "removing_";

/// Around every answer.
#[derive(Deserialize)]
pub(super) struct Envelope<T> {
    pub(super) result: T,
}

/// What `GET /` says.
#[derive(Deserialize)]
pub(super) struct Server {
    pub(super) version: String,
}

/// A collection, as far as it matters.
#[derive(Deserialize)]
pub(super) struct Collection {
    pub(super) status: String,
    pub(super) config: CollectionConfig,
}

#[derive(Deserialize)]
pub(super) struct CollectionConfig {
    pub(super) params: CollectionParams,
}

#[derive(Deserialize)]
pub(super) struct CollectionParams {
    #[serde(default)]
    pub(super) vectors: BTreeMap<String, VectorParams>,
}

#[derive(Deserialize)]
pub(super) struct VectorParams {
    pub(super) size: usize,
    pub(super) distance: String,
}

#[derive(Deserialize)]
pub(super) struct Aliases {
    pub(super) aliases: Vec<Alias>,
}

#[derive(Deserialize)]
pub(super) struct Alias {
    pub(super) alias_name: String,
    pub(super) collection_name: String,
}

#[derive(Deserialize)]
pub(super) struct Count {
    pub(super) count: u64,
}

/// What became of a change.
#[derive(Deserialize)]
pub(super) struct Update {
    pub(super) status: String,
}

/// A page of points, and where the next begins.
#[derive(Deserialize)]
pub(super) struct Scrolled {
    pub(super) points: Vec<Value>,
    pub(super) next_page_offset: Option<Value>,
}

/// A point that was asked for by its id.
#[derive(Deserialize)]
pub(super) struct Record {
    pub(super) id: Value,
    #[serde(default)]
    pub(super) payload: Option<Map<String, Value>>,
    #[serde(default)]
    pub(super) vector: Option<Vectors>,
}

/// The vectors of a point by name.
#[derive(Deserialize)]
pub(super) struct Vectors {
    pub(super) dense: Option<Vec<f32>>,
}

/// The points that one search found.
#[derive(Deserialize)]
pub(super) struct Found {
    pub(super) points: Vec<Scored>,
}

#[derive(Deserialize)]
pub(super) struct Scored {
    pub(super) id: Value,
    #[serde(default)]
    pub(super) score: f32,
    #[serde(default)]
    pub(super) payload: Option<Map<String, Value>>,
}

/// A point as it is put.
#[derive(Serialize)]
pub(super) struct NewPoint<'a> {
    pub(super) id: String,
    pub(super) vector: Map<String, Value>,
    pub(super) payload: BTreeMap<&'a str, &'a str>,
}

/// Points as they are put; vectors are written as they are, without a tree of values for each number.
#[derive(Serialize)]
pub(super) struct DensePoint<'a> {
    pub(super) id: String,
    pub(super) vector: DenseVector<'a>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) payload: BTreeMap<&'a str, &'a str>,
}

#[derive(Serialize)]
pub(super) struct DenseVector<'a> {
    pub(super) dense: &'a [f32],
}

#[derive(Serialize)]
pub(super) struct Points<T> {
    pub(super) points: Vec<T>,
}

/// How a collection is made.
pub(super) fn new_collection(dim: usize, options: &CollectionOptions) -> Value {
    let mut body = json!({
        "vectors": { DENSE: { "size": dim, "distance": "Cosine", "on_disk": options.on_disk } },
        // Filled by who has sparse vectors; it costs nothing while it is empty, and cannot be added later.
        "sparse_vectors": { SPARSE: {} },
        "on_disk_payload": true,
    });
    let numbers = [
        ("shard_number", options.shards),
        ("replication_factor", options.replication),
        ("write_consistency_factor", options.write_consistency),
    ];
    for (name, number) in numbers {
        if let Some(number) = number {
            body[name] = number.into();
        }
    }
    let compression = match options.compression {
        Compression::None => return body,
        Compression::Scalar => json!({ "scalar": { "type": "int8", "always_ram": true } }),
        Compression::Binary => json!({ "binary": { "always_ram": true } }),
        Compression::Product => json!({ "product": { "compression": "x16", "always_ram": true } }),
    };
    body["quantization_config"] = compression;
    body
}

/// The index over the field that says whose a point is.
pub(super) fn repository_index() -> Value {
    json!({ "field_name": REPOSITORY, "field_schema": { "type": "keyword", "is_tenant": true } })
}

/// Points by their ids.
pub(super) fn by_ids(ids: &[PointId], wants_vectors: bool, wants_payload: bool) -> Value {
    let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
    let vectors = match wants_vectors {
        true => json!([DENSE]),
        false => json!(false),
    };
    json!({ "ids": ids, "with_vector": vectors, "with_payload": wants_payload })
}

/// The points of a repository, or those of them with some ids.
pub(super) fn filter(repository: &str, only: Option<&[PointId]>) -> Value {
    let mut must = vec![json!({ "key": REPOSITORY, "match": { "value": repository } })];
    if let Some(ids) = only {
        let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
        must.push(json!({ "has_id": ids }));
    }
    json!({ "must": must })
}

/// Searches that are made together.
#[derive(Serialize)]
pub(super) struct Searches<'a> {
    pub(super) searches: [Search<'a>; 2],
}

/// One of them: the points nearest to a vector, or without one those that a filter lets through.
#[derive(Serialize)]
pub(super) struct Search<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) query: Option<&'a [f32]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) using: Option<&'a str>,
    pub(super) filter: Value,
    pub(super) limit: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) params: Option<Value>,
    pub(super) with_payload: bool,
    pub(super) with_vector: bool,
}
