//! Stores the extraction of each blob as an artifact. A blob is extracted once, and all commits, branches and worktrees
//! use the same artifact.
//!
//! Artifacts do not contain paths or commits. A recipe identifies everything besides the blob that determines an
//! artifact, for example the extraction rules and their options. Start with [`ArtifactFile`] (reading),
//! [`ArtifactWriter`] (writing) and [`Extractor`] (making the extraction in another process).

mod check;
mod codec;
mod file;
mod key;
mod worker;

pub use check::check;
pub use file::{ArtifactFile, ArtifactWriter, FORMAT, OpenedBlocks};
pub use key::{ArtifactKey, SkipReason, Status};
pub use worker::{Extractor, WORKER, extract, serve_extractor, use_workers, waits_for_worker};
