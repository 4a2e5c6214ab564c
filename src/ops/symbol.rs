//! `symbol`: finds definitions by name, location or id, with the lines that mention them and their latest changes.

use std::ops::ControlFlow;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use clap::{ArgMatches, Args, FromArgMatches};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::ProvenanceOut;
use super::ask::{Ask, Detail, FileSelection, KindSelection, path_text};
use super::doubts::doubts;
use super::graph::{RelationsOut, relations};
use super::grouped::{Grouped, server_not_asked};
use super::history::{EntryOut, latest_changes};
use super::notes::outdated;
use super::op::{Op, Page, Paging, Row};
use super::paths::inside;
use super::precise::Wanted;
use super::question::{About, Question};
use super::record::Past;
use super::sink::{Recorded, Sink, Style, Whole};
use crate::extract::{self, DefinitionKind};
use crate::link::DefId;
use crate::model::count::count;
use crate::model::{Hint, NameKind, quoted};
use crate::query::{
    FileFilter, FoundBy, FoundDefinition, GrepDetail, GrepRequest, LikelyQuery, MAX_MEANT, Pattern, PatternOptions,
    Source, Sources, SymbolOutcome, SymbolQuery, SymbolRequest, TargetError, Usage, UsageKind, grep, kind_by_name,
    kind_name, kind_names, nearest, parse_place, parse_target, split_position, symbols, usages,
};
use crate::session::{OpError, Result, Workspace};
use crate::snapshot::{FileId, View};

/// Default maximum number of results for a prefix of a name.
const PREFIX_LIMIT: usize = 100;
/// Default maximum number of references on a page.
const REFERENCES_OF_PAGE: usize = 100;
/// Maximum number of changes shown for a definition.
const N_CHANGES: usize = 10;
/// The note on definitions that were found although their names are spelt differently.
pub(super) const OTHER_SPELLING: &str = "no exact match; these definitions differ only in spelling";
/// Time that a call waits for commits to be recorded.
const PATIENCE: Duration = Duration::from_secs(2);

/// The request.
#[derive(Clone, Debug, Default, Serialize, Deserialize, clap::Args, schemars::JsonSchema)]
#[serde(default)]
#[command(after_help = "Examples:
  codescout symbol Parser::parse
  codescout symbol src/parser.rs#Parser.parse --body
  codescout symbol --at src/lib.rs:42:17
  codescout symbol parse_ --prefix --lang rust
  codescout symbol parse_query --refs --json
  codescout symbol parse_query --history")]
pub(crate) struct Symbol {
    /// Name, qualified or not: parse, Parser::parse, Parser.parse; or the id of a definition
    #[arg(required_unless_present_any = ["at", "id"], conflicts_with_all = ["at", "id"], value_parser = path_text())]
    #[schemars(description = "or at, or id")]
    name: Option<String>,
    /// Find the definition of the name at this position
    #[arg(long, value_name = "PATH:LINE[:COL]", conflicts_with = "id", value_parser = path_text())]
    #[schemars(description = "path:line[:col]")]
    at: Option<String>,
    /// Find the definition with this id
    #[arg(long, value_name = "ID", value_parser = path_text())]
    #[schemars(description = "")]
    id: Option<String>,
    /// Match names that begin with NAME; if there are none, names that contain it
    #[arg(long, conflicts_with_all = ["at", "id"])]
    #[schemars(description = "match names with this prefix")]
    prefix: bool,
    /// Ask a language server, in a repository that you trust: what the name at the position means, or what refers to
    /// the definition
    #[arg(long, conflicts_with = "prefix")]
    #[schemars(description = "")]
    precise: bool,
    #[command(flatten)]
    #[schemars(with = "Vec<Included>", description = "")]
    include: Include,
    #[command(flatten)]
    #[serde(flatten)]
    files: FileSelection,
    #[command(flatten)]
    #[serde(flatten)]
    kinds: KindSelection,
}

/// The parts of an answer besides the definitions' places.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
struct Include(Vec<Included>);

/// A part of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Included {
    /// Signature
    Signature,
    /// Full text
    Body,
    /// Documentation
    Docs,
    /// Lines that mention the name
    Refs,
    /// Latest changes
    History,
}

