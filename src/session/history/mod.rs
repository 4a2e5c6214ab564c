//! The recorded history of a repository. Start at `opened.rs`, which records missing commits first.

mod exchange;
mod mailmap;
mod messages;
mod opened;
mod recorder;
mod uncommitted;
mod unread;

use super::workspace::Workspace;
use crate::history::{record_recipe, symbol_recipe};
use crate::sidecar::State;

pub(super) use messages::HeldMessages;
pub use opened::OpenedHistory;
pub use uncommitted::Uncommitted;

/// The recorded history of a repository: commits, their messages and changed lines, and traced definitions.
#[derive(Clone, Copy)]
pub struct Records<'w> {
    workspace: &'w Workspace,
}

impl Workspace {
    /// Returns the recorded history.
    pub fn records(&self) -> Records<'_> {
        Records { workspace: self }
    }
}

impl Records<'_> {
    /// The recipe (version and settings) for tracing definitions.
    pub fn symbol_recipe(self) -> u64 {
        symbol_recipe(self.max_blob_bytes())
    }

    /// The recipe (version and settings) that determines the content of exported records.
    pub(crate) fn record_recipe(self) -> u64 {
        record_recipe(self.max_blob_bytes())
    }

    /// Returns true if definitions are traced through some commits. Then new commits are traced too.
    pub(crate) fn is_traced(self) -> bool {
        let is_traced = |state: &State| state.history.iter().any(|entry| entry.symbols.is_some());
        matches!(self.workspace.storage.open_with_state(), Ok(Some((_, Some(state)))) if is_traced(&state))
    }

    /// Returns true if commits were made searchable. Then new commits are made searchable too.
    pub fn has_searchable_history(self) -> bool {
        matches!(self.workspace.storage.open_with_state(), Ok(Some((_, Some(state)))) if state.has_searchable_history())
    }

    fn max_blob_bytes(self) -> u64 {
        self.workspace.build_options().max_blob_bytes
    }
}
