//! Attaches comments and attributes to the definition below them. Together they are called the definition's lead.

use super::types::Definition;
use crate::model::ByteRange;

/// A comment or attribute that may belong to the definition below it.
pub(crate) struct LeadPiece {
    pub(crate) range: ByteRange,
    /// The documentation in the comment or attribute, if any.
    pub(crate) doc: Option<ByteRange>,
}

/// Extends each definition upwards to include the adjacent `pieces` above it, and sets its documentation. A blank line
/// separates pieces. Both lists must be in source order.
///
/// Uses byte positions instead of the syntax tree, because grammars place comments inconsistently. For example, the
/// comment above a Python method is a child of the previous method.
pub(crate) fn attach(definitions: &mut [Definition], pieces: &[LeadPiece], src: &[u8]) {
    let mut n_before = 0;
    // Several names declared by one statement have the same start, so the lead is computed only once.
    let mut last = (u32::MAX, 0);
    for i in 0..definitions.len() {
        let start = definitions[i].range.start;
        while n_before < pieces.len() && pieces[n_before].range.end <= start {
            n_before += 1;
        }
        if last.0 != start {
            last = (start, first_adjacent(&pieces[..n_before], start, src));
        }
        let first = last.1;
        let lead = &pieces[first..n_before];
        let Some(top) = lead.first() else { continue };
        definitions[i].range.start = top.range.start;
        if definitions[i].doc.is_none() {
            definitions[i].doc = doc_in(lead);
        }
        clamp_sibling_before(definitions, i, src);
    }
}

/// Returns the index of the first piece in the uninterrupted run that ends directly above `start`. Returns the number
/// of pieces if there is no such run.
fn first_adjacent(pieces: &[LeadPiece], start: u32, src: &[u8]) -> usize {
    let mut first = pieces.len();
    let mut below = start;
    while first > 0 && is_adjacent(src, pieces[first - 1].range.end, below) {
        below = pieces[first - 1].range.start;
        first -= 1;
    }
    first
}

/// Returns true if only white space without a blank line is between `end` and `start`.
fn is_adjacent(src: &[u8], end: u32, start: u32) -> bool {
    if end > start {
        return false;
    }
    let gap = &src[end as usize..start as usize];
    let mut n_newlines = 0;
    gap.iter().all(|&byte| {
        n_newlines += u32::from(byte == b'\n');
        byte.is_ascii_whitespace() && n_newlines < 2
    })
}

/// Returns the range of the first consecutive documentation pieces in a lead.
fn doc_in(lead: &[LeadPiece]) -> Option<ByteRange> {
    let docs = lead.iter().skip_while(|piece| piece.doc.is_none());
    docs.map_while(|piece| piece.doc)
        .reduce(|first, next| ByteRange::new(first.start, next.end))
}

/// Shortens the previous definition if, according to the grammar, it contains the comment above definition `i`.
fn clamp_sibling_before(definitions: &mut [Definition], i: usize, src: &[u8]) {
    let start = definitions[i].range.start;
    let container = definitions[i].container;
    let mut at = i.checked_sub(1).map(|at| at as u32);
    while let Some(before) = at {
        if Some(before) == container {
            return;
        }
        let definition = &mut definitions[before as usize];
        if definition.range.end > start && definition.range.start < start {
            definition.range = super::spans::trimmed(src, ByteRange::new(definition.range.start, start));
        }
        at = definition.container;
    }
}

/// Returns true if only white space precedes `at` on its line.
pub(crate) fn starts_line(src: &[u8], at: u32) -> bool {
    let before = src[..at as usize].iter().rev();
    before.take_while(|&&byte| byte != b'\n').all(u8::is_ascii_whitespace)
}
