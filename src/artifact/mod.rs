//! Artifacts: the extraction of each blob, stored by blob id. A blob is extracted once and used in every commit, branch
//! and worktree.
//!
//! An artifact contains no path and no commit. Start with [`ArtifactFile`] (reading) and [`ArtifactWriter`].

mod codec;
mod file;
mod key;

pub use file::{ArtifactFile, ArtifactWriter, FORMAT, OpenedBlocks, ReadError};
pub use key::{ArtifactKey, SkipReason, Status};
