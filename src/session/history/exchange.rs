//! The records that a bundle carries.

use super::Records;
use crate::ingest::{Audit, ExportedCommits, ImportRefusal, ReceivedCommits, RecordError, VerifiedCommits};
use crate::model::{CommitId, Ctx};
use crate::session::error::{Result, ensure};
use crate::sidecar::Sidecar;

impl Records<'_> {
    /// Prepares the records of all commits reachable from `tips` for export. Records and traces missing commits first.
    pub(crate) fn given_commits(self, tips: &[CommitId], ctx: Ctx<'_>) -> Result<ExportedCommits> {
        ensure!(!tips.is_empty(), "a tree has no history: use a commit");
        let sidecar = self.workspace.storage.open_or_create(ctx.interrupt)?;
        let recorder = self.recorder();
        recorder.record(&sidecar, tips, ctx)?;
        recorder.index_lines(&sidecar, ctx)?;
        self.trace_history(ctx)?;
        Ok(recorder.give(&sidecar, tips, self.max_blob_bytes())?)
    }

    /// Returns the reason why this clone cannot import any records of commits, if there is one.
    pub(crate) fn takes_no_records(self, is_trusted: bool) -> Result<Option<ImportRefusal>> {
        Ok(match self.workspace.repository.shallow_commits()?.is_empty() {
            false => Some(ImportRefusal::Absent),
            true if self.workspace.repository.is_partial() && !is_trusted => Some(ImportRefusal::Partial),
            true => None,
        })
    }

    /// Returns true if the repository has all these commits, and at least one is not recorded or not traced.
    pub(crate) fn lacks_records_of(self, commits: &[CommitId]) -> Result<bool> {
        let mut reader = self.workspace.repository.reader();
        if !commits.iter().all(|&commit| reader.commit(commit).is_ok()) {
            return Ok(false);
        }
        let (history, _) = self.stored_history()?.unwrap_or_default();
        let is_traced = |number| history.is_traced(number, self.symbol_recipe());
        Ok(!commits
            .iter()
            .all(|&commit| history.number(commit).is_some_and(is_traced)))
    }

    /// Verifies commit records from a bundle.
    pub(crate) fn examine_commits(
        self,
        sidecar: &Sidecar,
        offered: &ReceivedCommits,
        audit: Option<Audit>,
        ctx: Ctx<'_>,
    ) -> Result<Result<VerifiedCommits, ImportRefusal>> {
        let max_bytes = self.max_blob_bytes();
        let recorder = self.recorder();
        let examined = recorder.examine(sidecar, offered, audit, max_bytes, ctx);
        ensure!(
            !matches!(examined, Err(RecordError::Interrupted)),
            "interrupted; nothing was imported"
        );
        Ok(examined?)
    }

    /// Stores verified commit records with their messages.
    pub(crate) fn take_commits(
        self,
        sidecar: &Sidecar,
        examined: &VerifiedCommits,
        ctx: Ctx<'_>,
    ) -> Result<Result<(), ImportRefusal>> {
        let embedder = self.workspace.models.own_embedder();
        let taken = self.recorder().take_over(sidecar, examined, embedder, ctx)?;
        if taken.is_ok() {
            let (n_commits, most) = (examined.n_commits(), self.recorder().limit.max_commits);
            if most != 0 && n_commits as usize > most {
                tracing::warn!("recorded {n_commits} commits, more than history.max_commits ({most})");
            }
            if examined.has_kept() {
                self.recorder().index_lines(sidecar, ctx)?;
                self.trace_history(ctx)?;
            }
            self.index_past(None, ctx)?;
        }
        Ok(taken)
    }
}
