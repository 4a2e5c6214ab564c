//! Small files that contain one record: four magic bytes, the format (u32), the xxh3 hash of the payload (u64) and the
//! payload, encoded by the record codec. A write always replaces the whole file.
//!
//! They are not sectioned files, because they are read as a whole and the table of sections would be larger than most of
//! them.

use std::io;
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;
use xxhash_rust::xxh3::xxh3_64;

use super::codec::{decode, encode};
use super::file_error::{FileError, FileErrorKind};
use super::layout::Sidecar;

const HEADER_BYTES: usize = 16;
/// Limit on the size of a file. The largest known has a few kilobytes.
const MAX_BYTES: u64 = 64 << 20;

/// The magic bytes and the format of a file.
#[derive(Clone, Copy, Debug)]
pub(super) struct RecordKind {
    pub(super) magic: [u8; 4],
    pub(super) format: u32,
    /// The earlier format that is read too, with the encoding of the fields that were added at the end since.
    pub(super) earlier: Option<(u32, &'static [u8])>,
}

/// Reads the record file `name`. Returns `None` if it does not exist, and fails if it is a link or a pipe.
pub(super) fn read_record<T: DeserializeOwned>(
    sidecar: &Sidecar,
    name: &str,
    kind: RecordKind,
) -> Result<Option<T>, FileError> {
    let path = sidecar.root().join(name);
    match sidecar.read(name, MAX_BYTES) {
        Ok(bytes) => from_bytes(&path, &bytes, kind).map(Some),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(FileError::read(path, source)),
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

fn from_bytes<T: DeserializeOwned>(path: &Path, bytes: &[u8], kind: RecordKind) -> Result<T, FileError> {
    let damaged = |what: &str| FileError::damaged(path, what);
    if bytes.len() < HEADER_BYTES || bytes[..4] != kind.magic {
        return Err(damaged("header"));
    }
    let found = u32::from_le_bytes(bytes[4..8].try_into().expect("four bytes"));
    let payload = &bytes[HEADER_BYTES..];
    let is_intact = xxh3_64(payload).to_le_bytes() == bytes[8..HEADER_BYTES];
    let record = if is_intact {
        decode(payload).map_err(|error| damaged(&error.to_string()))
    } else {
        Err(damaged("checksum"))
    };
    if found == kind.format {
        return record;
    }
    if let Some((_, added)) = kind.earlier.filter(|(format, _)| *format == found)
        && is_intact
    {
        return decode(&[payload, added].concat()).map_err(|error| damaged(&error.to_string()));
    }
    // Everything else is valid. A real file of another format would not decode as this one.
    if (found ^ kind.format).is_power_of_two() && record.is_ok() {
        return Err(damaged("format number"));
    }
    let supported = kind.format;
    Err(FileError::new(path, FileErrorKind::Format { found, supported }))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use std::fs;

    use super::*;

    const KIND: RecordKind = RecordKind {
        magic: *b"TEST",
        format: 1,
        earlier: None,
    };

    #[test]
    fn an_earlier_format_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let sidecar = Sidecar::open_or_create(&folder.path().join("sidecar")).unwrap();
        write_record(&sidecar, "record", KIND, &"text".to_owned()).unwrap();
        let later = RecordKind {
            format: 6,
            earlier: Some((1, &[0])),
            ..KIND
        };
        let read = || read_record::<(String, Vec<u32>)>(&sidecar, "record", later);
        assert_eq!(read().unwrap(), Some(("text".to_owned(), Vec::new())));
        write_record(&sidecar, "record", later, &("text", vec![7u32])).unwrap();
        assert_eq!(read().unwrap(), Some(("text".to_owned(), vec![7])));
    }

    #[test]
    fn round_trips_and_distinguishes_damage_from_other_formats() {
        let folder = tempfile::tempdir().unwrap();
        let sidecar = Sidecar::open_or_create(&folder.path().join("sidecar")).unwrap();
        let path = sidecar.root().join("record");
        let read = || read_record::<String>(&sidecar, "record", KIND);
        assert_eq!(read().unwrap(), None);
        write_record(&sidecar, "record", KIND, &"text".to_owned()).unwrap();
        assert_eq!(read().unwrap().as_deref(), Some("text"));
        let good = fs::read(&path).unwrap();
        let problem = |bytes: &[u8]| from_bytes::<String>(&path, bytes, KIND).unwrap_err().kind;
        for bit in 0..good.len() * 8 {
            let mut bad = good.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(matches!(problem(&bad), FileErrorKind::Damaged(_)), "bit {bit}");
            assert!(
                matches!(problem(&good[..bit / 8]), FileErrorKind::Damaged(_)),
                "cut before bit {bit}"
            );
        }
        let mut other = good;
        other[4..8].copy_from_slice(&6u32.to_le_bytes());
        assert!(matches!(
            problem(&other),
            FileErrorKind::Format { found: 6, supported: 1 }
        ));
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
            assert!(
                matches!(
                    read(name),
                    Err(FileError {
                        kind: FileErrorKind::Read(_),
                        ..
                    })
                ),
                "{name}"
            );
        }
    }
}
