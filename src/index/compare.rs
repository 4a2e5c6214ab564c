//! Compares a stored segment with a segment rebuilt from the same blobs.

use super::lexical::LexicalError;
use super::segments::Segment;

/// A part of a segment, stored as a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SegmentPart {
    /// The artifacts.
    Artifacts,
    /// The lexical index.
    Lexical,
    /// The vectors.
    Vectors,
}

/// Returns the first difference in each part of `stored` and `fresh`.
///
/// `fresh` was rebuilt from some of the blobs of `stored`, after the same earlier segments. Blobs and documents are
/// matched by key; those that `fresh` does not contain are ignored. Holds the postings of `fresh` in memory.
pub fn differences(stored: &Segment, fresh: &Segment) -> Result<Vec<(SegmentPart, String)>, LexicalError> {
    let mut found = Vec::new();
    let to_fresh: Vec<Option<u32>> = (0..stored.lexical.n_docs())
        .map(|doc| fresh.lexical.find(stored.lexical.key(doc)))
        .collect();
    let n_paired = to_fresh.iter().flatten().count();
    if n_paired != fresh.lexical.n_docs() as usize {
        let what = format!("{} documents missing", fresh.lexical.n_docs() as usize - n_paired);
        found.push((SegmentPart::Lexical, what));
    }
    for blob in 0..fresh.artifacts.n_blobs() {
        if let Some((part, what)) = blob_difference(stored, fresh, blob) {
            let name = fresh
                .artifacts
                .key(blob)
                .map_or(String::new(), |key| key.blob.to_string());
            found.push((part, format!("{what} of blob {name}")));
            break;
        }
    }
    let pairs = || {
        let pairs = to_fresh.iter().enumerate();
        pairs.filter_map(|(doc, fresh)| Some((doc as u32, (*fresh)?)))
    };
    if let Some((doc, _)) = pairs().find(|&(doc, other)| stored.lexical.meta(doc) != fresh.lexical.meta(other)) {
        found.push((SegmentPart::Lexical, format!("metadata of document {doc}")));
    } else if let Some(what) = stored.lexical.difference(&fresh.lexical, &to_fresh)? {
        found.push((SegmentPart::Lexical, what));
    }
    if let (Some(ours), Some(theirs)) = (&stored.vectors, &fresh.vectors)
        && let Some((doc, _)) = pairs().find(|&(doc, other)| !ours.has_same_row(doc, theirs, other))
    {
        found.push((SegmentPart::Vectors, format!("vector of document {doc}")));
    }
    Ok(found)
}

fn blob_difference(stored: &Segment, fresh: &Segment, blob: u32) -> Option<(SegmentPart, &'static str)> {
    let artifact = |what| Some((SegmentPart::Artifacts, what));
    let key = fresh.artifacts.key(blob)?;
    let Some(ours) = stored.artifacts.find(key) else {
        return artifact("entry");
    };
    let (old, new) = (&stored.artifacts, &fresh.artifacts);
    if (old.status(ours), old.lang(ours)) != (new.status(blob), new.lang(blob)) {
        return artifact("status or language");
    }
    if old.status(ours) == Some(crate::artifact::Status::Indexed) {
        if !matches!((old.extraction(ours), new.extraction(blob)), (Ok(old), Ok(new)) if old == new) {
            return artifact("definitions, imports, headings or chunks");
        }
        if !matches!((old.links(ours), new.links(blob)), (Ok(old), Ok(new)) if old == new) {
            return artifact("references");
        }
    }
    let same_docs = old.docs(ours).len() == new.docs(blob).len()
        && old
            .docs(ours)
            .zip(new.docs(blob))
            .all(|(ours, theirs)| is_same_doc(stored, ours, fresh, theirs));
    if !same_docs {
        return artifact("documents");
    }
    if stored.lexical.signature(ours).0 == fresh.lexical.signature(blob).0 {
        None
    } else {
        Some((SegmentPart::Lexical, "signature"))
    }
}

/// Returns true if two document numbers refer to the same document. Documents of earlier segments, which both segments
/// share, are compared by number, others by key.
fn is_same_doc(stored: &Segment, ours: u32, fresh: &Segment, theirs: u32) -> bool {
    match (ours.checked_sub(stored.base_doc), theirs.checked_sub(fresh.base_doc)) {
        (None, None) => ours == theirs,
        (Some(ours), Some(theirs)) => {
            ours < stored.lexical.n_docs()
                && theirs < fresh.lexical.n_docs()
                && stored.lexical.key(ours) == fresh.lexical.key(theirs)
        }
        _ => false,
    }
}
