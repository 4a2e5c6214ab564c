//! Opens for a command what it needs and no more.

use std::collections::HashMap;
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use crate::artifact::SkipReason;
use crate::config::{Config, Environment, Overrides};
use crate::embed::{Embedder, StaticModel, open_model2vec};
use crate::git::{
    AttributeMatcher, Attributes, DiskFile, FileMode, Head, KnownFiles, ObjectError, OnDisk, Repository, RevisionError,
    TreeEntry, TreeFile, Unread, WorkTreeChange, WorkTreeChanges,
};
use crate::index::{BuildOptions, Segments};
use crate::ingest::{CatchUp, CaughtUp, Ingest, IngestError, Maker, Outcome, Progress, Target};
use crate::model::{BlobId, CommitId, Oid, RepoPath, TreeId};
use crate::query::{Reranking, Sources};
use crate::remote::{Qdrant, RemoteEmbedder, RemoteReranker, RemoteSparse};
use crate::sidecar::{Location, OpenError, Sidecar, State, StateError};
use crate::snapshot::{
    Change, ListedFile, Manifest, Provenance, SnapshotStore, View, attributes_of, can_be_completed, lay_over_changes,
    list_changes,
};

use super::place::{check_place, default_sidecar_root, owner_of, refuse_tracked, sidecar_root_of};

/// How long a command waits for another writer before it says so.
pub(super) const PATIENCE: Duration = Duration::from_secs(600);
/// How often a writer begins anew because the sidecar was deleted under it.
const MAX_REPLACED: usize = 3;
/// A tree without manifest is served from memory when the sidecar cannot be written.
pub(crate) const READ_ONLY_NOTE: &str = "the index cannot be written here; this answer was computed in memory";

/// A snapshot outlives its commit until garbage is collected, or for ever if it is pinned.
const VANISHED_NOTE: &str =
    "git does not know this revision any more; the answer comes from the index, and the text of files may be gone";
/// How often a snapshot is looked for while writers replace what was found.
const MAX_ATTEMPTS: usize = 5;

/// A repository with its sidecar, configuration and models.
pub struct Workspace {
    /// The repository.
    pub repository: Repository,
    /// Every setting.
    pub config: Config,
    location: Location,
    static_model: StaticModel,
    foreign_model: Option<Box<dyn Embedder>>,
    remote_model: Option<RemoteEmbedder>,
    remote_sparse: Option<RemoteSparse>,
    reranker: Option<RemoteReranker>,
    pub(super) qdrant: OnceLock<Qdrant>,
    options: BuildOptions,
    keeping: Keeping,
}

/// Whether what is computed may be kept in the repository.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Keeping {
    /// In its sidecar, which is made if there is none.
    #[default]
    Sidecar,
    /// Nowhere: the repository is only read.
    Nowhere,
}

/// A view with what opening it did.
pub struct Opened {
    /// The view.
    pub view: View,
    /// What had to be indexed first.
    pub ingested: Outcome,
}

impl Workspace {
    /// Opens the repository that `path` lies in.
    pub fn open(path: &Path, overrides: &Overrides) -> Result<Self> {
        Self::of(Repository::discover(path)?, overrides)
    }

    fn of(repository: Repository, overrides: &Overrides) -> Result<Self> {
        start_threads()?;
        let environment = Environment::read();
        let location = Location {
            trusted_owner: owner_of(repository.common_dir()),
            root: match &overrides.sidecar {
                Some(folder) => folder.clone(),
                None => sidecar_root_of(&repository, &environment),
            },
        };
        check_place(&repository, &location)?;
        let machine = location.root.join("config.toml");
        let own = repository.work_dir().map(|root| root.join(".codescout.toml"));
        let config = Config::resolve(overrides, &environment, Some(&machine), own.as_deref())?;
        let remote_model = config.remote_embedder()?.map(RemoteEmbedder::new);
        let remote_sparse = config.remote_sparse()?.map(RemoteSparse::new);
        let reranker = config.rerank.options()?.map(RemoteReranker::new);
        let foreign_model = match &config.model.value {
            Some(folder) if remote_model.is_none() => {
                Some(open_model2vec(folder).context("cannot open the embedding model")?)
            }
            _ => None,
        };
        // What is wrong with it is told at once.
        config.qdrant.options()?;
        Ok(Self {
            options: config.build_options(),
            repository,
            config,
            location,
            static_model: StaticModel::embedded(),
            foreign_model,
            remote_model,
            remote_sparse,
            reranker,
            qdrant: OnceLock::new(),
            keeping: Keeping::default(),
        })
    }

