//! Finds the history of a definition, through edits, renames and moves.
//!
//! The changes of traced commits are read from the symbol batches. For other commits, the versions of the file are read
//! and compared in the same way, newest first. If the deadline passes, the result ends before the first change that was
//! not read.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::rc::Rc;
use std::sync::Arc;

use crate::git::ObjectReader;
use crate::model::{Ctx, Oid, RepoPath, Stage};

use super::files::{last_deletion, state_at};
use super::follow::{ABSENT, Followed, Step, Timeline, UNKNOWN, follow, last_step};
use super::known::{ChangeKey, SymbolChangeCache};
use super::lineage::{FileRecords, SymbolRecord, file_records, searched, settle};
use super::record::{Boundary, Change, Entry, PathChange};
use super::store::{History, HistoryError, Reachable};
use super::symbols::{FileShapes, SymbolEvents, SymbolKey};
use super::versions::{Versions, is_traced, symbol_recipe};
use super::watch::{Watch, contains_name, is_word};

/// Number of file versions whose definitions are cached.
const KEPT_VERSIONS: usize = 96;

/// A definition in a version of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SymbolVersion {
    /// The id of the version's blob.
    pub oid: Oid,
    /// The first line, 1-based.
    pub start_line: u32,
    /// The last line, 1-based and inclusive.
    pub end_line: u32,
}

/// A change of a definition in a commit.
#[derive(Clone, Debug, PartialEq)]
pub struct SymbolChange {
    /// The number of the commit.
    pub commit: u32,
    /// The key after the commit. If the commit removed the definition, the key before it.
    pub key: SymbolKey,
    /// The events that the change consists of.
    pub events: SymbolEvents,
    /// The key before the commit; `None` if it is the same.
    pub from: Option<SymbolKey>,
    /// The confidence that both versions belong to the same definition, from 0 to 1.
    pub confidence: f64,
    /// The version before the commit.
    pub old: Option<SymbolVersion>,
    /// The version after the commit.
    pub new: Option<SymbolVersion>,
}

/// The history of a definition up to a commit.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SymbolHistory {
    /// The changes, children before parents.
    pub changes: Vec<SymbolChange>,
    /// True if the commit contains the definition.
    pub is_there: bool,
    /// Number of file versions that are not in the repository.
    pub n_missing: usize,
    /// Number of changes of the file that were not read before the deadline. `changes` ends before them.
    pub n_unread: usize,
}

/// The records of all definitions of a path, or of those with one name.
#[derive(Default)]
struct PathTrace {
    /// The stored records, by name and by index among the definitions of that name. Ascending by commit number.
    records: HashMap<(String, u32), Vec<(u32, SymbolRecord)>>,
    /// The changes of the path that have no stored records.
    open: Vec<PathChange>,
}

/// Number of changes that are computed even if the deadline has passed.
const MIN_COMPUTED: usize = 4;

/// Finds the histories of definitions, as seen from one commit.
pub struct SymbolTracer<'a> {
    history: &'a History,
    reached: &'a Reachable,
    known: &'a mut SymbolChangeCache,
    ctx: Ctx<'a>,
    versions: Versions<&'a mut ObjectReader>,
    recipe: u64,
    files: HashMap<(Oid, RepoPath), Rc<FileShapes>>,
    /// The last version that was read of each path. The next version is probably similar.
    last: HashMap<RepoPath, Rc<FileShapes>>,
    changes: HashMap<RepoPath, Rc<Vec<PathChange>>>,
    /// By path and name. The name is `None` if all names of a path are read together.
    traces: HashMap<(RepoPath, Option<String>), Rc<PathTrace>>,
    reads_all_names: bool,
    records: HashMap<(u32, SymbolKey), SymbolRecord>,
    /// The commits in which moves between files have been searched.
    settled: HashSet<u32>,
    /// For each definition, the changes that were not read before the deadline.
    unread: HashMap<SymbolKey, Unread>,
    /// The commits in which moves were not searched because the deadline had passed.
    unsettled: HashSet<u32>,
    /// Follows the last queried definition through versions that need not be parsed.
    watch: Option<(SymbolKey, Watch)>,
    n_missing: usize,
    n_computed: usize,
}

