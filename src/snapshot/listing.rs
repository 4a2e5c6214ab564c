//! Converts the files of a tree or worktree to manifest entries, which are indexed, skipped or missing.

use std::collections::{BTreeMap, HashSet};

use crate::artifact::{ArtifactKey, SkipReason, Status};
use crate::extract;
use crate::git::{
    AttributeMatcher, Attributes, FileMode, ObjectError, ObjectReader, RULES_FILES, Repository, TreeFile, is_rules_file,
};
use crate::index::Segments;
use crate::model::{BlobId, Lang, Oid, RepoPath, TreeId};

use super::manifest::{FileEntry, FileStatus, Manifest, ManifestWriter};

/// A file of a tree or worktree. Its blob may not be indexed yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedFile {
    /// The path from the root of the tree.
    pub path: RepoPath,
    /// The file mode in git.
    pub mode: FileMode,
    /// The id of the blob or, for a submodule, of the commit.
    pub oid: Oid,
    /// The language according to the path.
    pub lang: Lang,
    /// The reason to skip the file, if its path or mode requires that.
    pub left_out: Option<SkipReason>,
}

impl ListedFile {
    /// Creates the entry of a file. Determines from path, mode and attributes if the file is skipped.
    pub fn new(path: RepoPath, mode: FileMode, oid: Oid, attributes: &mut AttributeMatcher) -> Self {
        Self {
            lang: extract::lang_of_path(&path),
            left_out: left_out(&path, mode, attributes),
            path,
            mode,
            oid,
        }
    }

    /// Returns the key of the file's artifact.
    pub fn key(&self) -> ArtifactKey {
        ArtifactKey {
            blob: BlobId(self.oid),
            lang: self.lang,
        }
    }

    /// Returns the manifest entry of the file. Its status is missing if `segments` does not contain the blob.
    pub fn entry(self, segments: &Segments) -> FileEntry {
        let status = match self.left_out {
            Some(reason) => FileStatus::Skipped(reason),
            None => status_of(self.key(), segments),
        };
        FileEntry {
            path: self.path,
            mode: self.mode,
            oid: self.oid,
            lang: self.lang,
            status,
        }
    }
}

fn status_of(key: ArtifactKey, segments: &Segments) -> FileStatus {
    let found = segments
        .find_blob(key)
        .and_then(|blob| Some((blob, segments.of_blob(blob)?)));
    match found.map(|(blob, (segment, local))| (blob, segment.artifacts.status(local))) {
        Some((blob, Some(Status::Indexed))) => FileStatus::Indexed { blob },
        Some((_, Some(Status::Skipped(reason)))) => FileStatus::Skipped(reason),
        _ => FileStatus::Skipped(SkipReason::Missing),
    }
}

fn left_out(path: &RepoPath, mode: FileMode, attributes: &mut AttributeMatcher) -> Option<SkipReason> {
    match mode {
        FileMode::Submodule => return Some(SkipReason::Submodule),
        FileMode::Symlink => return Some(SkipReason::Symlink),
        FileMode::File | FileMode::Executable => {}
    }
    let stated = attributes.of(path);
    if stated.is_ignored {
        Some(SkipReason::Ignored)
    } else if stated.is_lfs {
        Some(SkipReason::LfsPointer)
    } else if stated.vendored.unwrap_or_else(|| extract::is_vendored(path)) {
        Some(SkipReason::Vendored)
    } else if stated.generated == Some(true) {
        Some(SkipReason::Generated)
    } else if extract::is_lock_file(path) {
        Some(SkipReason::LockFile)
    } else {
        None
    }
}

/// Reads the rules files (for example `.gitattributes`) of a snapshot. Finds them in its manifests instead of walking
/// the tree.
pub fn attributes_of(layers: &[Manifest], reader: &mut ObjectReader) -> Result<Attributes, ObjectError> {
    let mut rules: BTreeMap<RepoPath, TreeFile> = BTreeMap::new();
    for layer in layers {
        for index in 0..layer.n_removed() {
            rules.remove(&RepoPath::new(layer.removed(index)));
        }
        for index in 0..layer.n_files() {
            if is_rules_path(layer.path(index)) {
                let FileEntry { path, mode, oid, .. } = layer.entry(index);
                rules.insert(path.clone(), TreeFile { path, mode, oid });
            }
        }
    }
    Attributes::for_files(reader, rules.values())
}

/// Returns the paths of all rules files that could apply to the file at `path`.
pub fn rules_for(path: &RepoPath) -> impl Iterator<Item = RepoPath> {
    let bytes = path.as_bytes();
    let slashes = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'/');
    let folders = std::iter::once(0).chain(slashes.map(|(at, _)| at + 1));
    folders.flat_map(|end| RULES_FILES.map(|name| RepoPath::new([&bytes[..end], name].concat())))
}

/// Like [`is_rules_file`], but does not build a `RepoPath` for most paths.
pub fn is_rules_path(path: &[u8]) -> bool {
    RULES_FILES.iter().any(|name| path.ends_with(name)) && is_rules_file(&RepoPath::new(path))
}

