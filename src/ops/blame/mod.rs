//! `blame`: the last change of a definition or line, or the authors of a file or directory.
//!
//! `changes.rs` blames definitions by the commits that changed them, `lines.rs` everything else by the lines of git.

mod changes;
mod lines;
mod rows;

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::ask::{Ask, path_text};
use super::grouped::{Grouped, GroupedFacts, Part, answer_each};
use super::op::{Op, Page, PageOf, Paging};
use super::record::Past;
use super::sink::{Recorded, Sink, Style};
use super::target::{CandidateTarget, Target, Targets, render_candidates};
use crate::history::SymbolKey;
use crate::model::{RepoPath, without_placeholders};
use crate::query::{Gaps, MAX_MEANT, TargetError, folder_owners};
use crate::session::{OpError, Result};

pub(crate) use rows::{BlameRow, LineOut as BlamedLine, OwnerOut, owner_out};

/// Time that a call waits for commits to be recorded if it needs them.
const PATIENCE: Duration = Duration::from_secs(6);

/// The request.
#[derive(Clone, Debug, Default, Serialize, Deserialize, clap::Args, schemars::JsonSchema)]
#[serde(default)]
#[schemars(extend("required" = ["target"]))]
#[command(after_help = "Examples:
  codescout blame src/parser.rs              by definition
  codescout blame Parser::parse
  codescout blame src/parser.rs:40-60        by line
  codescout blame src/parser.rs --by line -w -C --json
  codescout blame src                        by owner")]
pub(crate) struct Blame {
    /// File or directory, path:LINE, path:START-END, path#NAME of a definition, or a name
    #[arg(value_parser = path_text())]
    #[schemars(description = "path, path:5-9, path#name or name")]
    target: String,
    /// Level of detail; by default symbol for a file, line for lines, owner for a directory
    #[arg(long, value_enum)]
    #[schemars(description = "")]
    by: Option<BlameBy>,
    /// Ignore this commit; repeatable
    #[arg(long = "ignore-rev", value_name = "REV")]
    #[schemars(description = "commits to ignore")]
    ignore_revs: Vec<String>,
    /// Ignore whitespace
    #[arg(short = 'w', long)]
    #[schemars(description = "")]
    ignore_whitespace: bool,
    /// Follow lines moved within a file
    #[arg(short = 'M', long)]
    #[schemars(description = "follow lines within the file")]
    moved: bool,
    /// Follow lines moved or copied from files changed in the same commit; repeat to search more files
    #[arg(short = 'C', long, action = clap::ArgAction::Count)]
    #[schemars(description = "follow lines from other files, 3 the farthest", range(max = 3))]
    copied: u8,
    /// Count commits that only moved, renamed or reformatted a definition
    #[arg(long)]
    #[schemars(description = "also count pure moves, renames and reformatting")]
    all_changes: bool,
    /// Ignore the commits listed in this file, in addition to blame.ignoreRevsFile; repeatable
    #[arg(long = "ignore-revs-file", value_name = "FILE")]
    #[serde(skip)]
    ignore_revs_files: Vec<PathBuf>,
}

/// Level of detail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum BlameBy {
    /// Each definition with its last commit and its owners
    Symbol,
    /// Each line with its commit
    Line,
    /// Each author with their share
    Owner,
}

/// The fields of the answer other than its rows.
#[derive(Debug, Serialize)]
pub(crate) struct Facts {
    target: BlameTargetOut,
    by: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    basis: Option<&'static str>,
    candidates: Vec<CandidateTarget>,
    total: usize,
}

/// The target of the request.
#[derive(Debug, Serialize)]
struct BlameTargetOut {
    kind: &'static str,
    path: String,
}

/// The answer about a target, one page of it.
struct Answer {
    target: BlameTargetOut,
    by: &'static str,
    /// The method of blaming by definition: `changes` uses the commits that changed each definition; `all_changes` also
    /// uses commits that only moved, renamed or reformatted it; `lines` uses the commits that its lines come from.
    basis: Option<&'static str>,
    notes: Vec<String>,
    candidates: Vec<CandidateTarget>,
    rows: Vec<BlameRow>,
    /// The reasons why the answer is incomplete.
    incomplete: Vec<String>,
}

impl Op for Blame {
    type Facts = GroupedFacts<Facts>;
    type Row = Grouped<BlameRow>;
    const WHEN_TOO_SLOW: &'static str = "ask about a file, a definition or lines instead of a directory";

    fn run(&self, ask: &Ask<'_>) -> Result<PageOf<Self>> {
        let linked = |target| Self { target, ..self.clone() };
        if let Some(page) = ask.in_linked(&self.target, linked)? {
            return Ok(page);
        }
        // Git itself blames files. Only directories and deleted files need recorded commits.
        let mut past = Past::of(ask, Duration::ZERO)?;
        let mut answered = self.answer(ask, &past)?;
        if answered.is_none() {
            past = Past::of(ask, PATIENCE)?;
            answered = self.answer(ask, &past)?;
        }
        let Some(page) = answered else {
            let gap = past.gap()?.unwrap_or_default();
            return Err(OpError::new(gap, "try again later, or blame a file, which works now"));
        };
        Ok(page)
    }
}

