//! Reads the lexical index of a segment.
//!
//! Sections of the file (format 1, little endian):
//! - `docs`: n × 12 bytes ([`DocMeta`]); `keys`: n × 16 bytes; `by_key`: n × u32, documents in the order of their keys.
//! - `ngrams`, `ngram_ends`: signatures of the segment's blobs end to end, and the end of each (u32).
//! - `t.*`: the files of a tantivy index with one segment and its documents in the same order.

use std::collections::{BTreeMap, HashMap};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tantivy::postings::{BlockSegmentPostings, Postings};
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{DocSet, Index, InvertedIndexReader, SegmentReader, TERMINATED, Term};

use crate::extract::ChunkKind;
use crate::model::{ChunkKey, Explain, Explanation, Lang, panics};
use crate::sidecar::{Bytes, FileError, HOW_TO_REPAIR, SectionFile, Sidecar, Store};

use super::ngram::Signature;
use super::pack::PackedDirectory;
use super::writer::{COMPONENTS, FIXED_SEGMENT_ID, exact_field, register_tokenizer, schema};

/// Format version. 1: initial.
pub const FORMAT: u32 = 1;
const META_BYTES: usize = 12;
const KEY_BYTES: usize = 16;

/// An error from reading or writing a lexical index.
#[derive(Debug, thiserror::Error)]
pub enum LexicalError {
    /// The file is damaged or has another format.
    #[error(transparent)]
    File(#[from] FileError),
    /// An error from tantivy.
    #[error("lexical index: {0}")]
    Tantivy(String),
}

impl Explain for LexicalError {
    fn explain(&self) -> Explanation {
        match self {
            Self::File(error) => error.explain(),
            Self::Tantivy(_) => Explanation::hinting(HOW_TO_REPAIR),
        }
    }
}

impl LexicalError {
    pub(super) fn from_tantivy(error: tantivy::TantivyError) -> Self {
        Self::Tantivy(error.to_string())
    }

    /// tantivy reports its own files, which are in memory, with errors of this type.
    fn from_reading(error: std::io::Error) -> Self {
        Self::Tantivy(error.to_string())
    }
}

/// The metadata of a document, which ranking uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DocMeta {
    /// Number of words in the text.
    pub n_tokens: u32,
    /// Size of the text in bytes.
    pub n_bytes: u32,
    /// The language of the blob.
    pub lang: Lang,
    /// The kind of the chunk.
    pub kind: ChunkKind,
    /// Number of definitions that begin in the chunk; 255 if there are more.
    pub n_definitions: u8,
}

impl DocMeta {
    pub(super) fn to_bytes(self) -> [u8; META_BYTES] {
        let mut raw = [0; META_BYTES];
        raw[..4].copy_from_slice(&self.n_tokens.to_le_bytes());
        raw[4..8].copy_from_slice(&self.n_bytes.to_le_bytes());
        raw[8..10].copy_from_slice(&self.lang.0.to_le_bytes());
        raw[10] = self.kind as u8;
        raw[11] = self.n_definitions;
        raw
    }

    fn from_bytes(raw: &[u8]) -> Self {
        Self {
            n_tokens: u32_at(raw, 0),
            n_bytes: u32_at(raw, 4),
            lang: Lang(u16::from_le_bytes([raw[8], raw[9]])),
            kind: ChunkKind::from_number(raw[10]).unwrap_or(ChunkKind::Window),
            n_definitions: raw[11],
        }
    }
}

/// A document that contains a term, with the number of occurrences.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Posting {
    /// The number of the document in the segment.
    pub doc: u32,
    /// Number of occurrences in the text and in the head (containers, signature).
    pub in_body: u32,
    /// Number of occurrences in the names that the document defines.
    pub in_name: u32,
}

/// The lexical index of a segment.
#[derive(Clone)]
pub struct LexicalSegment {
    file: SectionFile,
    docs: Bytes,
    keys: Bytes,
    by_key: Bytes,
    ngrams: Bytes,
    ngram_ends: Bytes,
    name: FieldPostings,
    body: FieldPostings,
    exact: FieldPostings,
}

#[derive(Clone)]
struct FieldPostings {
    field: Field,
    index: Arc<InvertedIndexReader>,
}

impl LexicalSegment {
    /// Returns the size of the file in bytes.
    pub fn n_bytes(&self) -> u64 {
        self.file.n_bytes()
    }

