//! Compares the answers at two revisions.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Value};

use super::rows::GraphRow;
use super::{DEFAULT_LIMIT, Graph, GraphOp};
use crate::model::count::plural;
use crate::ops::ask::Ask;
use crate::ops::op::{Page, Paging};
use crate::ops::question::{About, Question};
use crate::session::{OpError, Result};

/// The fields of the answer.
#[derive(Debug, Serialize)]
struct Facts<'a> {
    /// The id of the target.
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<Value>,
    since: &'a str,
    total: usize,
    added: usize,
    removed: usize,
    /// Number of results at the revision.
    total_now: usize,
    /// Number of results at `since`.
    total_then: usize,
}

impl Graph {
    /// Lists the results that the revision has and `since` lacks, or the reverse.
    pub(super) fn compared(&self, ask: &Ask<'_>, since: &str) -> Result<Page<GraphRow>> {
        if matches!(
            self.op,
            GraphOp::Impact | GraphOp::Path | GraphOp::Flow | GraphOp::Stats | GraphOp::Export
        ) {
            return Err(OpError::new(
                "since cannot be used with this relation",
                "use it with callers, callees, refs, implementations, imports, importers, cycles, entrypoints or unused",
            ));
        }
        let about = About {
            has_cursor: false,
            ..About::indexed_files(&self.files)
        };
        let new = Question::new(ask, &about)?;
        let old = Question::new(
            ask,
            &About {
                reference: Some(since),
                ..about
            },
        )?;
        let mut now = self.answer(ask, &new, true)?;
        let mut then = self.answer(ask, &old, true)?;
        // The target can exist in only one of the two.
        let is_unknown = |page: &Page<GraphRow>| page.facts.contains_key("ambiguous");
        match (is_unknown(&now), is_unknown(&then)) {
            (true, true) => return Ok(now),
            (true, false) if !now.rows.is_empty() => return Ok(now),
            (false, true) if !then.rows.is_empty() => {
                then.notes.push(format!("at {since}"));
                return Ok(then);
            }
            (true, false) => now.rows.clear(),
            (false, true) => then.rows.clear(),
            (false, false) => {}
        }
        let mut notes = Vec::new();
        for (is_unknown, reference) in [
            (is_unknown(&now), &ask.common.reference),
            (is_unknown(&then), &since.to_owned()),
        ] {
            notes.extend(is_unknown.then(|| format!("the target does not exist at {reference}")));
        }
        let mut provenance = new.provenance();
        for why in old.provenance().incomplete_because() {
            provenance.also_incomplete(format!("{since}: {why}"));
        }
        let target = [&now, &then]
            .into_iter()
            .find_map(|page| page.facts.get("target").cloned());
        let (total_now, total_then) = (now.rows.len(), then.rows.len());
        let rows = changes(now.rows, then.rows)?;
        let n_added = rows.iter().filter(|row| row.is_added()).count();
        let facts = Facts {
            target,
            since,
            total: rows.len(),
            added: n_added,
            removed: rows.len() - n_added,
            total_now,
            total_then,
        };
        let state = (new.key(), old.key());
        let n_before = ask.n_before(state)?.min(rows.len());
        let key = ask.key(state);
        let paging = Paging::numbered(key, n_before, rows.len() - n_before, ask.limit(DEFAULT_LIMIT));
        let mut page = Page::new(provenance, rows.into_iter().skip(n_before).collect(), paging).with_facts(&facts)?;
        page.is_empty = facts.total == 0;
        page.notes = notes;
        let noun = plural(facts.total_then as u64, "result");
        let line = format!(
            "{} added · {} removed since {since} · {total_now} now, {total_then} {noun} then",
            facts.added, facts.removed
        );
        self.present(&mut page, ask.limit(DEFAULT_LIMIT), line);
        Ok(page)
    }
}

/// Returns the rows of one list that the other lacks. Lines are not compared, because code moves.
fn changes(now: Vec<GraphRow>, then: Vec<GraphRow>) -> Result<Vec<GraphRow>> {
    let mut old: BTreeMap<String, Vec<GraphRow>> = BTreeMap::new();
    for row in then {
        old.entry(key(&row)?).or_default().push(row);
    }
    let mut rows = Vec::new();
    for row in now {
        let same = old.get_mut(&key(&row)?).and_then(Vec::pop);
        if same.is_none() {
            rows.push(GraphRow::changed("added", row));
        }
    }
    rows.extend(old.into_values().flatten().map(|row| GraphRow::changed("removed", row)));
    Ok(rows)
}

/// Returns what identifies a row at any revision.
fn key(row: &GraphRow) -> Result<String> {
    let mut fields = match serde_json::to_value(row)? {
        Value::Object(fields) => fields,
        _ => Map::new(),
    };
    for changing in ["line", "tier", "depth", "calls", "candidates", "in_text", "cycle"] {
        fields.remove(changing);
    }
    Ok(Value::Object(fields).to_string())
}
