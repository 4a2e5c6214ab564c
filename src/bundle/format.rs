//! The bytes before the entries of a bundle.

use serde::{Deserialize, Serialize};

use crate::history::MAX_GIVEN_COMMITS;
use crate::model::{CommitId, Oid, TreeId};
use crate::sidecar::{decode, encode};

/// 2: rows of other models and the record of commits beside the parts. 1 is not read any more.
pub const FORMAT: u32 = 2;
const MAGIC: &[u8; 8] = b"CSBUNDLE";
/// Magic, format, length of the header, its hash.
pub(super) const PREFIX_BYTES: usize = 8 + 4 + 4 + 32;
const MAX_HEADER_BYTES: u32 = 1 << 20;
/// A part has at most 16,384 blobs or documents, so this is more than can be numbered by far.
const MAX_PARTS: usize = 4096;
const MAX_TREES: usize = 1024;
/// A dense and a sparse one can be in use.
const MAX_MODELS: usize = 16;
/// No entry opens to more; a part is a few dozen megabytes at most.
pub(super) const MAX_ENTRY_BYTES: u64 = 256 << 20;
/// The entries together open to no more than so many times their own size, beside a constant for very small bundles.
const MAX_RATIO: u64 = 200;
const RATIO_SLACK: u64 = 4 << 20;

/// What stands in a bundle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Records and vectors; words are indexed where it is taken in.
    Records,
    /// Whole segments, ready for who trusts their maker.
    Ready,
    /// Neither: what models beside the one inside the program have made, or the record of commits, and nothing of blobs.
    Added,
}

/// The formats of the files inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Formats {
    /// Of artifact files.
    pub artifacts: u32,
    /// Of lexical files.
    pub lexical: u32,
    /// Of vector files, sparse ones included.
    pub vectors: u32,
}

impl Formats {
    /// Those of this build.
    pub const CURRENT: Self = Self {
        artifacts: crate::artifact::FORMAT,
        lexical: crate::index::lexical::FORMAT,
        vectors: crate::index::dense::VERSION,
    };
}

/// How much stands in a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartSizes {
    /// Blobs.
    pub n_blobs: u32,
    /// Documents.
    pub n_docs: u32,
}

/// What a model beside the one inside the program has made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AddedPart {
    /// Id of the model's profile.
    pub profile: [u8; 16],
    /// How many rows each file has.
    pub rows: Vec<u32>,
}

/// The record of commits in a bundle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommitsPart {
    /// What decided what it says.
    pub recipe: u64,
    tips: Vec<Vec<u8>>,
    /// How many commits each batch has, in the order of their numbers.
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

    /// The commits from which all others are reached.
    pub fn tips(&self) -> impl Iterator<Item = CommitId> + '_ {
        self.tips.iter().filter_map(|id| Oid::from_bytes(id).ok().map(CommitId))
    }

    /// How many commits it has.
    pub fn n_commits(&self) -> u64 {
        self.batches.iter().map(|&n| u64::from(n)).sum()
    }
}

/// What a bundle says of itself.
///
/// ```text
/// "CSBUNDLE" | u32 format | u32 length of the header | 32 bytes BLAKE3 of the 16 bytes before and the header | header
/// | u8 0, or 1 and 32 bytes public key, 64 bytes signature | entries: one zstd frame each, end to end
/// ```
/// The header is a record. The signature is over `codescout bundle 1\0` and the hash. Nothing may follow the last entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// 0 records, 1 ready, 2 added.
    kind: u8,
    /// Of the artifacts.
    pub recipe: u64,
    /// Id of the embedding profile.
    pub profile: [u8; 16],
    /// 20 or 32.
    pub id_bytes: u8,
    /// Of the files inside.
    pub formats: Formats,
    trees: Vec<Vec<u8>>,
    /// In the order of their numbers.
    pub parts: Vec<PartSizes>,
    /// Of each model that it has something of.
    pub added: Vec<AddedPart>,
    /// The record of commits, if it came along.
    pub commits: Option<CommitsPart>,
    /// `records-NNNN`, `vectors-NNNN` and, if ready, `words-NNNN` of each part, in this order; then of each model `probe-MM` and
    /// `added-MM-NNNN` of each file; then `commits-NNNN`, `definitions-NNNN` and `lines-NNNN` of each batch of commits.
    pub entries: Vec<Entry>,
}

