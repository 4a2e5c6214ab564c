//! `graph`: relations between definitions and between files: who calls what, what imports what.

mod account;
mod edges;
mod files;
mod flow;
mod impact;
mod places;
mod relations;
mod rows;
mod since;
mod unreferenced;
mod whole;

use serde::{Deserialize, Serialize};
use serde_json::json;

pub(crate) use self::edges::is_call;
pub(crate) use self::impact::{Affected, ImpactTotals, ReachedOut, affected, is_test, qualified};
pub(crate) use self::relations::{RelationsOut, n_callers, relations};
pub(crate) use self::rows::GraphRow;
use self::rows::{DefinitionOut, draw};
use super::ask::{Ask, FileSelection, WithTests, path_text};
use super::op::{Op, Page, Paging};
use super::precise::Wanted;
use super::question::{About, Question};
use super::sink::Recorded;
use super::symbol::{is_place, name_or_place};
use crate::extract::DefinitionKind;
use crate::link::{DefId, Linker};
use crate::model::Hint;
use crate::model::count::count;
use crate::query::{FileFilter, FoundBy, FoundDefinition, SymbolOutcome, SymbolRequest, symbols};
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
    /// Definition: NAME, Outer.NAME, an id or PATH:LINE[:COL]; for imports and importers a file or directory; for impact
    /// also A..B
    #[arg(value_parser = path_text())]
    #[schemars(description = "name, id, path:line; path of imports")]
    target: Option<String>,
    /// Definition at the end of a path
    #[arg(value_parser = path_text())]
    #[schemars(description = "end of op=path")]
    to: Option<String>,
    /// Number of steps from TARGET; 0 for all [default: 1, of flow 3, of impact all]
    #[arg(long, value_name = "N")]
    #[schemars(description = "0: all")]
    depth: Option<u32>,
    /// Also list references that only have the name, and could mean TARGET
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
    /// With impact: print only the test files, or the ids of the tests, for another program
    #[arg(long, value_enum, value_name = "WHAT", num_args = 0..=1, require_equals = true, default_missing_value = "files")]
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
    /// What depends on a definition or on the changes of A..B: definitions, then tests
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
}

/// The definitions that a target names.
#[derive(Debug, Serialize)]
struct ManyFacts {
    total: usize,
    near: Vec<String>,
    ambiguous: bool,
}

/// A request that is being answered.
struct Lookup<'a> {
    request: &'a Graph,
    ask: &'a Ask<'a>,
    question: &'a Question<'a>,
    linker: &'a Linker<'a>,
    /// True if the answer has all rows.
    is_whole: bool,
}

/// The result of looking a target up.
enum Target {
    One(DefId, Box<FoundDefinition>),
    /// No definition, or several.
    Page(Box<Page<GraphRow>>),
}

impl Op for Graph {
    type Row = GraphRow;

    fn run(&self, ask: &Ask<'_>) -> Result<Page<GraphRow>> {
        self.check()?;
        match &self.since {
            Some(since) => self.compared(ask, since),
            None => {
                let mut question = Question::new(ask, &About::indexed_files(&self.files))?;
                if self.precise {
                    self.ask_server(ask, &mut question)?;
                }
                self.answer(ask, &question, false)
            }
        }
    }
}

impl Graph {
    /// Asks a language server about the target. Does nothing if the target is not one definition.
    fn ask_server(&self, ask: &Ask<'_>, question: &mut Question<'_>) -> Result<()> {
        let links = question.links();
        let target = Lookup {
            request: self,
            ask,
            question,
            linker: &question.linker(&links),
            is_whole: false,
        }
        .target(self.target.as_deref())?;
        let Target::One(of, _) = target else { return Ok(()) };
        question.ask_server(match self.op {
            GraphOp::Callees => Wanted::Uses(of),
            _ => Wanted::References(of),
        })
    }

