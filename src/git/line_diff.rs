//! Compares the lines of two texts.

use std::ops::Range;

use gix::diff::blob::{Algorithm, InternedInput, diff_with_slider_heuristics};

/// Lines of the old text and the lines of the new text that replace them. 0-based; one of the ranges may be empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineHunk {
    /// Lines of the old text.
    pub old: Range<u32>,
    /// Lines of the new text.
    pub new: Range<u32>,
}

/// Returns the differences in line order. They nearly always match those of git's default algorithm with its indent
/// heuristic.
pub fn diff_lines(old: &[u8], new: &[u8]) -> Vec<LineHunk> {
    let input = InternedInput::new(old, new);
    let diff = diff_with_slider_heuristics(Algorithm::Myers, &input);
    let hunks = diff.hunks();
    hunks
        .map(|hunk| LineHunk {
            old: hunk.before,
            new: hunk.after,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_added_and_removed_lines() {
        let hunks = diff_lines(b"a\nb\nc\nd\n", b"a\nB\nc\nd\ne\n");
        let told: Vec<_> = hunks.into_iter().map(|hunk| (hunk.old, hunk.new)).collect();
        assert_eq!(told, [(1..2, 1..2), (4..4, 4..5)]);
        assert!(diff_lines(b"x", b"x").is_empty());
    }
}
