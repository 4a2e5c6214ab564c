//! Opens the recorded history for a command, recording first what is missing.

use std::collections::HashMap;
use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result};

use crate::git::{BlobContent, KnownFiles, OnDisk, WorkTreeReader};
use crate::history::{Entry, History, Mailmap, Reachable};
use crate::ingest::{Progress, RecordError, RecordOutcome, Recorder, Target};
use crate::model::{BlobId, CommitId, RepoPath};
use crate::sidecar::StateError;
use crate::surface::open::{PATIENCE, Workspace, is_read_only};

/// Records that could not be kept.
const IN_MEMORY_NOTE: &str = "the index cannot be written here; commits were recorded in memory";
/// A mailmap is a small file.
const MAX_MAILMAP_BYTES: u64 = 4 << 20;

/// The recorded history, seen from one revision.
pub struct OpenedHistory {
    /// All recorded commits.
    pub history: History,
    /// The commit and tree that were asked about; `None` before the first commit.
    pub target: Option<Target>,
    /// The commit's number.
    pub tip: Option<u32>,
    /// What it reaches.
    pub reached: Reachable,
    /// Proper names and addresses.
    pub mailmap: Mailmap,
    /// What is to be said about the answer.
    pub notes: Vec<String>,
}

/// A file that differs from the commit that is checked out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Uncommitted {
    /// Its path.
    pub path: RepoPath,
    /// What the commit has there.
    pub old: Option<Entry>,
    /// What stands there; `None` if it is gone.
    pub new: Option<Entry>,
    /// Where an added file was before, if its content is that of one that is gone.
    pub origin: Option<RepoPath>,
}

