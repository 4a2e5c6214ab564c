//! Searches code: at one revision, at several, or in all indexed versions.

use std::sync::Arc;

use serde::Serialize;

use super::ranked::{
    Facets, RefView, SearchPage, Shown, lines_request, matching_lines, ranked, ranked_in_past, ranked_over_refs,
};
use super::rows::{ResultOut, SearchFacts, SearchRow};
use super::{Inside, Search, SearchMode, past};
use crate::ops::ask::{Ask, Detail};
use crate::ops::graph::n_callers;
use crate::ops::op::{Page, PageOf, Paging};
use crate::ops::paths::inside;
use crate::ops::provenance::ProvenanceOut;
use crate::ops::question::{About, Question};
use crate::query::{
    CursorKey, LikelyQuery, Marks, Pattern, PatternOptions, Request, ScorersUsed, Sought, SymbolQuery, SymbolRequest,
    split_position, symbols,
};
use crate::session::{Build, OpError, Result};
use crate::snapshot::Documents;

/// Default number of lines in a snippet.
const SNIPPET_LINES: usize = 6;
/// Maximum number of files that contain the names of functions whose callers are counted.
const MAX_CALLING_FILES: usize = 12;

/// The fields of the answer other than its rows.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Facts {
    /// The provenance of each searched revision.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    refs: Vec<ProvenanceOut>,
    /// The query that was searched, if its spelling was corrected.
    #[serde(skip_serializing_if = "Option::is_none")]
    read_as: Option<String>,
    /// Quoted texts and identifiers that no file contains.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    absent: Vec<String>,
    /// Remarks about places in the query.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    remarks: Vec<String>,
    #[serde(skip)]
    pub(crate) facets: Facets,
}

/// A request and the context to answer it.
pub(super) struct Asked<'a> {
    pub(super) request: &'a Search,
    pub(super) ask: &'a Ask<'a>,
    pub(super) query: &'a str,
}

