//! Turns candidates into hits: one per definition and, unless the query is a name, one per file.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::extract::{Chunk, ChunkKind, Definition, DefinitionKind, Extraction};
use crate::model::{ByteRange, Lang};
use crate::sidecar::FileError;
use crate::snapshot::{FileId, Place, View};

use super::analyze::NameQuery;
use super::candidates::{Candidate, Ranked, Scope, sort_best_first};
use super::defining::{asked_for, containers};
use super::lines::LineStarts;
use super::preview::{best_offset, weight_of};
use super::rank::Features;
use super::request::SearchError;
use super::search::Searcher;
use super::source::{Source, Sources};

/// Maximum number of lines of a type that is one hit with its members. The members of a longer type are separate hits.
const MAX_TYPE_LINES: u32 = 120;
/// Maximum number of hits of a file, unless the query is a name.
pub(super) const MAX_PER_FILE: usize = 2;
/// The penalty for a hit whose file has a better one.
const REPEAT_IN_FILE: f32 = 0.5;
/// Maximum number of further parts of a file in a hit.
const MAX_FURTHER: usize = 3;
/// The maximum difference between the scores of a hit and of a further part of its file, as a share of the best score.
const MAX_FURTHER_DROP: f32 = 0.2;

/// A chunk that matches a query.
#[derive(Clone, Debug)]
pub struct Hit {
    /// The document.
    pub doc: u32,
    /// The places of the chunk, the one that ranks best first.
    pub places: Vec<HitPlace>,
    /// Further parts of the first place's file that match, best first.
    pub further: Vec<FurtherPart>,
    /// The number of further parts that are omitted from `further`.
    pub n_omitted: usize,
    /// The score before reranking; comparable only within one result.
    pub score: f32,
    /// The kind of chunk.
    pub kind: ChunkKind,
    /// The language of its file.
    pub lang: Lang,
    /// The definition with its containers: the definition that the query names, or else the one that the chunk belongs
    /// to.
    pub symbol: Option<Symbol>,
    /// The range of the definition that the query names, if the chunk contains other definitions too.
    pub focus: Option<ByteRange>,
    /// The first line that contains a literal text of the query, at the first place.
    pub line: Option<u32>,
    /// The line that the query gives or whose words are those of the query, at the first place.
    pub best_line: Option<u32>,
    /// The features behind the score.
    pub features: Features,
    /// The reranker's score; comparable only within one result. `None` if the hit was not reranked.
    pub reranked: Option<f32>,
    /// How the hit matches the query.
    pub matched_by: MatchedBy,
    /// The content of the first place's file, if it was read.
    pub text: Option<Arc<Vec<u8>>>,
}

/// How a hit matches a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MatchedBy {
    /// The query gives its place.
    Path,
    /// It defines a name from the query.
    Name,
    /// It contains text of the query word for word.
    ExactText,
    /// It contains all words of the query.
    AllWords,
    /// It contains some words of the query.
    SomeWords,
    /// It contains none.
    Meaning,
}

impl MatchedBy {
    /// The name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Path => "path",
            Self::Name => "name",
            Self::ExactText => "exact_text",
            Self::AllWords => "all_words",
            Self::SomeWords => "some_words",
            Self::Meaning => "meaning",
        }
    }

    fn of(features: &Features, ranked: &Ranked) -> Self {
        // Sums of the same numbers in another order.
        const EPSILON: f32 = 1e-5;
        if features.place > 0.0 {
            Self::Path
        } else if features.defines > 0.0 {
            Self::Name
        } else if features.exact_text > 0.0 || features.verbatim > 0.0 {
            Self::ExactText
        } else if features.covered >= ranked.all_words - EPSILON {
            Self::AllWords
        } else if features.covered > 0.0 {
            Self::SomeWords
        } else {
            Self::Meaning
        }
    }
}

impl Hit {
    /// Returns the lines and bytes to show for the first place, given the bytes of its file. They start at a literal
    /// text of the query, if there is one. Otherwise they are those of the definition that the query names, or of the
    /// item.
    pub fn lines(&self, text: &[u8]) -> Option<(u32, u32, ByteRange)> {
        let place = self.places.first()?;
        if let Some(line) = self.line {
            let lines = LineStarts::of(text);
            let start = lines.range(line, line).start as u32;
            let (_, last) = lines.of_range(text, place.range.as_usize());
            return Some((line, last, ByteRange::new(start, place.range.end.max(start))));
        }
        let Some(focus) = self.focus else {
            return Some((place.start_line, place.end_line, place.range));
        };
        let line_of = |at: u32| {
            let before = text.get(place.range.start as usize..at as usize).unwrap_or_default();
            place.range_start_line + memchr::memchr_iter(b'\n', before).count() as u32
        };
        let last_byte = focus.end.saturating_sub(1).max(focus.start);
        Some((line_of(focus.start), line_of(last_byte), focus))
    }
}

