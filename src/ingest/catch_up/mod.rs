//! Computes missing vectors of external models, dense or sparse, for the documents of indexed trees. The embedder may
//! be remote, slow or unavailable.
//!
//! Blobs are not indexed again: only their texts are extracted, and the vectors are added to the existing segments.
//! Each response is stored at once as a [`Part`] and later merged into the segments, so a killed process loses no
//! response. No lock that other processes wait for is held during a request.

mod probe;
mod work;

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use self::work::{Course, Work};
use super::maker::EmbeddingSource;
use super::parts::Parts;
use super::publish::{publish_state, store_rows};
use super::sweep::retire_files;
use super::wanted::Wanted;
use crate::embed::{EmbedError, ProfileId};
use crate::git::Repository;
use crate::index::dense::WriteError;
use crate::index::{BuildOptions, RowWriter, Segment, SegmentError, Segments};
use crate::model::{Ctx, TreeId, chain, explain_by};
use crate::sidecar::{FileError, LockError, Sidecar, Store, StoredFile, VectorEntry};

pub(super) use probe::check_or_store_probe;

/// Computes the vectors that are missing for one profile.
pub struct CatchUp<'a> {
    /// The repository with the blobs.
    pub repository: &'a Repository,
    /// The sidecar that stores the vectors.
    pub sidecar: &'a Sidecar,
    /// The source of the vectors.
    pub maker: EmbeddingSource<'a>,
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
    /// Number of documents that still lack a vector.
    pub n_left: usize,
    /// Number of documents from files whose names suggest secrets. Their text is not sent to any embedder.
    pub n_withheld: usize,
    /// The reason why the run stopped early.
    pub stopped: Option<String>,
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
        let probe = (wanted.n_left > 0).then(|| self.probe(&segments, ctx.interrupt));
        // Created after the probe, because its response may state the server's limits.
        let work = Work::new(self);
        if let Some(probe) = probe {
            let mut course = Course {
                wanted: &mut wanted,
                segments: &segments,
                parts: &mut parts,
            };
            work.run(probe, &mut course, ctx)?;
        }
        outcome.n_embedded = work.n_embedded.load(Ordering::Relaxed);
        outcome.n_left = wanted.n_left;
        if parts.len() > 0 {
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
        outcome.interrupted |= ctx.is_interrupted();
        outcome.elapsed = started.elapsed();
        Ok(outcome)
    }

    fn profile(&self) -> String {
        self.maker.profile().id().to_string()
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
