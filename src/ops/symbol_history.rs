//! The history of one definition.

use serde::Serialize;

use super::sink::{Sink, Style};
use super::target::Targets;
use crate::artifact::Extractor;
use crate::extract::Options;
use crate::git::{BlobContent, ObjectReader, unified_diff};
use crate::history::{
    Entry, FilePair, FileShapes, SymbolChange, SymbolDelta, SymbolEvents, SymbolHistory, SymbolKey, SymbolVersion,
    change_between, symbol_deltas,
};
use crate::model::{BlobId, RepoPath};
use crate::session::Result;

/// Maximum number of changed files in which the origin of a moved definition is searched. The same limit applies to
/// commits.
const MAX_MOVE_FILES: usize = 100;

/// The change that a commit made to a definition.
#[derive(Debug, Serialize)]
pub(crate) struct SymbolChangeOut {
    pub(crate) id: String,
    pub(crate) events: Vec<&'static str>,
    pub(crate) from: Option<String>,
    pub(crate) confidence: f64,
    pub(crate) old: Option<VersionOut>,
    pub(crate) new: Option<VersionOut>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) diff: Option<String>,
}

impl SymbolChangeOut {
    /// Writes the change as text.
    pub(crate) fn render(&self, out: &mut dyn Sink) {
        out.plain(&format!("    {} ", self.events.join(", ")));
        out.span(Style::Path, &self.id);
        if let Some(version) = self.new.as_ref().or(self.old.as_ref()) {
            out.plain(&format!(":{}-{}", version.start_line, version.end_line));
        }
        if let Some(from) = &self.from {
            out.plain(" from ");
            out.span(Style::Path, from);
        }
        if self.confidence < 0.995 && self.from.is_some() {
            out.span(Style::Fact, &format!(" ({:.0} % sure)", self.confidence * 100.0));
        }
        out.end();
        out.diff(self.diff.as_deref().unwrap_or_default());
    }
}

/// The location of a definition in a version of its file.
#[derive(Debug, Serialize)]
pub(crate) struct VersionOut {
    pub(crate) blob: String,
    pub(crate) start_line: u32,
    pub(crate) end_line: u32,
}

/// The uncommitted change of a definition.
pub(crate) struct OwnChange {
    /// The change; `None` if the definition is unchanged.
    pub(crate) change: Option<SymbolChangeOut>,
    /// The definition's key in the commit.
    pub(crate) committed: SymbolKey,
    /// True if the uncommitted version of the file contains the definition.
    pub(crate) is_there: bool,
}

pub(crate) struct SymbolQuestion<'a> {
    pub(crate) targets: &'a Targets<'a>,
    pub(crate) has_diff: bool,
}

