//! Traces definitions through recorded commits, newest first, so that queries about a definition need not read old
//! versions of files.

use std::collections::{BTreeSet, HashSet};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use crate::history::{History, SymbolBatch, TracedPaths, n_traced, symbol_batch_bytes, symbol_recipe, trace, unread};
use crate::model::{BlobId, Ctx, Stage};
use crate::sidecar::{HistoryEntry, Sidecar, Store};

use super::history::{RecordError, Recorder};
use super::publish::{pass, publish_state, store};
use super::sweep::retire_file;

/// Extension of files of traced definitions.
pub(super) const SYMBOLS_ENDING: &str = "sym";
/// Number of commits to trace between publications. An interruption loses at most these.
const COMMITS_A_TURN: u32 = 2048;
/// Number of commits of the first turn if the time is limited. Later turns have twice as many as the turn before.
const COMMITS_A_FIRST_TURN: u32 = 64;

/// The outcome of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TraceOutcome {
    /// Number of newly traced commits.
    pub n_new_commits: u32,
    /// Number of changed paths examined.
    pub n_changes: usize,
    /// Bytes of all files of traced definitions.
    pub n_bytes: u64,
    /// Duration of the run.
    pub elapsed: Duration,
}

/// The commits to trace next, all from one batch.
struct Turn {
    entry: usize,
    /// The first commit number after this turn that is already traced.
    first: u32,
    /// Commit numbers within the batch.
    locals: BTreeSet<u32>,
    /// True if the commits were traced before without objects that are available now.
    is_again: bool,
}

impl Turn {
    /// Returns the number of changed paths to examine.
    fn n_changes(&self, history: &History) -> Result<usize, RecordError> {
        let batch = &history.batches()[self.entry];
        Ok(n_traced(batch, &|local| self.locals.contains(&local))?)
    }
}

