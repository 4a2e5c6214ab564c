//! Transfers recorded commits between clones, so that only one clone has to compute the record.
//!
//! Unless the sender is trusted, the record is verified: all commits are read from git again, which is fast, and the
//! traced definitions and changed lines of a random sample are computed again. Messages are not transferred: each clone
//! indexes them itself, before it publishes the commits.

use std::collections::{BTreeSet, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::embed::Embedder;
use crate::git::ObjectError;
use crate::history::{
    BATCH_COMMITS, Batch, Boundary, History, HistoryError, LineChanges, LinesError, Messages, Reachable, Selected,
    SymbolBatch, TracedPaths, n_traced, record_recipe, select, symbol_batch_bytes, symbol_recipe, trace,
};
use crate::model::{CommitId, Ctx, Stage, chain};
use crate::sidecar::{Bytes, FileError, HistoryEntry, LockError, Sidecar, Store};

use super::history::{HISTORY_ENDING, RecordError, Recorder, current_state};
use super::import::{Audit, chosen};
use super::publish::{pass, publish_state, store};
use super::sides::{LINES_ENDING, MESSAGES_ENDING};
use super::sweep::retire_history;
use super::trace::SYMBOLS_ENDING;

/// Maximum number of local commits missing from an imported record that are recorded again on top of it.
const MAX_KEPT_COMMITS: usize = 1024;

/// The record of the commits reachable from some tips, ready for export.
#[derive(Debug)]
pub struct ExportedCommits {
    /// The tips: commits that are not reachable from any other commit of the record, ascending.
    pub tips: Vec<CommitId>,
    /// Identifies the settings that the records were computed with.
    pub recipe: u64,
    symbol_recipe: u64,
    history: History,
    lines: Vec<LineChanges>,
    reached: Reachable,
}

/// An imported record of commits: the records, definitions and lines of each batch.
#[derive(Clone, Debug)]
pub struct ReceivedCommits {
    /// The recipe that the record claims to have.
    pub recipe: u64,
    /// The claimed number of commits of each batch.
    pub sizes: Vec<u32>,
    /// Three files of each batch (records, definitions and lines), in the order of the commit numbers.
    pub batches: Vec<[Bytes; 3]>,
}

/// An imported record of commits that was verified and adds commits to the local record.
#[derive(Debug)]
pub struct VerifiedCommits {
    history: History,
    files: Vec<[Bytes; 3]>,
    /// Encoded batches with local commits that the imported record lacks.
    kept: Vec<Vec<u8>>,
    /// The local record that will be replaced.
    before: Vec<HistoryEntry>,
    /// Number of commits that were fully verified; 0 if the sender is trusted.
    pub n_audited: usize,
}

impl VerifiedCommits {
    /// Number of imported commits.
    pub fn n_commits(&self) -> u32 {
        let theirs = self.history.batches().iter().take(self.files.len());
        theirs.map(|batch| batch.n_commits()).sum()
    }

    /// Returns true if local commits were recorded on top of the imported ones. These are not traced yet.
    pub fn has_kept(&self) -> bool {
        !self.kept.is_empty()
    }
}

/// The reason why a record of commits was not imported.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImportRefusal {
    /// The record was made by another build or with other settings.
    #[error("it was created by another codescout version or with other settings")]
    OtherRecipe,
    /// This clone lacks some of the record's commits.
    #[error("not all of its commits are in this clone")]
    Absent,
    /// This clone lacks objects needed to verify it.
    #[error("cannot check the record against git: this clone is partial")]
    Partial,
    /// The record ends at commits whose parents this clone has, or contains parents that this clone lacks.
    #[error("it ends at different commits than the history of this clone")]
    OtherEnds,
    /// The local record has the same commits or more.
    #[error("this clone has already recorded these commits")]
    Known,
    /// The record lacks commits that are recorded locally, so importing it would lose them.
    #[error("it lacks {n_commits} of the commits recorded here")]
    Fewer {
        /// Number of commits.
        n_commits: usize,
    },
    /// The record does not match the repository or has invalid content.
    #[error("it is damaged: {what}")]
    WrongRecord {
        /// The mismatch.
        what: String,
    },
    /// Another process recorded commits meanwhile, or is recording now.
    #[error("another process changed the record meanwhile")]
    Busy,
}

