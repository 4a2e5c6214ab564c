//! `history`: the commits that changed a file, a directory, lines or a definition.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::{ArgMatches, Args, FromArgMatches};
use regex::RegexBuilder;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::ask::{Ask, Common, Detail, path_text};
use super::blame::{day, render_candidates};
use super::grouped::{Grouped, Part, answer_each};
use super::op::{Op, Page, Paging, Row};
use super::record::Past;
use super::search::{Search, SearchRow};
use super::sink::{Recorded, Sink, Style};
use super::symbol_history::{SymbolChangeOut, SymbolQuestion};
use super::target::{CandidateTarget, Target, Targets};
use crate::artifact::Extractor;
use crate::extract::Options;
use crate::git::{WorkTreeReader, unified_diff};
use crate::history::{
    CommitHead, Entry, FileChange, FileShapes, SymbolChange, SymbolEvents, SymbolKey, SymbolVersion, Who,
};
use crate::model::count::count;
use crate::model::{RepoPath, without_placeholders};
use crate::query::{
    Cochange, DeletedSymbol, FileChangeKind, FileLogEntry, Gaps, LogFilter, MAX_MEANT, TargetError, cochange,
    deleted_files, file_log, folder_log, kind_name, parse_moment, patch_of, timestamp,
};
use crate::session::{Context as _, OpError, OpenedHistory, Result, Uncommitted, Visibility, Workspace};

/// Time that a call waits for commits to be recorded.
const PATIENCE: Duration = Duration::from_secs(6);
/// Default maximum number of results.
const LIMIT: usize = 50;
/// Number of digits of a commit id in text output.
const ID_DIGITS: usize = 10;
/// Maximum size of a compiled author pattern in bytes.
const MAX_AUTHOR_PROGRAM_BYTES: usize = 1 << 20;

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
}

/// What is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum HistoryOp {
    /// The commits that changed the target
    #[default]
    Log,
    /// The commit that introduced it
    Introduced,
    /// The last commit that has it, and the one that deleted it
    LastSeen,
    /// Deleted files or definitions
    Deleted,
    /// Files that change in the same commits
    Cochange,
}

/// The flags that select a [`HistoryOp`] on the command line.
#[derive(clap::Args)]
#[group(multiple = false)]
struct OpFlags {
    /// Show only the commit that introduced it
    #[arg(long)]
    introduced: bool,
    /// Show only the last commit that has it and the commit that deleted it
    #[arg(long)]
    last_seen: bool,
    /// List deleted files under TARGET, deleted definitions named TARGET, or deleted code that matches a description
    #[arg(long)]
    deleted: bool,
    /// Show files that changed in the same commits
    #[arg(long)]
    cochange: bool,
}

impl Args for HistoryOp {
    fn augment_args(command: clap::Command) -> clap::Command {
        OpFlags::augment_args(command)
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        OpFlags::augment_args_for_update(command)
    }
}

impl FromArgMatches for HistoryOp {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let flags = OpFlags::from_arg_matches(matches)?;
        let given = [
            (flags.introduced, Self::Introduced),
            (flags.last_seen, Self::LastSeen),
            (flags.deleted, Self::Deleted),
            (flags.cochange, Self::Cochange),
        ];
        Ok(given
            .into_iter()
            .find_map(|(is_given, op)| is_given.then_some(op))
            .unwrap_or_default())
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// The fields of the answer other than its rows.
#[derive(Debug, Serialize)]
struct Facts {
    op: HistoryOp,
    target: TargetOut,
    near: Vec<String>,
    /// True if the revision has the definitions in `near`.
    #[serde(skip)]
    is_near_present: bool,
    candidates: Vec<CandidateOut>,
    total: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_seen: Option<LastSeenOut>,
    /// Number of commits of the target that were searched for other changed files.
    #[serde(skip_serializing_if = "Option::is_none")]
    commits: Option<u32>,
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

/// A page of the history of a target.
struct Answer {
    part: Shown,
    facts: Facts,
    rows: Vec<EntryOut>,
    files: Vec<CochangeOut>,
    /// The reasons why the answer is incomplete.
    incomplete: Vec<String>,
    /// Gaps in the record that concern the answer.
    gaps: Gaps,
}

/// The target.
#[derive(Debug, Serialize)]
struct TargetOut {
    /// One of `file`, `folder`, `symbol`, `lines`, `many` and `unknown`.
    kind: &'static str,
    path: String,
    present: bool,
    /// The name as given, if the definition has another name now.
    #[serde(skip_serializing_if = "Option::is_none")]
    was: Option<String>,
}

/// A name and an address, resolved by the mailmap.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct PersonOut {
    pub(crate) name: String,
    pub(crate) email: String,
}

/// One of several definitions with the same name.
#[derive(Debug, Serialize)]
pub(crate) struct CandidateOut {
    pub(crate) id: String,
    pub(crate) kind: &'static str,
    pub(crate) path: String,
    pub(crate) line: u32,
}

/// A commit, or uncommitted changes.
#[derive(Debug, Serialize)]
pub(crate) struct EntryOut {
    /// The id; null for uncommitted changes.
    commit: Option<String>,
    author: Option<PersonOut>,
    date: Option<String>,
    commit_date: Option<String>,
    subject: Option<String>,
    merge: bool,
    /// Number of moves back: 1 for the file that was at the path before the target was moved there, 2 for the one
    /// before that, and so on.
    #[serde(skip_serializing_if = "Option::is_none")]
    earlier_file: Option<u32>,
    /// The kind that the definition had then, if definitions of that kind have no history of their own. The commit
    /// changed its lines.
    #[serde(skip_serializing_if = "Option::is_none")]
    earlier_kind: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    symbol: Option<SymbolChangeOut>,
    changes: Vec<ChangeOut>,
    /// A line that is shown before the entry; empty if there is none.
    #[serde(skip)]
    pub(crate) heading: Recorded,
}

impl EntryOut {
    /// Returns the commit, date, author and subject on one line.
    pub(crate) fn in_short(&self) -> String {
        let (Some(commit), Some(author)) = (&self.commit, &self.author) else {
            return "not committed".to_owned();
        };
        let day = self.date.as_deref().and_then(|date| date.split('T').next());
        let subject = self.subject.as_deref().unwrap_or_default();
        format!(
            "{} {} {}: {subject}",
            &commit[..commit.len().min(10)],
            day.unwrap_or_default(),
            author.name
        )
    }
}

/// A change to a file.
#[derive(Debug, Serialize)]
struct ChangeOut {
    kind: &'static str,
    path: String,
    from_path: Option<String>,
    similarity: Option<u8>,
    old_blob: Option<String>,
    new_blob: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    diff: Option<String>,
}

/// The last commit that contains the target.
#[derive(Debug, Serialize)]
struct LastSeenOut {
    present: bool,
    commit: Option<String>,
    deleted_by: Option<String>,
}

/// A file that changes in the same commits.
#[derive(Debug, Serialize)]
pub(crate) struct CochangeOut {
    path: String,
    support: u32,
    confidence: f64,
}

/// The latest changes of a definition.
pub(crate) struct LatestChanges {
    /// Total number of changes.
    pub(crate) total: usize,
    /// The latest changes.
    pub(crate) entries: Vec<EntryOut>,
    /// The reasons why the changes are incomplete.
    pub(crate) incomplete: Vec<String>,
}

/// The range of rows to return.
#[derive(Clone, Copy)]
struct Shown {
    skip: usize,
    limit: usize,
    has_diff: bool,
}

impl Op for History {
    type Row = Grouped<HistoryRow>;
    const WHEN_TOO_SLOW: &'static str =
        "index history=true records commits and traces definitions once; or narrow it down with since";

