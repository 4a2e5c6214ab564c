//! Finds definitions by name, by prefix, or by a position at which the name occurs.

use std::collections::{BTreeSet, HashMap, HashSet};

use crate::extract::{DefinitionKind, Extraction, Reference, ReferenceKind};
use crate::index::lexical::{LexicalError, normal_name};
use crate::link::{DefId, Linker};
use crate::model::count::count;
use crate::model::{explain_by, quoted};
use crate::sidecar::FileError;
use crate::snapshot::{FileId, View};

use super::definition::{FileDefinitions, FoundDefinition, Numbers};
use super::filter::FileFilter;
use super::grep::GrepLine;
use super::lines::LineStarts;
use super::near::Near;
use super::path_role::is_test_path;
use super::read::segments;
use super::source::{Source, SourceError, SourceReader, Sources};

/// A query for definitions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SymbolQuery {
    /// Finds definitions by name, qualified name or id: `parse`, `Parser::parse`.
    Named(String),
    /// Finds definitions whose names begin with the text, or if there are none, contain it.
    Prefix(String),
    /// Finds the definition at a position, or the definitions that the name at the position refers to.
    At {
        /// The file.
        file: FileId,
        /// Line, 1-based.
        line: u32,
        /// Column, 1-based, in characters; `None` for the whole line.
        column: Option<u32>,
    },
}

/// A request for definitions.
#[derive(Clone, Debug)]
pub struct SymbolRequest {
    /// The query.
    pub query: SymbolQuery,
    /// The files to search.
    pub filter: FileFilter,
    /// The kinds to return; empty for all.
    pub kinds: Vec<DefinitionKind>,
}

/// How definitions were found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FoundBy {
    /// The exact name or id matches.
    #[default]
    Name,
    /// The name matches if case and `_` are ignored.
    OtherSpelling,
    /// The name begins with the text.
    Prefix,
    /// The name contains the text.
    Part,
    /// The definition is at the position.
    Definition,
    /// The reference at the position means the definition.
    Link,
    /// The name at the position may refer to the definition.
    Reference,
    /// The definition encloses the position.
    Enclosing,
}

/// The result of a request for definitions.
#[derive(Clone, Debug, Default)]
pub struct SymbolOutcome {
    /// The definitions: code before tests, code outside of functions before code inside, then ordered by path and
    /// position.
    pub definitions: Vec<FoundDefinition>,
    /// How the definitions were found.
    pub found_by: FoundBy,
    /// Similar names, if no definition was found.
    pub near: Vec<String>,
    /// The references at the position, if the query is one.
    pub references: Vec<(FileId, u32)>,
}

