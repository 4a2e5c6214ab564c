//! Opens the recorded history for a command, and records missing commits first.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use super::error::{Context as _, OpError, Result, ensure};
use crate::git::{BlobContent, KnownFiles, ObjectReader, OnDisk, WorkTreeChanges, WorkTreeReader};
use crate::history::{
    Batch, Entry, History, LineChanges, Mailmap, Messages, Reachable, SymbolChangeCache, past_files, record_recipe,
    symbol_recipe, unread,
};
use crate::ingest::{
    Audit, ExportedCommits, ImportRefusal, Outcome, ReceivedCommits, RecordError, RecordOutcome, Recorder, Target,
    TraceOutcome, VerifiedCommits,
};
use crate::model::{BlobId, CommitId, Ctx, ErrorKind, Oid, RepoPath, TreeId, chain};
use crate::query::CommitMessages;
use crate::session::{CallCtx, Event, Keeping, PATIENCE, Steps, Workspace, is_read_only};
use crate::sidecar::{HistoryEntry, PastVersions, Sidecar, State, Store};
use crate::snapshot::{View, missing_blobs};

/// Notes for an answer whose commits could not be stored.
const IN_MEMORY_NOTE: &str = "the index cannot be written here; commits were recorded in memory";
const DAMAGED_NOTE: &str = "the index is damaged, so commits were recorded in memory; run codescout verify --repair";
/// Maximum number of new commits that are traced before answering. If there are more, the next indexing run traces
/// them.
const MAX_TRACED_FIRST: u32 = 256;
/// Maximum number of commits whose messages are recorded while a command or a call waits, the newest. Takes seconds.
const MAX_WAITED_COMMITS: usize = 10_000;
/// Maximum number of commits after the last recorded one for which messages are still used.
const MAX_UNRECORDED: usize = 256;
/// Maximum number of commits with incomplete changes for which missing objects are listed.
const MAX_UNKNOWN: usize = 1_000;
/// Maximum size of a mailmap. A larger one is ignored.
const MAX_MAILMAP_BYTES: u64 = 4 << 20;

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

/// The messages that the last search used.
pub(super) struct HeldMessages {
    commit: CommitId,
    /// The stored batches that were opened.
    entries: Vec<HistoryEntry>,
    messages: Arc<CommitMessages>,
}

/// Determines which data about commits is recorded.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Recorded {
    has_commits: bool,
    is_searchable: bool,
    is_traced: bool,
}

/// Recorded commits, and the state's entries for their batches.
type StoredHistory = (History, Vec<HistoryEntry>);

/// A file that differs from the checked-out commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Uncommitted {
    /// The path of the file.
    pub path: RepoPath,
    /// The entry in the commit; `None` if the file was added.
    pub old: Option<Entry>,
    /// The current entry; `None` if the file was deleted.
    pub new: Option<Entry>,
    /// The previous path of an added file whose content equals that of a deleted file.
    pub origin: Option<RepoPath>,
}

impl Uncommitted {
    /// Converts the differences found on disk.
    pub(crate) fn of(found: WorkTreeChanges) -> Vec<Self> {
        let change = |change: crate::git::WorkTreeChange| Self {
            path: change.path,
            old: change.old.map(Into::into),
            new: match change.new {
                OnDisk::File { mode, blob } => Some(Entry { mode, oid: blob.0 }),
                OnDisk::Submodule(commit) => Some(Entry {
                    mode: crate::git::FileMode::Submodule,
                    oid: commit.0,
                }),
                // The file was touched, but its content was not read.
                OnDisk::Unread(_) => change.old.map(Into::into),
                OnDisk::Absent => None,
            },
            origin: None,
        };
        Self::with_origins(found.changes.into_iter().map(change).collect())
    }

    /// Sets `origin` for renamed files with unchanged content.
    fn with_origins(mut changes: Vec<Self>) -> Vec<Self> {
        let gone = changes.iter().filter(|change| change.new.is_none());
        let gone: HashMap<_, _> = gone
            .filter_map(|change| Some((change.old?.oid, change.path.clone())))
            .collect();
        for change in changes.iter_mut().filter(|change| change.old.is_none()) {
            change.origin = change.new.and_then(|new| gone.get(&new.oid).cloned());
        }
        changes
    }
}

