//! Records commits, their messages and changed lines, traced definitions and past versions of files.

use std::collections::HashSet;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use super::Records;
use crate::git::ObjectReader;
use crate::history::{History, past_files};
use crate::ingest::{Outcome, RecordOutcome, Recorder, TraceOutcome};
use crate::model::{CommitId, Ctx};
use crate::session::call::CallCtx;
use crate::session::error::Result;
use crate::session::update::{Event, Steps};
use crate::session::writing::PATIENCE;
use crate::sidecar::{HistoryEntry, PastVersions, Sidecar, Store};

/// Maximum number of commits whose messages are recorded while a command or a call waits, the newest. Takes seconds.
pub(super) const MAX_WAITED_COMMITS: usize = 10_000;

/// Determines which data about commits is recorded.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Recorded {
    has_commits: bool,
    is_searchable: bool,
    is_traced: bool,
}

impl<'w> Records<'w> {
    pub(super) fn recorder(self) -> Recorder<'w> {
        Recorder {
            repository: &self.workspace.repository,
            limit: self.workspace.config.history_limit(now()),
            n_threads: std::thread::available_parallelism().map_or(1, usize::from),
            patience: PATIENCE,
        }
    }

    /// Returns a recorder for messages that a command or call waits for: if no commit is recorded, it records only the
    /// newest.
    pub(super) fn quick_recorder(self) -> Recorder<'w> {
        let mut recorder = self.recorder();
        let max_commits = &mut recorder.limit.max_commits;
        if !(1..MAX_WAITED_COMMITS).contains(max_commits) {
            *max_commits = MAX_WAITED_COMMITS;
        }
        recorder
    }

    /// Records all commits reachable from `tips`.
    pub(crate) fn record_commits(self, tips: &[CommitId], ctx: Ctx<'_>) -> Result<RecordOutcome> {
        let sidecar = self.workspace.storage.open_or_create(ctx.interrupt)?;
        Ok(self.recorder().record(&sidecar, tips, ctx)?)
    }

    /// Records all commits reachable from `tips` and makes them searchable.
    pub fn record_history(self, tips: &[CommitId], ctx: Ctx<'_>) -> Result<RecordOutcome> {
        let started = Instant::now();
        let sidecar = self.workspace.storage.open_or_create(ctx.interrupt)?;
        let recorder = self.recorder();
        let mut outcome = recorder.record(&sidecar, tips, ctx)?;
        recorder.index_messages(&sidecar, self.workspace.models.own_embedder(), usize::MAX, ctx)?;
        recorder.index_lines(&sidecar, ctx)?;
        let state = sidecar.state()?.unwrap_or_default();
        let all: u64 = state.history.iter().map(HistoryEntry::n_bytes).sum();
        outcome.n_search_bytes = all.saturating_sub(outcome.n_bytes);
        outcome.searchable_after = started.elapsed();
        Ok(outcome)
    }

    /// Indexes past versions of files as selected by `versions`, or by default as in the previous run.
    pub(crate) fn index_past(self, versions: Option<PastVersions>, ctx: Ctx<'_>) -> Result<Outcome> {
        let sidecar = self.workspace.storage.open_or_create(ctx.interrupt)?;
        let (history, _) = self.stored_history()?.unwrap_or_default();
        let versions = match versions {
            Some(versions) => versions,
            None => sidecar.past_versions()?,
        };
        let past = past_files(
            &history,
            versions,
            self.workspace.config.gc.deleted_files.value as usize,
        )?;
        Ok(self.workspace.writer(&sidecar).index_past(past, versions, ctx)?)
    }

    /// Records the commits reachable from `tips` with their messages, which searches use for ranking. If a command
    /// or call waits for it, records only the newest; if too many commits are missing since the last one that is
    /// recorded, does nothing and returns `None`.
    pub(crate) fn record_messages(
        self,
        tips: &[CommitId],
        is_waited_for: bool,
        ctx: Ctx<'_>,
    ) -> Result<Option<RecordOutcome>> {
        let (recorder, max_commits) = if is_waited_for {
            (self.quick_recorder(), MAX_WAITED_COMMITS)
        } else {
            (self.recorder(), usize::MAX)
        };
        let (known, _) = self.stored_by(&recorder)?.unwrap_or_default();
        let mut reader = self.workspace.repository.reader();
        if is_waited_for && known.n_commits() > 0 && lacks_many(&known, tips, &mut reader) {
            return Ok(None);
        }
        let sidecar = self.workspace.storage.open_or_create(ctx.interrupt)?;
        let outcome = recorder.record(&sidecar, tips, ctx)?;
        let embedder = self.workspace.models.own_embedder();
        recorder.index_messages(&sidecar, embedder, max_commits, ctx)?;
        Ok(Some(outcome))
    }

    /// Indexes the messages of the recorded commits that lack them, for example because a writer was killed. Returns
    /// the number of these commits.
    pub(crate) fn complete_messages(self, ctx: Ctx<'_>) -> Result<u32> {
        let sidecar = self.workspace.storage.open_or_create(ctx.interrupt)?;
        let embedder = self.workspace.models.own_embedder();
        let n_commits = self.recorder().index_messages(&sidecar, embedder, usize::MAX, ctx)?;
        Ok(n_commits)
    }

    /// Records messages after an import, which may have brought the files of the checked-out commit without its history.
    pub(crate) fn add_messages_of_head(self, ctx: Ctx<'_>) -> Result<()> {
        if let Some(target) = self.workspace.target("HEAD")?
            && self.workspace.stored_whole(target.tree)?.is_some()
        {
            let (tips, ctx) = (target.commit.as_slice(), CallCtx::unlimited(ctx));
            self.workspace
                .finish_update(tips, &[], Steps::default(), &ctx, &mut Event::log)?;
        }
        Ok(())
    }

    /// Returns which data about commits the sidecar has, so that it can be recorded again after damaged files are set
    /// aside. If the state is unreadable, the answer is inferred from file names.
    pub(crate) fn recorded(self, sidecar: &Sidecar) -> Recorded {
        if let Ok(Some(state)) = sidecar.state() {
            return Recorded {
                has_commits: !state.history.is_empty(),
                is_searchable: state.has_searchable_history(),
                is_traced: state.history.iter().any(|entry| entry.symbols.is_some()),
            };
        }
        let files = std::fs::read_dir(sidecar.folder(Store::History)).into_iter().flatten();
        let names: Vec<_> = files.filter_map(|file| Some(file.ok()?.path())).collect();
        let has = |ending: &str| {
            names
                .iter()
                .any(|name| name.extension().is_some_and(|found| found == ending))
        };
        Recorded {
            has_commits: has("hist"),
            is_searchable: has("lin"),
            is_traced: has("sym"),
        }
    }

    /// Records again the data that `recorded` lists.
    pub(crate) fn record_again(self, recorded: Recorded, ctx: Ctx<'_>) -> Result<()> {
        if recorded.is_searchable {
            self.record_history(&self.branch_tips()?, ctx)?;
        } else if recorded.has_commits {
            self.record_messages(&self.branch_tips()?, false, ctx)?;
        }
        if recorded.is_traced {
            self.trace_history(ctx)?;
        }
        Ok(())
    }

    /// Traces definitions through all recorded commits.
    pub fn trace_history(self, ctx: Ctx<'_>) -> Result<TraceOutcome> {
        self.trace_history_until(None, ctx)
    }

    /// Traces definitions through the newest recorded commits, as many as there is time for.
    pub(crate) fn trace_history_until(self, until: Option<Instant>, ctx: Ctx<'_>) -> Result<TraceOutcome> {
        let sidecar = self.workspace.storage.open_or_create(ctx.interrupt)?;
        let max_bytes = self.max_blob_bytes();
        Ok(self.recorder().trace(&sidecar, max_bytes, until, ctx)?)
    }

    /// Returns the tips of all local branches and the checked-out commit, sorted by id.
    pub fn branch_tips(self) -> Result<Vec<CommitId>> {
        let refs = self.workspace.repository.refs()?.into_iter();
        let branches = refs.filter(|found| found.kind == crate::git::RefKind::Branch);
        let mut tips: Vec<CommitId> = branches.filter_map(|branch| branch.commit).collect();
        tips.extend(self.workspace.repository.head()?.commit());
        tips.sort_unstable();
        tips.dedup();
        Ok(tips)
    }
}

