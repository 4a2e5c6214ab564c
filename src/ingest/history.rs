//! Records what commits changed. Adds the commits reachable from given tips that are in no batch yet.

use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use crate::git::{ObjectError, Repository};
use crate::history::{
    BATCH_COMMITS, Batch, BatchWriter, Boundary, CollectError, History, HistoryError, HistoryLimit, LinesError,
    MessagesError, SymbolBatch, TraceError, collect, has_compared_files, mergeable, merged, merged_symbols, plan,
};
use crate::model::{CommitId, Ctx, ErrorKind, Explain, Explanation, Stage, chain, random_bytes};
use crate::sidecar::{FileError, FileErrorKind, HistoryEntry, LockError, Sidecar, State, Store};

use super::publish::{publish_state, store};
use super::repair::set_damaged_aside;
use super::sides::merge_sides;
use super::sweep::retire_history;
use super::trace::SYMBOLS_ENDING;

/// Extension of history files.
pub(super) const HISTORY_ENDING: &str = "hist";

/// Records the commits of one repository.
pub struct Recorder<'a> {
    /// The repository to read.
    pub repository: &'a Repository,
    /// Limits on the commits to record.
    pub limit: HistoryLimit,
    /// Number of threads that read commits.
    pub n_threads: usize,
    /// Time limit for waiting for another writer.
    pub patience: Duration,
}

/// The outcome of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordOutcome {
    /// Number of new commits.
    pub n_new_commits: u32,
    /// Number of paths that the new commits changed.
    pub n_new_changes: u64,
    /// Number of all recorded commits.
    pub n_commits: u32,
    /// Total size of the records in bytes.
    pub n_bytes: u64,
    /// Size in bytes of the search index of commits, if one was requested.
    pub n_search_bytes: u64,
    /// Time after which commits were searchable, if that was requested.
    pub searchable_after: Duration,
    /// Number of older commits that were not recorded because of the limits.
    pub n_left_out: usize,
    /// Duration of the run.
    pub elapsed: Duration,
}

