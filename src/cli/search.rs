//! `codescout search`

use std::io::Read;
use std::time::Instant;

use anyhow::{Result, bail};
use serde::Serialize;

use super::args::{FilterArgs, Global, ModeArg, SearchArgs, TestsArg};
use super::input::read_input;
use super::json::{OpError, ProvenanceOut};
use super::progress::CliProgress;
use super::render::{FAINT, Output, PATH, STRONG};
use super::{Found, INTERRUPTED, search_commits};
use crate::ops::{
    MAX_QUERY_BYTES, RefView, ResultOut, SearchPage, definition_kinds, lines_request, matching_lines, ranked,
    ranked_in_past, ranked_over_refs,
};
use crate::query::{CursorKey, FileFilter, Judges, Mode, Pattern, PatternOptions, Request, Rerank, Sources, Tests};
use crate::session::Workspace;
use crate::snapshot::{Documents, View};

/// Lines of text shown of what is no longer there.
const LINES_OF_GONE: usize = 6;

#[derive(Debug, Serialize)]
struct SearchOut {
    #[serde(flatten)]
    provenance: ProvenanceOut,
    /// What is said of each of several revisions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    refs: Vec<ProvenanceOut>,
    /// The query as it was read, where a word of it was taken for a typing error.
    #[serde(skip_serializing_if = "Option::is_none")]
    read_as: Option<String>,
    /// Texts that were wanted as they stand and stand nowhere.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    absent: Vec<String>,
    results: Vec<ResultOut>,
    next_cursor: Option<String>,
    took_ms: f64,
}

impl SearchOut {
    fn new(view: &View, page: SearchPage, key: Option<&CursorKey>, started: Instant) -> Self {
        let mut provenance = ProvenanceOut::of(view);
        page.notes.into_iter().for_each(|why| provenance.also_incomplete(why));
        Self {
            provenance,
            refs: Vec::new(),
            read_as: page.read_as,
            absent: page.absent,
            results: page.results,
            next_cursor: key.zip(page.next).map(|(key, position)| key.write(position)),
            took_ms: started.elapsed().as_secs_f64() * 1e3,
        }
    }
}

pub(super) fn run(workspace: &Workspace, global: &Global, args: &SearchArgs, output: &mut Output) -> Result<Found> {
    let query = query_text(&args.query)?;
    let filter = filter(&args.filter)?;
    if let Some(what) = args.inside {
        return search_commits::run(workspace, global, args, (what, &query), filter, output);
    }
    let limit = workspace.config.max_results();
    let kinds = definition_kinds(&args.kinds)?;
    let pattern = match args.mode {
        ModeArg::Regex if !kinds.is_empty() => bail!("--kind says nothing about lines that match a regex"),
        ModeArg::Regex if args.rerank => bail!("--rerank means nothing with --mode regex"),
        ModeArg::Regex => Some(Pattern::new(query.trim_end_matches('\n'), PatternOptions::default())?),
        _ => None,
    };
    if !args.refs.is_empty() {
        return run_over_refs(workspace, global, args, (query, filter, limit), output);
    }
    if args.all_history {
        return run_over_past(workspace, global, args, (query, filter, limit), output);
    }
    let progress = CliProgress::new(global.quiet);
    let opened = workspace.view(&global.reference, &progress, &INTERRUPTED)?;
    let view = &opened.view;
    let started = Instant::now();
    let key = CursorKey::new(view, &question(&query, args));
    let after = args.page.after(&key)?;
    let page = match pattern {
        Some(pattern) => {
            let request = lines_request(pattern, filter, 0, limit, after);
            matching_lines(&Sources::new(view, &workspace.repository), &request, &INTERRUPTED)?
        }
        None => {
            let request = request(args, (query, filter, limit), after);
            ranked(workspace, view, &request, &kinds, args.explain, &INTERRUPTED)?
        }
    };
    if page.is_interrupted {
        bail!("interrupted");
    }
    let answer = SearchOut::new(view, page, Some(&key), started);
    finish(&answer, Shown::of(args), output)
}

