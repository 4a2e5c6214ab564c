//! Reads the exact text of a file of a view, or of named parts of it.

use std::ops::Range;

use crate::artifact;
use crate::extract::{self, DefinitionKind, Extraction};
use crate::git::FileMode;
use crate::index::lexical::normal_name;
use crate::model::count::count;
use crate::model::{Explain, Explanation, Hint, NameKind, RepoPath, quoted, with_placeholders, without_placeholders};
use crate::sidecar::FileError;
use crate::snapshot::{FileId, View};

use super::definition::{FileDefinitions, FoundDefinition, Numbers, qualified_name};
use super::lines::LineStarts;
use super::near::Near;
use super::source::{Source, SourceError, Sources, too_large};

/// A file to read, and optionally a part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadTarget {
    /// The file.
    pub file: FileId,
    /// The part that the target names.
    pub part: Option<PartQuery>,
}

/// A part of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PartQuery {
    /// Lines, 1-based and inclusive. If the second is `None`, the range extends to the last line.
    Lines(u32, Option<u32>),
    /// The section of a document with this heading.
    Heading(String),
    /// The value at a path of keys, such as `a.b.0`.
    Key(String),
    /// Every definition whose qualified name equals this name or ends with it.
    Symbol(String),
    /// The definition with this text after the `#` of its id.
    Definition(String),
}

/// The result of reading a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadOutcome {
    /// The file.
    pub file: FileId,
    /// All bytes of the file; for a symbolic link, its target.
    pub bytes: Vec<u8>,
    /// Number of lines.
    pub n_lines: u32,
    /// True for a symbolic link.
    pub is_link: bool,
    /// The requested parts, in request order; the whole file if none was requested.
    pub parts: Vec<Part>,
}

/// A part of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The heading, the path of keys or the qualified name.
    pub title: Option<String>,
    /// The byte range.
    pub range: Range<usize>,
    /// First line, 1-based; 0 for an empty file.
    pub start_line: u32,
    /// Last line, 1-based, inclusive; 0 for an empty file.
    pub end_line: u32,
}

/// An error from reading a file.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file does not exist.
    #[error("no file {path:?} at {reference}")]
    UnknownPath {
        /// The path as given.
        path: String,
        /// The revision.
        reference: String,
        /// Similar paths.
        near: Vec<String>,
    },
    /// The path is a folder.
    #[error("{path:?} is a folder")]
    Folder {
        /// The path as given.
        path: String,
    },
    /// The path is a submodule.
    #[error("{path:?} is a submodule, another repository")]
    Submodule {
        /// The path.
        path: String,
    },
    /// The content of the file is not available.
    #[error("the content of {path:?} is missing or damaged in git")]
    Missing {
        /// The path.
        path: String,
    },
    /// The file exceeds the size limit, or the system denies access.
    #[error("cannot read {path:?}: {reason}")]
    Refused {
        /// The path.
        path: String,
        /// The reason.
        reason: String,
    },
    /// The file has no such line.
    #[error("line {first} is past the end of {path:?} ({})", count(*.n_lines, "line"))]
    NoLine {
        /// The path.
        path: String,
        /// Number of lines in the file.
        n_lines: u32,
        /// The first requested line.
        first: u32,
    },
    /// The file has no such part.
    #[error("no {what} {name:?} in {path:?}")]
    NoPart {
        /// The path.
        path: String,
        /// The kind of part: heading, key or symbol.
        what: &'static str,
        /// The name as given.
        name: String,
        /// Similar names of parts.
        near: Vec<String>,
    },
    /// An object or the worktree cannot be read.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// An artifact cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
}

impl Explain for ReadError {
    fn explain(&self) -> Explanation {
        match self {
            Self::UnknownPath { path, near, .. } => Explanation::misspelt(NameKind::Path, path, near),
            Self::NoPart { near, .. } => Explanation::hinting(Hint::did_you_mean(near)),
            Self::Folder { path } => Explanation::hinting(Hint::each(
                format!("run codescout outline {path}"),
                format!("use outline with path {path:?} to list its contents"),
            )),
            Self::Source(error) => error.explain(),
            Self::File(error) => error.explain(),
            _ => Explanation::default(),
        }
    }
}

