//! Stores the changes of definitions in the commits of a batch.
//!
//! Section file, format 1, stored next to the records of the same commits (see `batch.rs`), whose path numbers it uses.
//! It covers the commits from the local number `first` on, because the newest commits are traced first.
//!
//! ```text
//! meta          u32 base, u32 n, u32 first, u32 records, u64 recipe, u32 unread: commits with a missing version
//! names         ascending, concatenated: qualified name, 0, u8 kind; name_ends: u32 each
//! run_ends      u32 for each path of the batch: end of its run in the decompressed blocks
//! blocks        zstd frames of 64 KiB decompressed, the last one shorter; block_ends: u32 each
//! ```
//!
//! A run consists of one entry for each commit that changed a definition of the path, ascending: varint commits since
//! the previous entry (for the first: since `first`); varint 2 × number of records, + 1 if a version of the file was
//! not in the repository; the records.
//!
//! A record consists of: u8 parts that follow (1 old lines; 2 new lines and text; 4 an origin; 8 an index among
//! namesakes other than 1; 16 the definition continues under another key); u8 events (1 added, 2 removed, 4 renamed, 8
//! moved, 16 signature, 32 body, 64 doc, 128 formatting); varint name; [varint index]; [varint first old line, varint
//! further lines]; [zigzag varint difference of the first new line from the first old line, or from 0 without old
//! lines; varint further lines; u32 text]; [origin: varint path: 0 for the same path, else number + 1; varint name: 0
//! for the same name, else number + 1; varint index; u8 percent].

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

use crate::extract::DefinitionKind;
use crate::model::RepoPath;
use crate::sidecar::{Bytes, FileError, SectionFile, SectionWriter, Sidecar, Store, compress, decompress};

use super::batch::Batch;
use super::lineage::SymbolRecord;
use super::symbols::{SymbolEvents, SymbolKey};
use super::wire::{Scan, SortedTexts, part, put_u32, put_varint, u32_at};

/// Format version. 1: initial.
pub(super) const FORMAT: u32 = 1;
const BLOCK_BYTES: usize = 64 << 10;
/// Limit on the length of a run in bytes.
const MAX_RUN_BYTES: usize = 256 << 20;
/// Limits for an untrusted file, checked by [`SymbolBatch::check`]. Neither its decompressed size nor the memory for
/// its records may exceed this multiple of the stored size, plus the slack.
const MAX_RATIO: usize = 200;
const RATIO_SLACK: usize = 4 << 20;
/// Approximate size of a record in memory, without its names.
const RECORD_BYTES: usize = 128;

const HAS_OLD: u8 = 1;
const HAS_NEW: u8 = 2;
const HAS_ORIGIN: u8 = 4;
const HAS_POSITION: u8 = 8;
const GOES_ON: u8 = 16;

/// The changes that one commit made to the definitions of one file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TracedChange {
    /// The number of the commit in its batch.
    pub local: u32,
    /// True if the changes are unknown because a version of the file is not in the repository.
    pub is_unknown: bool,
    /// The records of the changed definitions.
    pub records: Vec<SymbolRecord>,
}

/// The changes by path number, ascending by commit.
pub type TracedPaths = BTreeMap<u32, Vec<TracedChange>>;

/// An open file with the changes of definitions in a batch of commits.
#[derive(Debug)]
pub struct SymbolBatch {
    file: SectionFile,
    base: u32,
    n_commits: u32,
    first: u32,
    n_records: u32,
    recipe: u64,
    n_unread: u32,
    names: SortedTexts,
    run_ends: Bytes,
    blocks: Bytes,
    block_ends: Bytes,
}

impl SymbolBatch {
    /// Opens the symbol batch file `name` of the sidecar.
    pub fn open(sidecar: &Sidecar, name: &str) -> Result<Self, FileError> {
        Self::of(SectionFile::open(sidecar, Store::History, name, FORMAT)?)
    }

    /// Opens a symbol batch in memory.
    pub fn from_bytes(bytes: impl Into<Bytes>) -> Result<Self, FileError> {
        let path = Path::new("records of definitions");
        Self::of(SectionFile::from_bytes(path, bytes.into(), FORMAT)?)
    }

