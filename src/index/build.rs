//! Builds segments from blobs. Extracts blobs in parallel, assigns numbers in order, and writes the lexical index and
//! the vectors.
//!
//! The result depends on the blobs, their order and the existing segments, but not on threads or timing.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;

use rayon::prelude::*;

use crate::artifact::Extractor;
use crate::artifact::{ArtifactKey, ArtifactWriter, SkipReason};
use crate::embed::{EmbedError, Embedder};
use crate::model::{BlobId, ChunkKey, explain_by};

use super::dense::{Quantisation, VectorWriter, WriteError};
use super::lexical::{LexicalDoc, LexicalError, LexicalWriter};
use super::prepare::{PreparedBlob, PreparedChunk, RecordedRow, prepare};
use super::recall::Recall;
use super::segments::Segments;

/// Settings for building segments.
#[derive(Clone, Debug)]
pub struct BuildOptions {
    /// Options of the extraction.
    pub extract: crate::extract::Options,
    /// Size limit of indexed blobs in bytes. Larger ones are skipped. Default: 1 MiB.
    pub max_blob_bytes: u64,
    /// A hash of the settings above and of everything else that artifacts depend on.
    pub recipe: u64,
    /// The storage format of vectors.
    pub quantisation: Quantisation,
    /// Size of text in bytes at which a segment is complete. Limits the memory of a build.
    pub max_segment_bytes: usize,
}

/// The result of reading a blob.
#[derive(Debug)]
pub enum SourceBlob {
    /// The blob's bytes.
    Content(Vec<u8>),
    /// The blob exists but is not indexed.
    Skipped(SkipReason),
    /// The blob cannot be read at the moment. It is not recorded, so that the next build tries again.
    Absent,
}

/// A source of blobs. Each thread gets its own reader.
pub trait BlobSource: Sync {
    /// The reader of one thread.
    type Reader: BlobReader;

    /// Returns a reader for one thread.
    fn reader(&self) -> Self::Reader;
}

/// Reads blobs by key. An unreadable blob is a normal result, not an error.
pub trait BlobReader {
    /// Reads the blob with this key.
    fn read(&mut self, key: ArtifactKey) -> SourceBlob;
}

/// The contents of a segment's files. They can be stored or opened in memory.
#[derive(Debug)]
pub struct SegmentData {
    /// The number of the segment's first blob.
    pub base_blob: u32,
    /// Number of blobs.
    pub n_blobs: u32,
    /// The number of the segment's first document.
    pub base_doc: u32,
    /// Number of documents.
    pub n_docs: u32,
    /// The artifact file.
    pub artifacts: Vec<u8>,
    /// The lexical file.
    pub lexical: Vec<u8>,
    /// The vector file.
    pub vectors: Vec<u8>,
    /// Size of the segment's text in bytes.
    pub n_text_bytes: u64,
}

