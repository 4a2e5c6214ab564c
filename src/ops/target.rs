//! Looks up the target of an operation about history: a file, a directory, lines, or a definition.

use std::cell::RefCell;
use std::collections::HashSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use bstr::ByteSlice;
use serde::Serialize;

use super::paths::{inside_here, typed_path};
use super::sink::{Sink, Style};
use crate::artifact::Extractor;
use crate::extract::{DefinitionKind, Options};
use crate::git::ObjectReader;
use crate::history::{FileShapes, HistoryError, Shape, SymbolBatch, SymbolChangeCache, SymbolKey, SymbolTracer};
use crate::model::count::count;
use crate::model::{BlobId, Ctx, RepoPath, quoted, with_placeholders, without_placeholders};
use crate::query::{
    DeletedSymbol, FoundDefinition, PartQuery, Sources, SymbolQuery, deleted_symbols, is_called, is_test_path,
    kind_name, meant, parse_lines, renamed_symbols,
};
use crate::session::{OpError, OpenedHistory, Result, Uncommitted, Visibility, Workspace};
use crate::snapshot::View;

/// Number of files whose definitions a call keeps.
const MAX_KEPT_FILES: usize = 8;

/// The target of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// A file that exists now or existed earlier.
    File(RepoPath),
    /// A directory; an empty path means the whole repository.
    Folder(RepoPath),
    /// Lines of a file, 1-based and inclusive.
    Lines(RepoPath, u32, u32),
    /// A definition.
    Symbol(SymbolKey),
    /// A definition that had the given name before it was renamed, with its key.
    Once(String, SymbolKey),
    /// The candidates, if several definitions have the name.
    Many(Vec<CandidateTarget>),
    /// No target was found. Contains the path or name as typed, and similar paths or names.
    Unknown(RepoPath, Vec<String>),
}

impl Target {
    /// Returns the file or directory of the target.
    pub(crate) fn path(&self) -> Option<&RepoPath> {
        match self {
            Self::File(path) | Self::Folder(path) | Self::Lines(path, ..) => Some(path),
            Self::Symbol(key) | Self::Once(_, key) => Some(&key.path),
            Self::Many(_) | Self::Unknown(..) => None,
        }
    }
}

/// One of several definitions with the same name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct CandidateTarget {
    /// The id, which identifies this definition in other calls.
    pub(crate) id: String,
    /// The kind: function, type and so on.
    pub(crate) kind: &'static str,
    /// The path of the file.
    pub(crate) path: String,
    /// The 1-based line of the name.
    pub(crate) line: u32,
    /// The key for tracing the definition's history.
    #[serde(skip)]
    pub(crate) key: SymbolKey,
}

/// Lists the definitions that a name may mean.
pub(crate) fn render_candidates(candidates: &[CandidateTarget], out: &mut dyn Sink) {
    for candidate in candidates {
        out.span(Style::Path, &candidate.id);
        out.line(&format!(" {} line {}", candidate.kind, candidate.line));
    }
}

/// The data needed to look up targets.
pub(crate) struct Targets<'a> {
    pub(crate) workspace: &'a Workspace,
    pub(crate) opened: &'a OpenedHistory,
    pub(crate) uncommitted: &'a [Uncommitted],
    pub(crate) reference: &'a str,
    /// Finds definitions of the revision by name.
    pub(crate) definitions: &'a dyn Fn(&str) -> Result<Named>,
    /// Determines whether files with credentials are visible.
    pub(crate) visibility: Visibility,
    /// The time limit and progress for reading file versions.
    pub(crate) ctx: Ctx<'a>,
    pub(crate) kept: Kept,
}

/// What a call has read, which may be about many definitions.
#[derive(Default)]
pub(crate) struct Kept {
    changes: RefCell<Option<SymbolChangeCache>>,
    files: RefCell<Vec<(RepoPath, Option<FileShapes>)>>,
}

impl Kept {
    /// Stores the changes that were read.
    pub(crate) fn save(&self) {
        if let Some(mut changes) = self.changes.take() {
            changes.save();
        }
    }
}

/// The definitions with a name whose history can be traced, and similar names if there are none.
pub(crate) type Named = (Vec<CandidateTarget>, Vec<String>);