/// The changes of definitions in files that a commit changed.
struct Searched {
    files: Vec<(RepoPath, FileRecords)>,
    /// False if a version is not in the repository.
    is_whole: bool,
}

/// The changes that were not read before the deadline.
struct Unread {
    /// The first commit from which all changes were read.
    before: u32,
    n_changes: usize,
}

impl<'a> SymbolTracer<'a> {
    /// Creates a tracer for files of at most `max_bytes` bytes. It adds computed changes to `known`.
    pub fn new(
        history: &'a History,
        reached: &'a Reachable,
        reader: &'a mut ObjectReader,
        max_bytes: u64,
        known: &'a mut SymbolChangeCache,
        ctx: Ctx<'a>,
    ) -> Self {
        Self {
            history,
            reached,
            known,
            ctx,
            versions: Versions::new(reader, max_bytes),
            recipe: symbol_recipe(max_bytes),
            files: HashMap::new(),
            last: HashMap::new(),
            changes: HashMap::new(),
            traces: HashMap::new(),
            reads_all_names: false,
            records: HashMap::new(),
            settled: HashSet::new(),
            unread: HashMap::new(),
            unsettled: HashSet::new(),
            watch: None,
            n_missing: 0,
            n_computed: 0,
        }
    }

    /// Returns the histories of several definitions of one file.
    pub fn of_all(&mut self, tip: u32, keys: &[SymbolKey]) -> Result<Vec<SymbolHistory>, HistoryError> {
        self.reads_all_names = true;
        keys.iter().map(|key| self.of(tip, key)).collect()
    }

    /// Returns the history of a definition up to the commit `tip`. If the definition was removed, returns its history
    /// up to the removal.
    pub fn of(&mut self, tip: u32, key: &SymbolKey) -> Result<SymbolHistory, HistoryError> {
        self.n_missing = 0;
        self.unread.clear();
        self.unsettled.clear();
        let (history, reached) = (self.history, self.reached);
        let steps = self.steps(key, u32::MAX)?;
        let is_there = state_at(history, tip, &steps) != ABSENT;
        let is_unknown = last_step(history, &steps, tip).is_none() && self.unread.contains_key(key);
        let start = if is_there || is_unknown {
            Some(tip)
        } else {
            last_deletion(reached, &steps)
        };
        let mut changes = Vec::new();
        if let Some(start) = start {
            let mut found = follow(history, start, key, self)?;
            found.sort_by_key(|followed| std::cmp::Reverse(history.order_of(followed.step.commit)));
            for followed in found.into_iter().filter(|followed| !followed.is_join) {
                changes.extend(self.change(followed)?);
            }
        }
        // Several names of the definition may lack the same changes.
        let n_unread = self.unread.values().map(|unread| unread.n_changes).max();
        let n_unread = n_unread.unwrap_or_default() + self.unsettled.len();
        Ok(SymbolHistory {
            is_there,
            changes,
            n_missing: self.n_missing,
            n_unread,
        })
    }

    /// Returns the keys that the commit `number` moved a definition to. Empty if the commit deleted it.
    pub fn moved_to(&mut self, key: &SymbolKey, number: u32) -> Result<Vec<SymbolKey>, HistoryError> {
        self.successors(key, number)
    }

