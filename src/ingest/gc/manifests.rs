//! The manifests that stay, rewritten where their base goes or their numbers change.

use std::collections::{HashMap, HashSet};

use crate::index::Ranks;
use crate::model::TreeId;
use crate::sidecar::WriterLock;
use crate::snapshot::{Difference, Manifest, ManifestError, SnapshotStore};

use crate::ingest::run::is_small;

/// Where manifests are read and where they are written: two epochs with the new number of each blob, or twice the same.
pub(super) struct Rewriting<'a> {
    pub(super) from: &'a SnapshotStore<'a>,
    pub(super) to: &'a SnapshotStore<'a>,
    pub(super) epoch: [u8; 16],
    pub(super) recipe: u64,
    /// `None` where numbers stay.
    pub(super) numbers: Option<&'a Ranks>,
}

impl Rewriting<'_> {
    /// Writes the manifest of every tree of `kept` that does not stay as it is, and tells `written` of each.
    ///
    /// Differences whose base is not kept pass to an heir: the first of them becomes whole, the others differences to it. Each file that
    /// is written says the same as the one before it, and rests on nothing that is not there yet.
    pub(super) fn write(
        &self,
        kept: &[TreeId],
        lock: &WriterLock,
        mut written: impl FnMut() -> bool,
    ) -> Result<bool, ManifestError> {
        let stays: HashSet<TreeId> = kept.iter().copied().collect();
        let mut heirs: HashMap<TreeId, Heir> = HashMap::new();
        for &tree in kept {
            let Some(top) = self.from.manifest(tree)? else {
                continue;
            };
            let bytes = match top.base().filter(|base| !stays.contains(base)) {
                None => match self.numbers {
                    None => continue,
                    Some(numbers) => top.renumbered(self.epoch, |blob| numbers.of(blob)),
                },
                Some(base) => match heirs.get(&base) {
                    Some(heir) => self.over_heir(heir, tree, &top),
                    None => {
                        let Some(whole) = self.from.manifest(base)? else {
                            continue;
                        };
                        let bytes = self.whole(tree, &whole, &top);
                        heirs.insert(base, Heir { tree, top, whole });
                        bytes
                    }
                },
            };
            let Some(bytes) = bytes else {
                tracing::warn!(%tree, "a snapshot names a blob that is not there; it will be made anew");
                continue;
            };
            self.to.publish(tree, &bytes, lock)?;
            if !written() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn over_heir(&self, heir: &Heir, tree: TreeId, top: &Manifest) -> Option<Vec<u8>> {
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

/// The tree whose manifest takes the place of a base that goes, with both as they were.
struct Heir {
    tree: TreeId,
    top: Manifest,
    whole: Manifest,
}
