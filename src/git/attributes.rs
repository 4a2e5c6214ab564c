//! Reads the attributes that a tree sets for its own files: generated, vendored, documentation, LFS, text, and excluded
//! from the index.
//!
//! Only the `.gitattributes` and `.codescoutignore` files of the tree are read. System and user settings are ignored,
//! so that a tree has the same attributes on every machine.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bstr::ByteSlice;
use gix::glob::pattern::Case;

use super::blob::BlobContent;
use super::disk_file::WorkTreeReader;
use super::reader::{ObjectError, ObjectReader};
use super::tree::{FileMode, TreeFile};
use super::worktree::WorkTreeChanges;
use crate::model::{RepoPath, TreeId};

const ATTRIBUTES_FILE: &[u8] = b".gitattributes";
const IGNORE_FILE: &[u8] = b".codescoutignore";

/// The file names of [rules files](is_rules_file).
pub const RULES_FILES: [&[u8]; 2] = [ATTRIBUTES_FILE, IGNORE_FILE];

/// Size limit of a rules file. Larger ones are ignored, because every path is matched against every rule.
pub const MAX_RULES_BYTES: u64 = 1 << 20;

/// Maximum number of `**`, and of all wildcards, in a pattern. The time for a path grows with each.
const MAX_DEEP: usize = 3;
const MAX_WILD: usize = 32;

const NAMES: [&str; 5] = [
    "linguist-generated",
    "linguist-vendored",
    "linguist-documentation",
    "filter",
    "diff",
];

/// The attribute rules of a tree. Cheap to clone. An [`AttributeMatcher`] applies them to paths.
#[derive(Clone)]
pub struct Attributes {
    rules: Arc<Rules>,
}

/// The attributes of one file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathAttributes {
    /// `linguist-generated`, if it is set or unset.
    pub generated: Option<bool>,
    /// `linguist-vendored`, if it is set or unset.
    pub vendored: Option<bool>,
    /// `linguist-documentation`, if it is set or unset.
    pub documentation: Option<bool>,
    /// True for `filter=lfs`: the blob is an LFS pointer.
    pub is_lfs: bool,
    /// The `diff` attribute: true for text, false (also through `binary`) for other files; `None` if the content
    /// decides.
    pub is_text: Option<bool>,
    /// True if a pattern in a `.codescoutignore` matches the file or one of its parent directories.
    pub is_ignored: bool,
}

/// Applies the rules of a tree to paths, on one thread. Fastest if the paths are sorted.
pub struct AttributeMatcher {
    rules: Arc<Rules>,
    outcome: gix::attrs::search::Outcome,
    /// The parent directory of the last queried file, without a trailing slash.
    last_folder: Vec<u8>,
    is_last_folder_ignored: bool,
}

struct Rules {
    /// The rules files with their contents, those nearest the root first.
    sources: Vec<(RepoPath, Vec<u8>)>,
    unread: Vec<RepoPath>,
    attributes: gix::attrs::Search,
    names: gix::attrs::search::MetadataCollection,
    ignores: gix::ignore::Search,
}

/// Returns true if the file at `path` is a rules file: one that sets attributes of other files. When a rules file
/// changes, the attributes of all files below its directory may change.
pub fn is_rules_file(path: &RepoPath) -> bool {
    RULES_FILES.contains(&path.file_name())
}

/// Returns rules without patterns that take exponential time to match. `**/**/` is `**/`. O(n) for n bytes.
fn simple_patterns(rules: &[u8]) -> Vec<u8> {
    let mut simple = Vec::with_capacity(rules.len());
    for line in rules.split_inclusive(|byte| *byte == b'\n') {
        let start = simple.len();
        for byte in line {
            simple.push(*byte);
            if simple[start..].ends_with(b"**/**/") {
                simple.truncate(simple.len() - 3);
            }
        }
        let line = &simple[start..];
        let n_deep = line.find_iter(b"**").count();
        let n_wild = line.iter().filter(|byte| matches!(byte, b'*' | b'?' | b'[')).count();
        if n_deep > MAX_DEEP || n_wild > MAX_WILD {
            simple.truncate(start);
        }
    }
    simple
}

