//! The life of a definition, through edits, renames and moves.
//!
//! Nothing is stored: the versions of the file that commit records name are looked at when somebody asks. A version that holds
//! a text of the definition that is known already needs no parsing, and one that does not hold its name has it not.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use std::sync::Arc;

use crate::extract::{Extractor, Options, lang_of_path, refine};
use crate::git::{BlobContent, FileMode, ObjectReader};
use crate::model::{BlobId, ByteRange, Oid, RepoPath};

use super::files::{last_deletion, state_at};
use super::follow::{ABSENT, Followed, Step, Timeline, UNKNOWN, follow};
use super::record::{Entry, PathChange};
use super::shape::{Shape, shapes};
use super::store::{History, HistoryError, Reachable};

/// Versions whose definitions are kept.
const KEPT_VERSIONS: usize = 96;
/// Shorter texts stand in too many places to be looked for.
const MIN_TEXT_BYTES: usize = 48;
/// A commit that changes more files is not searched for where something came from.
const MAX_SEARCHED_FILES: usize = 100;
/// So many lines of a definition are looked for in a file before it is parsed.
const TELLING_LINES: usize = 8;
/// Bodies with fewer tokens are alike by chance.
const MIN_TOKENS: u32 = 12;
/// How alike a definition of another name has to be in the same file, and in another one.
const MIN_SIMILARITY: f64 = 0.6;
const MIN_SIMILARITY_ELSEWHERE: f64 = 0.8;
/// How alike one of the same name has to be that was moved.
const MIN_SIMILARITY_NAMESAKE: f64 = 0.4;
/// Two candidates that are this near one another leave a doubt.
const DOUBT: f64 = 0.05;

/// Names a definition at one time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SymbolKey {
    /// The file.
    pub path: RepoPath,
    /// With what it belongs to: `Parser.parse`.
    pub name: String,
    /// Which of those with this name in the file, from 1.
    pub nth: u32,
}

impl SymbolKey {
    /// `src/a.rs#Parser.parse`, `src/a.rs#Parser.parse~2`.
    pub fn id(&self) -> String {
        match self.nth {
            0 | 1 => format!("{}#{}", self.path, self.name),
            nth => format!("{}#{}~{nth}", self.path, self.name),
        }
    }
}

/// What a commit did to a definition. Several can be true.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SymbolEvents {
    /// It is new.
    pub added: bool,
    /// It is gone.
    pub removed: bool,
    /// It has another name.
    pub renamed: bool,
    /// It belongs to something else, or stands in another file.
    pub moved: bool,
    /// Its signature says something else.
    pub signature: bool,
    /// Its body says something else.
    pub body: bool,
    /// Its documentation says something else.
    pub doc: bool,
    /// Only blanks, line breaks and comments differ.
    pub formatting: bool,
}

impl SymbolEvents {
    /// Between two versions of one definition. `is_elsewhere`: in another file.
    pub fn between(old: &Shape, new: &Shape, is_elsewhere: bool) -> Self {
        let outer = |shape: &Shape| shape.qualified.strip_suffix(&shape.name).map(str::to_owned);
        let mut events = Self {
            renamed: old.name != new.name,
            moved: is_elsewhere || outer(old) != outer(new),
            signature: old.prints().signature != new.prints().signature && !is_only_renamed(old, new),
            body: old.prints().body != new.prints().body,
            doc: old.prints().doc != new.prints().doc,
            ..Self::default()
        };
        events.formatting = old.prints().text != new.prints().text
            && !(events.renamed || events.signature || events.body || events.doc);
        events
    }

    /// Their names in answers.
    pub fn names(self) -> Vec<&'static str> {
        let all = [
            (self.added, "added"),
            (self.removed, "removed"),
            (self.renamed, "renamed"),
            (self.moved, "moved"),
            (self.signature, "signature"),
            (self.body, "body"),
            (self.doc, "doc"),
            (self.formatting, "formatting"),
        ];
        all.into_iter()
            .filter(|(is_so, _)| *is_so)
            .map(|(_, name)| name)
            .collect()
    }
}

