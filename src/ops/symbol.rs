//! What a name means: definitions, and the lines that mention them.

use std::ops::ControlFlow;
use std::sync::atomic::AtomicBool;

use anyhow::Result;
use serde::Serialize;

use super::OpError;
use super::paths::inside;
use crate::extract::{self, DefinitionKind};
use crate::model::quoted;
use crate::query::{
    FileFilter, FoundBy, FoundDefinition, GrepDetail, GrepRequest, Pattern, PatternOptions, Source, Sources,
    SymbolOutcome, SymbolQuery, Usage, UsageKind, grep, kind_by_name, kind_name, kind_names, nearest, split_position,
    unknown_path, usages,
};
use crate::session::Workspace;
use crate::snapshot::{FileId, View};

/// Lines that mention a name are listed up to this number unless more are asked for; all are counted.
pub(crate) const MAX_LISTED_REFERENCES: usize = 100;

/// A definition.
#[derive(Debug, Serialize)]
pub(crate) struct DefinitionOut {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) kind: &'static str,
    pub(crate) container: Option<String>,
    pub(crate) signature: String,
    pub(crate) path: String,
    pub(crate) start_line: u32,
    pub(crate) end_line: u32,
    pub(crate) name_line: u32,
    pub(crate) language: &'static str,
    pub(crate) blob: String,
    pub(crate) doc: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) body: Option<String>,
}

/// The lines that mention it.
#[derive(Debug, Default, Serialize)]
pub(crate) struct ReferencesOut {
    pub(crate) syntactic: u32,
    pub(crate) textual: u32,
    pub(crate) files: u32,
    /// How many are not listed.
    pub(crate) left_out: usize,
    /// Code first, then mentions in text; in the order of paths.
    pub(crate) results: Vec<ReferenceOut>,
    /// What was not looked at.
    #[serde(skip)]
    pub(crate) incomplete: Vec<String>,
}

/// One of them.
#[derive(Debug, Serialize)]
pub(crate) struct ReferenceOut {
    pub(crate) path: String,
    pub(crate) line: u32,
    pub(crate) kind: &'static str,
    pub(crate) text: String,
}

/// The kinds of definitions that were named.
pub(crate) fn definition_kinds(names: &[String]) -> Result<Vec<DefinitionKind>, OpError> {
    let known = |name: &String| {
        kind_by_name(name).ok_or_else(|| {
            let near = nearest(name, kind_names());
            OpError::new(
                format!("unknown kind {name}"),
                if near.is_empty() {
                    format!("kinds are {}", kind_names().collect::<Vec<_>>().join(", "))
                } else {
                    format!("did you mean {}?", near.join(" or "))
                },
            )
        })
    };
    names.iter().map(known).collect()
}

/// What stands at a place, `path:line` or `path:line:column`.
pub(crate) fn place_query(workspace: &Workspace, view: &View, place: &str) -> Result<SymbolQuery> {
    let place = inside(workspace, place);
    let (path, line, column) = split_position(&place).ok_or_else(|| {
        OpError::new(
            format!("{place:?} is not a place"),
            "write path:line or path:line:column, both counted from 1",
        )
    })?;
    let file = view.find_text(path).ok_or_else(|| unknown_path(view, path))?;
    Ok(SymbolQuery::At { file, line, column })
}

fn path_of(view: &View, file: FileId) -> String {
    quoted(view.file(file).path).into_owned()
}

pub(crate) fn definition_out(sources: &Sources<'_>, found: &FoundDefinition, has_body: bool) -> Result<DefinitionOut> {
    let view = sources.view();
    let body = if has_body {
        match sources.reader().read(found.file)? {
            Source::Bytes(bytes) => {
                let text = bytes.get(found.range.clone()).unwrap_or_default();
                Some(String::from_utf8_lossy(text).into_owned())
            }
            _ => None,
        }
    } else {
        None
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
pub(crate) fn references(
    sources: &Sources<'_>,
    outcome: &SymbolOutcome,
    filter: &FileFilter,
    max_listed: usize,
    interrupt: &AtomicBool,
) -> Result<ReferencesOut> {
    let mut names: Vec<&str> = outcome.definitions.iter().map(|found| found.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let mut told = ReferencesOut::default();
    let mut textual = Vec::new();
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
        let outcome = grep(sources, &request, interrupt, &mut |matches| {
            match usages(sources, matches.file, name, &matches.lines) {
                Ok(usages) => told.add(sources.view(), usages, max_listed, &mut textual),
                Err(error) => failed = Err(error),
            }
            match failed {
                Ok(()) => ControlFlow::Continue(()),
                Err(_) => ControlFlow::Break(()),
            }
        });
        failed?;
        if outcome.interrupted {
            told.incomplete
                .push("the time was over before all files were read for references".to_owned());
        }
        if !outcome.unread.is_empty() {
            told.incomplete
                .push(format!("{} files could not be read", outcome.unread.len()));
        }
    }
    textual.truncate(max_listed - told.results.len());
    told.results.append(&mut textual);
    told.left_out = (told.syntactic + told.textual) as usize - told.results.len();
    Ok(told)
}

impl ReferencesOut {
    fn add(&mut self, view: &View, usages: Vec<Usage>, max_listed: usize, textual: &mut Vec<ReferenceOut>) {
        self.files += u32::from(!usages.is_empty());
        for usage in usages {
            let (count, list) = match usage.kind {
                UsageKind::Text => (&mut self.textual, &mut *textual),
                UsageKind::Reference(_) | UsageKind::Import => (&mut self.syntactic, &mut self.results),
            };
            *count += 1;
            if list.len() < max_listed {
                list.push(ReferenceOut {
                    path: path_of(view, usage.file),
                    line: usage.line,
                    kind: usage.kind.name(),
                    text: usage.text,
                });
            }
        }
    }
}

pub(crate) fn found_by_name(found_by: FoundBy) -> &'static str {
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
