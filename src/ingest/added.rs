//! Preserves the vectors of external models when segments are merged, copied or renumbered.

use std::collections::BTreeSet;

use crate::index::RowFile;
use crate::index::dense::WriteError;
use crate::index::lexical::LexicalSegment;
use crate::sidecar::{FileError, SegmentEntry, Sidecar, State, VectorEntry};

use super::parts::Part;
use super::publish::store_rows;

/// An error from preserving vectors.
#[derive(Debug, thiserror::Error)]
pub(super) enum CarryError {
    #[error(transparent)]
    Rows(#[from] WriteError),
    #[error(transparent)]
    File(#[from] FileError),
}

/// For each profile other than `own` that has vectors in any of the adjacent `entries`, writes one file for the merged
/// segment. The file has a row for each surviving document; the row is empty if the document has no vector.
pub(super) fn carry_added(
    sidecar: &Sidecar,
    entries: &[SegmentEntry],
    own: &str,
    stays: impl Fn(u32) -> bool,
) -> Result<Vec<VectorEntry>, CarryError> {
    let mut carried = Vec::new();
    for profile in profiles(entries, own) {
        let files: Vec<(&SegmentEntry, Option<RowFile>)> = entries
            .iter()
            .map(|entry| (entry, opened(sidecar, entry, profile)))
            .collect();
        let Some(like) = files.iter().find_map(|(_, file)| file.as_ref()) else {
            continue;
        };
        let mut writer = like.writer()?;
        for (entry, file) in &files {
            for row in (0..entry.n_docs).filter(|row| stays(entry.base_doc + row)) {
                match file.as_ref().filter(|file| file.has(row)) {
                    Some(file) => writer.copy_row(file, row)?,
                    None => writer.push_none()?,
                }
            }
        }
        carried.push(VectorEntry {
            profile: profile.to_owned(),
            file: store_rows(sidecar, writer)?,
        });
    }
    Ok(carried)
}

/// Saves the vectors of a state that is being discarded, so that they can be reused after the chunks get new numbers.
/// Best effort: vectors that cannot be read or written are computed again.
pub(super) fn save_vectors(sidecar: &Sidecar, state: &State, own: &str) {
    for entry in &state.segments {
        for profile in profiles(std::slice::from_ref(entry), own) {
            if let Some(vectors) = opened(sidecar, entry, profile)
                && let Ok(lexical) = LexicalSegment::open(sidecar, &entry.lexical.name)
                && lexical.n_docs() == vectors.len()
                && let Err(error) = set_by(sidecar, &lexical, &vectors)
            {
                tracing::warn!(profile, "cannot store vectors: {error}");
            }
        }
    }
}

fn set_by(sidecar: &Sidecar, lexical: &LexicalSegment, vectors: &RowFile) -> Result<(), Box<dyn std::error::Error>> {
    let mut writer = vectors.writer()?;
    let mut keys = Vec::new();
    for row in (0..vectors.len()).filter(|&row| vectors.has(row)) {
        writer.copy_row(vectors, row)?;
        keys.push(lexical.key(row));
    }
    if !keys.is_empty() {
        Part::store(sidecar, &keys, writer.finish())?;
    }
    Ok(())
}

/// Returns the profiles other than `own`, sorted.
fn profiles<'e>(entries: &'e [SegmentEntry], own: &str) -> BTreeSet<&'e str> {
    let all = entries.iter().flat_map(|entry| &entry.vectors);
    all.map(|vectors| vectors.profile.as_str())
        .filter(|profile| *profile != own)
        .collect()
}

/// Opens a segment's vectors of a profile. Damaged vectors count as missing.
pub(super) fn opened(sidecar: &Sidecar, entry: &SegmentEntry, profile: &str) -> Option<RowFile> {
    let found = entry.vectors.iter().find(|vectors| vectors.profile == profile)?;
    match RowFile::open(sidecar, &found.file.name) {
        Ok(vectors) => Some(vectors).filter(|vectors| vectors.len() == entry.n_docs),
        Err(error) => {
            tracing::warn!(name = found.file.name, %error, "ignoring vectors");
            None
        }
    }
}
