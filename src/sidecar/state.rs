//! The file `state`, which lists the live immutable files. Replacing it is the only commit point of a write.
//!
//! `state` contains `"CSST"`, the format (u32), the xxh3 hash of the payload (u64) and the payload: a [`State`] encoded
//! by the record codec. It is written last and replaced atomically. Immutable files that it does not list are
//! leftovers.

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use super::codec::{CodecError, decode, encode};
use super::layout::Store;
use crate::model::{ErrorKind, Explain, Explanation};

const MAGIC: &[u8; 4] = b"CSST";
/// 1: without history; still readable. 2: with history; still readable. 4: with searchable history. 3 is skipped
/// because it differs from 2 by one bit, so damage could turn one into the other.
const FORMAT: u32 = 4;
const FORMAT_1: u32 = 1;
const FORMAT_2: u32 = 2;
const READ_FORMATS: [u32; 3] = [FORMAT_1, FORMAT_2, FORMAT];
const HEADER_BYTES: usize = 16;

/// The content of the sidecar at one generation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    /// Identifies a numbering of blobs and documents: all states with the same epoch use the same numbers for the same
    /// blobs and documents. Random, so that a rebuilt sidecar never has the epoch of its predecessor.
    pub epoch: [u8; 16],
    /// Incremented by every write.
    pub generation: u64,
    /// The extraction recipe that produced all artifacts.
    pub recipe: u64,
    /// The segments, sorted by number. Their ranges of blob and document numbers are contiguous.
    pub segments: Vec<SegmentEntry>,
    /// The batches of commits, sorted by number. Their ranges of commit numbers are contiguous. Commit numbers do not
    /// depend on the epoch.
    pub history: Vec<HistoryEntry>,
}

/// The payload of format 1.
#[derive(Deserialize)]
struct StateFormat1 {
    epoch: [u8; 16],
    generation: u64,
    recipe: u64,
    segments: Vec<SegmentEntry>,
}

impl From<StateFormat1> for State {
    fn from(old: StateFormat1) -> Self {
        Self {
            epoch: old.epoch,
            generation: old.generation,
            recipe: old.recipe,
            segments: old.segments,
            history: Vec::new(),
        }
    }
}

/// The payload of format 2.
#[derive(Deserialize)]
struct StateFormat2 {
    epoch: [u8; 16],
    generation: u64,
    recipe: u64,
    segments: Vec<SegmentEntry>,
    history: Vec<(u32, u32, StoredFile, Option<StoredFile>)>,
}

impl From<StateFormat2> for State {
    fn from(old: StateFormat2) -> Self {
        let entry = |(base_commit, n_commits, records, symbols)| HistoryEntry {
            base_commit,
            n_commits,
            records,
            symbols,
            messages: None,
            lines: None,
        };
        Self {
            epoch: old.epoch,
            generation: old.generation,
            recipe: old.recipe,
            segments: old.segments,
            history: old.history.into_iter().map(entry).collect(),
        }
    }
}

/// A batch of commits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistoryEntry {
    /// The number of the first commit.
    pub base_commit: u32,
    /// Number of commits.
    pub n_commits: u32,
    /// The changes of the commits, in `history-v1/`.
    pub records: StoredFile,
    /// The changes to symbols, in `history-v1/`. `None` if they were not recorded.
    pub symbols: Option<StoredFile>,
    /// The words and vectors of the commit messages, in `history-v1/`. `None` if they were not computed.
    pub messages: Option<StoredFile>,
    /// The signatures of added and removed lines, in `history-v1/`. `None` if they were not computed.
    pub lines: Option<StoredFile>,
}

impl HistoryEntry {
    /// Returns the files of the batch, each with its store.
    pub fn files(&self) -> impl Iterator<Item = (Store, &StoredFile)> {
        let files = std::iter::once(&self.records)
            .chain(&self.symbols)
            .chain(&self.messages)
            .chain(&self.lines);
        files.map(|file| (Store::History, file))
    }

    /// Returns the total size of the batch's files in bytes.
    pub fn n_bytes(&self) -> u64 {
        self.files().map(|(_, file)| file.length).sum()
    }
}

/// A segment: the artifacts, lexical index and vectors of a batch of blobs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SegmentEntry {
    /// The number of the first blob.
    pub base_blob: u32,
    /// Number of blobs.
    pub n_blobs: u32,
    /// The number of the first document.
    pub base_doc: u32,
    /// Number of documents.
    pub n_docs: u32,
    /// The artifacts of the blobs, in `artifacts-v1/`.
    pub artifacts: StoredFile,
    /// The lexical index of the documents, in `lexical-v1/`.
    pub lexical: StoredFile,
    /// The vectors of the documents, in `dense-v1/`: one file per embedding profile.
    pub vectors: Vec<VectorEntry>,
}

