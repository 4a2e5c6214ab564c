//! Ranks candidates: finds them by words, by vectors and in other ways, computes their features, and sorts them.

use std::collections::{BTreeSet, HashSet};

use crate::embed::{EmbedError, Embedder, Embedding};
use crate::index::dense::{Cosine, DenseError};
use crate::index::lexical::bm25::Params;
use crate::model::{chain, typed};
use crate::snapshot::FileId;

use super::analyze::Form;
use super::candidates::{Candidate, Legs, Ranked, Run, Scope, best, best_files, is_qualified, sort_best_first};
use super::exact::ExactText;
use super::features::{Cosines, FeatureExtractor, of_rank};
use super::lexical_leg::{LexicalLeg, LexicalParams};
use super::meaning::Query;
use super::messages::MessageScores;
use super::rank::{Features, Weights};
use super::read::split_position;
use super::reading::read;
use super::request::{Mode, Request, SearchError};
use super::search::Searcher;
use super::sparse_leg::{Asked, SparseLeg};
use super::verbatim::Pasted;

/// Number of candidates from each leg.
pub const LEG_CANDIDATES: usize = 200;
/// Weight of the places in a stack trace. It is large enough for the hundredth that each frame has less than the one
/// before.
const FRAME: f32 = 1_000.0;

/// The part that a path without a line counts in a message. It is a value there.
const VALUE_SHARE: f32 = 0.1;

const LEXICAL: LexicalParams = LexicalParams {
    chunk: Params { k1: 1.2, b: 0.6 },
    file: Params { k1: 1.2, b: 0.6 },
    name_weight: 3.0,
};

