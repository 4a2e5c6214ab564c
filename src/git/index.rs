//! Reads the git index: the staged files and their stat data.

use std::collections::BTreeSet;
use std::path::PathBuf;

use bstr::{BStr, ByteSlice};
use gix::index::entry::{Flags, Mode, Stage, Stat};

use super::command;
use super::diff::{TreeChange, TreeEntry};
use super::object_id::from_gix;
use super::open::Repository;
use super::reader::{ObjectError, ObjectReader};
use super::tree::{FileMode, TreeFile};
use super::worktree::WorkTreeError;
use crate::model::{Oid, RepoPath, TreeId};

/// The decoded index file. A sparse index represents some directories by their tree only; these are expanded on demand.
pub(super) struct Index {
    file: gix::index::File,
    /// The files of the expanded directories, by directory.
    expanded: Vec<(Vec<u8>, Vec<TreeFile>)>,
    pub(super) is_present: bool,
}

/// A path in the index. An unmerged path with several stages is represented once.
#[derive(Clone, Copy)]
pub(super) struct Tracked<'a> {
    pub(super) path: &'a [u8],
    pub(super) mode: FileMode,
    pub(super) oid: Oid,
    /// The stat data of the file when its content was last known to equal `oid`; `None` if it never was.
    pub(super) stat: Option<Stat>,
    /// True if the next commit would not contain the path: it was added with `--intent-to-add`, or it is unmerged and
    /// deleted on our side.
    pub(super) is_unstaged: bool,
    /// True if a merge left the path unresolved. `oid` is then the version of our side, if our side has one.
    pub(super) is_conflicted: bool,
    /// True if a missing file does not count as deleted: it is outside the sparse checkout or marked assume-unchanged.
    pub(super) may_be_absent: bool,
}

impl Tracked<'_> {
    /// Returns the entry that the next commit would contain, if any.
    pub(super) fn staged(&self) -> Option<TreeEntry> {
        (!self.is_unstaged).then_some(TreeEntry {
            mode: self.mode,
            oid: self.oid,
        })
    }
}

impl Index {
    /// Reads the index of this worktree, never one that the environment or the configuration names. A missing index, as
    /// after `git clone --no-checkout`, is treated as empty.
    pub(super) fn read(repository: &Repository) -> Result<Self, WorkTreeError> {
        Self::read_at(repository, repository.git_dir().join("index"))
    }

    /// Reads the index that the next commit takes. In the hooks of `git commit PATH`, that is the one that
    /// `GIT_INDEX_FILE` names. It counts only directly in the git directory: elsewhere it may be of another repository.
    pub(super) fn read_for_commit(repository: &Repository) -> Result<Self, WorkTreeError> {
        let named = command::named_index().map(|named| repository.place().join(named));
        let is_here = |named: &PathBuf| {
            let folder = named.parent().map(std::fs::canonicalize);
            let is_in_git_dir = matches!(folder, Some(Ok(folder)) if folder == repository.git_dir());
            is_in_git_dir && named.symlink_metadata().is_ok_and(|found| found.is_file())
        };
        match named.filter(is_here) {
            Some(named) => Self::read_at(repository, named),
            None => Self::read(repository),
        }
    }

    fn read_at(repository: &Repository, path: PathBuf) -> Result<Self, WorkTreeError> {
        let hash = repository.local().object_hash();
        let options = gix::index::decode::Options {
            // A second thread would save a millisecond for a hundred thousand entries, and cost one for fewer.
            thread_limit: Some(1),
            alloc_limit_bytes: Some(MAX_INDEX_BYTES),
            ..Default::default()
        };
        let is_present = path.exists();
        // Like git, skip the checksum.
        match gix::index::File::at_or_default(&path, hash, true, options) {
            Ok(file) => Ok(Self {
                file,
                expanded: Vec::new(),
                is_present,
            }),
            Err(source) => Err(WorkTreeError::Index {
                path,
                source: Box::new(source),
            }),
        }
    }

    /// Expands the collapsed directories of a sparse index for which `is_wanted` returns true.
    pub(super) fn expand(
        &mut self,
        reader: &mut ObjectReader,
        is_wanted: &dyn Fn(&[u8]) -> bool,
    ) -> Result<(), ObjectError> {
        let abbreviated: Vec<(Vec<u8>, TreeId)> = self
            .sparse_folders()
            .filter(|(path, _)| is_wanted(path) && self.expansion(path).is_none())
            .map(|(path, oid)| (path.to_owned(), TreeId(oid)))
            .collect();
        for (folder, tree) in abbreviated {
            let mut files = Vec::new();
            reader.tree_files(tree, &mut |file| files.push(within(&folder, file)))?;
            let at = self.expanded.partition_point(|(known, _)| *known < folder);
            self.expanded.insert(at, (folder, files));
        }
        Ok(())
    }

