//! `codescout history`

use std::collections::{BTreeSet, HashSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use bstr::ByteSlice;
use regex::RegexBuilder;
use serde::Serialize;

use super::args::{Global, HistoryArgs};
use super::json::{Hinted, ProvenanceOut};
use super::progress::CliProgress;
use super::read::inside;
use super::render::{FAINT, Output, PATH, STRONG, one_line, sanitize};
use super::{Found, INTERRUPTED};
use crate::git::WorkTreeReader;
use crate::history::{Entry, FileChange, Who};
use crate::model::RepoPath;
use crate::query::{
    FileChangeKind, FileLogEntry, Gaps, LogFilter, cochange, deleted_files, file_log, folder_log, near_paths,
    parse_moment, patch_of, timestamp, unified,
};
use crate::surface::history::{OpenedHistory, Uncommitted};
use crate::surface::open::Workspace;

/// Files that change together are told up to this number unless another limit is given.
const MAX_COCHANGES: usize = 50;

#[derive(Debug, Serialize)]
struct HistoryOut {
    #[serde(flatten)]
    provenance: ProvenanceOut,
    target: TargetOut,
    near: Vec<String>,
    total: usize,
    results: Vec<EntryOut>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_seen: Option<LastSeenOut>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cochange: Option<CochangeOut>,
    took_ms: f64,
}

#[derive(Debug, Serialize)]
struct TargetOut {
    /// `file`, `folder`, `unknown`
    kind: &'static str,
    path: String,
    present: bool,
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct PersonOut {
    pub(super) name: String,
    pub(super) email: String,
}

#[derive(Debug, Serialize)]
struct EntryOut {
    /// Null for what is not committed.
    commit: Option<String>,
    author: Option<PersonOut>,
    date: Option<String>,
    commit_date: Option<String>,
    subject: Option<String>,
    merge: bool,
    changes: Vec<ChangeOut>,
}

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

#[derive(Debug, Serialize)]
struct LastSeenOut {
    present: bool,
    commit: Option<String>,
    deleted_by: Option<String>,
}

#[derive(Debug, Serialize)]
struct CochangeOut {
    commits: u32,
    files: Vec<CochangeFileOut>,
}

#[derive(Debug, Serialize)]
struct CochangeFileOut {
    path: String,
    support: u32,
    confidence: f64,
}

pub(super) fn person_out(who: &Who) -> PersonOut {
    PersonOut {
        name: who.name.to_string(),
        email: who.email.to_string(),
    }
}

/// One question about the past.
struct Question<'a> {
    workspace: &'a Workspace,
    opened: &'a OpenedHistory,
    args: &'a HistoryArgs,
    filter: LogFilter,
    uncommitted: Vec<Uncommitted>,
    /// Without slashes at its ends; empty for the whole repository.
    path: RepoPath,
}

pub(super) fn run(workspace: &Workspace, global: &Global, args: &HistoryArgs, output: &mut Output) -> Result<Found> {
    let filter = filter(args)?;
    let opened = workspace.history(&global.reference, &CliProgress::new(global.quiet), &INTERRUPTED)?;
    let started = Instant::now();
    let uncommitted = workspace.uncommitted(&global.reference, &INTERRUPTED)?;
    let typed = args.target.as_deref().unwrap_or_default();
    let path = typed_path(workspace, typed);
    let question = Question {
        workspace,
        opened: &opened,
        args,
        filter,
        uncommitted,
        path,
    };
    let mut incomplete = opened.notes.clone();
    incomplete.extend(Gaps::of(&opened.history, &opened.reached)?.sentences());
    let provenance = ProvenanceOut::without_view(
        workspace,
        &global.reference,
        opened.target,
        question.uncommitted.len(),
        incomplete,
    );
    let mut answer = question.answer(provenance)?;
    answer.took_ms = started.elapsed().as_secs_f64() * 1e3;
    if output.json {
        output.json(&answer)?;
    } else {
        show(&answer, args, output)?;
    }
    let has_cochange = answer.cochange.as_ref().is_some_and(|found| !found.files.is_empty());
    Ok(match answer.total == 0 && !has_cochange {
        true => Found::Nothing,
        false => Found::Something,
    })
}

/// A path as it was typed, from the root of the repository and without slashes at its ends. It need not be UTF-8.
fn typed_path(workspace: &Workspace, typed: &OsStr) -> RepoPath {
    let typed = match typed.to_str() {
        Some(text) => inside(workspace, text).as_bytes(),
        None => typed.as_bytes(),
    };
    let path = typed.strip_prefix(b"./").unwrap_or(typed);
    RepoPath::new(if path == b"." {
        b""
    } else {
        path.trim_end_with(|c| c == '/')
    })
}

fn filter(args: &HistoryArgs) -> Result<LogFilter> {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs() as i64);
    let moment = |text: &Option<String>| match text {
        None => Ok(None),
        Some(text) => parse_moment(text, now).map(Some).ok_or_else(|| Hinted {
            message: format!("{text:?} is not a date"),
            hint: "write 2024-02-29, 2024-02-29T13:05Z, @seconds, or 12h, 30d, 2w, 6m, 1y".to_owned(),
        }),
    };
    let author = match &args.author {
        None => None,
        Some(pattern) => {
            let built = RegexBuilder::new(pattern).case_insensitive(true).build();
            Some(built.with_context(|| format!("{pattern:?} is not a regular expression"))?)
        }
    };
    Ok(LogFilter {
        since: moment(&args.since)?,
        until: moment(&args.until)?,
        author,
    })
}

