//! Whether git is in the middle of something.

use std::path::Path;

/// What git keeps in a work tree's git directory while a rebase, am, cherry-pick, revert, merge or bisect goes on.
pub(super) const OPERATION_MARKS: [&str; 7] = [
    "rebase-merge",
    "rebase-apply",
    "sequencer",
    "CHERRY_PICK_HEAD",
    "REVERT_HEAD",
    "MERGE_HEAD",
    "BISECT_LOG",
];

/// Whether more is to come in the work tree with this git directory before what is checked out is worth indexing.
pub fn is_in_operation(git_dir: &Path) -> bool {
    OPERATION_MARKS
        .iter()
        .any(|mark| git_dir.join(mark).symlink_metadata().is_ok())
}
