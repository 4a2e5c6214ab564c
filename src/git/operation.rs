//! Detects unfinished git operations.

use std::path::Path;

/// Files that exist in a worktree's git directory during a rebase, am, cherry-pick, revert, merge or bisect.
pub(super) const OPERATION_MARKS: [&str; 7] = [
    "rebase-merge",
    "rebase-apply",
    "sequencer",
    "CHERRY_PICK_HEAD",
    "REVERT_HEAD",
    "MERGE_HEAD",
    "BISECT_LOG",
];

/// Returns true if such an operation is unfinished in the worktree with this git directory. Indexing the checkout
/// should then wait.
pub fn is_in_operation(git_dir: &Path) -> bool {
    OPERATION_MARKS
        .iter()
        .any(|mark| git_dir.join(mark).symlink_metadata().is_ok())
}
