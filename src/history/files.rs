//! Finds the history of a file.

use std::collections::{HashMap, HashSet};

use crate::model::RepoPath;

use super::follow::{ABSENT, Followed, Step, Timeline, follow, last_step, name_at};
use super::record::{Entry, PathChange};
use super::store::{History, HistoryError, Reachable};

/// A change of a file, with the path of the file in the commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileChange {
    /// The path of the file in the commit.
    pub path: RepoPath,
    /// The change of the file.
    pub change: PathChange,
}

/// The history of a file up to a commit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileHistory {
    /// The changes. Children come before parents; unrelated commits are ordered by time, latest first.
    pub changes: Vec<FileChange>,
    /// The entry of the path in the commit; `None` if the path does not exist there.
    pub now: Option<Entry>,
    /// The histories of earlier files at the same path, which were replaced when this file was moved there. The latest
    /// file comes first. Each history is ordered like `changes`.
    pub earlier: Vec<Vec<FileChange>>,
}

/// Returns the history of `path` up to the commit `tip`. If the path was deleted, returns the history up to the last
/// deletion.
pub fn file_history(
    history: &History,
    tip: u32,
    reached: &Reachable,
    path: &RepoPath,
) -> Result<FileHistory, HistoryError> {
    let mut files = Files::new(history);
    let steps = files.steps(path, tip)?;
    let start = match state_at(history, tip, &steps) {
        ABSENT => last_deletion(reached, &steps),
        _ => Some(tip),
    };
    let Some(start) = start else {
        return Ok(FileHistory::default());
    };
    let mut seen = HashSet::new();
    let changes = files.life(start, path, &mut seen)?;
    let mut lives = vec![changes];
    // If the file was moved to the path, it may have replaced an earlier file there.
    while let Some(earlier) = files.earlier(path, lives.last().map_or(&[], Vec::as_slice), &steps, &mut seen)? {
        lives.push(earlier);
    }
    let changes = lives.remove(0);
    let is_there = start == tip && !changes.is_empty();
    Ok(FileHistory {
        now: changes.first().filter(|_| is_there).and_then(|first| first.change.new),
        changes,
        earlier: lives,
    })
}

/// Returns the path in the parent `parent` of a file that the merge `number` contains at `path`. Returns `None` if that
/// parent does not contain the file or has it at the same path.
pub(super) fn path_at(
    history: &History,
    (number, parent): (u32, u32),
    path: &RepoPath,
) -> Result<Option<RepoPath>, HistoryError> {
    name_at(history, (number, parent), path, &mut Files::new(history))
}

/// Returns the state of an item with these steps in the commit `tip`.
pub(super) fn state_at<K>(history: &History, tip: u32, steps: &[Step<K>]) -> u64 {
    last_step(history, steps, tip).map_or(ABSENT, |step| step.new)
}

pub(super) fn last_deletion<K>(reached: &Reachable, steps: &[Step<K>]) -> Option<u32> {
    let deletions = steps
        .iter()
        .rev()
        .filter(|step| step.new == ABSENT && reached.has(step.commit));
    // If no reachable commit deleted the path, a merge dropped it. Then use the last change.
    let others = steps.iter().rev().filter(|step| reached.has(step.commit));
    deletions.chain(others).map(|step| step.commit).next()
}

struct Files<'a> {
    history: &'a History,
    changes: HashMap<RepoPath, Vec<PathChange>>,
}

impl<'a> Files<'a> {
    fn new(history: &'a History) -> Self {
        Self {
            history,
            changes: HashMap::new(),
        }
    }

    /// Returns the changes that led to the current state of a file in the commit `start`, except those in `seen`.
    fn life(
        &mut self,
        start: u32,
        path: &RepoPath,
        seen: &mut HashSet<(RepoPath, u32)>,
    ) -> Result<Vec<FileChange>, HistoryError> {
        let history = self.history;
        let mut found = follow(history, start, path, self)?;
        found.retain(|followed| seen.insert((followed.key.clone(), followed.step.commit)));
        found.sort_by_key(|followed| std::cmp::Reverse(history.order_of(followed.step.commit)));
        Ok(found.iter().map(|followed| self.change(followed)).collect())
    }

    /// Returns the history of the file that was at a path before a change in `later` moved another file there.
    fn earlier(
        &mut self,
        path: &RepoPath,
        later: &[FileChange],
        steps: &[Step<RepoPath>],
        seen: &mut HashSet<(RepoPath, u32)>,
    ) -> Result<Option<Vec<FileChange>>, HistoryError> {
        let moves = later
            .iter()
            .filter(|found| found.path == *path && found.change.origin.is_some());
        for moved in moves.map(|found| found.change.commit).collect::<Vec<u32>>() {
            let before = self.history.parents(moved).first().copied().flatten();
            let reached = self.history.reachable(before.as_slice());
            let mut deletions = steps
                .iter()
                .rev()
                .filter(|step| step.new == ABSENT && reached.has(step.commit));
            if let Some(deletion) = deletions.next() {
                let life = self.life(deletion.commit, path, seen)?;
                if !life.is_empty() {
                    return Ok(Some(life));
                }
            }
        }
        Ok(None)
    }

    fn change(&self, followed: &Followed<RepoPath>) -> FileChange {
        let of_path = self.changes.get(&followed.key).map(Vec::as_slice).unwrap_or_default();
        let at = of_path.binary_search_by_key(&followed.step.commit, |change| change.commit);
        FileChange {
            path: followed.key.clone(),
            change: of_path[at.expect("what was followed was looked up here")].clone(),
        }
    }
}

impl Timeline for Files<'_> {
    type Key = RepoPath;
    type Error = HistoryError;

    fn steps(&mut self, path: &RepoPath, _last: u32) -> Result<Vec<Step<RepoPath>>, HistoryError> {
        let changes = self.history.changes_of(path.as_bytes())?;
        let steps = changes.iter().map(|change| Step {
            commit: change.commit,
            old: state_of(change.old),
            new: state_of(change.new),
            origin: change.origin.as_ref().map(|origin| origin.path.clone()),
        });
        let steps = steps.collect();
        self.changes.insert(path.clone(), changes);
        Ok(steps)
    }

    fn origin(&mut self, _path: &RepoPath, step: &Step<RepoPath>) -> Result<Option<RepoPath>, HistoryError> {
        Ok(step.origin.clone())
    }

    fn successors(&mut self, path: &RepoPath, number: u32) -> Result<Vec<RepoPath>, HistoryError> {
        let changes = self.history.changes_at(number)?.into_iter();
        let moved = changes.filter(|change| change.origin.as_ref().is_some_and(|origin| origin.path == *path));
        Ok(moved.map(|change| change.path).collect())
    }
}

fn state_of(entry: Option<Entry>) -> u64 {
    let Some(entry) = entry else { return ABSENT };
    let mut first = [0; 8];
    first.copy_from_slice(&entry.oid.as_bytes()[..8]);
    u64::from_le_bytes(first).wrapping_add(entry.mode as u64) | 2
}
