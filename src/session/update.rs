//! Brings the sidecar up to date: the steps after a commit, in their order.

use super::call::CallCtx;
use super::error::{Context as _, Result};
use super::workspace::Workspace;
use crate::ingest::{CatchUpOutcome, CollectOutcome, EmbeddingSource, Outcome, RecordOutcome, Target, TraceOutcome};
use crate::model::{CommitId, TreeId};
use crate::sidecar::PastVersions;

/// The steps of an update after indexing.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Steps {
    pub(crate) commits: Commits,
    /// Computes missing vectors of external models.
    pub(crate) vectors: bool,
    /// Collects garbage if a collection is due.
    pub(crate) collection: bool,
}

/// The commits that an update records.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum Commits {
    /// The messages of the newest, for ranking.
    #[default]
    Newest,
    /// What was recorded before, or else messages: of all, or of the newest if a command waits.
    AsBefore { is_waited_for: bool },
    /// All, searchable and traced, with these past versions of files; by default those of the previous run.
    All(Option<PastVersions>),
}

/// The result of a step. Its receiver decides if an error ends the update.
pub(crate) enum Event<'w> {
    /// Commits are searchable, definitions traced, and past versions of files indexed.
    Recorded(Result<(RecordOutcome, TraceOutcome, Outcome)>),
    /// Messages are indexed: of a number of earlier commits that lacked them, and of new commits unless there are too
    /// many to wait for.
    Messages(Result<(u32, Option<RecordOutcome>)>),
    Vectors(Result<Vec<(EmbeddingSource<'w>, CatchUpOutcome)>>),
    Collected(Result<Option<CollectOutcome>>),
}

impl Event<'_> {
    /// Logs the result. Returns the error of a step without which the update is incomplete.
    pub(crate) fn log(self) -> Result<()> {
        match self {
            Self::Recorded(recorded) => _ = recorded.context("cannot record commits")?,
            Self::Messages(Ok(outcome)) => tracing::debug!(?outcome, "recorded commits for ranking"),
            Self::Messages(Err(error)) => tracing::warn!("cannot record commit messages for ranking: {error:#}"),
            Self::Vectors(caught_up) => {
                for (maker, caught_up) in caught_up.context("cannot compute vectors")? {
                    let (what, n_embedded, n_left) = (maker.kind().noun(), caught_up.n_embedded, caught_up.n_left);
                    tracing::info!(n_embedded, n_left, caught_up.stopped, "{what}");
                }
            }
            Self::Collected(Ok(Some(done))) => tracing::info!(?done.bytes, done.rewrote, "collected garbage"),
            Self::Collected(Ok(None)) => {}
            Self::Collected(Err(error)) => tracing::warn!("garbage collection failed: {error:#}"),
        }
        Ok(())
    }
}

impl Workspace {
    /// Indexes the files of a target and takes the other steps, unless it is interrupted.
    pub(crate) fn update<'w>(
        &'w self,
        target: Target,
        steps: Steps,
        call: &CallCtx<'_>,
        events: &mut dyn FnMut(Event<'w>) -> Result<()>,
    ) -> Result<Outcome> {
        let outcome = self.ingest(target, call.ctx)?;
        if !outcome.interrupted {
            self.finish_update(target.commit.as_slice(), &[target.tree], steps, call, events)?;
        }
        Ok(outcome)
    }

    /// Takes the steps for indexed trees and the commits reachable from `tips`.
    pub(crate) fn finish_update<'w>(
        &'w self,
        tips: &[CommitId],
        trees: &[TreeId],
        steps: Steps,
        call: &CallCtx<'_>,
        events: &mut dyn FnMut(Event<'w>) -> Result<()>,
    ) -> Result<()> {
        self.recorded(tips, steps.commits, call).map_or(Ok(()), &mut *events)?;
        if steps.vectors {
            events(Event::Vectors(self.catch_up(trees, call.ctx)))?;
        }
        if steps.collection {
            events(Event::Collected(self.collect_if_due(trees, call.ctx)))?;
        }
        Ok(())
    }

    fn recorded(&self, tips: &[CommitId], commits: Commits, call: &CallCtx<'_>) -> Option<Event<'static>> {
        let (records, ctx) = (self.records(), call.ctx);
        let all = |is_traced, versions| {
            let recorded = records.record_history(tips, ctx)?;
            // Also runs without new commits, because objects that were missing or damaged may be available now.
            let trace = || records.trace_history(ctx);
            let traced = if is_traced { trace()? } else { TraceOutcome::default() };
            Ok((recorded, traced, records.index_past(versions, ctx)?))
        };
        let messages = |is_waited_for| records.record_messages(tips, is_waited_for, ctx);
        Some(match commits {
            Commits::All(versions) => Event::Recorded(all(true, versions)),
            _ if tips.is_empty() => return None,
            Commits::Newest => Event::Messages(messages(true).map(|recorded| (0, recorded))),
            Commits::AsBefore { .. } if records.has_searchable_history() => {
                Event::Recorded(all(records.is_traced(), None))
            }
            // Also if no file was new: an earlier run may have been killed before it recorded them.
            Commits::AsBefore { is_waited_for } => {
                let complete = || records.complete_messages(ctx);
                let completed = if is_waited_for { complete() } else { Ok(0) };
                Event::Messages(completed.and_then(|n_completed| Ok((n_completed, messages(is_waited_for)?))))
            }
        })
    }
}
