//! Updates the sidecar.

use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use super::error::{OpError, Result};
use super::revision::while_objects_vanish;
use super::workspace::Workspace;
use crate::index::dense::GraphLimits;
use crate::ingest::{CatchUp, CatchUpOutcome, Depth, EmbeddingSource, Ingest, NewGraph, Outcome, Target};
use crate::model::{Ctx, ErrorKind, TreeId};
use crate::sidecar::Sidecar;

/// Maximum time that a command waits for another writer before it reports an error.
pub(crate) const PATIENCE: Duration = Duration::from_secs(600);

/// Time for finding the damage of an index.
const TIME_FOR_DAMAGE: Duration = Duration::from_secs(10);

/// Maximum number of attempts if the sidecar is deleted meanwhile.
const MAX_REPLACED: usize = 3;

impl Workspace {
    /// Indexes the files of a target that the sidecar lacks.
    pub fn ingest(&self, target: Target, ctx: Ctx<'_>) -> Result<Outcome> {
        for _ in 1..MAX_REPLACED {
            let sidecar = self.storage.open_or_create(ctx.interrupt)?;
            match self.writer(&sidecar).update(target, ctx) {
                // The sidecar was deleted or replaced by another folder. Starting over costs only time.
                Err(error) if !sidecar.is_in_place() => {
                    tracing::info!(%error, "the sidecar was deleted; starting over")
                }
                updated => return Ok(updated?),
            }
        }
        let sidecar = self.storage.open_or_create(ctx.interrupt)?;
        Ok(self.writer(&sidecar).update(target, ctx)?)
    }

    /// Indexes the files of a revision that the sidecar lacks. Returns `None` before the first commit.
    pub fn ingest_revision(&self, reference: &str, ctx: Ctx<'_>) -> Result<Option<(Target, Outcome)>> {
        while_objects_vanish(|| {
            let Some(target) = self.target(reference)? else {
                return Ok(None);
            };
            Ok(Some((target, self.ingest(target, ctx)?)))
        })
    }

    /// Returns the writer of `sidecar` for this repository.
    pub fn writer<'a>(&'a self, sidecar: &'a Sidecar) -> Ingest<'a> {
        Ingest {
            repository: &self.repository,
            sidecar,
            embedder: self.models.own(),
            options: &self.options,
            patience: PATIENCE,
        }
    }

    /// Returns the damage of the index that reading it comes upon, as an error. Searches for a few seconds.
    pub(crate) fn damage(&self, ctx: Ctx<'_>) -> Option<OpError> {
        let sidecar = self.storage.open_to_check().ok().flatten()?;
        let deep = Depth {
            from_blobs: true,
            sample: None,
        };
        let until = Some(Instant::now() + TIME_FOR_DAMAGE);
        let found = [Depth::default(), deep].into_iter().find_map(|depth| {
            let verified = self.writer(&sidecar).verify(depth, ctx.until(until)).ok()?;
            Some((depth, verified.findings.into_iter().next()?))
        });
        let (depth, finding) = found?;
        let deep = if depth.from_blobs { "--deep " } else { "" };
        Some(OpError {
            kind: ErrorKind::Damaged,
            ..OpError::new(
                format!("the index is damaged: {}: {}", finding.name, finding.what),
                format!("rebuild it from git: codescout verify {deep}--repair"),
            )
        })
    }

    /// Returns the writer for the vectors of an external model.
    pub(crate) fn catching_up<'a>(
        &'a self,
        sidecar: &'a Sidecar,
        maker: EmbeddingSource<'a>,
        own_profile: &'a str,
    ) -> CatchUp<'a> {
        CatchUp {
            repository: &self.repository,
            sidecar,
            maker,
            own_profile,
            options: &self.options,
            patience: PATIENCE,
        }
    }

    /// Computes missing vectors of external models for the indexed files of some trees. Returns one outcome per model,
    /// up to the first that was interrupted.
    pub fn catch_up(&self, trees: &[TreeId], ctx: Ctx<'_>) -> Result<Vec<(EmbeddingSource<'_>, CatchUpOutcome)>> {
        let mut outcomes = Vec::new();
        let Some(sidecar) = self.storage.open()? else {
            return Ok(outcomes);
        };
        for maker in self.models.sources() {
            let own_profile = self.models.own_profile();
            let catch_up = self.catching_up(&sidecar, maker, &own_profile);
            let caught_up = catch_up.run(trees, ctx)?;
            let is_over = caught_up.interrupted;
            outcomes.push((maker, caught_up));
            if is_over {
                break;
            }
        }
        Ok(outcomes)
    }

    /// Builds the graphs of vectors that are missing or lack many chunks. Returns `None` if another process computes
    /// vectors or graphs.
    pub fn build_graphs(&self, limits: GraphLimits, interrupt: &AtomicBool) -> Result<Option<Vec<NewGraph>>> {
        match self.storage.open()? {
            Some(sidecar) => Ok(self.writer(&sidecar).build_graphs(limits, interrupt)?),
            None => Ok(Some(Vec::new())),
        }
    }
}

/// Returns true if the error means that the sidecar's location is not writable.
pub(crate) fn is_read_only(error: &OpError) -> bool {
    use std::io::ErrorKind::{NotADirectory, PermissionDenied, QuotaExceeded, ReadOnlyFilesystem, StorageFull};
    matches!(
        error.kind,
        ErrorKind::System(NotADirectory | PermissionDenied | QuotaExceeded | ReadOnlyFilesystem | StorageFull)
    )
}
