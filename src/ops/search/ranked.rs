//! Finds and ranks code, and finds lines that match a pattern.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rayon::prelude::*;

use super::super::ask::Ask;
use super::past::Past;
use super::rows::{PlaceOut, RefPlacesOut, ResultOut};
use crate::extract;
use crate::git::{BlobContent, MAX_OBJECT_BYTES, ObjectReader};
use crate::link::DefId;
use crate::model::count::count;
use crate::model::{ChunkKey, Hint, quoted, with_placeholders};
use crate::query::{
    ExactText, FEATURES, FileFilter, FileMatches, GrepDetail, GrepLine, GrepPosition, GrepRequest, Hit, LineStarts,
    MatchedBy, Mode, Pattern, Preview, Request, Rerank, ScorersUsed, SearchOutcome, Sources, Symbol, grep,
};
use crate::session::{OpError, Result, Workspace, bail};
use crate::snapshot::{FileId, View};

/// Number of lines shown of a further part of a result.
const FURTHER_LINES: usize = 2;
/// Maximum size in bytes of the text of one result of a pattern.
const MAX_SNIPPET_BYTES: usize = 4 << 10;
/// Maximum size of a whole definition in bytes.
const MAX_WHOLE_BYTES: usize = 16 << 10;
/// Maximum size in bytes of adjacent lines that are combined into one result.
const MAX_BLOCK_BYTES: usize = 1 << 10;
/// Minimum number of hits to look through for definitions that no longer exist.
const MAX_LOOKED_THROUGH: usize = 400;

/// Results with their positions, and the reasons why they are incomplete.
#[derive(Debug, Default)]
pub(crate) struct SearchPage {
    /// The results, best first or in path order.
    pub(crate) results: Vec<ResultOut>,
    /// For each result, the position of the next page if this page ends with that result.
    pub(crate) after: Vec<(u32, u32)>,
    /// The position of the next page; `None` on the last page.
    pub(crate) next: Option<(u32, u32)>,
    /// The query that was searched, if its spelling was corrected.
    pub(crate) read_as: Option<String>,
    /// Quoted texts that no file contains.
    pub(crate) absent: Vec<String>,
    /// Identifiers and lone words that no file contains.
    pub(crate) absent_words: Vec<String>,
    /// True if there are candidates, but they match too little.
    pub(crate) is_weak: bool,
    /// How the results were found, if that was requested.
    pub(crate) explanation: Option<String>,
    /// True if the search was interrupted.
    pub(crate) is_interrupted: bool,
    /// Notes about files and lines that were not searched.
    pub(crate) notes: Vec<String>,
    /// Remarks about the query.
    pub(crate) remarks: Vec<String>,
    /// The files of all ranked hits by folder and language.
    pub(crate) facets: Facets,
}

/// Numbers of files by what a search can be narrowed to, the most first.
#[derive(Debug, Default)]
pub(crate) struct Facets {
    /// The folders that the files are in, directly below the one that they share.
    pub(crate) folders: Vec<(String, usize)>,
    pub(crate) languages: Vec<(String, usize)>,
}

impl Facets {
    fn of(view: &View, files: &BTreeSet<FileId>) -> Self {
        let paths: Vec<String> = files
            .iter()
            .map(|file| with_placeholders(view.file(*file).path).into_owned())
            .collect();
        let folder = |path: &str| path.rfind('/').map_or(0, |end| end + 1);
        let mut shared = paths.first().map_or("", |path| &path[..folder(path)]);
        while !paths.iter().all(|path| path.starts_with(shared)) {
            shared = &shared[..folder(&shared[..shared.len() - 1])];
        }
        let below = paths.iter().filter_map(|path| {
            let end = path[shared.len()..].find('/')?;
            Some(path[..shared.len() + end].to_owned())
        });
        let language = |file: &FileId| Some(extract::language(view.lang(*file))?.name.to_owned());
        Self {
            folders: counted(below),
            languages: counted(files.iter().filter_map(language)),
        }
    }
}

