//! Finds the last versions of deleted files, and the commits between which a file contained a text.

use std::collections::{BTreeMap, HashSet};

use crate::git::FileMode;
use crate::model::{Oid, RepoPath};
use crate::sidecar::PastVersions;

use super::files::path_at;
use super::record::{Entry, PathChange};
use super::store::{History, HistoryError, Reachable};

/// A past version of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PastFile {
    /// The path of the file.
    pub path: RepoPath,
    /// The tree entry of the version.
    pub entry: Entry,
    /// The last commit that added, replaced or deleted the version.
    pub commit: u32,
}

/// Limit on the number of renames and merges through which a text is followed back.
const MAX_STEPS_BACK: usize = 64;

/// The commits between which a file contained a text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TextLifetime {
    /// The first commit that contains the text; `None` if no recorded commit does.
    pub first: Option<u32>,
    /// The commit that removed the text from the last path; `None` if it still exists.
    pub gone: Option<u32>,
    /// The parent of `gone` that still contains the text.
    pub last: Option<u32>,
    /// The paths at which the file contained the text, latest first.
    pub paths: Vec<RepoPath>,
}

/// Returns the past versions of files to make searchable, latest first. Depending on `versions`, these are all
/// versions, or the last version of each deleted file and of each file that lost a definition, with at most `limit` of
/// each kind. Uses only the records, not the repository.
pub fn past_files(history: &History, versions: PastVersions, limit: usize) -> Result<Vec<PastFile>, HistoryError> {
    let mut found = match versions {
        PastVersions::All => all_files(history)?,
        PastVersions::Last => {
            let mut gone = deleted_file_versions(history)?;
            gone.truncate(limit);
            let mut reduced = versions_before_removals(history)?;
            reduced.truncate(limit);
            gone.append(&mut reduced);
            gone
        }
    };
    sort_latest_first(history, &mut found);
    Ok(found)
}

/// Sorts the versions, latest first, and removes duplicates.
fn sort_latest_first(history: &History, files: &mut Vec<PastFile>) {
    files.sort_by(|a, b| (history.order_of(b.commit), &a.path).cmp(&(history.order_of(a.commit), &b.path)));
    let mut seen = HashSet::new();
    files.retain(|file| seen.insert((file.entry.oid, file.path.clone())));
}

/// Returns the version of a file, or `None` if `entry` is not a file.
fn past_file(path: &[u8], entry: Option<Entry>, commit: u32) -> Option<PastFile> {
    Some(PastFile {
        path: RepoPath::new(path),
        entry: entry.filter(Entry::is_file)?,
        commit,
    })
}

/// Returns all versions in all commits.
fn all_files(history: &History) -> Result<Vec<PastFile>, HistoryError> {
    let mut found = Vec::new();
    for batch in history.batches() {
        for (path, run) in batch.runs()? {
            let both = run
                .iter()
                .flat_map(|change| [(change.commit, change.old), (change.commit, change.new)]);
            found.extend(both.filter_map(|(commit, entry)| past_file(path, entry, commit)));
        }
        // A version occurs more than once if the file alternated between versions.
        sort_latest_first(history, &mut found);
    }
    Ok(found)
}

/// Returns, for each file from which a commit removed a definition, the last version with that definition. The latest
/// comes first.
fn versions_before_removals(history: &History) -> Result<Vec<PastFile>, HistoryError> {
    let removals = history.removals()?.into_iter();
    // If the removal of a definition was merged, a commit on the merged side removed it.
    let is_own = |change: &PathChange| history.parents(change.commit).len() < 2 || change.is_combined;
    let mut found = removals
        .filter(|(_, change)| is_own(change))
        .filter_map(|(path, change)| past_file(path.as_bytes(), change.old, change.commit))
        .collect();
    sort_latest_first(history, &mut found);
    Ok(found)
}

/// Returns the last version of each deleted file, latest deletion first. Renamed files do not count as deleted.
fn deleted_file_versions(history: &History) -> Result<Vec<PastFile>, HistoryError> {
    let mut gone: Vec<PastFile> = Vec::new();
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
            if !moved.contains(&(change.commit, path)) {
                gone.extend(past_file(path, change.old, change.commit));
            }
        }
    }
    sort_latest_first(history, &mut gone);
    Ok(gone)
}

