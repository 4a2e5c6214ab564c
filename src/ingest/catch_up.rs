//! Computes missing vectors of external models, dense or sparse, for the documents of indexed trees. The embedder may
//! be remote, slow or unavailable.
//!
//! Blobs are not indexed again: only their texts are extracted, and the vectors are added to the existing segments.
//! Each response is stored at once as a [`Part`] and later merged into the segments, so a killed process loses no
//! response. No lock that other processes wait for is held during a request.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use roaring::RoaringBitmap;

use crate::embed::{Batching, EmbedError, ProfileId};
use crate::git::Repository;
use crate::index::dense::WriteError;
use crate::index::shared::SharedVectors;
use crate::index::{
    BuildOptions, NumberSet, PROBE_TEXT, Row, RowFile, RowWriter, Segment, SegmentError, Segments, check_probe,
    document_texts, probe_file,
};
use crate::model::{ChunkKey, Ctx, Stage, TreeId, chain, explain_by};
use crate::sidecar::{FileError, LockError, Sidecar, Store, StoredFile, VectorEntry};
use crate::snapshot::Blobs;

use super::maker::EmbeddingSource;
use super::parts::{Part, Parts, load_probe, probe_name, write_unlocked};
use super::publish::{publish_state, store_rows};
use super::share::{Looks, Shared};
use super::sweep::retire_files;
use super::take::{Take, file_of, keyed_docs};
use super::turns::Turns;
use super::uploads::{Held, Uploads};
use super::wanted::Wanted;

/// Interval between checks for vectors that other clones have claimed.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Interval between checks of the interrupt flag.
const TICK: Duration = Duration::from_millis(20);
/// Number of new vectors to collect before merging them into segments.
const JOIN_DOCS: usize = 16_384;

/// Computes the vectors that are missing for one profile.
pub struct CatchUp<'a> {
    /// The repository with the blobs.
    pub repository: &'a Repository,
    /// The sidecar that stores the vectors.
    pub sidecar: &'a Sidecar,
    /// The source of the vectors.
    pub maker: EmbeddingSource<'a>,
    /// The shared vector store, if one is configured.
    pub shared: Option<&'a dyn SharedVectors>,
    /// True if vectors are stored only in the shared store, not locally.
    pub is_remote_only: bool,
    /// The profile of the built-in model. Every segment has vectors of it.
    pub own_profile: &'a str,
    /// The options with which the documents were built.
    pub options: &'a BuildOptions,
    /// Time limit for waiting for another writer.
    pub patience: Duration,
}

/// The outcome of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CatchUpOutcome {
    /// Number of documents of the trees.
    pub n_docs: usize,
    /// Number of documents embedded in this run.
    pub n_embedded: usize,
    /// Number of embedded documents that were uploaded to the shared store during the run.
    pub n_uploaded: usize,
    /// Number of documents whose vectors came from the shared store.
    pub n_taken: usize,
    /// Number of documents that still lack a vector.
    pub n_left: usize,
    /// Number of documents from files whose names suggest secrets. Their text is not sent to any embedder.
    pub n_withheld: usize,
    /// The outcome of the upload, if vectors are stored only in the shared store.
    pub upload_local: Option<Shared>,
    /// The reason why the run stopped early.
    pub stopped: Option<String>,
    /// The reason why some vectors were not fetched from the shared store.
    pub not_taken: Option<String>,
    /// True if the run was interrupted.
    pub interrupted: bool,
    /// Duration of the run.
    pub elapsed: Duration,
}

