//! Exports recorded commits in new batches. The order of the commits depends only on the commits themselves.

use std::collections::{BTreeMap, BTreeSet};

use super::batch::{Batch, NumberedCommit};
use super::lines::{LineChanges, LinesWriter};
use super::plan::{Node, parents_first};
use super::record::CommitData;
use super::store::{History, HistoryError, Reachable};
use super::symbol_batch::{TracedPaths, symbol_batch_bytes};
use super::writer::BatchWriter;

/// Maximum number of commits in an exported batch. It is small enough for memory, and so large that batches are not
/// merged after an import.
pub const MAX_EXPORTED_COMMITS: usize = 1 << 13;
/// Maximum number of changed paths in a batch, which take about 50 MB. A batch with a single commit may exceed it.
const MAX_EXPORTED_CHANGES: usize = 2_000_000;

/// The contents of the files of an exported batch.
#[derive(Debug)]
pub struct Selected {
    /// The number of commits.
    pub n_commits: u32,
    /// The commit records.
    pub records: Vec<u8>,
    /// The changes of definitions.
    pub symbols: Vec<u8>,
    /// Signatures of the added and removed lines.
    pub lines: Vec<u8>,
}

/// Exports the commits of `wanted`, which must all be traced with `recipe`. Passes each batch to `finished`. `lines`
/// contains the signatures of every batch of `history`. The same commits give the same bytes, in whatever order they
/// were recorded.
pub fn select<E: From<HistoryError>>(
    history: &History,
    lines: &[LineChanges],
    wanted: &Reachable,
    recipe: u64,
    finished: impl FnMut(Selected) -> Result<(), E>,
) -> Result<(), E> {
    let most = (MAX_EXPORTED_COMMITS, MAX_EXPORTED_CHANGES);
    select_in(history, lines, wanted, recipe, most, finished)
}

/// Like [`select`], but `most` contains the maximum numbers of commits and of changed paths per batch.
pub(super) fn select_in<E: From<HistoryError>>(
    history: &History,
    lines: &[LineChanges],
    wanted: &Reachable,
    recipe: u64,
    most: (usize, usize),
    mut finished: impl FnMut(Selected) -> Result<(), E>,
) -> Result<(), E> {
    let order = in_order(history, wanted)?;
    let mut selection = Selection {
        history,
        lines,
        recipe,
        numbers: vec![None; history.n_commits() as usize],
        loaded: BTreeMap::new(),
    };
    for (number, new) in order.iter().zip(0..) {
        selection.numbers[*number as usize] = Some(new);
    }
    let mut base = 0;
    while base < order.len() {
        let n_commits = n_first(history, &order[base..], most)?;
        finished(selection.batch(&order[base..base + n_commits], base as u32)?)?;
        base += n_commits;
    }
    Ok(())
}

/// Returns how many of the first commits fit into a batch. At least one.
fn n_first(history: &History, numbers: &[u32], most: (usize, usize)) -> Result<usize, HistoryError> {
    let (mut n_commits, mut n_changes) = (0, 0);
    for &number in numbers.iter().take(most.0) {
        n_changes += history.n_touched(number)?;
        if n_commits > 0 && n_changes > most.1 {
            break;
        }
        n_commits += 1;
    }
    Ok(n_commits)
}

/// Returns the commits in the order in which they would be recorded in an empty history.
fn in_order(history: &History, wanted: &Reachable) -> Result<Vec<u32>, HistoryError> {
    let numbers: Vec<u32> = (0..history.n_commits()).filter(|number| wanted.has(*number)).collect();
    let node = |&number: &u32| {
        let parents = history.parents(number).iter().flatten();
        Ok(Node {
            id: history.id(number)?,
            time: history.time(number)?,
            parents: parents.map(|parent| history.id(*parent)).collect::<Result<_, _>>()?,
            boundary: history.boundary(number)?,
        })
    };
    let nodes: Vec<Node> = numbers.iter().map(node).collect::<Result<_, HistoryError>>()?;
    let places = nodes.iter().map(|node| node.id).zip(0..).collect();
    Ok(parents_first(&nodes, &places)
        .into_iter()
        .map(|at| numbers[at])
        .collect())
}

struct Selection<'a> {
    history: &'a History,
    lines: &'a [LineChanges],
    recipe: u64,
    /// The new number of each commit.
    numbers: Vec<Option<u32>>,
    /// The decoded batches from which commits remain to be written.
    loaded: BTreeMap<usize, Loaded>,
}

struct Loaded {
    commits: Vec<Option<NumberedCommit>>,
    n_left: usize,
}

impl Selection<'_> {
    fn batch(&mut self, numbers: &[u32], base: u32) -> Result<Selected, HistoryError> {
        let mut writer = BatchWriter::new(base);
        let mut lines = LinesWriter::new(base);
        for &number in numbers {
            let (data, parents) = self.commit(number)?;
            let parents: Vec<Option<u32>> = parents.into_iter().map(|parent| self.new_number(parent?)).collect();
            writer.add(data, &parents);
            let at = self.history.batch_of(number);
            let local = number - self.history.batches()[at].base();
            lines.add(&self.lines[at].copied(local));
        }
        let records = writer.finish();
        let whole = Batch::from_bytes(records.clone())?;
        Ok(Selected {
            n_commits: whole.n_commits(),
            symbols: self.symbols(numbers, &whole)?,
            records,
            lines: lines.finish(),
        })
    }

    fn new_number(&self, number: u32) -> Option<u32> {
        self.numbers.get(number as usize).copied().flatten()
    }

    fn commit(&mut self, number: u32) -> Result<(CommitData, Vec<Option<u32>>), HistoryError> {
        let at = self.history.batch_of(number);
        let batch: &Batch = &self.history.batches()[at];
        let mut loaded = match self.loaded.remove(&at) {
            Some(loaded) => loaded,
            None => self.load(batch)?,
        };
        let slot = loaded.commits.get_mut((number - batch.base()) as usize);
        let found = slot.and_then(Option::take);
        loaded.n_left -= 1;
        if loaded.n_left > 0 {
            self.loaded.insert(at, loaded);
        }
        Ok(found.ok_or_else(|| batch.damaged("ids"))?)
    }

    fn load(&self, batch: &Batch) -> Result<Loaded, HistoryError> {
        let all = (batch.base()..).zip(batch.commits()?);
        let commits: Vec<_> = all
            .map(|(number, commit)| self.new_number(number).map(|_| commit))
            .collect();
        Ok(Loaded {
            n_left: commits.iter().flatten().count(),
            commits,
        })
    }

    fn symbols(&self, numbers: &[u32], whole: &Batch) -> Result<Vec<u8>, HistoryError> {
        let mut paths = TracedPaths::new();
        let sources: BTreeSet<usize> = numbers.iter().map(|&number| self.history.batch_of(number)).collect();
        for at in sources {
            let batch = &self.history.batches()[at];
            let Some(symbols) = self.history.symbols(at, self.recipe) else {
                continue;
            };
            for (path, changes) in symbols.all(batch)? {
                let path = batch.path(path).and_then(|path| whole.path_number(path));
                for mut change in changes {
                    let new = self.new_number(batch.base() + change.local);
                    let local = new.and_then(|new| new.checked_sub(whole.base()));
                    let Some((local, path)) = local.filter(|local| *local < whole.n_commits()).zip(path) else {
                        continue;
                    };
                    change.local = local;
                    paths.entry(path).or_default().push(change);
                }
            }
        }
        for changes in paths.values_mut() {
            changes.sort_by_key(|change| change.local);
        }
        Ok(symbol_batch_bytes(whole, 0, self.recipe, &paths))
    }
}
