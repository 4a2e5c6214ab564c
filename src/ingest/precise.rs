//! Imports what a compiler says about the files of a tree, and drops the facts of blobs that are gone.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::artifact::ArtifactKey;
use crate::git::{BlobContent, FileMode, ObjectError};
use crate::model::{BlobId, Ctx, Lang, RepoPath, Stage, TreeId, explain_by};
use crate::precise::{Document, FactsFile, FactsWriter, Index, Mismatch, ScipError, check, fits};
use crate::sidecar::{Bytes, FileError, LockError, PreciseEntry, Sidecar, State, Store, WriterLock};

use super::publish::{pass, publish_state, store};
use super::run::Ingest;
use super::sweep::retire_file;

/// Limit on the size of a blob in bytes.
const MAX_BLOB_BYTES: u64 = 64 << 20;
/// Number of documents that are listed for each reason to refuse them.
const MAX_LISTED: usize = 10;
/// Limit on the indexers of which facts are stored after a bundle was imported. Each makes every question slower.
const MAX_INDEXERS: usize = 16;

/// The reason why a document is not imported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Refusal {
    /// The tree has no file with its path.
    NoFile,
    /// The text of the file has other names in its places.
    OtherText,
    /// It has places outside of the file.
    OutsideFile,
    /// The blob is missing, damaged or too large.
    Unreadable,
    /// The index has another document of the same path.
    Repeated,
}

impl Refusal {
    /// Describes the reason.
    pub fn to_text(self) -> &'static str {
        match self {
            Self::NoFile => "no such file",
            Self::OtherText => "other text",
            Self::OutsideFile => "places outside of the file",
            Self::Unreadable => "unreadable",
            Self::Repeated => "listed twice",
        }
    }
}

/// The documents that are not imported for one reason.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refused {
    /// Number of documents.
    pub n: usize,
    /// The paths of the first ones.
    pub paths: Vec<RepoPath>,
}

/// The outcome of an import.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImportedFacts {
    /// The name of the indexer.
    pub tool: String,
    /// The version of the indexer.
    pub version: String,
    /// The folder that the paths of the index are relative to; empty for the root.
    pub folder: String,
    /// Number of documents in the index.
    pub n_documents: usize,
    /// Number of documents whose facts are stored.
    pub n_joined: usize,
    /// Number of names in these documents that are stored.
    pub n_names: usize,
    /// Number of names with local symbols in these documents.
    pub n_local: usize,
    /// Number of other occurrences in these documents that are not stored.
    pub n_left_out: usize,
    /// The other documents.
    pub refused: BTreeMap<Refusal, Refused>,
    /// Number of documents of the indexer that are stored now, with those of earlier imports.
    pub n_stored: u32,
    /// Size of their file in bytes.
    pub n_bytes: u64,
    /// Duration of the import.
    pub elapsed: Duration,
}

/// The outcome of importing the facts in a bundle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TakenFacts {
    /// Number of documents that were added.
    pub n_new: usize,
    /// Number of documents that do not fit the text of their file.
    pub n_untrue: usize,
}

/// The facts for a bundle: files in the order of the state, each with its number of documents.
pub type ExportedFacts = Vec<(u32, Vec<u8>)>;

/// The start of a name, the symbol that it means, and whether it is the name of the symbol's definition.
pub type SaidName = (u32, String, bool);

/// What a language server says about names in files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerFacts {
    /// The name under which the facts are kept.
    pub tool: String,
    /// The version of the server.
    pub version: String,
    /// The names by file.
    pub documents: BTreeMap<(RepoPath, BlobId), BTreeSet<SaidName>>,
}

impl ServerFacts {
    /// Returns the facts as a file that is not stored.
    pub fn to_file(&self) -> Result<FactsFile, FileError> {
        let mut writer = FactsWriter::new(&self.tool);
        self.add_to(&mut writer);
        FactsFile::receive(writer.finish().into())
    }

