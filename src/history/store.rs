//! All recorded commits.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::git::ObjectError;
use crate::model::{CommitId, RepoPath};
use crate::sidecar::{HistoryEntry, Sidecar};

use super::batch::{Batch, BatchError};
use super::record::{Boundary, Change, CommitHead, PathChange};

/// Batches in the order of their numbers, which adjoin. Does not change while it is held.
#[derive(Clone, Debug, Default)]
pub struct History {
    batches: Vec<Arc<Batch>>,
    /// Where the parents of each commit end in `parents`.
    parent_ends: Vec<u32>,
    parents: Vec<Option<u32>>,
    /// Seconds since 1970, raised where a parent is later: descending it is an order in which children come before parents.
    times: Vec<i64>,
}

/// Why the history could not be opened or read.
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    /// A batch.
    #[error(transparent)]
    Batch(#[from] BatchError),
    /// A batch is not the one that goes on where the one before ends.
    #[error("records of commits do not adjoin: {expected} is followed by {found}")]
    Gap {
        /// The number that should come next.
        expected: u32,
        /// The one that does.
        found: u32,
    },
    /// The repository.
    #[error(transparent)]
    Object(#[from] ObjectError),
}

/// The commits that one reaches.
#[derive(Clone, Debug)]
pub struct Reachable {
    bits: Vec<u64>,
}

impl Reachable {
    /// Whether the commit with this number is reached.
    pub fn has(&self, number: u32) -> bool {
        self.bits
            .get(number as usize / 64)
            .is_some_and(|word| word >> (number % 64) & 1 == 1)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.bits.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.bits.iter().all(|word| *word == 0)
    }

    fn insert(&mut self, number: u32) {
        self.bits[number as usize / 64] |= 1 << (number % 64);
    }
}

impl History {
    /// Opens the batches that a state names.
    pub fn open(sidecar: &Sidecar, entries: &[HistoryEntry]) -> Result<Self, HistoryError> {
        let mut history = Self::default();
        for entry in entries {
            let batch = Batch::open(sidecar, &entry.records.name)?;
            history.push(batch)?;
        }
        Ok(history)
    }

    /// Adds the batch that goes on where this ends.
    pub fn push(&mut self, batch: Batch) -> Result<(), HistoryError> {
        let expected = self.n_commits();
        if batch.base() != expected {
            return Err(HistoryError::Gap {
                expected,
                found: batch.base(),
            });
        }
        for local in 0..batch.n_commits() {
            let start = self.parents.len();
            batch.parents_of(local, &mut self.parents)?;
            self.parent_ends.push(self.parents.len() as u32);
            let of_parents = self.parents[start..].iter().flatten();
            let latest = of_parents.map(|parent| self.times[*parent as usize]).max();
            let own = batch.time(local)?;
            self.times.push(latest.map_or(own, |latest| latest.max(own)));
        }
        self.batches.push(Arc::new(batch));
        Ok(())
    }

    /// The batches.
    pub fn batches(&self) -> &[Arc<Batch>] {
        &self.batches
    }

    /// How many commits are recorded.
    pub fn n_commits(&self) -> u32 {
        self.parent_ends.len() as u32
    }

    /// How many changed paths are recorded.
    pub fn n_changes(&self) -> u64 {
        self.batches.iter().map(|batch| u64::from(batch.n_changes())).sum()
    }

    /// The number of a commit; `None` if it is not recorded.
    pub fn number(&self, id: CommitId) -> Option<u32> {
        self.batches.iter().rev().find_map(|batch| batch.number(id))
    }

    /// The parents of a commit; `None` in place of one that is not recorded.
    pub fn parents(&self, number: u32) -> &[Option<u32>] {
        let start = match number {
            0 => 0,
            _ => self.parent_ends[number as usize - 1],
        };
        &self.parents[start as usize..self.parent_ends[number as usize] as usize]
    }

    /// The place of a commit among others: the larger, the later. Children are after their parents, whatever their clocks said.
    pub fn order_of(&self, number: u32) -> (i64, u32) {
        (self.times[number as usize], number)
    }

    /// What `tips` reach, themselves included. One pass over all commits.
    pub fn reachable(&self, tips: &[u32]) -> Reachable {
        let mut reached = Reachable {
            bits: vec![0; self.n_commits().div_ceil(64) as usize],
        };
        tips.iter().for_each(|tip| reached.insert(*tip));
        for number in (0..self.n_commits()).rev() {
            if reached.has(number) {
                self.parents(number)
                    .iter()
                    .flatten()
                    .for_each(|parent| reached.insert(*parent));
            }
        }
        reached
    }

    /// Which of the batches has the commit.
    pub fn batch_of(&self, number: u32) -> usize {
        self.batches.partition_point(|batch| batch.base() <= number) - 1
    }

    fn batch(&self, number: u32) -> (&Batch, u32) {
        let batch = &self.batches[self.batch_of(number)];
        (batch, number - batch.base())
    }

    /// Who, when and what for, of many commits.
    pub fn heads(&self, numbers: &[u32]) -> Result<BTreeMap<u32, CommitHead>, HistoryError> {
        let mut sorted = numbers.to_vec();
        sorted.sort_unstable();
        sorted.dedup();
        let mut heads = BTreeMap::new();
        let mut block: Option<(u32, Vec<CommitHead>)> = None;
        for number in sorted {
            let is_in = |block: &&(u32, Vec<CommitHead>)| (block.0..block.0 + block.1.len() as u32).contains(&number);
            if block.as_ref().filter(is_in).is_none() {
                let (batch, local) = self.batch(number);
                let (first, of_block) = batch.heads_around(local)?;
                block = Some((batch.base() + first, of_block));
            }
            let found = block
                .as_ref()
                .filter(is_in)
                .map(|(first, all)| all[(number - first) as usize].clone());
            heads.extend(found.map(|head| (number, head)));
        }
        Ok(heads)
    }

    /// The whole message of a commit.
    pub fn message(&self, number: u32) -> Result<String, HistoryError> {
        let (batch, local) = self.batch(number);
        Ok(batch.message(local)?)
    }

    /// Whether the record of a commit goes on to its parents.
    pub fn boundary(&self, number: u32) -> Result<Boundary, HistoryError> {
        let (batch, local) = self.batch(number);
        Ok(batch.boundary(local)?)
    }

    /// The commits at which the record ends although git's does not, with the reason.
    pub fn boundaries(&self) -> Result<Vec<(u32, Boundary)>, HistoryError> {
        let mut found = Vec::new();
        for batch in &self.batches {
            for local in 0..batch.n_commits() {
                match batch.boundary(local)? {
                    Boundary::None => {}
                    boundary => found.push((batch.base() + local, boundary)),
                }
            }
        }
        Ok(found)
    }

    /// The commits whose changes could not be told.
    pub fn unknown(&self) -> Vec<u32> {
        let of_batch = |batch: &Arc<Batch>| {
            let (base, batch) = (batch.base(), Arc::clone(batch));
            (0..batch.n_commits())
                .filter(move |local| batch.is_unknown(*local))
                .map(move |local| base + local)
        };
        self.batches.iter().flat_map(of_batch).collect()
    }

    /// The changes of a path in all recorded commits, ascending by commit.
    pub fn changes_of(&self, path: &[u8]) -> Result<Vec<PathChange>, HistoryError> {
        let mut changes = Vec::new();
        for batch in &self.batches {
            changes.extend(batch.changes_of(path)?);
        }
        Ok(changes)
    }

    /// The paths that a commit changed, ascending.
    pub fn touched(&self, number: u32) -> Result<Vec<RepoPath>, HistoryError> {
        let (batch, local) = self.batch(number);
        Ok(batch.touched(local)?)
    }

    /// What a commit changed, ascending by path.
    pub fn changes_at(&self, number: u32) -> Result<Vec<Change>, HistoryError> {
        let (batch, local) = self.batch(number);
        Ok(batch.changes_at(local)?)
    }

    /// The committer's time, in seconds since 1970.
    pub fn time(&self, number: u32) -> Result<i64, HistoryError> {
        let (batch, local) = self.batch(number);
        Ok(batch.time(local)?)
    }

    /// Every path with this beginning that was ever changed, ascending.
    pub fn paths_from(&self, beginning: &[u8]) -> Vec<RepoPath> {
        let mut paths: Vec<RepoPath> = self
            .batches
            .iter()
            .flat_map(|batch| batch.paths_from(beginning))
            .map(RepoPath::new)
            .collect();
        paths.sort_unstable();
        paths.dedup();
        paths
    }

    /// The id of a commit.
    pub fn id(&self, number: u32) -> Result<CommitId, HistoryError> {
        let (batch, local) = self.batch(number);
        Ok(batch.id(local)?)
    }
}
