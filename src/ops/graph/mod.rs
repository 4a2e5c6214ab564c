//! `graph`: relations between definitions and between files: who calls what, what imports what.

mod account;
mod by_package;
mod degrees;
mod diagram;
mod edges;
mod facts;
mod files;
mod flow;
mod impact;
mod of_file;
mod places;
mod relations;
mod routes;
mod rows;
mod since;
mod unreferenced;
mod whole;

use serde::{Deserialize, Serialize};
use serde_json::json;

use self::diagram::draw;
pub(crate) use self::edges::is_call;
use self::facts::{ChoiceFacts, GraphFacts};
pub(crate) use self::impact::{Affected, ImpactTotals, ReachedOut, affected, imports_of, is_test, qualified, users};
pub(crate) use self::of_file::{DefinitionLink, FileLinks, file_links};
pub(crate) use self::relations::{RelationsOut, n_callers, relations};
use self::rows::DefinitionOut;
pub(crate) use self::rows::{EdgeOut, GraphRow};
use super::ask::{Ask, FileSelection, WithTests, path_text};
use super::doubts::{doubts, generated};
use super::grouped::{Grouped, GroupedFacts, Part, answer_each, server_not_asked};
use super::op::{Op, Page, PageOf, Paging};
use super::paths::{name_or_place, path_of};
use super::precise::Wanted;
use super::question::{About, Question};
use crate::extract;
use crate::link::Linker;
use crate::model::Hint;
use crate::query::{
    FoundBy, FoundDefinition, MAX_MEANT, OTHER_SPELLING, SymbolOutcome, SymbolQuery, TargetError, meant,
};
use crate::session::{OpError, Result};
use crate::snapshot::FileId;

/// Default maximum number of results.
const DEFAULT_LIMIT: usize = 100;

/// The request.
#[derive(Clone, Debug, Default, Serialize, Deserialize, clap::Args, schemars::JsonSchema)]
#[serde(default)]
#[command(after_help = "Examples:
  codescout graph callers Parser.parse --depth 3
  codescout graph refs src/parser.rs#Parser.parse --candidates
  codescout graph path main Parser.parse --format mermaid
  codescout graph impact Parser.parse
  codescout graph impact src/parse.rs
  codescout graph impact main...HEAD
  codescout graph flow main --depth 5
  codescout graph callers Parser.parse --since v1.0
  codescout graph importers src/parser.rs
  codescout graph export --lang rust")]
pub(crate) struct Graph {
    /// Relation to show
    #[arg(value_enum)]
    #[schemars(description = "default callers")]
    op: GraphOp,
    /// Definition: NAME (of up to five), Outer.NAME, an id or PATH:LINE[:COL]; for imports, importers and impact a
    /// file or directory; for impact also A..B
    #[arg(value_parser = path_text())]
    #[schemars(description = "name, id, path:line, path")]
    target: Option<String>,
    /// Definition at the end of a path
    #[arg(value_parser = path_text())]
    #[schemars(description = "end of op=path")]
    to: Option<String>,
    /// Number of steps from TARGET; 0 for all [default: 1, of flow 3, of impact all]
    #[arg(long, value_name = "N")]
    #[schemars(description = "0: all")]
    depth: Option<u32>,
    /// Also list possible references (same name, target unknown)
    #[arg(long)]
    #[schemars(description = "")]
    candidates: bool,
    /// With callers, callees and refs: ask a language server, in a repository that you trust
    #[arg(long, conflicts_with = "since")]
    #[schemars(description = "")]
    precise: bool,
    /// Compare with this revision: list only what was added or removed since
    #[arg(long, value_name = "REV")]
    #[schemars(description = "rev: only changes")]
    since: Option<String>,
    /// Format of the output
    #[arg(long, value_enum, default_value_t)]
    #[schemars(description = "")]
    format: Format,
    /// With impact: print only the test files, or the ids of the tests, for another program. Exit status: 0 if there are
    /// tests, 1 if there are certainly none, 3 if all tests must be run, 2 on error
    #[arg(long, value_enum, value_name = "WHAT", num_args = 0..=1, require_equals = true, default_missing_value = "files", hide_short_help = true)]
    #[serde(skip)]
    ci: Option<CiList>,
    #[command(flatten)]
    #[serde(flatten)]
    pub(crate) files: FileSelection,
}

