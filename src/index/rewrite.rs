//! Rewrites adjacent segments as one segment that contains only the surviving blobs and documents, with new numbers.

use crate::artifact::ArtifactWriter;

use super::build::SegmentData;
use super::dense::{VectorFile, VectorWriter};
use super::lexical::{LexicalSegment, merge_some_lexical};
use super::merge::{MergeError, check};
use super::segments::Segment;
use super::survivors::Survivors;

/// Rewrites adjacent segments as one segment with only the surviving blobs and documents.
///
/// Copies records, postings and vectors in order, without extracting, tokenizing or embedding again. So the new numbers
/// depend only on the old ones. Needs memory for the result and for the term dictionaries of the segments.
pub fn rewrite_segments(segments: &[&Segment], survivors: &Survivors) -> Result<SegmentData, MergeError> {
    let first = check(segments)?;
    let (blobs, docs) = (survivors.blobs.set(), survivors.docs.set());
    let (artifacts, (lexical, vectors)) = rayon::join(
        || rewrite_artifacts(segments, survivors),
        || {
            rayon::join(
                || rewrite_documents(segments, survivors),
                || rewrite_vectors(segments, survivors),
            )
        },
    );
    let n_blobs = |segment: &&Segment| blobs.count_in(segment.base_blob, segment.artifacts.n_blobs());
    let n_docs = |segment: &&Segment| docs.count_in(segment.base_doc, segment.lexical.n_docs());
    Ok(SegmentData {
        base_blob: survivors.blobs.below(first.base_blob),
        n_blobs: segments.iter().map(n_blobs).sum(),
        base_doc: survivors.docs.below(first.base_doc),
        n_docs: segments.iter().map(n_docs).sum(),
        artifacts: artifacts?,
        lexical: lexical?,
        vectors: vectors?,
        n_text_bytes: 0,
    })
}

/// Returns the content of an artifact file with the surviving blobs of `segments`.
pub fn rewrite_artifacts(segments: &[&Segment], survivors: &Survivors) -> Result<Vec<u8>, MergeError> {
    let mut writer = ArtifactWriter::new(segments[0].artifacts.recipe());
    for segment in segments {
        let stays = |blob| survivors.blobs.set().contains(segment.base_blob + blob);
        writer.append_some(&segment.artifacts, stays, |doc| survivors.docs.of(doc))?;
    }
    Ok(writer.finish())
}

fn rewrite_documents(segments: &[&Segment], survivors: &Survivors) -> Result<Vec<u8>, MergeError> {
    let lexical: Vec<&LexicalSegment> = segments.iter().map(|segment| &segment.lexical).collect();
    let doc_stays = |at: usize, doc| survivors.docs.set().contains(segments[at].base_doc + doc);
    let blob_stays = |at: usize, blob| survivors.blobs.set().contains(segments[at].base_blob + blob);
    Ok(merge_some_lexical(&lexical, doc_stays, blob_stays)?)
}

fn rewrite_vectors(segments: &[&Segment], survivors: &Survivors) -> Result<Vec<u8>, MergeError> {
    let files: Vec<(u32, &VectorFile)> = segments
        .iter()
        .map(|segment| Some((segment.base_doc, segment.vectors.as_ref()?)))
        .collect::<Option<_>>()
        .ok_or(MergeError::Unlike {
            what: "some have no vectors",
        })?;
    let (_, like) = files[0];
    let mut writer = VectorWriter::new(like.dim(), like.quantisation(), like.profile())?;
    for (base_doc, file) in files {
        let rows = (0..file.len()).filter(|row| survivors.docs.set().contains(base_doc + row));
        for row in rows {
            writer.copy_row(file, row)?;
        }
    }
    Ok(writer.finish())
}
