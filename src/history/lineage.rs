//! Compares the definitions in two versions of a file: matches each definition to its predecessor, and records renames,
//! moves and other changes.
//!
//! These functions access neither files nor the repository. So stored records and records computed on demand are
//! identical.

use std::cell::OnceCell;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;

use crate::extract::{DefinitionKind, Edit, lang_of_path, offset_after, touches};
use crate::model::{Lang, RepoPath};

use super::record::Change;
use super::shape::Shape;
use super::symbols::{FileShapes, SymbolEvents, SymbolKey, edits};

/// Limit on the number of files that a commit may change, without those that it only renames. Moves between files are not
/// searched in larger commits.
pub(super) const MAX_SEARCHED_FILES: usize = 100;
/// Version of the rules in this file. Increase it if the same versions give different records. 7: files
/// that are only renamed do not count in the limit on files.
pub(super) const LINEAGE_VERSION: u32 = 7;
/// Bodies with fewer tokens are too small for their similarity to be significant.
const MIN_TOKENS: u32 = 12;
/// Minimum similarity of definitions with different names: in the same file, and in different files.
const MIN_SIMILARITY: f64 = 0.6;
const MIN_SIMILARITY_ELSEWHERE: f64 = 0.8;
/// Minimum similarity of a moved definition whose name did not change.
const MIN_SIMILARITY_NAMESAKE: f64 = 0.4;
/// A match is ambiguous if the score of the second-best candidate is lower by less than this.
const DOUBT: f64 = 0.05;
/// Limits on the number of compared pairs. Beyond `MAX_PAIRS`, only definitions with equal names are compared, and none of
/// the most frequent names. Beyond `MAX_NAMESAKES`, definitions with equal names are paired by their order.
const MAX_PAIRS: usize = 250_000;
const MAX_NAMESAKES: usize = 10_000;
/// Number of origins of a definition that are held at once.
const MAX_CANDIDATES: usize = 32;

/// The change of a definition of a file in a commit. Definitions with equal names have consecutive indices, so removing
/// one changes the indices of those after it.
#[derive(Clone, Debug, PartialEq)]
pub struct SymbolRecord {
    /// The qualified name: `Parser.parse`.
    pub name: String,
    /// The index among the definitions with this name in the file, 1-based.
    pub nth: u32,
    /// The kind of the definition.
    pub kind: DefinitionKind,
    /// The events that the change consists of. Empty if only the index changed.
    pub events: SymbolEvents,
    /// The first and last line before the change, in the old file.
    pub old_lines: Option<(u32, u32)>,
    /// The first and last line after the change.
    pub new_lines: Option<(u32, u32)>,
    /// A hash of the text after the change; 0 if the definition was removed.
    pub text: u32,
    /// The key before the change and the confidence in percent; `None` if the key did not change.
    pub origin: Option<(SymbolKey, u8)>,
    /// For a removal, true if the same commit renamed the definition or moved it to another file.
    pub goes_on: bool,
}

impl SymbolRecord {
    /// Returns the key in the file at `path` after the change or, for a removal, before it.
    pub fn key(&self, path: &RepoPath) -> SymbolKey {
        SymbolKey {
            path: path.clone(),
            name: self.name.clone(),
            nth: self.nth,
        }
    }
}

/// The changes of the definitions of a file in a commit.
#[derive(Debug, Default)]
pub(super) struct FileRecords {
    pub(super) records: Vec<SymbolRecord>,
    /// The indices in `records` of definitions without an origin in this file, with their shapes.
    added: Vec<(usize, Shape)>,
    /// The indices in `records` of definitions that are no longer in this file, with their shapes.
    gone: Vec<(usize, Shape)>,
    /// The old keys of definitions that this file still contains under another key.
    taken: Vec<SymbolKey>,
}

/// A possible origin of a definition.
pub(super) struct Candidate {
    key: SymbolKey,
    similarity: f64,
    pub(super) score: f64,
    least: f64,
    is_namesake: bool,
}

