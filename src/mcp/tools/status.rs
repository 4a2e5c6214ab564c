//! The tool `status`: reports whether the index is complete and up to date, lists running builds, and contains guides.

use serde_json::json;

use super::super::arguments::{Kind, Parameter};
use super::super::asked::{Asked, MAX_TOKENS, REF, REPO};
use super::super::guides;
use super::super::parameters;
use super::super::reply::{Reply, ReplyBuilder, cut, single};
use super::super::tool::{Call, Effect, QUESTION_TIME, Tool};
use super::op::{request, run_selected};
use crate::config::Entry;
use crate::mcp::Bodies;
use crate::ops::{ProvenanceOut, Status, beside};
use crate::session::{End, OpError, Result};
use crate::setup::doctor::examine;

pub(super) const TOOL: Tool = Tool {
    name: "status",
    description: "See how complete the index is, what was left out and why, refs, builds, settings, other \
        repositories. \
                  op=guide explains a topic.",
    own: || {
        let mut own = vec![
            Parameter::new(
                "op",
                Kind::Choice(&[
                    "overview", "coverage", "refs", "jobs", "health", "usage", "config", "projects", "guide",
                ]),
                "",
            ),
            Parameter::new("topic", Kind::Text, "of a guide"),
        ];
        own.extend(parameters::of::<Status>());
        own
    },
    common: &[REF, REPO, MAX_TOKENS],
    profile: None,
    effect: Effect::Reads,
    time_limit: QUESTION_TIME,
    when_too_slow: "ask again; if it stays slow, codescout doctor finds problems",
    run,
};

fn run(call: &Call<'_>) -> Result<Reply> {
    let op = call.arguments.text("op").unwrap_or("overview");
    let asked = Asked::of(call)?;
    match op {
        "overview" | "coverage" => run_selected(call, op, &request::<Status>(call)?),
        "usage" => run_selected(call, op, &Status { bytes: true }),
        "refs" => refs(call, &asked),
        "jobs" => jobs(call, &asked),
        "config" => config(call, &asked),
        "projects" => projects(call, &asked),
        "health" => health(call, &asked),
        _ => guide(call, &asked),
    }
}

fn refs(call: &Call<'_>, asked: &Asked) -> Result<Reply> {
    let mut draft = ReplyBuilder::new(call, asked.characters);
    let found = call.workspace()?.repository.refs()?;
    let n_refs = found.len();
    for found in found {
        let (name, kind) = (found.name.to_string(), format!("{:?}", found.kind).to_lowercase());
        if !draft.push(&json!({"name": name, "kind": kind}), &format!("{kind} {name}")) {
            break;
        }
    }
    let n_listed = draft.n_results();
    Ok(draft.finish(
        about(call).as_ref(),
        None,
        &json!({"op": "refs", "total": n_refs, "left_out": n_refs - n_listed}),
    ))
}

fn jobs(call: &Call<'_>, asked: &Asked) -> Result<Reply> {
    let mut draft = ReplyBuilder::new(call, asked.characters);
    let all = call.session()?.jobs.all();
    if all.is_empty() {
        draft.note("no builds yet");
    }
    for job in all.iter().rev() {
        let advance = job.advance();
        let (state, more) = match job.end() {
            None if !advance.has_begun => ("waiting", advance.to_text()),
            None => ("running", advance.to_text()),
            Some(End::Done(made)) => ("done", made.to_text()),
            Some(End::Stopped) => ("stopped", "what was indexed is kept".to_owned()),
            Some(End::Failed(error)) => ("failed", error),
        };
        let facts = json!({
            "ref": job.reference,
            "task": job.task.name(),
            "tree": job.target.tree.to_string(),
            "state": state,
            "files": advance.n_ahead,
            "done": advance.n_done,
            "detail": more,
        });
        if !draft.push(&facts, &format!("{state} {} {more}", job.reference)) {
            break;
        }
    }
    Ok(draft.finish(about(call).as_ref(), None, &json!({"op": "jobs"})))
}

