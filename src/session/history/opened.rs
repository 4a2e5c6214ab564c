//! Opens the recorded history of a revision, and records missing commits first.

use std::sync::atomic::AtomicBool;

use super::Records;
use crate::history::{History, Mailmap, Reachable, SymbolChangeCache};
use crate::ingest::{Recorder, Target};
use crate::model::{CommitId, Ctx, ErrorKind};
use crate::session::error::{Context as _, Result};
use crate::session::storage::Keeping;
use crate::session::writing::is_read_only;
use crate::sidecar::HistoryEntry;

/// Notes for an answer whose commits could not be stored.
const IN_MEMORY_NOTE: &str = "the index cannot be written here; commits were recorded in memory";
/// Notes for an answer whose commits could not be stored.
const DAMAGED_NOTE: &str = "the index is damaged, so commits were recorded in memory; run codescout verify --repair";
/// Maximum number of new commits that are traced before answering. If there are more, the next indexing run traces
/// them.
const MAX_TRACED_FIRST: u32 = 256;

/// The recorded history for one revision.
pub struct OpenedHistory {
    /// All recorded commits.
    pub history: History,
    /// The requested commit and tree; `None` before the first commit.
    pub target: Option<Target>,
    /// The number of the commit in `history`.
    pub tip: Option<u32>,
    /// The commits that `tip` reaches.
    pub reached: Reachable,
    /// The state's entries for the first batches of `history`. Later batches are only in memory.
    pub entries: Vec<HistoryEntry>,
    /// The mailmap: canonical names and addresses.
    pub mailmap: Mailmap,
    /// Notes to add to the answer.
    pub notes: Vec<String>,
}

/// Recorded commits, and the state's entries for their batches.
type StoredHistory = (History, Vec<HistoryEntry>);

impl Records<'_> {
    /// Opens the history of a revision. `WORKTREE` and `INDEX` mean the checked-out commit.
    pub fn history(self, reference: &str, ctx: Ctx<'_>) -> Result<OpenedHistory> {
        let target = self.workspace.target(reference)?;
        let mut notes = Vec::new();
        let stored = match commit_of(reference, target)? {
            None => StoredHistory::default(),
            Some(commit) => self.history_with(commit, &mut notes, ctx)?,
        };
        self.opened_history(target, stored, notes)
    }

    /// Opens the history of a revision as far as it is recorded, in the sidecar or in `more`. If the commit itself is
    /// not recorded, uses its last recorded ancestor.
    pub(crate) fn recorded_history(self, reference: &str, more: Option<&History>) -> Result<OpenedHistory> {
        let target = self.workspace.target(reference)?;
        let commit = commit_of(reference, target)?;
        let is_whole = |history: &History| commit.is_none_or(|commit| history.number(commit).is_some());
        let stored = self.stored_history()?;
        let stored = match (stored, more) {
            (Some(stored), _) if is_whole(&stored.0) => stored,
            (_, Some(more)) if is_whole(more) => (more.clone(), Vec::new()),
            (stored, _) => stored.unwrap_or_default(),
        };
        let mut opened = self.opened_history(target, stored, Vec::new())?;
        if let (None, Some(commit), Some(last)) = (opened.tip, commit, opened.history.n_commits().checked_sub(1)) {
            let known = opened.history.id(last)?;
            if self.workspace.repository.merge_base(known, commit)? == Some(known) {
                opened.tip = Some(last);
                opened.reached = opened.history.reachable(&[last]);
            }
        }
        Ok(opened)
    }

    fn opened_history(
        self,
        target: Option<Target>,
        (history, entries): StoredHistory,
        mut notes: Vec<String>,
    ) -> Result<OpenedHistory> {
        notes.extend(self.workspace.repository.rewritten_history());
        let commit = target.and_then(|target| target.commit);
        let tip = commit.and_then(|commit| history.number(commit));
        let mailmap = super::mailmap::read(&self.workspace.repository, target, &mut notes)?;
        Ok(OpenedHistory {
            reached: history.reachable(tip.as_slice()),
            mailmap,
            history,
            entries,
            target,
            tip,
            notes,
        })
    }

    /// Records the commits reachable from `commit` in memory, on top of the stored records. Used if the sidecar cannot
    /// be written.
    pub(crate) fn records_in_memory(self, commit: CommitId, interrupt: &AtomicBool) -> Result<History> {
        let (known, _) = self.stored_history()?.unwrap_or_default();
        Ok(self.recorder().record_in_memory(known, &[commit], interrupt)?)
    }

    fn history_with(self, commit: CommitId, notes: &mut Vec<String>, ctx: Ctx<'_>) -> Result<StoredHistory> {
        let stored = self.stored_history()?;
        let is_enough = |(history, _): &&StoredHistory| history.number(commit).is_some();
        if let Some(stored) = stored.as_ref().filter(is_enough) {
            return Ok(stored.clone());
        }
        let is_traced = self.is_traced();
        match self.record_commits(&[commit], ctx) {
            Ok(outcome) => {
                if is_traced && outcome.n_new_commits <= MAX_TRACED_FIRST {
                    self.trace_history(ctx)?;
                }
                self.stored_history()?
                    .context("the recorded commits were deleted by another process; try again")
            }
            Err(error) if is_read_only(&error) || error.kind == ErrorKind::Damaged => {
                tracing::warn!("{error:#}");
                let is_damaged = error.kind == ErrorKind::Damaged;
                notes.push(if is_damaged { DAMAGED_NOTE } else { IN_MEMORY_NOTE }.to_owned());
                let (known, entries) = stored.unwrap_or_default();
                let history = self.recorder().record_in_memory(known, &[commit], ctx.interrupt)?;
                Ok((history, entries))
            }
            Err(error) => Err(error),
        }
    }

    pub(super) fn stored_history(self) -> Result<Option<StoredHistory>> {
        self.stored_by(&self.recorder())
    }

    /// Opens the stored history, unless the recorder would record it again.
    pub(super) fn stored_by(self, recorder: &Recorder<'_>) -> Result<Option<StoredHistory>> {
        match self.workspace.storage.open_with_state() {
            Ok(Some((sidecar, Some(state)))) => {
                let history = recorder.sound(&sidecar, &state)?;
                Ok(history.map(|history| (history, state.history)))
            }
            Ok(_) => Ok(None),
            Err(error) if error.kind == ErrorKind::Damaged => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Opens the cache of the definition changes in single files, for commits that are not traced.
    pub(crate) fn known_changes(self) -> Result<SymbolChangeCache> {
        let sidecar = match self.workspace.storage.keeping() {
            Keeping::Sidecar => self.workspace.storage.open()?,
            _ => None,
        };
        Ok(SymbolChangeCache::new(sidecar, self.symbol_recipe()))
    }
}

/// Returns the commit of the target, or `None` before the first commit.
fn commit_of(reference: &str, target: Option<Target>) -> Result<Option<CommitId>> {
    let commit = |target: Target| {
        target
            .commit
            .with_context(|| format!("{reference} is a tree, which has no history"))
    };
    target.map(commit).transpose()
}
