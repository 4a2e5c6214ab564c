//! Takes bundles apart and creates bundles that the program would not write.

use serde::{Deserialize, Serialize};

/// The fields of the header, in the order of docs/formats.md.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct RawHeader {
    pub(super) kind: u8,
    pub(super) recipe: u64,
    pub(super) profile: [u8; 16],
    pub(super) id_bytes: u8,
    pub(super) formats: (u32, u32, u32),
    pub(super) trees: Vec<Vec<u8>>,
    pub(super) parts: Vec<(u32, u32)>,
    /// Profiles, each with the number of rows in each file.
    pub(super) added: Vec<([u8; 16], Vec<u32>)>,
    /// Recipe, tips, and the number of commits in each batch.
    pub(super) commits: Option<(u64, Vec<Vec<u8>>, Vec<u32>)>,
    pub(super) entries: Vec<RawEntry>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct RawEntry {
    pub(super) name: String,
    pub(super) length: u64,
    pub(super) hash: [u8; 32],
    pub(super) n_packed: u64,
}

/// The parts of a bundle.
#[derive(Clone, Debug)]
pub(super) struct Raw {
    pub(super) magic: Vec<u8>,
    pub(super) format: u32,
    pub(super) header: RawHeader,
    /// Number of documents in each file of facts. Format 2 has none.
    pub(super) facts: Vec<u32>,
    pub(super) signature: Vec<u8>,
    pub(super) frames: Vec<Vec<u8>>,
    pub(super) after: Vec<u8>,
}

impl Raw {
    pub(super) fn parse(bytes: &[u8]) -> Self {
        let number = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        let end = 48 + number(12) as usize;
        let record = &bytes[48..end];
        let (header, facts): (RawHeader, _) = match number(8) {
            3 => codescout::sidecar::decode(record).unwrap(),
            _ => (codescout::sidecar::decode(record).unwrap(), Vec::new()),
        };
        let n_signature = if bytes[end] == 0 { 1 } else { 97 };
        let mut at = end + n_signature;
        let mut frames = Vec::new();
        for entry in &header.entries {
            frames.push(bytes[at..at + entry.n_packed as usize].to_vec());
            at += entry.n_packed as usize;
        }
        assert_eq!(at, bytes.len());
        Self {
            magic: bytes[..8].to_vec(),
            format: number(8),
            header,
            facts,
            signature: bytes[end..end + n_signature].to_vec(),
            frames,
            after: Vec::new(),
        }
    }

    /// Encodes the bundle with a correct hash of the header.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let record = match self.format {
            3 => codescout::sidecar::encode(&(&self.header, &self.facts)),
            _ => codescout::sidecar::encode(&self.header),
        };
        let mut bytes = self.magic.clone();
        bytes.extend_from_slice(&self.format.to_le_bytes());
        bytes.extend_from_slice(&(record.len() as u32).to_le_bytes());
        let mut hasher = blake3::Hasher::new();
        hasher.update(&bytes).update(&record);
        bytes.extend_from_slice(hasher.finalize().as_bytes());
        bytes.extend_from_slice(&record);
        bytes.extend_from_slice(&self.signature);
        bytes.extend(self.frames.iter().flatten());
        bytes.extend_from_slice(&self.after);
        bytes
    }

    /// Decompresses an entry.
    pub(super) fn opened(&self, at: usize) -> Vec<u8> {
        zstd::stream::decode_all(&*self.frames[at]).unwrap()
    }

    /// Replaces the content of an entry and updates its sizes and hash.
    pub(super) fn put(&mut self, at: usize, bytes: &[u8]) {
        self.put_frame(at, bytes, zstd::stream::encode_all(bytes, 3).unwrap());
    }

    /// Replaces the frame of an entry. The header claims that it decompresses to `bytes`.
    pub(super) fn put_frame(&mut self, at: usize, bytes: &[u8], frame: Vec<u8>) {
        let entry = &mut self.header.entries[at];
        entry.length = bytes.len() as u64;
        entry.hash = *blake3::hash(bytes).as_bytes();
        entry.n_packed = frame.len() as u64;
        self.frames[at] = frame;
    }
}
