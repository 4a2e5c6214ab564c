//! Finds the results of a pack: ranked hits, the definitions of a name, or what changed.

use std::collections::HashSet;

use super::super::super::ask::Ask;
use super::super::super::diff::{Compared, FileOut, SymbolOut, name_in};
use super::super::super::paths::inside;
use super::super::super::question::Question;
use super::super::super::symbol::place_query;
use super::super::ranked::best_hits;
use super::super::{Asked, SearchMode};
use super::rows::{PackOut, Role};
use super::texts::Texts;
use crate::extract::{ChunkKind, DefinitionKind};
use crate::link::{DefId, Linker};
use crate::model::ByteRange;
use crate::query::{
    FoundBy, FoundDefinition, Hit, LineStarts, Marks, Request, SymbolQuery, SymbolRequest, definitions_at,
    is_test_path, split_position, symbols,
};
use crate::session::Result;
use crate::snapshot::FileId;

/// Number of hits considered for each result; several can be in one definition.
const HITS_PER_RESULT: usize = 2;
/// Maximum number of results of a question.
const MAX_RESULTS: usize = 200;
/// Maximum number of words of the question in a reason.
const MAX_WORDS: usize = 4;
/// Number of lines shown around changed lines outside of definitions.
const AROUND: u32 = 2;

/// A result.
pub(super) enum Seed {
    /// Lines of a file: those of a definition, or others.
    Lines(Lines),
    /// An item that is shown as it is.
    Ready(PackOut),
}

/// The lines of a result.
pub(super) struct Lines {
    pub(super) file: FileId,
    pub(super) lines: (u32, u32),
    pub(super) of: Option<(DefId, FoundDefinition)>,
    pub(super) reason: String,
    /// The matching or changed lines, best first, and why they are shown.
    pub(super) marked: Vec<(u32, u32)>,
    pub(super) marked_as: &'static str,
    /// True for a new definition.
    is_added: bool,
}

/// The results, with remarks.
#[derive(Default)]
pub(super) struct Found {
    pub(super) seeds: Vec<Seed>,
    pub(super) notes: Vec<String>,
    pub(super) read_as: Option<String>,
}

/// Returns the query if it names two existing revisions: `A..B` or `A...B`.
pub(super) fn range_in<'q>(ask: &Ask<'_>, query: &'q str) -> Option<&'q str> {
    let query = query.trim();
    let (a, b) = query.split_once("...").or_else(|| query.split_once(".."))?;
    let exists = |reference: &str| {
        reference.is_empty()
            || ask
                .session
                .checked(reference)
                .is_ok_and(|reference| ask.session.workspace.target(reference).is_ok())
    };
    let is_word = !query.contains(char::is_whitespace) && (!a.is_empty() || !b.is_empty());
    (is_word && exists(a) && exists(b)).then_some(query)
}

/// Finds results.
pub(super) struct Seeker<'a> {
    asked: &'a Asked<'a>,
    ask: &'a Ask<'a>,
    question: &'a Question<'a>,
    linker: &'a Linker<'a>,
    pub(super) texts: Texts<'a>,
}

impl<'a> Seeker<'a> {
    pub(super) fn new(
        asked: &'a Asked<'a>,
        ask: &'a Ask<'a>,
        question: &'a Question<'a>,
        linker: &'a Linker<'a>,
    ) -> Self {
        Self {
            asked,
            ask,
            question,
            linker,
            texts: Texts::new(question),
        }
    }

    /// Finds the definitions that the query names by a name, an id or a place. Returns `None` if it names none.
    pub(super) fn named(&mut self) -> Result<Option<Found>> {
        let query = self.asked.query.trim();
        if query.contains(char::is_whitespace) || !matches!(self.asked.request.mode, SearchMode::Auto) {
            return Ok(None);
        }
        let (workspace, view) = (&self.ask.session.workspace, self.question.view());
        let name = inside(workspace, query);
        let is_place = split_position(&name).is_some_and(|(path, ..)| view.find_text(path).is_some());
        let request = SymbolRequest {
            query: if is_place {
                place_query(workspace, view, query)?
            } else {
                SymbolQuery::Named(name.into_owned())
            },
            filter: self.question.filter.clone(),
            kinds: self.asked.request.kind.kinds()?,
        };
        // A word that is no name is a question.
        let Ok(outcome) = symbols(&self.question.sources(), &request) else {
            return Ok(None);
        };
        let mut definitions = outcome.definitions;
        if outcome.found_by == FoundBy::OtherSpelling || definitions.is_empty() {
            return Ok(None);
        }
        let is_minor = |found: &FoundDefinition| {
            let is_part = matches!(
                found.kind,
                DefinitionKind::Impl | DefinitionKind::Module | DefinitionKind::Section
            );
            is_part || found.kind.is_data()
        };
        let is_id = query.contains('#') || is_place;
        if !is_id && definitions.iter().all(is_minor) {
            return Ok(None);
        }
        if !definitions.iter().all(is_minor) {
            definitions.retain(|found| !is_minor(found));
        }
        let verb = match outcome.found_by {
            FoundBy::Definition | FoundBy::Enclosing => "at",
            FoundBy::Reference => "named at",
            _ => "named",
        };
        let seed = |found: FoundDefinition| Seed::Lines(self.of_definition(found, format!("{verb} {query}")));
        Ok(Some(Found {
            seeds: definitions.into_iter().map(seed).collect(),
            ..Found::default()
        }))
    }

