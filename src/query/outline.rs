//! Outlines a repository, a folder or a file: as a summary, a tree, definitions, or a map within a token budget.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use rayon::prelude::*;

use crate::extract::{self, DefinitionKind, Heading, Import};
use crate::link::{DefId, Linker, Usage};
use crate::model::{Lang, explain_by, quoted, with_placeholders, without_placeholders};
use crate::sidecar::FileError;
use crate::snapshot::{FileId, View};

use super::definition::{FileDefinitions, FoundDefinition, Numbers};
use super::filter::FileFilter;
use super::lines::LineStarts;
use super::path_role::{is_test_path, test_folder};
use super::source::{Source, SourceError, Sources};

/// Approximate number of bytes of code per token.
const BYTES_PER_TOKEN: usize = 4;
/// Maximum number of folders in a summary.
const MAX_FOLDERS: usize = 20;
/// Maximum number of entry points, of build files and of test folders in a summary.
const MAX_NAMED: usize = 20;

/// File names that are typical for the entry points of programs, with or without an extension.
const ENTRY_POINTS: &[&str] = &[
    "main",
    "__main__",
    "app",
    "index",
    "server",
    "cli",
    "manage",
    "wsgi",
    "asgi",
    "Program",
    "Main",
    "Application",
];
/// Files that describe how a project is built, or its dependencies.
const BUILD_FILES: &[&str] = &[
    "Cargo.toml",
    "package.json",
    "pyproject.toml",
    "setup.py",
    "setup.cfg",
    "requirements.txt",
    "go.mod",
    "go.work",
    "pom.xml",
    "build.gradle",
    "build.gradle.kts",
    "settings.gradle",
    "settings.gradle.kts",
    "build.sbt",
    "CMakeLists.txt",
    "Makefile",
    "GNUmakefile",
    "meson.build",
    "configure.ac",
    "BUILD.bazel",
    "WORKSPACE",
    "MODULE.bazel",
    "Dockerfile",
    "docker-compose.yml",
    "compose.yaml",
    "Gemfile",
    "Rakefile",
    "composer.json",
    "mix.exs",
    "rebar.config",
    "Package.swift",
    "pubspec.yaml",
    "stack.yaml",
    "dune-project",
    "build.zig",
    "DESCRIPTION",
    "justfile",
    "tsconfig.json",
    "deno.json",
];
/// Extensions of build files.
const BUILD_ENDINGS: &[&str] = &[
    ".csproj",
    ".fsproj",
    ".sln",
    ".cabal",
    ".gemspec",
    ".rockspec",
    ".nimble",
    ".opam",
];

/// An error from outlining.
#[derive(Debug, thiserror::Error)]
pub enum OutlineError {
    /// An artifact cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// A file cannot be read.
    #[error(transparent)]
    Source(#[from] SourceError),
}

explain_by!(OutlineError: File, Source);

/// Number of files and lines of a language or folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// A language, or a path in which bytes that are not UTF-8 are replaced.
    pub name: String,
    /// Number of files.
    pub n_files: u32,
    /// Number of lines in the indexed files.
    pub n_lines: u64,
}

/// An overview of a project.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Number of files.
    pub n_files: u32,
    /// Number of lines in the indexed files.
    pub n_lines: u64,
    /// The languages, most lines first.
    pub languages: Vec<Share>,
    /// The direct subfolders, most lines first. Direct files count together as `.`.
    pub folders: Vec<Share>,
    /// Files with names that are typical for entry points.
    pub entry_points: Vec<String>,
    /// Build files.
    pub build_files: Vec<String>,
    /// Folders that hold tests.
    pub test_folders: Vec<String>,
}

/// A folder or file of a tree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TreeNode {
    /// The last component of the path, in which bytes that are not UTF-8 are replaced.
    pub name: String,
    /// True for a folder.
    pub is_folder: bool,
    /// Number of files in the folder; 1 for a file.
    pub n_files: u32,
    /// Number of lines in the folder or file.
    pub n_lines: u64,
    /// The direct children, folders first; empty below the requested depth.
    pub children: Vec<TreeNode>,
}

