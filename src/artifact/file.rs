//! Reads and writes artifact files. A file contains the artifacts of one segment.
//!
//! Sections of the file (format 1, little endian):
//! - `meta`: u64 recipe | u32 n_blobs | u32 length of an id in bytes (20 or 32).
//! - `blobs`: n_blobs × (id, u8 status (0 indexed, otherwise the skip reason), 1 byte of padding, u16 language of the
//!   key, u16 language used to parse the blob, 2 bytes of padding, u32 first entry in `docs`, u32 number of documents,
//!   core record: u32 block, u32 offset in the block, u32 length; references record: the same three fields).
//! - `by_key`: n_blobs × u32, the indexes into `blobs` sorted by (id, language).
//! - `docs`: one u32 per chunk, its document number, blob by blob.
//! - `core`, `refs`: zstd frames of about 32 KiB and 128 KiB of records.
//! - `core_blocks`, `refs_blocks`: for each frame u64 offset, u32 length, u32 decompressed length, u64 xxh3 of the
//!   frame.

use std::cell::RefCell;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use xxhash_rust::xxh3::xxh3_64;

use crate::extract::{Binding, Extraction, Reference};
use crate::model::{BlobId, Lang, Oid};
use crate::sidecar::{
    Bytes, CompressError, FileError, SectionFile, SectionWriter, Sidecar, Store, compress, decompress,
};

use super::check::check_record;
use super::codec::{RecordError, decode_core, decode_references, encode_core, encode_references};
use super::key::{ArtifactKey, SkipReason, Status};

/// The version of the file format.
pub const FORMAT: u32 = 1;
/// Size of an entry in `blobs` without the id, in bytes.
const FACTS_BYTES: usize = 40;
const MIN_ID_BYTES: usize = 20;
/// The offsets of the core record and the references record in these bytes.
const CORE_AT: usize = 16;
const REFERENCES_AT: usize = 28;
const BLOCK_ENTRY_BYTES: usize = 24;
/// Size at which a block is complete. A larger record has a block of its own. Core blocks are smaller because every
/// query reads a few of them, while references are read in bulk.
const CORE_BLOCK_BYTES: usize = 32 << 10;
const REFERENCES_BLOCK_BYTES: usize = 128 << 10;
/// Limit on the decompressed size of a block. The extraction of the largest indexed file is smaller.
const MAX_BLOCK_BYTES: usize = 256 << 20;

/// Builds an artifact file in memory.
#[derive(Debug)]
pub struct ArtifactWriter {
    recipe: u64,
    blobs: Vec<u8>,
    keys: Vec<ArtifactKey>,
    docs: Vec<u8>,
    core: BlockWriter,
    references: BlockWriter,
}

impl ArtifactWriter {
    /// Starts an empty file for artifacts that are extracted with `recipe`.
    pub fn new(recipe: u64) -> Self {
        Self {
            recipe,
            blobs: Vec::new(),
            keys: Vec::new(),
            docs: Vec::new(),
            core: BlockWriter::new(CORE_BLOCK_BYTES),
            references: BlockWriter::new(REFERENCES_BLOCK_BYTES),
        }
    }

    /// Adds a blob that was extracted as `lang`. `docs` contains the document number of each chunk.
    pub fn push(&mut self, key: ArtifactKey, lang: Lang, extraction: &Extraction, docs: &[u32]) {
        debug_assert_eq!(extraction.chunks.len(), docs.len());
        let core = self.core.push(&encode_core(extraction));
        let references = self.references.push(&encode_references(extraction));
        self.push_entry(key, 0, lang, docs, core, references);
    }

    /// Adds a blob that was not extracted.
    pub fn push_skipped(&mut self, key: ArtifactKey, reason: SkipReason) {
        self.push_entry(
            key,
            reason as u8,
            key.lang,
            &[],
            RecordAt::default(),
            RecordAt::default(),
        );
    }

    /// Appends all blobs of another file, in order. Copies the records and document numbers unchanged.
    pub fn append(&mut self, other: &ArtifactFile) -> Result<(), FileError> {
        self.append_some(other, |_| true, Some)
    }

