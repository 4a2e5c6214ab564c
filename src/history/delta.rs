//! Compares the definitions in two versions of a set of files.

use std::collections::{BTreeSet, HashSet};

use crate::extract::{DefinitionKind, lang_of_path};
use crate::model::RepoPath;

use super::lineage::{Candidate, Edits, candidate, comparable, events_between, least_similarity, partners};
use super::shape::Shape;
use super::symbols::{FileShapes, SymbolEvents, SymbolKey};

/// The two versions of a file. If the file was renamed, the paths differ.
#[derive(Debug, Default)]
pub struct FilePair {
    /// The old path and definitions; `None` if the file is new.
    pub old: Option<(RepoPath, FileShapes)>,
    /// The new path and definitions; `None` if the file was deleted.
    pub new: Option<(RepoPath, FileShapes)>,
}

/// The change of one definition.
#[derive(Clone, Debug, PartialEq)]
pub struct SymbolDelta {
    /// The index of the file pair that contains the new version of the definition or, if it was removed, the old
    /// version.
    pub pair: usize,
    /// The key of the new version or, if the definition was removed, of the old version.
    pub key: SymbolKey,
    /// The kind of the new version or, if the definition was removed, of the old version.
    pub kind: DefinitionKind,
    /// The events that the change consists of.
    pub events: SymbolEvents,
    /// The key of the old version; `None` if it equals the new key.
    pub from: Option<SymbolKey>,
    /// The confidence that both versions belong to the same definition, from 0 to 1.
    pub confidence: f64,
    /// The first and last line of the old version, 1-based.
    pub old_lines: Option<(u32, u32)>,
    /// The first and last line of the new version, 1-based.
    pub new_lines: Option<(u32, u32)>,
    /// The old and the new version, if there are both.
    places: Option<(Place, Place)>,
}

impl SymbolDelta {
    /// Returns the old and the new version of the definition in `pairs`, from which the change was computed. Returns
    /// `None` if it was added or removed.
    pub fn versions<'a>(&self, pairs: &'a [FilePair]) -> Option<(&'a Shape, &'a Shape)> {
        let (old, new) = self.places?;
        let (old_shapes, new_shapes) = (
            shapes_of(pairs[old.0].old.as_ref()),
            shapes_of(pairs[new.0].new.as_ref()),
        );
        Some((&old_shapes[old.1], &new_shapes[new.1]))
    }
}

impl SymbolDelta {
    /// Returns the old and the new version of the file with the definition in `pairs`, from which the change was
    /// computed.
    pub fn files<'a>(&self, pairs: &'a [FilePair]) -> (Option<&'a FileShapes>, Option<&'a FileShapes>) {
        let (old, new) = self.places.map_or((self.pair, self.pair), |(old, new)| (old.0, new.0));
        let file = |of: &'a Option<(RepoPath, FileShapes)>| of.as_ref().map(|(_, file)| file);
        (file(&pairs[old].old), file(&pairs[new].new))
    }

    /// Returns true if code outside of the repository can name the old or the new version of the definition.
    pub fn is_public(&self, pairs: &[FilePair]) -> bool {
        let (old, new) = self.files(pairs);
        let (old_key, new_key) = (self.from.as_ref().unwrap_or(&self.key), &self.key);
        let is_public = |(file, key): (Option<&FileShapes>, &SymbolKey)| {
            let shape = file.and_then(|file| file.find(&key.name, key.nth));
            file.zip(shape).is_some_and(|(file, shape)| file.is_public(shape))
        };
        [(old, old_key), (new, new_key)].into_iter().any(is_public)
    }
}

/// Limit on the number of compared pairs.
const MAX_PAIRS: usize = 1_000_000;

/// A definition: the index of its file pair, and its index in that file.
type Place = (usize, usize);

/// Returns all changed definitions, ordered by file and line.
pub fn symbol_deltas(pairs: &[FilePair]) -> Vec<SymbolDelta> {
    let (mut deltas, mut gone, mut added) = (Vec::new(), Vec::new(), Vec::new());
    let edits: Vec<Edits> = pairs.iter().map(|_| Edits::default()).collect();
    for (number, pair) in pairs.iter().enumerate() {
        let (old, new) = (shapes_of(pair.old.as_ref()), shapes_of(pair.new.as_ref()));
        let partners = partners(old, new);
        for (now, before) in partners.iter().enumerate() {
            match before {
                Some(before) => deltas.extend(delta(pairs, &edits, (number, *before), (number, now), 1.0)),
                None => added.push((number, now)),
            }
        }
        let is_paired: HashSet<usize> = partners.into_iter().flatten().collect();
        gone.extend(
            (0..old.len())
                .filter(|at| !is_paired.contains(at))
                .map(|at| (number, at)),
        );
    }
    let matched = matches(pairs, &gone, &added);
    let taken_old: BTreeSet<Place> = matched.iter().map(|(old, ..)| *old).collect();
    let taken_new: BTreeSet<Place> = matched.iter().map(|(_, new, _)| *new).collect();
    for (old, new, confidence) in matched {
        deltas.extend(delta(pairs, &edits, old, new, confidence));
    }
    for place in gone.into_iter().filter(|place| !taken_old.contains(place)) {
        deltas.extend(lone(pairs, place, true));
    }
    for place in added.into_iter().filter(|place| !taken_new.contains(place)) {
        deltas.extend(lone(pairs, place, false));
    }
    deltas.sort_by_key(|delta| {
        let line = delta.new_lines.or(delta.old_lines);
        (delta.pair, line, delta.key.clone())
    });
    deltas
}