impl Targets<'_> {
    /// Finds a target in the form `path`, `path:line`, `path:first-last`, `path#Parser.parse`, or a name.
    pub(crate) fn find(&self, typed: &OsStr) -> Result<Target> {
        let found = match inside_here(self.workspace, &with_placeholders(typed.as_bytes())) {
            Some(here) => match self.place(OsStr::from_bytes(&without_placeholders(&here)))? {
                Some(found) => found,
                None => self.find_any(typed)?,
            },
            None => self.find_any(typed)?,
        };
        self.visible(found, typed)
    }

    fn visible(&self, found: Target, typed: &OsStr) -> Result<Target> {
        if found.path().is_some_and(|path| self.visibility.hides(path.as_bytes())) {
            return Err(OpError::hidden(&typed.to_string_lossy()));
        }
        Ok(match found {
            Target::Many(mut candidates) => {
                candidates.retain(|candidate| !self.visibility.hides(candidate.key.path.as_bytes()));
                candidates.sort_by_key(|candidate| is_test_path(&candidate.path));
                match candidates.as_slice() {
                    [] => return Err(OpError::hidden(&typed.to_string_lossy())),
                    [one] => Target::Symbol(one.key.clone()),
                    _ => Target::Many(candidates),
                }
            }
            Target::Unknown(path, mut near) => {
                near.retain(|near| !self.visibility.hides_target(near));
                Target::Unknown(path, near)
            }
            found => found,
        })
    }

    fn find_any(&self, typed: &OsStr) -> Result<Target> {
        if let Some(found) = self.place(typed)? {
            return Ok(found);
        }
        let path = typed_path(self.workspace, typed);
        if let Some(key) = self.symbol_of_file(&path)? {
            return self.member(key);
        }
        if let Some((file, lines)) = path.as_bytes().rsplit_once_str(":")
            && let Some(Target::File(file)) = self.path(&RepoPath::new(file))?
        {
            return lines_of_file(file, &lines.to_str_lossy());
        }
        self.named(&path.to_text())
    }

    /// Parses `path#name`. A path may contain `#`, so the longest path that exists or existed is used.
    pub(crate) fn symbol_of_file(&self, typed: &RepoPath) -> Result<Option<SymbolKey>> {
        let bytes = typed.as_bytes();
        let key = |at: usize| symbol_key(&bytes[..at], &bytes[at + 1..].to_str_lossy());
        for at in bytes.rfind_iter(b"#") {
            if let Some(Target::File(_)) = self.path(&RepoPath::new(&bytes[..at]))? {
                return Ok(Some(key(at)));
            }
        }
        Ok(bytes.find_byte(b'#').map(key))
    }

    /// Finds the definition with this qualified name in a file. If there is none, finds the current or deleted
    /// definitions whose names end with it.
    fn member(&self, key: SymbolKey) -> Result<Target> {
        let recipe = self.workspace.records().symbol_recipe();
        let traced = self.opened.history.traced_changes(&key.path, Some(&key.name), recipe)?;
        if key.nth != 1 || !traced.is_empty() {
            return Ok(Target::Symbol(key));
        }
        let file = self.shapes(&key.path)?;
        if file
            .as_ref()
            .is_some_and(|file| file.find(&key.name, key.nth).is_some())
        {
            return Ok(Target::Symbol(key));
        }
        let shapes = file.iter().flat_map(|file| &file.shapes);
        let lines = |shape: &Shape| file.as_ref().map_or(1, |file| file.lines_of(shape.range).0);
        let mut candidates: Vec<CandidateTarget> = shapes
            .filter(|shape| is_called(shape.qualified.as_bytes(), &key.name))
            .map(|shape| candidate(shape.key(&key.path), shape.kind, lines(shape)))
            .collect();
        if candidates.is_empty() {
            let gone = self.deleted(&key.name)?;
            candidates.extend(gone.iter().filter(|gone| gone.key.path == key.path).map(candidate_of));
        }
        Ok(match candidates.len() {
            0 => Target::Symbol(key),
            1 => Target::Symbol(candidates.remove(0).key),
            _ => Target::Many(candidates),
        })
    }

    /// Finds a deleted target by a path that exists or existed. Returns any other text as [`Target::Unknown`], because
    /// no current definition needs to have that name.
    pub(crate) fn find_gone(&self, typed: &OsStr) -> Result<Target> {
        let name = || Target::Unknown(typed_path(self.workspace, typed), Vec::new());
        self.visible(self.place(typed)?.unwrap_or_else(name), typed)
    }

    /// Returns the file or directory that exists or existed at a path.
    fn place(&self, typed: &OsStr) -> Result<Option<Target>> {
        let path = typed_path(self.workspace, typed);
        if path.as_bytes().is_empty() {
            Ok(Some(Target::Folder(path)))
        } else {
            self.path(&path)
        }
    }

    fn path(&self, path: &RepoPath) -> Result<Option<Target>> {
        let folder = [path.as_bytes(), b"/"].concat();
        let is_below = |other: &RepoPath| other.as_bytes().starts_with(&folder);
        let is_uncommitted = self.uncommitted.iter().any(|change| change.path == *path);
        if is_uncommitted || self.committed_entry(path)?.is_some() {
            return Ok(Some(Target::File(path.clone())));
        }
        let history = &self.opened.history;
        // Lists all files only if needed. If the record begins with the first commit, it contains every path.
        let may_be_folder = !history.paths_from(&folder).is_empty() || !history.boundaries()?.is_empty();
        if self.uncommitted.iter().any(|change| is_below(&change.path))
            || (may_be_folder && self.files()?.iter().any(is_below))
        {
            return Ok(Some(Target::Folder(path.clone())));
        }
        if !history.changes_of(path.as_bytes())?.is_empty() {
            return Ok(Some(Target::File(path.clone())));
        }
        Ok(if history.paths_from(&folder).is_empty() {
            None
        } else {
            Some(Target::Folder(path.clone()))
        })
    }

    /// Returns all files of the commit.
    pub(crate) fn files(&self) -> Result<HashSet<RepoPath>> {
        let mut files = HashSet::new();
        if let Some(target) = self.opened.target {
            let mut reader = self.workspace.repository.reader();
            reader.tree_files(target.tree, &mut |file| {
                files.insert(file.path);
            })?;
        }
        Ok(files)
    }

    fn named(&self, name: &str) -> Result<Target> {
        let unknown = |near| Target::Unknown(RepoPath::from(name), near);
        if self.opened.target.is_none() || name.contains('/') {
            return Ok(unknown(crate::query::near_paths(&self.opened.history, name)));
        }
        let (mut candidates, near) = (self.definitions)(name)?;
        if candidates.is_empty() {
            candidates = self.taken_away(name)?;
        }
        if candidates.is_empty() {
            candidates = self.deleted(name)?.iter().map(candidate_of).collect();
        }
        if candidates.is_empty() {
            candidates = self.renamed(name)?;
            if candidates.len() == 1 {
                return Ok(Target::Once(name.to_owned(), candidates.remove(0).key));
            }
        }
        Ok(match candidates.len() {
            0 if near.is_empty() => unknown(crate::query::near_paths(&self.opened.history, name)),
            0 => unknown(near),
            1 => Target::Symbol(candidates.remove(0).key),
            _ => Target::Many(candidates),
        })
    }

    /// Returns the deleted definitions with this name, in any file.
    pub(crate) fn deleted(&self, name: &str) -> Result<Vec<DeletedSymbol>> {
        let Some(tip) = self.opened.tip else {
            return Ok(Vec::new());
        };
        let name = name.replace("::", ".");
        let OpenedHistory { history, reached, .. } = self.opened;
        let recipe = self.workspace.records().symbol_recipe();
        let is_wanted = |qualified: &[u8]| is_called(qualified, &name);
        Ok(deleted_symbols(history, tip, reached, recipe, &is_wanted)?)
    }

    /// Returns the current keys of definitions that had this name before they were renamed or moved.
    pub(crate) fn renamed(&self, name: &str) -> Result<Vec<CandidateTarget>> {
        let name = name.replace("::", ".");
        let OpenedHistory { history, reached, .. } = self.opened;
        let is_wanted = |qualified: &[u8]| is_called(qualified, &name);
        let found = renamed_symbols(history, reached, self.workspace.records().symbol_recipe(), &is_wanted)?;
        Ok(found
            .into_iter()
            .map(|found| candidate(found.key, found.kind, found.line))
            .collect())
    }

    /// Returns the committed definitions with this name that were deleted by uncommitted changes.
    pub(crate) fn taken_away(&self, name: &str) -> Result<Vec<CandidateTarget>> {
        let name = name.replace("::", ".");
        let mut found = Vec::new();
        for path in self
            .uncommitted
            .iter()
            .filter(|change| change.old.is_some())
            .map(|change| &change.path)
        {
            let content = match self.committed_entry(path)? {
                Some(entry) => self.workspace.records().content(path, entry, &mut None)?,
                None => None,
            };
            let Some(bytes) = content.filter(|bytes| bytes.contains_str(name.rsplit('.').next().unwrap_or(&name)))
            else {
                continue;
            };
            let file = FileShapes::of(&mut Extractor::new(Options::default()), path, bytes);
            let now = self.shapes(path)?;
            let known = now.as_ref().map(FileShapes::names).unwrap_or_default();
            let is_there = |shape: &Shape| known.contains(&shape.numbered_name());
            let named = file
                .shapes
                .iter()
                .filter(|shape| is_called(shape.qualified.as_bytes(), &name));
            found.extend(
                named
                    .filter(|shape| !is_there(shape))
                    .map(|shape| candidate(shape.key(path), shape.kind, file.lines_of(shape.range).0)),
            );
        }
        Ok(found)
    }

    /// Traces definitions, and keeps the changes that were read.
    pub(crate) fn lives<T>(
        &self,
        reader: &mut ObjectReader,
        read: impl FnOnce(&mut SymbolTracer<'_>) -> Result<T, HistoryError>,
    ) -> Result<T> {
        let mut known = match self.kept.changes.take() {
            Some(known) => known,
            None => self.workspace.records().known_changes()?,
        };
        let OpenedHistory { history, reached, .. } = self.opened;
        let max_bytes = self.workspace.build_options().max_blob_bytes;
        let mut lives = SymbolTracer::new(history, reached, reader, max_bytes, &mut known, self.ctx);
        let lives = read(&mut lives);
        self.kept.changes.replace(Some(known));
        Ok(lives?)
    }

    /// Returns the reasons why deleted definitions may not be found by name.
    pub(crate) fn untraced(&self) -> Vec<String> {
        let (history, recipe) = (&self.opened.history, self.workspace.records().symbol_recipe());
        let (n_traced, n_commits) = (history.n_traced(recipe), history.n_commits());
        let symbols = (0..history.batches().len()).filter_map(|at| history.symbols(at, recipe));
        let n_unread: u32 = symbols.map(SymbolBatch::n_unread).sum();
        let mut why = Vec::new();
        if n_traced + n_unread < n_commits {
            why.push(format!(
                "deleted definitions were searched in {n_traced} of {n_commits} recorded commits; run codescout \
                 index --history to trace the rest"
            ));
        }
        if n_unread > 0 {
            why.push(format!(
                "{n_unread} commits changed files that are missing or damaged in git, so their definitions are \
                 unknown; {}",
                self.workspace.records().how_to_get_objects()
            ));
        }
        why
    }

    /// Returns the content at a path: the uncommitted version if it differs from the commit, otherwise the committed
    /// one.
    pub(crate) fn content(&self, path: &RepoPath) -> Result<Option<Vec<u8>>> {
        let changed = self.uncommitted.iter().find(|change| change.path == *path);
        let entry = match changed {
            Some(change) => change.new,
            None => self.committed_entry(path)?,
        };
        match entry {
            Some(entry) => self.workspace.records().content(path, entry, &mut None),
            None => Ok(None),
        }
    }

    /// Returns the entry at a path in the commit.
    pub(crate) fn committed_entry(&self, path: &RepoPath) -> Result<Option<crate::history::Entry>> {
        let Some(target) = self.opened.target else {
            return Ok(None);
        };
        let mut reader = self.workspace.repository.reader();
        Ok(reader.entry_at(target.tree, path)?.map(Into::into))
    }

    /// Returns an error if the committed file exceeds the size limit for reading.
    pub(crate) fn too_large(&self, path: &RepoPath, entry: crate::history::Entry) -> Result<Option<OpError>> {
        let limit = self.workspace.build_options().max_blob_bytes;
        let size = self.workspace.repository.reader().blob_size(BlobId(entry.oid))?;
        Ok(size.filter(|size| *size > limit).map(|size| {
            OpError::new(
                format!("{:?} is too large: {size} bytes (limit: {limit})", path.to_text()),
                format!("use git blame {}", path.to_text()),
            )
        }))
    }

    /// Returns the definitions of a file at the revision.
    pub(crate) fn shapes(&self, path: &RepoPath) -> Result<Option<FileShapes>> {
        let mut files = self.kept.files.borrow_mut();
        if let Some((_, file)) = files.iter().find(|(known, _)| known == path) {
            return Ok(file.clone());
        }
        let bytes = self.content(path)?;
        let file = bytes.map(|bytes| FileShapes::of(&mut Extractor::new(Options::default()), path, bytes));
        if files.len() == MAX_KEPT_FILES {
            files.remove(0);
        }
        files.push((path.clone(), file.clone()));
        Ok(file)
    }
}

