//! Uploads missing vectors to the store that the clones of a repository share. Several clones can upload at the same
//! time, in any order.
//!
//! Each clone records which vectors are known to be in the store ([`There`]), so an upload continues after its process
//! was killed. The record is valid as long as the store's generation stays the same.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use roaring::RoaringBitmap;

use crate::embed::ProfileId;
use crate::index::shared::{Put, SharedBatching, SharedError, SharedVectors, Standing, There};
use crate::index::{Row, RowFile, Segment, Segments};
use crate::model::{ChunkKey, Ctx, Stage, TreeId, chain};
use crate::sidecar::{FileError, Sidecar, State};

use super::catch_up::{CatchUpError, check_shared_probe};
use super::on_threads::try_batches;
use super::parts::{Parts, load_probe};
use super::take::keyed_docs;
use super::wanted::Wanted;

/// Interval between saves of the record.
const SAVE_EVERY: Duration = Duration::from_secs(2);

/// Uploads the vectors of one profile.
pub struct Sharing<'a> {
    /// The sidecar with the vectors.
    pub sidecar: &'a Sidecar,
    /// The shared store.
    pub shared: &'a dyn SharedVectors,
    /// The profile of the vectors.
    pub profile: ProfileId,
    /// The profile of the built-in model. Every segment has vectors of it.
    pub own_profile: &'a str,
    /// The recipe (the settings) of the indexed documents.
    pub recipe: u64,
    /// True if vectors are stored only in the shared store, not locally.
    pub is_remote_only: bool,
}

/// Determines which documents are looked up in the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Looks {
    /// Documents with a local vector.
    ForHere,
    /// All documents, because the store may have vectors that are not stored locally.
    ForAll,
}

/// The outcome of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shared {
    /// Number of documents of the trees with a local vector.
    pub n_docs: usize,
    /// Number of vectors uploaded.
    pub n_put: usize,
    /// Number of vectors that were already in the store, uploaded by another clone or by this one without a record.
    pub n_found: usize,
    /// Number of vectors not in the store.
    pub n_left: usize,
    /// The reason why the run stopped early.
    pub stopped: Option<String>,
    /// True if the run was interrupted.
    pub interrupted: bool,
    /// Duration of the run.
    pub elapsed: Duration,
}

impl Shared {
    /// Counts `n` of the vectors found in the store as uploaded by this run.
    pub fn with_own(mut self, n: usize) -> Self {
        let n = n.min(self.n_found);
        self.n_put += n;
        self.n_found -= n;
        self
    }

    /// Combines this outcome with that of an earlier run.
    pub(super) fn after(self, earlier: Option<Self>) -> Self {
        let Some(earlier) = earlier else { return self };
        Self {
            n_put: earlier.n_put + self.n_put,
            n_found: earlier.n_found + self.n_found,
            stopped: self.stopped.or(earlier.stopped),
            interrupted: earlier.interrupted || self.interrupted,
            elapsed: earlier.elapsed + self.elapsed,
            n_docs: earlier.n_docs.max(self.n_docs),
            n_left: self.n_left,
        }
    }
}