/// An error from finding definitions.
#[derive(Debug, thiserror::Error)]
pub enum SymbolError {
    /// The lexical index cannot be read.
    #[error(transparent)]
    Lexical(#[from] LexicalError),
    /// An artifact cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// A file cannot be read.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The query contains no valid name.
    #[error("{name:?} is not a name")]
    NotAName {
        /// The name as given.
        name: String,
    },
    /// The file is not indexed or its content is missing.
    #[error("{path:?} is not indexed, so its definitions are unknown")]
    NotIndexed {
        /// The path.
        path: String,
    },
    /// The file has no such line.
    #[error("line {line} is past the end of {path:?} ({})", count(*.n_lines, "line"))]
    NoLine {
        /// The path.
        path: String,
        /// Number of lines in the file.
        n_lines: u32,
        /// The requested line.
        line: u32,
    },
}

explain_by!(SymbolError: Lexical, File, Source);

/// Finds definitions. Returns all of them if several match. Without a linker, or if a reference cannot be resolved, the
/// name at a position can refer to any definition with that name.
pub fn symbols(
    sources: &Sources<'_>,
    request: &SymbolRequest,
    linker: Option<&Linker<'_>>,
) -> Result<SymbolOutcome, SymbolError> {
    let mut finder = Finder {
        sources: *sources,
        view: sources.view(),
        reader: sources.reader(),
        request,
        linker,
    };
    let mut outcome = match &request.query {
        SymbolQuery::Named(name) => finder.named(name)?,
        SymbolQuery::Prefix(start) => finder.prefixed(start)?,
        SymbolQuery::At { file, line, column } => finder.at(*file, *line, *column)?,
    };
    let path = |file: FileId| String::from_utf8_lossy(finder.view.file(file).path).into_owned();
    let is_part = |kind: DefinitionKind| matches!(kind, DefinitionKind::Impl | DefinitionKind::Module);
    outcome.definitions.sort_by_cached_key(|found| {
        (
            found.is_test || is_test_path(&path(found.file)),
            found.is_local,
            is_part(found.kind),
            found.file,
            found.index,
        )
    });
    Ok(outcome)
}

/// Returns names of definitions that begin with `start`, sorted, at most `limit`.
pub fn definition_names(view: &View, start: &str, limit: usize) -> Result<BTreeSet<String>, SymbolError> {
    let normal_start = normal_name(start);
    let mut names = BTreeSet::new();
    for segment in view.segments().iter() {
        let mut known = Vec::new();
        segment.lexical.for_each_defined_name(|name| {
            if name.starts_with(&normal_start) {
                known.push(name.to_owned());
            }
        })?;
        for name in known {
            for local in segment.lexical.defining(&name)? {
                // A document without a place belongs to another revision.
                let place = view.places(segment.base_doc + local).iter().next();
                let Some(extraction) = place.and_then(|place| view.extraction(place.file)).transpose()? else {
                    continue;
                };
                let defined = extraction.definitions.into_iter().map(|definition| definition.name);
                let defined: Vec<String> = defined.filter(|defined| normal_name(defined) == name).collect();
                let is_found = !defined.is_empty();
                names.extend(defined.into_iter().filter(|defined| defined.starts_with(start)));
                if is_found {
                    break;
                }
            }
            if names.len() >= limit {
                return Ok(names.into_iter().take(limit).collect());
            }
        }
    }
    Ok(names)
}

/// Returns the definitions at these indices of a file's list. `bytes` is the content of the file.
pub fn definitions_at(
    view: &View,
    file: FileId,
    bytes: &[u8],
    indices: impl Iterator<Item = u32>,
) -> Result<Vec<FoundDefinition>, SymbolError> {
    let extraction = view.extraction(file).transpose()?.unwrap_or_default();
    Ok(present(view, file, bytes, &extraction, indices))
}

/// Returns all definitions of a file by their indexes. `bytes` is the content of the file.
pub fn definitions_in(view: &View, file: FileId, bytes: &[u8]) -> Result<Vec<FoundDefinition>, SymbolError> {
    let extraction = view.extraction(file).transpose()?.unwrap_or_default();
    let indices = 0..extraction.definitions.len() as u32;
    Ok(present(view, file, bytes, &extraction, indices))
}

fn present(
    view: &View,
    file: FileId,
    bytes: &[u8],
    extraction: &Extraction,
    indices: impl Iterator<Item = u32>,
) -> Vec<FoundDefinition> {
    let file = FileDefinitions {
        file,
        path: &quoted(view.file(file).path),
        bytes,
        lines: &LineStarts::of(bytes),
        extraction,
        numbers: Numbers::default(),
    };
    indices.filter_map(|index| file.found(index)).collect()
}

struct Finder<'a> {
    sources: Sources<'a>,
    view: &'a View,
    reader: SourceReader<'a>,
    request: &'a SymbolRequest,
    linker: Option<&'a Linker<'a>>,
}

