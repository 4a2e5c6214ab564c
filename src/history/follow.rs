//! The life of one thing, from a commit back, by git's history simplification.
//!
//! Source: "History Simplification" in git's `rev-list` page, default mode: a merge that has the thing as one of its parents
//! has it is passed over towards that parent alone; one that differs from all is told, and all parents are followed. Beyond
//! it, a thing that a commit added from elsewhere is followed to where it was, and so is one that a merge has under a name that only one of
//! its sides gave it.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::store::History;

/// The state of what is not there.
pub const ABSENT: u64 = 0;
/// The state before the first recorded change.
pub const UNKNOWN: u64 = 1;
/// A thing is followed across so many names to find what a side of a merge calls it.
const MAX_NAMES: usize = 64;

/// A change of a thing against the commit's first parent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step<K> {
    /// The commit.
    pub commit: u32,
    /// Stands for what was there before; equal numbers mean equal content.
    pub old: u64,
    /// Stands for what is there now.
    pub new: u64,
    /// Where it was in the first parent, if it is new here and came from elsewhere.
    pub origin: Option<K>,
}

/// What can be followed.
pub trait Timeline {
    /// Names a thing.
    type Key: Clone + Eq + std::hash::Hash + Ord;
    /// Why its changes cannot be told.
    type Error;

    /// All recorded changes of a thing, ascending by commit. An added thing that came from elsewhere need not say so here.
    fn steps(&mut self, key: &Self::Key) -> Result<Vec<Step<Self::Key>>, Self::Error>;

    /// The commit from which on [`Self::steps`] has all changes of a thing; it is not known what earlier ones did.
    fn known_from(&self, _key: &Self::Key) -> u32 {
        0
    }

    /// Where a thing was in the commit's first parent, if `step` added it and it came from elsewhere.
    fn origin(&mut self, key: &Self::Key, step: &Step<Self::Key>) -> Result<Option<Self::Key>, Self::Error>;

    /// Where a thing went in the commit `number`, which took it away from `key`; empty if it was deleted.
    fn successors(&mut self, key: &Self::Key, number: u32) -> Result<Vec<Self::Key>, Self::Error>;
}

/// A change in the life of a thing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Followed<K> {
    /// The thing, as it was called then.
    pub key: K,
    /// The change.
    pub step: Step<K>,
    /// Whether it is a merge that only joins a name which the thing has in one parent with the content that it has in another.
    pub is_join: bool,
}

/// The changes that made `key` what it is at `tip`, children before parents. O(steps²) for each name it had, and one pass
/// over all commits the first time that a history is followed.
pub fn follow<T: Timeline>(
    history: &History,
    tip: u32,
    key: &T::Key,
    timeline: &mut T,
) -> Result<Vec<Followed<T::Key>>, T::Error> {
    let mut walk = Walk::new(history, timeline);
    walk.wait(tip, key)?;
    while let Some((number, lines)) = walk.waiting.pop_last() {
        for line in lines {
            walk.visit(number, line)?;
        }
    }
    Ok(walk.found)
}

/// The name under which the parent `parent` of the merge `number` has what the merge has as `key`; `None` if it has no such thing or calls
/// it the same.
pub(super) fn name_at<T: Timeline>(
    history: &History,
    (number, parent): (u32, u32),
    key: &T::Key,
    timeline: &mut T,
) -> Result<Option<T::Key>, T::Error> {
    let mut walk = Walk::new(history, timeline);
    let line = walk.line(key)?;
    let name = walk.name_at((number, parent), line)?;
    Ok(name.map(|line| walk.lines[line].key.clone()))
}

/// The last of some steps at or before a commit on the line of its first parents.
pub(super) fn last_step<'s, K>(history: &History, steps: &'s [Step<K>], number: u32) -> Option<&'s Step<K>> {
    let n_before = steps.partition_point(|step| step.commit <= number);
    let mut before = steps[..n_before].iter().rev();
    before.find(|step| history.is_first_ancestor(step.commit, number))
}

