//! The definitions of one version of a file, and what can happen to one.

use std::sync::Arc;

use crate::extract::{Extractor, lang_of_path, refine};
use crate::model::{ByteRange, RepoPath};

use super::lineage::{best, renames};
use super::shape::{Shape, may_have_lives, shapes};

/// Names a definition at one time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SymbolKey {
    /// The file.
    pub path: RepoPath,
    /// With what it belongs to: `Parser.parse`.
    pub name: String,
    /// Which of those with this name in the file, from 1.
    pub nth: u32,
}

impl SymbolKey {
    /// `src/a.rs#Parser.parse`, `src/a.rs#Parser.parse~2`.
    pub fn id(&self) -> String {
        match self.nth {
            0 | 1 => format!("{}#{}", self.path, self.name),
            nth => format!("{}#{}~{nth}", self.path, self.name),
        }
    }
}

/// What a commit did to a definition. Several can be true.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SymbolEvents {
    /// It is new.
    pub added: bool,
    /// It is gone.
    pub removed: bool,
    /// It has another name.
    pub renamed: bool,
    /// It belongs to something else, or stands in another file.
    pub moved: bool,
    /// Its signature says something else.
    pub signature: bool,
    /// Its body says something else.
    pub body: bool,
    /// Its documentation says something else.
    pub doc: bool,
    /// Only blanks, line breaks and comments differ.
    pub formatting: bool,
}

impl SymbolEvents {
    /// Between two versions of one definition. `is_elsewhere`: in another file.
    pub fn between(old: &Shape, new: &Shape, is_elsewhere: bool) -> Self {
        let outer = |shape: &Shape| shape.qualified.strip_suffix(&shape.name).map(str::to_owned);
        let mut events = Self {
            renamed: old.name != new.name,
            moved: is_elsewhere || outer(old) != outer(new),
            signature: old.prints().signature != new.prints().signature && !is_only_renamed(old, new),
            body: old.prints().body != new.prints().body,
            doc: old.prints().doc != new.prints().doc,
            ..Self::default()
        };
        events.formatting =
            old.text_print() != new.text_print() && !(events.renamed || events.signature || events.body || events.doc);
        events
    }

    /// As a number: the names in their order, the lowest bit first.
    pub(super) fn bits(self) -> u8 {
        let all = self.all().into_iter().enumerate();
        all.fold(0, |bits, (at, (is_so, _))| bits | u8::from(is_so) << at)
    }

    pub(super) fn from_bits(bits: u8) -> Self {
        let has = |at: u8| bits >> at & 1 == 1;
        Self {
            added: has(0),
            removed: has(1),
            renamed: has(2),
            moved: has(3),
            signature: has(4),
            body: has(5),
            doc: has(6),
            formatting: has(7),
        }
    }

    /// Whether nothing happened.
    pub fn is_empty(self) -> bool {
        self == Self::default()
    }

    /// Whether what the definition says is another, or it came or went: more than a move, a rename or another formatting.
    pub fn is_of_content(self) -> bool {
        self.added || self.removed || self.signature || self.body || self.doc
    }

    /// Their names in answers.
    pub fn names(self) -> Vec<&'static str> {
        let all = self.all().into_iter();
        all.filter(|(is_so, _)| *is_so).map(|(_, name)| name).collect()
    }

    fn all(self) -> [(bool, &'static str); 8] {
        [
            (self.added, "added"),
            (self.removed, "removed"),
            (self.renamed, "renamed"),
            (self.moved, "moved"),
            (self.signature, "signature"),
            (self.body, "body"),
            (self.doc, "doc"),
            (self.formatting, "formatting"),
        ]
    }
}

/// A renamed definition has another signature because its name stands in it; the rest of it tells whether that is all.
fn is_only_renamed(old: &Shape, new: &Shape) -> bool {
    old.name != new.name && old.prints().unnamed_signature == new.prints().unnamed_signature
}

/// A version of a file with its definitions.
#[derive(Debug)]
pub struct FileShapes {
    /// All of its bytes.
    pub bytes: Arc<Vec<u8>>,
    /// Its definitions.
    pub shapes: Vec<Shape>,
}

impl FileShapes {
    /// Reads a version of the file at `path`.
    pub fn of(extractor: &mut Extractor, path: &RepoPath, bytes: Vec<u8>) -> Self {
        let lang = refine(lang_of_path(path), &bytes);
        let is_text = !bytes[..bytes.len().min(8_000)].contains(&0);
        let bytes = Arc::new(bytes);
        let shapes = match is_text && may_have_lives(lang) {
            true => shapes(&bytes, lang, &extractor.without_chunks(&bytes, lang)),
            false => Vec::new(),
        };
        Self { bytes, shapes }
    }

