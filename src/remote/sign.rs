//! Detects that a server now runs a different model.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::index::{PROBE_TEXT, Row, RowFile, check_row};

/// The stored vector of [`PROBE_TEXT`], which identifies a model. The model is checked with the first query.
#[derive(Default)]
pub(super) struct Sign {
    known: OnceLock<RowFile>,
    is_seen: AtomicBool,
}

impl Sign {
    /// Sets the stored vector of [`PROBE_TEXT`], unless it is already set or `known` returns `None`.
    pub(super) fn set(&self, known: impl FnOnce() -> Option<RowFile>) {
        if self.known.get().is_none()
            && let Some(known) = known()
        {
            // Another thread can only have set the same vector, so an error is ignored.
            let _ = self.known.set(known);
        }
    }

    /// Returns the text to embed, with the document prefix, unless its vector has already been checked.
    pub(super) fn text(&self, prefix: &str) -> Option<String> {
        let is_wanted = self.known.get().is_some() && !self.is_seen.load(Ordering::Relaxed);
        is_wanted.then(|| format!("{prefix}{PROBE_TEXT}"))
    }

    /// Compares `row` with the stored vector. The error describes the difference.
    pub(super) fn check(&self, row: Row) -> Result<(), String> {
        if let Some(known) = self.known.get() {
            check_row(&row, known).map_err(|what| {
                format!(
                    "{what}: the server returns vectors of a different model \
                under the same name"
                )
            })?;
            self.is_seen.store(true, Ordering::Relaxed);
        }
        Ok(())
    }
}
