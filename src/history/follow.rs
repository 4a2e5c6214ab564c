//! Follows an item (a file or a definition) back from a commit, using git's history simplification.
//!
//! Source: "History Simplification" in git's `rev-list` manual page, default mode. If an item has the same state in a
//! merge and in one of its parents, the merge is omitted and only that parent is followed. If the state differs from
//! all parents, the merge is reported and all parents are followed. In addition, if a commit moved an item, the item is
//! followed to its origin. If only one side of a merge renamed an item, it is followed under a different name on each
//! side.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::store::History;

/// The state of an item in a commit that does not contain it.
pub const ABSENT: u64 = 0;
/// The state of an item before its first recorded change.
pub const UNKNOWN: u64 = 1;
/// Limit on the number of renames that are followed to find the name of an item on one side of a merge.
const MAX_NAMES: usize = 64;

/// A change of an item between a commit and its first parent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step<K> {
    /// The number of the commit.
    pub commit: u32,
    /// The state before the commit. Equal states mean equal content.
    pub old: u64,
    /// The state after the commit.
    pub new: u64,
    /// The key of the item in the first parent, if the commit moved the item.
    pub origin: Option<K>,
}

/// Provides the changes of one kind of item.
pub trait Timeline {
    /// Identifies an item: a path, or the key of a definition.
    type Key: Clone + Eq + std::hash::Hash + Ord;
    /// An error from reading steps.
    type Error;

    /// Returns the recorded changes of an item up to the commit `last`, ascending by commit number. The origin of a
    /// moved item may be absent; use [`Self::origin`] to get it.
    fn steps(&mut self, key: &Self::Key, last: u32) -> Result<Vec<Step<Self::Key>>, Self::Error>;

    /// Returns the number of the first commit for which [`Self::steps`] is complete. Changes in earlier commits are
    /// unknown.
    fn known_from(&self, _key: &Self::Key) -> u32 {
        0
    }

    /// Returns the key of an item in the first parent of a commit, if `step` is a move.
    fn origin(&mut self, key: &Self::Key, step: &Step<Self::Key>) -> Result<Option<Self::Key>, Self::Error>;

    /// Returns the keys that the commit `number` moved `key` to. Empty if the commit deleted the item.
    fn successors(&mut self, key: &Self::Key, number: u32) -> Result<Vec<Self::Key>, Self::Error>;
}

/// A change in the history of an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Followed<K> {
    /// The key of the item in the commit.
    pub key: K,
    /// The change.
    pub step: Step<K>,
    /// True for a merge that only combines the name in one parent with the content in another.
    pub is_join: bool,
}

/// Returns the changes that led to the state of `key` in the commit `tip`. Children come before parents. Takes
/// O(steps²) for each name of the item, and one pass over all commits when a history is first followed.
pub fn follow<T: Timeline>(
    history: &History,
    tip: u32,
    key: &T::Key,
    timeline: &mut T,
) -> Result<Vec<Followed<T::Key>>, T::Error> {
    let mut walk = Walk::new(history, timeline, tip);
    walk.wait(tip, key)?;
    while let Some((number, lines)) = walk.waiting.pop_last() {
        walk.number = number;
        for line in lines {
            walk.visit(number, line)?;
        }
    }
    Ok(walk.found)
}

/// Returns the key in the parent `parent` of an item that the merge `number` contains as `key`. Returns `None` if that
/// parent does not contain the item or has it under the same key.
pub(super) fn name_at<T: Timeline>(
    history: &History,
    (number, parent): (u32, u32),
    key: &T::Key,
    timeline: &mut T,
) -> Result<Option<T::Key>, T::Error> {
    let mut walk = Walk::new(history, timeline, number);
    let line = walk.line(key)?;
    let name = walk.name_at((number, parent), line)?;
    Ok(name.map(|line| walk.lines[line].key.clone()))
}

/// Returns the last step in the first-parent history of the commit `number`, including the commit.
pub(super) fn last_step<'s, K>(history: &History, steps: &'s [Step<K>], number: u32) -> Option<&'s Step<K>> {
    let n_before = steps.partition_point(|step| step.commit <= number);
    let mut before = steps[..n_before].iter().rev();
    before.find(|step| history.is_first_ancestor(step.commit, number))
}

/// Returns the last step that added the item, in the first-parent history of the commit `number`, including the commit.
fn addition<'s, K>(history: &History, steps: &'s [Step<K>], number: u32) -> Option<&'s Step<K>> {
    let n_before = steps.partition_point(|step| step.commit <= number);
    let mut before = steps[..n_before].iter().rev();
    before.find(|step| step.old == ABSENT && history.is_first_ancestor(step.commit, number))
}

/// A key and all its steps. Functions refer to a line by its index in `Walk::lines`.
struct Line<K> {
    key: K,
    steps: Vec<Step<K>>,
    /// The first commit for which `steps` is complete. Changes in earlier commits are unknown.
    known_from: u32,
}

