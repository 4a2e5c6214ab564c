//! Files, definitions and code that were deleted.

use super::answer::Answer;
use super::question::Question;
use super::rows::{EntryOut, entry_out};
use crate::history::{SymbolChange, SymbolEvents, SymbolKey, SymbolVersion};
use crate::query::{DeletedSymbol, FileLogEntry, deleted_files};
use crate::session::{OpenedHistory, Result};

impl Question<'_> {
    pub(super) fn add_deleted(&self, answer: &mut Answer) -> Result<()> {
        let OpenedHistory {
            history,
            reached,
            mailmap,
            ..
        } = self.targets.opened;
        let files = self.targets.files()?;
        let folder = match self.path.as_bytes() {
            [] => Vec::new(),
            path => [path, b"/"].concat(),
        };
        let mut deleted = deleted_files(history, reached, &|path| files.contains(path), &folder)?;
        let numbers: Vec<u32> = deleted.iter().map(|change| change.change.commit).collect();
        let heads = history.heads(&numbers)?;
        deleted.retain(|change| {
            let head = heads.get(&change.change.commit);
            head.is_some_and(|head| self.passing_author(head).is_some()) && self.is_visible_change(change)
        });
        let mut own = self.uncommitted_changes();
        own.retain(|change| change.old.is_some() && change.new.is_none());
        for change in own {
            answer.rows.push(self.uncommitted_out(&[change], &mut None)?);
        }
        answer.facts.total = deleted.len() + answer.rows.len();
        for change in self.page(&mut answer.rows, &deleted) {
            let head = heads[&change.change.commit].clone();
            answer.rows.push(entry_out(&FileLogEntry {
                number: change.change.commit,
                author: mailmap.resolve(&head.author),
                head,
                is_merge: history.parents(change.change.commit).len() > 1,
                changes: vec![change.clone()],
                n_before: 0,
            }));
        }
        Ok(())
    }

    /// Adds the deleted definitions with the requested name.
    pub(super) fn add_deleted_symbols(&self, answer: &mut Answer) -> Result<()> {
        let (file, name) = match self.targets.symbol_of_file(&self.path)? {
            Some(key) => (Some(key.path), key.name),
            None => (None, self.path.to_text().into_owned()),
        };
        let mut deleted = self.targets.deleted(&name)?;
        let is_meant =
            |key: &SymbolKey| file.as_ref().is_none_or(|file| key.path == *file) && self.is_visible(&key.path);
        deleted.retain(|gone| is_meant(&gone.key));
        let history = &self.targets.opened.history;
        let numbers: Vec<u32> = deleted.iter().map(|gone| gone.commit).collect();
        let heads = history.heads(&numbers)?;
        deleted.retain(|gone| {
            let head = heads.get(&gone.commit);
            head.is_some_and(|head| self.passing_author(head).is_some())
        });
        let symbols = self.symbol_question();
        if self.passes_uncommitted() {
            for taken in self.targets.taken_away(&name)? {
                if is_meant(&taken.key) {
                    answer.rows.push(EntryOut {
                        symbol: symbols.uncommitted(&taken.key)?.and_then(|own| own.change),
                        ..EntryOut::default()
                    });
                }
            }
        }
        answer.facts.total = deleted.len() + answer.rows.len();
        if answer.facts.total == 0 {
            let mut renamed = self.targets.renamed(&name)?;
            renamed.retain(|now| self.is_visible(&now.key.path));
            let mut present = Vec::new();
            for now in &renamed {
                present.extend(self.is_defined(&now.key)?.then(|| now.id.clone()));
            }
            answer.facts.is_near_present = !present.is_empty();
            answer.facts.near = match present.as_slice() {
                [] => renamed.into_iter().map(|last| last.id).collect(),
                _ => present,
            };
        }
        let mut reader = self.targets.workspace.repository.reader();
        for gone in self.page(&mut answer.rows, &deleted).to_vec() {
            let head = &heads[&gone.commit];
            let author = self.targets.opened.mailmap.resolve(&head.author);
            let mut row = EntryOut::of(head, &author, history.parents(gone.commit).len() > 1);
            row.symbol = Some(symbols.change_out(&removal(gone), &mut reader)?);
            answer.rows.push(row);
        }
        Ok(())
    }
}

fn removal(gone: DeletedSymbol) -> SymbolChange {
    SymbolChange {
        commit: gone.commit,
        events: SymbolEvents {
            removed: true,
            ..SymbolEvents::default()
        },
        from: None,
        confidence: 1.0,
        old: Some(SymbolVersion {
            oid: gone.version.oid,
            start_line: gone.lines.0,
            end_line: gone.lines.1,
        }),
        new: None,
        key: gone.key,
    }
}
