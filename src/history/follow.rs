//! The life of one thing, from a commit back, by git's history simplification.
//!
//! Source: "History Simplification" in git's `rev-list` page, default mode: a merge that has the thing as one of its parents
//! has it is passed over towards that parent alone; one that differs from all is told, and all parents are followed. Beyond
//! it, a thing that a commit added from elsewhere is followed to where it was.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::store::History;

/// The state of what is not there.
pub const ABSENT: u64 = 0;
/// The state before the first recorded change.
pub const UNKNOWN: u64 = 1;

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

    /// Where a thing was in the commit's first parent, if `step` added it and it came from elsewhere.
    fn origin(&mut self, key: &Self::Key, step: &Step<Self::Key>) -> Result<Option<Self::Key>, Self::Error>;
}

/// A change in the life of a thing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Followed<K> {
    /// The thing, as it was called then.
    pub key: K,
    /// The change.
    pub step: Step<K>,
}

/// The changes that made `key` what it is at `tip`, children before parents. O(steps²) for each name it had, and one pass
/// over all commits the first time that a history is followed.
pub fn follow<T: Timeline>(
    history: &History,
    tip: u32,
    key: &T::Key,
    timeline: &mut T,
) -> Result<Vec<Followed<T::Key>>, T::Error> {
    let mut walk = Walk {
        history,
        timeline,
        lines: Vec::new(),
        names: HashMap::new(),
        waiting: BTreeMap::new(),
        seen: HashSet::new(),
        found: Vec::new(),
    };
    walk.wait(tip, key)?;
    while let Some((number, lines)) = walk.waiting.pop_last() {
        for line in lines {
            walk.visit(number, line)?;
        }
    }
    Ok(walk.found)
}

/// The last of some steps at or before a commit on the line of its first parents.
pub(super) fn last_step<'s, K>(history: &History, steps: &'s [Step<K>], number: u32) -> Option<&'s Step<K>> {
    let n_before = steps.partition_point(|step| step.commit <= number);
    let mut before = steps[..n_before].iter().rev();
    before.find(|step| history.is_first_ancestor(step.commit, number))
}

/// One name with its changes.
struct Line<K> {
    key: K,
    steps: Vec<Step<K>>,
}

impl<K> Line<K> {
    /// What it stands for at a commit.
    fn state(&self, history: &History, number: u32) -> u64 {
        match last_step(history, &self.steps, number) {
            Some(step) => step.new,
            None if history.ends_unrecorded(number) => UNKNOWN,
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
}

impl<T: Timeline> Walk<'_, T> {
    fn line(&mut self, key: &T::Key) -> Result<usize, T::Error> {
        if let Some(line) = self.names.get(key) {
            return Ok(*line);
        }
        let steps = self.timeline.steps(key)?;
        let key_of_line = key.clone();
        self.lines.push(Line {
            key: key_of_line,
            steps,
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
        let has_origin = self.found(line, &step)?;
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
        let has_origin = match of_line.step(number).cloned() {
            Some(step) => self.found(line, &step)?,
            None => false,
        };
        for parent in parents.into_iter().skip(usize::from(has_origin)) {
            self.wait_line(parent, line);
        }
        Ok(())
    }

    /// Tells a step, and goes on where the thing came from, if it came from elsewhere.
    fn found(&mut self, line: usize, step: &Step<T::Key>) -> Result<bool, T::Error> {
        let key = self.lines[line].key.clone();
        let mut step = step.clone();
        if step.old == ABSENT {
            if step.origin.is_none() {
                step.origin = self.timeline.origin(&key, &step)?;
            }
            if let (Some(origin), Some(Some(parent))) = (&step.origin, self.history.parents(step.commit).first()) {
                let origin = origin.clone();
                self.wait(*parent, &origin)?;
            }
        }
        let has_origin = step.origin.is_some();
        self.found.push(Followed { key, step });
        Ok(has_origin)
    }
}
