//! `codescout diff`

use std::time::Instant;

use anyhow::Result;
use serde::Serialize;

use super::args::{self, DiffArgs, Global};
use super::json::ProvenanceOut;
use super::progress::CliProgress;
use super::render::{FAINT, Output, PATH, one_line, sanitize};
use super::{Found, INTERRUPTED};
use crate::ops::{DiffBody, DiffBy, DiffQuestion, TestsOut, diff, name_in, touching};
use crate::session::Workspace;

#[derive(Debug, Serialize)]
struct DiffOut {
    #[serde(flatten)]
    provenance: ProvenanceOut,
    #[serde(flatten)]
    body: DiffBody,
    #[serde(skip_serializing_if = "Option::is_none")]
    tests: Option<TestsOut>,
    took_ms: f64,
}

pub(super) fn run(workspace: &Workspace, global: &Global, args: &DiffArgs, output: &mut Output) -> Result<Found> {
    let started = Instant::now();
    let question = DiffQuestion {
        from: args.from.clone(),
        to: args.to.clone(),
        by: match args.by {
            args::DiffBy::Symbol => DiffBy::Symbol,
            args::DiffBy::File => DiffBy::File,
            args::DiffBy::Text => DiffBy::Text,
        },
        paths: args.paths.clone(),
    };
    let (body, mut provenance) = diff(workspace, &question, &INTERRUPTED)?;
    let tests = match args.with.contains(&args::DiffWith::Tests) {
        true if body.by == "symbol" => {
            let opened = workspace.view(&body.to.reference, &CliProgress::new(global.quiet), &INTERRUPTED)?;
            Some(touching(workspace, &opened.view, &body.files)?)
        }
        true => {
            provenance.also_incomplete("tests are told of definitions alone: --by symbol".to_owned());
            None
        }
        false => None,
    };
    let is_nothing = body.total == 0;
    if output.json {
        output.json(&DiffOut {
            provenance,
            body,
            tests,
            took_ms: started.elapsed().as_secs_f64() * 1e3,
        })?
    } else {
        show(&body, tests.as_ref(), &provenance, global, output)?
    }
    Ok(if is_nothing { Found::Nothing } else { Found::Something })
}

fn show_tests(tests: &TestsOut, output: &mut Output) -> Result<()> {
    output.line(&format!("{} tests use a name of what changed:", tests.total))?;
    for test in &tests.results {
        let place = output.name(PATH, &format!("{}:{}", test.path, test.line));
        let name = one_line(test.name.as_deref().unwrap_or_default());
        let uses = output.name(FAINT, &test.uses.join(", "));
        output.line(&format!("    {place} {name} ({uses})"))?;
    }
    if !tests.common.is_empty() {
        let names = one_line(&tests.common.join(", "));
        output.line(&format!(
            "    not looked for, as too many definitions are called so: {names}"
        ))?;
    }
    Ok(())
}

fn show(
    answer: &DiffBody,
    tests: Option<&TestsOut>,
    provenance: &ProvenanceOut,
    global: &Global,
    output: &mut Output,
) -> Result<()> {
    for file in &answer.files {
        let from = file
            .from_path
            .as_deref()
            .map(|from| format!(" from {}", one_line(from)));
        let lines = match (file.added_lines, file.removed_lines) {
            (Some(added), Some(removed)) => format!("+{added} -{removed}"),
            _ if file.is_unread => "not read".to_owned(),
            _ => "binary".to_owned(),
        };
        let path = output.name(PATH, &file.path);
        let lines = output.styled(FAINT, &lines);
        output.line(&format!("{} {path}{} {lines}", file.kind, from.unwrap_or_default()))?;
        for symbol in file.symbols.iter().flatten() {
            let from = symbol.from.as_deref().map(|from| format!(" from {}", one_line(from)));
            let name = name_in(&symbol.id, &file.path);
            let events = symbol.events.join(", ");
            output.line(&format!(
                "    {events}: {} {}{}",
                symbol.kind,
                one_line(name),
                from.unwrap_or_default()
            ))?;
        }
        if let Some(diff) = &file.diff {
            output.put(&sanitize(diff))?;
        }
    }
    if let Some(tests) = tests {
        show_tests(tests, output)?;
    }
    output.flush()?;
    if !global.quiet {
        output.remark(&format!(
            "{} files, +{} -{}",
            answer.total, answer.added_lines, answer.removed_lines
        ));
    }
    for why in provenance.incomplete_because() {
        output.remark(why);
    }
    Ok(())
}
