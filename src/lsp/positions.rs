//! Converts between bytes of a text and positions: line and column, counted from 0 in units that the server chooses.

use lsp_types::{Position, PositionEncodingKind};

use crate::model::ColumnUnit;

/// Returns the unit that a server chose, and `None` for one that was not offered.
pub(super) fn chosen_unit(kind: Option<&PositionEncodingKind>) -> Option<ColumnUnit> {
    match kind.map(PositionEncodingKind::as_str) {
        None | Some("utf-16") => Some(ColumnUnit::Utf16),
        Some("utf-8") => Some(ColumnUnit::Utf8),
        Some("utf-32") => Some(ColumnUnit::Utf32),
        Some(_) => None,
    }
}

/// A text with the starts of its lines, which end with `\n`, `\r\n` or `\r`.
#[derive(Clone, Debug)]
pub(super) struct Text {
    content: String,
    starts: Vec<usize>,
}

impl Text {
    pub(super) fn new(content: String) -> Self {
        let bytes = content.as_bytes();
        let ends = (0..bytes.len()).filter(|&at| match bytes[at] {
            b'\n' => true,
            b'\r' => bytes.get(at + 1) != Some(&b'\n'),
            _ => false,
        });
        let starts = std::iter::once(0).chain(ends.map(|end| end + 1)).collect();
        Self { content, starts }
    }

    pub(super) fn content(&self) -> &str {
        &self.content
    }

    /// Returns the position of a byte, and `None` outside of the text and inside a letter.
    pub(super) fn position(&self, byte: usize, unit: ColumnUnit) -> Option<Position> {
        let line = self.starts.partition_point(|start| *start <= byte) - 1;
        let before = self.content.get(self.starts[line]..byte)?;
        let column: usize = before.chars().map(|letter| unit.count(letter)).sum();
        Some(Position::new(line.try_into().ok()?, column.try_into().ok()?))
    }

    /// Returns the byte at a position, and `None` if the line has no such column.
    pub(super) fn byte(&self, position: Position, unit: ColumnUnit) -> Option<usize> {
        let line = position.line as usize;
        let start = *self.starts.get(line)?;
        let end = self.starts.get(line + 1).copied().unwrap_or(self.content.len());
        let mut left = position.character as usize;
        for (at, letter) in self.content[start..end].char_indices() {
            if left == 0 {
                return Some(start + at);
            }
            left = left.checked_sub(unit.count(letter))?;
        }
        (left == 0).then_some(end)
    }

    /// Returns true if the bytes are one whole word.
    pub(super) fn is_word(&self, start: usize, end: usize) -> bool {
        let is_part = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '$');
        let Some(word) = self.content.get(start..end) else {
            return false;
        };
        !word.is_empty()
            && word.chars().all(is_part)
            && !self.content[..start].ends_with(is_part)
            && !self.content[end..].starts_with(is_part)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_counted_in_each_encoding() {
        let text = Text::new("aé𝄞b\r\nxy\rz".to_owned());
        for (unit, column) in [(ColumnUnit::Utf8, 7), (ColumnUnit::Utf16, 4), (ColumnUnit::Utf32, 3)] {
            assert_eq!(text.position(7, unit), Some(Position::new(0, column)));
            assert_eq!(text.byte(Position::new(0, column), unit), Some(7), "{unit:?}");
            assert_eq!(text.byte(Position::new(1, 1), unit), Some(11));
            assert_eq!(text.position(13, unit), Some(Position::new(2, 0)));
            assert_eq!(text.byte(Position::new(2, 1), unit), Some(14));
            assert_eq!(text.byte(Position::new(2, 2), unit), None);
            assert_eq!(text.byte(Position::new(3, 0), unit), None);
            assert_eq!((text.position(2, unit), text.position(15, unit)), (None, None));
        }
        assert_eq!(
            text.byte(Position::new(0, 3), ColumnUnit::Utf16),
            None,
            "inside a letter"
        );
    }

    #[test]
    fn only_whole_words_are_words() {
        let text = Text::new("go_on ünd a".to_owned());
        let words = [(0, 5), (6, 10), (11, 12)];
        assert!(words.iter().all(|&(start, end)| text.is_word(start, end)));
        let others = [(0, 2), (3, 5), (0, 6), (7, 10), (5, 5), (11, 13), (12, 11)];
        assert!(!others.iter().any(|&(start, end)| text.is_word(start, end)));
    }
}
