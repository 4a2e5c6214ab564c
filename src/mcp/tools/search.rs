//! `search`: find anything.

use anyhow::Result;
use serde::Serialize;
use serde_json::{Value, json};

use super::super::arguments::{Kind, Parameter};
use super::super::asked::{Asked, Asking, Detail, OF_FILES, selection};
use super::super::reply::{Body, Draft, Reply};
use super::super::tool::{Call, QUESTION_TIME, Tool, results};
use super::search_commits::{self, Inside};
use crate::extract::is_credential;
use crate::ingest::NoProgress;
use crate::model::typed;
use crate::ops::{
    About, Ask, ProvenanceOut, RefView, ResultOut, SearchPage, lines_request, matching_lines, ranked, ranked_in_past,
    ranked_over_refs,
};
use crate::query::{CursorKey, Judges, Mode, Pattern, PatternOptions, Request, Rerank, Sought, split_position};
use crate::session::{Build, OpError};
use crate::snapshot::Documents;

/// Lines of a snippet unless another number is asked for.
const DEFAULT_CONTEXT_LINES: usize = 6;

pub(super) const TOOL: Tool = Tool {
    name: "search",
    title: "Search code",
    description: "Find code in any revision of the repository by a question, words, a name or a regex; one call does what many \
                  greps do. Exact definitions come first, then meaning. mode=regex is a complete grep; mode=similar takes code \
                  or path:line.",
    own: || {
        vec![
            Parameter::new("query", Kind::Text, "").required(),
            Parameter::new(
                "mode",
                Kind::Choice(&["auto", "hybrid", "semantic", "keyword", "regex", "similar"]),
                "",
            ),
            Parameter::new("in", Kind::Choice(&["code", "commits", "diffs"]), ""),
            Parameter::new("refs", Kind::Texts, "several refs at once"),
            Parameter::new("all_history", Kind::Flag, ""),
            Parameter::new("since", Kind::Text, "of commits: 2024-02-29, 30d"),
            Parameter::new("until", Kind::Text, ""),
            Parameter::new("author", Kind::Text, "regex"),
            Parameter::new("context_lines", Kind::Number(100), "lines of text per result"),
            Parameter::new("explain", Kind::Flag, ""),
            Parameter::new("rerank", Kind::Flag, ""),
        ]
    },
    common: OF_FILES,
    output,
    is_read_only: true,
    time_limit: QUESTION_TIME,
    run,
};

fn output() -> Value {
    json!({
        "read_as": {"type": "string"},
        "absent": {"type": "array"},
        "results": results(&[("path", "string"), ("start_line", "integer"), ("end_line", "integer"), ("score", "number")]),
    })
}

#[derive(Serialize)]
struct Own<'a> {
    #[serde(skip_serializing_if = "<[ProvenanceOut]>::is_empty")]
    refs: &'a [ProvenanceOut],
    #[serde(skip_serializing_if = "Option::is_none")]
    read_as: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    absent: Vec<String>,
}

fn run(call: &Call<'_>) -> Result<Reply> {
    let query = call.arguments.text("query").unwrap_or_default();
    if query.trim().is_empty() {
        return Err(OpError::new(
            "the query is empty",
            "say what to look for; outline shows what is there",
        )
        .with_retry(json!({"tool": "outline", "arguments": {}}))
        .into());
    }
    refuse_reranking(call)?;
    let is_of_past = call.arguments.flag("all_history");
    if is_of_past {
        refuse_of_the_past(call)?;
    }
    match call.arguments.text("in") {
        Some("commits") => return search_commits::run(call, Inside::Commits, query),
        Some("diffs") => return search_commits::run(call, Inside::Diffs, query),
        _ => refuse_of_commits(call)?,
    }
    if is_of_past {
        return over_past(call, query);
    }
    if !call.arguments.texts("refs").is_empty() {
        return over_refs(call, query);
    }
    let context_lines = call.arguments.number("context_lines");
    let pattern = match call.arguments.text("mode") {
        Some("regex") => Some(Pattern::new(query.trim_end_matches('\n'), PatternOptions::default())?),
        _ => None,
    };
    if pattern.is_some() && !call.arguments.texts("kind").is_empty() {
        return Err(OpError::new(
            "kind says nothing about lines that match a regex",
            "leave kind out, or use another mode",
        )
        .into());
    }
    // Lines that match are found in the files themselves.
    let build = if pattern.is_some() { Build::Begin } else { Build::Wait };
    let ask = call.ask()?;
    let mut question = Asking::of(call, &ask, build)?;
    let limit = question.asked.limit;
    let mut page = match pattern {
        Some(pattern) => {
            let around = context_lines.unwrap_or(0);
            let request = lines_request(pattern, question.filter.clone(), around, limit, question.after);
            matching_lines(&question.sources(), &request, call.ctx.interrupt)?
        }
        None => {
            let sought = sought(call, &question, query)?;
            question.fill(&sought)?;
            by_rank(call, &question, query)?
        }
    };
    if page.is_interrupted {
        page.notes
            .push("the time was over before all files were read; next_cursor goes on".to_owned());
        page.next = page.after.last().copied();
    }
    reply(call, &question, page, n_lines(call))
}

