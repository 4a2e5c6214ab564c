//! `run`: runs a command that the user has configured, and shows the end of its output. The output is kept, so that
//! other lines of it can be read without running the command again.

use std::os::unix::process::ExitStatusExt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::ask::Ask;
use super::op::{Op, Page, PageOf, Paging, Row};
use super::question::beside;
use super::sink::{Recorded, Sink, Style};
use crate::config::CommandLine;
use crate::model::Hint;
use crate::query::{PartQuery, parse_lines};
use crate::session::{Context as _, LimitError, OpError, Ran, Result};

/// Default maximum number of lines of an answer.
const DEFAULT_LINES: usize = 50;
/// Limit on the size of a kept output with its facts, far above what is written.
const MAX_KEPT_BYTES: u64 = 32 << 20;

/// The request.
#[derive(Clone, Debug, Default, Serialize, Deserialize, clap::Args, schemars::JsonSchema)]
#[serde(default)]
#[command(after_help = "Examples:
  codescout config set run.test 'cargo test'
  codescout run
  codescout run test
  codescout run test --lines 1-40

Exit status: 0 if the command succeeded, 1 if it failed, 2 if it was stopped or could not be run.")]
pub(crate) struct Run {
    /// Command to run; without it, the configured commands are listed
    #[arg(value_enum)]
    #[schemars(description = "omit it to list the configured ones")]
    name: Option<Name>,
    /// Read these lines of the last output instead of running the command: 5, 5-9 or 5-
    #[arg(long, value_name = "LINES", requires = "name")]
    #[schemars(description = "5, 5-9 or 5-: of the last output, without running it again")]
    lines: Option<String>,
}

/// The name of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Name {
    /// Build the project
    Build,
    /// Test it
    Test,
    /// Check the code for mistakes
    Lint,
    /// Format the code
    Format,
}

impl Name {
    const ALL: [Self; 4] = [Self::Build, Self::Test, Self::Lint, Self::Format];

    fn text(self) -> &'static str {
        match self {
            Self::Build => "build",
            Self::Test => "test",
            Self::Lint => "lint",
            Self::Format => "format",
        }
    }

    /// Returns the name of the file with the output in the folder of logs.
    fn file(self) -> String {
        format!("run-{}.json", self.text())
    }
}

/// The facts about the last run of a command, and the end of its output.
#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    command: Vec<String>,
    /// The start, in milliseconds since 1970.
    began_ms: u64,
    ran_ms: u64,
    ended: Ended,
    /// The exit code, if the command ended by itself.
    exit_code: Option<i32>,
    /// Number of lines at the start that are not kept.
    n_lines_before: u32,
    text: String,
}

/// The reason why a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Ended {
    Exited,
    Signal,
    TooLong,
    Interrupted,
}

/// The fields of the answer other than its rows.
#[derive(Debug, Serialize)]
pub(crate) struct Facts {
    command: Vec<String>,
    ended: Ended,
    exit_code: Option<i32>,
    ran_ms: u64,
    /// Number of lines of the output.
    total: usize,
    /// Number of lines at the start of the output that are not kept.
    not_kept: usize,
}

/// A line of the output, or a configured command.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum RunRow {
    Line { line: usize, text: Option<String> },
    Configured { name: &'static str, command: Vec<String> },
}

impl Row for RunRow {
    const IS_QUOTED: bool = true;

    fn render(&self, out: &mut dyn Sink) {
        match self {
            Self::Line { text, .. } => out.whole_line(text.as_deref().unwrap_or_default()),
            Self::Configured { name, command } => {
                out.span(Style::Name, name);
                out.whole_line(&format!(": {}", quoted(command)));
            }
        }
    }

    fn bodies(&mut self) -> Vec<&mut Option<String>> {
        match self {
            Self::Line { text, .. } => vec![text],
            Self::Configured { .. } => Vec::new(),
        }
    }
}

impl Op for Run {
    type Facts = Option<Facts>;
    type Row = RunRow;
    const WHEN_TOO_SLOW: &'static str = "lines shows what it printed until it was stopped";

