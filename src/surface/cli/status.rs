//! `codescout status`

use std::collections::BTreeMap;
use std::fs;

use anyhow::Result;
use serde::Serialize;

use super::args::{Global, StatusArgs};
use super::gc::CausesOut;
use super::json::ProvenanceOut;
use super::render::{Output, one_line};
use super::{Found, INTERRUPTED};
use crate::extract;
use crate::ingest::NoProgress;
use crate::sidecar::Store;
use crate::snapshot::{SnapshotStore, View};
use crate::surface::open::{Freshness, Workspace};

#[derive(Debug, Serialize)]
struct StatusOut {
    #[serde(flatten)]
    provenance: ProvenanceOut,
    sidecar: String,
    /// `none`, `behind`, `up_to_date`
    index: &'static str,
    languages: Vec<LanguageOut>,
    segments: usize,
    blobs: u32,
    chunks: u32,
    snapshots: usize,
    bytes: Option<SizesOut>,
    #[serde(skip_serializing_if = "Option::is_none")]
    causes: Option<CausesOut>,
}

#[derive(Debug, Serialize)]
struct LanguageOut {
    name: &'static str,
    files: u32,
}

#[derive(Debug, Serialize)]
struct SizesOut {
    artifacts: u64,
    lexical: u64,
    dense: u64,
    snapshots: u64,
    /// Of these, what nothing names and the next writers remove.
    leftover: u64,
}

pub(super) fn run(workspace: &Workspace, global: &Global, args: &StatusArgs, output: &mut Output) -> Result<Found> {
    let target = workspace.target(&global.reference)?;
    let mut answer = StatusOut {
        provenance: ProvenanceOut::not_indexed(workspace, &global.reference, target),
        sidecar: workspace.sidecar_root().display().to_string(),
        index: "none",
        languages: Vec::new(),
        segments: 0,
        blobs: 0,
        chunks: 0,
        snapshots: 0,
        bytes: None,
        causes: None,
    };
    if let Some((sidecar, Some(state))) = workspace.sidecar()? {
        let snapshots = SnapshotStore::new(&sidecar, state.epoch, state.recipe);
        answer.index = match target.map(|target| workspace.freshness(target.tree)).transpose()? {
            Some(Freshness::Behind) => "behind",
            _ => "up_to_date",
        };
        answer.segments = state.segments.len();
        answer.blobs = state.n_blobs();
        answer.chunks = state.n_docs();
        answer.snapshots = snapshots.trees()?.len();
        let size = |store| folder_bytes(&sidecar.folder(store));
        let mut sizes = SizesOut {
            artifacts: size(Store::Artifacts)?,
            lexical: size(Store::Lexical)?,
            dense: size(Store::Dense)?,
            snapshots: size(Store::Snapshots)?,
            leftover: 0,
        };
        let files = snapshots.files()?;
        let manifests = files.iter().filter(|file| file.is_current).map(|file| file.n_bytes);
        let in_use = state.n_segment_bytes() + manifests.sum::<u64>();
        let all = sizes.artifacts + sizes.lexical + sizes.dense + sizes.snapshots;
        sizes.leftover = all.saturating_sub(in_use);
        answer.bytes = Some(sizes);
        if args.bytes {
            answer.causes = workspace.survey()?.as_ref().map(CausesOut::of);
        }
    }
    if answer.index == "up_to_date" {
        // Nothing is indexed for this; the changes of the work tree are looked at in memory.
        let opened = workspace.view(&global.reference, &NoProgress, &INTERRUPTED)?;
        answer.provenance = ProvenanceOut::of(&opened.view);
        answer.languages = languages(&opened.view);
    }
    if output.json {
        output.json(&answer)?;
    } else {
        show(&answer, output)?;
    }
    Ok(Found::Something)
}

/// The languages of the files that are searched, the most files first.
fn languages(view: &View) -> Vec<LanguageOut> {
    let mut n_files: BTreeMap<&'static str, u32> = BTreeMap::new();
    for (id, file) in view.files() {
        if file.blob.is_some() {
            let name = extract::language(view.lang(id)).map_or("text", |language| language.name);
            *n_files.entry(name).or_default() += 1;
        }
    }
    let mut languages: Vec<LanguageOut> = n_files
        .into_iter()
        .map(|(name, files)| LanguageOut { name, files })
        .collect();
    languages.sort_by(|a, b| (b.files, a.name).cmp(&(a.files, b.name)));
    languages
}

fn show(answer: &StatusOut, output: &mut Output) -> Result<()> {
    let state = match answer.index {
        "none" => "nothing is indexed yet; the first search does it, or: codescout index",
        "behind" => "this revision is not indexed yet; the next search does it, or: codescout index",
        _ => "up to date",
    };
    let commit = answer.provenance.commit().map_or("no commit", |commit| &commit[..12]);
    output.line(&format!("repository  {}", one_line(answer.provenance.repo())))?;
    output.line(&format!("commit      {commit}"))?;
    output.line(&format!(
        "changed     {} files differ from it",
        answer.provenance.dirty_files()
    ))?;
    output.line(&format!("index       {state}"))?;
    output.line(&format!("sidecar     {}", one_line(&answer.sidecar)))?;
    if let Some((files, indexed, skipped)) = answer.provenance.coverage() {
        let skipped: Vec<String> = skipped
            .iter()
            .map(|(reason, n_files)| format!("{n_files} {reason}"))
            .collect();
        let left_out = match skipped.is_empty() {
            true => String::new(),
            false => format!("; left out: {}", skipped.join(", ")),
        };
        output.line(&format!(
            "files       {files}, {indexed} of them searched by content{left_out}"
        ))?;
    }
    if !answer.languages.is_empty() {
        let told = answer.languages.iter();
        let told: Vec<String> = told
            .map(|language| format!("{} {}", language.name, language.files))
            .collect();
        output.line(&format!("languages   {}", told.join(", ")))?;
    }
    if let Some(bytes) = &answer.bytes {
        output.line(&format!(
            "content     {} blobs, {} chunks, {} segments, {} snapshots",
            answer.blobs, answer.chunks, answer.segments, answer.snapshots
        ))?;
        let megabytes = |n_bytes: u64| n_bytes as f64 / 1e6;
        output.line(&format!(
            "size        {:.1} MB: artifacts {:.1}, lexical {:.1}, dense {:.1}, snapshots {:.1}; left over {:.1}",
            megabytes(bytes.artifacts + bytes.lexical + bytes.dense + bytes.snapshots),
            megabytes(bytes.artifacts),
            megabytes(bytes.lexical),
            megabytes(bytes.dense),
            megabytes(bytes.snapshots),
            megabytes(bytes.leftover),
        ))?;
    }
    if let Some(causes) = &answer.causes {
        causes.show(output)?;
    }
    Ok(())
}

fn folder_bytes(folder: &std::path::Path) -> std::io::Result<u64> {
    let mut n_bytes = 0;
    for entry in fs::read_dir(folder)? {
        n_bytes += entry?.metadata()?.len();
    }
    Ok(n_bytes)
}
