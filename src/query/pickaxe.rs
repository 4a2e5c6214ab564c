//! Lines that commits added and removed, by a pattern: the commits that `git log -G` tells.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use rayon::prelude::*;
use roaring::RoaringBitmap;

use crate::git::{ObjectReader, Repository};
use crate::history::{ChangedLines, History, HistoryError, LineChanges, NumberedLines, changed_lines, compared};
use crate::model::RepoPath;

use super::filter::FileFilter;
use super::pattern::Pattern;

/// Commits whose differences are made at a time: the clock is looked at in between.
const COMMITS_A_ROUND: usize = 32;
/// Lines told of one file.
const MAX_LINES: usize = 20;
/// Lines are cut here.
const MAX_LINE_BYTES: usize = 400;

/// What is looked for, and where.
pub struct DiffSearch<'a> {
    /// Where the files are.
    pub repository: &'a Repository,
    /// The commits.
    pub history: &'a History,
    /// Signatures of what they changed, in the order of batches, as far as there are any.
    pub lines: &'a [Option<LineChanges>],
    /// The numbers of the commits in question.
    pub scope: &'a RoaringBitmap,
    /// What a line has to hold.
    pub pattern: &'a Pattern,
    /// Which files.
    pub files: &'a FileFilter,
    /// How many hits.
    pub limit: usize,
    /// Go on behind this commit and its path of this place.
    pub after: Option<(u32, u32)>,
    /// When to stop.
    pub deadline: Option<Instant>,
}

/// A file that a commit changed in lines that match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiffHit {
    /// The commit.
    pub number: u32,
    /// The place of the path among those that the commit changed.
    pub nth: u32,
    /// The path; for a deleted file the one that it had.
    pub path: RepoPath,
    /// Where a renamed file was before.
    pub from_path: Option<RepoPath>,
    /// Lines that are gone, with their old numbers from 1.
    pub removed: Vec<(u32, String)>,
    /// Lines that are new, with their new numbers from 1.
    pub added: Vec<(u32, String)>,
    /// How many matching lines there are, told or not.
    pub n_lines: usize,
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DiffsOutcome {
    /// The newest commit first.
    pub hits: Vec<DiffHit>,
    /// Where the next page begins, if anything is left to look at.
    pub next: Option<(u32, u32)>,
    /// Commits that were looked at, by signature or difference.
    pub n_commits: usize,
    /// Differences that were made.
    pub n_compared: usize,
    /// Differences that could not be made: a file is not in the repository, or too large.
    pub n_unknown: usize,
    /// Whether time was up before the end.
    pub is_late: bool,
    /// Whether the caller wanted to stop.
    pub is_interrupted: bool,
}

/// What the differences of one commit gave.
#[derive(Default)]
struct CommitFound {
    hits: Vec<DiffHit>,
    n_compared: usize,
    n_unknown: usize,
}

