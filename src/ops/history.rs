//! What is told of the past: the life of a file, a folder, lines or a definition.

use std::collections::BTreeSet;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use regex::RegexBuilder;
use serde::Serialize;

use super::OpError;
use super::symbol_history::{SymbolChangeOut, SymbolQuestion};
use super::target::{CandidateTarget, Target, Targets};
use crate::git::WorkTreeReader;
use crate::history::{CommitHead, Entry, FileChange, SymbolChange, SymbolEvents, SymbolKey, SymbolVersion, Who};
use crate::model::RepoPath;
use crate::query::{
    DeletedSymbol, FileChangeKind, FileLogEntry, Gaps, LogFilter, cochange, deleted_files, file_log, folder_log,
    parse_moment, patch_of, timestamp, unified,
};
use crate::session::Workspace;
use crate::session::{OpenedHistory, Uncommitted};

/// Files that change together are told up to this number unless another limit is given.
const MAX_COCHANGES: usize = 50;
/// How large a pattern for authors may become.
const MAX_AUTHOR_PROGRAM_BYTES: usize = 1 << 20;

/// What is asked about the past of something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum HistoryOp {
    /// The commits that changed it.
    #[default]
    Log,
    /// The one that brought it in.
    Introduced,
    /// The last that has it, and the one that took it away.
    LastSeen,
    /// What is no longer there below it.
    Deleted,
    /// What changes in the same commits.
    Cochange,
}

/// A question about the past, but for what it is about.
#[derive(Clone, Debug, Default)]
pub(crate) struct HistoryQuestion {
    pub(crate) op: HistoryOp,
    /// Dates as they were typed.
    pub(crate) since: Option<String>,
    pub(crate) until: Option<String>,
    /// A regular expression.
    pub(crate) author: Option<String>,
    /// Whether commits are left out that changed nothing but the formatting of a definition.
    pub(crate) skips_formatting: bool,
    /// Whether it is told what each commit changed.
    pub(crate) has_diff: bool,
    /// How many results are passed over.
    pub(crate) skip: usize,
    /// How many results; 0 for all.
    pub(crate) limit: usize,
}

/// What was asked about, and what became of it.
#[derive(Debug, Serialize)]
pub(crate) struct HistoryBody {
    pub(crate) target: TargetOut,
    pub(crate) near: Vec<String>,
    pub(crate) candidates: Vec<CandidateOut>,
    pub(crate) total: usize,
    pub(crate) results: Vec<EntryOut>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) last_seen: Option<LastSeenOut>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cochange: Option<CochangeOut>,
    /// What makes it partial.
    #[serde(skip)]
    pub(crate) incomplete: Vec<String>,
}

/// What was asked about.
#[derive(Debug, Serialize)]
pub(crate) struct TargetOut {
    /// `file`, `folder`, `symbol`, `lines`, `many`, `unknown`
    pub(crate) kind: &'static str,
    pub(crate) path: String,
    pub(crate) present: bool,
    /// The name that was asked for, where it is one that the definition had before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) was: Option<String>,
}

/// A name and an address, corrected by the mailmap.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct PersonOut {
    pub(crate) name: String,
    pub(crate) email: String,
}

/// One of several definitions that a name may mean.
#[derive(Debug, Serialize)]
pub(crate) struct CandidateOut {
    pub(crate) id: String,
    pub(crate) kind: &'static str,
    pub(crate) path: String,
    pub(crate) line: u32,
}

/// What a name may mean, written out.
pub(crate) fn candidates_out(candidates: &[CandidateTarget]) -> Vec<CandidateOut> {
    let out = |candidate: &CandidateTarget| CandidateOut {
        id: candidate.id.clone(),
        kind: candidate.kind,
        path: candidate.path.clone(),
        line: candidate.line,
    };
    candidates.iter().map(out).collect()
}

