//! Walks the files of a tree.

use std::collections::HashMap;

use bstr::ByteSlice;

use super::reader::{ObjectError, ObjectReader};
use crate::model::{BlobId, Oid, RepoPath, TreeId};

/// Depth limit of trees, which is git's default (`core.maxTreeDepth`).
pub(super) const MAX_DEPTH: usize = 2048;

/// Limit on the number of entries in a tree walk, files and directories together. A few small trees that contain each
/// other many times can represent any number of entries.
pub(super) const MAX_ENTRIES: usize = 2_000_000;

/// Limit on the total length of these entries' paths, in bytes.
const MAX_PATH_BYTES: usize = 256 << 20;

/// Limit on the number of entries in folders that a walk has seen at another path, and how many more it may be for each
/// other entry. Copies of a folder are common, but most files of a large repository are in folders of their own.
const MAX_REPEATED: usize = 200_000;
const MAX_REPEATED_PER_ENTRY: usize = 10;

/// The mode of a tree entry that is not a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FileMode {
    /// A regular file.
    File,
    /// A file with the executable bit.
    Executable,
    /// A symbolic link, whose blob is the path of the target.
    Symlink,
    /// A submodule. It refers to a commit of another repository, which is not walked.
    Submodule,
}

impl FileMode {
    /// Returns the number of the mode in stored files.
    pub fn number(self) -> u8 {
        match self {
            Self::File => 0,
            Self::Executable => 1,
            Self::Symlink => 2,
            Self::Submodule => 3,
        }
    }

    /// Returns the mode with a number, a regular file for others than those of modes.
    pub fn of_number(number: u8) -> Self {
        match number {
            1 => Self::Executable,
            2 => Self::Symlink,
            3 => Self::Submodule,
            _ => Self::File,
        }
    }
}

/// A file, symbolic link or submodule in a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeFile {
    /// The path relative to the root of the tree.
    pub path: RepoPath,
    /// The file mode.
    pub mode: FileMode,
    /// The id of the blob, or of the commit for a submodule.
    pub oid: Oid,
}

impl TreeFile {
    /// Returns the blob, or `None` for a submodule.
    pub fn blob(&self) -> Option<BlobId> {
        (self.mode != FileMode::Submodule).then_some(BlobId(self.oid))
    }
}

/// The counts of a tree walk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TreeOutcome {
    /// Number of files passed to the visitor.
    pub n_files: usize,
    /// Number of entries skipped because a path cannot contain their names (`..`, `.git`, a slash). git never writes
    /// such entries and refuses to check them out.
    pub n_unusable: usize,
}

impl ObjectReader {
    /// Calls `visit` with every file of the tree in index order, which is the byte order of full paths.
    pub fn tree_files(&mut self, tree: TreeId, visit: &mut dyn FnMut(TreeFile)) -> Result<TreeOutcome, ObjectError> {
        self.tree_files_in(tree, &mut |_, _| true, visit)
    }

    /// Like [`Self::tree_files`], but skips the directories for which `enter` returns false. `enter` is called with the
    /// path of the directory, including a trailing slash, and with its tree.
    pub(super) fn tree_files_in(
        &mut self,
        tree: TreeId,
        enter: &mut dyn FnMut(&[u8], Oid) -> bool,
        visit: &mut dyn FnMut(TreeFile),
    ) -> Result<TreeOutcome, ObjectError> {
        let mut outcome = TreeOutcome::default();
        let mut prefix = Vec::new();
        let mut allowance = Allowance::of(tree, self.max_entries);
        let mut levels = vec![TreeLevel::open(self, Some(tree.0), 0)?];
        // A tree with a folder that is not entered may have files.
        let (mut walked, mut n_refused) = (Walked::from((None, Some(tree.0))), 0);
        while let Some(level) = levels.last_mut() {
            prefix.truncate(level.prefix_len);
            let Some(entry) = level.take()? else {
                walked.leave(outcome.n_files + outcome.n_unusable + n_refused);
                levels.pop().into_iter().for_each(|level| level.close(self));
                continue;
            };
            allowance.repeat(&walked)?;
            allowance.spend(prefix.len() + entry.name.len())?;
            if !entry.is_usable() {
                outcome.n_unusable += 1;
                continue;
            }
            prefix.extend_from_slice(entry.name);
            let (kind, oid) = (entry.kind, entry.oid);
            match kind {
                EntryKind::Tree => {
                    allowance.check_depth(levels.len())?;
                    prefix.push(b'/');
                    if walked.is_empty((None, Some(oid))) {
                        continue;
                    }
                    if enter(&prefix, oid) {
                        walked.enter((None, Some(oid)), outcome.n_files + outcome.n_unusable + n_refused);
                        let sub = TreeLevel::open(self, Some(oid), prefix.len())?;
                        levels.push(sub);
                    } else {
                        n_refused += 1;
                    }
                }
                EntryKind::File(mode) => {
                    outcome.n_files += 1;
                    visit(TreeFile {
                        path: RepoPath::new(prefix.as_slice()),
                        mode,
                        oid,
                    });
                }
            }
        }
        Ok(outcome)
    }
}

