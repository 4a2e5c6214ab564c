//! Summarizes authorship by line, by definition and by owner.

use std::collections::{BTreeMap, BTreeSet};

use bstr::ByteSlice;

use crate::git::{Blame, BlameLine, diff_lines};
use crate::history::{CommitHead, FileShapes, History, HistoryError, Mailmap, Reachable, Who};
use crate::model::{CommitId, RepoPath};

use super::history::{FileLog, folder_log, log_of};

/// An author with the number of their lines or changes.
#[derive(Clone, Debug, PartialEq)]
pub struct Owner {
    /// Name and address, resolved by the mailmap.
    pub who: Who,
    /// Number of current lines; for a folder, number of changed paths.
    pub n_lines: u32,
    /// Number of commits that the lines come from.
    pub n_commits: u32,
    /// Share of all lines or changes, 0 to 1.
    pub share: f64,
    /// The author's time of the latest commit, in seconds since 1970.
    pub last: i64,
}

/// A line number and the origin of the line, which is `None` if the line is not committed.
pub type BlamedLine = (u32, Option<BlameLine>);

/// The authorship of a definition.
#[derive(Clone, Debug, PartialEq)]
pub struct SymbolBlame {
    /// The qualified name.
    pub name: String,
    /// Index among the definitions with this name in the file, 1-based.
    pub nth: u32,
    /// The kind of the definition.
    pub kind: crate::extract::DefinitionKind,
    /// First line, 1-based.
    pub start_line: u32,
    /// Last line, 1-based, inclusive.
    pub end_line: u32,
    /// The latest commit that a line comes from; `None` if any line is not committed.
    pub last: Option<CommitId>,
    /// Number of lines that are not committed.
    pub n_uncommitted: u32,
    /// Number of commits that the lines come from.
    pub n_commits: u32,
    /// The authors of the lines, most lines first.
    pub owners: Vec<Owner>,
}

/// Maps the blame of a committed file to its uncommitted content `now`.
pub fn over_changes(blame: &Blame, committed: &[u8], now: &[u8]) -> Vec<BlamedLine> {
    let n_lines = now.split_inclusive(|byte| *byte == b'\n').count() as u32;
    let by_line: BTreeMap<u32, &BlameLine> = blame.lines.iter().map(|line| (line.line, line)).collect();
    let mut lines = Vec::with_capacity(n_lines as usize);
    let (mut old, mut new) = (0, 0);
    let mut keep = |old: u32, new: u32| {
        let known = by_line.get(&(old + 1)).map(|line| BlameLine {
            line: new + 1,
            ..(*line).clone()
        });
        lines.push((new + 1, known));
    };
    let hunks = diff_lines(committed, now);
    let mut changed = Vec::new();
    for hunk in hunks {
        (0..hunk.new.start - new).for_each(|n| keep(old + n, new + n));
        changed.extend(hunk.new.clone());
        (old, new) = (hunk.old.end, hunk.new.end);
    }
    (0..n_lines.saturating_sub(new)).for_each(|n| keep(old + n, new + n));
    lines.extend(changed.into_iter().map(|line| (line + 1, None)));
    lines.sort_by_key(|(line, _)| *line);
    lines
}

/// The authors that were counted, by address in lower case, or by name without an address.
#[derive(Default)]
struct Tally(BTreeMap<Vec<u8>, (Owner, BTreeSet<CommitId>)>);

impl Tally {
    /// Adds lines or changes of a commit. An author is called by the name of their latest commit.
    fn add(&mut self, who: &Who, commit: CommitId, time: i64, n_lines: u32) {
        let key = if who.email.is_empty() { &who.name } else { &who.email };
        let (owner, commits) = self.0.entry(key.to_lowercase()).or_insert_with(|| {
            let owner = Owner {
                who: who.clone(),
                n_lines: 0,
                n_commits: 0,
                share: 0.0,
                last: time,
            };
            (owner, BTreeSet::new())
        });
        if (owner.last, &owner.who) < (time, who) {
            (owner.last, owner.who) = (time, who.clone());
        }
        owner.n_lines += n_lines;
        commits.insert(commit);
    }

