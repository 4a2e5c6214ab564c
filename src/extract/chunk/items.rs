//! Represents definitions and imports as nested ranges of lines.

use crate::extract::lines::LineIndex;
use crate::extract::types::Extraction;
use crate::model::ByteRange;

/// The items of a blob, as a tree.
pub(super) struct Items {
    items: Vec<Item>,
    /// The items without a parent.
    pub(super) roots: Vec<u32>,
}

/// A definition or an import, with the whole lines that it occupies. Items do not overlap unless one contains the
/// other.
pub(super) struct Item {
    /// The definition; `None` for an import.
    pub(super) definition: Option<u32>,
    /// The first line, 0-based.
    pub(super) first: usize,
    /// The line after the last one.
    pub(super) end: usize,
    /// The children in source order.
    pub(super) children: Vec<u32>,
}

impl Items {
    /// Returns the item with index `at`.
    pub(super) fn get(&self, at: u32) -> &Item {
        &self.items[at as usize]
    }
}

/// Assigns line ranges to the definitions and imports of `extraction`. An item on the same line as the end of its
/// previous sibling starts on the next line. Omits items that have no line left.
pub(super) fn lay_out(extraction: &Extraction, lines: &LineIndex) -> Items {
    let mut layout = Builder {
        lines,
        items: Vec::new(),
        roots: Vec::new(),
        open: Vec::new(),
    };
    let mut imports = extraction.imports.iter().map(|import| import.range).peekable();
    for (at, definition) in extraction.definitions.iter().enumerate() {
        while let Some(import) = imports.next_if(|import| import.start < definition.range.start) {
            layout.add(None, import);
        }
        layout.add(Some(at as u32), definition.range);
    }
    imports.for_each(|import| layout.add(None, import));
    Items {
        items: layout.items,
        roots: layout.roots,
    }
}

struct Builder<'a> {
    lines: &'a LineIndex,
    items: Vec<Item>,
    roots: Vec<u32>,
    /// The stack of items that may contain the next item, outermost first.
    open: Vec<u32>,
}

impl Builder<'_> {
    fn add(&mut self, definition: Option<u32>, range: ByteRange) {
        if range.is_empty() {
            return;
        }
        let mut first = self.lines.line_of(range.start);
        let mut end = self.lines.line_of(range.end - 1) + 1;
        while self
            .open
            .pop_if(|at| self.items[*at as usize].end < end || self.items[*at as usize].end <= first)
            .is_some()
        {}
        let parent = self.open.last().copied();
        let siblings = parent.map_or(&self.roots, |parent| &self.items[parent as usize].children);
        if let Some(before) = siblings.last() {
            first = first.max(self.items[*before as usize].end);
        }
        if let Some(parent) = parent.map(|parent| &self.items[parent as usize]) {
            end = end.min(parent.end);
            if first == parent.first && (end == parent.end || end == first + 1) {
                return;
            }
        }
        if first >= end {
            return;
        }
        let at = self.items.len() as u32;
        self.items.push(Item {
            definition,
            first,
            end,
            children: Vec::new(),
        });
        match parent {
            Some(parent) => self.items[parent as usize].children.push(at),
            None => self.roots.push(at),
        }
        self.open.push(at);
    }
}
