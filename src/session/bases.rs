//! Snapshots of trees, kept between calls; and the builds that make them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::call::CallCtx;
use super::error::{OpError, Result};
use super::jobs::{End, Job, Made, Task};
use super::open::{Build, Session, ViewRequest};
use super::storage::Keeping;
use super::update::{Event, Steps};
use super::views::{Base, Based, READ_ONLY_NOTE};
use super::workspace::Workspace;
use super::writing::is_read_only;
use crate::index::Segments;
use crate::ingest::{Outcome, Target};
use crate::model::{Ctx, TreeId};

/// Maximum number of cached snapshots. Views are created from them.
const MAX_BASES: usize = 4;
/// Maximum number of segments of an in-memory index. Older segments may belong to trees that are no longer used.
const MAX_PARTS: usize = 8;
/// Lifetime of a cached snapshot in a partial clone. Missing objects may be fetched at any time.
const PARTIAL_FOR: Duration = Duration::from_secs(5);

pub(super) struct HeldBase {
    tree: TreeId,
    base: Base,
    since: Instant,
    /// The reason why the snapshot is not stored in the sidecar.
    note: Option<&'static str>,
}

/// The extent of a snapshot.
pub(super) enum Known {
    /// The snapshot has the whole tree.
    All,
    /// The snapshot has only the list of files. The build adds their data.
    Soon(Arc<Job>),
    /// The snapshot has only the list of files, which is sufficient.
    Files,
    /// The snapshot has only the requested files, with all their data.
    Asked,
}

impl Session {
    /// Opens the snapshot of a tree. If it is still being built, lists the tree's files instead.
    pub(super) fn base(&self, request: ViewRequest<'_>, target: Target, call: &CallCtx<'_>) -> Result<(Based, Known)> {
        if let Some(based) = self.held_base(target.tree) {
            return Ok((based, Known::All));
        }
        let is_unlimited = call.limits.is_none() && request.build != Build::Never;
        if is_unlimited && request.files.is_empty() {
            return Ok((self.build_now(target, call)?, Known::All));
        }
        match self.workspace.stored_whole(target.tree) {
            Ok(Some(base)) => return Ok((self.hold_base(target.tree, base, None), Known::All)),
            Ok(None) => {}
            Err(error) if is_read_only(&error) => {}
            Err(error) => return Err(error),
        }
        if let Some(base) = self.asked_files(request, target, call)? {
            return Ok((base.into(), Known::Asked));
        }
        if request.build == Build::Never {
            let base = self.listed(target)?;
            return Ok((base.into(), Known::Files));
        }
        let patience = match request.build {
            Build::Need => call.build_time(),
            Build::Wait | Build::Begin | Build::Never => call.short_build_time(),
        };
        match patience {
            None => Ok((self.build_now(target, call)?, Known::All)),
            Some(patience) => self.base_in_background(request, target, patience, call),
        }
    }

    fn build_now(&self, target: Target, call: &CallCtx<'_>) -> Result<Based> {
        let based = self.workspace.base(target, call)?;
        if based.ingested.n_files > 0 {
            let tips = target.commit.as_slice();
            self.workspace
                .finish_update(tips, &[], Steps::default(), call, &mut Event::log)?;
        }
        Ok(Based {
            ingested: based.ingested,
            ..self.hold_base(target.tree, based.base, based.note)
        })
    }

    fn base_in_background(
        &self,
        request: ViewRequest<'_>,
        target: Target,
        patience: Duration,
        call: &CallCtx<'_>,
    ) -> Result<(Based, Known)> {
        let job = self.build(request.reference, target).0;
        let patience = match request.build {
            Build::Need | Build::Wait => job.worth_waiting(patience),
            Build::Begin | Build::Never => Duration::ZERO,
        };
        match job.wait_as(patience, call) {
            Some(End::Failed(error)) => Err(OpError::new(error, "call status with op=health for details")),
            Some(End::Done(_)) => match self.after_build(target.tree)? {
                Some(based) => Ok((based, Known::All)),
                None => Err(OpError::new(
                    "the index of this tree was deleted by another process",
                    "ask again",
                )),
            },
            Some(End::Stopped) | None => {
                let base = self.listed(target)?;
                Ok((base.into(), Known::Soon(job)))
            }
        }
    }

