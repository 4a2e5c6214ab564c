//! The life of a file.

use std::collections::HashMap;

use crate::model::RepoPath;

use super::follow::{ABSENT, Followed, Step, Timeline, follow, last_step};
use super::record::{Entry, PathChange};
use super::store::{History, HistoryError, Reachable};

/// A change in the life of a file, under the path that it had then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileChange {
    /// Its path.
    pub path: RepoPath,
    /// The change.
    pub change: PathChange,
}

/// The life of a file up to a commit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileLife {
    /// Children before parents, those that are neither by the time of their commits, the last first.
    pub changes: Vec<FileChange>,
    /// What the commit has at the path; `None` if it is no longer there.
    pub now: Option<Entry>,
}

/// The life of `path` as the commit `tip` sees it. A path that is no longer there is followed from its last deletion.
pub fn file_life(history: &History, tip: u32, reached: &Reachable, path: &RepoPath) -> Result<FileLife, HistoryError> {
    let mut files = Files {
        history,
        changes: HashMap::new(),
    };
    let steps = files.steps(path)?;
    let start = match state_at(history, tip, &steps) {
        ABSENT => last_deletion(reached, &steps),
        _ => Some(tip),
    };
    let Some(start) = start else {
        return Ok(FileLife::default());
    };
    let mut found = follow(history, start, path, &mut files)?;
    found.sort_by_key(|followed| std::cmp::Reverse(history.order_of(followed.step.commit)));
    let changes = found.iter().map(|followed| files.change(followed)).collect::<Vec<_>>();
    let is_there = start == tip && !changes.is_empty();
    Ok(FileLife {
        now: changes.first().filter(|_| is_there).and_then(|first| first.change.new),
        changes,
    })
}

/// What a thing with these steps stands for at a commit.
pub(super) fn state_at<K>(history: &History, tip: u32, steps: &[Step<K>]) -> u64 {
    last_step(history, steps, tip).map_or(ABSENT, |step| step.new)
}

pub(super) fn last_deletion<K>(reached: &Reachable, steps: &[Step<K>]) -> Option<u32> {
    let deletions = steps
        .iter()
        .rev()
        .filter(|step| step.new == ABSENT && reached.has(step.commit));
    // A path that was never deleted on the way here was left behind on the other side of a merge.
    let others = steps.iter().rev().filter(|step| reached.has(step.commit));
    deletions.chain(others).map(|step| step.commit).next()
}

struct Files<'a> {
    history: &'a History,
    changes: HashMap<RepoPath, Vec<PathChange>>,
}

impl Files<'_> {
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

    fn steps(&mut self, path: &RepoPath) -> Result<Vec<Step<RepoPath>>, HistoryError> {
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
}

fn state_of(entry: Option<Entry>) -> u64 {
    let Some(entry) = entry else { return ABSENT };
    let mut first = [0; 8];
    first.copy_from_slice(&entry.oid.as_bytes()[..8]);
    u64::from_le_bytes(first).wrapping_add(entry.mode as u64) | 2
}