impl Recorder<'_> {
    /// Traces definitions through all recorded commits, or those for which there is time `until` an instant. Publishes
    /// from time to time, so an interruption loses only the current turn.
    pub fn trace(
        &self,
        sidecar: &Sidecar,
        max_bytes: u64,
        until: Option<Instant>,
        ctx: Ctx<'_>,
    ) -> Result<TraceOutcome, RecordError> {
        let started = Instant::now();
        let mut n_commits = until.map_or(COMMITS_A_TURN, |_| COMMITS_A_FIRST_TURN);
        // A turn takes about as long as all the turns before it together.
        let has_time = || until.is_none_or(|until| Instant::now() + started.elapsed() < until);
        let recipe = symbol_recipe(max_bytes);
        let mut outcome = TraceOutcome::default();
        let mut is_counted = false;
        let mut seen = HashSet::new();
        while has_time() {
            let state = sidecar.state()?.unwrap_or_default();
            let Some(history) = self.sound(sidecar, &state)? else {
                break;
            };
            let turn = match next_turn(&history, recipe, n_commits) {
                Some(turn) => Some(turn),
                None => self.next_repeated_turn(&history, max_bytes, &mut seen)?,
            };
            let Some(turn) = turn else { break };
            // The total computed at the start does not include repeated turns.
            if turn.is_again {
                ctx.progress.begin(Stage::Tracing, turn.n_changes(&history)?);
            } else if !is_counted {
                ctx.progress.begin(Stage::Tracing, n_ahead(&history, recipe)?);
                is_counted = true;
            }
            let advance = || ctx.progress.advance(0);
            let (n_changes, bytes) = self.traced(&history, &turn, max_bytes, &advance, ctx.interrupt)?;
            if self.publish_symbols(sidecar, &state.history[turn.entry], &bytes, ctx.interrupt)? {
                outcome.n_new_commits += turn.locals.len() as u32;
                outcome.n_changes += n_changes;
                n_commits = (2 * n_commits).min(COMMITS_A_TURN);
            } else {
                is_counted = false;
            }
        }
        ctx.progress.end();
        let state = sidecar.state()?.unwrap_or_default();
        let files = state.history.iter().filter_map(|entry| entry.symbols.as_ref());
        outcome.n_bytes = files.map(|file| file.length).sum();
        outcome.elapsed = started.elapsed();
        Ok(outcome)
    }

    /// Returns the commits of a batch whose file versions were missing or damaged and can all be read now. Considers
    /// each batch once.
    fn next_repeated_turn(
        &self,
        history: &History,
        max_bytes: u64,
        seen: &mut HashSet<u32>,
    ) -> Result<Option<Turn>, RecordError> {
        let mut reader = self.repository.reader();
        for (entry, batch) in history.batches().iter().enumerate().rev() {
            let symbols = history.symbols(entry, symbol_recipe(max_bytes));
            let Some(symbols) = symbols.filter(|symbols| symbols.n_unread() > 0 && seen.insert(batch.base())) else {
                continue;
            };
            let mut locals = BTreeSet::new();
            for (local, versions) in unread(batch, symbols)? {
                let versions: Vec<BlobId> = versions.into_iter().map(BlobId).collect();
                if reader.has_blobs(&versions, max_bytes) {
                    locals.insert(local);
                }
            }
            if !locals.is_empty() {
                return Ok(Some(Turn {
                    entry,
                    first: symbols.first(),
                    locals,
                    is_again: true,
                }));
            }
        }
        Ok(None)
    }

    /// Traces the commits of a turn. Returns the number of changed paths and the new file, which includes the earlier
    /// results of its batch.
    fn traced(
        &self,
        history: &History,
        turn: &Turn,
        max_bytes: u64,
        advance: &(dyn Fn() + Sync),
        interrupt: &AtomicBool,
    ) -> Result<(usize, Vec<u8>), RecordError> {
        let recipe = symbol_recipe(max_bytes);
        let batch = &history.batches()[turn.entry];
        let n_changes = turn.n_changes(history)?;
        let mut paths = trace(self.repository, batch, &turn.locals, max_bytes, advance, interrupt)?;
        let known = match history.symbols(turn.entry, recipe) {
            Some(symbols) => symbols.all(batch)?,
            None => TracedPaths::new(),
        };
        for (path, mut changes) in known {
            changes.retain(|change| !turn.locals.contains(&change.local));
            if !changes.is_empty() {
                let all = paths.entry(path).or_default();
                all.extend(changes);
                all.sort_by_key(|change| change.local);
            }
        }
        Ok((n_changes, symbol_batch_bytes(batch, turn.first, recipe, &paths)))
    }

    /// Publishes the traced definitions of a batch. Returns false if the batch has been replaced meanwhile.
    fn publish_symbols(
        &self,
        sidecar: &Sidecar,
        entry: &HistoryEntry,
        bytes: &[u8],
        interrupt: &AtomicBool,
    ) -> Result<bool, RecordError> {
        let lock = sidecar.lock_unless(self.patience, interrupt)?;
        let Some(mut state) = sidecar.state()? else {
            return Ok(false);
        };
        let Some(current) = state.history.iter_mut().find(|known| *known == entry) else {
            return Ok(false);
        };
        let retired = current
            .symbols
            .replace(store(sidecar, Store::History, SYMBOLS_ENDING, bytes)?);
        pass("symbols.stored", sidecar)?;
        publish_state(sidecar, &lock, &mut state)?;
        if let Some(file) = &retired {
            retire_file(sidecar, Store::History, file);
        }
        Ok(true)
    }
}

fn first_traced(history: &History, entry: usize, recipe: u64) -> u32 {
    let symbols = history.symbols(entry, recipe).map(SymbolBatch::first);
    symbols.unwrap_or_else(|| history.batches()[entry].n_commits())
}

/// Returns the newest commits that are not traced yet, at most `n_commits`.
fn next_turn(history: &History, recipe: u64, n_commits: u32) -> Option<Turn> {
    let entry = (0..history.batches().len())
        .rev()
        .find(|entry| first_traced(history, *entry, recipe) > 0)?;
    let end = first_traced(history, entry, recipe);
    let first = end.saturating_sub(n_commits);
    Some(Turn {
        entry,
        first,
        locals: (first..end).collect(),
        is_again: false,
    })
}

fn n_ahead(history: &History, recipe: u64) -> Result<usize, RecordError> {
    let mut n_changes = 0;
    for (entry, batch) in history.batches().iter().enumerate() {
        let first = first_traced(history, entry, recipe);
        n_changes += n_traced(batch, &|local| local < first)?;
    }
    Ok(n_changes)
}
