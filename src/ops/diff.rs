//! `diff`: the differences between two states of the repository.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::ProvenanceOut;
use super::ask::{Ask, FileSelection, path_text};
use super::blame::{OwnerOut, owner_out};
use super::drift::DriftOut;
use super::graph::{Affected, ImpactTotals, ReachedOut};
use super::op::{Op, Page, Paging, Row};
use super::paths::{literal, pattern, typed_path};
use super::reaching::reaching;
use super::sink::{Sink, Style};
use crate::artifact::Extractor;
use crate::embed::StaticModel;
use crate::extract::{self, Options};
use crate::git::{FileMode, ObjectError, ObjectReader, WorkTreeReader, diff_lines, unified_diff};
use crate::history::{
    Change, Entry, FilePair, FileShapes, SymbolDelta, SymbolKey, submodule_text, symbol_deltas, with_renames,
};
use crate::ingest::Target;
use crate::model::count::count;
use crate::model::{RepoPath, TreeId, typed, with_placeholders, without_placeholders};
use crate::query::{FileChangeKind, FileFilter, Gaps, Tests, file_owners, kind_name};
use crate::session::{Context as _, OpError, Result};

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
struct Facts<'a> {
    from: SideOut<'a>,
    to: SideOut<'a>,
    by: DiffBy,
    total: usize,
    added_lines: u32,
    removed_lines: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    impact: Option<ImpactTotals>,
}

/// One of the two compared states.
#[derive(Debug, Serialize)]
struct SideOut<'a> {
    #[serde(rename = "ref")]
    reference: &'a str,
    commit: Option<String>,
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

/// A file that differs.
#[derive(Debug, Serialize)]
pub(crate) struct FileOut {
    kind: &'static str,
    pub(crate) path: String,
    pub(crate) from_path: Option<String>,
    similarity: Option<u8>,
    pub(crate) old_blob: Option<String>,
    new_blob: Option<String>,
    /// True for a submodule, whose blobs are commits of another repository.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    is_submodule: bool,
    /// Number of added lines; null if one version is not text.
    added_lines: Option<u32>,
    removed_lines: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) symbols: Option<Vec<SymbolOut>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    diff: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    drift: Option<Option<DriftOut>>,
    /// True if the contents were not read, so it is unknown if the file is text.
    #[serde(skip)]
    is_unread: bool,
    /// Added and changed lines of the new version, 1-based. Where lines were only removed, the lines before
    /// and after them.
    #[serde(skip)]
    pub(crate) lines: Vec<(u32, u32)>,
    /// The lines of each difference in the old and in the new version, 1-based.
    #[serde(skip)]
    hunks: Vec<Hunk>,
}

/// The first and last lines of a difference in both versions; `None` where it has none.
#[derive(Debug)]
struct Hunk {
    old: Option<(u32, u32)>,
    new: Option<(u32, u32)>,
}

/// A definition that differs.
#[derive(Debug, Serialize)]
pub(crate) struct SymbolOut {
    pub(crate) id: String,
    pub(crate) kind: &'static str,
    pub(crate) events: Vec<&'static str>,
    pub(crate) from: Option<String>,
    confidence: f64,
    pub(crate) old_lines: Option<(u32, u32)>,
    new_lines: Option<(u32, u32)>,
    /// The outer value is missing if drift was not requested, the inner one if one of the versions has no vector.
    #[serde(skip_serializing_if = "Option::is_none")]
    drift: Option<Option<DriftOut>>,
}

/// The files that differ between two states.
pub(crate) struct Compared {
    /// The older state.
    pub(crate) old: String,
    /// The newer state.
    pub(crate) new: String,
    pub(crate) files: Vec<FileOut>,
    /// Says which files were not compared.
    pub(crate) provenance: ProvenanceOut,
}

impl Op for Diff {
    type Row = DiffRow;
    const WHEN_TOO_SLOW: &'static str = "narrow it down with path, or compare with by=file";