    /// Returns true if the writer did not have all facts.
    fn add_to(&self, writer: &mut FactsWriter) -> bool {
        let mut has_changed = false;
        for ((path, blob), names) in &self.documents {
            let names = names.iter();
            let names: Vec<(u32, &str, bool)> = names
                .map(|(start, symbol, is_definition)| (*start, symbol.as_str(), *is_definition))
                .collect();
            has_changed |= writer.extend(*blob, path.as_bytes(), &self.version, &names);
        }
        has_changed
    }
}

/// An error from an import. Nothing was stored.
#[derive(Debug, thiserror::Error)]
pub enum FactsError {
    /// The index cannot be read.
    #[error(transparent)]
    Scip(#[from] ScipError),
    /// The index describes other files.
    #[error(
        "the index does not describe this revision: of {n_documents} documents, {n_joined} fit; {n_absent} are about \
         files that it does not have, {n_other} about files with another text"
    )]
    OtherRevision {
        /// Number of documents.
        n_documents: usize,
        /// Number of documents that fit.
        n_joined: usize,
        /// Number of documents without a file.
        n_absent: usize,
        /// Number of documents that do not fit their file.
        n_other: usize,
    },
    /// Another writer did not finish in time, or the sidecar cannot be written.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// A file of the sidecar cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// The repository cannot be read.
    #[error(transparent)]
    Object(#[from] ObjectError),
    /// There would be facts of too many indexers.
    #[error("with the bundle, there would be facts of more than {MAX_INDEXERS} indexers")]
    TooManyIndexers,
    /// The index must be built before facts are imported.
    #[error("the revision is not indexed")]
    NotIndexed,
    /// The caller asked to stop.
    #[error("interrupted")]
    Interrupted,
}

explain_by!(FactsError: Lock, File, Object; Interrupted);

/// The checked documents of an index.
struct Checking<'a> {
    files: HashMap<RepoPath, BlobId>,
    seen: HashSet<RepoPath>,
    writer: &'a mut FactsWriter,
    imported: ImportedFacts,
}

