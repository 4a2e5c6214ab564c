//! Manifests by tree, as files of the sidecar.

use std::io;
use std::path::PathBuf;

use crate::model::{Oid, TreeId};
use crate::sidecar::{SectionError, Sidecar, Store, WriterLock};

use super::manifest::Manifest;

/// The manifest of a tree is named by it, with this ending.
const ENDING: &str = ".snap";

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
        file_name(tree)
    }

    /// Stores the manifest of a tree.
    pub fn publish(&self, tree: TreeId, bytes: &[u8], _lock: &WriterLock) -> Result<(), ManifestError> {
        let name = file_name(tree);
        let written = self.sidecar.write(Store::Snapshots, &name, bytes);
        written.map_err(|source| ManifestError::Write {
            path: self.sidecar.path(Store::Snapshots, &name),
            source,
        })
    }

    /// The trees that have a manifest, the newest first.
    pub fn trees(&self) -> io::Result<Vec<TreeId>> {
        let mut found = Vec::new();
        for entry in self.sidecar.entries(Some(Store::Snapshots))? {
            if let Some(tree) = entry.name.to_str().and_then(tree_of_file) {
                found.push((entry.modified, tree));
            }
        }
        found.sort_unstable_by(|a, b| b.cmp(a));
        Ok(found.into_iter().map(|(_, tree)| tree).collect())
    }

    fn open(&self, tree: TreeId) -> Result<Option<Manifest>, ManifestError> {
        match Manifest::open(self.sidecar, &file_name(tree)) {
            Ok(manifest) if manifest.epoch() == self.epoch && manifest.recipe() == self.recipe => {
                manifest.check_tree(tree)?;
                Ok(Some(manifest))
            }
            Ok(_) => Ok(None),
            Err(SectionError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

/// The name of a tree's manifest.
fn file_name(tree: TreeId) -> String {
    format!("{tree}{ENDING}")
}

/// The tree that a file of this name is the manifest of.
pub fn tree_of_file(name: &str) -> Option<TreeId> {
    let oid = Oid::from_hex(name.strip_suffix(ENDING)?).ok()?;
    Some(TreeId(oid))
}
