//! Combines stored snapshots with other files: those of a whole tree, staged files, or files on disk.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};

use super::error::{OpError, Result};
use super::storage::Keeping;
use super::views::{Base, Edits};
use super::workspace::Workspace;
use crate::artifact::SkipReason;
use crate::git::{
    AttributeMatcher, Attributes, DiskFile, FileMode, KnownFiles, OnDisk, TreeEntry, TreeFile, Unread, WorkTreeChange,
    WorkTreeChanges,
};
use crate::index::Segments;
use crate::ingest::Target;
use crate::model::{BlobId, CommitId, Oid, RepoPath};
use crate::snapshot::{
    Change, KeptEdits, ListedFile, Manifest, Provenance, View, attributes_of, lay_over_changes, list_changes, rules_for,
};

impl Workspace {
    /// Computes the snapshot of a tree in memory, without writing. Data comes from the snapshot `known`, the stored
    /// segments, and git.
    pub(crate) fn in_memory(&self, target: Target, known: Option<Base>, interrupt: &AtomicBool) -> Result<Base> {
        let files = self.files_of(target, None)?;
        self.base_over(files, known, interrupt)
    }

    /// Lists a tree's files together with their data in the stored segments. Reads no file; a file that is not indexed
    /// counts as missing.
    pub(crate) fn listed(&self, target: Target) -> Result<Base> {
        let changes = self.files_of(target, None)?;
        let segments = self.any_segments().unwrap_or_default();
        let manifest = list_changes(changes, &HashMap::new(), &segments, &self.options)?;
        Ok(Base {
            segments,
            layers: vec![manifest],
        })
    }

    /// Computes the data of a tree's files at `paths` (ascending) in memory, without writing. Data comes from the
    /// snapshot of another tree, the stored segments, and git. Does not list the rest of the tree. Returns `None` if no
    /// path is a file.
    pub(crate) fn files_in_memory(
        &self,
        target: Target,
        paths: &[RepoPath],
        known: Option<Base>,
        interrupt: &AtomicBool,
    ) -> Result<Option<Base>> {
        let mut changes = self.files_of(target, Some(paths))?;
        changes.retain(|change| matches!(change, Change::Present(file) if paths.binary_search(&file.path).is_ok()));
        if changes.is_empty() {
            return Ok(None);
        }
        self.base_over(changes, known, interrupt).map(Some)
    }

    /// Computes a snapshot of `files` in memory. Data comes from the snapshot `known`, the stored segments, and git.
    fn base_over(&self, files: Vec<Change>, known: Option<Base>, interrupt: &AtomicBool) -> Result<Base> {
        let known = known.map(|base| base.segments);
        let segments = known.or_else(|| self.any_segments()).unwrap_or_default();
        let (segments, manifest) = self.lay_over(files, &HashMap::new(), segments, interrupt)?;
        let layers = vec![manifest];
        Ok(Base { segments, layers })
    }

    /// Adds files extracted in memory to a snapshot.
    pub(crate) fn with_files(&self, mut base: Base, files: Vec<ListedFile>, interrupt: &AtomicBool) -> Result<Base> {
        let changes = files.into_iter().map(Change::Present).collect();
        let (segments, manifest) = self.lay_over(changes, &HashMap::new(), base.segments, interrupt)?;
        base.segments = segments;
        base.layers.push(manifest);
        Ok(base)
    }

    /// Lists the files of a tree: all files, or the files at `paths` and the attribute files that apply to them.
    fn files_of(&self, target: Target, paths: Option<&[RepoPath]>) -> Result<Vec<Change>> {
        let mut reader = self.repository.reader();
        let files = match paths {
            None => reader.diff_trees(None, target.tree)?,
            Some(paths) => {
                let mut wanted: Vec<RepoPath> = paths.iter().flat_map(rules_for).chain(paths.iter().cloned()).collect();
                wanted.sort_unstable();
                wanted.dedup();
                reader.diff_trees_at(None, target.tree, &wanted.iter().collect::<Vec<_>>())?
            }
        };
        let files: Vec<TreeFile> = files
            .iter()
            .filter_map(|change| {
                let TreeEntry { mode, oid } = change.new?;
                let path = change.path.clone();
                Some(TreeFile { path, mode, oid })
            })
            .collect();
        let mut attributes = Attributes::for_files(&mut reader, &files)?.matcher();
        Ok(files
            .into_iter()
            .map(|TreeFile { path, mode, oid }| Change::Present(ListedFile::new(path, mode, oid, &mut attributes)))
            .collect())
    }

    /// Combines the snapshot of the checked-out commit with the staged changes.
    pub(crate) fn over_index(&self, base: Base, mut provenance: Provenance, interrupt: &AtomicBool) -> Result<View> {
        let staged = self.repository.index_changes()?;
        provenance.n_dirty_files = staged.len() as u32;
        let mut attributes = attributes_of(&base.layers, &mut self.repository.reader())?.matcher();
        let changes = staged
            .into_iter()
            .map(|change| match change.new {
                Some(entry) => Change::Present(ListedFile::new(change.path, entry.mode, entry.oid, &mut attributes)),
                None => Change::Gone(change.path),
            })
            .collect();
        self.view_over(Edits::Extracted, base, provenance, (changes, HashMap::new()), interrupt)
    }

    /// Returns the differences between the worktree and the checked-out commit.
    pub(crate) fn changes(&self, known: &mut KnownFiles, interrupt: &AtomicBool) -> Result<WorkTreeChanges> {
        Ok(self
            .repository
            .work_tree_changes(self.options.max_blob_bytes, known, interrupt)?)
    }

