//! Combines all batches of recorded commits.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, OnceLock};

use crate::git::ObjectError;
use crate::model::{CommitId, RepoPath, explain_by};
use crate::sidecar::{FileError, HistoryEntry, Sidecar};

use super::batch::Batch;
use super::lineage::SymbolRecord;
use super::record::{Boundary, Change, CommitHead, PathChange};
use super::symbol_batch::{SymbolBatch, TracedChange};

/// All recorded commits, in batches with consecutive commit numbers.
#[derive(Clone, Debug, Default)]
pub struct History {
    batches: Vec<Arc<Batch>>,
    /// The symbol batch of each batch; `None` if no commit of the batch has been traced.
    symbols: Vec<Option<Arc<SymbolBatch>>>,
    /// The end of each commit's parents in `parents`.
    parent_ends: Vec<u32>,
    parents: Vec<Option<u32>>,
    /// The time of each commit in seconds since 1970, but not before the time of a parent. In descending order of time,
    /// children come before parents.
    times: Vec<i64>,
    /// One entry per commit, computed on first use.
    first_lines: Arc<OnceLock<Vec<FirstLine>>>,
}

/// The position of a commit in the tree of first parents.
#[derive(Clone, Copy, Debug)]
struct FirstLine {
    /// The position of the commit, and the end of the positions of all commits whose first-parent history contains it.
    start: u32,
    end: u32,
    /// The last commit of the first-parent history.
    root: u32,
}

/// An error from opening or reading the history.
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    /// A batch cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// The commit numbers of a batch do not follow those of the previous batch.
    #[error("gap in the commit records: expected number {expected}, found {found}")]
    Gap {
        /// The expected number of the first commit.
        expected: u32,
        /// The number of the first commit.
        found: u32,
    },
    /// The repository cannot be read.
    #[error(transparent)]
    Object(#[from] ObjectError),
    /// The interrupt flag was set.
    #[error("interrupted")]
    Interrupted,
}

explain_by!(HistoryError: File, Object; Interrupted);

/// A set of commits, for example those that are reachable from a commit.
#[derive(Clone, Debug)]
pub struct Reachable {
    bits: Vec<u64>,
}

impl Reachable {
    /// Returns true if the set contains the commit.
    pub fn has(&self, number: u32) -> bool {
        self.bits
            .get(number as usize / 64)
            .is_some_and(|word| word >> (number % 64) & 1 == 1)
    }

    /// Returns the number of commits in the set.
    pub fn len(&self) -> usize {
        self.bits.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Returns true if the set is empty.
    pub fn is_empty(&self) -> bool {
        self.bits.iter().all(|word| *word == 0)
    }

    fn insert(&mut self, number: u32) {
        self.bits[number as usize / 64] |= 1 << (number % 64);
    }
}

impl History {
    /// Opens the batches that a [`State`](crate::sidecar::State) lists.
    pub fn open(sidecar: &Sidecar, entries: &[HistoryEntry]) -> Result<Self, HistoryError> {
        let mut history = Self::default();
        for entry in entries {
            let batch = Batch::open(sidecar, &entry.records.name)?;
            history.push(batch)?;
            if let Some(file) = &entry.symbols {
                match SymbolBatch::open(sidecar, &file.name) {
                    Ok(symbols) => history.add_symbols(symbols),
                    // Without symbol batches, the changes of definitions are computed on demand.
                    Err(error) => tracing::warn!(%error, "cannot read the records of definitions"),
                }
            }
        }
        Ok(history)
    }

    /// Sets the symbol batch of the last batch. Ignores it if it belongs to another batch.
    pub fn add_symbols(&mut self, symbols: SymbolBatch) {
        let is_about = self.batches.last().is_some_and(|batch| symbols.belongs_to(batch));
        if let Some(last) = self.symbols.last_mut().filter(|_| is_about) {
            *last = Some(Arc::new(symbols));
        }
    }

    /// Appends a batch. Its commit numbers must follow those of the last batch.
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

    /// Returns the batches in commit order.
    pub fn batches(&self) -> &[Arc<Batch>] {
        &self.batches
    }

    /// Returns the symbol batch of a batch if it was traced with this recipe.
    pub fn symbols(&self, batch: usize, recipe: u64) -> Option<&SymbolBatch> {
        let symbols = self.symbols.get(batch)?.as_deref();
        symbols.filter(|symbols| symbols.recipe() == recipe)
    }

    /// Returns the number of recorded commits.
    pub fn n_commits(&self) -> u32 {
        self.parent_ends.len() as u32
    }

    /// Returns the number of changed paths, summed over all commits.
    pub fn n_changes(&self) -> u64 {
        self.batches.iter().map(|batch| u64::from(batch.n_changes())).sum()
    }

    /// Returns the number of a commit, or `None` if it is not recorded.
    pub fn number(&self, id: CommitId) -> Option<u32> {
        self.batches.iter().rev().find_map(|batch| batch.number(id))
    }

    /// Returns the numbers of a commit's parents. A parent is `None` if it is not recorded.
    pub fn parents(&self, number: u32) -> &[Option<u32>] {
        let start = match number {
            0 => 0,
            _ => self.parent_ends[number as usize - 1],
        };
        &self.parents[start as usize..self.parent_ends[number as usize] as usize]
    }

    /// Returns the sort key of a commit. Later commits have a greater key, and children always have a greater key than
    /// their parents, even if their recorded times differ.
    pub fn order_of(&self, number: u32) -> (i64, u32) {
        (self.times[number as usize], number)
    }

    /// Returns the commits that are reachable from `tips`, including `tips`. Takes one pass over all commits.
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

