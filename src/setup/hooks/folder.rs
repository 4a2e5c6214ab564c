//! The folder in which git looks for hooks, and whose it is.

use std::path::{Path, PathBuf};

use crate::git::{HooksPathOrigin, Repository};

/// Where git looks for hooks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HooksFolder {
    /// The folder; it need not be there.
    pub path: PathBuf,
    /// Whose it is.
    pub standing: Standing,
}

/// Whose a folder of hooks is, which decides whether it may be written to unasked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Inside the git directory: this clone's alone.
    GitDir,
    /// `core.hooksPath` leads into the work tree, to files that are or may be committed.
    WorkTree,
    /// It lies outside of the repository; other repositories may use it.
    Outside,
    /// `core.hooksPath` leads to no folder: hooks are switched off.
    Nowhere,
}

impl HooksFolder {
    /// Where git looks for this repository's hooks.
    pub fn of(repository: &Repository) -> Self {
        let Some(configured) = repository.hooks_path() else {
            let path = Self::default_path(repository);
            let standing = Self::standing(repository, &path);
            return Self { path, standing };
        };
        let standing = match Self::standing(repository, &configured.path) {
            // Even if it leads here, every other repository looks here too.
            Standing::GitDir | Standing::WorkTree if configured.origin == HooksPathOrigin::Machine => Standing::Outside,
            standing => standing,
        };
        Self {
            path: configured.path,
            standing,
        }
    }

    /// Where git looks when `core.hooksPath` is not set.
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

/// The path with the links of all its parts that exist followed.
fn resolved(path: &Path) -> PathBuf {
    for existing in path.ancestors() {
        if let Ok(found) = existing.canonicalize() {
            let rest = path.strip_prefix(existing).unwrap_or(Path::new(""));
            // `join` with nothing would add a slash, which a file does not bear.
            return if rest.as_os_str().is_empty() {
                found
            } else {
                found.join(rest)
            };
        }
    }
    path.to_owned()
}
