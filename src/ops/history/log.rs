//! The commits that changed a file, a directory or lines, and the changes that are not committed.

use std::collections::BTreeSet;

use super::answer::Answer;
use super::question::{HistoryOp, Question};
use super::rows::{ChangeOut, EntryOut, entry_out};
use crate::extract::is_text;
use crate::git::{WorkTreeReader, unified_diff};
use crate::history::{Entry, SymbolKey};
use crate::model::RepoPath;
use crate::ops::sink::{Recorded, Style};
use crate::ops::target::n_lines_with;
use crate::query::{FileChangeKind, FileLog, FileLogEntry, file_log, folder_log, patch_of};
use crate::session::{OpenedHistory, Result, Uncommitted};

impl Question<'_> {
    pub(super) fn add_file(&self, answer: &mut Answer) -> Result<()> {
        let own = self.uncommitted_changes();
        let changed = self.targets.uncommitted.iter().find(|change| change.path == self.path);
        let origin = changed.and_then(|change| change.origin.as_ref());
        let committed = origin.unwrap_or(&self.path);
        let OpenedHistory {
            history,
            reached,
            mailmap,
            ..
        } = self.targets.opened;
        let log = match self.targets.opened.tip {
            Some(tip) => file_log(history, tip, reached, committed, mailmap)?,
            None => FileLog::default(),
        };
        answer.facts.target.present = match changed {
            Some(change) => change.new.is_some(),
            None => log.is_there || self.targets.committed_entry(committed)?.is_some(),
        };
        self.add_log(answer, log.entries, own)
    }

    pub(super) fn add_folder(&self, answer: &mut Answer) -> Result<()> {
        let OpenedHistory {
            history,
            reached,
            mailmap,
            ..
        } = self.targets.opened;
        let log = folder_log(history, reached, &self.path, mailmap)?;
        answer.facts.target.present = log.is_there;
        self.add_log(answer, log.entries, self.uncommitted_changes())
    }

    /// Adds the history of the definition that contains the lines. If there is none, adds the history of the lines by
    /// git.
    pub(super) fn add_lines(&self, answer: &mut Answer, path: &RepoPath, (first, last): (u32, u32)) -> Result<()> {
        let file = self.targets.shapes(path)?;
        let bytes = file.as_ref().map_or(&[][..], |file| &file.bytes);
        let last = last.min(n_lines_with(path, bytes, first)?);
        if let Some(shape) = file.as_ref().and_then(|file| file.around(first, last)) {
            let key = SymbolKey {
                path: path.clone(),
                name: shape.qualified.clone(),
                nth: shape.nth,
            };
            return self.add_symbol(answer, &key);
        }
        answer.facts.target.kind = "lines";
        answer.facts.target.present = true;
        answer.facts.target.path = format!("{path}:{first}-{last}");
        let Some(commit) = self.targets.opened.target.and_then(|target| target.commit) else {
            return Ok(());
        };
        let history = &self.targets.opened.history;
        let repository = &self.targets.workspace.repository;
        let commits = repository.line_log(commit, path, (first, last), self.targets.ctx.interrupt)?;
        let mut numbers: Vec<u32> = commits.iter().filter_map(|id| history.number(*id)).collect();
        if self.op == HistoryOp::Introduced {
            numbers.drain(..numbers.len().saturating_sub(1));
        }
        let heads = history.heads(&numbers)?;
        let found = numbers.iter().filter_map(|number| heads.get(number));
        let passing: Vec<_> = found
            .filter_map(|head| Some((head, self.passing_author(head)?)))
            .collect();
        answer.facts.total = passing.len();
        for (head, author) in self.page(&mut answer.rows, &passing) {
            answer.rows.push(EntryOut::of(head, author, false));
        }
        Ok(())
    }

    fn add_log(&self, answer: &mut Answer, mut committed: Vec<FileLogEntry>, own: Vec<&Uncommitted>) -> Result<()> {
        answer.gaps.keep_renames(committed.iter().map(|entry| entry.number));
        if self.op == HistoryOp::LastSeen {
            let is_taken =
                |change: &Uncommitted| change.path == self.path && change.old.is_some() && change.new.is_none();
            let is_taken = self.targets.uncommitted.iter().any(is_taken);
            let is_deletion = |entry: &&FileLogEntry| entry.changes.iter().all(|change| change.change.new.is_none());
            let is_present = answer.facts.target.present;
            let gone = committed
                .first()
                .filter(|_| !is_present && !is_taken)
                .filter(is_deletion);
            let gone = gone.map(|entry| entry.number);
            answer.facts.last_seen = Some(self.last_seen(is_present, is_taken, gone)?);
        }
        if self.op != HistoryOp::Log {
            committed.retain(|entry| entry.n_before == 0);
        }
        if self.op == HistoryOp::Introduced {
            committed.drain(..committed.len().saturating_sub(1));
        }
        committed.retain_mut(|entry| {
            let n_changes = entry.changes.len();
            entry.changes.retain(|change| self.is_visible_change(change));
            let is_visible = n_changes == 0 || !entry.changes.is_empty();
            is_visible && self.filter.passes(&entry.head, &entry.author)
        });
        if self.op == HistoryOp::Cochange {
            let commits: Vec<u32> = committed.iter().map(|entry| entry.number).collect();
            let of_entries = committed.iter().flat_map(|entry| &entry.changes);
            let mut own: BTreeSet<RepoPath> = of_entries.map(|change| change.path.clone()).collect();
            own.insert(self.path.clone());
            return self.add_cochange(answer, &commits, &own);
        }
        let mut disk = None;
        if !own.is_empty() && self.op != HistoryOp::Introduced {
            answer.rows.push(self.uncommitted_out(&own, &mut disk)?);
        }
        answer.facts.total = committed.len() + answer.rows.len();
        let mut reader = self.targets.workspace.repository.reader();
        let mut earlier = None;
        for entry in self.page(&mut answer.rows, &committed) {
            let mut row = entry_out(entry);
            if row.earlier_file.is_some() && row.earlier_file != earlier {
                let path = row.changes.first().map(|change| change.path.clone());
                row.heading = Recorded::of(|out| {
                    out.plain("another file that was ");
                    out.span(Style::Path, &path.unwrap_or_default());
                    out.line(" before:");
                });
            }
            earlier = row.earlier_file;
            if self.part.has_diff {
                for (change, out) in entry.changes.iter().zip(&mut row.changes) {
                    let old = match &change.change.origin {
                        Some(origin) => self.entry_before(change.change.commit, &origin.path)?,
                        None => change.change.old,
                    };
                    out.diff = patch_of(&mut reader, old, change.change.new)?;
                }
            }
            answer.rows.push(row);
        }
        Ok(())
    }

    /// Returns the entry at a path in the parent of a commit.
    pub(super) fn entry_before(&self, commit: u32, path: &RepoPath) -> Result<Option<Entry>> {
        let changes = self.targets.opened.history.changes_of(path.as_bytes())?;
        let here = changes.iter().find(|change| change.commit == commit);
        Ok(here.and_then(|change| change.old))
    }

    /// Returns the uncommitted changes of the target.
    pub(super) fn uncommitted_changes(&self) -> Vec<&Uncommitted> {
        let folder = [self.path.as_bytes(), b"/"].concat();
        let is_meant = |change: &&Uncommitted| {
            change.path == self.path || self.path.as_bytes().is_empty() || change.path.as_bytes().starts_with(&folder)
        };
        let is_visible = |change: &&Uncommitted| {
            self.is_visible(&change.path) && change.origin.as_ref().is_none_or(|origin| self.is_visible(origin))
        };
        let is_open = self.passes_uncommitted();
        let meant = self.targets.uncommitted.iter().filter(is_meant).filter(|_| is_open);
        meant.filter(is_visible).collect()
    }

    pub(super) fn uncommitted_out(&self, own: &[&Uncommitted], disk: &mut Option<WorkTreeReader>) -> Result<EntryOut> {
        let mut changes = Vec::with_capacity(own.len());
        for change in own {
            let diff = if self.part.has_diff {
                self.uncommitted_diff(change, disk)?
            } else {
                None
            };
            changes.push(ChangeOut {
                kind: FileChangeKind::between(change.old, change.new, change.origin.is_some()).name(),
                path: change.path.to_string(),
                from_path: change.origin.as_ref().map(ToString::to_string),
                similarity: change.origin.as_ref().map(|_| 100),
                old_blob: change.old.map(|entry| entry.oid.to_string()),
                new_blob: change.new.map(|entry| entry.oid.to_string()),
                diff,
            });
        }
        Ok(EntryOut {
            changes,
            ..EntryOut::default()
        })
    }

    fn uncommitted_diff(&self, change: &Uncommitted, disk: &mut Option<WorkTreeReader>) -> Result<Option<String>> {
        let mut read = |entry: Option<Entry>| match entry {
            None => Ok(Some(Vec::new())),
            Some(entry) => self.targets.workspace.records().content(&change.path, entry, disk),
        };
        let (Some(old), Some(new)) = (read(change.old)?, read(change.new)?) else {
            return Ok(None);
        };
        Ok((is_text(&old) && is_text(&new)).then(|| unified_diff(&old, &new, (1, 1))))
    }
}
