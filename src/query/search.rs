//! One question, answered: legs, candidates, features, order.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::AtomicBool;

use roaring::RoaringBitmap;

use crate::artifact::ReadError;
use crate::embed::{EmbedError, Embedder, StaticModel, TokenDots};
use crate::extract::{Chunk, ChunkKind, Definition, DefinitionKind, Extraction};
use crate::index::dense::{Cosine, DenseError, DenseIndex, FlatIndex};
use crate::index::lexical::bm25::Params;
use crate::index::lexical::{LexicalError, for_each_term, normal_name};
use crate::model::{ByteRange, Lang};
use crate::snapshot::{FileId, Place, View};

use super::analyze::{Analysis, NameQuery, analyze};
use super::filter::{FileFilter, is_test_path};
use super::lexical_leg::{LexicalLeg, LexicalParams};
use super::rank::{Features, Weights};
use super::read::split_position;
use super::spelling::corrected;

/// Which legs find candidates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// What the query looks like decides about weights.
    #[default]
    Auto,
    /// Words and meaning.
    Hybrid,
    /// Meaning alone: the dense leg's order.
    Semantic,
    /// Words alone: the order of BM25 over chunks.
    Keyword,
    /// What is like a piece of code: the query is the code, or where it stands as `path:line`.
    Similar,
}

/// A question.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// As typed.
    pub query: String,
    /// Which legs.
    pub mode: Mode,
    /// Which files.
    pub filter: FileFilter,
    /// How many hits, after `skip`.
    pub limit: usize,
    /// How many hits to leave out first.
    pub skip: usize,
}

/// An answer.
#[derive(Clone, Debug, Default)]
pub struct SearchOutcome {
    /// Best first.
    pub hits: Vec<Hit>,
    /// Whether there are more.
    pub has_more: bool,
    /// The query as it was read, where a word of it was taken for a typing error.
    pub read_as: Option<String>,
}

/// One chunk that answers.
#[derive(Clone, Debug)]
pub struct Hit {
    /// The document.
    pub doc: u32,
    /// Where it stands: the place that ranks best, then the others.
    pub places: Vec<HitPlace>,
    /// The order's score; comparable within one answer only.
    pub score: f32,
    /// What it holds.
    pub kind: ChunkKind,
    /// Of its file.
    pub lang: Lang,
    /// The definition that it is about, with its containers before it: the one that was asked for by name, else its own.
    pub symbol: Option<Symbol>,
    /// Where the definition that was asked for by name stands, when the chunk holds others too.
    pub focus: Option<ByteRange>,
    /// Why it stands where it stands.
    pub features: Features,
}

impl Hit {
    /// The lines and bytes of its first place in `text`, the file's bytes: of the definition that was asked for, else of the item.
    pub fn lines(&self, text: &[u8]) -> Option<(u32, u32, ByteRange)> {
        let place = self.places.first()?;
        let Some(focus) = self.focus else {
            return Some((place.start_line, place.end_line, place.range));
        };
        let line_of = |at: u32| {
            let before = text.get(place.range.start as usize..at as usize).unwrap_or_default();
            place.range_start_line + memchr::memchr_iter(b'\n', before).count() as u32
        };
        let last_byte = focus.end.saturating_sub(1).max(focus.start);
        Some((line_of(focus.start), line_of(last_byte), focus))
    }
}

/// A definition by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symbol {
    /// The name with its containers: `Parser::parse`, joined as `.`.
    pub qualified_name: String,
    /// What it is.
    pub kind: DefinitionKind,
}

/// Where a hit stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HitPlace {
    /// The file.
    pub file: FileId,
    /// 1-based first line.
    pub start_line: u32,
    /// 1-based last line, inclusive.
    pub end_line: u32,
    /// The chunk that was found: all of the lines, or a part of the item that they are.
    pub range: ByteRange,
    /// 1-based first line of that part.
    pub range_start_line: u32,
}