/// The definitions of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileSymbols {
    /// The file.
    pub file: FileId,
    /// The definitions in source order, each with its nesting depth, 0-based.
    pub definitions: Vec<(u32, FoundDefinition)>,
}

/// The headings of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileHeadings {
    /// The file.
    pub file: FileId,
    /// Level, title, and first and last line (1-based).
    pub headings: Vec<(u8, String, u32, u32)>,
}

/// The imports of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileImports {
    /// The file.
    pub file: FileId,
    /// Line (1-based) and import.
    pub imports: Vec<(u32, Import)>,
}

/// The most used definitions, by file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RepositoryMap {
    /// The files with their definitions in source order. The file with the most used definition comes first.
    pub files: Vec<FileSymbols>,
    /// Approximate number of tokens.
    pub n_tokens: usize,
    /// Number of definitions that did not fit.
    pub n_left_out: usize,
}

/// Returns the files of a view at or below a path that pass a filter.
pub fn files_below(view: &View, path: &str, filter: &FileFilter) -> Vec<FileId> {
    let path = &*without_placeholders(path.trim_end_matches('/'));
    let is_below = |file: &[u8]| {
        path.is_empty()
            || file
                .strip_prefix(path)
                .is_some_and(|rest| rest.is_empty() || rest[0] == b'/')
    };
    view.files()
        .filter(|(_, file)| is_below(file.path))
        .map(|(id, _)| id)
        .filter(|&id| filter.is_open() || filter.passes(view, id))
        .collect()
}

/// Summarizes the languages, folders, entry points, build files and tests of `files`, which must be below `root`.
pub fn summary(sources: &Sources<'_>, root: &str, files: &[FileId]) -> Result<Summary, OutlineError> {
    let view = sources.view();
    let n_lines = line_counts(sources, files)?;
    let mut by_language: BTreeMap<String, Share> = BTreeMap::new();
    let mut by_folder: BTreeMap<String, Share> = BTreeMap::new();
    let mut test_folders = BTreeSet::new();
    let mut summary = Summary::default();
    for (&file, &n_lines) in files.iter().zip(&n_lines) {
        sources.go_on()?;
        let path = path_of(view, file);
        let below = below(&path, root);
        let lang = view.lang(file);
        add(&mut by_language, language_name(lang), n_lines);
        add(
            &mut by_folder,
            below.split_once('/').map_or(".", |(folder, _)| folder),
            n_lines,
        );
        summary.n_files += 1;
        summary.n_lines += n_lines;
        let name = path.rsplit('/').next().unwrap_or(&path);
        if is_build_file(name) {
            summary.build_files.push(path.clone());
        }
        match test_folder(&path) {
            Some(folder) => {
                test_folders.insert(folder.to_owned());
            }
            None if is_entry_point(name, lang) => summary.entry_points.push(path),
            None => {}
        }
    }
    summary.languages = by_size(by_language);
    summary.folders = by_size(by_folder);
    summary.folders.truncate(MAX_FOLDERS);
    summary.test_folders = test_folders.into_iter().collect();
    for named in [
        &mut summary.entry_points,
        &mut summary.build_files,
        &mut summary.test_folders,
    ] {
        // Files closer to the root are listed first, because they are more important.
        named.sort_by_cached_key(|path| (path.matches('/').count(), path.clone()));
        named.truncate(MAX_NAMED);
    }
    Ok(summary)
}

/// Returns the tree of folders and files below `root`, down to `depth` levels.
pub fn tree(sources: &Sources<'_>, root: &str, files: &[FileId], depth: usize) -> Result<TreeNode, OutlineError> {
    let view = sources.view();
    let n_lines = line_counts(sources, files)?;
    let mut top = TreeNode {
        name: if root.is_empty() { "." } else { root }.to_owned(),
        is_folder: true,
        ..TreeNode::default()
    };
    for (&file, &n_lines) in files.iter().zip(&n_lines) {
        sources.go_on()?;
        let path = path_of(view, file);
        top.add(below(&path, root), n_lines, depth);
    }
    top.sort();
    Ok(top)
}

