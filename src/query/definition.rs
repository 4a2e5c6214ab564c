//! Presents definitions in results, with their containers, lines and ids.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::ops::Range;

use crate::extract::{Definition, DefinitionKind, Extraction};
use crate::link::DefId;
use crate::model::{ByteRange, start_of};
use crate::snapshot::FileId;

use super::lines::LineStarts;
use super::read::segments;

/// Maximum length of a signature. Longer ones are truncated.
const MAX_SIGNATURE_BYTES: usize = 400;

/// The names of all kinds.
const KINDS: [(DefinitionKind, &str); 25] = [
    (DefinitionKind::Function, "function"),
    (DefinitionKind::Method, "method"),
    (DefinitionKind::Constructor, "constructor"),
    (DefinitionKind::Class, "class"),
    (DefinitionKind::Struct, "struct"),
    (DefinitionKind::Enum, "enum"),
    (DefinitionKind::Variant, "variant"),
    (DefinitionKind::Interface, "interface"),
    (DefinitionKind::Trait, "trait"),
    (DefinitionKind::Impl, "impl"),
    (DefinitionKind::TypeAlias, "type_alias"),
    (DefinitionKind::Union, "union"),
    (DefinitionKind::Constant, "constant"),
    (DefinitionKind::Variable, "variable"),
    (DefinitionKind::Field, "field"),
    (DefinitionKind::Property, "property"),
    (DefinitionKind::Macro, "macro"),
    (DefinitionKind::Module, "module"),
    (DefinitionKind::Test, "test"),
    (DefinitionKind::Key, "key"),
    (DefinitionKind::Rule, "rule"),
    (DefinitionKind::Element, "element"),
    (DefinitionKind::Table, "table"),
    (DefinitionKind::Section, "section"),
    (DefinitionKind::Target, "target"),
];

/// The name of a kind in results and filters.
pub fn kind_name(kind: DefinitionKind) -> &'static str {
    let known = KINDS.iter().find(|(known, _)| *known == kind);
    known.map_or("definition", |(_, name)| name)
}

/// Finds the kind with this name, ignoring case.
pub fn kind_by_name(name: &str) -> Option<DefinitionKind> {
    let known = KINDS.iter().find(|(_, known)| known.eq_ignore_ascii_case(name));
    known.map(|(kind, _)| *kind)
}

/// The names of all kinds.
pub fn kind_names() -> impl Iterator<Item = &'static str> {
    KINDS.iter().map(|(_, name)| *name)
}

/// A definition in a file of a view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundDefinition {
    /// The file.
    pub file: FileId,
    /// The index of the definition in the file's list of definitions.
    pub index: u32,
    /// The id: path, qualified name and, from the second definition of that name in the file, its number:
    /// `src/a.rs#Parser.parse`, `src/a.rs#Parser.parse~2`.
    pub id: String,
    /// The bare name.
    pub name: String,
    /// The kind of the definition.
    pub kind: DefinitionKind,
    /// The containers, outermost first, joined with `.`; `None` at file level.
    pub container: Option<String>,
    /// The signature on one line.
    pub signature: String,
    /// First line, 1-based, including comments before the item.
    pub start_line: u32,
    /// Last line, 1-based, inclusive.
    pub end_line: u32,
    /// Line of the name, 1-based.
    pub name_line: u32,
    /// Byte range, including the indentation before the item and the line break after it.
    pub range: Range<usize>,
    /// The doc comment or docstring, verbatim.
    pub doc: Option<String>,
    /// True if it is inside a function.
    pub is_local: bool,
    /// True if it is a test, or inside a test or a module of tests.
    pub is_test: bool,
}

impl FoundDefinition {
    /// Returns the definition's key in links.
    pub fn def(&self) -> DefId {
        DefId {
            file: self.file,
            index: self.index,
        }
    }
}