impl Finder<'_> {
    fn named(&mut self, name: &str) -> Result<SymbolOutcome, SymbolError> {
        if let Some(found) = self.by_id(name)? {
            return Ok(found);
        }
        let names: Vec<&str> = segments(name).collect();
        let Some((bare, outer)) = names.split_last() else {
            return Err(SymbolError::NotAName { name: name.to_owned() });
        };
        let files = self.defining_files(&normal_name(bare))?;
        let mut found = Vec::new();
        for file in files {
            found.extend(self.in_file(file, bare, outer)?);
        }
        let view = self.view;
        let is_exact = |found: &FoundDefinition| found.name == *bare && is_in_order(outer, &around(view, found));
        if found.iter().any(is_exact) {
            found.retain(is_exact);
            return Ok(SymbolOutcome {
                definitions: found,
                ..SymbolOutcome::default()
            });
        }
        let near = if found.is_empty() { self.near(bare)? } else { Vec::new() };
        Ok(SymbolOutcome {
            definitions: found,
            found_by: FoundBy::OtherSpelling,
            near,
            ..SymbolOutcome::default()
        })
    }

    /// Returns the definition with this id, if there is one.
    fn by_id(&mut self, id: &str) -> Result<Option<SymbolOutcome>, SymbolError> {
        // A path may contain `#`.
        let file = id
            .rmatch_indices('#')
            .find_map(|(at, _)| Some((self.view.find_text(&id[..at])?, &id[at..])));
        let Some((file, name)) = file else {
            return Ok(None);
        };
        let id = format!("{}{name}", quoted(self.view.file(file).path));
        let definitions = self.all_in_file(file, |_, _| true)?;
        let definitions: Vec<_> = definitions.into_iter().filter(|found| found.id == id).collect();
        Ok((!definitions.is_empty()).then(|| SymbolOutcome {
            definitions,
            ..SymbolOutcome::default()
        }))
    }

    /// Returns the files that define a name, normalized by [`normal_name`].
    fn defining_files(&self, normal: &str) -> Result<BTreeSet<FileId>, LexicalError> {
        let mut files = BTreeSet::new();
        for segment in self.view.segments().iter() {
            for local in segment.lexical.defining(normal)? {
                let places = self.view.places(segment.base_doc + local).iter();
                files.extend(places.map(|place| place.file));
            }
        }
        files.retain(|&file| self.request.filter.is_open() || self.request.filter.passes(self.view, file));
        Ok(files)
    }

    /// Returns the definitions named `bare` inside the containers `outer` in a file. Ignores differences in spelling.
    fn in_file(&mut self, file: FileId, bare: &str, outer: &[&str]) -> Result<Vec<FoundDefinition>, SymbolError> {
        let normal = normal_name(bare);
        let wanted: Vec<String> = outer.iter().copied().map(normal_name).collect();
        let mut found = self.all_in_file(file, |extraction, index| {
            normal_name(&extraction.definitions[index].name) == normal
        })?;
        found.retain(|found| {
            let around: Vec<String> = around(self.view, found).iter().map(|name| normal_name(name)).collect();
            is_in_order(&wanted, &around)
        });
        Ok(found)
    }

    /// Returns the definitions of a file that have a requested kind and match `is_meant`.
    fn all_in_file(
        &mut self,
        file: FileId,
        is_meant: impl Fn(&Extraction, usize) -> bool,
    ) -> Result<Vec<FoundDefinition>, SymbolError> {
        self.sources.go_on()?;
        let Some(extraction) = self.view.extraction(file).transpose()? else {
            return Ok(Vec::new());
        };
        let kinds = &self.request.kinds;
        let indices: Vec<usize> = (0..extraction.definitions.len())
            .filter(|&index| kinds.is_empty() || kinds.contains(&extraction.definitions[index].kind))
            .filter(|&index| is_meant(&extraction, index))
            .collect();
        if indices.is_empty() {
            return Ok(Vec::new());
        }
        let Source::Bytes(bytes) = self.reader.read(file)? else {
            return Ok(Vec::new());
        };
        Ok(present(
            self.view,
            file,
            &bytes,
            &extraction,
            indices.into_iter().map(|index| index as u32),
        ))
    }

    fn prefixed(&mut self, typed: &str) -> Result<SymbolOutcome, SymbolError> {
        let last = segments(typed).last().unwrap_or_default().to_owned();
        let start = normal_name(&last);
        if start.is_empty() {
            return Err(SymbolError::NotAName { name: start });
        }
        for (found_by, fits) in [
            (
                FoundBy::Prefix,
                (|name, part| name.starts_with(part)) as fn(&str, &str) -> bool,
            ),
            (FoundBy::Part, |name, part| name.contains(part)),
        ] {
            let mut files = BTreeSet::new();
            for name in self.known_names(|name| fits(name, &start))? {
                files.extend(self.defining_files(&name)?);
            }
            let mut definitions = Vec::new();
            for file in files {
                definitions.extend(self.all_in_file(file, |extraction, index| {
                    fits(&normal_name(&extraction.definitions[index].name), &start)
                })?);
            }
            // If any name begins with the exact spelling, names in other spellings are dropped.
            if definitions.iter().any(|found| found.name.starts_with(&last)) {
                definitions.retain(|found| found.name.starts_with(&last));
            }
            if !definitions.is_empty() {
                return Ok(SymbolOutcome {
                    definitions,
                    found_by,
                    ..SymbolOutcome::default()
                });
            }
        }
        Ok(SymbolOutcome::default())
    }

    /// Returns the names that are defined in the segments and match `is_wanted`, normalized by [`normal_name`]. Some
    /// may not occur in the view.
    fn known_names(&self, is_wanted: impl Fn(&str) -> bool) -> Result<BTreeSet<String>, LexicalError> {
        let mut names = BTreeSet::new();
        for segment in self.view.segments().iter() {
            segment.lexical.for_each_defined_name(|name| {
                if is_wanted(name) {
                    names.insert(name.to_owned());
                }
            })?;
        }
        Ok(names)
    }

    /// Returns names of the view that resemble `name`.
    fn near(&mut self, name: &str) -> Result<Vec<String>, SymbolError> {
        let mut near = Near::new(&normal_name(name));
        for segment in self.view.segments().iter() {
            segment.lexical.for_each_defined_name(|known| near.see(known))?;
        }
        let mut names = Vec::new();
        for normal in near.best() {
            if let Some(file) = self.defining_files(&normal)?.first() {
                let found = self.in_file(*file, &normal, &[])?;
                names.extend(found.into_iter().map(|found| found.name).take(1));
            }
        }
        Ok(names)
    }

    fn at(&mut self, file: FileId, line: u32, column: Option<u32>) -> Result<SymbolOutcome, SymbolError> {
        let path = quoted(self.view.file(file).path).into_owned();
        let not_indexed = || SymbolError::NotIndexed { path: path.clone() };
        let blob = self.view.file(file).blob.ok_or_else(not_indexed)?;
        let (segment, local) = self.view.segments().of_blob(blob).ok_or_else(not_indexed)?;
        let extraction = segment.artifacts.extraction(local)?;
        let references = segment.artifacts.references(local)?;
        let Source::Bytes(bytes) = self.reader.read(file)? else {
            return Err(not_indexed());
        };
        let lines = LineStarts::of(&bytes);
        if line == 0 || line > lines.count() {
            return Err(SymbolError::NoLine {
                path,
                n_lines: lines.count(),
                line,
            });
        }
        let of_line = lines.range(line, line);
        let place = match column {
            Some(column) => {
                let at = of_line.start + offset_of_column(&bytes[of_line], column);
                at..at + 1
            }
            None => of_line,
        };
        // A cursor directly after the last letter still selects the name.
        let stands_there = |range: crate::model::ByteRange| {
            (range.start as usize) < place.end && place.start <= range.end as usize && !range.is_empty()
        };
        let named = |index: usize| stands_there(extraction.definitions[index].name_range);
        let defined: Vec<u32> = (0..extraction.definitions.len())
            .filter(|&index| named(index))
            .map(|index| index as u32)
            .collect();
        let of_file = FileDefinitions {
            file,
            path: &path,
            bytes: &bytes,
            lines: &lines,
            extraction: &extraction,
            numbers: Numbers::default(),
        };
        if !defined.is_empty() {
            return Ok(SymbolOutcome {
                definitions: defined.into_iter().filter_map(|index| of_file.found(index)).collect(),
                found_by: FoundBy::Definition,
                ..SymbolOutcome::default()
            });
        }
        let here = references.iter().filter(|reference| stands_there(reference.range));
        let references = here.clone().map(|reference| (file, reference.range.start)).collect();
        let (definitions, found_by) = self.meant_by(file, here)?;
        if !definitions.is_empty() {
            return Ok(SymbolOutcome {
                definitions,
                found_by,
                references,
                ..SymbolOutcome::default()
            });
        }
        let around = |index: &usize| {
            let range = extraction.definitions[*index].range.as_usize();
            range.start <= place.start && place.start < range.end
        };
        let innermost = (0..extraction.definitions.len())
            .filter(around)
            .min_by_key(|&index| extraction.definitions[index].range.len());
        Ok(SymbolOutcome {
            definitions: innermost
                .and_then(|index| of_file.found(index as u32))
                .into_iter()
                .collect(),
            found_by: FoundBy::Enclosing,
            references,
            ..SymbolOutcome::default()
        })
    }

    /// Returns the definitions that references of a file mean. For one that cannot be resolved, returns those that have
    /// its name. If some are in the container that qualifies it, returns only those.
    fn meant_by<'r>(
        &mut self,
        file: FileId,
        references: impl Iterator<Item = &'r Reference>,
    ) -> Result<(Vec<FoundDefinition>, FoundBy), SymbolError> {
        let mut definitions: Vec<FoundDefinition> = Vec::new();
        let mut found_by = FoundBy::Link;
        let (mut asked, mut known) = (HashSet::new(), HashSet::new());
        for reference in references {
            let mut linked = self.linked(file, reference)?;
            if !linked.is_empty() {
                linked.retain(|found| known.insert((found.file, found.index)));
                definitions.extend(linked);
                continue;
            }
            if !asked.insert((&reference.name, &reference.qualifier)) {
                continue;
            }
            let mut of_reference = Vec::new();
            for file in self.defining_files(&normal_name(&reference.name))? {
                of_reference.extend(self.in_file(file, &reference.name, &[])?);
            }
            of_reference.retain(|found| found.name == reference.name);
            let is_qualified = |found: &FoundDefinition| {
                let last = found.container.as_deref().and_then(|outer| outer.rsplit('.').next());
                reference.qualifier.is_some() && last == reference.qualifier.as_deref()
            };
            if of_reference.iter().any(is_qualified) {
                of_reference.retain(is_qualified);
            }
            of_reference.retain(|found| known.insert((found.file, found.index)));
            if !of_reference.is_empty() {
                found_by = FoundBy::Reference;
            }
            definitions.extend(of_reference);
        }
        Ok((definitions, found_by))
    }

    /// Returns the selected definitions that a reference surely means.
    fn linked(&mut self, file: FileId, reference: &Reference) -> Result<Vec<FoundDefinition>, SymbolError> {
        let link = self
            .linker
            .and_then(|linker| linker.link_at(file, reference.range.start));
        let mut found = Vec::new();
        for DefId { file, index } in link
            .filter(|link| link.tier.is_sure())
            .map_or(Vec::new(), |link| link.targets)
        {
            if self.request.filter.is_open() || self.request.filter.passes(self.view, file) {
                found.extend(self.all_in_file(file, |_, at| at == index as usize)?);
            }
        }
        Ok(found)
    }
}