/// The old and the new tree of a folder.
type Trees = (Option<Oid>, Option<Oid>);

/// The trees that a walk has seen. A few small trees that contain each other many times are millions of folders.
pub(super) struct Walked {
    /// True for those in which nothing was found.
    seen: HashMap<Trees, bool>,
    /// Those that are being walked: what was found before, and true if they were seen at another path.
    open: Vec<(Trees, usize, bool)>,
}

impl Walked {
    /// Returns the state of a walk that begins at a root.
    pub(super) fn from(root: Trees) -> Self {
        Self {
            seen: HashMap::from([(root, false)]),
            open: vec![(root, 0, false)],
        }
    }

    /// Enters trees after `n_found` were found.
    pub(super) fn enter(&mut self, trees: Trees, n_found: usize) {
        let is_repeated = self.seen.insert(trees, false).is_some();
        self.open.push((trees, n_found, is_repeated));
    }

    /// Leaves the trees that were entered last.
    pub(super) fn leave(&mut self, n_found: usize) {
        if let Some((trees, n_before, _)) = self.open.pop() {
            self.seen.insert(trees, n_found == n_before);
        }
    }

    /// Returns true if nothing is in the trees.
    pub(super) fn is_empty(&self, trees: Trees) -> bool {
        self.seen.get(&trees).copied().unwrap_or_default()
    }
}

/// The limits of a tree walk, and how much of them is used.
pub(super) struct Allowance {
    tree: TreeId,
    max_entries: usize,
    n_entries: usize,
    n_repeated: usize,
    n_bytes: usize,
}

impl Allowance {
    /// Creates the limits for a walk of `tree`.
    pub(super) fn of(tree: TreeId, max_entries: usize) -> Self {
        Self {
            tree,
            max_entries,
            n_entries: 0,
            n_repeated: 0,
            n_bytes: 0,
        }
    }

    /// Counts an entry with a path of `n_bytes`. Fails if a limit is exceeded.
    pub(super) fn spend(&mut self, n_bytes: usize) -> Result<(), ObjectError> {
        self.n_entries += 1;
        self.n_bytes += n_bytes;
        self.check(self.n_entries, self.max_entries, "files and folders")?;
        self.check(self.n_bytes, MAX_PATH_BYTES, "bytes of paths")
    }

    /// Counts an entry of the tree that is being walked if it was seen at another path. Fails if a limit is exceeded.
    pub(super) fn repeat(&mut self, walked: &Walked) -> Result<(), ObjectError> {
        self.n_repeated += usize::from(walked.open.last().is_some_and(|(.., is_repeated)| *is_repeated));
        let n_own = self.n_entries - self.n_repeated.min(self.n_entries);
        let limit = MAX_REPEATED + MAX_REPEATED_PER_ENTRY * n_own;
        self.check(self.n_repeated, limit, "files and folders in copies of folders")
    }

    /// Fails if a directory is nested too deeply.
    pub(super) fn check_depth(&self, n_levels: usize) -> Result<(), ObjectError> {
        self.check(n_levels, MAX_DEPTH - 1, "nested folders")
    }

    fn check(&self, count: usize, limit: usize, what: &'static str) -> Result<(), ObjectError> {
        let id = self.tree.0;
        if count > limit {
            Err(ObjectError::BeyondLimit { id, what, limit })
        } else {
            Ok(())
        }
    }
}

/// A tree object in a walk. Also stores the length of the path before its entries.
pub(super) struct TreeLevel {
    id: Option<Oid>,
    bytes: Vec<u8>,
    position: usize,
    hash_len: usize,
    pub(super) prefix_len: usize,
}

impl TreeLevel {
    /// Reads the tree with this id. `None` creates a level without entries.
    pub(super) fn open(reader: &mut ObjectReader, id: Option<Oid>, prefix_len: usize) -> Result<Self, ObjectError> {
        let bytes = match id {
            Some(id) => reader.read(id, gix::objs::Kind::Tree)?,
            None => Vec::new(),
        };
        Ok(Self {
            id,
            bytes,
            position: 0,
            hash_len: reader.object_hash().len_in_bytes(),
            prefix_len,
        })
    }

    pub(super) fn close(self, reader: &mut ObjectReader) {
        reader.recycle(self.bytes);
    }

    /// Returns the next entry without consuming it.
    pub(super) fn peek(&self) -> Result<Option<Entry<'_>>, ObjectError> {
        let rest = &self.bytes[self.position..];
        if rest.is_empty() {
            return Ok(None);
        }
        Entry::decode(rest, self.hash_len)
            .map(Some)
            .ok_or_else(|| self.damaged())
    }

    /// Consumes and returns the next entry.
    pub(super) fn take(&mut self) -> Result<Option<Entry<'_>>, ObjectError> {
        let len = self.peek()?.map_or(0, |entry| entry.len);
        let start = self.position;
        self.position += len;
        Ok(Entry::decode(&self.bytes[start..], self.hash_len))
    }

    pub(super) fn skip(&mut self, len: usize) {
        self.position += len;
    }

    fn damaged(&self) -> ObjectError {
        ObjectError::Damaged {
            id: self.id.expect("only a tree that was read has bytes"),
            source: format!("invalid tree entry at byte {}", self.position).into(),
        }
    }
}