/// Parses a target: `path`, `path:LINE`, `path:START-END`, or the id of a definition, `path#Parser.parse`.
pub fn read_target(view: &View, text: &str) -> Result<ReadTarget, ReadError> {
    let trimmed = text.trim_start_matches("./");
    if let Some(file) = view.find_text(trimmed) {
        return Ok(ReadTarget { file, part: None });
    }
    let with_part = |path: &str, part: Option<PartQuery>| Some((view.find_text(path)?, part?));
    let lines = trimmed
        .rsplit_once(':')
        .and_then(|(path, lines)| with_part(path, parse_lines(lines)))
        .or_else(|| {
            let (path, line, column) = split_position(trimmed)?;
            column.and(with_part(path, Some(PartQuery::Lines(line, Some(line)))))
        });
    let symbol = || {
        // A path may contain `#`.
        let mut places = trimmed
            .rmatch_indices('#')
            .map(|(at, _)| (&trimmed[..at], &trimmed[at + 1..]));
        places.find_map(|(path, name)| with_part(path, Some(PartQuery::Definition(name.to_owned()))))
    };
    match lines.or_else(symbol) {
        Some((file, part)) => Ok(ReadTarget { file, part: Some(part) }),
        None => Err(unknown_path(view, trimmed)),
    }
}

/// Returns the paths that [`read_target`] may look up for a target, ascending.
pub fn paths_in_target(text: &str) -> Vec<RepoPath> {
    let trimmed = text.trim_start_matches("./");
    let ends = trimmed.rmatch_indices(':').take(2).chain(trimmed.rmatch_indices('#'));
    let ends = ends.map(|(at, _)| at).chain([trimmed.len()]);
    let mut paths: Vec<RepoPath> = ends
        .map(|end| RepoPath::new(without_placeholders(&trimmed[..end])))
        .collect();
    paths.sort_unstable();
    paths.dedup();
    paths
}

/// Splits `path:line` or `path:line:column`; both numbers are 1-based.
pub fn split_position(text: &str) -> Option<(&str, u32, Option<u32>)> {
    let number = |text: &str| text.parse().ok().filter(|number| *number > 0);
    let (before, last) = text.rsplit_once(':')?;
    let last = number(last)?;
    match before
        .rsplit_once(':')
        .and_then(|(path, line)| Some((path, number(line)?)))
    {
        Some((path, line)) => Some((path, line, Some(last))),
        None => Some((before, last, None)),
    }
}

/// Parses a range of lines: `5`, `5-9`, `5-`.
pub fn parse_lines(text: &str) -> Option<PartQuery> {
    let number = |text: &str| text.trim().parse().ok().filter(|number| *number > 0);
    let (first, last) = match text.split_once('-') {
        None => (number(text)?, Some(number(text)?)),
        Some((first, "")) => (number(first)?, None),
        Some((first, last)) => (number(first)?, Some(number(last)?)),
    };
    last.is_none_or(|last| first <= last)
        .then_some(PartQuery::Lines(first, last))
}

/// Maximum number of suggested paths.
const MAX_NEAR_PATHS: usize = 3;

/// Returns the paths of the files with the given names, in the order of the names.
fn paths_named(view: &View, names: &[String]) -> Vec<String> {
    let named = |name: &String| {
        let paths = view.files().map(|(_, file)| with_placeholders(file.path).into_owned());
        let is_named = |path: &String| path.rsplit('/').next() == Some(name);
        paths.filter(is_named).take(MAX_NEAR_PATHS).collect::<Vec<_>>()
    };
    let mut paths: Vec<String> = names.iter().flat_map(named).collect();
    paths.truncate(MAX_NEAR_PATHS);
    paths
}

/// Quotes a path for messages. Bytes that are not UTF-8 are replaced.
fn shown(path: &str) -> String {
    quoted(&without_placeholders(path)).into_owned()
}

