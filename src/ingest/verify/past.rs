//! Compares the records of commits with git: what each changed, which definitions, and the signatures of its lines.

use std::collections::BTreeSet;
use std::num::NonZero;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::git::Repository;
use crate::history::{
    BATCH_COMMITS, Batch, CollectError, History, LineChanges, SymbolBatch, TracedPaths, collect, symbol_recipe, trace,
    unread,
};
use crate::model::{Ctx, Stage, quoted};
use crate::sidecar::{State, Store};

use super::deep::Sample;
use super::{Derived, Ingest, Verification};

/// The result of a comparison: false if it was not completed. The error describes the difference.
type Compared = Result<bool, String>;

impl Ingest<'_> {
    /// Compares recorded commits with the repository.
    pub(super) fn derive_commits(
        &self,
        sample: Option<usize>,
        state: &State,
        found: &mut Verification,
        derived: &mut Derived,
        ctx: Ctx<'_>,
    ) {
        let Ok(history) = History::open(self.sidecar, &state.history) else {
            derived.n_skipped_commits += u64::from(state.n_commits());
            return;
        };
        let chosen = Sample::of(history.n_commits() as usize, sample);
        ctx.progress.begin(Stage::Verifying, chosen.len());
        let stop = AtomicBool::new(ctx.is_over());
        for (at, (batch, entry)) in history.batches().iter().zip(&state.history).enumerate() {
            let is_chosen = |local: &u32| chosen.contains((batch.base() + local) as usize);
            let past = Past {
                repository: self.repository,
                max_bytes: self.options.max_blob_bytes,
                history: &history,
                batch,
                ctx,
                stop: &stop,
            };
            let chosen = (0..batch.n_commits()).filter(is_chosen).collect();
            let (locals, n_absent) = past.present(chosen);
            let symbols = history.symbols(at, symbol_recipe(past.max_bytes));
            let lines = LineChanges::open(self.sidecar, entry).ok().flatten();
            let compared = [
                (Some(&entry.records), past.compare_records(&locals)),
                (entry.symbols.as_ref(), past.compare_symbols(symbols, &locals)),
                (entry.lines.as_ref(), past.compare_lines(lines.as_ref(), &locals)),
            ];
            let is_complete = compared.iter().all(|(_, compared)| compared != &Ok(false));
            for (file, what) in compared {
                if let (Some(file), Err(what)) = (file, what) {
                    found.blame(Some(Store::History), &file.name, what);
                }
            }
            let n_compared = if is_complete { locals.len() as u64 } else { 0 };
            derived.n_commits += n_compared;
            derived.n_absent_commits += n_absent;
            derived.n_skipped_commits += u64::from(batch.n_commits()) - n_compared - n_absent;
        }
        ctx.progress.end();
    }
}

/// A batch of recorded commits.
struct Past<'a> {
    repository: &'a Repository,
    max_bytes: u64,
    history: &'a History,
    batch: &'a Batch,
    ctx: Ctx<'a>,
    stop: &'a AtomicBool,
}

impl Past<'_> {
    /// Keeps the commits that git still has. Also returns the number of others.
    fn present(&self, mut locals: BTreeSet<u32>) -> (BTreeSet<u32>, u64) {
        let mut reader = self.repository.reader();
        let n_chosen = locals.len();
        locals.retain(|local| self.batch.id(*local).is_ok_and(|id| reader.commit(id).is_ok()));
        let n_absent = (n_chosen - locals.len()) as u64;
        (locals, n_absent)
    }

    /// Sets `stop` when the time is over.
    fn stop_if_over(&self) {
        if self.ctx.is_over() {
            self.stop.store(true, Ordering::Relaxed);
        }
    }

    fn compare_records(&self, locals: &BTreeSet<u32>) -> Compared {
        let stored = self.batch.commits().map_err(in_words)?;
        let n_threads = std::thread::available_parallelism().map_or(1, NonZero::get);
        let locals: Vec<u32> = locals.iter().copied().collect();
        for turn in locals.chunks(BATCH_COMMITS) {
            let commit = |local: &u32| (stored[*local as usize].0.id, stored[*local as usize].0.boundary);
            let commits: Vec<_> = turn.iter().map(commit).collect();
            let advance = || {
                self.ctx.progress.advance(0);
                self.stop_if_over();
            };
            let fresh = match collect(self.repository, &commits, n_threads, &advance, self.stop) {
                Ok(fresh) => fresh,
                // The time is over, or git cannot read an object.
                Err(CollectError::Interrupted | CollectError::Object(_)) => return Ok(false),
            };
            for (local, mut data) in turn.iter().zip(fresh) {
                let (known, parents) = &stored[*local as usize];
                let expected = std::mem::take(&mut data.parents).into_iter();
                let expected: Vec<Option<u32>> = expected.map(|parent| self.history.number(parent)).collect();
                // Without all objects, less is recorded.
                let is_comparable = !known.is_unknown && !data.is_unknown;
                if *parents != expected || is_comparable && *known != data {
                    return Err(self.differs(*local));
                }
            }
        }
        Ok(true)
    }

    fn compare_symbols(&self, symbols: Option<&SymbolBatch>, locals: &BTreeSet<u32>) -> Compared {
        let Some(symbols) = symbols else { return Ok(true) };
        let mut locals = locals.clone();
        locals.retain(|local| *local >= symbols.first());
        for (local, _) in unread(self.batch, symbols).map_err(in_words)? {
            locals.remove(&local);
        }
        let (repository, advance) = (self.repository, || self.stop_if_over());
        let Ok(fresh) = trace(repository, self.batch, &locals, self.max_bytes, &advance, self.stop) else {
            // The time is over, or git cannot read an object.
            return Ok(false);
        };
        let known = only(symbols.all(self.batch).map_err(in_words)?, &locals);
        let fresh = only(fresh, &locals);
        let differs = |path: &&u32| known.get(path) != fresh.get(path);
        match known.keys().chain(fresh.keys()).find(differs) {
            Some(path) => {
                let path = quoted(self.batch.path(*path).unwrap_or_default());
                Err(format!("does not match git: definitions of {path}"))
            }
            None => Ok(true),
        }
    }

    fn compare_lines(&self, lines: Option<&LineChanges>, locals: &BTreeSet<u32>) -> Compared {
        let Some(lines) = lines else { return Ok(true) };
        let mut reader = self.repository.reader();
        for local in locals {
            self.stop_if_over();
            if self.stop.load(Ordering::Relaxed) {
                return Ok(false);
            }
            match lines.matches_repository(self.batch, *local, &mut reader) {
                Ok(true) => {}
                Ok(false) => return Err(self.differs(*local)),
                Err(_) => return Ok(false),
            }
        }
        Ok(true)
    }

    fn differs(&self, local: u32) -> String {
        let id = self.batch.id(local).map(|id| id.to_string()).unwrap_or_default();
        format!("does not match git: commit {id}")
    }
}

fn in_words(error: impl std::error::Error) -> String {
    error.to_string()
}

/// Keeps the changes of some commits.
fn only(mut paths: TracedPaths, locals: &BTreeSet<u32>) -> TracedPaths {
    for changes in paths.values_mut() {
        changes.retain(|change| locals.contains(&change.local));
    }
    paths.retain(|_, changes| !changes.is_empty());
    paths
}
