//! `diff`: the differences between two states of the repository.
//!
//! `sides.rs` finds the files that differ, `compare.rs` compares them, `files.rs` shows what was found.

mod compare;
mod files;
mod sides;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::ask::{Ask, FileSelection, path_text};
use super::blame::{OwnerOut, owner_out};
use super::graph::{Affected, ImpactTotals, ReachedOut};
use super::op::{Op, Page, PageOf, Paging, Row};
use super::provenance::ProvenanceOut;
use super::reaching::reaching;
use super::sink::Sink;
use crate::model::count::count;
use crate::model::{Hint, RepoPath, typed, without_placeholders};
use crate::query::{Gaps, file_owners};
use crate::session::{OpError, Result};
use compare::Comparison;

pub(crate) use files::{FileOut, SymbolOut, name_in};

/// Maximum number of files whose contents are compared. If more differ, files are only listed.
const MAX_READ_FILES: usize = 2_000;
/// Maximum number of owners.
const MAX_OWNERS: usize = 10;
/// Time that a call waits for commits to be recorded.
const PATIENCE: Duration = Duration::from_secs(2);

/// The request.
#[derive(Clone, Debug, Default, Serialize, Deserialize, clap::Args, schemars::JsonSchema)]
#[serde(default)]
#[command(after_help = "Examples:
  codescout diff                         what is not committed
  codescout diff v1.0 v2.0
  codescout diff main...topic            what topic changed since it left main
  codescout diff HEAD INDEX --by text    what is staged
  codescout diff v1.0 v2.0 --public --only removed,renamed,signature --with impact
  codescout diff v1.0 HEAD --path src --json")]
pub(crate) struct Diff {
    /// Revision, INDEX or WORKTREE; or A..B, or A...B from the merge base; HEAD by default
    #[schemars(description = "default HEAD; or A..B, A...B")]
    from: Option<String>,
    /// Revision, INDEX or WORKTREE; WORKTREE by default
    #[schemars(description = "default WORKTREE")]
    to: Option<String>,
    /// Level of detail
    #[arg(long, value_enum, default_value_t)]
    #[schemars(description = "")]
    by: DiffBy,
    /// Include only definitions with one of these events, separated by commas; repeatable
    #[arg(long, value_enum, value_name = "EVENT", value_delimiter = ',')]
    #[serde(skip)]
    only: Vec<DiffEvent>,
    /// Include only definitions that code outside of the repository can name
    #[arg(long)]
    #[schemars(description = "")]
    public: bool,
    /// Include only this directory or files that match this glob; a leading `!` excludes; repeatable
    #[arg(short, long = "path", value_name = "GLOB", value_parser = path_text())]
    #[schemars(description = "globs, !glob")]
    path: Vec<String>,
    /// Additional output, separated by commas; repeatable
    #[arg(long, value_enum, value_name = "WHAT", value_delimiter = ',')]
    #[schemars(description = "")]
    with: Vec<DiffWith>,
}

/// Level of detail.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum DiffBy {
    /// Changed definitions in each file
    #[default]
    Symbol,
    /// Changed files
    File,
    /// Changed lines in each file
    Text,
}

/// What can happen to a definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum DiffEvent {
    Added,
    Removed,
    /// Has another name
    Renamed,
    /// Is in another file or container
    Moved,
    Signature,
    Body,
    Doc,
    /// Only white space and comments changed
    Formatting,
}

/// An addition to the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum DiffWith {
    /// Definitions that depend on a changed definition
    Impact,
    /// Tests that reach a changed definition
    Tests,
    /// Authors of the changed files and of those with definitions that depend on the change
    Owners,
    /// Distance between the meanings of both versions of each definition and file
    Drift,
}

impl DiffWith {
    /// Returns true if the addition comes from the links of the index.
    fn needs_links(self) -> bool {
        self != Self::Drift
    }
}

/// The fields of the answer other than its rows.
#[derive(Debug, Serialize)]
pub(crate) struct Facts {
    from: SideOut,
    to: SideOut,
    by: DiffBy,
    total: usize,
    added_lines: u32,
    removed_lines: u32,
    /// Number of definitions with each event, if definitions are compared.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    events: BTreeMap<&'static str, usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    impact: Option<ImpactTotals>,
}

/// One of the two compared states.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct SideOut {
    #[serde(rename = "ref")]
    pub(crate) reference: String,
    pub(crate) commit: Option<String>,
}

/// A result.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum DiffRow {
    File(FileOut),
    Reached(ReachedOut),
    Owner(OwnerRow),
}

/// An author of files that the change affects.
#[derive(Debug, Serialize)]
pub(crate) struct OwnerRow {
    kind: &'static str,
    #[serde(flatten)]
    owner: OwnerOut,
}

