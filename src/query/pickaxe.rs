//! Searches the lines that commits added and removed, like `git log -G`.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use rayon::prelude::*;
use roaring::RoaringBitmap;

use crate::git::{ObjectReader, Repository};
use crate::history::{ChangedLines, History, HistoryError, LineChanges, NumberedLines, changed_lines, compared};
use crate::model::RepoPath;

use super::filter::FileFilter;
use super::pattern::Pattern;

/// Number of commits compared at a time. The deadline is checked after each round.
const COMMITS_PER_ROUND: usize = 32;
/// Maximum number of lines reported per file, for added and removed lines each.
const MAX_LINES: usize = 20;
/// Maximum length of a reported line. Longer lines are truncated.
const MAX_LINE_BYTES: usize = 400;

/// Searches the lines that commits added and removed.
pub struct DiffSearch<'a> {
    /// The repository of the files.
    pub repository: &'a Repository,
    /// The commit records.
    pub history: &'a History,
    /// The signatures of the changes, one per batch in order. `None` if a batch has none.
    pub lines: &'a [Option<LineChanges>],
    /// The numbers of the commits to search.
    pub scope: &'a RoaringBitmap,
    /// The pattern that a line must match.
    pub pattern: &'a Pattern,
    /// The files to search.
    pub files: &'a FileFilter,
    /// Maximum number of hits.
    pub limit: usize,
    /// The end of the previous page: a commit and an index among its paths.
    pub after: Option<(u32, u32)>,
    /// The time at which to stop.
    pub deadline: Option<Instant>,
}

/// A file in which a commit changed matching lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiffHit {
    /// The number of the commit.
    pub number: u32,
    /// Index among the paths that the commit changed.
    pub nth: u32,
    /// The path. For a deleted file, its last path.
    pub path: RepoPath,
    /// The old path of a renamed file.
    pub from_path: Option<RepoPath>,
    /// Removed lines with their old 1-based numbers.
    pub removed: Vec<(u32, String)>,
    /// Added lines with their new 1-based numbers.
    pub added: Vec<(u32, String)>,
    /// Number of matching lines, including those that are not reported.
    pub n_lines: usize,
}

/// The result of a search.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DiffsOutcome {
    /// The hits, newest commit first.
    pub hits: Vec<DiffHit>,
    /// The start of the next page; `None` if the search is complete.
    pub next: Option<(u32, u32)>,
    /// Number of commits checked, by signature or by comparison.
    pub n_commits: usize,
    /// Number of file comparisons.
    pub n_compared: usize,
    /// Number of file comparisons that failed because a file is missing or too large.
    pub n_unknown: usize,
    /// True if the deadline was reached.
    pub is_late: bool,
    /// True if the search was interrupted.
    pub is_interrupted: bool,
}

/// The result for one commit.
#[derive(Default)]
struct CommitFound {
    hits: Vec<DiffHit>,
    n_compared: usize,
    n_unknown: usize,
}

impl DiffSearch<'_> {
    /// Searches the commits, newest first.
    pub fn run(&self, interrupt: &AtomicBool) -> Result<DiffsOutcome, HistoryError> {
        let mut outcome = DiffsOutcome::default();
        let order = self.order();
        let mut at = 0;
        while at < order.len() {
            if self.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                outcome.is_late = true;
                outcome.next = at.checked_sub(1).map(|last| (order[last], u32::MAX)).or(self.after);
                // If no commit was searched yet, the next page starts from the beginning.
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

    /// Returns the commits to search after the end of the previous page, newest first. Excludes merges, which have no
    /// changes of their own.
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

    /// Selects the next commits that may match. Also returns the number of elements of `order` that it considered.
    fn round(&self, order: &[u32]) -> (Vec<u32>, usize) {
        let mut round = Vec::new();
        for (at, number) in order.iter().enumerate() {
            if round.len() == COMMITS_PER_ROUND {
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

    /// Searches one commit. Stops early if `interrupt` is set.
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
            // Checked for each file, because comparing two versions may involve 128 MB.
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

    /// Returns the first matching lines, and the number of all matching lines.
    fn matching(&self, lines: NumberedLines<'_>) -> (Vec<(u32, String)>, usize) {
        let matching: Vec<_> = lines.into_iter().filter(|(_, line)| self.pattern.is_in(line)).collect();
        let n_lines = matching.len();
        let shown = matching.into_iter().take(MAX_LINES).map(|(number, line)| {
            let line = &line[..line.len().min(MAX_LINE_BYTES)];
            (number, String::from_utf8_lossy(line).trim_end().to_owned())
        });
        (shown.collect(), n_lines)
    }
}