/// Returns the names that enclose a definition, outermost first: folders, the file without its extension, and
/// definitions.
fn around(view: &View, found: &FoundDefinition) -> Vec<String> {
    let path = String::from_utf8_lossy(view.file(found.file).path);
    let (folders, name) = path.rsplit_once('/').unwrap_or(("", &path));
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    let outer = found.container.as_deref().unwrap_or_default();
    let names = folders.split('/').chain([stem]).chain(outer.split('.'));
    names.filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

/// Returns true if `around` contains all of `wanted` in the same order.
fn is_in_order<T: AsRef<str>>(wanted: &[T], around: &[String]) -> bool {
    let mut left = around.iter();
    wanted.iter().all(|name| left.any(|known| known == name.as_ref()))
}

/// Converts a 1-based column in characters to a byte offset in the line.
fn offset_of_column(line: &[u8], column: u32) -> usize {
    let text = String::from_utf8_lossy(line);
    let before: usize = text
        .chars()
        .take(column.saturating_sub(1) as usize)
        .map(char::len_utf8)
        .sum();
    before.min(line.len().saturating_sub(1))
}

/// A line that contains a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Usage {
    /// The file.
    pub file: FileId,
    /// Line number, 1-based.
    pub line: u32,
    /// The kind of use.
    pub kind: UsageKind,
    /// The text of the line.
    pub text: String,
}