/// The reason why a run stopped.
#[derive(Debug, thiserror::Error)]
pub(super) enum Stopped {
    #[error(transparent)]
    Shared(#[from] SharedError),
    #[error("{0}")]
    Told(&'static str),
    #[error(transparent)]
    Local(#[from] CatchUpError),
}

impl From<FileError> for Stopped {
    fn from(error: FileError) -> Self {
        Self::Local(error.into())
    }
}

impl Sharing<'_> {
    /// Uploads the local vectors of the documents of `trees` that the store lacks.
    pub fn run(&self, trees: &[TreeId], ctx: Ctx<'_>) -> Result<Shared, CatchUpError> {
        let Some(_only) = self.sidecar.lock_embedding()? else {
            return Ok(Shared {
                stopped: Some("another process is making or sharing vectors".to_owned()),
                ..Shared::default()
            });
        };
        let looks = if self.is_remote_only {
            Looks::ForAll
        } else {
            Looks::ForHere
        };
        self.run_with(trees, &Parts::default(), looks, ctx)
    }

    /// Like [`Self::run`] for a caller that holds the lock. Uploads the vectors in `parts` too.
    pub(super) fn run_with(
        &self,
        trees: &[TreeId],
        parts: &Parts,
        looks: Looks,
        ctx: Ctx<'_>,
    ) -> Result<Shared, CatchUpError> {
        let started = Instant::now();
        let mut outcome = Shared::default();
        let Some(state) = self.sidecar.state()?.filter(|state| state.recipe == self.recipe) else {
            return Ok(outcome);
        };
        let segments = Segments::open_newest(self.sidecar, &state, self.own_profile)?;
        let segments = if self.is_own() {
            segments
        } else {
            segments.with_added(self.sidecar, &state, &self.profile.to_string())
        };
        let mut wanted = Wanted::of(trees, self.sidecar, &state, &segments)?;
        let here = Here {
            sharing: self,
            segments: &segments,
            parts,
            empty: self.drop_without_vector(&mut wanted, &segments, parts, looks),
        };
        outcome.n_docs = wanted.n_left;
        let done = self.share(&wanted, &state, &here, &mut outcome, ctx);
        match done {
            Ok(()) => {}
            Err(Stopped::Local(error)) => return Err(error),
            Err(Stopped::Told(why)) => outcome.stopped = Some(why.to_owned()),
            Err(Stopped::Shared(SharedError::Interrupted)) => outcome.interrupted = true,
            Err(Stopped::Shared(error)) => outcome.stopped = Some(chain(&error)),
        }
        outcome.interrupted |= ctx.is_interrupted();
        outcome.elapsed = started.elapsed();
        Ok(outcome)
    }

    /// Prepares the store for uploads of vectors of `dim` components while they are computed. The error says why the
    /// store cannot be used.
    pub(super) fn ready(&self, dim: usize, interrupt: &AtomicBool) -> Result<(), Stopped> {
        let standing = self.shared.prepare(dim, interrupt)?;
        self.check(&standing, dim, interrupt)
    }

    /// Removes documents without a vector to upload from `wanted`. Returns the removed documents for which the model
    /// returns no vector.
    fn drop_without_vector(
        &self,
        wanted: &mut Wanted,
        segments: &Segments,
        parts: &Parts,
        looks: Looks,
    ) -> RoaringBitmap {
        let mut empty = RoaringBitmap::new();
        for segment in segments.iter() {
            let rows = self.rows(segment);
            for row in 0..segment.lexical.n_docs() {
                let doc = segment.base_doc + row;
                if !wanted.docs.contains(doc) {
                    continue;
                }
                // The built-in model has embedded every document, so a missing row means that there is no vector.
                let stored = rows.as_ref().filter(|rows| self.is_own() || rows.has(row));
                let known = stored
                    .map(|rows| (rows, row))
                    .or_else(|| parts.find(segment.lexical.key(row)));
                match known.map(|(rows, row)| rows.has_content(row)) {
                    Some(true) => {}
                    Some(false) => {
                        empty.insert(doc);
                        wanted.drop_doc(doc);
                    }
                    None if looks == Looks::ForHere => wanted.drop_doc(doc),
                    None => {}
                }
            }
        }
        empty
    }

    /// Lists the chunks that are no longer in the local index, but whose vectors this clone uploaded or found in the
    /// store.
    pub fn gone(&self) -> Result<Vec<ChunkKey>, CatchUpError> {
        let Some(state) = self.sidecar.state()? else {
            return Ok(Vec::new());
        };
        let segments = Segments::open_newest(self.sidecar, &state, self.own_profile)?;
        let mut keys = There::keys(self.sidecar, self.profile, self.shared.repository())?;
        keys.retain(|key| segments.find_doc(*key).is_none());
        Ok(keys)
    }

    /// Deletes the vectors of [`Self::gone`] from the store, which invalidates the other clones' records. Returns the
    /// number of vectors, and an explanation if they could not be deleted.
    pub fn remove_gone(&self, interrupt: &AtomicBool) -> Result<(usize, Option<String>), CatchUpError> {
        let Some(_only) = self.sidecar.lock_embedding()? else {
            let why = "another process is making or sharing vectors".to_owned();
            return Ok((self.gone()?.len(), Some(why)));
        };
        let gone = self.gone()?;
        let removed = match self.shared.standing(interrupt) {
            Ok(Some(_)) if !gone.is_empty() => self.shared.remove(&gone, interrupt),
            // The vectors may still be on another server.
            Ok(None) if !gone.is_empty() => {
                let why = "the Qdrant server has no vectors of this repository: check qdrant.server and qdrant.prefix";
                return Ok((gone.len(), Some(why.to_owned())));
            }
            standing => standing.map(drop),
        };
        if let Err(error) = removed {
            return Ok((gone.len(), Some(chain(&error))));
        }
        // The record is reset, because other clones may have removed vectors at the same time.
        let repository = self.shared.repository();
        let mut keys = There::keys(self.sidecar, self.profile, repository)?;
        keys.retain(|key| gone.binary_search(key).is_err());
        if let Some(there) = There::load(self.sidecar, self.profile, repository)? {
            there.store(self.sidecar, &keys)?;
        }
        Ok((gone.len(), None))
    }

    fn share(
        &self,
        wanted: &Wanted,
        state: &State,
        here: &Here<'_>,
        outcome: &mut Shared,
        ctx: Ctx<'_>,
    ) -> Result<(), Stopped> {
        outcome.n_left = wanted.n_left;
        let dim = match (here.dim(), self.is_remote_only) {
            (None, true) => self.known_dim()?,
            (dim, _) => dim,
        };
        let standing = match dim {
            Some(dim) => Some(self.shared.prepare(dim, ctx.interrupt)?),
            None if self.is_remote_only => self.shared.standing(ctx.interrupt)?,
            None => None,
        };
        let Some(standing) = standing else { return Ok(()) };
        let dim = dim.unwrap_or(standing.dim);
        self.check(&standing, dim, ctx.interrupt)?;
        let mut known = self.known(&standing, state)?;
        known.is_changed |= !here.empty.is_subset(&known.there.empty);
        known.there.empty |= &here.empty;
        let keyed = keyed_docs(here.segments, |doc| {
            wanted.docs.contains(doc) && !known.there.docs.contains(doc) && !known.there.empty.contains(doc)
        });
        outcome.n_left = keyed.len();
        if keyed.is_empty() {
            if known.is_changed {
                known.save(self.sidecar)?;
            }
            return Ok(());
        }
        let course = Mutex::new(Course {
            known,
            promised: Vec::new(),
            n_put: 0,
            n_found: 0,
            saved: Instant::now(),
        });
        ctx.progress.begin(Stage::Sharing, keyed.len());
        let batching = self.shared.batching(dim);
        let batches: Vec<&[Keyed]> = keyed.chunks(batching.max_keys).collect();
        let shared = try_batches(&batches, batching.in_flight, ctx, |batch| {
            self.share_batch(batch, here, batching, &course, ctx.interrupt)
        });
        ctx.progress.end();
        let mut course = course.into_inner();
        let shared = shared.and_then(|()| self.check_promised(&mut course, batching, ctx.interrupt));
        (outcome.n_put, outcome.n_found) = (course.n_put, course.n_found);
        outcome.n_left = keyed.len() - course.n_put - course.n_found;
        self.finish(course, &standing, ctx.interrupt)?;
        shared
    }

    /// Checks whether vectors may be uploaded.
    fn check(&self, standing: &Standing, dim: usize, interrupt: &AtomicBool) -> Result<(), Stopped> {
        let unusable = |detail: String| {
            Stopped::Shared(SharedError::Unusable {
                backend: self.shared.name(),
                detail,
            })
        };
        if standing.dim != dim {
            return Err(unusable(format!(
                "the collection has vectors of {} components, expected {dim}",
                standing.dim
            )));
        }
        if standing.is_removing {
            return Err(Stopped::Told(
                "another clone is removing vectors from the store; if it was killed, run codescout index five \
                 minutes later",
            ));
        }
        // The built-in model is identical wherever its profile is the same, so it needs no probe.
        if self.is_own() {
            return Ok(());
        }
        let Some(known) = self.shared.probe(interrupt)? else {
            return match load_probe(self.sidecar, self.profile)
                .ok()
                .flatten()
                .and_then(|local| local.row(0))
            {
                Some(row) => Ok(self.shared.put_probe(&row, interrupt)?),
                None => Ok(()),
            };
        };
        check_shared_probe(self.sidecar, &known, self.profile, dim)?.map_err(unusable)
    }

    /// Returns the dimension that the store recorded for its vectors, even if all vectors have been removed.
    fn known_dim(&self) -> Result<Option<usize>, Stopped> {
        let there = There::load(self.sidecar, self.profile, self.shared.repository())?;
        Ok(there.map(|there| there.dim as usize))
    }

    /// Loads the record of vectors in the store. Returns an empty record if the store's generation or the document
    /// numbers have changed.
    fn known(&self, standing: &Standing, state: &State) -> Result<Known, Stopped> {
        let repository = self.shared.repository();
        let there = There::load(self.sidecar, self.profile, repository)?;
        let keys = There::keys(self.sidecar, self.profile, repository)?;
        // Documents without a vector do not depend on the store.
        let empty = there.as_ref().filter(|there| there.epoch == state.epoch);
        let empty = empty.map(|there| there.empty.clone()).unwrap_or_default();
        let there = there.filter(|there| {
            // Within a generation the number of vectors only grows. A smaller number means that vectors were lost.
            let has_all = standing.n_vectors >= there.n_vectors.max(there.docs.len());
            (there.generation, there.epoch) == (standing.generation, state.epoch) && has_all
        });
        // `n_vectors` also serves to estimate how many more results to request. An estimate need not be exact, so a
        // small deviation is not saved.
        let is_close = |there: &There| (standing.n_vectors - there.n_vectors) * 8 <= standing.n_vectors;
        let is_changed = !there.as_ref().is_some_and(is_close);
        Ok(Known {
            there: There {
                profile: self.profile,
                repository,
                generation: standing.generation,
                epoch: state.epoch,
                n_vectors: standing.n_vectors,
                dim: standing.dim as u32,
                docs: there.map(|there| there.docs).unwrap_or_default(),
                empty,
            },
            keys,
            is_changed,
        })
    }

    /// Looks up some documents in the store and uploads missing vectors.
    fn share_batch(
        &self,
        batch: &[Keyed],
        here: &Here<'_>,
        batching: SharedBatching,
        course: &Mutex<Course>,
        interrupt: &AtomicBool,
    ) -> Result<(), Stopped> {
        let keys: Vec<ChunkKey> = batch.iter().map(|(_, key)| *key).collect();
        let is_there = self.shared.contains(&keys, interrupt)?;
        let of = |wanted: bool| {
            let found = batch.iter().zip(&is_there);
            found
                .filter(move |(_, is_there)| **is_there == wanted)
                .map(|(keyed, _)| *keyed)
        };
        let found: Vec<Keyed> = of(true).collect();
        if !found.is_empty() {
            let mut course = course.lock();
            course.n_found += found.len();
            course.add(&found, self.sidecar)?;
        }
        let missing: Vec<(Keyed, RowFile, u32)> = of(false).filter_map(|keyed| here.find(keyed)).collect();
        for part in missing.chunks(batching.max_rows) {
            let rows = part.iter();
            let rows: Vec<(ChunkKey, Row)> = rows
                .filter_map(|((_, key), rows, row)| Some((*key, rows.row(*row)?)))
                .collect();
            let part: Vec<Keyed> = part.iter().map(|(keyed, ..)| *keyed).collect();
            let put = self.shared.put(&rows, interrupt)?;
            let mut course = course.lock();
            match put {
                Put::Done => course.add_put(&part, self.sidecar)?,
                Put::Promised => course.promised.extend(part),
            }
        }
        Ok(())
    }

    /// Counts the vectors that the server had accepted but not stored, and has stored by now.
    fn check_promised(
        &self,
        course: &mut Course,
        batching: SharedBatching,
        interrupt: &AtomicBool,
    ) -> Result<(), Stopped> {
        let promised = std::mem::take(&mut course.promised);
        let mut is_lacking = false;
        for batch in promised.chunks(batching.max_keys) {
            let keys: Vec<ChunkKey> = batch.iter().map(|(_, key)| *key).collect();
            let is_there = self.shared.contains(&keys, interrupt)?;
            let found = batch.iter().zip(&is_there).filter(|(_, is_there)| **is_there);
            let found: Vec<Keyed> = found.map(|(keyed, _)| *keyed).collect();
            is_lacking |= found.len() < batch.len();
            course.add_put(&found, self.sidecar)?;
        }
        if is_lacking {
            Err(Stopped::Told(
                "the server accepted vectors but does not have them yet; the next codescout index checks again",
            ))
        } else {
            Ok(())
        }
    }

    /// Saves the record, unless vectors may have been removed from the store during the run.
    fn finish(&self, mut course: Course, before: &Standing, interrupt: &AtomicBool) -> Result<(), Stopped> {
        let known = &mut course.known;
        // An interrupted run skips this request.
        if !interrupt.load(Ordering::Relaxed)
            && let Ok(Some(now)) = self.shared.standing(interrupt)
        {
            if now.generation != before.generation || now.is_removing || now.n_vectors < before.n_vectors {
                return Err(Stopped::Told(
                    "vectors were removed, moved or lost in the store meanwhile; the next codescout index checks again",
                ));
            }
            known.there.n_vectors = now.n_vectors;
        }
        known.save(self.sidecar)?;
        Ok(())
    }

    fn is_own(&self) -> bool {
        self.profile.to_string() == self.own_profile
    }

    fn rows(&self, segment: &Segment) -> Option<RowFile> {
        if self.is_own() {
            segment.vectors.clone().map(RowFile::Dense)
        } else {
            segment.rows(self.profile)
        }
    }
}

/// The vectors stored locally.
struct Here<'a> {
    sharing: &'a Sharing<'a>,
    segments: &'a Segments,
    parts: &'a Parts,
    /// Documents for which the model returns no vector.
    empty: RoaringBitmap,
}

impl Here<'_> {
    fn dim(&self) -> Option<usize> {
        let of_segments = || self.segments.iter().find_map(|segment| self.sharing.rows(segment));
        of_segments().or(self.parts.like().cloned()).map(|rows| rows.dim())
    }

