//! Determines whether language servers may read the worktree, and how their broker is reached.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use super::error::{OpError, Result};
use super::open::Session;
use super::workspace::Workspace;
use crate::config::Environment;
use crate::ingest::ServerFacts;
use crate::lsp::BrokerPlace;
use crate::model::Hint;

/// The means to ask a language server about a worktree that the user trusts.
#[derive(Debug)]
pub(crate) struct ServerAccess {
    /// The root of the worktree, without links.
    pub(crate) root: PathBuf,
    /// The folders in which programs are looked up.
    pub(crate) search_path: String,
    /// The broker.
    pub(crate) broker: BrokerPlace,
}

impl Session {
    /// Returns the means to ask a language server about the worktree. Fails unless the user trusts its folder.
    pub(crate) fn server_access(&self) -> Result<ServerAccess> {
        if !self.is_own {
            return Err(OpError::new(
                "language servers read only the repository in which this server was started",
                "omit precise",
            ));
        }
        let root = self.workspace.trusted_root()?;
        let environment = Environment::read();
        Ok(ServerAccess {
            root,
            broker: broker_place(&environment)?,
            search_path: environment.search_path,
        })
    }
}

impl Workspace {
    /// Returns the root of the worktree if language servers may read it.
    fn trusted_root(&self) -> Result<PathBuf> {
        let Some(root) = self.root_without_links() else {
            return Err(OpError::new(
                "language servers read files, and this repository has no worktree",
                Hint::each("omit --precise", "omit precise"),
            ));
        };
        match self.command_to_trust() {
            None => Ok(root),
            Some(command) => Err(OpError::new(
                "language servers may not read this repository, because some run code of it",
                format!("if you trust it, allow it: {command}"),
            )),
        }
    }

    /// Returns the command that allows language servers to read the worktree; `None` if they may.
    pub(crate) fn command_to_trust(&self) -> Option<String> {
        let root = self.root_without_links()?;
        let trusted = &self.config.precise.trusted.value;
        let is_above = |folder: &PathBuf| folder.canonicalize().is_ok_and(|folder| root.starts_with(folder));
        let all = trusted.iter().chain([&root]).map(|folder| folder.display().to_string());
        let command = || {
            format!(
                "codescout config set --user precise.trusted {}",
                all.collect::<Vec<_>>().join(":")
            )
        };
        (!trusted.iter().any(is_above)).then(command)
    }

    fn root_without_links(&self) -> Option<PathBuf> {
        self.repository.work_dir().and_then(|root| root.canonicalize().ok())
    }

    /// Stores what a language server says about names in files.
    pub(crate) fn keep_facts(&self, said: &ServerFacts, interrupt: &AtomicBool) -> Result<()> {
        let sidecar = self.storage.open_or_create(interrupt)?;
        Ok(self.writer(&sidecar).add_facts(said, interrupt)?)
    }
}

/// Returns where the user's broker is reached.
pub(crate) fn broker_place(environment: &Environment) -> Result<BrokerPlace> {
    let folder = environment.runtime.clone().ok_or_else(|| {
        OpError::new(
            "there is no folder for the broker of language servers",
            "set HOME or XDG_RUNTIME_DIR",
        )
    })?;
    let program =
        std::env::current_exe().map_err(|error| OpError::failed(format!("no path of this program: {error}")))?;
    Ok(BrokerPlace { folder, program })
}
