//! `codescout graph`, and `codescout graph export`, which prints every link.

use std::sync::OnceLock;
use std::sync::atomic::Ordering;

use rayon::prelude::*;
use serde_json::json;

use super::args::{Global, Paged};
use super::progress::CliProgress;
use super::render::Output;
use super::{Found, INTERRUPTED};
use crate::extract::ReferenceKind;
use crate::link::{Link, Linker};
use crate::model::unprintable::json as json_text;
use crate::ops::{About, Ask, Common, Graph, Question};
use crate::query::{Source, Sources};
use crate::session::{CallCtx, OpError, OpensAny, Result, Session, Workspace};
use crate::snapshot::FileId;

/// Number of files whose links are held in memory at once.
const FILES_AT_ONCE: usize = 256;

pub(super) fn run(workspace: Workspace, global: &Global, args: &Paged<Graph>, output: &mut Output) -> Result<Found> {
    if !args.op.is_export() {
        return super::op::run("graph", &args.op, &args.page, workspace, global, output);
    }
    let session = Session::for_command(workspace);
    let progress = CliProgress::new(global.quiet);
    let ask = Ask {
        session: &session,
        call: CallCtx::unlimited(progress.ctx()),
        opens: &OpensAny,
        common: Common {
            reference: global.reference.clone(),
            question: "graph export".to_owned(),
            ..Common::default()
        },
    };
    let question = Question::new(&ask, &About::files(&args.op.files))?;
    let view = question.view();
    let sources = question.sources();
    let links = question.links();
    let linker = question.linker(&links);
    let files = view.files().map(|(file, _)| file);
    let files: Vec<FileId> = files.filter(|file| question.filter.passes(view, *file)).collect();
    let lines: Lines = view.files().map(|_| OnceLock::new()).collect();
    for some in files.chunks(FILES_AT_ONCE) {
        let links: Vec<_> = some.par_iter().map(|&file| linker.link_file(file)).collect();
        for (&file, links) in some.iter().zip(links) {
            if INTERRUPTED.load(Ordering::Relaxed) {
                return Err(OpError::interrupted());
            }
            print_links(&sources, &linker, &lines, (file, links.unwrap_or_default()), output)?;
        }
    }
    linker.check()?;
    Ok(Found::Something)
}

/// For each file of the view, the byte at which each line starts.
type Lines = Vec<OnceLock<Vec<u32>>>;

/// Prints the definitions of a file, then a line for each definition that a reference means, or one without a target.
fn print_links(
    sources: &Sources<'_>,
    linker: &Linker<'_>,
    lines: &Lines,
    (file, links): (FileId, Vec<Link>),
    output: &mut Output,
) -> Result<()> {
    let path = |file: FileId| String::from_utf8_lossy(sources.view().file(file).path).into_owned();
    let mut rows = Vec::new();
    for definition in linker.definitions(file).unwrap_or_default() {
        let line = line_of(sources, lines, file, definition.name_range.start)?;
        let row = json!({"file": path(file), "line": line, "name": definition.name, "tier": "definition", "target_file": null});
        rows.extend(json_line(&row)?);
    }
    let references = linker.references(file).unwrap_or_default();
    for link in links {
        let reference = &references[link.reference as usize];
        let line = line_of(sources, lines, file, reference.range.start)?;
        let mut add = |target: Option<(String, u32, u32)>| -> Result<()> {
            let (target, start, end) =
                target.map_or_else(Default::default, |(path, start, end)| (Some(path), start, end));
            let row = json!({
                "file": path(file),
                "line": line,
                "name": reference.name,
                "kind": kind_name(reference.kind),
                "tier": link.tier.name(),
                "target_file": target,
                "target_start": start,
                "target_end": end,
            });
            rows.extend(json_line(&row)?);
            Ok(())
        };
        if link.targets.is_empty() {
            add(None)?;
        }
        for target in &link.targets {
            let Some(definition) = linker.definition(*target) else {
                continue;
            };
            let start = line_of(sources, lines, target.file, definition.range.start)?;
            let end = line_of(sources, lines, target.file, definition.range.end.saturating_sub(1))?;
            add(Some((path(target.file), start, end)))?;
        }
    }
    Ok(output.bytes(&rows)?)
}

fn json_line(row: &serde_json::Value) -> Result<Vec<u8>> {
    let mut line = json_text(row)?;
    line.push(b'\n');
    Ok(line)
}

fn kind_name(kind: ReferenceKind) -> &'static str {
    crate::query::UsageKind::Reference(kind).name()
}

/// Returns the 1-based line of a byte.
fn line_of(sources: &Sources<'_>, lines: &Lines, file: FileId, at: u32) -> Result<u32> {
    let Some(starts) = lines.get(file.0 as usize) else {
        return Ok(0);
    };
    if starts.get().is_none() {
        let mut found = vec![0];
        if let Source::Bytes(bytes) = sources.reader().read(file)? {
            found.extend(memchr::memchr_iter(b'\n', &bytes).map(|at| at as u32 + 1));
        }
        let _ = starts.set(found);
    }
    Ok(starts
        .get()
        .map_or(0, |starts| starts.partition_point(|start| *start <= at) as u32))
}