    fn run(&self, ask: &Ask<'_>) -> Result<Page<Grouped<HistoryRow>>> {
        if self.op != HistoryOp::Deleted && self.target.as_deref().is_none_or(str::is_empty) {
            return Err(OpError::new(
                "no target given",
                "give a path, path:lines, path#name or the name of a definition; . is the whole repository",
            )
            .with_retry(json!({"tool": "history", "arguments": {"target": "."}})));
        }
        let past = Past::of(ask, PATIENCE)?;
        if let Some(description) = self.description(&past) {
            return Ok(self.deleted_code(ask, description)?.map(Grouped::from));
        }
        let mut part = Part {
            skip: ask.n_before(past.state())?,
            limit: ask.limit(LIMIT),
        };
        let key = (self.op != HistoryOp::LastSeen).then(|| ask.key(past.state()));
        past.with_targets(|targets| {
            let target = self.target(targets)?;
            let candidates = match target {
                Target::Many(candidates) if candidates.len() <= MAX_MEANT => candidates,
                target => {
                    let page = self.page(ask, &past, self.answer(targets, target, self.part(ask, part))?, false)?;
                    return Ok(page.map(Grouped::from));
                }
            };
            let ids: Vec<String> = candidates.iter().map(|candidate| candidate.id.clone()).collect();
            let many = self.answer(targets, Target::Many(candidates.clone()), self.part(ask, part))?;
            let facts = self.page(ask, &past, many, false)?.facts;
            if self.op == HistoryOp::LastSeen {
                part = Part::ALL;
            }
            answer_each(&ids, part, key, facts, |at, part| {
                let target = Target::Symbol(candidates[at].key.clone());
                self.page(ask, &past, self.answer(targets, target, self.part(ask, part))?, true)
            })
        })
    }
}

impl History {
    /// Returns the target if it is a description of deleted code and not a name.
    fn description(&self, past: &Past<'_>) -> Option<&str> {
        let target = self.target.as_deref().filter(|_| self.op == HistoryOp::Deleted)?;
        let is_path = || !past.opened.history.paths_from(target.as_bytes()).is_empty();
        (target.trim().contains(char::is_whitespace) && !is_path()).then_some(target)
    }

    /// Searches deleted code by its description.
    fn deleted_code(&self, ask: &Ask<'_>, description: &str) -> Result<Page<HistoryRow>> {
        if self.since.is_some() || self.until.is_some() || self.author.is_some() {
            return Err(OpError::new(
                "since, until and author cannot be used with a description of deleted code",
                "omit them, or use a directory as target",
            ));
        }
        let ask = Ask {
            session: ask.session,
            call: ask.call,
            common: Common {
                limit: Some(ask.limit(LIMIT)),
                ..ask.common.clone()
            },
        };
        let page = Search::for_deleted(description).run(&ask)?;
        Ok(page.map(|row| HistoryRow::Code(Box::new(row))))
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
            workspace: targets.workspace,
            opened: targets.opened,
            args: self,
            part,
            filter: log_filter(self.since.as_deref(), self.until.as_deref(), self.author.as_deref())?,
            uncommitted: targets.uncommitted,
            path: RepoPath::from(""),
        };
        question.answer(target)
    }

    /// Returns a page of an answer. `is_group` is true if the id of the definition is above it.
    fn page(&self, ask: &Ask<'_>, past: &Past<'_>, mut answer: Answer, is_group: bool) -> Result<Page<HistoryRow>> {
        answer.incomplete.extend(past.gap()?);
        if ask.common.detail == Detail::Ids {
            answer.rows.iter_mut().for_each(EntryOut::without_changes);
        }
        let Shown { skip, limit, .. } = answer.part;
        let key = (self.op != HistoryOp::LastSeen).then(|| ask.key(past.state()));
        let paging = Paging::numbered(key, skip, answer.facts.total.saturating_sub(skip), limit);
        let mut page =
            Page::new(past.provenance(answer.incomplete.clone()), Vec::new(), paging).with_facts(&answer.facts)?;
        answer.explain(ask, self.target.as_deref().unwrap_or_default(), is_group, &mut page);
        let commits = answer.rows.into_iter().map(Box::new).map(HistoryRow::Commit);
        page.rows = commits.chain(answer.files.into_iter().map(HistoryRow::File)).collect();
        Ok(page)
    }
}