/// Another part of a hit's file that matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FurtherPart {
    /// First line, 1-based.
    pub start_line: u32,
    /// Last line, 1-based, inclusive.
    pub end_line: u32,
    /// The definition, as in [`Hit::symbol`].
    pub symbol: Option<Symbol>,
}

/// The name and kind of a definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symbol {
    /// The name with its containers, joined with `.`: `Parser.parse`.
    pub qualified_name: String,
    /// The kind of the definition.
    pub kind: DefinitionKind,
    /// The index of the definition in the file of the first place.
    pub index: u32,
    /// The byte range of its signature there.
    pub signature: ByteRange,
}

/// A place of a hit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HitPlace {
    /// The file.
    pub file: FileId,
    /// First line, 1-based.
    pub start_line: u32,
    /// Last line, 1-based, inclusive.
    pub end_line: u32,
    /// The byte range of the lines.
    pub whole: ByteRange,
    /// The byte range of the chunk, which may be only a part of `whole`.
    pub range: ByteRange,
    /// First line of `range`, 1-based.
    pub range_start_line: u32,
}

impl Searcher<'_> {
    /// Returns the first `n_wanted` of the ranked candidates, one per item.
    pub(super) fn one_per_item(
        &self,
        ranked: Vec<Candidate>,
        n_wanted: usize,
        opened: &mut Opened,
    ) -> Result<Vec<Candidate>, SearchError> {
        let mut seen = HashSet::new();
        let mut kept = Vec::new();
        for candidate in ranked {
            if kept.len() == n_wanted {
                break;
            }
            self.go_on()?;
            let item = self.item(candidate.place, opened)?;
            if item.is_none_or(|item| seen.insert((candidate.place.file, item.definition))) {
                kept.push(candidate);
            }
        }
        Ok(kept)
    }

    /// Returns the first `n_wanted` candidates, at most `max_per_file` of a file, which do not overlap. [`REPEAT_IN_FILE`]
    /// is subtracted from the score of each but the first, which has the further candidates of its file.
    pub(super) fn by_file(
        &self,
        ranked: Vec<Candidate>,
        n_wanted: usize,
        max_per_file: usize,
        opened: &mut Opened,
    ) -> Result<Vec<Candidate>, SearchError> {
        let best = ranked.first().map_or(0.0, |candidate| candidate.score.abs());
        let mut kept: Vec<Candidate> = Vec::new();
        let mut at_file: HashMap<FileId, usize> = HashMap::new();
        // The lines of each kept candidate and its further candidates.
        let mut lines: Vec<Vec<(u32, u32)>> = Vec::new();
        for candidate in ranked {
            self.go_on()?;
            let at = match at_file.entry(candidate.place.file) {
                Entry::Occupied(known) => *known.get(),
                Entry::Vacant(entry) if kept.len() < n_wanted => {
                    entry.insert(kept.len());
                    lines.push(self.item_lines(candidate.place, opened)?.into_iter().collect());
                    kept.push(candidate);
                    continue;
                }
                Entry::Vacant(_) => continue,
            };
            let is_near = kept[at].score - candidate.score <= MAX_FURTHER_DROP * best;
            if !is_near && !kept[at].further.is_empty() {
                continue;
            }
            let own = self.item_lines(candidate.place, opened)?;
            let overlaps = |known: &(u32, u32)| own.is_some_and(|own| own.0 <= known.1 && known.0 <= own.1);
            if !lines[at].iter().any(overlaps) {
                lines[at].extend(own);
                kept[at].further.push(candidate);
            }
        }
        if max_per_file < 2 {
            return Ok(kept);
        }
        let mut repeated: Vec<Candidate> = Vec::new();
        for candidate in &mut kept {
            let n_repeated = candidate.further.len().min(max_per_file - 1);
            repeated.extend(candidate.further.drain(..n_repeated).map(|further| Candidate {
                score: further.score - REPEAT_IN_FILE,
                ..further
            }));
        }
        kept.extend(repeated);
        sort_best_first(&mut kept, self.view);
        kept.truncate(n_wanted);
        Ok(kept)
    }

    /// Keeps the candidates with definitions of these kinds.
    pub(super) fn retain_kinds(
        &self,
        ranked: &mut Vec<Candidate>,
        kinds: &[DefinitionKind],
        names: &[NameQuery],
        opened: &mut Opened,
    ) -> Result<(), SearchError> {
        let mut kept = Vec::new();
        for candidate in ranked.drain(..) {
            self.go_on()?;
            let part = self.part(candidate.place, names, opened)?;
            let symbol = part.and_then(|part| part.symbol);
            if symbol.is_some_and(|symbol| kinds.contains(&symbol.kind)) {
                kept.push(candidate);
            }
        }
        *ranked = kept;
        Ok(())
    }

    fn chunk<'o>(
        &self,
        place: Place,
        opened: &'o mut Opened,
    ) -> Result<Option<(&'o Extraction, &'o Chunk)>, FileError> {
        let Some(blob) = self.view.file(place.file).blob else {
            return Ok(None);
        };
        let extraction = opened.extraction(self.view, blob)?;
        Ok(extraction
            .chunks
            .get(place.chunk as usize)
            .map(|chunk| (extraction, chunk)))
    }

    fn item(&self, place: Place, opened: &mut Opened) -> Result<Option<Item>, FileError> {
        Ok(self
            .chunk(place, opened)?
            .and_then(|(extraction, chunk)| item_of(extraction, chunk)))
    }

    fn item_lines(&self, place: Place, opened: &mut Opened) -> Result<Option<(u32, u32)>, FileError> {
        Ok(self
            .chunk(place, opened)?
            .map(|(extraction, chunk)| shown(extraction, chunk).lines))
    }

    /// Returns the lines and the definition of a chunk.
    fn part(&self, place: Place, names: &[NameQuery], opened: &mut Opened) -> Result<Option<FurtherPart>, FileError> {
        Ok(self.chunk(place, opened)?.map(|(extraction, chunk)| {
            let (start_line, end_line) = shown(extraction, chunk).lines;
            let named = asked_for(extraction, chunk, names);
            FurtherPart {
                start_line,
                end_line,
                symbol: named
                    .or(own_definition(extraction, chunk))
                    .map(|found| symbol_of(&extraction.definitions, found)),
            }
        }))
    }

    /// Builds a hit from a candidate and its places in scope.
    pub(super) fn hit(
        &self,
        candidate: &Candidate,
        names: &[NameQuery],
        scope: &Scope,
        ranked: &Ranked,
        opened: &mut Opened,
    ) -> Result<Hit, SearchError> {
        let meta = self.view.segments().doc_meta(candidate.doc);
        let mut places = Vec::new();
        let (mut symbol, mut focus) = (None, None);
        let file = candidate.place.file;
        let literal = ranked.exact.line(candidate.doc, file);
        let best = self.best_line(candidate, ranked, literal, opened)?;
        let docs = [candidate.doc].into_iter().chain(candidate.copies.iter().copied());
        let others = docs
            .flat_map(|doc| scope.places(self.view, doc))
            .filter(|place| *place != candidate.place);
        for place in [candidate.place].into_iter().chain(others) {
            let Some((extraction, chunk)) = self.chunk(place, opened)? else {
                continue;
            };
            if places.is_empty() {
                let holding = best.and_then(|best| holding(extraction, chunk, best.at));
                let named = asked_for(extraction, chunk, names);
                let named = if best.is_some_and(|best| best.is_certain) {
                    holding.or(named)
                } else {
                    named.or(holding)
                };
                symbol = named
                    .or(own_definition(extraction, chunk))
                    .map(|definition| symbol_of(&extraction.definitions, definition));
                focus = named
                    .filter(|definition| !is_callable(chunk.kind) && chunk.range.contains(definition.range))
                    .map(|definition| definition.range);
            }
            let Item { mut lines, range, .. } = shown(extraction, chunk);
            // A given line can be one of the blank lines behind a chunk.
            let given = best.filter(|best| {
                best.is_certain && places.is_empty() && ranked.placed.lines.contains_key(&(candidate.doc, file))
            });
            lines.1 = lines.1.max(given.map_or(0, |best| best.line));
            places.push(HitPlace {
                file: place.file,
                start_line: lines.0,
                end_line: lines.1,
                whole: range,
                range: chunk.range,
                range_start_line: chunk.start_line,
            });
        }
        let mut further = Vec::new();
        for candidate in candidate.further.iter().take(MAX_FURTHER) {
            let line = ranked.exact.line(candidate.doc, candidate.place.file);
            let part = self.part(candidate.place, names, opened)?;
            further.extend(part.map(|part| FurtherPart {
                start_line: line.unwrap_or(part.start_line),
                ..part
            }));
        }
        Ok(Hit {
            doc: candidate.doc,
            places,
            n_omitted: candidate.further.len() - further.len(),
            further,
            score: candidate.score,
            kind: meta.map_or(ChunkKind::Window, |meta| meta.kind),
            lang: self.view.lang(file),
            symbol,
            focus,
            line: literal,
            best_line: best.filter(|best| best.is_certain).map(|best| best.line),
            features: candidate.features,
            reranked: candidate.reranked,
            matched_by: MatchedBy::of(&candidate.features, ranked),
            text: opened.texts.get(&file).cloned().flatten(),
        })
    }

    /// Finds the line of a candidate that matches best: a line given in the query, one with a literal text or with words
    /// as in the query; of several small items, the one with the most words of the query.
    fn best_line(
        &self,
        candidate: &Candidate,
        ranked: &Ranked,
        literal: Option<u32>,
        opened: &mut Opened,
    ) -> Result<Option<BestLine>, SearchError> {
        let Some(sources) = self.sources else { return Ok(None) };
        let file = candidate.place.file;
        let given = ranked.placed.lines.get(&(candidate.doc, file)).copied().or(literal);
        let verbatim = ranked.verbatim.get(&candidate.doc);
        let Some((_, chunk)) = self.chunk(candidate.place, opened)? else {
            return Ok(None);
        };
        let (range, is_mixed) = (chunk.range, matches!(chunk.kind, ChunkKind::Items | ChunkKind::Data));
        if given.is_none() && verbatim.is_none() && (!is_mixed || ranked.terms.is_empty()) {
            return Ok(None);
        }
        let Some(text) = opened.text(file, &sources) else {
            // The names are in the index.
            let by_name = self.best_named(candidate.place, &ranked.terms, opened)?;
            return Ok(by_name.filter(|_| given.is_none() && verbatim.is_none()));
        };
        let lines = LineStarts::of(&text);
        if let Some(line) = given {
            let start = lines.range(line, line);
            let indent = text[start.clone()]
                .iter()
                .take_while(|byte| byte.is_ascii_whitespace())
                .count();
            return Ok(Some(BestLine {
                line,
                at: (start.start + indent) as u32,
                is_certain: true,
            }));
        }
        if let Some(verbatim) = verbatim {
            return Ok(Some(BestLine {
                line: lines.line_of(verbatim.at),
                at: verbatim.at as u32,
                is_certain: true,
            }));
        }
        let (extraction, _) = match self.chunk(candidate.place, opened)? {
            Some(found) => found,
            None => return Ok(None),
        };
        let is_item = |definition: &&Definition| {
            range.contains(definition.range) && (definition.kind.is_callable() || definition.kind.is_type())
        };
        let mut best: Option<(f32, usize)> = None;
        for definition in extraction.definitions.iter().filter(is_item) {
            let part = String::from_utf8_lossy(text.get(definition.range.as_usize()).unwrap_or_default());
            let (weight, at) = best_offset(&part, &ranked.terms).unwrap_or_default();
            if weight > best.map_or(0.0, |(most, _)| most) {
                best = Some((weight, definition.range.start as usize + at));
            }
        }
        Ok(best.map(|(_, at)| BestLine {
            line: lines.line_of(at),
            at: at as u32,
            is_certain: false,
        }))
    }

    /// Returns the definition in a chunk whose name has the most words of the query.
    fn best_named(
        &self,
        place: Place,
        terms: &[(String, f32)],
        opened: &mut Opened,
    ) -> Result<Option<BestLine>, SearchError> {
        let Some((extraction, chunk)) = self.chunk(place, opened)? else {
            return Ok(None);
        };
        let mut best: Option<(f32, u32)> = None;
        for definition in &extraction.definitions {
            let weight = weight_of(&definition.name, terms);
            if chunk.range.contains(definition.name_range) && weight > best.map_or(0.0, |(most, _)| most) {
                best = Some((weight, definition.name_range.start));
            }
        }
        Ok(best.map(|(_, at)| BestLine {
            line: chunk.start_line,
            at,
            is_certain: false,
        }))
    }
}

