//! What `codescout init` did in a repository, so that it can be undone.

use std::io;

use serde::{Deserialize, Serialize};

use crate::cli::INTERRUPTED;
use crate::session::{Context as _, Result, Workspace};
use crate::setup::ci_file::NewCiFile;

/// The name of the file in the folder of logs.
const NAME: &str = "init.json";
/// Limit on its size, far above what is written.
const MAX_BYTES: u64 = 1 << 20;

/// What `init` did. A part is recorded before it is done.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Record {
    /// True if hooks were installed.
    pub(super) hooks: bool,
    /// Ids of the clients that got the server.
    pub(super) agents: Vec<String>,
    /// The CI files of the worktrees, which share this record.
    pub(super) ci_files: Vec<NewCiFile>,
}

impl Record {
    /// Returns an empty record if there is none.
    pub(super) fn read(workspace: &Workspace) -> Result<Self> {
        let Some(sidecar) = workspace.storage.open()? else {
            return Ok(Self::default());
        };
        match sidecar.read_log(NAME, MAX_BYTES) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(error).context("cannot read the record of what init did"),
            Ok(bytes) => serde_json::from_slice(&bytes).context("the record of what init did is damaged"),
        }
    }

    pub(super) fn write(&self, workspace: &Workspace) -> Result<()> {
        let sidecar = workspace.storage.open_or_create(&INTERRUPTED)?;
        Ok(sidecar.write_log(NAME, &serde_json::to_vec(self)?)?)
    }
}
