//! Compares the two versions of each file.

use std::sync::Arc;

use clap::ValueEnum;

use super::files::{FileOut, Hunk, file_out, symbol_out};
use super::{Diff, DiffBy, DiffEvent, DiffWith};
use crate::artifact::{ArtifactKey, Extractor};
use crate::embed::StaticModel;
use crate::extract::{Options, is_text, lang_of_path};
use crate::git::{FileMode, WorkTreeReader, diff_lines, unified_diff};
use crate::history::{Change, Entry, FilePair, FileShapes, SymbolDelta, submodule_text, symbol_deltas};
use crate::index::Segments;
use crate::model::{BlobId, RepoPath};
use crate::ops::ask::Ask;
use crate::ops::drift::DriftOut;
use crate::session::{OpError, Result};

pub(super) struct Comparison<'a> {
    diff: &'a Diff,
    ask: &'a Ask<'a>,
    /// True if the answer includes changed lines.
    has_text: bool,
    /// True if definitions are compared.
    has_symbols: bool,
    /// True if each definition has its changed lines.
    pub(super) has_diffs: bool,
    /// The model that measures drift, if it was requested.
    model: Option<&'a StaticModel>,
    disk: Option<WorkTreeReader>,
    /// The definitions that are known.
    indexed: Option<Segments>,
    extractor: Extractor,
}

impl<'a> Comparison<'a> {
    pub(super) fn new(diff: &'a Diff, ask: &'a Ask<'a>) -> Self {
        let has_symbols = diff.by == DiffBy::Symbol || diff.needs_links() || diff.is_narrow();
        Self {
            ask,
            has_text: diff.by == DiffBy::Text,
            has_symbols,
            indexed: has_symbols.then(|| ask.session.workspace.any_segments()).flatten(),
            diff,
            has_diffs: false,
            model: (diff.with.contains(&DiffWith::Drift)).then(|| ask.session.workspace.models.own()),
            disk: None,
            extractor: Extractor::new(Options::default()),
        }
    }

    pub(super) fn files(&mut self, changes: &[Change], is_read: bool) -> Result<Vec<FileOut>> {
        let (mut files, mut pairs) = (Vec::with_capacity(changes.len()), Vec::new());
        for change in changes {
            if self.ask.call.ctx.is_interrupted() {
                return Err(OpError::interrupted());
            }
            let mut file = file_out(change);
            if is_read {
                pairs.push(self.compare(change, &mut file)?);
            }
            files.push(file);
        }
        if self.has_symbols {
            files.iter_mut().for_each(|file| file.symbols = Some(Vec::new()));
            for delta in symbol_deltas(&pairs)
                .iter()
                .filter(|delta| self.is_wanted(delta, &pairs))
            {
                let of_file = files.get_mut(delta.pair).and_then(|file| file.symbols.as_mut());
                if let Some(symbols) = of_file {
                    let mut symbol = symbol_out(delta);
                    if let (Some(model), Some((old, new))) = (self.model, delta.versions(&pairs)) {
                        symbol.drift = Some(DriftOut::between(model, &old.text(), &new.text()));
                    }
                    if self.has_diffs {
                        symbol.diff = Some(diff_of(delta, &pairs));
                    }
                    symbols.push(symbol);
                }
            }
        }
        if self.diff.is_narrow() {
            files.retain(|file| file.is_unread || file.symbols.as_ref().is_some_and(|symbols| !symbols.is_empty()));
            files.iter_mut().for_each(|file| file.hunks.clear());
        }
        Ok(files)
    }

    /// Returns true if the answer includes a changed definition.
    fn is_wanted(&self, delta: &SymbolDelta, pairs: &[FilePair]) -> bool {
        let names = delta.events.names();
        let is_event = |event: &DiffEvent| {
            let value = event.to_possible_value();
            value.is_some_and(|value| names.contains(&value.get_name()))
        };
        (self.diff.only.is_empty() || self.diff.only.iter().any(is_event))
            && (!self.diff.public || delta.is_public(pairs))
    }

