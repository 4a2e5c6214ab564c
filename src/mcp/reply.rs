//! Builds the reply of a tool in its two forms, text and structured content. Each form is limited to the requested
//! size.
//!
//! Facts (locations, names, counts) are in both forms. Bodies (snippets, definitions, lines of files) are only in the
//! form that the client shows to its model, because they would otherwise cost tokens twice.

use std::time::Instant;

use serde::Serialize;
use serde_json::{Map, Value};

use super::asked::MAX_CHARACTERS;
use super::tool::Call;
use crate::mcp::Bodies;
use crate::model::count::count;
use crate::model::start_of;
use crate::model::unprintable::printable;
use crate::ops::ProvenanceOut;
use crate::ops::{MarkedText, Page, Recorded, Row, fence_of};
use crate::session::ErrorOut;

/// Number of characters reserved for the lines that precede the results.
const HEAD_CHARACTERS: usize = 800;
/// The mark at the end of a truncated body.
const CUT_MARK: &str = "    (truncated: use read for what follows, or a larger max_tokens)\n";
/// Number of digits of an id in the text. The structured content has the full id.
const SHORT_ID: usize = 12;

/// The reply of a tool.
#[derive(Debug, Default)]
pub(super) struct Reply {
    /// Text for users and models.
    pub(super) text: String,
    /// Structured content for programs, and for models whose clients do not show them the text. `None` if it is not
    /// sent.
    pub(super) structured: Option<Map<String, Value>>,
    /// True if the answer is about all that was asked.
    pub(super) is_complete: bool,
}

impl Reply {
    /// Adds notes about the call, in the text before everything else.
    pub(super) fn with_notes(mut self, notes: &[String]) -> Self {
        if notes.is_empty() {
            return self;
        }
        let mut note = MarkedText::default();
        note.line(&format!("note: {}", notes.join("; ")));
        self.text.insert_str(0, &note.0);
        if let Some(structured) = &mut self.structured
            && let Value::Array(noted) = structured.entry("notes").or_insert_with(|| Vec::<Value>::new().into())
        {
            noted.extend(notes.iter().map(|note| note.as_str().into()));
        }
        self
    }
}

/// Builds a reply.
pub(super) struct ReplyBuilder {
    bodies: Bodies,
    text: MarkedText,
    /// The results of the structured content, unless only the text is sent.
    results: Option<Vec<Value>>,
    n_results: usize,
    left_in_text: usize,
    left_in_structure: usize,
    is_full: bool,
    hint: Option<String>,
    began: Instant,
}

impl ReplyBuilder {
    /// Creates an empty reply with at most `characters` characters.
    pub(super) fn new(call: &Call<'_>, characters: usize) -> Self {
        let room = characters.saturating_sub(HEAD_CHARACTERS).max(characters / 4);
        // The form that the client does not show has twice the size limit, so that it usually does not end the list
        // first.
        let beside = (2 * room).min(MAX_CHARACTERS - HEAD_CHARACTERS);
        let (text, structure) = match call.bodies {
            Bodies::Structured => (beside, room),
            Bodies::Both => (room, room),
            Bodies::ByClient | Bodies::Text => (room, beside),
        };
        Self {
            bodies: call.bodies,
            text: MarkedText::default(),
            results: call.sends_structure.then(Vec::new),
            n_results: 0,
            left_in_text: text,
            left_in_structure: structure,
            is_full: false,
            hint: None,
            began: call.ctx.began,
        }
    }

    /// Adds a result, as an object and as a line of text, if it fits. Returns true if it was added.
    pub(super) fn push(&mut self, facts: &impl Serialize, line: &str) -> bool {
        if self.is_full {
            return false;
        }
        let value = self
            .results
            .is_some()
            .then(|| serde_json::to_value(facts).unwrap_or_default());
        let mut text = MarkedText::default();
        text.line(line);
        self.add(text.0, value)
    }

