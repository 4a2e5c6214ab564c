//! An open repository with the caches that are kept between calls: views, the known state of its files, and its builds.
//!
//! Each call compares the caches with the repository: trees by id, the worktree by stat data. So the next call notices
//! a commit, an edit, `git gc` or a deleted sidecar.

use std::collections::HashMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::call::CallCtx;
use super::error::{OpError, Result};
use super::facts::ReadFacts;
use super::jobs::{End, Job, Jobs, Made, Task};
use super::revision::while_objects_vanish;
use super::storage::Keeping;
use super::update::{Event, Steps};
use super::views::{Base, Based, Edits, READ_ONLY_NOTE};
use super::workspace::Workspace;
use super::writing::is_read_only;
use crate::extract::is_credential;
use crate::git::{KnownFiles, Repository, WorkTreeChanges, WorktreeWatch};
use crate::history::History;
use crate::index::Segments;
use crate::ingest::{Outcome, Target};
use crate::link::Links;
use crate::model::{BlobId, CommitId, Ctx, RepoPath, TreeId};
use crate::precise::FactsFile;
use crate::snapshot::{Change, FileEntry, FileId, ListedFile, Provenance, View};

/// Maximum number of cached views. Each holds its lists of files and documents in memory.
const MAX_VIEWS: usize = 6;
/// Maximum number of cached snapshots. Views are created from them.
const MAX_BASES: usize = 4;
/// Maximum number of segments of an in-memory index. Older segments may belong to trees that are no longer used.
const MAX_PARTS: usize = 8;
/// Lifetime of a cached snapshot in a partial clone. Missing objects may be fetched at any time.
const PARTIAL_FOR: Duration = Duration::from_secs(5);
/// Time without file events before a new watch of the files is started.
const CALM: Duration = Duration::from_millis(300);
/// Maximum number of attempts to create a view while the repository changes.
const TRIES: usize = 4;

/// An open repository and its caches.
pub struct Session {
    /// The repository with its sidecar, settings and models.
    pub(crate) workspace: Arc<Workspace>,
    /// False for a repository other than the one in which the server was started. Of such a repository only the index
    /// is changed.
    pub(crate) is_own: bool,
    /// Determines whether files with credentials are visible.
    pub(crate) visibility: Visibility,
    /// The background builds.
    pub(crate) jobs: Arc<Jobs>,
    /// Records of commits that cannot be stored in the sidecar.
    pub(crate) records: Arc<Mutex<Option<History>>>,
    /// The commit for which everything was last made searchable.
    searchable: Mutex<Option<CommitId>>,
    /// True if the caches are kept for later calls.
    is_kept: bool,
    files: Mutex<Files>,
    bases: Arc<Mutex<Vec<HeldBase>>>,
    /// The files of the tree that is being indexed, as listed for one generation of the sidecar.
    listed: Mutex<Option<(TreeId, Option<u64>, Base)>>,
    views: Mutex<Vec<Arc<SeenView>>>,
    /// The facts of indexers that were last read.
    pub(super) precise: Mutex<ReadFacts>,
    /// Held while a view is created, so that concurrent calls do not all create the same one.
    making: Mutex<()>,
}

/// The last known state of the worktree's files.
#[derive(Default)]
struct Files {
    known: KnownFiles,
    last: Option<(Instant, Arc<WorkTreeChanges>)>,
    /// A watch that was started before `last` was read. `None` after it has seen a change.
    stillness: Option<WorktreeWatch>,
    /// The time of the last change that a watch reported.
    disturbed: Option<Instant>,
}

struct HeldBase {
    tree: TreeId,
    base: Base,
    since: Instant,
    /// The reason why the snapshot is not stored in the sidecar.
    note: Option<&'static str>,
}

/// A view, and the data that it was created from.
pub struct SeenView {
    /// The view for requests. It does not contain hidden files.
    pub view: View,
    /// The reason why the snapshot is not stored in the sidecar.
    pub note: Option<&'static str>,
    /// The time at which the view was last known to be current.
    valid: Mutex<Instant>,
    reference: String,
    target: Option<Target>,
    changes: Option<Arc<WorkTreeChanges>>,
    edits: Edits,
    /// The outcome of indexing missing files.
    pub ingested: Outcome,
    /// The running build, if the view is incomplete although the caller requested all of it.
    pub(crate) building: Option<Arc<Job>>,
    /// True if the view contains only the list of files and the data that was indexed before.
    pub(crate) is_listed: bool,
    links: Mutex<Option<Arc<Links>>>,
}