    fn of(file: SectionFile) -> Result<Self, FileError> {
        let meta = file.section("meta")?;
        let number = |index| u32_at(&meta, index).ok_or_else(|| file.damaged("meta"));
        let batch = Self {
            base: number(0)?,
            n_commits: number(1)?,
            first: number(2)?,
            n_records: number(3)?,
            recipe: u64::from(number(4)?) | u64::from(number(5)?) << 32,
            n_unread: number(6)?,
            names: SortedTexts {
                bytes: file.section("names")?,
                ends: file.section("name_ends")?,
            },
            run_ends: file.section("run_ends")?,
            blocks: file.section("blocks")?,
            block_ends: file.section("block_ends")?,
            file,
        };
        if batch.first <= batch.n_commits && batch.n_unread <= batch.n_commits - batch.first {
            Ok(batch)
        } else {
            Err(batch.damaged("meta"))
        }
    }

    /// Returns true if the file belongs to `batch`.
    pub fn belongs_to(&self, batch: &Batch) -> bool {
        (self.base, self.n_commits) == (batch.base(), batch.n_commits())
            && self.run_ends.len() == batch.n_paths() as usize * 4
    }

    /// Returns the number in the batch of the first traced commit. All later commits are also traced.
    pub fn first(&self) -> u32 {
        self.first
    }

    /// Returns the recipe with which the commits were traced.
    pub fn recipe(&self) -> u64 {
        self.recipe
    }

    /// Returns the number of commits with a file version that was not in the repository.
    pub fn n_unread(&self) -> u32 {
        self.n_unread
    }

    /// Returns the number of records.
    pub fn n_records(&self) -> u32 {
        self.n_records
    }

    fn damaged(&self, what: &str) -> FileError {
        self.file.damaged(what)
    }

    /// Verifies every section and every record of the file.
    pub fn verify(&self, batch: &Batch) -> Result<(), FileError> {
        self.file.verify()?;
        if !self.belongs_to(batch) {
            return Err(self.damaged("the commits differ from those of the batch"));
        }
        if !self.names.is_ascending() {
            return Err(self.damaged("order of names"));
        }
        let of_path = |changes: &Vec<TracedChange>| changes.iter().map(|change| change.records.len()).sum::<usize>();
        let n_records: usize = self.all(batch)?.values().map(of_path).sum();
        if n_records == self.n_records as usize {
            Ok(())
        } else {
            Err(self.damaged("number of records"))
        }
    }

    /// Validates an untrusted file. Checks that the batch contains every change, that all numbers refer to existing
    /// data, and that the decompressed size is within its limits.
    pub fn check(&self, batch: &Batch) -> Result<(), FileError> {
        self.file.verify()?;
        let is_name = |at| self.name(at).is_some();
        let n_names = self.names.len() as u64;
        let mut blocks = Blocks::of(self);
        let mut n_left = self.blocks.len().saturating_mul(MAX_RATIO) + RATIO_SLACK;
        let is_whole = self.belongs_to(batch) && (0..n_names).all(is_name) && self.names.is_ascending();
        if !is_whole || blocks.n_bytes > n_left {
            return Err(self.damaged("names, or its size"));
        }
        let mut n_records = 0;
        for path in 0..batch.n_paths() {
            let run = blocks.run(path)?;
            let changes = if run.is_empty() {
                Vec::new()
            } else {
                batch.run(path as usize)?
            };
            let mut reader = self.reader(batch, path, &run);
            let mut locals = changes.iter().map(|change| change.commit - batch.base());
            while !reader.scan.is_over() {
                let counted = reader.checked(&mut locals, &mut n_left);
                n_records += counted.ok_or_else(|| self.damaged("a run of records"))?;
            }
        }
        if n_records == u64::from(self.n_records) {
            Ok(())
        } else {
            Err(self.damaged("number of records"))
        }
    }

    /// Returns the changes in the given commits, by path.
    pub fn of_commits(&self, batch: &Batch, locals: &BTreeSet<u32>) -> Result<TracedPaths, FileError> {
        let mut blocks = Blocks::of(self);
        let mut found = TracedPaths::new();
        for path in 0..batch.n_paths() {
            let run = blocks.run(path)?;
            let mut changes = self.run(batch, path, &run, &|_| true)?;
            changes.retain(|change| locals.contains(&change.local));
            if !changes.is_empty() {
                found.insert(path, changes);
            }
        }
        Ok(found)
    }

    /// Returns all changes, by path.
    pub fn all(&self, batch: &Batch) -> Result<TracedPaths, FileError> {
        self.select(batch, &|_| true)
    }

