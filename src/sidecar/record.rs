//! A small file that holds one record: four bytes that name its kind, u32 format, u64 xxh3 of the payload, payload by the record
//! codec. Replaced as a whole.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;
use xxhash_rust::xxh3::xxh3_64;

use super::atomic::write_atomic;
use super::codec::{decode, encode};

const HEADER_BYTES: usize = 16;

/// Names the kind of a file, and its format.
#[derive(Clone, Copy, Debug)]
pub(super) struct RecordKind {
    pub(super) magic: [u8; 4],
    pub(super) format: u32,
}

/// Why a record could not be read.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// It is there and cannot be read.
    #[error("cannot read {}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// Its bytes are not what was written.
    #[error("{} is damaged: {what}", .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where the damage shows.
        what: String,
    },
    /// A newer build wrote it.
    #[error("{} has format {found}, this build knows another", .path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// What it says.
        found: u32,
    },
}

/// Reads the record at `path`; `None` if there is none.
pub(super) fn read_record<T: DeserializeOwned>(path: &Path, kind: RecordKind) -> Result<Option<T>, RecordError> {
    match fs::read(path) {
        Ok(bytes) => from_bytes(path, &bytes, kind).map(Some),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(RecordError::Io {
            path: path.to_owned(),
            source,
        }),
    }
}

/// Writes the record at `path`.
pub(super) fn write_record<T: Serialize>(path: &Path, kind: RecordKind, record: &T) -> io::Result<()> {
    let payload = encode(record);
    let mut bytes = kind.magic.to_vec();
    bytes.extend_from_slice(&kind.format.to_le_bytes());
    bytes.extend_from_slice(&xxh3_64(&payload).to_le_bytes());
    bytes.extend_from_slice(&payload);
    write_atomic(path, &bytes)
}

fn from_bytes<T: DeserializeOwned>(path: &Path, bytes: &[u8], kind: RecordKind) -> Result<T, RecordError> {
    let damaged = |what: String| RecordError::Damaged {
        path: path.to_owned(),
        what,
    };
    if bytes.len() < HEADER_BYTES || bytes[..4] != kind.magic {
        return Err(damaged("header".to_owned()));
    }
    let found = u32::from_le_bytes(bytes[4..8].try_into().expect("four bytes"));
    if found != kind.format {
        return Err(RecordError::Format {
            path: path.to_owned(),
            found,
        });
    }
    let payload = &bytes[HEADER_BYTES..];
    if xxh3_64(payload).to_le_bytes() != bytes[8..HEADER_BYTES] {
        return Err(damaged("checksum".to_owned()));
    }
    decode(payload).map_err(|error| damaged(error.to_string()))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    const KIND: RecordKind = RecordKind {
        magic: *b"TEST",
        format: 1,
    };

    #[test]
    fn comes_back_as_written_and_every_flip_and_cut_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("record");
        assert_eq!(read_record::<String>(&path, KIND).unwrap(), None);
        write_record(&path, KIND, &"text".to_owned()).unwrap();
        assert_eq!(read_record::<String>(&path, KIND).unwrap().as_deref(), Some("text"));
        let good = fs::read(&path).unwrap();
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 1;
            assert!(from_bytes::<String>(&path, &bad, KIND).is_err(), "byte {at}");
            assert!(from_bytes::<String>(&path, &good[..at], KIND).is_err(), "cut at {at}");
        }
    }
}
