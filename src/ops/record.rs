//! Provides the recorded commits for operations about history. Missing commits are recorded in the background.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use regex::RegexBuilder;
use serde::Serialize;

use super::ask::{Ask, FileSelection};
use super::provenance::ProvenanceOut;
use super::question::{About, Question};
use super::target::{Kept, Named, Targets, named};
use crate::history::Who;
use crate::query::{LikelyQuery, LogFilter, parse_moment};
use crate::session::{Context as _, Job, OpError, OpenedHistory, Result, Uncommitted};

/// Time for reading versions of files in commits that are not traced, for a call without time limits.
const UNTRACED_TIME: Duration = Duration::from_secs(5);

/// The recorded history of a revision.
pub(crate) struct Past<'a> {
    ask: &'a Ask<'a>,
    /// The recorded commits.
    pub(crate) opened: OpenedHistory,
    /// Uncommitted changes.
    pub(crate) uncommitted: Vec<Uncommitted>,
    /// The revision as given.
    pub(crate) reference: String,
    /// The job that records missing commits; `None` if none are missing.
    pub(crate) recording: Option<Arc<Job>>,
}

impl<'a> Past<'a> {
    /// Opens the recorded history. If the call has a time limit, waits at most `patience` for missing commits, and not
    /// beyond its deadline.
    pub(crate) fn of(ask: &'a Ask<'a>, patience: Duration) -> Result<Self> {
        let left = |deadline: Instant| patience.min(deadline.saturating_duration_since(Instant::now()));
        let patience = ask.call.ctx.deadline.map_or(patience, left);
        let (opened, recording) = ask.session.history(&ask.common.reference, patience, &ask.call)?;
        let reference = ask.session.checked(&ask.common.reference)?;
        Ok(Self {
            ask,
            opened,
            uncommitted: ask.session.uncommitted(reference, ask.call.ctx.interrupt)?,
            reference: reference.to_owned(),
            recording,
        })
    }

    /// Opens the history as far as it is recorded. Returns `None` if it is not recorded.
    pub(crate) fn recorded(ask: &'a Ask<'a>) -> Result<Option<Self>> {
        let reference = ask.session.checked(&ask.common.reference)?;
        let opened = ask.session.recorded_history(reference)?;
        if opened.tip.is_none() {
            return Ok(None);
        }
        Ok(Some(Self {
            ask,
            opened,
            uncommitted: ask.session.uncommitted(reference, ask.call.ctx.interrupt)?,
            reference: reference.to_owned(),
            recording: None,
        }))
    }

    /// Returns true if the definitions of the revision are traced, so that their changes can be read at once.
    pub(crate) fn is_traced(&self) -> bool {
        let recipe = self.ask.session.workspace.records().symbol_recipe();
        self.opened
            .tip
            .is_some_and(|tip| self.opened.history.is_traced(tip, recipe))
    }

    /// Returns true if the commit of the revision is recorded.
    pub(crate) fn is_whole(&self) -> bool {
        let commit = self.opened.target.and_then(|target| target.commit);
        commit.is_none_or(|commit| self.opened.history.number(commit).is_some())
    }

    /// Calls `answer` with the data needed to look up targets.
    pub(crate) fn with_targets<T>(&self, answer: impl FnOnce(&Targets<'_>) -> Result<T>) -> Result<T> {
        let call = &self.ask.call;
        let ends = call.reading_ends().unwrap_or_else(|| Instant::now() + UNTRACED_TIME);
        let targets = Targets {
            workspace: &self.ask.session.workspace,
            opened: &self.opened,
            uncommitted: &self.uncommitted,
            reference: &self.reference,
            definitions: &|name| meant(self.ask, name),
            visibility: self.ask.session.visibility,
            ctx: call.ctx.until(
                call.ctx
                    .deadline
                    .map_or(Some(ends), |deadline| Some(deadline.min(ends))),
            ),
            kept: Kept::default(),
        };
        let answered = answer(&targets);
        targets.kept.save();
        call.ctx.progress.end();
        answered
    }

    /// Returns the provenance of an answer.
    pub(crate) fn provenance(&self, incomplete: Vec<String>) -> ProvenanceOut {
        let (target, n_dirty) = (self.opened.target, self.uncommitted.len());
        let workspace = &self.ask.session.workspace;
        let mut provenance = ProvenanceOut::without_view(workspace, &self.reference, target, n_dirty, Vec::new());
        for why in incomplete {
            match &self.recording {
                Some(_) => provenance.also_building(why),
                None => provenance.also_incomplete(why),
            }
        }
        provenance
    }

    /// Returns the data that an answer depends on, for cursors.
    pub(crate) fn state(&self) -> impl std::fmt::Debug {
        (self.opened.target, self.opened.tip, &self.uncommitted)
    }

    /// Describes what is missing from the record.
    pub(crate) fn gap(&self) -> Result<Option<String>> {
        let Some(job) = &self.recording else { return Ok(None) };
        let progress = job.advance().to_text();
        let until = match self.opened.tip {
            Some(tip) => format!(
                "the answer covers commits up to {}",
                self.opened.history.id(tip)?.0.short(12)
            ),
            None => "no commits are recorded yet".to_owned(),
        };
        Ok(Some(format!(
            "commits are being recorded ({progress}): {until}; repeat the call later for the rest"
        )))
    }
}

/// Returns the definitions with a name in the call's revision.
fn meant(ask: &Ask<'_>, name: &str) -> Result<Named> {
    let selection = FileSelection::default();
    let about = About {
        has_cursor: false,
        ..About::files(&selection)
    };
    let mut question = Question::new(ask, &about)?;
    let bare = name
        .rsplit(|letter: char| !(letter.is_alphanumeric() || letter == '_'))
        .next();
    let has_all = question.fill(&LikelyQuery {
        name: bare.map(str::to_owned),
        ..LikelyQuery::default()
    })?;
    let (found, near) = named(&ask.session.workspace, question.view(), name)?;
    if !has_all || found.is_empty() {
        let hint = "use a path or path#name, or try again later";
        question.needs_index("the definitions are not indexed yet", hint, None)?;
    }
    Ok((found, near))
}

/// A name and an address, resolved by the mailmap.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct PersonOut {
    pub(crate) name: String,
    pub(crate) email: String,
}

/// Converts a person.
pub(crate) fn person_out(who: &Who) -> PersonOut {
    PersonOut {
        name: who.name.to_string(),
        email: who.email.to_string(),
    }
}

/// Maximum size of a compiled author pattern in bytes.
const MAX_AUTHOR_PROGRAM_BYTES: usize = 1 << 20;

/// Creates a filter from dates as typed and a regular expression for the author.
pub(crate) fn log_filter(since: Option<&str>, until: Option<&str>, author: Option<&str>) -> Result<LogFilter> {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs() as i64);
    let moment = |text: Option<&str>| match text {
        None => Ok(None),
        Some(text) => parse_moment(text, now).map(Some).ok_or_else(|| {
            OpError::new(
                format!("{text:?} is not a date"),
                "write 2024-02-29, 2024-02-29T13:05Z, @seconds, or 12h, 30d, 2w, 6m, 1y",
            )
        }),
    };
    let author = match author {
        None => None,
        Some(pattern) => {
            let built = RegexBuilder::new(pattern)
                .case_insensitive(true)
                .size_limit(MAX_AUTHOR_PROGRAM_BYTES)
                .build();
            Some(built.with_context(|| format!("{pattern:?} is not a regular expression"))?)
        }
    };
    Ok(LogFilter {
        since: moment(since)?,
        until: moment(until)?,
        author,
    })
}
