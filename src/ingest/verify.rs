//! Verifies that the stored files are intact, and optionally that they match the blobs.
//!
//! Takes no lock and writes nothing. If the state is replaced meanwhile, verification starts again. Each format's
//! module checks its own files. This module checks relations between files and attributes damage to a file. Repairs are
//! in [`super::repair`].

mod deep;
mod past;

use std::collections::HashSet;
use std::io;

use crate::git::ObjectError;
use crate::history::{Batch, KNOWN_ENDING, LineChanges, Messages, SymbolBatch, SymbolChangeCache};
use crate::index::dense::GraphFile;
use crate::index::{BuildError, RowFile, Segment, SegmentError, Segments};
use crate::model::{Ctx, Stage, TreeId, explain_by};
use crate::precise::FactsFile;
use crate::sidecar::{
    ChangedFile, Entry, EntryKind, FileError, FileErrorKind, GraphEntry, HistoryEntry, PreciseEntry, SegmentEntry,
    Sidecar, State, Store, StoredFile,
};
use crate::snapshot::{EDITS_ENDING, KeptEdits, Manifest, tree_of_file};

use super::parts::PROBE_ENDING;
use super::run::Ingest;

/// Maximum number of attempts if writers keep replacing the state.
const MAX_ATTEMPTS: usize = 4;

/// The thoroughness of a verification.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Depth {
    /// True to extract the blobs again and compare the results.
    pub from_blobs: bool,
    /// Number of blobs and of manifests to compare, evenly spread; `None` for all. Each run picks different ones.
    pub sample: Option<usize>,
}

/// The outcome of a verification.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verification {
    /// Number of files read in full.
    pub n_files: usize,
    /// Bytes of these files.
    pub n_bytes: u64,
    /// Number of segments in the state.
    pub n_segments: usize,
    /// Number of blobs in readable segments.
    pub n_blobs: u64,
    /// Number of documents in readable segments.
    pub n_docs: u64,
    /// Number of manifests of the state's epoch.
    pub n_manifests: usize,
    /// Number of commits in readable batches.
    pub n_commits: u64,
    /// Number of these commits whose messages are not indexed, so that they do not rank files.
    pub n_without_messages: u64,
    /// The damaged files.
    pub findings: Vec<Finding>,
    /// The private notes that are not what codescout wrote. They cannot be made again.
    pub notes: Vec<ChangedFile>,
    /// Unused files of this program: replaced, half-written, set aside, or of an earlier epoch.
    pub leftovers: Vec<Loose>,
    /// Files that this program did not write.
    pub unknown: Vec<Loose>,
    /// The outcome of the comparison with git, if it was requested.
    pub derived: Option<Derived>,
    /// Number of files not read because the time limit was reached.
    pub n_unread: usize,
    /// Trees with a manifest, damaged or not, newest first.
    pub trees: Vec<TreeId>,
}

/// A damaged file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The store of the file; `None` for the sidecar's root.
    pub store: Option<Store>,
    /// The file's name.
    pub name: String,
    /// The problem.
    pub what: String,
}

/// An unused or unknown file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loose {
    /// Path relative to the sidecar's root.
    pub path: String,
    /// Size in bytes.
    pub length: u64,
}

/// The outcome of a comparison with git.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Derived {
    /// Number of blobs extracted again.
    pub n_blobs: u64,
    /// Number of documents whose terms and vectors were computed again for comparison.
    pub n_docs: u64,
    /// Number of blobs that git no longer has. They cannot be checked.
    pub n_absent_blobs: u64,
    /// Number of blobs that were not checked because they are outside the sample or the time limit was reached.
    pub n_skipped_blobs: u64,
    /// Number of manifests compared with their trees.
    pub n_manifests: u64,
    /// Number of manifests whose trees git no longer has.
    pub n_absent_trees: u64,
    /// Number of manifests not checked.
    pub n_skipped_manifests: u64,
    /// Number of recorded commits compared with git.
    pub n_commits: u64,
    /// Number of recorded commits that git no longer has.
    pub n_absent_commits: u64,
    /// Number of recorded commits not checked.
    pub n_skipped_commits: u64,
}

