//! Encodes and decodes numbers, in little endian or, if most are small, in LEB128 ("varint").

use crate::model::varint;
pub(super) use crate::model::varint::put as put_varint;
use crate::sidecar::Bytes;

pub(super) fn put_u32(out: &mut Vec<u8>, value: u32) {
    out.extend_from_slice(&value.to_le_bytes());
}

pub(super) fn put_i64(out: &mut Vec<u8>, value: i64) {
    out.extend_from_slice(&value.to_le_bytes());
}

/// Returns the element at `index` of an array of u32.
pub(super) fn u32_at(column: &[u8], index: usize) -> Option<u32> {
    let raw = column.get(index.checked_mul(4)?..)?.get(..4)?;
    Some(u32::from_le_bytes(raw.try_into().ok()?))
}

/// Returns the element at `index` of an array of i64.
pub(super) fn i64_at(column: &[u8], index: usize) -> Option<i64> {
    let raw = column.get(index.checked_mul(8)?..)?.get(..8)?;
    Some(i64::from_le_bytes(raw.try_into().ok()?))
}

/// Returns the part at `index` of concatenated parts. `ends` is an array of the end of each part.
pub(super) fn part<'b>(bytes: &'b [u8], ends: &[u8], index: usize) -> Option<&'b [u8]> {
    let start = match index {
        0 => 0,
        _ => u32_at(ends, index - 1)?,
    };
    bytes.get(start as usize..u32_at(ends, index)? as usize)
}

/// Decodes bytes from start to end. `None` means that the bytes are damaged.
pub(super) struct Scan<'b> {
    rest: &'b [u8],
}

impl<'b> Scan<'b> {
    pub(super) fn new(bytes: &'b [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(super) fn is_over(&self) -> bool {
        self.rest.is_empty()
    }

    pub(super) fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    pub(super) fn varint(&mut self) -> Option<u64> {
        varint::take(&mut self.rest)
    }

    pub(super) fn bytes(&mut self, n_bytes: usize) -> Option<&'b [u8]> {
        let taken = self.rest.get(..n_bytes)?;
        self.rest = &self.rest[n_bytes..];
        Some(taken)
    }
}

/// A list of texts in ascending order, with the end of each, for lookups.
#[derive(Clone, Debug)]
pub(super) struct SortedTexts {
    pub(super) bytes: Bytes,
    pub(super) ends: Bytes,
}

impl SortedTexts {
    pub(super) fn len(&self) -> usize {
        self.ends.len() / 4
    }

    pub(super) fn get(&self, index: usize) -> Option<&[u8]> {
        part(&self.bytes, &self.ends, index)
    }

    /// Returns true if the texts are in strictly ascending order, which lookups require.
    pub(super) fn is_ascending(&self) -> bool {
        (1..self.len()).all(|at| self.get(at - 1) < self.get(at))
    }

    /// Returns the index of the first text that is not less than `text`.
    pub(super) fn lower_bound(&self, text: &[u8]) -> usize {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low + (high - low) / 2;
            if self.get(middle).is_some_and(|found| found < text) {
                low = middle + 1
            } else {
                high = middle
            }
        }
        low
    }

    pub(super) fn find(&self, text: &[u8]) -> Option<usize> {
        let at = self.lower_bound(text);
        (self.get(at)? == text).then_some(at)
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn varints_round_trip_and_truncation_is_detected() {
        for value in [0, 1, 127, 128, 300, u64::from(u32::MAX), u64::MAX] {
            let mut bytes = Vec::new();
            put_varint(&mut bytes, value);
            let mut scan = Scan::new(&bytes);
            assert_eq!(scan.varint(), Some(value));
            assert!(scan.is_over());
            assert_eq!(Scan::new(&bytes[..bytes.len() - 1]).varint(), None);
        }
        assert_eq!(Scan::new(&[0xff; 11]).varint(), None);
    }

    #[test]
    fn sorted_texts_are_found() {
        let texts = SortedTexts {
            bytes: Bytes::from_vec(b"abacb".to_vec()),
            ends: Bytes::from_vec([1u32, 3, 4, 5].iter().flat_map(|end| end.to_le_bytes()).collect()),
        };
        let listed: Vec<&[u8]> = (0..texts.len()).map(|at| texts.get(at).unwrap()).collect();
        assert_eq!(listed, [&b"a"[..], b"ba", b"c", b"b"]);
        assert_eq!(texts.find(b"a"), Some(0));
        assert_eq!(texts.find(b"zz"), None);
    }
}