/// A renamed definition has another signature because its name stands in it; the rest of it tells whether that is all.
fn is_only_renamed(old: &Shape, new: &Shape) -> bool {
    old.name != new.name && old.prints().unnamed_signature == new.prints().unnamed_signature
}

/// A definition in one version of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SymbolVersion {
    /// The version.
    pub oid: Oid,
    /// The item.
    pub range: ByteRange,
    /// 1-based.
    pub start_line: u32,
    /// 1-based, inclusive.
    pub end_line: u32,
}

/// A commit in the life of a definition.
#[derive(Clone, Debug, PartialEq)]
pub struct SymbolChange {
    /// The commit.
    pub commit: u32,
    /// What it was called and where it stood after that commit; before it, if it took it away.
    pub key: SymbolKey,
    /// What it did.
    pub events: SymbolEvents,
    /// What it was called and where it stood before, if that was otherwise.
    pub from: Option<SymbolKey>,
    /// How sure it is that this and what was before are one, 0 to 1.
    pub confidence: f64,
    /// Before.
    pub old: Option<SymbolVersion>,
    /// After.
    pub new: Option<SymbolVersion>,
}

/// The life of a definition up to a commit.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SymbolLife {
    /// Children before parents.
    pub changes: Vec<SymbolChange>,
    /// Whether the commit has it.
    pub is_there: bool,
    /// Versions of files that are not in the repository.
    pub n_missing: usize,
}

/// A version of a file with its definitions.
#[derive(Debug)]
pub struct FileShapes {
    /// All of its bytes.
    pub bytes: Arc<Vec<u8>>,
    /// Its definitions.
    pub shapes: Vec<Shape>,
}

impl FileShapes {
    /// Reads a version of the file at `path`.
    pub fn of(extractor: &mut Extractor, path: &RepoPath, bytes: Vec<u8>) -> Self {
        let lang = refine(lang_of_path(path), &bytes);
        let is_text = !bytes[..bytes.len().min(8_000)].contains(&0);
        let bytes = Arc::new(bytes);
        let shapes = match is_text {
            true => shapes(&bytes, lang, &extractor.without_chunks(&bytes, lang)),
            false => Vec::new(),
        };
        Self { bytes, shapes }
    }

    /// The definition with this name; the `nth` of several.
    pub fn find(&self, name: &str, nth: u32) -> Option<&Shape> {
        self.shapes
            .iter()
            .find(|shape| shape.qualified == name && shape.nth == nth)
    }

    /// The innermost definition that covers one of these lines, 1-based.
    pub fn around(&self, first: u32, last: u32) -> Option<&Shape> {
        let covers = |shape: &&Shape| {
            let (start, end) = lines_of(&self.bytes, shape.range);
            start <= last && first <= end
        };
        let holds_all = |shape: &&Shape| {
            let (start, end) = lines_of(&self.bytes, shape.range);
            start <= first && last <= end
        };
        let smallest = |shapes: Vec<&'_ Shape>| -> Option<usize> {
            let place = shapes.iter().min_by_key(|shape| shape.range.len())?;
            self.shapes.iter().position(|shape| std::ptr::eq(shape, *place))
        };
        let whole = smallest(self.shapes.iter().filter(holds_all).collect());
        let found = whole.or_else(|| smallest(self.shapes.iter().filter(covers).collect()))?;
        self.shapes.get(found)
    }
}

/// First and last line of a range, 1-based, blank ends left out.
pub fn lines_of(bytes: &[u8], range: ByteRange) -> (u32, u32) {
    let line_of = |at: usize| memchr::memchr_iter(b'\n', &bytes[..at.min(bytes.len())]).count() as u32 + 1;
    let text = bytes.get(range.as_usize()).unwrap_or_default();
    let end = range.start as usize + text.trim_ascii_end().len().max(1) - 1;
    (line_of(range.start as usize), line_of(end))
}

