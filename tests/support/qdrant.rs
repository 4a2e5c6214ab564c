//! A stub of a Qdrant server: implements the part of its REST API that the program uses, and compares all vectors. Its
//! behaviour is modelled on version 1.18.3; `tests/peers/qdrant.py` compares its ranking with the Python client's.

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
    key: Mutex<Option<String>>,
    /// The kinds of changes that are acknowledged before they are done, and a flag that is true if they are done at
    /// all.
    promises: Mutex<(Vec<String>, bool)>,
}

#[derive(Default)]
struct State {
    collections: BTreeMap<String, Collection>,
    aliases: BTreeMap<String, String>,
    /// True if new collections reject filters on fields without an index.
    is_strict: bool,
}

#[derive(Clone, Default)]
struct Collection {
    config: Value,
    indexed: Vec<Value>,
    points: BTreeMap<String, Point>,
    is_strict: bool,
    /// True if the optimizers are busy. Reported once, then reset.
    is_optimizing: bool,
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

    pub(crate) fn stub(&self) -> &Stub {
        &self.stub
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

    /// Returns a function that adds `n` points to the collections that the aliases name now, like clones that resolved
    /// the alias earlier.
    pub(crate) fn putting(&self, n: usize) -> impl Fn() + Send + Sync + 'static {
        let shared = Arc::clone(&self.shared);
        let old: Vec<String> = self.aliases().into_values().collect();
        move || {
            let mut state = shared.state.lock().unwrap();
            for collection in old
                .iter()
                .filter_map(|name| state.collections.get_mut(name).map(|_| name.clone()))
                .collect::<Vec<_>>()
            {
                let collection = state.collections.get_mut(&collection).unwrap();
                let known = collection
                    .points
                    .values()
                    .find(|point| point.payload.contains_key("repository"));
                let point = known.unwrap().clone();
                let from = collection.points.len();
                let ids = (from..from + n).map(|at| format!("{at:08x}-0000-4000-a000-000000000000"));
                collection.points.extend(ids.map(|id| (id, point.clone())));
            }
        }
    }

    /// Requires this key for all requests.
    pub(crate) fn want_key(&self, key: &str) {
        *self.shared.key.lock().unwrap() = Some(key.to_owned());
    }

    /// From now on, changes of these kinds (`points`, `points/delete`, `points/payload`, `points/payload/delete`) are
    /// only acknowledged. `are_done` determines whether they are also executed.
    pub(crate) fn only_promise(&self, kinds: &[&str], are_done: bool) {
        let kinds = kinds.iter().map(|kind| (*kind).to_owned()).collect();
        *self.shared.promises.lock().unwrap() = (kinds, are_done);
    }