/// Returns the error for a path that is not in a view, with similar paths as suggestions.
pub fn unknown_path(view: &View, path: &str) -> ReadError {
    let trimmed = path.trim_end_matches('/');
    if is_folder(view, trimmed) {
        return ReadError::Folder { path: shown(trimmed) };
    }
    let bare = trimmed.split(['#', ':']).next().unwrap_or(trimmed);
    let name = bare.rsplit('/').next().unwrap_or(bare);
    let mut same_name = Vec::new();
    let mut near = Near::new(bare);
    let mut near_name = Near::new(name);
    for (_, file) in view.files() {
        let known = with_placeholders(file.path);
        let known_name = known.rsplit('/').next().unwrap_or(&known);
        if known_name == name {
            same_name.push(known.into_owned());
            continue;
        }
        near.see(&known);
        near_name.see(known_name);
    }
    same_name.truncate(MAX_NEAR_PATHS);
    let near = [same_name, near.best(), paths_named(view, &near_name.best())]
        .into_iter()
        .find(|found| !found.is_empty());
    ReadError::UnknownPath {
        path: shown(path),
        reference: view.provenance().reference.clone(),
        near: near.unwrap_or_default().iter().map(|path| shown(path)).collect(),
    }
}

/// Returns true if any file of the view is below `path`.
pub fn is_folder(view: &View, path: &str) -> bool {
    let prefix = format!("{}/", path.trim_end_matches('/'));
    let prefix = without_placeholders(&prefix);
    view.files().any(|(_, file)| file.path.starts_with(&prefix))
}

/// Reads a file and finds the requested parts.
pub fn read(sources: &Sources<'_>, file: FileId, queries: &[PartQuery]) -> Result<ReadOutcome, ReadError> {
    let view = sources.view();
    let entry = view.file(file).entry();
    let path = entry.path.to_text().into_owned();
    let bytes = match sources.reader().read(file)? {
        Source::Bytes(bytes) => bytes,
        Source::Submodule => return Err(ReadError::Submodule { path }),
        Source::Missing => return Err(ReadError::Missing { path }),
        Source::TooLarge { size } => {
            let reason = too_large(size);
            return Err(ReadError::Refused { path, reason });
        }
        Source::Refused(reason) => return Err(ReadError::Refused { path, reason }),
    };
    let lines = LineStarts::of(&bytes);
    let parts = if queries.is_empty() {
        vec![part(None, 0..bytes.len(), &bytes, &lines)]
    } else {
        let text = Text {
            file,
            path: &path,
            bytes: &bytes,
            lines: &lines,
            extraction: facts(view, file, &bytes, queries)?,
        };
        let found = queries.iter().map(|query| text.find(query));
        found.collect::<Result<Vec<_>, _>>()?.concat()
    };
    Ok(ReadOutcome {
        file,
        n_lines: lines.count(),
        is_link: entry.mode == FileMode::Symlink,
        parts,
        bytes,
    })
}

/// Returns the extraction of a file. Extracts the file now if it is not indexed.
fn facts(view: &View, file: FileId, bytes: &[u8], queries: &[PartQuery]) -> Result<Extraction, FileError> {
    if queries.iter().all(|query| matches!(query, PartQuery::Lines(..))) {
        return Ok(Extraction::default());
    }
    match view.extraction(file) {
        Some(extraction) => extraction,
        None => {
            let lang = extract::refine(view.lang(file), bytes);
            Ok(artifact::extract(bytes, lang, &extract::Options::default()))
        }
    }
}

fn part(title: Option<String>, range: Range<usize>, bytes: &[u8], lines: &LineStarts<'_>) -> Part {
    let (start_line, end_line) = if range.is_empty() {
        (0, 0)
    } else {
        (
            lines.line_of(range.start),
            lines.line_of(range.end.min(bytes.len()) - 1),
        )
    };
    Part {
        title,
        range,
        start_line,
        end_line,
    }
}

/// A file and the data needed to find its parts.
struct Text<'a> {
    file: FileId,
    path: &'a str,
    bytes: &'a [u8],
    lines: &'a LineStarts<'a>,
    extraction: Extraction,
}