    /// Opens a repository beside the one that a program works in: its sidecar is its own, whatever the environment says, and
    /// if it has none nothing is written.
    pub(crate) fn open_foreign(repository: Repository) -> Result<Self> {
        let overrides = Overrides {
            sidecar: Some(default_sidecar_root(&repository)),
            ..Overrides::default()
        };
        let mut workspace = Self::of(repository, &overrides)?;
        workspace.keeping = match workspace.open_sidecar()? {
            Some(_) => Keeping::Sidecar,
            None => Keeping::Nowhere,
        };
        Ok(workspace)
    }

    /// Whether what is computed may be kept.
    pub(crate) fn keeping(&self) -> Keeping {
        self.keeping
    }

    /// What makes the vectors that decide about nearness.
    pub fn embedder(&self) -> &dyn Embedder {
        self.added_model().unwrap_or(&self.static_model)
    }

    /// The model that is in use beside the one inside the binary, if one is.
    pub fn added_model(&self) -> Option<&dyn Embedder> {
        match (&self.remote_model, &self.foreign_model) {
            (Some(model), _) => Some(model),
            (None, Some(model)) => Some(model.as_ref()),
            (None, None) => None,
        }
    }

    /// The model on another machine or in another process, if one is in use.
    pub(crate) fn remote_model(&self) -> Option<&RemoteEmbedder> {
        self.remote_model.as_ref()
    }

    /// What makes sparse vectors, if a server for them is set.
    pub fn remote_sparse(&self) -> Option<&RemoteSparse> {
        self.remote_sparse.as_ref()
    }

