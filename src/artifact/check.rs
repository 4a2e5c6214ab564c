//! Checks an extraction that another program made.

use crate::extract::{Definition, Extraction};
use crate::model::ByteRange;

/// Checks the properties that readers depend on: those of [`check_record`], the chunks contain every byte, and lines are
/// inside the blob.
pub fn check(bytes: &[u8], extraction: &Extraction) -> Result<(), &'static str> {
    let n_lines = bytes.iter().filter(|&&byte| byte == b'\n').count() as u32 + 1;
    if extraction.n_lines > n_lines {
        return Err("too many lines");
    }
    if extraction.chunks.iter().any(|chunk| chunk.end_line > n_lines) {
        return Err("invalid chunks");
    }
    if check_record(extraction)? == bytes.len() {
        Ok(())
    } else {
        Err("chunks do not cover the blob")
    }
}

/// Checks what can be checked without the blob: the chunks follow each other, all ranges are inside of them, and indices
/// are valid. Returns the number of bytes in the chunks.
pub(super) fn check_record(extraction: &Extraction) -> Result<usize, &'static str> {
    let mut covered = 0;
    for chunk in &extraction.chunks {
        let is_continued = chunk.range.start <= covered && chunk.range.start <= chunk.range.end;
        let lines = 1 <= chunk.start_line && chunk.start_line <= chunk.end_line;
        let about = chunk.definition.map_or(0, |index| index as usize + 1);
        if !is_continued || !lines || about > extraction.definitions.len() {
            return Err("invalid chunks");
        }
        covered = covered.max(chunk.range.end);
    }
    let n_bytes = covered as usize;
    let is_inside = |range| is_inside(n_bytes, range);
    let is_ordered = extraction.chunks.is_sorted_by_key(|chunk| chunk.range.start);
    let places = are_inside(n_bytes, &extraction.definitions);
    let others = extraction.references.iter().map(|reference| reference.range);
    let others = others.chain(extraction.imports.iter().map(|import| import.range));
    let mut others = others.chain(extraction.headings.iter().map(|heading| heading.range));
    let bound = extraction.bindings.iter().all(|binding| {
        let name = ByteRange::new(binding.start, binding.start);
        [name, binding.scope, binding.declared].into_iter().all(is_inside)
    });
    if is_ordered && places && bound && others.all(is_inside) {
        Ok(n_bytes)
    } else {
        Err("a range outside the blob")
    }
}

/// Returns true if all ranges of the definitions are inside a blob of `n_bytes`.
pub(super) fn are_inside(n_bytes: usize, definitions: &[Definition]) -> bool {
    definitions.iter().all(|definition| {
        let ranges = [definition.range, definition.name_range, definition.signature];
        ranges
            .into_iter()
            .chain(definition.doc)
            .all(|range| is_inside(n_bytes, range))
    })
}

/// Returns true if a range is inside a blob of `n_bytes`.
pub(super) fn is_inside(n_bytes: usize, range: ByteRange) -> bool {
    range.start <= range.end && range.end as usize <= n_bytes
}
