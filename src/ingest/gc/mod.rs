//! Garbage collection: deletes unused snapshots, and blobs and documents that no other snapshot contains.
//!
//! Retention follows git: it keeps checked-out trees, refs, the stash, reflogs within a window, and pins. Dropping a
//! snapshot deletes its manifest file. Dropping blobs starts a new epoch:
//!
//! - The surviving blobs and documents are copied into new segments and numbered without gaps.
//! - The surviving manifests are written for the new epoch next to the old ones (a manifest's file name contains its
//!   epoch).
//! - The `state` that lists the new segments makes everything visible at once. After a crash before that, the old epoch
//!   is valid and the new files are unused; after it, the old files are unused.
//!
//! Leaving gaps in the numbers would keep the epoch and all manifests. But it would cost a row of the vectors and of
//! each table for every document that ever existed, and change every file format.
//!
//! Memory use: one new segment with the term dictionaries of its sources (a segment is no larger than one from a
//! build), two bits for each document and blob, and two manifests.

mod keep;
mod manifests;
mod survey;

use std::collections::HashSet;
use std::io;
use std::ops::Range;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::artifact::ArtifactKey;
use crate::git::{RefError, Repository};
use crate::history::{History, past_files};
use crate::index::dense::WriteError;
use crate::index::{
    MergeError, Ranks, Segment, SegmentError, Segments, Survivors, rewrite_artifacts, rewrite_segments,
};
use crate::model::{BlobId, Ctx, Stage, TreeId, chain, explain_by, random_bytes};
use crate::sidecar::{
    FileError, HistoryEntry, LastCollection, LockError, PastVersions, SegmentEntry, Sidecar, State, Store, WriterLock,
    failpoint,
};
use crate::snapshot::SnapshotStore;

pub use keep::{Cause, Keep};
pub use survey::{KeptSnapshot, Share, Survey};

use super::added::{CarryError, carry_added};
use super::compact::{GRACE, MAX_MERGED_BYTES, tidy};
use super::parts;
use super::precise::surviving_facts;
use super::publish::{ARTIFACTS_ENDING, publish_state, store, store_segment};
use super::run::listed_past;
use super::sweep::{Grace, retire, retire_manifests, sweep};
use keep::keep_list;
use manifests::Rewriting;
use survey::{Marked, mark};

/// No grace period for unused files. A process that has a file open keeps it, and a process that opens it later finds
/// the new state (see `sweep`).
const NO_GRACE: Grace = Grace {
    period: Duration::ZERO,
    min_bytes: 0,
};
/// Age below which automatic collections keep all snapshots.
const RECENT: Duration = Duration::from_secs(24 * 3600);
/// Maximum number of rounds to get below the size limit.
const MAX_ROUNDS: usize = 4;
/// Number of new snapshots since the last automatic collection after which the next is due.
const DUE_SNAPSHOTS: u64 = 64;
/// Time since the last automatic collection after which the next is due if there is any new snapshot.
const DUE_AFTER: Duration = Duration::from_secs(14 * 24 * 3600);
/// Time since the last automatic collection after which the next is due if the store exceeds its size limit.
const DUE_OVER_LIMIT: Duration = Duration::from_secs(24 * 3600);

/// Collects the garbage of one sidecar.
pub struct Collector<'a> {
    /// The repository, which determines the trees to keep.
    pub repository: &'a Repository,
    /// The sidecar to collect.
    pub sidecar: &'a Sidecar,
    /// Settings of the collection.
    pub options: &'a CollectOptions,
    /// External profiles in use. An aggressive collection deletes the vectors of other profiles.
    pub profiles: &'a [String],
}

/// Settings of a collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CollectOptions {
    /// Age limit in days of reflog entries that keep a snapshot.
    pub reflog_days: u32,
    /// Size limit of segments and manifests together. Collections do not shrink the records of commits.
    pub max_bytes: Option<u64>,
    /// Segments are rewritten when dead blobs make up at least this percentage of their bytes.
    pub dead_percent: u32,
    /// Maximum number of deleted files whose last versions are kept, and of files with removed definitions. The most
    /// recently deleted ones are kept. Requires recorded commits.
    pub deleted_files: usize,
}

