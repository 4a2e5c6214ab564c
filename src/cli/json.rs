//! Types that occur in the `--json` output of every command. `docs/cli.md` describes that output.

use serde::Serialize;

pub(super) use crate::ops::{OpError, ProvenanceOut};
use crate::session::{self, FrontEnd};

/// A failed command.
#[derive(Debug, Serialize)]
pub(super) struct ErrorOut {
    pub(super) error: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) hint: Option<String>,
}

/// Returns the hint for an error.
pub(super) fn hint(error: &anyhow::Error) -> Option<String> {
    session::hint(error, FrontEnd::Shell)
}
