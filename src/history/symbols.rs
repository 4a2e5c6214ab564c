//! Reads the definitions in a version of a file, and describes the changes of a definition.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use crate::artifact::{Extractor, check};
use crate::extract::{
    DefinitionKind, Edit, Extraction, FileDefinitions, LineIndex, is_text, is_visible_outside, lang_of_path, refine,
};
use crate::git::{LineHunk, diff_lines};
use crate::model::{ByteRange, Lang, RepoPath};

use super::lineage::{Edits, best, events_between, partners, renames};
use super::shape::{Shape, has_own_history, may_have_traced_definitions, qualified_name, shapes};

/// Maximum length of a list of exports.
const MAX_EXPORT_BYTES: usize = 4 << 10;

/// Identifies a definition in one commit.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SymbolKey {
    /// The path of the file.
    pub path: RepoPath,
    /// The qualified name: `Parser.parse`.
    pub name: String,
    /// The index among the definitions with this name in the file, 1-based.
    pub nth: u32,
}

impl SymbolKey {
    /// Returns the id of the definition, such as `src/a.rs#Parser.parse` or `src/a.rs#Parser.parse~2`.
    pub fn id(&self) -> String {
        match self.nth {
            0 | 1 => format!("{}#{}", self.path, self.name),
            nth => format!("{}#{}~{nth}", self.path, self.name),
        }
    }
}

/// The events that a change of a definition consists of. Several can be true.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SymbolEvents {
    /// The definition is new.
    pub added: bool,
    /// The definition was removed.
    pub removed: bool,
    /// The name changed.
    pub renamed: bool,
    /// The container or the file changed.
    pub moved: bool,
    /// The signature changed.
    pub signature: bool,
    /// The body changed.
    pub body: bool,
    /// The documentation changed.
    pub doc: bool,
    /// Only white space and comments changed.
    pub formatting: bool,
}

impl SymbolEvents {
    /// Compares two versions of a definition. `is_elsewhere` is true if they are in different files.
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
        events.formatting = old.text_fingerprint() != new.text_fingerprint()
            && !(events.renamed || events.signature || events.body || events.doc);
        events
    }

    /// Encodes the events as bits, in the order of their fields, from the lowest bit.
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

    /// Returns true if there are no events.
    pub fn is_empty(self) -> bool {
        self == Self::default()
    }

    /// Returns true if the definition was added or removed, or its content changed. Moves, renames and changes of the
    /// formatting alone do not count.
    pub fn is_of_content(self) -> bool {
        self.added || self.removed || self.signature || self.body || self.doc
    }

    /// Returns the names of the events, as used in output.
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

/// Returns true if the definition was renamed but its signature did not change otherwise.
fn is_only_renamed(old: &Shape, new: &Shape) -> bool {
    old.name != new.name && old.prints().signature_without_name == new.prints().signature_without_name
}

/// A version of a file, with its definitions.
#[derive(Clone, Debug)]
pub struct FileShapes {
    /// The content of the version.
    pub bytes: Arc<Vec<u8>>,
    /// The definitions that have their own history, in source order.
    pub shapes: Vec<Shape>,
    found: FileDefinitions,
    lines: OnceLock<LineIndex>,
    /// The words in statements that export.
    exported: OnceLock<HashSet<Vec<u8>>>,
}

impl FileShapes {
    /// Extracts the definitions in a version of the file at `path`.
    pub fn of(extractor: &mut Extractor, path: &RepoPath, bytes: impl Into<Arc<Vec<u8>>>) -> Self {
        let bytes = bytes.into();
        let lang = lang_of(path, &bytes);
        let found = if may_have_traced_definitions(lang) {
            extractor.definitions(&bytes, lang)
        } else {
            FileDefinitions::default()
        };
        Self::new(bytes, found, &[])
    }

    /// Like [`Self::of`], with the definitions of an artifact. Returns `None` if it has none, or those of another content or
    /// language.
    pub fn indexed(path: &RepoPath, bytes: Arc<Vec<u8>>, extraction: Extraction) -> Option<Self> {
        let lang = lang_of(path, &bytes);
        let is_usable = lang == lang_of_path(path)
            && may_have_traced_definitions(lang)
            && !extraction.definitions.is_empty()
            && check(&bytes, &extraction).is_ok();
        is_usable.then(|| Self::new(bytes, FileDefinitions::new(extraction.definitions, None, lang), &[]))
    }

