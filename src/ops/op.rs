//! The interface of operations: a request runs against a session and returns a page of rows.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use serde::Serialize;
use serde_json::{Map, Value};

use super::ask::Ask;
use super::provenance::ProvenanceOut;
use super::sink::{Recorded, Sink};
use crate::query::CursorKey;
use crate::session::Result;

/// An operation. The implementing type is its request.
pub(crate) trait Op: Serialize {
    /// The fields of an answer other than its rows, [`NoFacts`] if there are none.
    type Facts: Serialize;
    /// The type of a result.
    type Row: Row;
    /// The next step if a tool with this operation exceeds its time limit.
    const WHEN_TOO_SLOW: &'static str = "narrow it down with path, lang or limit";

    /// Answers the request.
    fn run(&self, ask: &Ask<'_>) -> Result<Page<Self::Facts, Self::Row>>;
}

/// Runs an operation. If it panics and the index is damaged, the error is the damage.
pub(crate) fn answered<O: Op>(op: &O, ask: &Ask<'_>) -> Result<Page<O::Facts, O::Row>> {
    let answered = catch_unwind(AssertUnwindSafe(|| op.run(ask)));
    answered.unwrap_or_else(|panic| match ask.session.workspace.damage(ask.call.ctx) {
        Some(damage) => Err(damage),
        None => resume_unwind(panic),
    })
}

/// One result of an operation. It is serialised as JSON.
pub(crate) trait Row: Serialize {
    /// True if a row whose text is truncated continues on the next page. If false, the first row of a page is truncated
    /// without continuation.
    const CONTINUES: bool = false;
    /// True if the command line separates rows by an empty line.
    const IS_SPACED: bool = false;

    /// True if the command line separates this row from the row before by an empty line.
    fn is_apart(&self) -> bool {
        Self::IS_SPACED
    }

    /// False if answers are not lists. Their JSON has no `results`.
    const IS_LISTED: bool = true;

    /// True if the rows are lines of one text that is quoted.
    const IS_QUOTED: bool = false;

    /// Writes the row as text.
    fn render(&self, out: &mut dyn Sink);

    /// Returns the texts of the row that may be truncated to fit the answer, or omitted if the client does not show
    /// them.
    fn bodies(&mut self) -> Vec<&mut Option<String>> {
        Vec::new()
    }

    /// Called after one of the texts was truncated.
    fn was_cut(&mut self) {}

    /// Returns bytes that the command line prints instead of the rendered row, and the name of their language.
    fn raw(&self) -> Option<(&[u8], &'static str)> {
        None
    }
}

/// The row type of answers without rows.
#[derive(Debug, Serialize)]
pub(crate) enum NoRows {}

impl Row for NoRows {
    const IS_LISTED: bool = false;

    fn render(&self, _: &mut dyn Sink) {
        match *self {}
    }
}

/// The fields of answers that have only rows.
#[derive(Debug, Serialize)]
pub(crate) struct NoFacts;

/// The type of the answers of an operation.
pub(crate) type PageOf<O> = Page<<O as Op>::Facts, <O as Op>::Row>;

/// The answer of an operation, or one page of it.
pub(crate) struct Page<F, R> {
    /// The provenance of the answer; `None` outside a repository.
    pub(crate) provenance: Option<ProvenanceOut>,
    /// The fields of the answer other than its rows.
    pub(crate) facts: F,
    /// Text before the rows.
    pub(crate) head: Recorded,
    /// Text after the rows.
    pub(crate) tail: Recorded,
    /// Remarks. The command line prints them on standard error.
    pub(crate) notes: Vec<String>,
    /// A suggestion for what to do next.
    pub(crate) hint: Option<String>,
    /// The results from the start of the page. There may be more than fit on it.
    pub(crate) rows: Vec<R>,
    /// The positions at which pages can begin.
    pub(crate) paging: Paging,
    /// Number of rows on all pages, if it is known.
    pub(crate) n_selected: Option<usize>,
    /// True if nothing was found. The exit status is then 1.
    pub(crate) is_empty: bool,
    /// True if work remains, or if nothing certain was found although there may be something. The exit status is then 2.
    pub(crate) is_unfinished: bool,
    /// True if a program that acts on the answer must assume everything. The exit status is then 3.
    pub(crate) cannot_tell: bool,
}

/// The positions at which a page can begin.
#[derive(Clone, Debug, Default)]
pub(crate) struct Paging {
    /// The key that makes cursors valid only for this answer; `None` if the answer cannot be continued.
    pub(crate) key: Option<CursorKey>,
    /// The position of each row.
    pub(crate) positions: Vec<(u32, u32)>,
    /// The position after the last row, if there are more.
    pub(crate) end: Option<(u32, u32)>,
    /// Maximum number of rows of this page.
    pub(crate) limit: Option<usize>,
}

impl Paging {
    /// Numbers the rows from `n_before`. The page has at most `limit` rows.
    pub(crate) fn numbered(key: impl Into<Option<CursorKey>>, n_before: usize, n_rows: usize, limit: usize) -> Self {
        Self {
            key: key.into(),
            positions: (n_before..n_before + n_rows).map(|number| (number as u32, 0)).collect(),
            end: None,
            limit: Some(limit),
        }
    }

