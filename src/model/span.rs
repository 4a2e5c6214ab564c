//! Byte ranges: the only kind of position that is kept.

use std::ops::Range;

/// A half-open range of bytes within one blob. Blobs over 4 GiB are never indexed, so `u32` holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ByteRange {
    /// The first byte.
    pub start: u32,
    /// One past the last byte; never below `start`.
    pub end: u32,
}

impl ByteRange {
    /// The range from `start` up to, without, `end`.
    pub fn new(start: u32, end: u32) -> Self {
        debug_assert!(start <= end, "{start}..{end}");
        Self { start, end }
    }

    /// How many bytes it covers.
    pub fn len(self) -> usize {
        (self.end - self.start) as usize
    }

    /// Whether it covers nothing.
    pub fn is_empty(self) -> bool {
        self.start == self.end
    }

    /// Whether `other` lies inside.
    pub fn contains(self, other: Self) -> bool {
        self.start <= other.start && other.end <= self.end
    }

    /// For indexing a slice.
    pub fn as_usize(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}