/// Returns the latest `n` changes of a definition.
pub(crate) fn latest_changes(past: &Past<'_>, id: &str, n: usize) -> Result<LatestChanges> {
    let history = History {
        target: Some(id.to_owned()),
        ..History::default()
    };
    let part = Shown {
        skip: 0,
        limit: n,
        has_diff: false,
    };
    let answer = past.with_targets(|targets| history.answer(targets, history.target(targets)?, part))?;
    let mut incomplete = answer.incomplete;
    incomplete.extend(past.gap()?);
    Ok(LatestChanges {
        total: answer.facts.total,
        entries: answer.rows,
        incomplete,
    })
}

/// Converts the definitions that a name may refer to.
pub(crate) fn candidates_out(candidates: &[CandidateTarget]) -> Vec<CandidateOut> {
    let out = |candidate: &CandidateTarget| CandidateOut {
        id: candidate.id.clone(),
        kind: candidate.kind,
        path: candidate.path.clone(),
        line: candidate.line,
    };
    candidates.iter().map(out).collect()
}

impl Answer {
    /// Adds the text before and after the rows.
    fn explain(&self, ask: &Ask<'_>, typed: &str, is_group: bool, page: &mut Page<HistoryRow>) {
        let facts = &self.facts;
        page.is_empty = facts.total == 0 && facts.candidates.is_empty();
        page.head = Recorded::of(|out| {
            render_candidates(&facts.candidates, out);
            facts.render_title(is_group, out);
            if let Some(last) = &facts.last_seen {
                out.line(&last.sentence());
            }
        });
        if let Some(was) = &facts.target.was {
            page.notes.push(format!("{was:?} was renamed to {}", facts.target.path));
        }
        match (facts.op, facts.target.kind) {
            (_, "many") => {
                let ids = facts.candidates.iter().map(|candidate| candidate.id.clone()).collect();
                let error = TargetError::ambiguous(typed, ids, |id| format!("history {id}"));
                page.explain(ask, error.listed());
            }
            (HistoryOp::Deleted, _) if !facts.near.is_empty() => {
                let names = facts.near.join(" or ");
                page.hint = Some(if facts.is_near_present {
                    format!("use its current name: {names}")
                } else {
                    format!("use its last name, which was deleted: history {names}")
                });
            }
            (op, "unknown") if op != HistoryOp::Deleted && facts.total == 0 => {
                page.explain(ask, TargetError::unknown_path(&facts.target.path, &facts.near));
                if let Some(note) = page.notes.last_mut().filter(|_| !self.incomplete.is_empty()) {
                    note.push_str(" in the commits recorded so far");
                }
            }
            _ => {}
        }
        page.notes.extend(self.why_nothing());
    }

    /// Explains an empty answer.
    fn why_nothing(&self) -> Option<String> {
        let Facts { op, target, total, .. } = &self.facts;
        if *total > 0 || target.kind == "many" || target.kind == "unknown" {
            return None;
        }
        Some(match (op, target.kind) {
            (HistoryOp::Deleted, "symbol") => format!("no deleted definition called {:?}", target.path),
            (HistoryOp::Deleted, _) => "no deleted files".to_owned(),
            _ if self.facts.last_seen.is_some() => return None,
            _ if self.facts.commits.is_some_and(|commits| commits > 0) => {
                "no other file changes in the same commits".to_owned()
            }
            _ => "no matching commits".to_owned(),
        })
    }
}

impl Facts {
    /// Writes a line above the results.
    fn render_title(&self, is_group: bool, out: &mut dyn Sink) {
        let TargetOut {
            kind, path, present, ..
        } = &self.target;
        let total = self.total as u32;
        if total == 0 {
            return;
        }
        if self.op == HistoryOp::Deleted {
            return out.line(&match *kind {
                "symbol" => format!("{} called {path}", count(total, "deleted definition")),
                _ => count(total, "deleted file"),
            });
        }
        match (*kind, path.as_str()) {
            _ if is_group => {}
            ("folder", "") => out.plain("repository"),
            ("folder", _) => out.plain("directory "),
            ("symbol", _) => out.plain("definition "),
            _ => out.plain(&format!("{kind} ")),
        }
        if !path.is_empty() && !is_group {
            out.span(Style::Path, path);
        }
        if !present {
            out.plain(if is_group { "deleted, " } else { " (deleted)" });
        }
        out.plain(if is_group { "" } else { ": " });
        out.line(&match self.commits {
            Some(commits) => format!("other files changed in its {}", count(commits, "commit")),
            None => count(total, "commit"),
        });
    }
}

impl LastSeenOut {
    fn sentence(&self) -> String {
        let short = |commit: &Option<String>| {
            let id = commit.as_deref().unwrap_or("-");
            id[..id.len().min(ID_DIGITS)].to_owned()
        };
        match (self.present, &self.commit, &self.deleted_by) {
            (true, commit, _) => format!("present in {}", short(commit)),
            (false, Some(_), None) => format!("last present in {}; its deletion is not committed", short(&self.commit)),
            (false, commit, by) => format!("last present in {}, deleted in {}", short(commit), short(by)),
        }
    }
}

