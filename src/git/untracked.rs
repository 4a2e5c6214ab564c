//! Finds files of a worktree that are neither tracked nor ignored.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use bstr::ByteSlice;
use gix::index::entry::Mode;

use super::beneath::{self, Root};
use super::index::Index;
use super::irregular::RulesFiles;
use super::scan::{self, DiskRules, Unknown};
use super::worktree::WorkTreeError;

/// The directory of codescout's own data, which is skipped.
const SIDECAR: &[u8] = b".codescout";

/// The result of [`find`].
#[derive(Default)]
pub(super) struct Untracked {
    /// The paths of the untracked files, sorted.
    pub(super) files: Vec<Vec<u8>>,
    /// Directories that could not be listed, with the error.
    pub(super) unreadable: Vec<(Vec<u8>, io::Error)>,
}

/// Returns the files that are not ignored, among `candidates` and below the directories in `candidates`. Skips other
/// repositories and git directories.
pub(super) fn find(
    local: &gix::Repository,
    index: &Index,
    root: &Root,
    rules: &DiskRules,
    mut candidates: Vec<Unknown>,
    interrupt: &AtomicBool,
) -> Result<Untracked, WorkTreeError> {
    let mut untracked = Untracked::default();
    if candidates.is_empty() {
        return Ok(untracked);
    }
    let source = gix::worktree::stack::state::ignore::Source::WorktreeThenIdMappingIfNotSkipped;
    let mut ignores = local
        .excludes(index.state(), None, source)
        .map_err(WorkTreeError::rules)?;
    let mut rules_files = RulesFiles::default();
    // Ignore files apply to a directory, so sorting ensures that each is read only once.
    candidates.sort_unstable_by(|a, b| b.cmp(a));
    while let Some(candidate) = candidates.pop() {
        if interrupt.load(Ordering::Relaxed) {
            return Err(WorkTreeError::Interrupted);
        }
        if is_sidecar(&candidate.path) {
            continue;
        }
        rules_files
            .check(root, &candidate.path)
            .map_err(|error| WorkTreeError::Rules(Box::new(error)))?;
        let mode = if candidate.is_folder { Mode::DIR } else { Mode::FILE };
        let is_ignored = ignores
            .at_entry(candidate.path.as_bstr(), Some(mode))
            .map_err(WorkTreeError::rules)?
            .is_excluded();
        if is_ignored {
            continue;
        }
        if !candidate.is_folder {
            untracked.files.push(candidate.path);
            continue;
        }
        match list_unless_repository(root, &candidate.path, rules) {
            Ok(mut entries) => {
                entries.sort_unstable_by(|a, b| b.cmp(a));
                candidates.extend(entries);
            }
            Err(error) if beneath::is_absence(&error) || beneath::is_of_git(&error) => {}
            Err(error) => untracked.unreadable.push((candidate.path, error)),
        }
    }
    untracked.files.sort_unstable();
    Ok(untracked)
}

pub(super) fn is_sidecar(path: &[u8]) -> bool {
    path.strip_prefix(SIDECAR)
        .is_some_and(|rest| rest.is_empty() || rest[0] == b'/')
}

fn list_unless_repository(root: &Root, path: &[u8], rules: &DiskRules) -> io::Result<Vec<Unknown>> {
    let folder = root.folder_to_list(path)?;
    if is_repository(&folder) {
        return Ok(Vec::new());
    }
    let entries = scan::list(folder, rules)?;
    if scan::is_git_dir(&entries) {
        return Ok(Vec::new());
    }
    Ok(entries.into_iter().map(|entry| entry.inside(path)).collect())
}

/// Returns true if the directory is the worktree of another repository: its `.git` is a file, or a directory that
/// contains `HEAD`.
fn is_repository(folder: &std::os::fd::OwnedFd) -> bool {
    use std::os::fd::AsFd;
    match beneath::stat(folder.as_fd(), b".git").map(|found| rustix::fs::FileType::from_raw_mode(found.st_mode)) {
        Ok(rustix::fs::FileType::RegularFile) => true,
        Ok(rustix::fs::FileType::Directory) => beneath::stat(folder.as_fd(), b".git/HEAD").is_ok(),
        _ => false,
    }
}