    /// What makes rows beside those that every segment has.
    pub fn makers(&self) -> Vec<Maker<'_>> {
        let dense = self.added_model().map(Maker::Dense);
        let sparse = self.remote_sparse.as_ref().map(|model| Maker::Sparse(model));
        dense.into_iter().chain(sparse).collect()
    }

    /// The reranker, if one is in use.
    pub(crate) fn reranker(&self) -> Option<&RemoteReranker> {
        self.reranker.as_ref()
    }

    /// What judges the best candidates of an answer about a view again, if a reranker is in use.
    pub fn reranking<'a>(&'a self, view: &'a View, interrupt: &'a AtomicBool) -> Option<Reranking<'a>> {
        self.reranker.as_ref().map(|reranker| Reranking {
            reranker,
            n_candidates: self.config.rerank.n_candidates(),
            sources: Sources::new(view, &self.repository),
            interrupt,
        })
    }

    /// The model inside the binary, which judges what is given to no other: messages of commits.
    pub(crate) fn own_model(&self) -> &dyn Embedder {
        &self.static_model
    }

    /// The profile that every segment has vectors of.
    pub(crate) fn own_profile(&self) -> String {
        self.static_model.profile().id().to_string()
    }

    /// The model inside the binary, whose vectors every document has.
    pub fn static_model(&self) -> &StaticModel {
        &self.static_model
    }

    /// How segments are made.
    pub fn build_options(&self) -> &BuildOptions {
        &self.options
    }

    /// Where the sidecar is, or would be.
    pub fn sidecar_root(&self) -> &Path {
        &self.location.root
    }

    /// The sidecar and its state, as far as there are any; nothing is written.
    pub fn sidecar(&self) -> Result<Option<(Sidecar, Option<State>)>> {
        match self.open_sidecar()? {
            Some(sidecar) => {
                let state = sidecar.state()?;
                Ok(Some((sidecar, state)))
            }
            None => Ok(None),
        }
    }

    /// The sidecar for reading, if there is one. One that came with the repository, or that is not ours, is refused.
    pub fn open_sidecar(&self) -> Result<Option<Sidecar>> {
        refuse_tracked(&self.repository, &self.location.root)?;
        match self.location.open() {
            Ok(sidecar) => Ok(Some(sidecar)),
            Err(OpenError::Missing { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// [`Self::open_sidecar`] even if the file is damaged that says that it is one.
    pub fn sidecar_to_check(&self) -> Result<Option<Sidecar>> {
        refuse_tracked(&self.repository, &self.location.root)?;
        Ok(self.location.open_to_check()?)
    }

    /// The sidecar for writing, made if there is none, and kept out of `git status`.
    pub fn open_or_create_sidecar(&self, interrupt: &AtomicBool) -> Result<Sidecar> {
        refuse_tracked(&self.repository, &self.location.root)?;
        // A repository that cannot be written to has no sidecar of ours either, so failing is no failure.
        let tell = |error: anyhow::Error| tracing::debug!("info/exclude was not written: {error:#}");
        if matches!(self.location.open(), Err(OpenError::Missing { .. })) {
            // Before there is a folder, so that no `git add --all` of the same moment takes up what is being made.
            self.write_exclude_line().map_err(Into::into).unwrap_or_else(tell);
        }
        let sidecar = self.location.open_or_create()?;
        self.exclude_sidecar(&sidecar, interrupt).unwrap_or_else(tell);
        Ok(sidecar)
    }

    /// Brings the sidecar up to date with a revision.
    pub fn ingest(&self, target: Target, progress: &dyn Progress, interrupt: &AtomicBool) -> Result<Outcome> {
        for _ in 1..MAX_REPLACED {
            let sidecar = self.open_or_create_sidecar(interrupt)?;
            match self.writer(&sidecar).update(target, progress, interrupt) {
                // It was deleted, or another folder put in its place: that costs time, no more.
                Err(error) if !sidecar.is_in_place() => tracing::info!(%error, "the sidecar is gone: begun anew"),
                updated => return Ok(updated?),
            }
        }
        let sidecar = self.open_or_create_sidecar(interrupt)?;
        Ok(self.writer(&sidecar).update(target, progress, interrupt)?)
    }

    /// What writes to `sidecar` for this repository.
    pub fn writer<'a>(&'a self, sidecar: &'a Sidecar) -> Ingest<'a> {
        Ingest {
            repository: &self.repository,
            sidecar,
            embedder: &self.static_model,
            options: &self.options,
            patience: PATIENCE,
        }
    }

    /// What keeps the rows of a maker beside the own ones.
    pub(super) fn catching_up<'a>(
        &'a self,
        sidecar: &'a Sidecar,
        maker: Maker<'a>,
        own_profile: &'a str,
    ) -> CatchUp<'a> {
        CatchUp {
            repository: &self.repository,
            sidecar,
            maker,
            shared: self.shared_for(maker),
            own_profile,
            options: &self.options,
            patience: PATIENCE,
        }
    }

    /// Makes what the makers of rows beside the own ones have not made yet, for what is indexed of some trees; one outcome each, up to
    /// the first that was interrupted.
    pub fn catch_up(
        &self,
        trees: &[TreeId],
        progress: &dyn Progress,
        interrupt: &AtomicBool,
    ) -> Result<Vec<(Maker<'_>, CaughtUp)>> {
        let mut outcomes = Vec::new();
        let Some(sidecar) = self.open_sidecar()? else {
            return Ok(outcomes);
        };
        for maker in self.makers() {
            let own_profile = self.own_profile();
            let catch_up = self.catching_up(&sidecar, maker, &own_profile);
            let caught_up = catch_up.run(trees, progress, interrupt)?;
            let is_over = caught_up.interrupted;
            outcomes.push((maker, caught_up));
            if is_over {
                break;
            }
        }
        Ok(outcomes)
    }

    /// Segments with the rows of the makers that are in use.
    fn with_added(&self, segments: Segments, sidecar: &Sidecar, state: &State) -> Segments {
        let makers = self.makers().into_iter();
        makers.fold(segments, |segments, maker| {
            segments.with_added(sidecar, state, &maker.profile().id().to_string())
        })
    }

    /// Brings the sidecar up to date with what a revision names now; `None` if that is nothing yet.
    pub fn ingest_revision(
        &self,
        reference: &str,
        progress: &dyn Progress,
        interrupt: &AtomicBool,
    ) -> Result<Option<(Target, Outcome)>> {
        while_objects_vanish(|| {
            let Some(target) = self.target(reference)? else {
                return Ok(None);
            };
            Ok(Some((target, self.ingest(target, progress, interrupt)?)))
        })
    }

    /// What a revision names: `WORKTREE` and `INDEX` stand for the commit below them. What git does not know any more may still be
    /// in the sidecar.
    pub fn target(&self, reference: &str) -> Result<Option<Target>> {
        Ok(self.find(reference)?.0)
    }

    /// What a revision names, and whether only the sidecar still knows it.
    fn find(&self, reference: &str) -> Result<(Option<Target>, bool)> {
        match self.target_of_git(reference) {
            Err(error) if matches!(error.downcast_ref(), Some(RevisionError::Unknown { .. })) => {
                match self.vanished(reference) {
                    Some(target) => Ok((Some(target), true)),
                    None => Err(error),
                }
            }
            found => Ok((found?, false)),
        }
    }

    fn target_of_git(&self, reference: &str) -> Result<Option<Target>> {
        if matches!(reference, "WORKTREE" | "INDEX") {
            let head: Head = self.repository.head()?;
            let Some(commit) = head.commit() else {
                return Ok(None);
            };
            let tree = self.repository.reader().commit(commit)?.tree;
            return Ok(Some(Target {
                commit: Some(commit),
                tree,
            }));
        }
        let resolved = self.repository.resolve(reference)?;
        Ok(Some(Target {
            commit: resolved.commit,
            tree: resolved.tree,
        }))
    }

    /// Opens a view of a revision, indexing first what is missing. Where the sidecar cannot be written the view is computed in
    /// memory, and says so.
    pub fn view(&self, reference: &str, progress: &dyn Progress, interrupt: &AtomicBool) -> Result<Opened> {
        while_objects_vanish(|| self.view_now(reference, progress, interrupt))
    }

    /// A view of a revision as far as it is stored; `None` if it would have to be indexed first. Nothing is written.
    pub fn stored_view(&self, reference: &str, interrupt: &AtomicBool) -> Result<Option<View>> {
        while_objects_vanish(|| {
            let (target, provenance) = self.asked(reference)?;
            let base = match target.map(|target| self.stored(target.tree)).transpose()? {
                None => Base::default(),
                Some(Stored::Whole(base)) => base,
                Some(_) => return Ok(None),
            };
            self.with_changes(base, provenance, interrupt).map(Some)
        })
    }

    /// What a revision names, and what an answer about it says of itself.
    fn asked(&self, reference: &str) -> Result<(Option<Target>, Provenance)> {
        let (target, has_vanished) = self.find(reference)?;
        let reference = match (reference, self.repository.work_dir()) {
            ("WORKTREE", None) => "HEAD",
            (reference, _) => reference,
        };
        let mut provenance = self.provenance(reference, target);
        if has_vanished {
            provenance.incomplete.push(VANISHED_NOTE.to_owned());
        }
        Ok((target, provenance))
    }

    fn view_now(&self, reference: &str, progress: &dyn Progress, interrupt: &AtomicBool) -> Result<Opened> {
        let (target, mut provenance) = self.asked(reference)?;
        let mut ingested = Outcome::default();
        let base = match target {
            None => Base::default(),
            Some(target) => {
                let (base, outcome) = self.base(target, &mut provenance, progress, interrupt)?;
                ingested = outcome;
                base
            }
        };
        let view = self.with_changes(base, provenance, interrupt)?;
        Ok(Opened { view, ingested })
    }

    /// A commit's snapshot with what is changed or staged laid over it, if that was asked for.
    fn with_changes(&self, base: Base, provenance: Provenance, interrupt: &AtomicBool) -> Result<View> {
        match provenance.reference.as_str() {
            "WORKTREE" => self.over_work_tree(base, provenance, interrupt),
            "INDEX" => self.over_index(base, provenance, interrupt),
            _ => Ok(base.view(provenance)),
        }
    }

    /// A tree's snapshot: what is stored, after indexing what is missing, or computed where nothing can be written or read.
    fn base(
        &self,
        target: Target,
        provenance: &mut Provenance,
        progress: &dyn Progress,
        interrupt: &AtomicBool,
    ) -> Result<(Base, Outcome)> {
        let mut damage = None;
        let found = match self.stored(target.tree) {
            Ok(Stored::Whole(base)) => Ok((base, Outcome::default())),
            Ok(Stored::Partial | Stored::OtherSettings) => self.newly_stored(target, progress, interrupt),
            Ok(Stored::Damaged(error)) => {
                damage = Some(error);
                self.newly_stored(target, progress, interrupt)
            }
            Err(error) => Err(error),
        };
        match found {
            Err(error) if is_read_only(&error) => {
                // Who writes it anew names it; here nobody does.
                if let Some(damage) = damage {
                    tracing::warn!("{damage:#}");
                }
                tracing::warn!("{error:#}");
                provenance.incomplete.push(READ_ONLY_NOTE.to_owned());
                Ok((self.in_memory(target, interrupt)?, Outcome::default()))
            }
            found => found,
        }
    }

    fn newly_stored(&self, target: Target, progress: &dyn Progress, interrupt: &AtomicBool) -> Result<(Base, Outcome)> {
        if self.keeping == Keeping::Nowhere {
            return Ok((self.in_memory(target, interrupt)?, Outcome::default()));
        }
        // A collection of garbage may take away again what nothing but this query keeps.
        for _ in 0..MAX_ATTEMPTS {
            let outcome = self.ingest(target, progress, interrupt)?;
            if outcome.interrupted {
                bail!("interrupted; what was indexed so far is kept");
            }
            match self.stored(target.tree)? {
                Stored::Whole(base) => return Ok((base, outcome)),
                Stored::Damaged(error) => {
                    return Err(error.context("the index of this tree was written and cannot be read"));
                }
                // Deleted since, or made again by a program with other settings.
                Stored::Partial | Stored::OtherSettings => {}
            }
        }
        bail!("the index of this tree was written and is gone again")
    }

    /// What an answer about a revision says of itself.
    pub(crate) fn provenance(&self, reference: &str, target: Option<Target>) -> Provenance {
        let repo = self.repository.place();
        let mut incomplete = Vec::new();
        if self.repository.is_partial() {
            incomplete.push("partial clone: files whose objects are not here are not searched".to_owned());
        }
        Provenance {
            repo: repo.to_owned(),
            reference: reference.to_owned(),
            commit: target.and_then(|target| target.commit),
            tree: target.map(|target| target.tree),
            n_dirty_files: 0,
            profile: self.embedder().profile().id().to_string(),
            incomplete,
        }
    }

    /// All that the sidecar holds of a tree; `None` if that is not all of it, or damaged, so that it is to be written anew.
    pub(crate) fn stored_whole(&self, tree: TreeId) -> Result<Option<Base>> {
        Ok(match self.stored(tree)? {
            Stored::Whole(base) => Some(base),
            Stored::Partial | Stored::OtherSettings => None,
            Stored::Damaged(error) => {
                tracing::warn!("{error:#}");
                None
            }
        })
    }

    /// What the sidecar holds of a tree.
    fn stored(&self, tree: TreeId) -> Result<Stored> {
        let Some(sidecar) = self.open_sidecar()? else {
            return Ok(Stored::Partial);
        };
        for _ in 0..MAX_ATTEMPTS {
            let state = match sidecar.state() {
                Ok(Some(state)) if state.recipe != self.options.recipe => return Ok(Stored::OtherSettings),
                Ok(Some(state)) => state,
                Ok(None) => return Ok(Stored::Partial),
                Err(error @ StateError::Damaged { .. }) => return Ok(Stored::Damaged(error.into())),
                Err(error) => return Err(error.into()),
            };
            let found = self.stored_in(&sidecar, &state, tree);
            // A writer that began a new epoch meanwhile has put everything elsewhere.
            let newest = || self.usable_state(&sidecar).ok().flatten();
            if matches!(found, Stored::Whole(_)) || newest().is_none_or(|newest| newest.epoch == state.epoch) {
                return Ok(found);
            }
        }
        Ok(Stored::Partial)
    }

    fn stored_in(&self, sidecar: &Sidecar, state: &State, tree: TreeId) -> Stored {
        let snapshots = SnapshotStore::new(sidecar, state.epoch, state.recipe);
        let layers = match snapshots.load(tree) {
            Ok(Some(layers)) => layers,
            Ok(None) => return Stored::Partial,
            Err(error) => return Stored::Damaged(error.into()),
        };
        if can_be_completed(&layers, &self.repository) {
            return Stored::Partial;
        }
        // A manifest is published after the state that it needs. One that was published since the state was read may name
        // blobs that only the state of now tells of.
        let newest = sidecar.state().ok().flatten();
        let Some(state) = newest.filter(|newest| (newest.epoch, newest.recipe) == (state.epoch, state.recipe)) else {
            return Stored::Partial;
        };
        match Segments::open_newest(sidecar, &state, &self.own_profile()) {
            Ok(segments) if segments.iter().all(|segment| segment.vectors.is_some()) => {
                let segments = self.with_added(segments, sidecar, &state);
                Stored::Whole(Base { segments, layers })
            }
            Ok(_) => Stored::OtherSettings,
            Err(error) => Stored::Damaged(error.into()),
        }
    }

    /// The stored manifest of a tree, if there is one in order.
    pub(super) fn stored_tree(&self, tree: TreeId) -> Option<Vec<Manifest>> {
        let sidecar = self.open_sidecar().ok()??;
        let state = self.usable_state(&sidecar).ok()??;
        let snapshots = SnapshotStore::new(&sidecar, state.epoch, state.recipe);
        snapshots.load(tree).ok()?
    }

    /// The state if this build can go on from it.
    fn usable_state(&self, sidecar: &Sidecar) -> Result<Option<State>, StateError> {
        Ok(sidecar.state()?.filter(|state| state.recipe == self.options.recipe))
    }

    /// Everything of a tree, from what is stored of others and from git, without writing.
    pub(crate) fn in_memory(&self, target: Target, interrupt: &AtomicBool) -> Result<Base> {
        let changes = self.files_of(target)?;
        let segments = self.any_segments().unwrap_or_default();
        self.lay_over(changes, &HashMap::new(), segments, interrupt)
            .map(|(segments, manifest)| Base {
                segments,
                layers: vec![manifest],
            })
    }

    /// A tree's files with what is known of them already; nothing is read. What is not known yet counts as missing.
    pub(crate) fn listed(&self, target: Target) -> Result<Base> {
        let changes = self.files_of(target)?;
        let segments = self.any_segments().unwrap_or_default();
        let manifest = list_changes(changes, &segments, &self.options)?;
        Ok(Base {
            segments,
            layers: vec![manifest],
        })
    }

    fn files_of(&self, target: Target) -> Result<Vec<Change>> {
        let mut reader = self.repository.reader();
        let files = reader.diff_trees(None, target.tree)?;
        let files: Vec<TreeFile> = files
            .iter()
            .filter_map(|change| {
                let TreeEntry { mode, oid } = change.new?;
                let path = change.path.clone();
                Some(TreeFile { path, mode, oid })
            })
            .collect();
        let mut attributes = Attributes::for_files(&mut reader, &files)?.matcher();
        Ok(files
            .into_iter()
            .map(|TreeFile { path, mode, oid }| Change::Present(ListedFile::new(path, mode, oid, &mut attributes)))
            .collect())
    }

    fn any_segments(&self) -> Option<Segments> {
        let sidecar = self.open_sidecar().ok()??;
        let state = sidecar.state().ok()??;
        let segments = Segments::open_newest(&sidecar, &state, &self.own_profile()).ok()?;
        let is_usable = state.recipe == self.options.recipe && segments.iter().all(|segment| segment.vectors.is_some());
        is_usable.then(|| self.with_added(segments, &sidecar, &state))
    }

    fn lay_over(
        &self,
        changes: Vec<Change>,
        unsaved: &HashMap<BlobId, Vec<u8>>,
        segments: Segments,
        interrupt: &AtomicBool,
    ) -> Result<(Segments, Manifest)> {
        let laid = lay_over_changes(
            changes,
            unsaved,
            &self.repository,
            &segments,
            &self.static_model,
            &self.options,
            interrupt,
        )?;
        // What was not read would pass for missing.
        if interrupt.load(Ordering::Relaxed) {
            bail!("interrupted");
        }
        Ok(laid)
    }

    /// What is staged, laid over the commit below.
    pub(crate) fn over_index(&self, base: Base, mut provenance: Provenance, interrupt: &AtomicBool) -> Result<View> {
        let staged = self.repository.index_changes()?;
        provenance.n_dirty_files = staged.len() as u32;
        let mut attributes = attributes_of(&base.layers, &mut self.repository.reader())?.matcher();
        let changes = staged
            .into_iter()
            .map(|change| match change.new {
                Some(entry) => Change::Present(ListedFile::new(change.path, entry.mode, entry.oid, &mut attributes)),
                None => Change::Gone(change.path),
            })
            .collect();
        self.view_over(base, provenance, changes, HashMap::new(), interrupt)
    }

    fn over_work_tree(&self, base: Base, provenance: Provenance, interrupt: &AtomicBool) -> Result<View> {
        let found = self.changes(&mut KnownFiles::default(), interrupt)?;
        self.over_changes(base, provenance, found, interrupt)
    }

    /// How the work tree differs from the commit that is checked out.
    pub(crate) fn changes(&self, known: &mut KnownFiles, interrupt: &AtomicBool) -> Result<WorkTreeChanges> {
        Ok(self
            .repository
            .work_tree_changes(self.options.max_blob_bytes, known, interrupt)?)
    }

    /// The files on disk, laid over the commit that is checked out.
    pub(crate) fn over_changes(
        &self,
        base: Base,
        mut provenance: Provenance,
        found: WorkTreeChanges,
        interrupt: &AtomicBool,
    ) -> Result<View> {
        provenance.n_dirty_files = found.changes.len() as u32;
        for (path, reason) in &found.unreadable {
            provenance.incomplete.push(format!("{path} cannot be read: {reason}"));
        }
        let mut unsaved = HashMap::new();
        let mut changes = Vec::with_capacity(found.changes.len());
        if !found.changes.is_empty() {
            let mut reader = self.repository.work_tree_reader()?;
            let committed = attributes_of(&base.layers, &mut self.repository.reader())?;
            let mut attributes = committed.with_changes(&found, &mut reader).matcher();
            for change in found.changes {
                let read = |path: &RepoPath| reader.read(path, self.options.max_blob_bytes);
                changes.push(on_disk(change, &mut attributes, read, &mut unsaved));
            }
        }
        self.view_over(base, provenance, changes, unsaved, interrupt)
    }

    fn view_over(
        &self,
        mut base: Base,
        provenance: Provenance,
        changes: Vec<Change>,
        unsaved: HashMap<BlobId, Vec<u8>>,
        interrupt: &AtomicBool,
    ) -> Result<View> {
        if !changes.is_empty() {
            let (segments, manifest) = self.lay_over(changes, &unsaved, base.segments, interrupt)?;
            base.segments = segments;
            base.layers.push(manifest);
        }
        Ok(View::new(provenance, base.segments, base.layers, unsaved))
    }

    /// What the sidecar knows of a tree; nothing is written.
    pub fn freshness(&self, tree: TreeId) -> Result<Freshness> {
        let has_state = |sidecar: &Sidecar| !matches!(sidecar.state(), Ok(None));
        if !self.open_sidecar()?.as_ref().is_some_and(has_state) {
            return Ok(Freshness::Missing);
        }
        Ok(match self.stored(tree)? {
            Stored::Whole(_) => Freshness::UpToDate,
            Stored::Partial => Freshness::Behind,
            Stored::OtherSettings => Freshness::OtherSettings,
            Stored::Damaged(error) => Freshness::Damaged(format!("{error:#}")),
        })
    }
}

/// What the sidecar knows of a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Freshness {
    /// There is no index.
    Missing,
    /// There is one, without all of this tree.
    Behind,
    /// There is one that was made with other settings, another model or by another build.
    OtherSettings,
    /// What there is cannot be read; why.
    Damaged(String),
    /// All of it.
    UpToDate,
}

