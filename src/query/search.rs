//! Runs a search in four steps: find candidates by words and by vectors, merge them, compute features, and sort.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{self, AtomicBool};

use roaring::RoaringBitmap;

use crate::embed::{EmbedError, Embedder, Embedding, SparseEmbedder, StaticModel};
use crate::extract::DefinitionKind;
use crate::index::dense::{Cosine, DenseError};
use crate::index::lexical::LexicalError;
use crate::index::lexical::bm25::Params;
use crate::model::{ErrorKind, Explain, Explanation, Hint, chain, typed};
use crate::sidecar::FileError;
use crate::snapshot::{FileId, View};

use super::analyze::Form;
use super::candidates::{
    Candidate, Legs, Ranked, Scope, best, best_files, is_qualified, sort_best_first, spread, withheld,
};
use super::cursor::ScorersUsed;
use super::defining::Defining;
use super::elsewhere::{Away, DenseRemoteIndex, SparseRemoteIndex};
use super::exact::{ExactError, ExactText, unindexed_lines};
use super::features::{Cosines, FeatureExtractor, of_rank};
use super::filter::FileFilter;
use super::grep::GrepLine;
use super::hit::{Hit, MAX_PER_FILE, Opened};
use super::lexical_leg::{LexicalLeg, LexicalParams};
use super::meaning::{Meaning, Query};
use super::messages::{CommitMessages, MessageScores, MessagesError};
use super::placed::Placed;
use super::places::typed_places;
use super::rank::{Features, Weights};
use super::read::split_position;
use super::reading::{Reading, read};
use super::rerank::{Rerank, Reranking};
use super::source::Sources;
use super::sparse_leg::{Asked, SparseLeg};
use super::spelling::corrected;
use super::verbatim::Pasted;

/// The ways to find candidates. Each way is called a leg.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Combines words and vectors, with weights that depend on the form of the query.
    #[default]
    Auto,
    /// Combines words and vectors.
    Hybrid,
    /// Uses only vectors and orders results by cosine.
    Semantic,
    /// Uses only words and orders results by the BM25 of chunks.
    Keyword,
    /// Finds similar code. The query is a piece of code, or its location as `path:line`.
    Similar,
}

/// A search request.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// The query as typed.
    pub query: String,
    /// The way to find candidates.
    pub mode: Mode,
    /// The files to search.
    pub filter: FileFilter,
    /// Maximum number of hits after `skip`.
    pub limit: usize,
    /// Number of hits to skip.
    pub skip: usize,
    /// The kinds of definitions to find; empty for everything.
    pub kinds: Vec<DefinitionKind>,
    /// True to return each definition as a hit of its own, even if the same file has a better one.
    pub is_flat: bool,
    /// Determines whether a configured reranker is used.
    pub rerank: Rerank,
    /// True to return the best hits even if they match little, for collections that are small or were selected.
    pub is_any: bool,
    /// The models that ordered the previous page. Other models are not used, and a missing one is an error.
    pub previous_scorers: Option<ScorersUsed>,
}

impl Request {
    /// Returns true if a model may be used for this request. If the previous page was made without it, adds a note that
    /// describes the consequence.
    fn asks(&self, whom: impl Fn(ScorersUsed) -> bool, without: &str, notes: &mut Vec<String>) -> bool {
        let is_asked = self.previous_scorers.is_none_or(whom);
        if !is_asked {
            notes.push(format!("as on the previous page, {without}"));
        }
        is_asked
    }
}

/// The result of a search.
#[derive(Clone, Debug, Default)]
pub struct SearchOutcome {
    /// The hits, best first.
    pub hits: Vec<Hit>,
    /// If there are no hits, lines with the text of the query in files that are not indexed.
    pub unindexed: Vec<(FileId, GrepLine)>,
    /// True if there are more hits.
    pub has_more: bool,
    /// The query that was searched, if a word was corrected.
    pub read_as: Option<String>,
    /// The terms of the query with their weights.
    pub terms: Vec<(String, f32)>,
    /// True if there are candidates, but even the best ones match too little to be returned.
    pub is_weak: bool,
    /// Notes on problems that degraded the order.
    pub notes: Vec<String>,
    /// Remarks about the query, for example on a path that does not exist.
    pub remarks: Vec<String>,
    /// The literal texts of the query.
    pub exact: ExactText,
    /// The models that determined the order.
    pub judges: ScorersUsed,
    /// True if a graph proposed the nearest vectors, false if all were compared, and `None` if a server found them.
    pub uses_graph: Option<bool>,
}

