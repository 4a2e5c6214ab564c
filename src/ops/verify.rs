//! Whether what is stored is sound.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use serde::Serialize;

use crate::ingest::{Depth, Derived, Finding, Limits, Loose, Progress, Repair, Verification};
use crate::session::Workspace;
use crate::sidecar::Sidecar;
use crate::snapshot::missing_blobs;

/// What a check has found.
#[derive(Debug, Serialize)]
pub(crate) struct VerifyOut {
    pub(crate) sidecar: String,
    /// `none`, `sound`, `partial`, `damaged`, `repaired`, `unfinished`
    pub(crate) health: &'static str,
    pub(crate) checked: CheckedOut,
    pub(crate) from_blobs: Option<DerivedOut>,
    pub(crate) damaged: Vec<FindingOut>,
    pub(crate) leftovers: Vec<LooseOut>,
    pub(crate) unknown: Vec<LooseOut>,
    pub(crate) repair: Option<RepairOut>,
    /// Whether a deep look was asked for, and after mending only a shallow one was had.
    #[serde(skip)]
    pub(crate) is_seen_shallowly: bool,
    pub(crate) took_ms: u64,
}

#[derive(Debug, Default, Serialize)]
pub(crate) struct CheckedOut {
    pub(crate) files: usize,
    pub(crate) bytes: u64,
    pub(crate) segments: usize,
    pub(crate) blobs: u64,
    pub(crate) chunks: u64,
    pub(crate) snapshots: usize,
    pub(crate) commits: u64,
    pub(crate) not_checked_files: usize,
}

#[derive(Debug, Serialize)]
pub(crate) struct DerivedOut {
    pub(crate) blobs: u64,
    pub(crate) chunks: u64,
    pub(crate) not_in_git_blobs: u64,
    pub(crate) not_checked_blobs: u64,
    pub(crate) snapshots: u64,
    pub(crate) not_in_git_trees: u64,
    pub(crate) not_checked_snapshots: u64,
}

#[derive(Debug, Serialize)]
pub(crate) struct FindingOut {
    pub(crate) file: String,
    pub(crate) what: String,
}

#[derive(Debug, Serialize)]
pub(crate) struct LooseOut {
    pub(crate) file: String,
    pub(crate) bytes: u64,
}

#[derive(Debug, Serialize)]
pub(crate) struct RepairOut {
    pub(crate) set_aside_files: usize,
    pub(crate) rebuilt_snapshots: usize,
    pub(crate) lost_snapshots: usize,
    pub(crate) is_sound: bool,
    /// What was there and is not made again.
    pub(crate) left: Vec<String>,
}

/// Checks what is stored, and mends it if that is wanted.
pub(crate) fn verified(
    workspace: &Workspace,
    depth: Depth,
    repairs: bool,
    progress: &dyn Progress,
    limits: Limits<'_>,
) -> Result<VerifyOut> {
    let sidecar = workspace.sidecar_root().display().to_string();
    let answer = match workspace.sidecar_to_check()? {
        None => VerifyOut::new(sidecar, "none", &Verification::default()),
        Some(opened) if repairs => {
            let (recorded, vectors) = (workspace.recorded(&opened), n_vectors(workspace, &opened));
            let mut repair = workspace.writer(&opened).repair(depth, progress, limits)?;
            let mut left = Vec::new();
            if !repair.before.is_sound() {
                workspace.record_again(recorded, progress, limits.interrupt)?;
                left = what_is_left(workspace, &opened, &repair.before, &vectors);
                repair.after = workspace.writer(&opened).verify(
                    Depth::default(),
                    progress,
                    Limits {
                        deadline: None,
                        ..limits
                    },
                )?;
            }
            let health = match (repair.before.is_sound(), repair.after.is_sound()) {
                (true, _) => sound_or_partial(&repair.before, depth),
                (false, true) if left.is_empty() => "repaired",
                (false, true) => "unfinished",
                (false, false) => "damaged",
            };
            VerifyOut {
                is_seen_shallowly: depth.from_blobs && repair.after.derived.is_none(),
                repair: (!repair.before.is_sound()).then(|| RepairOut::new(&repair, left)),
                ..VerifyOut::new(sidecar, health, &repair.before)
            }
        }
        Some(opened) => {
            let found = workspace.writer(&opened).verify(depth, progress, limits)?;
            let health = if found.is_sound() {
                sound_or_partial(&found, depth)
            } else {
                "damaged"
            };
            VerifyOut::new(sidecar, health, &found)
        }
    };
    Ok(answer)
}

/// For how many documents there are vectors of each model, but for the one inside the program; `None` if the state cannot be read.
type VectorCounts = Option<BTreeMap<String, u64>>;

fn n_vectors(workspace: &Workspace, sidecar: &Sidecar) -> VectorCounts {
    let state = sidecar.state().ok()??;
    let own = workspace.own_profile();
    let mut counts = BTreeMap::new();
    for entry in &state.segments {
        for vectors in entry.vectors.iter().filter(|vectors| vectors.profile != own) {
            *counts.entry(vectors.profile.clone()).or_default() += u64::from(entry.n_docs);
        }
    }
    Some(counts)
}

/// What mending has not brought back, with what does.
fn what_is_left(
    workspace: &Workspace,
    sidecar: &Sidecar,
    before: &Verification,
    vectors: &VectorCounts,
) -> Vec<String> {
    let mut left = Vec::new();
    let now = n_vectors(workspace, sidecar).unwrap_or_default();
    let is_lost = |(profile, n_docs): (&String, &u64)| now.get(profile).is_none_or(|n_now| n_now < n_docs);
    // Where nobody knows what there was, what is in use may be lost.
    let has_lost = match vectors {
        Some(vectors) => vectors.iter().any(is_lost),
        None => !workspace.added_profiles().is_empty(),
    };
    if has_lost {
        left.push("vectors of other models: codescout index has them made again".to_owned());
    }
    let layers = before.trees.iter().filter_map(|tree| workspace.stored_tree(*tree));
    let unread: BTreeSet<_> = layers
        .flat_map(|layers| missing_blobs(&layers))
        .map(|(_, blob)| blob)
        .collect();
    if !unread.is_empty() {
        let how = workspace.how_to_get_objects();
        left.push(format!(
            "what needs {} blobs that are missing or damaged in git: {how}",
            unread.len()
        ));
    }
    left
}

/// Without damage so far: was everything looked at that was asked for? A sample is meant to leave something out.
fn sound_or_partial(found: &Verification, depth: Depth) -> &'static str {
    let has_skipped = |derived: &Derived| derived.n_skipped_blobs > 0 || derived.n_skipped_manifests > 0;
    let is_cut_short = depth.sample.is_none() && found.derived.as_ref().is_some_and(has_skipped);
    if found.n_unread > 0 || is_cut_short {
        "partial"
    } else {
        "sound"
    }
}

impl VerifyOut {
    fn new(sidecar: String, health: &'static str, found: &Verification) -> Self {
        Self {
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
                not_checked_files: found.n_unread,
            },
            from_blobs: found.derived.as_ref().map(DerivedOut::new),
            damaged: found.findings.iter().map(FindingOut::new).collect(),
            leftovers: found.leftovers.iter().map(LooseOut::new).collect(),
            unknown: found.unknown.iter().map(LooseOut::new).collect(),
            repair: None,
            is_seen_shallowly: false,
            took_ms: 0,
        }
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