    /// Answers the request for the files of a question. `is_whole` asks for all rows instead of a page.
    fn answer(&self, ask: &Ask<'_>, question: &Question<'_>, is_whole: bool) -> Result<Page<GraphRow>> {
        let links = question.links();
        let linker = question.linker(&links);
        let lookup = Lookup {
            request: self,
            ask,
            question,
            linker: &linker,
            is_whole,
        };
        let mut page = match self.op {
            GraphOp::Callers | GraphOp::Callees | GraphOp::Refs | GraphOp::Implementations => lookup.edges(),
            GraphOp::Impact => lookup.impact(),
            GraphOp::Path => lookup.path(),
            GraphOp::Flow => lookup.flow(),
            GraphOp::Entrypoints => lookup.entry_points(),
            GraphOp::Unused => lookup.unused(),
            GraphOp::Imports | GraphOp::Importers => lookup.imports(),
            GraphOp::Cycles => lookup.cycles(),
            GraphOp::Stats => lookup.stats(),
            GraphOp::Export => Err(OpError::failed("export is only a command")),
        }?;
        linker.check()?;
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
        let takes_target = !matches!(
            self.op,
            GraphOp::Entrypoints | GraphOp::Unused | GraphOp::Cycles | GraphOp::Stats
        );
        if let (Some(target), false) = (&self.target, takes_target) {
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
        if self.format != Format::Text && matches!(self.op, GraphOp::Entrypoints | GraphOp::Unused | GraphOp::Stats) {
            return Err(OpError::new(
                "this relation has no diagram",
                Hint::each("omit --format", "omit format"),
            ));
        }
        let needed = match self.op {
            GraphOp::Path => 2,
            GraphOp::Imports
            | GraphOp::Flow
            | GraphOp::Entrypoints
            | GraphOp::Unused
            | GraphOp::Cycles
            | GraphOp::Stats
            | GraphOp::Export => 0,
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

    /// Adds the line with the totals to a page, or replaces its text by a diagram.
    fn present(&self, page: &mut Page<GraphRow>, limit: usize, line: String) {
        match self.format {
            Format::Text => page.head = Recorded::of(|out| out.whole_line(&line)),
            format => {
                draw(page, limit, format);
                page.notes.push(line);
            }
        }
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
        let (view, filter, interrupt) = (self.question.view(), &self.question.filter, self.ask.ctx.interrupt);
        move |file| !interrupt.load(std::sync::atomic::Ordering::Relaxed) && filter.passes(view, file)
    }

    fn limit(&self) -> usize {
        if self.is_whole {
            usize::MAX
        } else {
            self.ask.limit(DEFAULT_LIMIT)
        }
    }

    /// Finds the definition that a target names.
    fn target(&self, typed: Option<&str>) -> Result<Target> {
        let typed = typed.unwrap_or_default();
        let mut outcome = self.definitions(typed)?;
        // Blocks that extend a type do not make its name ambiguous, nor do headings and keys.
        drop_minor(&mut outcome.definitions);
        if outcome.definitions.len() == 1 {
            let found = outcome.definitions.remove(0);
            return Ok(Target::One(
                DefId {
                    file: found.file,
                    index: found.index,
                },
                Box::new(found),
            ));
        }
        Ok(Target::Page(Box::new(self.choice(typed, outcome)?)))
    }

    fn definitions(&self, typed: &str) -> Result<SymbolOutcome> {
        let (query, _) = name_or_place(&self.ask.session.workspace, self.question.view(), typed)?;
        let request = SymbolRequest {
            query,
            filter: FileFilter::default(),
            kinds: Vec::new(),
        };
        Ok(symbols(&self.question.sources(), &request, Some(self.linker))?)
    }

    /// Returns a page with the definitions that a target can mean.
    fn choice(&self, typed: &str, outcome: SymbolOutcome) -> Result<Page<GraphRow>> {
        let SymbolOutcome {
            definitions,
            found_by,
            near,
            ..
        } = outcome;
        let facts = ManyFacts {
            total: definitions.len(),
            near,
            ambiguous: !definitions.is_empty(),
        };
        let rows = definitions
            .iter()
            .map(|found| GraphRow::Definition(DefinitionOut::of(self.question.view(), found)));
        let mut page = self.page(rows.collect(), definitions.len(), &facts)?;
        if definitions.is_empty() && is_place(&self.ask.session.workspace, self.question.view(), typed) {
            page.notes.push(format!("no definition or reference at {typed}"));
            page.hint = Some("outline lists the definitions of a file".to_owned());
            return Ok(page);
        }
        if definitions.is_empty() {
            page.notes.push(format!(
                "no definition is named {typed}; {} searched",
                count(self.question.view().coverage().n_indexed, "file")
            ));
            page.hint = Some(match facts.near.as_slice() {
                [] => "use search to find it by meaning, or in mode regex to find it as text".to_owned(),
                near => format!("did you mean {}?", near.join(" or ")),
            });
            return Ok(page);
        }
        let spelling = if found_by == FoundBy::OtherSpelling {
            ", in another spelling"
        } else {
            ""
        };
        page.notes.push(format!(
            "{} can be meant by {typed}{spelling}",
            count(definitions.len(), "definition")
        ));
        page.hint = Some("select one by its id".to_owned());
        Ok(page)
    }

    /// Returns a page of `rows`, which are all rows or those from the start of the page.
    fn page(&self, rows: Vec<GraphRow>, n_all: usize, facts: &impl Serialize) -> Result<Page<GraphRow>> {
        let n_before = self.question.n_before().min(n_all);
        let rows: Vec<GraphRow> = if rows.len() == n_all {
            rows.into_iter().skip(n_before).collect()
        } else {
            rows
        };
        let n_rows = rows.len();
        let mut paging = Paging::numbered(self.question.key(), n_before, n_rows, self.limit());
        if n_before + n_rows < n_all {
            paging.end = Some(((n_before + n_rows) as u32, 0));
        }
        Page::new(self.question.provenance(), rows, paging).with_facts(facts)
    }
}

/// Removes minor definitions, unless there are no others.
pub(crate) fn drop_minor(definitions: &mut Vec<FoundDefinition>) {
    if !definitions.iter().all(is_minor) {
        definitions.retain(|found| !is_minor(found));
    }
}

/// Returns true for blocks that extend a type, modules, headings and data.
pub(crate) fn is_minor(found: &FoundDefinition) -> bool {
    matches!(
        found.kind,
        DefinitionKind::Impl | DefinitionKind::Module | DefinitionKind::Section
    ) || found.kind.is_data()
}
