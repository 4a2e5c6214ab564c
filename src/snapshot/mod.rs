//! Represents the files of a commit, the git index or the worktree. Each file refers to an indexed blob or has a reason
//! why it is skipped.
//!
//! A [`Manifest`] is stored for each tree, either whole or as a difference from another manifest. An immutable [`View`]
//! combines a manifest, optionally the uncommitted changes of the worktree, and the segments that contain the blobs.

mod blobs;
mod joined;
mod kept;
mod listing;
mod manifest;
mod overlay;
mod recent;
mod store;
mod view;

pub use blobs::Blobs;
pub use joined::{Linked, Other, linked_folder};
pub use kept::{EDITS_ENDING, KeptEdits};
pub use listing::{
    Difference, ListedFile, attributes_of, can_be_completed, is_rules_path, missing_artifacts, missing_blobs, rules_for,
};
pub use manifest::{FileEntry, FileStatus, Manifest, ManifestWriter};
pub use overlay::{Change, OverlayError, lay_over_changes, list_changes};
pub use store::{SnapshotStore, StoredManifest, tree_of_file};
pub use view::{Coverage, DocEntry, Documents, FileId, LiveDocs, Place, Provenance, View, ViewFile};