impl SegmentEntry {
    /// Returns the files of the segment, each with its store.
    pub fn files(&self) -> impl Iterator<Item = (Store, &StoredFile)> {
        let vectors = self.vectors.iter().map(|vectors| (Store::Dense, &vectors.file));
        [(Store::Artifacts, &self.artifacts), (Store::Lexical, &self.lexical)]
            .into_iter()
            .chain(vectors)
    }

    /// Returns the total size of the segment's files in bytes.
    pub fn n_bytes(&self) -> u64 {
        self.files().map(|(_, file)| file.length).sum()
    }
}

/// The vectors of a segment for one embedding profile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VectorEntry {
    /// The id of the embedding profile.
    pub profile: String,
    /// The file that contains the vectors.
    pub file: StoredFile,
}

/// The name and length of an immutable file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredFile {
    /// The file name, without its directory: hexadecimal digits of the content's BLAKE3 hash, and an extension.
    pub name: String,
    /// The length in bytes.
    pub length: u64,
}

impl StoredFile {
    /// Number of hexadecimal digits of the content's hash at the start of a file name.
    pub const NAME_DIGITS: usize = 32;

    /// Returns the name and length of a file with the content `bytes` and the extension `ending`.
    pub fn of(bytes: &[u8], ending: &str) -> Self {
        let hash = blake3::hash(bytes).to_hex();
        Self {
            name: format!("{}.{ending}", &hash[..Self::NAME_DIGITS]),
            length: bytes.len() as u64,
        }
    }

    /// Checks that `bytes` have the hash in the name and the expected length. The error describes the mismatch.
    pub fn check(&self, bytes: &[u8]) -> Result<(), String> {
        if bytes.len() as u64 != self.length {
            return Err(format!("{} bytes, expected {}", bytes.len(), self.length));
        }
        if self.name.get(..Self::NAME_DIGITS) == Some(&blake3::hash(bytes).to_hex()[..Self::NAME_DIGITS]) {
            Ok(())
        } else {
            Err("its content does not match its name".to_owned())
        }
    }

    /// Returns true if the name has the form that codescout gives to files. Such a name cannot refer to another
    /// directory.
    pub fn has_plain_name(&self) -> bool {
        self.name.split_once('.').is_some_and(|(stem, ending)| {
            stem.len() == Self::NAME_DIGITS
                && stem.bytes().all(|byte| byte.is_ascii_hexdigit())
                && !ending.is_empty()
                && ending.bytes().all(|byte| byte.is_ascii_lowercase())
        })
    }
}

/// An error from reading the state.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
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
    #[error("{} has format {found}, this build reads {FORMAT}", .path.display())]
    Format {
        /// The path of the file.
        path: PathBuf,
        /// The format in the file.
        found: u32,
    },
}

impl Explain for StateError {
    fn explain(&self) -> Explanation {
        match self {
            Self::Io { .. } => Explanation::default(),
            Self::Damaged { .. } => Explanation {
                kind: ErrorKind::Damaged,
                ..Explanation::hinting("the next search rebuilds the index, or: codescout verify --repair")
            },
            Self::Format { .. } => {
                Explanation::hinting("use the build that wrote it, or delete the folder: nothing but time is lost")
            }
        }
    }
}

impl State {
    /// Decodes the content of a `state` file. `path` is used in error messages.
    pub(super) fn from_bytes(path: &Path, bytes: &[u8]) -> Result<Self, StateError> {
        let damaged = |what: String| StateError::Damaged {
            path: path.to_owned(),
            what,
        };
        if bytes.len() < HEADER_BYTES || &bytes[..4] != MAGIC {
            return Err(damaged("header".to_owned()));
        }
        let format = u32::from_le_bytes(bytes[4..8].try_into().expect("four bytes"));
        let payload = &bytes[HEADER_BYTES..];
        let is_whole = xxh3_64(payload).to_le_bytes() == bytes[8..HEADER_BYTES];
        let read = |format| {
            if is_whole {
                Self::decoded(format, payload).map_err(|error| error.to_string())
            } else {
                Err("checksum".to_owned())
            }
        };
        if READ_FORMATS.contains(&format) {
            return read(format).map_err(damaged);
        }
        // Everything else is valid. A real file of another format would not decode as a known one.
        let is_flipped = |known: &u32| (format ^ known).is_power_of_two() && read(*known).is_ok();
        if READ_FORMATS.iter().any(is_flipped) {
            Err(damaged("format number".to_owned()))
        } else {
            Err(StateError::Format {
                path: path.to_owned(),
                found: format,
            })
        }
    }

    fn decoded(format: u32, payload: &[u8]) -> Result<Self, CodecError> {
        match format {
            FORMAT_1 => decode::<StateFormat1>(payload).map(Self::from),
            FORMAT_2 => decode::<StateFormat2>(payload).map(Self::from),
            _ => decode(payload),
        }
    }

