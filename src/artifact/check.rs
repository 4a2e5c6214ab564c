//! Checks an extraction that another program made.

use crate::extract::{Definition, Extraction};
use crate::model::ByteRange;

/// Checks the properties that readers depend on: ranges are inside the blob, the chunks contain every byte, and indices
/// are valid.
pub fn check(bytes: &[u8], extraction: &Extraction) -> Result<(), &'static str> {
    let n_lines = bytes.iter().filter(|&&byte| byte == b'\n').count() as u32 + 1;
    let is_inside = |range| is_inside(bytes, range);
    if extraction.n_lines > n_lines {
        return Err("too many lines");
    }
    let mut covered = 0;
    for chunk in &extraction.chunks {
        let is_continued = chunk.range.start <= covered && is_inside(chunk.range);
        let lines = 1 <= chunk.start_line && chunk.start_line <= chunk.end_line && chunk.end_line <= n_lines;
        let about = chunk.definition.map_or(0, |index| index as usize + 1);
        if !is_continued || !lines || about > extraction.definitions.len() {
            return Err("invalid chunks");
        }
        covered = covered.max(chunk.range.end);
    }
    if covered as usize != bytes.len() {
        return Err("chunks do not cover the blob");
    }
    let is_ordered = extraction.chunks.is_sorted_by_key(|chunk| chunk.range.start);
    let places = are_inside(bytes, &extraction.definitions);
    let others = extraction.references.iter().map(|reference| reference.range);
    let others = others.chain(extraction.imports.iter().map(|import| import.range));
    let mut others = others.chain(extraction.headings.iter().map(|heading| heading.range));
    let bound = extraction.bindings.iter().all(|binding| {
        let name = ByteRange::new(binding.start, binding.start);
        [name, binding.scope, binding.declared].into_iter().all(is_inside)
    });
    if is_ordered && places && bound && others.all(is_inside) {
        Ok(())
    } else {
        Err("a range outside the blob")
    }
}

/// Returns true if all ranges of the definitions are inside the blob.
pub(super) fn are_inside(bytes: &[u8], definitions: &[Definition]) -> bool {
    definitions.iter().all(|definition| {
        let ranges = [definition.range, definition.name_range, definition.signature];
        ranges
            .into_iter()
            .chain(definition.doc)
            .all(|range| is_inside(bytes, range))
    })
}

/// Returns true if a range is inside the blob.
pub(super) fn is_inside(bytes: &[u8], range: ByteRange) -> bool {
    range.start <= range.end && range.end as usize <= bytes.len()
}
