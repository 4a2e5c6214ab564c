//! The rows of a review.

use serde::Serialize;

use super::definitions::symbols;
use crate::model::count::{count, plural};
use crate::ops::blame::OwnerOut;
use crate::ops::diff::{FileOut, name_in};
use crate::ops::graph::ReachedOut;
use crate::ops::op::Row;
use crate::ops::sink::{Sink, Style};
use crate::query::is_test_path;

/// Maximum number of unchanged callers that the text names for a definition.
const MAX_SHOWN: usize = 4;

/// A result.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum ReviewRow {
    Definition(Box<DefinitionRow>),
    Other(OtherFileRow),
    Together(TogetherRow),
    Test(ReachedOut),
    Owner(OwnerRow),
}

/// A changed definition.
#[derive(Debug, Serialize)]
pub(crate) struct DefinitionRow {
    pub(super) kind: &'static str,
    pub(crate) id: String,
    pub(crate) path: String,
    pub(crate) line: u32,
    /// The kind of the definition.
    pub(crate) definition: &'static str,
    pub(crate) events: Vec<&'static str>,
    /// The former id.
    pub(crate) from: Option<String>,
    /// Number of definitions inside of it that were added or removed with it and have no row.
    pub(crate) inner: usize,
    /// Number of definitions and tests that certainly use it.
    pub(crate) callers: usize,
    pub(crate) possible_callers: usize,
    /// Number of tests among them.
    pub(crate) tests: usize,
    /// Number of certain callers that did not change.
    pub(crate) unchanged_callers: usize,
    /// The callers that did not change: the certain ones first, then possible ones.
    pub(crate) unchanged: Vec<Site>,
    /// The notes about it that may no longer hold.
    pub(crate) notes: Vec<String>,
    /// The places of documents that name it.
    pub(crate) documents: Vec<DocumentSite>,
    /// The changed lines, if they were requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) diff: Option<String>,
}

/// What a change of a definition can do to others, the gravest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Consequence {
    Removed,
    Signature,
    Behaviour,
    Added,
    Moved,
    Documentation,
    Formatting,
}

impl Consequence {
    /// Returns the gravest of the events of a definition.
    pub(crate) fn of(events: &[&str]) -> Self {
        let has = |event| events.contains(&event);
        match () {
            () if has("removed") => Self::Removed,
            () if has("added") => Self::Added,
            () if has("signature") => Self::Signature,
            () if has("body") => Self::Behaviour,
            () if has("renamed") || has("moved") => Self::Moved,
            () if has("doc") => Self::Documentation,
            () => Self::Formatting,
        }
    }

    /// The words for a number of definitions.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Removed => "removed",
            Self::Signature => "with another signature",
            Self::Behaviour => "with another body",
            Self::Added => "added",
            Self::Moved => "moved or renamed",
            Self::Documentation => "with other documentation",
            Self::Formatting => "only formatted",
        }
    }
}

/// A place that uses a changed definition.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Site {
    pub(crate) path: String,
    pub(crate) line: u32,
    /// The id of the definition around it; null outside of definitions.
    pub(crate) id: Option<String>,
    pub(crate) name: Option<String>,
    /// False if it only has the name.
    pub(crate) sure: bool,
    pub(crate) test: bool,
}

/// A place of a document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct DocumentSite {
    pub(crate) path: String,
    pub(crate) line: u32,
}

/// A file with changes outside of definitions.
#[derive(Debug, Serialize)]
pub(crate) struct OtherFileRow {
    kind: &'static str,
    pub(crate) path: String,
    pub(crate) from_path: Option<String>,
    /// What happened to the file.
    pub(crate) change: &'static str,
    pub(crate) added_lines: Option<u32>,
    pub(crate) removed_lines: Option<u32>,
    /// The reason why its contents were not compared.
    #[serde(skip)]
    unread: Option<String>,
}

/// A file that usually changes with a changed one, and did not.
#[derive(Debug, Serialize)]
pub(crate) struct TogetherRow {
    pub(super) kind: &'static str,
    pub(crate) path: String,
    /// The changed file.
    pub(crate) with: String,
    /// Number of commits that changed both.
    pub(crate) both: u32,
    /// Number of commits that changed the changed file, among the latest.
    pub(crate) commits: u32,
}

/// A person who knows the changed files.
#[derive(Debug, Serialize)]
pub(crate) struct OwnerRow {
    pub(super) kind: &'static str,
    #[serde(flatten)]
    pub(crate) owner: OwnerOut,
}

impl Row for ReviewRow {
    fn render(&self, out: &mut dyn Sink) {
        match self {
            Self::Definition(row) => row.render(out),
            Self::Other(row) => row.render(out),
            Self::Together(row) => {
                out.plain("did not change: ");
                out.span(Style::Path, &row.path);
                out.span(
                    Style::Fact,
                    &format!(" changed in {} of {} commits with ", row.both, row.commits),
                );
                out.span(Style::Path, &row.with);
                out.end();
            }
            Self::Test(row) => row.render(out),
            Self::Owner(row) => {
                out.plain("knows it: ");
                row.owner.render(out);
            }
        }
    }

    fn bodies(&mut self) -> Vec<&mut Option<String>> {
        match self {
            Self::Definition(row) => vec![&mut row.diff],
            _ => Vec::new(),
        }
    }
}

