//! The container format of all immutable files: named sections, each with a length and a checksum.
//!
//! ```text
//! "CSSF" | u32 format | u32 n_sections | u32 reserved | n_sections × entry | u64 xxh3 of all before | sections …
//! entry: 16 bytes name, zero padded | u64 offset | u64 length | u64 xxh3 of the section
//! ```
//! All numbers are little endian. Each section starts at a multiple of 16 bytes, so fixed-width arrays can be read in
//! place.

use std::fs::File;
use std::io;
use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;

use memmap2::Mmap;
use xxhash_rust::xxh3::xxh3_64;

use super::file_error::{FileError, FileErrorKind};
use super::layout::{Sidecar, Store};

const MAGIC: &[u8; 4] = b"CSSF";
const HEADER_BYTES: usize = 16;
const ENTRY_BYTES: usize = 40;
const NAME_BYTES: usize = 16;
const ALIGNMENT: usize = 16;
const MAX_SECTIONS: usize = 64;

/// Immutable bytes, either mapped from a file or in memory. Cloning copies no bytes.
#[derive(Clone)]
pub struct Bytes {
    backing: Arc<Backing>,
    start: usize,
    end: usize,
}

enum Backing {
    Mapped(Mmap),
    Owned(Vec<u8>),
}

impl Bytes {
    /// Wraps bytes in memory.
    pub fn from_vec(bytes: Vec<u8>) -> Self {
        let end = bytes.len();
        Self {
            backing: Arc::new(Backing::Owned(bytes)),
            start: 0,
            end,
        }
    }

    /// Maps a file of the sidecar into memory.
    pub(super) fn map(file: &File) -> io::Result<Self> {
        if file.metadata()?.len() == 0 {
            return Ok(Self::from_vec(Vec::new()));
        }
        // SAFETY: sidecar files are written under a temporary name, renamed, and later removed. This program never
        // changes or truncates them. If a user truncates a mapped file, the process ends, as with any mapped database.
        let map = unsafe { Mmap::map(file)? };
        let end = map.len();
        Ok(Self {
            backing: Arc::new(Backing::Mapped(map)),
            start: 0,
            end,
        })
    }

    /// Returns `length` bytes from `start`, or `None` if they are out of range.
    pub fn slice(&self, start: usize, length: usize) -> Option<Self> {
        let from = self.start.checked_add(start)?;
        let to = from.checked_add(length)?;
        (to <= self.end).then(|| Self {
            backing: Arc::clone(&self.backing),
            start: from,
            end: to,
        })
    }
}

impl From<Vec<u8>> for Bytes {
    fn from(bytes: Vec<u8>) -> Self {
        Self::from_vec(bytes)
    }
}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        let all: &[u8] = match &*self.backing {
            Backing::Mapped(map) => map,
            Backing::Owned(bytes) => bytes,
        };
        &all[self.start..self.end]
    }
}

// SAFETY: the `Arc` owns the bytes, which never move or change. A clone refers to the same bytes.
unsafe impl stable_deref_trait::StableDeref for Bytes {}

impl AsRef<[u8]> for Bytes {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl std::fmt::Debug for Bytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Bytes({})", self.len())
    }
}

/// Builds a sectioned file.
#[derive(Debug)]
pub struct SectionWriter {
    format: u32,
    sections: Vec<(&'static str, Vec<u8>)>,
}

impl SectionWriter {
    /// Starts an empty file with the given format version.
    pub fn new(format: u32) -> Self {
        Self {
            format,
            sections: Vec::new(),
        }
    }

    /// Adds a section. The name must be unique and at most 16 bytes long.
    pub fn add(&mut self, name: &'static str, bytes: Vec<u8>) {
        debug_assert!(name.len() <= NAME_BYTES && self.sections.iter().all(|(other, _)| *other != name));
        self.sections.push((name, bytes));
    }