/// Returns true if more than [`MAX_WAITED_COMMITS`] commits are reachable from `tips` and not recorded. Ignores commits
/// that cannot be read.
fn lacks_many(known: &History, tips: &[CommitId], reader: &mut ObjectReader) -> bool {
    let mut seen: HashSet<CommitId> = HashSet::new();
    let mut waiting = tips.to_vec();
    while let Some(id) = waiting.pop() {
        if seen.len() > MAX_WAITED_COMMITS {
            return true;
        }
        if known.number(id).is_none() && seen.insert(id) {
            waiting.extend(reader.commit(id).map(|commit| commit.parents).unwrap_or_default());
        }
    }
    false
}

/// Returns the current time in seconds since 1970.
fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs() as i64)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::session::Workspace;
    use crate::support::TestRepo;

    #[test]
    fn tracing_starts_nothing_for_which_there_is_no_time() {
        let repo = TestRepo::empty();
        // More than one turn.
        for number in 0..70 {
            repo.write("a.py", format!("def f():\n    return {number}\n"));
            repo.commit("change");
        }
        let workspace = Workspace::open(repo.root(), &Default::default()).unwrap();
        let (records, never) = (workspace.records(), AtomicBool::new(false));
        let tips = records.branch_tips().unwrap();
        records.record_history(&tips, Ctx::silent(&never)).unwrap();
        let n_traced = |until| {
            let outcome = records.trace_history_until(until, Ctx::silent(&never));
            outcome.unwrap().n_new_commits
        };
        assert_eq!(n_traced(Some(Instant::now())), 0);
        assert_eq!(
            n_traced(Some(Instant::now() + std::time::Duration::from_secs(3600))),
            70
        );
        assert_eq!(n_traced(None), 0);
    }
}
