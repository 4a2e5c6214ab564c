//! `blame`: the last change of a definition or line, or the authors of a file or directory.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::ask::{Ask, path_text};
use super::grouped::{Grouped, Part, answer_each};
use super::history::{CandidateOut, PersonOut, candidates_out, person_out, unread_changes};
use super::op::{Op, Page, Paging, Row};
use super::record::Past;
use super::sink::{Recorded, Sink, Style};
use super::target::{CandidateTarget, Target, Targets};
use crate::git::{Blame as GitBlame, BlameOptions, BlamedCommit, FileMode};
use crate::history::{Boundary, CommitHead, FileShapes, Shape, SymbolChange, SymbolKey, Who};
use crate::model::count::count;
use crate::model::{CommitId, RepoPath, without_placeholders};
use crate::query::{
    BlamedLine, Gaps, MAX_MEANT, Owner, ReadError, SymbolBlame, TargetError, blame_by_symbol, blame_over_changes,
    change_owners, folder_owners, kind_name, line_owners, timestamp,
};
use crate::session::{Context as _, OpError, Result, Uncommitted};

/// Time that a call waits for commits to be recorded if it needs them.
const PATIENCE: Duration = Duration::from_secs(6);
/// Number of digits of a commit id in text output.
const ID_DIGITS: usize = 10;
/// Maximum number of owners of a definition in text output.
const MAX_SHOWN_OWNERS: usize = 3;

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
struct Facts<'a> {
    target: &'a BlameTargetOut,
    by: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    basis: Option<&'static str>,
    candidates: &'a [CandidateOut],
    total: usize,
}

/// A result.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum BlameRow {
    Line(LineOut),
    Symbol(SymbolOut),
    Owner(OwnerOut),
}

/// The answer about a target, one page of it.
struct Answer {
    target: BlameTargetOut,
    by: &'static str,
    /// The method of blaming by definition: `changes` uses the commits that changed each definition; `all_changes` also
    /// uses commits that only moved, renamed or reformatted it; `lines` uses the commits that its lines come from.
    basis: Option<&'static str>,
    notes: Vec<String>,
    candidates: Vec<CandidateOut>,
    rows: Vec<BlameRow>,
    /// The reasons why the answer is incomplete.
    incomplete: Vec<String>,
}

impl Op for Blame {
    type Row = Grouped<BlameRow>;
    const WHEN_TOO_SLOW: &'static str = "ask about a file, a definition or lines instead of a directory";

    fn run(&self, ask: &Ask<'_>) -> Result<Page<Grouped<BlameRow>>> {
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
    fn answer(&self, ask: &Ask<'_>, past: &Past<'_>) -> Result<Option<Page<Grouped<BlameRow>>>> {
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
                    return Ok(Some(page.map(Grouped::from)));
                }
            };
            let many = Answer::about_many(&candidates);
            let ids: Vec<String> = candidates.iter().map(|candidate| candidate.id.clone()).collect();
            if candidates.len() > MAX_MEANT {
                let mut page = many.page(ask, past, part)?;
                let error = TargetError::ambiguous(&self.target, ids, |id| format!("blame {id}"));
                page.explain(ask, error.listed());
                return Ok(Some(page.map(Grouped::from)));
            }
            let facts = many.page(ask, past, part)?.facts;
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
        answer.candidates = candidates_out(candidates);
        answer
    }

    /// Returns a page with a range of the rows.
    fn page(self, ask: &Ask<'_>, past: &Past<'_>, part: Part) -> Result<Page<BlameRow>> {
        let mut provenance = past.provenance([past.opened.notes.clone(), self.incomplete].concat());
        self.notes.into_iter().for_each(|note| provenance.also_note(note));
        let facts = Facts {
            target: &self.target,
            by: self.by,
            basis: self.basis,
            candidates: &self.candidates,
            total: self.rows.len(),
        };
        let rest = facts.total.saturating_sub(part.skip);
        let paging = Paging::numbered(ask.key(past.state()), part.skip, rest, part.limit);
        let mut page = Page::new(provenance, Vec::new(), paging).with_facts(&facts)?;
        page.is_empty = self.rows.is_empty() && self.candidates.is_empty();
        page.head = Recorded::of(|out| {
            render_candidates(&self.candidates, out);
            if let Some(sentence) = basis_sentence(self.basis) {
                render_basis(sentence, out);
            }
        });
        page.rows = part.of(self.rows);
        Ok(page)
    }
}