/// Returns the definitions with a name in a view.
pub(crate) fn named(workspace: &Workspace, view: &View, name: &str) -> Result<Named> {
    let is_traced =
        |found: &FoundDefinition| crate::history::has_own_history(found.kind, view.file(found.file).entry().lang);
    let query = SymbolQuery::Named(name.to_owned());
    let outcome = meant(&Sources::new(view, &workspace.repository), query, None, is_traced)?;
    let candidates = outcome
        .definitions
        .iter()
        .filter_map(|found| {
            let bytes = view.file(found.file).path;
            let path = quoted(bytes).into_owned();
            let symbol = found.id.strip_prefix(&path)?.strip_prefix('#')?;
            Some(CandidateTarget {
                key: symbol_key(bytes, symbol),
                id: found.id.clone(),
                kind: kind_name(found.kind),
                line: found.name_line,
                path,
            })
        })
        .collect();
    Ok((candidates, outcome.near))
}

fn candidate_of(gone: &DeletedSymbol) -> CandidateTarget {
    candidate(gone.key.clone(), gone.kind, gone.lines.0)
}

fn candidate(key: SymbolKey, kind: DefinitionKind, line: u32) -> CandidateTarget {
    CandidateTarget {
        id: key.id(),
        kind: kind_name(kind),
        path: key.path.to_text().into_owned(),
        line,
        key,
    }
}