impl Asked<'_> {
    pub(super) fn limit(&self) -> usize {
        self.ask.limit(self.ask.session.workspace.config.max_results())
    }

    /// Returns the request for ranked hits after `after`, the position at which the previous page ended.
    pub(super) fn ranking(&self, after: Option<(u32, u32)>) -> Request {
        Request {
            query: self.place().unwrap_or_else(|| self.query.to_owned()),
            mode: self.request.mode.to_query(),
            limit: self.limit(),
            skip: after.map_or(0, |(n_before, _)| n_before as usize),
            previous_scorers: after.and_then(|(_, judges)| ScorersUsed::from_number(judges)),
            rerank: self.request.rerank(),
            ..Request::default()
        }
    }

    /// Returns the location `path:line` of a search for similar code, with its path relative to the repository root.
    pub(super) fn place(&self) -> Option<String> {
        let is_similar = self.request.mode == SearchMode::Similar;
        let place = is_similar.then(|| inside(&self.ask.session.workspace, self.query.trim()))?;
        split_position(&place).is_some().then(|| place.into_owned())
    }

    pub(super) fn at_revision(&self) -> Result<PageOf<Search>> {
        let request = self.request;
        let pattern = match request.mode {
            SearchMode::Regex => Some(self.pattern(PatternOptions::default())?),
            _ => None,
        };
        let about = About {
            // A pattern is matched against the files themselves, so the index is not needed.
            build: if pattern.is_some() { Build::Begin } else { Build::Wait },
            ..About::files(&self.request.selection)
        };
        let about = match pattern {
            Some(_) => about,
            None => about.seeking(Sought::by_query(self.query)),
        };
        let mut question = Question::new(self.ask, &about)?;
        let mut page = match pattern {
            Some(pattern) => {
                let around = request.context_lines.unwrap_or(0);
                let filter = question.filter.clone();
                let lines = lines_request(pattern, filter, around, self.limit(), question.after);
                matching_lines(&question.sources(), &lines, self.ask.call.ctx.interrupt)?
            }
            None => {
                let sought = self.sought(&question)?;
                question.fill(&sought)?;
                let ranking = Request {
                    filter: question.filter.clone(),
                    kinds: request.kind.kinds()?,
                    // Notes and documents were selected; even a poor match may be wanted.
                    is_any: matches!(request.inside, Some(Inside::Docs | Inside::Memory)),
                    ..self.ranking(question.after)
                };
                let mut page = ranked(self.ask, question.view(), &ranking, self.shown())?;
                count_callers(&question, &mut page.results)?;
                page
            }
        };
        if page.is_interrupted {
            page.notes
                .push("stopped at the time limit before all files were read; pass next_cursor to continue".to_owned());
            page.next = page.after.last().copied();
        }
        let paging = paging(question.key(), question.after, &page);
        self.page(&question, page, paging, Vec::new())
    }

    /// Selects files to read while the index is being built: files that contain the query's words, or the named file
    /// and similar ones.
    pub(super) fn sought(&self, question: &Question<'_>) -> Result<LikelyQuery> {
        let place = self.place();
        let position = place.as_deref().and_then(split_position);
        let file = position.and_then(|(path, line, _)| Some((question.view().find_text(path)?, line)));
        let Some((file, line)) = file.filter(|_| question.seen.building.is_some()) else {
            let text = self.query.to_owned();
            return Ok(LikelyQuery {
                text,
                ..LikelyQuery::default()
            });
        };
        Ok(LikelyQuery {
            files: vec![file],
            text: question.text_around(file, line)?,
            name: None,
        })
    }

    /// Searches several revisions at once. Returns each text once, with its locations in each revision.
    pub(super) fn over_refs(&self) -> Result<PageOf<Search>> {
        let mut questions = Vec::new();
        for reference in &self.request.refs {
            let mut question = self.question_at(reference)?;
            let sought = self.sought(&question)?;
            question.fill(&sought)?;
            questions.push(question);
        }
        let Some(first) = questions.first() else {
            return Err(OpError::new("refs is empty", "give branches, tags or commits"));
        };
        let key = CursorKey::over(questions.iter().map(Question::view), &self.ask.common.question);
        let after = self.after(&key)?;
        let views: Vec<RefView<'_>> = questions
            .iter()
            .map(|question| RefView {
                view: question.view(),
                filter: question.filter.clone(),
            })
            .collect();
        let page = ranked_over_refs(self.ask, &views, &self.ranking(after), self.shown())?;
        let refs = questions.iter().map(|question| question.provenance()).collect();
        let is_indexed = questions.iter().all(Question::is_indexed);
        let paging = paging(is_indexed.then_some(key), after, &page);
        self.page(first, page, paging, refs)
    }

    /// Searches all indexed versions of files, or only versions that the revision no longer has. Returns each result
    /// with the commits between which it existed.
    pub(super) fn over_past(&self, documents: Documents) -> Result<PageOf<Search>> {
        let reference = &self.ask.common.reference;
        let question = self.question_at(reference)?;
        question.needs_index(&format!("{reference} is not indexed yet"), "try again later", None)?;
        self.ask.session.make_searchable(reference, &self.ask.call)?;
        let past = past::Past::open(self.ask, documents)?;
        let name = match documents {
            Documents::All => "all history",
            Documents::Gone => "deleted",
        };
        let key = CursorKey::new(&past.view, &format!("{name} {}", self.ask.common.question));
        let after = self.after(&key)?;
        let ranking = Request {
            filter: question.filter.clone(),
            // Each version of a definition has its own life.
            is_flat: true,
            ..self.ranking(after)
        };
        let mut page = ranked_in_past(self.ask, &past, &ranking, self.shown())?;
        for life in page.results.iter_mut().filter_map(|result| result.life.as_mut()) {
            life.paths.retain(|path| !self.ask.visibility().hides(path.as_bytes()));
        }
        let paging = paging(key, after, &page);
        self.page(&question, page, paging, Vec::new())
    }

    pub(super) fn question_at(&self, reference: &str) -> Result<Question<'_>> {
        Question::new(
            self.ask,
            &About {
                reference: Some(reference),
                has_cursor: false,
                ..About::files(&self.request.selection)
            },
        )
    }

    /// Returns the position in the call's cursor.
    pub(super) fn after(&self, key: &CursorKey) -> Result<Option<(u32, u32)>> {
        let cursor = self.ask.common.cursor.as_deref();
        Ok(cursor.map(|cursor| key.read(cursor)).transpose()?)
    }

    /// Converts results to rows.
    pub(super) fn page(
        &self,
        question: &Question<'_>,
        mut found: SearchPage,
        paging: Paging,
        refs: Vec<ProvenanceOut>,
    ) -> Result<PageOf<Search>> {
        let is_regex = self.request.is_regex();
        // The language of a file may depend on its content, which is read when the file is indexed.
        let mut provenance = if is_regex && self.request.selection.lang.is_empty() {
            question.provenance_of_files()
        } else {
            question.provenance()
        };
        found.notes.drain(..).for_each(|why| provenance.also_incomplete(why));
        if let Some(explanation) = found.explanation.take() {
            provenance.also_note(explanation);
        }
        let has_remarks = !found.remarks.is_empty();
        let mut notes = found.remarks.clone();
        notes.extend(
            found
                .read_as
                .iter()
                .map(|read_as| format!("query interpreted as: {read_as}")),
        );
        notes.extend(found.absent.iter().map(|text| format!("no file contains {text:?}")));
        let words = found.absent_words.iter();
        notes.extend(words.map(|word| format!("no file contains the word {word:?}")));
        let mut hint = None;
        if found.results.is_empty() {
            let is_complete = is_regex || question.is_indexed();
            let scope = if is_complete {
                ""
            } else {
                " in the files indexed so far"
            };
            notes.push(format!("nothing found{scope}"));
            hint = question.why_nothing();
            if hint.is_none() && found.is_weak && !has_remarks {
                hint = Some(self.about_weak(question));
            }
            if hint.is_none() && is_regex && spans_lines(self.query) {
                hint = Some("a regex matches within one line: search for a part that is on one line".to_owned());
            }
        }
        let marks = self
            .marks(found.read_as.as_deref().unwrap_or(self.query))?
            .map(Arc::new);
        for result in &mut found.results {
            result.marks.clone_from(&marks);
            if is_regex {
                result.cut_lines(self.ask.common.detail);
            }
        }
        let rows = found.results.into_iter().map(Box::new).map(SearchRow::Code).collect();
        let facts = Facts {
            refs,
            read_as: found.read_as,
            absent: [found.absent, found.absent_words].concat(),
            remarks: found.remarks,
            facets: found.facets,
        };
        let mut page = Page::new(provenance, SearchFacts::Code(facts), rows, paging);
        page.notes = notes;
        page.hint = hint;
        Ok(page)
    }

    /// Returns what to do if nothing matches well enough.
    pub(super) fn about_weak(&self, question: &Question<'_>) -> String {
        let request = SymbolRequest {
            query: SymbolQuery::Named(self.query.trim().to_owned()),
            filter: question.filter.clone(),
            kinds: Vec::new(),
        };
        let is_part = |c: char| c.is_alphanumeric() || c == '_';
        let is_word = self.query.trim().chars().all(is_part);
        // A text that is no name has no similar names.
        let named = is_word
            .then(|| symbols(&question.sources(), &request, None).ok())
            .flatten();
        match named.map(|outcome| outcome.near).unwrap_or_default().as_slice() {
            [] => {
                let is_cli = self.ask.common.characters.is_none();
                let mode = if is_cli { "--mode semantic" } else { "mode=semantic" };
                format!("nothing matches well enough; {mode} lists what is nearest")
            }
            near => format!("did you mean {}?", near.join(" or ")),
        }
    }

    /// Returns the parts of snippets to highlight, for the query as it was read.
    pub(super) fn marks(&self, query: &str) -> Result<Option<Marks>> {
        Ok(match self.request.mode {
            SearchMode::Similar => None,
            SearchMode::Regex => Some(Marks::Matches(self.pattern(PatternOptions::default())?)),
            _ => Some(Marks::of_query(query)),
        })
    }

    /// Returns the query as a pattern.
    pub(super) fn pattern(&self, options: PatternOptions) -> Result<Pattern> {
        Ok(Pattern::new(self.query.trim_end_matches('\n'), options)?)
    }

    /// Determines what is returned of each result.
    pub(super) fn shown(&self) -> Shown {
        let detail = self.ask.common.detail;
        Shown {
            n_lines: match detail {
                Detail::Ids => 0,
                Detail::Outline => 1,
                _ => self.n_lines(),
            },
            is_whole: matches!(detail, Detail::Full | Detail::Pack),
            explain: self.request.explain,
            by_match: self.request.mode != SearchMode::Similar,
        }
    }

    /// Returns the number of lines in a snippet.
    pub(super) fn n_lines(&self) -> usize {
        let asked = self.request.context_lines.filter(|lines| *lines > 0);
        asked.unwrap_or(SNIPPET_LINES)
    }
}

