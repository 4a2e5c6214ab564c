//! The collection of a profile: how it is made, and how another takes its place.

use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::super::client::{Call, Request};
use super::super::failure::RemoteError;
use super::points::random;
use super::wire::{self, Aliases, Collection, DENSE, SPARSE, Scrolled, Server, Update};
use super::{FEW_BYTES, Qdrant, to_hex};
use crate::index::RowKind;
use crate::index::shared::{SharedBatching, SharedError, SharedVectors, Standing};

/// For the first answer of a run, and for leaving no trace of one that failed.
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
    /// How things stand, if anything was put.
    pub standing: Option<Standing>,
}

/// A collection whose points were moved to a new one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moved {
    /// The name of the new one.
    pub collection: String,
    /// Points, those of other repositories included.
    pub n_points: u64,
}

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
        Ok(QdrantFound {
            version: self.excerpt(&server.version),
            elapsed,
            collection: collection.as_ref().map(|collection| self.excerpt(&collection.status)),
            standing: standing.transpose()?.flatten(),
        })
    }

    /// Makes all points of the profile stand in a new collection, made as the options say now, which then takes the place of the old
    /// one in a single step. `None` if there is none.
    pub fn move_collection(&self, interrupt: &AtomicBool) -> Result<Option<Moved>, SharedError> {
        let failed = |error| self.failed(error);
        let Some(old) = self.target(interrupt).map_err(failed)? else {
            return Ok(None);
        };
        let Some(collection) = self.collection(None, interrupt).map_err(failed)? else {
            return Err(self.unusable("no collection behind its alias"));
        };
        let dim = self.dim_of(&collection)?;
        // Nobody else makes one of this name, so nobody else's is ever filled or deleted.
        let new = format!("{}-{}", self.alias(), to_hex(&random()[..8]));
        let n_points = match self.fill(&old, &new, dim, interrupt) {
            Ok(n_points) => n_points,
            Err(error) => {
                if let Err(left) =
                    self.delete_collection(&new, Some(Instant::now() + LONGEST_WAIT), &AtomicBool::new(false))
                {
                    tracing::warn!("the collection {new} is of no use and still there: {left}");
                }
                return Err(error);
            }
        };
        // Who gets no answer to this does not know which of the two is in use: both stay.
        self.point_alias(&new, interrupt).map_err(failed)?;
        self.delete_collection(&old, None, interrupt).map_err(failed)?;
        Ok(Some(Moved {
            collection: new,
            n_points,
        }))
    }

    /// Makes a collection `new` with all that `old` has, ready to take its place. Returns how many points that is.
    fn fill(&self, old: &str, new: &str, dim: usize, interrupt: &AtomicBool) -> Result<u64, SharedError> {
        let failed = |error| self.failed(error);
        let kept = |why: &str| self.unusable(format!("{why}: {old} stays in use as it is"));
        self.make_collection(new, dim, interrupt).map_err(failed)?;
        let n_points = self.copy_points(old, new, dim, interrupt)?;
        if !self.comes_true(None, interrupt, || {
            Ok(self.count(new, &json!({}), interrupt)? == n_points)
        })? {
            return Err(kept("a promise to take copied vectors and does not have them"));
        }
        // What others put to the old one from here on is lost: all look again as soon as the new one is there.
        let generation = to_hex(&random());
        self.renew_generations(new, &generation, interrupt).map_err(failed)?;
        let is_old = json!({ "must_not": [
            { "is_empty": { "key": wire::GENERATION } },
            { "key": wire::GENERATION, "match": { "value": generation } },
        ] });
        if !self.comes_true(None, interrupt, || Ok(self.count(new, &is_old, interrupt)? == 0))? {
            return Err(kept("a promise to renew generations and has the former ones"));
        }
        let all = json!({});
        if self.count(old, &all, interrupt)? != self.count(new, &all, interrupt)?
            || self.target(interrupt).map_err(failed)?.as_deref() != Some(old)
        {
            return Err(kept(
                "other vectors than were copied, as somebody changed them meanwhile",
            ));
        }
        Ok(n_points)
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
        // Is asked first by all, so it is what shows that the server is away.
        let deadline = deadline.unwrap_or_else(|| Instant::now() + LONGEST_WAIT);
        match self.send_until(Some(deadline), &Request::get(&self.path("")), interrupt) {
            Err(error) if error.status() == Some(404) => Ok(None),
            found => found.map(Some),
        }
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
        let body = wire::new_collection(self.kind, dim, &self.options.collection);
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

    /// Copies points as they are, whoever's they are and whatever vectors they have.
    fn copy_points(&self, from: &str, to: &str, dim: usize, interrupt: &AtomicBool) -> Result<u64, SharedError> {
        let SharedBatching { max_rows, .. } = self.batching(dim);
        let (mut n_points, mut offset) = (0, Value::Null);
        loop {
            let body = json!({ "limit": max_rows, "offset": offset, "with_payload": true, "with_vector": true });
            let path = self.consistent(format!("/collections/{from}/points/scroll"));
            let request = Request::post(&path, &body);
            let page: Scrolled = self.send(&request, interrupt).map_err(|error| self.failed(error))?;
            let is_empty = page.points.is_empty();
            if !is_empty {
                n_points += page.points.len() as u64;
                let points = json!({ "points": page.points });
                let request = Request::put(&format!("/collections/{to}/points?wait=true"), &points);
                let _: Update = self.send(&request, interrupt).map_err(|error| self.failed(error))?;
            }
            match page.next_page_offset {
                None | Some(Value::Null) => return Ok(n_points),
                Some(next) if is_empty || next == offset => {
                    return Err(self.unusable("pages without an end"));
                }
                Some(next) => offset = next,
            }
        }
    }

    /// Gives all repositories of a collection new generations.
    fn renew_generations(&self, name: &str, generation: &str, interrupt: &AtomicBool) -> Result<(), RemoteError> {
        let filter = json!({ "must_not": [{ "is_empty": { "key": wire::GENERATION } }] });
        let body = json!({ "payload": { (wire::GENERATION): generation }, "filter": filter });
        let request = Request::post(&format!("/collections/{name}/points/payload?wait=true"), &body);
        self.send::<Update>(&request, interrupt).map(drop)
    }
}

fn is_there_already(error: &RemoteError) -> bool {
    match error.status() {
        Some(409) => true,
        Some(400) => error.to_string().contains("already exists"),
        _ => false,
    }
}