/// The life of a definition as the commit `tip` sees it. One that is no longer there is followed from where it was removed.
pub fn symbol_life(
    history: &History,
    tip: u32,
    reached: &Reachable,
    key: &SymbolKey,
    reader: &mut ObjectReader,
    max_bytes: u64,
) -> Result<SymbolLife, HistoryError> {
    let mut symbols = Symbols::new(history, reached, reader, max_bytes);
    let steps = symbols.steps(key)?;
    let is_there = state_at(history, tip, &steps) != ABSENT;
    let start = match is_there {
        true => Some(tip),
        false => last_deletion(reached, &steps),
    };
    let Some(start) = start else {
        return Ok(SymbolLife {
            n_missing: symbols.n_missing,
            ..SymbolLife::default()
        });
    };
    let mut found = follow(history, start, key, &mut symbols)?;
    found.sort_by_key(|followed| std::cmp::Reverse(history.order_of(followed.step.commit)));
    let mut changes = Vec::with_capacity(found.len());
    for followed in found {
        changes.extend(symbols.change(followed)?);
    }
    Ok(SymbolLife {
        is_there,
        changes,
        n_missing: symbols.n_missing,
    })
}

/// What became of a definition between two versions of its file, of which the second is not committed: what happened, what it
/// was before if that was otherwise, and how sure that is. `None` if nothing happened to it.
pub fn change_between(
    old: Option<(&RepoPath, &FileShapes)>,
    new: Option<&FileShapes>,
    key: &SymbolKey,
) -> Option<(SymbolEvents, Option<SymbolKey>, f64)> {
    let in_old = old.and_then(|(path, file)| Some((path, file.find(&key.name, key.nth)?)));
    let in_new = new.and_then(|file| file.find(&key.name, key.nth));
    match (in_old, in_new) {
        (Some((path, before)), Some(now)) => {
            let is_elsewhere = *path != key.path;
            let from = is_elsewhere.then(|| SymbolKey {
                path: path.clone(),
                ..key.clone()
            });
            let is_same = before.prints().text == now.prints().text && !is_elsewhere;
            (!is_same).then(|| (SymbolEvents::between(before, now, is_elsewhere), from, 1.0))
        }
        (None, Some(now)) => {
            let candidates = match (old, new) {
                (Some((path, before)), Some(after)) => renamed_from(path, before, after, now),
                _ => Vec::new(),
            };
            let found = best(candidates);
            let before = found
                .as_ref()
                .and_then(|(from, _)| old.and_then(|(_, file)| file.find(&from.name, from.nth)));
            Some(match (found, before) {
                (Some((from, confidence)), Some(before)) => {
                    let is_elsewhere = from.path != key.path;
                    (SymbolEvents::between(before, now, is_elsewhere), Some(from), confidence)
                }
                _ => {
                    let events = SymbolEvents {
                        added: true,
                        ..SymbolEvents::default()
                    };
                    (events, None, 1.0)
                }
            })
        }
        (Some(_), None) => {
            let events = SymbolEvents {
                removed: true,
                ..SymbolEvents::default()
            };
            Some((events, None, 1.0))
        }
        (None, None) => None,
    }
}

struct Symbols<'a> {
    history: &'a History,
    reached: &'a Reachable,
    reader: &'a mut ObjectReader,
    extractor: Extractor,
    max_bytes: u64,
    files: HashMap<(Oid, RepoPath), Rc<FileShapes>>,
    states: HashMap<(Oid, SymbolKey), u64>,
    /// Texts that a definition is known to have had, with what they stand for; the last seen last.
    texts: HashMap<SymbolKey, Vec<(Vec<u8>, u64)>>,
    /// The last version seen, to tell namesakes in one file apart.
    last: HashMap<SymbolKey, Shape>,
    changes: HashMap<RepoPath, Rc<Vec<PathChange>>>,
    origins: HashMap<(u32, SymbolKey), (SymbolKey, f64)>,
    n_missing: usize,
}

/// Where something may have come from.
pub(super) struct Candidate {
    key: SymbolKey,
    similarity: f64,
    pub(super) score: f64,
    least: f64,
    is_namesake: bool,
}

impl Candidate {
    /// How sure it is, from the least similarity that is taken up to a full match.
    pub(super) fn confidence(&self) -> f64 {
        let share = ((self.similarity - self.least) / (1.0 - self.least)).clamp(0.0, 1.0);
        let confidence = 0.6 + 0.35 * share + if self.is_namesake { 0.04 } else { 0.0 };
        (confidence * 100.0).round() / 100.0
    }
}