impl TreeNode {
    fn add(&mut self, path: &str, n_lines: u64, depth: usize) {
        self.n_files += 1;
        self.n_lines += n_lines;
        if depth == 0 || path.is_empty() {
            return;
        }
        let (name, rest, is_folder) = match path.split_once('/') {
            Some((name, rest)) => (name, rest, true),
            None => (path, "", false),
        };
        // Files are in path order, so files of the same folder are adjacent.
        let is_known = self.children.last().is_some_and(|last| last.name == name);
        if !is_known {
            self.children.push(Self {
                name: name.to_owned(),
                is_folder,
                ..Self::default()
            });
        }
        if let Some(child) = self.children.last_mut() {
            child.add(rest, n_lines, depth - 1);
        }
    }

    fn sort(&mut self) {
        self.children
            .sort_by(|a, b| b.is_folder.cmp(&a.is_folder).then(a.name.cmp(&b.name)));
        self.children.iter_mut().for_each(Self::sort);
    }
}

/// Returns the definitions of each file that has any, nested down to `depth` levels.
pub fn symbols_of(sources: &Sources<'_>, files: &[FileId], depth: usize) -> Result<Vec<FileSymbols>, OutlineError> {
    of_each(sources, files, |file| {
        let definitions = file
            .nested()
            .filter(|(level, _)| (*level as usize) < depth)
            .collect::<Vec<_>>();
        (!definitions.is_empty()).then_some(FileSymbols {
            file: file.file,
            definitions,
        })
    })
}

/// Returns the headings of each file that has any, down to level `depth`.
pub fn headings_of(sources: &Sources<'_>, files: &[FileId], depth: usize) -> Result<Vec<FileHeadings>, OutlineError> {
    of_each(sources, files, |file| {
        let known = file.extraction.headings.iter();
        let headings: Vec<_> = known
            .filter(|heading| usize::from(heading.level) <= depth)
            .map(|heading: &Heading| {
                let (first, last) = file.lines.of_range(file.bytes, heading.range.as_usize());
                (heading.level, heading.title.clone(), first, last)
            })
            .collect();
        (!headings.is_empty()).then_some(FileHeadings {
            file: file.file,
            headings,
        })
    })
}

/// Returns the imports of each file that has any.
pub fn imports_of(sources: &Sources<'_>, files: &[FileId]) -> Result<Vec<FileImports>, OutlineError> {
    of_each(sources, files, |file| {
        let line_of = |import: &Import| file.lines.line_of(import.range.start as usize);
        let known = file.extraction.imports.iter();
        let imports: Vec<_> = known.map(|import| (line_of(import), import.clone())).collect();
        (!imports.is_empty()).then_some(FileImports {
            file: file.file,
            imports,
        })
    })
}

/// Returns the most used definitions that fit into about `max_tokens`. The result depends only on the files.
///
/// A definition is used more if more other files refer to it; if they are equally many, by more references; then by
/// references that only have its name, shared among the definitions with that name; then by references in its own file.
/// References in tests do not count. Lists definitions of `kinds`, or functions and types if `kinds` is empty.
pub fn map(
    sources: &Sources<'_>,
    linker: &Linker<'_>,
    files: &[FileId],
    kinds: &[DefinitionKind],
    max_tokens: usize,
) -> Result<RepositoryMap, OutlineError> {
    let is_wanted = |kind: DefinitionKind| match kinds {
        [] => is_landmark(kind),
        _ => kinds.contains(&kind),
    };
    let view = sources.view();
    let files: Vec<FileId> = files
        .iter()
        .copied()
        .filter(|&file| !is_test_path(&path_of(view, file)))
        .collect();
    let usages = linker.usages(&files);
    // After an interruption, all further links are unknown.
    sources.go_on()?;
    let mut found = Vec::new();
    let mut n_named: HashMap<String, u32> = HashMap::new();
    for &file in &files {
        for (index, definition) in (0..).zip(linker.definitions(file).unwrap_or_default()) {
            if is_wanted(definition.kind) {
                *n_named.entry(definition.name.clone()).or_default() += 1;
                found.push((DefId { file, index }, definition));
            }
        }
    }
    found.sort_by_cached_key(|(of, definition)| {
        let Usage {
            sure,
            own,
            files,
            possible,
        } = if definition.kind.is_type() {
            linker.usage_of(*of, &usages)
        } else {
            // A call of a type is no reason to list its constructor as well.
            usages.get(*of)
        };
        let rank = (
            files,
            sure - own,
            possible / n_named[&definition.name],
            own,
            definition.kind.is_type(),
        );
        (Reverse(rank), *of)
    });
    let ranked = found.into_iter().map(|(of, _)| of).collect();
    fill(sources, ranked, max_tokens * BYTES_PER_TOKEN)
}

