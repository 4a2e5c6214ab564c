//! Replaces ranges of a file.

use std::ops::Range;

use crate::session::{OpError, Result};

/// A range of a file and the text that replaces it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Splice {
    pub(crate) range: Range<usize>,
    pub(super) text: Vec<u8>,
}

impl Splice {
    /// Replaces `range` by `text`.
    pub(crate) fn new(range: Range<usize>, text: impl Into<String>) -> Self {
        Self {
            range,
            text: text.into().into_bytes(),
        }
    }
}

/// Returns `bytes` with all splices applied. Insertions at the same place keep their order.
///
/// Fails if two of them overlap: the result would depend on the order of the operations.
pub(crate) fn spliced(bytes: &[u8], mut splices: Vec<Splice>) -> Result<Vec<u8>> {
    splices.sort_by_key(|splice| (splice.range.start, splice.range.end));
    let mut new = Vec::with_capacity(bytes.len());
    let mut at = 0;
    for splice in &splices {
        if splice.range.start < at {
            return Err(OpError::new(
                "two operations change the same text",
                "combine them into one, or send them in two calls",
            ));
        }
        new.extend_from_slice(&bytes[at..splice.range.start]);
        new.extend_from_slice(&splice.text);
        at = splice.range.end;
    }
    new.extend_from_slice(&bytes[at..]);
    Ok(new)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn ranges_are_replaced_at_once() {
        let splices = vec![
            Splice::new(4..6, "X"),
            Splice::new(4..4, "1"),
            Splice::new(4..4, "2"),
            Splice::new(6..6, "3"),
            Splice::new(0..1, ""),
        ];
        assert_eq!(spliced(b"abcdefg", splices).unwrap(), b"bcd12X3g");
        assert!(spliced(b"abc", vec![Splice::new(0..2, "x"), Splice::new(1..1, "y")]).is_err());
    }
}