impl Row for HistoryRow {
    fn render(&self, out: &mut dyn Sink) {
        match self {
            Self::Code(row) => row.render(out),
            Self::Commit(entry) => entry.render(out),
            Self::File(file) => {
                out.span(
                    Style::Fact,
                    &format!("{:>6} {:>5.1} % ", file.support, file.confidence * 100.0),
                );
                out.span(Style::Path, &file.path);
                out.end();
            }
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

impl EntryOut {
    /// Writes the entry as text.
    pub(crate) fn render(&self, out: &mut dyn Sink) {
        self.heading.replay(out);
        let commit = self
            .commit
            .as_deref()
            .map_or("----------", |commit| &commit[..ID_DIGITS]);
        let when = self.date.as_deref().map_or("not committed", day);
        out.span(Style::Name, commit);
        out.span(Style::Fact, &format!(" {when}"));
        if let Some(author) = &self.author {
            out.span(Style::Fact, &format!(" {}", author.name));
        }
        if let Some(subject) = &self.subject {
            out.plain(&format!(" {subject}"));
        }
        out.end();
        if let Some(symbol) = &self.symbol {
            symbol.render(out);
        }
        self.changes.iter().for_each(|change| change.render(out));
    }

    /// Removes the details of the changes.
    fn without_changes(&mut self) {
        self.symbol = None;
        self.changes.clear();
    }
}

impl ChangeOut {
    fn render(&self, out: &mut dyn Sink) {
        out.plain(&format!("    {} ", self.kind));
        out.span(Style::Path, &self.path);
        if let Some(from) = &self.from_path {
            out.plain(" from ");
            out.span(Style::Path, from);
        }
        if let Some(percent) = self.similarity.filter(|percent| *percent < 100) {
            out.span(Style::Fact, &format!(" ({percent} % similar)"));
        }
        out.end();
        out.diff(self.diff.as_deref().unwrap_or_default());
    }
}

/// Converts a person.
pub(crate) fn person_out(who: &Who) -> PersonOut {
    PersonOut {
        name: who.name.to_string(),
        email: who.email.to_string(),
    }
}

struct Question<'a> {
    targets: &'a Targets<'a>,
    workspace: &'a Workspace,
    opened: &'a OpenedHistory,
    args: &'a History,
    part: Shown,
    filter: LogFilter,
    uncommitted: &'a [Uncommitted],
    /// A file or directory; empty for the whole repository.
    path: RepoPath,
}

/// Creates a filter from dates as typed and a regular expression for the author.
pub(crate) fn log_filter(since: Option<&str>, until: Option<&str>, author: Option<&str>) -> Result<LogFilter> {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs() as i64);
    let moment = |text: Option<&str>| match text {
        None => Ok(None),
        Some(text) => parse_moment(text, now).map(Some).ok_or_else(|| {
            OpError::new(
                format!("{text:?} is not a date"),
                "write 2024-02-29, 2024-02-29T13:05Z, @seconds, or 12h, 30d, 2w, 6m, 1y",
            )
        }),
    };
    let author = match author {
        None => None,
        Some(pattern) => {
            let built = RegexBuilder::new(pattern)
                .case_insensitive(true)
                .size_limit(MAX_AUTHOR_PROGRAM_BYTES)
                .build();
            Some(built.with_context(|| format!("{pattern:?} is not a regular expression"))?)
        }
    };
    Ok(LogFilter {
        since: moment(since)?,
        until: moment(until)?,
        author,
    })
}

impl Question<'_> {
    fn answer(mut self, target: Target) -> Result<Answer> {
        let mut answer = self.unanswered(&target)?;
        if let Target::File(path) | Target::Folder(path) | Target::Unknown(path, _) = &target {
            answer.facts.target.path = path.to_string();
            self.path = path.clone();
        }
        if self.args.op == HistoryOp::Deleted {
            if matches!(target, Target::Unknown(..)) {
                answer.facts.target.kind = "symbol";
                self.add_deleted_symbols(&mut answer)?;
            } else {
                answer.facts.target.kind = "folder";
                self.add_deleted(&mut answer)?;
            }
        } else {
            self.add_target(&mut answer, target)?;
        }
        answer.incomplete.extend(answer.gaps.sentences());
        Ok(answer)
    }

    /// Returns an answer without results.
    fn unanswered(&self, target: &Target) -> Result<Answer> {
        let mut incomplete = self.opened.notes.clone();
        if matches!(target, Target::Unknown(..)) {
            incomplete.extend(self.workspace.records().unread_files(self.opened.target));
            incomplete.extend(self.targets.untraced());
        }
        Ok(Answer {
            part: self.part,
            facts: Facts {
                op: self.args.op,
                target: TargetOut {
                    kind: "unknown",
                    path: String::new(),
                    present: false,
                    was: None,
                },
                near: Vec::new(),
                is_near_present: false,
                candidates: Vec::new(),
                total: 0,
                last_seen: None,
                commits: None,
            },
            rows: Vec::new(),
            files: Vec::new(),
            incomplete,
            gaps: Gaps::of(&self.opened.history, &self.opened.reached)?,
        })
    }

    fn add_target(&self, answer: &mut Answer, target: Target) -> Result<()> {
        let facts = &mut answer.facts;
        match target {
            Target::Unknown(_, mut near) => {
                near.retain(|near| is_visible_id(self.targets.visibility, near));
                facts.near = near;
                Ok(())
            }
            Target::Many(mut candidates) => {
                candidates.retain(|candidate| self.is_visible(&candidate.key.path));
                facts.target.kind = "many";
                facts.candidates = candidates_out(&candidates);
                Ok(())
            }
            Target::File(_) => {
                facts.target.kind = "file";
                self.add_file(answer)
            }
            Target::Folder(_) => {
                facts.target.kind = "folder";
                let OpenedHistory {
                    history,
                    reached,
                    mailmap,
                    ..
                } = self.opened;
                let log = folder_log(history, reached, &self.path, mailmap)?;
                facts.target.present = log.is_there;
                self.add_log(answer, log.entries, self.uncommitted_changes())
            }
            Target::Lines(path, first, last) => self.add_lines(answer, &path, (first, last)),
            Target::Symbol(key) => self.add_symbol(answer, &key),
            Target::Once(name, key) => {
                facts.target.was = Some(name);
                self.add_symbol(answer, &key)
            }
        }
    }

    fn is_visible(&self, path: &RepoPath) -> bool {
        !self.targets.visibility.hides(path.as_bytes())
    }

    fn is_visible_change(&self, change: &FileChange) -> bool {
        let origin = change.change.origin.as_ref();
        self.is_visible(&change.path) && origin.is_none_or(|origin| self.is_visible(&origin.path))
    }

    fn add_file(&self, answer: &mut Answer) -> Result<()> {
        let own = self.uncommitted_changes();
        let changed = self.uncommitted.iter().find(|change| change.path == self.path);
        let origin = changed.and_then(|change| change.origin.as_ref());
        let committed = origin.unwrap_or(&self.path);
        let OpenedHistory {
            history,
            reached,
            mailmap,
            ..
        } = self.opened;
        let log = match self.opened.tip {
            Some(tip) => file_log(history, tip, reached, committed, mailmap)?,
            None => crate::query::FileLog::default(),
        };
        answer.facts.target.present = match changed {
            Some(change) => change.new.is_some(),
            None => log.is_there || self.targets.committed_entry(committed)?.is_some(),
        };
        self.add_log(answer, log.entries, own)
    }