/// Selects the best definitions that fit, and groups them by file.
fn fill(sources: &Sources<'_>, ranked: Vec<DefId>, max_bytes: usize) -> Result<RepositoryMap, OutlineError> {
    let view = sources.view();
    let mut order: Vec<FileId> = Vec::new();
    let mut taken: HashMap<FileId, BTreeSet<u32>> = HashMap::new();
    let mut known: HashMap<FileId, HashMap<u32, (u32, FoundDefinition)>> = HashMap::new();
    let (mut n_bytes, mut n_left_out) = (0, 0);
    for DefId { file, index } in ranked {
        if n_bytes >= max_bytes {
            n_left_out += 1;
            continue;
        }
        if let std::collections::hash_map::Entry::Vacant(entry) = known.entry(file) {
            let of_file = of_each(sources, &[file], |file| {
                Some(
                    file.nested()
                        .map(|(level, found)| (found.index, (level, found)))
                        .collect(),
                )
            })?;
            entry.insert(of_file.into_iter().next().unwrap_or_default());
        }
        let Some((level, found)) = known.get(&file).and_then(|of_file| of_file.get(&index)) else {
            continue;
        };
        let header = if taken.contains_key(&file) {
            0
        } else {
            view.file(file).path.len() + 2
        };
        let cost = header + line_bytes(*level, found);
        if n_bytes + cost > max_bytes {
            n_left_out += 1;
            continue;
        }
        n_bytes += cost;
        if header > 0 {
            order.push(file);
        }
        taken.entry(file).or_default().insert(index);
    }
    let files = order.into_iter().map(|file| {
        let indices = taken.remove(&file).unwrap_or_default();
        let mut of_file = known.remove(&file).unwrap_or_default();
        FileSymbols {
            file,
            definitions: indices.into_iter().filter_map(|index| of_file.remove(&index)).collect(),
        }
    });
    Ok(RepositoryMap {
        files: files.collect(),
        n_tokens: n_bytes.div_ceil(BYTES_PER_TOKEN),
        n_left_out,
    })
}

/// Returns the length of a definition's line in the map: line number, indentation and signature.
fn line_bytes(level: u32, found: &FoundDefinition) -> usize {
    8 + 2 * level as usize + found.signature.len()
}

/// Returns true for the kinds of definitions that characterize a repository.
fn is_landmark(kind: DefinitionKind) -> bool {
    use DefinitionKind::{Constant, Constructor, Field, Function, Impl, Macro, Method, Property, Table, Variant};
    match kind {
        Impl | Variant | Field | Property | Constructor => false,
        Function | Method | Macro | Constant | Table => true,
        kind => kind.is_type(),
    }
}

