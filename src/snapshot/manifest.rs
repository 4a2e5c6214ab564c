//! Lists the files of a tree in path order.
//!
//! Sections of the file (format 1, little endian):
//! - `meta`: 16 bytes epoch | u64 recipe | u32 n_files | u32 n_removed | base tree: u8 length (0: whole), 32 bytes.
//! - `entries`: n_files × 40 bytes: id (32, zero padded) | u8 length of the id | u8 mode | u8 status (0 indexed, else
//!   the skip reason) | 1 byte of padding | u16 language of the artifact's key | 2 bytes of padding.
//! - `blobs`: n_files × u32, the number of each file's blob in the epoch, or `u32::MAX` if it has none.
//! - `tree`: the id of the manifest's tree. Detects a file that was stored under the wrong name. Absent from manifests
//!   that exist only in memory.
//! - `paths`, `path_ends`: concatenated paths, and the end of each path (u32). First the paths of the files, then the
//!   paths that a difference removes from its base. Both groups are sorted.
//!
//! Everything except `blobs` and the epoch depends only on the tree and the recipe.

use std::path::Path;

use crate::artifact::{ArtifactKey, SkipReason};
use crate::git::FileMode;
use crate::index::Segments;
use crate::model::{BlobId, Lang, Oid, RepoPath, TreeId};
use crate::sidecar::{Bytes, FileError, SectionFile, SectionWriter, Sidecar, Store};

/// Format version. 1: initial.
const FORMAT: u32 = 1;
const META_BYTES: usize = 65;
const ENTRY_BYTES: usize = 40;
const NO_BLOB: u32 = u32::MAX;
/// The number of a blob that is searchable text but has not been extracted. No segment contains it.
pub(super) const UNNUMBERED: u32 = u32::MAX - 1;

/// The entry of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileEntry {
    /// The path from the root of the tree.
    pub path: RepoPath,
    /// The file mode in git.
    pub mode: FileMode,
    /// The id of the blob or, for a submodule, of the commit.
    pub oid: Oid,
    /// The language in the key of the file's artifact.
    pub lang: Lang,
    /// The index status of the file.
    pub status: FileStatus,
}

/// The index status of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileStatus {
    /// The content of the file is searched.
    Indexed {
        /// The number of the file's blob in the epoch.
        blob: u32,
    },
    /// The content of the file is not searched.
    Skipped(SkipReason),
}

impl FileEntry {
    /// Returns the key of the file's artifact.
    pub fn key(&self) -> ArtifactKey {
        ArtifactKey {
            blob: BlobId(self.oid),
            lang: self.lang,
        }
    }
}

/// Writes a manifest. Files must be added in path order.
#[derive(Debug)]
pub struct ManifestWriter {
    epoch: [u8; 16],
    recipe: u64,
    base: Option<TreeId>,
    tree: Option<TreeId>,
    entries: Vec<u8>,
    blobs: Vec<u8>,
    paths: Vec<u8>,
    path_ends: Vec<u8>,
    n_files: u32,
    n_removed: u32,
}

impl ManifestWriter {
    /// Starts a whole manifest or, if `base` is given, a difference from the manifest of `base`.
    pub fn new(epoch: [u8; 16], recipe: u64, base: Option<TreeId>) -> Self {
        Self {
            epoch,
            recipe,
            base,
            tree: None,
            entries: Vec::new(),
            blobs: Vec::new(),
            paths: Vec::new(),
            path_ends: Vec::new(),
            n_files: 0,
            n_removed: 0,
        }
    }

    /// Sets the tree that the manifest describes.
    pub fn for_tree(self, tree: Option<TreeId>) -> Self {
        Self { tree, ..self }
    }

    /// Adds a file. Paths must be added in ascending order.
    pub fn push(&mut self, entry: &FileEntry) {
        debug_assert_eq!(self.n_removed, 0, "files come before removed paths");
        let (status, blob) = match entry.status {
            FileStatus::Indexed { blob } => (0, blob),
            FileStatus::Skipped(reason) => (reason as u8, NO_BLOB),
        };
        let id = entry.oid.as_bytes();
        let start = self.entries.len();
        self.entries.extend_from_slice(id);
        self.entries.resize(start + 32, 0);
        self.entries
            .extend_from_slice(&[id.len() as u8, entry.mode.number(), status, 0]);
        self.entries.extend_from_slice(&entry.lang.0.to_le_bytes());
        self.entries.extend_from_slice(&[0, 0]);
        self.blobs.extend_from_slice(&blob.to_le_bytes());
        self.push_path(&entry.path);
        self.n_files += 1;
    }

