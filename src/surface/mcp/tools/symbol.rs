//! `symbol`: every definition of a name.

use std::time::Duration;

use anyhow::Result;
use serde::Serialize;
use serde_json::{Value, json};

use super::super::arguments::{Kind, Parameter};
use super::super::asked::{
    Asked, CURSOR, DETAIL, Detail, KIND, LANG, LIMIT, MAX_TOKENS, PATH, REF, REPO, STALE, TESTS,
};
use super::super::failure::Failure;
use super::super::reply::{Body, Draft, Reply};
use super::super::tool::{Call, QUESTION_TIME, Tool};
use crate::query::{Sources, SymbolOutcome, SymbolQuery, SymbolRequest, symbols};
use crate::snapshot::View;
use crate::surface::answer::{
    DefinitionOut, ProvenanceOut, ReferencesOut, definition_out, found_by_name, inside, place_query, references,
};

/// How long a call waits for an index that is being built.
const PATIENCE: Duration = Duration::from_secs(8);

pub(super) const TOOL: Tool = Tool {
    name: "symbol",
    title: "Find definitions",
    description: "Every definition of a name (Parser.parse, parse), of what stands at a place, or of an id: with signature and \
                  docs; with body or the lines that mention it if asked for. Ambiguity returns all.",
    parameters: &[
        Parameter::new("name", Kind::Text, "or at, or id"),
        Parameter::new("at", Kind::Text, "path:line[:col]"),
        Parameter::new("id", Kind::Text, ""),
        Parameter::new("prefix", Kind::Flag, "name is how it begins"),
        Parameter::new("include", Kind::Choices(&["signature", "body", "docs", "refs"]), ""),
        REF,
        REPO,
        PATH,
        LANG,
        KIND,
        TESTS,
        LIMIT,
        MAX_TOKENS,
        CURSOR,
        DETAIL,
        STALE,
    ],
    output,
    is_read_only: true,
    time_limit: QUESTION_TIME,
    run,
};

fn output() -> Value {
    json!({
        "found_by": {"type": "string"},
        "total": {"type": "integer"},
        "references": {"type": "object"},
        "results": {"type": "array", "items": {"type": "object"}},
    })
}

#[derive(Serialize)]
struct Own {
    found_by: &'static str,
    total: usize,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    near: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    references: Option<ReferencesOut>,
}

/// Which parts of a definition are told.
struct Included {
    signature: bool,
    body: bool,
    docs: bool,
    refs: bool,
}

fn run(call: &Call<'_>) -> Result<Reply> {
    let asked = Asked::of(TOOL.name, &call.arguments)?;
    let seen = asked.look(call, PATIENCE)?;
    if let Some(job) = &seen.building {
        return Err(Failure::new(
            format!(
                "definitions are not known yet, the index is being built: {}",
                job.advance().to_text()
            ),
            "ask again in a while; search and read work meanwhile",
        )
        .into());
    }
    let sources = Sources::new(&seen.view, &call.desk.workspace.repository);
    let request = SymbolRequest {
        query: query(call, &seen.view)?,
        filter: asked.filter(&seen)?,
        kinds: asked.kinds.clone(),
    };
    let outcome = symbols(&sources, &request)?;
    let included = included(call, asked.detail);
    let skip = asked.after(&seen)?.map_or(0, |(n_told, _)| n_told as usize);
    let mut own = Own {
        found_by: found_by_name(outcome.found_by),
        total: outcome.definitions.len(),
        near: outcome.near.clone(),
        references: None,
    };
    if included.refs {
        own.references = Some(references(&sources, &outcome, &request.filter, call.interrupt)?);
    }
    let mut draft = Draft::new(call, asked.characters);
    say_how(&outcome, &mut draft);
    let page = outcome.definitions.iter().skip(skip).take(asked.limit);
    for found in page {
        let mut definition = definition_out(&sources, found, included.body)?;
        if !push(&mut draft, &mut definition, &included) {
            break;
        }
    }
    let n_told = skip + draft.n_results();
    if let Some(references) = &mut own.references {
        tell_references(references, &mut draft);
    }
    let next = (n_told < own.total).then(|| asked.cursor_key(&seen).write((n_told as u32, 0)));
    Ok(draft.finish(&ProvenanceOut::of(&seen.view), next, &own))
}