/// An error from storing vectors. Vectors stored before the error remain.
#[derive(Debug, thiserror::Error)]
pub enum CatchUpError {
    /// The lock cannot be acquired.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// A file cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// A stored segment cannot be read.
    #[error(transparent)]
    Segment(#[from] SegmentError),
    /// The vectors differ in kind or dimension.
    #[error(transparent)]
    Rows(#[from] WriteError),
    /// The system cannot start another thread.
    #[error("cannot start a thread")]
    Thread(#[source] io::Error),
    /// Vectors from outside cannot be imported.
    #[error("cannot import vectors: {what}")]
    Outside {
        /// The reason.
        what: String,
    },
}

explain_by!(CatchUpError: Lock, File);

impl CatchUpError {
    fn is_another_writer(&self) -> bool {
        matches!(self, Self::Lock(LockError::Busy { .. } | LockError::Interrupted { .. }))
    }
}

impl CatchUp<'_> {
    /// Computes the missing vectors of the indexed documents of `trees`. Embedding failures are reported in the
    /// outcome; the next run continues from there.
    pub fn run(&self, trees: &[TreeId], ctx: Ctx<'_>) -> Result<CatchUpOutcome, CatchUpError> {
        let started = Instant::now();
        let mut outcome = CatchUpOutcome::default();
        let Some(_only) = self.sidecar.lock_embedding()? else {
            outcome.stopped = Some("another process is computing vectors".to_owned());
            return Ok(outcome);
        };
        let Some(state) = self
            .sidecar
            .state()?
            .filter(|state| state.recipe == self.options.recipe)
        else {
            return Ok(outcome);
        };
        let segments = Segments::open_newest(self.sidecar, &state, self.own_profile)?;
        let segments = segments.with_added(self.sidecar, &state, &self.profile());
        let mut parts = Parts::load(self.sidecar, self.maker.profile().id())?;
        let mut wanted = Wanted::of(trees, self.sidecar, &state, &segments)?;
        outcome.n_docs = wanted.n_docs;
        outcome.n_withheld = wanted.n_withheld;
        wanted.drop_known(&segments, &parts, self.maker.profile().id());
        if self.is_remote_only {
            let (shared, docs) = self.upload_local(trees, &mut parts, Looks::ForAll, ctx)?;
            docs.iter().for_each(|doc| wanted.drop_doc(doc));
            outcome.stopped.clone_from(&shared.stopped);
            outcome.interrupted = shared.interrupted;
            outcome.upload_local = Some(shared);
            if outcome.stopped.is_some() || outcome.interrupted {
                outcome.n_left = wanted.n_left;
                outcome.elapsed = started.elapsed();
                return Ok(outcome);
            }
        } else if self.shared.is_some() && wanted.n_left > 0 {
            ctx.progress.begin(Stage::Sharing, wanted.n_left);
            (outcome.n_taken, outcome.not_taken) = self.take(&mut wanted, &segments, &mut parts, ctx)?;
            ctx.progress.end();
        }
        let probe = (wanted.n_left > 0).then(|| self.probe(&segments, ctx.interrupt));
        // Created after the probe, because the probe's response may state the server's batch ctx.
        let mut work = Work::new(self, trees);
        match probe {
            None => {}
            Some(Ok(probe)) => {
                work.uploads = self.uploads(probe.dim(), work.batching.timeout, ctx.interrupt);
                let mut course = Course {
                    wanted: &mut wanted,
                    segments: &segments,
                    parts: &mut parts,
                    deferred: RoaringBitmap::new(),
                    n_taken: 0,
                };
                let mut docs = course.wanted.docs.clone();
                loop {
                    ctx.progress
                        .begin(Stage::Embedding, docs.count_in(0, segments.n_docs()) as usize);
                    work.embed(docs, &mut course, &probe, ctx)?;
                    ctx.progress.end();
                    match work.wait_for_others(&mut course, ctx)? {
                        Some(free) => docs = free,
                        None => break,
                    }
                }
                outcome.n_taken += course.n_taken;
            }
            Some(Err(Stopped::Failed(error))) => work.stop(error),
            Some(Err(Stopped::Broken(error))) => return Err(error),
        }
        outcome.n_embedded = work.n_embedded.load(Ordering::Relaxed);
        outcome.n_uploaded = work.uploads.as_ref().map_or(0, Uploads::n_put);
        outcome.n_left = wanted.n_left;
        let mut unshared = None;
        if let Some(shared) = &mut outcome.upload_local {
            let mut put = work.upload_local.lock().unwrap_or_else(PoisonError::into_inner).take();
            if parts.len() > 0 && put.as_ref().is_none_or(|put| put.stopped.is_none()) {
                let (last, _) = self.upload_local(trees, &mut parts, Looks::ForHere, Ctx::silent(ctx.interrupt))?;
                put = Some(last.after(put));
            }
            *shared = put
                .unwrap_or_default()
                .after(Some(shared.clone()))
                .with_own(outcome.n_uploaded);
            shared.n_docs = outcome.n_docs - outcome.n_left;
            unshared.clone_from(&shared.stopped);
        } else if parts.len() > 0 {
            match self.join(&mut parts, self.patience, ctx.interrupt) {
                // The vectors are stored in parts, which the next run joins.
                Err(error) if error.is_another_writer() => outcome.stopped = Some(chain(&error)),
                joined => joined?,
            }
        }
        match work.into_failure() {
            None => {}
            Some(EmbedError::Interrupted) => outcome.interrupted = true,
            Some(error) => outcome.stopped = Some(chain(&error)),
        }
        // If all vectors were computed, an upload failure is reported only as a sharing error.
        outcome.stopped = outcome.stopped.or(unshared.filter(|_| outcome.n_left > 0));
        outcome.interrupted |= ctx.is_interrupted();
        outcome.elapsed = started.elapsed();
        Ok(outcome)
    }

    /// Fetches missing vectors from the shared store.
    fn take(
        &self,
        wanted: &mut Wanted,
        segments: &Segments,
        parts: &mut Parts,
        ctx: Ctx<'_>,
    ) -> Result<(usize, Option<String>), CatchUpError> {
        let Some(shared) = self.shared else {
            return Ok((0, None));
        };
        let take = Take {
            sidecar: self.sidecar,
            shared,
            profile: self.maker.profile().id(),
        };
        take.run(wanted, segments, parts, ctx)
    }

    /// Opens the shared store for uploads during embedding. If the store is unavailable, vectors are uploaded at the
    /// end of the run, which reports the reason.
    fn uploads(&self, dim: usize, timeout: Duration, interrupt: &AtomicBool) -> Option<Uploads<'_>> {
        let shared = self.shared?;
        match self.sharing(shared).ready(dim, interrupt) {
            Ok(()) => Some(Uploads::new(shared, dim, timeout)),
            Err(error) => {
                tracing::debug!("cannot share vectors while embedding: {}", chain(&error));
                None
            }
        }
    }

    fn profile(&self) -> String {
        self.maker.profile().id().to_string()
    }

    /// Embeds the probe text and compares the vector with the one stored by the first run. Returns a row file that
    /// defines the kind and dimension of all other rows.
    fn probe(&self, segments: &Segments, interrupt: &AtomicBool) -> Result<RowFile, Stopped> {
        let rows = self.maker.rows(&[PROBE_TEXT], interrupt)?;
        let Some(row) = rows.into_iter().next().flatten().filter(|row| !row.is_empty()) else {
            return Err(self.other("a zero vector for the probe text"));
        };
        let profile = self.maker.profile().id();
        let bytes = probe_file(&row, profile).map_err(|what| self.other(&what))?;
        let probe =
            RowFile::from_bytes(Path::new("probe"), bytes.clone()).map_err(|error| Stopped::Broken(error.into()))?;
        let stored = segments.iter().find_map(|segment| segment.rows(profile));
        if let Some(Err(difference)) = stored.map(|stored| probe.likeness(&stored)) {
            return Err(self.other_model(&difference));
        }
        let known =
            check_or_store_probe(self.sidecar, &probe, &bytes).map_err(|error| Stopped::Broken(error.into()))?;
        known.map_err(|difference| self.other_model(&difference))?;
        Ok(probe)
    }

    /// Requests and stores the model's vector for the probe text, so that imported vectors can be compared with it.
    pub(super) fn request_probe(&self, segments: &Segments, interrupt: &AtomicBool) -> Result<(), CatchUpError> {
        match self.probe(segments, interrupt) {
            Ok(_) => Ok(()),
            Err(Stopped::Broken(error)) => Err(error),
            Err(Stopped::Failed(error)) => Err(CatchUpError::Outside {
                what: format!(
                    "cannot verify the vectors, because the model's server does not respond; import them again \
                     later: {}",
                    chain(&error)
                ),
            }),
        }
    }

    fn other_model(&self, difference: &str) -> Stopped {
        self.other(&format!(
            "{difference}: the server returns vectors of a different model under the same name; set {} to store its \
             vectors separately, or restore the previous model",
            self.maker.revision_setting()
        ))
    }

    fn other(&self, what: &str) -> Stopped {
        Stopped::Failed(EmbedError::Unusable {
            backend: self.maker.profile().model.clone(),
            detail: what.to_owned(),
        })
    }

    /// Adds the vectors in parts to the segments that contain their chunks, and publishes the segments. Then removes
    /// parts whose vectors are all in segments.
    pub(super) fn join(
        &self,
        parts: &mut Parts,
        patience: Duration,
        interrupt: &AtomicBool,
    ) -> Result<(), CatchUpError> {
        let lock = self.sidecar.lock_unless(patience, interrupt)?;
        let Some(mut state) = self.sidecar.state()? else {
            return Ok(());
        };
        let profile = self.profile();
        let segments =
            Segments::open(self.sidecar, &state, self.own_profile)?.with_added(self.sidecar, &state, &profile);
        let mut replaced: Vec<StoredFile> = Vec::new();
        let mut has_changed = false;
        for (entry, segment) in state.segments.iter_mut().zip(segments.iter()) {
            let Some(rows) = joined(segment, parts, self.maker.profile().id())? else {
                continue;
            };
            let file = store_rows(self.sidecar, rows)?;
            has_changed = true;
            match entry.vectors.iter_mut().find(|vectors| vectors.profile == profile) {
                Some(known) => replaced.push(std::mem::replace(&mut known.file, file)),
                None => entry.vectors.push(VectorEntry {
                    profile: profile.clone(),
                    file,
                }),
            }
        }
        if has_changed {
            // A graph lacks the new vectors.
            state.graphs.retain(|graph| graph.profile != profile);
            publish_state(self.sidecar, &lock, &mut state)?;
            retire_files(self.sidecar, replaced.iter().map(|file| (Store::Dense, file)));
        }
        Ok(parts.remove_done(self.sidecar, &lock, |key| segments.find_doc(key).is_some())?)
    }
}

/// Compares the probe's vector with the first one stored for its profile. Stores it if it is the first. The inner error
/// describes the difference.
pub(super) fn check_or_store_probe(
    sidecar: &Sidecar,
    probe: &RowFile,
    bytes: &[u8],
) -> Result<Result<(), String>, FileError> {
    match load_probe(sidecar, probe.profile()) {
        Ok(Some(known)) => Ok(check_probe(probe, &known)),
        Ok(None) => write_unlocked(sidecar, &probe_name(probe.profile()), bytes).map(Ok),
        Err(error) if error.is_invalid() => Ok(Err(error.to_string())),
        Err(error) => Err(error),
    }
}

/// Like [`check_or_store_probe`], for a probe vector that another clone put into a shared store with vectors of `dim`
/// components.
pub(super) fn check_shared_probe(
    sidecar: &Sidecar,
    probe: &Row,
    profile: ProfileId,
    dim: usize,
) -> Result<Result<(), String>, CatchUpError> {
    if probe.dim() != dim {
        return Ok(Err(format!("a probe of {} components", probe.dim())));
    }
    let bytes = file_of(profile, std::iter::once(probe))?;
    match RowFile::from_bytes(Path::new("probe"), bytes.clone()) {
        Ok(probe) => Ok(check_or_store_probe(sidecar, &probe, &bytes)?),
        Err(error) => Ok(Err(error.to_string())),
    }
}

/// An error that stops a run before it starts.
enum Stopped {
    /// Embedding failed.
    Failed(EmbedError),
    /// Storing failed.
    Broken(CatchUpError),
}

impl From<EmbedError> for Stopped {
    fn from(error: EmbedError) -> Self {
        Self::Failed(error)
    }
}

/// Returns the rows of a segment with missing ones added from `parts`. `None` if `parts` has no missing row.
fn joined(segment: &Segment, parts: &Parts, profile: ProfileId) -> Result<Option<RowWriter>, WriteError> {
    let stored = segment.rows(profile);
    let known = |row: u32| stored.as_ref().filter(|rows| rows.has(row));
    let found = |row: u32| parts.find(segment.lexical.key(row));
    let rows = 0..segment.lexical.n_docs();
    if !rows.clone().any(|row| known(row).is_none() && found(row).is_some()) {
        return Ok(None);
    }
    let Some(like) = stored.as_ref().or(parts.like()) else {
        return Ok(None);
    };
    let mut writer = like.writer()?;
    for row in rows {
        match known(row).map(|file| (file, row)).or_else(|| found(row)) {
            Some((file, row)) => writer.copy_row(file, row)?,
            None => writer.push_none()?,
        }
    }
    Ok(Some(writer))
}

/// The input and progress of a run.
struct Course<'c> {
    wanted: &'c mut Wanted,
    segments: &'c Segments,
    parts: &'c mut Parts,
    /// Documents that other clones were embedding when this run reached them.
    deferred: RoaringBitmap,
    /// Number of documents whose vectors other clones have computed since.
    n_taken: usize,
}

