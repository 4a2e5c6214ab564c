//! Runs an operation as a command.

use std::io;
use std::path::PathBuf;

use super::Found;
use super::args::{Global, PageArgs};
use super::columns::{cut, expand_tabs, shorten, width};
use super::progress::CliProgress;
use super::render::{ADDED, FAINT, KEYWORD, LITERAL, MATCH, Output, PATH, REMOVED, STRONG, one_line};
use crate::model::typed;
use crate::ops::{
    Ask, Common, Op, Page, PageOf, ProvenanceOut, Row, Sink, Style, Syntax, answered, on_disk, seen_from,
};
use crate::session::{CallCtx, OpError, OpensAny, Result, Session, Workspace};

/// Number of digits of a commit id in the output.
pub(super) const ID_DIGITS: usize = 10;

/// Runs `op` and prints its answer. `name` is the name of the command; cursors are valid only for the same command.
pub(super) fn run<O: Op>(
    name: &str,
    op: &O,
    page: &PageArgs,
    workspace: Workspace,
    global: &Global,
    output: &mut Output,
) -> Result<Found> {
    answer(name, op, page, workspace, global, |ask, answer| {
        let found = found(&answer);
        if output.json {
            let took_ms = ask.call.began.elapsed().as_secs_f64() * 1e3;
            output.json(&answer.into_json(took_ms)?)?;
        } else {
            let commit = answer.provenance.as_ref().and_then(ProvenanceOut::commit);
            if let Some(commit) = commit.filter(|_| !matches!(global.reference.as_str(), "WORKTREE" | "INDEX")) {
                output.remark(&format!("{} is commit {}", global.reference, &commit[..ID_DIGITS]));
            }
            let mut terminal = Terminal {
                workspace: &ask.session.workspace,
                here: if global.full_name {
                    ""
                } else {
                    ask.session.workspace.here()
                },
                columns: None,
                line: Vec::new(),
                output,
            };
            print(answer, &mut terminal)?;
        }
        Ok(found)
    })
}

/// Runs `op` and passes its answer on. `name` is the name of the command.
pub(super) fn answer<O: Op, T>(
    name: &str,
    op: &O,
    page: &PageArgs,
    workspace: Workspace,
    global: &Global,
    with: impl FnOnce(&Ask<'_>, PageOf<O>) -> Result<T>,
) -> Result<T> {
    let session = Session::for_command(workspace);
    let progress = CliProgress::new(global.quiet);
    let ask = Ask {
        session: &session,
        call: CallCtx::unlimited(progress.ctx()),
        opens: &OpensAny,
        common: Common {
            reference: global.reference.clone(),
            limit: page.limit,
            cursor: page.cursor.clone(),
            question: format!("{name} {}", serde_json::to_string(op)?),
            ..Common::default()
        },
    };
    let answer = answered(op, &ask)?;
    if ask.call.ctx.is_interrupted() {
        return Err(OpError::interrupted());
    }
    with(&ask, answer)
}

/// Returns the outcome of a command with this answer.
pub(super) fn found<F, R>(answer: &Page<F, R>) -> Found {
    match (answer.is_unfinished, answer.is_empty) {
        _ if answer.cannot_tell => Found::Uncertain,
        (true, _) => Found::Unfinished,
        (_, true) => Found::Nothing,
        (_, false) => Found::Something,
    }
}

fn print<F, R: Row>(page: Page<F, R>, terminal: &mut Terminal<'_>) -> Result<()> {
    let limit = page.paging.limit.unwrap_or(usize::MAX).min(page.rows.len());
    let written = print_rows(&page, limit, terminal);
    let output = &mut *terminal.output;
    let shown = output.finish_text(written)?;
    page.notes.iter().for_each(|note| output.remark(note));
    if let Some(hint) = &page.hint {
        output.remark(hint);
    }
    if let Some(total) = page.n_selected.filter(|_| page.paging.cursor(limit, 0).is_some()) {
        output.remark(&format!("{limit} of {total}, -n 0 for all"));
    }
    if let Some(provenance) = &page.provenance {
        provenance.notes().iter().for_each(|note| output.remark(note));
        output.incomplete(provenance.incomplete_because())?;
    }
    Ok(shown?)
}

fn print_rows<F, R: Row>(page: &Page<F, R>, limit: usize, terminal: &mut Terminal<'_>) -> io::Result<()> {
    page.head.replay(terminal);
    terminal.columns = terminal.output.columns();
    for (number, row) in page.rows[..limit].iter().enumerate() {
        if number > 0 && row.is_apart() {
            terminal.output.put("\n")?;
        }
        match row.raw() {
            // Exact bytes unless standard output is a terminal, where control characters are escaped.
            Some((bytes, _)) if !terminal.output.is_terminal() => terminal.output.bytes(bytes)?,
            Some((bytes, language)) => terminal.code(&String::from_utf8_lossy(bytes), language)?,
            None => row.render(terminal),
        }
        let is_followed = page.rows.len() > 1;
        if is_followed && row.raw().is_some_and(|(bytes, _)| !bytes.ends_with(b"\n")) {
            terminal.output.put("\n")?;
        }
    }
    terminal.columns = None;
    page.tail.replay(terminal);
    Ok(())
}

/// Writes to the terminal.
struct Terminal<'a> {
    workspace: &'a Workspace,
    /// The directory that displayed paths are relative to.
    here: &'a str,
    /// The width at which lines are cut.
    columns: Option<usize>,
    /// The current line: text on one line, with the file of a path.
    line: Vec<(Style, String, Option<PathBuf>)>,
    output: &'a mut Output,
}

