//! Joins the answers about several definitions with one name into one answer.

use serde::Serialize;

use super::ask::Ask;
use super::op::{Page, Paging, Row};
use super::sink::{Recorded, Sink, Style};
use crate::model::count::count;
use crate::query::CursorKey;
use crate::session::{OpError, Result};

/// A result, and the definition that it is about if the answer is about several.
#[derive(Debug, Serialize)]
pub(crate) struct Grouped<R> {
    #[serde(flatten)]
    pub(crate) row: R,
    /// The id of the definition.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) target: Option<String>,
    /// The lines above the result.
    #[serde(skip)]
    pub(crate) heading: Recorded,
}

impl<R> From<R> for Grouped<R> {
    fn from(row: R) -> Self {
        Self {
            row,
            target: None,
            heading: Recorded::default(),
        }
    }
}

impl<R: Row> Row for Grouped<R> {
    const CONTINUES: bool = R::CONTINUES;
    const IS_SPACED: bool = R::IS_SPACED;
    const IS_LISTED: bool = R::IS_LISTED;

    fn is_apart(&self) -> bool {
        !self.heading.is_empty() || self.row.is_apart()
    }

    fn render(&self, out: &mut dyn Sink) {
        self.heading.replay(out);
        self.row.render(out);
    }

    fn bodies(&mut self) -> Vec<&mut Option<String>> {
        self.row.bodies()
    }

    fn was_cut(&mut self) {
        self.row.was_cut();
    }

    fn raw(&self) -> Option<(&[u8], &'static str)> {
        self.row.raw()
    }
}

/// The fields of an answer about one definition, or about several.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum GroupedFacts<F> {
    One(F),
    Several {
        #[serde(flatten)]
        all: F,
        /// Those about each definition.
        groups: Vec<F>,
    },
}

/// The range of rows to return.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    /// Number of rows on earlier pages.
    pub(crate) skip: usize,
    /// Maximum number of rows.
    pub(crate) limit: usize,
}

impl Part {
    /// All rows.
    pub(crate) const ALL: Self = Self {
        skip: 0,
        limit: usize::MAX,
    };

    /// Returns the rows of a list.
    pub(crate) fn of<T>(self, rows: impl IntoIterator<Item = T>) -> Vec<T> {
        rows.into_iter().skip(self.skip).take(self.limit).collect()
    }
}

/// Answers for each definition of `ids`. `answer` gets the index of the definition and the range of its rows. The answer
/// has the fields `facts`, which get the number of rows, and in `groups` those about each definition. A definition that
/// cannot be answered for becomes a note, unless it is the same with all.
pub(crate) fn answer_each<F, R: Row>(
    ids: &[String],
    part: Part,
    key: impl Into<Option<CursorKey>>,
    facts: impl FnOnce(usize) -> F,
    mut answer: impl FnMut(usize, Part) -> Result<Page<F, R>>,
) -> Result<Page<GroupedFacts<F>, Grouped<R>>> {
    let mut all = Page::new(None, (), Vec::new(), Paging::default());
    let (mut n_all, mut groups, mut failed) = (0, Vec::new(), Vec::new());
    let mut heading = Recorded::default();
    for (at, id) in ids.iter().enumerate() {
        let own = Part {
            skip: part.skip.saturating_sub(n_all),
            limit: part.limit - all.rows.len(),
        };
        let page = match answer(at, own) {
            Ok(page) => page,
            Err(error) if error.is_interrupted() => return Err(error),
            Err(error) => {
                failed.push((id, error));
                continue;
            }
        };
        let n_rows = page.n_rows();
        n_all += n_rows;
        if n_all <= part.skip && n_rows > 0 {
            heading = Recorded::default();
        } else if n_all - n_rows < part.skip.saturating_add(part.limit) {
            add_heading(&mut heading, id, &page);
        }
        if !(page.is_empty && page.head.is_empty()) {
            let new = page.notes.into_iter().filter(|note| !all.notes.contains(note));
            all.notes.extend(new.collect::<Vec<_>>());
        }
        all.is_empty &= page.is_empty;
        all.is_unfinished |= page.is_unfinished;
        all.cannot_tell |= page.cannot_tell;
        all.hint = all.hint.or(page.hint);
        match (&mut all.provenance, page.provenance) {
            (Some(all), Some(own)) => all.also(own),
            (all, own) => *all = all.take().or(own),
        }
        all.rows.extend(page.rows.into_iter().map(|row| Grouped {
            row,
            target: Some(id.clone()),
            heading: std::mem::take(&mut heading),
        }));
        groups.push(page.facts);
    }
    if groups.is_empty()
        && let Some((_, error)) = failed.pop()
    {
        return Err(error);
    }
    all.notes
        .extend(failed.iter().map(|(id, error)| format!("{id}: {error}")));
    if !all.rows.is_empty() && !heading.is_empty() {
        all.tail = Recorded::of(|out| {
            out.line("");
            heading.replay(out);
        });
    } else {
        all.tail = heading;
    }
    all.paging = Paging::numbered(key, part.skip, all.rows.len(), part.limit);
    if part.skip + all.rows.len() < n_all {
        all.paging.end = Some(((part.skip + all.rows.len()) as u32, 0));
    }
    all.n_selected = Some(n_all);
    let all_facts = facts(n_all);
    Ok(all.map(|()| GroupedFacts::Several { all: all_facts, groups }, |row| row))
}

/// Adds the lines above the results about a definition: its id, and the head of the answer or the reason why it is empty.
fn add_heading<F, R>(heading: &mut Recorded, id: &str, page: &Page<F, R>) {
    let out: &mut dyn Sink = heading;
    out.plain("definition ");
    out.span(Style::Path, id);
    if page.head.is_empty() {
        let why = page.notes.join("; ");
        let why = Some(why).filter(|why| page.is_empty && !why.is_empty());
        out.line(&why.map_or_else(String::new, |why| format!(": {why}")));
    } else {
        out.plain(": ");
        page.head.replay(out);
    }
}

impl<F, R> Page<F, R> {
    /// Converts an answer about one definition.
    pub(crate) fn grouped(self) -> Page<GroupedFacts<F>, Grouped<R>> {
        self.map(GroupedFacts::One, Grouped::from)
    }

    /// Returns the number of rows on all pages.
    pub(crate) fn n_rows(&self) -> usize {
        self.n_selected.unwrap_or(self.rows.len())
    }

    /// Adds the explanation of a page without answer.
    pub(crate) fn explain(&mut self, ask: &Ask<'_>, error: impl Into<OpError>) {
        let error = error.into();
        self.notes.push(error.message);
        self.hint = match ask.common.characters {
            None => error.hint.shell,
            Some(_) => error.hint.tools,
        };
    }
}

/// Explains why no language server was asked about a name of several definitions.
pub(crate) fn server_not_asked(n_definitions: usize) -> String {
    let n = count(n_definitions, "definition");
    format!("no language server was asked, because {n} are meant; choose one by its id")
}