/// An error from building segments.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// Writing the lexical index failed.
    #[error(transparent)]
    Lexical(#[from] LexicalError),
    /// Embedding failed.
    #[error(transparent)]
    Embed(#[from] EmbedError),
    /// Writing the vectors failed.
    #[error(transparent)]
    Vectors(#[from] WriteError),
    /// The blobs or documents exceed the range of `u32`.
    #[error("more than {} documents", u32::MAX)]
    TooMany,
    /// An imported record does not match its blob.
    #[error("invalid record for blob {blob}: {what}")]
    WrongRecord {
        /// The id of the blob.
        blob: BlobId,
        /// The difference between record and blob.
        what: &'static str,
    },
    /// The system cannot start another thread.
    #[error("cannot start a thread")]
    Thread(#[source] std::io::Error),
}

explain_by!(BuildError: Embed);

/// Number of blobs that are extracted together. Small rounds limit the memory and let numbering and indexing start
/// early.
const ROUND_BLOBS: usize = 256;
/// Maximum number of extracted rounds that wait to be indexed.
const ROUNDS_AHEAD: usize = 2;
/// Number of chunks per call of the embedder.
const EMBED_BATCH: usize = 64;

/// The inputs of a build.
pub struct Build<'a> {
    /// The existing segments. The build numbers blobs and documents after theirs.
    pub known: &'a Segments,
    /// The embedder for the chunks.
    pub embedder: &'a dyn Embedder,
    /// The settings of the build.
    pub options: &'a BuildOptions,
    /// When set, the build finishes what it has extracted and skips the remaining blobs.
    pub interrupt: &'a AtomicBool,
    /// Called after each blob is read, with its size in bytes.
    pub progress: &'a (dyn Fn(u64) + Sync),
}

impl Build<'_> {
    /// Builds segments from the blobs with these `keys` and passes each segment to `finished`.
    pub fn segments<S: BlobSource, E: From<BuildError> + Send>(
        &self,
        keys: &[ArtifactKey],
        source: &S,
        finished: impl FnMut(SegmentData) -> Result<(), E> + Send,
    ) -> Result<(), E> {
        self.segments_from(None, keys, source, finished)
    }

    /// Like [`Self::segments`], but uses records instead of extracting and embedding. Every key must have a record.
    pub fn segments_from_records<S: BlobSource, E: From<BuildError> + Send>(
        &self,
        recall: &Recall<'_>,
        keys: &[ArtifactKey],
        source: &S,
        finished: impl FnMut(SegmentData) -> Result<(), E> + Send,
    ) -> Result<(), E> {
        self.segments_from(Some(recall), keys, source, finished)
    }

    fn segments_from<S: BlobSource, E: From<BuildError> + Send>(
        &self,
        recall: Option<&Recall<'_>>,
        keys: &[ArtifactKey],
        source: &S,
        finished: impl FnMut(SegmentData) -> Result<(), E> + Send,
    ) -> Result<(), E> {
        let (sender, receiver) = mpsc::sync_channel::<Vec<PreparedBlob>>(ROUNDS_AHEAD);
        let Self {
            known,
            embedder,
            options,
            ..
        } = *self;
        std::thread::scope(|scope| {
            let indexing = std::thread::Builder::new()
                .spawn_scoped(scope, move || {
                    // An interrupted build indexes what was extracted. An interrupted import discards it.
                    let is_wanted = || recall.is_none() || !self.interrupt.load(Ordering::Relaxed);
                    let rounds = receiver.into_iter().take_while(|_| is_wanted());
                    index_rounds(rounds, known, embedder, options, finished)
                })
                .map_err(BuildError::Thread)?;
            let mut prepared_all = Ok(());
            for round in keys.chunks(ROUND_BLOBS) {
                if self.interrupt.load(Ordering::Relaxed) {
                    break;
                }
                let prepared = match prepare_round(round, source, options, recall, self.progress, self.interrupt) {
                    Ok(prepared) => prepared,
                    Err(error) => {
                        prepared_all = Err(error);
                        break;
                    }
                };
                // The receiver is closed only after an error, which `join` returns.
                if sender.send(prepared).is_err() {
                    break;
                }
            }
            drop(sender);
            let indexed = indexing.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            prepared_all?;
            indexed
        })
    }
}

/// Assigns numbers to rounds of blobs and indexes them, one segment after another.
fn index_rounds<E: From<BuildError>>(
    rounds: impl Iterator<Item = Vec<PreparedBlob>>,
    known: &Segments,
    embedder: &dyn Embedder,
    options: &BuildOptions,
    mut finished: impl FnMut(SegmentData) -> Result<(), E>,
) -> Result<(), E> {
    let mut numbers = Numbers::after(known);
    let mut open: Option<SegmentBuilder> = None;
    for round in rounds {
        let mut builder = match open.take() {
            Some(builder) => builder,
            None => SegmentBuilder::new(&numbers, options, embedder)?,
        };
        builder.add_round(round, known, &mut numbers, embedder)?;
        if builder.n_text_bytes as usize >= options.max_segment_bytes {
            finished(builder.finish()?)?;
        } else {
            open = Some(builder);
        }
    }
    match open {
        Some(builder) => finished(builder.finish()?),
        None => Ok(()),
    }
}

fn prepare_round<S: BlobSource>(
    keys: &[ArtifactKey],
    source: &S,
    options: &BuildOptions,
    recall: Option<&Recall<'_>>,
    progress: &(dyn Fn(u64) + Sync),
    interrupt: &AtomicBool,
) -> Result<Vec<PreparedBlob>, BuildError> {
    keys.par_iter()
        .filter(|_| !interrupt.load(Ordering::Relaxed))
        .map_init(
            || (source.reader(), Extractor::new(options.extract.clone())),
            |(reader, extractor), &key| {
                let blob = reader.read(key);
                progress(match &blob {
                    SourceBlob::Content(bytes) => bytes.len() as u64,
                    SourceBlob::Skipped(_) | SourceBlob::Absent => 0,
                });
                match (blob, recall) {
                    (SourceBlob::Content(bytes), None) => Ok(Some(prepare(key, bytes, extractor, options))),
                    (SourceBlob::Content(bytes), Some(recall)) => {
                        recall.prepare(key, bytes, extractor, options).map(Some)
                    }
                    (SourceBlob::Skipped(reason), _) => Ok(Some(PreparedBlob::skipped(key, reason))),
                    (SourceBlob::Absent, _) => Ok(None),
                }
            },
        )
        .filter_map(Result::transpose)
        .collect()
}

/// The numbers of blobs and documents assigned so far.
struct Numbers {
    n_blobs: u32,
    n_docs: u32,
    /// The numbers of documents that this build assigned. Documents of earlier segments are looked up in `known`.
    new_docs: HashMap<ChunkKey, u32>,
}

impl Numbers {
    fn after(known: &Segments) -> Self {
        Self {
            n_blobs: known.n_blobs(),
            n_docs: known.n_docs(),
            new_docs: HashMap::new(),
        }
    }

    /// Returns the number of a document, and whether the number was newly assigned.
    fn doc(&mut self, key: ChunkKey, known: &Segments) -> Result<(u32, bool), BuildError> {
        if let Some(&doc) = self.new_docs.get(&key) {
            return Ok((doc, false));
        }
        if let Some(doc) = known.find_doc(key) {
            return Ok((doc, false));
        }
        let doc = self.n_docs;
        self.n_docs = doc.checked_add(1).ok_or(BuildError::TooMany)?;
        self.new_docs.insert(key, doc);
        Ok((doc, true))
    }
}

struct SegmentBuilder {
    base_blob: u32,
    base_doc: u32,
    artifacts: ArtifactWriter,
    lexical: LexicalWriter,
    vectors: VectorWriter,
    n_text_bytes: u64,
}

impl SegmentBuilder {
    fn new(numbers: &Numbers, options: &BuildOptions, embedder: &dyn Embedder) -> Result<Self, BuildError> {
        Ok(Self {
            base_blob: numbers.n_blobs,
            base_doc: numbers.n_docs,
            artifacts: ArtifactWriter::new(options.recipe),
            lexical: LexicalWriter::new()?,
            vectors: VectorWriter::new(embedder.profile().dim, options.quantisation, embedder.profile().id())?,
            n_text_bytes: 0,
        })
    }

    fn add_round(
        &mut self,
        round: Vec<PreparedBlob>,
        known: &Segments,
        numbers: &mut Numbers,
        embedder: &dyn Embedder,
    ) -> Result<(), BuildError> {
        let mut new_chunks: Vec<(usize, &PreparedChunk)> = Vec::new();
        for (at, blob) in round.iter().enumerate() {
            let mut docs = Vec::with_capacity(blob.chunks.len());
            for chunk in &blob.chunks {
                let (doc, is_new) = numbers.doc(chunk.key, known)?;
                docs.push(doc);
                if is_new {
                    new_chunks.push((at, chunk));
                }
            }
            match &blob.outcome {
                Ok(extraction) => self.artifacts.push(blob.key, blob.lang, extraction, &docs),
                Err(reason) => self.artifacts.push_skipped(blob.key, *reason),
            }
            self.lexical.add_signature(&blob.signature);
            self.n_text_bytes += blob.bytes.len() as u64;
            numbers.n_blobs = numbers.n_blobs.checked_add(1).ok_or(BuildError::TooMany)?;
        }
        let Self { lexical, vectors, .. } = self;
        let text_of = |&(at, chunk): &(usize, &PreparedChunk)| chunk.text(&round[at]);
        let is_embedded = |chunk: &PreparedChunk| chunk.recorded.as_ref().is_none_or(|recorded| recorded.is_audited);
        let to_embed: Vec<_> = new_chunks
            .iter()
            .copied()
            .filter(|(_, chunk)| is_embedded(chunk))
            .collect();
        let (indexed, embedded) = rayon::join(
            || add_documents(lexical, &new_chunks, &round),
            || embed(embedder, &to_embed, text_of),
        );
        indexed?;
        let mut embedded = embedded?.into_iter();
        for (at, chunk) in new_chunks {
            let made = if is_embedded(chunk) { embedded.next() } else { None };
            let wrong_record = |what| BuildError::WrongRecord {
                blob: round[at].key.blob,
                what,
            };
            match (&chunk.recorded, made) {
                (None, Some((vector, weight))) => vectors.push(&vector, weight)?,
                (Some(RecordedRow { file, row, .. }), made) => {
                    if made.is_some_and(|(vector, weight)| !file.has_row_of(*row, &vector, weight)) {
                        return Err(wrong_record("vector differs"));
                    }
                    vectors.copy_row(file, *row)?;
                }
                (None, None) => return Err(wrong_record("chunk without a vector")),
            }
        }
        Ok(())
    }

    fn finish(self) -> Result<SegmentData, BuildError> {
        Ok(SegmentData {
            base_blob: self.base_blob,
            n_blobs: self.artifacts.n_blobs(),
            base_doc: self.base_doc,
            n_docs: self.lexical.n_docs(),
            artifacts: self.artifacts.finish(),
            lexical: self.lexical.finish()?,
            vectors: self.vectors.finish(),
            n_text_bytes: self.n_text_bytes,
        })
    }
}

fn add_documents(
    lexical: &mut LexicalWriter,
    chunks: &[(usize, &PreparedChunk)],
    round: &[PreparedBlob],
) -> Result<(), LexicalError> {
    for &(at, chunk) in chunks {
        let blob = &round[at];
        lexical.add(LexicalDoc {
            key: chunk.key,
            meta: chunk.meta,
            names: &chunk.names(blob),
            head: &chunk.head,
            body: &String::from_utf8_lossy(chunk.bytes(blob)),
        })?;
    }
    Ok(())
}

fn embed<'a>(
    embedder: &dyn Embedder,
    chunks: &[(usize, &'a PreparedChunk)],
    text_of: impl Fn(&(usize, &'a PreparedChunk)) -> String + Sync,
) -> Result<Vec<(Vec<f32>, f32)>, EmbedError> {
    // Do not interrupt within a round, so that each document has a vector. Rounds are short.
    let never = AtomicBool::new(false);
    let batches = chunks
        .par_chunks(EMBED_BATCH)
        .map(|batch| {
            let texts: Vec<String> = batch.iter().map(&text_of).collect();
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            embedder.embed_documents(&texts, &never)
        })
        .collect::<Result<Vec<_>, _>>()?;
    let flat = batches.into_iter().flatten();
    Ok(flat.map(|embedding| (embedding.vector, embedding.weight)).collect())
}
