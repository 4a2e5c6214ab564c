//! What one commit, the index or the work tree contains: a list of files, each a blob that is known or left out with a reason.
//!
//! A [`Manifest`] is stored per tree, whole or as the difference to another; a [`View`] is a manifest, perhaps with the
//! work tree's changes laid over it, opened together with the segments that it points into. A view never changes.

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