/// Returns the file versions that satisfy `is_wanted`, in the commits of `reached`. Each version is returned once,
/// ascending by path.
pub fn versions(
    history: &History,
    reached: &Reachable,
    is_wanted: &dyn Fn(&RepoPath, Entry) -> bool,
) -> Result<BTreeMap<(RepoPath, Oid), FileMode>, HistoryError> {
    let mut found = BTreeMap::new();
    for batch in history.batches() {
        for (path, run) in batch.runs()? {
            let path = RepoPath::new(path);
            for change in run.iter().filter(|change| reached.has(change.commit)) {
                for entry in [change.old, change.new].into_iter().flatten() {
                    if is_wanted(&path, entry) {
                        found.insert((path.clone(), entry.oid), entry.mode);
                    }
                }
            }
        }
    }
    Ok(found)
}

/// Finds the commits between which a file contained a text, as seen from the commit `tip`. The version `blob` of the
/// file at `path` must contain the text. `reached` are the commits reachable from `tip`, and `has_text` returns true if
/// a version contains the text.
///
/// Searches the changes in the first-parent history of the tip, by doubling and bisection. If a merge brought in a
/// change, searches for the change on the merged side. Follows renames of the file backwards. If the text was removed
/// and added again, the result may begin or end at any of these commits.
pub fn text_lifetime<E: From<HistoryError>>(
    history: &History,
    (tip, reached): (u32, &Reachable),
    (path, blob): (&RepoPath, Oid),
    has_text: &mut dyn FnMut(Oid) -> Result<bool, E>,
) -> Result<TextLifetime, E> {
    let mut life = TextLifetime::default();
    let mut has = |change: &PathChange| match change.new {
        Some(entry) if entry.oid == blob => Ok(true),
        Some(entry) => has_text(entry.oid),
        None => Ok(false),
    };
    let mut changes = reached_changes(history, reached, path)?;
    let with_blob = changes
        .iter()
        .filter(|change| change.new.is_some_and(|entry| entry.oid == blob));
    let with_blob: Vec<u32> = with_blob.map(|change| change.commit).collect();
    let (Some(first), Some(last)) = (with_blob.first(), with_blob.last()) else {
        return Ok(life);
    };
    let on_line = with_blob
        .iter()
        .rev()
        .find(|with| history.is_first_ancestor(**with, tip));
    let end = end_of(history, (tip, reached), &changes, *on_line.unwrap_or(last), &mut has)?;
    (life.gone, life.last) = end.map_or((None, None), |(gone, last)| (Some(gone), last));
    life.paths.push(path.clone());
    let mut from = *first;
    for _ in 0..MAX_STEPS_BACK {
        let before: Vec<&PathChange> = changes_along_first_parents(history, &changes, from).collect();
        let n_before = n_with(before.len(), &mut |at| has(before[at]))?;
        let Some(first) = n_before.checked_sub(1).map(|at| before[at]) else {
            break;
        };
        life.first = Some(first.commit);
        let merge = first.commit;
        let sides: Vec<u32> = history.parents(merge).iter().skip(1).copied().flatten().collect();
        let at_side = sides
            .iter()
            .find_map(|side| changes_along_first_parents(history, &changes, *side).next());
        if let Some(at_side) = at_side
            && has(at_side)?
        {
            from = at_side.commit;
            continue;
        }
        if let Some((name, at_side)) = name_on_side(history, (merge, &sides), reached, life.paths.last(), &mut has)? {
            from = at_side;
            changes = reached_changes(history, reached, &name)?;
            life.paths.push(name);
            continue;
        }
        let (Some(origin), Some(Some(parent))) = (&first.origin, history.parents(first.commit).first()) else {
            break;
        };
        let older = reached_changes(history, reached, &origin.path)?;
        let Some(last) = changes_along_first_parents(history, &older, *parent).next() else {
            break;
        };
        if !has(last)? {
            break;
        }
        life.paths.push(origin.path.clone());
        from = last.commit;
        changes = older;
    }
    Ok(life)
}

/// Finds a file on the side of a merge where its path differs, because another side renamed it. Returns its path there
/// and its last change on that side, if that version contains the text.
fn name_on_side<E: From<HistoryError>>(
    history: &History,
    (merge, sides): (u32, &[u32]),
    reached: &Reachable,
    path: Option<&RepoPath>,
    has: &mut dyn FnMut(&PathChange) -> Result<bool, E>,
) -> Result<Option<(RepoPath, u32)>, E> {
    for side in sides {
        let name = path
            .map(|path| path_at(history, (merge, *side), path))
            .transpose()?
            .flatten();
        let Some(name) = name else { continue };
        let changes = reached_changes(history, reached, &name)?;
        if let Some(last) = changes_along_first_parents(history, &changes, *side).next()
            && has(last)?
        {
            return Ok(Some((name, last.commit)));
        }
    }
    Ok(None)
}

