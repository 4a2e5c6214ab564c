//! `codescout symbol`

use std::ops::ControlFlow;
use std::time::Instant;

use anyhow::{Result, bail};
use serde::Serialize;

use super::args::{Global, SymbolArgs};
use super::json::{Hinted, ProvenanceOut};
use super::progress::CliProgress;
use super::read::inside;
use super::render::{FAINT, Output, PATH, STRONG, note, one_line, sanitize};
use super::search::filter;
use super::{Found, INTERRUPTED};
use crate::extract::{self, DefinitionKind};
use crate::query::{
    CursorKey, FileFilter, FoundBy, FoundDefinition, GrepDetail, GrepRequest, Pattern, PatternOptions, Source, Sources,
    SymbolOutcome, SymbolQuery, SymbolRequest, Usage, UsageKind, grep, kind_by_name, kind_name, kind_names, nearest,
    split_position, symbols, unknown_path, usages,
};
use crate::snapshot::{FileId, View};
use crate::surface::open::Workspace;

/// A list of names that begin alike ends here unless more is asked for.
const PREFIX_LIMIT: usize = 100;
/// Lines that mention a name are listed up to this number; all are counted.
const MAX_LISTED_REFERENCES: usize = 100;

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

#[derive(Debug, Serialize)]
struct DefinitionOut {
    id: String,
    name: String,
    kind: &'static str,
    container: Option<String>,
    signature: String,
    path: String,
    start_line: u32,
    end_line: u32,
    name_line: u32,
    language: &'static str,
    blob: String,
    doc: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<String>,
}

#[derive(Debug, Default, Serialize)]
struct ReferencesOut {
    syntactic: u32,
    textual: u32,
    files: u32,
    results: Vec<ReferenceOut>,
}

#[derive(Debug, Serialize)]
struct ReferenceOut {
    path: String,
    line: u32,
    kind: &'static str,
    text: String,
}

pub(super) fn run(workspace: &Workspace, global: &Global, args: &SymbolArgs, output: &mut Output) -> Result<Found> {
    let filter = filter(&args.filter)?;
    let kinds = kinds(args)?;
    let opened = workspace.view(&global.reference, &CliProgress::new(global.quiet), &INTERRUPTED)?;
    let view = &opened.view;
    let started = Instant::now();
    let sources = Sources::new(view, &workspace.repository);
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
    let references = match args.refs {
        true => Some(references(&sources, &outcome, &request.filter)?),
        false => None,
    };
    let answer = SymbolOut {
        provenance: ProvenanceOut::of(view),
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
    }
    Ok(match total {
        0 => Found::Nothing,
        _ => Found::Something,
    })
}

fn kinds(args: &SymbolArgs) -> Result<Vec<DefinitionKind>> {
    let known = |name: &String| {
        kind_by_name(name).ok_or_else(|| {
            let near = nearest(name, kind_names());
            Hinted {
                message: format!("unknown kind {name}"),
                hint: match near.is_empty() {
                    true => format!("kinds are {}", kind_names().collect::<Vec<_>>().join(", ")),
                    false => format!("did you mean {}?", near.join(" or ")),
                },
            }
            .into()
        })
    };
    args.kinds.iter().map(known).collect()
}

fn query(workspace: &Workspace, view: &View, args: &SymbolArgs) -> Result<SymbolQuery> {
    if let Some(place) = &args.at {
        let place = inside(workspace, place);
        let (path, line, column) = split_position(place).ok_or_else(|| Hinted {
            message: format!("{place:?} is not a place"),
            hint: "write path:line or path:line:column, both counted from 1".to_owned(),
        })?;
        let file = view.find(path.as_bytes()).ok_or_else(|| unknown_path(view, path))?;
        return Ok(SymbolQuery::At { file, line, column });
    }
    match args.name.as_deref() {
        Some(name) if name.trim().is_empty() => bail!("the name is empty"),
        Some(name) if args.prefix => Ok(SymbolQuery::Prefix(name.to_owned())),
        Some(name) => Ok(SymbolQuery::Named(inside(workspace, name).to_owned())),
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

fn path_of(view: &View, file: FileId) -> String {
    String::from_utf8_lossy(view.file(file).path).into_owned()
}

fn definition_out(sources: &Sources<'_>, found: &FoundDefinition, has_body: bool) -> Result<DefinitionOut> {
    let view = sources.view();
    let body = match has_body {
        true => match sources.reader().read(found.file)? {
            Source::Bytes(bytes) => {
                let text = bytes.get(found.range.clone()).unwrap_or_default();
                Some(String::from_utf8_lossy(text).into_owned())
            }
            _ => None,
        },
        false => None,
    };
    Ok(DefinitionOut {
        id: found.id.clone(),
        name: found.name.clone(),
        kind: kind_name(found.kind),
        container: found.container.clone(),
        signature: found.signature.clone(),
        path: path_of(view, found.file),
        start_line: found.start_line,
        end_line: found.end_line,
        name_line: found.name_line,
        language: extract::language(view.lang(found.file)).map_or("text", |language| language.name),
        blob: view.file(found.file).entry().oid.to_string(),
        doc: found.doc.clone(),
        body,
    })
}

/// Every line with one of the names that were found, but for those that define it.
fn references(sources: &Sources<'_>, outcome: &SymbolOutcome, filter: &FileFilter) -> Result<ReferencesOut> {
    let mut names: Vec<&str> = outcome.definitions.iter().map(|found| found.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let mut told = ReferencesOut::default();
    for name in names {
        let options = PatternOptions {
            whole_words: true,
            literal: true,
            ..PatternOptions::default()
        };
        let request = GrepRequest {
            pattern: Pattern::new(name, options)?,
            filter: filter.clone(),
            detail: GrepDetail::Lines,
            before: 0,
            after: 0,
            limit: usize::MAX,
            from: None,
        };
        let mut failed = Ok(());
        grep(sources, &request, &INTERRUPTED, &mut |matches| {
            match usages(sources, matches.file, name, &matches.lines) {
                Ok(usages) => told.add(sources.view(), usages),
                Err(error) => failed = Err(error),
            }
            match failed {
                Ok(()) => ControlFlow::Continue(()),
                Err(_) => ControlFlow::Break(()),
            }
        });
        failed?;
    }
    Ok(told)
}

impl ReferencesOut {
    fn add(&mut self, view: &View, usages: Vec<Usage>) {
        self.files += u32::from(!usages.is_empty());
        for usage in usages {
            match usage.kind {
                UsageKind::Text => self.textual += 1,
                UsageKind::Reference(_) | UsageKind::Import => self.syntactic += 1,
            }
            if self.results.len() < MAX_LISTED_REFERENCES {
                self.results.push(ReferenceOut {
                    path: path_of(view, usage.file),
                    line: usage.line,
                    kind: usage.kind.name(),
                    text: usage.text,
                });
            }
        }
    }
}

fn found_by_name(found_by: FoundBy) -> &'static str {
    match found_by {
        FoundBy::Name => "name",
        FoundBy::OtherSpelling => "other_spelling",
        FoundBy::Prefix => "prefix",
        FoundBy::Part => "part",
        FoundBy::Definition => "definition",
        FoundBy::Reference => "reference",
        FoundBy::Enclosing => "enclosing",
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