    fn trace_of(&mut self, key: &SymbolKey) -> Result<Rc<PathTrace>, HistoryError> {
        let name = (!self.reads_all_names).then(|| key.name.clone());
        let place = (key.path.clone(), name);
        if let Some(trace) = self.traces.get(&place) {
            return Ok(Rc::clone(trace));
        }
        let mut kept = self
            .history
            .traced_changes(&key.path, place.1.as_deref(), self.recipe)?;
        let mut trace = PathTrace::default();
        for change in self.changes_of(&key.path)?.iter() {
            let is_known = self.history.is_traced(change.commit, self.recipe);
            match kept.remove(&change.commit) {
                _ if !self.reached.has(change.commit) => {}
                Some(kept) if !kept.is_unknown => {
                    for record in kept.records {
                        let of_name = trace.records.entry((record.name.clone(), record.nth)).or_default();
                        of_name.push((change.commit, record));
                    }
                }
                None if is_known => {}
                _ => trace.open.push(change.clone()),
            }
        }
        let trace = Rc::new(trace);
        self.traces.insert(place, Rc::clone(&trace));
        Ok(trace)
    }

    fn changes_of(&mut self, path: &RepoPath) -> Result<Rc<Vec<PathChange>>, HistoryError> {
        if let Some(changes) = self.changes.get(path) {
            return Ok(Rc::clone(changes));
        }
        let changes = Rc::new(self.history.changes_of(path.as_bytes())?);
        self.changes.insert(path.clone(), Rc::clone(&changes));
        Ok(changes)
    }

    fn change_at(&mut self, path: &RepoPath, commit: u32) -> Result<Option<PathChange>, HistoryError> {
        let changes = self.changes_of(path)?;
        let at = changes.binary_search_by_key(&commit, |change| change.commit);
        Ok(at.ok().map(|at| changes[at].clone()))
    }

    /// Returns the path and the entry of the file before a change. They differ from the new ones if the file was
    /// renamed.
    fn before(&mut self, path: &RepoPath, change: &PathChange) -> Result<Option<(RepoPath, Entry)>, HistoryError> {
        let Some(origin) = &change.origin else {
            return Ok(change.old.map(|entry| (path.clone(), entry)));
        };
        let there = self.change_at(&origin.path, change.commit)?;
        Ok(there
            .and_then(|change| change.old)
            .map(|entry| (origin.path.clone(), entry)))
    }

    /// Returns a version of a file with its definitions, or `None` if it is not in the repository. Parses less by
    /// reusing the definitions of `like`, a similar version.
    fn file(
        &mut self,
        path: &RepoPath,
        entry: Entry,
        like: Option<&FileShapes>,
    ) -> Result<Option<Rc<FileShapes>>, HistoryError> {
        let name = (entry.oid, path.clone());
        if let Some(file) = self.files.get(&name) {
            return Ok(Some(Rc::clone(file)));
        }
        let Some(bytes) = self.versions.bytes(entry)? else {
            return Ok(None);
        };
        if self.files.len() >= KEPT_VERSIONS {
            self.files.clear();
            self.last.retain(|known, _| known == path);
        }
        let last = self.last.get(path).map(Rc::clone);
        let file = Rc::new(self.versions.shapes(path, bytes, like.or(last.as_deref())));
        self.last.insert(path.clone(), Rc::clone(&file));
        self.watch = None;
        self.files.insert(name, Rc::clone(&file));
        Ok(Some(file))
    }

    /// Computes the change of a definition in a commit that is not traced. The outer `None` means that the deadline has
    /// passed.
    fn compute(&mut self, key: &SymbolKey, change: &PathChange) -> Result<Option<Option<SymbolRecord>>, HistoryError> {
        let before = self.before(&key.path, change)?;
        let pair = ChangeKey::new(before.as_ref(), change.new);
        if let Some(known) = self.known.get(&key.path, &pair) {
            return Ok(Some(record_of(&known, key)));
        }
        if self.known.is_untouched(key, &pair) {
            return Ok(Some(None));
        }
        // The first changes are read in any case, so that each call gets further.
        if self.ctx.is_late() && self.n_computed >= MIN_COMPUTED {
            return Ok(None);
        }
        self.n_computed += 1;
        if self.ctx.is_interrupted() {
            return Err(HistoryError::Interrupted);
        }
        let versions = before.as_ref().map(|(path, entry)| (path, *entry));
        let versions = versions.into_iter().chain(change.new.map(|entry| (&key.path, entry)));
        let mut is_named = false;
        for (path, entry) in versions {
            match self.contains_name(path, entry, &key.name)? {
                Some(holds) => is_named |= holds,
                None => {
                    self.n_missing += 1;
                    return Ok(Some(None));
                }
            }
        }
        if !is_named || self.is_untouched(key, before.as_ref(), change.new)? {
            self.known.add_unchanged(key, pair);
            return Ok(Some(None));
        }
        let Some(found) = self.file_records(&key.path, change, false)? else {
            return Ok(Some(None));
        };
        let records = Rc::new(found.records);
        self.known.add(&key.path, pair, Rc::clone(&records));
        Ok(Some(record_of(&records, key)))
    }