fn config(call: &Call<'_>, asked: &Asked) -> Result<Reply> {
    let mut draft = ReplyBuilder::new(call, asked.characters);
    for Entry { key, value, origin, .. } in call.workspace()?.config.entries() {
        let facts = json!({"key": key, "value": value, "origin": origin.to_string()});
        draft.push(&facts, &format!("{key} = {value} ({origin})"));
    }
    Ok(draft.finish(about(call).as_ref(), None, &json!({"op": "config"})))
}

fn projects(call: &Call<'_>, asked: &Asked) -> Result<Reply> {
    let mut draft = ReplyBuilder::new(call, asked.characters);
    let home = call.hub.home().display().to_string();
    let mut listed = vec![home.clone()];
    draft.push(
        &json!({"path": home, "kind": "started_in"}),
        &format!("started in {home}"),
    );
    for root in call.hub.roots() {
        let root = root.display().to_string();
        draft.push(
            &json!({"path": root, "kind": "root"}),
            &format!("repositories below {root}"),
        );
    }
    let below = call.hub.below_roots(call.ctx.ctx.interrupt);
    let lists = [
        ("work_tree", "work tree", call.hub.work_trees()),
        ("repository", "repository", below.folders),
        ("asked_about", "asked about", call.hub.held()),
    ];
    for (kind, what, folders) in lists {
        for folder in folders {
            let folder = folder.display().to_string();
            if listed.contains(&folder) {
                continue;
            }
            draft.push(&json!({"path": folder, "kind": kind}), &format!("{what} {folder}"));
            listed.push(folder);
        }
    }
    if !below.is_all {
        draft.note("not all folders below the roots were searched; other repositories may exist");
    }
    Ok(draft.finish(
        about(call).as_ref(),
        None,
        &json!({"op": "projects", "all_folders_seen": below.is_all}),
    ))
}

fn health(call: &Call<'_>, asked: &Asked) -> Result<Reply> {
    let session = call.session()?;
    let workspace = &session.workspace;
    let mut draft = ReplyBuilder::new(call, asked.characters);
    let mut problems = Vec::new();
    let mut tell = |severity: &str, area: &str, message: &str, mend: Option<&str>| {
        if severity == "problem" {
            problems.push(message.to_owned());
        }
        let facts = json!({"area": area, "severity": severity, "message": message, "mend": mend});
        let mend = mend.map(|mend| format!("\n    fix: {mend}"));
        draft.push(
            &facts,
            &format!("{severity} {area}: {message}{}", mend.unwrap_or_default()),
        );
    };
    if session.is_own {
        let mut findings = examine(workspace.repository.discovery_dir(), call.ctx.ctx.interrupt).findings;
        findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
        for finding in &findings {
            tell(
                finding.severity.name(),
                finding.area,
                &finding.message,
                finding.mend.as_deref(),
            );
        }
    } else if let Err(error) = workspace.storage.open_with_state() {
        tell("problem", "sidecar", &format!("{error:#}"), None);
    }
    for job in session.jobs.all() {
        if let Some(End::Failed(error)) = job.end() {
            tell("problem", "index", &format!("a build failed: {error}"), None);
        }
    }
    if problems.is_empty() {
        draft.note("no problems found");
    }
    let own = json!({"op": "health", "version": env!("CARGO_PKG_VERSION"), "problems": problems});
    Ok(draft.finish(about(call).as_ref(), None, &own))
}

fn guide(call: &Call<'_>, asked: &Asked) -> Result<Reply> {
    let topic = call.arguments.text("topic").unwrap_or("search");
    let text = guides::find(topic).ok_or_else(|| {
        OpError::new(
            format!("unknown topic {topic:?}"),
            format!("topics are {}", guides::topics().join(", ")),
        )
        .with_retry(json!({"tool": "status", "arguments": {"op": "guide"}}))
    })?;
    let shown = cut(text, asked.characters);
    let mut own = json!({"op": "guide", "topic": topic, "topics": guides::topics()});
    if matches!(call.bodies, Bodies::Structured | Bodies::Both) {
        own["guide"] = shown.into();
    }
    let is_text = call.bodies != Bodies::Structured;
    Ok(single(
        call,
        about(call).as_ref(),
        &own,
        if is_text { shown } else { topic },
    ))
}

/// Returns the provenance of an answer that does not depend on files.
pub(super) fn about(call: &Call<'_>) -> Option<ProvenanceOut> {
    beside(&call.ask().ok()?)
}