fn render_basis(sentence: &str, out: &mut dyn Sink) {
    out.span(Style::Fact, sentence);
    out.end();
}

/// Lists the definitions that a name may mean.
pub(crate) fn render_candidates(candidates: &[CandidateOut], out: &mut dyn Sink) {
    for candidate in candidates {
        out.span(Style::Path, &candidate.id);
        out.line(&format!(" {} line {}", candidate.kind, candidate.line));
    }
}

fn basis_sentence(basis: Option<&'static str>) -> Option<&'static str> {
    Some(match basis? {
        "changes" => "the last commit that changed each definition, ignoring pure moves, renames and reformatting",
        "all_changes" => "the last commit that touched each definition, including moves, renames and reformatting",
        _ => "the newest commit among the lines of each definition, as in git blame",
    })
}

/// The target of the request.
#[derive(Debug, Serialize)]
pub(crate) struct BlameTargetOut {
    pub(crate) kind: &'static str,
    pub(crate) path: String,
}

/// A commit to which lines are attributed.
#[derive(Debug, Serialize)]
pub(crate) struct CommitOut {
    pub(crate) commit: String,
    pub(crate) author: PersonOut,
    pub(crate) date: String,
    pub(crate) subject: String,
    pub(crate) boundary: bool,
}

/// A line and its commit.
#[derive(Debug, Serialize)]
pub(crate) struct LineOut {
    pub(crate) line: u32,
    #[serde(flatten)]
    pub(crate) commit: Option<CommitOut>,
    pub(crate) from_path: Option<String>,
    pub(crate) from_line: Option<u32>,
    pub(crate) text: String,
    /// True if the text output includes the subject of the commit.
    #[serde(skip)]
    shows_subject: bool,
}

/// A definition and its authors.
#[derive(Debug, Serialize)]
pub(crate) struct SymbolOut {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) kind: &'static str,
    pub(crate) start_line: u32,
    pub(crate) end_line: u32,
    pub(crate) last: Option<CommitOut>,
    pub(crate) uncommitted_lines: u32,
    pub(crate) commits: u32,
    pub(crate) owners: Vec<OwnerOut>,
}

/// An author and their share.
#[derive(Debug, Serialize)]
pub(crate) struct OwnerOut {
    pub(crate) name: String,
    pub(crate) email: String,
    /// Number of lines of a file, or of changed paths of a directory.
    pub(crate) count: u32,
    pub(crate) commits: u32,
    pub(crate) share: f64,
    pub(crate) last: String,
}

impl Row for BlameRow {
    fn render(&self, out: &mut dyn Sink) {
        match self {
            Self::Line(line) => line.render(out),
            Self::Symbol(symbol) => symbol.render(out),
            Self::Owner(owner) => owner.render(out),
        }
    }
}

impl CommitOut {
    fn render(&self, out: &mut dyn Sink) {
        // As in git, a caret marks a commit at which the recorded history ends.
        let mark = if self.boundary { "^" } else { "" };
        out.span(Style::Name, &format!("{mark}{}", &self.commit[..ID_DIGITS]));
        out.span(Style::Fact, &format!(" {} {}", day(&self.date), self.author.name));
    }
}

impl LineOut {
    fn render(&self, out: &mut dyn Sink) {
        match &self.commit {
            Some(commit) => commit.render(out),
            None => out.span(Style::Fact, "not committed"),
        }
        if let Some(path) = &self.from_path {
            out.plain(" ");
            out.span(Style::Path, path);
        }
        out.line(&format!(" {:>5}: {}", self.line, self.text));
        if let Some(commit) = self.commit.as_ref().filter(|_| self.shows_subject) {
            out.line(&format!("    {}", commit.subject));
        }
    }
}

impl SymbolOut {
    fn render(&self, out: &mut dyn Sink) {
        out.plain(&format!("{} ", self.kind));
        out.span(Style::Name, &self.name);
        out.span(Style::Fact, &format!(" {}-{}", self.start_line, self.end_line));
        out.end();
        out.plain("    ");
        match &self.last {
            Some(last) => {
                last.render(out);
                out.line(&format!(" {}", last.subject));
            }
            None => out.line(&self.not_committed()),
        }
        if self.commits > 0 {
            let owners = self.owners.iter().take(MAX_SHOWN_OWNERS);
            let owners: Vec<String> = owners
                .map(|owner| {
                    format!(
                        "{} {:.0} % (last {})",
                        owner.name,
                        owner.share * 100.0,
                        day(&owner.last)
                    )
                })
                .collect();
            out.line(&format!("    {}; {}", count(self.commits, "commit"), owners.join(", ")));
        }
    }
}