/// The trigger of a collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger<'t> {
    /// A user request.
    Asked,
    /// A user request for a thorough collection: removes all dead blobs and leaves as few segments as possible.
    Aggressive,
    /// An automatic collection. Keeps these trees and the snapshots of the last day, and keeps replaced segments for
    /// processes that still read them. Manifests have no grace period, because a reader that misses one rebuilds it.
    Unasked(&'t [TreeId]),
}

/// The outcome of a collection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CollectOutcome {
    /// The content of the sidecar before the collection.
    pub survey: Survey,
    /// True if the surviving blobs were copied into new segments, which removes dead blobs.
    pub rewrote: bool,
    /// Total bytes of all files in the stores, before and after.
    pub bytes: (u64, u64),
    /// Number of segments, before and after.
    pub n_segments: (usize, usize),
    /// Unused files kept for processes that may still open them.
    pub waiting: Share,
    /// True if the store is within its size limit or has none.
    pub fits: bool,
    /// Duration of the collection.
    pub elapsed: Duration,
    /// True if the collection was interrupted. The survivors are intact; deletions of earlier rounds are final.
    pub interrupted: bool,
}

/// An error from collecting garbage. All data to keep is intact.
#[derive(Debug, thiserror::Error)]
pub enum CollectError {
    /// Another writer did not finish in time, or the lock cannot be acquired.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// A file cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// A stored segment cannot be read.
    #[error(transparent)]
    Segment(#[from] SegmentError),
    /// Survivors cannot be copied.
    #[error(transparent)]
    Merge(#[from] MergeError),
    /// Vectors of an external model cannot be copied.
    #[error(transparent)]
    Rows(#[from] WriteError),
    /// The refs cannot be read.
    #[error(transparent)]
    Refs(#[from] RefError),
    /// A pinned snapshot cannot be rebuilt.
    #[error(
        "the snapshot pinned as {name:?} is damaged and git no longer has its tree: remove the pin or repair the index first"
    )]
    PinDamaged {
        /// The name of the pin.
        name: String,
        /// The damage.
        #[source]
        source: FileError,
    },
    /// The folder was moved, deleted or replaced during the collection. A new folder in its place is not changed.
    #[error("{} was replaced during the collection", .path.display())]
    Replaced {
        /// The path of the folder.
        path: PathBuf,
    },
}

explain_by!(CollectError: Lock, File, Refs);

impl Collector<'_> {
    /// Lists the content of the sidecar, grouped by the reason to keep it. Writes nothing and takes no lock.
    pub fn survey(&self) -> Result<Survey, CollectError> {
        let Some((state, segments)) = self.open()? else {
            return Ok(Survey::default());
        };
        Ok(self
            .marked(&state, &segments, Trigger::Asked, self.options.max_bytes)?
            .survey)
    }

    /// Returns true if an automatic collection is due. Costs reading a small file and listing a folder.
    pub fn is_due(&self) -> Result<bool, CollectError> {
        let Some(state) = self.sidecar.state()? else {
            return Ok(false);
        };
        let snapshots = SnapshotStore::new(self.sidecar, state.epoch, state.recipe);
        let files = snapshots.files().map_err(|source| self.io_error(source))?;
        let n_snapshots = files.iter().filter(|file| file.is_current).count() as u64;
        let last = match self.sidecar.last_collection() {
            // The record holds only the time of the last collection, and the next collection rewrites it.
            Err(error) if error.is_invalid() => None,
            last => last?,
        };
        let last = last.unwrap_or(LastCollection {
            ended_at: i64::MIN,
            n_snapshots: 0,
        });
        let n_new = n_snapshots.saturating_sub(last.n_snapshots);
        // If the clock was set back, the recorded time is in the future and counts as long ago.
        let ago = u64::try_from(seconds_now().saturating_sub(last.ended_at)).map_or(Duration::MAX, Duration::from_secs);
        let is_first = last.ended_at == i64::MIN;
        let is_over_limit = || {
            let manifests: u64 = files.iter().map(|file| file.n_bytes).sum();
            let segments = state.n_segment_bytes();
            self.options
                .max_bytes
                .is_some_and(|max_bytes| segments + manifests > max_bytes)
        };
        Ok(n_new >= DUE_SNAPSHOTS
            || !is_first && n_new > 0 && ago >= DUE_AFTER
            || ago >= DUE_OVER_LIMIT && is_over_limit())
    }

    /// Deletes all unused data. Waits up to `patience` for another writer.
    pub fn collect(
        &self,
        occasion: Trigger<'_>,
        patience: Duration,
        ctx: Ctx<'_>,
    ) -> Result<CollectOutcome, CollectError> {
        let started = Instant::now();
        ctx.progress.begin(Stage::Waiting, 0);
        let lock = self.sidecar.lock_unless(patience, ctx.interrupt)?;
        ctx.progress.end();
        let mut done = CollectOutcome {
            fits: true,
            bytes: (self.stored_bytes()?, 0),
            ..CollectOutcome::default()
        };
        let mut target = self.options.max_bytes;
        for round in 0..MAX_ROUNDS {
            self.check_in_place()?;
            let Some((state, segments)) = self.open()? else {
                break;
            };
            let marked = self.marked(&state, &segments, occasion, target)?;
            self.pass("gc.marked")?;
            let survey = marked.survey.clone();
            let mut run = Run {
                collector: self,
                occasion,
                ctx,
                lock: &lock,
                state,
                segments,
                rewrote: false,
            };
            done.interrupted = !run.run(&marked)?;
            done.rewrote |= run.rewrote;
            done.n_segments = match round {
                0 => (survey.n_segments, run.state.segments.len()),
                _ => (done.n_segments.0, run.state.segments.len()),
            };
            match round {
                0 => done.survey = survey,
                _ => {
                    done.survey.kept = survey.kept;
                    done.survey.over_budget.extend(survey.over_budget);
                }
            }
            let in_use = self.in_use_bytes(&run.state)?;
            done.fits = self.options.max_bytes.is_none_or(|max_bytes| in_use <= max_bytes);
            let may_drop = done.survey.kept.iter().any(|kept| !kept.keep.cause.is_always_kept());
            if done.fits || done.interrupted || !may_drop {
                break;
            }
            // Deleting frees slightly less than computed, because parts of the files do not shrink. The next round
            // computes the sizes again, and later rounds leave a margin.
            if round > 0 {
                target = target.map(|target| target - target / 20);
            }
        }
        done.bytes.1 = self.stored_bytes()?;
        done.waiting = self.waiting()?;
        done.elapsed = started.elapsed();
        Ok(done)
    }

    fn check_in_place(&self) -> Result<(), CollectError> {
        if self.sidecar.is_in_place() {
            Ok(())
        } else {
            Err(CollectError::Replaced {
                path: self.sidecar.root().to_owned(),
            })
        }
    }

    /// Opens the published state and its segments, regardless of recipe and profile. `None` before the first state.
    fn open(&self) -> Result<Option<(State, Segments)>, CollectError> {
        let Some(state) = self.sidecar.state()? else {
            return Ok(None);
        };
        let segments = Segments::open_newest(self.sidecar, &state, &profile_of(&state))?;
        Ok(Some((state, segments)))
    }

    fn marked(
        &self,
        state: &State,
        segments: &Segments,
        occasion: Trigger<'_>,
        max_bytes: Option<u64>,
    ) -> Result<Marked, CollectError> {
        let since = seconds_now() - i64::from(self.options.reflog_days) * 24 * 3600;
        let roots = self.repository.roots(since)?;
        let pins = self.sidecar.pins()?;
        let recent = match occasion {
            Trigger::Unasked(trees) => self.recent(state, trees)?,
            Trigger::Asked | Trigger::Aggressive => Vec::new(),
        };
        let keep = keep_list(roots, &pins, &recent);
        let past = self.past(state);
        mark(self.repository, self.sidecar, state, segments, (keep, &past), max_bytes)
    }

    /// Lists the past versions of files to keep: none unless commits were made searchable. Unreadable records keep
    /// nothing: the records are rebuilt, and so are the versions.
    fn past(&self, state: &State) -> Vec<ArtifactKey> {
        if !state.has_searchable_history() {
            return Vec::new();
        }
        let versions = self.sidecar.past_versions().unwrap_or_else(|error| {
            tracing::warn!("{}: keeping only last versions", chain(&error));
            PastVersions::Last
        });
        let past = History::open(self.sidecar, &state.history)
            .and_then(|history| past_files(&history, versions, self.options.deleted_files));
        match past {
            Ok(past) => past.into_iter().map(|file| listed_past(file).key()).collect(),
            Err(error) => {
                tracing::warn!("{}: not keeping past versions of files", chain(&error));
                Vec::new()
            }
        }
    }

    /// Lists the trees that only automatic collections keep, with the creation time of each.
    fn recent(&self, state: &State, asked_for: &[TreeId]) -> Result<Vec<(TreeId, i64)>, CollectError> {
        let snapshots = SnapshotStore::new(self.sidecar, state.epoch, state.recipe);
        let files = snapshots.files().map_err(|source| self.io_error(source))?;
        let now = SystemTime::now();
        let is_recent = |changed| now.duration_since(changed).map_or(true, |age| age < RECENT);
        let made_lately = files.iter().filter(|file| file.is_current && is_recent(file.changed));
        Ok(made_lately
            .map(|file| (file.tree, seconds_of(file.changed)))
            .chain(asked_for.iter().map(|&tree| (tree, i64::MAX)))
            .collect())
    }

    /// Returns the bytes of the segments and manifests in use.
    fn in_use_bytes(&self, state: &State) -> Result<u64, CollectError> {
        let found = super::sweep::find(self.sidecar, state).map_err(|source| self.io_error(source))?;
        Ok(found.named_bytes)
    }

    fn waiting(&self) -> Result<Share, CollectError> {
        let state = self.sidecar.state()?.unwrap_or_default();
        let found = super::sweep::find(self.sidecar, &state).map_err(|source| self.io_error(source))?;
        Ok(Share {
            n: found.unnamed.len() as u64,
            bytes: found.unnamed.iter().map(|file| file.n_bytes).sum(),
        })
    }

    /// Returns the bytes of all files in the stores.
    fn stored_bytes(&self) -> Result<u64, CollectError> {
        let state = self.sidecar.state()?.unwrap_or_default();
        let history: u64 = state.history.iter().map(HistoryEntry::n_bytes).sum();
        Ok(self.in_use_bytes(&state)? + history + self.waiting()?.bytes)
    }

    /// Passes a fail point.
    fn pass(&self, name: &str) -> Result<(), CollectError> {
        failpoint::hit(name).map_err(|source| self.io_error(source))
    }

    fn io_error(&self, source: io::Error) -> CollectError {
        FileError::write(self.sidecar.root(), source).into()
    }
}

/// One round of a collection. A collection has several if the size limit is not met.
struct Run<'a> {
    collector: &'a Collector<'a>,
    occasion: Trigger<'a>,
    ctx: Ctx<'a>,
    lock: &'a WriterLock,
    state: State,
    segments: Segments,
    rewrote: bool,
}

