//! A stub of a Qdrant server: implements the part of its REST API that the program uses, and compares all vectors.
//! `tests/peers/qdrant.sh` compares it with Qdrant's own engine.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use serde_json::{Map, Value, json};

use super::stub::{Reply, Seen, Stub};

/// Returns a response to use instead of the right one, if there is one for the request.
type Fault = Box<dyn Fn(&Seen) -> Option<Reply> + Send + Sync>;

/// A Qdrant stub with collections in memory.
pub(crate) struct QdrantStub {
    stub: Stub,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    fault: Mutex<Option<Fault>>,
}

#[derive(Default)]
struct State {
    collections: BTreeMap<String, Collection>,
    /// True if new collections reject filters on fields without an index.
    is_strict: bool,
}

#[derive(Clone, Default)]
struct Collection {
    config: Value,
    indexed: Vec<Value>,
    points: BTreeMap<String, Point>,
    is_strict: bool,
}

#[derive(Clone, Default)]
struct Point {
    dense: Option<Vec<f32>>,
    sparse: Option<BTreeMap<u64, f32>>,
    payload: Map<String, Value>,
}

/// The status and text of an error.
type Refused = (u16, String);

const MAX_BODY: usize = 32 << 20;

impl QdrantStub {
    pub(crate) fn start() -> Self {
        let shared = Arc::new(Shared::default());
        let serving = Arc::clone(&shared);
        Self {
            stub: Stub::start(move |seen| serving.answer(seen)),
            shared,
        }
    }

    pub(crate) fn url(&self) -> String {
        self.stub.url()
    }

    /// Uses the responses of `fault` where it returns one.
    pub(crate) fn fail(&self, fault: impl Fn(&Seen) -> Option<Reply> + Send + Sync + 'static) {
        *self.shared.fault.lock().unwrap() = Some(Box::new(fault));
    }

    /// Ends the faults.
    pub(crate) fn mend(&self) {
        *self.shared.fault.lock().unwrap() = None;
    }

    /// Creates new collections in strict mode (`unindexed_filtering_retrieve` and `unindexed_filtering_update` false),
    /// like a server that is configured so.
    pub(crate) fn be_strict(&self) {
        self.shared.state.lock().unwrap().is_strict = true;
    }

    /// Returns the payloads of all points, ordered by collection and id.
    pub(crate) fn payloads(&self) -> Vec<Map<String, Value>> {
        let state = self.shared.state.lock().unwrap();
        let points = state
            .collections
            .values()
            .flat_map(|collection| collection.points.values());
        points.map(|point| point.payload.clone()).collect()
    }

    /// Returns the repositories that have points.
    pub(crate) fn repositories(&self) -> BTreeSet<String> {
        let payloads = self.payloads();
        let tags = payloads.iter().filter_map(|payload| payload.get("repository"));
        tags.filter_map(|tag| Some(tag.as_str()?.to_owned())).collect()
    }

    /// Deletes every `n`th point with a vector of a repository, without changing the generation.
    pub(crate) fn lose_every(&self, n: usize) {
        let mut state = self.shared.state.lock().unwrap();
        for collection in state.collections.values_mut() {
            let mut at = 0;
            collection.points.retain(|_, point| {
                at += usize::from(point.payload.contains_key("repository"));
                !point.payload.contains_key("repository") || !at.is_multiple_of(n)
            });
        }
    }

    /// Deletes all points of a repository.
    pub(crate) fn lose(&self, repository: &str) {
        let mut state = self.shared.state.lock().unwrap();
        for collection in state.collections.values_mut() {
            let is_other = |point: &Point| point.payload.get("repository").and_then(Value::as_str) != Some(repository);
            collection.points.retain(|_, point| is_other(point));
        }
    }

