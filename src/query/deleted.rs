//! Finds deleted and renamed definitions by name.

use std::collections::{BTreeMap, BTreeSet};

use crate::extract::DefinitionKind;
use crate::history::{Entry, History, HistoryError, Reachable, SymbolKey, SymbolRecord, TracedChange};

/// A definition that existed in a commit's history but does not exist in the commit.
#[derive(Clone, Debug, PartialEq)]
pub struct DeletedSymbol {
    /// The key of the definition in its last version.
    pub key: SymbolKey,
    /// The kind of the definition.
    pub kind: DefinitionKind,
    /// The number of the commit that deleted it.
    pub commit: u32,
    /// First and last line of the definition in the first parent of that commit.
    pub lines: (u32, u32),
    /// The last version of the file that contained the definition.
    pub version: Entry,
}

/// Returns definitions with a wanted qualified name that were deleted before `tip`, the last deleted first. A
/// definition that was renamed or moved to another file is not deleted. Covers only the commits that are traced under
/// `recipe`.
pub fn deleted_symbols(
    history: &History,
    tip: u32,
    reached: &Reachable,
    recipe: u64,
    is_wanted: &dyn Fn(&[u8]) -> bool,
) -> Result<Vec<DeletedSymbol>, HistoryError> {
    let by_key = records_by_key(history, reached, recipe, is_wanted)?;
    let line = history.first_parents(tip);
    let mut deleted = Vec::new();
    for (key, records) in by_key {
        let last = last_on(&line, &records);
        if last.is_some_and(|(_, record)| record.new_lines.is_some()) {
            continue;
        }
        let gone = records.iter().filter(|(_, record)| record.events.removed);
        let Some((commit, record)) = gone
            .max_by_key(|(commit, _)| *commit)
            .map(|gone| taken_away(history, &records, gone))
            .filter(|(_, record)| !record.goes_on)
        else {
            continue;
        };
        let commit = *commit;
        let changes = history.changes_of(key.path.as_bytes())?;
        let change = changes.into_iter().find(|change| change.commit == commit);
        let version = change.and_then(|change| change.old);
        let version = version.filter(Entry::is_file);
        if let (Some(lines), Some(version)) = (record.old_lines, version) {
            deleted.push(DeletedSymbol {
                key,
                kind: record.kind,
                commit,
                lines,
                version,
            });
        }
    }
    deleted.sort_by_key(|gone| (std::cmp::Reverse(history.order_of(gone.commit)), gone.key.clone()));
    Ok(deleted)
}

/// Returns the last record on a line of first parents.
fn last_on<'r>(line: &Reachable, records: &'r [(u32, SymbolRecord)]) -> Option<&'r (u32, SymbolRecord)> {
    let on_line = records.iter().filter(|(commit, _)| line.has(*commit));
    on_line.max_by_key(|(commit, record)| (*commit, record.new_lines.is_some()))
}

/// Returns the record of the deletion. If a merge took the deletion from another parent, returns the record on that
/// parent's side.
fn taken_away<'r>(
    history: &History,
    records: &'r [(u32, SymbolRecord)],
    mut gone: &'r (u32, SymbolRecord),
) -> &'r (u32, SymbolRecord) {
    let removed_in = |parent: &u32| {
        let last = last_on(&history.first_parents(*parent), records);
        last.filter(|(_, record)| record.events.removed)
    };
    while let Some(before) = history.parents(gone.0).iter().skip(1).flatten().find_map(removed_in) {
        gone = before;
    }
    gone
}

/// A definition under its latest key, found by an earlier name.
#[derive(Clone, Debug, PartialEq)]
pub struct RenamedSymbol {
    /// The latest known key.
    pub key: SymbolKey,
    /// The kind of the definition.
    pub kind: DefinitionKind,
    /// First line of the definition in the commit that gave it that key.
    pub line: u32,
}

/// Returns the latest keys of definitions that had a wanted qualified name before they were renamed or moved. Covers
/// the same commits as [`deleted_symbols`].
pub fn renamed_symbols(
    history: &History,
    reached: &Reachable,
    recipe: u64,
    is_wanted: &dyn Fn(&[u8]) -> bool,
) -> Result<Vec<RenamedSymbol>, HistoryError> {
    let mut left: BTreeMap<SymbolKey, u32> = BTreeMap::new();
    for (path, commit, record) in history.traced_names(recipe, is_wanted)? {
        if record.goes_on && reached.has(commit) {
            let last = left.entry(record.key(&path)).or_insert(commit);
            *last = commit.max(*last);
        }
    }
    let mut found: BTreeMap<SymbolKey, RenamedSymbol> = BTreeMap::new();
    for (key, commit) in left {
        if let Some(renamed) = latest_key(history, reached, key, commit, recipe)? {
            found.insert(renamed.key.clone(), renamed);
        }
    }
    Ok(found.into_values().collect())
}