fn shapes_of(side: Option<&(RepoPath, FileShapes)>) -> &[Shape] {
    side.map_or(&[], |(_, file)| file.shapes.as_slice())
}

/// Matches removed definitions to added ones, most similar pairs first. Each definition is matched at most once.
fn matches<'p>(pairs: &'p [FilePair], gone: &[Place], added: &[Place]) -> Vec<(Place, Place, f64)> {
    let mut found: Vec<(Candidate, Place, Place)> = Vec::new();
    let of = |place: &Place, side: Option<&'p (RepoPath, FileShapes)>| {
        let (path, file) = side?;
        Some((*place, path, &file.shapes[place.1]))
    };
    let gone = gone.iter().filter_map(|place| of(place, pairs[place.0].old.as_ref()));
    let added = added.iter().filter_map(|place| of(place, pairs[place.0].new.as_ref()));
    let (gone, added): (Vec<_>, Vec<_>) = (gone.collect(), added.collect());
    let near = comparable(MAX_PAIRS, gone.iter().map(|one| one.2), added.iter().map(|one| one.2));
    for (&(old_place, old_path, old), near) in gone.iter().zip(near) {
        for (new_place, new_path, new) in near.into_iter().map(|at| added[at]) {
            if !old.is_like(new) || lang_of_path(old_path) != lang_of_path(new_path) {
                continue;
            }
            let least = least_similarity(old, new, old_place.0 == new_place.0);
            found.extend(candidate(old_path, old, new, least).map(|candidate| (candidate, old_place, new_place)));
        }
    }
    found.sort_by(|a, b| {
        let is_near = |one: &(Candidate, Place, Place)| one.1.0 == one.2.0;
        let by_score = b.0.score.total_cmp(&a.0.score);
        by_score
            .then_with(|| is_near(b).cmp(&is_near(a)))
            .then_with(|| (a.1, a.2).cmp(&(b.1, b.2)))
    });
    let (mut old_taken, mut new_taken, mut matched) = (BTreeSet::new(), BTreeSet::new(), Vec::new());
    for (candidate, old, new) in found {
        if !old_taken.contains(&old) && !new_taken.contains(&new) {
            old_taken.insert(old);
            new_taken.insert(new);
            matched.push((old, new, candidate.confidence()));
        }
    }
    matched
}

fn delta(pairs: &[FilePair], edits: &[Edits], old: Place, new: Place, confidence: f64) -> Option<SymbolDelta> {
    let (old_path, old_file) = pairs[old.0].old.as_ref()?;
    let (new_path, new_file) = pairs[new.0].new.as_ref()?;
    let (before, now) = (&old_file.shapes[old.1], &new_file.shapes[new.1]);
    let (from, key) = (before.key(old_path), now.key(new_path));
    // Only the number of a definition among its namesakes may have changed.
    if before.text_fingerprint() == now.text_fingerprint() && old_path == new_path && from.name == key.name {
        return None;
    }
    let other = Edits::default();
    let edits = if old.0 == new.0 { &edits[new.0] } else { &other };
    let events = events_between((old_path, old_file, before), (new_path, new_file, now), edits);
    if events.is_empty() {
        return None;
    }
    Some(SymbolDelta {
        pair: new.0,
        kind: now.kind,
        events,
        from: (from != key).then_some(from),
        key,
        confidence,
        old_lines: Some(old_file.lines_of(before.range)),
        new_lines: Some(new_file.lines_of(now.range)),
        places: Some((old, new)),
    })
}

fn lone(pairs: &[FilePair], place: Place, is_gone: bool) -> Option<SymbolDelta> {
    let pair = &pairs[place.0];
    let (path, file) = if is_gone {
        pair.old.as_ref()?
    } else {
        pair.new.as_ref()?
    };
    let shape = &file.shapes[place.1];
    let lines = Some(file.lines_of(shape.range));
    Some(SymbolDelta {
        pair: place.0,
        key: shape.key(path),
        kind: shape.kind,
        events: SymbolEvents {
            added: !is_gone,
            removed: is_gone,
            ..SymbolEvents::default()
        },
        from: None,
        confidence: 1.0,
        old_lines: lines.filter(|_| is_gone),
        new_lines: lines.filter(|_| !is_gone),
        places: None,
    })
}