fn of_each<T: Send>(
    sources: &Sources<'_>,
    files: &[FileId],
    make: impl Fn(&FileDefinitions<'_>) -> Option<T> + Sync,
) -> Result<Vec<T>, OutlineError> {
    let view = sources.view();
    let one = |reader: &mut super::source::SourceReader<'_>, &file: &FileId| -> Result<Option<T>, OutlineError> {
        sources.go_on()?;
        let Some(extraction) = view.extraction(file).transpose()? else {
            return Ok(None);
        };
        let Source::Bytes(bytes) = reader.read(file)? else {
            return Ok(None);
        };
        Ok(make(&FileDefinitions {
            file,
            path: &quoted(view.file(file).path),
            bytes: &bytes,
            lines: &LineStarts::of(&bytes),
            extraction: &extraction,
            numbers: Numbers::default(),
        }))
    };
    let made = files.par_iter().map_init(|| sources.reader(), one);
    Ok(made.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
}

impl FileDefinitions<'_> {
    /// Returns the definitions with their nesting depth.
    fn nested(&self) -> impl Iterator<Item = (u32, FoundDefinition)> + '_ {
        let definitions = &self.extraction.definitions;
        (0..definitions.len() as u32).filter_map(|index| {
            let outer = |index: u32| definitions.get(index as usize).and_then(|known| known.container);
            let n_outer = std::iter::successors(outer(index), |&index| outer(index))
                .take(definitions.len())
                .count();
            Some((n_outer as u32, self.found(index)?))
        })
    }
}

fn line_counts(sources: &Sources<'_>, files: &[FileId]) -> Result<Vec<u64>, OutlineError> {
    let count = |&file: &FileId| {
        sources.go_on()?;
        match sources.view().extraction(file) {
            Some(extraction) => Ok(u64::from(extraction?.n_lines)),
            None => Ok(0),
        }
    };
    files.par_iter().map(count).collect()
}

fn add(shares: &mut BTreeMap<String, Share>, name: &str, n_lines: u64) {
    let share = shares.entry(name.to_owned()).or_insert_with(|| Share {
        name: name.to_owned(),
        ..Share::default()
    });
    share.n_files += 1;
    share.n_lines += n_lines;
}

fn by_size(shares: BTreeMap<String, Share>) -> Vec<Share> {
    let mut shares: Vec<Share> = shares.into_values().collect();
    shares.sort_by(|a, b| (b.n_lines, b.n_files, &a.name).cmp(&(a.n_lines, a.n_files, &b.name)));
    shares
}

fn language_name(lang: Lang) -> &'static str {
    extract::language(lang).map_or("text", |language| language.name)
}

pub(super) fn path_of(view: &View, file: FileId) -> String {
    with_placeholders(view.file(file).path).into_owned()
}

/// Returns a path relative to `root`.
fn below<'p>(path: &'p str, root: &str) -> &'p str {
    path.strip_prefix(root.trim_end_matches('/'))
        .map_or(path, |rest| rest.trim_start_matches('/'))
}

fn is_build_file(name: &str) -> bool {
    BUILD_FILES.contains(&name) || BUILD_ENDINGS.iter().any(|ending| name.ends_with(ending))
}

fn is_entry_point(name: &str, lang: Lang) -> bool {
    let is_code = extract::language(lang).is_some_and(|language| {
        language.has_structure()
            && !language.is_prose()
            && !matches!(language.name, "html" | "css" | "json" | "yaml" | "toml" | "sql")
    });
    let stem = name.split('.').next().unwrap_or(name);
    is_code && ENTRY_POINTS.contains(&stem)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_counts_hidden_files() {
        let mut top = TreeNode::default();
        for path in ["a/b/c.rs", "a/b/d.rs", "a/e.rs", "z.rs"] {
            top.add(path, 10, 1);
        }
        top.sort();
        assert_eq!((top.n_files, top.n_lines), (4, 40));
        let children: Vec<(&str, u32, bool)> = top
            .children
            .iter()
            .map(|c| (c.name.as_str(), c.n_files, c.is_folder))
            .collect();
        assert_eq!(children, [("a", 3, true), ("z.rs", 1, false)]);
        assert!(top.children[0].children.is_empty());
    }

    #[test]
    fn test_folders_are_the_outermost() {
        assert_eq!(test_folder("a/tests/it/main.rs"), Some("a/tests"));
        assert_eq!(test_folder("src/main.rs"), None);
        assert_eq!(test_folder("x/spec/tests/a.py"), Some("x/spec"));
        assert_eq!(test_folder("testing/a.py"), Some("testing"));
    }

    #[test]
    fn paths_are_relative_to_the_root() {
        assert_eq!(below("src/a/b.rs", "src"), "a/b.rs");
        assert_eq!(below("src/a/b.rs", ""), "src/a/b.rs");
    }
}
