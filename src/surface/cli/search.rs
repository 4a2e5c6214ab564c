//! `codescout search`

use std::io::Read;
use std::ops::ControlFlow;
use std::time::Instant;

use anyhow::{Result, bail};
use serde::Serialize;

use super::args::{FilterArgs, Global, ModeArg, SearchArgs, TestsArg};
use super::json::ProvenanceOut;
use super::progress::CliProgress;
use super::render::{FAINT, Output, PATH, STRONG};
use super::{Found, INTERRUPTED};
use crate::extract;
use crate::git::{BlobContent, ObjectReader};
use crate::query::{
    CursorKey, FEATURES, FileFilter, GrepDetail, GrepLine, GrepPosition, GrepRequest, Hit, Mode, Pattern,
    PatternOptions, Request, Searcher, Sources, Tests, grep,
};
use crate::snapshot::{FileId, View};
use crate::surface::open::Workspace;

/// A query longer than this is a file by mistake.
const MAX_QUERY_BYTES: usize = 64 << 10;
/// Text of one result is not longer in JSON.
const MAX_SNIPPET_BYTES: usize = 4 << 10;

#[derive(Debug, Serialize)]
struct SearchOut {
    #[serde(flatten)]
    provenance: ProvenanceOut,
    /// The query as it was read, where a word of it was taken for a typing error.
    #[serde(skip_serializing_if = "Option::is_none")]
    read_as: Option<String>,
    results: Vec<ResultOut>,
    next_cursor: Option<String>,
    took_ms: f64,
}

#[derive(Debug, Serialize)]
struct ResultOut {
    path: String,
    start_line: u32,
    end_line: u32,
    score: f32,
    language: &'static str,
    kind: String,
    symbol: Option<String>,
    blob: String,
    places: Vec<PlaceOut>,
    snippet: String,
    snippet_start_line: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    features: Option<serde_json::Map<String, serde_json::Value>>,
}

#[derive(Debug, Serialize)]
struct PlaceOut {
    path: String,
    start_line: u32,
    end_line: u32,
}

pub(super) fn run(workspace: &Workspace, global: &Global, args: &SearchArgs, output: &mut Output) -> Result<Found> {
    let query = query_text(&args.query)?;
    let filter = filter(&args.filter)?;
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
    let (results, next) = match pattern {
        Some(pattern) => matching_lines(workspace, view, pattern, filter, limit, after)?,
        None => {
            let request = Request {
                query,
                mode: mode(args.mode),
                filter,
                limit,
                skip: after.map_or(0, |(n_told, _)| n_told as usize),
            };
            ranked(workspace, view, &request, args.explain)?
        }
    };
    let mut provenance = ProvenanceOut::of(view);
    results
        .notes
        .into_iter()
        .for_each(|why| provenance.also_incomplete(why));
    let answer = SearchOut {
        provenance,
        read_as: results.read_as,
        results: results.list,
        next_cursor: next.map(|position| key.write(position)),
        took_ms: started.elapsed().as_secs_f64() * 1e3,
    };
    if output.json {
        output.json(&answer)?;
    } else {
        show(&answer, args, output)?;
    }
    Ok(if answer.results.is_empty() {
        Found::Nothing
    } else {
        Found::Something
    })
}

/// Results with what makes them partial.
#[derive(Default)]
struct Results {
    list: Vec<ResultOut>,
    notes: Vec<String>,
    read_as: Option<String>,
}

fn ranked(
    workspace: &Workspace,
    view: &View,
    request: &Request,
    explain: bool,
) -> Result<(Results, Option<(u32, u32)>)> {
    let searcher = Searcher::new(view, workspace.embedder(), workspace.static_model())?;
    let outcome = searcher.search(request)?;
    let mut reader = workspace.repository.reader();
    let mut list = Vec::with_capacity(outcome.hits.len());
    for hit in &outcome.hits {
        list.push(result_out(view, &mut reader, hit, explain)?);
    }
    let n_told = (request.skip + list.len()) as u32;
    let results = Results {
        list,
        notes: Vec::new(),
        read_as: outcome.read_as,
    };
    Ok((results, outcome.has_more.then_some((n_told, 0))))
}