impl Ingest<'_> {
    /// Imports the facts of an index about the files of a tree. `folders` are the folders that the paths in the index may
    /// be relative to; the one with the most files of the index counts. Facts of the same indexer about the same files
    /// are replaced.
    pub fn import_facts(
        &self,
        index: &Index<'_>,
        tree: TreeId,
        folders: &[&str],
        ctx: Ctx<'_>,
    ) -> Result<ImportedFacts, FactsError> {
        let started = Instant::now();
        let lock = self.sidecar.lock_unless(self.patience, ctx.interrupt)?;
        let mut state = self.sidecar.state()?.ok_or(FactsError::NotIndexed)?;
        let mut writer = match state.precise.iter().find(|entry| entry.tool == index.tool) {
            Some(old) => writer_of(self.sidecar, old)?,
            None => FactsWriter::new(index.tool),
        };
        ctx.progress.begin(Stage::Importing, index.n_documents);
        let mut imported = self.check_documents(index, tree, folders, &mut writer, ctx)?;
        ctx.progress.end();
        let n_of = |reason| imported.refused.get(&reason).map_or(0, |refused| refused.n);
        let n_other = n_of(Refusal::OtherText) + n_of(Refusal::OutsideFile);
        if imported.n_joined <= n_other {
            return Err(FactsError::OtherRevision {
                n_documents: index.n_documents,
                n_joined: imported.n_joined,
                n_absent: n_of(Refusal::NoFile),
                n_other,
            });
        }
        let entry = self.publish_facts(&lock, &mut state, index.tool, &writer)?;
        (imported.n_stored, imported.n_bytes) = (entry.n_documents, entry.file.length);
        imported.elapsed = started.elapsed();
        Ok(imported)
    }

    /// Adds what a language server says about some names. Facts of the same server about other names stay.
    pub fn add_facts(&self, said: &ServerFacts, interrupt: &AtomicBool) -> Result<(), FactsError> {
        let lock = self.sidecar.lock_unless(self.patience, interrupt)?;
        let mut state = self.sidecar.state()?.ok_or(FactsError::NotIndexed)?;
        let mut writer = match state.precise.iter().find(|entry| entry.tool == said.tool) {
            Some(old) => writer_of(self.sidecar, old)?,
            None => FactsWriter::new(&said.tool),
        };
        if said.add_to(&mut writer) {
            self.publish_facts(&lock, &mut state, &said.tool, &writer)?;
        }
        Ok(())
    }

    /// Replaces the facts of a tool.
    fn publish_facts(
        &self,
        lock: &WriterLock,
        state: &mut State,
        tool: &str,
        writer: &FactsWriter,
    ) -> Result<PreciseEntry, FactsError> {
        let entry = stored(self.sidecar, tool, writer)?;
        pass("precise.stored", self.sidecar)?;
        let old: Vec<PreciseEntry> = state.precise.extract_if(.., |entry| entry.tool == tool).collect();
        state.precise.push(entry.clone());
        publish_state(self.sidecar, lock, state)?;
        retire_unlisted(self.sidecar, state, old);
        Ok(entry)
    }

    /// Imports files of facts from a bundle. They only add: a document that is there stays, and a new indexer answers
    /// after those that are there. Unless the maker is trusted, the names in each document are compared with the text of
    /// its file, and documents about files that the repository lacks are left out.
    pub fn take_facts(
        &self,
        files: &[Bytes],
        is_trusted: bool,
        interrupt: &AtomicBool,
    ) -> Result<TakenFacts, FactsError> {
        let lock = self.sidecar.lock_unless(self.patience, interrupt)?;
        let mut state = self.sidecar.state()?.ok_or(FactsError::NotIndexed)?;
        let mut taken = TakenFacts::default();
        let mut writers: Vec<(String, FactsWriter)> = Vec::new();
        // One file is open at a time, because together they can be very large.
        for bytes in files {
            let file = FactsFile::receive(bytes.clone())?;
            if writers.iter().all(|(tool, _)| tool != file.tool()) {
                let entry = state.precise.iter().find(|entry| entry.tool == file.tool());
                let writer = entry.map_or(Ok(FactsWriter::new(file.tool())), |entry| {
                    writer_of(self.sidecar, entry)
                });
                writers.push((file.tool().to_owned(), writer?));
            }
            if writers.len() > MAX_INDEXERS {
                return Err(FactsError::TooManyIndexers);
            }
            let writer = writers.iter_mut().find(|(tool, _)| tool == file.tool());
            let (_, writer) = writer.expect("it was added");
            self.merge(&file, writer, is_trusted, &mut taken, interrupt)?;
        }
        let old = state.precise.clone();
        let mut new = Vec::new();
        for (tool, writer) in &writers {
            match state.precise.iter_mut().find(|entry| entry.tool == *tool) {
                Some(entry) if entry.n_documents as usize == writer.n_documents() => {}
                Some(entry) => *entry = stored(self.sidecar, tool, writer)?,
                None if writer.n_documents() > 0 => new.push(stored(self.sidecar, tool, writer)?),
                None => {}
            }
        }
        state.precise.splice(..0, new);
        if state.precise.len() > MAX_INDEXERS.max(old.len()) {
            return Err(FactsError::TooManyIndexers);
        }
        if state.precise != old {
            pass("precise.stored", self.sidecar)?;
            publish_state(self.sidecar, &lock, &mut state)?;
            retire_unlisted(self.sidecar, &state, old);
        }
        Ok(taken)
    }

    fn merge(
        &self,
        file: &FactsFile,
        writer: &mut FactsWriter,
        is_trusted: bool,
        taken: &mut TakenFacts,
        interrupt: &AtomicBool,
    ) -> Result<(), FactsError> {
        let mut reader = self.repository.reader();
        let n_before = writer.n_documents();
        writer.merge(file, |blob, _, names| {
            if interrupt.load(Ordering::Relaxed) {
                return Err(FactsError::Interrupted);
            }
            if is_trusted {
                return Ok(true);
            }
            let BlobContent::Content(text) = reader.blob(blob, MAX_BLOB_BYTES)? else {
                return Ok(false);
            };
            let is_true = fits(names, &text);
            taken.n_untrue += usize::from(!is_true);
            Ok(is_true)
        })?;
        taken.n_new += writer.n_documents() - n_before;
        Ok(())
    }

    fn check_documents(
        &self,
        index: &Index<'_>,
        tree: TreeId,
        folders: &[&str],
        writer: &mut FactsWriter,
        ctx: Ctx<'_>,
    ) -> Result<ImportedFacts, FactsError> {
        let mut reader = self.repository.reader();
        let mut files = HashMap::new();
        reader.tree_files(tree, &mut |file| {
            if let (FileMode::File | FileMode::Executable, Some(blob)) = (file.mode, file.blob()) {
                files.insert(file.path, blob);
            }
        })?;
        let folder = best_folder(index, folders, &files)?;
        let mut checking = Checking {
            files,
            seen: HashSet::new(),
            writer,
            imported: ImportedFacts {
                tool: index.tool.to_owned(),
                version: index.version.to_owned(),
                folder: folder.to_owned(),
                n_documents: index.n_documents,
                ..ImportedFacts::default()
            },
        };
        for document in index.documents() {
            if ctx.is_interrupted() {
                return Err(FactsError::Interrupted);
            }
            let document = document?;
            let path = path_in(folder, &document);
            let added = match checking.blob_of(&path) {
                Ok(blob) => match reader.blob(blob, MAX_BLOB_BYTES)? {
                    BlobContent::Content(text) => checking.add(&document, &path, blob, &text)?,
                    _ => Err(Refusal::Unreadable),
                },
                Err(refusal) => Err(refusal),
            };
            if let Err(refusal) = added {
                let refused = checking.imported.refused.entry(refusal).or_default();
                refused.n += 1;
                if refused.paths.len() < MAX_LISTED {
                    refused.paths.push(path);
                }
            }
            ctx.progress.advance(document.n_bytes() as u64);
        }
        Ok(checking.imported)
    }
}

