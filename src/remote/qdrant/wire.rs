//! What Qdrant is sent and what it answers. Source: its OpenAPI description of version 1.18.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{CollectionOptions, Compression, PointId};
use crate::embed::SparseVector;
use crate::index::{Row, RowKind};

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
    pub(super) vectors: Option<BTreeMap<String, VectorParams>>,
    pub(super) sparse_vectors: Option<BTreeMap<String, Value>>,
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
    pub(super) sparse: Option<Terms>,
}

/// A sparse vector.
#[derive(Deserialize, Serialize)]
pub(super) struct Terms {
    pub(super) indices: Vec<u32>,
    pub(super) values: Vec<f32>,
}

impl Terms {
    pub(super) fn of(vector: &SparseVector) -> Self {
        let (indices, values) = vector.terms().iter().copied().unzip();
        Self { indices, values }
    }

    /// Tokens with their weights, if there are as many of these as of those.
    pub(super) fn pairs(self) -> Option<Vec<(u32, f32)>> {
        let are_pairs = self.indices.len() == self.values.len();
        are_pairs.then(|| self.indices.into_iter().zip(self.values).collect())
    }
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
pub(super) struct VectorPoint<'a> {
    pub(super) id: String,
    pub(super) vector: NamedVector<'a>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) payload: BTreeMap<&'a str, &'a str>,
}

/// Under [`DENSE`] or [`SPARSE`].
#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum NamedVector<'a> {
    Dense(&'a [f32]),
    Sparse(Terms),
}

impl<'a> NamedVector<'a> {
    pub(super) fn of(row: &'a Row) -> Self {
        match row {
            Row::Dense(embedding) => Self::Dense(&embedding.vector),
            Row::Sparse(vector) => Self::Sparse(Terms::of(vector)),
        }
    }
}

#[derive(Serialize)]
pub(super) struct Points<T> {
    pub(super) points: Vec<T>,
}

/// The name of the vectors of a kind.
pub(super) fn name_of(kind: RowKind) -> &'static str {
    match kind {
        RowKind::Dense => DENSE,
        RowKind::Sparse => SPARSE,
    }
}

/// How a collection for a kind of vectors is made.
pub(super) fn new_collection(kind: RowKind, dim: usize, options: &CollectionOptions) -> Value {
    let mut body = match kind {
        RowKind::Dense => json!({
            "vectors": { DENSE: { "size": dim, "distance": "Cosine", "on_disk": options.on_disk } },
        }),
        RowKind::Sparse => json!({
            "vectors": {},
            "sparse_vectors": { SPARSE: { "index": { "on_disk": options.on_disk } } },
        }),
    };
    body["on_disk_payload"] = true.into();
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
        // The server has none for sparse vectors.
        _ if kind == RowKind::Sparse => return body,
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
pub(super) fn by_ids(ids: &[PointId], wanted_vectors: Option<RowKind>, wants_payload: bool) -> Value {
    let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
    let vectors = wanted_vectors.map_or(json!(false), |kind| json!([name_of(kind)]));
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

/// What is near is looked for.
#[derive(Clone, Copy, Serialize)]
#[serde(untagged)]
pub(super) enum Query<'a> {
    Dense(&'a [f32]),
    Sparse(&'a Terms),
}

impl Query<'_> {
    pub(super) fn kind(&self) -> RowKind {
        match self {
            Self::Dense(_) => RowKind::Dense,
            Self::Sparse(_) => RowKind::Sparse,
        }
    }
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
    pub(super) query: Option<Query<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) using: Option<&'a str>,
    pub(super) filter: Value,
    pub(super) limit: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) params: Option<Value>,
    pub(super) with_payload: bool,
    pub(super) with_vector: bool,
}
