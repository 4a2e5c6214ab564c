//! `status`: how fresh and how complete the index is, what is running, and help.

use std::time::Duration;

use anyhow::Result;
use serde_json::{Value, json};

use super::super::arguments::{Kind, Parameter};
use super::super::asked::{Asked, MAX_TOKENS, REF, REPO};
use super::super::desk::Desk;
use super::super::failure::Failure;
use super::super::guides;
use super::super::jobs::{End, Job};
use super::super::reply::{Draft, Reply, cut, single};
use super::super::tool::{Call, QUESTION_TIME, Tool};
use crate::surface::answer::{ProvenanceOut, languages, status_body};
use crate::surface::open::Keeping;

pub(super) const TOOL: Tool = Tool {
    name: "status",
    title: "State of the index",
    description: "How fresh and complete the index is, what was left out and why, refs, running builds, settings, other \
                  repositories; op=guide gives help on a topic (search, answers, errors, refs, repos).",
    parameters: &[
        Parameter::new(
            "op",
            Kind::Choice(&[
                "overview", "coverage", "refs", "jobs", "health", "config", "projects", "guide",
            ]),
            "",
        ),
        Parameter::new("topic", Kind::Text, "of a guide"),
        REF,
        REPO,
        MAX_TOKENS,
    ],
    output,
    is_read_only: true,
    time_limit: QUESTION_TIME,
    run,
};

fn output() -> Value {
    json!({"op": {"type": "string"}, "index": {"type": "string"}, "results": {"type": "array", "items": {"type": "object"}}})
}

fn run(call: &Call<'_>) -> Result<Reply> {
    let op = call.arguments.text("op").unwrap_or("overview");
    let asked = Asked::of(TOOL.name, &call.arguments)?;
    let reference = call.arguments.text("ref").unwrap_or("WORKTREE");
    if reference.starts_with('-') {
        return Err(Failure::new(
            format!("{reference:?} is not a ref"),
            "give a branch, a tag or a commit",
        )
        .into());
    }
    let workspace = &call.desk.workspace;
    let target = workspace.target(reference)?;
    let provenance = ProvenanceOut::beside(workspace, reference, target);
    match op {
        "overview" | "coverage" => overview(call, &asked, op, reference),
        "refs" => refs(call, &asked, &provenance),
        "jobs" => jobs(call, &asked, &provenance),
        "config" => config(call, &asked, &provenance),
        "projects" => projects(call, &asked, &provenance),
        "health" => health(call, &provenance),
        _ => guide(call, &asked, &provenance),
    }
}

fn overview(call: &Call<'_>, asked: &Asked, op: &str, reference: &str) -> Result<Reply> {
    let workspace = &call.desk.workspace;
    let target = workspace.target(reference)?;
    let mut provenance = ProvenanceOut::not_indexed(workspace, reference, target);
    let mut body = status_body(workspace, target)?;
    if body.index == "up_to_date" {
        let seen = asked.look(call, Duration::ZERO)?;
        provenance = ProvenanceOut::of(&seen.view);
        body.languages = languages(&seen.view);
    }
    let running: Vec<String> = running(&call.desk).iter().map(|job| told(job)).collect();
    let mut text = format!("index: {}\n", body.index);
    if !running.is_empty() {
        text.push_str(&format!("building: {}\n", running.join("; ")));
    }
    let languages: Vec<String> = body
        .languages
        .iter()
        .map(|lang| format!("{} {}", lang.name, lang.files))
        .collect();
    if !languages.is_empty() {
        text.push_str(&format!("languages (files): {}\n", languages.join(", ")));
    }
    text.push_str(&format!(
        "content: {} blobs, {} chunks, {} segments, {} snapshots\nsidecar: {}\n",
        body.blobs, body.chunks, body.segments, body.snapshots, body.sidecar
    ));
    let mut own = serde_json::to_value(&body)?;
    own["op"] = op.into();
    own["building"] = running.into();
    Ok(single(call, &provenance, &own, &text))
}

fn running(desk: &Desk) -> Vec<std::sync::Arc<Job>> {
    desk.jobs.all().into_iter().filter(|job| job.is_running()).collect()
}

fn told(job: &Job) -> String {
    let advance = job.advance();
    format!(
        "{} {}, {:.0} s",
        job.reference,
        advance.to_text(),
        advance.elapsed.as_secs_f64()
    )
}