impl ExportedCommits {
    /// Number of commits.
    pub fn n_commits(&self) -> usize {
        self.reached.len()
    }

    /// Returns whether the record has a commit.
    pub fn has(&self, commit: CommitId) -> bool {
        let number = self.history.number(commit);
        number.is_some_and(|number| self.reached.has(number))
    }

    /// Returns true if a record of everything reachable from `tips` would contain all commits of this record.
    pub fn is_within(&self, tips: &[CommitId]) -> bool {
        let numbers: Vec<u32> = tips.iter().filter_map(|&tip| self.history.number(tip)).collect();
        let reached = self.history.reachable(&numbers);
        let is_reached = |tip: &CommitId| self.history.number(*tip).is_some_and(|number| reached.has(number));
        self.tips.iter().all(is_reached)
    }

    /// Passes each batch to `finished`. The same commits always give the same bytes, regardless of how they were
    /// recorded.
    pub fn each<E: From<HistoryError>>(&self, finished: impl FnMut(Selected) -> Result<(), E>) -> Result<(), E> {
        select(&self.history, &self.lines, &self.reached, self.symbol_recipe, finished)
    }
}

impl Recorder<'_> {
    /// Prepares the record of everything reachable from `tips` for export. Fails unless all of it is recorded, traced
    /// and searchable.
    pub fn give(&self, sidecar: &Sidecar, tips: &[CommitId], max_bytes: u64) -> Result<ExportedCommits, RecordError> {
        let incomplete = |what| RecordError::Incomplete { what };
        if self.repository.is_partial() {
            // Missing blobs give empty line signatures, and a receiver could not detect the gap.
            return Err(incomplete("objects, because it is partial"));
        }
        let state = sidecar.state()?.unwrap_or_default();
        let history = self.sound(sidecar, &state)?.ok_or(incomplete("recorded commits"))?;
        let open_lines = |entry: &HistoryEntry| LineChanges::open(sidecar, entry).ok()?;
        let lines: Option<Vec<LineChanges>> = state.history.iter().map(open_lines).collect();
        let numbers: Option<Vec<u32>> = tips.iter().map(|&tip| history.number(tip)).collect();
        let numbers = numbers.ok_or(incomplete("recorded commits"))?;
        let parents = numbers.iter().flat_map(|&number| history.parents(number)).flatten();
        let behind = history.reachable(&parents.copied().collect::<Vec<_>>());
        let ends = tips.iter().zip(&numbers).filter(|(_, number)| !behind.has(**number));
        let ends: BTreeSet<CommitId> = ends.map(|(tip, _)| *tip).collect();
        let given = ExportedCommits {
            tips: ends.into_iter().collect(),
            recipe: record_recipe(max_bytes),
            symbol_recipe: symbol_recipe(max_bytes),
            reached: history.reachable(&numbers),
            lines: lines.ok_or(incomplete("the lines that commits changed"))?,
            history,
        };
        given.check()?;
        if self.has_late_parents(&given)? {
            Err(incomplete(
                "a complete record: some parents were recorded after their children",
            ))
        } else {
            Ok(given)
        }
    }

    /// Returns true if the record of some commit stops at the limit although a parent of the commit was recorded later.
    /// Other clones record parents first, so their record would differ.
    fn has_late_parents(&self, given: &ExportedCommits) -> Result<bool, RecordError> {
        let history = &given.history;
        let mut reader = self.repository.reader();
        for (number, boundary) in history.boundaries()? {
            if boundary != Boundary::Limit || !given.reached.has(number) {
                continue;
            }
            let parents = reader.commit(history.id(number)?)?.parents;
            let numbers = parents.iter().map(|parent| history.number(*parent));
            let came_since = |(now, then): (Option<u32>, &Option<u32>)| {
                then.is_none() && now.is_some_and(|number| given.reached.has(number))
            };
            if numbers.zip(history.parents(number)).any(came_since) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Verifies that an imported record matches this clone's commits and adds to the local record. `audit` is `None` if
    /// the sender is trusted.
    pub fn examine(
        &self,
        sidecar: &Sidecar,
        offered: &ReceivedCommits,
        audit: Option<Audit>,
        max_bytes: u64,
        ctx: Ctx<'_>,
    ) -> Result<Result<VerifiedCommits, ImportRefusal>, RecordError> {
        self.renew_damaged_state(sidecar, ctx.interrupt)?;
        let state = sidecar.state()?.unwrap_or_default();
        let own = (self.sound(sidecar, &state)?.unwrap_or_default(), state.history);
        match self.examined(own, offered, audit, max_bytes, ctx) {
            // This function reads only the imported record, so the error is not this clone's fault.
            Err(RecordError::WrongRecord { what }) => Ok(Err(ImportRefusal::WrongRecord { what })),
            Err(error) if is_record_fault(&error) => Ok(Err(ImportRefusal::WrongRecord { what: chain(&error) })),
            examined => examined,
        }
    }

    fn examined(
        &self,
        (own, before): (History, Vec<HistoryEntry>),
        offered: &ReceivedCommits,
        audit: Option<Audit>,
        max_bytes: u64,
        ctx: Ctx<'_>,
    ) -> Result<Result<VerifiedCommits, ImportRefusal>, RecordError> {
        if offered.recipe != record_recipe(max_bytes) {
            return Ok(Err(ImportRefusal::OtherRecipe));
        }
        if audit.is_some() && self.repository.is_partial() {
            return Ok(Err(ImportRefusal::Partial));
        }
        let theirs = offered.batches.iter().map(|files| Batch::from_bytes(files[0].clone()));
        let theirs: Vec<Batch> = theirs.collect::<Result<_, _>>()?;
        if !theirs.iter().map(Batch::n_commits).eq(offered.sizes.iter().copied()) {
            return Err(wrong_record("commits differ from the header"));
        }
        let recipe = symbol_recipe(max_bytes);
        // The cheap checks come first.
        let ids = distinct(&theirs)?;
        let is_traced = |number| own.is_traced(number, recipe);
        if ids.iter().all(|&id| own.number(id).is_some_and(is_traced)) {
            return Ok(Err(ImportRefusal::Known));
        }
        let missing = self.missing_from(&ids, &own)?;
        if missing.len() > MAX_KEPT_COMMITS {
            let n_commits = missing.len();
            return Ok(Err(ImportRefusal::Fewer { n_commits }));
        }
        if self.lacks_a_commit(&theirs, ctx.interrupt)? {
            return Ok(Err(ImportRefusal::Absent));
        }
        let mut history = History::default();
        for (batch, files) in theirs.into_iter().zip(&offered.batches) {
            let batch = match audit {
                None => batch,
                Some(_) => self.recompute_batch(&history, &batch, &files[0], ctx)?,
            };
            let symbols = SymbolBatch::from_bytes(files[1].clone())?;
            let lines = LineChanges::from_bytes(files[2].clone())?;
            if (batch.base(), batch.n_commits()) != (lines.base(), lines.n_commits()) {
                return Err(wrong_record("changed lines of other commits"));
            }
            if audit.is_none() {
                // Results of a trusted sender are not recomputed, but a damaged file must not be published.
                batch.verify()?;
                symbols.verify(&batch)?;
                lines.verify(&batch).map_err(|error| wrong_record(&chain(&error)))?;
            }
            history.push(batch)?;
            history.add_symbols(symbols);
        }
        if history.n_traced(recipe) != history.n_commits() {
            return Err(wrong_record("some commits are not traced"));
        }
        if !self.is_current(&history)? {
            return Ok(Err(ImportRefusal::OtherEnds));
        }
        let n_audited = match audit {
            None => 0,
            Some(audit) => self.audit(&history, offered, audit, max_bytes, ctx)?,
        };
        let kept = self.kept(&mut history, &missing, ctx.interrupt)?;
        let n_commits = missing.iter().filter(|id| history.number(**id).is_none()).count();
        if n_commits > 0 {
            return Ok(Err(ImportRefusal::Fewer { n_commits }));
        }
        Ok(Ok(VerifiedCommits {
            history,
            kept,
            files: offered.batches.clone(),
            before,
            n_audited,
        }))
    }

    /// Replaces the local record with the imported one, unless the local one has changed since the verification. The
    /// commits are published with their messages, so that no crash leaves commits that do not rank.
    pub fn take_over(
        &self,
        sidecar: &Sidecar,
        examined: &VerifiedCommits,
        embedder: &dyn Embedder,
        ctx: Ctx<'_>,
    ) -> Result<Result<(), ImportRefusal>, RecordError> {
        let messages = built_messages(&examined.history, embedder, ctx)?;
        let lock = match sidecar.lock_unless(self.patience, ctx.interrupt) {
            Err(LockError::Busy { .. }) => return Ok(Err(ImportRefusal::Busy)),
            lock => lock?,
        };
        let mut state = current_state(sidecar)?;
        if state.history != examined.before {
            return Ok(Err(ImportRefusal::Busy));
        }
        let put = |ending, bytes: &[u8]| store(sidecar, Store::History, ending, bytes);
        let theirs = examined.files.iter();
        let theirs = theirs.map(|[records, symbols, lines]| (&**records, Some((&**symbols, &**lines))));
        let kept = examined.kept.iter().map(|records| (&**records, None));
        let mut entries = Vec::with_capacity(messages.len());
        let batches = examined.history.batches().iter().zip(&messages);
        for ((batch, messages), (records, traced)) in batches.zip(theirs.chain(kept)) {
            let (symbols, lines) = traced.unzip();
            entries.push(HistoryEntry {
                base_commit: batch.base(),
                n_commits: batch.n_commits(),
                records: put(HISTORY_ENDING, records)?,
                symbols: symbols.map(|bytes| put(SYMBOLS_ENDING, bytes)).transpose()?,
                messages: Some(put(MESSAGES_ENDING, messages)?),
                lines: lines.map(|bytes| put(LINES_ENDING, bytes)).transpose()?,
            });
        }
        state.history = entries;
        pass("import.stored", sidecar)?;
        publish_state(sidecar, &lock, &mut state)?;
        retire_history(sidecar, &examined.before);
        Ok(Ok(()))
    }

    /// Returns the local commits that the imported record lacks.
    fn missing_from(&self, theirs: &HashSet<CommitId>, own: &History) -> Result<Vec<CommitId>, RecordError> {
        let ids = (0..own.n_commits()).map(|number| own.id(number));
        let mut ids: Vec<CommitId> = ids.collect::<Result<_, _>>()?;
        ids.retain(|id| !theirs.contains(id));
        Ok(ids)
    }

    /// Records those of `commits` that git still has on top of `history`.
    fn kept(
        &self,
        history: &mut History,
        commits: &[CommitId],
        interrupt: &AtomicBool,
    ) -> Result<Vec<Vec<u8>>, RecordError> {
        let mut reader = self.repository.reader();
        let mut commits = commits.to_vec();
        commits.retain(|commit| reader.commit(*commit).is_ok());
        let plan = self.plan(history, &commits, interrupt)?;
        let mut kept = Vec::new();
        for commits in plan.commits.chunks(BATCH_COMMITS) {
            let records = self.batch(history, commits, &|| {}, interrupt)?.finish();
            history.push(Batch::from_bytes(records.clone())?)?;
            kept.push(records);
        }
        Ok(kept)
    }

    /// Returns true if this clone lacks one of the commits. Checks the oldest commits first, because a shallow clone
    /// lacks those.
    fn lacks_a_commit(&self, batches: &[Batch], interrupt: &AtomicBool) -> Result<bool, RecordError> {
        let mut reader = self.repository.reader();
        for batch in batches {
            for local in 0..batch.n_commits() {
                if interrupt.load(Ordering::Relaxed) {
                    return Err(RecordError::Interrupted);
                }
                match reader.commit(batch.id(local)?) {
                    Err(ObjectError::Missing { .. }) => return Ok(true),
                    found => drop(found?),
                }
            }
        }
        Ok(false)
    }

    /// Records the commits of a batch again. The result must be identical.
    fn recompute_batch(
        &self,
        history: &History,
        theirs: &Batch,
        bytes: &[u8],
        ctx: Ctx<'_>,
    ) -> Result<Batch, RecordError> {
        let commit = |local| Ok((theirs.id(local)?, theirs.boundary(local)?));
        let commits: Vec<_> = (0..theirs.n_commits()).map(commit).collect::<Result<_, FileError>>()?;
        let is_ours = |(_, boundary): &(CommitId, Boundary)| matches!(boundary, Boundary::None | Boundary::Limit);
        if !commits.iter().all(is_ours) {
            return Err(wrong_record("unexpected end of history"));
        }
        ctx.progress.begin(Stage::Recording, commits.len());
        let writer = self.batch(history, &commits, &|| ctx.progress.advance(0), ctx.interrupt)?;
        ctx.progress.end();
        let made = writer.finish();
        if made != bytes {
            return Err(wrong_record("its commits differ from those in git"));
        }
        let batch = Batch::from_bytes(made)?;
        let mut parents = Vec::new();
        for local in 0..batch.n_commits() {
            parents.clear();
            batch.parents_of(local, &mut parents)?;
            if batch.boundary(local)? == Boundary::None && parents.iter().any(Option::is_none) {
                return Err(wrong_record("parents of its commits are missing"));
            }
        }
        Ok(batch)
    }

    /// Recomputes the definitions and lines of a sample of commits, and checks the format of the other commits.
    fn audit(
        &self,
        history: &History,
        offered: &ReceivedCommits,
        audit: Audit,
        max_bytes: u64,
        ctx: Ctx<'_>,
    ) -> Result<usize, RecordError> {
        let numbers = chosen(history.n_commits() as usize, audit);
        let recipe = symbol_recipe(max_bytes);
        let mut reader = self.repository.reader();
        let is_audited = |batch: &Batch, local: u32| numbers.contains(&((batch.base() + local) as usize));
        let mut n_changes = 0;
        for batch in history.batches() {
            n_changes += n_traced(batch, &|local| is_audited(batch, local))?;
        }
        let mut n_audited = 0;
        ctx.progress.begin(Stage::Tracing, n_changes);
        for ((at, batch), files) in history.batches().iter().enumerate().zip(&offered.batches) {
            let locals: BTreeSet<u32> = (0..batch.n_commits())
                .filter(|local| is_audited(batch, *local))
                .collect();
            n_audited += locals.len();
            let symbols = history.symbols(at, recipe).ok_or(wrong_record("definitions differ"))?;
            symbols.check(batch)?;
            let made = trace(
                self.repository,
                batch,
                &locals,
                max_bytes,
                &|| ctx.progress.advance(0),
                ctx.interrupt,
            )?;
            if symbols.of_commits(batch, &locals)? != as_stored(batch, recipe, &made)? {
                return Err(wrong_record("definitions differ"));
            }
            let lines = LineChanges::from_bytes(files[2].clone())?;
            lines.verify(batch)?;
            for &local in &locals {
                if ctx.is_interrupted() {
                    return Err(RecordError::Interrupted);
                }
                if !lines.matches_repository(batch, local, &mut reader)? {
                    return Err(wrong_record("changed lines differ"));
                }
            }
        }
        ctx.progress.end();
        if audit == Audit::All {
            check_identical_bytes(history, offered, recipe)?;
        }
        Ok(n_audited)
    }
}

/// Compares the bytes of a verified record with those that this clone would export, so that everything stored has been
/// recomputed here.
fn check_identical_bytes(history: &History, offered: &ReceivedCommits, recipe: u64) -> Result<(), RecordError> {
    let numbers: Vec<u32> = (0..history.n_commits()).collect();
    let lines = offered
        .batches
        .iter()
        .map(|files| LineChanges::from_bytes(files[2].clone()));
    let lines: Vec<LineChanges> = lines.collect::<Result<_, _>>()?;
    let mut batches = offered.batches.iter();
    select(history, &lines, &history.reachable(&numbers), recipe, |made| {
        let [records, symbols, lines] = batches
            .next()
            .ok_or_else(|| wrong_record("number of batches differs"))?;
        if made.records == **records && made.symbols == **symbols && made.lines == **lines {
            Ok(())
        } else {
            Err(wrong_record("order or unused bytes"))
        }
    })
}

impl ExportedCommits {
    /// Checks that no objects are missing, so that the record is valid in other clones too.
    fn check(&self) -> Result<(), RecordError> {
        let incomplete = |what| Err(RecordError::Incomplete { what });
        for number in (0..self.history.n_commits()).filter(|number| self.reached.has(*number)) {
            if matches!(self.history.boundary(number)?, Boundary::Shallow | Boundary::Missing) {
                return incomplete("older commits (run git fetch --unshallow)");
            }
            if !self.history.is_traced(number, self.symbol_recipe) {
                return incomplete("traced definitions");
            }
        }
        if self.history.unknown().iter().any(|number| self.reached.has(*number)) {
            return incomplete("folders or file versions of older commits");
        }
        let symbols = |at| self.history.symbols(at, self.symbol_recipe);
        let n_unread: u32 = (0..self.history.batches().len())
            .filter_map(symbols)
            .map(SymbolBatch::n_unread)
            .sum();
        match n_unread {
            0 => Ok(()),
            _ => incomplete("older versions of files"),
        }
    }
}

/// Builds the message indexes of all batches.
fn built_messages(history: &History, embedder: &dyn Embedder, ctx: Ctx<'_>) -> Result<Vec<Vec<u8>>, RecordError> {
    ctx.progress.begin(Stage::Messages, history.n_commits() as usize);
    let mut messages = Vec::with_capacity(history.batches().len());
    for batch in history.batches() {
        messages.push(Messages::build(batch, embedder, ctx.interrupt)?);
        (0..batch.n_commits()).for_each(|_| ctx.progress.advance(0));
    }
    ctx.progress.end();
    Ok(messages)
}

/// Writes traced paths to a file in memory and reads them back.
fn as_stored(batch: &Batch, recipe: u64, traced: &TracedPaths) -> Result<TracedPaths, FileError> {
    let bytes = symbol_batch_bytes(batch, 0, recipe, traced);
    SymbolBatch::from_bytes(bytes)?.all(batch)
}

/// Returns true if the error is caused by the imported records, and not by the repository, the disk or an interruption.
fn is_record_fault(error: &RecordError) -> bool {
    match error {
        RecordError::File(error) => error.is_invalid(),
        RecordError::History(error) => !matches!(error, HistoryError::Object(_)),
        RecordError::Lines(error) => matches!(**error, LinesError::File(_)),
        _ => false,
    }
}

/// Returns the commits of all batches. Fails on duplicates, because they would make the cost of verification unbounded.
fn distinct(batches: &[Batch]) -> Result<HashSet<CommitId>, RecordError> {
    let mut ids = HashSet::new();
    for batch in batches {
        for local in 0..batch.n_commits() {
            if !ids.insert(batch.id(local)?) {
                return Err(wrong_record("duplicate commits"));
            }
        }
    }
    Ok(ids)
}

fn wrong_record(what: &str) -> RecordError {
    RecordError::WrongRecord { what: what.to_owned() }
}
