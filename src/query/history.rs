//! Queries the history of a file or folder, and finds files that change together.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use regex::Regex;

use crate::git::{BlobContent, ObjectReader, unified_diff};
use crate::history::{
    Boundary, CommitHead, Entry, FileChange, History, HistoryError, Mailmap, PathChange, Reachable, Who, file_history,
    submodule_text,
};
use crate::model::count::count;
use crate::model::{BlobId, RepoPath};

use super::near::Near;

/// Maximum number of changed paths in a commit that counts as evidence of related files.
const MAX_COCHANGE_PATHS: usize = 100;
/// Maximum size of a file to compute a patch for.
const MAX_PATCH_BYTES: u64 = 4 << 20;

/// Selects entries of a log by date and author.
#[derive(Clone, Debug, Default)]
pub struct LogFilter {
    /// Excludes commits before this time, in seconds since 1970.
    pub since: Option<i64>,
    /// Excludes commits after this time, in seconds since 1970.
    pub until: Option<i64>,
    /// Matches `name <address>` of the author, resolved by the mailmap.
    pub author: Option<Regex>,
}

/// The kind of a file change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FileChangeKind {
    /// The file was added.
    Added,
    /// The file was deleted.
    Deleted,
    /// The file was renamed, possibly with changes.
    Renamed,
    /// The content changed.
    Modified,
    /// Only the executable bit or file type changed.
    Mode,
}

impl FileChangeKind {
    /// The name in output.
    pub fn name(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Deleted => "deleted",
            Self::Renamed => "renamed",
            Self::Modified => "modified",
            Self::Mode => "mode",
        }
    }

    /// Classifies a change.
    pub fn of(change: &PathChange) -> Self {
        Self::between(change.old, change.new, change.old.is_none() && change.origin.is_some())
    }

    /// Classifies the difference between two entries.
    pub fn between(old: Option<Entry>, new: Option<Entry>, is_renamed: bool) -> Self {
        match (old, new) {
            _ if is_renamed => Self::Renamed,
            (None, _) => Self::Added,
            (_, None) => Self::Deleted,
            (Some(old), Some(new)) if old.oid == new.oid && old.mode != new.mode => Self::Mode,
            _ => Self::Modified,
        }
    }
}

/// A commit in the history of a file or folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileLogEntry {
    /// The number of the commit.
    pub number: u32,
    /// The header fields and subject.
    pub head: CommitHead,
    /// The author, resolved by the mailmap.
    pub author: Who,
    /// True for a merge commit in which the file differs from every parent.
    pub is_merge: bool,
    /// The changes of the file, or of the files in the folder.
    pub changes: Vec<FileChange>,
    /// 0 for the requested file. 1 for the file that was at its path before the requested file was moved there, 2 for
    /// the one before that, and so on.
    pub n_before: u32,
}

/// The history of a file or folder.
#[derive(Clone, Debug, Default)]
pub struct FileLog {
    /// The entries, children before parents. They are followed by the entries of earlier files at the same path, in the
    /// same order, the latest file first.
    pub entries: Vec<FileLogEntry>,
    /// True if the file or folder exists in the commit.
    pub is_there: bool,
}

/// A file that changes together with another.
#[derive(Clone, Debug, PartialEq)]
pub struct Cochange {
    /// The other file.
    pub path: RepoPath,
    /// Number of commits that changed both.
    pub support: u32,
    /// Share of the commits that changed the first file that also changed this one.
    pub confidence: f64,
}

/// Gaps in the records of a commit's history.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gaps {
    /// Number of commits for each reason.
    pub boundaries: BTreeMap<&'static str, u32>,
    /// The commits whose inexact renames are unknown.
    renames: Vec<u32>,
}

impl Gaps {
    /// Finds the gaps among the commits in `reached`.
    pub fn of(history: &History, reached: &Reachable) -> Result<Self, HistoryError> {
        let mut gaps = Self::default();
        for (number, boundary) in history.boundaries()? {
            if reached.has(number) {
                *gaps.boundaries.entry(boundary.name()).or_default() += 1;
            }
        }
        for number in history.unknown().into_iter().filter(|number| reached.has(*number)) {
            // If some changes are known, the trees were available, but some file contents were missing.
            if history.n_touched(number)? == 0 {
                *gaps.boundaries.entry("unknown").or_default() += 1;
            } else {
                gaps.renames.push(number);
            }
        }
        Ok(gaps)
    }

    /// Ignores unknown renames in other commits than `commits`.
    pub fn keep_renames(&mut self, commits: impl IntoIterator<Item = u32>) {
        let commits: BTreeSet<u32> = commits.into_iter().collect();
        self.renames.retain(|number| commits.contains(number));
    }

