//! How the lines of a blob lie: how deep, and which are comments. Tells the chunker where a cut hurts least.

use tree_sitter::Point;

/// What is known of each line.
pub(crate) struct Layout {
    /// By 0-based line: depth of the outermost node that starts on it, [`Layout::INSIDE`] where none does.
    lines: Vec<u16>,
    /// The line after the last one that was seen.
    next: usize,
    /// Where the part that is seen starts, and how deep it lies.
    first: usize,
    base: usize,
}

impl Layout {
    /// The line lies inside a token (a string, a comment), or is blank.
    pub(crate) const INSIDE: u16 = 0x7fff;
    const COMMENT: u16 = 0x8000;

    /// Nothing is known yet of `n_lines` lines.
    pub(crate) fn new(n_lines: usize) -> Self {
        Self {
            lines: vec![Self::INSIDE; n_lines],
            next: 0,
            first: 0,
            base: 0,
        }
    }

    /// Notes a node at `position`, `depth` levels deep. Nodes come in source order, outer before inner.
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

    /// Notes that the lines `first..=last` are a comment that starts its line.
    pub(crate) fn mark_comment(&mut self, first: usize, last: usize) {
        let (first, end) = (first + self.first, (last + self.first + 1).min(self.lines.len()));
        if first < end {
            self.lines[first..end]
                .iter_mut()
                .for_each(|line| *line |= Self::COMMENT);
        }
    }

    /// How deep line `line` starts; [`Layout::INSIDE`] if no node starts it.
    pub(crate) fn depth(&self, line: usize) -> u16 {
        self.lines[line] & !Self::COMMENT
    }

    /// Whether line `line` is (part of) a comment.
    pub(crate) fn is_comment(&self, line: usize) -> bool {
        self.lines[line] & Self::COMMENT != 0
    }

    /// Sets the depth of a line that no grammar looked at.
    pub(crate) fn set_depth(&mut self, line: usize, depth: usize) {
        self.lines[line] = depth.min(usize::from(Self::INSIDE) - 1) as u16;
    }

    /// From now on lines and depths are those of a part that starts on line `first`, `base` levels deep.
    pub(crate) fn enter(&mut self, first: usize, base: usize) {
        (self.next, self.first, self.base) = (first, first, base);
    }
}
