//! Stores the manifest of each tree as a file of the sidecar.

use std::io;
use std::time::SystemTime;

use crate::index::Segments;
use crate::model::{Oid, TreeId};
use crate::sidecar::{FileError, Sidecar, Store, WriterLock};

use super::manifest::Manifest;

/// Extension of manifest files.
const ENDING: &str = ".snap";
/// Number of hexadecimal digits of the epoch in a file name.
const EPOCH_DIGITS: usize = 8;

/// The manifests in a sidecar.
#[derive(Clone, Debug)]
pub struct SnapshotStore<'a> {
    sidecar: &'a Sidecar,
    epoch: [u8; 16],
    recipe: u64,
}

/// A file whose name is that of a manifest, in any epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredManifest {
    /// The tree in the file name.
    pub tree: TreeId,
    /// The name of the file in its store.
    pub name: String,
    /// The size in bytes.
    pub n_bytes: u64,
    /// The time when the file was written or became unused.
    pub changed: SystemTime,
    /// True if the file belongs to the current epoch. Files of other epochs are no longer read.
    pub is_current: bool,
}

impl<'a> SnapshotStore<'a> {
    /// Opens the manifests of the given epoch and recipe. Ignores all others.
    pub fn new(sidecar: &'a Sidecar, epoch: [u8; 16], recipe: u64) -> Self {
        Self { sidecar, epoch, recipe }
    }

    /// Loads the manifest of a tree, which consists of a whole manifest and possibly a difference to apply to it.
    /// Returns `None` if no manifest of the tree is stored.
    ///
    /// Returns an error if a manifest is damaged. Publishing it again repairs it.
    pub fn load(&self, tree: TreeId) -> Result<Option<Vec<Manifest>>, FileError> {
        let Some(top) = self.open(tree)? else {
            return Ok(None);
        };
        let Some(base) = top.base() else {
            return Ok(Some(vec![top]));
        };
        match self.open(base)? {
            Some(whole) if whole.base().is_none() => Ok(Some(vec![whole, top])),
            _ => Ok(None),
        }
    }

    /// Like [`Self::load`], and checks that the manifests belong to these segments.
    pub fn load_for(&self, tree: TreeId, segments: &Segments) -> Result<Option<Vec<Manifest>>, FileError> {
        let layers = self.load(tree)?;
        layers
            .iter()
            .flatten()
            .try_for_each(|layer| layer.check_blobs(segments))?;
        Ok(layers)
    }

    /// Returns the file name of a tree's manifest.
    pub fn file_name(&self, tree: TreeId) -> String {
        format!("{tree}-{}{ENDING}", self.epoch_digits())
    }

    /// Stores the manifest of a tree.
    pub fn publish(&self, tree: TreeId, bytes: &[u8], _lock: &WriterLock) -> Result<(), FileError> {
        let name = self.file_name(tree);
        let written = self.sidecar.write(Store::Snapshots, &name, bytes);
        written.map_err(|source| FileError::write(self.sidecar.path(Store::Snapshots, &name), source))
    }

    /// Returns the trees that have a manifest, newest first.
    pub fn trees(&self) -> io::Result<Vec<TreeId>> {
        let mut found: Vec<_> = self.files()?.into_iter().filter(|file| file.is_current).collect();
        found.sort_unstable_by_key(|file| std::cmp::Reverse((file.changed, file.tree)));
        Ok(found.into_iter().map(|file| file.tree).collect())
    }

    /// Returns all files whose name is that of a manifest, in no particular order.
    pub fn files(&self) -> io::Result<Vec<StoredManifest>> {
        let mut found = Vec::new();
        for entry in self.sidecar.entries(Some(Store::Snapshots))? {
            let Some(name) = entry.name.to_str() else { continue };
            let Some((tree, epoch)) = parse_name(name) else {
                continue;
            };
            found.push(StoredManifest {
                tree,
                name: name.to_owned(),
                n_bytes: entry.length,
                changed: entry.modified,
                is_current: epoch == self.epoch_digits(),
            });
        }
        Ok(found)
    }

    /// Loads the manifest of a tree without the one that it is a difference from. Returns `None` if it is not stored.
    pub fn manifest(&self, tree: TreeId) -> Result<Option<Manifest>, FileError> {
        self.open(tree)
    }

    fn open(&self, tree: TreeId) -> Result<Option<Manifest>, FileError> {
        match Manifest::open(self.sidecar, &self.file_name(tree)) {
            Ok(manifest) if manifest.epoch() == self.epoch && manifest.recipe() == self.recipe => {
                manifest.check_tree(tree)?;
                Ok(Some(manifest))
            }
            Ok(_) => Ok(None),
            Err(error) if error.is_gone() => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn epoch_digits(&self) -> String {
        let digits = self.epoch[..EPOCH_DIGITS / 2].iter();
        digits.map(|byte| format!("{byte:02x}")).collect()
    }
}

/// Returns the tree in the file name of a manifest.
pub fn tree_of_file(name: &str) -> Option<TreeId> {
    parse_name(name).map(|(tree, _)| tree)
}

/// Returns the tree and the epoch digits of a manifest's file name.
fn parse_name(name: &str) -> Option<(TreeId, &str)> {
    let (tree, epoch) = name.strip_suffix(ENDING)?.split_once('-')?;
    let is_epoch = epoch.len() == EPOCH_DIGITS && epoch.bytes().all(|byte| byte.is_ascii_hexdigit());
    let tree = TreeId(Oid::from_hex(tree).ok()?);
    is_epoch.then_some((tree, epoch))
}
