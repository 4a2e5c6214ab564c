//! Surveys the content of a sidecar: snapshots, blobs and documents with their sizes, grouped by the reason to keep
//! them.

use std::collections::{HashMap, HashSet};
use std::io;

use crate::artifact::{ArtifactKey, SkipReason};
use crate::git::Repository;
use crate::index::{NumberSet, Segment, Segments};
use crate::model::{TreeId, chain};
use crate::sidecar::{FileError, SegmentEntry, Sidecar, State};
use crate::snapshot::{FileStatus, Manifest, SnapshotStore, StoredManifest};

use super::CollectError;
use super::keep::{Cause, Keep};
use crate::ingest::sweep;

/// Bytes per blob or document in addition to its record or text. Estimates a blob's row in the tables, or a document's
/// vector and postings.
const ENTRY_WEIGHT: u64 = 100;

/// A number of items and their total size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// Number of items.
    pub n: u64,
    /// Bytes on disk. For blobs and documents, an estimated share of the files that contain them.
    pub bytes: u64,
}

impl Share {
    fn add(&mut self, bytes: u64) {
        self.n += 1;
        self.bytes += bytes;
    }
}

/// A stored snapshot to keep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptSnapshot {
    /// The tree and the reason to keep it.
    pub keep: Keep,
    /// Bytes of the manifest, and of the blobs and documents that no snapshot of higher priority contains.
    pub bytes: u64,
}

/// The content of a sidecar, grouped by the reason to keep it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Survey {
    /// Snapshots to keep, in order of priority.
    pub kept: Vec<KeptSnapshot>,
    /// Snapshots with a reason to be kept that are deleted because of the size limit.
    pub over_budget: Vec<KeptSnapshot>,
    /// Last versions of deleted files that are kept and are in no kept snapshot.
    pub deleted_files: Share,
    /// Unused snapshots.
    pub dead_snapshots: Share,
    /// Blobs that are in no kept snapshot.
    pub dead_blobs: Share,
    /// Unused files in the stores: left by killed writers, replaced by new files, or of an earlier epoch.
    pub leftovers: Share,
    /// Folders with stores in an earlier format, and the bytes of their files.
    pub old_folders: Share,
    /// Recorded commits, which are always kept, and the bytes of their files.
    pub history: Share,
    /// Number of segments.
    pub n_segments: usize,
    /// Bytes of the segments and manifests in use.
    pub in_use_bytes: u64,
}

impl Survey {
    /// Sums up the snapshots for each reason, in order of priority. Omits reasons without snapshots.
    pub fn by_cause(&self) -> Vec<(Cause, Share)> {
        let share = |cause| {
            let mut share = Share::default();
            let kept = self.kept.iter().filter(|kept| kept.keep.cause == cause);
            kept.for_each(|kept| share.add(kept.bytes));
            (cause, share)
        };
        let all = Cause::ALL.into_iter().map(share);
        all.filter(|(_, share)| share.n > 0).collect()
    }

    /// Bytes that remain after all unused data is deleted.
    pub fn live_bytes(&self) -> u64 {
        self.kept.iter().map(|kept| kept.bytes).sum::<u64>() + self.deleted_files.bytes
    }
}

/// A survey with the additional results that a collection needs.
#[derive(Debug, Default)]
pub(super) struct Marked {
    pub(super) survey: Survey,
    pub(super) blobs: NumberSet,
    pub(super) docs: NumberSet,
    /// Manifests to delete.
    pub(super) dead_manifests: Vec<StoredManifest>,
}

/// Surveys the sidecar. Reads every kept manifest and writes nothing.
///
/// `keep` is in order of priority. Snapshots of the lowest priority are dropped until the others fit into `max_bytes`,
/// except those that are kept regardless of size. Blobs in `gone` are kept if space remains.
pub(super) fn mark(
    repository: &Repository,
    sidecar: &Sidecar,
    state: &State,
    segments: &Segments,
    (keep, gone): (Vec<Keep>, &[ArtifactKey]),
    max_bytes: Option<u64>,
) -> Result<Marked, CollectError> {
    let io_error = |source| FileError::read(sidecar.root(), source);
    let snapshots = SnapshotStore::new(sidecar, state.epoch, state.recipe);
    let mut stored = snapshots.files().map_err(io_error)?;
    stored.retain(|file| file.is_current);
    let mut marking = Marking::new(&snapshots, state, segments, &stored);
    let mut kept: Vec<KeptSnapshot> = Vec::new();
    for keep in keep {
        kept.extend(marking.add(keep, repository)?);
    }
    let over_budget = match max_bytes {
        Some(max_bytes) => kept.split_off(n_within(&kept, max_bytes)),
        None => Vec::new(),
    };
    if !over_budget.is_empty() {
        marking = Marking::new(&snapshots, state, segments, &stored);
        for KeptSnapshot { keep, .. } in std::mem::take(&mut kept) {
            kept.extend(marking.add(keep, repository)?);
        }
    }
    let kept_bytes: u64 = kept.iter().map(|kept| kept.bytes).sum();
    let room = max_bytes.map_or(u64::MAX, |max_bytes| max_bytes.saturating_sub(kept_bytes));
    let deleted_files = marking.mark_deleted_files(gone, room);
    let Marking { blobs, docs, .. } = marking;
    let stays: HashSet<TreeId> = kept.iter().map(|kept| kept.keep.tree).collect();
    let dead_manifests: Vec<StoredManifest> = stored.into_iter().filter(|file| !stays.contains(&file.tree)).collect();
    let found = sweep::find(sidecar, state).map_err(io_error)?;
    let mut survey = Survey {
        n_segments: state.segments.len(),
        in_use_bytes: found.named_bytes,
        history: Share {
            n: u64::from(state.n_commits()),
            bytes: found.history_bytes,
        },
        old_folders: old_folders(sidecar).map_err(io_error)?,
        over_budget,
        kept,
        deleted_files,
        ..Survey::default()
    };
    found.unnamed.iter().for_each(|file| survey.leftovers.add(file.n_bytes));
    dead_manifests
        .iter()
        .for_each(|file| survey.dead_snapshots.add(file.n_bytes));
    survey.dead_blobs = Share {
        n: u64::from(segments.n_blobs() - blobs.len()),
        bytes: found
            .named_bytes
            .saturating_sub(survey.dead_snapshots.bytes + survey.live_bytes()),
    };
    Ok(Marked {
        survey,
        blobs,
        docs,
        dead_manifests,
    })
}

