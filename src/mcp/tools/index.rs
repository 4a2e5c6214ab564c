//! The tool `index`: updates and maintains the sidecar. It is rarely needed, because the first query of a revision
//! builds its index, and hooks collect garbage.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::super::arguments::{Kind, Parameter};
use super::super::asked::{Asked, MAX_TOKENS, REPO};
use super::super::parameters;
use super::super::reply::{Reply, ReplyBuilder, error_text};
use super::super::tool::{Call, Effect, Tool};
use super::op::{request, run_selected};
use super::status::about;
use crate::ingest::Target;
use crate::ops::{Gc, Pins, ProvenanceOut, Verify};
use crate::session::{Advance, End, Job, Keeping, Made, OpError, Result, Task};

/// Default time in seconds that a call waits for a build. Clients time out not much later.
const DEFAULT_WAIT_SECONDS: u64 = 8;
const MAX_WAIT_SECONDS: u64 = 100;

pub(super) const TOOL: Tool = Tool {
    name: "index",
    description: "Build, verify or clean up the index. Rarely needed: the first query of a revision builds it. Changes only codescout's own files.",
    own: || {
        let own = vec![
            Parameter::new(
                "op",
                Kind::Choice(&["build", "update", "stop", "gc", "verify", "pin", "remove"]),
                "",
            ),
            Parameter::new("refs", Kind::Texts, "default: HEAD"),
            Parameter::new("history", Kind::Flag, "record commits and trace definitions too"),
            Parameter::new("wait", Kind::Number(MAX_WAIT_SECONDS), "seconds, default 8"),
        ];
        [own, parameters::of::<Gc>(), parameters::of::<Verify>()].concat()
    },
    common: &[REPO, MAX_TOKENS],
    profile: None,
    effect: Effect::Indexes,
    time_limit: Duration::from_secs(MAX_WAIT_SECONDS + 10),
    when_too_slow: "builds go on; status op=jobs says how far they are",
    run,
};

fn run(call: &Call<'_>) -> Result<Reply> {
    let asked = Asked::of(call)?;
    let op = call.arguments.text("op").unwrap_or("build");
    if op == "stop" {
        return stop(call, &asked);
    }
    let session = call.session()?;
    let is_build = matches!(op, "build" | "update");
    if session.workspace.storage.keeping() == Keeping::Nowhere || !(is_build || session.is_own) {
        return Err(OpError::new(
            "this repository is read-only for this server",
            "queries work anyway; to store an index, run codescout index in it",
        ));
    }
    match op {
        "gc" => run_selected(call, op, &request::<Gc>(call)?),
        "verify" => verify(call),
        "pin" | "remove" => pins(call, op),
        op => build(call, &asked, op),
    }
}

/// Stops the builds of the named revisions. Without names, stops only builds that no call waits for, because several
/// agents may share a server.
fn stop(call: &Call<'_>, asked: &Asked) -> Result<Reply> {
    let jobs = &call.session()?.jobs;
    let running = jobs.all().into_iter().filter(|job| job.is_running());
    let (meant, others): (Vec<_>, Vec<_>) = if call.arguments.texts("refs").is_empty() {
        running.partition(|job| !job.is_waited_for())
    } else {
        let named = wanted(call)?;
        running.partition(|job| named.iter().any(|wanted| wanted.is_of(job)))
    };
    let is_dry_run = call.arguments.flag("dry_run");
    let stop = if is_dry_run {
        "would stop"
    } else {
        jobs.stop(&meant);
        "stop"
    };
    let mut draft = ReplyBuilder::new(call, asked.characters);
    draft.note(&format!("{} builds {stop}; what was indexed is kept", meant.len()));
    for job in meant.iter().chain(&others) {
        let state = if job.interrupt.load(Ordering::Relaxed) {
            "stopping"
        } else {
            "running"
        };
        draft.push(
            &json!({"ref": job.reference, "state": state}),
            &format!("{state} {}", job.reference),
        );
    }
    if !others.is_empty() {
        draft.hint(
            "the other builds have waiting calls or were not named; use refs to name the builds to \
            stop"
                .to_owned(),
        );
    }
    Ok(draft.finish(
        about(call).as_ref(),
        None,
        &json!({"op": "stop", "dry_run": is_dry_run, "stopped": meant.len(), "kept": others.len()}),
    ))
}