/// The flags that select parts on the command line.
#[derive(clap::Args)]
struct IncludeFlags {
    /// Show the full text of each definition
    #[arg(short, long)]
    body: bool,
    /// Show the documentation of each definition
    #[arg(short, long, alias = "doc")]
    docs: bool,
    /// Show the lines that mention the name
    #[arg(long)]
    refs: bool,
    /// Show the latest commits that changed the definition
    #[arg(long)]
    history: bool,
}

impl Args for Include {
    fn augment_args(command: clap::Command) -> clap::Command {
        IncludeFlags::augment_args(command)
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        IncludeFlags::augment_args_for_update(command)
    }
}

impl FromArgMatches for Include {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let flags = IncludeFlags::from_arg_matches(matches)?;
        let given = [
            (flags.body, Included::Body),
            (flags.docs, Included::Docs),
            (flags.refs, Included::Refs),
            (flags.history, Included::History),
        ];
        Ok(Self(
            given
                .into_iter()
                .filter_map(|(is_given, part)| is_given.then_some(part))
                .collect(),
        ))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// The fields of the answer other than its rows.
#[derive(Debug, Serialize)]
struct Facts {
    #[serde(skip_serializing_if = "Option::is_none")]
    found_by: Option<&'static str>,
    near: Vec<String>,
    /// Total number of definitions and references.
    total: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    references: Option<ReferencesOut>,
    #[serde(skip_serializing_if = "Option::is_none")]
    total_changes: Option<usize>,
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

/// The numbers of lines that mention a name, in code and in text.
#[derive(Debug, Default, Serialize)]
struct ReferencesOut {
    syntactic: u32,
    textual: u32,
    files: u32,
}

/// A line that mentions a name.
#[derive(Debug, Serialize)]
pub(crate) struct ReferenceOut {
    path: String,
    line: u32,
    kind: &'static str,
    text: String,
    /// A line that is shown before the reference.
    #[serde(skip)]
    heading: Option<String>,
}

/// The lines that mention a name.
#[derive(Debug, Default)]
struct References {
    counts: ReferencesOut,
    /// Mentions in code first, then mentions in text, each in path order.
    listed: Vec<ReferenceOut>,
    /// The reasons why the list is incomplete.
    incomplete: Vec<String>,
}

/// The parts of definitions to show.
#[derive(Clone, Copy)]
struct Shown {
    signature: bool,
    body: bool,
    docs: bool,
    refs: bool,
    history: bool,
    relations: bool,
}

/// The rows of a page. The position is `(n, 0)` for a definition, `(number of definitions, n)` for a change, and
/// `(number of definitions + 1, n)` for a reference.
struct Rows {
    rows: Vec<SymbolRow>,
    paging: Paging,
    left: usize,
}

impl Rows {
    /// Adds a row if it fits on the page. Otherwise the next page begins with it.
    fn push(&mut self, position: (u32, u32), row: impl FnOnce() -> Result<SymbolRow>) -> Result<bool> {
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

impl Op for Symbol {
    type Row = SymbolRow;

    fn run(&self, ask: &Ask<'_>) -> Result<Page<SymbolRow>> {
        self.check()?;
        let kinds = self.kinds.kinds()?;
        let mut question = Question::new(ask, &About::files(&self.files))?;
        let sought = self.sought(ask, &question)?;
        let has_all = question.fill(&sought)?;
        let request = SymbolRequest {
            query: self.query(ask, &question)?,
            filter: question.filter.clone(),
            kinds,
        };
        let mut outcome = self.find(&question, &request)?;
        let wanted = wanted(&outcome).filter(|_| self.precise);
        if let Some(wanted) = wanted {
            question.ask_server(wanted)?;
            outcome = self.find(&question, &request)?;
        }
        let shown = self.shown(ask);
        // Every file that defines a name contains it with the exact spelling.
        let is_complete = has_all && sought.name.is_some() && outcome.found_by == FoundBy::Name;
        let provenance = if is_complete && !outcome.definitions.is_empty() && !shown.refs {
            question.provenance_of_files()
        } else {
            question.provenance()
        };
        let lookup = Lookup {
            ask,
            question: &question,
            outcome: &outcome,
            filter: &request.filter,
            shown,
        };
        let default = if self.prefix { PREFIX_LIMIT } else { usize::MAX };
        let mut page = lookup.page(provenance, ask.limit(default))?;
        if self.precise && wanted.is_none() && !outcome.definitions.is_empty() {
            page.notes.push(server_not_asked(outcome.definitions.len()));
        }
        self.explain(ask, &question, &request.query, &outcome, &mut page);
        page.notes.extend(self.doubts(&question, &outcome)?);
        for found in outcome
            .definitions
            .iter()
            .filter(|_| outcome.definitions.len() <= MAX_MEANT)
        {
            page.notes.extend(outdated(ask, &found.id)?);
        }
        Ok(page)
    }
}

/// Returns what a language server is asked for: the meaning of the name at a position, or the references to a definition.
fn wanted(outcome: &SymbolOutcome) -> Option<Wanted> {
    match (&*outcome.references, &*outcome.definitions) {
        ([(file, at), ..], _) => Some(Wanted::Reference(*file, *at)),
        ([], [found]) => Some(Wanted::References(DefId {
            file: found.file,
            index: found.index,
        })),
        _ => None,
    }
}

/// A search for definitions and its outcome.
struct Lookup<'a> {
    ask: &'a Ask<'a>,
    question: &'a Question<'a>,
    outcome: &'a SymbolOutcome,
    filter: &'a FileFilter,
    shown: Shown,
}

impl Lookup<'_> {
    fn page(&self, mut provenance: ProvenanceOut, limit: usize) -> Result<Page<SymbolRow>> {
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
        let mut page = Page::new(provenance, rows.rows, rows.paging).with_facts(&facts)?;
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

    /// Adds lines that mention the name. Returns the reasons why they are incomplete.
    fn add_references(&self, skip: u32, facts: &mut Facts, rows: &mut Rows) -> Result<Vec<String>> {
        let n_wanted = match self.ask.common.limit {
            Some(_) => rows.left,
            None => rows.left.min(REFERENCES_OF_PAGE),
        };
        let max = (skip as usize).saturating_add(n_wanted);
        let sources = self.question.sources();
        let found = references(&sources, self.outcome, self.filter, max, self.ask.call.ctx.interrupt)?;
        let counts = &found.counts;
        let n_references = (counts.syntactic + counts.textual) as usize;
        let mut heading = Some(format!(
            "{} to the name and {} in text, in {}:",
            count(counts.syntactic, "reference"),
            count(counts.textual, "mention"),
            count(counts.files, "file")
        ));
        let section = self.outcome.definitions.len() as u32 + 1;
        let n_listed = found.listed.len();
        for (number, mut reference) in found.listed.into_iter().enumerate().skip(skip as usize) {
            reference.heading = heading.take();
            rows.push((section, number as u32), || Ok(SymbolRow::Reference(reference)))?;
        }
        if n_listed < n_references {
            rows.paging.end.get_or_insert((section, n_listed as u32));
        }
        facts.total += n_references;
        facts.references = Some(found.counts);
        Ok(found.incomplete)
    }
}

impl Symbol {
    fn check(&self) -> Result<()> {
        let given = [&self.name, &self.at, &self.id];
        let n_given = given
            .into_iter()
            .flatten()
            .filter(|text| !text.trim().is_empty())
            .count();
        if n_given == 1 {
            return Ok(());
        }
        Err(OpError::new(
            "exactly one of name, at and id is required",
            Hint::each("give a name, --at or --id", "use name to find a definition by its name"),
        )
        .with_retry(json!({"tool": "symbol", "arguments": {"name": "main"}})))
    }