/// What is printed for another program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum CiList {
    /// Paths of files with tests
    Files,
    /// Ids of tests: PATH#NAME
    Ids,
}

/// A relation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
enum GraphOp {
    /// Calls of a definition
    #[default]
    Callers,
    /// Calls in a definition
    Callees,
    /// References to a definition
    Refs,
    /// Types that extend or implement a type, or methods that override a method
    Implementations,
    /// What depends on a definition, on those of a file or directory, or on the changes of A..B: tests and definitions
    Impact,
    /// Shortest chain of calls from TARGET to TO
    Path,
    /// What a definition calls, as a tree; without TARGET the entry points
    Flow,
    /// Where programs start: what code outside of the repository runs
    Entrypoints,
    /// Definitions that nothing refers to
    Unused,
    /// What files import
    Imports,
    /// Imports of TARGET in other files
    Importers,
    /// Files that import each other
    Cycles,
    /// Files that most other files use, with the definitions that they refer to
    Hubs,
    /// Code files that no other file uses and that use no other file
    Orphans,
    /// Routes of web frameworks and what answers them; with candidates also the calls that may request them
    Routes,
    /// Numbers of references by language and by how they were resolved
    Stats,
    /// Every reference and what it means, one JSON object per line
    #[serde(skip)]
    Export,
}

/// The format of the output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Format {
    /// One line per result
    #[default]
    Text,
    /// Mermaid diagram
    Mermaid,
    /// Graphviz diagram
    Dot,
    /// SVG picture
    Svg,
}

/// A request that is being answered.
struct Lookup<'a> {
    request: &'a Graph,
    ask: &'a Ask<'a>,
    question: &'a Question<'a>,
    linker: &'a Linker<'a>,
    /// The rows of the answer.
    part: Part,
}

/// The result of looking up the definitions that a request is about.
enum Meant {
    /// Each that it can be about. A path is about two definitions, and some relations are about none.
    Each(Vec<Vec<FoundDefinition>>),
    /// No definition, or too many.
    Page(Box<Page<GraphFacts, GraphRow>>),
}

impl Op for Graph {
    type Facts = GroupedFacts<GraphFacts>;
    type Row = Grouped<GraphRow>;

    fn run(&self, ask: &Ask<'_>) -> Result<PageOf<Self>> {
        self.check()?;
        let mut page = match &self.since {
            Some(since) => self.compared(ask, since)?,
            None => {
                let mut question = Question::new(ask, &About::indexed_files(&self.files))?;
                if self.precise {
                    self.ask_server(ask, &mut question)?;
                }
                self.answer(ask, &question)?
            }
        };
        if self.format != Format::Text && !is_choice(&page) {
            draw(&mut page, ask.limit(DEFAULT_LIMIT), self.format);
        }
        Ok(page)
    }
}

impl Graph {
    /// Asks a language server about the target. Does nothing if the target is not one definition.
    fn ask_server(&self, ask: &Ask<'_>, question: &mut Question<'_>) -> Result<()> {
        let links = question.links();
        let linker = question.linker(&links);
        let lookup = self.lookup(ask, question, &linker, Part::ALL);
        let Meant::Each(each) = lookup.meant()? else {
            return Ok(());
        };
        let [one] = each.as_slice() else { return Ok(()) };
        let Some(of) = one.first().map(FoundDefinition::def) else {
            return Ok(());
        };
        question.ask_server(match self.op {
            GraphOp::Callees => Wanted::Uses(of),
            _ => Wanted::References(of),
        })
    }