impl DefinitionRow {
    /// Returns the qualified name.
    pub(crate) fn name(&self) -> &str {
        name_in(&self.id, &self.path)
    }

    pub(crate) fn consequence(&self) -> Consequence {
        Consequence::of(&self.events)
    }

    /// Returns the key that puts the gravest changes first: those that unchanged callers may not fit, then those with the
    /// most users. Tests and what only looks otherwise come last.
    pub(super) fn rank(&self) -> impl Ord + use<> {
        let breaks = match () {
            () if !self.may_break() => 2,
            () if self.unchanged_callers > 0 => 0,
            () if !self.unchanged.is_empty() => 1,
            () => 2,
        };
        let is_test = self.definition == "test" || is_test_path(&self.path);
        let n_users = std::cmp::Reverse((self.unchanged_callers, self.callers, self.possible_callers));
        let is_new_or_gone = matches!(self.consequence(), Consequence::Added | Consequence::Removed);
        let place = (self.path.clone(), self.line);
        (self.is_minor(), is_test, breaks, is_new_or_gone, n_users, place)
    }

    /// Returns true if only its place, name, documentation or formatting changed.
    pub(crate) fn is_minor(&self) -> bool {
        self.consequence() >= Consequence::Moved
    }

    /// Describes its uses by number. Empty if none are known.
    pub(crate) fn usage(&self) -> String {
        let mut parts = Vec::new();
        if self.inner > 0 {
            parts.push(format!("{} inside", count(self.inner, "definition")));
        }
        if self.callers > 0 {
            let is_called = matches!(
                self.definition,
                "function" | "method" | "constructor" | "macro" | "test"
            );
            parts.push(count(self.callers, if is_called { "caller" } else { "use" }));
        }
        if self.possible_callers > 0 {
            parts.push(format!("{} possible", self.possible_callers));
        }
        if self.tests > 0 {
            parts.push(count(self.tests, "test"));
        }
        if self.unchanged_callers > 0 && self.consequence() <= Consequence::Signature {
            parts.push(format!("{} not changed with it", self.unchanged_callers));
        }
        parts.join(", ")
    }

    /// Returns true if callers that did not change may no longer fit.
    pub(crate) fn may_break(&self) -> bool {
        self.consequence() <= Consequence::Signature
    }

    fn render(&self, out: &mut dyn Sink) {
        out.plain(&format!("{}: {} ", self.events.join(", "), self.definition));
        out.span(Style::Name, self.name());
        out.plain(" ");
        out.span(Style::Path, &format!("{}:{}", self.path, self.line));
        if let Some(from) = &self.from {
            out.plain(" from ");
            out.span(Style::Path, from);
        }
        let usage = self.usage();
        if !usage.is_empty() {
            out.span(Style::Fact, &format!("  {usage}"));
        }
        out.end();
        if self.may_break() {
            for site in self.unchanged.iter().take(MAX_SHOWN) {
                site.render(out);
            }
            let n_all = self.unchanged_callers.max(self.unchanged.len());
            if let n @ 1.. = n_all.saturating_sub(MAX_SHOWN) {
                out.span(
                    Style::Fact,
                    &format!("    {n} more unchanged {}", plural(n as u64, "caller")),
                );
                out.end();
            }
        }
        for note in &self.notes {
            out.line(&format!("    note {note} may no longer hold"));
        }
        for document in &self.documents {
            out.plain("    ");
            out.span(Style::Path, &format!("{}:{}", document.path, document.line));
            out.line(" names it");
        }
        if let Some(diff) = &self.diff {
            out.diff(diff);
        }
    }
}

impl Site {
    /// Describes the kind of the use.
    pub(crate) fn label(&self) -> &'static str {
        match (self.sure, self.test) {
            (true, true) => "unchanged test",
            (true, false) => "unchanged caller",
            (false, true) => "possible test",
            (false, false) => "possible caller",
        }
    }

    fn render(&self, out: &mut dyn Sink) {
        out.span(Style::Fact, &format!("    {} ", self.label()));
        out.span(Style::Path, &format!("{}:{}", self.path, self.line));
        if let Some(name) = &self.name {
            out.plain(" ");
            out.span(Style::Name, name);
        }
        out.end();
    }
}

impl OtherFileRow {
    /// Returns the row of a file that has no changed definition, or other changes, too.
    pub(super) fn of(file: &FileOut) -> Option<Self> {
        let has_definitions = symbols(file).next().is_some();
        (!has_definitions || file.has_other_effects()).then(|| Self {
            kind: "file",
            path: file.path.clone(),
            from_path: file.from_path.clone(),
            change: file.kind,
            added_lines: file.added_lines,
            removed_lines: file.removed_lines,
            unread: file.why_unread(),
        })
    }

    /// Describes the size of the change.
    pub(crate) fn size(&self) -> String {
        match (self.added_lines, self.removed_lines) {
            (Some(added), Some(removed)) => format!("+{added} -{removed}"),
            _ => self.unread.clone().unwrap_or_else(|| "not compared as text".to_owned()),
        }
    }

    fn render(&self, out: &mut dyn Sink) {
        out.plain(&format!("outside of definitions: {} ", self.change));
        out.span(Style::Path, &self.path);
        if let Some(from) = &self.from_path {
            out.plain(" from ");
            out.span(Style::Path, from);
        }
        out.span(Style::Fact, &format!(" {}", self.size()));
        out.end();
    }
}
