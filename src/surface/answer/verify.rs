//! Whether what is stored is sound.

use anyhow::Result;
use serde::Serialize;

use crate::ingest::{Depth, Derived, Finding, Limits, Loose, Progress, Repair, Verification};
use crate::surface::open::Workspace;

/// What a check has found.
#[derive(Debug, Serialize)]
pub(crate) struct VerifyOut {
    pub(crate) sidecar: String,
    /// `none`, `sound`, `partial`, `damaged`, `repaired`
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
            let repair = workspace.writer(&opened).repair(depth, progress, limits)?;
            let health = match (repair.before.is_sound(), repair.after.is_sound()) {
                (true, _) => sound_or_partial(&repair.before, depth),
                (false, true) => "repaired",
                (false, false) => "damaged",
            };
            VerifyOut {
                is_seen_shallowly: depth.from_blobs && repair.after.derived.is_none(),
                repair: (!repair.before.is_sound()).then(|| RepairOut::new(&repair)),
                ..VerifyOut::new(sidecar, health, &repair.before)
            }
        }
        Some(opened) => {
            let found = workspace.writer(&opened).verify(depth, progress, limits)?;
            let health = match found.is_sound() {
                true => sound_or_partial(&found, depth),
                false => "damaged",
            };
            VerifyOut::new(sidecar, health, &found)
        }
    };
    Ok(answer)
}

/// Without damage so far: was everything looked at that was asked for? A sample is meant to leave something out.
fn sound_or_partial(found: &Verification, depth: Depth) -> &'static str {
    let has_skipped = |derived: &Derived| derived.n_skipped_blobs > 0 || derived.n_skipped_manifests > 0;
    let is_cut_short = depth.sample.is_none() && found.derived.as_ref().is_some_and(has_skipped);
    match found.n_unread > 0 || is_cut_short {
        true => "partial",
        false => "sound",
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
    fn new(repair: &Repair) -> Self {
        Self {
            set_aside_files: repair.n_set_aside,
            rebuilt_snapshots: repair.n_trees,
            lost_snapshots: repair.n_lost_trees,
            is_sound: repair.after.is_sound(),
        }
    }
}
