//! The one commit point: which immutable files are live.
//!
//! `state` is `"CSST"`, u32 format, u64 xxh3 of the payload, payload ([`State`] by the record codec). It is replaced
//! atomically and written last; files it does not name are leftovers.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use super::atomic::write_atomic;
use super::codec::{CodecError, decode, encode};

const MAGIC: &[u8; 4] = b"CSST";
/// 1: the first, without history; still read. 2: with history.
const FORMAT: u32 = 2;
const FORMAT_WITHOUT_HISTORY: u32 = 1;
const HEADER_BYTES: usize = 16;

/// What the sidecar holds at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    /// Names one unbroken line of numbering: blob and document numbers mean the same in every state of an epoch. Random,
    /// because a rebuilt sidecar must never pass for the one before it.
    pub epoch: [u8; 16],
    /// Raised by every write.
    pub generation: u64,
    /// The extraction recipe of all artifacts.
    pub recipe: u64,
    /// In the order of their numbers; their ranges of blobs and documents adjoin.
    pub segments: Vec<SegmentEntry>,
    /// In the order of their numbers; their ranges of commits adjoin. They outlive the epoch: commit numbers are their own.
    pub history: Vec<HistoryEntry>,
}

/// What format 1 had.
#[derive(Deserialize)]
struct StateWithoutHistory {
    epoch: [u8; 16],
    generation: u64,
    recipe: u64,
    segments: Vec<SegmentEntry>,
}

impl From<StateWithoutHistory> for State {
    fn from(old: StateWithoutHistory) -> Self {
        Self {
            epoch: old.epoch,
            generation: old.generation,
            recipe: old.recipe,
            segments: old.segments,
            history: Vec::new(),
        }
    }
}

/// One batch of commits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistoryEntry {
    /// The number of its first commit.
    pub base_commit: u32,
    /// How many commits it has.
    pub n_commits: u32,
    /// What they changed, below `history-v1/`.
    pub records: StoredFile,
    /// What they did to symbols, below `history-v1/`, if that was recorded.
    pub symbols: Option<StoredFile>,
}

/// One batch of blobs: artifacts, lexical index and vectors.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SegmentEntry {
    /// The number of its first blob.
    pub base_blob: u32,
    /// How many blobs it has.
    pub n_blobs: u32,
    /// The number of its first document.
    pub base_doc: u32,
    /// How many documents it has.
    pub n_docs: u32,
    /// Records of the blobs, below `artifacts-v1/`.
    pub artifacts: StoredFile,
    /// The lexical index of the documents, below `lexical-v1/`.
    pub lexical: StoredFile,
    /// Vectors of the documents by embedding profile, below `dense-v1/`.
    pub vectors: Vec<VectorEntry>,
}

/// The vectors of a segment for one profile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VectorEntry {
    /// The id of the embedding profile.
    pub profile: String,
    /// The file.
    pub file: StoredFile,
}

/// An immutable file by name and length.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredFile {
    /// Within its folder: hexadecimal digits of the content's BLAKE3 hash and an ending.
    pub name: String,
    /// In bytes.
    pub length: u64,
}

/// Why the state could not be read.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
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
    #[error("{} has format {found}, this build reads {FORMAT}", .path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// What it says.
        found: u32,
    },
}

impl State {
    /// Reads the state at `path`; `None` when nothing was published yet.
    pub fn read(path: &Path) -> Result<Option<Self>, StateError> {
        let bytes = match fs::read(path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => {
                let path = path.to_owned();
                return Err(StateError::Io { path, source });
            }
        };
        Self::from_bytes(path, &bytes).map(Some)
    }

    fn from_bytes(path: &Path, bytes: &[u8]) -> Result<Self, StateError> {
        let damaged = |what: String| StateError::Damaged {
            path: path.to_owned(),
            what,
        };
        if bytes.len() < HEADER_BYTES || &bytes[..4] != MAGIC {
            return Err(damaged("header".to_owned()));
        }
        let format = u32::from_le_bytes(bytes[4..8].try_into().expect("four bytes"));
        if format != FORMAT && format != FORMAT_WITHOUT_HISTORY {
            return Err(StateError::Format {
                path: path.to_owned(),
                found: format,
            });
        }
        let payload = &bytes[HEADER_BYTES..];
        if xxh3_64(payload).to_le_bytes() != bytes[8..HEADER_BYTES] {
            return Err(damaged("checksum".to_owned()));
        }
        let decoded = match format {
            FORMAT_WITHOUT_HISTORY => decode::<StateWithoutHistory>(payload).map(Self::from),
            _ => decode(payload),
        };
        decoded.map_err(|error: CodecError| damaged(error.to_string()))
    }

    /// Publishes this state at `path`.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        let payload = encode(self);
        let mut bytes = Vec::with_capacity(HEADER_BYTES + payload.len());
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&FORMAT.to_le_bytes());
        bytes.extend_from_slice(&xxh3_64(&payload).to_le_bytes());
        bytes.extend_from_slice(&payload);
        write_atomic(path, &bytes)
    }

    /// How many blobs are numbered.
    pub fn n_blobs(&self) -> u32 {
        self.segments.last().map_or(0, |last| last.base_blob + last.n_blobs)
    }

    /// How many commits are numbered.
    pub fn n_commits(&self) -> u32 {
        self.history.last().map_or(0, |last| last.base_commit + last.n_commits)
    }

    /// How many documents are numbered.
    pub fn n_docs(&self) -> u32 {
        self.segments.last().map_or(0, |last| last.base_doc + last.n_docs)
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn comes_back_as_written_and_damage_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state");
        assert_eq!(State::read(&path).unwrap(), None);
        let state = State {
            generation: 3,
            recipe: 7,
            ..State::default()
        };
        state.write(&path).unwrap();
        assert_eq!(State::read(&path).unwrap(), Some(state));

        let good = fs::read(&path).unwrap();
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 1;
            assert!(State::from_bytes(&path, &bad).is_err(), "byte {at}");
        }
    }

    #[test]
    fn a_state_from_before_there_was_history_is_read() {
        let old = ([7u8; 16], 3u64, 9u64, Vec::<SegmentEntry>::new());
        let payload = encode(&old);
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(&FORMAT_WITHOUT_HISTORY.to_le_bytes());
        bytes.extend_from_slice(&xxh3_64(&payload).to_le_bytes());
        bytes.extend_from_slice(&payload);
        let state = State::from_bytes(Path::new("state"), &bytes).unwrap();
        assert_eq!((state.epoch, state.generation, state.recipe), ([7; 16], 3, 9));
        assert!(state.history.is_empty());
    }
}