    /// Returns the authors, most lines first, with their shares of `n_all` lines.
    fn owners(self, n_all: u32) -> Vec<Owner> {
        let owner = |(owner, commits): (Owner, BTreeSet<CommitId>)| Owner {
            n_commits: commits.len() as u32,
            share: f64::from(owner.n_lines) / f64::from(n_all.max(1)),
            ..owner
        };
        let mut owners: Vec<Owner> = self.0.into_values().map(owner).collect();
        owners.sort_by(|a, b| (b.n_lines, &a.who).cmp(&(a.n_lines, &b.who)));
        owners
    }
}

/// Returns the authors of lines, most lines first. Uncommitted lines have no owner but count towards the total.
pub fn owners(lines: &[BlamedLine], blame: &Blame) -> Vec<Owner> {
    let mut tally = Tally::default();
    for line in lines.iter().filter_map(|(_, line)| line.as_ref()) {
        let Some(commit) = blame.commits.get(&line.commit) else {
            continue;
        };
        let who = Who {
            name: commit.author.name.clone(),
            email: commit.author.email.clone(),
        };
        tally.add(&who, line.commit, commit.author.time, 1);
    }
    tally.owners(lines.len() as u32)
}

/// Returns the authors of changes, most changes first. Here `n_lines` counts changes.
pub fn change_owners(changes: &[&CommitHead], mailmap: &Mailmap) -> Vec<Owner> {
    let mut tally = Tally::default();
    for head in changes {
        tally.add(&mailmap.resolve(&head.author), head.id, head.author_time, 1);
    }
    tally.owners(changes.len() as u32)
}

/// Returns the authorship of each definition of a file. `lines` must be in order.
pub fn by_symbol(file: &FileShapes, lines: &[BlamedLine], blame: &Blame) -> Vec<SymbolBlame> {
    let symbol = |shape: &crate::history::Shape| {
        let (start_line, end_line) = file.lines_of(shape.range);
        let first = lines.partition_point(|(line, _)| *line < start_line);
        let end = lines.partition_point(|(line, _)| *line <= end_line);
        let of_symbol = &lines[first..end];
        let n_uncommitted = of_symbol.iter().filter(|(_, line)| line.is_none()).count() as u32;
        let time = |commit: &CommitId| blame.commits.get(commit).map_or(i64::MIN, |commit| commit.author.time);
        let mut commits: Vec<CommitId> = of_symbol
            .iter()
            .filter_map(|(_, line)| Some(line.as_ref()?.commit))
            .collect();
        commits.sort_unstable();
        commits.dedup();
        SymbolBlame {
            name: shape.qualified.clone(),
            nth: shape.nth,
            kind: shape.kind,
            start_line,
            end_line,
            last: commits
                .iter()
                .copied()
                .max_by_key(|commit| (time(commit), *commit))
                .filter(|_| n_uncommitted == 0),
            n_uncommitted,
            n_commits: commits.len() as u32,
            owners: owners(of_symbol, blame),
        }
    };
    file.shapes.iter().map(symbol).collect()
}

/// Returns the authors of the changes below a folder, ordered by number of changed paths. Uses only the commit records.
pub fn folder_owners(
    history: &History,
    reached: &Reachable,
    folder: &RepoPath,
    mailmap: &Mailmap,
) -> Result<Vec<Owner>, HistoryError> {
    Ok(owners_in(&folder_log(history, reached, folder, mailmap)?))
}

/// Returns the authors of the changes of these files, ordered by number of changed paths. Uses only the commit records.
pub fn file_owners(
    history: &History,
    reached: &Reachable,
    files: &BTreeSet<RepoPath>,
    mailmap: &Mailmap,
) -> Result<Vec<Owner>, HistoryError> {
    Ok(owners_in(&log_of(history, reached, files, mailmap)?))
}

fn owners_in(log: &FileLog) -> Vec<Owner> {
    let (mut tally, mut n_all) = (Tally::default(), 0);
    for entry in log.entries.iter().filter(|entry| !entry.is_merge) {
        let n_changes = entry.changes.len() as u32;
        tally.add(&entry.author, entry.head.id, entry.head.author_time, n_changes);
        n_all += n_changes;
    }
    tally.owners(n_all)
}
