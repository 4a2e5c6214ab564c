//! Finds the part of a file that an operation names.

use std::collections::HashSet;
use std::ops::Range;

use crate::artifact;
use crate::extract::{self, Definition, DefinitionKind, Extraction, LineIndex};
use crate::model::{Lang, RepoPath};
use crate::query::{LineStarts, TargetError, is_named, names_in_file, nearest};
use crate::session::{OpError, Result};

use super::text::{self, trimmed};

/// A part of a file as typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// The whole file.
    Whole,
    /// The innermost definition at a line.
    Line(u32),
    /// Lines, 1-based and inclusive; to the end if the second is `None`.
    Lines(u32, Option<u32>),
    /// A definition.
    Name(String),
}

/// A part of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// The whole file.
    Whole,
    /// Whole lines.
    Lines(Range<usize>),
    /// The definition with this number.
    Definition(usize),
}

/// A file as it is before the edit.
pub(crate) struct FileText<'a> {
    pub(super) path: &'a str,
    pub(super) bytes: &'a [u8],
    pub(super) lang: Lang,
    /// The name of the language.
    pub(super) language: &'static str,
    pub(super) extraction: Extraction,
    /// The indentation of one level.
    pub(super) unit: String,
    /// The end of the comments at the start of the file that belong to no definition.
    pub(super) head: usize,
}

impl<'a> FileText<'a> {
    /// Parses a file.
    pub(crate) fn new(path: &'a str, bytes: &'a [u8]) -> Self {
        let lang = extract::detect(&RepoPath::from(path), bytes);
        let mut extraction = artifact::extract(bytes, lang, &extract::Options::default());
        let head = text::head_of(bytes);
        let end = head as u32;
        for definition in &mut extraction.definitions {
            if definition.range.start < end && end <= definition.signature.start {
                definition.range.start = end;
                definition.doc = definition.doc.filter(|doc| doc.end > end);
                if let Some(doc) = &mut definition.doc {
                    doc.start = doc.start.max(end);
                }
            }
        }
        Self {
            path,
            bytes,
            lang,
            language: extract::language(lang).map_or("text", |language| language.name),
            extraction,
            unit: text::unit_of(bytes),
            head,
        }
    }

    /// Returns a definition.
    pub(super) fn definition(&self, index: usize) -> &Definition {
        &self.extraction.definitions[index]
    }

    /// Returns the range of a definition without white space at its ends.
    pub(super) fn range(&self, index: usize) -> Range<usize> {
        let range = self.definition(index).range.as_usize();
        trimmed(self.bytes, range.start.max(text::bom_len(self.bytes))..range.end)
    }

    /// Returns the names of the definitions in ids, in order.
    pub(super) fn names(&self) -> Vec<String> {
        names_in_file(&self.extraction.definitions)
    }

    /// Finds a part.
    pub(super) fn find(&self, part: &Part) -> Result<Place> {
        match part {
            Part::Whole => Ok(Place::Whole),
            Part::Name(name) => self.named(name).map(Place::Definition),
            Part::Line(line) => self.at_line(*line).map(Place::Definition),
            Part::Lines(first, last) => {
                let n_lines = LineIndex::new(self.bytes).count() as u32;
                if (*first).max(last.unwrap_or(0)) > n_lines {
                    return Err(OpError::failed(format!("{:?} has {n_lines} lines", self.path)));
                }
                let lines = LineStarts::of(self.bytes).range(*first, last.unwrap_or(n_lines));
                Ok(Place::Lines(lines.start.max(text::bom_len(self.bytes))..lines.end))
            }
        }
    }

