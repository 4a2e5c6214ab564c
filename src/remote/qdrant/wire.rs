//! Request and response formats of Qdrant. Source: the OpenAPI description of version 1.18.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{CollectionOptions, Compression, PointId, QdrantOptions};
use crate::embed::SparseVector;
use crate::index::{Row, RowKind};

/// Name of the dense vectors of a collection.
pub(super) const DENSE: &str = "dense";
/// Name of the sparse vectors of a collection.
pub(super) const SPARSE: &str = "sparse";
/// Field of a point that contains its repository's tag.
pub(super) const REPOSITORY: &str = "repository";
/// Field of a repository's own point that contains its generation.
pub(super) const GENERATION: &str = "generation";
/// Number of edges per vector in an HNSW graph, the server's default.
const GRAPH_EDGES: u64 = 16;
/// Oversampling factor for one byte per component. This multiple of the requested results is found by quantized vectors
/// and then rescored with the original vectors (docs/evaluation.md).
const OVERSAMPLING: f64 = 2.0;
/// Oversampling factor for smaller quantized vectors.
const OVERSAMPLING_OF_SHORTER: f64 = 4.0;
/// Prefix of fields of a repository's own point that announce a removal.
pub(super) const REMOVING: &str = "removing_";

/// Wrapper of every response except that of `GET /`.
#[derive(Deserialize)]
pub(in crate::remote) struct Envelope<T> {
    pub(in crate::remote) result: T,
}

/// Response of `GET /`.
#[derive(Deserialize)]
pub(super) struct Server {
    pub(super) version: String,
}

/// Description of a collection, reduced to the fields used here.
#[derive(Deserialize)]
pub(super) struct Collection {
    pub(super) status: String,
    pub(super) config: CollectionConfig,
}

#[derive(Deserialize)]
pub(super) struct CollectionConfig {
    pub(super) params: CollectionParams,
    #[serde(default)]
    hnsw_config: Hnsw,
    quantization_config: Option<Map<String, Value>>,
}

#[derive(Deserialize)]
pub(super) struct CollectionParams {
    pub(super) vectors: Option<BTreeMap<String, VectorParams>>,
    pub(super) sparse_vectors: Option<BTreeMap<String, Value>>,
    pub(super) shard_number: Option<u32>,
    replication_factor: Option<u32>,
    write_consistency_factor: Option<u32>,
}

#[derive(Deserialize)]
pub(super) struct VectorParams {
    pub(super) size: usize,
    pub(super) distance: String,
    on_disk: Option<bool>,
    hnsw_config: Option<Hnsw>,
}

/// Parameters of the HNSW graph.
#[derive(Clone, Copy, Default, Deserialize)]
struct Hnsw {
    /// Edges per vector; 0 means that no graph is built.
    m: Option<u64>,
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

/// Result of a change.
#[derive(Deserialize)]
pub(super) struct Update {
    pub(super) status: String,
}

/// A page of points, with the offset of the next page.
#[derive(Deserialize)]
pub(super) struct Scrolled {
    pub(super) points: Vec<Record>,
    pub(super) next_page_offset: Option<Value>,
}

/// A point in a response to a read request.
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

    /// Returns the tokens with their weights, or `None` if their numbers differ.
    pub(super) fn pairs(self) -> Option<Vec<(u32, f32)>> {
        let are_pairs = self.indices.len() == self.values.len();
        are_pairs.then(|| self.indices.into_iter().zip(self.values).collect())
    }
}

/// Result of one search.
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

/// A point to write that has no vector.
#[derive(Serialize)]
pub(super) struct NewPoint<'a> {
    pub(super) id: String,
    pub(super) vector: Map<String, Value>,
    pub(super) payload: BTreeMap<&'a str, &'a str>,
}

/// A point to write with its vector. The vector is serialized directly, without a [`Value`] for each number.
#[derive(Serialize)]
pub(super) struct VectorPoint<'a> {
    pub(super) id: String,
    pub(super) vector: NamedVector<'a>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) payload: BTreeMap<&'a str, &'a str>,
}

/// A vector under its name, [`DENSE`] or [`SPARSE`].
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

/// Returns the name of vectors of a kind.
pub(super) fn name_of(kind: RowKind) -> &'static str {
    match kind {
        RowKind::Dense => DENSE,
        RowKind::Sparse => SPARSE,
    }
}

/// Returns the body of the request that creates a collection.
pub(super) fn new_collection(kind: RowKind, dim: usize, options: &QdrantOptions) -> Value {
    let collection = &options.collection;
    let mut body = match kind {
        RowKind::Dense => {
            let mut dense = dense_params(options);
            dense["size"] = dim.into();
            dense["distance"] = "Cosine".into();
            json!({ "vectors": { DENSE: dense } })
        }
        RowKind::Sparse => json!({ "vectors": {}, "sparse_vectors": sparse_params(options) }),
    };
    body["on_disk_payload"] = true.into();
    if let Some(shards) = collection.shards {
        body["shard_number"] = shards.into();
    }
    for (name, number) in copies(collection) {
        body[name] = number.into();
    }
    if let Some(quantization) = quantization(kind, options) {
        body["quantization_config"] = quantization;
    }
    body
}

