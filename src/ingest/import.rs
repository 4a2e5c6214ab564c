//! Imports another clone's index of blobs that this repository has, instead of indexing them.

use std::collections::HashSet;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use crate::artifact::ArtifactKey;
use crate::extract::is_lang_of_path;
use crate::index::{
    Build, BuildError, BuildOptions, Recall, Records, RecordsError, Segment, SegmentData, SegmentError, Segments,
};
use crate::model::{BlobId, Ctx, ErrorKind, Explain, Explanation, Stage, TreeId, random_bytes};
use crate::sidecar::{Bytes, FileError, LockError, SegmentEntry, State, Store, StoredFile, VectorEntry};
use crate::snapshot::{Blobs, missing_artifacts};

use super::publish::{ARTIFACTS_ENDING, LEXICAL_ENDING, VECTORS_ENDING, pass, publish_state, store, store_segment};
use super::run::{Ingest, IngestError};

/// Maximum number of blobs of an import in which all blobs are audited.
const FEW: usize = 256;
/// In larger imports, one blob in this many is audited, but at least [`FEW`] in total.
const ONE_IN: usize = 50;
/// Number of blobs to look up in git to decide whether an index belongs to this repository.
const MAX_LOOKUPS: usize = 500;

/// Limit on the bytes to index, as a multiple of the blobs' sizes, plus [`LANGUAGE_SLACK`]. A blob that is recorded in
/// several languages is indexed once for each.
const MAX_LANGUAGE_RATIO: u64 = 4;
/// Bytes allowed regardless of [`MAX_LANGUAGE_RATIO`], because empty and small files may have any number of languages.
const LANGUAGE_SLACK: u64 = 16 << 20;

/// Maximum size of segments built by an import. It is smaller than for indexing, so that importing needs less memory.
const MAX_SEGMENT_BYTES: usize = 24 << 20;

/// Determines which imported blobs are extracted and embedded again for comparison.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Audit {
    /// A random sample.
    #[default]
    Sample,
    /// All blobs.
    All,
}

/// The outcome of an import.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Imported {
    /// Number of new blobs.
    pub n_blobs: usize,
    /// Number of new documents (chunks).
    pub n_docs: usize,
    /// Bytes of text of the new documents.
    pub n_text_bytes: u64,
    /// Number of blobs already in the index.
    pub n_known_blobs: usize,
    /// Number of blobs that are not in this repository.
    pub n_absent_blobs: usize,
    /// Number of audited blobs.
    pub n_audited_blobs: usize,
    /// True if ready-made segments were adopted.
    pub is_adopted: bool,
    /// Duration of the import.
    pub elapsed: Duration,
    /// True if the import was interrupted. Then nothing was imported.
    pub interrupted: bool,
}

/// An error from importing. Nothing was imported.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The sidecar or the repository cannot be used.
    #[error(transparent)]
    Ingest(#[from] IngestError),
    /// A record is wrong, or blobs cannot be indexed.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// The records cannot be read.
    #[error(transparent)]
    Records(#[from] RecordsError),
    /// A segment cannot be read.
    #[error(transparent)]
    Segment(#[from] SegmentError),
    /// A blob is recorded in a language that none of its paths could have.
    #[error("blob {blob} is recorded in an unknown language")]
    UnknownLanguage {
        /// The blob.
        blob: BlobId,
    },
    /// Blobs are recorded in so many languages that indexing them costs more work than their size justifies.
    #[error(
        "the bundle records blobs in too many languages ({n_recorded} bytes to index for {n_bytes} bytes of blobs)"
    )]
    TooManyLanguages {
        /// Bytes of the blobs, each counted once.
        n_bytes: u64,
        /// Bytes of the blobs, counted once for each language.
        n_recorded: u64,
    },
    /// None of the imported blobs is in this repository.
    #[error("none of its {n_blobs} blobs is in this repository")]
    OtherRepository {
        /// Number of blobs looked up.
        n_blobs: usize,
    },
}

impl Explain for ImportError {
    fn explain(&self) -> Explanation {
        match self {
            Self::Ingest(error) => error.explain(),
            Self::Build(error) => error.explain(),
            Self::OtherRepository { .. } => Explanation::of_kind(ErrorKind::OtherOrigin),
            _ => Explanation::default(),
        }
    }
}

impl From<FileError> for ImportError {
    fn from(error: FileError) -> Self {
        Self::Ingest(error.into())
    }
}

impl From<LockError> for ImportError {
    fn from(error: LockError) -> Self {
        Self::Ingest(error.into())
    }
}