/// How alike two bodies have to be at least.
pub(super) fn least_similarity(old: &Shape, new: &Shape, is_one_file: bool) -> f64 {
    match (old.name == new.name, is_one_file) {
        (true, _) => MIN_SIMILARITY_NAMESAKE,
        (false, true) => MIN_SIMILARITY,
        (false, false) => MIN_SIMILARITY_ELSEWHERE,
    }
}

impl<'a> Symbols<'a> {
    fn new(history: &'a History, reached: &'a Reachable, reader: &'a mut ObjectReader, max_bytes: u64) -> Self {
        Self {
            history,
            reached,
            reader,
            extractor: Extractor::new(Options::default()),
            max_bytes,
            files: HashMap::new(),
            states: HashMap::new(),
            texts: HashMap::new(),
            last: HashMap::new(),
            changes: HashMap::new(),
            origins: HashMap::new(),
            n_missing: 0,
        }
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

    fn bytes(&mut self, entry: Entry) -> Result<Option<Vec<u8>>, HistoryError> {
        if !matches!(entry.mode, FileMode::File | FileMode::Executable) {
            return Ok(Some(Vec::new()));
        }
        Ok(match self.reader.blob(BlobId(entry.oid), self.max_bytes)? {
            BlobContent::Content(bytes) => Some(bytes),
            BlobContent::TooLarge { .. } => Some(Vec::new()),
            BlobContent::Missing => {
                self.n_missing += 1;
                None
            }
        })
    }

    fn file(&mut self, path: &RepoPath, entry: Entry) -> Result<Option<Rc<FileShapes>>, HistoryError> {
        let name = (entry.oid, path.clone());
        if let Some(file) = self.files.get(&name) {
            return Ok(Some(Rc::clone(file)));
        }
        let Some(bytes) = self.bytes(entry)? else {
            return Ok(None);
        };
        if self.files.len() >= KEPT_VERSIONS {
            self.files.clear();
        }
        let file = Rc::new(FileShapes::of(&mut self.extractor, path, bytes));
        self.files.insert(name, Rc::clone(&file));
        Ok(Some(file))
    }

    /// What a definition is in a version of its file.
    fn state(&mut self, key: &SymbolKey, entry: Option<Entry>) -> Result<u64, HistoryError> {
        let Some(entry) = entry else { return Ok(ABSENT) };
        let name = (entry.oid, key.clone());
        if let Some(state) = self.states.get(&name) {
            return Ok(*state);
        }
        let state = self.state_by_text(key, entry)?;
        self.states.insert(name, state);
        Ok(state)
    }

    fn state_by_text(&mut self, key: &SymbolKey, entry: Entry) -> Result<u64, HistoryError> {
        let is_read = self.files.contains_key(&(entry.oid, key.path.clone()));
        if !is_read {
            let Some(bytes) = self.bytes(entry)? else {
                return Ok(UNKNOWN);
            };
            let bare = key.name.rsplit('.').next().unwrap_or(&key.name);
            if memchr::memmem::find(&bytes, bare.as_bytes()).is_none() {
                return Ok(ABSENT);
            }
            let known = self.texts.get(key).map(Vec::as_slice).unwrap_or_default();
            let stands = known.iter().rev().find(|(text, _)| stands_once(&bytes, text));
            if let Some((_, state)) = stands {
                return Ok(*state);
            }
        }
        let Some(file) = self.file(&key.path, entry)? else {
            return Ok(UNKNOWN);
        };
        let Some(shape) = self.pick(key, &file) else {
            return Ok(ABSENT);
        };
        let state = shape.prints().text;
        if let [own] = shape.own.as_slice() {
            let text = file.bytes[own.clone()].trim_ascii_end().to_vec();
            let known = self.texts.entry(key.clone()).or_default();
            if text.len() >= MIN_TEXT_BYTES && known.iter().all(|(_, other)| *other != state) {
                known.push((text, state));
            }
        }
        self.last.insert(key.clone(), shape);
        Ok(state)
    }

    /// The definition in a version; of several namesakes the one most like the last that was seen.
    fn pick(&self, key: &SymbolKey, file: &FileShapes) -> Option<Shape> {
        let namesakes: Vec<&Shape> = file.shapes.iter().filter(|shape| shape.qualified == key.name).collect();
        match (namesakes.as_slice(), self.last.get(key)) {
            ([only], _) if key.nth == 1 => Some((*only).clone()),
            (all, Some(last)) => {
                let likeness = |shape: &Shape| {
                    (last.similarity(shape) * 1e6) as u64
                        + u64::from(shape.prints().signature == last.prints().signature)
                };
                let best = all
                    .iter()
                    .max_by_key(|shape| (likeness(shape), shape.nth == key.nth, std::cmp::Reverse(shape.nth)))?;
                let is_sure = key.nth == 1 || last.similarity(best) >= MIN_SIMILARITY || best.nth == key.nth;
                is_sure.then(|| (*best).clone())
            }
            (all, None) => all
                .iter()
                .find(|shape| shape.nth == key.nth)
                .map(|shape| (*shape).clone()),
        }
    }

    /// Where the definition `new`, which `commit` put into `path`, was before.
    fn find_origin(&mut self, key: &SymbolKey, commit: u32) -> Result<Option<(SymbolKey, f64)>, HistoryError> {
        let Some(change) = self.change_at(&key.path, commit)? else {
            return Ok(None);
        };
        let Some(new_file) = self.optional(&key.path, change.new)? else {
            return Ok(None);
        };
        let Some(new) = self.pick(key, &new_file) else {
            return Ok(None);
        };
        // The file as it was, under the name that it had.
        let before = match &change.origin {
            Some(origin) => {
                let old = self.change_at(&origin.path, commit)?.and_then(|change| change.old);
                Some((origin.path.clone(), old))
            }
            None => change.old.map(|old| (key.path.clone(), Some(old))),
        };
        let mut candidates = Vec::new();
        if let Some((path, old)) = before {
            let old_file = self.optional(&path, old)?;
            let old_file = old_file.as_deref();
            if let Some(same) = old_file
                .and_then(|file| file.find(&key.name, key.nth))
                .filter(|_| path != key.path)
            {
                let confidence = if same.similarity(&new) >= MIN_SIMILARITY_NAMESAKE {
                    0.99
                } else {
                    0.8
                };
                let from = SymbolKey { path, ..key.clone() };
                return Ok(Some((from, confidence)));
            }
            candidates.extend(
                old_file
                    .map(|old| renamed_from(&path, old, &new_file, &new))
                    .unwrap_or_default(),
            );
        }
        if candidates.is_empty() {
            candidates = self.moved_from(key, commit, &new)?;
        }
        Ok(best(candidates))
    }

    fn optional(&mut self, path: &RepoPath, entry: Option<Entry>) -> Result<Option<Rc<FileShapes>>, HistoryError> {
        match entry {
            Some(entry) => self.file(path, entry),
            None => Ok(None),
        }
    }

    /// What other files lost in the same commit.
    fn moved_from(&mut self, key: &SymbolKey, commit: u32, new: &Shape) -> Result<Vec<Candidate>, HistoryError> {
        let touched = self.history.touched(commit)?;
        let mut candidates = Vec::new();
        let telling = telling_lines(new);
        if touched.len() > MAX_SEARCHED_FILES {
            return Ok(candidates);
        }
        for path in touched.into_iter().filter(|path| *path != key.path) {
            if lang_of_path(&path) != lang_of_path(&key.path) {
                continue;
            }
            let Some(PathChange {
                old: Some(before),
                new: after,
                ..
            }) = self.change_at(&path, commit)?
            else {
                continue;
            };
            if !self.holds_one(&path, before, &telling)? {
                continue;
            }
            let Some(old) = self.file(&path, before)? else {
                continue;
            };
            let remaining = self.optional(&path, after)?;
            let is_gone = |shape: &&Shape| {
                let still = remaining
                    .as_ref()
                    .and_then(|file| file.find(&shape.qualified, shape.nth));
                still.is_none() && shape.is_like(new)
            };
            for shape in old.shapes.iter().filter(is_gone) {
                let least = least_similarity(shape, new, false);
                candidates.extend(candidate(&path, shape, new, least));
            }
        }
        Ok(candidates)
    }

    /// Whether a version has one of these lines: without one it has nothing that is alike, and need not be parsed.
    fn holds_one(&mut self, path: &RepoPath, entry: Entry, lines: &[Vec<u8>]) -> Result<bool, HistoryError> {
        if let Some(file) = self.files.get(&(entry.oid, path.clone())) {
            return Ok(holds_any(&file.bytes, lines));
        }
        Ok(self.bytes(entry)?.is_some_and(|bytes| holds_any(&bytes, lines)))
    }

    fn change(&mut self, followed: Followed<SymbolKey>) -> Result<Option<SymbolChange>, HistoryError> {
        let Followed { key, step } = followed;
        let Some(change) = self.change_at(&key.path, step.commit)? else {
            return Ok(None);
        };
        let new_file = self.optional(&key.path, change.new)?;
        let new = new_file.as_deref().and_then(|file| self.pick(&key, file));
        let (from, confidence) = match self.origins.get(&(step.commit, key.clone())) {
            Some((from, confidence)) if step.origin.is_some() => (Some(from.clone()), *confidence),
            _ => (None, 1.0),
        };
        let old_key = from.clone().unwrap_or_else(|| key.clone());
        let old_entry = match old_key.path == key.path {
            true => change.old,
            false => self
                .change_at(&old_key.path, step.commit)?
                .and_then(|change| change.old),
        };
        let old_file = self.optional(&old_key.path, old_entry)?;
        let old = old_file.as_deref().and_then(|file| self.pick(&old_key, file));
        let events = match (&old, &new) {
            (Some(old), Some(new)) => SymbolEvents::between(old, new, old_key.path != key.path),
            (None, _) => SymbolEvents {
                added: true,
                ..SymbolEvents::default()
            },
            (Some(_), None) => SymbolEvents {
                removed: true,
                ..SymbolEvents::default()
            },
        };
        let version = |entry: Option<Entry>, file: &Option<Rc<FileShapes>>, shape: &Option<Shape>| {
            let (entry, file, shape) = (entry?, file.as_ref()?, shape.as_ref()?);
            let (start_line, end_line) = lines_of(&file.bytes, shape.range);
            Some(SymbolVersion {
                oid: entry.oid,
                range: shape.range,
                start_line,
                end_line,
            })
        };
        Ok(Some(SymbolChange {
            commit: step.commit,
            events,
            old: version(old_entry, &old_file, &old),
            new: version(change.new, &new_file, &new),
            from,
            confidence,
            key,
        }))
    }
}

impl Timeline for Symbols<'_> {
    type Key = SymbolKey;
    type Error = HistoryError;

