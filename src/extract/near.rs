//! Finds the definitions of one version of a file from those of another version. Parses only the text near the
//! differences.
//!
//! Definitions away from the differences are cut out of the text, as whole lines and together with the text between
//! them. The remaining text is parsed, and the definitions that were cut out are inserted into the result. If the
//! remaining text parses differently without them (other syntax errors, or another enclosing definition), less text is
//! cut out. If that fails too, the whole text is parsed.
//!
//! The result is not guaranteed to equal that of parsing the whole text: a difference can change how distant text
//! parses without affecting brackets, comments or quotes. Tests and `tests/bench/versions.rs` compare both results.

use std::collections::HashMap;
use std::ops::Range;

use super::balance::Balance;
use super::extractor::is_too_much;
use super::types::Definition;
use crate::model::{ByteRange, Lang};

/// A text with more syntax errors than this is parsed as a whole.
const MAX_ERRORS: usize = 256;
/// Maximum distance in bytes at which text counts as near an edit, however long its lines are.
const MAX_NEAR: usize = 2_000;

/// The definitions of one version of a file.
#[derive(Clone, Debug, Default)]
pub struct FileDefinitions {
    /// Definitions in source order, outer before inner.
    pub definitions: Vec<Definition>,
    /// For each definition, its index in the other version if it was copied from there unchanged. `None` if it was
    /// parsed.
    pub carried: Vec<Option<u32>>,
    /// The language of the file.
    pub lang: Lang,
    errors: Option<Vec<ByteRange>>,
}

impl FileDefinitions {
    /// Creates the result of parsing a whole text.
    pub fn new(definitions: Vec<Definition>, errors: Option<Vec<ByteRange>>, lang: Lang) -> Self {
        Self {
            carried: vec![None; definitions.len()],
            definitions,
            lang,
            errors,
        }
    }

    /// Returns the ranges of syntax errors and missing nodes. Returns `None` unless a single grammar parsed the whole
    /// text.
    pub fn errors(&self) -> Option<&[ByteRange]> {
        self.errors.as_deref()
    }
}

/// A range of whole lines that differs between two versions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// The byte range in the known version.
    pub old: Range<usize>,
    /// The byte range in the version to parse.
    pub new: Range<usize>,
}

impl Edit {
    /// Returns the edit that restores the known version.
    pub fn reversed(&self) -> Self {
        Self {
            old: self.new.clone(),
            new: self.old.clone(),
        }
    }
}

/// Selects the text to cut out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cut {
    /// Consecutive definitions, with the text between them.
    Runs,
    /// Single definitions that are not near a syntax error.
    Definitions,
}

/// Returns the definitions of `bytes` like `definitions`, which parses a text, but parses less by reusing those of
/// another version. `known` has the definitions of that version, `old` is its content, and `edits` are its differences
/// from `bytes`.
pub fn definitions_near(
    known: &FileDefinitions,
    old: &[u8],
    bytes: &[u8],
    edits: &[Edit],
    mut definitions: impl FnMut(&[u8]) -> FileDefinitions,
) -> FileDefinitions {
    if !is_too_much(bytes, known.lang) {
        for cut in [Cut::Runs, Cut::Definitions] {
            let restored = Reduced::new(known, old, bytes, edits, cut).and_then(|reduced| {
                let found = definitions(&reduced.text);
                reduced.restore(found.definitions, &found.errors?)
            });
            if let Some(found) = restored {
                return found;
            }
        }
    }
    definitions(bytes)
}

/// Consecutive definitions in one container that are cut out together with everything nested in them.
struct Piece {
    /// The indices of the definitions in the known version.
    definitions: Range<usize>,
    /// The lines of the definitions in the known version, as a byte range.
    lines: Range<usize>,
    /// The offset of these lines in the version to parse.
    start: usize,
}

