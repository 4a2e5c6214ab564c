//! `search --pack`: one answer with the text of the results and what is needed to understand them, within a budget.
//!
//! `seeds.rs` finds the results, ranked hits or the definitions of a name, and `changed.rs` the changes of `A..B`.
//! `related.rs` finds what each is related to. `fill.rs` chooses what fits into the budget, and `parts.rs` the parts of
//! long definitions. `rows.rs` contains the rows.

mod changed;
mod fill;
mod parts;
mod related;
mod rows;
mod seeds;
mod texts;

use std::collections::BTreeMap;

use serde::Serialize;

use self::fill::{Packed, Packing};
pub(crate) use self::rows::PackOut;
use self::seeds::{Found, Seeker};
use super::super::ask::{Ask, CHARACTERS_PER_TOKEN};
use super::super::diff::{Compared, Diff};
use super::super::op::{Page, PageOf, Paging};
use super::super::question::{About, Question};
use super::super::sink::Recorded;
use super::Search;
use super::asked::Asked;
use super::rows::{SearchFacts, SearchRow};
use crate::model::count::count;
use crate::query::CursorKey;
use crate::session::Result;

/// Default budget in tokens.
pub(crate) const PACK_TOKENS: usize = 6_000;
/// Number of characters that an answer over MCP reserves for the lines above the results.
const HEAD_CHARACTERS: usize = 800;
/// Default maximum number of results of a question.
const RESULTS: usize = 12;

/// The fields of the answer other than its rows.
#[derive(Debug, Serialize)]
pub(crate) struct Facts {
    /// The compared states.
    #[serde(skip_serializing_if = "Option::is_none")]
    between: Option<(String, String)>,
    /// Number of results, also those left out.
    total: usize,
    /// Size of the rows as text, in tokens.
    tokens: usize,
    /// The budget in tokens.
    max_tokens: usize,
    /// Number of items left out, by what they are.
    left_out: BTreeMap<&'static str, usize>,
    /// Number of references to the results that only have the name.
    uncertain: usize,
}

impl Asked<'_> {
    /// Answers with the results and what they are related to.
    pub(super) fn pack(&self) -> Result<PageOf<Search>> {
        let range = seeds::range_in(self.ask, self.query);
        let compared = range
            .map(|range| Diff::of(range, &[]).compared(self.ask, false))
            .transpose()?;
        let Some(compared) = compared else {
            return self.packed(self.ask, None);
        };
        let ask = self.ask.at(&compared.new.reference);
        self.packed(&ask, Some(compared))
    }

    fn packed(&self, ask: &Ask<'_>, compared: Option<Compared>) -> Result<PageOf<Search>> {
        let about = About {
            has_cursor: false,
            ..About::indexed_files(&self.request.selection)
        };
        let mut question = Question::new(ask, &about)?;
        question.needs_index(
            "a pack needs the whole index",
            "try again later, or search without it",
            None,
        )?;
        question.fill(&self.sought(&question)?)?;
        let links = question.links();
        let linker = question.linker(&links);
        let mut seeker = Seeker::new(self, ask, &question, &linker);
        let found = match &compared {
            Some(compared) => seeker.changed(compared)?,
            None => match seeker.named()? {
                Some(found) => found,
                None => seeker.ranked(ask.limit(RESULTS))?,
            },
        };
        let characters = self.budget();
        let Found {
            seeds,
            mut notes,
            read_as,
        } = found;
        let total = seeds.len();
        let mut packing = Packing::new(ask, &question, &linker, seeker.texts, characters)?;
        packing.with_tests = self.request.selection.tests != super::super::ask::WithTests::No;
        let packed = packing.fill(seeds)?;
        linker.check()?;
        notes.extend(packed.notes.iter().cloned());
        let mut provenance = question.provenance();
        for why in compared.iter().flat_map(|one| one.provenance.incomplete_because()) {
            provenance.also_incomplete(why.clone());
        }
        let facts = Facts {
            between: compared.map(|compared| (compared.old.reference, compared.new.reference)),
            total,
            tokens: packed.n_characters.div_ceil(CHARACTERS_PER_TOKEN),
            max_tokens: characters / CHARACTERS_PER_TOKEN,
            left_out: packed.left_out.clone(),
            uncertain: packed.n_uncertain,
        };
        let rest = rest_line(&packed);
        let asked = format!("pack {characters} {}", self.ask.common.question);
        let key = CursorKey::new(question.view(), &asked);
        let n_before = self.after(&key)?.map_or(0, |(n_before, _)| n_before as usize);
        let rows: Vec<SearchRow> = packed
            .rows
            .into_iter()
            .skip(n_before)
            .map(Box::new)
            .map(SearchRow::Pack)
            .collect();
        let paging = Paging::numbered(key, n_before, rows.len(), usize::MAX);
        let mut page = Page::new(provenance, SearchFacts::Pack(facts), rows, paging);
        page.n_selected = Some(total);
        page.tail = Recorded::of(|out| rest.iter().for_each(|line| out.whole_line(line)));
        page.is_empty = page.rows.is_empty() && n_before == 0;
        page.notes
            .extend(read_as.map(|text| format!("query interpreted as: {text}")));
        page.notes.extend(notes);
        if total == 0 {
            page.notes.push("nothing found".to_owned());
            page.hint = question.why_nothing();
        }
        Ok(page)
    }

    /// Returns the budget in characters.
    fn budget(&self) -> usize {
        match self.ask.common.characters {
            Some(all) => all.saturating_sub(HEAD_CHARACTERS).max(all / 4),
            None => self.request.max_tokens.map_or(PACK_TOKENS, |tokens| tokens as usize) * CHARACTERS_PER_TOKEN,
        }
    }
}

/// Returns the line that says what was left out.
fn rest_line(packed: &Packed) -> Option<String> {
    let n_left: usize = packed.left_out.values().sum();
    let mut parts = Vec::new();
    if n_left > 0 {
        let kinds = packed.left_out.iter();
        let kinds: Vec<String> = kinds.map(|(kind, n)| count(*n, kind)).collect();
        parts.push(format!("{n_left} more: {}", kinds.join(", ")));
    }
    if packed.n_uncertain > 0 {
        parts.push(count(packed.n_uncertain, "uncertain reference"));
    }
    (!parts.is_empty()).then(|| parts.join(" · "))
}
