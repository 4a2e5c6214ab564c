//! Merges lexical files.

use tantivy::directory::{OwnedBytes, RamDirectory};
use tantivy::fastfield::{AliveBitSet, write_alive_bitset};
use tantivy::indexer::{merge_filtered_segments, merge_indices};
use tantivy::{BitSet, Index};

use super::reader::{LexicalError, LexicalSegment};
use super::writer::Tables;

/// Merges the lexical files of `segments`.
///
/// The order of documents and signatures does not change: a document's new number is its number in its segment plus the
/// number of documents in all segments before. Copies postings without tokenizing text again. Needs memory for the
/// result and for the term dictionary of each segment.
pub fn merge_lexical(segments: &[&LexicalSegment]) -> Result<Vec<u8>, LexicalError> {
    let mut tables = Tables::default();
    for segment in segments {
        (0..segment.n_docs()).for_each(|doc| tables.add_doc(segment.key(doc), segment.meta(doc)));
        (0..segment.n_signatures()).for_each(|blob| tables.add_signature(segment.signature(blob).0));
    }
    let indexes: Vec<Index> = segments
        .iter()
        .map(|segment| segment.index())
        .collect::<Result<_, _>>()?;
    let directory = RamDirectory::create();
    // tantivy concatenates the documents in the order of the list if its settings define no sort order.
    let merged = merge_indices(&indexes, directory.clone()).map_err(LexicalError::from_tantivy)?;
    tables.finish(&merged, &directory)
}

/// Like [`merge_lexical`], but includes only the documents for which `doc_stays` returns true and the signatures for
/// which `blob_stays` returns true. Both functions are called with the position of a segment in `segments` and a number
/// in that segment. The new numbers have no gaps.
pub fn merge_some_lexical(
    segments: &[&LexicalSegment],
    doc_stays: impl Fn(usize, u32) -> bool,
    blob_stays: impl Fn(usize, u32) -> bool,
) -> Result<Vec<u8>, LexicalError> {
    let mut tables = Tables::default();
    let (mut parts, mut filters) = (Vec::new(), Vec::new());
    for (at, segment) in segments.iter().enumerate() {
        let docs = (0..segment.n_docs()).filter(|&doc| doc_stays(at, doc));
        let mut alive = BitSet::with_max_value(segment.n_docs());
        for doc in docs {
            tables.add_doc(segment.key(doc), segment.meta(doc));
            alive.insert(doc);
        }
        let blobs = (0..segment.n_signatures()).filter(|&blob| blob_stays(at, blob));
        blobs.for_each(|blob| tables.add_signature(segment.signature(blob).0));
        let index = segment.index()?;
        parts.extend(index.searchable_segments().map_err(LexicalError::from_tantivy)?);
        filters.push(alive_docs(&alive, segment.n_docs()));
        if parts.len() != filters.len() {
            return Err(LexicalError::Tantivy("more than one segment in an index".to_owned()));
        }
    }
    let settings = tantivy::IndexSettings::default();
    let directory = RamDirectory::create();
    let merged =
        merge_filtered_segments(&parts, settings, filters, directory.clone()).map_err(LexicalError::from_tantivy)?;
    tables.finish(&merged, &directory)
}

