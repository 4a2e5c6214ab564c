//! The files that change in the same commits.

use std::collections::BTreeSet;

use serde::Serialize;

use super::answer::Answer;
use super::question::Question;
use crate::model::RepoPath;
use crate::ops::sink::{Sink, Style};
use crate::query::{Cochange, cochange};
use crate::session::Result;

/// A file that changes in the same commits.
#[derive(Debug, Serialize)]
pub(crate) struct CochangeOut {
    path: String,
    support: u32,
    confidence: f64,
}

impl CochangeOut {
    pub(super) fn render(&self, out: &mut dyn Sink) {
        let numbers = format!("{:>6} {:>5.1} % ", self.support, self.confidence * 100.0);
        out.span(Style::Fact, &numbers);
        out.span(Style::Path, &self.path);
        out.end();
    }
}

impl Question<'_> {
    /// Adds the files that changed in the same commits.
    pub(super) fn add_cochange(&self, answer: &mut Answer, commits: &[u32], own: &BTreeSet<RepoPath>) -> Result<()> {
        let (n_commits, mut found) = cochange(&self.targets.opened.history, commits, own)?;
        found.retain(|found| self.is_visible(&found.path));
        answer.facts.commits = Some(n_commits);
        answer.facts.total = found.len();
        let file = |found: Cochange| CochangeOut {
            path: found.path.to_string(),
            support: found.support,
            confidence: (found.confidence * 1e4).round() / 1e4,
        };
        let page = found.into_iter().skip(self.part.skip).take(self.part.limit);
        answer.files = page.map(file).collect();
        Ok(())
    }
}
