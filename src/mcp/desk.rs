//! One repository with what is held of it between calls: views by what they show, the known state of its files, its builds.
//!
//! Whatever is held is compared with the repository at every call: the tree by its id, the work tree by its files' stat data. So
//! a commit, an edit, `git gc`, or a sidecar that is deleted are seen by the next call.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Result;

use super::blocking::Seat;
use super::credentials::is_credential;
use super::failure::Failure;
use super::jobs::{Advance, End, Job, Jobs, Made, Task};
use crate::git::{KnownFiles, Repository, Stillness, WorkTreeChanges};
use crate::history::History;
use crate::index::Segments;
use crate::ingest::{Outcome, Target};
use crate::model::{CommitId, RepoPath, TreeId};
use crate::session::{Base, Keeping, READ_ONLY_NOTE, Workspace, is_read_only};
use crate::snapshot::{FileEntry, FileId, ListedFile, View};

/// Views that are held of one repository; each has its lists of files and documents in memory.
const MAX_VIEWS: usize = 6;
/// Opened snapshots that views are made from.
const MAX_BASES: usize = 4;
/// An index in memory has no more segments: of those before it each may be of a tree that nobody asks about any more.
const MAX_PARTS: usize = 8;
/// A snapshot of a partial clone is looked at anew after so long: objects may have come.
const PARTIAL_FOR: Duration = Duration::from_secs(5);
/// A watch over the files is begun again when nothing was noted for so long.
const CALM: Duration = Duration::from_millis(300);
/// How often a view is tried when the repository changes under the call.
const TRIES: usize = 4;

/// A repository and what is held of it.
pub(super) struct Desk {
    /// The repository.
    pub(super) workspace: Arc<Workspace>,
    /// Whether it is the one that the server was started in, or a work tree of it; of others nothing but the index is changed.
    pub(super) is_own: bool,
    /// Its builds.
    pub(super) jobs: Arc<Jobs>,
    /// Records of commits, where they are not kept.
    pub(super) records: Arc<Mutex<Option<History>>>,
    /// The commit for which everything was last made searchable.
    searchable: Mutex<Option<CommitId>>,
    files: Mutex<Files>,
    bases: Arc<Mutex<Vec<HeldBase>>>,
    /// Of the tree that is being indexed, as of a generation of the sidecar.
    listed: Mutex<Option<(TreeId, Option<u64>, Base)>>,
    views: Mutex<Vec<Arc<Seen>>>,
    /// One view is made at a time, so that calls at once do not all make the same.
    making: Mutex<()>,
}

/// The state of the work tree as it was last looked at.
#[derive(Default)]
struct Files {
    known: KnownFiles,
    last: Option<(Instant, Arc<WorkTreeChanges>)>,
    /// Since before `last` began, as long as nothing happens.
    stillness: Option<Stillness>,
    /// When something last happened.
    disturbed: Option<Instant>,
}

struct HeldBase {
    tree: TreeId,
    base: Base,
    since: Instant,
    /// Why it is not kept in the sidecar.
    note: Option<&'static str>,
}

/// A view, and what it was made of.
pub(super) struct Seen {
    /// What questions are asked about; files that hold credentials are not in it.
    pub(super) view: View,
    /// Why it is not kept in the sidecar.
    pub(super) note: Option<&'static str>,
    /// When it was last known to be the present state.
    valid: Mutex<Instant>,
    reference: String,
    target: Option<Target>,
    changes: Option<Arc<WorkTreeChanges>>,
    /// What is still being built, if it is not all there and was wanted.
    pub(super) building: Option<Arc<Job>>,
    /// Whether only the files are known, and what was indexed of them before.
    pub(super) is_listed: bool,
}