impl Attributes {
    /// Reads the rules of a tree. Walks all directories of the tree.
    pub fn for_tree(reader: &mut ObjectReader, tree: TreeId) -> Result<Self, ObjectError> {
        let mut files = Vec::new();
        reader.tree_files(tree, &mut |file| {
            files.extend(is_rules_file(&file.path).then_some(file))
        })?;
        Self::for_files(reader, &files)
    }

    /// Reads the rules files among `files`, which are files of one tree. Skips all other files.
    pub fn for_files<'f>(
        reader: &mut ObjectReader,
        files: impl IntoIterator<Item = &'f TreeFile>,
    ) -> Result<Self, ObjectError> {
        let mut sources = Vec::new();
        let mut unread = Vec::new();
        for file in files.into_iter().filter(|file| is_rules_file(&file.path)) {
            let Some(blob) = file.blob().filter(|_| file.mode != FileMode::Symlink) else {
                continue;
            };
            match reader.blob(blob, MAX_RULES_BYTES)? {
                BlobContent::Content(bytes) => sources.push((file.path.clone(), bytes)),
                BlobContent::TooLarge { .. } | BlobContent::Missing | BlobContent::Damaged => {
                    unread.push(file.path.clone())
                }
            }
        }
        Ok(Self::new(sources, unread))
    }

    /// Returns the rules of a worktree: those of the checked-out commit, updated with the rules files that differ on
    /// disk.
    pub fn with_changes(&self, changes: &WorkTreeChanges, reader: &mut WorkTreeReader) -> Self {
        let changed: Vec<&RepoPath> = changes
            .changes
            .iter()
            .map(|change| &change.path)
            .filter(|path| is_rules_file(path))
            .collect();
        if changed.is_empty() {
            return self.clone();
        }
        let is_as_committed = |path: &RepoPath| !changed.contains(&path);
        let mut unread: Vec<RepoPath> = self
            .rules
            .unread
            .iter()
            .filter(|path| is_as_committed(path))
            .cloned()
            .collect();
        let committed = self.rules.sources.iter().filter(|(path, _)| is_as_committed(path));
        let mut sources: Vec<(RepoPath, Vec<u8>)> = committed.cloned().collect();
        for path in changed {
            match reader.read(path, MAX_RULES_BYTES) {
                Ok(file) if file.mode != FileMode::Symlink => sources.push((path.clone(), file.bytes)),
                Ok(_) | Err(super::Unread::Absent) => {}
                Err(_) => unread.push(path.clone()),
            }
        }
        Self::new(sources, unread)
    }

    /// Builds rules from rules files, given as paths and contents.
    pub fn of_sources(sources: Vec<(RepoPath, Vec<u8>)>) -> Self {
        Self::new(sources, Vec::new())
    }

    fn new(mut sources: Vec<(RepoPath, Vec<u8>)>, unread: Vec<RepoPath>) -> Self {
        // The rules nearest to a file take precedence, and later patterns override earlier ones.
        sources.sort_by_cached_key(|(path, _)| (path.as_bytes().find_iter("/").count(), path.clone()));
        let mut names = gix::attrs::search::MetadataCollection::default();
        let no_files: [PathBuf; 0] = [];
        let mut attributes = gix::attrs::Search::new_globals(no_files, &mut Vec::new(), &mut names)
            .expect("without files only what is built in is read");
        let mut ignores = gix::ignore::Search::default();
        let root = Some(Path::new(""));
        for (path, bytes) in &sources {
            let source = PathBuf::from(os_str(path));
            let bytes = simple_patterns(bytes);
            let added = if path.file_name() == IGNORE_FILE {
                ignores.add_patterns_buffer(&bytes, source, root, gix::ignore::search::Ignore::default())
            } else {
                let is_at_root = path.as_bytes() == ATTRIBUTES_FILE;
                attributes.add_patterns_buffer(&bytes, source, root, &mut names, is_at_root)
            };
            added.expect("a path inside a tree has a parent");
        }
        let rules = Rules {
            sources,
            unread,
            attributes,
            names,
            ignores,
        };
        Self { rules: Arc::new(rules) }
    }

    /// Returns true if the tree has no rules, so that every file has the default attributes.
    pub fn is_empty(&self) -> bool {
        self.rules.sources.is_empty()
    }

    /// Returns the rules files that are ignored because they are too large or missing from a partial clone.
    pub fn unread(&self) -> &[RepoPath] {
        &self.rules.unread
    }

    /// Returns a matcher, which caches state between lookups.
    pub fn matcher(&self) -> AttributeMatcher {
        let mut outcome = gix::attrs::search::Outcome::default();
        outcome.initialize_with_selection(&self.rules.names, NAMES);
        AttributeMatcher {
            rules: Arc::clone(&self.rules),
            outcome,
            last_folder: Vec::new(),
            is_last_folder_ignored: false,
        }
    }
}

