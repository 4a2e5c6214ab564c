//! Fetches vectors that other clones have uploaded to the shared store, so that they need not be computed.

use std::sync::atomic::AtomicBool;

use parking_lot::Mutex;

use crate::embed::ProfileId;
use crate::index::dense::WriteError;
use crate::index::shared::{SharedError, SharedVectors};
use crate::index::{Row, RowWriter, Segments};
use crate::model::{ChunkKey, Ctx, chain};
use crate::sidecar::Sidecar;

use super::catch_up::{CatchUpError, check_shared_probe};
use super::on_threads::try_batches;
use super::parts::{Part, Parts};
use super::wanted::Wanted;

/// Fetches missing vectors.
pub(super) struct Take<'a> {
    pub(super) sidecar: &'a Sidecar,
    pub(super) shared: &'a dyn SharedVectors,
    pub(super) profile: ProfileId,
}

/// The reason why fetching stopped.
#[derive(Debug, thiserror::Error)]
pub(super) enum Stopped {
    /// The shared store failed.
    #[error(transparent)]
    Shared(#[from] SharedError),
    /// Storing vectors locally failed.
    #[error(transparent)]
    Local(#[from] CatchUpError),
}

/// The progress so far.
struct Course<'w> {
    wanted: &'w mut Wanted,
    parts: &'w mut Parts,
    n_taken: usize,
}

impl Take<'_> {
    /// Fetches vectors of `wanted` documents into `parts` and removes these documents from `wanted`. Returns the number
    /// of vectors, and the reason if not all documents were looked up.
    pub(super) fn run(
        &self,
        wanted: &mut Wanted,
        segments: &Segments,
        parts: &mut Parts,
        ctx: Ctx<'_>,
    ) -> Result<(usize, Option<String>), CatchUpError> {
        let keyed = keyed_docs(segments, |doc| wanted.docs.contains(doc));
        let course = Mutex::new(Course {
            wanted,
            parts,
            n_taken: 0,
        });
        let taken = self.take_all(&keyed, &course, ctx);
        let n_taken = course.into_inner().n_taken;
        match taken {
            Ok(()) | Err(Stopped::Shared(SharedError::Interrupted)) => Ok((n_taken, None)),
            Err(Stopped::Shared(error)) => Ok((n_taken, Some(chain(&error)))),
            Err(Stopped::Local(error)) => Err(error),
        }
    }

    fn take_all(&self, keyed: &[(u32, ChunkKey)], course: &Mutex<Course<'_>>, ctx: Ctx<'_>) -> Result<(), Stopped> {
        let Some(dim) = self.agreed_dim(ctx.interrupt)? else {
            return Ok(());
        };
        let batching = self.shared.batching(dim);
        let batches: Vec<&[(u32, ChunkKey)]> = keyed.chunks(batching.max_rows).collect();
        try_batches(&batches, batching.in_flight, ctx, |batch| {
            self.take(batch, dim, course, ctx.interrupt)
        })
    }

    /// Returns the dimension of the vectors in the store after checking that they come from the configured model.
    /// `None` if the store is empty.
    fn agreed_dim(&self, interrupt: &AtomicBool) -> Result<Option<usize>, Stopped> {
        let Some(standing) = self.shared.standing(interrupt)?.filter(|found| found.n_vectors > 0) else {
            return Ok(None);
        };
        // Every clone uploads its probe vector before other vectors, so no probe means no vectors.
        let Some(probe) = self.shared.probe(interrupt)? else {
            return Ok(None);
        };
        let known = check_shared_probe(self.sidecar, &probe, self.profile, standing.dim)?;
        known.map_err(|difference| self.unusable(difference))?;
        Ok(Some(standing.dim))
    }

    fn unusable(&self, detail: String) -> Stopped {
        Stopped::Shared(SharedError::Unusable {
            backend: self.shared.name(),
            detail,
        })
    }

    fn take(
        &self,
        batch: &[(u32, ChunkKey)],
        dim: usize,
        course: &Mutex<Course<'_>>,
        interrupt: &AtomicBool,
    ) -> Result<(), Stopped> {
        let keys: Vec<ChunkKey> = batch.iter().map(|(_, key)| *key).collect();
        let vectors = self.shared.fetch(&keys, interrupt)?;
        let found = keys.iter().zip(&vectors);
        let rows: Vec<(ChunkKey, &Row)> = found
            .filter_map(|(key, vector)| Some((*key, vector.as_ref()?)))
            .collect();
        if rows.iter().any(|(_, vector)| vector.dim() != dim) {
            return Err(self.unusable(format!("a vector that does not have {dim} components")));
        }
        if rows.is_empty() {
            return Ok(());
        }
        let file = file_of(self.profile, rows.iter().map(|(_, vector)| *vector)).map_err(CatchUpError::from)?;
        let found: Vec<ChunkKey> = rows.iter().map(|(key, _)| *key).collect();
        let part = Part::store(self.sidecar, &found, file).map_err(CatchUpError::from)?;
        let mut course = course.lock();
        course.parts.add(part);
        course.n_taken += rows.len();
        for ((doc, _), vector) in batch.iter().zip(&vectors) {
            if vector.is_some() {
                course.wanted.drop_doc(*doc);
            }
        }
        Ok(())
    }
}

/// Returns a file of rows of one kind and dimension.
pub(super) fn file_of<'v>(profile: ProfileId, rows: impl Iterator<Item = &'v Row>) -> Result<Vec<u8>, WriteError> {
    let mut writer: Option<RowWriter> = None;
    for row in rows {
        match &mut writer {
            Some(writer) => writer.push(row)?,
            None => writer.insert(RowWriter::like(row, profile)?).push(row)?,
        }
    }
    Ok(writer.map(RowWriter::finish).unwrap_or_default())
}

/// Returns the selected documents with their keys, in document order.
pub(super) fn keyed_docs(segments: &Segments, is_wanted: impl Fn(u32) -> bool) -> Vec<(u32, ChunkKey)> {
    let mut keyed = Vec::new();
    for segment in segments.iter() {
        let rows = (0..segment.lexical.n_docs()).filter(|row| is_wanted(segment.base_doc + row));
        keyed.extend(rows.map(|row| (segment.base_doc + row, segment.lexical.key(row))));
    }
    keyed
}