/// Counts equal names, the most frequent first.
fn counted(names: impl Iterator<Item = String>) -> Vec<(String, usize)> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    names.for_each(|name| *counts.entry(name).or_default() += 1);
    let mut counts: Vec<(String, usize)> = counts.into_iter().collect();
    counts.sort_by_key(|(_, n)| Reverse(*n));
    counts
}

/// Determines what is returned of each hit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shown {
    /// Maximum number of lines; 0 for no text.
    pub(crate) n_lines: usize,
    /// True for the whole definition.
    pub(crate) is_whole: bool,
    /// True for the features behind each score.
    pub(crate) explain: bool,
    /// True for the way in which a hit matches.
    pub(crate) by_match: bool,
}

/// Returns the best hits.
pub(crate) fn ranked(ask: &Ask<'_>, view: &View, request: &Request, shown: Shown) -> Result<SearchPage> {
    let (workspace, interrupt) = (&*ask.session.workspace, ask.call.ctx.interrupt);
    let best = best_hits(workspace, view, request, interrupt)?;
    let mut page = page_of(workspace, view, request, &best, shown, interrupt)?;
    if shown.explain && request.mode != Mode::Keyword {
        let way = if best.outcome.uses_graph {
            "with a graph"
        } else {
            "by comparing all"
        };
        page.explanation = Some(format!("vectors were found {way}"));
    }
    Ok(page)
}

pub(super) struct Best {
    pub(super) outcome: SearchOutcome,
    /// Quoted texts that no file contains.
    pub(super) absent: Vec<String>,
    /// Identifiers and lone words that no file contains.
    pub(super) absent_words: Vec<String>,
    /// Notes about files and lines that were not searched.
    pub(super) notes: Vec<String>,
}

pub(super) fn best_hits(workspace: &Workspace, view: &View, request: &Request, interrupt: &AtomicBool) -> Result<Best> {
    refuse_reranking(workspace, request)?;
    let searcher = workspace
        .searcher(view, interrupt)?
        .with_reranking(workspace.reranking(view, interrupt));
    let outcome = searcher.search(request)?;
    let exact = &outcome.exact;
    let (absent, absent_words) = (exact.absent.clone(), exact.absent_words.clone());
    let mut notes = about_exact(exact);
    notes.extend(outcome.notes.iter().cloned());
    Ok(Best {
        outcome,
        absent,
        absent_words,
        notes,
    })
}

/// Returns an error if the call was interrupted.
fn go_on(interrupt: &AtomicBool) -> Result<()> {
    if interrupt.load(Ordering::Relaxed) {
        Err(OpError::interrupted())
    } else {
        Ok(())
    }
}

/// Returns an error if reranking was requested but is impossible.
fn refuse_reranking(workspace: &Workspace, request: &Request) -> Result<(), OpError> {
    if request.rerank == Rerank::Always && request.mode == Mode::Similar {
        return Err(OpError::new(
            "rerank cannot be used with mode similar",
            Hint::each(
                "omit --rerank, or search with a question",
                "omit rerank, or search with a question",
            ),
        ));
    }
    if request.rerank == Rerank::Always && workspace.models.reranker().is_none() {
        return Err(OpError::new(
            "no reranker is configured",
            Hint::each(
                "omit --rerank, or run: codescout config set rerank.server ADDRESS",
                "omit rerank, or run: codescout config set rerank.server ADDRESS",
            ),
        ));
    }
    Ok(())
}