/// The line of a hit that matches best.
#[derive(Clone, Copy)]
struct BestLine {
    line: u32,
    /// The offset in the file at which the match starts.
    at: u32,
    /// True if the query gives the line or its text, false if it was chosen by its words.
    is_certain: bool,
}

/// Returns the innermost function or type that contains the byte at `at` and lies in the chunk or contains it.
fn holding<'e>(extraction: &'e Extraction, chunk: &Chunk, at: u32) -> Option<&'e Definition> {
    let holds = |definition: &&Definition| {
        let range = definition.range;
        (range.start..range.end).contains(&at)
            && (definition.kind.is_callable() || definition.kind.is_type())
            && (chunk.range.contains(range) || range.contains(chunk.range))
    };
    extraction
        .definitions
        .iter()
        .filter(holds)
        .min_by_key(|definition| definition.range.len())
}

/// Caches the extractions needed for one result, by blob. Several chunks and places often share an extraction.
#[derive(Default)]
pub(super) struct Opened {
    by_blob: HashMap<u32, Extraction>,
    /// The content of files that were read; `None` if a file cannot be read.
    pub(super) texts: HashMap<FileId, Option<Arc<Vec<u8>>>>,
}

impl Opened {
    /// Returns the content of a file.
    fn text(&mut self, file: FileId, sources: &Sources<'_>) -> Option<Arc<Vec<u8>>> {
        let read = || match sources.reader().read(file) {
            Ok(Source::Bytes(bytes)) => Some(Arc::new(bytes)),
            _ => None,
        };
        self.texts.entry(file).or_insert_with(read).clone()
    }

