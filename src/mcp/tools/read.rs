//! `read`: the exact text of a file, or of parts of it.

use anyhow::Result;
use serde::Serialize;
use serde_json::{Value, json};

use super::super::arguments::{Kind, Parameter};
use super::super::asked::{CURSOR, DETAIL, Detail, LIMIT, MAX_TOKENS, REF, REPO, STALE};
use super::super::credentials::is_hidden_target;
use super::super::failure::Failure;
use super::super::question::Question;
use super::super::reply::{Body, Draft, Reply};
use super::super::tool::{Call, QUESTION_TIME, Tool, results};
use crate::extract;
use crate::ops::{PartOut, ReadBody, inside, lines_query, read_body};
use crate::query::{PartQuery, paths_in_target, read, read_target};

/// The language whose headings are known.
pub(super) const WITH_HEADINGS: &str = "markdown";
/// What the facts about a part take at most, but for a long title.
const FACTS_CHARACTERS: usize = 300;

pub(super) const TOOL: Tool = Tool {
    name: "read",
    title: "Read a file",
    description: "Exact text of any path at any revision: whole, or only the lines, headings of a document, keys of JSON, TOML or \
                  YAML, or definitions that are named. Long text comes in pages.",
    own: &[
        Parameter::new("target", Kind::Text, "path, path:10-20, or id").required(),
        Parameter::new("lines", Kind::Texts, "5, 5-9 or 5-"),
        Parameter::new("heading", Kind::Texts, ""),
        Parameter::new("key", Kind::Texts, "a.b.c"),
        Parameter::new("symbol", Kind::Texts, ""),
    ],
    common: &[REF, REPO, LIMIT, MAX_TOKENS, CURSOR, DETAIL, STALE],
    output,
    is_read_only: true,
    time_limit: QUESTION_TIME,
    run,
};

fn output() -> Value {
    json!({
        "path": {"type": "string"},
        "blob": {"type": "string"},
        "lines": {"type": "integer"},
        "results": results(&[("start_line", "integer"), ("end_line", "integer")]),
    })
}

#[derive(Serialize)]
struct Own<'a> {
    path: &'a str,
    blob: &'a str,
    language: &'a str,
    symlink: bool,
    bytes: usize,
    lines: u32,
}

fn run(call: &Call<'_>) -> Result<Reply> {
    let typed = call.arguments.text("target").unwrap_or_default();
    let place = &*inside(call.workspace()?, typed);
    let question = Question::of_files(call, &paths_in_target(place), None)?;
    let view = &question.seen.view;
    let queries = queries(call)?;
    let target = read_target(view, place).map_err(|error| match place.rsplit_once(':') {
        // The path is right: it is the lines that are not.
        Some((path, lines)) if view.find_text(path).is_some() => match lines_query(lines) {
            Err(wrong) => wrong.into(),
            Ok(_) => anyhow::Error::from(error),
        },
        _ if is_hidden_target(place) => Failure::hidden(typed).into(),
        _ => error.into(),
    })?;
    let queries: Vec<PartQuery> = target.part.into_iter().chain(queries).collect();
    let language = extract::language(view.lang(target.file)).map_or("text", |language| language.name);
    if queries.iter().any(|query| matches!(query, PartQuery::Heading(_))) && language != WITH_HEADINGS {
        return Err(Failure::new(
            format!("headings of {language} are not known"),
            format!("search mode=regex path={typed} finds the title, read with lines the section"),
        )
        .into());
    }
    let outcome = read(&question.sources(call)?, target.file, &queries)?;
    let mut body = read_body(view, &outcome);
    if outcome.bytes[..outcome.bytes.len().min(8_000)].contains(&0) {
        let size = outcome.bytes.len();
        return Err(Failure::new(
            format!("{:?} is not text: {size} bytes, blob {}", body.path, body.blob),
            "git show or another program can open it",
        )
        .into());
    }
    let parts = std::mem::take(&mut body.results);
    let (first, skip) = question.after.unwrap_or_default();
    let mut draft = Draft::new(call, question.asked.characters);
    if body.symlink {
        draft.note("a symbolic link; this is where it points to");
    }
    let limit = call.arguments.number("limit").filter(|lines| *lines > 0);
    let mut left = limit.unwrap_or(usize::MAX);
    let mut next = None;
    for (number, part) in parts.into_iter().enumerate().skip(first as usize) {
        let begin = if number == first as usize { skip as usize } else { 0 };
        if left == 0 {
            next = Some((number as u32, 0));
            break;
        }
        match tell(part, begin, &mut left, question.asked.detail, &mut draft) {
            Told::All => {}
            Told::UpTo(byte) => {
                next = Some((number as u32, byte as u32));
                break;
            }
        }
    }
    let next_cursor = next.and_then(|position| question.cursor(position));
    Ok(draft.finish(&question.provenance_of_files(), next_cursor, &own(&body)))
}

fn own(body: &ReadBody) -> Own<'_> {
    Own {
        path: &body.path,
        blob: &body.blob,
        language: body.language,
        symlink: body.symlink,
        bytes: body.bytes,
        lines: body.lines,
    }
}

/// The parts that arguments name, by kind of part.
fn queries(call: &Call<'_>) -> Result<Vec<PartQuery>> {
    let mut queries = Vec::new();
    for lines in call.arguments.texts("lines") {
        queries.push(lines_query(&lines)?);
    }
    queries.extend(call.arguments.texts("heading").into_iter().map(PartQuery::Heading));
    queries.extend(call.arguments.texts("key").into_iter().map(PartQuery::Key));
    queries.extend(call.arguments.texts("symbol").into_iter().map(PartQuery::Symbol));
    Ok(queries)
}

/// How much of a part was told.
enum Told {
    All,
    /// Up to this byte of its text.
    UpTo(usize),
}

fn tell(mut part: PartOut, begin: usize, left: &mut usize, detail: Detail, draft: &mut Draft) -> Told {
    let text = part.text.take().unwrap_or_default();
    let rest = text.get(begin..).unwrap_or_default();
    let shown = match detail {
        Detail::Ids => "",
        _ => draft.fitting(first_lines(rest, *left), FACTS_CHARACTERS),
    };
    *left -= shown.lines().count().min(*left);
    let before = text[..begin.min(text.len())].matches('\n').count() as u32;
    part.start_line += before;
    part.start_byte += begin;
    let is_cut = shown.len() < rest.len() && detail != Detail::Ids;
    if is_cut {
        part.end_byte = part.start_byte + shown.len();
        part.end_line = part.start_line + shown.trim_end_matches('\n').matches('\n').count() as u32;
    }
    let title = part.title.as_deref().map_or(String::new(), |title| format!(" {title}"));
    let line = format!("lines {}-{}{title}", part.start_line, part.end_line);
    let body = (!shown.is_empty()).then_some(Body {
        field: "text",
        raw: shown,
        first_line: None,
    });
    match (draft.push(&part, &line, body), is_cut) {
        (false, _) => Told::UpTo(begin),
        (true, true) => Told::UpTo(begin + shown.len()),
        (true, false) => Told::All,
    }
}

fn first_lines(text: &str, n_lines: usize) -> &str {
    match n_lines
        .checked_sub(1)
        .and_then(|last| text.match_indices('\n').nth(last))
    {
        Some((at, _)) => &text[..=at],
        None => text,
    }
}
