//! Vectors of profiles beside the program's own: carried along when segments are merged, copied or begun anew.

use std::collections::BTreeSet;

use crate::index::dense::WriteError;
use crate::index::lexical::LexicalSegment;
use crate::index::{RowFile, open_rows};
use crate::sidecar::{SegmentEntry, Sidecar, State, VectorEntry};

use super::parts::Part;
use super::publish::{PublishError, store_rows};

/// Why vectors could not be carried along.
#[derive(Debug, thiserror::Error)]
pub(super) enum CarryError {
    #[error(transparent)]
    Rows(#[from] WriteError),
    #[error(transparent)]
    Publish(#[from] PublishError),
}

/// One file for each profile but `own` that any of `entries`, neighbours, has vectors of: the rows of the documents that stay, and
/// an empty row for each that has none.
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

/// Keeps the vectors of a state that is given up for when its chunks are numbered anew. Best effort: what cannot be read or written
/// is made again.
pub(super) fn set_vectors_by(sidecar: &Sidecar, state: &State, own: &str) {
    for entry in &state.segments {
        for profile in profiles(std::slice::from_ref(entry), own) {
            if let Some(vectors) = opened(sidecar, entry, profile)
                && let Ok(lexical) = LexicalSegment::open(sidecar, &entry.lexical.name)
                && lexical.n_docs() == vectors.len()
                && let Err(error) = set_by(sidecar, &lexical, &vectors)
            {
                tracing::warn!(profile, "vectors are not kept: {error}");
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
        Part::store(sidecar, &keys, &writer.finish())?;
    }
    Ok(())
}

/// The profiles but `own`, in order.
fn profiles<'e>(entries: &'e [SegmentEntry], own: &str) -> BTreeSet<&'e str> {
    let all = entries.iter().flat_map(|entry| &entry.vectors);
    all.map(|vectors| vectors.profile.as_str())
        .filter(|profile| *profile != own)
        .collect()
}

/// A segment's vectors of a profile; damaged ones count as not there.
pub(super) fn opened(sidecar: &Sidecar, entry: &SegmentEntry, profile: &str) -> Option<RowFile> {
    let found = entry.vectors.iter().find(|vectors| vectors.profile == profile)?;
    match open_rows(sidecar, &found.file.name) {
        Ok(vectors) => Some(vectors).filter(|vectors| vectors.len() == entry.n_docs),
        Err(error) => {
            tracing::warn!(name = found.file.name, %error, "vectors are passed over");
            None
        }
    }
}