impl DiffSearch<'_> {
    /// Looks through the commits, the newest first.
    pub fn run(&self, interrupt: &AtomicBool) -> Result<DiffsOutcome, HistoryError> {
        let mut outcome = DiffsOutcome::default();
        let order = self.order();
        let mut at = 0;
        while at < order.len() {
            if self.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                outcome.is_late = true;
                outcome.next = at.checked_sub(1).map(|last| (order[last], u32::MAX)).or(self.after);
                // Nothing was looked at: the answer has to begin somewhere.
                outcome.next = outcome.next.or(Some((u32::MAX, 0)));
                return Ok(outcome);
            }
            let (round, n_passed) = self.round(&order[at..]);
            let found: Vec<CommitFound> = round
                .par_iter()
                .map_init(
                    || self.repository.reader(),
                    |reader, number| self.commit(reader, *number, interrupt),
                )
                .collect::<Result<_, _>>()?;
            if interrupt.load(Ordering::Relaxed) {
                outcome.is_interrupted = true;
                return Ok(outcome);
            }
            at += n_passed;
            outcome.n_commits += n_passed;
            for found in found {
                outcome.n_compared += found.n_compared;
                outcome.n_unknown += found.n_unknown;
                outcome.hits.extend(found.hits);
            }
            if outcome.hits.len() > self.limit {
                outcome.hits.truncate(self.limit);
                outcome.next = outcome.hits.last().map(|last| (last.number, last.nth)).or(self.after);
                return Ok(outcome);
            }
        }
        Ok(outcome)
    }

    /// The commits in question, the newest first, from where the last page ended. Merges have no lines of their own.
    fn order(&self) -> Vec<u32> {
        let is_merge = |number: u32| self.history.parents(number).len() > 1;
        let mut order: Vec<u32> = self.scope.iter().filter(|number| !is_merge(*number)).collect();
        order.sort_unstable_by_key(|number| std::cmp::Reverse(self.history.order_of(*number)));
        if let Some((last, nth)) = self.after.filter(|(last, _)| *last < self.history.n_commits()) {
            let place = self.history.order_of(last);
            order.retain(|number| {
                let own = self.history.order_of(*number);
                own < place || (own == place && nth != u32::MAX)
            });
        }
        order
    }

    /// The next commits that may have a match, and how many of `order` they were picked from.
    fn round(&self, order: &[u32]) -> (Vec<u32>, usize) {
        let mut round = Vec::new();
        for (at, number) in order.iter().enumerate() {
            if round.len() == COMMITS_A_ROUND {
                return (round, at);
            }
            let may_match = match self.signatures(*number) {
                Some((lines, local)) => lines.may_match(local, self.pattern.candidates()),
                None => true,
            };
            if may_match {
                round.push(*number);
            }
        }
        (round, order.len())
    }

    fn signatures(&self, number: u32) -> Option<(&LineChanges, u32)> {
        let at = self.history.batch_of(number);
        let lines = self.lines.get(at)?.as_ref()?;
        Some((lines, number - lines.base()))
    }

    /// Not all of it, if `interrupt` is set meanwhile.
    fn commit(
        &self,
        reader: &mut ObjectReader,
        number: u32,
        interrupt: &AtomicBool,
    ) -> Result<CommitFound, HistoryError> {
        let changes = self.history.changes_at(number)?;
        let may_match = self
            .signatures(number)
            .map(|(lines, local)| lines.paths_that_may_match(local, self.pattern.candidates()));
        let mut found = CommitFound::default();
        for ((nth, change), versions) in (0u32..).zip(&changes).zip(compared(&changes)) {
            let is_passed = self
                .after
                .is_some_and(|(last, last_nth)| last == number && nth <= last_nth);
            let is_ruled_out = may_match
                .as_ref()
                .is_some_and(|may| may.get(nth as usize) == Some(&false));
            let is_wanted = self.files.is_open() || self.files.passes_path(change.path.as_bytes());
            let Some(versions) = versions.filter(|_| !is_passed && !is_ruled_out && is_wanted) else {
                continue;
            };
            // Two versions of a file may be 128 MB.
            if interrupt.load(Ordering::Relaxed) {
                break;
            }
            found.n_compared += 1;
            let diff = match changed_lines(reader, versions)? {
                ChangedLines::Lines(diff) => diff,
                ChangedLines::NotText => continue,
                ChangedLines::Unknown => {
                    found.n_unknown += 1;
                    continue;
                }
            };
            let (removed, added) = diff.removed_and_added();
            let (removed, n_removed) = self.matching(removed);
            let (added, n_added) = self.matching(added);
            if n_removed + n_added > 0 {
                found.hits.push(DiffHit {
                    number,
                    nth,
                    path: change.path.clone(),
                    from_path: change.origin.as_ref().map(|origin| origin.path.clone()),
                    removed,
                    added,
                    n_lines: n_removed + n_added,
                });
            }
        }
        Ok(found)
    }

    /// The lines that match, as many as are told, and how many there are.
    fn matching(&self, lines: NumberedLines<'_>) -> (Vec<(u32, String)>, usize) {
        let matching: Vec<_> = lines.into_iter().filter(|(_, line)| self.pattern.is_in(line)).collect();
        let n_lines = matching.len();
        let told = matching.into_iter().take(MAX_LINES).map(|(number, line)| {
            let line = &line[..line.len().min(MAX_LINE_BYTES)];
            (number, String::from_utf8_lossy(line).trim_end().to_owned())
        });
        (told.collect(), n_lines)
    }
}