    /// Returns a function that executes a deletion without responding.
    pub(crate) fn deleting_silently(&self) -> impl Fn(&Seen) -> Reply + Send + Sync + 'static {
        let shared = Arc::clone(&self.shared);
        move |seen| {
            let path = seen.path.split('?').next().unwrap_or_default();
            let done = shared.state.lock().unwrap().answer(seen, path);
            assert!(done.is_ok());
            Reply::status(200).after(std::time::Duration::from_secs(600))
        }
    }

    /// Deletes all collections and aliases.
    pub(crate) fn drop_all(&self) {
        *self.shared.state.lock().unwrap() = State::default();
    }
}

impl Shared {
    fn answer(&self, seen: &Seen) -> Reply {
        if let Some(reply) = self.fault.lock().unwrap().as_ref().and_then(|fault| fault(seen)) {
            return reply;
        }
        let path = seen.path.split('?').next().unwrap_or_default();
        if seen.body.len() > MAX_BODY {
            return refusal(413, "Payload error: JSON payload is larger than allowed");
        }
        match self.state.lock().unwrap().answer(seen, path) {
            Ok(result) => Reply::json(&json!({ "result": result, "status": "ok", "time": 0.0 })),
            Err((status, text)) => refusal(status, &text),
        }
    }
}

fn refusal(status: u16, text: &str) -> Reply {
    let body = json!({ "status": { "error": text }, "time": 0.0 });
    Reply::status(status)
        .with("content-type", "application/json")
        .body(body.to_string().as_bytes())
}

impl State {
    fn answer(&mut self, seen: &Seen, path: &str) -> Result<Value, Refused> {
        let body = seen.json();
        let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
        match (seen.method.as_str(), parts.as_slice()) {
            ("PUT", ["collections", name]) => self.make(name, body),
            (method, ["collections", name, rest @ ..]) => {
                let collection = self.find(name)?;
                collection.answer(method, rest, &body)
            }
            _ => Err((404, String::new())),
        }
    }

    fn find(&mut self, name: &str) -> Result<&mut Collection, Refused> {
        let none = (404, format!("Not found: Collection `{name}` doesn't exist!"));
        self.collections.get_mut(name).ok_or(none)
    }

    fn make(&mut self, name: &str, config: Value) -> Result<Value, Refused> {
        if self.collections.contains_key(name) {
            return Err((409, format!("Wrong input: Collection `{name}` already exists!")));
        }
        let has_dense = config["vectors"]["dense"]["size"].as_u64().is_some_and(|size| size > 0);
        if !has_dense {
            return Err((422, "Validation error in JSON body".to_owned()));
        }
        let collection = Collection {
            config,
            is_strict: self.is_strict,
            ..Collection::default()
        };
        self.collections.insert(name.to_owned(), collection);
        Ok(json!(true))
    }
}

impl Collection {
    fn answer(&mut self, method: &str, rest: &[&str], body: &Value) -> Result<Value, Refused> {
        let done = json!({ "operation_id": 1, "status": "completed" });
        match (method, rest) {
            ("GET", []) => Ok(json!({ "status": "green", "points_count": self.points.len() })),
            ("PUT", ["index"]) => {
                self.indexed.push(body.clone());
                Ok(done)
            }
            ("PUT", ["points"]) => self.upsert(body).map(|()| done),
            ("POST", ["points"]) => {
                let ids = body["ids"].as_array().into_iter().flatten().filter_map(Value::as_str);
                let found = ids.filter_map(|id| Some(to_json(id, self.points.get(id)?, body)));
                Ok(found.collect())
            }
            ("POST", ["points", "delete"]) => {
                let ids = body["points"]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .filter_map(Value::as_str);
                ids.for_each(|id| _ = self.points.remove(id));
                Ok(done)
            }
            ("POST", ["points", "scroll"]) => self.scroll(body),
            ("POST", ["points", "query", "batch"]) => {
                let searches = body["searches"].as_array().into_iter().flatten();
                searches.map(|search| self.query(search)).collect()
            }
            _ => Err((404, String::new())),
        }
    }

