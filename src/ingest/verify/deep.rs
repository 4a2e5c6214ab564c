//! Compares the stored index with git. Reads, extracts, indexes and embeds blobs again with the same code as the
//! writer, and lists trees again.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::artifact::{ArtifactKey, SkipReason};
use crate::git::{Attributes, TreeFile, is_rules_file};
use crate::index::{
    BlobReader, BlobSource, Build, BuildError, BuildOptions, Segment, SegmentData, SegmentPart, Segments, SourceBlob,
    differences,
};
use crate::model::{Ctx, RepoPath, Stage, TreeId, random_bytes};
use crate::sidecar::{SegmentEntry, State, Store, StoredFile};
use crate::snapshot::{Blobs, FileEntry, FileStatus, ListedFile, Manifest, SnapshotStore};

use super::{Derived, Ingest, Verification, VerifyError};

impl Ingest<'_> {
    pub(super) fn derive(
        &self,
        sample: Option<usize>,
        state: &State,
        segments: &Segments,
        found: &mut Verification,
        ctx: Ctx<'_>,
    ) -> Result<(), VerifyError> {
        let has_vectors = segments.iter().all(|segment| segment.vectors.is_some());
        if !state.segments.is_empty() && (state.recipe != self.options.recipe || !has_vectors) {
            return Err(VerifyError::OtherSettings);
        }
        let mut derived = Derived::default();
        let blobs = Sample::of(segments.n_blobs() as usize, sample);
        ctx.progress.begin(Stage::Deriving, blobs.len());
        let mut number = 0;
        for (at, (segment, entry)) in segments.iter().zip(&state.segments).enumerate() {
            let mut keys = Vec::new();
            for key in (0..segment.artifacts.n_blobs()).filter_map(|blob| segment.artifacts.key(blob)) {
                if blobs.contains(number) {
                    keys.push(key)
                } else {
                    derived.n_skipped_blobs += 1
                }
                number += 1;
            }
            for (part, what) in self.derive_segment(segment, &segments.first(at), &keys, &mut derived, ctx)? {
                let (store, file) = file_of(entry, part, &self.profile());
                found.blame(Some(store), &file.name, format!("does not match the blobs: {what}"));
            }
        }
        ctx.progress.end();
        self.derive_manifests(sample, state, segments, found, &mut derived, ctx);
        self.derive_commits(sample, state, found, &mut derived, ctx);
        found.derived = Some(derived);
        Ok(())
    }

    /// Rebuilds the selected blobs of a segment and returns the differences.
    fn derive_segment(
        &self,
        segment: &Segment,
        before: &Segments,
        keys: &[ArtifactKey],
        derived: &mut Derived,
        ctx: Ctx<'_>,
    ) -> Result<Vec<(SegmentPart, String)>, VerifyError> {
        let n_absent = AtomicU64::new(0);
        let source = Counting {
            blobs: Blobs::of_git(self.repository, self.options.max_blob_bytes),
            n_absent: &n_absent,
        };
        let stop = AtomicBool::new(ctx.is_over());
        // Builds one segment regardless of its size, because its numbers are compared with those of the stored segment.
        let options = BuildOptions {
            max_segment_bytes: usize::MAX,
            ..self.options.clone()
        };
        let build = Build {
            known: before,
            embedder: self.embedder,
            options: &options,
            interrupt: &stop,
            progress: &|n_bytes| {
                ctx.progress.advance(n_bytes);
                if ctx.is_over() {
                    stop.store(true, Ordering::Relaxed);
                }
            },
        };
        let mut built: Option<SegmentData> = None;
        build.segments(keys, &source, |data| {
            built = Some(data);
            Ok::<_, BuildError>(())
        })?;
        let n_absent = n_absent.into_inner();
        derived.n_absent_blobs += n_absent;
        let Some(data) = built else {
            derived.n_skipped_blobs += keys.len() as u64 - n_absent;
            return Ok(Vec::new());
        };
        derived.n_blobs += u64::from(data.n_blobs);
        derived.n_docs += u64::from(data.n_docs);
        derived.n_skipped_blobs += keys.len() as u64 - n_absent - u64::from(data.n_blobs);
        let fresh = Segment::from_data(data)?;
        Ok(differences(segment, &fresh).map_err(crate::index::SegmentError::from)?)
    }

    fn derive_manifests(
        &self,
        sample: Option<usize>,
        state: &State,
        segments: &Segments,
        found: &mut Verification,
        derived: &mut Derived,
        ctx: Ctx<'_>,
    ) {
        let snapshots = SnapshotStore::new(self.sidecar, state.epoch, state.recipe);
        let trees = found.trees.clone();
        let sample = Sample::of(trees.len(), sample);
        for (number, tree) in trees.into_iter().enumerate() {
            let layers = match snapshots.load(tree) {
                Ok(Some(layers)) if sample.contains(number) && !ctx.is_over() => layers,
                _ => {
                    derived.n_skipped_manifests += 1;
                    continue;
                }
            };
            let Some(expected) = self.listed(tree, segments) else {
                derived.n_absent_trees += 1;
                continue;
            };
            derived.n_manifests += 1;
            if let Some(path) = manifest_difference(&layers, &expected) {
                let name = snapshots.file_name(tree);
                let what = format!("does not match the tree: {}", path.to_text());
                found.blame(Some(Store::Snapshots), &name, what);
            }
        }
    }

    /// Lists the files of a tree from git; `None` if some of its objects are missing.
    fn listed(&self, tree: TreeId, segments: &Segments) -> Option<BTreeMap<RepoPath, FileEntry>> {
        let mut reader = self.repository.reader();
        let changes = reader.diff_trees(None, tree).ok()?;
        let files: Vec<TreeFile> = changes
            .into_iter()
            .filter_map(|change| {
                let entry = change.new?;
                Some(TreeFile {
                    path: change.path,
                    mode: entry.mode,
                    oid: entry.oid,
                })
            })
            .collect();
        let rules = files.iter().filter(|file| is_rules_file(&file.path));
        let mut attributes = Attributes::for_files(&mut reader, rules).ok()?.matcher();
        let entry = |file: TreeFile| {
            let listed = ListedFile::new(file.path, file.mode, file.oid, &mut attributes);
            (listed.path.clone(), listed.entry(segments))
        };
        Some(files.into_iter().map(entry).collect())
    }
}

