//! Rewrites the surviving manifests whose base is deleted or whose blob numbers change.

use std::collections::{HashMap, HashSet};

use crate::index::Ranks;
use crate::model::TreeId;
use crate::sidecar::{FileError, WriterLock};
use crate::snapshot::{Difference, Manifest, SnapshotStore};

use crate::ingest::run::is_small;

/// The source and target of a rewrite. If blobs get new numbers, the epochs differ; otherwise both are the same epoch.
pub(super) struct Rewriting<'a> {
    pub(super) from: &'a SnapshotStore<'a>,
    pub(super) to: &'a SnapshotStore<'a>,
    pub(super) epoch: [u8; 16],
    pub(super) recipe: u64,
    /// The new number of each blob; `None` if the numbers do not change.
    pub(super) numbers: Option<&'a Ranks>,
}

impl Rewriting<'_> {
    /// Writes the manifest of every tree in `kept` that changes, and calls `written` after each.
    ///
    /// If the base of difference manifests is deleted, the first of them becomes a whole manifest, and the others
    /// become differences from it. Each written file describes the same files as before and depends only on files that
    /// already exist.
    pub(super) fn write(
        &self,
        kept: &[TreeId],
        lock: &WriterLock,
        mut written: impl FnMut() -> bool,
    ) -> Result<bool, FileError> {
        let stays: HashSet<TreeId> = kept.iter().copied().collect();
        let mut new_bases: HashMap<TreeId, NewBase> = HashMap::new();
        for &tree in kept {
            let Some(top) = self.from.manifest(tree)? else {
                continue;
            };
            let bytes = match top.base().filter(|base| !stays.contains(base)) {
                None => match self.numbers {
                    None => continue,
                    Some(numbers) => top.renumbered(self.epoch, |blob| numbers.of(blob)),
                },
                Some(base) => match new_bases.get(&base) {
                    Some(heir) => self.difference_from_new_base(heir, tree, &top),
                    None => {
                        let Some(whole) = self.from.manifest(base)? else {
                            continue;
                        };
                        let bytes = self.whole(tree, &whole, &top);
                        new_bases.insert(base, NewBase { tree, top, whole });
                        bytes
                    }
                },
            };
            let Some(bytes) = bytes else {
                tracing::warn!(%tree, "a snapshot refers to a missing blob and will be rebuilt");
                continue;
            };
            self.to.publish(tree, &bytes, lock)?;
            if !written() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn difference_from_new_base(&self, heir: &NewBase, tree: TreeId, top: &Manifest) -> Option<Vec<u8>> {
        let difference = Difference::between(&heir.whole, &heir.top, top);
        if is_small(&difference, &heir.whole) {
            self.bytes(tree, difference, Some(heir.tree))
        } else {
            self.whole(tree, &heir.whole, top)
        }
    }

    fn whole(&self, tree: TreeId, base: &Manifest, top: &Manifest) -> Option<Vec<u8>> {
        self.bytes(tree, Difference::of(top).over(base), None)
    }

    fn bytes(&self, tree: TreeId, mut difference: Difference, base: Option<TreeId>) -> Option<Vec<u8>> {
        let is_known = self
            .numbers
            .is_none_or(|numbers| difference.renumber(|blob| numbers.of(blob)));
        is_known.then(|| difference.to_manifest(self.epoch, self.recipe, base, Some(tree)))
    }
}

/// A tree whose manifest takes over the role of a deleted base, with the old manifests of both.
struct NewBase {
    tree: TreeId,
    top: Manifest,
    whole: Manifest,
}