    /// Appends the blobs of `other` for which `stays` returns true, in order. `stays` is called with the number of each
    /// blob, and `doc_number` maps the document numbers of `other` to new ones. Copies the records unchanged.
    pub fn append_some(
        &mut self,
        other: &ArtifactFile,
        stays: impl Fn(u32) -> bool,
        doc_number: impl Fn(u32) -> Option<u32>,
    ) -> Result<(), FileError> {
        let mut opened = OpenedBlocks::default();
        let mut staying = (0..other.n_blobs()).filter(|&index| stays(index));
        staying.try_for_each(|index| self.copy(other, index, &doc_number, &mut opened))
    }

    /// Appends one blob of `other`, as [`Self::append_some`] does. `opened` caches the decompressed blocks of `other`,
    /// so copying blobs in order decompresses each block only once.
    pub fn copy(
        &mut self,
        other: &ArtifactFile,
        index: u32,
        doc_number: impl FnMut(u32) -> Option<u32>,
        opened: &mut OpenedBlocks,
    ) -> Result<(), FileError> {
        let damaged = || other.file.damaged(format!("entry of blob {index}"));
        let key = other.key(index).ok_or_else(damaged)?;
        match other.status(index).ok_or_else(damaged)? {
            Status::Skipped(reason) => self.push_skipped(key, reason),
            Status::Indexed => {
                let lang = other.lang(index).ok_or_else(damaged)?;
                let docs: Option<Vec<u32>> = other.docs(index).map(doc_number).collect();
                let docs = docs.ok_or_else(damaged)?;
                let core = other.record_bytes(index, &other.core, CORE_AT, &mut opened.core)?;
                let core = self.core.push(core);
                let references = other.record_bytes(index, &other.references, REFERENCES_AT, &mut opened.references)?;
                let references = self.references.push(references);
                self.push_entry(key, 0, lang, &docs, core, references);
            }
        }
        Ok(())
    }

    /// Returns the number of blobs added so far.
    pub fn n_blobs(&self) -> u32 {
        self.keys.len() as u32
    }

    /// Returns the content of the file.
    pub fn finish(self) -> Vec<u8> {
        let mut order: Vec<u32> = (0..self.n_blobs()).collect();
        order.sort_unstable_by_key(|&index| self.keys[index as usize]);
        let mut meta = self.recipe.to_le_bytes().to_vec();
        meta.extend_from_slice(&self.n_blobs().to_le_bytes());
        let id_bytes = self
            .keys
            .first()
            .map_or(MIN_ID_BYTES, |key| key.blob.0.as_bytes().len());
        meta.extend_from_slice(&(id_bytes as u32).to_le_bytes());
        let (core, core_blocks) = self.core.finish();
        let (references, references_blocks) = self.references.finish();
        let mut writer = SectionWriter::new(FORMAT);
        writer.add("meta", meta);
        writer.add("blobs", self.blobs);
        writer.add("by_key", order.iter().flat_map(|index| index.to_le_bytes()).collect());
        writer.add("docs", self.docs);
        writer.add("core_blocks", core_blocks);
        writer.add("core", core);
        writer.add("refs_blocks", references_blocks);
        writer.add("refs", references);
        writer.finish()
    }

    fn push_entry(
        &mut self,
        key: ArtifactKey,
        status: u8,
        lang: Lang,
        docs: &[u32],
        core: RecordAt,
        references: RecordAt,
    ) {
        let id = key.blob.0.as_bytes();
        debug_assert!(
            self.keys
                .last()
                .is_none_or(|known| known.blob.0.as_bytes().len() == id.len()),
            "one object format"
        );
        self.blobs.extend_from_slice(id);
        self.blobs.extend_from_slice(&[status, 0]);
        for lang in [key.lang, lang] {
            self.blobs.extend_from_slice(&lang.0.to_le_bytes());
        }
        self.blobs.extend_from_slice(&[0, 0]);
        let first_doc = (self.docs.len() / 4) as u32;
        let numbers = [
            first_doc,
            docs.len() as u32,
            core.block,
            core.offset,
            core.length,
            references.block,
            references.offset,
            references.length,
        ];
        self.blobs
            .extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
        self.docs.extend(docs.iter().flat_map(|doc| doc.to_le_bytes()));
        self.keys.push(key);
    }
}

/// A cache of the last decompressed blocks of each kind, core and references, with their numbers.
#[derive(Debug, Default)]
pub struct OpenedBlocks {
    core: Vec<(u32, Vec<u8>)>,
    references: Vec<(u32, Vec<u8>)>,
}

