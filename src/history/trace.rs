//! Traces the changes of definitions in the commits of a batch, on several threads.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rayon::prelude::*;

use crate::git::{FileMode, ObjectError, ObjectReader, Repository};
use crate::model::{Oid, RepoPath, explain_by};
use crate::sidecar::FileError;

use super::batch::Batch;
use super::lineage::{FileRecords, MAX_SEARCHED_FILES, file_records, searched, settle};
use super::record::{Entry, PathChange};
use super::symbol_batch::{SymbolBatch, TracedChange, TracedPaths};
use super::symbols::FileShapes;
use super::versions::{Versions, is_traced};

/// Number of versions of a path that are cached. If there are several branches, versions alternate.
const KEPT_VERSIONS: usize = 4;

/// An error from tracing a batch.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The repository cannot be read.
    #[error(transparent)]
    Object(#[from] ObjectError),
    /// The records of the batch cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// The interrupt flag was set.
    #[error("interrupted")]
    Interrupted,
}

explain_by!(TraceError: Object; Interrupted);

/// Returns the changes of definitions in the commits `locals` of a batch. Calls `advance` after each changed path.
pub fn trace(
    repository: &Repository,
    batch: &Batch,
    locals: &BTreeSet<u32>,
    max_bytes: u64,
    advance: &(dyn Fn() + Sync),
    interrupt: &AtomicBool,
) -> Result<TracedPaths, TraceError> {
    let n_touched = locals.iter().map(|&local| Ok((local, batch.n_touched(local)?)));
    let n_touched = n_touched.collect::<Result<HashMap<u32, usize>, FileError>>()?;
    let mut of_large = HashMap::new();
    for (&local, _) in n_touched.iter().filter(|(_, n)| **n > MAX_SEARCHED_FILES) {
        let paths = searched(&batch.changes_at(local)?);
        of_large.extend(paths.map(|paths| (local, paths)));
    }
    let tracer = Tracer {
        batch,
        n_touched,
        searched: of_large,
        advance,
        interrupt,
    };
    let mut paths = paths_of(batch, &|local| locals.contains(&local))?;
    // Start with the paths that have most changes, so that no thread is busy with a long path at the end.
    paths.sort_by_key(|(number, _, changes)| (std::cmp::Reverse(changes.len()), *number));
    let versions = || Versions::new(repository.reader(), max_bytes);
    let of_paths = paths
        .par_iter()
        .with_max_len(1)
        .map_init(versions, |versions, (number, path, changes)| {
            tracer.path(versions, *number, path, changes)
        });
    let of_paths: Vec<Vec<Traced>> = of_paths.collect::<Result<_, _>>()?;
    Ok(settled(of_paths.into_iter().flatten().collect()))
}

/// Returns the number of changed paths that [`trace`] would process.
pub fn n_traced(batch: &Batch, is_wanted: &dyn Fn(u32) -> bool) -> Result<usize, FileError> {
    let paths = paths_of(batch, is_wanted)?;
    Ok(paths.iter().map(|(.., changes)| changes.len()).sum())
}

type ChangesOfPath = (u32, RepoPath, Vec<PathChange>);

fn paths_of(batch: &Batch, is_wanted: &dyn Fn(u32) -> bool) -> Result<Vec<ChangesOfPath>, FileError> {
    let mut paths = Vec::new();
    for number in 0..batch.n_paths() {
        let path = RepoPath::new(batch.path(number).unwrap_or_default());
        if !is_traced(&path) {
            continue;
        }
        let mut changes = batch.run(number as usize)?;
        changes.retain(|change| is_wanted(change.commit - batch.base()));
        if !changes.is_empty() {
            paths.push((number, path, changes));
        }
    }
    Ok(paths)
}

/// Returns the file versions of each change whose definitions are unknown, with the number of the commit in the batch.
/// At least one of these versions was missing or damaged.
pub fn unread(batch: &Batch, symbols: &SymbolBatch) -> Result<Vec<(u32, Vec<Oid>)>, FileError> {
    let mut found = Vec::new();
    for (path, traced) in symbols.unknown(batch)? {
        let changes = batch.changes_of(batch.path(path).unwrap_or_default())?;
        for local in traced.iter().map(|traced| traced.local) {
            let number = batch.base() + local;
            let Some(change) = changes.iter().find(|change| change.commit == number) else {
                continue;
            };
            let of_origin = match &change.origin {
                Some(origin) => batch.changes_of(origin.path.as_bytes())?,
                None => Vec::new(),
            };
            let before = of_origin
                .iter()
                .find(|other| other.commit == number)
                .and_then(|other| other.old);
            let versions = [before, change.old, change.new].into_iter().flatten();
            let versions = versions.filter(|entry| matches!(entry.mode, FileMode::File | FileMode::Executable));
            found.push((local, versions.map(|entry| entry.oid).collect()));
        }
    }
    Ok(found)
}

/// The changes that one commit made to the definitions of one file. `records` is `None` if a version is not in the repository.
struct Traced {
    local: u32,
    number: u32,
    path: RepoPath,
    records: Option<FileRecords>,
}

