//! What is recorded of commits, for a question about the past: recorded in the background if it is not there yet.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Result;

use super::credentials::is_credential;
use super::desk::Desk;
use super::failure::Failure;
use super::jobs::{End, Job, Made, Task};
use super::question::Question;
use super::tool::Call;
use crate::history::{History, Reading};
use crate::ingest::Target;
use crate::ops::{Named, ProvenanceOut, named};
use crate::query::Sought;
use crate::session::{Keeping, Workspace, is_read_only};
use crate::session::{OpenedHistory, Uncommitted};

/// The past of a revision as far as it is known.
pub(super) struct Past {
    /// What is recorded.
    pub(super) opened: OpenedHistory,
    /// What is not committed.
    pub(super) uncommitted: Vec<Uncommitted>,
    /// The revision, as it is told.
    pub(super) reference: String,
    /// What records the rest, if it is not all there.
    pub(super) recording: Option<Arc<Job>>,
}

impl Past {
    /// Opens what is recorded. What is not is waited for `patience` long, and goes on to be recorded after that.
    pub(super) fn of(call: &Call<'_>, reference: &str, patience: Duration) -> Result<Self> {
        let desk = call.desk()?;
        let reference = desk.checked(reference)?;
        let workspace = &desk.workspace;
        let open = || workspace.recorded_history(reference, locked(&desk.records).as_ref());
        let mut opened = open()?;
        let mut recording = None;
        if let Some(target) = opened.target.filter(|_| !is_whole(&opened)) {
            let (job, _) = desk.record(Task::Record, reference, target);
            match call.seat.away(|| job.wait(patience, call.interrupt, call.progress)) {
                Some(End::Failed(error)) => {
                    return Err(Failure::new(error, "status with op=health says more").into());
                }
                Some(End::Done(_)) => {}
                Some(End::Stopped) | None => recording = Some(job),
            }
            opened = open()?;
            recording = recording.filter(|_| !is_whole(&opened));
        }
        let uncommitted = match reference {
            "WORKTREE" => Uncommitted::of(desk.work_tree_changes(call.interrupt)?.as_ref().clone()),
            reference => workspace.uncommitted(reference, call.interrupt)?,
        };
        Ok(Self {
            opened,
            uncommitted,
            reference: reference.to_owned(),
            recording,
        })
    }

    /// What an answer is about.
    pub(super) fn provenance(&self, workspace: &Workspace, incomplete: Vec<String>) -> ProvenanceOut {
        let (target, n_dirty) = (self.opened.target, self.uncommitted.len());
        ProvenanceOut::without_view(workspace, &self.reference, target, n_dirty, incomplete)
    }

    /// Everything that an answer depends on.
    pub(super) fn state(&self) -> impl std::fmt::Debug {
        (self.opened.target, self.opened.tip, &self.uncommitted)
    }

    /// What is missing.
    pub(super) fn gap(&self) -> Result<Option<String>> {
        let Some(job) = &self.recording else { return Ok(None) };
        let told = job.advance().to_text();
        let until = match self.opened.tip {
            Some(tip) => format!(
                "told is what was until commit {}",
                self.opened.history.id(tip)?.0.short(12)
            ),
            None => "nothing is known yet".to_owned(),
        };
        Ok(Some(format!(
            "commits are being recorded ({told}): {until}; ask again for the rest"
        )))
    }
}

/// How long a call reads versions of files: it is to answer before its time is up.
pub(super) fn reading<'a>(call: &'a Call<'_>) -> Reading<'a> {
    Reading {
        deadline: Some(call.reading_ends()),
        interrupt: call.interrupt,
        begin: &|_| {},
        advance: &|| {},
    }
}

/// The definitions that a name means at the revision of a call.
pub(super) fn meant(call: &Call<'_>, name: &str) -> Result<Named> {
    let mut question = Question::of_part(call, call.patience())?;
    let bare = name
        .rsplit(|letter: char| !(letter.is_alphanumeric() || letter == '_'))
        .next();
    let has_all = question.fill(
        call,
        &Sought {
            name: bare.map(str::to_owned),
            ..Sought::default()
        },
    )?;
    let (mut found, near) = named(call.workspace()?, &question.seen.view, name)?;
    if !has_all || found.is_empty() {
        let hint = "name a path, or path#name, or ask again in a while";
        question.needs_index("what the name means is not known yet", hint, None)?;
    }
    found.retain(|candidate| !is_credential(candidate.path.as_bytes()));
    Ok((found, near))
}

fn is_whole(opened: &OpenedHistory) -> bool {
    let commit = opened.target.and_then(|target| target.commit);
    commit.is_none_or(|commit| opened.history.number(commit).is_some())
}

fn locked(records: &Mutex<Option<History>>) -> std::sync::MutexGuard<'_, Option<History>> {
    records.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Desk {
    /// Records in the background what a commit reaches, made searchable if that is the task; whether that was begun by this call.
    pub(super) fn record(&self, task: Task, reference: &str, target: Target) -> (Arc<Job>, bool) {
        let workspace = Arc::clone(&self.workspace);
        let records = Arc::clone(&self.records);
        let run = move |job: &Job| record(&workspace, &records, job);
        self.jobs.ensure(task, reference, target, run)
    }
}

/// Records into the sidecar where that is allowed and possible, else into memory.
fn record(workspace: &Workspace, records: &Mutex<Option<History>>, job: &Job) -> Result<Made> {
    let Some(commit) = job.target.commit else {
        return Ok(Made::Records(Default::default()));
    };
    if workspace.keeping() == Keeping::Sidecar {
        let recorded = match job.task {
            Task::Searchable => workspace
                .record_history(&[commit], job, &job.interrupt)
                .and_then(|outcome| {
                    workspace.index_past(None, job, &job.interrupt)?;
                    Ok(outcome)
                }),
            Task::Trace => workspace.record_history(&[commit], job, &job.interrupt),
            Task::Record | Task::Index => workspace.record_commits(&[commit], job, &job.interrupt),
        };
        match recorded {
            Err(error) if is_read_only(&error) => {}
            Ok(recorded) if job.task == Task::Trace => {
                let traced = workspace.trace_history(job, &job.interrupt)?;
                workspace.index_past(None, job, &job.interrupt)?;
                return Ok(Made::Traced(recorded, traced));
            }
            ended => return ended.map(Made::Records),
        }
    }
    let known = workspace.records_in_memory(commit, &job.interrupt)?;
    let outcome = crate::ingest::RecordOutcome {
        n_commits: known.n_commits(),
        ..Default::default()
    };
    *locked(records) = Some(known);
    Ok(Made::Records(outcome))
}