    fn run(&self, ask: &Ask<'_>) -> Result<PageOf<Self>> {
        if ask.common.reference != "WORKTREE" {
            return Err(OpError::new("commands run in the worktree only", "omit the revision"));
        }
        if !ask.session.is_own {
            return Err(OpError::new(
                "no commands are run in this repository",
                "run works in the repository in which the server was started",
            ));
        }
        let Some(name) = self.name else {
            return match self.lines {
                Some(_) => Err(OpError::new("lines of which output?", "name the command too")),
                None => configured(ask),
            };
        };
        if self.lines.is_some() || ask.common.cursor.is_some() {
            let kept = kept(ask, name)?;
            return self.page(ask, &kept);
        }
        let command = command(ask, name).ok_or_else(|| not_configured(name))?;
        let kept = execute(ask, command)?;
        let stored = store(ask, name, &kept);
        if kept.ended == Ended::Interrupted {
            let state = format!(
                "codescout run {} --lines 1- shows what it printed until then",
                name.text()
            );
            return Err(OpError::interrupted_with(&state));
        }
        let mut page = self.page(ask, &kept)?;
        if let Err(error) = stored {
            page.notes.push(format!("the output is not kept: {error:#}"));
        }
        Ok(page)
    }
}

impl Run {
    /// Returns the requested lines of an output, or its last ones.
    fn page(&self, ask: &Ask<'_>, kept: &Kept) -> Result<PageOf<Run>> {
        let lines: Vec<&str> = kept.text.lines().collect();
        let not_kept = kept.n_lines_before as usize;
        let total = not_kept.saturating_add(lines.len());
        let range = self.lines.as_deref().map(wanted).transpose()?;
        let limit = ask.limit(range.map_or(DEFAULT_LINES, |_| usize::MAX));
        let (first, last) = range.unwrap_or((total.saturating_sub(limit), total));
        let state = (kept.began_ms, kept.ran_ms);
        let start = match ask.n_before(state)? {
            0 => first.max(not_kept),
            n_before => n_before,
        };
        let end = last.min(total);
        let shown = lines.iter().zip(not_kept..).take(end - not_kept.min(last));
        let rows: Vec<RunRow> = shown
            .filter(|(_, number)| *number >= start)
            .map(|(text, number)| RunRow::Line {
                line: number + 1,
                text: Some((*text).to_owned()),
            })
            .collect();
        let facts = Facts {
            command: kept.command.clone(),
            ended: kept.ended,
            exit_code: kept.exit_code,
            ran_ms: kept.ran_ms,
            total,
            not_kept,
        };
        let paging = Paging::numbered(ask.key(state), start, rows.len(), limit);
        let text = facts.to_text(start);
        let mut page = Page::new(beside(ask), Some(facts), rows, paging);
        page.head = Recorded::of(|out| out.line(&text));
        if range.is_some() && first >= total {
            page.notes
                .push(format!("line {} is past the end: there are {total} lines", first + 1));
        }
        page.n_selected = Some(range.map_or(total, |_| end.saturating_sub(first.max(not_kept))));
        page.is_empty = kept.exit_code != Some(0);
        page.is_unfinished = kept.exit_code.is_none();
        Ok(page)
    }
}

impl Facts {
    /// Describes the end of the command, and which lines at the start of the output are not shown.
    fn to_text(&self, n_before: usize) -> String {
        let ended = match (self.ended, self.exit_code) {
            (Ended::Exited, Some(0)) => "succeeded".to_owned(),
            (Ended::Exited, code) => format!("failed with exit code {}", code.unwrap_or_default()),
            (Ended::Signal, _) => "was ended by a signal".to_owned(),
            (Ended::TooLong, _) => "was stopped".to_owned(),
            (Ended::Interrupted, _) => "was interrupted".to_owned(),
        };
        let seconds = Duration::from_millis(self.ran_ms).as_secs_f64();
        let mut text = format!("{} {ended} after {seconds:.1} s", quoted(&self.command));
        if self.ended == Ended::TooLong {
            text.push_str(", the limit run.timeout_s");
        }
        if n_before > self.not_kept {
            text.push_str(&format!("; lines {} to {n_before} are not shown", self.not_kept + 1));
        }
        if self.not_kept > 0 {
            text.push_str(&format!("; the first {} lines were not kept", self.not_kept));
        }
        text
    }
}

/// Returns a command as the settings and a shell would read it.
fn quoted(command: &[String]) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_+=./,:@%".contains(c);
    let quoted = |word: &String| match word {
        word if !word.is_empty() && word.chars().all(is_plain) => word.clone(),
        word => format!("'{}'", word.replace('\'', "'\"'\"'")),
    };
    command.iter().map(quoted).collect::<Vec<_>>().join(" ")
}

