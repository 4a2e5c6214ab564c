//! `codescout symbol`

use std::time::Instant;

use anyhow::{Result, bail};
use serde::Serialize;

use super::args::{Global, SymbolArgs};
use super::json::ProvenanceOut;
use super::progress::CliProgress;
use super::render::{FAINT, Output, PATH, STRONG, note, one_line, sanitize};
use super::{Found, INTERRUPTED};
use crate::ops::{
    DefinitionOut, MAX_LISTED_REFERENCES, ReferencesOut, definition_kinds, definition_out, found_by_name, inside,
    place_query, references,
};
use crate::query::{CursorKey, FoundDefinition, Sources, SymbolQuery, SymbolRequest, symbols};
use crate::session::Workspace;
use crate::snapshot::View;

/// A list of names that begin alike ends here unless more is asked for.
const PREFIX_LIMIT: usize = 100;
#[derive(Debug, Serialize)]
struct SymbolOut {
    #[serde(flatten)]
    provenance: ProvenanceOut,
    found_by: &'static str,
    near: Vec<String>,
    total: usize,
    results: Vec<DefinitionOut>,
    #[serde(skip_serializing_if = "Option::is_none")]
    references: Option<ReferencesOut>,
    next_cursor: Option<String>,
    took_ms: f64,
}

pub(super) fn run(workspace: &Workspace, global: &Global, args: &SymbolArgs, output: &mut Output) -> Result<Found> {
    let filter = args.filter.filter(workspace)?;
    let kinds = definition_kinds(&args.kinds)?;
    let opened = workspace.view(&global.reference, &CliProgress::new(global.quiet), &INTERRUPTED)?;
    let view = &opened.view;
    let started = Instant::now();
    let sources = Sources::new(view, &workspace.repository).until(&INTERRUPTED);
    let request = SymbolRequest {
        query: query(workspace, view, args)?,
        filter,
        kinds,
    };
    let page = Page::of(view, args)?;
    let mut outcome = symbols(&sources, &request)?;
    let total = outcome.definitions.len();
    let next_cursor = page.cut(&mut outcome.definitions);
    let mut results = Vec::with_capacity(outcome.definitions.len());
    for found in &outcome.definitions {
        results.push(definition_out(&sources, found, args.body)?);
    }
    let references = if args.refs {
        Some(references(
            &sources,
            &outcome,
            &request.filter,
            MAX_LISTED_REFERENCES,
            &INTERRUPTED,
        )?)
    } else {
        None
    };
    let mut provenance = ProvenanceOut::of(view);
    let partial = references.iter().flat_map(|found: &ReferencesOut| &found.incomplete);
    partial.for_each(|why| provenance.also_incomplete(why.clone()));
    let answer = SymbolOut {
        provenance,
        found_by: found_by_name(outcome.found_by),
        near: outcome.near,
        total,
        results,
        references,
        next_cursor,
        took_ms: started.elapsed().as_secs_f64() * 1e3,
    };
    if output.json {
        output.json(&answer)?;
    } else {
        show(&answer, args, output)?;
        output.incomplete(answer.provenance.incomplete_because())?;
    }
    Ok(match total {
        0 => Found::Nothing,
        _ => Found::Something,
    })
}

fn query(workspace: &Workspace, view: &View, args: &SymbolArgs) -> Result<SymbolQuery> {
    if let Some(place) = &args.at {
        return place_query(workspace, view, place);
    }
    match args.name.as_deref() {
        Some(name) if name.trim().is_empty() => bail!("the name is empty"),
        Some(name) if args.prefix => Ok(SymbolQuery::Prefix(name.to_owned())),
        Some(name) => Ok(SymbolQuery::Named(inside(workspace, name).into_owned())),
        None => bail!("a name is needed, or --at"),
    }
}

/// Which of the definitions are told.
struct Page {
    key: CursorKey,
    skip: usize,
    limit: usize,
}

impl Page {
    fn of(view: &View, args: &SymbolArgs) -> Result<Self> {
        let question = (&args.name, &args.at, args.prefix, &args.kinds, &args.filter);
        let key = CursorKey::new(view, &format!("symbol {question:?}"));
        let default = if args.prefix { PREFIX_LIMIT } else { usize::MAX };
        Ok(Self {
            skip: match &args.page.cursor {
                Some(cursor) => key.read(cursor)?.0 as usize,
                None => 0,
            },
            limit: match args.page.limit {
                None => default,
                Some(0) => usize::MAX,
                Some(limit) => limit,
            },
            key,
        })
    }

    /// Leaves this page; the cursor to the next if there is one.
    fn cut(&self, definitions: &mut Vec<FoundDefinition>) -> Option<String> {
        let end = self.skip.saturating_add(self.limit);
        let has_more = definitions.len() > end;
        definitions.truncate(end);
        definitions.drain(..self.skip.min(definitions.len()));
        has_more.then(|| self.key.write((end as u32, 0)))
    }
}

fn show(answer: &SymbolOut, args: &SymbolArgs, output: &mut Output) -> Result<()> {
    if answer.found_by == "other_spelling" && !answer.results.is_empty() {
        note("nothing is spelt like that; these are other spellings of the name");
    }
    for result in &answer.results {
        let place = output.name(PATH, &format!("{}:{}", result.path, result.name_line));
        let facts = output.styled(FAINT, result.kind);
        let name = match &result.container {
            Some(container) => format!("{container}.{}", result.name),
            None => result.name.clone(),
        };
        let name = output.name(STRONG, &name);
        output.line(&format!("{place} {facts} {name}"))?;
        match &result.body {
            Some(body) => {
                for (line, number) in body.lines().zip(result.start_line..) {
                    let number = output.styled(FAINT, &format!("{number:>6}"));
                    output.line(&format!("{number} {}", sanitize(line)))?;
                }
            }
            None => {
                output.line(&format!("    {}", one_line(&result.signature)))?;
                let doc = result.doc.as_deref().filter(|_| args.doc);
                for line in doc.unwrap_or_default().lines() {
                    output.line(&format!("    {}", sanitize(line.trim())))?;
                }
            }
        }
    }
    if let Some(references) = &answer.references {
        output.line("")?;
        output.line(&format!(
            "{} references and {} mentions in text, in {} files",
            references.syntactic, references.textual, references.files
        ))?;
        for reference in &references.results {
            let place = output.name(PATH, &format!("{}:{}", reference.path, reference.line));
            let kind = output.styled(FAINT, reference.kind);
            output.line(&format!("{place} {kind} {}", one_line(reference.text.trim_start())))?;
        }
    }
    output.flush()?;
    if !answer.near.is_empty() {
        note(&format!(
            "nothing is called that; did you mean {}?",
            answer.near.join(" or ")
        ));
    }
    if let Some(cursor) = &answer.next_cursor {
        note(&format!(
            "{} of {}; more: --cursor {cursor}",
            answer.results.len(),
            answer.total
        ));
    }
    Ok(())
}