    /// Returns the bytes of the whole file.
    pub fn finish(self) -> Vec<u8> {
        let table_end = HEADER_BYTES + self.sections.len() * ENTRY_BYTES + 8;
        let end_after = |end: usize, bytes: &[u8]| end.next_multiple_of(ALIGNMENT) + bytes.len();
        let n_bytes = self
            .sections
            .iter()
            .fold(table_end, |end, (_, bytes)| end_after(end, bytes));
        let mut file = Vec::with_capacity(n_bytes);
        file.extend_from_slice(MAGIC);
        file.extend_from_slice(&self.format.to_le_bytes());
        file.extend_from_slice(&(self.sections.len() as u32).to_le_bytes());
        file.extend_from_slice(&0u32.to_le_bytes());
        let mut offset = table_end.next_multiple_of(ALIGNMENT);
        for (name, bytes) in &self.sections {
            let mut padded = [0u8; NAME_BYTES];
            padded[..name.len()].copy_from_slice(name.as_bytes());
            file.extend_from_slice(&padded);
            file.extend_from_slice(&(offset as u64).to_le_bytes());
            file.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
            file.extend_from_slice(&xxh3_64(bytes).to_le_bytes());
            offset = (offset + bytes.len()).next_multiple_of(ALIGNMENT);
        }
        file.extend_from_slice(&xxh3_64(&file).to_le_bytes());
        for (_, bytes) in self.sections {
            file.resize(file.len().next_multiple_of(ALIGNMENT), 0);
            file.extend_from_slice(&bytes);
        }
        file
    }
}

/// An open sectioned file. Opening it verifies the table of sections; [`SectionFile::section`] verifies the section it
/// returns. Cheap to clone.
#[derive(Clone, Debug)]
pub struct SectionFile {
    path: Arc<Path>,
    bytes: Bytes,
    table: Arc<[Entry]>,
}

#[derive(Debug, PartialEq, Eq)]
struct Entry {
    name: String,
    offset: usize,
    length: usize,
    checksum: u64,
}

impl SectionFile {
    /// Opens a file of a store. Fails if its format is not `format`.
    pub fn open(sidecar: &Sidecar, store: Store, name: &str, format: u32) -> Result<Self, FileError> {
        let path = sidecar.path(store, name);
        match sidecar.map(store, name) {
            Ok(bytes) => Self::from_bytes(&path, bytes, format),
            Err(source) => Err(FileError::read(path, source)),
        }
    }

    /// Opens a sectioned file in memory. `path` is used in error messages.
    pub fn from_bytes(path: &Path, bytes: Bytes, format: u32) -> Result<Self, FileError> {
        let damaged = |what: &str| FileError::damaged(path, what);
        let header = bytes.get(..HEADER_BYTES).ok_or_else(|| damaged("truncated"))?;
        if &header[..4] != MAGIC {
            return Err(damaged("not a codescout file"));
        }
        let found = read_u32(header, 4);
        if found != format {
            let supported = format;
            return Err(FileError::new(path, FileErrorKind::Format { found, supported }));
        }
        let n_sections = read_u32(header, 8) as usize;
        if n_sections > MAX_SECTIONS {
            return Err(damaged("too many sections"));
        }
        let table_end = HEADER_BYTES + n_sections * ENTRY_BYTES;
        let stored = bytes
            .get(table_end..table_end + 8)
            .map(|raw| read_u64(raw, 0))
            .ok_or_else(|| damaged("truncated table"))?;
        if xxh3_64(&bytes[..table_end]) != stored {
            return Err(damaged("table checksum"));
        }
        let table = (0..n_sections)
            .map(|i| Entry::read(&bytes[HEADER_BYTES + i * ENTRY_BYTES..][..ENTRY_BYTES]))
            .collect::<Arc<[_]>>();
        let fits = |entry: &Entry| {
            entry
                .offset
                .checked_add(entry.length)
                .is_some_and(|end| end <= bytes.len())
        };
        if !table.iter().all(fits) {
            return Err(damaged("truncated"));
        }
        Ok(Self {
            path: path.into(),
            bytes,
            table,
        })
    }

