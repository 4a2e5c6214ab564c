//! The messages and changed lines of recorded commits, for searches.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::recorder::MAX_WAITED_COMMITS;
use super::{OpenedHistory, Records};
use crate::history::{Batch, History, LineChanges, Messages};
use crate::model::{CommitId, Ctx, ErrorKind, chain};
use crate::query::CommitMessages;
use crate::session::error::{OpError, Result};
use crate::session::writing::is_read_only;
use crate::sidecar::HistoryEntry;
use crate::snapshot::View;

/// Maximum number of commits after the last recorded one for which messages are still used.
const MAX_UNRECORDED: usize = 256;

/// The messages that the last search used.
pub(in crate::session) struct HeldMessages {
    commit: CommitId,
    /// The stored batches that were opened.
    entries: Vec<HistoryEntry>,
    messages: Arc<CommitMessages>,
}

impl Records<'_> {
    /// Returns the words and vectors of all messages, one element per batch. Missing ones are computed and stored, or
    /// held in memory if the sidecar cannot be written.
    pub fn messages(self, reference: &str, ctx: Ctx<'_>) -> Result<(OpenedHistory, Vec<Messages>)> {
        let opened = self.history(reference, ctx)?;
        let messages = self.stored_messages(opened.history.batches().len(), &opened.entries)?;
        if messages.iter().all(Option::is_some) {
            return Ok((opened, messages.into_iter().flatten().collect()));
        }
        let made = match self.workspace.storage.open()? {
            Some(sidecar) => self
                .recorder()
                .index_messages(&sidecar, self.workspace.models.own_embedder(), usize::MAX, ctx)
                .map_err(OpError::from),
            None => Ok(0),
        };
        let mut opened = opened;
        match made {
            Ok(0) => {}
            Ok(_) => opened = self.history(reference, ctx)?,
            Err(error) if is_read_only(&error) || error.kind == ErrorKind::Damaged => tracing::warn!("{error:#}"),
            Err(error) => return Err(error),
        }
        let stored = self.stored_messages(opened.history.batches().len(), &opened.entries)?;
        let in_memory = |(batch, stored): (&Arc<Batch>, Option<Messages>)| match stored {
            Some(messages) => Ok(messages),
            None => Ok(Messages::from_bytes(Messages::build(
                batch,
                self.workspace.models.own_embedder(),
                ctx.interrupt,
            )?)?),
        };
        let messages = opened.history.batches().iter().zip(stored).map(in_memory);
        let messages = messages.collect::<Result<_>>()?;
        Ok((opened, messages))
    }

    /// Returns the recorded commits that the commit of a view reaches, with their messages, for ranking. `None` if no
    /// messages are stored. Errors are logged, because an answer without messages is complete.
    pub(crate) fn messages_of(self, view: &View, interrupt: &AtomicBool) -> Option<Arc<CommitMessages>> {
        let commit = view.provenance().commit?;
        self.messages_reached(commit, interrupt).unwrap_or_else(|error| {
            tracing::warn!("ranking without commit messages: {error:#}");
            None
        })
    }

    /// Returns the recorded commits that `commit` reaches, with their messages. Indexes missing messages of the newest
    /// first. Keeps the last answer, because opening all batches takes as long as ranking.
    fn messages_reached(self, commit: CommitId, interrupt: &AtomicBool) -> Result<Option<Arc<CommitMessages>>> {
        let Some((sidecar, Some(state))) = self.workspace.storage.open_with_state()? else {
            return Ok(None);
        };
        if state.history.is_empty() {
            return Ok(None);
        }
        let held = || self.workspace.messages.lock();
        if let Some(held) = &*held()
            && (held.commit, &held.entries) == (commit, &state.history)
        {
            return Ok(Some(Arc::clone(&held.messages)));
        }
        let recorder = self.quick_recorder();
        let (mut history, mut entries) = match recorder.sound(&sidecar, &state)? {
            Some(history) => (history, state.history),
            None => match self.record_messages(&[commit], true, Ctx::silent(interrupt))? {
                Some(_) => self.stored_by(&recorder)?.unwrap_or_default(),
                None => return Ok(None),
            },
        };
        if self.last_recorded(&history, commit)?.is_none() {
            return Ok(None);
        }
        let mut messages = self.stored_messages(history.batches().len(), &entries)?;
        let indexed = messages.iter().flatten().map(|messages| messages.n_commits() as usize);
        let n_left = MAX_WAITED_COMMITS.saturating_sub(indexed.sum());
        if n_left > 0 && messages.iter().any(Option::is_none) {
            let embedder = self.workspace.models.own_embedder();
            recorder.index_messages(&sidecar, embedder, n_left, Ctx::silent(interrupt))?;
            // Another process may have replaced the batches meanwhile.
            (history, entries) = self.stored_by(&recorder)?.unwrap_or_default();
            messages = self.stored_messages(history.batches().len(), &entries)?;
        }
        let tip = self.last_recorded(&history, commit)?;
        let Some(tip) = tip.filter(|_| messages.iter().any(Option::is_some)) else {
            return Ok(None);
        };
        let reached = history.reachable(&[tip]);
        let messages = Arc::new(CommitMessages::new(history, messages, reached));
        *held() = Some(HeldMessages {
            commit,
            entries,
            messages: Arc::clone(&messages),
        });
        Ok(Some(messages))
    }

    /// Returns the number of the first recorded commit in the first-parent history of `commit`, which includes `commit`.
    fn last_recorded(self, history: &History, mut commit: CommitId) -> Result<Option<u32>> {
        let mut reader = self.workspace.repository.reader();
        for _ in 0..MAX_UNRECORDED {
            if let Some(number) = history.number(commit) {
                return Ok(Some(number));
            }
            match reader.commit(commit)?.parents.first() {
                Some(parent) => commit = *parent,
                None => break,
            }
        }
        Ok(None)
    }

    /// Returns the stored messages of each batch. `None` for a batch without messages or with those of another model.
    fn stored_messages(self, n_batches: usize, entries: &[HistoryEntry]) -> Result<Vec<Option<Messages>>> {
        let profile = self.workspace.models.own_embedder().profile().id();
        let sidecar = self.workspace.storage.open()?;
        let open = |entry| match Messages::open(sidecar.as_ref()?, entry) {
            Ok(messages) => messages.filter(|messages| messages.profile() == profile),
            Err(error) => {
                tracing::warn!("{}: indexing commit messages again", chain(&error));
                None
            }
        };
        let mut messages: Vec<_> = entries.iter().map(open).collect();
        messages.resize_with(n_batches, || None);
        Ok(messages)
    }

    /// Returns the signatures of changed lines, one element per batch. `None` for a batch without signatures.
    pub fn line_changes(self, opened: &OpenedHistory) -> Result<Vec<Option<LineChanges>>> {
        let sidecar = self.workspace.storage.open()?;
        let open = |entry| LineChanges::open(sidecar.as_ref()?, entry).ok()?;
        let mut lines: Vec<_> = opened.entries.iter().map(open).collect();
        lines.resize_with(opened.history.batches().len(), || None);
        Ok(lines)
    }
}
