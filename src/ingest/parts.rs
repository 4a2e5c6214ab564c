//! Vectors that have been made and are in no segment yet.
//!
//! Who asks a server pays for every answer, in time or money; so each is kept as it comes, under the keys of its chunks. A part
//! belongs to no epoch: it stays good when numbers change, and goes when all that it holds is in segments.
//!
//! A part is `"CSPV"`, u32 format = 1, u32 number of rows n, u32 zero, n keys of 16 bytes, then a whole file of n rows, of vectors or
//! sparse ones.
//! It is named by its content and kept beside the vector files.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use crate::embed::ProfileId;
use crate::index::RowFile;
use crate::index::shared::{THERE_ENDING, There};
use crate::model::ChunkKey;
use crate::sidecar::{Bytes, Sidecar, Store, StoredFile, WriterLock};

const PART_ENDING: &str = "part";
/// Of the file with the vector that a profile's probe had first, which is named by the profile.
pub(super) const PROBE_ENDING: &str = "probe";
const MAGIC: &[u8; 4] = b"CSPV";
const FORMAT: u32 = 1;
const HEADER_BYTES: usize = 16;
const KEY_BYTES: usize = 16;
/// A writer that takes its lock clears away what it takes for left half-written, and it may be this.
const MAX_TRIES: usize = 5;

/// One file of them.
pub(super) struct Part {
    pub(super) name: String,
    pub(super) keys: Vec<ChunkKey>,
    pub(super) rows: RowFile,
}

/// Those of one profile, by the keys of their chunks.
#[derive(Default)]
pub(super) struct Parts {
    list: Vec<Part>,
    places: HashMap<ChunkKey, (usize, u32)>,
}

impl Part {
    /// Stores the rows of a whole file, one for each key. Needs no lock.
    pub(super) fn store(sidecar: &Sidecar, keys: &[ChunkKey], rows: &[u8]) -> io::Result<Self> {
        let bytes = Self::encode(keys, rows);
        let name = StoredFile::of(&bytes, PART_ENDING).name;
        let mut n_tries = 0;
        loop {
            n_tries += 1;
            match sidecar.write(Store::Dense, &name, &bytes) {
                Err(error) if error.kind() == io::ErrorKind::NotFound && n_tries < MAX_TRIES => {}
                written => break written?,
            }
        }
        Self::open(sidecar, &name)
    }

    /// The bytes of a part.
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

    /// Opens one and compares it with its name.
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

    /// Reads one, wherever it is from.
    pub(super) fn decode(name: &str, bytes: Bytes) -> io::Result<Self> {
        let damaged = |what: &str| io::Error::new(io::ErrorKind::InvalidData, format!("{name}: {what}"));
        let all: &[u8] = bytes.as_ref();
        let number = |at: usize| {
            all.get(at..at + 4)
                .map(|four| u32::from_le_bytes(four.try_into().expect("four")))
        };
        let n = number(8).filter(|_| all.starts_with(MAGIC) && number(4) == Some(FORMAT));
        let n = n.ok_or_else(|| damaged("not of this form"))? as usize;
        let end = HEADER_BYTES + KEY_BYTES * n;
        let keys = all.get(HEADER_BYTES..end).ok_or_else(|| damaged("cut short"))?;
        let keys = keys
            .chunks_exact(KEY_BYTES)
            .map(|key| ChunkKey(key.try_into().expect("sixteen")))
            .collect();
        let rows = RowFile::open(Arc::new(Tail { bytes, start: end })).map_err(|error| damaged(&error.to_string()))?;
        match rows.len() as usize == n {
            true => Ok(Self {
                name: name.to_owned(),
                keys,
                rows,
            }),
            false => Err(damaged("another number of rows")),
        }
    }
}

/// The rest of a file.
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
    /// Those that are stored. One that cannot be used is passed over.
    pub(super) fn load(sidecar: &Sidecar, profile: ProfileId) -> io::Result<Self> {
        let mut parts = Self::default();
        for name in names(sidecar)? {
            match Part::open(sidecar, &name) {
                Ok(part) if part.rows.profile() == profile => parts.add(part),
                Ok(_) => {}
                Err(error) => tracing::warn!("vectors are passed over: {error}"),
            }
        }
        Ok(parts)
    }

    /// Puts one more to them.
    pub(super) fn add(&mut self, part: Part) {
        let at = self.list.len();
        let rows = part.keys.iter().zip(0u32..);
        self.places.extend(rows.map(|(key, row)| (*key, (at, row))));
        self.list.push(part);
    }

    /// The row of a chunk.
    pub(super) fn find(&self, key: ChunkKey) -> Option<(&RowFile, u32)> {
        let &(at, row) = self.places.get(&key)?;
        Some((&self.list[at].rows, row))
    }

    /// How many chunks they are about.
    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    /// Of what kind all of them are, if there are any.
    pub(super) fn like(&self) -> Option<&RowFile> {
        self.list.first().map(|part| &part.rows)
    }

    /// Removes the files of which everything is elsewhere by now, and forgets them.
    pub(super) fn remove_done(
        &mut self,
        sidecar: &Sidecar,
        lock: &WriterLock,
        is_done: impl Fn(ChunkKey) -> bool,
    ) -> io::Result<()> {
        for part in std::mem::take(self).list {
            match part.keys.iter().all(|key| is_done(*key)) {
                true => sidecar.remove(Store::Dense, &part.name, lock)?,
                false => self.add(part),
            }
        }
        Ok(())
    }
}

/// The name of the file with the row that a profile's probe had first.
pub(super) fn probe_name(profile: ProfileId) -> String {
    format!("{profile}.{PROBE_ENDING}")
}

/// The names of all parts, in order.
pub(super) fn names(sidecar: &Sidecar) -> io::Result<Vec<String>> {
    let entries = sidecar.entries(Some(Store::Dense))?;
    let names = entries.into_iter().filter_map(|entry| entry.name.into_string().ok());
    let mut names: Vec<String> = names.filter(|name| is_part(name)).collect();
    names.sort_unstable();
    Ok(names)
}

/// Removes what belongs to profiles that do not stay.
pub(super) fn remove_unused(sidecar: &Sidecar, lock: &WriterLock, stays: impl Fn(&str) -> bool) -> io::Result<()> {
    for entry in sidecar.entries(Some(Store::Dense))? {
        let Ok(name) = entry.name.into_string() else { continue };
        let profile = match name.rsplit_once('.') {
            // Damaged ones are nobody's.
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

fn is_part(name: &str) -> bool {
    is_plain(name) && name.ends_with(&format!(".{PART_ENDING}"))
}

fn is_plain(name: &str) -> bool {
    let name = name.to_owned();
    StoredFile { name, length: 0 }.has_plain_name()
}