    /// Like [`Self::of`], but faster if the version is similar to `known`.
    pub fn near(extractor: &mut Extractor, known: &Self, path: &RepoPath, bytes: impl Into<Arc<Vec<u8>>>) -> Self {
        let bytes = bytes.into();
        let lang = lang_of(path, &bytes);
        if lang != known.found.lang || !may_have_traced_definitions(lang) {
            return Self::of(extractor, path, bytes);
        }
        let edits = edits(&known.bytes, &bytes);
        let found = extractor.definitions_near(&known.found, &known.bytes, &bytes, &edits);
        Self::new(bytes, found, &known.shapes)
    }

    fn new(bytes: Arc<Vec<u8>>, found: FileDefinitions, known: &[Shape]) -> Self {
        let shapes = shapes(&bytes, &found, known);
        Self {
            bytes,
            shapes,
            found,
            lines: OnceLock::new(),
            exported: OnceLock::new(),
        }
    }

    /// Returns the ranges of syntax errors. Returns `None` unless a single grammar parsed the whole version.
    pub(super) fn errors(&self) -> Option<&[ByteRange]> {
        self.found.errors()
    }

    /// Returns the `nth` definition with this qualified name.
    pub fn find(&self, name: &str, nth: u32) -> Option<&Shape> {
        self.shapes
            .iter()
            .find(|shape| shape.qualified == name && shape.nth == nth)
    }

    /// Returns true if code outside of the repository can name a definition. In JavaScript, an export must be in the
    /// same file.
    pub(super) fn is_public(&self, shape: &Shape) -> bool {
        let definitions = &self.found.definitions;
        let exported = || self.exported.get_or_init(|| exported_words(&self.bytes));
        let exports = |index: u32| exported().contains(definitions[index as usize].name.as_bytes());
        is_visible_outside(self.found.lang, &self.bytes, definitions, shape.index, exports)
    }

    /// Returns a definition with this qualified name that has no history of its own.
    pub fn part(&self, name: &str) -> Option<(DefinitionKind, ByteRange)> {
        let definitions = &self.found.definitions;
        let mut parts = definitions
            .iter()
            .filter(|one| !has_own_history(one.kind, self.found.lang));
        let found = parts.find(|one| qualified_name(definitions, one) == name)?;
        Some((found.kind, found.range))
    }

    /// Returns the name and the index of each definition, as a set for lookups.
    pub fn names(&self) -> HashSet<(&str, u32)> {
        self.shapes.iter().map(Shape::numbered_name).collect()
    }

    /// Returns the first and last line of a range, 1-based, without white space at the end.
    pub fn lines_of(&self, range: ByteRange) -> (u32, u32) {
        let lines = self.lines();
        let text = self.bytes.get(range.as_usize()).unwrap_or_default();
        let end = range.start + text.trim_ascii_end().len().max(1) as u32 - 1;
        (lines.line_of(range.start) as u32 + 1, lines.line_of(end) as u32 + 1)
    }

    /// Returns the text of the lines from `first` to `last`, counted from 1.
    pub fn text_of_lines(&self, first: u32, last: u32) -> Option<&[u8]> {
        let range = self.lines().range((first as usize).checked_sub(1)?, last as usize);
        self.bytes.get(range.as_usize())
    }

    fn lines(&self) -> &LineIndex {
        self.lines.get_or_init(|| LineIndex::new(&self.bytes))
    }

