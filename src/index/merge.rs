//! Merges adjacent segments into one segment with the same blob and document numbers.

use crate::artifact::ArtifactWriter;
use crate::sidecar::FileError;

use super::build::SegmentData;
use super::dense::{VectorFile, VectorWriter, WriteError};
use super::lexical::{LexicalError, LexicalSegment, merge_lexical};
use super::segments::Segment;

/// An error from merging segments.
#[derive(Debug, thiserror::Error)]
pub enum MergeError {
    /// The artifacts cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// The lexical indexes cannot be read or written.
    #[error(transparent)]
    Lexical(#[from] LexicalError),
    /// The vectors cannot be written.
    #[error(transparent)]
    Vectors(#[from] WriteError),
    /// The segments are not adjacent or have different recipes.
    #[error("segments cannot be merged: {what}")]
    Unlike {
        /// The reason why the segments cannot be merged.
        what: &'static str,
    },
}

/// Merges adjacent segments. Blobs and documents keep their numbers, so references to them remain valid.
///
/// Copies records, postings and vectors without extracting, tokenizing or embedding again. The result depends only on
/// the segments and their order. Needs memory for the result.
pub fn merge_segments(segments: &[&Segment]) -> Result<SegmentData, MergeError> {
    let first = check(segments)?;
    let (artifacts, (lexical, vectors)) = rayon::join(
        || merge_artifacts(segments),
        || rayon::join(|| merge_documents(segments), || merge_vectors(segments)),
    );
    Ok(SegmentData {
        base_blob: first.base_blob,
        n_blobs: segments.iter().map(|segment| segment.artifacts.n_blobs()).sum(),
        base_doc: first.base_doc,
        n_docs: segments.iter().map(|segment| segment.lexical.n_docs()).sum(),
        artifacts: artifacts?,
        lexical: lexical?,
        vectors: vectors?,
        n_text_bytes: segments.iter().map(|segment| text_bytes(&segment.lexical)).sum(),
    })
}

/// Returns the first of `segments`. Fails unless all segments have the same recipe and the numbers of each continue
/// those of the previous one.
pub(super) fn check<'a>(segments: &[&'a Segment]) -> Result<&'a Segment, MergeError> {
    let unlike = |what| MergeError::Unlike { what };
    let &first = segments.first().ok_or(unlike("no segments"))?;
    for pair in segments.windows(2) {
        let after_blobs = pair[0].base_blob + pair[0].artifacts.n_blobs();
        let after_docs = pair[0].base_doc + pair[0].lexical.n_docs();
        if (after_blobs, after_docs) != (pair[1].base_blob, pair[1].base_doc) {
            return Err(unlike("the segment numbers are not adjacent"));
        }
        if pair[0].artifacts.recipe() != pair[1].artifacts.recipe() {
            return Err(unlike("their recipes differ"));
        }
    }
    Ok(first)
}

fn merge_artifacts(segments: &[&Segment]) -> Result<Vec<u8>, MergeError> {
    let mut writer = ArtifactWriter::new(segments[0].artifacts.recipe());
    for segment in segments {
        writer.append(&segment.artifacts)?;
    }
    Ok(writer.finish())
}

fn merge_documents(segments: &[&Segment]) -> Result<Vec<u8>, MergeError> {
    let lexical: Vec<&LexicalSegment> = segments.iter().map(|segment| &segment.lexical).collect();
    Ok(merge_lexical(&lexical)?)
}

fn merge_vectors(segments: &[&Segment]) -> Result<Vec<u8>, MergeError> {
    let files: Vec<&VectorFile> = segments
        .iter()
        .map(|segment| segment.vectors.as_ref())
        .collect::<Option<_>>()
        .ok_or(MergeError::Unlike {
            what: "some have no vectors",
        })?;
    let mut writer = VectorWriter::new(files[0].dim(), files[0].quantisation(), files[0].profile())?;
    for file in files {
        (0..file.len()).try_for_each(|row| writer.copy_row(file, row))?;
    }
    Ok(writer.finish())
}

fn text_bytes(lexical: &LexicalSegment) -> u64 {
    (0..lexical.n_docs())
        .map(|doc| u64::from(lexical.meta(doc).n_bytes))
        .sum()
}