    /// Records that a path is removed from the base. Paths must be added in ascending order, after all files.
    pub fn remove(&mut self, path: &RepoPath) {
        self.push_path(path);
        self.n_removed += 1;
    }

    /// Returns the content of the manifest file.
    pub fn finish(self) -> Vec<u8> {
        let mut meta = self.epoch.to_vec();
        meta.extend_from_slice(&self.recipe.to_le_bytes());
        meta.extend_from_slice(&self.n_files.to_le_bytes());
        meta.extend_from_slice(&self.n_removed.to_le_bytes());
        let base = self.base.as_ref().map_or(&[][..], |tree| tree.0.as_bytes());
        meta.push(base.len() as u8);
        meta.extend_from_slice(base);
        meta.resize(META_BYTES, 0);
        let mut writer = SectionWriter::new(FORMAT);
        writer.add("meta", meta);
        writer.add("entries", self.entries);
        writer.add("blobs", self.blobs);
        writer.add("paths", self.paths);
        writer.add("path_ends", self.path_ends);
        if let Some(tree) = self.tree {
            writer.add("tree", tree.0.as_bytes().to_vec());
        }
        writer.finish()
    }

    fn push_path(&mut self, path: &RepoPath) {
        self.paths.extend_from_slice(path.as_bytes());
        self.path_ends
            .extend_from_slice(&(self.paths.len() as u32).to_le_bytes());
    }
}

/// An open manifest, which is either whole or a difference from a whole manifest.
#[derive(Clone, Debug)]
pub struct Manifest {
    file: SectionFile,
    epoch: [u8; 16],
    recipe: u64,
    base: Option<TreeId>,
    n_files: u32,
    n_removed: u32,
    entries: Bytes,
    blobs: Bytes,
    paths: Bytes,
    path_ends: Bytes,
}

impl Manifest {
    /// Opens the file `name` of the sidecar.
    pub fn open(sidecar: &Sidecar, name: &str) -> Result<Self, FileError> {
        Self::from_sections(SectionFile::open(sidecar, Store::Snapshots, name, FORMAT)?)
    }

    /// Opens a manifest in memory. `name` is used in error messages.
    pub fn from_bytes(name: &Path, bytes: Vec<u8>) -> Result<Self, FileError> {
        Self::from_sections(SectionFile::from_bytes(name, Bytes::from_vec(bytes), FORMAT)?)
    }

    fn from_sections(file: SectionFile) -> Result<Self, FileError> {
        let meta = file.section("meta")?;
        if meta.len() != META_BYTES {
            return Err(file.damaged("meta"));
        }
        let base = match usize::from(meta[32]) {
            0 => None,
            length => {
                let raw = meta.get(33..33 + length).ok_or_else(|| file.damaged("base tree"))?;
                Some(TreeId(Oid::from_bytes(raw).map_err(|_| file.damaged("base tree"))?))
            }
        };
        let manifest = Self {
            epoch: meta[..16].try_into().expect("sixteen bytes"),
            recipe: u64::from_le_bytes(meta[16..24].try_into().expect("eight bytes")),
            base,
            n_files: u32_at(&meta, 24),
            n_removed: u32_at(&meta, 28),
            entries: file.section("entries")?,
            blobs: file.section("blobs")?,
            paths: file.section("paths")?,
            path_ends: file.section("path_ends")?,
            file,
        };
        let n_files = manifest.n_files as usize;
        let n_paths = n_files + manifest.n_removed as usize;
        let fits = manifest.entries.len() == n_files * ENTRY_BYTES
            && manifest.blobs.len() == n_files * 4
            && manifest.path_ends.len() == n_paths * 4;
        if !fits {
            return Err(manifest.file.damaged("number of files"));
        }
        Ok(manifest)
    }

    /// Returns the tree that the manifest describes, if the file contains it.
    fn tree(&self) -> Option<TreeId> {
        let raw = self.file.section("tree").ok()?;
        Oid::from_bytes(&raw).ok().map(TreeId)
    }

    /// Checks that the manifest describes `tree`. Fails if the file does not contain the tree.
    pub fn check_tree(&self, tree: TreeId) -> Result<(), FileError> {
        if &*self.file.section("tree")? == tree.0.as_bytes() {
            Ok(())
        } else {
            Err(self.file.damaged("manifest of another tree"))
        }
    }