    /// Opens the file `name` of the sidecar.
    pub fn open(sidecar: &Sidecar, name: &str) -> Result<Self, LexicalError> {
        Self::from_sections(SectionFile::open(sidecar, Store::Lexical, name, FORMAT)?)
    }

    /// Opens a file in memory. `name` is used in messages.
    pub fn from_bytes(name: &Path, bytes: impl Into<Bytes>) -> Result<Self, LexicalError> {
        Self::from_sections(SectionFile::from_bytes(name, bytes.into(), FORMAT)?)
    }

    fn from_sections(file: SectionFile) -> Result<Self, LexicalError> {
        caught(&file, || Self::of_sections(file.clone()))
    }

    fn of_sections(file: SectionFile) -> Result<Self, LexicalError> {
        let docs = file.section("docs")?;
        let keys = file.section("keys")?;
        let by_key = file.section("by_key")?;
        let n_docs = docs.len() / META_BYTES;
        if docs.len() % META_BYTES != 0 || keys.len() != n_docs * KEY_BYTES || by_key.len() != n_docs * 4 {
            return Err(file.damaged("number of documents").into());
        }
        let index = open_index(&file)?;
        let (_, fields) = schema();
        // Open the segment directly. tantivy's `IndexReader` would create a lock file, but readers must not write.
        let segments = index.searchable_segments().map_err(LexicalError::from_tantivy)?;
        let [segment] = segments.as_slice() else {
            return Err(file.damaged("number of tantivy segments").into());
        };
        let segment = SegmentReader::open(segment).map_err(LexicalError::from_tantivy)?;
        if segment.max_doc() as usize != n_docs {
            return Err(file.damaged("number of tantivy documents").into());
        }
        let postings_of = |field| -> Result<FieldPostings, LexicalError> {
            let index = segment.inverted_index(field).map_err(LexicalError::from_tantivy)?;
            Ok(FieldPostings { field, index })
        };
        Ok(Self {
            ngrams: file.section("ngrams")?,
            ngram_ends: file.section("ngram_ends")?,
            name: postings_of(fields.name)?,
            body: postings_of(fields.body)?,
            exact: postings_of(exact_field())?,
            docs,
            keys,
            by_key,
            file,
        })
    }

    /// Returns the number of documents.
    pub fn n_docs(&self) -> u32 {
        (self.docs.len() / META_BYTES) as u32
    }

    /// Returns the metadata of a document. `doc` must be below `n_docs`.
    pub fn meta(&self, doc: u32) -> DocMeta {
        DocMeta::from_bytes(&self.docs[doc as usize * META_BYTES..][..META_BYTES])
    }

    /// Returns the key of a document. `doc` must be below `n_docs`.
    pub fn key(&self, doc: u32) -> ChunkKey {
        let raw = &self.keys[doc as usize * KEY_BYTES..][..KEY_BYTES];
        ChunkKey(raw.try_into().expect("sixteen bytes"))
    }