/// Counts the callers of the functions on a first page that the query names, best first, until too many files would have
/// to be read.
fn count_callers(question: &Question<'_>, results: &mut [ResultOut]) -> Result<()> {
    let is_any_named = results.iter().any(|result| result.function.is_some());
    if question.after.is_some() || !question.is_indexed() || !is_any_named {
        return Ok(());
    }
    let links = question.links();
    let linker = question.linker(&links).without_candidates();
    let mut n_left = MAX_CALLING_FILES;
    for result in results {
        let Some((of, kind)) = result.function else { continue };
        if let Some(n_files) = linker.n_files_naming(of, n_left)? {
            n_left -= n_files;
            let n_callers = n_callers(&linker, of, kind)?;
            result.callers = (n_callers > 0 && question.sources().go_on().is_ok()).then_some(n_callers);
        }
    }
    Ok(linker.check()?)
}

/// Returns true if a pattern seems to be meant to match across lines.
fn spans_lines(pattern: &str) -> bool {
    pattern.contains('\n') || ["\\n", "(?s", "\\s*"].iter().any(|part| pattern.contains(part))
}

fn paging(key: impl Into<Option<CursorKey>>, after: Option<(u32, u32)>, page: &SearchPage) -> Paging {
    let starts = std::iter::once(after.unwrap_or_default()).chain(page.after.iter().copied());
    Paging {
        key: key.into(),
        positions: starts.take(page.results.len()).collect(),
        end: page.next,
        limit: None,
    }
}
