//! The commits that changed a definition.

use std::collections::BTreeMap;

use super::answer::Answer;
use super::question::{HistoryOp, Question};
use super::rows::EntryOut;
use crate::artifact::Extractor;
use crate::extract::Options;
use crate::history::{CommitHead, FileShapes, SymbolChange, SymbolKey, Who};
use crate::ops::sink::Recorded;
use crate::ops::symbol_history::SymbolQuestion;
use crate::query::kind_name;
use crate::session::Result;

impl Question<'_> {
    /// Adds the history of one definition.
    pub(super) fn add_symbol(&self, answer: &mut Answer, key: &SymbolKey) -> Result<()> {
        answer.facts.target.kind = "symbol";
        answer.facts.target.path = key.id();
        let symbols = self.symbol_question();
        let own = symbols.uncommitted(key)?;
        let life = symbols.life(own.as_ref().map_or(key, |own| &own.committed))?;
        answer.facts.target.present = match &own {
            Some(own) => own.is_there,
            // A definition may exist although no recorded commit added it.
            None => life.is_there || (life.n_missing + life.n_unread > 0 && self.is_defined(key)?),
        };
        let is_taken = own.as_ref().is_some_and(|own| !own.is_there) && life.is_there;
        if life.changes.is_empty() && life.n_unread == 0 && !answer.facts.target.present && !is_taken {
            answer.facts.target.kind = "unknown";
        }
        if life.n_missing > 0 {
            answer.incomplete.push(format!(
                "{} versions of its file are missing or damaged in git, so commits that changed it may be missing \
                 here; {}",
                life.n_missing,
                self.targets.workspace.records().how_to_get_objects()
            ));
        }
        answer.incomplete.extend(unread_changes(Some(life.n_unread)));
        let history = &self.targets.opened.history;
        let numbers: Vec<u32> = life.changes.iter().map(|change| change.commit).collect();
        answer.gaps.keep_renames(numbers.iter().copied());
        let before = match life.changes.last() {
            Some(first) if life.n_unread == 0 && first.events.added => self.part_before(first)?,
            _ => None,
        };
        let of_part = before.iter().flat_map(|(_, numbers)| numbers);
        let numbers: Vec<u32> = numbers.iter().chain(of_part).copied().collect();
        let heads = history.heads(&numbers)?;
        let last_removal = life.changes.first().filter(|change| change.events.removed);
        let gone = last_removal
            .map(|change| change.commit)
            .filter(|_| !answer.facts.target.present);
        let passing = self.passing(&life.changes, life.n_unread > 0, &heads);
        if self.op == HistoryOp::Cochange {
            let commits: Vec<u32> = passing.iter().map(|(change, ..)| change.commit).collect();
            let own = passing.iter().map(|(change, ..)| change.key.path.clone()).collect();
            return self.add_cochange(answer, &commits, &own);
        }
        let is_open = self.passes_uncommitted() && self.op != HistoryOp::Introduced;
        let own = own.filter(|own| is_open && self.is_visible(&own.committed.path));
        if let Some(change) = own.and_then(|own| own.change) {
            answer.rows.push(EntryOut {
                symbol: Some(change),
                ..EntryOut::default()
            });
        }
        if self.op == HistoryOp::LastSeen {
            answer.facts.last_seen = Some(self.last_seen(answer.facts.target.present, is_taken, gone)?);
        }
        let entry = |(change, head, author)| (Some(change), head, author);
        let mut entries: Vec<(Option<&SymbolChange>, &CommitHead, Who)> = passing.into_iter().map(entry).collect();
        for number in before.iter().flat_map(|(_, numbers)| numbers) {
            if self.op == HistoryOp::Introduced {
                entries.clear();
            }
            let head = &heads[number];
            entries.extend(self.passing_author(head).map(|author| (None, head, author)));
        }
        answer.facts.total = entries.len() + answer.rows.len();
        let kind = before.map(|(kind, _)| kind);
        let mut reader = self.targets.workspace.repository.reader();
        let mut is_first = true;
        for (change, head, author) in self.page(&mut answer.rows, &entries) {
            let is_merge = |change: &SymbolChange| history.parents(change.commit).len() > 1;
            let mut row = EntryOut::of(head, author, change.is_some_and(is_merge));
            match change {
                Some(change) => row.symbol = Some(symbols.change_out(change, &mut reader)?),
                None => {
                    row.earlier_kind = kind;
                    if let Some(kind) = kind.filter(|_| std::mem::take(&mut is_first)) {
                        row.heading = Recorded::of(|out| out.line(&format!("lines of the {kind} that it was before:")));
                    }
                }
            }
            answer.rows.push(row);
        }
        Ok(())
    }

    /// Returns the kind of the definition before the commit that added it, if it was a part of another definition, and
    /// the commits that changed its lines.
    fn part_before(&self, added: &SymbolChange) -> Result<Option<(&'static str, Vec<u32>)>> {
        let SymbolKey { path, name, .. } = &added.key;
        let history = &self.targets.opened.history;
        let parent = history.parents(added.commit).first().copied().flatten();
        let (Some(parent), Some(entry)) = (parent, self.entry_before(added.commit, path)?) else {
            return Ok(None);
        };
        let Some(bytes) = self.targets.workspace.records().content(path, entry, &mut None)? else {
            return Ok(None);
        };
        let file = FileShapes::of(&mut Extractor::new(Options::default()), path, bytes);
        let Some((kind, range)) = file.part(name) else {
            return Ok(None);
        };
        let repository = &self.targets.workspace.repository;
        let interrupt = self.targets.ctx.interrupt;
        let commits = repository.line_log(history.id(parent)?, path, file.lines_of(range), interrupt)?;
        let numbers = commits.iter().filter_map(|id| history.number(*id)).collect();
        Ok(Some((kind_name(kind), numbers)))
    }

    /// Returns the changes of a definition that match the request.
    fn passing<'l>(
        &self,
        changes: &'l [SymbolChange],
        is_partial: bool,
        heads: &'l BTreeMap<u32, CommitHead>,
    ) -> Vec<(&'l SymbolChange, &'l CommitHead, Who)> {
        let n_skipped = match self.op {
            HistoryOp::Introduced if is_partial => changes.len(),
            HistoryOp::Introduced => changes.len().saturating_sub(1),
            _ => 0,
        };
        let is_wanted = |change: &&SymbolChange| {
            !(self.no_formatting && change.events.names() == ["formatting"])
                && self.is_visible(&change.key.path)
                && change.from.as_ref().is_none_or(|from| self.is_visible(&from.path))
        };
        let wanted = changes[n_skipped..].iter().filter(is_wanted);
        wanted
            .filter_map(|change| {
                let head = &heads[&change.commit];
                Some((change, head, self.passing_author(head)?))
            })
            .collect()
    }

    /// Returns true if the current version of the file contains the definition.
    pub(super) fn is_defined(&self, key: &SymbolKey) -> Result<bool> {
        let file = self.targets.shapes(&key.path)?;
        Ok(file.is_some_and(|file| file.find(&key.name, key.nth).is_some()))
    }

    pub(super) fn symbol_question(&self) -> SymbolQuestion<'_> {
        SymbolQuestion {
            targets: self.targets,
            has_diff: self.part.has_diff,
        }
    }
}

/// Returns a note if a definition's history was read only partly because the time limit was reached.
pub(crate) fn unread_changes(n_changes: Option<usize>) -> Option<String> {
    let n_changes = n_changes.filter(|&n_changes| n_changes > 0)?;
    Some(format!(
        "{n_changes} older changes of the file were not read yet; repeat the call to continue, or run codescout \
         index --history once"
    ))
}
