//! Finds what changed between two states.

use super::super::super::diff::{Compared, FileOut, SymbolOut, name_in};
use super::rows::{PackOut, Role};
use super::seeds::{Found, Lines, Seed, Seeker};
use crate::extract::{DefinitionKind, is_text};
use crate::query::{FoundDefinition, LineStarts, definitions_at, is_test_path};
use crate::session::Result;
use crate::snapshot::FileId;

/// Number of lines shown around changed lines outside of definitions.
const AROUND: u32 = 2;

impl Lines {
    /// Returns true if it only groups other definitions.
    fn is_block(&self) -> bool {
        let kind = self.of.as_ref().map(|(_, found)| found.kind);
        matches!(kind, Some(DefinitionKind::Impl | DefinitionKind::Module))
    }
}

impl Seeker<'_> {
    /// Returns the changed definitions, those of tests last; then removed ones, those of which only the documentation,
    /// format or place changed, and changed lines outside of definitions.
    pub(super) fn changed(&mut self, compared: &Compared) -> Result<Found> {
        let range = self.asked.query.trim();
        let (mut code, mut tests, mut minor) = (Vec::new(), Vec::new(), Vec::new());
        let (mut others, mut removed) = (Vec::new(), Vec::new());
        for file in &compared.files {
            let symbols = file.symbols.iter().flatten();
            for symbol in symbols.clone().filter(|symbol| symbol.events.contains(&"removed")) {
                removed.push(Seed::Ready(removed_item(file, symbol, range)));
            }
            let Some(id) = self.question.view().find_text(&file.path) else {
                continue;
            };
            if !self.question.filter.passes(self.question.view(), id) {
                continue;
            }
            let seeds = self.changed_in(file, id, range)?;
            others.extend(self.lines_outside(file, id, &seeds, range)?);
            for (is_minor, lines) in seeds {
                match (is_minor, is_test_path(&file.path)) {
                    (true, _) => minor.push(lines),
                    (false, true) => tests.push(lines),
                    (false, false) => code.push(lines),
                }
            }
        }
        let lines = code.into_iter().chain(tests).map(Seed::Lines).chain(removed);
        let rest = minor.into_iter().chain(others).map(Seed::Lines);
        Ok(Found {
            seeds: lines.chain(rest).collect(),
            ..Found::default()
        })
    }

    /// Returns the changed definitions of a file, with the changed lines of each. Of nested ones, returns the inner.
    fn changed_in(&mut self, changed: &FileOut, file: FileId, range: &str) -> Result<Vec<(bool, Lines)>> {
        let bytes = self.texts.bytes(file)?;
        let n = self.linker.definitions(file).map_or(0, |all| all.len() as u32);
        let all = definitions_at(self.question.view(), file, &bytes, 0..n)?;
        let mut seeds: Vec<(bool, Lines)> = Vec::new();
        for symbol in changed.symbols.iter().flatten() {
            let name = name_in(&symbol.id, &changed.path);
            let wanted = |found: &&FoundDefinition| name_in(&found.id, &changed.path) == name && !found.kind.is_data();
            let Some(found) = all.iter().find(wanted).filter(|_| !symbol.events.contains(&"removed")) else {
                continue;
            };
            let is_minor = symbol
                .events
                .iter()
                .all(|event| matches!(*event, "doc" | "formatting" | "moved"))
                || found.kind == DefinitionKind::Section;
            let mut lines = Self::of_definition(found.clone(), reason_of(symbol, range));
            let (start, end) = lines.lines;
            lines.marked = changed
                .lines
                .iter()
                .filter(|(first, last)| *first <= end && start <= *last)
                .map(|(first, last)| ((*first).max(start), (*last).min(end)))
                .collect();
            lines.marked_as = "changed lines";
            lines.is_added = symbol.events.contains(&"added");
            if let Some((start, end)) = doc_lines(found, &bytes) {
                lines
                    .marked
                    .sort_by_key(|changed| start <= changed.0 && changed.1 <= end);
            }
            // The number of a definition can change although its text does not.
            if !lines.marked.is_empty() || symbol.from.is_some() {
                seeds.push((is_minor, lines));
            }
        }
        let places: Vec<((u32, u32), bool)> = seeds
            .iter()
            .map(|(_, one)| (one.lines, one.is_added && !one.is_block()))
            .collect();
        let contains =
            |outer: (u32, u32), inner: (u32, u32)| outer != inner && outer.0 <= inner.0 && inner.1 <= outer.1;
        // A new definition is shown with what is in it, a block or a changed definition without.
        let is_in_new = |one: &Lines| {
            places
                .iter()
                .any(|(outer, is_new)| *is_new && contains(*outer, one.lines))
        };
        seeds.retain(|(_, one)| !is_in_new(one));
        let starts = LineStarts::of(&bytes);
        seeds.retain_mut(|(_, outer)| {
            let inner: Vec<(u32, u32)> = places.iter().map(|(lines, _)| *lines).collect();
            let inner: Vec<_> = inner
                .into_iter()
                .filter(|inner| contains(outer.lines, *inner))
                .collect();
            if inner.is_empty() || outer.is_added && !outer.is_block() {
                return true;
            }
            let is_shown = |line: u32| {
                let is_blank = || bytes[starts.range(line, line)].trim_ascii().is_empty();
                inner.iter().any(|inner| inner.0 <= line && line <= inner.1) || is_blank()
            };
            outer.marked.retain(|(first, last)| !(*first..=*last).all(is_shown));
            !outer.is_block() && !outer.marked.is_empty()
        });
        Ok(seeds)
    }

    /// Returns the changed lines of a file that are in none of the changed definitions.
    fn lines_outside(
        &mut self,
        changed: &FileOut,
        file: FileId,
        inside: &[(bool, Lines)],
        range: &str,
    ) -> Result<Vec<Lines>> {
        let bytes = self.texts.bytes(file)?;
        if !is_text(&bytes) {
            return Ok(Vec::new());
        }
        let n_lines = LineStarts::of(&bytes).count();
        let mut windows: Vec<(u32, u32)> = Vec::new();
        for &(first, last) in &changed.lines {
            let is_covered = inside
                .iter()
                .any(|(_, lines)| lines.lines.0 <= last && first <= lines.lines.1);
            if is_covered || first > n_lines {
                continue;
            }
            let (start, end) = (first.saturating_sub(AROUND).max(1), (last + AROUND).min(n_lines));
            match windows.last_mut().filter(|window| start <= window.1 + 1) {
                Some(window) => window.1 = end,
                None => windows.push((start, end)),
            }
        }
        let lines = |lines| Lines {
            file,
            lines,
            of: None,
            reason: format!("changed in {range}"),
            marked: changed.lines.clone(),
            marked_as: "changed lines",
            is_added: false,
        };
        Ok(windows.into_iter().map(lines).collect())
    }
}