    fn steps(&mut self, key: &SymbolKey) -> Result<Vec<Step<SymbolKey>>, HistoryError> {
        let changes = self.changes_of(&key.path)?;
        let mut steps = Vec::new();
        // The newest first: each text that is found is looked for in the version before.
        for change in changes.iter().rev().filter(|change| self.reached.has(change.commit)) {
            let (new, old) = (self.state(key, change.new)?, self.state(key, change.old)?);
            if new != old {
                steps.push(Step {
                    commit: change.commit,
                    old,
                    new,
                    origin: None,
                });
            }
        }
        steps.reverse();
        Ok(steps)
    }

    fn origin(&mut self, key: &SymbolKey, step: &Step<SymbolKey>) -> Result<Option<SymbolKey>, HistoryError> {
        let Some((from, confidence)) = self.find_origin(key, step.commit)? else {
            return Ok(None);
        };
        // What is known of one name is a start for the other.
        if let Some(last) = self.last.get(key).cloned() {
            self.last.entry(from.clone()).or_insert(last);
        }
        self.origins
            .insert((step.commit, key.clone()), (from.clone(), confidence));
        Ok(Some(from))
    }
}

/// The longest lines of a definition and its first one, blanks around them left out.
fn telling_lines(shape: &Shape) -> Vec<Vec<u8>> {
    let text = shape.text();
    let mut lines: Vec<&[u8]> = text.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii).collect();
    let name = shape.name.as_bytes();
    let first = lines
        .iter()
        .copied()
        .find(|line| memchr::memmem::find(line, name).is_some());
    lines.sort_by_key(|line| std::cmp::Reverse(line.len()));
    lines.truncate(TELLING_LINES);
    lines.extend(first);
    lines
        .into_iter()
        .filter(|line| !line.is_empty())
        .map(<[u8]>::to_vec)
        .collect()
}