    /// Returns the name or id as given.
    fn named(&self) -> &str {
        self.name.as_deref().or(self.id.as_deref()).unwrap_or_default()
    }

    fn shown(&self, ask: &Ask<'_>) -> Shown {
        let Include(parts) = &self.include;
        let has = |part| parts.contains(&part);
        let detail = ask.common.detail;
        let is_command = ask.common.characters.is_none();
        let is_default = parts.is_empty() && !is_command;
        Shown {
            signature: !is_default || detail >= Detail::Outline,
            body: has(Included::Body) || is_default && detail == Detail::Full,
            docs: has(Included::Docs) || is_default && detail == Detail::Preview,
            refs: has(Included::Refs),
            history: has(Included::History),
            relations: !self.prefix && (is_command || detail >= Detail::Outline),
        }
    }

    /// Selects files to read while the index is being built: files that contain the name, or the named file and files
    /// with the names at the location.
    fn sought(&self, ask: &Ask<'_>, question: &Question<'_>) -> Result<LikelyQuery> {
        let workspace = &ask.session.workspace;
        let find = |path: &str| question.seen.view.find_text(path);
        if let Some(place) = &self.at {
            let place = inside(workspace, place);
            let Some((file, line)) = split_position(&place).and_then(|(path, line, _)| Some((find(path)?, line)))
            else {
                return Ok(LikelyQuery::default());
            };
            let mut text = String::new();
            if question.seen.building.is_some() {
                // The requested line is one of the first six.
                let around = question.text_around(file, line)?;
                text = around.lines().take(6).collect::<Vec<_>>().join(" ");
            }
            return Ok(LikelyQuery {
                files: vec![file],
                text,
                name: None,
            });
        }
        let named = inside(workspace, self.named());
        let files = named.rmatch_indices('#').find_map(|(at, _)| find(&named[..at]));
        let bare = named
            .rsplit(|letter: char| !(letter.is_alphanumeric() || letter == '_'))
            .next();
        let bare = bare.unwrap_or_default().to_owned();
        Ok(LikelyQuery {
            files: files.into_iter().collect(),
            // For names with another spelling, and for names that contain or begin with it.
            text: bare.clone(),
            name: (!bare.is_empty() && !self.prefix).then_some(bare),
        })
    }

