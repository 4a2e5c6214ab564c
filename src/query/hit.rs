//! Turns candidates into hits: one per item, with its places and its definition.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use crate::extract::{Chunk, ChunkKind, Definition, DefinitionKind, Extraction};
use crate::model::{ByteRange, Lang};
use crate::sidecar::FileError;
use crate::snapshot::{FileId, Place, View};

use super::analyze::NameQuery;
use super::defining::{asked_for, containers};
use super::lines::LineStarts;
use super::rank::Features;
use super::search::{Candidate, Scope, SearchError, Searcher};

/// Maximum number of lines of an item that is shown as one hit. The parts of a longer function are separate hits.
const MAX_ITEM_LINES: u32 = 120;

/// A chunk that matches a query.
#[derive(Clone, Debug)]
pub struct Hit {
    /// The document.
    pub doc: u32,
    /// The places of the chunk, the one that ranks best first.
    pub places: Vec<HitPlace>,
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
    /// The features behind the score.
    pub features: Features,
    /// The reranker's score; comparable only within one result. `None` if the hit was not reranked.
    pub reranked: Option<f32>,
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

/// The name and kind of a definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symbol {
    /// The name with its containers, joined with `.`: `Parser.parse`.
    pub qualified_name: String,
    /// The kind of the definition.
    pub kind: DefinitionKind,
    /// The index of the definition in the file of the first place.
    pub index: u32,
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
    /// The byte range of the chunk. It may be only a part of the item in the lines.
    pub range: ByteRange,
    /// First line of `range`, 1-based.
    pub range_start_line: u32,
}

impl Searcher<'_> {
    /// Returns the first `n_wanted` candidates. Omits further parts of an item that is shown whole.
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
            let Place { file, chunk } = candidate.place;
            let item = self
                .view
                .file(file)
                .blob
                .map(|blob| -> Result<Option<u32>, SearchError> {
                    let extraction = opened.extraction(self.view, blob)?;
                    let chunk = extraction.chunks.get(chunk as usize);
                    Ok(chunk.and_then(|chunk| whole_item(extraction, chunk)))
                });
            if item.transpose()?.flatten().is_none_or(|item| seen.insert((file, item))) {
                kept.push(candidate);
            }
        }
        Ok(kept)
    }

    /// Builds a hit from a candidate and its places in scope.
    pub(super) fn hit(
        &self,
        candidate: &Candidate,
        names: &[NameQuery],
        scope: &Scope,
        opened: &mut Opened,
    ) -> Result<Hit, SearchError> {
        let meta = self.view.segments().doc_meta(candidate.doc);
        let mut places = Vec::new();
        let (mut symbol, mut focus) = (None, None);
        let others = scope
            .places(self.view, candidate.doc)
            .filter(|place| *place != candidate.place);
        for place in [candidate.place].into_iter().chain(others) {
            let Some(blob) = self.view.file(place.file).blob else {
                continue;
            };
            let extraction = opened.extraction(self.view, blob)?;
            let Some(chunk) = extraction.chunks.get(place.chunk as usize) else {
                continue;
            };
            if places.is_empty() {
                let own = chunk
                    .definition
                    .and_then(|index| extraction.definitions.get(index as usize));
                let named = asked_for(extraction, chunk, names);
                symbol = named
                    .or(own)
                    .map(|definition| symbol_of(&extraction.definitions, definition));
                focus = named
                    .filter(|definition| !is_callable(chunk.kind) && chunk.range.contains(definition.range))
                    .map(|definition| definition.range);
            }
            let (start_line, end_line) = item_lines(extraction, chunk);
            places.push(HitPlace {
                file: place.file,
                start_line,
                end_line,
                range: chunk.range,
                range_start_line: chunk.start_line,
            });
        }
        Ok(Hit {
            doc: candidate.doc,
            places,
            score: candidate.score,
            kind: meta.map_or(ChunkKind::Window, |meta| meta.kind),
            lang: self.view.lang(candidate.place.file),
            symbol,
            focus,
            line: None,
            features: candidate.features,
            reranked: candidate.reranked,
        })
    }
}

/// Caches the extractions needed for one result, by blob. Several chunks and places often share an extraction.
#[derive(Default)]
pub(super) struct Opened {
    by_blob: HashMap<u32, Extraction>,
}

impl Opened {
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

/// Returns the chunks of the callable item that a chunk belongs to.
fn parts<'e>(extraction: &'e Extraction, chunk: &'e Chunk) -> impl Iterator<Item = &'e Chunk> {
    let is_part = |other: &&Chunk| other.definition == chunk.definition && is_callable(other.kind);
    extraction.chunks.iter().filter(is_part)
}

/// Returns the index of the callable item that a chunk belongs to, if the item is short enough to be shown whole.
fn whole_item(extraction: &Extraction, chunk: &Chunk) -> Option<u32> {
    let item = chunk.definition.filter(|_| is_callable(chunk.kind))?;
    let start = parts(extraction, chunk).map(|part| part.start_line).min()?;
    let end = parts(extraction, chunk).map(|part| part.end_line).max()?;
    (end - start < MAX_ITEM_LINES).then_some(item)
}

/// Returns the lines of the item that a chunk belongs to, if the item is shown whole, and otherwise those of the chunk.
fn item_lines(extraction: &Extraction, chunk: &Chunk) -> (u32, u32) {
    if whole_item(extraction, chunk).is_none() {
        return (chunk.start_line, chunk.end_line);
    }
    let start = parts(extraction, chunk).map(|part| part.start_line).min();
    let end = parts(extraction, chunk).map(|part| part.end_line).max();
    (start.unwrap_or(chunk.start_line), end.unwrap_or(chunk.end_line))
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
    }
}