/// The text of the version to parse, without the definitions that were cut out.
struct Reduced<'k> {
    known: &'k FileDefinitions,
    old: &'k [u8],
    edits: &'k [Edit],
    pieces: Vec<Piece>,
    /// The remaining text.
    text: Vec<u8>,
    /// The consecutive parts of the remaining text: the start of each in `text` and in the version to parse, ascending.
    runs: Vec<(usize, usize)>,
}

impl<'k> Reduced<'k> {
    /// Removes the definitions that `cut` selects. Returns `None` if too little text would be removed to save time.
    fn new(known: &'k FileDefinitions, old: &'k [u8], new: &[u8], edits: &'k [Edit], cut: Cut) -> Option<Self> {
        let errors = known.errors.as_ref().filter(|errors| errors.len() <= MAX_ERRORS)?;
        let mut pieces = pieces(known, errors, old, new, edits, cut);
        if cut == Cut::Runs {
            pieces = joined(pieces, &known.definitions, old, edits);
        }
        let n_cut: usize = pieces.iter().map(|piece| piece.lines.len()).sum();
        if n_cut < new.len() / 4 {
            return None;
        }
        let mut reduced = Self {
            known,
            old,
            edits,
            text: Vec::with_capacity(new.len().saturating_sub(n_cut)),
            runs: Vec::with_capacity(pieces.len() + 1),
            pieces,
        };
        let mut at = 0;
        for piece in &reduced.pieces {
            reduced.runs.push((reduced.text.len(), at));
            reduced.text.extend_from_slice(new.get(at..piece.start)?);
            at = piece.start + piece.lines.len();
        }
        reduced.runs.push((reduced.text.len(), at));
        reduced.text.extend_from_slice(new.get(at..)?);
        Some(reduced)
    }

    /// Inserts the definitions that were cut out into `rest`, which are the definitions of the remaining text. Returns
    /// `None` if the remaining text was parsed differently than within the whole text.
    fn restore(self, rest: Vec<Definition>, errors: &[ByteRange]) -> Option<FileDefinitions> {
        let known = self.known;
        let errors = self.errors(errors)?;
        let rest: Vec<Definition> = rest.into_iter().map(|one| self.moved(one)).collect();
        if !rest.is_sorted_by_key(|one| one.range.start) || !self.agrees(&rest) {
            return None;
        }
        let mut merge = Merge {
            rest: &rest,
            n_taken: 0,
            places: Vec::with_capacity(rest.len()),
            open: Vec::new(),
            found: FileDefinitions {
                lang: known.lang,
                errors: Some(errors),
                ..FileDefinitions::default()
            },
        };
        for piece in &self.pieces {
            merge.take_rest(piece.start as u32);
            merge.put_back(piece, &known.definitions)?;
        }
        merge.take_rest(u32::MAX);
        Some(merge.found)
    }

    /// Returns the syntax errors of the whole text. Returns `None` if the remaining text has other errors than the
    /// known version has there.
    fn errors(&self, rest: &[ByteRange]) -> Option<Vec<ByteRange>> {
        let mut found: Vec<ByteRange> = rest.iter().map(|error| self.moved_range(*error)).collect();
        found.sort_unstable();
        let (mut cut, mut left) = (Vec::new(), Vec::new());
        for error in self.known.errors.as_ref()? {
            let next = self
                .pieces
                .partition_point(|piece| piece.lines.end <= error.start as usize);
            match self
                .pieces
                .get(next)
                .filter(|piece| piece.lines.start <= error.start as usize)
            {
                Some(piece) => cut.push(shifted(*error, piece.lines.start, piece.start)),
                None => left.push(ByteRange::new(self.unedited(error.start)?, self.unedited(error.end)?)),
            }
        }
        left.sort_unstable();
        if left != found {
            return None;
        }
        found.extend(cut);
        found.sort_unstable();
        Some(found)
    }

