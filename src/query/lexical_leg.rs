//! Scores chunks and whole files by BM25, with the statistics of the view.

use crate::index::lexical::bm25::{Bm25, Params, idf};
use crate::index::lexical::{LexicalError, Posting};
use crate::snapshot::{FileId, View};

use super::search::SearchError;

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
    /// Scores by document number; zero for documents outside the view.
    pub(super) docs: Vec<Lexical>,
    /// Scores by file; `named` is not used.
    pub(super) files: Vec<Lexical>,
    /// Documents that contain a term, grouped by the first such term and ascending within a group.
    pub(super) touched_docs: Vec<u32>,
    pub(super) touched_files: Vec<FileId>,
    /// The idf of each term of the query.
    pub(super) idf: Vec<f32>,
}

impl LexicalLeg {
    /// Scores every document and file that contains one of the weighted `terms`. Calls `go_on` before each term.
    pub(super) fn run(
        view: &View,
        terms: &[(&str, f32)],
        params: &LexicalParams,
        go_on: impl Fn() -> Result<(), SearchError>,
    ) -> Result<Self, SearchError> {
        let mut leg = Self {
            docs: vec![Lexical::default(); view.segments().n_docs() as usize],
            files: vec![Lexical::default(); view.n_files() as usize],
            touched_docs: Vec::new(),
            touched_files: Vec::new(),
            idf: Vec::new(),
        };
        let mut file_counts = FileCounts::new(view.n_files());
        for &(term, weight) in terms {
            go_on()?;
            let postings = postings_in_view(view, term)?;
            leg.add_docs(view, &postings, weight, params);
            leg.add_files(view, &postings, weight, params, &mut file_counts);
        }
        Ok(leg)
    }

    fn add_docs(&mut self, view: &View, postings: &[Posting], weight: f32, params: &LexicalParams) {
        let live = view.live();
        let idf = weight * idf(postings.len(), live.n_docs as usize);
        let mean_length = live.n_tokens as f32 / (live.n_docs as f32).max(1.0);
        self.idf.push(idf);
        for posting in postings {
            let length = view.segments().doc_meta(posting.doc).map_or(0, |meta| meta.n_tokens) as f32;
            let score = &mut self.docs[posting.doc as usize];
            if score.covered == 0.0 {
                self.touched_docs.push(posting.doc);
            }
            score.bm25.0 += idf * params.chunk.saturate(params.frequency(posting), length, mean_length);
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
        weight: f32,
        params: &LexicalParams,
        counts: &mut FileCounts,
    ) {
        for posting in postings {
            for place in view.places(posting.doc) {
                counts.add(place.file, params.frequency(posting));
            }
        }
        let n_files = counts.touched.len();
        let idf = weight * idf(n_files, view.n_files() as usize);
        let mean_length = view.live().n_tokens as f32 / (view.n_files() as f32).max(1.0);
        for file in counts.touched.drain(..) {
            let frequency = std::mem::take(&mut counts.by_file[file.0 as usize]);
            let score = &mut self.files[file.0 as usize];
            if score.covered == 0.0 {
                self.touched_files.push(file);
            }
            let length = view.n_tokens(file) as f32;
            score.bm25.0 += idf * params.file.saturate(frequency, length, mean_length);
            score.covered += idf;
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

/// Returns the postings of a term in the documents of the view, under the view's document numbers.
pub(super) fn postings_in_view(view: &View, term: &str) -> Result<Vec<Posting>, LexicalError> {
    let mut postings = Vec::new();
    for segment in view.segments().iter() {
        segment.lexical.postings(term, |posting| {
            let doc = segment.base_doc + posting.doc;
            if view.live().contains(doc) {
                postings.push(Posting { doc, ..posting });
            }
        })?;
    }
    Ok(postings)
}
