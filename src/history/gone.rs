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

/// A file is followed back across so many renames.
const MAX_RENAMES: usize = 16;

/// The commits that a text in a file lived through.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TextLife {
    /// The first with it; `None` if none is recorded.
    pub first: Option<u32>,
    /// The one that took it away from its last path, if one did.
    pub gone: Option<u32>,
    /// Where it stood, the last path first.
    pub paths: Vec<RepoPath>,
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

/// Where a text of the version `blob` of a file came from and went, by the commits among `reached`: `has_text` says whether a version
/// has it. Versions are looked at in the order of their commits by doubling steps and halving, and the file is followed back across
/// its renames; so a text that went and came back may be told from or up to one of those times.
pub fn text_life<E: From<HistoryError>>(
    history: &History,
    reached: &Reachable,
    (path, blob): (&RepoPath, Oid),
    has_text: &mut dyn FnMut(Oid) -> Result<bool, E>,
) -> Result<TextLife, E> {
    let mut life = TextLife::default();
    let is_blob = |change: &PathChange| change.new.is_some_and(|entry| entry.oid == blob);
    let mut has = |change: &PathChange| match change.new {
        Some(entry) if entry.oid == blob => Ok(true),
        Some(entry) => has_text(entry.oid),
        None => Ok(false),
    };
    let mut changes = changes_in_order(history, reached, path)?;
    let Some(mut from) = changes.iter().position(is_blob) else {
        return Ok(life);
    };
    let after = &changes[changes.iter().rposition(is_blob).unwrap_or(from) + 1..];
    let n_after = n_with(after.len(), &mut |at| has(&after[at]))?;
    life.gone = after.get(n_after).map(|change| change.commit);
    life.paths.push(path.clone());
    for _ in 0..MAX_RENAMES {
        let n_before = n_with(from, &mut |steps| has(&changes[from - 1 - steps]))?;
        let first = &changes[from - n_before];
        life.first = Some(first.commit);
        let Some(origin) = first.origin.as_ref().filter(|_| n_before == from) else {
            break;
        };
        let moved_at = history.order_of(first.commit);
        let mut older = changes_in_order(history, reached, &origin.path)?;
        older.retain(|change| history.order_of(change.commit) < moved_at);
        let Some(last) = older.last() else { break };
        if !has(last)? {
            break;
        }
        life.paths.push(origin.path.clone());
        from = older.len() - 1;
        changes = older;
    }
    Ok(life)
}

/// How many of the first `n` have it, when those that have it come before those that have not.
fn n_with<E>(n: usize, has: &mut dyn FnMut(usize) -> Result<bool, E>) -> Result<usize, E> {
    let (mut low, mut step) = (0, 1);
    // All below `low` have it.
    while low < n {
        let at = (low + step - 1).min(n - 1);
        if !has(at)? {
            let mut high = at;
            while low < high {
                let middle = low + (high - low) / 2;
                match has(middle)? {
                    true => low = middle + 1,
                    false => high = middle,
                }
            }
            return Ok(low);
        }
        low = at + 1;
        step *= 2;
    }
    Ok(n)
}

fn changes_in_order(history: &History, reached: &Reachable, path: &RepoPath) -> Result<Vec<PathChange>, HistoryError> {
    let mut changes = history.changes_of(path.as_bytes())?;
    changes.retain(|change| reached.has(change.commit));
    changes.sort_by_key(|change| history.order_of(change.commit));
    Ok(changes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_run_is_found_by_doubling_and_halving() {
        for n in 0..40 {
            for wanted in 0..=n {
                let mut n_asked = 0;
                let found = n_with(n, &mut |at| {
                    n_asked += 1;
                    Ok::<_, ()>(at < wanted)
                });
                assert_eq!(found, Ok(wanted), "{n}");
                assert!(n_asked <= 13, "{n_asked}");
            }
        }
    }
}