/// Returns a range of lines: the number of lines before it, and its end.
fn wanted(lines: &str) -> Result<(usize, usize)> {
    match parse_lines(lines) {
        Some(PartQuery::Lines(first, last)) => Ok((first as usize - 1, last.map_or(usize::MAX, |last| last as usize))),
        _ => Err(OpError::new(format!("invalid lines {lines:?}"), "use 5, 5-9 or 5-")),
    }
}

/// Returns the command with this name, if it is configured.
fn command<'a>(ask: &Ask<'a>, name: Name) -> Option<&'a CommandLine> {
    let run = &ask.session.workspace.config.run;
    let setting = match name {
        Name::Build => &run.build,
        Name::Test => &run.test,
        Name::Lint => &run.lint,
        Name::Format => &run.format,
    };
    setting.value.as_ref()
}

fn configured(ask: &Ask<'_>) -> Result<PageOf<Run>> {
    let row = |name: Name| {
        Some(RunRow::Configured {
            name: name.text(),
            command: command(ask, name)?.words().to_vec(),
        })
    };
    let rows: Vec<RunRow> = Name::ALL.into_iter().filter_map(row).collect();
    let paging = Paging::numbered(None, 0, rows.len(), usize::MAX);
    let mut page = Page::new(beside(ask), None, rows, paging);
    if page.is_empty {
        page.notes.push("no commands are configured".to_owned());
        page.hint = Some(how_to_configure(Name::Test));
    }
    Ok(page)
}

fn not_configured(name: Name) -> OpError {
    OpError::new(
        format!("no command {} is configured", name.text()),
        how_to_configure(name),
    )
}

fn how_to_configure(name: Name) -> String {
    let name = name.text();
    format!(
        "the user can configure one: codescout config set run.{name} 'PROGRAM ARGUMENTS' (--user for all repositories)"
    )
}

fn execute(ask: &Ask<'_>, command: &CommandLine) -> Result<Kept> {
    let workspace = &ask.session.workspace;
    let timeout = *workspace.config.run.timeout_s.value;
    let began = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let ran = ask
        .call
        .pause(|| workspace.run_command(command.words(), timeout, ask.call.ctx.interrupt))?;
    ask.session.files_changed();
    let Ran { ended, printed, took } = ran;
    let (ended, exit_code) = match ended {
        Ok(()) => (Ended::Exited, Some(0)),
        Err(LimitError::Failed(status)) if status.signal().is_some() => (Ended::Signal, None),
        Err(LimitError::Failed(status)) => (Ended::Exited, status.code()),
        Err(LimitError::TooLong(_)) => (Ended::TooLong, None),
        Err(LimitError::Interrupted) => (Ended::Interrupted, None),
        Err(error @ (LimitError::NotRun(_) | LimitError::TooMuchMemory(_))) => {
            return Err(OpError::failed(format!("{}: {error}", command.words()[0])));
        }
    };
    Ok(Kept {
        command: command.words().to_vec(),
        began_ms: began.as_millis() as u64,
        ran_ms: took.as_millis() as u64,
        ended,
        exit_code,
        n_lines_before: printed.n_lines_before.try_into().unwrap_or(u32::MAX),
        text: printed.text,
    })
}

fn store(ask: &Ask<'_>, name: Name, kept: &Kept) -> Result<()> {
    let sidecar = ask.session.workspace.storage.open_or_create(ask.call.ctx.interrupt)?;
    Ok(sidecar.write_log(&name.file(), &serde_json::to_vec(kept)?)?)
}

/// Returns the last output of a command.
fn kept(ask: &Ask<'_>, name: Name) -> Result<Kept> {
    let sidecar = ask.session.workspace.storage.open()?;
    let read = sidecar.map(|sidecar| sidecar.read_log(&name.file(), MAX_KEPT_BYTES));
    let bytes = match read {
        Some(Err(error)) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
        Some(Ok(bytes)) => bytes,
        _ => {
            return Err(OpError::new(
                format!("no output of {} is kept", name.text()),
                Hint::each(
                    format!("codescout run {} runs it", name.text()),
                    "run it without lines and cursor",
                ),
            ));
        }
    };
    serde_json::from_slice(&bytes).with_context(|| format!("the kept output of {} is damaged", name.text()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shown_command_keeps_its_words_apart() {
        let words = ["make", "A=x y", "", "it's", "*.rs", "-k"].map(str::to_owned);
        assert_eq!(quoted(&words), r#"make 'A=x y' '' 'it'"'"'s' '*.rs' -k"#);
    }
}
