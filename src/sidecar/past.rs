//! The file `versions`, which records the past versions of files that are indexed.

use std::io;

use serde::{Deserialize, Serialize};

use super::layout::Sidecar;
use super::lock::WriterLock;
use super::record::{RecordError, RecordKind, read_record, write_record};

const NAME: &str = "versions";
/// Format 1 is the first.
const KIND: RecordKind = RecordKind {
    magic: *b"CSVE",
    format: 1,
};

/// Selects the versions of files to index that are not in any snapshot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum PastVersions {
    /// The last versions of removed files and definitions.
    #[default]
    Last,
    /// All recorded versions.
    All,
}

impl Sidecar {
    /// Returns the selection of past versions.
    pub fn past_versions(&self) -> Result<PastVersions, RecordError> {
        Ok(read_record(self, NAME, KIND)?.unwrap_or_default())
    }

    /// Stores the selection of past versions.
    pub fn set_past_versions(&self, versions: PastVersions, _lock: &WriterLock) -> io::Result<()> {
        write_record(self, NAME, KIND, &versions)
    }
}