/// An entry of a tree object. The bytes are `<octal mode> <name>\0<id>`, without a separator between entries. Source:
/// git's documentation of tree objects ("Git Internals: Git Objects").
#[derive(Clone, Copy)]
pub(super) struct Entry<'a> {
    pub(super) name: &'a [u8],
    pub(super) kind: EntryKind,
    pub(super) oid: Oid,
    pub(super) len: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EntryKind {
    Tree,
    File(FileMode),
}

impl<'a> Entry<'a> {
    fn decode(bytes: &'a [u8], hash_len: usize) -> Option<Self> {
        let space = bytes.iter().take(8).position(|byte| *byte == b' ')?;
        let kind = EntryKind::from_octal(&bytes[..space])?;
        let name_start = space + 1;
        let name_end = name_start + bytes[name_start..].find_byte(0)?;
        let len = name_end + 1 + hash_len;
        let oid = Oid::from_bytes(bytes.get(name_end + 1..len)?).ok()?;
        Some(Self {
            name: &bytes[name_start..name_end],
            kind,
            oid,
            len,
        })
    }

    /// Returns true if the name is valid as a path component, inside the root and outside of `.git`.
    pub(super) fn is_usable(&self) -> bool {
        !matches!(self.name, b"" | b"." | b"..")
            && self.name.find_byte(b'/').is_none()
            && !self.name.eq_ignore_ascii_case(b".git")
    }

    /// Returns the key by which git sorts the entries of a tree: the name, with a trailing slash for a directory.
    pub(super) fn sort_key(&self) -> impl Iterator<Item = u8> + '_ {
        let slash = (self.kind == EntryKind::Tree).then_some(b'/');
        self.name.iter().copied().chain(slash)
    }
}

impl EntryKind {
    fn from_octal(digits: &[u8]) -> Option<Self> {
        let mut mode = 0u32;
        for digit in digits {
            mode = mode << 3 | u32::from(digit.checked_sub(b'0').filter(|value| *value < 8)?);
        }
        Some(match mode & 0o170_000 {
            0o040_000 => Self::Tree,
            0o120_000 => Self::File(FileMode::Symlink),
            0o160_000 => Self::File(FileMode::Submodule),
            _ if mode & 0o100 != 0 => Self::File(FileMode::Executable),
            _ => Self::File(FileMode::File),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::Repository;
    use crate::support::TestRepo;

    #[test]
    fn tree_bombs_are_rejected() {
        let repo = TestRepo::new(
            "
            //- a
            a
        ",
        );
        let blob = repo.rev_parse("HEAD:a");
        let mut id = String::new();
        for depth in 0..12 {
            let kind = if depth == 0 {
                format!("100644 blob {blob}")
            } else {
                format!("040000 tree {id}")
            };
            let listing: String = (0..16).map(|n| format!("{kind}\t{n:x}\n")).collect();
            let printed = repo.git_with_input(["mktree"], listing.as_bytes());
            id = String::from_utf8_lossy(&printed).trim().to_owned();
        }
        let tree = TreeId(Oid::from_hex(&id).expect("git printed an id"));
        let repository = Repository::discover(repo.root()).expect("a repository");
        let mut reader = repository.reader();
        reader.max_entries = 1000;
        let walked = reader.tree_files(tree, &mut |_| {}).map(|_| ());
        let listed = reader.diff_trees(None, tree).map(|_| ());
        for outcome in [walked, listed] {
            assert!(
                matches!(
                    outcome,
                    Err(ObjectError::BeyondLimit {
                        what: "files and folders",
                        ..
                    })
                ),
                "{outcome:?}"
            );
        }
        let path = RepoPath::from("f/e/d/c/b/a/9/8/7/6/5/4");
        let found = reader
            .diff_trees_at(None, tree, &[&path])
            .expect("the path is walked to");
        assert_eq!(found.len(), 1);
    }

    proptest::proptest! {
        #![proptest_config(crate::support::properties(256))]

        #[test]
        fn any_bytes_are_entries_or_an_error(bytes: Vec<u8>, head in "[0-7]{1,8} [a-z./]{0,3}\0") {
            let bytes = [head.as_bytes(), &bytes].concat();
            let mut level = TreeLevel {
                id: Some(Oid::from_bytes(&[0; 20]).expect("twenty bytes")),
                bytes,
                position: 0,
                hash_len: 20,
                prefix_len: 0,
            };
            while let Ok(Some(entry)) = level.take() {
                assert!(entry.len > 20);
            }
        }
    }
}