    fn query(&self, ask: &Ask<'_>, question: &Question<'_>) -> Result<SymbolQuery> {
        let workspace = &ask.session.workspace;
        if let Some(place) = &self.at {
            return match parse_place(question.view(), &inside(workspace, place)) {
                Err(_) if ask.visibility().hides_target(place) => Err(OpError::hidden(place)),
                found => Ok(found?),
            };
        }
        Ok(if self.prefix {
            SymbolQuery::Prefix(self.named().to_owned())
        } else {
            SymbolQuery::Named(inside(workspace, self.named()).into_owned())
        })
    }

    fn find(&self, question: &Question<'_>, request: &SymbolRequest) -> Result<SymbolOutcome> {
        // While the index is being built, the definition may not be indexed yet.
        let links = (self.at.is_some() && question.is_indexed()).then(|| question.links());
        let linker = links.as_deref().map(|links| question.linker(links));
        Ok(symbols(&question.sources(), request, linker.as_ref())?)
    }

    /// Adds notes on how the definitions were found, or the reason for an empty answer.
    /// Returns notes about files that may have more to say about the name.
    fn doubts(&self, question: &Question<'_>, outcome: &SymbolOutcome) -> Result<Vec<String>> {
        let found = outcome.definitions.first().map(|found| found.name.as_str());
        let typed = self.named().rsplit(['#', '.', ':', '/']).next().unwrap_or_default();
        let name = found.unwrap_or(typed);
        if self.prefix || name.is_empty() || question.after.is_some() || !question.is_indexed() {
            return Ok(Vec::new());
        }
        let links = question.links();
        doubts(question, &question.linker(&links), name, found.is_some())
    }

