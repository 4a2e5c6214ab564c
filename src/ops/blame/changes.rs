//! Blames definitions by their recorded changes.

use super::rows::{BlameRow, CommitOut, SymbolOut, owner_out};
use super::{Answer, BlameBy, Question, no_definition};
use crate::history::{Boundary, CommitHead, Shape, SymbolChange, SymbolKey};
use crate::model::RepoPath;
use crate::ops::history::unread_changes;
use crate::ops::record::person_out;
use crate::query::{Gaps, change_owners, kind_name, timestamp};
use crate::session::Result;

impl Question<'_> {
    /// Returns true if definitions can be blamed by their recorded changes: all commits are traced, the file has
    /// definitions, and no option requires lines.
    pub(super) fn knows_changes(&self, path: &RepoPath) -> Result<bool> {
        let (args, targets) = (self.args, self.targets);
        let history = &targets.opened.history;
        let is_plain = !(args.ignore_whitespace || args.moved || args.copied > 0)
            && args.ignore_revs.is_empty()
            && args.ignore_revs_files.is_empty()
            && !targets.workspace.repository.has_ignored_revisions();
        let is_traced = history.n_traced(targets.workspace.records().symbol_recipe()) == history.n_commits();
        let is_committed = !targets.uncommitted.iter().any(|change| change.path == *path);
        let is_meant = matches!(args.by, None | Some(BlameBy::Symbol));
        if !(is_plain && is_traced && is_committed && is_meant && history.n_commits() > 0) {
            return Ok(false);
        }
        // If commits are missing from the record, so are the authors of earlier changes.
        if !Gaps::of(history, &targets.opened.reached)?.is_empty() {
            return Ok(false);
        }
        Ok(targets.shapes(path)?.is_some_and(|file| !file.shapes.is_empty()))
    }

    /// Adds each definition with the commits that changed it.
    pub(super) fn add_changes(&self, answer: &mut Answer, path: &RepoPath, symbol: Option<&SymbolKey>) -> Result<()> {
        answer.by = "symbol";
        answer.basis = Some(if self.args.all_changes {
            "all_changes"
        } else {
            "changes"
        });
        answer.target.path = symbol.map_or_else(|| path.to_string(), SymbolKey::id);
        let opened = self.targets.opened;
        let (Some(tip), Some(file)) = (opened.tip, self.targets.shapes(path)?) else {
            return Ok(());
        };
        let is_meant = |shape: &&Shape| symbol.is_none_or(|key| shape.qualified == key.name && shape.nth == key.nth);
        let shapes: Vec<&Shape> = file.shapes.iter().filter(is_meant).collect();
        if let Some(key) = symbol.filter(|_| shapes.is_empty()) {
            return Err(no_definition(path, key));
        }
        let keys: Vec<SymbolKey> = shapes.iter().map(|shape| shape.key(path)).collect();
        let mut reader = self.targets.workspace.repository.reader();
        let history = &opened.history;
        let lives = self.targets.lives(&mut reader, |lives| lives.of_all(tip, &keys))?;
        answer
            .incomplete
            .extend(unread_changes(lives.iter().map(|life| life.n_unread).max()));
        let numbers = lives.iter().flat_map(|life| &life.changes).map(|change| change.commit);
        let heads = history.heads(&numbers.collect::<Vec<_>>())?;
        let counts = |change: &&SymbolChange| self.args.all_changes || change.events.is_of_content();
        let rows = shapes.iter().zip(&keys).zip(&lives);
        let rows = rows.map(|((shape, key), life)| {
            let (start_line, end_line) = file.lines_of(shape.range);
            let changes: Vec<&CommitHead> = life
                .changes
                .iter()
                .filter(counts)
                .filter_map(|change| heads.get(&change.commit))
                .collect();
            SymbolOut {
                id: key.id(),
                name: shape.qualified.clone(),
                kind: kind_name(shape.kind),
                start_line,
                end_line,
                last: changes.first().map(|head| self.head_out(head)),
                uncommitted_lines: 0,
                commits: changes.len() as u32,
                owners: change_owners(&changes, &opened.mailmap).iter().map(owner_out).collect(),
            }
        });
        answer.rows = rows.map(BlameRow::Symbol).collect();
        Ok(())
    }

    fn head_out(&self, head: &CommitHead) -> CommitOut {
        CommitOut {
            commit: head.id.to_string(),
            author: person_out(&self.targets.opened.mailmap.resolve(&head.author)),
            date: timestamp(head.author_time, head.author_offset),
            subject: head.subject.clone(),
            boundary: head.boundary != Boundary::None,
        }
    }
}
