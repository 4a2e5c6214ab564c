//! `codescout status`

use anyhow::Result;
use serde::Serialize;

use super::args::{Global, StatusArgs};
use super::gc::show_causes;
use super::json::ProvenanceOut;
use super::render::{Output, one_line};
use super::{Found, INTERRUPTED};
use crate::ops::{CausesOut, StatusBody, languages, status_body};
use crate::session::{Edits, Workspace};

#[derive(Debug, Serialize)]
struct StatusOut {
    #[serde(flatten)]
    provenance: ProvenanceOut,
    #[serde(flatten)]
    body: StatusBody,
    #[serde(skip_serializing_if = "Option::is_none")]
    causes: Option<CausesOut>,
}

pub(super) fn run(workspace: &Workspace, global: &Global, args: &StatusArgs, output: &mut Output) -> Result<Found> {
    let target = workspace.target(&global.reference)?;
    let mut answer = StatusOut {
        provenance: ProvenanceOut::not_indexed(workspace, &global.reference, target),
        body: status_body(workspace, target)?,
        causes: None,
    };
    if args.bytes {
        answer.causes = workspace.survey()?.as_ref().map(CausesOut::of);
    }
    if answer.body.index == "up_to_date" {
        // Nothing is indexed for this; the changes of the work tree are looked at in memory, their chunks only where these are counted.
        let has_vectors = workspace.added_model().is_some() || workspace.remote_sparse().is_some();
        let edits = if has_vectors || workspace.sharing_host().is_some() {
            Edits::Extracted
        } else {
            Edits::Listed
        };
        if let Some(view) = workspace.stored_view(edits, &global.reference, &INTERRUPTED)? {
            answer.provenance = ProvenanceOut::of(&view);
            answer.body.languages = languages(&view);
            answer.body.count_vectors(workspace, &view);
            answer.body.count_shared(workspace, &view)?;
        }
    }
    if output.json {
        output.json(&answer)?;
    } else {
        show(&answer, output)?;
    }
    Ok(Found::Something)
}

fn show(answer: &StatusOut, output: &mut Output) -> Result<()> {
    let state = match answer.body.index {
        "none" => "nothing is indexed yet; the first search does it, or: codescout index",
        "behind" => "this revision is not indexed yet; the next search does it, or: codescout index",
        "other_settings" => "built with other settings; the next search rebuilds it, or: codescout index",
        "damaged" => "damaged; the next search rebuilds it, or: codescout verify --repair",
        _ => "up to date",
    };
    let commit = answer.provenance.commit().map_or("no commit", |commit| &commit[..12]);
    output.line(&format!("repository  {}", one_line(answer.provenance.repo())))?;
    output.line(&format!("commit      {commit}"))?;
    if let Some(n_dirty) = answer.provenance.dirty_files() {
        output.line(&format!("changed     {n_dirty} files differ from it"))?;
    }
    output.line(&format!("index       {state}"))?;
    output.line(&format!("sidecar     {}", one_line(&answer.body.sidecar)))?;
    if let Some((files, indexed, skipped)) = answer.provenance.coverage() {
        let skipped: Vec<String> = skipped
            .iter()
            .map(|(reason, n_files)| format!("{n_files} {reason}"))
            .collect();
        let left_out = if skipped.is_empty() {
            String::new()
        } else {
            format!("; left out: {}", skipped.join(", "))
        };
        output.line(&format!(
            "files       {files}, {indexed} of them searched by content{left_out}"
        ))?;
    }
    if !answer.body.languages.is_empty() {
        let told = answer.body.languages.iter();
        let told: Vec<String> = told
            .map(|language| format!("{} {}", language.name, language.files))
            .collect();
        output.line(&format!("languages   {}", told.join(", ")))?;
    }
    if let Some(bytes) = &answer.body.bytes {
        output.line(&format!(
            "content     {} blobs, {} chunks, {} segments, {} snapshots",
            answer.body.blobs, answer.body.chunks, answer.body.segments, answer.body.snapshots
        ))?;
        output.line(&format!("size        {}", bytes.told()))?;
    }
    if let Some(vectors) = &answer.body.vectors {
        output.line(&format!("vectors     {}", one_line(&vectors.told())))?;
    }
    if let Some(vectors) = &answer.body.sparse_vectors {
        output.line(&format!("sparse      {}", one_line(&vectors.told())))?;
    }
    for (shared, what) in [
        (&answer.body.shared, "chunks"),
        (&answer.body.shared_sparse, "sparse vectors"),
    ] {
        if let Some(shared) = shared {
            output.line(&format!("shared      {}", shared.told(what)))?;
        }
    }
    if let Some(history) = &answer.body.history {
        output.line(&format!("history     {}", history.told()))?;
    }
    if let Some(causes) = &answer.causes {
        show_causes(causes, output)?;
    }
    Ok(())
}
