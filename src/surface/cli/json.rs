//! The shapes of `--json` that every command has, as described in `docs/cli.md`.

use serde::Serialize;

use crate::surface::answer::{self, Door};
pub(super) use crate::surface::answer::{Hinted, ProvenanceOut};

/// A failure.
#[derive(Debug, Serialize)]
pub(super) struct ErrorOut {
    pub(super) error: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) hint: Option<String>,
}

/// What to do about an error.
pub(super) fn hint(error: &anyhow::Error) -> Option<String> {
    answer::hint(error, Door::Shell)
}