impl Workspace {
    fn recorder(&self) -> Recorder<'_> {
        Recorder {
            repository: &self.repository,
            max_commits: 0,
            n_threads: std::thread::available_parallelism().map_or(1, usize::from),
            patience: PATIENCE,
        }
    }

    /// Records everything that `tips` reach.
    pub fn record_history(
        &self,
        tips: &[CommitId],
        progress: &dyn Progress,
        interrupt: &AtomicBool,
    ) -> Result<RecordOutcome> {
        let sidecar = self.open_or_create_sidecar(interrupt)?;
        Ok(self.recorder().record(&sidecar, tips, progress, interrupt)?)
    }

    /// Records what `tips` reach if commits are recorded here already; `None` if they are not.
    pub fn record_new_commits(
        &self,
        tips: &[CommitId],
        progress: &dyn Progress,
        interrupt: &AtomicBool,
    ) -> Result<Option<RecordOutcome>> {
        match tips.is_empty() || !self.has_history() {
            true => Ok(None),
            false => self.record_history(tips, progress, interrupt).map(Some),
        }
    }

    /// Whether commits are recorded here, so that new ones are to be recorded too.
    pub fn has_history(&self) -> bool {
        matches!(self.sidecar(), Ok(Some((_, Some(state)))) if !state.history.is_empty())
    }

    /// Opens the history of a revision. `WORKTREE` and `INDEX` stand for the commit below them.
    pub fn history(&self, reference: &str, progress: &dyn Progress, interrupt: &AtomicBool) -> Result<OpenedHistory> {
        let target = self.target(reference)?;
        let mut notes = Vec::new();
        let commit = match target {
            None => None,
            Some(target) => Some(
                target
                    .commit
                    .with_context(|| format!("{reference} is a tree, which has no history"))?,
            ),
        };
        let history = match commit {
            None => History::default(),
            Some(commit) => self.history_with(commit, &mut notes, progress, interrupt)?,
        };
        let tip = commit.and_then(|commit| history.number(commit));
        Ok(OpenedHistory {
            reached: history.reachable(tip.as_slice()),
            mailmap: self.mailmap(target)?,
            history,
            target,
            tip,
            notes,
        })
    }

    fn history_with(
        &self,
        commit: CommitId,
        notes: &mut Vec<String>,
        progress: &dyn Progress,
        interrupt: &AtomicBool,
    ) -> Result<History> {
        let stored = self.stored_history()?;
        if let Some(history) = stored.as_ref().filter(|history| history.number(commit).is_some()) {
            return Ok(history.clone());
        }
        match self.record_history(&[commit], progress, interrupt) {
            Ok(_) => {
                let history = self
                    .stored_history()?
                    .context("the records were written and are gone again")?;
                Ok(history)
            }
            Err(error) if is_read_only(&error) || is_damaged(&error) => {
                tracing::warn!("{error:#}");
                notes.push(IN_MEMORY_NOTE.to_owned());
                let known = stored.unwrap_or_default();
                Ok(self.recorder().record_in_memory(known, &[commit], interrupt)?)
            }
            Err(error) => Err(error),
        }
    }

    fn stored_history(&self) -> Result<Option<History>> {
        match self.sidecar() {
            Ok(Some((sidecar, Some(state)))) => Ok(self.recorder().sound(&sidecar, &state)?),
            Ok(_) => Ok(None),
            Err(error) if is_damaged(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The mailmap on disk, else that of the commit.
    fn mailmap(&self, target: Option<Target>) -> Result<Mailmap> {
        let on_disk = self.repository.work_dir().map(|root| root.join(".mailmap"));
        // A link could lead anywhere; git does not follow this one either.
        let is_file = |path: &std::path::PathBuf| path.symlink_metadata().is_ok_and(|meta| meta.is_file());
        if let Some(path) = on_disk.filter(is_file) {
            return Ok(std::fs::read(path)
                .map(|text| Mailmap::parse(&text))
                .unwrap_or_default());
        }
        let Some(target) = target.filter(|_| self.repository.work_dir().is_none()) else {
            return Ok(Mailmap::default());
        };
        let mut reader = self.repository.reader();
        let path = RepoPath::from(".mailmap");
        let found = reader.diff_trees_at(None, target.tree, &[&path])?;
        let Some(blob) = found
            .first()
            .and_then(|change| change.new)
            .and_then(|entry| entry.blob())
        else {
            return Ok(Mailmap::default());
        };
        Ok(match reader.blob(blob, MAX_MAILMAP_BYTES)? {
            BlobContent::Content(text) => Mailmap::parse(&text),
            _ => Mailmap::default(),
        })
    }

    /// What differs from the commit that is checked out: on disk for `WORKTREE`, staged for `INDEX`, else nothing.
    pub fn uncommitted(&self, reference: &str, interrupt: &AtomicBool) -> Result<Vec<Uncommitted>> {
        let mut changes: Vec<Uncommitted> = match reference {
            "WORKTREE" if self.repository.work_dir().is_some() => {
                let max_bytes = self.build_options().max_blob_bytes;
                let found = self
                    .repository
                    .work_tree_changes(max_bytes, &mut KnownFiles::default(), interrupt)?;
                let change = |change: crate::git::WorkTreeChange| Uncommitted {
                    path: change.path,
                    old: change.old.map(Into::into),
                    new: match change.new {
                        OnDisk::File { mode, blob } => Some(Entry { mode, oid: blob.0 }),
                        OnDisk::Submodule(commit) => Some(Entry {
                            mode: crate::git::FileMode::Submodule,
                            oid: commit.0,
                        }),
                        // Touched, in a way that is not known.
                        OnDisk::Unread(_) => change.old.map(Into::into),
                        OnDisk::Absent => None,
                    },
                    origin: None,
                };
                found.changes.into_iter().map(change).collect()
            }
            "INDEX" => {
                let staged = self.repository.index_changes()?.into_iter();
                let change = |change: crate::git::TreeChange| Uncommitted {
                    path: change.path,
                    old: change.old.map(Into::into),
                    new: change.new.map(Into::into),
                    origin: None,
                };
                staged.map(change).collect()
            }
            _ => Vec::new(),
        };
        let gone = changes.iter().filter(|change| change.new.is_none());
        let gone: HashMap<_, _> = gone
            .filter_map(|change| Some((change.old?.oid, change.path.clone())))
            .collect();
        for change in changes.iter_mut().filter(|change| change.old.is_none()) {
            change.origin = change.new.and_then(|new| gone.get(&new.oid).cloned());
        }
        Ok(changes)
    }

    /// The bytes of an uncommitted file, or of one in the repository.
    pub fn content(&self, path: &RepoPath, entry: Entry, disk: &mut Option<WorkTreeReader>) -> Result<Option<Vec<u8>>> {
        let max_bytes = self.build_options().max_blob_bytes;
        if let BlobContent::Content(bytes) = self.repository.reader().blob(BlobId(entry.oid), max_bytes)? {
            return Ok(Some(bytes));
        }
        if self.repository.work_dir().is_none() {
            return Ok(None);
        }
        let reader = match disk {
            Some(reader) => reader,
            none => none.insert(self.repository.work_tree_reader()?),
        };
        Ok(reader.read(path, max_bytes).ok().map(|file| file.bytes))
    }

    /// The tips of all local branches and of what is checked out.
    pub fn branch_tips(&self) -> Result<Vec<CommitId>> {
        let refs = self.repository.refs()?.into_iter();
        let branches = refs.filter(|found| found.kind == crate::git::RefKind::Branch);
        let mut tips: Vec<CommitId> = branches.filter_map(|branch| branch.commit).collect();
        tips.extend(self.repository.head()?.commit());
        tips.sort_unstable();
        tips.dedup();
        Ok(tips)
    }
}

fn is_damaged(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        let is_state = |error: &StateError| matches!(error, StateError::Damaged { .. });
        cause.downcast_ref::<StateError>().is_some_and(is_state)
            || matches!(cause.downcast_ref::<RecordError>(), Some(RecordError::State(error)) if is_state(error))
    })
}
