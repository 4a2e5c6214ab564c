//! Compares the answers at two revisions.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::facts::{ChangeFacts, GraphFacts};
use super::rows::GraphRow;
use super::{DEFAULT_LIMIT, Graph, GraphOp, Lookup, Meant, id_of};
use crate::model::count::plural;
use crate::ops::ask::Ask;
use crate::ops::grouped::{Part, answer_each};
use crate::ops::op::{Page, PageOf, Paging};
use crate::ops::question::{About, Question};
use crate::ops::sink::Recorded;
use crate::query::FoundDefinition;
use crate::session::{OpError, Result};

impl Graph {
    /// Lists the results that the revision has and `since` lacks, or the reverse.
    pub(super) fn compared(&self, ask: &Ask<'_>, since: &str) -> Result<PageOf<Self>> {
        if matches!(
            self.op,
            GraphOp::Hubs | GraphOp::Impact | GraphOp::Path | GraphOp::Flow | GraphOp::Stats | GraphOp::Export
        ) {
            return Err(OpError::new(
                "since cannot be used with this relation",
                "use it with callers, callees, refs, implementations, imports, importers, cycles, orphans, routes, entrypoints or unused",
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
        let (new_links, old_links) = (new.links(), old.links());
        let (new_linker, old_linker) = (new.linker(&new_links), old.linker(&old_links));
        let now = self.lookup(ask, &new, &new_linker, Part::ALL);
        let then = self.lookup(ask, &old, &old_linker, Part::ALL);
        // The target can exist in only one of the two.
        let each = match (now.meant()?, then.meant()?) {
            (Meant::Page(page), Meant::Page(_)) => return Ok(page.grouped()),
            (Meant::Page(page), _) if !page.is_empty => return Ok(page.grouped()),
            (_, Meant::Page(mut page)) if !page.is_empty => {
                page.notes.push(format!("at {since}"));
                return Ok(page.grouped());
            }
            (Meant::Page(_), Meant::Each(then)) => pairs(Vec::new(), then),
            (Meant::Each(now), Meant::Page(_)) => pairs(now, Vec::new()),
            (Meant::Each(now), Meant::Each(then)) => pairs(now, then),
        };
        let state = (new.key(), old.key());
        let part = Part {
            skip: ask.n_before(state)?,
            limit: ask.limit(DEFAULT_LIMIT),
        };
        let mut provenance = new.provenance();
        for why in old.provenance().incomplete_because() {
            provenance.also_incomplete(format!("{since}: {why}"));
        }
        let answer = |at: usize, part: Part| -> Result<Page<GraphFacts, GraphRow>> {
            let (now_of, then_of) = &each[at];
            let rows = |lookup: &Lookup<'_>, ends: &Option<Ends>| -> Result<Vec<GraphRow>> {
                Ok(ends
                    .as_ref()
                    .map(|ends| lookup.about(ends))
                    .transpose()?
                    .map_or_else(Vec::new, |page| page.rows))
            };
            let (now_rows, then_rows) = (rows(&now, now_of)?, rows(&then, then_of)?);
            let mut notes = Vec::new();
            for (ends, reference) in [(now_of, ask.common.reference.as_str()), (then_of, since)] {
                let note = || format!("the target does not exist at {reference}");
                notes.extend(ends.is_none().then(note));
            }
            let target = now_of.as_ref().or(then_of.as_ref()).and_then(|ends| ends.first());
            let (total_now, total_then) = (now_rows.len(), then_rows.len());
            let rows = changes(now_rows, then_rows)?;
            let added = rows.iter().filter(|row| row.is_added()).count();
            let facts = ChangeFacts {
                target: target.map(|found| found.id.clone()),
                since: since.to_owned(),
                total: rows.len(),
                added,
                removed: rows.len() - added,
                total_now,
                total_then,
            };
            let rows = part.of(rows);
            let mut paging = Paging::numbered(ask.key(state), part.skip, rows.len(), part.limit);
            if part.skip + rows.len() < facts.total {
                paging.end = Some(((part.skip + rows.len()) as u32, 0));
            }
            let noun = plural(total_then as u64, "result");
            let line = format!(
                "{} added · {} removed since {since} · {total_now} now, {total_then} {noun} then",
                facts.added, facts.removed
            );
            let total = facts.total;
            let mut page = Page::new(None, GraphFacts::Changes(facts), rows, paging);
            page.n_selected = Some(total);
            page.is_empty = total == 0;
            page.notes = notes;
            page.head = Recorded::of(|out| out.whole_line(&line));
            Ok(page)
        };
        let mut page = match each.as_slice() {
            [_] => answer(0, part)?.grouped(),
            several => {
                let id = |(now, then): &(Option<Ends>, Option<Ends>)| id_of(now.as_ref().or(then.as_ref()));
                let ids: Vec<String> = several.iter().map(id).collect();
                answer_each(
                    &ids,
                    part,
                    ask.key(state),
                    |total| GraphFacts::Several { total },
                    answer,
                )?
            }
        };
        new_linker.check()?;
        old_linker.check()?;
        page.provenance = Some(provenance);
        Ok(page)
    }
}

/// The definitions that an answer is about.
type Ends = Vec<FoundDefinition>;

/// Pairs the definitions at the two revisions by their ids; if there is one at each, with one another.
fn pairs(now: Vec<Ends>, mut then: Vec<Ends>) -> Vec<(Option<Ends>, Option<Ends>)> {
    let is_one = now.len() == 1 && then.len() == 1;
    let mut pairs = Vec::new();
    for ends in now {
        let is_same = |other: &Ends| is_one || id_of(Some(other)) == id_of(Some(&ends));
        let other = then.iter().position(is_same).map(|at| then.remove(at));
        pairs.push((Some(ends), other));
    }
    pairs.extend(then.into_iter().map(|ends| (None, Some(ends))));
    pairs
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
