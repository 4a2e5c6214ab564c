//! Parts: files of new vectors that are not yet in a segment.
//!
//! Every response of a server costs time or money, so it is stored as soon as it arrives, keyed by chunk. A part
//! belongs to no epoch: it stays valid when numbers change, and is removed when all of its vectors are in segments.
//!
//! A part is `"CSPV"`, u32 format = 1, u32 number of rows n, u32 zero, n keys of 16 bytes, then a whole file of n rows,
//! dense or sparse. It is named by its content and stored next to the vector files.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use crate::embed::ProfileId;
use crate::index::RowFile;
use crate::index::shared::{THERE_ENDING, There};
use crate::model::ChunkKey;
use crate::sidecar::{Bytes, Sidecar, Store, StoredFile, WriterLock};

const PART_ENDING: &str = "part";
/// Extension of the file that holds the first vector of a profile's probe text. The file is named after the profile.
pub(super) const PROBE_ENDING: &str = "probe";
const MAGIC: &[u8; 4] = b"CSPV";
const FORMAT: u32 = 1;
const HEADER_BYTES: usize = 16;
const KEY_BYTES: usize = 16;
/// Number of attempts to write a file without the lock. A writer that holds the lock removes files that look
/// half-written, including files in progress.
const MAX_TRIES: usize = 5;

/// One file of new vectors.
pub(super) struct Part {
    pub(super) name: String,
    pub(super) keys: Vec<ChunkKey>,
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
    pub(super) fn store(sidecar: &Sidecar, keys: &[ChunkKey], rows: &[u8]) -> io::Result<Self> {
        let bytes = Self::encode(keys, rows);
        let name = StoredFile::of(&bytes, PART_ENDING).name;
        write_unlocked(sidecar, &name, &bytes)?;
        Self::open(sidecar, &name)
    }

    /// Returns the bytes of a part.
    pub(super) fn encode(keys: &[ChunkKey], rows: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEADER_BYTES + KEY_BYTES * keys.len() + rows.len());
        bytes.extend_from_slice(MAGIC);
        for number in [FORMAT, keys.len() as u32, 0] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        keys.iter().for_each(|key| bytes.extend_from_slice(&key.0));
        bytes.extend_from_slice(rows);
        bytes
    }

    /// Opens a part and checks its content against its name.
    pub(super) fn open(sidecar: &Sidecar, name: &str) -> io::Result<Self> {
        let bytes = sidecar.map(Store::Dense, name)?;
        let length = bytes.len() as u64;
        let stored = StoredFile {
            name: name.to_owned(),
            length,
        };
        let damaged = |what: String| io::Error::new(io::ErrorKind::InvalidData, format!("{name}: {what}"));
        stored.check(&bytes).map_err(damaged)?;
        Self::decode(name, bytes)
    }

    /// Decodes a part from any source.
    pub(super) fn decode(name: &str, bytes: Bytes) -> io::Result<Self> {
        let damaged = |what: &str| io::Error::new(io::ErrorKind::InvalidData, format!("{name}: {what}"));
        let all: &[u8] = bytes.as_ref();
        let n = n_rows_of(all).ok_or_else(|| damaged("not a file of vectors"))? as usize;
        let end = HEADER_BYTES + KEY_BYTES * n;
        let keys = all.get(HEADER_BYTES..end).ok_or_else(|| damaged("cut short"))?;
        let keys = keys
            .chunks_exact(KEY_BYTES)
            .map(|key| ChunkKey(key.try_into().expect("sixteen")))
            .collect();
        let rows = RowFile::open(Arc::new(Tail { bytes, start: end })).map_err(|error| damaged(&error.to_string()))?;
        if rows.len() as usize == n {
            Ok(Self {
                name: name.to_owned(),
                keys,
                rows,
            })
        } else {
            Err(damaged("wrong number of rows"))
        }
    }

    /// Stores some rows of this part as a new part.
    fn only(&self, sidecar: &Sidecar, rows: &[u32]) -> io::Result<Self> {
        let mut writer = self.rows.writer().map_err(io::Error::other)?;
        for &row in rows {
            writer.copy_row(&self.rows, row).map_err(io::Error::other)?;
        }
        let keys: Vec<ChunkKey> = rows.iter().map(|&row| self.keys[row as usize]).collect();
        Self::store(sidecar, &keys, &writer.finish())
    }
}