impl Candidate {
    /// Returns the confidence of the match. It rises with the similarity, from the minimum similarity to equality.
    pub(super) fn confidence(&self) -> f64 {
        let share = ((self.similarity - self.least) / (1.0 - self.least)).clamp(0.0, 1.0);
        let confidence = 0.6 + 0.35 * share + if self.is_namesake { 0.04 } else { 0.0 };
        (confidence * 100.0).round() / 100.0
    }
}

/// Compares two versions of a file. `before` contains the old path. If `keeps` is true, stores the shapes of added and
/// removed definitions, for comparison with other files.
pub(super) fn file_records(
    path: &RepoPath,
    before: Option<(&RepoPath, &FileShapes)>,
    after: Option<&FileShapes>,
    keeps: bool,
) -> FileRecords {
    let old_path = before.map_or(path, |(path, _)| path);
    let old = before.map_or(&[][..], |(_, file)| file.shapes.as_slice());
    let new = after.map_or(&[][..], |file| file.shapes.as_slice());
    let mut files = Comparison {
        path,
        old_path,
        before: before.map(|(_, file)| file),
        after,
        edits: Edits::default(),
        found: FileRecords::default(),
    };
    let partners = partners(old, new);
    let is_paired: HashSet<usize> = partners.iter().copied().flatten().collect();
    let names: HashSet<(&str, u32)> = new.iter().map(Shape::numbered_name).collect();
    for (now, partner) in new.iter().zip(&partners) {
        if let Some(partner) = partner {
            files.pair(&old[*partner], now, &names);
        }
    }
    let gone: Vec<&Shape> = (0..old.len())
        .filter(|at| !is_paired.contains(at))
        .map(|at| &old[at])
        .collect();
    let added: Vec<&Shape> = (new.iter().zip(&partners))
        .filter(|(_, partner)| partner.is_none())
        .map(|(shape, _)| shape)
        .collect();
    let by_name: HashMap<(&str, u32), &Shape> = gone.iter().map(|shape| (shape.numbered_name(), *shape)).collect();
    for (now, candidates) in added.iter().zip(renames(old_path, &gone, &added)) {
        files.add(now, candidates, &by_name, keeps);
    }
    if old_path == path {
        gone.iter().for_each(|before| files.remove(before, keeps));
    }
    files.found
}

struct Comparison<'a> {
    path: &'a RepoPath,
    old_path: &'a RepoPath,
    before: Option<&'a FileShapes>,
    after: Option<&'a FileShapes>,
    edits: Edits,
    found: FileRecords,
}

impl Comparison<'_> {
    fn old_lines(&self, shape: &Shape) -> Option<(u32, u32)> {
        self.before.map(|file| file.lines_of(shape.range))
    }

    fn record(&self, shape: &Shape, is_gone: bool) -> SymbolRecord {
        let new_lines = self.after.filter(|_| !is_gone);
        SymbolRecord {
            name: shape.qualified.clone(),
            nth: shape.nth,
            kind: shape.kind,
            events: SymbolEvents::default(),
            old_lines: None,
            new_lines: new_lines.map(|file| file.lines_of(shape.range)),
            text: if is_gone { 0 } else { shape.text_fingerprint() as u32 },
            origin: None,
            goes_on: false,
        }
    }

    /// Records the change of a definition whose name did not change.
    fn pair(&mut self, before: &Shape, now: &Shape, names: &HashSet<(&str, u32)>) {
        let is_elsewhere = self.old_path != self.path;
        let is_shifted = before.nth != now.nth;
        if !is_elsewhere && !is_shifted && before.text_fingerprint() == now.text_fingerprint() {
            return;
        }
        let confidence = match is_elsewhere {
            false => 100,
            true if before.similarity(now) >= MIN_SIMILARITY_NAMESAKE => 99,
            true => 80,
        };
        let key = before.key(self.old_path);
        let mut record = self.record(now, false);
        record.events = SymbolEvents::between(before, now, is_elsewhere);
        record.old_lines = self.old_lines(before);
        if is_elsewhere || is_shifted {
            record.origin = Some((key.clone(), confidence));
        }
        self.found.records.push(record);
        if is_elsewhere {
            self.found.taken.push(key);
        } else if is_shifted && !names.contains(&before.numbered_name()) {
            let mut left = self.record(before, true);
            left.old_lines = self.old_lines(before);
            left.goes_on = true;
            self.found.records.push(left);
        }
    }

    /// Records a definition whose name is new in the file.
    fn add(&mut self, now: &Shape, candidates: Vec<Candidate>, gone: &HashMap<(&str, u32), &Shape>, keeps: bool) {
        let mut record = self.record(now, false);
        let found = best(candidates);
        let before = (found.as_ref()).and_then(|(key, _)| gone.get(&(key.name.as_str(), key.nth)));
        if let (Some(before), Some((key, confidence))) = (before, &found) {
            record.events = match (self.before, self.after) {
                (Some(old), Some(new)) => {
                    events_between((self.old_path, old, before), (self.path, new, now), &self.edits)
                }
                _ => SymbolEvents::between(before, now, self.old_path != self.path),
            };
            record.old_lines = self.old_lines(before);
            record.origin = Some((key.clone(), percent(*confidence)));
            self.found.taken.push(key.clone());
        } else {
            record.events.added = true;
            if keeps {
                self.found.added.push((self.found.records.len(), now.detached()));
            }
        }
        self.found.records.push(record);
    }

    fn remove(&mut self, before: &Shape, keeps: bool) {
        let mut record = self.record(before, true);
        record.events.removed = true;
        record.old_lines = self.old_lines(before);
        if keeps {
            self.found.gone.push((self.found.records.len(), before.detached()));
        }
        self.found.records.push(record);
    }
}