/// Returns the number of snapshots, from the first, that fit into `max_bytes`. Snapshots kept regardless of size always
/// fit.
fn n_within(kept: &[KeptSnapshot], max_bytes: u64) -> usize {
    let mut total = 0;
    let fits = |snapshot: &&KeptSnapshot| {
        total += snapshot.bytes;
        total <= max_bytes || snapshot.keep.cause.is_always_kept()
    };
    kept.iter().take_while(fits).count()
}

fn old_folders(sidecar: &Sidecar) -> io::Result<Share> {
    let mut share = Share::default();
    for folder in sidecar.old_folders()? {
        share.add(sidecar.old_folder_bytes(&folder)?);
    }
    Ok(share)
}

/// Marks the blobs and documents of snapshots, one snapshot after another.
struct Marking<'a> {
    snapshots: &'a SnapshotStore<'a>,
    segments: &'a Segments,
    shares: Vec<FileShares>,
    manifest_bytes: HashMap<TreeId, u64>,
    blobs: NumberSet,
    docs: NumberSet,
    /// The whole manifest that was read last. Adjacent snapshots often have the same base.
    base: Option<(TreeId, Manifest)>,
}

impl<'a> Marking<'a> {
    fn new(snapshots: &'a SnapshotStore<'a>, state: &State, segments: &'a Segments, stored: &[StoredManifest]) -> Self {
        let entries = state.segments.iter().zip(segments.iter());
        Self {
            snapshots,
            segments,
            shares: entries
                .map(|(entry, segment)| FileShares::new(entry, segment))
                .collect(),
            manifest_bytes: stored.iter().map(|file| (file.tree, file.n_bytes)).collect(),
            blobs: NumberSet::below(segments.n_blobs()),
            docs: NumberSet::below(segments.n_docs()),
            base: None,
        }
    }

    /// Marks the blobs of a tree, if its snapshot is stored.
    ///
    /// A damaged snapshot is ignored, because it is rebuilt on demand. If it is pinned and cannot be rebuilt, this is
    /// an error.
    fn add(&mut self, keep: Keep, repository: &Repository) -> Result<Option<KeptSnapshot>, CollectError> {
        let Some(&manifest_bytes) = self.manifest_bytes.get(&keep.tree) else {
            return Ok(None);
        };
        let (top, base) = match self.layers(keep.tree) {
            Ok(Some(layers)) => layers,
            Ok(None) => return Ok(None),
            Err(error) if !error.is_invalid() => return Err(error.into()),
            Err(source) if keep.cause == Cause::Pin && !is_known(repository, keep.tree) => {
                let name = keep.name;
                return Err(CollectError::PinDamaged { name, source });
            }
            Err(error) => {
                tracing::warn!(name = keep.name, "a snapshot to keep is damaged: {}", chain(&error));
                return Ok(None);
            }
        };
        let mut bytes = manifest_bytes as f64;
        if let Some(base) = base {
            for index in 0..base.n_files() {
                if let Some(blob) = self.blob_of(&base, index).filter(|&blob| !self.blobs.contains(blob))
                    && !top.names(base.path(index))
                {
                    bytes += self.mark_blob(blob);
                }
            }
        }
        for index in 0..top.n_files() {
            if let Some(blob) = self.blob_of(&top, index) {
                bytes += self.mark_blob(blob);
            }
        }
        let bytes = bytes as u64;
        Ok(Some(KeptSnapshot { keep, bytes }))
    }