    /// Extracts the files that a call requests in memory if their commit is not indexed. Does not list the tree.
    fn asked_files(&self, request: ViewRequest<'_>, target: Target, call: &CallCtx<'_>) -> Result<Option<Base>> {
        if request.files.is_empty() || matches!(request.reference, "WORKTREE" | "INDEX") {
            return Ok(None);
        }
        let known = self.bases.lock().last().map(|held| held.base.clone());
        self.workspace
            .files_in_memory(target, request.files, known, call.ctx.interrupt)
    }

    /// Lists the files of a tree that is being indexed. The list is cached for one generation of the sidecar, because a
    /// build publishes in steps.
    pub(super) fn listed(&self, target: Target) -> Result<Base> {
        let generation = self
            .workspace
            .storage
            .open_with_state()
            .ok()
            .flatten()
            .and_then(|(_, state)| state);
        let generation = generation.map(|state| state.generation);
        let mut listed = self.listed.lock();
        if let Some((tree, known, base)) = listed.as_ref()
            && (*tree, *known) == (target.tree, generation)
        {
            return Ok(base.clone());
        }
        let base = self.workspace.listed(target)?;
        *listed = Some((target.tree, generation, base.clone()));
        Ok(base)
    }

    fn after_build(&self, tree: TreeId) -> Result<Option<Based>> {
        if let Some(based) = self.held_base(tree) {
            return Ok(Some(based));
        }
        let stored = self.workspace.stored_whole(tree)?;
        Ok(stored.map(|base| self.hold_base(tree, base, None)))
    }

    /// Starts a background build of a tree's index, or joins a running one. The flag is true if this call started it.
    pub(crate) fn build(&self, reference: &str, target: Target) -> (Arc<Job>, bool) {
        let workspace = Arc::clone(&self.workspace);
        let bases = Arc::clone(&self.bases);
        let run = move |job: &Job| build(&workspace, &bases, job).map(Made::Index);
        self.jobs.ensure(Task::Index, reference, target, run)
    }

    /// Returns the trees whose indexes are only in memory, each with its size in bytes, least recently used first.
    pub(crate) fn in_memory(&self) -> Vec<(TreeId, usize)> {
        let mut found: Vec<(TreeId, usize)> = Vec::new();
        let mut note = |tree: TreeId, segments: &Segments| {
            let known = found.iter().position(|(other, _)| *other == tree);
            // A view may have more segments than its snapshot, because of uncommitted files.
            let n_bytes = known.map_or_else(|| segments.n_bytes_in_memory(), |position| found.remove(position).1);
            found.push((tree, n_bytes));
        };
        for held in self.bases.lock().iter() {
            note(held.tree, held.base.segments());
        }
        // Most calls are answered from views and do not access the snapshot.
        for seen in self.views.lock().iter() {
            if let Some(target) = seen.target {
                note(target.tree, seen.view.segments());
            }
        }
        found.retain(|(_, n_bytes)| *n_bytes > 0);
        found
    }

    /// Drops the cached snapshot and views of a tree.
    pub(crate) fn forget(&self, tree: TreeId) {
        *self.joined.lock() = None;
        self.bases.lock().retain(|held| held.tree != tree);
        self.views
            .lock()
            .retain(|seen| seen.target.is_none_or(|target| target.tree != tree));
    }

    /// Removes all cached views but the newest.
    pub(crate) fn keep_newest_view(&self) {
        *self.joined.lock() = None;
        let mut views = self.views.lock();
        let n_older = views.len().saturating_sub(1);
        views.drain(..n_older);
    }