impl Terminal<'_> {
    /// Writes the text of a file.
    fn code(&mut self, text: &str, language: &str) -> io::Result<()> {
        let mut syntax = Syntax::named(text, language);
        let mut start = 0;
        for line in text.split_inclusive('\n') {
            let mut styled = String::new();
            let end = start + line.trim_end_matches('\n').len();
            syntax.between(start..end, |piece, style| {
                styled.push_str(&self.output.styled(style_of(style), &text[piece]));
            });
            start += line.len();
            styled.push_str(&text[end..start]);
            self.output.put(&styled)?;
        }
        Ok(())
    }

    /// On a terminal, expands the tabs behind a line number, so that the number does not shift the code.
    fn expand_tabs(&mut self) {
        if self.output.is_terminal() && self.line.first().is_some_and(|(style, ..)| *style == Style::Fact) {
            expand_tabs(self.line[1..].iter_mut().map(|(_, text, _)| text));
        }
    }

    /// Shortens the first path of a line, so that the name behind it, or else the whole line, is visible.
    fn shorten_path(&mut self, columns: usize) {
        let at = |wanted: Style| self.line.iter().position(|(style, ..)| *style == wanted);
        let (path, name) = (at(Style::Path), at(Style::Name));
        let visible = name.map_or(self.line.len(), |name| name + 1);
        let needed: usize = self.line[..visible].iter().map(|(_, text, _)| width(text)).sum();
        if let Some(path) = path.filter(|_| needed > columns) {
            let text = &mut self.line[path].1;
            // One column is for the sign that the line is cut.
            *text = shorten(text, (width(text) + columns).saturating_sub(needed + 1));
        }
    }
}

impl Sink for Terminal<'_> {
    fn span(&mut self, style: Style, text: &str) {
        let is_path = style == Style::Path;
        let file = (is_path && self.output.has_links()).then(|| on_disk(self.workspace, &typed(text)));
        let text = if is_path {
            one_line(&seen_from(self.here, text))
        } else {
            one_line(text)
        };
        self.line.push((style, text, file.flatten()));
    }

    fn end(&mut self) {
        self.expand_tabs();
        if let Some(columns) = self.columns {
            self.shorten_path(columns);
            cut(self.line.iter_mut().map(|(_, text, _)| text), columns);
        }
        self.end_whole();
    }

    fn end_whole(&mut self) {
        self.expand_tabs();
        for (style, text, file) in self.line.drain(..) {
            let text = match style {
                Style::Path => self.output.path(&text, file.as_deref()),
                style => self.output.name(style_of(style), &text),
            };
            self.output.put_deferred(&text);
        }
        self.output.put_deferred("\n");
    }
}

/// Returns how a terminal shows a style.
fn style_of(style: Style) -> anstyle::Style {
    match style {
        Style::Plain => anstyle::Style::new(),
        Style::Path => PATH,
        Style::Name | Style::Commit => STRONG,
        Style::Fact | Style::Comment => FAINT,
        Style::Added => ADDED,
        Style::Removed => REMOVED,
        Style::Match => MATCH,
        Style::Literal => LITERAL,
        Style::Keyword => KEYWORD,
    }
}