    pub(super) fn extraction(&mut self, view: &View, blob: u32) -> Result<&Extraction, FileError> {
        match self.by_blob.entry(blob) {
            Entry::Occupied(known) => Ok(known.into_mut()),
            Entry::Vacant(entry) => {
                let extraction = view.segments().extraction(blob).transpose()?;
                Ok(entry.insert(extraction.unwrap_or_default()))
            }
        }
    }
}

fn is_callable(kind: ChunkKind) -> bool {
    matches!(kind, ChunkKind::Function | ChunkKind::Test)
}

/// The lines that are shown for a chunk.
struct Item {
    /// The index of the definition, if the lines are those of a whole definition.
    definition: Option<u32>,
    lines: (u32, u32),
    range: ByteRange,
}

fn own_definition<'e>(extraction: &'e Extraction, chunk: &Chunk) -> Option<&'e Definition> {
    extraction.definitions.get(chunk.definition? as usize)
}

/// Returns the function or short type that a chunk belongs to.
fn item_of(extraction: &Extraction, chunk: &Chunk) -> Option<Item> {
    let definition = own_definition(extraction, chunk)?;
    if !matches!(chunk.kind, ChunkKind::Function | ChunkKind::Test | ChunkKind::Type) {
        return None;
    }
    let is_function = is_callable(chunk.kind) && !definition.kind.is_type();
    let is_part = |part: &&Chunk| {
        if is_function {
            part.definition == chunk.definition && is_callable(part.kind)
        } else {
            (chunk.range.start..definition.range.end).contains(&part.range.start)
                && !begins_another(extraction, definition, part)
        }
    };
    let parts = || extraction.chunks.iter().filter(is_part);
    let lines = (
        parts().map(|part| part.start_line).min()?,
        parts().map(|part| part.end_line).max()?,
    );
    let is_short = lines.1 - lines.0 < MAX_TYPE_LINES;
    (is_function || is_short).then_some(Item {
        definition: chunk.definition,
        lines,
        range: ByteRange::new(
            parts().map(|part| part.range.start).min()?,
            parts().map(|part| part.range.end).max()?,
        ),
    })
}

/// Returns true if a definition that begins after the end of `definition` begins in the chunk.
fn begins_another(extraction: &Extraction, definition: &Definition, chunk: &Chunk) -> bool {
    let after = definition.range.end..chunk.range.end;
    extraction
        .definitions
        .iter()
        .any(|other| after.contains(&other.range.start))
}

/// Returns the whole definition that a chunk belongs to, or the chunk if it belongs to a long type or to none.
fn shown(extraction: &Extraction, chunk: &Chunk) -> Item {
    item_of(extraction, chunk).unwrap_or(Item {
        definition: None,
        lines: (chunk.start_line, chunk.end_line),
        range: chunk.range,
    })
}

fn symbol_of(definitions: &[Definition], definition: &Definition) -> Symbol {
    let index = definitions.iter().position(|known| std::ptr::eq(known, definition));
    let mut names: Vec<&str> = containers(definitions, definition).collect();
    names.reverse();
    names.push(&definition.name);
    Symbol {
        qualified_name: names.join("."),
        kind: definition.kind,
        index: index.unwrap_or_default() as u32,
        signature: definition.signature,
    }
}
