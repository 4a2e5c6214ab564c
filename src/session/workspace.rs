//! A repository with its sidecar, settings and models. Each part is opened when a command first needs it. `views.rs`
//! opens views of revisions.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use parking_lot::Mutex;

use super::error::{Context as _, Result};
use super::fleet::Fleet;
use super::history::HeldMessages;
use super::models::Models;
use super::place::default_sidecar_root;
use super::storage::Storage;
use crate::config::{Config, Environment, Overrides, RepositoryFiles};
use crate::git::{Repository, RewriteError, Rewriter};
use crate::index::BuildOptions;
use crate::model::with_placeholders;

/// A repository with its sidecar, configuration and models.
pub struct Workspace {
    /// The repository.
    pub repository: Repository,
    /// All settings with their values.
    pub config: Config,
    /// The sidecar.
    pub storage: Storage,
    /// The models of the repository.
    pub models: Models,
    /// The fleet, if questions are about one.
    pub(crate) fleet: Option<Fleet>,
    pub(super) messages: Mutex<Option<HeldMessages>>,
    pub(super) options: BuildOptions,
    edit_records: Option<PathBuf>,
    /// The caller's directory relative to the repository root. Paths given by the user are relative to it.
    here: String,
}

impl Workspace {
    /// Opens the repository that contains `path`.
    pub fn open(path: &Path, overrides: &Overrides) -> Result<Self> {
        Self::of(Repository::discover(path)?, overrides)
    }

    /// Opens the repository with default settings. Used to change settings whose errors prevent opening it.
    pub(crate) fn open_without_settings(path: &Path) -> Result<Self> {
        let repository = Repository::discover(path)?;
        let environment = Environment::read();
        let storage = Storage::of(&repository, &Overrides::default(), &environment)?;
        let config = Config::resolve(
            &Overrides::default(),
            &Environment::default(),
            &RepositoryFiles::default(),
        )?;
        Self::with(repository, storage, config, environment.edits)
    }

    fn of(repository: Repository, overrides: &Overrides) -> Result<Self> {
        let environment = Environment::read();
        let storage = Storage::of(&repository, overrides, &environment)?;
        let files = settings_files(&repository, &storage);
        let config = Config::resolve(overrides, &environment, &files)?;
        Self::with(repository, storage, config, environment.edits)
    }

    pub(super) fn with(
        repository: Repository,
        storage: Storage,
        config: Config,
        edit_records: Option<PathBuf>,
    ) -> Result<Self> {
        start_threads()?;
        let models = Models::of(&config)?;
        Ok(Self {
            options: config.build_options(),
            repository: repository.with_sidecar(storage.root()),
            config,
            storage,
            models,
            fleet: None,
            messages: Mutex::default(),
            edit_records,
            here: String::new(),
        })
    }

    /// Opens a repository that the user has linked with the one at hand. Uses the repository's own sidecar, regardless of
    /// environment variables.
    pub(crate) fn open_linked(path: &Path) -> Result<Self> {
        let repository = Repository::discover(path)?;
        let overrides = Overrides {
            sidecar: Some(default_sidecar_root(&repository)),
            ..Overrides::default()
        };
        Self::of(repository, &overrides)
    }

    /// Opens a repository other than the one that the program works in. Uses the repository's own sidecar, regardless
    /// of environment variables. If it has none, nothing is written.
    pub(crate) fn open_foreign(repository: Repository) -> Result<Self> {
        let overrides = Overrides {
            sidecar: Some(default_sidecar_root(&repository)),
            ..Overrides::default()
        };
        let workspace = Self::of(repository, &overrides)?;
        Ok(Self {
            storage: workspace.storage.without_creating()?,
            ..workspace
        })
    }

    /// Sets the caller's directory.
    pub(crate) fn start_in(&mut self, directory: &Path) {
        let canonical = |path: &Path| path.canonicalize().ok();
        let root = self.repository.work_dir().and_then(canonical);
        let below = root.zip(canonical(directory));
        let here = below.and_then(|(root, directory)| Some(directory.strip_prefix(root).ok()?.to_owned()));
        self.here = here.map_or(String::new(), |here| {
            with_placeholders(here.as_os_str().as_bytes()).into_owned()
        });
    }

    /// Returns the caller's directory relative to the repository root. Empty at the root and for servers.
    pub(crate) fn here(&self) -> &str {
        &self.here
    }

    /// Locks the files of the worktree for a change, and completes an edit that was interrupted.
    /// Waits up to `patience` for other edits.
    pub(crate) fn rewriter(
        &self,
        patience: Duration,
        interrupt: &AtomicBool,
    ) -> std::result::Result<Rewriter, RewriteError> {
        self.repository
            .rewriter(self.edit_records.as_deref(), patience, interrupt)
    }

    /// The options for building segments.
    pub fn build_options(&self) -> &BuildOptions {
        &self.options
    }
}

/// Returns the paths of the repository's settings files.
fn settings_files(repository: &Repository, storage: &Storage) -> RepositoryFiles {
    let machine = storage.root().join("config.toml");
    let committed = repository.work_dir().map(|root| root.join(".codescout.toml"));
    let is_any_there = [Some(&machine), committed.as_ref()]
        .into_iter()
        .flatten()
        .any(|path| path.symlink_metadata().is_ok());
    RepositoryFiles {
        machine: Some(machine),
        committed,
        is_inside_another: is_any_there && repository.is_inside_another(),
    }
}

/// Starts the global thread pool. If no more threads can be started, uses a single thread. Without this call, rayon
/// would panic in that case.
fn start_threads() -> Result<()> {
    use std::error::Error;
    let started = rayon::ThreadPoolBuilder::new().build_global();
    match started {
        // An error without a source means that the pool is already running.
        Err(error) if error.source().is_some() => {
            let one = rayon::ThreadPoolBuilder::new().num_threads(1).build_global();
            one.context("cannot start a thread")
        }
        _ => Ok(()),
    }
}