/// Texts to embed in one request.
#[derive(Default)]
struct Batch<'a> {
    /// Document numbers with their keys.
    keyed: Vec<(u32, ChunkKey)>,
    texts: Vec<String>,
    n_bytes: usize,
    /// The claim on these documents. Several batches may share a claim; it is released when all of them are done.
    held: Option<Arc<Held<'a>>>,
}

impl Batch<'_> {
    /// Splits off the second half. `None` if the batch has only one text.
    fn take_half(&mut self) -> Option<Self> {
        let at = self.keyed.len().div_ceil(2);
        (at < self.keyed.len()).then(|| Self {
            keyed: self.keyed.split_off(at),
            texts: self.texts.split_off(at),
            n_bytes: 0,
            held: self.held.clone(),
        })
    }
}

/// The state of a run, shared by its threads.
struct Work<'a> {
    catch_up: &'a CatchUp<'a>,
    trees: &'a [TreeId],
    /// The outcome of uploads, if vectors are stored only in the shared store.
    upload_local: Mutex<Option<Shared>>,
    batching: Batching,
    /// Permits for requests to the embedder.
    turns: Turns,
    /// Uploads of new vectors, if they are shared.
    uploads: Option<Uploads<'a>>,
    n_embedded: AtomicUsize,
    /// Completed documents, including those for which the model returns no vector.
    kept: Mutex<Vec<u32>>,
    is_over: AtomicBool,
    failure: Mutex<Option<EmbedError>>,
    /// The first error from storing vectors.
    unkept: Mutex<Option<CatchUpError>>,
}

