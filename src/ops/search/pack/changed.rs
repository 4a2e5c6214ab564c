//! Finds what changed between two states.

use std::collections::{BTreeMap, HashMap};

use super::super::super::diff::{Compared, FileOut, SymbolOut, name_in};
use super::rows::{PackOut, Role};
use super::seeds::{Found, Lines, Seed, Seeker};
use crate::extract::{DefinitionKind, is_text};
use crate::query::{FoundDefinition, LineStarts, is_test_path};
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
        let all = self.texts.definitions(file)?;
        let mut by_name: HashMap<&str, &FoundDefinition> = HashMap::new();
        for found in all.iter().filter(|found| !found.kind.is_data()) {
            by_name.entry(name_in(&found.id, &changed.path)).or_insert(found);
        }
        let starts = LineStarts::of(&bytes);
        let mut seeds: Vec<(bool, Lines)> = Vec::new();
        for symbol in changed.symbols.iter().flatten() {
            let name = name_in(&symbol.id, &changed.path);
            let found = by_name.get(name).filter(|_| !symbol.events.contains(&"removed"));
            let Some(&found) = found else { continue };
            let is_minor = symbol
                .events
                .iter()
                .all(|event| matches!(*event, "doc" | "formatting" | "moved"))
                || found.kind == DefinitionKind::Section;
            let mut lines = Self::of_definition(found.clone(), reason_of(symbol, range));
            let (start, end) = lines.lines;
            lines.marked = overlapping(&changed.lines, (start, end))
                .iter()
                .map(|(first, last)| ((*first).max(start), (*last).min(end)))
                .collect();
            lines.marked_as = "changed lines";
            lines.is_added = symbol.events.contains(&"added");
            if let Some((start, end)) = doc_lines(found, &bytes, &starts) {
                lines
                    .marked
                    .sort_by_key(|changed| start <= changed.0 && changed.1 <= end);
            }
            // The number of a definition can change although its text does not.
            if !lines.marked.is_empty() || symbol.from.is_some() {
                seeds.push((is_minor, lines));
            }
        }
        let mut places: Vec<(u32, u32)> = seeds.iter().map(|(_, one)| one.lines).collect();
        places.sort_unstable();
        // A new definition is shown with what is in it, a block or a changed definition without.
        let is_new = |one: &Lines| one.is_added && !one.is_block();
        let new = seeds.iter().filter(|(_, one)| is_new(one));
        let new = Ends::of(new.map(|(_, one)| one.lines));
        seeds.retain(|(_, one)| !new.contain(one.lines));
        seeds.retain_mut(|(_, outer)| {
            let (first, last) = outer.lines;
            let inner = &places[places.partition_point(|place| place.0 < first)..];
            let inner = &inner[..inner.partition_point(|place| place.0 <= last)];
            let inner = inner.iter().filter(|inner| inner.1 <= last && **inner != outer.lines);
            let inner = joined(inner.copied());
            if inner.is_empty() || is_new(outer) {
                return true;
            }
            let is_shown = |line: u32| {
                let is_blank = || bytes[starts.range(line, line)].trim_ascii().is_empty();
                !overlapping(&inner, (line, line)).is_empty() || is_blank()
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
        let mut covered: Vec<(u32, u32)> = inside.iter().map(|(_, lines)| lines.lines).collect();
        covered.sort_unstable();
        let covered = joined(covered.into_iter());
        let mut windows: Vec<(u32, u32)> = Vec::new();
        for &(first, last) in &changed.lines {
            if !overlapping(&covered, (first, last)).is_empty() || first > n_lines {
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
            marked: overlapping(&changed.lines, lines).to_vec(),
            marked_as: "changed lines",
            is_added: false,
        };
        Ok(windows.into_iter().map(lines).collect())
    }
}

/// The last lines of ranges of lines by their first lines. Of those that begin at a line, or before it, the greatest.
struct Ends(BTreeMap<u32, (u32, u32)>);

impl Ends {
    fn of(ranges: impl Iterator<Item = (u32, u32)>) -> Self {
        let mut ends: BTreeMap<u32, (u32, u32)> = BTreeMap::new();
        for (first, last) in ranges {
            let end = ends.entry(first).or_default();
            end.0 = end.0.max(last);
        }
        let mut greatest = 0;
        for end in ends.values_mut() {
            greatest = greatest.max(end.0);
            end.1 = greatest;
        }
        Self(ends)
    }

    /// Returns true if one of the ranges contains another range.
    fn contain(&self, (first, last): (u32, u32)) -> bool {
        let is_longer = self.0.get(&first).is_some_and(|(end, _)| *end > last);
        let before = self.0.range(..first).next_back();
        is_longer || before.is_some_and(|(_, (_, end))| *end >= last)
    }
}

/// Joins ranges of lines that overlap. Both are in ascending order.
fn joined(ranges: impl Iterator<Item = (u32, u32)>) -> Vec<(u32, u32)> {
    let mut all: Vec<(u32, u32)> = Vec::new();
    for (first, last) in ranges {
        match all.last_mut().filter(|before| first <= before.1) {
            Some(before) => before.1 = before.1.max(last),
            None => all.push((first, last)),
        }
    }
    all
}

/// Returns those of ranges of lines that overlap another range. Their first and last lines are in ascending order.
fn overlapping(ranges: &[(u32, u32)], (first, last): (u32, u32)) -> &[(u32, u32)] {
    let ranges = &ranges[ranges.partition_point(|range| range.1 < first)..];
    &ranges[..ranges.partition_point(|range| range.0 <= last)]
}

/// Returns the lines of the documentation of a definition.
fn doc_lines(found: &FoundDefinition, bytes: &[u8], lines: &LineStarts<'_>) -> Option<(u32, u32)> {
    let doc = found.doc.as_deref()?;
    let text = bytes.get(found.range.clone())?;
    let start = found.range.start + memchr::memmem::find(text, doc.as_bytes())?;
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::support::properties;

    fn ranges() -> impl Strategy<Value = Vec<(u32, u32)>> {
        let range = (1..30u32, 0..6u32).prop_map(|(first, n_more)| (first, first + n_more));
        proptest::collection::vec(range, 0..12)
    }

    proptest! {
        #![proptest_config(properties(200))]

        #[test]
        fn ranges_are_compared_as_one_by_one(all in ranges(), one in (1..30u32, 0..6u32)) {
            let one = (one.0, one.0 + one.1);
            let overlaps = |other: &&(u32, u32)| other.0 <= one.1 && one.0 <= other.1;
            let contains = |outer: &(u32, u32)| *outer != one && outer.0 <= one.0 && one.1 <= outer.1;
            prop_assert_eq!(Ends::of(all.iter().copied()).contain(one), all.iter().any(contains));
            let mut sorted = all;
            sorted.sort_unstable();
            let joined = joined(sorted.iter().copied());
            for line in 1..40 {
                let holds = |range: &&(u32, u32)| range.0 <= line && line <= range.1;
                prop_assert_eq!(joined.iter().filter(holds).count(), usize::from(sorted.iter().any(|range| holds(&range))));
            }
            prop_assert_eq!(overlapping(&joined, one), joined.iter().filter(overlaps).copied().collect::<Vec<_>>());
        }
    }
}
