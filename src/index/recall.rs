//! Blobs made ready from records that came from outside, in place of extracting them: what can be checked against the blob's own
//! bytes is checked, and of some blobs everything is made again and compared.

use std::collections::HashSet;

use crate::artifact::ArtifactKey;
use crate::extract::{self, Extraction, Extractor};
use crate::model::ByteRange;

use super::build::{BuildError, BuildOptions};
use super::prepare::{PreparedBlob, left_out, prepare, prepare_known};
use super::records::{Opened, Records};

/// Records in the place of extraction and embedding.
#[derive(Clone, Copy, Debug)]
pub struct Recall<'a> {
    /// What is recorded.
    pub records: &'a Records,
    /// Which blobs are extracted and embedded all the same, to compare.
    pub audited: &'a HashSet<ArtifactKey>,
}

impl Recall<'_> {
    /// Makes a blob ready from its record.
    pub(super) fn prepare(
        &self,
        key: ArtifactKey,
        bytes: Vec<u8>,
        (extractor, opened): (&mut Extractor, &mut Opened),
        options: &BuildOptions,
    ) -> Result<PreparedBlob, BuildError> {
        let untrue = |what| BuildError::Untrue { blob: key.blob, what };
        let recalled = self
            .records
            .recall(key, opened)
            .ok_or_else(|| untrue("it is not recorded"))?
            .map_err(|_| untrue("its record cannot be read"))?;
        let extraction = match (recalled.outcome, left_out(&bytes, options.max_blob_bytes)) {
            (Err(recorded), Some(reason)) if recorded == reason => return Ok(PreparedBlob::skipped(key, reason)),
            (Ok(extraction), None) => extraction,
            _ => return Err(untrue("whether it is text to be searched")),
        };
        if recalled.lang != extract::refine(key.lang, &bytes) {
            return Err(untrue("its language"));
        }
        check(&bytes, &extraction).map_err(untrue)?;
        if recalled.docs.len() != extraction.chunks.len() {
            return Err(untrue("the number of its chunks"));
        }
        if self.audited.contains(&key) {
            let mut made = prepare(key, bytes, extractor, options);
            if made.outcome.as_ref().ok() != Some(&extraction) {
                return Err(untrue("what it says"));
            }
            made.recall(&recalled.docs, true);
            return Ok(made);
        }
        let mut known = prepare_known(key, recalled.lang, bytes, extraction);
        known.recall(&recalled.docs, false);
        Ok(known)
    }
}

/// Whether all places lie inside the blob, chunks cover it, and numbers lead somewhere: what readers rely on.
fn check(bytes: &[u8], extraction: &Extraction) -> Result<(), &'static str> {
    let n_lines = bytes.iter().filter(|&&byte| byte == b'\n').count() as u32 + 1;
    let is_inside = |range: ByteRange| range.start <= range.end && range.end as usize <= bytes.len();
    if extraction.n_lines > n_lines {
        return Err("the number of its lines");
    }
    let mut covered = 0;
    for chunk in &extraction.chunks {
        let is_continued = chunk.range.start <= covered && is_inside(chunk.range);
        let lines = 1 <= chunk.start_line && chunk.start_line <= chunk.end_line && chunk.end_line <= n_lines;
        let about = chunk.definition.map_or(0, |index| index as usize + 1);
        if !is_continued || !lines || about > extraction.definitions.len() {
            return Err("its chunks");
        }
        covered = covered.max(chunk.range.end);
    }
    if covered as usize != bytes.len() {
        return Err("its chunks do not cover it");
    }
    let is_ordered = extraction.chunks.is_sorted_by_key(|chunk| chunk.range.start);
    let places = extraction.definitions.iter().all(|definition| {
        let ranges = [definition.range, definition.name_range, definition.signature];
        ranges.into_iter().chain(definition.doc).all(is_inside)
    });
    let others = extraction.references.iter().map(|reference| reference.range);
    let others = others.chain(extraction.imports.iter().map(|import| import.range));
    let mut others = others.chain(extraction.headings.iter().map(|heading| heading.range));
    match is_ordered && places && others.all(is_inside) {
        true => Ok(()),
        false => Err("a place outside it"),
    }
}
