//! The rows of an answer.

use serde::Serialize;

use crate::model::count::count;
use crate::ops::op::Row;
use crate::ops::record::PersonOut;
use crate::ops::sink::{Sink, Style};
use crate::query::{Owner, day, timestamp};

/// Number of digits of a commit id in text output.
const ID_DIGITS: usize = 10;
/// Maximum number of owners of a definition in text output.
const MAX_SHOWN_OWNERS: usize = 3;

/// A result.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum BlameRow {
    Line(LineOut),
    Symbol(SymbolOut),
    Owner(OwnerOut),
}

/// A commit to which lines are attributed.
#[derive(Debug, Serialize)]
pub(crate) struct CommitOut {
    pub(crate) commit: String,
    pub(crate) author: PersonOut,
    pub(crate) date: String,
    pub(crate) subject: String,
    pub(crate) boundary: bool,
}

/// A line and its commit.
#[derive(Debug, Serialize)]
pub(crate) struct LineOut {
    pub(crate) line: u32,
    #[serde(flatten)]
    pub(crate) commit: Option<CommitOut>,
    pub(crate) from_path: Option<String>,
    pub(crate) from_line: Option<u32>,
    pub(crate) text: String,
    /// True if the text output includes the subject of the commit.
    #[serde(skip)]
    pub(super) shows_subject: bool,
}

/// A definition and its authors.
#[derive(Debug, Serialize)]
pub(crate) struct SymbolOut {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) kind: &'static str,
    pub(crate) start_line: u32,
    pub(crate) end_line: u32,
    pub(crate) last: Option<CommitOut>,
    pub(crate) uncommitted_lines: u32,
    pub(crate) commits: u32,
    pub(crate) owners: Vec<OwnerOut>,
}

/// An author and their share.
#[derive(Debug, Serialize)]
pub(crate) struct OwnerOut {
    pub(crate) name: String,
    pub(crate) email: String,
    /// Number of lines of a file, or of changed paths of a directory.
    pub(crate) count: u32,
    pub(crate) commits: u32,
    pub(crate) share: f64,
    pub(crate) last: String,
}

impl Row for BlameRow {
    fn render(&self, out: &mut dyn Sink) {
        match self {
            Self::Line(line) => line.render(out),
            Self::Symbol(symbol) => symbol.render(out),
            Self::Owner(owner) => owner.render(out),
        }
    }
}

impl CommitOut {
    fn render(&self, out: &mut dyn Sink) {
        // As in git, a caret marks a commit at which the recorded history ends.
        let mark = if self.boundary { "^" } else { "" };
        out.span(Style::Commit, &format!("{mark}{}", &self.commit[..ID_DIGITS]));
        out.span(Style::Fact, &format!(" {} {}", day(&self.date), self.author.name));
    }
}

impl LineOut {
    /// Returns the id of the commit; `None` if the line is not committed.
    pub(crate) fn id(&self) -> Option<&str> {
        self.commit.as_ref().map(|commit| commit.commit.as_str())
    }

    fn render(&self, out: &mut dyn Sink) {
        match &self.commit {
            Some(commit) => commit.render(out),
            None => out.span(Style::Fact, "not committed"),
        }
        if let Some(path) = &self.from_path {
            out.plain(" ");
            out.span(Style::Path, path);
        }
        out.line(&format!(" {:>5}: {}", self.line, self.text));
        if let Some(commit) = self.commit.as_ref().filter(|_| self.shows_subject) {
            out.line(&format!("    {}", commit.subject));
        }
    }
}

impl SymbolOut {
    fn render(&self, out: &mut dyn Sink) {
        out.plain(&format!("{} ", self.kind));
        out.span(Style::Name, &self.name);
        out.span(Style::Fact, &format!(" {}-{}", self.start_line, self.end_line));
        out.end();
        out.plain("    ");
        match &self.last {
            Some(last) => {
                last.render(out);
                out.line(&format!(" {}", last.subject));
            }
            None => out.line(&self.not_committed()),
        }
        if self.commits > 0 {
            let owners = self.owners.iter().take(MAX_SHOWN_OWNERS);
            let owners: Vec<String> = owners
                .map(|owner| {
                    format!(
                        "{} {:.0} % (last {})",
                        owner.name,
                        owner.share * 100.0,
                        day(&owner.last)
                    )
                })
                .collect();
            out.line(&format!("    {}; {}", count(self.commits, "commit"), owners.join(", ")));
        }
    }

    /// Returns the text for a definition without committed lines.
    fn not_committed(&self) -> String {
        let verb = if self.uncommitted_lines == 1 { "is" } else { "are" };
        format!("{} {verb} not committed", count(self.uncommitted_lines, "line"))
    }
}

impl OwnerOut {
    pub(crate) fn render(&self, out: &mut dyn Sink) {
        out.plain(&format!("{:>6} {:>5.1} % ", self.count, self.share * 100.0));
        out.span(Style::Name, &format!("{} <{}>", self.name, self.email));
        out.line(&format!(" {}, last {}", count(self.commits, "commit"), day(&self.last)));
    }
}

pub(crate) fn owner_out(owner: &Owner) -> OwnerOut {
    OwnerOut {
        name: owner.who.name.to_string(),
        email: owner.who.email.to_string(),
        count: owner.n_lines,
        commits: owner.n_commits,
        share: (owner.share * 1e4).round() / 1e4,
        last: timestamp(owner.last, 0),
    }
}
