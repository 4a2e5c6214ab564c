//! The rows of `graph`, as text, JSON and diagrams.

use std::collections::BTreeSet;

use serde::ser::Error as _;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use super::ReachedOut;
use super::degrees::DegreeOut;
use super::flow::FlowOut;
use super::impact::TestOut;
use super::routes::RouteOut;
use super::unreferenced::UnreferencedOut;
use crate::ops::op::Row;
use crate::ops::paths::path_of;
use crate::ops::sink::{Sink, Style};
use crate::query::{FoundDefinition, kind_name};
use crate::snapshot::View;

/// A result.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum GraphRow {
    Edge(EdgeOut),
    Definition(DefinitionOut),
    Import(ImportOut),
    Cycle(CycleOut),
    Language(LanguageOut),
    Reached(ReachedOut),
    Flow(FlowOut),
    Unreferenced(UnreferencedOut),
    Degree(DegreeOut),
    Route(RouteOut),
    Test(TestOut),
    Changed(ChangedOut),
    /// A row that a diagram shows.
    Drawn(Box<GraphRow>),
}

/// A reference from one definition to another.
#[derive(Debug, Serialize)]
pub(crate) struct EdgeOut {
    pub(super) path: String,
    pub(super) line: u32,
    pub(super) kind: &'static str,
    pub(crate) tier: &'static str,
    /// Number of steps from the target, 1-based.
    pub(super) depth: u32,
    /// The id of the definition that contains the reference; `None` at file level.
    pub(crate) from: Option<String>,
    /// The ids of the definitions that are meant, or of the candidates.
    pub(crate) to: Vec<String>,
    pub(super) text: String,
    /// The ends of the edge that are shown.
    #[serde(skip)]
    pub(super) shown: (bool, bool),
}

/// A row of one of two compared answers.
#[derive(Debug)]
pub(crate) struct ChangedOut {
    /// `added` or `removed`.
    change: &'static str,
    row: Box<GraphRow>,
}

impl Serialize for ChangedOut {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = Map::from_iter([("change".to_owned(), self.change.into())]);
        if let Value::Object(row) = serde_json::to_value(&self.row).map_err(S::Error::custom)? {
            fields.extend(row);
        }
        fields.serialize(serializer)
    }
}

/// A definition.
#[derive(Debug, Serialize)]
pub(crate) struct DefinitionOut {
    pub(super) path: String,
    pub(super) line: u32,
    pub(super) kind: &'static str,
    pub(super) id: String,
    pub(super) signature: String,
}

/// An import.
#[derive(Debug, Serialize)]
pub(crate) struct ImportOut {
    pub(super) path: String,
    pub(super) line: u32,
    pub(super) module: String,
    /// `file`, `package`, `outside` or `unknown`.
    pub(super) kind: &'static str,
    /// The files, or the package.
    pub(super) to: Vec<String>,
    pub(super) text: String,
}

/// Files that import each other.
#[derive(Debug, Serialize)]
pub(crate) struct CycleOut {
    /// The shortest cycle through the first file.
    pub(super) cycle: Vec<String>,
    /// All files that reach one another.
    pub(super) files: Vec<String>,
}

/// The references of a language.
#[derive(Debug, Default, Serialize)]
pub(crate) struct LanguageOut {
    pub(super) language: &'static str,
    pub(super) files: usize,
    pub(super) definitions: usize,
    pub(super) references: usize,
    pub(super) tiers: std::collections::BTreeMap<&'static str, usize>,
    /// True if names are resolved to definitions of other files.
    pub(super) across_files: bool,
}

impl Row for GraphRow {
    fn render(&self, out: &mut dyn Sink) {
        match self {
            Self::Edge(edge) => edge.render(out),
            Self::Definition(definition) => definition.render(out),
            Self::Import(import) => import.render(out),
            Self::Cycle(cycle) => cycle.render(out),
            Self::Language(language) => language.render(out),
            Self::Reached(reached) => reached.render(out),
            Self::Flow(called) => called.render(out),
            Self::Unreferenced(definition) => definition.render(out),
            Self::Degree(file) => file.render(out),
            Self::Route(route) => route.render(out),
            Self::Test(test) => test.render(out),
            Self::Changed(changed) => changed.render(out),
            Self::Drawn(_) => {}
        }
    }
}

impl DefinitionOut {
    pub(super) fn of(view: &View, found: &FoundDefinition) -> Self {
        Self {
            path: path_of(view, found.file),
            line: found.name_line,
            kind: kind_name(found.kind),
            id: found.id.clone(),
            signature: found.signature.clone(),
        }
    }

    fn render(&self, out: &mut dyn Sink) {
        place(out, &self.path, self.line);
        out.span(Style::Fact, &format!(" {} ", self.kind));
        out.span(Style::Name, name_of(&self.id));
        out.span(Style::Fact, &format!(" id={}", self.id));
        out.end();
        out.line(&format!("    {}", self.signature));
    }
}