/// An error from a search.
#[derive(Debug, thiserror::Error)]
pub enum SearchError {
    /// The lexical index cannot be read.
    #[error(transparent)]
    Lexical(#[from] LexicalError),
    /// The dense index cannot be read.
    #[error(transparent)]
    Dense(#[from] DenseError),
    /// The query cannot be embedded.
    #[error(transparent)]
    Embed(EmbedError),
    /// An artifact cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// The literal texts of the query cannot be found.
    #[error(transparent)]
    Exact(#[from] ExactError),
    /// The messages of commits cannot be read.
    #[error(transparent)]
    Messages(#[from] MessagesError),
    /// A search for similar code names a location without indexed code.
    #[error("no indexed code at {place}")]
    NoSuchPlace {
        /// The place as typed.
        place: String,
    },
    /// The order of the previous page cannot be reproduced.
    #[error("cannot continue in the order of the previous page: {why}")]
    OtherOrder {
        /// The reason.
        why: String,
    },
    /// The interrupt flag was set.
    #[error("interrupted")]
    Interrupted,
}

impl Explain for SearchError {
    fn explain(&self) -> Explanation {
        match self {
            Self::Embed(error) => error.explain(),
            Self::Exact(error) => error.explain(),
            Self::OtherOrder { .. } => Explanation::hinting(Hint::each(
                "try again later, or start over without --cursor",
                "try again later, or start over without cursor",
            )),
            Self::Interrupted => Explanation::of_kind(ErrorKind::Interrupted),
            _ => Explanation::default(),
        }
    }
}

impl From<EmbedError> for SearchError {
    fn from(error: EmbedError) -> Self {
        match error {
            EmbedError::Interrupted => Self::Interrupted,
            error => Self::Embed(error),
        }
    }
}

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

/// The default interrupt flag, which is never set.
static NEVER: AtomicBool = AtomicBool::new(false);

/// Searches one view.
pub struct Searcher<'a> {
    pub(super) view: &'a View,
    embedder: &'a dyn Embedder,
    pub(super) paths: &'a StaticModel,
    meaning: Meaning<'a>,
    sparse: Option<SparseLeg<'a>>,
    messages: Option<Arc<CommitMessages>>,
    live: RoaringBitmap,
    pub(super) reranking: Option<Reranking<'a>>,
    pub(super) sources: Option<Sources<'a>>,
    interrupt: &'a AtomicBool,
}

impl<'a> Searcher<'a> {
    /// Creates a searcher. `paths` embeds the words of paths, and the documents for which `embedder` has no vector if
    /// it is another model.
    pub fn new(view: &'a View, embedder: &'a dyn Embedder, paths: &'a StaticModel) -> Result<Self, SearchError> {
        let live = view.live().to_bitmap();
        let uses_added = embedder.profile().id() != paths.profile().id();
        Ok(Self {
            view,
            embedder,
            paths,
            meaning: Meaning::open(view.segments(), uses_added, &live, || withheld(view))?,
            sparse: None,
            messages: None,
            live,
            reranking: None,
            sources: None,
            interrupt: &NEVER,
        })
    }

    /// Reads files, to find literal text.
    pub fn with_sources(self, sources: Sources<'a>) -> Self {
        Self {
            sources: Some(sources),
            ..self
        }
    }

    /// Sets a flag that aborts searches with [`SearchError::Interrupted`].
    pub fn until(self, interrupt: &'a AtomicBool) -> Self {
        Self { interrupt, ..self }
    }

    /// Returns an error once the interrupt flag is set.
    pub(super) fn go_on(&self) -> Result<(), SearchError> {
        if self.interrupt.load(atomic::Ordering::Relaxed) {
            Err(SearchError::Interrupted)
        } else {
            Ok(())
        }
    }

    /// Adds sparse vectors as a third leg to the modes that use words and vectors. `weight` is relative to the default
    /// weight.
    pub fn with_sparse(self, embedder: &'a dyn SparseEmbedder, weight: f32) -> Self {
        let leg = SparseLeg::open(self.view.segments(), embedder, weight, &self.live, || {
            withheld(self.view)
        });
        Self {
            sparse: Some(leg),
            ..self
        }
    }

    /// Uses the messages of recorded commits to rank files.
    pub fn with_messages(self, messages: Option<Arc<CommitMessages>>) -> Self {
        Self { messages, ..self }
    }

    /// Searches a remote index before the active model's local vectors.
    pub fn with_remote_index(mut self, elsewhere: DenseRemoteIndex<'a>) -> Self {
        self.meaning.elsewhere = Some(elsewhere);
        self
    }

    /// Uses remote vectors instead of local ones for the active model, unless it is the built-in one.
    pub fn with_remote_vectors(self, away: Away<'a>) -> Result<Self, SearchError> {
        let mut stored = RoaringBitmap::new();
        for segment in self.view.segments().iter().filter(|segment| !segment.is_in_memory) {
            stored.insert_range(segment.base_doc..segment.base_doc + segment.lexical.n_docs());
        }
        let stored = (stored & &self.live) - withheld(self.view);
        let meaning = self.meaning.with_remote_vectors(away, &self.live, &stored)?;
        Ok(Self { meaning, ..self })
    }

    /// Searches a remote index before the local sparse vectors, if they are in use.
    pub fn with_sparse_remote_index(mut self, elsewhere: SparseRemoteIndex<'a>) -> Self {
        if let Some(leg) = &mut self.sparse {
            leg.elsewhere = Some(elsewhere);
        }
        self
    }

    /// The view that is searched.
    pub fn view(&self) -> &View {
        self.view
    }

    /// Returns true if a query is treated as a name and ranked with the weights for names.
    pub fn is_name_query(&self, query: &str) -> Result<bool, SearchError> {
        Ok(self.read(query, &Scope::default())?.0.analysis.is_name())
    }

    /// Reads a query. A few words are a name only if a definition has it. Also returns the documents with definitions
    /// of its names.
    fn read(&self, query: &str, scope: &Scope) -> Result<(Reading, HashMap<u32, Defining>), SearchError> {
        let mut reading = read(query);
        if let Some(whole) = reading.analysis.as_whole() {
            let defining = self.defining(&whole, scope)?;
            if !defining.is_empty() {
                reading.analysis = whole;
                return Ok((reading, defining));
            }
        }
        let mut defining = self.defining(&reading.analysis, scope)?;
        if reading.analysis.form == Form::Words && defining.is_empty() {
            reading.analysis = reading.analysis.as_description(&reading.text);
        } else if !reading.is_trace && reading.analysis.form == Form::Prose {
            // A definition that a sentence names with its container is meant, not others of that name.
            if is_qualified(&defining) {
                defining.retain(|_, defining| defining.in_container > 0.0);
            }
        }
        Ok((reading, defining))
    }

    /// Returns the best hits for a request.
    pub fn search(&self, request: &Request) -> Result<SearchOutcome, SearchError> {
        let read_as = match request.mode {
            Mode::Auto | Mode::Hybrid if typed_places(&request.query).is_empty() => {
                corrected(&request.query, self.view, self.paths, || self.go_on())?
            }
            _ => None,
        };
        let scope = self.scope(&request.filter);
        let mut notes = Vec::new();
        let text = read_as.as_deref().unwrap_or(&request.query);
        let mut judges = ScorersUsed::default();
        let mut opened = Opened::default();
        let report = match request.mode {
            Mode::Auto | Mode::Hybrid => self.report(text)?,
            _ => None,
        };
        let mut ranked = match report {
            Some(report) => self.rank_report(request, text, &report, &scope, &mut opened, &mut judges, &mut notes)?,
            None => self.rank(request, text, &scope, &mut opened, &mut judges, &mut notes)?,
        };
        let names = std::mem::take(&mut ranked.reading.analysis.names);
        let n_wanted = request.skip.saturating_add(request.limit);
        let reranking = self.reranking(request, ranked.reading.analysis.is_name());
        let without = "results are not reranked";
        let reranking = reranking.filter(|_| request.asks(|judges| judges.reranker, without, &mut notes));
        let n_judged = reranking.map_or(0, |reranking| reranking.n_candidates);
        if !request.kinds.is_empty() {
            if ranked.candidates.len() >= LEG_CANDIDATES {
                notes.push(format!(
                    "kind was applied to the best {} hits only",
                    ranked.candidates.len()
                ));
            }
            self.retain_kinds(&mut ranked.candidates, &request.kinds, &names, &mut opened)?;
        }
        let n_kept = n_wanted.saturating_add(1).max(n_judged);
        let mut candidates = std::mem::take(&mut ranked.candidates);
        let mut kept = if self.is_flat(request, &ranked.reading, &candidates) {
            if matches!(request.mode, Mode::Auto | Mode::Hybrid) {
                spread(&mut candidates);
            }
            self.one_per_item(candidates, n_kept, &mut opened)?
        } else {
            let is_weighted = matches!(request.mode, Mode::Auto | Mode::Hybrid);
            let max_per_file = if is_weighted { MAX_PER_FILE } else { 1 };
            self.by_file(candidates, n_kept, max_per_file, &mut opened)?
        };
        if let Some(reranking) = reranking {
            judges.reranker = self.rerank(
                &reranking,
                request,
                text,
                &ranked.exact,
                &mut kept,
                &mut opened,
                &mut notes,
            )?;
        }
        if let Some(before) = request.previous_scorers {
            // The reranker is not used for pages beyond the candidates that it reranks.
            let is_judged = self
                .reranking
                .is_none_or(|reranking| request.skip < reranking.n_candidates);
            judges.reranker |= before.reranker && !is_judged;
            if judges != before {
                let why = if notes.is_empty() {
                    "a model or record used there is no longer available".to_owned()
                } else {
                    notes.join("; ")
                };
                return Err(SearchError::OtherOrder { why });
            }
        }
        let hits = kept
            .iter()
            .take(n_wanted)
            .skip(request.skip)
            .map(|candidate| {
                self.go_on()?;
                self.hit(candidate, &names, &scope, &ranked, &mut opened)
            })
            .collect::<Result<Vec<_>, SearchError>>()?;
        let mut unindexed = Vec::new();
        if let (true, Mode::Auto | Mode::Hybrid, Some(sources)) = (kept.is_empty(), request.mode, self.sources) {
            let query = request.query.trim();
            if !query.is_empty() && !query.contains('\n') {
                unindexed =
                    unindexed_lines(query, &sources, &request.filter, self.interrupt).map_err(ExactError::from)?;
            }
        }
        Ok(SearchOutcome {
            unindexed,
            hits,
            has_more: kept.len() > n_wanted,
            read_as,
            is_weak: ranked.is_weak,
            notes,
            remarks: ranked.placed.remarks,
            exact: ranked.exact,
            terms: ranked.terms,
            judges,
            uses_graph: self.meaning.uses_graph(scope.docs(&self.live), LEG_CANDIDATES),
        })
    }

    /// Returns true if a file can have several hits: on request, for similar code, for a stack trace, and if the query
    /// is a name. A mode that finds definitions must have found one with the name.
    fn is_flat(&self, request: &Request, reading: &Reading, ranked: &[Candidate]) -> bool {
        let defines = |candidate: &Candidate| candidate.features.defines > 0.0;
        request.is_flat
            || match request.mode {
                Mode::Similar => true,
                Mode::Keyword | Mode::Semantic => reading.analysis.is_name(),
                Mode::Auto | Mode::Hybrid => {
                    reading.is_trace || reading.analysis.is_name() && ranked.iter().any(defines)
                }
            }
    }

    /// Returns every candidate with its features, in ranked order. Used as data for fitting weights.
    pub fn candidates(&self, request: &Request) -> Result<Vec<Hit>, SearchError> {
        let scope = self.scope(&request.filter);
        let mut opened = Opened::default();
        let (mut judges, mut notes) = (ScorersUsed::default(), Vec::new());
        let ranked = self.rank(request, &request.query, &scope, &mut opened, &mut judges, &mut notes)?;
        let names = &ranked.reading.analysis.names;
        let hits = ranked
            .candidates
            .iter()
            .map(|candidate| self.hit(candidate, names, &scope, &ranked, &mut opened));
        hits.collect()
    }

    /// Returns the candidates in final order, before reranking.
    pub(super) fn rank(
        &self,
        request: &Request,
        text: &str,
        scope: &Scope,
        opened: &mut Opened,
        judges: &mut ScorersUsed,
        notes: &mut Vec<String>,
    ) -> Result<Ranked, SearchError> {
        if request.mode == Mode::Similar {
            let candidates = self.similar(request, text, scope, judges, notes)?;
            return Ok(Ranked::of(candidates, read(text)));
        }
        let (reading, defining) = self.read(text, scope)?;
        let placed = match request.mode {
            Mode::Semantic | Mode::Keyword => Placed::default(),
            _ => self.placed(&reading, &request.query, !defining.is_empty(), scope, opened)?,
        };
        // A name that is defined or a place that exists is no literal text.
        let is_known = reading.analysis.form == Form::Name && !defining.is_empty() || !placed.by_doc.is_empty();
        let mut exact = match self.sources {
            Some(sources) => ExactText::find(
                &request.query,
                &reading,
                is_known,
                &sources,
                &request.filter,
                self.interrupt,
            )?,
            None => ExactText::default(),
        };
        if exact.is_all_absent() && request.mode != Mode::Semantic {
            return Ok(Ranked {
                exact,
                placed,
                ..Ranked::of(Vec::new(), reading)
            });
        }
        let text = reading.text.as_str();
        let analysis = &reading.analysis;
        let terms: Vec<(&str, f32)> = analysis.terms.iter().map(|term| (term.as_str(), 1.0)).collect();
        let (lexical, by_own) = rayon::join(
            || LexicalLeg::run(self.view, &terms, &LEXICAL, || self.go_on()),
            || self.query_by_own(request.mode, text, scope),
        );
        let (lexical, by_own) = (lexical?, by_own?);
        let mut by_words = self.ranked_docs(&lexical, &ExactText::default(), scope);
        let mut pasted = Pasted::default();
        if analysis.form == Form::Prose && matches!(request.mode, Mode::Auto | Mode::Hybrid) {
            // A text that repeats a short question does not answer it, and the words of a qualified name are side by side
            // wherever it is used.
            let only_long = reading.is_question || is_qualified(&defining);
            pasted = self.verbatim(text, only_long, (analysis, &lexical, &by_words), scope, opened)?;
        }
        if pasted.has_values {
            exact = ExactText::default();
        } else if exact.docs().next().is_some() {
            by_words = self.ranked_docs(&lexical, &exact, scope);
        }
        let terms: Vec<(String, f32)> = analysis
            .terms
            .iter()
            .cloned()
            .zip(lexical.idf.iter().copied())
            .collect();
        if request.mode == Mode::Keyword {
            let scored = by_words.iter().map(|&doc| (doc, lexical.doc(doc).bm25.0));
            let scored: Vec<_> = scored.collect();
            let all = lexical.idf_of(analysis.n_words);
            let features = |rank, doc, share| Features {
                bm25: share,
                rank_lexical: of_rank(rank),
                covered: lexical.doc(doc).covered / all,
                exact_text: exact.share(doc),
                ..Features::default()
            };
            let candidates = self.plain(&scored, features, scope);
            return Ok(Ranked {
                all_words: 1.0,
                exact,
                terms,
                ..Ranked::of(candidates, reading)
            });
        }
        let leg = self.sparse.as_ref().filter(|_| request.mode != Mode::Semantic);
        let leg = leg.filter(|_| request.asks(|judges| judges.sparse, "sparse vectors are not used", notes));
        let mut ask_for_meaning = || self.asked(request, |embedder| embedder.embed_query(text, self.interrupt), notes);
        let (added, asked) = match leg {
            Some(leg) => leg.embed_query_beside(text, self.interrupt, ask_for_meaning),
            None => (ask_for_meaning(), Asked::NotYet),
        };
        // An interrupted request must not be reported as an unavailable server.
        self.go_on()?;
        judges.added = added.is_some();
        let query = match by_own {
            Some(query) => query,
            None => {
                let own = self.paths.embed_query(text, self.interrupt)?.vector;
                let docs = scope.docs(&self.live);
                self.meaning.query(own, added, docs, LEG_CANDIDATES, notes)?
            }
        };
        self.go_on()?;
        let by_meaning = self.docs_by_meaning(&query, scope)?;
        if request.mode == Mode::Semantic {
            let candidates = self.order_by_cosine(&by_meaning, scope);
            return Ok(Ranked {
                exact,
                terms,
                ..Ranked::of(candidates, reading)
            });
        }
        let sparse = leg.and_then(|leg| {
            let found = leg.find(asked, scope.docs(&self.live), LEG_CANDIDATES, notes)?;
            Some((leg, found))
        });
        judges.sparse = sparse.is_some();
        let messages = self.messages.as_deref();
        let messages =
            messages.filter(|_| request.asks(|judges| judges.messages, "commit messages are not used", notes));
        judges.messages = messages.is_some();
        let is_beside = pasted.has_values && reading.places.iter().all(|place| place.line.is_none());
        let legs = Legs {
            analysis,
            lexical: &lexical,
            query: &query,
            by_words: &by_words,
            by_meaning: &by_meaning,
            sparse: sparse.as_ref().map(|(leg, found)| (*leg, found)),
            exact: &exact,
            messages,
            placed: &placed,
            verbatim: &pasted.by_doc,
            place_share: if is_beside { VALUE_SHARE } else { 1.0 },
            wants_tests: reading.wants_tests,
        };
        let docs = self.gather(&legs, &defining, scope);
        let messages = self.scores_of_messages(&legs, &docs, scope)?;
        // Other models have other cosines.
        let is_calibrated = !judges.added && !judges.sparse;
        let is_sure = !defining.is_empty() || exact.docs().next().is_some() || !placed.by_doc.is_empty();
        if is_calibrated && !request.is_any && !is_sure && self.is_weak(&legs, &messages, scope) {
            return Ok(Ranked {
                is_weak: !docs.is_empty(),
                terms,
                exact,
                placed,
                ..Ranked::of(Vec::new(), reading)
            });
        }
        let mut candidates = self.fused(&legs, docs, &defining, &messages, scope, notes)?;
        if reading.is_trace {
            // The order of the frames is that of the answer.
            for candidate in &mut candidates {
                candidate.score += FRAME * candidate.features.place;
            }
            sort_best_first(&mut candidates);
        }
        let all_words = lexical.idf_of(analysis.n_words) / lexical.idf.iter().sum::<f32>().max(f32::MIN_POSITIVE);
        Ok(Ranked {
            terms,
            all_words,
            exact,
            verbatim: pasted.by_doc,
            placed,
            ..Ranked::of(candidates, reading)
        })
    }

    /// Finds the nearest documents by the built-in model. Returns `None` if the mode does not need them or another model
    /// or index is in use.
    fn query_by_own(&self, mode: Mode, text: &str, scope: &Scope) -> Result<Option<Query>, SearchError> {
        if mode == Mode::Keyword || !self.meaning.is_own() {
            return Ok(None);
        }
        let own = self.paths.embed_query(text, self.interrupt)?.vector;
        let docs = scope.docs(&self.live);
        let query = self.meaning.query(own, None, docs, LEG_CANDIDATES, &mut Vec::new())?;
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
    fn similar(
        &self,
        request: &Request,
        query: &str,
        scope: &Scope,
        judges: &mut ScorersUsed,
        notes: &mut Vec<String>,
    ) -> Result<Vec<Candidate>, SearchError> {
        let named = self.doc_at(query)?;
        let (own, added) = match named.and_then(|doc| self.meaning.vectors(doc, notes)) {
            Some(vectors) => vectors,
            None => {
                let own = self.paths.embed_example(query, self.interrupt)?.vector;
                let ask = |embedder: &dyn Embedder| embedder.embed_example(query, self.interrupt);
                (own, self.asked(request, ask, notes))
            }
        };
        self.go_on()?;
        judges.added = added.is_some();
        let docs = scope.docs(&self.live);
        let query = self.meaning.query(own, added, docs, LEG_CANDIDATES, notes)?;
        self.go_on()?;
        let mut found = self.meaning.search(&query, scope.docs(&self.live), LEG_CANDIDATES)?;
        found.retain(|(doc, _)| Some(*doc) != named);
        Ok(self.order_by_cosine(&found, scope))
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
        let place = |doc: u32| self.view.places(doc).first();
        let best = best(without_text.chain(with_text), LEG_CANDIDATES, |a, b| {
            let by_score = b.0.total_cmp(&a.0).then(b.1.total_cmp(&a.1));
            by_score.then_with(|| place(a.2).cmp(&place(b.2)))
        });
        best.into_iter().map(|(_, _, doc)| doc).collect()
    }

    /// Returns the documents in scope by cosine, best first. Documents with equal cosines are ordered by place.
    fn docs_by_meaning(&self, query: &Query, scope: &Scope) -> Result<Vec<(u32, Cosine)>, DenseError> {
        let mut docs = self.meaning.search(query, scope.docs(&self.live), LEG_CANDIDATES)?;
        let place = |doc: u32| self.view.places(doc).first();
        docs.sort_by(|(a, x), (b, y)| y.0.total_cmp(&x.0).then_with(|| place(*a).cmp(&place(*b))));
        Ok(docs)
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
            })
        });
        candidates.collect()
    }

