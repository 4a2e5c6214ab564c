//! Recomputes the texts that were embedded for documents from the blobs, because the texts are not stored.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

use rayon::prelude::*;

use crate::artifact::{ArtifactKey, Extractor};
use crate::extract::Extraction;

use super::build::{BlobReader, BlobSource, BuildOptions, SourceBlob};
use super::prepare::{PreparedBlob, prepare};
use super::segments::Segments;
use super::survivors::NumberSet;

/// Number of blobs that are read and extracted together. With small rounds, the first texts are available soon.
const ROUND_BLOBS: usize = 64;

/// Calls `emit` with the text of each document in `wanted`, once per document and in the order of `blobs`. Stops if
/// `emit` breaks or `interrupt` is set.
///
/// Skips documents whose blobs cannot be read. Skips chunks whose key differs from the stored key of the document,
/// which indicates damage. Extracts on the thread pool and calls `emit` on the thread of the caller.
pub fn document_texts<S: BlobSource>(
    segments: &Segments,
    blobs: &[u32],
    mut wanted: NumberSet,
    source: &S,
    options: &BuildOptions,
    interrupt: &AtomicBool,
    mut emit: impl FnMut(u32, String) -> ControlFlow<()>,
) {
    let has_wanted = |blob: u32, wanted: &NumberSet| docs_of(segments, blob).any(|doc| wanted.contains(doc));
    let mut rest = blobs;
    while !rest.is_empty() && !interrupt.load(Ordering::Relaxed) {
        let mut round: Vec<(u32, ArtifactKey)> = Vec::with_capacity(ROUND_BLOBS);
        while let Some((&blob, after)) = rest.split_first().filter(|_| round.len() < ROUND_BLOBS) {
            rest = after;
            if has_wanted(blob, &wanted)
                && let Some((segment, local)) = segments.of_blob(blob)
                && let Some(key) = segment.artifacts.key(local)
            {
                round.push((blob, key));
            }
        }
        for (blob, prepared) in prepared(&round, source, options) {
            for (chunk, doc) in prepared.chunks.iter().zip(docs_of(segments, blob)) {
                let is_same = segments
                    .of_doc(doc)
                    .is_some_and(|(segment, local)| segment.lexical.key(local) == chunk.key);
                if is_same && wanted.remove(doc) && emit(doc, chunk.text(&prepared)).is_break() {
                    return;
                }
            }
        }
    }
}

/// Returns the text of one chunk, as [`document_texts`] would, from the extraction of its blob. Returns `None` if the
/// blob has no such chunk.
pub fn chunk_text(bytes: &[u8], extraction: &Extraction, chunk: usize) -> Option<String> {
    super::prepare::chunk_text(bytes, extraction, chunk)
}

fn docs_of(segments: &Segments, blob: u32) -> impl Iterator<Item = u32> {
    segments
        .of_blob(blob)
        .into_iter()
        .flat_map(|(segment, local)| segment.artifacts.docs(local))
}

fn prepared<S: BlobSource>(
    round: &[(u32, ArtifactKey)],
    source: &S,
    options: &BuildOptions,
) -> Vec<(u32, PreparedBlob)> {
    round
        .par_iter()
        .map_init(
            || (source.reader(), Extractor::new(options.extract.clone())),
            |(reader, extractor), &(blob, key)| match reader.read(key) {
                SourceBlob::Content(bytes) => Some((blob, prepare(key, bytes, extractor, options))),
                SourceBlob::Skipped(_) | SourceBlob::Absent => None,
            },
        )
        .flatten()
        .collect()
}
