//! Splits text that is too large for one chunk.

use super::text::Text;
use crate::extract::layout::Layout;
use crate::model::ByteRange;

/// Maximum number of lines of one part. With the default `max_bytes`, it takes effect only if lines are shorter than 14
/// bytes on average.
const MAX_LINES: usize = 150;

/// Chooses the lines at which to split text.
///
/// A split before a line has a price: the line's depth in the syntax tree, plus a surcharge inside a string or between
/// a comment and the code it describes, minus a discount after a blank line. A part has a price that grows with its
/// distance from the target size. The splitter finds the cheapest sequence of splits, in time linear in the number of
/// lines.
pub(super) struct Splitter<'a> {
    text: &'a Text<'a>,
}

impl<'a> Splitter<'a> {
    pub(super) fn new(text: &'a Text<'a>) -> Self {
        Self { text }
    }

    /// Splits the lines `first..end` into parts of at most `max_bytes`. A single line that is longer becomes a part of
    /// its own.
    pub(super) fn split(&self, first: usize, end: usize) -> Vec<(usize, usize)> {
        let base = (first + 1..end)
            .map(|line| self.text.layout.depth(line))
            .min()
            .unwrap_or(0);
        let n = end - first;
        // `best[i]` is the lowest price of splitting the first `i` lines. `from[i]` is the first line of the last part
        // in that solution.
        let mut best = vec![0u64; n + 1];
        let mut from = vec![0usize; n + 1];
        let prices: Vec<u64> = (first..end).map(|line| self.price(line, first, base)).collect();
        for i in 1..=n {
            best[i] = u64::MAX;
            for j in (i.saturating_sub(MAX_LINES)..i).rev() {
                let n_bytes = self.text.bytes(first + j, first + i);
                if n_bytes > self.text.options.max_bytes as usize && j + 1 < i {
                    break;
                }
                let cut = if j == 0 { 0 } else { prices[j] };
                let price = best[j] + cut + self.size_price(n_bytes);
                if price < best[i] {
                    best[i] = price;
                    from[i] = j;
                }
            }
        }
        let mut parts = Vec::new();
        let mut at = n;
        while at > 0 {
            parts.push((first + from[at], first + at));
            at = from[at];
        }
        parts.reverse();
        parts
    }

    /// Returns the price of a split before `line`.
    fn price(&self, line: usize, first: usize, base: u16) -> u64 {
        if line == first {
            return 0;
        }
        let text = self.text;
        if text.is_blank(line) {
            return 900;
        }
        let depth = text.layout.depth(line);
        let after_blank = text.is_blank(line - 1);
        let mut price = match depth {
            Layout::INSIDE if text.layout.is_comment(line) => 200,
            Layout::INSIDE => 500,
            _ => 40 * u64::from(depth.saturating_sub(base).min(12)),
        };
        if text.is_closer(line) {
            price += 200;
        }
        if !after_blank && text.layout.is_comment(line - 1) {
            price += 250;
        }
        if after_blank { price / 2 } else { price + 60 }
    }

    fn size_price(&self, n_bytes: usize) -> u64 {
        let (target, max) = (
            u64::from(self.text.options.target_bytes),
            u64::from(self.text.options.max_bytes),
        );
        let n_bytes = n_bytes as u64;
        let (distance, span) = if n_bytes < target {
            (target - n_bytes, target)
        } else {
            (n_bytes - target, max.saturating_sub(target))
        };
        let distance = distance.min(4 * span);
        200 * distance * distance / (span * span).max(1)
    }
}

/// Splits a range that contains a line longer than a chunk may be, after a separator if possible, or else between
/// characters.
pub(super) fn cut_bytes(text: &Text<'_>, range: ByteRange) -> Vec<ByteRange> {
    let max = text.options.max_bytes.max(8);
    let mut ranges = Vec::new();
    let mut start = range.start;
    while range.end - start > max {
        let window = &text.src[start as usize..(start + max) as usize];
        let len = safe_break(window, text.src[(start + max) as usize]) as u32;
        ranges.push(ByteRange::new(start, start + len));
        start += len;
    }
    ranges.push(ByteRange::new(start, range.end));
    ranges
}

/// Returns the length of the first part of `window`. It ends after the last separator in the second half, preferring
/// the best kind of separator. `next` is the byte after `window`.
fn safe_break(window: &[u8], next: u8) -> usize {
    let half = window.len() / 2;
    for separators in [&b"\n"[..], b";}", b", \t)]>"] {
        if let Some(at) = window[half..].iter().rposition(|byte| separators.contains(byte)) {
            return half + at + 1;
        }
    }
    let mut len = window.len();
    // Continuation bytes of UTF-8 are 0b10xxxxxx. A character has at most three.
    let mut follows = next;
    while follows & 0xc0 == 0x80 && window.len() - len < 4 && len > 1 {
        len -= 1;
        follows = window[len];
    }
    len
}