    /// Returns the commits in which the changes of definitions are unknown, by path.
    pub fn unknown(&self, batch: &Batch) -> Result<TracedPaths, FileError> {
        let mut found = self.select(batch, &|_| false)?;
        found
            .values_mut()
            .for_each(|changes| changes.retain(|change| change.is_unknown));
        found.retain(|_, changes| !changes.is_empty());
        Ok(found)
    }

    /// Returns the changes of definitions whose qualified name satisfies `is_wanted`, by path.
    pub fn named(&self, batch: &Batch, is_wanted: &dyn Fn(&[u8]) -> bool) -> Result<TracedPaths, FileError> {
        let is_it = |at: &usize| {
            let name = self
                .names
                .get(*at)
                .and_then(|name| name.get(..name.len().checked_sub(2)?));
            name.is_some_and(is_wanted)
        };
        let wanted: BTreeSet<u64> = (0..self.names.len()).filter(is_it).map(|at| at as u64).collect();
        if wanted.is_empty() {
            Ok(TracedPaths::new())
        } else {
            self.select(batch, &|name| wanted.contains(&name))
        }
    }

    /// Returns the commits that removed a definition without moving or renaming it, in ascending order. Each is a pair
    /// of the path's number and the commit's number in the batch.
    pub fn removals(&self, batch: &Batch) -> Result<Vec<(u32, u32)>, FileError> {
        let mut blocks = Blocks::of(self);
        let mut found = Vec::new();
        for path in 0..batch.n_paths() {
            let run = blocks.run(path)?;
            let mut reader = self.reader(batch, path, &run);
            while !reader.scan.is_over() {
                if reader.removes().ok_or_else(|| self.damaged("a run of records"))? {
                    found.push((path, reader.local));
                }
            }
        }
        Ok(found)
    }

    fn select(&self, batch: &Batch, is_wanted: &dyn Fn(u64) -> bool) -> Result<TracedPaths, FileError> {
        let mut blocks = Blocks::of(self);
        let mut all = TracedPaths::new();
        for path in 0..batch.n_paths() {
            let run = blocks.run(path)?;
            let changes = self.run(batch, path, &run, is_wanted)?;
            if !changes.is_empty() {
                all.insert(path, changes);
            }
        }
        Ok(all)
    }

    /// Returns the changes of the definitions of a path, ascending by commit. If `name` is given, returns only the
    /// definitions with this name.
    pub fn changes_of(&self, batch: &Batch, path: u32, name: Option<&str>) -> Result<Vec<TracedChange>, FileError> {
        let numbers = match name {
            Some(name) => self.numbers_of(name),
            None => 0..self.names.len() as u64,
        };
        let run = Blocks::of(self).run(path)?;
        self.run(batch, path, &run, &|name| numbers.contains(&name))
    }

    /// Returns the numbers of the entries in `names` with this name and any kind.
    fn numbers_of(&self, name: &str) -> std::ops::Range<u64> {
        let start = [name.as_bytes(), &[0]].concat();
        let end = [name.as_bytes(), &[0, u8::MAX]].concat();
        self.names.lower_bound(&start) as u64..self.names.lower_bound(&end) as u64
    }

    fn run(
        &self,
        batch: &Batch,
        path: u32,
        run: &[u8],
        is_wanted: &dyn Fn(u64) -> bool,
    ) -> Result<Vec<TracedChange>, FileError> {
        let mut reader = self.reader(batch, path, run);
        let mut changes = Vec::new();
        while !reader.scan.is_over() {
            let change = reader.next(is_wanted).ok_or_else(|| self.damaged("a run of records"))?;
            if change.is_unknown || !change.records.is_empty() {
                changes.push(change);
            }
        }
        Ok(changes)
    }

    fn reader<'b>(&'b self, batch: &'b Batch, path: u32, run: &'b [u8]) -> RunReader<'b> {
        RunReader {
            symbols: self,
            batch,
            path,
            scan: Scan::new(run),
            local: self.first,
        }
    }

    fn name(&self, number: u64) -> Option<(String, DefinitionKind)> {
        let text = self.names.get(usize::try_from(number).ok()?)?;
        let (kind, name) = text.split_last()?;
        let name = std::str::from_utf8(name.strip_suffix(&[0])?).ok()?;
        Some((name.to_owned(), DefinitionKind::from_number(*kind)?))
    }
}

