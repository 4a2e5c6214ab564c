//! The file that keeps the facts of an indexer.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

use super::check::{Checked, Name};
use super::scip::is_name;
use super::symbol::{Symbol, end_of_package};
use crate::model::varint::{put, take, take_u32};
use crate::model::{BlobId, Oid};
use crate::sidecar::{
    Bytes, FileError, SectionFile, SectionWriter, Sidecar, Store, StoredFile, compress, decode, decompress, encode,
};

/// Uncompressed size in bytes at which a block of documents ends.
const BLOCK_BYTES: usize = 64 << 10;
/// Limits on the uncompressed size of a section or block in bytes: this size, and a multiple of the file's size.
const MAX_BYTES: usize = 1 << 30;
const MAX_RATIO: usize = 1_000;
const RATIO_SLACK: usize = 1 << 20;
/// Limit on the uncompressed size of all blocks, of each section and of all symbols of a file from elsewhere.
const MAX_RECEIVED_BYTES: usize = 64 << 20;
/// Limit on the documents of a part of a bundle.
const MAX_PART_DOCUMENTS: usize = 1 << 14;
/// Limit on the names of an indexer and its versions in a file from elsewhere, in bytes.
const MAX_META_BYTES: usize = 4 << 20;
/// Limits on the size of a row without its path, and on what an occurrence adds to a section.
const ROW_BYTES: usize = 64;
const OCCURRENCE_BYTES: usize = 20;

/// A name in a file, and what it means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Occurrence {
    /// The start of the name in bytes.
    pub start: u32,
    /// The number of the symbol.
    pub symbol: u32,
    /// True for the name of a definition.
    pub is_definition: bool,
}

/// The place of a document: id of the blob, path, number of the version, block, start in the block, length.
type Row = (Vec<u8>, Vec<u8>, u32, u32, u32, u32);

/// The facts of one indexer about any number of files.
///
/// Sections of the file (format 1). All except `meta` are a u64 length and a zstd frame; `meta` and `documents` are
/// records.
/// - `meta`: name of the indexer, its versions.
/// - `symbols`: ascending, without the versions of packages; each as varint length of the part shared with the one
///   before, varint length of the rest, the rest.
/// - `packages`: varint number of symbols of each package, in the order of the symbols.
/// - `suffixes`: the last byte of each symbol.
/// - `definers`: per symbol, varint number of documents that define it; differences of their numbers.
/// - `documents`: ascending by blob and path.
/// - `blocks`, `block_ends`: concatenated frames with lengths; u32 each. A document is: varint number of symbols,
///   differences of the symbols; varint number of occurrences; each as varint 2 × difference of starts + 1 for a
///   definition, varint index in the document's symbols.
#[derive(Debug)]
pub struct FactsFile {
    file: SectionFile,
    tool: String,
    versions: Vec<String>,
    rows: Vec<Row>,
    blocks: Bytes,
    block_ends: Vec<u32>,
    suffixes: Vec<u8>,
    /// The first symbol of each package.
    packages: Vec<u32>,
    definer_ends: Vec<u32>,
    definers: Vec<u32>,
    /// Limit on the uncompressed size of a section or block in bytes.
    limit: usize,
}

impl FactsFile {
    /// Format version. 1: initial.
    pub const FORMAT: u32 = 1;
    /// File extension.
    pub const ENDING: &'static str = "precise";

    /// Opens a file of the sidecar and verifies its checksums.
    pub fn open(sidecar: &Sidecar, file: &StoredFile) -> Result<Self, FileError> {
        let file = SectionFile::open(sidecar, Store::Artifacts, &file.name, Self::FORMAT)?;
        Self::from_sections(file, MAX_BYTES)
    }

    /// Opens a file from elsewhere and verifies all of it, with bounds on memory and work.
    pub fn receive(bytes: Bytes) -> Result<Self, FileError> {
        let file = SectionFile::from_bytes(Path::new("facts"), bytes, Self::FORMAT)?;
        if file.n_bytes() > MAX_RECEIVED_BYTES as u64 || file.section("meta")?.len() > MAX_META_BYTES {
            return Err(file.damaged("too large"));
        }
        let received = Self::from_sections(file, MAX_RECEIVED_BYTES)?;
        if received.rows.len() > MAX_PART_DOCUMENTS || !is_name(&received.tool) {
            return Err(received.file.damaged("too many documents, or no name of an indexer"));
        }
        received.verify()?;
        Ok(received)
    }