    /// Returns true if the lines of the definition in both versions of a change equal those in the version that was
    /// parsed last.
    fn is_untouched(
        &mut self,
        key: &SymbolKey,
        before: Option<&(RepoPath, Entry)>,
        after: Option<Entry>,
    ) -> Result<bool, HistoryError> {
        let (Some((path, before)), Some(after), Some(last)) = (before, after, self.last.get(&key.path)) else {
            return Ok(false);
        };
        if *path != key.path {
            return Ok(false);
        }
        if self.watch.as_ref().is_none_or(|(watched, _)| watched != key) {
            self.watch = Watch::new(last, &key.name, key.nth).map(|watch| (key.clone(), watch));
        }
        let Some((_, watch)) = &mut self.watch else {
            return Ok(false);
        };
        for entry in [after, *before] {
            let bytes = self.versions.bytes(entry)?;
            if !bytes.is_some_and(|bytes| watch.follow(&bytes)) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns true if a version contains the name of the definition, or `None` if the version is not in the
    /// repository. If neither version of a change contains the name, the definition did not change, and the versions
    /// need not be parsed.
    fn contains_name(&mut self, path: &RepoPath, entry: Entry, name: &str) -> Result<Option<bool>, HistoryError> {
        let bare = name.rsplit('.').next().unwrap_or(name);
        if !is_word(bare) {
            return Ok(Some(true));
        }
        let bytes = match self.files.get(&(entry.oid, path.clone())) {
            Some(file) => Some(Arc::clone(&file.bytes)),
            None => self.versions.bytes(entry)?,
        };
        Ok(bytes.map(|bytes| contains_name(&bytes, bare)))
    }

    /// Computes the changes of all definitions of a path in a commit. Returns `None` if a version is not in the
    /// repository.
    fn file_records(
        &mut self,
        path: &RepoPath,
        change: &PathChange,
        keeps: bool,
    ) -> Result<Option<FileRecords>, HistoryError> {
        // Read the newer version first. It is usually the older version of the change that was read before.
        let after = match change.new {
            None => None,
            Some(entry) => match self.file(path, entry, None)? {
                Some(file) => Some(file),
                None => return Ok(None),
            },
        };
        let before = match self.before(path, change)? {
            None => None,
            Some((path, entry)) => match self.file(&path, entry, after.as_deref())? {
                Some(file) => Some((path, file)),
                None => return Ok(None),
            },
        };
        let before = before.as_ref().map(|(path, file)| (path, &**file));
        Ok(Some(file_records(path, before, after.as_deref(), keeps)))
    }

    /// Returns the changes of the definitions of a path in a commit. Searches the files `touched` for moved
    /// definitions.
    fn records_at(
        &mut self,
        path: &RepoPath,
        commit: u32,
        touched: &[RepoPath],
    ) -> Result<Vec<SymbolRecord>, HistoryError> {
        if self.history.is_traced(commit, self.recipe) {
            let kept = self.history.traced_changes(path, None, self.recipe)?.remove(&commit);
            match kept {
                Some(kept) if kept.is_unknown => {}
                kept => return Ok(kept.map_or_else(Vec::new, |kept| kept.records)),
            }
        }
        let found = self.files_at(commit, touched)?;
        let files = found.map(|found| found.files).unwrap_or_default();
        let own = files.into_iter().find(|(other, _)| other == path);
        Ok(own.map_or_else(Vec::new, |(_, file)| file.records))
    }

    /// Computes the changes of the definitions of each path in a commit, and searches for moves between the files.
    /// Returns `None` if the deadline passes.
    fn files_at(&mut self, commit: u32, touched: &[RepoPath]) -> Result<Option<Searched>, HistoryError> {
        let mut found = Searched {
            files: Vec::new(),
            is_whole: true,
        };
        for path in touched.iter().filter(|path| is_traced(path)) {
            if self.ctx.is_late() {
                self.unsettled.insert(commit);
                return Ok(None);
            }
            if self.ctx.is_interrupted() {
                return Err(HistoryError::Interrupted);
            }
            let Some(change) = self.change_at(path, commit)? else {
                continue;
            };
            let file = self.file_records(path, &change, touched.len() > 1)?;
            found.is_whole &= file.is_some();
            found.files.extend(file.map(|file| (path.clone(), file)));
        }
        settle(&mut found.files);
        Ok(Some(found))
    }

    /// Searches the other files of a commit for the origin of an added definition.
    fn settle(&mut self, commit: u32, key: &SymbolKey) -> Result<(), HistoryError> {
        let search = ChangeKey::of_search(self.history.id(commit)?, key);
        let record = match self.known.get(&key.path, &search) {
            Some(known) => record_of(&known, key),
            None => {
                let Some(paths) = searched(&self.history.changes_at(commit)?) else {
                    return Ok(());
                };
                let mut touched: Vec<RepoPath> = paths.into_iter().collect();
                touched.sort_unstable();
                let Some(found) = self.files_at(commit, &touched)? else {
                    return Ok(());
                };
                let own = found.files.iter().find(|(path, _)| *path == key.path);
                let record = own.and_then(|(_, file)| record_of(&file.records, key));
                if found.is_whole && self.history.boundary(commit)? == Boundary::None {
                    let kept = record.iter().cloned().collect();
                    self.known.add(&key.path, search, Rc::new(kept));
                }
                record
            }
        };
        self.records
            .extend(record.map(|record| ((commit, key.clone()), record)));
        Ok(())
    }

    fn change(&mut self, followed: Followed<SymbolKey>) -> Result<Option<SymbolChange>, HistoryError> {
        let Followed { key, step, .. } = followed;
        let Some(change) = self.change_at(&key.path, step.commit)? else {
            return Ok(None);
        };
        let Some(record) = self.records.get(&(step.commit, key.clone())).cloned() else {
            return Ok(None);
        };
        // Only the index among the definitions of its name changed, so the definition is unchanged.
        if record.events == SymbolEvents::default() {
            return Ok(None);
        }
        // The definition may have been moved here, but its origin is unknown.
        if record.events.added && self.unsettled.contains(&step.commit) {
            return Ok(None);
        }
        let (from, confidence) = match record.origin {
            Some((from, percent)) => (Some(from), f64::from(percent) / 100.0),
            None => (None, 1.0),
        };
        let old_entry = match from.as_ref().filter(|from| from.path != key.path) {
            None => change.old,
            Some(from) => self.change_at(&from.path, step.commit)?.and_then(|change| change.old),
        };
        let version = |entry: Option<Entry>, lines: Option<(u32, u32)>| {
            let (entry, (start_line, end_line)) = entry.zip(lines)?;
            Some(SymbolVersion {
                oid: entry.oid,
                start_line,
                end_line,
            })
        };
        Ok(Some(SymbolChange {
            commit: step.commit,
            events: record.events,
            old: version(old_entry, record.old_lines),
            new: version(change.new, record.new_lines),
            from,
            confidence,
            key,
        }))
    }
}

/// Returns the record of the definition that has the key after the change, or else of the definition that had it
/// before.
fn record_of(records: &[SymbolRecord], key: &SymbolKey) -> Option<SymbolRecord> {
    let own = records
        .iter()
        .filter(|record| record.name == key.name && record.nth == key.nth);
    own.reduce(|one, other| if one.new_lines.is_some() { one } else { other })
        .cloned()
}

fn step_of(commit: u32, record: &SymbolRecord) -> Step<SymbolKey> {
    let is_from_here = record.old_lines.is_some() && record.origin.is_none();
    Step {
        commit,
        old: if is_from_here { UNKNOWN } else { ABSENT },
        // Add 2 to avoid the values of `ABSENT` and `UNKNOWN`.
        new: match record.new_lines {
            Some(_) => u64::from(record.text) + 2,
            None => ABSENT,
        },
        origin: None,
    }
}

impl Timeline for SymbolTracer<'_> {
    type Key = SymbolKey;
    type Error = HistoryError;

    fn steps(&mut self, key: &SymbolKey, last: u32) -> Result<Vec<Step<SymbolKey>>, HistoryError> {
        let mut found: BTreeMap<u32, SymbolRecord> = BTreeMap::new();
        if !is_traced(&key.path) {
            return Ok(Vec::new());
        }
        let trace = self.trace_of(key)?;
        let kept = trace.records.get(&(key.name.clone(), key.nth));
        for (commit, record) in kept.into_iter().flatten() {
            // If the key passed from one definition to another, the record of the new one takes precedence.
            if record.new_lines.is_some() || !found.contains_key(commit) {
                found.insert(*commit, record.clone());
            }
            self.settled.insert(*commit);
        }
        let open = &trace.open[..trace.open.partition_point(|change| change.commit <= last)];
        self.ctx.progress.begin(Stage::Tracing, open.len());
        for (at, change) in open.iter().enumerate().rev() {
            let Some(record) = self.compute(key, change)? else {
                let unread = Unread {
                    before: change.commit + 1,
                    n_changes: at + 1,
                };
                self.unread.insert(key.clone(), unread);
                found.retain(|commit, _| *commit > change.commit);
                break;
            };
            found.extend(record.map(|record| (change.commit, record)));
            self.ctx.progress.advance(0);
        }
        let steps = found.iter().map(|(commit, record)| step_of(*commit, record)).collect();
        let records = found
            .into_iter()
            .map(|(commit, record)| ((commit, key.clone()), record));
        self.records.extend(records);
        Ok(steps)
    }

    fn known_from(&self, key: &SymbolKey) -> u32 {
        self.unread.get(key).map_or(0, |unread| unread.before)
    }

    fn origin(&mut self, key: &SymbolKey, step: &Step<SymbolKey>) -> Result<Option<SymbolKey>, HistoryError> {
        let name = (step.commit, key.clone());
        let is_new = self.records.get(&name).is_some_and(|record| record.events.added);
        if is_new && !self.settled.contains(&step.commit) {
            self.settle(step.commit, key)?;
        }
        let record = self.records.get(&name);
        Ok(record.and_then(|record| Some(record.origin.as_ref()?.0.clone())))
    }

    fn successors(&mut self, key: &SymbolKey, number: u32) -> Result<Vec<SymbolKey>, HistoryError> {
        let changes = self.history.changes_at(number)?;
        let is_near = |path: &RepoPath, change: &Change| {
            change.path == *path || change.origin.as_ref().is_some_and(|origin| origin.path == *path)
        };
        let searched = searched(&changes).unwrap_or_default();
        let touched = changes
            .iter()
            .filter(|change| searched.contains(&change.path) || is_near(&key.path, change));
        let touched: Vec<RepoPath> = touched.map(|change| change.path.clone()).collect();
        let mut found = Vec::new();
        for path in &touched {
            let records = self.records_at(path, number, &touched)?.into_iter();
            let went = records.filter(|record| record.origin.as_ref().is_some_and(|(origin, _)| origin == key));
            found.extend(went.map(|record| record.key(path)));
        }
        Ok(found)
    }
}