    /// Finds the vector of a document.
    fn find(&self, (doc, key): Keyed) -> Option<(Keyed, RowFile, u32)> {
        let (segment, row) = self.segments.of_doc(doc)?;
        let of_segment = self.sharing.rows(segment).map(|rows| (rows, row));
        let of_part = || self.parts.find(key).map(|(rows, row)| (rows.clone(), row));
        let has_content = |(rows, row): &(RowFile, u32)| rows.has_content(*row);
        let (rows, row) = of_segment.filter(has_content).or_else(of_part).filter(has_content)?;
        Some(((doc, key), rows, row))
    }
}

type Keyed = (u32, ChunkKey);

/// The record of vectors in the store, as loaded and updated by a run.
struct Known {
    there: There,
    /// The keys of chunks in the store, unsorted.
    keys: Vec<ChunkKey>,
    /// True if the record differs from the saved one.
    is_changed: bool,
}

impl Known {
    fn save(&mut self, sidecar: &Sidecar) -> Result<(), FileError> {
        self.keys.sort_unstable();
        self.keys.dedup();
        self.there.store(sidecar, &self.keys)
    }
}

/// The progress of a run, shared by its threads.
struct Course {
    known: Known,
    promised: Vec<Keyed>,
    n_put: usize,
    n_found: usize,
    saved: Instant,
}

impl Course {
    fn add_put(&mut self, put: &[Keyed], sidecar: &Sidecar) -> Result<(), FileError> {
        self.n_put += put.len();
        // If another clone uploads the same vectors at the same time, this counts too many. Then the next run looks
        // everything up again.
        self.known.there.n_vectors += put.len() as u64;
        self.add(put, sidecar)
    }

    fn add(&mut self, there: &[Keyed], sidecar: &Sidecar) -> Result<(), FileError> {
        self.known.there.docs.extend(there.iter().map(|(doc, _)| *doc));
        self.known.keys.extend(there.iter().map(|(_, key)| *key));
        if self.saved.elapsed() >= SAVE_EVERY {
            self.known.save(sidecar)?;
            self.saved = Instant::now();
        }
        Ok(())
    }
}
