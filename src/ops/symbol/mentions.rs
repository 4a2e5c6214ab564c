//! The lines that mention the name of a definition.

use std::ops::ControlFlow;
use std::sync::atomic::AtomicBool;

use serde::Serialize;

use super::page::{Facts, Lookup, Rows, SymbolRow};
use crate::model::count::count;
use crate::ops::paths::path_of;
use crate::ops::sink::{Sink, Style};
use crate::query::{
    FileFilter, GrepDetail, GrepRequest, Pattern, PatternOptions, Sources, SymbolOutcome, Usage, UsageKind, grep,
    usages,
};
use crate::session::Result;
use crate::snapshot::View;

/// Default maximum number of references on a page.
const REFERENCES_OF_PAGE: usize = 100;

/// The numbers of lines that mention a name, in code and in text.
#[derive(Debug, Default, Serialize)]
pub(super) struct ReferencesOut {
    syntactic: u32,
    textual: u32,
    pub(super) files: u32,
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

impl Lookup<'_> {
    /// Adds lines that mention the name. Returns the reasons why they are incomplete.
    pub(super) fn add_references(&self, skip: u32, facts: &mut Facts, rows: &mut Rows) -> Result<Vec<String>> {
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

impl ReferenceOut {
    pub(super) fn render(&self, out: &mut dyn Sink) {
        if let Some(heading) = &self.heading {
            out.line(heading);
        }
        out.span(Style::Path, &format!("{}:{}", self.path, self.line));
        out.span(Style::Fact, &format!(" {} ", self.kind));
        out.line(self.text.trim());
    }
}