/// How a revision is to be looked at.
#[derive(Clone, Copy)]
pub(super) struct Looking<'a> {
    /// As it was asked for.
    pub(super) reference: &'a str,
    /// Paths, ascending, of which any that is a file is enough; none if all files are asked about.
    pub(super) files: &'a [RepoPath],
    /// How long to wait for what is not indexed yet; then the view is one of files alone. Without it that is enough from the start, and
    /// no build is begun: whoever reads through many revisions does not want the index of each.
    pub(super) patience: Option<Duration>,
    /// Whether what was seen last will do while the present state is being indexed.
    pub(super) takes_last: bool,
    /// Set when the caller has gone.
    pub(super) interrupt: &'a AtomicBool,
    /// The caller's place.
    pub(super) seat: &'a Seat,
    /// Told how far a build is while the call waits for it.
    pub(super) progress: &'a (dyn Fn(Advance) + Sync),
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What is held is replaced whole, so a panic in between has left nothing half done.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Desk {
    /// A desk for a repository.
    pub(super) fn new(workspace: Workspace, is_own: bool) -> Self {
        Self {
            workspace: Arc::new(workspace),
            is_own,
            records: Arc::default(),
            searchable: Mutex::default(),
            jobs: Arc::default(),
            files: Mutex::default(),
            bases: Arc::default(),
            listed: Mutex::default(),
            views: Mutex::default(),
            making: Mutex::default(),
        }
    }

    /// A view of a revision as it is now; how old it is, if an older one was to do.
    pub(super) fn look(&self, looking: Looking<'_>) -> Result<(Arc<Seen>, Option<Duration>)> {
        let reference = self.checked(looking.reference)?;
        let last = looking.takes_last.then(|| self.last_seen(reference)).flatten();
        let patience = match last {
            Some(_) => looking.patience.map(|_| Duration::ZERO),
            None => looking.patience,
        };
        let seen = self.present(reference, Looking { patience, ..looking })?;
        Ok(match last {
            Some(last) if seen.building.is_some() => {
                let age = locked(&last.valid).elapsed();
                (last, Some(age))
            }
            _ => (seen, None),
        })
    }

    fn present(&self, reference: &str, looking: Looking<'_>) -> Result<Arc<Seen>> {
        let mut tried = 0;
        loop {
            tried += 1;
            let target = self.workspace.target(reference)?;
            let changes = match reference {
                "WORKTREE" => {
                    let tree = target.map(|target| target.tree);
                    let changes = self.changes(tree, looking.interrupt)?;
                    if changes.tree != tree && tried < TRIES {
                        // A commit or a switch came between the two.
                        continue;
                    }
                    Some(changes)
                }
                _ => None,
            };
            return self.seen(reference, target, changes, looking);
        }
    }

    /// A reference that can be resolved: never an option, and without a work tree what is committed.
    pub(super) fn checked<'r>(&self, reference: &'r str) -> Result<&'r str> {
        if reference.is_empty() || reference.starts_with('-') || reference.chars().any(char::is_control) {
            return Err(Failure::new(
                format!("{reference:?} is not a ref"),
                "give a branch, a tag, a commit, INDEX or WORKTREE",
            )
            .into());
        }
        match (reference, self.workspace.repository.work_dir()) {
            ("WORKTREE", None) => Ok("HEAD"),
            (reference, _) => Ok(reference),
        }
    }

    fn last_seen(&self, reference: &str) -> Option<Arc<Seen>> {
        let views = locked(&self.views);
        let found = views.iter().rev().find(|seen| seen.reference == reference);
        found.map(Arc::clone)
    }

    /// Whether everything that a commit reaches was made searchable, as far as this server knows.
    pub(super) fn is_searchable(&self, commit: Option<CommitId>) -> bool {
        *locked(&self.searchable) == commit
    }

    /// Everything that a commit reaches is searchable now.
    pub(super) fn now_searchable(&self, commit: Option<CommitId>) {
        *locked(&self.searchable) = commit;
    }

    /// What differs from the commit that is checked out.
    pub(super) fn work_tree_changes(&self, interrupt: &AtomicBool) -> Result<Arc<WorkTreeChanges>> {
        let tree = self.workspace.target("WORKTREE")?.map(|target| target.tree);
        self.changes(tree, interrupt)
    }

    /// The changes of the work tree, looked at after the call came in; calls that wait take over what one of them has found.
    fn changes(&self, tree: Option<TreeId>, interrupt: &AtomicBool) -> Result<Arc<WorkTreeChanges>> {
        let asked = Instant::now();
        let mut files = locked(&self.files);
        if let Some((began, changes)) = &files.last
            && *began > asked
        {
            return Ok(Arc::clone(changes));
        }
        // A branch may be moved without a note; then its tree is another than that which was compared.
        if files.is_still()
            && let Some((_, changes)) = &files.last
            && changes.tree == tree
        {
            return Ok(Arc::clone(changes));
        }
        // A comparison that fails leaves no list: the watch is newer than the last one.
        let last = files.last.take();
        files.watch(&self.workspace.repository);
        let began = Instant::now();
        let found = Arc::new(self.workspace.changes(&mut files.known, interrupt)?);
        let changes = match last {
            // The same list again, so that views made of it are known by it.
            Some((_, last)) if *last == *found => last,
            _ => found,
        };
        files.last = Some((began, Arc::clone(&changes)));
        Ok(changes)
    }

    fn seen(
        &self,
        reference: &str,
        target: Option<Target>,
        changes: Option<Arc<WorkTreeChanges>>,
        looking: Looking<'_>,
    ) -> Result<Arc<Seen>> {
        let is_it = |seen: &Seen| {
            !seen.is_listed
                && seen.reference == reference
                && seen.target == target
                && seen.changes == changes
                && reference != "INDEX"
        };
        if let Some(seen) = self.held(&is_it) {
            return Ok(seen);
        }
        let (base, known) = match target {
            None => (Based::default(), Known::All),
            Some(target) => self.base(reference, target, looking)?,
        };
        let is_whole = matches!(known, Known::All);
        let making = looking.seat.away(|| locked(&self.making));
        if let Some(seen) = self.held(&is_it) {
            return Ok(seen);
        }
        let seen = Arc::new(Seen {
            view: self.view_over(base.base, reference, target, changes.as_deref(), looking.interrupt)?,
            note: base.note,
            valid: Mutex::new(Instant::now()),
            reference: reference.to_owned(),
            target,
            changes,
            is_listed: matches!(known, Known::Soon(_) | Known::Files),
            building: match known {
                Known::Soon(job) => Some(job),
                Known::All | Known::Files | Known::Asked => None,
            },
        });
        if is_whole {
            self.hold(&seen);
        }
        drop(making);
        Ok(seen)
    }

    /// A snapshot with what is changed or staged laid over it, without files that hold credentials.
    fn view_over(
        &self,
        base: Base,
        reference: &str,
        target: Option<Target>,
        changes: Option<&WorkTreeChanges>,
        interrupt: &AtomicBool,
    ) -> Result<View> {
        let provenance = self.workspace.provenance(reference, target);
        let view = match (reference, changes) {
            ("INDEX", _) => self.workspace.over_index(base, provenance, interrupt)?,
            (_, Some(changes)) => self
                .workspace
                .over_changes(base, provenance, changes.clone(), interrupt)?,
            _ => base.view(provenance),
        };
        Ok(view.without(is_credential))
    }

    /// The same state with files extracted in memory that only are listed in it.
    pub(super) fn with_files(&self, seen: &Seen, files: &[FileId], interrupt: &AtomicBool) -> Result<Arc<Seen>> {
        let listed = |id: &FileId| {
            let FileEntry {
                path, mode, oid, lang, ..
            } = seen.view.file(*id).entry();
            ListedFile {
                path,
                mode,
                oid,
                lang,
                left_out: None,
            }
        };
        let mut base = seen
            .target
            .map(|target| self.listed(target))
            .transpose()?
            .unwrap_or_default();
        if !files.is_empty() {
            let files = files.iter().map(listed).collect();
            base = self.workspace.with_files(base, files, interrupt)?;
        }
        let (reference, changes) = (seen.reference.as_str(), seen.changes.as_deref());
        Ok(Arc::new(Seen {
            view: self.view_over(base, reference, seen.target, changes, interrupt)?,
            note: seen.note,
            valid: Mutex::new(Instant::now()),
            reference: reference.to_owned(),
            target: seen.target,
            changes: seen.changes.clone(),
            is_listed: true,
            building: seen.building.clone(),
        }))
    }

    fn held(&self, is_it: &dyn Fn(&Seen) -> bool) -> Option<Arc<Seen>> {
        let mut views = locked(&self.views);
        let position = views.iter().position(|seen| is_it(seen))?;
        let seen = views.remove(position);
        *locked(&seen.valid) = Instant::now();
        views.push(Arc::clone(&seen));
        Some(seen)
    }

    /// Holds a view as the newest. Of a work tree one is enough: it never goes back to an older state unseen.
    fn hold(&self, seen: &Arc<Seen>) {
        let mut views = locked(&self.views);
        views.retain(|held| held.reference != seen.reference || (held.changes.is_none() && held.target != seen.target));
        if views.len() >= MAX_VIEWS {
            views.remove(0);
        }
        views.push(Arc::clone(seen));
    }

    /// A tree's snapshot; its files alone, with what is building the rest, if that takes longer than the caller waits.
    fn base(&self, reference: &str, target: Target, looking: Looking<'_>) -> Result<(Based, Known)> {
        if let Some(based) = self.held_base(target.tree) {
            return Ok((based, Known::All));
        }
        match self.workspace.stored_whole(target.tree) {
            Ok(Some(base)) => return Ok((self.hold_base(target.tree, base, None), Known::All)),
            Ok(None) => {}
            Err(error) if is_read_only(&error) => {}
            Err(error) => return Err(error),
        }
        if let Some(base) = self.asked_files(reference, target, looking)? {
            return Ok((Based { base, note: None }, Known::Asked));
        }
        let Some(patience) = looking.patience else {
            let base = self.listed(target)?;
            return Ok((Based { base, note: None }, Known::Files));
        };
        let job = self.build(reference, target).0;
        let patience = job.worth_waiting(patience);
        let end = if patience.is_zero() {
            job.end()
        } else {
            let wait = || job.wait(patience, looking.interrupt, looking.progress);
            looking.seat.away(wait)
        };
        match end {
            Some(End::Failed(error)) => Err(Failure::new(error, "status with op=health says more").into()),
            Some(End::Done(_)) => match self.after_build(target.tree)? {
                Some(based) => Ok((based, Known::All)),
                None => Err(Failure::new("the index of this tree was written and is gone again", "ask again").into()),
            },
            Some(End::Stopped) | None => {
                let base = self.listed(target)?;
                Ok((Based { base, note: None }, Known::Soon(job)))
            }
        }
    }

    /// The files that a question is about, of a commit that is not indexed; the tree is not listed and nothing is built for them.
    fn asked_files(&self, reference: &str, target: Target, looking: Looking<'_>) -> Result<Option<Base>> {
        if looking.files.is_empty() || matches!(reference, "WORKTREE" | "INDEX") {
            return Ok(None);
        }
        let known = locked(&self.bases).last().map(|held| held.base.clone());
        self.workspace
            .files_in_memory(target, looking.files, known, looking.interrupt)
    }

    /// The files of a tree that is being indexed, listed once for each generation of the sidecar: a build publishes as it goes.
    fn listed(&self, target: Target) -> Result<Base> {
        let generation = self.workspace.sidecar().ok().flatten().and_then(|(_, state)| state);
        let generation = generation.map(|state| state.generation);
        let mut listed = locked(&self.listed);
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

    /// Builds what a tree needs in the background; whether that was begun by this call.
    pub(super) fn build(&self, reference: &str, target: Target) -> (Arc<Job>, bool) {
        let workspace = Arc::clone(&self.workspace);
        let bases = Arc::clone(&self.bases);
        let run = move |job: &Job| build(&workspace, &bases, job).map(Made::Index);
        self.jobs.ensure(Task::Index, reference, target, run)
    }

    /// The trees whose indexes are in memory alone, with the bytes of each, the one that was used last at the end.
    pub(super) fn in_memory(&self) -> Vec<(TreeId, usize)> {
        let mut found: Vec<(TreeId, usize)> = Vec::new();
        let mut note = |tree: TreeId, segments: &Segments| {
            let known = found.iter().position(|(other, _)| *other == tree);
            // A view may have more than what it stands on: files that are not committed.
            let n_bytes = known.map_or_else(|| segments.n_bytes_in_memory(), |position| found.remove(position).1);
            found.push((tree, n_bytes));
        };
        for held in locked(&self.bases).iter() {
            note(held.tree, held.base.segments());
        }
        // What answers a call is a view, often without a look at what it stands on.
        for seen in locked(&self.views).iter() {
            if let Some(target) = seen.target {
                note(target.tree, seen.view.segments());
            }
        }
        found.retain(|(_, n_bytes)| *n_bytes > 0);
        found
    }

    /// Gives up what is held of a tree.
    pub(super) fn forget(&self, tree: TreeId) {
        locked(&self.bases).retain(|held| held.tree != tree);
        locked(&self.views).retain(|seen| seen.target.is_none_or(|target| target.tree != tree));
    }

    fn held_base(&self, tree: TreeId) -> Option<Based> {
        let mut bases = locked(&self.bases);
        let is_partial = self.workspace.repository.is_partial();
        bases.retain(|held| !is_partial || held.since.elapsed() < PARTIAL_FOR);
        let position = bases.iter().position(|held| held.tree == tree)?;
        let held = bases.remove(position);
        let based = Based {
            base: held.base.clone(),
            note: held.note,
        };
        bases.push(held);
        Some(based)
    }

    fn hold_base(&self, tree: TreeId, base: Base, note: Option<&'static str>) -> Based {
        *locked(&self.listed) = None;
        hold_base(&self.bases, tree, base.clone(), note);
        Based { base, note }
    }
}

