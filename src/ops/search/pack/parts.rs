//! Chooses the parts of long definitions.

use super::seeds::Lines;
use super::texts::Texts;
use crate::query::LineStarts;
use crate::session::Result;

/// Number of lines shown around a matching or changed line of a long definition.
const AROUND: u32 = 2;
/// Maximum number of matching or changed parts considered.
const MAX_MARKED: usize = 200;
/// Minimum size of a part of a long definition, in characters.
const MIN_PART: usize = 120;

/// Returns the parts of long lines that fit into `room` characters, in line order: the marked ones, or else the first. Leaves
/// out lines of `shown`.
pub(super) fn parts(
    texts: &mut Texts<'_>,
    lines: &Lines,
    room: usize,
    shown: &[(u32, u32)],
) -> Result<Vec<(u32, u32)>> {
    let bytes = texts.bytes(lines.file)?;
    let starts = LineStarts::of(&bytes);
    let (first, last) = lines.lines;
    // A heading precedes each part.
    let path = texts.lines(lines.file, (first, first))?.path;
    let heading = path.len() + MIN_PART / 2;
    let size = |part: (u32, u32)| starts.range(part.0, part.1).len() + heading;
    let free = |part: (u32, u32)| shown.iter().all(|one| one.1 < part.0 || part.1 < one.0);
    let mut chosen: Vec<(u32, u32)> = Vec::new();
    let is_here = |marked: &&(u32, u32)| marked.0 <= last && first <= marked.1;
    for &(start, end) in lines.marked.iter().filter(is_here).take(MAX_MARKED) {
        let window = (start.saturating_sub(AROUND).max(first), (end + AROUND).min(last));
        let mut trial = chosen.clone();
        trial.push(window);
        trial.sort_unstable();
        let trial = trial.into_iter().fold(Vec::<(u32, u32)>::new(), |mut joined, next| {
            match joined.last_mut().filter(|before| next.0 <= before.1 + 1) {
                Some(before) => before.1 = before.1.max(next.1),
                None => joined.push(next),
            }
            joined
        });
        let fits = trial.iter().map(|part| size(*part)).sum::<usize>() <= room;
        if fits && trial.iter().all(|part| free(*part)) {
            chosen = trial;
        }
    }
    if chosen.is_empty() {
        // The first of the marked lines, or of all lines.
        let marked = lines.marked.iter().find(is_here);
        let start = marked.map_or(first, |(start, _)| (*start).max(first));
        let fits = |end: u32| size((start, end)) <= room && free((start, end));
        chosen.extend(
            (start..=last)
                .take_while(|end| fits(*end))
                .last()
                .map(|end| (start, end)),
        );
    }
    Ok(chosen)
}
