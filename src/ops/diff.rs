//! What differs between two states of the repository.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result};
use serde::Serialize;

use super::target::typed_path;
use super::{OpError, ProvenanceOut};
use crate::extract::{Extractor, Options};
use crate::git::{FileMode, ObjectError, WorkTreeReader, diff_lines};
use crate::history::{Change, Entry, FilePair, FileShapes, SymbolDelta, SymbolKey, symbol_deltas, with_renames};
use crate::ingest::Target;
use crate::model::{RepoPath, TreeId};
use crate::query::{FileChangeKind, kind_name, unified};
use crate::session::Workspace;

/// With more files only the files are told.
const MAX_READ_FILES: usize = 2_000;

/// How a difference is told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum DiffBy {
    /// Each file with the definitions that are not what they were.
    #[default]
    Symbol,
    /// Each file.
    File,
    /// Each file with its changed lines.
    Text,
}

/// What is to be compared.
#[derive(Clone, Debug, Default)]
pub(crate) struct DiffQuestion {
    /// A revision, `INDEX`, `WORKTREE`, or two as `A..B` or `A...B`.
    pub(crate) from: Option<String>,
    pub(crate) to: Option<String>,
    pub(crate) by: DiffBy,
    /// Files and folders; all without any.
    pub(crate) paths: Vec<String>,
}

/// What differs, and of what the answer is.
pub(crate) fn diff(
    workspace: &Workspace,
    asked: &DiffQuestion,
    interrupt: &AtomicBool,
) -> Result<(DiffBody, ProvenanceOut)> {
    let (from, to) = sides(workspace, asked, interrupt)?;
    let changes = changes(workspace, &from, &to, asked)?;
    let n_dirty = to.overlay.len();
    let mut provenance = ProvenanceOut::without_view(workspace, &to.reference, to.target, n_dirty, Vec::new());
    let by = match asked.by {
        DiffBy::Symbol if changes.len() > MAX_READ_FILES => {
            provenance.also_incomplete(format!(
                "more than {MAX_READ_FILES} files differ: definitions are not told"
            ));
            DiffBy::File
        }
        by => by,
    };
    let total = changes.len();
    let files = Comparison::new(workspace, by, interrupt).files(changes, total <= MAX_READ_FILES)?;
    let n_unread = files.iter().filter(|file| file.is_unread).count();
    if n_unread > 0 {
        provenance.also_incomplete(format!(
            "the contents of {n_unread} files are too large or not in this repository: what differs in them is not known"
        ));
    }
    let count = |of: fn(&FileOut) -> Option<u32>| files.iter().filter_map(of).sum();
    let body = DiffBody {
        by: by.name(),
        total,
        added_lines: count(|file| file.added_lines),
        removed_lines: count(|file| file.removed_lines),
        from: side_out(&from),
        to: side_out(&to),
        files,
    };
    Ok((body, provenance))
}

/// Two states and what differs between them.
#[derive(Debug, Serialize)]
pub(crate) struct DiffBody {
    pub(crate) from: SideOut,
    pub(crate) to: SideOut,
    pub(crate) by: &'static str,
    pub(crate) total: usize,
    pub(crate) added_lines: u32,
    pub(crate) removed_lines: u32,
    pub(crate) files: Vec<FileOut>,
}

/// One of the two.
#[derive(Debug, Serialize)]
pub(crate) struct SideOut {
    #[serde(rename = "ref")]
    pub(crate) reference: String,
    pub(crate) commit: Option<String>,
    /// Tells two states of it apart.
    #[serde(skip)]
    pub(crate) state: String,
}

/// A file that differs.
#[derive(Debug, Serialize)]
pub(crate) struct FileOut {
    pub(crate) kind: &'static str,
    pub(crate) path: String,
    pub(crate) from_path: Option<String>,
    pub(crate) similarity: Option<u8>,
    pub(crate) old_blob: Option<String>,
    pub(crate) new_blob: Option<String>,
    /// Null where one side is not text.
    pub(crate) added_lines: Option<u32>,
    pub(crate) removed_lines: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) symbols: Option<Vec<SymbolOut>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) diff: Option<String>,
    /// Whether its content could not be read, so that it may be text or not.
    #[serde(skip)]
    pub(crate) is_unread: bool,
}