    fn upsert(&mut self, body: &Value) -> Result<(), Refused> {
        let size = self.config["vectors"]["dense"]["size"].as_u64().unwrap_or(0) as usize;
        let mut new = Vec::new();
        for given in body["points"].as_array().into_iter().flatten() {
            let kinds = [("dense", "vectors"), ("sparse", "sparse_vectors")];
            for (name, _) in kinds.iter().filter(|(name, of)| self.config[of][name].is_null()) {
                if !given["vector"][name].is_null() {
                    return Err((400, format!("Wrong input: Not existing vector name error: {name}")));
                }
            }
            let id = given["id"].as_str().filter(|id| is_uuid(id));
            let wrong = format!(
                "Format error in JSON body: value {} is not a valid point ID",
                given["id"]
            );
            let id = id.ok_or((400, wrong))?;
            let dense = given["vector"]["dense"].as_array().map(|numbers| {
                let numbers: Vec<f32> = numbers.iter().map(|x| x.as_f64().unwrap_or(f64::NAN) as f32).collect();
                unit(&numbers)
            });
            if let Some(vector) = dense.as_ref().filter(|vector| vector.len() != size) {
                let text = format!(
                    "Wrong input: Vector dimension error: expected dim: {size}, got {}",
                    vector.len()
                );
                return Err((400, text));
            }
            let point = Point {
                dense,
                sparse: sparse(&given["vector"]["sparse"]),
                payload: given["payload"].as_object().cloned().unwrap_or_default(),
            };
            new.push((id.to_owned(), point));
        }
        self.points.extend(new);
        Ok(())
    }

    fn passing(&self, filter: &Value) -> Result<Vec<(&String, &Point)>, Refused> {
        let conditions = ["must", "must_not"]
            .into_iter()
            .filter_map(|name| filter[name].as_array());
        for condition in conditions.flatten().filter(|_| self.is_strict) {
            let is_indexed = |key: &str| self.indexed.iter().any(|index| index["field_name"] == key);
            if let Some(key) = condition["key"].as_str().filter(|key| !is_indexed(key)) {
                return Err((
                    400,
                    format!(
                        "Bad request: Index required but not found for \"{key}\" of one of the following types: [keyword]. \
                         Help: Create an index for this key or use a different filter."
                    ),
                ));
            }
        }
        let mut passing = Vec::new();
        for (id, point) in &self.points {
            let holds = |name: &str| -> Result<Vec<bool>, Refused> {
                let conditions = filter[name].as_array().into_iter().flatten();
                conditions.map(|condition| holds(condition, point)).collect()
            };
            if holds("must")?.iter().all(|&holds| holds) && !holds("must_not")?.iter().any(|&holds| holds) {
                passing.push((id, point));
            }
        }
        Ok(passing)
    }

    fn scroll(&self, body: &Value) -> Result<Value, Refused> {
        let limit = body["limit"].as_u64().unwrap_or(10) as usize;
        let from = body["offset"].as_str().unwrap_or_default();
        let mut all = self
            .passing(&body["filter"])?
            .into_iter()
            .filter(|(id, _)| id.as_str() >= from);
        let page: Vec<Value> = all
            .by_ref()
            .take(limit)
            .map(|(id, point)| to_json(id, point, body))
            .collect();
        Ok(json!({ "points": page, "next_page_offset": all.next().map(|(id, _)| id) }))
    }