    /// Adds a line of text that belongs to no result.
    pub(super) fn note(&mut self, line: &str) {
        self.text.line(line);
        self.left_in_text = self.left_in_text.saturating_sub(line.len() + 1);
    }

    /// Adds a suggestion for what to do next.
    pub(super) fn hint(&mut self, hint: String) {
        self.note(&format!("hint: {hint}"));
        self.hint = Some(hint);
    }

    /// Returns true if the text contains bodies.
    fn has_text(&self) -> bool {
        self.bodies != Bodies::Structured
    }

    /// Returns true if the structured content contains bodies.
    fn has_structure(&self) -> bool {
        matches!(self.bodies, Bodies::Structured | Bodies::Both)
    }

    /// Returns the number of results.
    pub(super) fn n_results(&self) -> usize {
        self.n_results
    }

    /// Returns the longest start of `text` that fits together with `reserved` characters of facts, but at least 200
    /// characters.
    fn fitting<'t>(&self, text: &'t str, reserved: usize) -> &'t str {
        let room = self.room().saturating_sub(reserved).max(200);
        match self.bodies {
            Bodies::Structured | Bodies::Both => cut_json(cut(text, room), room),
            Bodies::ByClient | Bodies::Text => cut(text, room),
        }
    }

    /// Returns the number of characters left in the form that contains the bodies.
    fn room(&self) -> usize {
        match self.bodies {
            Bodies::Structured => self.left_in_structure,
            Bodies::Both => self.left_in_text.min(self.left_in_structure),
            Bodies::ByClient | Bodies::Text => self.left_in_text,
        }
    }

    /// Returns the reply. It consists of the provenance, the `own` fields of the tool, and the results.
    pub(super) fn finish<'p>(
        self,
        provenance: impl Into<Option<&'p ProvenanceOut>>,
        next_cursor: Option<String>,
        own: &impl Serialize,
    ) -> Reply {
        let provenance = provenance.into();
        let structured = self.results.map(|mut results| {
            if let Some(provenance) = provenance {
                results.iter_mut().for_each(|row| provenance.add_repo(row));
            }
            let mut structured = head(provenance, next_cursor.as_deref(), self.began);
            if let Some(hint) = self.hint {
                structured.insert("hint".to_owned(), hint.into());
            }
            if let Ok(Value::Object(own)) = serde_json::to_value(own) {
                structured.extend(own);
            }
            structured.insert("results".to_owned(), Value::Array(results));
            structured
        });
        let mut text = head_text(provenance, next_cursor.as_deref()) + &self.text.0;
        if text.is_empty() {
            text.push_str("nothing found\n");
        }
        Reply {
            text,
            structured,
            is_complete: is_complete(provenance),
        }
    }
}

/// Number of characters reserved for the facts of a row.
const FACTS_CHARACTERS: usize = 700;
/// Number of characters reserved for the facts of a row that continues on the next page.
const FEW_FACTS_CHARACTERS: usize = 300;

/// The outcome of adding a row.
enum Shown {
    All,
    /// Only the text up to this byte was added. The next page continues there.
    UpTo(usize),
    Nothing,
}

/// Renders a page of rows as a reply with at most `characters` characters.
pub(super) fn paged<F: Serialize, R: Row>(call: &Call<'_>, characters: usize, page: Page<F, R>) -> Reply {
    let mut draft = ReplyBuilder::new(call, characters);
    page.notes.iter().for_each(|note| draft.note(note));
    draft.lines(&page.head);
    if let Some(hint) = page.hint {
        draft.hint(hint);
    }
    let n_wanted = page.rows.len().min(page.paging.limit.unwrap_or(usize::MAX));
    let (mut n_rows, mut n_bytes, n_before) = (0, 0, draft.text.0.len());
    for mut row in page.rows.into_iter().take(n_wanted) {
        match draft.push_row(&mut row) {
            Shown::All => n_rows += 1,
            Shown::UpTo(byte) => {
                n_bytes = byte;
                break;
            }
            Shown::Nothing => break,
        }
    }
    let next_cursor = page.paging.cursor(n_rows, n_bytes);
    if n_rows < n_wanted && next_cursor.is_none() {
        let n_left = count(n_wanted - n_rows, "more result");
        draft.note(&format!("{n_left}, which need a larger max_tokens"));
    }
    if R::IS_QUOTED {
        draft.quote_from(n_before);
    }
    draft.lines(&page.tail);
    let mut reply = draft.finish(page.provenance.as_ref(), next_cursor, &page.facts);
    if let Some(structured) = reply.structured.as_mut().filter(|_| !R::IS_LISTED) {
        structured.remove("results");
    }
    reply
}

