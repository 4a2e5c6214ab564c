//! Makes recorded commits searchable. Each batch of commits gets a file with the terms and vectors of messages and a
//! file with signatures of changed lines.

use std::sync::atomic::AtomicBool;

use crate::embed::Embedder;
use crate::history::{Batch, LineChanges, LinesError, Messages, MessagesError};
use crate::sidecar::{HistoryEntry, Sidecar, Store, StoredFile};

use super::history::{RecordError, Recorder};
use super::publish::{publish_state, store};
use crate::model::{Ctx, Stage};

/// File extensions.
pub(super) const MESSAGES_ENDING: &str = "msg";
pub(super) const LINES_ENDING: &str = "lin";

/// A kind of search file that accompanies the records of a batch.
struct Side<'a> {
    stage: Stage,
    ending: &'static str,
    /// Returns the field of an entry that names the file.
    slot: fn(&mut HistoryEntry) -> &mut Option<StoredFile>,
    /// Returns true if an entry has a usable file of this kind.
    is_there: &'a dyn Fn(&HistoryEntry) -> bool,
    make: &'a dyn Fn(&Batch) -> Result<Vec<u8>, RecordError>,
    /// No further batch is indexed once this many commits are.
    max_commits: usize,
}

impl Recorder<'_> {
    /// Indexes the messages of the batches that lack message vectors of `embedder`, newest first, until `max_commits`
    /// commits are indexed. Returns their number.
    pub fn index_messages(
        &self,
        sidecar: &Sidecar,
        embedder: &dyn Embedder,
        max_commits: usize,
        ctx: Ctx<'_>,
    ) -> Result<u32, RecordError> {
        let profile = embedder.profile().id();
        let is_there = |entry: &HistoryEntry| {
            let messages = Messages::open(sidecar, entry).ok().flatten();
            messages.is_some_and(|messages| messages.profile() == profile)
        };
        let make = |batch: &Batch| {
            let bytes = Messages::build(batch, embedder, ctx.interrupt)?;
            (0..batch.n_commits()).for_each(|_| ctx.progress.advance(0));
            Ok(bytes)
        };
        let side = Side {
            stage: Stage::Messages,
            ending: MESSAGES_ENDING,
            slot: |entry| &mut entry.messages,
            is_there: &is_there,
            make: &make,
            max_commits,
        };
        self.fill(sidecar, &side, ctx)
    }

    /// Indexes the changed lines of every batch that lacks line signatures. Returns the number of commits indexed.
    pub fn index_lines(&self, sidecar: &Sidecar, ctx: Ctx<'_>) -> Result<u32, RecordError> {
        let is_there = |entry: &HistoryEntry| matches!(LineChanges::open(sidecar, entry), Ok(Some(_)));
        let make = |batch: &Batch| {
            Ok(LineChanges::build(
                batch,
                self.repository,
                &|| ctx.progress.advance(0),
                ctx.interrupt,
            )?)
        };
        let side = Side {
            stage: Stage::Lines,
            ending: LINES_ENDING,
            slot: |entry| &mut entry.lines,
            is_there: &is_there,
            make: &make,
            max_commits: usize::MAX,
        };
        self.fill(sidecar, &side, ctx)
    }

    /// Indexes batches one at a time, newest first. An interruption loses only the current batch.
    fn fill(&self, sidecar: &Sidecar, side: &Side<'_>, ctx: Ctx<'_>) -> Result<u32, RecordError> {
        let state = sidecar.state()?.unwrap_or_default();
        let lacking = state.history.into_iter().rev().filter(|entry| !(side.is_there)(entry));
        // Another process may have merged a batch meanwhile. The next run handles the merged batch.
        let opened = |entry: HistoryEntry| Some((Batch::open(sidecar, &entry.records.name).ok()?, entry));
        let mut n_left = side.max_commits;
        let fits = |(batch, _): &(Batch, HistoryEntry)| {
            let is_any_left = n_left > 0;
            n_left = n_left.saturating_sub(batch.n_commits() as usize);
            is_any_left
        };
        let lacking: Vec<(Batch, HistoryEntry)> = lacking.filter_map(opened).take_while(fits).collect();
        if lacking.is_empty() {
            return Ok(0);
        }
        let mut n_commits = 0;
        ctx.progress
            .begin(side.stage, lacking.iter().map(|(batch, _)| side.n_steps(batch)).sum());
        for (batch, entry) in &lacking {
            let bytes = (side.make)(batch)?;
            if ctx.is_interrupted() {
                return Err(RecordError::Interrupted);
            }
            n_commits += self.publish_side(sidecar, side, entry, &bytes, ctx.interrupt)?;
        }
        ctx.progress.end();
        Ok(n_commits)
    }

    /// Adds the file to the state, if its batch is still in the state. Returns the number of commits in the batch.
    fn publish_side(
        &self,
        sidecar: &Sidecar,
        side: &Side<'_>,
        entry: &HistoryEntry,
        bytes: &[u8],
        interrupt: &AtomicBool,
    ) -> Result<u32, RecordError> {
        let lock = sidecar.lock_unless(self.patience, interrupt)?;
        let Some(mut state) = sidecar.state()? else {
            return Ok(0);
        };
        let Some(named) = state.history.iter_mut().find(|named| named.records == entry.records) else {
            return Ok(0);
        };
        let file = store(sidecar, Store::History, side.ending, bytes)?;
        let mut replaced = entry.clone();
        *(side.slot)(named) = Some(file);
        publish_state(sidecar, &lock, &mut state)?;
        // Only this file of the replaced entry becomes unused.
        if let Some(old) = (side.slot)(&mut replaced).take() {
            super::sweep::retire_file(sidecar, Store::History, &old);
        }
        Ok(entry.n_commits)
    }
}

impl Side<'_> {
    fn n_steps(&self, batch: &Batch) -> usize {
        match self.stage {
            Stage::Lines => batch.n_paths() as usize,
            _ => batch.n_commits() as usize,
        }
    }
}

/// Merges the search files of batches into `entry`, provided that all batches have them. The other fields of `entry`
/// must be complete.
pub(super) fn merge_sides(
    sidecar: &Sidecar,
    parts: &[HistoryEntry],
    batch: &Batch,
    entry: &mut HistoryEntry,
) -> Result<(), RecordError> {
    let messages: Option<Vec<Messages>> = parts.iter().map(|part| Messages::open(sidecar, part).ok()?).collect();
    if let Some(messages) = messages
        && let Some(bytes) = Messages::merged(&messages, batch)?
    {
        entry.messages = Some(store(sidecar, Store::History, MESSAGES_ENDING, &bytes)?);
    }
    let lines: Option<Vec<LineChanges>> = parts
        .iter()
        .map(|part| LineChanges::open(sidecar, part).ok()?)
        .collect();
    if let Some(lines) = lines {
        let bytes = LineChanges::merged(&lines);
        entry.lines = Some(store(sidecar, Store::History, LINES_ENDING, &bytes)?);
    }
    Ok(())
}

impl From<MessagesError> for RecordError {
    fn from(error: MessagesError) -> Self {
        match error {
            MessagesError::Embed(crate::embed::EmbedError::Interrupted) => Self::Interrupted,
            error => Self::Messages(Box::new(error)),
        }
    }
}

impl From<LinesError> for RecordError {
    fn from(error: LinesError) -> Self {
        match error {
            LinesError::Interrupted => Self::Interrupted,
            error => Self::Lines(Box::new(error)),
        }
    }
}