impl<K> Line<K> {
    /// Returns the state of the item in the commit `number`.
    fn state(&self, history: &History, number: u32) -> u64 {
        match last_step(history, &self.steps, number) {
            Some(step) => step.new,
            None if self.known_from > 0 || history.ends_unrecorded(number) => UNKNOWN,
            None => ABSENT,
        }
    }

    fn step(&self, number: u32) -> Option<&Step<K>> {
        let at = self.steps.binary_search_by_key(&number, |step| step.commit).ok()?;
        self.steps.get(at)
    }
}

struct Walk<'a, T: Timeline> {
    history: &'a History,
    timeline: &'a mut T,
    /// The commit that is visited. Later commits are no longer needed.
    number: u32,
    lines: Vec<Line<T::Key>>,
    names: HashMap<T::Key, usize>,
    waiting: BTreeMap<u32, Vec<usize>>,
    seen: HashSet<(u32, usize)>,
    found: Vec<Followed<T::Key>>,
    /// The origins of moved items, by line and commit.
    origins: HashMap<(usize, u32), Option<T::Key>>,
}

impl<'a, T: Timeline> Walk<'a, T> {
    fn new(history: &'a History, timeline: &'a mut T, number: u32) -> Self {
        Self {
            history,
            timeline,
            number,
            lines: Vec::new(),
            names: HashMap::new(),
            waiting: BTreeMap::new(),
            seen: HashSet::new(),
            found: Vec::new(),
            origins: HashMap::new(),
        }
    }

    fn line(&mut self, key: &T::Key) -> Result<usize, T::Error> {
        if let Some(line) = self.names.get(key) {
            return Ok(*line);
        }
        let steps = self.timeline.steps(key, self.number)?;
        self.lines.push(Line {
            key: key.clone(),
            steps,
            known_from: self.timeline.known_from(key),
        });
        self.names.insert(key.clone(), self.lines.len() - 1);
        Ok(self.lines.len() - 1)
    }

    fn wait(&mut self, number: u32, key: &T::Key) -> Result<(), T::Error> {
        let line = self.line(key)?;
        self.wait_line(number, line);
        Ok(())
    }

    fn wait_line(&mut self, number: u32, line: usize) {
        if self.seen.insert((number, line)) {
            self.waiting.entry(number).or_default().push(line);
        }
    }

    fn visit(&mut self, start: u32, line: usize) -> Result<(), T::Error> {
        // Skip commits, including merges, that did not change the item from their first parent.
        let Some(step) = last_step(self.history, &self.lines[line].steps, start).cloned() else {
            return Ok(());
        };
        let number = step.commit;
        if number != start && !self.seen.insert((number, line)) {
            return Ok(());
        }
        if self.history.parents(number).len() > 1 {
            return self.visit_merge(number, line);
        }
        let has_origin = self.found(line, &step, false)?;
        match self.history.parents(number).first() {
            // An added item may have existed before, for example if a deletion was reverted. Look for it, unless a
            // different item had its name before.
            Some(Some(parent)) if !has_origin && !self.is_replacement(line, &step, *parent) => {
                self.wait_line(*parent, line);
            }
            _ => {}
        }
        Ok(())
    }

    /// Returns true if a step added the item under the name of a different item, which was moved elsewhere.
    fn is_replacement(&self, line: usize, step: &Step<T::Key>, parent: u32) -> bool {
        step.old == ABSENT && self.lines[line].state(self.history, parent) > UNKNOWN
    }

    fn visit_merge(&mut self, number: u32, line: usize) -> Result<(), T::Error> {
        let of_line = &self.lines[line];
        let state = of_line.state(self.history, number);
        let parents: Vec<u32> = self.history.parents(number).iter().copied().flatten().collect();
        let has_same = |parent: &u32| of_line.state(self.history, *parent) == state;
        if let Some(same) = parents.iter().copied().find(has_same) {
            self.wait_line(same, line);
            return Ok(());
        }
        let step = of_line.step(number).cloned();
        let is_called_so = parents
            .iter()
            .any(|parent| of_line.state(self.history, *parent) != ABSENT);
        let mut is_join = false;
        for (at, parent) in parents.into_iter().enumerate() {
            let origin = match &step {
                Some(step) if at == 0 => self.origin(line, step)?,
                _ => None,
            };
            let other = match &origin {
                Some(origin) => Some(self.line(origin)?),
                None if state == ABSENT => None,
                None => self.name_at((number, parent), line)?,
            };
            if origin.is_none() {
                self.wait_line(parent, line);
            }
            if let Some(other) = other {
                self.wait_line(parent, other);
                is_join |= is_called_so && self.lines[other].state(self.history, parent) == state;
            }
        }
        // Do not report the merge if the item's changes on one side have not been read, because it is then unknown if
        // the merge changed the item.
        let of_line = &self.lines[line];
        let is_unread = |parent: u32| of_line.known_from > parent && of_line.state(self.history, parent) == UNKNOWN;
        let mut parents = self.history.parents(number).iter().copied().flatten();
        if let Some(step) = step.filter(|_| !parents.any(is_unread)) {
            self.found(line, &step, is_join)?;
        }
        Ok(())
    }

