//! The files that differ from the checked-out commit.

use std::collections::HashMap;
use std::sync::atomic::AtomicBool;

use super::Records;
use crate::git::{
    BlobContent, FileMode, KnownFiles, OnDisk, TreeChange, Unread, WorkTreeChange, WorkTreeChanges, WorkTreeReader,
};
use crate::history::Entry;
use crate::model::{BlobId, RepoPath};
use crate::session::error::Result;

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
    /// True if a file that may have changed was not read. `new` is then the entry in the commit.
    pub is_unread: bool,
}

impl Uncommitted {
    /// Converts the differences found on disk.
    pub(crate) fn of(found: WorkTreeChanges) -> Vec<Self> {
        let change = |change: WorkTreeChange| Self {
            is_unread: matches!(change.new, OnDisk::Unread(_)),
            path: change.path,
            old: change.old.map(Into::into),
            new: match change.new {
                OnDisk::File { mode, blob } => Some(Entry { mode, oid: blob.0 }),
                OnDisk::Submodule(commit) => Some(Entry {
                    mode: FileMode::Submodule,
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

impl Records<'_> {
    /// Returns the differences from the checked-out commit: files on disk for `WORKTREE`, staged files for `INDEX`,
    /// otherwise none.
    pub fn uncommitted(self, reference: &str, interrupt: &AtomicBool) -> Result<Vec<Uncommitted>> {
        match reference {
            "WORKTREE" if self.workspace.repository.work_dir().is_some() => {
                let max_bytes = self.max_blob_bytes();
                let found =
                    self.workspace
                        .repository
                        .work_tree_changes(max_bytes, &mut KnownFiles::default(), interrupt)?;
                Ok(Uncommitted::of(found))
            }
            "INDEX" => {
                let staged = self.workspace.repository.index_changes()?.into_iter();
                let change = |change: TreeChange| Uncommitted {
                    path: change.path,
                    old: change.old.map(Into::into),
                    new: change.new.map(Into::into),
                    origin: None,
                    is_unread: false,
                };
                Ok(Uncommitted::with_origins(staged.map(change).collect()))
            }
            _ => Ok(Vec::new()),
        }
    }

    /// Returns the bytes of a file, from the repository or, if it is uncommitted, from disk.
    pub fn content(self, path: &RepoPath, entry: Entry, disk: &mut Option<WorkTreeReader>) -> Result<Option<Vec<u8>>> {
        let max_bytes = self.max_blob_bytes();
        if let BlobContent::Content(bytes) = self.workspace.repository.reader().blob(BlobId(entry.oid), max_bytes)? {
            return Ok(Some(bytes));
        }
        if self.workspace.repository.work_dir().is_none() {
            return Ok(None);
        }
        let reader = self.reader_of(disk)?;
        // The file may have changed since `entry` was read.
        let file = reader.read(path, max_bytes).ok();
        Ok(file.filter(|file| file.blob.0 == entry.oid).map(|file| file.bytes))
    }

    /// Returns the size of a file that is too large for [`Self::content`]; `None` if it lacks content for another reason.
    pub fn excessive_size(
        self,
        path: &RepoPath,
        entry: Entry,
        disk: &mut Option<WorkTreeReader>,
    ) -> Result<Option<u64>> {
        let max_bytes = self.max_blob_bytes();
        let Some(oid) = entry.known_oid() else {
            let read = self.reader_of(disk)?.read(path, max_bytes);
            return Ok(match read {
                Err(Unread::TooLarge { size }) => Some(size),
                _ => None,
            });
        };
        let size = self.workspace.repository.reader().blob_size(BlobId(oid))?;
        Ok(size.filter(|size| *size > max_bytes))
    }

    fn reader_of(self, disk: &mut Option<WorkTreeReader>) -> Result<&mut WorkTreeReader> {
        Ok(match disk {
            Some(reader) => reader,
            none => none.insert(self.workspace.repository.work_tree_reader()?),
        })
    }
}