impl SymbolQuestion<'_> {
    pub(crate) fn life(&self, key: &SymbolKey) -> Result<SymbolHistory> {
        let Some(tip) = self.targets.opened.tip else {
            return Ok(SymbolHistory::default());
        };
        let mut reader = self.targets.workspace.repository.reader();
        self.targets.lives(&mut reader, |lives| lives.of(tip, key))
    }

    /// Returns the uncommitted change of a definition. `None` if its file is unchanged.
    pub(crate) fn uncommitted(&self, key: &SymbolKey) -> Result<Option<OwnChange>> {
        let Some(changed) = self.targets.uncommitted.iter().find(|change| change.path == key.path) else {
            return Ok(None);
        };
        let mut extractor = Extractor::new(Options::default());
        let mut file = |path: &RepoPath, bytes: Vec<u8>| FileShapes::of(&mut extractor, path, bytes);
        let new = self.targets.content(&key.path)?.map(|bytes| file(&key.path, bytes));
        let old_path = changed.origin.clone().unwrap_or_else(|| key.path.clone());
        let (mut entry, mut old) = self.committed(&old_path)?;
        let mut found = change_between(old.as_ref().map(|file| (&old_path, file)), new.as_ref(), key);
        if found.as_ref().is_some_and(|(events, ..)| events.added) {
            found = self.moved_here(key)?.or(found);
        }
        let is_there = new.as_ref().is_some_and(|file| file.find(&key.name, key.nth).is_some());
        let Some((events, from, confidence)) = found else {
            return Ok(Some(OwnChange {
                change: None,
                committed: key.clone(),
                is_there,
            }));
        };
        let committed = from.clone().unwrap_or_else(|| key.clone());
        if committed.path != old_path {
            (entry, old) = self.committed(&committed.path)?;
        }
        let version = |file: &Option<FileShapes>, key: &SymbolKey, blob: Option<String>| {
            let file = file.as_ref()?;
            let range = file.find(&key.name, key.nth)?.range;
            let (start_line, end_line) = file.lines_of(range);
            let out = VersionOut {
                blob: blob?,
                start_line,
                end_line,
            };
            Some((out, text_of(&file.bytes, start_line, end_line)))
        };
        let old = version(&old, &committed, entry.map(|entry| entry.oid.to_string()));
        let new = version(&new, key, changed.new.map(|entry| entry.oid.to_string()));
        let diff = self.has_diff.then(|| patch(old.as_ref(), new.as_ref()));
        let change = SymbolChangeOut {
            id: key.id(),
            events: events.names(),
            from: from.as_ref().map(SymbolKey::id),
            confidence,
            old: old.map(|(version, _)| version),
            new: new.map(|(version, _)| version),
            diff,
        };
        Ok(Some(OwnChange {
            change: Some(change).filter(|_| !events.is_empty()),
            committed,
            is_there,
        }))
    }

    /// Returns the entry at a path in the commit, and the definitions of that file.
    fn committed(&self, path: &RepoPath) -> Result<(Option<Entry>, Option<FileShapes>)> {
        let Some(entry) = self.targets.committed_entry(path)? else {
            return Ok((None, None));
        };
        let bytes = self.targets.workspace.records().content(path, entry, &mut None)?;
        let file = bytes.map(|bytes| FileShapes::of(&mut Extractor::new(Options::default()), path, bytes));
        Ok((Some(entry), file))
    }

    /// Finds the origin of a new definition: a definition that uncommitted changes removed from another file.
    fn moved_here(&self, key: &SymbolKey) -> Result<Option<(SymbolEvents, Option<SymbolKey>, f64)>> {
        let mut deltas = self.own_deltas()?.into_iter();
        let moved = deltas.find(|delta| delta.key == *key && delta.from.is_some());
        Ok(moved.map(|delta| (delta.events, delta.from, delta.confidence)))
    }

    /// Returns the uncommitted changes of all definitions; none if many files are changed.
    pub(crate) fn own_deltas(&self) -> Result<Vec<SymbolDelta>> {
        let changes = self.targets.uncommitted;
        if changes.len() > MAX_MOVE_FILES {
            return Ok(Vec::new());
        }
        let is_renamed = |path: &RepoPath| changes.iter().any(|change| change.origin.as_ref() == Some(path));
        let mut pairs = Vec::new();
        for change in changes {
            if change.new.is_none() && is_renamed(&change.path) {
                continue;
            }
            let old_path = change.origin.as_ref().unwrap_or(&change.path);
            let (old, new) = (self.committed(old_path)?.1, self.targets.shapes(&change.path)?);
            pairs.push(FilePair {
                old: old.map(|file| (old_path.clone(), file)),
                new: new.map(|file| (change.path.clone(), file)),
            });
        }
        Ok(symbol_deltas(&pairs))
    }

    pub(crate) fn change_out(&self, change: &SymbolChange, reader: &mut ObjectReader) -> Result<SymbolChangeOut> {
        let diff = if self.has_diff {
            let old = self.version_text(change.old.as_ref(), reader)?;
            let new = self.version_text(change.new.as_ref(), reader)?;
            Some(patch(old.as_ref(), new.as_ref()))
        } else {
            None
        };
        Ok(SymbolChangeOut {
            id: change.key.id(),
            events: change.events.names(),
            from: change.from.as_ref().map(SymbolKey::id),
            confidence: change.confidence,
            old: change.old.as_ref().map(version_out),
            new: change.new.as_ref().map(version_out),
            diff,
        })
    }

    fn version_text(
        &self,
        version: Option<&SymbolVersion>,
        reader: &mut ObjectReader,
    ) -> Result<Option<(VersionOut, Vec<u8>)>> {
        let Some(version) = version else { return Ok(None) };
        let max_bytes = self.targets.workspace.build_options().max_blob_bytes;
        Ok(match reader.blob(BlobId(version.oid), max_bytes)? {
            BlobContent::Content(bytes) => {
                let text = text_of(&bytes, version.start_line, version.end_line);
                Some((version_out(version), text))
            }
            _ => None,
        })
    }
}

fn version_out(version: &SymbolVersion) -> VersionOut {
    VersionOut {
        blob: version.oid.to_string(),
        start_line: version.start_line,
        end_line: version.end_line,
    }
}

/// Returns the lines from `first` to `last`, which are 1-based and inclusive.
pub(super) fn text_of(bytes: &[u8], first: u32, last: u32) -> Vec<u8> {
    let lines = bytes.split_inclusive(|byte| *byte == b'\n');
    let wanted = lines.skip(first as usize - 1).take((last + 1 - first) as usize);
    wanted.flatten().copied().collect()
}

fn patch(old: Option<&(VersionOut, Vec<u8>)>, new: Option<&(VersionOut, Vec<u8>)>) -> String {
    let text = |side: Option<&(VersionOut, Vec<u8>)>| side.map_or_else(Vec::new, |(_, text)| text.clone());
    let first = |side: Option<&(VersionOut, Vec<u8>)>| side.map_or(1, |(version, _)| version.start_line);
    unified_diff(&text(old), &text(new), (first(old), first(new)))
}