    /// Verifies every byte of the file. Does not check that the blobs exist.
    pub fn verify_file(&self) -> Result<(), FileError> {
        self.file.verify()
    }

    /// Verifies every byte of the file, the order of the paths, and that `segments` contains every listed blob with the
    /// same id and language.
    pub fn verify(&self, segments: &Segments) -> Result<(), FileError> {
        self.file.verify()?;
        let n_paths = self.n_files + self.n_removed;
        let ends: Vec<u32> = (0..n_paths as usize)
            .map(|index| u32_at(&self.path_ends, index * 4))
            .collect();
        if !ends.is_sorted() || ends.last().map_or(0, |&end| end as usize) != self.paths.len() {
            return Err(self.file.damaged("ends of paths"));
        }
        let ascend = |range: std::ops::Range<u32>| {
            let mut pairs = range.clone().zip(range.skip(1));
            pairs.all(|(one, next)| self.path_at(one) < self.path_at(next))
        };
        if !ascend(0..self.n_files) || !ascend(self.n_files..n_paths) {
            return Err(self.file.damaged("order of paths"));
        }
        self.check_blobs(segments)
    }

    /// Checks that `segments` contains every listed blob with the same id and language. That it does not means that files
    /// of two indexes were mixed, in which one number means two blobs.
    pub fn check_blobs(&self, segments: &Segments) -> Result<(), FileError> {
        match (0..self.n_files).find(|&index| !self.is_sound(index, segments)) {
            Some(index) => Err(self
                .file
                .damaged(format!("entry of {}", RepoPath::new(self.path(index))))),
            None => Ok(()),
        }
    }

    fn is_sound(&self, index: u32, segments: &Segments) -> bool {
        let raw = &self.entries[index as usize * ENTRY_BYTES..][..ENTRY_BYTES];
        let entry = self.entry(index);
        let is_known = |blob| {
            segments
                .of_blob(blob)
                .is_some_and(|(segment, local)| segment.artifacts.key(local) == Some(entry.key()))
        };
        matches!(raw[32], 20 | 32)
            && entry.mode.number() == raw[33]
            && match (raw[34], self.blob(index)) {
                (0, Some(blob)) => is_known(blob),
                (reason, None) => SkipReason::from_number(reason).is_some(),
                _ => false,
            }
    }

    /// Returns the epoch of the blob numbers.
    pub fn epoch(&self) -> [u8; 16] {
        self.epoch
    }

    /// Returns the recipe of the index, which determines what files are skipped.
    pub fn recipe(&self) -> u64 {
        self.recipe
    }

    /// Returns the tree of the manifest that this one is a difference from. `None` for a whole manifest.
    pub fn base(&self) -> Option<TreeId> {
        self.base
    }

    /// Returns the size of the file in bytes.
    pub fn n_bytes(&self) -> u64 {
        self.file.n_bytes()
    }

    /// Returns the number of files.
    pub fn n_files(&self) -> u32 {
        self.n_files
    }

    /// Returns the number of paths that are removed from the base.
    pub fn n_removed(&self) -> u32 {
        self.n_removed
    }

    /// Returns the path of the file at `index`.
    pub fn path(&self, index: u32) -> &[u8] {
        debug_assert!(index < self.n_files);
        self.path_at(index)
    }

    /// Returns the removed path at `index`.
    pub fn removed(&self, index: u32) -> &[u8] {
        debug_assert!(index < self.n_removed);
        self.path_at(self.n_files + index)
    }

    /// Returns the index of the file at `path`.
    pub fn find(&self, path: &[u8]) -> Option<u32> {
        find_path(self.n_files, |index| self.path(index), path)
    }

    /// Returns true if the manifest contains `path`, either as a file or as a removed path.
    pub fn names(&self, path: &[u8]) -> bool {
        self.find(path).is_some() || find_path(self.n_removed, |index| self.removed(index), path).is_some()
    }

    /// Returns the content of this manifest for another epoch. Replaces each blob number with the result of `number`.
    /// Returns `None` if a blob has no number in that epoch.
    pub fn renumbered(&self, epoch: [u8; 16], number: impl Fn(u32) -> Option<u32>) -> Option<Vec<u8>> {
        let mut blobs = Vec::with_capacity(self.blobs.len());
        for index in 0..self.n_files {
            let blob = match self.blob(index) {
                Some(blob) => number(blob)?,
                None => NO_BLOB,
            };
            blobs.extend_from_slice(&blob.to_le_bytes());
        }
        let writer = ManifestWriter {
            epoch,
            recipe: self.recipe,
            base: self.base,
            tree: self.tree(),
            entries: self.entries.to_vec(),
            blobs,
            paths: self.paths.to_vec(),
            path_ends: self.path_ends.to_vec(),
            n_files: self.n_files,
            n_removed: self.n_removed,
        };
        Some(writer.finish())
    }