impl Run<'_> {
    /// Returns whether the round was completed.
    fn run(&mut self, marked: &Marked) -> Result<bool, CollectError> {
        if self.occasion == Trigger::Aggressive {
            self.drop_profiles()?;
        }
        let kept: Vec<TreeId> = marked.survey.kept.iter().map(|kept| kept.keep.tree).collect();
        let groups = self.groups(marked);
        let rewrites = self.is_worth_rewriting(&marked.survey, groups.len());
        let n_steps = match (rewrites, marked.dead_manifests.len()) {
            // The additional file is the state.
            (true, _) => groups.len() + kept.len() + 1,
            (false, 0) => 0,
            (false, n_dead) => kept.len() + n_dead,
        };
        self.ctx.progress.begin(Stage::Collecting, n_steps);
        let finished = if rewrites {
            self.rewrite(marked, &kept, groups)
        } else {
            self.drop_manifests(marked, &kept)
        };
        if !matches!(finished, Ok(true))
            && let Err(error) = self.clear()
        {
            // The files written so far are unused; they only take space.
            tracing::warn!(%error, "cannot remove the files of an abandoned collection");
        }
        if finished? {
            self.finish(kept.len())?;
            self.ctx.progress.end();
            return Ok(true);
        }
        self.ctx.progress.end();
        Ok(false)
    }

    fn sidecar(&self) -> &Sidecar {
        self.collector.sidecar
    }

    /// Deletes the vectors of unused models, and stored parts with vectors of chunks that are in no segment.
    fn drop_profiles(&mut self) -> Result<(), CollectError> {
        let own = profile_of(&self.state);
        let in_use = self.collector.profiles;
        let stays = |profile: &str| profile == own || in_use.iter().any(|known| known == profile);
        let mut new = self.state.clone();
        for entry in &mut new.segments {
            entry.vectors.retain(|vectors| stays(&vectors.profile));
        }
        if new != self.state {
            publish_state(self.collector.sidecar, self.lock, &mut new)?;
            self.state = new;
        }
        let is_there = |key| self.segments.find_doc(key).is_some();
        parts::remove_unused(self.collector.sidecar, self.lock, stays)?;
        Ok(parts::remove_dead(self.collector.sidecar, self.lock, is_there)?)
    }

    fn is_worth_rewriting(&self, survey: &Survey, n_groups: usize) -> bool {
        let options = self.collector.options;
        let stays = survey.in_use_bytes - survey.dead_snapshots.bytes.min(survey.in_use_bytes);
        let is_over_limit = options.max_bytes.is_some_and(|max_bytes| stays > max_bytes);
        let is_much = u128::from(survey.dead_blobs.bytes) * 100 >= u128::from(stays) * u128::from(options.dead_percent);
        let is_aggressive = self.occasion == Trigger::Aggressive;
        if survey.dead_blobs.n == 0 {
            return is_aggressive && n_groups < self.state.segments.len();
        }
        is_much || is_over_limit || is_aggressive
    }

    /// Groups adjacent segments to merge. A large segment is its own group.
    fn groups(&self, marked: &Marked) -> Vec<Range<usize>> {
        let sizes: Vec<u64> = self
            .state
            .segments
            .iter()
            .map(|entry| {
                let alive = u64::from(marked.docs.count_in(entry.base_doc, entry.n_docs));
                entry.n_bytes() * alive / u64::from(entry.n_docs.max(1))
            })
            .collect();
        let mut groups: Vec<Range<usize>> = Vec::new();
        let mut total = 0;
        for (at, &size) in sizes.iter().enumerate() {
            match groups.last_mut() {
                Some(group) if total + size <= MAX_MERGED_BYTES => {
                    group.end = at + 1;
                    total += size;
                }
                _ => {
                    groups.push(at..at + 1);
                    total = size;
                }
            }
        }
        groups
    }

    /// Reports one more file. Returns true if the collection was not interrupted.
    fn goes_on(&self, n_bytes: u64) -> bool {
        self.ctx.progress.advance(n_bytes);
        !self.ctx.is_interrupted()
    }

    /// Starts a new epoch that contains only the surviving data.
    fn rewrite(&mut self, marked: &Marked, kept: &[TreeId], groups: Vec<Range<usize>>) -> Result<bool, CollectError> {
        let survivors = Survivors {
            blobs: Ranks::new(marked.blobs.clone()),
            docs: Ranks::new(marked.docs.clone()),
        };
        let epoch = random_bytes().map_err(|source| self.collector.io_error(source))?;
        let mut new = State {
            epoch,
            generation: self.state.generation,
            recipe: self.state.recipe,
            segments: Vec::new(),
            history: self.state.history.clone(),
            graphs: Vec::new(),
            precise: Vec::new(),
        };
        for group in groups {
            let entry = self.rewrite_group(group, &survivors)?;
            let n_bytes = entry.n_bytes();
            if (entry.n_blobs, entry.n_docs) != (0, 0) {
                new.segments.push(entry);
            }
            if !self.goes_on(n_bytes) {
                return Ok(false);
            }
        }
        new.precise = surviving_facts(self.sidecar(), &self.state, self.live_blobs(marked))?;
        self.collector.pass("gc.segments")?;
        let from = SnapshotStore::new(self.sidecar(), self.state.epoch, self.state.recipe);
        let to = SnapshotStore::new(self.sidecar(), new.epoch, new.recipe);
        let rewriting = Rewriting {
            from: &from,
            to: &to,
            epoch,
            recipe: new.recipe,
            numbers: Some(&survivors.blobs),
        };
        if !rewriting.write(kept, self.lock, || self.goes_on(0))? {
            return Ok(false);
        }
        self.collector.pass("gc.manifests")?;
        // Reads the new segments once before the old ones are deleted.
        let segments = Segments::open(self.sidecar(), &new, &profile_of(&new))?;
        self.collector.pass("gc.checked")?;
        publish_state(self.sidecar(), self.lock, &mut new)?;
        self.collector.pass("gc.published")?;
        self.ctx.progress.advance(0);
        if let Trigger::Unasked(_) = self.occasion {
            retire(self.sidecar(), &self.state.segments);
            retire_manifests(self.sidecar(), &from).map_err(|source| self.collector.io_error(source))?;
            self.collector.pass("gc.retired")?;
        }
        (self.state, self.segments, self.rewrote) = (new, segments, true);
        Ok(true)
    }

    /// Returns a function that returns true for the blobs that survive.
    fn live_blobs(&self, marked: &Marked) -> impl Fn(BlobId) -> bool + use<> {
        let mut live = HashSet::new();
        for (segment, entry) in self.segments.iter().zip(&self.state.segments) {
            let survives = |local: &u32| marked.blobs.contains(entry.base_blob + local);
            let keys = (0..entry.n_blobs)
                .filter(survives)
                .filter_map(|local| segment.artifacts.key(local));
            live.extend(keys.map(|key| key.blob));
        }
        move |blob| live.contains(&blob)
    }

    fn rewrite_group(&self, group: Range<usize>, survivors: &Survivors) -> Result<SegmentEntry, CollectError> {
        let parts: Vec<&Segment> = self.segments.iter().skip(group.start).take(group.len()).collect();
        let entry = &self.state.segments[group.start];
        let is_whole = survivors.blobs.set().count_in(entry.base_blob, entry.n_blobs) == entry.n_blobs
            && survivors.docs.set().count_in(entry.base_doc, entry.n_docs) == entry.n_docs;
        if group.len() == 1 && is_whole {
            return self.moved(entry, parts[0], survivors);
        }
        let data = rewrite_segments(&parts, survivors)?;
        let profile = profile_of(&self.state);
        let mut entry = store_segment(self.sidecar(), &data, &profile)?;
        let stays = |doc| survivors.docs.set().contains(doc);
        let added = carry_added(self.sidecar(), &self.state.segments[group], &profile, stays)?;
        entry.vectors.extend(added);
        Ok(entry)
    }

    /// Copies a segment whose blobs all survive. Only its artifacts refer to document numbers that may have changed.
    fn moved(
        &self,
        entry: &SegmentEntry,
        segment: &Segment,
        survivors: &Survivors,
    ) -> Result<SegmentEntry, CollectError> {
        let end = entry.base_doc + entry.n_docs;
        let artifacts = if survivors.docs.below(end) == end {
            entry.artifacts.clone()
        } else {
            let bytes = rewrite_artifacts(&[segment], survivors)?;
            store(self.sidecar(), Store::Artifacts, ARTIFACTS_ENDING, &bytes)?
        };
        Ok(SegmentEntry {
            base_blob: survivors.blobs.below(entry.base_blob),
            base_doc: survivors.docs.below(entry.base_doc),
            artifacts,
            ..entry.clone()
        })
    }

    /// Removes unused snapshots. Numbers and segments do not change.
    fn drop_manifests(&mut self, marked: &Marked, kept: &[TreeId]) -> Result<bool, CollectError> {
        if !marked.dead_manifests.is_empty() {
            let snapshots = SnapshotStore::new(self.sidecar(), self.state.epoch, self.state.recipe);
            let rewriting = Rewriting {
                from: &snapshots,
                to: &snapshots,
                epoch: self.state.epoch,
                recipe: self.state.recipe,
                numbers: None,
            };
            if !rewriting.write(kept, self.lock, || self.goes_on(0))? {
                return Ok(false);
            }
        }
        self.collector.check_in_place()?;
        // Removes differences before bases, so that an interruption leaves no difference without its base.
        let mut dead: Vec<_> = marked.dead_manifests.iter().collect();
        let snapshots = SnapshotStore::new(self.sidecar(), self.state.epoch, self.state.recipe);
        dead.sort_by_key(|file| !matches!(snapshots.manifest(file.tree), Ok(Some(top)) if top.base().is_some()));
        for file in dead {
            self.collector.pass("gc.before_remove_manifest")?;
            let removed = self.sidecar().remove(Store::Snapshots, &file.name, self.lock);
            removed.map_err(|source| FileError::write(self.sidecar().path(Store::Snapshots, &file.name), source))?;
            self.collector.pass("gc.removed_manifest")?;
            self.ctx.progress.advance(0);
        }
        Ok(true)
    }

    /// Removes unused files, merges small segments as after an update, and records the time.
    fn finish(&mut self, n_snapshots: usize) -> Result<(), CollectError> {
        let profile = profile_of(&self.state);
        while tidy(
            self.collector.sidecar,
            self.lock,
            &mut self.state,
            &self.segments,
            &profile,
        ) > 0
        {
            self.segments = Segments::open(self.collector.sidecar, &self.state, &profile)?;
        }
        self.clear()?;
        if !matches!(self.occasion, Trigger::Unasked(_)) {
            // Damaged files that were set aside are deleted.
            self.sidecar()
                .empty_damaged(self.lock)
                .map_err(|source| self.collector.io_error(source))?;
        }
        for folder in self
            .sidecar()
            .old_folders()
            .map_err(|source| self.collector.io_error(source))?
        {
            self.collector.pass("gc.before_remove_folder")?;
            let removed = self.sidecar().remove_old_folder(&folder, self.lock);
            removed.map_err(|source| FileError::write(self.sidecar().root().join(&folder), source))?;
        }
        let last = LastCollection {
            ended_at: seconds_now(),
            n_snapshots: n_snapshots as u64,
        };
        self.sidecar()
            .note_collection(last, self.lock)
            .map_err(|source| self.collector.io_error(source))
    }

    /// Removes unused files, after their grace period in automatic collections.
    fn clear(&self) -> Result<(), CollectError> {
        let grace = match self.occasion {
            Trigger::Unasked(_) => GRACE,
            Trigger::Asked | Trigger::Aggressive => NO_GRACE,
        };
        self.collector.check_in_place()?;
        // Without a state, used and unused files cannot be distinguished.
        let Some(state) = self.sidecar().state()? else {
            return Ok(());
        };
        sweep(self.sidecar(), &state, grace, self.lock).map_err(|source| self.collector.io_error(source))?;
        Ok(())
    }
}

impl From<CarryError> for CollectError {
    fn from(error: CarryError) -> Self {
        match error {
            CarryError::Rows(error) => error.into(),
            CarryError::File(error) => error.into(),
        }
    }
}

/// Returns the profile that all segments have vectors of. It is the first profile in each segment.
fn profile_of(state: &State) -> String {
    let vectors = state.segments.iter().flat_map(|entry| &entry.vectors);
    vectors
        .map(|vectors| vectors.profile.clone())
        .next()
        .unwrap_or_default()
}

fn seconds_now() -> i64 {
    seconds_of(SystemTime::now())
}

fn seconds_of(time: SystemTime) -> i64 {
    time.duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs() as i64)
}
