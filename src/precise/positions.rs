//! Converts lines and columns to bytes.

use bstr::ByteSlice;

/// The unit of columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Encoding {
    Utf8,
    Utf16,
    Utf32,
}

impl Encoding {
    pub(super) const ALL: [Self; 3] = [Self::Utf16, Self::Utf8, Self::Utf32];

    /// Returns the encoding that SCIP gives this number.
    pub(super) fn of_number(number: u64) -> Option<Self> {
        match number {
            1 => Some(Self::Utf8),
            2 => Some(Self::Utf16),
            3 => Some(Self::Utf32),
            _ => None,
        }
    }

    fn units(self, letter: char) -> usize {
        match self {
            Self::Utf8 => letter.len_utf8(),
            Self::Utf16 => letter.len_utf16(),
            Self::Utf32 => 1,
        }
    }
}

/// The positions of a text in one encoding.
pub(super) struct Positions {
    /// The start of each line, and the end of the text.
    lines: Vec<usize>,
    /// The letters whose length in units differs from that in bytes.
    wide: Vec<Wide>,
}

/// The end of a letter, and where it starts, counted in units from the start of the text.
struct Wide {
    first_unit: usize,
    end_unit: usize,
    first_byte: usize,
    end_byte: usize,
}

impl Positions {
    pub(super) fn new(text: &[u8], encoding: Encoding) -> Self {
        let ends = memchr::memchr_iter(b'\n', text).map(|at| at + 1);
        let lines = std::iter::once(0).chain(ends).chain([text.len()]).collect();
        let mut wide: Vec<Wide> = Vec::new();
        for (first_byte, end_byte, letter) in text.char_indices() {
            let units = encoding.units(letter);
            if units != end_byte - first_byte {
                let (unit, byte) = wide.last().map_or((0, 0), |last| (last.end_unit, last.end_byte));
                let first_unit = unit + first_byte - byte;
                wide.push(Wide {
                    first_unit,
                    end_unit: first_unit + units,
                    first_byte,
                    end_byte,
                });
            }
        }
        Self { lines, wide }
    }

    /// Returns the byte at a line and column, both counted from 0. Returns `None` if the line has no such column.
    pub(super) fn byte(&self, line: u32, column: u32) -> Option<usize> {
        let line = line as usize;
        let (start, end) = (*self.lines.get(line)?, *self.lines.get(line + 1)?);
        let byte = self.byte_of(self.unit_of(start) + column as usize)?;
        (byte <= end).then_some(byte)
    }

    fn unit_of(&self, byte: usize) -> usize {
        let n_before = self.wide.partition_point(|wide| wide.end_byte <= byte);
        match n_before.checked_sub(1).map(|last| &self.wide[last]) {
            Some(wide) => wide.end_unit + byte - wide.end_byte,
            None => byte,
        }
    }

    /// Returns `None` for a unit inside a letter.
    fn byte_of(&self, unit: usize) -> Option<usize> {
        let n_before = self.wide.partition_point(|wide| wide.first_unit <= unit);
        match n_before.checked_sub(1).map(|last| &self.wide[last]) {
            Some(wide) if wide.first_unit == unit => Some(wide.first_byte),
            Some(wide) => Some(wide.end_byte + unit.checked_sub(wide.end_unit)?),
            None => Some(unit),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_counted_in_each_encoding() {
        let text = "aé𝄞b\nxy".as_bytes();
        for (encoding, column) in [(Encoding::Utf8, 7), (Encoding::Utf16, 4), (Encoding::Utf32, 3)] {
            let positions = Positions::new(text, encoding);
            assert_eq!(positions.byte(0, column), Some(7), "{encoding:?}");
            assert_eq!(positions.byte(1, 1), Some(10));
            assert_eq!(positions.byte(1, 2), Some(11));
            assert_eq!((positions.byte(1, 3), positions.byte(2, 0)), (None, None));
        }
        assert_eq!(
            Positions::new(text, Encoding::Utf16).byte(0, 3),
            None,
            "inside a letter"
        );
    }
}