    /// Finds a definition by the name in its id, by its bare name or by the end of its qualified name. The id of the
    /// first of several with one name is that name, which may mean any of them, so the first is `name~1` here. Blocks
    /// that implement a type are not meant by its name.
    fn named(&self, name: &str) -> Result<usize> {
        let mut names = self.names();
        let repeated: HashSet<String> = names
            .iter()
            .filter_map(|id| id.strip_suffix("~2").map(str::to_owned))
            .collect();
        for name in names.iter_mut().filter(|name| repeated.contains(*name)) {
            *name += "~1";
        }
        let definitions = &self.extraction.definitions;
        let is_exact = |index: usize| names[index] == name;
        let is_impl = |index: usize| definitions[index].kind == DefinitionKind::Impl;
        let is_base = |index: usize| names[index].rsplit_once('~').is_some_and(|(base, _)| base == name);
        let is_type = |index: usize| is_base(index) && !is_impl(index);
        let is_bare = |index: usize| definitions[index].name == name && !is_impl(index);
        let is_alike = |index: usize| is_named(definitions, index, name);
        let tests: [&dyn Fn(usize) -> bool; 5] = [&is_exact, &is_type, &is_base, &is_bare, &is_alike];
        for is_meant in tests {
            let found: Vec<usize> = (0..definitions.len()).filter(|index| is_meant(*index)).collect();
            match found.as_slice() {
                [] => {}
                [one] => return Ok(*one),
                several => return Err(self.ambiguous(name, several, &names)),
            }
        }
        let bare = definitions.iter().map(|definition| definition.name.as_str());
        let near = nearest(name, names.iter().map(String::as_str).chain(bare));
        Err(TargetError::unknown_in(self.path, name, &near).into())
    }

    fn ambiguous(&self, name: &str, found: &[usize], names: &[String]) -> OpError {
        let ids = found.iter().map(|index| format!("{}#{}", self.path, names[*index]));
        TargetError::ambiguous(name, ids.collect(), |id| format!("edit OP {id}")).into()
    }

    fn at_line(&self, line: u32) -> Result<usize> {
        let lines = LineStarts::of(self.bytes);
        let is_there = |index: &usize| {
            let (first, last) = lines.of_range(self.bytes, self.range(*index));
            (first..=last).contains(&line)
        };
        let found = (0..self.extraction.definitions.len()).filter(is_there);
        found.min_by_key(|index| self.range(*index).len()).ok_or_else(|| {
            OpError::from(TargetError::Nowhere {
                path: self.path.to_owned(),
                line,
            })
            .with_hint(format!("write {0}:{line}-{line} for the line itself", self.path))
        })
    }

    /// Returns the last definition directly inside another one.
    pub(super) fn last_member(&self, container: usize) -> Option<usize> {
        let members = 0..self.extraction.definitions.len();
        let is_inside = |index: &usize| {
            let member = self.definition(*index);
            member.container == Some(container as u32) && self.definition(container).range.contains(member.range)
        };
        members.filter(is_inside).max_by_key(|index| self.range(*index).end)
    }

    /// Returns another definition that the same statement declares.
    pub(super) fn twin(&self, index: usize) -> Option<&Definition> {
        let own = self.definition(index);
        let mut all = self.extraction.definitions.iter().enumerate();
        let has_lists = matches!(self.language, "javascript" | "typescript" | "tsx")
            && matches!(
                own.kind,
                DefinitionKind::Variable | DefinitionKind::Constant | DefinitionKind::Function
            );
        let is_next = |one: &Definition, next: &Definition| {
            has_lists
                && one.container == next.container
                && one.range.end < next.signature.start
                && self.bytes[one.range.end as usize..next.signature.start as usize].trim_ascii() == b","
        };
        let is_twin = |(at, other): &(usize, &Definition)| {
            *at != index && (other.range == own.range || is_next(own, other) || is_next(other, own))
        };
        all.find(is_twin).map(|(_, other)| other)
    }

    /// Returns true for a key of a data file.
    pub(super) fn is_key(&self, index: usize) -> bool {
        self.definition(index).kind == DefinitionKind::Key
    }

    /// Returns true for a section of a document.
    pub(super) fn is_section(&self, index: usize) -> bool {
        self.definition(index).kind == DefinitionKind::Section
    }
}