/// The definitions of one file, and the data needed to present them.
pub(super) struct FileDefinitions<'a> {
    pub(super) file: FileId,
    pub(super) path: &'a str,
    pub(super) bytes: &'a [u8],
    pub(super) lines: &'a LineStarts<'a>,
    pub(super) extraction: &'a Extraction,
    pub(super) numbers: Numbers,
}

/// Returns the text after the `#` in the id of each definition: the qualified name and, from the second definition of
/// that name, its number.
pub fn names_in_file(definitions: &[Definition]) -> Vec<String> {
    let numbers = Numbers::default();
    let name = |(index, definition)| match numbers.of(index as u32, definitions) {
        1 => qualified_name(definitions, definition),
        nth => format!("{}~{nth}", qualified_name(definitions, definition)),
    };
    definitions.iter().enumerate().map(name).collect()
}

/// Returns true if the qualified name of a definition equals `name` or ends with it, whatever separates its segments.
pub fn is_named(definitions: &[Definition], index: usize, name: &str) -> bool {
    let definition = &definitions[index];
    let wanted: Vec<&str> = segments(name).collect();
    let mut names = containers(definitions, definition);
    names.push(&definition.name);
    !wanted.is_empty() && names.ends_with(&wanted)
}

/// The number of each definition among those with the same qualified name in the file, 1-based; computed on first use.
#[derive(Default)]
pub(super) struct Numbers(OnceCell<Vec<u32>>);

impl Numbers {
    fn of(&self, index: u32, definitions: &[Definition]) -> u32 {
        let count = || {
            let mut n_named: HashMap<String, u32> = HashMap::new();
            let mut number = |definition| {
                let nth = n_named.entry(qualified_name(definitions, definition)).or_default();
                *nth += 1;
                *nth
            };
            definitions.iter().map(&mut number).collect()
        };
        self.0.get_or_init(count)[index as usize]
    }
}

impl FileDefinitions<'_> {
    /// Returns the definition at an index of the list.
    pub(super) fn found(&self, index: u32) -> Option<FoundDefinition> {
        let definition = self.extraction.definitions.get(index as usize)?;
        let text = |range: ByteRange| {
            String::from_utf8_lossy(self.bytes.get(range.as_usize()).unwrap_or_default()).into_owned()
        };
        let (start_line, end_line) = self.lines.of_range(self.bytes, definition.range.as_usize());
        let containers = containers(&self.extraction.definitions, definition);
        Some(FoundDefinition {
            file: self.file,
            index,
            id: self.id(index, definition),
            name: definition.name.clone(),
            kind: definition.kind,
            container: (!containers.is_empty()).then(|| containers.join(".")),
            signature: signature_line(self.bytes.get(definition.signature.as_usize()).unwrap_or_default()),
            start_line,
            end_line,
            name_line: self.lines.line_of(definition.name_range.start as usize),
            range: whole_lines(self.bytes, definition.range.as_usize()),
            doc: definition.doc.map(text),
            is_local: enclosing(&self.extraction.definitions, definition).any(|outer| outer.kind.is_callable()),
            is_test: definition.kind == DefinitionKind::Test
                || enclosing(&self.extraction.definitions, definition).any(has_tests),
        })
    }

    fn id(&self, index: u32, definition: &Definition) -> String {
        let definitions = &self.extraction.definitions;
        let name = qualified_name(definitions, definition);
        match self.numbers.of(index, definitions) {
            1 => format!("{}#{name}", self.path),
            nth => format!("{}#{name}~{nth}", self.path),
        }
    }
}

/// Returns the definitions around a definition, innermost first.
fn enclosing<'d>(definitions: &'d [Definition], of: &'d Definition) -> impl Iterator<Item = &'d Definition> {
    let at = |index: Option<u32>| index.and_then(|index| definitions.get(index as usize));
    std::iter::successors(at(of.container), move |outer| at(outer.container)).take(definitions.len())
}

