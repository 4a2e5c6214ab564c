//! `review`: what a change does, in the order of its consequences.
//!
//! `definitions.rs` finds the changed definitions and who uses them, `around.rs` what goes with them: notes, documents,
//! files that usually change in the same commits, and people. `commands.rs` knows how tests are run.

mod around;
mod commands;
mod definitions;
mod markdown;
mod rows;

use serde::{Deserialize, Serialize};

use self::around::Around;
use self::definitions::Changed;
use super::ask::{Ask, FileSelection, path_text};
use super::diff::{Compared, Diff, FileOut, SideOut};
use super::graph::{ImpactTotals, ReachedOut};
use super::op::{Op, Page, PageOf, Paging};
use super::question::{About, Question};
use super::sink::{Recorded, Sink};
use crate::model::count::count;
use crate::session::Result;

pub(crate) use self::Facts as ReviewFacts;
pub(crate) use self::markdown::markdown;
pub(crate) use self::rows::{
    Consequence, DefinitionRow, DocumentSite, OtherFileRow, OwnerRow as ReviewOwner, ReviewRow, Site, TogetherRow,
};

/// The branches from which a change is thought to have started, in their order.
const MAIN_BRANCHES: [&str; 5] = ["origin/HEAD", "origin/main", "origin/master", "main", "master"];

/// The request.
#[derive(Clone, Debug, Default, Serialize, Deserialize, clap::Args, schemars::JsonSchema)]
#[serde(default)]
pub(crate) struct Review {
    /// A..B; A...B from the merge base; or A to the worktree [default: what differs from the main branch]
    #[schemars(description = "A..B, A...B; default: what differs from the main branch")]
    pub(crate) range: Option<String>,
    /// Include only this directory or files that match this glob; a leading `!` excludes; repeatable
    #[arg(short, long = "path", value_name = "GLOB", value_parser = path_text())]
    #[schemars(description = "globs, !glob")]
    pub(crate) path: Vec<String>,
    /// Include the changed lines of each definition
    #[arg(long)]
    #[schemars(description = "changed lines")]
    pub(crate) diff: bool,
}

/// The fields of the answer other than its rows.
#[derive(Debug, Serialize)]
pub(crate) struct Facts {
    pub(crate) from: SideOut,
    pub(crate) to: SideOut,
    /// The branch from which the change is thought to have started, if no range was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) since: Option<&'static str>,
    /// Number of commits between both, if they are known.
    pub(crate) commits: Option<usize>,
    pub(crate) files: usize,
    pub(crate) added_lines: u32,
    pub(crate) removed_lines: u32,
    /// Number of changed definitions of each kind of change, the gravest first.
    pub(crate) definitions: Vec<(&'static str, usize)>,
    pub(crate) impact: ImpactTotals,
    /// Commands that run the tests which the change reaches.
    pub(crate) commands: Vec<String>,
    /// What is not known, one sentence each.
    pub(crate) unknown: Vec<String>,
}

impl Op for Review {
    type Facts = Facts;
    type Row = ReviewRow;
    const WHEN_TOO_SLOW: &'static str = "narrow it down with path, or compare with diff by=file";

