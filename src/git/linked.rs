//! Work trees that do not lie around their git directory, and whether both ends name each other.
//!
//! Anybody can commit a folder that git would take for a git directory, with a file `gitdir` or a setting `core.worktree` that names a folder
//! elsewhere. Nobody can commit the `.git` that would have to be there.

use std::fs;
use std::path::{Path, PathBuf};

use super::open::{OpenError, Repository};

impl Repository {
    /// The work trees that `git worktree add` has made and that are still there, in no order.
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

/// Refuses a work tree that would be read, and written to, though only one end names the other. All paths are absolute and without symbolic
/// links.
pub(super) fn check_ends(git_dir: &Path, common_dir: &Path, work_dir: Option<&Path>) -> Result<(), OpenError> {
    let is_linked = git_dir.join("commondir").symlink_metadata().is_ok();
    if is_linked && !is_listed(git_dir, common_dir) {
        return Err(OpenError::Unlisted {
            path: git_dir.to_owned(),
            common_dir: common_dir.to_owned(),
        });
    }
    let Some(work_dir) = work_dir else { return Ok(()) };
    let is_free = !is_linked && (is_around(work_dir, git_dir) || !may_be_committed(git_dir));
    if is_free || is_work_tree(work_dir, git_dir) {
        Ok(())
    } else {
        Err(OpenError::NotItsWorkTree {
            path: git_dir.to_owned(),
            work_dir: work_dir.to_owned(),
        })
    }
}

/// Whether a git directory is among those of a repository's linked work trees.
pub(super) fn is_listed(git_dir: &Path, common_dir: &Path) -> bool {
    fs::canonicalize(common_dir.join("worktrees")).is_ok_and(|list| git_dir.parent() == Some(&list))
}

/// Whether the `.git` of a work tree leads to this git directory.
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

/// Whether a work tree is the folder that the git directory is in, or inside it.
fn is_around(work_dir: &Path, git_dir: &Path) -> bool {
    git_dir.parent().is_some_and(|folder| work_dir.starts_with(folder))
}

/// Whether a git directory lies among the files of another work tree. git commits nothing that is below a `.git`, such as submodules.
fn may_be_committed(git_dir: &Path) -> bool {
    let is_dot_git = |folder: &&Path| folder.file_name().is_some_and(|name| name.eq_ignore_ascii_case(".git"));
    let mut folders = git_dir.ancestors().take_while(|folder| !is_dot_git(folder)).skip(1);
    folders.any(|folder| folder.join(".git").symlink_metadata().is_ok())
}