impl Ingest<'_> {
    /// Lists the artifact keys of a tree's files, each once, in path order.
    pub fn keys_of(&self, tree: TreeId) -> Result<Vec<ArtifactKey>, IngestError> {
        let files = self.all_files(tree)?;
        Ok(missing_artifacts(&files, &Segments::default()))
    }

    /// Imports the records of blobs that are in this repository but not in the sidecar.
    ///
    /// The text is indexed from the blobs' own bytes. Ranges, counts and skip reasons in the records are checked
    /// against the bytes, and audited blobs are extracted and embedded again. If one record is wrong, nothing is
    /// imported. Everything is published at once.
    pub fn import(&self, records: &Records, audit: Audit, ctx: Ctx<'_>) -> Result<Imported, ImportError> {
        let started = Instant::now();
        let lock = self.sidecar.lock_unless(self.patience, ctx.interrupt)?;
        let (mut state, known) = self.sound_state(&lock)?;
        let (mut keys, mut n_known_blobs) = (Vec::new(), 0);
        let mut seen = HashSet::new();
        for key in records.keys() {
            if !is_lang_of_path(key.lang) {
                return Err(ImportError::UnknownLanguage { blob: key.blob });
            }
            match known.find_blob(key) {
                Some(_) => n_known_blobs += 1,
                None if seen.insert(key) => keys.push(key),
                None => {}
            }
        }
        let blobs = Blobs::of_git(self.repository, self.options.max_blob_bytes);
        let n_looked_for = keys.len();
        self.retain_present(&mut keys)?;
        let n_absent_blobs = n_looked_for - keys.len();
        if keys.is_empty() && n_known_blobs == 0 && n_looked_for > 0 {
            return Err(ImportError::OtherRepository { n_blobs: n_looked_for });
        }
        let audited = audited(&keys, audit);
        // Audited blobs come first. Otherwise the vector of a text that they share with other blobs could be copied
        // without a comparison.
        keys.sort_by_key(|key| !audited.contains(key));
        let mut imported = Imported {
            n_known_blobs,
            n_absent_blobs,
            n_audited_blobs: audited.len(),
            ..Imported::default()
        };
        ctx.progress.begin(Stage::Importing, keys.len());
        let options = BuildOptions {
            max_segment_bytes: self.options.max_segment_bytes.min(MAX_SEGMENT_BYTES),
            ..self.options.clone()
        };
        let build = Build {
            known: &known,
            embedder: self.embedder,
            options: &options,
            interrupt: ctx.interrupt,
            progress: &|n_bytes| ctx.progress.advance(n_bytes),
        };
        let recall = Recall::new(records, &audited);
        let profile = self.profile();
        let mut segments = Vec::new();
        build.segments_from_records(&recall, &keys, &blobs, |data: SegmentData| {
            if data.n_blobs > 0 {
                imported.n_blobs += data.n_blobs as usize;
                imported.n_docs += data.n_docs as usize;
                imported.n_text_bytes += data.n_text_bytes;
                segments.push(store_segment(self.sidecar, &data, &profile)?);
            }
            Ok::<_, ImportError>(())
        })?;
        ctx.progress.end();
        if ctx.is_interrupted() {
            imported = Imported {
                interrupted: true,
                ..Imported::default()
            };
        } else if !segments.is_empty() {
            pass("import.stored", self.sidecar)?;
            state.segments.extend(segments);
            publish_state(self.sidecar, &lock, &mut state)?;
            pass("import.published", self.sidecar)?;
        }
        imported.elapsed = started.elapsed();
        Ok(imported)
    }

    /// Adopts ready-made segments from a trusted source, each as an artifact, a lexical and a vector file. Returns
    /// `None` if the sidecar already has segments, because documents would be duplicated.
    pub fn adopt(&self, files: &[[Bytes; 3]], interrupt: &AtomicBool) -> Result<Option<Imported>, ImportError> {
        let started = Instant::now();
        let lock = self.sidecar.lock_unless(self.patience, interrupt)?;
        let (old, known) = self.sound_state(&lock)?;
        if known.n_blobs() > 0 {
            return Ok(None);
        }
        let mut imported = Imported {
            is_adopted: true,
            ..Imported::default()
        };
        let mut state = State {
            epoch: random_bytes().map_err(IngestError::Random)?,
            segments: Vec::new(),
            ..old
        };
        let (mut keys, mut segments) = (Vec::new(), Vec::new());
        for files in files {
            let first = (imported.n_blobs as u32, imported.n_docs as u32);
            let segment = self.checked_segment(first, files.clone())?;
            let n_blobs = segment.artifacts.n_blobs();
            keys.extend((0..n_blobs).filter_map(|blob| segment.artifacts.key(blob)));
            imported.n_blobs += n_blobs as usize;
            imported.n_docs += segment.lexical.n_docs() as usize;
            segments.push((segment, files));
        }
        let n_blobs = keys.len();
        keys = keys.into_iter().step_by(n_blobs.div_ceil(MAX_LOOKUPS).max(1)).collect();
        self.retain_present(&mut keys)?;
        if keys.is_empty() && n_blobs > 0 {
            return Err(ImportError::OtherRepository { n_blobs });
        }
        for (segment, files) in segments {
            state.segments.push(self.store_files(&segment, files)?);
        }
        pass("import.stored", self.sidecar)?;
        publish_state(self.sidecar, &lock, &mut state)?;
        pass("import.published", self.sidecar)?;
        imported.elapsed = started.elapsed();
        Ok(Some(imported))
    }

    /// Opens an imported segment and checks that its files match one another and this build's settings.
    fn checked_segment(&self, first: (u32, u32), files: [Bytes; 3]) -> Result<Segment, ImportError> {
        let segment = Segment::from_files(first, files)?;
        let inconsistent = |what| SegmentError::Inconsistent {
            base_blob: first.0,
            base_doc: first.1,
            what,
        };
        let vectors = segment.vectors.as_ref().ok_or(inconsistent("no vectors"))?;
        if vectors.profile() != self.embedder.profile().id() {
            return Err(inconsistent("another embedding profile").into());
        }
        vectors.verify().map_err(|_| inconsistent("damaged vectors"))?;
        if segment.artifacts.recipe() != self.options.recipe {
            return Err(inconsistent("another recipe").into());
        }
        Ok(segment)
    }

    fn store_files(
        &self,
        segment: &Segment,
        [artifacts, lexical, vectors]: &[Bytes; 3],
    ) -> Result<SegmentEntry, FileError> {
        let put =
            |to, ending, bytes: &Bytes| -> Result<StoredFile, FileError> { store(self.sidecar, to, ending, bytes) };
        let (artifacts, (lexical, vectors)) = rayon::join(
            || put(Store::Artifacts, ARTIFACTS_ENDING, artifacts),
            || {
                rayon::join(
                    || put(Store::Lexical, LEXICAL_ENDING, lexical),
                    || put(Store::Dense, VECTORS_ENDING, vectors),
                )
            },
        );
        Ok(SegmentEntry {
            base_blob: segment.base_blob,
            n_blobs: segment.artifacts.n_blobs(),
            base_doc: segment.base_doc,
            n_docs: segment.lexical.n_docs(),
            artifacts: artifacts?,
            lexical: lexical?,
            vectors: vec![VectorEntry {
                profile: self.profile(),
                file: vectors?,
            }],
        })
    }

    /// Removes the keys of blobs that this repository lacks. Fails if the other blobs are recorded in too many
    /// languages.
    fn retain_present(&self, keys: &mut Vec<ArtifactKey>) -> Result<(), ImportError> {
        let mut reader = self.repository.reader();
        let mut blobs = HashSet::new();
        let (mut n_bytes, mut n_recorded) = (0, 0);
        keys.retain(|key| {
            let Ok(Some(size)) = reader.blob_size(key.blob) else {
                return false;
            };
            n_recorded += size;
            n_bytes += if blobs.insert(key.blob) { size } else { 0 };
            true
        });
        if n_recorded > MAX_LANGUAGE_RATIO * n_bytes + LANGUAGE_SLACK {
            return Err(ImportError::TooManyLanguages { n_bytes, n_recorded });
        }
        Ok(())
    }
}

fn audited(keys: &[ArtifactKey], audit: Audit) -> HashSet<ArtifactKey> {
    chosen(keys.len(), audit).into_iter().map(|at| keys[at]).collect()
}

/// Chooses which of `n` items to audit. The choice is unpredictable.
pub(super) fn chosen(n: usize, audit: Audit) -> HashSet<usize> {
    let wanted = (n / ONE_IN).max(FEW);
    if audit == Audit::All || n <= wanted {
        return (0..n).collect();
    }
    let mut chosen = HashSet::with_capacity(wanted);
    while chosen.len() < wanted {
        // Without random bytes, the first items are chosen. An imported file cannot cause that.
        let random = random_bytes().map_or(chosen.len() as u64, u64::from_le_bytes);
        chosen.insert((random % n as u64) as usize);
    }
    chosen
}
