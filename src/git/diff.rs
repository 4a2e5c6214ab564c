//! Compares trees.

use std::cmp::Ordering;

use super::reader::{ObjectError, ObjectReader};
use super::tree::{Allowance, Entry, EntryKind, FileMode, TreeLevel, Walked};
use crate::model::{BlobId, Oid, RepoPath, TreeId};

/// A path at which two trees differ. At least one of `old` and `new` is set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeChange {
    /// The path relative to the root of the tree.
    pub path: RepoPath,
    /// The previous entry; `None` if the file was added.
    pub old: Option<TreeEntry>,
    /// The new entry; `None` if the file was deleted.
    pub new: Option<TreeEntry>,
}

/// An entry of a tree: a file, a symbolic link or a submodule, but not a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TreeEntry {
    /// The file mode.
    pub mode: FileMode,
    /// The id of the blob, or of the commit for a submodule.
    pub oid: Oid,
}

impl TreeEntry {
    /// Returns the blob, or `None` for a submodule.
    pub fn blob(&self) -> Option<BlobId> {
        (self.mode != FileMode::Submodule).then_some(BlobId(self.oid))
    }
}

impl ObjectReader {
    /// Returns the files that differ between two trees, in index order. A rename is reported as a deletion and an
    /// addition.
    ///
    /// If `from` is `None`, every file of `to` is an addition. Equal subtrees are not read, so the cost is proportional
    /// to the number of changed directories.
    pub fn diff_trees(&mut self, from: Option<TreeId>, to: TreeId) -> Result<Vec<TreeChange>, ObjectError> {
        self.diff_folders(from, to, &|_| true)
    }

    /// Returns the entry at a path of a tree, unless it is a directory.
    pub fn entry_at(&mut self, tree: TreeId, path: &RepoPath) -> Result<Option<TreeEntry>, ObjectError> {
        let found = self.diff_trees_at(None, tree, &[path])?;
        Ok(found.first().and_then(|change| change.new))
    }

    /// Like [`Self::diff_trees`], but compares only `paths`, which must be sorted by bytes. Does not read directories
    /// that contain none of these paths.
    pub fn diff_trees_at(
        &mut self,
        from: Option<TreeId>,
        to: TreeId,
        paths: &[&RepoPath],
    ) -> Result<Vec<TreeChange>, ObjectError> {
        let holds_one = |folder: &[u8]| {
            let at = paths.partition_point(|path| path.as_bytes() < folder);
            paths.get(at).is_some_and(|path| path.as_bytes().starts_with(folder))
        };
        let mut changes = self.diff_folders(from, to, &holds_one)?;
        changes.retain(|change| paths.binary_search(&&change.path).is_ok());
        Ok(changes)
    }

    /// Like [`Self::diff_trees`], but compares only the files at or below `places`, which are paths of files and
    /// directories.
    pub fn diff_trees_below(
        &mut self,
        from: Option<TreeId>,
        to: TreeId,
        places: &[RepoPath],
    ) -> Result<Vec<TreeChange>, ObjectError> {
        let is_below = |path: &[u8], place: &RepoPath| {
            let rest = path.strip_prefix(place.as_bytes());
            rest.is_some_and(|rest| place.as_bytes().is_empty() || rest.is_empty() || rest.starts_with(b"/"))
        };
        let leads_there = |folder: &[u8]| {
            let mut places = places.iter();
            places.any(|place| place.as_bytes().starts_with(folder) || is_below(folder, place))
        };
        let mut changes = self.diff_folders(from, to, &leads_there)?;
        changes.retain(|change| places.iter().any(|place| is_below(change.path.as_bytes(), place)));
        Ok(changes)
    }

