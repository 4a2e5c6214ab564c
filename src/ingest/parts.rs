//! Parts: files of new vectors that are not yet in a segment.
//!
//! Every response of a server costs time or money, so it is stored as soon as it arrives, keyed by chunk. A part
//! belongs to no epoch: it stays valid when numbers change, and is removed when all of its vectors are in segments.
//!
//! A part has the sections (format 1) `keys`, n × 16 bytes, and `rows`, a whole file of n rows, dense or sparse. It is
//! named by its content and stored next to the vector files.

use std::collections::HashMap;
use std::io;
use std::path::Path;

use crate::embed::ProfileId;
use crate::index::RowFile;
use crate::index::dense::WriteError;
use crate::model::ChunkKey;
use crate::sidecar::{Bytes, FileError, SectionFile, SectionWriter, Sidecar, Store, StoredFile, WriterLock};

const PART_ENDING: &str = "part";
/// Extension of the file that holds the first vector of a profile's probe text. The file is named after the profile.
pub(super) const PROBE_ENDING: &str = "probe";
const FORMAT: u32 = 1;
/// Number of attempts to write a file without the lock. A writer that holds the lock removes files that look
/// half-written, including files in progress.
const MAX_TRIES: usize = 5;

/// One file of new vectors.
pub(super) struct Part {
    pub(super) name: String,
    keys: Bytes,
    pub(super) rows: RowFile,
}

/// The parts of one profile, indexed by the keys of their chunks.
#[derive(Default)]
pub(super) struct Parts {
    list: Vec<Part>,
    places: HashMap<ChunkKey, (usize, u32)>,
    /// Number of rows added since [`Self::take_new`] last returned true.
    n_new: usize,
}

impl Part {
    /// Stores a file of rows and their keys, in the same order. Needs no lock.
    pub(super) fn store(sidecar: &Sidecar, keys: &[ChunkKey], rows: Vec<u8>) -> Result<Self, FileError> {
        let bytes = Self::encode(keys, rows);
        let name = StoredFile::of(&bytes, PART_ENDING).name;
        write_unlocked(sidecar, &name, &bytes)?;
        Self::open(sidecar, &name)
    }

    /// Returns the bytes of a part.
    pub(super) fn encode(keys: &[ChunkKey], rows: Vec<u8>) -> Vec<u8> {
        let mut file = SectionWriter::new(FORMAT);
        file.add("keys", keys.iter().flat_map(|key| key.0).collect());
        file.add("rows", rows);
        file.finish()
    }

    /// Opens a part and checks its content against its name.
    pub(super) fn open(sidecar: &Sidecar, name: &str) -> Result<Self, FileError> {
        let path = sidecar.path(Store::Dense, name);
        let bytes = sidecar.map(Store::Dense, name);
        let bytes = bytes.map_err(|source| FileError::read(&path, source))?;
        let stored = StoredFile {
            name: name.to_owned(),
            length: bytes.len() as u64,
        };
        stored.check(&bytes).map_err(|what| FileError::damaged(&path, what))?;
        Self::decode(name, bytes)
    }

    /// Decodes a part from any source.
    pub(super) fn decode(name: &str, bytes: Bytes) -> Result<Self, FileError> {
        let file = SectionFile::from_bytes(Path::new(name), bytes, FORMAT)?;
        let part = Self {
            name: name.to_owned(),
            keys: file.section("keys")?,
            rows: RowFile::from_bytes(Path::new(name), file.section("rows")?)?,
        };
        if part.keys.len() == part.rows.len() as usize * size_of::<ChunkKey>() {
            Ok(part)
        } else {
            Err(file.damaged("number of rows"))
        }
    }

    /// Iterates over the keys of the rows, in their order.
    pub(super) fn keys(&self) -> impl Iterator<Item = ChunkKey> + '_ {
        self.keys.as_chunks().0.iter().map(|key| ChunkKey(*key))
    }

    /// Stores some of its rows as a new part.
    fn only(&self, sidecar: &Sidecar, stays: &[bool]) -> Result<Self, FileError> {
        let damaged = |error: WriteError| FileError::damaged(sidecar.path(Store::Dense, &self.name), error.to_string());
        let (mut writer, mut keys) = (self.rows.writer().map_err(damaged)?, Vec::new());
        for (key, row) in self.keys().zip(0u32..).filter(|(_, row)| stays[*row as usize]) {
            writer.copy_row(&self.rows, row).map_err(damaged)?;
            keys.push(key);
        }
        Self::store(sidecar, &keys, writer.finish())
    }
}