impl OwnerOut {
    pub(crate) fn render(&self, out: &mut dyn Sink) {
        out.plain(&format!("{:>6} {:>5.1} % ", self.count, self.share * 100.0));
        out.span(Style::Name, &format!("{} <{}>", self.name, self.email));
        out.line(&format!(" {}, last {}", count(self.commits, "commit"), day(&self.last)));
    }
}

/// Returns the date of a timestamp.
pub(crate) fn day(timestamp: &str) -> &str {
    &timestamp[..timestamp.len().min(10)]
}

impl SymbolOut {
    /// Returns the text for a definition without committed lines.
    pub(crate) fn not_committed(&self) -> String {
        let verb = if self.uncommitted_lines == 1 { "is" } else { "are" };
        format!("{} {verb} not committed", count(self.uncommitted_lines, "line"))
    }
}

struct Question<'a> {
    targets: &'a Targets<'a>,
    args: &'a Blame,
}

/// A file and the commits of its lines.
struct BlamedFile {
    path: RepoPath,
    file: FileShapes,
    lines: Vec<BlamedLine>,
    blame: GitBlame,
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

    /// Returns true if definitions can be blamed by their recorded changes: all commits are traced, the file has
    /// definitions, and no option requires lines.
    fn knows_changes(&self, path: &RepoPath) -> Result<bool> {
        let (args, targets) = (self.args, self.targets);
        let history = &targets.opened.history;
        let is_plain = !(args.ignore_whitespace || args.moved || args.copied > 0)
            && args.ignore_revs.is_empty()
            && args.ignore_revs_files.is_empty()
            && !targets.workspace.repository.has_ignored_revisions();
        let is_traced = history.n_traced(targets.workspace.records().symbol_recipe()) == history.n_commits();
        let is_committed = !targets.uncommitted.iter().any(|change| change.path == *path);
        let is_meant = matches!(args.by, None | Some(BlameBy::Symbol));
        if !(is_plain && is_traced && is_committed && is_meant && history.n_commits() > 0) {
            return Ok(false);
        }
        // If commits are missing from the record, so are the authors of earlier changes.
        if !Gaps::of(history, &targets.opened.reached)?.is_empty() {
            return Ok(false);
        }
        Ok(targets.shapes(path)?.is_some_and(|file| !file.shapes.is_empty()))
    }

    /// Adds each definition with the commits that changed it.
    fn add_changes(&self, answer: &mut Answer, path: &RepoPath, symbol: Option<&SymbolKey>) -> Result<()> {
        answer.by = "symbol";
        answer.basis = Some(if self.args.all_changes {
            "all_changes"
        } else {
            "changes"
        });
        answer.target.path = symbol.map_or_else(|| path.to_string(), SymbolKey::id);
        let opened = self.targets.opened;
        let (Some(tip), Some(file)) = (opened.tip, self.targets.shapes(path)?) else {
            return Ok(());
        };
        let is_meant = |shape: &&Shape| symbol.is_none_or(|key| shape.qualified == key.name && shape.nth == key.nth);
        let shapes: Vec<&Shape> = file.shapes.iter().filter(is_meant).collect();
        if let Some(key) = symbol.filter(|_| shapes.is_empty()) {
            return Err(no_definition(path, key));
        }
        let keys: Vec<SymbolKey> = shapes.iter().map(|shape| shape.key(path)).collect();
        let mut reader = self.targets.workspace.repository.reader();
        let history = &opened.history;
        let lives = self.targets.lives(&mut reader, |lives| lives.of_all(tip, &keys))?;
        answer
            .incomplete
            .extend(unread_changes(lives.iter().map(|life| life.n_unread).max()));
        let numbers = lives.iter().flat_map(|life| &life.changes).map(|change| change.commit);
        let heads = history.heads(&numbers.collect::<Vec<_>>())?;
        let counts = |change: &&SymbolChange| self.args.all_changes || change.events.is_of_content();
        let rows = shapes.iter().zip(&keys).zip(&lives);
        let rows = rows.map(|((shape, key), life)| {
            let (start_line, end_line) = file.lines_of(shape.range);
            let changes: Vec<&CommitHead> = life
                .changes
                .iter()
                .filter(counts)
                .filter_map(|change| heads.get(&change.commit))
                .collect();
            SymbolOut {
                id: key.id(),
                name: shape.qualified.clone(),
                kind: kind_name(shape.kind),
                start_line,
                end_line,
                last: changes.first().map(|head| self.head_out(head)),
                uncommitted_lines: 0,
                commits: changes.len() as u32,
                owners: change_owners(&changes, &opened.mailmap).iter().map(owner_out).collect(),
            }
        });
        answer.rows = rows.map(BlameRow::Symbol).collect();
        Ok(())
    }

