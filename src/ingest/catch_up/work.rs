//! The threads of a run: texts are read, embedded and stored at the same time.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::time::{Duration, Instant};

use super::probe::Stopped;
use super::{CatchUp, CatchUpError};
use crate::embed::{Batching, EmbedError};
use crate::index::{NumberSet, Row, RowFile, Segments, document_texts};
use crate::ingest::parts::{Part, Parts};
use crate::ingest::turns::Turns;
use crate::ingest::wanted::Wanted;
use crate::model::{ChunkKey, Ctx, Stage};
use crate::snapshot::Blobs;
use parking_lot::Mutex;

/// Number of new vectors to collect before merging them into segments.
const JOIN_DOCS: usize = 16_384;

/// The input and progress of a run.
pub(super) struct Course<'c> {
    pub(super) wanted: &'c mut Wanted,
    pub(super) segments: &'c Segments,
    pub(super) parts: &'c mut Parts,
}

/// Texts to embed in one request.
#[derive(Default)]
struct Batch {
    /// Document numbers with their keys.
    keyed: Vec<(u32, ChunkKey)>,
    texts: Vec<String>,
    n_bytes: usize,
}

impl Batch {
    /// Splits off the second half. `None` if the batch has only one text.
    fn take_half(&mut self) -> Option<Self> {
        let at = self.keyed.len().div_ceil(2);
        (at < self.keyed.len()).then(|| Self {
            keyed: self.keyed.split_off(at),
            texts: self.texts.split_off(at),
            n_bytes: 0,
        })
    }
}

/// The state of a run, shared by its threads.
pub(super) struct Work<'a> {
    catch_up: &'a CatchUp<'a>,
    batching: Batching,
    /// Permits for requests to the embedder.
    turns: Turns,
    pub(super) n_embedded: AtomicUsize,
    /// Completed documents, including those for which the model returns no vector.
    kept: Mutex<Vec<u32>>,
    is_over: AtomicBool,
    failure: Mutex<Option<EmbedError>>,
    /// The first error from storing vectors.
    unkept: Mutex<Option<CatchUpError>>,
}

impl<'a> Work<'a> {
    pub(super) fn new(catch_up: &'a CatchUp<'a>) -> Self {
        let batching = catch_up.maker.batching();
        Self {
            catch_up,
            turns: Turns::new(batching.in_flight.max(1)),
            batching,
            n_embedded: AtomicUsize::new(0),
            kept: Mutex::default(),
            is_over: AtomicBool::new(false),
            failure: Mutex::new(None),
            unkept: Mutex::new(None),
        }
    }

    /// Embeds the wanted documents. A failure of the embedder stops the run.
    pub(super) fn run(
        &self,
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
        let n_docs = course.segments.n_docs();
        ctx.progress
            .begin(Stage::Embedding, course.wanted.docs.count_in(0, n_docs) as usize);
        self.embed(course, &probe, ctx)?;
        ctx.progress.end();
        Ok(())
    }

    /// Stops the run. Only the first error is reported.
    fn stop(&self, error: EmbedError) {
        let mut failure = self.failure.lock();
        failure.get_or_insert(error);
        self.is_over.store(true, Ordering::Relaxed);
    }

    pub(super) fn into_failure(self) -> Option<EmbedError> {
        self.failure.into_inner()
    }

    /// Embeds the wanted documents, and removes completed ones from the list of wanted documents.
    ///
    /// Keeps as many batches in progress as the embedder accepts. Some threads wait for the embedder, others store
    /// responses, one produces texts, and this thread merges stored parts into segments without waiting for the other
    /// threads.
    fn embed(&self, course: &mut Course<'_>, like: &RowFile, ctx: Ctx<'_>) -> Result<(), CatchUpError> {
        let Course {
            wanted,
            segments,
            parts,
        } = course;
        let (blobs, docs) = (&wanted.blobs, wanted.docs.clone());
        let in_flight = self.batching.in_flight.max(1);
        let n_threads = in_flight + in_flight / 2;
        let (sender, receiver) = sync_channel::<Batch>(n_threads);
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

    /// Merges arriving parts into segments from time to time, until the channel is closed.
    fn join(&self, stored: Receiver<Part>, parts: &mut Parts, interrupt: &AtomicBool) -> Result<(), CatchUpError> {
        for part in stored {
            parts.add(part);
            if !parts.take_new(JOIN_DOCS) {
                continue;
            }
            if let Err(error) = self.catch_up.join(parts, Duration::ZERO, interrupt)
                // Ignores a lock held by another writer: the end of the run tries again.
                && !error.is_another_writer()
            {
                self.is_over.store(true, Ordering::Relaxed);
                return Err(error);
            }
        }
        Ok(())
    }

    /// Produces batches of texts and sends them to the worker threads.
    fn feed(
        &self,
        blobs: &[u32],
        docs: NumberSet,
        segments: &Segments,
        sender: SyncSender<Batch>,
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
    fn work(&self, batches: &Mutex<Receiver<Batch>>, stored: &Sender<Part>, like: &RowFile, ctx: Ctx<'_>) {
        // Halves of batches that were too large.
        let mut halves: Vec<Batch> = Vec::new();
        loop {
            let next = match halves.pop() {
                Some(half) => Ok(half),
                // The lock is released before the embedder is called.
                None => batches.lock().recv(),
            };
            let Ok(mut batch) = next else { return };
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
                Ok(part) => part.into_iter().for_each(|part| _ = stored.send(part)),
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

    fn keep(&self, batch: &Batch, rows: &[Option<Row>], like: &RowFile) -> Result<Option<Part>, CatchUpError> {
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