/// Lines of a snippet.
fn n_lines(call: &Call<'_>) -> usize {
    let asked = call.arguments.number("context_lines");
    asked.filter(|lines| *lines > 0).unwrap_or(DEFAULT_CONTEXT_LINES)
}

fn mode(call: &Call<'_>) -> Mode {
    match call.arguments.text("mode") {
        Some("hybrid") => Mode::Hybrid,
        Some("semantic") => Mode::Semantic,
        Some("keyword") => Mode::Keyword,
        Some("similar") => Mode::Similar,
        _ => Mode::Auto,
    }
}

fn rerank(call: &Call<'_>) -> Rerank {
    match call.arguments.choice_of_two("rerank") {
        None => Rerank::Prose,
        Some(true) => Rerank::Always,
        Some(false) => Rerank::Never,
    }
}

/// A reranker judges the code of one revision.
fn refuse_reranking(call: &Call<'_>) -> Result<(), OpError> {
    let arguments = &call.arguments;
    let what = match (arguments.text("in"), arguments.text("mode")) {
        _ if rerank(call) != Rerank::Always => None,
        (Some("commits" | "diffs"), _) => Some("in=commits or in=diffs"),
        (_, Some("regex")) => Some("mode=regex"),
        _ if !arguments.texts("refs").is_empty() => Some("refs"),
        _ => None,
    };
    what.map_or(Ok(()), |what| {
        Err(OpError::new(
            format!("rerank means nothing with {what}"),
            "leave it out",
        ))
    })
}

/// What files a search looks for while the index is being built: those with its words, or the one that it names and those like it.
fn sought(call: &Call<'_>, question: &Asking<'_>, query: &str) -> Result<Sought> {
    let place = typed(query.trim());
    let place = split_position(&place).filter(|_| mode(call) == Mode::Similar);
    let file = place.and_then(|(path, line, _)| Some((question.seen.view.find_text(path)?, line)));
    let Some((file, line)) = file.filter(|_| question.seen.building.is_some()) else {
        let text = query.to_owned();
        return Ok(Sought {
            text,
            ..Sought::default()
        });
    };
    Ok(Sought {
        files: vec![file],
        text: question.text_around(file, line)?,
        name: None,
    })
}

fn by_rank(call: &Call<'_>, question: &Asking<'_>, query: &str) -> Result<SearchPage> {
    let request = Request {
        query: query.to_owned(),
        mode: mode(call),
        filter: question.filter.clone(),
        limit: question.asked.limit,
        skip: question.n_before(),
        as_before: question.after.and_then(|(_, judges)| Judges::from_number(judges)),
        rerank: rerank(call),
        ..Request::default()
    };
    let explain = call.arguments.flag("explain");
    ranked(
        call.workspace()?,
        &question.seen.view,
        &request,
        &question.asked.kinds,
        explain,
        call.ctx.interrupt,
    )
}

/// What says something about commits alone says nothing about code.
fn refuse_of_commits(call: &Call<'_>) -> Result<(), OpError> {
    let given = ["since", "until", "author"]
        .into_iter()
        .find(|name| call.arguments.text(name).is_some());
    given.map_or(Ok(()), |name| {
        Err(OpError::new(
            format!("{name} means nothing for code"),
            "add in=commits or in=diffs, or leave it out",
        ))
    })
}

/// Several revisions at once: each text once, with where it stands in each of them.
fn over_refs(call: &Call<'_>, query: &str) -> Result<Reply> {
    if call.arguments.text("mode") == Some("regex") {
        return Err(OpError::new("mode=regex means nothing with refs", "ask about each with ref").into());
    }
    if !call.arguments.texts("kind").is_empty() {
        return Err(OpError::new("kind means nothing with refs", "ask about each with ref").into());
    }
    let ask = call.ask()?;
    let mut questions = Vec::new();
    for reference in call.arguments.texts("refs") {
        let mut question = of_ref(call, &ask, &reference)?;
        let sought = sought(call, &question, query)?;
        question.fill(&sought)?;
        questions.push(question);
    }
    let Some(first) = questions.first() else {
        return Err(OpError::new("refs is empty", "give branches, tags or commits").into());
    };
    let views = questions.iter().map(|question| &question.seen.view);
    let key = CursorKey::over(views, &first.asked.question);
    let after = first
        .asked
        .cursor
        .as_deref()
        .map(|cursor| key.read(cursor))
        .transpose()?;
    let request = Request {
        query: query.to_owned(),
        mode: mode(call),
        limit: first.asked.limit,
        skip: after.map_or(0, |(n_told, _)| n_told as usize),
        as_before: after.and_then(|(_, judges)| Judges::from_number(judges)),
        ..Request::default()
    };
    let views: Vec<RefView<'_>> = questions
        .iter()
        .map(|question| RefView {
            view: &question.seen.view,
            filter: question.filter.clone(),
        })
        .collect();
    let explain = call.arguments.flag("explain");
    let page = ranked_over_refs(call.workspace()?, &views, &request, explain, call.ctx.interrupt)?;
    let about: Vec<_> = questions.iter().map(|question| question.provenance()).collect();
    let is_indexed = questions.iter().all(|question| question.is_indexed());
    told(call, first, page, n_lines(call), &about, &|position| {
        is_indexed.then(|| key.write(position))
    })
}