/// Returns the latest key of a definition that a commit renamed or moved. `None` if no later key is known.
pub fn latest_key(
    history: &History,
    reached: &Reachable,
    key: SymbolKey,
    commit: u32,
    recipe: u64,
) -> Result<Option<RenamedSymbol>, HistoryError> {
    let mut latest = None;
    let mut next = successor(history, &key, commit, recipe)?;
    let mut seen = BTreeSet::from([key]);
    while let Some((renamed, commit)) = next {
        if !seen.insert(renamed.key.clone()) {
            return Ok(None);
        }
        next = match last_rename_after(history, reached, &renamed.key, commit, recipe)? {
            Some(later) => successor(history, &renamed.key, later, recipe)?,
            None => None,
        };
        latest = Some(renamed);
    }
    Ok(latest)
}

/// The last commit that took a key away from a definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Removal {
    /// The key before.
    pub key: SymbolKey,
    /// The kind of the definition.
    pub kind: DefinitionKind,
    /// The number of the commit.
    pub commit: u32,
    /// True if the commit renamed or moved the definition.
    pub goes_on: bool,
}

/// Returns the traced changes of definitions with a wanted qualified name in reached commits.
fn records_by_key(
    history: &History,
    reached: &Reachable,
    recipe: u64,
    is_wanted: &dyn Fn(&[u8]) -> bool,
) -> Result<BTreeMap<SymbolKey, Vec<(u32, SymbolRecord)>>, HistoryError> {
    let mut by_key: BTreeMap<SymbolKey, Vec<(u32, SymbolRecord)>> = BTreeMap::new();
    for (path, commit, record) in history.traced_names(recipe, is_wanted)? {
        if reached.has(commit) {
            by_key.entry(record.key(&path)).or_default().push((commit, record));
        }
    }
    Ok(by_key)
}

/// Returns the last removal of each key with a wanted qualified name, even if a definition has the key again. Covers the
/// same commits as [`deleted_symbols`].
pub fn removals(
    history: &History,
    reached: &Reachable,
    recipe: u64,
    is_wanted: &dyn Fn(&[u8]) -> bool,
) -> Result<Vec<Removal>, HistoryError> {
    let by_key = records_by_key(history, reached, recipe, is_wanted)?;
    let removal = |(key, records): (SymbolKey, Vec<(u32, SymbolRecord)>)| {
        let gone = records.iter().filter(|(_, record)| record.events.removed);
        let last = gone.max_by_key(|(commit, _)| *commit)?;
        let (commit, record) = taken_away(history, &records, last);
        Some(Removal {
            key,
            kind: record.kind,
            commit: *commit,
            goes_on: record.goes_on,
        })
    };
    Ok(by_key.into_iter().filter_map(removal).collect())
}

/// Returns the last commit after `after` that renamed or moved a definition.
fn last_rename_after(
    history: &History,
    reached: &Reachable,
    key: &SymbolKey,
    after: u32,
    recipe: u64,
) -> Result<Option<u32>, HistoryError> {
    let changes = history.traced_changes(&key.path, Some(&key.name), recipe)?;
    let is_left = |change: &TracedChange| {
        change
            .records
            .iter()
            .any(|record| record.nth == key.nth && record.goes_on)
    };
    let left = changes
        .iter()
        .filter(|(_, change)| is_left(change))
        .map(|(commit, _)| *commit);
    Ok(left.filter(|commit| *commit > after && reached.has(*commit)).max())
}

/// Returns the key that a commit gave to a renamed or moved definition, in the same file or another file that the
/// commit changed.
fn successor(
    history: &History,
    key: &SymbolKey,
    commit: u32,
    recipe: u64,
) -> Result<Option<(RenamedSymbol, u32)>, HistoryError> {
    let others = history.touched(commit)?.into_iter().filter(|path| *path != key.path);
    for path in std::iter::once(key.path.clone()).chain(others) {
        let mut changes = history.traced_changes(&path, None, recipe)?;
        let records = changes.remove(&commit).map_or_else(Vec::new, |change| change.records);
        let is_it = |record: &&SymbolRecord| record.origin.as_ref().is_some_and(|(origin, _)| origin == key);
        if let Some(record) = records.iter().find(is_it) {
            let renamed = RenamedSymbol {
                key: record.key(&path),
                kind: record.kind,
                line: record.new_lines.map_or(1, |lines| lines.0),
            };
            return Ok(Some((renamed, commit)));
        }
    }
    Ok(None)
}

/// Returns true if a qualified name equals `typed` or ends with it at a name boundary.
pub fn is_called(qualified: &[u8], typed: &str) -> bool {
    let typed = typed.as_bytes();
    qualified
        .strip_suffix(typed)
        .is_some_and(|before| !typed.is_empty() && (before.is_empty() || before.ends_with(b".")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_matches_by_its_last_parts() {
        for (typed, is_it) in [("parse", true), ("Parser.parse", true), ("arse", false), ("", false)] {
            assert_eq!(is_called(b"mod.Parser.parse", typed), is_it, "{typed}");
        }
        assert!(is_called(b"parse", "parse"));
    }
}
