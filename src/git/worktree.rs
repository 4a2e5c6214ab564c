//! Compares a worktree with the checked-out commit, including staged, unstaged and untracked changes.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::beneath::Root;
use super::cause::Cause;
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
use crate::model::{BlobId, CommitId, RepoPath, TreeId, explain_by};
use gix::index::entry::Stat;

/// The differences between the checked-out commit and the files on disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkTreeChanges {
    /// The checked-out commit; `None` on an unborn branch.
    pub commit: Option<CommitId>,
    /// The tree of the commit.
    pub tree: Option<TreeId>,
    /// The changes in path order.
    pub changes: Vec<WorkTreeChange>,
    /// Files and directories that could not be read, with the error. The tracked files among and below them do not
    /// count as changed.
    pub unreadable: Vec<(RepoPath, String)>,
    /// Number of tracked files, without those outside the sparse checkout.
    pub n_tracked: usize,
    /// True if the index file exists. Without it, as after `git clone --no-checkout`, all files of the commit count as
    /// deleted.
    pub has_index: bool,
}

/// A path that differs between the disk and the commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkTreeChange {
    /// The path relative to the root of the worktree.
    pub path: RepoPath,
    /// The entry in the commit; `None` if the file is new.
    pub old: Option<TreeEntry>,
    /// The state on disk.
    pub new: OnDisk,
    /// The stage of the change: staged, unstaged, untracked or conflicted.
    pub stage: Stage,
}

/// The state of a path on disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OnDisk {
    /// The file does not exist.
    Absent,
    /// A file or symbolic link, with the content that git would store.
    File {
        /// The file mode.
        mode: FileMode,
        /// The id of the blob that `git add` would create.
        blob: BlobId,
    },
    /// A submodule at a commit. Its files are not compared.
    Submodule(CommitId),
    /// A file that has been touched but was not read, so it may be unchanged.
    Unread(Unread),
}

/// How far a change is on its way into a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The change is in the index, and the file on disk equals the index.
    Staged,
    /// A tracked file has changes that are not in the index, at least in part.
    Unstaged,
    /// The file is new and not in the index.
    Untracked,
    /// A merge left the path unresolved.
    Conflicted,
}

/// An error from comparing the worktree.
#[derive(Debug, thiserror::Error)]
pub enum WorkTreeError {
    /// The repository is bare, or the directory of the worktree no longer exists.
    #[error("the repository has no worktree")]
    NoWorkTree,
    /// The index cannot be decoded.
    #[error("cannot read the index {}", .path.display())]
    Index {
        /// The path of the index file.
        path: PathBuf,
        /// The underlying error.
        #[source]
        source: Cause,
    },
    /// A setting, an ignore file or an attributes file cannot be read.
    #[error("cannot read the ignore rules or attributes of the worktree")]
    Rules(#[source] Cause),
    /// The root directory cannot be opened.
    #[error("cannot read the worktree {}", .path.display())]
    Root {
        /// The root of the worktree.
        path: PathBuf,
        /// The underlying error.
        #[source]
        source: std::io::Error,
    },
    /// The target of `HEAD` cannot be determined.
    #[error("cannot read HEAD")]
    Head(#[from] RefError),
    /// The checked-out commit, or one of its trees, cannot be read.
    #[error("cannot read the checked-out commit")]
    Object(#[from] ObjectError),
    /// The interrupt flag was set.
    #[error("interrupted")]
    Interrupted,
}

explain_by!(WorkTreeError: Head, Object; Interrupted);

impl WorkTreeError {
    pub(super) fn rules(source: gix::Error) -> Self {
        Self::Rules(Box::new(source))
    }
}

impl Repository {
    /// Returns the differences between the checked-out commit and the index, in path order. For an unmerged path, uses
    /// the stage of our side. In a hook, the index is the one that git makes the commit of.
    pub fn index_changes(&self) -> Result<Vec<TreeChange>, WorkTreeError> {
        let mut reader = self.reader();
        let tree = self.head_tree(&mut reader)?.map(|(_, tree)| tree);
        Ok(Index::read_for_commit(self)?.changes_since(&mut reader, tree)?)
    }

    /// Returns the differences between the checked-out commit and the files on disk. Includes untracked files that are
    /// not ignored.
    ///
    /// Like `git status`, makes one system call per tracked file and reads only files that may have changed. Contents
    /// found in `known` are not read again; new ones are added to it. Files larger than `max_bytes` are not read.
    /// Writes nothing, not even the index.
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
        for tracked in tracked.iter().filter(|tracked| tracked.mode == FileMode::Submodule) {
            if let Some(commit) = self.checked_out(tracked.path) {
                let on_disk = OnDisk::Submodule(commit);
                comparison.add(
                    &Candidate {
                        path: tracked.path,
                        tracked: Some(tracked),
                        stat: None,
                    },
                    Content { on_disk, stat: None },
                );
            }
        }
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

    /// Returns the checked-out commit of a submodule, if there is one.
    fn checked_out(&self, path: &[u8]) -> Option<CommitId> {
        let folder = self.work_dir()?.join(OsStr::from_bytes(path));
        // Without its own git directory, the repository around it would be opened.
        folder.join(".git").symlink_metadata().ok()?;
        Self::open(&folder).ok()?.head().ok()?.commit()
    }

    fn head_tree(&self, reader: &mut super::reader::ObjectReader) -> Result<Option<(CommitId, TreeId)>, WorkTreeError> {
        match self.head()?.commit() {
            Some(commit) => Ok(Some((commit, reader.commit(commit)?.tree))),
            None => Ok(None),
        }
    }

    /// Opens the root of the worktree. The git directory and the sidecar are not entered if they are below it.
    pub(super) fn root(&self) -> Result<Root, WorkTreeError> {
        let path = self.work_dir().ok_or(WorkTreeError::NoWorkTree)?;
        let root = Root::open(path).map_err(|source| WorkTreeError::Root {
            path: path.to_owned(),
            source,
        })?;
        let of_git = [self.git_dir(), self.common_dir()]
            .into_iter()
            // These may be links.
            .flat_map(|folder| ["", "objects", "refs"].map(|name| folder.join(name)));
        Ok(root.without(of_git.chain(self.sidecar.clone())))
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

/// Returns the files that must be read to determine if they have changed.
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

/// Merges the changes between commit and index with the state on disk, path by path.
struct Comparison<'c> {
    /// The staged changes that have not been found to differ on disk.
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

    /// Adds the remaining staged changes, whose files on disk equal the index, and returns all changes.
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

/// Returns true if a file is too large to be read and its stat data equal those in the index. It may have changed at
/// the moment when the index was written, but its content is not searched anyway.
fn is_too_large_and_untouched(new: &OnDisk, tracked: &Tracked<'_>, stat: &Option<Stat>) -> bool {
    matches!(new, OnDisk::Unread(Unread::TooLarge { .. })) && tracked.stat.is_some() && tracked.stat == *stat
}
