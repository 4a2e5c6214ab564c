//! The collection of a profile: how it is made, and how another takes its place.

use std::collections::HashSet;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::super::client::{Call, Request};
use super::super::failure::RemoteError;
use super::points::random;
use super::wire::{self, Aliases, Collection, CollectionConfig, DENSE, GENERATION, SPARSE, Scrolled, Server, Update};
use super::{FEW_BYTES, PointId, Qdrant, to_hex};
use crate::index::RowKind;
use crate::index::shared::{SharedError, SharedVectors, Standing};

/// For leaving no trace of a run that failed.
pub(super) const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// What a server said when it was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QdrantFound {
    /// Its version.
    pub version: String,
    /// For one request.
    pub elapsed: Duration,
    /// `green`, or what is the matter with the collection; `None` if there is none.
    pub collection: Option<String>,
    /// Components of the vectors that the collection takes, 0 for sparse ones; `None` if there is none.
    pub dim: Option<usize>,
    /// Returns false if the collection was made with other settings than these.
    pub is_as_set: bool,
    /// How things stand, if anything was put.
    pub standing: Option<Standing>,
}

/// A collection that has other settings now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resettled {
    /// It was changed where it is.
    InPlace {
        /// Its name.
        collection: String,
    },
    /// Its points were copied to a new one.
    Copied {
        /// The name of the new one.
        collection: String,
        /// Points, those of other repositories included.
        n_points: usize,
    },
}

/// How often what others have changed meanwhile is copied too, before the new collection takes the place of the old one all the same.
const MAX_ROUNDS: usize = 8;
/// Points of which the ids are asked for at once.
const IDS_PER_PAGE: usize = 1000;