    /// Converts an offset in the known version to the version to parse. Returns `None` if an edit touches the offset.
    fn unedited(&self, at: u32) -> Option<u32> {
        let at = at as usize;
        (!touches(self.edits, &(at..at))).then(|| offset_after(self.edits, at) as u32)
    }

    /// Returns true if the definitions that were not cut out still have the same start and end. Ignores definitions
    /// near an edit.
    fn agrees(&self, rest: &[Definition]) -> bool {
        let ends: HashMap<(u32, &str), u32> = rest
            .iter()
            .map(|one| ((one.range.start, one.name.as_str()), one.range.end))
            .collect();
        let moved = |at: u32| offset_after(self.edits, at as usize) as u32;
        let is_same = |known: &Definition| {
            let range = known.range.as_usize();
            let head = neighbourhood(self.old, &(range.start..known.name_range.end as usize));
            if touches(self.edits, &head) {
                return true;
            }
            let end = ends.get(&(moved(known.range.start), known.name.as_str()));
            let is_end_edited = touches(self.edits, &neighbourhood(self.old, &(range.end..range.end)));
            end.is_some_and(|end| is_end_edited || *end == moved(known.range.end))
        };
        let mut next = 0;
        let between = self.pieces.iter().map(|piece| piece.definitions.clone());
        let last = self.known.definitions.len()..self.known.definitions.len();
        between.chain([last]).all(|cut| {
            let left = &self.known.definitions[next..cut.start];
            next = cut.end;
            left.iter().all(is_same)
        })
    }

    fn moved(&self, mut definition: Definition) -> Definition {
        definition.each_range(|range| *range = self.moved_range(*range));
        definition
    }

    fn moved_range(&self, range: ByteRange) -> ByteRange {
        let start = self.moved_to(range.start as usize);
        if range.is_empty() {
            ByteRange::new(start, start)
        } else {
            ByteRange::new(start, self.moved_to(range.end as usize - 1) + 1)
        }
    }

    fn moved_to(&self, at: usize) -> u32 {
        let run = self.runs.partition_point(|(here, _)| *here <= at).saturating_sub(1);
        let (here, there) = self.runs[run];
        (at - here + there) as u32
    }
}

/// Merges the pieces and the definitions of the remaining text in source order.
struct Merge<'r> {
    rest: &'r [Definition],
    n_taken: usize,
    /// For each definition taken from `rest`, its index in `found`.
    places: Vec<u32>,
    /// The definitions that enclose the current position, as indices into `rest`.
    open: Vec<usize>,
    found: FileDefinitions,
}

impl Merge<'_> {
    /// Adds the definitions of `rest` that start before `end`.
    fn take_rest(&mut self, end: u32) {
        while let Some(one) = self.rest.get(self.n_taken).filter(|one| one.range.start < end) {
            self.close_before(one.range.start);
            self.open.push(self.n_taken);
            self.places.push(self.found.definitions.len() as u32);
            let container = one.container.and_then(|at| self.places.get(at as usize).copied());
            self.found.definitions.push(Definition {
                container,
                ..one.clone()
            });
            self.found.carried.push(None);
            self.n_taken += 1;
        }
        self.close_before(end);
    }

    fn close_before(&mut self, start: u32) {
        while self.open.last().is_some_and(|at| self.rest[*at].range.end <= start) {
            self.open.pop();
        }
    }

    /// Inserts the definitions of a piece. Returns `None` if their container has changed.
    fn put_back(&mut self, piece: &Piece, known: &[Definition]) -> Option<()> {
        let was_in = known[piece.definitions.start].container;
        let outer = self.open.last().copied();
        let names = |one: &Definition| (one.name.clone(), one.kind, one.qualifier.clone());
        if was_in.map(|at| names(&known[at as usize])) != outer.map(|at| names(&self.rest[at])) {
            return None;
        }
        let first = self.found.definitions.len() as u32;
        for at in piece.definitions.clone() {
            let mut definition = known[at].clone();
            definition.each_range(|range| *range = shifted(*range, piece.lines.start, piece.start));
            definition.container = if definition.container == was_in {
                outer.map(|at| self.places[at])
            } else {
                definition
                    .container
                    .map(|outer| first + outer - piece.definitions.start as u32)
            };
            self.found.definitions.push(definition);
            self.found.carried.push(Some(at as u32));
        }
        Some(())
    }
}