impl Text<'_> {
    fn find(&self, query: &PartQuery) -> Result<Vec<Part>, ReadError> {
        match query {
            PartQuery::Lines(first, last) => self.some_lines(*first, *last),
            PartQuery::Heading(title) => self.sections(title),
            PartQuery::Key(path) => self.values(path),
            PartQuery::Symbol(name) => self.symbols(name, |definition| self.is_called(definition, name)),
            PartQuery::Definition(name) => {
                let id = format!("{}#{name}", self.path);
                self.symbols(name, |definition| definition.id == id)
            }
        }
    }

    fn some_lines(&self, first: u32, last: Option<u32>) -> Result<Vec<Part>, ReadError> {
        let n_lines = self.lines.count();
        if first > n_lines {
            return Err(ReadError::NoLine {
                path: self.path.to_owned(),
                n_lines,
                first,
            });
        }
        let range = self.lines.range(first, last.unwrap_or(n_lines));
        Ok(vec![part(None, range, self.bytes, self.lines)])
    }

    fn sections(&self, title: &str) -> Result<Vec<Part>, ReadError> {
        let plain = |title: &str| title.trim().trim_start_matches('#').trim().to_lowercase();
        let wanted = plain(title);
        let headings = &self.extraction.headings;
        let named = headings.iter().filter(|heading| plain(&heading.title) == wanted);
        let parts: Vec<Part> = named
            .map(|heading| self.part_of(&heading.title, heading.range.as_usize()))
            .collect();
        let titles = headings.iter().map(|heading| heading.title.as_str());
        self.some(parts, "heading", title, titles)
    }

    /// Returns the values at a path of keys. Keys are nested definitions, and the value is the item of the last key.
    fn values(&self, path: &str) -> Result<Vec<Part>, ReadError> {
        let definitions = &self.extraction.definitions;
        let keys: Vec<_> = definitions
            .iter()
            .filter(|known| known.kind == DefinitionKind::Key)
            .collect();
        let named: Vec<(String, Range<usize>)> = keys
            .into_iter()
            .map(|key| (qualified_name(definitions, key), key.range.as_usize()))
            .collect();
        let parts = named
            .iter()
            .filter(|(name, _)| name == path)
            .map(|(name, range)| self.part_of(name, range.clone()))
            .collect();
        self.some(parts, "key", path, named.iter().map(|(name, _)| name.as_str()))
    }

    fn is_called(&self, definition: &FoundDefinition, name: &str) -> bool {
        let wanted: Vec<String> = segments(name).map(normal_name).collect();
        let outer = definition.container.as_deref().unwrap_or_default().split('.');
        let names = outer.chain([definition.name.as_str()]).map(normal_name);
        names.collect::<Vec<_>>().ends_with(&wanted)
    }

    fn symbols(&self, name: &str, is_meant: impl Fn(&FoundDefinition) -> bool) -> Result<Vec<Part>, ReadError> {
        let of_file = FileDefinitions {
            file: self.file,
            path: self.path,
            bytes: self.bytes,
            lines: self.lines,
            extraction: &self.extraction,
            numbers: Numbers::default(),
        };
        let definitions = &self.extraction.definitions;
        let all = (0..definitions.len() as u32).filter_map(|index| of_file.found(index));
        let found: Vec<FoundDefinition> = all.filter(is_meant).collect();
        let parts = found
            .iter()
            .map(|definition| {
                let title = definition
                    .id
                    .strip_prefix(self.path)
                    .and_then(|rest| rest.strip_prefix('#'));
                let title = title.unwrap_or_default();
                self.part_of(title, definition.range.clone())
            })
            .collect();
        let wanted = segments(name).last().unwrap_or(name);
        let near = super::near::nearest(wanted, definitions.iter().map(|known| known.name.as_str()));
        let full_name = |near: String| {
            let named = definitions.iter().find(|known| known.name == near);
            named.map_or(near, |named| qualified_name(definitions, named))
        };
        self.some_of(parts, "symbol", name, near.into_iter().map(full_name).collect())
    }

    fn part_of(&self, title: &str, range: Range<usize>) -> Part {
        let end = range.end.min(self.bytes.len());
        part(
            Some(title.to_owned()),
            range.start.min(end)..end,
            self.bytes,
            self.lines,
        )
    }

    fn some<'n>(
        &self,
        parts: Vec<Part>,
        what: &'static str,
        name: &str,
        known: impl Iterator<Item = &'n str>,
    ) -> Result<Vec<Part>, ReadError> {
        self.some_of(parts, what, name, super::near::nearest(name, known))
    }

    fn some_of(
        &self,
        parts: Vec<Part>,
        what: &'static str,
        name: &str,
        near: Vec<String>,
    ) -> Result<Vec<Part>, ReadError> {
        if !parts.is_empty() {
            return Ok(parts);
        }
        Err(ReadError::NoPart {
            path: self.path.to_owned(),
            what,
            name: name.to_owned(),
            near,
        })
    }
}