    /// Returns the number of the document with this key.
    pub fn find(&self, key: ChunkKey) -> Option<u32> {
        let n_docs = self.n_docs() as usize;
        let doc_at = |rank: usize| u32_at(&self.by_key, rank * 4);
        let (mut low, mut high) = (0, n_docs);
        while low < high {
            let middle = low + (high - low) / 2;
            let doc = doc_at(middle);
            if doc >= self.n_docs() {
                return None;
            }
            match self.key(doc).cmp(&key) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
                std::cmp::Ordering::Equal => return Some(doc),
            }
        }
        None
    }

    /// Returns the number of signatures, including empty ones.
    pub fn n_signatures(&self) -> u32 {
        (self.ngram_ends.len() / 4) as u32
    }

    /// Opens the tantivy index for merging.
    pub(super) fn index(&self) -> Result<Index, LexicalError> {
        open_index(&self.file)
    }

    /// Returns the n-gram signature of a blob of the segment. Empty if the blob has none.
    pub fn signature(&self, blob: u32) -> Signature<'_> {
        let end_of = |blob: usize| {
            self.ngram_ends
                .get(blob * 4..blob * 4 + 4)
                .map(|raw| u32_at(raw, 0) as usize)
        };
        let end = end_of(blob as usize).unwrap_or_default();
        let start = (blob as usize).checked_sub(1).and_then(end_of).unwrap_or_default();
        Signature(self.ngrams.get(start..end).unwrap_or_default())
    }

    /// Calls `found` for every document that contains `term`, in ascending order.
    pub fn postings(&self, term: &str, mut found: impl FnMut(Posting)) -> Result<(), LexicalError> {
        self.postings_until(term, |posting| {
            found(posting);
            ControlFlow::Continue(())
        })
    }

    /// Returns an upper bound for the number of documents that contain `term`.
    pub fn n_docs_with(&self, term: &str) -> Result<u32, LexicalError> {
        let n_docs = |field: &FieldPostings| {
            let term = Term::from_field_text(field.field, term);
            field.index.doc_freq(&term).map_err(LexicalError::from_reading)
        };
        Ok(n_docs(&self.body)?.saturating_add(n_docs(&self.name)?))
    }

    /// Calls `found` for the documents that contain `term`, in ascending order, until it breaks.
    pub fn postings_until(
        &self,
        term: &str,
        mut found: impl FnMut(Posting) -> ControlFlow<()>,
    ) -> Result<(), LexicalError> {
        let (mut body, mut name) = (Blocks::of(&self.body, term)?, Blocks::of(&self.name, term)?);
        let (mut next_body, mut next_name) = (body.next(), name.next());
        loop {
            let doc = match (next_body, next_name) {
                (None, None) => return Ok(()),
                (Some((doc, _)), None) | (None, Some((doc, _))) => doc,
                (Some((a, _)), Some((b, _))) => a.min(b),
            };
            let mut posting = Posting {
                doc,
                in_body: 0,
                in_name: 0,
            };
            if let Some((_, frequency)) = next_body.filter(|(at, _)| *at == doc) {
                posting.in_body = frequency;
                next_body = body.next();
            }
            if let Some((_, frequency)) = next_name.filter(|(at, _)| *at == doc) {
                posting.in_name = frequency;
                next_name = name.next();
            }
            if found(posting).is_break() {
                return Ok(());
            }
        }
    }

    /// Returns the numbers of the documents that define a name whose [normal form](super::normal_name) is `name`,
    /// ascending.
    pub fn defining(&self, name: &str) -> Result<Vec<u32>, LexicalError> {
        let mut postings = Blocks::of(&self.exact, name)?;
        Ok(std::iter::from_fn(|| postings.next()).map(|(doc, _)| doc).collect())
    }

    /// Calls `found` with the [normal form](super::normal_name) of each name that the segment defines.
    pub fn for_each_defined_name(&self, mut found: impl FnMut(&str)) -> Result<(), LexicalError> {
        let mut names = self.exact.index.terms().stream().map_err(LexicalError::from_reading)?;
        while let Some((name, _)) = names.next() {
            if let Ok(name) = std::str::from_utf8(name) {
                found(name);
            }
        }
        Ok(())
    }

    /// Calls `found` with each term of texts that begins with `start`.
    pub fn for_each_term_with(&self, start: &str, mut found: impl FnMut(&str)) -> Result<(), LexicalError> {
        let terms = self.body.index.terms().range().ge(start);
        let mut terms = terms.into_stream().map_err(LexicalError::from_reading)?;
        while let Some((term, _)) = terms.next() {
            if !term.starts_with(start.as_bytes()) {
                break;
            }
            if let Ok(term) = std::str::from_utf8(term) {
                found(term);
            }
        }
        Ok(())
    }

    /// Calls `found` with each term of texts or names and its postings, ascending by document.
    pub fn for_each_term(&self, mut found: impl FnMut(&str, &[Posting])) -> Result<(), LexicalError> {
        let mut names: HashMap<Vec<u8>, List> = HashMap::new();
        self.name.for_each_list(&mut |term, list| {
            names.insert(term.to_owned(), list);
        })?;
        let mut merge = |term: &[u8], body: List, name: List| {
            let in_body = body.into_iter().map(|(doc, n)| (doc, n, 0));
            let mut all: Vec<(u32, u32, u32)> = in_body.chain(name.into_iter().map(|(doc, n)| (doc, 0, n))).collect();
            all.sort_unstable();
            all.dedup_by(|next, first| {
                let is_same = next.0 == first.0;
                if is_same {
                    (first.1, first.2) = (first.1 + next.1, first.2 + next.2);
                }
                is_same
            });
            let posting = |(doc, in_body, in_name)| Posting { doc, in_body, in_name };
            if let Ok(term) = std::str::from_utf8(term) {
                found(term, &all.into_iter().map(posting).collect::<Vec<_>>());
            }
        };
        self.body
            .for_each_list(&mut |term, list| merge(term, list, names.remove(term).unwrap_or_default()))?;
        names
            .into_iter()
            .for_each(|(term, list)| merge(&term, List::new(), list));
        Ok(())
    }

    /// Verifies every section, reads every posting and checks that all parts are consistent.
    pub fn verify(&self) -> Result<(), LexicalError> {
        self.file.verify()?;
        caught(&self.file, || self.verify_content())
    }

    fn verify_content(&self) -> Result<(), LexicalError> {
        let damaged = |what: &str| LexicalError::File(self.file.damaged(what));
        let by_rank = |rank: u32| u32_at(&self.by_key, rank as usize * 4);
        let is_ordered = |rank: u32| {
            by_rank(rank) < self.n_docs() && (rank == 0 || self.key(by_rank(rank - 1)) < self.key(by_rank(rank)))
        };
        if !(0..self.n_docs()).all(is_ordered) {
            return Err(damaged("order of documents"));
        }
        let ends: Vec<u32> = self.ngram_ends.chunks_exact(4).map(|raw| u32_at(raw, 0)).collect();
        if !ends.is_sorted() || ends.last().map_or(0, |&end| end as usize) != self.ngrams.len() {
            return Err(damaged("ends of signatures"));
        }
        for field in self.fields() {
            let mut is_sound = true;
            field.for_each_list(&mut |_, list| {
                is_sound &= list.iter().all(|&(doc, _)| doc < self.n_docs());
                is_sound &= list.is_sorted_by_key(|&(doc, _)| doc);
            })?;
            if !is_sound {
                return Err(damaged("postings"));
            }
        }
        Ok(())
    }

    /// Returns the first difference from `fresh`, an index of some of the same documents, or `None` if there is no
    /// difference. `to_fresh` maps document numbers of this index to those of `fresh`.
    pub fn difference(&self, fresh: &Self, to_fresh: &[Option<u32>]) -> Result<Option<String>, LexicalError> {
        for (name, ours, theirs) in [
            ("names", &self.name, &fresh.name),
            ("text", &self.body, &fresh.body),
            ("exact names", &self.exact, &fresh.exact),
        ] {
            if let Some(term) = ours.difference(theirs, to_fresh)? {
                return Ok(Some(format!("postings of {term:?} in {name}")));
            }
        }
        Ok(None)
    }

    fn fields(&self) -> [&FieldPostings; 3] {
        [&self.name, &self.body, &self.exact]
    }
}

