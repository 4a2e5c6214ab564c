//! The location of a repository's sidecar, and the checks before it is used.

use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::config::Environment;
use crate::git::Repository;
use crate::sidecar::{Location, OpenError};

/// Returns the location of a repository's sidecar, whether it exists and may be used or not.
pub(crate) fn sidecar_root_of(repository: &Repository, environment: &Environment) -> PathBuf {
    match &environment.sidecar {
        Some(folder) => folder.clone(),
        None => default_sidecar_root(repository),
    }
}

/// Returns the default location: `.codescout` in the main worktree's root, which all linked worktrees share, or
/// `codescout` in the git directory of a bare repository.
pub(super) fn default_sidecar_root(repository: &Repository) -> PathBuf {
    match repository.main_work_dir() {
        Some(root) => root.join(".codescout"),
        None => repository.common_dir().join("codescout"),
    }
}

/// Refuses a sidecar that came with the repository or belongs to another user, before anything in it is read.
pub(super) fn check_place(repository: &Repository, location: &Location) -> Result<()> {
    refuse_tracked(repository, &location.root)?;
    match location.open() {
        // An unreadable sidecar is not refused: the answer is then computed in memory.
        Ok(_) | Err(OpenError::Missing { .. } | OpenError::Io { .. }) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Refuses a sidecar with tracked files, whether they exist now or not. Checks this repository and any around it, whose
/// checkout can contain a complete bare repository.
pub(super) fn refuse_tracked(repository: &Repository, root: &Path) -> Result<()> {
    if repository.tracks_at(root)? {
        Err(OpenError::Tracked { root: root.to_owned() }.into())
    } else {
        Ok(())
    }
}

/// Returns the user id of a folder's owner. Git has already found the folder to be trusted.
pub(super) fn owner_of(folder: &Path) -> Option<u32> {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata(folder).ok().map(|found| found.uid())
}
