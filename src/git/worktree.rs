//! The work tree against the commit that is checked out: staged, unstaged and untracked changes in one.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::Cause;
use super::beneath::Root;
use super::diff::{TreeChange, TreeEntry};
use super::disk_file::{Unread, WorkTreeReader};
use super::index::{Index, Tracked};
use super::known_files::{Candidate, Content, KnownFiles};
use super::open::Repository;
use super::reader::ObjectError;
use super::refs::RefError;
use super::scan::{self, DiskRules};
use super::tree::FileMode;
use super::untracked::{self, is_sidecar};
use crate::model::{BlobId, CommitId, RepoPath, TreeId};
use gix::index::entry::Stat;

/// What differs between the commit that is checked out and the files on disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkTreeChanges {
    /// The commit that is checked out; `None` if there is none yet.
    pub commit: Option<CommitId>,
    /// Its tree.
    pub tree: Option<TreeId>,
    /// In the order of paths.
    pub changes: Vec<WorkTreeChange>,
    /// Files and folders about which nothing is known, because the system refused to tell; with its reason. Tracked
    /// files among and below them do not count as changed.
    pub unreadable: Vec<(RepoPath, String)>,
    /// How many files are tracked, those outside a sparse checkout not counted.
    pub n_tracked: usize,
    /// Whether there is an index. Without one, as after `git clone --no-checkout`, every file of the commit counts as
    /// deleted.
    pub has_index: bool,
}

/// A path at which the disk differs from the commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkTreeChange {
    /// From the root of the work tree.
    pub path: RepoPath,
    /// What the commit has there; `None` if the file is new.
    pub old: Option<TreeEntry>,
    /// What the disk has there.
    pub new: OnDisk,
    /// Where the change stands in git's eyes.
    pub stage: Stage,
}

/// What the disk has at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OnDisk {
    /// No file.
    Absent,
    /// A file or link with this content, in the form that git would store.
    File {
        /// What it is.
        mode: FileMode,
        /// What its blob would be.
        blob: BlobId,
    },
    /// A submodule at a commit: a boundary.
    Submodule(CommitId),
    /// A file that was not read, so that it is only known to have been touched.
    Unread(Unread),
}

/// Where a change stands on its way into a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// In the index, and the same on disk.
    Staged,
    /// Of a tracked file, on disk and not, or not all of it, in the index.
    Unstaged,
    /// A new file that git does not know of.
    Untracked,
    /// A merge has left the path for a person to resolve.
    Conflicted,
}

