//! `codescout verify`

use std::time::{Duration, Instant};

use anyhow::Result;
use serde::Serialize;

use super::args::{Global, VerifyArgs};
use super::progress::CliProgress;
use super::render::{Output, one_line};
use super::{Found, INTERRUPTED};
use crate::ingest::{Depth, Derived, Finding, Limits, Loose, Repair, Verification};
use crate::surface::open::Workspace;

#[derive(Debug, Serialize)]
struct VerifyOut {
    sidecar: String,
    /// `none`, `sound`, `partial`, `damaged`, `repaired`
    health: &'static str,
    checked: CheckedOut,
    from_blobs: Option<DerivedOut>,
    damaged: Vec<FindingOut>,
    leftovers: Vec<LooseOut>,
    unknown: Vec<LooseOut>,
    repair: Option<RepairOut>,
    /// Whether a deep look was asked for, and after mending only a shallow one was had.
    #[serde(skip)]
    is_seen_shallowly: bool,
    took_ms: u64,
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
}

#[derive(Debug, Serialize)]
struct FindingOut {
    file: String,
    what: String,
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
}

pub(super) fn run(workspace: &Workspace, global: &Global, args: &VerifyArgs, output: &mut Output) -> Result<Found> {
    let began = Instant::now();
    let progress = CliProgress::new(global.quiet);
    let depth = Depth {
        from_blobs: args.deep || args.sample.is_some(),
        sample: args.sample,
    };
    let limits = Limits {
        interrupt: &INTERRUPTED,
        deadline: args.max_duration.map(|seconds| began + Duration::from_secs(seconds)),
    };
    let sidecar = workspace.sidecar_root().display().to_string();
    let mut answer = match workspace.sidecar_to_check()? {
        None => VerifyOut::new(sidecar, "none", &Verification::default()),
        Some(opened) if args.repair => {
            let repair = workspace.writer(&opened).repair(depth, &progress, limits)?;
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
            let found = workspace.writer(&opened).verify(depth, &progress, limits)?;
            let health = match found.is_sound() {
                true => sound_or_partial(&found, depth),
                false => "damaged",
            };
            VerifyOut::new(sidecar, health, &found)
        }
    };
    answer.took_ms = began.elapsed().as_millis() as u64;
    if output.json {
        output.json(&answer)?;
    } else {
        show(&answer, output)?;
    }
    Ok(match answer.health {
        "none" | "sound" | "partial" => Found::Something,
        _ => Found::Nothing,
    })
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

fn show(answer: &VerifyOut, output: &mut Output) -> Result<()> {
    if answer.health == "none" {
        output.line(&format!("nothing is indexed at {}", one_line(&answer.sidecar)))?;
        return Ok(());
    }
    let checked = &answer.checked;
    output.line(&format!(
        "read        {} files, {:.1} MB: {} segments, {} blobs, {} chunks, {} snapshots{}",
        checked.files,
        checked.bytes as f64 / 1e6,
        checked.segments,
        checked.blobs,
        checked.chunks,
        checked.snapshots,
        match checked.commits {
            0 => String::new(),
            n_commits => format!(", history of {n_commits} commits"),
        }
    ))?;
    if checked.not_checked_files > 0 {
        output.line(&format!("not read    {} files: time was up", checked.not_checked_files))?;
    }
    if let Some(derived) = &answer.from_blobs {
        show_derived(derived, output)?;
    }
    for finding in &answer.damaged {
        output.line(&format!(
            "damaged     {}: {}",
            one_line(&finding.file),
            one_line(&finding.what)
        ))?;
    }
    if !answer.leftovers.is_empty() {
        let n_bytes: u64 = answer.leftovers.iter().map(|loose| loose.bytes).sum();
        output.line(&format!(
            "leftovers   {} files, {:.1} MB, that nothing needs",
            answer.leftovers.len(),
            n_bytes as f64 / 1e6
        ))?;
    }
    show_unknown(&answer.unknown, output)?;
    if let Some(repair) = &answer.repair {
        let lost = match repair.lost_snapshots {
            0 => String::new(),
            n_lost => format!(", {n_lost} of trees that git does not have any more are lost"),
        };
        output.line(&format!(
            "repaired    {} files set aside, {} snapshots made again{lost}",
            repair.set_aside_files, repair.rebuilt_snapshots
        ))?;
    }
    output.line(match (answer.health, &answer.repair) {
        ("sound", _) => "all is well",
        ("partial", _) => "no damage in what was looked at; not everything was: without --max-duration it is",
        ("repaired", _) if answer.is_seen_shallowly => {
            "mended; what was written is whole: codescout verify --deep compares it with git again"
        }
        ("repaired", _) => "all is well again",
        (_, Some(_)) => "damaged again: is the disk failing? CODESCOUT_SIDECAR keeps the index elsewhere",
        _ => "damaged: codescout verify --repair makes it again from git",
    })?;
    Ok(())
}

fn show_derived(derived: &DerivedOut, output: &mut Output) -> Result<()> {
    output.line(&format!(
        "made again  {} blobs, {} chunks with their words and vectors; {} snapshots listed again",
        derived.blobs, derived.chunks, derived.snapshots
    ))?;
    for (n, what) in [
        (
            derived.not_in_git_blobs,
            "blobs are not in git any more: nothing to compare them with",
        ),
        (
            derived.not_in_git_trees,
            "snapshots are of trees that are not in git any more",
        ),
        (derived.not_checked_blobs, "blobs were not looked at"),
        (derived.not_checked_snapshots, "snapshots were not looked at"),
    ] {
        if n > 0 {
            output.line(&format!("            {n} {what}"))?;
        }
    }
    Ok(())
}

/// More than this many are only counted.
const MAX_SHOWN: usize = 10;

fn show_unknown(files: &[LooseOut], output: &mut Output) -> Result<()> {
    for loose in files.iter().take(MAX_SHOWN) {
        output.line(&format!("unknown     {}, {} bytes", one_line(&loose.file), loose.bytes))?;
    }
    if let Some(n_more) = files.len().checked_sub(MAX_SHOWN).filter(|&n_more| n_more > 0) {
        output.line(&format!("            and {n_more} more"))?;
    }
    Ok(())
}
