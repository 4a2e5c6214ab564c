//! Prepares a blob for a segment: extracts it and computes the keys and texts of its chunks. No I/O.

use crate::artifact::{ArtifactKey, Extractor, SkipReason};
use crate::extract::{self, Chunk, Content, Definition, Extraction};
use crate::model::{ByteRange, ChunkKey, Lang};

use super::build::BuildOptions;
use super::dense::VectorFile;
use super::lexical::{DocMeta, Signature};

/// Limit on the part of an item's signature that is repeated in the heads of the item's later chunks. The remaining
/// signature is of little relevance there.
const MAX_HEAD_SIGNATURE_BYTES: usize = 200;

/// Limit on the number of names that are embedded with a chunk. If a chunk has many small items, no name is typical of
/// it.
const MAX_EMBEDDED_NAMES: usize = 4;

/// A blob with everything that a segment stores about it.
#[derive(Debug)]
pub(super) struct PreparedBlob {
    pub(super) key: ArtifactKey,
    pub(super) lang: Lang,
    pub(super) outcome: Result<Extraction, SkipReason>,
    pub(super) chunks: Vec<PreparedChunk>,
    pub(super) signature: Vec<u8>,
    pub(super) bytes: Vec<u8>,
}

/// A chunk with its key and metadata, its range in the blob, and a head: the names of its containers.
#[derive(Debug)]
pub(super) struct PreparedChunk {
    pub(super) key: ChunkKey,
    pub(super) meta: DocMeta,
    pub(super) head: String,
    range: ByteRange,
    /// The indices of the definitions whose names are in the chunk.
    definitions: Vec<u32>,
    /// The recorded vector of the chunk, if the blob has a record.
    pub(super) recorded: Option<RecordedRow>,
}

/// A recorded vector.
#[derive(Debug)]
pub(super) struct RecordedRow {
    pub(super) file: VectorFile,
    pub(super) row: u32,
    /// True if the vector is computed again for comparison.
    pub(super) is_audited: bool,
}

impl PreparedBlob {
    pub(super) fn skipped(key: ArtifactKey, reason: SkipReason) -> Self {
        Self {
            key,
            lang: key.lang,
            outcome: Err(reason),
            chunks: Vec::new(),
            signature: Vec::new(),
            bytes: Vec::new(),
        }
    }
}

impl PreparedChunk {
    pub(super) fn bytes<'a>(&self, blob: &'a PreparedBlob) -> &'a [u8] {
        &blob.bytes[self.range.as_usize()]
    }

    pub(super) fn names<'a>(&self, blob: &'a PreparedBlob) -> Vec<&'a str> {
        let Ok(extraction) = &blob.outcome else {
            return Vec::new();
        };
        let name = |&index: &u32| extraction.definitions[index as usize].name.as_str();
        self.definitions.iter().map(name).collect()
    }

    /// Returns the text to embed: the head, the first names and the body. The body also contains the names; repeating
    /// them gives them more weight.
    pub(super) fn text(&self, blob: &PreparedBlob) -> String {
        document_text(&self.head, &self.names(blob), self.bytes(blob))
    }
}

/// Combines head, names and body into the text to embed.
fn document_text(head: &str, names: &[&str], body: &[u8]) -> String {
    let names = names[..names.len().min(MAX_EMBEDDED_NAMES)].join(" ");
    let body = String::from_utf8_lossy(body);
    format!("{head} {names}\n{body}")
}

/// Returns the text to embed for a chunk of a blob. Returns `None` if the blob has no chunk with this index.
pub(super) fn chunk_text(bytes: &[u8], extraction: &Extraction, index: usize) -> Option<String> {
    let chunk = extraction.chunks.get(index)?;
    let body = bytes.get(chunk.range.as_usize())?;
    let definitions = definitions_by_chunk(extraction).swap_remove(index);
    let name = |&index: &u32| extraction.definitions[index as usize].name.as_str();
    let names: Vec<&str> = definitions.iter().map(name).collect();
    Some(document_text(&head(bytes, extraction, chunk), &names, body))
}

/// Classifies and extracts a blob and computes the keys of its chunks.
pub(super) fn prepare(
    key: ArtifactKey,
    bytes: Vec<u8>,
    extractor: &mut Extractor,
    options: &BuildOptions,
) -> PreparedBlob {
    if let Some(reason) = left_out(&bytes, options.max_blob_bytes) {
        return PreparedBlob::skipped(key, reason);
    }
    let lang = extract::refine(key.lang, &bytes);
    let extraction = extractor.extract(&bytes, lang);
    prepare_known(key, lang, bytes, extraction)
}

