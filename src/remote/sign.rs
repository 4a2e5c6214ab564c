//! Whether a server still has the model that it had.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::index::{PROBE_TEXT, Row, RowFile, check_row};

/// What a model is known by: asked for beside the first query.
#[derive(Default)]
pub(super) struct Sign {
    known: OnceLock<RowFile>,
    is_seen: AtomicBool,
}

impl Sign {
    /// Says what the model gave for [`PROBE_TEXT`], if `known` does and nobody has said so yet.
    pub(super) fn set(&self, known: impl FnOnce() -> Option<RowFile>) {
        if self.known.get().is_none()
            && let Some(known) = known()
        {
            // Who was faster said the same.
            let _ = self.known.set(known);
        }
    }

    /// The text to ask for, behind the prefix of documents, until it has been answered as it should be.
    pub(super) fn text(&self, prefix: &str) -> Option<String> {
        let is_wanted = self.known.get().is_some() && !self.is_seen.load(Ordering::Relaxed);
        is_wanted.then(|| format!("{prefix}{PROBE_TEXT}"))
    }

    /// Compares the answer.
    pub(super) fn check(&self, row: Row) -> Result<(), String> {
        if let Some(known) = self.known.get() {
            check_row(&row, known).map_err(|what| format!("{what}: another model answers under the name"))?;
            self.is_seen.store(true, Ordering::Relaxed);
        }
        Ok(())
    }
}