    /// Returns true if there are no gaps.
    pub fn is_empty(&self) -> bool {
        self.boundaries.is_empty() && self.renames.is_empty()
    }

    /// Describes the gaps, one sentence per reason.
    pub fn sentences(&self) -> Vec<String> {
        let sentence = |(name, n_commits): (&str, u32)| {
            let why = match name {
                name if name == Boundary::Shallow.name() => "this clone is shallow: no history before its oldest",
                name if name == Boundary::Missing.name() => {
                    "parent commits are missing in this repository: no history before"
                }
                name if name == Boundary::Limit.name() => "older commits are not recorded: no history before",
                "renames" => "file contents are missing or damaged: inexact renames are unknown in",
                _ => "trees are missing or damaged: changes are unknown in",
            };
            let how = match name {
                "renames" | "unknown" => " (run codescout doctor for a fix)",
                _ => "",
            };
            format!("{why} {}{how}", count(n_commits, "commit"))
        };
        let renames = Some(("renames", self.renames.len() as u32)).filter(|(_, n_commits)| *n_commits > 0);
        let boundaries = self.boundaries.iter().map(|(name, n_commits)| (*name, *n_commits));
        boundaries.chain(renames).map(sentence).collect()
    }
}

/// Returns the commits that changed a file, across its renames, with the same history simplification as `git log`.
pub fn file_log(
    history: &History,
    tip: u32,
    reached: &Reachable,
    path: &RepoPath,
    mailmap: &Mailmap,
) -> Result<FileLog, HistoryError> {
    let life = file_history(history, tip, reached, path)?;
    let is_there = life.now.is_some();
    let mut all = Vec::new();
    for (n_before, changes) in (0..).zip(std::iter::once(life.changes).chain(life.earlier)) {
        let by_commit = changes.into_iter().map(|change| (change.change.commit, vec![change]));
        let of_life = entries(history, by_commit.collect(), mailmap)?.into_iter();
        all.extend(of_life.map(|entry| FileLogEntry { n_before, ..entry }));
    }
    Ok(FileLog { entries: all, is_there })
}

/// Returns the number of commits in the [`file_log`] of a path, and the first of them.
pub fn file_commits(
    history: &History,
    tip: u32,
    reached: &Reachable,
    path: &RepoPath,
) -> Result<(usize, Option<u32>), HistoryError> {
    let life = file_history(history, tip, reached, path)?;
    let n_earlier: usize = life.earlier.iter().map(Vec::len).sum();
    Ok((
        life.changes.len() + n_earlier,
        life.changes.first().map(|first| first.change.commit),
    ))
}

/// Returns the commits that changed anything below a folder. A merge is included only for files that differ from every
/// parent.
pub fn folder_log(
    history: &History,
    reached: &Reachable,
    folder: &RepoPath,
    mailmap: &Mailmap,
) -> Result<FileLog, HistoryError> {
    let beginning = match folder.as_bytes() {
        [] => Vec::new(),
        path => [path, b"/"].concat(),
    };
    log_of(history, reached, history.paths_from(&beginning), mailmap)
}

/// Returns the commits that changed any of `paths`. A merge is included only for files that differ from every parent.
pub(super) fn log_of<P: std::borrow::Borrow<RepoPath>>(
    history: &History,
    reached: &Reachable,
    paths: impl IntoIterator<Item = P>,
    mailmap: &Mailmap,
) -> Result<FileLog, HistoryError> {
    let mut by_commit: HashMap<u32, Vec<FileChange>> = HashMap::new();
    let mut last: BTreeMap<RepoPath, (u32, bool)> = BTreeMap::new();
    for path in paths {
        let path: &RepoPath = path.borrow();
        for change in history.changes_of(path.as_bytes())? {
            if !reached.has(change.commit) || (history.parents(change.commit).len() > 1 && !change.is_combined) {
                continue;
            }
            last.insert(path.clone(), (change.commit, change.new.is_some()));
            let path = path.clone();
            by_commit
                .entry(change.commit)
                .or_default()
                .push(FileChange { path, change });
        }
    }
    let mut ordered: Vec<(u32, Vec<FileChange>)> = by_commit.into_iter().collect();
    ordered.sort_by_key(|(number, _)| std::cmp::Reverse(history.order_of(*number)));
    Ok(FileLog {
        entries: entries(history, ordered, mailmap)?,
        is_there: last.values().any(|(_, is_there)| *is_there),
    })
}

fn entries(
    history: &History,
    changes: Vec<(u32, Vec<FileChange>)>,
    mailmap: &Mailmap,
) -> Result<Vec<FileLogEntry>, HistoryError> {
    let numbers: Vec<u32> = changes.iter().map(|(number, _)| *number).collect();
    let heads = history.heads(&numbers)?;
    let entry = |(number, changes): (u32, Vec<FileChange>)| {
        let head = heads.get(&number)?.clone();
        Some(FileLogEntry {
            number,
            author: mailmap.resolve(&head.author),
            head,
            is_merge: history.parents(number).len() > 1,
            changes,
            n_before: 0,
        })
    };
    Ok(changes.into_iter().filter_map(entry).collect())
}