impl Checking<'_> {
    fn blob_of(&mut self, path: &RepoPath) -> Result<BlobId, Refusal> {
        let blob = *self.files.get(path).ok_or(Refusal::NoFile)?;
        if self.seen.insert(path.clone()) {
            Ok(blob)
        } else {
            Err(Refusal::Repeated)
        }
    }

    fn add(
        &mut self,
        document: &Document<'_>,
        path: &RepoPath,
        blob: BlobId,
        text: &[u8],
    ) -> Result<Result<(), Refusal>, ScipError> {
        let checked = match check(document, text)? {
            Ok(checked) => checked,
            Err(Mismatch::Range) => return Ok(Err(Refusal::OutsideFile)),
            Err(Mismatch::Text) => return Ok(Err(Refusal::OtherText)),
        };
        self.writer.add(blob, path.as_bytes(), &self.imported.version, &checked);
        self.imported.n_joined += 1;
        self.imported.n_names += checked.n_names();
        self.imported.n_local += checked.n_local;
        self.imported.n_left_out += checked.n_left_out;
        Ok(Ok(()))
    }
}

/// Returns the folder in which the most documents have files; of equal ones the first.
fn best_folder<'f>(
    index: &Index<'_>,
    folders: &[&'f str],
    files: &HashMap<RepoPath, BlobId>,
) -> Result<&'f str, ScipError> {
    let mut best = ("", None);
    for folder in folders {
        let mut n = 0;
        for document in index.documents() {
            n += usize::from(files.contains_key(&path_in(folder, &document?)));
        }
        if best.1.is_none_or(|most| n > most) {
            best = (*folder, Some(n));
        }
    }
    Ok(best.0)
}