/// Returns the commit after `from` that removed the text, and a parent of that commit that still contains it.
fn end_of<E>(
    history: &History,
    (tip, reached): (u32, &Reachable),
    changes: &[PathChange],
    mut from: u32,
    has: &mut dyn FnMut(&PathChange) -> Result<bool, E>,
) -> Result<Option<(u32, Option<u32>)>, E> {
    loop {
        let is_on_line = history.is_first_ancestor(from, tip);
        let taken = (!is_on_line).then(|| merge_of(history, (tip, reached), from)).flatten();
        let top = taken.map_or(tip, |(_, side)| side);
        let mut after: Vec<&PathChange> = changes_along_first_parents(history, changes, top)
            .take_while(|change| change.commit > from)
            .collect();
        after.reverse();
        let n_after = n_with(after.len(), &mut |at| has(after[at]))?;
        if let Some(gone) = after.get(n_after) {
            let gone = removal(history, changes, gone.commit, has)?;
            return Ok(Some((gone, history.parents(gone).first().copied().flatten())));
        }
        let Some((merge, side)) = taken else {
            return Ok(None);
        };
        let stands = changes_along_first_parents(history, changes, merge)
            .next()
            .map(&mut *has)
            .transpose()?;
        if stands != Some(true) {
            return Ok(Some((merge, Some(side))));
        }
        from = merge;
    }
}

/// Returns the merge that brought in the commit `from`, and the merged parent. Prefers merges in the first-parent
/// history of the tip, then the earliest.
fn merge_of(history: &History, (tip, reached): (u32, &Reachable), from: u32) -> Option<(u32, u32)> {
    let merges = (from + 1..=tip).filter(|number| reached.has(*number));
    let sides = merges.flat_map(|merge| {
        let sides = history.parents(merge).iter().skip(1).flatten();
        sides.map(move |side| (merge, *side))
    });
    sides
        .filter(|(_, side)| history.is_first_ancestor(from, *side))
        .min_by_key(|(merge, _)| (!history.is_first_ancestor(*merge, tip), *merge))
}

/// Returns the commit that removed the text. `gone` does not contain the text, but its first parent does. If `gone` is
/// a merge, searches the merged sides that contained the text when they diverged.
fn removal<E>(
    history: &History,
    changes: &[PathChange],
    mut gone: u32,
    has: &mut dyn FnMut(&PathChange) -> Result<bool, E>,
) -> Result<u32, E> {
    'merges: loop {
        let Some((Some(main), sides)) = history.parents(gone).split_first() else {
            return Ok(gone);
        };
        for side in sides.iter().flatten() {
            let (before, after): (Vec<&PathChange>, Vec<&PathChange>) =
                changes_along_first_parents(history, changes, *side)
                    .partition(|change| history.is_first_ancestor(change.commit, *main));
            let has_begun = before.first().map(|change| has(change)).transpose()?;
            let n_after = n_with(after.len(), &mut |at| has(after[after.len() - 1 - at]))?;
            if has_begun == Some(true) && n_after < after.len() {
                gone = after[after.len() - 1 - n_after].commit;
                continue 'merges;
            }
        }
        return Ok(gone);
    }
}

/// Returns the changes in the first-parent history of `top`, latest first. `changes` must be ascending by commit
/// number.
fn changes_along_first_parents<'c>(
    history: &History,
    changes: &'c [PathChange],
    top: u32,
) -> impl Iterator<Item = &'c PathChange> {
    let changes = changes.iter().rev();
    changes.filter(move |change| change.commit <= top && history.is_first_ancestor(change.commit, top))
}

/// Returns the number of items for which `has` returns true. These must precede the other of the `n` items.
fn n_with<E>(n: usize, has: &mut dyn FnMut(usize) -> Result<bool, E>) -> Result<usize, E> {
    let (mut low, mut step) = (0, 1);
    // `has` returns true for all items below `low`.
    while low < n {
        let at = (low + step - 1).min(n - 1);
        if !has(at)? {
            let mut high = at;
            while low < high {
                let middle = low + (high - low) / 2;
                if has(middle)? { low = middle + 1 } else { high = middle }
            }
            return Ok(low);
        }
        low = at + 1;
        step *= 2;
    }
    Ok(n)
}

fn reached_changes(history: &History, reached: &Reachable, path: &RepoPath) -> Result<Vec<PathChange>, HistoryError> {
    let mut changes = history.changes_of(path.as_bytes())?;
    changes.retain(|change| reached.has(change.commit));
    Ok(changes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leading_items_are_counted_by_bisection() {
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