    /// Adds the history of the definition that contains the lines. If there is none, adds the history of the lines by
    /// git.
    fn add_lines(&self, answer: &mut Answer, path: &RepoPath, (first, last): (u32, u32)) -> Result<()> {
        let file = self.targets.shapes(path)?;
        let n_lines = file.as_ref().map_or(0, |file| {
            file.bytes.split_inclusive(|byte| *byte == b'\n').count() as u32
        });
        if first > n_lines {
            return Err(OpError::new(
                format!(
                    "line {first} is past the end of {:?} ({})",
                    path.to_text(),
                    count(n_lines, "line")
                ),
                "lines are counted from 1",
            ));
        }
        let last = last.min(n_lines);
        if let Some(shape) = file.as_ref().and_then(|file| file.around(first, last)) {
            let key = SymbolKey {
                path: path.clone(),
                name: shape.qualified.clone(),
                nth: shape.nth,
            };
            return self.add_symbol(answer, &key);
        }
        answer.facts.target.kind = "lines";
        answer.facts.target.present = true;
        answer.facts.target.path = format!("{path}:{first}-{last}");
        let Some(commit) = self.opened.target.and_then(|target| target.commit) else {
            return Ok(());
        };
        let history = &self.opened.history;
        let repository = &self.workspace.repository;
        let commits = repository.line_log(commit, path, (first, last), self.targets.ctx.interrupt)?;
        let mut numbers: Vec<u32> = commits.iter().filter_map(|id| history.number(*id)).collect();
        if self.args.op == HistoryOp::Introduced {
            numbers.drain(..numbers.len().saturating_sub(1));
        }
        let heads = history.heads(&numbers)?;
        let mut passing = Vec::new();
        for head in numbers.iter().filter_map(|number| heads.get(number)) {
            let author = self.opened.mailmap.resolve(&head.author);
            if self.filter.passes(head, &author) {
                passing.push((head, author));
            }
        }
        answer.facts.total = passing.len();
        for (head, author) in self.page(&mut answer.rows, &passing) {
            answer.rows.push(head_out(head, author, false));
        }
        Ok(())
    }