/// A file inside.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// What it is and of which part.
    pub name: String,
    /// Bytes when opened.
    pub length: u64,
    /// BLAKE3 of these.
    pub hash: [u8; 32],
    /// Bytes of its frame.
    pub n_packed: u64,
}

/// Why bytes are not the header of a bundle that this build takes.
#[derive(Debug, thiserror::Error)]
pub enum HeaderError {
    /// Something else.
    #[error("not a bundle")]
    OtherKind,
    /// Another build wrote it.
    #[error("bundle has format {found}, this build reads {FORMAT}")]
    OtherFormat {
        /// What it says.
        found: u32,
    },
    /// Its hash is another.
    #[error("the header is damaged")]
    Damaged,
    /// It says what none does.
    #[error("the header is not one of a bundle: {what}")]
    Odd {
        /// What it says.
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
        }
    }

    /// What stands in it.
    pub fn kind(&self) -> Kind {
        match self.kind {
            0 => Kind::Records,
            1 => Kind::Ready,
            _ => Kind::Added,
        }
    }

    /// The trees that it has everything of.
    pub fn trees(&self) -> impl Iterator<Item = TreeId> + '_ {
        self.trees.iter().filter_map(|id| Oid::from_bytes(id).ok().map(TreeId))
    }

    /// Blobs of all parts.
    pub fn n_blobs(&self) -> u64 {
        self.parts.iter().map(|part| u64::from(part.n_blobs)).sum()
    }

    /// Documents of all parts.
    pub fn n_docs(&self) -> u64 {
        self.parts.iter().map(|part| u64::from(part.n_docs)).sum()
    }

    /// Rows of all models beside the one inside the program.
    pub fn n_rows(&self) -> u64 {
        let rows = self.added.iter().flat_map(|added| &added.rows);
        rows.map(|&n| u64::from(n)).sum()
    }

    /// Bytes of all entries when opened.
    pub fn n_bytes(&self) -> u64 {
        self.entries.iter().map(|entry| entry.length).sum()
    }

    /// Bytes of all frames.
    pub fn n_packed(&self) -> u64 {
        self.entries.iter().map(|entry| entry.n_packed).sum()
    }

    /// The names that its entries have, in their order.
    pub(super) fn names(&self) -> impl Iterator<Item = String> {
        let n_batches = self.commits.as_ref().map_or(0, |commits| commits.batches.len());
        let of_parts = numbered(self.stems(), self.parts.len());
        let of_model = |(model, added): (usize, &AddedPart)| {
            let files = (0..added.rows.len()).map(move |file| format!("added-{model:02}-{file:04}"));
            std::iter::once(format!("probe-{model:02}")).chain(files)
        };
        let of_models = self.added.iter().enumerate().flat_map(of_model);
        let of_commits = numbered(&["commits", "definitions", "lines"], n_batches);
        of_parts.chain(of_models).chain(of_commits)
    }

    /// What the names of a part's entries begin with.
    fn stems(&self) -> &'static [&'static str] {
        match self.kind() {
            Kind::Records => &["records", "vectors"],
            Kind::Ready => &["records", "vectors", "words"],
            Kind::Added => &[],
        }
    }

    /// How many entries its parts have.
    pub(super) fn n_part_entries(&self) -> usize {
        self.stems().len() * self.parts.len()
    }

    /// How many its models have.
    pub(super) fn n_added_entries(&self) -> usize {
        self.added.iter().map(|added| 1 + added.rows.len()).sum()
    }

    /// The prefix and the header.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let record = encode(self);
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(&FORMAT.to_le_bytes());
        bytes.extend_from_slice(&(record.len() as u32).to_le_bytes());
        let hash = hash_of(&bytes, &record);
        bytes.extend_from_slice(&hash);
        bytes.extend_from_slice(&record);
        bytes
    }

    /// The length of the header that follows a prefix, and the hash that it has to have.
    pub(super) fn parse_prefix(prefix: &[u8; PREFIX_BYTES]) -> Result<(usize, [u8; 32]), HeaderError> {
        if !prefix.starts_with(MAGIC) {
            return Err(HeaderError::OtherKind);
        }
        let number = |at: usize| u32::from_le_bytes(std::array::from_fn(|i| prefix[at + i]));
        match number(8) {
            FORMAT => {}
            found => return Err(HeaderError::OtherFormat { found }),
        }
        match number(12) {
            length if length <= MAX_HEADER_BYTES => Ok((length as usize, std::array::from_fn(|i| prefix[16 + i]))),
            length => Err(odd(format!("{length} bytes"))),
        }
    }

    /// Reads a header and checks it.
    pub(super) fn parse(prefix: &[u8; PREFIX_BYTES], record: &[u8]) -> Result<Self, HeaderError> {
        let (_, expected) = Self::parse_prefix(prefix)?;
        if hash_of(&prefix[..16], record) != expected {
            return Err(HeaderError::Damaged);
        }
        let header: Self = decode(record).map_err(|error| odd(error.to_string()))?;
        header.check()?;
        Ok(header)
    }

    /// Whether everything that follows from it is within bounds.
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
            return Err(odd("blobs where there are none".to_owned()));
        }
        if self.added.len() > MAX_MODELS || self.added.iter().any(|added| added.rows.len() > MAX_PARTS) {
            return Err(odd("too many models".to_owned()));
        }
        let batches = self.commits.as_ref().map_or(&[][..], |commits| &commits.batches);
        let tips = self.commits.as_ref().map_or(&[][..], |commits| &commits.tips);
        let is_batch = |n: &u32| (1..=MAX_GIVEN_COMMITS).contains(&(*n as usize));
        if batches.len() > MAX_PARTS || tips.len() > MAX_TREES || !batches.iter().all(is_batch) {
            return Err(odd("too many commits, or none".to_owned()));
        }
        if self
            .trees
            .iter()
            .chain(tips)
            .any(|id| id.len() != usize::from(self.id_bytes))
        {
            return Err(odd("a tree of another object format".to_owned()));
        }
        if self.n_blobs().max(self.n_docs()).max(self.n_rows()) > u64::from(u32::MAX) {
            return Err(odd("more than can be numbered".to_owned()));
        }
        // Names are ours or it is not a bundle: nothing is made of them, and there is nothing to escape with.
        if !self.entries.iter().map(|entry| &*entry.name).eq(self.names()) {
            return Err(odd("other entries than its parts have".to_owned()));
        }
        for Entry {
            name, length, n_packed, ..
        } in &self.entries
        {
            if *length > MAX_ENTRY_BYTES || *n_packed > 2 * MAX_ENTRY_BYTES {
                return Err(odd(format!("{name} of {length} bytes in {n_packed}")));
            }
        }
        // Together: a single entry may be all zeros, such as vectors of texts that the model knows nothing of.
        if self.n_bytes() <= self.n_packed() * MAX_RATIO + RATIO_SLACK {
            Ok(())
        } else {
            Err(odd(format!("{} bytes in {}", self.n_bytes(), self.n_packed())))
        }
    }
}

/// Names of so many times the same files.
fn numbered(stems: &'static [&'static str], n: usize) -> impl Iterator<Item = String> {
    (0..n).flat_map(move |number| stems.iter().map(move |stem| format!("{stem}-{number:04}")))
}

/// What is signed, and what the header is compared with.
pub(super) fn hash_of(prefix: &[u8], record: &[u8]) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(prefix).update(record);
    *hasher.finalize().as_bytes()
}

fn odd(what: String) -> HeaderError {
    HeaderError::Odd { what }
}
