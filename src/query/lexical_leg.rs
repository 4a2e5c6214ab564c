//! Scores chunks and whole files by BM25, with the statistics of the view.

use crate::index::lexical::LexicalError;
use crate::index::lexical::bm25::{Bm25, Params, idf};
use crate::snapshot::{DocEntry, FileId, View};

use super::request::SearchError;
use super::statistics::WholeStatistics;

/// The field weights and saturation parameters of BM25.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct LexicalParams {
    pub(super) chunk: Params,
    pub(super) file: Params,
    pub(super) name_weight: f32,
}

/// The scores of one chunk or file for the terms of a query.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Lexical {
    /// The BM25 score.
    pub(super) bm25: Bm25,
    /// Sum of the idf of the terms that the chunk or file contains.
    pub(super) covered: f32,
    /// Sum of the idf of the terms in names that the chunk defines.
    pub(super) named: f32,
}

/// The scores of all chunks and files for one query.
#[derive(Debug)]
pub(super) struct LexicalLeg {
    docs: Scores,
    files: Scores,
    /// The idf of each term of the query.
    pub(super) idf: Vec<f32>,
    /// The number of documents with each term.
    n_docs: Vec<usize>,
    sizes: Sizes,
}

/// Scores by number. Only numbers with a score take memory that is written, because a query finds few of a million.
#[derive(Debug)]
struct Scores {
    /// For each number, the position of its score in `list`, from 1; 0 without a score.
    positions: Vec<u32>,
    list: Vec<(u32, Lexical)>,
}

impl Scores {
    fn new(n: u32) -> Self {
        Self {
            positions: vec![0; n as usize],
            list: Vec::new(),
        }
    }

    fn get(&self, number: u32) -> Lexical {
        let position = self.positions[number as usize] as usize;
        position
            .checked_sub(1)
            .map_or_else(Lexical::default, |at| self.list[at].1)
    }

    #[inline]
    fn of(&mut self, number: u32) -> &mut Lexical {
        let position = &mut self.positions[number as usize];
        if *position == 0 {
            self.list.push((number, Lexical::default()));
            *position = self.list.len() as u32;
        }
        &mut self.list[*position as usize - 1].1
    }
}

impl LexicalLeg {
    /// Scores every document and file that contains one of the weighted `terms`. Calls `go_on` before each term. The
    /// statistics are those of the view, or of `whole`, of which it is a part.
    pub(super) fn run(
        view: &View,
        whole: Option<&WholeStatistics>,
        terms: &[(&str, f32)],
        params: &LexicalParams,
        go_on: impl Fn() -> Result<(), SearchError>,
    ) -> Result<Self, SearchError> {
        let sizes = match whole {
            Some(whole) => Sizes::new(whole.n_docs(), whole.n_files(), whole.n_tokens()),
            None => Sizes::new(view.live().n_docs.into(), view.n_files().into(), view.live().n_tokens),
        };
        let mut leg = Self {
            docs: Scores::new(view.segments().n_docs()),
            files: Scores::new(view.n_files()),
            idf: Vec::new(),
            n_docs: Vec::new(),
            sizes,
        };
        let mut counts = FileCounts::new(view.n_files());
        for &(term, weight) in terms {
            go_on()?;
            let postings = postings_in_view(view, term)?;
            let known = whole.map_or((0, 0), |whole| whole.of(term));
            leg.add_docs(&postings, known.0, weight, params);
            leg.add_files(view, &postings, known.1, weight, params, &mut counts);
        }
        Ok(leg)
    }

    /// Returns the sum of the idf of the first `n_terms` terms, added in their order as in [`Lexical::covered`].
    pub(super) fn idf_of(&self, n_terms: usize) -> f32 {
        self.idf[..n_terms].iter().fold(0.0, |sum, idf| sum + idf)
    }

    /// Returns true if no document of the view has one of the first `n_terms` terms.
    pub(super) fn has_absent(&self, n_terms: usize) -> bool {
        self.n_docs[..n_terms].contains(&0)
    }

    /// Returns the scores of a document; zero if it contains no term.
    pub(super) fn doc(&self, doc: u32) -> Lexical {
        self.docs.get(doc)
    }

    /// Returns the scores of a file; zero if it contains no term. `named` is not used.
    pub(super) fn file(&self, file: FileId) -> Lexical {
        self.files.get(file.0)
    }

