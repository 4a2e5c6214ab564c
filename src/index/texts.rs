//! The texts that stand for documents in vectors, made again from blobs: nothing else keeps them.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

use rayon::prelude::*;

use crate::artifact::ArtifactKey;
use crate::extract::{Extraction, Extractor};

use super::build::{BlobReader, BlobSource, BuildOptions, SourceBlob};
use super::prepare::{PreparedBlob, prepare};
use super::segments::Segments;
use super::survivors::NumberSet;

/// Blobs are read and extracted in rounds of so many: small, so that who waits for the texts gets some soon.
const ROUND_BLOBS: usize = 64;

/// Gives `emit` each document of `wanted` with its text, once, in the order in which `blobs` hold them; ends when it says so, or
/// when `interrupt` is set. Documents whose blobs cannot be read are left out.
///
/// Extracts on the threads of the pool; `emit` is called on the caller's. A chunk that has not the key that was stored for its
/// document, as damage could have it, is left out.
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

/// The text that stands for one chunk of a blob, as [`document_texts`] gives it, where the blob's extraction is at hand; `None` if
/// the blob has no such chunk.
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
