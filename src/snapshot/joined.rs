//! Joins the views of several repositories into one. Its statistics are those of all files, so one ranking has them all.
//!
//! The files of a linked repository are in a folder named after it, `sdk:`, as if they were a package of a monorepo.

use std::ops::Range;
use std::sync::Arc;

use super::manifest::{FileEntry, FileStatus, UNNUMBERED};
use super::view::{FileId, Provenance, View};
use crate::git::Repository;
use crate::index::Segments;
use crate::model::RepoPath;
use crate::sidecar::FileError;

/// A view of a repository, to be joined with the view of another one.
pub struct Other<'a> {
    /// The name of the repository.
    pub name: &'a str,
    /// Its view.
    pub view: &'a View,
    /// The repository that contains the blobs of the view.
    pub repository: &'a Repository,
}

/// A linked repository in a joined view.
#[derive(Clone, Debug)]
pub struct Linked {
    /// The name of the repository.
    pub name: String,
    /// The origin of its files.
    pub provenance: Provenance,
    pub(super) repository: Repository,
    /// The numbers of its files.
    files: Range<u32>,
}

/// Returns the folder that has the files of a linked repository.
pub fn linked_folder(name: &str) -> String {
    format!("{name}:/")
}

impl View {
    /// Joins this view with those of other repositories.
    pub fn joined(&self, others: &[Other<'_>]) -> Result<Self, FileError> {
        let views = || [self].into_iter().chain(others.iter().map(|other| other.view));
        let live: Vec<_> = views().map(|view| |doc| view.live().contains(doc)).collect();
        let parts = views().zip(&live);
        let parts: Vec<(&Segments, &dyn Fn(u32) -> bool)> =
            parts.map(|(view, is_live)| (view.segments(), is_live as _)).collect();
        let segments = Segments::joined(&parts);
        let folders = [String::new()].into_iter();
        let folders = folders.chain(others.iter().map(|other| linked_folder(other.name)));
        let (mut files, mut base_blob) = (Vec::new(), 0);
        for (view, folder) in views().zip(folders) {
            files.extend(view.files().map(|(_, file)| moved(file.entry(), &folder, base_blob)));
            base_blob += view.segments().n_blobs();
        }
        files.sort_by(|a, b| a.path.as_bytes().cmp(b.path.as_bytes()));
        let mut joined = self.listing(&files, segments)?;
        let linked = others.iter().map(|other| {
            let folder = linked_folder(other.name);
            let start = files.partition_point(|file| file.path.as_bytes() < folder.as_bytes());
            let n_files = other.view.n_files();
            Linked {
                name: other.name.to_owned(),
                provenance: other.view.provenance().clone(),
                repository: other.repository.clone(),
                files: start as u32..start as u32 + n_files,
            }
        });
        joined.linked = linked.collect();
        joined.positions = joined.positions_by_path();
        let unsaved = Arc::make_mut(&mut joined.unsaved);
        for view in others.iter().map(|other| other.view) {
            unsaved.extend(view.unsaved.iter().map(|(blob, bytes)| (*blob, bytes.clone())));
        }
        joined.n_withheld = views().map(View::n_withheld).sum();
        let reasons = others.iter().flat_map(|other| {
            let reasons = other.view.provenance().incomplete.iter();
            reasons.map(|reason| format!("{}: {reason}", other.name))
        });
        joined.provenance.incomplete.extend(reasons);
        joined.number_documents(|_| true);
        Ok(joined)
    }

    fn positions_by_path(&self) -> Arc<[u32]> {
        let files = self.files().map(|(file, _)| file);
        let mut by_path: Vec<(&[u8], FileId)> = files.map(|file| (self.path_in_repository(file), file)).collect();
        by_path.sort_unstable();
        let mut positions = vec![0; by_path.len()];
        for (position, (_, file)) in (0..).zip(by_path) {
            positions[file.0 as usize] = position;
        }
        positions.into()
    }

    /// Adds reasons why answers are incomplete.
    pub fn with_incomplete(mut self, reasons: Vec<String>) -> Self {
        self.provenance.incomplete.extend(reasons);
        self
    }

    /// Returns the linked repositories of the view.
    pub fn linked(&self) -> &[Linked] {
        &self.linked
    }

    /// Returns the linked repository that a file is in.
    pub fn linked_of(&self, id: FileId) -> Option<&Linked> {
        self.linked.iter().find(|linked| linked.files.contains(&id.0))
    }

    /// Returns the path of a file from the root of the repository that it is in.
    pub fn path_in_repository(&self, id: FileId) -> &[u8] {
        let path = self.file(id).path;
        let folder = self.linked_of(id).map_or(0, |linked| linked_folder(&linked.name).len());
        &path[folder..]
    }
}

/// Returns the entry of a file in a folder, with the number of its blob behind those of the views before.
fn moved(file: FileEntry, folder: &str, base_blob: u32) -> FileEntry {
    let mut path = folder.as_bytes().to_vec();
    path.extend_from_slice(file.path.as_bytes());
    let status = match file.status {
        FileStatus::Indexed { blob } if blob < UNNUMBERED => FileStatus::Indexed { blob: base_blob + blob },
        status => status,
    };
    FileEntry {
        path: RepoPath::new(path),
        status,
        ..file
    }
}