fn refs(call: &Call<'_>, asked: &Asked, provenance: &ProvenanceOut) -> Result<Reply> {
    let mut draft = Draft::new(call, asked.characters);
    let found = call.desk.workspace.repository.refs()?;
    let n_refs = found.len();
    for found in found {
        let (name, kind) = (found.name.to_string(), format!("{:?}", found.kind).to_lowercase());
        if !draft.push(&json!({"name": name, "kind": kind}), &format!("{kind} {name}"), None) {
            break;
        }
    }
    let n_told = draft.n_results();
    Ok(draft.finish(
        provenance,
        None,
        &json!({"op": "refs", "total": n_refs, "left_out": n_refs - n_told}),
    ))
}

fn jobs(call: &Call<'_>, asked: &Asked, provenance: &ProvenanceOut) -> Result<Reply> {
    let mut draft = Draft::new(call, asked.characters);
    let all = call.desk.jobs.all();
    if all.is_empty() {
        draft.note("no builds yet");
    }
    for job in all.iter().rev() {
        let advance = job.advance();
        let (state, more) = match job.end() {
            None => ("running", advance.to_text()),
            Some(End::Done(outcome)) => ("done", format!("{} new blobs", outcome.n_new_blobs)),
            Some(End::Stopped) => ("stopped", "what was indexed is kept".to_owned()),
            Some(End::Failed(error)) => ("failed", error),
        };
        let facts = json!({
            "ref": job.reference,
            "tree": job.target.tree.to_string(),
            "state": state,
            "files": advance.n_blobs,
            "done": advance.n_done,
            "detail": more,
        });
        if !draft.push(&facts, &format!("{state} {} {more}", job.reference), None) {
            break;
        }
    }
    Ok(draft.finish(provenance, None, &json!({"op": "jobs"})))
}

fn config(call: &Call<'_>, asked: &Asked, provenance: &ProvenanceOut) -> Result<Reply> {
    let mut draft = Draft::new(call, asked.characters);
    for (key, value, origin) in call.desk.workspace.config.entries() {
        let facts = json!({"key": key, "value": value, "origin": origin});
        draft.push(&facts, &format!("{key} = {value} ({origin})"), None);
    }
    Ok(draft.finish(provenance, None, &json!({"op": "config"})))
}

fn projects(call: &Call<'_>, asked: &Asked, provenance: &ProvenanceOut) -> Result<Reply> {
    let mut draft = Draft::new(call, asked.characters);
    let home = call.hub.home().display().to_string();
    draft.push(
        &json!({"path": home, "kind": "started_in"}),
        &format!("started in {home}"),
        None,
    );
    for root in call.hub.roots() {
        let root = root.display().to_string();
        draft.push(
            &json!({"path": root, "kind": "root"}),
            &format!("repositories below {root}"),
            None,
        );
    }
    for folder in call.hub.held() {
        let folder = folder.display().to_string();
        if folder != home {
            draft.push(
                &json!({"path": folder, "kind": "asked_about"}),
                &format!("asked about {folder}"),
                None,
            );
        }
    }
    Ok(draft.finish(provenance, None, &json!({"op": "projects"})))
}

fn health(call: &Call<'_>, provenance: &ProvenanceOut) -> Result<Reply> {
    let workspace = &call.desk.workspace;
    let mut wrong = Vec::new();
    if workspace.repository.is_shallow() {
        wrong.push("history is cut off: this is a shallow clone".to_owned());
    }
    if workspace.repository.is_partial() {
        wrong.push("objects may be missing: this is a partial clone".to_owned());
    }
    if workspace.keeping() == Keeping::Nowhere {
        wrong.push("this repository is only read: its index is kept in memory".to_owned());
    }
    if let Err(error) = workspace.sidecar() {
        wrong.push(format!("{error:#}"));
    }
    wrong.extend(call.desk.jobs.all().iter().filter_map(|job| match job.end() {
        Some(End::Failed(error)) => Some(format!("a build failed: {error}")),
        _ => None,
    }));
    let text = match wrong.is_empty() {
        true => "nothing is wrong\n".to_owned(),
        false => wrong.join("\n") + "\n",
    };
    let own = json!({"op": "health", "version": env!("CARGO_PKG_VERSION"), "problems": wrong});
    Ok(single(call, provenance, &own, &text))
}

fn guide(call: &Call<'_>, asked: &Asked, provenance: &ProvenanceOut) -> Result<Reply> {
    let topic = call.arguments.text("topic").unwrap_or("search");
    let text = guides::find(topic).ok_or_else(|| {
        Failure::new(
            format!("there is no guide on {topic:?}"),
            format!("topics are {}", guides::topics().join(", ")),
        )
    })?;
    let own = json!({"op": "guide", "topic": topic, "topics": guides::topics()});
    Ok(single(call, provenance, &own, cut(text, asked.characters)))
}
