//! `verify`: checks the index files and repairs damage.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::ask::Ask;
use super::op::{Op, Page, PageOf, Paging, Row};
use super::question::beside;
use super::sink::{Recorded, Sink};
use crate::ingest::{Depth, Derived, Finding, Loose, Repair, Verification};
use crate::model::Ctx;
use crate::model::count::count;
use crate::session::{Result, Workspace};
use crate::sidecar::Sidecar;
use crate::snapshot::missing_blobs;

/// Maximum number of unknown files in text output.
const MAX_SHOWN: usize = 10;

/// The request.
#[derive(Clone, Debug, Default, Serialize, Deserialize, clap::Args, schemars::JsonSchema)]
#[serde(default)]
#[command(after_help = "Examples:
  codescout verify                  check the checksum of every file
  codescout verify --deep           also compare the index with the blobs
  codescout verify --sample 1000    compare a sample of 1000 blobs
  codescout verify --repair

Exit status: 0 if there is no damage, 1 if there is damage, 2 on error.")]
pub(crate) struct Verify {
    /// Rebuild the index of every blob and compare it with what is stored
    #[arg(long)]
    #[schemars(description = "")]
    deep: bool,
    /// Like --deep, for a random sample of N blobs and snapshots
    #[arg(long, value_name = "N")]
    #[schemars(description = "")]
    sample: Option<usize>,
    /// Move damaged files aside and rebuild them from git
    #[arg(long)]
    #[schemars(description = "")]
    repair: bool,
    /// Stop after this many seconds
    #[arg(long, value_name = "SECONDS")]
    #[serde(rename = "wait")]
    #[schemars(skip)]
    pub(crate) max_duration: Option<u64>,
}

/// The fields of the answer other than its rows.
#[derive(Debug, Serialize)]
pub(crate) struct Facts {
    sidecar: String,
    /// One of `none`, `sound`, `partial`, `damaged`, `repaired` and `unfinished`.
    health: &'static str,
    checked: CheckedOut,
    from_blobs: Option<DerivedOut>,
    leftovers: Vec<LooseOut>,
    unknown: Vec<LooseOut>,
    repair: Option<RepairOut>,
    /// Number of damaged files.
    total: usize,
    /// True if a deep check was requested, but after the repair only a shallow one was done.
    #[serde(skip)]
    is_seen_shallowly: bool,
    /// True if the only damaged files are private notes.
    #[serde(skip)]
    has_only_notes: bool,
}

/// A damaged file.
#[derive(Debug, Serialize)]
pub(crate) struct FindingOut {
    file: String,
    what: String,
}

impl Op for Verify {
    type Facts = Facts;
    type Row = FindingOut;

    fn run(&self, ask: &Ask<'_>) -> Result<PageOf<Self>> {
        let deadline = self
            .max_duration
            .map(|seconds| ask.call.began + Duration::from_secs(seconds));
        let (facts, rows) = self.verified(ask, ask.call.ctx.until(deadline))?;
        let mut page = Page::new(beside(ask), facts, rows, Paging::default());
        let facts = &page.facts;
        page.head = Recorded::of(|out| facts.render_head(out));
        page.tail = Recorded::of(|out| facts.render_tail(out));
        page.hint = facts.hint().map(str::to_owned).or_else(|| unranked(ask, facts));
        page.is_empty = matches!(facts.health, "damaged" | "repaired");
        page.is_unfinished = facts.health == "unfinished";
        Ok(page)
    }
}

impl Row for FindingOut {
    fn render(&self, out: &mut dyn Sink) {
        out.line(&format!("damaged     {}: {}", self.file, self.what));
    }
}

impl Facts {
    fn render_head(&self, out: &mut dyn Sink) {
        if self.health == "none" {
            out.line(&format!("nothing is indexed at {}", self.sidecar));
            return;
        }
        let checked = &self.checked;
        let history = match checked.commits {
            0 => String::new(),
            n_commits => format!(", history of {}", count(n_commits, "commit")),
        };
        out.line(&format!(
            "read        {}, {:.1} MB: {}, {}, {}, {}{history}",
            count(checked.files, "file"),
            checked.bytes as f64 / 1e6,
            count(checked.segments, "segment"),
            count(checked.blobs, "blob"),
            count(checked.chunks, "chunk"),
            count(checked.snapshots, "snapshot"),
        ));
        if checked.not_checked_files > 0 {
            out.line(&format!(
                "not read    {}: time limit reached",
                count(checked.not_checked_files, "file")
            ));
        }
        if let Some(derived) = &self.from_blobs {
            derived.render(out);
        }
    }