    /// Returns the collapsed directories, with a trailing slash, and their trees.
    pub(super) fn sparse_folders(&self) -> impl Iterator<Item = (&[u8], Oid)> {
        let backing = self.file.path_backing();
        let entries = self.file.entries().iter().filter(|entry| entry.mode == Mode::DIR);
        entries.map(|entry| (entry.path_in(backing).as_bytes(), from_gix(&entry.id)))
    }

    fn expansion(&self, folder: &[u8]) -> Option<&[TreeFile]> {
        let at = self
            .expanded
            .binary_search_by(|(known, _)| known.as_slice().cmp(folder))
            .ok()?;
        Some(&self.expanded[at].1)
    }

    /// Returns all paths in order, except those below directories that have not been expanded.
    pub(super) fn tracked(&self) -> Vec<Tracked<'_>> {
        let backing = self.file.path_backing();
        let mut tracked: Vec<Tracked<'_>> = Vec::with_capacity(self.file.entries().len());
        for entry in self.file.entries() {
            let path = entry.path_in(backing).as_bytes();
            if entry.mode == Mode::DIR {
                tracked.extend(self.expansion(path).unwrap_or_default().iter().map(outside_checkout));
                continue;
            }
            let one = of_entry(entry, path);
            match tracked.last_mut().filter(|last| last.path == path) {
                // An unmerged path has several stages. The stage of our side takes precedence.
                Some(last) if entry.stage() == Stage::Ours => *last = one,
                Some(_) => {}
                None => tracked.push(one),
            }
        }
        tracked
    }

    /// Returns the id of the staged file, or of our side's version if the path is unmerged.
    pub(super) fn blob_at(&self, path: &[u8]) -> Option<gix::ObjectId> {
        let path: &BStr = path.as_bstr();
        let stages = [Stage::Unconflicted, Stage::Ours];
        let mut found = stages
            .iter()
            .filter_map(|stage| self.file.entry_by_path_and_stage(path, *stage));
        found.next().map(|entry| entry.id)
    }

    /// Returns when the index was written. The stat data in it cannot reveal changes of files after this time.
    pub(super) fn timestamp(&self) -> gix::index::entry::stat::Time {
        self.file.timestamp().into()
    }

    /// Returns the index in gix's form, from which gix reads attribute and ignore files that are not on disk.
    pub(super) fn state(&self) -> &gix::index::State {
        &self.file
    }

    /// Returns the staged changes: the differences between `head`, the tree of the checked-out commit, and the index.
    pub(super) fn changes_since(
        &mut self,
        reader: &mut ObjectReader,
        head: Option<TreeId>,
    ) -> Result<Vec<TreeChange>, ObjectError> {
        let head_items = self.head_items(reader, head)?;
        let equal: BTreeSet<&[u8]> = head_items.iter().filter_map(HeadItem::equal_folder).collect();
        if equal.contains(b"".as_slice()) {
            return Ok(Vec::new());
        }
        let covered = |folder: &[u8]| ancestors(folder).any(|ancestor| equal.contains(ancestor));
        self.expand(reader, &|folder| !covered(folder))?;
        Ok(merge(&head_items, &self.tracked()))
    }

    /// Returns the files of `head`. A directory that is unchanged in the index is returned as one item.
    fn head_items(&self, reader: &mut ObjectReader, head: Option<TreeId>) -> Result<Vec<HeadItem>, ObjectError> {
        let Some(head) = head else {
            return Ok(Vec::new());
        };
        let known = self.file.tree();
        let sparse: Vec<(&[u8], Oid)> = self.sparse_folders().collect();
        let is_equal = |folder: &[u8], tree: Oid| {
            known.and_then(|root| cached_tree(root, folder)) == Some(tree)
                || sparse.binary_search(&(folder, tree)).is_ok()
        };
        let mut items = Vec::new();
        if is_equal(b"", head.0) {
            items.push(HeadItem::EqualFolder(Vec::new()));
            return Ok(items);
        }
        let items = std::cell::RefCell::new(items);
        reader.tree_files_in(
            head,
            &mut |folder, tree| {
                let is_equal = is_equal(folder, tree);
                if is_equal {
                    items.borrow_mut().push(HeadItem::EqualFolder(folder.to_owned()));
                }
                !is_equal
            },
            &mut |file| items.borrow_mut().push(HeadItem::File(file)),
        )?;
        Ok(items.into_inner())
    }
}