    fn head_out(&self, head: &CommitHead) -> CommitOut {
        CommitOut {
            commit: head.id.to_string(),
            author: person_out(&self.targets.opened.mailmap.resolve(&head.author)),
            date: timestamp(head.author_time, head.author_offset),
            subject: head.subject.clone(),
            boundary: head.boundary != Boundary::None,
        }
    }

    fn add_file(
        &self,
        answer: &mut Answer,
        path: &RepoPath,
        lines: Option<(u32, u32)>,
        symbol: Option<&SymbolKey>,
        unless_asked: BlameBy,
    ) -> Result<()> {
        answer.target.path = symbol.map_or_else(|| path.to_string(), SymbolKey::id);
        let found = self.blamed(path, lines, symbol)?;
        answer.notes.clone_from(&found.blame.notes);
        if found.blame.commits.values().any(|commit| commit.is_boundary) {
            let opened = self.targets.opened;
            let mut gaps = Gaps::of(&opened.history, &opened.reached)?;
            // Git can read commits that are not recorded, but not those that a shallow clone lacks.
            gaps.boundaries.retain(|name, _| *name == Boundary::Shallow.name());
            gaps.keep_renames([]);
            answer.incomplete = gaps.sentences();
        }
        let args = self.args;
        if args.all_changes {
            let why = "commits that only moved, renamed or reformatted a definition are counted only after \
                `codescout index --history`, and not with options for lines";
            answer.notes.push(why.to_owned());
        }
        let is_changed = self.targets.uncommitted.iter().any(|change| change.path == *path);
        if is_changed && (args.ignore_whitespace || args.moved || args.copied > 0) {
            let why = "the file has uncommitted changes: every changed line counts as uncommitted, because \
                whitespace, moves and copies are only detected in commits";
            answer.notes.push(why.to_owned());
        }
        // A file without definitions is blamed by line.
        let unless_asked = if found.file.shapes.is_empty() {
            BlameBy::Line
        } else {
            unless_asked
        };
        match self.args.by.unwrap_or(unless_asked) {
            BlameBy::Line => {
                answer.by = "line";
                answer.rows = lines_out(&found).into_iter().map(BlameRow::Line).collect();
            }
            BlameBy::Owner => {
                answer.by = "owner";
                let owners = line_owners(&found.lines, &found.blame);
                answer.rows = owners.iter().map(owner_out).map(BlameRow::Owner).collect();
            }
            BlameBy::Symbol => {
                answer.by = "symbol";
                answer.basis = Some("lines");
                let lines: std::collections::BTreeSet<u32> = found.lines.iter().map(|(line, _)| *line).collect();
                let of_file = blame_by_symbol(&found.file, &found.lines, &found.blame);
                let is_meant = |found: &&SymbolBlame| match symbol {
                    Some(key) => found.name == key.name && found.nth == key.nth,
                    None => lines.range(found.start_line..=found.end_line).next().is_some(),
                };
                let symbols = of_file.iter().filter(is_meant);
                answer.rows = symbols
                    .map(|symbol| BlameRow::Symbol(symbol_out(path, symbol, &found.blame)))
                    .collect();
            }
        }
        Ok(())
    }

