//! Imports the facts of indexers, and reads them for questions about relations.

use std::sync::Arc;

use super::call::CallCtx;
use super::error::{OpError, Result};
use super::open::{SeenView, Session};
use super::update::{Event, Steps};
use super::workspace::Workspace;
use crate::ingest::{ImportedFacts, Target};
use crate::link::Links;
use crate::model::Ctx;
use crate::precise::{FactsFile, Index};
use crate::sidecar::{FileError, PreciseEntry, Sidecar};

/// The facts of indexers that a session has read.
#[derive(Debug, Default)]
pub(super) struct ReadFacts {
    entries: Vec<PreciseEntry>,
    files: Arc<Vec<FactsFile>>,
    /// Facts that cannot be read.
    notes: Vec<String>,
}

impl Workspace {
    /// Imports what an index says about the files of a revision, after indexing the revision. Paths in the index are
    /// relative to the root or to the caller's directory.
    pub(crate) fn import_facts(
        &self,
        index: &Index<'_>,
        reference: &str,
        ctx: Ctx<'_>,
    ) -> Result<(Target, ImportedFacts)> {
        let Some((target, outcome)) = self.ingest_revision(reference, ctx)? else {
            return Err(OpError::new(
                "there is no commit yet",
                "commit the files that the index describes",
            ));
        };
        if outcome.interrupted {
            return Err(OpError::interrupted());
        }
        let (tips, call) = (target.commit.as_slice(), CallCtx::unlimited(ctx));
        self.finish_update(tips, &[], Steps::default(), &call, &mut Event::log)?;
        let sidecar = self.storage.open_or_create(ctx.interrupt)?;
        let folders = ["", self.here()];
        let imported = self.writer(&sidecar).import_facts(index, target.tree, &folders, ctx)?;
        Ok((target, imported))
    }
}

impl Session {
    /// Returns what is known about the links of a view.
    pub(crate) fn links(&self, seen: &SeenView) -> Arc<Links> {
        seen.links(&self.workspace.repository, self.facts().0)
    }

    /// Returns the facts that are stored, after those that a server has just said.
    pub(crate) fn facts_with(&self, said: FactsFile) -> Arc<Vec<FactsFile>> {
        let mut files = vec![said];
        if let Ok(Some((sidecar, Some(state)))) = self.workspace.storage.open_with_state() {
            files.extend(ReadFacts::read_files(&sidecar, &state.precise).0);
        }
        Arc::new(files)
    }

    /// Returns what is known about the links of a view, with other facts than those that are stored.
    pub(crate) fn links_with(&self, seen: &SeenView, facts: &Arc<Vec<FactsFile>>) -> Arc<Links> {
        seen.links(&self.workspace.repository, Arc::clone(facts))
    }

    /// Returns the facts of indexers that are stored now, and notes about those that cannot be read.
    pub(crate) fn facts(&self) -> (Arc<Vec<FactsFile>>, Vec<String>) {
        let mut read = self.precise.lock();
        match self.workspace.storage.open_with_state() {
            Ok(Some((sidecar, state))) => {
                let entries = state.map(|state| state.precise).unwrap_or_default();
                if entries != read.entries {
                    *read = ReadFacts::read(&sidecar, entries);
                }
            }
            Ok(None) => *read = ReadFacts::default(),
            // The view was opened nevertheless; its answers do not need the facts.
            Err(error) => read.notes = vec![format!("facts of compilers are not used: {error}")],
        }
        (Arc::clone(&read.files), read.notes.clone())
    }
}

impl ReadFacts {
    fn read(sidecar: &Sidecar, entries: Vec<PreciseEntry>) -> Self {
        let (files, notes) = Self::read_files(sidecar, &entries);
        Self {
            entries,
            files: Arc::new(files),
            notes,
        }
    }

    fn read_files(sidecar: &Sidecar, entries: &[PreciseEntry]) -> (Vec<FactsFile>, Vec<String>) {
        let (mut files, mut notes) = (Vec::new(), Vec::new());
        // The newest answers first.
        for entry in entries.iter().rev() {
            match FactsFile::open(sidecar, &entry.file) {
                Ok(file) => files.push(file),
                Err(error) => notes.push(unused(entry, &error)),
            }
        }
        (files, notes)
    }
}

fn unused(entry: &PreciseEntry, error: &FileError) -> String {
    format!("the facts of {} are not used: {error}", entry.tool)
}