/// Compares two versions of a definition in versions of a file. Ignores a move to another container if no edit explains
/// it: macros can make the parser find the end of a container elsewhere.
pub(super) fn events_between(old: Place<'_>, new: Place<'_>, edits: &Edits) -> SymbolEvents {
    let mut events = SymbolEvents::between(old.2, new.2, old.0 != new.0);
    if events.moved && !events.renamed && old.0 == new.0 && stays(old, new, edits) {
        events.moved = false;
    }
    events
}

/// The edits between two versions of a file and those that restore the old one, once they are needed.
#[derive(Default)]
pub(super) struct Edits(OnceCell<[Vec<Edit>; 2]>);

/// A definition, in a version of the file at a path.
type Place<'a> = (&'a RepoPath, &'a FileShapes, &'a Shape);

/// Returns true if no edit between two versions of a file touches the head of a definition or explains why its
/// containers differ.
fn stays(old: Place<'_>, new: Place<'_>, known: &Edits) -> bool {
    let [edits, back] = known.0.get_or_init(|| {
        let edits = edits(&old.1.bytes, &new.1.bytes);
        let back = edits.iter().map(Edit::reversed).collect();
        [edits, back]
    });
    let head = old.2.head();
    !overlaps(edits, &head)
        && offset_after(edits, head.start) == new.2.range.start as usize
        && is_still_inside(old, new, edits, back)
        && is_still_inside(new, old, back, edits)
}

/// Returns true if no edit explains why a definition left a container: by another head of the container, or another end.
fn is_still_inside(
    (_, file, shape): Place<'_>,
    (_, other_file, other): Place<'_>,
    edits: &[Edit],
    back: &[Edit],
) -> bool {
    let is_around = |outer: &Shape, inner: &Shape| outer.range != inner.range && outer.range.contains(inner.range);
    file.shapes.iter().filter(|outer| is_around(outer, shape)).all(|outer| {
        let start = offset_after(edits, outer.range.start as usize);
        let mut others = other_file.shapes.iter();
        let there = others.find(|there| there.range.start as usize == start && there.name == outer.name);
        let end = there
            .filter(|there| !is_around(there, other))
            .map(|there| there.range.end as usize);
        !overlaps(edits, &outer.head()) && end.is_none_or(|end| !touches(back, &(end..end)))
    })
}

/// Returns true if an edit overlaps a range, and does not only touch its start.
fn overlaps(edits: &[Edit], range: &Range<usize>) -> bool {
    touches(edits, &(range.start + 1..range.end))
}

fn percent(confidence: f64) -> u8 {
    (confidence * 100.0).round().clamp(0.0, 100.0) as u8
}

