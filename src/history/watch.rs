//! Follows a definition through versions of its file without parsing them, as long as no edit is near the definition.

use std::ops::Range;
use std::sync::Arc;

use crate::extract::{DefinitionKind, Edit, is_balanced_after, offset_after, touches};

use super::shape::Shape;
use super::symbols::{FileShapes, edits};

/// The position of a definition in a version of its file, or the fact that the version does not contain it.
///
/// The position is derived from the edits between versions and not confirmed by a parser.
pub(super) struct Watch {
    /// The content of the current version.
    bytes: Arc<Vec<u8>>,
    /// The name of the definition without its containers.
    bare: String,
    /// The place of the definition. If the version does not contain it, the places of all definitions whose names end
    /// with `bare`.
    places: Vec<Place>,
    /// The heads of the types and modules that contain definitions whose names end with `bare`.
    heads: Vec<Range<usize>>,
    /// If the version does not contain the definition, the text that may begin it in another version: syntax errors and
    /// text outside of bodies, if they contain `bare`.
    doubtful: Vec<Range<usize>>,
}

struct Place {
    range: Range<usize>,
    /// The start of the outermost type or module that contains the definition.
    outermost: Option<usize>,
}

impl Watch {
    /// Starts with a parsed version. Returns `None` if its structure makes it impossible to follow the definition.
    pub(super) fn new(file: &FileShapes, name: &str, nth: u32) -> Option<Self> {
        let bare = name.rsplit('.').next().unwrap_or(name);
        let namesakes: Vec<&Shape> = file.shapes.iter().filter(|one| one.name.ends_with(bare)).collect();
        let is_container = |one: &&Shape| one.kind.is_type() || one.kind == DefinitionKind::Module;
        let containers: Vec<&Shape> = file.shapes.iter().filter(is_container).collect();
        let place = |shape: &Shape| {
            let range = shape.range.as_usize();
            let outer = containers.iter().map(|outer| outer.range.as_usize());
            let outer = outer.filter(|outer| outer.start < range.start && range.end <= outer.end);
            Place {
                outermost: outer.map(|outer| outer.start).min(),
                range,
            }
        };
        let holds_namesake = |one: &&&Shape| {
            let range = one.range.as_usize();
            namesakes
                .iter()
                .any(|namesake| range.contains(&(namesake.range.start as usize)))
        };
        let (places, doubtful) = match file.find(name, nth) {
            Some(shape) => (vec![place(shape)], Vec::new()),
            // A name that is not a plain word may be composed of several parts of the file.
            None if !is_word(bare) => return None,
            None => {
                let mut doubtful = outside(file, bare);
                let errors = file.errors()?.iter().map(|error| error.as_usize());
                doubtful.extend(errors.filter(|error| contains_name(&file.bytes[error.clone()], bare)));
                (namesakes.iter().map(|one| place(one)).collect(), doubtful)
            }
        };
        Some(Self {
            bytes: Arc::clone(&file.bytes),
            bare: bare.to_owned(),
            places,
            heads: containers.iter().filter(holds_namesake).map(|one| one.head()).collect(),
            doubtful,
        })
    }

    /// Advances to the version `bytes` if the definition is the same there. This requires that no edit contains the
    /// name, is near the definition, or touches the head of a type or module that contains a definition whose name ends
    /// with `bare`, and that the edits leave no comment, string or bracket open.
    pub(super) fn follow(&mut self, bytes: &Arc<Vec<u8>>) -> bool {
        let edits = edits(&self.bytes, bytes);
        if !self.is_apart(&edits, bytes) {
            return false;
        }
        let ranges = self.places.iter_mut().map(|place| &mut place.range);
        for range in ranges.chain(&mut self.heads).chain(&mut self.doubtful) {
            *range = offset_after(&edits, range.start)..offset_after(&edits, range.end);
        }
        for outermost in self.places.iter_mut().filter_map(|place| place.outermost.as_mut()) {
            *outermost = offset_after(&edits, *outermost);
        }
        self.bytes = Arc::clone(bytes);
        true
    }

    fn is_apart(&self, edits: &[Edit], bytes: &[u8]) -> bool {
        let is_named = |text: &[u8]| contains_name(text, &self.bare);
        let names = |edit: &Edit| is_named(&self.bytes[edit.old.clone()]) || is_named(&bytes[edit.new.clone()]);
        if edits.iter().any(names) {
            return false;
        }
        let is_closed = is_balanced_after(&self.bytes, bytes, edits);
        let is_edited = |range: &Range<usize>| touches(edits, range);
        is_closed[edits.len()]
            && !self.heads.iter().chain(&self.doubtful).any(is_edited)
            && self
                .places
                .iter()
                .all(|place| self.keeps(place, edits, bytes, &is_closed))
    }

    /// Returns true unless an edit is near the definition, could enclose it or could change its end.
    fn keeps(&self, place: &Place, edits: &[Edit], bytes: &[u8], is_closed: &[bool]) -> bool {
        let line = line_around(&self.bytes, place.range.start);
        let end = line_around(&self.bytes, place.range.end).end;
        let near = line_around(&self.bytes, line.start.saturating_sub(1)).start..line_around(&self.bytes, end).end;
        let depth = indentation(&self.bytes[line]);
        let leaves_depth = |text: &[u8]| {
            let mut lines = text
                .split(|byte| *byte == b'\n')
                .filter(|line| !line.trim_ascii().is_empty());
            lines.any(|line| indentation(line) < depth)
        };
        let above = &edits[..edits.partition_point(|edit| edit.old.start < place.range.start)];
        let leaves_container = |edit: &Edit| {
            let is_with_it = place.outermost.is_some_and(|outermost| edit.old.end >= outermost);
            is_with_it && (leaves_depth(&self.bytes[edit.old.clone()]) || leaves_depth(&bytes[edit.new.clone()]))
        };
        !touches(edits, &near) && !above.iter().any(leaves_container) && is_closed[above.len()]
    }
}

/// Returns the ranges outside of all definitions, and the heads of definitions with another name, that contain the name.
fn outside(file: &FileShapes, name: &str) -> Vec<Range<usize>> {
    let others = file.shapes.iter().filter(|shape| !shape.name.ends_with(name));
    let mut found: Vec<Range<usize>> = others.map(Shape::head).collect();
    let mut covered = 0;
    for shape in &file.shapes {
        let range = shape.range.as_usize();
        found.push(covered..range.start.max(covered));
        covered = covered.max(range.end);
    }
    found.push(covered..file.bytes.len());
    found.retain(|part| contains_name(&file.bytes[part.clone()], name));
    found
}

/// Returns true if any file with a definition of this name contains the name literally.
pub(super) fn is_word(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Returns true if a text contains the name, not followed by another letter if it is a word.
pub(super) fn contains_name(text: &[u8], name: &str) -> bool {
    let is_letter = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_' || !byte.is_ascii();
    let is_word = is_word(name);
    let mut ends = memchr::memmem::find_iter(text, name).map(|at| at + name.len());
    ends.any(|end| !is_word || !text.get(end).is_some_and(is_letter))
}

/// Returns the range of the line that contains `at`, including its newline.
fn line_around(text: &[u8], at: usize) -> Range<usize> {
    let at = at.min(text.len());
    let start = memchr::memrchr(b'\n', &text[..at]).map_or(0, |newline| newline + 1);
    let end = memchr::memchr(b'\n', &text[at..]).map_or(text.len(), |newline| at + newline + 1);
    start..end
}

fn indentation(line: &[u8]) -> usize {
    line.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count()
}
