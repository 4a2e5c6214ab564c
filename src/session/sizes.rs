//! Measures the disk usage of a sidecar.

use std::fs;

use serde::Serialize;

use super::error::Result;
use crate::sidecar::{Sidecar, State, Store};
use crate::snapshot::SnapshotStore;

/// Bytes on disk of each part of a sidecar.
#[derive(Debug, Serialize)]
pub(crate) struct SizesOut {
    pub(crate) artifacts: u64,
    pub(crate) lexical: u64,
    pub(crate) dense: u64,
    pub(crate) snapshots: u64,
    /// Bytes of unused files, which the next writers remove.
    pub(crate) leftover: u64,
}

/// Measures each part of a sidecar.
pub(crate) fn sizes(sidecar: &Sidecar, state: &State) -> Result<SizesOut> {
    let size = |store| folder_bytes(&sidecar.folder(store));
    let mut sizes = SizesOut {
        artifacts: size(Store::Artifacts)?,
        lexical: size(Store::Lexical)?,
        dense: size(Store::Dense)?,
        snapshots: size(Store::Snapshots)?,
        leftover: 0,
    };
    let files = SnapshotStore::new(sidecar, state.epoch, state.recipe).files()?;
    let manifests = files.iter().filter(|file| file.is_current).map(|file| file.n_bytes);
    let in_use = state.n_segment_bytes() + manifests.sum::<u64>();
    let all = sizes.artifacts + sizes.lexical + sizes.dense + sizes.snapshots;
    sizes.leftover = all.saturating_sub(in_use);
    Ok(sizes)
}

impl SizesOut {
    /// Returns the sizes in one line.
    pub(crate) fn to_text(&self) -> String {
        let megabytes = |n_bytes: u64| n_bytes as f64 / 1e6;
        format!(
            "{:.1} MB: artifacts {:.1}, lexical {:.1}, dense {:.1}, snapshots {:.1}; left over {:.1}",
            megabytes(self.artifacts + self.lexical + self.dense + self.snapshots),
            megabytes(self.artifacts),
            megabytes(self.lexical),
            megabytes(self.dense),
            megabytes(self.snapshots),
            megabytes(self.leftover),
        )
    }
}

fn folder_bytes(folder: &std::path::Path) -> std::io::Result<u64> {
    let entries = match fs::read_dir(folder) {
        // Other errors are damage, which is reported elsewhere.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(0),
        entries => entries?,
    };
    let mut n_bytes = 0;
    for entry in entries {
        match entry?.metadata() {
            Ok(found) => n_bytes += found.len(),
            // A writer has just removed the file.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(n_bytes)
}
