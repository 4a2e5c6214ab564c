//! Merges the facts of embedded code in another language into the facts of the file.

use super::types::Extraction;
use super::walk::Facts;
use crate::model::ByteRange;

/// Depth of embedded code for the chunker: deeper than the surrounding elements, but shallow enough to be split.
pub(super) const DEPTH: usize = 4;

/// Adds the facts of embedded code that starts at byte `offset`.
pub(super) fn add(extraction: &mut Extraction, part: Facts, offset: u32) {
    let n_before = extraction.definitions.len() as u32;
    let shift = |range: &mut ByteRange| *range = ByteRange::new(range.start + offset, range.end + offset);
    extraction.n_parse_errors += part.errors.len() as u32;
    extraction
        .definitions
        .extend(part.definitions.into_iter().map(|mut definition| {
            definition.each_range(shift);
            definition.container = definition.container.map(|at| at + n_before);
            definition
        }));
    extraction
        .references
        .extend(part.references.into_iter().map(|mut reference| {
            shift(&mut reference.range);
            reference
        }));
    extraction.imports.extend(part.imports.into_iter().map(|mut import| {
        shift(&mut import.range);
        import
    }));
}

/// Sorts definitions by position again, outer before inner.
pub(super) fn sort(extraction: &mut Extraction) {
    let definitions = std::mem::take(&mut extraction.definitions);
    let mut order: Vec<u32> = (0..definitions.len() as u32).collect();
    order.sort_by_key(|&at| {
        let range = definitions[at as usize].range;
        (range.start, u32::MAX - range.end, at)
    });
    let mut places = vec![0; order.len()];
    order
        .iter()
        .enumerate()
        .for_each(|(place, &at)| places[at as usize] = place as u32);
    let mut sorted: Vec<_> = definitions.into_iter().enumerate().collect();
    sorted.sort_by_key(|(at, _)| places[*at]);
    extraction.definitions = sorted.into_iter().map(|(_, definition)| definition).collect();
    for definition in &mut extraction.definitions {
        definition.container = definition.container.map(|at| places[at as usize]);
    }
    extraction.references.sort_by_key(|reference| reference.range);
    extraction.imports.sort_by_key(|import| import.range);
}
