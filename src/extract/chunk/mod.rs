//! Splits a blob into chunks, which are the units of search.
//!
//! There are four steps. `items` maps definitions and imports to lines. `pieces` divides items that are too large for
//! one chunk, and classifies the text between items. `groups` merges small neighbours. `split` divides groups that are
//! still too large.
//!
//! Chunks are in source order and contain every byte of the blob. A chunk starts at the start of a line, except where a
//! line is longer than a chunk may be.

mod groups;
mod items;
mod pieces;
mod split;
mod text;

use std::collections::HashMap;

use self::groups::Group;
use self::split::Splitter;
use self::text::Text;
use super::lang::Structure;
use super::layout::Layout;
use super::lines::LineIndex;
use super::options::Options;
use super::types::{Chunk, ChunkKind, DefinitionKind, Extraction};
use crate::model::ByteRange;

/// The kind of text that is split.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    /// Code with definitions.
    Code,
    /// Data with keys, rules or elements.
    Data,
    /// Prose with sections.
    Prose,
    /// Text without structure.
    Lines,
}

impl Style {
    /// Returns the style for `structure`. Returns [`Style::Lines`] if `is_read` is false: the text could not be parsed.
    pub(crate) fn of(structure: Structure, is_read: bool) -> Self {
        match structure {
            _ if !is_read => Self::Lines,
            Structure::Grammar(_) => Self::Code,
            Structure::Data(_) | Structure::Keys(_) => Self::Data,
            Structure::Prose(_) => Self::Prose,
            Structure::Lines => Self::Lines,
        }
    }
}

/// Splits `src` into chunks, using the definitions and imports in `extraction`.
pub(crate) fn cut(
    src: &[u8],
    lines: &LineIndex,
    layout: &Layout,
    extraction: &Extraction,
    style: Style,
    options: &Options,
) -> Vec<Chunk> {
    let by_indentation = (style == Style::Lines).then(|| text::indentation(src, lines));
    let text = Text {
        src,
        lines,
        layout: by_indentation.as_ref().unwrap_or(layout),
        options,
    };
    let mut cutter = Cutter {
        text: &text,
        extraction,
        style,
        chunks: Vec::new(),
        n_parts: HashMap::new(),
    };
    if style == Style::Lines {
        cutter.cut_windows();
    } else {
        let items = items::lay_out(extraction, lines);
        let pieces = pieces::pieces(&text, &items, extraction);
        for group in groups::group(&text, pieces) {
            cutter.cut_group(&group);
        }
    }
    cutter.chunks
}

struct Cutter<'a> {
    text: &'a Text<'a>,
    extraction: &'a Extraction,
    style: Style,
    chunks: Vec<Chunk>,
    /// Number of chunks of each definition so far.
    n_parts: HashMap<u32, u16>,
}

impl Cutter<'_> {
    fn cut_windows(&mut self) {
        let n_lines = self.text.lines.count();
        let mut n_lines_before = 0;
        for (first, end) in Splitter::new(self.text).split(0, n_lines) {
            let overlap = self.overlap(first, n_lines_before);
            self.push_lines(first - overlap, end, ChunkKind::Window, None);
            n_lines_before = end - first;
        }
    }

    /// Returns the number of lines that a window repeats from the previous window, which has `n_before` lines. It never
    /// repeats all of them, and it repeats none after a blank line or if the lines are long.
    fn overlap(&self, first: usize, n_before: usize) -> usize {
        let n = (self.text.options.overlap_lines as usize).min(n_before.saturating_sub(1));
        let is_long = self.text.bytes(first - n, first) > self.text.options.small_bytes as usize;
        if n == 0 || is_long || self.text.is_blank(first - 1) {
            0
        } else {
            n
        }
    }

    fn cut_group(&mut self, group: &Group) {
        let kind = self.kind_of(group);
        if self.text.bytes(group.first, group.end) <= self.text.options.max_bytes as usize {
            return self.push_lines(group.first, group.end, kind, group.definition);
        }
        for (first, end) in Splitter::new(self.text).split(group.first, group.end) {
            self.push_lines(first, end, kind, group.definition);
        }
    }

    fn kind_of(&self, group: &Group) -> ChunkKind {
        let definition = group.definition.map(|at| self.extraction.definitions[at as usize].kind);
        match (definition, self.style) {
            (None, Style::Data) => ChunkKind::Data,
            (_, Style::Prose) => ChunkKind::Section,
            (None, _) => ChunkKind::Module,
            (Some(kind), _) if kind.is_data() => ChunkKind::Data,
            _ if group.n_subjects > 1 => ChunkKind::Items,
            (Some(DefinitionKind::Test), _) => ChunkKind::Test,
            (Some(DefinitionKind::Property), _) => ChunkKind::Items,
            (Some(kind), _) if kind.is_callable() => ChunkKind::Function,
            (Some(kind), _) if kind.is_type() => ChunkKind::Type,
            (Some(DefinitionKind::Module), _) => ChunkKind::Module,
            _ => ChunkKind::Items,
        }
    }

    /// Adds the lines `first..end` as one chunk. If a line is longer than a chunk may be, adds several chunks.
    fn push_lines(&mut self, first: usize, end: usize, kind: ChunkKind, definition: Option<u32>) {
        let range = self.text.lines.range(first, end);
        // The lines repeated from the previous window may exceed the size limit.
        if range.len() <= self.text.options.max_bytes as usize + self.text.options.small_bytes as usize {
            return self.push(range, kind, definition);
        }
        for range in split::cut_bytes(self.text, range) {
            self.push(range, kind, definition);
        }
    }

    fn push(&mut self, range: ByteRange, kind: ChunkKind, definition: Option<u32>) {
        if range.is_empty() {
            return;
        }
        let text = &self.text.src[range.as_usize()];
        let last_byte = range.start + (text.trim_ascii_end().len() as u32).max(1) - 1;
        let part = definition.map_or(0, |definition| {
            let n = self.n_parts.entry(definition).or_insert(0);
            *n = n.saturating_add(1);
            *n - 1
        });
        self.chunks.push(Chunk {
            range,
            start_line: self.text.lines.line_of(range.start) as u32 + 1,
            end_line: self.text.lines.line_of(last_byte) as u32 + 1,
            kind,
            definition,
            part,
        });
    }
}

#[cfg(test)]
mod tests;