/// Why the work tree could not be compared.
#[derive(Debug, thiserror::Error)]
pub enum WorkTreeError {
    /// The repository is bare, or the folder is gone.
    #[error("the repository has no work tree")]
    NoWorkTree,
    /// The index cannot be decoded.
    #[error("cannot read the index {}", .path.display())]
    Index {
        /// The index file.
        path: PathBuf,
        /// What went wrong.
        #[source]
        source: Cause,
    },
    /// A setting, or a file with ignore rules or attributes, cannot be read.
    #[error("cannot read the rules for the files of the work tree")]
    Rules(#[source] Cause),
    /// The root cannot be opened.
    #[error("cannot read the work tree {}", .path.display())]
    Root {
        /// The root of the work tree.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// What is checked out cannot be told.
    #[error("cannot find out what is checked out")]
    Head(#[from] RefError),
    /// The commit that is checked out, or one of its trees, cannot be read.
    #[error("cannot read the commit that is checked out")]
    Object(#[from] ObjectError),
    /// The caller asked to stop.
    #[error("interrupted")]
    Interrupted,
}

impl WorkTreeError {
    pub(super) fn rules(source: gix::Error) -> Self {
        Self::Rules(Box::new(source))
    }
}

impl Repository {
    /// How the index differs from the commit that is checked out, in the order of paths. An unmerged path counts with our
    /// side.
    pub fn index_changes(&self) -> Result<Vec<TreeChange>, WorkTreeError> {
        let mut reader = self.reader();
        let tree = self.head_tree(&mut reader)?.map(|(_, tree)| tree);
        Ok(Index::read(self)?.changes_since(&mut reader, tree)?)
    }

    /// How the files on disk, tracked or untracked but not ignored, differ from the commit that is checked out.
    ///
    /// Costs a system call for each tracked file, like `git status`, and reads only what can have changed and is not among
    /// `known`, to which it adds. Files over `max_bytes` are not read. Writes nothing, the index least of all.
    pub fn work_tree_changes(
        &self,
        max_bytes: u64,
        known: &mut KnownFiles,
        interrupt: &AtomicBool,
    ) -> Result<WorkTreeChanges, WorkTreeError> {
        let root = self.root()?;
        let mut reader = self.reader();
        let head = self.head_tree(&mut reader)?;
        let tree = head.map(|(_, tree)| tree);
        let mut index = Index::read(self)?;
        let staged = index.changes_since(&mut reader, tree)?;
        index.expand(&mut reader, &|folder| {
            root.folder(folder.strip_suffix(b"/").unwrap_or(folder)).is_ok()
        })?;
        let rules = self.disk_rules(&index)?;
        let index = Arc::new(index);
        let tracked = index.tracked();
        let mut scan =
            scan::scan(&root, &tracked, &rules, known.listings(), interrupt).ok_or(WorkTreeError::Interrupted)?;
        known.remember_listings(&root, &mut scan);
        let unknown = std::mem::take(&mut scan.unknown);
        let mut untracked = untracked::find(&self.local(), &index, &root, &rules, unknown, interrupt)?;
        scan.unreadable.append(&mut untracked.unreadable);
        let candidates = candidates(&tracked, &scan, &untracked.files);
        known.check_rules(self, &root, &candidates, &tracked);
        let reader = WorkTreeReader::new(self, Arc::clone(&index), rules)?;
        let contents = known.contents(&candidates, &reader, max_bytes, interrupt)?;
        let mut comparison = Comparison::new(&staged);
        candidates
            .iter()
            .zip(contents)
            .for_each(|(candidate, content)| comparison.add(candidate, content));
        scan.absent
            .iter()
            .for_each(|position| comparison.add_absent(&tracked[*position]));
        let n_outside = scan
            .absent
            .iter()
            .filter(|position| tracked[**position].may_be_absent)
            .count();
        Ok(WorkTreeChanges {
            commit: head.map(|(commit, _)| commit),
            tree,
            changes: comparison.finish(),
            unreadable: scan
                .unreadable
                .into_iter()
                .map(|(path, error)| (RepoPath::new(path), error.to_string()))
                .collect(),
            n_tracked: tracked.len() - n_outside,
            has_index: index.is_present,
        })
    }

    fn head_tree(&self, reader: &mut super::reader::ObjectReader) -> Result<Option<(CommitId, TreeId)>, WorkTreeError> {
        match self.head()?.commit() {
            Some(commit) => Ok(Some((commit, reader.commit(commit)?.tree))),
            None => Ok(None),
        }
    }

    pub(super) fn root(&self) -> Result<Root, WorkTreeError> {
        let path = self.work_dir().ok_or(WorkTreeError::NoWorkTree)?;
        Root::open(path).map_err(|source| WorkTreeError::Root {
            path: path.to_owned(),
            source,
        })
    }

    pub(super) fn disk_rules(&self, index: &Index) -> Result<DiskRules, WorkTreeError> {
        let local = self.local();
        let file_system = local.filesystem_options().map_err(WorkTreeError::rules)?;
        Ok(DiskRules {
            stat: local.stat_options().map_err(WorkTreeError::rules)?,
            has_executable_bit: file_system.executable_bit,
            has_symlinks: file_system.symlink,
            ignores_case: file_system.ignore_case,
            precomposes_unicode: file_system.precompose_unicode,
            index_time: index.timestamp(),
        })
    }
}

/// The files whose content decides whether they have changed.
fn candidates<'t>(tracked: &'t [Tracked<'t>], scan: &scan::Scan, untracked: &'t [Vec<u8>]) -> Vec<Candidate<'t>> {
    let suspects = scan.suspects.iter().map(|(position, stat)| Candidate {
        path: tracked[*position].path,
        tracked: Some(&tracked[*position]),
        stat: Some(*stat),
    });
    let new = untracked.iter().map(|path| Candidate {
        path,
        tracked: None,
        stat: None,
    });
    suspects
        .chain(new)
        .filter(|candidate| !is_sidecar(candidate.path))
        .collect()
}

/// Puts together, path by path, what the commit has and what the disk has.
struct Comparison<'c> {
    /// What is staged and, so far, the same on disk.
    staged: HashMap<&'c [u8], &'c TreeChange>,
    changes: Vec<WorkTreeChange>,
}

impl<'c> Comparison<'c> {
    fn new(staged: &'c [TreeChange]) -> Self {
        let by_path = staged.iter().map(|change| (change.path.as_bytes(), change));
        Self {
            staged: by_path.filter(|(path, _)| !is_sidecar(path)).collect(),
            changes: Vec::new(),
        }
    }

    fn add(&mut self, candidate: &Candidate<'_>, content: Content) {
        let new = match content.on_disk {
            OnDisk::Unread(Unread::Absent) => OnDisk::Absent,
            new => new,
        };
        let tracked = candidate.tracked;
        let is_as_staged = tracked.is_some_and(|tracked| {
            !tracked.is_conflicted
                && (is_entry(&new, tracked.staged()) || is_too_large_and_untouched(&new, tracked, &content.stat))
        });
        if is_as_staged {
            return;
        }
        let stage = match tracked {
            None => Stage::Untracked,
            Some(tracked) if tracked.is_conflicted => Stage::Conflicted,
            Some(_) => Stage::Unstaged,
        };
        self.record(candidate.path, tracked, new, stage);
    }

    fn add_absent(&mut self, tracked: &Tracked<'_>) {
        let stage = match tracked.is_conflicted {
            true => Stage::Conflicted,
            false if tracked.may_be_absent => return,
            false => Stage::Unstaged,
        };
        self.record(tracked.path, Some(tracked), OnDisk::Absent, stage);
    }

    fn record(&mut self, path: &[u8], tracked: Option<&Tracked<'_>>, new: OnDisk, stage: Stage) {
        let old = match self.staged.remove(path) {
            Some(change) => change.old,
            None => tracked.and_then(Tracked::staged),
        };
        if !is_entry(&new, old) {
            let path = RepoPath::new(path);
            self.changes.push(WorkTreeChange { path, old, new, stage });
        }
    }

    /// What is left of the staged changes is on disk as it was staged.
    fn finish(mut self) -> Vec<WorkTreeChange> {
        self.changes
            .extend(self.staged.into_values().map(|change| WorkTreeChange {
                path: change.path.clone(),
                old: change.old,
                new: change.new.map_or(OnDisk::Absent, OnDisk::of_entry),
                stage: Stage::Staged,
            }));
        self.changes.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        self.changes
    }
}

impl OnDisk {
    fn of_entry(entry: TreeEntry) -> Self {
        match entry.blob() {
            Some(blob) => Self::File { mode: entry.mode, blob },
            None => Self::Submodule(CommitId(entry.oid)),
        }
    }
}

fn is_entry(on_disk: &OnDisk, entry: Option<TreeEntry>) -> bool {
    *on_disk == entry.map_or(OnDisk::Absent, OnDisk::of_entry)
}

/// Whether a file that is too large to be read has the stat data that the index knows, and is only in doubt because it was
/// written at the same moment as the index. It cannot be told for sure without reading; nor would it matter, as a file of
/// this size is not searched in either way.
fn is_too_large_and_untouched(new: &OnDisk, tracked: &Tracked<'_>, stat: &Option<Stat>) -> bool {
    matches!(new, OnDisk::Unread(Unread::TooLarge { .. })) && tracked.stat.is_some() && tracked.stat == *stat
}