    fn explain(
        &self,
        ask: &Ask<'_>,
        question: &Question<'_>,
        query: &SymbolQuery,
        outcome: &SymbolOutcome,
        page: &mut Page<SymbolRow>,
    ) {
        if !outcome.definitions.is_empty() {
            if outcome.found_by == FoundBy::OtherSpelling {
                page.notes.push(OTHER_SPELLING.to_owned());
            }
            return;
        }
        if !question.is_indexed() {
            page.notes.push("nothing found in the files indexed so far".to_owned());
            page.hint = Some("try again later, or use search mode=regex, which reads every file now".to_owned());
            return;
        }
        let view = question.view();
        let error = match (query, self.named().rsplit_once('#')) {
            (SymbolQuery::At { file, line, .. }, _) => TargetError::Nowhere {
                path: path_of(view, *file),
                line: *line,
            },
            (_, Some((path, name))) if view.find_text(&inside(&ask.session.workspace, path)).is_some() => {
                TargetError::unknown_in(path, name, &outcome.near)
            }
            _ => TargetError::unknown(self.named(), &outcome.near),
        };
        page.explain(ask, error);
        if let Some(why) = question.why_nothing() {
            page.hint = Some(why);
        }
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
            out.span(Style::Fact, &format!(" blob={}", self.blob));
        }
        out.end();
        if let Some(body) = &self.body {
            out.numbered(self.start_line, body);
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

impl ReferenceOut {
    fn render(&self, out: &mut dyn Sink) {
        if let Some(heading) = &self.heading {
            out.line(heading);
        }
        out.span(Style::Path, &format!("{}:{}", self.path, self.line));
        out.span(Style::Fact, &format!(" {} ", self.kind));
        out.line(self.text.trim());
    }
}

/// Returns the kinds with the given names.
pub(crate) fn definition_kinds(names: &[String]) -> Result<Vec<DefinitionKind>, OpError> {
    let known = |name: &String| {
        kind_by_name(name).ok_or_else(|| {
            let near = nearest(name, kind_names());
            let hint = match near.as_slice() {
                [] => format!("kinds are {}", kind_names().collect::<Vec<_>>().join(", ")).into(),
                near => Hint::did_you_mean(near),
            };
            OpError::new(format!("unknown kind {name}"), hint).for_misspelt(NameKind::DefinitionKind, name, near)
        })
    };
    names.iter().map(known).collect()
}

/// Parses a location, a name or an id as typed into a query. The flag is true for a location.
pub(crate) fn name_or_place(workspace: &Workspace, view: &View, typed: &str) -> Result<(SymbolQuery, bool)> {
    let query = parse_target(view, &inside(workspace, typed));
    let is_place = matches!(query, SymbolQuery::At { .. });
    Ok((query, is_place))
}

pub(super) fn path_of(view: &View, file: FileId) -> String {
    quoted(view.file(file).path).into_owned()
}

/// Returns every line that contains one of the found names, except lines that define it. Lists the first `max_listed`.
fn references(
    sources: &Sources<'_>,
    outcome: &SymbolOutcome,
    filter: &FileFilter,
    max_listed: usize,
    interrupt: &AtomicBool,
) -> Result<References> {
    let mut names: Vec<&str> = outcome.definitions.iter().map(|found| found.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let mut found = References::default();
    let mut textual = Vec::new();
    for name in names {
        let options = PatternOptions {
            whole_words: true,
            literal: true,
            ..PatternOptions::default()
        };
        let request = GrepRequest {
            pattern: Pattern::new(name, options)?,
            filter: filter.clone(),
            detail: GrepDetail::Lines,
            before: 0,
            after: 0,
            limit: usize::MAX,
            from: None,
        };
        let mut failed = Ok(());
        let outcome = grep(sources, &request, interrupt, &mut |matches| {
            match usages(sources, matches.file, name, &matches.lines) {
                Ok(usages) => found.add(sources.view(), usages, max_listed, &mut textual),
                Err(error) => failed = Err(error),
            }
            match failed {
                Ok(()) => ControlFlow::Continue(()),
                Err(_) => ControlFlow::Break(()),
            }
        });
        failed?;
        if outcome.interrupted {
            found
                .incomplete
                .push("stopped at the time limit before all files were searched for references".to_owned());
        }
        if !outcome.unread.is_empty() {
            found
                .incomplete
                .push(format!("{} could not be read", count(outcome.unread.len(), "file")));
        }
    }
    textual.truncate(max_listed - found.listed.len());
    found.listed.append(&mut textual);
    Ok(found)
}

impl References {
    fn add(&mut self, view: &View, usages: Vec<Usage>, max_listed: usize, textual: &mut Vec<ReferenceOut>) {
        self.counts.files += u32::from(!usages.is_empty());
        for usage in usages {
            let (count, list) = match usage.kind {
                UsageKind::Text => (&mut self.counts.textual, &mut *textual),
                UsageKind::Reference(_) | UsageKind::Import => (&mut self.counts.syntactic, &mut self.listed),
            };
            *count += 1;
            if list.len() < max_listed {
                list.push(ReferenceOut {
                    path: path_of(view, usage.file),
                    line: usage.line,
                    kind: usage.kind.name(),
                    text: usage.text,
                    heading: None,
                });
            }
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