thread_local! {
    /// The blocks that this thread decompressed last, and the number of their file. Neighbouring blobs are often read
    /// one after the other, and those of a few files by every search.
    static LAST_OPENED: RefCell<(u64, OpenedBlocks)> = RefCell::default();
}

/// Limit on the total size of the cached blocks of one kind.
const MAX_KEPT_BYTES: usize = 1 << 20;

/// An open artifact file. Blobs are numbered from 0 in each file.
#[derive(Clone, Debug)]
pub struct ArtifactFile {
    /// Unique for each opened file. Clones have the same number.
    number: u64,
    file: SectionFile,
    recipe: u64,
    id_bytes: usize,
    blobs: Bytes,
    by_key: Bytes,
    docs: Bytes,
    core: Blocks,
    references: Blocks,
}

impl ArtifactFile {
    /// Opens the file `name` of the sidecar.
    pub fn open(sidecar: &Sidecar, name: &str) -> Result<Self, FileError> {
        Self::from_sections(SectionFile::open(sidecar, Store::Artifacts, name, FORMAT)?)
    }

    /// Opens an artifact file in memory. `name` is used in error messages.
    pub fn from_bytes(name: &Path, bytes: impl Into<Bytes>) -> Result<Self, FileError> {
        Self::from_sections(SectionFile::from_bytes(name, bytes.into(), FORMAT)?)
    }

    fn from_sections(file: SectionFile) -> Result<Self, FileError> {
        let meta = file.section("meta")?;
        let blobs = file.section("blobs")?;
        let by_key = file.section("by_key")?;
        let docs = file.section("docs")?;
        if meta.len() != 16 {
            return Err(file.damaged("meta"));
        }
        let (n_blobs, id_bytes) = (u32_at(&meta, 8) as usize, u32_at(&meta, 12) as usize);
        if !matches!(id_bytes, MIN_ID_BYTES | 32) || Some(blobs.len()) != n_blobs.checked_mul(id_bytes + FACTS_BYTES) {
            return Err(file.damaged("number of blobs"));
        }
        if by_key.len() != n_blobs * 4 {
            return Err(file.damaged("order of blobs"));
        }
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Ok(Self {
            number: NEXT.fetch_add(1, Ordering::Relaxed),
            recipe: u64::from_le_bytes(meta[..8].try_into().expect("eight bytes")),
            core: Blocks::open(&file, "core_blocks", "core")?,
            references: Blocks::open(&file, "refs_blocks", "refs")?,
            id_bytes,
            blobs,
            by_key,
            docs,
            file,
        })
    }

    /// Returns the recipe of the artifacts.
    pub fn recipe(&self) -> u64 {
        self.recipe
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// Returns the number of blobs in the file.
    pub fn n_blobs(&self) -> u32 {
        (self.blobs.len() / (self.id_bytes + FACTS_BYTES)) as u32
    }

    /// Returns the number of the blob with this key, or `None` if the file does not contain it.
    pub fn find(&self, key: ArtifactKey) -> Option<u32> {
        let (mut low, mut high) = (0, self.n_blobs());
        while low < high {
            let middle = low + (high - low) / 2;
            let index = u32_at(&self.by_key, middle as usize * 4);
            match self.key(index)?.cmp(&key) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
                std::cmp::Ordering::Equal => return Some(index),
            }
        }
        None
    }

    /// Returns the key of a blob. Returns `None` if `index` is out of range.
    pub fn key(&self, index: u32) -> Option<ArtifactKey> {
        let (id, facts) = self.entry(index)?;
        Some(ArtifactKey {
            blob: BlobId(Oid::from_bytes(id).ok()?),
            lang: Lang(u16::from_le_bytes([facts[2], facts[3]])),
        })
    }

    /// Returns the language that a blob was parsed as. It is the language of the key, or was detected from the content
    /// if the path is ambiguous.
    pub fn lang(&self, index: u32) -> Option<Lang> {
        let (_, facts) = self.entry(index)?;
        Some(Lang(u16::from_le_bytes([facts[4], facts[5]])))
    }

    /// Returns the status of a blob.
    pub fn status(&self, index: u32) -> Option<Status> {
        let (_, facts) = self.entry(index)?;
        match facts[0] {
            0 => Some(Status::Indexed),
            number => SkipReason::from_number(number).map(Status::Skipped),
        }
    }

