//! Definitions as answers name them: with container, lines and an id.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::ops::Range;

use crate::extract::{Definition, DefinitionKind, Extraction};
use crate::model::ByteRange;
use crate::snapshot::FileId;

use super::lines::LineStarts;

/// A signature is shown up to this length.
const MAX_SIGNATURE_BYTES: usize = 400;

/// Every kind by name.
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

/// The name of a kind in answers and filters.
pub fn kind_name(kind: DefinitionKind) -> &'static str {
    let known = KINDS.iter().find(|(known, _)| *known == kind);
    known.map_or("definition", |(_, name)| name)
}

/// The kind with this name.
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
    /// Its place among the definitions of the file.
    pub index: u32,
    /// Path, qualified name, and which of those with the same name in the file: `src/a.rs#Parser.parse`, `src/a.rs#Parser.parse~2`.
    pub id: String,
    /// The bare name.
    pub name: String,
    /// What it is.
    pub kind: DefinitionKind,
    /// What it belongs to, the outermost first, joined with `.`; `None` at file level.
    pub container: Option<String>,
    /// On one line.
    pub signature: String,
    /// 1-based first line, comments before the item included.
    pub start_line: u32,
    /// 1-based last line, inclusive.
    pub end_line: u32,
    /// 1-based line of the name.
    pub name_line: u32,
    /// The bytes, with the indentation before and the line break behind the item.
    pub range: Range<usize>,
    /// The doc comment or docstring as it stands.
    pub doc: Option<String>,
}

/// The definitions of one file with what is needed to name them.
pub(super) struct FileDefinitions<'a> {
    pub(super) file: FileId,
    pub(super) path: &'a str,
    pub(super) bytes: &'a [u8],
    pub(super) lines: &'a LineStarts<'a>,
    pub(super) extraction: &'a Extraction,
    pub(super) numbers: Numbers,
}

/// Which of those with its qualified name each definition of a file is, from 1; counted when the first id is made.
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
    /// The definition with this place in the list.
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

/// What a definition belongs to, the outermost first.
pub(super) fn containers<'d>(definitions: &'d [Definition], of: &'d Definition) -> Vec<&'d str> {
    let at = |index: Option<u32>| index.and_then(|index| definitions.get(index as usize));
    let enclosing = std::iter::successors(at(of.container), |outer| at(outer.container));
    let mut names: Vec<&str> = enclosing
        .take(definitions.len())
        .map(|outer| outer.name.as_str())
        .collect();
    names.reverse();
    names.extend(of.qualifier.as_deref());
    names
}

/// The name with what it belongs to: `Parser.parse`.
pub(super) fn qualified_name(definitions: &[Definition], definition: &Definition) -> String {
    let mut names = containers(definitions, definition);
    names.push(&definition.name);
    names.join(".")
}

/// A range of bytes with the indentation before it and the line break behind it, where nothing else stands beside it.
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

/// A signature without line breaks and runs of blanks. No more of it is looked at than is shown: many definitions may have one.
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
        let mut cut = MAX_SIGNATURE_BYTES;
        while !line.is_char_boundary(cut) {
            cut -= 1;
        }
        line.truncate(cut);
        line.push('…');
    }
    line
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use crate::extract;

    #[test]
    fn every_kind_has_a_name_of_its_own() {
        for (kind, name) in KINDS {
            assert_eq!((kind_by_name(name), kind_name(kind)), (Some(kind), name));
        }
    }

    #[test]
    fn lines_become_whole_where_nothing_else_stands_in_them() {
        let bytes = b"a\n  item;  \nb item c";
        assert_eq!(whole_lines(bytes, 4..9), 2..12);
        assert_eq!(whole_lines(bytes, 14..18), 14..18);
        assert_eq!(whole_lines(b"x", 0..1), 0..1);
    }

    #[test]
    fn ids_tell_definitions_of_one_name_apart() {
        let bytes =
            b"struct A;\n\n/// Makes.\nimpl A { fn new() {} }\nmod m { fn new() {} }\nfn new() {}\nfn new() {}\n";
        let lang = extract::by_name("rust").unwrap();
        let extraction = extract::extract(bytes, lang, &extract::Options::default());
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
