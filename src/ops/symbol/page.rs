//! The page of an answer: the definitions, their relations and latest changes, and the lines that mention them.

use std::time::Duration;

use serde::Serialize;

use super::mentions::{ReferenceOut, ReferencesOut};
use crate::edit::MIN_BLOB_DIGITS;
use crate::extract;
use crate::model::count::count;
use crate::model::start_of;
use crate::ops::ask::Ask;
use crate::ops::graph::{RelationsOut, relations};
use crate::ops::grouped::Grouped;
use crate::ops::history::EntryOut;
use crate::ops::history::latest::latest_changes;
use crate::ops::op::{Page, Paging, Row};
use crate::ops::paths::path_of;
use crate::ops::provenance::ProvenanceOut;
use crate::ops::question::Question;
use crate::ops::record::Past;
use crate::ops::sink::{Recorded, Sink, Style, Whole};
use crate::query::{FileFilter, FoundBy, FoundDefinition, MAX_MEANT, Source, Sources, SymbolOutcome, kind_name};
use crate::session::Result;

/// Maximum number of changes shown for a definition.
const N_CHANGES: usize = 10;
/// Time that a call waits for commits to be recorded.
const PATIENCE: Duration = Duration::from_secs(2);

/// The fields of the answer other than its rows.
#[derive(Debug, Serialize)]
pub(crate) struct Facts {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) found_by: Option<&'static str>,
    pub(super) near: Vec<String>,
    /// Total number of definitions and references.
    pub(super) total: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) references: Option<ReferencesOut>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) total_changes: Option<usize>,
}

/// A result.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum SymbolRow {
    Definition(Box<DefinitionOut>),
    Change(Box<Grouped<EntryOut>>),
    Reference(ReferenceOut),
}

#[derive(Debug, Serialize)]
pub(crate) struct DefinitionOut {
    id: String,
    name: String,
    kind: &'static str,
    container: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    signature: Option<String>,
    path: String,
    start_line: u32,
    end_line: u32,
    name_line: u32,
    language: &'static str,
    blob: String,
    doc: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<String>,
    /// What refers to it and what it calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    relations: Option<RelationsOut>,
    #[serde(skip)]
    shows_doc: bool,
    #[serde(skip)]
    is_command: bool,
}

/// The parts of definitions to show.
#[derive(Clone, Copy)]
pub(super) struct Shown {
    pub(super) signature: bool,
    pub(super) body: bool,
    pub(super) docs: bool,
    pub(super) refs: bool,
    pub(super) history: bool,
    pub(super) relations: bool,
}

/// The rows of a page. The position is `(n, 0)` for a definition, `(number of definitions, n)` for a change, and
/// `(number of definitions + 1, n)` for a reference.
pub(super) struct Rows {
    pub(super) rows: Vec<SymbolRow>,
    pub(super) paging: Paging,
    pub(super) left: usize,
}

impl Rows {
    /// Adds a row if it fits on the page. Otherwise the next page begins with it.
    pub(super) fn push(&mut self, position: (u32, u32), row: impl FnOnce() -> Result<SymbolRow>) -> Result<bool> {
        if self.left == 0 {
            self.paging.end.get_or_insert(position);
            return Ok(false);
        }
        self.left -= 1;
        self.paging.positions.push(position);
        self.rows.push(row()?);
        Ok(true)
    }
}

/// A search for definitions and its outcome.
pub(super) struct Lookup<'a> {
    pub(super) ask: &'a Ask<'a>,
    pub(super) question: &'a Question<'a>,
    pub(super) outcome: &'a SymbolOutcome,
    pub(super) filter: &'a FileFilter,
    pub(super) shown: Shown,
}