/// Computes the keys of the chunks of a blob that has been extracted.
pub(super) fn prepare_known(key: ArtifactKey, lang: Lang, bytes: Vec<u8>, extraction: Extraction) -> PreparedBlob {
    let mut definitions = definitions_by_chunk(&extraction);
    let chunks = extraction
        .chunks
        .iter()
        .enumerate()
        .map(|(index, chunk)| {
            let definitions = std::mem::take(&mut definitions[index]);
            prepare_chunk(lang, &bytes, &extraction, chunk, definitions)
        })
        .collect();
    PreparedBlob {
        key,
        lang,
        chunks,
        signature: Signature::of(&bytes),
        outcome: Ok(extraction),
        bytes,
    }
}

/// Returns the reason why the content of a blob should not be indexed, or `None` if it should.
pub fn left_out(bytes: &[u8], max_blob_bytes: u64) -> Option<SkipReason> {
    match extract::classify(bytes, max_blob_bytes as usize) {
        Content::Text => None,
        Content::Binary => Some(SkipReason::Binary),
        Content::LfsPointer => Some(SkipReason::LfsPointer),
        Content::Generated { .. } => Some(SkipReason::Generated),
        Content::Minified => Some(SkipReason::Minified),
        Content::TooLarge => Some(SkipReason::TooLarge),
    }
}

fn prepare_chunk(
    lang: Lang,
    bytes: &[u8],
    extraction: &Extraction,
    chunk: &Chunk,
    definitions: Vec<u32>,
) -> PreparedChunk {
    let head = head(bytes, extraction, chunk);
    let meta = DocMeta {
        n_tokens: 0,
        n_bytes: chunk.range.len() as u32,
        lang,
        kind: chunk.kind,
        n_definitions: definitions.len().min(255) as u8,
    };
    PreparedChunk {
        key: chunk_key(lang, bytes, extraction, chunk, &head, &definitions),
        meta,
        head,
        range: chunk.range,
        definitions,
        recorded: None,
    }
}

/// Returns, for each chunk, the indices of the definitions whose names it contains.
fn definitions_by_chunk(extraction: &Extraction) -> Vec<Vec<u32>> {
    let mut by_chunk = vec![Vec::new(); extraction.chunks.len()];
    for (index, definition) in extraction.definitions.iter().enumerate() {
        let at = definition.name_range.start;
        let after = extraction.chunks.partition_point(|chunk| chunk.range.start <= at);
        if let Some(chunk) = after.checked_sub(1)
            && at < extraction.chunks[chunk].range.end
        {
            by_chunk[chunk].push(index as u32);
        }
    }
    by_chunk
}

/// Returns the head of a chunk: the names of its containers, outermost first. For a later part of a split item, the
/// signature of the item follows.
fn head(bytes: &[u8], extraction: &Extraction, chunk: &Chunk) -> String {
    let Some(about) = chunk
        .definition
        .and_then(|index| extraction.definitions.get(index as usize))
    else {
        return String::new();
    };
    let mut words = Vec::new();
    let mut next = about.container;
    while let Some(container) = next.and_then(|index| extraction.definitions.get(index as usize)) {
        words.push(container.name.as_str());
        next = container.container;
    }
    words.reverse();
    words.extend(about.qualifier.as_deref());
    let signature = String::from_utf8_lossy(signature(bytes, about));
    if chunk.part > 0 {
        words.push(&signature);
    }
    words.join(" ")
}

fn signature<'a>(bytes: &'a [u8], definition: &Definition) -> &'a [u8] {
    let whole = bytes.get(definition.signature.as_usize()).unwrap_or_default();
    &whole[..whole.len().min(MAX_HEAD_SIGNATURE_BYTES)]
}

fn chunk_key(
    lang: Lang,
    bytes: &[u8],
    extraction: &Extraction,
    chunk: &Chunk,
    head: &str,
    definitions: &[u32],
) -> ChunkKey {
    let mut hasher = blake3::Hasher::new();
    let mut field = |bytes: &[u8]| {
        hasher.update(&(bytes.len() as u32).to_le_bytes());
        hasher.update(bytes);
    };
    field(&lang.0.to_le_bytes());
    field(&[chunk.kind as u8]);
    field(head.as_bytes());
    for &index in definitions {
        field(extraction.definitions[index as usize].name.as_bytes());
    }
    field(&bytes[chunk.range.as_usize()]);
    let hash = hasher.finalize();
    ChunkKey(hash.as_bytes()[..16].try_into().expect("sixteen of thirty-two bytes"))
}