/// An error that prevents a verification.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    /// The state cannot be read, or another build wrote it.
    #[error(transparent)]
    File(#[from] FileError),
    /// The index was built with other settings, so the same blobs would give different results now.
    #[error("the index was built with other settings or another model, so it cannot be compared with the files")]
    OtherSettings,
    /// Building segments for comparison failed.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// A segment built for comparison cannot be opened.
    #[error(transparent)]
    Segment(#[from] SegmentError),
    /// The repository cannot be read.
    #[error(transparent)]
    Object(#[from] ObjectError),
    /// Other processes replaced the state too often.
    #[error("the index keeps changing during verification")]
    Busy,
    /// The caller asked to stop.
    #[error("interrupted")]
    Interrupted,
}

explain_by!(VerifyError: File, Build, Object; Interrupted);

impl Verification {
    /// Returns whether no damage was found.
    pub fn is_sound(&self) -> bool {
        self.findings.is_empty()
    }

    fn blame(&mut self, store: Option<Store>, name: &str, what: impl Into<String>) {
        let is_known = |found: &Finding| (found.store, found.name.as_str()) == (store, name);
        if !self.findings.iter().any(is_known) {
            self.findings.push(Finding {
                store,
                name: name.to_owned(),
                what: what.into(),
            });
        }
    }

    pub(super) fn has_finding(&self, store: Store, name: &str) -> bool {
        let mut findings = self.findings.iter();
        findings.any(|found| (found.store, found.name.as_str()) == (Some(store), name))
    }

    fn add_tree(&mut self, tree: TreeId) {
        // A tree with manifests in several epochs counts once.
        if !self.trees.contains(&tree) {
            self.trees.push(tree);
        }
    }

    fn count(&mut self, n_bytes: usize) {
        self.n_files += 1;
        self.n_bytes += n_bytes as u64;
    }
}

/// The blob numbering that manifests refer to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Numbering {
    Known,
    /// The state that defines the numbering is damaged.
    Lost,
}

impl Ingest<'_> {
    /// Reads every file of the sidecar and reports damage. Writes nothing and takes no lock.
    pub fn verify(&self, depth: Depth, ctx: Ctx<'_>) -> Result<Verification, VerifyError> {
        for _ in 0..MAX_ATTEMPTS {
            let before = self.generation();
            let found = self.verify_once(depth, ctx)?;
            // A file that a writer has removed meanwhile does not count as missing.
            if found.is_sound() || before == self.generation() {
                return Ok(found);
            }
        }
        Err(VerifyError::Busy)
    }

    fn generation(&self) -> Option<([u8; 16], u64)> {
        let state = self.sidecar.state().ok()??;
        Some((state.epoch, state.generation))
    }

    fn verify_once(&self, depth: Depth, ctx: Ctx<'_>) -> Result<Verification, VerifyError> {
        let mut found = Verification::default();
        // Listed before the state is read, because a manifest published later may refer to blobs that this state lacks.
        let manifests = self.names(Store::Snapshots)?;
        self.check_texts(&mut found)?;
        let mut numbering = Numbering::Known;
        let state = match self.sidecar.state() {
            Err(FileError {
                kind: FileErrorKind::Damaged(what),
                ..
            }) => {
                found.blame(None, "state", what);
                numbering = Numbering::Lost;
                None
            }
            Err(error) => return Err(error.into()),
            // A missing state is damage: a writer publishes a state before it stores anything else.
            Ok(None) if self.holds_anything(&manifests)? => {
                found.blame(None, "state", "file is missing");
                numbering = Numbering::Lost;
                None
            }
            Ok(state) => {
                found.n_files += usize::from(state.is_some());
                state
            }
        };
        let state = state.unwrap_or_default();
        ctx.progress
            .begin(Stage::Verifying, state.files().count() + manifests.len());
        let segments = self.check_segments(&state, &mut found, ctx);
        for name in &manifests {
            ctx.progress.advance(0);
            match tree_of_file(name) {
                Some(_) if ctx.is_over() => found.n_unread += 1,
                Some(tree) => self.check_manifest(name, tree, &state, numbering, segments.as_ref(), &mut found),
                None => {}
            }
        }
        self.check_graphs(&state, &mut found, ctx);
        self.check_facts(&state, &mut found, ctx);
        self.check_history(&state, &mut found, ctx);
        ctx.progress.end();
        self.list_unused(&state, &mut found)?;
        if depth.from_blobs && found.is_sound() {
            match &segments {
                Some(segments) => self.derive(depth.sample, &state, segments, &mut found, ctx)?,
                // The time limit was reached.
                None => {
                    found.derived = Some(Derived {
                        n_skipped_blobs: u64::from(state.n_blobs()),
                        n_skipped_manifests: manifests.len() as u64,
                        n_skipped_commits: u64::from(state.n_commits()),
                        ..Derived::default()
                    });
                }
            }
        }
        if ctx.is_interrupted() {
            Err(VerifyError::Interrupted)
        } else {
            Ok(found)
        }
    }

    fn check_texts(&self, found: &mut Verification) -> Result<(), VerifyError> {
        let changed = self.sidecar.changed_texts();
        for name in changed.map_err(|source| self.io_error(None, source))? {
            found.blame(None, name, "its text was changed");
        }
        found.n_files += 2;
        for ChangedFile { path, what } in self
            .sidecar
            .changed_logs()
            .map_err(|source| self.io_error(None, source))?
        {
            found.blame(None, &path, what);
        }
        found.notes = self
            .sidecar
            .changed_notes()
            .map_err(|source| self.io_error(None, source))?;
        self.check_record("pins", self.sidecar.pins(), found);
        self.check_record("gc", self.sidecar.last_collection(), found);
        Ok(())
    }

    fn check_record<T>(&self, name: &str, record: Result<T, FileError>, found: &mut Verification) {
        match record {
            Err(error) => found.blame(None, name, error.to_string()),
            Ok(_) => found.n_files += usize::from(self.sidecar.root().join(name).exists()),
        }
    }

    /// Verifies the segments. Returns them if all can be opened and none is damaged.
    fn check_segments(&self, state: &State, found: &mut Verification, ctx: Ctx<'_>) -> Option<Segments> {
        found.n_segments = state.segments.len();
        for entry in &state.segments {
            let n_findings = found.findings.len();
            for stored in entry.files() {
                self.check_stored(stored, found, ctx, || Ok(()));
            }
            if !ctx.is_over()
                && found.findings.len() == n_findings
                && let Some((store, file, what)) = self.structure_fault(entry, found)
            {
                found.blame(Some(store), &file.name, what);
            }
        }
        if !found.is_sound() || ctx.is_over() {
            return None;
        }
        Segments::open(self.sidecar, state, &self.profile()).ok()
    }

    /// Returns a problem inside a segment whose files have the right checksums, and the file that causes it.
    fn structure_fault<'e>(
        &self,
        entry: &'e SegmentEntry,
        found: &mut Verification,
    ) -> Option<(Store, &'e StoredFile, String)> {
        let fault = match Segment::open(self.sidecar, entry, &self.profile()) {
            Ok(segment) => {
                found.n_blobs += u64::from(segment.artifacts.n_blobs());
                found.n_docs += u64::from(segment.lexical.n_docs());
                segment.verify().err()?
            }
            Err(error) => error,
        };
        let found_in = match &fault {
            SegmentError::Lexical(_) => Some((Store::Lexical, &entry.lexical)),
            SegmentError::File(error) => {
                let is_it = |(store, file): &(Store, &StoredFile)| self.sidecar.path(*store, &file.name) == error.path;
                entry.files().find(is_it)
            }
            SegmentError::Inconsistent { .. } => None,
        };
        let (store, file) = found_in.unwrap_or((Store::Artifacts, &entry.artifacts));
        Some((store, file, fault.to_string()))
    }

    /// Checks the content of a file, and then what is in it. Skips it after the deadline.
    fn check_stored(
        &self,
        (store, file): (Store, &StoredFile),
        found: &mut Verification,
        ctx: Ctx<'_>,
        structure: impl FnOnce() -> Result<(), String>,
    ) {
        ctx.progress.advance(file.length);
        if ctx.is_over() {
            found.n_unread += 1;
            return;
        }
        let checked = check_content(self.sidecar, store, file);
        match checked.and_then(|n_bytes| structure().map(|()| n_bytes)) {
            Ok(n_bytes) => found.count(n_bytes),
            Err(what) => found.blame(Some(store), &file.name, what),
        }
    }

    fn check_graphs(&self, state: &State, found: &mut Verification, ctx: Ctx<'_>) {
        for GraphEntry { file, .. } in &state.graphs {
            self.check_stored((Store::Dense, file), found, ctx, || {
                let graph = GraphFile::open(self.sidecar, &file.name);
                graph
                    .and_then(|graph| graph.verify())
                    .map_err(|error| error.to_string())
            });
        }
    }

    fn check_facts(&self, state: &State, found: &mut Verification, ctx: Ctx<'_>) {
        for PreciseEntry { file, .. } in &state.precise {
            self.check_stored((Store::Artifacts, file), found, ctx, || {
                let facts = FactsFile::open(self.sidecar, file);
                facts
                    .and_then(|facts| facts.verify())
                    .map_err(|error| error.to_string())
            });
        }
    }

    fn check_history(&self, state: &State, found: &mut Verification, ctx: Ctx<'_>) {
        for stored in state.history.iter().flat_map(HistoryEntry::files) {
            self.check_stored(stored, found, ctx, || Ok(()));
        }
        for entry in &state.history {
            let name = &entry.records.name;
            if ctx.is_over() || found.has_finding(Store::History, name) {
                continue;
            }
            let batch = match check_batch(self.sidecar, entry) {
                Ok(batch) => batch,
                Err(what) => {
                    found.blame(Some(Store::History), name, what);
                    continue;
                }
            };
            found.n_commits += u64::from(entry.n_commits);
            if entry.messages.is_none() {
                found.n_without_messages += u64::from(entry.n_commits);
            }
            for (file, what) in check_sides(self.sidecar, entry, &batch) {
                found.blame(Some(Store::History), &file.name, what);
            }
            let symbols = entry
                .symbols
                .as_ref()
                .filter(|file| !found.has_finding(Store::History, &file.name));
            if let Some(file) = symbols
                && let Err(what) = check_symbols(self.sidecar, entry, file)
            {
                found.blame(Some(Store::History), &file.name, what);
            }
        }
    }

    fn check_manifest(
        &self,
        name: &str,
        tree: TreeId,
        state: &State,
        numbering: Numbering,
        segments: Option<&Segments>,
        found: &mut Verification,
    ) {
        let store = Store::Snapshots;
        let manifest = match Manifest::open(self.sidecar, name) {
            Ok(manifest) => manifest,
            // The manifest was removed after it was listed.
            Err(error) if error.is_gone() => return,
            Err(error) => {
                found.blame(Some(store), name, error.to_string());
                found.add_tree(tree);
                return;
            }
        };
        found.count(manifest.n_bytes() as usize);
        let is_current = (manifest.epoch(), manifest.recipe()) == (state.epoch, state.recipe);
        let checked = match segments {
            Some(segments) if is_current => manifest.verify(segments),
            _ => manifest.verify_file(),
        };
        if let Err(error) = checked.and_then(|()| manifest.check_tree(tree)) {
            found.blame(Some(store), name, error.to_string());
        }
        if is_current {
            found.n_manifests += 1;
        }
        if is_current || numbering == Numbering::Lost {
            found.add_tree(tree);
        } else {
            let path = format!("{}/{name}", store.folder());
            let length = manifest.n_bytes();
            found.leftovers.push(Loose { path, length });
        }
    }

    /// Lists unused files.
    fn list_unused(&self, state: &State, found: &mut Verification) -> Result<(), VerifyError> {
        let named: HashSet<(&str, &str)> = state
            .files()
            .map(|(store, file)| (store.folder(), file.name.as_str()))
            .collect();
        for store in Store::ALL {
            for entry in self.entries(Some(store))? {
                let name = entry.name.to_string_lossy();
                let is_needed = named.contains(&(store.folder(), &*name));
                let is_manifest = store == Store::Snapshots && tree_of_file(&name).is_some();
                if !is_needed && !is_manifest {
                    self.check_unlisted(store, &entry, found);
                }
            }
        }
        for entry in self.entries(None)? {
            let name = entry.name.to_string_lossy();
            let (path, length) = (name.to_string(), entry.length);
            match Sidecar::is_own_name(&name) {
                true if name.starts_with(".writing-") => found.leftovers.push(Loose { path, length }),
                true => {}
                false => found.unknown.push(Loose { path, length }),
            }
        }
        let length = self
            .sidecar
            .damaged_bytes()
            .map_err(|source| self.io_error(None, source))?;
        if length > 0 {
            let path = "damaged/".to_owned();
            found.leftovers.push(Loose { path, length });
        }
        Ok(())
    }

    /// Checks a file that no state lists. It is either an unused file of this program, whose content must still match
    /// its name, or an unknown file.
    fn check_unlisted(&self, store: Store, entry: &Entry, found: &mut Verification) {
        let name = entry.name.to_string_lossy();
        let loose = Loose {
            path: format!("{}/{name}", store.folder()),
            length: entry.length,
        };
        let file = StoredFile {
            name: name.to_string(),
            length: entry.length,
        };
        let is_file = entry.kind == EntryKind::File;
        if is_file && name.starts_with(".writing-") {
            found.leftovers.push(loose);
        } else if !is_file || !file.has_plain_name() {
            found.unknown.push(loose);
        } else if name.ends_with(&format!(".{PROBE_ENDING}")) {
            let opened = RowFile::open(self.sidecar, &file.name);
            self.check_kept(store, entry, opened.map(drop), found);
        } else if name.ends_with(&format!(".{EDITS_ENDING}")) {
            self.check_kept(store, entry, KeptEdits::check(self.sidecar, &file.name), found);
        } else if name.ends_with(&format!(".{KNOWN_ENDING}")) {
            self.check_kept(store, entry, SymbolChangeCache::check(self.sidecar, &file.name), found);
        } else {
            match self.sidecar.map(store, &file.name) {
                // The file was removed after it was listed.
                Err(error) if error.kind() == io::ErrorKind::NotFound => return,
                Err(error) => found.blame(Some(store), &file.name, error.to_string()),
                Ok(bytes) => {
                    found.count(bytes.len());
                    if let Err(what) = file.check(&bytes) {
                        found.blame(Some(store), &file.name, format!("{what}; the file is unused"));
                    }
                }
            }
            found.leftovers.push(loose);
        }
    }

    /// Checks a cached file. Its name identifies its subject, not its content.
    fn check_kept(&self, store: Store, entry: &Entry, checked: Result<(), FileError>, found: &mut Verification) {
        found.count(entry.length as usize);
        match checked {
            Err(error) if !error.is_gone() => {
                found.blame(Some(store), &entry.name.to_string_lossy(), error.to_string());
            }
            _ => {}
        }
    }

    /// Returns true if there are manifests or segment files.
    fn holds_anything(&self, manifests: &[String]) -> Result<bool, VerifyError> {
        let is_stored = |entry: &Entry| !entry.name.to_string_lossy().starts_with(".writing-");
        for store in [Store::Artifacts, Store::Lexical, Store::Dense] {
            if self.entries(Some(store))?.iter().any(is_stored) {
                return Ok(true);
            }
        }
        Ok(manifests.iter().any(|name| tree_of_file(name).is_some()))
    }

    fn names(&self, store: Store) -> Result<Vec<String>, VerifyError> {
        let mut entries = self.entries(Some(store))?;
        entries.sort_by_key(|entry| std::cmp::Reverse(entry.modified));
        Ok(entries
            .into_iter()
            .filter_map(|entry| entry.name.into_string().ok())
            .collect())
    }

    fn entries(&self, store: Option<Store>) -> Result<Vec<Entry>, VerifyError> {
        self.sidecar
            .entries(store)
            .map_err(|source| self.io_error(store, source))
    }

    pub(super) fn io_error(&self, store: Option<Store>, source: io::Error) -> VerifyError {
        let path = match store {
            Some(store) => self.sidecar.folder(store),
            None => self.sidecar.root().to_owned(),
        };
        FileError::read(path, source).into()
    }
}