    /// Blames the file at the revision, or only the requested lines.
    fn blamed(&self, path: &RepoPath, lines: Option<(u32, u32)>, symbol: Option<&SymbolKey>) -> Result<BlamedFile> {
        let targets = self.targets;
        let not_there = || {
            OpError::new(
                format!("no file {:?} at {}", path.to_text(), targets.reference),
                format!("see where it went: history {}", path.to_text()),
            )
        };
        let not_here = || {
            OpError::new(
                format!("the content of {:?} is missing or damaged in git", path.to_text()),
                format!(
                    "{}; history {} shows what is recorded",
                    targets.workspace.records().how_to_get_objects(),
                    path.to_text()
                ),
            )
        };
        let is_submodule = || {
            OpError::from(ReadError::Submodule {
                path: path.to_text().into(),
            })
        };
        let changed = targets.uncommitted.iter().find(|change| change.path == *path);
        let file = match (targets.shapes(path)?, changed) {
            (Some(file), _) => file,
            (None, Some(Uncommitted { new: Some(entry), .. })) if entry.mode == FileMode::Submodule => {
                return Err(is_submodule());
            }
            (None, None) => match targets.committed_entry(path)? {
                Some(entry) if entry.mode == FileMode::Submodule => return Err(is_submodule()),
                Some(entry) => return Err(targets.too_large(path, entry)?.unwrap_or_else(not_here)),
                None => return Err(not_there()),
            },
            _ => return Err(not_there()),
        };
        let n_lines = file.bytes.split_inclusive(|byte| *byte == b'\n').count() as u32;
        let wanted = match symbol {
            Some(key) => {
                let shape = file.find(&key.name, key.nth).ok_or_else(|| no_definition(path, key))?;
                Some(file.lines_of(shape.range))
            }
            None => lines,
        };
        if let Some((first, _)) = wanted.filter(|(first, _)| *first > n_lines) {
            return Err(OpError::new(
                format!(
                    "line {first} is past the end of {:?} ({})",
                    path.to_text(),
                    count(n_lines, "line")
                ),
                "lines are counted from 1",
            ));
        }
        let committed_path = changed
            .and_then(|change| change.origin.clone())
            .unwrap_or_else(|| path.clone());
        let commit = targets.opened.target.and_then(|target| target.commit);
        let is_committed = targets.committed_entry(&committed_path)?;
        let (commit, entry) = match (commit, is_committed) {
            (Some(commit), Some(entry)) => (commit, entry),
            _ => {
                let mut all = (1..=n_lines).map(|line| (line, None)).collect();
                let mut blame = GitBlame::default();
                self.credit_merged(path, &file.bytes, &mut all, &mut blame)?;
                return Ok(BlamedFile {
                    path: path.clone(),
                    lines: within(all, wanted),
                    blame,
                    file,
                });
            }
        };
        let mut options = self.options()?;
        // Lines of a changed file can be mapped to the committed file only after all of it was blamed.
        options.lines = wanted
            .filter(|_| changed.is_none())
            .map(|(first, last)| (first, last.min(n_lines)));
        let repository = &targets.workspace.repository;
        let mut blame = repository.blame(commit, &committed_path, &options, targets.ctx.interrupt)?;
        let blamed = match changed {
            None => blame.lines.iter().map(|line| (line.line, Some(line.clone()))).collect(),
            Some(_) => {
                let committed = targets
                    .workspace
                    .records()
                    .content(&committed_path, entry, &mut None)?
                    .unwrap_or_default();
                let mut blamed = blame_over_changes(&blame, &committed, &file.bytes);
                self.credit_merged(path, &file.bytes, &mut blamed, &mut blame)?;
                blamed
            }
        };
        Ok(BlamedFile {
            path: path.clone(),
            lines: within(blamed, wanted),
            blame,
            file,
        })
    }

    /// Attributes uncommitted lines to the parents of an unfinished merge, as git does. A file that is identical in one
    /// parent is attributed to it as a whole. Otherwise each parent gets the lines that no earlier parent has.
    fn credit_merged(
        &self,
        path: &RepoPath,
        now: &[u8],
        lines: &mut Vec<BlamedLine>,
        blame: &mut GitBlame,
    ) -> Result<()> {
        let workspace = self.targets.workspace;
        for head in workspace.repository.merge_heads()? {
            let mut reader = workspace.repository.reader();
            let tree = reader.commit(head)?.tree;
            let found = reader.diff_trees_at(None, tree, &[path])?;
            let Some(entry) = found.first().and_then(|change| change.new) else {
                continue;
            };
            let theirs = workspace
                .records()
                .content(path, entry.into(), &mut None)?
                .unwrap_or_default();
            let options = self.options()?;
            let of_head = workspace
                .repository
                .blame(head, path, &options, self.targets.ctx.interrupt)?;
            let credited = blame_over_changes(&of_head, &theirs, now);
            blame.commits.extend(of_head.commits);
            if theirs == now {
                *lines = credited;
                break;
            }
            for (line, credited) in lines.iter_mut().zip(credited) {
                if line.1.is_none() {
                    *line = credited;
                }
            }
        }
        Ok(())
    }