fn page_of(
    workspace: &Workspace,
    view: &View,
    request: &Request,
    best: &Best,
    shown: Shown,
    interrupt: &AtomicBool,
) -> Result<SearchPage> {
    let outcome = &best.outcome;
    let mut page = SearchPage {
        read_as: best.outcome.read_as.clone(),
        absent: best.absent.clone(),
        absent_words: best.absent_words.clone(),
        is_weak: outcome.is_weak,
        notes: best.notes.clone(),
        remarks: outcome.remarks.clone(),
        facets: Facets::of(view, &outcome.files),
        ..SearchPage::default()
    };
    let n_per_task = outcome.hits.len().div_ceil(rayon::current_num_threads()).max(1);
    let results: Vec<Vec<ResultOut>> = outcome
        .hits
        .par_chunks(n_per_task)
        .map(|hits| {
            let mut reader = workspace.repository.reader();
            let result = |hit| {
                go_on(interrupt)?;
                result_out(view, &mut reader, hit, &outcome.terms, shown)
            };
            hits.iter().map(result).collect()
        })
        .collect::<Result<_>>()?;
    page.results = results.into_iter().flatten().collect();
    if request.skip == 0 && !outcome.unindexed.is_empty() {
        let lines = outcome.unindexed.iter();
        let lines = lines.map(|(file, line)| ResultOut {
            matched_by: Some(MatchedBy::ExactText.name()),
            ..lines_out(view, *file, std::slice::from_ref(line))
        });
        page.results.extend(lines.take(request.limit));
        page.notes
            .push("only files that are not indexed contain the text; use grep to list all lines".to_owned());
    }
    let positions = (request.skip as u32 + 1..).take(page.results.len());
    page.after = positions
        .map(|position| (position, outcome.judges.to_number()))
        .collect();
    page.next = page.after.last().copied().filter(|_| outcome.has_more);
    Ok(page)
}

/// Returns notes about files and lines that were not searched for the quoted texts.
fn about_exact(exact: &ExactText) -> Vec<String> {
    let mut notes = Vec::new();
    if exact.n_unindexed > 0 {
        let files = count(exact.n_unindexed, "file");
        notes.push(format!(
            "the text is also in {files} that are not indexed; use grep to list them"
        ));
    }
    if exact.n_withheld > 0 {
        let files = count(exact.n_withheld, "file");
        notes.push(format!(
            "the text is also in {files} whose names suggest credentials; use grep to list them"
        ));
    }
    let unindexed = exact.unindexed_words.iter();
    notes.extend(
        unindexed.map(|word| format!("only files that are not indexed contain {word:?}; use grep to list them")),
    );
    let unknown = exact.unknown_words.iter();
    notes.extend(unknown.map(|word| format!("no indexed file contains {word:?}; use grep to search the others")));
    if exact.is_cut {
        notes.push("the text occurs on more lines than were checked; use grep to list all".to_owned());
    }
    notes
}

/// Returns the best hits in the files of many commits, each with the commits between which it existed.
pub(crate) fn ranked_in_past(ask: &Ask<'_>, past: &Past, request: &Request, shown: Shown) -> Result<SearchPage> {
    let (workspace, interrupt) = (&*ask.session.workspace, ask.call.ctx.interrupt);
    let best = if !past.is_of_gone() {
        best_hits(workspace, &past.view, request, interrupt)?
    } else {
        gone_hits(workspace, past, request, interrupt)?
    };
    let mut page = page_of(workspace, &past.view, request, &best, shown, interrupt)?;
    page.notes.splice(0..0, past.notes()?);
    if !past.is_whole() {
        let unknown = page.absent.drain(..);
        page.notes
            .extend(unknown.map(|text| format!("no indexed version contains {text:?}")));
    }
    let mut reader = workspace.repository.reader();
    for (result, hit) in page.results.iter_mut().zip(&best.outcome.hits) {
        go_on(interrupt)?;
        result.life = Some(past.life(&mut reader, hit)?);
    }
    Ok(page)
}

/// Returns the best hits whose definitions no longer exist in the revision.
fn gone_hits(workspace: &Workspace, past: &Past, request: &Request, interrupt: &AtomicBool) -> Result<Best> {
    let n_wanted = request.skip.saturating_add(request.limit);
    let wider = Request {
        limit: n_wanted.saturating_mul(4).max(MAX_LOOKED_THROUGH),
        skip: 0,
        ..request.clone()
    };
    let mut best = best_hits(workspace, &past.view, &wider, interrupt)?;
    let mut hits = Vec::new();
    for hit in std::mem::take(&mut best.outcome.hits) {
        go_on(interrupt)?;
        if !past.is_still_defined(&hit)? {
            hits.push(hit);
        }
    }
    best.outcome.has_more = hits.len() > n_wanted;
    best.outcome.hits = hits.into_iter().skip(request.skip).take(request.limit).collect();
    Ok(best)
}