/// What says something about one revision, or about commits, says nothing about all that ever was.
fn refuse_of_the_past(call: &Call<'_>) -> Result<(), OpError> {
    let arguments = &call.arguments;
    let what = match (arguments.text("in"), arguments.text("mode")) {
        (Some("commits" | "diffs"), _) => "in=commits or in=diffs",
        (_, Some("regex" | "similar")) => "mode=regex or mode=similar",
        _ if !arguments.texts("refs").is_empty() => "refs",
        _ if !arguments.texts("kind").is_empty() => "kind",
        _ => return Ok(()),
    };
    Err(OpError::new(
        format!("all_history means nothing with {what}"),
        "leave one of them out; in=diffs finds lines of all times",
    ))
}

/// All that ever was, as far as it is indexed; each result with its life.
fn over_past(call: &Call<'_>, query: &str) -> Result<Reply> {
    let reference = Asked::of(call)?.reference;
    let ask = call.ask()?;
    let question = of_ref(call, &ask, &reference)?;
    question.needs_index(&format!("{reference} is not known yet"), "ask again in a while", None)?;
    search_commits::make_searchable(call, &reference)?;
    let workspace = call.workspace()?;
    let mut past = workspace.past(&reference, Documents::All, &NoProgress, call.ctx.interrupt)?;
    past.view = past.view.without(is_credential);
    let key = CursorKey::new(&past.view, &format!("all history {}", question.asked.question));
    let cursor = question.asked.cursor.as_deref();
    let after = cursor.map(|cursor| key.read(cursor)).transpose()?;
    let request = Request {
        query: query.to_owned(),
        mode: mode(call),
        filter: question.filter.clone(),
        limit: question.asked.limit,
        skip: after.map_or(0, |(n_told, _)| n_told as usize),
        rerank: rerank(call),
        as_before: after.and_then(|(_, judges)| Judges::from_number(judges)),
        ..Request::default()
    };
    let mut page = ranked_in_past(
        workspace,
        &past,
        &request,
        call.arguments.flag("explain"),
        call.ctx.interrupt,
    )?;
    for life in page.results.iter_mut().filter_map(|result| result.life.as_mut()) {
        life.paths.retain(|path| !is_credential(path.as_bytes()));
    }
    told(call, &question, page, n_lines(call), &[], &|position| {
        Some(key.write(position))
    })
}

fn reply(call: &Call<'_>, question: &Asking<'_>, page: SearchPage, n_lines: usize) -> Result<Reply> {
    told(call, question, page, n_lines, &[], &|position| {
        question.key().map(|key| key.write(position))
    })
}

/// A page as an answer; `refs` are what it is about beside the question's own revision.
fn told(
    call: &Call<'_>,
    question: &Asking<'_>,
    mut page: SearchPage,
    n_lines: usize,
    refs: &[ProvenanceOut],
    cursor: &dyn Fn((u32, u32)) -> Option<String>,
) -> Result<Reply> {
    let is_regex = call.arguments.text("mode") == Some("regex");
    // Which language a file is in can follow from its content, which is looked at when it is indexed.
    let mut provenance = if is_regex && question.asked.langs.is_empty() {
        question.provenance_of_files()
    } else {
        question.provenance()
    };
    page.notes.drain(..).for_each(|why| provenance.also_incomplete(why));
    let mut draft = Draft::new(call, question.asked.characters);
    if let Some(read_as) = &page.read_as {
        draft.note(&format!("read as: {read_as}"));
    }
    for text in &page.absent {
        draft.note(&format!("no file holds {text:?}"));
    }
    if page.results.is_empty() {
        draft.note(if is_regex || question.is_indexed() {
            "nothing found"
        } else {
            "nothing found in the files that are indexed so far"
        });
        let spans_lines = |pattern: &str| {
            pattern.contains(['\n']) || ["\\n", "(?s", "\\s*"].iter().any(|part| pattern.contains(part))
        };
        match question.why_nothing()? {
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
    let next_cursor = next.and_then(cursor);
    let own = Own {
        refs,
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
    for found in &result.refs {
        let places = found.places.iter();
        let places: Vec<String> = places
            .map(|place| format!("{}:{}", place.path, place.start_line))
            .collect();
        line.push_str(&format!("\n       in {}: {}", found.reference, places.join(", ")));
    }
    if let Some(life) = &result.life {
        line.push_str(&format!("\n       {}", life.to_text()));
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

/// A question about another revision, whose cursor is about several.
fn of_ref<'a>(call: &Call<'_>, ask: &'a Ask<'a>, reference: &str) -> Result<Asking<'a>> {
    let selection = selection(call)?;
    let about = About {
        reference: Some(reference),
        has_cursor: false,
        ..About::files(&selection)
    };
    Asking::about(call, ask, about)
}