/// A revision to index.
struct Wanted {
    reference: String,
    target: Result<Option<Target>>,
}

impl Wanted {
    /// Returns true if `job` builds this revision.
    fn is_of(&self, job: &Job) -> bool {
        let is_target = |target: &Target| target.tree == job.target.tree;
        job.reference == self.reference
            || self
                .target
                .as_ref()
                .is_ok_and(|found| found.as_ref().is_some_and(is_target))
    }
}

fn wanted(call: &Call<'_>) -> Result<Vec<Wanted>> {
    let session = call.session()?;
    let mut references = call.arguments.texts("refs");
    if references.is_empty() {
        references.push("HEAD".to_owned());
    }
    let wanted = |reference: String| {
        session.checked(&reference)?;
        // A repository without commits is not an error, so `HEAD` is resolved like `WORKTREE`.
        let named = if reference == "HEAD" { "WORKTREE" } else { &reference };
        Ok(Wanted {
            target: session.workspace.target(named),
            reference,
        })
    };
    references.into_iter().map(wanted).collect()
}

fn build(call: &Call<'_>, asked: &Asked, op: &str) -> Result<Reply> {
    let session = call.session()?;
    let is_dry_run = call.arguments.flag("dry_run");
    let wait = call.arguments.number("wait").map(|seconds| seconds as u64);
    let deadline = Instant::now() + Duration::from_secs(wait.unwrap_or(DEFAULT_WAIT_SECONDS));
    let wanted = wanted(call)?;
    // Starts all builds before waiting for the first one.
    let mut begun = Vec::new();
    for Wanted { reference, target } in &wanted {
        if let (Ok(Some(target)), false) = (target, is_dry_run) {
            begun.push((reference, session.build(reference, *target)));
        }
    }
    let mut draft = ReplyBuilder::new(call, asked.characters);
    let mut is_all = true;
    let mut rows = Vec::new();
    let n_before = Cell::new(0);
    for Wanted { reference, target } in &wanted {
        let (facts, line) = match target {
            Err(error) => {
                let failure = error.for_tools();
                let facts = json!({"ref": reference, "state": "failed", "error": failure.error, "hint": failure.hint});
                (facts, format!("{reference}: {}", error_text(&failure)))
            }
            Ok(None) => {
                draft.note("no commits yet: nothing to index");
                continue;
            }
            Ok(Some(target)) if is_dry_run => {
                let is_there = session.workspace.stored_whole(target.tree)?.is_some();
                let state = if is_there { "up_to_date" } else { "to_be_built" };
                let facts = json!({"ref": reference, "tree": target.tree.to_string(), "state": state});
                (facts, format!("{reference}: {state}"))
            }
            Ok(Some(target)) => {
                let Some((_, job)) = begun.iter().find(|(other, _)| other == &reference) else {
                    continue;
                };
                let (facts, line, is_done) = waited(call, job, reference, deadline, &n_before)?;
                is_all &= is_done;
                rows.push((facts, line));
                if is_done && (call.arguments.flag("history") || session.workspace.records().has_searchable_history()) {
                    let task = if call.arguments.flag("history") || session.workspace.records().is_traced() {
                        Task::Trace
                    } else {
                        Task::Searchable
                    };
                    let job = session.record(task, reference, *target);
                    let (facts, line, is_done) = waited(call, &job, reference, deadline, &n_before)?;
                    is_all &= is_done;
                    rows.push((facts, line));
                }
                continue;
            }
        };
        rows.push((facts, line));
    }
    for (facts, line) in &rows {
        draft.push(facts, line);
    }
    let mut own = json!({"op": op});
    if !is_all {
        own["hint"] = "use status op=jobs for progress".into();
    }
    let first = wanted.first().and_then(|wanted| wanted.target.as_ref().ok().copied());
    let provenance = first.map(|target| ProvenanceOut::beside(&session.workspace, &wanted[0].reference, target));
    Ok(draft.finish(provenance.as_ref(), None, &own))
}