/// Moves `range` as if the text at `from` had moved to `to`.
fn shifted(range: ByteRange, from: usize, to: usize) -> ByteRange {
    let moved = |at: u32| (at as usize - from + to) as u32;
    ByteRange::new(moved(range.start), moved(range.end))
}

/// Selects the definitions of the known version to cut out.
fn pieces(
    known: &FileDefinitions,
    errors: &[ByteRange],
    old: &[u8],
    new: &[u8],
    edits: &[Edit],
    cut: Cut,
) -> Vec<Piece> {
    let definitions = &known.definitions;
    if !definitions.is_sorted_by_key(|one| one.range.start) {
        return Vec::new();
    }
    let is_closed = is_balanced_after(old, new, edits);
    let is_last = last_children(definitions);
    let mut pieces = Vec::new();
    let mut at = 0;
    while let Some(definition) = definitions.get(at) {
        let range = definition.range;
        // The first and the last definition of a container are never cut out, so that it is not empty and its end stays
        // recognisable.
        let is_inside = !is_last[at] && definition.container.is_none_or(|outer| outer as usize + 1 != at);
        let lines = own_lines(old, range).filter(|lines| is_inside && !touches(edits, lines));
        let lines = lines.filter(|lines| {
            let near = neighbourhood(old, lines);
            let bounds = |error: &ByteRange| range.start < error.start && error.end < range.end;
            let is_near = |error: &ByteRange| match cut {
                Cut::Runs => error.start < range.end && range.start < error.end,
                Cut::Definitions => meets(&error.as_usize(), &near),
            };
            let n_before = edits.partition_point(|edit| edit.old.end <= lines.start);
            is_closed[n_before]
                && !touches(edits, &near)
                && !errors.iter().any(|error| is_near(error) && !bounds(error))
        });
        let n_inner = definitions[at..].partition_point(|inner| inner.range.start < range.end);
        let end = at + n_inner.max(1);
        let is_whole = || definitions[at..end].iter().all(|inner| inner.range.end <= range.end);
        let Some(lines) = lines.filter(|_| is_whole()) else {
            at += 1;
            continue;
        };
        pieces.push(Piece {
            definitions: at..end,
            start: offset_after(edits, lines.start),
            lines,
        });
        at = end;
    }
    pieces
}

/// Returns, for each n from 0 to the number of edits, whether the first n edits leave no bracket, comment or quote
/// open.
pub fn is_balanced_after(old: &[u8], new: &[u8], edits: &[Edit]) -> Vec<bool> {
    let mut balance = Balance::default();
    let mut closed = vec![true];
    for edit in edits {
        let old = old.get(edit.old.clone()).unwrap_or_default();
        let new = new.get(edit.new.clone()).unwrap_or_default();
        balance.replace(old, new);
        closed.push(balance.is_even());
    }
    closed
}

/// Joins adjacent pieces of one container. Includes the lines between them if no edit touches those lines.
fn joined(pieces: Vec<Piece>, definitions: &[Definition], old: &[u8], edits: &[Edit]) -> Vec<Piece> {
    let mut joined: Vec<Piece> = Vec::with_capacity(pieces.len());
    for piece in pieces {
        if let Some(last) = joined.last_mut()
            && last.definitions.end == piece.definitions.start
            && definitions[last.definitions.start].container == definitions[piece.definitions.start].container
            && !touches(edits, &(last.lines.end..piece.lines.start))
            && !has_condition(&old[last.lines.end..piece.lines.start])
            && indentation(old, last) == indentation(old, &piece)
        {
            last.definitions.end = piece.definitions.end;
            last.lines.end = piece.lines.end;
        } else {
            joined.push(piece);
        }
    }
    joined
}

