//! Merges the facts of separately parsed parts into the facts of the file: code in another language, and the items in
//! a macro call.

use super::types::Extraction;
use super::walk::{Facts, Part};
use crate::model::ByteRange;

/// Depth of embedded code for the chunker: deeper than the surrounding elements, but shallow enough to be split.
pub(super) const DEPTH: usize = 4;
/// Limit on parts inside parts, such as macro calls in the arguments of macro calls.
pub(super) const MAX_LEVELS: usize = 4;

/// Adds the facts of `place`. The parts inside it are added to `inner`.
pub(super) fn add(extraction: &mut Extraction, place: &Part, part: Facts, inner: &mut Vec<Part>) {
    let offset = place.range.start;
    let owner = place.owner.and_then(|at| extraction.definitions.get(at as usize));
    let owner_kind = owner.map(|owner| owner.kind);
    let n_before = extraction.definitions.len() as u32;
    let shift = |range: &mut ByteRange| *range = ByteRange::new(range.start + offset, range.end + offset);
    extraction.n_parse_errors += part.errors.len() as u32;
    extraction
        .definitions
        .extend(part.definitions.into_iter().map(|mut definition| {
            definition.each_range(shift);
            if definition.container.is_none() {
                definition.kind = definition.kind.within(owner_kind);
            }
            definition.container = definition.container.map(|at| at + n_before).or(place.owner);
            definition
        }));
    extraction
        .references
        .extend(part.references.into_iter().map(|mut reference| {
            shift(&mut reference.range);
            reference.receiver.shift(offset);
            reference.arguments.iter_mut().for_each(|value| value.shift(offset));
            reference
        }));
    extraction.bindings.extend(part.bindings.into_iter().map(|mut binding| {
        binding.shift(offset);
        binding
    }));
    extraction.imports.extend(part.imports.into_iter().map(|mut import| {
        shift(&mut import.range);
        import.scope.iter_mut().for_each(shift);
        import
    }));
    inner.extend(part.embedded.into_iter().map(|mut one| {
        shift(&mut one.range);
        one.owner = one.owner.map(|at| at + n_before).or(place.owner);
        one
    }));
}

/// Removes the references inside `places`, which are in source order and do not overlap.
pub(super) fn remove_references(extraction: &mut Extraction, places: &[ByteRange]) {
    extraction.references.retain(|reference| {
        let next = places.partition_point(|place| place.end <= reference.range.start);
        places.get(next).is_none_or(|place| reference.range.start < place.start)
    });
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
    extraction.bindings.sort_by_key(|binding| binding.start);
    extraction.imports.sort_by_key(|import| import.range);
}