    /// Combines the snapshot of the checked-out commit with the files on disk.
    pub(crate) fn over_changes(
        &self,
        edits: Edits,
        base: Base,
        mut provenance: Provenance,
        found: WorkTreeChanges,
        interrupt: &AtomicBool,
    ) -> Result<View> {
        provenance.n_dirty_files = found.changes.len() as u32;
        for (path, reason) in &found.unreadable {
            provenance.incomplete.push(format!("cannot read {path}: {reason}"));
        }
        let mut unsaved = HashMap::new();
        let mut changes = Vec::with_capacity(found.changes.len());
        if !found.changes.is_empty() {
            let mut reader = self.repository.work_tree_reader()?;
            let committed = attributes_of(&base.layers, &mut self.repository.reader())?;
            let mut attributes = committed.with_changes(&found, &mut reader).matcher();
            for change in found.changes {
                let read = |path: &RepoPath| reader.read(path, self.options.max_blob_bytes);
                changes.push(on_disk(change, &mut attributes, read, &mut unsaved));
            }
        }
        self.view_over(edits, base, provenance, (changes, unsaved), interrupt)
    }

    fn view_over(
        &self,
        edits: Edits,
        mut base: Base,
        provenance: Provenance,
        (changes, unsaved): (Vec<Change>, HashMap<BlobId, Vec<u8>>),
        interrupt: &AtomicBool,
    ) -> Result<View> {
        if !changes.is_empty() {
            let kept = self.kept_edits(&base.segments)?;
            if let Some(kept) = &kept {
                base.segments = kept.open(&base.segments);
            }
            let manifest = if edits == Edits::Listed {
                list_changes(changes, &unsaved, &base.segments, &self.options)?
            } else {
                let n_known = base.segments.iter().count();
                let (segments, manifest) = self.lay_over(changes, &unsaved, base.segments, interrupt)?;
                if let Some(kept) = kept.filter(|_| segments.iter().count() > n_known) {
                    kept.keep(&segments);
                }
                base.segments = segments;
                manifest
            };
            base.layers.push(manifest);
        }
        Ok(View::new(provenance, base.segments, base.layers, unsaved))
    }

    /// Returns the extractions of uncommitted files that other processes have stored. `None` if nothing is stored.
    fn kept_edits(&self, stored: &Segments) -> Result<Option<KeptEdits>> {
        let is_stored = stored.epoch() != [0; 16] && !stored.iter().any(|segment| segment.is_in_memory);
        if self.storage.keeping() == Keeping::Nowhere || !is_stored {
            return Ok(None);
        }
        let sidecar = self.storage.open()?;
        Ok(sidecar.map(|sidecar| KeptEdits::beyond(stored, sidecar, self.options.recipe, &self.models.own_profile())))
    }

    /// Applies changes to a view in memory. `contents` has blobs that git does not have.
    pub(super) fn view_with(
        &self,
        view: &View,
        changes: Vec<Change>,
        contents: HashMap<BlobId, Vec<u8>>,
        interrupt: &AtomicBool,
    ) -> Result<View> {
        let (segments, manifest) = self.lay_over(changes, &contents, view.segments().clone(), interrupt)?;
        Ok(view.with_layer(segments, manifest, contents))
    }

    fn lay_over(
        &self,
        changes: Vec<Change>,
        unsaved: &HashMap<BlobId, Vec<u8>>,
        segments: Segments,
        interrupt: &AtomicBool,
    ) -> Result<(Segments, Manifest)> {
        let laid = lay_over_changes(
            changes,
            unsaved,
            &self.repository,
            &segments,
            self.models.own(),
            &self.options,
            interrupt,
        )?;
        // Returning here would report files as missing that were not read.
        if interrupt.load(Ordering::Relaxed) {
            return Err(OpError::interrupted());
        }
        Ok(laid)
    }
}

/// Reads a changed path on disk. Adds content that git does not have to `unsaved`.
fn on_disk(
    change: WorkTreeChange,
    attributes: &mut AttributeMatcher,
    mut read: impl FnMut(&RepoPath) -> Result<DiskFile, Unread>,
    unsaved: &mut HashMap<BlobId, Vec<u8>>,
) -> Change {
    let no_id = || Oid::from_bytes(&[0; 20]).expect("twenty bytes are an id");
    let mut left_out = |path: RepoPath, reason: SkipReason| {
        let mut file = ListedFile::new(path, FileMode::File, no_id(), attributes);
        file.left_out.get_or_insert(reason);
        Change::Present(file)
    };
    match change.new {
        OnDisk::Absent => Change::Gone(change.path),
        OnDisk::Submodule(CommitId(oid)) => {
            Change::Present(ListedFile::new(change.path, FileMode::Submodule, oid, attributes))
        }
        OnDisk::Unread(Unread::TooLarge { .. }) => left_out(change.path, SkipReason::TooLarge),
        OnDisk::Unread(_) => left_out(change.path, SkipReason::Unreadable),
        OnDisk::File { .. } => match read(&change.path) {
            Ok(file) => {
                // The content and the id come from the same read, even if the file is being changed.
                unsaved.insert(file.blob, file.bytes);
                Change::Present(ListedFile::new(change.path, file.mode, file.blob.0, attributes))
            }
            Err(Unread::Absent) => Change::Gone(change.path),
            Err(Unread::TooLarge { .. }) => left_out(change.path, SkipReason::TooLarge),
            Err(_) => left_out(change.path, SkipReason::Unreadable),
        },
    }
}