fn holds_any(bytes: &[u8], lines: &[Vec<u8>]) -> bool {
    lines.iter().any(|line| memchr::memmem::find(bytes, line).is_some())
}

/// Whether a text begins a line in exactly one place.
fn stands_once(bytes: &[u8], text: &[u8]) -> bool {
    let mut places = memchr::memmem::find_iter(bytes, text);
    let Some(place) = places.next() else { return false };
    // The item ends there too: what follows begins another line or closes one.
    let ends = bytes
        .get(place + text.len())
        .is_none_or(|byte| byte.is_ascii_whitespace() || matches!(byte, b'}' | b')' | b';' | b','));
    ends && places.next().is_none()
}

/// What `old_file` has and `new_file` has not, that `new` may have been.
fn renamed_from(path: &RepoPath, old_file: &FileShapes, new_file: &FileShapes, new: &Shape) -> Vec<Candidate> {
    let old_names: HashSet<(&str, u32)> = old_file
        .shapes
        .iter()
        .map(|shape| (shape.qualified.as_str(), shape.nth))
        .collect();
    let new_names: HashSet<(&str, u32)> = new_file
        .shapes
        .iter()
        .map(|shape| (shape.qualified.as_str(), shape.nth))
        .collect();
    let added: Vec<&Shape> = new_file
        .shapes
        .iter()
        .filter(|shape| !old_names.contains(&(shape.qualified.as_str(), shape.nth)))
        .collect();
    let gone = old_file
        .shapes
        .iter()
        .filter(|shape| !new_names.contains(&(shape.qualified.as_str(), shape.nth)) && shape.is_like(new));
    gone.filter_map(|shape| {
        let least = least_similarity(shape, new, true);
        let candidate = candidate(path, shape, new, least)?;
        // Another that is new may be more like it.
        let rival = added.iter().any(|other| {
            !std::ptr::eq(*other, new)
                && (other.qualified != new.qualified || other.nth != new.nth)
                && other.is_like(shape)
                && score(shape, other) > candidate.score
        });
        (!rival).then_some(candidate)
    })
    .collect()
}