impl Parts {
    /// Loads the stored parts of a profile. Ignores unreadable files.
    pub(super) fn load(sidecar: &Sidecar, profile: ProfileId) -> Result<Self, FileError> {
        let mut parts = Self::default();
        for name in names(sidecar)? {
            match Part::open(sidecar, &name) {
                Ok(part) if part.rows.profile() == profile => parts.add(part),
                Ok(_) => {}
                Err(error) => tracing::warn!("ignoring vectors: {error}"),
            }
        }
        Ok(parts)
    }

    /// Adds a part.
    pub(super) fn add(&mut self, part: Part) {
        let at = self.list.len();
        self.places
            .extend(part.keys().zip(0u32..).map(|(key, row)| (key, (at, row))));
        self.n_new += part.rows.len() as usize;
        self.list.push(part);
    }

    /// Returns whether at least `n` rows were added since this last returned true.
    pub(super) fn take_new(&mut self, n: usize) -> bool {
        let are_many = self.n_new >= n;
        if are_many {
            self.n_new = 0;
        }
        are_many
    }

    /// Returns the row of a chunk.
    pub(super) fn find(&self, key: ChunkKey) -> Option<(&RowFile, u32)> {
        let &(at, row) = self.places.get(&key)?;
        Some((&self.list[at].rows, row))
    }

    /// Returns the number of chunks with a row.
    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    /// Returns a file of the kind and dimension of all parts, if there are any.
    pub(super) fn like(&self) -> Option<&RowFile> {
        self.list.first().map(|part| &part.rows)
    }

    /// Removes rows that are now stored in segments. The remaining rows of a file are written as a new file.
    pub(super) fn remove_done(
        &mut self,
        sidecar: &Sidecar,
        lock: &WriterLock,
        is_done: impl Fn(ChunkKey) -> bool,
    ) -> Result<(), FileError> {
        for part in std::mem::take(self).list {
            let stays: Vec<bool> = part.keys().map(|key| !is_done(key)).collect();
            if stays.iter().all(|stays| *stays) {
                self.add(part);
                continue;
            }
            if stays.contains(&true) {
                self.add(part.only(sidecar, &stays)?);
            }
            match sidecar.remove(Store::Dense, &part.name, lock) {
                // A garbage collection has already removed the file.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                removed => removed.map_err(|source| unwritable(sidecar, &part.name, source))?,
            }
        }
        self.n_new = 0;
        Ok(())
    }
}

/// Loads the first row of a profile's probe; `None` if the profile has never been used here.
pub fn load_probe(sidecar: &Sidecar, profile: ProfileId) -> Result<Option<RowFile>, FileError> {
    match RowFile::open(sidecar, &probe_name(profile)) {
        Err(error) if error.is_gone() => Ok(None),
        probe => probe.map(Some),
    }
}

/// Returns the name of the file that holds the first vector of a profile's probe text.
pub(super) fn probe_name(profile: ProfileId) -> String {
    format!("{profile}.{PROBE_ENDING}")
}

/// Writes a file without holding the lock.
pub(super) fn write_unlocked(sidecar: &Sidecar, name: &str, bytes: &[u8]) -> Result<(), FileError> {
    let mut n_tries = 0;
    loop {
        n_tries += 1;
        match sidecar.write(Store::Dense, name, bytes) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && n_tries < MAX_TRIES => {}
            written => return written.map_err(|source| unwritable(sidecar, name, source)),
        }
    }
}

/// Lists the names of all parts, sorted.
fn names(sidecar: &Sidecar) -> Result<Vec<String>, FileError> {
    let mut names = plain_names(sidecar)?;
    names.retain(|name| name.ends_with(&format!(".{PART_ENDING}")));
    names.sort_unstable();
    Ok(names)
}

/// Lists the names in the folder of vectors that have codescout's own form.
fn plain_names(sidecar: &Sidecar) -> Result<Vec<String>, FileError> {
    let entries = sidecar.entries(Some(Store::Dense));
    let entries = entries.map_err(|source| FileError::read(sidecar.folder(Store::Dense), source))?;
    let names = entries.into_iter().filter_map(|entry| entry.name.into_string().ok());
    Ok(names.filter(|name| is_plain(name)).collect())
}