    #[expect(clippy::unused_self, reason = "reads as the others")]
    fn of_definition(&self, found: FoundDefinition, reason: String) -> Lines {
        let of = DefId {
            file: found.file,
            index: found.index,
        };
        Lines {
            file: found.file,
            lines: (found.start_line, found.end_line),
            of: Some((of, found)),
            reason,
            marked: Vec::new(),
            marked_as: "",
            is_added: false,
        }
    }

    /// Ranks hits, and finds the definition of each.
    pub(super) fn ranked(&mut self, limit: usize) -> Result<Found> {
        let request = Request {
            limit: limit.min(MAX_RESULTS) * HITS_PER_RESULT,
            filter: self.question.filter.clone(),
            ..self.asked.ranking(None)
        };
        let kinds = self.asked.request.kind.kinds()?;
        let (workspace, interrupt) = (&self.ask.session.workspace, self.ask.ctx.interrupt);
        let best = best_hits(workspace, self.question.view(), &request, &kinds, interrupt)?;
        let mut found = Found {
            notes: best.notes,
            read_as: best.outcome.read_as,
            ..Found::default()
        };
        found
            .notes
            .extend(best.absent.iter().map(|text| format!("no file contains {text:?}")));
        let words = Marks::of_query(found.read_as.as_deref().unwrap_or(self.asked.query));
        let mut seen = HashSet::new();
        for hit in &best.outcome.hits {
            if found.seeds.len() >= limit {
                break;
            }
            let Some(lines) = self.of_hit(hit, &words)? else {
                continue;
            };
            let place = (
                lines.file,
                lines.of.as_ref().map_or(lines.lines, |(of, _)| (of.index, 0)),
            );
            if seen.insert((place, lines.of.is_some())) {
                found.seeds.push(Seed::Lines(lines));
            }
        }
        Ok(found)
    }

    fn of_hit(&mut self, hit: &Hit, words: &Marks) -> Result<Option<Lines>> {
        let Some(place) = hit.places.first() else {
            return Ok(None);
        };
        let bytes = self.texts.bytes(place.file)?;
        let Some((start, end, range)) = hit.lines(&bytes) else {
            return Ok(None);
        };
        let index = self.definition_of(hit, place.file, &bytes, range)?;
        let mut lines = match index {
            Some(index) => {
                let of = DefId {
                    file: place.file,
                    index,
                };
                let Some(found) = self.texts.definition(of)? else {
                    return Ok(None);
                };
                self.of_definition(found, String::new())
            }
            None => Lines {
                file: place.file,
                lines: (start, end.max(start)),
                of: None,
                reason: String::new(),
                marked: Vec::new(),
                marked_as: "",
                is_added: false,
            },
        };
        lines.marked_as = "matching lines";
        if let Some(line) = hit.line {
            lines.marked.push((line, line));
        }
        let (mut scored, matched) = matches_in(&bytes, lines.lines, words);
        // Lines of the hit first, because they were ranked.
        scored.sort_by_key(|(line, n)| (!(start..=end).contains(line), std::cmp::Reverse(*n), *line));
        lines.marked.extend(scored.into_iter().map(|(line, _)| (line, line)));
        lines.reason = match (self.asked.request.mode, matched.is_empty()) {
            (SearchMode::Similar, _) => "similar code".to_owned(),
            (_, true) => "similar in meaning".to_owned(),
            (_, false) => format!("matches {}", matched.join(" ")),
        };
        Ok(Some(lines))
    }

