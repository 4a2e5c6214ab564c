//! The repository with its sidecar, configuration and models, opened as far as a command needs them. `views.rs` opens
//! views of revisions.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;

use anyhow::{Context as _, Result};

use super::models::Models;
use super::place::{check_place, default_sidecar_root, owner_of, refuse_tracked, sidecar_root_of};
use crate::config::{Config, Environment, Overrides, RepositoryFiles};
use crate::git::Repository;
use crate::index::BuildOptions;
use crate::model::with_placeholders;
use crate::remote::Qdrant;
use crate::sidecar::{Location, OpenError, Sidecar, State};

/// A repository with its sidecar, configuration and models.
pub struct Workspace {
    /// The repository.
    pub repository: Repository,
    /// Every setting.
    pub config: Config,
    pub(super) location: Location,
    /// The models in use.
    pub models: Models,
    pub(super) qdrant: OnceLock<Vec<Qdrant>>,
    pub(super) options: BuildOptions,
    pub(super) keeping: Keeping,
    /// The caller's directory, relative to the root. Typed paths are relative to it.
    here: String,
}

/// The place where computed data is stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Keeping {
    /// In the repository's sidecar, which is created if missing.
    #[default]
    Sidecar,
    /// Nowhere: the repository is read-only.
    Nowhere,
}

impl Workspace {
    /// Opens the repository that contains `path`.
    pub fn open(path: &Path, overrides: &Overrides) -> Result<Self> {
        Self::of(Repository::discover(path)?, overrides)
    }

    /// Opens the repository with default settings, to change settings that prevent opening it.
    pub(crate) fn open_without_settings(path: &Path) -> Result<Self> {
        let repository = Repository::discover(path)?;
        let location = location(&repository, &Overrides::default(), &Environment::read())?;
        let config = Config::resolve(
            &Overrides::default(),
            &Environment::default(),
            &RepositoryFiles::default(),
        )?;
        Self::with(repository, location, config)
    }

    fn of(repository: Repository, overrides: &Overrides) -> Result<Self> {
        let environment = Environment::read();
        let location = location(&repository, overrides, &environment)?;
        let files = settings_files(&repository, &location);
        let config = Config::resolve(overrides, &environment, &files)?;
        Self::with(repository, location, config)
    }

    fn with(repository: Repository, location: Location, config: Config) -> Result<Self> {
        start_threads()?;
        let models = Models::of(&config)?;
        // Reports invalid settings early.
        config.qdrant.options()?;
        Ok(Self {
            options: config.build_options(),
            repository,
            config,
            location,
            models,
            qdrant: OnceLock::new(),
            keeping: Keeping::default(),
            here: String::new(),
        })
    }

    /// Opens a repository other than the one a program works in. It uses its own sidecar, whatever the environment
    /// says; without one, nothing is written.
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

    /// Returns the caller's directory, relative to the root: empty at the root and for servers.
    pub(crate) fn here(&self) -> &str {
        &self.here
    }

    /// Returns where computed data is stored.
    pub(crate) fn keeping(&self) -> Keeping {
        self.keeping
    }

    /// The options for building segments.
    pub fn build_options(&self) -> &BuildOptions {
        &self.options
    }

    /// The location of the sidecar, which need not exist.
    pub fn sidecar_root(&self) -> &Path {
        &self.location.root
    }

    /// Opens the sidecar and reads its state, if they exist. Writes nothing.
    pub fn sidecar(&self) -> Result<Option<(Sidecar, Option<State>)>> {
        match self.open_sidecar()? {
            Some(sidecar) => {
                let state = sidecar.state()?;
                Ok(Some((sidecar, state)))
            }
            None => Ok(None),
        }
    }

    /// Opens the sidecar for reading, if it exists. Refuses one that came with the repository or belongs to another
    /// user.
    pub fn open_sidecar(&self) -> Result<Option<Sidecar>> {
        refuse_tracked(&self.repository, &self.location.root)?;
        match self.location.open() {
            Ok(sidecar) => Ok(Some(sidecar)),
            Err(OpenError::Missing { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Opens the sidecar like [`Self::open_sidecar`], even if the file that marks it as a sidecar is damaged.
    pub fn sidecar_to_check(&self) -> Result<Option<Sidecar>> {
        refuse_tracked(&self.repository, &self.location.root)?;
        Ok(self.location.open_to_check()?)
    }

    /// Opens the sidecar for writing, creates it if missing, and keeps it out of `git status`.
    pub fn open_or_create_sidecar(&self, interrupt: &AtomicBool) -> Result<Sidecar> {
        refuse_tracked(&self.repository, &self.location.root)?;
        // A repository that cannot be written has no sidecar of ours either, so this failure is not an error.
        let tell = |error: anyhow::Error| tracing::debug!("info/exclude was not written: {error:#}");
        if matches!(self.location.open(), Err(OpenError::Missing { .. })) {
            // Before the folder exists, so that a concurrent `git add --all` does not add it.
            self.write_exclude_line().map_err(Into::into).unwrap_or_else(tell);
        }
        let sidecar = self.location.open_or_create()?;
        self.exclude_sidecar(&sidecar, interrupt).unwrap_or_else(tell);
        Ok(sidecar)
    }
}

/// Determines the location of the sidecar, which need not exist, and checks that it may be used.
fn location(repository: &Repository, overrides: &Overrides, environment: &Environment) -> Result<Location> {
    let location = Location {
        trusted_owner: owner_of(repository.common_dir()),
        root: match &overrides.sidecar {
            Some(folder) => folder.clone(),
            None => sidecar_root_of(repository, environment),
        },
    };
    check_place(repository, &location)?;
    Ok(location)
}

/// The settings files of the repository.
fn settings_files(repository: &Repository, location: &Location) -> RepositoryFiles {
    let machine = location.root.join("config.toml");
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

/// Starts the global thread pool, with one thread if no more can be started. Without this call, rayon would panic in
/// that case.
fn start_threads() -> Result<()> {
    use std::error::Error;
    let started = rayon::ThreadPoolBuilder::new().build_global();
    match started {
        // An error without a source means that the pool is running already.
        Err(error) if error.source().is_some() => {
            let one = rayon::ThreadPoolBuilder::new().num_threads(1).build_global();
            one.context("cannot start a thread")
        }
        _ => Ok(()),
    }
}