    /// Returns the documents that contain a term, grouped by the first such term and ascending within a group.
    pub(super) fn docs(&self) -> impl Iterator<Item = (u32, &Lexical)> {
        self.docs.list.iter().map(|(doc, scores)| (*doc, scores))
    }

    /// Returns the files that contain a term.
    pub(super) fn files(&self) -> impl Iterator<Item = (FileId, &Lexical)> {
        self.files.list.iter().map(|(file, scores)| (FileId(*file), scores))
    }

    /// `n_known` is the number of documents with the term in the whole of which the view is a part.
    fn add_docs(&mut self, postings: &[Posting], n_known: usize, weight: f32, params: &LexicalParams) {
        let idf = weight * idf(postings.len().max(n_known), self.sizes.n_docs);
        self.idf.push(idf);
        self.n_docs.push(postings.len());
        for posting in postings {
            let score = self.docs.of(posting.doc);
            let length = posting.entry.n_tokens as f32;
            score.bm25.0 += idf
                * params
                    .chunk
                    .saturate(params.frequency(posting), length, self.sizes.mean_doc);
            score.covered += idf;
            if posting.in_name > 0 {
                score.named += idf;
            }
        }
    }

    fn add_files(
        &mut self,
        view: &View,
        postings: &[Posting],
        n_known: usize,
        weight: f32,
        params: &LexicalParams,
        counts: &mut FileCounts,
    ) {
        for posting in postings {
            let frequency = params.frequency(posting);
            match posting.entry.only_file() {
                Some(file) => counts.add(file, frequency),
                None => {
                    let places = view.places(posting.doc).iter();
                    places.for_each(|place| counts.add(place.file, frequency));
                }
            }
        }
        let idf = weight * idf(counts.touched.len().max(n_known), self.sizes.n_files);
        for file in counts.touched.drain(..) {
            let frequency = std::mem::take(&mut counts.by_file[file.0 as usize]);
            let score = self.files.of(file.0);
            let length = view.n_tokens(file) as f32;
            score.bm25.0 += idf * params.file.saturate(frequency, length, self.sizes.mean_file);
            score.covered += idf;
        }
    }
}

/// The numbers of documents and files, and their mean lengths in words.
#[derive(Clone, Copy, Debug)]
struct Sizes {
    n_docs: usize,
    n_files: usize,
    mean_doc: f32,
    mean_file: f32,
}

impl Sizes {
    fn new(n_docs: u64, n_files: u64, n_tokens: u64) -> Self {
        Self {
            n_docs: n_docs as usize,
            n_files: n_files as usize,
            mean_doc: n_tokens as f32 / (n_docs as f32).max(1.0),
            mean_file: n_tokens as f32 / (n_files as f32).max(1.0),
        }
    }
}

impl LexicalParams {
    fn frequency(&self, posting: &Posting) -> f32 {
        posting.in_body as f32 + self.name_weight * posting.in_name as f32
    }
}

struct FileCounts {
    by_file: Vec<f32>,
    touched: Vec<FileId>,
}

impl FileCounts {
    fn new(n_files: u32) -> Self {
        Self {
            by_file: vec![0.0; n_files as usize],
            touched: Vec::new(),
        }
    }

    fn add(&mut self, file: FileId, frequency: f32) {
        let count = &mut self.by_file[file.0 as usize];
        if *count == 0.0 {
            self.touched.push(file);
        }
        *count += frequency;
    }
}

/// A document of a view that contains a term.
pub(super) struct Posting {
    /// The number of the document in the view.
    doc: u32,
    in_body: u32,
    in_name: u32,
    entry: DocEntry,
}

/// Returns the postings of a term in the documents of the view.
pub(super) fn postings_in_view(view: &View, term: &str) -> Result<Vec<Posting>, LexicalError> {
    let mut postings = Vec::new();
    for segment in view.segments().iter() {
        segment.lexical.postings(term, |posting| {
            let doc = segment.base_doc + posting.doc;
            if let Some(entry) = view.doc(doc) {
                postings.push(Posting {
                    doc,
                    in_body: posting.in_body,
                    in_name: posting.in_name,
                    entry,
                });
            }
        })?;
    }
    Ok(postings)
}