/// Returns the number of rows in the header of an encoded part, or `None` if the bytes are not a part.
pub(super) fn n_rows_of(part: &[u8]) -> Option<u32> {
    let number = |at: usize| Some(u32::from_le_bytes(part.get(at..at + 4)?.try_into().ok()?));
    number(8).filter(|_| part.starts_with(MAGIC) && number(4) == Some(FORMAT))
}

/// The remaining bytes of a file, from an offset.
struct Tail {
    bytes: Bytes,
    start: usize,
}

impl AsRef<[u8]> for Tail {
    fn as_ref(&self) -> &[u8] {
        &self.bytes.as_ref()[self.start..]
    }
}

impl Parts {
    /// Loads the stored parts of a profile. Ignores unreadable files.
    pub(super) fn load(sidecar: &Sidecar, profile: ProfileId) -> io::Result<Self> {
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
        let rows = part.keys.iter().zip(0u32..);
        self.places.extend(rows.map(|(key, row)| (*key, (at, row))));
        self.n_new += part.keys.len();
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
    ) -> io::Result<()> {
        for part in std::mem::take(self).list {
            let rows = 0..part.keys.len() as u32;
            let left: Vec<u32> = rows.filter(|&row| !is_done(part.keys[row as usize])).collect();
            if left.len() == part.keys.len() {
                self.add(part);
                continue;
            }
            if !left.is_empty() {
                self.add(part.only(sidecar, &left)?);
            }
            match sidecar.remove(Store::Dense, &part.name, lock) {
                // A garbage collection has already removed the file.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                removed => removed?,
            }
        }
        self.n_new = 0;
        Ok(())
    }
}

/// Returns the name of the file that holds the first vector of a profile's probe text.
pub(super) fn probe_name(profile: ProfileId) -> String {
    format!("{profile}.{PROBE_ENDING}")
}

/// Writes a file without holding the lock.
pub(super) fn write_unlocked(sidecar: &Sidecar, name: &str, bytes: &[u8]) -> io::Result<()> {
    let mut n_tries = 0;
    loop {
        n_tries += 1;
        match sidecar.write(Store::Dense, name, bytes) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && n_tries < MAX_TRIES => {}
            written => return written,
        }
    }
}

/// Lists the names of all parts, sorted.
pub(super) fn names(sidecar: &Sidecar) -> io::Result<Vec<String>> {
    let entries = sidecar.entries(Some(Store::Dense))?;
    let names = entries.into_iter().filter_map(|entry| entry.name.into_string().ok());
    let mut names: Vec<String> = names.filter(|name| is_part(name)).collect();
    names.sort_unstable();
    Ok(names)
}

/// Removes the files of profiles for which `stays` returns false.
pub(super) fn remove_unused(sidecar: &Sidecar, lock: &WriterLock, stays: impl Fn(&str) -> bool) -> io::Result<()> {
    for entry in sidecar.entries(Some(Store::Dense))? {
        let Ok(name) = entry.name.into_string() else { continue };
        let profile = match name.rsplit_once('.') {
            // A damaged file has no profile.
            Some((_, PART_ENDING)) if is_plain(&name) => match Part::open(sidecar, &name) {
                Ok(part) => part.rows.profile().to_string(),
                Err(_) => String::new(),
            },
            Some((profile, PROBE_ENDING)) if is_plain(&name) => profile.to_owned(),
            Some((_, THERE_ENDING)) if is_plain(&name) => {
                let profile = There::profile_of(sidecar.map(Store::Dense, &name)?.as_ref());
                profile.map(|profile| profile.to_string()).unwrap_or_default()
            }
            _ => continue,
        };
        if !stays(&profile) {
            sidecar.remove(Store::Dense, &name, lock)?;
        }
    }
    Ok(())
}

/// Removes the rows of chunks for which `is_there` returns false.
pub(super) fn remove_dead(sidecar: &Sidecar, lock: &WriterLock, is_there: impl Fn(ChunkKey) -> bool) -> io::Result<()> {
    let mut parts = Parts::default();
    for name in names(sidecar)? {
        if let Ok(part) = Part::open(sidecar, &name) {
            parts.add(part);
        }
    }
    parts.remove_done(sidecar, lock, |key| !is_there(key))
}

fn is_part(name: &str) -> bool {
    is_plain(name) && name.ends_with(&format!(".{PART_ENDING}"))
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
        ChunkKey([number; KEY_BYTES])
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
        Part::store(sidecar, &keys, &writer.finish()).unwrap()
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