/// How a line uses a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UsageKind {
    /// The line uses the name in code.
    Reference(ReferenceKind),
    /// The line imports the name.
    Import,
    /// The name occurs in a comment, a string or a file that is not parsed.
    Text,
}

impl UsageKind {
    /// The name in output.
    pub fn name(self) -> &'static str {
        match self {
            Self::Reference(ReferenceKind::Call) => "call",
            Self::Reference(ReferenceKind::Type) => "type",
            Self::Reference(ReferenceKind::Inherit) => "inherit",
            Self::Reference(ReferenceKind::Macro) => "macro",
            Self::Reference(ReferenceKind::Attribute) => "attribute",
            Self::Reference(ReferenceKind::Name) => "name",
            Self::Reference(ReferenceKind::Value) => "value",
            Self::Reference(ReferenceKind::Member) => "member",
            Self::Reference(ReferenceKind::Import) => "import",
            Self::Import => "import",
            Self::Text => "text",
        }
    }
}

/// The uses of one name in a file, grouped by line.
#[derive(Default)]
struct LineFacts {
    defined: HashSet<u32>,
    /// The kind of the first reference in each line.
    referred: HashMap<u32, ReferenceKind>,
    /// First and last lines of imports, in source order, without nested ranges.
    imported: Vec<(u32, u32)>,
}