    fn held_base(&self, tree: TreeId) -> Option<Based> {
        let mut bases = self.bases.lock();
        let is_partial = self.workspace.repository.is_partial();
        bases.retain(|held| !is_partial || held.since.elapsed() < PARTIAL_FOR);
        let position = bases.iter().position(|held| held.tree == tree)?;
        let held = bases.remove(position);
        let based = Based {
            base: held.base.clone(),
            note: held.note,
            ingested: Outcome::default(),
        };
        bases.push(held);
        Some(based)
    }

    fn hold_base(&self, tree: TreeId, base: Base, note: Option<&'static str>) -> Based {
        *self.listed.lock() = None;
        hold_base(&self.bases, tree, base.clone(), note);
        Based { note, ..base.into() }
    }
}

fn hold_base(bases: &Mutex<Vec<HeldBase>>, tree: TreeId, base: Base, note: Option<&'static str>) {
    let mut bases = bases.lock();
    bases.retain(|held| held.tree != tree);
    if bases.len() >= MAX_BASES {
        bases.remove(0);
    }
    bases.push(HeldBase {
        tree,
        base,
        since: Instant::now(),
        note,
    });
}

/// Returns the newest in-memory snapshot, unless it has too many segments. The next in-memory index extends it, so that
/// only new data takes memory.
fn newest_in_memory(bases: &Mutex<Vec<HeldBase>>) -> Option<Base> {
    let bases = bases.lock();
    let newest = bases.iter().rev().find(|held| held.note.is_some())?;
    let is_compact = newest.base.segments().iter().count() < MAX_PARTS;
    is_compact.then(|| newest.base.clone())
}

/// Runs a build. Writes to the sidecar if that is allowed and possible, or else builds in memory.
fn build(workspace: &Workspace, bases: &Mutex<Vec<HeldBase>>, job: &Job) -> Result<Outcome> {
    const FOREIGN_NOTE: &str =
        "this repository is read-only here, so its index is kept in memory; run codescout index in it to store one";
    let steps = Steps {
        collection: true,
        ..Steps::default()
    };
    let call = CallCtx::unlimited(Ctx::new(job, &job.interrupt));
    let note = match workspace.storage.keeping() {
        // The repository of a fleet is empty.
        Keeping::Nowhere => workspace.fleet.is_none().then_some(FOREIGN_NOTE),
        Keeping::Sidecar => match workspace.update(job.target, steps, &call, &mut Event::log) {
            Err(error) if is_read_only(&error) => Some(READ_ONLY_NOTE),
            ended => return ended,
        },
    };
    let base = workspace.in_memory(job.target, newest_in_memory(bases), &job.interrupt)?;
    hold_base(bases, job.target.tree, base, note);
    Ok(Outcome::default())
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use crate::config::Overrides;
    use crate::sidecar::LastCollection;
    use crate::support::{TestRepo, wait_until};

    #[test]
    fn a_build_for_a_server_collects_garbage_when_it_is_due() {
        let repo = TestRepo::new("\n//- a.rs\nfn a() {}\n");
        let session = Session::for_server(Workspace::open(repo.root(), &Overrides::default()).unwrap(), true);
        let build = || {
            let target = session.workspace.target("HEAD").unwrap().unwrap();
            let (job, _) = session.build("HEAD", target);
            wait_until("the build ends", || job.end().is_some());
        };
        build();
        let sidecar = session.workspace.storage.open().unwrap().unwrap();
        let long_ago = LastCollection {
            ended_at: 1,
            n_snapshots: 0,
        };
        let lock = sidecar.lock(Duration::from_secs(60)).unwrap();
        sidecar.note_collection(long_ago, &lock).unwrap();
        drop(lock);
        repo.write("a.rs", "fn b() {}\n");
        repo.commit("b");
        build();
        assert!(sidecar.last_collection().unwrap().unwrap().ended_at > 1);
    }
}