/// Why no answer was given.
#[derive(Debug, thiserror::Error)]
pub enum SearchError {
    /// The lexical index.
    #[error(transparent)]
    Lexical(#[from] LexicalError),
    /// The dense index.
    #[error(transparent)]
    Dense(#[from] DenseError),
    /// The embedder.
    #[error(transparent)]
    Embed(#[from] EmbedError),
    /// A record.
    #[error(transparent)]
    Artifact(#[from] ReadError),
    /// Code was asked for that is like that at a place, and nothing indexed stands there.
    #[error("nothing that is indexed stands at {place}")]
    NoSuchPlace {
        /// As it was typed.
        place: String,
    },
}

/// Longer functions are found by their parts.
const MAX_ITEM_LINES: u32 = 120;
/// Where even the best chunk is less like the query, shares of it would blow up noise.
const MIN_BEST_COSINE: f32 = 0.05;
/// A rank r counts K / (K + r − 1). Source: Cormack, Clarke, Büttcher, "Reciprocal Rank Fusion", SIGIR 2009, with their K.
const RANK_K: f32 = 60.0;
/// Candidates that each leg brings.
const LEG_CANDIDATES: usize = 200;
/// Files whose best chunk is a candidate.
const FILE_CANDIDATES: usize = 40;

const LEXICAL: LexicalParams = LexicalParams {
    chunk: Params { k1: 1.2, b: 0.6 },
    file: Params { k1: 1.2, b: 0.6 },
    name_weight: 3.0,
};

/// Answers questions about one view.
pub struct Searcher<'a> {
    view: &'a View,
    embedder: &'a dyn Embedder,
    paths: &'a StaticModel,
    dense: FlatIndex,
    live: RoaringBitmap,
}

impl<'a> Searcher<'a> {
    /// `paths` gives the meaning of path words; it need not be the embedder.
    pub fn new(view: &'a View, embedder: &'a dyn Embedder, paths: &'a StaticModel) -> Result<Self, SearchError> {
        let vectors = view
            .segments()
            .iter()
            .filter_map(|segment| Some((segment.base_doc, segment.vectors.clone()?)));
        Ok(Self {
            view,
            embedder,
            paths,
            dense: FlatIndex::new(vectors.collect())?,
            live: view.live().to_bitmap(),
        })
    }

    /// What is searched.
    pub fn view(&self) -> &View {
        self.view
    }

    /// Whether the weights for names are used for a query.
    pub fn takes_for_name(&self, query: &str) -> bool {
        analyze(query).is_name
    }

    /// The best hits for a request.
    pub fn search(&self, request: &Request) -> Result<SearchOutcome, SearchError> {
        let read_as = match request.mode {
            Mode::Auto | Mode::Hybrid => corrected(&request.query, self.view, self.paths)?,
            Mode::Semantic | Mode::Keyword | Mode::Similar => None,
        };
        let scope = self.scope(&request.filter);
        let ranked = self.rank(request, read_as.as_deref().unwrap_or(&request.query), &scope)?;
        let names = analyze(&request.query).names;
        let n_wanted = request.skip.saturating_add(request.limit);
        let mut opened = Opened::default();
        let kept = self.one_per_item(ranked, n_wanted.saturating_add(1), &mut opened)?;
        let hits = kept
            .iter()
            .take(n_wanted)
            .skip(request.skip)
            .map(|candidate| self.hit(candidate, &names, &scope, &mut opened))
            .collect::<Result<Vec<_>, _>>()?;
        Ok(SearchOutcome {
            hits,
            has_more: kept.len() > n_wanted,
            read_as,
        })
    }

    /// Every candidate with its features, in the order of the answer: what weights are found from.
    pub fn candidates(&self, request: &Request) -> Result<Vec<Hit>, SearchError> {
        let scope = self.scope(&request.filter);
        let names = analyze(&request.query).names;
        let mut opened = Opened::default();
        self.rank(request, &request.query, &scope)?
            .iter()
            .map(|candidate| self.hit(candidate, &names, &scope, &mut opened))
            .collect()
    }

    /// Candidates in their final order.
    fn rank(&self, request: &Request, text: &str, scope: &Scope) -> Result<Vec<Candidate>, SearchError> {
        if request.mode == Mode::Similar {
            return self.similar(text, scope);
        }
        let analysis = analyze(text);
        let terms: Vec<(&str, f32)> = analysis.terms.iter().map(|term| (term.as_str(), 1.0)).collect();
        let lexical = LexicalLeg::run(self.view, &terms, &LEXICAL)?;
        let query = self.embedder.embed_query(text)?.vector;
        let by_words = self.ranked_docs(&lexical, scope);
        let by_meaning = self.docs_by_meaning(&query, scope)?;
        match request.mode {
            Mode::Keyword => {
                let scored = by_words.iter().map(|&doc| (doc, lexical.docs[doc as usize].bm25.0));
                Ok(self.plain(scored, scope))
            }
            Mode::Semantic | Mode::Similar => {
                Ok(self.plain(by_meaning.iter().map(|(doc, cosine)| (*doc, cosine.0)), scope))
            }
            Mode::Auto | Mode::Hybrid => {
                let path_query = match self.embedder.profile().id() == self.paths.profile().id() {
                    true => query.clone(),
                    false => self.paths.embed_query(text)?.vector,
                };
                let legs = Legs {
                    analysis: &analysis,
                    path_query: &path_query,
                    lexical: &lexical,
                    query: &query,
                    by_words: &by_words,
                    by_meaning: &by_meaning,
                };
                self.fused(&legs, scope)
            }
        }
    }

    /// Documents like a piece of code, best first; the one at the place that was named is left out.
    fn similar(&self, query: &str, scope: &Scope) -> Result<Vec<Candidate>, SearchError> {
        let named = self.doc_at(query)?;
        let vector = match named.and_then(|doc| self.dense.vector(doc)) {
            Some(vector) => vector,
            None => {
                let never = AtomicBool::new(false);
                let embedded = self.embedder.embed_documents(&[query], &never)?;
                embedded
                    .into_iter()
                    .next()
                    .map(|embedding| embedding.vector)
                    .unwrap_or_default()
            }
        };
        let found = self.dense.search(&vector, scope.docs(&self.live), LEG_CANDIDATES)?;
        let others = found.iter().filter(|(doc, _)| Some(*doc) != named);
        Ok(self.plain(others.map(|(doc, cosine)| (*doc, cosine.0)), scope))
    }

    /// The document of the chunk that stands at `path:line`, if the text is that.
    fn doc_at(&self, text: &str) -> Result<Option<u32>, SearchError> {
        let Some((path, line, _)) = split_position(text.trim()) else {
            return Ok(None);
        };
        if path.contains(char::is_whitespace) {
            return Ok(None);
        }
        let nowhere = || SearchError::NoSuchPlace {
            place: text.trim().to_owned(),
        };
        let file = self.view.find(path.as_bytes()).ok_or_else(nowhere)?;
        let extraction = self.view.extraction(file).ok_or_else(nowhere)??;
        let mut chunks = extraction.chunks.iter();
        let at = chunks
            .position(|chunk| (chunk.start_line..=chunk.end_line).contains(&line))
            .ok_or_else(nowhere)?;
        Ok(self.view.docs(file).nth(at))
    }

    /// The documents in scope by BM25, best first; of equal ones the first by place, since numbers follow the order of indexing.
    fn ranked_docs(&self, lexical: &LexicalLeg, scope: &Scope) -> Vec<u32> {
        let mut docs: Vec<u32> = lexical
            .touched_docs
            .iter()
            .copied()
            .filter(|&doc| scope.contains(doc))
            .collect();
        let score = |doc: u32| lexical.docs[doc as usize].bm25.0;
        let place = |doc: u32| self.view.places(doc).first();
        let order = |a: &u32, b: &u32| score(*b).total_cmp(&score(*a)).then_with(|| place(*a).cmp(&place(*b)));
        if docs.len() > LEG_CANDIDATES {
            docs.select_nth_unstable_by(LEG_CANDIDATES, order);
            docs.truncate(LEG_CANDIDATES);
        }
        docs.sort_unstable_by(order);
        docs
    }

    /// The documents in scope by cosine, best first; of equal ones the first by place, for the same reason.
    fn docs_by_meaning(&self, query: &[f32], scope: &Scope) -> Result<Vec<(u32, Cosine)>, DenseError> {
        let mut docs = self.dense.search(query, scope.docs(&self.live), LEG_CANDIDATES)?;
        let place = |doc: u32| self.view.places(doc).first();
        docs.sort_by(|(a, x), (b, y)| y.0.total_cmp(&x.0).then_with(|| place(*a).cmp(&place(*b))));
        Ok(docs)
    }

    /// One leg's order as it is.
    fn plain(&self, scored: impl Iterator<Item = (u32, f32)>, scope: &Scope) -> Vec<Candidate> {
        scored
            .filter_map(|(doc, score)| {
                Some(Candidate {
                    doc,
                    place: scope.places(self.view, doc).next()?,
                    score,
                    features: Features::default(),
                })
            })
            .collect()
    }

    fn fused(&self, legs: &Legs<'_>, scope: &Scope) -> Result<Vec<Candidate>, SearchError> {
        let defining = self.defining(legs.analysis, scope)?;
        let docs = self.gather(legs, &defining, scope);
        let cosines = self.cosines(legs, &docs)?;
        let mut features = FeatureMaker::new(self, legs, &defining, &cosines);
        let weights = if legs.analysis.is_name {
            &Weights::NAME
        } else {
            &Weights::PROSE
        };
        let mut best: Vec<Candidate> = Vec::with_capacity(docs.len());
        for doc in docs {
            let candidates = scope.places(self.view, doc).map(|place| {
                let features = features.of(doc, place);
                Candidate {
                    doc,
                    place,
                    score: weights.score(&features),
                    features,
                }
            });
            // Of several places the best; of equal ones the first by path.
            let candidate = candidates.reduce(|a, b| if b.score > a.score { b } else { a });
            best.extend(candidate);
        }
        sort_best_first(&mut best);
        spread(&mut best, weights.repeat);
        Ok(best)
    }

    /// Documents that define a name that was asked for, and whether in the container that was asked for.
    fn defining(&self, analysis: &Analysis, scope: &Scope) -> Result<HashMap<u32, Defining>, SearchError> {
        let mut found: HashMap<u32, Defining> = HashMap::new();
        let mut opened = Opened::default();
        for wanted in &analysis.names {
            for segment in self.view.segments().iter() {
                for local in segment.lexical.defining(&wanted.name)? {
                    let doc = segment.base_doc + local;
                    if !scope.contains(doc) || !self.view.live().contains(doc) {
                        continue;
                    }
                    let defining = self.how_defined(doc, wanted, &mut opened)?;
                    // `a b` as "the member b of a" is a guess: without the container it says nothing.
                    let is_guess = wanted.container.is_some() && !defining.in_container && analysis.names.len() > 1;
                    if !is_guess {
                        let known = found.entry(doc).or_default();
                        known.strength = known.strength.max(defining.strength);
                        known.in_container |= defining.in_container;
                    }
                }
            }
        }
        Ok(found)
    }

    /// How well a document's definition of a name is what was asked for.
    fn how_defined(&self, doc: u32, wanted: &NameQuery, opened: &mut Opened) -> Result<Defining, SearchError> {
        let mut defining = Defining::default();
        let Some(place) = self.view.places(doc).first() else {
            return Ok(defining);
        };
        let file = self.view.file(place.file);
        let Some(blob) = file.blob else {
            return Ok(defining);
        };
        let extraction = opened.extraction(self.view, blob)?;
        let Some(chunk) = extraction.chunks.get(place.chunk as usize) else {
            return Ok(defining);
        };
        let is_container = |name: &str| wanted.container.as_deref() == Some(normal_name(name).as_str());
        for definition in named(extraction, chunk, wanted) {
            let spelling = if definition.name == wanted.typed {
                1.0
            } else {
                OTHER_SPELLING
            };
            defining.strength = defining.strength.max(spelling * weight_of_kind(definition.kind));
            defining.in_container |= containers(&extraction.definitions, definition).any(is_container);
        }
        defining.in_container |= is_container(&file_stem(file.path));
        Ok(defining)
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
        legs.by_words.iter().take(LEG_CANDIDATES).copied().for_each(&mut add);
        legs.by_meaning.iter().map(|(doc, _)| *doc).for_each(&mut add);
        for file in best_files(legs.lexical, |file| scope.has_file(file)) {
            let score = |doc: &u32| legs.lexical.docs[*doc as usize].bm25.0;
            let best = self
                .view
                .docs(file)
                .max_by(|a, b| score(a).total_cmp(&score(b)).then(b.cmp(a)));
            best.into_iter().for_each(&mut add);
        }
        docs
    }

    /// The cosines of all chunks of all files that candidates stand in.
    fn cosines(&self, legs: &Legs<'_>, docs: &[u32]) -> Result<HashMap<u32, f32>, SearchError> {
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
        let scores = self.dense.score(legs.query, &all)?;
        Ok(all
            .into_iter()
            .zip(scores)
            .map(|(doc, cosine)| (doc, cosine.0))
            .collect())
    }

    /// The first `n_wanted` candidates less parts of an item that is found in one piece already.
    fn one_per_item(
        &self,
        ranked: Vec<Candidate>,
        n_wanted: usize,
        opened: &mut Opened,
    ) -> Result<Vec<Candidate>, SearchError> {
        let mut seen = HashSet::new();
        let mut kept = Vec::new();
        for candidate in ranked {
            if kept.len() == n_wanted {
                break;
            }
            let Place { file, chunk } = candidate.place;
            let item = self
                .view
                .file(file)
                .blob
                .map(|blob| -> Result<Option<u32>, SearchError> {
                    let extraction = opened.extraction(self.view, blob)?;
                    let chunk = extraction.chunks.get(chunk as usize);
                    Ok(chunk.and_then(|chunk| whole_item(extraction, chunk)))
                });
            if item.transpose()?.flatten().is_none_or(|item| seen.insert((file, item))) {
                kept.push(candidate);
            }
        }
        Ok(kept)
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

    fn hit(
        &self,
        candidate: &Candidate,
        names: &[NameQuery],
        scope: &Scope,
        opened: &mut Opened,
    ) -> Result<Hit, SearchError> {
        let meta = self.view.segments().doc_meta(candidate.doc);
        let mut places = Vec::new();
        let (mut symbol, mut focus) = (None, None);
        let others = scope
            .places(self.view, candidate.doc)
            .filter(|place| *place != candidate.place);
        for place in [candidate.place].into_iter().chain(others) {
            let Some(blob) = self.view.file(place.file).blob else {
                continue;
            };
            let extraction = opened.extraction(self.view, blob)?;
            let Some(chunk) = extraction.chunks.get(place.chunk as usize) else {
                continue;
            };
            if places.is_empty() {
                let own = chunk
                    .definition
                    .and_then(|index| extraction.definitions.get(index as usize));
                let named = asked_for(extraction, chunk, names);
                symbol = named
                    .or(own)
                    .map(|definition| symbol_of(&extraction.definitions, definition));
                focus = named
                    .filter(|definition| !is_callable(chunk.kind) && chunk.range.contains(definition.range))
                    .map(|definition| definition.range);
            }
            let (start_line, end_line) = item_lines(extraction, chunk);
            places.push(HitPlace {
                file: place.file,
                start_line,
                end_line,
                range: chunk.range,
                range_start_line: chunk.start_line,
            });
        }
        Ok(Hit {
            doc: candidate.doc,
            places,
            score: candidate.score,
            kind: meta.map_or(ChunkKind::Window, |meta| meta.kind),
            lang: self.view.lang(candidate.place.file),
            symbol,
            focus,
            features: candidate.features,
        })
    }
}

/// Records that one answer has opened, by blob: several chunks and several places are often of one.
#[derive(Default)]
struct Opened {
    by_blob: HashMap<u32, Extraction>,
}

impl Opened {
    fn extraction(&mut self, view: &View, blob: u32) -> Result<&Extraction, ReadError> {
        match self.by_blob.entry(blob) {
            Entry::Occupied(known) => Ok(known.into_mut()),
            Entry::Vacant(entry) => {
                let extraction = view.segments().extraction(blob).transpose()?;
                Ok(entry.insert(extraction.unwrap_or_default()))
            }
        }
    }
}

/// What the legs brought.
struct Legs<'a> {
    analysis: &'a Analysis,
    lexical: &'a LexicalLeg,
    query: &'a [f32],
    /// The query as the model of path words reads it.
    path_query: &'a [f32],
    by_words: &'a [u32],
    by_meaning: &'a [(u32, Cosine)],
}

#[derive(Clone, Debug)]
struct Candidate {
    doc: u32,
    place: Place,
    score: f32,
    features: Features,
}

/// The files and documents that a filter lets through; without limits all.
#[derive(Default)]
struct Scope {
    limits: Option<(RoaringBitmap, RoaringBitmap)>,
}

impl Scope {
    fn contains(&self, doc: u32) -> bool {
        self.limits.as_ref().is_none_or(|(_, docs)| docs.contains(doc))
    }

    fn has_file(&self, file: FileId) -> bool {
        self.limits.as_ref().is_none_or(|(files, _)| files.contains(file.0))
    }

    fn docs<'b>(&'b self, live: &'b RoaringBitmap) -> &'b RoaringBitmap {
        self.limits.as_ref().map_or(live, |(_, docs)| docs)
    }

    fn places<'b>(&'b self, view: &'b View, doc: u32) -> impl Iterator<Item = Place> + 'b {
        view.places(doc)
            .iter()
            .copied()
            .filter(|place| self.has_file(place.file))
    }
}

/// Makes the features of candidates; remembers what belongs to files.
struct FeatureMaker<'s> {
    view: &'s View,
    legs: &'s Legs<'s>,
    defining: &'s HashMap<u32, Defining>,
    cosines: &'s HashMap<u32, f32>,
    paths: &'s StaticModel,
    path_dots: TokenDots<'s>,
    best_chunk: f32,
    best_file: f32,
    best_cosine: f32,
    all_idf: f32,
    lexical_ranks: HashMap<u32, usize>,
    dense_ranks: HashMap<u32, usize>,
    files: HashMap<FileId, FileFeatures>,
}

#[derive(Clone, Copy)]
struct FileFeatures {
    cosine_mean: f32,
    cosine_best: f32,
    cosine_path: f32,
    file_name: f32,
    folder_names: f32,
    is_test: f32,
    is_peripheral: f32,
}

impl<'s> FeatureMaker<'s> {
    fn new(
        searcher: &'s Searcher<'_>,
        legs: &'s Legs<'s>,
        defining: &'s HashMap<u32, Defining>,
        cosines: &'s HashMap<u32, f32>,
    ) -> Self {
        let lexical = legs.lexical;
        let best = |scores: &mut dyn Iterator<Item = f32>| scores.fold(f32::MIN_POSITIVE, f32::max);
        Self {
            view: searcher.view,
            legs,
            defining,
            cosines,
            paths: searcher.paths,
            path_dots: TokenDots::new(searcher.paths, legs.path_query),
            best_chunk: best(&mut legs.by_words.iter().map(|&doc| lexical.docs[doc as usize].bm25.0)),
            best_file: best(
                &mut lexical
                    .touched_files
                    .iter()
                    .map(|file| lexical.files[file.0 as usize].bm25.0),
            ),
            best_cosine: best(&mut legs.by_meaning.iter().map(|(_, cosine)| cosine.0)).max(MIN_BEST_COSINE),
            all_idf: lexical.idf.iter().sum::<f32>().max(f32::MIN_POSITIVE),
            lexical_ranks: legs
                .by_words
                .iter()
                .enumerate()
                .map(|(rank, &doc)| (doc, rank))
                .collect(),
            dense_ranks: legs
                .by_meaning
                .iter()
                .enumerate()
                .map(|(rank, (doc, _))| (*doc, rank))
                .collect(),
            files: HashMap::new(),
        }
    }

    fn of(&mut self, doc: u32, place: Place) -> Features {
        let file = self.file(place.file);
        let chunk = self.legs.lexical.docs[doc as usize];
        let in_file = self.legs.lexical.files[place.file.0 as usize];
        let meta = self.view.segments().doc_meta(doc);
        let kind = meta.map(|meta| meta.kind);
        let is_kind = |wanted: &[ChunkKind]| as_feature(kind.is_some_and(|kind| wanted.contains(&kind)));
        let by_rank = |rank: Option<&usize>| rank.map_or(0.0, |&rank| RANK_K / (RANK_K + rank as f32));
        Features {
            bm25: chunk.bm25.0 / self.best_chunk,
            bm25_file: in_file.bm25.0 / self.best_file,
            cosine: self.cosines.get(&doc).copied().unwrap_or_default() / self.best_cosine,
            cosine_file_mean: file.cosine_mean / self.best_cosine,
            cosine_file_best: file.cosine_best / self.best_cosine,
            cosine_path: file.cosine_path / self.best_cosine,
            covered: chunk.covered / self.all_idf,
            covered_file: in_file.covered / self.all_idf,
            named: chunk.named / self.all_idf,
            defines: self.defining.get(&doc).map_or(0.0, |defining| defining.strength),
            defines_in_container: as_feature(self.defining.get(&doc).is_some_and(|defining| defining.in_container)),
            file_name: file.file_name,
            folder_names: file.folder_names,
            rank_lexical: by_rank(self.lexical_ranks.get(&doc)),
            rank_dense: by_rank(self.dense_ranks.get(&doc)),
            is_test: if kind == Some(ChunkKind::Test) {
                1.0
            } else {
                file.is_test
            },
            is_peripheral: file.is_peripheral,
            is_function: is_kind(&[ChunkKind::Function]),
            is_type: is_kind(&[ChunkKind::Type]),
            is_prose: is_kind(&[ChunkKind::Section]),
            is_module_text: is_kind(&[ChunkKind::Module]),
            brevity: 1.0 / (1.0 + meta.map_or(0.0, |meta| meta.n_tokens as f32) / 20.0),
        }
    }

    fn file(&mut self, id: FileId) -> FileFeatures {
        if let Some(&known) = self.files.get(&id) {
            return known;
        }
        let path = String::from_utf8_lossy(self.view.file(id).path).into_owned();
        let (folders, name) = path.rsplit_once('/').unwrap_or(("", &path));
        let cosines: Vec<f32> = self
            .view
            .docs(id)
            .map(|doc| self.cosines.get(&doc).copied().unwrap_or_default())
            .collect();
        let words = path_words(&path);
        let features = FileFeatures {
            cosine_mean: cosines.iter().sum::<f32>() / (cosines.len() as f32).max(1.0),
            cosine_best: cosines.iter().copied().fold(0.0, f32::max),
            cosine_path: self.path_dots.pooled(&self.paths.token_ids(words.as_bytes())),
            file_name: self.idf_in(name),
            folder_names: self.idf_in(folders),
            is_test: as_feature(is_test_path(&path)),
            is_peripheral: as_feature(is_peripheral_path(&path)),
        };
        self.files.insert(id, features);
        features
    }

    /// The share of the query's idf whose terms stand in `text`.
    fn idf_in(&self, text: &str) -> f32 {
        let mut found = vec![false; self.legs.analysis.terms.len()];
        for_each_term(text, |term| {
            for (index, wanted) in self.legs.analysis.terms.iter().enumerate() {
                found[index] |= wanted == term;
            }
        });
        let weights = self.legs.lexical.idf.iter().zip(found);
        weights.filter(|(_, found)| *found).map(|(idf, _)| idf).sum::<f32>() / self.all_idf
    }
}

/// How a document defines a name that was asked for.
#[derive(Clone, Copy, Debug, Default)]
struct Defining {
    /// 1 for a function or type of the very spelling; less for a field, a package clause, another spelling.
    strength: f32,
    /// Whether it stands in the container that was asked for.
    in_container: bool,
}

/// What a name in another case, or with other `_`, counts.
const OTHER_SPELLING: f32 = 0.8;

/// How likely somebody who types a name means a definition of this kind.
fn weight_of_kind(kind: DefinitionKind) -> f32 {
    match kind {
        DefinitionKind::Method | DefinitionKind::Constructor | DefinitionKind::Property => 0.9,
        kind if kind.is_callable() => 1.0,
        DefinitionKind::Variant => 0.7,
        DefinitionKind::Impl => 0.9,
        kind if kind.is_type() => 1.0,
        DefinitionKind::Constant => 0.9,
        DefinitionKind::Variable | DefinitionKind::Field => 0.6,
        _ => 0.5,
    }
}

/// The definitions of a name whose names stand in a chunk.
fn named<'e>(
    extraction: &'e Extraction,
    chunk: &'e Chunk,
    wanted: &'e NameQuery,
) -> impl Iterator<Item = &'e Definition> {
    let is_named = |definition: &&Definition| {
        chunk.range.contains(definition.name_range) && normal_name(&definition.name) == wanted.name
    };
    extraction.definitions.iter().filter(is_named)
}

