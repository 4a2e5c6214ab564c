//! Writes the lexical file of a segment.

use std::path::Path;

use tantivy::directory::{Directory, RamDirectory};
use tantivy::indexer::SingleSegmentIndexWriter;
use tantivy::schema::{Field, IndexRecordOption, Schema, TextFieldIndexing, TextOptions};
use tantivy::{Index, TantivyDocument};

use crate::model::ChunkKey;
use crate::sidecar::SectionWriter;

use super::reader::{DocMeta, FORMAT, LexicalError};
use super::terms::{normal_name, words};
use super::tokenizer::{self, CodeTokenizer};

/// Initial size of tantivy's memory arena. It grows if a segment needs more.
const ARENA_BYTES: usize = 64 << 20;
/// The files of a finished tantivy segment that are stored: their extensions, and the names of their sections. The
/// other files of tantivy are empty for this schema.
pub(super) const COMPONENTS: [(&str, &str); 6] = [
    ("term", "t.term"),
    ("idx", "t.idx"),
    ("pos", "t.pos"),
    ("fieldnorm", "t.fieldnorm"),
    ("fast", "t.fast"),
    ("store", "t.store"),
];
/// The segment id in the names of packed tantivy files. With tantivy's random id, files with the same input would
/// differ.
pub(super) const FIXED_SEGMENT_ID: &str = "00000000000000000000000000000000";

/// The searchable content of a chunk.
#[derive(Clone, Copy, Debug)]
pub struct LexicalDoc<'a> {
    /// The key of the chunk.
    pub key: ChunkKey,
    /// The metadata for ranking. The writer sets `n_tokens`.
    pub meta: DocMeta,
    /// The names that the chunk defines.
    pub names: &'a [&'a str],
    /// The names of the containers. For a later part of a split item, also the signature of the item.
    pub head: &'a str,
    /// The text of the chunk.
    pub body: &'a str,
}

/// Writes the lexical file of one segment.
pub struct LexicalWriter {
    directory: RamDirectory,
    index: SingleSegmentIndexWriter,
    fields: Fields,
    tables: Tables,
}

/// The sections of the file other than those of tantivy.
#[derive(Default)]
pub(super) struct Tables {
    metas: Vec<u8>,
    keys: Vec<ChunkKey>,
    signatures: Vec<u8>,
    signature_ends: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Fields {
    pub(super) name: Field,
    pub(super) body: Field,
}

pub(super) fn schema() -> (Schema, Fields) {
    let mut builder = Schema::builder();
    let counted = TextFieldIndexing::default()
        .set_tokenizer(tokenizer::NAME)
        .set_fieldnorms(false)
        .set_index_option(IndexRecordOption::WithFreqs);
    let text = TextOptions::default().set_indexing_options(counted);
    let exact = TextFieldIndexing::default()
        .set_tokenizer("raw")
        .set_fieldnorms(false)
        .set_index_option(IndexRecordOption::Basic);
    let fields = Fields {
        name: builder.add_text_field("name", text.clone()),
        body: builder.add_text_field("body", text),
    };
    builder.add_text_field("exact", TextOptions::default().set_indexing_options(exact));
    (builder.build(), fields)
}

pub(super) fn register_tokenizer(index: &Index) {
    index.tokenizers().register(tokenizer::NAME, CodeTokenizer::default());
}

impl LexicalWriter {
    /// Starts an empty segment.
    pub fn new() -> Result<Self, LexicalError> {
        let (schema, fields) = schema();
        let directory = RamDirectory::create();
        let tokenizers = tantivy::tokenizer::TokenizerManager::default();
        tokenizers.register(tokenizer::NAME, CodeTokenizer::default());
        let index = Index::builder()
            .schema(schema)
            .tokenizers(tokenizers)
            .single_segment_index_writer(directory.clone(), ARENA_BYTES)
            .map_err(LexicalError::from_tantivy)?;
        Ok(Self {
            directory,
            index,
            fields,
            tables: Tables::default(),
        })
    }