impl ReplyBuilder {
    fn lines(&mut self, lines: &Recorded) {
        let n_before = self.text.0.len();
        lines.replay(&mut self.text);
        self.left_in_text = self.left_in_text.saturating_sub(self.text.0.len() - n_before);
    }

    /// Puts the text from a position on between fences.
    fn quote_from(&mut self, start: usize) {
        let quoted = self.text.0.split_off(start);
        let fence = fence_of(&quoted);
        self.text.0.push_str(&format!("{fence}\n{quoted}{fence}\n"));
    }

    /// Adds a row if it fits. The first row is truncated rather than omitted.
    fn push_row<R: Row>(&mut self, row: &mut R) -> Shown {
        if self.is_full {
            return Shown::Nothing;
        }
        let is_first = self.n_results == 0;
        let mut cut_at = None;
        if is_first || R::CONTINUES {
            let reserved = if R::CONTINUES {
                FEW_FACTS_CHARACTERS
            } else {
                FACTS_CHARACTERS
            };
            let mut used = reserved;
            for body in row.bodies().into_iter().flatten() {
                let n_bytes = self.fitting(body, used).len();
                used += n_bytes;
                if n_bytes < body.len() {
                    body.truncate(n_bytes);
                    cut_at = Some(n_bytes);
                }
            }
        }
        if cut_at.is_some() {
            row.was_cut();
        }
        let is_lost = cut_at.is_some() && !R::CONTINUES;
        let mut text = self.text_of(row);
        let mut value = self.value_of(row);
        if is_lost {
            if let Some(value) = &mut value {
                value["truncated"] = true.into();
            }
            text.push_str(CUT_MARK);
        }
        match (self.add(text, value), cut_at) {
            (false, _) => Shown::Nothing,
            (true, Some(at)) if R::CONTINUES => Shown::UpTo(at),
            (true, _) => Shown::All,
        }
    }

    fn text_of<R: Row>(&self, row: &mut R) -> String {
        let hidden: Vec<Option<String>> = if self.has_text() {
            Vec::new()
        } else {
            row.bodies().into_iter().map(Option::take).collect()
        };
        let mut text = MarkedText::default();
        row.render(&mut text);
        row.bodies()
            .into_iter()
            .zip(hidden)
            .for_each(|(body, text)| *body = text);
        text.0
    }

    fn value_of<R: Row>(&self, row: &mut R) -> Option<Value> {
        self.results.as_ref()?;
        if !self.has_structure() {
            row.bodies().into_iter().for_each(|body| *body = None);
        }
        Some(serde_json::to_value(row).unwrap_or_default())
    }

    /// Adds a result if it fits or if it is the first one.
    fn add(&mut self, text: String, value: Option<Value>) -> bool {
        let n_characters = value.as_ref().map_or(0, |value| json_len(value) + 1);
        if self.n_results > 0 && (text.len() > self.left_in_text || n_characters > self.left_in_structure) {
            self.is_full = true;
            return false;
        }
        self.left_in_text = self.left_in_text.saturating_sub(text.len());
        self.left_in_structure = self.left_in_structure.saturating_sub(n_characters);
        self.text.0.push_str(&text);
        self.n_results += 1;
        if let Some(results) = &mut self.results {
            results.extend(value);
        }
        true
    }
}