    fn lookup<'a>(
        &'a self,
        ask: &'a Ask<'a>,
        question: &'a Question<'a>,
        linker: &'a Linker<'a>,
        part: Part,
    ) -> Lookup<'a> {
        Lookup {
            request: self,
            ask,
            question,
            linker,
            part,
        }
    }

    /// Answers the request for the files of a question.
    fn answer(&self, ask: &Ask<'_>, question: &Question<'_>) -> Result<PageOf<Self>> {
        let links = question.links();
        let linker = question.linker(&links);
        let part = Part {
            skip: question.n_before(),
            limit: ask.limit(DEFAULT_LIMIT),
        };
        let lookup = self.lookup(ask, question, &linker, part);
        let meant = lookup.meant()?;
        let doubts = lookup.doubts(&meant)?;
        let mut page = match meant {
            Meant::Page(page) => page.grouped(),
            Meant::Each(each) => match each.as_slice() {
                [one] => lookup.about(one)?.grouped(),
                several => {
                    let ids: Vec<String> = several.iter().map(|ends| id_of(Some(ends))).collect();
                    let facts = |total| GraphFacts::Several { total };
                    let mut page = answer_each(&ids, part, question.key(), facts, |at, part| {
                        Lookup { part, ..lookup }.about(&several[at])
                    })?;
                    page.notes.extend(self.precise.then(|| server_not_asked(ids.len())));
                    page
                }
            },
        };
        linker.check()?;
        page.notes.extend(doubts);
        // "None" would be a guess.
        page.is_unfinished |= page.is_empty && question.lacks_server();
        page.notes.extend(ask.session.facts().1);
        if let [first, others @ ..] = links.broken_manifests() {
            page.notes.push(match others.len() {
                0 => format!("not parsed, so the modules that it names are unknown: {first}"),
                n => format!("not parsed, so the modules that they name are unknown: {first} and {n} more"),
            });
        }
        Ok(page)
    }

    /// Returns true if the command line prints all links.
    pub(crate) fn is_export(&self) -> bool {
        self.op == GraphOp::Export
    }

    fn check(&self) -> Result<()> {
        if self.ci.is_some() && self.op != GraphOp::Impact {
            return Err(OpError::new("--ci prints tests", "use it with: graph impact A..B"));
        }
        let is_about_references = matches!(self.op, GraphOp::Callers | GraphOp::Callees | GraphOp::Refs);
        if self.precise && (!is_about_references || self.since.is_some()) {
            return Err(OpError::new(
                "a language server is asked about callers, callees and refs in the worktree",
                Hint::each("omit --precise", "omit precise"),
            ));
        }
        if self.ci.is_some() && (self.depth.is_some() || self.files.tests != WithTests::Any) {
            return Err(OpError::new(
                "--ci prints all tests that are reached",
                "omit --depth and --tests",
            ));
        }
        let is_about_all = matches!(
            self.op,
            GraphOp::Entrypoints
                | GraphOp::Unused
                | GraphOp::Cycles
                | GraphOp::Hubs
                | GraphOp::Orphans
                | GraphOp::Routes
                | GraphOp::Stats
        );
        if let (Some(target), true) = (&self.target, is_about_all) {
            return Err(OpError::new(
                format!("this relation has no target: {target}"),
                Hint::each(
                    format!("to select files, use --path {target}"),
                    format!("to select files, use path: {target}"),
                ),
            ));
        }
        if let Some(to) = self.to.as_ref().filter(|_| self.op != GraphOp::Path) {
            return Err(OpError::new(
                format!("only a path has a second definition: {to}"),
                Hint::each("use graph path, or omit it", "use op path, or omit it"),
            ));
        }
        if self.format != Format::Text && is_about_all && self.op != GraphOp::Cycles {
            return Err(OpError::new(
                "this relation has no diagram",
                Hint::each("omit --format", "omit format"),
            ));
        }
        let needed = match self.op {
            GraphOp::Path => 2,
            GraphOp::Imports | GraphOp::Flow | GraphOp::Export => 0,
            _ if is_about_all => 0,
            _ => 1,
        };
        let given = usize::from(self.target.is_some()) + usize::from(self.to.is_some());
        if given >= needed {
            return Ok(());
        }
        let what = if needed == 2 {
            "path needs two definitions, target and to"
        } else {
            "a target is required"
        };
        Err(OpError::new(what, "give the name or the id of a definition")
            .with_retry(json!({"tool": "graph", "arguments": {"op": "callers", "target": "main"}})))
    }

    fn max_depth(&self) -> u32 {
        match self.depth {
            Some(0) => u32::MAX,
            depth => depth.unwrap_or(1),
        }
    }
}

