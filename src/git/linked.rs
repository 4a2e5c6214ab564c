//! Checks linked worktrees: the worktree and its git directory must refer to each other.
//!
//! Anyone can commit a directory that git would recognize as a git directory, with a `gitdir` file or a `core.worktree`
//! setting that refers to a directory elsewhere. It cannot contain a `.git` in that directory that refers back.

use std::fs;
use std::path::{Path, PathBuf};

use super::open::{OpenError, Repository};

impl Repository {
    /// Returns the root directories of the existing worktrees created by `git worktree add`, in no particular order.
    pub fn linked_work_trees(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.common_dir().join("worktrees"));
        let root_of = |entry: fs::DirEntry| {
            let git_dir = fs::canonicalize(entry.path()).ok()?;
            let named = gix::discover::path::from_plain_file_relative_to_file(&git_dir.join("gitdir"))?.ok()?;
            let root = fs::canonicalize(named.parent()?).ok()?;
            is_work_tree(&root, &git_dir).then_some(root)
        };
        entries.into_iter().flatten().flatten().filter_map(root_of).collect()
    }
}

/// Fails if a worktree and its git directory do not both refer to each other. All paths must be absolute and free of
/// symbolic links.
pub(super) fn check_mutual_links(git_dir: &Path, common_dir: &Path, work_dir: Option<&Path>) -> Result<(), OpenError> {
    let is_linked = git_dir.join("commondir").symlink_metadata().is_ok();
    if is_linked && !is_listed(git_dir, common_dir) {
        return Err(OpenError::Unlisted {
            path: git_dir.to_owned(),
            common_dir: common_dir.to_owned(),
        });
    }
    let Some(work_dir) = work_dir else { return Ok(()) };
    let is_free = !is_linked && (contains_git_dir(work_dir, git_dir) || !may_be_committed(git_dir));
    if is_free || is_work_tree(work_dir, git_dir) {
        Ok(())
    } else {
        Err(OpenError::NotItsWorkTree {
            path: git_dir.to_owned(),
            work_dir: work_dir.to_owned(),
        })
    }
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

/// Returns true if the worktree is the parent directory of the git directory, or below that directory.
fn contains_git_dir(work_dir: &Path, git_dir: &Path) -> bool {
    git_dir.parent().is_some_and(|folder| work_dir.starts_with(folder))
}

/// Returns true if another repository could contain the git directory as committed files. git commits nothing below a
/// directory named `.git`, for example submodules.
fn may_be_committed(git_dir: &Path) -> bool {
    let is_dot_git = |folder: &&Path| folder.file_name().is_some_and(|name| name.eq_ignore_ascii_case(".git"));
    let mut folders = git_dir.ancestors().take_while(|folder| !is_dot_git(folder)).skip(1);
    folders.any(|folder| folder.join(".git").symlink_metadata().is_ok())
}