    fn render_tail(&self, out: &mut dyn Sink) {
        if !self.leftovers.is_empty() {
            let n_bytes: u64 = self.leftovers.iter().map(|loose| loose.bytes).sum();
            out.line(&format!(
                "leftovers   {}, {:.1} MB, unused",
                count(self.leftovers.len(), "file"),
                n_bytes as f64 / 1e6
            ));
        }
        for loose in self.unknown.iter().take(MAX_SHOWN) {
            out.line(&format!("unknown     {}, {} bytes", loose.file, loose.bytes));
        }
        if let Some(n_more) = self.unknown.len().checked_sub(MAX_SHOWN).filter(|n_more| *n_more > 0) {
            out.line(&format!("            and {n_more} more"));
        }
        if let Some(repair) = &self.repair {
            repair.render(out);
        }
        match (self.health, &self.repair) {
            ("none", _) => {}
            ("sound", _) => out.line("no damage found"),
            ("partial", _) => out.line("no damage found in the files checked so far"),
            ("repaired", _) if self.is_seen_shallowly => {
                out.line("repaired; run codescout verify --deep to compare the result with git");
            }
            ("repaired", _) => out.line("repaired; no damage left"),
            ("unfinished", _) if self.has_only_notes => {
                out.line("nothing was repaired: private notes cannot be rebuilt")
            }
            ("unfinished", _) => out.line("damage removed, but part of the index was not rebuilt"),
            (_, Some(_)) => out.line("damaged again"),
            _ => out.line("damaged"),
        }
    }

    /// Returns a suggestion for what to do next.
    fn hint(&self) -> Option<&'static str> {
        match (self.health, &self.repair) {
            ("partial", _) => Some("use a longer time limit to check the rest"),
            ("damaged", None) if self.has_only_notes => {
                Some("no other copy of a private note exists: read it, then write or forget it with codescout memory")
            }
            ("damaged", None) => Some("rebuild it from git: codescout verify --repair"),
            ("damaged", Some(_)) => Some("check the disk, or set CODESCOUT_SIDECAR to a folder on another disk"),
            _ => None,
        }
    }
}

impl DerivedOut {
    fn render(&self, out: &mut dyn Sink) {
        out.line(&format!(
            "made again  {}, {} with their words and vectors; {} listed again; {} compared",
            count(self.blobs, "blob"),
            count(self.chunks, "chunk"),
            count(self.snapshots, "snapshot"),
            count(self.commits, "commit")
        ));
        for (n, what) in [
            (self.not_in_git_blobs, "blobs were not compared: git no longer has them"),
            (
                self.not_in_git_trees,
                "snapshots were not compared: git no longer has their trees",
            ),
            (self.not_checked_blobs, "blobs were not checked"),
            (self.not_checked_snapshots, "snapshots were not checked"),
            (
                self.not_in_git_commits,
                "commits were not compared: git no longer has them",
            ),
            (self.not_checked_commits, "commits were not checked"),
        ] {
            if n > 0 {
                out.line(&format!("            {n} {what}"));
            }
        }
    }
}

impl RepairOut {
    fn render(&self, out: &mut dyn Sink) {
        let lost = match self.lost_snapshots {
            0 => String::new(),
            n_lost => format!(", {n_lost} lost because git no longer has their trees"),
        };
        out.line(&format!(
            "repaired    {} set aside, {} made again{lost}",
            count(self.set_aside_files, "file"),
            count(self.rebuilt_snapshots, "snapshot")
        ));
        for left in &self.left {
            out.line(&format!("left        {left}"));
        }
    }
}

#[derive(Debug, Default, Serialize)]
struct CheckedOut {
    files: usize,
    bytes: u64,
    segments: usize,
    blobs: u64,
    chunks: u64,
    snapshots: usize,
    commits: u64,
    /// Number of recorded commits that do not rank files, because their messages are not indexed.
    commits_without_messages: u64,
    not_checked_files: usize,
}