    /// Returns the number of a file's blob, or `None` if the file is skipped.
    pub fn blob(&self, index: u32) -> Option<u32> {
        let blob = u32_at(&self.blobs, index as usize * 4);
        (blob != NO_BLOB).then_some(blob)
    }

    /// Returns the entry of the file at `index`.
    pub fn entry(&self, index: u32) -> FileEntry {
        let raw = &self.entries[index as usize * ENTRY_BYTES..][..ENTRY_BYTES];
        let length = usize::from(raw[32]).min(32);
        let oid = Oid::from_bytes(&raw[..length])
            .unwrap_or_else(|_| Oid::from_bytes(&[0; 20]).expect("twenty bytes are an id"));
        let status = match (SkipReason::from_number(raw[34]), self.blob(index)) {
            (None, Some(blob)) => FileStatus::Indexed { blob },
            (Some(reason), _) => FileStatus::Skipped(reason),
            (None, None) => FileStatus::Skipped(SkipReason::Missing),
        };
        FileEntry {
            path: RepoPath::new(self.path(index)),
            mode: FileMode::of_number(raw[33]),
            oid,
            lang: Lang(u16::from_le_bytes([raw[36], raw[37]])),
            status,
        }
    }

    fn path_at(&self, index: u32) -> &[u8] {
        let end_of = |index: u32| u32_at(&self.path_ends, index as usize * 4) as usize;
        let start = index.checked_sub(1).map_or(0, end_of);
        self.paths.get(start..end_of(index)).unwrap_or_default()
    }
}

fn find_path<'a>(n_paths: u32, path_at: impl Fn(u32) -> &'a [u8], path: &[u8]) -> Option<u32> {
    let (mut low, mut high) = (0, n_paths);
    while low < high {
        let middle = low + (high - low) / 2;
        match path_at(middle).cmp(path) {
            std::cmp::Ordering::Less => low = middle + 1,
            std::cmp::Ordering::Greater => high = middle,
            std::cmp::Ordering::Equal => return Some(middle),
        }
    }
    None
}

fn u32_at(raw: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(raw[at..at + 4].try_into().expect("four bytes"))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn manifest_files_round_trip() {
        let entry = |path: &str, status| FileEntry {
            path: RepoPath::from(path),
            mode: FileMode::Executable,
            oid: Oid::from_bytes(&[7; 32]).unwrap(),
            lang: Lang(3),
            status,
        };
        let files = [
            entry("a", FileStatus::Indexed { blob: 5 }),
            entry("b/c", FileStatus::Skipped(SkipReason::Vendored)),
        ];
        let base = TreeId(Oid::from_bytes(&[1; 20]).unwrap());
        let mut writer = ManifestWriter::new([9; 16], 77, Some(base));
        files.iter().for_each(|file| writer.push(file));
        writer.remove(&RepoPath::from("gone"));
        let manifest = Manifest::from_bytes(Path::new("sample"), writer.finish()).unwrap();
        assert_eq!((manifest.n_files(), manifest.n_removed()), (2, 1));
        assert_eq!([manifest.entry(0), manifest.entry(1)], files);
        assert_eq!(manifest.removed(0), b"gone");
        assert_eq!((manifest.find(b"b/c"), manifest.find(b"gone")), (Some(1), None));
        assert!(manifest.names(b"a") && manifest.names(b"gone") && !manifest.names(b"b"));
        let again = manifest.renumbered([8; 16], |blob| Some(blob * 2)).unwrap();
        let again = Manifest::from_bytes(Path::new("again"), again).unwrap();
        assert_eq!(again.entry(0).status, FileStatus::Indexed { blob: 10 });
        assert_eq!((again.entry(1), again.removed(0)), (files[1].clone(), &b"gone"[..]));
        assert_eq!((again.base(), again.epoch(), again.recipe()), (Some(base), [8; 16], 77));
        assert!(manifest.renumbered([8; 16], |_| None).is_none());
        assert_eq!(
            (manifest.base(), manifest.epoch(), manifest.recipe()),
            (Some(base), [9; 16], 77)
        );
    }
}