    fn query(&self, body: &Value) -> Result<Value, Refused> {
        let limit = body["limit"].as_u64().unwrap_or(10) as usize;
        let offset = body["offset"].as_u64().unwrap_or(0) as usize;
        let passing = self.passing(&body["filter"])?;
        let mut found: Vec<(f32, &String, &Point)> = match (&body["query"], body["using"].as_str()) {
            (Value::Null, _) => passing.into_iter().map(|(id, point)| (0.0, id, point)).collect(),
            (Value::Array(numbers), Some("dense")) => {
                let numbers: Vec<f32> = numbers.iter().map(|x| x.as_f64().unwrap_or(f64::NAN) as f32).collect();
                let size = self.config["vectors"]["dense"]["size"].as_u64().unwrap_or(0) as usize;
                if numbers.len() != size {
                    let found = numbers.len();
                    let text = format!("Wrong input: Vector dimension error: expected dim: {size}, got {found}");
                    return Err((400, text));
                }
                let query = unit(&numbers);
                let dot = |point: &Point| {
                    let vector = point.dense.as_ref()?;
                    Some(vector.iter().zip(&query).map(|(x, y)| x * y).sum::<f32>())
                };
                passing
                    .into_iter()
                    .filter_map(|(id, point)| Some((dot(point)?, id, point)))
                    .collect()
            }
            (query @ Value::Object(_), Some("sparse")) => {
                let query = sparse(query).unwrap_or_default();
                let dot = |point: &Point| {
                    let vector = point.sparse.as_ref()?;
                    let common: Vec<f32> = query.iter().filter_map(|(at, x)| Some(vector.get(at)? * x)).collect();
                    // A document that shares no token with the query is not found.
                    (!common.is_empty()).then(|| common.iter().sum())
                };
                passing
                    .into_iter()
                    .filter_map(|(id, point)| Some((dot(point)?, id, point)))
                    .collect()
            }
            (query, using) => return Err((400, format!("the stub knows no query {query} using {using:?}"))),
        };
        // Documents with equal scores have an arbitrary order.
        found.sort_by(|(a, x, _), (b, y, _)| b.total_cmp(a).then_with(|| y.chars().rev().cmp(x.chars().rev())));
        let page = found.into_iter().skip(offset).take(limit);
        let page = page.map(|(score, id, point)| {
            let mut shown = to_json(id, point, body);
            shown["version"] = json!(1);
            shown["score"] = json!(score);
            shown
        });
        Ok(json!({ "points": page.collect::<Vec<_>>() }))
    }
}

fn holds(condition: &Value, point: &Point) -> Result<bool, Refused> {
    let any = condition["match"]["any"].as_array();
    match (condition["key"].as_str(), condition["match"].get("value")) {
        (Some(key), Some(value)) => Ok(point.payload.get(key) == Some(value)),
        (Some(key), None) if any.is_some() => Ok(match point.payload.get(key) {
            Some(Value::Array(values)) => values.iter().any(|value| any.unwrap().contains(value)),
            value => value.is_some_and(|value| any.unwrap().contains(value)),
        }),
        _ => Err((400, format!("the stub knows no condition {condition}"))),
    }
}

fn to_json(id: &str, point: &Point, wanted: &Value) -> Value {
    let mut shown = json!({ "id": id });
    if wanted["with_payload"] == true {
        shown["payload"] = Value::Object(point.payload.clone());
    }
    let wants = |name: &str| match &wanted["with_vector"] {
        Value::Array(names) => names.iter().any(|known| known == name),
        all => all == &json!(true),
    };
    let mut vectors = Map::new();
    if let Some(dense) = point.dense.as_ref().filter(|_| wants("dense")) {
        vectors.insert("dense".to_owned(), json!(dense));
    }
    if let Some(sparse) = point.sparse.as_ref().filter(|_| wants("sparse")) {
        let (indices, values): (Vec<&u64>, Vec<&f32>) = sparse.iter().unzip();
        vectors.insert("sparse".to_owned(), json!({ "indices": indices, "values": values }));
    }
    if wanted["with_vector"] != false && !wanted["with_vector"].is_null() {
        shown["vector"] = Value::Object(vectors);
    }
    shown
}

fn sparse(given: &Value) -> Option<BTreeMap<u64, f32>> {
    let indices = given["indices"].as_array()?.iter().filter_map(Value::as_u64);
    let values = given["values"].as_array()?.iter().filter_map(Value::as_f64);
    Some(indices.zip(values.map(|x| x as f32)).collect())
}

fn unit(vector: &[f32]) -> Vec<f32> {
    let norm = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
    if norm > 0.0 {
        vector.iter().map(|x| x / norm).collect()
    } else {
        vector.to_vec()
    }
}

fn is_uuid(text: &str) -> bool {
    let groups: Vec<usize> = text.split('-').map(str::len).collect();
    groups == [8, 4, 4, 4, 12] && text.chars().all(|c| c == '-' || c.is_ascii_hexdigit())
}
