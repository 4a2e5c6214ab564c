//! Checks that a worktree and its git directory refer to each other.
//!
//! An archive can contain any git directory, and anyone can commit a directory that git would recognize as one. Its
//! `gitdir` file or `core.worktree` setting can refer to any directory, but it cannot put a `.git` there that refers back.

use std::fs;
use std::path::{Path, PathBuf};

use super::command;
use super::open::{OpenError, Repository};

impl Repository {
    /// Returns the root directories of the existing worktrees created by `git worktree add`, in no particular order.
    pub fn linked_work_trees(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.common_dir().join("worktrees"));
        let root_of = |entry: fs::DirEntry| {
            let git_dir = fs::canonicalize(entry.path()).ok()?;
            let root = linked_work_tree(&git_dir)?;
            is_work_tree(&root, &git_dir).then_some(root)
        };
        entries.into_iter().flatten().flatten().filter_map(root_of).collect()
    }
}

/// Fails if a worktree and its git directory do not both refer to each other, unless the user names the worktree in the
/// environment. All paths must be absolute and free of symbolic links. `is_configured` is true if `core.worktree` is set.
///
/// It is not enough that the worktree contains the git directory: so does the home directory with an archive in it.
pub(super) fn check_mutual_links(
    git_dir: &Path,
    common_dir: &Path,
    work_dir: Option<&Path>,
    is_configured: bool,
) -> Result<(), OpenError> {
    let is_linked = git_dir.join("commondir").symlink_metadata().is_ok();
    if is_linked && !is_listed(git_dir, common_dir) {
        return Err(OpenError::Unlisted {
            path: git_dir.to_owned(),
            common_dir: common_dir.to_owned(),
        });
    }
    let Some(work_dir) = work_dir else { return Ok(()) };
    let refers_there = !is_linked || linked_work_tree(git_dir).is_some_and(|named| named == work_dir);
    let is_own = !is_linked && work_dir.starts_with(git_dir);
    // Without a configured worktree, a file or link `.git` can name the git directory of another folder.
    let is_of_other = !is_configured && git_dir.ends_with(".git") && git_dir.parent() != Some(work_dir);
    let is_confirmed = refers_there && is_work_tree(work_dir, git_dir) && !is_of_other;
    if !is_own && (is_confirmed || !is_linked && is_named(git_dir, work_dir)) {
        Ok(())
    } else {
        Err(OpenError::NotItsWorkTree {
            path: git_dir.to_owned(),
            work_dir: work_dir.to_owned(),
            is_linked,
        })
    }
}

/// Fails if the repository that was found from a folder is that of a folder elsewhere, unless the environment names it.
pub(super) fn check_start(start: &Path, repository: &Repository) -> Result<(), OpenError> {
    let (git_dir, work_dir) = (repository.git_dir(), repository.work_dir());
    let found_in = start
        .ancestors()
        .find(|folder| folder.join(".git").symlink_metadata().is_ok());
    let is_around = match work_dir {
        Some(work_dir) => start.starts_with(work_dir) || is_named(git_dir, work_dir),
        None => found_in.is_some_and(|folder| git_dir.starts_with(folder)) || is_named_git_dir(git_dir),
    };
    if is_around || start.starts_with(git_dir) {
        Ok(())
    } else {
        Err(OpenError::NotItsWorkTree {
            path: git_dir.to_owned(),
            work_dir: work_dir.or(found_in).unwrap_or(start).to_owned(),
            is_linked: false,
        })
    }
}

/// Returns true if the environment names the git directory.
pub(super) fn is_named_git_dir(git_dir: &Path) -> bool {
    command::named_git_dir().is_some_and(|named| named == git_dir)
}

/// Returns true if `GIT_WORK_TREE` names the worktree and `GIT_DIR` the git directory. For a hook, git sets only
/// `GIT_DIR`, so the other one comes from the user.
fn is_named(git_dir: &Path, work_dir: &Path) -> bool {
    command::named_work_tree().is_some_and(|named| named == work_dir) && is_named_git_dir(git_dir)
}

/// Returns the worktree that the `gitdir` file of a linked worktree's git directory names.
fn linked_work_tree(git_dir: &Path) -> Option<PathBuf> {
    let named = gix::discover::path::from_plain_file_relative_to_file(&git_dir.join("gitdir"))?.ok()?;
    fs::canonicalize(named.parent()?).ok()
}

/// Returns true if a git directory belongs to one of the repository's linked worktrees.
pub(super) fn is_listed(git_dir: &Path, common_dir: &Path) -> bool {
    fs::canonicalize(common_dir.join("worktrees")).is_ok_and(|list| git_dir.parent() == Some(&list))
}

/// Returns true if the `.git` of a worktree refers to this git directory.
fn is_work_tree(work_dir: &Path, git_dir: &Path) -> bool {
    let dot_git = work_dir.join(".git");
    let named = if dot_git.is_file() {
        gix::discover::path::from_gitdir_file(&dot_git).ok()
    } else {
        Some(dot_git)
    };
    named
        .and_then(|named| fs::canonicalize(named).ok())
        .is_some_and(|found| found == git_dir)
}