/// What the sidecar holds of a tree.
enum Stored {
    /// All of it.
    Whole(Base),
    /// Nothing, or not all, so that it is to be written.
    Partial,
    /// Something that these settings or this model cannot use, so that it is to be written anew.
    OtherSettings,
    /// It cannot be read, so that it is to be written anew.
    Damaged(anyhow::Error),
}

/// Tries once more, twice at most, what has failed because an object was not there. git may remove what a branch has just left
/// (`rebase`, then `gc --prune=now`) between the moment when the branch was looked up and the reading of its tree.
fn while_objects_vanish<T>(attempt: impl Fn() -> Result<T>) -> Result<T> {
    for _ in 0..2 {
        match attempt() {
            Err(error) if has_vanished(&error) => tracing::debug!("{error:#}: once more"),
            done => return done,
        }
    }
    attempt()
}

fn has_vanished(error: &anyhow::Error) -> bool {
    let is_missing = |cause: &(dyn std::error::Error + 'static)| {
        matches!(cause.downcast_ref(), Some(ObjectError::Missing { .. }))
            || matches!(
                cause.downcast_ref(),
                Some(IngestError::Object(ObjectError::Missing { .. }))
            )
    };
    error.chain().any(is_missing)
}

/// Starts the pool that rooms share, with one thread where there is no room for more. Left to itself it would panic.
fn start_threads() -> Result<()> {
    use std::error::Error;
    let started = rayon::ThreadPoolBuilder::new().build_global();
    match started {
        // Without a cause: it runs already.
        Err(error) if error.source().is_some() => {
            let one = rayon::ThreadPoolBuilder::new().num_threads(1).build_global();
            one.context("cannot start a thread")
        }
        _ => Ok(()),
    }
}