    /// Returns the collections by their real names, with the parameters of their creation and the indexed fields.
    pub(crate) fn collections(&self) -> BTreeMap<String, Value> {
        let state = self.shared.state.lock().unwrap();
        let described = |collection: &Collection| json!({ "config": collection.config, "indexed": collection.indexed });
        let all = state.collections.iter();
        all.map(|(name, collection)| (name.clone(), described(collection)))
            .collect()
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

    /// Returns the number of points that have a sparse vector and belong to a repository.
    pub(crate) fn n_sparse(&self) -> usize {
        self.n_points(|point| point.sparse.is_some())
    }

    /// Returns the number of points that have a dense vector and belong to a repository.
    pub(crate) fn n_vectors(&self) -> usize {
        self.n_points(|point| point.dense.is_some())
    }

    fn n_points(&self, is_meant: impl Fn(&Point) -> bool) -> usize {
        let state = self.shared.state.lock().unwrap();
        let points = state
            .collections
            .values()
            .flat_map(|collection| collection.points.values());
        points
            .filter(|point| is_meant(point) && point.payload.contains_key("repository"))
            .count()
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

    /// Adds points to each repository, like other clones.
    pub(crate) fn put_others(&self, n: usize) {
        let mut state = self.shared.state.lock().unwrap();
        for collection in state.collections.values_mut() {
            let mut points = collection.points.values();
            let known = points.find(|point| point.payload.contains_key("repository"));
            let mut point = known.unwrap().clone();
            point.dense.iter_mut().flatten().for_each(|x| *x = -*x);
            let ids = (0..n).map(|at| format!("{at:08x}-0000-4000-8000-000000000000"));
            collection.points.extend(ids.map(|id| (id, point.clone())));
        }
    }

    /// Adds `n` copies of an existing point to its repository, like other clones.
    pub(crate) fn crowd(&self, n: usize) {
        let mut state = self.shared.state.lock().unwrap();
        for collection in state.collections.values_mut() {
            let mut points = collection.points.values();
            let known = points.find(|point| point.payload.contains_key("repository"));
            let point = known.unwrap().clone();
            let ids = (0..n).map(|at| format!("{at:08x}-0000-4000-9000-000000000000"));
            collection.points.extend(ids.map(|id| (id, point.clone())));
        }
    }

    /// Simulates that a clone has begun to remove vectors of every repository, and announced it `seconds_ago` seconds
    /// ago.
    pub(crate) fn begin_removal(&self, seconds_ago: u64) {
        self.shared.begin_removal(seconds_ago);
    }

    /// Returns a function that begins a removal of vectors in every repository.
    pub(crate) fn removing(&self) -> impl Fn() + Send + Sync + 'static {
        let shared = Arc::clone(&self.shared);
        move || shared.begin_removal(0)
    }

    /// Returns the collection of each alias.
    pub(crate) fn aliases(&self) -> BTreeMap<String, String> {
        self.shared.state.lock().unwrap().aliases.clone()
    }

    /// Makes the announcements of removals `seconds` older. Returns their number.
    pub(crate) fn age_removals(&self, seconds: u64) -> usize {
        let mut state = self.shared.state.lock().unwrap();
        let points = state
            .collections
            .values_mut()
            .flat_map(|collection| collection.points.values_mut());
        let fields = points.flat_map(|point| point.payload.iter_mut());
        let removals = fields.filter(|(name, _)| name.starts_with("removing_"));
        removals
            .map(|(_, told_at)| *told_at = json!(told_at.as_u64().unwrap() - seconds))
            .count()
    }

    /// Makes every claim end `seconds` earlier. Returns the number of claims.
    pub(crate) fn age_claims(&self, seconds: u64) -> usize {
        let mut state = self.shared.state.lock().unwrap();
        let points = state
            .collections
            .values_mut()
            .flat_map(|collection| collection.points.values_mut());
        let fields = points.flat_map(|point| point.payload.iter_mut());
        let claims = fields.filter(|(name, _)| name.starts_with("claim_"));
        claims
            .map(|(_, claim)| {
                let mut parts: Vec<String> = claim.as_str().unwrap().split(' ').map(str::to_owned).collect();
                parts[1] = (parts[1].parse::<u64>().unwrap() - seconds).to_string();
                *claim = json!(parts.join(" "));
            })
            .count()
    }

    /// Returns a function that points every alias to a copy of its collection, like a clone that replaces it. Names of
    /// copies end in `-2`.
    pub(crate) fn moving(&self) -> impl Fn() + Send + Sync + 'static {
        let shared = Arc::clone(&self.shared);
        move || {
            let mut state = shared.state.lock().unwrap();
            for (alias, name) in state.aliases.clone() {
                let copy = state.collections[&name].clone();
                state.collections.insert(format!("{alias}-2"), copy);
                state.aliases.insert(alias.clone(), format!("{alias}-2"));
            }
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

    /// Returns a function that changes the generation of every repository, like a removal or a copy.
    pub(crate) fn renewing(&self) -> impl Fn() + Send + Sync + 'static {
        let shared = Arc::clone(&self.shared);
        move || {
            let mut state = shared.state.lock().unwrap();
            let points = state
                .collections
                .values_mut()
                .flat_map(|collection| collection.points.values_mut());
            for point in points.filter(|point| point.payload.contains_key("generation")) {
                point.payload.insert("generation".to_owned(), json!("ab".repeat(16)));
            }
        }
    }

    /// Deletes all collections and aliases.
    pub(crate) fn drop_all(&self) {
        *self.shared.state.lock().unwrap() = State::default();
    }

    /// Returns the number of requests whose path ends in `ending`.
    pub(crate) fn n_asked(&self, ending: &str) -> usize {
        let requests = self.stub.requests();
        let paths = requests
            .iter()
            .map(|seen| seen.path.split('?').next().unwrap_or_default());
        paths.filter(|path| path.ends_with(ending)).count()
    }
}

impl Shared {
    fn begin_removal(&self, seconds_ago: u64) {
        let now = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap();
        let told_at = json!(now.as_secs() - seconds_ago);
        let mut state = self.state.lock().unwrap();
        let points = state
            .collections
            .values_mut()
            .flat_map(|collection| collection.points.values_mut());
        for point in points.filter(|point| point.payload.contains_key("generation")) {
            point.payload.insert("removing_0123".to_owned(), told_at.clone());
        }
    }

