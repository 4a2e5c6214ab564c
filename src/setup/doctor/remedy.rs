//! Fixes that need no further question.

use std::sync::atomic::AtomicBool;

use anyhow::Result;

use crate::ingest::{Depth, Limits, Progress};
use crate::session::Workspace;

/// A fix that `--fix` applies; in the order in which they have to be applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Remedy {
    /// Set damaged files aside and rebuild them.
    Repair,
    /// Write the line into `info/exclude`.
    Exclude,
    /// Index the commit that is checked out.
    Index,
}

impl Remedy {
    /// The command that does the same.
    pub(crate) fn command(self) -> &'static str {
        match self {
            Self::Repair => "codescout verify --repair",
            Self::Exclude => "codescout doctor --fix",
            Self::Index => "codescout index",
        }
    }

    /// Applies the fix and returns a description of it.
    pub(crate) fn apply(
        self,
        workspace: &Workspace,
        progress: &dyn Progress,
        interrupt: &AtomicBool,
    ) -> Result<String> {
        match self {
            Self::Repair => {
                let Some(sidecar) = workspace.storage.open_to_check()? else {
                    return Ok("there is no index to repair".to_owned());
                };
                let limits = Limits {
                    interrupt,
                    deadline: None,
                };
                let repair = workspace.writer(&sidecar).repair(Depth::default(), progress, limits)?;
                Ok(format!(
                    "set {} damaged files aside and rebuilt {} snapshots",
                    repair.n_set_aside, repair.n_trees
                ))
            }
            Self::Exclude => {
                if let Some(sidecar) = workspace.storage.open()? {
                    workspace.storage.exclude(&sidecar, interrupt)?;
                }
                Ok("wrote the line into info/exclude".to_owned())
            }
            Self::Index => {
                let Some(target) = workspace.target("WORKTREE")? else {
                    return Ok("no commit to index yet".to_owned());
                };
                let outcome = workspace.ingest(target, progress, interrupt)?;
                Ok(format!("indexed {} new blobs", outcome.n_new_blobs))
            }
        }
    }
}