    /// Returns the committed changes on this page. They follow all uncommitted changes.
    fn page<'t, T>(&self, not_committed: &mut Vec<EntryOut>, committed: &'t [T]) -> &'t [T] {
        let Shown { skip, limit, .. } = self.part;
        let begin = skip.saturating_sub(not_committed.len()).min(committed.len());
        not_committed.drain(..skip.min(not_committed.len()));
        not_committed.truncate(limit);
        let n_left = limit - not_committed.len();
        &committed[begin..begin.saturating_add(n_left).min(committed.len())]
    }

    /// Adds the history of one definition.
    fn add_symbol(&self, answer: &mut Answer, key: &SymbolKey) -> Result<()> {
        answer.facts.target.kind = "symbol";
        answer.facts.target.path = key.id();
        let symbols = self.symbol_question();
        let own = symbols.uncommitted(key)?;
        let life = symbols.life(own.as_ref().map_or(key, |own| &own.committed))?;
        answer.facts.target.present = match &own {
            Some(own) => own.is_there,
            // A definition may exist although no recorded commit added it.
            None => life.is_there || (life.n_missing + life.n_unread > 0 && self.is_defined(key)?),
        };
        let is_taken = own.as_ref().is_some_and(|own| !own.is_there) && life.is_there;
        if life.changes.is_empty() && life.n_unread == 0 && !answer.facts.target.present && !is_taken {
            answer.facts.target.kind = "unknown";
        }
        if life.n_missing > 0 {
            answer.incomplete.push(format!(
                "{} versions of its file are missing or damaged in git, so commits that changed it may be missing \
                 here; {}",
                life.n_missing,
                self.workspace.records().how_to_get_objects()
            ));
        }
        answer.incomplete.extend(unread_changes(Some(life.n_unread)));
        let history = &self.opened.history;
        let numbers: Vec<u32> = life.changes.iter().map(|change| change.commit).collect();
        answer.gaps.keep_renames(numbers.iter().copied());
        let before = match life.changes.last() {
            Some(first) if life.n_unread == 0 && first.events.added => self.part_before(first)?,
            _ => None,
        };
        let of_part = before.iter().flat_map(|(_, numbers)| numbers);
        let numbers: Vec<u32> = numbers.iter().chain(of_part).copied().collect();
        let heads = history.heads(&numbers)?;
        let last_removal = life.changes.first().filter(|change| change.events.removed);
        let gone = last_removal
            .map(|change| change.commit)
            .filter(|_| !answer.facts.target.present);
        let passing = self.passing(&life.changes, life.n_unread > 0, &heads);
        if self.args.op == HistoryOp::Cochange {
            let commits: Vec<u32> = passing.iter().map(|(change, ..)| change.commit).collect();
            let own = passing.iter().map(|(change, ..)| change.key.path.clone()).collect();
            return self.add_cochange(answer, &commits, &own);
        }
        let is_open =
            self.filter.until.is_none() && self.filter.author.is_none() && self.args.op != HistoryOp::Introduced;
        let own = own.filter(|own| is_open && self.is_visible(&own.committed.path));
        if let Some(change) = own.and_then(|own| own.change) {
            answer.rows.push(EntryOut {
                symbol: Some(change),
                ..not_committed()
            });
        }
        if self.args.op == HistoryOp::LastSeen {
            answer.facts.last_seen = Some(self.symbol_last_seen(answer.facts.target.present, is_taken, gone)?);
        }
        let entry = |(change, head, author)| (Some(change), head, author);
        let mut entries: Vec<(Option<&SymbolChange>, &CommitHead, Who)> = passing.into_iter().map(entry).collect();
        for number in before.iter().flat_map(|(_, numbers)| numbers) {
            let head = &heads[number];
            let author = self.opened.mailmap.resolve(&head.author);
            if self.args.op == HistoryOp::Introduced {
                entries.clear();
            }
            if self.filter.passes(head, &author) {
                entries.push((None, head, author));
            }
        }
        answer.facts.total = entries.len() + answer.rows.len();
        let kind = before.map(|(kind, _)| kind);
        let mut reader = self.workspace.repository.reader();
        let mut is_first = true;
        for (change, head, author) in self.page(&mut answer.rows, &entries) {
            let is_merge = |change: &SymbolChange| history.parents(change.commit).len() > 1;
            let mut row = head_out(head, author, change.is_some_and(is_merge));
            match change {
                Some(change) => row.symbol = Some(symbols.change_out(change, &mut reader)?),
                None => {
                    row.earlier_kind = kind;
                    if let Some(kind) = kind.filter(|_| std::mem::take(&mut is_first)) {
                        row.heading = Recorded::of(|out| out.line(&format!("lines of the {kind} that it was before:")));
                    }
                }
            }
            answer.rows.push(row);
        }
        Ok(())
    }

    /// Returns the kind of the definition before the commit that added it, if it was a part of another definition, and
    /// the commits that changed its lines.
    fn part_before(&self, added: &SymbolChange) -> Result<Option<(&'static str, Vec<u32>)>> {
        let SymbolKey { path, name, .. } = &added.key;
        let history = &self.opened.history;
        let parent = history.parents(added.commit).first().copied().flatten();
        let (Some(parent), Some(entry)) = (parent, self.entry_before(added.commit, path)?) else {
            return Ok(None);
        };
        let Some(bytes) = self.workspace.records().content(path, entry, &mut None)? else {
            return Ok(None);
        };
        let file = FileShapes::of(&mut Extractor::new(Options::default()), path, bytes);
        let Some((kind, range)) = file.part(name) else {
            return Ok(None);
        };
        let repository = &self.workspace.repository;
        let interrupt = self.targets.ctx.interrupt;
        let commits = repository.line_log(history.id(parent)?, path, file.lines_of(range), interrupt)?;
        let numbers = commits.iter().filter_map(|id| history.number(*id)).collect();
        Ok(Some((kind_name(kind), numbers)))
    }

    /// Returns the changes of a definition that match the request.
    fn passing<'l>(
        &self,
        changes: &'l [SymbolChange],
        is_partial: bool,
        heads: &'l BTreeMap<u32, CommitHead>,
    ) -> Vec<(&'l SymbolChange, &'l CommitHead, Who)> {
        let n_skipped = match self.args.op {
            HistoryOp::Introduced if is_partial => changes.len(),
            HistoryOp::Introduced => changes.len().saturating_sub(1),
            _ => 0,
        };
        let mut passing = Vec::new();
        for change in &changes[n_skipped..] {
            let head = &heads[&change.commit];
            let author = self.opened.mailmap.resolve(&head.author);
            let is_wanted = !(self.args.no_formatting && change.events.names() == ["formatting"]);
            let is_visible = self.is_visible(&change.key.path)
                && change.from.as_ref().is_none_or(|from| self.is_visible(&from.path));
            if self.filter.passes(head, &author) && is_wanted && is_visible {
                passing.push((change, head, author));
            }
        }
        passing
    }

    /// Returns the last commit that contains a definition. The commit `gone` deleted it, or its deletion is uncommitted
    /// if `is_taken` is true.
    fn symbol_last_seen(&self, is_present: bool, is_taken: bool, gone: Option<u32>) -> Result<LastSeenOut> {
        let history = &self.opened.history;
        let id = |number: Option<u32>| number.map(|number| history.id(number)).transpose();
        let commit = if is_present || is_taken {
            self.opened.target.and_then(|target| target.commit)
        } else {
            id(gone.and_then(|number| history.parents(number).first().copied().flatten()))?
        };
        Ok(LastSeenOut {
            present: is_present,
            commit: commit.map(|id| id.to_string()),
            deleted_by: id(gone)?.map(|id| id.to_string()),
        })
    }

    /// Returns true if the current version of the file contains the definition.
    fn is_defined(&self, key: &SymbolKey) -> Result<bool> {
        let file = self.targets.shapes(&key.path)?;
        Ok(file.is_some_and(|file| file.find(&key.name, key.nth).is_some()))
    }

    /// Returns the uncommitted changes of the target.
    fn uncommitted_changes(&self) -> Vec<&Uncommitted> {
        let folder = [self.path.as_bytes(), b"/"].concat();
        let is_meant = |change: &&Uncommitted| {
            change.path == self.path || self.path.as_bytes().is_empty() || change.path.as_bytes().starts_with(&folder)
        };
        let is_visible = |change: &&Uncommitted| {
            self.is_visible(&change.path) && change.origin.as_ref().is_none_or(|origin| self.is_visible(origin))
        };
        let is_open = self.filter.until.is_none() && self.filter.author.is_none();
        let meant = self.uncommitted.iter().filter(is_meant).filter(|_| is_open);
        meant.filter(is_visible).collect()
    }

    fn add_log(&self, answer: &mut Answer, mut committed: Vec<FileLogEntry>, own: Vec<&Uncommitted>) -> Result<()> {
        answer.gaps.keep_renames(committed.iter().map(|entry| entry.number));
        if self.args.op == HistoryOp::LastSeen {
            answer.facts.last_seen = Some(self.last_seen(answer.facts.target.present, &committed)?);
        }
        if self.args.op != HistoryOp::Log {
            committed.retain(|entry| entry.n_before == 0);
        }
        if self.args.op == HistoryOp::Introduced {
            committed.drain(..committed.len().saturating_sub(1));
        }
        committed.retain_mut(|entry| {
            let n_changes = entry.changes.len();
            entry.changes.retain(|change| self.is_visible_change(change));
            let is_visible = n_changes == 0 || !entry.changes.is_empty();
            is_visible && self.filter.passes(&entry.head, &entry.author)
        });
        if self.args.op == HistoryOp::Cochange {
            let commits: Vec<u32> = committed.iter().map(|entry| entry.number).collect();
            let of_entries = committed.iter().flat_map(|entry| &entry.changes);
            let mut own: BTreeSet<RepoPath> = of_entries.map(|change| change.path.clone()).collect();
            own.insert(self.path.clone());
            return self.add_cochange(answer, &commits, &own);
        }
        let mut disk = None;
        if !own.is_empty() && self.args.op != HistoryOp::Introduced {
            answer.rows.push(self.uncommitted_out(&own, &mut disk)?);
        }
        answer.facts.total = committed.len() + answer.rows.len();
        let mut reader = self.workspace.repository.reader();
        let mut earlier = None;
        for entry in self.page(&mut answer.rows, &committed) {
            let mut row = entry_out(entry);
            if row.earlier_file.is_some() && row.earlier_file != earlier {
                let path = row.changes.first().map(|change| change.path.clone());
                row.heading = Recorded::of(|out| {
                    out.plain("another file that was ");
                    out.span(Style::Path, &path.unwrap_or_default());
                    out.line(" before:");
                });
            }
            earlier = row.earlier_file;
            if self.part.has_diff {
                for (change, out) in entry.changes.iter().zip(&mut row.changes) {
                    let old = match &change.change.origin {
                        Some(origin) => self.entry_before(change.change.commit, &origin.path)?,
                        None => change.change.old,
                    };
                    out.diff = patch_of(&mut reader, old, change.change.new)?;
                }
            }
            answer.rows.push(row);
        }
        Ok(())
    }

    /// Returns the entry at a path in the parent of a commit.
    fn entry_before(&self, commit: u32, path: &RepoPath) -> Result<Option<Entry>> {
        let changes = self.opened.history.changes_of(path.as_bytes())?;
        let here = changes.iter().find(|change| change.commit == commit);
        Ok(here.and_then(|change| change.old))
    }

    fn last_seen(&self, is_present: bool, committed: &[FileLogEntry]) -> Result<LastSeenOut> {
        let history = &self.opened.history;
        let is_taken = |change: &Uncommitted| change.path == self.path && change.old.is_some() && change.new.is_none();
        if is_present || self.uncommitted.iter().any(is_taken) {
            let commit = self.opened.target.and_then(|target| target.commit);
            return Ok(LastSeenOut {
                present: is_present,
                commit: commit.map(|commit| commit.to_string()),
                deleted_by: None,
            });
        }
        let is_deletion = |entry: &&FileLogEntry| entry.changes.iter().all(|change| change.change.new.is_none());
        let deletion = committed.first().filter(is_deletion);
        let before = deletion.and_then(|entry| history.parents(entry.number).first().copied().flatten());
        Ok(LastSeenOut {
            present: false,
            commit: before
                .map(|number| history.id(number))
                .transpose()?
                .map(|id| id.to_string()),
            deleted_by: deletion.map(|entry| entry.head.id.to_string()),
        })
    }

    /// Adds the files that changed in the same commits.
    fn add_cochange(&self, answer: &mut Answer, commits: &[u32], own: &BTreeSet<RepoPath>) -> Result<()> {
        let (n_commits, mut found) = cochange(&self.opened.history, commits, own)?;
        found.retain(|found| self.is_visible(&found.path));
        answer.facts.commits = Some(n_commits);
        answer.facts.total = found.len();
        let file = |found: Cochange| CochangeOut {
            path: found.path.to_string(),
            support: found.support,
            confidence: (found.confidence * 1e4).round() / 1e4,
        };
        let page = found.into_iter().skip(self.part.skip).take(self.part.limit);
        answer.files = page.map(file).collect();
        Ok(())
    }

    fn add_deleted(&self, answer: &mut Answer) -> Result<()> {
        let OpenedHistory {
            history,
            reached,
            mailmap,
            ..
        } = self.opened;
        let files = self.targets.files()?;
        let folder = match self.path.as_bytes() {
            [] => Vec::new(),
            path => [path, b"/"].concat(),
        };
        let mut deleted = deleted_files(history, reached, &|path| files.contains(path), &folder)?;
        let numbers: Vec<u32> = deleted.iter().map(|change| change.change.commit).collect();
        let heads = history.heads(&numbers)?;
        deleted.retain(|change| {
            let head = heads.get(&change.change.commit);
            let is_wanted = head.is_some_and(|head| self.filter.passes(head, &mailmap.resolve(&head.author)));
            is_wanted && self.is_visible_change(change)
        });
        let mut own = self.uncommitted_changes();
        own.retain(|change| change.old.is_some() && change.new.is_none());
        for change in own {
            answer.rows.push(self.uncommitted_out(&[change], &mut None)?);
        }
        answer.facts.total = deleted.len() + answer.rows.len();
        for change in self.page(&mut answer.rows, &deleted) {
            let head = heads[&change.change.commit].clone();
            answer.rows.push(entry_out(&FileLogEntry {
                number: change.change.commit,
                author: mailmap.resolve(&head.author),
                head,
                is_merge: history.parents(change.change.commit).len() > 1,
                changes: vec![change.clone()],
                n_before: 0,
            }));
        }
        Ok(())
    }

    /// Adds the deleted definitions with the requested name.
    fn add_deleted_symbols(&self, answer: &mut Answer) -> Result<()> {
        let (file, name) = match self.targets.symbol_of_file(&self.path)? {
            Some(key) => (Some(key.path), key.name),
            None => (None, self.path.to_text().into_owned()),
        };
        let mut deleted = self.targets.deleted(&name)?;
        let is_meant =
            |key: &SymbolKey| file.as_ref().is_none_or(|file| key.path == *file) && self.is_visible(&key.path);
        deleted.retain(|gone| is_meant(&gone.key));
        let history = &self.opened.history;
        let numbers: Vec<u32> = deleted.iter().map(|gone| gone.commit).collect();
        let heads = history.heads(&numbers)?;
        deleted.retain(|gone| {
            let head = heads.get(&gone.commit);
            head.is_some_and(|head| self.filter.passes(head, &self.opened.mailmap.resolve(&head.author)))
        });
        let symbols = self.symbol_question();
        if self.filter.until.is_none() && self.filter.author.is_none() {
            for taken in self.targets.taken_away(&name)? {
                if is_meant(&taken.key) {
                    answer.rows.push(EntryOut {
                        symbol: symbols.uncommitted(&taken.key)?.and_then(|own| own.change),
                        ..not_committed()
                    });
                }
            }
        }
        answer.facts.total = deleted.len() + answer.rows.len();
        if answer.facts.total == 0 {
            let mut renamed = self.targets.renamed(&name)?;
            renamed.retain(|now| self.is_visible(&now.key.path));
            let mut present = Vec::new();
            for now in &renamed {
                present.extend(self.is_defined(&now.key)?.then(|| now.id.clone()));
            }
            answer.facts.is_near_present = !present.is_empty();
            answer.facts.near = match present.as_slice() {
                [] => renamed.into_iter().map(|last| last.id).collect(),
                _ => present,
            };
        }
        let mut reader = self.workspace.repository.reader();
        for gone in self.page(&mut answer.rows, &deleted).to_vec() {
            let head = &heads[&gone.commit];
            let author = self.opened.mailmap.resolve(&head.author);
            let mut row = head_out(head, &author, history.parents(gone.commit).len() > 1);
            row.symbol = Some(symbols.change_out(&removal(gone), &mut reader)?);
            answer.rows.push(row);
        }
        Ok(())
    }

    fn symbol_question(&self) -> SymbolQuestion<'_> {
        SymbolQuestion {
            targets: self.targets,
            workspace: self.workspace,
            opened: self.opened,
            has_diff: self.part.has_diff,
        }
    }

    fn uncommitted_out(&self, own: &[&Uncommitted], disk: &mut Option<WorkTreeReader>) -> Result<EntryOut> {
        let mut changes = Vec::with_capacity(own.len());
        for change in own {
            let diff = if self.part.has_diff {
                self.uncommitted_diff(change, disk)?
            } else {
                None
            };
            let kind = match (change.old, change.new) {
                (None, _) if change.origin.is_some() => FileChangeKind::Renamed,
                (None, _) => FileChangeKind::Added,
                (_, None) => FileChangeKind::Deleted,
                (Some(old), Some(new)) if old.oid == new.oid && old.mode != new.mode => FileChangeKind::Mode,
                _ => FileChangeKind::Modified,
            };
            changes.push(ChangeOut {
                kind: kind.name(),
                path: change.path.to_string(),
                from_path: change.origin.as_ref().map(ToString::to_string),
                similarity: change.origin.as_ref().map(|_| 100),
                old_blob: change.old.map(|entry| entry.oid.to_string()),
                new_blob: change.new.map(|entry| entry.oid.to_string()),
                diff,
            });
        }
        Ok(EntryOut {
            changes,
            ..not_committed()
        })
    }

    fn uncommitted_diff(&self, change: &Uncommitted, disk: &mut Option<WorkTreeReader>) -> Result<Option<String>> {
        let mut read = |entry: Option<Entry>| match entry {
            None => Ok(Some(Vec::new())),
            Some(entry) => self.workspace.records().content(&change.path, entry, disk),
        };
        let (Some(old), Some(new)) = (read(change.old)?, read(change.new)?) else {
            return Ok(None);
        };
        let is_text = |bytes: &[u8]| !bytes[..bytes.len().min(8_000)].contains(&0);
        Ok((is_text(&old) && is_text(&new)).then(|| unified_diff(&old, &new, (1, 1))))
    }
}

