//! Where the sidecar of a repository stands, and what is refused in its place.

use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::config::Environment;
use crate::git::Repository;
use crate::sidecar::{Location, OpenError};

/// Where a repository's sidecar is or would be, whether it may be used or not.
pub(crate) fn sidecar_root_of(repository: &Repository, environment: &Environment) -> PathBuf {
    match &environment.sidecar {
        Some(folder) => folder.clone(),
        None => default_sidecar_root(repository),
    }
}

/// `.codescout` in the main work tree's root, which all linked work trees share; inside the git directory of a bare repository.
pub(super) fn default_sidecar_root(repository: &Repository) -> PathBuf {
    match repository.main_work_dir() {
        Some(root) => root.join(".codescout"),
        None => repository.common_dir().join("codescout"),
    }
}

/// Refuses a sidecar that came with the repository, or is not ours, before anything in it is read.
pub(super) fn check_place(repository: &Repository, location: &Location) -> Result<()> {
    refuse_tracked(repository, &location.root)?;
    match location.open() {
        // What cannot be read is no reason to refuse an answer, which is computed in memory then.
        Ok(_) | Err(OpenError::Missing { .. } | OpenError::Io { .. }) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Refuses a sidecar of which anything is tracked, whether it is there now or not: by this repository, or by one around it, whose checkout
/// can hold a bare repository with everything in it.
pub(super) fn refuse_tracked(repository: &Repository, root: &Path) -> Result<()> {
    if repository.tracks_at(root)? {
        Err(OpenError::Tracked { root: root.to_owned() }.into())
    } else {
        Ok(())
    }
}

/// Who owns a folder of the repository, which git has found to be trusted; its number.
pub(super) fn owner_of(folder: &Path) -> Option<u32> {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata(folder).ok().map(|found| found.uid())
}