    fn fused(
        &self,
        legs: &Legs<'_>,
        docs: Vec<u32>,
        defining: &HashMap<u32, Defining>,
        messages: &MessageScores,
        scope: &Scope,
        notes: &mut Vec<String>,
    ) -> Result<Vec<Candidate>, SearchError> {
        let mut cosines = self.cosines(legs, &docs)?;
        let away = self.meaning.score_remote(legs.query, &docs, notes).into_iter();
        cosines.extend(away.map(|(doc, cosine)| (doc, cosine.0)));
        let mut features = FeatureExtractor::new(self, legs, defining, &cosines, messages);
        let weights = if legs.analysis.is_name() {
            Weights::NAME
        } else {
            Weights::PROSE
        };
        let weights = if legs.wants_tests { weights.for_tests() } else { weights };
        let mut best: Vec<Candidate> = Vec::with_capacity(docs.len());
        for doc in docs {
            self.go_on()?;
            let candidates = scope.places(self.view, doc).map(|place| {
                let features = features.of(doc, place);
                Candidate {
                    doc,
                    place,
                    score: weights.score(&features),
                    features,
                    reranked: None,
                    further: Vec::new(),
                }
            });
            // A document at several places counts at the best one; among equal places, at the first by path.
            let candidate = candidates.reduce(|a, b| if b.score > a.score { b } else { a });
            best.extend(candidate);
        }
        sort_best_first(&mut best);
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

    fn gather(&self, legs: &Legs<'_>, defining: &HashMap<u32, Defining>, scope: &Scope) -> Vec<u32> {
        let mut seen = HashSet::new();
        let mut docs = Vec::new();
        let mut add = |doc: u32| {
            if seen.insert(doc) {
                docs.push(doc);
            }
        };
        let mut named: Vec<u32> = defining.keys().copied().collect();
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

    fn scope(&self, filter: &FileFilter) -> Scope {
        if filter.is_open() {
            return Scope::default();
        }
        let mut files = RoaringBitmap::new();
        let mut docs = RoaringBitmap::new();
        for (file, _) in self.view.files() {
            if filter.passes(self.view, file) {
                files.insert(file.0);
                docs.extend(self.view.docs(file));
            }
        }
        Scope {
            limits: Some((files, docs)),
        }
    }
}