/// Returns the body of the request that changes the parameters of a collection to those of a new one, except for the
/// number of shards.
pub(super) fn changed_collection(kind: RowKind, options: &QdrantOptions) -> Value {
    let mut body = match kind {
        RowKind::Dense => json!({
            "vectors": { DENSE: dense_params(options) },
            "quantization_config": quantization(kind, options).unwrap_or("Disabled".into()),
        }),
        RowKind::Sparse => json!({ "sparse_vectors": sparse_params(options) }),
    };
    let copies: Map<String, Value> = copies(&options.collection)
        .map(|(name, n)| (name.to_owned(), n.into()))
        .collect();
    if !copies.is_empty() {
        body["params"] = copies.into();
    }
    body
}

/// Returns true if [`changed_collection`] would change nothing.
pub(super) fn is_as_set(kind: RowKind, found: &CollectionConfig, options: &QdrantOptions) -> bool {
    let params = &found.params;
    let found_copies = |name| match name {
        REPLICATION => params.replication_factor,
        _ => params.write_consistency_factor,
    };
    let has_copies = copies(&options.collection).all(|(name, number)| found_copies(name) == Some(number));
    let dense = params.vectors.as_ref().and_then(|vectors| vectors.get(DENSE));
    let Some(dense) = dense.filter(|_| kind == RowKind::Dense) else {
        return has_copies;
    };
    let m = dense.hnsw_config.and_then(|hnsw| hnsw.m).or(found.hnsw_config.m);
    let kind_of = |quantization: &Map<String, Value>| quantization.keys().next().cloned();
    let wanted = quantization(kind, options);
    has_copies
        && (m == Some(0)) == options.exact
        && dense.on_disk.unwrap_or_default() == options.collection.on_disk
        && found.quantization_config.as_ref().and_then(kind_of)
            == wanted.as_ref().and_then(Value::as_object).and_then(kind_of)
}

const REPLICATION: &str = "replication_factor";
const CONSISTENCY: &str = "write_consistency_factor";

/// Returns the replication settings that are not `None`.
fn copies(collection: &CollectionOptions) -> impl Iterator<Item = (&'static str, u32)> {
    let numbers = [
        (REPLICATION, collection.replication),
        (CONSISTENCY, collection.write_consistency),
    ];
    numbers.into_iter().filter_map(|(name, number)| Some((name, number?)))
}

/// Returns the parameters of dense vectors. For exact search no HNSW graph is built: it is not used, and building it
/// takes most of the server's time while vectors are added.
fn dense_params(options: &QdrantOptions) -> Value {
    let m = if options.exact { 0 } else { GRAPH_EDGES };
    json!({ "on_disk": options.collection.on_disk, "hnsw_config": { "m": m, "payload_m": m } })
}

fn sparse_params(options: &QdrantOptions) -> Value {
    json!({ SPARSE: { "index": { "on_disk": options.collection.on_disk } } })
}

/// Returns the quantization settings. `None` for exact search, which uses the original vectors, and for sparse vectors.
fn quantization(kind: RowKind, options: &QdrantOptions) -> Option<Value> {
    if kind == RowKind::Sparse || options.exact {
        return None;
    }
    Some(match options.collection.compression {
        Compression::None => return None,
        Compression::Scalar => json!({ "scalar": { "type": "int8", "always_ram": true } }),
        Compression::Binary => json!({ "binary": { "always_ram": true } }),
        Compression::Product => json!({ "product": { "compression": "x16", "always_ram": true } }),
    })
}

/// Returns the search parameters. If `is_exact`, the server compares the query with all vectors.
pub(super) fn search_params(is_exact: bool, options: &QdrantOptions) -> Value {
    let oversampling = match options.collection.compression {
        _ if is_exact => return json!({ "exact": true }),
        Compression::None => return json!({ "exact": false }),
        Compression::Scalar => OVERSAMPLING,
        Compression::Binary | Compression::Product => OVERSAMPLING_OF_SHORTER,
    };
    // The best results by quantized vectors are rescored with the original vectors.
    json!({ "exact": false, "quantization": { "rescore": true, "oversampling": oversampling } })
}

/// Returns the body of the request that creates an index on [`REPOSITORY`].
pub(super) fn repository_index() -> Value {
    json!({ "field_name": REPOSITORY, "field_schema": { "type": "keyword", "is_tenant": true } })
}

/// Returns the body of a request for points by id.
pub(super) fn by_ids(ids: &[PointId], wanted_vectors: Option<RowKind>, wants_payload: bool) -> Value {
    let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
    let vectors = wanted_vectors.map_or(json!(false), |kind| json!([name_of(kind)]));
    json!({ "ids": ids, "with_vector": vectors, "with_payload": wants_payload })
}

/// Returns the filter for the points of a repository, restricted to the ids in `only` if there are any.
pub(super) fn filter(repository: &str, only: Option<&[PointId]>) -> Value {
    let mut must = vec![json!({ "key": REPOSITORY, "match": { "value": repository } })];
    if let Some(ids) = only {
        let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
        must.push(json!({ "has_id": ids }));
    }
    json!({ "must": must })
}

/// The vector of a query.
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

/// A batch of two searches.
#[derive(Serialize)]
pub(super) struct Searches<'a> {
    pub(super) searches: [Search<'a>; 2],
}

/// A search for the points nearest to `query`, or without a query, for all points that match the filter.
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
