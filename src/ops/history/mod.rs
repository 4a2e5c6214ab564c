//! `history`: the commits that changed a file, a directory, lines or a definition.
//!
//! One file per question: `log.rs` and `definition.rs` list commits, `last_seen.rs`, `deleted.rs` and `cochange.rs`
//! answer the others. `picture.rs` draws the commits of one target.

mod answer;
mod cochange;
mod definition;
mod deleted;
mod last_seen;
pub(super) mod latest;
mod log;
mod picture;
mod question;
mod rows;

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::ask::{Ask, Detail, path_text};
use super::grouped::{Grouped, GroupedFacts, Part, answer_each};
use super::op::{Op, Page, PageOf, Paging, Row};
use super::record::{Past, log_filter};
use super::search::{Search, SearchRow};
use super::sink::Sink;
use super::target::{Target, Targets};
use crate::model::{RepoPath, without_placeholders};
use crate::query::MAX_MEANT;
use crate::session::{OpError, Result};
use answer::{Answer, Facts};
use cochange::CochangeOut;
use question::{HistoryOp, Question, Shown};

pub(crate) use definition::unread_changes;
pub(crate) use picture::life_picture;
pub(crate) use rows::EntryOut;

/// Time that a call waits for commits to be recorded.
const PATIENCE: Duration = Duration::from_secs(6);
/// Default maximum number of results.
const LIMIT: usize = 50;

/// The request.
#[derive(Clone, Debug, Default, Serialize, Deserialize, clap::Args, schemars::JsonSchema)]
#[serde(default)]
#[command(after_help = "Examples:
  codescout history src/parser.rs
  codescout history Parser::parse                a definition, across edits, renames and moves
  codescout history src/parser.rs#Parser.parse --diff
  codescout history src/parser.rs:40-60
  codescout history src --since 2w --author ada
  codescout history src/old.rs --introduced      a file that is no longer there
  codescout history src/parser.rs --cochange --json
  codescout history --deleted src
  codescout history --deleted \"how sessions were stored on disk\"")]
pub(crate) struct History {
    /// File or directory, path:LINE, path:START-END, path#NAME of a definition, or a name;
    /// deleted ones too
    #[arg(required_unless_present = "deleted", value_parser = path_text())]
    #[schemars(description = "name, path#name, path or path:5-9, also deleted ones")]
    target: Option<String>,
    #[command(flatten)]
    #[schemars(description = "")]
    op: HistoryOp,
    /// Show commits since this date: 2024-02-29, 2024-02-29T13:05Z, or an age such as 12h, 30d, 2w, 6m, 1y
    #[arg(long, value_name = "DATE")]
    #[schemars(description = "2024-02-29 or 30d")]
    since: Option<String>,
    /// Show commits until this date
    #[arg(long, value_name = "DATE")]
    #[schemars(description = "")]
    until: Option<String>,
    /// Show commits whose author (name or address, after mailmap) matches this regular expression, ignoring case
    #[arg(long, value_name = "REGEX")]
    #[schemars(description = "regex")]
    author: Option<String>,
    /// Omit commits that changed only whitespace or comments of the definition
    #[arg(long)]
    #[schemars(description = "")]
    no_formatting: bool,
    /// Show the change that each commit made
    #[arg(long)]
    #[serde(skip)]
    diff: bool,
    /// Format of the output; svg draws all commits of one definition or file, across its names
    #[arg(long, value_enum, default_value_t)]
    #[serde(skip)]
    format: Format,
}

/// The format of the output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// Lines of text
    #[default]
    Text,
    /// SVG picture
    Svg,
}

/// The fields of the answer other than its rows.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum HistoryFacts {
    Log(Facts),
    Code(<Search as Op>::Facts),
}

/// A result.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum HistoryRow {
    Commit(Box<EntryOut>),
    File(CochangeOut),
    /// Deleted code that matches a description
    Code(Box<SearchRow>),
}

impl Row for HistoryRow {
    fn render(&self, out: &mut dyn Sink) {
        match self {
            Self::Code(row) => row.render(out),
            Self::Commit(entry) => entry.render(out),
            Self::File(file) => file.render(out),
        }
    }

    fn bodies(&mut self) -> Vec<&mut Option<String>> {
        match self {
            Self::Commit(entry) => {
                let of_symbol = entry.symbol.iter_mut().map(|symbol| &mut symbol.diff);
                of_symbol
                    .chain(entry.changes.iter_mut().map(|change| &mut change.diff))
                    .collect()
            }
            Self::Code(row) => row.bodies(),
            Self::File(_) => Vec::new(),
        }
    }
}

impl Op for History {
    type Facts = GroupedFacts<HistoryFacts>;
    type Row = Grouped<HistoryRow>;
    const WHEN_TOO_SLOW: &'static str =
        "index history=true records commits and traces definitions once; or narrow it down with since";