/// Returns true for a test or a module of tests.
fn has_tests(outer: &Definition) -> bool {
    outer.kind == DefinitionKind::Test
        || outer.kind == DefinitionKind::Module && ["test", "tests"].contains(&outer.name.as_str())
}

/// Returns the containers of a definition, outermost first.
pub(super) fn containers<'d>(definitions: &'d [Definition], of: &'d Definition) -> Vec<&'d str> {
    let mut names: Vec<&str> = enclosing(definitions, of).map(|outer| outer.name.as_str()).collect();
    names.reverse();
    names.extend(of.qualifier.as_deref());
    names
}

/// Returns the qualified name: `Parser.parse`.
pub(super) fn qualified_name(definitions: &[Definition], definition: &Definition) -> String {
    let mut names = containers(definitions, definition);
    names.push(&definition.name);
    names.join(".")
}

/// Extends a byte range to the preceding indentation and the following line break, unless there is other text on those
/// lines.
pub(super) fn whole_lines(bytes: &[u8], range: Range<usize>) -> Range<usize> {
    let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\r');
    let (before, after) = (
        bytes.get(..range.start).unwrap_or_default(),
        bytes.get(range.end..).unwrap_or_default(),
    );
    let n_before = before.iter().rev().take_while(|byte| is_blank(byte)).count();
    let n_after = after.iter().take_while(|byte| is_blank(byte)).count();
    let begins = before.len() == n_before || before[before.len() - n_before - 1] == b'\n';
    let ends = after.get(n_after) == Some(&b'\n');
    let start = if begins { range.start - n_before } else { range.start };
    start..if ends { range.end + n_after + 1 } else { range.end }
}

/// Joins a signature into one line with single spaces. Reads only as much as is shown, because many definitions may
/// share one long signature.
pub(super) fn signature_line(bytes: &[u8]) -> String {
    let mut line = String::new();
    for word in bytes.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()) {
        if line.len() > MAX_SIGNATURE_BYTES {
            break;
        }
        if !line.is_empty() {
            line.push(' ');
        }
        let word = &word[..word.len().min(MAX_SIGNATURE_BYTES + 4)];
        line.push_str(&String::from_utf8_lossy(word));
    }
    line.truncate(line.trim_end_matches([';', '{', ' ']).len());
    if line.len() > MAX_SIGNATURE_BYTES {
        line.truncate(start_of(&line, MAX_SIGNATURE_BYTES).len());
        line.push('…');
    }
    line
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use crate::artifact;
    use crate::extract;

    #[test]
    fn kind_names_are_unique() {
        for (kind, name) in KINDS {
            assert_eq!((kind_by_name(name), kind_name(kind)), (Some(kind), name));
        }
    }

    #[test]
    fn ranges_extend_to_otherwise_blank_lines() {
        let bytes = b"a\n  item;  \nb item c";
        assert_eq!(whole_lines(bytes, 4..9), 2..12);
        assert_eq!(whole_lines(bytes, 14..18), 14..18);
        assert_eq!(whole_lines(b"x", 0..1), 0..1);
    }

    #[test]
    fn ids_distinguish_definitions_of_one_name() {
        let bytes =
            b"struct A;\n\n/// Makes.\nimpl A { fn new() {} }\nmod m { fn new() {} }\nfn new() {}\nfn new() {}\n";
        let lang = extract::by_name("rust").unwrap();
        let extraction = artifact::extract(bytes, lang, &extract::Options::default());
        let lines = LineStarts::of(bytes);
        let file = FileDefinitions {
            file: FileId(0),
            path: "a.rs",
            bytes,
            lines: &lines,
            extraction: &extraction,
            numbers: Numbers::default(),
        };
        let ids: Vec<String> = (0..extraction.definitions.len() as u32)
            .map(|index| file.found(index).unwrap())
            .filter(|found| found.name == "new")
            .map(|found| found.id)
            .collect();
        assert_eq!(ids, ["a.rs#A.new", "a.rs#m.new", "a.rs#new", "a.rs#new~2"]);
    }
}