impl Qdrant {
    /// Looks at the server, which has `timeout` for the first answer, and as much again for all others; until the flag is set.
    pub fn examine(&self, timeout: Duration, interrupt: &AtomicBool) -> Result<QdrantFound, SharedError> {
        let started = Instant::now();
        let until = Some(started + timeout * 2);
        let call = Call {
            deadline: Some(started + timeout),
            interrupt,
            retries: false,
        };
        // Not in an envelope like all others.
        let server: Server = self
            .client
            .send(&Request::get("/").answered_within(FEW_BYTES), &call)
            .map_err(|error| self.failed(error))?;
        let elapsed = started.elapsed();
        let collection = self.collection(until, interrupt).map_err(|error| self.failed(error))?;
        let standing = collection
            .as_ref()
            .map(|collection| self.standing_in(collection, until, interrupt));
        let dim = collection.as_ref().map(|collection| self.dim_of(collection));
        Ok(QdrantFound {
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

    /// Gives the collection of the profile the settings of the options: in place, or, where it has another number of shards, by a copy
    /// that takes its place in a single step. `None` if there is no collection.
    pub fn resettle(&self, interrupt: &AtomicBool) -> Result<Option<Resettled>, SharedError> {
        let failed = |error| self.failed(error);
        let Some(old) = self.target(interrupt).map_err(failed)? else {
            return Ok(None);
        };
        let Some(collection) = self.collection(None, interrupt).map_err(failed)? else {
            return Err(self.unusable("no collection behind its alias"));
        };
        let dim = self.dim_of(&collection)?;
        let shards = self.options.collection.shards;
        if shards.is_none_or(|shards| collection.config.params.shard_number == Some(shards)) {
            let body = wire::changed_collection(self.kind, &self.options);
            let request = Request::patch(&format!("/collections/{old}"), &body);
            self.send::<Value>(&request, interrupt).map_err(failed)?;
            return Ok(Some(Resettled::InPlace { collection: old }));
        }
        // Nobody else makes one of this name, so nobody else's is ever filled or deleted.
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
                tracing::warn!("the collection {new} is of no use and still there: {left}");
            }
            return Err(error);
        }
        // Who gets no answer to this does not know which of the two is in use: both stay.
        self.point_alias(&new, interrupt).map_err(failed)?;
        // Who had read the alias before may have put more. Whoever did looks again, as the generation is another.
        copy.round(Stage::InUse, interrupt)?;
        let n_points = copy.copied.len();
        self.delete_collection(&old, None, interrupt).map_err(failed)?;
        Ok(Some(Resettled::Copied {
            collection: new,
            n_points,
        }))
    }

    /// Makes the collection that a copy goes to, with all that the old one has, ready to take its place.
    fn fill(&self, copy: &mut Copying<'_>, dim: usize, interrupt: &AtomicBool) -> Result<(), SharedError> {
        let failed = |error| self.failed(error);
        let (old, new) = (copy.from, copy.to);
        let kept = |why: &str| self.unusable(format!("{why}: {old} stays in use as it is"));
        self.make_collection(new, dim, interrupt).map_err(failed)?;
        for _ in 0..MAX_ROUNDS {
            if copy.round(Stage::Aside, interrupt)? == 0 {
                break;
            }
        }
        // Nobody else writes to it yet.
        if !self.comes_true(None, interrupt, || {
            Ok(self.count(new, &json!({}), interrupt)? == copy.copied.len() as u64)
        })? {
            return Err(kept("a promise to take copied vectors and does not have them"));
        }
        if self.target(interrupt).map_err(failed)?.as_deref() != Some(old) {
            return Err(kept(
                "another collection in its place, as somebody else copied it meanwhile",
            ));
        }
        Ok(())
    }

    /// Makes the first collection. Where others have made it meanwhile, and another perhaps that took its place, theirs stays.
    pub(super) fn make_first(&self, dim: usize, interrupt: &AtomicBool) -> Result<(), RemoteError> {
        let name = format!("{}-1", self.alias());
        self.make_collection(&name, dim, interrupt)?;
        match self.target(interrupt)? {
            Some(_) => Ok(()),
            None => self.point_alias(&name, interrupt),
        }
    }

    /// What the collection is, if there is one.
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

    /// The dimension of a collection's vectors, if they are of our kind; 0 for sparse ones.
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
                "a collection {} without vectors of our kind: set qdrant.prefix to a name that nobody else uses",
                self.alias()
            ))),
        }
    }

    /// Two clones may make it at once: it is the same.
    fn make_collection(&self, name: &str, dim: usize, interrupt: &AtomicBool) -> Result<(), RemoteError> {
        let body = wire::new_collection(self.kind, dim, &self.options);
        match self.send::<Value>(&Request::put(&format!("/collections/{name}"), &body), interrupt) {
            Err(error) if is_there_already(&error) => {}
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

    /// Has the alias stand for `name`, whatever it stood for before.
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

    /// The collection that the alias stands for.
    fn target(&self, interrupt: &AtomicBool) -> Result<Option<String>, RemoteError> {
        let all: Aliases = self.send(&Request::get("/aliases"), interrupt)?;
        let alias = self.alias();
        let found = all.aliases.into_iter().find(|known| known.alias_name == alias);
        Ok(found.map(|known| known.collection_name))
    }
}

/// What a copy is made for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The new collection is nobody's yet.
    Aside,
    /// It is in use, so nothing in it is changed: only what is missing is put.
    InUse,
}

/// A collection that is copied to another while others change it.
struct Copying<'a> {
    qdrant: &'a Qdrant,
    from: &'a str,
    to: &'a str,
    max_rows: usize,
    /// What all repositories have in the new one, so that everybody looks again at what is there.
    generation: String,
    copied: HashSet<PointId>,
}

impl Copying<'_> {
    /// Copies what the one has and the other has not, whoever's it is and whatever vectors it has, and deletes what is gone. Returns how
    /// many points that were. Filters nothing, so that no server asks for an index of what is filtered by.
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
                // What it says of a repository may be another by now.
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
                    return Err(self.qdrant.unusable("pages without an end"));
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

    /// Posts to a path behind `/points/` of a collection.
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

fn is_there_already(error: &RemoteError) -> bool {
    match error.status() {
        Some(409) => true,
        Some(400) => error.to_string().contains("already exists"),
        _ => false,
    }
}
