//! Opens the recorded history of a session and records missing commits in the background.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use super::call::CallCtx;
use super::error::{OpError, Result};
use super::history::{OpenedHistory, Uncommitted};
use super::jobs::{End, Job, Made, Task};
use super::open::Session;
use super::storage::Keeping;
use super::workspace::Workspace;
use super::writing::is_read_only;
use crate::history::History;
use crate::ingest::Target;
use crate::model::Ctx;

impl Session {
    /// Opens the history of a revision. Without a time limit, waits until it is complete. Otherwise waits at most
    /// `patience` for missing commits, and returns the job that records the remaining ones.
    pub(crate) fn history(
        &self,
        reference: &str,
        patience: Duration,
        call: &CallCtx<'_>,
    ) -> Result<(OpenedHistory, Option<Arc<Job>>)> {
        let reference = self.checked(reference)?;
        if call.limits.is_none() {
            return Ok((self.workspace.records().history(reference, call.ctx)?, None));
        }
        let open = || {
            self.workspace
                .records()
                .recorded_history(reference, self.records.lock().as_ref())
        };
        let opened = open()?;
        let Some(target) = opened.target.filter(|_| !is_whole(&opened)) else {
            return Ok((opened, None));
        };
        let (job, _) = self.record(Task::Record, reference, target);
        let recording = match job.wait_as(job.worth_waiting(patience), call) {
            Some(End::Failed(error)) => {
                return Err(OpError::new(error, "call status with op=health for details"));
            }
            Some(End::Done(_)) => None,
            Some(End::Stopped) | None => Some(job),
        };
        let opened = open()?;
        let recording = recording.filter(|_| !is_whole(&opened));
        Ok((opened, recording))
    }

    /// Opens the history of a revision as far as it is recorded.
    pub(crate) fn recorded_history(&self, reference: &str) -> Result<OpenedHistory> {
        let records = self.workspace.records();
        records.recorded_history(reference, self.records.lock().as_ref())
    }

    /// If the call has a time limit, waits until the commits reachable from a revision are recorded and searchable.
    /// Without a limit, they are recorded when they are read. The job continues if the call gives up.
    pub(crate) fn make_searchable(&self, reference: &str, call: &CallCtx<'_>) -> Result<()> {
        const PATIENCE: Duration = Duration::from_secs(6);
        if call.limits.is_none() {
            return Ok(());
        }
        if self.workspace.storage.keeping() == Keeping::Nowhere {
            return Err(OpError::new(
                "this repository is read-only here: its commits are not indexed",
                "use history target=PATH for the history of a file",
            ));
        }
        let reference = self.checked(reference)?;
        let Some(target) = self.workspace.target(reference)? else {
            return Ok(());
        };
        if self.is_searchable(target.commit) {
            return Ok(());
        }
        let (job, _) = self.record(Task::Searchable, reference, target);
        match job.wait_as(PATIENCE, call) {
            Some(End::Done(_)) => self.now_searchable(target.commit),
            Some(End::Failed(error)) => {
                return Err(OpError::new(error, "call status with op=health for details"));
            }
            Some(End::Stopped) | None => {
                return Err(OpError::new(
                    format!("commits are being made searchable: {}", job.advance().to_text()),
                    "try again later, or wait with index history=true; history target=PATH works now",
                ));
            }
        }
        Ok(())
    }

    /// Returns the differences from the checked-out commit.
    pub(crate) fn uncommitted(
        &self,
        reference: &str,
        interrupt: &std::sync::atomic::AtomicBool,
    ) -> Result<Vec<Uncommitted>> {
        match reference {
            "WORKTREE" => Ok(Uncommitted::of(self.work_tree_changes(interrupt)?.as_ref().clone())),
            reference => self.workspace.records().uncommitted(reference, interrupt),
        }
    }
}

fn is_whole(opened: &OpenedHistory) -> bool {
    let commit = opened.target.and_then(|target| target.commit);
    commit.is_none_or(|commit| opened.history.number(commit).is_some())
}

impl Session {
    /// Starts a background job that records the commits reachable from the target, with the data that `task` requires,
    /// or joins a running job. The flag is true if this call started it.
    pub(crate) fn record(&self, task: Task, reference: &str, target: Target) -> (Arc<Job>, bool) {
        let workspace = Arc::clone(&self.workspace);
        let records = Arc::clone(&self.records);
        let run = move |job: &Job| record(&workspace, &records, job);
        self.jobs.ensure(task, reference, target, run)
    }
}

/// Runs a recording job. Writes to the sidecar if that is allowed and possible, or else records in memory.
fn record(workspace: &Workspace, records: &Mutex<Option<History>>, job: &Job) -> Result<Made> {
    let ctx = Ctx::new(job, &job.interrupt);
    let Some(commit) = job.target.commit else {
        return Ok(Made::Records(Default::default()));
    };
    if workspace.storage.keeping() == Keeping::Sidecar {
        let recorded = match job.task {
            Task::Searchable => workspace.records().record_history(&[commit], ctx).and_then(|outcome| {
                workspace.records().index_past(None, ctx)?;
                Ok(outcome)
            }),
            Task::Trace => workspace.records().record_history(&[commit], ctx),
            Task::Record | Task::Index => workspace.records().record_commits(&[commit], ctx),
        };
        match recorded {
            Err(error) if is_read_only(&error) => {}
            Ok(recorded) if job.task == Task::Trace => {
                let traced = workspace.records().trace_history(ctx)?;
                workspace.records().index_past(None, ctx)?;
                return Ok(Made::Traced(recorded, traced));
            }
            ended => return ended.map(Made::Records),
        }
    }
    let known = workspace.records().records_in_memory(commit, &job.interrupt)?;
    let outcome = crate::ingest::RecordOutcome {
        n_commits: known.n_commits(),
        ..Default::default()
    };
    *records.lock() = Some(known);
    Ok(Made::Records(outcome))
}