    /// The definition with this name; the `nth` of several.
    pub fn find(&self, name: &str, nth: u32) -> Option<&Shape> {
        self.shapes
            .iter()
            .find(|shape| shape.qualified == name && shape.nth == nth)
    }

    /// The innermost definition that covers one of these lines, 1-based.
    pub fn around(&self, first: u32, last: u32) -> Option<&Shape> {
        let covers = |shape: &&Shape| {
            let (start, end) = lines_of(&self.bytes, shape.range);
            start <= last && first <= end
        };
        let holds_all = |shape: &&Shape| {
            let (start, end) = lines_of(&self.bytes, shape.range);
            start <= first && last <= end
        };
        let smallest = |shapes: Vec<&'_ Shape>| -> Option<usize> {
            let place = shapes.iter().min_by_key(|shape| shape.range.len())?;
            self.shapes.iter().position(|shape| std::ptr::eq(shape, *place))
        };
        let whole = smallest(self.shapes.iter().filter(holds_all).collect());
        let found = whole.or_else(|| smallest(self.shapes.iter().filter(covers).collect()))?;
        self.shapes.get(found)
    }
}

/// First and last line of a range, 1-based, blank ends left out.
pub fn lines_of(bytes: &[u8], range: ByteRange) -> (u32, u32) {
    let line_of = |at: usize| memchr::memchr_iter(b'\n', &bytes[..at.min(bytes.len())]).count() as u32 + 1;
    let text = bytes.get(range.as_usize()).unwrap_or_default();
    let end = range.start as usize + text.trim_ascii_end().len().max(1) - 1;
    (line_of(range.start as usize), line_of(end))
}

/// What became of a definition between two versions of its file, of which the second is not committed: what happened, what it
/// was before if that was otherwise, and how sure that is. `None` if nothing happened to it.
pub fn change_between(
    old: Option<(&RepoPath, &FileShapes)>,
    new: Option<&FileShapes>,
    key: &SymbolKey,
) -> Option<(SymbolEvents, Option<SymbolKey>, f64)> {
    let in_old = old.and_then(|(path, file)| Some((path, file.find(&key.name, key.nth)?)));
    let in_new = new.and_then(|file| file.find(&key.name, key.nth));
    match (in_old, in_new) {
        (Some((path, before)), Some(now)) => {
            let is_elsewhere = *path != key.path;
            let from = is_elsewhere.then(|| SymbolKey {
                path: path.clone(),
                ..key.clone()
            });
            let is_same = before.text_print() == now.text_print() && !is_elsewhere;
            (!is_same).then(|| (SymbolEvents::between(before, now, is_elsewhere), from, 1.0))
        }
        (None, Some(now)) => {
            let found = old
                .zip(new)
                .and_then(|((path, before), after)| renamed_from(path, before, after, now));
            let before = found
                .as_ref()
                .and_then(|(from, _)| old.and_then(|(_, file)| file.find(&from.name, from.nth)));
            Some(match (found, before) {
                (Some((from, confidence)), Some(before)) => {
                    let is_elsewhere = from.path != key.path;
                    (SymbolEvents::between(before, now, is_elsewhere), Some(from), confidence)
                }
                _ => {
                    let events = SymbolEvents {
                        added: true,
                        ..SymbolEvents::default()
                    };
                    (events, None, 1.0)
                }
            })
        }
        (Some(_), None) => {
            let events = SymbolEvents {
                removed: true,
                ..SymbolEvents::default()
            };
            Some((events, None, 1.0))
        }
        (None, None) => None,
    }
}

/// What a definition that only the version `after` has was in the version `before`.
fn renamed_from(path: &RepoPath, before: &FileShapes, after: &FileShapes, now: &Shape) -> Option<(SymbolKey, f64)> {
    let missing_in = |file: &FileShapes, shape: &Shape| file.find(&shape.qualified, shape.nth).is_none();
    let gone: Vec<&Shape> = (before.shapes.iter())
        .filter(|shape| missing_in(after, shape))
        .collect();
    let added: Vec<&Shape> = (after.shapes.iter())
        .filter(|shape| missing_in(before, shape))
        .collect();
    let at = added.iter().position(|shape| std::ptr::eq(*shape, now))?;
    best(renames(path, &gone, &added).swap_remove(at))
}
