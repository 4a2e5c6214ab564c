//! Computes line diffs of two texts.

use std::io;
use std::ops::Range;

use gix::diff::blob::unified_diff::{ConsumeHunk, ContextSize, DiffLineKind, HunkHeader};
use gix::diff::blob::{Algorithm, InternedInput, UnifiedDiff, diff_with_slider_heuristics};

/// A range of old lines and the range of new lines that replaces it. Lines are 0-based. One of the ranges may be empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineHunk {
    /// The range in the old text.
    pub old: Range<u32>,
    /// The range in the new text.
    pub new: Range<u32>,
}

/// Returns the differing ranges in line order. The result nearly always matches git's default algorithm with its indent
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

/// Like [`unified_diff_bytes`], as text: bytes that are not valid UTF-8 are replaced.
pub fn unified_diff(old: &[u8], new: &[u8], first: (u32, u32)) -> String {
    String::from_utf8_lossy(&unified_diff_bytes(old, new, first)).into_owned()
}

/// Returns a unified diff with three lines of context, or nothing if the texts are equal. `first` contains the numbers of
/// the first lines of both texts.
pub fn unified_diff_bytes(old: &[u8], new: &[u8], first: (u32, u32)) -> Vec<u8> {
    let input = InternedInput::new(old, new);
    let diff = diff_with_slider_heuristics(Algorithm::Myers, &input);
    let hunks = Hunks {
        first,
        text: Vec::new(),
    };
    UnifiedDiff::new(&diff, &input, hunks, ContextSize::default())
        .consume()
        .expect("writing to memory does not fail")
}

struct Hunks {
    first: (u32, u32),
    text: Vec<u8>,
}

impl ConsumeHunk for Hunks {
    type Out = Vec<u8>;

    fn consume_hunk(&mut self, header: HunkHeader, lines: &[(DiffLineKind, &[u8])]) -> io::Result<()> {
        // An empty range has the number of the line before it. The length of one line is left out, as in git.
        let range = |start: u32, n_lines: u32, first: u32| match n_lines {
            0 => format!("{},0", (start + first).saturating_sub(2)),
            1 => (start + first - 1).to_string(),
            n_lines => format!("{},{n_lines}", start + first - 1),
        };
        let old = range(header.before_hunk_start, header.before_hunk_len, self.first.0);
        let new = range(header.after_hunk_start, header.after_hunk_len, self.first.1);
        self.text.extend_from_slice(format!("@@ -{old} +{new} @@\n").as_bytes());
        for (kind, line) in lines {
            self.text.push(kind.to_prefix() as u8);
            self.text.extend_from_slice(line);
            if !line.ends_with(b"\n") {
                self.text.extend_from_slice(b"\n\\ No newline at end of file\n");
            }
        }
        Ok(())
    }

    fn finish(self) -> Vec<u8> {
        self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unified_diffs_are_those_of_diff() {
        let old = "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\nk\n";
        let new = "a\nB\nc\nd\ne\nf\ng\nh\ni\nj\nk\nl\n";
        assert_eq!(
            unified_diff(old.as_bytes(), new.as_bytes(), (1, 1)),
            "@@ -1,5 +1,5 @@\n a\n-b\n+B\n c\n d\n e\n@@ -9,3 +9,4 @@\n i\n j\n k\n+l\n"
        );
        assert_eq!(unified_diff(b"", b"x\n", (1, 1)), "@@ -0,0 +1 @@\n+x\n");
        assert_eq!(unified_diff(b"x\n", b"x\n", (1, 1)), "");
        assert_eq!(
            unified_diff(b"x", b"x\n", (7, 9)),
            "@@ -7 +9 @@\n-x\n\\ No newline at end of file\n+x\n"
        );
    }

    #[test]
    fn changed_added_and_removed_lines() {
        let hunks = diff_lines(b"a\nb\nc\nd\n", b"a\nB\nc\nd\ne\n");
        let found: Vec<_> = hunks.into_iter().map(|hunk| (hunk.old, hunk.new)).collect();
        assert_eq!(found, [(1..2, 1..2), (4..4, 4..5)]);
        assert!(diff_lines(b"x", b"x").is_empty());
    }
}
