//! Creates the collection of a profile, and applies changed settings to it.

use std::collections::HashSet;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::super::client::{Call, Request};
use super::super::failure::RemoteError;
use super::points::random;
use super::wire::{self, Aliases, Collection, CollectionConfig, DENSE, GENERATION, SPARSE, Scrolled, Server, Update};
use super::{BASE_RESPONSE_BYTES, PointId, Qdrant, to_hex};
use crate::index::RowKind;
use crate::index::shared::{SharedError, SharedVectors, Standing};

/// Time limit for cleaning up after a failed run.
pub(super) const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// Result of probing a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QdrantProbe {
    /// Version of the server.
    pub version: String,
    /// Duration of one request.
    pub elapsed: Duration,
    /// Status of the collection, `green` if it is healthy; `None` if there is no collection.
    pub collection: Option<String>,
    /// Dimension of the collection's vectors, 0 for sparse vectors; `None` if there is no collection.
    pub dim: Option<usize>,
    /// False if the collection was created with other settings.
    pub is_as_set: bool,
    /// State of the repository's vectors; `None` if none were stored.
    pub standing: Option<Standing>,
}

/// How changed settings were applied to a collection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SettingsApplied {
    /// Changed in place.
    InPlace {
        /// Name of the collection.
        collection: String,
    },
    /// Copied to a new collection.
    Copied {
        /// Name of the new collection.
        collection: String,
        /// Number of points, including those of other repositories.
        n_points: usize,
    },
}

/// Maximum number of passes to copy concurrent changes of other clones. After the last pass, the new collection is used
/// in any case.
const MAX_ROUNDS: usize = 8;
/// Ids per page of a scroll.
const IDS_PER_PAGE: usize = 1000;

impl Qdrant {
    /// Probes the server and its collection. The first request and all others together may each take `timeout`. Stops
    /// when `interrupt` is set.
    pub fn examine(&self, timeout: Duration, interrupt: &AtomicBool) -> Result<QdrantProbe, SharedError> {
        let started = Instant::now();
        let until = Some(started + timeout * 2);
        let call = Call {
            deadline: Some(started + timeout),
            interrupt,
            retries: false,
        };
        // This response has no envelope, unlike all others.
        let server: Server = self
            .client
            .send(&Request::get("/").with_max_response_bytes(BASE_RESPONSE_BYTES), &call)
            .map_err(|error| self.failed(error))?;
        let elapsed = started.elapsed();
        let collection = self.collection(until, interrupt).map_err(|error| self.failed(error))?;
        let standing = collection
            .as_ref()
            .map(|collection| self.standing_in(collection, until, interrupt));
        let dim = collection.as_ref().map(|collection| self.dim_of(collection));
        Ok(QdrantProbe {
            version: self.excerpt(&server.version),
            elapsed,
            collection: collection.as_ref().map(|collection| self.excerpt(&collection.status)),
            dim: dim.transpose()?,
            is_as_set: collection
                .as_ref()
                .is_none_or(|collection| self.is_as_set(&collection.config)),
            standing: standing.transpose()?.flatten(),
        })
    }

    /// Applies the collection options to the profile's collection. Changes it in place, or, if the number of shards
    /// differs, copies it to a new collection that replaces it atomically. Returns `None` if there is no collection.
    pub fn apply_settings(&self, interrupt: &AtomicBool) -> Result<Option<SettingsApplied>, SharedError> {
        let failed = |error| self.failed(error);
        let Some(old) = self.target(interrupt).map_err(failed)? else {
            return Ok(None);
        };
        let Some(collection) = self.collection(None, interrupt).map_err(failed)? else {
            return Err(self.unusable("an alias without a collection"));
        };
        let dim = self.dim_of(&collection)?;
        let shards = self.options.collection.shards;
        if shards.is_none_or(|shards| collection.config.params.shard_number == Some(shards)) {
            let body = wire::changed_collection(self.kind, &self.options);
            let request = Request::patch(&format!("/collections/{old}"), &body);
            self.send::<Value>(&request, interrupt).map_err(failed)?;
            return Ok(Some(SettingsApplied::InPlace { collection: old }));
        }
        // The name is random, so that no collection of another clone can have it.
        let new = format!("{}-{}", self.alias(), to_hex(&random()[..8]));
        let mut copy = Copying {
            qdrant: self,
            from: &old,
            to: &new,
            max_rows: self.batching(dim).max_rows,
            generation: to_hex(&random()),
            copied: HashSet::new(),
        };
        if let Err(error) = self.fill(&mut copy, dim, interrupt) {
            if let Err(left) =
                self.delete_collection(&new, Some(Instant::now() + LONGEST_WAIT), &AtomicBool::new(false))
            {
                tracing::warn!("cannot delete the unused collection {new}: {left}");
            }
            return Err(error);
        }
        // If this request gets no response, it is unknown which collection is in use, so both are kept.
        self.point_alias(&new, interrupt).map_err(failed)?;
        // Clones that resolved the alias earlier may have added points to the old collection. They read the new one
        // after they notice its different generation.
        copy.round(Stage::InUse, interrupt)?;
        let n_points = copy.copied.len();
        self.delete_collection(&old, None, interrupt).map_err(failed)?;
        Ok(Some(SettingsApplied::Copied {
            collection: new,
            n_points,
        }))
    }

