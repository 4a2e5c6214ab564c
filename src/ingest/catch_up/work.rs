//! The threads of a run: texts are read, embedded, stored and uploaded at the same time.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use roaring::RoaringBitmap;

use super::probe::Stopped;
use super::{CatchUp, CatchUpError};
use crate::embed::{Batching, EmbedError};
use crate::index::{NumberSet, Row, RowFile, Segments, document_texts};
use crate::ingest::parts::{Part, Parts};
use crate::ingest::share::{Looks, Shared};
use crate::ingest::take::keyed_docs;
use crate::ingest::turns::Turns;
use crate::ingest::uploads::{Held, Uploads};
use crate::ingest::wanted::Wanted;
use crate::model::{ChunkKey, Ctx, Stage, TreeId};
use crate::snapshot::Blobs;

/// Interval between checks for vectors that other clones have claimed.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Interval between checks of the interrupt flag.
const TICK: Duration = Duration::from_millis(20);
/// Number of new vectors to collect before merging them into segments.
const JOIN_DOCS: usize = 16_384;

/// The input and progress of a run.
pub(super) struct Course<'c> {
    pub(super) wanted: &'c mut Wanted,
    pub(super) segments: &'c Segments,
    pub(super) parts: &'c mut Parts,
    /// Documents that other clones were embedding when this run reached them.
    pub(super) deferred: RoaringBitmap,
    /// Number of documents whose vectors other clones have computed since.
    pub(super) n_taken: usize,
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
pub(super) struct Work<'a> {
    catch_up: &'a CatchUp<'a>,
    trees: &'a [TreeId],
    /// The outcome of uploads, if vectors are stored only in the shared store.
    pub(super) upload_local: Mutex<Option<Shared>>,
    batching: Batching,
    /// Permits for requests to the embedder.
    turns: Turns,
    /// Uploads of new vectors, if they are shared.
    pub(super) uploads: Option<Uploads<'a>>,
    pub(super) n_embedded: AtomicUsize,
    /// Completed documents, including those for which the model returns no vector.
    kept: Mutex<Vec<u32>>,
    is_over: AtomicBool,
    failure: Mutex<Option<EmbedError>>,
    /// The first error from storing vectors.
    unkept: Mutex<Option<CatchUpError>>,
}

impl<'a> Work<'a> {
    pub(super) fn new(catch_up: &'a CatchUp<'a>, trees: &'a [TreeId]) -> Self {
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

    /// Embeds the wanted documents. A failure of the embedder stops the run.
    pub(super) fn run(
        &mut self,
        probe: Result<RowFile, Stopped>,
        course: &mut Course<'_>,
        ctx: Ctx<'_>,
    ) -> Result<(), CatchUpError> {
        let probe = match probe {
            Ok(probe) => probe,
            Err(Stopped::Failed(error)) => {
                self.stop(error);
                return Ok(());
            }
            Err(Stopped::Broken(error)) => return Err(error),
        };
        self.uploads = self.catch_up.uploads(probe.dim(), self.batching.timeout, ctx.interrupt);
        let n_docs = course.segments.n_docs();
        let mut docs = course.wanted.docs.clone();
        loop {
            ctx.progress.begin(Stage::Embedding, docs.count_in(0, n_docs) as usize);
            self.embed(docs, course, &probe, ctx)?;
            ctx.progress.end();
            match self.wait_for_others(course, ctx)? {
                Some(free) => docs = free,
                None => return Ok(()),
            }
        }
    }

    /// Stops the run. Only the first error is reported.
    fn stop(&self, error: EmbedError) {
        let mut failure = self.failure.lock();
        failure.get_or_insert(error);
        self.is_over.store(true, Ordering::Relaxed);
    }

    /// Returns true if the run is stopped or interrupted.
    fn is_over(&self, interrupt: &AtomicBool) -> bool {
        self.is_over.load(Ordering::Relaxed) || interrupt.load(Ordering::Relaxed)
    }

    pub(super) fn into_failure(self) -> Option<EmbedError> {
        self.failure.into_inner()
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
        let kept = std::mem::take(&mut *self.kept.lock());
        kept.into_iter().for_each(|doc| wanted.drop_doc(doc));
        let unkept = self.unkept.lock().take();
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
        let mut all = self.upload_local.lock();
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
                    let next = batches.lock().recv();
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
                    *self.unkept.lock() = Some(error);
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
        self.kept.lock().extend(docs);
        Ok(Some(part))
    }
}