    fn answer(&self, seen: &Seen) -> Reply {
        if let Some(reply) = self.fault.lock().unwrap().as_ref().and_then(|fault| fault(seen)) {
            return reply;
        }
        let path = seen.path.split('?').next().unwrap_or_default();
        let key = self.key.lock().unwrap().clone();
        if path != "/healthz" && key.is_some() && seen.header("api-key") != key.as_deref() {
            return Reply::status(401).body(b"Must provide an API key or an Authorization bearer token");
        }
        if seen.body.len() > MAX_BODY {
            return refusal(413, "Payload error: JSON payload is larger than allowed");
        }
        if path == "/" {
            return Reply::json(&json!({ "title": "qdrant - vector search engine", "version": "1.18.3" }));
        }
        let (promised, are_done) = self.promises.lock().unwrap().clone();
        let mut state = self.state.lock().unwrap();
        let rest = path.trim_matches('/').splitn(3, '/').nth(2).unwrap_or_default();
        let is_read = rest == "points" && seen.method == "POST";
        let answer = if promised.iter().any(|kind| kind == rest) && !is_read {
            let done = if are_done {
                state.answer(seen, path).map(drop)
            } else {
                Ok(())
            };
            done.map(|()| json!({ "operation_id": 1, "status": "acknowledged" }))
        } else {
            state.answer(seen, path)
        };
        match answer {
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
            ("GET", ["aliases"]) => {
                let all = self.aliases.iter();
                let listed = all.map(|(alias, name)| json!({ "alias_name": alias, "collection_name": name }));
                Ok(json!({ "aliases": listed.collect::<Vec<_>>() }))
            }
            ("POST", ["collections", "aliases"]) => self.change_aliases(&body),
            ("PUT", ["collections", name]) => self.make(name, body),
            // An alias is not accepted here.
            ("PATCH", ["collections", name]) => match self.collections.get_mut(*name) {
                Some(collection) => collection.change(&body),
                None => Err((404, format!("Not found: Collection `{name}` doesn't exist!"))),
            },
            ("DELETE", ["collections", name]) => {
                self.aliases.retain(|_, target| target != name);
                Ok(json!(self.collections.remove(*name).is_some()))
            }
            (method, ["collections", name, rest @ ..]) => {
                let collection = self.find(name)?;
                collection.answer(method, rest, &body)
            }
            _ => Err((404, String::new())),
        }
    }

    fn find(&mut self, name: &str) -> Result<&mut Collection, Refused> {
        let target = self.aliases.get(name).cloned().unwrap_or_else(|| name.to_owned());
        let none = (404, format!("Not found: Collection `{name}` doesn't exist!"));
        self.collections.get_mut(&target).ok_or(none)
    }

