//! What was there and is there no longer: the last versions of deleted files, and how long a version of a file lived.

use std::collections::{BTreeMap, HashSet};

use crate::git::FileMode;
use crate::model::{Oid, RepoPath};

use super::record::{Entry, PathChange};
use super::store::{History, HistoryError, Reachable};

/// A file that a commit deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GoneFile {
    /// Where it was.
    pub path: RepoPath,
    /// What it was at last.
    pub entry: Entry,
    /// The commit that deleted it.
    pub commit: u32,
}

/// The commits that a version of a file lived through.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlobLife {
    /// The first with it; `None` if none is recorded.
    pub first: Option<u32>,
    /// The last that took it away, if any did; it may have come back.
    pub gone: Option<u32>,
}

/// The last version of each file that a commit deleted and did not move, the latest deletion first, at most `limit`. Depends on the
/// records alone.
pub fn gone_files(history: &History, limit: usize) -> Result<Vec<GoneFile>, HistoryError> {
    let mut gone: Vec<GoneFile> = Vec::new();
    for batch in history.batches() {
        let runs = batch.runs()?;
        let changes = || {
            runs.iter()
                .flat_map(|(path, run)| run.iter().map(move |change| (*path, change)))
        };
        let origins =
            changes().filter_map(|(_, change)| Some((change.commit, change.origin.as_ref()?.path.as_bytes())));
        let moved: HashSet<(u32, &[u8])> = origins.collect();
        let is_deletion = |change: &PathChange| change.new.is_none() && history.parents(change.commit).len() < 2;
        for (path, change) in changes().filter(|(_, change)| is_deletion(change)) {
            let entry = change
                .old
                .filter(|old| matches!(old.mode, FileMode::File | FileMode::Executable));
            if let Some(entry) = entry.filter(|_| !moved.contains(&(change.commit, path))) {
                gone.push(GoneFile {
                    path: RepoPath::new(path),
                    entry,
                    commit: change.commit,
                });
            }
        }
    }
    gone.sort_by_key(|gone| std::cmp::Reverse(history.order_of(gone.commit)));
    let mut seen = HashSet::new();
    gone.retain(|gone| seen.insert((gone.entry.oid, gone.path.clone())));
    gone.truncate(limit);
    Ok(gone)
}

/// Every version of every file in commits among `reached` whose blob `is_wanted`, each once, ascending by path.
pub fn versions(
    history: &History,
    reached: &Reachable,
    is_wanted: &dyn Fn(Oid) -> bool,
) -> Result<BTreeMap<(RepoPath, Oid), FileMode>, HistoryError> {
    let mut found = BTreeMap::new();
    for batch in history.batches() {
        for (path, run) in batch.runs()? {
            for change in run.iter().filter(|change| reached.has(change.commit)) {
                for entry in [change.old, change.new].into_iter().flatten() {
                    if is_wanted(entry.oid) {
                        found.insert((RepoPath::new(path), entry.oid), entry.mode);
                    }
                }
            }
        }
    }
    Ok(found)
}

/// How long a blob stood at a path, by the commits among `reached`.
pub fn blob_life(history: &History, reached: &Reachable, path: &RepoPath, blob: Oid) -> Result<BlobLife, HistoryError> {
    let is_blob = |entry: Option<Entry>| entry.is_some_and(|entry| entry.oid == blob);
    let mut changes = history.changes_of(path.as_bytes())?;
    changes.retain(|change| reached.has(change.commit) && is_blob(change.old) != is_blob(change.new));
    let order = |commit: &u32| history.order_of(*commit);
    let put = changes.iter().filter(|change| is_blob(change.new));
    let taken = changes.iter().filter(|change| is_blob(change.old));
    Ok(BlobLife {
        first: put.map(|change| change.commit).min_by_key(order),
        gone: taken.map(|change| change.commit).max_by_key(order),
    })
}