#[derive(Debug, Serialize)]
struct DerivedOut {
    blobs: u64,
    chunks: u64,
    not_in_git_blobs: u64,
    not_checked_blobs: u64,
    snapshots: u64,
    not_in_git_trees: u64,
    not_checked_snapshots: u64,
    commits: u64,
    not_in_git_commits: u64,
    not_checked_commits: u64,
}

#[derive(Debug, Serialize)]
struct LooseOut {
    file: String,
    bytes: u64,
}

#[derive(Debug, Serialize)]
struct RepairOut {
    set_aside_files: usize,
    rebuilt_snapshots: usize,
    lost_snapshots: usize,
    is_sound: bool,
    /// Data that the repair did not restore.
    left: Vec<String>,
}

impl Verify {
    fn depth(&self) -> Depth {
        Depth {
            from_blobs: self.deep || self.sample.is_some(),
            sample: self.sample,
        }
    }

    /// Verifies the stored data, and repairs it if requested.
    fn verified(&self, ask: &Ask<'_>, ctx: Ctx<'_>) -> Result<(Facts, Vec<FindingOut>)> {
        let (workspace, depth) = (&*ask.session.workspace, self.depth());
        let sidecar = workspace.storage.root().display().to_string();
        let Some(opened) = workspace.storage.open_to_check()? else {
            return Ok(Facts::new(sidecar, "none", &Verification::default()));
        };
        if !self.repair {
            let found = workspace.writer(&opened).verify(depth, ctx)?;
            let health = if found.is_sound() && found.notes.is_empty() {
                sound_or_partial(&found, depth)
            } else {
                "damaged"
            };
            return Ok(Facts::new(sidecar, health, &found));
        }
        let (recorded, vectors) = (workspace.records().recorded(&opened), n_vectors(workspace, &opened));
        let mut repair = workspace.writer(&opened).repair(depth, ctx)?;
        let mut left = Vec::new();
        if !repair.before.is_sound() {
            workspace.records().record_again(recorded, ctx)?;
            left = what_is_left(workspace, &opened, &repair.before, &vectors);
            repair.after = workspace.writer(&opened).verify(Depth::default(), ctx.until(None))?;
        }
        left.extend(repair.before.notes.iter().map(|note| {
            format!(
                "the note {}: read it, then write or forget it with codescout memory",
                note.path
            )
        }));
        let health = match (repair.before.is_sound(), repair.after.is_sound()) {
            (true, _) if left.is_empty() => sound_or_partial(&repair.before, depth),
            (true, _) => "unfinished",
            (false, true) if left.is_empty() => "repaired",
            (false, true) => "unfinished",
            (false, false) => "damaged",
        };
        let (mut facts, rows) = Facts::new(sidecar, health, &repair.before);
        facts.is_seen_shallowly = depth.from_blobs && repair.after.derived.is_none();
        facts.repair = (health != "sound" && health != "partial").then(|| RepairOut::new(&repair, left));
        Ok((facts, rows))
    }
}

/// Returns what completes an undamaged index whose searches rank without the messages of some or all commits. A killed
/// writer leaves such an index.
fn unranked(ask: &Ask<'_>, facts: &Facts) -> Option<String> {
    let checked = &facts.checked;
    let has_commit = || {
        let head = ask.session.workspace.target("HEAD");
        head.is_ok_and(|head| head.is_some_and(|target| target.commit.is_some()))
    };
    let which = match (checked.commits_without_messages, checked.commits) {
        (0, 0) if facts.health == "sound" && checked.snapshots > 0 && has_commit() => {
            "no commit is recorded".to_owned()
        }
        (0, _) => return None,
        (n_without, n_commits) => format!("the messages of {n_without} of {n_commits} commits are not indexed"),
    };
    Some(format!("{which}, so searches rank without them: codescout index"))
}

/// Number of documents with vectors, for each external model; `None` if the state cannot be read.
type VectorCounts = Option<BTreeMap<String, u64>>;

fn n_vectors(workspace: &Workspace, sidecar: &Sidecar) -> VectorCounts {
    let state = sidecar.state().ok()??;
    let own = workspace.models.own_profile();
    let mut counts = BTreeMap::new();
    for entry in &state.segments {
        for vectors in entry.vectors.iter().filter(|vectors| vectors.profile != own) {
            *counts.entry(vectors.profile.clone()).or_default() += u64::from(entry.n_docs);
        }
    }
    Some(counts)
}

