//! Records the depth of each line in the syntax tree, and which lines are comments. The chunker uses this to choose
//! where to split.

use tree_sitter::Point;

/// The depths of the lines of a blob.
pub(crate) struct Layout {
    /// For each line (0-based), the depth of the outermost node that starts on it, or [`Layout::INSIDE`] if none does.
    lines: Vec<u16>,
    /// The line after the last recorded one.
    next: usize,
    /// The first line and the depth of the embedded code that is being walked. Both are 0 outside of embedded code.
    first: usize,
    base: usize,
}

impl Layout {
    /// The depth of a line that is blank or inside a token such as a string or comment.
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

    /// Records a node that starts at `position`, `depth` levels deep. Nodes must be recorded in source order, outer
    /// before inner.
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

    /// Marks the lines `first..=last` as a comment, which starts at the beginning of a line.
    pub(crate) fn mark_comment(&mut self, first: usize, last: usize) {
        let (first, end) = (first + self.first, (last + self.first + 1).min(self.lines.len()));
        if first < end {
            self.lines[first..end]
                .iter_mut()
                .for_each(|line| *line |= Self::COMMENT);
        }
    }

    /// Returns the depth of a line, or [`Layout::INSIDE`] if no node starts on it.
    pub(crate) fn depth(&self, line: usize) -> u16 {
        self.lines[line] & !Self::COMMENT
    }

    /// Returns true if a line is part of a comment.
    pub(crate) fn is_comment(&self, line: usize) -> bool {
        self.lines[line] & Self::COMMENT != 0
    }

    /// Sets the depth of a line of text that has no grammar.
    pub(crate) fn set_depth(&mut self, line: usize, depth: usize) {
        self.lines[line] = depth.min(usize::from(Self::INSIDE) - 1) as u16;
    }

    /// Makes the following calls relative to embedded code that starts on line `first`, `base` levels deep.
    pub(crate) fn enter(&mut self, first: usize, base: usize) {
        (self.next, self.first, self.base) = (first, first, base);
    }
}
