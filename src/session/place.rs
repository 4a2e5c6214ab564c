//! Determines the location of a repository's sidecar, and checks it before use.

use std::path::{Path, PathBuf};

use super::error::Result;
use crate::config::Environment;
use crate::git::Repository;
use crate::sidecar::{Location, OpenError};

/// Returns the location of a repository's sidecar, even if there is none or it must not be used.
pub(crate) fn sidecar_root_of(repository: &Repository, environment: &Environment) -> PathBuf {
    match &environment.sidecar {
        Some(folder) => folder.clone(),
        None => default_sidecar_root(repository),
    }
}

/// Returns the default location. It is `.codescout` in the root of the main worktree, which all linked worktrees share,
/// or `codescout` in the git directory of a bare repository.
pub(super) fn default_sidecar_root(repository: &Repository) -> PathBuf {
    match repository.main_work_dir() {
        Some(root) => root.join(".codescout"),
        None => repository.common_dir().join("codescout"),
    }
}

/// Returns an error for a sidecar that came with the repository or belongs to another user, before reading anything in
/// it.
pub(super) fn check_place(repository: &Repository, location: &Location) -> Result<()> {
    refuse_tracked(repository, &location.root)?;
    match location.open() {
        // An unreadable sidecar is no error here: the answer is then computed in memory.
        Ok(_) | Err(OpenError::Missing { .. } | OpenError::Io { .. }) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Returns an error if a path in the sidecar is tracked by git, even if the file does not exist. Checks this repository
/// and any repository that contains it, because a checkout can contain a complete bare repository.
pub(super) fn refuse_tracked(repository: &Repository, root: &Path) -> Result<()> {
    if repository.tracks_at(root)? {
        Err(OpenError::Tracked { root: root.to_owned() }.into())
    } else {
        Ok(())
    }
}

/// Returns the user id of a folder's owner. Git has already verified that the folder is trusted.
pub(super) fn owner_of(folder: &Path) -> Option<u32> {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata(folder).ok().map(|found| found.uid())
}
