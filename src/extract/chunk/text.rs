//! Classifies and measures the lines of a blob for the chunker.

use crate::extract::layout::Layout;
use crate::extract::lines::LineIndex;
use crate::extract::options::Options;

/// The inputs of all chunking steps.
pub(super) struct Text<'a> {
    pub(super) src: &'a [u8],
    pub(super) lines: &'a LineIndex,
    pub(super) layout: &'a Layout,
    pub(super) options: &'a Options,
}

impl Text<'_> {
    /// Returns the total size of the lines `first..end` in bytes.
    pub(super) fn bytes(&self, first: usize, end: usize) -> usize {
        (self.lines.start(end) - self.lines.start(first)) as usize
    }

    /// Returns the given line without surrounding white space.
    pub(super) fn trimmed(&self, line: usize) -> &[u8] {
        self.src[self.lines.range(line, line + 1).as_usize()].trim_ascii()
    }

    /// Returns true if the given line is blank.
    pub(super) fn is_blank(&self, line: usize) -> bool {
        self.trimmed(line).is_empty()
    }

    /// Returns true if the given line only closes a construct: brackets, `end`, `#endif`.
    pub(super) fn is_closer(&self, line: usize) -> bool {
        let text = self.trimmed(line);
        let after = text
            .iter()
            .position(|byte| !b"})];,>".contains(byte))
            .unwrap_or(text.len());
        let rest = text[after..].trim_ascii_start();
        if after > 0
            && (rest.is_empty() || rest.starts_with(b"//") || rest.starts_with(b"/*") || rest.starts_with(b"#"))
        {
            return true;
        }
        const WORDS: [&[u8]; 6] = [b"end", b"end;", b"end)", b"fi", b"done", b"esac"];
        after == 0 && (WORDS.contains(&rest) || rest.starts_with(b"#endif") || rest.starts_with(b"</"))
    }

    /// Returns true if the given line is blank or only closes a construct.
    pub(super) fn is_trivial(&self, line: usize) -> bool {
        self.is_blank(line) || self.is_closer(line)
    }
}

/// Computes the depths of lines from their indentation, for text without a grammar.
pub(super) fn indentation(src: &[u8], lines: &LineIndex) -> Layout {
    let mut layout = Layout::new(lines.count());
    for line in 0..lines.count() {
        let text = &src[lines.range(line, line + 1).as_usize()];
        let indent: usize = text
            .iter()
            .map_while(|byte| match byte {
                b' ' => Some(1),
                b'\t' => Some(4),
                _ => None,
            })
            .sum();
        if !text.trim_ascii().is_empty() {
            layout.set_depth(line, indent.min(64) / 2);
        }
    }
    layout
}