/// The recorded history of a repository: commits, their messages and changed lines, and traced definitions.
#[derive(Clone, Copy)]
pub struct Records<'w> {
    workspace: &'w Workspace,
}

impl Workspace {
    /// Returns the recorded history.
    pub fn records(&self) -> Records<'_> {
        Records { workspace: self }
    }
}

impl<'w> Records<'w> {
    fn recorder(self) -> Recorder<'w> {
        Recorder {
            repository: &self.workspace.repository,
            limit: self.workspace.config.history_limit(now()),
            n_threads: std::thread::available_parallelism().map_or(1, usize::from),
            patience: PATIENCE,
        }
    }

    /// Returns a recorder for messages that a command or call waits for: if no commit is recorded, it records only the
    /// newest.
    fn quick_recorder(self) -> Recorder<'w> {
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
        let max_bytes = self.workspace.build_options().max_blob_bytes;
        Ok(self.recorder().trace(&sidecar, max_bytes, until, ctx)?)
    }

    /// Prepares the records of all commits reachable from `tips` for export. Records and traces missing commits first.
    pub(crate) fn given_commits(self, tips: &[CommitId], ctx: Ctx<'_>) -> Result<ExportedCommits> {
        ensure!(!tips.is_empty(), "a tree has no history: use a commit");
        let sidecar = self.workspace.storage.open_or_create(ctx.interrupt)?;
        let recorder = self.recorder();
        recorder.record(&sidecar, tips, ctx)?;
        recorder.index_lines(&sidecar, ctx)?;
        self.trace_history(ctx)?;
        Ok(recorder.give(&sidecar, tips, self.workspace.build_options().max_blob_bytes)?)
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
        let max_bytes = self.workspace.build_options().max_blob_bytes;
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

    /// Returns the objects that indexing or tracing needed but could not read, each once: blobs of HEAD with their
    /// paths, and file versions in recorded commits. They may have become readable since.
    pub(crate) fn unread_objects(self) -> Result<Vec<(Option<RepoPath>, Oid)>> {
        let mut found = Vec::new();
        if let Some(target) = self.workspace.target("HEAD")? {
            let files = self
                .workspace
                .stored_tree(target.tree)
                .map(|layers| missing_blobs(&layers));
            found.extend(files.into_iter().flatten().map(|(path, blob)| (Some(path), blob.0)));
        }
        let (history, _) = self.stored_history()?.unwrap_or_default();
        for (at, batch) in history.batches().iter().enumerate() {
            let symbols = history.symbols(at, self.symbol_recipe());
            if let Some(symbols) = symbols.filter(|symbols| symbols.n_unread() > 0) {
                let versions = unread(batch, symbols)?.into_iter().flat_map(|(_, versions)| versions);
                found.extend(versions.map(|oid| (None, oid)));
            }
        }
        for number in history.unknown().into_iter().take(MAX_UNKNOWN) {
            let changes = history.changes_at(number)?.into_iter();
            let compared = changes.filter(|change| change.old.is_none() || change.new.is_none());
            found.extend(compared.filter_map(|change| Some((None, change.old.or(change.new)?.oid))));
        }
        let mut seen = HashSet::new();
        found.retain(|(_, oid)| seen.insert(*oid));
        Ok(found)
    }

    /// Returns a note about files of a revision that were not searched because their blobs cannot be read. `None` if
    /// there are no such files.
    pub(crate) fn unread_files(self, target: Option<Target>) -> Option<String> {
        let layers = self.workspace.stored_tree(target?.tree)?;
        let n_files = Some(missing_blobs(&layers).len()).filter(|&n_files| n_files > 0)?;
        Some(format!(
            "{n_files} files of this revision are missing or damaged in git, so their definitions are unknown; {}",
            self.how_to_get_objects()
        ))
    }

    /// Returns advice for missing or damaged objects.
    pub(crate) fn how_to_get_objects(self) -> &'static str {
        if self.workspace.repository.is_partial() {
            "run git fetch --refetch --no-filter, then codescout index"
        } else {
            "run codescout doctor for a fix"
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

    /// The recipe (version and settings) for tracing definitions.
    pub fn symbol_recipe(self) -> u64 {
        symbol_recipe(self.workspace.build_options().max_blob_bytes)
    }

    /// The recipe (version and settings) that determines the content of exported records.
    pub(crate) fn record_recipe(self) -> u64 {
        record_recipe(self.workspace.build_options().max_blob_bytes)
    }

    /// Returns true if definitions are traced through some commits. Then new commits are traced too.
    pub(crate) fn is_traced(self) -> bool {
        let is_traced = |state: &State| state.history.iter().any(|entry| entry.symbols.is_some());
        matches!(self.workspace.storage.open_with_state(), Ok(Some((_, Some(state)))) if is_traced(&state))
    }

    /// Returns true if commits were made searchable. Then new commits are made searchable too.
    pub fn has_searchable_history(self) -> bool {
        matches!(self.workspace.storage.open_with_state(), Ok(Some((_, Some(state)))) if state.has_searchable_history())
    }

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
        let mailmap = self.mailmap(target, &mut notes)?;
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

    fn stored_history(self) -> Result<Option<StoredHistory>> {
        self.stored_by(&self.recorder())
    }

    /// Opens the stored history, unless the recorder would record it again.
    fn stored_by(self, recorder: &Recorder<'_>) -> Result<Option<StoredHistory>> {
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
        let held = || self.workspace.messages.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(held) = &*held()
            && (held.commit, &held.entries) == (commit, &state.history)
        {
            return Ok(Some(Arc::clone(&held.messages)));
        }
        let recorder = self.quick_recorder();
        let (history, mut entries) = match recorder.sound(&sidecar, &state)? {
            Some(history) => (history, state.history),
            None => match self.record_messages(&[commit], true, Ctx::silent(interrupt))? {
                Some(_) => self.stored_by(&recorder)?.unwrap_or_default(),
                None => return Ok(None),
            },
        };
        let Some(tip) = self.last_recorded(&history, commit)? else {
            return Ok(None);
        };
        let mut messages = self.stored_messages(history.batches().len(), &entries)?;
        let indexed = messages.iter().flatten().map(|messages| messages.n_commits() as usize);
        let n_left = MAX_WAITED_COMMITS.saturating_sub(indexed.sum());
        if n_left > 0 && messages.iter().any(Option::is_none) {
            let embedder = self.workspace.models.own_embedder();
            recorder.index_messages(&sidecar, embedder, n_left, Ctx::silent(interrupt))?;
            entries = sidecar.state()?.unwrap_or_default().history;
            messages = self.stored_messages(history.batches().len(), &entries)?;
        }
        if messages.iter().all(Option::is_none) {
            return Ok(None);
        }
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
        let open = |at: usize| {
            let file = entries.get(at)?.messages.as_ref()?;
            match Messages::open(sidecar.as_ref()?, &file.name) {
                Ok(messages) => (messages.profile() == profile).then_some(messages),
                Err(error) => {
                    tracing::warn!("{}: indexing commit messages again", chain(&error));
                    None
                }
            }
        };
        Ok((0..n_batches).map(open).collect())
    }

    /// Returns the signatures of changed lines, one element per batch. `None` for a batch without signatures.
    pub fn line_changes(self, opened: &OpenedHistory) -> Result<Vec<Option<LineChanges>>> {
        let sidecar = self.workspace.storage.open()?;
        let open = |at: usize| {
            let file = opened.entries.get(at)?.lines.as_ref()?;
            LineChanges::open(sidecar.as_ref()?, &file.name).ok()
        };
        Ok((0..opened.history.batches().len()).map(open).collect())
    }

    /// Reads mailmaps in git's order: first the file in the worktree (in a bare repository, the file in the commit),
    /// then those named by the configuration. Later entries take precedence.
    fn mailmap(self, target: Option<Target>, notes: &mut Vec<String>) -> Result<Mailmap> {
        let configured = self.workspace.repository.configured_mailmaps();
        let mut texts = Vec::new();
        match self.workspace.repository.work_dir() {
            // Like git, does not read `.mailmap` through a symbolic link.
            Some(root) => texts.extend(read_file(&root.join(".mailmap"))),
            None if configured.blob.is_none() => {
                let tree = target.map(|target| target.tree);
                texts.extend(tree.map(|tree| self.blob_at(tree, ".mailmap")).transpose()?.flatten());
            }
            None => {}
        }
        if let Some(name) = &configured.blob {
            let text = self.named_blob(name)?;
            if text.is_none() {
                notes.push(format!("mailmap.blob: no blob {name:?} in this repository"));
            }
            texts.extend(text);
        }
        if let Some(path) = &configured.file {
            let text = read_file(path);
            if text.is_none() {
                notes.push(format!("mailmap.file: cannot read {}", path.display()));
            }
            texts.extend(text);
        }
        Ok(Mailmap::parse(&texts.join(&b'\n')))
    }

    /// Reads a blob given as `revision:path` or as an id.
    fn named_blob(self, name: &str) -> Result<Option<Vec<u8>>> {
        match name.split_once(':') {
            Some((revision, path)) => match self.workspace.repository.resolve(revision) {
                Ok(resolved) => self.blob_at(resolved.tree, path),
                Err(_) => Ok(None),
            },
            None => match Oid::from_hex(name) {
                Ok(oid) => self.mailmap_blob(BlobId(oid)),
                Err(_) => Ok(None),
            },
        }
    }

    fn blob_at(self, tree: TreeId, path: &str) -> Result<Option<Vec<u8>>> {
        let path = RepoPath::from(path);
        let found = self.workspace.repository.reader().diff_trees_at(None, tree, &[&path])?;
        let blob = found.first().and_then(|change| change.new?.blob());
        blob.map_or(Ok(None), |blob| self.mailmap_blob(blob))
    }

    fn mailmap_blob(self, blob: BlobId) -> Result<Option<Vec<u8>>> {
        Ok(
            match self.workspace.repository.reader().blob(blob, MAX_MAILMAP_BYTES)? {
                BlobContent::Content(text) => Some(text),
                _ => None,
            },
        )
    }

    /// Returns the differences from the checked-out commit: files on disk for `WORKTREE`, staged files for `INDEX`,
    /// otherwise none.
    pub fn uncommitted(self, reference: &str, interrupt: &AtomicBool) -> Result<Vec<Uncommitted>> {
        match reference {
            "WORKTREE" if self.workspace.repository.work_dir().is_some() => {
                let max_bytes = self.workspace.build_options().max_blob_bytes;
                let found =
                    self.workspace
                        .repository
                        .work_tree_changes(max_bytes, &mut KnownFiles::default(), interrupt)?;
                Ok(Uncommitted::of(found))
            }
            "INDEX" => {
                let staged = self.workspace.repository.index_changes()?.into_iter();
                let change = |change: crate::git::TreeChange| Uncommitted {
                    path: change.path,
                    old: change.old.map(Into::into),
                    new: change.new.map(Into::into),
                    origin: None,
                };
                Ok(Uncommitted::with_origins(staged.map(change).collect()))
            }
            _ => Ok(Vec::new()),
        }
    }

    /// Returns the bytes of a file, from the repository or, if it is uncommitted, from disk.
    pub fn content(self, path: &RepoPath, entry: Entry, disk: &mut Option<WorkTreeReader>) -> Result<Option<Vec<u8>>> {
        let max_bytes = self.workspace.build_options().max_blob_bytes;
        if let BlobContent::Content(bytes) = self.workspace.repository.reader().blob(BlobId(entry.oid), max_bytes)? {
            return Ok(Some(bytes));
        }
        if self.workspace.repository.work_dir().is_none() {
            return Ok(None);
        }
        let reader = match disk {
            Some(reader) => reader,
            none => none.insert(self.workspace.repository.work_tree_reader()?),
        };
        // The file may have changed since `entry` was read.
        let file = reader.read(path, max_bytes).ok();
        Ok(file.filter(|file| file.blob.0 == entry.oid).map(|file| file.bytes))
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

/// Returns the commit of the target, or `None` before the first commit.
fn commit_of(reference: &str, target: Option<Target>) -> Result<Option<CommitId>> {
    let commit = |target: Target| {
        target
            .commit
            .with_context(|| format!("{reference} is a tree, which has no history"))
    };
    target.map(commit).transpose()
}

/// Reads a regular file of at most [`MAX_MAILMAP_BYTES`].
fn read_file(path: &Path) -> Option<Vec<u8>> {
    let is_small = |meta: &std::fs::Metadata| meta.is_file() && meta.len() <= MAX_MAILMAP_BYTES;
    path.symlink_metadata().ok().filter(is_small)?;
    std::fs::read(path).ok()
}

/// Returns the current time in seconds since 1970.
fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs() as i64)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
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
