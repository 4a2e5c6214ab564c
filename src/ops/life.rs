//! How often and when the files of a revision changed, as far as its commits are recorded.

use std::cmp::Reverse;
use std::time::Duration;

use rayon::prelude::*;

use super::ask::{Ask, FileSelection};
use super::paths::path_of;
use super::provenance::ProvenanceOut;
use super::question::{About, Question};
use super::record::Past;
use crate::history::PathChange;
use crate::model::RepoPath;
use crate::query::{file_commits, timestamp};
use crate::session::Result;
use crate::snapshot::FileId;

/// The files of a revision.
pub(crate) struct Life {
    pub(crate) files: Vec<FileLife>,
    pub(crate) provenance: ProvenanceOut,
}

/// A file of code or text.
pub(crate) struct FileLife {
    pub(crate) path: String,
    pub(crate) n_lines: u64,
    /// Number of commits in its history, as far as they are recorded.
    pub(crate) n_changes: usize,
    /// The author's date of the last of them.
    pub(crate) last_change: Option<String>,
}

impl FileLife {
    /// Returns how much of a file is read again with its changes.
    pub(crate) fn heat(&self) -> u64 {
        self.n_lines * self.n_changes as u64
    }
}

/// A file whose life is being looked up.
struct Known {
    file: FileId,
    /// The number of its last commit.
    last: Option<u32>,
    life: FileLife,
}

/// Returns the indexed files below a folder. The commits are recorded in the background if they are not. Renames count for the
/// `n_followed` longest files and as many that are long and change often, because following all would take long.
pub(crate) fn life(ask: &Ask<'_>, folder: &str, n_followed: usize) -> Result<Life> {
    let selection = FileSelection::default();
    let question = Question::new(ask, &About::indexed_files(&selection))?;
    let view = question.view();
    // A tree has no history.
    let past = if view.provenance().is_tree() {
        None
    } else {
        Some(Past::of(ask, Duration::ZERO)?)
    };
    let opened = past.as_ref().and_then(|past| Some((&past.opened, past.opened.tip?)));
    let files: Vec<FileId> = view.files().map(|(file, _)| file).collect();
    let of_file = |&file: &FileId| -> Result<Option<Known>> {
        let path = path_of(view, file);
        let is_inside = folder.is_empty() || path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'));
        let Some(extraction) = view.extraction(file).filter(|_| is_inside) else {
            return Ok(None);
        };
        let mut known = Known {
            file,
            last: None,
            life: FileLife {
                path,
                n_lines: u64::from(extraction?.n_lines),
                n_changes: 0,
                last_change: None,
            },
        };
        if let Some((past, _)) = opened {
            let history = &past.history;
            let mut changes = history.changes_of(view.file(file).path)?;
            let is_own = |change: &PathChange| change.is_combined || history.parents(change.commit).len() < 2;
            changes.retain(|change| past.reached.has(change.commit) && is_own(change));
            known.life.n_changes = changes.len();
            let commits = changes.iter().map(|change| change.commit);
            known.last = commits.max_by_key(|commit| history.order_of(*commit));
        }
        Ok(Some(known))
    };
    let files = files.par_iter().map(of_file).collect::<Result<Vec<_>>>()?;
    let mut files: Vec<Known> = files.into_iter().flatten().collect();
    if let Some((past, tip)) = opened {
        let keys: [fn(&FileLife) -> u64; 2] = [|life| life.n_lines, FileLife::heat];
        for key in keys {
            files.sort_by_key(|known| Reverse(key(&known.life)));
            files
                .par_iter_mut()
                .take(n_followed)
                .try_for_each(|known| -> Result<()> {
                    let path = RepoPath::new(view.file(known.file).path);
                    (known.life.n_changes, known.last) = file_commits(&past.history, tip, &past.reached, &path)?;
                    Ok(())
                })?;
        }
        let last: Vec<u32> = files.iter().filter_map(|known| known.last).collect();
        let heads = past.history.heads(&last)?;
        for known in &mut files {
            let head = known.last.and_then(|last| heads.get(&last));
            known.life.last_change = head.map(|head| timestamp(head.author_time, head.author_offset));
        }
    }
    let mut provenance = question.provenance_of_files();
    if let Some(gap) = past.as_ref().map(Past::gap).transpose()?.flatten() {
        provenance.also_building(gap);
    }
    Ok(Life {
        files: files.into_iter().map(|known| known.life).collect(),
        provenance,
    })
}