    /// Returns the bytes of a section after verifying its checksum.
    pub fn section(&self, name: &str) -> Result<Bytes, FileError> {
        let entry = self.entry(name)?;
        let bytes = self.slice(entry);
        if xxh3_64(&bytes) != entry.checksum {
            return Err(self.damaged(format!("checksum of section {name}")));
        }
        Ok(bytes)
    }

    /// Returns true if there is a section of this name.
    pub fn has_section(&self, name: &str) -> bool {
        self.table.iter().any(|entry| entry.name == name)
    }

    /// Returns the path that error messages name.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the size of the file in bytes.
    pub fn n_bytes(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// Verifies the checksums of all sections, and that no bytes are between or after them.
    pub fn verify(&self) -> Result<(), FileError> {
        let table_end = HEADER_BYTES + self.table.len() * ENTRY_BYTES + 8;
        let mut end = table_end;
        for entry in self.table.iter() {
            self.section(&entry.name)?;
            let gap = self.bytes.get(end..entry.offset);
            if entry.offset != end.next_multiple_of(ALIGNMENT)
                || gap.is_none_or(|gap| gap.iter().any(|&byte| byte != 0))
            {
                return Err(self.damaged(format!("unexpected bytes before section {}", entry.name)));
            }
            end = entry.offset + entry.length;
        }
        if end == self.bytes.len() {
            Ok(())
        } else {
            Err(self.damaged("trailing bytes"))
        }
    }

    /// Returns an error that this file is damaged.
    pub fn damaged(&self, what: impl Into<String>) -> FileError {
        FileError::damaged(&*self.path, what)
    }

    fn entry(&self, name: &str) -> Result<&Entry, FileError> {
        self.table
            .iter()
            .find(|entry| entry.name == name)
            .ok_or_else(|| self.damaged(format!("no section {name}")))
    }

    fn slice(&self, entry: &Entry) -> Bytes {
        self.bytes
            .slice(entry.offset, entry.length)
            .expect("the table was checked against the length on opening")
    }
}

impl Entry {
    fn read(raw: &[u8]) -> Self {
        let name = raw[..NAME_BYTES].split(|&byte| byte == 0).next().unwrap_or_default();
        Self {
            name: String::from_utf8_lossy(name).into_owned(),
            offset: read_u64(raw, NAME_BYTES) as usize,
            length: read_u64(raw, NAME_BYTES + 8) as usize,
            checksum: read_u64(raw, NAME_BYTES + 16),
        }
    }
}

fn read_u32(raw: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(raw[at..at + 4].try_into().expect("four bytes"))
}

fn read_u64(raw: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(raw[at..at + 8].try_into().expect("eight bytes"))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn sample() -> Vec<u8> {
        let mut writer = SectionWriter::new(3);
        writer.add("numbers", (0..100u8).collect());
        writer.add("empty", Vec::new());
        writer.add("text", b"hello".to_vec());
        writer.finish()
    }

    fn open(bytes: Vec<u8>) -> Result<SectionFile, FileError> {
        SectionFile::from_bytes(Path::new("sample"), Bytes::from_vec(bytes), 3)
    }

    #[test]
    fn sections_come_back() {
        let file = open(sample()).unwrap();
        assert_eq!(&*file.section("text").unwrap(), b"hello");
        assert_eq!(file.section("numbers").unwrap().len(), 100);
        assert!(file.section("empty").unwrap().is_empty());
        assert!(file.section("other").is_err());
    }

    #[test]
    fn every_flipped_bit_that_matters_is_noticed() {
        let good = sample();
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 4;
            let noticed = match open(bad) {
                Err(_) => true,
                Ok(file) => file.verify().is_err(),
            };
            assert!(noticed, "byte {at}");
        }
    }

    #[test]
    fn every_cut_is_noticed() {
        let good = sample();
        for length in 0..good.len() {
            assert!(open(good[..length].to_vec()).is_err(), "{length}");
        }
    }
}