impl Searcher<'_> {
    /// Returns the candidates in final order, before reranking.
    pub(super) fn rank(&self, request: &Request, text: &str, run: &mut Run) -> Result<Ranked, SearchError> {
        if request.mode == Mode::Similar {
            let candidates = self.similar(request, text, run)?;
            return Ok(Ranked::of(candidates, read(text)));
        }
        let (reading, defining) = self.read(text, &run.scope)?;
        let mut ranked = Ranked::of(Vec::new(), reading);
        let reading = &ranked.reading;
        if request.is_weighted() {
            let is_defined = !defining.is_empty();
            ranked.placed = self.placed(reading, &request.query, is_defined, &run.scope, &mut run.opened)?;
        }
        // A name that is defined or a place that exists is no literal text.
        let is_known = reading.analysis.form == Form::Name && !defining.is_empty() || !ranked.placed.by_doc.is_empty();
        if let Some(sources) = &self.sources {
            let (query, filter) = (&request.query, &request.filter);
            ranked.exact = ExactText::find(query, reading, is_known, sources, filter, self.interrupt)?;
        }
        if ranked.exact.is_all_absent() && request.mode != Mode::Semantic {
            return Ok(ranked);
        }
        let text = reading.text.as_str();
        let analysis = &reading.analysis;
        let terms: Vec<(&str, f32)> = analysis.terms.iter().map(|term| (term.as_str(), 1.0)).collect();
        let (lexical, by_own) = rayon::join(
            || LexicalLeg::run(self.view, self.statistics.as_deref(), &terms, &LEXICAL, || self.go_on()),
            || self.query_by_own(request.mode, text, &run.scope),
        );
        let (lexical, by_own) = (lexical?, by_own?);
        let mut by_words = self.ranked_docs(&lexical, &ExactText::default(), &run.scope);
        let mut pasted = Pasted::default();
        if analysis.form == Form::Prose && request.is_weighted() {
            // A text that repeats a short question does not answer it, and the words of a qualified name are side by side
            // wherever it is used.
            let only_long = reading.is_question || is_qualified(&defining);
            let found = (analysis, &lexical, by_words.as_slice());
            pasted = self.verbatim(text, only_long, found, &run.scope, &mut run.opened)?;
        }
        if pasted.has_values {
            ranked.exact = ExactText::default();
        } else if ranked.exact.docs().next().is_some() {
            by_words = self.ranked_docs(&lexical, &ranked.exact, &run.scope);
        }
        ranked.terms = analysis
            .terms
            .iter()
            .cloned()
            .zip(lexical.idf.iter().copied())
            .collect();
        if request.mode == Mode::Keyword {
            ranked.candidates = self.order_by_words(&by_words, &lexical, &ranked, &run.scope);
            ranked.all_words = 1.0;
            return Ok(ranked);
        }
        let leg = self.sparse.as_ref().filter(|_| request.mode != Mode::Semantic);
        let leg = leg.filter(|_| request.asks(|judges| judges.sparse, "sparse vectors are not used", &mut run.notes));
        let (query, asked) = self.query(request, text, by_own, leg, run)?;
        let by_meaning = self.docs_by_meaning(&query, &run.scope)?;
        if request.mode == Mode::Semantic {
            ranked.candidates = self.order_by_cosine(&by_meaning, &run.scope);
            return Ok(ranked);
        }
        let sparse = leg.and_then(|leg| {
            let found = leg.find(asked, run.scope.docs(&self.live), LEG_CANDIDATES, &mut run.notes)?;
            Some((leg, found))
        });
        run.judges.sparse = sparse.is_some();
        let without = "commit messages are not used";
        let messages = self.messages.as_deref();
        let messages = messages.filter(|_| request.asks(|judges| judges.messages, without, &mut run.notes));
        run.judges.messages = messages.is_some();
        let is_beside = pasted.has_values && reading.places.iter().all(|place| place.line.is_none());
        let legs = Legs {
            analysis,
            lexical: &lexical,
            query: &query,
            by_words: &by_words,
            by_meaning: &by_meaning,
            sparse: sparse.as_ref().map(|(leg, found)| (*leg, found)),
            exact: &ranked.exact,
            messages,
            placed: &ranked.placed,
            verbatim: &pasted.by_doc,
            place_share: if is_beside { VALUE_SHARE } else { 1.0 },
            wants_tests: reading.wants_tests,
            defining: &defining,
        };
        let docs = self.gather(&legs, &run.scope);
        let messages = self.scores_of_messages(&legs, &docs, &run.scope)?;
        // Other models have other cosines.
        let is_calibrated = !run.judges.added && !run.judges.sparse;
        let is_sure = !defining.is_empty() || ranked.exact.docs().next().is_some() || !ranked.placed.by_doc.is_empty();
        if is_calibrated && !request.is_any && !is_sure && self.is_weak(&legs, &messages, &run.scope) {
            ranked.is_weak = !docs.is_empty();
            return Ok(ranked);
        }
        ranked.candidates = self.fused(&legs, docs, &messages, run)?;
        if reading.is_trace {
            // The order of the frames is that of the answer.
            for candidate in &mut ranked.candidates {
                candidate.score += FRAME * candidate.features.place;
            }
            sort_best_first(&mut ranked.candidates, self.view);
        }
        ranked.all_words = lexical.idf_of(analysis.n_words) / lexical.idf.iter().sum::<f32>().max(f32::MIN_POSITIVE);
        ranked.verbatim = pasted.by_doc;
        Ok(ranked)
    }

    /// Embeds the query and finds its nearest documents, unless `by_own` has them. Asks for the sparse vector at the
    /// same time.
    fn query(
        &self,
        request: &Request,
        text: &str,
        by_own: Option<Query>,
        leg: Option<&SparseLeg<'_>>,
        run: &mut Run,
    ) -> Result<(Query, Asked), SearchError> {
        let embed = |embedder: &dyn Embedder| embedder.embed_query(text, self.interrupt);
        let mut ask_for_meaning = || self.asked(request, embed, &mut run.notes);
        let (added, asked) = match leg {
            Some(leg) => leg.embed_query_beside(text, self.interrupt, ask_for_meaning),
            None => (ask_for_meaning(), Asked::NotYet),
        };
        // An interrupted request must not be reported as an unavailable server.
        self.go_on()?;
        run.judges.added = added.is_some();
        let query = match by_own {
            Some(query) => query,
            None => {
                let own = self.paths.embed_query(text, self.interrupt)?.vector;
                let docs = run.scope.docs(&self.live);
                self.meaning.query(own, added, docs, LEG_CANDIDATES)?
            }
        };
        self.go_on()?;
        Ok((query, asked))
    }

    /// Finds the nearest documents by the built-in model. Returns `None` if the mode does not need them or another model
    /// is in use.
    fn query_by_own(&self, mode: Mode, text: &str, scope: &Scope) -> Result<Option<Query>, SearchError> {
        if mode == Mode::Keyword || !self.meaning.is_own() {
            return Ok(None);
        }
        let own = self.paths.embed_query(text, self.interrupt)?.vector;
        let docs = scope.docs(&self.live);
        let query = self.meaning.query(own, None, docs, LEG_CANDIDATES)?;
        Ok(Some(query))
    }

    /// Returns the query's vector from the active model if it is not the built-in one. If the vector is not available,
    /// adds a note.
    fn asked(
        &self,
        request: &Request,
        ask: impl FnOnce(&dyn Embedder) -> Result<Embedding, EmbedError>,
        notes: &mut Vec<String>,
    ) -> Option<Vec<f32>> {
        let model = &self.embedder.profile().model;
        let n_without = self.meaning.n_without(&self.live)?;
        if n_without == self.live.len() && !self.live.is_empty() {
            notes.push(format!(
                "there are no vectors of {model} yet: using the built-in model instead; run codescout index"
            ));
            return None;
        }
        if !request.asks(|judges| judges.added, "using the built-in model instead", notes) {
            return None;
        }
        match ask(self.embedder) {
            Ok(embedding) if embedding.weight == 0.0 => {
                notes.push(format!(
                    "{model} returned no vector for this query: using the built-in model instead"
                ));
                None
            }
            Ok(embedding) => {
                if n_without > 0 {
                    notes.push(format!(
                        "{n_without} of {} chunks have no vectors of {model} yet: using the built-in model for them; \
                         run codescout index",
                        self.live.len()
                    ));
                }
                Some(embedding.vector)
            }
            Err(error) => {
                notes.push(format!("{}: using the built-in model instead", chain(&error)));
                None
            }
        }
    }

    /// Returns the documents most similar to a piece of code, best first. Excludes the document at the given location.
    fn similar(&self, request: &Request, query: &str, run: &mut Run) -> Result<Vec<Candidate>, SearchError> {
        let named = self.doc_at(query)?;
        let (own, added) = match named.and_then(|doc| self.meaning.vectors(doc)) {
            Some(vectors) => vectors,
            None => {
                let own = self.paths.embed_example(query, self.interrupt)?.vector;
                let ask = |embedder: &dyn Embedder| embedder.embed_example(query, self.interrupt);
                (own, self.asked(request, ask, &mut run.notes))
            }
        };
        self.go_on()?;
        run.judges.added = added.is_some();
        let docs = run.scope.docs(&self.live);
        let query = self.meaning.query(own, added, docs, LEG_CANDIDATES)?;
        self.go_on()?;
        let mut found = self
            .meaning
            .search(&query, run.scope.docs(&self.live), LEG_CANDIDATES)?;
        found.retain(|(doc, _)| Some(*doc) != named);
        Ok(self.order_by_cosine(&found, &run.scope))
    }

    /// Returns the document of the chunk at `path:line`, if the text has that form.
    fn doc_at(&self, text: &str) -> Result<Option<u32>, SearchError> {
        let place = typed(text.trim());
        let is_quoted = matches!(place, std::borrow::Cow::Owned(_));
        let Some((path, line, _)) = split_position(&place) else {
            return Ok(None);
        };
        if !is_quoted && path.contains(char::is_whitespace) {
            return Ok(None);
        }
        let nowhere = || SearchError::NoSuchPlace {
            place: text.trim().to_owned(),
        };
        let file = self.view.find_text(path).ok_or_else(nowhere)?;
        let extraction = self.view.extraction(file).ok_or_else(nowhere)??;
        let mut chunks = extraction.chunks.iter();
        let at = chunks
            .position(|chunk| (chunk.start_line..=chunk.end_line).contains(&line))
            .ok_or_else(nowhere)?;
        Ok(self.view.docs(file).nth(at))
    }

    /// Returns the documents in scope: documents that contain literal texts of the query first, then by BM25. Documents
    /// with equal scores are ordered by place, because document numbers depend on the order of indexing.
    fn ranked_docs(&self, lexical: &LexicalLeg, exact: &ExactText, scope: &Scope) -> Vec<u32> {
        let without_text = lexical
            .docs()
            .filter(|(doc, _)| scope.contains(*doc) && exact.share(*doc) == 0.0)
            .map(|(doc, scores)| (0.0, scores.bm25.0, doc));
        let with_text = exact.docs().map(|doc| (exact.share(doc), lexical.doc(doc).bm25.0, doc));
        let place = |doc: u32| self.view.places(doc).first().map(|place| self.view.order(*place));
        let best = best(without_text.chain(with_text), LEG_CANDIDATES, |a, b| {
            let by_score = b.0.total_cmp(&a.0).then(b.1.total_cmp(&a.1));
            by_score.then_with(|| place(a.2).cmp(&place(b.2)))
        });
        best.into_iter().map(|(_, _, doc)| doc).collect()
    }

    /// Returns the documents in scope by cosine, best first. Documents with equal cosines are ordered by place.
    fn docs_by_meaning(&self, query: &Query, scope: &Scope) -> Result<Vec<(u32, Cosine)>, DenseError> {
        let mut docs = self.meaning.search(query, scope.docs(&self.live), LEG_CANDIDATES)?;
        let place = |doc: u32| self.view.places(doc).first().map(|place| self.view.order(*place));
        docs.sort_by(|(a, x), (b, y)| y.0.total_cmp(&x.0).then_with(|| place(*a).cmp(&place(*b))));
        Ok(docs)
    }

    /// Ranks candidates by their words alone.
    fn order_by_words(&self, docs: &[u32], lexical: &LexicalLeg, ranked: &Ranked, scope: &Scope) -> Vec<Candidate> {
        let scored: Vec<_> = docs.iter().map(|&doc| (doc, lexical.doc(doc).bm25.0)).collect();
        let all = lexical.idf_of(ranked.reading.analysis.n_words);
        let features = |rank, doc, share| Features {
            bm25: share,
            rank_lexical: of_rank(rank),
            covered: lexical.doc(doc).covered / all,
            exact_text: ranked.exact.share(doc),
            ..Features::default()
        };
        self.plain(&scored, features, scope)
    }

    /// Ranks candidates by cosine alone.
    fn order_by_cosine(&self, found: &[(u32, Cosine)], scope: &Scope) -> Vec<Candidate> {
        let scored: Vec<_> = found.iter().map(|(doc, cosine)| (*doc, cosine.0)).collect();
        let features = |rank, _, share| Features {
            cosine: share,
            rank_dense: of_rank(rank),
            ..Features::default()
        };
        self.plain(&scored, features, scope)
    }

    /// Ranks candidates by one leg alone. `features` computes features from the rank, the document and the score
    /// relative to the best.
    fn plain(
        &self,
        scored: &[(u32, f32)],
        features: impl Fn(usize, u32, f32) -> Features,
        scope: &Scope,
    ) -> Vec<Candidate> {
        let best = scored.iter().map(|(_, score)| *score).fold(f32::MIN_POSITIVE, f32::max);
        let candidates = scored.iter().enumerate().filter_map(|(rank, &(doc, score))| {
            Some(Candidate {
                doc,
                place: scope.places(self.view, doc).next()?,
                score,
                features: features(rank, doc, score / best),
                reranked: None,
                further: Vec::new(),
                copies: Vec::new(),
            })
        });
        candidates.collect()
    }

    fn fused(
        &self,
        legs: &Legs<'_>,
        docs: Vec<u32>,
        messages: &MessageScores,
        run: &mut Run,
    ) -> Result<Vec<Candidate>, SearchError> {
        let cosines = self.cosines(legs, &docs)?;
        let mut features = FeatureExtractor::new(self, legs, &cosines, messages);
        let weights = if legs.analysis.is_name() {
            Weights::NAME
        } else {
            Weights::PROSE
        };
        let weights = if legs.wants_tests { weights.for_tests() } else { weights };
        let mut best: Vec<Candidate> = Vec::with_capacity(docs.len());
        for doc in docs {
            self.go_on()?;
            let candidates = run.scope.places(self.view, doc).map(|place| {
                let features = features.of(doc, place);
                Candidate {
                    doc,
                    place,
                    score: weights.score(&features),
                    features,
                    reranked: None,
                    further: Vec::new(),
                    copies: Vec::new(),
                }
            });
            // A document at several places counts at the best one; among equal places, at the first by path.
            let candidate = candidates.reduce(|a, b| if b.score > a.score { b } else { a });
            best.extend(candidate);
        }
        sort_best_first(&mut best, self.view);
        Ok(best)
    }

    /// Returns the scores of the candidates' files by commit messages. Empty if the query is a name.
    fn scores_of_messages(&self, legs: &Legs<'_>, docs: &[u32], scope: &Scope) -> Result<MessageScores, SearchError> {
        let Some(messages) = legs.messages.filter(|_| !legs.analysis.is_name()) else {
            return Ok(MessageScores::default());
        };
        let places = docs.iter().flat_map(|&doc| scope.places(self.view, doc));
        let files: BTreeSet<FileId> = places.map(|place| place.file).collect();
        let files: Vec<FileId> = files.into_iter().collect();
        Ok(messages.scores(self.view, &files, &legs.analysis.terms)?)
    }

    fn gather(&self, legs: &Legs<'_>, scope: &Scope) -> Vec<u32> {
        let mut seen = HashSet::new();
        let mut docs = Vec::new();
        let mut add = |doc: u32| {
            if seen.insert(doc) {
                docs.push(doc);
            }
        };
        let mut named: Vec<u32> = legs.defining.keys().copied().collect();
        named.sort_unstable();
        named.into_iter().for_each(&mut add);
        let mut placed: Vec<u32> = legs.placed.by_doc.keys().copied().collect();
        placed.sort_unstable();
        placed.into_iter().for_each(&mut add);
        legs.by_words.iter().take(LEG_CANDIDATES).copied().for_each(&mut add);
        legs.by_meaning.iter().map(|(doc, _)| *doc).for_each(&mut add);
        let by_sparse = legs.sparse.iter().flat_map(|(_, found)| &found.docs);
        by_sparse.map(|(doc, _)| *doc).for_each(&mut add);
        for file in best_files(legs.lexical, |file| scope.has_file(file)) {
            let score = |doc: &u32| legs.lexical.doc(*doc).bm25.0;
            let best = self
                .view
                .docs(file)
                .max_by(|a, b| score(a).total_cmp(&score(b)).then(b.cmp(a)));
            best.into_iter().for_each(&mut add);
        }
        docs
    }

    /// Returns the cosines of all chunks of all files that contain a candidate.
    fn cosines(&self, legs: &Legs<'_>, docs: &[u32]) -> Result<Cosines, SearchError> {
        let mut files: Vec<FileId> = docs
            .iter()
            .flat_map(|&doc| self.view.places(doc))
            .map(|place| place.file)
            .collect();
        files.sort_unstable();
        files.dedup();
        let mut all: Vec<u32> = files.iter().flat_map(|&file| self.view.docs(file)).collect();
        all.sort_unstable();
        all.dedup();
        let scores = self.meaning.score(legs.query, &all)?;
        Ok(all
            .into_iter()
            .zip(scores)
            .map(|(doc, cosine)| (doc, cosine.0))
            .collect())
    }
}
