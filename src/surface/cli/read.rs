//! `codescout read`

use std::time::Instant;

use anyhow::Result;
use serde::Serialize;

use super::args::{Global, ReadArgs};
use super::json::{Hinted, ProvenanceOut};
use super::progress::CliProgress;
use super::render::{Output, note, sanitize};
use super::{Found, INTERRUPTED};
use crate::extract;
use crate::query::{PartQuery, ReadOutcome, Sources, parse_lines, read, read_target};
use crate::snapshot::View;
use crate::surface::open::Workspace;

#[derive(Debug, Serialize)]
struct ReadOut {
    #[serde(flatten)]
    provenance: ProvenanceOut,
    path: String,
    blob: String,
    language: &'static str,
    symlink: bool,
    bytes: usize,
    lines: u32,
    results: Vec<PartOut>,
    took_ms: f64,
}

#[derive(Debug, Serialize)]
struct PartOut {
    start_line: u32,
    end_line: u32,
    start_byte: usize,
    end_byte: usize,
    title: Option<String>,
    text: String,
    lossy: bool,
}

pub(super) fn run(workspace: &Workspace, global: &Global, args: &ReadArgs, output: &mut Output) -> Result<Found> {
    let queries = queries(args)?;
    let opened = workspace.view(&global.reference, &CliProgress::new(global.quiet), &INTERRUPTED)?;
    let view = &opened.view;
    let started = Instant::now();
    let target = read_target(view, inside(workspace, &args.target))?;
    let queries: Vec<PartQuery> = target.part.into_iter().chain(queries).collect();
    let outcome = read(&Sources::new(view, &workspace.repository), target.file, &queries)?;
    if output.json {
        let mut answer = read_out(view, &outcome);
        answer.took_ms = started.elapsed().as_secs_f64() * 1e3;
        output.json(&answer)?;
    } else {
        show(view, &outcome, output)?;
    }
    Ok(Found::Something)
}

/// The parts that flags name, by kind of part.
fn queries(args: &ReadArgs) -> Result<Vec<PartQuery>> {
    let mut queries = Vec::new();
    for lines in &args.lines {
        let query = parse_lines(lines).ok_or_else(|| Hinted {
            message: format!("{lines:?} are not lines"),
            hint: "write 5, 5-9 or 5-; the first line is 1".to_owned(),
        })?;
        queries.push(query);
    }
    queries.extend(args.heading.iter().cloned().map(PartQuery::Heading));
    queries.extend(args.key.iter().cloned().map(PartQuery::Key));
    queries.extend(args.symbol.iter().cloned().map(PartQuery::Symbol));
    Ok(queries)
}

/// A target with an absolute path below the work tree's root, as from there.
pub(super) fn inside<'t>(workspace: &Workspace, target: &'t str) -> &'t str {
    let root = workspace.repository.work_dir().and_then(|root| root.to_str());
    root.and_then(|root| target.strip_prefix(root)?.strip_prefix('/'))
        .unwrap_or(target)
}

fn read_out(view: &View, outcome: &ReadOutcome) -> ReadOut {
    let file = view.file(outcome.file);
    let parts = outcome.parts.iter().map(|part| {
        let bytes = outcome.bytes.get(part.range.clone()).unwrap_or_default();
        let text = String::from_utf8_lossy(bytes);
        PartOut {
            start_line: part.start_line,
            end_line: part.end_line,
            start_byte: part.range.start,
            end_byte: part.range.end,
            title: part.title.clone(),
            lossy: matches!(text, std::borrow::Cow::Owned(_)),
            text: text.into_owned(),
        }
    });
    ReadOut {
        provenance: ProvenanceOut::of(view),
        path: String::from_utf8_lossy(file.path).into_owned(),
        blob: file.entry().oid.to_string(),
        language: extract::language(view.lang(outcome.file)).map_or("text", |language| language.name),
        symlink: outcome.is_link,
        bytes: outcome.bytes.len(),
        lines: outcome.n_lines,
        results: parts.collect(),
        took_ms: 0.0,
    }
}

fn show(view: &View, outcome: &ReadOutcome, output: &mut Output) -> Result<()> {
    if outcome.is_link {
        let path = String::from_utf8_lossy(view.file(outcome.file).path);
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