/// Size limit of the index, far above the size of any real one.
const MAX_INDEX_BYTES: usize = 4 << 30;

/// An item of `HEAD`: a file, or a directory (with a trailing slash) that is unchanged in the index.
enum HeadItem {
    File(TreeFile),
    EqualFolder(Vec<u8>),
}

impl HeadItem {
    fn path(&self) -> &[u8] {
        match self {
            Self::File(file) => file.path.as_bytes(),
            Self::EqualFolder(folder) => folder,
        }
    }

    fn equal_folder(&self) -> Option<&[u8]> {
        match self {
            Self::File(_) => None,
            Self::EqualFolder(folder) => Some(folder),
        }
    }
}

/// Compares two lists, both sorted by path, and returns their differences.
fn merge(head: &[HeadItem], tracked: &[Tracked<'_>]) -> Vec<TreeChange> {
    let mut changes = Vec::new();
    let mut record = |path: &[u8], old: Option<TreeEntry>, new: Option<TreeEntry>| {
        if old != new {
            let path = RepoPath::new(path);
            changes.push(TreeChange { path, old, new });
        }
    };
    let mut rest = tracked;
    for item in head {
        let n_before = rest.partition_point(|one| one.path < item.path());
        let (before, from) = rest.split_at(n_before);
        before.iter().for_each(|one| record(one.path, None, one.staged()));
        rest = match item {
            HeadItem::EqualFolder(folder) => &from[from.partition_point(|one| one.path.starts_with(folder))..],
            HeadItem::File(file) => {
                let (same, after) = from.split_at(from.partition_point(|one| one.path == file.path.as_bytes()));
                let old = TreeEntry {
                    mode: file.mode,
                    oid: file.oid,
                };
                record(file.path.as_bytes(), Some(old), same.first().and_then(Tracked::staged));
                after
            }
        };
    }
    rest.iter().for_each(|one| record(one.path, None, one.staged()));
    changes
}

/// Returns the tree id that the index caches for a directory, as of the last commit or checkout.
fn cached_tree(root: &gix::index::extension::Tree, folder: &[u8]) -> Option<Oid> {
    let mut node = root;
    for name in folder.split(|byte| *byte == b'/').filter(|name| !name.is_empty()) {
        node = node.children.iter().find(|child| child.name.as_slice() == name)?;
    }
    node.num_entries.map(|_| from_gix(&node.id))
}

/// Returns the root (an empty path), the parents of `folder` and `folder` itself, each with a trailing slash.
fn ancestors(folder: &[u8]) -> impl Iterator<Item = &[u8]> {
    let slashes = folder.iter().enumerate().filter(|(_, byte)| **byte == b'/');
    std::iter::once(&folder[..0]).chain(slashes.map(|(at, _)| &folder[..=at]))
}

fn within(folder: &[u8], file: TreeFile) -> TreeFile {
    let path = [folder, file.path.as_bytes()].concat();
    TreeFile {
        path: RepoPath::new(path),
        ..file
    }
}

fn outside_checkout(file: &TreeFile) -> Tracked<'_> {
    Tracked {
        path: file.path.as_bytes(),
        mode: file.mode,
        oid: file.oid,
        stat: None,
        is_unstaged: false,
        is_conflicted: false,
        may_be_absent: true,
    }
}

fn of_entry<'a>(entry: &gix::index::Entry, path: &'a [u8]) -> Tracked<'a> {
    let is_conflicted = entry.stage() != Stage::Unconflicted;
    let is_unstaged = entry.flags.contains(Flags::INTENT_TO_ADD) || is_conflicted && entry.stage() != Stage::Ours;
    Tracked {
        path,
        mode: file_mode(entry.mode),
        oid: from_gix(&entry.id),
        stat: (!is_conflicted && !is_unstaged).then_some(entry.stat),
        is_unstaged,
        is_conflicted,
        may_be_absent: entry.flags.intersects(Flags::SKIP_WORKTREE | Flags::ASSUME_VALID),
    }
}

fn file_mode(mode: Mode) -> FileMode {
    match mode {
        Mode::SYMLINK => FileMode::Symlink,
        Mode::COMMIT => FileMode::Submodule,
        Mode::FILE_EXECUTABLE => FileMode::Executable,
        _ => FileMode::File,
    }
}