    fn from_sections(file: SectionFile, limit: usize) -> Result<Self, FileError> {
        // A few bytes must not become gigabytes.
        let limit = limit.min(file.n_bytes() as usize * MAX_RATIO + RATIO_SLACK);
        let damaged = |section: &str| file.damaged(format!("content of section {section}"));
        let unpacked = |section: &str| unpacked(&file, section, limit);
        let (tool, versions) = decode(&file.section("meta")?).map_err(|_| damaged("meta"))?;
        let rows: Vec<Row> = decode(&unpacked("documents")?).map_err(|_| damaged("documents"))?;
        let suffixes = unpacked("suffixes")?;
        let (mut packages, mut first) = (Vec::new(), 0u32);
        for n in numbers(&unpacked("packages")?).ok_or_else(|| damaged("packages"))? {
            packages.push(first);
            first = first.checked_add(n).ok_or_else(|| damaged("packages"))?;
        }
        let (definer_ends, definers) =
            read_definers(&unpacked("definers")?, suffixes.len(), rows.len()).ok_or_else(|| damaged("definers"))?;
        let ends = unpacked("block_ends")?;
        let ends = ends
            .chunks_exact(4)
            .map(|end| u32::from_le_bytes(std::array::from_fn(|i| end[i])));
        let is_sorted = rows.is_sorted_by(|a, b| (&a.0, &a.1) < (&b.0, &b.1));
        if !is_sorted || first as usize != suffixes.len() {
            return Err(damaged("documents"));
        }
        Ok(Self {
            tool,
            versions,
            rows,
            blocks: file.section("blocks")?,
            block_ends: ends.collect(),
            suffixes,
            packages,
            definer_ends,
            definers,
            file,
            limit,
        })
    }

    /// Returns the name of the indexer.
    pub fn tool(&self) -> &str {
        &self.tool
    }

    /// Returns the blob and the path of each document, ascending.
    pub fn documents(&self) -> impl Iterator<Item = (BlobId, &[u8])> {
        let rows = self.rows.iter();
        rows.filter_map(|(blob, path, ..)| Some((BlobId(Oid::from_bytes(blob).ok()?), path.as_slice())))
    }

    /// Returns the number of the document about a blob at a path.
    pub fn find(&self, blob: BlobId, path: &[u8]) -> Option<u32> {
        let key = (blob.0.as_bytes(), path);
        let found = self.rows.binary_search_by(|row| (&row.0[..], &row.1[..]).cmp(&key));
        found.ok().map(|number| number as u32)
    }

    /// Returns the occurrences in a document, ascending.
    pub fn occurrences(&self, document: u32) -> Result<Vec<Occurrence>, FileError> {
        let (_, _, _, block, start, length) = &self.rows[document as usize];
        let (start, end) = (*start as usize, *start as usize + *length as usize);
        let block = self.block(*block as usize)?;
        let n_symbols = self.suffixes.len() as u32;
        let read = block.get(start..end).and_then(|bytes| read_document(bytes, n_symbols));
        read.ok_or_else(|| self.file.damaged("content of a document"))
    }

    /// Returns the documents that define a symbol.
    pub fn definers(&self, symbol: u32) -> &[u32] {
        let at = symbol as usize;
        let start = at.checked_sub(1).map_or(0, |before| self.definer_ends[before]);
        &self.definers[start as usize..self.definer_ends[at] as usize]
    }

    /// Returns true if no document defines a symbol of the symbol's package.
    pub fn is_external(&self, symbol: u32) -> bool {
        let after = self.packages.partition_point(|&first| first <= symbol);
        let first = self.packages[after - 1];
        let end = self
            .packages
            .get(after)
            .map_or(self.suffixes.len(), |&next| next as usize);
        let end_of = |n: usize| n.checked_sub(1).map_or(0, |last| self.definer_ends[last]);
        end_of(first as usize) == end_of(end)
    }

