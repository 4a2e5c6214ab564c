//! `symbol`: every definition of a name.

use std::time::Duration;

use anyhow::Result;
use serde::Serialize;
use serde_json::json;

use super::super::arguments::{Kind, Parameter};
use super::super::asked::{Asking, Detail, OF_FILES};
use super::super::reply::{Body, Draft, Reply};
use super::super::tool::{Call, QUESTION_TIME, Tool};
use crate::ops::Past;
use crate::ops::{
    DefinitionOut, EntryOut, PlainText, ReferenceOut, ReferencesOut, definition_out, found_by_name, inside,
    latest_changes, place_query, references,
};
use crate::query::{
    FoundBy, FoundDefinition, Sought, SymbolOutcome, SymbolQuery, SymbolRequest, split_position, symbols,
};
use crate::session::{Build, Door, OpError};

/// How long it waits for commits to be recorded.
const PATIENCE_FOR_COMMITS: Duration = Duration::from_secs(2);
/// References that are looked at for a page.
const MAX_REFERENCES_OF_PAGE: usize = 500;
/// Changes of a definition that are told beside it; `history` tells all.
const N_CHANGES: usize = 10;

pub(super) const TOOL: Tool = Tool {
    name: "symbol",
    description: "Find every definition of a name (Parser.parse, parse), at a place, or by id, with signature and docs. \
                  include=[\"body\", \"refs\", \"history\"] adds its text, the lines that mention it, its last changes.",
    own: || {
        vec![
            Parameter::new("name", Kind::Text, "or at, or id"),
            Parameter::new("at", Kind::Text, "path:line[:col]"),
            Parameter::new("id", Kind::Text, ""),
            Parameter::new("prefix", Kind::Flag, "name is how it begins"),
            Parameter::new(
                "include",
                Kind::Choices(&["signature", "body", "docs", "refs", "history"]),
                "",
            ),
        ]
    },
    common: OF_FILES,
    is_read_only: true,
    time_limit: QUESTION_TIME,
    run,
};

#[derive(Serialize)]
struct Own {
    #[serde(skip_serializing_if = "Option::is_none")]
    found_by: Option<&'static str>,
    total: usize,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    near: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    references: Option<ReferencesOut>,
    #[serde(skip_serializing_if = "Option::is_none")]
    history: Option<ChangesOut>,
}

/// The last changes of a definition.
#[derive(Serialize)]
struct ChangesOut {
    total: usize,
    results: Vec<EntryOut>,
}

/// Which parts of a definition are told.
struct Included {
    signature: bool,
    body: bool,
    docs: bool,
    refs: bool,
    history: bool,
}

fn run(call: &Call<'_>) -> Result<Reply> {
    let ask = call.ask()?;
    let mut question = Asking::of(call, &ask, Build::Wait)?;
    let sought = sought(call, &question)?;
    let has_all = question.fill(&sought)?;
    let sources = question.sources();
    let request = SymbolRequest {
        query: query(call, &question)?,
        filter: question.filter.clone(),
        kinds: question.asked.kinds.clone(),
    };
    let outcome = symbols(&sources, &request)?;
    let included = included(call, question.asked.detail);
    let (n_definitions, n_references) = question.after.unwrap_or_default();
    let mut own = Own {
        found_by: (!outcome.definitions.is_empty()).then(|| found_by_name(outcome.found_by)),
        total: outcome.definitions.len(),
        near: outcome.near.clone(),
        references: None,
        history: None,
    };
    // A name stands in every file that defines it, as it is spelt.
    let is_complete = has_all && sought.name.is_some() && outcome.found_by == FoundBy::Name;
    let mut provenance = if is_complete && own.total > 0 && !included.refs {
        question.provenance_of_files()
    } else {
        question.provenance()
    };
    let mut draft = Draft::new(call, question.asked.characters);
    say_how(call, &question, &outcome, &mut draft)?;
    let page = outcome.definitions.iter().skip(n_definitions as usize);
    for found in page.take(question.asked.limit) {
        let mut definition = definition_out(&sources, found, included.body)?;
        if !push(&mut draft, &mut definition, &included) {
            break;
        }
    }
    let n_told = n_definitions + draft.n_results() as u32;
    let is_rest_left = (n_told as usize) < own.total;
    let mut next = is_rest_left.then_some((n_told, 0));
    if included.history && n_references == 0 {
        // Whatever becomes of the past, the rest is told.
        let (told, gaps) = changes(call, &outcome.definitions, &mut draft).unwrap_or_else(|error| {
            (
                None,
                vec![format!(
                    "its changes are not known: {}",
                    OpError::of(&error, Door::Tools).message
                )],
            )
        });
        own.history = told;
        gaps.into_iter().for_each(|gap| provenance.also_incomplete(gap));
    }
    if included.refs {
        let max = n_references as usize + MAX_REFERENCES_OF_PAGE;
        let mut found = references(&sources, &outcome, &request.filter, max, call.ctx.interrupt)?;
        std::mem::take(&mut found.incomplete)
            .into_iter()
            .for_each(|why| provenance.also_incomplete(why));
        let room = if is_rest_left { 0 } else { usize::MAX };
        let n_listed = tell_references(&mut found, n_references as usize, room, &mut draft);
        if found.left_out > 0 && next.is_none() {
            next = Some((n_told, n_references + n_listed as u32));
        }
        own.references = Some(found);
    }
    let next_cursor = next.and_then(|position| question.key().map(|key| key.write(position)));
    Ok(draft.finish(&provenance, next_cursor, &own))
}

