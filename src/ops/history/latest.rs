//! The latest changes of a definition, for other answers.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use super::question::{HistoryOp, Question, Shown};
use super::rows::EntryOut;
use crate::model::{RepoPath, without_placeholders};
use crate::ops::record::Past;
use crate::query::LogFilter;
use crate::session::Result;

/// The latest changes of a definition.
pub(crate) struct LatestChanges {
    /// Total number of changes.
    pub(crate) total: usize,
    /// The latest changes.
    pub(crate) entries: Vec<EntryOut>,
    /// The reasons why the changes are incomplete.
    pub(crate) incomplete: Vec<String>,
}

/// Returns the latest `n` changes of a definition.
pub(crate) fn latest_changes(past: &Past<'_>, id: &str, n: usize) -> Result<LatestChanges> {
    let answer = past.with_targets(|targets| {
        let question = Question {
            targets,
            op: HistoryOp::Log,
            no_formatting: false,
            part: Shown {
                skip: 0,
                limit: n,
                has_diff: false,
            },
            filter: LogFilter::default(),
            path: RepoPath::from(""),
        };
        question.answer(targets.find(OsStr::from_bytes(&without_placeholders(id)))?)
    })?;
    let mut incomplete = answer.incomplete;
    incomplete.extend(past.gap()?);
    Ok(LatestChanges {
        total: answer.facts.total,
        entries: answer.rows,
        incomplete,
    })
}