/// The files that differ between two states.
pub(crate) struct Compared {
    /// The older state.
    pub(crate) old: SideOut,
    /// The newer state.
    pub(crate) new: SideOut,
    pub(crate) files: Vec<FileOut>,
    /// Says which files were not compared.
    pub(crate) provenance: ProvenanceOut,
}

impl Op for Diff {
    type Facts = Facts;
    type Row = DiffRow;
    const WHEN_TOO_SLOW: &'static str = "narrow it down with path, or compare with by=file";

    fn run(&self, ask: &Ask<'_>) -> Result<PageOf<Self>> {
        let (from, to) = self.sides(ask)?;
        let (changes, n_hidden) = self.changes(ask, &from, &to)?;
        let mut provenance = provenance_of(ask, &to, n_hidden);
        let is_read = changes.len() <= MAX_READ_FILES;
        if self.is_narrow() && !is_read {
            return Err(OpError::new(
                format!("more than {MAX_READ_FILES} files differ, so definitions are not compared"),
                Hint::each("limit the comparison with --path", "limit the comparison with path"),
            ));
        }
        let by = if is_read { self.by } else { DiffBy::File };
        let mut files = Comparison::new(self, ask).files(&changes, is_read)?;
        provenance_of_unread(&files, is_read, &mut provenance);
        let affected = if is_read && self.needs_links() {
            let sides = (from.reference.as_str(), to.reference.as_str());
            let shown = (&FileSelection::default(), u32::MAX);
            Some(reaching(ask, sides, &files, shown, &mut provenance)?)
        } else {
            None
        };
        let mut more = Vec::new();
        if self.with.contains(&DiffWith::Owners)
            && let Some(affected) = &affected
        {
            more = owners(ask, &to.reference, &files, affected, &mut provenance)?;
        }
        let (totals, reached) = affected.map(|affected| self.shown(affected)).unzip();
        more.splice(0..0, reached.unwrap_or_default().into_iter().map(DiffRow::Reached));
        if by != DiffBy::Symbol {
            files.iter_mut().for_each(|file| file.symbols = None);
        }
        let mut events = BTreeMap::new();
        let symbols = files.iter().flat_map(|file| file.symbols.iter().flatten());
        symbols
            .flat_map(|symbol| &symbol.events)
            .for_each(|event| *events.entry(*event).or_default() += 1);
        let sum = |of: fn(&FileOut) -> Option<u32>| files.iter().filter_map(of).sum();
        let facts = Facts {
            from: from.out(),
            to: to.out(),
            by,
            total: files.len() + more.len(),
            added_lines: sum(|file| file.added_lines),
            removed_lines: sum(|file| file.removed_lines),
            events,
            impact: totals,
        };
        let notes = notes(&facts, files.len());
        let state = (from.target, &from.overlay, to.target, &to.overlay);
        let n_before = ask.n_before(state)?;
        let rest = facts.total.saturating_sub(n_before);
        let paging = Paging::numbered(ask.key(state), n_before, rest, ask.limit(usize::MAX));
        let total = facts.total;
        let mut page = Page::new(provenance, facts, Vec::new(), paging);
        page.n_selected = Some(total);
        page.is_empty = total == 0;
        page.notes = notes;
        page.rows = files
            .into_iter()
            .map(DiffRow::File)
            .chain(more)
            .skip(n_before)
            .collect();
        Ok(page)
    }
}

impl Diff {
    /// Returns true if only some of the changed definitions are wanted.
    fn is_narrow(&self) -> bool {
        self.public || !self.only.is_empty()
    }

    fn needs_links(&self) -> bool {
        self.with.iter().any(|with| with.needs_links())
    }

    /// Returns the request for the differences between the states of `range`, such as `A..B`, in files of `path`.
    pub(crate) fn of(range: &str, path: &[String]) -> Self {
        Self {
            from: Some(range.to_owned()),
            path: path.to_vec(),
            ..Self::default()
        }
    }

    /// Compares the two states by definition. With `has_diffs`, each definition has its changed lines.
    pub(crate) fn compared(&self, ask: &Ask<'_>, has_diffs: bool) -> Result<Compared> {
        let (from, to) = self.sides(ask)?;
        let (changes, n_hidden) = self.changes(ask, &from, &to)?;
        let mut provenance = provenance_of(ask, &to, n_hidden);
        let is_read = changes.len() <= MAX_READ_FILES;
        let mut comparison = Comparison::new(self, ask);
        comparison.has_diffs = has_diffs;
        let files = comparison.files(&changes, is_read)?;
        provenance_of_unread(&files, is_read, &mut provenance);
        Ok(Compared {
            old: from.out(),
            new: to.out(),
            files,
            provenance,
        })
    }