/// Splits a qualified name: `a::b`, `a.b`, `a#b`, `a->b`, `a/b`.
pub(super) fn segments(name: &str) -> impl Iterator<Item = &str> {
    let name = name.trim();
    let name = name.strip_suffix("()").unwrap_or(name);
    name.split([':', '.', '#', '/'])
        .flat_map(|piece| piece.split("->"))
        .filter(|segment| !segment.is_empty())
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use crate::extract::Definition;
    use crate::model::ByteRange;

    #[test]
    fn lines_as_people_write_them() {
        assert_eq!(parse_lines("5"), Some(PartQuery::Lines(5, Some(5))));
        assert_eq!(parse_lines("5-9"), Some(PartQuery::Lines(5, Some(9))));
        assert_eq!(parse_lines("5-"), Some(PartQuery::Lines(5, None)));
        for bad in ["", "0", "9-5", "a", "-3", "1-b"] {
            assert_eq!(parse_lines(bad), None, "{bad}");
        }
        assert_eq!(split_position("a.rs:3"), Some(("a.rs", 3, None)));
        assert_eq!(split_position("a.rs:3:7"), Some(("a.rs", 3, Some(7))));
        assert_eq!(split_position("a.rs"), None);
    }

    fn key(name: &str, container: Option<u32>, start: u32, end: u32) -> Definition {
        Definition {
            name: name.to_owned(),
            kind: DefinitionKind::Key,
            container,
            qualifier: None,
            range: ByteRange::new(start, end),
            name_range: ByteRange::new(start, start + 1),
            signature: ByteRange::new(start, end),
            doc: None,
            arity: None,
        }
    }

    #[test]
    fn keys_are_found_by_their_path() {
        let bytes = b"a:\n  b: 1\n  c: 2\nb: 3\n";
        let text = Text {
            file: FileId(0),
            path: "x.yaml",
            bytes,
            lines: &LineStarts::of(bytes),
            extraction: Extraction {
                definitions: vec![
                    key("a", None, 0, 17),
                    key("b", Some(0), 5, 9),
                    key("c", Some(0), 12, 16),
                    key("b", None, 17, 21),
                ],
                ..Extraction::default()
            },
        };
        let found = text.find(&PartQuery::Key("a.c".to_owned())).unwrap();
        assert_eq!((found[0].range.clone(), found[0].start_line), (12..16, 3));
        let wrong = text.find(&PartQuery::Key("a.x".to_owned())).unwrap_err();
        assert!(matches!(&wrong, ReadError::NoPart { what: "key", near, .. } if near.contains(&"a.b".to_owned())));
    }

    #[test]
    fn sections_and_symbols_are_found_by_name() {
        let bytes = b"# One\ntext\n## Two `x`\nmore\n# Three\n";
        let extraction = |name: &str, bytes: &[u8]| {
            artifact::extract(bytes, extract::by_name(name).unwrap(), &extract::Options::default())
        };
        let text = Text {
            file: FileId(0),
            path: "x.md",
            bytes,
            lines: &LineStarts::of(bytes),
            extraction: extraction("markdown", bytes),
        };
        let found = text.find(&PartQuery::Heading("## three".to_owned())).unwrap();
        assert_eq!((found[0].start_line, found[0].end_line), (5, 5));
        assert!(text.find(&PartQuery::Heading("four".to_owned())).is_err());

        let bytes = b"struct Parser;\nimpl Parser {\n    /// Doc.\n    fn parse() {}\n}\nfn parse() {}\n";
        let text = Text {
            file: FileId(0),
            path: "x.rs",
            bytes,
            lines: &LineStarts::of(bytes),
            extraction: extraction("rust", bytes),
        };
        let lines = |name: &str| {
            let parts = text.find(&PartQuery::Symbol(name.to_owned())).unwrap();
            parts.iter().map(|p| (p.start_line, p.end_line)).collect::<Vec<_>>()
        };
        assert_eq!(lines("Parser::parse"), [(3, 4)]);
        assert_eq!(lines("Parse"), [(3, 4), (6, 6)]);
        let by_id = text.find(&PartQuery::Definition("parse".to_owned())).unwrap();
        assert_eq!(by_id.iter().map(|p| p.start_line).collect::<Vec<_>>(), [6]);
    }
}