/// Returns the number of blanks at the start of a piece.
fn indentation(old: &[u8], piece: &Piece) -> usize {
    let is_blank = |byte: &&u8| matches!(byte, b' ' | b'\t');
    old[piece.lines.clone()].iter().take_while(is_blank).count()
}

/// Returns true if the text has a line of a preprocessor conditional (`#if`, `#else`, `#endif`). Other lines of the
/// same conditional may be outside the text.
fn has_condition(text: &[u8]) -> bool {
    let is_condition = |at: usize| {
        let line = text[at + 1..].trim_ascii_start();
        [&b"if"[..], b"el", b"end"].iter().any(|word| line.starts_with(word))
    };
    memchr::memchr_iter(b'#', text).any(is_condition)
}

/// Returns, for each definition, whether it is the last one in its container.
fn last_children(definitions: &[Definition]) -> Vec<bool> {
    let mut is_last = vec![false; definitions.len()];
    let mut has_later = vec![false; definitions.len()];
    for (at, definition) in definitions.iter().enumerate().rev() {
        if let Some(outer) = definition.container {
            is_last[at] = !std::mem::replace(&mut has_later[outer as usize], true);
        }
    }
    is_last
}

/// Returns the lines of a definition as a byte range. Returns `None` if other text is on the same lines.
fn own_lines(old: &[u8], range: ByteRange) -> Option<Range<usize>> {
    let range = range.as_usize();
    let is_blank = |byte: &&u8| matches!(byte, b' ' | b'\t' | b'\r');
    let n_before = old.get(..range.start)?.iter().rev().take_while(is_blank).count();
    let n_after = old.get(range.end..)?.iter().take_while(is_blank).count();
    let (start, end) = (range.start - n_before, range.end + n_after);
    let starts_line = start == 0 || old[start - 1] == b'\n';
    let ends_line = old.get(end).is_none_or(|byte| *byte == b'\n');
    (starts_line && ends_line).then(|| start..(end + 1).min(old.len()))
}

/// Extends `lines` to the nearest non-blank lines above and below, by at most [`MAX_NEAR`] bytes in each direction.
fn neighbourhood(old: &[u8], lines: &Range<usize>) -> Range<usize> {
    let above = &old[lines.start.saturating_sub(MAX_NEAR)..lines.start.min(old.len())];
    let text = above.trim_ascii_end();
    let n_above = above.len() - memchr::memrchr(b'\n', text).map_or(0, |newline| newline + 1);
    let end = lines.end.min(old.len());
    let below = &old[end..(end + MAX_NEAR).min(old.len())];
    let n_blank = below.len() - below.trim_ascii_start().len();
    let n_below = memchr::memchr(b'\n', &below[n_blank..]).map_or(below.len(), |newline| n_blank + newline + 1);
    lines.start.min(old.len()) - n_above..end + n_below
}

fn meets(one: &Range<usize>, other: &Range<usize>) -> bool {
    one.start <= other.end && other.start <= one.end
}

/// Returns true if an edit overlaps or touches `near`, a range of the known version.
pub fn touches(edits: &[Edit], near: &Range<usize>) -> bool {
    let first = edits.partition_point(|edit| edit.old.end < near.start);
    edits.get(first).is_some_and(|edit| edit.old.start <= near.end)
}

/// Converts an offset in the old version to the new version. No edit may touch the offset.
pub fn offset_after(edits: &[Edit], at: usize) -> usize {
    let n_before = edits.partition_point(|edit| edit.old.end <= at);
    match n_before.checked_sub(1).map(|last| &edits[last]) {
        Some(edit) => at - edit.old.end + edit.new.end,
        None => at,
    }
}
