//! Fixes that can be applied without asking the user.

use crate::ingest::Depth;
use crate::model::Ctx;
use crate::model::count::count;
use crate::session::{CallCtx, Event, Result, Steps, Workspace};

/// A fix that `--fix` applies. The variants are in the order in which fixes must be applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Remedy {
    /// Set damaged files aside and rebuild them.
    Repair,
    /// Add the sidecar to `info/exclude`.
    Exclude,
    /// Index the commit that is checked out.
    Index,
}

impl Remedy {
    /// Returns a command with the same effect.
    pub(crate) fn command(self) -> &'static str {
        match self {
            Self::Repair => "codescout verify --repair",
            Self::Exclude => "codescout doctor --fix",
            Self::Index => "codescout index",
        }
    }

    /// Applies the fix and returns a description of it.
    pub(crate) fn apply(self, workspace: &Workspace, ctx: Ctx<'_>) -> Result<String> {
        match self {
            Self::Repair => {
                let Some(sidecar) = workspace.storage.open_to_check()? else {
                    return Ok("there is no index to repair".to_owned());
                };
                let repair = workspace.writer(&sidecar).repair(Depth::default(), ctx)?;
                Ok(format!(
                    "set {} aside and rebuilt {}",
                    count(repair.n_set_aside, "damaged file"),
                    count(repair.n_trees, "snapshot")
                ))
            }
            Self::Exclude => {
                if let Some(sidecar) = workspace.storage.open()? {
                    workspace.storage.exclude(&sidecar, ctx.interrupt)?;
                }
                Ok("wrote the line into info/exclude".to_owned())
            }
            Self::Index => {
                let Some(target) = workspace.target("WORKTREE")? else {
                    return Ok("no commit to index yet".to_owned());
                };
                let call = CallCtx::unlimited(ctx);
                let outcome = workspace.update(target, Steps::default(), &call, &mut Event::log)?;
                Ok(format!("indexed {} new blobs", outcome.n_new_blobs))
            }
        }
    }
}