/// Returns the first path for which a manifest differs from the tree.
fn manifest_difference(layers: &[Manifest], expected: &BTreeMap<RepoPath, FileEntry>) -> Option<RepoPath> {
    let mut stored: BTreeMap<RepoPath, FileEntry> = BTreeMap::new();
    for layer in layers {
        for index in 0..layer.n_removed() {
            stored.remove(&RepoPath::new(layer.removed(index)));
        }
        let entries = (0..layer.n_files()).map(|index| layer.entry(index));
        stored.extend(entries.map(|entry| (entry.path.clone(), entry)));
    }
    let is_same = |ours: &FileEntry, theirs: &FileEntry| {
        (ours.mode, ours.oid, ours.lang) == (theirs.mode, theirs.oid, theirs.lang)
            && (ours.status == theirs.status || is_missing(ours) || is_missing(theirs))
    };
    let differs = stored.iter().find(|(path, ours)| {
        let theirs = expected.get(*path);
        !theirs.is_some_and(|theirs| is_same(ours, theirs))
    });
    let absent = || expected.keys().find(|path| !stored.contains_key(*path));
    differs.map(|(path, _)| path).or_else(absent).cloned()
}

/// Returns true if the file's blob is missing, or was missing when it was indexed. Such files are not compared.
fn is_missing(entry: &FileEntry) -> bool {
    entry.status == FileStatus::Skipped(SkipReason::Missing)
}

fn file_of<'e>(entry: &'e SegmentEntry, part: SegmentPart, profile: &str) -> (Store, &'e StoredFile) {
    let vectors = entry.vectors.iter().find(|vectors| vectors.profile == profile);
    match (part, vectors) {
        (SegmentPart::Vectors, Some(vectors)) => (Store::Dense, &vectors.file),
        (SegmentPart::Lexical, _) => (Store::Lexical, &entry.lexical),
        _ => (Store::Artifacts, &entry.artifacts),
    }
}

/// An evenly spread sample of `0..n` with a random start.
pub(super) struct Sample {
    n: usize,
    step: usize,
    first: usize,
}

impl Sample {
    pub(super) fn of(n: usize, wanted: Option<usize>) -> Self {
        let step = wanted.map_or(1, |wanted| n.div_ceil(wanted.max(1)).max(1));
        // Without random bytes, the sample starts at 0.
        let first = (u64::from_le_bytes(random_bytes().unwrap_or_default()) % step as u64) as usize;
        Self { n, step, first }
    }

    pub(super) fn contains(&self, number: usize) -> bool {
        number % self.step == self.first
    }

    pub(super) fn len(&self) -> usize {
        self.n.saturating_sub(self.first).div_ceil(self.step)
    }
}

/// Reads blobs from git and counts missing ones.
struct Counting<'a> {
    blobs: Blobs<'a>,
    n_absent: &'a AtomicU64,
}

struct CountingReader<'a> {
    reader: <Blobs<'a> as BlobSource>::Reader,
    n_absent: &'a AtomicU64,
}

impl<'a> BlobSource for Counting<'a> {
    type Reader = CountingReader<'a>;

    fn reader(&self) -> CountingReader<'a> {
        CountingReader {
            reader: self.blobs.reader(),
            n_absent: self.n_absent,
        }
    }
}

impl BlobReader for CountingReader<'_> {
    fn read(&mut self, key: ArtifactKey) -> SourceBlob {
        let blob = self.reader.read(key);
        if matches!(blob, SourceBlob::Absent) {
            self.n_absent.fetch_add(1, Ordering::Relaxed);
        }
        blob
    }
}