/// All that ever was.
fn run_over_past(
    workspace: &Workspace,
    global: &Global,
    args: &SearchArgs,
    (query, filter, limit): (String, FileFilter, usize),
    output: &mut Output,
) -> Result<Found> {
    if matches!(args.mode, ModeArg::Regex | ModeArg::Similar) {
        return Err(OpError::new(
            "this mode means nothing with --all-history",
            "lines of all times are found by --in diffs --mode regex",
        )
        .into());
    }
    let progress = CliProgress::new(global.quiet);
    let past = workspace.past(&global.reference, Documents::All, &progress, &INTERRUPTED)?;
    let started = Instant::now();
    let key = CursorKey::new(&past.view, &format!("all history {}", question(&query, args)));
    let after = args.page.after(&key)?;
    let request = request(args, (query, filter, limit), after);
    let page = ranked_in_past(workspace, &past, &request, args.explain, &INTERRUPTED)?;
    let answer = SearchOut::new(&past.view, page, Some(&key), started);
    finish(&answer, Shown::of(args), output)
}

/// Several revisions at once.
fn run_over_refs(
    workspace: &Workspace,
    global: &Global,
    args: &SearchArgs,
    (query, filter, limit): (String, FileFilter, usize),
    output: &mut Output,
) -> Result<Found> {
    if args.mode == ModeArg::Regex {
        return Err(OpError::new(
            "--mode regex means nothing with --refs",
            "ask grep about each revision with --ref",
        )
        .into());
    }
    let progress = CliProgress::new(global.quiet);
    let mut opened = Vec::new();
    for reference in &args.refs {
        opened.push(workspace.view(reference, &progress, &INTERRUPTED)?.view);
    }
    let started = Instant::now();
    let question = format!("search {query:?} {:?} {:?} {:?}", args.mode, args.filter, args.refs);
    let key = CursorKey::over(opened.iter(), &question);
    let after = args.page.after(&key)?;
    let view = |view| RefView {
        view,
        filter: filter.clone(),
    };
    let views: Vec<RefView<'_>> = opened.iter().map(view).collect();
    let request = request(args, (query, FileFilter::default(), limit), after);
    let page = ranked_over_refs(workspace, &views, &request, args.explain, &INTERRUPTED)?;
    let answer = SearchOut {
        refs: opened.iter().map(ProvenanceOut::of).collect(),
        ..SearchOut::new(&opened[0], page, Some(&key), started)
    };
    finish(&answer, Shown::of(args), output)
}

/// What is no longer there, by words and meaning.
pub(super) fn run_gone(
    workspace: &Workspace,
    global: &Global,
    query: &str,
    limit: usize,
    output: &mut Output,
) -> Result<Found> {
    let progress = CliProgress::new(global.quiet);
    let past = workspace.past(&global.reference, Documents::Gone, &progress, &INTERRUPTED)?;
    let started = Instant::now();
    let request = Request {
        query: query_text(query)?,
        limit,
        ..Request::default()
    };
    let page = ranked_in_past(workspace, &past, &request, false, &INTERRUPTED)?;
    let answer = SearchOut::new(&past.view, page, None, started);
    let shown = Shown {
        n_lines: LINES_OF_GONE,
        is_paged: false,
    };
    finish(&answer, shown, output)
}

/// The question for the best hits.
fn request(
    args: &SearchArgs,
    (query, filter, limit): (String, FileFilter, usize),
    after: Option<(u32, u32)>,
) -> Request {
    Request {
        query,
        mode: mode(args.mode),
        filter,
        limit,
        skip: after.map_or(0, |(n_told, _)| n_told as usize),
        as_before: after.and_then(|(_, judges)| Judges::from_number(judges)),
        rerank: rerank(args),
        ..Request::default()
    }
}

/// How much is shown to people.
#[derive(Clone, Copy)]
struct Shown {
    n_lines: usize,
    is_paged: bool,
}

impl Shown {
    fn of(args: &SearchArgs) -> Self {
        Self {
            n_lines: args.context_lines,
            is_paged: args.page.limit.is_some() || args.page.cursor.is_some(),
        }
    }
}

/// Shows an answer.
fn finish(answer: &SearchOut, shown: Shown, output: &mut Output) -> Result<Found> {
    if output.json {
        output.json(answer)?;
    } else {
        show(answer, shown, output)?;
        for provenance in std::iter::once(&answer.provenance).chain(answer.refs.iter().skip(1)) {
            output.incomplete(provenance.incomplete_because())?;
        }
    }
    Ok(if answer.results.is_empty() {
        Found::Nothing
    } else {
        Found::Something
    })
}

