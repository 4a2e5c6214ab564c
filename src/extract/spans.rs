//! Helper functions for byte ranges in a blob.

use crate::model::ByteRange;

/// Limits `range` to the blob. The newline added for the parser is not part of the blob.
pub(crate) fn clamp(src: &[u8], range: ByteRange) -> ByteRange {
    let len = src.len() as u32;
    ByteRange::new(range.start.min(len), range.end.min(len))
}

/// Limits `range` to the blob and removes white space from its end.
pub(crate) fn trimmed(src: &[u8], range: ByteRange) -> ByteRange {
    let range = clamp(src, range);
    let text = &src[range.as_usize()];
    let len = text.trim_ascii_end().len() as u32;
    ByteRange::new(range.start, range.start + len)
}

/// Returns the text in `range`, with invalid UTF-8 replaced.
pub(crate) fn text_of(src: &[u8], range: ByteRange) -> String {
    String::from_utf8_lossy(&src[clamp(src, range).as_usize()]).into_owned()
}