/// Returns false if an id or path names a hidden file.
fn is_visible_id(visibility: Visibility, id: &str) -> bool {
    let ends = id.match_indices('#').map(|(at, _)| at).chain([id.len()]);
    ends.into_iter().all(|end| !visibility.hides(&id.as_bytes()[..end]))
}

/// Returns a note if a definition's history was read only partly because the time limit was reached.
pub(crate) fn unread_changes(n_changes: Option<usize>) -> Option<String> {
    let n_changes = n_changes.filter(|&n_changes| n_changes > 0)?;
    Some(format!(
        "{n_changes} older changes of the file were not read yet; repeat the call to continue, or run codescout \
         index --history once"
    ))
}

fn removal(gone: DeletedSymbol) -> SymbolChange {
    SymbolChange {
        commit: gone.commit,
        events: SymbolEvents {
            removed: true,
            ..SymbolEvents::default()
        },
        from: None,
        confidence: 1.0,
        old: Some(SymbolVersion {
            oid: gone.version.oid,
            start_line: gone.lines.0,
            end_line: gone.lines.1,
        }),
        new: None,
        key: gone.key,
    }
}

fn not_committed() -> EntryOut {
    EntryOut {
        commit: None,
        author: None,
        date: None,
        commit_date: None,
        subject: None,
        merge: false,
        earlier_file: None,
        earlier_kind: None,
        symbol: None,
        changes: Vec::new(),
        heading: Recorded::default(),
    }
}