    fn run(&self, ask: &Ask<'_>) -> Result<Page<DiffRow>> {
        let (from, to) = self.sides(ask)?;
        let (changes, n_hidden) = self.changes(ask, &from, &to)?;
        let workspace = &ask.session.workspace;
        let mut provenance =
            ProvenanceOut::without_view(workspace, &to.reference, to.target, to.overlay.len(), Vec::new());
        if n_hidden > 0 {
            provenance.also_note(format!(
                "{} not shown: the names suggest credentials",
                count(n_hidden as u32, "file")
            ));
        }
        let is_read = changes.len() <= MAX_READ_FILES;
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
        let sum = |of: fn(&FileOut) -> Option<u32>| files.iter().filter_map(of).sum();
        let facts = Facts {
            from: from.out(),
            to: to.out(),
            by,
            total: files.len() + more.len(),
            added_lines: sum(|file| file.added_lines),
            removed_lines: sum(|file| file.removed_lines),
            impact: totals,
        };
        let notes = notes(&facts, files.len());
        let state = (from.target, &from.overlay, to.target, &to.overlay);
        let n_before = ask.n_before(state)?;
        let rest = facts.total.saturating_sub(n_before);
        let paging = Paging::numbered(ask.key(state), n_before, rest, ask.limit(usize::MAX));
        let mut page = Page::new(provenance, Vec::new(), paging).with_facts(&facts)?;
        page.is_empty = facts.total == 0;
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
        provenance.also_incomplete(format!("owners: commits are being recorded ({progress})"));
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

fn notes(facts: &Facts<'_>, n_files: usize) -> Vec<String> {
    let mut notes = vec![format!(
        "{} to {}: {}, +{} -{}",
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

impl FileOut {
    /// Returns true if the change can have effects that no changed definition has: of imports and other code outside of
    /// definitions, of data, or of another path. Prose has none.
    pub(crate) fn has_other_effects(&self) -> bool {
        let path = RepoPath::new(without_placeholders(&typed(&self.path)));
        // Plain text may be data, such as a list of requirements.
        let language = extract::language(extract::lang_of_path(&path));
        if language.is_some_and(|language| language.is_prose() && language.name != "plaintext") {
            return false;
        }
        let symbols = self.symbols.iter().flatten();
        let symbols: Vec<&SymbolOut> = symbols.filter(|symbol| symbol.kind != "key").collect();
        let is_inside = |lines: &Option<(u32, u32)>, of: fn(&SymbolOut) -> Option<(u32, u32)>| {
            let mut known = symbols.iter().filter_map(|symbol| of(symbol));
            lines.is_some_and(|lines| known.any(|(first, last)| first <= lines.1 && lines.0 <= last))
        };
        let is_outside = |hunk: &Hunk| {
            !is_inside(&hunk.old, |symbol| symbol.old_lines) && !is_inside(&hunk.new, |symbol| symbol.new_lines)
        };
        self.from_path.is_some() || self.added_lines.is_none() || self.hunks.iter().any(is_outside)
    }

    fn render(&self, out: &mut dyn Sink) {
        let commit = |blob: &Option<String>| blob.as_deref().map_or("nothing", |oid| &oid[..10]).to_owned();
        let lines = match (self.added_lines, self.removed_lines) {
            _ if self.is_submodule => {
                format!("submodule {} -> {}", commit(&self.old_blob), commit(&self.new_blob))
            }
            (Some(added), Some(removed)) => format!("+{added} -{removed}"),
            _ if self.is_unread => "not read".to_owned(),
            _ => "binary".to_owned(),
        };
        out.plain(&format!("{} ", self.kind));
        out.span(Style::Path, &self.path);
        if let Some(from) = &self.from_path {
            out.plain(" from ");
            out.span(Style::Path, from);
        }
        // A change of a few lines moves a long file by nothing that is left when rounded.
        let drift = self.drift.filter(|drift| !drift.is_some_and(DriftOut::is_zero));
        out.span(Style::Fact, &format!(" {lines}{}", drift_text(drift)));
        out.end();
        for symbol in self.symbols.iter().flatten() {
            let name = name_in(&symbol.id, &self.path);
            out.plain(&format!("    {}: {} {name}", symbol.events.join(", "), symbol.kind));
            if let Some(from) = &symbol.from {
                out.plain(" from ");
                out.span(Style::Path, from);
            }
            out.span(Style::Fact, &drift_text(symbol.drift));
            out.end();
        }
        if let Some(diff) = &self.diff {
            out.diff(diff);
        }
    }
}

/// Describes the drift after other text, if it was requested.
fn drift_text(drift: Option<Option<DriftOut>>) -> String {
    drift.map_or_else(String::new, |drift| format!(" {}", DriftOut::to_text(drift)))
}

/// Returns the name part of a definition's id. `path` is needed because a path may contain `#`.
pub(crate) fn name_in<'id>(id: &'id str, path: &str) -> &'id str {
    let of_file = id.strip_prefix(path).and_then(|rest| rest.strip_prefix('#'));
    let of_another = || id.split_once('#').map_or(id, |(_, name)| name);
    of_file.unwrap_or_else(of_another)
}

/// One of the two compared states: a tree, and the uncommitted changes on top of it.
struct Side {
    reference: String,
    target: Option<Target>,
    overlay: BTreeMap<RepoPath, Option<Entry>>,
}

impl Side {
    fn out(&self) -> SideOut<'_> {
        let commit = self.target.and_then(|target| target.commit);
        SideOut {
            reference: &self.reference,
            commit: commit.map(|commit| commit.to_string()),
        }
    }
}

impl Diff {
    /// Returns the two states to compare: `FROM` and `TO`, `A` and `B` of `A..B`, or the merge base and `B` of `A...B`.
    fn sides(&self, ask: &Ask<'_>) -> Result<(Side, Side)> {
        let first = self.from.as_deref().unwrap_or("HEAD");
        if let Some((a, b)) = first.split_once("...").filter(|_| self.to.is_none()) {
            let (a, b) = (side(ask, or_head(a))?, side(ask, or_head(b))?);
            let commit = |side: &Side| {
                let commit = side.target.and_then(|target| target.commit);
                commit.with_context(|| format!("{} is not a commit", side.reference))
            };
            let base = ask
                .session
                .workspace
                .repository
                .merge_base(commit(&a)?, commit(&b)?)?
                .ok_or_else(|| {
                    OpError::new(
                        format!("{} and {} have no common ancestor", a.reference, b.reference),
                        format!("compare them directly: {}..{}", a.reference, b.reference),
                    )
                })?;
            return Ok((side(ask, &base.to_string())?, b));
        }
        if let Some((a, b)) = first.split_once("..").filter(|_| self.to.is_none()) {
            return Ok((side(ask, or_head(a))?, side(ask, or_head(b))?));
        }
        let last = self.to.as_deref().unwrap_or("WORKTREE");
        Ok((side(ask, first)?, side(ask, last)?))
    }

    /// Returns the selected files that differ, in path order, and the number of hidden files among them.
    fn changes(&self, ask: &Ask<'_>, from: &Side, to: &Side) -> Result<(Vec<Change>, usize)> {
        let workspace = &ask.session.workspace;
        let mut reader = workspace.repository.reader();
        let typed = |path: &String| typed_path(workspace, path.as_ref());
        let wanted: Vec<RepoPath> = self.path.iter().map(typed).collect();
        let changes = differing(&mut reader, from, to, &wanted)?;
        let mut changes = renames_joined(with_renames(&mut reader, changes)?);
        let globs = self.path.iter().zip(&wanted).map(|(path, wanted)| {
            let is_path = changes.iter().any(|change| is_at_or_below(&change.path, wanted));
            if is_path {
                literal(&with_placeholders(wanted.as_bytes()))
            } else {
                pattern(workspace, path)
            }
        });
        let filter = FileFilter::new(&globs.collect::<Vec<_>>(), &[], Tests::Any)?;
        changes.retain(|change| filter.passes_path(change.path.as_bytes()));
        let n_all = changes.len();
        let is_hidden = |path: &RepoPath| ask.visibility().hides(path.as_bytes());
        changes.retain(|change| {
            !is_hidden(&change.path) && !change.origin.as_ref().is_some_and(|origin| is_hidden(&origin.path))
        });
        let n_hidden = n_all - changes.len();
        Ok((changes, n_hidden))
    }
}

impl Diff {
    fn needs_links(&self) -> bool {
        self.with.iter().any(|with| with.needs_links())
    }

    /// Compares the states of `range`, such as `A..B`, by definition.
    pub(crate) fn compared(ask: &Ask<'_>, range: &str) -> Result<Compared> {
        let diff = Self {
            from: Some(range.to_owned()),
            ..Self::default()
        };
        let (from, to) = diff.sides(ask)?;
        let (changes, _) = diff.changes(ask, &from, &to)?;
        let workspace = &ask.session.workspace;
        let mut provenance =
            ProvenanceOut::without_view(workspace, &to.reference, to.target, to.overlay.len(), Vec::new());
        let is_read = changes.len() <= MAX_READ_FILES;
        let files = Comparison::new(&diff, ask).files(&changes, is_read)?;
        provenance_of_unread(&files, is_read, &mut provenance);
        Ok(Compared {
            old: from.reference,
            new: to.reference,
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
        } = Self::compared(ask, range)?;
        let affected = reaching(ask, (&old, &new), &files, (selection, max_depth), &mut provenance)?;
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

fn or_head(reference: &str) -> &str {
    if reference.is_empty() { "HEAD" } else { reference }
}

fn side(ask: &Ask<'_>, reference: &str) -> Result<Side> {
    let reference = ask.session.checked(reference)?;
    let workspace = &ask.session.workspace;
    // Before the first commit, `HEAD` is an empty tree.
    let target = match reference {
        "HEAD" => workspace.target("WORKTREE")?,
        reference => workspace.target(reference)?,
    };
    let uncommitted = ask.session.uncommitted(reference, ask.call.ctx.interrupt)?;
    Ok(Side {
        reference: reference.to_owned(),
        target,
        overlay: uncommitted
            .into_iter()
            .map(|change| (change.path, change.new))
            .collect(),
    })
}

/// Returns the files that differ, in path order. If a tree is too large to compare as a whole, returns only files at or
/// below `wanted`.
fn differing(reader: &mut ObjectReader, from: &Side, to: &Side, wanted: &[RepoPath]) -> Result<Vec<Change>> {
    let tree = |side: &Side| side.target.map(|target| target.tree);
    let mut both: BTreeMap<RepoPath, (Option<Entry>, Option<Entry>)> = BTreeMap::new();
    if let Some(new) = tree(to) {
        let differing = match reader.diff_trees(tree(from), new) {
            // In this case, renames from outside `wanted` are not detected.
            Err(ObjectError::BeyondLimit { .. }) if !wanted.is_empty() => {
                reader.diff_trees_below(tree(from), new, wanted)?
            }
            differing => differing?,
        };
        for change in differing {
            let entry = both.entry(change.path).or_default();
            entry.0 = entry.0.or(change.old.map(Into::into));
            entry.1 = entry.1.or(change.new.map(Into::into));
        }
    }
    let mut paths: Vec<&RepoPath> = from.overlay.keys().chain(to.overlay.keys()).collect();
    paths.sort_unstable();
    paths.dedup();
    let mut entries_of = |tree: Option<TreeId>| -> Result<BTreeMap<RepoPath, Entry>> {
        let Some(tree) = tree.filter(|_| !paths.is_empty()) else {
            return Ok(BTreeMap::new());
        };
        let found = reader.diff_trees_at(None, tree, &paths)?.into_iter();
        Ok(found
            .filter_map(|change| Some((change.path, change.new?.into())))
            .collect())
    };
    let (old, new) = (entries_of(tree(from))?, entries_of(tree(to))?);
    for path in &paths {
        let at = |side: &Side, committed: &BTreeMap<RepoPath, Entry>| match side.overlay.get(*path) {
            Some(entry) => *entry,
            None => committed.get(*path).copied(),
        };
        both.insert((*path).clone(), (at(from, &old), at(to, &new)));
    }
    let differing = both.into_iter().filter(|(_, (old, new))| old != new);
    let change = |(path, (old, new))| Change {
        path,
        old,
        new,
        origin: None,
        is_combined: false,
    };
    Ok(differing.map(change).collect())
}

/// Combines the deletion and the addition of each rename into one change under the new name.
fn renames_joined(mut changes: Vec<Change>) -> Vec<Change> {
    let gone = changes.iter().filter(|change| change.new.is_none());
    let gone: BTreeMap<RepoPath, Option<Entry>> = gone.map(|change| (change.path.clone(), change.old)).collect();
    let mut renamed = BTreeSet::new();
    for change in &mut changes {
        if let Some(origin) = &change.origin {
            change.old = gone.get(&origin.path).copied().flatten();
            renamed.insert(origin.path.clone());
        }
    }
    changes.retain(|change| change.new.is_some() || !renamed.contains(&change.path));
    changes
}

fn is_at_or_below(path: &RepoPath, folder: &RepoPath) -> bool {
    let rest = path.as_bytes().strip_prefix(folder.as_bytes());
    folder.as_bytes().is_empty() || rest.is_some_and(|rest| rest.is_empty() || rest[0] == b'/')
}

struct Comparison<'a> {
    ask: &'a Ask<'a>,
    /// True if the answer includes changed lines.
    has_text: bool,
    /// True if definitions are compared.
    has_symbols: bool,
    /// The model that measures drift, if it was requested.
    model: Option<&'a StaticModel>,
    disk: Option<WorkTreeReader>,
    extractor: Extractor,
}

impl<'a> Comparison<'a> {
    fn new(diff: &Diff, ask: &'a Ask<'a>) -> Self {
        Self {
            ask,
            has_text: diff.by == DiffBy::Text,
            has_symbols: diff.by == DiffBy::Symbol || diff.needs_links(),
            model: (diff.with.contains(&DiffWith::Drift)).then(|| ask.session.workspace.models.own()),
            disk: None,
            extractor: Extractor::new(Options::default()),
        }
    }

    fn files(&mut self, changes: &[Change], is_read: bool) -> Result<Vec<FileOut>> {
        let (mut files, mut pairs) = (Vec::with_capacity(changes.len()), Vec::new());
        for change in changes {
            if self.ask.call.ctx.is_interrupted() {
                return Err(OpError::interrupted());
            }
            let mut file = file_out(change);
            if is_read {
                pairs.push(self.compare(change, &mut file)?);
            }
            files.push(file);
        }
        if self.has_symbols {
            files.iter_mut().for_each(|file| file.symbols = Some(Vec::new()));
            for delta in symbol_deltas(&pairs) {
                let of_file = files.get_mut(delta.pair).and_then(|file| file.symbols.as_mut());
                if let Some(symbols) = of_file {
                    let mut symbol = symbol_out(&delta);
                    if let (Some(model), Some((old, new))) = (self.model, delta.versions(&pairs)) {
                        symbol.drift = Some(DriftOut::between(model, &old.text(), &new.text()));
                    }
                    symbols.push(symbol);
                }
            }
        }
        Ok(files)
    }

    fn compare(&mut self, change: &Change, file: &mut FileOut) -> Result<FilePair> {
        if self.model.is_some() && change.old.is_some() && change.new.is_some() {
            file.drift = Some(None);
        }
        let old_path = change.origin.as_ref().map_or(&change.path, |origin| &origin.path);
        let old = self.read(old_path, change.old)?;
        let new = self.read(&change.path, change.new)?;
        let is_text = |bytes: &[u8]| !bytes[..bytes.len().min(8_000)].contains(&0);
        let (Some(old), Some(new)) = (old, new) else {
            return Ok(FilePair::default());
        };
        file.is_unread = false;
        if !is_text(&old) || !is_text(&new) {
            return Ok(FilePair::default());
        }
        let (mut n_added, mut n_removed) = (0, 0);
        for hunk in diff_lines(&old, &new) {
            file.lines.push(if hunk.new.is_empty() {
                (hunk.new.start.max(1), hunk.new.start + 1)
            } else {
                (hunk.new.start + 1, hunk.new.end)
            });
            let lines = |lines: &std::ops::Range<u32>| (!lines.is_empty()).then(|| (lines.start + 1, lines.end));
            file.hunks.push(Hunk {
                old: lines(&hunk.old),
                new: lines(&hunk.new),
            });
            n_added += hunk.new.len() as u32;
            n_removed += hunk.old.len() as u32;
        }
        (file.added_lines, file.removed_lines) = (Some(n_added), Some(n_removed));
        if self.has_text {
            file.diff = Some(unified_diff(&old, &new, (1, 1)));
        }
        if let Some((model, drift)) = self.model.zip(file.drift.as_mut()) {
            *drift = DriftOut::between(model, &old, &new);
        }
        if !self.has_symbols {
            return Ok(FilePair::default());
        }
        let mut shapes =
            |path: &RepoPath, bytes: Vec<u8>| (path.clone(), FileShapes::of(&mut self.extractor, path, bytes));
        Ok(FilePair {
            old: change.old.map(|_| shapes(old_path, old)),
            new: change.new.map(|_| shapes(&change.path, new)),
        })
    }

    /// Returns the content of a file. It is empty if the file does not exist, and `None` if the file cannot be read.
    fn read(&mut self, path: &RepoPath, entry: Option<Entry>) -> Result<Option<Vec<u8>>> {
        match entry {
            None => Ok(Some(Vec::new())),
            Some(entry) if entry.mode == FileMode::Submodule => Ok(Some(submodule_text(entry.oid))),
            Some(entry) => self
                .ask
                .session
                .workspace
                .records()
                .content(path, entry, &mut self.disk),
        }
    }
}

fn file_out(change: &Change) -> FileOut {
    let is_submodule = |entry: Option<Entry>| entry.is_some_and(|entry| entry.mode == FileMode::Submodule);
    let kind = match (change.old, change.new) {
        _ if change.origin.is_some() => FileChangeKind::Renamed,
        (None, _) => FileChangeKind::Added,
        (_, None) => FileChangeKind::Deleted,
        (Some(old), Some(new)) if old.oid == new.oid => FileChangeKind::Mode,
        _ => FileChangeKind::Modified,
    };
    FileOut {
        kind: kind.name(),
        path: change.path.to_string(),
        from_path: change.origin.as_ref().map(|origin| origin.path.to_string()),
        similarity: change.origin.as_ref().map(|origin| origin.similarity),
        old_blob: change.old.map(|entry| entry.oid.to_string()),
        new_blob: change.new.map(|entry| entry.oid.to_string()),
        is_submodule: is_submodule(change.old) || is_submodule(change.new),
        added_lines: None,
        removed_lines: None,
        symbols: None,
        diff: None,
        drift: None,
        is_unread: true,
        lines: Vec::new(),
        hunks: Vec::new(),
    }
}

fn symbol_out(delta: &SymbolDelta) -> SymbolOut {
    SymbolOut {
        id: delta.key.id(),
        kind: kind_name(delta.kind),
        events: delta.events.names(),
        from: delta.from.as_ref().map(SymbolKey::id),
        confidence: delta.confidence,
        old_lines: delta.old_lines,
        new_lines: delta.new_lines,
        drift: None,
    }
}