    /// Returns the content of the `state` file.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let payload = encode(self);
        let mut bytes = Vec::with_capacity(HEADER_BYTES + payload.len());
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&FORMAT.to_le_bytes());
        bytes.extend_from_slice(&xxh3_64(&payload).to_le_bytes());
        bytes.extend_from_slice(&payload);
        bytes
    }

    /// Checks that the segments and the batches of commits are contiguous, and that their file names are valid. The
    /// error describes the problem.
    pub fn check(&self) -> Result<(), String> {
        let (mut blob, mut doc) = (0, 0);
        for entry in &self.segments {
            if (entry.base_blob, entry.base_doc) != (blob, doc) {
                return Err(format!(
                    "segment {}+{} does not follow the previous one",
                    entry.base_blob, entry.base_doc
                ));
            }
            let next = blob.checked_add(entry.n_blobs).zip(doc.checked_add(entry.n_docs));
            (blob, doc) = next.ok_or_else(|| "blob or document number overflow".to_owned())?;
        }
        if let Some((_, file)) = self.files().find(|(_, file)| !file.has_plain_name()) {
            return Err(format!("invalid file name {:?}", file.name));
        }
        self.check_history()
    }

    fn check_history(&self) -> Result<(), String> {
        let mut commit = 0u32;
        for entry in &self.history {
            if entry.base_commit != commit {
                return Err(format!("commits {} do not follow the previous ones", entry.base_commit));
            }
            let next = commit.checked_add(entry.n_commits);
            commit = next.ok_or_else(|| "commit number overflow".to_owned())?;
        }
        Ok(())
    }

    /// Returns the total size of all segment files in bytes.
    pub fn n_segment_bytes(&self) -> u64 {
        self.segments.iter().map(SegmentEntry::n_bytes).sum()
    }

    /// Returns all live files, each with its store.
    pub fn files(&self) -> impl Iterator<Item = (Store, &StoredFile)> {
        let of_segments = self.segments.iter().flat_map(SegmentEntry::files);
        of_segments.chain(self.history.iter().flat_map(HistoryEntry::files))
    }

    /// Returns the number of blobs.
    pub fn n_blobs(&self) -> u32 {
        self.segments.last().map_or(0, |last| last.base_blob + last.n_blobs)
    }

    /// Returns the number of commits.
    pub fn n_commits(&self) -> u32 {
        self.history.last().map_or(0, |last| last.base_commit + last.n_commits)
    }

    /// Returns the number of documents.
    pub fn n_docs(&self) -> u32 {
        self.segments.last().map_or(0, |last| last.base_doc + last.n_docs)
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn round_trips_and_reports_damage() {
        let path = Path::new("state");
        let state = State {
            generation: 3,
            recipe: 7,
            ..State::default()
        };
        let good = state.to_bytes();
        assert_eq!(State::from_bytes(path, &good).unwrap(), state);
        for bit in 0..good.len() * 8 {
            let mut bad = good.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(
                matches!(State::from_bytes(path, &bad), Err(StateError::Damaged { .. })),
                "bit {bit}"
            );
        }
        let mut other = good.clone();
        other[4..8].copy_from_slice(&7u32.to_le_bytes());
        assert!(matches!(
            State::from_bytes(path, &other),
            Err(StateError::Format { found: 7, .. })
        ));
    }

    #[test]
    fn names_that_leave_the_directory_are_invalid() {
        let named = |name: &str| StoredFile {
            name: name.to_owned(),
            length: 0,
        };
        assert!(StoredFile::of(b"x", "art").has_plain_name());
        let stem = "a".repeat(StoredFile::NAME_DIGITS);
        for name in [
            "",
            "../../state",
            &format!("{stem}./x"),
            &format!("{stem}/../x.art"),
            &stem,
        ] {
            assert!(!named(name).has_plain_name(), "{name}");
        }
        assert!(StoredFile::of(b"x", "art").check(b"x").is_ok());
        assert!(StoredFile::of(b"x", "art").check(b"y").is_err());
    }

    #[test]
    fn states_of_older_formats_are_read() {
        let read = |format: u32, payload: &[u8]| {
            let mut bytes = MAGIC.to_vec();
            bytes.extend_from_slice(&format.to_le_bytes());
            bytes.extend_from_slice(&xxh3_64(payload).to_le_bytes());
            bytes.extend_from_slice(payload);
            State::from_bytes(Path::new("state"), &bytes).unwrap()
        };
        let old = ([7u8; 16], 3u64, 9u64, Vec::<SegmentEntry>::new());
        let state = read(FORMAT_1, &encode(&old));
        assert_eq!((state.epoch, state.generation, state.recipe), ([7; 16], 3, 9));
        assert!(state.history.is_empty());

        let records = StoredFile::of(b"x", "hist");
        let batch = (0u32, 5u32, records.clone(), None::<StoredFile>);
        let state = read(FORMAT_2, &encode(&(old.0, old.1, old.2, old.3, vec![batch])));
        assert_eq!((state.n_commits(), &state.history[0].records), (5, &records));
        assert_eq!(state.history[0].files().count(), 1);
    }
}