impl LineFacts {
    fn of(sources: &Sources<'_>, file: FileId, name: &str) -> Result<Self, SymbolError> {
        let view = sources.view();
        let mut facts = Self::default();
        let Some((segment, local)) = view.file(file).blob.and_then(|blob| view.segments().of_blob(blob)) else {
            return Ok(facts);
        };
        let Source::Bytes(bytes) = sources.reader().read(file)? else {
            return Ok(facts);
        };
        let starts = LineStarts::of(&bytes);
        let line_of = |start: u32| starts.line_of(start as usize);
        let extraction = segment.artifacts.extraction(local)?;
        let named = extraction.definitions.iter().filter(|known| known.name == name);
        facts.defined.extend(named.map(|known| line_of(known.name_range.start)));
        let imports = extraction.imports.iter();
        facts.imported = outermost(imports.map(|import| starts.of_range(&bytes, import.range.as_usize())));
        let references = segment.artifacts.references(local)?;
        let named = references.iter().filter(|known| known.name == name);
        for known in named {
            facts.referred.entry(line_of(known.range.start)).or_insert(known.kind);
        }
        Ok(facts)
    }

    /// Returns the use of the name in a line; `None` if the line defines the name.
    fn kind(&self, line: u32) -> Option<UsageKind> {
        match self.referred.get(&line) {
            Some(ReferenceKind::Import) => return Some(UsageKind::Import),
            Some(kind) => return Some(UsageKind::Reference(*kind)),
            None => {}
        }
        let after = self.imported.partition_point(|(first, _)| *first <= line);
        if after > 0 && line <= self.imported[after - 1].1 {
            return Some(UsageKind::Import);
        }
        (!self.defined.contains(&line)).then_some(UsageKind::Text)
    }
}

/// Removes ranges of lines that are inside another range, and sorts the others.
fn outermost(ranges: impl Iterator<Item = (u32, u32)>) -> Vec<(u32, u32)> {
    let mut ranges: Vec<(u32, u32)> = ranges.collect();
    ranges.sort_unstable_by_key(|&(first, last)| (first, std::cmp::Reverse(last)));
    let mut end = 0;
    ranges.retain(|&(_, last)| {
        let is_further = last > end;
        end = end.max(last);
        is_further
    });
    ranges
}

/// Classifies the lines of a file that contain `name` as a word. Omits lines that define it.
pub fn usages(sources: &Sources<'_>, file: FileId, name: &str, lines: &[GrepLine]) -> Result<Vec<Usage>, SymbolError> {
    let facts = LineFacts::of(sources, file, name)?;
    let usage = |line: &GrepLine| {
        Some(Usage {
            file,
            line: line.number,
            kind: facts.kind(line.number)?,
            text: String::from_utf8_lossy(&line.text).trim_end().to_owned(),
        })
    };
    Ok(lines.iter().filter(|line| line.is_match).filter_map(usage).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn containers_are_matched_in_order() {
        let names = |list: &[&str]| list.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let around = names(&["src", "query", "parser"]);
        assert!(is_in_order(&names(&["query", "parser"]), &around));
        assert!(is_in_order(&names(&["src", "parser"]), &around));
        assert!(is_in_order::<&str>(&[], &around));
        assert!(!is_in_order(&names(&["parser", "query"]), &around));
    }

    #[test]
    fn ranges_of_lines_in_others_are_left_out() {
        let ranges = [(5, 5), (1, 4), (2, 3), (1, 1), (5, 9), (8, 12)];
        assert_eq!(outermost(ranges.into_iter()), [(1, 4), (5, 9), (8, 12)]);
    }

    #[test]
    fn columns_count_characters() {
        assert_eq!(offset_of_column("größe x".as_bytes(), 7), 8);
        assert_eq!(offset_of_column(b"ab", 99), 1);
        assert_eq!(offset_of_column(b"", 1), 0);
    }
}