    /// Returns the index of the line of an item in `parent`, a parent of `merge`. The merge contains the item on
    /// `line`. Returns `None` unless the item has another name in the parent: either the side of this parent or the
    /// side of another parent renamed it.
    fn name_at(&mut self, (merge, parent): (u32, u32), line: usize) -> Result<Option<usize>, T::Error> {
        if self.lines[line].state(self.history, parent) != ABSENT {
            return Ok(None);
        }
        let parents: Vec<u32> = self.history.parents(merge).iter().copied().flatten().collect();
        for (at, other) in parents.into_iter().enumerate().filter(|(_, other)| *other != parent) {
            let origin = match self.lines[line].step(merge).cloned() {
                Some(step) if at == 0 => self.origin(line, &step)?,
                _ => None,
            };
            let mut before = match origin {
                Some(origin) => Some((other, self.line(&origin)?)),
                None => self.name_before(other, line)?,
            };
            for _ in 0..MAX_NAMES {
                let Some((number, name)) = before else { break };
                if let Some(name) = self.name_of((other, parent), name)? {
                    return Ok(Some(name));
                }
                before = self.name_before(number, name)?;
            }
        }
        Ok(None)
    }

    /// Returns the index of the line of an item in the commit `parent`. The commit `other`, another parent of the same
    /// merge, contains the item on `line`.
    fn name_of(&mut self, (other, parent): (u32, u32), line: usize) -> Result<Option<usize>, T::Error> {
        let of_line = &self.lines[line];
        if of_line.state(self.history, parent) == ABSENT {
            let gone = last_step(self.history, &of_line.steps, parent).map(|step| step.commit);
            return gone.map_or(Ok(None), |gone| self.name_after((gone, parent), line));
        }
        // If an item of this name was added after the sides diverged, it is a different item.
        let added = addition(self.history, &of_line.steps, parent).map(|step| step.commit);
        let is_other = added
            .is_some_and(|added| self.history.parents(added).len() < 2 && !self.history.reachable(&[other]).has(added));
        Ok((!is_other).then_some(line))
    }

    /// Returns the line of the item on `line` before its last rename, and the last commit that contains it under that
    /// name.
    fn name_before(&mut self, mut number: u32, line: usize) -> Result<Option<(u32, usize)>, T::Error> {
        while let Some(step) = addition(self.history, &self.lines[line].steps, number).cloned() {
            let parents: Vec<u32> = self.history.parents(step.commit).iter().copied().flatten().collect();
            if let (Some(origin), Some(parent)) = (self.origin(line, &step)?, parents.first()) {
                let origin = self.line(&origin)?;
                return Ok(Some((*parent, origin)));
            }
            // The item came from another parent of the merge.
            let has = |side: &&u32| self.lines[line].state(self.history, **side) > UNKNOWN;
            let Some(side) = parents.iter().skip(1).find(has) else {
                break;
            };
            number = *side;
        }
        Ok(None)
    }

    /// Returns the line of an item in the commit `number`, after the commit `gone` moved it away from `line`. `gone`
    /// must be in the first-parent history of `number`.
    fn name_after(&mut self, (mut gone, number): (u32, u32), mut line: usize) -> Result<Option<usize>, T::Error> {
        for _ in 0..MAX_NAMES {
            let key = self.lines[line].key.clone();
            let mut went = None;
            for successor in self.timeline.successors(&key, gone)? {
                let next = self.line(&successor)?;
                if self.lines[next].state(self.history, number) != ABSENT {
                    return Ok(Some(next));
                }
                let last = last_step(self.history, &self.lines[next].steps, number);
                went = went.or(last.filter(|step| step.commit > gone).map(|step| (step.commit, next)));
            }
            match went {
                Some(next) => (gone, line) = next,
                None => break,
            }
        }
        Ok(None)
    }

    /// Returns the key of the item in the first parent, if the step is a move.
    fn origin(&mut self, line: usize, step: &Step<T::Key>) -> Result<Option<T::Key>, T::Error> {
        if step.old != ABSENT || step.origin.is_some() {
            return Ok(step.origin.clone());
        }
        if let Some(origin) = self.origins.get(&(line, step.commit)) {
            return Ok(origin.clone());
        }
        let origin = self.timeline.origin(&self.lines[line].key, step)?;
        self.origins.insert((line, step.commit), origin.clone());
        Ok(origin)
    }

    /// Adds a step to the result, and schedules the origin of a moved item. Returns true if the item was moved.
    fn found(&mut self, line: usize, step: &Step<T::Key>, is_join: bool) -> Result<bool, T::Error> {
        let key = self.lines[line].key.clone();
        let mut step = step.clone();
        step.origin = self.origin(line, &step)?;
        if let (Some(origin), Some(Some(parent))) = (&step.origin, self.history.parents(step.commit).first()) {
            let origin = origin.clone();
            self.wait(*parent, &origin)?;
        }
        let has_origin = step.origin.is_some();
        self.found.push(Followed { key, step, is_join });
        Ok(has_origin)
    }
}
