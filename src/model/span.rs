//! Byte ranges. All stored positions are byte ranges.

use std::ops::Range;

/// A half-open range of bytes within one blob. `u32` suffices because blobs over 4 GiB are never indexed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ByteRange {
    /// The first byte.
    pub start: u32,
    /// One past the last byte; never below `start`.
    pub end: u32,
}

impl ByteRange {
    /// Creates the range from `start` up to, but not including, `end`.
    pub fn new(start: u32, end: u32) -> Self {
        debug_assert!(start <= end, "{start}..{end}");
        Self { start, end }
    }

    /// The number of bytes.
    pub fn len(self) -> usize {
        (self.end - self.start) as usize
    }

    /// Returns true if the range is empty.
    pub fn is_empty(self) -> bool {
        self.start == self.end
    }

    /// Returns true if `other` is inside this range.
    pub fn contains(self, other: Self) -> bool {
        self.start <= other.start && other.end <= self.end
    }

    /// Returns the range as `usize`, for slicing.
    pub fn as_usize(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}