/// The documents that contain a term, with the number of occurrences in each.
type List = Vec<(u32, u32)>;

impl FieldPostings {
    /// Calls `found` with every term and its postings, in the order of terms.
    fn for_each_list(&self, found: &mut dyn FnMut(&[u8], List)) -> Result<(), LexicalError> {
        let mut terms = self.index.terms().stream().map_err(LexicalError::from_reading)?;
        while let Some((term, info)) = terms.next() {
            let mut postings = self
                .index
                .read_postings_from_terminfo(info, IndexRecordOption::WithFreqs)
                .map_err(LexicalError::from_reading)?;
            let mut list = List::new();
            while postings.doc() != TERMINATED {
                list.push((postings.doc(), postings.term_freq()));
                postings.advance();
            }
            found(term, list);
        }
        Ok(())
    }

    /// Returns a term whose postings differ from those in `fresh`. Compares only the documents that have a number in
    /// `to_fresh`.
    fn difference(&self, fresh: &Self, to_fresh: &[Option<u32>]) -> Result<Option<String>, LexicalError> {
        let mut expected: BTreeMap<Vec<u8>, List> = BTreeMap::new();
        fresh.for_each_list(&mut |term, list| {
            expected.insert(term.to_owned(), list);
        })?;
        let mut differing = None;
        self.for_each_list(&mut |term, list| {
            let known = |(doc, frequency): (u32, u32)| Some((to_fresh.get(doc as usize).copied()??, frequency));
            let mut list: List = list.into_iter().filter_map(known).collect();
            list.sort_unstable();
            if list != expected.remove(term).unwrap_or_default() {
                differing.get_or_insert_with(|| String::from_utf8_lossy(term).into_owned());
            }
        })?;
        let unseen = expected.into_keys().next();
        Ok(differing.or_else(|| unseen.map(|term| String::from_utf8_lossy(&term).into_owned())))
    }
}

/// Iterates over the postings of a term, which tantivy decodes in blocks.
struct Blocks {
    blocks: BlockSegmentPostings,
    at: usize,
}