impl LogFilter {
    /// Returns true if the filter accepts a commit.
    pub fn passes(&self, head: &CommitHead, author: &Who) -> bool {
        let is_named = |pattern: &Regex| pattern.is_match(&format!("{} <{}>", author.name, author.email));
        self.since.is_none_or(|since| head.commit_time >= since)
            && self.until.is_none_or(|until| head.commit_time <= until)
            && self.author.as_ref().is_none_or(is_named)
    }
}

/// Returns the files that changed in the same commits, the most frequent first, and the number of commits counted.
/// Ignores commits with many changed paths.
pub fn cochange(
    history: &History,
    commits: &[u32],
    own: &BTreeSet<RepoPath>,
) -> Result<(u32, Vec<Cochange>), HistoryError> {
    let mut support: BTreeMap<RepoPath, u32> = BTreeMap::new();
    let mut n_counted = 0;
    for number in commits {
        let touched = history.touched(*number)?;
        if touched.len() > MAX_COCHANGE_PATHS {
            continue;
        }
        n_counted += 1;
        for path in touched.into_iter().filter(|path| !own.contains(path)) {
            *support.entry(path).or_default() += 1;
        }
    }
    let mut found: Vec<Cochange> = support
        .into_iter()
        .map(|(path, support)| Cochange {
            path,
            support,
            confidence: f64::from(support) / f64::from(n_counted),
        })
        .collect();
    found.sort_by(|a, b| (b.support, &a.path).cmp(&(a.support, &b.path)));
    Ok((n_counted, found))
}

/// Returns the files below a folder that were deleted in a commit's history, with the deletion. The last deleted file
/// comes first.
pub fn deleted_files(
    history: &History,
    reached: &Reachable,
    tip_has: &dyn Fn(&RepoPath) -> bool,
    folder: &[u8],
) -> Result<Vec<FileChange>, HistoryError> {
    let mut deleted = Vec::new();
    for path in history.paths_from(folder) {
        if tip_has(&path) {
            continue;
        }
        let changes = history.changes_of(path.as_bytes())?;
        let gone = changes
            .into_iter()
            .rev()
            .find(|change| change.new.is_none() && reached.has(change.commit));
        deleted.extend(gone.map(|change| FileChange { path, change }));
    }
    deleted.sort_by_key(|change| std::cmp::Reverse(history.order_of(change.change.commit)));
    Ok(deleted)
}

/// Returns paths that existed in any commit and resemble `path`.
pub fn near_paths(history: &History, path: &str) -> Vec<String> {
    let name = path.rsplit('/').next().unwrap_or(path);
    let (mut near, mut near_name) = (Near::new(path), Near::new(name));
    let mut same_name = Vec::new();
    let mut by_name: HashMap<String, String> = HashMap::new();
    for known in history.paths_from(b"") {
        let text = known.to_text().into_owned();
        let own_name = String::from_utf8_lossy(known.file_name()).into_owned();
        if own_name == name {
            same_name.push(text.clone());
        }
        near.see(&text);
        near_name.see(&own_name);
        by_name.entry(own_name).or_insert(text);
    }
    if !same_name.is_empty() {
        same_name.truncate(5);
        return same_name;
    }
    let mut found = near.best();
    found.extend(near_name.best().into_iter().filter_map(|name| by_name.remove(&name)));
    found.dedup();
    found
}

/// Returns the patch between two versions of a file in unified format, without headers. `None` if a version is not text
/// or not available.
pub fn patch_of(
    reader: &mut ObjectReader,
    old: Option<Entry>,
    new: Option<Entry>,
) -> Result<Option<String>, HistoryError> {
    let mut read = |entry: Option<Entry>| match entry {
        None => Ok(Some(Vec::new())),
        Some(entry) if entry.mode == crate::git::FileMode::Submodule => Ok(Some(submodule_text(entry.oid))),
        Some(entry) => reader
            .blob(BlobId(entry.oid), MAX_PATCH_BYTES)
            .map(|content| match content {
                BlobContent::Content(bytes) => Some(bytes),
                BlobContent::TooLarge { .. } | BlobContent::Missing | BlobContent::Damaged => None,
            }),
    };
    let (Some(old), Some(new)) = (read(old)?, read(new)?) else {
        return Ok(None);
    };
    let is_text = |bytes: &[u8]| !bytes[..bytes.len().min(8_000)].contains(&0);
    Ok((is_text(&old) && is_text(&new)).then(|| unified_diff(&old, &new, (1, 1))))
}
