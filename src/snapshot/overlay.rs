//! Applies uncommitted changes to a snapshot. The changed files are extracted like others, but only in memory.

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use crate::artifact::SkipReason;
use crate::embed::Embedder;
use crate::extract;
use crate::git::Repository;
use crate::index::{Build, BuildError, BuildOptions, Segment, SegmentData, SegmentError, Segments, left_out};
use crate::model::{BlobId, RepoPath};
use crate::sidecar::FileError;

use super::blobs::Blobs;
use super::listing::{Difference, ListedFile, missing_artifacts};
use super::manifest::{FileStatus, Manifest, UNNUMBERED};

/// A changed path of the worktree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// The new or changed file.
    Present(ListedFile),
    /// The path of a deleted file.
    Gone(RepoPath),
}

/// An error from applying changes to a snapshot.
#[derive(Debug, thiserror::Error)]
pub enum OverlayError {
    /// Building a segment failed.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// Opening the segment failed.
    #[error(transparent)]
    Segment(#[from] SegmentError),
    /// Opening the manifest failed.
    #[error(transparent)]
    Manifest(#[from] FileError),
}

/// Extracts the blobs of `changes` that `segments` does not contain. Returns the segments with the new ones added, and
/// a manifest to apply on top of the manifest of the snapshot.
///
/// `unsaved` contains the contents of blobs that git does not have. Writes nothing to disk.
pub fn lay_over_changes(
    changes: Vec<Change>,
    unsaved: &HashMap<BlobId, Vec<u8>>,
    repository: &Repository,
    segments: &Segments,
    embedder: &dyn Embedder,
    options: &BuildOptions,
    interrupt: &AtomicBool,
) -> Result<(Segments, Manifest), OverlayError> {
    let (difference, files) = sorted(changes);
    let missing = missing_artifacts(&files, segments);
    let mut with_changes = segments.clone();
    if !missing.is_empty() {
        let source = Blobs::of_git(repository, options.max_blob_bytes).with_unsaved(unsaved);
        let mut built: Vec<SegmentData> = Vec::new();
        let build = Build {
            known: segments,
            embedder,
            options,
            interrupt,
            progress: &|_| {},
        };
        build.segments(&missing, &source, |data| {
            built.push(data);
            Ok::<_, BuildError>(())
        })?;
        for data in built {
            with_changes = with_changes.with(Segment::from_data(data)?);
        }
    }
    let manifest = manifest(difference, files, &with_changes, options)?;
    Ok((with_changes, manifest))
}

/// Returns a manifest of `changes` without reading or extracting blobs. Blobs that are neither in `segments` nor in
/// `unsaved` are listed as missing.
pub fn list_changes(
    changes: Vec<Change>,
    unsaved: &HashMap<BlobId, Vec<u8>>,
    segments: &Segments,
    options: &BuildOptions,
) -> Result<Manifest, OverlayError> {
    let (mut difference, files) = sorted(changes);
    for file in files {
        let mut entry = file.entry(segments);
        let bytes = unsaved.get(&BlobId(entry.oid));
        if let (FileStatus::Skipped(SkipReason::Missing), Some(bytes)) = (entry.status, bytes) {
            entry.lang = extract::refine(entry.lang, bytes);
            entry.status = match left_out(bytes, options.max_blob_bytes) {
                Some(reason) => FileStatus::Skipped(reason),
                None => FileStatus::Indexed { blob: UNNUMBERED },
            };
        }
        difference.put(entry);
    }
    listed(&difference, options)
}

fn sorted(changes: Vec<Change>) -> (Difference, Vec<ListedFile>) {
    let mut difference = Difference::default();
    let mut files = Vec::new();
    for change in changes {
        match change {
            Change::Present(file) => files.push(file),
            Change::Gone(path) => difference.remove(path),
        }
    }
    (difference, files)
}

fn manifest(
    mut difference: Difference,
    files: Vec<ListedFile>,
    segments: &Segments,
    options: &BuildOptions,
) -> Result<Manifest, OverlayError> {
    for file in files {
        difference.put(file.entry(segments));
    }
    listed(&difference, options)
}

fn listed(difference: &Difference, options: &BuildOptions) -> Result<Manifest, OverlayError> {
    let bytes = difference.to_manifest([0; 16], options.recipe, None, None);
    Ok(Manifest::from_bytes(Path::new("changes"), bytes)?)
}