fn query(call: &Call<'_>, view: &View) -> Result<SymbolQuery> {
    let arguments = &call.arguments;
    let given = [arguments.text("name"), arguments.text("at"), arguments.text("id")];
    let n_given = given.iter().flatten().filter(|text| !text.trim().is_empty()).count();
    if n_given != 1 {
        return Err(Failure::new(
            "one of name, at and id is needed, and only one",
            "name is the usual one",
        )
        .with_retry(json!({"tool": "symbol", "arguments": {"name": "main"}}))
        .into());
    }
    if let Some(place) = arguments.text("at") {
        return place_query(&call.desk.workspace, view, place);
    }
    let name = arguments.text("name").or(arguments.text("id")).unwrap_or_default();
    Ok(match arguments.flag("prefix") {
        true => SymbolQuery::Prefix(name.to_owned()),
        false => SymbolQuery::Named(inside(&call.desk.workspace, name).to_owned()),
    })
}

fn included(call: &Call<'_>, detail: Detail) -> Included {
    let listed = call.arguments.texts("include");
    let has = |part: &str| listed.iter().any(|name| name == part);
    match listed.is_empty() {
        true => Included {
            signature: detail >= Detail::Outline,
            body: detail == Detail::Full,
            docs: detail == Detail::Preview,
            refs: false,
        },
        false => Included {
            signature: has("signature"),
            body: has("body"),
            docs: has("docs"),
            refs: has("refs"),
        },
    }
}

fn say_how(outcome: &SymbolOutcome, draft: &mut Draft) {
    if outcome.definitions.is_empty() {
        draft.note("nothing is called that");
        if !outcome.near.is_empty() {
            draft.note(&format!("did you mean {}?", outcome.near.join(" or ")));
        }
    } else if found_by_name(outcome.found_by) == "other_spelling" {
        draft.note("nothing is spelt like that; these are other spellings of the name");
    }
}

fn push(draft: &mut Draft, definition: &mut DefinitionOut, included: &Included) -> bool {
    let name = match &definition.container {
        Some(container) => format!("{container}.{}", definition.name),
        None => definition.name.clone(),
    };
    let mut line = format!(
        "{}:{}-{} {} {name} id={}",
        definition.path, definition.start_line, definition.end_line, definition.kind, definition.id
    );
    if included.signature {
        line.push_str(&format!("\n    {}", definition.signature.trim_end()));
    } else {
        definition.signature.clear();
    }
    let doc = definition.doc.take().unwrap_or_default();
    let text = definition.body.take().unwrap_or_default();
    let body = match (included.body, included.docs && !doc.is_empty()) {
        (true, _) => Some(Body {
            field: "body",
            raw: &text,
            first_line: Some(definition.start_line),
        }),
        (false, true) => Some(Body {
            field: "doc",
            raw: &doc,
            first_line: None,
        }),
        (false, false) => None,
    };
    draft.push(definition, &line, body)
}

/// References are told as text as far as there is room, and listed as far.
fn tell_references(references: &mut ReferencesOut, draft: &mut Draft) {
    draft.note(&format!(
        "{} references and {} mentions in text, in {} files",
        references.syntactic, references.textual, references.files
    ));
    let mut n_told = 0;
    for reference in &references.results {
        let line = format!(
            "{}:{} {} {}",
            reference.path,
            reference.line,
            reference.kind,
            reference.text.trim()
        );
        if line.len() + 160 > draft.room() {
            break;
        }
        draft.note(&line);
        n_told += 1;
    }
    references.results.truncate(n_told);
}