    /// Returns the document numbers of a blob's chunks, in chunk order.
    pub fn docs(&self, index: u32) -> impl ExactSizeIterator<Item = u32> + '_ {
        let bytes = self
            .entry(index)
            .and_then(|(_, facts)| {
                let first = u32_at(facts, 8) as usize * 4;
                self.docs.get(first..first + u32_at(facts, 12) as usize * 4)
            })
            .unwrap_or_default();
        bytes.chunks_exact(4).map(|raw| u32_at(raw, 0))
    }

    /// Returns the uncompressed size of a blob's records in bytes. Used to estimate the share of the blob in the file.
    pub fn record_bytes_of(&self, index: u32) -> u64 {
        let length = |(_, facts): (&[u8], &[u8])| {
            u64::from(u32_at(facts, CORE_AT + 8)) + u64::from(u32_at(facts, REFERENCES_AT + 8))
        };
        self.entry(index).map_or(0, length)
    }

    /// Returns the extraction of a blob, without its references.
    pub fn extraction(&self, index: u32) -> Result<Extraction, FileError> {
        self.record(index, &self.core, CORE_AT, |opened| &mut opened.core, decode_core)
    }

    /// Returns the references of a blob.
    pub fn references(&self, index: u32) -> Result<Vec<Reference>, FileError> {
        Ok(self.links(index)?.0)
    }

    /// Returns the references and the bindings of a blob.
    pub fn links(&self, index: u32) -> Result<(Vec<Reference>, Vec<Binding>), FileError> {
        self.record(
            index,
            &self.references,
            REFERENCES_AT,
            |opened| &mut opened.references,
            decode_references,
        )
    }

    /// Returns the size of the file in bytes.
    pub fn n_bytes(&self) -> u64 {
        self.file.n_bytes()
    }

    /// Returns the compressed size and the decompressed size of each block, as declared in the file.
    pub fn block_sizes(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let tables = [&self.core.table, &self.references.table];
        let entries = tables
            .into_iter()
            .flat_map(|table| table.chunks_exact(BLOCK_ENTRY_BYTES));
        entries.map(|entry| (u64::from(u32_at(entry, 8)), u64::from(u32_at(entry, 12))))
    }

    /// Returns the length of an object id in bytes, or 20 if the file has no blobs.
    pub fn id_bytes(&self) -> usize {
        self.id_bytes
    }

    /// Verifies the checksum of every section, decodes every record and checks that all parts are consistent.
    pub fn verify(&self) -> Result<(), FileError> {
        self.verify_each(|_, _| true)
    }

    /// Like [`Self::verify`]; `is_chunk` also checks each chunk, given the number of its document and its length.
    pub fn verify_each(&self, is_chunk: impl Fn(u32, usize) -> bool) -> Result<(), FileError> {
        self.file.verify()?;
        let damaged = |what: String| self.file.damaged(what);
        let by_rank = |rank: u32| self.key(u32_at(&self.by_key, rank as usize * 4));
        let is_ordered = |rank: u32| by_rank(rank).is_some() && (rank == 0 || by_rank(rank - 1) < by_rank(rank));
        if let Some(rank) = (0..self.n_blobs()).find(|&rank| !is_ordered(rank)) {
            return Err(damaged(format!("order of blobs at {rank}")));
        }
        let mut n_docs = 0;
        for index in 0..self.n_blobs() {
            let (_, facts) = self
                .entry(index)
                .ok_or_else(|| damaged(format!("entry of blob {index}")))?;
            let n_chunks = match self.status(index) {
                Some(Status::Indexed) => {
                    let mut extraction = self.extraction(index)?;
                    (extraction.references, extraction.bindings) = self.links(index)?;
                    check_record(&extraction).map_err(|what| damaged(format!("record of blob {index}: {what}")))?;
                    let mut chunks = self.docs(index).zip(&extraction.chunks);
                    if !chunks.all(|(doc, chunk)| is_chunk(doc, chunk.range.len())) {
                        return Err(damaged(format!("chunks of blob {index}")));
                    }
                    extraction.chunks.len()
                }
                Some(Status::Skipped(_)) => 0,
                None => return Err(damaged(format!("status of blob {index}"))),
            };
            // A skipped blob has no chunks, so its first entry in `docs` has no meaning.
            let begins_well = n_chunks == 0 || u32_at(facts, 8) as usize == n_docs;
            if !begins_well || u32_at(facts, 12) as usize != n_chunks {
                return Err(damaged(format!("documents of blob {index}")));
            }
            n_docs += n_chunks;
        }
        if n_docs * 4 == self.docs.len() {
            Ok(())
        } else {
            Err(damaged("number of documents".to_owned()))
        }
    }

    fn record<T>(
        &self,
        index: u32,
        blocks: &Blocks,
        at: usize,
        kept: impl Fn(&mut OpenedBlocks) -> &mut Vec<(u32, Vec<u8>)>,
        decode: impl Fn(&[u8]) -> Result<T, RecordError>,
    ) -> Result<T, FileError> {
        LAST_OPENED.with_borrow_mut(|(number, opened)| {
            if *number != self.number {
                (*number, *opened) = (self.number, OpenedBlocks::default());
            }
            let opened = kept(opened);
            let bytes = self.record_bytes(index, blocks, at, opened)?;
            let record = decode(bytes).map_err(|error| self.file.damaged(format!("record of blob {index}: {error}")));
            opened.retain(|(_, block)| block.len() <= MAX_KEPT_BYTES);
            record
        })
    }

    /// Returns the encoded bytes of a record. `opened` caches the decompressed blocks, so reading blobs in order
    /// decompresses each block only once.
    fn record_bytes<'a>(
        &self,
        index: u32,
        blocks: &Blocks,
        at: usize,
        opened: &'a mut Vec<(u32, Vec<u8>)>,
    ) -> Result<&'a [u8], FileError> {
        let damaged = |what: String| self.file.damaged(what);
        let (_, facts) = self.entry(index).ok_or_else(|| damaged(format!("no blob {index}")))?;
        let place = RecordAt {
            block: u32_at(facts, at),
            offset: u32_at(facts, at + 4),
            length: u32_at(facts, at + 8),
        };
        let position = opened.iter().position(|(number, _)| *number == place.block);
        let position = match position {
            Some(position) => position,
            None => {
                let block = blocks
                    .block(place.block)
                    .map_err(|what| damaged(format!("block {}: {what}", place.block)))?;
                let mut n_bytes: usize = block.len() + opened.iter().map(|(_, block)| block.len()).sum::<usize>();
                while n_bytes > MAX_KEPT_BYTES && !opened.is_empty() {
                    n_bytes -= opened.remove(0).1.len();
                }
                opened.push((place.block, block));
                opened.len() - 1
            }
        };
        opened[position]
            .1
            .get(place.offset as usize..place.offset as usize + place.length as usize)
            .ok_or_else(|| damaged(format!("record of blob {index}")))
    }

    /// Returns the id of a blob and the remaining bytes of its entry.
    fn entry(&self, index: u32) -> Option<(&[u8], &[u8])> {
        let width = self.id_bytes + FACTS_BYTES;
        let start = index as usize * width;
        Some(self.blobs.get(start..start + width)?.split_at(self.id_bytes))
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct RecordAt {
    block: u32,
    offset: u32,
    length: u32,
}

#[derive(Debug)]
struct BlockWriter {
    target_bytes: usize,
    open: Vec<u8>,
    frames: Vec<u8>,
    table: Vec<u8>,
}

impl BlockWriter {
    fn new(target_bytes: usize) -> Self {
        Self {
            target_bytes,
            open: Vec::new(),
            frames: Vec::new(),
            table: Vec::new(),
        }
    }

    fn push(&mut self, record: &[u8]) -> RecordAt {
        if !self.open.is_empty() && self.open.len() + record.len() > self.target_bytes {
            self.close();
        }
        let place = RecordAt {
            block: (self.table.len() / BLOCK_ENTRY_BYTES) as u32,
            offset: self.open.len() as u32,
            length: record.len() as u32,
        };
        self.open.extend_from_slice(record);
        place
    }

    fn close(&mut self) {
        let frame = compress(&self.open);
        self.table.extend_from_slice(&(self.frames.len() as u64).to_le_bytes());
        self.table.extend_from_slice(&(frame.len() as u32).to_le_bytes());
        self.table.extend_from_slice(&(self.open.len() as u32).to_le_bytes());
        self.table.extend_from_slice(&xxh3_64(&frame).to_le_bytes());
        self.frames.extend_from_slice(&frame);
        self.open.clear();
    }

    fn finish(mut self) -> (Vec<u8>, Vec<u8>) {
        if !self.open.is_empty() {
            self.close();
        }
        (self.frames, self.table)
    }
}

#[derive(Clone, Debug)]
struct Blocks {
    frames: Bytes,
    table: Bytes,
}

impl Blocks {
    fn open(file: &SectionFile, table: &str, frames: &str) -> Result<Self, FileError> {
        Ok(Self {
            frames: file.section(frames)?,
            table: file.section(table)?,
        })
    }

    fn block(&self, number: u32) -> Result<Vec<u8>, BlockError> {
        let start = number as usize * BLOCK_ENTRY_BYTES;
        let entry = self
            .table
            .get(start..start + BLOCK_ENTRY_BYTES)
            .ok_or(BlockError::Outside)?;
        let offset = u64::from_le_bytes(entry[..8].try_into().expect("eight bytes")) as usize;
        let frame = offset
            .checked_add(u32_at(entry, 8) as usize)
            .and_then(|end| self.frames.get(offset..end))
            .ok_or(BlockError::Outside)?;
        if xxh3_64(frame).to_le_bytes() != entry[16..24] {
            return Err(BlockError::Checksum);
        }
        Ok(decompress(frame, u32_at(entry, 12) as usize, MAX_BLOCK_BYTES)?)
    }
}

#[derive(Debug, thiserror::Error)]
enum BlockError {
    #[error("block is outside the file")]
    Outside,
    #[error("checksum")]
    Checksum,
    #[error(transparent)]
    Compress(#[from] CompressError),
}

fn u32_at(raw: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(raw[at..at + 4].try_into().expect("four bytes"))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use crate::extract::{Chunk, ChunkKind};
    use crate::model::ByteRange;

    fn key(byte: u8, lang: u16) -> ArtifactKey {
        ArtifactKey {
            blob: BlobId(Oid::from_bytes(&[byte; 20]).unwrap()),
            lang: Lang(lang),
        }
    }

    fn extraction(n_bytes: u32) -> Extraction {
        Extraction {
            n_lines: n_bytes,
            chunks: vec![Chunk {
                range: ByteRange::new(0, n_bytes),
                start_line: 1,
                end_line: n_bytes,
                kind: ChunkKind::Window,
                definition: None,
                part: 0,
            }],
            ..Extraction::default()
        }
    }

    fn sample() -> Vec<u8> {
        let mut writer = ArtifactWriter::new(4);
        writer.push(key(9, 1), Lang(1), &extraction(10), &[0]);
        writer.push_skipped(key(3, 1), SkipReason::Binary);
        writer.push(key(9, 2), Lang(2), &extraction(20), &[1]);
        writer.finish()
    }

    #[test]
    fn blobs_are_found_by_key_and_come_back() {
        let file = ArtifactFile::from_bytes(Path::new("sample"), sample()).unwrap();
        assert_eq!((file.recipe(), file.n_blobs()), (4, 3));
        let index = file.find(key(9, 2)).unwrap();
        assert_eq!(file.extraction(index).unwrap(), extraction(20));
        assert_eq!(file.docs(index).collect::<Vec<_>>(), [1]);
        let skipped = file.find(key(3, 1)).unwrap();
        assert_eq!(file.status(skipped), Some(Status::Skipped(SkipReason::Binary)));
        assert_eq!(file.find(key(3, 2)), None);
        file.verify().unwrap();
    }

    #[test]
    fn appending_equals_writing_one_file() {
        let mut halves = [ArtifactWriter::new(4), ArtifactWriter::new(4)];
        let mut whole = ArtifactWriter::new(4);
        for (number, half) in [(1, 0), (2, 0), (3, 1), (4, 1)] {
            let docs = [u32::from(number) * 10];
            for writer in [&mut halves[half], &mut whole] {
                writer.push(key(number, 1), Lang(2), &extraction(u32::from(number)), &docs);
                writer.push_skipped(key(9 - number, 1), SkipReason::Binary);
            }
        }
        let mut merged = ArtifactWriter::new(4);
        for half in halves {
            let file = ArtifactFile::from_bytes(Path::new("half"), half.finish()).unwrap();
            merged.append(&file).unwrap();
        }
        assert_eq!(merged.finish(), whole.finish());
    }

    #[test]
    fn flipped_bits_are_errors_not_answers() {
        let good = sample();
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 16;
            let Ok(file) = ArtifactFile::from_bytes(Path::new("sample"), bad) else {
                continue;
            };
            if let Some(index) = file.find(key(9, 2)) {
                assert!(
                    file.extraction(index).map_or(true, |back| back == extraction(20)),
                    "byte {at}"
                );
            }
        }
    }
}