/// Decompresses blocks. Caches the last one, which usually contains the start of the next run.
struct Blocks<'b> {
    symbols: &'b SymbolBatch,
    n_bytes: usize,
    last: Option<(usize, Vec<u8>)>,
}

impl<'b> Blocks<'b> {
    fn of(symbols: &'b SymbolBatch) -> Self {
        let last = (symbols.run_ends.len() / 4).checked_sub(1);
        let n_bytes = last.and_then(|last| u32_at(&symbols.run_ends, last));
        Self {
            symbols,
            n_bytes: n_bytes.unwrap_or(0) as usize,
            last: None,
        }
    }

    fn run(&mut self, path: u32) -> Result<Vec<u8>, FileError> {
        let end_of = |at: u32| u32_at(&self.symbols.run_ends, at as usize).map(|end| end as usize);
        let start = if path == 0 { Some(0) } else { end_of(path - 1) };
        let bounds = start.zip(end_of(path));
        let is_sound =
            |&(start, end): &(usize, usize)| start <= end && end <= self.n_bytes && end - start <= MAX_RUN_BYTES;
        let damaged = || self.symbols.damaged("run_ends");
        let (start, end) = bounds.filter(is_sound).ok_or_else(damaged)?;
        let (mut run, mut at) = (Vec::new(), start);
        while at < end {
            let block = at / BLOCK_BYTES;
            let begins = block * BLOCK_BYTES;
            let opened = self.block(block)?;
            run.extend_from_slice(
                opened
                    .get(at - begins..opened.len().min(end - begins))
                    .unwrap_or_default(),
            );
            at = begins + BLOCK_BYTES;
        }
        Ok(run)
    }

    fn block(&mut self, number: usize) -> Result<&[u8], FileError> {
        let symbols = self.symbols;
        let is_last = self.last.as_ref().is_some_and(|(known, _)| *known == number);
        if !is_last {
            let frame = part(&symbols.blocks, &symbols.block_ends, number);
            let frame = frame.ok_or_else(|| symbols.damaged("block_ends"))?;
            let length = BLOCK_BYTES.min(self.n_bytes - number * BLOCK_BYTES);
            let bytes = decompress(frame, length, BLOCK_BYTES);
            let bytes = bytes.map_err(|error| symbols.damaged(&format!("block: {error}")))?;
            self.last = Some((number, bytes));
        }
        Ok(self.last.as_ref().map_or(&[], |(_, bytes)| bytes.as_slice()))
    }
}

struct RunReader<'b> {
    symbols: &'b SymbolBatch,
    batch: &'b Batch,
    path: u32,
    scan: Scan<'b>,
    local: u32,
}

/// A decoded record. Names and paths are represented by their numbers.
struct StoredRecord {
    events: u8,
    name: u64,
    nth: u32,
    old_lines: Option<(u32, u32)>,
    new_lines: Option<(u32, u32)>,
    text: u32,
    /// The path and the name (0 if they are the same, otherwise the number plus 1), the index and the percentage.
    origin: Option<(u32, u64, u32, u8)>,
    goes_on: bool,
}

impl StoredRecord {
    /// Returns true if line numbers and indices are at least 1 and the percentage is at most 100.
    fn is_within_bounds(&self) -> bool {
        let is_range = |(start, end): (u32, u32)| start >= 1 && end < u32::MAX;
        self.nth >= 1
            && self.old_lines.is_none_or(is_range)
            && self.new_lines.is_none_or(is_range)
            && self.origin.is_none_or(|(.., nth, percent)| nth >= 1 && percent <= 100)
    }
}

