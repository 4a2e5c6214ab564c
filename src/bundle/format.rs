//! The header of a bundle, which precedes its entries.

use serde::{Deserialize, Serialize};

use crate::history::MAX_EXPORTED_COMMITS;
use crate::model::{CommitId, Oid, TreeId};
use crate::sidecar::{decode, encode};

/// The version of the format of bundles without facts. Version 2 added rows of additional models and the commit record;
/// version 1 can no longer be read.
pub const FORMAT: u32 = 2;
/// The version of the format of bundles with facts of indexers. Builds that do not know them read all other bundles.
const FORMAT_WITH_FACTS: u32 = 3;
const MAGIC: &[u8; 8] = b"CSBUNDLE";
/// Length of the prefix: magic (8 bytes), format (4), header length (4), BLAKE3 hash (32).
pub(super) const PREFIX_BYTES: usize = 8 + 4 + 4 + 32;
const MAX_HEADER_BYTES: u32 = 1 << 20;
/// Maximum number of parts. A part contains at most 16,384 blobs or documents, so this allows 67 million of each.
const MAX_PARTS: usize = 4096;
const MAX_TREES: usize = 1024;
/// Maximum number of external models. At most one dense and one sparse model are in use at a time.
const MAX_MODELS: usize = 16;
/// The largest decompressed size of one entry. A part is a few dozen megabytes at most.
pub(super) const MAX_ENTRY_BYTES: u64 = 256 << 20;
/// The largest ratio of the decompressed size of all entries to their packed size, plus a constant for very small
/// bundles.
const MAX_RATIO: u64 = 200;
const RATIO_SLACK: u64 = 4 << 20;

/// The kind of a bundle's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Records and vectors. The importing clone builds the lexical index.
    Records,
    /// Complete segments, for receivers that trust the producer of the bundle.
    Ready,
    /// No blobs, only vectors of external models or recorded commits.
    Added,
}

/// Format versions of the files in a bundle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Formats {
    /// Format of artifact files.
    pub artifacts: u32,
    /// Format of lexical index files.
    pub lexical: u32,
    /// Format of vector files, sparse ones included.
    pub vectors: u32,
}

impl Formats {
    /// The formats that this build reads and writes.
    pub const CURRENT: Self = Self {
        artifacts: crate::artifact::FORMAT,
        lexical: crate::index::lexical::FORMAT,
        vectors: crate::index::dense::FORMAT,
    };
}

/// The sizes of one part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartSizes {
    /// Number of blobs.
    pub n_blobs: u32,
    /// Number of documents.
    pub n_docs: u32,
}

/// The vectors of one external model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AddedPart {
    /// Id of the model's profile.
    pub profile: [u8; 16],
    /// Number of vectors in each file.
    pub rows: Vec<u32>,
}

/// The recorded commits in a bundle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommitsPart {
    /// Identifies the settings with which the commits were recorded.
    pub recipe: u64,
    tips: Vec<Vec<u8>>,
    /// Number of commits in each batch, in the order of commit numbers.
    pub batches: Vec<u32>,
}

impl CommitsPart {
    pub(super) fn new(recipe: u64, tips: &[CommitId]) -> Self {
        Self {
            recipe,
            tips: tips.iter().map(|tip| tip.0.as_bytes().to_vec()).collect(),
            batches: Vec::new(),
        }
    }

    /// Returns the commits from which all other commits of the record are reachable.
    pub fn tips(&self) -> impl Iterator<Item = CommitId> + '_ {
        self.tips.iter().filter_map(|id| Oid::from_bytes(id).ok().map(CommitId))
    }

    /// Returns the total number of commits.
    pub fn n_commits(&self) -> u64 {
        self.batches.iter().map(|&n| u64::from(n)).sum()
    }
}