    /// Returns the cursor for the position after `n_rows` rows and `n_bytes` of the next row.
    pub(crate) fn cursor(&self, n_rows: usize, n_bytes: usize) -> Option<String> {
        let (number, start) = self.positions.get(n_rows).copied().or(self.end)?;
        Some(self.key?.write((number, start + n_bytes as u32)))
    }
}

impl<F> Page<F, NoRows> {
    /// Creates an answer without rows. `facts` are the JSON fields, and `text` is the text output.
    pub(crate) fn single(provenance: impl Into<Option<ProvenanceOut>>, facts: F, text: Recorded) -> Self {
        let mut page = Self::new(provenance, facts, Vec::new(), Paging::default());
        page.head = text;
        page.is_empty = false;
        page
    }
}

impl<F: Serialize, R: Row> Page<F, R> {
    /// Returns the answer as one JSON object.
    pub(crate) fn into_json(self, took_ms: f64) -> Result<Map<String, Value>> {
        let mut answer = match serde_json::to_value(&self.provenance)? {
            Value::Object(provenance) => provenance,
            _ => Map::new(),
        };
        if let Value::Object(facts) = serde_json::to_value(self.facts)? {
            answer.extend(facts);
        }
        let limit = self.paging.limit.unwrap_or(usize::MAX).min(self.rows.len());
        if R::IS_LISTED {
            let mut rows = serde_json::to_value(&self.rows[..limit])?;
            if let (Some(provenance), Value::Array(rows)) = (&self.provenance, &mut rows) {
                rows.iter_mut().for_each(|row| provenance.add_repo(row));
            }
            answer.insert("results".to_owned(), rows);
        }
        if let Some(hint) = self.hint {
            answer.insert("hint".to_owned(), hint.into());
        }
        if R::IS_LISTED {
            answer.insert("next_cursor".to_owned(), self.paging.cursor(limit, 0).into());
        }
        answer.insert("took_ms".to_owned(), took_ms.into());
        Ok(answer)
    }
}

impl<F, R> Page<F, R> {
    /// Creates a page of `rows`. `facts` are the other fields of the answer.
    pub(crate) fn new(provenance: impl Into<Option<ProvenanceOut>>, facts: F, rows: Vec<R>, paging: Paging) -> Self {
        Self {
            provenance: provenance.into(),
            facts,
            head: Recorded::default(),
            tail: Recorded::default(),
            notes: Vec::new(),
            hint: None,
            n_selected: None,
            is_empty: rows.is_empty(),
            is_unfinished: false,
            cannot_tell: false,
            rows,
            paging,
        }
    }

    /// Converts the facts and each row.
    pub(crate) fn map<G, T>(self, facts: impl FnOnce(F) -> G, row: impl FnMut(R) -> T) -> Page<G, T> {
        Page {
            provenance: self.provenance,
            facts: facts(self.facts),
            head: self.head,
            tail: self.tail,
            notes: self.notes,
            hint: self.hint,
            rows: self.rows.into_iter().map(row).collect(),
            paging: self.paging,
            n_selected: self.n_selected,
            is_empty: self.is_empty,
            is_unfinished: self.is_unfinished,
            cannot_tell: self.cannot_tell,
        }
    }
}