/// What files are looked for while the index is being built: those with the name, or the one that is named and those with the names at
/// the place.
fn sought(call: &Call<'_>, question: &Asking<'_>) -> Result<Sought> {
    let arguments = &call.arguments;
    let find = |path: &str| question.seen.view.find_text(path);
    if let Some(place) = arguments.text("at") {
        let place = inside(call.workspace()?, place);
        let Some((file, line)) = split_position(&place).and_then(|(path, line, _)| Some((find(path)?, line))) else {
            return Ok(Sought::default());
        };
        let files = vec![file];
        if question.seen.building.is_none() {
            return Ok(Sought {
                files,
                ..Sought::default()
            });
        }
        let text = question.text_around(file, line)?;
        // The line itself is the fifth at most.
        let text = text.lines().take(6).collect::<Vec<_>>().join(" ");
        return Ok(Sought {
            files,
            text,
            name: None,
        });
    }
    let named = arguments.text("name").or(arguments.text("id")).unwrap_or_default();
    let named = inside(call.workspace()?, named);
    let files = named.rmatch_indices('#').find_map(|(at, _)| find(&named[..at]));
    let bare = named
        .rsplit(|letter: char| !(letter.is_alphanumeric() || letter == '_'))
        .next();
    let bare = bare.unwrap_or_default().to_owned();
    Ok(Sought {
        files: files.into_iter().collect(),
        // Another spelling, and what the name begins or is a part of.
        text: bare.clone(),
        name: (!bare.is_empty() && !arguments.flag("prefix")).then_some(bare),
    })
}

fn query(call: &Call<'_>, question: &Asking<'_>) -> Result<SymbolQuery> {
    let arguments = &call.arguments;
    let given = [arguments.text("name"), arguments.text("at"), arguments.text("id")];
    let n_given = given.iter().flatten().filter(|text| !text.trim().is_empty()).count();
    if n_given != 1 {
        return Err(OpError::new(
            "one of name, at and id is needed, and only one",
            "name is the usual one",
        )
        .with_retry(json!({"tool": "symbol", "arguments": {"name": "main"}}))
        .into());
    }
    if let Some(place) = arguments.text("at") {
        return match place_query(call.workspace()?, &question.seen.view, place) {
            Err(_) if call.session()?.visibility.hides_target(place) => Err(OpError::hidden(place).into()),
            found => found,
        };
    }
    let name = arguments.text("name").or(arguments.text("id")).unwrap_or_default();
    Ok(if arguments.flag("prefix") {
        SymbolQuery::Prefix(name.to_owned())
    } else {
        SymbolQuery::Named(inside(call.workspace()?, name).into_owned())
    })
}