    /// Marks past versions of files that no snapshot contains, as long as they fit into `room` bytes.
    fn mark_deleted_files(&mut self, gone: &[ArtifactKey], room: u64) -> Share {
        let mut share = Share::default();
        for blob in gone.iter().filter_map(|key| self.segments.find_blob(*key)) {
            if share.bytes >= room {
                break;
            }
            if !self.blobs.contains(blob) {
                let bytes = self.mark_blob(blob) as u64;
                share.add(bytes);
            }
        }
        share
    }

    /// Returns the number of a file's blob. This includes blobs of files that are skipped because of their content: the
    /// manifest has no number for them, but an artifact stores the decision to skip them.
    fn blob_of(&self, manifest: &Manifest, index: u32) -> Option<u32> {
        if let Some(blob) = manifest.blob(index) {
            return Some(blob);
        }
        let entry = manifest.entry(index);
        let is_by_content = matches!(
            entry.status,
            FileStatus::Skipped(
                SkipReason::Binary
                    | SkipReason::TooLarge
                    | SkipReason::LfsPointer
                    | SkipReason::Generated
                    | SkipReason::Minified
            )
        );
        is_by_content.then(|| self.segments.find_blob(entry.key())).flatten()
    }

    /// Loads the manifest of a tree, and its base if it has one. `None` if one of them is missing.
    fn layers(&mut self, tree: TreeId) -> Result<Option<(Manifest, Option<Manifest>)>, FileError> {
        let Some(top) = self.snapshots.manifest(tree)? else {
            return Ok(None);
        };
        match top.base() {
            None => Ok(Some((top, None))),
            Some(tree) => Ok(self.base_of(tree)?.map(|base| (top, Some(base)))),
        }
    }

    fn base_of(&mut self, tree: TreeId) -> Result<Option<Manifest>, FileError> {
        if let Some((known, base)) = &self.base
            && *known == tree
        {
            return Ok(Some(base.clone()));
        }
        let base = self.snapshots.manifest(tree)?.filter(|base| base.base().is_none());
        self.base = base.clone().map(|base| (tree, base));
        Ok(base)
    }

    /// Marks a blob and its documents. Returns the bytes of those that were not marked before.
    fn mark_blob(&mut self, blob: u32) -> f64 {
        if !self.blobs.insert(blob) {
            return 0.0;
        }
        let Some(at) = self.at_blob(blob) else {
            return 0.0;
        };
        let Some((segment, local)) = self.segments.of_blob(blob) else {
            return 0.0;
        };
        let mut bytes = self.shares[at].of_blob(segment, local);
        for doc in segment.artifacts.docs(local) {
            if self.docs.insert(doc)
                && let Some((segment, local)) = self.segments.of_doc(doc)
                && let Some(at) = self.at_doc(doc)
            {
                bytes += self.shares[at].of_doc(segment, local);
            }
        }
        bytes
    }

    fn at_blob(&self, blob: u32) -> Option<usize> {
        self.shares
            .partition_point(|share| share.base_blob <= blob)
            .checked_sub(1)
    }

    fn at_doc(&self, doc: u32) -> Option<usize> {
        self.shares
            .partition_point(|share| share.base_doc <= doc)
            .checked_sub(1)
    }
}

/// Returns true if git has all objects of the tree, so that its snapshot can be rebuilt.
fn is_known(repository: &Repository, tree: TreeId) -> bool {
    repository.reader().diff_trees(None, tree).is_ok()
}

/// Distributes the bytes of a segment's files among its blobs and documents, in proportion to their records and texts.
struct FileShares {
    base_blob: u32,
    base_doc: u32,
    per_blob_weight: f64,
    per_doc_weight: f64,
}

impl FileShares {
    fn new(entry: &SegmentEntry, segment: &Segment) -> Self {
        let blobs: u64 = (0..entry.n_blobs).map(|blob| blob_weight(segment, blob)).sum();
        let docs: u64 = (0..entry.n_docs).map(|doc| doc_weight(segment, doc)).sum();
        let of_documents = entry.n_bytes() - entry.artifacts.length;
        // Without documents, all bytes are attributed to blobs.
        let of_blobs = entry.artifacts.length + if docs == 0 { of_documents } else { 0 };
        Self {
            base_blob: entry.base_blob,
            base_doc: entry.base_doc,
            per_blob_weight: of_blobs as f64 / blobs.max(1) as f64,
            per_doc_weight: of_documents as f64 / docs.max(1) as f64,
        }
    }

    fn of_blob(&self, segment: &Segment, blob: u32) -> f64 {
        self.per_blob_weight * blob_weight(segment, blob) as f64
    }

    fn of_doc(&self, segment: &Segment, doc: u32) -> f64 {
        self.per_doc_weight * doc_weight(segment, doc) as f64
    }
}

fn blob_weight(segment: &Segment, blob: u32) -> u64 {
    segment.artifacts.record_bytes_of(blob) + ENTRY_WEIGHT
}

fn doc_weight(segment: &Segment, doc: u32) -> u64 {
    u64::from(segment.lexical.meta(doc).n_bytes) + ENTRY_WEIGHT
}
