//! Converts between bytes of a text and positions: line and column, counted from 0 in units that the server chooses.

use lsp_types::{Position, PositionEncodingKind};

/// The unit of columns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Encoding {
    Utf8,
    /// What a server means that does not choose.
    #[default]
    Utf16,
    Utf32,
}

impl Encoding {
    /// Returns the encoding that a server chose, and `None` for one that was not offered.
    pub(super) fn chosen(kind: Option<&PositionEncodingKind>) -> Option<Self> {
        match kind.map(PositionEncodingKind::as_str) {
            None | Some("utf-16") => Some(Self::Utf16),
            Some("utf-8") => Some(Self::Utf8),
            Some("utf-32") => Some(Self::Utf32),
            Some(_) => None,
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
    pub(super) fn position(&self, byte: usize, encoding: Encoding) -> Option<Position> {
        let line = self.starts.partition_point(|start| *start <= byte) - 1;
        let before = self.content.get(self.starts[line]..byte)?;
        let column: usize = before.chars().map(|letter| encoding.units(letter)).sum();
        Some(Position::new(line.try_into().ok()?, column.try_into().ok()?))
    }

    /// Returns the byte at a position, and `None` if the line has no such column.
    pub(super) fn byte(&self, position: Position, encoding: Encoding) -> Option<usize> {
        let line = position.line as usize;
        let start = *self.starts.get(line)?;
        let end = self.starts.get(line + 1).copied().unwrap_or(self.content.len());
        let mut left = position.character as usize;
        for (at, letter) in self.content[start..end].char_indices() {
            if left == 0 {
                return Some(start + at);
            }
            left = left.checked_sub(encoding.units(letter))?;
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
        for (encoding, column) in [(Encoding::Utf8, 7), (Encoding::Utf16, 4), (Encoding::Utf32, 3)] {
            assert_eq!(text.position(7, encoding), Some(Position::new(0, column)));
            assert_eq!(text.byte(Position::new(0, column), encoding), Some(7), "{encoding:?}");
            assert_eq!(text.byte(Position::new(1, 1), encoding), Some(11));
            assert_eq!(text.position(13, encoding), Some(Position::new(2, 0)));
            assert_eq!(text.byte(Position::new(2, 1), encoding), Some(14));
            assert_eq!(text.byte(Position::new(2, 2), encoding), None);
            assert_eq!(text.byte(Position::new(3, 0), encoding), None);
            assert_eq!((text.position(2, encoding), text.position(15, encoding)), (None, None));
        }
        assert_eq!(text.byte(Position::new(0, 3), Encoding::Utf16), None, "inside a letter");
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
