//! The file `versions`, which stores which past file versions the index includes.

use std::io;

use serde::{Deserialize, Serialize};

use super::file_error::FileError;
use super::layout::Sidecar;
use super::lock::WriterLock;
use super::record::{RecordKind, read_record, write_record};

const NAME: &str = "versions";
/// The current format. No earlier format exists.
const KIND: RecordKind = RecordKind {
    magic: *b"CSVE",
    format: 1,
    earlier: None,
};

/// Selects the past file versions to index: those that no snapshot contains.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum PastVersions {
    /// Only the last version of each deleted file and definition.
    #[default]
    Last,
    /// All versions that the recorded history contains.
    All,
}

impl Sidecar {
    /// Returns the stored selection, or the default if none is stored.
    pub fn past_versions(&self) -> Result<PastVersions, FileError> {
        Ok(read_record(self, NAME, KIND)?.unwrap_or_default())
    }

    /// Stores the selection.
    pub fn set_past_versions(&self, versions: PastVersions, _lock: &WriterLock) -> io::Result<()> {
        write_record(self, NAME, KIND, &versions)
    }
}