/// Waits for a build. Returns its JSON fields, its line of text, and true if it is complete.
fn waited(
    call: &Call<'_>,
    (job, _): &(Arc<Job>, bool),
    reference: &str,
    deadline: Instant,
    n_before: &Cell<usize>,
) -> Result<(Value, String, bool)> {
    let patience = deadline.saturating_duration_since(Instant::now());
    // Progress increases over all builds of a call.
    let told_of = |advance: Advance| {
        let Some(limits) = call.ctx.limits else { return };
        (limits.waiting)(Advance {
            n_before: n_before.get() + advance.n_before,
            ..advance
        });
    };
    let end = call.ctx.pause(|| job.wait(patience, call.ctx.ctx.interrupt, &told_of));
    let advance = job.advance();
    n_before.set(n_before.get() + advance.n_before + advance.n_done);
    if call.ctx.ctx.interrupt.load(Ordering::Relaxed) {
        // The build continues if other calls wait for it.
        job.give_up();
        return Err(OpError::interrupted());
    }
    let is_done = matches!(end, Some(End::Done(_)));
    let (facts, line) = job_out(reference, job, end);
    Ok((facts, line, is_done))
}

fn job_out(reference: &str, job: &Job, end: Option<End>) -> (Value, String) {
    let advance = job.advance();
    let mut facts = json!({"ref": reference, "task": job.task.name(), "tree": job.target.tree.to_string()});
    let state = match &end {
        None if !advance.has_begun => "waiting",
        None => "running",
        Some(End::Done(_)) => "done",
        Some(End::Stopped) => "stopped",
        Some(End::Failed(_)) => "failed",
    };
    facts["state"] = state.into();
    let what = match job.task {
        Task::Index => String::new(),
        Task::Record | Task::Searchable | Task::Trace => " (commits)".to_owned(),
    };
    let line = match end {
        None => {
            facts["files"] = advance.n_ahead.into();
            facts["done"] = advance.n_done.into();
            format!("still {state}, {}; use status op=jobs for progress", advance.to_text())
        }
        Some(End::Done(made)) => {
            match &made {
                Made::Index(outcome) => {
                    facts["new_blobs"] = outcome.n_new_blobs.into();
                    facts["new_chunks"] = outcome.n_new_chunks.into();
                }
                Made::Records(outcome) | Made::Traced(outcome, _) => {
                    facts["new_commits"] = outcome.n_new_commits.into();
                    facts["commits"] = outcome.n_commits.into();
                }
            }
            if let Made::Traced(_, outcome) = &made {
                facts["newly_traced"] = outcome.n_new_commits.into();
            }
            made.to_text()
        }
        Some(End::Stopped) => "stopped; the files indexed so far are kept".to_owned(),
        Some(End::Failed(error)) => {
            facts["error"] = error.clone().into();
            format!("failed: {error}")
        }
    };
    (facts, format!("{reference}{what}: {line}"))
}

fn verify(call: &Call<'_>) -> Result<Reply> {
    let mut verify: Verify = request(call)?;
    verify.max_duration.get_or_insert(DEFAULT_WAIT_SECONDS);
    run_selected(call, "verify", &verify)
}

fn pins(call: &Call<'_>, op: &str) -> Result<Reply> {
    let refs = call.arguments.texts("refs");
    if refs.is_empty() {
        return Err(OpError::new(
            format!("refs is missing: name the revisions to {op}"),
            "give branches, tags or commits",
        )
        .with_retry(json!({"tool": "status", "arguments": {"op": "refs"}})));
    }
    let (pin, unpin) = match op {
        "pin" => (refs, Vec::new()),
        _ => (Vec::new(), refs),
    };
    let pins = Pins {
        pin,
        unpin,
        pins: false,
        dry_run: call.arguments.flag("dry_run"),
    };
    run_selected(call, op, &pins)
}