    /// Returns the innermost definition that contains all lines from `first` to `last` (1-based). If there is none,
    /// returns a definition that contains some of them.
    pub fn around(&self, first: u32, last: u32) -> Option<&Shape> {
        let covers = |shape: &&Shape| {
            let (start, end) = self.lines_of(shape.range);
            start <= last && first <= end
        };
        let holds_all = |shape: &&Shape| {
            let (start, end) = self.lines_of(shape.range);
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

/// Returns the language of a version, or plain text if the content is binary.
fn lang_of(path: &RepoPath, bytes: &[u8]) -> Lang {
    if is_text(bytes) {
        refine(lang_of_path(path), bytes)
    } else {
        Lang::TEXT
    }
}

/// Returns the ranges of lines that differ.
pub(super) fn edits(old: &[u8], new: &[u8]) -> Vec<Edit> {
    let n_same = n_same_first(old, new);
    let start = memchr::memrchr(b'\n', &old[..n_same]).map_or(0, |at| at + 1);
    let (old, new) = (&old[start..], &new[start..]);
    let n_same = n_same_last(old, new);
    let tail = &old[old.len() - n_same..];
    let n_same = memchr::memchr(b'\n', tail).map_or(0, |at| tail.len() - at - 1);
    let (old, new) = (&old[..old.len() - n_same], &new[..new.len() - n_same]);
    let (old_lines, new_lines) = (LineIndex::new(old), LineIndex::new(new));
    let bytes = |index: &LineIndex, lines: Range<u32>| {
        let range = index.range(lines.start as usize, lines.end as usize).as_usize();
        range.start + start..range.end + start
    };
    let edit = |hunk: LineHunk| Edit {
        old: bytes(&old_lines, hunk.old),
        new: bytes(&new_lines, hunk.new),
    };
    diff_lines(old, new).into_iter().map(edit).collect()
}

/// Number of bytes that are compared at a time.
const BLOCK: usize = 64;

fn n_same_first(old: &[u8], new: &[u8]) -> usize {
    let blocks = old.chunks_exact(BLOCK).zip(new.chunks_exact(BLOCK));
    let n_same = BLOCK * blocks.take_while(|(old, new)| old == new).count();
    let rest = old[n_same..].iter().zip(&new[n_same..]);
    n_same + rest.take_while(|(old, new)| old == new).count()
}

fn n_same_last(old: &[u8], new: &[u8]) -> usize {
    let blocks = old.rchunks_exact(BLOCK).zip(new.rchunks_exact(BLOCK));
    let n_same = BLOCK * blocks.take_while(|(old, new)| old == new).count();
    let rest = old[..old.len() - n_same].iter().rev();
    let rest = rest.zip(new[..new.len() - n_same].iter().rev());
    n_same + rest.take_while(|(old, new)| old == new).count()
}

/// Returns the change of a definition between two versions of its file: the events, the old key if it differs, and the
/// confidence. There are no events if only the number among its namesakes changed. Returns `None` if nothing changed.
/// Used if the new version is not committed.
pub fn change_between(
    old: Option<(&RepoPath, &FileShapes)>,
    new: Option<&FileShapes>,
    key: &SymbolKey,
) -> Option<(SymbolEvents, Option<SymbolKey>, f64)> {
    let only = |added: bool| SymbolEvents {
        added,
        removed: !added,
        ..SymbolEvents::default()
    };
    let place = |file: &FileShapes| {
        let mut shapes = file.shapes.iter();
        shapes.position(|shape| shape.numbered_name() == (&key.name, key.nth))
    };
    let Some((after, at)) = new.and_then(|file| Some((file, place(file)?))) else {
        let is_gone = old.is_some_and(|(_, file)| place(file).is_some());
        return is_gone.then(|| (only(false), None, 1.0));
    };
    let Some((path, before, (was, confidence))) =
        old.and_then(|(path, before)| Some((path, before, origin(path, before, after, at)?)))
    else {
        return Some((only(true), None, 1.0));
    };
    let now = (&key.path, after, &after.shapes[at]);
    let events = events_between((path, before, was), now, &Edits::default());
    let from = Some(was.key(path)).filter(|from| from != key);
    (!events.is_empty() || from.is_some()).then_some((events, from, confidence))
}

/// Returns the version in `before` of the definition at index `at` in `after`, with the confidence.
fn origin<'f>(path: &RepoPath, before: &'f FileShapes, after: &FileShapes, at: usize) -> Option<(&'f Shape, f64)> {
    let partners = partners(&before.shapes, &after.shapes);
    if let Some(partner) = partners[at] {
        return Some((&before.shapes[partner], 1.0));
    }
    let is_paired: HashSet<usize> = partners.iter().copied().flatten().collect();
    let gone = before.shapes.iter().enumerate();
    let gone: Vec<&Shape> = gone
        .filter(|(old, _)| !is_paired.contains(old))
        .map(|(_, shape)| shape)
        .collect();
    let added: Vec<usize> = (0..partners.len()).filter(|new| partners[*new].is_none()).collect();
    let place = added.iter().position(|new| *new == at)?;
    let added: Vec<&Shape> = added.iter().map(|new| &after.shapes[*new]).collect();
    let (key, confidence) = best(renames(path, &gone, &added).swap_remove(place))?;
    Some((before.find(&key.name, key.nth)?, confidence))
}

/// Returns the words in statements of JavaScript that export: `export { name }`, `export default name`,
/// `module.exports = { name }` or `exports.name = …`.
fn exported_words(bytes: &[u8]) -> HashSet<Vec<u8>> {
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$') || !byte.is_ascii();
    let mut words = HashSet::new();
    for at in memchr::memmem::find_iter(bytes, "export") {
        let rest = &bytes[at..bytes.len().min(at + MAX_EXPORT_BYTES)];
        let line = rest.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let has_list = line.contains(&b'{');
        let end = rest.iter().position(|byte| *byte == b'}').filter(|_| has_list);
        let statement = end.map_or(line, |end| &rest[..end]);
        words.extend(statement.split(|byte| !is_word(byte)).map(<[u8]>::to_vec));
    }
    words
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use std::path::Path;

    use super::super::watch::Watch;
    use super::*;
    use crate::extract::Options;

    /// Returns all properties of the definitions in a version, as text.
    fn described(file: &FileShapes) -> Vec<String> {
        let lines = file.shapes.iter().map(|shape| {
            let prints = shape.prints();
            let place = (shape.nth, shape.kind, shape.range, &shape.own);
            let hashes = (shape.text_fingerprint(), prints.signature, prints.body, prints.doc);
            format!("{} {place:?} {hashes:x?}", shape.qualified)
        });
        lines.collect()
    }

    /// Reads the sample files of all languages.
    fn samples() -> Vec<(RepoPath, Vec<u8>)> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/lang");
        let names = std::fs::read_dir(&folder).unwrap();
        let mut names: Vec<String> = names
            .map(|name| name.unwrap().file_name().into_string().unwrap())
            .collect();
        names.retain(|name| !name.ends_with(".golden"));
        names.sort();
        let read = |name: String| {
            (
                RepoPath::from(name.as_str()),
                std::fs::read(folder.join(&name)).unwrap(),
            )
        };
        names.into_iter().map(read).collect()
    }

    /// Returns a randomly edited version. `dice` is the state of the random generator.
    fn edited(text: &[u8], dice: &mut u64) -> Vec<u8> {
        let mut draw = |n: usize| {
            *dice = dice
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (*dice >> 33) as usize % n.max(1)
        };
        let mut lines: Vec<Vec<u8>> = text
            .split_inclusive(|byte| *byte == b'\n')
            .map(<[u8]>::to_vec)
            .collect();
        for _ in 0..=draw(2) {
            let at = draw(lines.len());
            match draw(8) {
                6 | 7 => {
                    let mark: [&[u8]; 2] = if draw(2) == 0 {
                        [b"/*\n", b"*/\n"]
                    } else {
                        [b"\"\"\"\n"; 2]
                    };
                    let end = (at + 1 + draw(30)).min(lines.len());
                    lines.insert(end, mark[1].to_vec());
                    lines.insert(at, mark[0].to_vec());
                }
                0 => drop(lines.remove(at)),
                1 => lines.insert(at, lines[at].clone()),
                2 => {
                    let other = draw(lines.len());
                    lines.swap(at, other);
                }
                3 => lines.insert(at, b"\n".to_vec()),
                4 => {
                    let letter = lines[at].iter().position(u8::is_ascii_lowercase);
                    if let Some(letter) = letter {
                        lines[at][letter] = b'q';
                    }
                }
                _ => {
                    let end = (at + 1 + draw(8)).min(lines.len());
                    lines.drain(at..end);
                }
            }
            if lines.is_empty() {
                lines.push(b"\n".to_vec());
            }
        }
        lines.concat()
    }

    #[test]
    fn incremental_extraction_equals_full_extraction() {
        let n_rounds = if crate::support::is_long() { 400 } else { 10 };
        let mut extractor = Extractor::new(Options::default());
        let (mut n_read, mut n_carried, mut other) = (0, 0, Vec::new());
        for (path, text) in samples() {
            let mut dice = 1;
            // Make the text so long that reusing definitions saves time.
            let text = text.repeat(5);
            for _ in 0..n_rounds {
                let (one, two) = (edited(&text, &mut dice), edited(&text, &mut dice));
                let known = FileShapes::of(&mut extractor, &path, one);
                let near = FileShapes::near(&mut extractor, &known, &path, two.clone());
                n_read += 1;
                n_carried += usize::from(near.found.carried.iter().any(Option::is_some));
                let alone = FileShapes::of(&mut extractor, &path, two);
                if described(&alone) != described(&near) {
                    let (a, b) = (described(&alone), described(&near));
                    let at = a
                        .iter()
                        .zip(&b)
                        .position(|(a, b)| a != b)
                        .unwrap_or(a.len().min(b.len()));
                    other.push(format!("{path}: {:?} {:?}", a.get(at), b.get(at)));
                }
            }
        }
        assert!(n_carried > n_read / 10, "{n_carried} of {n_read}");
        // In the long mode, one in 800 versions differs, because random edits can break the text without affecting
        // brackets.
        assert!(other.len() * 500 <= n_read, "{} of {n_read}: {other:#?}", other.len());
    }

    #[test]
    fn commented_out_code_is_not_carried_over() {
        let body = "    let a = one();\n".repeat(20);
        let old = format!(
            "use a;\n\n// one\n\nfn a() {{\n{body}}}\n\nfn b() {{\n{body}}}\n\n// two\n\nfn main() {{\n    b();\n}}\n"
        );
        let new = old.replace("// one", "/*\n// one").replace("// two", "// two\n*/");
        let mut extractor = Extractor::new(Options::default());
        let path = RepoPath::from("a.rs");
        let known = FileShapes::of(&mut extractor, &path, old.into_bytes());
        let near = FileShapes::near(&mut extractor, &known, &path, new.clone().into_bytes());
        let names: Vec<&str> = near.shapes.iter().map(|shape| shape.name.as_str()).collect();
        assert_eq!(names, ["main"]);
        let mut watch = Watch::new(&known, "a", 1).unwrap();
        assert!(!watch.follow(&Arc::new(new.into_bytes())));
    }

    #[test]
    fn a_missing_definition_stays_missing_if_only_bodies_have_its_name() {
        let cases = [
            (
                "int g(void) {\n  return f(1);\n}\n\n\nint x = 1;\n",
                "x = 1",
                "x = 2",
                true,
            ),
            (
                "int g(void) {\n  return f(1);\n}\n\n\nint x = 1;\n",
                "x = 1",
                "f = 1",
                false,
            ),
            (
                "int g(void) {\n  return f(1);\n}\n\n\nint x = 1;\n",
                "x = 1",
                "x = {1",
                false,
            ),
            ("int x = 1;\n\n\n/* f */\n", "x = 1", "x = 2", false),
        ];
        let mut extractor = Extractor::new(Options::default());
        for (text, from, to, is_same) in cases {
            let known = FileShapes::of(&mut extractor, &RepoPath::from("a.c"), text.as_bytes().to_vec());
            assert!(known.find("f", 1).is_none(), "{text}");
            let other = Arc::new(text.replace(from, to).into_bytes());
            let is_followed = Watch::new(&known, "f", 1).is_some_and(|mut watch| watch.follow(&other));
            assert_eq!(is_followed, is_same, "{text} {to}");
        }
    }

    #[test]
    fn a_definition_is_followed_through_edits_above_it() {
        let text = |n: usize| format!("{}\n\nfn f() {{\n    one();\n}}\n", "// more\n".repeat(n)).into_bytes();
        let mut extractor = Extractor::new(Options::default());
        let known = FileShapes::of(&mut extractor, &RepoPath::from("a.rs"), text(1));
        let mut watch = Watch::new(&known, "f", 1).unwrap();
        assert!((2..9).all(|n| watch.follow(&Arc::new(text(n)))));
        let edited = String::from_utf8(text(8)).unwrap().replace("one", "two");
        assert!(!watch.follow(&Arc::new(edited.into_bytes())));
        assert!(watch.follow(&Arc::new(text(1))));
    }

    #[test]
    fn a_change_of_a_container_ends_the_watch() {
        let cases = [
            (
                "a.cpp",
                "ns.f",
                1,
                "namespace ns {\n\nint x;\n\nint f() {\n  return 1;\n}\n\n}\n",
                "namespace ns {",
                "namespace other {",
                false,
            ),
            (
                "a.py",
                "f",
                1,
                "x = 1\n\n\ndef f():\n    pass\n\n\ny = 1\n",
                "x = 1",
                "x = '''",
                false,
            ),
            (
                "a.rs",
                "A.fmt",
                2,
                "impl D for A {\n    fn fmt() {}\n}\n\nstruct S;\n\nimpl E for A {\n    fn fmt() {}\n}\n",
                "impl D for A",
                "impl D for B",
                false,
            ),
            (
                "a.rs",
                "f",
                1,
                "fn g() {\n    one();\n    two();\n}\n\n\nfn f() {}\n",
                "one()",
                "three()",
                true,
            ),
        ];
        let mut extractor = Extractor::new(Options::default());
        for (path, name, nth, text, from, to, is_same) in cases {
            let known = FileShapes::of(&mut extractor, &RepoPath::from(path), text.as_bytes().to_vec());
            assert!(known.find(name, nth).is_some(), "{path} {name}");
            let mut watch = Watch::new(&known, name, nth).unwrap();
            let other = Arc::new(text.replace(from, to).into_bytes());
            assert_eq!(watch.follow(&other), is_same, "{path}");
        }
    }
}
