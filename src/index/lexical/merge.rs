//! Several lexical files as one.

use tantivy::Index;
use tantivy::directory::RamDirectory;
use tantivy::indexer::merge_indices;

use super::reader::{LexicalError, LexicalSegment};
use super::writer::Tables;

/// The file that holds the documents of all `segments`, one segment's after the other's: a document's number in it is its
/// number in its own segment plus the documents of the segments before. Likewise the signatures.
///
/// No text is read again: postings are copied. Needs memory for the result and, for each segment, its term dictionary.
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
    // Without a sort order in its settings the library lays documents end to end, in the order of the list.
    let merged = merge_indices(&indexes, directory.clone()).map_err(LexicalError::from_tantivy)?;
    tables.finish(&merged, &directory)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use std::path::Path;

    use super::*;
    use crate::extract::ChunkKind;
    use crate::index::lexical::{DocMeta, LexicalDoc, LexicalWriter, Signature};
    use crate::model::{ChunkKey, Lang};

    /// Documents `numbers` of a line of documents that all differ, and the signature of one blob.
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
    fn merged_documents_stand_where_they_would_in_one_segment() {
        // More documents than a block of postings holds, so that blocks are cut anew; the library must not reorder by size.
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
}