impl Lookup<'_> {
    pub(super) fn page(&self, mut provenance: ProvenanceOut, limit: usize) -> Result<Page<Facts, SymbolRow>> {
        let definitions = &self.outcome.definitions;
        let (first, skip) = self.question.after.unwrap_or_default();
        let n_definitions = definitions.len() as u32;
        let mut facts = Facts {
            found_by: (n_definitions > 0).then(|| found_by_name(self.outcome.found_by)),
            near: self.outcome.near.clone(),
            total: definitions.len(),
            references: None,
            total_changes: None,
        };
        let mut rows = Rows {
            rows: Vec::new(),
            paging: Paging {
                key: self.question.key(),
                ..Paging::default()
            },
            left: limit,
        };
        let sources = self.question.sources();
        let mut related = match self.relations() {
            Ok(related) => related.into_iter(),
            Err(error) => {
                provenance.also_incomplete(format!("the relations could not be read: {error:#}"));
                Vec::new().into_iter()
            }
        };
        for (number, found) in definitions.iter().enumerate().skip(first as usize) {
            let relations = related.next().flatten();
            let row = || {
                let definition = self.definition(&sources, found)?;
                Ok(SymbolRow::Definition(Box::new(DefinitionOut {
                    relations,
                    ..definition
                })))
            };
            if !rows.push((number as u32, 0), row)? {
                break;
            }
        }
        if self.shown.history && first <= n_definitions && definitions.len() <= MAX_MEANT {
            let skip = if first == n_definitions { skip } else { 0 };
            // The other parts of the answer do not depend on the history.
            let added = self.add_changes(skip, &mut facts, &mut rows);
            let gaps = added.unwrap_or_else(|error| vec![format!("the changes could not be read: {error:#}")]);
            gaps.into_iter().for_each(|gap| provenance.also_incomplete(gap));
        }
        if self.shown.refs && n_definitions > 0 {
            let skip = if first > n_definitions { skip } else { 0 };
            let gaps = self.add_references(skip, &mut facts, &mut rows)?;
            gaps.into_iter().for_each(|gap| provenance.also_incomplete(gap));
        }
        let is_unused = facts.references.as_ref().is_some_and(|found| found.files == 0);
        let mut page = Page::new(provenance, facts, rows.rows, rows.paging);
        page.n_selected = Some(page.facts.total);
        page.is_empty = definitions.is_empty();
        if is_unused {
            page.tail = Recorded::of(|out| out.line("no references"));
        }
        if self.shown.history && definitions.len() > MAX_MEANT {
            page.hint = Some(format!(
                "changes are shown only for up to {MAX_MEANT} definitions; choose one by its id"
            ));
        }
        Ok(page)
    }

    /// Returns the relations of each definition if they are few. They are left out while the index is being built.
    fn relations(&self) -> Result<Vec<Option<RelationsOut>>> {
        let (question, definitions) = (self.question, &self.outcome.definitions);
        let is_first_page = question.after.is_none();
        if !(self.shown.relations && is_first_page && definitions.len() <= MAX_MEANT && question.is_indexed()) {
            return Ok(Vec::new());
        }
        let links = question.links();
        let linker = question.linker(&links);
        let related = definitions.iter().map(|found| relations(question, &linker, found));
        let related = related.collect::<Result<Vec<_>>>()?;
        linker.check()?;
        // After an interruption, all further links are unknown.
        question.sources().go_on()?;
        Ok(related)
    }

    fn definition(&self, sources: &Sources<'_>, found: &FoundDefinition) -> Result<DefinitionOut> {
        let Shown {
            signature, body, docs, ..
        } = self.shown;
        let view = sources.view();
        let body = match body.then(|| sources.reader().read(found.file)).transpose()? {
            Some(Source::Bytes(bytes)) => {
                let text = bytes.get(found.range.clone()).unwrap_or_default();
                Some(String::from_utf8_lossy(text).into_owned())
            }
            _ => None,
        };
        let is_command = self.ask.common.characters.is_none();
        Ok(DefinitionOut {
            id: found.id.clone(),
            name: found.name.clone(),
            kind: kind_name(found.kind),
            container: found.container.clone(),
            signature: signature.then(|| found.signature.clone()),
            path: path_of(view, found.file),
            start_line: found.start_line,
            end_line: found.end_line,
            name_line: found.name_line,
            language: extract::language(view.lang(found.file)).map_or("text", |language| language.name),
            blob: view.file(found.file).entry().oid.to_string(),
            // The JSON output of the command line always includes the documentation.
            doc: found.doc.clone().filter(|_| docs || is_command),
            body,
            relations: None,
            shows_doc: docs,
            is_command,
        })
    }

    /// Adds the latest changes. Returns the reasons why they are incomplete.
    fn add_changes(&self, skip: u32, facts: &mut Facts, rows: &mut Rows) -> Result<Vec<String>> {
        let past = Past::of(self.ask, PATIENCE)?;
        let definitions = &self.outcome.definitions;
        let (mut changes, mut incomplete) = (Vec::new(), Vec::new());
        for found in definitions {
            let latest = latest_changes(&past, &found.id, N_CHANGES)?;
            *facts.total_changes.get_or_insert(0) += latest.total;
            let n_changes = match latest.total {
                total if total > N_CHANGES => format!("latest {N_CHANGES} of {total} changes:"),
                total => format!("{}:", count(total as u32, "change")),
            };
            let target = (definitions.len() > 1).then(|| found.id.clone());
            let of = target.as_ref().map_or_else(String::new, |id| format!("{id}: "));
            changes.extend(latest.entries.into_iter().map(|row| Grouped {
                row,
                target: target.clone(),
                heading: Recorded::of(|out| out.line(&format!("{of}{n_changes}"))),
            }));
            incomplete.extend(latest.incomplete);
        }
        incomplete.dedup();
        let mut before = None;
        for (number, mut change) in changes.into_iter().enumerate().skip(skip as usize) {
            let is_next = before
                .replace(change.target.clone())
                .is_some_and(|before| before == change.target);
            if is_next {
                change.heading = Recorded::default();
            }
            let position = (definitions.len() as u32, number as u32);
            if !rows.push(position, || Ok(SymbolRow::Change(Box::new(change))))? {
                break;
            }
        }
        Ok(incomplete)
    }
}

