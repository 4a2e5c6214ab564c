//! `read`: the exact text of a file, or of parts of it.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::ask::{Ask, Detail, FileSelection, path_text};
use super::docs::DOCUMENT_LANGUAGES;
use super::notes::outdated;
use super::op::{Op, Page, PageOf, Paging, Row};
use super::paths::{inside, inside_here};
use super::question::{About, Question};
use super::sink::{Recorded, Sink, Style};
use crate::edit::MIN_BLOB_DIGITS;
use crate::extract::{self, is_text};
use crate::model::{Hint, quoted, start_of};
use crate::query::{PartQuery, ReadOutcome, ReadTarget, parse_lines, paths_in_target, read, read_target};
use crate::session::{Build, OpError, Result};

/// The request.
#[derive(Clone, Debug, Default, Serialize, Deserialize, clap::Args, schemars::JsonSchema)]
#[serde(default)]
#[schemars(extend("required" = ["target"]))]
#[command(after_help = "Examples:
  codescout read src/lib.rs
  codescout read src/lib.rs:10-20 --ref v1.2.0
  codescout read README.md --heading Installation --heading Licence
  codescout read Cargo.toml --key package.version
  codescout read src/parser.rs --symbol Parser::parse")]
pub(crate) struct Read {
    /// Path, path:LINE, path:START-END, or the id of a definition
    #[arg(value_parser = path_text())]
    #[schemars(description = "path, path:10-20, or id")]
    target: String,
    /// Print only these lines: 5, 5-9 or 5-; repeatable
    #[arg(long, value_name = "LINES")]
    #[schemars(description = "5, 5-9 or 5-")]
    lines: Vec<String>,
    /// Print only the section with this heading; repeatable
    #[arg(long, value_name = "TITLE")]
    #[schemars(description = "")]
    heading: Vec<String>,
    /// Print only the value at this key path, such as a.b.c; repeatable
    #[arg(long, value_name = "KEYS")]
    #[schemars(description = "a.b.c")]
    key: Vec<String>,
    /// Print only definitions with this name; repeatable
    #[arg(long, value_name = "NAME")]
    #[schemars(description = "")]
    symbol: Vec<String>,
}

/// The fields of the answer.
#[derive(Debug, Serialize)]
pub(crate) struct Facts {
    path: String,
    blob: String,
    language: &'static str,
    symlink: bool,
    bytes: usize,
    lines: u32,
}

/// A part of the file.
#[derive(Debug, Serialize)]
pub(crate) struct Part {
    start_line: u32,
    end_line: u32,
    start_byte: usize,
    end_byte: usize,
    title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    lossy: bool,
    #[serde(skip)]
    bytes: Vec<u8>,
    #[serde(skip)]
    language: &'static str,
}

impl Op for Read {
    type Facts = Facts;
    type Row = Part;
    const WHEN_TOO_SLOW: &'static str = "read fewer lines, as target=path:10-60";

    fn run(&self, ask: &Ask<'_>) -> Result<PageOf<Self>> {
        let linked = |target| Self { target, ..self.clone() };
        if let Some(page) = ask.in_linked(&self.target, linked)? {
            return Ok(page);
        }
        let workspace = &ask.session.workspace;
        let place = &*inside(workspace, &self.target);
        let here = inside_here(workspace, &self.target);
        let selection = FileSelection::default();
        let is_command = ask.common.characters.is_none();
        let mut files = paths_in_target(place);
        files.extend(here.iter().flat_map(|here| paths_in_target(here)));
        files.sort_unstable();
        let about = About {
            files: &files,
            build: if is_command { Build::Wait } else { Build::Never },
            ..About::files(&selection)
        };
        let question = Question::new(ask, &about)?;
        let queries = self.queries()?;
        let at_here = here.and_then(|here| read_target(question.view(), &here).ok());
        let target = match at_here {
            Some(target) => target,
            None => self.find(ask, &question, place)?,
        };
        let queries: Vec<PartQuery> = target.part.into_iter().chain(queries).collect();
        let language = extract::language(question.view().lang(target.file)).map_or("text", |language| language.name);
        if queries.iter().any(|query| matches!(query, PartQuery::Heading(_))) && !DOCUMENT_LANGUAGES.contains(&language)
        {
            return Err(OpError::new(
                format!("headings are not extracted from {language} files"),
                Hint::each(
                    format!(
                        "codescout grep TEXT {} finds the heading; then read with --lines",
                        self.target
                    ),
                    format!(
                        "use search mode=regex path={} to find the heading, then read with lines",
                        self.target
                    ),
                ),
            ));
        }
        let outcome = read(&question.sources(), target.file, &queries)?;
        let file = question.view().file(outcome.file);
        let facts = Facts {
            path: quoted(file.path).into_owned(),
            blob: file.entry().oid.to_string(),
            language,
            symlink: outcome.is_link,
            bytes: outcome.bytes.len(),
            lines: outcome.n_lines,
        };
        // The command line prints the exact bytes.
        if !is_command && !is_text(&outcome.bytes) {
            return Err(OpError::new(
                format!(
                    "{:?} is not text: {} bytes, blob {}",
                    facts.path, facts.bytes, facts.blob
                ),
                "use git show to get its bytes",
            ));
        }
        let (rows, paging) = page(&outcome, language, &question, ask);
        let mut page = Page::new(question.provenance_of_files(), facts, rows, paging);
        let facts = &page.facts;
        page.is_empty = false;
        if !is_command {
            page.head = Recorded::of(|out| {
                out.span(Style::Path, &facts.path);
                out.line(&format!(" blob {}", start_of(&facts.blob, MIN_BLOB_DIGITS)));
            });
        }
        if let ([PartQuery::Symbol(_) | PartQuery::Definition(_)], [part]) = (queries.as_slice(), page.rows.as_slice())
            && let Some(name) = &part.title
        {
            page.notes.extend(outdated(ask, &format!("{}#{name}", facts.path))?);
        }
        if facts.symlink {
            page.notes.push(format!(
                "{} is a symbolic link; the text is its target path",
                facts.path
            ));
        }
        Ok(page)
    }
}