/// Returns the paths between which a commit may have moved definitions: those that it changed, without files that it only
/// renamed. Returns `None` if these are too few or too many to search.
pub(super) fn searched(changes: &[Change]) -> Option<HashSet<RepoPath>> {
    let renamed = |change: &Change| change.origin.clone().filter(|origin| origin.similarity == 100);
    let left: HashSet<RepoPath> = changes.iter().filter_map(renamed).map(|origin| origin.path).collect();
    let is_left = |change: &Change| change.new.is_none() && left.contains(&change.path);
    let changed = changes
        .iter()
        .filter(|change| renamed(change).is_none() && !is_left(change));
    let paths: HashSet<RepoPath> = changed.map(|change| change.path.clone()).collect();
    (2..=MAX_SEARCHED_FILES).contains(&paths.len()).then_some(paths)
}

/// Searches the files of a commit for the origins of added definitions. Marks removed definitions that were moved to
/// another file.
pub(super) fn settle(files: &mut [(RepoPath, FileRecords)]) {
    let mut taken: HashSet<SymbolKey> = files.iter().flat_map(|(_, file)| file.taken.iter().cloned()).collect();
    for (number, at, moved) in moves(files, &taken) {
        taken.insert(moved.from.clone());
        let record = &mut files[number].1.records[at];
        record.events = moved.events;
        record.old_lines = moved.old_lines;
        record.origin = Some((moved.from, moved.confidence));
    }
    for (path, file) in files {
        for record in file.records.iter_mut().filter(|record| record.events.removed) {
            record.goes_on = taken.contains(&record.key(path));
        }
        file.added = Vec::new();
        file.gone = Vec::new();
    }
}

struct Move {
    from: SymbolKey,
    confidence: u8,
    events: SymbolEvents,
    old_lines: Option<(u32, u32)>,
}

/// Returns the definitions that were moved between files, each with the indices of its file and of its record.
fn moves(files: &[(RepoPath, FileRecords)], taken: &HashSet<SymbolKey>) -> Vec<(usize, usize, Move)> {
    let mut gone: HashMap<SymbolKey, (&RepoPath, &SymbolRecord, &Shape)> = HashMap::new();
    for (path, file) in files {
        let of_file = file.gone.iter().map(|(at, shape)| (path, &file.records[*at], shape));
        gone.extend(of_file.map(|one| (one.1.key(path), one)));
    }
    gone.retain(|key, _| !taken.contains(key));
    let gone_shapes: Vec<_> = gone.values().copied().collect();
    let added = files.iter().enumerate();
    let added = added.flat_map(|(number, (_, file))| file.added.iter().map(move |(at, new)| (number, *at, new)));
    let added: Vec<(usize, usize, &Shape)> = added.collect();
    let langs: Vec<Lang> = files.iter().map(|(path, _)| lang_of_path(path)).collect();
    let near = comparable(
        MAX_PAIRS,
        gone_shapes.iter().map(|one| one.2),
        added.iter().map(|one| one.2),
    );
    let mut candidates: Vec<Vec<Candidate>> = added.iter().map(|_| Vec::new()).collect();
    for ((other, _, old), near) in gone_shapes.iter().zip(near) {
        let lang = lang_of_path(other);
        for at in near {
            let (number, _, new) = added[at];
            if *other != &files[number].0 && lang == langs[number] && old.is_like(new) {
                candidates[at].extend(candidate(other, old, new, least_similarity(old, new, false)));
                keep_few(&mut candidates[at]);
            }
        }
    }
    let mut found = Vec::new();
    for ((number, at, new), candidates) in added.into_iter().zip(candidates) {
        let Some((from, confidence)) = best(candidates) else {
            continue;
        };
        let (_, record, old) = gone[&from];
        let moved = Move {
            from,
            confidence: percent(confidence),
            events: SymbolEvents::between(old, new, true),
            old_lines: record.old_lines,
        };
        found.push((number, at, moved));
    }
    found
}