impl EdgeOut {
    fn render(&self, out: &mut dyn Sink) {
        place(out, &self.path, self.line);
        out.span(Style::Fact, &format!(" {} {} ", self.tier, self.kind));
        let (shows_from, shows_to) = self.shown;
        if shows_from {
            out.span(Style::Name, self.from.as_deref().map_or("(file)", name_of));
        }
        if shows_to {
            let names: BTreeSet<&str> = self.to.iter().map(|id| name_of(id)).collect();
            out.plain(if shows_from { " → " } else { "→ " });
            out.span(Style::Name, &names.into_iter().collect::<Vec<_>>().join(" | "));
        }
        out.line(&format!(": {}", self.text));
    }
}

impl ImportOut {
    fn render(&self, out: &mut dyn Sink) {
        place(out, &self.path, self.line);
        out.span(Style::Fact, &format!(" {} ", self.kind));
        out.span(Style::Name, if self.to.is_empty() { &self.module } else { "" });
        for (nth, path) in self.to.iter().enumerate() {
            out.plain(if nth > 0 { ", " } else { "" });
            out.span(Style::Path, path);
        }
        out.line(&format!(": {}", self.text));
    }
}

impl CycleOut {
    fn render(&self, out: &mut dyn Sink) {
        for path in &self.cycle {
            out.span(Style::Path, path);
            out.plain(" → ");
        }
        out.span(Style::Path, self.cycle.first().map_or("", String::as_str));
        if self.files.len() > self.cycle.len() {
            out.span(Style::Fact, &format!(" ({} files reach one another)", self.files.len()));
        }
        out.end();
    }
}

impl LanguageOut {
    fn render(&self, out: &mut dyn Sink) {
        out.span(Style::Name, self.language);
        out.span(
            Style::Fact,
            &format!(
                " {} files, {} definitions, {} references:",
                self.files, self.definitions, self.references
            ),
        );
        let tiers: Vec<String> = self.tiers.iter().map(|(tier, n)| format!(" {tier} {n}")).collect();
        out.plain(&tiers.join(","));
        if !self.across_files {
            out.span(Style::Fact, "; resolved only inside a file");
        }
        out.end();
    }
}

impl ChangedOut {
    fn render(&self, out: &mut dyn Sink) {
        match self.change {
            "added" => out.span(Style::Added, "+ "),
            _ => out.span(Style::Removed, "- "),
        }
        self.row.render(out);
    }
}

fn place(out: &mut dyn Sink, path: &str, line: u32) {
    out.span(Style::Path, &format!("{path}:{line}"));
}

/// Returns the qualified name in an id.
pub(super) fn name_of(id: &str) -> &str {
    id.rsplit_once('#').map_or(id, |(_, name)| name)
}

impl GraphRow {
    /// Marks a row as added or removed.
    pub(super) fn changed(change: &'static str, row: Self) -> Self {
        Self::Changed(ChangedOut {
            change,
            row: Box::new(row),
        })
    }

    pub(super) fn is_added(&self) -> bool {
        matches!(self, Self::Changed(changed) if changed.change == "added")
    }

    /// Returns the edges of the row, each with its label and true if it is sure.
    pub(super) fn edges(&self) -> Vec<(&str, &str, &'static str, bool)> {
        match self {
            Self::Edge(edge) => {
                let from = edge.from.as_deref().unwrap_or(&edge.path);
                edge.to
                    .iter()
                    .map(|to| (from, to.as_str(), edge.tier, edge.tier != "named"))
                    .collect()
            }
            Self::Import(import) if import.to.is_empty() => {
                vec![(&import.path, &import.module, import.kind, true)]
            }
            Self::Import(import) => import
                .to
                .iter()
                .map(|to| (import.path.as_str(), to.as_str(), import.kind, true))
                .collect(),
            Self::Cycle(CycleOut { cycle, .. }) => {
                let next = cycle.iter().cycle().skip(1);
                cycle
                    .iter()
                    .zip(next)
                    .map(|(from, to)| (from.as_str(), to.as_str(), "import", true))
                    .collect()
            }
            Self::Reached(reached) => {
                let from = reached.id.as_deref().unwrap_or(&reached.path);
                let next = reached.via.first();
                next.map(|to| (from, to.as_str(), reached.relation, reached.sure))
                    .into_iter()
                    .collect()
            }
            Self::Flow(called) => {
                let label = if called.overrides { "overrides" } else { "call" };
                let from = called.from.as_deref().into_iter();
                from.map(|from| (from, called.id.as_str(), label, true)).collect()
            }
            Self::Changed(changed) => {
                let edges = changed.row.edges().into_iter();
                let is_added = self.is_added();
                edges
                    .map(|(from, to, _, _)| (from, to, changed.change, is_added))
                    .collect()
            }
            _ => Vec::new(),
        }
    }
}
