//! Prepares blobs from imported records, without extracting them.
//!
//! Every record is checked against the content of its blob as far as possible. Audited blobs are also extracted and
//! embedded, and the results compared with the record.

use std::collections::{HashMap, HashSet};

use parking_lot::Mutex;

use crate::artifact::{ArtifactKey, Extractor, check};
use crate::extract::{self, Chunk, Extraction};
use crate::model::ChunkKey;

use super::build::{BuildError, BuildOptions};
use super::prepare::{PreparedBlob, RecordedRow, left_out, prepare, prepare_known};
use super::records::Records;

/// Limit on the total size of a blob's chunks, and on that of their heads: this multiple of the blob's size, plus
/// `SLACK_BYTES`.
const PROPORTION: usize = 4;
const SLACK_BYTES: usize = 64 << 10;

/// Records that replace extraction and embedding.
#[derive(Debug)]
pub struct Recall<'a> {
    records: &'a Records,
    audited: &'a HashSet<ArtifactKey>,
    /// The text of every recorded document seen so far.
    texts: Mutex<HashMap<u32, ChunkKey>>,
}

impl<'a> Recall<'a> {
    /// Uses `records`, but extracts and embeds the blobs in `audited` anyway, for comparison. Blobs with records out of
    /// proportion to their size are audited too.
    pub fn new(records: &'a Records, audited: &'a HashSet<ArtifactKey>) -> Self {
        Self {
            records,
            audited,
            texts: Mutex::default(),
        }
    }

    /// Prepares a blob from its record.
    pub(super) fn prepare(
        &self,
        key: ArtifactKey,
        bytes: Vec<u8>,
        extractor: &mut Extractor,
        options: &BuildOptions,
    ) -> Result<PreparedBlob, BuildError> {
        let wrong_record = |what| BuildError::WrongRecord { blob: key.blob, what };
        let recalled = self
            .records
            .recall(key)
            .ok_or_else(|| wrong_record("no record"))?
            .map_err(|_| wrong_record("unreadable record"))?;
        let extraction = match (recalled.outcome, left_out(&bytes, options.max_blob_bytes)) {
            (Err(recorded), Some(reason)) if recorded == reason => return Ok(PreparedBlob::skipped(key, reason)),
            (Ok(extraction), None) => extraction,
            _ => return Err(wrong_record("skip reason differs")),
        };
        if recalled.lang != extract::refine(key.lang, &bytes) {
            return Err(wrong_record("language differs"));
        }
        check(&bytes, &extraction).map_err(wrong_record)?;
        if recalled.docs.len() != extraction.chunks.len() {
            return Err(wrong_record("number of chunks differs"));
        }
        let is_audited = self.audited.contains(&key) || is_out_of_proportion(&bytes, &extraction);
        let mut prepared = if is_audited {
            let made = prepare(key, bytes, extractor, options);
            if made.outcome.as_ref().ok() != Some(&extraction) {
                return Err(wrong_record("extraction differs"));
            }
            made
        } else {
            prepare_known(key, recalled.lang, bytes, extraction)
        };
        for (chunk, doc) in prepared.chunks.iter_mut().zip(recalled.docs) {
            chunk.recorded = Some(self.row(doc, chunk.key, is_audited).map_err(wrong_record)?);
        }
        Ok(prepared)
    }

    /// Returns the vector of a document, which must not be recorded for another text too.
    fn row(&self, doc: u32, key: ChunkKey, is_audited: bool) -> Result<RecordedRow, &'static str> {
        let mut texts = self.texts.lock();
        if *texts.entry(doc).or_insert(key) != key {
            return Err("two texts share a vector");
        }
        let (file, row) = self.records.row(doc).ok_or("missing vector")?;
        Ok(RecordedRow {
            file: file.clone(),
            row,
            is_audited,
        })
    }
}

