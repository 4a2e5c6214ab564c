//! Finds the results of a pack: ranked hits, the definitions of a name, or what changed.

use std::collections::HashSet;

use super::super::super::ask::Ask;
use super::super::super::paths::name_or_place;
use super::super::super::question::Question;
use super::super::SearchMode;
use super::super::asked::Asked;
use super::super::ranked::best_hits;
use super::rows::PackOut;
use super::texts::Texts;
use crate::extract::{ChunkKind, DefinitionKind};
use crate::link::{DefId, Linker};
use crate::model::ByteRange;
use crate::model::count::count;
use crate::query::{
    FoundBy, FoundDefinition, Hit, LineStarts, Marks, Request, SymbolRequest, drop_minor, is_minor, symbols,
};
use crate::session::Result;
use crate::snapshot::FileId;

/// Number of hits considered for each result; several can be in one definition.
const HITS_PER_RESULT: usize = 2;
/// Maximum number of results of a question.
const MAX_RESULTS: usize = 200;
/// Maximum number of definitions of a name.
const MAX_NAMED: usize = 24;
/// Minimum score of a result, relative to the best. Others are rarely about the question.
const MIN_SCORE: f32 = 0.7;
/// Maximum number of words of the question in a reason.
const MAX_WORDS: usize = 4;

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
    pub(super) is_added: bool,
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
    pub(super) asked: &'a Asked<'a>,
    ask: &'a Ask<'a>,
    pub(super) question: &'a Question<'a>,
    pub(super) linker: &'a Linker<'a>,
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
        let (named, is_place) = name_or_place(workspace, view, query)?;
        let request = SymbolRequest {
            query: named,
            filter: self.question.filter.clone(),
            kinds: self.asked.request.kind.kinds()?,
        };
        // A word that is no name is a question.
        let Ok(outcome) = symbols(&self.question.sources(), &request, Some(self.linker)) else {
            return Ok(None);
        };
        let mut definitions = outcome.definitions;
        if outcome.found_by == FoundBy::OtherSpelling || definitions.is_empty() {
            return Ok(None);
        }
        let is_id = query.contains('#') || is_place;
        if !is_id && definitions.iter().all(is_minor) {
            return Ok(None);
        }
        drop_minor(&mut definitions);
        let n_left_out = definitions.len().saturating_sub(MAX_NAMED);
        definitions.truncate(MAX_NAMED);
        let left_out = count(n_left_out, "more definition");
        let notes = (n_left_out > 0).then(|| format!("{left_out} of {query}; symbol lists all"));
        let verb = match outcome.found_by {
            FoundBy::Definition | FoundBy::Enclosing => "at",
            FoundBy::Link | FoundBy::Reference => "named at",
            _ => "named",
        };
        let seed = |found: FoundDefinition| Seed::Lines(Self::of_definition(found, format!("{verb} {query}")));
        Ok(Some(Found {
            seeds: definitions.into_iter().map(seed).collect(),
            notes: notes.into_iter().collect(),
            ..Found::default()
        }))
    }

    pub(super) fn of_definition(found: FoundDefinition, reason: String) -> Lines {
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
            kinds: self.asked.request.kind.kinds()?,
            is_flat: true,
            ..self.asked.ranking(None)
        };
        let (workspace, interrupt) = (&self.ask.session.workspace, self.ask.call.ctx.interrupt);
        let best = best_hits(workspace, self.question.view(), &request, interrupt)?;
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
        let is_reranked = best.outcome.hits.iter().any(|hit| hit.reranked.is_some());
        let least = best.outcome.hits.first().map_or(0.0, |hit| hit.score * MIN_SCORE);
        for hit in &best.outcome.hits {
            if found.seeds.len() >= limit || hit.score < least && !is_reranked {
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
                Self::of_definition(found, String::new())
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
        // A short type is one chunk with its members.
        let is_precise = around.is_some_and(|index| {
            let kind = definitions[index as usize].kind;
            !kind.is_type() && kind != DefinitionKind::Module
        });
        if is_whole && is_precise {
            return Ok(around);
        }
        // Of several small items, the one with the most words of the question.
        let marks = Marks::of_query(self.asked.query);
        let inside = (0..definitions.len() as u32).filter(|&index| {
            let definition = &definitions[index as usize];
            let own = definition.range;
            let is_inside = start <= own.start && own.end <= range.end;
            is_inside && (hit.kind == ChunkKind::Items || definition.kind.is_callable()) && !definition.kind.is_data()
        });
        let n_words = |index: u32| {
            let lines = LineStarts::of(bytes);
            let lines = lines.of_range(bytes, definitions[index as usize].range.as_usize());
            matches_in(bytes, lines, &marks).1.len()
        };
        // Of equal ones, the shortest.
        let best = inside
            .map(|index| {
                (
                    n_words(index),
                    std::cmp::Reverse((definitions[index as usize].range.len(), index)),
                )
            })
            .max();
        let min_words = if around.is_some() && is_whole { 2 } else { 1 };
        let best = best.filter(|(n, _)| *n >= min_words);
        let best = best.map(|(_, std::cmp::Reverse((_, index)))| index);
        Ok(best.or(around.filter(|_| is_whole)))
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