impl Question<'_> {
    fn answer(&self, provenance: ProvenanceOut) -> Result<HistoryOut> {
        let mut answer = HistoryOut {
            provenance,
            target: TargetOut {
                kind: "unknown",
                path: self.path.to_string(),
                present: false,
            },
            near: Vec::new(),
            total: 0,
            results: Vec::new(),
            last_seen: None,
            cochange: None,
            took_ms: 0.0,
        };
        if self.args.deleted {
            answer.target.kind = "folder";
            self.add_deleted(&mut answer)?;
            return Ok(answer);
        }
        let (kind, is_there, committed) = self.committed()?;
        answer.target.kind = kind;
        answer.target.present = is_there;
        let own = self.uncommitted_changes();
        if committed.is_empty() && own.is_empty() {
            answer.target.kind = if answer.target.present { kind } else { "unknown" };
            if !answer.target.present {
                answer.near = near_paths(&self.opened.history, &self.path.to_text());
            }
            return Ok(answer);
        }
        if let Some(last) = own.last() {
            answer.target.present = own.len() > 1 || last.new.is_some();
        }
        self.add_log(&mut answer, committed, own)?;
        Ok(answer)
    }

    /// What the path is, whether the commit has it, and the commits that changed it.
    fn committed(&self) -> Result<(&'static str, bool, Vec<FileLogEntry>)> {
        let OpenedHistory {
            history,
            reached,
            mailmap,
            ..
        } = self.opened;
        let Some(tip) = self.opened.tip else {
            return Ok(("unknown", false, Vec::new()));
        };
        let folder = [self.path.as_bytes(), b"/"].concat();
        let is_folder = self.path.as_bytes().is_empty() || {
            let is_file = self.files_at_tip()?.contains(&self.path);
            let was_file = !history.changes_of(self.path.as_bytes())?.is_empty();
            !is_file
                && (!was_file
                    || self
                        .files_at_tip()?
                        .iter()
                        .any(|path| path.as_bytes().starts_with(&folder)))
        };
        let origin = self.uncommitted.iter().find(|change| change.path == self.path);
        let origin = origin.and_then(|change| change.origin.as_ref());
        let (kind, log) = match is_folder && origin.is_none() {
            true => ("folder", folder_log(history, reached, &self.path, mailmap)?),
            false => (
                "file",
                file_log(history, tip, reached, origin.unwrap_or(&self.path), mailmap)?,
            ),
        };
        let is_there = log.is_there || (kind == "file" && self.files_at_tip()?.contains(&self.path));
        Ok((kind, is_there, log.entries))
    }

    fn files_at_tip(&self) -> Result<HashSet<RepoPath>> {
        let mut files = HashSet::new();
        if let Some(target) = self.opened.target {
            let mut reader = self.workspace.repository.reader();
            reader.tree_files(target.tree, &mut |file| {
                files.insert(file.path);
            })?;
        }
        Ok(files)
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

    fn add_log(&self, answer: &mut HistoryOut, mut committed: Vec<FileLogEntry>, own: Vec<&Uncommitted>) -> Result<()> {
        if self.args.last_seen {
            answer.last_seen = Some(self.last_seen(answer.target.present, &committed)?);
        }
        committed.retain(|entry| self.filter.passes(&entry.head, &entry.author));
        if self.args.cochange {
            answer.cochange = Some(self.cochange(&committed)?);
            answer.total = committed.len();
            return Ok(());
        }
        let mut disk = None;
        if !own.is_empty() && !self.args.introduced {
            answer.results.push(self.uncommitted_out(&own, &mut disk)?);
        }
        answer.total = committed.len() + answer.results.len();
        if self.args.introduced {
            committed.drain(..committed.len().saturating_sub(1));
            answer.total = committed.len();
        }
        let limit = match (self.args.last_seen, self.args.limit) {
            (true, _) => 1,
            (false, 0) => usize::MAX,
            (false, limit) => limit,
        };
        let mut reader = self.workspace.repository.reader();
        for entry in committed.iter().take(limit.saturating_sub(answer.results.len())) {
            let mut told = entry_out(entry);
            if self.args.diff {
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
        answer.results.truncate(limit);
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
        if is_present {
            let commit = self.opened.target.and_then(|target| target.commit);
            return Ok(LastSeenOut {
                present: true,
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
        let (n_commits, found) = cochange(&self.opened.history, &commits, &own)?;
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

    fn add_deleted(&self, answer: &mut HistoryOut) -> Result<()> {
        let OpenedHistory {
            history,
            reached,
            mailmap,
            ..
        } = self.opened;
        let files = self.files_at_tip()?;
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
        answer.total = deleted.len();
        let limit = if self.args.limit == 0 {
            usize::MAX
        } else {
            self.args.limit
        };
        for change in deleted.into_iter().take(limit) {
            let head = heads[&change.change.commit].clone();
            answer.results.push(entry_out(&FileLogEntry {
                number: change.change.commit,
                author: mailmap.resolve(&head.author),
                head,
                is_merge: history.parents(change.change.commit).len() > 1,
                changes: vec![change],
            }));
        }
        Ok(())
    }

    fn uncommitted_out(&self, own: &[&Uncommitted], disk: &mut Option<WorkTreeReader>) -> Result<EntryOut> {
        let mut changes = Vec::with_capacity(own.len());
        for change in own {
            let diff = match self.args.diff {
                true => self.uncommitted_diff(change, disk)?,
                false => None,
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
            commit: None,
            author: None,
            date: None,
            commit_date: None,
            subject: None,
            merge: false,
            changes,
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

fn entry_out(entry: &FileLogEntry) -> EntryOut {
    let head = &entry.head;
    EntryOut {
        commit: Some(head.id.to_string()),
        author: Some(person_out(&entry.author)),
        date: Some(timestamp(head.author_time, head.author_offset)),
        commit_date: Some(timestamp(head.commit_time, 0)),
        subject: Some(head.subject.clone()),
        merge: entry.is_merge,
        changes: entry.changes.iter().map(change_out).collect(),
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

fn show(answer: &HistoryOut, args: &HistoryArgs, output: &mut Output) -> Result<()> {
    for entry in &answer.results {
        let when = entry
            .date
            .as_deref()
            .map_or("not committed", |date| &date[..date.len().min(10)]);
        let commit = entry.commit.as_deref().map_or("----------", |commit| &commit[..10]);
        let who = entry.author.as_ref().map_or("", |author| author.name.as_str());
        let line = format!(
            "{} {} {} {}",
            output.styled(STRONG, commit),
            output.styled(FAINT, when),
            output.name(FAINT, who),
            one_line(entry.subject.as_deref().unwrap_or_default())
        );
        output.line(line.trim_end())?;
        for change in &entry.changes {
            let from = change
                .from_path
                .as_deref()
                .map(|from| format!(" from {}", one_line(from)));
            let similarity = match change.similarity {
                Some(percent) if percent < 100 => format!(" ({percent} % the same)"),
                _ => String::new(),
            };
            let path = output.name(PATH, &change.path);
            output.line(&format!(
                "    {} {path}{}{similarity}",
                change.kind,
                from.unwrap_or_default()
            ))?;
            if let Some(diff) = &change.diff {
                output.put(&sanitize(diff))?;
            }
        }
    }
    if let Some(last) = &answer.last_seen {
        let commit = |commit: &Option<String>| {
            commit
                .as_deref()
                .map_or("-".to_owned(), |commit| commit[..10].to_owned())
        };
        output.line(&match last.present {
            true => format!("there at {}", commit(&last.commit)),
            false => format!(
                "last there at {}, taken away by {}",
                commit(&last.commit),
                commit(&last.deleted_by)
            ),
        })?;
    }
    if let Some(cochange) = &answer.cochange {
        output.line(&format!("in {} commits:", cochange.commits))?;
        for file in &cochange.files {
            let path = output.name(PATH, &file.path);
            output.line(&format!(
                "{:>6} {:>5.1} % {path}",
                file.support,
                file.confidence * 100.0
            ))?;
        }
    }
    output.flush()?;
    if answer.target.kind == "unknown" {
        let near = match answer.near.is_empty() {
            true => String::new(),
            false => format!("; did you mean {}?", answer.near.join(" or ")),
        };
        output.remark(&format!("{:?} was never there{near}", answer.target.path));
    }
    if answer.results.len() < answer.total && !args.last_seen && answer.cochange.is_none() {
        output.remark(&format!("{} of {}; more: -n 0", answer.results.len(), answer.total));
    }
    for why in answer.provenance.incomplete_because() {
        output.remark(why);
    }
    Ok(())
}
