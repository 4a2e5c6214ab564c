//! `index`: brings the sidecar up to date. Normally not needed: the first question about a revision does it.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anyhow::Result;
use serde_json::{Value, json};

use super::super::arguments::{Kind, Parameter};
use super::super::asked::{Asked, MAX_TOKENS, REPO};
use super::super::failure::Failure;
use super::super::jobs::{End, Job};
use super::super::reply::{Draft, Reply};
use super::super::tool::{Call, Tool};
use crate::surface::answer::ProvenanceOut;
use crate::surface::open::Keeping;

/// How long a call waits for a build; clients give up not much later.
const DEFAULT_WAIT_SECONDS: usize = 8;
const MAX_WAIT_SECONDS: u64 = 100;

pub(super) const TOOL: Tool = Tool {
    name: "index",
    title: "Build the index",
    description: "Builds the index of revisions, with progress, or stops running builds. Changes only codescout's own files. \
                  Normally not needed: the first question about a revision begins it. What takes longer than wait goes on.",
    parameters: &[
        Parameter::new("op", Kind::Choice(&["build", "stop"]), ""),
        Parameter::new("refs", Kind::Texts, "default: HEAD"),
        Parameter::new("wait", Kind::Number(MAX_WAIT_SECONDS), "seconds, default 8"),
        Parameter::new("dry_run", Kind::Flag, ""),
        REPO,
        MAX_TOKENS,
    ],
    output,
    is_read_only: false,
    time_limit: Duration::from_secs(MAX_WAIT_SECONDS + 10),
    run,
};

fn output() -> Value {
    json!({"op": {"type": "string"}, "results": {"type": "array", "items": {"type": "object"}}})
}

fn run(call: &Call<'_>) -> Result<Reply> {
    let asked = Asked::of(TOOL.name, &call.arguments)?;
    let workspace = &call.desk.workspace;
    if call.arguments.text("op") == Some("stop") {
        let provenance = ProvenanceOut::beside(workspace, "WORKTREE", workspace.target("WORKTREE")?);
        let mut draft = Draft::new(call, asked.characters);
        let n_stopped = match call.arguments.flag("dry_run") {
            true => call.desk.jobs.all().iter().filter(|job| job.is_running()).count(),
            false => call.desk.jobs.stop(),
        };
        draft.note(&format!("{n_stopped} builds told to stop; what was indexed is kept"));
        return Ok(draft.finish(&provenance, None, &json!({"op": "stop", "stopped": n_stopped})));
    }
    if workspace.keeping() == Keeping::Nowhere {
        return Err(Failure::new(
            "this repository is only read: no index is written there",
            "questions about it work all the same; codescout index, run in it, makes one",
        )
        .into());
    }
    build(call, &asked)
}

fn build(call: &Call<'_>, asked: &Asked) -> Result<Reply> {
    let workspace = &call.desk.workspace;
    let mut references = call.arguments.texts("refs");
    if references.is_empty() {
        references.push("HEAD".to_owned());
    }
    let wait = call.arguments.number("wait").unwrap_or(DEFAULT_WAIT_SECONDS);
    let deadline = Instant::now() + Duration::from_secs(wait as u64);
    let mut draft = Draft::new(call, asked.characters);
    let mut provenance = None;
    for reference in &references {
        if reference.starts_with('-') || reference.is_empty() {
            return Err(Failure::new(format!("{reference:?} is not a ref"), "give branches, tags or commits").into());
        }
        let named = if reference == "HEAD" { "WORKTREE" } else { reference };
        let target = workspace.target(named)?;
        provenance.get_or_insert_with(|| ProvenanceOut::beside(workspace, reference, target));
        let Some(target) = target else {
            draft.note("no commits yet: nothing to index");
            continue;
        };
        if call.arguments.flag("dry_run") {
            let is_there = workspace.stored_whole(target.tree)?.is_some();
            let state = if is_there { "up_to_date" } else { "to_be_built" };
            let facts = json!({"ref": reference, "tree": target.tree.to_string(), "state": state});
            draft.push(&facts, &format!("{reference}: {state}"), None);
            continue;
        }
        let (job, is_new) = call.desk.build(reference, target)?;
        let end = job.wait(
            deadline.saturating_duration_since(Instant::now()),
            call.interrupt,
            call.progress,
        );
        if call.interrupt.load(Ordering::Relaxed) {
            // Who began it has given it up; a build that others began goes on.
            if is_new {
                job.interrupt.store(true, Ordering::Relaxed);
            }
            anyhow::bail!("interrupted");
        }
        let (facts, line) = told(reference, &job, end);
        draft.push(&facts, &line, None);
    }
    let provenance = match provenance {
        Some(provenance) => provenance,
        None => ProvenanceOut::beside(workspace, "HEAD", None),
    };
    Ok(draft.finish(&provenance, None, &json!({"op": "build"})))
}

fn told(reference: &str, job: &Job, end: Option<End>) -> (Value, String) {
    let advance = job.advance();
    let mut facts = json!({"ref": reference, "tree": job.target.tree.to_string()});
    let line = match end {
        None => {
            facts["state"] = "running".into();
            facts["files"] = advance.n_blobs.into();
            facts["done"] = advance.n_done.into();
            format!(
                "{reference}: still running, {}; status op=jobs tells how far it is",
                advance.to_text()
            )
        }
        Some(End::Done(outcome)) => {
            facts["state"] = "done".into();
            facts["new_blobs"] = outcome.n_new_blobs.into();
            facts["new_chunks"] = outcome.n_new_chunks.into();
            match outcome.n_new_blobs {
                0 => format!("{reference}: up to date"),
                n_blobs => format!("{reference}: {n_blobs} new blobs, {} new chunks", outcome.n_new_chunks),
            }
        }
        Some(End::Stopped) => {
            facts["state"] = "stopped".into();
            format!("{reference}: stopped; what was indexed is kept")
        }
        Some(End::Failed(error)) => {
            facts["state"] = "failed".into();
            facts["error"] = error.clone().into();
            format!("{reference}: failed: {error}")
        }
    };
    (facts, line)
}