/// Returns the number of lines of a file, or an error if line `first` is past its end.
pub(crate) fn n_lines_with(path: &RepoPath, bytes: &[u8], first: u32) -> Result<u32> {
    let n_lines = bytes.split_inclusive(|byte| *byte == b'\n').count() as u32;
    if first <= n_lines {
        return Ok(n_lines);
    }
    let (path, lines) = (path.to_text(), count(n_lines, "line"));
    Err(OpError::new(
        format!("line {first} is past the end of {path:?} ({lines})"),
        "lines are counted from 1",
    ))
}

/// Parses the lines of a file as typed.
fn lines_of_file(file: RepoPath, lines: &str) -> Result<Target> {
    match parse_lines(lines) {
        Some(PartQuery::Lines(first, last)) => Ok(Target::Lines(file, first, last.unwrap_or(u32::MAX))),
        _ => Err(OpError::new(
            format!("invalid line range {lines:?} for {:?}", file.to_text()),
            "write 5, 5-9 or 5-; lines are counted from 1, the first before the last",
        )),
    }
}

/// Parses `Parser.parse` or `Parser.parse~2`.
fn symbol_key(file: &[u8], name: &str) -> SymbolKey {
    let numbered = name
        .rsplit_once('~')
        .and_then(|(name, nth)| Some((name, nth.parse().ok()?)));
    let (name, nth) = numbered.unwrap_or((name, 1));
    SymbolKey {
        path: RepoPath::new(file),
        name: name.replace("::", "."),
        nth,
    }
}