/// Returns a reply without results. It consists of the provenance and the `own` fields of the tool; the text form ends
/// with `text`.
pub(super) fn single<'p>(
    call: &Call<'_>,
    provenance: impl Into<Option<&'p ProvenanceOut>>,
    own: &impl Serialize,
    text: &str,
) -> Reply {
    let provenance = provenance.into();
    let structured = call.sends_structure.then(|| {
        let mut structured = head(provenance, None, call.ctx.began);
        if let Ok(Value::Object(own)) = serde_json::to_value(own) {
            structured.extend(own);
        }
        structured
    });
    Reply {
        text: head_text(provenance, None) + text,
        structured,
        is_complete: is_complete(provenance),
    }
}

fn is_complete(provenance: Option<&ProvenanceOut>) -> bool {
    provenance.is_some_and(|provenance| provenance.incomplete_because().is_empty())
}

fn head(provenance: Option<&ProvenanceOut>, next_cursor: Option<&str>, began: Instant) -> Map<String, Value> {
    let mut head = match serde_json::to_value(provenance) {
        Ok(Value::Object(head)) => head,
        _ => Map::from_iter([("complete".to_owned(), true.into())]),
    };
    if let Some(cursor) = next_cursor {
        head.insert("next_cursor".to_owned(), cursor.into());
    }
    head.insert("took_ms".to_owned(), took_ms(began).into());
    head
}

fn took_ms(began: Instant) -> f64 {
    (began.elapsed().as_secs_f64() * 1e5).round() / 1e2
}

/// Returns the lines above the results: the revision, unless it is the files on disk; each reason why the answer is
/// incomplete; each note; and the cursor. A model cannot use the rest of the provenance.
fn head_text(provenance: Option<&ProvenanceOut>, next_cursor: Option<&str>) -> String {
    let Some(provenance) = provenance else {
        return String::new();
    };
    let mut text = MarkedText::default();
    let reference = provenance.reference();
    if reference != "WORKTREE" {
        let commit = provenance
            .commit()
            .map(|id| format!(" | commit {}", start_of(id, SHORT_ID)));
        text.line(&format!("ref {reference}{}", commit.unwrap_or_default()));
    }
    for why in provenance.incomplete_because() {
        text.line(&format!("incomplete: {why}"));
    }
    for note in provenance.notes() {
        text.line(&format!("note: {note}"));
    }
    if let Some(cursor) = next_cursor {
        text.line(&format!("next_cursor: {cursor}"));
    }
    text.0
}

/// Formats an error for a language model.
pub(super) fn error_text(error: &ErrorOut) -> String {
    let mut text = MarkedText::default();
    text.line(&format!("error: {}", error.error));
    if let Some(hint) = &error.hint {
        text.line(&format!("hint: {hint}"));
    }
    if let Some(retry) = &error.retry {
        text.line(&format!("try: {}", printable(retry.to_string())));
    }
    text.0.truncate(text.0.len() - 1);
    text.0
}

fn json_len(value: &Value) -> usize {
    serde_json::to_string(value).map_or(0, |text| text.len())
}

/// Returns the longest start of `text` with at most `room` bytes that ends at a line break, or else at a character
/// boundary.
pub(super) fn cut(text: &str, room: usize) -> &str {
    if text.len() <= room {
        return text;
    }
    let start = start_of(text, room);
    match start.rfind('\n') {
        Some(newline) if newline > 0 => &text[..=newline],
        _ => start,
    }
}

/// Like [`cut`], but `room` limits the length of the text as a JSON string.
fn cut_json(text: &str, room: usize) -> &str {
    let mut shown = text;
    loop {
        let n_bytes = serde_json::to_string(shown).map_or(0, |text| text.len());
        if n_bytes <= room || shown.is_empty() {
            return shown;
        }
        let less = shown.len() * room / n_bytes;
        shown = cut(shown, less.min(shown.len() - 1));
    }
}