impl<'a> Work<'a> {
    fn new(catch_up: &'a CatchUp<'a>, trees: &'a [TreeId]) -> Self {
        let batching = catch_up.maker.batching();
        Self {
            catch_up,
            trees,
            upload_local: Mutex::new(None),
            turns: Turns::new(batching.in_flight.max(1)),
            batching,
            uploads: None,
            n_embedded: AtomicUsize::new(0),
            kept: Mutex::default(),
            is_over: AtomicBool::new(false),
            failure: Mutex::new(None),
            unkept: Mutex::new(None),
        }
    }

    /// Stops the run. Only the first error is reported.
    fn stop(&self, error: EmbedError) {
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure.get_or_insert(error);
        self.is_over.store(true, Ordering::Relaxed);
    }

    /// Returns true if the run is stopped or interrupted.
    fn is_over(&self, interrupt: &AtomicBool) -> bool {
        self.is_over.load(Ordering::Relaxed) || interrupt.load(Ordering::Relaxed)
    }

    fn into_failure(self) -> Option<EmbedError> {
        self.failure.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// Embeds documents, except those that other clones are embedding, and removes completed documents from the list of
    /// wanted documents.
    ///
    /// Keeps as many batches in progress as the embedder accepts. Some threads wait for the embedder, others store
    /// responses, one produces texts, and this thread merges stored parts into segments without waiting for the other
    /// threads.
    fn embed(
        &self,
        docs: NumberSet,
        course: &mut Course<'_>,
        like: &RowFile,
        ctx: Ctx<'_>,
    ) -> Result<(), CatchUpError> {
        let Course {
            wanted,
            segments,
            parts,
            ..
        } = course;
        if self.uploads.is_some() && !wanted.blobs.is_empty() {
            // Starting at a random blob makes it unlikely that clones that start together embed the same blobs.
            let dice = RandomState::new().build_hasher().finish();
            let at = dice as usize % wanted.blobs.len();
            wanted.blobs.rotate_left(at);
        }
        let blobs = &wanted.blobs;
        let in_flight = self.batching.in_flight.max(1);
        let n_threads = in_flight + in_flight / 2;
        let (sender, receiver) = sync_channel::<Batch<'_>>(n_threads);
        let receiver = Mutex::new(receiver);
        let batches = &receiver;
        let (stored, parts_to_join) = channel();
        std::thread::scope(|scope| {
            for n_running in 0..n_threads {
                let stored = stored.clone();
                let worker = std::thread::Builder::new()
                    .name("embed".to_owned())
                    .spawn_scoped(scope, move || self.work(batches, &stored, like, ctx));
                match worker {
                    Ok(_) => {}
                    Err(error) if n_running == 0 => return Err(CatchUpError::Thread(error)),
                    // The run works with fewer threads.
                    Err(error) => tracing::debug!(%error, "cannot start another thread"),
                }
            }
            drop(stored);
            std::thread::Builder::new()
                .name("texts".to_owned())
                .spawn_scoped(scope, || self.feed(blobs, docs, segments, sender, ctx.interrupt))
                .map_err(CatchUpError::Thread)?;
            self.join(parts_to_join, parts, ctx.interrupt)
        })?;
        let kept = std::mem::take(&mut *self.kept.lock().unwrap_or_else(PoisonError::into_inner));
        kept.into_iter().for_each(|doc| wanted.drop_doc(doc));
        let unkept = self.unkept.lock().unwrap_or_else(PoisonError::into_inner).take();
        unkept.map_or(Ok(()), Err)
    }

    /// Fetches vectors of deferred documents as other clones finish them. Returns documents that no clone is embedding
    /// any more, or `None` if no deferred documents are left or the run was stopped.
    fn wait_for_others(&self, course: &mut Course<'_>, ctx: Ctx<'_>) -> Result<Option<NumberSet>, CatchUpError> {
        let Some(uploads) = &self.uploads else { return Ok(None) };
        let segments = course.segments;
        course.deferred.extend(uploads.take_deferred());
        if course.deferred.is_empty() {
            return Ok(None);
        }
        ctx.progress.begin(Stage::Sharing, course.deferred.len() as usize);
        let free = loop {
            if course.deferred.is_empty() || self.is_over(ctx.interrupt) {
                break None;
            }
            if self.catch_up.is_remote_only {
                let docs = self.upload_local(course.parts, Looks::ForAll, ctx.interrupt)?;
                docs.iter().for_each(|doc| course.wanted.drop_doc(doc));
            } else {
                // The next call reports the same reason, so it is ignored here.
                let (n_taken, _) =
                    self.catch_up
                        .take(course.wanted, segments, course.parts, Ctx::silent(ctx.interrupt))?;
                course.n_taken += n_taken;
            }
            let wanted = &course.wanted.docs;
            let left: RoaringBitmap = course.deferred.iter().filter(|doc| wanted.contains(*doc)).collect();
            let claimed = uploads.claimed(&keyed_docs(segments, |doc| left.contains(doc)), ctx.interrupt);
            course.deferred = claimed.into_iter().collect();
            let free = left - &course.deferred;
            if !free.is_empty() {
                let mut docs = NumberSet::below(segments.n_docs());
                free.into_iter().for_each(|doc| _ = docs.insert(doc));
                break Some(docs);
            }
            let until = Instant::now() + LOOK_EVERY;
            while !course.deferred.is_empty() && Instant::now() < until && !self.is_over(ctx.interrupt) {
                std::thread::sleep(TICK);
            }
        };
        ctx.progress.end();
        Ok(free)
    }

    /// Merges arriving parts into segments from time to time, until the channel is closed.
    fn join(&self, stored: Receiver<Part>, parts: &mut Parts, interrupt: &AtomicBool) -> Result<(), CatchUpError> {
        for part in stored {
            parts.add(part);
            if !parts.take_new(JOIN_DOCS) {
                continue;
            }
            let stowed = if self.catch_up.is_remote_only {
                self.upload_local(parts, Looks::ForHere, interrupt).map(drop)
            } else {
                self.catch_up.join(parts, Duration::ZERO, interrupt)
            };
            if let Err(error) = stowed
                // Ignores a lock held by another writer: the end of the run tries again.
                && !error.is_another_writer()
            {
                self.is_over.store(true, Ordering::Relaxed);
                return Err(error);
            }
        }
        Ok(())
    }

    /// Uploads stored parts. A failure stops the run. Returns the documents in the shared store.
    fn upload_local(
        &self,
        parts: &mut Parts,
        looks: Looks,
        interrupt: &AtomicBool,
    ) -> Result<RoaringBitmap, CatchUpError> {
        let put = self
            .catch_up
            .upload_local(self.trees, parts, looks, Ctx::silent(interrupt));
        let (put, docs) = put?;
        if put.stopped.is_some() || put.interrupted {
            self.is_over.store(true, Ordering::Relaxed);
        }
        let mut all = self.upload_local.lock().unwrap_or_else(PoisonError::into_inner);
        *all = Some(put.after(all.take()));
        Ok(docs)
    }

    /// Produces batches of texts and sends them to the worker threads.
    fn feed(
        &self,
        blobs: &[u32],
        docs: NumberSet,
        segments: &Segments,
        sender: SyncSender<Batch<'_>>,
        interrupt: &AtomicBool,
    ) {
        let catch_up = self.catch_up;
        let source = Blobs::of_git(catch_up.repository, catch_up.options.max_blob_bytes);
        let mut batch = Batch::default();
        let take = |doc: u32, text: String| {
            let Some((segment, local)) = segments.of_doc(doc) else {
                return ControlFlow::Continue(());
            };
            // The batch size adapts to the speed of the server.
            let batching = catch_up.maker.batching();
            let is_full = batch.texts.len() >= batching.max_texts.max(1)
                || batch.n_bytes + text.len() > batching.max_bytes && !batch.texts.is_empty();
            if is_full && (self.is_over.load(Ordering::Relaxed) || sender.send(std::mem::take(&mut batch)).is_err()) {
                return ControlFlow::Break(());
            }
            batch.n_bytes += text.len();
            batch.keyed.push((doc, segment.lexical.key(local)));
            batch.texts.push(text);
            ControlFlow::Continue(())
        };
        document_texts(segments, blobs, docs, &source, catch_up.options, interrupt, take);
        if !batch.texts.is_empty() && !self.is_over.load(Ordering::Relaxed) {
            // Sending fails only after an error, which is reported elsewhere.
            let _ = sender.send(batch);
        }
    }

    /// Embeds batches until there are no more or a failure occurs. Waits for batches in progress on other threads.
    fn work<'w>(&'w self, batches: &Mutex<Receiver<Batch<'w>>>, stored: &Sender<Part>, like: &RowFile, ctx: Ctx<'_>) {
        // Halves of batches that were too large.
        let mut halves: Vec<Batch<'w>> = Vec::new();
        loop {
            let next = match halves.pop() {
                Some(half) => Ok(half),
                None => {
                    // The lock is released before the embedder is called.
                    let next = batches.lock().unwrap_or_else(PoisonError::into_inner).recv();
                    next.map(|batch| self.claimed(batch, ctx.interrupt))
                }
            };
            let Ok(mut batch) = next else { return };
            if batch.keyed.is_empty() {
                continue;
            }
            let texts: Vec<&str> = batch.texts.iter().map(String::as_str).collect();
            let turn = self.turns.take();
            if self.is_over.load(Ordering::Relaxed) || ctx.is_interrupted() {
                continue;
            }
            let asked = Instant::now();
            let rows = self.catch_up.maker.rows(&texts, ctx.interrupt);
            drop(turn);
            let answered = Instant::now();
            let rows = match rows {
                Ok(rows) => rows,
                Err(error @ EmbedError::TooSlow { .. }) => {
                    match batch.take_half() {
                        Some(half) => halves.extend([half, batch]),
                        None => self.stop(error),
                    }
                    continue;
                }
                Err(error) => {
                    self.stop(error);
                    continue;
                }
            };
            match self.keep(&batch, &rows, like) {
                // Sending fails only after an error, which is reported elsewhere. The part is already on disk.
                Ok(part) => {
                    if let (Some(uploads), Some(part)) = (&self.uploads, &part) {
                        // Uploads the vectors as read from the part, so that all clones have identical ones.
                        let rows = part.keys().zip(0..);
                        let rows = rows.filter_map(|(key, row)| Some((key, part.rows.row(row)?)));
                        uploads.put(&rows.collect::<Vec<_>>(), ctx.interrupt);
                    }
                    part.into_iter().for_each(|part| _ = stored.send(part));
                }
                Err(error) => {
                    self.is_over.store(true, Ordering::Relaxed);
                    *self.unkept.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                }
            }
            tracing::trace!(
                n_texts = batch.texts.len(),
                asked_ms = (answered - asked).as_secs_f64() * 1e3,
                stored_ms = answered.elapsed().as_secs_f64() * 1e3,
                "embedded"
            );
            batch
                .texts
                .iter()
                .for_each(|text| ctx.progress.advance(text.len() as u64));
        }
    }

