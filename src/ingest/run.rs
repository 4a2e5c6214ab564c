//! Runs the writer: lists missing blobs, indexes them and publishes the result.

use std::time::{Duration, Instant};

use crate::artifact::{ArtifactKey, SkipReason};
use crate::embed::Embedder;
use crate::extract;
use crate::git::{Attributes, ObjectError, ObjectReader, Repository, TreeChange, TreeFile, is_rules_file};
use crate::history::PastFile;
use crate::index::{Build, BuildError, BuildOptions, SegmentError, Segments};
use crate::model::{CommitId, Ctx, Stage, TreeId, chain, explain_by, random_bytes};
use crate::sidecar::{
    FileError, FileErrorKind, HistoryEntry, LockError, PastVersions, PreciseEntry, Sidecar, State, WriterLock,
};
use crate::snapshot::{
    Blobs, Difference, ListedFile, Manifest, SnapshotStore, attributes_of, can_be_completed, missing_artifacts,
};

use super::added::save_vectors;
use super::compact::tidy;
use super::publish::{note_past_versions, pass, publish_segment, publish_state};

/// A manifest is stored as a difference from its base if the difference lists at most this many paths, or at most an
/// eighth of the base's paths.
const MAX_DIFFERENCE: usize = 1000;
/// Number of first-parent ancestors to search for a stored manifest.
const MAX_ANCESTORS: usize = 64;

/// The writer of one repository.
pub struct Ingest<'a> {
    /// The repository with the blobs.
    pub repository: &'a Repository,
    /// The sidecar to update.
    pub sidecar: &'a Sidecar,
    /// The embedder of the chunks.
    pub embedder: &'a dyn Embedder,
    /// Settings for building segments.
    pub options: &'a BuildOptions,
    /// Time limit for waiting for another writer.
    pub patience: Duration,
}

/// The tree to index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// The commit, if there is one. The manifests of its ancestors serve as starting points.
    pub commit: Option<CommitId>,
    /// The tree.
    pub tree: TreeId,
}

/// The outcome of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Number of files examined: all files of the tree, or only those that differ from the nearest indexed tree.
    pub n_files: usize,
    /// Number of blobs read and extracted.
    pub n_new_blobs: usize,
    /// Number of new chunks, which were indexed and embedded.
    pub n_new_chunks: usize,
    /// Bytes of text read.
    pub n_text_bytes: u64,
    /// Number of segments that were merged into one at the end of the run.
    pub n_merged_segments: usize,
    /// Duration of the run.
    pub elapsed: Duration,
    /// True if the run was interrupted. Completed work is kept.
    pub interrupted: bool,
}

