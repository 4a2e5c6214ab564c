//! The folder where git looks for hooks, and its owner.

use std::path::{Path, PathBuf};

use crate::git::{HooksPathOrigin, Repository};

/// The folder where git looks for hooks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HooksFolder {
    /// The folder; it may not exist.
    pub path: PathBuf,
    /// Its owner.
    pub standing: Standing,
}

/// The owner of a folder of hooks, which decides if it may be written without asking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Inside the git directory: only for this clone.
    GitDir,
    /// `core.hooksPath` names a folder in the worktree, whose files may be committed.
    WorkTree,
    /// Outside the repository; other repositories may use it.
    Outside,
    /// `core.hooksPath` is not a folder: hooks are disabled.
    Nowhere,
}

impl HooksFolder {
    /// The folder where git looks for this repository's hooks.
    pub fn of(repository: &Repository) -> Self {
        let Some(configured) = repository.hooks_path() else {
            let path = Self::default_path(repository);
            let standing = Self::standing(repository, &path);
            return Self { path, standing };
        };
        let standing = match Self::standing(repository, &configured.path) {
            // Even if it is in this repository, all other repositories use it too.
            Standing::GitDir | Standing::WorkTree if configured.origin == HooksPathOrigin::Machine => Standing::Outside,
            standing => standing,
        };
        Self {
            path: configured.path,
            standing,
        }
    }

    /// The folder where git looks if `core.hooksPath` is not set.
    pub(super) fn default_path(repository: &Repository) -> PathBuf {
        repository.common_dir().join("hooks")
    }

    fn standing(repository: &Repository, path: &Path) -> Standing {
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

/// The path with the links of all its existing parts resolved.
fn resolved(path: &Path) -> PathBuf {
    for existing in path.ancestors() {
        if let Ok(found) = existing.canonicalize() {
            let rest = path.strip_prefix(existing).unwrap_or(Path::new(""));
            // `join` with an empty path would add a slash, which is wrong for a file.
            return if rest.as_os_str().is_empty() {
                found
            } else {
                found.join(rest)
            };
        }
    }
    path.to_owned()
}
