//! Converts lines and columns to bytes.

use bstr::ByteSlice;

use crate::model::ColumnUnit;

/// Returns the unit that SCIP gives this number.
pub(super) fn unit_of_number(number: u64) -> Option<ColumnUnit> {
    match number {
        1 => Some(ColumnUnit::Utf8),
        2 => Some(ColumnUnit::Utf16),
        3 => Some(ColumnUnit::Utf32),
        _ => None,
    }
}

/// The positions of a text in one unit of columns.
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
    pub(super) fn new(text: &[u8], unit: ColumnUnit) -> Self {
        let ends = memchr::memchr_iter(b'\n', text).map(|at| at + 1);
        let lines = std::iter::once(0).chain(ends).chain([text.len()]).collect();
        let mut wide: Vec<Wide> = Vec::new();
        for (first_byte, end_byte, letter) in text.char_indices() {
            let units = unit.count(letter);
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
        for (unit, column) in [(ColumnUnit::Utf8, 7), (ColumnUnit::Utf16, 4), (ColumnUnit::Utf32, 3)] {
            let positions = Positions::new(text, unit);
            assert_eq!(positions.byte(0, column), Some(7), "{unit:?}");
            assert_eq!(positions.byte(1, 1), Some(10));
            assert_eq!(positions.byte(1, 2), Some(11));
            assert_eq!((positions.byte(1, 3), positions.byte(2, 0)), (None, None));
        }
        assert_eq!(
            Positions::new(text, ColumnUnit::Utf16).byte(0, 3),
            None,
            "inside a letter"
        );
    }
}
