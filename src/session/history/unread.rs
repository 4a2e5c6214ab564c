//! The objects that indexing or tracing could not read.

use std::collections::HashSet;

use super::Records;
use crate::history::unread;
use crate::ingest::Target;
use crate::model::{Oid, RepoPath};
use crate::session::error::Result;
use crate::snapshot::missing_blobs;

/// Maximum number of commits with incomplete changes for which missing objects are listed.
const MAX_UNKNOWN: usize = 1_000;

impl Records<'_> {
    /// Returns the objects that indexing or tracing needed but could not read, each once: blobs of HEAD with their
    /// paths, and file versions in recorded commits. They may have become readable since.
    pub(crate) fn unread_objects(self) -> Result<Vec<(Option<RepoPath>, Oid)>> {
        let mut found = Vec::new();
        if let Some(target) = self.workspace.target("HEAD")? {
            let files = self
                .workspace
                .stored_tree(target.tree)
                .map(|layers| missing_blobs(&layers));
            found.extend(files.into_iter().flatten().map(|(path, blob)| (Some(path), blob.0)));
        }
        let (history, _) = self.stored_history()?.unwrap_or_default();
        for (at, batch) in history.batches().iter().enumerate() {
            let symbols = history.symbols(at, self.symbol_recipe());
            if let Some(symbols) = symbols.filter(|symbols| symbols.n_unread() > 0) {
                let versions = unread(batch, symbols)?.into_iter().flat_map(|(_, versions)| versions);
                found.extend(versions.map(|oid| (None, oid)));
            }
        }
        for number in history.unknown().into_iter().take(MAX_UNKNOWN) {
            let changes = history.changes_at(number)?.into_iter();
            let compared = changes.filter(|change| change.old.is_none() || change.new.is_none());
            found.extend(compared.filter_map(|change| Some((None, change.old.or(change.new)?.oid))));
        }
        let mut seen = HashSet::new();
        found.retain(|(_, oid)| seen.insert(*oid));
        Ok(found)
    }

    /// Returns a note about files of a revision that were not searched because their blobs cannot be read. `None` if
    /// there are no such files.
    pub(crate) fn unread_files(self, target: Option<Target>) -> Option<String> {
        let layers = self.workspace.stored_tree(target?.tree)?;
        let n_files = Some(missing_blobs(&layers).len()).filter(|&n_files| n_files > 0)?;
        Some(format!(
            "{n_files} files of this revision are missing or damaged in git, so their definitions are unknown; {}",
            self.how_to_get_objects()
        ))
    }

    /// Returns advice for missing or damaged objects.
    pub(crate) fn how_to_get_objects(self) -> &'static str {
        if self.workspace.repository.is_partial() {
            "run git fetch --refetch --no-filter, then codescout index"
        } else {
            "run codescout doctor for a fix"
        }
    }
}
