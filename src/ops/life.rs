//! How often and when the files of a revision changed, as far as its commits are recorded.

use std::time::Duration;

use rayon::prelude::*;

use super::ask::{Ask, FileSelection};
use super::paths::path_of;
use super::provenance::ProvenanceOut;
use super::question::{About, Question};
use super::record::Past;
use crate::session::Result;
use crate::snapshot::FileId;

/// The files of a revision.
pub(crate) struct Life {
    pub(crate) files: Vec<FileLife>,
    /// What is not known of their commits.
    pub(crate) gap: Option<String>,
    pub(crate) provenance: ProvenanceOut,
}

/// A file of code or text.
pub(crate) struct FileLife {
    pub(crate) path: String,
    pub(crate) n_lines: u64,
    /// Number of recorded commits that changed the file under its present path.
    pub(crate) n_changes: usize,
    /// When the last of them was made, in seconds since 1970.
    pub(crate) last_change: Option<i64>,
}

/// Returns the indexed files below a folder. The commits are recorded in the background if they are not.
pub(crate) fn life(ask: &Ask<'_>, folder: &str) -> Result<Life> {
    let selection = FileSelection::default();
    let question = Question::new(ask, &About::indexed_files(&selection))?;
    let view = question.view();
    // A tree has no history.
    let past = if view.provenance().is_tree() {
        None
    } else {
        Some(Past::of(ask, Duration::ZERO)?)
    };
    let opened = past.as_ref().map(|past| &past.opened);
    let files: Vec<FileId> = view.files().map(|(file, _)| file).collect();
    let of_file = |&file: &FileId| -> Result<Option<FileLife>> {
        let path = path_of(view, file);
        let is_inside = folder.is_empty() || path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'));
        let Some(extraction) = view.extraction(file).filter(|_| is_inside) else {
            return Ok(None);
        };
        let mut file_life = FileLife {
            path,
            n_lines: u64::from(extraction?.n_lines),
            n_changes: 0,
            last_change: None,
        };
        if let Some(past) = &opened {
            let history = &past.history;
            let mut changes = history.changes_of(view.file(file).path)?;
            changes.retain(|change| past.reached.has(change.commit));
            let commits = changes.iter().map(|change| change.commit);
            let last = commits.max_by_key(|commit| history.order_of(*commit));
            file_life.n_changes = changes.len();
            file_life.last_change = last.map(|commit| history.time(commit)).transpose()?;
        }
        Ok(Some(file_life))
    };
    let files = files.par_iter().map(of_file).collect::<Result<Vec<_>>>()?;
    Ok(Life {
        files: files.into_iter().flatten().collect(),
        gap: past.as_ref().map(Past::gap).transpose()?.flatten(),
        provenance: question.provenance_of_files(),
    })
}