/// Returns the keys of the artifacts that `files` need and `segments` does not contain. Each key is returned once, in
/// the order of `files`.
pub fn missing_artifacts(files: &[ListedFile], segments: &Segments) -> Vec<ArtifactKey> {
    let mut seen = HashSet::new();
    files
        .iter()
        .filter(|file| file.left_out.is_none())
        .map(ListedFile::key)
        .filter(|&key| seen.insert(key) && segments.find_blob(key).is_none())
        .collect()
}

/// Limit on the number of missing blobs to look up. In a partial clone most blobs may be missing, and every query looks
/// them up.
const MAX_LOOKUPS: usize = 1_000;

/// Returns true if a blob that was missing when the manifest was written is now in the repository. The manifest should
/// then be rebuilt.
///
/// If very many blobs are missing, checks an evenly distributed sample.
pub fn can_be_completed(layers: &[Manifest], repository: &Repository, max_blob_bytes: u64) -> bool {
    let missing = missing_blobs(layers);
    if missing.is_empty() {
        return false;
    }
    let mut reader = repository.reader();
    let mut sample = missing.iter().step_by(missing.len().div_ceil(MAX_LOOKUPS));
    sample.any(|(_, blob)| reader.has_blob(*blob, max_blob_bytes))
}

/// Returns the files of a snapshot whose blobs were missing when its manifest was written.
pub fn missing_blobs(layers: &[Manifest]) -> Vec<(RepoPath, BlobId)> {
    let mut blobs = Vec::new();
    for (number, layer) in layers.iter().enumerate() {
        for index in (0..layer.n_files()).filter(|&index| layer.blob(index).is_none()) {
            let entry = layer.entry(index);
            let is_hidden = || {
                layers[number + 1..]
                    .iter()
                    .any(|above| above.names(entry.path.as_bytes()))
            };
            if entry.status == FileStatus::Skipped(SkipReason::Missing) && !is_hidden() {
                blobs.push((entry.path, BlobId(entry.oid)));
            }
        }
    }
    blobs
}

/// The difference of a manifest from a whole manifest: the new entry of each changed path, or `None` for a removed
/// file.
#[derive(Clone, Debug, Default)]
pub struct Difference {
    by_path: BTreeMap<RepoPath, Option<FileEntry>>,
}

impl Difference {
    /// Returns the difference that a stored manifest contains.
    pub fn of(manifest: &Manifest) -> Self {
        let files = (0..manifest.n_files()).map(|index| manifest.entry(index));
        let files = files.map(|entry| (entry.path.clone(), Some(entry)));
        let removed = (0..manifest.n_removed()).map(|index| (RepoPath::new(manifest.removed(index)), None));
        Self {
            by_path: files.chain(removed).collect(),
        }
    }

    /// Applies `from` to `base` and `to` to `base`, and returns the difference between the two results.
    pub fn between(base: &Manifest, from: &Manifest, to: &Manifest) -> Self {
        let (from, to) = (Self::of(from).by_path, Self::of(to).by_path);
        let laid = |over: &BTreeMap<RepoPath, Option<FileEntry>>, path: &RepoPath| match over.get(path) {
            Some(entry) => entry.clone(),
            None => base.find(path.as_bytes()).map(|index| base.entry(index)),
        };
        let mut by_path = BTreeMap::new();
        for path in from.keys().chain(to.keys()) {
            let after = laid(&to, path);
            if laid(&from, path) != after {
                by_path.insert(path.clone(), after);
            }
        }
        Self { by_path }
    }

    /// Replaces each blob number with the result of `number`. Returns true if every blob has a new number.
    pub fn renumber(&mut self, number: impl Fn(u32) -> Option<u32>) -> bool {
        self.by_path.values_mut().flatten().all(|entry| match entry.status {
            FileStatus::Indexed { blob } => number(blob).is_some_and(|blob| {
                entry.status = FileStatus::Indexed { blob };
                true
            }),
            FileStatus::Skipped(_) => true,
        })
    }

    /// Adds or replaces a file.
    pub fn put(&mut self, entry: FileEntry) {
        self.by_path.insert(entry.path.clone(), Some(entry));
    }

    /// Removes a file.
    pub fn remove(&mut self, path: RepoPath) {
        self.by_path.insert(path, None);
    }

    /// Adds all files of `whole` that this difference does not change.
    pub fn over(mut self, whole: &Manifest) -> Self {
        for entry in (0..whole.n_files()).map(|index| whole.entry(index)) {
            self.by_path.entry(entry.path.clone()).or_insert(Some(entry));
        }
        self.by_path.retain(|_, entry| entry.is_some());
        self
    }

    /// Returns the number of changed paths.
    pub fn len(&self) -> usize {
        self.by_path.len()
    }

    /// Returns true if no path differs.
    pub fn is_empty(&self) -> bool {
        self.by_path.is_empty()
    }

    /// Returns the bytes of a manifest that contains this difference from `base`. `tree` is the tree that the manifest
    /// describes, if any.
    pub fn to_manifest(&self, epoch: [u8; 16], recipe: u64, base: Option<TreeId>, tree: Option<TreeId>) -> Vec<u8> {
        let mut writer = ManifestWriter::new(epoch, recipe, base).for_tree(tree);
        self.by_path.values().flatten().for_each(|entry| writer.push(entry));
        let removed = self.by_path.iter().filter(|(_, entry)| entry.is_none());
        removed.for_each(|(path, _)| writer.remove(path));
        writer.finish()
    }
}