    fn compare(&mut self, change: &Change, file: &mut FileOut) -> Result<FilePair> {
        if self.model.is_some() && change.old.is_some() && change.new.is_some() {
            file.drift = Some(None);
        }
        let old_path = change.origin.as_ref().map_or(&change.path, |origin| &origin.path);
        let old = self.read(old_path, change.old)?;
        let new = self.read(&change.path, change.new)?;
        let (old, new) = match (old, new) {
            (Some(old), Some(new)) => (old, new),
            (old, new) => {
                let versions = [(old_path, change.old, old), (&change.path, change.new, new)];
                (file.old_bytes, file.new_bytes) = self.sizes(versions)?;
                return Ok(FilePair::default());
            }
        };
        file.is_unread = false;
        if !is_text(&old) || !is_text(&new) {
            return Ok(FilePair::default());
        }
        let (mut n_added, mut n_removed) = (0, 0);
        for hunk in diff_lines(&old, &new) {
            file.lines.push(if hunk.new.is_empty() {
                (hunk.new.start.max(1), hunk.new.start + 1)
            } else {
                (hunk.new.start + 1, hunk.new.end)
            });
            let lines = |lines: &std::ops::Range<u32>| (!lines.is_empty()).then(|| (lines.start + 1, lines.end));
            file.hunks.push(Hunk {
                old: lines(&hunk.old),
                new: lines(&hunk.new),
            });
            n_added += hunk.new.len() as u32;
            n_removed += hunk.old.len() as u32;
        }
        (file.added_lines, file.removed_lines) = (Some(n_added), Some(n_removed));
        if self.has_text {
            file.diff = Some(unified_diff(&old, &new, (1, 1)));
        }
        if let Some((model, drift)) = self.model.zip(file.drift.as_mut()) {
            *drift = DriftOut::between(model, &old, &new);
        }
        if !self.has_symbols {
            return Ok(FilePair::default());
        }
        Ok(FilePair {
            old: change.old.map(|entry| self.shapes(old_path, entry, old)),
            new: change.new.map(|entry| self.shapes(&change.path, entry, new)),
        })
    }

    /// Returns the sizes of two versions of a file, if one of them is too large to be read.
    fn sizes(&mut self, versions: [Version<'_>; 2]) -> Result<(Option<u64>, Option<u64>)> {
        let (mut sizes, mut is_excessive) = ([None; 2], false);
        for ((path, entry, content), size) in versions.into_iter().zip(&mut sizes) {
            let Some(entry) = entry else { continue };
            *size = match content {
                Some(ref bytes) => Some(bytes.len() as u64),
                None => self
                    .ask
                    .session
                    .workspace
                    .records()
                    .excessive_size(path, entry, &mut self.disk)?,
            };
            is_excessive |= content.is_none() && size.is_some();
        }
        let [old, new] = sizes.map(|size| size.filter(|_| is_excessive));
        Ok((old, new))
    }

    /// Returns a version of a file with its definitions, which are parsed unless they are indexed.
    fn shapes(&mut self, path: &RepoPath, entry: Entry, bytes: Vec<u8>) -> (RepoPath, FileShapes) {
        let key = ArtifactKey {
            blob: BlobId(entry.oid),
            lang: lang_of_path(path),
        };
        let known = self
            .indexed
            .as_ref()
            .and_then(|indexed| indexed.extraction(indexed.find_blob(key)?));
        let bytes = Arc::new(bytes);
        let known = known.and_then(|known| FileShapes::indexed(path, Arc::clone(&bytes), known.ok()?));
        let shapes = known.unwrap_or_else(|| FileShapes::of(&mut self.extractor, path, bytes));
        (path.clone(), shapes)
    }

    /// Returns the content of a file. It is empty if the file does not exist, and `None` if the file cannot be read.
    fn read(&mut self, path: &RepoPath, entry: Option<Entry>) -> Result<Option<Vec<u8>>> {
        match entry {
            None => Ok(Some(Vec::new())),
            Some(entry) if entry.mode == FileMode::Submodule => Ok(Some(submodule_text(entry.oid))),
            Some(entry) => self
                .ask
                .session
                .workspace
                .records()
                .content(path, entry, &mut self.disk),
        }
    }
}

/// A version of a file: its path, its entry, and its content if it was read.
type Version<'a> = (&'a RepoPath, Option<Entry>, Option<Vec<u8>>);

/// Returns the changed lines of a definition.
fn diff_of(delta: &SymbolDelta, pairs: &[FilePair]) -> String {
    let (old, new) = delta.files(pairs);
    let (old_first, old) = text_of(old, delta.old_lines).unwrap_or((1, &[]));
    let (new_first, new) = text_of(new, delta.new_lines).unwrap_or((1, &[]));
    unified_diff(old, new, (old_first, new_first))
}

fn text_of(file: Option<&FileShapes>, lines: Option<(u32, u32)>) -> Option<(u32, &[u8])> {
    let (file, (first, last)) = file.zip(lines)?;
    Some((first, file.text_of_lines(first, last)?))
}