/// The header of a bundle.
///
/// ```text
/// "CSBUNDLE" | u32 format | u32 header length | 32 bytes BLAKE3 of the 16 bytes before and the header | header
/// | u8 0, or 1 and 32 bytes public key, 64 bytes signature | entries: one zstd frame each, end to end
/// ```
/// The header is an encoded record. The signature covers `codescout bundle 1\0` and the hash. No bytes may follow the
/// last entry. In format 3, the record is followed by that of `facts`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// 0 = records, 1 = ready, 2 = added.
    kind: u8,
    /// Identifies the settings with which the records were made.
    pub recipe: u64,
    /// Id of the embedding profile.
    pub profile: [u8; 16],
    /// Bytes of an object id: 20 or 32.
    pub id_bytes: u8,
    /// Formats of the files in the bundle.
    pub formats: Formats,
    trees: Vec<Vec<u8>>,
    /// Sizes of the parts, in number order.
    pub parts: Vec<PartSizes>,
    /// The vectors of external models, one element per model.
    pub added: Vec<AddedPart>,
    /// The recorded commits, if the bundle contains any.
    pub commits: Option<CommitsPart>,
    /// The entries, in this order: for each part `records-NNNN`, `vectors-NNNN` and, in a ready bundle, `words-NNNN`;
    /// for each external model `probe-MM` and its files `added-MM-NNNN`; for each batch of commits `commits-NNNN`,
    /// `definitions-NNNN` and `lines-NNNN`; for each file of facts `facts-NNNN`.
    pub entries: Vec<Entry>,
    /// Number of documents in each file of facts of indexers.
    #[serde(skip)]
    pub facts: Vec<u32>,
}

/// One file in a bundle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// The type of the file and its part number.
    pub name: String,
    /// Decompressed size in bytes.
    pub length: u64,
    /// BLAKE3 hash of the decompressed bytes.
    pub hash: [u8; 32],
    /// Size of the zstd frame in bytes.
    pub n_packed: u64,
}

/// An error from reading the header of a bundle.
#[derive(Debug, thiserror::Error)]
pub enum HeaderError {
    /// The bytes do not start like a bundle.
    #[error("not a bundle")]
    OtherKind,
    /// The bundle has a format that this build does not read.
    #[error("bundle has format {found}, this build reads {FORMAT} and {FORMAT_WITH_FACTS}")]
    OtherFormat {
        /// The format in the header.
        found: u32,
    },
    /// The hash of the header does not match.
    #[error("the bundle header is damaged")]
    Damaged,
    /// A value in the header is invalid.
    #[error("invalid bundle header: {what}")]
    Odd {
        /// Describes the invalid value.
        what: String,
    },
}

impl Header {
    pub(super) fn new(kind: Kind, recipe: u64, profile: [u8; 16], id_bytes: usize, trees: &[TreeId]) -> Self {
        Self {
            kind: kind as u8,
            recipe,
            profile,
            id_bytes: id_bytes as u8,
            formats: Formats::CURRENT,
            trees: trees
                .iter()
                .take(MAX_TREES)
                .map(|tree| tree.0.as_bytes().to_vec())
                .collect(),
            parts: Vec::new(),
            added: Vec::new(),
            commits: None,
            entries: Vec::new(),
            facts: Vec::new(),
        }
    }

    /// Returns the kind of the bundle.
    pub fn kind(&self) -> Kind {
        match self.kind {
            0 => Kind::Records,
            1 => Kind::Ready,
            _ => Kind::Added,
        }
    }

