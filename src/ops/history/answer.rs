//! What an answer has besides its rows, and what every question has in common.

use serde::Serialize;

use super::cochange::CochangeOut;
use super::last_seen::LastSeenOut;
use super::question::{HistoryOp, Question, Shown};
use super::rows::EntryOut;
use crate::history::{CommitHead, FileChange, Who};
use crate::model::RepoPath;
use crate::model::count::count;
use crate::ops::ask::Ask;
use crate::ops::op::Page;
use crate::ops::sink::{Recorded, Sink, Style};
use crate::ops::target::{CandidateTarget, Target, render_candidates};
use crate::query::{Gaps, TargetError};
use crate::session::{Result, Visibility};

/// A page of the history of a target.
pub(super) struct Answer {
    pub(super) part: Shown,
    pub(super) facts: Facts,
    pub(super) rows: Vec<EntryOut>,
    pub(super) files: Vec<CochangeOut>,
    /// The reasons why the answer is incomplete.
    pub(super) incomplete: Vec<String>,
    /// Gaps in the record that concern the answer.
    pub(super) gaps: Gaps,
}

/// The fields of the answer other than its rows.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Facts {
    pub(super) op: HistoryOp,
    pub(super) target: TargetOut,
    pub(super) near: Vec<String>,
    /// True if the revision has the definitions in `near`.
    #[serde(skip)]
    pub(super) is_near_present: bool,
    pub(super) candidates: Vec<CandidateTarget>,
    pub(super) total: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) last_seen: Option<LastSeenOut>,
    /// Number of commits of the target that were searched for other changed files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) commits: Option<u32>,
}

/// The target.
#[derive(Debug, Default, Serialize)]
pub(super) struct TargetOut {
    /// One of `file`, `folder`, `symbol`, `lines`, `many` and `unknown`.
    pub(super) kind: &'static str,
    pub(super) path: String,
    pub(super) present: bool,
    /// The name as given, if the definition has another name now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) was: Option<String>,
}

impl Question<'_> {
    pub(super) fn answer(mut self, target: Target) -> Result<Answer> {
        let mut answer = self.unanswered(&target)?;
        if let Target::File(path) | Target::Folder(path) | Target::Unknown(path, _) = &target {
            answer.facts.target.path = path.to_string();
            self.path = path.clone();
        }
        if self.op == HistoryOp::Deleted {
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
        let mut incomplete = self.targets.opened.notes.clone();
        if matches!(target, Target::Unknown(..)) {
            incomplete.extend(
                self.targets
                    .workspace
                    .records()
                    .unread_files(self.targets.opened.target),
            );
            incomplete.extend(self.targets.untraced());
        }
        Ok(Answer {
            part: self.part,
            facts: Facts {
                op: self.op,
                target: TargetOut {
                    kind: "unknown",
                    ..TargetOut::default()
                },
                ..Facts::default()
            },
            rows: Vec::new(),
            files: Vec::new(),
            incomplete,
            gaps: Gaps::of(&self.targets.opened.history, &self.targets.opened.reached)?,
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
                facts.candidates = candidates;
                Ok(())
            }
            Target::File(_) => {
                facts.target.kind = "file";
                self.add_file(answer)
            }
            Target::Folder(_) => {
                facts.target.kind = "folder";
                self.add_folder(answer)
            }
            Target::Lines(path, first, last) => self.add_lines(answer, &path, (first, last)),
            Target::Symbol(key) => self.add_symbol(answer, &key),
            Target::Once(name, key) => {
                facts.target.was = Some(name);
                self.add_symbol(answer, &key)
            }
        }
    }

    pub(super) fn is_visible(&self, path: &RepoPath) -> bool {
        !self.targets.visibility.hides(path.as_bytes())
    }

    pub(super) fn is_visible_change(&self, change: &FileChange) -> bool {
        let origin = change.change.origin.as_ref();
        self.is_visible(&change.path) && origin.is_none_or(|origin| self.is_visible(&origin.path))
    }

    /// Returns the author of a commit if it passes the filter.
    pub(super) fn passing_author(&self, head: &CommitHead) -> Option<Who> {
        let author = self.targets.opened.mailmap.resolve(&head.author);
        self.filter.passes(head, &author).then_some(author)
    }

    /// Returns true if the filter can pass uncommitted changes.
    pub(super) fn passes_uncommitted(&self) -> bool {
        self.filter.until.is_none() && self.filter.author.is_none()
    }

    /// Returns the committed changes on this page. They follow all uncommitted changes.
    pub(super) fn page<'t, T>(&self, not_committed: &mut Vec<EntryOut>, committed: &'t [T]) -> &'t [T] {
        let Shown { skip, limit, .. } = self.part;
        let begin = skip.saturating_sub(not_committed.len()).min(committed.len());
        not_committed.drain(..skip.min(not_committed.len()));
        not_committed.truncate(limit);
        let n_left = limit - not_committed.len();
        &committed[begin..begin.saturating_add(n_left).min(committed.len())]
    }
}

/// Returns false if an id or path names a hidden file.
fn is_visible_id(visibility: Visibility, id: &str) -> bool {
    let ends = id.match_indices('#').map(|(at, _)| at).chain([id.len()]);
    ends.into_iter().all(|end| !visibility.hides(&id.as_bytes()[..end]))
}

impl Answer {
    /// Adds the text before and after the rows.
    pub(super) fn explain<F, R>(&self, ask: &Ask<'_>, typed: &str, is_group: bool, page: &mut Page<F, R>) {
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
