//! Runs a search: ranks candidates (`ranking.rs`), reranks them, and makes hits of them.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::sync::atomic::{self, AtomicBool};

use roaring::RoaringBitmap;

use crate::embed::{Embedder, SparseEmbedder, StaticModel};
use crate::model::ChunkKey;
use crate::snapshot::View;

use super::analyze::Form;
use super::candidates::{Candidate, Run, Scope, is_qualified, spread, withheld};
use super::defining::Defining;
use super::exact::{ExactError, unindexed_lines};
use super::filter::FileFilter;
use super::hit::{Hit, MAX_PER_FILE};
use super::meaning::Meaning;
use super::messages::CommitMessages;
use super::places::typed_places;
use super::ranking::LEG_CANDIDATES;
use super::reading::{Reading, read};
use super::request::{Mode, Request, SearchError, SearchOutcome};
use super::rerank::Reranking;
use super::source::Sources;
use super::sparse_leg::SparseLeg;
use super::spelling::corrected;
use super::statistics::WholeStatistics;

/// The default interrupt flag, which is never set.
static NEVER: AtomicBool = AtomicBool::new(false);

/// Searches one view.
pub struct Searcher<'a> {
    pub(super) view: &'a View,
    pub(super) embedder: &'a dyn Embedder,
    pub(super) paths: &'a StaticModel,
    pub(super) meaning: Meaning,
    pub(super) sparse: Option<SparseLeg<'a>>,
    pub(super) messages: Option<Arc<CommitMessages>>,
    pub(super) statistics: Option<Arc<WholeStatistics>>,
    pub(super) live: RoaringBitmap,
    pub(super) reranking: Option<Reranking<'a>>,
    pub(super) sources: Option<Sources<'a>>,
    pub(super) interrupt: &'a AtomicBool,
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
            statistics: None,
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

    /// Uses the statistics of a whole of which the view is a part.
    pub fn with_statistics(self, statistics: Option<Arc<WholeStatistics>>) -> Self {
        Self { statistics, ..self }
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
    pub(super) fn read(&self, query: &str, scope: &Scope) -> Result<(Reading, HashMap<u32, Defining>), SearchError> {
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
        let read_as = if request.is_weighted() && typed_places(&request.query).is_empty() {
            corrected(&request.query, self.view, self.paths, || self.go_on())?
        } else {
            None
        };
        let mut run = self.run(request);
        let text = read_as.as_deref().unwrap_or(&request.query);
        let report = if request.is_weighted() {
            self.report(text)?
        } else {
            None
        };
        let mut ranked = match report {
            Some(report) => self.rank_report(request, text, &report, &mut run)?,
            None => self.rank(request, text, &mut run)?,
        };
        let names = std::mem::take(&mut ranked.reading.analysis.names);
        let n_wanted = request.skip.saturating_add(request.limit);
        let reranking = self.reranking(request, ranked.reading.analysis.is_name());
        let without = "results are not reranked";
        let reranking = reranking.filter(|_| request.asks(|judges| judges.reranker, without, &mut run.notes));
        let n_judged = reranking.map_or(0, |reranking| reranking.n_candidates);
        if !request.kinds.is_empty() {
            if ranked.candidates.len() >= LEG_CANDIDATES {
                run.notes.push(format!(
                    "kind was applied to the best {} hits only",
                    ranked.candidates.len()
                ));
            }
            self.retain_kinds(&mut ranked.candidates, &request.kinds, &names, &mut run.opened)?;
        }
        let files = ranked.candidates.iter().map(|candidate| candidate.place.file).collect();
        let n_kept = n_wanted.saturating_add(1).max(n_judged);
        let mut candidates = self.without_copies(std::mem::take(&mut ranked.candidates));
        let mut kept = if self.is_flat(request, &ranked.reading, &candidates) {
            if request.is_weighted() {
                spread(&mut candidates, self.view);
            }
            self.one_per_item(candidates, n_kept, &mut run.opened)?
        } else {
            let max_per_file = if request.is_weighted() { MAX_PER_FILE } else { 1 };
            self.by_file(candidates, n_kept, max_per_file, &mut run.opened)?
        };
        if let Some(reranking) = reranking {
            self.rerank(&reranking, request, text, &ranked.exact, &mut kept, &mut run)?;
        }
        if let Some(before) = request.previous_scorers {
            // The reranker is not used for pages beyond the candidates that it reranks.
            let is_judged = self
                .reranking
                .is_none_or(|reranking| request.skip < reranking.n_candidates);
            run.judges.reranker |= before.reranker && !is_judged;
            if run.judges != before {
                let why = if run.notes.is_empty() {
                    "a model or record used there is no longer available".to_owned()
                } else {
                    run.notes.join("; ")
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
                self.hit(candidate, &names, &run.scope, &ranked, &mut run.opened)
            })
            .collect::<Result<Vec<_>, SearchError>>()?;
        let mut unindexed = Vec::new();
        if let (true, true, Some(sources)) = (kept.is_empty(), request.is_weighted(), self.sources) {
            let query = request.query.trim();
            if !query.is_empty() && !query.contains('\n') {
                unindexed =
                    unindexed_lines(query, &sources, &request.filter, self.interrupt).map_err(ExactError::from)?;
            }
        }
        Ok(SearchOutcome {
            unindexed,
            hits,
            files,
            has_more: kept.len() > n_wanted,
            read_as,
            is_weak: ranked.is_weak,
            notes: run.notes,
            remarks: ranked.placed.remarks,
            exact: ranked.exact,
            terms: ranked.terms,
            judges: run.judges,
            uses_graph: self.meaning.uses_graph(run.scope.docs(&self.live), LEG_CANDIDATES),
        })
    }

    /// Adds candidates with the text of a better one in another repository to that one. In one repository, equal texts are
    /// one document.
    fn without_copies(&self, candidates: Vec<Candidate>) -> Vec<Candidate> {
        if self.view.linked().is_empty() {
            return candidates;
        }
        let segments = self.view.segments();
        let mut first: HashMap<ChunkKey, usize> = HashMap::new();
        let mut kept: Vec<Candidate> = Vec::with_capacity(candidates.len());
        for candidate in candidates {
            let Some((segment, row)) = segments.of_doc(candidate.doc) else {
                continue;
            };
            match first.entry(segment.lexical.key(row)) {
                Entry::Occupied(known) => kept[*known.get()].copies.push(candidate.doc),
                Entry::Vacant(new) => {
                    new.insert(kept.len());
                    kept.push(candidate);
                }
            }
        }
        kept
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
        let mut run = self.run(request);
        let ranked = self.rank(request, &request.query, &mut run)?;
        let names = &ranked.reading.analysis.names;
        let hits = ranked
            .candidates
            .iter()
            .map(|candidate| self.hit(candidate, names, &run.scope, &ranked, &mut run.opened));
        hits.collect()
    }

    fn run(&self, request: &Request) -> Run {
        Run {
            scope: self.scope(&request.filter),
            ..Run::default()
        }
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