    /// Returns the trees that the bundle covers completely.
    pub fn trees(&self) -> impl Iterator<Item = TreeId> + '_ {
        self.trees.iter().filter_map(|id| Oid::from_bytes(id).ok().map(TreeId))
    }

    /// Returns the number of blobs in all parts.
    pub fn n_blobs(&self) -> u64 {
        self.parts.iter().map(|part| u64::from(part.n_blobs)).sum()
    }

    /// Returns the number of documents in all parts.
    pub fn n_docs(&self) -> u64 {
        self.parts.iter().map(|part| u64::from(part.n_docs)).sum()
    }

    /// Returns the number of vectors of all external models.
    pub fn n_rows(&self) -> u64 {
        let rows = self.added.iter().flat_map(|added| &added.rows);
        rows.map(|&n| u64::from(n)).sum()
    }

    /// Returns the number of documents with facts of indexers.
    pub fn n_facts(&self) -> u64 {
        self.facts.iter().map(|&n| u64::from(n)).sum()
    }

    /// Returns true if the bundle has exactly these files of facts.
    pub fn has_facts(&self, facts: &[(u32, Vec<u8>)]) -> bool {
        let own = &self.entries[self.entries.len().saturating_sub(self.facts.len())..];
        own.iter()
            .map(|entry| entry.hash)
            .eq(facts.iter().map(|(_, file)| *blake3::hash(file).as_bytes()))
    }

    /// Returns the decompressed size of all entries in bytes.
    pub fn n_bytes(&self) -> u64 {
        self.entries.iter().map(|entry| entry.length).sum()
    }

    /// Returns the packed size of all entries in bytes.
    pub fn n_packed(&self) -> u64 {
        self.entries.iter().map(|entry| entry.n_packed).sum()
    }

    /// Returns the expected names of the entries, in order.
    pub(super) fn names(&self) -> impl Iterator<Item = String> {
        let n_batches = self.commits.as_ref().map_or(0, |commits| commits.batches.len());
        let of_parts = numbered(self.stems(), self.parts.len());
        let of_model = |(model, added): (usize, &AddedPart)| {
            let files = (0..added.rows.len()).map(move |file| format!("added-{model:02}-{file:04}"));
            std::iter::once(format!("probe-{model:02}")).chain(files)
        };
        let of_models = self.added.iter().enumerate().flat_map(of_model);
        let of_commits = numbered(&["commits", "definitions", "lines"], n_batches);
        let of_facts = numbered(&["facts"], self.facts.len());
        of_parts.chain(of_models).chain(of_commits).chain(of_facts)
    }

    /// Returns the name prefixes of the entries of one part.
    fn stems(&self) -> &'static [&'static str] {
        match self.kind() {
            Kind::Records => &["records", "vectors"],
            Kind::Ready => &["records", "vectors", "words"],
            Kind::Added => &[],
        }
    }

    /// Returns the number of entries that belong to parts.
    pub(super) fn n_part_entries(&self) -> usize {
        self.stems().len() * self.parts.len()
    }

    /// Returns the number of entries that belong to external models.
    pub(super) fn n_added_entries(&self) -> usize {
        self.added.iter().map(|added| 1 + added.rows.len()).sum()
    }

    /// Encodes the prefix and the header.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let (format, record) = if self.facts.is_empty() {
            (FORMAT, encode(self))
        } else {
            (FORMAT_WITH_FACTS, encode(&(self, &self.facts)))
        };
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(&format.to_le_bytes());
        bytes.extend_from_slice(&(record.len() as u32).to_le_bytes());
        let hash = hash_of(&bytes, &record);
        bytes.extend_from_slice(&hash);
        bytes.extend_from_slice(&record);
        bytes
    }

    /// Returns the length of the header that follows `prefix`, and its expected hash.
    pub(super) fn parse_prefix(prefix: &[u8; PREFIX_BYTES]) -> Result<(usize, [u8; 32]), HeaderError> {
        if !prefix.starts_with(MAGIC) {
            return Err(HeaderError::OtherKind);
        }
        let number = |at: usize| u32::from_le_bytes(std::array::from_fn(|i| prefix[at + i]));
        match number(8) {
            FORMAT | FORMAT_WITH_FACTS => {}
            found => return Err(HeaderError::OtherFormat { found }),
        }
        match number(12) {
            length if length <= MAX_HEADER_BYTES => Ok((length as usize, std::array::from_fn(|i| prefix[16 + i]))),
            length => Err(odd(format!("header of {length} bytes"))),
        }
    }

    /// Parses a header, verifies its hash and checks its values.
    pub(super) fn parse(prefix: &[u8; PREFIX_BYTES], record: &[u8]) -> Result<Self, HeaderError> {
        let (_, expected) = Self::parse_prefix(prefix)?;
        if hash_of(&prefix[..16], record) != expected {
            return Err(HeaderError::Damaged);
        }
        let read = if prefix[8..12] == FORMAT.to_le_bytes() {
            decode(record)
        } else {
            decode(record).map(|(header, facts)| Self { facts, ..header })
        };
        let header = read.map_err(|error| odd(error.to_string()))?;
        header.check()?;
        Ok(header)
    }

    /// Checks that all counts, sizes and names are within bounds.
    pub(super) fn check(&self) -> Result<(), HeaderError> {
        if self.kind > Kind::Added as u8 {
            return Err(odd(format!("kind {}", self.kind)));
        }
        if !matches!(self.id_bytes, 20 | 32) {
            return Err(odd(format!("ids of {} bytes", self.id_bytes)));
        }
        if self.parts.len() > MAX_PARTS || self.trees.len() > MAX_TREES {
            return Err(odd("too many parts or trees".to_owned()));
        }
        if self.kind() == Kind::Added && !self.parts.is_empty() {
            return Err(odd("parts in a bundle without blobs".to_owned()));
        }
        if self.added.len() > MAX_MODELS || self.added.iter().any(|added| added.rows.len() > MAX_PARTS) {
            return Err(odd("too many models".to_owned()));
        }
        let batches = self.commits.as_ref().map_or(&[][..], |commits| &commits.batches);
        let tips = self.commits.as_ref().map_or(&[][..], |commits| &commits.tips);
        let is_batch = |n: &u32| (1..=MAX_EXPORTED_COMMITS).contains(&(*n as usize));
        if batches.len() > MAX_PARTS || tips.len() > MAX_TREES || !batches.iter().all(is_batch) {
            return Err(odd("too many commits, or an empty batch".to_owned()));
        }
        if self.facts.len() > MAX_PARTS {
            return Err(odd("too many files of facts".to_owned()));
        }
        if self
            .trees
            .iter()
            .chain(tips)
            .any(|id| id.len() != usize::from(self.id_bytes))
        {
            return Err(odd("ids of another object format".to_owned()));
        }
        if self.n_blobs().max(self.n_docs()).max(self.n_rows()) > u64::from(u32::MAX) {
            return Err(odd("too many blobs, documents or rows".to_owned()));
        }
        // Entry names must equal the expected ones exactly. No path is built from them, so they cannot escape a
        // directory.
        if !self.entries.iter().map(|entry| &*entry.name).eq(self.names()) {
            return Err(odd("wrong entries for its parts".to_owned()));
        }
        for Entry {
            name, length, n_packed, ..
        } in &self.entries
        {
            if *length > MAX_ENTRY_BYTES || *n_packed > 2 * MAX_ENTRY_BYTES {
                return Err(odd(format!("{name} has {length} bytes in {n_packed} packed bytes")));
            }
        }
        // The ratio is checked for all entries together, because a single entry may contain only zeros, such as vectors
        // of texts without known tokens.
        if self.n_bytes() <= self.n_packed() * MAX_RATIO + RATIO_SLACK {
            Ok(())
        } else {
            Err(odd(format!(
                "{} bytes in {} packed bytes",
                self.n_bytes(),
                self.n_packed()
            )))
        }
    }
}

/// Returns the names of `n` numbered sets of files.
fn numbered(stems: &'static [&'static str], n: usize) -> impl Iterator<Item = String> {
    (0..n).flat_map(move |number| stems.iter().map(move |stem| format!("{stem}-{number:04}")))
}

/// Hashes the prefix and the header. The header stores this hash, and the signature covers it.
pub(super) fn hash_of(prefix: &[u8], record: &[u8]) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(prefix).update(record);
    *hasher.finalize().as_bytes()
}

fn odd(what: String) -> HeaderError {
    HeaderError::Odd { what }
}
