//! What is indexed of a revision.

use std::collections::BTreeMap;
use std::fs;

use anyhow::Result;
use serde::Serialize;

use crate::extract;
use crate::ingest::Target;
use crate::sidecar::Store;
use crate::snapshot::{SnapshotStore, View};
use crate::surface::open::{Freshness, Workspace};

/// What the sidecar holds.
#[derive(Debug, Serialize)]
pub(crate) struct StatusBody {
    pub(crate) sidecar: String,
    /// `none`, `behind`, `up_to_date`
    pub(crate) index: &'static str,
    pub(crate) languages: Vec<LanguageOut>,
    pub(crate) segments: usize,
    pub(crate) blobs: u32,
    pub(crate) chunks: u32,
    pub(crate) snapshots: usize,
    pub(crate) bytes: Option<SizesOut>,
}

/// How many files of a language are searched.
#[derive(Debug, Serialize)]
pub(crate) struct LanguageOut {
    pub(crate) name: &'static str,
    pub(crate) files: u32,
}

/// Bytes on disk.
#[derive(Debug, Serialize)]
pub(crate) struct SizesOut {
    pub(crate) artifacts: u64,
    pub(crate) lexical: u64,
    pub(crate) dense: u64,
    pub(crate) snapshots: u64,
    /// Of these, what nothing names and the next writers remove.
    pub(crate) leftover: u64,
}

/// What is indexed of `target`; the languages are those of a view, which is not looked at here.
pub(crate) fn status_body(workspace: &Workspace, target: Option<Target>) -> Result<StatusBody> {
    let mut body = StatusBody {
        sidecar: workspace.sidecar_root().display().to_string(),
        index: "none",
        languages: Vec::new(),
        segments: 0,
        blobs: 0,
        chunks: 0,
        snapshots: 0,
        bytes: None,
    };
    if let Some((sidecar, Some(state))) = workspace.sidecar()? {
        let snapshots = SnapshotStore::new(&sidecar, state.epoch, state.recipe);
        body.index = match target.map(|target| workspace.freshness(target.tree)).transpose()? {
            Some(Freshness::Behind) => "behind",
            _ => "up_to_date",
        };
        body.segments = state.segments.len();
        body.blobs = state.n_blobs();
        body.chunks = state.n_docs();
        body.snapshots = snapshots.trees()?.len();
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
        body.bytes = Some(sizes);
    }
    Ok(body)
}

/// The languages of the files that are searched, the most files first.
pub(crate) fn languages(view: &View) -> Vec<LanguageOut> {
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

fn folder_bytes(folder: &std::path::Path) -> std::io::Result<u64> {
    let mut n_bytes = 0;
    for entry in fs::read_dir(folder)? {
        n_bytes += entry?.metadata()?.len();
    }
    Ok(n_bytes)
}