/// The definition in a chunk that fits best to the names that were asked for.
fn asked_for<'e>(extraction: &'e Extraction, chunk: &'e Chunk, names: &'e [NameQuery]) -> Option<&'e Definition> {
    let all = names.iter().flat_map(|wanted| {
        let weighed = named(extraction, chunk, wanted).map(|definition| {
            let spelling = if definition.name == wanted.typed {
                1.0
            } else {
                OTHER_SPELLING
            };
            (spelling * weight_of_kind(definition.kind), definition)
        });
        weighed.collect::<Vec<_>>()
    });
    let best = all.reduce(|a, b| if b.0 > a.0 { b } else { a });
    best.map(|(_, definition)| definition)
}

fn is_callable(kind: ChunkKind) -> bool {
    matches!(kind, ChunkKind::Function | ChunkKind::Test)
}

/// The parts of the callable item that a chunk belongs to.
fn parts<'e>(extraction: &'e Extraction, chunk: &'e Chunk) -> impl Iterator<Item = &'e Chunk> {
    let is_part = |other: &&Chunk| other.definition == chunk.definition && is_callable(other.kind);
    extraction.chunks.iter().filter(is_part)
}

/// The callable item that a chunk is a part of, if that is short enough to be read in one piece.
fn whole_item(extraction: &Extraction, chunk: &Chunk) -> Option<u32> {
    let item = chunk.definition.filter(|_| is_callable(chunk.kind))?;
    let start = parts(extraction, chunk).map(|part| part.start_line).min()?;
    let end = parts(extraction, chunk).map(|part| part.end_line).max()?;
    (end - start < MAX_ITEM_LINES).then_some(item)
}

