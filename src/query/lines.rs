//! Offsets to lines and back, for answers that name lines.

use std::ops::Range;

/// The place of one line in so many is kept; those between are counted, so that a file of nothing but line breaks takes no more memory.
const LINES_PER_MARK: usize = 64;

/// Where the lines of a file begin. Lines are 1-based here; the nothing behind a last line break is no line.
#[derive(Clone, Debug)]
pub struct LineStarts<'b> {
    bytes: &'b [u8],
    /// Where each [`LINES_PER_MARK`]th line begins, the first one's 0 included.
    marks: Vec<usize>,
    n_lines: usize,
}

impl<'b> LineStarts<'b> {
    /// The lines of `bytes`.
    pub fn of(bytes: &'b [u8]) -> Self {
        let (mut marks, mut n_breaks) = (vec![0], 0);
        for at in memchr::memchr_iter(b'\n', bytes) {
            n_breaks += 1;
            if n_breaks % LINES_PER_MARK == 0 {
                marks.push(at + 1);
            }
        }
        let has_rest = bytes.last().is_some_and(|last| *last != b'\n');
        Self {
            bytes,
            marks,
            n_lines: n_breaks + usize::from(has_rest),
        }
    }

    /// How many lines there are.
    pub fn count(&self) -> u32 {
        self.n_lines as u32
    }

    /// The line that holds the byte at `offset`; the last one for offsets behind the end.
    pub fn line_of(&self, offset: usize) -> u32 {
        let offset = offset.min(self.bytes.len().saturating_sub(1));
        let mark = self.marks.partition_point(|&start| start <= offset) - 1;
        let n_between = memchr::memchr_iter(b'\n', &self.bytes[self.marks[mark]..offset]).count();
        (mark * LINES_PER_MARK + n_between + 1) as u32
    }

    /// The bytes of the lines `first..=last`, line breaks included; empty where there are no such lines.
    pub fn range(&self, first: u32, last: u32) -> Range<usize> {
        self.start_of(first.max(1))..self.start_of(last.max(first).saturating_add(1))
    }

    fn start_of(&self, line: u32) -> usize {
        let n_before = line as usize - 1;
        if n_before >= self.n_lines {
            return self.bytes.len();
        }
        let mark = self.marks[n_before / LINES_PER_MARK];
        match n_before % LINES_PER_MARK {
            0 => mark,
            n_more => {
                let mut breaks = memchr::memchr_iter(b'\n', &self.bytes[mark..]);
                breaks.nth(n_more - 1).map_or(self.bytes.len(), |at| mark + at + 1)
            }
        }
    }

    /// The first and last line of a range of bytes; blank ends of it do not count as long as something is left.
    pub fn of_range(&self, bytes: &[u8], range: Range<usize>) -> (u32, u32) {
        let text = bytes.get(range.clone()).unwrap_or_default();
        let end = range.start + text.trim_ascii_end().len().max(1);
        (self.line_of(range.start), self.line_of(end - 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_offsets() {
        let bytes = b"ab\n\ncd\n";
        let lines = LineStarts::of(bytes);
        assert_eq!(lines.count(), 3);
        assert_eq!([0, 2, 3, 4, 6, 99].map(|at| lines.line_of(at)), [1, 1, 2, 3, 3, 3]);
        assert_eq!(lines.range(1, 2), 0..4);
        assert_eq!(lines.range(3, 9), 4..7);
        assert_eq!(lines.of_range(bytes, 0..4), (1, 1));
        assert_eq!(LineStarts::of(b"").count(), 0);
        assert_eq!(LineStarts::of(b"a").range(1, 1), 0..1);
    }

    #[test]
    fn lines_between_two_marks_are_counted() {
        let bytes = "ab\n".repeat(1000).into_bytes();
        let lines = LineStarts::of(&bytes);
        assert_eq!((lines.count(), lines.marks.len()), (1000, 1000 / LINES_PER_MARK + 1));
        for line in [1, 63, 64, 65, 66, 128, 129, 999, 1000] {
            let start = (line as usize - 1) * 3;
            assert_eq!(lines.range(line, line), start..start + 3);
            assert_eq!([start, start + 2].map(|at| lines.line_of(at)), [line; 2]);
        }
    }
}