    /// Compares the directories for which `enter` returns true. `enter` is called with the path and a trailing slash.
    fn diff_folders(
        &mut self,
        from: Option<TreeId>,
        to: TreeId,
        enter: &dyn Fn(&[u8]) -> bool,
    ) -> Result<Vec<TreeChange>, ObjectError> {
        let mut changes = Vec::new();
        // Trees with a folder that is not entered may differ.
        let (mut n_unusable, mut n_refused) = (0, 0);
        if from == Some(to) {
            return Ok(changes);
        }
        let mut prefix = Vec::new();
        let mut allowance = Allowance::of(to, self.max_entries);
        let roots = (from.map(|tree| tree.0), Some(to.0));
        let mut walked = Walked::from(roots);
        let mut levels = vec![Pair::open(self, roots, 0)?];
        while let Some(pair) = levels.last_mut() {
            prefix.truncate(pair.old.prefix_len);
            allowance.spend(prefix.len())?;
            allowance.repeat(&walked)?;
            match pair.step(&mut prefix, &mut changes, &mut n_unusable)? {
                Step::Next => {}
                Step::Done => {
                    walked.leave(changes.len() + n_unusable + n_refused);
                    levels.pop().into_iter().for_each(|pair| pair.close(self));
                }
                Step::Into(trees) => {
                    allowance.check_depth(levels.len())?;
                    prefix.push(b'/');
                    if walked.is_empty(trees) {
                        continue;
                    }
                    if !enter(&prefix) {
                        n_refused += 1;
                        continue;
                    }
                    walked.enter(trees, changes.len() + n_unusable + n_refused);
                    let sub = Pair::open(self, trees, prefix.len())?;
                    levels.push(sub);
                }
            }
        }
        if n_unusable > 0 && from.is_none() {
            tracing::warn!("tree {to}: ignored {n_unusable} entries with invalid names");
        }
        Ok(changes)
    }
}

/// The old and the new tree at the same path.
struct Pair {
    old: TreeLevel,
    new: TreeLevel,
}

enum Step {
    Next,
    /// Into the trees of a folder, the old and the new one.
    Into((Option<Oid>, Option<Oid>)),
    Done,
}

impl Pair {
    fn open(
        reader: &mut ObjectReader,
        (old, new): (Option<Oid>, Option<Oid>),
        prefix_len: usize,
    ) -> Result<Self, ObjectError> {
        Ok(Self {
            old: TreeLevel::open(reader, old, prefix_len)?,
            new: TreeLevel::open(reader, new, prefix_len)?,
        })
    }

    fn close(self, reader: &mut ObjectReader) {
        self.old.close(reader);
        self.new.close(reader);
    }

    /// Consumes the smaller of the two next entries and appends its name to `prefix`. Consumes both if they have the
    /// same name and are both directories or both not directories.
    ///
    /// If a file became a directory, the file and the directory are thus consumed in separate steps, each at its own
    /// position in the sort order.
    fn step(
        &mut self,
        prefix: &mut Vec<u8>,
        changes: &mut Vec<TreeChange>,
        n_unusable: &mut usize,
    ) -> Result<Step, ObjectError> {
        let (mut old, mut new) = (self.old.peek()?, self.new.peek()?);
        match compare(&old, &new) {
            Ordering::Less => new = None,
            Ordering::Greater => old = None,
            Ordering::Equal => {}
        }
        let Some(either) = new.or(old) else {
            return Ok(Step::Done);
        };
        let (old_len, new_len) = (old.map_or(0, |entry| entry.len), new.map_or(0, |entry| entry.len));
        let is_same = matches!((&old, &new), (Some(a), Some(b)) if a.kind == b.kind && a.oid == b.oid);
        let mut step = Step::Next;
        *n_unusable += usize::from(!either.is_usable());
        if !is_same && either.is_usable() {
            prefix.extend_from_slice(either.name);
            match either.kind {
                EntryKind::Tree => {
                    step = Step::Into((old.map(|entry| entry.oid), new.map(|entry| entry.oid)));
                }
                EntryKind::File(_) => changes.push(TreeChange {
                    path: RepoPath::new(prefix.as_slice()),
                    old: old.and_then(|entry| tree_entry(&entry)),
                    new: new.and_then(|entry| tree_entry(&entry)),
                }),
            }
        }
        self.old.skip(old_len);
        self.new.skip(new_len);
        Ok(step)
    }
}

/// Compares the sort keys of two entries. `None`, the end of a tree, sorts last.
fn compare(old: &Option<Entry<'_>>, new: &Option<Entry<'_>>) -> Ordering {
    match (old, new) {
        (Some(old), Some(new)) => old.sort_key().cmp(new.sort_key()),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => Ordering::Equal,
    }
}

fn tree_entry(entry: &Entry<'_>) -> Option<TreeEntry> {
    match entry.kind {
        EntryKind::Tree => None,
        EntryKind::File(mode) => Some(TreeEntry { mode, oid: entry.oid }),
    }
}