/// The last of some steps at or before a commit on the line of its first parents that put something where nothing was.
fn addition<'s, K>(history: &History, steps: &'s [Step<K>], number: u32) -> Option<&'s Step<K>> {
    let n_before = steps.partition_point(|step| step.commit <= number);
    let mut before = steps[..n_before].iter().rev();
    before.find(|step| step.old == ABSENT && history.is_first_ancestor(step.commit, number))
}

/// One name with its changes.
struct Line<K> {
    key: K,
    steps: Vec<Step<K>>,
    /// Nothing is known of what earlier commits did.
    known_from: u32,
}

impl<K> Line<K> {
    /// What it stands for at a commit.
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
    lines: Vec<Line<T::Key>>,
    names: HashMap<T::Key, usize>,
    waiting: BTreeMap<u32, Vec<usize>>,
    seen: HashSet<(u32, usize)>,
    found: Vec<Followed<T::Key>>,
    /// Where what a step of a line added came from.
    origins: HashMap<(usize, u32), Option<T::Key>>,
}

impl<'a, T: Timeline> Walk<'a, T> {
    fn new(history: &'a History, timeline: &'a mut T) -> Self {
        Self {
            history,
            timeline,
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
        let steps = self.timeline.steps(key)?;
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
        // What leaves the thing as the first parent has it is passed over towards that, merges too.
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
            // What is new here may have been there before, as after a revert; not if something else stood in its place.
            Some(Some(parent)) if !has_origin && !self.is_replacement(line, &step, *parent) => {
                self.wait_line(*parent, line);
            }
            _ => {}
        }
        Ok(())
    }

    /// Whether a step put something new where another thing of that name stood, which went on elsewhere.
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
        // Whether the merge changed it is not known if a side is not.
        let of_line = &self.lines[line];
        let is_unread = |parent: u32| of_line.known_from > parent && of_line.state(self.history, parent) == UNKNOWN;
        let mut parents = self.history.parents(number).iter().copied().flatten();
        if let Some(step) = step.filter(|_| !parents.any(is_unread)) {
            self.found(line, &step, is_join)?;
        }
        Ok(())
    }

    /// The line under which a parent of a merge has what the merge has under `line`, if the parent calls it otherwise: a name that the thing had
    /// before on the side of another parent, or what such a thing became on the side of this one.
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

    /// The line under which a parent of a merge has what another parent `other` had under `line`.
    fn name_of(&mut self, (other, parent): (u32, u32), line: usize) -> Result<Option<usize>, T::Error> {
        let of_line = &self.lines[line];
        if of_line.state(self.history, parent) == ABSENT {
            let gone = last_step(self.history, &of_line.steps, parent).map(|step| step.commit);
            return gone.map_or(Ok(None), |gone| self.name_after((gone, parent), line));
        }
        // One that came after the sides had parted is something else of that name.
        let added = addition(self.history, &of_line.steps, parent).map(|step| step.commit);
        let is_other = added
            .is_some_and(|added| self.history.parents(added).len() < 2 && !self.history.reachable(&[other]).has(added));
        Ok((!is_other).then_some(line))
    }

    /// The name that the thing which stands under `line` at a commit had before that one, and the commit where it had it last.
    fn name_before(&mut self, mut number: u32, line: usize) -> Result<Option<(u32, usize)>, T::Error> {
        while let Some(step) = addition(self.history, &self.lines[line].steps, number).cloned() {
            let parents: Vec<u32> = self.history.parents(step.commit).iter().copied().flatten().collect();
            if let (Some(origin), Some(parent)) = (self.origin(line, &step)?, parents.first()) {
                let origin = self.line(&origin)?;
                return Ok(Some((*parent, origin)));
            }
            // A merge took it from a side.
            let has = |side: &&u32| self.lines[line].state(self.history, **side) > UNKNOWN;
            let Some(side) = parents.iter().skip(1).find(has) else {
                break;
            };
            number = *side;
        }
        Ok(None)
    }

    /// The line under which a commit has what went away from `line` in the commit `gone`, which is on its line of first parents.
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

    /// Where a step that added something took it from, if it came from elsewhere.
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

    /// Tells a step, and goes on where the thing came from, if it came from elsewhere.
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
