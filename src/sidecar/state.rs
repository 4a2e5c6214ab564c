//! The file `state`, which lists the live immutable files. Replacing it is the only commit point of a write.
//!
//! It is a record ([`State`]), replaced atomically and written last. Files that it does not list are leftovers.

use serde::{Deserialize, Serialize};

use super::layout::Store;
use super::record::RecordKind;

/// The format skips numbers that differ by one bit from one that was used, so damage cannot turn one into the other.
pub(super) const KIND: RecordKind = RecordKind {
    magic: *b"CSST",
    format: 11,
    // No graphs and no facts of indexers.
    earlier: Some((4, &[0, 0])),
};

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
    /// The graphs of vectors, at most one per profile.
    pub graphs: Vec<GraphEntry>,
    /// The facts of indexers about blobs, at most one file per indexer. They do not depend on the epoch.
    pub precise: Vec<PreciseEntry>,
}

/// The facts of an indexer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PreciseEntry {
    /// The name of the indexer.
    pub tool: String,
    /// Number of files that the facts are about.
    pub n_documents: u32,
    /// The facts, in `artifacts-v1/`.
    pub file: StoredFile,
}

/// A graph of the vectors of the first documents.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GraphEntry {
    /// The epoch of the numbers in the graph.
    pub epoch: [u8; 16],
    /// The embedding profile of the vectors.
    pub profile: String,
    /// Number of documents.
    pub n_docs: u32,
    /// Number of candidates with which the graph finds enough of the best results; 0 if it never does and is not used.
    pub ef: u32,
    /// The graph, in `dense-v1/`.
    pub file: StoredFile,
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
            Err("the content does not match the hash in the name".to_owned())
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

impl State {
    /// Checks that the segments and the batches of commits are contiguous, and that their file names are valid. The
    /// error describes the problem.
    pub fn check(&self) -> Result<(), String> {
        let (mut blob, mut doc) = (0, 0);
        for entry in &self.segments {
            if (entry.base_blob, entry.base_doc) != (blob, doc) {
                return Err(format!(
                    "segment {}+{} does not continue the numbers of the previous segment",
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

    /// Returns true if commits were made searchable, and not only recorded for ranking.
    pub fn has_searchable_history(&self) -> bool {
        self.history.iter().any(|entry| entry.lines.is_some())
    }

    /// Returns the total size of all segment files in bytes.
    pub fn n_segment_bytes(&self) -> u64 {
        self.segments.iter().map(SegmentEntry::n_bytes).sum()
    }

    /// Returns all live files, each with its store.
    pub fn files(&self) -> impl Iterator<Item = (Store, &StoredFile)> {
        let of_segments = self.segments.iter().flat_map(SegmentEntry::files);
        of_segments
            .chain(self.history.iter().flat_map(HistoryEntry::files))
            .chain(self.graphs.iter().map(|graph| (Store::Dense, &graph.file)))
            .chain(self.precise.iter().map(|entry| (Store::Artifacts, &entry.file)))
    }

    /// Removes the graphs of other numbers, and of vectors that no segment has.
    pub fn drop_stale_graphs(&mut self) {
        let (epoch, n_docs) = (self.epoch, self.n_docs());
        let segments = &self.segments;
        let has = |profile: &str| {
            let mut vectors = segments.iter().flat_map(|entry| &entry.vectors);
            vectors.any(|vectors| vectors.profile == profile)
        };
        self.graphs
            .retain(|graph| graph.epoch == epoch && graph.n_docs <= n_docs && has(&graph.profile));
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
    use super::*;

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
}