/// A definition that is not what it was.
#[derive(Debug, Serialize)]
pub(crate) struct SymbolOut {
    pub(crate) id: String,
    pub(crate) kind: &'static str,
    pub(crate) events: Vec<&'static str>,
    pub(crate) from: Option<String>,
    pub(crate) confidence: f64,
    pub(crate) old_lines: Option<(u32, u32)>,
    pub(crate) new_lines: Option<(u32, u32)>,
}

/// The name in an id, of a definition in a file: paths may have a `#` of their own.
pub(crate) fn name_in<'id>(id: &'id str, path: &str) -> &'id str {
    let of_file = id.strip_prefix(path).and_then(|rest| rest.strip_prefix('#'));
    let of_another = || id.split_once('#').map_or(id, |(_, name)| name);
    of_file.unwrap_or_else(of_another)
}

/// One of the two things that are compared: a tree with what is not committed laid over it.
struct Side {
    reference: String,
    target: Option<Target>,
    overlay: BTreeMap<RepoPath, Option<Entry>>,
}

impl DiffBy {
    fn name(self) -> &'static str {
        match self {
            Self::Symbol => "symbol",
            Self::File => "file",
            Self::Text => "text",
        }
    }
}

fn side_out(side: &Side) -> SideOut {
    SideOut {
        reference: side.reference.clone(),
        commit: side
            .target
            .and_then(|target| target.commit)
            .map(|commit| commit.to_string()),
        state: format!("{:?} {:?}", side.target, side.overlay),
    }
}

/// `FROM TO`, `A..B`, or `A...B`: from where the two parted to B.
fn sides(workspace: &Workspace, args: &DiffQuestion, interrupt: &AtomicBool) -> Result<(Side, Side)> {
    let side = |reference: &str| side(workspace, reference, interrupt);
    let first = args.from.as_deref().unwrap_or("HEAD");
    if let Some((a, b)) = first.split_once("...").filter(|_| args.to.is_none()) {
        let (a, b) = (side(or_head(a))?, side(or_head(b))?);
        let commit = |side: &Side| {
            let commit = side.target.and_then(|target| target.commit);
            commit.with_context(|| format!("{} is not a commit", side.reference))
        };
        let base = workspace
            .repository
            .merge_base(commit(&a)?, commit(&b)?)?
            .ok_or_else(|| {
                OpError::new(
                    format!("{} and {} have no common ancestor", a.reference, b.reference),
                    format!("diff {} {} compares the two", a.reference, b.reference),
                )
            })?;
        return Ok((side(&base.to_string())?, b));
    }
    if let Some((a, b)) = first.split_once("..").filter(|_| args.to.is_none()) {
        return Ok((side(or_head(a))?, side(or_head(b))?));
    }
    let last = match (&args.to, workspace.repository.work_dir()) {
        (Some(to), _) => to.as_str(),
        (None, Some(_)) => "WORKTREE",
        (None, None) => "HEAD",
    };
    Ok((side(first)?, side(last)?))
}

fn or_head(reference: &str) -> &str {
    if reference.is_empty() { "HEAD" } else { reference }
}

fn side(workspace: &Workspace, reference: &str, interrupt: &AtomicBool) -> Result<Side> {
    // Before the first commit there is nothing, which can be compared too.
    let target = match reference {
        "HEAD" => workspace.target("WORKTREE")?,
        reference => workspace.target(reference)?,
    };
    let uncommitted = workspace.uncommitted(reference, interrupt)?;
    Ok(Side {
        reference: reference.to_owned(),
        target,
        overlay: uncommitted
            .into_iter()
            .map(|change| (change.path, change.new))
            .collect(),
    })
}

