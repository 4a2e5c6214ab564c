//! `codescout index`

use anyhow::Result;
use serde::Serialize;

use super::args::{Global, IndexArgs};
use super::progress::CliProgress;
use super::render::Output;
use super::{Found, INTERRUPTED};
use crate::git::RefKind;
use crate::surface::open::Workspace;

#[derive(Debug, Serialize)]
struct IndexOut {
    revisions: Vec<RevisionOut>,
}

#[derive(Debug, Serialize)]
struct RevisionOut {
    #[serde(rename = "ref")]
    reference: String,
    tree: Option<String>,
    looked_at_files: usize,
    new_blobs: usize,
    new_chunks: usize,
    text_bytes: u64,
    took_ms: u64,
    interrupted: bool,
}

pub(super) fn run(workspace: &Workspace, global: &Global, args: &IndexArgs, output: &mut Output) -> Result<Found> {
    let mut revisions = args.revisions.clone();
    if args.all_branches {
        let branches = workspace
            .repository
            .refs()?
            .into_iter()
            .filter(|found| found.kind == RefKind::Branch);
        revisions.extend(branches.map(|branch| branch.name.to_string()));
    }
    if revisions.is_empty() {
        revisions.push(global.reference.clone());
    }
    let progress = CliProgress::new(global.quiet);
    let mut answer = IndexOut { revisions: Vec::new() };
    for reference in revisions {
        let Some((target, outcome)) = workspace.ingest_revision(&reference, &progress, &INTERRUPTED)? else {
            if !output.json {
                output.line("no commits yet: nothing to index")?;
            }
            continue;
        };
        if !output.json {
            let rate = outcome.n_text_bytes as f64 / 1e6 / outcome.elapsed.as_secs_f64().max(1e-9);
            output.line(&match outcome.n_new_blobs {
                0 => format!("{reference}: up to date ({})", target.tree.0.short(12)),
                n_blobs => format!(
                    "{reference}: {n_blobs} new blobs, {} new chunks, {:.1} MB in {:.2} s ({rate:.1} MB/s)",
                    outcome.n_new_chunks,
                    outcome.n_text_bytes as f64 / 1e6,
                    outcome.elapsed.as_secs_f64(),
                ),
            })?;
        }
        let interrupted = outcome.interrupted;
        answer.revisions.push(RevisionOut {
            reference,
            tree: Some(target.tree.to_string()),
            looked_at_files: outcome.n_files,
            new_blobs: outcome.n_new_blobs,
            new_chunks: outcome.n_new_chunks,
            text_bytes: outcome.n_text_bytes,
            took_ms: outcome.elapsed.as_millis() as u64,
            interrupted,
        });
        if interrupted {
            anyhow::bail!("interrupted; what was indexed so far is kept");
        }
    }
    if output.json {
        output.json(&answer)?;
    }
    Ok(Found::Something)
}