impl Blocks {
    fn of(field: &FieldPostings, term: &str) -> Result<Self, LexicalError> {
        let term = Term::from_field_text(field.field, term);
        let blocks = field
            .index
            .read_block_postings(&term, IndexRecordOption::WithFreqs)
            .map_err(LexicalError::from_reading)?;
        Ok(Self {
            blocks: blocks.unwrap_or_else(BlockSegmentPostings::empty),
            at: 0,
        })
    }

    #[inline]
    fn next(&mut self) -> Option<(u32, u32)> {
        if self.at == self.blocks.docs().len() {
            self.blocks.advance();
            self.at = 0;
        }
        let doc = *self.blocks.docs().get(self.at)?;
        let frequency = self.blocks.freqs().get(self.at).copied().unwrap_or(1);
        self.at += 1;
        Some((doc, frequency))
    }
}

/// Reads an index of tantivy, which panics on some content that its maker did not intend.
fn caught<T>(file: &SectionFile, read: impl FnOnce() -> Result<T, LexicalError>) -> Result<T, LexicalError> {
    panics::caught(read).unwrap_or_else(|| Err(file.damaged("words").into()))
}

fn open_index(file: &SectionFile) -> Result<Index, LexicalError> {
    let mut files = BTreeMap::new();
    files.insert(PathBuf::from("meta.json"), file.section("t.meta")?);
    for (ending, section) in COMPONENTS {
        files.insert(
            PathBuf::from(format!("{FIXED_SEGMENT_ID}.{ending}")),
            file.section(section)?,
        );
    }
    let index = Index::open(PackedDirectory::new(files)).map_err(LexicalError::from_tantivy)?;
    register_tokenizer(&index);
    Ok(index)
}

fn u32_at(raw: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(raw[at..at + 4].try_into().expect("four bytes"))
}

impl std::fmt::Debug for LexicalSegment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "LexicalSegment({} documents)", self.n_docs())
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::super::writer::{LexicalDoc, LexicalWriter};
    use super::*;

    fn sample() -> Vec<u8> {
        let mut writer = LexicalWriter::new().unwrap();
        let texts: [(&[&str], &str, &str); 3] = [
            (&["parse_query"], "impl Parser", "fn parse_query() { lex() }"),
            (&["lex"], "", "fn lex() { retry the query, retries query }"),
            (&[], "", "// nothing here"),
        ];
        for (number, (names, head, body)) in texts.into_iter().enumerate() {
            writer
                .add(LexicalDoc {
                    key: ChunkKey([200 - number as u8; 16]),
                    meta: DocMeta {
                        n_tokens: 0,
                        n_bytes: body.len() as u32,
                        lang: Lang(1),
                        kind: ChunkKind::Function,
                        n_definitions: names.len() as u8,
                    },
                    names,
                    head,
                    body,
                })
                .unwrap();
        }
        writer.add_signature(&Signature::of(b"fn parse_query"));
        writer.finish().unwrap()
    }

    fn postings(segment: &LexicalSegment, term: &str) -> Vec<(u32, u32, u32)> {
        let mut list = Vec::new();
        segment
            .postings(term, |p| list.push((p.doc, p.in_body, p.in_name)))
            .unwrap();
        list
    }

    #[test]
    fn postings_are_counted_by_field() {
        let segment = LexicalSegment::from_bytes(Path::new("sample"), sample()).unwrap();
        assert_eq!(postings(&segment, "queri"), [(0, 1, 1), (1, 2, 0)]);
        assert_eq!(postings(&segment, "parser"), [(0, 1, 0)]);
        assert_eq!(postings(&segment, "absent"), []);
        assert_eq!(segment.defining("parsequery").unwrap(), [0]);
        assert_eq!(segment.meta(1).n_tokens, 7);
    }

    #[test]
    fn documents_are_found_by_key() {
        let segment = LexicalSegment::from_bytes(Path::new("sample"), sample()).unwrap();
        for doc in 0..segment.n_docs() {
            assert_eq!(segment.find(segment.key(doc)), Some(doc));
        }
        assert_eq!(segment.find(ChunkKey([1; 16])), None);
    }

    #[test]
    fn equal_input_gives_equal_bytes() {
        assert_eq!(sample(), sample());
    }

    #[test]
    fn flipped_bits_are_errors() {
        let good = sample();
        for at in (0..good.len()).step_by(7) {
            let mut bad = good.clone();
            bad[at] ^= 1;
            if let Ok(segment) = LexicalSegment::from_bytes(Path::new("sample"), bad) {
                assert_eq!(postings(&segment, "queri").len(), 2, "byte {at}");
            }
        }
    }
}