/// The files that differ, those that are asked for, ascending by path.
fn changes(workspace: &Workspace, from: &Side, to: &Side, args: &DiffQuestion) -> Result<Vec<Change>> {
    let wanted: Vec<RepoPath> = args
        .paths
        .iter()
        .map(|path| typed_path(workspace, path.as_ref()))
        .collect();
    let mut reader = workspace.repository.reader();
    let tree = |side: &Side| side.target.map(|target| target.tree);
    let mut both: BTreeMap<RepoPath, (Option<Entry>, Option<Entry>)> = BTreeMap::new();
    if let Some(new) = tree(to) {
        let differing = match reader.diff_trees(tree(from), new) {
            // Renames from elsewhere are not seen then.
            Err(ObjectError::BeyondLimit { .. }) if !wanted.is_empty() => {
                reader.diff_trees_below(tree(from), new, &wanted)?
            }
            differing => differing?,
        };
        for change in differing {
            let entry = both.entry(change.path).or_default();
            entry.0 = entry.0.or(change.old.map(Into::into));
            entry.1 = entry.1.or(change.new.map(Into::into));
        }
    }
    let mut paths: Vec<&RepoPath> = from.overlay.keys().chain(to.overlay.keys()).collect();
    paths.sort_unstable();
    paths.dedup();
    let mut entries_of = |tree: Option<TreeId>| -> Result<BTreeMap<RepoPath, Entry>> {
        let Some(tree) = tree.filter(|_| !paths.is_empty()) else {
            return Ok(BTreeMap::new());
        };
        let found = reader.diff_trees_at(None, tree, &paths)?.into_iter();
        Ok(found
            .filter_map(|change| Some((change.path, change.new?.into())))
            .collect())
    };
    let (old, new) = (entries_of(tree(from))?, entries_of(tree(to))?);
    for path in &paths {
        let at = |side: &Side, committed: &BTreeMap<RepoPath, Entry>| match side.overlay.get(*path) {
            Some(entry) => *entry,
            None => committed.get(*path).copied(),
        };
        both.insert((*path).clone(), (at(from, &old), at(to, &new)));
    }
    let changes = both
        .into_iter()
        .filter(|(_, (old, new))| old != new)
        .map(|(path, (old, new))| Change {
            path,
            old,
            new,
            origin: None,
            is_combined: false,
        });
    let mut changes = with_renames(&mut reader, changes.collect())?;
    // What was renamed is told with its new name.
    let gone = changes.iter().filter(|change| change.new.is_none());
    let gone: BTreeMap<RepoPath, Option<Entry>> = gone.map(|change| (change.path.clone(), change.old)).collect();
    let mut renamed = BTreeSet::new();
    for change in &mut changes {
        if let Some(origin) = &change.origin {
            change.old = gone.get(&origin.path).copied().flatten();
            renamed.insert(origin.path.clone());
        }
    }
    changes.retain(|change| change.new.is_some() || !renamed.contains(&change.path));
    changes.retain(|change| wanted.is_empty() || wanted.iter().any(|folder| is_at_or_below(&change.path, folder)));
    Ok(changes)
}

fn is_at_or_below(path: &RepoPath, folder: &RepoPath) -> bool {
    let rest = path.as_bytes().strip_prefix(folder.as_bytes());
    folder.as_bytes().is_empty() || rest.is_some_and(|rest| rest.is_empty() || rest[0] == b'/')
}

/// Reads what differs.
struct Comparison<'a> {
    workspace: &'a Workspace,
    by: DiffBy,
    interrupt: &'a AtomicBool,
    disk: Option<WorkTreeReader>,
    extractor: Extractor,
}

impl<'a> Comparison<'a> {
    fn new(workspace: &'a Workspace, by: DiffBy, interrupt: &'a AtomicBool) -> Self {
        Self {
            workspace,
            by,
            interrupt,
            disk: None,
            extractor: Extractor::new(Options::default()),
        }
    }

