//! All recorded commits.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, OnceLock};

use crate::git::ObjectError;
use crate::model::{CommitId, RepoPath};
use crate::sidecar::{HistoryEntry, Sidecar};

use super::batch::{Batch, BatchError};
use super::lineage::SymbolRecord;
use super::record::{Boundary, Change, CommitHead, PathChange};
use super::symbol_batch::{SymbolBatch, TracedChange};

/// Batches in the order of their numbers, which adjoin. Does not change while it is held.
#[derive(Clone, Debug, Default)]
pub struct History {
    batches: Vec<Arc<Batch>>,
    /// What the commits of each batch did to definitions, as far as they were traced.
    symbols: Vec<Option<Arc<SymbolBatch>>>,
    /// Where the parents of each commit end in `parents`.
    parent_ends: Vec<u32>,
    parents: Vec<Option<u32>>,
    /// Seconds since 1970, raised where a parent is later: descending it is an order in which children come before parents.
    times: Vec<i64>,
    /// Of each commit; computed when it is first asked for.
    first_lines: Arc<OnceLock<Vec<FirstLine>>>,
}

/// Where a commit stands on the lines of first parents.
#[derive(Clone, Copy, Debug)]
struct FirstLine {
    /// Its own place, and the end of the places of all whose line leads to it.
    start: u32,
    end: u32,
    /// Where its line ends.
    root: u32,
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
    /// The caller asked to stop.
    #[error("interrupted")]
    Interrupted,
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
            if let Some(file) = &entry.symbols {
                match SymbolBatch::open(sidecar, &file.name) {
                    Ok(symbols) => history.add_symbols(symbols),
                    // Without them the same is computed when somebody asks.
                    Err(error) => tracing::warn!(%error, "records of definitions are not read"),
                }
            }
        }
        Ok(history)
    }

    /// Adds what the commits of the last batch did to definitions.
    pub fn add_symbols(&mut self, symbols: SymbolBatch) {
        let is_about = self.batches.last().is_some_and(|batch| symbols.belongs_to(batch));
        if let Some(last) = self.symbols.last_mut().filter(|_| is_about) {
            *last = Some(Arc::new(symbols));
        }
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
        self.first_lines = Arc::default();
        self.batches.push(Arc::new(batch));
        self.symbols.push(None);
        Ok(())
    }

    /// The batches.
    pub fn batches(&self) -> &[Arc<Batch>] {
        &self.batches
    }

    /// What the commits of a batch did to definitions under this recipe, as far as they were traced.
    pub fn symbols(&self, batch: usize, recipe: u64) -> Option<&SymbolBatch> {
        let symbols = self.symbols.get(batch)?.as_deref();
        symbols.filter(|symbols| symbols.recipe() == recipe)
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

    /// Whether a commit is another one, or its first parent, or the first parent of that, and so on.
    pub(super) fn is_first_ancestor(&self, ancestor: u32, number: u32) -> bool {
        let (above, own) = (self.first_line(ancestor), self.first_line(number));
        (above.start..above.end).contains(&own.start)
    }

    fn first_line(&self, number: u32) -> FirstLine {
        self.first_lines.get_or_init(|| self.compute_first_lines())[number as usize]
    }

    /// Numbers the forest of first parents so that all that lead to a commit are one range that begins with it.
    fn compute_first_lines(&self) -> Vec<FirstLine> {
        let n_commits = self.n_commits();
        let parent = |number: u32| self.parents(number).first().copied().flatten();
        let mut sizes = vec![1u32; n_commits as usize];
        for number in (0..n_commits).rev() {
            if let Some(parent) = parent(number) {
                sizes[parent as usize] += sizes[number as usize];
            }
        }
        let mut lines: Vec<FirstLine> = Vec::with_capacity(n_commits as usize);
        // Where the next child of each commit begins; at the end that of the roots.
        let mut free = vec![0u32; n_commits as usize + 1];
        for number in 0..n_commits {
            let slot = parent(number).unwrap_or(n_commits) as usize;
            let start = free[slot];
            free[slot] += sizes[number as usize];
            free[number as usize] = start + 1;
            lines.push(FirstLine {
                start,
                end: start + sizes[number as usize],
                root: parent(number).map_or(number, |parent| lines[parent as usize].root),
            });
        }
        lines
    }

    /// Whether the line of first parents ends where nothing more is recorded, not where everything began.
    pub(super) fn ends_unrecorded(&self, number: u32) -> bool {
        let root = self.first_line(number).root;
        !self.parents(root).is_empty()
    }

    /// A commit with its first parent, the first parent of that, and so on.
    pub fn first_parents(&self, tip: u32) -> Reachable {
        let mut line = Reachable {
            bits: vec![0; self.n_commits().div_ceil(64) as usize],
        };
        let mut next = Some(tip);
        while let Some(number) = next {
            line.insert(number);
            next = self.parents(number).first().copied().flatten();
        }
        line
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

    /// How many paths a commit changed.
    pub fn n_touched(&self, number: u32) -> Result<usize, HistoryError> {
        let (batch, local) = self.batch(number);
        Ok(batch.n_touched(local)?)
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

    /// The batches with what their commits did to definitions under this recipe.
    fn traced(&self, recipe: u64) -> impl Iterator<Item = (&Batch, &SymbolBatch)> {
        let both = self.batches.iter().zip(&self.symbols);
        both.filter_map(move |(batch, symbols)| {
            let symbols = symbols.as_deref().filter(|symbols| symbols.recipe() == recipe)?;
            Some((&**batch, symbols))
        })
    }

    /// The paths and commits that removed a definition which did not go on elsewhere, as far as definitions are traced, by whatever recipe.
    pub(super) fn removals(&self) -> Result<Vec<(RepoPath, PathChange)>, HistoryError> {
        let mut found = Vec::new();
        for (batch, symbols) in self.batches.iter().zip(&self.symbols) {
            let Some(symbols) = symbols else { continue };
            let removals = symbols.removals(batch)?;
            for of_path in removals.chunk_by(|(one, _), (other, _)| one == other) {
                let commits: Vec<u32> = of_path.iter().map(|(_, local)| batch.base() + local).collect();
                let mut changes = batch.run(of_path[0].0 as usize)?;
                changes.retain(|change| commits.binary_search(&change.commit).is_ok());
                let path = RepoPath::new(batch.path(of_path[0].0).unwrap_or_default());
                found.extend(changes.into_iter().map(|change| (path.clone(), change)));
            }
        }
        Ok(found)
    }

    /// Whether definitions were traced through a commit.
    pub fn is_traced(&self, number: u32, recipe: u64) -> bool {
        let at = self.batches.partition_point(|batch| batch.base() <= number) - 1;
        let symbols = self.symbols[at].as_ref().filter(|symbols| symbols.recipe() == recipe);
        symbols.is_some_and(|symbols| number - self.batches[at].base() >= symbols.first())
    }

    /// How many commits definitions were traced through, all versions of their files read.
    pub fn n_traced(&self, recipe: u64) -> u32 {
        let of_batch =
            |(batch, symbols): (&Batch, &SymbolBatch)| batch.n_commits() - symbols.first() - symbols.n_unread();
        self.traced(recipe).map(of_batch).sum()
    }

    /// What commits did to the definitions of a path, those with this qualified name or all, by commit.
    pub fn traced_changes(
        &self,
        path: &RepoPath,
        name: Option<&str>,
        recipe: u64,
    ) -> Result<HashMap<u32, TracedChange>, HistoryError> {
        let mut found = HashMap::new();
        for (batch, symbols) in self.traced(recipe) {
            if let Some(number) = batch.path_number(path.as_bytes()) {
                let changes = symbols.changes_of(batch, number, name)?;
                found.extend(changes.into_iter().map(|change| (batch.base() + change.local, change)));
            }
        }
        Ok(found)
    }

    /// Every record of a definition whose qualified name is wanted, with the number of its commit; ascending by batch, path and
    /// commit.
    pub fn traced_names(
        &self,
        recipe: u64,
        is_wanted: &dyn Fn(&[u8]) -> bool,
    ) -> Result<Vec<(RepoPath, u32, SymbolRecord)>, HistoryError> {
        let mut found = Vec::new();
        for (batch, symbols) in self.traced(recipe) {
            for (number, changes) in symbols.named(batch, is_wanted)? {
                let path = RepoPath::new(batch.path(number).unwrap_or_default());
                for change in changes {
                    let commit = batch.base() + change.local;
                    found.extend(change.records.into_iter().map(|record| (path.clone(), commit, record)));
                }
            }
        }
        Ok(found)
    }

    /// The id of a commit.
    pub fn id(&self, number: u32) -> Result<CommitId, HistoryError> {
        let (batch, local) = self.batch(number);
        Ok(batch.id(local)?)
    }
}
