//! `codescout grep`

use std::io;
use std::ops::ControlFlow;

use serde::Serialize;

use super::args::{Global, GrepArgs};
use super::progress::CliProgress;
use super::render::{FAINT, MATCH, Output};
use super::{Found, INTERRUPTED};
use crate::extract;
use crate::model::count::count;
use crate::model::{quoted, typed};
use crate::ops::{About, Ask, Common, FileSelection, ProvenanceOut, Question, on_disk, seen_from};
use crate::query::{
    FileMatches, GrepDetail, GrepLine, GrepOutcome, GrepPosition, GrepRequest, Pattern, PatternOptions, grep,
};
use crate::session::{CallCtx, Edits, OpError, OpensAny, Result, Session, Workspace};
use crate::snapshot::{FileId, View};

/// Maximum number of unreadable files listed by name.
const MAX_NAMED_UNREAD: usize = 5;

#[derive(Debug, Serialize)]
struct GrepOut {
    #[serde(flatten)]
    provenance: ProvenanceOut,
    results: Vec<FileOut>,
    matching_lines: u64,
    matching_files: u32,
    unread_files: usize,
    next_cursor: Option<String>,
    took_ms: f64,
}

#[derive(Debug, Serialize)]
struct FileOut {
    path: String,
    language: &'static str,
    blob: String,
    binary: bool,
    matching_lines: u32,
    lines: Vec<LineOut>,
}

#[derive(Debug, Serialize)]
struct LineOut {
    line: u32,
    text: String,
    /// Byte ranges within the original line of the file, before lossy conversion to UTF-8.
    spans: Vec<(u32, u32)>,
    context: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    lossy: bool,
}

