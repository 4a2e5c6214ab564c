//! The lines of a blob as the chunker sees them.

use crate::extract::layout::Layout;
use crate::extract::lines::LineIndex;
use crate::extract::options::Options;

/// What every step needs.
pub(super) struct Text<'a> {
    pub(super) src: &'a [u8],
    pub(super) lines: &'a LineIndex,
    pub(super) layout: &'a Layout,
    pub(super) options: &'a Options,
}

impl Text<'_> {
    /// How many bytes the lines `first..end` have.
    pub(super) fn bytes(&self, first: usize, end: usize) -> usize {
        (self.lines.start(end) - self.lines.start(first)) as usize
    }

    /// Line `line` without the white space around it.
    pub(super) fn trimmed(&self, line: usize) -> &[u8] {
        self.src[self.lines.range(line, line + 1).as_usize()].trim_ascii()
    }

    /// Whether line `line` holds nothing.
    pub(super) fn is_blank(&self, line: usize) -> bool {
        self.trimmed(line).is_empty()
    }

    /// Whether line `line` only closes what was opened above: brackets, `end`, `#endif`.
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

    /// Whether line `line` is blank or only closes something.
    pub(super) fn is_trivial(&self, line: usize) -> bool {
        self.is_blank(line) || self.is_closer(line)
    }
}

/// A layout made from indentation, for text without a grammar.
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