    /// Returns true if a symbol is a type, function or macro rather than a variable, parameter or module.
    pub fn is_type_or_callable(&self, symbol: u32) -> bool {
        // A method ends in `().`, but only its last byte is kept; variables with this byte are joined by position.
        matches!(self.suffixes[symbol as usize], b'#' | b'!' | b'f')
    }

    /// Verifies the whole file.
    pub fn verify(&self) -> Result<(), FileError> {
        self.file.verify()?;
        let symbols = self.symbols()?;
        let mut definers = vec![Vec::new(); symbols.len()];
        self.each::<FileError>(|number, occurrences| {
            add_definers(&mut definers, number, &occurrences);
            Ok(())
        })?;
        let symbols: Vec<&str> = symbols.iter().map(String::as_str).collect();
        let expected = [
            ("packages", write_packages(&symbols)),
            ("suffixes", symbols.iter().map(|symbol| suffix(symbol)).collect()),
            ("definers", write_definers(&definers)),
        ];
        for (section, expected) in expected {
            if unpacked(&self.file, section, self.limit)? != expected {
                return Err(self.file.damaged(format!("content of section {section}")));
            }
        }
        Ok(())
    }

    /// Reads all documents in order, each with its number and its occurrences. Fails unless they fill the blocks.
    fn each<E: From<FileError>>(&self, mut act: impl FnMut(u32, Vec<Occurrence>) -> Result<(), E>) -> Result<(), E> {
        let damaged = || self.file.damaged("content of a document");
        let (mut block, mut n_blocks, mut end, mut n_bytes) = (Vec::new(), 0, 0, 0);
        for (number, (.., at, start, length)) in self.rows.iter().enumerate() {
            if end == block.len() {
                block = self.block(n_blocks)?;
                (end, n_blocks, n_bytes) = (0, n_blocks + 1, n_bytes + block.len());
            }
            if *at as usize + 1 != n_blocks || *start as usize != end || n_bytes > self.limit {
                return Err(damaged().into());
            }
            let bytes = block[end..].get(..*length as usize).ok_or_else(damaged)?;
            end += bytes.len();
            let occurrences = read_document(bytes, self.suffixes.len() as u32).ok_or_else(damaged)?;
            act(number as u32, occurrences)?;
        }
        Ok(())
    }

    fn symbols(&self) -> Result<Vec<String>, FileError> {
        let bytes = unpacked(&self.file, "symbols", self.limit)?;
        let symbols = read_symbols(&bytes, self.suffixes.len(), self.limit);
        symbols.ok_or_else(|| self.file.damaged("content of section symbols"))
    }

    fn block(&self, number: usize) -> Result<Vec<u8>, FileError> {
        let start = number
            .checked_sub(1)
            .map_or(Some(&0), |before| self.block_ends.get(before));
        let frame = start
            .zip(self.block_ends.get(number))
            .and_then(|(start, end)| self.blocks.slice(*start as usize, end.checked_sub(*start)? as usize));
        let frame = frame.ok_or_else(|| self.file.damaged("content of section block_ends"))?;
        unpack(&frame, self.limit).ok_or_else(|| self.file.damaged("a block cannot be decompressed"))
    }
}

/// The id of a blob, and a path.
type DocumentKey = (Vec<u8>, Vec<u8>);

/// The version and the occurrences of a document.
type Facts = (String, Vec<Occurrence>);

/// Collects facts and writes them.
#[derive(Debug, Default)]
pub struct FactsWriter {
    tool: String,
    symbols: Vec<String>,
    numbers: HashMap<String, u32>,
    documents: BTreeMap<DocumentKey, Facts>,
}

impl FactsWriter {
    /// Starts without facts.
    pub fn new(tool: &str) -> Self {
        Self {
            tool: tool.to_owned(),
            ..Self::default()
        }
    }

    /// Starts with the facts of a file about the files for which `stays` returns true.
    pub fn of(file: &FactsFile, stays: impl Fn(BlobId, &[u8]) -> bool) -> Result<Self, FileError> {
        let mut writer = Self::new(&file.tool);
        writer.merge::<FileError>(file, |blob, path, _| Ok(stays(blob, path)))?;
        Ok(writer)
    }