impl SeenView {
    /// Returns what is known about the links of the view, with the given facts of indexers.
    pub(super) fn links(&self, repository: &Repository, precise: Arc<Vec<FactsFile>>) -> Arc<Links> {
        let mut links = locked(&self.links);
        if let Some(known) = links.as_ref().filter(|known| !known.is_spent() && known.uses(&precise)) {
            return Arc::clone(known);
        }
        let new = Links::new(&self.view, &mut repository.reader()).with_facts(&self.view, precise);
        let new = Arc::new(new);
        *links = Some(Arc::clone(&new));
        new
    }
}

/// Determines whether files whose names suggest credentials are visible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Visibility {
    /// All files are visible.
    All,
    /// Views, history and counts omit these files.
    WithoutCredentials,
}

impl Visibility {
    /// Returns true if the file at `path` is hidden.
    pub(crate) fn hides(self, path: &[u8]) -> bool {
        self == Self::WithoutCredentials && is_credential(path)
    }

    /// Returns true if a target (`path`, `path:10-20`, `path#id`) names a hidden file.
    pub(crate) fn hides_target(self, target: &str) -> bool {
        let path = target.split(['#', ':']).next().unwrap_or(target);
        self.hides(path.as_bytes())
    }
}

/// A request for a view of a revision.
#[derive(Clone, Copy)]
pub struct ViewRequest<'a> {
    /// The revision, as given by the caller.
    pub reference: &'a str,
    /// Paths in ascending order. If any of them is a file, the view needs to contain only these files. Empty for all
    /// files.
    pub files: &'a [RepoPath],
    /// Determines whether to wait for the index if the revision is not indexed.
    pub build: Build,
    /// The level of detail for uncommitted files.
    pub edits: Edits,
    /// Accepts the previous view while the current state is being indexed.
    pub takes_last: bool,
}

impl<'a> ViewRequest<'a> {
    /// Requests a complete view of a revision.
    pub fn of(reference: &'a str) -> Self {
        Self {
            reference,
            files: &[],
            build: Build::Wait,
            edits: Edits::Extracted,
            takes_last: false,
        }
    }
}

/// What a call does if its revision is not indexed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Build {
    /// Waits for the index as long as the call may, because it cannot answer without it.
    Need,
    /// Waits briefly for the index, then answers from the list of files and whatever is indexed.
    Wait,
    /// Starts the build without waiting for it if the call has a time limit.
    Begin,
    /// Answers from the list of files without building.
    Never,
}

pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Values are always replaced as a whole, so a panic leaves no partial state.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Session {
    /// Creates the session of one command.
    pub fn for_command(workspace: impl Into<Arc<Workspace>>) -> Self {
        Self {
            visibility: Visibility::All,
            is_kept: false,
            ..Self::for_server(workspace, true)
        }
    }

    /// Creates a session that a server keeps between calls.
    pub(crate) fn for_server(workspace: impl Into<Arc<Workspace>>, is_own: bool) -> Self {
        Self {
            workspace: workspace.into(),
            is_own,
            visibility: Visibility::WithoutCredentials,
            is_kept: true,
            records: Arc::default(),
            searchable: Mutex::default(),
            jobs: Arc::default(),
            files: Mutex::default(),
            bases: Arc::default(),
            listed: Mutex::default(),
            views: Mutex::default(),
            precise: Mutex::default(),
            making: Mutex::default(),
        }
    }

    /// Makes the next view compare the files of the worktree, because this process has changed some.
    pub(crate) fn files_changed(&self) {
        locked(&self.files).stillness = None;
    }

    /// Opens a view of the current state of a revision. If the view is an older one, also returns its age.
    pub fn view(&self, request: ViewRequest<'_>, call: &CallCtx<'_>) -> Result<(Arc<SeenView>, Option<Duration>)> {
        let reference = self.checked(request.reference)?;
        // Only one view of the worktree is cached, so it must suit every request.
        let edits = if self.is_kept { Edits::Extracted } else { request.edits };
        let request = ViewRequest {
            reference,
            edits,
            ..request
        };
        let Some(last) = self.last_seen(reference).filter(|_| request.takes_last) else {
            return Ok((self.present(request, call)?, None));
        };
        let build = match request.build {
            Build::Never => Build::Never,
            Build::Need | Build::Wait | Build::Begin => Build::Begin,
        };
        let seen = self.present(ViewRequest { build, ..request }, call)?;
        Ok(if seen.building.is_some() {
            let age = locked(&last.valid).elapsed();
            (last, Some(age))
        } else {
            (seen, None)
        })
    }

    fn present(&self, request: ViewRequest<'_>, call: &CallCtx<'_>) -> Result<Arc<SeenView>> {
        while_objects_vanish(|| self.present_now(request, call))
    }

    fn present_now(&self, request: ViewRequest<'_>, call: &CallCtx<'_>) -> Result<Arc<SeenView>> {
        let mut tried = 0;
        loop {
            tried += 1;
            let (target, provenance) = self.workspace.asked(request.reference)?;
            let changes = match request.reference {
                "WORKTREE" => {
                    let tree = target.map(|target| target.tree);
                    let changes = self.changes(tree, call.ctx.interrupt)?;
                    if changes.tree != tree && tried < TRIES {
                        // A commit or checkout happened between the two reads.
                        continue;
                    }
                    Some(changes)
                }
                _ => None,
            };
            return self.seen(request, (target, provenance), changes, call);
        }
    }

    /// Checks that a reference does not begin with a hyphen. Without a worktree, `WORKTREE` becomes `HEAD`.
    pub(crate) fn checked<'r>(&self, reference: &'r str) -> Result<&'r str> {
        if reference.is_empty() || reference.starts_with('-') || reference.chars().any(char::is_control) {
            return Err(OpError::new(
                format!("{reference:?} is not a ref"),
                "use a branch, tag, commit, INDEX or WORKTREE",
            ));
        }
        match (reference, self.workspace.repository.work_dir()) {
            ("WORKTREE", None) => Ok("HEAD"),
            (reference, _) => Ok(reference),
        }
    }

    fn last_seen(&self, reference: &str) -> Option<Arc<SeenView>> {
        let views = locked(&self.views);
        let found = views.iter().rev().find(|seen| seen.reference == reference);
        found.map(Arc::clone)
    }

    /// Returns true if everything reachable from the commit is known to be searchable.
    pub(crate) fn is_searchable(&self, commit: Option<CommitId>) -> bool {
        *locked(&self.searchable) == commit
    }

    /// Records that everything reachable from the commit is searchable.
    pub(crate) fn now_searchable(&self, commit: Option<CommitId>) {
        *locked(&self.searchable) = commit;
    }

    /// Returns the differences between the worktree and the checked-out commit.
    pub(crate) fn work_tree_changes(&self, interrupt: &AtomicBool) -> Result<Arc<WorkTreeChanges>> {
        let tree = self.workspace.target("WORKTREE")?.map(|target| target.tree);
        self.changes(tree, interrupt)
    }

    /// Returns the changes of the worktree. The comparison is made after the call began. Calls that wait for another
    /// call's comparison share its result.
    fn changes(&self, tree: Option<TreeId>, interrupt: &AtomicBool) -> Result<Arc<WorkTreeChanges>> {
        let asked = Instant::now();
        let mut files = locked(&self.files);
        if let Some((began, changes)) = &files.last
            && *began > asked
        {
            return Ok(Arc::clone(changes));
        }
        // A branch can change without a file event. Then the tree of its commit differs from the compared one.
        if files.is_still()
            && let Some((_, changes)) = &files.last
            && changes.tree == tree
        {
            return Ok(Arc::clone(changes));
        }
        // If the comparison fails, there must be no list, because the watch is newer than the previous list.
        let last = files.last.take();
        if self.is_kept {
            files.watch(&self.workspace.repository);
        }
        let began = Instant::now();
        let found = Arc::new(self.workspace.changes(&mut files.known, interrupt)?);
        let changes = match last {
            // Returns the same list object, so that views created from it remain valid.
            Some((_, last)) if *last == *found => last,
            _ => found,
        };
        files.last = Some((began, Arc::clone(&changes)));
        Ok(changes)
    }

    fn seen(
        &self,
        request: ViewRequest<'_>,
        (target, provenance): (Option<Target>, Provenance),
        changes: Option<Arc<WorkTreeChanges>>,
        call: &CallCtx<'_>,
    ) -> Result<Arc<SeenView>> {
        let reference = request.reference;
        let is_it = |seen: &SeenView| {
            !seen.is_listed
                && seen.reference == reference
                && seen.target == target
                && seen.changes == changes
                && seen.edits == request.edits
                && reference != "INDEX"
        };
        if let Some(seen) = self.held(&is_it) {
            return Ok(seen);
        }
        let (base, known) = match target {
            None => (Based::default(), Known::All),
            Some(target) => self.base(request, target, call)?,
        };
        let is_whole = matches!(known, Known::All);
        let making = call.pause(|| locked(&self.making));
        if let Some(seen) = self.held(&is_it) {
            return Ok(seen);
        }
        let seen = Arc::new(SeenView {
            view: self.view_over(
                base.base,
                request.edits,
                provenance,
                changes.as_deref(),
                call.ctx.interrupt,
            )?,
            note: base.note,
            ingested: base.ingested,
            valid: Mutex::new(Instant::now()),
            reference: reference.to_owned(),
            target,
            changes,
            edits: request.edits,
            is_listed: matches!(known, Known::Soon(_) | Known::Files),
            links: Mutex::default(),
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

    /// Combines a snapshot with changed or staged files, and removes hidden files.
    fn view_over(
        &self,
        base: Base,
        edits: Edits,
        provenance: Provenance,
        changes: Option<&WorkTreeChanges>,
        interrupt: &AtomicBool,
    ) -> Result<View> {
        let view = match (provenance.reference.as_str(), changes) {
            ("INDEX", _) => self.workspace.over_index(base, provenance, interrupt)?,
            (_, Some(changes)) => self
                .workspace
                .over_changes(edits, base, provenance, changes.clone(), interrupt)?,
            _ => base.view(provenance),
        };
        Ok(match self.visibility {
            Visibility::All => view,
            Visibility::WithoutCredentials => view.without(is_credential),
        })
    }

    /// Returns the view with `files` extracted in memory. The given view contains only their names.
    pub(crate) fn with_files(
        &self,
        seen: &SeenView,
        files: &[FileId],
        interrupt: &AtomicBool,
    ) -> Result<Arc<SeenView>> {
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
        let provenance = self.workspace.provenance(reference, seen.target);
        Ok(Arc::new(SeenView {
            view: self.view_over(base, seen.edits, provenance, changes, interrupt)?,
            note: seen.note,
            ingested: seen.ingested.clone(),
            valid: Mutex::new(Instant::now()),
            reference: reference.to_owned(),
            target: seen.target,
            changes: seen.changes.clone(),
            edits: seen.edits,
            is_listed: true,
            links: Mutex::default(),
            building: seen.building.clone(),
        }))
    }

    /// Returns a view with other contents of some files, which are extracted in memory. Each file has its new path.
    pub(crate) fn with_contents(
        &self,
        view: &View,
        files: Vec<(FileId, RepoPath, BlobId, Vec<u8>)>,
        interrupt: &AtomicBool,
    ) -> Result<View> {
        let (mut changes, mut contents) = (Vec::new(), HashMap::new());
        for (file, path, blob, bytes) in files {
            let FileEntry {
                path: old, mode, lang, ..
            } = view.file(file).entry();
            if old != path {
                changes.push(Change::Gone(old));
            }
            changes.push(Change::Present(ListedFile {
                path,
                mode,
                oid: blob.0,
                lang,
                left_out: None,
            }));
            contents.insert(blob, bytes);
        }
        let view = self.workspace.view_with(view, changes, contents, interrupt)?;
        Ok(match self.visibility {
            Visibility::All => view,
            Visibility::WithoutCredentials => view.without(is_credential),
        })
    }

    fn held(&self, is_it: &dyn Fn(&SeenView) -> bool) -> Option<Arc<SeenView>> {
        let mut views = locked(&self.views);
        let position = views.iter().position(|seen| is_it(seen))?;
        let seen = views.remove(position);
        *locked(&seen.valid) = Instant::now();
        views.push(Arc::clone(&seen));
        Some(seen)
    }

    /// Caches a view as the newest. One view of the worktree suffices: if an older state becomes current again, a
    /// comparison notices it.
    fn hold(&self, seen: &Arc<SeenView>) {
        let mut views = locked(&self.views);
        views.retain(|held| held.reference != seen.reference || (held.changes.is_none() && held.target != seen.target));
        if views.len() >= MAX_VIEWS {
            views.remove(0);
        }
        views.push(Arc::clone(seen));
    }

    /// Opens the snapshot of a tree. If it is still being built, lists the tree's files instead.
    fn base(&self, request: ViewRequest<'_>, target: Target, call: &CallCtx<'_>) -> Result<(Based, Known)> {
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
        let known = locked(&self.bases).last().map(|held| held.base.clone());
        self.workspace
            .files_in_memory(target, request.files, known, call.ctx.interrupt)
    }

    /// Lists the files of a tree that is being indexed. The list is cached for one generation of the sidecar, because a
    /// build publishes in steps.
    fn listed(&self, target: Target) -> Result<Base> {
        let generation = self
            .workspace
            .storage
            .open_with_state()
            .ok()
            .flatten()
            .and_then(|(_, state)| state);
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
        for held in locked(&self.bases).iter() {
            note(held.tree, held.base.segments());
        }
        // Most calls are answered from views and do not access the snapshot.
        for seen in locked(&self.views).iter() {
            if let Some(target) = seen.target {
                note(target.tree, seen.view.segments());
            }
        }
        found.retain(|(_, n_bytes)| *n_bytes > 0);
        found
    }

    /// Drops the cached snapshot and views of a tree.
    pub(crate) fn forget(&self, tree: TreeId) {
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
            ingested: Outcome::default(),
        };
        bases.push(held);
        Some(based)
    }

    fn hold_base(&self, tree: TreeId, base: Base, note: Option<&'static str>) -> Based {
        *locked(&self.listed) = None;
        hold_base(&self.bases, tree, base.clone(), note);
        Based { note, ..base.into() }
    }
}

impl Files {
    /// Returns true if the watch has seen no change since the last comparison.
    fn is_still(&mut self) -> bool {
        if self.stillness.take_if(|stillness| stillness.saw_changes()).is_some() {
            self.disturbed = Some(Instant::now());
        }
        self.stillness.as_ref().is_some_and(WorktreeWatch::holds)
    }

    /// Starts or renews a watch before a comparison, unless files have changed recently.
    fn watch(&mut self, repository: &Repository) {
        match &mut self.stillness {
            Some(stillness) => stillness.renew(),
            None if self.disturbed.is_none_or(|at| at.elapsed() > CALM) => {
                self.stillness = WorktreeWatch::begin(repository);
            }
            None => {}
        }
    }
}

/// The extent of a snapshot.
enum Known {
    /// The snapshot has the whole tree.
    All,
    /// The snapshot has only the list of files. The build adds their data.
    Soon(Arc<Job>),
    /// The snapshot has only the list of files, which is sufficient.
    Files,
    /// The snapshot has only the requested files, with all their data.
    Asked,
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

/// Returns the newest in-memory snapshot, unless it has too many segments. The next in-memory index extends it, so that
/// only new data takes memory.
fn newest_in_memory(bases: &Mutex<Vec<HeldBase>>) -> Option<Base> {
    let bases = locked(bases);
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
        Keeping::Nowhere => FOREIGN_NOTE,
        Keeping::Sidecar => match workspace.update(job.target, steps, &call, &mut Event::log) {
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
    use crate::sidecar::LastCollection;
    use crate::support::{TestRepo, wait_until};

    #[test]
    fn a_call_that_is_given_up_hides_no_edit_from_the_next() {
        let repo = TestRepo::new("\n//- a.rs\nfn a() {}\n");
        let session = Session::for_server(Workspace::open(repo.root(), &Overrides::default()).unwrap(), true);
        let changed = |is_given_up| {
            let changes = session.work_tree_changes(&AtomicBool::new(is_given_up));
            changes.map(|changes| changes.changes.len())
        };
        assert_eq!(changed(false).unwrap(), 0);
        repo.write("a.rs", "fn b() {}\n");
        // The event of the edit may arrive with a delay.
        wait_until("the edit is seen", || changed(true).is_err());
        // Simulates that enough time has passed to start another watch.
        locked(&session.files).disturbed = None;
        changed(true).unwrap_err();
        assert_eq!(changed(false).unwrap(), 1);
    }

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