/// Bodies count most, then the name, then the signature.
fn score(old: &Shape, new: &Shape) -> f64 {
    let has_name = old.name == new.name;
    let has_signature = old.prints().unnamed_signature == new.prints().unnamed_signature;
    old.similarity(new) + if has_name { 0.3 } else { 0.0 } + if has_signature { 0.1 } else { 0.0 }
}

pub(super) fn candidate(path: &RepoPath, old: &Shape, new: &Shape, least: f64) -> Option<Candidate> {
    let similarity = old.similarity(new);
    // Little bodies say little: they count only with the name or the whole signature.
    let is_small = old.prints().n_tokens.min(new.prints().n_tokens) < MIN_TOKENS;
    let is_known = old.name == new.name || old.prints().unnamed_signature == new.prints().unnamed_signature;
    let is_alike = match is_small {
        true => {
            is_known
                && (similarity == 1.0
                    || (old.name == new.name && old.prints().unnamed_signature == new.prints().unnamed_signature))
        }
        false => similarity >= least,
    };
    is_alike.then(|| Candidate {
        key: SymbolKey {
            path: path.clone(),
            name: old.qualified.clone(),
            nth: old.nth,
        },
        similarity,
        score: score(old, new),
        least,
        is_namesake: old.name == new.name,
    })
}

/// The best candidate with how sure it is.
fn best(mut candidates: Vec<Candidate>) -> Option<(SymbolKey, f64)> {
    candidates.sort_by(|a, b| b.score.total_cmp(&a.score).then_with(|| a.key.cmp(&b.key)));
    let first = candidates.first()?;
    let is_doubtful = candidates
        .get(1)
        .is_some_and(|second| first.score - second.score < DOUBT);
    let doubt = if is_doubtful { 0.6 } else { 1.0 };
    Some((first.key.clone(), (first.confidence() * doubt * 100.0).round() / 100.0))
}
