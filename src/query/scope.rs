//! Limits a query to some commits.

use roaring::RoaringBitmap;

use crate::history::{History, HistoryError, Mailmap, Reachable};

use super::filter::FileFilter;
use super::history::LogFilter;

/// Selects commits by date, author and changed files.
#[derive(Clone, Debug, Default)]
pub struct CommitFilter {
    /// Limits by date and author.
    pub log: LogFilter,
    /// Selects commits by changed files. A merge counts only for files that differ from every parent.
    pub files: FileFilter,
}

impl CommitFilter {
    /// Returns the numbers of the commits among `reached` that the filter selects.
    pub fn commits(
        &self,
        history: &History,
        reached: &Reachable,
        mailmap: &Mailmap,
    ) -> Result<RoaringBitmap, HistoryError> {
        let mut commits: RoaringBitmap = (0..history.n_commits()).filter(|number| reached.has(*number)).collect();
        if !self.files.is_open() {
            commits &= self.changing(history)?;
        }
        let is_by_date = self.log.since.is_some() || self.log.until.is_some();
        if is_by_date {
            let mut passing = RoaringBitmap::new();
            for number in &commits {
                let time = history.time(number)?;
                let is_late = self.log.since.is_none_or(|since| time >= since);
                if is_late && self.log.until.is_none_or(|until| time <= until) {
                    passing.insert(number);
                }
            }
            commits = passing;
        }
        if self.log.author.is_some() {
            let numbers: Vec<u32> = commits.iter().collect();
            let heads = history.heads(&numbers)?;
            let passing = heads
                .iter()
                .filter(|(_, head)| self.log.passes(head, &mailmap.resolve(&head.author)));
            commits = passing.map(|(number, _)| *number).collect();
        }
        Ok(commits)
    }

    /// Returns the commits that changed a file that the filter selects.
    fn changing(&self, history: &History) -> Result<RoaringBitmap, HistoryError> {
        let mut commits = RoaringBitmap::new();
        for batch in history.batches() {
            let paths: Vec<&[u8]> = batch
                .paths_from(b"")
                .filter(|path| self.files.passes_path(path))
                .collect();
            for path in paths {
                let own = batch.changes_of(path)?.into_iter();
                let counts = own.filter(|change| history.parents(change.commit).len() < 2 || change.is_combined);
                commits.extend(counts.map(|change| change.commit));
            }
        }
        Ok(commits)
    }
}