    /// Adds the documents of a file that are not there and for which `takes` returns true. It is given the names in the
    /// document too.
    pub fn merge<E: From<FileError>>(
        &mut self,
        file: &FactsFile,
        mut takes: impl FnMut(BlobId, &[u8], &[Name<'_>]) -> Result<bool, E>,
    ) -> Result<(), E> {
        let symbols = file.symbols()?;
        let mut own: Vec<Option<u32>> = vec![None; symbols.len()];
        file.each(|number, mut occurrences| {
            let (blob, path, version, ..) = &file.rows[number as usize];
            let id = Oid::from_bytes(blob).map_err(|_| file.file.damaged("id of a blob"))?;
            let name = |one: &Occurrence| (one.start, symbols[one.symbol as usize].as_str(), one.is_definition);
            let names: Vec<Name<'_>> = occurrences.iter().map(name).collect();
            let key = (blob.clone(), path.clone());
            if self.documents.contains_key(&key) || !takes(BlobId(id), path, &names)? {
                return Ok(());
            }
            for occurrence in &mut occurrences {
                let symbol = occurrence.symbol as usize;
                occurrence.symbol = *own[symbol].get_or_insert_with(|| self.number(&symbols[symbol]));
            }
            occurrences.sort_unstable();
            let version = file.versions.get(*version as usize).cloned().unwrap_or_default();
            self.documents.insert(key, (version, occurrences));
            Ok(())
        })
    }

    /// Returns the number of a symbol. A new symbol gets the next one.
    fn number(&mut self, symbol: &str) -> u32 {
        if let Some(&number) = self.numbers.get(symbol) {
            return number;
        }
        let number = self.symbols.len() as u32;
        self.symbols.push(symbol.to_owned());
        self.numbers.insert(symbol.to_owned(), number);
        number
    }

    /// Returns the number of documents.
    pub fn n_documents(&self) -> usize {
        self.documents.len()
    }

    /// Adds the facts about a blob at a path, in place of older ones.
    pub fn add(&mut self, blob: BlobId, path: &[u8], version: &str, checked: &Checked<'_>) {
        let mut occurrences = self.occurrences_of(&checked.names);
        occurrences.sort_unstable();
        occurrences.dedup();
        self.documents
            .insert(document_key(blob, path), (version.to_owned(), occurrences));
    }

    /// Adds what is known about some names in a blob at a path: the start of each, its symbol, and whether it is the name
    /// of a definition. Facts of the same version about other names stay. Returns true if something has changed.
    pub fn extend(&mut self, blob: BlobId, path: &[u8], version: &str, names: &[(u32, &str, bool)]) -> bool {
        let mut occurrences = self.occurrences_of(names);
        let starts: HashSet<u32> = occurrences.iter().map(|occurrence| occurrence.start).collect();
        let known = self.documents.entry(document_key(blob, path)).or_default();
        if known.0 == version {
            let others = known.1.iter().filter(|known| !starts.contains(&known.start));
            occurrences.extend(others);
        }
        occurrences.sort_unstable();
        occurrences.dedup();
        let new = (version.to_owned(), occurrences);
        let has_changed = *known != new;
        *known = new;
        has_changed
    }

    fn occurrences_of(&mut self, names: &[(u32, &str, bool)]) -> Vec<Occurrence> {
        let mut occurrences = Vec::with_capacity(names.len());
        for &(start, raw, is_definition) in names {
            let Some(symbol) = Symbol::parse(raw) else { continue };
            let symbol = self.number(&symbol.key());
            occurrences.push(Occurrence {
                start,
                symbol,
                is_definition,
            });
        }
        occurrences
    }

    /// Returns the bytes of the file.
    pub fn finish(&self) -> Vec<u8> {
        self.write(&self.documents.iter().collect::<Vec<_>>())
    }

    /// Returns the facts as files that [`FactsFile::receive`] opens, each with its number of documents. A document that is
    /// too large for that is left out.
    pub fn parts(&self) -> Vec<(u32, Vec<u8>)> {
        self.parts_within(MAX_RECEIVED_BYTES)
    }

    fn parts_within(&self, max_bytes: usize) -> Vec<(u32, Vec<u8>)> {
        let (mut parts, mut open, mut n_open_bytes) = (Vec::new(), Vec::new(), 0);
        let mut end = |documents: &mut Vec<(&DocumentKey, &Facts)>| {
            let n = documents.len() as u32;
            parts.extend((n > 0).then(|| (n, self.write(documents))));
            documents.clear();
        };
        for document in &self.documents {
            let n_bytes = self.weight(document);
            if n_bytes > max_bytes {
                let path = String::from_utf8_lossy(&document.0.1);
                tracing::warn!("the facts of {} about {path:?} are too large to share", self.tool);
                continue;
            }
            if n_open_bytes + n_bytes > max_bytes || open.len() == MAX_PART_DOCUMENTS {
                end(&mut open);
                n_open_bytes = 0;
            }
            open.push(document);
            n_open_bytes += n_bytes;
        }
        end(&mut open);
        parts
    }

    /// Returns a size that no section exceeds through a document.
    fn weight(&self, ((_, path), (_, occurrences)): (&DocumentKey, &Facts)) -> usize {
        let symbols: HashSet<u32> = occurrences.iter().map(|occurrence| occurrence.symbol).collect();
        let of_symbols: usize = symbols.iter().map(|&symbol| self.symbols[symbol as usize].len()).sum();
        ROW_BYTES + path.len() + of_symbols + occurrences.len() * OCCURRENCE_BYTES
    }

    fn write(&self, documents: &[(&DocumentKey, &Facts)]) -> Vec<u8> {
        let mut used = vec![false; self.symbols.len()];
        let all = documents.iter().flat_map(|(_, (_, occurrences))| occurrences);
        all.for_each(|occurrence| used[occurrence.symbol as usize] = true);
        let mut order: Vec<u32> = (0..self.symbols.len() as u32)
            .filter(|&old| used[old as usize])
            .collect();
        order.sort_unstable_by_key(|&old| &self.symbols[old as usize]);
        let mut new_of = vec![0; self.symbols.len()];
        order.iter().zip(0..).for_each(|(&old, new)| new_of[old as usize] = new);
        let symbols: Vec<&str> = order.iter().map(|&old| self.symbols[old as usize].as_str()).collect();

        let mut versions: Vec<&str> = documents.iter().map(|(_, (version, _))| version.as_str()).collect();
        versions.sort_unstable();
        versions.dedup();
        let mut blocks = Blocks::default();
        let mut rows: Vec<Row> = Vec::new();
        let mut definers = vec![Vec::new(); symbols.len()];
        for (number, ((blob, path), (version, occurrences))) in documents.iter().enumerate() {
            let renumbered: Vec<Occurrence> = occurrences
                .iter()
                .map(|occurrence| Occurrence {
                    symbol: new_of[occurrence.symbol as usize],
                    ..*occurrence
                })
                .collect();
            add_definers(&mut definers, number as u32, &renumbered);
            let (block, start, length) = blocks.add(&write_document(&renumbered));
            let version = versions.binary_search(&version.as_str()).unwrap_or_default() as u32;
            rows.push((blob.clone(), path.clone(), version, block, start, length));
        }
        let (blocks, block_ends) = blocks.finish();
        let mut file = SectionWriter::new(FactsFile::FORMAT);
        file.add("meta", encode(&(&self.tool, &versions)));
        file.add("symbols", pack(&write_symbols(&symbols)));
        file.add("packages", pack(&write_packages(&symbols)));
        file.add(
            "suffixes",
            pack(&symbols.iter().map(|symbol| suffix(symbol)).collect::<Vec<u8>>()),
        );
        file.add("definers", pack(&write_definers(&definers)));
        file.add("documents", pack(&encode(&rows)));
        file.add("block_ends", pack(&block_ends));
        file.add("blocks", blocks);
        file.finish()
    }
}

/// Adds a document to the lists of those that define each symbol.
fn add_definers(definers: &mut [Vec<u32>], number: u32, occurrences: &[Occurrence]) {
    for occurrence in occurrences.iter().filter(|occurrence| occurrence.is_definition) {
        let documents = &mut definers[occurrence.symbol as usize];
        if documents.last() != Some(&number) {
            documents.push(number);
        }
    }
}

fn document_key(blob: BlobId, path: &[u8]) -> DocumentKey {
    (blob.0.as_bytes().to_vec(), path.to_vec())
}

/// The blocks being written.
#[derive(Default)]
struct Blocks {
    done: Vec<u8>,
    ends: Vec<u8>,
    open: Vec<u8>,
}

impl Blocks {
    /// Adds a document. Returns its block, its start in the block, and its length.
    fn add(&mut self, document: &[u8]) -> (u32, u32, u32) {
        if self.open.len() >= BLOCK_BYTES {
            self.end_block();
        }
        let place = (self.ends.len() / 4, self.open.len(), document.len());
        self.open.extend_from_slice(document);
        (place.0 as u32, place.1 as u32, place.2 as u32)
    }

    fn end_block(&mut self) {
        self.done.extend(pack(&self.open));
        self.ends.extend((self.done.len() as u32).to_le_bytes());
        self.open.clear();
    }

    fn finish(mut self) -> (Vec<u8>, Vec<u8>) {
        self.end_block();
        (self.done, self.ends)
    }
}

/// Returns the byte that names the kind of a symbol: its last one, or `f` for a function.
fn suffix(symbol: &str) -> u8 {
    match symbol.as_bytes() {
        [.., b')', b'.'] => b'f',
        [.., last] => *last,
        [] => 0,
    }
}

fn pack(bytes: &[u8]) -> Vec<u8> {
    let mut packed = (bytes.len() as u64).to_le_bytes().to_vec();
    packed.extend(compress(bytes));
    packed
}

fn unpack(packed: &[u8], limit: usize) -> Option<Vec<u8>> {
    let (length, frame) = packed.split_first_chunk()?;
    decompress(frame, u64::from_le_bytes(*length).try_into().ok()?, limit).ok()
}

fn unpacked(file: &SectionFile, section: &str, limit: usize) -> Result<Vec<u8>, FileError> {
    let damaged = || file.damaged(format!("section {section} cannot be decompressed"));
    unpack(&file.section(section)?, limit).ok_or_else(damaged)
}

fn numbers(mut bytes: &[u8]) -> Option<Vec<u32>> {
    let mut numbers = Vec::new();
    while !bytes.is_empty() {
        numbers.push(take_u32(&mut bytes)?);
    }
    Some(numbers)
}

fn write_symbols(symbols: &[&str]) -> Vec<u8> {
    let (mut bytes, mut last) = (Vec::new(), &b""[..]);
    for symbol in symbols {
        let symbol = symbol.as_bytes();
        let n_shared = symbol.iter().zip(last).take_while(|(a, b)| a == b).count();
        put(&mut bytes, n_shared as u64);
        put(&mut bytes, (symbol.len() - n_shared) as u64);
        bytes.extend_from_slice(&symbol[n_shared..]);
        last = symbol;
    }
    bytes
}

fn read_symbols(mut bytes: &[u8], n: usize, limit: usize) -> Option<Vec<String>> {
    let (mut symbols, mut last, mut n_bytes) = (Vec::new(), Vec::new(), 0);
    while !bytes.is_empty() {
        let n_shared = take_u32(&mut bytes)? as usize;
        let n_rest = take_u32(&mut bytes)? as usize;
        let (rest, after) = bytes.split_at_checked(n_rest)?;
        last.truncate(n_shared);
        last.extend_from_slice(rest);
        n_bytes += last.len();
        let symbol = String::from_utf8(last.clone()).ok()?;
        // Ascending, each once; only the first may be empty.
        if n_bytes > limit || symbols.last() >= Some(&symbol) {
            return None;
        }
        symbols.push(symbol);
        bytes = after;
    }
    (symbols.len() == n).then_some(symbols)
}

fn write_packages(symbols: &[&str]) -> Vec<u8> {
    let package = |symbol: &str| symbol[..end_of_package(symbol).unwrap_or_default()].to_owned();
    let mut bytes = Vec::new();
    for group in symbols.chunk_by(|a, b| package(a) == package(b)) {
        put(&mut bytes, group.len() as u64);
    }
    bytes
}

fn write_definers(definers: &[Vec<u32>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for documents in definers {
        put(&mut bytes, documents.len() as u64);
        put_ascending(&mut bytes, documents);
    }
    bytes
}

fn read_definers(mut bytes: &[u8], n_symbols: usize, n_documents: usize) -> Option<(Vec<u32>, Vec<u32>)> {
    let (mut ends, mut definers) = (Vec::new(), Vec::new());
    while !bytes.is_empty() {
        let n = take_u32(&mut bytes)?;
        take_ascending(&mut bytes, n, n_documents as u32, &mut definers)?;
        ends.push(definers.len() as u32);
    }
    (ends.len() == n_symbols).then_some((ends, definers))
}

fn put_ascending(bytes: &mut Vec<u8>, numbers: &[u32]) {
    let mut last = 0;
    for &number in numbers {
        put(bytes, u64::from(number - last));
        last = number;
    }
}

/// Takes `n` ascending numbers below `limit`.
fn take_ascending(bytes: &mut &[u8], n: u32, limit: u32, to: &mut Vec<u32>) -> Option<()> {
    let mut last = 0u32;
    for _ in 0..n {
        last = last.checked_add(take_u32(bytes)?).filter(|&number| number < limit)?;
        to.push(last);
    }
    Some(())
}

fn write_document(occurrences: &[Occurrence]) -> Vec<u8> {
    let mut symbols: Vec<u32> = occurrences.iter().map(|occurrence| occurrence.symbol).collect();
    symbols.sort_unstable();
    symbols.dedup();
    let mut bytes = Vec::new();
    put(&mut bytes, symbols.len() as u64);
    put_ascending(&mut bytes, &symbols);
    put(&mut bytes, occurrences.len() as u64);
    let mut last = 0;
    for occurrence in occurrences {
        let index = symbols.binary_search(&occurrence.symbol).unwrap_or_default();
        let step = u64::from(occurrence.start - last);
        put(&mut bytes, 2 * step + u64::from(occurrence.is_definition));
        put(&mut bytes, index as u64);
        last = occurrence.start;
    }
    bytes
}

fn read_document(mut bytes: &[u8], n_symbols: u32) -> Option<Vec<Occurrence>> {
    let (mut symbols, mut occurrences) = (Vec::new(), Vec::new());
    let n = take_u32(&mut bytes)?;
    take_ascending(&mut bytes, n, n_symbols, &mut symbols)?;
    let n = take_u32(&mut bytes)?;
    let mut start = 0u32;
    for _ in 0..n {
        let step = take(&mut bytes)?;
        start = start.checked_add(u32::try_from(step / 2).ok()?)?;
        let symbol = *symbols.get(take_u32(&mut bytes)? as usize)?;
        occurrences.push(Occurrence {
            start,
            symbol,
            is_definition: step % 2 == 1,
        });
    }
    bytes.is_empty().then_some(occurrences)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use std::path::Path;

    use super::*;

    fn blob(n: u8) -> BlobId {
        BlobId(Oid::from_bytes(&[n; 20]).unwrap())
    }

    fn checked(names: &[(u32, &'static str, bool)]) -> Checked<'static> {
        Checked {
            names: names.to_vec(),
            ..Checked::default()
        }
    }

    fn open(bytes: Vec<u8>) -> Result<FactsFile, FileError> {
        FactsFile::from_sections(
            SectionFile::from_bytes(Path::new("facts"), bytes.into(), FactsFile::FORMAT)?,
            MAX_BYTES,
        )
    }

    fn sample() -> FactsWriter {
        let mut writer = FactsWriter::new("tool");
        writer.add(
            blob(2),
            b"b.rs",
            "1",
            &checked(&[(9, "s m p 1 x/f().", false), (3, "s m q 1 g().", false)]),
        );
        writer.add(
            blob(1),
            b"a.rs",
            "1",
            &checked(&[(4, "s m p 2 x/f().", true), (8, "s m p 2 x/T#", true)]),
        );
        writer
    }

    #[test]
    fn facts_come_back_under_symbols_without_versions() {
        let file = open(sample().finish()).unwrap();
        file.verify().unwrap();
        assert_eq!(file.find(blob(1), b"b.rs"), None);
        let (a, b) = (
            file.find(blob(1), b"a.rs").unwrap(),
            file.find(blob(2), b"b.rs").unwrap(),
        );
        let uses = file.occurrences(b).unwrap();
        assert_eq!(uses.iter().map(|one| one.start).collect::<Vec<_>>(), [3, 9]);
        assert_eq!(file.definers(uses[1].symbol), [a]);
        assert!(file.is_type_or_callable(uses[1].symbol) && !file.is_external(uses[1].symbol));
        assert!(file.definers(uses[0].symbol).is_empty() && file.is_external(uses[0].symbol));
    }

    #[test]
    fn files_are_extended_replaced_and_reduced() {
        let file = open(sample().finish()).unwrap();
        let mut writer = FactsWriter::of(&file, |_, _| true).unwrap();
        assert_eq!(writer.n_documents(), 2);
        writer.add(blob(2), b"b.rs", "2", &checked(&[]));
        let again = open(writer.finish()).unwrap();
        assert!(
            again
                .occurrences(again.find(blob(2), b"b.rs").unwrap())
                .unwrap()
                .is_empty()
        );
        let fewer = FactsWriter::of(&again, |of, _| of == blob(2)).unwrap();
        let fewer = open(fewer.finish()).unwrap();
        assert_eq!((fewer.rows.len(), fewer.suffixes.len()), (1, 0));
        // The same facts give the same file.
        assert_eq!(sample().finish(), sample().finish());
    }

    #[test]
    fn parts_are_received_and_add_up() {
        let mut writer = FactsWriter::new("tool");
        for n in 0..MAX_PART_DOCUMENTS + 10 {
            let path = format!("{n:05}");
            writer.add(
                blob(1),
                path.as_bytes(),
                "1",
                &checked(&[(n as u32, "s m p 1 x.", true)]),
            );
        }
        let parts = writer.parts();
        assert_eq!(
            parts.iter().map(|part| part.0).collect::<Vec<_>>(),
            [MAX_PART_DOCUMENTS as u32, 10]
        );
        let mut merged = FactsWriter::new("tool");
        for (_, part) in parts {
            let file = FactsFile::receive(part.into()).unwrap();
            merged
                .merge::<FileError>(&file, |_, _, names| Ok(names[0].1 == "s m p x."))
                .unwrap();
        }
        assert_eq!(merged.finish(), writer.finish());
        let n_bytes = writer
            .documents
            .iter()
            .map(|document| writer.weight(document))
            .sum::<usize>();
        assert_eq!(writer.parts_within(n_bytes / 3).len(), 4);
        assert!(writer.parts_within(50).is_empty(), "a receiver would refuse them");
    }

    #[test]
    fn facts_about_some_names_join_those_about_others() {
        let mut writer = FactsWriter::new("tool");
        let (f, g) = ("s m p . f().", "s m p . g().");
        assert!(writer.extend(blob(1), b"a.rs", "1", &[(9, f, false), (3, f, false)]));
        assert!(!writer.extend(blob(1), b"a.rs", "1", &[(9, f, false)]));
        assert!(writer.extend(blob(1), b"a.rs", "1", &[(9, g, false)]));
        let starts = |writer: &FactsWriter| -> Vec<(u32, u32)> {
            let (_, occurrences) = &writer.documents[&document_key(blob(1), b"a.rs")];
            occurrences.iter().map(|one| (one.start, one.symbol)).collect()
        };
        assert_eq!(starts(&writer), [(3, 0), (9, 1)]);
        assert!(writer.extend(blob(1), b"a.rs", "2", &[(5, g, true)]));
        assert_eq!(starts(&writer), [(5, 1)]);
    }

    #[test]
    fn many_documents_fill_several_blocks() {
        let mut writer = FactsWriter::new("tool");
        let names: Vec<(u32, &str, bool)> = (0..40_000).map(|n| (n * 7, "s m p 1 x.", false)).collect();
        for n in 0..3 {
            writer.add(blob(n), b"a", "1", &checked(&names));
        }
        let file = open(writer.finish()).unwrap();
        assert!(file.block_ends.len() > 1);
        file.verify().unwrap();
        assert_eq!(file.occurrences(2).unwrap().len(), names.len());
    }
}