/// The lines of the item that a chunk is a part of, if it is found in one piece; else of the chunk.
fn item_lines(extraction: &Extraction, chunk: &Chunk) -> (u32, u32) {
    if whole_item(extraction, chunk).is_none() {
        return (chunk.start_line, chunk.end_line);
    }
    let start = parts(extraction, chunk).map(|part| part.start_line).min();
    let end = parts(extraction, chunk).map(|part| part.end_line).max();
    (start.unwrap_or(chunk.start_line), end.unwrap_or(chunk.end_line))
}

fn as_feature(fact: bool) -> f32 {
    f32::from(u8::from(fact))
}

/// The last three components of a path without the ending. Source: the model's recommended use (its `FORMAT.md`).
fn path_words(path: &str) -> String {
    let stem = path.rsplit_once('.').map_or(path, |(stem, _)| stem);
    let components: Vec<&str> = stem.rsplit('/').take(3).collect();
    components.into_iter().rev().collect::<Vec<_>>().join(" ")
}

fn file_stem(path: &[u8]) -> String {
    let path = String::from_utf8_lossy(path);
    let name = path.rsplit('/').next().unwrap_or_default();
    name.split('.').next().unwrap_or_default().to_owned()
}

/// Folders of code that shows or measures other code.
fn is_peripheral_path(path: &str) -> bool {
    const FOLDERS: &[&str] = &[
        "example",
        "examples",
        "sample",
        "samples",
        "demo",
        "demos",
        "bench",
        "benches",
        "benchmark",
        "benchmarks",
        "doc",
        "docs",
        "scripts",
        "tools",
        "contrib",
        "third_party",
        "vendor",
        "deprecated",
        "legacy",
    ];
    let folders = path.rsplit_once('/').map_or("", |(folders, _)| folders);
    folders
        .split('/')
        .any(|folder| FOLDERS.contains(&folder.to_lowercase().as_str()))
}