impl RunReader<'_> {
    fn next(&mut self, is_wanted: &dyn Fn(u64) -> bool) -> Option<TracedChange> {
        let (count, is_unknown) = self.head()?;
        let mut records = Vec::new();
        for _ in 0..count {
            let stored = self.stored()?;
            if is_wanted(stored.name) {
                records.push(self.record(stored)?);
            }
        }
        Some(TracedChange {
            local: self.local,
            is_unknown,
            records,
        })
    }

    /// Skips the entry of a commit. Returns true if the commit removed a definition without moving or renaming it.
    fn removes(&mut self) -> Option<bool> {
        let (count, _) = self.head()?;
        let mut is_removal = false;
        for _ in 0..count {
            let stored = self.stored()?;
            is_removal |= SymbolEvents::from_bits(stored.events).removed && !stored.goes_on;
        }
        Some(is_removal)
    }

    /// Advances to the next commit. Returns the number of its records, and true if a file version was missing.
    fn head(&mut self) -> Option<(u64, bool)> {
        self.local = self.local.checked_add(self.number()?)?;
        if self.local >= self.symbols.n_commits {
            return None;
        }
        let count = self.scan.varint()?;
        Some((count >> 1, count & 1 == 1))
    }

    /// Skips and validates the entry of a commit, which must be one of the remaining `locals`. Returns the number of
    /// its records.
    fn checked(&mut self, locals: &mut impl Iterator<Item = u32>, n_left: &mut usize) -> Option<u64> {
        let (count, is_unknown) = self.head()?;
        let is_real = locals.any(|local| local == self.local);
        if !is_real || is_unknown {
            return None;
        }
        for _ in 0..count {
            let stored = self.stored().filter(StoredRecord::is_within_bounds)?;
            let names = &self.symbols.names;
            let length = |number: u64| Some(names.get(usize::try_from(number).ok()?)?.len());
            let mut n_bytes = RECORD_BYTES + length(stored.name)?;
            if let Some((path, name, ..)) = stored.origin {
                n_bytes += match name.checked_sub(1) {
                    Some(name) => length(name)?,
                    None => length(stored.name)?,
                };
                n_bytes += self.batch.path(path.checked_sub(1).unwrap_or(self.path))?.len();
            }
            *n_left = n_left.checked_sub(n_bytes)?;
        }
        Some(count)
    }

    fn number(&mut self) -> Option<u32> {
        u32::try_from(self.scan.varint()?).ok()
    }

    fn stored(&mut self) -> Option<StoredRecord> {
        let (parts, events) = (self.scan.byte()?, self.scan.byte()?);
        let name = self.scan.varint()?;
        let nth = if parts & HAS_POSITION == 0 { 1 } else { self.number()? };
        let mut old_lines = None;
        if parts & HAS_OLD != 0 {
            let start = self.number()?;
            old_lines = Some((start, start.checked_add(self.number()?)?));
        }
        let (mut new_lines, mut text) = (None, 0);
        if parts & HAS_NEW != 0 {
            let before = old_lines.map_or(0, |(start, _)| i64::from(start));
            let start = u32::try_from(before.checked_add(unzigzag(self.scan.varint()?))?).ok()?;
            new_lines = Some((start, start.checked_add(self.number()?)?));
            text = u32_at(self.scan.bytes(4)?, 0)?;
        }
        let mut origin = None;
        if parts & HAS_ORIGIN != 0 {
            origin = Some((self.number()?, self.scan.varint()?, self.number()?, self.scan.byte()?));
        }
        Some(StoredRecord {
            events,
            name,
            nth,
            old_lines,
            new_lines,
            text,
            origin,
            goes_on: parts & GOES_ON != 0,
        })
    }

    fn record(&self, stored: StoredRecord) -> Option<SymbolRecord> {
        let (text_of_name, kind) = self.symbols.name(stored.name)?;
        let origin = match stored.origin {
            None => None,
            Some((path, other, nth, percent)) => {
                let path = path.checked_sub(1).unwrap_or(self.path);
                let name = match other.checked_sub(1) {
                    None => text_of_name.clone(),
                    Some(other) => self.symbols.name(other)?.0,
                };
                let path = RepoPath::new(self.batch.path(path)?);
                Some((SymbolKey { path, name, nth }, percent))
            }
        };
        Some(SymbolRecord {
            name: text_of_name,
            nth: stored.nth,
            kind,
            events: SymbolEvents::from_bits(stored.events),
            old_lines: stored.old_lines,
            new_lines: stored.new_lines,
            text: stored.text,
            origin,
            goes_on: stored.goes_on,
        })
    }
}

