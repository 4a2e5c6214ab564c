//! Detects repositories inside other repositories, and bare repositories that the user did not name explicitly.
//!
//! A checkout can contain a complete bare repository as ordinary files, and an archive can contain any repository. So
//! the author of the outer repository may have crafted the inner one.

use std::path::Path;

use super::command;
use super::linked::{is_listed, is_named_git_dir};
use super::open::{OpenError, Repository};
use super::worktree::WorkTreeError;

impl Repository {
    /// Returns true if `other` is a worktree of the same repository. Requires more than a `commondir` file, because
    /// anyone can write one.
    pub fn is_work_tree_of(&self, other: &Self) -> bool {
        let common = self.common_dir();
        common == other.common_dir() && (self.git_dir() == common || is_listed(self.git_dir(), common))
    }

    /// Returns a directory from which git discovers this repository: the worktree or, if discovery from there fails
    /// because of `core.worktree`, the git directory.
    pub fn discovery_dir(&self) -> &Path {
        let is_found = |folder: &&Path| Self::discover(folder).is_ok_and(|found| found.git_dir() == self.git_dir());
        self.work_dir().filter(is_found).unwrap_or(self.git_dir())
    }

    /// Returns true if this repository is inside another one, even partly. Examples are a submodule, a clone below a
    /// worktree, and a bare repository among the files of a worktree.
    pub fn is_inside_another(&self) -> bool {
        let places = [Some(self.git_dir()), self.work_dir()];
        let around = places.into_iter().flatten().flat_map(repositories_around);
        // A repository that cannot be opened counts as another one.
        around
            .into_iter()
            .any(|found| !found.is_ok_and(|other| self.is_work_tree_of(&other)))
    }

    /// Returns true if `path`, or a path below it, is in the index of the main worktree or of a worktree that contains
    /// this repository. `path` must be absolute.
    pub fn tracks_at(&self, path: &Path) -> Result<bool, WorkTreeError> {
        let main = self.main_work_dir();
        let mut above = path;
        if let Some((main, inside)) = main
            .as_deref()
            .and_then(|main| Some((main, path.strip_prefix(main).ok()?)))
        {
            if self.tracks(inside.as_os_str().as_encoded_bytes())? {
                return Ok(true);
            }
            above = main;
        }
        for other in repositories_around(above).flatten() {
            let inside = other.work_dir().and_then(|root| path.strip_prefix(root).ok());
            if let Some(inside) = inside
                && other.tracks_here(inside.as_os_str().as_encoded_bytes())?
            {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Returns the repositories that contain the parent directories of `path`, nearest first. A repository that cannot be
/// opened is returned as an error.
fn repositories_around(path: &Path) -> impl Iterator<Item = Result<Repository, OpenError>> {
    let mut next = path.parent().map(Path::to_owned);
    std::iter::from_fn(move || {
        let from = next.take()?;
        let found = Repository::discover(&from);
        next = match &found {
            Err(OpenError::NotARepository { .. }) => return None,
            Err(_) => from.parent(),
            Ok(other) => {
                let places = [other.work_dir(), Some(other.git_dir())].into_iter().flatten();
                let top = places
                    .filter(|place| from.starts_with(place))
                    .min_by_key(|place| place.as_os_str().len());
                top.unwrap_or(&from).parent()
            }
        }
        .map(Path::to_owned);
        Some(found)
    })
}

/// Rejects a bare repository that was discovered rather than named, if the user's `safe.bareRepository` demands that.
///
/// Source: `is_implicit_bare_repo` in git's `setup.c`. A `.git` directory, including that of a worktree or submodule,
/// does not count as bare.
pub(super) fn check_bare(start: &Path, git_dir: &Path) -> Result<(), OpenError> {
    let text = git_dir.to_string_lossy();
    let is_part_of_another = ["/.git/worktrees/", "/.git/modules/"]
        .iter()
        .any(|part| text.contains(part));
    if !start.starts_with(git_dir) || git_dir.ends_with(".git") || is_part_of_another {
        return Ok(());
    }
    if !is_named_git_dir(git_dir) && command::refuses_bare_repositories(git_dir) {
        Err(OpenError::Bare {
            path: git_dir.to_owned(),
        })
    } else {
        Ok(())
    }
}