pub(super) fn run(workspace: Workspace, global: &Global, args: &GrepArgs, output: &mut Output) -> Result<Found> {
    let pattern = pattern(args)?;
    let session = Session::for_command(workspace);
    let progress = CliProgress::new(global.quiet);
    let ask = ask(&session, &progress, global, args);
    let selection = selection(args);
    let question = Question::new(
        &ask,
        &About {
            edits: Edits::Listed,
            ..About::files(&selection)
        },
    )?;
    let view = question.view();
    let request = GrepRequest {
        pattern,
        filter: question.filter.clone(),
        detail: detail(args),
        before: args.before_context.unwrap_or(args.context),
        after: args.after_context.unwrap_or(args.context),
        limit: match args.page.limit {
            None | Some(0) => usize::MAX,
            Some(limit) => limit,
        },
        from: question.after.map(|(file, line)| GrepPosition {
            file: FileId(file),
            line,
        }),
    };
    let here = if global.full_name { "" } else { session.workspace.here() };
    let mut results = Vec::new();
    let mut failed: io::Result<()> = Ok(());
    let has_context = request.before + request.after > 0;
    let outcome = grep(&question.sources(), &request, &INTERRUPTED, &mut |matches| {
        if output.json {
            results.push(file_out(view, &matches));
            return ControlFlow::Continue(());
        }
        let path = path_of(view, matches.file);
        let file = output
            .has_links()
            .then(|| on_disk(&session.workspace, &typed(&path)))
            .flatten();
        let path = output.path(&seen_from(here, &path), file.as_deref());
        failed = if args.only_matching {
            show_parts(&path, &matches, output)
        } else {
            show(&path, &matches, request.detail, has_context, output)
        };
        match failed {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    });
    let shown = output.finish_text(failed)?;
    if outcome.interrupted {
        return Err(OpError::interrupted());
    }
    let mut provenance = question.provenance();
    add_unread(view, &outcome, &mut provenance);
    let next = outcome.next.zip(question.key());
    let next_cursor = next.map(|(position, key)| key.write((position.file.0, position.line)));
    if output.json {
        output.json(&GrepOut {
            provenance,
            results,
            matching_lines: outcome.n_lines,
            matching_files: outcome.n_files,
            unread_files: outcome.unread.len(),
            next_cursor,
            took_ms: ask.call.began.elapsed().as_secs_f64() * 1e3,
        })?;
    } else {
        provenance.notes().iter().for_each(|note| output.remark(note));
        output.incomplete(provenance.incomplete_because())?;
        if let Some(cursor) = next_cursor {
            output.remark(&format!("more results: --cursor {cursor}"));
        }
        let why = (outcome.n_files == 0).then(|| question.why_nothing()).flatten();
        why.iter().for_each(|why| output.remark(why));
    }
    shown?;
    Ok(match outcome.n_files {
        0 => Found::Nothing,
        _ => Found::Something,
    })
}

fn pattern(args: &GrepArgs) -> Result<Pattern> {
    let text = pattern_text(args);
    let is_lowercase = !text.chars().any(char::is_uppercase);
    let options = PatternOptions {
        ignore_case: args.ignore_case || args.smart_case && is_lowercase,
        whole_words: args.word_regexp,
        literal: args.fixed_strings,
        inverted: args.invert_match,
    };
    Ok(Pattern::new(&text, options)?)
}

/// Returns the patterns as one text, with one alternative per line.
fn pattern_text(args: &GrepArgs) -> String {
    match &args.pattern {
        Some(pattern) if args.regexp.is_empty() => pattern.clone(),
        _ => args.regexp.join("\n"),
    }
}

/// Returns the file selection from options and positional arguments.
fn selection(args: &GrepArgs) -> FileSelection {
    let first = args.pattern.iter().filter(|_| !args.regexp.is_empty());
    let paths = first.chain(&args.paths).cloned();
    FileSelection {
        path: args.filter.path.iter().cloned().chain(paths).collect(),
        ..args.filter.clone()
    }
}

fn detail(args: &GrepArgs) -> GrepDetail {
    match (args.files_with_matches, args.count) {
        (true, _) => GrepDetail::Files,
        (_, true) => GrepDetail::Counts,
        _ => GrepDetail::Lines,
    }
}

/// Returns the parameters for running the query. Its cursors are valid only for the same query, options and files.
fn ask<'a>(session: &'a Session, progress: &'a CliProgress, global: &Global, args: &GrepArgs) -> Ask<'a> {
    let flags = (args.ignore_case, args.smart_case, args.word_regexp, args.fixed_strings);
    let shown = (args.invert_match, detail(args));
    Ask {
        session,
        call: CallCtx::unlimited(progress.ctx()),
        opens: &OpensAny,
        common: Common {
            reference: global.reference.clone(),
            cursor: args.page.cursor.clone(),
            question: format!(
                "grep {:?} {flags:?} {shown:?} {:?}",
                pattern_text(args),
                selection(args)
            ),
            ..Common::default()
        },
    }
}

fn add_unread(view: &View, outcome: &GrepOutcome, provenance: &mut ProvenanceOut) {
    for (file, reason) in outcome.unread.iter().take(MAX_NAMED_UNREAD) {
        provenance.also_incomplete(format!("{} was not searched: {reason}", path_of(view, *file)));
    }
    if let Some(n_more @ 1..) = outcome.unread.len().checked_sub(MAX_NAMED_UNREAD) {
        provenance.also_incomplete(format!("{} not searched", count(n_more, "more file")));
    }
}

fn path_of(view: &View, file: FileId) -> String {
    quoted(view.file(file).path).into_owned()
}

fn file_out(view: &View, matches: &FileMatches) -> FileOut {
    FileOut {
        path: path_of(view, matches.file),
        language: extract::language(view.lang(matches.file)).map_or("text", |language| language.name),
        blob: view.file(matches.file).entry().oid.to_string(),
        binary: matches.is_binary,
        matching_lines: matches.n_matching_lines,
        lines: matches.lines.iter().map(line_out).collect(),
    }
}

fn line_out(line: &GrepLine) -> LineOut {
    let text = String::from_utf8_lossy(&line.text);
    LineOut {
        line: line.number,
        lossy: matches!(text, std::borrow::Cow::Owned(_)),
        text: text.into_owned(),
        spans: line.spans.clone(),
        context: !line.is_match,
    }
}

fn show(
    path: &str,
    matches: &FileMatches,
    detail: GrepDetail,
    has_context: bool,
    output: &mut Output,
) -> io::Result<()> {
    match detail {
        GrepDetail::Files => return output.line(path),
        GrepDetail::Counts => return output.line(&format!("{path}:{}", matches.n_matching_lines)),
        GrepDetail::Lines if matches.is_binary => return output.line(&format!("Binary file {path} matches")),
        GrepDetail::Lines => {}
    }
    let mut last = None;
    for line in &matches.lines {
        if has_context && last.is_none_or(|last| last + 1 != line.number) && output.has_text() {
            output.line("--")?;
        }
        last = Some(line.number);
        let mark = if line.is_match { ':' } else { '-' };
        let number = output.styled(FAINT, &line.number.to_string());
        let text = line.text.strip_suffix(b"\r").unwrap_or(&line.text);
        let text = output.marked(MATCH, text, &line.spans);
        output.line(&format!("{path}{mark}{number}{mark}{text}"))?;
    }
    Ok(())
}

/// Prints the matching parts of lines, each on a line of its own.
fn show_parts(path: &str, matches: &FileMatches, output: &mut Output) -> io::Result<()> {
    for line in matches.lines.iter().filter(|line| line.is_match) {
        for &(start, end) in &line.spans {
            let number = output.styled(FAINT, &line.number.to_string());
            let part = line.text.get(start as usize..end as usize).unwrap_or_default();
            let part = output.name(MATCH, &String::from_utf8_lossy(part));
            output.line(&format!("{path}:{number}:{part}"))?;
        }
    }
    Ok(())
}