    fn run(&self, ask: &Ask<'_>) -> Result<PageOf<Self>> {
        let (range, since) = match &self.range {
            Some(range) => (range.clone(), None),
            None => default_range(ask)?,
        };
        let Compared {
            old,
            new,
            files,
            provenance,
        } = Diff::of(&range, &self.path).compared(ask, self.diff)?;
        let Changed {
            counts,
            n_possible,
            mut definitions,
            mut affected,
            mut provenance,
        } = Changed::of(ask, (&old.reference, &new.reference), &files, provenance)?;
        let selection = FileSelection::default();
        let about = About {
            reference: Some(&new.reference),
            ..About::unindexed_files(&selection)
        };
        let question = Question::new(ask, &about)?;
        let sides = (&old, &new);
        let around = around::of(ask, &question, sides, &files, &mut definitions, &mut provenance)?;
        let others: Vec<OtherFileRow> = files.iter().filter_map(OtherFileRow::of).collect();
        let commands = commands::of(&question, &affected.tests);
        let sum = |of: fn(&FileOut) -> Option<u32>| files.iter().filter_map(of).sum();
        let tests = std::mem::take(&mut affected.tests);
        let facts = Facts {
            from: old,
            to: new,
            since,
            commits: around.n_commits,
            files: files.len(),
            added_lines: sum(|file| file.added_lines),
            removed_lines: sum(|file| file.removed_lines),
            definitions: counts,
            unknown: unknown(&affected.totals, n_possible),
            impact: affected.totals,
            commands,
        };
        let shown = Shown {
            definitions,
            others,
            tests,
        };
        let (rows, left_out) = shown.rows(ask, around);
        let paging = Paging::numbered(None, 0, rows.len(), usize::MAX);
        let is_empty = facts.files == 0;
        let head = Recorded::of(|out| facts.render(out));
        let mut page = Page::new(provenance, facts, rows, paging);
        page.is_empty = is_empty;
        if is_empty && self.range.is_none() {
            page.hint = Some("to review the last commit, use the range HEAD^..HEAD".to_owned());
        }
        page.head = head;
        page.tail = Recorded::of(|out| {
            page.facts
                .commands
                .iter()
                .for_each(|command| out.whole_line(&format!("run   {command}")))
        });
        page.notes.extend(left_out);
        Ok(page)
    }
}

/// The rows of which an answer may leave some out.
struct Shown {
    definitions: Vec<DefinitionRow>,
    others: Vec<OtherFileRow>,
    tests: Vec<ReachedOut>,
}

impl Shown {
    /// Returns the rows in their order, and a note about those that are left out.
    fn rows(mut self, ask: &Ask<'_>, around: Around) -> (Vec<ReviewRow>, Option<String>) {
        let mut left_out = Vec::new();
        let mut limit = |n_all: usize, default: usize, noun: &str| {
            let limit = ask.limit(default);
            if n_all > limit {
                left_out.push(format!("{limit} of {}", count(n_all, noun)));
            }
            limit
        };
        self.definitions
            .truncate(limit(self.definitions.len(), 30, "definition"));
        self.others.truncate(limit(self.others.len(), 10, "other file"));
        self.tests.truncate(limit(self.tests.len(), 10, "test"));
        let definitions = self.definitions.into_iter().map(Box::new);
        let rows = definitions
            .map(ReviewRow::Definition)
            .chain(self.others.into_iter().map(ReviewRow::Other))
            .chain(around.together.into_iter().map(ReviewRow::Together))
            .chain(self.tests.into_iter().map(ReviewRow::Test))
            .chain(around.owners.into_iter().map(ReviewRow::Owner))
            .collect();
        let note = (!left_out.is_empty()).then(|| format!("shown: {}; limit 0 shows all", left_out.join(", ")));
        (rows, note)
    }
}

/// Returns the range from where `HEAD` left the main branch to the worktree, and the name of that branch.
fn default_range(ask: &Ask<'_>) -> Result<(String, Option<&'static str>)> {
    let workspace = &ask.session.workspace;
    let commit = |reference| workspace.target(reference).ok().flatten()?.commit;
    let Some(head) = commit("HEAD") else {
        return Ok(("HEAD".to_owned(), None));
    };
    for branch in MAIN_BRANCHES {
        let Some(tip) = commit(branch) else { continue };
        if let Some(base) = workspace.repository.merge_base(tip, head)? {
            return Ok((base.to_string(), Some(branch)));
        }
    }
    Ok(("HEAD".to_owned(), None))
}

/// Says what the answer does not know, by number.
fn unknown(totals: &ImpactTotals, n_possible: usize) -> Vec<String> {
    let known = |n: usize, noun: &str, rest: &str| (n > 0).then(|| format!("{} {rest}", count(n, noun)));
    let others = (totals.other_files > 0).then(|| {
        let files = count(totals.other_files, "file");
        format!("what the changes outside of definitions in {files} do")
    });
    let cut = totals
        .is_cut
        .then(|| "more definitions are reached than are followed".to_owned());
    [
        others,
        known(n_possible, "use", "may mean something else of the same name"),
        known(totals.unfollowed, "unresolved reference", "not followed"),
        cut,
    ]
    .into_iter()
    .flatten()
    .collect()
}

impl Facts {
    /// Returns the change as a range, such as `v1..topic`.
    pub(crate) fn range(&self) -> String {
        let short = |side: &SideOut| match &side.commit {
            Some(commit) if *commit == side.reference => commit.chars().take(10).collect(),
            _ => side.reference.clone(),
        };
        format!("{}..{}", short(&self.from), short(&self.to))
    }

    /// Describes the size of the change.
    pub(crate) fn size(&self) -> String {
        let commits = self.commits.map(|n| count(n, "commit"));
        let lines = format!("+{} -{}", self.added_lines, self.removed_lines);
        let parts: Vec<String> = commits.into_iter().chain([count(self.files, "file"), lines]).collect();
        parts.join(", ")
    }

    /// Describes what happened to definitions.
    pub(crate) fn changes(&self) -> String {
        let total: usize = self.definitions.iter().map(|(_, n)| n).sum();
        let kinds: Vec<String> = self.definitions.iter().map(|(kind, n)| format!("{n} {kind}")).collect();
        let changed = format!("{} changed", count(total, "definition"));
        if kinds.is_empty() {
            changed
        } else {
            format!("{changed}: {}", kinds.join(", "))
        }
    }

    /// Describes what the change reaches.
    pub(crate) fn reach(&self) -> String {
        let possible = |n: usize| {
            if n == 0 {
                String::new()
            } else {
                format!(" ({n} possible)")
            }
        };
        let totals = &self.impact;
        let files = match totals.test_files {
            0 => String::new(),
            n => format!(" in {}", count(n, "file")),
        };
        format!(
            "reaches {}{}, {}{}{files}",
            count(totals.definitions, "definition"),
            possible(totals.possible_definitions),
            count(totals.tests, "test"),
            possible(totals.possible_tests),
        )
    }

    fn render(&self, out: &mut dyn Sink) {
        if self.files == 0 {
            return out.whole_line(&format!("review {}: nothing changed", self.range()));
        }
        let since = self
            .since
            .map_or_else(String::new, |branch| format!(", since it left {branch}"));
        out.whole_line(&format!("review {}: {}{since}", self.range(), self.size()));
        out.whole_line(&self.changes());
        out.whole_line(&self.reach());
        if !self.unknown.is_empty() {
            out.whole_line(&format!("not known: {}", self.unknown.join("; ")));
        }
        out.whole_line("");
    }
}