impl Lookup<'_> {
    /// Returns true if the answer includes a file. Returns false for all files after an interruption.
    fn is_wanted(&self) -> impl Fn(FileId) -> bool + Sync {
        let (view, filter, interrupt) = (self.question.view(), &self.question.filter, self.ask.call.ctx.interrupt);
        move |file| !interrupt.load(std::sync::atomic::Ordering::Relaxed) && filter.passes(view, file)
    }

    /// Answers what the request asks about the definitions at its ends.
    fn about(&self, ends: &[FoundDefinition]) -> Result<Page<GraphFacts, GraphRow>> {
        match (self.request.op, ends) {
            (GraphOp::Callers | GraphOp::Callees | GraphOp::Refs | GraphOp::Implementations, [of]) => self.edges(of),
            (GraphOp::Impact, ends) => self.impact(ends.first()),
            (GraphOp::Path, [from, to]) => self.path(from, to),
            (GraphOp::Flow, [of]) => self.flow(of),
            (GraphOp::Flow | GraphOp::Entrypoints, _) => self.entry_points(),
            (GraphOp::Unused, _) => self.unused(),
            (GraphOp::Imports | GraphOp::Importers, _) => self.imports(),
            (GraphOp::Cycles, _) => self.cycles(),
            (GraphOp::Hubs, _) => self.hubs(),
            (GraphOp::Orphans, _) => self.orphans(),
            (GraphOp::Routes, _) => self.routes(),
            (GraphOp::Stats, _) => self.stats(),
            _ => Err(OpError::failed("export is only a command")),
        }
    }

    /// Looks up the definitions that the request is about.
    fn meant(&self) -> Result<Meant> {
        let Graph { op, target, to, .. } = self.request;
        let is_about_one = match op {
            GraphOp::Callers | GraphOp::Callees | GraphOp::Refs | GraphOp::Implementations | GraphOp::Path => true,
            GraphOp::Impact => target
                .as_ref()
                .is_some_and(|target| !target.contains("..") && self.files_of_impact().is_none()),
            GraphOp::Flow => target.is_some(),
            _ => false,
        };
        let mut each: Vec<Vec<FoundDefinition>> = vec![Vec::new()];
        for typed in [target, to].into_iter().flatten().filter(|_| is_about_one) {
            let outcome = self.definitions(typed)?;
            let n_meant = outcome.definitions.len();
            let is_one = n_meant == 1 || self.request.ci.is_none();
            if n_meant == 0 || n_meant * each.len() > MAX_MEANT || !is_one {
                return Ok(Meant::Page(Box::new(self.choice(typed, outcome)?)));
            }
            let with = |ends: &Vec<FoundDefinition>| {
                let ends = ends.clone();
                let found = outcome.definitions.iter().cloned();
                found
                    .map(move |found| ends.iter().cloned().chain([found]).collect())
                    .collect::<Vec<_>>()
            };
            each = each.iter().flat_map(with).collect();
        }
        Ok(Meant::Each(each))
    }

    /// Returns notes about files that may have more to say about the target.
    fn doubts(&self, meant: &Meant) -> Result<Vec<String>> {
        let found = match meant {
            Meant::Each(each) => each.iter().flatten().next().map(|found| found.name.as_str()),
            Meant::Page(_) => None,
        };
        let typed = self
            .request
            .target
            .as_deref()
            .filter(|_| matches!(meant, Meant::Page(_)));
        let name = found.or(typed.and_then(|typed| typed.rsplit(['#', '.', ':', '/']).next()));
        let of = match meant {
            Meant::Each(each) => each.iter().flatten().next(),
            Meant::Page(_) => None,
        };
        let mut notes = match name.filter(|name| !name.is_empty() && self.question.after.is_none()) {
            Some(name) => doubts(self.question, self.linker, name, found.is_some())?,
            None => Vec::new(),
        };
        if let Some(of) = of.filter(|of| !self.linker.resolves_across_files(of.file)) {
            let language = extract::language(self.question.view().lang(of.file)).map_or("", |language| language.name);
            notes.push(format!(
                "names of {language} are resolved only inside a file; references from other files are candidates"
            ));
        }
        Ok(notes)
    }

    fn definitions(&self, typed: &str) -> Result<SymbolOutcome> {
        let (query, _) = name_or_place(&self.ask.session.workspace, self.question.view(), typed)?;
        let mut outcome = meant(&self.question.sources(), query, Some(self.linker), |_| true)?;
        let is_prototype = |found: &FoundDefinition| self.linker.is_prototype(found.def());
        if !outcome.definitions.iter().all(is_prototype) {
            outcome.definitions.retain(|found| !is_prototype(found));
        }
        Ok(outcome)
    }

    /// Returns a page with the definitions that a target can mean.
    fn choice(&self, typed: &str, outcome: SymbolOutcome) -> Result<Page<GraphFacts, GraphRow>> {
        let SymbolOutcome {
            definitions,
            found_by,
            near,
            ..
        } = outcome;
        let error = self.unclear(typed, &definitions, &near)?;
        if self.request.ci.is_some() {
            return Err(error.into());
        }
        let facts = ChoiceFacts {
            total: definitions.len(),
            near,
            ambiguous: !definitions.is_empty(),
        };
        let rows = definitions
            .iter()
            .map(|found| GraphRow::Definition(DefinitionOut::of(self.question.view(), found)));
        let mut page = self.page(rows.collect(), definitions.len(), GraphFacts::Choice(facts));
        if found_by == FoundBy::OtherSpelling && !definitions.is_empty() {
            page.notes.push(OTHER_SPELLING.to_owned());
        }
        page.explain(self.ask, error.listed());
        Ok(page)
    }

    /// Explains why a target is not one definition.
    fn unclear(&self, typed: &str, found: &[FoundDefinition], near: &[String]) -> Result<TargetError> {
        if !found.is_empty() {
            let ids = found.iter().map(|found| found.id.clone()).collect();
            let op = serde_json::to_value(self.request.op)?;
            let op = op.as_str().unwrap_or_default();
            return Ok(TargetError::ambiguous(typed, ids, |id| format!("graph {op} {id}")));
        }
        let (query, is_place) = name_or_place(&self.ask.session.workspace, self.question.view(), typed)?;
        Ok(match (query, is_place) {
            (SymbolQuery::At { file, line, .. }, _) => TargetError::Nowhere {
                path: path_of(self.question.view(), file),
                line,
            },
            _ => TargetError::unknown(typed, near),
        })
    }

    /// Returns a page of `rows`, which are all rows or those of the page.
    fn page(&self, rows: Vec<GraphRow>, n_all: usize, facts: GraphFacts) -> Page<GraphFacts, GraphRow> {
        let n_before = self.part.skip.min(n_all);
        let rows: Vec<GraphRow> = if rows.len() == n_all { self.part.of(rows) } else { rows };
        let n_rows = rows.len();
        let mut paging = Paging::numbered(self.question.key(), n_before, n_rows, self.part.limit);
        if n_before + n_rows < n_all {
            paging.end = Some(((n_before + n_rows) as u32, 0));
        }
        let mut page = Page::new(self.question.provenance(), facts, rows, paging);
        page.is_empty = n_all == 0;
        page.n_selected = Some(n_all);
        page
    }
}

/// Returns the id of the definition that an answer about these ends is about.
fn id_of(ends: Option<&Vec<FoundDefinition>>) -> String {
    let first = ends.and_then(|ends| ends.first());
    first.map(|found| found.id.clone()).unwrap_or_default()
}

/// Returns true for a page with the definitions that a target can mean.
fn is_choice(page: &PageOf<Graph>) -> bool {
    matches!(page.facts, GroupedFacts::One(GraphFacts::Choice(_)))
}
