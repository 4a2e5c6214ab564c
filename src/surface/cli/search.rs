//! `codescout search`

use std::io::Read;
use std::time::Instant;

use anyhow::{Result, bail};
use serde::Serialize;

use super::args::{FilterArgs, Global, ModeArg, SearchArgs, TestsArg};
use super::json::ProvenanceOut;
use super::progress::CliProgress;
use super::render::{FAINT, Output, PATH, STRONG};
use super::{Found, INTERRUPTED, search_commits};
use crate::query::{CursorKey, FileFilter, Mode, Pattern, PatternOptions, Request, Sources, Tests};
use crate::surface::answer::{MAX_QUERY_BYTES, ResultOut, lines_request, matching_lines, ranked};
use crate::surface::open::Workspace;

#[derive(Debug, Serialize)]
struct SearchOut {
    #[serde(flatten)]
    provenance: ProvenanceOut,
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

pub(super) fn run(workspace: &Workspace, global: &Global, args: &SearchArgs, output: &mut Output) -> Result<Found> {
    let query = query_text(&args.query)?;
    let filter = filter(&args.filter)?;
    if let Some(what) = args.inside {
        return search_commits::run(workspace, global, args, (what, &query), filter, output);
    }
    let limit = match workspace.config.limit.value {
        0 => usize::MAX,
        limit => limit,
    };
    let pattern = match args.mode {
        ModeArg::Regex => Some(Pattern::new(query.trim_end_matches('\n'), PatternOptions::default())?),
        _ => None,
    };
    let progress = CliProgress::new(global.quiet);
    let opened = workspace.view(&global.reference, &progress, &INTERRUPTED)?;
    let view = &opened.view;
    let started = Instant::now();
    let key = CursorKey::new(view, &format!("search {query:?} {:?} {:?}", args.mode, args.filter));
    let after = args.page.cursor.as_deref().map(|cursor| key.read(cursor)).transpose()?;
    let page = match pattern {
        Some(pattern) => {
            let request = lines_request(pattern, filter, 0, limit, after);
            matching_lines(&Sources::new(view, &workspace.repository), &request, &INTERRUPTED)?
        }
        None => {
            let request = Request {
                query,
                mode: mode(args.mode),
                filter,
                limit,
                skip: after.map_or(0, |(n_told, _)| n_told as usize),
                ..Request::default()
            };
            ranked(workspace, view, &request, &[], args.explain, &INTERRUPTED)?
        }
    };
    if page.is_interrupted {
        bail!("interrupted");
    }
    let mut provenance = ProvenanceOut::of(view);
    page.notes.into_iter().for_each(|why| provenance.also_incomplete(why));
    let answer = SearchOut {
        provenance,
        read_as: page.read_as,
        absent: page.absent,
        results: page.results,
        next_cursor: page.next.map(|position| key.write(position)),
        took_ms: started.elapsed().as_secs_f64() * 1e3,
    };
    if output.json {
        output.json(&answer)?;
    } else {
        show(&answer, args, output)?;
        output.incomplete(answer.provenance.incomplete_because())?;
    }
    Ok(if answer.results.is_empty() {
        Found::Nothing
    } else {
        Found::Something
    })
}

fn query_text(typed: &str) -> Result<String> {
    let mut text = typed.to_owned();
    if typed == "-" {
        text.clear();
        std::io::stdin()
            .lock()
            .take(MAX_QUERY_BYTES as u64 + 1)
            .read_to_string(&mut text)?;
    }
    if text.len() > MAX_QUERY_BYTES {
        bail!("the query has more than {MAX_QUERY_BYTES} bytes");
    }
    if text.trim().is_empty() {
        bail!("the query is empty");
    }
    Ok(text)
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

fn show(answer: &SearchOut, args: &SearchArgs, output: &mut Output) -> Result<()> {
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
            .take(args.lines)
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
    let pages = args.page.limit.is_some() || args.page.cursor.is_some();
    if let (Some(cursor), true) = (&answer.next_cursor, pages) {
        output.remark(&format!("there is more: --cursor {cursor}"));
    }
    Ok(())
}
