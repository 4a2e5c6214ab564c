//! The files of a commit, the git index or the worktree: each is an indexed blob or skipped for a recorded reason.
//!
//! A [`Manifest`] is stored per tree, whole or as a difference from another. A [`View`] combines a manifest, optionally
//! the worktree's changes on top of it, and the segments they refer to. A view is immutable.

mod blobs;
mod kept;
mod listing;
mod manifest;
mod overlay;
mod store;
mod view;

pub use blobs::Blobs;
pub use kept::{EDITS_ENDING, KeptEdits};
pub use listing::{
    Difference, ListedFile, attributes_of, can_be_completed, is_rules_path, missing_artifacts, missing_blobs, rules_for,
};
pub use manifest::{FileEntry, FileStatus, Manifest, ManifestWriter};
pub use overlay::{Change, OverlayError, lay_over_changes, list_changes};
pub use store::{ManifestError, SnapshotStore, StoredManifest, tree_of_file};
pub use view::{Coverage, Documents, FileId, LiveDocs, Place, Provenance, View, ViewFile};