/// Lists the data that the repair did not restore, with commands that restore it.
fn what_is_left(
    workspace: &Workspace,
    sidecar: &Sidecar,
    before: &Verification,
    vectors: &VectorCounts,
) -> Vec<String> {
    let mut left = Vec::new();
    let now = n_vectors(workspace, sidecar).unwrap_or_default();
    let is_lost = |(profile, n_docs): (&String, &u64)| now.get(profile).is_none_or(|n_now| n_now < n_docs);
    // If the earlier counts are unknown, vectors of every configured model may be lost.
    let has_lost = match vectors {
        Some(vectors) => vectors.iter().any(is_lost),
        None => !workspace.added_profiles().is_empty(),
    };
    if has_lost {
        left.push("vectors of other models: run codescout index to compute them again".to_owned());
    }
    let layers = before.trees.iter().filter_map(|tree| workspace.stored_tree(*tree));
    let unread: BTreeSet<_> = layers
        .flat_map(|layers| missing_blobs(&layers))
        .map(|(_, blob)| blob)
        .collect();
    if !unread.is_empty() {
        let how = workspace.records().how_to_get_objects();
        left.push(format!(
            "data that depends on {} blobs that are missing or damaged in git; {how}",
            unread.len()
        ));
    }
    left
}

/// Returns the health of an undamaged sidecar. It is `partial` if a requested check was not completed; a requested
/// sample counts as complete.
fn sound_or_partial(found: &Verification, depth: Depth) -> &'static str {
    let has_skipped = |derived: &Derived| {
        derived.n_skipped_blobs > 0 || derived.n_skipped_manifests > 0 || derived.n_skipped_commits > 0
    };
    let is_cut_short = depth.sample.is_none() && found.derived.as_ref().is_some_and(has_skipped);
    if found.n_unread > 0 || is_cut_short {
        "partial"
    } else {
        "sound"
    }
}

impl Facts {
    fn new(sidecar: String, health: &'static str, found: &Verification) -> (Self, Vec<FindingOut>) {
        let facts = Self {
            sidecar,
            health,
            checked: CheckedOut {
                files: found.n_files,
                bytes: found.n_bytes,
                segments: found.n_segments,
                blobs: found.n_blobs,
                chunks: found.n_docs,
                snapshots: found.n_manifests,
                commits: found.n_commits,
                commits_without_messages: found.n_without_messages,
                not_checked_files: found.n_unread,
            },
            from_blobs: found.derived.as_ref().map(DerivedOut::new),
            leftovers: found.leftovers.iter().map(LooseOut::new).collect(),
            unknown: found.unknown.iter().map(LooseOut::new).collect(),
            repair: None,
            total: found.findings.len() + found.notes.len(),
            is_seen_shallowly: false,
            has_only_notes: found.is_sound() && !found.notes.is_empty(),
        };
        let notes = found.notes.iter().map(|note| FindingOut {
            file: note.path.clone(),
            what: note.what.to_owned(),
        });
        (facts, found.findings.iter().map(FindingOut::new).chain(notes).collect())
    }
}

impl DerivedOut {
    fn new(derived: &Derived) -> Self {
        Self {
            blobs: derived.n_blobs,
            chunks: derived.n_docs,
            not_in_git_blobs: derived.n_absent_blobs,
            not_checked_blobs: derived.n_skipped_blobs,
            snapshots: derived.n_manifests,
            not_in_git_trees: derived.n_absent_trees,
            not_checked_snapshots: derived.n_skipped_manifests,
            commits: derived.n_commits,
            not_in_git_commits: derived.n_absent_commits,
            not_checked_commits: derived.n_skipped_commits,
        }
    }
}

impl FindingOut {
    fn new(finding: &Finding) -> Self {
        let folder = finding.store.map(|store| format!("{}/", store.folder()));
        Self {
            file: format!("{}{}", folder.unwrap_or_default(), finding.name),
            what: finding.what.clone(),
        }
    }
}

impl LooseOut {
    fn new(loose: &Loose) -> Self {
        Self {
            file: loose.path.clone(),
            bytes: loose.length,
        }
    }
}

impl RepairOut {
    fn new(repair: &Repair, left: Vec<String>) -> Self {
        Self {
            set_aside_files: repair.n_set_aside,
            rebuilt_snapshots: repair.n_trees,
            lost_snapshots: repair.n_lost_trees,
            is_sound: repair.after.is_sound(),
            left,
        }
    }
}
