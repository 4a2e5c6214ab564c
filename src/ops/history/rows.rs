//! The rows of an answer.

use serde::Serialize;

use crate::history::{CommitHead, FileChange, Who};
use crate::ops::record::{PersonOut, person_out};
use crate::ops::sink::{Recorded, Sink, Style};
use crate::ops::symbol_history::SymbolChangeOut;
use crate::query::{FileChangeKind, FileLogEntry, day, timestamp};

/// Number of digits of a commit id in text output.
pub(super) const ID_DIGITS: usize = 10;

/// A commit, or uncommitted changes.
#[derive(Debug, Default, Serialize)]
pub(crate) struct EntryOut {
    /// The id; null for uncommitted changes.
    pub(super) commit: Option<String>,
    pub(super) author: Option<PersonOut>,
    pub(super) date: Option<String>,
    pub(super) commit_date: Option<String>,
    pub(super) subject: Option<String>,
    pub(super) merge: bool,
    /// Number of moves back: 1 for the file that was at the path before the target was moved there, 2 for the one
    /// before that, and so on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) earlier_file: Option<u32>,
    /// The kind that the definition had then, if definitions of that kind have no history of their own. The commit
    /// changed its lines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) earlier_kind: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) symbol: Option<SymbolChangeOut>,
    pub(super) changes: Vec<ChangeOut>,
    /// A line that is shown before the entry; empty if there is none.
    #[serde(skip)]
    pub(crate) heading: Recorded,
    /// When the author made it, in seconds since 1970.
    #[serde(skip)]
    pub(super) time: Option<i64>,
    /// True if a picture shows it.
    #[serde(skip)]
    pub(super) is_drawn: bool,
}

/// A change to a file.
#[derive(Debug, Serialize)]
pub(super) struct ChangeOut {
    pub(super) kind: &'static str,
    pub(super) path: String,
    pub(super) from_path: Option<String>,
    pub(super) similarity: Option<u8>,
    pub(super) old_blob: Option<String>,
    pub(super) new_blob: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) diff: Option<String>,
}

impl EntryOut {
    /// Returns an entry of a commit, without its changes.
    pub(super) fn of(head: &CommitHead, author: &Who, is_merge: bool) -> Self {
        Self {
            commit: Some(head.id.to_string()),
            author: Some(person_out(author)),
            date: Some(timestamp(head.author_time, head.author_offset)),
            commit_date: Some(timestamp(head.commit_time, 0)),
            subject: Some(head.subject.clone()),
            merge: is_merge,
            time: Some(head.author_time),
            ..Self::default()
        }
    }

    /// Returns the commit, date, author and subject on one line.
    pub(crate) fn in_short(&self) -> String {
        let (Some(commit), Some(author)) = (&self.commit, &self.author) else {
            return "not committed".to_owned();
        };
        let day = self.date.as_deref().map(day);
        let subject = self.subject.as_deref().unwrap_or_default();
        format!(
            "{} {} {}: {subject}",
            &commit[..commit.len().min(ID_DIGITS)],
            day.unwrap_or_default(),
            author.name
        )
    }

    /// Writes the entry as text.
    pub(crate) fn render(&self, out: &mut dyn Sink) {
        if self.is_drawn {
            return;
        }
        self.heading.replay(out);
        let commit = self
            .commit
            .as_deref()
            .map_or("----------", |commit| &commit[..ID_DIGITS]);
        let when = self.date.as_deref().map_or("not committed", day);
        let style = self.commit.as_ref().map_or(Style::Fact, |_| Style::Commit);
        out.span(style, commit);
        out.span(Style::Fact, &format!(" {when}"));
        if let Some(author) = &self.author {
            out.span(Style::Fact, &format!(" {}", author.name));
        }
        if let Some(subject) = &self.subject {
            out.plain(&format!(" {subject}"));
        }
        out.end();
        if let Some(symbol) = &self.symbol {
            symbol.render(out);
        }
        self.changes.iter().for_each(|change| change.render(out));
    }

    /// Removes the details of the changes.
    pub(super) fn without_changes(&mut self) {
        self.symbol = None;
        self.changes.clear();
    }
}

impl ChangeOut {
    fn render(&self, out: &mut dyn Sink) {
        out.plain(&format!("    {} ", self.kind));
        out.span(Style::Path, &self.path);
        if let Some(from) = &self.from_path {
            out.plain(" from ");
            out.span(Style::Path, from);
        }
        if let Some(percent) = self.similarity.filter(|percent| *percent < 100) {
            out.span(Style::Fact, &format!(" ({percent} % similar)"));
        }
        out.end();
        out.diff(self.diff.as_deref().unwrap_or_default());
    }
}

pub(super) fn entry_out(entry: &FileLogEntry) -> EntryOut {
    EntryOut {
        changes: entry.changes.iter().map(change_out).collect(),
        earlier_file: Some(entry.n_before).filter(|n_before| *n_before > 0),
        ..EntryOut::of(&entry.head, &entry.author, entry.is_merge)
    }
}

fn change_out(change: &FileChange) -> ChangeOut {
    let FileChange { path, change } = change;
    ChangeOut {
        kind: FileChangeKind::of(change).name(),
        path: path.to_string(),
        from_path: change.origin.as_ref().map(|origin| origin.path.to_string()),
        similarity: change.origin.as_ref().map(|origin| origin.similarity),
        old_blob: change.old.map(|entry| entry.oid.to_string()),
        new_blob: change.new.map(|entry| entry.oid.to_string()),
        diff: None,
    }
}
