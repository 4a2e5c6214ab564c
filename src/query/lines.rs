//! Converts between byte offsets and line numbers.

use std::ops::Range;

/// Distance in bytes between stored counts of line breaks. Line breaks after the last stored count are counted on
/// demand. This bounds memory and time, even for a file of only line breaks or of a single line.
const BYTES_PER_MARK: usize = 512;

/// The starts of the lines of a file. Lines are 1-based; there is no line after a final line break.
#[derive(Clone, Debug)]
pub struct LineStarts<'b> {
    bytes: &'b [u8],
    /// Number of line breaks before each [`BYTES_PER_MARK`]th byte, starting with byte 0.
    marks: Vec<u32>,
    n_lines: usize,
}

impl<'b> LineStarts<'b> {
    /// Indexes the lines of `bytes`.
    pub fn of(bytes: &'b [u8]) -> Self {
        let (mut marks, mut n_breaks) = (Vec::with_capacity(bytes.len() / BYTES_PER_MARK + 1), 0);
        for piece in bytes.chunks(BYTES_PER_MARK) {
            marks.push(n_breaks as u32);
            n_breaks += memchr::memchr_iter(b'\n', piece).count();
        }
        let has_rest = bytes.last().is_some_and(|last| *last != b'\n');
        Self {
            bytes,
            marks,
            n_lines: n_breaks + usize::from(has_rest),
        }
    }

    /// Returns the number of lines.
    pub fn count(&self) -> u32 {
        self.n_lines as u32
    }

    /// Returns the line that contains the byte at `offset`; the last line for offsets past the end.
    pub fn line_of(&self, offset: usize) -> u32 {
        let offset = offset.min(self.bytes.len().saturating_sub(1));
        let mark = offset / BYTES_PER_MARK;
        let n_between = memchr::memchr_iter(b'\n', &self.bytes[mark * BYTES_PER_MARK..offset]).count();
        self.marks.get(mark).copied().unwrap_or_default() + n_between as u32 + 1
    }

    /// Returns the byte range of the lines `first..=last`, including line breaks. It is empty if there are no such
    /// lines.
    pub fn range(&self, first: u32, last: u32) -> Range<usize> {
        self.start_of(first.max(1))..self.start_of(last.max(first).saturating_add(1))
    }

    fn start_of(&self, line: u32) -> usize {
        let n_before = line as usize - 1;
        if n_before >= self.n_lines {
            return self.bytes.len();
        }
        if n_before == 0 {
            return 0;
        }
        let mark = self.marks.partition_point(|&n_breaks| (n_breaks as usize) < n_before) - 1;
        let n_more = n_before - self.marks[mark] as usize;
        let start = mark * BYTES_PER_MARK;
        let mut breaks = memchr::memchr_iter(b'\n', &self.bytes[start..]);
        breaks.nth(n_more - 1).map_or(self.bytes.len(), |at| start + at + 1)
    }

    /// Returns the first and last line of a byte range, ignoring blank lines at both ends unless the whole range is
    /// blank.
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
        assert_eq!((lines.count(), lines.marks.len()), (1000, 3000 / BYTES_PER_MARK + 1));
        for line in [1, 2, 170, 171, 172, 341, 342, 343, 999, 1000] {
            let start = (line as usize - 1) * 3;
            assert_eq!(lines.range(line, line), start..start + 3);
            assert_eq!([start, start + 2].map(|at| lines.line_of(at)), [line; 2]);
        }
    }
}