impl Files {
    /// Whether nothing has happened since the files were last looked at.
    fn is_still(&mut self) -> bool {
        let is_still = self.stillness.as_ref().is_some_and(Stillness::holds);
        if !is_still && self.stillness.take().is_some_and(|stillness| stillness.is_disturbed()) {
            self.disturbed = Some(Instant::now());
        }
        is_still
    }

    /// Begins to watch, before the files are looked at; not while something happens all the time.
    fn watch(&mut self, repository: &Repository) {
        if self.disturbed.is_none_or(|at| at.elapsed() > CALM) {
            self.stillness = Stillness::begin(repository);
        }
    }
}

/// What is known of a tree.
enum Known {
    /// All of it.
    All,
    /// Its files, and what builds the rest.
    Soon(Arc<Job>),
    /// Its files, which are enough.
    Files,
    /// All of the files that were asked about.
    Asked,
}

/// A snapshot, and why it is not kept.
#[derive(Default)]
struct Based {
    base: Base,
    note: Option<&'static str>,
}

fn hold_base(bases: &Mutex<Vec<HeldBase>>, tree: TreeId, base: Base, note: Option<&'static str>) {
    let mut bases = locked(bases);
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

/// What the index of another tree in memory is made on top of, so that it takes no more than what is new: all that was made before, unless
/// that is in too many parts.
fn newest_in_memory(bases: &Mutex<Vec<HeldBase>>) -> Option<Base> {
    let bases = locked(bases);
    let newest = bases.iter().rev().find(|held| held.note.is_some())?;
    let is_compact = newest.base.segments().iter().count() < MAX_PARTS;
    is_compact.then(|| newest.base.clone())
}

/// A build: into the sidecar where that is allowed and possible, else into memory.
fn build(workspace: &Workspace, bases: &Mutex<Vec<HeldBase>>, job: &Job) -> Result<Outcome> {
    const FOREIGN_NOTE: &str =
        "this repository is only read: its index is kept in memory; codescout index there would keep it";
    let note = match workspace.keeping() {
        Keeping::Nowhere => FOREIGN_NOTE,
        Keeping::Sidecar => match workspace.ingest(job.target, job, &job.interrupt) {
            Err(error) if is_read_only(&error) => READ_ONLY_NOTE,
            ended => return ended,
        },
    };
    let base = workspace.in_memory(job.target, newest_in_memory(bases), &job.interrupt)?;
    hold_base(bases, job.target.tree, base, Some(note));
    Ok(Outcome::default())
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use crate::config::Overrides;
    use crate::support::TestRepo;

    #[test]
    fn a_call_that_is_given_up_hides_no_edit_from_the_next() {
        let repo = TestRepo::new("\n//- a.rs\nfn a() {}\n");
        let desk = Desk::new(Workspace::open(repo.root(), &Overrides::default()).unwrap(), true);
        let changed = |is_given_up| {
            let changes = desk.work_tree_changes(&AtomicBool::new(is_given_up));
            changes.map(|changes| changes.changes.len())
        };
        assert_eq!(changed(false).unwrap(), 0);
        repo.write("a.rs", "fn b() {}\n");
        // The note of the edit may come a moment later.
        let began = Instant::now();
        while changed(true).is_ok() {
            assert!(began.elapsed() < Duration::from_secs(60));
            std::thread::sleep(Duration::from_millis(5));
        }
        // Long enough after it for another watch.
        std::thread::sleep(2 * CALM);
        changed(true).unwrap_err();
        assert_eq!(changed(false).unwrap(), 1);
    }
}
