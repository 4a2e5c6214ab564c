//! `codescout read`

use std::time::Instant;

use anyhow::Result;
use serde::Serialize;

use super::args::{Global, ReadArgs};
use super::json::ProvenanceOut;
use super::progress::CliProgress;
use super::render::{Output, note, sanitize};
use super::{Found, INTERRUPTED};
use crate::model::quoted;
use crate::ops::{ReadBody, inside, lines_query, read_body};
use crate::query::{PartQuery, ReadOutcome, Sources, paths_in_target, read, read_target};
use crate::session::Workspace;
use crate::snapshot::View;

#[derive(Debug, Serialize)]
struct ReadOut {
    #[serde(flatten)]
    provenance: ProvenanceOut,
    #[serde(flatten)]
    body: ReadBody,
    took_ms: f64,
}

pub(super) fn run(workspace: &Workspace, global: &Global, args: &ReadArgs, output: &mut Output) -> Result<Found> {
    let queries = queries(args)?;
    let paths = paths_in_target(&inside(workspace, &args.target));
    let progress = CliProgress::new(global.quiet);
    let view = &workspace.view_of_files(&global.reference, &paths, &progress, &INTERRUPTED)?;
    let started = Instant::now();
    let target = read_target(view, &inside(workspace, &args.target))?;
    let queries: Vec<PartQuery> = target.part.into_iter().chain(queries).collect();
    let outcome = read(
        &Sources::new(view, &workspace.repository).until(&INTERRUPTED),
        target.file,
        &queries,
    )?;
    if output.json {
        output.json(&ReadOut {
            provenance: ProvenanceOut::of(view),
            body: read_body(view, &outcome),
            took_ms: started.elapsed().as_secs_f64() * 1e3,
        })?;
    } else {
        show(view, &outcome, output)?;
        output.incomplete(&view.provenance().incomplete)?;
    }
    Ok(Found::Something)
}

/// The parts that flags name, by kind of part.
fn queries(args: &ReadArgs) -> Result<Vec<PartQuery>> {
    let mut queries = Vec::new();
    for lines in &args.lines {
        queries.push(lines_query(lines)?);
    }
    queries.extend(args.heading.iter().cloned().map(PartQuery::Heading));
    queries.extend(args.key.iter().cloned().map(PartQuery::Key));
    queries.extend(args.symbol.iter().cloned().map(PartQuery::Symbol));
    Ok(queries)
}

fn show(view: &View, outcome: &ReadOutcome, output: &mut Output) -> Result<()> {
    if outcome.is_link {
        let path = quoted(view.file(outcome.file).path);
        note(&format!("{path} is a symbolic link; this is where it points to"));
    }
    for part in &outcome.parts {
        let bytes = outcome.bytes.get(part.range.clone()).unwrap_or_default();
        // Exact bytes for programs; on a terminal what could steer it is shown as an escape.
        if output.is_terminal() {
            output.put(&sanitize(&String::from_utf8_lossy(bytes)))?;
        } else {
            output.bytes(bytes)?;
        }
        let is_followed = outcome.parts.len() > 1;
        if is_followed && !bytes.ends_with(b"\n") {
            output.put("\n")?;
        }
    }
    Ok(())
}