/// An error from a run.
#[derive(Debug, thiserror::Error)]
pub enum IngestError {
    /// Another writer did not finish in time, or the lock cannot be acquired.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// A file cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// A stored segment cannot be read.
    #[error(transparent)]
    Segment(#[from] SegmentError),
    /// The repository cannot be read.
    #[error(transparent)]
    Object(#[from] ObjectError),
    /// Building a segment failed.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// The system provides no random bytes for the id of a new epoch.
    #[error("cannot get random bytes")]
    Random(#[source] std::io::Error),
}

explain_by!(IngestError: Lock, File, Object, Build);

impl Ingest<'_> {
    /// Builds the manifest of `target` and indexes everything that it refers to. If the manifest exists already, this
    /// costs one lookup.
    pub fn update(&self, target: Target, ctx: Ctx<'_>) -> Result<Outcome, IngestError> {
        let started = Instant::now();
        ctx.progress.begin(Stage::Waiting, 0);
        let lock = match self.sidecar.lock_unless(self.patience, ctx.interrupt) {
            Err(LockError::Interrupted { .. }) => {
                let interrupted = true;
                return Ok(Outcome {
                    interrupted,
                    ..Outcome::default()
                });
            }
            lock => lock?,
        };
        ctx.progress.end();
        let (mut state, known) = self.sound_state(&lock)?;
        let snapshots = SnapshotStore::new(self.sidecar, state.epoch, state.recipe);
        match snapshots.load_for(target.tree, &known) {
            Ok(Some(layers)) if !can_be_completed(&layers, self.repository, self.options.max_blob_bytes) => {
                return Ok(Outcome::default());
            }
            Ok(_) => {}
            Err(error) => {
                tracing::warn!("{}: rebuilding the manifest", chain(&error));
                self.set_manifest_aside(&error, &lock);
            }
        }
        let mut outcome = self.build(target, &lock, &mut state, known, ctx)?;
        outcome.elapsed = started.elapsed();
        Ok(outcome)
    }

    /// Indexes past versions of files, which are in no snapshot, and records which versions these are. Adds the new
    /// blobs to the outcome.
    pub fn index_past(
        &self,
        past: Vec<PastFile>,
        versions: PastVersions,
        ctx: Ctx<'_>,
    ) -> Result<Outcome, IngestError> {
        let started = Instant::now();
        let files: Vec<ListedFile> = past.into_iter().map(listed_past).collect();
        let lock = self.sidecar.lock_unless(self.patience, ctx.interrupt)?;
        if self.sidecar.past_versions().ok() != Some(versions) {
            note_past_versions(self.sidecar, &lock, versions)?;
        }
        let (mut state, known) = self.sound_state(&lock)?;
        let missing = missing_artifacts(&files, &known);
        let mut outcome = Outcome {
            n_files: files.len(),
            ..Outcome::default()
        };
        if !missing.is_empty() {
            ctx.progress.begin(Stage::Indexing, missing.len());
            self.index(&missing, &known, &lock, &mut state, ctx, &mut outcome)?;
            ctx.progress.end();
            let segments = known.reopen(self.sidecar, &state, &self.profile())?;
            outcome.n_merged_segments = tidy(self.sidecar, &lock, &mut state, &segments, &self.profile());
        }
        outcome.interrupted = ctx.is_interrupted();
        outcome.elapsed = started.elapsed();
        Ok(outcome)
    }

    /// Returns the published state and its segments if this build can extend them. Otherwise returns the first state of
    /// a new epoch.
    pub(super) fn sound_state(&self, lock: &WriterLock) -> Result<(State, Segments), IngestError> {
        let (mut history, mut precise) = (Vec::new(), Vec::new());
        match self.sidecar.state() {
            Ok(Some(state)) if state.recipe == self.options.recipe => {
                history.clone_from(&state.history);
                precise.clone_from(&state.precise);
                match Segments::open(self.sidecar, &state, &self.profile()) {
                    Ok(segments) if segments.iter().all(|segment| segment.vectors.is_some()) => {
                        return Ok((state, segments));
                    }
                    Ok(_) => tracing::info!("another embedding profile: indexing again"),
                    Err(error) => {
                        tracing::warn!("{}: indexing again", chain(&error));
                        save_vectors(self.sidecar, &state, &self.profile());
                        self.set_damaged_aside(&state, lock);
                    }
                }
            }
            Ok(Some(state)) => {
                save_vectors(self.sidecar, &state, &self.profile());
                (history, precise) = (state.history, state.precise);
                tracing::info!("another extraction recipe: indexing again");
            }
            Ok(None) => {}
            Err(error) if matches!(error.kind, FileErrorKind::Damaged(_)) => {
                tracing::warn!("{}: indexing again", chain(&error));
            }
            Err(error) => return Err(error.into()),
        }
        Ok((self.begin_epoch(lock, history, precise)?, Segments::default()))
    }

    /// Publishes a state without segments. Keeps the recorded commits and the facts of indexers, which do not depend on
    /// the epoch.
    pub(super) fn begin_epoch(
        &self,
        lock: &WriterLock,
        history: Vec<HistoryEntry>,
        precise: Vec<PreciseEntry>,
    ) -> Result<State, IngestError> {
        let mut state = State {
            epoch: random_bytes().map_err(IngestError::Random)?,
            recipe: self.options.recipe,
            history,
            precise,
            ..State::default()
        };
        publish_state(self.sidecar, lock, &mut state)?;
        Ok(state)
    }

    fn build(
        &self,
        target: Target,
        lock: &WriterLock,
        state: &mut State,
        known: Segments,
        ctx: Ctx<'_>,
    ) -> Result<Outcome, IngestError> {
        let mut reader = self.repository.reader();
        let snapshots = SnapshotStore::new(self.sidecar, state.epoch, state.recipe);
        let Listing { start, changes, files } = self.list(target, &snapshots, &known, &mut reader)?;
        let mut outcome = Outcome {
            n_files: changes.len(),
            ..Outcome::default()
        };
        let missing = missing_artifacts(&files, &known);
        if !missing.is_empty() {
            ctx.progress.begin(Stage::Indexing, missing.len());
            self.index(&missing, &known, lock, state, ctx, &mut outcome)?;
            ctx.progress.end();
        }
        if ctx.is_interrupted() {
            outcome.interrupted = true;
            return Ok(outcome);
        }
        if outcome.n_new_blobs < missing.len() && !self.repository.is_partial() {
            let n_files = missing.len() - outcome.n_new_blobs;
            tracing::warn!("cannot read {n_files} objects; their files are skipped until they can be read");
        }
        pass("update.indexed", self.sidecar)?;
        let segments = known.reopen(self.sidecar, state, &self.profile())?;
        let bytes = manifest_bytes(state, target.tree, start, &changes, files, &segments);
        snapshots.publish(target.tree, &bytes, lock)?;
        pass("update.manifest", self.sidecar)?;
        // Merging comes last, so that killing a long run loses no requested data.
        outcome.n_merged_segments = tidy(self.sidecar, lock, state, &segments, &self.profile());
        Ok(outcome)
    }

    fn index(
        &self,
        missing: &[ArtifactKey],
        known: &Segments,
        lock: &WriterLock,
        state: &mut State,
        ctx: Ctx<'_>,
        outcome: &mut Outcome,
    ) -> Result<(), IngestError> {
        let source = Blobs::of_git(self.repository, self.options.max_blob_bytes);
        let profile = self.profile();
        let build = Build {
            known,
            embedder: self.embedder,
            options: self.options,
            interrupt: ctx.interrupt,
            progress: &|n_bytes| ctx.progress.advance(n_bytes),
        };
        build.segments(missing, &source, |data| {
            // All blobs were missing in git.
            if data.n_blobs == 0 {
                return Ok(());
            }
            outcome.n_new_blobs += data.n_blobs as usize;
            outcome.n_new_chunks += data.n_docs as usize;
            outcome.n_text_bytes += data.n_text_bytes;
            publish_segment(self.sidecar, lock, state, &data, &profile).map_err(IngestError::from)
        })
    }

    pub(super) fn profile(&self) -> String {
        self.embedder.profile().id().to_string()
    }

    /// Lists the files that differ from the nearest stored manifest. Lists all files if no manifest is near, or if a
    /// file with rules for skipping files has changed.
    fn list(
        &self,
        target: Target,
        snapshots: &SnapshotStore<'_>,
        known: &Segments,
        reader: &mut ObjectReader,
    ) -> Result<Listing, IngestError> {
        for tree in self.candidates(target, snapshots, reader) {
            // A damaged manifest cannot be a starting point. It is rebuilt when its own tree is requested.
            let Ok(Some(layers)) = snapshots.load_for(tree, known) else {
                continue;
            };
            // A difference would omit files that were missing when the manifest was stored and are available now.
            if can_be_completed(&layers, self.repository, self.options.max_blob_bytes) {
                continue;
            }
            // The objects of the old tree may have been removed from the repository.
            let Ok(changes) = reader.diff_trees(Some(tree), target.tree) else {
                continue;
            };
            if changes.iter().any(|change| is_rules_file(&change.path)) {
                break;
            }
            let attributes = attributes_of(&layers, reader)?;
            return Ok(Listing {
                files: listed(&changes, &attributes),
                changes,
                start: Some(Start { tree, layers }),
            });
        }
        whole_listing(target.tree, reader)
    }

    /// Lists every file of a tree.
    pub(super) fn all_files(&self, tree: TreeId) -> Result<Vec<ListedFile>, IngestError> {
        Ok(whole_listing(tree, &mut self.repository.reader())?.files)
    }

    fn candidates(&self, target: Target, snapshots: &SnapshotStore<'_>, reader: &mut ObjectReader) -> Vec<TreeId> {
        let stored = snapshots.trees().unwrap_or_default();
        if stored.is_empty() {
            return stored;
        }
        let mut trees = Vec::new();
        let mut next = target.commit;
        for _ in 0..MAX_ANCESTORS {
            let Some(info) = next.and_then(|commit| reader.commit(commit).ok()) else {
                break;
            };
            if stored.contains(&info.tree) {
                trees.push(info.tree);
                break;
            }
            next = info.parents.first().copied();
        }
        trees.extend(stored.first());
        trees
    }
}

/// The stored manifest from which a new manifest is computed.
struct Start {
    tree: TreeId,
    layers: Vec<Manifest>,
}

/// The files that a run has to examine.
struct Listing {
    start: Option<Start>,
    changes: Vec<TreeChange>,
    /// The listed files, as they are in the target tree.
    files: Vec<ListedFile>,
}

fn whole_listing(tree: TreeId, reader: &mut ObjectReader) -> Result<Listing, IngestError> {
    let changes = reader.diff_trees(None, tree)?;
    let rules: Vec<TreeFile> = changes.iter().filter_map(rules_file).collect();
    let attributes = Attributes::for_files(reader, &rules)?;
    Ok(Listing {
        files: listed(&changes, &attributes),
        changes,
        start: None,
    })
}

fn listed(changes: &[TreeChange], attributes: &Attributes) -> Vec<ListedFile> {
    let mut matcher = attributes.matcher();
    let present = changes.iter().filter_map(|change| Some((&change.path, change.new?)));
    present
        .map(|(path, entry)| ListedFile::new(path.clone(), entry.mode, entry.oid, &mut matcher))
        .collect()
}

fn rules_file(change: &TreeChange) -> Option<TreeFile> {
    let entry = change.new.filter(|_| is_rules_file(&change.path))?;
    Some(TreeFile {
        path: change.path.clone(),
        mode: entry.mode,
        oid: entry.oid,
    })
}

/// Returns the bytes of the target's manifest: a difference from the whole manifest that `start` is based on if that is
/// small, or else a whole manifest.
fn manifest_bytes(
    state: &State,
    target: TreeId,
    start: Option<Start>,
    changes: &[TreeChange],
    files: Vec<ListedFile>,
    segments: &Segments,
) -> Vec<u8> {
    let mut difference = Difference::default();
    let Some(Start { tree, layers }) = start else {
        files.into_iter().for_each(|file| difference.put(file.entry(segments)));
        return difference.to_manifest(state.epoch, state.recipe, None, Some(target));
    };
    let whole = &layers[0];
    let whole_tree = layers.last().and_then(Manifest::base).unwrap_or(tree);
    if let Some(stored) = layers.get(1) {
        difference = Difference::of(stored);
    }
    for change in changes.iter().filter(|change| change.new.is_none()) {
        difference.remove(change.path.clone());
    }
    files.into_iter().for_each(|file| difference.put(file.entry(segments)));
    if is_small(&difference, whole) {
        return difference.to_manifest(state.epoch, state.recipe, Some(whole_tree), Some(target));
    }
    difference
        .over(whole)
        .to_manifest(state.epoch, state.recipe, None, Some(target))
}

/// Converts a past version of a file to a file to index. The rules files of its commit are not read, so only names and
/// modes decide if it is skipped.
pub(super) fn listed_past(past: PastFile) -> ListedFile {
    let lang = extract::lang_of_path(&past.path);
    let left_out = match () {
        () if extract::is_vendored(&past.path) => Some(SkipReason::Vendored),
        () if extract::is_lock_file(&past.path) => Some(SkipReason::LockFile),
        () => None,
    };
    ListedFile {
        path: past.path,
        mode: past.entry.mode,
        oid: past.entry.oid,
        lang,
        left_out,
    }
}

/// Returns true if a difference from `whole` is small enough to be stored instead of a whole manifest.
pub(super) fn is_small(difference: &Difference, whole: &Manifest) -> bool {
    difference.len() <= MAX_DIFFERENCE.max(whole.n_files() as usize / 8)
}