/// Checks the structure of a batch of commits in a file with the right checksum.
fn check_batch(sidecar: &Sidecar, entry: &HistoryEntry) -> Result<Batch, String> {
    let batch = Batch::open(sidecar, &entry.records.name).map_err(|error| error.to_string())?;
    if (batch.base(), batch.n_commits()) != (entry.base_commit, entry.n_commits) {
        return Err("commits differ from the state".to_owned());
    }
    batch.verify().map_err(|error| error.to_string())?;
    Ok(batch)
}

/// Checks the search files of an intact batch. Returns the damaged ones with the problem of each.
fn check_sides<'e>(sidecar: &Sidecar, entry: &'e HistoryEntry, batch: &Batch) -> Vec<(&'e StoredFile, String)> {
    let messages = Messages::open(sidecar, entry).and_then(|found| found.map_or(Ok(()), |found| found.verify(batch)));
    let lines = LineChanges::open(sidecar, entry).and_then(|found| found.map_or(Ok(()), |found| found.verify(batch)));
    let of_messages = entry.messages.iter().zip(messages.err().map(|error| error.to_string()));
    let of_lines = entry.lines.iter().zip(lines.err().map(|error| error.to_string()));
    of_messages.chain(of_lines).collect()
}

fn check_symbols(sidecar: &Sidecar, entry: &HistoryEntry, file: &StoredFile) -> Result<(), String> {
    // Damage to the records is reported elsewhere.
    let Ok(batch) = Batch::open(sidecar, &entry.records.name) else {
        return Ok(());
    };
    let symbols = SymbolBatch::open(sidecar, &file.name).and_then(|symbols| symbols.verify(&batch));
    symbols.map_err(|error| error.to_string())
}

/// Checks that the content of a file matches its name. Returns its size in bytes.
pub(super) fn check_content(sidecar: &Sidecar, store: Store, file: &StoredFile) -> Result<usize, String> {
    match sidecar.map(store, &file.name) {
        Ok(bytes) => file.check(&bytes).map(|()| bytes.len()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err("file is missing".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}