impl AttributeMatcher {
    /// Returns the attributes of the file at `path`.
    pub fn of(&mut self, path: &RepoPath) -> PathAttributes {
        let mut found = PathAttributes {
            is_ignored: self.is_ignored(path.as_bytes()),
            ..PathAttributes::default()
        };
        if self.rules.attributes.num_pattern_lists() <= N_BUILT_IN_LISTS {
            return found;
        }
        self.outcome.reset();
        let bytes = path.as_bytes().as_bstr();
        self.rules
            .attributes
            .pattern_matching_relative_path(bytes, Case::Sensitive, Some(false), &mut self.outcome);
        let mut states = self.outcome.iter_selected().map(|found| found.assignment.state);
        found.generated = states.next().and_then(is_true);
        found.vendored = states.next().and_then(is_true);
        found.documentation = states.next().and_then(is_true);
        found.is_lfs = matches!(states.next(), Some(gix::attrs::StateRef::Value(name)) if name.as_bstr() == "lfs");
        found.is_text = match states.next() {
            Some(gix::attrs::StateRef::Set) => Some(true),
            Some(gix::attrs::StateRef::Unset) => Some(false),
            _ => None,
        };
        found
    }

    fn is_ignored(&mut self, path: &[u8]) -> bool {
        if self.rules.ignores.patterns.is_empty() {
            return false;
        }
        let folder = path.rfind_byte(b'/').map_or(&path[..0], |slash| &path[..slash]);
        if self.last_folder != folder {
            self.is_last_folder_ignored = self.is_folder_ignored(folder);
            self.last_folder = folder.to_owned();
        }
        self.is_last_folder_ignored || self.is_matched(path, false)
    }

    /// Returns true if a pattern ignores the directory or one of its parents. A pattern cannot re-include files below
    /// an ignored directory.
    fn is_folder_ignored(&self, folder: &[u8]) -> bool {
        let ends = folder.find_iter("/").chain([folder.len()]);
        ends.map(|end| &folder[..end])
            .any(|folder| !folder.is_empty() && self.is_matched(folder, true))
    }

    fn is_matched(&self, path: &[u8], is_folder: bool) -> bool {
        let found = self
            .rules
            .ignores
            .pattern_matching_relative_path(path.as_bstr(), Some(is_folder), Case::Sensitive);
        found.is_some_and(|found| !found.pattern.is_negative())
    }
}

/// Number of attribute lists that gix adds: the one that defines the macro `binary`.
const N_BUILT_IN_LISTS: usize = 1;

/// Interprets an attribute as Linguist does, which accepts `name`, `name=true` and their opposites.
fn is_true(state: gix::attrs::StateRef<'_>) -> Option<bool> {
    match state {
        gix::attrs::StateRef::Set => Some(true),
        gix::attrs::StateRef::Unset => Some(false),
        gix::attrs::StateRef::Value(value) => match value.as_bstr().as_bytes() {
            b"true" => Some(true),
            b"false" => Some(false),
            _ => None,
        },
        gix::attrs::StateRef::Unspecified => None,
    }
}

#[cfg(unix)]
fn os_str(path: &RepoPath) -> &OsStr {
    std::os::unix::ffi::OsStrExt::from_bytes(path.as_bytes())
}