/// Returns the lines of the documentation of a definition.
fn doc_lines(found: &FoundDefinition, bytes: &[u8]) -> Option<(u32, u32)> {
    let doc = found.doc.as_deref()?;
    let text = bytes.get(found.range.clone())?;
    let start = found.range.start + memchr::memmem::find(text, doc.as_bytes())?;
    let lines = LineStarts::of(bytes);
    Some((lines.line_of(start), lines.line_of(start + doc.len().saturating_sub(1))))
}

fn reason_of(symbol: &SymbolOut, range: &str) -> String {
    if symbol.events.contains(&"added") {
        return format!("added in {range}");
    }
    let from = symbol.from.as_ref().map(|from| format!(" from {from}"));
    format!(
        "changed in {range}: {}{}",
        symbol.events.join(", "),
        from.unwrap_or_default()
    )
}

fn removed_item(file: &FileOut, symbol: &SymbolOut, range: &str) -> PackOut {
    let (start_line, end_line) = symbol.old_lines.unwrap_or_default();
    let path = file.from_path.as_ref().unwrap_or(&file.path);
    let name = name_in(&symbol.id, path).to_owned();
    let reason = format!("removed in {range}");
    PackOut {
        role: Role::Signature,
        label: reason.clone(),
        reason,
        path: path.clone(),
        start_line,
        end_line,
        line: None,
        id: Some(symbol.id.clone()),
        blob: file.old_blob.clone(),
        text: Some(format!("{} {name}", symbol.kind)),
        lossy: false,
        name,
        is_first: true,
        n_reasons: 1,
        is_known: false,
    }
}
