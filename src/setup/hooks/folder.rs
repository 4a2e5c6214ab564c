//! Determines the folder where git looks for hooks, and who else uses it.

use std::path::{Path, PathBuf};

use crate::git::{HooksPathOrigin, Repository};
use crate::sidecar::real_path;

/// The folder where git looks for hooks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HooksFolder {
    /// The path of the folder, which may not exist.
    pub path: PathBuf,
    /// The same path without symbolic links, as it was when `standing` was determined.
    pub real: PathBuf,
    /// Determines who uses the folder.
    pub standing: Standing,
}

/// Determines who uses a folder of hooks, and thus whether it may be changed without asking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// The folder is inside the git directory, so only this clone uses it.
    GitDir,
    /// `core.hooksPath` names a folder in the worktree, whose files may be committed.
    WorkTree,
    /// The folder is outside the repository, so other repositories may use it.
    Outside,
    /// `core.hooksPath` is not a folder: hooks are disabled.
    Nowhere,
}

impl HooksFolder {
    /// Determines the folder where git looks for this repository's hooks.
    pub fn of(repository: &Repository) -> Self {
        let (path, is_of_machine) = match repository.hooks_path() {
            Some(configured) => (configured.path, configured.origin == HooksPathOrigin::Machine),
            None => (Self::default_path(repository), false),
        };
        let real = resolved(&path);
        let standing = match Self::standing(repository, &real) {
            // All other repositories of the user use the folder too, even if it is inside this one.
            Standing::GitDir | Standing::WorkTree if is_of_machine => Standing::Outside,
            standing => standing,
        };
        Self { path, real, standing }
    }

    /// Returns the folder where git looks if `core.hooksPath` is not set.
    pub(super) fn default_path(repository: &Repository) -> PathBuf {
        repository.common_dir().join("hooks")
    }

    pub(super) fn standing(repository: &Repository, path: &Path) -> Standing {
        let resolved = resolved(path);
        if resolved.exists() && !resolved.is_dir() {
            return Standing::Nowhere;
        }
        if resolved.starts_with(repository.common_dir()) || resolved.starts_with(repository.git_dir()) {
            return Standing::GitDir;
        }
        let roots = [repository.work_dir().map(Path::to_owned), repository.main_work_dir()];
        if roots.iter().flatten().any(|root| resolved.starts_with(root)) {
            Standing::WorkTree
        } else {
            Standing::Outside
        }
    }
}

/// Returns the path after resolving symbolic links, or as it is if one of them leads to nothing.
pub(super) fn resolved(path: &Path) -> PathBuf {
    real_path(path).unwrap_or_else(|_| path.to_owned())
}
