//! Reads the changes of many commits from the repository, on several threads.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use parking_lot::Mutex;

use crate::git::{ObjectError, ObjectReader, Repository, TreeChange};
use crate::model::{CommitId, RepoPath, TreeId, explain_by};

use super::record::{Boundary, Change, CommitData};
use super::renames::find_renames;

/// The result of reading a group of commits.
type ChunkResult = Result<Vec<CommitData>, CollectError>;

/// Number of commits that a thread reads as a group. Neighbouring commits have trees in common, which the reader
/// caches.
const COMMITS_A_TURN: usize = 64;
/// Size limit of each thread's cache of decoded trees, in bytes.
const KEPT_BYTES: usize = 48 << 20;

/// An error from reading commits.
#[derive(Debug, thiserror::Error)]
pub enum CollectError {
    /// An object is damaged or has the wrong type.
    #[error(transparent)]
    Object(#[from] ObjectError),
    /// The interrupt flag was set.
    #[error("interrupted")]
    Interrupted,
}

explain_by!(CollectError: Object; Interrupted);

/// Reads `commits` in the given order, each with its changes from its first parent. Calls `advance` after each commit.
pub fn collect(
    repository: &Repository,
    commits: &[(CommitId, Boundary)],
    n_threads: usize,
    advance: &(dyn Fn() + Sync),
    interrupt: &AtomicBool,
) -> Result<Vec<CommitData>, CollectError> {
    let turns: Vec<&[(CommitId, Boundary)]> = commits.chunks(COMMITS_A_TURN).collect();
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<(usize, ChunkResult)>> = Mutex::new(Vec::new());
    let work = || {
        let mut reader = repository.reader();
        reader.keep_decoded(KEPT_BYTES);
        reader.keep_bases();
        loop {
            let turn = next.fetch_add(1, Ordering::Relaxed);
            let Some(commits) = turns.get(turn) else { break };
            let read = commits.iter().map(|&(id, boundary)| {
                if interrupt.load(Ordering::Relaxed) {
                    return Err(CollectError::Interrupted);
                }
                let data = commit_data(&mut reader, id, boundary)?;
                advance();
                Ok(data)
            });
            let read: ChunkResult = read.collect();
            let is_over = read.is_err();
            done.lock().push((turn, read));
            if is_over {
                break;
            }
        }
    };
    let n_threads = n_threads.clamp(1, turns.len().max(1));
    std::thread::scope(|scope| {
        for _ in 1..n_threads {
            scope.spawn(work);
        }
        work();
    });
    let mut done = done.into_inner();
    done.sort_unstable_by_key(|(turn, _)| *turn);
    let mut all = Vec::with_capacity(commits.len());
    for (_, read) in done {
        all.extend(read?);
    }
    if all.len() == commits.len() {
        Ok(all)
    } else {
        Err(CollectError::Interrupted)
    }
}

fn commit_data(reader: &mut ObjectReader, id: CommitId, boundary: Boundary) -> Result<CommitData, ObjectError> {
    let mut info = reader.commit(id)?;
    if boundary == Boundary::Shallow {
        info.parents.clear();
    }
    let (changes, is_unknown) = match changes_of(reader, info.tree, &info.parents) {
        Ok((changes, has_all_renames)) => (changes, !has_all_renames),
        // The repository is a partial clone without trees, a parent is missing, an object is damaged, or crafted trees
        // contain more files than can be compared.
        Err(_) => (Vec::new(), true),
    };
    Ok(CommitData {
        id,
        parents: info.parents,
        author: info.author,
        committer: info.committer,
        message: info.message,
        encoding: info.encoding,
        boundary,
        is_unknown,
        changes,
    })
}

/// Returns the changes of a commit, and true if all files needed to detect renames could be read.
fn changes_of(
    reader: &mut ObjectReader,
    tree: TreeId,
    parents: &[CommitId],
) -> Result<(Vec<Change>, bool), ObjectError> {
    let mut trees = Vec::with_capacity(parents.len());
    for parent in parents {
        trees.push(reader.commit(*parent)?.tree);
    }
    let (mut changes, has_all_renames) = changes_between(reader, trees.first().copied(), tree)?;
    mark_combined(reader, tree, trees.get(1..).unwrap_or_default(), &mut changes)?;
    Ok((changes, has_all_renames))
}

/// Returns `changes` with the origins of renamed files set.
pub fn with_renames(reader: &mut ObjectReader, mut changes: Vec<Change>) -> Result<Vec<Change>, ObjectError> {
    find_renames(reader, &mut changes)?;
    Ok(changes)
}

/// Returns the changes between two trees, ascending by path and with the origins of renamed files set. Also returns
/// true if all files needed to detect renames could be read.
fn changes_between(
    reader: &mut ObjectReader,
    from: Option<TreeId>,
    to: TreeId,
) -> Result<(Vec<Change>, bool), ObjectError> {
    let changed = reader.diff_trees(from, to)?;
    let mut changes: Vec<Change> = changed.into_iter().map(to_change).collect();
    changes.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    // If a file became a directory or a directory became a file, the diff has two entries for the path. Merge them.
    changes.dedup_by(|later, earlier| later.path == earlier.path && merge_halves(earlier, later));
    let has_all_renames = find_renames(reader, &mut changes)?;
    Ok((changes, has_all_renames))
}

fn to_change(change: TreeChange) -> Change {
    Change {
        path: change.path,
        old: change.old.map(Into::into),
        new: change.new.map(Into::into),
        origin: None,
        is_combined: false,
    }
}

fn merge_halves(earlier: &mut Change, later: &mut Change) -> bool {
    earlier.old = earlier.old.or(later.old);
    earlier.new = earlier.new.or(later.new);
    true
}

/// Marks the changes of a merge whose content differs from every parent.
fn mark_combined(
    reader: &mut ObjectReader,
    tree: TreeId,
    others: &[TreeId],
    changes: &mut [Change],
) -> Result<(), ObjectError> {
    if others.is_empty() || changes.is_empty() {
        return Ok(());
    }
    let mut is_combined = vec![true; changes.len()];
    for other in others {
        let paths: Vec<&RepoPath> = changes.iter().map(|change| &change.path).collect();
        let differing = reader.diff_trees_at(Some(*other), tree, &paths)?;
        let mut differing: Vec<RepoPath> = differing.into_iter().map(|change| change.path).collect();
        differing.sort_unstable();
        for (is_combined, path) in is_combined.iter_mut().zip(paths) {
            *is_combined &= differing.binary_search(path).is_ok();
        }
    }
    for (change, is_combined) in changes.iter_mut().zip(is_combined) {
        change.is_combined = is_combined;
    }
    Ok(())
}