fn included(call: &Call<'_>, detail: Detail) -> Included {
    let listed = call.arguments.texts("include");
    let has = |part: &str| listed.iter().any(|name| name == part);
    if listed.is_empty() {
        Included {
            signature: detail >= Detail::Outline,
            body: detail == Detail::Full,
            docs: detail == Detail::Preview,
            refs: false,
            history: false,
        }
    } else {
        Included {
            signature: has("signature"),
            body: has("body"),
            docs: has("docs"),
            refs: has("refs"),
            history: has("history"),
        }
    }
}

fn say_how(call: &Call<'_>, question: &Asking<'_>, outcome: &SymbolOutcome, draft: &mut Draft) -> Result<()> {
    if !outcome.definitions.is_empty() {
        if found_by_name(outcome.found_by) == "other_spelling" {
            draft.note("nothing is spelt like that; these are other spellings of the name");
        }
        return Ok(());
    }
    if let Some(place) = call.arguments.text("at").filter(|_| question.is_indexed()) {
        draft.note("nothing is defined there, and the name there is not known");
        let path = place.split(':').next().unwrap_or(place);
        draft.hint(format!("outline at={path} shows what is defined in that file"));
        return Ok(());
    }
    if let Some((path, name)) = call
        .arguments
        .text("id")
        .filter(|_| question.is_indexed())
        .and_then(|id| id.split_once('#'))
    {
        draft.note(&format!("{path} has no definition {name} at this revision"));
        draft.hint(format!(
            "outline at={path} shows what it has; history target={path}#{name} what became of it"
        ));
        return Ok(());
    }
    if !question.is_indexed() {
        draft.note("nothing found in the files that are indexed so far");
        draft.hint("ask again in a while; search with mode=regex finds the name in every file now".to_owned());
        return Ok(());
    }
    draft.note("nothing is called that");
    let hint = match (question.why_nothing()?, outcome.near.as_slice()) {
        (Some(why), _) => why,
        (None, []) => "search finds it by meaning, or as text with mode=regex".to_owned(),
        (None, near) => format!("did you mean {}?", near.join(" or ")),
    };
    draft.hint(hint);
    Ok(())
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

/// The last changes, where it is clear of what; and what is missing of them.
fn changes(
    call: &Call<'_>,
    definitions: &[FoundDefinition],
    draft: &mut Draft,
) -> Result<(Option<ChangesOut>, Vec<String>)> {
    let [definition] = definitions else {
        if !definitions.is_empty() {
            draft.hint("history is told of one definition: ask for it by its id".to_owned());
        }
        return Ok((None, Vec::new()));
    };
    let ask = call.ask()?;
    let past = Past::of(&ask, PATIENCE_FOR_COMMITS)?;
    let mut told = latest_changes(&past, &definition.id, N_CHANGES)?;
    draft.note(&format!("{} changes:", told.total));
    let mut n_told = 0;
    for entry in &told.entries {
        let mut text = PlainText::default();
        entry.render(&mut text);
        let line = text.0.trim_end();
        if line.len() + 300 > draft.room() {
            break;
        }
        draft.note(line);
        n_told += 1;
    }
    told.entries.truncate(n_told);
    let out = ChangesOut {
        total: told.total,
        results: told.entries,
    };
    Ok((Some(out), told.incomplete))
}

/// References are told as text as far as there is room, and listed as far; how many are.
fn tell_references(references: &mut ReferencesOut, skip: usize, most: usize, draft: &mut Draft) -> usize {
    draft.note(&format!(
        "{} references to the name and {} mentions in text, in {} files",
        references.syntactic, references.textual, references.files
    ));
    references.results.drain(..skip.min(references.results.len()));
    let mut n_told = 0;
    for reference in references.results.iter().take(most) {
        let line = reference_line(reference);
        let is_first = n_told == 0 && draft.n_results() == 0;
        if line.len() + 160 > draft.room() && !is_first {
            break;
        }
        draft.note(&line);
        n_told += 1;
    }
    references.results.truncate(n_told);
    references.left_out = ((references.syntactic + references.textual) as usize).saturating_sub(skip + n_told);
    n_told
}

fn reference_line(reference: &ReferenceOut) -> String {
    let ReferenceOut { path, line, kind, text } = reference;
    format!("{path}:{line} {kind} {}", text.trim())
}