fn path_in(folder: &str, document: &Document<'_>) -> RepoPath {
    let mut path = folder.as_bytes().to_vec();
    if !path.is_empty() {
        path.push(b'/');
    }
    path.extend_from_slice(document.path.strip_prefix(b"./").unwrap_or(document.path));
    RepoPath::new(path)
}

fn stored(sidecar: &Sidecar, tool: &str, writer: &FactsWriter) -> Result<PreciseEntry, FileError> {
    Ok(PreciseEntry {
        tool: tool.to_owned(),
        n_documents: writer.n_documents() as u32,
        file: store(sidecar, Store::Artifacts, FactsFile::ENDING, &writer.finish())?,
    })
}

/// Removes the files of entries that a state no longer lists.
fn retire_unlisted(sidecar: &Sidecar, state: &State, old: impl IntoIterator<Item = PreciseEntry>) {
    let is_unlisted = |entry: &PreciseEntry| state.precise.iter().all(|listed| listed.file != entry.file);
    for entry in old.into_iter().filter(is_unlisted) {
        retire_file(sidecar, Store::Artifacts, &entry.file);
    }
}

/// Opens all facts of a state.
pub fn stored_facts(sidecar: &Sidecar, state: &State) -> Result<Vec<FactsFile>, FileError> {
    let open = |entry: &PreciseEntry| FactsFile::open(sidecar, &entry.file);
    state.precise.iter().map(open).collect()
}

/// Returns the key of a document on a remote. The number in it differs for other indexers and other paths of the same
/// blob.
pub fn key_of_facts(tool: &str, blob: BlobId, path: &[u8]) -> ArtifactKey {
    let mut hasher = blake3::Hasher::new_derive_key("codescout facts 1");
    hasher.update(tool.as_bytes()).update(&[0]).update(path);
    let hash = hasher.finalize();
    ArtifactKey {
        blob,
        lang: Lang(u16::from_le_bytes([hash.as_bytes()[0], hash.as_bytes()[1]])),
    }
}

/// Returns the documents for which `stays` returns true.
pub fn gather_facts(
    files: &[FactsFile],
    stays: impl Fn(&str, BlobId, &[u8]) -> bool,
) -> Result<ExportedFacts, FileError> {
    let mut parts = Vec::new();
    for file in files {
        parts.extend(FactsWriter::of(file, |blob, path| stays(file.tool(), blob, path))?.parts());
    }
    Ok(parts)
}

/// Returns a writer with the stored facts of an indexer. Damaged facts are left out, because another import replaces
/// them.
fn writer_of(sidecar: &Sidecar, entry: &PreciseEntry) -> Result<FactsWriter, FileError> {
    let read = FactsFile::open(sidecar, &entry.file).and_then(|file| FactsWriter::of(&file, |_, _| true));
    match read {
        Err(error) if error.is_invalid() || error.is_gone() => {
            tracing::warn!("{error}: the facts of {} about other files are lost", entry.tool);
            Ok(FactsWriter::new(&entry.tool))
        }
        writer => writer,
    }
}

/// Returns the facts about blobs for which `is_live` returns true, each file written again if it has others.
pub(super) fn surviving_facts(
    sidecar: &Sidecar,
    state: &State,
    is_live: impl Fn(BlobId) -> bool,
) -> Result<Vec<PreciseEntry>, FileError> {
    let mut surviving = Vec::new();
    for entry in &state.precise {
        let read =
            FactsFile::open(sidecar, &entry.file).and_then(|file| FactsWriter::of(&file, |blob, _| is_live(blob)));
        let writer = match read {
            // Verification reports the damage.
            Err(error) if error.is_invalid() || error.is_gone() => {
                surviving.push(entry.clone());
                continue;
            }
            writer => writer?,
        };
        match writer.n_documents() as u32 {
            0 => {}
            n if n == entry.n_documents => surviving.push(entry.clone()),
            _ => surviving.push(stored(sidecar, &entry.tool, &writer)?),
        }
    }
    Ok(surviving)
}