    /// Adds a document. The first document has number 0.
    pub fn add(&mut self, doc: LexicalDoc<'_>) -> Result<(), LexicalError> {
        let mut document = TantivyDocument::default();
        for name in doc.names {
            document.add_text(self.fields.name, name);
            document.add_text(exact_field(), normal_name(name));
        }
        // The head is added to the text. A separate field did not improve ranking and required another term dictionary.
        if !doc.head.is_empty() {
            document.add_text(self.fields.body, doc.head);
        }
        document.add_text(self.fields.body, doc.body);
        self.index.add_document(document).map_err(LexicalError::from_tantivy)?;
        let meta = DocMeta {
            n_tokens: words(doc.body).count() as u32,
            ..doc.meta
        };
        self.tables.add_doc(doc.key, meta);
        Ok(())
    }

    /// Adds the n-gram signature of the next blob. For a skipped blob, it is empty.
    pub fn add_signature(&mut self, signature: &[u8]) {
        self.tables.add_signature(signature);
    }

    /// Returns the number of documents added so far.
    pub fn n_docs(&self) -> u32 {
        self.tables.n_docs()
    }

    /// Returns the content of the file.
    pub fn finish(self) -> Result<Vec<u8>, LexicalError> {
        let index = self.index.finalize().map_err(LexicalError::from_tantivy)?;
        self.tables.finish(&index, &self.directory)
    }
}

impl Tables {
    pub(super) fn add_doc(&mut self, key: ChunkKey, meta: DocMeta) {
        self.metas.extend_from_slice(&meta.to_bytes());
        self.keys.push(key);
    }

    pub(super) fn add_signature(&mut self, signature: &[u8]) {
        self.signatures.extend_from_slice(signature);
        self.signature_ends
            .extend_from_slice(&(self.signatures.len() as u32).to_le_bytes());
    }

    fn n_docs(&self) -> u32 {
        self.keys.len() as u32
    }

    /// Returns the content of the file. `index` must be in `directory` and contain the same documents.
    pub(super) fn finish(self, index: &Index, directory: &RamDirectory) -> Result<Vec<u8>, LexicalError> {
        let mut order: Vec<u32> = (0..self.n_docs()).collect();
        order.sort_unstable_by_key(|&doc| self.keys[doc as usize]);
        let mut file = SectionWriter::new(FORMAT);
        file.add("docs", self.metas);
        file.add("keys", self.keys.iter().flat_map(|key| key.0).collect());
        file.add("by_key", order.iter().flat_map(|doc| doc.to_le_bytes()).collect());
        file.add("ngrams", self.signatures);
        file.add("ngram_ends", self.signature_ends);
        add_components(&mut file, index, directory)?;
        Ok(file.finish())
    }
}

pub(super) fn exact_field() -> Field {
    Field::from_field_id(2)
}

/// Adds the files of a tantivy index that has one segment. Replaces the random id of the segment with the fixed one.
fn add_components(file: &mut SectionWriter, index: &Index, directory: &RamDirectory) -> Result<(), LexicalError> {
    let meta = directory
        .atomic_read(Path::new("meta.json"))
        .map_err(|error| LexicalError::Tantivy(error.to_string()))?;
    let segments = index.searchable_segment_ids().map_err(LexicalError::from_tantivy)?;
    let [segment] = segments.as_slice() else {
        return Err(LexicalError::Tantivy(format!(
            "expected one segment, found {}",
            segments.len()
        )));
    };
    let meta = String::from_utf8_lossy(&meta)
        .replace(&uuid_form(&segment.uuid_string()), &uuid_form(FIXED_SEGMENT_ID))
        .replace(&segment.uuid_string(), FIXED_SEGMENT_ID);
    file.add("t.meta", meta.into_bytes());
    for (ending, section) in COMPONENTS {
        let name = format!("{}.{ending}", segment.uuid_string());
        let bytes = directory
            .open_read(Path::new(&name))
            .map_err(|error| LexicalError::Tantivy(error.to_string()))?
            .read_bytes()
            .map_err(|error| LexicalError::Tantivy(error.to_string()))?;
        file.add(section, bytes.to_vec());
    }
    Ok(())
}

/// Formats an id as `8-4-4-4-12`, as tantivy does in its files.
fn uuid_form(hex: &str) -> String {
    [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
}

impl std::fmt::Debug for LexicalWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "LexicalWriter({} documents)", self.n_docs())
    }
}