fn query_text(typed: &str) -> Result<String> {
    let text = match typed {
        "-" => read_input(|| {
            let mut text = String::new();
            let input = std::io::stdin().lock();
            input.take(MAX_QUERY_BYTES as u64 + 1).read_to_string(&mut text)?;
            Ok(text)
        })?,
        typed => typed.to_owned(),
    };
    if text.len() > MAX_QUERY_BYTES {
        bail!("the query has more than {MAX_QUERY_BYTES} bytes");
    }
    if text.trim().is_empty() {
        bail!("the query is empty");
    }
    Ok(text)
}

/// What a cursor is bound to.
fn question(query: &str, args: &SearchArgs) -> String {
    let SearchArgs {
        mode, kinds, filter, ..
    } = args;
    format!("search {query:?} {mode:?} {kinds:?} {filter:?} {:?}", rerank(args))
}

fn rerank(args: &SearchArgs) -> Rerank {
    match (args.rerank, args.no_rerank) {
        (true, _) => Rerank::Always,
        (false, true) => Rerank::Never,
        (false, false) => Rerank::Prose,
    }
}

pub(super) fn mode(typed: ModeArg) -> Mode {
    match typed {
        ModeArg::Auto | ModeArg::Regex => Mode::Auto,
        ModeArg::Hybrid => Mode::Hybrid,
        ModeArg::Semantic => Mode::Semantic,
        ModeArg::Keyword => Mode::Keyword,
        ModeArg::Similar => Mode::Similar,
    }
}

pub(super) fn filter(typed: &FilterArgs) -> Result<FileFilter> {
    let tests = match typed.tests {
        TestsArg::Any => Tests::Any,
        TestsArg::No => Tests::No,
        TestsArg::Only => Tests::Only,
    };
    Ok(FileFilter::new(&typed.paths, &typed.langs, tests)?)
}

fn show(answer: &SearchOut, shown: Shown, output: &mut Output) -> Result<()> {
    if let Some(read_as) = &answer.read_as {
        output.remark(&format!("read as: {read_as}"));
    }
    for text in &answer.absent {
        output.remark(&format!("no file holds {text:?}"));
    }
    for (number, result) in answer.results.iter().enumerate() {
        if number > 0 {
            output.line("")?;
        }
        let path = output.name(PATH, &format!("{}:{}", result.path, result.start_line));
        let symbol = result.symbol.as_deref().unwrap_or_default();
        let symbol = output.name(STRONG, symbol);
        let facts = output.styled(
            FAINT,
            &format!("-{} {} {:.3}", result.end_line, result.kind, result.score),
        );
        output.line(&format!("{path}{facts} {symbol}"))?;
        for (line, number) in result
            .snippet
            .iter()
            .flat_map(|text| text.lines())
            .take(shown.n_lines)
            .zip(result.snippet_start_line..)
        {
            let number = output.styled(FAINT, &format!("{number:>6}"));
            let line = super::render::sanitize(line);
            output.line(&format!("{number} {line}"))?;
        }
        for place in &result.places {
            let also = format!("       also {}:{}", place.path, place.start_line);
            let also = output.name(FAINT, &also);
            output.line(&also)?;
        }
        if let Some(life) = &result.life {
            let life = output.name(FAINT, &format!("       {}", super::render::one_line(&life.to_text())));
            output.line(&life)?;
        }
        for found in &result.refs {
            let places = found.places.iter();
            let places: Vec<String> = places
                .map(|place| format!("{}:{}", place.path, place.start_line))
                .collect();
            let stands = output.name(FAINT, &format!("       in {}: {}", found.reference, places.join(", ")));
            output.line(&stands)?;
        }
        if let Some(features) = &result.features {
            let told: Vec<String> = features
                .iter()
                .map(|(name, value)| format!("{name}={value:.3}"))
                .collect();
            let told = output.styled(FAINT, &format!("       {}", told.join(" ")));
            output.line(&told)?;
        }
    }
    output.flush()?;
    if let (Some(cursor), true) = (&answer.next_cursor, shown.is_paged) {
        output.remark(&format!("there is more: --cursor {cursor}"));
    }
    Ok(())
}