/// Removes the files of profiles for which `stays` returns false.
pub(super) fn remove_unused(
    sidecar: &Sidecar,
    lock: &WriterLock,
    stays: impl Fn(&str) -> bool,
) -> Result<(), FileError> {
    for name in plain_names(sidecar)? {
        let profile = match name.rsplit_once('.') {
            // A damaged file has no profile.
            Some((_, PART_ENDING)) => match Part::open(sidecar, &name) {
                Ok(part) => part.rows.profile().to_string(),
                Err(error) if error.is_invalid() => String::new(),
                Err(error) if error.is_gone() => continue,
                Err(error) => return Err(error),
            },
            Some((profile, PROBE_ENDING)) => profile.to_owned(),
            _ => continue,
        };
        if !stays(&profile) {
            let removed = sidecar.remove(Store::Dense, &name, lock);
            removed.map_err(|source| unwritable(sidecar, &name, source))?;
        }
    }
    Ok(())
}

/// Removes the rows of chunks for which `is_there` returns false.
pub(super) fn remove_dead(
    sidecar: &Sidecar,
    lock: &WriterLock,
    is_there: impl Fn(ChunkKey) -> bool,
) -> Result<(), FileError> {
    let mut parts = Parts::default();
    for name in names(sidecar)? {
        if let Ok(part) = Part::open(sidecar, &name) {
            parts.add(part);
        }
    }
    parts.remove_done(sidecar, lock, |key| !is_there(key))
}

fn unwritable(sidecar: &Sidecar, name: &str, source: io::Error) -> FileError {
    FileError::write(sidecar.path(Store::Dense, name), source)
}

fn is_plain(name: &str) -> bool {
    let name = name.to_owned();
    StoredFile { name, length: 0 }.has_plain_name()
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use std::ops::Range;

    use super::*;
    use crate::embed::SparseVector;
    use crate::index::{Row, RowWriter};

    fn key(number: u8) -> ChunkKey {
        ChunkKey([number; 16])
    }

    /// A part whose rows have as many tokens as their key's number.
    fn part(sidecar: &Sidecar, numbers: Range<u8>) -> Part {
        let row = |number: u8| {
            let terms = (0..u32::from(number)).map(|token| (token, 1.0)).collect();
            Row::Sparse(SparseVector::from_foreign(terms, "m").unwrap())
        };
        let mut writer = RowWriter::like(&row(0), ProfileId([7; 16])).unwrap();
        numbers.clone().for_each(|number| writer.push(&row(number)).unwrap());
        let keys: Vec<ChunkKey> = numbers.map(key).collect();
        Part::store(sidecar, &keys, writer.finish()).unwrap()
    }

    #[test]
    fn remove_done_keeps_the_rest_without_counting_it_as_new() {
        let folder = tempfile::tempdir().unwrap();
        let sidecar = Sidecar::open_or_create(&folder.path().join("sidecar")).unwrap();
        let lock = sidecar.lock(std::time::Duration::ZERO).unwrap();
        let mut parts = Parts::default();
        parts.add(part(&sidecar, 0..4));
        parts.add(part(&sidecar, 4..6));
        assert!(parts.take_new(6) && !parts.take_new(1));
        for n_done in [3, 3, 5] {
            parts.remove_done(&sidecar, &lock, |key| key.0[0] < n_done).unwrap();
            assert!(!parts.take_new(1));
            assert_eq!(parts.len(), 6 - usize::from(n_done));
            let loaded = Parts::load(&sidecar, ProfileId([7; 16])).unwrap();
            for number in 0..6 {
                let terms = |parts: &Parts| match parts.find(key(number)) {
                    Some((RowFile::Sparse(rows), row)) => Some(rows.terms(row).count()),
                    _ => None,
                };
                let expected = (number >= n_done).then_some(usize::from(number));
                assert_eq!((terms(&parts), terms(&loaded)), (expected, expected), "{number}");
            }
        }
        parts.add(part(&sidecar, 8..10));
        assert!(!parts.take_new(3) && parts.take_new(2));
        parts.remove_done(&sidecar, &lock, |_| true).unwrap();
        assert!(names(&sidecar).unwrap().is_empty());
    }
}