struct Tracer<'a> {
    batch: &'a Batch,
    /// The number of paths that each commit changed.
    n_touched: HashMap<u32, usize>,
    /// The paths between which definitions may have moved in commits that changed many.
    searched: HashMap<u32, HashSet<RepoPath>>,
    advance: &'a (dyn Fn() + Sync),
    interrupt: &'a AtomicBool,
}

/// Cached versions of a path, the most recent last.
type Kept = VecDeque<((Oid, RepoPath), Arc<FileShapes>)>;

impl Tracer<'_> {
    fn path(
        &self,
        versions: &mut Versions<ObjectReader>,
        number: u32,
        path: &RepoPath,
        changes: &[PathChange],
    ) -> Result<Vec<Traced>, TraceError> {
        let mut kept = Kept::new();
        let mut traced = Vec::with_capacity(changes.len());
        for change in changes {
            if self.interrupt.load(Ordering::Relaxed) {
                return Err(TraceError::Interrupted);
            }
            let local = change.commit - self.batch.base();
            let is_searched = |paths: &HashSet<RepoPath>| paths.contains(path);
            let keeps = (2..=MAX_SEARCHED_FILES).contains(&self.n_touched[&local])
                || self.searched.get(&local).is_some_and(is_searched);
            let before = self.before(path, change)?;
            let before_path = before.as_ref().map_or(path, |(path, _)| path);
            let old = load(
                versions,
                &mut kept,
                before_path,
                before.as_ref().map(|(_, entry)| *entry),
                None,
            )?;
            let new = load(versions, &mut kept, path, change.new, old.clone().flatten())?;
            let records = old.zip(new).map(|(old, new)| {
                let old = old.as_deref().map(|file| (before_path, file));
                file_records(path, old, new.as_deref(), keeps)
            });
            traced.push(Traced {
                local,
                number,
                path: path.clone(),
                records,
            });
            (self.advance)();
        }
        Ok(traced)
    }

    /// Returns the path and the entry of the file before a change. They differ from the new ones if the file was
    /// renamed.
    fn before(&self, path: &RepoPath, change: &PathChange) -> Result<Option<(RepoPath, Entry)>, FileError> {
        let Some(origin) = &change.origin else {
            return Ok(change.old.map(|entry| (path.clone(), entry)));
        };
        let changes = self.batch.changes_of(origin.path.as_bytes())?;
        let there = changes.iter().find(|other| other.commit == change.commit);
        Ok(there
            .and_then(|change| change.old)
            .map(|entry| (origin.path.clone(), entry)))
    }
}

/// Loads a version. Returns `None` if it is not in the repository, and `Some(None)` if there is no entry. Parses less
/// by reusing the definitions of `like` or, if there is none, of the last cached version.
fn load(
    versions: &mut Versions<ObjectReader>,
    kept: &mut Kept,
    path: &RepoPath,
    entry: Option<Entry>,
    like: Option<Arc<FileShapes>>,
) -> Result<Option<Option<Arc<FileShapes>>>, ObjectError> {
    let Some(entry) = entry else { return Ok(Some(None)) };
    let name = (entry.oid, path.clone());
    if let Some((_, file)) = kept.iter().find(|(known, _)| *known == name) {
        return Ok(Some(Some(Arc::clone(file))));
    }
    let Some(bytes) = versions.bytes(entry)? else {
        return Ok(None);
    };
    let like = like.or_else(|| kept.back().map(|(_, file)| Arc::clone(file)));
    let file = Arc::new(versions.shapes(path, bytes, like.as_deref()));
    if kept.len() >= KEPT_VERSIONS {
        kept.pop_front();
    }
    kept.push_back((name, Arc::clone(&file)));
    Ok(Some(Some(file)))
}

/// Searches the files of each commit for moved definitions.
fn settled(mut traced: Vec<Traced>) -> TracedPaths {
    traced.sort_by_key(|traced| (traced.local, traced.number));
    let mut commits: Vec<Vec<Traced>> = Vec::new();
    for one in traced {
        match commits.last_mut() {
            Some(last) if last[0].local == one.local => last.push(one),
            _ => commits.push(vec![one]),
        }
    }
    let changes: Vec<Vec<(u32, TracedChange)>> = commits.into_par_iter().map(settled_commit).collect();
    let mut paths = TracedPaths::new();
    for (number, change) in changes.into_iter().flatten() {
        if change.is_unknown || !change.records.is_empty() {
            paths.entry(number).or_default().push(change);
        }
    }
    paths
}

fn settled_commit(commit: Vec<Traced>) -> Vec<(u32, TracedChange)> {
    let heads: Vec<(u32, u32, bool)> = commit
        .iter()
        .map(|traced| (traced.local, traced.number, traced.records.is_none()))
        .collect();
    let mut files: Vec<(RepoPath, FileRecords)> = commit
        .into_iter()
        .map(|traced| (traced.path, traced.records.unwrap_or_default()))
        .collect();
    settle(&mut files);
    let changes = heads.into_iter().zip(files);
    changes
        .map(|((local, number, is_unknown), (_, file))| {
            let change = TracedChange {
                local,
                is_unknown,
                records: file.records,
            };
            (number, change)
        })
        .collect()
}