    fn options(&self) -> Result<BlameOptions> {
        let args = self.args;
        let mut ignored = Vec::new();
        for revision in &args.ignore_revs {
            let resolved = self.targets.workspace.repository.resolve(revision)?;
            ignored.push(resolved.commit.with_context(|| format!("{revision} is not a commit"))?);
        }
        let absolute = |file: &PathBuf| {
            let found = std::path::absolute(file).ok().filter(|path| path.is_file());
            found.ok_or_else(|| {
                OpError::new(
                    format!("there is no file {}", file.display()),
                    "--ignore-revs-file needs a file with one commit id per line",
                )
            })
        };
        Ok(BlameOptions {
            ignores_blanks: args.ignore_whitespace,
            follows_moves: args.moved,
            follows_copies: args.copied,
            ignored,
            ignore_files: args
                .ignore_revs_files
                .iter()
                .map(absolute)
                .collect::<Result<_, OpError>>()?,
            lines: None,
        })
    }
}

fn no_definition(path: &RepoPath, key: &SymbolKey) -> OpError {
    TargetError::unknown_in(&path.to_text(), &key.name, &[]).into()
}

fn within(lines: Vec<BlamedLine>, wanted: Option<(u32, u32)>) -> Vec<BlamedLine> {
    let Some((first, last)) = wanted else { return lines };
    lines
        .into_iter()
        .filter(|(line, _)| (first..=last).contains(line))
        .collect()
}

fn commit_out(id: CommitId, commit: &BlamedCommit) -> CommitOut {
    let author = Who {
        name: commit.author.name.clone(),
        email: commit.author.email.clone(),
    };
    CommitOut {
        commit: id.to_string(),
        author: person_out(&author),
        date: timestamp(commit.author.time, commit.author.utc_offset),
        subject: commit.subject.to_string(),
        boundary: commit.is_boundary,
    }
}

fn lines_out(found: &BlamedFile) -> Vec<LineOut> {
    let texts: Vec<&[u8]> = found.file.bytes.split_inclusive(|byte| *byte == b'\n').collect();
    let line_out = |(number, line): &BlamedLine| {
        let text = texts.get(*number as usize - 1).copied().unwrap_or_default();
        let commit = line
            .as_ref()
            .and_then(|line| Some((line, found.blame.commits.get(&line.commit)?)));
        let is_elsewhere = line.as_ref().filter(|line| line.path != found.path);
        LineOut {
            line: *number,
            commit: commit.map(|(line, commit)| commit_out(line.commit, commit)),
            from_path: is_elsewhere.map(|line| line.path.to_string()),
            from_line: line.as_ref().map(|line| line.original_line),
            text: String::from_utf8_lossy(text.strip_suffix(b"\n").unwrap_or(text)).into_owned(),
            shows_subject: found.lines.len() == 1,
        }
    };
    found.lines.iter().map(line_out).collect()
}

fn symbol_out(path: &RepoPath, symbol: &SymbolBlame, blame: &GitBlame) -> SymbolOut {
    let key = SymbolKey {
        path: path.clone(),
        name: symbol.name.clone(),
        nth: symbol.nth,
    };
    SymbolOut {
        id: key.id(),
        name: symbol.name.clone(),
        kind: kind_name(symbol.kind),
        start_line: symbol.start_line,
        end_line: symbol.end_line,
        last: symbol.last.and_then(|id| Some(commit_out(id, blame.commits.get(&id)?))),
        uncommitted_lines: symbol.n_uncommitted,
        commits: symbol.n_commits,
        owners: symbol.owners.iter().map(owner_out).collect(),
    }
}

pub(crate) fn owner_out(owner: &Owner) -> OwnerOut {
    OwnerOut {
        name: owner.who.name.to_string(),
        email: owner.who.email.to_string(),
        count: owner.n_lines,
        commits: owner.n_commits,
        share: (owner.share * 1e4).round() / 1e4,
        last: timestamp(owner.last, 0),
    }
}