/// The lines that match, each a result, in the order of paths.
fn matching_lines(
    workspace: &Workspace,
    view: &View,
    pattern: Pattern,
    filter: FileFilter,
    limit: usize,
    after: Option<(u32, u32)>,
) -> Result<(Results, Option<(u32, u32)>)> {
    let request = GrepRequest {
        pattern,
        filter,
        detail: GrepDetail::Lines,
        before: 0,
        after: 0,
        limit,
        from: after.map(|(file, line)| GrepPosition {
            file: FileId(file),
            line,
        }),
    };
    let sources = Sources::new(view, &workspace.repository);
    let mut results = Results::default();
    let outcome = grep(&sources, &request, &INTERRUPTED, &mut |matches| {
        let lines = matches.lines.iter();
        results
            .list
            .extend(lines.map(|line| line_out(view, matches.file, line)));
        ControlFlow::Continue(())
    });
    if outcome.interrupted {
        bail!("interrupted");
    }
    if !outcome.unread.is_empty() {
        results
            .notes
            .push(format!("{} files could not be read", outcome.unread.len()));
    }
    let next = outcome.next.map(|position| (position.file.0, position.line));
    Ok((results, next))
}

fn line_out(view: &View, file: FileId, line: &GrepLine) -> ResultOut {
    let text = &line.text[..line.text.len().min(MAX_SNIPPET_BYTES)];
    ResultOut {
        path: String::from_utf8_lossy(view.file(file).path).into_owned(),
        start_line: line.number,
        end_line: line.number,
        score: 1.0,
        language: extract::language(view.lang(file)).map_or("text", |language| language.name),
        kind: "line".to_owned(),
        symbol: None,
        blob: view.file(file).entry().oid.to_string(),
        places: Vec::new(),
        snippet: String::from_utf8_lossy(text).into_owned(),
        snippet_start_line: line.number,
        features: None,
    }
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

fn result_out(view: &View, reader: &mut ObjectReader, hit: &Hit, explain: bool) -> Result<ResultOut> {
    let path_of = |file| String::from_utf8_lossy(view.file(file).path).into_owned();
    let [place, others @ ..] = hit.places.as_slice() else {
        bail!("a hit without a place");
    };
    let bytes = match view.read(place.file, reader, u64::MAX)? {
        BlobContent::Content(bytes) => bytes,
        BlobContent::TooLarge { .. } | BlobContent::Missing => Vec::new(),
    };
    let (start_line, end_line, range) = hit
        .lines(&bytes)
        .unwrap_or((place.start_line, place.end_line, place.range));
    let text = bytes.get(range.as_usize()).unwrap_or_default();
    let snippet = String::from_utf8_lossy(&text[..text.len().min(MAX_SNIPPET_BYTES)]).into_owned();
    let snippet_start_line = if hit.focus.is_some() {
        start_line
    } else {
        place.range_start_line
    };
    let features = explain.then(|| {
        let values = hit.features.to_array().map(serde_json::Value::from);
        FEATURES.iter().map(|name| (*name).to_owned()).zip(values).collect()
    });
    Ok(ResultOut {
        path: path_of(place.file),
        start_line,
        end_line,
        score: hit.score,
        language: extract::language(hit.lang).map_or("text", |language| language.name),
        kind: format!("{:?}", hit.kind).to_lowercase(),
        symbol: hit.symbol.as_ref().map(|symbol| symbol.qualified_name.clone()),
        blob: view.file(place.file).entry().oid.to_string(),
        places: others
            .iter()
            .map(|place| PlaceOut {
                path: path_of(place.file),
                start_line: place.start_line,
                end_line: place.end_line,
            })
            .collect(),
        snippet,
        snippet_start_line,
        features,
    })
}

fn show(answer: &SearchOut, args: &SearchArgs, output: &mut Output) -> Result<()> {
    if let Some(read_as) = &answer.read_as {
        output.remark(&format!("read as: {read_as}"));
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
        for (line, number) in result.snippet.lines().take(args.lines).zip(result.snippet_start_line..) {
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