    fn make(&mut self, name: &str, config: Value) -> Result<Value, Refused> {
        if self.collections.contains_key(name) || self.aliases.contains_key(name) {
            return Err((409, format!("Wrong input: Collection `{name}` already exists!")));
        }
        let has_dense = config["vectors"]["dense"]["size"].as_u64().is_some_and(|size| size > 0);
        let has_none = config["vectors"] == json!({});
        let has_sparse = has_none && config["sparse_vectors"]["sparse"].is_object();
        if !has_dense && !has_sparse {
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

    fn change_aliases(&mut self, body: &Value) -> Result<Value, Refused> {
        let mut aliases = self.aliases.clone();
        for action in body["actions"].as_array().into_iter().flatten() {
            let text = |of: &Value, name: &str| of[name].as_str().unwrap_or_default().to_owned();
            if let Some(create) = action.get("create_alias") {
                let name = text(create, "collection_name");
                if !self.collections.contains_key(&name) {
                    return Err((404, format!("Not found: Collection `{name}` doesn't exist!")));
                }
                aliases.insert(text(create, "alias_name"), name);
            } else if let Some(delete) = action.get("delete_alias") {
                aliases.remove(&text(delete, "alias_name"));
            }
        }
        self.aliases = aliases;
        Ok(json!(true))
    }
}

impl Collection {
    fn answer(&mut self, method: &str, rest: &[&str], body: &Value) -> Result<Value, Refused> {
        let done = json!({ "operation_id": 1, "status": "completed" });
        match (method, rest) {
            ("GET", []) => {
                let number = |name: &str| self.config[name].as_u64().unwrap_or(1);
                let is_optimizing = std::mem::take(&mut self.is_optimizing);
                Ok(json!({
                    "status": if is_optimizing { "yellow" } else { "green" },
                    "optimizer_status": "ok",
                    "points_count": self.points.len(),
                    "config": {
                        "params": {
                            "vectors": self.config["vectors"],
                            "sparse_vectors": self.config["sparse_vectors"],
                            "shard_number": number("shard_number"),
                            "replication_factor": number("replication_factor"),
                            "write_consistency_factor": number("write_consistency_factor"),
                        },
                        "hnsw_config": { "m": 16, "ef_construct": 100, "full_scan_threshold": 10_000 },
                        "quantization_config": self.config["quantization_config"],
                    },
                }))
            }
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
                let goes = self.chosen(body)?;
                self.points.retain(|id, _| !goes.contains(id));
                Ok(done)
            }
            ("POST", ["points", "payload"]) => {
                for id in self.chosen(body)? {
                    let payload = body["payload"].as_object().cloned().unwrap_or_default();
                    self.points.get_mut(&id).unwrap().payload.extend(payload);
                }
                Ok(done)
            }
            ("POST", ["points", "payload", "delete"]) => {
                let keys: Vec<&str> = body["keys"]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .filter_map(Value::as_str)
                    .collect();
                for id in self.chosen(body)? {
                    let payload = &mut self.points.get_mut(&id).unwrap().payload;
                    payload.retain(|key, _| !keys.contains(&key.as_str()));
                }
                Ok(done)
            }
            ("POST", ["points", "scroll"]) => self.scroll(body),
            ("POST", ["points", "count"]) => {
                let n = self.passing(&body["filter"])?.len();
                Ok(json!({ "count": n }))
            }
            ("POST", ["points", "query"]) => self.query(body),
            ("POST", ["points", "query", "batch"]) => {
                let searches = body["searches"].as_array().into_iter().flatten();
                searches.map(|search| self.query(search)).collect()
            }
            _ => Err((404, String::new())),
        }
    }

    /// Changes the given settings. Builds an index again if its settings change.
    fn change(&mut self, body: &Value) -> Result<Value, Refused> {
        for of in ["vectors", "sparse_vectors"] {
            for (name, diff) in body[of].as_object().into_iter().flatten() {
                let known = &mut self.config[of][name];
                if known.is_null() {
                    return Err((400, format!("Wrong input: Not existing vector name error: {name}")));
                }
                for (key, value) in diff.as_object().into_iter().flatten() {
                    match (known[key].as_object_mut(), value.as_object()) {
                        (Some(known), Some(value)) => known.extend(value.clone()),
                        _ => known[key] = value.clone(),
                    }
                }
            }
        }
        for (name, number) in body["params"].as_object().into_iter().flatten() {
            self.config[name] = number.clone();
        }
        match &body["quantization_config"] {
            Value::Null => {}
            Value::String(word) if word == "Disabled" => self.config["quantization_config"] = Value::Null,
            given => self.config["quantization_config"] = given.clone(),
        }
        if body.get("shard_number").is_some() {
            return Err((400, "the number of shards is not changed like this".to_owned()));
        }
        self.is_optimizing = true;
        Ok(json!(true))
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
            if body["update_mode"] == "insert_only" && self.points.contains_key(id) {
                continue;
            }
            new.push((id.to_owned(), point));
        }
        self.points.extend(new);
        Ok(())
    }

    /// Returns the points that a change selects.
    fn chosen(&self, body: &Value) -> Result<Vec<String>, Refused> {
        match body["points"].as_array() {
            Some(ids) => {
                let ids = ids.iter().filter_map(Value::as_str);
                Ok(ids
                    .filter(|id| self.points.contains_key(*id))
                    .map(str::to_owned)
                    .collect())
            }
            None => Ok(self
                .passing(&body["filter"])?
                .into_iter()
                .map(|(id, _)| id.clone())
                .collect()),
        }
    }

    fn passing(&self, filter: &Value) -> Result<Vec<(&String, &Point)>, Refused> {
        let conditions = ["must", "must_not"]
            .into_iter()
            .filter_map(|name| filter[name].as_array());
        for condition in conditions.flatten().filter(|_| self.is_strict) {
            let key = condition["key"].as_str().or(condition["is_empty"]["key"].as_str());
            let is_indexed = |key: &str| self.indexed.iter().any(|index| index["field_name"] == key);
            if let Some(key) = key.filter(|key| !is_indexed(key)) {
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
                conditions.map(|condition| holds(condition, id, point)).collect()
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

fn holds(condition: &Value, id: &str, point: &Point) -> Result<bool, Refused> {
    if let Some(ids) = condition["has_id"].as_array() {
        return Ok(ids.iter().any(|known| known == id));
    }
    if let Some(key) = condition["is_empty"]["key"].as_str() {
        return Ok(point.payload.get(key).is_none_or(Value::is_null));
    }
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
