//! What is known about each blob, kept under the blob's id: extract once, use in every commit, branch and worktree.
//!
//! An artifact knows no path and no commit. Start at [`ArtifactFile`] (reading) and [`ArtifactWriter`].

mod codec;
mod file;
mod key;

pub use file::{ArtifactFile, ArtifactWriter, FORMAT, OpenedBlocks, ReadError};
pub use key::{ArtifactKey, SkipReason, Status};
