//! The unit in which tools count the columns of a line.

/// The unit of columns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ColumnUnit {
    /// Bytes of UTF-8.
    Utf8,
    /// Units of UTF-16, which language servers count unless they choose another unit.
    #[default]
    Utf16,
    /// Code points.
    Utf32,
}

impl ColumnUnit {
    /// Every unit, the most frequent first.
    pub const ALL: [Self; 3] = [Self::Utf16, Self::Utf8, Self::Utf32];

    /// Returns the number of units of a letter.
    pub fn count(self, letter: char) -> usize {
        match self {
            Self::Utf8 => letter.len_utf8(),
            Self::Utf16 => letter.len_utf16(),
            Self::Utf32 => 1,
        }
    }
}
