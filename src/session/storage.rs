//! Manages the sidecar of an open repository: its location, and opening it for reading and writing.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use super::error::{OpError, Result};
use super::place::{check_place, owner_of, refuse_tracked, sidecar_root_of};
use super::writing::PATIENCE;
use crate::config::{Environment, Overrides};
use crate::git::Repository;
use crate::sidecar::{Location, OpenError, RealFolder, Sidecar, State};

/// The line in the repository's `info/exclude` that hides the sidecar from `git status`.
const EXCLUDE_LINE: &str = "/.codescout/";

/// The sidecar of a repository, which may not exist yet.
pub struct Storage {
    repository: Repository,
    location: Location,
    keeping: Keeping,
    /// True once it was said that this user may not read the sidecar.
    is_reported: AtomicBool,
}

/// Determines where computed data is stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Keeping {
    /// Data is stored in the repository's sidecar, which is created if missing.
    #[default]
    Sidecar,
    /// Data is not stored, because the repository must not be written.
    Nowhere,
}

impl Storage {
    /// Determines the location of the sidecar, even if it does not exist, and checks that it may be used.
    pub(super) fn of(repository: &Repository, overrides: &Overrides, environment: &Environment) -> Result<Self> {
        let location = Location {
            trusted_owner: owner_of(repository.common_dir()),
            root: match &overrides.sidecar {
                Some(folder) => folder.clone(),
                None => sidecar_root_of(repository, environment),
            },
        };
        check_place(repository, &location)?;
        Ok(Self {
            repository: repository.clone(),
            location,
            keeping: Keeping::default(),
            is_reported: AtomicBool::new(false),
        })
    }

    /// If there is no sidecar, ensures that none is created and nothing is stored.
    pub(super) fn without_creating(self) -> Result<Self> {
        let keeping = match self.open()? {
            Some(_) => Keeping::Sidecar,
            None => Keeping::Nowhere,
        };
        Ok(Self { keeping, ..self })
    }

    /// Returns where computed data is stored.
    pub(crate) fn keeping(&self) -> Keeping {
        self.keeping
    }

    /// Returns the location of the sidecar, even if it does not exist.
    pub fn root(&self) -> &Path {
        &self.location.root
    }

    /// Opens the sidecar and reads its state, if they exist. Writes nothing.
    pub fn open_with_state(&self) -> Result<Option<(Sidecar, Option<State>)>> {
        match self.open()? {
            Some(sidecar) => {
                let state = sidecar.state()?;
                Ok(Some((sidecar, state)))
            }
            None => Ok(None),
        }
    }

    /// Opens the sidecar for reading, if it exists and this user may read it; warns about one that this user may not read.
    /// Returns an error for a sidecar that came with the repository or belongs to another user.
    pub fn open(&self) -> Result<Option<Sidecar>> {
        refuse_tracked(&self.repository, &self.location.root)?;
        let is_denied = |error: &OpenError| match error {
            OpenError::Io { source, .. } => source.kind() == ErrorKind::PermissionDenied,
            _ => false,
        };
        match self.location.open() {
            Ok(sidecar) if sidecar.is_readable() => return Ok(Some(sidecar)),
            Err(OpenError::Missing { .. }) => return Ok(None),
            Err(error) if !is_denied(&error) => return Err(error.into()),
            Ok(_) | Err(_) => {}
        }
        if !self.is_reported.swap(true, Ordering::Relaxed) {
            tracing::warn!("{} is not used: permission denied", self.location.root.display());
        }
        Ok(None)
    }

    /// Like [`Self::open`], but also opens a sidecar whose marker file is damaged.
    pub fn open_to_check(&self) -> Result<Option<Sidecar>> {
        refuse_tracked(&self.repository, &self.location.root)?;
        Ok(self.location.open_to_check()?)
    }

    /// Opens the sidecar for writing, and hides it from `git status`. Creates it if it does not exist.
    pub fn open_or_create(&self, interrupt: &AtomicBool) -> Result<Sidecar> {
        refuse_tracked(&self.repository, &self.location.root)?;
        // If the repository cannot be written, the sidecar is not inside it either, so this failure is not an error.
        let tell = |error: OpError| tracing::debug!("info/exclude was not written: {error:#}");
        if matches!(self.location.open(), Err(OpenError::Missing { .. })) {
            // Written before the folder is created, so that a concurrent `git add --all` does not add the folder.
            self.write_exclude_line().map_err(Into::into).unwrap_or_else(tell);
        }
        let sidecar = self.location.open_or_create()?;
        self.exclude(&sidecar, interrupt).unwrap_or_else(tell);
        Ok(sidecar)
    }

    /// Adds the sidecar to the repository's `info/exclude`, so that `git status` does not list it.
    pub fn exclude(&self, sidecar: &Sidecar, interrupt: &AtomicBool) -> Result<()> {
        if !self.needs_exclude_line()? {
            return Ok(());
        }
        // The lock prevents two concurrent first runs from both writing. A killed run leaves a temporary file, which
        // only the lock holder may remove.
        let _lock = sidecar.lock_unless(PATIENCE, interrupt)?;
        Ok(self.write_exclude_line()?)
    }

    /// Adds the line if it is missing. The caller must hold the lock or have just created the sidecar.
    pub(super) fn write_exclude_line(&self) -> std::io::Result<()> {
        match self.exclude_without_line()? {
            Some((path, text)) => add_exclude_line(&path, &text),
            None => Ok(()),
        }
    }

    /// Returns true if the sidecar is inside the worktree and `info/exclude` lacks the line.
    pub fn needs_exclude_line(&self) -> std::io::Result<bool> {
        Ok(self.exclude_without_line()?.is_some())
    }

    /// Returns the path and text of `info/exclude` if the line is missing and the file is not a link.
    fn exclude_without_line(&self) -> std::io::Result<Option<(PathBuf, String)>> {
        let main = self.repository.main_work_dir();
        if !main.is_some_and(|root| self.root().starts_with(root)) {
            return Ok(None);
        }
        let folder = self.repository.common_dir().join("info");
        let path = folder.join("exclude");
        // In a git directory from an archive, a link can lead to any file of the user.
        if folder.is_symlink() || path.is_symlink() {
            return Ok(None);
        }
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(error),
        };
        let has_line = text.lines().any(|line| line.trim() == EXCLUDE_LINE);
        Ok((!has_line).then_some((path, text)))
    }
}

fn add_exclude_line(path: &Path, text: &str) -> std::io::Result<()> {
    let (folder, name) = RealFolder::of_file(path, true)?;
    folder.remove_stale_temporaries()?;
    let separator = if text.is_empty() || text.ends_with('\n') {
        ""
    } else {
        "\n"
    };
    folder.write(&name, format!("{text}{separator}{EXCLUDE_LINE}\n").as_bytes(), None)
}
