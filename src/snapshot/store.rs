//! Manifests by tree, as files of the sidecar.

use std::io;
use std::path::PathBuf;
use std::time::SystemTime;

use crate::model::{Oid, TreeId};
use crate::sidecar::{SectionError, Sidecar, Store, WriterLock};

use super::manifest::Manifest;

/// What the names of manifests end in.
const ENDING: &str = ".snap";
/// How many hexadecimal digits of the epoch stand in a name.
const EPOCH_DIGITS: usize = 8;

/// The manifests of one sidecar.
#[derive(Clone, Debug)]
pub struct SnapshotStore<'a> {
    sidecar: &'a Sidecar,
    epoch: [u8; 16],
    recipe: u64,
}

/// Why a manifest could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    /// The file is damaged.
    #[error(transparent)]
    File(#[from] SectionError),
    /// The file cannot be written.
    #[error("cannot write {}", .path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

/// A file that holds a manifest by its name; of this epoch or another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredManifest {
    /// The tree.
    pub tree: TreeId,
    /// Where it stands.
    pub path: PathBuf,
    /// Its size.
    pub n_bytes: u64,
    /// When it was written, or went out of use.
    pub changed: SystemTime,
    /// Whether its name is one of this epoch; the others nobody reads any more.
    pub is_current: bool,
}

impl<'a> SnapshotStore<'a> {
    /// The manifests that belong to an epoch and a recipe; others are as good as none.
    pub fn new(sidecar: &'a Sidecar, epoch: [u8; 16], recipe: u64) -> Self {
        Self { sidecar, epoch, recipe }
    }

    /// The manifest of a tree: a whole one, or a whole one and the difference to lay over it. `None` if it is not stored.
    ///
    /// A damaged one is an error; writing it anew mends it.
    pub fn load(&self, tree: TreeId) -> Result<Option<Vec<Manifest>>, ManifestError> {
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

    /// The name of a tree's file.
    pub fn file_name(&self, tree: TreeId) -> String {
        format!("{tree}-{}{ENDING}", self.epoch_digits())
    }

    /// Stores the manifest of a tree.
    pub fn publish(&self, tree: TreeId, bytes: &[u8], _lock: &WriterLock) -> Result<(), ManifestError> {
        let name = self.file_name(tree);
        let written = self.sidecar.write(Store::Snapshots, &name, bytes);
        written.map_err(|source| ManifestError::Write {
            path: self.sidecar.path(Store::Snapshots, &name),
            source,
        })
    }

    /// The trees that have a manifest, the newest first.
    pub fn trees(&self) -> io::Result<Vec<TreeId>> {
        let mut found: Vec<_> = self.files()?.into_iter().filter(|file| file.is_current).collect();
        found.sort_unstable_by_key(|file| std::cmp::Reverse((file.changed, file.tree)));
        Ok(found.into_iter().map(|file| file.tree).collect())
    }

    /// Every file that this program has given the name of a manifest, in no order.
    pub fn files(&self) -> io::Result<Vec<StoredManifest>> {
        let mut found = Vec::new();
        for entry in self.sidecar.entries(Some(Store::Snapshots))? {
            let Some((tree, epoch)) = entry.name.to_str().and_then(parse_name) else {
                continue;
            };
            found.push(StoredManifest {
                tree,
                path: self.sidecar.folder(Store::Snapshots).join(&entry.name),
                n_bytes: entry.length,
                changed: entry.modified,
                is_current: epoch == self.epoch_digits(),
            });
        }
        Ok(found)
    }

    /// The manifest of a tree alone, be it whole or a difference. `None` if it is not stored.
    pub fn manifest(&self, tree: TreeId) -> Result<Option<Manifest>, ManifestError> {
        self.open(tree)
    }

    fn open(&self, tree: TreeId) -> Result<Option<Manifest>, ManifestError> {
        match Manifest::open(self.sidecar, &self.file_name(tree)) {
            Ok(manifest) if manifest.epoch() == self.epoch && manifest.recipe() == self.recipe => {
                manifest.check_tree(tree)?;
                Ok(Some(manifest))
            }
            Ok(_) => Ok(None),
            Err(SectionError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn epoch_digits(&self) -> String {
        let digits = self.epoch[..EPOCH_DIGITS / 2].iter();
        digits.map(|byte| format!("{byte:02x}")).collect()
    }
}

/// The tree that a file of this name is the manifest of.
pub fn tree_of_file(name: &str) -> Option<TreeId> {
    parse_name(name).map(|(tree, _)| tree)
}

/// The tree and the digits of the epoch in a manifest's name; no digits in one of the time when names had none.
fn parse_name(name: &str) -> Option<(TreeId, &str)> {
    let stem = name.strip_suffix(ENDING)?;
    let (tree, epoch) = stem.split_once('-').unwrap_or((stem, ""));
    let is_epoch =
        epoch.is_empty() || epoch.len() == EPOCH_DIGITS && epoch.bytes().all(|byte| byte.is_ascii_hexdigit());
    let tree = TreeId(Oid::from_hex(tree).ok()?);
    is_epoch.then_some((tree, epoch))
}
