//! Small files that contain one record: four magic bytes, the format (u32), the xxh3 hash of the payload (u64) and the
//! payload, encoded by the record codec. A write always replaces the whole file.

use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;
use xxhash_rust::xxh3::xxh3_64;

use super::codec::{decode, encode};
use super::layout::Sidecar;

const HEADER_BYTES: usize = 16;

/// The magic bytes and the format of a file.
#[derive(Clone, Copy, Debug)]
pub(super) struct RecordKind {
    pub(super) magic: [u8; 4],
    pub(super) format: u32,
}

/// An error from reading a record.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The file exists but cannot be read.
    #[error("cannot read {}", .path.display())]
    Io {
        /// The path of the file.
        path: PathBuf,
        /// The underlying error.
        #[source]
        source: io::Error,
    },
    /// The file is damaged.
    #[error("{} is damaged: {what}", .path.display())]
    Damaged {
        /// The path of the file.
        path: PathBuf,
        /// The damaged part.
        what: String,
    },
    /// A newer build wrote the file.
    #[error("{} has format {found}, which this build does not support", .path.display())]
    Format {
        /// The path of the file.
        path: PathBuf,
        /// The format in the file.
        found: u32,
    },
}

/// Reads the record file `name`. Returns `None` if it does not exist, and fails if it is a link or a pipe.
pub(super) fn read_record<T: DeserializeOwned>(
    sidecar: &Sidecar,
    name: &str,
    kind: RecordKind,
) -> Result<Option<T>, RecordError> {
    let path = sidecar.root().join(name);
    match sidecar.read(name, u64::MAX) {
        Ok(bytes) => from_bytes(&path, &bytes, kind).map(Some),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(RecordError::Io { path, source }),
    }
}

/// Writes the record file `name`.
pub(super) fn write_record<T: Serialize>(
    sidecar: &Sidecar,
    name: &str,
    kind: RecordKind,
    record: &T,
) -> io::Result<()> {
    let payload = encode(record);
    let mut bytes = kind.magic.to_vec();
    bytes.extend_from_slice(&kind.format.to_le_bytes());
    bytes.extend_from_slice(&xxh3_64(&payload).to_le_bytes());
    bytes.extend_from_slice(&payload);
    sidecar.write_own(name, &bytes)
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
    use std::fs;

    use super::*;

    const KIND: RecordKind = RecordKind {
        magic: *b"TEST",
        format: 1,
    };

    #[test]
    fn round_trips_and_detects_every_flip_and_truncation() {
        let folder = tempfile::tempdir().unwrap();
        let sidecar = Sidecar::open_or_create(&folder.path().join("sidecar")).unwrap();
        let path = sidecar.root().join("record");
        let read = || read_record::<String>(&sidecar, "record", KIND);
        assert_eq!(read().unwrap(), None);
        write_record(&sidecar, "record", KIND, &"text".to_owned()).unwrap();
        assert_eq!(read().unwrap().as_deref(), Some("text"));
        let good = fs::read(&path).unwrap();
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 1;
            assert!(from_bytes::<String>(&path, &bad, KIND).is_err(), "byte {at}");
            assert!(from_bytes::<String>(&path, &good[..at], KIND).is_err(), "cut at {at}");
        }
    }

    #[test]
    fn records_are_read_only_from_regular_files_of_the_open_directory() {
        let folder = tempfile::tempdir().unwrap();
        let (root, moved) = (folder.path().join("sidecar"), folder.path().join("moved"));
        let sidecar = Sidecar::open_or_create(&root).unwrap();
        fs::rename(&root, &moved).unwrap();
        fs::create_dir(&root).unwrap();
        write_record(&sidecar, "record", KIND, &"text".to_owned()).unwrap();
        assert!(moved.join("record").exists() && !root.join("record").exists());
        let read = |name| read_record::<String>(&sidecar, name, KIND);
        assert_eq!(read("record").unwrap().as_deref(), Some("text"));
        std::os::unix::fs::symlink("record", moved.join("link")).unwrap();
        let made = std::process::Command::new("mkfifo").arg(moved.join("pipe")).status();
        assert!(made.unwrap().success());
        for name in ["link", "pipe"] {
            assert!(matches!(read(name), Err(RecordError::Io { .. })), "{name}");
        }
    }
}
