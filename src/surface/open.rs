//! Opens for a command what it needs and no more.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::artifact::SkipReason;
use crate::config::{Config, Environment, Overrides};
use crate::embed::{Embedder, StaticModel, open_model2vec};
use crate::git::{
    AttributeMatcher, Attributes, DiskFile, FileMode, Head, KnownFiles, OnDisk, Repository, TreeEntry, TreeFile,
    Unread, WorkTreeChange,
};
use crate::index::{BuildOptions, Segments};
use crate::ingest::{Ingest, Outcome, Progress, Target};
use crate::model::{BlobId, CommitId, Oid, RepoPath, TreeId};
use crate::sidecar::{OpenError, Sidecar, State, StateError};
use crate::snapshot::{
    Change, ListedFile, Manifest, Provenance, SnapshotStore, View, attributes_of, can_be_completed, lay_over_changes,
};

/// How long a command waits for another writer before it says so.
pub(super) const PATIENCE: Duration = Duration::from_secs(600);
/// A tree without manifest is served from memory when the sidecar cannot be written.
const READ_ONLY_NOTE: &str = "the index cannot be written here; this answer was computed in memory";
/// Keeps the sidecar out of the repository it lies in.
const EXCLUDE_LINE: &str = "/.codescout/";

/// A repository with its sidecar, configuration and models.
pub struct Workspace {
    /// The repository.
    pub repository: Repository,
    /// Every setting.
    pub config: Config,
    sidecar_root: PathBuf,
    static_model: StaticModel,
    foreign_model: Option<Box<dyn Embedder>>,
    options: BuildOptions,
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
        let environment = Environment::read();
        let repository = Repository::discover(path)?;
        let sidecar_root = match overrides.sidecar.as_ref().or(environment.sidecar.as_ref()) {
            Some(folder) => folder.clone(),
            None => default_sidecar_root(&repository),
        };
        let machine = sidecar_root.join("config.toml");
        if machine.exists() && is_committed(&repository, &machine)? {
            bail!(
                "{} is part of the commit that is checked out: what comes with a repository is not this machine's configuration",
                machine.display()
            );
        }
        let own = repository.work_dir().map(|root| root.join(".codescout.toml"));
        let config = Config::resolve(overrides, &environment, Some(&machine), own.as_deref())?;
        let foreign_model = match &config.model.value {
            Some(folder) => Some(open_model2vec(folder).context("cannot open the embedding model")?),
            None => None,
        };
        Ok(Self {
            options: config.build_options(),
            repository,
            config,
            sidecar_root,
            static_model: StaticModel::embedded(),
            foreign_model,
        })
    }

    /// What makes the vectors.
    pub fn embedder(&self) -> &dyn Embedder {
        match &self.foreign_model {
            Some(model) => model.as_ref(),
            None => &self.static_model,
        }
    }

    /// The model inside the binary.
    pub fn static_model(&self) -> &StaticModel {
        &self.static_model
    }

    /// How segments are made.
    pub fn build_options(&self) -> &BuildOptions {
        &self.options
    }

    /// Where the sidecar is, or would be.
    pub fn sidecar_root(&self) -> &Path {
        &self.sidecar_root
    }

    /// The sidecar and its state, as far as there are any; nothing is written.
    pub fn sidecar(&self) -> Result<Option<(Sidecar, Option<State>)>> {
        match Sidecar::open(&self.sidecar_root) {
            Ok(sidecar) => {
                let state = sidecar.state()?;
                Ok(Some((sidecar, state)))
            }
            Err(OpenError::Missing { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Brings the sidecar up to date with a revision.
    pub fn ingest(&self, target: Target, progress: &dyn Progress, interrupt: &AtomicBool) -> Result<Outcome> {
        let sidecar = Sidecar::open_or_create(&self.sidecar_root)?;
        // A repository that cannot be written to has no sidecar of ours either, so failing is no failure.
        if let Err(error) = self.exclude_sidecar() {
            tracing::debug!(%error, "info/exclude was not written");
        }
        let ingest = Ingest {
            repository: &self.repository,
            sidecar: &sidecar,
            embedder: self.embedder(),
            options: &self.options,
            patience: PATIENCE,
        };
        Ok(ingest.update(target, progress, interrupt)?)
    }

    /// What a revision names: `WORKTREE` and `INDEX` stand for the commit below them.
    pub fn target(&self, reference: &str) -> Result<Option<Target>> {
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
        let target = self.target(reference)?;
        let reference = match (reference, self.repository.work_dir()) {
            ("WORKTREE", None) => "HEAD",
            (reference, _) => reference,
        };
        let mut provenance = self.provenance(reference, target);
        let mut ingested = Outcome::default();
        let base = match target {
            None => Base::default(),
            Some(target) => {
                let (base, outcome) = self.base(target, &mut provenance, progress, interrupt)?;
                ingested = outcome;
                base
            }
        };
        let view = match reference {
            "WORKTREE" => self.over_work_tree(base, provenance, interrupt)?,
            "INDEX" => self.over_index(base, provenance, interrupt)?,
            _ => View::new(provenance, base.segments, base.layers, HashMap::new()),
        };
        Ok(Opened { view, ingested })
    }

    /// A tree's snapshot: what is stored, after indexing what is missing, or computed where nothing can be written or read.
    fn base(
        &self,
        target: Target,
        provenance: &mut Provenance,
        progress: &dyn Progress,
        interrupt: &AtomicBool,
    ) -> Result<(Base, Outcome)> {
        let found = match self.stored(target.tree) {
            Ok(Some(base)) => Ok((base, Outcome::default())),
            Ok(None) => self.newly_stored(target, progress, interrupt),
            Err(error) => Err(error),
        };
        match found {
            Err(error) if is_read_only(&error) => {
                tracing::warn!("{error:#}");
                provenance.incomplete.push(READ_ONLY_NOTE.to_owned());
                Ok((self.in_memory(target, interrupt)?, Outcome::default()))
            }
            found => found,
        }
    }

    fn newly_stored(&self, target: Target, progress: &dyn Progress, interrupt: &AtomicBool) -> Result<(Base, Outcome)> {
        let outcome = self.ingest(target, progress, interrupt)?;
        if outcome.interrupted {
            bail!("interrupted; what was indexed so far is kept");
        }
        let base = self
            .stored(target.tree)?
            .context("the index of this tree was written and is gone again")?;
        Ok((base, outcome))
    }

    fn provenance(&self, reference: &str, target: Option<Target>) -> Provenance {
        let repo = self.repository.work_dir().unwrap_or_else(|| self.repository.git_dir());
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

    /// What the sidecar holds of a tree; `None` if that is not all of it, or damaged, so that it is to be written anew.
    fn stored(&self, tree: TreeId) -> Result<Option<Base>> {
        let sidecar = match Sidecar::open(&self.sidecar_root) {
            Ok(sidecar) => sidecar,
            Err(OpenError::Missing { .. }) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let Some(state) = self.usable_state(&sidecar)? else {
            return Ok(None);
        };
        let snapshots = SnapshotStore::new(&sidecar, state.epoch, state.recipe);
        let layers = match snapshots.load(tree) {
            Ok(Some(layers)) => layers,
            Ok(None) => return Ok(None),
            Err(error) => {
                tracing::warn!(%error, "written anew");
                return Ok(None);
            }
        };
        if can_be_completed(&layers, &self.repository) {
            return Ok(None);
        }
        // A manifest is published after the state that it needs. One that was published since the state was read may name
        // blobs that only the state of now tells of.
        let epoch = state.epoch;
        let Some(state) = self.usable_state(&sidecar)?.filter(|state| state.epoch == epoch) else {
            return Ok(None);
        };
        match Segments::open_newest(&sidecar, &state, &self.embedder().profile().id().to_string()) {
            Ok(segments) if segments.iter().all(|segment| segment.vectors.is_some()) => {
                Ok(Some(Base { segments, layers }))
            }
            Ok(_) => Ok(None),
            Err(error) => {
                tracing::warn!(%error, "indexing anew");
                Ok(None)
            }
        }
    }

    /// The state if this build can go on from it. A damaged one is as good as none.
    fn usable_state(&self, sidecar: &Sidecar) -> Result<Option<State>> {
        match sidecar.state() {
            Ok(state) => Ok(state.filter(|state| state.recipe == self.options.recipe)),
            Err(error @ StateError::Damaged { .. }) => {
                tracing::warn!(%error, "indexing anew");
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Everything of a tree, from what is stored of others and from git, without writing.
    fn in_memory(&self, target: Target, interrupt: &AtomicBool) -> Result<Base> {
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
        let changes = files
            .into_iter()
            .map(|TreeFile { path, mode, oid }| Change::Present(ListedFile::new(path, mode, oid, &mut attributes)))
            .collect();
        let segments = self.any_segments().unwrap_or_default();
        self.lay_over(changes, &HashMap::new(), segments, interrupt)
            .map(|(segments, manifest)| Base {
                segments,
                layers: vec![manifest],
            })
    }

    fn any_segments(&self) -> Option<Segments> {
        let sidecar = Sidecar::open(&self.sidecar_root).ok()?;
        let state = sidecar.state().ok()??;
        let profile = self.embedder().profile().id().to_string();
        let segments = Segments::open_newest(&sidecar, &state, &profile).ok()?;
        let is_usable = state.recipe == self.options.recipe && segments.iter().all(|segment| segment.vectors.is_some());
        is_usable.then_some(segments)
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
            self.embedder(),
            &self.options,
            interrupt,
        )?;
        // What was not read would pass for missing.
        if interrupt.load(Ordering::Relaxed) {
            bail!("interrupted");
        }
        Ok(laid)
    }

    fn over_index(&self, base: Base, mut provenance: Provenance, interrupt: &AtomicBool) -> Result<View> {
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

    fn over_work_tree(&self, base: Base, mut provenance: Provenance, interrupt: &AtomicBool) -> Result<View> {
        let found =
            self.repository
                .work_tree_changes(self.options.max_blob_bytes, &mut KnownFiles::default(), interrupt)?;
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

    /// What the sidecar knows of a tree.
    pub fn freshness(&self, tree: TreeId) -> Result<Freshness> {
        let Some((sidecar, Some(state))) = self.sidecar()? else {
            return Ok(Freshness::Missing);
        };
        let snapshots = SnapshotStore::new(&sidecar, state.epoch, state.recipe);
        Ok(match snapshots.load(tree) {
            Ok(Some(_)) => Freshness::UpToDate,
            _ => Freshness::Behind,
        })
    }

    /// Keeps the sidecar out of `git status` by the repository's own `info/exclude`.
    pub fn exclude_sidecar(&self) -> std::io::Result<()> {
        match self.exclude_without_line()? {
            Some((path, text)) => add_exclude_line(&path, &text),
            None => Ok(()),
        }
    }

    /// Whether the sidecar is in the work tree and `info/exclude` does not say so.
    pub fn needs_exclude_line(&self) -> std::io::Result<bool> {
        Ok(self.exclude_without_line()?.is_some())
    }

    /// `info/exclude` with its text, if it lacks the line.
    fn exclude_without_line(&self) -> std::io::Result<Option<(PathBuf, String)>> {
        let main = self.repository.main_work_dir();
        if !main.is_some_and(|root| self.sidecar_root.starts_with(root)) {
            return Ok(None);
        }
        let path = self.repository.common_dir().join("info").join("exclude");
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(error),
        };
        let has_line = text.lines().any(|line| line.trim() == EXCLUDE_LINE);
        Ok((!has_line).then_some((path, text)))
    }
}

/// What the sidecar knows of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Freshness {
    /// There is no index.
    Missing,
    /// There is one, without this tree.
    Behind,
    /// All of it.
    UpToDate,
}

/// A tree's snapshot, opened.
#[derive(Default)]
struct Base {
    segments: Segments,
    layers: Vec<Manifest>,
}

/// `.codescout` in the main work tree's root, which all linked work trees share; inside the git directory of a bare repository.
fn default_sidecar_root(repository: &Repository) -> PathBuf {
    match repository.main_work_dir() {
        Some(root) => root.join(".codescout"),
        None => repository.common_dir().join("codescout"),
    }
}

/// Whether a file is in the commit that is checked out, and so came with the repository.
fn is_committed(repository: &Repository, file: &Path) -> Result<bool> {
    let root = repository.main_work_dir();
    let Some(path) = root.as_deref().and_then(|root| file.strip_prefix(root).ok()) else {
        return Ok(false);
    };
    let Some(commit) = repository.head()?.commit() else {
        return Ok(false);
    };
    let mut reader = repository.reader();
    let tree = reader.commit(commit)?.tree;
    let mut is_there = false;
    reader.tree_files(tree, &mut |found| {
        is_there |= found.path.as_bytes() == path.as_os_str().as_encoded_bytes();
    })?;
    Ok(is_there)
}

fn add_exclude_line(path: &Path, text: &str) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let separator = match text.is_empty() || text.ends_with('\n') {
        true => "",
        false => "\n",
    };
    crate::sidecar::write_atomic(path, format!("{text}{separator}{EXCLUDE_LINE}\n").as_bytes())
}

/// Whether an error says that this place cannot be written to, rather than that something is wrong.
pub(super) fn is_read_only(error: &anyhow::Error) -> bool {
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
