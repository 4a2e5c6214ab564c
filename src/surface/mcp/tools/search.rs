//! `search`: find anything.

use std::time::Duration;

use anyhow::Result;
use serde::Serialize;
use serde_json::{Value, json};

use super::super::arguments::{Kind, Parameter};
use super::super::asked::{Detail, OF_FILES};
use super::super::failure::Failure;
use super::super::lexical;
use super::super::question::Question;
use super::super::reply::{Body, Draft, Reply};
use super::super::tool::{Call, QUESTION_TIME, Tool};
use crate::query::{Mode, Pattern, PatternOptions, Request};
use crate::surface::answer::{ResultOut, SearchPage, lines_request, matching_lines, ranked};

/// Lines of a snippet unless another number is asked for.
const DEFAULT_CONTEXT_LINES: usize = 6;
/// How long a search waits for an index that is being built before it reads the files instead.
const PATIENCE: Duration = Duration::from_millis(600);

pub(super) const TOOL: Tool = Tool {
    name: "search",
    title: "Search code",
    description: "Find code in any revision of the repository by a question, words, a name or a regex; one call does what many \
                  greps do. Exact definitions come first, then meaning. mode=regex is a complete grep; mode=similar takes code \
                  or path:line.",
    own: &[
        Parameter::new("query", Kind::Text, "").required(),
        Parameter::new(
            "mode",
            Kind::Choice(&["auto", "hybrid", "semantic", "keyword", "regex", "similar"]),
            "",
        ),
        Parameter::new("context_lines", Kind::Number(100), "lines of text per result"),
        Parameter::new("explain", Kind::Flag, ""),
    ],
    common: OF_FILES,
    output,
    is_read_only: true,
    time_limit: QUESTION_TIME,
    run,
};

fn output() -> Value {
    json!({"read_as": {"type": "string"}, "absent": {"type": "array"}})
}

#[derive(Serialize)]
struct Own {
    #[serde(skip_serializing_if = "Option::is_none")]
    read_as: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    absent: Vec<String>,
}

fn run(call: &Call<'_>) -> Result<Reply> {
    let query = call.arguments.text("query").unwrap_or_default();
    if query.trim().is_empty() {
        return Err(Failure::new(
            "the query is empty",
            "say what to look for; outline shows what is there",
        )
        .with_retry(json!({"tool": "outline", "arguments": {}}))
        .into());
    }
    let context_lines = call.arguments.number("context_lines");
    let pattern = match call.arguments.text("mode") {
        Some("regex") => Some(Pattern::new(query.trim_end_matches('\n'), PatternOptions::default())?),
        _ => None,
    };
    if pattern.is_some() && !call.arguments.texts("kind").is_empty() {
        return Err(Failure::new(
            "kind says nothing about lines that match a regex",
            "leave kind out, or use another mode",
        )
        .into());
    }
    let question = Question::of(call, PATIENCE)?;
    let limit = question.asked.limit;
    let mut page = match pattern {
        Some(pattern) => {
            let around = context_lines.unwrap_or(0);
            let request = lines_request(pattern, question.filter.clone(), around, limit, question.after);
            matching_lines(&question.sources(call)?, &request, call.interrupt)?
        }
        None if question.seen.building.is_some() => {
            lexical::search(call, &question.seen, query, &question.filter, limit)?
        }
        None => by_rank(call, &question, query)?,
    };
    if page.is_interrupted {
        page.notes
            .push("the time was over before all files were read; next_cursor goes on".to_owned());
        page.next = page.after.last().copied();
    }
    let n_lines = context_lines
        .filter(|lines| *lines > 0)
        .unwrap_or(DEFAULT_CONTEXT_LINES);
    reply(call, &question, page, n_lines)
}

fn by_rank(call: &Call<'_>, question: &Question, query: &str) -> Result<SearchPage> {
    let request = Request {
        query: query.to_owned(),
        mode: match call.arguments.text("mode") {
            Some("hybrid") => Mode::Hybrid,
            Some("semantic") => Mode::Semantic,
            Some("keyword") => Mode::Keyword,
            Some("similar") => Mode::Similar,
            _ => Mode::Auto,
        },
        filter: question.filter.clone(),
        limit: question.asked.limit,
        skip: question.n_told(),
        ..Request::default()
    };
    let explain = call.arguments.flag("explain");
    ranked(
        call.workspace()?,
        &question.seen.view,
        &request,
        &question.asked.kinds,
        explain,
        call.interrupt,
    )
}

fn reply(call: &Call<'_>, question: &Question, mut page: SearchPage, n_lines: usize) -> Result<Reply> {
    let mut provenance = question.provenance();
    page.notes.drain(..).for_each(|why| provenance.also_incomplete(why));
    let mut draft = Draft::new(call, question.asked.characters);
    if let Some(read_as) = &page.read_as {
        draft.note(&format!("read as: {read_as}"));
    }
    for text in &page.absent {
        draft.note(&format!("no file holds {text:?}"));
    }
    if page.results.is_empty() {
        draft.note("nothing found");
        let is_regex = call.arguments.text("mode") == Some("regex");
        let spans_lines = |pattern: &str| {
            pattern.contains(['\n']) || ["\\n", "(?s", "\\s*"].iter().any(|part| pattern.contains(part))
        };
        match question.why_nothing(call)? {
            Some(hint) => draft.hint(hint),
            None if is_regex && call.arguments.text("query").is_some_and(spans_lines) => {
                draft.hint("a regex matches within one line: look for a part that stands on one".to_owned());
            }
            None => {}
        }
    }
    let mut next = page.next;
    for (number, result) in page.results.iter_mut().enumerate() {
        let snippet = result.snippet.take().unwrap_or_default();
        let body = shown(&snippet, question.asked.detail, n_lines, result.kind == "line");
        let body = body.map(|raw| Body {
            field: "snippet",
            raw,
            first_line: Some(result.snippet_start_line),
        });
        if !draft.push(result, &line(result), body) {
            next = number.checked_sub(1).map(|last| page.after[last]);
            break;
        }
    }
    let next_cursor = next.map(|position| question.cursor(position));
    let own = Own {
        read_as: page.read_as,
        absent: page.absent,
    };
    Ok(draft.finish(&provenance, next_cursor, &own))
}

/// The part of a snippet that is told.
fn shown(snippet: &str, detail: Detail, n_lines: usize, is_lines: bool) -> Option<&str> {
    let n_lines = match detail {
        Detail::Ids => return None,
        Detail::Full => return Some(snippet),
        _ if is_lines => return Some(snippet),
        Detail::Outline => 1,
        Detail::Preview => n_lines,
    };
    let end = snippet.match_indices('\n').nth(n_lines.saturating_sub(1));
    Some(end.map_or(snippet, |(at, _)| &snippet[..at]))
}

fn line(result: &ResultOut) -> String {
    let mut line = format!(
        "{}:{}-{} {}",
        result.path, result.start_line, result.end_line, result.kind
    );
    if result.kind == "line" {
        line = format!("{}:{}", result.path, result.start_line);
    } else {
        if let Some(symbol) = &result.symbol {
            line.push_str(&format!(" {symbol}"));
        }
        line.push_str(&format!(" {:.3}", result.score));
    }
    for place in &result.places {
        line.push_str(&format!(" also {}:{}", place.path, place.start_line));
    }
    if let Some(features) = &result.features {
        let told: Vec<String> = features
            .iter()
            .map(|(name, value)| format!("{name}={value:.3}"))
            .collect();
        line.push_str(&format!("\n       {}", told.join(" ")));
    }
    line
}