impl Row for SymbolRow {
    fn render(&self, out: &mut dyn Sink) {
        match self {
            Self::Definition(definition) => definition.render(out),
            Self::Change(entry) => {
                entry.heading.replay(out);
                entry.row.render(out);
            }
            Self::Reference(reference) => reference.render(out),
        }
    }

    fn bodies(&mut self) -> Vec<&mut Option<String>> {
        match self {
            Self::Definition(definition) => vec![&mut definition.body, &mut definition.doc],
            Self::Change(_) | Self::Reference(_) => Vec::new(),
        }
    }
}

impl DefinitionOut {
    fn render(&self, out: &mut dyn Sink) {
        let name = match &self.container {
            Some(container) => format!("{container}.{}", self.name),
            None => self.name.clone(),
        };
        out.span(Style::Path, &format!("{}:{}", self.path, self.name_line));
        out.span(Style::Fact, &format!(" {} ", self.kind));
        out.span(Style::Name, &name);
        out.span(Style::Fact, &format!(" {}-{}", self.start_line, self.end_line));
        if self.id != format!("{}#{name}", self.path) {
            out.span(Style::Fact, &format!(" id={}", self.id));
        }
        if self.body.is_some() && !self.is_command {
            out.span(Style::Fact, &format!(" blob={}", start_of(&self.blob, MIN_BLOB_DIGITS)));
        }
        out.end();
        if let Some(body) = &self.body {
            let out: &mut dyn Sink = &mut Whole(out);
            out.code(self.start_line, body, self.language, |_| Vec::new());
        } else {
            if let Some(signature) = &self.signature {
                out.line(&format!("    {}", signature.trim_end()));
            }
            for line in self.doc.iter().filter(|_| self.shows_doc).flat_map(|doc| doc.lines()) {
                out.whole_line(&format!("    {}", line.trim()));
            }
        }
        match &self.relations {
            Some(relations) if self.body.is_some() => relations.render(&mut Whole(out), self.is_command),
            Some(relations) => relations.render(out, self.is_command),
            None => {}
        }
    }
}

fn found_by_name(found_by: FoundBy) -> &'static str {
    match found_by {
        FoundBy::Name => "name",
        FoundBy::OtherSpelling => "other_spelling",
        FoundBy::Prefix => "prefix",
        FoundBy::Part => "part",
        FoundBy::Definition => "definition",
        FoundBy::Link => "link",
        FoundBy::Reference => "reference",
        FoundBy::Enclosing => "enclosing",
    }
}
