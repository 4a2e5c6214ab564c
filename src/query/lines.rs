//! Offsets to lines and back, for answers that name lines.

use std::ops::Range;

/// Where the lines of a file begin. Lines are 1-based here; the nothing behind a last line break is no line.
#[derive(Clone, Debug)]
pub struct LineStarts {
    starts: Vec<usize>,
    n_bytes: usize,
}

impl LineStarts {
    /// The lines of `bytes`.
    pub fn of(bytes: &[u8]) -> Self {
        let mut starts = vec![0];
        starts.extend(memchr::memchr_iter(b'\n', bytes).map(|at| at + 1));
        if starts.last() == Some(&bytes.len()) {
            starts.pop();
        }
        Self {
            starts,
            n_bytes: bytes.len(),
        }
    }

    /// How many lines there are.
    pub fn count(&self) -> u32 {
        self.starts.len() as u32
    }

    /// The line that holds the byte at `offset`; the last one for offsets behind the end.
    pub fn line_of(&self, offset: usize) -> u32 {
        (self.starts.partition_point(|&start| start <= offset) as u32).max(1)
    }

    /// The bytes of the lines `first..=last`, line breaks included; empty where there are no such lines.
    pub fn range(&self, first: u32, last: u32) -> Range<usize> {
        let start_of = |line: u32| self.starts.get(line as usize - 1).copied().unwrap_or(self.n_bytes);
        start_of(first.max(1))..start_of(last.max(first).saturating_add(1))
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
}