impl Blame {
    /// Returns the answer, or `None` if commits have to be recorded first.
    fn answer(&self, ask: &Ask<'_>, past: &Past<'_>) -> Result<Option<PageOf<Self>>> {
        past.with_targets(|targets| {
            let typed = without_placeholders(&self.target);
            let target = targets.find(OsStr::from_bytes(&typed))?;
            if past.recording.is_some() && matches!(target, Target::Folder(_) | Target::Unknown(..)) {
                return Ok(None);
            }
            let part = Part {
                skip: ask.n_before(past.state())?,
                limit: ask.limit(usize::MAX),
            };
            let question = Question { targets, args: self };
            let candidates = match target {
                Target::Many(candidates) => candidates,
                target => {
                    let page = question.answer(target)?.page(ask, past, part)?;
                    return Ok(Some(page.grouped()));
                }
            };
            let many = Answer::about_many(&candidates);
            let ids: Vec<String> = candidates.iter().map(|candidate| candidate.id.clone()).collect();
            if candidates.len() > MAX_MEANT {
                let mut page = many.page(ask, past, part)?;
                let error = TargetError::ambiguous(&self.target, ids, |id| format!("blame {id}"));
                page.explain(ask, error.listed());
                return Ok(Some(page.grouped()));
            }
            let many = many.page(ask, past, part)?.facts;
            let facts = |total| Facts { total, ..many };
            let mut basis = Vec::new();
            let mut page = answer_each(&ids, part, ask.key(past.state()), facts, |at, part| {
                let answer = question.answer(Target::Symbol(candidates[at].key.clone()))?;
                let sentence = basis_sentence(answer.basis).filter(|sentence| !basis.contains(sentence));
                basis.extend(sentence);
                let mut page = answer.page(ask, past, part)?;
                page.head = Recorded::default();
                Ok(page)
            })?;
            page.head = Recorded::of(|out| basis.iter().for_each(|sentence| render_basis(sentence, out)));
            Ok(Some(page))
        })
    }
}

impl Answer {
    fn empty() -> Self {
        Self {
            target: BlameTargetOut {
                kind: "unknown",
                path: String::new(),
            },
            by: "line",
            basis: None,
            notes: Vec::new(),
            candidates: Vec::new(),
            rows: Vec::new(),
            incomplete: Vec::new(),
        }
    }

    fn about_many(candidates: &[CandidateTarget]) -> Self {
        let mut answer = Self::empty();
        answer.target.kind = "many";
        answer.candidates = candidates.to_vec();
        answer
    }

    /// Returns a page with a range of the rows.
    fn page(self, ask: &Ask<'_>, past: &Past<'_>, part: Part) -> Result<Page<Facts, BlameRow>> {
        let mut provenance = past.provenance([past.opened.notes.clone(), self.incomplete].concat());
        self.notes.into_iter().for_each(|note| provenance.also_note(note));
        let facts = Facts {
            target: self.target,
            by: self.by,
            basis: self.basis,
            candidates: self.candidates,
            total: self.rows.len(),
        };
        let rest = facts.total.saturating_sub(part.skip);
        let paging = Paging::numbered(ask.key(past.state()), part.skip, rest, part.limit);
        let mut page = Page::new(provenance, facts, Vec::new(), paging);
        let facts = &page.facts;
        page.n_selected = Some(facts.total);
        page.is_empty = self.rows.is_empty() && facts.candidates.is_empty();
        page.head = Recorded::of(|out| {
            render_candidates(&facts.candidates, out);
            if let Some(sentence) = basis_sentence(self.basis) {
                render_basis(sentence, out);
            }
        });
        page.rows = part.of(self.rows);
        Ok(page)
    }
}

struct Question<'a> {
    targets: &'a Targets<'a>,
    args: &'a Blame,
}

impl Question<'_> {
    fn answer(&self, target: Target) -> Result<Answer> {
        let mut answer = Answer::empty();
        match target {
            Target::Unknown(path, near) => return Err(TargetError::unknown_path(&path.to_text(), &near).into()),
            Target::Many(candidates) => return Ok(Answer::about_many(&candidates)),
            Target::Folder(path) => {
                answer.target.kind = "folder";
                answer.target.path = path.to_string();
                answer.by = "owner";
                let opened = self.targets.opened;
                let found = folder_owners(&opened.history, &opened.reached, &path, &opened.mailmap)?;
                answer.rows = found.iter().map(owner_out).map(BlameRow::Owner).collect();
                answer.incomplete = Gaps::of(&opened.history, &opened.reached)?.sentences();
            }
            Target::File(path) if self.knows_changes(&path)? => {
                answer.target.kind = "file";
                self.add_changes(&mut answer, &path, None)?;
            }
            Target::File(path) => {
                answer.target.kind = "file";
                self.add_file(&mut answer, &path, None, None, BlameBy::Symbol)?;
            }
            Target::Lines(path, first, last) => {
                answer.target.kind = "lines";
                self.add_file(&mut answer, &path, Some((first, last)), None, BlameBy::Line)?;
            }
            Target::Symbol(key) | Target::Once(_, key) if self.knows_changes(&key.path)? => {
                answer.target.kind = "symbol";
                let path = key.path.clone();
                self.add_changes(&mut answer, &path, Some(&key))?;
            }
            Target::Symbol(key) | Target::Once(_, key) => {
                answer.target.kind = "symbol";
                let path = key.path.clone();
                self.add_file(&mut answer, &path, None, Some(&key), BlameBy::Symbol)?;
            }
        }
        Ok(answer)
    }
}

fn render_basis(sentence: &str, out: &mut dyn Sink) {
    out.span(Style::Fact, sentence);
    out.end();
}

fn basis_sentence(basis: Option<&'static str>) -> Option<&'static str> {
    Some(match basis? {
        "changes" => "the last commit that changed each definition, ignoring pure moves, renames and reformatting",
        "all_changes" => "the last commit that touched each definition, including moves, renames and reformatting",
        _ => "the newest commit among the lines of each definition, as in git blame",
    })
}

fn no_definition(path: &RepoPath, key: &SymbolKey) -> OpError {
    TargetError::unknown_in(&path.to_text(), &key.name, &[]).into()
}