/// Returns, for each definition of the new version, the index of the old definition with the same name.
pub(super) fn partners(old: &[Shape], new: &[Shape]) -> Vec<Option<usize>> {
    let mut groups: HashMap<&str, (Vec<usize>, Vec<usize>)> = HashMap::new();
    for (at, shape) in old.iter().enumerate() {
        groups.entry(&shape.qualified).or_default().0.push(at);
    }
    for (at, shape) in new.iter().enumerate() {
        groups.entry(&shape.qualified).or_default().1.push(at);
    }
    let mut partners = vec![None; new.len()];
    for (olds, news) in groups.into_values() {
        match (olds.as_slice(), news.as_slice()) {
            (&[only], &[now]) => partners[now] = Some(only),
            ([], _) | (_, []) => {}
            _ => pair_namesakes(old, new, &olds, &news, &mut partners),
        }
    }
    partners
}

/// Pairs the old and new definitions of one name: first those with equal text, then the most similar, then those with
/// equal indices.
fn pair_namesakes(old: &[Shape], new: &[Shape], olds: &[usize], news: &[usize], partners: &mut [Option<usize>]) {
    let mut free: BTreeMap<u64, BTreeMap<u32, usize>> = BTreeMap::new();
    for at in olds {
        free.entry(old[*at].text_fingerprint())
            .or_default()
            .insert(old[*at].nth, *at);
    }
    let mut take = |now: usize, is_in_place: bool| {
        let equal = free.get_mut(&new[now].text_fingerprint())?;
        if is_in_place {
            equal.remove(&new[now].nth)
        } else {
            equal.pop_first().map(|(_, at)| at)
        }
    };
    for is_in_place in [true, false] {
        for now in news {
            if partners[*now].is_none() {
                partners[*now] = take(*now, is_in_place);
            }
        }
    }
    let left_old: Vec<usize> = free.into_values().flat_map(BTreeMap::into_values).collect();
    let left_new: Vec<usize> = news.iter().copied().filter(|now| partners[*now].is_none()).collect();
    let mut pairs = Vec::new();
    if left_old.len() * left_new.len() <= MAX_NAMESAKES {
        for (&before, &now) in left_old
            .iter()
            .flat_map(|before| left_new.iter().map(move |now| (before, now)))
        {
            let similarity = old[before].similarity(&new[now]);
            let is_like = old[before].is_like(&new[now]) && similarity >= MIN_SIMILARITY_NAMESAKE;
            if is_like {
                pairs.push((
                    score(&old[before], &new[now]),
                    old[before].nth == new[now].nth,
                    before,
                    now,
                ));
            }
        }
    }
    pairs.sort_by(|a, b| {
        b.0.total_cmp(&a.0)
            .then(b.1.cmp(&a.1))
            .then((a.2, a.3).cmp(&(b.2, b.3)))
    });
    let places: HashMap<u32, usize> = left_new.iter().map(|now| (new[*now].nth, *now)).collect();
    let in_place = left_old.iter().flat_map(|before| {
        let now = places.get(&old[*before].nth);
        now.map(|now| (0.0, true, *before, *now))
    });
    let mut is_taken: HashSet<usize> = HashSet::new();
    for (_, _, before, now) in pairs.into_iter().chain(in_place) {
        if partners[now].is_none() && is_taken.insert(before) {
            partners[now] = Some(before);
        }
    }
}

/// Returns the possible origins of each definition in `added`. They are taken from `gone`, the definitions of another
/// version of the file at `path`.
pub(super) fn renames(path: &RepoPath, gone: &[&Shape], added: &[&Shape]) -> Vec<Vec<Candidate>> {
    let mut found: Vec<Vec<Candidate>> = added.iter().map(|_| Vec::new()).collect();
    let compared = comparable(MAX_PAIRS, gone.iter().copied(), added.iter().copied());
    for (before, near) in gone.iter().zip(compared) {
        let scores = near.into_iter().filter(|at| before.is_like(added[*at]));
        let scores: Vec<(usize, f64)> = scores.map(|at| (at, score(before, added[at]))).collect();
        let most = scores.iter().map(|one| one.1).fold(0.0, f64::max);
        // Another added definition may be more similar to this one.
        for (at, _) in scores.into_iter().filter(|one| one.1 >= most) {
            let least = least_similarity(before, added[at], true);
            found[at].extend(candidate(path, before, added[at], least));
            keep_few(&mut found[at]);
        }
    }
    found
}