fn containers<'d>(definitions: &'d [Definition], of: &'d Definition) -> impl Iterator<Item = &'d str> {
    let at = |index: Option<u32>| index.and_then(|index| definitions.get(index as usize));
    let enclosing = std::iter::successors(at(of.container), move |outer| at(outer.container));
    of.qualifier
        .as_deref()
        .into_iter()
        .chain(enclosing.map(|outer| outer.name.as_str()))
}

fn symbol_of(definitions: &[Definition], definition: &Definition) -> Symbol {
    let mut names: Vec<&str> = containers(definitions, definition).collect();
    names.reverse();
    names.push(&definition.name);
    Symbol {
        qualified_name: names.join("."),
        kind: definition.kind,
    }
}

/// The files in scope by BM25, best first.
fn best_files(lexical: &LexicalLeg, in_scope: impl Fn(FileId) -> bool) -> Vec<FileId> {
    let mut files: Vec<FileId> = lexical
        .touched_files
        .iter()
        .copied()
        .filter(|&file| in_scope(file))
        .collect();
    let score = |file: FileId| lexical.files[file.0 as usize].bm25.0;
    files.sort_unstable_by(|a, b| score(*b).total_cmp(&score(*a)).then(a.cmp(b)));
    files.truncate(FILE_CANDIDATES);
    files
}

fn sort_best_first(candidates: &mut [Candidate]) {
    candidates.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.place.cmp(&b.place)));
}

/// Takes `repeat` from a chunk for every better one of its file, so that an answer is not one file's alone.
fn spread(candidates: &mut [Candidate], repeat: f32) {
    let mut n_better: HashMap<FileId, u32> = HashMap::new();
    for candidate in candidates.iter_mut() {
        let better = n_better.entry(candidate.place.file).or_default();
        candidate.score -= repeat * *better as f32;
        *better += 1;
    }
    sort_best_first(candidates);
}
