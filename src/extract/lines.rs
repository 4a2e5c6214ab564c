//! Converts between byte offsets and line numbers.

use memchr::memchr_iter;

use crate::model::ByteRange;

/// The start offsets of the lines of a blob. Lines are 0-based.
#[derive(Clone, Debug)]
pub(crate) struct LineIndex {
    /// `starts[i]` is the offset of line `i`. The last entry is the length of the blob.
    starts: Vec<u32>,
}

impl LineIndex {
    /// Finds the lines of `bytes`. A last line without a newline counts as a line; the empty text after a final newline
    /// does not.
    pub(crate) fn new(bytes: &[u8]) -> Self {
        let mut starts = Vec::with_capacity(bytes.len() / 24 + 2);
        starts.push(0);
        starts.extend(memchr_iter(b'\n', bytes).map(|at| at as u32 + 1));
        let len = bytes.len() as u32;
        if starts.last() != Some(&len) {
            starts.push(len);
        }
        Self { starts }
    }

    /// Returns the number of lines.
    pub(crate) fn count(&self) -> usize {
        self.starts.len() - 1
    }

    /// Returns the offset of the first byte of a line. For the line after the last, returns the length of the blob.
    pub(crate) fn start(&self, line: usize) -> u32 {
        self.starts[line]
    }

    /// Returns the byte range of the lines `first..end`, including newlines.
    pub(crate) fn range(&self, first: usize, end: usize) -> ByteRange {
        ByteRange::new(self.starts[first], self.starts[end])
    }

    /// Returns the line that contains the byte at `offset`. For offsets past the end, returns the last line.
    pub(crate) fn line_of(&self, offset: u32) -> usize {
        let after = self.starts.partition_point(|&start| start <= offset);
        after.saturating_sub(1).min(self.count().saturating_sub(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_last_line_without_newline_counts() {
        assert_eq!(LineIndex::new(b"a\nb").count(), 2);
        assert_eq!(LineIndex::new(b"a\nb\n").count(), 2);
        assert_eq!(LineIndex::new(b"").count(), 0);
        assert_eq!(LineIndex::new(b"\n").count(), 1);
    }

    #[test]
    fn offsets_fall_into_their_line() {
        let lines = LineIndex::new(b"ab\n\ncd");
        assert_eq!([0, 2, 3, 4, 5, 9].map(|at| lines.line_of(at)), [0, 0, 1, 2, 2, 2]);
        assert_eq!(lines.range(1, 3), ByteRange::new(3, 6));
    }
}
