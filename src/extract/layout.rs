//! The layout of a blob's lines: their depth in the syntax tree and which of them are comments.
//!
//! The chunker uses it to choose where to cut.

use tree_sitter::Point;

/// The depth of each line.
pub(crate) struct Layout {
    /// By 0-based line: the depth of the outermost node that starts on it, or [`Layout::INSIDE`] if none does.
    lines: Vec<u16>,
    /// The line after the last one that was recorded.
    next: usize,
    /// The first line and the depth of the part that is being walked.
    first: usize,
    base: usize,
}

impl Layout {
    /// The depth of a line that is blank or inside a token (a string, a comment).
    pub(crate) const INSIDE: u16 = 0x7fff;
    const COMMENT: u16 = 0x8000;

    /// Creates a layout of `n_lines` lines, all [`Layout::INSIDE`].
    pub(crate) fn new(n_lines: usize) -> Self {
        Self {
            lines: vec![Self::INSIDE; n_lines],
            next: 0,
            first: 0,
            base: 0,
        }
    }

    /// Records a node at `position`, `depth` levels deep. Nodes must come in source order, outer before inner.
    pub(crate) fn see(&mut self, position: Point, start: usize, depth: usize, src: &[u8]) {
        let row = position.row + self.first;
        if row < self.next || row >= self.lines.len() {
            return;
        }
        self.next = row + 1;
        let start = start.min(src.len());
        let before = &src[start - position.column.min(start)..start];
        if before.iter().all(u8::is_ascii_whitespace) {
            self.set_depth(row, depth + self.base);
        }
    }

    /// Records that the lines `first..=last` are a comment that starts its line.
    pub(crate) fn mark_comment(&mut self, first: usize, last: usize) {
        let (first, end) = (first + self.first, (last + self.first + 1).min(self.lines.len()));
        if first < end {
            self.lines[first..end]
                .iter_mut()
                .for_each(|line| *line |= Self::COMMENT);
        }
    }

    /// Returns the depth at which line `line` starts, or [`Layout::INSIDE`] if no node starts on it.
    pub(crate) fn depth(&self, line: usize) -> u16 {
        self.lines[line] & !Self::COMMENT
    }

    /// Returns whether line `line` is part of a comment.
    pub(crate) fn is_comment(&self, line: usize) -> bool {
        self.lines[line] & Self::COMMENT != 0
    }

    /// Sets the depth of a line that no grammar parsed.
    pub(crate) fn set_depth(&mut self, line: usize, depth: usize) {
        self.lines[line] = depth.min(usize::from(Self::INSIDE) - 1) as u16;
    }

    /// Makes later lines and depths relative to a part that starts on line `first`, `base` levels deep.
    pub(crate) fn enter(&mut self, first: usize, base: usize) {
        (self.next, self.first, self.base) = (first, first, base);
    }
}