/// Converts a set of documents to tantivy's type. Returns `None` if the set contains all documents.
fn alive_docs(alive: &BitSet, n_docs: u32) -> Option<AliveBitSet> {
    if alive.len() == n_docs as usize {
        return None;
    }
    let mut bytes = Vec::new();
    write_alive_bitset(alive, &mut bytes).expect("writing to memory succeeds");
    Some(AliveBitSet::open(OwnedBytes::new(bytes)))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use std::path::Path;

    use super::*;
    use crate::extract::ChunkKind;
    use crate::index::lexical::{DocMeta, LexicalDoc, LexicalWriter, Signature};
    use crate::model::{ChunkKey, Lang};

    /// Builds a segment that contains the documents `numbers` of a sequence of distinct documents, and the signature of
    /// one blob.
    fn segment(numbers: std::ops::Range<u32>) -> LexicalSegment {
        let mut writer = LexicalWriter::new().unwrap();
        for number in numbers.clone() {
            let name = format!("function_{number}");
            let body = format!("fn {name}() {{ {} }}", "shared ".repeat(number as usize % 5 + 1));
            let meta = DocMeta {
                n_tokens: 0,
                n_bytes: number,
                lang: Lang(number as u16),
                kind: ChunkKind::Function,
                n_definitions: 1,
            };
            let names: &[&str] = &[&name];
            let doc = LexicalDoc {
                key: ChunkKey(u128::from(number.wrapping_mul(0x9e37_79b1)).to_be_bytes()),
                meta,
                names,
                head: "impl Sample",
                body: &body,
            };
            writer.add(doc).unwrap();
        }
        writer.add_signature(&Signature::of(format!("{numbers:?}").as_bytes()));
        LexicalSegment::from_bytes(Path::new("sample"), writer.finish().unwrap()).unwrap()
    }

    fn merged(parts: &[LexicalSegment]) -> LexicalSegment {
        let parts: Vec<&LexicalSegment> = parts.iter().collect();
        LexicalSegment::from_bytes(Path::new("merged"), merge_lexical(&parts).unwrap()).unwrap()
    }

    fn postings(segment: &LexicalSegment, term: &str) -> Vec<(u32, u32, u32)> {
        let mut list = Vec::new();
        let found = segment.postings(term, |p| list.push((p.doc, p.in_body, p.in_name)));
        found.unwrap();
        list
    }

    #[test]
    fn merged_documents_are_numbered_as_in_one_segment() {
        // There are more documents than one block of postings can hold, so merging moves block boundaries. tantivy must
        // not sort the segments by size.
        let parts = [segment(0..3), segment(3..203), segment(203..203), segment(203..450)];
        let (merged, whole) = (merged(&parts), segment(0..450));
        assert_eq!(merged.n_docs(), 450);
        for doc in 0..450 {
            assert_eq!((merged.key(doc), merged.meta(doc)), (whole.key(doc), whole.meta(doc)));
            assert_eq!(merged.find(whole.key(doc)), Some(doc));
            assert_eq!(merged.defining(&format!("function{doc}")).unwrap(), [doc]);
            let term = doc.to_string();
            assert_eq!(postings(&merged, &term), postings(&whole, &term), "{term}");
        }
        for term in ["share", "sampl", "fn", "function", "absent"] {
            assert_eq!(postings(&merged, term), postings(&whole, term), "{term}");
        }
        let mut names = Vec::new();
        merged
            .for_each_defined_name(|name| names.push(name.to_owned()))
            .unwrap();
        assert_eq!(names.len(), 450);
    }

    #[test]
    fn signatures_follow_one_another() {
        let merged = merged(&[segment(0..1), segment(1..2), segment(2..2)]);
        for (blob, text) in ["0..1", "1..2", "2..2"].iter().enumerate() {
            assert_eq!(merged.signature(blob as u32).0, Signature::of(text.as_bytes()));
        }
        assert_eq!(merged.n_signatures(), 3);
    }

    #[test]
    fn segments_without_documents_and_merged_ones_merge() {
        let none = merged(&[segment(0..0), segment(0..0)]);
        assert_eq!((none.n_docs(), none.n_signatures()), (0, 2));
        let again = merged(&[none, merged(&[segment(0..5), segment(5..9)]), segment(9..12)]);
        assert_eq!(postings(&again, "11"), [(11, 1, 1)]);
    }

    #[test]
    fn removed_documents_leave_no_terms_or_gaps() {
        let parts = [segment(0..3), segment(3..203), segment(203..210), segment(210..450)];
        let starts = [0, 3, 203, 210];
        // The third segment loses all its documents.
        let stays = |number: u32| number % 3 != 1 && !(203..210).contains(&number);
        let parts: Vec<&LexicalSegment> = parts.iter().collect();
        let bytes = merge_some_lexical(&parts, |at, doc| stays(starts[at] + doc), |at, _| at % 2 == 1).unwrap();
        let left = LexicalSegment::from_bytes(Path::new("left"), bytes).unwrap();
        let kept: Vec<u32> = (0..450).filter(|&number| stays(number)).collect();
        assert_eq!((left.n_docs() as usize, left.n_signatures()), (kept.len(), 2));
        assert_eq!(left.signature(1).0, Signature::of(b"210..450"));
        let whole = segment(0..450);
        for (doc, &number) in kept.iter().enumerate() {
            let doc = doc as u32;
            assert_eq!((left.key(doc), left.meta(doc)), (whole.key(number), whole.meta(number)));
            assert_eq!(left.find(whole.key(number)), Some(doc));
            assert_eq!(left.defining(&format!("function{number}")).unwrap(), [doc]);
        }
        let expected: Vec<_> = postings(&whole, "share")
            .into_iter()
            .filter_map(|(number, body, name)| Some((kept.binary_search(&number).ok()? as u32, body, name)))
            .collect();
        assert_eq!(postings(&left, "share"), expected);
        let mut names = 0;
        left.for_each_defined_name(|_| names += 1).unwrap();
        assert_eq!(names, kept.len());
        assert_eq!(postings(&left, "204"), []);
        // All segments lose all their documents.
        let none = merge_some_lexical(&parts, |_, _| false, |_, _| false).unwrap();
        let none = LexicalSegment::from_bytes(Path::new("none"), none).unwrap();
        assert_eq!((none.n_docs(), none.n_signatures()), (0, 0));
        assert_eq!(postings(&none, "share"), []);
    }
}