/// Returns true if a record causes more work than the size of its blob justifies. It may contain overlapping chunks, or
/// chunks with long heads from deeply nested containers. [`check`] does not detect this, because every range is inside
/// the blob.
fn is_out_of_proportion(bytes: &[u8], extraction: &Extraction) -> bool {
    let mut heads: Vec<usize> = Vec::with_capacity(extraction.definitions.len());
    for definition in &extraction.definitions {
        let around = definition.container.and_then(|container| heads.get(container as usize));
        heads.push(around.unwrap_or(&0).saturating_add(definition.name.len() + 1));
    }
    let of_head = |chunk: &Chunk| {
        chunk
            .definition
            .and_then(|index| heads.get(index as usize))
            .unwrap_or(&0)
    };
    let n_bytes: usize = extraction.chunks.iter().map(|chunk| chunk.range.len()).sum();
    let n_head_bytes = extraction
        .chunks
        .iter()
        .fold(0usize, |sum, chunk| sum.saturating_add(*of_head(chunk)));
    let allowed = PROPORTION * bytes.len() + SLACK_BYTES;
    n_bytes > allowed || n_head_bytes > allowed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::extract::{ChunkKind, Definition, DefinitionKind};
    use crate::model::ByteRange;

    fn range(start: u32, end: u32) -> ByteRange {
        ByteRange::new(start, end)
    }

    fn chunk(start: u32, end: u32) -> Chunk {
        Chunk {
            range: range(start, end),
            start_line: 1,
            end_line: 1,
            kind: ChunkKind::Window,
            definition: None,
            part: 0,
        }
    }

    fn definition(container: Option<u32>) -> Definition {
        Definition {
            name: "a_name_of_some_length".to_owned(),
            kind: DefinitionKind::Function,
            container,
            qualifier: None,
            range: range(0, 4),
            name_range: range(0, 4),
            signature: range(0, 4),
            doc: None,
            arity: None,
        }
    }

    fn sound() -> Extraction {
        Extraction {
            n_lines: 1,
            definitions: vec![definition(None)],
            chunks: vec![chunk(0, 6), chunk(6, 12)],
            ..Extraction::default()
        }
    }

    #[test]
    fn ranges_outside_the_blob_and_gaps_are_detected() {
        let bytes = b"twelve bytes";
        assert_eq!(check(bytes, &sound()), Ok(()));
        let wrong = |change: &dyn Fn(&mut Extraction)| {
            let mut extraction = sound();
            change(&mut extraction);
            check(bytes, &extraction).err()
        };
        assert_eq!(wrong(&|it| it.n_lines = 9), Some("too many lines"));
        assert_eq!(
            wrong(&|it| it.chunks[1].range.end = 13),
            Some("chunks do not cover the blob")
        );
        assert_eq!(wrong(&|it| it.chunks[1].range.start = 7), Some("invalid chunks"));
        assert_eq!(wrong(&|it| it.chunks[1].end_line = 2), Some("invalid chunks"));
        assert_eq!(wrong(&|it| it.chunks[1].start_line = 0), Some("invalid chunks"));
        assert_eq!(wrong(&|it| it.chunks[1].definition = Some(1)), Some("invalid chunks"));
        assert_eq!(
            wrong(&|it| it.chunks[1].range.end = 11),
            Some("chunks do not cover the blob")
        );
        assert_eq!(
            wrong(&|it| it.definitions[0].range.end = 13),
            Some("a range outside the blob")
        );
        assert_eq!(
            wrong(&|it| it.definitions[0].doc = Some(range(3, 13))),
            Some("a range outside the blob")
        );
    }

    #[test]
    fn oversized_records_are_detected() {
        let bytes = vec![b'x'; 1000];
        let many = SLACK_BYTES / 1000 + PROPORTION + 1;
        let mut extraction = sound();
        extraction.chunks = vec![chunk(0, 1000)];
        assert!(!is_out_of_proportion(&bytes, &extraction));
        extraction.chunks = vec![chunk(0, 1000); many];
        assert!(is_out_of_proportion(&bytes, &extraction), "chunks that overlap");
        extraction.chunks = vec![
            Chunk {
                definition: Some(999),
                ..chunk(0, 1)
            };
            10
        ];
        extraction.definitions = (0..1000u32).map(|index| definition(index.checked_sub(1))).collect();
        assert!(is_out_of_proportion(&bytes, &extraction), "heads of deep containers");
    }
}
