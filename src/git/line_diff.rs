//! Which lines differ between two texts.

use std::ops::Range;

use gix::diff::blob::{Algorithm, InternedInput, diff_with_slider_heuristics};

/// Lines of the old text that others of the new text stand in place of; 0-based, one of the two may be empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineHunk {
    /// Lines of the old text.
    pub old: Range<u32>,
    /// Lines of the new text.
    pub new: Range<u32>,
}

/// The differences in the order of lines, as git's default algorithm and its indent heuristic choose them, nearly always.
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