/// Returns, for each removed definition, the indices of the added ones with which it is compared: all, or if these are
/// more than `max_pairs`, those with its name, of the rarest names.
pub(super) fn comparable<'s>(
    max_pairs: usize,
    gone: impl ExactSizeIterator<Item = &'s Shape> + Clone,
    added: impl ExactSizeIterator<Item = &'s Shape>,
) -> Vec<Vec<usize>> {
    let mut n_left = max_pairs;
    if gone.len().saturating_mul(added.len()) <= n_left {
        return vec![(0..added.len()).collect(); gone.len()];
    }
    let mut named: BTreeMap<&str, (usize, Vec<usize>)> = BTreeMap::new();
    for (at, shape) in added.enumerate() {
        named.entry(&shape.name).or_default().1.push(at);
    }
    for shape in gone.clone() {
        named.entry(&shape.name).or_default().0 += 1;
    }
    let n_pairs = |(n_gone, added): &(usize, Vec<usize>)| n_gone.saturating_mul(added.len());
    let mut names: Vec<_> = named.iter().map(|(name, of)| (n_pairs(of), *name)).collect();
    names.sort_unstable();
    for (n_pairs, name) in names {
        match n_left.checked_sub(n_pairs) {
            Some(rest) => n_left = rest,
            None => _ = named.remove(name),
        }
    }
    gone.map(|shape| named.get(shape.name.as_str()).map_or_else(Vec::new, |of| of.1.clone()))
        .collect()
}

/// Returns the minimum similarity of the bodies of two definitions for a match.
pub(super) fn least_similarity(old: &Shape, new: &Shape, is_one_file: bool) -> f64 {
    match (old.name == new.name, is_one_file) {
        (true, _) => MIN_SIMILARITY_NAMESAKE,
        (false, true) => MIN_SIMILARITY,
        (false, false) => MIN_SIMILARITY_ELSEWHERE,
    }
}

/// Returns the score of a match. The body has the highest weight, then the name, then the signature.
fn score(old: &Shape, new: &Shape) -> f64 {
    let has_name = old.name == new.name;
    let has_signature = old.prints().signature_without_name == new.prints().signature_without_name;
    old.similarity(new) + if has_name { 0.3 } else { 0.0 } + if has_signature { 0.1 } else { 0.0 }
}

pub(super) fn candidate(path: &RepoPath, old: &Shape, new: &Shape, least: f64) -> Option<Candidate> {
    let has_name = old.name == new.name;
    if !has_name && old.prints().most_similar(new.prints()) < least {
        return None;
    }
    let similarity = old.similarity(new);
    let has_signature = old.prints().signature_without_name == new.prints().signature_without_name;
    // Small bodies are not significant, so an equal name or signature is required.
    let is_small = old.prints().n_tokens.min(new.prints().n_tokens) < MIN_TOKENS;
    let is_alike = if is_small {
        (has_name || has_signature) && (similarity == 1.0 || (has_name && has_signature))
    } else {
        similarity >= least
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
        is_namesake: has_name,
    })
}

/// Returns the best candidate and its confidence. Returns `None` if the match is ambiguous.
pub(super) fn best(mut candidates: Vec<Candidate>) -> Option<(SymbolKey, f64)> {
    keep_best(&mut candidates);
    let first = candidates.first()?;
    let is_doubtful = candidates
        .get(1)
        .is_some_and(|second| first.score - second.score < DOUBT);
    let doubt = if is_doubtful { 0.6 } else { 1.0 };
    Some((first.key.clone(), (first.confidence() * doubt * 100.0).round() / 100.0))
}

/// Keeps the best candidates once there are many.
fn keep_few(candidates: &mut Vec<Candidate>) {
    if candidates.len() >= MAX_CANDIDATES {
        keep_best(candidates);
    }
}

/// Keeps the best candidate and the next best, which decides whether the best is ambiguous.
fn keep_best(candidates: &mut Vec<Candidate>) {
    candidates.sort_by(|a, b| b.score.total_cmp(&a.score).then_with(|| a.key.cmp(&b.key)));
    candidates.truncate(2);
}