/// A tree's snapshot, opened.
#[derive(Clone, Default)]
pub(crate) struct Base {
    segments: Segments,
    layers: Vec<Manifest>,
}

impl Base {
    /// A view of the tree as it is.
    pub(crate) fn view(self, provenance: Provenance) -> View {
        View::new(provenance, self.segments, self.layers, HashMap::new())
    }
}

/// Whether an error says that this place cannot be written to, rather than that something is wrong.
pub(crate) fn is_read_only(error: &anyhow::Error) -> bool {
    use std::io::ErrorKind::{NotADirectory, PermissionDenied, QuotaExceeded, ReadOnlyFilesystem, StorageFull};
    error.chain().any(|cause| {
        cause.downcast_ref::<std::io::Error>().is_some_and(|error| {
            matches!(
                error.kind(),
                NotADirectory | PermissionDenied | QuotaExceeded | ReadOnlyFilesystem | StorageFull
            )
        })
    })
}

/// What a changed path holds on disk. Bytes that git does not have go to `unsaved`.
fn on_disk(
    change: WorkTreeChange,
    attributes: &mut AttributeMatcher,
    mut read: impl FnMut(&RepoPath) -> Result<DiskFile, Unread>,
    unsaved: &mut HashMap<BlobId, Vec<u8>>,
) -> Change {
    let no_id = || Oid::from_bytes(&[0; 20]).expect("twenty bytes are an id");
    let mut left_out = |path: RepoPath, reason: SkipReason| {
        let mut file = ListedFile::new(path, FileMode::File, no_id(), attributes);
        file.left_out.get_or_insert(reason);
        Change::Present(file)
    };
    match change.new {
        OnDisk::Absent => Change::Gone(change.path),
        OnDisk::Submodule(CommitId(oid)) => {
            Change::Present(ListedFile::new(change.path, FileMode::Submodule, oid, attributes))
        }
        OnDisk::Unread(Unread::TooLarge { .. }) => left_out(change.path, SkipReason::TooLarge),
        OnDisk::Unread(_) => left_out(change.path, SkipReason::Unreadable),
        OnDisk::File { .. } => match read(&change.path) {
            Ok(file) => {
                // Read just now, so what is searched is what it says, whatever it was a moment ago.
                unsaved.insert(file.blob, file.bytes);
                Change::Present(ListedFile::new(change.path, file.mode, file.blob.0, attributes))
            }
            Err(Unread::Absent) => Change::Gone(change.path),
            Err(Unread::TooLarge { .. }) => left_out(change.path, SkipReason::TooLarge),
            Err(_) => left_out(change.path, SkipReason::Unreadable),
        },
    }
}