    /// Creates the new collection of a copy and copies the points of the old collection to it.
    fn fill(&self, copy: &mut Copying<'_>, dim: usize, interrupt: &AtomicBool) -> Result<(), SharedError> {
        let failed = |error| self.failed(error);
        let (old, new) = (copy.from, copy.to);
        let kept = |why: &str| self.unusable(format!("{why}; {old} is unchanged and still in use"));
        self.make_collection(new, dim, interrupt).map_err(failed)?;
        for _ in 0..MAX_ROUNDS {
            if copy.round(Stage::Aside, interrupt)? == 0 {
                break;
            }
        }
        // No other clone writes to the new collection yet.
        if !self.poll_until(None, interrupt, || {
            Ok(self.count(new, &json!({}), interrupt)? == copy.copied.len() as u64)
        })? {
            return Err(kept("an acknowledgement for copied vectors that are missing"));
        }
        if self.target(interrupt).map_err(failed)?.as_deref() != Some(old) {
            return Err(kept(
                "another collection under the alias, as another clone copied it meanwhile",
            ));
        }
        Ok(())
    }

    /// Creates the first collection. If another clone has created or replaced the collection meanwhile, uses that one.
    pub(super) fn create_first_collection(&self, dim: usize, interrupt: &AtomicBool) -> Result<(), RemoteError> {
        let name = format!("{}-1", self.alias());
        self.make_collection(&name, dim, interrupt)?;
        match self.target(interrupt)? {
            Some(_) => Ok(()),
            None => self.point_alias(&name, interrupt),
        }
    }

    /// Returns the collection, if it exists.
    pub(super) fn collection(
        &self,
        deadline: Option<Instant>,
        interrupt: &AtomicBool,
    ) -> Result<Option<Collection>, RemoteError> {
        match self.send_until(deadline, &Request::get(&self.path("")), interrupt) {
            Err(error) if error.status() == Some(404) => Ok(None),
            found => found.map(Some),
        }
    }

    fn is_as_set(&self, config: &CollectionConfig) -> bool {
        let shards = self.options.collection.shards;
        let has_shards = shards.is_none_or(|shards| config.params.shard_number == Some(shards));
        has_shards && wire::is_as_set(self.kind, config, &self.options)
    }

    /// Returns the dimension of a collection's vectors, or 0 for sparse vectors. Fails if the collection has no vectors
    /// of the expected kind.
    pub(super) fn dim_of(&self, collection: &Collection) -> Result<usize, SharedError> {
        let params = &collection.config.params;
        let dim = match self.kind {
            RowKind::Dense => {
                let dense = params.vectors.as_ref().and_then(|vectors| vectors.get(DENSE));
                dense.filter(|dense| dense.distance == "Cosine").map(|dense| dense.size)
            }
            RowKind::Sparse => {
                let sparse = params.sparse_vectors.as_ref().and_then(|vectors| vectors.get(SPARSE));
                sparse.map(|_| 0)
            }
        };
        match dim {
            Some(dim) => Ok(dim),
            None => Err(self.unusable(format!(
                "a collection {} without the expected vectors: set qdrant.prefix to a name that nothing else uses",
                self.alias()
            ))),
        }
    }

    /// Creates a collection. Succeeds if another clone has just created it, because it is identical.
    fn make_collection(&self, name: &str, dim: usize, interrupt: &AtomicBool) -> Result<(), RemoteError> {
        let body = wire::new_collection(self.kind, dim, &self.options);
        match self.send::<Value>(&Request::put(&format!("/collections/{name}"), &body), interrupt) {
            Err(error) if already_exists(&error) => {}
            made => _ = made?,
        }
        let path = format!("/collections/{name}/index?wait=true");
        self.send::<Update>(&Request::put(&path, &wire::repository_index()), interrupt)?;
        Ok(())
    }

    fn delete_collection(
        &self,
        name: &str,
        deadline: Option<Instant>,
        interrupt: &AtomicBool,
    ) -> Result<(), RemoteError> {
        let path = format!("/collections/{name}");
        match self.send_until::<Value>(deadline, &Request::delete(&path), interrupt) {
            Err(error) if error.status() == Some(404) => Ok(()),
            deleted => deleted.map(drop),
        }
    }

