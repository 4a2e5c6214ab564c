//! The one commit point: which immutable files are live.
//!
//! `state` is `"CSST"`, u32 format, u64 xxh3 of the payload, payload ([`State`] by the record codec). It is replaced
//! atomically and written last; files it does not name are leftovers.

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use super::codec::{CodecError, decode, encode};
use super::layout::Store;

const MAGIC: &[u8; 4] = b"CSST";
/// 1: the first, without history; still read. 2: with history; still read. 4: with what makes history searchable. 3 is one bit
/// away from 2, so that damage could pass for it.
const FORMAT: u32 = 4;
const FORMAT_WITHOUT_HISTORY: u32 = 1;
const FORMAT_OF_RECORDS: u32 = 2;
const READ_FORMATS: [u32; 3] = [FORMAT_WITHOUT_HISTORY, FORMAT_OF_RECORDS, FORMAT];
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

/// What format 2 had.
#[derive(Deserialize)]
struct StateOfRecords {
    epoch: [u8; 16],
    generation: u64,
    recipe: u64,
    segments: Vec<SegmentEntry>,
    history: Vec<(u32, u32, StoredFile, Option<StoredFile>)>,
}

impl From<StateOfRecords> for State {
    fn from(old: StateOfRecords) -> Self {
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
    /// Words and vectors of their messages, below `history-v1/`, if they were made.
    pub messages: Option<StoredFile>,
    /// Signatures of the lines that they added and removed, below `history-v1/`, if they were made.
    pub lines: Option<StoredFile>,
}

impl HistoryEntry {
    /// Its files with their store.
    pub fn files(&self) -> impl Iterator<Item = (Store, &StoredFile)> {
        let files = std::iter::once(&self.records)
            .chain(&self.symbols)
            .chain(&self.messages)
            .chain(&self.lines);
        files.map(|file| (Store::History, file))
    }

    /// Bytes of its files.
    pub fn n_bytes(&self) -> u64 {
        self.files().map(|(_, file)| file.length).sum()
    }
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

impl SegmentEntry {
    /// Its files with their stores.
    pub fn files(&self) -> impl Iterator<Item = (Store, &StoredFile)> {
        let vectors = self.vectors.iter().map(|vectors| (Store::Dense, &vectors.file));
        [(Store::Artifacts, &self.artifacts), (Store::Lexical, &self.lexical)]
            .into_iter()
            .chain(vectors)
    }

    /// Bytes of its files.
    pub fn n_bytes(&self) -> u64 {
        self.files().map(|(_, file)| file.length).sum()
    }
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

impl StoredFile {
    /// How many hexadecimal digits of the content's hash a name begins with.
    pub const NAME_DIGITS: usize = 32;

    /// Names a file by its content.
    pub fn of(bytes: &[u8], ending: &str) -> Self {
        let hash = blake3::hash(bytes).to_hex();
        Self {
            name: format!("{}.{ending}", &hash[..Self::NAME_DIGITS]),
            length: bytes.len() as u64,
        }
    }

    /// Whether `bytes` are what the name and the length say; else what is not.
    pub fn check(&self, bytes: &[u8]) -> Result<(), String> {
        if bytes.len() as u64 != self.length {
            return Err(format!("{} bytes, {} expected", bytes.len(), self.length));
        }
        if self.name.get(..Self::NAME_DIGITS) == Some(&blake3::hash(bytes).to_hex()[..Self::NAME_DIGITS]) {
            Ok(())
        } else {
            Err("its content is not what its name says".to_owned())
        }
    }

    /// Whether the name is of this program's form, so that it leads to no other folder.
    pub fn has_plain_name(&self) -> bool {
        self.name.split_once('.').is_some_and(|(stem, ending)| {
            stem.len() == Self::NAME_DIGITS
                && stem.bytes().all(|byte| byte.is_ascii_hexdigit())
                && !ending.is_empty()
                && ending.bytes().all(|byte| byte.is_ascii_lowercase())
        })
    }
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
    /// Reads the bytes of a state; `path` is for messages.
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
        // Right in every other way: what another format would have to differ in.
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
            FORMAT_WITHOUT_HISTORY => decode::<StateWithoutHistory>(payload).map(Self::from),
            FORMAT_OF_RECORDS => decode::<StateOfRecords>(payload).map(Self::from),
            _ => decode(payload),
        }
    }

    /// The bytes of the file.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let payload = encode(self);
        let mut bytes = Vec::with_capacity(HEADER_BYTES + payload.len());
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&FORMAT.to_le_bytes());
        bytes.extend_from_slice(&xxh3_64(&payload).to_le_bytes());
        bytes.extend_from_slice(&payload);
        bytes
    }

    /// Whether segments, and batches of commits, follow one another without gaps, and name their files as this program does; else what is wrong.
    pub fn check(&self) -> Result<(), String> {
        let (mut blob, mut doc) = (0, 0);
        for entry in &self.segments {
            if (entry.base_blob, entry.base_doc) != (blob, doc) {
                return Err(format!(
                    "segment {}+{} does not follow the one before",
                    entry.base_blob, entry.base_doc
                ));
            }
            let next = blob.checked_add(entry.n_blobs).zip(doc.checked_add(entry.n_docs));
            (blob, doc) = next.ok_or_else(|| "more numbers than there are".to_owned())?;
        }
        if let Some((_, file)) = self.files().find(|(_, file)| !file.has_plain_name()) {
            return Err(format!("{:?} is no name of a file", file.name));
        }
        self.check_history()
    }

    fn check_history(&self) -> Result<(), String> {
        let mut commit = 0u32;
        for entry in &self.history {
            if entry.base_commit != commit {
                return Err(format!("commits {} do not follow those before", entry.base_commit));
            }
            let next = commit.checked_add(entry.n_commits);
            commit = next.ok_or_else(|| "more numbers than there are".to_owned())?;
        }
        Ok(())
    }

    /// Bytes of the segments' files.
    pub fn n_segment_bytes(&self) -> u64 {
        self.segments.iter().map(SegmentEntry::n_bytes).sum()
    }

    /// Every file that is live, with its store.
    pub fn files(&self) -> impl Iterator<Item = (Store, &StoredFile)> {
        let of_segments = self.segments.iter().flat_map(SegmentEntry::files);
        of_segments.chain(self.history.iter().flat_map(HistoryEntry::files))
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
    fn a_name_that_leads_elsewhere_is_no_name() {
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
        let state = read(FORMAT_WITHOUT_HISTORY, &encode(&old));
        assert_eq!((state.epoch, state.generation, state.recipe), ([7; 16], 3, 9));
        assert!(state.history.is_empty());

        let records = StoredFile::of(b"x", "hist");
        let batch = (0u32, 5u32, records.clone(), None::<StoredFile>);
        let state = read(FORMAT_OF_RECORDS, &encode(&(old.0, old.1, old.2, old.3, vec![batch])));
        assert_eq!((state.n_commits(), &state.history[0].records), (5, &records));
        assert_eq!(state.history[0].files().count(), 1);
    }
}