impl Read {
    /// Returns the parts that the options select, by kind of part.
    fn queries(&self) -> Result<Vec<PartQuery>> {
        let mut queries = Vec::new();
        for lines in &self.lines {
            queries.push(lines_query(lines)?);
        }
        queries.extend(self.heading.iter().cloned().map(PartQuery::Heading));
        queries.extend(self.key.iter().cloned().map(PartQuery::Key));
        queries.extend(self.symbol.iter().cloned().map(PartQuery::Symbol));
        Ok(queries)
    }

    fn find(&self, ask: &Ask<'_>, question: &Question<'_>, place: &str) -> Result<ReadTarget> {
        let view = question.view();
        read_target(view, place).map_err(|error| match place.rsplit_once(':') {
            // The path exists, so the error is in the lines.
            Some((path, lines)) if view.find_text(path).is_some() => match lines_query(lines) {
                Err(wrong) => wrong,
                Ok(_) => OpError::from(error),
            },
            _ if ask.visibility().hides_target(place) => OpError::hidden(&self.target),
            _ => error.into(),
        })
    }
}

/// Returns the parts on this page. The limit counts lines.
fn page(outcome: &ReadOutcome, language: &'static str, question: &Question<'_>, ask: &Ask<'_>) -> (Vec<Part>, Paging) {
    let (first, skip) = question.after.unwrap_or_default();
    let mut left = ask.common.limit.filter(|lines| *lines > 0).unwrap_or(usize::MAX);
    let mut paging = Paging {
        key: question.key(),
        ..Paging::default()
    };
    let mut rows = Vec::new();
    for (number, found) in outcome.parts.iter().enumerate().skip(first as usize) {
        let begin = if number == first as usize { skip as usize } else { 0 };
        let position = (number as u32, begin as u32);
        if left == 0 {
            paging.end = Some(position);
            break;
        }
        let bytes = outcome.bytes.get(found.range.clone()).unwrap_or_default();
        let text = String::from_utf8_lossy(bytes);
        let rest = text.get(begin..).unwrap_or_default();
        let mut part = Part {
            start_line: found.start_line + text[..begin.min(text.len())].matches('\n').count() as u32,
            end_line: found.end_line,
            start_byte: found.range.start + begin,
            end_byte: found.range.end,
            title: found.title.clone(),
            lossy: matches!(text, Cow::Owned(_)),
            text: (ask.common.detail != Detail::Ids).then(|| rest.to_owned()),
            bytes: bytes.to_vec(),
            language,
        };
        let shown = first_lines(rest, left);
        left -= shown.lines().count().min(left);
        paging.positions.push(position);
        if shown.len() < rest.len() && part.text.is_some() {
            part.text = Some(shown.to_owned());
            part.was_cut();
            paging.end = Some((number as u32, (begin + shown.len()) as u32));
            rows.push(part);
            break;
        }
        rows.push(part);
    }
    (rows, paging)
}

impl Row for Part {
    const CONTINUES: bool = true;

    fn render(&self, out: &mut dyn Sink) {
        let title = self.title.as_deref().map_or(String::new(), |title| format!(" {title}"));
        out.line(&format!("lines {}-{}{title}", self.start_line, self.end_line));
        if let Some(text) = &self.text {
            out.text(text);
        }
    }

    fn bodies(&mut self) -> Vec<&mut Option<String>> {
        vec![&mut self.text]
    }

    fn was_cut(&mut self) {
        let text = self.text.as_deref().unwrap_or_default();
        self.end_byte = self.start_byte + text.len();
        self.end_line = self.start_line + text.trim_end_matches('\n').matches('\n').count() as u32;
    }

    fn raw(&self) -> Option<(&[u8], &'static str)> {
        Some((&self.bytes, self.language))
    }
}

/// Parses lines as typed.
pub(crate) fn lines_query(typed: &str) -> Result<PartQuery, OpError> {
    parse_lines(typed).ok_or_else(|| {
        OpError::new(
            format!("invalid line range {typed:?}"),
            "write 5, 5-9 or 5-; the first line is 1",
        )
    })
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