    /// Points the alias to the collection `name`, replacing its previous target in the same request.
    fn point_alias(&self, name: &str, interrupt: &AtomicBool) -> Result<(), RemoteError> {
        let alias = self.alias();
        let create = json!({ "create_alias": { "collection_name": name, "alias_name": alias } });
        let actions = match self.target(interrupt)? {
            Some(_) => json!([{ "delete_alias": { "alias_name": alias } }, create]),
            None => json!([create]),
        };
        let request = Request::post("/collections/aliases", &json!({ "actions": actions }));
        self.send::<Value>(&request, interrupt).map(drop)
    }

    /// Returns the collection that the alias points to.
    fn target(&self, interrupt: &AtomicBool) -> Result<Option<String>, RemoteError> {
        let all: Aliases = self.send(&Request::get("/aliases"), interrupt)?;
        let alias = self.alias();
        let found = all.aliases.into_iter().find(|known| known.alias_name == alias);
        Ok(found.map(|known| known.collection_name))
    }
}

/// Stage of a copy.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The new collection is not yet in use.
    Aside,
    /// The new collection is in use. Missing points are added to it, but no existing point is changed.
    InUse,
}

/// Copies a collection that other clones may be changing.
struct Copying<'a> {
    qdrant: &'a Qdrant,
    from: &'a str,
    to: &'a str,
    max_rows: usize,
    /// The generation of all repositories in the new collection. It differs from the old one, so that all clones check
    /// again which vectors exist.
    generation: String,
    copied: HashSet<PointId>,
}

impl Copying<'_> {
    /// Copies missing points of all repositories with all their vectors, and deletes points that no longer exist.
    /// Returns the number of points added or deleted. Uses no filter, because a server may require an index on filtered
    /// fields.
    fn round(&mut self, stage: Stage, interrupt: &AtomicBool) -> Result<usize, SharedError> {
        let (mut found, mut n_changed) = (HashSet::new(), 0);
        let mut offset = Value::Null;
        loop {
            let body = json!({ "limit": IDS_PER_PAGE, "offset": offset, "with_payload": true, "with_vector": false });
            let page: Scrolled = self.ask(self.from, "scroll", &body, interrupt)?;
            let mut wanted = Vec::new();
            for record in &page.points {
                let id = self.qdrant.point_id(&record.id)?;
                let is_new = self.copied.insert(id);
                let is_own = record
                    .payload
                    .as_ref()
                    .is_some_and(|payload| payload.contains_key(GENERATION));
                n_changed += usize::from(is_new);
                found.insert(id);
                // The repository's own point may have changed since it was copied.
                if is_new || is_own && stage == Stage::Aside {
                    wanted.push(id);
                }
            }
            for ids in wanted.chunks(self.max_rows) {
                self.put(ids, interrupt)?;
            }
            match page.next_page_offset {
                None | Some(Value::Null) => break,
                Some(next) if page.points.is_empty() || next == offset => {
                    return Err(self.qdrant.unusable("an endless list of pages"));
                }
                Some(next) => offset = next,
            }
        }
        let gone: Vec<PointId> = self.copied.difference(&found).copied().collect();
        if stage == Stage::Aside && !gone.is_empty() {
            for ids in gone.chunks(IDS_PER_PAGE) {
                let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
                let _: Update = self.ask(self.to, "delete?wait=true", &json!({ "points": ids }), interrupt)?;
            }
            n_changed += gone.len();
            self.copied = found;
        }
        Ok(n_changed)
    }

    fn put(&self, ids: &[PointId], interrupt: &AtomicBool) -> Result<(), SharedError> {
        let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
        let body = json!({ "ids": ids, "with_payload": true, "with_vector": true });
        let mut points: Vec<Value> = self.ask(self.from, "", &body, interrupt)?;
        for point in &mut points {
            if let Some(generation) = point.pointer_mut("/payload/generation") {
                *generation = self.generation.as_str().into();
            }
        }
        let request = Request::put(
            &format!("/collections/{}/points?wait=true", self.to),
            &json!({ "points": points }),
        );
        let put = self.qdrant.send::<Update>(&request, interrupt);
        put.map(drop).map_err(|error| self.qdrant.failed(error))
    }

    /// Sends a POST request to the path `rest` below `/points/` of a collection.
    fn ask<A: DeserializeOwned>(
        &self,
        collection: &str,
        rest: &str,
        body: &Value,
        interrupt: &AtomicBool,
    ) -> Result<A, SharedError> {
        let path = format!("/collections/{collection}/points/{rest}");
        let path = if rest.contains('?') {
            path
        } else {
            self.qdrant.consistent(path.trim_end_matches('/').to_owned())
        };
        let answer = self.qdrant.send(&Request::post(&path, body), interrupt);
        answer.map_err(|error| self.qdrant.failed(error))
    }
}

fn already_exists(error: &RemoteError) -> bool {
    match error.status() {
        Some(409) => true,
        Some(400) => error.to_string().contains("already exists"),
        _ => false,
    }
}