/// A commit, or what is not committed.
#[derive(Debug, Serialize)]
pub(crate) struct EntryOut {
    /// Null for what is not committed.
    pub(crate) commit: Option<String>,
    pub(crate) author: Option<PersonOut>,
    pub(crate) date: Option<String>,
    pub(crate) commit_date: Option<String>,
    pub(crate) subject: Option<String>,
    pub(crate) merge: bool,
    /// Of a file that was at the path before the one that was asked about was moved there: 1, of the one before that 2, and so on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) earlier_file: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) symbol: Option<SymbolChangeOut>,
    pub(crate) changes: Vec<ChangeOut>,
}

/// What it did to a file.
#[derive(Debug, Serialize)]
pub(crate) struct ChangeOut {
    pub(crate) kind: &'static str,
    pub(crate) path: String,
    pub(crate) from_path: Option<String>,
    pub(crate) similarity: Option<u8>,
    pub(crate) old_blob: Option<String>,
    pub(crate) new_blob: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) diff: Option<String>,
}

/// Whether it is still there, and else until when.
#[derive(Debug, Serialize)]
pub(crate) struct LastSeenOut {
    pub(crate) present: bool,
    pub(crate) commit: Option<String>,
    pub(crate) deleted_by: Option<String>,
}

impl HistoryBody {
    /// Of a target that nothing is known of.
    pub(crate) fn nowhere(&self) -> String {
        if self.incomplete.is_empty() {
            format!("{:?} was never there", self.target.path)
        } else {
            format!("it is not known whether {:?} was ever there", self.target.path)
        }
    }
}

impl EntryOut {
    /// What is told before an entry of an earlier file at the path, unless the entry before it was of the same.
    pub(crate) fn heading(&self, before: Option<&Self>) -> Option<String> {
        let is_first = before.is_none_or(|before| before.earlier_file != self.earlier_file);
        let path = &self.changes.first().filter(|_| is_first)?.path;
        self.earlier_file
            .map(|_| format!("another file that was {path} before:"))
    }
}

impl LastSeenOut {
    /// In words, ids cut to `n_digits`.
    pub(crate) fn sentence(&self, n_digits: usize) -> String {
        let short = |commit: &Option<String>| commit.as_deref().map_or("-".to_owned(), |id| id[..n_digits].to_owned());
        match (self.present, &self.commit, &self.deleted_by) {
            (true, commit, _) => format!("present in {}", short(commit)),
            (false, Some(_), None) => format!("last present in {}; its deletion is not committed", short(&self.commit)),
            (false, commit, by) => format!("last present in {}, deleted in {}", short(commit), short(by)),
        }
    }
}

/// What changes together with it.
#[derive(Debug, Serialize)]
pub(crate) struct CochangeOut {
    pub(crate) commits: u32,
    pub(crate) files: Vec<CochangeFileOut>,
}

/// One such file.
#[derive(Debug, Serialize)]
pub(crate) struct CochangeFileOut {
    pub(crate) path: String,
    pub(crate) support: u32,
    pub(crate) confidence: f64,
}

/// Somebody, written out.
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
    args: &'a HistoryQuestion,
    filter: LogFilter,
    uncommitted: &'a [Uncommitted],
    /// Of a file or folder; empty for the whole repository.
    path: RepoPath,
}

/// The past of a target.
pub(crate) fn history(targets: &Targets<'_>, target: Target, asked: &HistoryQuestion) -> Result<HistoryBody> {
    let question = Question {
        targets,
        workspace: targets.workspace,
        opened: targets.opened,
        args: asked,
        filter: log_filter(asked.since.as_deref(), asked.until.as_deref(), asked.author.as_deref())?,
        uncommitted: targets.uncommitted,
        path: RepoPath::from(""),
    };
    question.answer(target)
}