    /// Returns what the changes of `range`, such as `A..B`, reach in at most `max_depth` steps.
    pub(crate) fn affected(
        ask: &Ask<'_>,
        range: &str,
        selection: &FileSelection,
        max_depth: u32,
    ) -> Result<(Affected, ProvenanceOut)> {
        let Compared {
            old,
            new,
            files,
            mut provenance,
        } = Self::of(range, &[]).compared(ask, false)?;
        let sides = (old.reference.as_str(), new.reference.as_str());
        let affected = reaching(ask, sides, &files, (selection, max_depth), &mut provenance)?;
        Ok((affected, provenance))
    }

    /// Returns the totals of what the change reaches, and the requested rows.
    fn shown(&self, affected: Affected) -> (ImpactTotals, Vec<ReachedOut>) {
        let mut rows = Vec::new();
        if self.with.contains(&DiffWith::Impact) {
            rows.extend(affected.definitions);
        }
        if self.with.contains(&DiffWith::Tests) {
            rows.extend(affected.tests);
        }
        (affected.totals, rows)
    }
}

/// Returns the provenance of a comparison with the state `to`, without `n_hidden` files.
fn provenance_of(ask: &Ask<'_>, to: &sides::Side, n_hidden: usize) -> ProvenanceOut {
    let (workspace, n_dirty) = (&ask.session.workspace, to.overlay.len());
    let mut provenance = ProvenanceOut::without_view(workspace, &to.reference, to.target, n_dirty, Vec::new());
    if n_hidden > 0 {
        let files = count(n_hidden, "file");
        provenance.also_note(format!("{files} not shown: the names suggest credentials"));
    }
    provenance
}

/// Adds a note to `provenance` about files that were not read.
fn provenance_of_unread(files: &[FileOut], is_read: bool, provenance: &mut ProvenanceOut) {
    let n_unread = files.iter().filter(|file| file.is_unread).count();
    if !is_read {
        provenance.also_incomplete(format!(
            "more than {MAX_READ_FILES} files differ: only file names are listed; limit the comparison with a path"
        ));
    } else if n_unread > 0 {
        provenance.also_incomplete(format!(
            "not compared, because their contents are too large or missing in git: {}",
            count(n_unread as u32, "file")
        ));
    }
}

/// Returns the authors of the changed files and of those with definitions that depend on the change, by their number of
/// changes. Adds gaps in the history to `provenance`.
fn owners(
    ask: &Ask<'_>,
    reference: &str,
    files: &[FileOut],
    affected: &Affected,
    provenance: &mut ProvenanceOut,
) -> Result<Vec<DiffRow>> {
    let (opened, job) = ask.session.history(reference, PATIENCE, &ask.call)?;
    if let Some(job) = job {
        let progress = job.advance().to_text();
        provenance.also_building(format!("owners: commits are being recorded ({progress})"));
    }
    let changed = files
        .iter()
        .flat_map(|file| [Some(&file.path), file.from_path.as_ref()]);
    let dependent = affected.definitions.iter().map(|one| Some(&one.path));
    let paths = changed.chain(dependent).flatten();
    let paths: BTreeSet<RepoPath> = paths
        .map(|path| RepoPath::new(without_placeholders(&typed(path))))
        .collect();
    let found = file_owners(&opened.history, &opened.reached, &paths, &opened.mailmap)?;
    for gap in Gaps::of(&opened.history, &opened.reached)?.sentences() {
        provenance.also_incomplete(format!("owners: {gap}"));
    }
    let rows = found.iter().take(MAX_OWNERS).map(|owner| {
        DiffRow::Owner(OwnerRow {
            kind: "owner",
            owner: owner_out(owner),
        })
    });
    Ok(rows.collect())
}

fn notes(facts: &Facts, n_files: usize) -> Vec<String> {
    let events = facts.events.iter().map(|(event, n)| format!("{event} {n}"));
    let events: Vec<String> = events.collect();
    let events = if events.is_empty() {
        String::new()
    } else {
        format!(" · {}", events.join(", "))
    };
    let mut notes = vec![format!(
        "{} to {}: {}, +{} -{}{events}",
        facts.from.reference,
        facts.to.reference,
        count(n_files as u32, "file"),
        facts.added_lines,
        facts.removed_lines
    )];
    notes.extend(facts.impact.as_ref().map(ImpactTotals::to_text));
    notes
}

impl Row for DiffRow {
    fn render(&self, out: &mut dyn Sink) {
        match self {
            Self::File(file) => file.render(out),
            Self::Reached(reached) => reached.render(out),
            Self::Owner(row) => {
                out.plain("owner ");
                row.owner.render(out);
            }
        }
    }

    fn bodies(&mut self) -> Vec<&mut Option<String>> {
        match self {
            Self::File(file) => vec![&mut file.diff],
            Self::Reached(_) | Self::Owner(_) => Vec::new(),
        }
    }
}