    /// Removes documents that other clones are embedding from a batch.
    fn claimed<'w>(&'w self, mut batch: Batch<'w>, interrupt: &AtomicBool) -> Batch<'w> {
        if self.is_over(interrupt) {
            return batch;
        }
        let claim = self
            .uploads
            .as_ref()
            .and_then(|uploads| uploads.claim(&batch.keyed, interrupt));
        if let Some((ours, held)) = claim {
            let (mut keyed_ours, mut texts_ours) = (ours.iter(), ours.iter());
            batch.keyed.retain(|_| keyed_ours.next() == Some(&true));
            batch.texts.retain(|_| texts_ours.next() == Some(&true));
            batch.held = Some(Arc::new(held));
        }
        batch
    }

    fn keep(&self, batch: &Batch<'_>, rows: &[Option<Row>], like: &RowFile) -> Result<Option<Part>, CatchUpError> {
        let mut writer = like.writer()?;
        for row in rows {
            let pushed = match row {
                Some(row) => writer.push(row),
                None => writer.push_empty(),
            };
            if let Err(error) = pushed {
                self.stop(EmbedError::Unusable {
                    backend: self.catch_up.maker.profile().model.clone(),
                    detail: error.to_string(),
                });
                return Ok(None);
            }
        }
        let keys: Vec<ChunkKey> = batch.keyed.iter().map(|(_, key)| *key).collect();
        let part = Part::store(self.catch_up.sidecar, &keys, writer.finish())?;
        self.n_embedded
            .fetch_add(rows.iter().flatten().count(), Ordering::Relaxed);
        let docs = batch.keyed.iter().map(|(doc, _)| *doc);
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).extend(docs);
        Ok(Some(part))
    }
}
