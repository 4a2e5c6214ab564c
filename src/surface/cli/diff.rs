//! `codescout diff`

use std::time::Instant;

use anyhow::Result;
use serde::Serialize;

use super::args::{self, DiffArgs, Global};
use super::json::ProvenanceOut;
use super::render::{FAINT, Output, PATH, one_line, sanitize};
use super::{Found, INTERRUPTED};
use crate::surface::answer::{DiffBody, DiffBy, DiffQuestion, diff};
use crate::surface::open::Workspace;

#[derive(Debug, Serialize)]
struct DiffOut {
    #[serde(flatten)]
    provenance: ProvenanceOut,
    #[serde(flatten)]
    body: DiffBody,
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
    let (body, provenance) = diff(workspace, &question, &INTERRUPTED)?;
    let is_nothing = body.total == 0;
    match output.json {
        true => output.json(&DiffOut {
            provenance,
            body,
            took_ms: started.elapsed().as_secs_f64() * 1e3,
        })?,
        false => show(&body, &provenance, global, output)?,
    }
    Ok(if is_nothing { Found::Nothing } else { Found::Something })
}

fn show(answer: &DiffBody, provenance: &ProvenanceOut, global: &Global, output: &mut Output) -> Result<()> {
    for file in &answer.files {
        let from = file
            .from_path
            .as_deref()
            .map(|from| format!(" from {}", one_line(from)));
        let lines = match (file.added_lines, file.removed_lines) {
            (Some(added), Some(removed)) => format!("+{added} -{removed}"),
            _ => "binary".to_owned(),
        };
        let path = output.name(PATH, &file.path);
        let lines = output.styled(FAINT, &lines);
        output.line(&format!("{} {path}{} {lines}", file.kind, from.unwrap_or_default()))?;
        for symbol in file.symbols.iter().flatten() {
            let from = symbol.from.as_deref().map(|from| format!(" from {}", one_line(from)));
            let name = symbol.id.split_once('#').map_or(symbol.id.as_str(), |(_, name)| name);
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