    /// Returns the index of the batch that contains the commit.
    pub fn batch_of(&self, number: u32) -> usize {
        self.batches.partition_point(|batch| batch.base() <= number) - 1
    }

    /// Returns true if `ancestor` is in the first-parent history of `number`, which includes `number` itself.
    pub(super) fn is_first_ancestor(&self, ancestor: u32, number: u32) -> bool {
        let (above, own) = (self.first_line(ancestor), self.first_line(number));
        (above.start..above.end).contains(&own.start)
    }

    fn first_line(&self, number: u32) -> FirstLine {
        self.first_lines.get_or_init(|| self.compute_first_lines())[number as usize]
    }

    /// Numbers the tree of first parents in preorder, so that a commit and its descendants have consecutive positions.
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
        // The position of the next child of each commit. The last element is the position of the next root.
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

    /// Returns true if the first-parent history ends at a commit whose parent is not recorded, instead of at a root
    /// commit.
    pub(super) fn ends_unrecorded(&self, number: u32) -> bool {
        let root = self.first_line(number).root;
        !self.parents(root).is_empty()
    }

    /// Returns the commits in the first-parent history of `tip`, including `tip`.
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

    /// Returns the heads of several commits, by commit number.
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
                let (first, of_block) = batch.heads_of_block(local)?;
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

    /// Returns the number of paths that a commit changed.
    pub fn n_touched(&self, number: u32) -> Result<usize, HistoryError> {
        let (batch, local) = self.batch(number);
        Ok(batch.n_touched(local)?)
    }

    /// Returns true if a commit changed more than `n` paths.
    pub fn touches_more_than(&self, number: u32, n: usize) -> Result<bool, HistoryError> {
        let (batch, local) = self.batch(number);
        Ok(batch.touches_more_than(local, n)?)
    }

    /// Returns the message of a commit.
    pub fn message(&self, number: u32) -> Result<String, HistoryError> {
        let (batch, local) = self.batch(number);
        Ok(batch.message(local)?)
    }

    /// Returns the reason why parents of a commit are not recorded, or [`Boundary::None`] if all are.
    pub fn boundary(&self, number: u32) -> Result<Boundary, HistoryError> {
        let (batch, local) = self.batch(number);
        Ok(batch.boundary(local)?)
    }

    /// Returns the commits with parents that are not recorded, with the reason.
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

    /// Returns the commits whose recorded changes may be incomplete.
    pub fn unknown(&self) -> Vec<u32> {
        let of_batch = |batch: &Arc<Batch>| {
            let (base, batch) = (batch.base(), Arc::clone(batch));
            (0..batch.n_commits())
                .filter(move |local| batch.is_unknown(*local))
                .map(move |local| base + local)
        };
        self.batches.iter().flat_map(of_batch).collect()
    }

    /// Returns the changes of a path in all recorded commits, ascending by commit number.
    pub fn changes_of(&self, path: &[u8]) -> Result<Vec<PathChange>, HistoryError> {
        let mut changes = Vec::new();
        for batch in &self.batches {
            changes.extend(batch.changes_of(path)?);
        }
        Ok(changes)
    }

    /// Returns the paths that a commit changed, in ascending order.
    pub fn touched(&self, number: u32) -> Result<Vec<RepoPath>, HistoryError> {
        let (batch, local) = self.batch(number);
        Ok(batch.touched(local)?)
    }

    /// Returns the changes of a commit, ascending by path.
    pub fn changes_at(&self, number: u32) -> Result<Vec<Change>, HistoryError> {
        let (batch, local) = self.batch(number);
        Ok(batch.changes_at(local)?)
    }

    /// Returns the committer's time of a commit, in seconds since 1970.
    pub fn time(&self, number: u32) -> Result<i64, HistoryError> {
        let (batch, local) = self.batch(number);
        Ok(batch.time(local)?)
    }

    /// Returns the paths that start with `beginning` and that any recorded commit changed, in ascending order.
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

    /// Returns the traced batches with their symbol batches, if traced with this recipe.
    fn traced(&self, recipe: u64) -> impl Iterator<Item = (&Batch, &SymbolBatch)> {
        let both = self.batches.iter().zip(&self.symbols);
        both.filter_map(move |(batch, symbols)| {
            let symbols = symbols.as_deref().filter(|symbols| symbols.recipe() == recipe)?;
            Some((&**batch, symbols))
        })
    }

    /// Returns the paths from which a commit removed a definition without moving it, with the change of the path.
    /// Includes all traced commits, whatever their recipe.
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

    /// Returns true if a commit is traced with `recipe`.
    pub fn is_traced(&self, number: u32, recipe: u64) -> bool {
        let at = self.batches.partition_point(|batch| batch.base() <= number) - 1;
        let symbols = self.symbols[at].as_ref().filter(|symbols| symbols.recipe() == recipe);
        symbols.is_some_and(|symbols| number - self.batches[at].base() >= symbols.first())
    }

    /// Returns the number of traced commits for which all file versions were in the repository.
    pub fn n_traced(&self, recipe: u64) -> u32 {
        let of_batch =
            |(batch, symbols): (&Batch, &SymbolBatch)| batch.n_commits() - symbols.first() - symbols.n_unread();
        self.traced(recipe).map(of_batch).sum()
    }

    /// Returns the changes of the definitions of a path, with their commits. If `name` is given, returns only the
    /// definitions with this qualified name.
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

    /// Returns the records of definitions whose qualified name satisfies `is_wanted`, with the path and the number of
    /// the commit. Ascending by batch, path and commit.
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

    /// Returns the id of a commit.
    pub fn id(&self, number: u32) -> Result<CommitId, HistoryError> {
        let (batch, local) = self.batch(number);
        Ok(batch.id(local)?)
    }
}
