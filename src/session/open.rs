//! An open repository with the caches that are kept between calls: views, the known state of its files, and its builds.
//!
//! `files.rs` has the state of the files, `bases.rs` snapshots and builds. Each call compares the caches with the repository: trees by id, the worktree by stat data. So the next call notices
//! a commit, an edit, `git gc` or a deleted sidecar.

use std::collections::HashMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::bases::{HeldBase, Known};
use super::call::CallCtx;
use super::error::{OpError, Result};
use super::facts::ReadFacts;
use super::files::Files;
use super::jobs::{Job, Jobs};
use super::linked::Joined;
use super::revision::while_objects_vanish;
use super::views::{Base, Based, Edits};
use super::workspace::Workspace;
use crate::extract::{is_credential, is_credential_of_tree};
use crate::git::{Repository, WorkTreeChanges};
use crate::history::History;
use crate::ingest::{Outcome, Target};
use crate::link::Links;
use crate::model::{BlobId, CommitId, RepoPath, TreeId};
use crate::precise::FactsFile;
use crate::query::{Package, Sources, packages};
use crate::snapshot::{Change, FileEntry, FileId, ListedFile, Provenance, View};

/// Maximum number of cached views. Each holds its lists of files and documents in memory.
const MAX_VIEWS: usize = 6;
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
    pub(super) is_kept: bool,
    pub(super) files: Mutex<Files>,
    pub(super) bases: Arc<Mutex<Vec<HeldBase>>>,
    /// The files of the tree that is being indexed, as listed for one generation of the sidecar.
    pub(super) listed: Mutex<Option<(TreeId, Option<u64>, Base)>>,
    pub(super) views: Mutex<Vec<Arc<SeenView>>>,
    /// The facts of indexers that were last read.
    pub(super) precise: Mutex<ReadFacts>,
    /// The view that was last joined with those of linked repositories.
    pub(super) joined: Mutex<Option<Joined>>,
    /// Held while a view is created, so that concurrent calls do not all create the same one.
    making: Mutex<()>,
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
    pub(super) target: Option<Target>,
    changes: Option<Arc<WorkTreeChanges>>,
    edits: Edits,
    /// The outcome of indexing missing files.
    pub ingested: Outcome,
    /// The running build, if the view is incomplete although the caller requested all of it.
    pub(crate) building: Option<Arc<Job>>,
    /// True if the view contains only the list of files and the data that was indexed before.
    pub(crate) is_listed: bool,
    links: Mutex<Option<Arc<Links>>>,
    packages: OnceLock<(Vec<Package>, Vec<String>)>,
}

impl SeenView {
    /// Returns the packages of the view, and the manifests that cannot be read. `sources` are those of the view.
    pub(crate) fn packages(&self, sources: &Sources<'_>) -> Result<&(Vec<Package>, Vec<String>)> {
        if let Some(known) = self.packages.get() {
            return Ok(known);
        }
        let found = packages(sources)?;
        Ok(self.packages.get_or_init(|| found))
    }

    /// Returns another view for the same state.
    pub(super) fn with_view(&self, view: View) -> Self {
        Self {
            view,
            note: self.note,
            ingested: self.ingested.clone(),
            valid: Mutex::new(Instant::now()),
            reference: self.reference.clone(),
            target: self.target,
            changes: self.changes.clone(),
            edits: self.edits,
            is_listed: self.is_listed,
            links: Mutex::default(),
            packages: OnceLock::new(),
            building: self.building.clone(),
        }
    }

    /// Returns what is known about the links of the view, with the given facts of indexers.
    pub(super) fn links(&self, repository: &Repository, precise: Arc<Vec<FactsFile>>) -> Arc<Links> {
        let mut links = self.links.lock();
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

impl Session {
    /// Creates the session of one command.
    pub fn for_command(workspace: impl Into<Arc<Workspace>>) -> Self {
        Self {
            visibility: Visibility::All,
            is_kept: false,
            ..Self::for_server(workspace, true)
        }
    }

    /// Creates the session of a command that makes files known to others: those with credentials are hidden.
    pub(super) fn for_feeder(workspace: impl Into<Arc<Workspace>>) -> Self {
        Self {
            visibility: Visibility::WithoutCredentials,
            ..Self::for_command(workspace)
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
            joined: Mutex::default(),
            making: Mutex::default(),
        }
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
            let age = last.valid.lock().elapsed();
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
        let views = self.views.lock();
        let found = views.iter().rev().find(|seen| seen.reference == reference);
        found.map(Arc::clone)
    }

    /// Returns true if everything reachable from the commit is known to be searchable.
    pub(crate) fn is_searchable(&self, commit: Option<CommitId>) -> bool {
        *self.searchable.lock() == commit
    }

    /// Records that everything reachable from the commit is searchable.
    pub(crate) fn now_searchable(&self, commit: Option<CommitId>) {
        *self.searchable.lock() = commit;
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
        let making = call.pause(|| self.making.lock());
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
            packages: OnceLock::new(),
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
        Ok(self.visible(view))
    }

    /// Removes hidden files from a view.
    fn visible(&self, view: View) -> View {
        match self.visibility {
            Visibility::All => view,
            // A tree can be a folder of the repository.
            Visibility::WithoutCredentials if view.provenance().is_tree() => view.without(is_credential_of_tree),
            Visibility::WithoutCredentials => view.without(is_credential),
        }
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
        let view = self.view_over(base, seen.edits, provenance, changes, interrupt)?;
        Ok(Arc::new(SeenView {
            is_listed: true,
            ..seen.with_view(view)
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
        Ok(self.visible(self.workspace.view_with(view, changes, contents, interrupt)?))
    }

    fn held(&self, is_it: &dyn Fn(&SeenView) -> bool) -> Option<Arc<SeenView>> {
        let mut views = self.views.lock();
        let position = views.iter().position(|seen| is_it(seen))?;
        let seen = views.remove(position);
        *seen.valid.lock() = Instant::now();
        views.push(Arc::clone(&seen));
        Some(seen)
    }

    /// Caches a view as the newest. One view of the worktree suffices: if an older state becomes current again, a
    /// comparison notices it.
    fn hold(&self, seen: &Arc<SeenView>) {
        let mut views = self.views.lock();
        views.retain(|held| held.reference != seen.reference || (held.changes.is_none() && held.target != seen.target));
        if views.len() >= MAX_VIEWS {
            views.remove(0);
        }
        views.push(Arc::clone(seen));
    }
}