    fn run(&self, ask: &Ask<'_>) -> Result<PageOf<Self>> {
        if self.op != HistoryOp::Deleted && self.target.as_deref().is_none_or(str::is_empty) {
            return Err(OpError::new(
                "no target given",
                "give a path, path:lines, path#name or the name of a definition; . is the whole repository",
            )
            .with_retry(json!({"tool": "history", "arguments": {"target": "."}})));
        }
        let linked = |target| Self {
            target: Some(target),
            ..self.clone()
        };
        if let Some(page) = ask.in_linked(self.target.as_deref().unwrap_or_default(), linked)? {
            return Ok(page);
        }
        let mut page = self.answered(ask)?;
        if self.format == Format::Svg && !page.rows.is_empty() {
            picture::draw(&mut page)?;
        }
        Ok(page)
    }
}

impl History {
    fn answered(&self, ask: &Ask<'_>) -> Result<PageOf<Self>> {
        let past = Past::of(ask, PATIENCE)?;
        if let Some(description) = self.description(&past) {
            return Ok(self.deleted_code(ask, description)?.grouped());
        }
        let mut part = Part {
            skip: ask.n_before(past.state())?,
            limit: ask.limit(if self.format == Format::Svg { usize::MAX } else { LIMIT }),
        };
        let key = (self.op != HistoryOp::LastSeen).then(|| ask.key(past.state()));
        past.with_targets(|targets| {
            let target = self.target(targets)?;
            let candidates = match target {
                Target::Many(candidates) if candidates.len() <= MAX_MEANT => candidates,
                target => {
                    let page = self.page(ask, &past, self.answer(targets, target, self.part(ask, part))?, false)?;
                    return Ok(page.grouped());
                }
            };
            let ids: Vec<String> = candidates.iter().map(|candidate| candidate.id.clone()).collect();
            let many = self.answer(targets, Target::Many(candidates.clone()), self.part(ask, part))?;
            let facts = |total| HistoryFacts::Log(Facts { total, ..many.facts });
            if self.op == HistoryOp::LastSeen {
                part = Part::ALL;
            }
            answer_each(&ids, part, key, facts, |at, part| {
                let target = Target::Symbol(candidates[at].key.clone());
                self.page(ask, &past, self.answer(targets, target, self.part(ask, part))?, true)
            })
        })
    }

    /// Searches deleted code by its description.
    fn deleted_code(&self, ask: &Ask<'_>, description: &str) -> Result<Page<HistoryFacts, HistoryRow>> {
        if self.since.is_some() || self.until.is_some() || self.author.is_some() {
            return Err(OpError::new(
                "since, until and author cannot be used with a description of deleted code",
                "omit them, or use a directory as target",
            ));
        }
        let page = Search::for_deleted(description).run(&ask.limited(ask.limit(LIMIT)))?;
        Ok(page.map(HistoryFacts::Code, |row| HistoryRow::Code(Box::new(row))))
    }

    /// Returns the target if it is a description of deleted code and not a name.
    fn description(&self, past: &Past<'_>) -> Option<&str> {
        let target = self.target.as_deref().filter(|_| self.op == HistoryOp::Deleted)?;
        let is_path = || !past.opened.history.paths_from(target.as_bytes()).is_empty();
        (target.trim().contains(char::is_whitespace) && !is_path()).then_some(target)
    }

    fn target(&self, targets: &Targets<'_>) -> Result<Target> {
        let typed = without_placeholders(self.target.as_deref().unwrap_or_default());
        let typed = OsStr::from_bytes(&typed);
        match self.op {
            HistoryOp::Deleted => targets.find_gone(typed),
            _ => targets.find(typed),
        }
    }

    fn part(&self, ask: &Ask<'_>, part: Part) -> Shown {
        Shown {
            skip: part.skip,
            limit: match self.op {
                HistoryOp::LastSeen => 1,
                _ => part.limit,
            },
            has_diff: self.diff || ask.common.detail == Detail::Full,
        }
    }

    fn answer(&self, targets: &Targets<'_>, target: Target, part: Shown) -> Result<Answer> {
        let question = Question {
            targets,
            op: self.op,
            no_formatting: self.no_formatting,
            part,
            filter: log_filter(self.since.as_deref(), self.until.as_deref(), self.author.as_deref())?,
            path: RepoPath::from(""),
        };
        question.answer(target)
    }

    /// Returns a page of an answer. `is_group` is true if the id of the definition is above it.
    fn page(
        &self,
        ask: &Ask<'_>,
        past: &Past<'_>,
        mut answer: Answer,
        is_group: bool,
    ) -> Result<Page<HistoryFacts, HistoryRow>> {
        answer.incomplete.extend(past.gap()?);
        if ask.common.detail == Detail::Ids {
            answer.rows.iter_mut().for_each(EntryOut::without_changes);
        }
        let Shown { skip, limit, .. } = answer.part;
        let key = (self.op != HistoryOp::LastSeen).then(|| ask.key(past.state()));
        let paging = Paging::numbered(key, skip, answer.facts.total.saturating_sub(skip), limit);
        let mut page = Page::new(past.provenance(answer.incomplete.clone()), (), Vec::new(), paging);
        page.n_selected = Some(answer.facts.total);
        answer.explain(ask, self.target.as_deref().unwrap_or_default(), is_group, &mut page);
        let commits = answer.rows.into_iter().map(Box::new).map(HistoryRow::Commit);
        page.rows = commits.chain(answer.files.into_iter().map(HistoryRow::File)).collect();
        Ok(page.map(|()| HistoryFacts::Log(answer.facts), |row| row))
    }
}
