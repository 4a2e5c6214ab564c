//! Detects that a server has changed its model.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::index::{PROBE_TEXT, Row, RowFile, check_row};

/// The known vector of [`PROBE_TEXT`], which identifies a model. It is checked with the first query.
#[derive(Default)]
pub(super) struct Sign {
    known: OnceLock<RowFile>,
    is_seen: AtomicBool,
}

impl Sign {
    /// Sets the vector of [`PROBE_TEXT`], unless one is set or `known` returns `None`.
    pub(super) fn set(&self, known: impl FnOnce() -> Option<RowFile>) {
        if self.known.get().is_none()
            && let Some(known) = known()
        {
            // Another thread can only have set the same vector.
            let _ = self.known.set(known);
        }
    }

    /// Returns the text to embed, with the document prefix, until its vector has been checked.
    pub(super) fn text(&self, prefix: &str) -> Option<String> {
        let is_wanted = self.known.get().is_some() && !self.is_seen.load(Ordering::Relaxed);
        is_wanted.then(|| format!("{prefix}{PROBE_TEXT}"))
    }

    /// Compares `row` with the known vector. Describes the difference if there is one.
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