/// An error from recording commits.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// Another writer did not finish in time, or the lock cannot be acquired.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The repository cannot be read.
    #[error(transparent)]
    Object(#[from] ObjectError),
    /// Stored records cannot be read.
    #[error(transparent)]
    History(#[from] HistoryError),
    /// A file cannot be read or written, or a record is invalid.
    #[error(transparent)]
    File(#[from] FileError),
    /// Indexing messages failed.
    #[error("cannot index commit messages")]
    Messages(#[source] Box<MessagesError>),
    /// Indexing changed lines failed.
    #[error("cannot index the changed lines of commits")]
    Lines(#[source] Box<LinesError>),
    /// The system provides no random bytes for the id of an epoch.
    #[error("cannot get random bytes")]
    Random(#[source] std::io::Error),
    /// The list of shallow commits cannot be read.
    #[error("cannot read the boundary of this shallow clone")]
    Shallow(#[source] std::io::Error),
    /// The record depends on objects that this clone lacks, so it would be wrong for other clones.
    #[error("cannot export the record of commits: this clone lacks {what}")]
    Incomplete {
        /// The missing objects or records.
        what: &'static str,
    },
    /// An imported record does not match the repository.
    #[error("the record of commits is wrong: {what}")]
    WrongRecord {
        /// The mismatch.
        what: String,
    },
    /// The caller asked to stop. Batches recorded so far are kept.
    #[error("interrupted; what was recorded so far is kept")]
    Interrupted,
}

impl Explain for RecordError {
    fn explain(&self) -> Explanation {
        match self {
            Self::Lock(error) => error.explain(),
            Self::File(error) => error.explain(),
            Self::Object(error) => error.explain(),
            Self::History(error) => error.explain(),
            Self::Messages(error) => error.explain(),
            Self::Lines(error) => error.explain(),
            Self::Incomplete { .. } => Explanation::of_kind(ErrorKind::Incomplete),
            Self::Interrupted => Explanation::of_kind(ErrorKind::Interrupted),
            _ => Explanation::default(),
        }
    }
}

impl From<CollectError> for RecordError {
    fn from(error: CollectError) -> Self {
        match error {
            CollectError::Object(error) => error.into(),
            CollectError::Interrupted => Self::Interrupted,
        }
    }
}

impl From<TraceError> for RecordError {
    fn from(error: TraceError) -> Self {
        match error {
            TraceError::Object(error) => error.into(),
            TraceError::File(error) => error.into(),
            TraceError::Interrupted => Self::Interrupted,
        }
    }
}

impl Recorder<'_> {
    /// Records the commits reachable from `tips` and publishes them batch by batch. An interruption loses only the
    /// current batch.
    pub fn record(&self, sidecar: &Sidecar, tips: &[CommitId], ctx: Ctx<'_>) -> Result<RecordOutcome, RecordError> {
        let started = Instant::now();
        let mut outcome = RecordOutcome::default();
        self.renew_damaged_state(sidecar, ctx.interrupt)?;
        self.mend(sidecar, ctx.interrupt)?;
        // If another process publishes meanwhile, the remaining work is planned again.
        while !self.record_from_here(sidecar, tips, &mut outcome, ctx)? {}
        self.tidy(sidecar, ctx.interrupt)?;
        let state = sidecar.state()?.unwrap_or_default();
        outcome.n_commits = state.n_commits();
        outcome.n_bytes = state.history.iter().map(|entry| entry.records.length).sum();
        outcome.elapsed = started.elapsed();
        Ok(outcome)
    }

    /// Like [`Self::record`], but keeps the new records in memory, on top of the stored ones.
    pub fn record_in_memory(
        &self,
        mut history: History,
        tips: &[CommitId],
        interrupt: &AtomicBool,
    ) -> Result<History, RecordError> {
        let plan = self.plan(&history, tips, interrupt)?;
        for commits in plan.commits.chunks(BATCH_COMMITS) {
            let writer = self.batch(&history, commits, &|| {}, interrupt)?;
            history.push(Batch::from_bytes(writer.finish())?)?;
        }
        Ok(history)
    }

    /// Opens the stored history. Returns `None` if it no longer matches the repository.
    pub fn sound(&self, sidecar: &Sidecar, state: &State) -> Result<Option<History>, RecordError> {
        let history = match History::open(sidecar, &state.history) {
            Ok(history) => history,
            Err(error) => {
                tracing::debug!(%error, "cannot read the recorded commits");
                return Ok(None);
            }
        };
        Ok(self.is_current(&history)?.then_some(history))
    }

    /// Replaces a damaged state by the first one of a new epoch. The files that it listed are unused from then on.
    pub(super) fn renew_damaged_state(&self, sidecar: &Sidecar, interrupt: &AtomicBool) -> Result<(), RecordError> {
        let damage = || match sidecar.state() {
            Err(error) if matches!(error.kind, FileErrorKind::Damaged(_)) => Some(error),
            _ => None,
        };
        if damage().is_none() {
            return Ok(());
        }
        let lock = sidecar.lock_unless(self.patience, interrupt)?;
        if let Some(error) = damage() {
            tracing::warn!("{}: recording commits again", chain(&error));
            publish_state(sidecar, &lock, &mut first_state()?)?;
        }
        Ok(())
    }

    /// Returns true if a record made now would end at the same commits.
    pub(super) fn is_current(&self, history: &History) -> Result<bool, RecordError> {
        let shallow = self.repository.shallow_commits().map_err(RecordError::Shallow)?;
        for (number, boundary) in history.boundaries()? {
            // After deepening, the clone has more commits than the record.
            if boundary == Boundary::Shallow && shallow.binary_search(&history.id(number)?).is_err() {
                tracing::info!("the clone was deepened: recording commits again");
                return Ok(false);
            }
            if boundary == Boundary::Missing && self.has_parents(history, number)? {
                tracing::info!("missing commits are now available: recording commits again");
                return Ok(false);
            }
            if boundary == Boundary::Limit && self.limit_allows_more(history, number)? {
                tracing::info!("the limit on recorded commits was raised: recording commits again");
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns whether all parents of a commit can be read.
    fn has_parents(&self, history: &History, number: u32) -> Result<bool, RecordError> {
        let mut reader = self.repository.reader();
        let Ok(info) = reader.commit(history.id(number)?) else {
            return Ok(false);
        };
        Ok(info.parents.iter().all(|parent| reader.commit(*parent).is_ok()))
    }

    /// Records a batch again if objects that were missing or damaged are available now. Its definitions and line
    /// signatures are computed again later; the message index remains.
    fn mend(&self, sidecar: &Sidecar, interrupt: &AtomicBool) -> Result<(), RecordError> {
        let state = sidecar.state()?.unwrap_or_default();
        let Some(history) = self
            .sound(sidecar, &state)?
            .filter(|history| !history.unknown().is_empty())
        else {
            return Ok(());
        };
        let mut before = History::default();
        for (batch, entry) in history.batches().iter().zip(&state.history) {
            if self.can_be_repaired(batch, interrupt)? {
                let commit = |local| Ok((batch.id(local)?, batch.boundary(local)?));
                let commits = (0..batch.n_commits()).map(commit);
                let commits: Vec<_> = commits.collect::<Result<_, FileError>>()?;
                match self.batch(&before, &commits, &|| {}, interrupt) {
                    Ok(writer) => self.publish_repaired(sidecar, entry, &writer.finish(), interrupt)?,
                    // git has removed a commit meanwhile. The stored record is more complete than a new one would be.
                    Err(RecordError::Object(error)) => tracing::info!(%error, "cannot record commits again"),
                    Err(error) => return Err(error),
                }
            }
            before.push(Batch::open(sidecar, &entry.records.name)?)?;
        }
        Ok(())
    }

    /// Returns true if the record of an incomplete commit in the batch can now be completed. In a partial clone, where
    /// objects arrive a few at a time, all incomplete commits must be completable.
    fn can_be_repaired(&self, batch: &Batch, interrupt: &AtomicBool) -> Result<bool, RecordError> {
        let mut can_one = false;
        let mut reader = self.repository.reader();
        for local in (0..batch.n_commits()).filter(|local| batch.is_unknown(*local)) {
            let commit = (batch.id(local)?, batch.boundary(local)?);
            // Comparing all files of a commit takes much longer than finding out that one is missing.
            let can_this = has_compared_files(&mut reader, &batch.changes_at(local)?)
                && match collect(self.repository, &[commit], 1, &|| {}, interrupt) {
                    Ok(now) => now.iter().all(|data| !data.is_unknown),
                    Err(CollectError::Object(_)) => false,
                    Err(error) => return Err(error.into()),
                };
            if can_this != self.repository.is_partial() {
                return Ok(can_this);
            }
            can_one |= can_this;
        }
        Ok(can_one)
    }

    fn publish_repaired(
        &self,
        sidecar: &Sidecar,
        entry: &HistoryEntry,
        bytes: &[u8],
        interrupt: &AtomicBool,
    ) -> Result<(), RecordError> {
        let lock = sidecar.lock_unless(self.patience, interrupt)?;
        let Some(mut state) = sidecar.state()? else {
            return Ok(());
        };
        let Some(current) = state.history.iter_mut().find(|known| *known == entry) else {
            return Ok(());
        };
        *current = HistoryEntry {
            records: store(sidecar, Store::History, HISTORY_ENDING, bytes)?,
            symbols: None,
            lines: None,
            ..entry.clone()
        };
        publish_state(sidecar, &lock, &mut state)?;
        let replaced = HistoryEntry {
            messages: None,
            ..entry.clone()
        };
        retire_history(sidecar, &[replaced]);
        Ok(())
    }

    /// Returns true if the raised limit allows recording a parent of a commit at the old limit.
    fn limit_allows_more(&self, history: &History, number: u32) -> Result<bool, RecordError> {
        let HistoryLimit { max_commits, since } = self.limit;
        if max_commits != 0 && max_commits <= history.n_commits() as usize {
            return Ok(false);
        }
        let Some(since) = since else { return Ok(true) };
        let mut reader = self.repository.reader();
        for parent in reader.commit(history.id(number)?)?.parents {
            let is_unknown = history.number(parent).is_none();
            if is_unknown && reader.commit(parent).is_ok_and(|info| info.committer.time >= since) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    pub(super) fn plan(
        &self,
        history: &History,
        tips: &[CommitId],
        interrupt: &AtomicBool,
    ) -> Result<crate::history::Plan, RecordError> {
        let mut reader = self.repository.reader();
        let shallow = self.repository.shallow_commits().map_err(RecordError::Shallow)?;
        // The limit on the number of commits applies to the first run. Later runs add all new commits.
        let max_commits = if history.n_commits() == 0 {
            self.limit.max_commits
        } else {
            0
        };
        let limit = HistoryLimit {
            max_commits,
            ..self.limit
        };
        let is_known = |id| history.number(id).is_some();
        Ok(plan(&mut reader, tips, &is_known, &shallow, limit, interrupt)?)
    }

    pub(super) fn batch(
        &self,
        history: &History,
        commits: &[(CommitId, Boundary)],
        advance: &(dyn Fn() + Sync),
        interrupt: &AtomicBool,
    ) -> Result<BatchWriter, RecordError> {
        let base = history.n_commits();
        let mut writer = BatchWriter::new(base);
        let own: std::collections::HashMap<CommitId, u32> = commits.iter().map(|(id, _)| *id).zip(base..).collect();
        for data in collect(self.repository, commits, self.n_threads, advance, interrupt)? {
            let number = |id: &CommitId| own.get(id).copied().or_else(|| history.number(*id));
            let parents: Vec<Option<u32>> = data.parents.iter().map(number).collect();
            writer.add(data, &parents);
        }
        Ok(writer)
    }

    /// Records all missing commits. Returns false if another process has published a state meanwhile.
    fn record_from_here(
        &self,
        sidecar: &Sidecar,
        tips: &[CommitId],
        outcome: &mut RecordOutcome,
        ctx: Ctx<'_>,
    ) -> Result<bool, RecordError> {
        let state = sidecar.state()?.unwrap_or_default();
        let mut is_damaged = false;
        let (mut history, mut entries) = match self.sound(sidecar, &state)? {
            Some(history) => (history, state.history.clone()),
            None => {
                if let Err(error) = History::open(sidecar, &state.history) {
                    tracing::warn!("{}: recording commits again", chain(&error));
                    is_damaged = true;
                }
                (History::default(), Vec::new())
            }
        };
        let mut expected = state.history;
        let plan = self.plan(&history, tips, ctx.interrupt)?;
        if ctx.interrupt.load(std::sync::atomic::Ordering::Relaxed) {
            return Err(RecordError::Interrupted);
        }
        outcome.n_left_out = plan.n_left_out;
        ctx.progress.begin(Stage::Recording, plan.commits.len());
        for commits in plan.commits.chunks(BATCH_COMMITS) {
            let writer = self.batch(&history, commits, &|| ctx.progress.advance(0), ctx.interrupt)?;
            let (n_commits, n_changes) = (writer.n_commits(), writer.n_changes());
            let bytes = writer.finish();
            let lock = sidecar.lock_unless(self.patience, ctx.interrupt)?;
            let mut state = current_state(sidecar)?;
            if state.history != expected {
                return Ok(false);
            }
            entries.push(HistoryEntry {
                base_commit: history.n_commits(),
                n_commits,
                records: store(sidecar, Store::History, HISTORY_ENDING, &bytes)?,
                symbols: None,
                messages: None,
                lines: None,
            });
            let replaced = std::mem::replace(&mut state.history, entries.clone());
            publish_state(sidecar, &lock, &mut state)?;
            if std::mem::take(&mut is_damaged) {
                set_damaged_aside(sidecar, replaced.iter().flat_map(HistoryEntry::files), &lock);
            }
            drop(lock);
            expected.clone_from(&entries);
            history.push(Batch::from_bytes(bytes)?)?;
            outcome.n_new_commits += n_commits;
            outcome.n_new_changes += u64::from(n_changes);
        }
        ctx.progress.end();
        Ok(true)
    }

    /// Merges small batches.
    fn tidy(&self, sidecar: &Sidecar, interrupt: &AtomicBool) -> Result<(), RecordError> {
        let sizes = |state: &State| -> Vec<u32> { state.history.iter().map(|entry| entry.n_commits).collect() };
        let Some(state) = sidecar.state()?.filter(|state| mergeable(&sizes(state)).is_some()) else {
            return Ok(());
        };
        let lock = sidecar.lock_unless(self.patience, interrupt)?;
        let mut state = sidecar.state()?.unwrap_or(state);
        while let Some(n) = mergeable(&sizes(&state)) {
            let at = state.history.len() - n;
            let retired = state.history.split_off(at);
            state.history.push(merge(sidecar, &retired)?);
            publish_state(sidecar, &lock, &mut state)?;
            retire_history(sidecar, &retired);
        }
        Ok(())
    }
}

fn merge(sidecar: &Sidecar, entries: &[HistoryEntry]) -> Result<HistoryEntry, RecordError> {
    let mut batches = Vec::with_capacity(entries.len());
    let mut symbols = Vec::with_capacity(entries.len());
    for entry in entries {
        batches.push(Batch::open(sidecar, &entry.records.name)?);
        // Damaged files are omitted and computed again later.
        let file = entry.symbols.as_ref();
        symbols.push(file.and_then(|file| SymbolBatch::open(sidecar, &file.name).ok()));
    }
    let bytes = merged(&batches.iter().collect::<Vec<_>>())?;
    let whole = Batch::from_bytes(bytes.clone())?;
    let parts: Vec<_> = batches.iter().zip(symbols.iter().map(Option::as_ref)).collect();
    let symbols = match merged_symbols(&parts, &whole)? {
        Some(symbols) => Some(store(sidecar, Store::History, SYMBOLS_ENDING, &symbols)?),
        None => None,
    };
    let mut entry = HistoryEntry {
        base_commit: entries.first().map_or(0, |first| first.base_commit),
        n_commits: entries.iter().map(|entry| entry.n_commits).sum(),
        records: store(sidecar, Store::History, HISTORY_ENDING, &bytes)?,
        symbols,
        messages: None,
        lines: None,
    };
    merge_sides(sidecar, entries, &whole, &mut entry)?;
    Ok(entry)
}

/// Returns the published state, or the first state of a new epoch. Only the lock holder may publish the latter.
pub(super) fn current_state(sidecar: &Sidecar) -> Result<State, RecordError> {
    sidecar.state()?.map_or_else(first_state, Ok)
}

fn first_state() -> Result<State, RecordError> {
    Ok(State {
        epoch: random_bytes().map_err(RecordError::Random)?,
        ..State::default()
    })
}
