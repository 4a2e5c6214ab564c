//! `codescout init`

use anyhow::Result;
use serde::Serialize;

use super::args::Global;
use super::progress::CliProgress;
use super::render::{Output, one_line};
use super::{Found, INTERRUPTED};
use crate::surface::open::Workspace;

#[derive(Debug, Serialize)]
struct InitOut {
    repo: String,
    sidecar: String,
    tree: Option<String>,
    new_blobs: usize,
    new_chunks: usize,
    /// What to try next, as commands.
    next: Vec<&'static str>,
}

/// What there is to try, each with what it is for.
const NEXT: [(&str, &str); 4] = [
    ("codescout search \"where are errors shown\"", "ask in your own words"),
    ("codescout outline", "what is in this repository"),
    (
        "codescout hooks install",
        "keep the index fresh in the background, so that no question waits for it",
    ),
    ("codescout doctor", "whether all is well"),
];

pub(super) fn run(workspace: &Workspace, global: &Global, output: &mut Output) -> Result<Found> {
    let repository = &workspace.repository;
    let root = repository.work_dir().unwrap_or_else(|| repository.git_dir());
    let mut answer = InitOut {
        repo: root.display().to_string(),
        sidecar: workspace.sidecar_root().display().to_string(),
        tree: None,
        new_blobs: 0,
        new_chunks: 0,
        next: NEXT.map(|(command, _)| command).to_vec(),
    };
    if let Some(target) = workspace.target(&global.reference)? {
        let outcome = workspace.ingest(target, &CliProgress::new(global.quiet), &INTERRUPTED)?;
        if outcome.interrupted {
            anyhow::bail!("interrupted; what was indexed so far is kept");
        }
        answer.tree = Some(target.tree.to_string());
        answer.new_blobs = outcome.n_new_blobs;
        answer.new_chunks = outcome.n_new_chunks;
    }
    if output.json {
        output.json(&answer)?;
        return Ok(Found::Something);
    }
    output.line(&match (&answer.tree, answer.new_blobs) {
        (None, _) => "no commit yet: files on disk are searched as they are".to_owned(),
        (Some(_), 0) => "the index is up to date".to_owned(),
        (Some(_), n_blobs) => format!("indexed {n_blobs} files in {} pieces", answer.new_chunks),
    })?;
    let sidecar = one_line(&answer.sidecar);
    output.line(&format!(
        "it is kept in {sidecar}, out of git, and can be deleted at any time"
    ))?;
    output.line("next:")?;
    for (command, purpose) in NEXT {
        output.line(&format!("  {command:<44} {purpose}"))?;
    }
    Ok(Found::Something)
}