/// Commits by date and author, as they were asked for: dates as they were typed, and a regular expression.
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
    fn answer(mut self, target: Target) -> Result<HistoryBody> {
        let mut answer = HistoryBody {
            target: TargetOut {
                kind: "unknown",
                path: String::new(),
                present: false,
                was: None,
            },
            near: Vec::new(),
            candidates: Vec::new(),
            total: 0,
            results: Vec::new(),
            last_seen: None,
            cochange: None,
            incomplete: self.opened.notes.clone(),
        };
        let gaps = Gaps::of(&self.opened.history, &self.opened.reached)?;
        answer.incomplete.extend(gaps.sentences());
        if let Target::File(path) | Target::Folder(path) | Target::Unknown(path, _) = &target {
            answer.target.path = path.to_string();
            self.path = path.clone();
        }
        let is_nowhere = matches!(target, Target::Unknown(..));
        if is_nowhere {
            answer
                .incomplete
                .extend(self.workspace.unread_files(self.opened.target));
            answer.incomplete.extend(self.targets.untraced());
        }
        if self.args.op == HistoryOp::Deleted {
            answer.target.kind = if is_nowhere { "symbol" } else { "folder" };
            if is_nowhere {
                self.add_deleted_symbols(&mut answer)?
            } else {
                self.add_deleted(&mut answer)?
            }
            return Ok(answer);
        }
        match target {
            Target::Unknown(_, near) => answer.near = near,
            Target::Many(candidates) => {
                answer.target.kind = "many";
                answer.candidates = candidates_out(&candidates);
            }
            Target::File(_) => {
                answer.target.kind = "file";
                self.add_file(&mut answer)?;
            }
            Target::Folder(_) => {
                answer.target.kind = "folder";
                let OpenedHistory {
                    history,
                    reached,
                    mailmap,
                    ..
                } = self.opened;
                let log = folder_log(history, reached, &self.path, mailmap)?;
                answer.target.present = log.is_there;
                let own = self.uncommitted_changes();
                self.add_log(&mut answer, log.entries, own)?;
            }
            Target::Lines(path, first, last) => self.add_lines(&mut answer, &path, (first, last))?,
            Target::Symbol(key) => self.add_symbol(&mut answer, &key)?,
            Target::Once(name, key) => {
                answer.target.was = Some(name);
                self.add_symbol(&mut answer, &key)?;
            }
        }
        Ok(answer)
    }

    fn add_file(&self, answer: &mut HistoryBody) -> Result<()> {
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
        answer.target.present = match changed {
            Some(change) => change.new.is_some(),
            None => log.is_there || self.targets.committed_entry(committed)?.is_some(),
        };
        self.add_log(answer, log.entries, own)
    }

    /// The definition around the lines; where there is none, what git says of the lines.
    fn add_lines(&self, answer: &mut HistoryBody, path: &RepoPath, (first, last): (u32, u32)) -> Result<()> {
        let file = self.targets.shapes(path)?;
        let n_lines = file.as_ref().map_or(0, |file| {
            file.bytes.split_inclusive(|byte| *byte == b'\n').count() as u32
        });
        if first > n_lines {
            return Err(OpError::new(
                format!("line {first} is past the end of {:?} ({n_lines} lines)", path.to_text()),
                "lines are counted from 1",
            )
            .into());
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
        answer.target.kind = "lines";
        answer.target.present = true;
        answer.target.path = format!("{path}:{first}-{last}");
        let Some(commit) = self.opened.target.and_then(|target| target.commit) else {
            return Ok(());
        };
        let history = &self.opened.history;
        let repository = &self.workspace.repository;
        let commits = repository.line_log(commit, path, (first, last), self.targets.reading.interrupt)?;
        let mut numbers: Vec<u32> = commits.iter().filter_map(|id| history.number(*id)).collect();
        if self.args.op == HistoryOp::Introduced {
            numbers.drain(..numbers.len().saturating_sub(1));
        }
        let heads = history.heads(&numbers)?;
        for head in numbers.iter().filter_map(|number| heads.get(number)) {
            let author = self.opened.mailmap.resolve(&head.author);
            if self.filter.passes(head, &author) {
                answer.results.push(head_out(head, &author, false));
            }
        }
        answer.total = answer.results.len();
        answer.results.drain(..self.args.skip.min(answer.results.len()));
        answer.results.truncate(self.limit());
        Ok(())
    }

    fn limit(&self) -> usize {
        match (self.args.op, self.args.limit) {
            (HistoryOp::LastSeen, _) => 1,
            (_, 0) => usize::MAX,
            (_, limit) => limit,
        }
    }

    /// The committed changes of this page; what is not committed stands before them all.
    fn page<'t, T>(&self, not_committed: &mut Vec<EntryOut>, committed: &'t [T]) -> &'t [T] {
        let begin = self.args.skip.saturating_sub(not_committed.len()).min(committed.len());
        not_committed.drain(..self.args.skip.min(not_committed.len()));
        let n_left = self.limit().saturating_sub(not_committed.len());
        &committed[begin..begin.saturating_add(n_left).min(committed.len())]
    }

    /// The life of one definition.
    fn add_symbol(&self, answer: &mut HistoryBody, key: &SymbolKey) -> Result<()> {
        answer.target.kind = "symbol";
        answer.target.path = key.id();
        let symbols = self.symbol_question();
        let own = symbols.uncommitted(key)?;
        let life = symbols.life(own.as_ref().map_or(key, |own| &own.committed))?;
        answer.target.present = match &own {
            Some(own) => own.is_there,
            // What no commit is known to have brought can be there all the same.
            None => life.is_there || (life.n_missing + life.n_unread > 0 && self.is_defined(key)?),
        };
        let is_taken = own.as_ref().is_some_and(|own| !own.is_there) && life.is_there;
        if life.changes.is_empty() && life.n_unread == 0 && !answer.target.present && !is_taken {
            answer.target.kind = "unknown";
        }
        if life.n_missing > 0 {
            answer.incomplete.push(format!(
                "{} versions of its file are missing or damaged, and so may be the commits that changed it; {}",
                life.n_missing,
                self.workspace.how_to_get_objects()
            ));
        }
        answer.incomplete.extend(unread_changes(Some(life.n_unread)));
        let history = &self.opened.history;
        let numbers: Vec<u32> = life.changes.iter().map(|change| change.commit).collect();
        let heads = history.heads(&numbers)?;
        let last_removal = life.changes.first().filter(|change| change.events.removed);
        let gone = last_removal
            .map(|change| change.commit)
            .filter(|_| !answer.target.present);
        let n_skipped = match self.args.op {
            HistoryOp::Introduced if life.n_unread > 0 => life.changes.len(),
            HistoryOp::Introduced => life.changes.len().saturating_sub(1),
            _ => 0,
        };
        let mut passing = Vec::new();
        for change in life.changes.into_iter().skip(n_skipped) {
            let head = &heads[&change.commit];
            let author = self.opened.mailmap.resolve(&head.author);
            let is_wanted = !(self.args.skips_formatting && change.events.names() == ["formatting"]);
            if self.filter.passes(head, &author) && is_wanted {
                passing.push((change, head, author));
            }
        }
        if self.args.op == HistoryOp::Cochange {
            let commits: Vec<u32> = passing.iter().map(|(change, ..)| change.commit).collect();
            let own = passing.iter().map(|(change, ..)| change.key.path.clone()).collect();
            answer.cochange = Some(self.cochange_out(&commits, &own)?);
            answer.total = passing.len();
            return Ok(());
        }
        let is_open =
            self.filter.until.is_none() && self.filter.author.is_none() && self.args.op != HistoryOp::Introduced;
        if let Some(change) = own.and_then(|own| own.change).filter(|_| is_open) {
            answer.results.push(EntryOut {
                symbol: Some(change),
                ..not_committed()
            });
        }
        if self.args.op == HistoryOp::LastSeen {
            let before = gone.and_then(|number| history.parents(number).first().copied().flatten());
            let commit = if answer.target.present || is_taken {
                self.opened.target.and_then(|target| target.commit)
            } else {
                before.map(|number| history.id(number)).transpose()?
            };
            answer.last_seen = Some(LastSeenOut {
                present: answer.target.present,
                commit: commit.map(|id| id.to_string()),
                deleted_by: gone.map(|number| heads[&number].id.to_string()),
            });
        }
        answer.total = passing.len() + answer.results.len();
        let mut reader = self.workspace.repository.reader();
        for (change, head, author) in self.page(&mut answer.results, &passing) {
            let mut told = head_out(head, author, history.parents(change.commit).len() > 1);
            told.symbol = Some(symbols.change_out(change, &mut reader)?);
            answer.results.push(told);
        }
        Ok(())
    }

    /// Whether the definition stands in its file as it is now.
    fn is_defined(&self, key: &SymbolKey) -> Result<bool> {
        let file = self.targets.shapes(&key.path)?;
        Ok(file.is_some_and(|file| file.find(&key.name, key.nth).is_some()))
    }

    /// What is not committed of the target.
    fn uncommitted_changes(&self) -> Vec<&Uncommitted> {
        let folder = [self.path.as_bytes(), b"/"].concat();
        let is_meant = |change: &&Uncommitted| {
            change.path == self.path || self.path.as_bytes().is_empty() || change.path.as_bytes().starts_with(&folder)
        };
        let is_open = self.filter.until.is_none() && self.filter.author.is_none();
        self.uncommitted.iter().filter(is_meant).filter(|_| is_open).collect()
    }

    fn add_log(
        &self,
        answer: &mut HistoryBody,
        mut committed: Vec<FileLogEntry>,
        own: Vec<&Uncommitted>,
    ) -> Result<()> {
        if self.args.op == HistoryOp::LastSeen {
            answer.last_seen = Some(self.last_seen(answer.target.present, &committed)?);
        }
        if self.args.op != HistoryOp::Log {
            committed.retain(|entry| entry.n_before == 0);
        }
        if self.args.op == HistoryOp::Introduced {
            committed.drain(..committed.len().saturating_sub(1));
        }
        committed.retain(|entry| self.filter.passes(&entry.head, &entry.author));
        if self.args.op == HistoryOp::Cochange {
            answer.cochange = Some(self.cochange(&committed)?);
            answer.total = committed.len();
            return Ok(());
        }
        let mut disk = None;
        if !own.is_empty() && self.args.op != HistoryOp::Introduced {
            answer.results.push(self.uncommitted_out(&own, &mut disk)?);
        }
        answer.total = committed.len() + answer.results.len();
        let mut reader = self.workspace.repository.reader();
        for entry in self.page(&mut answer.results, &committed) {
            let mut told = entry_out(entry);
            if self.args.has_diff {
                for (change, told) in entry.changes.iter().zip(&mut told.changes) {
                    let old = match &change.change.origin {
                        Some(origin) => self.entry_before(change.change.commit, &origin.path)?,
                        None => change.change.old,
                    };
                    told.diff = patch_of(&mut reader, old, change.change.new)?;
                }
            }
            answer.results.push(told);
        }
        Ok(())
    }

    /// What a commit found at a path.
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

    fn cochange(&self, committed: &[FileLogEntry]) -> Result<CochangeOut> {
        let commits: Vec<u32> = committed.iter().map(|entry| entry.number).collect();
        let of_entries = committed.iter().flat_map(|entry| &entry.changes);
        let mut own: BTreeSet<RepoPath> = of_entries.map(|change| change.path.clone()).collect();
        own.insert(self.path.clone());
        self.cochange_out(&commits, &own)
    }

    fn cochange_out(&self, commits: &[u32], own: &BTreeSet<RepoPath>) -> Result<CochangeOut> {
        let (n_commits, found) = cochange(&self.opened.history, commits, own)?;
        let limit = if self.args.limit == 0 {
            usize::MAX
        } else {
            self.args.limit.min(MAX_COCHANGES)
        };
        let file = |found: crate::query::Cochange| CochangeFileOut {
            path: found.path.to_string(),
            support: found.support,
            confidence: (found.confidence * 1e4).round() / 1e4,
        };
        Ok(CochangeOut {
            commits: n_commits,
            files: found.into_iter().take(limit).map(file).collect(),
        })
    }

    fn add_deleted(&self, answer: &mut HistoryBody) -> Result<()> {
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
            head.is_some_and(|head| self.filter.passes(head, &mailmap.resolve(&head.author)))
        });
        let mut own = self.uncommitted_changes();
        own.retain(|change| change.old.is_some() && change.new.is_none());
        if !own.is_empty() {
            answer.results.push(self.uncommitted_out(&own, &mut None)?);
        }
        answer.total = deleted.len() + answer.results.len();
        for change in self.page(&mut answer.results, &deleted) {
            let head = heads[&change.change.commit].clone();
            answer.results.push(entry_out(&FileLogEntry {
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

    /// The definitions of a name that are no longer there.
    fn add_deleted_symbols(&self, answer: &mut HistoryBody) -> Result<()> {
        let (file, name) = match self.targets.symbol_of_file(&self.path)? {
            Some(key) => (Some(key.path), key.name),
            None => (None, self.path.to_text().into_owned()),
        };
        let mut deleted = self.targets.deleted(&name)?;
        deleted.retain(|gone| file.as_ref().is_none_or(|file| gone.key.path == *file));
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
                if file.as_ref().is_none_or(|file| taken.key.path == *file) {
                    answer.results.push(EntryOut {
                        symbol: symbols.uncommitted(&taken.key)?.and_then(|own| own.change),
                        ..not_committed()
                    });
                }
            }
        }
        answer.total = deleted.len() + answer.results.len();
        if answer.total == 0 {
            answer.near = self.targets.renamed(&name)?.into_iter().map(|now| now.id).collect();
        }
        let mut reader = self.workspace.repository.reader();
        for gone in self.page(&mut answer.results, &deleted).to_vec() {
            let head = &heads[&gone.commit];
            let author = self.opened.mailmap.resolve(&head.author);
            let mut told = head_out(head, &author, history.parents(gone.commit).len() > 1);
            told.symbol = Some(symbols.change_out(&removal(gone), &mut reader)?);
            answer.results.push(told);
        }
        Ok(())
    }

    fn symbol_question(&self) -> SymbolQuestion<'_> {
        SymbolQuestion {
            targets: self.targets,
            workspace: self.workspace,
            opened: self.opened,
            has_diff: self.args.has_diff,
        }
    }

    fn uncommitted_out(&self, own: &[&Uncommitted], disk: &mut Option<WorkTreeReader>) -> Result<EntryOut> {
        let mut changes = Vec::with_capacity(own.len());
        for change in own {
            let diff = if self.args.has_diff {
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
            Some(entry) => self.workspace.content(&change.path, entry, disk),
        };
        let (Some(old), Some(new)) = (read(change.old)?, read(change.new)?) else {
            return Ok(None);
        };
        let is_text = |bytes: &[u8]| !bytes[..bytes.len().min(8_000)].contains(&0);
        Ok((is_text(&old) && is_text(&new)).then(|| unified(&old, &new, (1, 1))))
    }
}

/// Says that the life of a definition ends before it begins, for want of time.
pub(crate) fn unread_changes(n_changes: Option<usize>) -> Option<String> {
    let n_changes = n_changes.filter(|&n_changes| n_changes > 0)?;
    Some(format!(
        "{n_changes} older changes of the file are not read yet; ask again to read on, or run codescout index --history once"
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
        symbol: None,
        changes: Vec::new(),
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
        symbol: None,
        changes: Vec::new(),
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