fn head_out(head: &CommitHead, author: &Who, is_merge: bool) -> EntryOut {
    EntryOut {
        commit: Some(head.id.to_string()),
        author: Some(person_out(author)),
        date: Some(timestamp(head.author_time, head.author_offset)),
        commit_date: Some(timestamp(head.commit_time, 0)),
        subject: Some(head.subject.clone()),
        merge: is_merge,
        earlier_file: None,
        earlier_kind: None,
        symbol: None,
        changes: Vec::new(),
        heading: Recorded::default(),
    }
}

fn entry_out(entry: &FileLogEntry) -> EntryOut {
    EntryOut {
        changes: entry.changes.iter().map(change_out).collect(),
        earlier_file: Some(entry.n_before).filter(|n_before| *n_before > 0),
        ..head_out(&entry.head, &entry.author, entry.is_merge)
    }
}

fn change_out(change: &FileChange) -> ChangeOut {
    let FileChange { path, change } = change;
    ChangeOut {
        kind: FileChangeKind::of(change).name(),
        path: path.to_string(),
        from_path: change.origin.as_ref().map(|origin| origin.path.to_string()),
        similarity: change.origin.as_ref().map(|origin| origin.similarity),
        old_blob: change.old.map(|entry| entry.oid.to_string()),
        new_blob: change.new.map(|entry| entry.oid.to_string()),
        diff: None,
    }
}