    /// Returns the index of the definition that a hit is in, or of the best one in it.
    fn definition_of(&mut self, hit: &Hit, file: FileId, bytes: &[u8], range: ByteRange) -> Result<Option<u32>> {
        let Some(extraction) = self.question.view().extraction(file).transpose()? else {
            return Ok(None);
        };
        let text = bytes.get(range.as_usize()).unwrap_or_default();
        let start = range.start + (text.len() - text.trim_ascii_start().len()) as u32;
        let end = range.start + text.trim_ascii_end().len() as u32;
        let definitions = &extraction.definitions;
        let around = (0..definitions.len() as u32).filter(|&index| {
            let own = definitions[index as usize].range;
            own.start <= start && end <= own.end
        });
        let around = around.min_by_key(|&index| definitions[index as usize].range.len());
        let is_whole = hit.focus.is_some()
            || matches!(
                hit.kind,
                ChunkKind::Function | ChunkKind::Type | ChunkKind::Test | ChunkKind::Section
            );
        if is_whole && around.is_some() {
            return Ok(around);
        }
        // Of several small items, the one with the most words of the question.
        let marks = Marks::of_query(self.asked.query);
        let inside = (0..definitions.len() as u32).filter(|&index| {
            let own = definitions[index as usize].range;
            range.start <= own.start && own.start < range.end && own.end <= range.end.max(end)
        });
        let n_words = |index: u32| {
            let text = bytes
                .get(definitions[index as usize].range.as_usize())
                .unwrap_or_default();
            let text = String::from_utf8_lossy(text);
            text.lines().map(|line| marks.spans(line).len()).sum::<usize>()
        };
        let best = inside.map(|index| (n_words(index), std::cmp::Reverse(index))).max();
        let best = best.filter(|(n, _)| *n > 0).map(|(_, std::cmp::Reverse(index))| index);
        let is_code = |index: &u32| !definitions[*index as usize].kind.is_data();
        Ok(best.filter(|_| hit.kind == ChunkKind::Items).filter(is_code))
    }

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
                .all(|event| matches!(*event, "doc" | "formatting" | "moved"));
            let mut lines = self.of_definition(found.clone(), reason_of(symbol, range));
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
            seeds.push((is_minor, lines));
        }
        let places: Vec<((u32, u32), bool)> = seeds.iter().map(|(_, lines)| (lines.lines, lines.is_added)).collect();
        let contains =
            |outer: (u32, u32), inner: (u32, u32)| outer != inner && outer.0 <= inner.0 && inner.1 <= outer.1;
        seeds.retain(|(_, one)| {
            !places
                .iter()
                .any(|(outer, is_added)| *is_added && contains(*outer, one.lines))
        });
        seeds.retain_mut(|(_, outer)| {
            let had_marked = !outer.marked.is_empty();
            let is_inner = |inner: &(u32, u32)| contains(outer.lines, *inner);
            let inner: Vec<(u32, u32)> = places.iter().map(|(lines, _)| *lines).filter(is_inner).collect();
            if !outer.is_added {
                let is_covered =
                    |changed: &(u32, u32)| inner.iter().any(|inner| inner.0 <= changed.0 && changed.1 <= inner.1);
                outer.marked.retain(|changed| !is_covered(changed));
            }
            !had_marked || !outer.marked.is_empty()
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
        if bytes[..bytes.len().min(8_000)].contains(&0) {
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
    }
}

/// Returns the lines with words of the question and the number of words on each, and the words as they are written.
fn matches_in(bytes: &[u8], (first, last): (u32, u32), words: &Marks) -> (Vec<(u32, usize)>, Vec<String>) {
    let range = LineStarts::of(bytes).range(first, last);
    let text = String::from_utf8_lossy(bytes.get(range).unwrap_or_default());
    let (mut scored, mut matched) = (Vec::new(), Vec::<String>::new());
    for (line, number) in text.lines().zip(first..) {
        let spans = words.spans(line);
        if spans.is_empty() {
            continue;
        }
        let mut known = HashSet::new();
        for &(start, end) in &spans {
            let word = line
                .get(start as usize..end as usize)
                .unwrap_or_default()
                .to_lowercase();
            if !matched.contains(&word) {
                matched.push(word.clone());
            }
            known.insert(word);
        }
        scored.push((number, known.len()));
    }
    // The words of the question rather than the names that contain them.
    matched.sort_by(|a, b| a.len().cmp(&b.len()).then_with(|| a.cmp(b)));
    let mut shortest: Vec<String> = Vec::new();
    for word in matched {
        if shortest.len() < MAX_WORDS && !shortest.iter().any(|shorter| word.contains(shorter.as_str())) {
            shortest.push(word);
        }
    }
    (scored, shortest)
}