/// One of several searched revisions with the filter for its files.
pub(crate) struct RefView<'v> {
    pub(crate) view: &'v View,
    pub(crate) filter: FileFilter,
}

/// Returns the best hits in several revisions. Each text occurs once, with its locations in each revision. Scores are
/// relative to the best hit of a revision, so that hits of several revisions can be sorted together.
pub(crate) fn ranked_over_refs(
    ask: &Ask<'_>,
    views: &[RefView<'_>],
    request: &Request,
    shown: Shown,
) -> Result<SearchPage> {
    let (workspace, interrupt) = (&*ask.session.workspace, ask.call.ctx.interrupt);
    let n_wanted = request.skip.saturating_add(request.limit).saturating_add(1);
    let mut page = SearchPage::default();
    let mut found: Vec<(usize, ChunkKey, Hit)> = Vec::new();
    let mut judges: Vec<ScorersUsed> = Vec::new();
    let mut terms = Vec::new();
    for (at, RefView { view, filter }) in views.iter().enumerate() {
        let request = Request {
            filter: filter.clone(),
            limit: n_wanted,
            skip: 0,
            // Not reranked, because the scores of several revisions must be comparable.
            rerank: Rerank::Never,
            ..request.clone()
        };
        let best = best_hits(workspace, view, &request, interrupt)?;
        let outcome = best.outcome;
        judges.push(outcome.judges);
        terms.push(outcome.terms);
        page.read_as = page.read_as.or(outcome.read_as);
        let reference = &view.provenance().reference;
        let notes = best.notes.iter().map(|note| format!("{reference}: {note}"));
        page.notes.extend(notes);
        for remark in outcome.remarks {
            let remark = format!("{reference}: {remark}");
            page.remarks.push(remark);
        }
        match at {
            0 => (page.absent, page.absent_words, page.is_weak) = (best.absent, best.absent_words, outcome.is_weak),
            _ => {
                page.absent.retain(|text| best.absent.contains(text));
                page.absent_words.retain(|word| best.absent_words.contains(word));
                page.is_weak |= outcome.is_weak;
            }
        }
        let key = |hit: &Hit| {
            let (segment, local) = view.segments().of_doc(hit.doc)?;
            Some(segment.lexical.key(local))
        };
        found.extend(outcome.hits.into_iter().filter_map(|hit| Some((at, key(&hit)?, hit))));
    }
    found.sort_by(|(a, _, x), (b, _, y)| y.score.total_cmp(&x.score).then(a.cmp(b)));
    let mut seen = HashSet::new();
    found.retain(|(_, key, _)| seen.insert(*key));
    let has_more = found.len() >= n_wanted;
    let mut reader = workspace.repository.reader();
    let wanted = found.iter().skip(request.skip).take(request.limit);
    // A cursor can represent the order of one revision only.
    judges.dedup();
    let number = match judges[..] {
        [judges] => judges.to_number(),
        _ => 0,
    };
    for ((at, key, hit), position) in wanted.zip(request.skip as u32 + 1..) {
        go_on(interrupt)?;
        let mut result = result_out(views[*at].view, &mut reader, hit, &terms[*at], shown)?;
        for RefView { view, .. } in views {
            let places = places_of(view, *key)?;
            if !places.is_empty() {
                result.refs.push(RefPlacesOut {
                    reference: view.provenance().reference.clone(),
                    places,
                });
            }
        }
        page.results.push(result);
        page.after.push((position, number));
    }
    page.next = page.after.last().copied().filter(|_| has_more);
    Ok(page)
}

fn places_of(view: &View, key: ChunkKey) -> Result<Vec<PlaceOut>> {
    let doc = view.segments().find_doc(key);
    let mut places = Vec::new();
    for place in doc.map(|doc| view.places(doc)).unwrap_or_default() {
        let extraction = view.extraction(place.file).transpose()?;
        let chunk = extraction
            .as_ref()
            .and_then(|found| found.chunks.get(place.chunk as usize));
        places.push(PlaceOut {
            path: path_of(view, place.file),
            start_line: chunk.map_or(0, |chunk| chunk.start_line),
            end_line: chunk.map_or(0, |chunk| chunk.end_line),
            symbol: None,
            snippet: None,
            snippet_start_line: None,
            is_part: false,
        });
    }
    Ok(places)
}

/// Returns the matching lines in path order, each as one result. If context lines are requested, adjacent lines form
/// one result.
pub(crate) fn matching_lines(
    sources: &Sources<'_>,
    request: &GrepRequest,
    interrupt: &AtomicBool,
) -> Result<SearchPage> {
    let view = sources.view();
    let mut page = SearchPage::default();
    let outcome = grep(sources, request, interrupt, &mut |matches| {
        let is_joined = request.before + request.after > 0;
        // Omits context lines whose match was cut off by the limit.
        let has_match = |block: &&[GrepLine]| block.iter().any(|line| line.is_match);
        for block in blocks(&matches, is_joined).into_iter().filter(has_match) {
            let last_match = block.iter().rev().find(|line| line.is_match);
            page.results.push(lines_out(view, matches.file, block));
            page.after
                .push((matches.file.0, last_match.map_or(u32::MAX, |line| line.number)));
        }
        ControlFlow::Continue(())
    });
    page.is_interrupted = outcome.interrupted;
    if !outcome.unread.is_empty() {
        page.notes
            .push(format!("{} could not be read", count(outcome.unread.len(), "file")));
    }
    page.next = outcome.next.map(|position| (position.file.0, position.line));
    Ok(page)
}

/// Divides lines into the blocks that form one result each.
fn blocks(matches: &FileMatches, is_joined: bool) -> Vec<&[GrepLine]> {
    if is_joined {
        let follows = |a: &GrepLine, b: &GrepLine| a.number + 1 == b.number;
        matches.lines.chunk_by(follows).flat_map(parts).collect()
    } else {
        matches.lines.chunks(1).collect()
    }
}

/// Splits a block into parts that fit into a snippet, so that no match is truncated.
fn parts(mut block: &[GrepLine]) -> Vec<&[GrepLine]> {
    let mut parts = Vec::new();
    while !block.is_empty() {
        let mut n_bytes = 0;
        let fits = |line: &&GrepLine| {
            n_bytes += line.text.len() + 1;
            n_bytes <= MAX_BLOCK_BYTES
        };
        let n_lines = block.iter().take_while(fits).count().max(1);
        let (part, rest) = block.split_at(n_lines);
        parts.push(part);
        block = rest;
    }
    parts
}

fn lines_out(view: &View, file: FileId, lines: &[GrepLine]) -> ResultOut {
    let first_match = lines.iter().find(|line| line.is_match);
    let last_match = lines.iter().rev().find(|line| line.is_match);
    let mut text = Vec::new();
    for (number, line) in lines.iter().enumerate() {
        if number > 0 {
            text.push(b'\n');
        }
        let left = MAX_SNIPPET_BYTES.saturating_sub(text.len());
        text.extend_from_slice(&line.text[..line.text.len().min(left)]);
    }
    ResultOut {
        path: path_of(view, file),
        start_line: first_match.map_or(0, |line| line.number),
        end_line: last_match.map_or(0, |line| line.number),
        score: 1.0,
        language: extract::language(view.lang(file)).map_or("text", |language| language.name),
        kind: "line".to_owned(),
        matched_by: None,
        symbol: None,
        callers: None,
        function: None,
        blob: view.file(file).entry().oid.to_string(),
        places: Vec::new(),
        more_places: 0,
        refs: Vec::new(),
        life: None,
        signature: None,
        signature_line: 0,
        snippet: Some(String::from_utf8_lossy(&text).into_owned()),
        snippet_start_line: lines.first().map_or(0, |line| line.number),
        marks: None,
        features: None,
    }
}

/// Returns the request for matching lines and `around` lines before and after each.
pub(crate) fn lines_request(
    pattern: Pattern,
    filter: FileFilter,
    around: usize,
    limit: usize,
    after: Option<(u32, u32)>,
) -> GrepRequest {
    GrepRequest {
        pattern,
        filter,
        detail: GrepDetail::Lines,
        before: around,
        after: around,
        limit,
        from: after.map(|(file, line)| GrepPosition {
            file: FileId(file),
            line,
        }),
    }
}

fn path_of(view: &View, file: FileId) -> String {
    quoted(view.file(file).path).into_owned()
}

fn result_out(
    view: &View,
    reader: &mut ObjectReader,
    hit: &Hit,
    terms: &[(String, f32)],
    shown: Shown,
) -> Result<ResultOut> {
    let [place, copies @ ..] = hit.places.as_slice() else {
        bail!("a hit without a place");
    };
    let bytes = match &hit.text {
        Some(text) => text.clone(),
        None => match view.read(place.file, reader, MAX_OBJECT_BYTES)? {
            BlobContent::Content(bytes) => Arc::new(bytes),
            BlobContent::TooLarge { .. } | BlobContent::Missing | BlobContent::Damaged => Arc::default(),
        },
    };
    let (start_line, end_line, _) = hit
        .lines(&bytes)
        .unwrap_or((place.start_line, place.end_line, place.range));
    let preview = if shown.is_whole {
        whole(&bytes, start_line, end_line)
    } else {
        hit.preview(&bytes, terms, shown.n_lines)
    };
    let (signature_line, signature) = preview.signature.unzip();
    let features = shown.explain.then(|| {
        let values = hit.features.to_array().map(serde_json::Value::from);
        let features = FEATURES.iter().map(|name| (*name).to_owned()).zip(values);
        let reranked = hit.reranked.map(|score| ("reranker".to_owned(), score.into()));
        features.chain(reranked).collect()
    });
    let name = |symbol: &Symbol| symbol.qualified_name.clone();
    let further = hit.further.iter().map(|part| {
        let preview = (shown.n_lines >= FURTHER_LINES).then(|| part.preview(&bytes, terms, FURTHER_LINES));
        let (snippet_start_line, snippet) = preview.unzip();
        PlaceOut {
            path: path_of(view, place.file),
            start_line: part.start_line,
            end_line: part.end_line,
            symbol: part.symbol.as_ref().map(name),
            snippet,
            snippet_start_line,
            is_part: true,
        }
    });
    let copies = copies.iter().map(|place| PlaceOut {
        path: path_of(view, place.file),
        start_line: place.start_line,
        end_line: place.end_line,
        symbol: None,
        snippet: None,
        snippet_start_line: None,
        is_part: false,
    });
    let mut seen = HashSet::from([(path_of(view, place.file), start_line, end_line)]);
    let places = further
        .chain(copies)
        .filter(|place| seen.insert((place.path.clone(), place.start_line, place.end_line)));
    let places = places.collect();
    Ok(ResultOut {
        path: path_of(view, place.file),
        start_line,
        end_line,
        score: hit.score,
        language: extract::language(hit.lang).map_or("text", |language| language.name),
        kind: format!("{:?}", hit.kind).to_lowercase(),
        matched_by: shown.by_match.then(|| hit.matched_by.name()),
        symbol: hit.symbol.as_ref().map(name),
        callers: None,
        function: hit
            .symbol
            .as_ref()
            .filter(|symbol| symbol.kind.is_callable() && hit.features.defines > 0.0)
            .map(|symbol| {
                let (file, index) = (place.file, symbol.index);
                (DefId { file, index }, symbol.kind)
            }),
        blob: view.file(place.file).entry().oid.to_string(),
        places,
        more_places: hit.n_omitted,
        refs: Vec::new(),
        life: None,
        signature,
        signature_line: signature_line.unwrap_or_default(),
        snippet: (shown.n_lines > 0).then_some(preview.text),
        snippet_start_line: preview.start_line,
        marks: None,
        features,
    })
}

/// Returns whole lines, up to a size limit.
fn whole(bytes: &[u8], start_line: u32, end_line: u32) -> Preview {
    let range = LineStarts::of(bytes).range(start_line, end_line);
    let text = bytes.get(range).unwrap_or_default();
    let is_cut = text.len() > MAX_WHOLE_BYTES;
    let text = String::from_utf8_lossy(&text[..text.len().min(MAX_WHOLE_BYTES)]);
    Preview {
        signature: None,
        start_line,
        text: text.trim_end().to_owned() + if is_cut { "…" } else { "" },
    }
}