/// Builds the symbol batch file of `batch` for the changes from the commit `first` on.
pub fn symbol_batch_bytes(batch: &Batch, first: u32, recipe: u64, traced: &TracedPaths) -> Vec<u8> {
    let mut names: BTreeSet<Vec<u8>> = BTreeSet::new();
    for record in traced.values().flatten().flat_map(|change| &change.records) {
        names.insert(stored_name(&record.name, record.kind));
        // The kind of the origin is not recorded. Use the kind of the record.
        names.extend(
            record
                .origin
                .as_ref()
                .map(|(key, _)| stored_name(&key.name, record.kind)),
        );
    }
    let mut writer = RunWriter {
        batch,
        names: names
            .iter()
            .zip(0..)
            .map(|(name, number)| (name.as_slice(), number))
            .collect(),
        out: Vec::new(),
        n_records: 0,
    };
    let mut run_ends = Vec::new();
    for path in 0..batch.n_paths() {
        let mut last = first;
        for change in traced.get(&path).into_iter().flatten() {
            writer.change(path, change, last);
            last = change.local;
        }
        put_u32(&mut run_ends, writer.out.len() as u32);
    }
    let (mut blocks, mut block_ends) = (Vec::new(), Vec::new());
    for block in writer.out.chunks(BLOCK_BYTES) {
        blocks.extend(compress(block));
        put_u32(&mut block_ends, blocks.len() as u32);
    }
    let mut meta = Vec::new();
    for number in [batch.base(), batch.n_commits(), first, writer.n_records] {
        put_u32(&mut meta, number);
    }
    meta.extend_from_slice(&recipe.to_le_bytes());
    let unread = traced.values().flatten().filter(|change| change.is_unknown);
    let unread: BTreeSet<u32> = unread.map(|change| change.local).collect();
    put_u32(&mut meta, unread.len() as u32);
    let (mut name_bytes, mut name_ends) = (Vec::new(), Vec::new());
    for name in &names {
        name_bytes.extend_from_slice(name);
        put_u32(&mut name_ends, name_bytes.len() as u32);
    }
    let mut file = SectionWriter::new(FORMAT);
    file.add("meta", meta);
    file.add("names", name_bytes);
    file.add("name_ends", name_ends);
    file.add("run_ends", run_ends);
    file.add("blocks", blocks);
    file.add("block_ends", block_ends);
    file.finish()
}

fn stored_name(name: &str, kind: DefinitionKind) -> Vec<u8> {
    [name.as_bytes(), &[0, kind as u8]].concat()
}

struct RunWriter<'b> {
    batch: &'b Batch,
    names: HashMap<&'b [u8], u64>,
    out: Vec<u8>,
    n_records: u32,
}

impl RunWriter<'_> {
    fn change(&mut self, path: u32, change: &TracedChange, last: u32) {
        put_varint(&mut self.out, u64::from(change.local - last));
        put_varint(
            &mut self.out,
            2 * change.records.len() as u64 + u64::from(change.is_unknown),
        );
        for record in &change.records {
            self.record(path, record);
        }
        self.n_records += change.records.len() as u32;
    }

    fn record(&mut self, path: u32, record: &SymbolRecord) {
        let origin = record.origin.as_ref().and_then(|(key, percent)| {
            let number = self.batch.path_number(key.path.as_bytes())?;
            Some((number, key, *percent))
        });
        let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
        self.out.push(
            flag(record.old_lines.is_some(), HAS_OLD)
                | flag(record.new_lines.is_some(), HAS_NEW)
                | flag(origin.is_some(), HAS_ORIGIN)
                | flag(record.nth != 1, HAS_POSITION)
                | flag(record.goes_on, GOES_ON),
        );
        self.out.push(record.events.bits());
        let name = self.names[stored_name(&record.name, record.kind).as_slice()];
        put_varint(&mut self.out, name);
        if record.nth != 1 {
            put_varint(&mut self.out, u64::from(record.nth));
        }
        if let Some((start, end)) = record.old_lines {
            put_varint(&mut self.out, u64::from(start));
            put_varint(&mut self.out, u64::from(end - start));
        }
        if let Some((start, end)) = record.new_lines {
            let before = record.old_lines.map_or(0, |(start, _)| i64::from(start));
            put_varint(&mut self.out, zigzag(i64::from(start) - before));
            put_varint(&mut self.out, u64::from(end - start));
            put_u32(&mut self.out, record.text);
        }
        if let Some((from, key, percent)) = origin {
            put_varint(&mut self.out, if from == path { 0 } else { u64::from(from) + 1 });
            let other = self.names[stored_name(&key.name, record.kind).as_slice()];
            put_varint(&mut self.out, if key.name == record.name { 0 } else { other + 1 });
            put_varint(&mut self.out, u64::from(key.nth));
            self.out.push(percent);
        }
    }
}

fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}