    fn files(&mut self, changes: Vec<Change>, is_read: bool) -> Result<Vec<FileOut>> {
        let (mut files, mut pairs) = (Vec::with_capacity(changes.len()), Vec::new());
        for change in &changes {
            if self.interrupt.load(Ordering::Relaxed) {
                anyhow::bail!("interrupted");
            }
            let mut told = file_out(change);
            if is_read {
                pairs.push(self.compare(change, &mut told)?);
            }
            files.push(told);
        }
        if self.by == DiffBy::Symbol {
            files.iter_mut().for_each(|file| file.symbols = Some(Vec::new()));
            for delta in symbol_deltas(&pairs) {
                let of_file = files.get_mut(delta.pair).and_then(|file| file.symbols.as_mut());
                if let Some(symbols) = of_file {
                    symbols.push(symbol_out(&delta));
                }
            }
        }
        Ok(files)
    }

    fn compare(&mut self, change: &Change, told: &mut FileOut) -> Result<FilePair> {
        let old_path = change.origin.as_ref().map_or(&change.path, |origin| &origin.path);
        let old = self.read(old_path, change.old)?;
        let new = self.read(&change.path, change.new)?;
        let is_text = |bytes: &[u8]| !bytes[..bytes.len().min(8_000)].contains(&0);
        let (Some(old), Some(new)) = (old, new) else {
            let is_submodule = |entry: Entry| entry.mode == FileMode::Submodule;
            told.is_unread = !change.old.is_some_and(is_submodule) && !change.new.is_some_and(is_submodule);
            return Ok(FilePair::default());
        };
        if !is_text(&old) || !is_text(&new) {
            return Ok(FilePair::default());
        }
        let (mut n_added, mut n_removed) = (0, 0);
        for hunk in diff_lines(&old, &new) {
            n_added += hunk.new.len() as u32;
            n_removed += hunk.old.len() as u32;
        }
        (told.added_lines, told.removed_lines) = (Some(n_added), Some(n_removed));
        if self.by == DiffBy::Text {
            told.diff = Some(unified(&old, &new, (1, 1)));
        }
        if self.by != DiffBy::Symbol {
            return Ok(FilePair::default());
        }
        let mut shapes =
            |path: &RepoPath, bytes: Vec<u8>| (path.clone(), FileShapes::of(&mut self.extractor, path, bytes));
        Ok(FilePair {
            old: change.old.map(|_| shapes(old_path, old)),
            new: change.new.map(|_| shapes(&change.path, new)),
        })
    }

    /// The bytes; nothing for what is not there, `None` for what cannot be read or is another repository.
    fn read(&mut self, path: &RepoPath, entry: Option<Entry>) -> Result<Option<Vec<u8>>> {
        match entry {
            None => Ok(Some(Vec::new())),
            Some(entry) if entry.mode == FileMode::Submodule => Ok(None),
            Some(entry) => self.workspace.content(path, entry, &mut self.disk),
        }
    }
}

fn file_out(change: &Change) -> FileOut {
    let kind = match (change.old, change.new) {
        _ if change.origin.is_some() => FileChangeKind::Renamed,
        (None, _) => FileChangeKind::Added,
        (_, None) => FileChangeKind::Deleted,
        (Some(old), Some(new)) if old.oid == new.oid => FileChangeKind::Mode,
        _ => FileChangeKind::Modified,
    };
    FileOut {
        kind: kind.name(),
        path: change.path.to_string(),
        from_path: change.origin.as_ref().map(|origin| origin.path.to_string()),
        similarity: change.origin.as_ref().map(|origin| origin.similarity),
        old_blob: change.old.map(|entry| entry.oid.to_string()),
        new_blob: change.new.map(|entry| entry.oid.to_string()),
        added_lines: None,
        removed_lines: None,
        symbols: None,
        diff: None,
        is_unread: false,
    }
}

fn symbol_out(delta: &SymbolDelta) -> SymbolOut {
    SymbolOut {
        id: delta.key.id(),
        kind: kind_name(delta.kind),
        events: delta.events.names(),
        from: delta.from.as_ref().map(SymbolKey::id),
        confidence: delta.confidence,
        old_lines: delta.old_lines,
        new_lines: delta.new_lines,
    }
}
